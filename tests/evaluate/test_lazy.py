"""Lazy mode, eager mode and NumPy agree: random programs with views, in-place updates and aliasing.

Each program runs on all three backends. On the host and dpnp backends results must equal NumPy's up
to rounding of the elementary functions. Lazy and eager results must be equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dparray as dp
from dparray._evaluate import host as tier_host
from dparray._evaluate import limits
from dparray._runtime import queues
from tests.support import examples

# For each of three backends; a tenth of the programs are compiled, too.
EXAMPLES = examples(600)
DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool", "float16", "complex64"]
SHAPES: list[tuple[int, ...]] = [(6,), (4, 6), (3, 4, 6), (1, 6), (4, 1), ()]


@dp.elementwise
def folded(x: Any) -> Any:
    return x * x + x


BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda xp, x, y: x + y,
    "subtract": lambda xp, x, y: x - y,
    "multiply": lambda xp, x, y: x * y,
    "maximum": lambda xp, x, y: xp.maximum(x.real, y.real),
    "minimum": lambda xp, x, y: xp.minimum(x.real, y.real),
    "less": lambda xp, x, y: x.real < y.real,
    "equal": lambda xp, x, y: x == y,
    # Libraries differ in complex divisions by zero.
    "divide": lambda xp, x, y: x / (2 if "c" in (x.dtype.kind, y.dtype.kind) else y),
    "where": lambda xp, x, y: xp.where(x.real > 1, x, y),
}
UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "negative": lambda xp, x: -x,
    "square": lambda xp, x: xp.square(x),
    "abs": lambda xp, x: abs(x),
    "sqrt": lambda xp, x: xp.sqrt(abs(x)),
    "exp": lambda xp, x: xp.exp(-abs(x * 0.1)),
    "to float32": lambda xp, x: x.real.astype("float32"),
    "to int32": lambda xp, x: xp.where(abs(x) < 1000, x.real, 0).astype("int32"),
    "twice": lambda xp, x: x * 2,
    "plus half": lambda xp, x: x + 0.5,
    "power": lambda xp, x: (x + 0) ** 2,
    "isnan": lambda xp, x: xp.isnan(x * 1.0),
    "a user's function": lambda xp, x: x * x + x if xp is np else folded(x),
}


def _diagonal(x: Any) -> Any:
    found = x.diagonal()
    if isinstance(x, np.ndarray):
        # NumPy makes it read-only; elsewhere a diagonal is like any view
        found.flags.writeable = True
    return found


def _masked(x: Any, y: Any) -> None:
    xp = np if isinstance(x, np.ndarray) else dp
    x[...] = xp.where(y.real > 1, x, 7)


MADE: dict[str, Callable[[Any, int], Any]] = {
    "arange": lambda xp, n: xp.arange(n, n + 6),
    "arange of floats": lambda xp, n: xp.arange(0.5, 0.5 + 6 * 0.3, 0.3, dtype="float32")[:6],
    "arange down": lambda xp, n: xp.arange(6, 0, -1, dtype="int32"),
    "linspace": lambda xp, n: xp.linspace(0, n + 1, 6),
    "zeros": lambda xp, n: xp.zeros((4, 6), dtype="float32"),
    "full": lambda xp, n: xp.full((4, 6), n),
    "ones of half": lambda xp, n: xp.ones(6, dtype="float16"),
    "eye": lambda xp, n: xp.eye(4, 6, k=n % 3 - 1, dtype="int32"),
}
REDUCED: dict[str, Callable[[Any, Any], Any]] = {
    "sum of the last axis": lambda xp, x: xp.sum(x, axis=-1),
    "sum kept": lambda xp, x: xp.sum(x, axis=0, keepdims=True),
    "largest": lambda xp, x: xp.max(x.real, axis=-1, keepdims=True),
    "any": lambda xp, x: xp.any(x),
    "mean": lambda xp, x: xp.mean(x * 1.0, axis=0),
    "centred": lambda xp, x: x - xp.mean(x * 1.0, axis=-1, keepdims=True),
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "reversed": lambda x: x[::-1],
    "every second": lambda x: x[..., ::2],
    "tail": lambda x: x[1:],
    "inner": lambda x: x[..., 1:-1],
    "row": lambda x: x[0] if x.ndim > 1 else x[0:1],
    "new axis": lambda x: x[None],
    "all": lambda x: x[...],
    "transposed": lambda x: x.T,
    "flat": lambda x: x.reshape(-1),
    "flat of every second": lambda x: x[::2].reshape(-1),
    "two rows": lambda x: x.reshape(2, -1),
    "diagonal": lambda x: _diagonal(x) if x.ndim > 1 else x,
    "swapped": lambda x: x.swapaxes(0, -1),
    "backwards along the last": lambda x: x[..., ::-1],
}
WRITES: dict[str, Callable[[Any, Any], None]] = {
    "add in place": lambda x, y: x.__iadd__(y),
    "multiply in place": lambda x, y: x.__imul__(y),
    "assign": lambda x, y: x.__setitem__(Ellipsis, y if x.dtype.kind == "c" else y.real),
    "assign scalar": lambda x, y: x.__setitem__(slice(0, 1), 3),
    "shift": lambda x, y: x.__setitem__(slice(1, None), x[:-1]),
    "stencil": lambda x, y: x.__setitem__(slice(1, -1), x[:-2] + x[2:]),
    "from own double": lambda x, y: x.__iadd__(x * 2),
    "through a view": lambda x, y: x[::2].__iadd__(1),
    "where another is large": _masked,
    "transposed into a part": lambda x, y: x.T[1:].__imul__(2),
}

steps = st.lists(
    st.tuples(
        st.sampled_from(
            [("binary", name) for name in BINARY]
            + [("unary", name) for name in UNARY]
            + [("view", name) for name in VIEWS]
            + [("write", name) for name in WRITES]
            + [("made", name) for name in MADE]
            + [("reduced", name) for name in REDUCED]
            + [("read", "")]
        ),
        st.integers(0, 50),
        st.integers(0, 50),
    ),
    min_size=1,
    max_size=12,
)


@contextmanager
def tier(name: str) -> Iterator[None]:
    """Force every evaluation onto one backend; if the queue is busy, the host's work waits."""
    with limits.force(name.partition(",")[0]), pytest.MonkeyPatch.context() as patch:
        if name == "host, waiting":
            patch.setattr(tier_host, "is_ready", lambda *_: False)
            # pretend that a queue is busy, so each queue is checked
            patch.setitem(queues.working, None, object())
        yield


def inputs(seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [
        (generator.integers(0, 5, SHAPES[generator.integers(len(SHAPES))])).astype(dtype)
        for dtype in generator.choice(DTYPES, 3)
    ]


def result_of(value: Any) -> Any:
    """Convert NumPy's scalar results to 0-dimensional arrays, as dparray returns."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def run(xp: Any, arrays: list[Any], program: list[Any]) -> list[Any]:
    """Run a program; if the library raises in a step, the kind of the error is recorded."""
    arrays = list(arrays)
    log: list[Any] = []
    for (kind, name), first, second in program:
        x, y = arrays[first % len(arrays)], arrays[second % len(arrays)]
        try:
            with np.errstate(all="ignore"):
                if kind == "binary":
                    arrays.append(result_of(BINARY[name](xp, x, y)))
                elif kind == "unary":
                    arrays.append(result_of(UNARY[name](xp, x)))
                elif kind == "made":
                    arrays.append(MADE[name](xp, first % 7))
                elif kind == "reduced" and x.ndim:
                    arrays.append(result_of(REDUCED[name](xp, x)))
                elif kind == "view":
                    arrays.append(VIEWS[name](x))
                elif kind == "write":
                    WRITES[name](x, y)
                else:
                    log.append(np.array(x) if xp is np else x.asnumpy())
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            log.append("refused " + kind)
            del error
    return [array if xp is np else array.asnumpy() for array in arrays] + log


def equal_to_numpy(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, str):
            assert one == other
            continue
        assert np.asarray(one).dtype == np.asarray(other).dtype
        coarse = any(array.dtype.char in "eF" for array in map(np.asarray, wanted))
        tolerance = 2e-2 if coarse else 2e-5
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance / 2)


def check(program: list[Any], seed: int, tier_name: str) -> None:
    host = inputs(seed)
    wanted = run(np, [array.copy() for array in host], program)
    with tier(tier_name):
        lazy = run(dp, [dp.asarray(array) for array in host], program)
        with dp.config.override(lazy=False):
            eager = run(dp, [dp.asarray(array) for array in host], program)
    equal_to_numpy(lazy, wanted)
    for one, other in zip(lazy, eager, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("tier_name", ["host", "host, waiting", "library"])
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
)
@given(program=steps, seed=st.integers(0, 1000))
def test_random_programs(tier_name: str, program: list[Any], seed: int) -> None:
    check(program, seed, tier_name)


@settings(max_examples=max(10, EXAMPLES // 10), deadline=None)
@given(program=steps, seed=st.integers(0, 1000))
def test_random_programs_compiled(program: list[Any], seed: int) -> None:
    check(program, seed, "fused")


@pytest.mark.parametrize("tier_name", ["host", "host, waiting", "library", "fused"])
def test_a_choice_goes_into_a_view_of_negative_strides(tier_name: str) -> None:
    values = np.arange(20.0).reshape(4, 5)
    for mask in (np.arange(5) % 2 == 0, values % 3 == 0, values[:, :1] > 7):
        for index in (np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-1]):
            wanted, x = values.copy(), dp.asarray(values)
            wanted[index] = np.where(mask, 7.0, wanted[index])
            with tier(tier_name):
                x[index] = dp.where(dp.asarray(mask), 7.0, x[index])
                np.testing.assert_array_equal(x.asnumpy(), wanted)
