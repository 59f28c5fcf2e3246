"""Every operation of the table, on every dtype and mixture: dtype and values are NumPy's."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dparray as dp
from tests.support import DTYPES, OPS, examples, force, names_in, same

SAMPLES = {
    "b": [True, False, True],
    "i": [1, -3, 100],
    "u": [1, 3, 100],
    "f": [0.5, -1.25, 3.0],
    "c": [0.5 - 1j, -2 + 0.25j, 3j],
}
SHIFTS = {"bitwise_left_shift", "bitwise_right_shift"}
#: Values for which both scalars and arrays are exact, in NumPy and on every device.
EXACT = {"add", "subtract", "multiply", "negative", "abs", "equal", "less", "maximum"}


#: Fewer pairs for the mode where every operation is a separate launch.
FEW = ("bool", "int32", "uint8", "float32", "complex64")
FEW_PAIRS = [("int32", "int32"), ("bool", "float32"), ("uint8", "int32"), ("float32", "complex64")]


pytestmark = pytest.mark.usefixtures("executor")


def sample(dtype: str, reverse: bool = False) -> np.ndarray:
    values = SAMPLES[np.dtype(dtype).kind]
    return np.asarray(values[::-1] if reverse else values).astype(dtype)


def numpy_result(op: Any, operands: list[Any]) -> np.ndarray | None:
    """Return NumPy's result in a supported dtype, or None if the operation is not defined."""
    with np.errstate(all="ignore"):
        try:
            # NumPy's round converts Booleans to floats
            kinds = "iu" if op.name == "round" else "biu"
            if op.keeps_integers and np.asarray(operands[0]).dtype.kind in kinds:
                return np.asarray(operands[0])
            return np.asarray(op.ufunc(*operands))
        except (TypeError, ValueError, OverflowError):
            return None


def assert_same(actual: dp.ndarray, expected: np.ndarray) -> None:
    size = np.finfo(expected.dtype).dtype.itemsize if expected.dtype.kind in "fc" else 8
    same(actual, expected, {2: 2e-3, 4: 3e-6, 8: 1e-13}[size])


def unary() -> Iterator[Any]:
    for op, dtype in itertools.product(OPS.values(), DTYPES):
        if op.arity == 1:
            yield pytest.param(op, dtype, id=f"{op.name}-{dtype}")


@pytest.mark.parametrize(("op", "dtype"), list(unary()))
def test_unary_operation(op: Any, dtype: str, executor: str) -> None:
    if executor == "device" and dtype not in FEW:
        pytest.skip("only few dtypes are tested where every operation is a launch")
    x = sample(dtype)
    if op.name in ("acosh", "atanh", "log", "asin", "acos", "sqrt") and x.dtype.kind == "f":
        x = abs(x)
    expected = numpy_result(op, [x])
    function = getattr(dp, op.name)
    if expected is None:
        with pytest.raises(dp.exceptions.DTypeError):
            function(dp.asarray(x))
        return
    assert_same(function(dp.asarray(x)), expected)


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.arity == 2], ids=lambda op: op.name)
def test_binary_operation_on_all_pairs_of_dtypes(op: Any, executor: str) -> None:
    function = getattr(dp, op.name)
    for first, second in itertools.product(DTYPES, repeat=2) if executor == "host" else FEW_PAIRS:
        a, b = sample(first), sample(second, reverse=True)
        if op.name in SHIFTS:
            b = np.abs(b) % 3 if b.dtype.kind in "iu" else b
        if op.name == "pow" and b.dtype.kind == "i":
            b = abs(b) % 4
        if op.name == "pow" and a.dtype.kind == "f":
            a = abs(a)
        expected = numpy_result(op, [a, b])
        if expected is None:
            with pytest.raises(dp.exceptions.DTypeError):
                function(dp.asarray(a), dp.asarray(b))
        else:
            assert_same(function(dp.asarray(a), dp.asarray(b)), expected)


@pytest.mark.parametrize("scalar", [True, 2, 0.5, 1 + 2j, np.float32(0.5), np.int8(2)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "divide", "less", "maximum", "logical_and"]
)
def test_scalars_promote_as_numpys(name: str, dtype: str, scalar: Any, executor: str) -> None:
    if executor == "device" and (dtype not in FEW or name not in ("add", "divide", "less")):
        pytest.skip("only few combinations are tested where every operation is a launch")
    op, x = OPS[name], sample(dtype)
    for operands in ([x, scalar], [scalar, x]):
        expected = numpy_result(op, operands)
        given = [dp.asarray(v) if v is x else scalar for v in operands]
        if expected is None:
            with pytest.raises((dp.exceptions.DTypeError, OverflowError)):
                getattr(dp, name)(*given)
        else:
            assert_same(getattr(dp, name)(*given), expected)


def test_operators_are_the_functions(queue: Any) -> None:
    a, b = np.asarray([5.0, -7.0, 3.0]), np.asarray([2.0, 3.0, -2.0])
    x, y = dp.asarray(a, sycl_queue=queue), dp.asarray(b, sycl_queue=queue)
    for name in names_in("add sub mul truediv floordiv mod pow lt le gt ge eq ne"):
        f = getattr(operator, name)
        with np.errstate(all="ignore"):
            assert_same(f(x, y), f(a, b))
            assert_same(f(x, 2), f(a, 2))
            assert_same(f(2, y), np.asarray(f(2, b)))
    i, j = np.asarray([12, 5]), np.asarray([1, 2])
    u, v = dp.asarray(i, sycl_queue=queue), dp.asarray(j, sycl_queue=queue)
    for name in ("and_", "or_", "xor", "lshift", "rshift"):
        f = getattr(operator, name)
        assert_same(f(u, v), f(i, j))
        assert_same(f(7, v), f(7, j))
    for name in ("neg", "pos", "abs"):
        assert_same(getattr(operator, name)(x), getattr(operator, name)(a))
    assert_same(~u, ~i)


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
def test_in_place_operators_keep_memory_and_dtype(name: str) -> None:
    a = np.asarray([5.0, 7.0, 3.0], dtype="float32")
    x = dp.asarray(a)
    view = x[::-1]
    y = getattr(operator, name)(x, 2)
    assert y is x
    assert_same(x, getattr(operator, name)(a.copy(), 2))
    np.testing.assert_array_equal(view.asnumpy(), x.asnumpy()[::-1])


def test_failed_in_place_operators_leave_the_array_unchanged() -> None:
    x = dp.asarray([1, 2])
    for value, error in ((0.5, dp.exceptions.DTypeError), (dp.ones(3, dtype="int64"), ValueError)):
        with pytest.raises(error):
            x += value
    assert x.tolist() == [1, 2]


def test_out_takes_the_result_and_is_returned() -> None:
    x = dp.asarray([1.0, 4.0])
    out = dp.zeros(2)
    assert dp.sqrt(x, out=out) is out
    assert out.tolist() == [1.0, 2.0]
    narrow = dp.zeros(2, dtype="float32")
    assert dp.add(x, 1, out=narrow).tolist() == [2.0, 5.0]
    with pytest.raises(dp.exceptions.ShapeError):
        dp.add(x, 1, out=dp.zeros(3))
    with pytest.raises(dp.exceptions.DTypeError):
        dp.add(x, 1, out=dp.zeros(2, dtype="int32"))


def test_plain_scalars_give_arrays_on_the_default_device() -> None:
    root = dp.sqrt(4.0)
    assert root.shape == ()
    assert float(root) == 2.0
    assert float(dp.add(1, 2)) == 3


SHAPES = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4, min_side=0)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(shapes=SHAPES, data=st.data())
def test_broadcasting_is_numpys(shapes: Any, data: st.DataObject) -> None:
    floats = hnp.arrays("float64", shapes.input_shapes[0], elements=st.floats(-9, 9, width=16))
    a = data.draw(floats)
    b = data.draw(hnp.arrays("int32", shapes.input_shapes[1], elements=st.integers(-9, 9)))
    axes = data.draw(st.permutations(range(a.ndim)))
    a = a.transpose(axes)
    x, y = dp.asarray(a.copy()), dp.asarray(b)
    if a.ndim:
        a, x = a[::-1], x[::-1]
    try:
        expected = a + b
    except ValueError:
        with pytest.raises(dp.exceptions.ShapeError):
            x + y
        return
    assert_same(x + y, expected)
    assert_same(dp.where(x > 0, x, y), np.where(a > 0, a, b))


SPECIAL = np.asarray([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floor_division_goes_with_the_remainder(dtype: str) -> None:
    a = np.asarray([1.0, 0.3, 6.0, -7.0, 5.5, -0.0, 0.0, 1e6], dtype)
    b = np.asarray([0.1, 0.1, -2.0, 2.0, -0.5, 2.0, -2.0, 0.7], dtype)
    quotient = dp.floor_divide(dp.asarray(a), dp.asarray(b)).asnumpy()
    np.testing.assert_array_equal(quotient, a // b)
    np.testing.assert_array_equal(np.signbit(quotient), np.signbit(a // b))
    infinite = dp.floor_divide(dp.asarray([np.inf, -np.inf, 1.0, -1.0]), 2.0)
    np.testing.assert_array_equal(infinite.asnumpy(), [np.nan, np.nan, 0.0, -1.0])


@pytest.mark.parametrize(
    "name", ["add", "multiply", "divide", "pow", "maximum", "copysign", "atan2"]
)
def test_special_values(name: str) -> None:
    a, b = (part.ravel() for part in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        expected = OPS[name].ufunc(a, b)
    actual = getattr(dp, name)(dp.asarray(a), dp.asarray(b)).asnumpy()
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected), err_msg="sign of zero")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("scalar", [-(2**70), -1, 0, 255, 2**70])
def test_comparisons_with_integers_that_the_dtype_cannot_hold(dtype: str, scalar: int) -> None:
    a = np.asarray([0, 1, 100], dtype=dtype)
    x = dp.asarray(a)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        f = getattr(operator, name)
        np.testing.assert_array_equal(f(x, scalar).asnumpy(), f(a, scalar))


def test_arithmetic_with_integers_that_the_dtype_cannot_hold_is_an_error() -> None:
    with pytest.raises(OverflowError):
        dp.asarray([1], dtype="int8") + 300


def test_complex_parts_are_views() -> None:
    x = dp.asarray([1 + 2j, 3 - 4j])
    x.real[0] = 9
    x.imag[1] = 7
    assert x.tolist() == [9 + 2j, 3 + 7j]
    assert dp.conj(x).tolist() == [9 - 2j, 3 - 7j]
    np.testing.assert_allclose(dp.angle(x).asnumpy(), np.angle([9 + 2j, 3 + 7j]))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("ways", [(-1,), (1, -1), (-1, -2)])
def test_complex_functions_of_reversed_arrays(dtype: str, ways: tuple[int, ...]) -> None:
    host = np.random.default_rng(2).integers(-3, 4, (6, 8)[: len(ways)]).astype(dtype) * (1 - 2j)
    view = tuple(slice(None, None, step) for step in ways)
    x, expected = dp.asarray(host)[view], host[view]
    with dp.config.override(host_tier=False), np.errstate(all="ignore"):
        for name in ("arccosh", "tanh", "sqrt", "sin"):
            found = getattr(dp, name)(x).asnumpy()
            np.testing.assert_allclose(found, getattr(np, name)(expected), rtol=1e-4, atol=1e-5)
        power = (x ** dp.asarray(expected.real)).asnumpy()
        np.testing.assert_allclose(power, expected**expected.real, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["host", "fused", "library"])
def test_clip_keeps_the_sign_of_a_zero(name: str) -> None:
    with force(name):
        for zero, low, high in ((-0.0, 0, 3), (0.0, -3, -0.0), (-0.0, None, 0.0), (0.0, -0.0, 1)):
            x = np.full(70, zero)
            found = dp.clip(dp.asarray(x), low, high).asnumpy()
            np.testing.assert_array_equal(np.signbit(found), np.signbit(np.clip(x, low, high)))


def test_clip_and_where_with_scalars() -> None:
    a = np.arange(6, dtype="float32").reshape(2, 3)
    x = dp.asarray(a)
    assert_same(dp.clip(x, 1, 3), np.clip(a, 1, 3))
    assert_same(
        dp.clip(x, None, dp.asarray([1.0, 2.0, 3.0], dtype="float32")),
        np.clip(a, None, [1, 2, 3]).astype("float32"),
    )
    assert_same(dp.where(x > 2, 1, x), np.where(a > 2, np.float32(1), a))
    assert_same(x.clip(max=2), a.clip(max=2))


def test_nothing_equals_none(executor: str) -> None:
    programs: list[Any] = [
        lambda x: x == None,  # noqa: E711 - that is the question
        lambda x: x != None,  # noqa: E711
    ]
    for values in (np.arange(3), np.zeros((2, 0)), np.asarray(2.5), np.asarray([[True]])):
        x = dp.asarray(values)
        for program in programs:
            actual, expected = program(x), program(values)
            assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
            assert actual.tolist() == expected.tolist()
        assert None not in x
    assert dp.asarray(0.0) in (None, 0)
    assert dp.asarray(1.0) not in (None, 0)
    with pytest.raises(dp.HostConversionError):
        dp.asarray(1.0) < None  # type: ignore[operator]  # noqa: B015
