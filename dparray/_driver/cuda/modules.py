"""Load modules of PTX, which NVIDIA's driver compiles and caches on disk.

State: the kernels in use, by their addresses.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from cuda.bindings import driver

from dparray._driver.cuda.context import Current, call, failure
from dparray._driver.cuda.queues import Queue
from dparray._driver.interface import Loaded, ModuleRejected, Store

_BYTES_OF_LOG = 16 << 10
_OPTIONS = driver.CUjit_option
_ATTRIBUTES = driver.CUfunction_attribute


class Kernel(NamedTuple):
    """A kernel in a device's memory.

    Attributes:
        function: the driver's object.
        group: the largest number of work-items in a group.
        library: keeps the module loaded.
        local: the bytes of dynamic local memory that launches may ask for, a list of one number.
        entry: its name in the module.
        queue: a queue of the device.
    """

    function: Any
    group: int
    library: _Library
    local: list[int]
    entry: str
    queue: Queue


#: The kernels in use, by address.
kernels: dict[int, Kernel] = {}


class _Library:
    """A loaded module; the driver unloads it at the end of the process."""

    def __init__(self, module: bytes, registers: int = 0) -> None:
        self.module = module
        self.log = bytearray(_BYTES_OF_LOG)  # kept, since the driver may write to it later
        options = [_OPTIONS.CU_JIT_ERROR_LOG_BUFFER, _OPTIONS.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        values = [self.log, _BYTES_OF_LOG]
        if registers:
            options.append(_OPTIONS.CU_JIT_MAX_REGISTERS)
            values.append(registers)
        status, self.handle = driver.cuLibraryLoadData(
            module + b"\0", options, values, len(options), [], [], 0
        )
        self.check(status)

    def check(self, status: Any) -> None:
        """Raise ``ModuleRejected`` with the log if the module was not accepted."""
        if status in _REJECTED:
            log = self.log.partition(b"\0")[0].decode(errors="replace").strip()
            raise ModuleRejected(log or status.name)
        if status:
            raise failure(status, "loading a module")


_REJECTED = {
    getattr(driver.CUresult, f"CUDA_ERROR_{name}")
    for name in (
        "INVALID_IMAGE",
        "INVALID_PTX",
        "INVALID_SOURCE",
        "JIT_COMPILER_NOT_FOUND",
        "NO_BINARY_FOR_GPU",
        "UNSUPPORTED_PTX_VERSION",
    )
}


def load(queue: Queue, module: bytes | str, entry: str, options: str, binaries: Store) -> Loaded:
    """Return a kernel of a module of PTX.

    Raises:
        ModuleRejected: the driver does not accept the module; the message has its log.
        KeyError: the module has no such kernel.
    """
    content = module.encode() if isinstance(module, str) else module
    address, kernel = _loaded(queue, content, entry)
    return Loaded(address, kernel.group, 32, 0, kernel.function)


def _loaded(queue: Queue, module: bytes, entry: str, registers: int = 0) -> tuple[int, Kernel]:
    """Return a kernel and its address; work-items get at most ``registers``, unless that is 0."""
    with Current(queue.number):
        library = _Library(module, registers)
        status, of_module = driver.cuLibraryGetKernel(library.handle, entry.encode())
        if status == driver.CUresult.CUDA_ERROR_NOT_FOUND:
            raise KeyError(entry)
        library.check(status)
        # A driver that loads lazily compiles the module here.
        status, function = driver.cuKernelGetFunction(of_module)
        library.check(status)
        most, local = (
            call(driver.cuFuncGetAttribute, attribute, function)
            for attribute in (
                _ATTRIBUTES.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                _ATTRIBUTES.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            )
        )
    address = int(function)
    kernels[address] = kernel = Kernel(function, most, library, [local], entry, queue)
    return address, kernel


@lru_cache(maxsize=256)
def for_groups(address: int, size: int) -> Kernel:
    """Return the kernel at an address, compiled with few enough registers for groups of a size.

    The driver keeps the other values of a work-item in memory.
    """
    kernel = kernels[address]
    registers = kernel.queue.device.properties.max_registers_per_block // size // 8 * 8
    return _loaded(kernel.queue, kernel.library.module, kernel.entry, registers)[1]


def allow_local(kernel: Kernel, nbytes: int) -> bool:
    """Allow launches this much dynamic local memory; return whether the device has as much."""
    (status,) = driver.cuFuncSetAttribute(
        kernel.function,
        _ATTRIBUTES.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        nbytes,
    )
    if status == driver.CUresult.CUDA_ERROR_INVALID_VALUE:
        return False
    if status:
        raise failure(status, "a launch with dynamic local memory")
    kernel.local[0] = nbytes
    return True


def keeps_binaries(queue: Queue) -> bool:
    """Return whether dparray keeps machine code: the driver has its own cache on disk."""
    return False


def has_loaded() -> bool:
    return bool(kernels)
