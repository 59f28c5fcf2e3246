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
