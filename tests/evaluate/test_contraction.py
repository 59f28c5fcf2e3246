"""``dp.config.fp_contract``: multiply-add rounds once if it is on, and twice as in NumPy if not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dparray as dp
from dparray._compiler import compile
from dparray._evaluate import evaluate, limits
from tests.support import examples, launched

EXAMPLES = examples(40)
SIZE = 3000


pytestmark = pytest.mark.usefixtures("fused")


def operands(dtype: str) -> list[np.ndarray]:
    """Return factors and the negated rounded product: a fused multiply-add of them is not 0."""
    a, b = np.random.default_rng(0).normal(size=(2, SIZE)).astype(dtype)
    return [a, b, -(a * b)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_without_it_a_multiply_add_rounds_twice_as_numpy_does(dtype: str) -> None:
    a, b, c = operands(dtype)
    x, y, z = map(dp.asarray, (a, b, c))
    assert not dp.config.fp_contract
    np.testing.assert_array_equal((x * y + z).asnumpy(), a * b + c)
    with dp.config.override(lazy=False):
        np.testing.assert_array_equal((x * y + z).asnumpy(), a * b + c)
    with dp.config.override(fp_contract=True):
        once = (x * y + z).asnumpy()
    exact = a.astype("longdouble") * b + c
    cpu = Path("/proc/cpuinfo")
    if cpu.exists() and " fma " in cpu.read_text():
        assert np.count_nonzero(once) > SIZE // 2
    np.testing.assert_allclose(once, exact.astype(dtype), atol=np.finfo(dtype).eps * 20)
    np.testing.assert_array_equal((x * y + z).asnumpy(), a * b + c)


def test_the_setting_is_part_of_the_key_on_disk_and_in_memory() -> None:
    x, y, z = (
        dp.asarray(np.resize(value, limits.COMPILE_ELEMENTS)) for value in operands("float32")
    )
    with launched() as launches:
        for allowed in (False, True, False, True):
            with dp.config.override(fp_contract=allowed):
                dp.eval(x * y - z)
                assert dp.explain(x * y - z).kernels[0].state == "compiled"
    off, on, off_again, on_again = (launch.kernel for launch in launches)
    assert (off, on) == (off_again, on_again)
    assert off.module != on.module
    contraction_off = r"ExecutionMode %\d+ ContractionOff\b"
    assert re.search(contraction_off, compile.module_text(off))
    assert not re.search(contraction_off, compile.module_text(on))
    evaluate.forget()
    with dp.config.override(fp_contract=True):
        assert dp.explain(x * y - z).kernels[0].state == "on disk"


def test_the_option_takes_booleans_only() -> None:
    with pytest.raises(TypeError, match="fp_contract must be a bool"):
        dp.config.fp_contract = "off"


STEPS = ("add", "subtract", "multiply", "divide", "square", "negative", "sqrt", "abs", "where")


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    dtype=st.sampled_from(["float32", "float64"]),
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)),
        min_size=2,
        max_size=6,
    ),
)
def test_lazy_eager_and_numpy_agree_in_every_bit(
    dtype: str, steps: list[tuple[str, int, int]]
) -> None:
    """This holds for operations whose rounding IEEE 754 defines."""
    start = operands(dtype)

    def results(xp: Any, values: list[Any]) -> list[Any]:
        values = list(values)
        for name, first, second in steps:
            one, other = values[first % len(values)], values[second % len(values)]
            if name == "where":
                values.append(xp.where(one > other, one, other * 0.5))
            elif name in ("square", "negative", "sqrt", "abs"):
                values.append(getattr(xp, name)(one))
            else:
                values.append(getattr(xp, name)(one, other))
        return values[3:]

    with limits.force("fused"), np.errstate(all="ignore"):
        expected = results(np, start)
        lazy = results(dp, [dp.asarray(value) for value in start])
        dp.eval(lazy[-1])
        with dp.config.override(lazy=False):
            eager = results(dp, [dp.asarray(value) for value in start])
    for one, other, wanted in zip(lazy, eager, expected, strict=True):
        np.testing.assert_array_equal(one.asnumpy(), wanted)
        np.testing.assert_array_equal(other.asnumpy(), wanted)
