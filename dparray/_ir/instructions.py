"""Programs: ops that compute typed values, in structured control flow.

An :class:`Op` computes one value from the values of other ops, accesses memory, or is control flow
with bodies of ops. There are no variables: a loop carries the values that it changes, and a value
that differs between paths is a result of the op that joins them. :data:`OPS` has one row for each
kind of op.

Control flow has four constructs. ``if`` has two bodies; ``block``, ``loop`` and ``parallel`` have
one. A body ends with a jump, or with a construct that nothing leaves. ``leave`` continues after an
enclosing construct and gives its results. ``repeat`` starts the next iteration of an enclosing loop
and gives the values that it carries. ``return`` ends the work-item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray._ir.types import Pointer, Type

#: Attributes of ``barrier``, ``fence``, ``group`` and ``atomic``: members of ``MemoryScope`` and
#: ``MemoryOrder`` in lower case.
SCOPES = ("work_item", "sub_group", "work_group", "device", "system")
ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")


class Place(NamedTuple):
    """The statement of a user's function that an op computes a part of."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.function}:{self.line}"


class Parameter(NamedTuple):
    """The attribute of a ``parameter``: the part of a kernel's argument that it is.

    Attributes:
        argument: the name of the kernel's parameter.
        part: ``"value"`` of a scalar; ``"pointer"``, ``"count"``, ``"itemsize"``, ``"shape"`` and
            ``"stride"`` of an array; ``"extent"`` of the launched range of an item, and ``"range"``
            and ``"start"`` of the piece that is launched.
        dimension: of a shape, a stride or a range.
    """

    argument: str
    part: str = "value"
    dimension: int = 0

    def __str__(self) -> str:
        if self.part in ("value", "pointer"):
            return self.argument
        has_dimension = self.part not in ("count", "itemsize")
        return f"{self.argument}.{self.part}{self.dimension if has_dimension else ''}"


class Op:
    """An op of a program, and the value that it computes.

    Attributes:
        name: the kind of the op, a key of :data:`OPS`.
        type: the type of its value; ``None`` without a value.
        operands: the ops whose values it takes.
        attribute: a constant of its kind, such as a number, a name, or the target of a jump.
        bodies: the ops inside, for control flow.
        results: the ``result`` ops of control flow.
        carried: the ``carried`` ops of a loop, whose first values are its operands, and those of
            ``parallel``.
        marks: words that back ends may use and may ignore, such as ``"nonnegative"``.
        place: the statement that it is part of, for errors.
    """

    __slots__ = (
        *("attribute", "bodies", "carried", "marks", "name", "operands", "place", "results"),
        "type",
    )

    def __init__(
        self,
        name: str,
        type: Type | Pointer | None = None,
        operands: Sequence[Op] = (),
        attribute: Any = None,
        place: Place | None = None,
        marks: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.type = type
        self.operands = list(operands)
        self.attribute = attribute
        self.place = place
        self.marks = marks
        self.bodies: list[list[Op]] = []
        self.results: list[Op] = []
        self.carried: list[Op] = []

    def __repr__(self) -> str:
        return f"<{self.name}{'' if self.type is None else f' {self.type}'}>"


class Function:
    """A kernel.

    Attributes:
        name: of the Python function.
        parameters: the ``parameter`` ops, as a launch packs them.
        body: its ops; the last is a ``return``, or a construct that nothing leaves.
        procedures: the functions that a function of the host calls; their parameters are values,
            and pointers to what they return.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters: list[Op] = []
        self.body: list[Op] = []
        self.procedures: list[Function] = []


def walk(body: Sequence[Op]) -> Iterator[Op]:
    """Yield all ops of a body, outer ones first.

    Parameters, constants, and the results and carried values of control flow are in no body.
    """
    for op in body:
        yield op
        for inner in op.bodies:
            yield from walk(inner)


def root(pointer: Op) -> Op:
    """Return the argument or the allocation that an address is in."""
    while pointer.name == "offset":
        pointer = pointer.operands[0]
    return pointer


def constant(value: Any, type: Type) -> Op:
    """Create a constant; integers are wrapped to the type, and a vector repeats the number."""
    if type.kind == "b":
        value = bool(value)
    elif type.is_integer:
        value = int(value) & ((1 << type.bits) - 1)
        if type.kind == "i" and value >> (type.bits - 1):
            value -= 1 << type.bits
    else:
        with np.errstate(over="ignore"):
            value = float(type.dtype.type(value))
    return Op("constant", type, attribute=value)


# --- the table of ops -----------------------------------------------------------------------------


class Rule(NamedTuple):
    """A kind of op.

    Attributes:
        operands: the types of its operands, separated by spaces: ``T`` is any one type, the same
            for all; ``B`` a Boolean or a vector of them, for each lane of ``T``; a name such as
            ``i64``; ``P`` a pointer; ``*`` any number of values of any type. Kinds with a rule of
            their own have a function in :mod:`dparray._ir.verify`.
        result: the type of its value, in the same terms; empty without a value.
        kinds: the kinds of ``T``: ``b``, ``i``, ``u``, ``f``, and ``p`` for pointers.
        summary: its meaning.
        has_effect: it must be executed although nothing uses its value.
        is_cheap: it may be computed where its value is not needed.
    """

    operands: str
    result: str
    kinds: str
    summary: str
    has_effect: bool = False
    is_cheap: bool = False


def _value(operands: str, result: str, kinds: str, summary: str) -> Rule:
    return Rule(operands, result, kinds, summary)


def _cheap(operands: str, result: str, kinds: str, summary: str) -> Rule:
    return Rule(operands, result, kinds, summary, is_cheap=True)


def _effect(operands: str, summary: str, result: str = "") -> Rule:
    return Rule(operands, result, "", summary, has_effect=True)


OPS: dict[str, Rule] = {
    # Values that are in no body.
    "parameter": _value("", "*", "", "A part of an argument; the attribute is a `Parameter`."),
    "constant": _cheap("", "T", "biuf", "The number in the attribute, in each lane."),
    "result": _value("", "*", "", "A value that control flow gives to the ops after it."),
    "carried": _value("", "*", "", "A value that a loop gives to its next iteration."),
    # Arithmetic.
    "add": _cheap("T T", "T", "iuf", "The sum; integers wrap."),
    "sub": _cheap("T T", "T", "iuf", "The difference; integers wrap."),
    "mul": _cheap("T T", "T", "iuf", "The product; integers wrap."),
    "neg": _cheap("T", "T", "iuf", "The negative; integers wrap."),
    "div": _value("T T", "T", "f", "The quotient of floats."),
    "floordiv": _value("T T", "T", "iu", "The quotient rounded down; 0 for a divisor of 0."),
    "mod": _value("T T", "T", "iu", "The remainder of floordiv; 0 for a divisor of 0."),
    "pow": _value("T E", "T", "iu", "The power of 64-bit integers, rounded to 0 if it is below 1."),
    "min": _cheap("T T", "T", "iuf", "The first value if it is less, otherwise the second."),
    "max": _cheap("T T", "T", "iuf", "The first value if it is greater, otherwise the second."),
    # Bits.
    "and": _cheap("T T", "T", "biu", "The bits that are set in both."),
    "or": _cheap("T T", "T", "biu", "The bits that are set in either."),
    "xor": _cheap("T T", "T", "biu", "The bits that differ."),
    "invert": _cheap("T", "T", "iu", "All bits inverted."),
    "not": _cheap("T", "T", "b", "Whether a Boolean is False."),
    "shl": _value("T T", "T", "iu", "A shift to the left; 0 for an amount outside of the width."),
    "shr": _value("T T", "T", "iu", "A shift to the right; for an amount outside, of all bits."),
    # Comparisons. With a NaN, all but `ne` are False.
    "lt": _cheap("T T", "B", "biuf", "Whether the first is less."),
    "le": _cheap("T T", "B", "biuf", "Whether the first is less or equal."),
    "gt": _cheap("T T", "B", "biuf", "Whether the first is greater."),
    "ge": _cheap("T T", "B", "biuf", "Whether the first is greater or equal."),
    "eq": _cheap("T T", "B", "biuf", "Whether both are equal."),
    "ne": _cheap("T T", "B", "biuf", "Whether they differ."),
    # Other values.
    "select": _cheap(
        "F T T", "T", "biufp", "The second operand if the first is True, or the third."
    ),
    "convert": _cheap("*", "*", "", "The number in another type: integers wrap, floats are cut."),
    "bitcast": _cheap("*", "*", "", "The same bits in another type of the same width."),
    "low_bits": _value("W", "i32", "", "The lower half of an integer; optimizers do not widen it."),
    "math": _value("*", "T", "f", "A function of `FUNCTIONS`, named by the attribute."),
    "index": _value("", "i64", "", "An id or a size: the attribute is `(name, dimension)`."),
    "pack": _cheap("*", "*", "", "The vector of the operands."),
    "extract": _cheap("*", "*", "", "The lane of a vector that the attribute or an i64 selects."),
    # Memory.
    "allocate": _value("", "P", "", "Memory of a work-item or a group; the attribute is its size."),
    "new": _effect(
        "*",
        "Memory of the host for N elements, of zeros with that mark. The other operands are "
        "addresses in memory that is still read; other memory of the function is taken again.",
        "P",
    ),
    "offset": _value("P W", "P", "", "An element's address; in bytes if the attribute says so."),
    "address": _value("P", "u64", "", "An address as a number."),
    "load": _value("P", "*", "", "The element, or a vector; the attribute is the alignment."),
    "store": _effect("P *", "Write an element or a vector; the attribute is the alignment."),
    "atomic": _effect("*", "Access an element; the attribute is `(method, scope, orders)`.", "*"),
    # What work-items do together.
    "barrier": _effect("", "Wait for the others; the attribute is `(scope, scope of the fence)`."),
    "fence": _effect("", "Order accesses; the attribute is `(scope, order)`."),
    "group": _effect("*", "A function of a group: `(scope, function, operation)`.", "*"),
    # What the host learns.
    "print": _effect("*", "Print values; the attribute is a format as in C, without lengths."),
    "check": _effect("*", "Report a fault if the first operand is False; the others describe it."),
    # Control flow. `if` takes a Boolean, a loop the first values of what it carries.
    "if": _effect("bool", "Execute the first body, or the second if the operand is False."),
    "block": _effect("", "Execute the body once."),
    "loop": _effect("*", "Execute the body again and again."),
    "parallel": _effect(
        "i64 i64",
        "Execute the body for each part of a range, on threads of the host. The operands are the "
        "length of the range and the number of parts; 0 is one that suits. It carries the number "
        "of a part, its first and its end.",
    ),
    "launch": _effect(
        "*",
        "Run a kernel of the host: its code's address, the extents of its range, and its "
        "arguments. The attribute has the number of extents, and the least sizes of pieces.",
    ),
    "call": _effect("*", "Call the procedure whose number is the attribute, with arguments."),
    "leave": _effect("*", "Continue after the construct in the attribute, with its results."),
    "repeat": _effect("*", "Begin the loop in the attribute again, with what it carries."),
    "return": _effect("", "End the work-item."),
    "stop": _effect("", "End the function of the host for the reason of the attribute's number."),
}

CONTROL = ("if", "block", "loop", "parallel")
JUMPS = ("leave", "repeat", "return", "stop")

#: The ids and sizes of ``index``. Sub-groups have one dimension, 0.
INDICES = (
    *("global_id", "global_size", "local_id", "local_size", "group_id", "group_count"),
    *("sub_group_local_id", "sub_group_size", "sub_group_max_size", "sub_group_id"),
    "sub_group_count",
)

#: The functions of ``math`` and their numbers of operands; the second operand of ldexp is an i32.
FUNCTIONS: dict[str, int] = (
    dict.fromkeys(
        (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh"),
            *("degrees", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "lgamma", "log"),
            *("log10", "log1p", "log2", "radians", "rint", "sin", "sinh", "sqrt", "tan", "tanh"),
            *("tgamma", "trunc"),
        ),
        1,
    )
    | dict.fromkeys(("atan2", "copysign", "fmod", "hypot", "ldexp", "nextafter", "pow"), 2)
    | {"fma": 3}
)

#: The methods of ``atomic``, and the number of values that they take.
ATOMICS: dict[str, int] = {
    "load": 0,
    "store": 1,
    "exchange": 1,
    "compare_exchange": 2,  # the new value, and the one that is expected
    **dict.fromkeys(
        (
            *("fetch_add", "fetch_sub", "fetch_min", "fetch_max"),
            "fetch_and",
            "fetch_or",
            "fetch_xor",
        ),
        1,
    ),
}

#: The functions of ``group``, with their operations. A ``broadcast`` takes a value and a u64 for
#: each dimension of the group, a ``shuffle`` a value and a u32.
GROUP_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "reduce": ("add", "min", "max"),
    "inclusive_scan": ("add", "min", "max"),
    "exclusive_scan": ("add", "min", "max"),
    "broadcast": ("",),
    "shuffle": ("",),
}
