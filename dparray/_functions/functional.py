"""Functions that apply a function along axes or to selected elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import astype_array
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._functions.creation import zeros_like
from dparray._functions.joining import stack
from dparray._functions.manipulation import expand_dims, moveaxis, reshape
from dparray._functions.public import public
from dparray._placement import common_placement, placement_of
from dparray.exceptions import ShapeError

__all__ = [
    "apply_along_axis",
    "apply_over_axes",
    "piecewise",
]


@public(operands=("x",))
def apply_along_axis(
    function: Callable[..., Any], axis: int, x: Any, *args: Any, **kwargs: Any
) -> ndarray:
    """Apply ``function`` to each line along an axis.

    Args:
        function: accepts a vector (an array on the queue of ``x``) and ``args``, and returns an
            array or a scalar, with the same shape for all lines.
        axis: the axis.
        x: an array.
        *args: positional arguments for the function.
        **kwargs: keyword arguments for the function.

    Raises:
        ShapeError: there are no lines, or the results differ in shape.

    Example:
        >>> dp.apply_along_axis(dp.sum, 0, dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([4, 6])
    """
    axis = _layout.normalize_axis("apply_along_axis", axis, x.ndim)
    lines = moveaxis(x, axis, -1)
    kept = lines.shape[:-1]
    if 0 in kept:
        raise ShapeError(f"apply_along_axis: an array of shape {x.shape} has no line along {axis}")
    results = [
        check_array("apply_along_axis", "a result", function(lines[at], *args, **kwargs))
        for at in np.ndindex(kept)
    ]
    if len({result.shape for result in results}) != 1:
        raise ShapeError("apply_along_axis: the results differ in shape")
    whole = reshape(stack(results), (*kept, *results[0].shape))
    added = range(len(kept), whole.ndim)
    return moveaxis(whole, tuple(added), tuple(axis + at for at in range(len(added))))


@public(operands=("x",))
def apply_over_axes(function: Callable[..., Any], x: Any, axes: Any) -> ndarray:
    """Apply a function of an array and an axis along several axes, which are kept.

    Example:
        >>> dp.apply_over_axes(dp.sum, dp.ones((2, 3, 4)), (0, 2)).shape
        (1, 3, 1)
    """
    for axis in _layout.normalize_axes("apply_over_axes", axes, x.ndim):
        result = check_array("apply_over_axes", "the function's result", function(x, axis))
        x = result if result.ndim == x.ndim else expand_dims(result, axis)
    return x


@public()
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> ndarray:
    """Apply to each element the function whose condition is true for it (the last such one).

    Args:
        condlist: one or more Boolean arrays of its shape.
        condlist: boolean arrays of its shape, or one of them.
        funclist: one function (of the elements) or scalar for each condition; optionally one more
            for elements where no condition is true, which are otherwise 0.
        *args: additional positional arguments for the functions.
        **kwargs: additional keyword arguments for the functions.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the numbers of conditions and functions do not match.

    Example:
        >>> x = dp.asarray([-1.0, 2.0])
        >>> dp.piecewise(x, [x < 0], [lambda v: -v, 0.0]).asnumpy()
        array([1., 0.])
    """
    given = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    is_bare = x.ndim and given and not isinstance(given[0], list | tuple | ndarray)
    if isinstance(condlist, ndarray) and condlist.ndim > x.ndim:
        given = list(condlist)
    elif is_bare:  # a single condition given as a list of Booleans
        given = [given]
    place = placement_of(x)
    conditions = [
        astype_array(
            check_array("piecewise", f"condlist[{at}]", condition, place), _dtypes.bool, copy=False
        )
        for at, condition in enumerate(given)
    ]
    named = [(f"condlist[{at}]", condition) for at, condition in enumerate(conditions)]
    common_placement("piecewise", [("x", x), *named])
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ShapeError(f"piecewise: {len(funclist)} functions for {len(conditions)} conditions")
    result = zeros_like(x)
    functions = list(funclist)
    if len(functions) > len(conditions):
        default = functions.pop()
        result[...] = default(x, *args, **kwargs) if callable(default) else default
    for condition, function in zip(conditions, functions, strict=True):
        if callable(function):
            chosen = x[condition]
            if chosen.size:
                result[condition] = function(chosen, *args, **kwargs)
        else:
            result[condition] = function
    return result
