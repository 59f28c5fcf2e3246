"""Definitions of all device functions that a module declares, as LLVM IR for NVPTX.

The compiler names device functions as OpenCL and SPIR-V do, with mangled types. Bodies call each
other by these names, helpers by ``dparray.*``, and the functions of LLVM and libdevice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dparray._compiler.abi import Function, function_of
from dparray._compiler.back_ends.ptx import atomics, groups, math_functions, work_items
from dparray._compiler.back_ends.ptx.work_items import Launch

_MANGLED = re.compile(r"_Z(\d+)(.*)")
_CALLS = re.compile(r"call (\S+) @([\w.]+)\(([^\n]*)")


def definitions(wanted: Iterable[Function], launch: Launch) -> str:
    """Return the definitions of functions and of the functions that these call.

    Functions that devices do not have are declared: LLVM may remove the calls.

    Args:
        wanted: the functions that a module declares.
        launch: the known properties of launches.
    """
    waiting, texts = list(wanted), dict[str, str]()
    while waiting:
        function = waiting.pop()
        if function.name in texts:
            continue
        body = _body(function, launch)
        if body is None:
            kinds = ", ".join(function.parameters)
            texts[function.name] = f'declare {function.result} @"{function.name}"({kinds})\n'
            continue
        kinds = ", ".join(f"{kind} %{at}" for at, kind in enumerate(function.parameters))
        head = f"define internal {function.result} @{function.name}({kinds})"
        texts[function.name] = f"{head} alwaysinline convergent nounwind {{\n{body}\n}}\n"
        waiting += [function_of(name, result, rest) for result, name, rest in _CALLS.findall(body)]
    text = "".join(texts.values())
    return (groups.SCRATCH if "@dparray.scratch" in text else "") + text


def _body(function: Function, launch: Launch) -> str | None:
    name, result, parameters = function
    kinds = list(parameters)
    if name == "dparray.low_bits":  # a 64-bit index that fits 32 bits
        return "  %r = trunc i64 %0 to i32\n  ret i32 %r"
    codes = ""
    if mangled := _MANGLED.fullmatch(name):
        length = int(mangled[1])
        name, codes = mangled[2][:length], mangled[2][length:]
    return (
        work_items.definition(name, launch)
        or atomics.definition(name, result, kinds)
        or math_functions.definition(name, codes, result, kinds)
        or groups.definition(name, kinds, launch)
    )
