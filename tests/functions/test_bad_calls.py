"""Calls with unfitting values raise dparray's errors: what was given, and what is allowed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

CALLS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "out of scalars": (lambda: dp.exp(3, 5), dp.HostConversionError, "exp: out must be an array"),
    "out of two scalars": (
        lambda: dp.add(3, 4, out="x"),
        dp.HostConversionError,
        "add: out must be an array",
    ),
    "out of bits": (
        lambda: dp.invert(3, out=np.ones(1)),
        dp.HostConversionError,
        "out must be an array",
    ),
    "no columns": (
        lambda: dp.histogramdd(dp.zeros((3, 0)), 1),
        dp.ShapeError,
        "at least one column",
    ),
    "transform of a number": (lambda: dp.fft.rfftn(3), dp.AxisError, "rfftn: x must have"),
    "inverse of a number": (lambda: dp.fft.ifft2(2.0), dp.AxisError, "ifft2: x must have"),
    "no kernel": (lambda: dp.KernelFunction(3, {}), dp.KernelArgumentError, "got a int"),
    "no function": (lambda: dp.JitFunction(dp.ones(2), {}), dp.KernelArgumentError, "@dp.jit"),
    "number of a device": (
        lambda: dp.Device().id,  # type: ignore[attr-defined]
        AttributeError,
        "write device.filter_string",
    ),
    "fft.config": (lambda: dp.fft.config, AttributeError, "there is nothing to set"),
    "cupyx.scipy.sparse": (lambda: dp.cupyx.scipy, AttributeError, r"dp\.algorithms"),
    "sparse": (lambda: dp.sparse, AttributeError, r"csr_matvec"),
    "call of a module": (lambda: dp.device("cuda"), TypeError, r'write dp\.Device\("cuda"\)'),  # type: ignore[operator]
    "fields": (lambda: dp.zeros(3, dtype=[("a", "f4")]), dp.DTypeError, "arrays have no fields"),
    "records": (
        lambda: dp.asarray(np.zeros(3, [("a", "f4"), ("b", "i4")])),
        dp.DTypeError,
        r"an array for each, such as dp\.asarray\(x\['a'\]\)",
    ),
    "record": (
        lambda: dp.zeros(3, dtype=np.dtype([("a", "f4")])),
        dp.DTypeError,
        "arrays have no fields",
    ),
    "buffer": (lambda: memoryview(dp.ones(2)), TypeError, r"copy it: x\.asnumpy\(\)"),  # type: ignore[arg-type]
    "hash of a buffer": (lambda: hashlib.sha256(dp.ones(2)), TypeError, "is not a buffer"),  # type: ignore[arg-type]
    "large integer": (lambda: dp.sin(10**30), OverflowError, r"floating-point number, such as 1e"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_names_the_value_and_what_is_allowed(name: str) -> None:
    call, kind, message = CALLS[name]
    with pytest.raises(kind, match=message):
        call()


def test_the_dtype_of_random_numbers_is_an_option_as_in_cupy() -> None:
    assert dp.random.rand(2, 3, dtype="float32").dtype == dp.float32
    assert dp.random.randn(3, dtype="float32").dtype == dp.float32


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool"])
def test_bounds_of_small_integers_do_not_overflow(dtype: str) -> None:
    low = dp.asarray([0, 1], dtype=dtype)
    values = dp.random.default_rng(0).uniform(low, 300).asnumpy()
    assert ((values >= [0, 1]) & (values < 300)).all()
    wide = dp.random.default_rng(0).uniform(dp.asarray([-100], "int8"), dp.asarray([100], "int8"))
    assert -100 <= float(wide[0]) < 100
