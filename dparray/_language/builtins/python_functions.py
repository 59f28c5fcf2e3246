"""Python's own functions: conversions, ``min``, ``range``, ``len``, operators as functions."""

from __future__ import annotations

import ast
import math
import operator
from functools import partial
from typing import Any

import numpy as np

from dparray._ir.types import F16, F32, F64, I64, Type
from dparray._language import prelude, promotion
from dparray._language.builtins.mathematics import mathematical
from dparray._language.builtins.registry import HANDLERS, Native, handles, known
from dparray._language.errors import NO_STRINGS, ON_ARRAYS, Refusal
from dparray._language.values import (
    NONE,
    Array,
    Complex,
    Constant,
    Number,
    Range,
    Tuple,
    described,
    is_number,
)

_ZERO = Constant(0)


# --- conversions ----------------------------------------------------------------------------------


def converted(kind: Type, front: Any, node: Any, value: Any = _ZERO) -> Number:
    """Return a number, or the elements of a vector, in a type."""
    if isinstance(value, Complex):
        raise Refusal(f"{kind.name} takes one number, and this is {described(value)}: take .real")
    if kind == F16:
        lanes = front.type_of(value).lanes
        return front.to(front.to(value, F16._replace(lanes=lanes)), F32._replace(lanes=lanes))
    return front.to(value, kind._replace(lanes=front.type_of(value).lanes))


def converted_to_complex(part: Type, front: Any, node: Any, value: Any = _ZERO) -> Complex:
    whole = front.complex(value)
    return Complex(front.to(whole.real, part), front.to(whole.imag, part))


def to_python(front: Any, value: Number) -> Number:
    """Return the Python number of a NumPy number: integers are int64, floats float64."""
    if value.type.is_integer:
        return front.python_integer(value)
    return _float(front, None, value) if front.rules.is_numpy and value.type.is_float else value


@handles(int)
def _int(front: Any, node: Any, value: Any = _ZERO) -> Any:
    if isinstance(value, Constant) and type(value.value) is int:
        return value
    if (
        isinstance(value, Constant)
        and isinstance(value.value, float)
        and math.isfinite(value.value)
    ):
        return Constant(int(value.value))
    if isinstance(value, Complex):
        raise Refusal("int takes one number, and this is complex: take .real", node)
    return front.python_integer(value)


@handles(float)
def _float(front: Any, node: Any, value: Any = Constant(0.0)) -> Any:
    if isinstance(value, Constant) and type(value.value) in (int, float):
        return Constant(float(value.value))
    if isinstance(value, Constant) and isinstance(value.value, str):
        try:
            return Constant(float(value.value))
        except ValueError:
            raise Refusal(f"float({value.value!r}) is not a number", node) from None
    if isinstance(value, Complex):
        raise Refusal("float takes one number, and this is complex: take .real", node)
    return front.python(front.to(value, front.rules.floated(front.type_of(value))))


@handles(bool, operator.truth)
def _bool(front: Any, node: Any, value: Any = Constant(False)) -> Any:
    if isinstance(value, Constant):
        return Constant(bool(value.value))
    return front.python(front.truth(value))


@handles(complex)
def _complex(front: Any, node: Any, real: Any = Constant(0.0), imag: Any = None) -> Complex:
    if imag is None and isinstance(real, Complex):
        real, imag = real.real, real.imag
    imag = Constant(0.0) if imag is None else imag
    if front.rules.is_numpy:
        return Complex(*(front.python(front.to(part, F64)) for part in (real, imag)))
    parts = [front.number(real), front.number(imag)]
    kind = F32 if all(part.type == F32 for part in parts) else F64
    return Complex(*(front.to(part, kind) for part in parts))


@handles(str, repr)
def _str(front: Any, node: Any, value: Any = Constant("")) -> Any:
    raise Refusal(NO_STRINGS, node)


# --- choices --------------------------------------------------------------------------------------


def _extreme(order: type, name: str, front: Any, node: Any, *values: Any) -> Any:
    if not values:
        raise Refusal(f"{name} takes at least one value", node)
    if len(values) == 1:
        if isinstance(values[0], Array):
            raise Refusal(f"{ast.unparse(node)} {ON_ARRAYS}", node)
        values = tuple(front.items_of(values[0], node))
    best = values[0]
    for value in values[1:]:
        best = _better(order, front, node, best, value)
    return best


def _better(order: type, front: Any, node: Any, best: Any, value: Any) -> Any:
    is_min = order is ast.Lt
    if isinstance(best, Constant) and isinstance(value, Constant):
        is_better = value.value < best.value if is_min else value.value > best.value
        return value if is_better else best
    kinds = front.type_of(best), front.type_of(value)
    if max(kind.lanes for kind in kinds) > 1:
        kind = front.common_vector(*kinds)
        return front.made("min" if is_min else "max", kind, value, best)
    weak = front.is_weak(best), front.is_weak(value)
    rules = front.rules
    kind = rules.joined(*kinds, weak) if is_min else rules.maximum(*kinds, weak)
    chosen = front.truth(front.compare(order, value, best, node))
    are_natural = [front.is_natural(each) for each in (best, value)]
    natural = kind.is_integer and (all(are_natural) if is_min else any(are_natural))
    operands = front.to(value, kind).op, front.to(best, kind).op
    op = front.op("select", kind, chosen.op, *operands)
    relies = front.relies(best, value) if natural else frozenset()
    return Number(op, rules.is_numpy and all(weak), natural, relies)


HANDLERS[min] = partial(_extreme, ast.Lt, "min")
HANDLERS[max] = partial(_extreme, ast.Gt, "max")


@handles(abs, operator.abs)
def _abs(front: Any, node: Any, value: Any) -> Any:
    if isinstance(value, Constant) and type(value.value) in (int, float):
        return Constant(abs(value.value), value.is_weak)
    if isinstance(value, Complex):
        return front.call(Constant(math.hypot), [value.real, value.imag], {}, node)
    number = front.number(value)
    magnitude = _magnitude_of(front, number)
    return front.python(magnitude) if front.is_weak(value) else magnitude


def _magnitude_of(front: Any, number: Number) -> Number:
    kind = number.type
    if kind.is_float:
        return mathematical(front, "fabs", front.rules.magnitude(kind), number)
    if kind.kind == "b":
        wide: Number = front.to(number, front.rules.magnitude(kind))
        return wide
    if kind.kind == "u" or (number.is_natural and not number.relies):
        return number
    zero = front.constant(0, kind)
    negative = front.op("lt", kind.flag, number.op, zero)
    magnitude = front.op("select", kind, negative, front.op("neg", kind, number.op), number.op)
    return Number(magnitude)


@handles(round)
def _round(front: Any, node: Any, value: Any, digits: Any = NONE) -> Any:
    kind = front.type_of(value)
    if not kind.is_float:
        if digits == NONE:
            return front.python_integer(value)
        arguments = [front.to(value, promotion.WIDE.widened(kind)), front.to(digits, I64)]
        whole = front.call(Constant(prelude.rounded_integer), arguments, {}, node)
        result = front.to(whole, front.rules.widened(kind, front.is_weak(value)))
        return front.python(result) if front.is_weak(value) else result
    kind = front.rules.rounded(kind)
    number = front.to(value, kind)
    if digits == NONE:
        return front.python_integer(mathematical(front, "rint", kind, number))
    if isinstance(digits, Constant) and digits.value == 0:
        result = mathematical(front, "rint", kind, number)
    else:
        rint = Native(lambda front, node, each: mathematical(front, "rint", kind, each))
        arguments = [number, front.to(digits, I64), Constant(rint)]
        result = front.to(front.call(Constant(prelude.rounded_float), arguments, {}, node), kind)
    return front.python(result) if front.is_weak(value) else result


@handles(divmod)
def _divmod(front: Any, node: Any, a: Any, b: Any) -> Tuple:
    return Tuple((front.binary(ast.FloorDiv, a, b, node), front.binary(ast.Mod, a, b, node)))


@handles(pow)
def _pow(front: Any, node: Any, a: Any, b: Any) -> Any:
    return front.binary(ast.Pow, a, b, node)


# --- items ----------------------------------------------------------------------------------------


@handles(range)
def _range(front: Any, node: Any, first: Any, stop: Any = None, step: Any = None) -> Range:
    given = [each for each in (first, stop, step) if each is not None]
    # The numbers are unsigned if all arguments are, so the others take their type.
    are_unsigned = all(front.type_of(each).kind == "u" for each in given)
    zero, one = (Constant(np.uint64(each) if are_unsigned else each, True) for each in (0, 1))
    step = one if step is None else step
    over = Range(zero, first, step) if stop is None else Range(first, stop, step)
    front.of_range(over)  # which refuses bounds that are no integers
    return over


@handles(len)
def _len(front: Any, node: Any, value: Any) -> Any:
    if isinstance(value, Array):
        if not value.shape:
            raise Refusal("an array without dimensions has no length", node)
        return front.python(value.shape[0])
    if isinstance(value, Number) and value.type.lanes > 1:
        return Constant(value.type.lanes, True)
    if isinstance(value, Constant) and isinstance(value.value, str):
        return Constant(len(value.value), True)
    if isinstance(value, Range):
        front.check_step(value.step, node)
        bounds = [value.first, value.stop, value.step]
        return front.python(front.call(Constant(prelude.range_length), bounds, {}, node))
    return Constant(len(front.items_of(value, node)), True)


@handles(sum)
def _sum(front: Any, node: Any, values: Any, start: Any = Constant(0, True)) -> Any:
    if isinstance(values, Array):
        raise Refusal(f"{ast.unparse(node)} {ON_ARRAYS}", node)
    for item in front.items_of(values, node):
        start = front.binary(ast.Add, start, item, node)
    return start


@handles(any)
def _any(front: Any, node: Any, values: Any) -> Any:
    result: Any = Constant(False)
    for item in front.items_of(values, node):
        result = front.either(result, _bool(front, node, item))
    return front.python(result)


@handles(all)
def _all(front: Any, node: Any, values: Any) -> Any:
    result: Any = Constant(False)
    for item in front.items_of(values, node):
        result = front.either(result, front.unary(ast.Not, _bool(front, node, item), node))
    return front.unary(ast.Not, result, node)


@handles(tuple)
def _tuple(front: Any, node: Any, values: Any = Tuple(())) -> Tuple:
    return Tuple(tuple(front.items_of(values, node)))


@handles(enumerate)
def _enumerate(front: Any, node: Any, values: Any, start: Any = Constant(0)) -> Tuple:
    first = known(start, "the start of enumerate")
    items = enumerate(front.items_of(values, node), first)
    return Tuple(tuple(Tuple((Constant(number, True), item)) for number, item in items))


@handles(zip)
def _zip(front: Any, node: Any, *values: Any, strict: Any = Constant(False)) -> Tuple:
    columns = [front.items_of(each, node) for each in values]
    if known(strict, "strict") and len({len(column) for column in columns}) > 1:
        raise Refusal("zip: the tuples have different lengths", node)
    return Tuple(tuple(Tuple(row) for row in zip(*columns, strict=False)))


@handles(reversed)
def _reversed(front: Any, node: Any, values: Any) -> Tuple:
    return Tuple(tuple(reversed(front.items_of(values, node))))


# --- types ----------------------------------------------------------------------------------------


@handles(isinstance)
def _isinstance(front: Any, node: Any, value: Any, kinds: Any) -> Constant:
    wanted = known(kinds, "the class in isinstance")
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    return Constant(any(issubclass(_class_of(front, value), each) for each in wanted))


@handles(getattr)
def _getattr(front: Any, node: Any, value: Any, name: Any) -> Any:
    return front.member(value, known(name, "the name in getattr"), node, node.args[0])


@handles(type)
def _type(front: Any, node: Any, value: Any) -> Constant:
    return Constant(_class_of(front, value, is_python=False))


def _class_of(front: Any, value: Any, is_python: bool = True) -> type:
    """Return the class of a value as Python would have it."""
    if isinstance(value, Tuple):
        return value.kind or tuple
    if isinstance(value, Complex):
        return complex
    if isinstance(value, Constant) and not is_number(value):
        return type(value.value)
    if not is_number(value):
        raise Refusal(f"the class of {described(value)} is not known in a kernel")
    kind = front.type_of(value)
    python = {"b": bool, "i": int, "u": int, "f": float}[kind.kind]
    return python if is_python else kind.dtype.type


@handles(np.finfo, np.iinfo)
def _limits(front: Any, node: Any, dtype: Any) -> Constant:
    name = "finfo" if front.value(node.func).value is np.finfo else "iinfo"
    kind = front.type_of(dtype).dtype if is_number(dtype) else known(dtype, "the dtype")
    try:
        return Constant(getattr(np, name)(kind))
    except ValueError:
        kinds = "floats" if name == "finfo" else "integers"
        got = np.dtype(kind).name
        raise Refusal(f"np.{name} takes types of {kinds}; got {got}", node) from None


@handles(np.dtype)
def _dtype(front: Any, node: Any, kind: Any) -> Constant:
    return Constant(np.dtype(known(kind, "the dtype")))


# --- operators ------------------------------------------------------------------------------------


def _operators() -> None:
    binary: dict[str, type] = {
        "add": ast.Add,
        "sub": ast.Sub,
        "mul": ast.Mult,
        "truediv": ast.Div,
        "floordiv": ast.FloorDiv,
        "mod": ast.Mod,
        "pow": ast.Pow,
        "and_": ast.BitAnd,
        "or_": ast.BitOr,
        "xor": ast.BitXor,
        "lshift": ast.LShift,
        "rshift": ast.RShift,
    }
    orders: dict[str, type] = {
        "lt": ast.Lt,
        "le": ast.LtE,
        "gt": ast.Gt,
        "ge": ast.GtE,
        "eq": ast.Eq,
        "ne": ast.NotEq,
    }
    unary: dict[str, type] = {
        "neg": ast.USub,
        "pos": ast.UAdd,
        "invert": ast.Invert,
        "not_": ast.Not,
    }
    for name, operation in binary.items():
        HANDLERS[getattr(operator, name)] = partial(_binary, operation)
    for name, operation in orders.items():
        HANDLERS[getattr(operator, name)] = partial(_compared, operation)
    for name, operation in unary.items():
        HANDLERS[getattr(operator, name)] = partial(_unary, operation)


def _binary(operation: type, front: Any, node: Any, a: Any, b: Any) -> Any:
    return front.binary(operation, a, b, node)


def _compared(order: type, front: Any, node: Any, a: Any, b: Any) -> Any:
    return front.compare(order, a, b, node)


def _unary(operation: type, front: Any, node: Any, a: Any) -> Any:
    return front.unary(operation, a, node)


_operators()
