"""Host views of arrays for native regions, and conversion of their results to arrays.

The only module of :mod:`dparray._jit` that accesses the internals of arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from dparray._array.allocation import from_host
from dparray._array.ndarray import host_view as idle_host_view
from dparray._array.ndarray import materialize, ndarray
from dparray._driver.interface import Queue
from dparray._evaluate.writes import settle_blocks
from dparray._jit.captured import of_one_type
from dparray._jit.inference import Items, Value
from dparray._layout import order_of, shows_elements_twice
from dparray._placement import coerced_usm_type
from dparray._runtime import host_maps, queues
from dparray.memory import copies
from dparray.memory.blocks import is_read_only

#: Up to this size a result stays on the host until a kernel needs it.
_MAX_HOST_RESULT = 1 << 15

working = queues.working


def host_view(x: ndarray) -> np.ndarray:
    """Return a NumPy array over the memory of an array, for a region that reads or writes it.

    Evaluates pending values of the array and pending readers of its memory first, and waits for
    work on the memory.
    """
    view = x._host_view
    block = x._block
    if view is not None and not host_maps.holds:
        if block is None:
            return view
        if block.readers:
            settle_blocks((block,))
        if working:
            queues.wait_to_write(block)
        return view
    return _slow_view(x)


def _slow_view(x: ndarray) -> np.ndarray:
    layout = materialize(x)
    if host_maps.holds:
        host_maps.before_write(layout)
    settle_blocks((layout.block,))
    queues.wait_to_write(layout.block)
    view = idle_host_view(x)
    is_fixed = shows_elements_twice(layout.shape, layout.strides) or is_read_only(layout.block)
    if view is None or is_fixed:
        view = copies.host_view(layout)
        if is_fixed:
            view.flags.writeable = False
    return view


def host_arguments(values: Iterable[Any]) -> list[Any]:
    """Return the arguments of a region, with views of arrays."""
    return [*map(_host_argument, values)]


def _host_argument(value: Any) -> Any:
    if isinstance(value, ndarray):
        view = host_view(value)
        return view if view.ndim else view[()]
    if isinstance(value, tuple | list):
        items = map(_host_argument, of_one_type(value))
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def orders_of(names: Sequence[str], values: Sequence[Any]) -> dict[str, str]:
    """Return the memory order of each array among some values, as in type keys, by name."""
    return {
        name: order_of(x.shape, x.strides, x.itemsize)
        for name, x in zip(names, values, strict=True)
        if isinstance(x, ndarray)
    }


def may_overlap(arrays: Iterable[ndarray]) -> bool:
    """Return whether some of the arrays may have elements in common."""
    return any(np.may_share_memory(*pair) for pair in combinations(map(host_view, arrays), 2))


def result_of(
    value: Any,
    expected: Any,
    queue: Queue,
    arrays: Sequence[ndarray],
) -> Any:
    """Convert the result of a native region to that of the uncompiled function.

    Args:
        value: the result.
        expected: its inferred type.
        queue: the queue for new arrays.
        arrays: the arguments, whose memory a result may share.
    """
    if type(value) is np.ndarray:
        # Numba's base object has a parent if the result shows an argument's memory.
        is_new = getattr(value.base, "parent", value) is None
        for x in () if is_new else arrays:
            view = host_view(x)
            if value is view or _lies_in(value, view, x):
                if _is_all_of(value, view):
                    return x
                offset = x.offset + _address(value) - _address(view)
                return x._view(value.shape, value.strides, offset, value.dtype)
        if value.nbytes <= _MAX_HOST_RESULT:
            return ndarray._from_host_value(value.copy(), queue, _usm_type(arrays))
        return from_host(value, queue, _usm_type(arrays))
    if isinstance(value, tuple):
        kinds = expected.items if isinstance(expected, Items) else (None,) * len(value)
        items = [
            result_of(item, kind, queue, arrays) for item, kind in zip(value, kinds, strict=True)
        ]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(expected, Value) and not expected.is_weak and not expected.ndim:
        # For an element of an array, the uncompiled function returns an array.
        return ndarray._from_host_value(np.array(value, expected.dtype), queue, _usm_type(arrays))
    return value


def _usm_type(arrays: Sequence[ndarray]) -> str:
    """Return the USM type of a new array, coerced from the arguments."""
    found = arrays[0].usm_type if arrays else "device"
    for x in arrays:
        if x.usm_type != found:
            found = coerced_usm_type(found, x.usm_type)
    return found


def _address(view: np.ndarray) -> int:
    address: int = view.__array_interface__["data"][0]
    return address


def _is_all_of(value: np.ndarray, view: np.ndarray) -> bool:
    """Return whether two host arrays are the same view of the same elements."""
    one, other = ((v.shape, v.strides, v.dtype, _address(v)) for v in (value, view))
    return one == other


def _lies_in(value: np.ndarray, view: np.ndarray, x: ndarray) -> bool:
    """Return whether a result is a view of an argument's memory."""
    if not value.size or not view.size or value.flags.owndata:
        return False
    return bool(np.may_share_memory(value, view))
