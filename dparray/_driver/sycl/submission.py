"""Submit kernels through dpctl's C interface, with packed arguments and a packed range.

The functions belong to ``libDPCTLSyclInterface``, which dpctl's wheels ship with its headers
(``dpctl.get_include()``). Like dpctl's method they are called with the interpreter's lock held:
reacquiring the lock can take longer than a launch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_size_t, c_void_p
from pathlib import Path
from struct import Struct
from typing import Any

import dpctl

from dparray._driver.interface import PackedRange

_address_bytes = Struct("P").pack


def capsule_address(capsule: Any) -> int:
    """Return the C function of a capsule in a Cython module."""
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api)
    )
    return int(pointer_of(capsule, name_of(capsule)))


INTERFACE_LIBRARY = str(Path(dpctl.__file__).parent / "libDPCTLSyclInterface.so")


def _functions(library: type[ctypes.CDLL] = ctypes.PyDLL) -> tuple[Any, Any, Any, Any]:
    interface = library(INTERFACE_LIBRARY)
    # The arguments: kernel, queue, arguments and their number, ranges and their dimensions, events.
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


def addresses_of_functions() -> tuple[int, int, int, int]:
    """Return addresses of C functions: submit a range or in groups; create, delete an event."""
    return tuple([ctypes.cast(each, c_void_p).value or 0 for each in _functions()])  # type: ignore


def let_go_of_interpreter() -> None:
    """Release the interpreter's lock during submissions from now on."""
    global _over_range, _in_groups, _delete
    _over_range, _in_groups, _, _delete = _functions(ctypes.CDLL)


def submit(
    kernel: int,
    queue: dpctl.SyclQueue,
    kinds: bytes,
    addresses: bytes,
    index_space: PackedRange,
    dependencies: Sequence[dpctl.SyclEvent],
) -> dpctl.SyclEvent | None:
    dimensions, extents, local = index_space
    count = len(dependencies)
    if count == 1:  # usually the previous launch
        events = _address_bytes(dependencies[0].addressof_ref())
    else:
        events = b"".join([_address_bytes(event.addressof_ref()) for event in dependencies])
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
