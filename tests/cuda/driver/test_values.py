"""Kernels of all kinds have the values of NumPy and plain Python, and ptxas accepts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.cuda import packages
from tests.cuda.standin import StandIn
from tests.kernel import random_kernels
from tests.support import force, same


@pytest.fixture
def gpu(driver: StandIn) -> Iterator[dp.Device]:
    """Return a GPU; afterwards ptxas reads the modules that the test has loaded."""
    packages.need_libdevice()
    before = len(driver.modules)
    yield dp.Device("cuda:0")
    for loaded in driver.modules[before:]:
        for processor in packages.PROCESSORS if packages.ptxas_path() else ():
            packages.assembled(loaded.text.encode(), processor)


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(200))
def test_random_kernels_agree_with_plain_python(gpu: dp.Device, seed: int) -> None:
    random_kernels.compare(random_kernels.make_case(seed), gpu.queue)


X = np.random.default_rng(1).standard_normal((60, 50)).astype("float32")
EXPRESSIONS: dict[str, Any] = {
    "chain": lambda xp, x: x * 2 + x - xp.exp(x),
    "sum": lambda xp, x: x.sum(),
    "rows": lambda xp, x: x.sum(axis=1),
    "columns": lambda xp, x: x.max(axis=0),
    "softmax": lambda xp, x: xp.exp(x - x.max(axis=1, keepdims=True)),
    "float16": lambda xp, x: xp.sqrt(abs(x.astype("float16"))) * 2,
    "complex": lambda xp, x: (x + 1j * x) * (x - 2j),
    "integers": lambda xp, x: (x * 100).astype("int64") // 7 % 5,
    "transposed": lambda xp, x: x.T + x.reshape(50, 60),
    "scan": lambda xp, x: (dp.algorithms.inclusive_scan if xp is dp else xp.cumsum)(x.ravel()),
    "variance": lambda xp, x: x.var(axis=1),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_have_the_values_of_numpy(gpu: dp.Device, name: str) -> None:
    tolerance = 2e-3 if name == "float16" else 1e-5
    with force("fused"):
        found = EXPRESSIONS[name](dp, dp.asarray(X, device=gpu))
        same(found, EXPRESSIONS[name](np, X), tolerance, atol=1e-4)


@dp.kernel
def write_one(item: Any, x: Any) -> None:
    x[item.get_id(0)] = 1


#: Conversions and tools that a program asks for, which are no fallback.
EXPLICIT: dict[str, Any] = {
    "asnumpy": lambda x: x.asnumpy(),
    "to_numpy": lambda x: x.to_numpy(),
    "ndenumerate": lambda x: list(dp.ndenumerate(x)),
    "np.ndenumerate": lambda x: list(np.ndenumerate(x)),
    "iter": list,
    "__array_interface__": lambda x: x.__array_interface__,
    "np.asarray": np.asarray,
    "np.array": np.array,
    "__array__": lambda x: x.__array__(),
    "simulate": lambda x: dp.simulate(write_one, dp.Range(5), x),
    "repr": repr,
    "html": lambda x: x._repr_html_(),
    "tobytes": lambda x: x.tobytes(),
    "assert_array_equal": lambda x: dp.testing.assert_array_equal(x, x),
    "assert_array_less": lambda x: dp.testing.assert_array_less(x, x + 1),
    "assert_almost_equal": lambda x: dp.testing.assert_almost_equal(x, x),
    "assert_equal": lambda x: dp.testing.assert_equal(x, x),
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_what_a_program_asks_for_is_no_fallback(gpu: dp.Device, name: str) -> None:
    x = dp.arange(5.0, device=gpu)
    with dp.config.override(fallback="error", host_operands="copy"):
        EXPLICIT[name](x)


_INDICES: dict[str, Any] = {
    "integer": 2,
    "last": -1,
    "element": (1, 3),
    "rows": slice(1, -1),
    "steps": (slice(None, None, -2), slice(1, None, 3)),
    "new axis": (None, slice(2), None, 1),
    "ellipsis": (Ellipsis, 3),
    "element by ellipsis": (1, 3, Ellipsis),
    "nothing": slice(3, 3),
    "all": Ellipsis,
}


@pytest.mark.sample(len(_INDICES))
@pytest.mark.parametrize("name", _INDICES)
def test_views_of_memory_that_the_host_does_not_see(gpu: dp.Device, name: str) -> None:
    index = _INDICES[name]
    a = np.arange(20.0).reshape(4, 5)[:, ::-1]
    x = dp.asarray(a, device=gpu)[:, ::-1]
    a = a[:, ::-1].copy()
    view, wanted = x[index], a[index]
    assert (view.shape, view.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(view.asnumpy(), wanted)
    a[index] = a[index] * 2
    x[index] = x[index] * 2
    a[index] += 1
    x[index] += 1
    np.testing.assert_array_equal(x.asnumpy(), a)
    if np.ndim(wanted):
        np.testing.assert_array_equal(view.asnumpy(), wanted)  # it shares the memory
    x[index] = 7
    a[index] = 7
    np.testing.assert_array_equal(x.asnumpy(), a)


def test_bad_indices_and_memory_that_is_read_only(gpu: dp.Device) -> None:
    x = dp.arange(5.0, device=gpu)
    first = x[0]
    x[0] = 3
    assert first.item() == 0
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
        x[5]
    with pytest.raises(IndexError, match="too many indices"):
        x[1:, 0] = 1
    rows = dp.broadcast_to(x, (3, 5))
    assert rows[1, 2].item() == 2
    for index in (0, (slice(None), 1)):
        with pytest.raises(dp.ArgumentError, match="read-only"):
            rows[index] = 1
