"""Reductions that always run in compiled kernels, so that results are bitwise reproducible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.allocation import empty_on
from dparray._array.apply import astype_array, reduce_array
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._graph.reductions import REDUCTIONS
from dparray._placement import placement_of
from dparray.algorithms.ranges import accumulator, operation
from dparray.exceptions import DTypeError, ShapeError
from dparray.kernels.combine import identity

__all__ = ["reduce"]

# The host and dpnp would combine the elements in another order.
_ROWS = {name: replace(row, has_library=False) for name, row in REDUCTIONS.items()}
_NAMES = {"add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max"}
_NAMES_OF_BOOLEANS = {"minimum": "all", "maximum": "any"}


def reduce(
    x: ndarray,
    op: str = "add",
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> ndarray:
    """Reduce the elements along axes, in blocks; sums are about as accurate as pairwise sums.

    The order of operations depends only on the shape and the device's limits, so results are
    bitwise reproducible.

    Args:
        x: an array of a real dtype other than float16.
        op: ``"add"``, ``"multiply"``, ``"minimum"`` or ``"maximum"``. The last two return NaN if an
            element is NaN.
        axis: the axis or axes to reduce; all of them if ``None``.
        keepdims: whether to keep the reduced axes, with length 1.

    Returns:
        An array without the reduced axes, on the queue of ``x``, with its USM type. The dtype is
        that of ``x``, or 64 bits wide for sums and products of integers and Booleans.

    Raises:
        ValueError: the operation is unknown.
        AxisError: an axis is out of range.
        ShapeError: a minimum or maximum over no elements.
        DTypeError: ``x`` is complex or float16.

    Example:
        >>> x = dp.asarray([[1.0, 2.0], [3.0, 5.0]], dtype="float32")
        >>> dp.algorithms.reduce(x, axis=0).asnumpy()
        array([4., 7.], dtype=float32)
        >>> dp.algorithms.reduce(x, "maximum").item()
        5.0
    """
    x = check_array("reduce", "x", x)
    if x.dtype.kind not in "biuf" or x.dtype.name == "float16":
        raise DTypeError(f"reduce: x must have a real dtype other than float16, not {x.dtype}")
    operation("reduce", op)
    dtype = accumulator(op, x.dtype)
    axes = tuple(range(x.ndim)) if axis is None else _layout.normalize_axes("reduce", axis, x.ndim)
    axes = tuple(sorted(axes))
    if x.size == 0:
        return _nothing(op, x, axes, keepdims, dtype)
    if not axes and x.ndim:
        return astype_array(x, dtype)
    return _combined(x, op, axes, dtype, keepdims)


def _combined(
    x: ndarray, op: str, axes: tuple[int, ...], dtype: np.dtype[Any], keepdims: bool = False
) -> ndarray:
    names = _NAMES | (_NAMES_OF_BOOLEANS if dtype.kind == "b" else {})
    return reduce_array(_ROWS[names[op]], x, axes, keepdims, dtype, dtype)


def _nothing(op: str, x: ndarray, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> ndarray:
    """Return the reduction of an array without elements."""
    shape = _layout.reduced_shape(x.shape, axes, keepdims)
    result = empty_on(placement_of(x), shape, dtype)
    if result.size:
        if op in ("minimum", "maximum"):
            raise ShapeError(
                f"reduce: the {op} of an array of shape {x.shape} along axes {axes} is undefined "
                "because there are no elements; give an array that is not empty"
            )
        result[...] = identity(op, dtype.type)
    return result
