"""Arrays that are assembled from boxes of other arrays: rolled and joined ones.

A kernel does not need the assembled array in memory. Between two ends of boxes all operands are
plain views, so the kernel of an expression is launched once for each such cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

from dparray._graph.contractions import Contraction
from dparray._graph.node import Node, Scalar, layout_of
from dparray._graph.ops import CONVERT, NO_UFUNC, Op
from dparray._layout import Layout, Shape, broadcast_strides

#: An expression is launched for at most this many cells: those of neighbors in three dimensions.
MAX_CELLS = 27


class Box(NamedTuple):
    """A part of an assembled array.

    Attributes:
        operand: the number of the array that it shows.
        start: its first index in the result.
        source: its first index in the operand.
        shape: its shape.
    """

    operand: int
    start: Shape
    source: Shape
    shape: Shape

    def cut(self, start: Shape, shape: Shape) -> Box | None:
        """Return the part of the box in another one, from that one's first index on."""
        first = tuple(map(max, self.start, start))
        stop = [min(a + n, b + m) for a, n, b, m in zip(*self[1::2], start, shape, strict=True)]
        left = tuple([end - begin for begin, end in zip(first, stop, strict=True)])
        if min(left, default=1) <= 0:
            return None
        source = [
            at + new - old for at, new, old in zip(self.source, first, self.start, strict=True)
        ]
        begin = tuple([new - old for new, old in zip(first, start, strict=True)])
        return Box(self.operand, begin, tuple(source), left)


def _slices(start: Shape, shape: Shape) -> tuple[slice, ...]:
    return tuple([slice(at, at + n) for at, n in zip(start, shape, strict=True)])


@dataclass(frozen=True, slots=True, eq=False)
class Assembly(Op):
    """An operation whose result consists of boxes of its operands, which are whole arrays.

    Attributes:
        boxes: the boxes, which cover the result and do not overlap.
    """

    boxes: tuple[Box, ...] = ()

    def parts(self, out: Any, operands: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each box as a part of the result and a part of an operand."""
        for box in self.boxes:
            part = operands[box.operand][_slices(box.source, box.shape)]
            yield out[_slices(box.start, box.shape)], part


@lru_cache(maxsize=4096)
def assembly(name: str, boxes: tuple[Box, ...]) -> Assembly:
    """Return the operation for some boxes: one object for equal boxes, since it is in plan keys."""
    return Assembly(name, NO_UFUNC, name, expression="{0}", kinds="biufc", boxes=boxes)


def is_assembled(node: Node | Scalar) -> bool:
    """Return whether a node is pending and assembled."""
    return type(node) is Node and type(node.op) is Assembly


def layouts_of_whole(node: Node) -> list[Layout]:
    """Return the layouts of computed operands of which a node may read any element."""
    op = node.op
    if not isinstance(op, Assembly | Contraction):
        return []
    operands = node.operands if isinstance(op, Assembly) else node.operands[: op.whole]
    return [part.layout for part in operands if type(part) is Node and part.layout is not None]


def flattened(
    operands: Sequence[Node], boxes: tuple[Box, ...]
) -> tuple[list[Node], tuple[Box, ...]]:
    """Return operands and boxes in place of those that show pending assembled arrays."""
    inner = tuple(
        [
            node.op
            if type(node.op) is Assembly and all(part.dtype == node.dtype for part in node.operands)  # type: ignore[union-attr]
            else None
            for node in operands
        ]
    )
    if not any(inner):
        return list(operands), boxes
    picks, flat = _flat_boxes(inner, boxes)
    nodes: list[Any] = [
        operands[outer] if number is None else operands[outer].operands[number]
        for outer, number in picks
    ]
    return nodes, flat


@lru_cache(maxsize=4096)
def _flat_boxes(
    inner: tuple[Assembly | None, ...], boxes: tuple[Box, ...]
) -> tuple[list[tuple[int, int | None]], tuple[Box, ...]]:
    """Return the operands to take, by number and number in an assembled operand, and the boxes."""
    found: dict[tuple[int, int | None], int] = {}
    made = []
    for box in boxes:
        op = inner[box.operand]
        for part in (box,) if op is None else op.boxes:
            cut = box if op is None else part.cut(box.source, box.shape)
            if cut is not None:
                pick = box.operand, None if op is None else cut.operand
                start = box.start
                if op is not None:
                    start = tuple(map(sum, zip(box.start, cut.start, strict=True)))
                made.append(cut._replace(operand=found.setdefault(pick, len(found)), start=start))
    return list(found), tuple(made)


def _cuts_of(order: Sequence[Node], ndim: int) -> list[list[int]]:
    """Return the indices at which boxes begin, for each axis of a result."""
    cuts: list[set[int]] = [{0} for _ in range(ndim)]
    for node in order:
        if type(node.op) is Assembly:
            for box in node.op.boxes:
                for found, at in zip(cuts[ndim - len(box.start) :], box.start, strict=True):
                    found.add(at)
    return list(map(sorted, cuts))


def count_cells(order: Sequence[Node]) -> int:
    """Return the number of cells of an expression; 1 if it has no assembled nodes."""
    assembled = [node for node in order if type(node.op) is Assembly]
    if not assembled:
        return 1
    return prod(map(len, _cuts_of(assembled, max(len(node.shape) for node in assembled))))


class Cell(NamedTuple):
    """A part of an expression in which each operand is a plain view.

    Attributes:
        order: its nodes, operands before users.
        outputs: its values, and where they are stored.
        shape: its shape.
    """

    order: list[Node]
    outputs: list[tuple[Any, Layout]]
    shape: Shape


def cells_of(
    order: Sequence[Node], outputs: Sequence[tuple[Any, Layout]], shape: Shape
) -> list[Cell]:
    """Return the cells of an expression with assembled nodes, the largest one first."""
    ends = [
        list(pairwise([*cuts, n]))
        for cuts, n in zip(_cuts_of(order, len(shape)), shape, strict=True)
    ]
    cells = [_cell(order, outputs, shape, part) for part in product(*ends)]
    return sorted(cells, key=lambda cell: -prod(cell.shape))


def _cell(
    order: Sequence[Node],
    outputs: Sequence[tuple[Any, Layout]],
    shape: Shape,
    part: Sequence[tuple[int, int]],
) -> Cell:
    start = tuple([begin for begin, _ in part])
    left = tuple([end - begin for begin, end in part])

    def seen(layout: Layout, first: Shape, whole: Shape) -> Layout:
        strides = broadcast_strides("expression", layout.shape, layout.strides, whole)
        offset = layout.offset + sum(at * n for at, n in zip(first, strides, strict=True))
        return layout._replace(shape=left, strides=strides, offset=offset)

    copies: dict[int, Node] = {}

    def view(operand: Any) -> Any:
        if type(operand) is Scalar:
            return operand
        if id(operand) not in copies:
            layout = seen(layout_of(operand), start, shape)
            copies[id(operand)] = Node.leaf(layout, operand.queue, operand.usm_type)
        return copies[id(operand)]

    nodes = []
    for node in order:
        op, operands = node.op, node.operands
        assert op is not None
        signature = node.signature
        if type(op) is Assembly:
            head = len(shape) - len(node.shape)
            box, inner = next(
                (box, inner)
                for box in op.boxes
                if (inner := box.cut(start[head:], left[head:])) is not None
            )
            source = operands[box.operand]
            layout = layout_of(source)
            first = (0,) * head + inner.source
            whole = (1,) * head + layout.shape
            leaf = Node.leaf(seen(layout, first, whole), node.queue, node.usm_type)
            if leaf.dtype == node.dtype:
                copies[id(node)] = leaf
                continue
            op, operands, signature = CONVERT, (leaf,), (node.dtype, node.dtype)
        parts = tuple([view(part) for part in operands]) if op is node.op else operands
        copy = Node(op, parts, signature, left, prod(left), node.queue, node.usm_type)
        copies[id(node)] = copy
        nodes.append(copy)
    stored = [(view(value), seen(layout, start, shape)) for value, layout in outputs]
    return Cell(nodes, stored, left)
