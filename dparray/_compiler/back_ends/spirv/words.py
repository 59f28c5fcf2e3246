"""Read and change SPIR-V modules, which are sequences of 32-bit words."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Instruction = tuple[int, Sequence[int]]  # the opcode and the operands

_MAGIC = 0x07230203
_HEADER = 5
_NAMES = (5, 6, 71, 72)  # OpName, OpMemberName, OpDecorate, OpMemberDecorate
_EXTENSION, _EXT_INST, _EXECUTION_MODE, _CAPABILITY = 10, 12, 16, 17
_TYPE_FLOAT, _FUNCTION, _DECORATE, _F_CONVERT = 22, 54, 71, 115
_ARITHMETIC = frozenset({129, 131, 133})  # OpFAdd, OpFSub, OpFMul
_CONTRACTION_OFF = 31
_FLOAT64, _INT64_ATOMICS, _FAST_MATH_CAPABILITY = 10, 12, 5837
_FAST_MATH_DECORATION, _ALLOW_CONTRACTION = 40, 0x10000
_PRINTF = 184
#: How many operands of an instruction are ids; the rest are literals, which may equal an id by
#: chance. The numbered ones: OpTypeInt, OpTypeVector, OpConstant, OpLoad, OpStore,
#: OpCompositeExtract.
_BEFORE_LITERALS = {_CAPABILITY: 0, _EXTENSION: 0, _EXECUTION_MODE: 1, **dict.fromkeys(_NAMES, 1)}
_BEFORE_LITERALS |= {21: 1, _TYPE_FLOAT: 1, 23: 2, 43: 2, 61: 3, 62: 2, 81: 3}
_FAST_MATH_EXTENSION = "SPV_INTEL_fp_fast_math_mode"
# Instructions that precede the decorations: extensions, imports, the memory model, entry points,
# execution modes, names and sources.
_BEFORE_DECORATIONS = frozenset({3, 4, 5, 6, 7, 8, 10, 11, 14, 15, 16, 17, 330, 331, 332})
_ARITHMETIC_IN_TEXT = re.compile(r"^\s*(%\d+) = OpF(?:Add|Sub|Mul) ", re.MULTILINE)
_FIRST_DECORATION = re.compile(r"^(?=\s*(?:OpDecorate|%\d+ = OpType))", re.MULTILINE)
_FIRST_AFTER_CAPABILITIES = re.compile(r"^(?!\s*OpCapability)", re.MULTILINE)


def instructions(module: bytes) -> Iterator[Instruction]:
    """Yield the instructions of a module.

    Raises:
        ValueError: it is not a module, or an instruction exceeds its end.
    """
    if len(module) % 4:
        raise ValueError(f"it has {len(module)} bytes, which is not a multiple of 4")
    words = struct.unpack(f"<{len(module) // 4}I", module)
    if len(words) < _HEADER or words[0] != _MAGIC:
        raise ValueError("it does not begin with the header of a SPIR-V module")
    at = _HEADER
    while at < len(words):
        count = words[at] >> 16
        if not count or at + count > len(words):
            raise ValueError(
                f"the instruction at word {at} has {count} words, and the module has {len(words)}"
            )
        yield words[at] & 0xFFFF, words[at + 1 : at + count]
        at += count


def check_module(module: bytes) -> None:
    """Raise ``ValueError`` unless the instructions of a module end exactly at its end.

    Drivers hang on a module with an instruction of zero words.
    """
    for _ in instructions(module):
        pass


def needs(module: bytes) -> set[str]:
    """Return the aspects that a device must have for a module."""
    head = itertools.takewhile(lambda each: each[0] == _CAPABILITY, instructions(module))
    found = {operands[0] for _, operands in head}
    wanted = {_FLOAT64: "fp64", _INT64_ATOMICS: "atomic64"}
    return {aspect for capability, aspect in wanted.items() if capability in found}


def module_of(header: Sequence[int], coming: Iterable[Instruction]) -> bytes:
    """Return the module with a header and instructions."""
    words = [*header]
    for code, operands in coming:
        words += [(1 + len(operands)) << 16 | code, *operands]
    return struct.pack(f"<{len(words)}I", *words)


def _header_of(module: bytes) -> tuple[int, ...]:
    return struct.unpack_from(f"<{_HEADER}I", module)


def contracted(module: bytes) -> bytes:
    """Return the module with contraction of its multiplications and additions allowed.

    LLVM gives each kernel SPIR-V's execution mode ``ContractionOff`` and does not mark its
    operations. Intel's CPU driver contracts where the operations allow it; removing the mode is not
    enough.
    """
    every = list(instructions(module))
    name = _FAST_MATH_EXTENSION.encode() + b"\0"
    name += b"\0" * (-len(name) % 4)
    allowed: list[Instruction] = [
        (_DECORATE, (operands[1], _FAST_MATH_DECORATION, _ALLOW_CONTRACTION))
        for code, operands in every
        if code in _ARITHMETIC
    ]
    head: list[Instruction] = [
        (_CAPABILITY, (_FAST_MATH_CAPABILITY,)),
        (_EXTENSION, struct.unpack(f"<{len(name) // 4}I", name)),
    ]
    coming: list[Any] = [
        (lambda code: code != _CAPABILITY, head),
        (lambda code: code not in _BEFORE_DECORATIONS, allowed),
    ]
    result: list[Instruction] = []
    for code, operands in every:
        while coming and coming[0][0](code):
            result += coming.pop(0)[1]
        if code != _EXECUTION_MODE or operands[1] != _CONTRACTION_OFF:
            result.append((code, operands))
    return module_of(_header_of(module), result)


def contracted_text(text: str) -> str:
    """Allow contraction in a module's readable form, as :func:`contracted` does in its words."""
    lines = [line for line in text.splitlines(keepends=True) if " ContractionOff" not in line]
    names = _ARITHMETIC_IN_TEXT.findall(text)
    decorations = "".join(
        f"\tOpDecorate {name} FPFastMathMode AllowContractFastINTEL\n" for name in names
    )
    head = f'\tOpCapability FPFastMathModeINTEL\n\tOpExtension "{_FAST_MATH_EXTENSION}"\n'
    text = _FIRST_AFTER_CAPABILITIES.sub(head, "".join(lines), count=1)
    return _FIRST_DECORATION.sub(decorations, text, count=1)


def is_contracted(module: bytes) -> bool:
    """Return whether a module allows contraction, as :func:`contracted` makes it."""
    return _FAST_MATH_EXTENSION.encode() in module


def without_printed_doubles(module: bytes) -> bytes | None:
    """Return the module with float32 arguments of ``printf``; ``None`` if it has other float64
    numbers.

    The arguments of ``printf`` are float64 in OpenCL, as in C; on a device without double precision
    they are float32. Modules are the same for all devices of a driver, so these are changed
    where they are built.

    Args:
        module: a module that declares the capability Float64.
    """
    every = list(instructions(module))
    double = {args[0] for op, args in every if op == _TYPE_FLOAT and args[1] == 64}
    single = {args[0] for op, args in every if op == _TYPE_FLOAT and args[1] == 32}
    types = {args[1]: args[0] for op, args in every if op > _FUNCTION and len(args) > 1}
    sources = {
        args[1]: args[2]
        for op, args in every
        if op == _F_CONVERT and args[0] in double and types.get(args[2]) in single
    }
    gone = double | set(sources)
    result: list[Instruction] = []
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
        numbers = args[: _BEFORE_LITERALS.get(op)]
        if gone.intersection((*args[:3], *args[4:]) if op == _EXT_INST else numbers):
            return None
        result.append((op, args))
    return module_of(_header_of(module), result)
