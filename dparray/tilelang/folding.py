"""Arithmetic on sizes and other constants, when shapes are known."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

Number = int | float


class FoldingError(Exception):
    """Raised for a constant expression without a value, with the problem and the fix."""

    def __init__(self, what: str, cure: str) -> None:
        super().__init__(what)
        self.what = what
        self.cure = cure


def quotient(a: Number, b: Number) -> Number:
    """Return ``a / b``: truncated for integers, as in IEEE 754 for floats."""
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise FoldingError("division by zero", "the divisor is not 0")
        size = abs(a) // abs(b)
        return size if (a < 0) == (b < 0) else -size
    if b == 0:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def remainder(a: Number, b: Number) -> Number:
    """Return ``a - b * (a / b)``, with the sign of ``a`` as in C."""
    if isinstance(a, float) or isinstance(b, float):
        raise FoldingError("mod of a float", "mod takes integers")
    if b == 0:
        raise FoldingError("division by zero", "the divisor is not 0")
    return a - b * int(quotient(a, b))


def broadcast(a: Number, b: Number) -> Number:
    """Return the size to which two sizes broadcast."""
    if a != b and 1 not in (a, b):
        raise FoldingError(
            f"broadcast({a}, {b}): these sizes differ and none is 1", "give sizes that fit"
        )
    return b if a == 1 else a


def match(a: Number, b: Number) -> Number:
    """Return ``a`` if it equals ``b``."""
    if a != b:
        raise FoldingError(f"match({a}, {b}): these sizes differ", "give arrays whose sizes agree")
    return a


#: By function or operator; all take numbers and return one.
FOLDS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": quotient,
    "neg": operator.neg,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "?": lambda c, a, b: a if c else b,
    "cond": lambda c, a, b: a if c else b,
    "mod": remainder,
    "max": lambda a, b: b if a < b else a,
    "min": lambda a, b: a if a < b else b,
    "abs": abs,
    "ceil": lambda a: a if isinstance(a, int) or not math.isfinite(a) else float(math.ceil(a)),
    "floor": lambda a: a if isinstance(a, int) or not math.isfinite(a) else float(math.floor(a)),
    "recip": lambda a: quotient(1, a),
    "relu": lambda a: 0.0 if a < 0 else float(a),
    "broadcast": broadcast,
    "match": match,
    "ident": lambda a: a,
}

#: Functions whose results are integers for any operands.
COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))
#: Functions of constants only.
BIND_TIME_ONLY = frozenset(("mod", "broadcast", "match"))


def fold(function: str, values: list[Number], is_float: bool) -> Number:
    """Return the value of a function of constants.

    Raises:
        FoldingError: it has no value.
    """
    if function.startswith("assert_"):
        if not values[0]:
            name = function.removeprefix("assert_")
            raise FoldingError(
                f"the assertion {name!r} fails", "call it with arrays whose sizes fulfil it"
            )
        return values[0]
    try:
        value = FOLDS[function](*values)
    except OverflowError:
        raise FoldingError("a float beyond the largest one", "use smaller numbers") from None
    if is_float and not isinstance(value, float):
        try:
            return float(value)
        except OverflowError:
            raise FoldingError("a float beyond the largest one", "use smaller numbers") from None
    return value
