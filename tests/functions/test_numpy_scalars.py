"""NumPy scalars promote like arrays, Python scalars are weak: NEP 50, as in NumPy."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray import config

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
SCALARS = (
    *(True, 2, -1, 0.1, 1j),
    *(np.dtype(name).type(100) for name in DTYPES),
    *(np.dtype(name).type(0.1) for name in DTYPES if name[0] in "fc"),
    *(np.float64(2), np.float64(0.5), np.float32(2), np.int64(2), np.uint8(2), np.longlong(3)),
)
OPERATORS = (
    *("add", "sub", "mul", "truediv", "mod", "pow", "and_", "xor", "lshift"),
    *("lt", "le", "gt", "ge", "eq", "ne"),
)
FUNCTIONS = ("power", "maximum", "arctan2", "hypot", "copysign", "logical_and", "fmin", "less")
#: Sizes that the host computes eagerly, and above its limit of 8,192 elements.
SIZES = (5, 8200)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """Return the values, or the kind of the error."""
    try:
        result = function(*args)
    except (TypeError, OverflowError, ValueError) as error:
        return OverflowError if isinstance(error, OverflowError) else TypeError
    return result.asnumpy() if isinstance(result, dp.ndarray) else np.asarray(result)


def check(label: Any, found: Any, wanted: Any) -> None:
    assert isinstance(wanted, type) == isinstance(found, type), (label, found, wanted)
    if isinstance(wanted, type):
        return
    assert found.dtype == wanted.dtype, (label, found.dtype, wanted.dtype)
    if wanted.dtype.kind in "fc":
        tolerance = 8 * float(np.finfo(wanted.dtype).eps)
        np.testing.assert_allclose(found, wanted, tolerance, 0, err_msg=str(label))
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=str(label))


def grid(dtype: str, size: int, names: tuple[str, ...], functions: tuple[str, ...]) -> None:
    values = (np.arange(size) % 3 + 1).astype(dtype)
    x = dp.asarray(values)
    pairs = [(name, getattr(operator, name), getattr(operator, name)) for name in names]
    pairs += [(name, getattr(np, name), getattr(dp, name)) for name in functions]
    for scalar in SCALARS:
        for name, numpys, ours in pairs:
            if name == "truediv" and dtype[0] == "c" and size > 5:
                continue  # differs in the last bits for every scalar
            label = (dtype, name, type(scalar), scalar, size)
            check(label, outcome(ours, x, scalar), outcome(numpys, values, scalar))
            label = (*label, "reflected")
            check(label, outcome(ours, scalar, x), outcome(numpys, scalar, values))


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_arrays_agree_with_numpy(dtype: str) -> None:
    grid(dtype, SIZES[0], OPERATORS, FUNCTIONS)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32"])
@pytest.mark.parametrize("lazy", [True, False])
def test_large_arrays_agree_with_numpy(dtype: str, lazy: bool) -> None:
    with config.override(lazy=lazy):
        grid(dtype, SIZES[1], ("add", "mul", "pow", "lt", "eq"), ("maximum",))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", "int16", "float16"])
def test_other_backends_agree_with_numpy(dtype: str) -> None:
    with config.override(host_tier=False):
        grid(dtype, SIZES[0], ("add", "lt"), ())


@pytest.mark.parametrize("size", SIZES)
def test_a_scalar_in_a_longer_expression_keeps_its_dtype(size: int) -> None:
    values = np.full(size, 2_000_000_000, np.int32)
    x = dp.asarray(values)
    wide = np.int64(2_000_000_000)
    found = ((x + wide) * 2 - wide).asnumpy()
    wanted = (values + wide) * 2 - wide
    assert found.dtype == wanted.dtype
    assert (found == wanted).all()


@pytest.mark.parametrize("size", SIZES)
def test_comparisons_are_made_in_the_wider_dtype(size: int) -> None:
    x = dp.full(size, 0.1, dtype="float32")
    assert not (x == np.float64(0.1)).any()
    assert (x == 0.1).all()
    assert (np.float64(2) > x).all()
    assert not (np.float32(0) >= x).any()
    unsigned = dp.zeros(size, dtype="uint64")
    assert (unsigned > np.int64(-1)).all()
    assert (np.int8(-1) < unsigned).all()
    assert (unsigned > -1).all()


@pytest.mark.parametrize("size", SIZES)
def test_in_place_keeps_the_dtype_or_refuses(size: int) -> None:
    values = np.ones(size, np.float32)
    x = dp.asarray(values)
    values += np.float64(0.1)
    x += np.float64(0.1)
    check("+=", x.asnumpy(), values)
    refused = (("int8", np.float64(1)), ("uint8", np.int64(1)), ("float32", np.complex64(1)))
    for dtype, scalar in refused:
        x = dp.ones(size, dtype=dtype)
        with pytest.raises(TypeError):
            x += scalar
        assert (x == 1).all()
    x = dp.full(size, 100, dtype="int8")
    x += np.int64(100)
    assert (x == -56).all()


@pytest.mark.parametrize("size", SIZES)
def test_choices(size: int) -> None:
    mask = np.arange(size) % 2 == 0
    ours = dp.asarray(mask)
    small = np.ones(size, np.int8)
    for x1, x2 in (
        (np.int32(0), np.int32(1)),
        (np.float32(0), 1.5),
        (np.int8(0), 1),
        (np.float64(0), np.float32(1)),
        (1, 2.5),
        (True, np.uint8(3)),
    ):
        check((x1, x2), dp.where(ours, x1, x2).asnumpy(), np.where(mask, x1, x2))
    wanted = np.where(mask, small, np.int64(300))
    check("where", dp.where(ours, dp.asarray(small), np.int64(300)).asnumpy(), wanted)
    check(
        "clip",
        dp.clip(dp.asarray(small), np.int64(-300), np.int16(300)).asnumpy(),
        np.clip(small, np.int64(-300), np.int16(300)),
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scalar", SCALARS, ids=lambda scalar: f"{type(scalar).__name__} {scalar}")
def test_new_arrays_have_the_scalars_dtype(size: int, scalar: Any) -> None:
    check("full", dp.full(size, scalar).asnumpy(), np.full(size, scalar))
    for dtype in ("int8", "float32", "uint16"):
        if np.dtype(type(scalar)).kind == "c" or (scalar == -1 and dtype == "uint16"):
            continue
        wanted = np.full(size, scalar, dtype)
        check(dtype, dp.full(size, scalar, dtype=dtype).asnumpy(), wanted)
        like = dp.zeros(size, dtype=dtype)
        check(dtype, dp.full_like(like, scalar).asnumpy(), wanted)


def test_conversions_of_full_wrap_numpys_integers_only() -> None:
    assert dp.full(2, np.int64(300), dtype="int8").tolist() == [44, 44]
    assert dp.full_like(dp.zeros(2, dtype="int8"), np.int64(300)).tolist() == [44, 44]
    with pytest.raises(OverflowError):
        dp.full(2, 300, dtype="int8")


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("value", [-1.0, 300.7, 4294967295.0, 3.4e38, np.float32(1e9), math.inf])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_floats_fill_integers_as_numpy_casts_them(value: Any, dtype: str) -> None:
    assert dp.full(2, value, dtype=dtype).tolist() == np.full(2, value, dtype).tolist()
    like = dp.full_like(dp.zeros(2, dtype), value)
    assert like.tolist() == np.full_like(np.zeros(2, dtype), value).tolist()


def test_a_float_out_of_range_fills_integers_with_numpys_warning() -> None:
    with np.errstate(invalid="warn"), pytest.warns(RuntimeWarning, match="invalid value"):
        dp.full(2, math.nan, dtype="int32")


@pytest.mark.parametrize("size", [7, 9000])
@pytest.mark.parametrize(
    "ends",
    [
        (np.float32(0.1), np.float32(1)),
        (np.float32(0.1), 1),
        (np.int8(-100), np.int8(100)),
        (np.int8(0), np.float32(1)),
        (0, np.float64(1)),
        (np.complex64(1j), 2),
        (0.5, 3),
    ],
)
def test_ranges(size: int, ends: tuple[Any, Any]) -> None:
    check(ends, dp.linspace(*ends, size).asnumpy(), np.linspace(*ends, size))
    check(ends, dp.linspace(*ends, size, endpoint=False).asnumpy(), np.linspace(*ends, size, False))
    _, step = dp.linspace(*ends, size, retstep=True)
    assert step.item() == pytest.approx(np.linspace(*ends, size, retstep=True)[1])


def test_linspace_between_arrays_takes_their_dtype() -> None:
    low, high = np.asarray([200, 0], "uint8"), np.asarray([100, 255], "uint8")
    wanted = np.linspace(low, high, 5)
    check("uint8", dp.linspace(dp.asarray(low), dp.asarray(high), 5).asnumpy(), wanted)
    low = low.astype("float32")
    check("f4", dp.linspace(dp.asarray(low), 1.0, 5).asnumpy(), np.linspace(low, 1.0, 5))


def test_arange_promotes_as_numpy_does() -> None:
    for stop in (np.int8(5), np.uint32(5), np.uint64(5), np.float32(5), 5):
        check(stop, dp.arange(stop).asnumpy(), np.arange(stop))


@pytest.mark.parametrize("size", SIZES)
def test_copyto_goes_by_the_rule_of_casting(size: int) -> None:
    for dtype, scalar in (
        ("int8", np.int64(300)),
        ("uint32", np.int8(-1)),
        ("uint32", np.uint16(3)),
        ("int8", np.float64(1)),
        ("int8", 1.5),
        ("int8", 300),
        ("float32", np.float64(0.1)),
        ("float32", 3),
        ("float32", np.complex64(1)),
    ):
        values = np.zeros(size, dtype)
        x = dp.asarray(values)
        wanted = outcome(np.copyto, values, scalar)
        found = outcome(dp.copyto, x, scalar)
        assert isinstance(found, type) == isinstance(wanted, type), (dtype, scalar, found, wanted)
        check((dtype, scalar), x.asnumpy(), values)


def test_setitem_and_fill_convert_to_the_arrays_dtype() -> None:
    x = dp.zeros(3, dtype="float32")
    x[0], x[1:] = np.float64(0.1), np.int64(7)
    check("setitem", x.asnumpy(), np.asarray([0.1, 7, 7], "float32"))
    x.fill(np.float16(0.5))
    assert x.tolist() == [0.5] * 3
    x = dp.zeros(3, dtype="int8")
    with pytest.raises(OverflowError):
        x[0] = np.int64(300)
    assert x.tolist() == [0, 0, 0]


def test_result_type_gives_the_dtype_of_operations() -> None:
    for dtype in DTYPES:
        x = dp.ones(3, dtype=dtype)
        for scalar in SCALARS:
            wanted = np.result_type(np.ones(3, dtype), scalar)
            assert dp.result_type(x, scalar) == wanted, (dtype, scalar)


def test_methods_of_ufuncs() -> None:
    values = np.arange(4, dtype=np.int8)
    x = dp.asarray(values)
    check("outer", dp.add.outer(x, np.int64(300)).asnumpy(), np.add.outer(values, np.int64(300)))
    with pytest.raises(TypeError):
        dp.add.at(x, dp.asarray([0]), np.float64(1))
    check("sum", dp.sum(x, initial=np.int64(3)).asnumpy(), np.asarray(np.sum(values, initial=3)))
    wanted = np.add(values, np.int64(1), dtype=np.int16)
    check("dtype=", dp.add(x, np.int64(1), dtype="int16").asnumpy(), wanted)


def test_scalars_in_lists_and_with_arrays() -> None:
    x = np.ones(2, np.float32)
    ours = dp.asarray(x)
    pair = [np.float32(1), np.float32(2)]
    check("list", (ours + pair).asnumpy(), x + pair)
    check("r_", dp.r_[ours, np.float64(1)].asnumpy(), np.r_[x, np.float64(1)])
    check("r_", dp.r_[ours, 1.0].asnumpy(), np.r_[x, 1.0])
    check("block", dp.block([np.float32(1)]).asnumpy(), np.block([np.float32(1)]))
    check("diff", dp.diff(ours, prepend=np.float64(0)).asnumpy(), np.diff(x, prepend=np.float64(0)))


def test_arrays_of_no_dimension_are_strong() -> None:
    for scalar in (np.float64(0.1), np.int64(300), np.int8(1)):
        for dtype in ("int8", "float32", "uint64"):
            values = np.ones(3, dtype)
            found = dp.asarray(values) + dp.asarray(scalar)
            check((dtype, scalar), found.asnumpy(), values + np.asarray(scalar))


def test_on_other_queues(queue: dpctl.SyclQueue) -> None:
    x = dp.ones(3, dtype="float32", sycl_queue=queue)
    two = np.float64(2)
    for found in (x + two, two + x, dp.fmod(x, two), x < two, two < x):
        assert found.queue == queue
    assert dp.searchsorted(x, np.float64(0.5)).queue == queue


def test_operators_of_numbers_compute_numpys_bits() -> None:
    numbers = (0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan, -math.nan, 1e308, 5e-324)
    others = (*numbers, 3, 2**53, 2**53 + 1, 2**62, True, np.float32(0.1), np.int64(3))
    for value in map(np.asarray, (*numbers, np.float32(0.1), 3)):
        x = dp.asarray(value)
        for single in (operator.neg, operator.pos, abs, lambda each: each**2):
            check(single, single(x).asnumpy().view("V"), np.asarray(single(value)).view("V"))
        for name in ("add", "sub", "mul", "truediv", *OPERATORS[-6:]):
            operation = getattr(operator, name)
            for other in others:
                check(name, operation(x, other).asnumpy(), np.asarray(operation(value, other)))
                check(name, operation(other, x).asnumpy(), np.asarray(operation(other, value)))
