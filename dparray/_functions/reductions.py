"""Reductions and cumulative functions, as functions and as NumPy's methods.

Each has one array as input, runs on the array's queue, and gives the result its USM type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod as product
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on
from dparray._array.apply import apply, astype_array, choose_elements, ops, reduce_array
from dparray._array.assignment import assign, write_out
from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import as_method, ndarray
from dparray._array.operands import (
    check_out,
    checked_scalar,
    scalar_value,
)
from dparray._driver import traits_of
from dparray._evaluate.host import FOLDS, QUICK_FOLDS, fold_mode
from dparray._functions.operands import as_mask
from dparray._functions.public import P, R, public
from dparray._graph.ops import OPS
from dparray._graph.reductions import REDUCTIONS
from dparray._placement import common_placement, placement_of
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "min",
    "prod",
    "ptp",
    "sum",
]

Axis = int | Sequence[int] | None

_WITHOUT_IDENTITY = frozenset({"argmax", "argmin", "max", "min", "logsumexp"})
# The results of reductions over no elements.
_OF_NOTHING = {"prod": 1, "all": True, "mean": math.nan, "var": math.nan}


def axes_of(name: str, x: ndarray, axis: Axis) -> tuple[int, ...]:
    """Return the reduced axes, counted from the front; all for ``None``."""
    return tuple(range(x.ndim)) if axis is None else _layout.normalize_axes(name, axis, x.ndim)


def accumulator_of(x: ndarray, dtype: Any, out: Any = None) -> np.dtype[Any]:
    """Return the dtype of a sum or product: 64 bits for integers and Booleans, as in NumPy.

    If the elements or ``out`` are floats, it is their promoted dtype.
    """
    if dtype is not None:
        return _dtypes.check_device(_dtypes.as_dtype(dtype), traits_of(x.queue))
    found = _dtypes.accumulator(x.dtype)
    if out is None:
        return found
    if isinstance(out, ndarray) and out.dtype.kind == "b" and x.dtype.kind in "iu":
        return x.dtype  # NumPy's sums wrap in it before they become Booleans
    if not isinstance(out, ndarray) or not {x.dtype.kind, out.dtype.kind} & {"f", "c"}:
        return found
    return _dtypes.fit_device(np.result_type(x.dtype, out.dtype), traits_of(x.queue))


def reduce_over(
    name: str,
    x: ndarray,
    axis: Axis,
    loop_dtype: np.dtype[Any],
    out: ndarray | None,
    keepdims: bool,
    *scalars: float,
    dtype: np.dtype[Any] | None = None,
) -> ndarray:
    """Return a reduction of the table, pending or into ``out``.

    Args:
        name: the public function.
        x: the array.
        axis: the axis argument of the public function.
        loop_dtype: the dtype to which elements are converted.
        out: the out argument of the public function.
        keepdims: the keepdims argument of the public function.
        *scalars: the scalar operands of the reduction.
        dtype: the dtype of the result; ``loop_dtype`` by default.
    """
    axes = tuple(range(x.ndim) if axis is None else sorted(axes_of(name, x, axis)))
    if type(keepdims) is not bool:
        keepdims = _layout.check_flag(name, "keepdims", keepdims)
    dtype = dtype or loop_dtype
    if not axes and x.ndim:  # NumPy's axis=(): every element is its own result
        return write_out(name, astype_array(x, dtype), out)
    if x.size == 0:
        return write_out(name, _of_nothing(name, x, axes, dtype, keepdims), out)
    kind = {"max": "any", "min": "all"}.get(name, name) if loop_dtype.kind == "b" else name
    if out is None and len(axes) == x.ndim and (loop_dtype == x.dtype or kind in ("any", "all")):
        folds = QUICK_FOLDS.get(kind, "")
        folded = compute_small(FOLDS[kind], x, None, keepdims, folds=folds) if folds else None
        if folded is not None:
            return folded
    row = REDUCTIONS[kind]
    result = reduce_array(row, x, axes, keepdims, loop_dtype, dtype, *scalars)
    # As in an assignment, which is also NumPy's rule for reductions.
    return result if out is None else write_out(name, result, out, casting="unsafe")


def _of_nothing(
    name: str, x: ndarray, axes: tuple[int, ...], dtype: np.dtype[Any], keepdims: bool
) -> ndarray:
    """Return the reduction of an array without elements."""
    if name in _WITHOUT_IDENTITY and product(x.shape[at] for at in axes) == 0:
        raise ShapeError(f"{name}: x of shape {x.shape} must not be empty along axes {axes}")
    shape = _layout.reduced_shape(x.shape, axes, keepdims)
    result = empty_on(placement_of(x), shape, dtype)
    assign(result, _OF_NOTHING.get(name, 0))
    return result


def check_numeric(name: str, x: ndarray, allowed: str) -> None:
    if x.dtype.kind not in allowed:
        raise DTypeError(f"{name}: not defined for {x.dtype}; convert with `x.astype(...)`")


def mask_of(name: str, x: ndarray, where: Any, out: ndarray | None) -> ndarray:
    """Return ``where`` as a Boolean array of the shape of ``x``, on its queue."""
    where = as_mask(name, where, placement_of(x))
    check_out(name, (("a", x), ("where", where)), out)
    common_placement(name, (("a", x), ("where", where)))
    strides = _layout.broadcast_strides(f"{name}: where", where.shape, where.strides, x.shape)
    return where._view(x.shape, strides, where.offset)


_COMBINE = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
_IDENTITY = {"sum": 0, "prod": 1}


def _from_initial(
    name: str,
    function: Callable[..., ndarray],
    x: ndarray,
    axis: Axis,
    dtype: Any,
    out: ndarray | None,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> ndarray:
    """Reduce elements under a mask, and ``initial``, by the reduction without a mask.

    Masked elements are replaced by the identity, which for a maximum or minimum is ``initial``.
    """
    start = _IDENTITY.get(name) if initial is None else scalar_value(initial)
    if start is None:
        raise ArgumentError(
            f"{name}: has no identity, so where= requires initial=, the result if there is no "
            f"element"
        )
    if not isinstance(start, bool | int | float | complex):
        raise ArgumentError(f"{name}: initial must be a scalar; got {type(initial).__name__}")
    axes = axes_of(name, x, axis)
    loop_dtype = (
        accumulator_of(x, dtype, out) if name in _IDENTITY else _comparison_dtype(x, out, start)
    )
    start = checked_scalar(name, start, loop_dtype)
    if initial is not None and name in _IDENTITY and isinstance(out, ndarray):
        # NumPy starts in the memory of the result, which must be able to hold it.
        with np.errstate(all="ignore"):
            start = np.asarray(start, loop_dtype).astype(out.dtype).astype(loop_dtype).item()
    if where is not True:
        mask = mask_of(name, x, where, out)
        x = choose_elements(
            name, mask, astype_array(x, loop_dtype, copy=False), _IDENTITY.get(name, start)
        )
    if name not in _IDENTITY and product(x.shape[at] for at in axes) == 0:
        shape = _layout.reduced_shape(x.shape, axes, keepdims)
        result = empty_on(placement_of(x), shape, loop_dtype)
        assign(result, start)
        return write_out(name, result, out, casting="unsafe")
    if name in _IDENTITY:
        result = function(x, axes, keepdims=keepdims, dtype=loop_dtype)
    else:
        result = function(astype_array(x, loop_dtype, copy=False), axes, keepdims=keepdims)
    if initial is not None:
        result = apply(OPS[_COMBINE[name]], result, start)
    return write_out(name, result, out, casting="unsafe")


def _comparison_dtype(x: ndarray, out: Any, start: Any) -> np.dtype[Any]:
    """Return the dtype in which a maximum or minimum compares, which must hold ``initial`` too."""
    if not isinstance(out, ndarray):
        return x.dtype
    is_complex = x.dtype.kind == "c" or type(start) is complex
    return np.promote_types(x.dtype, out.dtype if is_complex else _dtypes.real_of(out.dtype))


def folding(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a reduction public, with its fast path and its row in the table."""
    return public(
        small=FOLDS[name],
        takes=("axis", "keepdims"),
        mode=fold_mode(name),
        operation=REDUCTIONS.get(name),
    )


@as_method
@folding("sum")
def sum(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """Return the sum of elements over one, several or all axes.

    Args:
        a: an array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        dtype: the dtype to add in; by default that of ``x``, with integers and Booleans widened to
            64 bits.
        out: an array to write the result to.
        keepdims: whether to keep the reduced axes, with length 1.
        initial: a scalar to start with.
        where: a mask that broadcasts to ``a``; other elements are ignored.

    Returns:
        An array on the queue of ``a`` with its USM type.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: ``where`` does not broadcast to ``a``, or the result does not match ``out``.

    Example:
        >>> dp.sum(dp.asarray([[1, 2], [3, 4]]), axis=0).asnumpy()
        array([4, 6])
    """
    if where is not True or initial is not None:
        return _from_initial("sum", sum, a, axis, dtype, out, keepdims, initial, where)
    return reduce_over("sum", a, axis, accumulator_of(a, dtype, out), out, keepdims)


@as_method
@folding("prod")
def prod(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """Return the product of elements over axes; see :func:`sum`.

    Example:
        >>> int(dp.prod(dp.asarray([2, 3, 4])))
        24
    """
    if where is not True or initial is not None:
        return _from_initial("prod", prod, a, axis, dtype, out, keepdims, initial, where)
    return reduce_over("prod", a, axis, accumulator_of(a, dtype, out), out, keepdims)


@as_method
@folding("min")
def min(
    a: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """Return the minimum over axes; NaN if an element is NaN.

    Args:
        a: an array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        out: an array to write the result to.
        keepdims: whether to keep the reduced axes, with length 1.
        initial: a scalar to include, which is the result if there are no elements.
        where: a mask that broadcasts to ``a``; other elements are ignored. Requires ``initial``.

    Returns:
        An array of the dtype of ``a`` on its queue.

    Raises:
        ArgumentError: ``where`` is given without ``initial``.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: a reduced axis is empty, or ``where`` does not broadcast to ``a``.

    Example:
        >>> int(dp.min(dp.asarray([3, 1, 2])))
        1
    """
    if where is not True or initial is not None:
        return _from_initial("min", min, a, axis, None, out, keepdims, initial, where)
    return reduce_over("min", a, axis, a.dtype, out, keepdims)


@as_method
@folding("max")
def max(
    a: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """Return the maximum over axes; NaN if an element is NaN. See :func:`min` for arguments.

    Example:
        >>> dp.max(dp.asarray([[3, 1], [2, 5]]), axis=1).asnumpy()
        array([3, 5])
    """
    if where is not True or initial is not None:
        return _from_initial("max", max, a, axis, None, out, keepdims, initial, where)
    return reduce_over("max", a, axis, a.dtype, out, keepdims)


amax, amin = max, min


@as_method
@public()
def ptp(a: Any, axis: Axis = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
    """Return the range of values, `max - min`, over axes; see :func:`min` for arguments.

    Example:
        >>> int(dp.ptp(dp.asarray([3, 1, 7])))
        6
    """
    highest = max(a, axis, None, keepdims)
    return apply(OPS["subtract"], highest, min(a, axis, None, keepdims), out=out)


def float_of(x: ndarray, dtype: Any) -> np.dtype[Any]:
    """Return the dtype of a mean: floats keep their dtype, others use the default float."""
    if dtype is not None:
        return accumulator_of(x, dtype)
    if x.dtype.kind in "biu":
        return _dtypes.default_float(traits_of(x.queue))
    return x.dtype


@as_method
@folding("argmin")
def argmin(
    a: Any, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False
) -> ndarray:
    """Return the index of the first minimum along an axis, or of the flattened array.

    Args:
        a: an array; complex numbers are compared by real part, then by imaginary part.
        axis: the axis; ``None`` means the flattened array.
        out: an ``int64`` array to write the result to.
        keepdims: whether to keep the reduced axes, with length 1.

    Raises:
        ShapeError: the axis is empty.

    Example:
        >>> int(dp.argmin(dp.asarray([3, 1, 2])))
        1
    """
    if a.dtype.kind == "c":
        return _position_of_complex("argmin", min, a, axis, out, keepdims)
    return reduce_over("argmin", a, axis, a.dtype, out, keepdims, dtype=_dtypes.int64)


@as_method
@folding("argmax")
def argmax(
    a: Any, axis: int | None = None, out: ndarray | None = None, *, keepdims: bool = False
) -> ndarray:
    """Return the index of the first maximum; arguments and errors as in :func:`argmin`.

    Example:
        >>> dp.argmax(dp.asarray([[3, 1], [2, 5]]), axis=1).asnumpy()
        array([0, 1])
    """
    if a.dtype.kind == "c":
        return _position_of_complex("argmax", max, a, axis, out, keepdims)
    return reduce_over("argmax", a, axis, a.dtype, out, keepdims, dtype=_dtypes.int64)


def _position_of_complex(
    name: str,
    extreme: Callable[..., ndarray],
    x: ndarray,
    axis: int | None,
    out: ndarray | None,
    keepdims: bool,
) -> ndarray:
    """Return the index of the first NaN, or else of the first best real and imaginary part."""
    if product(x.shape[at] for at in axes_of(name, x, axis)) == 0:
        raise ShapeError(f"{name}: x of shape {x.shape} must not be empty along axis {axis}")
    worst = -math.inf if name == "argmax" else math.inf
    is_nan = ops.isnan(x)
    is_best = ops.logical_not(is_nan)
    for part in (x.real, x.imag):
        values = choose_elements(name, is_best, part, worst)
        among = values == extreme(values, axis, None, True)
        is_best = ops.logical_and(is_best, among)
    rank = astype_array(is_nan, _dtypes.int8) + astype_array(is_nan, _dtypes.int8)
    rank = rank + astype_array(is_best, _dtypes.int8)
    return argmax(rank, axis, out, keepdims=keepdims)


def _truth(
    name: str, x: ndarray, axis: Axis, out: ndarray | None, keepdims: bool, where: Any
) -> ndarray:
    if where is not True:
        truth = x != 0
        x = choose_elements(name, mask_of(name, x, where, out), truth, name == "all")
    if not axes_of(name, x, axis) and x.ndim:
        return write_out(name, x != 0, out)
    return reduce_over(name, x, axis, _dtypes.bool, out, keepdims)


@as_method
@folding("any")
def any(
    a: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> ndarray:
    """Return whether any element over axes is nonzero; false if there are none.

    Args:
        a: an array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        out: a Boolean array to write the result to.
        keepdims: whether to keep the reduced axes, with length 1.
        where: a mask that broadcasts to ``a``; other elements are ignored.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> bool(dp.any(dp.asarray([0, 3, 0])))
        True
    """
    return _truth("any", a, axis, out, keepdims, where)


@as_method
@folding("all")
def all(
    a: Any,
    axis: Axis = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> ndarray:
    """Return whether all elements over axes are nonzero; see :func:`any` for arguments.

    Example:
        >>> bool(dp.all(dp.asarray([2, 3, 0])))
        False
    """
    return _truth("all", a, axis, out, keepdims, where)


@folding("count_nonzero")
def count_nonzero(
    x: Any, axis: Axis = None, *, keepdims: bool = False, out: ndarray | None = None
) -> ndarray:
    """Return the number of nonzero elements over axes, as ``int64``.

    Args:
        x: an array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        keepdims: whether to keep the reduced axes, with length 1.
        out: an array to write the result to.

    Raises:
        ExecutionPlacementError: ``out`` is on another queue.

    Example:
        >>> int(dp.count_nonzero(dp.asarray([0, 3, 4])))
        2
    """
    truth = x if x.dtype.kind == "b" else ops.not_equal(x, 0)
    return reduce_over("sum", truth, axis, _dtypes.int64, out, keepdims)


@public()
def logsumexp(
    x: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: ndarray | None = None,
    keepdims: bool = False,
) -> ndarray:
    """Return the logarithm of the sum of exponentials over axes, without overflow.

    Args:
        x: a real array.
        axis: an axis or a tuple of axes; all of them if ``None``.
        dtype: the dtype to compute in; for integers the device's default float.
        out: an array to write the result to.
        keepdims: whether to keep the reduced axes, with length 1.

    Raises:
        DTypeError: ``x`` is complex.

    Example:
        >>> round(float(dp.logsumexp(dp.asarray([1000.0, 1000.0]))), 6)
        1000.693147
    """
    check_numeric("logsumexp", x, "biuf")
    loop_dtype = float_of(x, dtype)
    wide = _dtypes.float32 if loop_dtype == _dtypes.float16 else loop_dtype
    axes = axes_of("logsumexp", x, axis)
    if x.size == 0:
        nothing = _of_nothing("logsumexp", x, tuple(sorted(axes)), loop_dtype, keepdims)
        return write_out("logsumexp", nothing, out)
    x = astype_array(x, wide, copy=False)
    highest = max(x, axes, None, True)
    # Infinities cannot be scaled.
    highest = choose_elements("logsumexp", ops.isfinite(highest), highest, 0.0)
    exponentials = ops.exp(ops.subtract(x, highest))
    total = ops.log(sum(exponentials, axes, None, None, True))
    result = astype_array(total + highest, loop_dtype, copy=False)
    if not keepdims:
        result = result.reshape(_layout.reduced_shape(x.shape, axes, False))
    return write_out("logsumexp", result, out)
