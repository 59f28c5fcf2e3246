"""The back end for NVIDIA GPUs: PTX, written in a helper process.

State: the helper, started at the first use or by :func:`start`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from pathlib import Path

from dparray._compiler.back_ends.helper_process import HelperProcess, folder_of_llvmlite
from dparray._compiler.back_ends.ptx import worker
from dparray._compiler.back_ends.ptx.translation import dimensions_of, translated
from dparray._compiler.back_ends.ptx.work_items import Launch
from dparray._compiler.targets import EmissionError
from dparray._driver.interface import Target
from dparray._ir.instructions import Function
from dparray.exceptions import KernelCompileError

#: The bytes of shared memory that PTX may declare in a kernel, on every GPU.
MAX_STATIC_SHARED = 48 << 10
_SHARED = re.compile(r"\.shared \.align \d+ \.b8 [\w$]+\[(\d+)\];")
# Device functions without a definition. The caller explains other functions that devices lack.
_UNDEFINED = re.compile(r"^declare [^@\n]*@(_Z\w+)\(", re.MULTILINE)


@functools.cache
def libdevice_path() -> str:
    """Return the file of NVIDIA's math library, or "" if it is not installed.

    It belongs to the package ``nvidia-nvvm``. Without the package, that of a CUDA toolkit is used,
    which ``CUDA_HOME`` or ``CUDA_PATH`` names.
    """
    spec = importlib.util.find_spec("nvidia")
    folders = list((spec and spec.submodule_search_locations) or ())
    toolkits = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for folder, pattern in [
        *[(folder, "*/nvvm/libdevice/libdevice.*.bc") for folder in folders],
        *[(toolkit, "nvvm/libdevice/libdevice.*.bc") for toolkit in toolkits],
    ]:
        for found in sorted(Path(folder).glob(pattern)):
            return str(found)
    return ""


def _command() -> list[str]:
    program = ["-I", "-S", str(worker.__file__)]
    return [sys.executable, *program, folder_of_llvmlite(), libdevice_path()]


helper = HelperProcess("PTX", _command, worker.ANSWER, ends_for_a_module=True)
start = helper.start


def prepare(function: Function) -> None:
    """Leave a program as it is."""


def optimised(text: str, target: Target, contracts: bool = False) -> tuple[str, bytes]:
    """Return the optimized text of a module, and its PTX, as :func:`compile` does.

    Args:
        text: the compiler's LLVM IR, not optimized.
        target: its target; one module serves all of them.
        contracts: whether products and sums may be contracted to fused operations.

    Raises:
        EmissionError, KernelCompileError, KernelError: as by :func:`compile`.
    """
    return compile(text, ndim=dimensions_of(text), contract=contracts)


def needs(module: bytes) -> set[str]:
    """Return the aspects that a device must have: all GPUs from sm_75 on have them."""
    return set()


def without_float64(module: bytes) -> bytes:
    """Return the module: all GPUs have float64."""
    return module


def readable(llvm: str, module: bytes) -> str:
    """Return the PTX, which is text."""
    return module.decode()


def compile(
    text: str, *, ndim: int = 1, whole_warps: bool = False, contract: bool = False
) -> tuple[str, bytes]:
    """Return the optimized text of a module, and its PTX, which runs on GPUs from sm_75 on.

    The PTX is empty if the module still calls functions that only hosts have, or code that raises.
    Parameters are those of the kernel in its order, except that local memory is passed as its
    offset in bytes in the launch's dynamic shared memory, a 64-bit integer.

    Args:
        text: the compiler's LLVM IR, not optimized.
        ndim: the number of dimensions of the kernel's range. The last one is CUDA's ``x``.
        whole_warps: whether all its groups have a multiple of 32 work-items.
        contract: whether products and sums may be contracted to fused operations.

    Raises:
        EmissionError: the kernel needs something that NVIDIA GPUs or LLVM do not have.
        KernelCompileError: libdevice is not installed.
        KernelError: the helper does not start, or was killed.
    """
    prepared = translated(text, Launch(ndim, whole_warps), contract=contract)
    if '@"__nv_' in prepared and not libdevice_path():
        raise KernelCompileError(
            "a kernel calls mathematical functions, which for NVIDIA GPUs are in libdevice: "
            "pip install nvidia-nvvm, or set CUDA_HOME to a CUDA toolkit",
            details=text,
        )
    answer = _asked(prepared)
    start = worker.LENGTH.size
    end = start + worker.LENGTH.unpack(answer[:start])[0]
    llvm, ptx = answer[start:end].decode(), answer[end:]
    if undefined := _UNDEFINED.findall(llvm):
        raise EmissionError(f"it calls {', '.join(undefined)}, which NVIDIA GPUs do not have")
    static = sum(map(int, _SHARED.findall(ptx.decode())))
    if static > MAX_STATIC_SHARED:
        raise EmissionError(
            f"the arrays of dp.LocalArray take {static} bytes for each work-group, and NVIDIA GPUs "
            f"allow {MAX_STATIC_SHARED}. Pass a dp.LocalAccessor to the kernel"
        )
    return llvm, ptx


def _asked(text: str) -> bytes:
    content = text.encode()
    status, answer = helper.ask(worker.REQUEST.pack(len(content)) + content)
    if status:
        raise EmissionError(answer.decode())
    return answer
