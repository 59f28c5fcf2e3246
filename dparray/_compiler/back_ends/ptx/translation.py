"""Translate a module of LLVM IR for SPIR-V to one for NVPTX, as text and without optimization."""

from __future__ import annotations

import re
from functools import partial

from dparray._compiler.abi import DECLARED, Function, contracted, function_of, split
from dparray._compiler.back_ends.ptx.definitions import definitions
from dparray._compiler.back_ends.ptx.work_items import Launch
from dparray._compiler.targets import APPROXIMATE, DIMENSIONS
from dparray.exceptions import KernelCompileError

_HEAD = re.compile(
    r"^(?:target (?:datalayout|triple)|source_filename|!opencl\.ocl\.version).*\n", re.MULTILINE
)
# An entry point, up to the label of its first block.
_ENTRY = re.compile(
    r"^define spir_kernel void @(?P<name>[-\w.$]+)\((?P<parameters>[^\n]*)\{\n"
    r"(?P<label>[-\w.$]+:[^\n]*\n)?",
    re.MULTILINE,
)
# The line that states the range of a kernel, and the dimensions that a generated kernel reads.
_STATED = re.compile(DIMENSIONS.format(r"(\d)"))
_DIMENSION = re.compile(r"@_Z\d+get_\w+j\(i32 (\d)\)")
# The remainder of floats, which LLVM expands for NVPTX to one step of a division: too few for a
# quotient that has more bits than a float.
_REMAINDER = re.compile(
    r"^  (?P<result>%\S+) = frem (?:(?:fast|nnan|ninf|nsz|arcp|contract|afn|reassoc) )*"
    r"(?P<type>half|float|double) (?P<left>[^,\n]+), (?P<right>[^,\n]+)",
    re.MULTILINE,
)
# Instructions of PTX with errors of at most 2 ulp and 1 ulp, for float32.
_DIVISION = re.compile(
    r"^(  %\S+ =) fdiv (?:reassoc nsz )?(float [^,\n]+), ([^,\n]+)", re.MULTILINE
)
_ROOT = "@_Z4sqrtf("
_APPROXIMATIONS = """declare float @llvm.nvvm.div.full(float, float)
declare float @llvm.nvvm.sqrt.approx.f(float)
"""
# The memory for a launch's local accessors; its size is an argument of the launch.
_DYNAMIC = "@dparray_dynamic = external addrspace(3) global [0 x i8], align 16\n"


def dimensions_of(text: str) -> int:
    """Return the number of dimensions of a kernel's range."""
    if found := _STATED.search(text):
        return int(found[1])
    return max(map(int, _DIMENSION.findall(text)), default=0) + 1


def translated(text: str, launch: Launch, *, contract: bool = False) -> str:
    """Return the module for NVPTX, without a triple and a data layout.

    A parameter in local memory becomes its offset in bytes in the launch's dynamic shared memory.

    Args:
        text: the compiler's module.
        launch: the known properties of launches.
        contract: whether products and sums may be contracted to fused operations.

    Raises:
        KernelCompileError: it has no entry point.
    """
    text = _HEAD.sub("", text).replace("addrspace(2)", "addrspace(1)")  # texts of printf
    wanted: list[Function] = []

    def note(found: re.Match[str]) -> str:
        result, quoted, plain, parameters = found.groups()
        wanted.append(function_of(quoted or plain, result, parameters))
        return ""

    text = _with_offsets(DECLARED.sub(note, text)).replace("spir_func ", "")
    text = _REMAINDER.sub(partial(_with_fmod, wanted), text)
    if contract:
        text = contracted(text)
    if APPROXIMATE in text:
        text = _DIVISION.sub(r"\1 call float @llvm.nvvm.div.full(\2, float \3)", text)
        text = text.replace(_ROOT, "@llvm.nvvm.sqrt.approx.f(") + _APPROXIMATIONS
    return f"{text}\n{definitions(wanted, launch)}"


def _with_fmod(wanted: list[Function], found: re.Match[str]) -> str:
    """Return the call of ``fmod`` for a remainder; that of float16 numbers is exact in float32."""
    result, kind, left, right = found.group("result", "type", "left", "right")
    float_ = "double" if kind == "double" else "float"
    name = f"_Z4fmod{float_[0] * 2}"
    wanted.append(Function(name, float_, (float_, float_)))
    if kind != "half":
        return f"  {result} = call {kind} @{name}({kind} {left}, {kind} {right})"
    own = f"%dparray.remainder.{found.start()}"
    return (
        f"  {own}.left = fpext half {left} to float\n"
        f"  {own}.right = fpext half {right} to float\n"
        f"  {own} = call float @{name}(float {own}.left, float {own}.right)\n"
        f"  {result} = fptrunc float {own} to half"
    )


def _with_offsets(text: str) -> str:
    """Replace the calling convention, and parameters in local memory."""
    entry = _ENTRY.search(text)
    if entry is None:
        raise KernelCompileError("the module of a kernel has no entry point", details=text)
    parameters, addresses = [], []
    for parameter in split(entry["parameters"]):
        if not parameter.startswith("ptr addrspace(3)"):
            parameters.append(parameter)
            continue
        name = parameter.split()[-1]
        parameters.append(f"i64 {name}.offset")
        addresses.append(
            f"  {name} = getelementptr i8, ptr addrspace(3) @dparray_dynamic, i64 {name}.offset\n"
        )
    head = f"define ptx_kernel void @{entry['name']}({', '.join(parameters)}) {{\n"
    head += (entry["label"] or "") + "".join(addresses)
    return (_DYNAMIC if addresses else "") + text[: entry.start()] + head + text[entry.end() :]
