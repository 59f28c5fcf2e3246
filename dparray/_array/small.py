"""Small arrays that no work of a CPU writes: computed by NumPy at the call, in their own memory."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array import short
from dparray._array.ndarray import (
    HOST_TYPES,
    SEQUENCES,
    config_values,
    look,
    materialize,
    ndarray,
    new_object,
)
from dparray._evaluate import cost_model, host, limits
from dparray._runtime import queues
from dparray.memory import pool

#: The type characters of the dtypes that arrays have.
NUMBERS = frozenset(np.dtype(name).char for name in _dtypes.NAMES) | {"q", "Q"}


#: Results of more elements lie in the pool's memory from the start: that of the system is fresh
#: each time, and to touch it the first time costs more than the operation.
HEAP_ELEMENTS = 1 << 14

#: More arrays than these are joined the long way, which looks at each once.
_MOST_JOINED = 64


# Local names for the hot path of small arrays; see "small arrays, at once" below.


array_type = np.ndarray


working = queues.working


REFUSALS = host.REFUSALS


SCALARS = _dtypes.SCALARS


_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})


def is_plain(index: Any) -> bool:
    """Whether an index is made of Python's integers and slices, of ``None`` and ``...``."""
    if type(index) is tuple:
        for entry in index:  # noqa: SIM110 - a generator would cost more than all the rest
            if type(entry) not in _BASIC:
                return False
        return True
    return type(index) in _BASIC


def general_compute_small(
    function: Callable[..., Any],
    x: Any,
    *args: Any,
    broadcasts: bool = False,
    joins: bool = False,
) -> ndarray | None:
    """A function of NumPy's of small arrays, or ``None`` if it is not for the host at once.

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
    """A quick fold of all elements, if the host may read them; ``None`` else.

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
    """The same of one that is computed with: NumPy takes longer where elements lie apart."""
    found = counted_bytes(x, size)
    return found if x.flags.forc else int(found * cost_model.APART)


def are_small_together(most: int, *arrays: np.ndarray) -> bool:
    """Whether a result of the shape to which arrays broadcast counts as at most so many."""
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
    """Whether the host may read the memory of small arrays at once; what is no array is ready."""
    if not config_values["host_tier"]:
        return False
    if working:
        for each in (x, *others):
            if type(each) is ndarray and not host.is_ready(each._block):
                return False
    return True


def is_free_to_write(x: ndarray) -> bool:
    """Whether the host may write an array at once: it is idle, and nothing pending reads it."""
    block = x._block
    if (working or not config_values["host_tier"]) and not host.is_ready(block, True):
        return False
    return block is None or not block.readers


def general_view_small(
    x: ndarray, function: Callable[..., np.ndarray], *args: Any
) -> ndarray | None:
    """A view of an array that the host sees; ``None`` if what NumPy makes is no view of it.

    Args:
        x: the array.
        function: called with what the host sees of ``x``, and ``args``; may copy.
        *args: what NumPy does not take goes another way, as ever.
    """
    if look(x) is None:
        return None
    seen, base = shareable_view(x)
    try:
        view = function(seen, *args)
    except REFUSALS:
        return None
    return sharing(x, view) if view.base is base and view.size else None


def shareable_view(x: ndarray) -> tuple[np.ndarray, Any]:
    """The host's view of an array, and the base of that view, which other views share."""
    materialize(x)  # views share memory, so there must be some
    seen = x._on_host
    return seen, seen.base  # type: ignore[union-attr,return-value]


def sharing(x: ndarray, view: np.ndarray) -> ndarray:
    """An array over the memory of ``x``, of which the host sees ``view``."""
    result = new_object(ndarray)
    result._on_host = view
    result._block = x._block
    result._packed = None
    result.sycl_queue = x.sycl_queue
    result.usm_type = x.usm_type
    return result


#: The kinds of the arrays to which numbers of Python's are written as they are.
TAKEN_BY = {float: "fc", int: "fciu", bool: "bfciu"}


def write_small(x: ndarray, index: Any, value: Any) -> bool:
    """Write to a small part of an array; false if that is not done."""
    if type(index) is not int and not is_plain(index):
        return False
    target = x._on_host
    if target is None:
        target = look(x)
        if target is None:
            return False
    if 0 in target.strides:  # elements that share memory are not written
        return False
    dtype = target.dtype
    if counted_bytes(target) > limits.host_elements:
        try:
            part = target[index]
        except IndexError:
            return False
        if type(part) is array_type:
            if counted_bytes(part) > limits.host_elements:
                return False
            target, index = part, Ellipsis
    if not is_free_to_write(x):
        return False
    source: Any
    if type(value) is ndarray:
        source = value._on_host
        if source is None or value.sycl_queue is not x.sycl_queue:
            return False
        if working and not is_ready(value):
            return False
        if source.base is not None and source.ndim and np.may_share_memory(source, target):
            source = _apart(source, target, index)
        is_exact = source.dtype is dtype
        if not is_exact and source.dtype.kind == "c" and dtype.kind != "c":
            return False
    else:
        source = value
        kinds = TAKEN_BY.get(type(value))
        if kinds is None or dtype.kind not in kinds:
            return False
        is_exact = dtype.char == "d" or type(value) is bool
    if not is_exact:  # the conversion may overflow
        return host.call(host.write, target, index, source, owner=x) is not None
    try:
        target[index] = source
    except REFUSALS:
        return False
    return True


def computed_in_pool(compute: Callable[..., Any], x: ndarray, *seen: Any) -> ndarray | None:
    """An operation on floats whose result lies in the pool's memory, which has been used before.

    Args:
        compute: the operation, which takes an output; its result has the operands' dtype.
        x: one of the arrays; nothing pending writes them.
        *seen: what the host sees of the operands, and scalars of Python.

    Returns:
        ``None`` where the result is not plainly of the shape and dtype of ``x``.
    """
    like: np.ndarray = x._on_host  # type: ignore[assignment]
    dtype, shape = like.dtype, like.shape
    if dtype.char not in "df":
        return None
    for each in seen:
        if type(each) is array_type:
            # In C order, as the result will be.
            if each.dtype is not dtype or each.shape != shape or not each.flags.c_contiguous:
                return None
        elif type(each) is not float and type(each) is not int:
            return None
    block = pool.allocate(x.sycl_queue, x.usm_type, like.nbytes)
    if working and not queues.may_write(block):  # it lay elsewhere before
        return None
    out: np.ndarray = np.ndarray(shape, dtype, block.host_bytes)
    if host.call(compute, *seen, out, owner=x) is None:
        return None
    result = new_object(ndarray)
    result._on_host, result._block, result._packed = out, block, None
    result.sycl_queue, result.usm_type = x.sycl_queue, x.usm_type
    return result


def _apart(source: np.ndarray, target: np.ndarray, index: Any) -> np.ndarray:
    """The values for a part of an array, copied where they share memory with that part.

    NumPy mistakes ``x[::2] = x[:n]`` for an assignment that needs no copy.
    """
    written = target[index]
    if type(written) is not array_type or not np.may_share_memory(source, written):
        return source
    return source.copy()


def take_small(x: ndarray, index: ndarray) -> ndarray | None:
    """A few elements or rows of an array of any size, or ``None``; the caller knows the count."""
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


#: :func:`general_compute_small` and :func:`general_view_small`, compiled where the module is built.
compute_small: Callable[..., ndarray | None] = general_compute_small
view_small: Callable[..., ndarray | None] = general_view_small
if short.module is not None:
    compute_small, view_small = short.module.compute_small, short.module.view_small
