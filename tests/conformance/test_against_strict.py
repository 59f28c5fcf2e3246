"""The standard's reference: what array-api-strict accepts, dparray answers with the same dtype,
shape and values.

The names are walked: a function of the standard that is missing, or has no call here, fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

os.environ.setdefault("ARRAY_API_STRICT_API_VERSION", "2024.12")
strict = pytest.importorskip("array_api_strict")

import dparray as dp  # noqa: E402 - after the version of the standard is set

strict.set_array_api_strict_flags(api_version="2024.12")

DTYPES = ["bool", "int8", "int32", "int64", "uint8", "uint16", "uint64"]
DTYPES += ["float32", "float64", "complex64", "complex128"]
ONE = {
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_invert",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
}
TWO = {
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
}
AXES = {"all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"}
#: The rest, each with a call that takes a module and a matrix in its arrays.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "arange": lambda xp, x: xp.arange(1, 9, 3),
    "argmax": lambda xp, x: xp.argmax(x, axis=1, keepdims=True),
    "argmin": lambda xp, x: xp.argmin(x),
    "argsort": lambda xp, x: xp.argsort(x, axis=0, descending=True),
    "asarray": lambda xp, x: xp.asarray(x, copy=True),
    "astype": lambda xp, x: xp.astype(x, xp.float32),
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x, x[:1, :]),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, *x.shape)),
    "can_cast": lambda xp, x: xp.can_cast(xp.int8, xp.int16),
    "clip": lambda xp, x: xp.clip(x, 1, 3),
    "concat": lambda xp, x: xp.concat([x, x], axis=None),
    "cumulative_prod": lambda xp, x: xp.cumulative_prod(x, axis=1),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=0, include_initial=True),
    "diff": lambda xp, x: xp.diff(x, axis=0, prepend=x[:1, :]),
    "empty": lambda xp, x: xp.empty((2, 3)).shape,
    "empty_like": lambda xp, x: xp.empty_like(x).shape,
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=-1),
    "eye": lambda xp, x: xp.eye(3, 4, k=1),
    "finfo": lambda xp, x: xp.finfo(xp.float32).max,
    "flip": lambda xp, x: xp.flip(x, axis=0),
    "from_dlpack": lambda xp, x: xp.from_dlpack(x),
    "full": lambda xp, x: xp.full((2, 2), 3),
    "full_like": lambda xp, x: xp.full_like(x, 3),
    "iinfo": lambda xp, x: xp.iinfo(xp.int8).min,
    "isdtype": lambda xp, x: xp.isdtype(x.dtype, "integral"),
    "linspace": lambda xp, x: xp.linspace(0, 1, 5),
    "matmul": lambda xp, x: xp.matmul(x, xp.matrix_transpose(x)),
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
    "meshgrid": lambda xp, x: xp.meshgrid(x[0, :], x[:, 0], indexing="ij"),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 1),
    "nonzero": lambda xp, x: xp.nonzero(x),
    "ones": lambda xp, x: xp.ones((2, 3)),
    "ones_like": lambda xp, x: xp.ones_like(x),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 0)),
    "repeat": lambda xp, x: xp.repeat(x, 2, axis=1),
    "reshape": lambda xp, x: xp.reshape(x, (-1,)),
    "result_type": lambda xp, x: str(xp.result_type(x, xp.int16)).rpartition(".")[2],
    "roll": lambda xp, x: xp.roll(x, 2, axis=1),
    "searchsorted": lambda xp, x: xp.searchsorted(xp.sort(x[0, :]), x[1, :]),
    "sort": lambda xp, x: xp.sort(x, axis=0, descending=True),
    "squeeze": lambda xp, x: xp.squeeze(x[:1, :], axis=0),
    "stack": lambda xp, x: xp.stack([x, x], axis=1),
    "take": lambda xp, x: xp.take(x, xp.asarray([1, 0]), axis=1),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0),
    "tensordot": lambda xp, x: xp.tensordot(x, x, axes=((1,), (1,))),
    "tile": lambda xp, x: xp.tile(x, (2, 1)),
    "tril": lambda xp, x: xp.tril(x, k=1),
    "triu": lambda xp, x: xp.triu(x),
    "unique_all": lambda xp, x: tuple(xp.unique_all(x)),
    "unique_counts": lambda xp, x: tuple(xp.unique_counts(x)),
    "unique_inverse": lambda xp, x: tuple(xp.unique_inverse(x)),
    "unique_values": lambda xp, x: xp.unique_values(x),
    "unstack": lambda xp, x: xp.unstack(x, axis=1),
    "vecdot": lambda xp, x: xp.vecdot(x, x, axis=-1),
    "where": lambda xp, x: xp.where(x == x, x, xp.zeros_like(x)),
    "zeros": lambda xp, x: xp.zeros((2, 3)),
    "zeros_like": lambda xp, x: xp.zeros_like(x),
}
#: In array-api-strict, but of a later version of the standard.
LATER = {"broadcast_shapes", "isin"}
NAMES = sorted(
    name
    for name in strict.__all__
    if callable(getattr(strict, name))
    and name in dir(dp)
    and name not in LATER
    and not isinstance(getattr(strict, name), type)
    and "flags" not in name
    and not name.startswith("__")
)


def to_numpy(value: Any) -> Any:
    if isinstance(value, dp.ndarray):
        return value.asnumpy()
    if isinstance(value, tuple | list):
        return [to_numpy(part) for part in value]
    return np.asarray(value._array) if hasattr(value, "_array") else value


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        tolerance = 2e-5 if expected.dtype.char in "fF" else 1e-10
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    else:
        assert actual == expected


def compare(call: Callable[[Any, list[Any]], Any], *values: np.ndarray) -> None:
    """Let both modules do it; only what the reference accepts counts."""
    with np.errstate(all="ignore"):
        try:
            expected = to_numpy(call(strict, [strict.asarray(value) for value in values]))
        except (TypeError, ValueError):
            return
    actual = to_numpy(call(dp, [dp.asarray(value) for value in values]))
    assert_same(actual, expected)


def test_every_function_of_the_standard_is_here_and_is_called() -> None:
    wanted = {name for name in strict.__all__ if callable(getattr(strict, name))}
    ours = {name for name in wanted if not name.startswith("_") and hasattr(dp, name)}
    missing = {name for name in wanted - ours if name.islower() and "flags" not in name}
    assert missing <= {"__array_namespace_info__"}
    assert set(NAMES) - ONE - TWO - AXES - CALLS.keys() == set()


def numbers(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    kind = np.dtype(dtype).kind
    elements: Any = st.integers(0, 5).map(float) if kind in "fc" else st.integers(0, 5)
    if kind == "b":
        elements = st.booleans()
    return hnp.arrays(dtype, shape, elements=elements)


@pytest.mark.parametrize("name", sorted(ONE))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_functions_of_one_array(name: str, data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    x = data.draw(numbers(data.draw(st.sampled_from(DTYPES)), shape))
    compare(lambda xp, arrays: getattr(xp, name)(*arrays), x)


@pytest.mark.parametrize("name", sorted(TWO))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_functions_of_two_arrays(name: str, data: st.DataObject) -> None:
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
    first, second = (
        data.draw(numbers(data.draw(st.sampled_from(DTYPES)), shape))
        for shape in shapes.input_shapes
    )
    if name in ("floor_divide", "remainder", "pow") and second.dtype.kind in "iu":
        second = second + second.dtype.type(1)
    compare(lambda xp, arrays: getattr(xp, name)(*arrays), first, second)


@pytest.mark.parametrize("name", sorted(AXES))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_reductions(name: str, data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    x = data.draw(numbers(data.draw(st.sampled_from(DTYPES)), shape))
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    keepdims = data.draw(st.booleans())
    compare(lambda xp, arrays: getattr(xp, name)(*arrays, axis=axis, keepdims=keepdims), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_rest(name: str, dtype: str) -> None:
    values = np.random.default_rng(3).integers(0, 4, (3, 4)).astype(dtype)
    compare(lambda xp, arrays: CALLS[name](xp, arrays[0]), values)


def test_devices_do_not_mix_there_either() -> None:
    here, there = strict.Device("CPU_DEVICE"), strict.Device("device1")
    with pytest.raises(ValueError, match="device"):
        strict.asarray([1], device=here) + strict.asarray([1], device=there)
    parts = dp.Device("cpu").create_sub_devices(partition=1)
    with pytest.raises(ValueError, match="device"):
        dp.asarray([1], device=parts[0]) + dp.asarray([1], device=parts[1])
