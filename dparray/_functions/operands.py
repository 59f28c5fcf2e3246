"""Helpers for operands: several on one queue, converted to floats, or flattened."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.apply import as_operand, astype_array, ops
from dparray._array.ndarray import materialize, ndarray
from dparray._array.operands import check_array, checked_scalar
from dparray._driver import traits_of
from dparray._placement import Placement, common_placement, placement_of
from dparray.exceptions import DTypeError


def arrays_of(function: str, *named: tuple[str, Any]) -> list[Any]:
    """Return arrays and Python scalars after checking that the arrays are on one queue.

    At least one must be an array. NumPy scalars become arrays, since they are not weak.
    """
    arrays = [each for each in named if isinstance(each[1], ndarray)]
    placement = common_placement(function, arrays) if arrays else None
    values = [value for _, value in named]
    for position, (name, value) in enumerate(named):
        if isinstance(value, np.generic) or not isinstance(value, bool | int | float | complex):
            values[position] = check_array(function, name, values[position], placement)
    if not any(isinstance(value, ndarray) for value in values):
        values[0] = check_array(function, named[0][0], values[0])
    placed = [
        (name, value)
        for (name, _), value in zip(named, values, strict=True)
        if isinstance(value, ndarray)
    ]
    common_placement(function, placed)
    return values


def in_loop(function: str, *named: tuple[str, Any]) -> list[Any]:
    """Return operands as :func:`arrays_of`, cast to the dtypes that NumPy's ufunc computes in.

    Raises:
        DTypeError: NumPy's ufunc is not defined for these dtypes.
    """
    values = arrays_of(function, *named)
    keys = tuple(
        value.dtype if isinstance(value, ndarray) else _weak_key(value) for value in values
    )
    queue = next(value.queue for value in values if isinstance(value, ndarray))
    signature = _dtypes.resolve(getattr(np, function), keys)
    return [
        converted(value, _dtypes.fit_device(dtype, traits_of(queue)))
        if isinstance(value, ndarray)
        else checked_scalar(function, value, dtype)
        for value, dtype in zip(values, signature, strict=False)
    ]


def as_mask(function: str, where: Any, placement: Placement) -> ndarray:
    """Convert ``where`` to Booleans: an array, a number or a list.

    Raises:
        DTypeError: it is an array of another dtype.
    """
    mask = check_array(function, "where", where, placement)
    if mask.dtype.kind == "b":
        return mask
    if isinstance(where, list | tuple | int | float | complex) and not isinstance(
        where, np.generic
    ):
        return astype_array(mask, _dtypes.bool)
    raise DTypeError(
        f"{function}: where must be a Boolean mask, not {mask.dtype}; write where=mask != 0"
    )


def converted(x: ndarray, dtype: np.dtype[Any]) -> ndarray:
    """Return an operand in another dtype; broadcast axes stay so.

    They must not affect the memory order of a result.
    """
    is_broadcast = [step == 0 and n > 1 for n, step in zip(x.shape, x.strides, strict=True)]
    if x.dtype == dtype or not any(is_broadcast):
        return astype_array(x, dtype, copy=False)
    shape = tuple(1 if each else n for n, each in zip(x.shape, is_broadcast, strict=True))
    part = astype_array(x._view(shape, x.strides, x.offset), dtype)
    materialize(part)  # the view of a pending value would have all elements
    strides = tuple(
        0 if each else step for step, each in zip(part.strides, is_broadcast, strict=True)
    )
    return part._view(x.shape, strides, part.offset)


def _weak_key(scalar: Any) -> Any:
    """Return a Python scalar as it takes part in the choice of a ufunc's loop."""
    return _dtypes.bool if isinstance(scalar, bool) else type(scalar)


def as_float(x: ndarray) -> ndarray:
    if x.dtype.kind in "fc":
        return x
    return as_operand(x, _dtypes.default_float(traits_of(x.queue)))


def conjugate(x: ndarray) -> ndarray:
    """Return the complex conjugates; real numbers unchanged."""
    return ops.conj(x) if x.dtype.kind == "c" else x


def placement_keywords(x: ndarray) -> dict[str, Any]:
    return {"sycl_queue": x.queue, "usm_type": x.usm_type}


def vector_of(function: str, like: ndarray, name: str, value: Any) -> ndarray:
    """Convert a list to an array on the queue of another; return an array unchanged."""
    return check_array(function, name, value, placement_of(like))
