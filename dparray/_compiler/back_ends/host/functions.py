"""Definitions of the device functions that concern one work-item, as LLVM IR for hosts.

The compiler names device functions as OpenCL and SPIR-V do, with mangled types. Bodies call each
other by these names, and the functions of LLVM and the C library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dparray._compiler.abi import Function, float_literal, function_of
from dparray._compiler.back_ends.host import atomics, mathematics

_MANGLED = re.compile(r"_Z(\d+)(.*)")
_VECTOR = re.compile(r"Dv(\d+)_(\w)")
_CALLS = re.compile(r"call (\S+) (?:\([^)]*\) )?@([\w.]+)\(([^\n]*)")
_FLOATS = {"f": "float", "d": "double", "Dh": "half"}
_SUFFIXES = {"float": "f32", "double": "f64", "half": "f16"}
_INTRINSICS = {
    name: name
    for name in (
        *("sqrt", "fabs", "floor", "ceil", "trunc", "rint", "copysign", "exp", "exp2", "log"),
        *("log2", "log10", "sin", "cos", "pow", "fma"),
    )
} | {"fmax": "maxnum", "fmin": "minnum", "mad": "fmuladd"}
_OF_C_LIBRARY = frozenset(
    ("lgamma", "tgamma", "fmod", "nextafter", "round", "remainder", "ldexp", "sin", "cos")
)
_FACTORS = {"degrees": 57.29577951308232, "radians": 0.017453292519943295}
_COUNTS = {"clz": "ctlz", "ctz": "cttz", "popcount": "ctpop"}
_SIGNED = "cails"  # codes of signed integers
#: Converts float64 to float16. Hosts have no such instruction, so it goes through float32, rounded
#: to odd so that the second rounding is right. It is named like compiler-rt's function, which LLVM
#: calls for conversions that its optimizer makes.
NARROWED = "__truncdfhf2"
_NARROWED = """  %near = fptrunc double %0 to float
  %wide = fpext float %near to double
  %bits = bitcast float %near to i32
  %a = call double @llvm.fabs.f64(double %wide)
  %b = call double @llvm.fabs.f64(double %0)
  %is_above = fcmp ogt double %a, %b
  %less = sub i32 %bits, 1
  %toward_zero = select i1 %is_above, i32 %less, i32 %bits
  %is_inexact = fcmp one double %wide, %0
  %sticky = zext i1 %is_inexact to i32
  %odd_bits = or i32 %toward_zero, %sticky
  %odd = bitcast i32 %odd_bits to float
  %r = fptrunc float %odd to half
  ret half %r"""

#: compiler-rt's functions for float16 and float32, which processors without such instructions call.
_WIDENED = """  %half = bitcast half %0 to i16
  %bits = zext i16 %half to i32
  %sign = and i32 %bits, 32768
  %size = and i32 %bits, 32767
  %shifted = shl i32 %size, 13
  %small = bitcast i32 %shifted to float
  %scaled = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %not_finite = or i32 %shifted, 2139095040
  %is_finite = icmp ult i32 %size, 31744
  %magnitude = select i1 %is_finite, i32 %finite, i32 %not_finite
  %top = shl i32 %sign, 16
  %both = or i32 %magnitude, %top
  %r = bitcast i32 %both to float
  ret float %r"""
_SHORTENED = """  %bits = bitcast float %0 to i32
  %size = and i32 %bits, 2147483647
  %sign = lshr i32 %bits, 16
  %top = and i32 %sign, 32768
  %number = bitcast i32 %size to float
  %aligned = fadd float %number, 5.0e-1
  %aligned_bits = bitcast float %aligned to i32
  %subnormal = sub i32 %aligned_bits, 1056964608
  %last = lshr i32 %size, 13
  %is_odd = and i32 %last, 1
  %near = add i32 %size, -939520001
  %rounded = add i32 %near, %is_odd
  %normal = lshr i32 %rounded, 13
  %is_small = icmp ult i32 %size, 947912704
  %finite = select i1 %is_small, i32 %subnormal, i32 %normal
  %is_large = icmp ugt i32 %size, 1199566847
  %bounded = select i1 %is_large, i32 31744, i32 %finite
  %is_nan = icmp ugt i32 %size, 2139095040
  %magnitude = select i1 %is_nan, i32 32256, i32 %bounded
  %both = or i32 %magnitude, %top
  %half = trunc i32 %both to i16
  %r = bitcast i16 %half to half
  ret half %r"""
#: Functions that code for float16 may call although no instruction of the module does, by name.
OF_HALVES = {
    NARROWED: Function(NARROWED, "half", ("double",)),
    "__extendhfsf2": Function("__extendhfsf2", "float", ("half",)),
    "__truncsfhf2": Function("__truncsfhf2", "half", ("float",)),
}
_BODIES = {NARROWED: _NARROWED, "__extendhfsf2": _WIDENED, "__truncsfhf2": _SHORTENED}
#: Keeps them until LLVM has written machine code.
KEPT = (
    f"@llvm.compiler.used = appending global [{len(OF_HALVES)} x ptr] "
    f'[{", ".join(f"ptr @{name}" for name in OF_HALVES)}], section "llvm.metadata"\n'
)


def definitions(wanted: Iterable[Function]) -> str:
    """Return the definitions of functions and of the functions that these call.

    Functions without one are declared.
    """
    waiting, texts = list(wanted), dict[str, str]()
    while waiting:
        function = waiting.pop()
        name, result, parameters = function
        if name in texts:
            continue
        if name.startswith(mathematics.APART):
            texts[name] = mathematics.apart(name)
            continue
        body = None if name.startswith("llvm.") else _body(function)
        if body is None:
            kinds = ", ".join(parameters)
            if name == "printf":
                kinds = "ptr, ..."
            # The functions of the C library set no errno here, so that LLVM may move their calls.
            pure = " nounwind memory(none)" if _is_of_c_library(name) else ""
            texts[name] = f'declare {result} @"{name}"({kinds}){pure}\n'
            continue
        kinds = ", ".join(f"{kind} %{at}" for at, kind in enumerate(parameters))
        head = f"define internal {result} @{name}({kinds}) alwaysinline nounwind"
        texts[name] = f"{head} {{\n{body}\n}}\n"
        waiting += [function_of(name, result, rest) for result, name, rest in _CALLS.findall(body)]
    return "".join(texts.values())


def _is_of_c_library(name: str) -> bool:
    return name in _OF_C_LIBRARY or name.removesuffix("f") in _OF_C_LIBRARY


def is_joint(name: str) -> bool:
    """Return whether a device function concerns several work-items or their numbers."""
    mangled = _MANGLED.fullmatch(name)
    plain = mangled[2][: int(mangled[1])] if mangled else ""
    return plain.startswith(("get_", "sub_group_", "__spirv_Group")) or (
        plain == "__spirv_ControlBarrier"
    )


def _body(function: Function) -> str | None:
    name, result, parameters = function
    if name == "dparray.low_bits":  # a 64-bit index that fits 32 bits
        return "  %r = trunc i64 %0 to i32\n  ret i32 %r"
    if name in _BODIES:
        return _BODIES[name]
    mangled = _MANGLED.fullmatch(name)
    if mangled is None or is_joint(name):
        return None
    plain, codes = mangled[2][: int(mangled[1])], mangled[2][int(mangled[1]) :]
    if plain == "__spirv_MemoryBarrier":
        return "  fence acq_rel\n  ret void"
    if plain.startswith("__spirv_Atomic"):
        operation = plain.removeprefix("__spirv_Atomic")
        return atomics.definition(operation, "AS3" in codes, result, parameters)
    if plain == "__spirv_ocl_printf":
        given = ", ".join(f"{kind} %{at}" for at, kind in enumerate(parameters))
        return f"  %r = call i32 (ptr, ...) @printf({given})\n  ret i32 %r"
    if vector := _VECTOR.match(codes):
        return _of_vectors(plain, int(vector[1]), vector[2], result, parameters)
    return _of_numbers(plain, codes, result, parameters)


def _of_vectors(
    name: str, lanes: int, code: str, result: str, parameters: tuple[str, ...]
) -> str | None:
    if code not in _FLOATS:
        return None
    if name in _INTRINSICS and mathematics.body(name, _FLOATS[code]) is None:
        called = f"llvm.{_INTRINSICS[name]}.v{lanes}{_SUFFIXES[_FLOATS[code]]}"
        return _call(called, result, parameters)
    lines, vector, element = [], "poison", _FLOATS[code]
    called = f"_Z{len(name)}{name}{code * len(parameters)}"
    for lane in range(lanes):
        arguments = []
        for at, kind in enumerate(parameters):
            lines.append(f"  %e{lane}.{at} = extractelement {kind} %{at}, i32 {lane}")
            arguments.append(f"{element} %e{lane}.{at}")
        lines.append(f"  %c{lane} = call {element} @{called}({', '.join(arguments)})")
        lines.append(
            f"  %v{lane} = insertelement {result} {vector}, {element} %c{lane}, i32 {lane}"
        )
        vector = f"%v{lane}"
    return "\n".join([*lines, f"  ret {result} {vector}"])


def _of_numbers(name: str, codes: str, result: str, parameters: tuple[str, ...]) -> str | None:
    kind = _FLOATS.get(codes[:2] if codes.startswith("Dh") else codes[:1])
    if kind is None:
        return _of_integers(name, codes[:1] in _SIGNED, result, parameters)
    if name in _FACTORS:
        factor = float_literal(_FACTORS[name], "f" if kind == "float" else "d")
        return f"  %r = fmul {kind} %0, {factor}\n  ret {kind} %r"
    if name == "sign":
        return (
            f"  %p = fcmp ogt {kind} %0, 0.0\n  %n = fcmp olt {kind} %0, 0.0\n"
            f"  %a = select i1 %p, {kind} 1.0, {kind} %0\n"
            f"  %r = select i1 %n, {kind} -1.0, {kind} %a\n  ret {kind} %r"
        )
    own = mathematics.body(name, kind)
    if own is not None:
        return own
    if name in _INTRINSICS:
        return _call(f"llvm.{_INTRINSICS[name]}.{_SUFFIXES[kind]}", result, parameters)
    if name in _OF_C_LIBRARY and kind != "half":
        return _call(name + ("f" if kind == "float" else ""), result, parameters)
    return None


def _of_integers(
    name: str, is_signed: bool, result: str, parameters: tuple[str, ...]
) -> str | None:
    if name == "mul_hi":
        extend, bits = "sext" if is_signed else "zext", int(result[1:])
        wide = f"i{2 * bits}"
        return (
            f"  %a = {extend} {result} %0 to {wide}\n  %b = {extend} {result} %1 to {wide}\n"
            f"  %c = mul {wide} %a, %b\n  %d = lshr {wide} %c, {bits}\n"
            f"  %r = trunc {wide} %d to {result}\n  ret {result} %r"
        )
    flag = ", i1 false"  # zero, or the smallest integer, has a result
    if name in _COUNTS:
        flag = "" if name == "popcount" else flag
        called = f"@llvm.{_COUNTS[name]}.{result}({result} %0{flag})"
    elif name in ("max", "min"):
        sign = "s" if is_signed else "u"
        called = f"@llvm.{sign}{name}.{result}({result} %0, {result} %1)"
    elif name == "abs":
        called = f"@llvm.abs.{result}({result} %0{flag})"
    else:
        return None
    return f"  %r = call {result} {called}\n  ret {result} %r"


def _call(name: str, result: str, parameters: tuple[str, ...]) -> str:
    given = ", ".join(f"{kind} %{at}" for at, kind in enumerate(parameters))
    return f"  %r = call {result} @{name}({given})\n  ret {result} %r"
