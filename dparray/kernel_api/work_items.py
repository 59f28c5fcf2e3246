"""Kernel functions without a work-item parameter: the kernel language of numba-dpex up to 0.21.

They are members of the module ``numba_dpex``. New kernels take the work-item as their first
parameter and call its methods.
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
    """Return the id of the work-item in a dimension; use ``item.get_id(dim)`` instead."""
    only_in_kernels("get_global_id")


def get_local_id(dim: int = 0) -> Any:
    """Return the id within the group; use ``item.get_local_id(dim)`` instead."""
    only_in_kernels("get_local_id")


def get_group_id(dim: int = 0) -> Any:
    """Return the id of the group; use ``item.get_group().get_group_id(dim)`` instead."""
    only_in_kernels("get_group_id")


def get_num_groups(dim: int = 0) -> Any:
    """Return the number of groups; use ``item.get_group().get_group_range(dim)`` instead."""
    only_in_kernels("get_num_groups")


def get_global_size(dim: int = 0) -> Any:
    """Return the size of the range; use ``item.get_global_range(dim)`` instead."""
    only_in_kernels("get_global_size")


def get_local_size(dim: int = 0) -> Any:
    """Return the size of the work-group; use ``item.get_local_range(dim)`` instead."""
    only_in_kernels("get_local_size")


def barrier(flags: Any = None) -> None:
    """Wait for the work-group; use ``dp.group_barrier(item.get_group())`` instead."""
    only_in_kernels("barrier")


def sub_group_barrier() -> None:
    """Wait for the sub-group; use ``dp.group_barrier(item.get_sub_group())`` instead."""
    only_in_kernels("sub_group_barrier")


def mem_fence(flags: Any = None) -> None:
    """Order reads and writes for the group; use ``dp.atomic_fence(order, scope)`` instead."""
    only_in_kernels("mem_fence")


def add_atomically(array: Any, index: Any, value: Any) -> Any:
    """Add atomically; use ``dp.AtomicRef(array, index).fetch_add(value)`` instead."""
    only_in_kernels("atomic.add")


def sub_atomically(array: Any, index: Any, value: Any) -> Any:
    """Subtract atomically; use ``dp.AtomicRef(array, index).fetch_sub(value)`` instead."""
    only_in_kernels("atomic.sub")
