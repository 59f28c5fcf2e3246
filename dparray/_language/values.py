"""The values that names stand for while a function is translated.

Only a :class:`Number` is computed at run time. Arrays, tuples and complex numbers consist of
numbers, and everything else is known when the kernel is compiled, so the IR has numbers and
pointers alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dparray._ir.instructions import Op
from dparray._ir.types import Pointer, Type
from dparray._language.promotion import NUMPY, Rules

#: Python's and NumPy's classes of numbers that have one part.
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


@dataclass(frozen=True)
class Number:
    """A number or a vector, computed by an op.

    Attributes:
        op: the op.
        is_weak: whether it is a Python number, which takes the type of the other operand; in the
            rules of Numba a literal so far.
        is_natural: whether it is not negative, so that it needs no check as an index.
        relies: the parameters that must not be negative for that.
    """

    op: Op
    is_weak: bool = False
    is_natural: bool = False
    relies: frozenset[Op] = frozenset()

    @property
    def type(self) -> Type:
        assert isinstance(self.op.type, Type)
        return self.op.type


@dataclass(frozen=True)
class Constant:
    """Anything that is known at compile time: a number, a function, a module, a dtype, a string.

    Attributes:
        value: the Python object.
        is_weak: whether it is an integer of the source, which takes the type of a uint64 in the
            rules of Numba.
    """

    value: Any
    is_weak: bool = False


NONE = Constant(None)


@dataclass(frozen=True)
class Tuple:
    """A tuple.

    Attributes:
        items: its items.
        kind: the class of a named tuple.
    """

    items: tuple[Any, ...]
    kind: Any = None


class Vector:
    """The class of the tuples that generated kernels fill, one element after the other."""


@dataclass(frozen=True)
class Array:
    """Elements in memory.

    Attributes:
        pointer: the address of the first element.
        shape: the sizes of its axes.
        strides: in bytes; ``None`` if the elements are in C order.
        is_readonly: whether its elements must not be written.
        is_complex: whether an element is a pair of numbers.
        cut: the slices by which it is a part of another; parts that are cut alike are the same
            elements, or have none in common.
    """

    pointer: Op
    shape: tuple[Number, ...]
    strides: tuple[Number, ...] | None = None
    is_readonly: bool = False
    is_complex: bool = False
    cut: tuple[Any, ...] = ()

    @property
    def element(self) -> Type:
        assert isinstance(self.pointer.type, Pointer)
        return self.pointer.type.element

    @property
    def space(self) -> int:
        assert isinstance(self.pointer.type, Pointer)
        return self.pointer.type.space

    @property
    def itemsize(self) -> int:
        return self.element.size * (2 if self.is_complex else 1)


@dataclass(frozen=True)
class Elements:
    """An array expression, whose elements are computed where they are read.

    Attributes:
        shape: the sizes of its axes.
        at: returns the element at an index.
        reads: the arrays whose elements it reads.
        even: what holds if it repeats no axis of one element.
        version: how often arrays had been changed when it was written; ``None`` if it is used at
            once.
        birth: the number of the last op before it got a name, where names hold expressions.
    """

    shape: tuple[Any, ...]
    at: Callable[[Sequence[Any]], Any]
    reads: tuple[Array, ...] = ()
    even: tuple[Op, ...] = ()
    version: int | None = None
    birth: int = 0


@dataclass(frozen=True)
class Complex:
    """A complex number."""

    real: Number
    imag: Number


@dataclass(frozen=True)
class Item:
    """A work-item, its group or its sub-group.

    Attributes:
        kind: ``"Item"``, ``"NdItem"``, ``"Group"`` or ``"SubGroup"``.
        dimensions: how many dimensions its range has.
        range: the requested range of an ``Item``.
        offset: where the piece of the range starts.
    """

    kind: str
    dimensions: int
    range: tuple[Number, ...] = ()
    offset: tuple[Number, ...] = ()


@dataclass(frozen=True)
class Reference:
    """An element that several work-items change, or the first of some: an ``AtomicRef``."""

    array: Array
    index: Any
    pointer: Op
    order: int
    scope: int

    @property
    def element(self) -> Type:
        assert isinstance(self.pointer.type, Pointer)
        return self.pointer.type.element


@dataclass(frozen=True)
class Range:
    """A ``range``."""

    first: Any
    stop: Any
    step: Any


@dataclass(frozen=True)
class Shared:
    """The parts of a range, which threads of the host share."""

    total: Number
    parts: Number


@dataclass(frozen=True)
class Slice:
    """A ``slice``, in an index.

    Attributes:
        node: its part of the syntax tree.
    """

    first: Any
    stop: Any
    step: Any
    node: ast.Slice | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Text:
    """A formatted string, which ``print`` takes: strings and values."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Method:
    """A method of a value that is known at run time only."""

    owner: Any
    name: str


@dataclass(frozen=True)
class Lambda:
    """A function that is defined in the kernel, with the frame whose names it sees."""

    node: Any
    frame: Any


@dataclass(frozen=True)
class Conflict:
    """The value of a name whose paths bring values without a common type."""

    text: str


@dataclass(frozen=True)
class Optional:
    """A value that is ``None`` on some paths.

    Attributes:
        value: the value on the other paths.
        is_none: whether it is ``None``.
    """

    value: Any
    is_none: Number


@dataclass(frozen=True)
class Unset:
    """A name that a loop assigns, before it has. Reading it means that the loop carries it.

    Attributes:
        loop: the key of the loop.
        name: the name.
        is_partly: whether some paths have assigned it.
    """

    loop: Any
    name: str
    is_partly: bool = False


@dataclass
class Frame:
    """A function that is being translated.

    Attributes:
        function: the Python function.
        names: the values of its variables now.
        scope: the values of all other names.
        path: the calls that lead to it, which tell its loops from those of other calls.
        returns: the target of ``return``.
        loops: for each loop around, the targets of ``break`` and ``continue``.
        outer: the frame in which it is defined.
        rules: the rules by which the types of two values meet in it.
    """

    function: Any
    names: dict[str, Any]
    scope: Mapping[str, Any]
    path: tuple[Any, ...]
    returns: Any = None
    loops: list[tuple[Target, Target]] = field(default_factory=list)
    outer: Frame | None = None
    rules: Rules = NUMPY


@dataclass
class Exit:
    """A jump, and the values of the names when it is taken."""

    jump: Op
    body: list[Op]
    names: dict[str, Any]
    value: Any = None


@dataclass
class Target:
    """Control flow that is being translated, with the jumps out of it."""

    op: Op
    exits: list[Exit] = field(default_factory=list)


def entries_of(index: Any) -> tuple[Any, ...]:
    """Return the entries of an index, one for each axis."""
    return index.items if isinstance(index, Tuple) else (index,)


def is_number(value: Any) -> bool:
    """Return whether a value is a number with one part, at compile time or at run time."""
    if type(value) is Number:
        return True
    return isinstance(value, Constant) and isinstance(value.value, NUMBERS)


def are_same(first: Constant, second: Any) -> bool:
    """Return whether two values are the same constant."""
    if not isinstance(second, Constant):
        return False
    a, b = first.value, second.value
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, np.ndarray):
        return False
    return repr(a) == repr(b)


def are_tuples(values: Sequence[Any]) -> bool:
    """Return whether values are tuples of one length and class."""
    if not all(isinstance(value, Tuple) for value in values):
        return False
    return len({(len(value.items), value.kind) for value in values}) == 1


def are_arrays(values: Sequence[Any]) -> bool:
    """Return whether values are arrays of one type and number of dimensions."""
    if not all(isinstance(value, Array) for value in values):
        return False
    kinds = {(value.pointer.type, len(value.shape), value.is_complex) for value in values}
    return len(kinds) == 1


def described(value: Any) -> str:
    """Return what a value is, for errors."""
    if isinstance(value, Number):
        return type_name(value.type)
    if isinstance(value, Constant):
        known = value.value
        if isinstance(known, NUMBERS) or known is None:
            return repr(known)
        return str(getattr(known, "__name__", type(known).__name__))
    if isinstance(value, Array):
        return array_name(value)
    if isinstance(value, Complex):
        return f"complex{2 * value.real.type.bits}"
    if isinstance(value, Item):
        return value.kind
    if isinstance(value, Tuple):
        kind = value.kind.__name__ if value.kind else "Tuple"
        return f"{kind}({', '.join(map(described, value.items))})"
    if isinstance(value, Optional):
        return f"{described(value.value)} or None"
    if isinstance(value, Elements):
        return f"an array of {len(value.shape)} dimensions"
    if isinstance(value, Reference):
        return "AtomicRef"
    return type(value).__name__.lower()


def type_name(kind: Type) -> str:
    """Return NumPy's name of a type; a vector is ``float32x4``."""
    return kind.name if kind.lanes == 1 else f"{kind.name}x{kind.lanes}"


def array_name(array: Array) -> str:
    """Return an array as messages show it: ``float64[1-D, C]``."""
    kind = f"complex{2 * array.element.bits}" if array.is_complex else array.element.name
    order = "C" if array.strides is None else "A"
    return f"{kind}[{len(array.shape)}-D, {order}]"
