"""Group algorithms: what the work-items of a work-group or a sub-group compute together.

The names with ``group_`` in front are this package's first; those with ``_over_group`` and
``_of_group`` are SYCL 2020's.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

# Operations that are given by name; the other way to give one is a device function.
GROUP_OPERATIONS = ("add", "mul", "min", "max", "and", "or", "xor")


def neutral_of(operation: str, dtype: np.dtype[Any]) -> int | float:
    """Return the number that changes nothing when it is combined with another of a dtype."""
    if operation in ("min", "max"):
        if dtype.kind == "f":
            return float("inf") if operation == "min" else float("-inf")
        limits = np.iinfo(dtype)
        return int(limits.max if operation == "min" else limits.min)
    if operation == "and":
        return -1 if dtype.kind == "i" else int(np.iinfo(dtype).max)
    return 1 if operation == "mul" else 0


def _only_in_kernels(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name} combines the values of all work-items of a group, so it runs only in a kernel; "
        "dparray.simulate runs kernels in plain Python"
    )


def group_reduce(group: Any, value: Any, operation: str = "add") -> Any:
    """Return the values of all work-items of a work-group combined; every work-item gets the
    result.

    All work-items of the group must reach the call. It also is a barrier among them.

    Args:
        group: ``item.get_group()``, of one to three dimensions, or ``item.get_sub_group()``.
        value: an integer or a float.
        operation: ``"add"``, ``"mul"``, ``"min"``, ``"max"``, and for integers ``"and"``, ``"or"``,
            ``"xor"``, written out in the call; or a device function of two values that is
            associative.

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
    """Return the value of one work-item, for all work-items of a work-group.

    All work-items of the group must reach the call, with the same ``local_id``.

    Args:
        group: ``item.get_group()``, of one to three dimensions, or ``item.get_sub_group()``.
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
    """Return the values of a work-group combined up to and including each work-item's own.

    The order is row-major, that of ``item.get_local_linear_id()``. All work-items of the group
    must reach the call.

    Args:
        group: ``item.get_group()``, of one to three dimensions, or ``item.get_sub_group()``.
        value: an integer or a float.
        operation: ``"add"``, ``"mul"``, ``"min"``, ``"max"``, and for integers ``"and"``, ``"or"``,
            ``"xor"``, written out in the call; or a device function of two values that is
            associative.

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


def exclusive_scan_over_group(
    group: Any, value: Any, operation: Any = "add", initial: Any = None
) -> Any:
    """Return the values of the work-items before each work-item combined.

    The order is row-major, that of ``item.get_local_linear_id()``. All work-items of the group
    must reach the call.

    Args:
        group: ``item.get_group()``, of one to three dimensions, or ``item.get_sub_group()``.
        value: an integer or a float.
        operation: as of :func:`group_reduce`.
        initial: what the first work-item gets, and what all others are combined with; the number
            that changes nothing if not given. A device function needs it.

    Returns:
        A scalar of the type of ``value``; integers wrap around.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def starts(item, lengths, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.exclusive_scan_over_group(item.get_group(), lengths[i])
        >>> lengths, out = dp.asarray([3, 1, 4, 1]), dp.zeros(4, dtype="int64")
        >>> event = starts[dp.NdRange(4, 4)](lengths, out)
        >>> out.tolist()
        [0, 3, 4, 8]
    """
    _only_in_kernels("exclusive_scan_over_group")


def any_of_group(group: Any, predicate: Any) -> Any:
    """Return whether the predicate holds for at least one work-item of a work-group.

    All work-items of the group must reach the call. It also is a barrier among them.

    Args:
        group: ``item.get_group()``, of one to three dimensions, or ``item.get_sub_group()``.
        predicate: a Boolean or a number, which is true if it is not 0.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def has_negative(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.any_of_group(item.get_group(), x[i] < 0)
        >>> x, out = dp.asarray([1, 2, -3, 4]), dp.zeros(4, dtype="bool")
        >>> event = has_negative[dp.NdRange(4, 2)](x, out)
        >>> out.tolist()
        [False, False, True, True]
    """
    _only_in_kernels("any_of_group")


def all_of_group(group: Any, predicate: Any) -> Any:
    """Return whether the predicate holds for all work-items of a work-group; as
    :func:`any_of_group`.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def all_positive(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.all_of_group(item.get_group(), x[i] > 0)
        >>> x, out = dp.asarray([1, 2, -3, 4]), dp.zeros(4, dtype="bool")
        >>> event = all_positive[dp.NdRange(4, 2)](x, out)
        >>> out.tolist()
        [True, True, False, False]
    """
    _only_in_kernels("all_of_group")


def none_of_group(group: Any, predicate: Any) -> Any:
    """Return whether the predicate holds for no work-item of a work-group; as :func:`any_of_group`.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def none_negative(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.none_of_group(item.get_group(), x[i] < 0)
        >>> x, out = dp.asarray([1, 2, -3, 4]), dp.zeros(4, dtype="bool")
        >>> event = none_negative[dp.NdRange(4, 2)](x, out)
        >>> out.tolist()
        [True, True, False, False]
    """
    _only_in_kernels("none_of_group")


def select_from_group(group: Any, value: Any, remote_local_id: Any) -> Any:
    """Return the value of another work-item of a sub-group, which each may choose for itself.

    All work-items of the sub-group must reach the call.

    Args:
        group: ``item.get_sub_group()``.
        value: an integer or a float.
        remote_local_id: whose value, by ``group.get_local_id()`` of that item. Where the sub-group
            has no such item, it is the work-item's own value.

    Returns:
        A scalar of the type of ``value``.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def reverse(item, x, out):
        ...     part, i = item.get_sub_group(), item.get_global_id(0)
        ...     last = part.get_local_range() - 1
        ...     out[i] = dp.select_from_group(part, x[i], last - part.get_local_id())
        >>> x, out = dp.arange(4), dp.zeros(4, dtype="int64")
        >>> event = reverse[dp.NdRange(4, 4)](x, out)
        >>> out.tolist()
        [3, 2, 1, 0]
    """
    _only_in_kernels("select_from_group")


def shift_group_left(group: Any, value: Any, delta: Any = 1) -> Any:
    """Return the value of the work-item that comes ``delta`` after each in a sub-group.

    As :func:`select_from_group`: the last ones get their own value.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def steps(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.shift_group_left(item.get_sub_group(), x[i]) - x[i]
        >>> x, out = dp.asarray([1, 4, 9, 16]), dp.zeros(4, dtype="int64")
        >>> event = steps[dp.NdRange(4, 4)](x, out)
        >>> out.tolist()
        [3, 5, 7, 0]
    """
    _only_in_kernels("shift_group_left")


def shift_group_right(group: Any, value: Any, delta: Any = 1) -> Any:
    """Return the value of the work-item that comes ``delta`` before each in a sub-group.

    As :func:`select_from_group`: the first ones get their own value.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def steps(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = x[i] - dp.shift_group_right(item.get_sub_group(), x[i])
        >>> x, out = dp.asarray([1, 4, 9, 16]), dp.zeros(4, dtype="int64")
        >>> event = steps[dp.NdRange(4, 4)](x, out)
        >>> out.tolist()
        [0, 3, 5, 7]
    """
    _only_in_kernels("shift_group_right")


def permute_group_by_xor(group: Any, value: Any, mask: Any) -> Any:
    """Return the value of the work-item of a sub-group whose id differs in the bits of ``mask``.

    As :func:`select_from_group`: where there is no such item, it is the own value.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def pairs(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.permute_group_by_xor(item.get_sub_group(), x[i], 1)
        >>> x, out = dp.arange(4), dp.zeros(4, dtype="int64")
        >>> event = pairs[dp.NdRange(4, 4)](x, out)
        >>> out.tolist()
        [1, 0, 3, 2]
    """
    _only_in_kernels("permute_group_by_xor")


def reduce_over_group(group: Any, value: Any, operation: str = "add") -> Any:
    """As :func:`group_reduce`; this is SYCL's name.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def largest_of_groups(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.reduce_over_group(item.get_group(), x[i], "max")
        >>> x, out = dp.asarray([3, 1, 4, 1]), dp.zeros(4, dtype="int64")
        >>> event = largest_of_groups[dp.NdRange(4, 2)](x, out)
        >>> out.tolist()
        [3, 3, 4, 4]
    """
    _only_in_kernels("reduce_over_group")


def inclusive_scan_over_group(group: Any, value: Any, operation: str = "add") -> Any:
    """As :func:`group_inclusive_scan`; this is SYCL's name.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def largest_so_far(item, x, out):
        ...     i = item.get_global_id(0)
        ...     out[i] = dp.inclusive_scan_over_group(item.get_group(), x[i], "max")
        >>> x, out = dp.asarray([3, 1, 4, 1]), dp.zeros(4, dtype="int64")
        >>> event = largest_so_far[dp.NdRange(4, 4)](x, out)
        >>> out.tolist()
        [3, 3, 4, 4]
    """
    _only_in_kernels("inclusive_scan_over_group")
