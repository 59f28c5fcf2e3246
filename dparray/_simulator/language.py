"""The work-items and groups of a simulation."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from dparray._simulator.memory import WorkItem


def linear_index(index: Sequence[Any], extents: Sequence[Any]) -> int:
    result = 0
    for one, extent in zip(index, extents, strict=True):
        result = result * extent + one
    return result


def _of_dimension(numbers: tuple[Any, ...], dim: Any) -> Any:
    if not 0 <= dim < len(numbers):
        raise IndexError(f"dimension {dim} is asked for, and the range has {len(numbers)}")
    return numbers[dim]


class SimulatedItem:
    """``Item``: the id of a work-item in a plain range."""

    def __init__(self, work_item: WorkItem, global_size: tuple[int, ...]) -> None:
        self.work_item = work_item
        self._global_id = tuple(work_item.global_id)
        self._global_size = tuple(global_size)

    @property
    def dimensions(self) -> int:
        return len(self._global_size)

    def get_id(self, dim: Any) -> Any:
        return _of_dimension(self._global_id, dim)

    def get_linear_id(self) -> Any:
        return linear_index(self._global_id, self._global_size)

    def get_range(self, dim: Any) -> Any:
        return _of_dimension(self._global_size, dim)

    def get_linear_range(self) -> Any:
        return math.prod(map(int, self._global_size))


class _Group:
    """``Group``: the work-group of an item."""

    def __init__(
        self,
        work_item: WorkItem,
        group_id: tuple[int, ...],
        global_size: tuple[int, ...],
        local_size: tuple[int, ...],
    ) -> None:
        self._leader = work_item.local_linear == 0
        self._group_id = tuple(group_id)
        self._local_size = tuple(local_size)
        self._group_range = tuple(map(operator.floordiv, global_size, local_size))

    @property
    def dimensions(self) -> int:
        return len(self._local_size)

    @property
    def leader(self) -> bool:
        return self._leader

    def get_group_id(self, dim: Any) -> Any:
        return _of_dimension(self._group_id, dim)

    def get_group_linear_id(self) -> Any:
        return linear_index(self._group_id, self._group_range)

    def get_group_range(self, dim: Any) -> Any:
        return _of_dimension(self._group_range, dim)

    def get_group_linear_range(self) -> Any:
        return math.prod(map(int, self._group_range))

    def get_local_range(self, dim: Any) -> Any:
        return _of_dimension(self._local_size, dim)

    def get_local_linear_range(self) -> Any:
        return math.prod(map(int, self._local_size))


class SimulatedSubGroup:
    """``SubGroup``: consecutive work-items along the first dimension, as on CPU devices."""

    def __init__(self, work_item: WorkItem, local_size: tuple[int, ...], width: int) -> None:
        in_row = -(-local_size[0] // width)
        first = work_item.part % in_row * width
        self.members = min(width, local_size[0] - first)
        self._work_item = work_item
        self._width = width
        self._count = in_row * math.prod(local_size[1:])

    @property
    def dimensions(self) -> int:
        return 1

    @property
    def leader(self) -> bool:
        return self._work_item.lane == 0

    def get_local_id(self) -> Any:
        return self._work_item.lane

    def get_local_range(self) -> Any:
        return self.members

    def get_max_local_range(self) -> Any:
        return self._width

    def get_group_id(self) -> Any:
        return self._work_item.part

    def get_group_range(self) -> Any:
        return self._count

    get_local_linear_id = get_local_id
    get_local_linear_range = get_local_range
    get_group_linear_id = get_group_id
    get_group_linear_range = get_group_range


def position_in_sub_group(
    local_id: tuple[int, ...], local_size: tuple[int, ...], width: int
) -> tuple[int, int]:
    """Return the index of a work-item's sub-group in its group, and its index in the sub-group."""
    row = 0
    for one, extent in zip(local_id[:0:-1], local_size[:0:-1], strict=True):
        row = row * extent + one
    block, lane = divmod(local_id[0], width)
    return row * -(-local_size[0] // width) + block, lane


class SimulatedNdItem:
    """``NdItem``: the ids of a work-item in a range of work-groups."""

    def __init__(
        self,
        work_item: WorkItem,
        local_id: tuple[int, ...],
        global_size: tuple[int, ...],
        local_size: tuple[int, ...],
        width: int,
    ) -> None:
        self.work_item = work_item
        self._global = SimulatedItem(work_item, global_size)
        self._local_id = tuple(local_id)
        self._local_size = tuple(local_size)
        group_id = tuple(map(operator.floordiv, work_item.global_id, local_size))
        self._group = _Group(work_item, group_id, global_size, local_size)
        self._sub_group = SimulatedSubGroup(work_item, local_size, width)

    @property
    def dimensions(self) -> int:
        return len(self._local_size)

    def get_global_id(self, dim: Any) -> Any:
        return self._global.get_id(dim)

    def get_global_linear_id(self) -> Any:
        return self._global.get_linear_id()

    def get_global_range(self, dim: Any) -> Any:
        return self._global.get_range(dim)

    def get_global_linear_range(self) -> Any:
        return self._global.get_linear_range()

    def get_local_id(self, dim: Any) -> Any:
        return _of_dimension(self._local_id, dim)

    def get_local_linear_id(self) -> Any:
        return self.work_item.local_linear

    def get_local_range(self, dim: Any) -> Any:
        return _of_dimension(self._local_size, dim)

    def get_local_linear_range(self) -> Any:
        return math.prod(map(int, self._local_size))

    def get_group(self) -> _Group:
        return self._group

    def get_sub_group(self) -> SimulatedSubGroup:
        return self._sub_group
