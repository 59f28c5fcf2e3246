"""Conversions of numbers on the host's driver, also where the processor has none for float16."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._compiler import compile
from dparray._driver.host import modules

DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64"),
]
_FLOATS = [
    *(0.0, -0.0, 1, -1.5, 2.5, 99.9, 127, 2049, 2051, 65504, 65519.99, 65520, 1e-300, 1e300),
    *(1 + 2**-11, 1 + 2**-11 + 2**-30, 5.96e-8, 2.98e-8, 2**-25, 2.99e-8, 6e-5, 3.4e38, 1e-45),
    *(np.inf, -np.inf, np.nan),
]


@dp.kernel
def convert(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i]


@dp.kernel
def with_the_sign(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = math.copysign(np.float32(2), np.float32(x[i]))


@pytest.fixture(params=["this processor", "a processor without float16"])
def _processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compile for a processor; the kernels of another one are dropped before and afterward."""
    if request.param != "this processor":
        usual = modules.features().split(",")
        if "+f16c" not in usual:
            pytest.skip("the processor always or never converts float16")
        others = ",".join(each for each in usual if "avx512" not in each and "f16c" not in each)
        monkeypatch.setattr(modules, "features", lambda: f"{others},-f16c,-avx512f")
    _forget()
    yield
    _forget()


def _forget() -> None:
    compile.forget()
    modules.machine.cache_clear()
    for each in (convert, with_the_sign):
        each._kernels.clear()


def _samples(dtype: str, to: str) -> np.ndarray:
    """Return values of a dtype that the other can represent, rounded if it is one of floats."""
    kind, target = np.dtype(dtype), np.dtype(to)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        whole = {info.min, 0, 1, 100, info.max, 2049, 65519, 65520, 2**24 + 1, 2**53 + 1}
        return np.array(sorted(each for each in whole if each <= info.max), kind)
    if kind.kind == "b":
        return np.array([False, True])
    with np.errstate(over="ignore"):
        values = np.array(_FLOATS).astype(kind)
    if target.kind in "iu":
        info = np.iinfo(target)
        values = values[np.isfinite(values)]
        wide = values.astype("float64")
        values = values[(wide >= float(info.min)) & (wide < min(float(info.max), 2.0**63))]
    return values


@pytest.mark.sample(8)
@pytest.mark.filterwarnings("ignore:.*drops the fraction")
@pytest.mark.usefixtures("_processor")
@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_converted_as_by_numpy(dtype: str, to: str) -> None:
    values = _samples(dtype, to)
    x = dp.asarray(values, device="host:cpu")
    out = dp.zeros(len(values), to, device="host:cpu")
    dp.call_kernel(convert, dp.Range(len(values)), x, out)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out.asnumpy(), values.astype(to))


@pytest.mark.usefixtures("_processor")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_conversions_that_the_optimizer_joins_are_compiled(dtype: str) -> None:
    values = np.array([3, -4, 0.0, -0.0, 1e-6, -np.inf]).astype(dtype)
    x = dp.asarray(values, device="host:cpu")
    out = dp.zeros(len(values), "float16", device="host:cpu")
    dp.call_kernel(with_the_sign, dp.Range(len(values)), x, out)
    np.testing.assert_array_equal(out.asnumpy(), np.copysign(2, values))
