"""Several stores in one kernel: side by side, in the same work-items, and one after the other.

Each part is an elementwise kernel (:mod:`dparray._codegen.elementwise`). The parts of a
:class:`Segment` have the same elements: a work-item computes the element of its index in one part
after the other. Segments share the range: its rows are those of the first segment, then those of
the next. The parts of the *tail*, of few elements each, come after all segments: the work-group
that is the last to end walks them, and waits at a barrier before the next, which may read what the
one before has written. What the parts call their own has the part's number in front.

A group walks rows, or pieces of them, as many work-items at a time as it has, and those that are
left over at the end of each by lines of their own: vectors without a mask are twice as fast on CPU
devices.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dparray._codegen import elementwise
from dparray._codegen.elementwise import Structure


class Segment(NamedTuple):
    """Parts that walk the same elements.

    Attributes:
        parts: of the same extents, all taken apart alike.
        is_cut: its rows are cut into pieces.
    """

    parts: tuple[Structure, ...]
    is_cut: bool


class SequenceStructure(NamedTuple):
    """The structure of a kernel of several stores.

    Attributes:
        segments: what all work-groups walk.
        tail: what one of them walks after that, each in one dimension.
    """

    segments: tuple[Segment, ...]
    tail: tuple[Structure, ...]

    @property
    def is_counted(self) -> bool:
        """Whether groups are counted, so that the last one goes on with the tail."""
        return bool(self.segments and self.tail)


# The groups of a segment, the pieces of each group and of all, and a row's elements; how many
# pieces a row is cut into, and of how many elements.
_RANGE, _CUT = ("begin", "end", "pieces", "all", "extent"), ("cuts", "length")

# What says which element it is: shared by the parts of a segment.
_OF_INDEX = re.compile(r"[iqnmh]\d+|i|size|zero")


def head_of(part: Structure) -> int:
    """How many numbers of a part say which element it is; the others are strides."""
    names = [name for name, _ in elementwise.parameters_of(part)]
    return sum(_OF_INDEX.fullmatch(name) is not None for name in names)


def parameters_of(structure: SequenceStructure) -> tuple[tuple[str, str], ...]:
    """Name and type key of each parameter after the item.

    Those of the parts, of which the first in a segment has the numbers that say which element it
    is, and in the tail how many times the group goes on to its next elements in each; what groups
    each segment has, and what they walk; where groups are counted, the counter, the word for the
    group that it was the last, and how many there are.
    """
    parameters = []
    number = 0
    for at, segment in enumerate(structure.segments):
        for position, part in enumerate(segment.parts):
            for name, key in elementwise.parameters_of(part):
                if _OF_INDEX.fullmatch(name) is None:
                    parameters.append((f"p{number}_{name}", key))
                elif position == 0:
                    parameters.append((f"g{at}_{name}", key))
            number += 1
    for part in structure.tail:
        own = elementwise.parameters_of(part)
        parameters += [(f"p{number}_{name}", key) for name, key in own]
        parameters.append((f"p{number}_turns", "i8"))
        number += 1
    for at, segment in enumerate(structure.segments):
        names = (*_RANGE, *_CUT * segment.is_cut)
        parameters += [(f"g{at}_{name}", "u8") for name in names]
    if structure.is_counted:
        parameters += [("arrived", "i4:1C"), ("is_last", "local i4:1"), ("groups", "u8")]
    return tuple(parameters)


def types_of(structure: SequenceStructure) -> tuple[str, ...]:
    """The type keys of the kernel's parameters after the item."""
    return tuple(key for _, key in parameters_of(structure))


def source_of(structure: SequenceStructure) -> str:
    """The text of the kernel for a structure."""
    names = ", ".join(name for name, _ in parameters_of(structure))
    lines = [f"def fused_stores(item, {names}):"]
    number = 0
    lines += [
        "    group = item.get_group()",
        "    lane = uint64(item.get_local_id(0))",
        "    lanes = uint64(item.get_local_range(0))",
    ]
    if structure.segments:
        lines.append("    number = uint64(item.get_group_id(0))")
    for at, segment in enumerate(structure.segments):
        lines += _segment(at, segment, number)
        number += len(segment.parts)
    if structure.is_counted:
        lines += _COUNTED
    for position, part in enumerate(structure.tail):
        if position:
            lines.append(_BARRIER)
        lines += _tail(number, part)
        number += 1
    return "\n".join(lines) + "\n"


_BARRIER = "    group_barrier(group, MemoryScope.DEVICE)"

# All that the group has stored is in memory before it is counted.
_COUNTED = [
    _BARRIER,
    "    if lane == uint64(0):",
    "        counted = AtomicRef(arrived, 0, memory_order=MemoryOrder.ACQ_REL)",
    "        is_last[0] = int32(uint64(counted.fetch_add(1)) + uint64(1) == groups)",
    "        if is_last[0] == 1:",
    "            arrived[0] = 0",
    _BARRIER,
    "    if is_last[0] == 0:",
    "        return",
]


def _segment(at: int, segment: Segment, number: int) -> list[str]:
    """The lines that compute the elements of a group in each of a segment's parts."""
    own, first = f"g{at}_", segment.parts[0]
    last = f"{own}i{first.dimensions - 1}" if first.has_rows else f"{own}i"
    lines = [
        f"    if int64(number) >= int64({own}begin) and int64(number) < int64({own}end):",
        f"        {own}next = (number - {own}begin) * {own}pieces",
        f"        {own}many = {own}all - {own}next",
        f"        {own}many = {own}many if {own}many < {own}pieces else {own}pieces",
        f"        for {own}turn in range(int64({own}many)):",
    ]
    inner = " " * 12
    lines.append(f"{inner}{own}piece = {own}next + uint64({own}turn)")
    if segment.is_cut:
        lines += [
            f"{inner}{own}row = {own}piece // {own}cuts",
            f"{inner}{own}start = ({own}piece - {own}row * {own}cuts) * {own}length",
            f"{inner}{own}left = {own}extent - {own}start",
            f"{inner}{own}left = {own}left if {own}left < {own}length else {own}length",
        ]
    else:
        lines += [
            f"{inner}{own}row = {own}piece",
            f"{inner}{own}start = uint64(0)",
            f"{inner}{own}left = {own}extent",
        ]
    classes = [cls for part in segment.parts for cls in elementwise.classes_of(part)]
    body = _renamed(elementwise.indices(first, classes), {}, own, "")
    if first.has_rows:
        body.insert(0, f"{own}i = {own}row")
    for position, part in enumerate(segment.parts):
        body += _part(number + position, part, own, "")
    return [
        *lines,
        f"{inner}{own}whole = {own}left // lanes",
        f"{inner}for {own}at in range(int64({own}whole)):",
        f"{inner}    {last} = {own}start + uint64({own}at) * lanes + lane",
        *[f"{inner}    {line}" for line in body],
        f"{inner}{own}rest = {own}whole * lanes + lane",
        f"{inner}if int64({own}rest) < int64({own}left):",
        f"{inner}    {last} = {own}start + {own}rest",
        *[f"{inner}    {line}" for line in body],
    ]


def _tail(number: int, part: Structure) -> list[str]:
    """The lines with which a group walks a part of the tail."""
    own, inner = f"p{number}_", "            "
    lines = [
        f"    for {own}turn in range({own}turns):",
        f"        {own}i = lane + uint64({own}turn) * lanes",
        f"        if int64({own}i) < int64({own}size):",
    ]
    lines += _renamed(elementwise.indices(part, elementwise.classes_of(part)), {}, own, inner)
    return lines + _part(number, part, own, inner)


def _part(number: int, part: Structure, index: str, inner: str) -> list[str]:
    """The lines that load, compute and store an element of a part."""
    own = f"p{number}_"
    names = {
        name: own + name
        for name, _ in elementwise.parameters_of(part)
        if _OF_INDEX.fullmatch(name) is None
    }
    return _renamed(elementwise.element(part), names, index, inner, own)


def _renamed(
    lines: Sequence[str], names: Mapping[str, str], index: str, inner: str, own: str = ""
) -> list[str]:
    """Lines with other names.

    Args:
        lines: without indentation before the first.
        names: of parameters, by those that they have.
        index: goes in front of the names that say which element it is.
        inner: goes in front of the lines.
        own: goes in front of all other names that are assigned to.
    """
    tree = ast.parse("\n".join(lines))
    found = dict(names)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    for node in nodes:
        if _OF_INDEX.fullmatch(node.id) is not None:
            found[node.id] = index + node.id
        elif isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, own + node.id)
    for node in nodes:
        node.id = found.get(node.id, node.id)
    return [inner + line for line in ast.unparse(tree).split("\n")] if lines else []
