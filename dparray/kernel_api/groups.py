"""Group algorithms: results that the work-items of a work-group or a sub-group compute together.

Names that begin with ``group_`` were dparray's first; SYCL 2020 uses ``_over_group`` and
``_of_group``.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

# # Operations that are named by a string; a device function is the alternative.
GROUP_OPERATIONS = ("add", "mul", "min", "max", "and", "or", "xor")


def neutral_of(operation: str, dtype: np.dtype[Any]) -> int | float:
    """Return the identity of an operation for a dtype."""
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
        f"{name} combines the values of all work-items of a group, so it works only in a kernel; "
        "dparray.simulate runs kernels in plain Python"
    )


def group_reduce(group: Any, value: Any, operation: str = "add") -> Any:
    """Combine the values of all work-items of a work-group; every work-item gets the result.

    All work-items of the group must reach the call, which is also a barrier.

    Args:
        group: ``item.get_group()``, with one to three dimensions, or ``item.get_sub_group()``.
        value: an integer or a float.
        operation: ``"add"``, ``"mul"``, ``"min"``, ``"max"``, and for integers ``"and"``, ``"or"``,
            ``"xor"``, as a string literal; or an associative device function of two values.

    Returns:
        A scalar of the type of ``value``; integers wrap around on overflow.

    Example:
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
    """Return the value of one work-item to all work-items of a work-group.

    All work-items of the group must reach the call, with the same ``local_id``.

    Args:
        group: ``item.get_group()``, with one to three dimensions, or ``item.get_sub_group()``.
        value: an integer or a float.
        local_id: the work-item whose value is returned, as its ``item.get_local_linear_id()``.

    Returns:
        A scalar of the type of ``value``.

    Example:
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
    """Combine the values of a work-group up to and including that of each work-item.

    The order is row-major, that of ``item.get_local_linear_id()``. All work-items of the group must
    reach the call.

    Args:
        group: ``item.get_group()``, with one to three dimensions, or ``item.get_sub_group()``.
        value: an integer or a float.
        operation: ``"add"``, ``"mul"``, ``"min"``, ``"max"``, and for integers ``"and"``, ``"or"``,
            ``"xor"``, as a string literal; or an associative device function of two values.

    Returns:
        A scalar of the type of ``value``; integers wrap around on overflow.

    Example:
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
    """Combine the values of the work-items before each work-item.

    The order is row-major, that of ``item.get_local_linear_id()``. All work-items of the group
    must reach the call.

    Args:
        group: ``item.get_group()``, with one to three dimensions, or ``item.get_sub_group()``.
        value: an integer or a float.
        operation: see :func:`group_reduce`.
        initial: the result of the first work-item, which is combined with all later ones; by
            default the identity of the operation. Required for a device function.

    Returns:
        A scalar of the type of ``value``; integers wrap around on overflow.

    Example:
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

    All work-items of the group must reach the call, which is also a barrier.

    Args:
        group: ``item.get_group()``, with one to three dimensions, or ``item.get_sub_group()``.
        predicate: a Boolean or a number; nonzero is true.

    Example:
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
    """Return whether the predicate holds for all work-items of a work-group.

    See :func:`any_of_group`.

    Example:
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
    """Return whether the predicate holds for no work-item; see :func:`any_of_group`.

    Example:
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
    """Return the value of another work-item of a sub-group; each work-item chooses which.

    All work-items of the sub-group must reach the call.

    Args:
        group: ``item.get_sub_group()``.
        value: an integer or a float.
        remote_local_id: the ``group.get_local_id()`` of the work-item whose value is returned. If
            the sub-group has no such work-item, the call returns the caller's own value.

    Returns:
        A scalar of the type of ``value``.

    Example:
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
    """Return the value of the work-item ``delta`` positions later in the sub-group.

    The last work-items get their own value; see :func:`select_from_group`.

    Example:
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
    """Return the value of the work-item ``delta`` positions earlier in the sub-group.

    The first work-items get their own value; see :func:`select_from_group`.

    Example:
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
    """Return the value of the work-item whose id differs in the bits of ``mask``.

    If there is no such work-item, return the caller's own value; see :func:`select_from_group`.

    Example:
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
    """Call :func:`group_reduce` under its SYCL name.

    Example:
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
    """Call :func:`group_inclusive_scan` under its SYCL name.

    Example:
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
