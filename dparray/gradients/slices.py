"""Cotangents of slices: parts of an array, and the sum of several."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dparray._array.nodes import assembled_array
from dparray._codegen.indexing import MAX_NARROW
from dparray._driver import traits_of
from dparray._evaluate import limits
from dparray._graph.assembly import Box
from dparray._placement import placement_of
from dparray.gradients.public import dp
from dparray.gradients.traced import Spec, Traced, is_differentiated

#: A sum reads at most this many slices where they are stored. Each is read in a pass over the whole
#: array, so a slice must also have at least this share of its elements.
_MAX_BOXES, _MIN_SHARE = 12, 0.5


class Part:
    """The cotangent of a slice: values at an index, and zero elsewhere.

    Attributes:
        g: the values.
        key: the index, of integers and slices.
        spec: that of the array.
        scatter: makes the array of these three.
    """

    __slots__ = ("g", "key", "scatter", "spec")

    def __init__(self, g: Any, key: Any, spec: Spec, scatter: Callable[..., Any]) -> None:
        self.g, self.key, self.spec, self.scatter = g, key, spec, scatter

    def whole(self) -> Any:
        """Return it as an array."""
        box = self.box()
        if box is None:
            return self.scatter(self.g, self.key, self.spec)
        return _recordable(_extended, _in_box(self.g, box), box, self.spec)

    def box(self) -> Box | None:
        """Return where it is in the array, if kernels read it where it is stored."""
        g, spec = self.g, self.spec
        if is_differentiated(g) or g.size < _MIN_SHARE * spec.size or g.dtype.char not in "fdFD":
            return None
        if spec.size <= limits.host_elements and traits_of(spec.queue).shares_memory:
            return None  # NumPy adds it in place
        if max(spec.shape, default=0) >= MAX_NARROW:
            return None  # kernels compare indices with bounds in 32 bits
        keys = list(self.key) if type(self.key) is tuple else [self.key]
        if any(key is None for key in keys):
            return None
        rest = spec.ndim - sum(key is not Ellipsis for key in keys)
        at = next((i for i, key in enumerate(keys) if key is Ellipsis), len(keys))
        keys[at : at + 1] = [slice(None)] * rest
        ranges = []
        for key, n in zip(keys, spec.shape, strict=True):
            first = operator.index(key) % n if not isinstance(key, slice) else 0
            indices = range(n)[key] if isinstance(key, slice) else range(first, first + 1)
            if indices.step != 1:
                return None
            ranges.append(indices)
        shape = tuple(map(len, ranges))
        return Box(0, tuple([each.start for each in ranges]), (0,) * len(shape), shape)


def _in_box(g: Any, box: Box) -> Any:
    """Return values with the axes of their box; a reshaped array would not stay pending."""
    return g if g.shape == box.shape else dp.reshape(g, box.shape)


def _extended(g: Any, box: Box, spec: Spec) -> Any:
    """Return a pending array with values in a box, and zero elsewhere."""
    return assembled_array("extend", (g,), (box,), spec.shape, g.dtype, placement_of(g), fills=True)


class Parts:
    """The sum of an array and slices that kernels read where they are stored.

    Attributes:
        boxes: the values of the slices by their boxes.
        spec: that of the array.
        rest: the array, or ``None`` for zero.
    """

    __slots__ = ("boxes", "rest", "spec")

    def __init__(self, spec: Spec, rest: Any = None) -> None:
        self.boxes: dict[Box, Any] = {}
        self.spec, self.rest = spec, rest

    def take(self, box: Box, g: Any) -> None:
        """Add a slice."""
        g = _in_box(g, box)
        self.boxes[box] = self.boxes[box] + g if box in self.boxes else g

    def whole(self) -> Any:
        """Return the sum as a pending array."""
        # One kernel computes the values of all slices.
        if pending := [g for g in self.boxes.values() if g.is_pending]:
            _recordable(dp.eval, *pending)
        total = self.rest
        for box, g in self.boxes.items():
            one = _recordable(_extended, g, box, self.spec)
            total = one if total is None else total + one
        return total


class Buffer:
    """The sum of several cotangents, in an array that only the backward pass has."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def whole(self) -> Any:
        """Return the sum."""
        return self.array


#: The forms of cotangents that are not arrays.
FORMS = frozenset({Part, Parts, Buffer})


def whole(g: Any) -> Any:
    """Return a cotangent as an array."""
    return g.whole() if type(g) in FORMS else g


def added(held: Any, new: Any) -> Any:
    """Return the sum of the cotangents so far, in any form, and an array or a part.

    An array of shape ``()`` stands for equal elements.
    """
    kind = type(held)
    if type(new) is not Part and kind not in FORMS:
        return held + new
    values = new.g if type(new) is Part else new
    before = held.g if kind is Part else held
    if is_differentiated(values) or is_differentiated(before):
        return whole(held) + whole(new)
    if kind is not Buffer:
        made = _added_parts(held, new)
        if made is not None:
            return made
        if kind is Part and type(new) is not Part:
            held, new = new, held
        if type(held) not in FORMS:
            held = dp.broadcast_to(held, new.spec.shape).copy()
        held = Buffer(whole(held))
    key, values = (new.key, new.g) if type(new) is Part else (..., new)
    held.array = _recordable(_added_into, held.array, key, values)
    return held


def _recordable(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of arrays, which are recorded for a replay if one is."""
    for x in arguments:
        if type(x) is Traced:
            return x._level.recording.call(function, arguments, {})
    return function(*arguments)


def _added_into(total: Any, key: Any, g: Any) -> Any:
    total[key] += g
    return total


def _added_parts(held: Any, new: Any) -> Parts | None:
    """Return the sum of slices and arrays without a buffer; ``None`` if they do not suit."""
    parts = [each for each in (held, new) if type(each) is Part]
    boxes = [each.box() for each in parts]
    if None in boxes or (type(held) is Parts and len(held.boxes) == _MAX_BOXES):
        return None
    if type(held) is Parts:
        total = held
    else:
        total = Parts(parts[0].spec, None if type(held) is Part else held)
    if type(new) is not Part:
        total.rest = new if total.rest is None else total.rest + new
    for each, box in zip(parts, boxes, strict=True):
        assert box is not None
        total.take(box, each.g)
    return total
