"""The kernel language: the names that kernels use, which are those of SYCL 2020.

The classes and functions for a work-item (:class:`Item`, :class:`AtomicRef`, :func:`group_barrier`,
...) work only inside kernels; :func:`dparray.simulate` implements them in plain Python. The classes
for a launch, :class:`Range`, :class:`NdRange` and :class:`LocalAccessor`, check their arguments.
In: names and sizes. Out: objects for kernels and launches. Imports: rows up to ``runtime``.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable
from copy import copy
from math import prod
from typing import Any

import numpy as np

from dparray.exceptions import KernelArgumentError, KernelRangeError
from dparray.kernel_api.constants import constexpr
from dparray.kernel_api.groups import (
    all_of_group,
    any_of_group,
    exclusive_scan_over_group,
    group_broadcast,
    group_inclusive_scan,
    group_reduce,
    inclusive_scan_over_group,
    none_of_group,
    permute_group_by_xor,
    reduce_over_group,
    select_from_group,
    shift_group_left,
    shift_group_right,
)
from dparray.kernel_api.items import Group, Item, NdItem, SubGroup, only_in_kernels
from dparray.kernel_api.vectors import vec, vec_full, vec_load, vec_store, vec_where

__all__ = [
    "AddressSpace",
    "AtomicRef",
    "Group",
    "Item",
    "LocalAccessor",
    "LocalArray",
    "MemoryOrder",
    "MemoryScope",
    "NdItem",
    "NdRange",
    "PrivateArray",
    "Range",
    "SubGroup",
    "all_of_group",
    "any_of_group",
    "atomic_fence",
    "constexpr",
    "exclusive_scan_over_group",
    "group_barrier",
    "group_broadcast",
    "group_inclusive_scan",
    "group_reduce",
    "inclusive_scan_over_group",
    "none_of_group",
    "permute_group_by_xor",
    "printf",
    "reduce_over_group",
    "select_from_group",
    "shift_group_left",
    "shift_group_right",
    "vec",
    "vec_full",
    "vec_load",
    "vec_store",
    "vec_where",
]

_MAX_DIMENSIONS = 3
_UNPACKED = "; pass each dimension as a separate argument, as in dp.Range(*x.shape)"
_LOCAL_DTYPES = frozenset({"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"})


# --- constants ------------------------------------------------------------------------------------


class MemoryOrder(enum.IntEnum):
    """How an atomic operation or a fence orders the reads and writes around it.

    Example:
        >>> @dp.kernel
        ... def place(item, out):
        ...     dp.AtomicRef(out, 0, dp.MemoryOrder.ACQ_REL).fetch_add(1)
        >>> out = dp.zeros(1, dtype="int64")
        >>> event = place[3](out)
        >>> out.tolist()
        [3]
    """

    RELAXED = 0
    ACQUIRE = 1
    CONSUME_UNSUPPORTED = 2
    RELEASE = 3
    ACQ_REL = 4
    SEQ_CST = 5


class MemoryScope(enum.IntEnum):
    """The work-items for which an atomic operation, a fence or a barrier is ordered.

    Example:
        >>> @dp.kernel
        ... def place(item, out):
        ...     dp.AtomicRef(out, 0, memory_scope=dp.MemoryScope.DEVICE).fetch_add(1)
        >>> out = dp.zeros(1, dtype="int64")
        >>> event = place[3](out)
        >>> out.tolist()
        [3]
    """

    WORK_ITEM = 0
    SUB_GROUP = 1
    WORK_GROUP = 2
    DEVICE = 3
    SYSTEM = 4


class AddressSpace(enum.IntEnum):
    """The memory that holds an array.

    Example:
        >>> @dp.kernel
        ... def place(item, out):
        ...     dp.AtomicRef(out, 0, address_space=dp.AddressSpace.GLOBAL).fetch_add(1)
        >>> out = dp.zeros(1, dtype="int64")
        >>> event = place[3](out)
        >>> out.tolist()
        [3]
    """

    PRIVATE = 0
    GLOBAL = 1
    CONSTANT = 2
    LOCAL = 3
    GENERIC = 4


# --- memory and order -----------------------------------------------------------------------------


class PrivateArray:
    """A private array of one work-item.

    Args:
        shape: a positive integer or a tuple of positive integers, computed from constants.
        dtype: the dtype of the elements.
        fill_zeros: whether the elements start as zero; otherwise they are undefined.

    Example:
        >>> @dp.kernel
        ... def place(item, out, radius: dp.constexpr):
        ...     window = dp.PrivateArray(2 * radius + 1, dp.int64, fill_zeros=True)
        ...     out[item.get_id(0)] = window.size + window[0]
        >>> out = dp.zeros(2, dtype="int64")
        >>> event = place[2](out, 3)
        >>> out.tolist()
        [7, 7]
    """

    def __init__(self, shape: Any, dtype: Any, fill_zeros: bool = False) -> None:
        only_in_kernels("PrivateArray")


class LocalArray:
    """Local memory of a work-group, allocated in the kernel: one array for all of its work-items.

    Each call in the source allocates one array, however often it is executed. The values are
    undefined until a work-item writes them.

    Args:
        shape: a positive integer or a tuple of positive integers, computed from constants. For a
            shape chosen at launch, use a :class:`LocalAccessor`.
        dtype: the dtype of the elements.

    Example:
        >>> @dp.kernel
        ... def reverse_groups(item, x):
        ...     local, k = dp.LocalArray(3, dp.int32), item.get_local_id(0)
        ...     local[k] = x[item.get_global_id(0)]
        ...     dp.group_barrier(item.get_group())
        ...     x[item.get_global_id(0)] = local[2 - k]
        >>> x = dp.arange(6, dtype="int32")
        >>> event = reverse_groups[dp.NdRange(6, 3)](x)
        >>> x.tolist()
        [2, 1, 0, 5, 4, 3]
    """

    def __init__(self, shape: Any, dtype: Any) -> None:
        only_in_kernels("LocalArray")


class AtomicRef:
    """An array element that several work-items update atomically.

    Each method is one atomic operation. A ``fetch`` method also takes a vector (:class:`vec`): it
    changes the elements from the index on along the last axis, each by an atomic operation, and
    returns the previous ones as a vector. Outside of kernels, references work on host arrays, one
    operation after another.

    Args:
        ref: the array, in global or local memory, of int32, int64, uint32, uint64, float32 or
            float64.
        index: the index of the element: an integer, or a tuple of integers.
        memory_order: how the operations order the reads and writes before and after them.
        memory_scope: the work-items for which they are ordered.
        address_space: the memory of the array; inferred by default.

    Example:
        >>> @dp.kernel
        ... def count(item, x, total):
        ...     if x[item.get_id(0)] > 2:
        ...         dp.AtomicRef(total, 0).fetch_add(1)
        >>> total = dp.zeros(1, dtype="int32")
        >>> event = dp.call_kernel(count, dp.Range(5), dp.arange(5), total)
        >>> total.item()
        2
    """

    def __init__(
        self,
        ref: Any,
        index: Any,
        memory_order: MemoryOrder = MemoryOrder.RELAXED,
        memory_scope: MemoryScope = MemoryScope.DEVICE,
        address_space: AddressSpace | None = None,
    ) -> None:
        if not hasattr(ref, "__getitem__"):
            raise TypeError(f"AtomicRef: ref must be an array; got {ref!r}")
        self.ref = ref
        self.memory_order = memory_order
        self.memory_scope = memory_scope
        self.address_space = address_space
        self._index = index

    def load(self) -> Any:
        """Return the value."""
        return self.ref[self._index]

    def store(self, val: Any) -> None:
        """Assign a value."""
        self.ref[self._index] = val

    def exchange(self, val: Any) -> Any:
        """Assign a value; return the previous one."""
        return self._change(lambda before: val)

    def compare_exchange(self, expected_ref: Any, desired: Any, expected_idx: Any = 0) -> Any:
        """Assign ``desired`` if the value is the expected one.

        If ``expected_ref`` is a number, return whether it was the value, and the previous value.
        If it is an array, as in SYCL, ``expected_ref[expected_idx]`` is the expected value: return
        whether it was the value, and otherwise store the value there.
        """
        is_number = not hasattr(expected_ref, "__setitem__")
        before = self.load()
        swapped = before == (expected_ref if is_number else expected_ref[expected_idx])
        if swapped:
            self.store(desired)
        elif not is_number:
            expected_ref[expected_idx] = before
        return (bool(swapped), before) if is_number else bool(swapped)

    def fetch_add(self, val: Any) -> Any:
        """Add a value; return the previous one, as all ``fetch`` methods do."""
        return self._change(lambda before: before + val)

    def fetch_sub(self, val: Any) -> Any:
        """Subtract a value."""
        return self._change(lambda before: before - val)

    def fetch_min(self, val: Any) -> Any:
        """Assign the minimum of the element and a value."""
        return self._change(lambda before: min(before, val))

    def fetch_max(self, val: Any) -> Any:
        """Assign the maximum of the element and a value."""
        return self._change(lambda before: max(before, val))

    def fetch_and(self, val: Any) -> Any:
        """Combine with a value by ``&``, for integers only."""
        return self._change(lambda before: before & val)

    def fetch_or(self, val: Any) -> Any:
        """Combine with a value by ``|``, for integers only."""
        return self._change(lambda before: before | val)

    def fetch_xor(self, val: Any) -> Any:
        """Combine with a value by ``^``, for integers only."""
        return self._change(lambda before: before ^ val)

    def _change(self, change: Callable[[Any], Any]) -> Any:
        before = copy(self.load())
        self.store(change(before))
        return before


def group_barrier(
    group: Group | SubGroup, fence_scope: MemoryScope = MemoryScope.WORK_GROUP
) -> None:
    """Wait until all work-items of a group reach this call; earlier writes are then visible.

    Args:
        group: ``item.get_group()`` or ``item.get_sub_group()``.
        fence_scope: the work-items to which the earlier writes are visible.

    Example:
        >>> @dp.kernel
        ... def place(item, out):
        ...     dp.group_barrier(item.get_group())
        ...     out[item.get_global_id(0)] = 1
        >>> out = dp.zeros(2, dtype="int64")
        >>> event = place[dp.NdRange(2, 2)](out)
        >>> out.tolist()
        [1, 1]
    """
    only_in_kernels("group_barrier")


def printf(format: str, *values: Any) -> None:
    r"""Print numbers from a kernel, in a C format.

    Args:
        format: a string literal. Conversions are ``%d``, ``%i``, ``%u``, ``%x``, ``%X``, ``%o`` and
            ``%c`` for integers and ``%f``, ``%e``, ``%g`` (and their capitals) for floats, with
            flags, width and precision; ``%%`` is a percent sign. No newline is added: write
            ``\n``.
        values: one number for each conversion; Booleans count as integers.

    Example:
        >>> @dp.kernel
        ... def show(item, x):
        ...     if x[0] > 1:
        ...         dp.printf("item %d: %6.2f\n", item.get_id(0), x[0])
        >>> event = show[1](dp.zeros(1))
    """
    only_in_kernels("printf")


def atomic_fence(memory_order: MemoryOrder, memory_scope: MemoryScope) -> None:
    """Order the reads and writes of the work-item before and after the fence, within a scope.

    Example:
        >>> @dp.kernel
        ... def place(item, out):
        ...     dp.atomic_fence(dp.MemoryOrder.ACQ_REL, dp.MemoryScope.DEVICE)
        ...     out[item.get_id(0)] = 1
        >>> out = dp.zeros(2, dtype="int64")
        >>> event = place[2](out)
        >>> out.tolist()
        [1, 1]
    """
    only_in_kernels("atomic_fence")


# --- ranges ---------------------------------------------------------------------------------------


_MAX_ITEMS = 2**63


def _extents(what: str, extents: Iterable[Any]) -> tuple[int, ...]:
    """Return one to three positive Python integers, or raise an error that names ``what``."""
    given = tuple(extents)
    if not 1 <= len(given) <= _MAX_DIMENSIONS:
        raise KernelRangeError(
            f"{what}: a range has 1, 2 or 3 dimensions; got {len(given)}: {given}"
        )
    checked = []
    for dimension, extent in enumerate(given):
        try:
            if isinstance(extent, bool):
                raise TypeError
            number = operator.index(extent)
        except TypeError:
            raise KernelRangeError(
                f"{what}: dimension {dimension} must be an integer; got {extent!r} of type "
                f"{type(extent).__name__}{_UNPACKED if isinstance(extent, tuple | list) else ''}"
            ) from None
        if number < 0 or (number == 0 and not what.startswith("Range")):
            raise KernelRangeError(f"{what}: dimension {dimension} must be positive; got {number}")
        if number >= _MAX_ITEMS:
            raise KernelRangeError(
                f"{what}: dimension {dimension} has {number} work-items; a 64-bit index ends"
                f" at {_MAX_ITEMS - 1}. Let each work-item process several elements"
            )
        checked.append(number)
    if (total := prod(checked)) >= _MAX_ITEMS:
        raise KernelRangeError(
            f"{what}: {' x '.join(map(str, checked))} are {total} work-items; a 64-bit index"
            f" ends at {_MAX_ITEMS - 1}. Let each work-item process several elements"
        )
    return tuple(checked)


class Range(tuple[int, ...]):
    """The number of work-items in each of one to three dimensions.

    Args:
        dim0, dim1, dim2: integers (NumPy integers too). If one is 0, a launch runs nothing.

    Raises:
        KernelRangeError: a size is negative or not an integer, or there are more than three.

    Example:
        >>> dp.Range(4, 5).size()
        20
    """

    def __new__(cls, *extents: Any) -> Range:
        """Create a range of one to three sizes."""
        if len(extents) == 1 and type(extents[0]) is int and 0 < extents[0] < _MAX_ITEMS:
            return tuple.__new__(cls, extents)  # common case without checks
        while len(extents) > 1 and extents[-1] is None:
            extents = extents[:-1]
        return tuple.__new__(cls, _extents("Range", extents))

    def __getnewargs__(self) -> tuple[int, ...]:
        """Return the sizes, from which copying and unpickling recreate the range."""
        return tuple(self)

    @classmethod
    def like(cls, array: Any) -> Range:
        """Create a range with one work-item for each element of ``array``, in its shape.

        A 0-d array gives one work-item; more than three dimensions raise an error.

        Raises:
            KernelRangeError: the argument is not an array, or has more than three dimensions.
        """
        shape = getattr(array, "shape", None)
        if not isinstance(shape, tuple):
            raise KernelRangeError(
                f"Range.like: array must be an array, not {type(array).__name__}. For sizes write "
                "dp.Range(rows, columns)"
            )
        return cls(*(_extents("Range.like", shape) if shape else (1,)))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self)

    @property
    def dim0(self) -> int:
        """The size of the first dimension."""
        return self[0]

    @property
    def dim1(self) -> int:
        """The size of the second dimension; -1 if there is none."""
        return self[1] if len(self) > 1 else -1

    @property
    def dim2(self) -> int:
        """The size of the third dimension; -1 if there is none."""
        return self[2] if len(self) > 2 else -1

    def get(self, index: int) -> int:
        """Return the size of a dimension."""
        return self[index]

    def size(self) -> int:
        """Return the number of work-items."""
        return prod(self)

    def __repr__(self) -> str:
        return f"Range({', '.join(map(str, self))})"


class NdRange:
    """A global range divided into work-groups of a local range.

    Args:
        global_size: a :class:`Range`, an integer or a tuple of one to three integers.
        local_size: the same, with as many dimensions; each size must divide the global one.

    Raises:
        KernelRangeError: a size is not a positive integer, the numbers of dimensions differ, or a
            local size does not divide the global one.

    Example:
        >>> dp.NdRange((64, 32), (8, 8)).local_range
        Range(8, 8)
    """

    def __init__(self, global_size: Any, local_size: Any) -> None:
        self._global_range = _as_range("NdRange: global size", global_size)
        self._local_range = _as_range("NdRange: local size", local_size)
        if len(self._global_range) != len(self._local_range):
            raise KernelRangeError(
                f"NdRange: the global size {tuple(self._global_range)} has "
                f"{len(self._global_range)} dimensions and the local size "
                f"{tuple(self._local_range)} has {len(self._local_range)}"
            )
        if not any(map(operator.mod, self._global_range, self._local_range)):
            return
        for dimension, (extent, local) in enumerate(
            zip(self._global_range, self._local_range, strict=True)
        ):
            if extent % local:
                rounded = -(-extent // local) * local
                raise KernelRangeError(
                    f"NdRange: the local size {local} does not divide the global size {extent} in "
                    f"dimension {dimension}; use {rounded} and check the index in the kernel"
                )

    @property
    def global_range(self) -> Range:
        """The number of work-items in each dimension."""
        return self._global_range

    @property
    def local_range(self) -> Range:
        """The size of a work-group in each dimension."""
        return self._local_range

    def get_global_range(self) -> Range:
        """Return the number of work-items in each dimension."""
        return self._global_range

    def get_local_range(self) -> Range:
        """Return the size of a work-group in each dimension."""
        return self._local_range

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NdRange):
            return NotImplemented
        return (self._global_range, self._local_range) == (other._global_range, other._local_range)

    def __hash__(self) -> int:
        return hash((self._global_range, self._local_range))

    def __repr__(self) -> str:
        return f"NdRange({tuple(self._global_range)}, {tuple(self._local_range)})"


class LocalAccessor:
    """Local memory for each work-group of a launch over an :class:`NdRange`.

    Pass it to the launch and index it in the kernel. Its values are undefined until a work-item
    writes them.

    Args:
        shape: a positive integer, or one to three of them.
        dtype: an integer dtype, float16, float32 or float64.

    Raises:
        KernelRangeError: the shape is invalid.
        KernelArgumentError: local memory does not support the dtype.

    Example:
        >>> import numpy as np
        >>> @dp.kernel
        ... def reverse_groups(item, x, local):
        ...     i = item.get_local_id(0)
        ...     local[i] = x[item.get_global_id(0)]
        ...     dp.group_barrier(item.get_group())
        ...     x[item.get_global_id(0)] = local[local.shape[0] - 1 - i]
        >>> x = dp.arange(6, dtype="int32")
        >>> event = reverse_groups[dp.NdRange(6, 3)](x, dp.LocalAccessor(3, np.int32))
        >>> x.tolist()
        [2, 1, 0, 5, 4, 3]
    """

    def __init__(self, shape: Any, dtype: Any) -> None:
        self._shape = tuple(_as_range("LocalAccessor", shape))
        try:
            known = np.dtype(dtype)
        except TypeError:
            known = None
        if known is None or f"{known.kind}{known.itemsize}" not in _LOCAL_DTYPES:
            raise KernelArgumentError(
                "LocalAccessor: local memory holds integers, float16, float32 and float64; got "
                f"{dtype!r}"
            )
        self._dtype = known.type

    def __repr__(self) -> str:
        return f"LocalAccessor({self._shape}, {np.dtype(self._dtype).name})"


def _as_range(what: str, size: Any) -> Range:
    if isinstance(size, Range):
        return size
    if type(size) is int and size > 0:
        return tuple.__new__(Range, (size,))  # common case without checks
    extents = size if isinstance(size, Iterable) and not isinstance(size, str) else (size,)
    return tuple.__new__(Range, _extents(what, extents))
