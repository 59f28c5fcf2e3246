"""The kinds of rules: what a row of the table states, and both modes that follow from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from dparray._array.ndarray import ndarray
from dparray.exceptions import GradientError
from dparray.gradients.public import dp
from dparray.gradients.slices import whole
from dparray.gradients.tape import backward, conjugate, matched, operand, snapshot, without_memory
from dparray.gradients.traced import Level, Node, Spec, Traced, is_of


def is_several(answer: Any) -> bool:
    """Return whether an operation has several results."""
    return type(answer) not in (ndarray, Traced)


class Row:
    """The rule of an operation.

    ``places`` are positions of operands, or pairs of the position of a list and that in it.

    Attributes:
        name: the public name of the operation, with its namespace.
        compute: the operation.

    Subclasses state how their rule is called.
    """

    #: Whether the rule reads the operands, and not just their shapes and dtypes.
    reads_operands = True
    #: Whether the rule reads the result.
    reads_answer = False
    #: Whether the rule compares the operand with the result. A pending operand is evaluated first,
    #: since another backend would round it differently when it is computed again.
    compares = False
    #: Whether the result of the operation is a view of the first operand.
    is_view = False

    def __init__(
        self, name: str, compute: Callable[..., Any], rule: Callable[..., Any] = lambda: None
    ) -> None:
        self.name, self.compute, self._rule = name, compute, rule

    def keep(self, places: Sequence[Any], operands: Sequence[Any], answer: Any) -> tuple[Any, Any]:
        """Return the operands and the result as far as the rule needs them."""
        if self.reads_operands:
            kept = [snapshot(x) for x in operands]
        else:
            kept = [without_memory(operands[0]), *[snapshot(x) for x in operands[1:]]]
        return kept, answer if self.reads_answer else None

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        raise NotImplementedError

    def push(self, tangents: Mapping[Any, Any], answer: Any, operands: Any, options: Any) -> Any:
        """Return the tangent of the result from those of operands by their places.

        Without a method of its own, a row transposes its rule, which is linear in the cotangent.
        """
        several = is_several(answer)

        def pulled(gs: Sequence[Any]) -> Iterator[Any]:
            for place in tangents:
                g = self.transpose(place, gs if several else gs[0], answer, operands, options)
                yield matched(whole(g), Spec(operand(operands, place)))

        moved = pushed(pulled, answer if several else (answer,), tangents.values())
        return tuple(moved) if several else moved[0]


def pushed(
    pulled: Callable[..., Iterable[Any]], answers: Sequence[Any], tangents: Iterable[Any]
) -> list[Any]:
    """Return the tangents of results by transposing a rule, which is linear in cotangents.

    Args:
        pulled: returns the cotangents of operands from those of the results.
        answers: the results.
        tangents: those of the operands.
    """
    with Level() as level:
        ends = [(Node([], [Spec(y)]), 0) for y in answers]
        gs = [Traced(Spec(y).zeros(), level, end) for y, end in zip(answers, ends, strict=True)]
        pairs = zip(pulled(gs), tangents, strict=True)
        return backward([(g._origin, t) for g, t in pairs if is_of(g, level)], ends)


def _plus(old: Any, new: Any) -> Any:
    return new if old is None else old + new


class Elementwise(Row):
    """An element-wise operation, by the texts of :mod:`dparray._graph.derivatives`."""

    def __init__(self, name: str, compute: Callable[..., Any], texts: Sequence[str]) -> None:
        super().__init__(name, compute)
        products = [_product(name, text) for text in texts]
        self.products = [product for product, _ in products]
        self._reads = [reads for _, reads in products]
        self._known: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def at(self, places: tuple[int, ...]) -> tuple[Sequence[Any], Sequence[bool]]:
        """Return the products for some places, and whether they read each operand and the result.

        The second result has an entry for each of three operands, and one for the result.
        """
        known = self._known.get(places)
        if known is None:
            reads = frozenset().union(*[self._reads[place] for place in places])
            products = [self.products[place] for place in places]
            known = self._known[places] = products, [name in reads for name in "xyzr"]
        return known

    def keep(self, places: Sequence[Any], operands: Sequence[Any], answer: Any) -> tuple[Any, Any]:
        """Return what the rule needs of the operands and the result."""
        _, reads = self.at(tuple(places))
        kept = [
            snapshot(x) if is_read else without_memory(x)
            for is_read, x in zip(reads, operands, strict=False)
        ]
        return kept, answer if reads[3] else None

    def _product(self, place: int, g: Any, answer: Any, operands: Any, conjugates: bool) -> Any:
        product = self.products[place]
        if product is None:
            return None
        if conjugates:
            operands, answer = [conjugate(x) for x in operands], conjugate(answer)
        return product(g, *operands, *(None,) * (3 - len(operands)), answer)

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        return self._product(place, g, answer, operands, g.dtype.kind == "c")

    def push(self, tangents: Mapping[Any, Any], answer: Any, operands: Any, options: Any) -> Any:
        """Return the tangent of the result from those of operands."""
        total = None
        for place, tangent in tangents.items():
            if answer.dtype.kind == "c" and tangent.dtype.kind != "c":
                tangent = dp.astype(tangent, answer.dtype)
            new = self._product(place, tangent, answer, operands, False)
            total = total if new is None else _plus(total, new)
        return total


#: The names that texts may use besides the operands: public functions, and helpers of the rules.
NAMES: dict[str, Any] = {}


def _product(name: str, text: str) -> tuple[Callable[..., Any] | None, Set[str]]:
    """Return the product of a derivative and the cotangent as a function, ``None`` for zero.

    The second result has the names of the operands and the result that it reads.
    """
    wins, text = text.startswith("~"), text.lstrip("~")
    if text == "0":
        return None, frozenset()
    if not re.search(r"\bg\b", text):
        text = f"safe(g, {text})" if wins else f"g * ({text})"
    reads = frozenset(compile(text, name, "eval").co_names) & {"x", "y", "z", "r"}
    code = compile(f"lambda g, x, y, z, r: {text}", f"<derivative of {name}>", "eval")
    return eval(code, NAMES), reads


class Reduced(Row):
    """A reduction, by its text in :mod:`dparray._graph.derivatives`."""

    def __init__(self, name: str, compute: Callable[..., Any], text: str) -> None:
        super().__init__(name, compute)
        self._code = compile(text, f"<derivative of {name}>", "eval")
        reads = set(self._code.co_names)
        self.reads_operands, self.reads_answer = "x" in reads, "r" in reads
        self.compares = {"x", "r"} <= reads

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        x = operands[0]
        axes = axes_of(options.get("axis", operands[1] if len(operands) > 1 else None), x.ndim)
        count = 1
        for axis in axes:
            count *= x.shape[axis]
        correction = options.get("correction", 0) or options.get("ddof", 0)
        keepdims = options.get("keepdims", False)
        if g.dtype.kind == "c" and self.reads_operands:
            x, answer = conjugate(x), conjugate(answer)
        names = {"g": with_axes(g, axes, x.shape, keepdims), "x": x, "axes": axes}
        names |= {"n": max(count, 1), "m": count - correction}
        if answer is not None:
            names["r"] = with_axes(answer, axes, x.shape, keepdims)
        pulled = eval(self._code, NAMES, names)
        return pulled if pulled.shape == () else dp.broadcast_to(pulled, x.shape)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes that an argument stands for, counted from the front; all for ``None``."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    return tuple([int(a) % ndim for a in axes])


def with_axes(x: Any, axes: Sequence[int], shape: Sequence[int], has_them: bool) -> Any:
    """Return a result with the reduced axes, of length 1; a scalar broadcasts without them."""
    if has_them or not axes or x.shape == ():
        return x
    return dp.reshape(x, tuple([1 if i in axes else n for i, n in enumerate(shape)]))


class Linear(Row):
    """An operation that is linear in its first operand.

    The rule is ``transposed(g, x, *others, **options)``, where ``x`` has shape, dtype and placement
    only. Forward mode is the operation itself.
    """

    reads_operands = False

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        self._check((place,))
        return self._rule(g, *operands, **options)

    def push(self, tangents: Mapping[Any, Any], answer: Any, operands: Any, options: Any) -> Any:
        """Return the tangent of the result from those of operands."""
        self._check(tangents)
        return self.compute(tangents[0], *operands[1:], **options)

    def _check(self, places: Any) -> None:
        other = next((place for place in places if place != 0), None)
        if other is not None:
            raise GradientError(
                f"{self.name}: has a derivative by its first operand only; use "
                "dp.stop_gradient(x) for the others"
            )


class View(Linear):
    """A linear operation whose result is a view of its first operand with the same elements."""

    is_view = True

    def makes_view(self, args: Sequence[Any]) -> bool:
        """Return whether the result of a call is a view."""
        return True

    def write_back(self, base: Any, view: Any, *others: Any, **options: Any) -> Any:
        """Return the new value of the operand after the view was written."""
        return self._rule(view, base, *others, **options)


class ReadOnlyView(View):
    """A view that is not written through: broadcast, parts of complex numbers, diagonals."""

    def write_back(self, base: Any, view: Any, *others: Any, **options: Any) -> Any:
        """Return the new value of the operand after the view was written."""
        raise GradientError(
            f"an in-place statement on the result of {self.name}, a view of a differentiated "
            "array; write to the array itself by an index: x[...] = value"
        )


class Joined(Row):
    """An operation that is linear in each array of a list: ``transposed(i, g, arrays, ...)``."""

    reads_operands = False

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        return self._rule(place[1], g, *operands, **options)

    def push(self, tangents: Mapping[Any, Any], answer: Any, operands: Any, options: Any) -> Any:
        """Return the tangent of the result from those of operands."""
        parts = [
            matched(tangents[0, i], Spec(x)) if (0, i) in tangents else dp.zeros_like(x)
            for i, x in enumerate(operands[0])
        ]
        return self.compute(parts, *operands[1:], **options)


class Bilinear(Row):
    """An operation that is linear in each operand: ``transposed(place, g, *operands)``."""

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        return self._rule(place, g, *operands, **options)

    def push(self, tangents: Mapping[Any, Any], answer: Any, operands: Any, options: Any) -> Any:
        """Return the tangent of the result from those of operands."""
        total = None
        for place, tangent in tangents.items():
            moved = [tangent if i == place else x for i, x in enumerate(operands)]
            total = _plus(total, self.compute(*moved, **options))
        return total


class Pulled(Row):
    """Any other operation: ``pull(place, g, result, *operands, **options)``."""

    reads_answer = True

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        return self._rule(place, g, answer, *operands, **options)
