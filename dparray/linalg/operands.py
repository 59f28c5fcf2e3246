"""Matrices as operands, and the choice of NumPy or the device's library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array import dispatch
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._functions.elementwise import isfinite
from dparray._placement import common_placement
from dparray.exceptions import DTypeError, ShapeError

__all__ = [
    "LinAlgError",
]


LinAlgError = np.linalg.LinAlgError


#: NumPy computes up to about this many elements on a sub-device: LAPACK then uses one core.
_ONE_CORE_ELEMENTS = 64 * 64


def matrices(function: str, name: str, x: Any, square: bool = True) -> ndarray:
    x = check_array(function, name, x)
    if x.ndim < 2:
        raise ShapeError(
            f"{function}: {name} has shape {x.shape}; give a matrix or a stack of them"
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{function}: {name} has shape {x.shape}; the matrices must be square")
    refuse_half(function, name, x)
    return x


def refuse_half(function: str, name: str, x: ndarray) -> None:
    """Raise a DTypeError for a float16 array, which no function of linear algebra supports."""
    if x.dtype == _dtypes.float16 or _dtypes.is_bfloat16(x.dtype):
        raise DTypeError(f"{function}: not defined for {x.dtype}; write {name}.astype('float32')")


def check_numbers(function: str, name: str, x: ndarray) -> None:
    """Raise a ValueError for an array with infinities or NaN."""
    if x.dtype.kind in "fc" and not bool(isfinite(x).all()):
        raise ValueError(
            f"{function}: {name} must not contain infs or NaNs; write check_finite=False to "
            "compute with them"
        )


def compute(
    function: str,
    arrays: Sequence[tuple[str, ndarray]],
    library: Callable[..., Any],
) -> Any:
    """Call a function: NumPy's on a CPU device, the library's on any other device.

    Args:
        function: the name, for messages.
        arrays: the operands with their names.
        library: called with NumPy or the library, and their arrays.
    """
    for name, x in arrays:
        refuse_half(function, name, x)
    small = dispatch.compute_at_once(partial(library, np), arrays)
    if small is not None:
        return small
    queue = common_placement(function, arrays).queue
    is_host = not traits_of(queue).is_part or all(x.size <= _ONE_CORE_ELEMENTS for _, x in arrays)
    return dispatch.compute(function, arrays, host=is_host or None, library=library)


def compute_by_name(function: str, arrays: Sequence[tuple[str, ndarray]], **options: Any) -> Any:
    """Call a function of ``linalg`` by its name, as :func:`compute` does."""
    return compute(function, arrays, partial(dispatch.by_name(f"linalg.{function}"), **options))


def default_float(x: ndarray) -> np.dtype[Any]:
    return _dtypes.default_float(traits_of(x.queue))
