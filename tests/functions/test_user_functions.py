"""``@dp.elementwise`` and ``@dp.reduction``: array functions built from scalar functions."""

from __future__ import annotations

import math
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp


@dp.elementwise
def wave(x: Any, y: Any) -> Any:
    return x * 2.0 + math.sin(y)


@dp.elementwise
def relu(x: Any) -> Any:
    return x if x > 0 else 0


@dp.elementwise
def greater(x: Any, y: Any) -> Any:
    return x > y


@dp.reduction(identity=0.0, map=lambda x, y: (x - y) ** 2)
def squared_distance(a: Any, b: Any) -> Any:
    return a + b


@dp.reduction(identity=-math.inf)
def largest(a: Any, b: Any) -> Any:
    return a if a > b else b


def host(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.arange(math.prod(shape)).reshape(shape) % 17 - 5).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", "float32"), ("float64", "float64"), ("int32", "float64"), ("int64", "float64")],
)
def test_the_dtype_is_numpys_with_python_numbers_weak(dtype: str, expected: str) -> None:
    x = dp.asarray(host((3, 4), dtype))
    assert wave(x, x).dtype == expected
    assert wave(x, 3).dtype == expected
    assert relu(x).dtype == dtype
    assert greater(x, 1).dtype == bool
    np.testing.assert_array_equal(relu(x).asnumpy(), np.maximum(x.asnumpy(), 0))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((3, 1), (1, 4)),
        ((2, 3, 4), (3, 1)),
        ((2, 3, 1, 5), (4, 1)),
        ((), (3,)),
        ((1, 2, 3, 4, 5), ()),
    ],
)
def test_operands_broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    x, y = host(one, "float64"), host(other, "float64")
    result = wave(dp.asarray(x), dp.asarray(y))
    np.testing.assert_allclose(result.asnumpy(), x * 2 + np.sin(y))


def test_views_and_out() -> None:
    x = host((6, 8), "float32")
    out = dp.zeros((3, 8), dtype="float64")
    array = dp.asarray(x)
    given = wave(array[::-2], array[:3], out=out[::-1])
    np.testing.assert_allclose(out.asnumpy()[::-1], x[::-2] * 2 + np.sin(x[:3]), rtol=1e-6)
    assert given.shape == (3, 8)
    with pytest.raises(dp.ShapeError):
        wave(array, array, out=dp.zeros((2, 8)))
    with pytest.raises(dp.DTypeError):
        wave(array, array, out=dp.zeros((6, 8), dtype="int32"))


def test_scalars_alone_and_empty_arrays() -> None:
    assert wave(2, 3).item() == pytest.approx(4 + math.sin(3))
    assert relu(dp.zeros((0, 3))).shape == (0, 3)


def test_both_follow_their_data(queue: dpctl.SyclQueue) -> None:
    x = dp.ones(5, usm_type="shared", sycl_queue=queue)
    y = dp.ones(5, usm_type="device", sycl_queue=queue)
    for result in (wave(x, y), squared_distance(x, y)):
        assert result.queue == queue
        assert result.usm_type == "device"


@pytest.mark.parametrize("function", [wave, squared_distance])
def test_operands_on_two_queues_are_refused(function: Any) -> None:
    x = dp.ones(5)
    y = dp.ones(5, device=x.device.new_queue())
    with pytest.raises(dp.ExecutionPlacementError, match=r"y = y\.to_device\(x\.device\)"):
        function(x, y)
    with pytest.raises(dp.ExecutionPlacementError, match="out"):
        function(x, x, out=dp.zeros((), device=y.device))


def test_bad_operands() -> None:
    x = dp.ones(5)
    with pytest.raises(dp.HostConversionError):
        wave(x, np.ones(5))
    with pytest.raises(dp.KernelArgumentError, match=r"takes 2 operands \(x, y\); got 1"):
        wave(x)
    with pytest.raises(dp.ShapeError):
        wave(x, dp.ones(4))


def test_a_dtype_that_cannot_be_found_can_be_given() -> None:
    def needs_device(x: Any) -> Any:
        return dp.group_reduce(x, x)

    with pytest.raises(dp.DTypeError, match=r"@dp\.elementwise\(dtype=\.\.\.\)"):
        dp.elementwise(needs_device)(dp.ones(3))
    rounded = dp.elementwise(lambda x: x + 0.6, dtype="int32")
    assert rounded(dp.asarray([0.0, 0.5, 2.0])).tolist() == [0, 1, 2]


SHAPES = [(7,), (1000,), (100_000,), (3, 100, 5), (2, 3, 4, 5), (20_000, 7), (1,), (600, 600)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.sample(4)
def test_reductions_have_numpys_results(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).random(shape)
    array = dp.asarray(x)
    axes: list[Any] = [None, *range(-1, len(shape))]
    if len(shape) > 1:
        axes.append((0, len(shape) - 1))
    for axis in axes:
        result = squared_distance(array, 0.5, axis=axis)
        np.testing.assert_allclose(result.asnumpy(), ((x - 0.5) ** 2).sum(axis=axis))
        kept = largest(array, axis=axis, keepdims=True)
        np.testing.assert_array_equal(kept.asnumpy(), x.max(axis=axis, keepdims=True))


def test_an_empty_reduction_is_the_identity() -> None:
    empty = dp.zeros((0, 3))
    assert largest(empty, axis=0).tolist() == [-math.inf] * 3
    assert squared_distance(empty, 1.0).item() == 0.0
    assert largest(empty, axis=1).shape == (0,)


def test_reductions_of_views_and_into_out() -> None:
    x = host((40, 30), "float64")
    array = dp.asarray(x)
    out = dp.zeros(15)
    largest(array[::-2, ::2], axis=0, out=out)
    np.testing.assert_array_equal(out.asnumpy(), x[::-2, ::2].max(axis=0))
    with pytest.raises(dp.ShapeError):
        largest(array, axis=0, out=out)


@pytest.mark.parametrize("axis", [2, -3, (0, 0), (0, 5), 1.0, "a", [0, None]])
def test_invalid_axes(axis: Any) -> None:
    with pytest.raises((dp.AxisError, dp.ShapeError, dp.ArgumentError), match=r"largest: .*ax"):
        largest(dp.ones((2, 3)), axis=axis)


@pytest.mark.parametrize(
    "value", [np.longdouble(2), np.str_("a"), np.datetime64("2020"), "a", None, ["a", "b"]]
)
def test_invalid_scalars(value: Any) -> None:
    with pytest.raises((dp.DTypeError, dp.HostConversionError)):
        wave(dp.ones(3), value)


@pytest.mark.parametrize("shape", [(0, 3), (2, 3)])
def test_an_identity_that_the_dtype_cannot_hold_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(dp.DTypeError, match="-inf does not fit into int32"):
        largest(dp.zeros(shape, dtype="int32"))
    with pytest.raises(dp.DTypeError, match=r"the identity 0\.5 cannot be cast to int32"):
        dp.reduction(lambda a, b: a + b, identity=0.5)(dp.zeros(shape, dtype="int32"))
    with pytest.raises(dp.DTypeError, match="does not fit"):
        dp.reduction(lambda a, b: a + b, identity=1j)(dp.zeros(shape, dtype="float16"))


def test_invalid_arguments_of_reductions() -> None:
    with pytest.raises(dp.KernelCompileError):
        largest(dp.ones(3, dtype="complex64"))  # complex numbers have no order
    with pytest.raises(dp.KernelArgumentError, match="requires map="):
        largest(dp.ones(3), dp.ones(3))


def test_integers_are_combined_in_their_dtype() -> None:
    @dp.reduction(identity=1)
    def product(a: Any, b: Any) -> Any:
        return a * b

    x = np.array([3, 5, 7, 11], dtype="int32")
    assert product(dp.asarray(x)).dtype == np.int32
    assert product(dp.asarray(x)).item() == 1155
    wide = dp.reduction(product.py_func, identity=1, dtype="int64")
    assert wide(dp.full(40, 2, dtype="int32")).item() == 2**40


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "uint64"])
def test_a_float_that_a_trial_missed_raises_instead_of_truncating(dtype: str) -> None:
    def half_or_itself(x: Any) -> Any:
        return x if x > 0 else 0.5

    x = dp.asarray(np.array([0, 1, 2]).astype(dtype))
    with pytest.raises(dp.KernelCompileError, match=r"it returns float64.*give the dtype="):
        dp.elementwise(half_or_itself)(x)
    given = dp.elementwise(half_or_itself, dtype="float64")(x)
    np.testing.assert_array_equal(given.asnumpy(), np.where(x.asnumpy() > 0, x.asnumpy(), 0.5))


def test_integers_that_numpy_computes_as_floats_are_floats() -> None:
    product = dp.elementwise(lambda x, y: x * y)
    x, y = dp.asarray([2**40], dtype="uint64"), dp.asarray([2**40])
    assert product(x, y).dtype == "float64"
    assert product(x, y).item() == 2.0**80


def test_a_combination_that_returns_floats_makes_no_integers() -> None:
    mean = dp.reduction(lambda a, b: (a + b) / 2, identity=0)
    with pytest.raises(dp.KernelCompileError, match=r"it returns float64, where an integer"):
        mean(dp.arange(4))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_real_constant_as_a_complex_result_has_no_imaginary_part(dtype: str) -> None:
    seven = dp.elementwise(lambda x: 7)
    result = seven(dp.asarray([1 + 2j, 3], dtype=dtype))
    assert result.dtype == dtype
    assert result.tolist() == [7, 7]


@dp.elementwise
def line(x: Any, scale: Any = 2.0, *, shift: Any = 1) -> Any:
    return x * scale + shift


line_of_numbers = line.device_function


def test_operands_have_names_and_defaults() -> None:
    host = np.arange(3)
    x = dp.asarray(host)
    assert line(x).tolist() == [1.0, 3.0, 5.0]
    assert line(x, 3).dtype == x.dtype
    assert line(x, shift=x).tolist() == (host * 3.0).tolist()
    assert line(shift=0.5, x=2, scale=x).tolist() == (2 * host + 0.5).tolist()
    for wrong in ({}, {"x": x, "other": 1}):
        with pytest.raises(dp.KernelArgumentError, match=r"takes 3 operands \(x, scale, shift\)"):
            line(**wrong)
    with pytest.raises(dp.KernelArgumentError, match="too many positional arguments"):
        line(x, 1, 2)


def test_a_map_has_names_and_defaults() -> None:
    @dp.reduction(identity=0.0, map=lambda x, y=1.0: (x - y) ** 2)
    def squares(a: Any, b: Any, *, weight: Any = 1) -> Any:
        return (a + b) * weight

    x = dp.ones(3)
    assert squares(x).item() == 0
    assert squares(x, y=3.0).item() == squares(x, 3.0).item() == 12
    with pytest.raises(dp.KernelArgumentError, match="unexpected keyword argument 'z'"):
        squares(x, z=3.0)


def test_kernels_call_the_scalar_function_of_an_elementwise_one() -> None:
    @dp.kernel
    def calls(item: Any, x: Any) -> None:
        x[0] = line_of_numbers(x[0], shift=4)

    @dp.kernel
    def calls_wrongly(item: Any, x: Any) -> None:
        x[0] = line(x[0], shift=4)

    x = dp.ones(1)
    calls[1](x)
    assert x.item() == 6
    with pytest.raises(dp.KernelCompileError, match=r"assign line\.device_function to a name"):
        calls_wrongly[1](x)


@dp.reduction(identity=0)
def total(a: Any, b: Any) -> Any:
    return a + b


@dp.reduction(identity=False)
def parity(a: Any, b: Any) -> Any:
    return a != b


@pytest.mark.parametrize("shape", [(1,), (7,), (5, 6, 3), (3, 1001), (0, 2)])
@pytest.mark.sample(2)
def test_complex_boolean_and_float16_numbers_are_combined(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(1)
    numbers = generator.normal(size=shape) + 1j * generator.normal(size=shape)
    truths = generator.random(shape) < 0.5
    for axis in (None, 0, -1):
        x = dp.asarray(numbers.astype("complex64"))
        result = total(x, axis=axis, keepdims=True)
        assert result.dtype == np.complex64
        expected = numbers.sum(axis=axis, keepdims=True)
        np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-4, atol=1e-4)
        result = parity(dp.asarray(truths), axis=axis)
        assert result.dtype == np.bool_
        np.testing.assert_array_equal(
            result.asnumpy(), np.logical_xor.reduce(truths, axis=axis), strict=False
        )
        halves = numbers.real.astype("float16")
        result = total(dp.asarray(halves), axis=axis)
        assert result.dtype == np.float16
        expected = halves.sum(axis=axis, dtype="float32")
        np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-3, atol=1e-3)


def test_of_complex_numbers_the_order_of_the_pairs_does_not_matter() -> None:
    @dp.reduction(identity=0j)
    def farthest(a: Any, b: Any) -> Any:
        return a if abs(a) >= abs(b) else b

    x = np.exp(1j * np.arange(37)) * np.arange(37)
    assert farthest(dp.asarray(x)).item() == x[-1]
    assert farthest(dp.asarray(x[::-1])[::2]).item() == x[-1]
    out = dp.zeros((), dtype="complex128")
    assert farthest(dp.asarray(x), out=out) is out
    assert out.item() == x[-1]


@dp.elementwise
def clipped(x, most):  # type: ignore[no-untyped-def]
    return (most, True) if x > most else (x, False)


@pytest.mark.parametrize("size", [4, 20_000])
def test_a_function_of_several_results_makes_a_tuple(size: int, queue: Any) -> None:
    x = np.arange(float(size), dtype=np.float32)
    values, are_cut = clipped(dp.asarray(x, sycl_queue=queue), 2.0)
    np.testing.assert_array_equal(values.asnumpy(), np.minimum(x, 2))
    np.testing.assert_array_equal(are_cut.asnumpy(), x > 2)
    assert (values.dtype, are_cut.dtype, are_cut.queue) == (np.float32, np.bool_, queue)
    out = dp.empty_like(values), dp.empty(size, dtype=bool, sycl_queue=queue)
    again = clipped(dp.asarray(x, sycl_queue=queue), most=3.0, out=out)
    assert again[0] is out[0]
    np.testing.assert_array_equal(out[0].asnumpy(), np.minimum(x, 3))
    np.testing.assert_array_equal(out[1].asnumpy(), x > 3)
    with pytest.raises(dp.ArgumentError, match="has 2 results; out= must be a tuple"):
        clipped(values, 2.0, out=values)


def test_several_results_take_as_many_dtypes() -> None:
    @dp.elementwise(dtype=("float32", "int8"))
    def halves(x, *, by):  # type: ignore[no-untyped-def]
        return x / by, x // by

    first, second = halves(dp.arange(5), by=2)
    assert (first.dtype, second.tolist()) == (np.float32, [0, 0, 1, 1, 2])
    made = dp.vectorize(lambda x: (x + 1, x * 2.5), otypes="ld")
    assert [part.tolist() for part in made(dp.arange(3))] == [[1, 2, 3], [0, 2.5, 5]]
    assert [part.dtype.char for part in made(dp.arange(3))] == ["l", "d"]


def test_functions_that_numpy_makes_raise_the_conversion_error() -> None:
    for made in (np.frompyfunc(lambda a: a + 1, 1, 1), np.vectorize(lambda a: a + 1)):
        with pytest.raises(TypeError, match=r"dp\.vectorize\(f\)|x\.asnumpy\(\)"):
            made(dp.ones(3))
