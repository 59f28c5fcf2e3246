"""Programs of SPIR-V modules: what the driver built of one is kept on disk, and loaded from there.

Building a module takes an OpenCL CPU driver a hundred milliseconds in a new process, most of it
the start of its LLVM back end; loading the binary that it built before takes one. A program that
was built holds what it was built with, too, over a megabyte for each kernel, for as long as the
process lives: so a binary is loaded in any case, and what built it is released. dpctl makes
programs of SPIR-V only, so a binary is made a program by OpenCL's own functions, and handed to
dpctl by the function behind ``sycl::make_kernel_bundle``. That function is C++: its name holds the
types of its arguments, and the library's name the version of its objects' layout. Where either is
another, or on a backend other than OpenCL (Level Zero keeps binaries itself), modules are built
every time.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import struct
from ctypes import POINTER, byref, c_bool, c_char_p, c_int32, c_size_t, c_uint32, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpctl
from dpctl.program import create_program_from_spirv

from dparray._compiler import cache
from dparray._runtime import in_order
from dparray._runtime.submission import capsule_address

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_SYCL_LIBRARY = "libsycl.so.9"
_MAKE_KERNEL_BUNDLE = (
    "_ZN4sycl3_V16detail18make_kernel_bundleEmRKNS0_7contextEbNS0_12bundle_stateENS0_7backendE"
)
_NATIVE = {
    "context": "_ZNK4sycl3_V17context9getNativeEv",
    "device": "_ZNK4sycl3_V16device9getNativeEv",
}
# sycl::bundle_state and sycl::backend.
_EXECUTABLE_STATE = 2
_OPENCL_BACKEND = 1
# A kernel bundle is one shared pointer.
_BUNDLE_SIZE = 16

# Of cl.h.
_PROGRAM_DEVICES = 0x1163
_PROGRAM_BINARY_SIZES = 0x1165
_PROGRAM_BINARIES = 0x1166
_PROGRAM_BINARY_TYPE = 0x1184
_EXECUTABLE_TYPE = 4


def obtain_program(queue: dpctl.SyclQueue, spirv: bytes, options: str) -> Any:
    """The ``dpctl.program.SyclProgram`` of a module, from the disk cache if it was built before.

    Args:
        queue: whose context and device it is for.
        spirv: the module.
        options: what the driver is told.

    Raises:
        SyclProgramCompilationError: the driver refuses the module.
    """
    note_use()
    driver = _driver_of(queue)
    if driver is None:
        return create_program_from_spirv(queue, spirv, options)
    key = _binary_key(queue.sycl_device, spirv, options)
    binary = cache.load(key)
    program = None if binary is None else driver.program_of(queue, binary, options)
    if program is None:
        binary = driver.built(queue, spirv, options)
        if binary is not None:
            cache.save(key, binary)
            program = driver.program_of(queue, binary, options)
    # Where the driver refuses the module, dpctl's error has the driver's text.
    return program or create_program_from_spirv(queue, spirv, options)


def warm_up(queue: dpctl.SyclQueue) -> None:
    """Let the driver start its compiler, as a kernel is on its way to it; nothing is waited for."""
    note_use()
    driver = _driver_of(queue)
    if driver is not None and not _has_built():
        with contextlib.suppress(RuntimeError):
            _builder().submit(driver.built_here, queue, _NOTHING, "")


_is_used = False


def note_use() -> None:
    """Say that a driver is about to make a program."""
    global _is_used
    in_order.check()  # a kernel is built before its launch is refused
    _is_used = True


def is_used() -> bool:
    """Whether a driver has made a program, or is making one: its locks may be held in a fork."""
    return _is_used


# Of each process, as a fork has none of its parent's threads.
_builders: dict[int, ThreadPoolExecutor] = {}


def _builder() -> ThreadPoolExecutor:
    """The thread that modules are built in.

    Intel's CPU driver starts its compiler anew in each thread, which takes it 110 ms, and builds
    one module at a time.
    """
    found = _builders.get(os.getpid())
    if found is None:
        from concurrent.futures import ThreadPoolExecutor  # which imports logging

        # Of two threads that come here at once, one wins.
        found = _builders.setdefault(os.getpid(), ThreadPoolExecutor(1, "dparray driver"))
    return found


def _has_built() -> bool:
    """Whether a module was built, or is being built."""
    return os.getpid() in _builders


def _module(*instructions: tuple[int, ...]) -> bytes:
    """A module of SPIR-V 1.0; an instruction is its number and its words."""
    words = [0x07230203, 0x00010000, 0, 5, 0]
    for number, *operands in instructions:
        words += [(1 + len(operands)) << 16 | number, *operands]
    return struct.pack(f"<{len(words)}I", *words)


# A kernel "k" that does nothing: capabilities (Addresses, Kernel), memory model (64 bits, OpenCL),
# entry point; the types void (1) and function (2); the function (4) with its block (3).
_NOTHING = _module(
    *((17, 4), (17, 6), (14, 2, 2), (15, 6, 4, ord("k"))),
    *((19, 1), (33, 2, 1), (54, 1, 4, 0, 2), (248, 3), (253,), (56,)),
)


def keeps_binaries(queue: dpctl.SyclQueue) -> bool:
    """Whether what the driver builds for a queue's device is loaded from disk the next time."""
    return _driver_of(queue) is not None


def _driver_of(queue: dpctl.SyclQueue) -> _Driver | None:
    # Intel's CPU driver ends the process where a context of several devices is given a binary.
    is_alone = queue.sycl_context.device_count == 1
    return _driver() if is_alone and queue.backend == dpctl.backend_type.opencl else None


def _binary_key(device: dpctl.SyclDevice, spirv: bytes, options: str) -> str:
    parts = (_platform_text(device.name, device.driver_version), options.encode(), spirv)
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


@lru_cache(maxsize=8)
def _platform_text(name: str, driver_version: str) -> bytes:
    """The key of a binary beside its module: device, driver, instruction set, settings."""
    instructions = ""
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        instructions = next((line for line in lines if line.startswith("flags")), "")
    settings = sorted(pair for pair in os.environ.items() if pair[0].startswith("CL_CONFIG_"))
    return repr(("device binary 1", name, driver_version, instructions, settings)).encode()


@lru_cache(maxsize=1)
def _driver() -> _Driver | None:
    """The functions that load binaries, or ``None`` where one is missing."""
    try:
        return _Driver()
    except (OSError, AttributeError, KeyError):
        return None


class _Driver:
    """OpenCL, libsycl and dpctl, as far as binaries need them; all are loaded by dpctl already.

    Raises:
        OSError, AttributeError, KeyError: a library or a function is not there.
    """

    def __init__(self) -> None:
        opencl, sycl, runtime = (
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            for name in ("libOpenCL.so.1", _SYCL_LIBRARY, "libstdc++.so.6")
        )
        handle = c_void_p
        information = [handle, c_uint32, c_size_t, c_void_p, POINTER(c_size_t)]
        self.create = _function(
            opencl.clCreateProgramWithBinary,
            handle,
            [handle, c_uint32, *[c_void_p] * 4, POINTER(c_int32)],
        )
        self.create_of_module = _function(
            opencl.clCreateProgramWithIL,
            handle,
            [handle, c_char_p, c_size_t, POINTER(c_int32)],
        )
        self.build = _function(
            opencl.clBuildProgram,
            c_int32,
            [handle, c_uint32, c_void_p, c_char_p, c_void_p, c_void_p],
        )
        self.program_info = _function(opencl.clGetProgramInfo, c_int32, information)
        self.build_info = _function(
            opencl.clGetProgramBuildInfo, c_int32, [handle, handle, *information[1:]]
        )
        self.release = {
            "context": _function(opencl.clReleaseContext, c_int32, [handle]),
            "device": _function(opencl.clReleaseDevice, c_int32, [handle]),
            "program": _function(opencl.clReleaseProgram, c_int32, [handle]),
        }
        self.native = {
            kind: _function(getattr(sycl, name), handle, [c_void_p])
            for kind, name in _NATIVE.items()
        }
        self.make_kernel_bundle = _function(
            getattr(sycl, _MAKE_KERNEL_BUNDLE),
            None,
            [c_void_p, c_void_p, c_void_p, c_bool, c_int32, c_int32],
        )
        # dpctl deletes what it is given, as C++ does.
        self.allocate = _function(runtime._Znwm, c_void_p, [c_size_t])
        self.wrap = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p)(
            capsule_address(dpctl.program._program.__pyx_capi__["SyclProgram_Make"])
        )

    @contextlib.contextmanager
    def _handle(self, kind: str, owner: Any) -> Any:
        """The OpenCL handle behind dpctl's object, held for the time of a block."""
        handle = c_void_p(self.native[kind](owner.addressof_ref()))
        try:
            yield handle
        finally:
            self.release[kind](handle)

    def program_of(self, queue: dpctl.SyclQueue, binary: bytes, options: str) -> Any:
        """The program of a binary; ``None`` if the driver does not take it."""
        context, device = queue.sycl_context, queue.sycl_device
        size, text, status = c_size_t(len(binary)), c_char_p(binary), c_int32()
        with self._handle("context", context) as of_context, self._handle("device", device) as own:
            program = self.create(
                of_context, 1, byref(own), byref(size), byref(text), None, byref(status)
            )
            if not program:
                return None
            if not self._builds(program, own, options) or not self._is_executable(program, own):
                self.release["program"](program)
                return None
        bundle = self.allocate(_BUNDLE_SIZE)
        reference = context.addressof_ref()
        self.make_kernel_bundle(
            bundle, program, reference, False, _EXECUTABLE_STATE, _OPENCL_BACKEND
        )
        return self.wrap(bundle)

    def _is_executable(self, program: int, device: c_void_p) -> bool:
        kind = c_uint32()
        failed = self.build_info(
            program, device, _PROGRAM_BINARY_TYPE, ctypes.sizeof(kind), byref(kind), None
        )
        return not failed and kind.value == _EXECUTABLE_TYPE

    def built(self, queue: dpctl.SyclQueue, spirv: bytes, options: str) -> bytes | None:
        """The driver's binary of a module for a queue's device; ``None`` if there is none."""
        try:
            building = _builder().submit(self.built_here, queue, spirv, options)
        except RuntimeError:  # the interpreter is ending, and starts nothing any more
            return self.built_here(queue, spirv, options)
        return building.result()

    def built_here(self, queue: dpctl.SyclQueue, spirv: bytes, options: str) -> bytes | None:
        """The same, built in the calling thread."""
        context, device, status = queue.sycl_context, queue.sycl_device, c_int32()
        with self._handle("context", context) as of_context, self._handle("device", device) as own:
            program = self.create_of_module(of_context, spirv, len(spirv), byref(status))
            if not program:
                return None
            try:
                return self._binary(program, own) if self._builds(program, own, options) else None
            finally:
                self.release["program"](program)

    def _builds(self, program: int, device: c_void_p, options: str) -> bool:
        """Build a program for a device; whether the driver does."""
        return not self.build(program, 1, byref(device), options.encode(), None, None)

    def _binary(self, program: int, device: c_void_p) -> bytes | None:
        nbytes = c_size_t()
        if self.program_info(program, _PROGRAM_DEVICES, 0, None, byref(nbytes)) != 0:
            return None
        count = nbytes.value // ctypes.sizeof(c_void_p)
        devices, sizes = (c_void_p * count)(), (c_size_t * count)()
        for name, values in ((_PROGRAM_DEVICES, devices), (_PROGRAM_BINARY_SIZES, sizes)):
            if self.program_info(program, name, ctypes.sizeof(values), values, None) != 0:
                return None
        # OpenCL skips devices whose pointer is null: those that it built nothing for.
        texts = [ctypes.create_string_buffer(size) for size in sizes]
        pointers = (c_void_p * count)(*(ctypes.addressof(text) if text else 0 for text in texts))
        if (
            self.program_info(program, _PROGRAM_BINARIES, ctypes.sizeof(pointers), pointers, None)
            != 0
        ):
            return None
        return dict(zip(devices, texts, strict=True))[device.value].raw or None


def _function(function: Any, result: Any, arguments: list[Any]) -> Any:
    function.restype = result
    function.argtypes = arguments
    return function
