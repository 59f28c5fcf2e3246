"""Small arrays that no work of a CPU writes: computed by NumPy at the call, in their own memory."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array import fastpath
from dparray._array.ndarray import (
    HOST_TYPES,
    SEQUENCES,
    config_values,
    look,
    ndarray,
    new_object,
)
from dparray._evaluate import cost_model, host, limits
from dparray._runtime import queues

#: The type characters of the dtypes that arrays have.
NUMBERS = frozenset(np.dtype(name).char for name in _dtypes.NAMES) | {"q", "Q"}


#: Results of more elements lie in the pool's memory from the start: that of the system is fresh
#: each time, and to touch it the first time costs more than the operation.
HEAP_ELEMENTS = 1 << 14

#: More arrays than these are joined the long way, which looks at each once.
_MOST_JOINED = 64


array_type = np.ndarray


working = queues.working


REFUSALS = host.REFUSALS


SCALARS = _dtypes.SCALARS


def general_compute_small(
    function: Callable[..., Any],
    x: Any,
    *args: Any,
    broadcasts: bool = False,
    joins: bool = False,
) -> ndarray | None:
    """Return a function of NumPy's of small arrays, or ``None`` if it is not for the host at once.

    The caller knows that the result is small too.

    Args:
        function: called with what the host sees of ``x`` and of the arrays among ``args``; makes a
            new array, or a scalar.
        x: whatever the user gave as the first array.
        *args: ``None`` comes back where NumPy does not take them.
        broadcasts: the result has the shape that the arrays broadcast to, which is looked at.
        joins: ``x`` is a sequence of arrays, and the result has the elements of all.
    """
    if joins:
        return _compute_joined(function, x, *args)
    if broadcasts:
        return _compute_broadcast(function, x, *args)
    if type(x) is not ndarray:
        return None
    first = x._on_host
    if first is None or first.size > limits.host_elements:
        return None
    if (working or not config_values["host_tier"]) and not is_ready(x):
        return None
    for arg in args:
        if type(arg) not in _KEYWORDS:
            seen = _seen_beside(x, args)
            if seen is None:
                return None
            args = seen
            break
    values = host.call(function, first, *args, owner=x)
    if values is None:
        return None
    if type(values) is not array_type:
        values = np.asarray(values)
    if values.dtype.char not in NUMBERS:  # of a text or an object among the arguments
        return None
    if values.base is not None:  # NumPy has reshaped its result
        values = values.copy()
    result = new_object(ndarray)
    result._on_host = values
    result._block = result._packed = None
    result.sycl_queue = x.sycl_queue
    result.usm_type = x.usm_type
    return result


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
    seen = look(x)
    if seen is None or not seen.flags.c_contiguous:
        return None
    made = host.call(host.FOLDS[name], seen, None, keepdims, owner=x)
    if made is None:
        return None
    result = new_object(ndarray)
    result._on_host = np.asarray(made)
    result._block = result._packed = None
    result.sycl_queue, result.usm_type = x.sycl_queue, x.usm_type
    return result


#: Types of arguments that are no arrays and of no place.
_KEYWORDS = frozenset({int, float, complex, bool, str, tuple, type(None)})


def _seen_beside(x: ndarray, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Arguments, arrays as the host sees them; ``None`` if the host does not take one at once."""
    seen = []
    for arg in args:
        if type(arg) is ndarray:
            if arg.sycl_queue is not x.sycl_queue or arg.usm_type != x.usm_type:
                return None
            if working and not is_ready(arg):
                return None
            arg = arg._on_host
            if arg is None:
                return None
        elif isinstance(arg, HOST_TYPES):
            return None
        seen.append(arg)
    return tuple(seen)


def _compute_joined(function: Callable[..., Any], arrays: Any, *args: Any) -> ndarray | None:
    """A function of NumPy's of a sequence of small arrays, as :func:`compute_small`."""
    if type(arrays) not in SEQUENCES or not 0 < len(arrays) <= _MOST_JOINED:
        return None
    size = 0
    for x in arrays:
        if type(x) is not ndarray or x._on_host is None:
            return None
        size += x.size
    if size > limits.host_elements:
        return None
    return general_compute_small(lambda *parts: function(parts, *args), *arrays)


def _compute_broadcast(function: Callable[..., Any], x: Any, *args: Any) -> ndarray | None:
    """A function of NumPy's that broadcasts small arrays, as :func:`compute_small`."""
    seen: list[np.ndarray] = []
    size = 1
    for operand in (x, *args):
        if type(operand) is ndarray:
            each = operand._on_host
            if each is None:
                return None
            seen.append(each)
            size *= each.size
    most = limits.host_elements
    is_small = bool(seen) and (size <= most or are_small_together(most, *seen))
    return general_compute_small(function, x, *args) if is_small else None


def counted_bytes(x: np.ndarray, size: int | None = None) -> int:
    """As how many elements an array, or one of so many, counts that is written.

    As so many numbers of eight bytes, unless NumPy computes with them one by one.
    """
    if size is None:
        size = x.size
    return -(-size * x.itemsize // 8) if x.itemsize < 8 and x.dtype.char != "e" else size


def counted(x: np.ndarray, size: int | None = None) -> int:
    """Return the same of one that is computed with: NumPy takes longer where elements lie apart."""
    found = counted_bytes(x, size)
    return found if x.flags.forc else int(found * cost_model.APART)


def are_small_together(most: int, *arrays: np.ndarray) -> bool:
    """Return whether a result of the shape to which arrays broadcast counts as at most so many."""
    shape = arrays[0].shape
    if all(array.shape == shape for array in arrays):
        size = prod(shape)
    else:
        try:
            size = np.broadcast(*arrays).size
        except ValueError:
            return False
    if cost_model.APART * size <= most:
        return True
    return all(
        (counted if array.size == size else counted_bytes)(array, size) <= most for array in arrays
    )


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
    seen, positions = look(x), look(index)
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
    return ndarray._computed(np.asarray(values), x.sycl_queue, x.usm_type)


def put_small(x: ndarray, index: ndarray, value: Any) -> bool:
    """Write to elements that a mask or positions select of a small array; false if not done."""
    target, chosen = x._on_host, index._on_host
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
        source = value._on_host
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


def _is_not_done(*args: Any) -> bool:
    return False


def _no_view(x: ndarray, function: Callable[..., np.ndarray], *args: Any) -> None:
    return None


#: Compute a NumPy function of small arrays, as :func:`general_compute_small`.
compute_small: Callable[..., ndarray | None] = general_compute_small
#: ``view_small(x, function, *args)``: the view that a NumPy function makes, or ``None``.
view_small: Callable[..., ndarray | None] = _no_view
#: ``write_small(x, index, value)``: write to a part of a small array; false if that is not done.
write_small: Callable[[ndarray, Any, Any], bool] = _is_not_done
if fastpath.module is not None:
    compute_small, view_small = fastpath.module.compute_small, fastpath.module.view_small
    write_small = fastpath.module.write_small
