"""Device functions in kernel modules: their names, parameters and constants, for all back ends.

Front ends write LLVM IR that calls these functions by the mangled names of OpenCL and SPIR-V; each
back end defines them for its machines. Plain data: imports nothing.
"""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from typing import NamedTuple

#: The triple of a module that a front end writes.
TRIPLE = "spirv64-unknown-unknown"
#: The compiler of a target with defects of its own, see `dparray._driver.interface.Target`.
INTEL_CPU = "intel-cpu"
#: A function of the front ends. LLVM's passes compute indices in 64 bits and cut the result, where
#: a GPU multiplies 32 bits in one instruction and 64 in several. So indices of 32 bits are cut by
#: this function while the passes run.
LOW_BITS = "dparray.low_bits"

#: The function of the host that shares out the parts of a loop to threads.
SHARE_PARTS = "dparray_share_parts"
#: The one that runs a kernel, and the words of a launch's data before the kernel's arguments.
LAUNCH_KERNEL, HEAD_WORDS = "dparray_launch_kernel", 12
#: The one that notes the number of the exception with which a function ends.
NOTE_STOP = "dparray_note_stop"
#: The one that returns 0 if the calling thread has little stack left.
HAS_STACK = "dparray_has_stack"
#: Why a native function ends, besides its own exceptions.
NO_MEMORY, NEGATIVE, NO_STACK = -101, -102, -103
#: The one that allocates memory of the host for a number of elements of a size.
NEW_MEMORY = "dparray_new_memory"

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


# By the number of a `MemoryScope`.
_SCOPES = (
    Scope.INVOCATION,
    Scope.SUB_GROUP,
    Scope.WORK_GROUP,
    Scope.DEVICE,
    Scope.CROSS_DEVICE,
)
# Bits of memory semantics: the order of reads and writes, and the memory that is ordered.
# By the number of a `MemoryOrder`: relaxed, acquire, consume (unsupported), release, both, total.
_ORDERS = (0x0, 0x2, 0x0, 0x4, 0x8, 0x10)
_ALL_MEMORY = 0x80 | 0x100 | 0x200  # memory of the sub-group, the work-group and the device


def scope(memory_scope: int) -> int:
    """Return the number of a ``MemoryScope``."""
    return int(_SCOPES[memory_scope])


def semantics(memory_order: int) -> int:
    """Return the number of a ``MemoryOrder``, which applies to all memory, as in SYCL."""
    return _ORDERS[memory_order] | _ALL_MEMORY


def mangled(name: str, codes: str) -> str:
    """Return the name of a function for parameters of some types."""
    return f"_Z{len(name)}{name}{codes}"


def entry_name(kernel: str) -> str:
    """Return a kernel's entry point: no name of OpenCL, and the same in every process."""
    return "kernel_" + re.sub(r"\W", "_", kernel, flags=re.ASCII)


#: A line that declares a function: result type, name with or without quotes, parameters.
DECLARED = re.compile(
    r"^declare (?:spir_func )?([^@\n]*?)@(?:\"([^\"]+)\"|([-\w.$]+))\(([^\n]*)\n", re.MULTILINE
)
_UNCONTRACTED = re.compile(r"(= f(?:add|sub|mul)) (?!contract )")
_FLOATING = re.compile(r"(= f(?:add|sub|mul|div|neg)) (?:reassoc nsz )?")
_TYPE = re.compile(r"ptr(?: addrspace\(\d+\))?|<[^>]*>|\{[^}]*\}|\[[^\]]*\]|[a-z]\w*")


#: LLVM's atomic updates, by the ends of their names in SPIR-V.
UPDATES = {
    "IAdd": "add",
    "ISub": "sub",
    "SMin": "min",
    "SMax": "max",
    "UMin": "umin",
    "UMax": "umax",
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "Exchange": "xchg",
    "FAddEXT": "fadd",
    "FMinEXT": "fmin",
    "FMaxEXT": "fmax",
}


def contracted(text: str) -> str:
    """Return a module in which products and sums may be contracted to fused operations."""
    return _UNCONTRACTED.sub(r"\1 contract ", text)


def fast(text: str) -> str:
    """Return a module whose floating-point operations may be reordered."""
    return _FLOATING.sub(r"\1 fast ", text)


class Function(NamedTuple):
    """A declared function.

    Attributes:
        name: its name.
        result: its LLVM type.
        parameters: LLVM types.
    """

    name: str
    result: str
    parameters: tuple[str, ...]


def split(parameters: str) -> list[str]:
    """Split a list of parameters or arguments, up to its closing parenthesis."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(parameters):
        depth += (letter in "(<{[") - (letter in ")>}]")
        if depth < 0 or (letter == "," and not depth):
            parts.append(parameters[start:at].strip())
            start = at + 1
        if depth < 0:
            break
    return [each for each in parts if each]


def function_of(name: str, result: str, parameters: str) -> Function:
    """Return a function by the text of its declaration, or of a call of it.

    Attributes precede the type of a result, and follow that of a parameter.
    """
    kinds = tuple(_TYPE.findall(each)[0] for each in split(parameters))
    return Function(name, _TYPE.findall(result)[-1], kinds)


def float_literal(number: float, code: str) -> str:
    """Return a float's bits, by OpenCL's code; LLVM writes a float32's as a float64, too."""
    (rounded,) = struct.unpack(code, struct.pack(code, number))
    return "0x" + struct.pack(">d", rounded).hex().upper()


#: Marks a kernel whose vectors are better made of a work-item's iterations than of work-items.
#: It is OpenCL's hint that a kernel computes vectors already.
IN_ORDER = " !vec_type_hint !900100"
IN_ORDER_VALUE = "\n!900100 = !{<4 x i32> undef, i32 1}\n"
