"""Read PTX as LLVM writes it: functions, their instructions, registers and variables."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

TYPES = {
    f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}")
    for letter, kind in (("u", "u"), ("s", "i"), ("b", "u"))
    for bits in (8, 16, 32, 64)
} | {
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "f16x2": np.dtype("u4"),
    "pred": np.dtype(bool),
}


class EmulationError(Exception):
    """A fault of a kernel that a GPU would not survive, or an instruction that is not emulated."""


class EndlessError(EmulationError):
    """A kernel that takes more turns than allowed: perhaps threads wait in a loop forever."""


def raw(dtype: np.dtype) -> np.dtype:
    """Return the unsigned type of the same size, in which registers keep their bits."""
    return dtype if dtype.kind == "b" else np.dtype(f"u{dtype.itemsize}")


class Instruction(NamedTuple):
    """An instruction.

    Attributes:
        text: its text.
        guard: the register of its predicate, or "".
        negated: whether the predicate must be false.
        opcode: the parts of the opcode.
        operands: their texts.
    """

    text: str
    guard: str
    negated: bool
    opcode: tuple[str, ...]
    operands: tuple[str, ...]

    @property
    def space(self) -> str:
        """The address space that it accesses, "" for generic addresses."""
        spaces = ("global", "shared", "local", "const", "param")
        return next((each for each in self.opcode if each in spaces), "")

    @property
    def dtype(self) -> np.dtype:
        """The type of its operands."""
        return TYPES[self.opcode[-1]]


class Variable(NamedTuple):
    """A variable in global, shared or local memory; without bytes, it is the dynamic memory."""

    name: str
    space: str
    align: int
    nbytes: int
    content: bytes


_COMMENT = re.compile(r"//[^\n]*")
_FUNCTION = re.compile(
    r"^(?:\.(?:visible|weak|extern)\s+)*\.(?:entry|func)\s*(?:\((?P<result>[^)]*)\)\s*)?"
    r"(?P<name>[\w$]+)\s*\((?P<parameters>[^)]*)\)[^{;]*(?P<body>\{.*?^\}|;)",
    re.MULTILINE | re.DOTALL,
)
_VARIABLE = re.compile(
    r"\.(global|const|shared|local)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)"
    r"(?:\[(\d*)\])?(?:\s*=\s*([^;]+))?;"
)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+([^;]+);")
_DIRECTIVE = re.compile(r"\.(?:reg|local|shared|param|pragma)\s[^;]*;")
_STATEMENT = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.DOTALL)
_LABEL = re.compile(r"[{}\s]*([$\w]+):\s*")


class Parameter(NamedTuple):
    """A parameter; ``count`` is the length of an array, 0 for a number."""

    name: str
    dtype: np.dtype
    count: int
    align: int

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * (self.count or 1)


class Function:
    """A kernel or a function.

    Attributes:
        name: its name.
        parameters: the names of its parameters.
        layout: its parameters in full.
        result: the name of its result, or "".
        registers: the types of its registers.
        variables: its variables in shared and local memory.
        labels: the positions of labels in ``code``.
        tables: the labels of jump tables.
        code: its instructions.
    """

    def __init__(self, name: str, parameters: str, result: str, body: str) -> None:
        self.name = name
        self.layout = [_parameter(each) for each in _listed(parameters)]
        self.parameters = [each.name for each in self.layout]
        self.result = result.split()[-1].partition("[")[0] if result.strip() else ""
        self.registers = dict(_registers(body))
        self.variables = variables(body)
        self.labels: dict[str, int] = {}
        self.tables: dict[str, list[str]] = {}
        self.code: list[Instruction] = []
        for statement in _DIRECTIVE.sub("", body).split(";"):
            self._read(statement)

    def _read(self, statement: str) -> None:
        while label := _LABEL.match(statement):
            self.labels[label[1]] = len(self.code)
            statement = statement[label.end() :]
            if statement.startswith(".branchtargets"):
                self.tables[label[1]] = _listed(statement.removeprefix(".branchtargets"))
                return
        statement = " ".join(statement.strip("{} \n\t").split())
        if statement.count("{") > statement.count("}"):  # the last operand was a vector
            statement += "}"
        if found := _STATEMENT.match(statement):
            guard, opcode = found[2] or "", tuple(found[3].split("."))
            operands = tuple(_listed(found[4]))
            self.code.append(Instruction(statement, guard, bool(found[1]), opcode, operands))
        elif statement:
            raise EmulationError(f"cannot read {statement!r}")


def _parameter(text: str) -> Parameter:
    words = text.split()
    name, _, count = words[-1].partition("[")
    dtype = next(TYPES[each[1:]] for each in words if each[1:] in TYPES)
    align = int(words[2]) if words[1] == ".align" else dtype.itemsize
    return Parameter(name, dtype, int(count.rstrip("]") or 0), align)


def _listed(text: str) -> list[str]:
    """Split operands at the commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [each.strip() for each in parts if each.strip()]


def _registers(body: str) -> list[tuple[str, np.dtype]]:
    found = []
    for kind, names in _REGISTERS.findall(body):
        for name in _listed(names):
            prefix, _, count = name.partition("<")
            numbered = (
                [f"{prefix}{at}" for at in range(int(count.rstrip(">")))] if count else [name]
            )
            found += [(each, raw(TYPES[kind])) for each in numbered]
    return found


def variables(text: str) -> list[Variable]:
    """Return the variables that a text declares."""
    found = []
    for space, align, kind, name, count, values in _VARIABLE.findall(text):
        itemsize = TYPES[kind].itemsize
        is_dynamic = re.search(rf"{re.escape(name)}\[\]", text) is not None
        nbytes = 0 if is_dynamic else itemsize * int(count or 1)
        numbers = [int(each, 0) for each in re.findall(r"-?\b(?:0x[0-9A-Fa-f]+|\d+)\b", values)]
        content = b"".join(
            (each & ((1 << 8 * itemsize) - 1)).to_bytes(itemsize, "little") for each in numbers
        )
        place = space if space in ("shared", "local") else "global"
        found.append(Variable(name, place, int(align or 1), nbytes, content.ljust(nbytes, b"\0")))
    return found


def functions(text: str) -> tuple[dict[str, Function], list[Variable]]:
    """Return the functions of a module with a body, and its variables outside of functions."""
    text = _COMMENT.sub("", text)
    found = {
        each["name"]: Function(
            each["name"], each["parameters"], each["result"] or "", each["body"][1:-1]
        )
        for each in _FUNCTION.finditer(text)
        if each["body"] != ";"
    }
    return found, variables(_FUNCTION.sub("", text))
