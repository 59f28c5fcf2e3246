"""Small arrays that no work of a CPU writes: computed by NumPy at the call, in their own memory."""

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

#: Results of more elements lie in the pool's memory from the start: that of the system is fresh
#: each time, and to touch it the first time costs more than the operation.
HEAP_ELEMENTS = 1 << 14

array_type = np.ndarray

working = queues.working

SCALARS = _dtypes.SCALARS


def fold_whole(name: str, x: ndarray, keepdims: bool) -> ndarray | None:
    """Return a quick fold of all elements, if the host may read them; ``None`` else.

    Of more elements than other operations are computed at once: the result is one number, which
    is mostly what is waited for, and elements that lie one after another NumPy folds at the speed
    of a cache, while a launch finds its own code out of the caches.
    """
    if (
        x._block is None
        or x.nbytes > 8 * limits.folded_elements
        or x.dtype.kind not in host.QUICK_FOLDS.get(name, "")
        or x.dtype.char == "e"  # which NumPy converts one by one
        or not is_ready(x)
    ):
        return None
    seen = host_view(x)
    if seen is None or not seen.flags.c_contiguous:
        return None
    value = host.call(host.FOLDS[name], seen, None, keepdims, owner=x)
    if value is None:
        return None
    return ndarray._from_host_value(np.asarray(value), x.sycl_queue, x.usm_type)


def is_ready(x: ndarray, *others: Any) -> bool:
    """Return whether the host may read the memory of small arrays at once; what is no array is
    ready.
    """
    if not config_values["host_tier"]:
        return False
    if working:
        for each in (x, *others):
            if type(each) is ndarray and not host.is_ready(each._block):
                return False
    return True


def is_free_to_write(x: ndarray) -> bool:
    """Return whether the host may write an array at once: it is idle, and nothing pending reads
    it.
    """
    block = x._block
    if (working or not config_values["host_tier"]) and not host.is_ready(block, True):
        return False
    return block is None or not block.readers


#: The kinds of the arrays to which numbers of Python's are written as they are.
TAKEN_BY = {float: "fc", int: "fciu", bool: "bfciu"}


def take_small(x: ndarray, index: ndarray) -> ndarray | None:
    """Return a few elements or rows of an array of any size, or ``None``; the caller knows the
    count.
    """
    seen, positions = host_view(x), host_view(index)
    if (
        seen is None
        or positions is None
        or index.sycl_queue is not x.sycl_queue
        or index.usm_type != x.usm_type
        or not is_ready(x, index)
    ):
        return None
    values = host.call(operator.getitem, seen, positions, owner=x)
    if values is None:
        return None
    return ndarray._from_host_value(np.asarray(values), x.sycl_queue, x.usm_type)


def put_small(x: ndarray, index: ndarray, value: Any) -> bool:
    """Write to elements that a mask or positions select of a small array; false if not done."""
    target, chosen = x._host_view, index._host_view
    if (
        target is None
        or chosen is None
        or target.size > limits.host_elements
        or chosen.size > limits.host_elements
        or chosen.dtype.kind not in "biu"
        or index.sycl_queue is not x.sycl_queue
    ):
        return False
    source: Any
    dtype = target.dtype
    if type(value) is ndarray:
        source = value._host_view
        if (
            source is None
            or value.sycl_queue is not x.sycl_queue
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


def _general_way(*args: Any, broadcasts: bool = False, joins: bool = False) -> None:
    return None


#: ``compute_small(function, x, *args, broadcasts=False, joins=False)``: what a NumPy function makes
#: of small arrays, whose result the caller knows to be small; ``None`` where the general way is to
#: compute it, as it does everything without the compiled module.
compute_small: Callable[..., ndarray | None] = _general_way
#: ``view_small(x, function, *args)``: the view that a NumPy function makes, or ``None``.
view_small: Callable[..., ndarray | None] = _general_way
#: ``write_small(x, index, value)``: write to a part of a small array; false if that is not done.
write_small: Callable[[ndarray, Any, Any], bool | None] = _general_way
if fastpath.module is not None:
    compute_small, view_small = fastpath.module.compute_small, fastpath.module.view_small
    write_small = fastpath.module.write_small
