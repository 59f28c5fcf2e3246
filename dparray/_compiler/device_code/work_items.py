"""Kernels without a work-item parameter: they query an implicit three-dimensional item.

Dimensions that a range lacks have one work-item. Loaded with the compiler.
"""

from __future__ import annotations

from typing import Any

from numba.extending import intrinsic, overload

from dparray._compiler.target import TARGET
from dparray._compiler.types import NdItemType
from dparray.kernel_api import (
    AtomicRef,
    MemoryOrder,
    MemoryScope,
    atomic_fence,
    group_barrier,
    work_items,
)

__all__: list[str] = []


@intrinsic(target=TARGET)
def _item(typing_context: Any) -> Any:
    """Return the current work-item; like all such items it has no members."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant_null(signature.return_type)

    return NdItemType(3)(), generate


@overload(work_items.get_global_id, target=TARGET, prefer_literal=True, strict=False)
def _get_global_id(dim: Any = 0) -> Any:
    return lambda dim=0: _item().get_global_id(dim)


@overload(work_items.get_local_id, target=TARGET, prefer_literal=True, strict=False)
def _get_local_id(dim: Any = 0) -> Any:
    return lambda dim=0: _item().get_local_id(dim)


@overload(work_items.get_global_size, target=TARGET, prefer_literal=True, strict=False)
def _get_global_size(dim: Any = 0) -> Any:
    return lambda dim=0: _item().get_global_range(dim)


@overload(work_items.get_local_size, target=TARGET, prefer_literal=True, strict=False)
def _get_local_size(dim: Any = 0) -> Any:
    return lambda dim=0: _item().get_local_range(dim)


@overload(work_items.get_group_id, target=TARGET, prefer_literal=True, strict=False)
def _get_group_id(dim: Any = 0) -> Any:
    return lambda dim=0: _item().get_group().get_group_id(dim)


@overload(work_items.get_num_groups, target=TARGET, prefer_literal=True, strict=False)
def _get_num_groups(dim: Any = 0) -> Any:
    return lambda dim=0: _item().get_group().get_group_range(dim)


@overload(work_items.barrier, target=TARGET, strict=False)
def _barrier(flags: Any = None) -> Any:
    return lambda flags=None: group_barrier(_item().get_group())


@overload(work_items.sub_group_barrier, target=TARGET, strict=False)
def _sub_group_barrier() -> Any:
    return lambda: group_barrier(_item().get_sub_group())


@overload(work_items.mem_fence, target=TARGET, strict=False)
def _mem_fence(flags: Any = None) -> Any:
    return lambda flags=None: atomic_fence(MemoryOrder.ACQ_REL, MemoryScope.WORK_GROUP)


@overload(work_items.add_atomically, target=TARGET, strict=False)
def _add_atomically(array: Any, index: Any, value: Any) -> Any:
    element = array.dtype
    return lambda array, index, value: AtomicRef(array, index).fetch_add(element(value))


@overload(work_items.sub_atomically, target=TARGET, strict=False)
def _sub_atomically(array: Any, index: Any, value: Any) -> Any:
    element = array.dtype
    return lambda array, index, value: AtomicRef(array, index).fetch_sub(element(value))
