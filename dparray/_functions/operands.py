"""Operands of chapters: several of one queue, as floats, as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.apply import astype_array
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._placement import Placement, common_placement


def _operands(function: str, *named: tuple[str, Any]) -> list[Any]:
    """Arrays and Python scalars, the arrays checked to be on one queue; at least one is an array.

    NumPy's scalars, which are as strong as arrays, become arrays.
    """
    arrays = [each for each in named if isinstance(each[1], ndarray)]
    place = common_placement(function, arrays) if arrays else None
    values = [value for _, value in named]
    for position, (name, value) in enumerate(named):
        if isinstance(value, np.generic) or not isinstance(value, bool | int | float | complex):
            values[position] = check_array(function, name, values[position], place)
    if not any(isinstance(value, ndarray) for value in values):
        values[0] = check_array(function, named[0][0], values[0])
    placed = [
        (name, value)
        for (name, _), value in zip(named, values, strict=True)
        if isinstance(value, ndarray)
    ]
    common_placement(function, placed)
    return values


def _as_float(x: ndarray) -> ndarray:
    if x.dtype.kind in "fc":
        return x
    return astype_array(x, _dtypes.default_float(x.sycl_queue.sycl_device))


def _place(x: ndarray) -> dict[str, Any]:
    return {"sycl_queue": x.sycl_queue, "usm_type": x.usm_type}


def _vector(function: str, like: ndarray, name: str, value: Any) -> ndarray:
    """A list as an array on the queue of another; an array as it is."""
    return check_array(function, name, value, Placement(like.sycl_queue, like.usm_type))
