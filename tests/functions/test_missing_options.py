"""Options of NumPy's functions, on every queue: values, placement and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dpnp
import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import (
    ArgumentError,
    AxisError,
    DTypeError,
    ExecutionPlacementError,
    HostConversionError,
    KernelArgumentError,
    ShapeError,
)
from tests.functions.comparison import cross

A = np.arange(6.0).reshape(2, 3)
LONG = np.arange(20000.0) % 97 + 1


def assert_same(result: Any, wanted: Any, queue: Any) -> None:
    """Assert NumPy's values, dtype and shape, and the queue of the operands."""
    if isinstance(wanted, tuple | list):
        assert len(result) == len(wanted)
        for ours, theirs in zip(result, wanted, strict=True):
            assert_same(ours, theirs, queue)
        return
    assert result.queue == queue
    assert result.dtype == wanted.dtype
    np.testing.assert_allclose(result.asnumpy(), wanted, rtol=1e-12)


PROGRAMS: dict[str, Callable[[Any, Callable[..., Any]], Any]] = {
    "matmul": lambda xp, a: xp.matmul(a(A), a(A.T), dtype="float32", order="F"),
    "matmul axes": lambda xp, a: xp.matmul(a(A.T), a(A), axes=[(1, 0), (1, 0), (1, 0)]),
    "vecdot": lambda xp, a: xp.vecdot(a(A), a(A[0]), axis=-1, keepdims=True),
    "vecdot axes": lambda xp, a: xp.vecdot(a(A.T), a(A[0]), axes=[0, 0]),
    "matvec out": lambda xp, a: xp.matvec(a(A), a(A[0]), out=a(np.zeros(2, "float32"))),
    "vecmat": lambda xp, a: xp.vecmat(a(A[:, 0] * 1j), a(A), casting="same_kind"),
    "divmod": lambda xp, a: xp.divmod(a(LONG), 7, out=(a(LONG * 0), None)),
    "divmod itself": lambda xp, a: xp.divmod(x := a(LONG), 7, x, a(LONG * 0)),
    "modf": lambda xp, a: xp.modf(a(LONG / 8), where=a(LONG > 3), out=(a(LONG * 0), a(LONG))),
    "frexp": lambda xp, a: xp.frexp(a(LONG / 8), out=(a(LONG), None)),
    "add": lambda xp, a: xp.add(a(A), 1, out=(a(A * 0),)),
    "subtract.reduce": lambda xp, a: xp.subtract.reduce(a(A), axis=1, keepdims=True),
    "divide.accumulate": lambda xp, a: xp.divide.accumulate(a(A + 1), axis=1),
    "power.reduceat": lambda xp, a: xp.power.reduceat(a(A[1]), a(np.asarray([0, 2]))),
    "argmax": lambda xp, a: xp.argmax(a(A * 1j - 1), axis=0),
    "nanargmin": lambda xp, a: xp.nanargmin(a(np.where(A == 0, np.nan, A - 2j)), axis=1),
    "median": lambda xp, a: xp.median(a(A * (1 - 1j)), axis=1),
    "tril": lambda xp, a: xp.tril(a(A[0]), -1),
    "cross": lambda xp, a: cross(xp, a(A[:, :2]), a(A)),
    "cross axis": lambda xp, a: cross(xp, a(A), a(A + 2), axis=0),
    "pad": lambda xp, a: xp.pad(a(A), ((3, 4), (5, 1)), mode="symmetric", reflect_type="odd"),
    "take_along_axis": lambda xp, a: xp.take_along_axis(a(A), a(np.asarray([4, -1])), None),
    "convolve": lambda xp, a: xp.convolve(a(A[0]), 2),
    "partition": lambda xp, a: xp.sort(xp.partition(a(A), a(np.asarray([1, 2])))),
    "roll": lambda xp, a: xp.roll(a(A), a(np.asarray([1, 2])), a(np.asarray([0, 1]))),
    "compress": lambda xp, a: xp.compress(a(np.asarray([1, 0, 1, 0])), a(A), axis=1),
    "concatenate": lambda xp, a: xp.concatenate(
        [a(A), a(A * 1j)], dtype="float32", casting="unsafe"
    ),
    "astype": lambda xp, a: a(A * (1 + 1j)).astype("float32", casting="unsafe"),
    "astype bool": lambda xp, a: a(A * 1j).astype(bool, casting="unsafe"),
    "multiply": lambda xp, a: xp.multiply(a(A * 1j), 2, dtype="float64", casting="unsafe"),
    "cumsum": lambda xp, a: xp.cumsum(a(A[0] / 2), out=a(np.zeros(3, "int32"))),
    "prod": lambda xp, a: xp.prod(a(A + 0.5), axis=1, out=a(np.zeros(2, "int64"))),
    "einsum": lambda xp, a: xp.einsum(a(A), [0, 1], a(A), [0, 1], [0]),
    "vectorize": lambda xp, a: xp.vectorize(np.cos)(a(A)),
    "vectorize excluded": lambda xp, a: xp.vectorize(
        lambda x, p: p[0] + p[1] * x, excluded=["p"], otypes=[float]
    )(a(A), p=[2.0, 3.0]),
    "vectorize signature": lambda xp, a: xp.vectorize(
        lambda x, y: (x @ y, x - y), signature="(n),(n)->(),(n)"
    )(a(A), a(A[0])),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_positions(name: str, queue: Any) -> None:
    def on_queue(values: Any) -> Any:
        return dp.asarray(values, sycl_queue=queue)

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = PROGRAMS[name](np, np.array)  # to which the call may write
    assert_same(PROGRAMS[name](dp, on_queue), wanted, queue)


X = [1.0, 2.0, 3.0]
Refused = tuple[type[Exception], Callable[[Any], Any]]
REFUSED: dict[str, Refused] = {
    "axes": (ArgumentError, lambda x: dp.matmul(x, x, axes=[(0, 1)])),
    "axes' count": (ArgumentError, lambda x: dp.matmul(x, x, axes=[(0, 1), 0, ()])),
    "axes' kind": (ArgumentError, lambda x: dp.vecdot(x, x, axes=["a", 0])),
    "axes outside": (AxisError, lambda x: dp.vecdot(x, x, axes=[3, 0])),
    "axis and axes": (ArgumentError, lambda x: dp.vecdot(x, x, axis=0, axes=[0, 0])),
    "casting": (ArgumentError, lambda x: dp.matmul(x, x, casting="any")),
    "dtype": (DTypeError, lambda x: dp.matmul(x, x, dtype="int32")),
    "out's shape": (ShapeError, lambda x: dp.matvec(dp.ones((2, 3)), x, out=x)),
    "out's dtype": (DTypeError, lambda x: dp.vecdot(x, x, out=dp.asarray(0))),
    "out of two": (ArgumentError, lambda x: dp.add(x, x, out=(x, x))),
    "out of one": (ArgumentError, lambda x: dp.divmod(x, 2, out=x)),
    "out twice": (ArgumentError, lambda x: dp.divmod(x, 2, x, out=(x, None))),
    "out of NumPy": (HostConversionError, lambda x: dp.modf(x, out=(np.ones(3), None))),
    "complex": (DTypeError, lambda x: dp.frexp(x * 1j)),
    "complex sum": (DTypeError, lambda x: dp.sum(x * 1j, out=dp.asarray(0.0))),
    "two axes": (ArgumentError, lambda x: dp.subtract.reduce(x.reshape(1, 3), axis=(0, 1))),
    "nothing": (ShapeError, lambda x: dp.subtract.reduce(x[:0])),
    "comparison": (DTypeError, lambda x: dp.less.accumulate(x)),
    "reflect_type": (ArgumentError, lambda x: dp.pad(x, 1, "reflect", reflect_type="even odd")),
    "order": (ArgumentError, lambda x: dp.where(x > 1, x, 0, order="B")),
    "mode": (ArgumentError, lambda x: dp.take_along_axis(x, dp.asarray([0]), 0, mode="up")),
    "position": (IndexError, lambda x: dp.take_along_axis(x, dp.asarray([3]), None)),
    "true beyond": (IndexError, lambda x: dp.extract(dp.asarray([False] * 3 + [True]), x)),
    "kth": (ArgumentError, lambda x: dp.partition(x, 1.5)),
    "shift": (DTypeError, lambda x: dp.roll(x, x)),
    "cross": (ShapeError, lambda x: dp.cross(dp.ones(4), dp.ones(4))),
    "linalg.cross": (ShapeError, lambda x: dp.linalg.cross(x[:2], x[:2])),
    "linalg.outer": (ShapeError, lambda x: dp.linalg.outer(x, dp.ones((2, 2)))),
    "norm": (ArgumentError, lambda x: dp.linalg.norm(x, ord="inf")),
    "generator": (ArgumentError, lambda x: dp.stack(x for _ in range(2))),
    "vsplit": (ShapeError, lambda x: dp.vsplit(x, 3)),
    "both": (ArgumentError, lambda x: dp.concatenate([x], out=x, dtype="float64")),
    "signature": (ArgumentError, lambda x: dp.vectorize(abs, signature="n->n")),
    "core": (ShapeError, lambda x: dp.vectorize(abs, signature="(n,n)->()")(x)),
    "result": (ShapeError, lambda x: dp.vectorize(lambda v: v, signature="(n)->()")(x)),
    "excluded": (ArgumentError, lambda x: dp.vectorize(lambda v: v, excluded=["p"])),
    "constant": (KernelArgumentError, lambda x: dp.vectorize(max, excluded=[1])(x, x)),
    "ufunc": (KernelArgumentError, lambda x: dp.vectorize(np.vecdot)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mismatched_arguments_raise_before_any_write(name: str) -> None:
    error, call = REFUSED[name]
    x = dp.asarray(X)
    with pytest.raises(error):
        call(x)
    assert x.tolist() == X


def test_another_queue_is_refused(queue: Any) -> None:
    x = dp.asarray(X, sycl_queue=queue)
    y = x.to_device(x.device.new_queue())
    for call in (
        lambda: dp.matmul(x, x, out=y),
        lambda: dp.vecdot(x, y, keepdims=True),
        lambda: dp.divmod(x, 2, out=(None, y)),
        lambda: dp.modf(x, where=y > 1),
        lambda: dp.roll(x, y.astype(int)),
        lambda: dp.partition(x, y.astype(int)),
        lambda: dp.where(x > 1, x, 0, out=y),
        lambda: dp.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(x, y),
        lambda: dp.count_nonzero(x, out=y),
    ):
        with pytest.raises(ExecutionPlacementError):
            call()
    assert y.tolist() == X


def test_host_data_is_accepted_if_the_user_allows_it() -> None:
    x = dp.asarray(X)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: dp.choose(dp.asarray([0, 1]), [np.asarray([1, 2]), dp.asarray([3, 4])]),
        lambda: dp.full(3, np.asarray(X)),
        lambda: dp.special.erf(np.asarray(X)),
        lambda: dp.random.choice(x, 2, p=np.asarray([0.2, 0.2, 0.6])),
    )
    for call in calls:
        with pytest.raises(HostConversionError):
            call()
    with dp.config.override(host_operands="copy"):
        for call in calls:
            call()


def test_arrays_of_dpnp_are_operands_of_every_kind_of_function(queue: Any) -> None:
    theirs = dpnp.asarray(X, sycl_queue=queue)
    ours = dp.asarray(X, sycl_queue=queue)
    for function in (dp.special.erf, dp.elementwise(lambda x: x * 2 + 1), dp.square, dp.fabs):
        result = function(theirs)
        assert result.queue == queue
        np.testing.assert_array_equal(result.asnumpy(), function(ours).asnumpy())


def test_flat_is_an_iterator() -> None:
    flat = dp.asarray([[1, 2], [3, 4]]).flat
    assert [int(next(flat)) for _ in range(4)] == [1, 2, 3, 4]
    with pytest.raises(StopIteration):
        next(flat)
    assert [int(one) for one in flat] == [1, 2, 3, 4]


def test_ufuncs_have_their_attributes() -> None:
    assert (dp.add.nin, dp.add.nout, dp.add.nargs, dp.add.identity) == (2, 1, 3, 0)
    assert (dp.divmod.nout, dp.matmul.signature) == (2, np.matmul.signature)
    assert "dd->d" in dp.add.types
    assert not any("O" in loop or "g" in loop for loop in dp.add.types)
    assert dp.add.ntypes == len(dp.add.types)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_limits_of_floats_are_numpys(dtype: str) -> None:
    ours, theirs = dp.finfo(dtype), np.finfo(dtype)
    for name in ("precision", "nmant", "machep", "negep", "iexp", "nexp", "maxexp", "minexp"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("epsneg", "smallest_subnormal", "tiny", "resolution", "eps"):
        assert getattr(ours, name) == pytest.approx(float(getattr(theirs, name)), rel=1e-6), name
