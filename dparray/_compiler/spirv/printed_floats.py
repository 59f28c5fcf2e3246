"""SPIR-V modules that have double precision only to print float32 numbers, without it.

The arguments of ``printf`` are float64 in OpenCL, as in C; on a device without double precision
they are float32. Modules are the same for all devices, so these are changed where they are built.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_HEADER = 5
_CAPABILITY, _EXT_INST, _TYPE_FLOAT, _FUNCTION, _F_CONVERT = 17, 12, 22, 54, 115
_NAMES = (5, 6, 71, 72)  # OpName, OpMemberName, OpDecorate, OpMemberDecorate
_FLOAT64, _PRINTF = 10, 184


def _instructions(words: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    at = _HEADER
    while at < len(words):
        size = words[at] >> 16
        yield words[at] & 0xFFFF, words[at + 1 : at + size]
        at += size


def without_printed_doubles(spirv: bytes) -> bytes | None:
    """Return the module with float32 arguments of ``printf``; ``None`` if it has other float64
    numbers.

    Args:
        spirv: a module that declares the capability Float64.
    """
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    every = list(_instructions(words))
    double = {args[0] for op, args in every if op == _TYPE_FLOAT and args[1] == 64}
    single = {args[0] for op, args in every if op == _TYPE_FLOAT and args[1] == 32}
    types = {args[1]: args[0] for op, args in every if op > _FUNCTION and len(args) > 1}
    sources = {
        args[1]: args[2]
        for op, args in every
        if op == _F_CONVERT and args[0] in double and types.get(args[2]) in single
    }
    gone = double | set(sources)
    result = list(words[:_HEADER])
    for op, args in every:
        is_gone = (
            (op == _CAPABILITY and args == (_FLOAT64,))
            or (op == _TYPE_FLOAT and args[0] in double)
            or (op == _F_CONVERT and args[1] in sources)
            or (op in _NAMES and args[0] in gone)
        )
        if is_gone:
            continue
        if op == _EXT_INST and args[3] == _PRINTF:
            args = (*args[:4], *(sources.get(each, each) for each in args[4:]))
        # Literals may equal a number by chance; the module then is refused, as it would be.
        if gone & set(args):
            return None
        result += [(len(args) + 1) << 16 | op, *args]
    return struct.pack(f"<{len(result)}I", *result)
