"""Arrays that are assembled from boxes of other arrays: rolled, joined and extended ones.

A kernel does not need the assembled array in memory. The boundaries of all boxes
divide an expression into cells. In a cell, all operands are plain views, so the kernel is launched
once for each cell. If all boxes show the same operand, as in rolled arrays, cells along outer axes
are merged: the kernel adds a constant to the operand's index from some row on. Cells along the
inner axis are not merged, because the kernel would then not load vectors. Arrays that are extended
by zeros have one cell: the kernel loads their elements between two bounds along each axis.
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
#: A kernel has at most this many arguments for jumps, since their number is limited.
_MAX_JUMPS = 30
#: The operands of a kernel that are extended by zeros have bounds along at most this many axes.
MAX_BOUNDED_AXES = 24

#: For each axis: the index at which an operand jumps in memory, and the additional distance in
#: elements from there on.
Jumps = tuple[tuple[int, int], ...]

#: For each axis of an extended operand: its first index and its length, or ``None`` if it is whole.
Bounds = tuple[tuple[int, int] | None, ...]


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
        """Return the part of this box inside another one, positioned relative to that one."""
        first = tuple(map(max, self.start, start))
        stop = [min(a + n, b + m) for a, n, b, m in zip(*self[1::2], start, shape, strict=True)]
        left = tuple([end - begin for begin, end in zip(first, stop, strict=True)])
        if min(left, default=1) <= 0:
            return None
        source = [
            position + new - old
            for position, new, old in zip(self.source, first, self.start, strict=True)
        ]
        begin = tuple([new - old for new, old in zip(first, start, strict=True)])
        return Box(self.operand, begin, tuple(source), left)


def _slices(start: Shape, shape: Shape) -> tuple[slice, ...]:
    return tuple([slice(first, first + n) for first, n in zip(start, shape, strict=True)])


@dataclass(frozen=True, slots=True, eq=False)
class Assembly(Op):
    """An operation whose result consists of boxes of its operands, which are whole arrays.

    Attributes:
        boxes: the boxes, which do not overlap. They cover the result unless ``fills`` is set.
        fills: whether there is one box, and the elements outside of it are zero.
        indices: for each box, its index in the result, its operand, and its index there.
    """

    boxes: tuple[Box, ...] = ()
    fills: bool = False
    indices: tuple[tuple[Any, int, Any], ...] = ()


@lru_cache(maxsize=4096)
def assembly(name: str, boxes: tuple[Box, ...], fills: bool = False) -> Assembly:
    """Return the operation for some boxes: one object for equal boxes, since it is in plan keys."""
    indices = tuple([(_slices(*box[1::2]), box.operand, _slices(*box[2:])) for box in boxes])
    of_boxes: dict[str, Any] = {"boxes": boxes, "fills": fills, "indices": indices}
    return Assembly(name, NO_UFUNC, name, expression="{0}", kinds="biufc", **of_boxes)


def is_assembled(node: Node | Scalar) -> bool:
    """Return whether a node is pending and assembled."""
    return type(node) is Node and type(node.op) is Assembly


def is_extended(node: Node | Scalar) -> bool:
    """Return whether a node is pending, and one array extended by zeros."""
    return type(node) is Node and type(node.op) is Assembly and node.op.fills


def count_bounded_axes(nodes: Sequence[Node]) -> int:
    """Return the number of axes along which extended arrays have bounds, for all together."""
    return sum(
        inner != outer
        for node in nodes
        for inner, outer in zip(node.op.boxes[0].shape, node.shape, strict=True)  # type: ignore[union-attr]
    )


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
    """Replace operands that are pending assembled arrays by their operands and boxes."""
    inner = tuple(
        [
            node.op
            if type(node.op) is Assembly
            and not node.op.fills
            and all(part.dtype == node.dtype for part in node.operands)  # type: ignore[union-attr]
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
    """Return the operands to take, each with its number inside an assembled one, and the boxes."""
    numbers: dict[tuple[int, int | None], int] = {}
    flat = []
    for box in boxes:
        op = inner[box.operand]
        for part in (box,) if op is None else op.boxes:
            cut = box if op is None else part.cut(box.source, box.shape)
            if cut is not None:
                pick = box.operand, None if op is None else cut.operand
                start = box.start
                if op is not None:
                    start = tuple(map(sum, zip(box.start, cut.start, strict=True)))
                flat.append(
                    cut._replace(operand=numbers.setdefault(pick, len(numbers)), start=start)
                )
    return list(numbers), tuple(flat)


def _shifts_of(boxes: Sequence[Box]) -> list[list[tuple[int, int]]] | None:
    """Return, for each axis, the start of each box and its distance from the position in the
    operand. Return ``None`` if the boxes show more than one operand, or start at more than two
    positions along an axis.
    """
    shifts = [
        sorted({(start, source - start) for start, source in zip(starts, sources, strict=True)})
        for starts, sources in zip(
            zip(*[box.start for box in boxes], strict=True),
            zip(*[box.source for box in boxes], strict=True),
            strict=True,
        )
    ]
    are_apart = all(len({start for start, _ in each}) == len(each) <= 2 for each in shifts)
    is_grid = are_apart and prod(map(len, shifts)) == len(boxes)
    return shifts if is_grid and len({box.operand for box in boxes}) == 1 else None


def _parts_of(cuts: Sequence[Sequence[int]], shape: Shape) -> Iterator[tuple[Shape, Shape]]:
    """Yield the first index and the shape of each part between cuts."""
    for part in product(*[pairwise([*begins, n]) for begins, n in zip(cuts, shape, strict=True)]):
        yield tuple([begin for begin, _ in part]), tuple([end - begin for begin, end in part])


def _inside(node: Node, start: Shape, shape: Shape) -> list[Box]:
    """Return the parts of a node's boxes in a part of the result."""
    head = len(start) - len(node.shape)
    assert type(node.op) is Assembly
    boxes = [box.cut(start[head:], shape[head:]) for box in node.op.boxes]
    return [box for box in boxes if box is not None]


def _cuts_of(nodes: Sequence[Node], shape: Shape, inner: int | None) -> list[list[int]]:
    """Return the indices at which cells begin, for each axis of a result.

    Args:
        nodes: the assembled nodes.
        shape: the shape of the result.
        inner: the axis along which elements are adjacent; the others are cut only if operands jump
            more than once along them. ``None`` cuts all axes.
    """
    starts: list[set[int]] = [{0} for _ in shape]
    for node in nodes:
        for box in node.op.boxes:  # type: ignore[union-attr]
            for each, start in zip(starts[len(shape) - len(box.start) :], box.start, strict=True):
                each.add(start)
    cuts = list(map(sorted, starts))
    if inner is None:
        return cuts
    for axis in range(len(shape)):
        trial = [*cuts[:axis], [0], *cuts[axis + 1 :]]
        if axis != inner % len(shape) and all(
            _shifts_of(_inside(node, *part)) is not None
            for part in _parts_of(trial, shape)
            for node in nodes
        ):
            cuts = trial
    return cuts


def count_cells(order: Sequence[Node], inner: int = -1) -> int:
    """Return the number of cells of an expression; 1 if it has no assembled nodes."""
    nodes = [node for node in order if type(node.op) is Assembly]
    if not nodes or any(map(is_extended, nodes)):
        return 1
    shape = max([node.shape for node in nodes], key=len)
    return prod(map(len, _cuts_of(nodes, shape, inner)))


class Cell(NamedTuple):
    """A part of an expression in which each operand is a plain view, or one that jumps.

    Attributes:
        order: its nodes, operands before users.
        outputs: its values, and where they are stored.
        shape: its shape.
        jumps: the jumps of operands by their layouts; ``None`` if a kernel cannot have them.
        bounds: by the layouts of extended operands in the cell: their own layouts, and the bounds.
    """

    order: list[Node]
    outputs: list[tuple[Any, Layout]]
    shape: Shape
    jumps: dict[Layout, Jumps] | None
    bounds: dict[Layout, tuple[Layout, Bounds]]


#: The length of a piece along the axis that is cut is a multiple of this if it is longer.
_PIECE_STEP = 4096


def cells_of(
    order: Sequence[Node], outputs: Sequence[tuple[Any, Layout]], shape: Shape, inner: int
) -> list[Cell]:
    """Return the cells of an expression with assembled nodes, the largest one first.

    ``inner`` is the axis along which elements are adjacent.
    """
    nodes = [node for node in order if type(node.op) is Assembly]
    if any(map(is_extended, nodes)):
        return [_cell(order, outputs, shape, (0,) * len(shape), shape)]
    for axis in (inner, None):
        cuts = _cuts_of(nodes, shape, axis)
        cells = [_cell(order, outputs, shape, *part) for part in _parts_of(cuts, shape)]
        if all(cell.jumps is not None for cell in cells):
            break
    return sorted(cells, key=lambda cell: -prod(cell.shape))


def pieces_of(
    order: Sequence[Node],
    outputs: Sequence[tuple[Any, Layout]],
    shape: Shape,
    axes: Sequence[int],
    most: int,
) -> list[Cell]:
    """Return the parts of an expression without assembled nodes with at most ``most`` elements.

    Args:
        order, outputs, shape: the expression.
        axes: its axes, from the slowest to the fastest one. The slowest ones are cut.
        most: the largest number of elements.
    """
    cuts: list[Sequence[int]] = [[0]] * len(shape)
    inner = prod(shape)
    for axis in axes:
        inner //= shape[axis]
        step = max(1, most // inner)
        # Contiguous pieces begin at an address of a vector.
        cuts[axis] = range(0, shape[axis], step - step % _PIECE_STEP or step)
        if inner <= most:
            break
    return [_cell(order, outputs, shape, *part) for part in _parts_of(cuts, shape)]


def _cell(
    order: Sequence[Node],
    outputs: Sequence[tuple[Any, Layout]],
    shape: Shape,
    start: Shape,
    left: Shape,
) -> Cell:
    def seen(layout: Layout, first: Shape, whole: Shape) -> Layout:
        strides = broadcast_strides("expression", layout.shape, layout.strides, whole)
        offset = layout.offset + sum(index * n for index, n in zip(first, strides, strict=True))
        return layout._replace(shape=left, strides=strides, offset=offset)

    copies: dict[int, Node] = {}
    still = ((0, 0),) * len(shape)
    jumps: dict[Layout, Jumps] = {}
    extended: dict[tuple[Layout, Box], Layout] = {}
    bounds: dict[Layout, tuple[Layout, Bounds]] = {}
    is_clear = True

    def leaf_of(node: Node, layout: Layout, own: Jumps = still) -> Node:
        nonlocal is_clear
        # Arguments of a kernel are told apart by their layouts.
        is_clear &= jumps.setdefault(layout, own) == own
        return Node.leaf(layout, node.queue, node.usm_type)

    def view(operand: Any) -> Any:
        if type(operand) is Scalar:
            return operand
        if id(operand) not in copies:
            layout = seen(layout_of(operand), start, shape)
            own = still
            if (
                layout.block.memory is None and layout.offset
            ):  # Positions have no memory to begin in.
                own = ((0, layout.offset // layout.dtype.itemsize), *still[1:])
                layout = layout._replace(offset=0)
            copies[id(operand)] = leaf_of(operand, layout, own)
        return copies[id(operand)]

    def extended_leaf(node: Node, box: Box) -> Node:
        source = layout_of(node.operands[0])
        if (source, box) not in extended:
            # The offset only tells arguments apart: that of its own layout is used at the launch.
            named = source._replace(offset=-1 - len(extended), shape=node.shape)
            strides = broadcast_strides("expression", named.shape, named.strides, shape)
            named = extended[source, box] = named._replace(shape=shape, strides=strides)
            pairs = zip(box.start, box.shape, node.shape, strict=True)
            own = [None if n == whole else (first, n) for first, n, whole in pairs]
            bounds[named] = source, (*(None,) * (len(shape) - len(own)), *own)
        return leaf_of(node, extended[source, box])

    nodes = []
    for node in order:
        op, operands = node.op, node.operands
        assert op is not None
        signature = node.signature
        if type(op) is Assembly and op.fills:
            copies[id(node)] = extended_leaf(node, op.boxes[0])
            continue
        if type(op) is Assembly:
            head = len(shape) - len(node.shape)
            boxes = _inside(node, start, left)
            shifts = _shifts_of(boxes)
            assert shifts is not None
            begin = min(boxes)
            source = operands[begin.operand]
            layout = layout_of(source)
            layout = seen(layout, (0,) * head + begin.source, (1,) * head + layout.shape)
            jumps_here = [
                (each[-1][0], (each[-1][1] - each[0][1]) * step // layout.dtype.itemsize)
                for each, step in zip(shifts, layout.strides[head:], strict=True)
            ]
            leaf = leaf_of(node, layout, (*still[:head], *jumps_here))
            if leaf.dtype == node.dtype:
                copies[id(node)] = leaf
                continue
            op, operands, signature = CONVERT, (leaf,), (node.dtype, node.dtype)
        parts = tuple([view(part) for part in operands]) if op is node.op else operands
        copy = Node(op, parts, signature, left, prod(left), node.queue, node.usm_type)
        copies[id(node)] = copy
        nodes.append(copy)
    stored = [(view(value), seen(layout, start, shape)) for value, layout in outputs]
    is_clear &= sum(bool(jump) for each in jumps.values() for _, jump in each) <= _MAX_JUMPS
    return Cell(nodes, stored, left, jumps if is_clear else None, bounds)
