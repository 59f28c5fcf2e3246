"""Submission by dpctl's C interface: packed arguments and a packed range make an event."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_size_t, c_void_p
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple

import dpctl

from dparray._runtime.arguments import Packed, address_bytes


class PackedRange(NamedTuple):
    """A range as the C interface takes it: the device's first dimension is SYCL's last."""

    dimensions: int
    extents: bytes
    local: bytes | None


def pack_range(extents: Sequence[int], local: Sequence[int] | None) -> PackedRange:
    """A range, with the extents of its groups if it has any."""
    dimensions = len(extents)
    of_all = pack(f"{dimensions}N", *extents[::-1])
    of_groups = None if local is None else pack(f"{dimensions}N", *local[::-1])
    return PackedRange(dimensions, of_all, of_groups)


def capsule_address(capsule: Any) -> int:
    """The C function in a capsule of Cython's interface between modules."""
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    return int(pointer_of(capsule, name_of(capsule)))


def _functions(library: type[ctypes.CDLL] = ctypes.PyDLL) -> tuple[Any, Any, Any, Any]:
    interface = library(str(Path(dpctl.__file__).parent / "libDPCTLSyclInterface.so"))
    # Kernel, queue, arguments with their number, range or ranges with their dimensions, events.
    head: list[Any] = [*[c_void_p] * 4, c_size_t]
    tail: list[Any] = [c_size_t, c_void_p, c_size_t]
    over_range, in_groups = interface.DPCTLQueue_SubmitRange, interface.DPCTLQueue_SubmitNDRange
    over_range.argtypes = [*head, c_void_p, *tail]
    in_groups.argtypes = [*head, c_void_p, c_void_p, *tail]
    over_range.restype = in_groups.restype = c_void_p
    delete = interface.DPCTLEvent_Delete
    delete.argtypes, delete.restype = [c_void_p], None
    make_event = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p)(
        capsule_address(dpctl._sycl_event.__pyx_capi__["SyclEvent_Make"])
    )
    return over_range, in_groups, make_event, delete


_over_range, _in_groups, _make_event, _delete = _functions()


def let_go_of_interpreter() -> None:
    """From now on let other threads run while work is submitted."""
    global _over_range, _in_groups, _delete
    _over_range, _in_groups, _, _delete = _functions(ctypes.CDLL)


def submit(
    kernel: int,
    queue: dpctl.SyclQueue,
    arguments: Sequence[Packed],
    index_space: PackedRange,
    dependencies: Sequence[dpctl.SyclEvent],
) -> dpctl.SyclEvent | None:
    """Submit the kernel at an address, to run after some events; ``None`` if the driver refuses it.

    The packed arguments must be those of the kernel's parameters, all of them.
    """
    each_kinds, each_addresses, *_ = zip(*arguments, strict=True) if arguments else ((), ())
    kinds, addresses = b"".join(each_kinds), b"".join(each_addresses)
    dimensions, extents, local = index_space
    count = len(dependencies)
    if count == 1:  # mostly the launch before
        events = address_bytes(dependencies[0].addressof_ref())
    else:
        events = b"".join([address_bytes(event.addressof_ref()) for event in dependencies])
    queue_at, number = queue.addressof_ref(), len(kinds) // 4
    if local is None:
        reference = _over_range(
            kernel, queue_at, addresses, kinds, number, extents, dimensions, events, count
        )
    else:
        reference = _in_groups(
            kernel, queue_at, addresses, kinds, number, extents, local, dimensions, events, count
        )
    if not reference:
        return None
    event = _make_event(reference)  # a copy
    _delete(reference)
    return event
