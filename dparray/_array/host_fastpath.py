"""Small arrays that no CPU work writes: NumPy computes them at the call, in their own memory."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array import fastpath
from dparray._array.ndarray import config_values, host_view, ndarray
from dparray._evaluate import host, limits
from dparray._runtime import queues

#: The type characters of the dtypes that arrays have.
NUMBERS = frozenset(np.dtype(name).char for name in _dtypes.NAMES) | {"q", "Q"}

#: Larger results use pool memory from the start: system memory is fresh each time, and its first
#: access costs more than the operation.
HEAP_ELEMENTS = 1 << 14

array_type = np.ndarray

working = queues.working

SCALARS = _dtypes.SCALARS


def is_ready(x: ndarray, *others: Any) -> bool:
    """Return whether the host may read the memory of small arrays now; non-arrays are ready."""
    if not config_values.get("host_tier", False):
        return False
    if working:
        for each in (x, *others):
            if type(each) is ndarray and not host.is_ready(each._block):
                return False
    return True


def is_free_to_write(x: ndarray) -> bool:
    """Return whether the host may write an array now: it is idle, and nothing pending reads it."""
    block = x._block
    if (working or not config_values.get("host_tier", False)) and not host.is_ready(block, True):
        return False
    return block is None or not block.readers


#: The kinds of arrays to which Python numbers are written unchanged.
TAKEN_BY = {float: "fc", int: "fciu", bool: "bfciu"}


def take_small(x: ndarray, index: ndarray) -> ndarray | None:
    """Return a few elements or rows of an array of any size, or ``None``; the caller knows the
    count.
    """
    seen, positions = host_view(x), host_view(index)
    if (
        seen is None
        or positions is None
        or index.queue is not x.queue
        or index.usm_type != x.usm_type
        or not is_ready(x, index)
    ):
        return None
    values = host.call(operator.getitem, seen, positions, owner=x)
    if values is None:
        return None
    return ndarray._from_host_value(np.asarray(values), x.queue, x.usm_type)


def put_small(x: ndarray, index: ndarray, value: Any) -> bool:
    """Write to elements of a small array selected by a mask or positions; return whether it was
    done.
    """
    target, chosen = x._host_view, index._host_view
    if (
        target is None
        or chosen is None
        or target.size > limits.host_elements
        or chosen.size > limits.host_elements
        or chosen.dtype.kind not in "biu"
        or index.queue is not x.queue
    ):
        return False
    source: Any
    dtype = target.dtype
    if type(value) is ndarray:
        source = value._host_view
        if (
            source is None
            or value.queue is not x.queue
            or (source.dtype is not dtype and not np.can_cast(source.dtype, dtype))
            or (source.base is not None and np.may_share_memory(source, target))
        ):
            return False
    else:
        source, kind = value, type(value)
        if dtype.kind not in ("fc" if kind is float else "fciu" if kind is int else ""):
            return False
    if chosen.base is not None and np.may_share_memory(chosen, target):
        return False
    return (
        is_free_to_write(x)
        and is_ready(index, value)
        and host.call(host.write, target, chosen, source, owner=x) is not None
    )


def _general_way(
    *args: Any, broadcasts: bool = False, joins: bool = False, folds: str = ""
) -> None:
    return None


#: ``compute_small(function, x, *args, broadcasts=False, joins=False, folds="")``: the result of a
#: NumPy function of small arrays, if the caller knows that the result is small. ``None`` if the
#: general path must compute it, as it always does without the compiled module.
compute_small: Callable[..., ndarray | None] = _general_way
#: ``call_small(small_function(...), args, kwargs)``: the same of a public function's arguments.
call_small: Callable[[Any, tuple[Any, ...], dict[str, Any]], ndarray | None] = _general_way
#: The fast path of a public function, for ``call_small``; ``None`` without the compiled module.
small_function: Callable[..., Any] | None = None
#: ``view_small(x, function, *args)``: the view that a NumPy function returns, or ``None``.
view_small: Callable[..., ndarray | None] = _general_way
#: ``write_small(x, index, value)``: write to a part of a small array; returns whether it was done.
write_small: Callable[[ndarray, Any, Any], bool | None] = _general_way
if fastpath.module is not None:
    compute_small, view_small = fastpath.module.compute_small, fastpath.module.view_small
    call_small, small_function = fastpath.module.call_small, fastpath.module.small_function
    write_small = fastpath.module.write_small
