"""Functions of kernels without a work-item parameter: numba-dpex's kernel language up to 0.21.

They are members of the module ``numba_dpex``; new kernels have the work-item as their first
parameter and ask it.
"""

from __future__ import annotations

from typing import Any

from dparray.kernel_api.items import only_in_kernels

__all__ = [
    "add_atomically",
    "barrier",
    "get_global_id",
    "get_global_size",
    "get_group_id",
    "get_local_id",
    "get_local_size",
    "get_num_groups",
    "mem_fence",
    "sub_atomically",
    "sub_group_barrier",
]


def get_global_id(dim: int = 0) -> Any:
    """Return the id of the work-item in a dimension of the range; now ``item.get_id(dim)``."""
    only_in_kernels("get_global_id")


def get_local_id(dim: int = 0) -> Any:
    """Return the id of the work-item in its group; now ``item.get_local_id(dim)``."""
    only_in_kernels("get_local_id")


def get_group_id(dim: int = 0) -> Any:
    """Return the id of the work-group; now ``item.get_group().get_group_id(dim)``."""
    only_in_kernels("get_group_id")


def get_num_groups(dim: int = 0) -> Any:
    """Return the number of work-groups; now ``item.get_group().get_group_range(dim)``."""
    only_in_kernels("get_num_groups")


def get_global_size(dim: int = 0) -> Any:
    """Return the extent of the range; now ``item.get_global_range(dim)``."""
    only_in_kernels("get_global_size")


def get_local_size(dim: int = 0) -> Any:
    """Return the extent of the work-group; now ``item.get_local_range(dim)``."""
    only_in_kernels("get_local_size")


def barrier(flags: Any = None) -> None:
    """Wait for all work-items of the group; now ``dp.group_barrier(item.get_group())``."""
    only_in_kernels("barrier")


def sub_group_barrier() -> None:
    """Wait for all work-items of the sub-group; now ``dp.group_barrier(item.get_sub_group())``."""
    only_in_kernels("sub_group_barrier")


def mem_fence(flags: Any = None) -> None:
    """Order reads and writes for the group; now ``dp.atomic_fence(order, scope)``."""
    only_in_kernels("mem_fence")


def add_atomically(array: Any, index: Any, value: Any) -> Any:
    """``atomic.add``; now ``dp.AtomicRef(array, index).fetch_add(value)``."""
    only_in_kernels("atomic.add")


def sub_atomically(array: Any, index: Any, value: Any) -> Any:
    """``atomic.sub``; now ``dp.AtomicRef(array, index).fetch_sub(value)``."""
    only_in_kernels("atomic.sub")
