"""Definitions of mathematical functions: LLVM's intrinsics, NVIDIA's libdevice, and ``printf``."""

from __future__ import annotations

import re

from dparray._compiler.abi import float_literal

_LIBDEVICE = (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 lgamma log log10 log1p "
    "log2 sin sinh tan tanh tgamma atan2 fmod hypot nextafter pow ldexp fmax fmin round"
)
# Those that NVPTX has instructions for.
_INTRINSICS = "sqrt fabs floor ceil trunc rint copysign fma"
_FACTORS = {"degrees": 57.29577951308232, "radians": 0.017453292519943295}
_FLOATS = {"f": "float", "d": "double"}
_VECTORS = re.compile(r"Dv(\d+)_([fd])")


def definition(name: str, codes: str, result: str, parameters: list[str]) -> str | None:
    """Return the body of a function, or None for a name that is not here.

    Args:
        name: the name before mangling.
        codes: the mangled types of the parameters.
        result, parameters: LLVM types.
    """
    if name == "__spirv_ocl_printf":
        return _printf(parameters)
    if vector := _VECTORS.match(codes):
        return _by_lanes(name, int(vector[1]), vector[2], result, parameters)
    value = _value(name, codes[:1], [f"{each} %{at}" for at, each in enumerate(parameters)])
    return value and f"  %r = {value}\n  ret {result} %r"


def _value(name: str, code: str, arguments: list[str]) -> str | None:
    type_ = _FLOATS.get(code)
    given = ", ".join(arguments)
    if type_ is None:
        return None
    if name in _INTRINSICS.split():
        return f"call {type_} @llvm.{name}.{'f32' if code == 'f' else 'f64'}({given})"
    if name in _LIBDEVICE.split():
        return f"call {type_} @__nv_{name}{'f' if code == 'f' else ''}({given})"
    if name in _FACTORS:
        return f"fmul {given}, {float_literal(_FACTORS[name], code)}"
    return None


def _by_lanes(name: str, lanes: int, code: str, result: str, parameters: list[str]) -> str | None:
    lines, vector = [], "poison"
    type_ = _FLOATS[code]
    for lane in range(lanes):
        arguments = []
        for at, parameter in enumerate(parameters):
            lines.append(f"  %e{lane}.{at} = extractelement {parameter} %{at}, i32 {lane}")
            arguments.append(f"{type_} %e{lane}.{at}")
        value = _value(name, code, arguments)
        if value is None:
            return None
        lines.append(f"  %c{lane} = {value}")
        lines.append(f"  %v{lane} = insertelement {result} {vector}, {type_} %c{lane}, i32 {lane}")
        vector = f"%v{lane}"
    return "\n".join([*lines, f"  ret {result} {vector}"])


def _printf(parameters: list[str]) -> str:
    """Call CUDA's ``vprintf`` with the format and a buffer, each value aligned to its size."""
    lines, fields = ["  %format = addrspacecast " + f"{parameters[0]} %0 to ptr"], []
    for at, parameter in enumerate(parameters[1:], 1):
        if parameter.startswith("ptr "):
            lines.append(f"  %g{at} = addrspacecast {parameter} %{at} to ptr")
            fields.append(f"ptr %g{at}")
        else:
            fields.append(f"{parameter} %{at}")
    kinds = ", ".join(each.partition(" %")[0] for each in fields) or "i32"
    lines.append(f"  %buffer = alloca {{ {kinds} }}, align 8")
    for at, field in enumerate(fields):
        lines.append(f"  %p{at} = getelementptr {{ {kinds} }}, ptr %buffer, i32 0, i32 {at}")
        lines.append(f"  store {field}, ptr %p{at}")
    lines.append("  %r = call i32 @vprintf(ptr %format, ptr %buffer)")
    return "\n".join([*lines, "  ret i32 %r"])
