"""Matrices as operands, and who computes with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array import dispatch
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._functions.elementwise import isfinite
from dparray._placement import common_placement
from dparray.exceptions import DTypeError, ShapeError
from dparray.memory.libraries.dpnp import dpnp

__all__ = [
    "LinAlgError",
]


LinAlgError = np.linalg.LinAlgError


#: On a sub-device, LAPACK on the calling thread works on one core up to about this many elements.
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
    """Raise a DTypeError for an array of half precision, which linear algebra has none of."""
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
    by_numpy: Callable[..., Any],
    by_dpnp: Callable[..., Any],
    arrays: Sequence[tuple[str, ndarray]],
) -> Any:
    """Return the results of NumPy's function on a CPU device, of dpnp's on any other."""
    for name, x in arrays:
        refuse_half(function, name, x)
    small = dispatch.compute_at_once(by_numpy, arrays)
    if small is not None:
        return small
    placement = common_placement(function, arrays)
    host = None
    on_root = not traits_of(placement.queue).is_part
    if on_root or all(x.size <= _ONE_CORE_ELEMENTS for _, x in arrays):
        host = by_numpy
    floats = default_float(arrays[0][1])

    def on_floats(*operands: Any) -> Any:
        return by_dpnp(*[ready(x) for x in operands])

    def ready(x: Any) -> Any:
        if x.dtype.kind not in "fc":
            return x.astype(floats)
        # MKL takes no steps of 0.
        return x.copy() if _layout.shows_elements_twice(x.shape, x.strides) else x

    return dispatch.compute(function, arrays, host=host, dpnp=on_floats)


def compute_by_name(function: str, arrays: Sequence[tuple[str, ndarray]], **options: Any) -> Any:
    """Return the results of the function that NumPy and dpnp have by the same name."""
    return compute(
        function,
        partial(getattr(np.linalg, function), **options),
        lambda *operands: getattr(dpnp.linalg, function)(*operands, **options),
        arrays,
    )


def default_float(x: ndarray) -> np.dtype[Any]:
    return _dtypes.default_float(traits_of(x.queue))
