"""Read a kernel's function from the text of LLVM IR into blocks and instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

NAME = re.compile(r"%(?:[-\w.$]+|\"[^\"]*\")")
_CALL = re.compile(r"call (?:[\w() ]+? )?(\S+) @([-\w.$]+)\((.*)\)")
_MANGLED = re.compile(r"_Z(\d+)(.*)")
_PHI = re.compile(rf"\[ (.+?), ({NAME.pattern}) \]")
LABEL = re.compile(rf"label ({NAME.pattern})")
_SIZES = {"half": 2, "float": 4, "double": 8, "ptr": 8}


class Unsupported(Exception):
    """A kernel needs something that the driver does not have."""


@dataclass
class Instruction:
    """An instruction.

    Attributes:
        name: that of its result, with ``%``; ``None`` without a result.
        opcode: the operation; ``"joint"`` for one of several work-items.
        text: the instruction after ``%name = ``.
        kind: the type of the result.
        used: the names of its operands.
        phi: the values and blocks of a phi.
    """

    name: str | None
    opcode: str
    text: str
    kind: str
    used: list[str] = field(default_factory=list)
    phi: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Block:
    """A basic block.

    Attributes:
        name: its label.
        body: its instructions.
        to: the blocks that may follow.
    """

    name: str
    body: list[Instruction]
    to: list[str] = field(default_factory=list)


class Call(NamedTuple):
    """A call of a function.

    Attributes:
        name: the function, without its mangled types.
        kind: the type of the result.
        arguments: the arguments without their types.
        types: the types of the arguments.
    """

    name: str
    kind: str
    arguments: list[str]
    types: list[str]


def split(text: str) -> list[str]:
    """Split a list of arguments."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "(<{[") - (letter in ")>}]")
        if letter == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def size_of(kind: str) -> int:
    """Return the bytes of a type."""
    if kind in _SIZES:
        return _SIZES[kind]
    if kind.startswith("i"):
        return max(1, int(kind[1:]) // 8)
    if kind.startswith("{"):
        return sum(-(-size_of(each) // 8) * 8 for each in split(kind[1:-1]))
    match = re.fullmatch(r"[\[<](\d+) x (.*)[\]>]", kind)
    assert match is not None, kind
    nbytes = int(match[1]) * size_of(match[2])
    return 1 << (nbytes - 1).bit_length() if kind[0] == "<" else nbytes


def plain_name(label: str) -> str:
    """Return a label without its sign and quotes."""
    return label.strip('%"')


def read(function: Any, text: str) -> tuple[list[Block], list[tuple[str, str]]]:
    """Return the blocks, and the names and types of the parameters.

    Args:
        function: the function in llvmlite's module; all its values are named.
        text: its definition.
    """
    blocks = []
    for (name, lines), block in zip(_lines_of_blocks(text), function.blocks, strict=True):
        pairs = zip(block.instructions, lines, strict=True)
        body = [_instruction(each, line) for each, line in pairs]
        to = [plain_name(each) for each in LABEL.findall(body[-1].text)]
        blocks.append(Block(name, body, to))
    return blocks, [(f"%{each.name}", str(each.type)) for each in function.arguments]


def _lines_of_blocks(text: str) -> list[tuple[str, list[str]]]:
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines()[1:]:
        if line == "}":
            break
        label = re.match(r'^("[^"]*"|[-\w.$]+):', line)
        if label:
            blocks.append((label[1].strip('"'), []))
        elif line.strip() and not line.lstrip().startswith((";", "#dbg")):
            if not blocks:
                blocks.append(("entry", []))
            blocks[-1][1].append(line.strip())
    return blocks


def _instruction(instruction: Any, line: str) -> Instruction:
    rest = re.sub(r"(, !\S+ !\d+)+$", "", line)
    named = re.match(rf"^({NAME.pattern}) = (.*)$", rest)
    result, rest = (named[1], named[2]) if named else (None, rest)
    one = Instruction(result, instruction.opcode, rest, str(instruction.type))
    if one.opcode == "phi":
        one.phi = [(value, plain_name(block)) for value, block in _PHI.findall(rest)]
        one.used = [value for value, _ in one.phi if value.startswith("%")]
    elif one.opcode == "br":
        condition = rest.split(", label")[0]
        one.used = [] if "label" in condition else NAME.findall(condition)
    else:
        one.used = NAME.findall(rest)
    return one


def called(one: Instruction) -> Call | None:
    """Return the call of a function by an instruction, ``None`` for another instruction."""
    match = _CALL.search(one.text) if one.opcode == "call" else None
    if not match:
        return None
    mangled = _MANGLED.fullmatch(match[2])
    name = mangled[2][: int(mangled[1])] if mangled else match[2]
    arguments = split(match[3])
    return Call(
        name,
        match[1],
        [each.rpartition(" ")[2] for each in arguments],
        [each[: each.index(">") + 1] if each[0] == "<" else each.split()[0] for each in arguments],
    )


def is_ordered(one: Instruction) -> bool:
    """Return whether a memory access must not be moved across those of other work-items."""
    if one.opcode in ("atomicrmw", "cmpxchg", "fence"):
        return True
    return one.text.startswith(("load atomic", "load volatile", "store atomic", "store volatile"))


def is_joint(name: str) -> bool:
    """Return whether a function concerns several work-items: a barrier or a group function."""
    return name.startswith("__spirv_Group") or name in (
        *("__spirv_ControlBarrier", "sub_group_shuffle"),
    )
