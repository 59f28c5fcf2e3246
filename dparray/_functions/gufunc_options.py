"""The options of NumPy's generalized ufuncs, which ``matmul`` and ``vecdot`` are.

The last axes of each operand hold the vectors or matrices, unless ``axes=`` names others. The
function is repeated over the axes before them, with broadcasting.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dparray import _layout
from dparray._array.apply import cast_unsafe
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_arrays, check_fits, check_out
from dparray._functions.manipulation import moveaxis
from dparray._functions.ufunc_options import (
    DEFAULT_CASTING,
    DEFAULT_ORDER,
    check_casting,
    check_order,
    in_dtype,
    only_out,
    ordered,
)
from dparray.exceptions import ArgumentError


def are_default(axes: Any, dtype: Any, casting: Any, order: Any) -> bool:
    """Return whether no option except ``out=`` is given."""
    return axes is None and dtype is None and casting is DEFAULT_CASTING and order is DEFAULT_ORDER


def spreads_over(shape: tuple[int, ...], out: tuple[int, ...], core: int) -> bool:
    """Return whether vectors or matrices of ``count`` axes fill an array of their layout."""
    return len(out) > len(shape) and shape[len(shape) - core :] == out[len(out) - core :]


def product_with_options(
    function: str,
    cores: Callable[[ndarray, ndarray], tuple[int, int, int]],
    compute: Callable[[ndarray, ndarray], ndarray],
    operands: tuple[Any, Any],
    out: Any,
    axes: Any,
    dtype: Any,
    casting: str,
    order: Any,
) -> ndarray:
    """Compute a product of vectors or matrices with the options of NumPy's ufuncs.

    Args:
        function: the public function.
        cores: the number of axes of the vectors or matrices of both operands and the result.
        compute: the function that computes the product along the last axes.
        operands: the arguments as given by the caller.
        out: an array to write to, or a tuple with that array, or ``None``.
        axes: the positions of those axes in the operands and the result, or ``None``.
        dtype: the dtype to which the operands are converted first, or ``None``.
        casting: the allowed conversions to ``dtype`` and to ``out``.
        order: ``"F"`` for a new result in Fortran order.

    Raises:
        ArgumentError, AxisError: ``axes`` is invalid.
        DTypeError: ``casting`` forbids a conversion.
        ShapeError: the result does not match ``out``.
    """
    check_casting(function, casting)
    order = check_order(function, order)
    out = only_out(function, out)
    x1, x2 = check_arrays(function, ("x1", operands[0]), ("x2", operands[1]))
    named = (("x1", x1), ("x2", x2))
    check_out(function, named, out)
    if dtype is not None:
        x1, x2 = (in_dtype(function, x, dtype, casting) for x in (x1, x2))
    counts = cores(x1, x2)
    third: tuple[int, ...] = ()
    if axes is not None:
        first, second, third = _axes_of(function, axes, counts)
        x1, x2 = _to_the_end(x1, first), _to_the_end(x2, second)
    result = compute(x1, x2)
    if third:
        result = moveaxis(result, tuple(range(-len(third), 0)), third)
    if out is None:
        return ordered(result, order, (x1, x2))
    spreads = not third and spreads_over(result.shape, out.shape, counts[2])
    check_fits(function, result.shape, result.dtype, out, casting, spreads)
    assign(out, cast_unsafe(result, out.dtype), function)
    return out


def _axes_of(
    function: str, axes: Any, counts: tuple[int, int, int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the axes of the operands and the result, each as a tuple."""
    given = list(axes) if isinstance(axes, list | tuple) else None
    if given is not None and len(given) == 2 and counts[2] == 0:
        given.append(())
    if given is None or len(given) != 3:
        raise ArgumentError(
            f"{function}: axes must be a list of the axes of x1, x2 and the result; got {axes!r}"
        )
    entries = []
    for name, entry, count in zip(("x1", "x2", "the result"), given, counts, strict=True):
        try:
            numbers = tuple(
                operator.index(at) for at in (entry if isinstance(entry, list | tuple) else [entry])
            )
        except TypeError:
            raise ArgumentError(
                f"{function}: axes of {name} must be integers; got {entry!r}"
            ) from None
        if len(numbers) != count:
            raise ArgumentError(
                f"{function}: axes of {name} must be {count} integers; got {entry!r}"
            )
        entries.append(numbers)
    return entries[0], entries[1], entries[2]


def _to_the_end(x: ndarray, axes: tuple[int, ...]) -> ndarray:
    return moveaxis(x, axes, tuple(range(-len(axes), 0))) if axes else x


def single_axis(function: str, axis: Any, axes: Any) -> Any:
    """Return ``axes=`` for two vectors along the same axis.

    Raises:
        ArgumentError: both are given.
    """
    if axis is None:
        return axes
    if axes is not None:
        raise ArgumentError(f"{function}: give either axis= or axes=, not both")
    return [axis, axis, ()]


def with_kept_axis(function: str, result: ndarray, axis: Any, axes: Any) -> ndarray:
    """Return the products of vectors with the axis of the vectors kept, with length 1."""
    kept = -1 if axis is None else axis
    if axes is not None and len(axes) == 3 and axes[2] != ():
        kept = axes[2][0] if isinstance(axes[2], list | tuple) else axes[2]
    at = _layout.normalize_axis(function, kept, result.ndim + 1)
    shape, strides = result.shape, result.strides
    return result._view(
        (*shape[:at], 1, *shape[at:]), (*strides[:at], 0, *strides[at:]), result.offset
    )
