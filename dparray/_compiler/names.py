"""Names and numbers of SPIR-V and OpenCL in kernel modules, as plain data."""

from __future__ import annotations

import re
from enum import IntEnum

from dparray.kernel_api import MemoryOrder, MemoryScope

# The functions that return ids and sizes of work-items.
GLOBAL_ID = "get_global_id"
GLOBAL_SIZE = "get_global_size"
LOCAL_ID = "get_local_id"
LOCAL_SIZE = "get_local_size"
GROUP_ID = "get_group_id"
GROUP_COUNT = "get_num_groups"
# The functions of sub-groups, which have one dimension.
SUB_GROUP_LOCAL_ID = "get_sub_group_local_id"
SUB_GROUP_SIZE = "get_sub_group_size"
SUB_GROUP_MAX_SIZE = "get_max_sub_group_size"
SUB_GROUP_ID = "get_sub_group_id"
SUB_GROUP_COUNT = "get_num_sub_groups"


class Scope(IntEnum):
    """The work-items to which an instruction applies."""

    CROSS_DEVICE = 0
    DEVICE = 1
    WORK_GROUP = 2
    SUB_GROUP = 3
    INVOCATION = 4

    # In LLVM IR a scope is its number. Python 3.10 would print the member's name.
    __str__ = int.__repr__


_SCOPES = {
    MemoryScope.WORK_ITEM: Scope.INVOCATION,
    MemoryScope.SUB_GROUP: Scope.SUB_GROUP,
    MemoryScope.WORK_GROUP: Scope.WORK_GROUP,
    MemoryScope.DEVICE: Scope.DEVICE,
    MemoryScope.SYSTEM: Scope.CROSS_DEVICE,
}
# Bits of memory semantics: the order of reads and writes, and the memory that is ordered.
_ORDERS = {
    MemoryOrder.RELAXED: 0x0,
    MemoryOrder.CONSUME_UNSUPPORTED: 0x0,
    MemoryOrder.ACQUIRE: 0x2,
    MemoryOrder.RELEASE: 0x4,
    MemoryOrder.ACQ_REL: 0x8,
    MemoryOrder.SEQ_CST: 0x10,
}
_ALL_MEMORY = 0x80 | 0x100 | 0x200  # memory of the sub-group, the work-group and the device


def scope(memory_scope: int) -> int:
    """Return the number of a ``MemoryScope``."""
    return int(_SCOPES[MemoryScope(memory_scope)])


def semantics(memory_order: int) -> int:
    """Return the number of a ``MemoryOrder``, which applies to all memory, as in SYCL."""
    return _ORDERS[MemoryOrder(memory_order)] | _ALL_MEMORY


def mangled(name: str, codes: str) -> str:
    """Return the name of a function for parameters of some types."""
    return f"_Z{len(name)}{name}{codes}"


def entry_name(kernel: str) -> str:
    """Return a kernel's entry point: no name of OpenCL, and the same in every process."""
    return "kernel_" + re.sub(r"\W", "_", kernel, flags=re.ASCII)
