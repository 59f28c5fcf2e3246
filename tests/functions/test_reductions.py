"""Reductions and cumulative functions on every backend: dtype, shape and values are NumPy's."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dparray as dp
from tests.support import DTYPES, examples, same

EVERYWHERE = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
FUNCTIONS = ["sum", "prod", "min", "max", "mean", "var", "std", "any", "all", "ptp"]
FUNCTIONS += ["argmin", "argmax", "count_nonzero"]
ONE_AXIS = {"argmin", "argmax"}


pytestmark = pytest.mark.usefixtures("executor")


def assert_same(actual: dp.ndarray, expected: Any) -> None:
    kind = np.asarray(expected).dtype.char
    same(actual, expected, {"e": 2e-3, "f": 2e-6, "F": 2e-6}.get(kind, 1e-12))


def sample(dtype: str) -> np.ndarray:
    numbers = np.random.default_rng(1).integers(0, 4, (3, 4, 2))
    return (numbers * (1 - 0.5j) if np.dtype(dtype).kind == "c" else numbers).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_dtype_along_axes(name: str, dtype: str, executor: str) -> None:
    if executor == "device" and dtype not in ("bool", "int32", "float32", "complex64"):
        pytest.skip("only few dtypes are tested where every reduction is a launch")
    a = sample(dtype)
    if a.dtype.kind == "b" and name == "ptp":
        with pytest.raises(dp.exceptions.DTypeError):
            getattr(dp, name)(dp.asarray(a))
        return
    x = dp.asarray(a)
    for axis in (None, 0, -1) if name in ONE_AXIS else (None, 0, -1, (0, 2)):
        for keepdims in (False, True):
            expected = getattr(np, name)(a, axis=axis, keepdims=keepdims)
            assert_same(getattr(dp, name)(x, axis=axis, keepdims=keepdims), expected)


@EVERYWHERE
@given(
    a=hnp.arrays(
        "float64",
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
        elements=st.floats(-100, 100, width=32),
    ),
    data=st.data(),
)
def test_sums_of_views(a: np.ndarray, data: st.DataObject) -> None:
    axis = data.draw(st.sampled_from([None, (), *range(-a.ndim, a.ndim)]))
    x = dp.asarray(a)
    if a.ndim:
        a, x = a[::-1].T, x[::-1].T
    for name in ("sum", "prod", "any", "all", "count_nonzero"):
        assert_same(getattr(dp, name)(x, axis=axis), getattr(np, name)(a, axis=axis))
    try:
        expected = np.max(a, axis=axis)
    except ValueError:
        with pytest.raises(dp.exceptions.ShapeError):
            dp.max(x, axis=axis)
    else:
        assert_same(dp.max(x, axis=axis), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sum", "max", "argmax", "mean", "any"])
def test_large_arrays(name: str, queue: Any) -> None:
    a = np.random.default_rng(2).standard_normal((300, 400)).astype("float32")
    x = dp.asarray(a, sycl_queue=queue)
    for axis in (None, 0, 1):
        actual = getattr(x, name)(axis=axis)
        assert actual.queue == queue
        expected = getattr(a, name)(axis=axis)
        np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-4, atol=1e-3)


def test_nan_is_kept_and_found() -> None:
    a = np.asarray([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]])
    x = dp.asarray(a)
    for name in ("min", "max", "sum", "mean", "argmax", "argmin"):
        np.testing.assert_array_equal(getattr(x, name)(axis=1).asnumpy(), getattr(a, name)(axis=1))


def test_mean_and_variance_of_nothing_are_nan() -> None:
    empty = dp.zeros((0, 2))
    assert np.isnan(dp.mean(empty, axis=0).asnumpy()).all()
    assert np.isnan(dp.var(empty, axis=0).asnumpy()).all()
    assert dp.sum(empty, axis=0).tolist() == [0.0, 0.0]
    for name in ("min", "max", "argmin", "argmax"):
        with pytest.raises(dp.exceptions.ShapeError, match=name):
            getattr(dp, name)(empty, axis=0)


def test_correction_and_ddof_are_one() -> None:
    a = np.asarray([1.0, 2.0, 4.0, 9.0])
    x = dp.asarray(a)
    assert_same(dp.var(x, correction=1), np.var(a, ddof=1))
    assert_same(x.std(ddof=1), a.std(ddof=1))


def test_dtype_is_the_one_computed_in() -> None:
    x = dp.asarray([100, 100], dtype="int8")
    assert_same(x.sum(), np.int64(200))
    assert_same(x.sum(dtype="int8"), np.asarray([100, 100], "int8").sum(dtype="int8"))
    assert_same(x.mean(dtype="float32"), np.float32(100))


def test_out_is_checked_before_it_is_written() -> None:
    x = dp.ones((2, 3))
    out = dp.zeros(3)
    assert x.sum(0, out=out) is out
    assert out.tolist() == [2.0] * 3
    with pytest.raises(dp.exceptions.ShapeError):
        x.sum(1, out=out)
    with pytest.raises(dp.exceptions.DTypeError):
        (x * 1j).sum(0, out=out)
    assert out.tolist() == [2.0] * 3


@pytest.mark.parametrize("axis", [3, -3, 1.5])
def test_invalid_axes(axis: Any) -> None:
    error = dp.exceptions.AxisError if isinstance(axis, int) else TypeError
    with pytest.raises(error, match="axis"):
        dp.sum(dp.ones((2, 2)), axis=axis)
    with pytest.raises(dp.exceptions.ShapeError, match="repeated axis"):
        dp.sum(dp.ones((2, 2)), axis=(0, -2))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "complex64"])
def test_cumulative(name: str, dtype: str) -> None:
    a = sample(dtype)[..., 0]
    x = dp.asarray(a)
    for axis in (None, 0, -1):
        assert_same(getattr(x, name)(axis), getattr(a, name)(axis))


def test_cumulative_with_the_empty_sum() -> None:
    a = sample("float64")
    x = dp.asarray(a)
    for name in ("cumulative_sum", "cumulative_prod"):
        for options in ({"axis": 1}, {"axis": 1, "include_initial": True}):
            expected = getattr(np, name)(a, **options)
            assert_same(getattr(dp, name)(x, **options), expected)
    logs = dp.cumulative_logsumexp(x, axis=0).asnumpy()
    np.testing.assert_allclose(logs, np.logaddexp.accumulate(a, axis=0))
    with pytest.raises(dp.exceptions.ShapeError, match="axis"):
        dp.cumulative_sum(x)


def test_logsumexp_does_not_overflow() -> None:
    x = dp.asarray([[1000.0, 1000.0], [-np.inf, -np.inf]])
    np.testing.assert_allclose(dp.logsumexp(x, axis=1).asnumpy(), [1000 + np.log(2), -np.inf])


def test_average() -> None:
    a, w = np.arange(6.0).reshape(2, 3), np.asarray([1.0, 2.0, 3.0])
    x, v = dp.asarray(a), dp.asarray(w)
    assert_same(dp.average(x, 1, v), np.average(a, 1, w))
    assert_same(dp.average(x), np.average(a))
    with pytest.raises(dp.exceptions.ShapeError, match="weights"):
        dp.average(x, 0, v)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "cumprod", "argmax", "all"])
def test_methods_take_axis_by_position(name: str) -> None:
    a = sample("float64")
    assert_same(getattr(dp.asarray(a), name)(1), getattr(a, name)(1))
    method = inspect.signature(getattr(dp.ndarray, name))
    assert list(method.parameters)[1] == "axis"


# -- initial values and masks ---------------------------------------------------------------------

MASKED = np.random.default_rng(3).standard_normal((4, 5))
MASK = np.random.default_rng(4).random((4, 5)) > 0.4
OPTIONS: dict[str, dict[str, Any]] = {
    "mask": {"where": MASK},
    "broadcast mask": {"where": MASK[0]},
    "initial": {"initial": 2},
    "both": {"initial": 2, "where": MASK},
    "nothing": {"initial": 2, "where": MASK & False},
}


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("kind", ["float64", "int32"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all"])
def test_masks_and_initial_values(
    name: str, options: str, axis: Any, kind: str, lazy: bool
) -> None:
    chosen = OPTIONS[options]
    if "initial" in chosen and name not in ("sum", "prod", "max", "min"):
        pytest.skip("NumPy's function takes no initial value")
    if "initial" not in chosen and name in ("max", "min"):
        pytest.skip("has no identity; tested below")
    a = (MASKED * 9).astype(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(getattr(np, name)(a, axis=axis, **chosen))
    ours = {
        key: dp.asarray(value) if isinstance(value, np.ndarray) else value
        for key, value in chosen.items()
    }
    with dp.config.override(lazy=lazy):
        actual = getattr(dp.asarray(a), name)(axis=axis, **ours)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-12)


def test_masks_and_initial_values_that_cannot_be() -> None:
    x = dp.ones(3)
    out = dp.full((), 7.0)
    for call, kind, message in (
        (lambda: dp.max(x, where=x > 0, out=out), dp.ArgumentError, "max: .* requires initial="),
        (
            lambda: dp.sum(x, where=x, out=out),
            dp.DTypeError,
            "sum: where must be a Boolean mask, not float64",
        ),
        (lambda: dp.sum(x, where=dp.ones((2, 3)) > 0), dp.ShapeError, "sum: where: shape"),
        (lambda: dp.sum(x, initial="a", out=out), dp.ArgumentError, "sum: initial must be"),
        (lambda: dp.var(x, ddof="a", out=out), dp.ArgumentError, "var: ddof must be a number"),
        (lambda: dp.sum(x, keepdims="a", out=out), dp.ArgumentError, "sum: keepdims must be"),
        (
            lambda: dp.sum(x, axis=1.5, out=out),
            dp.ArgumentError,
            "axis must be an integer, not 1.5",
        ),
    ):
        with pytest.raises(kind, match=message):
            call()
    assert float(out) == 7


def test_averages_are_weighted_along_any_axes() -> None:
    weights = np.arange(1.0, 6)
    for axis, used in ((1, weights), ((0, 1), np.abs(MASKED)), (None, np.abs(MASKED))):
        expected = np.average(MASKED, axis, used, returned=True)
        actual = dp.average(dp.asarray(MASKED), axis, dp.asarray(used), returned=True)
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-12)


def test_elementwise_functions_write_where_a_mask_is_true() -> None:
    a, b = np.asarray([1.0, 2.0, 3.0]), np.asarray([0.0, 4.0, 0.0])
    expected = np.divide(a, b, out=np.full(3, 9.0), where=b != 0)
    x, y, out = dp.asarray(a), dp.asarray(b), dp.full(3, 9.0)
    assert dp.divide(x, y, out=out, where=y != 0) is out
    np.testing.assert_array_equal(out.asnumpy(), expected)
    assert np.divide(x, y, out=out, where=y == 0) is out
    np.testing.assert_array_equal(out.asnumpy(), [np.inf, 0.5, np.inf])
    single = dp.sqrt(dp.arange(4), dtype="float32")
    assert single.dtype == np.float32
    with pytest.raises(dp.DTypeError, match="add: complex128 cannot be cast to float64"):
        dp.add(dp.ones(2, dtype=complex), 1, dtype="float64")


@pytest.mark.parametrize("function", ["min", "max", "sum", "prod"])
@pytest.mark.parametrize("wanted", ["complex128", "float64", "float32", "int8"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_initial_has_the_dtype_of_out(function: str, wanted: str, dtype: str) -> None:
    x = np.array([1, 0, 1]).astype(dtype)
    for initial in (-2.0, np.float64(-2), -2, np.int64(-2), True):
        theirs, ours = np.zeros((), wanted), dp.zeros((), wanted)
        getattr(np, function)(x, initial=initial, out=theirs)
        getattr(dp, function)(dp.asarray(x), initial=initial, out=ours)
        assert ours.item() == theirs.item(), initial
