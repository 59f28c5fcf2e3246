"""The functions of ``math`` and ``cmath``. ``math.floor`` of a float is a float."""

from __future__ import annotations

import ast
import cmath
import math
from functools import partial
from typing import Any

from dparray._ir.types import F32, F64, I32, Type
from dparray._language import complex_functions
from dparray._language.builtins.registry import HANDLERS, handles
from dparray._language.errors import NOT_AN_ELEMENT, Refusal
from dparray._language.values import NONE, Array, Complex, Constant, Number, Tuple, array_name

_UNARY = (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 fabs lgamma log log10 "
    "log1p log2 sin sinh sqrt tan tanh degrees radians"
)
_BINARY = "atan2 copysign fmod hypot nextafter pow"


def mathematical(front: Any, name: str, kind: Type, *values: Any) -> Number:
    """Return a function of ``math`` of numbers, or of the elements of vectors, in a type."""
    numbers = [front.to(value, kind) for value in values]
    if kind.lanes == 1:
        return Number(front.op("math", kind, *(each.op for each in numbers), attribute=name))
    lanes = []
    for lane in range(kind.lanes):
        parts = [front.lane(number, lane).op for number in numbers]
        lanes.append(front.op("math", kind.scalar, *parts, attribute=name))
    return Number(front.op("pack", kind, *lanes))


def _checked(name: str, node: Any, values: Any) -> None:
    for value in values:
        if isinstance(value, Array):
            raise Refusal(f"an operand of {name} is {array_name(value)}, {NOT_AN_ELEMENT}", node)
        if isinstance(value, Complex):
            raise Refusal(f"math.{name} takes one number: use cmath.{name} for complex ones", node)


def _function(name: str, count: int, front: Any, node: Any, *values: Any) -> Any:
    if len(values) != count:
        raise Refusal(
            f"math.{name} takes {count} argument{'s' * (count > 1)}; got {len(values)}", node
        )
    _checked(name, node, values)
    if all(isinstance(value, Constant) and type(value.value) in (int, float) for value in values):
        folded = _folded(name, *(value.value for value in values))
        if folded is not None:
            return Constant(folded)
    kinds = [front.type_of(value) for value in values]
    if max(kind.lanes for kind in kinds) > 1:
        kind = kinds[0] if count == 1 else front.common_vector(*kinds)
        kind = kind if kind.is_float else F64._replace(lanes=kind.lanes)
    else:
        weak = [front.is_weak(value) for value in values]
        kind = front.rules.mathematics(*kinds, weak=(weak[0], weak[-1]))
    result = mathematical(front, _IR_NAMES.get(name, name), kind, *values)
    return front.python(result) if kind == F64 else result


#: Functions whose result is exact, so that it is the same on every device.
_EXACT = frozenset({"sqrt", "fabs", "copysign"})
_IR_NAMES = {"gamma": "tgamma"}


def _folded(name: str, *values: float) -> float | None:
    if name not in _EXACT:
        return None
    try:
        result = getattr(math, name)(*values)
    except (ValueError, OverflowError):
        return None
    return float(result)


for _name in [*_UNARY.split(), "gamma"]:
    if hasattr(math, _name):  # cbrt and exp2 need Python 3.11
        HANDLERS[getattr(math, _name)] = partial(_function, _name, 1)
for _name in _BINARY.split():
    HANDLERS[getattr(math, _name)] = partial(_function, _name, 2)


@handles(math.log)
def _log(front: Any, node: Any, value: Any, base: Any = NONE) -> Any:
    logarithm = _function("log", 1, front, node, value)
    if base == NONE:
        return logarithm
    return front.binary(ast.Div, logarithm, _function("log", 1, front, node, base), node)


def _rounding(name: str, front: Any, node: Any, value: Any) -> Number:
    _checked(name, node, [value])
    kind = front.type_of(value)
    if kind.is_float:
        return mathematical(
            front, name, F32._replace(lanes=kind.lanes) if kind.bits < 32 else kind, value
        )
    return front.python_integer(value)


for _name in ("ceil", "floor", "trunc"):
    HANDLERS[getattr(math, _name)] = partial(_rounding, _name)


@handles(math.ldexp)
def _ldexp(front: Any, node: Any, value: Any, exponent: Any) -> Number:
    _checked("ldexp", node, [value, exponent])
    if front.type_of(exponent).is_float:
        raise Refusal("math.ldexp takes an integer as its exponent: convert it with int(...)", node)
    kind = front.rules.mathematics(front.type_of(value), weak=(front.is_weak(value), False))
    operands = front.to(value, kind).op, front.to(exponent, I32).op
    result = Number(front.op("math", kind, *operands, attribute="ldexp"))
    return front.python(result) if kind == F64 else result


@handles(math.isnan)
def _isnan(front: Any, node: Any, value: Any) -> Any:
    _checked("isnan", node, [value])
    number = front.number(value)
    if not number.type.is_float:
        return Constant(False)
    return front.python(Number(front.op("ne", number.type.flag, number.op, number.op)))


@handles(math.isinf)
def _isinf(front: Any, node: Any, value: Any) -> Any:
    return _magnitude("isinf", front, node, value, "eq", False)


@handles(math.isfinite)
def _isfinite(front: Any, node: Any, value: Any) -> Any:
    return _magnitude("isfinite", front, node, value, "lt", True)


def _magnitude(name: str, front: Any, node: Any, value: Any, order: str, otherwise: bool) -> Any:
    _checked(name, node, [value])
    number = front.number(value)
    kind = number.type
    if not kind.is_float:
        return Constant(otherwise)
    size = mathematical(front, "fabs", kind, number)
    infinity = front.constant(math.inf, kind)
    return front.python(Number(front.op(order, kind.flag, size.op, infinity)))


@handles(math.prod)
def _prod(front: Any, node: Any, values: Any, *, start: Any = Constant(1, True)) -> Any:
    for item in front.items_of(values, node):
        start = front.binary(ast.Mult, start, item, node)
    return start


# --- complex numbers ------------------------------------------------------------------------------

_COMPLEX = "exp log log10 sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh"


def _complex_function(function: Any, front: Any, node: Any, value: Any) -> Complex:
    _check_one(function.__name__, node, value)
    whole = front.complex(value)
    return _parts(front, node, function, whole.real, whole.imag)


def _check_one(name: str, node: Any, value: Any) -> None:
    if isinstance(value, Array):
        raise Refusal(f"an operand of {name} is {array_name(value)}, {NOT_AN_ELEMENT}", node)


def _parts(front: Any, node: Any, function: Any, a: Any, b: Any) -> Complex:
    return Complex(*front.call(Constant(function), [a, b], {}, node).items)


for _name in _COMPLEX.split():
    HANDLERS[getattr(cmath, _name)] = partial(_complex_function, getattr(complex_functions, _name))


@handles(cmath.phase)
def _phase(front: Any, node: Any, value: Any) -> Number:
    _check_one("phase", node, value)
    whole = front.complex(value)
    return mathematical(front, "atan2", whole.real.type, whole.imag, whole.real)


@handles(cmath.polar)
def _polar(front: Any, node: Any, value: Any) -> Tuple:
    size = front.call(Constant(abs), [front.complex(value)], {}, node)
    return Tuple((size, _phase(front, node, value)))


@handles(cmath.rect)
def _rect(front: Any, node: Any, size: Any, turn: Any) -> Complex:
    weak = front.is_weak(size), front.is_weak(turn)
    kind = front.rules.mathematics(front.type_of(size), front.type_of(turn), weak)
    operands = front.to(size, kind), front.to(turn, kind)
    return _parts(front, node, complex_functions.rect, *operands)


def _any_part(function: Any, operation: type, front: Any, node: Any, value: Any) -> Any:
    """Return whether a condition holds for one of the parts, or for both."""
    whole = front.complex(value)
    real, imag = (front.truth(function(front, node, part)) for part in (whole.real, whole.imag))
    return front.binary(operation, real, imag, node)


HANDLERS[cmath.isnan] = partial(_any_part, _isnan, ast.BitOr)
HANDLERS[cmath.isinf] = partial(_any_part, _isinf, ast.BitOr)
HANDLERS[cmath.isfinite] = partial(_any_part, _isfinite, ast.BitAnd)
