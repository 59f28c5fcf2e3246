"""NumPy's integer semantics in device code, where Numba's host code differs.

Numba computes powers in float64, compares and selects between int64 and uint64 in float64, and
turns a uint64 and a literal into int64. It reads large uint64 values as negative when they are
divided by int64, and leaves shifts by 64 bits or more to the processor.

Loaded by ``_compiler.numba.device_code``; importing it registers most implementations.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from numba.core import ir, types
from numba.core.errors import TypingError
from numba.core.imputils import Registry
from numba.core.lowering import Lower
from numba.core.typing.templates import AttributeTemplate, bound_function, signature

from dparray._compiler.numba.registration import device_overload, implement
from dparray._compiler.numba.target import TypingContext, typing_registry
from dparray._language.intrinsics import integer_power
from dparray.kernel_api import AtomicRef, vec_load, vec_store

_registry = Registry()
_WIDE = (types.int64, types.uint64)
_BITS = 64


def install(target_context: Any) -> None:
    """Register with the target what importing this module has not."""
    target_context.install_registry(_registry)


# --- written numbers ------------------------------------------------------------------------------
# A literal in the kernel becomes uint64 when combined with uint64, if possible, as in NumPy.

_ARITHMETIC = frozenset(
    getattr(operator, prefix + name)
    for name in ("add", "sub", "mul", "floordiv", "mod", "pow")
    for prefix in ("", "i")
) | {pow, operator.and_, operator.iand, operator.or_, operator.ior, operator.xor, operator.ixor}

_POWERS = frozenset((operator.pow, operator.ipow, pow))
#: Functions that return a Python integer, which is an int64.
_TO_PYTHON = frozenset((int, math.floor, math.ceil, math.trunc))


def _is_written(number: Any) -> bool:
    return isinstance(number, types.IntegerLiteral) and number.literal_value >= 0


def _is_negative_literal(number: Any) -> bool:
    return isinstance(number, types.IntegerLiteral) and number.literal_value < 0


def _are_mixed(first: Any, second: Any) -> bool:
    """Return whether one of two types is uint64 and the other a literal."""
    return (first == types.uint64 and _is_written(second)) or (
        second == types.uint64 and _is_written(first)
    )


def _settled_arguments(function: Any, arguments: Any, keywords: Any) -> Any:
    """Return the integers of a call for which Numba would choose another type than NumPy, or none.

    A Boolean takes the type of the other integer, and a literal takes the type of a uint64. The
    bounds of a range that Numba would truncate to 32 bits, or read as unsigned, become int64, and
    so does an integer that a function turns into Python's. A power of an integer by a negative
    literal is Python's float.
    """
    key = getattr(function, "typing_key", None)
    if key in _TO_PYTHON and len(arguments) == 1 and type(arguments[0]) is types.Integer:
        return (types.int64,)
    if key is range:
        kinds = [types.unliteral(each) for each in arguments]
        if not all(isinstance(each, types.Integer | types.Boolean) for each in kinds):
            return arguments
        is_signed = any(getattr(each, "signed", False) for each in kinds)
        if is_signed and any(getattr(each, "signed", True) is False for each in kinds):
            return (types.int64,) * len(kinds)
        return arguments
    if len(arguments) != 2 or key not in _ARITHMETIC:
        return arguments
    whole = types.Integer | types.Boolean
    if key in _POWERS and isinstance(arguments[0], whole) and _is_negative_literal(arguments[1]):
        return types.float64, types.float64
    if _are_mixed(*arguments):
        return types.uint64, types.uint64
    integers = [each for each in arguments if not isinstance(each, types.Boolean)]
    if len(integers) == 1 and isinstance(integers[0], types.Integer):
        wide = types.int64 if integers[0].signed else types.uint64
        return tuple(wide if isinstance(each, types.Boolean) else each for each in arguments)
    return arguments


def _unified_integers(first: Any, second: Any) -> Any:
    """Return the type of a variable that is one integer type or the other.

    Numba's choice is float64 if one is uint64 and the other signed. Here it is int64, like the
    result of their arithmetic. A type that only grows along uint64, int64, float64 also does not
    depend on the order of assignments: a variable that starts with a literal and grows in a loop
    counts as that literal until its other values have types.
    """
    if not isinstance(first, types.Integer) or not isinstance(second, types.Integer):
        return None
    if _are_mixed(first, second):
        return types.uint64
    return types.int64 if _is_mixed(types.unliteral(first), types.unliteral(second)) else None


TypingContext.call_rules.append(_settled_arguments)
TypingContext.unify_rules.append(_unified_integers)


# --- sums and products ----------------------------------------------------------------------------
# Numba tells LLVM that signed integers do not overflow, and LLVM then changes the result of
# overflows. Here they wrap around, as in NumPy. Only arithmetic of indices keeps Numba's promise,
# because it saves checks for negative indices, and no array is that large. (Measured: without it, a
# loop over every n-th element takes twice the time.)

_ARITHMETIC_OF_INDICES = frozenset(
    getattr(operator, prefix + name) for name in ("add", "sub", "mul") for prefix in ("", "i")
)
# Loops over ranges use their ends; all other uses pass the value on.
_PASSING = frozenset(
    {"build_tuple", "phi", "getiter", "iternext", "pair_first", range, min, max, types.NumberClass}
)
_WITH_INDEX = frozenset({AtomicRef, vec_load, vec_store})  # their second argument
_COMPARISONS = frozenset(getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne"))


def _lowered() -> tuple[Any, Any] | None:
    """Return the function that is lowered and its statement, if any."""
    frame: Any = sys._getframe(1)
    while frame.f_code is not Lower.lower_inst.__code__:
        frame = frame.f_back
        if frame is None:
            return None
    return frame.f_locals["self"], frame.f_locals["inst"]


def _is_index() -> bool:
    """Return whether the lowered value is used as an index, directly or after arithmetic."""
    found = _lowered()
    if found is None:
        return False
    lower, statement = found
    target = getattr(statement, "target", None)
    indices = vars(lower.func_ir).setdefault("dparray_indices", None)
    if indices is None:
        indices = lower.func_ir.dparray_indices = _indices_of(lower)
    return isinstance(target, ir.Var) and target.name in indices


class _Uses(NamedTuple):
    """The uses of a variable.

    Attributes:
        makes: the variables assigned from sums, products, ranges and copies of it.
        is_index: whether it is used as an index.
        is_other: whether it has other uses; comparisons do not count.
    """

    makes: set[str]
    is_index: list[bool]
    is_other: list[bool]


def _indices_of(lower: Any) -> set[str]:
    """Return the names of a function's variables that are used only as indices."""
    found: dict[str, _Uses] = {}

    def uses(variable: Any) -> _Uses:
        return found.setdefault(variable.name, _Uses(set(), [], []))

    for block in lower.func_ir.blocks.values():
        for statement in block.body:
            value = getattr(statement, "value", None)
            if isinstance(statement, ir.SetItem):
                uses(statement.index).is_index.append(True)
                others = [statement.target, statement.value]
            elif isinstance(statement, ir.Del):
                continue
            elif isinstance(statement, ir.Assign) and isinstance(value, ir.Var):
                uses(value).makes.add(statement.target.name)
                continue
            elif isinstance(statement, ir.Assign) and isinstance(value, ir.Expr):
                operation = value.fn if value.op in ("binop", "inplace_binop") else value.op
                others = value.list_vars()
                if operation == "call":
                    called = lower.typeof(value.func.name)
                    operation = getattr(called, "typing_key", type(called))
                if operation in _COMPARISONS or operation == "pair_second":
                    continue
                if operation in _WITH_INDEX:
                    named = dict(value.kws)
                    for one in (*value.args[1:2], *(named[key] for key in named if key == "index")):
                        uses(one).is_index.append(True)
                        others.remove(one)
                if operation == "getitem":
                    uses(value.index).is_index.append(True)
                    others = [value.value]
                elif operation in _ARITHMETIC_OF_INDICES | _PASSING:
                    for one in others:
                        uses(one).makes.add(statement.target.name)
                    continue
            else:
                others = statement.list_vars()
            for one in others:
                uses(one).is_other.append(True)
    others_too = _reaching(found, {name for name, each in found.items() if each.is_other})
    indices = _reaching(found, {name for name, each in found.items() if each.is_index})
    return indices - others_too


def _reaching(found: Mapping[str, _Uses], names: set[str]) -> set[str]:
    """Return variables that are, or are computed by sums, products, ranges and copies from,
    ``names``.
    """
    while True:
        more = {name for name, each in found.items() if name not in names and each.makes & names}
        if not more:
            return names
        names = names | more


def _wrapping(instruction: str) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result = signature.return_type
        a, b = (
            context.cast(builder, value, given, result)
            for value, given in zip(arguments, signature.args, strict=True)
        )
        flags = ("nsw",) if _is_index() else ()
        return getattr(builder, instruction)(a, b, flags=flags)

    return generate


for _name in ("add", "sub", "mul"):
    for _operation in (getattr(operator, _name), getattr(operator, f"i{_name}")):
        for _kind in _WIDE:
            _registry.lower(_operation, types.int64, _kind)(_wrapping(_name))
            _registry.lower(_operation, _kind, types.int64)(_wrapping(_name))


# --- powers ---------------------------------------------------------------------------------------


implement(integer_power, integer_power)
_MAY_BE_NEGATIVE = {operator.neg, operator.sub, operator.isub, *_TO_PYTHON, round}


def _refuse_difference(lower: Any, statement: Any) -> None:
    """Reject an exponent that is a difference or a Python integer made of a number.

    If it is negative, Python's power is a float.
    """
    value: Any = getattr(statement, "value", None)
    is_call = getattr(value, "op", "") == "call"
    exponent = value.args[1] if is_call else getattr(value, "rhs", None)
    if not isinstance(exponent, ir.Var):
        return
    definition = lower.func_ir.get_definition(exponent)
    operation = getattr(definition, "op", "")
    if operation == "call":
        made_by = getattr(lower.typeof(definition.func.name), "typing_key", None)
    else:
        is_operation = operation in ("unary", "binop", "inplace_binop")
        made_by = definition.fn if is_operation else None
    if made_by in _MAY_BE_NEGATIVE:
        raise TypingError(
            "the exponent of this power of integers may be negative, and the power then a float: "
            "write float(x) ** k for a float, or x ** max(k, 0) for an integer",
            loc=statement.loc,
        )


def _power(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    result = signature.return_type
    if signature.args[1].signed and (found := _lowered()) is not None:
        _refuse_difference(*found)
    return context.compile_internal(
        builder,
        lambda base, exponent: result(integer_power(result(base), exponent)),
        signature,
        arguments,
    )


for _operation in (operator.pow, operator.ipow, pow):
    _registry.lower(_operation, types.Integer, types.Integer)(_power)
    for _kind in _WIDE:
        for _other in _WIDE:
            _registry.lower(_operation, _kind, _other)(_power)


# --- quotients ------------------------------------------------------------------------------------
# Numba's quotient of the smallest int64 by -1 is 0; NumPy's wraps around to the smallest int64.


def _floored(builder: Any, dividend: Any, divisor: Any) -> tuple[Any, Any]:
    """Return the floored quotient and the remainder of signed integers; 0 and 0 for a division by
    0.
    """
    none = divisor.type(0)
    by_zero = builder.icmp_signed("==", divisor, none)
    by_minus_one = builder.icmp_signed("==", divisor, divisor.type(-1))
    safe = builder.select(builder.or_(by_zero, by_minus_one), divisor.type(1), divisor)
    quotient, rest = builder.sdiv(dividend, safe), builder.srem(dividend, safe)
    is_below = builder.and_(
        builder.icmp_signed("!=", rest, none),
        builder.icmp_signed("<", builder.xor(rest, safe), none),
    )
    quotient = builder.sub(quotient, builder.zext(is_below, quotient.type))
    rest = builder.select(is_below, builder.add(rest, safe), rest)
    quotient = builder.select(by_minus_one, builder.sub(none, dividend), quotient)
    return builder.select(by_zero, none, quotient), rest


def _quotient(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return _floored(builder, *arguments)[0]


def _quotient_and_rest(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return context.make_tuple(builder, signature.return_type, _floored(builder, *arguments))


for _operation in (operator.floordiv, operator.ifloordiv):
    _registry.lower(_operation, types.int64, types.int64)(_quotient)
_registry.lower(divmod, types.int64, types.int64)(_quotient_and_rest)


def _is_mixed(a: Any, b: Any) -> bool:
    """Return whether one is uint64 and the other a signed integer."""
    if not isinstance(a, types.Integer) or not isinstance(b, types.Integer):
        return False
    return bool(a.signed != b.signed and (b if a.signed else a).bitwidth == _BITS)


def _mixed_divmod(a: Any, b: Any) -> Any:
    """Return the floored quotient and the remainder of a uint64 and a signed integer, as int64."""
    wide, signed = types.uint64, types.int64

    def with_signed_first(a: Any, b: Any) -> Any:
        if b == wide(0):
            return signed(0), signed(0)
        if a >= 0:
            return signed(wide(a) // b), signed(wide(a) % b)
        size = wide(0) - wide(a)
        quotient, rest = size // b, size % b
        if rest == wide(0):
            return signed(wide(0) - quotient), signed(0)
        return signed(wide(0) - quotient - wide(1)), signed(b - rest)

    def with_signed_second(a: Any, b: Any) -> Any:
        if b == 0:
            return signed(0), signed(0)
        if b > 0:
            return signed(a // wide(b)), signed(a % wide(b))
        size = wide(0) - wide(b)
        quotient, rest = a // size, a % size
        if rest == wide(0):
            return signed(wide(0) - quotient), signed(0)
        return signed(wide(0) - quotient - wide(1)), signed(rest - size)

    return with_signed_first if a.signed else with_signed_second


def _divmod_of_mixed(a: Any, b: Any) -> Any:
    """Return both results; device code has the overload below."""


device_overload(_divmod_of_mixed)(_mixed_divmod)


def _add_mixed_quotient(operation: Callable[..., Any], index: int) -> None:
    @device_overload(operation)
    def overload_quotient(a: Any, b: Any) -> Any:
        return (lambda a, b: _divmod_of_mixed(a, b)[index]) if _is_mixed(a, b) else None


for _operation, _index in (
    (operator.floordiv, 0),
    (operator.ifloordiv, 0),
    (operator.mod, 1),
    (operator.imod, 1),
):
    _add_mixed_quotient(_operation, _index)


@device_overload(divmod, prefer_literal=True)
def _overload_divmod(a: Any, b: Any) -> Any:
    wide = types.uint64
    if _are_mixed(a, b):
        return lambda a, b: divmod(wide(a), wide(b))
    return _mixed_divmod(a, b) if _is_mixed(types.unliteral(a), types.unliteral(b)) else None


# --- comparisons ----------------------------------------------------------------------------------


def _add_comparison(compare: Any, *, first_negative: bool, second_negative: bool) -> None:
    """Register ``compare`` for a uint64 and a signed integer, which may be negative."""

    @device_overload(compare)
    def overload_comparison(a: Any, b: Any) -> Any:
        if not _is_mixed(a, b):
            return None
        wide = types.uint64
        if a.signed:
            return lambda a, b: first_negative if a < 0 else compare(wide(a), wide(b))
        return lambda a, b: second_negative if b < 0 else compare(wide(a), wide(b))


for _compare, _first_negative, _second_negative in (
    (operator.lt, True, False),
    (operator.le, True, False),
    (operator.gt, False, True),
    (operator.ge, False, True),
    (operator.eq, False, False),
    (operator.ne, True, True),
):
    _add_comparison(_compare, first_negative=_first_negative, second_negative=_second_negative)


def _add_choice(choose: Any, compare: Any, result: Any) -> None:
    """Register ``min`` or ``max`` of a uint64 and a signed integer, as ``result``."""

    @device_overload(choose, prefer_literal=True)
    def overload_choice(a: Any, b: Any) -> Any:
        if not _is_mixed(types.unliteral(a), types.unliteral(b)):
            return None
        kind = types.uint64 if _is_written(a) or _is_written(b) else result
        return lambda a, b: kind(a) if compare(a, b) else kind(b)

    @device_overload(choose, prefer_literal=True)
    def overload_choice_of_several(a: Any, b: Any, c: Any, *others: Any) -> Any:
        kinds = [types.unliteral(each) for each in (a, b, c, *others)]
        integers = types.Integer | types.Boolean
        if types.uint64 not in kinds or not all(isinstance(each, integers) for each in kinds):
            return None
        return lambda a, b, c, *others: choose(choose(a, b), c, *others)


_add_choice(min, operator.le, types.int64)
_add_choice(max, operator.ge, types.uint64)


@device_overload(sum)
def _sum(values: Any) -> Any:
    if not isinstance(values, types.BaseTuple) or not len(values):
        return None
    if len(values) == 1:
        return lambda values: 0 + values[0]
    return lambda values: sum(values[:-1]) + values[-1]


# --- shifts ---------------------------------------------------------------------------------------
# Shifts by 64 bits or more, or by a negative number, lose all bits, as in NumPy.


def _shift(operation: str) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result = signature.return_type
        value = context.cast(builder, arguments[0], signature.args[0], result)
        amount = arguments[1]
        none, most = value.type(0), value.type(_BITS - 1)
        fits = builder.icmp_unsigned("<=", amount, most)
        if operation == "ashr":
            return builder.ashr(value, builder.select(fits, amount, most))
        shifted = getattr(builder, operation)(value, builder.select(fits, amount, none))
        return builder.select(fits, shifted, none)

    return generate


# Numba types the shift count as 64 bits, and the value as its own type.
for _amount in _WIDE:
    for _value in types.integer_domain:
        for _operation in (operator.lshift, operator.ilshift):
            _registry.lower(_operation, _value, _amount)(_shift("shl"))
        for _operation in (operator.rshift, operator.irshift):
            _registry.lower(_operation, _value, _amount)(
                _shift("ashr" if _value.signed else "lshr")
            )


# --- rounding -------------------------------------------------------------------------------------
# Typing sends integers through float64, which holds 53 bits.

_MAX_DIGITS = 18  # The largest power of 10 that an int64 can represent.


@device_overload(round)
def _round(x: Any) -> Any:
    return (lambda x: types.int64(x)) if isinstance(x, types.Integer) else None


@device_overload(round)
def _round_to_digits(x: Any, digits: Any) -> Any:
    if not isinstance(x, types.Integer | types.Boolean) or not isinstance(digits, types.Integer):
        return None
    wide = types.int64 if getattr(x, "signed", True) else types.uint64

    def rounded(x: Any, digits: Any) -> Any:
        number, unit = wide(x), wide(1)
        if digits >= 0:
            return number
        if digits < -_MAX_DIGITS:
            return wide(0)
        for _ in range(-digits):
            unit *= wide(10)
        half = unit // wide(2)
        quotient = number // unit
        rest = number - quotient * unit
        if rest > half or (rest == half and quotient % wide(2) == wide(1)):
            quotient += wide(1)
        return quotient * unit

    return rounded


def _whole(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return context.cast(builder, arguments[0], signature.args[0], signature.return_type)


for _function in (math.floor, math.ceil, math.trunc):
    _registry.lower(_function, types.int64)(_whole)


@typing_registry.register_attr
class _Methods(AttributeTemplate):
    key = types.Integer

    @bound_function("integer.item")
    def resolve_item(self, number: Any, arguments: Any, keywords: Any) -> Any:
        return None if arguments or keywords else signature(types.int64)


_registry.lower("integer.item", types.Integer)(_whole)
