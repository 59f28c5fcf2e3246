"""Statements on arrays whose shapes differ: native code raises where NumPy does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import runs_loops_on_host

pytestmark = pytest.mark.skipif(not runs_loops_on_host(), reason="native code needs a CPU device")


def updates(x: Any, y: Any, z: Any) -> None:
    z *= y


def updates_a_slice(x: Any, y: Any, z: Any) -> None:
    z[::2] -= y


def updates_by_an_expression(x: Any, y: Any, z: Any) -> None:
    z[:] += y * 2 + 1


def has_a_result_argument(x: Any, y: Any, z: Any) -> None:
    np.add(x, y, z)


def has_a_result_of_one(x: Any, y: Any, z: Any) -> None:
    np.sqrt(x, z)


def writes_by_a_mask(x: Any, y: Any, z: Any) -> None:
    z[x > 2] = 1


def updates_by_a_mask(x: Any, y: Any, z: Any) -> None:
    z[x > 0] += y


def reads_by_a_mask(x: Any, y: Any, z: Any) -> Any:
    mask = x > 2
    return z[mask]


@dp.jit
def inner(x: Any, y: Any, z: Any) -> Any:
    z += y
    return z[x > 2]


def calls(x: Any, y: Any, z: Any) -> Any:
    return inner(x, y, z)


def updates_in_prange(x: Any, y: Any, z: Any) -> None:
    for i in dp.prange(1):
        z[i:] += y


FUNCTIONS = (
    updates, updates_a_slice, updates_by_an_expression, has_a_result_argument, has_a_result_of_one,
    writes_by_a_mask, updates_by_a_mask, reads_by_a_mask, calls, updates_in_prange,
)  # fmt: skip


#: The words that NumPy's and dparray's messages have for one reason.
REASONS = ("broadcast|cannot assign slice of shape", "[Bb]oolean index")
#: dparray's class for an error of NumPy's.
CLASSES = {ValueError: dp.ShapeError, IndexError: IndexError}


def outcome(function: Callable[..., Any], arrays: list[Any]) -> Any:
    """Return what a call returns and leaves in its arguments, or class and reason of its error."""
    try:
        result = function(*arrays)
    except (ValueError, IndexError) as error:
        return type(error), [words for words in REASONS if re.search(words, str(error))]
    every = [each for each in (*arrays, result) if each is not None]
    return [np.asarray(each.asnumpy() if hasattr(each, "asnumpy") else each) for each in every]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("sizes", [(4, 4, 4), (4, 3, 4), (4, 4, 3), (3, 4, 4), (4, 1, 4)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.sample(3)
def test_shapes_that_differ_raise_as_in_numpy(
    function: Callable[..., Any], sizes: tuple[int, ...], dtype: str
) -> None:
    if function is has_a_result_of_one and dtype == "int32":
        pytest.skip("no square roots of integers in an array of integers")
    hosts = [np.arange(1, size + 1).astype(dtype) for size in sizes]
    plain = function if function is not calls else inner.py_func
    expected = outcome(plain, [host.copy() for host in hosts])
    found = outcome(dp.jit(function), [dp.asarray(host) for host in hosts])
    if isinstance(expected, tuple):
        kind, reasons = expected
        assert reasons
        assert found == (CLASSES[kind], reasons)
    else:
        assert isinstance(found, list)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_no_axis_of_the_target_is_broadcast() -> None:
    @dp.jit
    def update(x: Any, y: Any) -> None:
        x += y

    for shapes in (((1, 4), (3, 4)), ((3, 1), (3, 4)), ((4,), (1, 4))):
        with pytest.raises(ValueError, match=r"broadcast|does not fit"):
            update(*map(dp.zeros, shapes))
    x = dp.zeros((3, 4))
    update(x, dp.arange(4.0))
    update(x, dp.ones((3, 1)))
    assert x.tolist() == [[1.0, 2.0, 3.0, 4.0]] * 3


@dp.jit
def of_unknown_types(x: Any, at: Any, total: Any) -> Any:
    total += x[at]
    total *= 2
    return total


def test_numbers_need_no_check() -> None:
    @dp.jit
    def sums(x: Any) -> Any:
        total = 0.0
        for i in dp.prange(x.shape[0]):
            total += np.linalg.inv(x[i])[0, 0]
        return total + of_unknown_types(x[0, 0], 1, 1.5)

    assert float(sums(dp.full((3, 2, 2), 0.5) + dp.eye(2))) == pytest.approx(3 * 0.75 + 4)


def inverse(x: Any, out: Any, y: Any) -> None:
    for i in dp.prange(x.shape[0]):
        out[i] = x[i] + 1
        out[i] = np.linalg.inv(x[i])  # raises


def reduction(x: Any, out: Any, y: Any) -> Any:
    total = 0.0
    for i in dp.prange(x.shape[0]):
        total += np.linalg.solve(x[i], np.ones(2))[0]  # raises
    return total


def product(x: Any, out: Any, y: Any) -> None:
    for i in dp.prange(x.shape[0]):
        out[i, 0, 0] = y @ x[i, 0]  # raises


def update(x: Any, out: Any, y: Any) -> None:
    for i in dp.prange(x.shape[0]):
        out[i] += y  # raises


def loops_of_both_kinds(x: Any, out: Any, y: Any) -> None:
    for _ in range(2):
        for i in dp.prange(x.shape[0]):
            out[i] = np.linalg.inv(x[i] * 2)  # raises


def loop_over_elements(x: Any, out: Any, y: Any) -> None:
    out[:] = x * 2
    for i in range(x.shape[0]):
        out[i, 0, 0] = x[i, 0, 0]
        out[i] = x[i] + y  # raises
    for i in dp.prange(x.shape[0]):
        out[i] = 1


@dp.jit
def positive(value: Any) -> Any:
    if value <= 0:
        raise ValueError("not positive")  # raises, too
    return value


def callee(x: Any, out: Any, y: Any) -> None:
    for i in dp.prange(x.shape[0]):
        out[i, 0, 0] = positive(x[i, 0, 0])  # raises


@pytest.mark.parametrize(
    "function",
    [inverse, reduction, product, update, loops_of_both_kinds, loop_over_elements, callee],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.sample(2)
def test_an_exception_of_a_loop_has_the_line(function: Callable[..., Any], debug: bool) -> None:
    arrays = [dp.zeros((3, 2, 2)), dp.zeros((3, 2, 2)), dp.ones(3)]
    with dp.config.override(debug=debug), pytest.raises(ValueError, match=r".") as caught:
        dp.jit(function)(*arrays)
    found = [(each.name, str(each.statement)) for each in caught.traceback]
    expected = "positive" if function is callee else function.__name__
    assert found[-1][0] == expected
    lines = [text for name, text in found if name == function.__name__]
    assert lines[-1].endswith("# raises")


def rows_of_a_sparse_matrix(starts: Any, columns: Any, values: Any, x: Any, out: Any) -> None:
    for i in range(starts.size - 1):
        own = columns[starts[i] : starts[i + 1]]
        out[i] = values[starts[i] : starts[i + 1]] @ x[own] + x[own + 0] @ x[own]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("index_dtype", ["uint32", "int64"])
def test_a_product_with_a_gathered_vector(dtype: str, index_dtype: str) -> None:
    random = np.random.default_rng(5)
    x, values = random.random(20).astype(dtype), random.random(60).astype(dtype)
    columns = random.integers(0, 20, 60).astype(index_dtype)
    if index_dtype == "int64":
        columns[::7] = -3
    starts = np.asarray([0, 3, 3, 4, 60])
    expected = np.zeros(4, dtype)
    rows_of_a_sparse_matrix(starts, columns, values, x, expected)
    out = dp.zeros(4, dtype=dtype)
    dp.jit(rows_of_a_sparse_matrix)(*map(dp.asarray, (starts, columns, values, x)), out)
    np.testing.assert_allclose(out.asnumpy(), expected, 1e-5)


def test_errors_of_a_product_with_a_gathered_vector() -> None:
    compiled = dp.jit(rows_of_a_sparse_matrix)
    x, out, starts = dp.ones(3), dp.zeros(1), dp.asarray([0, 2])
    with pytest.raises(dp.exceptions.ShapeError, match="sizes"):
        compiled(starts, dp.asarray([0, 1]), dp.ones(1), x, out)
    with dp.config.override(debug=True), pytest.raises(IndexError, match="out of bounds"):
        compiled(starts, dp.asarray([0, 7]), dp.ones(2), x, out)


def select(x: Any, mask: Any) -> Any:
    count = 0
    for i in range(mask.shape[0]):  # a loop over elements, so that the function is native
        count += mask[i]
    return x[mask], count


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("dtype", ["float64", "complex64", "int16", "bool"])
@pytest.mark.parametrize("step", [1, -2])
def test_a_mask_selects_as_in_numpy(size: int, share: float, dtype: str, step: int) -> None:
    generator = np.random.default_rng(size)
    values = (generator.random(2 * size) * 9).astype(dtype)[::step][:size]
    mask = (generator.random(2 * size) < share)[::step][:size]
    found, count = dp.jit(select)(dp.asarray(values), dp.asarray(mask))
    expected = values[mask]
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.asnumpy(), expected)
    assert count == mask.sum()


def test_a_mask_in_prange_selects_as_in_numpy() -> None:
    @dp.jit
    def means(x: Any, out: Any) -> None:
        for i in dp.prange(out.shape[0]):
            mask = np.logical_and(i * 10 <= x, x < i * 10 + 5)
            out[i] = x[mask].mean()

    x, out = dp.arange(1000.0), dp.zeros(100)
    means(x, out)
    np.testing.assert_allclose(out.asnumpy(), np.arange(100) * 10 + 2.0)


def sums(x: Any, y: Any) -> Any:
    first = x[0, 0] * 0  # so that all are of one dtype
    for i in range(2):  # a loop over elements, so that the function is native
        first += x[i, 0] * 0
    return (
        np.sum(x * y, axis=0),
        np.sum(x * y, axis=-1),
        np.sum(np.sum(x * y, 0), axis=1),
        np.sum(np.sum(np.sum(x * y, axis=0), axis=0), axis=0) + first,
        (x * y).sum(axis=1).sum(axis=0),
    )


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (((3, 4, 5), "float64"), ((3, 4, 5), "float64")),
        (((3, 4, 1), "float32"), ((1, 1, 5), "float32")),
        (((3, 1, 5), "float32"), ((4, 1), "int32")),
        (((2, 3), "float64"), ((0, 2, 1), "float64")),
        (((2, 3, 4), "float64"), ((), "float64")),
    ],
)
@pytest.mark.parametrize("fastmath", [False, True])
@pytest.mark.slow
@pytest.mark.sample(1)
def test_sums_of_products_of_arrays_that_broadcast(x: Any, y: Any, fastmath: bool) -> None:
    rng = np.random.default_rng(0)
    hosts = [(rng.random(shape) * 9).astype(dtype) for shape, dtype in (x, y)]
    found = dp.jit(fastmath=fastmath)(sums)(*map(dp.asarray, hosts))
    for one, other in zip(found, sums(*hosts), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-6)


def test_sums_of_products_add_in_the_order_of_numpy() -> None:
    @dp.jit
    def sums_of_rows(x: Any, y: Any, out: Any) -> None:
        for i in range(out.shape[0]):
            out[i] = np.sum(np.sum(x[i] * y, axis=0), axis=0)

    x, y = np.random.default_rng(0).random((2, 40, 30, 20, 10), dtype=np.float32)
    out = dp.zeros((40, 10), "float32")
    sums_of_rows(dp.asarray(x), dp.asarray(y[0, :, :, :1]), out)
    expected = (x * y[0, :, :, :1]).sum(axis=1).sum(axis=1)
    np.testing.assert_array_equal(out.asnumpy(), expected)


def test_sums_of_products_of_other_shapes_raise() -> None:
    @dp.jit
    def summed(x: Any, y: Any) -> Any:
        for i in range(x.shape[0]):
            x[i, 0] = 1
        return np.sum(x * y, axis=0)  # the line

    @dp.jit
    def no_axis(x: Any) -> Any:
        for i in range(x.shape[0]):
            x[i, 0] = 1
        return np.sum(x * x, axis=2)

    with pytest.raises(dp.exceptions.ShapeError, match="broadcast") as caught:
        summed(dp.ones((3, 4)), dp.ones((3, 3)))
    assert "# the line" in str(caught.traceback[-1].statement)
    with pytest.raises(ValueError, match="axis"):
        no_axis(dp.ones((3, 4)))


@dp.jit
def sum_from(x: Any, at: int) -> Any:
    if at == x.size:
        return 0.0
    return x[at] + sum_from(x, at + 1)


@dp.jit
def factorial(n: int) -> int:
    if n < 2:
        return 1
    return n * factorial(n - 1)


def test_functions_that_call_themselves_are_native() -> None:
    assert factorial(10) == math.factorial(10)
    assert sum_from(dp.arange(5.0), 1) == np.arange(5.0)[1:].sum()
    if runs_loops_on_host():
        for function in (factorial, sum_from):
            assert "whole function: native region" in function.inspect()
            assert "not native" not in function.inspect()
