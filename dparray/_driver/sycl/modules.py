"""Programs of SPIR-V modules; the driver's binaries are cached on disk.

Building a module takes an OpenCL CPU driver a hundred milliseconds in a new process, mostly to
start its LLVM back end; loading a binary takes one millisecond. A program that was built also keeps
its build data, over a megabyte per kernel, for the lifetime of the process. A binary is therefore
always loaded, and the program that built it is released. dpctl creates programs only from SPIR-V,
and never releases them (nor the objects from which it gets kernels). So OpenCL's own functions
create the program from a binary, and the functions behind ``sycl::make_kernel_bundle`` and
``sycl::make_kernel`` pass its kernels to dpctl. The driver frees a program, half a megabyte to
several, with the last of its kernels. These functions are C++: their names contain the argument
types, and the library's name the version of its object layout. If a name differs, or on a backend
other than OpenCL (Level Zero caches binaries itself), modules are built every time.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import struct
import subprocess
import sys
from collections import deque
from ctypes import POINTER, byref, c_bool, c_char_p, c_int32, c_size_t, c_uint32, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

import dpctl
from dpctl.program import (
    SyclProgramCompilationError,
    create_program_from_source,
    create_program_from_spirv,
)

from dparray._driver.interface import Loaded, ModuleRejected, Queue, Store
from dparray._driver.sycl import in_order, trial_build
from dparray._driver.sycl.submission import INTERFACE_LIBRARY, capsule_address

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_SYCL_LIBRARY = "libsycl.so.9"
_MAKE_KERNEL_BUNDLE = (
    "_ZN4sycl3_V16detail18make_kernel_bundleEmRKNS0_7contextEbNS0_12bundle_stateENS0_7backendE"
)
_MAKE_KERNEL = (
    "_ZN4sycl3_V16detail11make_kernelERKNS0_7contextERKNS0_13kernel_bundleILNS0_12bundle_stateE2"
    "EEEmbNS0_7backendE"
)
_NATIVE = {
    "context": "_ZNK4sycl3_V17context9getNativeEv",
    "device": "_ZNK4sycl3_V16device9getNativeEv",
}
# sycl::bundle_state and sycl::backend.
_EXECUTABLE_STATE = 2
_OPENCL_BACKEND = 1
# Kernels and kernel bundles are single shared pointers.
_OBJECT_SIZE = 16

# Constants from cl.h.
_PROGRAM_DEVICES = 0x1163
_PROGRAM_BINARY_SIZES = 0x1165
_PROGRAM_BINARIES = 0x1166
_PROGRAM_BUILD_LOG = 0x1183
_PROGRAM_BINARY_TYPE = 0x1184
_EXECUTABLE_TYPE = 4


def load(queue: Queue, module: bytes | str, entry: str, options: str, binaries: Store) -> Loaded:
    """Return a kernel of a SPIR-V module or of OpenCL C source, built for a queue's device.

    Raises:
        ModuleRejected: the driver rejects the module; the message has its log.
        KeyError: the program has no such kernel.
    """
    note_use()
    driver = _driver_of(queue)
    program: Any
    try:
        if isinstance(module, str):
            program = driver and driver.built(queue, module, options)
            program = program or create_program_from_source(queue, module, options)
        else:
            program = driver and _obtain(driver, queue, module, options, binaries)
            program = program or create_program_from_spirv(queue, module, options)
        if not program.has_sycl_kernel(entry):
            raise KeyError(entry)
        kernel = program.get_sycl_kernel(entry)
    except SyclProgramCompilationError as error:
        raise ModuleRejected(str(error)) from error
    return Loaded(
        kernel.addressof_ref(),
        int(kernel.work_group_size),
        int(kernel.preferred_work_group_size_multiple),
        int(kernel.num_args),
        kernel,
    )


def _obtain(
    driver: _Driver, queue: Queue, spirv: bytes, options: str, binaries: Store
) -> _Program | None:
    """Return the program of a module, from the disk cache if it was built before.

    ``None`` if the driver does not accept such modules.
    """
    if not _takes_binaries(queue):
        return driver.built(queue, spirv, options)
    key = _binary_key(queue.sycl_device, spirv, options)
    binary = binaries.load(key)
    program = None if binary is None else driver.program_of(queue, binary, options)
    if program is None and queue.sycl_device.is_gpu:
        binary = _built_apart(queue, spirv, options)
        if binary:
            binaries.save(key, binary)
            program = driver.program_of(queue, binary, options)
    if program is None:
        built = driver.built(queue, spirv, options)
        binary = None if built is None else built.binary(queue)
        if binary is not None:
            binaries.save(key, binary)
            program = driver.program_of(queue, binary, options)
    return program


def _built_apart(queue: Queue, spirv: bytes, options: str) -> bytes | None:
    """Return the binary of a module from a separate build process; ``None`` if that is not
    possible.

    GPU compilers crash for some modules, which ends their process; here this is an exception.

    Raises:
        SyclProgramCompilationError: the driver rejects the module, or its compiler crashed.
    """
    device, platform = queue.sycl_device, queue.sycl_device.sycl_platform
    head = {
        "library": _loaded_library("libOpenCL.so"),
        "platform": platform.name,
        "device": device.name,
        "version": device.driver_version,
        "options": options,
    }
    command = [sys.executable, "-I", "-S", trial_build.__file__]
    try:
        done = subprocess.run(
            command, input=json.dumps(head).encode() + b"\n" + spirv, capture_output=True
        )
    except OSError:  # an embedded interpreter, which has no command
        return None
    answered = done.stdout.removeprefix(trial_build.BEGUN)
    if answered != done.stdout and not answered:
        raise SyclProgramCompilationError(
            f"its compiler crashed on it (exit status {done.returncode}). Update the driver, or "
            "simplify the kernel"
        )
    line, _, binary = answered.partition(b"\n")
    try:
        answer = json.loads(line)
    except ValueError:  # Python or OpenCL is missing
        return None
    if answer["status"] == trial_build.NOT_FOUND:
        return None
    if answer["status"]:
        raise SyclProgramCompilationError(refusal(answer["status"], answer["log"]))
    return binary or None


@lru_cache(maxsize=4)
def _loaded_library(name: str) -> str:
    """Return the file of a loaded library; its name if the system does not report it."""
    with contextlib.suppress(OSError), Path("/proc/self/maps").open() as lines:
        return next((line.split()[-1] for line in lines if f"/{name}" in line), f"{name}.1")
    return f"{name}.1"


# Statuses of clBuildProgram and clCreateProgramWithIL, and their usual causes.
_STATUSES = {
    -5: "CL_OUT_OF_RESOURCES: it needs more local memory or registers than the device has",
    -6: "CL_OUT_OF_HOST_MEMORY",
    -11: "CL_BUILD_PROGRAM_FAILURE",
    -30: "CL_INVALID_VALUE: the driver does not accept such modules",
    -42: "CL_INVALID_BINARY: the driver does not accept such modules",
    -43: "CL_INVALID_BUILD_OPTIONS",
}


def refusal(status: int, log: str) -> str:
    """Return the driver's log for a module that it rejects, or the status without a log."""
    return log or f"status {status} ({_STATUSES.get(status, 'not documented')}), without a log"


def warm_up(queue: Queue) -> None:
    note_use()
    driver = _driver_of(queue)
    if driver is not None and not _has_built():
        with contextlib.suppress(RuntimeError):
            _builder().submit(driver.built_here, queue, _NOTHING, "")


_is_used = False


def note_use() -> None:
    """Record that a driver is about to create a program."""
    global _is_used
    in_order.check()  # a kernel is built before its launch is rejected
    _is_used = True


def is_used() -> bool:
    """Return whether a driver has created a program: a fork may then inherit its locks."""
    return _is_used


# One per process, as a fork has none of its parent's threads.
_builders: dict[int, ThreadPoolExecutor] = {}


def _builder() -> ThreadPoolExecutor:
    """Return the thread in which modules are built.

    Intel's CPU driver starts its compiler once per thread, which takes 110 ms, and builds one
    module at a time.
    """
    builder = _builders.get(os.getpid())
    if builder is None:
        from concurrent.futures import ThreadPoolExecutor  # which imports logging

        # If two threads get here together, one wins.
        builder = _builders.setdefault(os.getpid(), ThreadPoolExecutor(1, "dparray driver"))
    return builder


def _has_built() -> bool:
    """Return whether a module was built, or is being built."""
    return os.getpid() in _builders


def _nothing() -> bytes:
    """Return the SPIR-V module of a kernel "k" that does nothing."""
    # Capabilities (Addresses, Kernel), memory model (64 bits, OpenCL), entry point; the types void
    # (1) and function (2); the function (4) with its block (3).
    instructions = (
        *((17, 4), (17, 6), (14, 2, 2), (15, 6, 4, ord("k"))),
        *((19, 1), (33, 2, 1), (54, 1, 4, 0, 2), (248, 3), (253,), (56,)),
    )
    words = [0x07230203, 0x00010000, 0, 5, 0]
    for opcode, *operands in instructions:
        words += [len(operands) + 1 << 16 | opcode, *operands]
    return struct.pack(f"<{len(words)}I", *words)


_NOTHING = _nothing()


def keeps_binaries(queue: Queue) -> bool:
    """Return whether the driver's binaries for a queue's device can be loaded from disk."""
    return _driver_of(queue) is not None and _takes_binaries(queue)


def _takes_binaries(queue: Queue) -> bool:
    # Intel's CPU driver crashes if a context of several devices gets a binary.
    return bool(queue.sycl_context.device_count == 1)


def _driver_of(queue: Queue) -> _Driver | None:
    return _driver() if queue.backend == dpctl.backend_type.opencl else None


def _binary_key(device: dpctl.SyclDevice, spirv: bytes, options: str) -> str:
    parts = (_platform_text(device.name, device.driver_version), options.encode(), spirv)
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


@lru_cache(maxsize=8)
def _platform_text(name: str, driver_version: str) -> bytes:
    """Return the key of a binary with its module: device, driver, instruction set, settings."""
    instructions = ""
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        instructions = next((line for line in lines if line.startswith("flags")), "")
    settings = sorted(pair for pair in os.environ.items() if pair[0].startswith("CL_CONFIG_"))
    return repr(("device binary 1", name, driver_version, instructions, settings)).encode()


@lru_cache(maxsize=1)
def _driver() -> _Driver | None:
    """Return the functions that load binaries, or ``None`` if one is missing."""
    try:
        return _Driver()
    except (OSError, AttributeError, KeyError):
        return None


class _Driver:
    """The functions of OpenCL, libsycl and dpctl for binaries; dpctl has loaded the libraries.

    Raises:
        OSError, AttributeError, KeyError: a library or a function is missing.
    """

    def __init__(self) -> None:
        self.programs: dict[ref[_Program], tuple[int, dpctl.SyclContext]] = {}
        self.gone: deque[ref[_Program]] = deque()  # the programs that are no longer referenced
        opencl, sycl, dpctl_library, runtime = (
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            for name in ("libOpenCL.so.1", _SYCL_LIBRARY, INTERFACE_LIBRARY, "libstdc++.so.6")
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
        self.create_of_text = _function(
            opencl.clCreateProgramWithSource,
            handle,
            [handle, c_uint32, c_void_p, c_void_p, POINTER(c_int32)],
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
        self.create_kernel = _function(
            opencl.clCreateKernel, handle, [handle, c_char_p, POINTER(c_int32)]
        )
        self.release = {
            "context": _function(opencl.clReleaseContext, c_int32, [handle]),
            "device": _function(opencl.clReleaseDevice, c_int32, [handle]),
            "kernel": _function(opencl.clReleaseKernel, c_int32, [handle]),
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
        self.make_kernel = _function(
            getattr(sycl, _MAKE_KERNEL), None, [c_void_p] * 4 + [c_bool, c_int32]
        )
        # dpctl copies the kernel; the original is deleted as C++ would.
        self.allocate = _function(runtime._Znwm, c_void_p, [c_size_t])
        self.delete_bundle = _function(dpctl_library.DPCTLKernelBundle_Delete, None, [c_void_p])
        self.delete_kernel = _function(dpctl_library.DPCTLKernel_Delete, None, [c_void_p])
        self.copy_kernel = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p)(
            capsule_address(dpctl.program._program.__pyx_capi__["SyclKernel_Make"])
        )

    @contextlib.contextmanager
    def handle_of(self, kind: str, owner: Any) -> Any:
        """Yield the OpenCL handle of a dpctl object, kept alive during a block."""
        handle = c_void_p(self.native[kind](owner.addressof_ref()))
        try:
            yield handle
        finally:
            self.release[kind](handle)

    def program_of(self, queue: Queue, binary: bytes, options: str) -> _Program | None:
        """Return the program of a binary; ``None`` if the driver does not accept it."""
        context, device = queue.sycl_context, queue.sycl_device
        size, text, status = c_size_t(len(binary)), c_char_p(binary), c_int32()
        with (
            self.handle_of("context", context) as of_context,
            self.handle_of("device", device) as own,
        ):
            handle = self.create(
                of_context, 1, byref(own), byref(size), byref(text), None, byref(status)
            )
            if not handle:
                return None
            program = _Program(self, handle, context)
            is_right = not self._status(handle, own, options) and self._is_executable(handle, own)
            return program if is_right else None

    def _is_executable(self, program: int, device: c_void_p) -> bool:
        kind = c_uint32()
        failed = self.build_info(
            program, device, _PROGRAM_BINARY_TYPE, ctypes.sizeof(kind), byref(kind), None
        )
        return not failed and kind.value == _EXECUTABLE_TYPE

    def built(self, queue: Queue, source: bytes | str, options: str) -> _Program | None:
        """Return the program that the driver builds from a module or from OpenCL C source.

        Returns:
            The program; ``None`` if the driver does not accept such sources.

        Raises:
            SyclProgramCompilationError: the driver rejects this source.
        """
        try:
            building = _builder().submit(self.built_here, queue, source, options)
        except RuntimeError:  # the interpreter is shutting down, and cannot start threads
            return self.built_here(queue, source, options)
        return building.result()

    def built_here(self, queue: Queue, source: bytes | str, options: str) -> _Program | None:
        """Build the program in the calling thread."""
        context, device, status = queue.sycl_context, queue.sycl_device, c_int32()
        with (
            self.handle_of("context", context) as of_context,
            self.handle_of("device", device) as own,
        ):
            if isinstance(source, bytes):
                handle = self.create_of_module(of_context, source, len(source), byref(status))
            else:
                text = c_char_p(source.encode())
                handle = self.create_of_text(of_context, 1, byref(text), None, byref(status))
            if not handle:
                return None
            program = _Program(self, handle, context)
            failed = self._status(handle, own, options)
            if failed:
                raise SyclProgramCompilationError(refusal(failed, self._log(handle, own)))
            return program

    def release_gone(self) -> None:
        """Let the driver free the programs that no object references any more.

        This runs in the build thread, if there is one, so that nothing is built meanwhile.
        """
        if self.gone and _has_built():
            with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
                _builder().submit(self._release_gone)
        elif self.gone:
            self._release_gone()

    def _release_gone(self) -> None:
        with contextlib.suppress(IndexError):  # until another thread or this one took the last one
            while True:
                handle, _ = self.programs.pop(self.gone.popleft())
                self.release["program"](handle)

    def _log(self, program: int, device: c_void_p) -> str:
        nbytes = c_size_t()
        self.build_info(program, device, _PROGRAM_BUILD_LOG, 0, None, byref(nbytes))
        text = ctypes.create_string_buffer(nbytes.value + 1)
        self.build_info(program, device, _PROGRAM_BUILD_LOG, nbytes, text, None)
        return text.value.decode(errors="replace").strip()

    def _status(self, program: int, device: c_void_p, options: str) -> int:
        """Build a program for a device; return 0, or the status if the driver rejects it."""
        return int(self.build(program, 1, byref(device), options.encode(), None, None))


class _Program:
    """A program built by the driver, with the methods of ``dpctl.program.SyclProgram``.

    The driver frees it after the last of its kernels, when the next program is created. It is not
    freed when this object is deleted: an interrupt in a Python callback at that point would be
    lost.
    """

    __slots__ = ("__weakref__", "_context", "_driver", "_handle")

    def __init__(self, driver: _Driver, handle: int, context: dpctl.SyclContext) -> None:
        self._driver, self._handle, self._context = driver, handle, context
        driver.release_gone()
        driver.programs[ref(self, driver.gone.append)] = handle, context

    def binary(self, queue: Queue) -> bytes | None:
        """Return the driver's binary for a queue's device; ``None`` if it is not available."""
        info, handle = self._driver.program_info, self._handle
        nbytes = c_size_t()
        if info(handle, _PROGRAM_DEVICES, 0, None, byref(nbytes)) != 0:
            return None
        count = nbytes.value // ctypes.sizeof(c_void_p)
        devices, sizes = (c_void_p * count)(), (c_size_t * count)()
        for name, values in ((_PROGRAM_DEVICES, devices), (_PROGRAM_BINARY_SIZES, sizes)):
            if info(handle, name, ctypes.sizeof(values), values, None) != 0:
                return None
        # OpenCL skips devices with a null pointer: those for which it built nothing.
        texts = [ctypes.create_string_buffer(size) for size in sizes]
        pointers = (c_void_p * count)(*(ctypes.addressof(text) if text else 0 for text in texts))
        if info(handle, _PROGRAM_BINARIES, ctypes.sizeof(pointers), pointers, None) != 0:
            return None
        with self._driver.handle_of("device", queue.sycl_device) as device:
            return dict(zip(devices, texts, strict=True))[device.value].raw or None

    def has_sycl_kernel(self, name: str) -> bool:
        """Return whether it has a kernel with the name."""
        native = self._driver.create_kernel(self._handle, name.encode(), None)
        if native:
            self._driver.release["kernel"](native)
        return bool(native)

    def get_sycl_kernel(self, name: str) -> Any:
        """Return the ``dpctl.program.SyclKernel`` with the name.

        Raises:
            KeyError: there is no such kernel.
        """
        driver, reference = self._driver, self._context.addressof_ref()
        bundle = driver.allocate(_OBJECT_SIZE)
        # Called first: it may build the program, which fails once the program has kernels.
        driver.make_kernel_bundle(
            bundle, self._handle, reference, False, _EXECUTABLE_STATE, _OPENCL_BACKEND
        )
        native = driver.create_kernel(self._handle, name.encode(), None)
        try:
            if not native:
                raise KeyError(name)
            kernel = driver.allocate(_OBJECT_SIZE)
            driver.make_kernel(kernel, reference, bundle, native, False, _OPENCL_BACKEND)
            copied = driver.copy_kernel(kernel, name.encode())
            driver.delete_kernel(kernel)
            return copied
        finally:
            driver.delete_bundle(bundle)
            driver.release["kernel"](native)


def _function(function: Any, result: Any, arguments: list[Any]) -> Any:
    function.restype = result
    function.argtypes = arguments
    return function
