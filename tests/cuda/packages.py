"""NVIDIA's packages that the tests use: the assembler ``ptxas``, and libdevice."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from dparray._compiler.back_ends.ptx.client import libdevice_path

#: The oldest GPUs that are supported, and those of an H100.
PROCESSORS = ("sm_75", "sm_90")
_LOCK = Path(__file__).resolve().parents[2] / "requirements.lock"


class Usage(NamedTuple):
    """The report of ``ptxas -v``: registers, and bytes in local and shared memory."""

    registers: int
    stack: int
    spilled: int
    shared: int


@functools.cache
def _tool(name: str) -> str:
    """Return the file of a tool of NVIDIA's packages or of a toolkit, or ""."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        for found in sorted(Path(folder).glob(f"*/bin/{name}")):
            return str(found)
    return shutil.which(name) or ""


def ptxas_path() -> str:
    """Return the file of ptxas, of the package ``nvidia-cuda-nvcc`` or a toolkit, or ""."""
    return _tool("ptxas")


def machine_code(ptx: bytes, processor: str = PROCESSORS[-1]) -> list[str]:
    """Return the names of a kernel's instructions in order; skip the test without ``nvdisasm``."""
    disassembler = need(_tool("nvdisasm"), "nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        source, code = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_bytes(ptx)
        command = [need(ptxas_path(), "nvidia-cuda-nvcc"), "-arch", processor]
        subprocess.run([*command, "-o", str(code), str(source)], check=True)
        listed = [disassembler, "-c", str(code)]
        text = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    found = re.findall(r"/\*[0-9a-f]{4,}\*/ +(?:@!?U?P\w+ +)?([A-Z][\w.]*)", text)
    return [name for name in found if name != "NOP"]


def need(path: str, package: str) -> str:
    """Return a path; skip the test if it is "" and the lock does not have its package."""
    if not path:
        message = f"{package} is not installed: pip install {package}"
        if f"\n{package}==" in _LOCK.read_text():
            pytest.fail(f"{message}; requirements.lock has it")
        pytest.skip(message)
    return path


def need_libdevice() -> None:
    """Skip the test without NVIDIA's math library."""
    need(libdevice_path(), "nvidia-nvvm")


def assembled(ptx: bytes, processor: str = PROCESSORS[0]) -> Usage:
    """Return what a kernel uses.

    Raises:
        AssertionError: ptxas rejects it.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_bytes(ptx)
        command = [need(ptxas_path(), "nvidia-cuda-nvcc"), "-v", "-arch", processor]
        command += ["-o", os.devnull, str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
    report = done.stderr + done.stdout
    assert done.returncode == 0, f"{report}\n{ptx.decode()}"

    def number(pattern: str) -> int:
        return sum(map(int, re.findall(pattern, report)))

    return Usage(
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes stack frame"),
        number(r"(\d+) bytes spill"),
        number(r"(\d+) bytes smem"),
    )
