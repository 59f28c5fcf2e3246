"""Programs as text, for reading and for golden files.

Values are named by what they are, or numbered in the order in which they are computed, so equal
programs have equal texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dparray._ir.instructions import CONTROL, Function, Op
from dparray._ir.types import BOOL, F64, I64

_PREFIXES = {"if": "if", "block": "block", "loop": "loop", "parallel": "parallel"}


def printed(function: Function) -> str:
    """Return a program as text, an op a line."""
    return "\n".join(_Printer().lines(function)) + "\n"


def shown(op: Op) -> str:
    """Return an op alone as text, for messages."""
    return _Printer().op(op).strip()


class _Printer:
    """Names the values of one program."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.labels: dict[int, str] = {}
        self.taken: set[str] = set()

    def lines(self, function: Function) -> Iterator[str]:
        parameters = ", ".join(
            f"{self.parameter(parameter)}: {parameter.type}" for parameter in function.parameters
        )
        yield f"kernel {function.name}({parameters})"
        yield from self.body(function.body, 1)
        for each in function.procedures:
            yield from self.lines(each)

    def parameter(self, op: Op) -> str:
        name = f"%{op.attribute}"
        while name in self.taken:
            name += "'"
        self.taken.add(name)
        self.names[id(op)] = name
        return name

    def body(self, body: Sequence[Op], depth: int) -> Iterator[str]:
        for op in body:
            indent = "  " * depth
            yield indent + self.op(op)
            for number, inner in enumerate(op.bodies):
                if number:
                    yield indent + "else"
                yield from self.body(inner, depth + 1)
            if op.results:
                results = ", ".join(f"{self.value(each)}: {each.type}" for each in op.results)
                yield f"{indent}-> {results}"

    def op(self, op: Op) -> str:
        """Return the line of an op."""
        if op.name in CONTROL:
            words = [self.label(op)]
            if op.name == "parallel":
                words += map(self.value, op.operands)
                words.append(", ".join(map(self.value, op.carried)))
                return " ".join(words)
            if op.operands and op.name == "if":
                words.append(self.value(op.operands[0]))
            pairs = zip(op.carried, op.operands, strict=False)
            carried = [
                f"{self.value(carried)}: {carried.type} = {self.value(first, carried.type)}"
                for carried, first in pairs
            ]
            return " ".join([*words, ", ".join(carried)]).rstrip()
        name = op.name
        if op.name in ("leave", "repeat"):
            name += f" {self.label(op.attribute)}"
        elif op.attribute is not None:
            name += f"[{_attribute(op.attribute)}]"
        known = op.type
        if known == BOOL or known is None:  # of a comparison or a store: shown by the others
            known = next((each.type for each in op.operands if each.name != "constant"), known)
        operands = ", ".join(self.value(each, known) for each in op.operands)
        marks = "".join(f" !{mark}" for mark in sorted(op.marks))
        text = f"{name} {operands}".rstrip() + marks
        return text if op.type is None else f"{self.value(op)}: {op.type} = {text}"

    def value(self, op: Op, known: Any = None) -> str:
        """Return the name of a value; a constant has its type unless it is known."""
        if op.name == "constant":
            number = repr(op.attribute)
            plain = op.type == known or op.type in (BOOL, I64, F64)
            return number if plain else f"{op.type}({number})"
        return self.names.setdefault(id(op), f"%{len(self.names)}")

    def label(self, op: Op) -> str:
        return self.labels.setdefault(id(op), f"{_PREFIXES[op.name]}{len(self.labels)}")


def _attribute(attribute: Any) -> str:
    if isinstance(attribute, tuple | list):
        return ", ".join(filter(None, map(_attribute, attribute)))
    return str(attribute)
