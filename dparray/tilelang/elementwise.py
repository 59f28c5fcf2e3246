"""Operators and functions of whole tensors: their shapes, dtypes and meaning.

Each rule takes the values of a call and emits typed operations between operands of one dtype. Rules
also accept values of which only the text is known, and then check what the text determines.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray.exceptions import TileNameError, TileTypeError
from dparray.tilelang.folding import BIND_TIME_ONLY, COMPARISONS, FOLDS, FoldingError, fold
from dparray.tilelang.tile_syntax import Call
from dparray.tilelang.values import (
    BOOL,
    Builder,
    Constant,
    DType,
    Group,
    Literal,
    Shape,
    Tensor,
    Unknown,
    Value,
    floatx,
)

#: The operands of rules, after unknown inputs and tuples have been handled.
Plain = Constant | Tensor
Rule = Callable[[Builder, Call, Sequence[Any]], Value]

_COMPARED = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    ">": "greater",
    "<=": "less_equal",
    ">=": "greater_equal",
}
_BITWISE = {
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "left_shift",
    ">>": "right_shift",
}
_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
_BINARY = _ARITHMETIC | _COMPARED | _BITWISE
_MATHEMATICS = (
    *("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan"),
    *("floor", "ceil", "round"),
)
_WIDTHS = {"as_float": (16, 32, 64), "as_int": (8, 16, 32, 64), "as_uint": (8, 16, 32, 64)}
PRNG_COLUMNS = 2048


def binary(builder: Builder, call: Call, operands: Sequence[Plain]) -> Tensor:
    """Apply an operator in the common dtype; comparisons return Booleans.

    Raises:
        TileTypeError: an operand of a bitwise operator is a float.
    """
    given = [builder.operand(each, call.position) for each in operands]
    dtype = builder.common([each.dtype for each in given], call.position)
    if call.function in _BITWISE and dtype is not None and dtype.kind == "f":
        raise _no_float(builder, call, dtype)
    shape = builder.broadcast([shape_of(each) for each in given], call.position)
    given = [builder.cast(each, dtype) for each in given]
    result = BOOL if call.function in _COMPARED else dtype
    return builder.emit(_BINARY[call.function], given, shape, result)


def _no_float(builder: Builder, call: Call, dtype: DType) -> TileTypeError:
    return builder.type_error(
        call.position,
        f"{call.function!r} of {dtype}",
        "it takes integers and booleans; convert with as_int(x, 32)",
    )


def invert(builder: Builder, call: Call, operands: Sequence[Plain]) -> Tensor:
    """Apply ``~``: invert the bits, or a Boolean."""
    (given,) = [builder.operand(each, call.position) for each in operands]
    if given.dtype is not None and given.dtype.kind == "f":
        raise _no_float(builder, call, given.dtype)
    return builder.emit("bitwise_invert", [given], shape_of(given), given.dtype)


def negative(builder: Builder, call: Call, operands: Sequence[Plain]) -> Tensor:
    """Apply unary ``-``."""
    (given,) = [builder.operand(each, call.position) for each in operands]
    return builder.emit("negative", [given], shape_of(given), given.dtype)


def choice(builder: Builder, call: Call, operands: Sequence[Plain]) -> Value:
    """Select by ``c ? t : e`` per element, in the common dtype of ``t`` and ``e``."""
    condition, first, second = operands
    given = [builder.operand(each, call.position) for each in (first, second)]
    dtype = builder.common([each.dtype for each in given], call.position)
    shapes = [shape_of(each) for each in given]
    if isinstance(condition, Constant):
        shape = builder.broadcast(shapes, call.position)
        taken = builder.cast(given[0] if condition.value else given[1], dtype)
        return stretched(builder, taken, shape, dtype)
    shape = builder.broadcast([condition.shape, *shapes], call.position)
    given = [builder.cast(each, dtype) for each in given]
    return builder.emit("where", [truth(builder, condition), *given], shape, dtype)


def truth(builder: Builder, value: Tensor | Literal) -> Tensor | Literal:
    """Return whether elements are nonzero."""
    if value.dtype is None or value.dtype == BOOL:
        return value
    zero = Literal(value.dtype.type(0), value.dtype)
    return builder.emit("not_equal", [value, zero], shape_of(value), BOOL)


def stretched(
    builder: Builder, value: Tensor | Literal, shape: Shape | None, dtype: DType | None
) -> Tensor:
    """Return a value as a tensor broadcast to a shape."""
    if isinstance(value, Tensor) and (shape is None or value.shape == shape):
        return value if value.dtype is not None else Tensor(shape, dtype)
    return builder.emit("broadcast_to", [value], shape, dtype)


def extreme(builder: Builder, call: Call, operands: Sequence[Plain]) -> Value:
    """Return ``max(a, b)``, which is ``a < b ? b : a``, or ``min(a, b)``, ``a < b ? a : b``."""
    a, b = operands
    less = binary(builder, _as(call, "<"), (a, b))
    return choice(builder, call, (less, b, a) if call.function == "max" else (less, a, b))


def _as(call: Call, function: str) -> Call:
    return Call(function, call.operands, call.position)


def absolute(builder: Builder, call: Call, operands: Sequence[Plain]) -> Value:
    """Return ``abs(x)``: ``x < 0 ? -x : x``."""
    (given,) = [builder.operand(each, call.position) for each in operands]
    if given.dtype is not None and given.dtype.kind in "bu":
        return identity(builder, call, operands)
    return builder.emit("abs", [given], shape_of(given), given.dtype)


def relu(builder: Builder, call: Call, operands: Sequence[Plain]) -> Value:
    """Return ``relu(x)``: ``x < 0.0 ? 0.0 : x``."""
    (x,) = operands
    less = binary(builder, _as(call, "<"), (x, Constant(0.0, True)))
    return choice(builder, call, (less, Constant(0.0, True), x))


def sigmoid(builder: Builder, call: Call, operands: Sequence[Plain]) -> Value:
    """Return ``sigmoid(x)``: ``1.0 / (1.0 + exp(-x))``."""
    one = Constant(1.0, True)
    opposite = negative(builder, call, operands)
    power = mathematics(builder, _as(call, "exp"), (opposite,))
    return binary(builder, _as(call, "/"), (one, binary(builder, _as(call, "+"), (one, power))))


def reciprocal(builder: Builder, call: Call, operands: Sequence[Plain]) -> Value:
    """Return ``recip(x)``: ``1 / x``."""
    return binary(builder, _as(call, "/"), (Constant(1, False), operands[0]))


def mathematics(builder: Builder, call: Call, operands: Sequence[Plain]) -> Tensor:
    """Apply functions of real numbers; integers are converted to the default float dtype."""
    given = [builder.operand(each, call.position) for each in operands]
    dtype = builder.common([each.dtype for each in given], call.position)
    if dtype is not None and dtype.kind != "f":
        dtype = floatx()
    shape = builder.broadcast([shape_of(each) for each in given], call.position)
    return builder.emit(call.function, [builder.cast(each, dtype) for each in given], shape, dtype)


def identity(builder: Builder, call: Call, operands: Sequence[Plain]) -> Value:
    """Return the operand itself."""
    return operands[0]


def converted(builder: Builder, call: Call, operands: Sequence[Plain]) -> Value:
    """Apply the casts ``as_float``, ``as_int``, ``as_uint``, as in C."""
    widths = _WIDTHS[call.function]
    width = integer(builder, operands[1], call, "the width")
    if width is None:
        return Tensor(shape_of(builder.operand(operands[0], call.position)), None)
    if width not in widths:
        raise builder.type_error(
            call.operands[1].position,
            f"{call.function} to {width} bits",
            f"the width is one of {', '.join(map(str, widths))}",
        )
    dtype = np.dtype(f"{call.function.removeprefix('as_')}{width}")
    value = builder.cast(builder.operand(operands[0], call.position), dtype)
    assert isinstance(value, Tensor)
    return value


def as_bool(builder: Builder, call: Call, operands: Sequence[Plain]) -> Value:
    """Apply ``as_bool(x, 1)``: whether elements are nonzero."""
    value = truth(builder, builder.operand(operands[0], call.position))
    assert isinstance(value, Tensor)
    return value


def integer(builder: Builder, value: Value, call: Call, what: str) -> int | None:
    """Return a constant integer; ``None`` while it is not known.

    Raises:
        TileTypeError: it is a tensor or a float.
    """
    number = integer_or_kind(value)
    if not isinstance(number, str):
        return number
    raise builder.type_error(
        call.position,
        f"{what} in {call.function} is {number}",
        "it is an integer made of literals and sizes",
    )


def integer_or_kind(value: Value) -> int | str | None:
    """Return a constant integer, ``None`` while it is not known, or the kind of another value."""
    if isinstance(value, Constant) and not value.is_float:
        return None if value.value is None else int(value.value)
    kinds = {Unknown: None, Constant: "a float", Group: "a tuple", Tensor: "a tensor"}
    return kinds[type(value)]


def sizes_of(builder: Builder, call: Call, values: Sequence[Value]) -> Shape:
    """Return constant integers that are sizes.

    Raises:
        TileShapeError: one is negative.
    """
    sizes = [integer(builder, each, call, "a size") for each in values]
    for size in sizes:
        if size is not None and size < 0:
            raise builder.shape_error(call.position, f"the size {size}", "sizes are 0 or more")
    return tuple(sizes)


def shape_of(value: Tensor | Literal) -> Shape | None:
    """Return the shape of an operand."""
    return value.shape if isinstance(value, Tensor) else ()


# -- the table -------------------------------------------------------------------------------------


class Function(NamedTuple):
    """A function: its number of arguments, and its rule.

    Attributes:
        tensors: the positions of tensor arguments if others are constants.
    """

    least: int
    most: int
    rule: Rule
    tensors: int = 9


FUNCTIONS: dict[str, Function] = {
    **{sign: Function(2, 2, binary) for sign in _BINARY},
    **{name: Function(1, 1, mathematics) for name in _MATHEMATICS},
    "~": Function(1, 1, invert),
    "?": Function(3, 3, choice),
    "cond": Function(3, 3, choice),
    "neg": Function(1, 1, negative),
    "pow": Function(2, 2, mathematics),
    "abs": Function(1, 1, absolute),
    "max": Function(2, 2, extreme),
    "min": Function(2, 2, extreme),
    "relu": Function(1, 1, relu),
    "sigmoid": Function(1, 1, sigmoid),
    "recip": Function(1, 1, reciprocal),
    "ident": Function(1, 1, identity),
    "as_float": Function(2, 2, converted, 1),
    "as_int": Function(2, 2, converted, 1),
    "as_uint": Function(2, 2, converted, 1),
    "as_bool": Function(1, 2, as_bool, 1),
    "reverse_grad": Function(2, 2, identity),
}


def apply(builder: Builder, call: Call, operands: Sequence[Value]) -> Value:
    """Return the value of a function call.

    Raises:
        TileNameError: the function does not exist.
        TileTypeError: the number of arguments, or an argument, is invalid.
    """
    function: Function | None = None
    if call.function.startswith("assert_"):
        least = most = 1
    elif call.function in BIND_TIME_ONLY:
        least = most = 2
    else:
        function = FUNCTIONS.get(call.function)
        if function is None:
            raise _unknown(builder, call)
        least, most = function.least, function.most
    if not least <= len(operands) <= most:
        wanted = f"{least}" if least == most else f"{least} or {most}"
        if most > least + 1:
            wanted = f"{least} or more"
        raise builder.type_error(
            call.position,
            f"{call.function} with {len(operands)} arguments",
            f"it takes {wanted}",
        )
    if call.function in _ON_GROUPS:
        return FUNCTIONS[call.function].rule(builder, call, operands)
    if any(isinstance(each, Group) for each in operands):
        return _mapped(builder, call, operands)
    if all(isinstance(each, Constant) for each in operands):
        return _folded(builder, call, operands)
    if function is None:
        return _refuse_tensor(builder, call, operands)
    if any(isinstance(each, Unknown) for each in operands[: function.tensors]):
        return _of_unknown(builder, call, operands, function)
    return function.rule(builder, call, operands)


def _unknown(builder: Builder, call: Call) -> TileNameError:
    known = sorted(name for name in [*FUNCTIONS, *BIND_TIME_ONLY] if name.isidentifier())
    close = difflib.get_close_matches(call.function.lower(), known, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    return builder.name_error(
        call.position,
        f"there is no function {call.function!r}",
        f"{hint}Names are case-sensitive; the functions are {', '.join(known)} and assert_...",
    )


def _mapped(builder: Builder, call: Call, operands: Sequence[Value]) -> Group:
    counts = {len(each.members) for each in operands if isinstance(each, Group)}
    if len(counts) != 1:
        raise builder.type_error(
            call.position,
            f"{call.function!r} of tuples of {' and '.join(map(str, sorted(counts)))} members",
            "tuples in one expression have equally many members",
        )
    return Group(
        tuple(
            apply(
                builder,
                call,
                [each.members[at] if isinstance(each, Group) else each for each in operands],
            )
            for at in range(counts.pop())
        )
    )


def _folded(builder: Builder, call: Call, operands: Sequence[Any]) -> Constant:
    name = call.function
    if name not in FOLDS and not name.startswith("assert_"):
        raise builder.type_error(
            call.position,
            f"{name!r} of numbers",
            f"of sizes and literals alone there are {', '.join(sorted(FOLDS))} and assert_...; "
            "pass the number as a 0-d array, or compute it in Python",
        )
    values = [each.value for each in operands]
    kinds = [each.is_float for each in (operands[1:] if name in ("?", "cond") else operands)]
    is_float: bool | None = (
        True if name == "relu" or True in kinds else None if None in kinds else False
    )
    if name in COMPARISONS:
        is_float = False
    if None in values or is_float is None:
        if name not in ("/", "mod") or is_float is not False or values[1] != 0:
            return Constant(None, is_float)
        values = [1, 0]  # any divisor is zero
    try:
        return Constant(fold(name, values, is_float), is_float)
    except FoldingError as error:
        is_of_shape = name in ("broadcast", "match") or "assert" in name
        make = builder.shape_error if is_of_shape else builder.type_error
        raise make(call.position, error.what, error.cure) from None


def _refuse_tensor(builder: Builder, call: Call, operands: Sequence[Value]) -> Unknown:
    if any(isinstance(each, Tensor) for each in operands):
        raise builder.type_error(
            call.position,
            f"{call.function} of a tensor",
            "it takes sizes and literals, which are known when shapes are",
        )
    return Unknown()


def _of_unknown(
    builder: Builder, call: Call, operands: Sequence[Value], function: Function
) -> Value:
    """Return the value of a function with unknown inputs: a tensor of unknown shape, or unknown."""
    for each in operands[function.tensors :]:
        integer(builder, each, call, "a parameter")
    if any(isinstance(each, Tensor) for each in operands):
        return Tensor(None, None)
    return Unknown()


_ON_GROUPS = frozenset(("tuple", "element", "prng_state", "prng_value"))
