"""Definitions of the device functions: all are there, ptxas accepts them, groups are NumPy's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from dparray._compiler import abi
from dparray._compiler.abi import mangled
from dparray._compiler.back_ends.ptx import client
from dparray._compiler.targets import EmissionError
from dparray._ir.instructions import FUNCTIONS
from dparray.kernel_api import vectors
from tests.cuda import packages
from tests.cuda.ptx_emulator import Memory, Module

_TYPES = {"i": "i32", "j": "i32", "l": "i64", "m": "i64", "f": "float", "d": "double"}
_INTEGER_GROUPS = ("IAdd", "SMin", "SMax", "UMin", "UMax")
_FLOAT_GROUPS = ("FAdd", "FMin", "FMax")
_INTEGER_ATOMICS = (*_INTEGER_GROUPS, "ISub", "And", "Or", "Xor", "Exchange")
_FLOAT_ATOMICS = ("FAddEXT", "FMinEXT", "FMaxEXT")
_SCOPES, _ORDERS = range(4), (896, 898, 900, 904, 912)


class Call(NamedTuple):
    """A call of a device function: its mangled name, LLVM types, constant arguments by position."""

    name: str
    result: str
    parameters: tuple[str, ...]
    constants: dict[int, Any]


def _operations(code: str, integers: tuple[str, ...], floats: tuple[str, ...]) -> tuple[str, ...]:
    return floats if code in "fd" else integers


def _work_items() -> Iterator[Call]:
    for name in ("GLOBAL_ID", "GLOBAL_SIZE", "LOCAL_ID", "LOCAL_SIZE", "GROUP_ID", "GROUP_COUNT"):
        for dimension in range(3):
            constants = {0: dimension}
            yield Call(mangled(getattr(abi, name), "j"), "i64", ("i32",), constants)
    for name in ("LOCAL_ID", "SIZE", "MAX_SIZE", "ID", "COUNT"):
        yield Call(mangled(getattr(abi, f"SUB_GROUP_{name}"), "v"), "i32", (), {})


def _barriers() -> Iterator[Call]:
    for scope in _SCOPES:
        for who in (2, 3):
            constants = {0: who, 1: scope, 2: 912}
            yield Call(mangled("__spirv_ControlBarrier", "jjj"), "void", ("i32",) * 3, constants)
        constants = {0: scope, 1: 904}
        yield Call(mangled("__spirv_MemoryBarrier", "jj"), "void", ("i32",) * 2, constants)


def _groups(code: str) -> Iterator[Call]:
    type_ = _TYPES[code]
    yield Call(mangled("sub_group_shuffle", code + "j"), type_, (type_, "i32"), {})
    for operation in _operations(code, _INTEGER_GROUPS, _FLOAT_GROUPS):
        name = mangled(f"__spirv_Group{operation}", "jj" + code)
        for scope in (2, 3):
            for kind in range(3):
                yield Call(name, type_, ("i32", "i32", type_), {0: scope, 1: kind})
    for codes, identifier in (("m", "i64"), ("Dv2_m", "<2 x i64>"), ("Dv3_m", "<3 x i64>")):
        name = mangled("__spirv_GroupBroadcast", "j" + code + codes)
        yield Call(name, type_, ("i32", type_, identifier), {0: 2})


def _atomics(code: str, space: int) -> Iterator[Call]:
    type_, pointer = _TYPES[code], f"ptr addrspace({space})"
    codes = f"PU3AS{space}{code}"
    for order in _ORDERS:
        constants = {1: order % 3, 2: order}
        for operation in _operations(code, _INTEGER_ATOMICS, _FLOAT_ATOMICS):
            name = mangled(f"__spirv_Atomic{operation}", f"{codes}jj{code}")
            yield Call(name, type_, (pointer, "i32", "i32", type_), constants)
        if code in "fd":
            continue
        name = mangled("__spirv_AtomicLoad", f"{codes}jj")
        yield Call(name, type_, (pointer, "i32", "i32"), constants)
        name = mangled("__spirv_AtomicStore", f"{codes}jj{code}")
        yield Call(name, "void", (pointer, "i32", "i32", type_), constants)
        name = mangled("__spirv_AtomicCompareExchange", f"{codes}jjj{code}{code}")
        parameters = (pointer, "i32", "i32", "i32", type_, type_)
        yield Call(name, type_, parameters, constants | {3: order})


def _mathematics() -> Iterator[Call]:
    found = {
        mangled(name, f"{code}i" if name == "ldexp" else count * code)
        for name, count in FUNCTIONS.items()
        for code in "fd"
    }
    for name in sorted(found):
        parts = re.fullmatch(r"_Z(\d+)(.*)", name)
        assert parts is not None
        parameters = tuple(_TYPES[code] for code in parts[2][int(parts[1]) :])
        yield Call(name, parameters[0], parameters, {})


def _vectors(code: str) -> Iterator[Call]:
    found = {
        **dict.fromkeys((*vectors.UNARY, *vectors.ROUNDING), 1),
        **dict.fromkeys(vectors.BINARY, 2),
    }
    for number, (name, count) in enumerate(found.items()):
        width = 2 if number else 8
        type_ = f"<{width} x {_TYPES[code]}>"
        codes = f"Dv{width}_{code}" + "S_" * (count - 1)
        yield Call(
            mangled("tgamma" if name == "gamma" else name, codes), type_, (type_,) * count, {}
        )


def _printing() -> Iterator[Call]:
    name = mangled("__spirv_ocl_printf", "PU3AS2Kcld")
    yield Call(name, "i32", ("ptr addrspace(2)", "i64", "double"), {0: "null"})


FAMILIES: dict[str, Callable[[], Iterator[Call]]] = {
    "work-items": _work_items,
    "barriers": _barriers,
    "mathematics": _mathematics,
    "printing": _printing,
    **{f"vectors of {code}": (lambda code=code: _vectors(code)) for code in "fd"},
    **{f"groups of {code}": (lambda code=code: _groups(code)) for code in _TYPES},
    **{
        f"atomics of {code} in space {space}": (
            lambda code=code, space=space: _atomics(code, space)
        )
        for code in _TYPES
        for space in (1, 3)
    },
}


def module(calls: list[Call]) -> str:
    """Return a kernel that makes calls, and stores their results."""
    declared = {each.name: each for each in calls}
    lines = [
        f"declare spir_func {each.result} @{each.name}({', '.join(each.parameters)}) nounwind"
        for each in declared.values()
    ]
    lines.append(
        "define spir_kernel void @kernel_calls"
        "(ptr addrspace(1) %in, ptr addrspace(1) %out, ptr addrspace(3) %local) {\nentry:"
    )
    for number, each in enumerate(calls):
        arguments = []
        for at, kind in enumerate(each.parameters):
            value = f"%v{number}.{at}"
            if at in each.constants:
                value = str(each.constants[at])
            elif kind.startswith("ptr"):
                value = "%local" if "(3)" in kind else "%out"
            else:
                lines.append(
                    f"  %p{number}.{at} = getelementptr i8, ptr addrspace(1) %in, i64 {64 * at}"
                )
                lines.append(f"  {value} = load {kind}, ptr addrspace(1) %p{number}.{at}, align 8")
            arguments.append(f"{kind} {value}")
        call = f"call spir_func {each.result} @{each.name}({', '.join(arguments)})"
        if each.result == "void":
            lines.append(f"  {call}")
        else:
            lines.append(f"  %r{number} = {call}")
            lines.append(f"  store {each.result} %r{number}, ptr addrspace(1) %out, align 8")
    return "\n".join([*lines, "  ret void\n}\n"])


@pytest.mark.sample(6)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_function_of_the_compiler_has_a_definition(family: str, libdevice: None) -> None:
    text = module(list(FAMILIES[family]()))
    has_variants = family.startswith(("work-items", "groups"))
    for ndim, whole_warps in ((1, True), (3, False)) if has_variants else ((1, True),):
        _, written = client.compile(text, ndim=ndim, whole_warps=whole_warps)
        packages.assembled(written)


def test_mathematics_is_precise(libdevice: None) -> None:
    """Square roots are rounded exactly and denormals are kept, also inside of libdevice."""
    roots = ("sqrt", "hypot", "acosh", "asin")
    calls = [each for each in _mathematics() if any(name in each.name for name in roots)]
    _, written = client.compile(module(calls))
    assert "sqrt.rn.f32" in written.decode()
    assert not re.search(r"\bsqrt\.approx", written.decode())
    assert not re.search(r"\b(?:add|mul|fma|sqrt)\S*\.ftz", written.decode())


def test_functions_that_gpus_do_not_have_are_named() -> None:
    text = module([Call("_Z9read_pipei", "i32", ("i32",), {0: 0})])
    with pytest.raises(EmissionError, match="_Z9read_pipei, which NVIDIA GPUs do not have"):
        client.compile(text)


def test_calls_that_llvm_removes_need_no_definition() -> None:
    """The compiler removes code that could raise an exception only by optimization."""
    text = """declare void @"dparray: line 3: it may raise TypeError"()
define spir_kernel void @kernel_calls(ptr addrspace(1) %x) {
entry:
  br i1 false, label %raise, label %end
raise:
  call void @"dparray: line 3: it may raise TypeError"()
  br label %end
end:
  ret void
}
"""
    llvm, written = client.compile(text)
    assert "TypeError" not in llvm
    assert written
    # The compiler explains calls that remain.
    llvm, written = client.compile(text.replace("i1 false", "i1 true"))
    assert 'declare void @"dparray: line 3: it may raise TypeError"()' in llvm
    assert not written


# --- values of group functions --------------------------------------------------------------------

_DTYPES = {"i": "i4", "l": "i8", "j": "u4", "m": "u8", "f": "f4", "d": "f8"}
_OPERATIONS: dict[str, Any] = {
    "Add": (np.add, 0),
    "Min": (np.minimum, np.inf),
    "Max": (np.maximum, -np.inf),
}


def run(text: str, x: np.ndarray, block: tuple[int, ...], *, whole_warps: bool) -> np.ndarray:
    """Run a kernel of two arrays in one block, given in the order of a range."""
    _, written = client.compile(text, ndim=len(block), whole_warps=whole_warps)
    memory = Memory()
    source, target = memory.put(x), memory.put(np.zeros_like(x))
    arguments = [source, target, np.int64(0)]
    Module(written).launch("kernel_calls", (1,), block[::-1], arguments, memory, shared=64)
    return memory.get(target, x.dtype, x.size)


def _with_elements(text: str, type_: str, ndim: int) -> str:
    """Return a kernel that reads and writes one element for each work-item, in C order."""
    index, size = (mangled(name, "j") for name in (abi.LOCAL_ID, abi.LOCAL_SIZE))
    lines, linear = [], "0"
    for dimension in range(ndim):
        lines += [
            f"  %id{dimension} = call spir_func i64 @{index}(i32 {dimension})",
            f"  %size{dimension} = call spir_func i64 @{size}(i32 {dimension})",
            f"  %m{dimension} = mul i64 {linear}, %size{dimension}",
            f"  %l{dimension} = add i64 %m{dimension}, %id{dimension}",
        ]
        linear = f"%l{dimension}"
    lines += [
        f"  %{one}.own = getelementptr {type_}, ptr addrspace(1) %{one}, i64 {linear}"
        for one in ("in", "out")
    ]
    head = "".join(f"declare spir_func i64 @{name}(i32)\n" for name in (index, size))
    text = re.sub(r"= getelementptr i8, ptr addrspace\(1\) %in, i64 \d+", "= getelementptr i8, "
                  "ptr addrspace(1) %in.own, i64 0", text)  # fmt: skip
    text = text.replace("ptr addrspace(1) %out, align", "ptr addrspace(1) %out.own, align")
    return head + text.replace("entry:", "entry:\n" + "\n".join(lines))


@pytest.mark.parametrize("block", [(96,), (40,), (3, 5, 4), (1024,), (7,)])
@pytest.mark.parametrize("code", _DTYPES)
@pytest.mark.parametrize("operation", _OPERATIONS)
def test_scans_and_reductions_are_numpys(operation: str, code: str, block: tuple[int, ...]) -> None:
    combine, identity = _OPERATIONS[operation]
    dtype = np.dtype(_DTYPES[code])
    if dtype.kind in "iu" and operation != "Add":
        limits = np.iinfo(dtype)
        identity = limits.max if operation == "Min" else limits.min
    letter = {"i": "I" if operation == "Add" else "S", "u": "I" if operation == "Add" else "U"}
    size = int(np.prod(block))
    x = np.random.default_rng(1).integers(-50, 50, size).astype(dtype)
    name = mangled(f"__spirv_Group{letter.get(dtype.kind, 'F')}{operation}", "jj" + code)
    for scope, length in ((2, size), (3, 32)):
        for kind in range(3):
            parameters = ("i32", "i32", _TYPES[code])
            call = Call(name, _TYPES[code], parameters, {0: scope, 1: kind})
            text = _with_elements(module([call]), _TYPES[code], len(block))
            found = run(text, x, block, whole_warps=size % 32 == 0)
            wanted = []
            for first in range(0, size, length):
                part = combine.accumulate(x[first : first + length], dtype=dtype)
                before = np.r_[np.array([identity], dtype), part[:-1]]
                wanted.append([np.full_like(part, part[-1]), part, before][kind])
            np.testing.assert_array_equal(found, np.concatenate(wanted), f"{scope} {kind}")


@pytest.mark.parametrize("code", _DTYPES)
def test_exchanges_of_all_types(code: str) -> None:
    whole = np.random.default_rng(1).integers(0, 1 << 50, 64)
    x = (whole if np.dtype(_DTYPES[code]).itemsize == 8 else whole & 0xFFFF).astype(_DTYPES[code])
    name = mangled("sub_group_shuffle", code + "j")
    call = Call(name, _TYPES[code], (_TYPES[code], "i32"), {1: 5})
    found = run(_with_elements(module([call]), _TYPES[code], 1), x, (64,), whole_warps=True)
    np.testing.assert_array_equal(found, np.repeat(x[[5, 37]], 32))


@pytest.mark.parametrize(
    ("block", "source"), [((40,), (37,)), ((6, 10), (4, 7)), ((2, 5, 8), (1, 2, 3))]
)
def test_broadcasts_to_a_group(block: tuple[int, ...], source: tuple[int, ...]) -> None:
    value, identifier = str(source[0]), "i64"
    if len(block) > 1:
        value = f"<{', '.join(f'i64 {each}' for each in source)}>"
        identifier = f"<{len(block)} x i64>"
    x = np.arange(np.prod(block)).astype("i4")
    codes = "jim" if len(block) == 1 else f"jiDv{len(block)}_m"
    call = Call(
        mangled("__spirv_GroupBroadcast", codes), "i32", ("i32", "i32", identifier),
        {0: 2, 2: value},
    )  # fmt: skip
    text = _with_elements(module([call]), "i32", len(block))
    found = run(text, x, block, whole_warps=False)
    source = np.ravel_multi_index(source, block)
    np.testing.assert_array_equal(found, np.full_like(x, x[source]))
