"""Small stores one after the other in one kernel, of one work-group.

Each part is an elementwise kernel of few elements (:mod:`dparray._codegen.elementwise`). The group
walks the elements of a part and waits at a barrier before the next one, which may read what the one
before has written. What the parts call their own has the part's number in front.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from dparray._codegen import elementwise
from dparray._codegen.elementwise import Structure

_INNER = "            "


class SequenceStructure(NamedTuple):
    """The structure of a kernel of several parts, each in one dimension."""

    parts: tuple[Structure, ...]


def parameters_of(structure: SequenceStructure) -> tuple[tuple[str, str], ...]:
    """Name and type key of each parameter after the item: those of the parts, and how many times
    the group goes on to its next elements in each.
    """
    return tuple(
        parameter
        for number, part in enumerate(structure.parts)
        for parameter in (
            *((f"p{number}_{name}", key) for name, key in elementwise.parameters_of(part)),
            (f"p{number}_turns", "i8"),
        )
    )


def types_of(structure: SequenceStructure) -> tuple[str, ...]:
    """The type keys of the kernel's parameters after the item."""
    return tuple(key for _, key in parameters_of(structure))


def source_of(structure: SequenceStructure) -> str:
    """The text of the kernel for a structure."""
    names = ", ".join(name for name, _ in parameters_of(structure))
    lines = [
        f"def fused_stores(item, {names}):",
        "    group = item.get_group()",
        "    lane = uint64(item.get_local_id(0))",
        "    lanes = uint64(item.get_local_range(0))",
    ]
    for number, part in enumerate(structure.parts):
        own = f"p{number}_"
        if number:
            lines.append("    group_barrier(group, MemoryScope.DEVICE)")
        lines += [
            f"    for {own}turn in range({own}turns):",
            f"        {own}i = lane + uint64({own}turn) * lanes",
            f"        if int64({own}i) < int64({own}size):",
        ]
        body = ["if True:", "    i = i", *elementwise.body_of(part, "    ")]
        names_of_part = {name for name, _ in elementwise.parameters_of(part)}
        text = ast.unparse(_Renamed(own, names_of_part).of("\n".join(body)))
        lines += [_INNER + line.removeprefix("    ") for line in text.split("\n")[2:]]
    return "\n".join(lines) + "\n"


class _Renamed(ast.NodeTransformer):
    """Puts a word in front of the parameters of a text and of the names that it assigns."""

    def __init__(self, own: str, names: set[str]) -> None:
        self._own, self._names = own, names

    def of(self, text: str) -> ast.Module:
        tree = ast.parse(text)
        self._names |= {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        self.visit(tree)
        return tree

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self._names:
            node.id = self._own + node.id
        return node
