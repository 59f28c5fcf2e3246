"""The tape: recorded calls, cotangents and the backward pass."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from dparray._array.ndarray import ndarray
from dparray.gradients.public import dp
from dparray.gradients.slices import Buffer, Part, added, whole
from dparray.gradients.traced import Node, Origin, Spec, Traced, alias


def snapshot(x: Any) -> Any:
    """Return an operand as it is now, for the backward pass.

    The copy is pending. If its source is written, dparray computes it before; otherwise it fuses
    into the backward kernel.
    """
    kind = type(x)
    if kind is ndarray:
        return x.copy()
    if kind is Traced:
        return alias(x)
    return kind([snapshot(inner) for inner in x]) if kind in (list, tuple) else x


def without_memory(x: Any) -> Any:
    """Return what a rule needs of an operand that it does not read: shape, dtype, placement."""
    kind = type(x)
    if kind is ndarray or kind is Traced:
        return Spec(x)
    return kind([without_memory(inner) for inner in x]) if kind in (list, tuple) else x


def operand(operands: Sequence[Any], place: Any) -> Any:
    """Return the operand at a place: a position, or a list's position and the position in it."""
    return operands[place] if type(place) is int else operands[place[0]][place[1]]


class Call(Node):
    """A recorded call of an operation that has a rule."""

    __slots__ = ("answer", "inputs", "is_single", "kept", "options", "places", "row")

    def __init__(
        self,
        row: Any,
        parents: Sequence[Origin],
        places: Sequence[Any],
        operands: Sequence[Any],
        options: dict[str, Any],
        answer: Any,
    ) -> None:
        self.is_single = type(answer) in (ndarray, Traced)
        super().__init__(parents, [Spec(x) for x in ((answer,) if self.is_single else answer)])
        self.row, self.places, self.options = row, places, options
        self.inputs = [Spec(operand(operands, place)) for place in places]
        self.kept, self.answer = row.keep(places, operands, answer)

    def pull(self, cotangents: list[Any]) -> list[Any]:
        """Return the cotangents of the operands."""
        g: Any = cotangents[0] if self.is_single else cotangents
        transpose, kept, answer, options = self.row.transpose, self.kept, self.answer, self.options
        return [
            matched(transpose(place, g, answer, kept, options), spec)
            for place, spec in zip(self.places, self.inputs, strict=True)
        ]


def matched(g: Any, spec: Spec, sums: bool = True) -> Any:
    """Return a cotangent in the shape and dtype of its operand.

    Args:
        g: the cotangent, or ``None`` for zero.
        spec: that of the operand.
        sums: whether axes along which the operand was broadcast are summed; otherwise ``g``, a
            tangent, is broadcast.
    """
    if g is None or type(g) is Part:
        return g
    if g.shape != spec.shape:
        if not sums or g.size < spec.size:
            g = dp.broadcast_to(g, spec.shape)
        else:
            more = g.ndim - spec.ndim
            narrow = [i + more for i, n in enumerate(spec.shape) if n != g.shape[i + more]]
            g = dp.reshape(dp.sum(g, axis=(*range(more), *narrow)), spec.shape)
    if g.dtype != spec.dtype:
        if g.dtype.kind == "c" and spec.dtype.kind != "c":
            g = dp.real(g)
        g = dp.astype(g, spec.dtype)
    return g


def backward(roots: Sequence[tuple[Origin, Any]], wanted: Sequence[Origin]) -> list[Any]:
    """Return the cotangents of origins, from those of results; ``None`` stands for zero."""
    held: dict[Origin, Any] = {}
    heap: list[tuple[int, Node]] = []
    queued: set[int] = set()
    kept = set(wanted)

    def give(origin: Origin, g: Any) -> None:
        held[origin] = added(held.get(origin), g)
        node = origin[0]
        if node.serial not in queued:
            queued.add(node.serial)
            heapq.heappush(heap, (-node.serial, node))

    for origin, g in roots:
        give(origin, g)
    while heap:
        node = heapq.heappop(heap)[1]
        origins = [(node, number) for number in range(len(node.specs))]
        if not node.parents:
            continue
        gs = [held.get(x) if x in kept else held.pop(x, None) for x in origins]
        gs = [whole(g) for g in gs]
        if len(gs) > 1:
            gs = [s.zeros() if g is None else g for g, s in zip(gs, node.specs, strict=True)]
        for origin, g in zip(node.parents, node.pull(gs), strict=True):
            if g is not None:
                give(origin, g)
    return [_own(held.get(origin)) for origin in wanted]


def _own(g: Any) -> Any:
    """Return a gradient as an array of its own.

    Two gradients may be the same cotangent, a view of one, or read-only.
    """
    if type(g) is Buffer:
        return g.array
    return None if g is None else whole(g).copy()
