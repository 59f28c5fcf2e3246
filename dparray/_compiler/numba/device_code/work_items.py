"""Kernels without a work-item parameter: they query an implicit three-dimensional item.

Dimensions that a range lacks have one work-item. Loaded with the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dparray._compiler.numba.registration import device_overload, implement, instructions
from dparray._compiler.numba.types import NdItemType
from dparray.kernel_api import (
    AtomicRef,
    MemoryOrder,
    MemoryScope,
    atomic_fence,
    group_barrier,
    work_items,
)


@instructions(lambda: NdItemType(3)())
def _item(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the current work-item; like all such items it has no members."""
    return context.get_constant_null(signature.return_type)


_OF_A_DIMENSION: dict[Any, Callable[..., Any]] = {
    work_items.get_global_id: lambda dim=0: _item().get_global_id(dim),
    work_items.get_local_id: lambda dim=0: _item().get_local_id(dim),
    work_items.get_global_size: lambda dim=0: _item().get_global_range(dim),
    work_items.get_local_size: lambda dim=0: _item().get_local_range(dim),
    work_items.get_group_id: lambda dim=0: _item().get_group().get_group_id(dim),
    work_items.get_num_groups: lambda dim=0: _item().get_group().get_group_range(dim),
}
for _function, _implementation in _OF_A_DIMENSION.items():
    implement(_function, _implementation, prefer_literal=True)
implement(work_items.barrier, lambda flags=None: group_barrier(_item().get_group()))
implement(work_items.sub_group_barrier, lambda: group_barrier(_item().get_sub_group()))
implement(
    work_items.mem_fence,
    lambda flags=None: atomic_fence(MemoryOrder.ACQ_REL, MemoryScope.WORK_GROUP),
)


@device_overload(work_items.add_atomically)
def _add_atomically(array: Any, index: Any, value: Any) -> Any:
    element = array.dtype
    return lambda array, index, value: AtomicRef(array, index).fetch_add(element(value))


@device_overload(work_items.sub_atomically)
def _sub_atomically(array: Any, index: Any, value: Any) -> Any:
    element = array.dtype
    return lambda array, index, value: AtomicRef(array, index).fetch_sub(element(value))
