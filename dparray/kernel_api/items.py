"""Work-items and groups, which tell a kernel its ids and sizes."""

from __future__ import annotations

from typing import NoReturn


def only_in_kernels(name: str) -> NoReturn:
    """Raise the error for a name that works only inside kernels."""
    raise NotImplementedError(
        f"{name} works only in a kernel; dparray.simulate runs kernels in plain Python"
    )


class Item:
    """A work-item of a launch over a :class:`Range`: the first argument of its kernel.

    Example:
        >>> @dp.kernel
        ... def place(item, out):
        ...     out[item.get_id(0)] = item.get_range(0)
        >>> out = dp.zeros(3, dtype="int64")
        >>> event = place[3](out)
        >>> out.tolist()
        [3, 3, 3]
    """

    def __init__(self) -> None:
        only_in_kernels("Item")

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the range."""
        only_in_kernels("Item.dimensions")

    def get_id(self, dim: int) -> int:
        """Return the index of the work-item in one dimension."""
        only_in_kernels("Item.get_id")

    def get_linear_id(self) -> int:
        """Return the row-major index of the work-item over all dimensions."""
        only_in_kernels("Item.get_linear_id")

    def get_range(self, dim: int) -> int:
        """Return the size of the range in one dimension."""
        only_in_kernels("Item.get_range")

    def get_linear_range(self) -> int:
        """Return the number of work-items."""
        only_in_kernels("Item.get_linear_range")


class NdItem:
    """A work-item of a launch over an :class:`NdRange`: the first argument of its kernel.

    Example:
        >>> @dp.kernel
        ... def place(item, out):
        ...     out[item.get_global_id(0)] = item.get_local_id(0)
        >>> out = dp.zeros(4, dtype="int64")
        >>> event = place[dp.NdRange(4, 2)](out)
        >>> out.tolist()
        [0, 1, 0, 1]
    """

    def __init__(self) -> None:
        only_in_kernels("NdItem")

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the range."""
        only_in_kernels("NdItem.dimensions")

    def get_global_id(self, dim: int) -> int:
        """Return the index of the work-item in one dimension."""
        only_in_kernels("NdItem.get_global_id")

    def get_global_linear_id(self) -> int:
        """Return the row-major index of the work-item over all dimensions."""
        only_in_kernels("NdItem.get_global_linear_id")

    def get_local_id(self, dim: int) -> int:
        """Return the index of the work-item within its group, in one dimension."""
        only_in_kernels("NdItem.get_local_id")

    def get_local_linear_id(self) -> int:
        """Return the row-major index of the work-item within its group."""
        only_in_kernels("NdItem.get_local_linear_id")

    def get_global_range(self, dim: int) -> int:
        """Return the size of the global range in one dimension."""
        only_in_kernels("NdItem.get_global_range")

    def get_global_linear_range(self) -> int:
        """Return the number of work-items."""
        only_in_kernels("NdItem.get_global_linear_range")

    def get_local_range(self, dim: int) -> int:
        """Return the size of a group in one dimension."""
        only_in_kernels("NdItem.get_local_range")

    def get_local_linear_range(self) -> int:
        """Return the number of work-items of a group."""
        only_in_kernels("NdItem.get_local_linear_range")

    def get_group(self) -> Group:
        """Return the group of the work-item."""
        only_in_kernels("NdItem.get_group")

    def get_sub_group(self) -> SubGroup:
        """Return the sub-group of the work-item."""
        only_in_kernels("NdItem.get_sub_group")


class Group:
    """The work-group of a work-item, returned by :meth:`NdItem.get_group`.

    Example:
        >>> @dp.kernel
        ... def place(item, out):
        ...     out[item.get_global_id(0)] = item.get_group().get_group_id(0)
        >>> out = dp.zeros(4, dtype="int64")
        >>> event = place[dp.NdRange(4, 2)](out)
        >>> out.tolist()
        [0, 0, 1, 1]
    """

    def __init__(self) -> None:
        only_in_kernels("Group")

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the range."""
        only_in_kernels("Group.dimensions")

    @property
    def leader(self) -> bool:
        """Whether the work-item is the first of the group."""
        only_in_kernels("Group.leader")

    def get_group_id(self, dim: int) -> int:
        """Return the index of the group in one dimension."""
        only_in_kernels("Group.get_group_id")

    def get_group_linear_id(self) -> int:
        """Return the row-major index of the group over all dimensions."""
        only_in_kernels("Group.get_group_linear_id")

    def get_group_range(self, dim: int) -> int:
        """Return the number of groups in one dimension."""
        only_in_kernels("Group.get_group_range")

    def get_group_linear_range(self) -> int:
        """Return the number of groups."""
        only_in_kernels("Group.get_group_linear_range")

    def get_local_range(self, dim: int) -> int:
        """Return the size of a group in one dimension."""
        only_in_kernels("Group.get_local_range")

    def get_local_linear_range(self) -> int:
        """Return the number of work-items of a group."""
        only_in_kernels("Group.get_local_linear_range")


class SubGroup:
    """The sub-group of a work-item, returned by :meth:`NdItem.get_sub_group`.

    The device divides each work-group into sub-groups whose work-items run in lockstep: the lanes
    of a vector on a CPU, a warp on a GPU. The device chooses their size and members; the last
    sub-group may be smaller. All group functions accept a sub-group, and only sub-groups exchange
    values directly (:func:`select_from_group`, :func:`shift_group_left`).

    Example:
        >>> @dp.kernel
        ... def place(item, out):
        ...     part = item.get_sub_group()
        ...     before = dp.exclusive_scan_over_group(part, 1)
        ...     out[item.get_global_id(0)] = before == part.get_local_id()
        >>> out = dp.zeros(4, dtype="bool")
        >>> event = place[dp.NdRange(4, 4)](out)
        >>> out.tolist()
        [True, True, True, True]
    """

    def __init__(self) -> None:
        only_in_kernels("SubGroup")

    @property
    def dimensions(self) -> int:
        """Always 1."""
        only_in_kernels("SubGroup.dimensions")

    @property
    def leader(self) -> bool:
        """Whether the work-item is the first of the sub-group."""
        only_in_kernels("SubGroup.leader")

    def get_local_id(self) -> int:
        """Return the index of the work-item in its sub-group."""
        only_in_kernels("SubGroup.get_local_id")

    def get_local_linear_id(self) -> int:
        """Return the index of the work-item in its sub-group, as :meth:`get_local_id`."""
        only_in_kernels("SubGroup.get_local_linear_id")

    def get_local_range(self) -> int:
        """Return the number of work-items in this sub-group."""
        only_in_kernels("SubGroup.get_local_range")

    def get_local_linear_range(self) -> int:
        """Return the number of work-items in this sub-group, as :meth:`get_local_range`."""
        only_in_kernels("SubGroup.get_local_linear_range")

    def get_max_local_range(self) -> int:
        """Return the number of work-items in the largest sub-group."""
        only_in_kernels("SubGroup.get_max_local_range")

    def get_group_id(self) -> int:
        """Return the index of the sub-group in its work-group."""
        only_in_kernels("SubGroup.get_group_id")

    def get_group_linear_id(self) -> int:
        """Return the index of the sub-group in its work-group, as :meth:`get_group_id`."""
        only_in_kernels("SubGroup.get_group_linear_id")

    def get_group_range(self) -> int:
        """Return the number of sub-groups in the work-group."""
        only_in_kernels("SubGroup.get_group_range")

    def get_group_linear_range(self) -> int:
        """Return the number of sub-groups in the work-group, as :meth:`get_group_range`."""
        only_in_kernels("SubGroup.get_group_linear_range")
