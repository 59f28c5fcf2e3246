"""The tape: recorded calls, cotangents and the backward pass."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

from dparray._array.ndarray import ndarray
from dparray.gradients import traced
from dparray.gradients.public import dp
from dparray.gradients.slices import FORMS, Buffer, Part, added, whole
from dparray.gradients.traced import Node, Origin, Spec, Traced, alias, serial


def snapshot(x: Any) -> Any:
    """Return an operand as it is now, for the backward pass.

    The copy is pending. If its source is written, dparray computes it before; otherwise it fuses
    into the backward kernel.
    """
    kind = type(x)
    if kind is ndarray:
        # A replay sees writes that come before it, and its recording forbids those within.
        return x if traced.recordings and get_ident() in traced.recordings else x.copy()
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

    __slots__ = ("answer", "inputs", "is_array", "kept", "operands", "options", "places", "row")

    def __init__(
        self,
        row: Any,
        parents: Sequence[Origin],
        places: Sequence[Any],
        operands: Sequence[Any],
        options: dict[str, Any],
        answer: Any,
    ) -> None:
        self.is_array = type(answer) in (ndarray, Traced)
        super().__init__(parents, [Spec(x) for x in ((answer,) if self.is_array else answer)])
        self.row, self.places, self.options = row, places, options
        self.inputs = [Spec(operand(operands, place)) for place in places]
        self.kept, self.answer = row.keep(places, operands, answer)
        self.operands = [
            x if type(k) is ndarray else None for x, k in zip(operands, self.kept, strict=True)
        ]

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangents of the operands."""
        g: Any = cotangents
        if self.is_array:
            g = as_large(cotangents[0], self.specs[0])
        transpose, answer, options = self.row.transpose, self.answer, self.options
        # A library would compute a pending copy; without one, nobody has written to the operand.
        kept = [
            k if x is None or not k.is_pending else x
            for k, x in zip(self.kept, self.operands, strict=True)
        ]
        return [
            matched(transpose(place, g, answer, kept, options), spec, may_be_scalar=True)
            for place, spec in zip(self.places, self.inputs, strict=True)
        ]


class Elements(Node):
    """A recorded element-wise operation, as most calls are.

    Attributes:
        products: for each parent, the product of the derivative and the cotangent, a function of
            the cotangent, three operands and the result; ``None`` for zero.
        operands: the operands that the products read, and the result.
        result: shape and dtype of the result.
        inputs: those of the parents that differ from the result, or ``None`` if all are alike.
    """

    __slots__ = ("inputs", "operands", "products", "result")

    def __init__(
        self,
        parents: Sequence[Origin],
        products: Sequence[Callable[..., Any] | None],
        operands: Sequence[Any],
        answer: Any,
        inputs: Sequence[Spec] | None,
    ) -> None:
        # Only the number of specs is read, and this is one of the calls that take the most time.
        self.parents, self.is_single, self.serial = parents, True, next(serial)
        self.products, self.operands, self.inputs = products, operands, inputs
        self.result = answer.shape, answer.dtype

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangents of the operands."""
        (g,) = cotangents
        x, y, z, r = self.operands
        if g.dtype.kind == "c":
            x, y, z, r = conjugate(x), conjugate(y), conjugate(z), conjugate(r)
        shape, dtype = self.result
        inputs = self.inputs
        if inputs is not None and g.shape != shape:
            g = dp.broadcast_to(g, shape)
        made: list[Any] = []
        for number, product in enumerate(self.products):
            new = None if product is None else product(g, x, y, z, r)
            if inputs is not None:
                new = matched(new, inputs[number])
            elif new is not None and (new.dtype != dtype or (new.shape != shape and new.shape)):
                new = matched(new, Spec(new).changed(shape, dtype))
            made.append(new)
        return made


def conjugate(x: Any) -> Any:
    """Return the complex conjugate of an array or scalar."""
    if isinstance(x, complex):
        return x.conjugate()
    return dp.conj(x) if isinstance(x, ndarray | Traced) and x.dtype.kind == "c" else x


def as_large(g: Any, spec: Spec) -> Any:
    """Return a cotangent in the shape of its array: one number stands for equal elements."""
    return g if g is None or g.shape == spec.shape else dp.broadcast_to(g, spec.shape)


def matched(g: Any, spec: Spec, sums: bool = True, may_be_scalar: bool = False) -> Any:
    """Return a cotangent in the shape and dtype of its operand.

    Args:
        g: the cotangent, or ``None`` for zero.
        spec: that of the operand.
        sums: whether axes along which the operand was broadcast are summed; otherwise ``g``, a
            tangent, is broadcast.
        may_be_scalar: whether an array of shape ``()`` may stand for equal elements.
    """
    if g is None or type(g) is Part:
        return g
    if g.shape != spec.shape and not (may_be_scalar and g.shape == ()):
        if not sums or (g.size < spec.size and g.size) or g.shape == ():
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
    queued: set[Node] = set()
    kept = set(wanted)
    gifts: Any = roots
    while True:
        for origin, g in gifts:
            if g is None:
                continue
            before = held.get(origin)
            held[origin] = g if before is None else added(before, g)
            node = origin[0]
            if before is None and node.parents and (node.is_single or node not in queued):
                heapq.heappush(heap, (-node.serial, node))
                if not node.is_single:
                    queued.add(node)
        if not heap:
            break
        node = heapq.heappop(heap)[1]
        if node.is_single:
            origin = (node, 0)
            g = held[origin] if origin in kept else held.pop(origin)
            gs = [g.whole() if type(g) in FORMS else g]
        else:
            gs = []
            for number, spec in enumerate(node.specs):
                origin = (node, number)
                g = whole(held.get(origin) if origin in kept else held.pop(origin, None))
                gs.append(spec.zeros() if g is None else as_large(g, spec))
        gifts = zip(node.parents, node.pull(gs), strict=True)
    return [_own(held.get(origin), origin[0]) for origin in wanted]


def _own(g: Any, node: Node) -> Any:
    """Return a gradient as an array of its own.

    Two gradients may be the same cotangent, a view of one, or read-only.
    """
    if type(g) is Buffer:
        return g.array
    return None if g is None else as_large(whole(g), node.specs[0]).copy()
