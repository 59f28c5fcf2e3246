"""The kernel language: what kernels are written with, under the names of numba-dpex and SYCL 2020.

What a kernel itself refers to is the very object of ``numba_dpex.kernel_api``, so it may take a
name from either place. :class:`Range`, :class:`NdRange` and :class:`LocalAccessor`, which only the
launch sees, derive from numba-dpex's and check what they are given. Importing this module
does not import Numba.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from dparray._compiler.numba_dpex import kernel_language
from dparray.exceptions import KernelArgumentError, KernelRangeError

_language: Any = kernel_language()

AddressSpace = _language.AddressSpace
AtomicRef = _language.AtomicRef
Group = _language.Group
Item = _language.Item
MemoryOrder = _language.MemoryOrder
MemoryScope = _language.MemoryScope
NdItem = _language.NdItem
PrivateArray = _language.PrivateArray
atomic_fence = _language.atomic_fence
group_barrier = _language.group_barrier

__all__ = [
    "AddressSpace",
    "AtomicRef",
    "Group",
    "Item",
    "LocalAccessor",
    "MemoryOrder",
    "MemoryScope",
    "NdItem",
    "NdRange",
    "PrivateArray",
    "Range",
    "atomic_fence",
    "group_barrier",
    "group_broadcast",
    "group_inclusive_scan",
    "group_reduce",
]

_MAX_DIMENSIONS = 3
_LOCAL_DTYPES = frozenset({"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"})


def _extents(what: str, extents: Iterable[Any]) -> tuple[int, ...]:
    """``extents`` as one to three positive Python integers, or an error naming ``what``."""
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
                f"{type(extent).__name__}"
            ) from None
        if number <= 0:
            raise KernelRangeError(
                f"{what}: dimension {dimension} must be positive; got {number}. An empty range "
                "has nothing to run: test the size before the launch"
            )
        checked.append(number)
    return tuple(checked)


class Range(_language.Range):
    """The number of work-items in each of one to three dimensions.

    Args:
        dim0, dim1, dim2: positive integers (NumPy integers too).

    Raises:
        KernelRangeError: an extent is not a positive integer, or there are more than three.

    Example:
        >>> import dparray as dp
        >>> dp.Range(4, 5).size()
        20
    """

    def __new__(cls, *extents: Any) -> Range:
        """A range of one to three extents."""
        if len(extents) == 1 and type(extents[0]) is int and extents[0] > 0:
            return tuple.__new__(cls, extents)  # the common case, without the checks
        while len(extents) > 1 and extents[-1] is None:
            extents = extents[:-1]
        return tuple.__new__(cls, _extents("Range", extents))

    @classmethod
    def like(cls, array: Any) -> Range:
        """One work-item for each element of ``array``, in its shape.

        A 0-d array gives one work-item; more than three dimensions are an error.

        Raises:
            KernelRangeError: the array is empty or has more than three dimensions, or it is none.
        """
        shape = getattr(array, "shape", None)
        if not isinstance(shape, tuple):
            raise KernelRangeError(
                f"Range.like: takes an array; got a {type(array).__name__}. For sizes write "
                "dp.Range(rows, columns)"
            )
        return cls(*(_extents("Range.like", shape) if shape else (1,)))

    def __repr__(self) -> str:
        return f"Range({', '.join(map(str, self))})"


class NdRange(_language.NdRange):
    """A global range divided into work-groups of a local range.

    Args:
        global_size: a :class:`Range`, an integer or a tuple of one to three integers.
        local_size: the same, with as many dimensions; each must divide its global extent.

    Raises:
        KernelRangeError: extents that are no positive integers, that differ in number of
            dimensions, or that do not divide.

    Example:
        >>> import dparray as dp
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
                    f"dimension {dimension}; use {rounded} and test the index in the kernel"
                )

    def __repr__(self) -> str:
        return f"NdRange({tuple(self._global_range)}, {tuple(self._local_range)})"


class LocalAccessor(_language.LocalAccessor):
    """Local memory for each work-group of a launch over an :class:`NdRange`.

    It is passed to the launch and indexed in the kernel. Its values are undefined until a
    work-item writes them.

    Args:
        shape: a positive integer or one to three of them.
        dtype: an integer dtype, float32 or float64.

    Raises:
        KernelRangeError: a shape that is none.
        KernelArgumentError: a dtype that local memory cannot have.

    Example:
        >>> import numpy as np
        >>> import dparray as dp
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
                f"LocalAccessor: local memory holds integers, float32 and float64; got {dtype!r}"
            )
        self._dtype = known.type

    def __repr__(self) -> str:
        return f"LocalAccessor({self._shape}, {np.dtype(self._dtype).name})"


def _as_range(what: str, size: Any) -> Range:
    if isinstance(size, Range):
        return size
    if type(size) is int and size > 0:
        return tuple.__new__(Range, (size,))  # the common case, without the checks
    extents = size if isinstance(size, Iterable) and not isinstance(size, str) else (size,)
    return tuple.__new__(Range, _extents(what, extents))


# --- group algorithms -----------------------------------------------------------------------------

GROUP_OPERATIONS = ("add", "min", "max")


def _only_in_kernels(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name} combines the values of all work-items of a group, so it runs only in a kernel; "
        "dparray.simulate runs kernels in plain Python"
    )


def group_reduce(group: Any, value: Any, operation: str = "add") -> Any:
    """The values of all work-items of a work-group combined; every work-item gets the result.

    All work-items of the group must reach the call. It also is a barrier among them.

    Args:
        group: ``item.get_group()``, of one to three dimensions.
        value: an integer or a float.
        operation: ``"add"``, ``"min"`` or ``"max"``, written out in the call.

    Returns:
        A scalar of the type of ``value``; integers wrap around.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def sum_of_groups(item, x, sums):
        ...     total = dp.group_reduce(item.get_group(), x[item.get_global_id(0)])
        ...     if item.get_local_id(0) == 0:
        ...         sums[item.get_group().get_group_id(0)] = total
        >>> x = dp.arange(8, dtype="int32")
        >>> sums = dp.zeros(2, dtype="int32")
        >>> event = sum_of_groups[dp.NdRange(8, 4)](x, sums)
        >>> sums.tolist()
        [6, 22]
    """
    _only_in_kernels("group_reduce")


def group_broadcast(group: Any, value: Any, local_id: int = 0) -> Any:
    """The value of one work-item, for all work-items of a work-group.

    All work-items of the group must reach the call, with the same ``local_id``.

    Args:
        group: ``item.get_group()``, of one to three dimensions.
        value: an integer or a float.
        local_id: whose value, in row-major order: ``item.get_local_linear_id()`` of that item.

    Returns:
        A scalar of the type of ``value``.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def first_of_group(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.group_broadcast(item.get_group(), x[i])
        >>> x, out = dp.arange(8, dtype="int32"), dp.zeros(8, dtype="int32")
        >>> event = first_of_group[dp.NdRange(8, 4)](x, out)
        >>> out.tolist()
        [0, 0, 0, 0, 4, 4, 4, 4]
    """
    _only_in_kernels("group_broadcast")


def group_inclusive_scan(group: Any, value: Any, operation: str = "add") -> Any:
    """The values of a work-group combined up to and including each work-item's own.

    The order is row-major, that of ``item.get_local_linear_id()``. All work-items of the group
    must reach the call.

    Args:
        group: ``item.get_group()``, of one to three dimensions.
        value: an integer or a float.
        operation: ``"add"``, ``"min"`` or ``"max"``, written out in the call.

    Returns:
        A scalar of the type of ``value``; integers wrap around.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def running_sums(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.group_inclusive_scan(item.get_group(), x[i])
        >>> x, out = dp.ones(8, dtype="int32"), dp.zeros(8, dtype="int32")
        >>> event = running_sums[dp.NdRange(8, 4)](x, out)
        >>> out.tolist()
        [1, 2, 3, 4, 1, 2, 3, 4]
    """
    _only_in_kernels("group_inclusive_scan")
