"""Build SPIR-V modules with the driver of the GPU that this process sees.

    python build.py FOLDER OUT.json [DUMP_FOLDER]

The record of each module states whether it was built, and has the driver's log, the SIMD width, the
spilled bytes, the memory accesses, and elapsed and CPU time. A crash of the compiler ends this
process; run.py starts another one, which continues with the next module. With a dump folder
(IGC_ShaderDumpEnable=1 and IGC_DumpToCustomDir=DUMP_FOLDER/), facts about the instructions are read
from the compiler's dump.
"""

from __future__ import annotations

import collections
import ctypes
import json
import re
import shutil
import sys
import time
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_ulong, c_void_p
from pathlib import Path
from typing import Any

_OP_ENTRY_POINT, _OP_CAPABILITY, _OP_FUNCTION, _FLOAT64 = 15, 17, 54, 10
_GPU, _DOUBLE_CONFIG, _BUILD_LOG, _SPILL = 4, 0x1032, 0x1183, 0x4109


def head_of(spirv: bytes) -> tuple[set[int], list[str]]:
    """Return the capabilities and the entry points of a module."""
    words, at = memoryview(spirv).cast("I"), 5
    capabilities, names = set(), []
    while at < len(words) and words[at] & 0xFFFF != _OP_FUNCTION:
        size = words[at] >> 16
        if words[at] & 0xFFFF == _OP_CAPABILITY:
            capabilities.add(words[at + 1])
        elif words[at] & 0xFFFF == _OP_ENTRY_POINT:
            names.append(bytes(words[at + 3 : at + size]).split(b"\0")[0].decode())
        at += size
    return capabilities, names


class Driver:
    """The first GPU of the OpenCL loader, used through its C functions."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL(str(Path(sys.prefix, "lib/libOpenCL.so.1")))
        for name in ("clCreateContext", "clCreateProgramWithIL", "clCreateKernel"):
            getattr(self.lib, name).restype = c_void_p
        self.device = self._gpu()
        status = c_int()
        device = byref(self.device)
        self.context = c_void_p(
            self.lib.clCreateContext(None, 1, device, None, None, byref(status))
        )
        config = c_ulong()
        self.lib.clGetDeviceInfo(self.device, _DOUBLE_CONFIG, c_size_t(8), byref(config), None)
        self.has_float64 = config.value != 0

    def _gpu(self) -> c_void_p:
        count = c_uint()
        self.lib.clGetPlatformIDs(0, None, byref(count))
        platforms = (c_void_p * count.value)()
        self.lib.clGetPlatformIDs(count, platforms, None)
        for platform in platforms:
            device = c_void_p()
            found = self.lib.clGetDeviceIDs(
                c_void_p(platform), c_ulong(_GPU), 1, byref(device), None
            )
            if found == 0:
                return device
        sys.exit("no GPU")

    def build(self, spirv: bytes, options: str, names: list[str]) -> dict[str, Any]:
        """Build a module; return its record."""
        lib, status, size = self.lib, c_int(), c_size_t()
        start, start_cpu = time.monotonic(), time.process_time()
        program = c_void_p(
            lib.clCreateProgramWithIL(self.context, spirv, c_size_t(len(spirv)), byref(status))
        )
        code = status.value
        if program:
            given = c_char_p(options.encode())
            code = lib.clBuildProgram(program, 1, byref(self.device), given, None, None)
        seconds = round(time.monotonic() - start, 2)
        cpu_seconds = round(time.process_time() - start_cpu, 2)
        lib.clGetProgramBuildInfo(program, self.device, _BUILD_LOG, c_size_t(0), None, byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        lib.clGetProgramBuildInfo(program, self.device, _BUILD_LOG, size, log, None)
        record: dict[str, Any] = {
            "status": "built" if code == 0 else f"refused ({code})",
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "log": log.value.decode(errors="replace")[-600:],
        }
        for name in names if code == 0 else ():
            kernel = c_void_p(lib.clCreateKernel(program, name.encode(), byref(status)))
            spill = c_ulong()
            lib.clGetKernelWorkGroupInfo(
                kernel, self.device, _SPILL, c_size_t(8), byref(spill), None
            )
            record["spill"] = max(record.get("spill", 0), spill.value)
            lib.clReleaseKernel(kernel)
        lib.clReleaseProgram(program)
        return record


def of_assembly(path: Path) -> dict[str, Any]:
    """Return SIMD width, spilled bytes and the counted memory messages of a dumped kernel."""
    text = path.read_text(errors="replace")
    width = re.search(r"_simd(\d+)_", path.name)
    spilled = re.search(r"//\.spill size (\d+)", text)
    messages = collections.Counter(
        re.sub(r"\s+", " ", note.strip())[:40]
        for line in text.splitlines()
        if "send" in line and "//" in line and not line.lstrip().startswith("//")
        for note in [re.split(r"[;&]|wr:", line.split("//", 1)[1])[-1]]
    )
    scattered = sum(
        count for note, count in messages.items() if re.search(r"scatter|gather|xy|a64", note)
    )
    return {
        "simd": int(width[1]) if width else 0,
        "spilled": int(spilled[1]) if spilled else 0,
        "scattered": scattered,
        "messages": dict(messages.most_common(8)),
    }


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    dump = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    driver = Driver()
    done = json.loads(out.read_text()) if out.exists() else {}
    for path in sorted(folder.glob("*.spv")):
        if path.stem in done:
            continue
        print(path.stem, flush=True)
        spirv, about = path.read_bytes(), json.loads(path.with_suffix(".json").read_text())
        capabilities, names = head_of(spirv)
        if _FLOAT64 in capabilities and not driver.has_float64:
            record: dict[str, Any] = {"status": "needs fp64"}
        else:
            record = driver.build(spirv, about["options"], names)
        record |= {"kernels": names, "call": about["call"]}
        if dump is not None and dump.is_dir():
            found = [of_assembly(each) for each in sorted(dump.rglob("*.asm"))]
            if found:
                record["assembly"] = found[-1]
            shutil.rmtree(dump)
            dump.mkdir()
        done[path.stem] = record
        out.write_text(json.dumps(done))


if __name__ == "__main__":
    main()
