"""Build a SPIR-V module by OpenCL in a process of its own: the script that is run there.

A GPU driver's compiler can crash on a module, which ends its process. ``program.py`` runs this file
by its path, without site packages, and gets the binary that it would have built itself. So nothing
of dparray is imported here.

Standard input: a line of JSON (the OpenCL library, the names of platform, device and driver
version, the build options), then the module. Standard output: a line of JSON with the status of the
build, -1000 if the device was not found, and the log; then the binary. Before the build it writes
a line BEGUN: a compiler that crashes may end the process with any status.
"""

from __future__ import annotations

import ctypes
import json
import sys
from ctypes import byref, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

NOT_FOUND = -1000
BEGUN = b"begun\n"

_GPU = 4
_PLATFORM_NAME, _DEVICE_NAME, _DRIVER_VERSION = 0x0902, 0x102B, 0x102D
_BINARY_SIZES, _BINARIES, _BUILD_LOG = 0x1165, 0x1166, 0x1183


def _text(function: object, handle: object, number: int) -> str:
    size = c_size_t()
    function(handle, number, c_size_t(0), None, byref(size))  # type: ignore[operator]
    text = ctypes.create_string_buffer(size.value + 1)
    function(handle, number, size, text, None)  # type: ignore[operator]
    return text.value.decode(errors="replace")


def _device(opencl: ctypes.CDLL, wanted: dict[str, str]) -> c_void_p | None:
    count = c_uint32()
    opencl.clGetPlatformIDs(0, None, byref(count))
    platforms = (c_void_p * count.value)()
    opencl.clGetPlatformIDs(count, platforms, None)
    for handle in platforms:
        platform = c_void_p(handle)
        if _text(opencl.clGetPlatformInfo, platform, _PLATFORM_NAME) != wanted["platform"]:
            continue
        number = c_uint32()
        opencl.clGetDeviceIDs(platform, c_uint64(_GPU), 0, None, byref(number))
        devices = (c_void_p * number.value)()
        opencl.clGetDeviceIDs(platform, c_uint64(_GPU), number, devices, None)
        for each in map(c_void_p, devices):
            name = _text(opencl.clGetDeviceInfo, each, _DEVICE_NAME)
            version = _text(opencl.clGetDeviceInfo, each, _DRIVER_VERSION)
            if (name, version) == (wanted["device"], wanted["version"]):
                return each
    return None


def _build(wanted: dict[str, str], module: bytes) -> tuple[int, str, bytes]:
    """Status, log and binary."""
    opencl = ctypes.CDLL(wanted["library"])
    for name in ("clCreateContext", "clCreateProgramWithIL"):
        getattr(opencl, name).restype = c_void_p
    device = _device(opencl, wanted)
    if device is None:
        return NOT_FOUND, "", b""
    status = c_int32()
    context = c_void_p(opencl.clCreateContext(None, 1, byref(device), None, None, byref(status)))
    length = c_size_t(len(module))
    program = c_void_p(opencl.clCreateProgramWithIL(context, module, length, byref(status)))
    if not program:
        return status.value, "", b""
    sys.stdout.buffer.write(BEGUN)
    sys.stdout.buffer.flush()
    options = c_char_p(wanted["options"].encode())
    failed = opencl.clBuildProgram(program, 1, byref(device), options, None, None)
    size = c_size_t()
    opencl.clGetProgramBuildInfo(program, device, _BUILD_LOG, c_size_t(0), None, byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    opencl.clGetProgramBuildInfo(program, device, _BUILD_LOG, size, log, None)
    binary = b""
    if not failed:
        opencl.clGetProgramInfo(program, _BINARY_SIZES, c_size_t(8), byref(size), None)
        content = ctypes.create_string_buffer(size.value)
        pointer = c_void_p(ctypes.addressof(content))
        opencl.clGetProgramInfo(program, _BINARIES, c_size_t(8), byref(pointer), None)
        binary = content.raw
    return failed, log.value.decode(errors="replace").strip(), binary


def main() -> None:
    """Build the module from the standard input."""
    wanted = json.loads(sys.stdin.buffer.readline())
    status, log, binary = _build(wanted, sys.stdin.buffer.read())
    sys.stdout.buffer.write(json.dumps({"status": status, "log": log}).encode() + b"\n" + binary)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
