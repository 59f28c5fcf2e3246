"""The table of elementwise operations: one row states an operation once.

Functions, operators, docstrings and tests are all derived from it. The ufunc of a row is NumPy's
function with the same meaning: it provides the dtype rule and is the reference in tests; it is
never called on device data.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dparray._graph import complex_functions


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An elementwise operation.

    Attributes:
        name: the public name, which is the Array API's where that has one.
        ufunc: NumPy's ufunc of the same meaning.
        summary: what it computes, for the docstring.
        keeps_integers: integer and boolean inputs pass unchanged (rounding functions).
        aliases: NumPy's further public names.
        expression: the operation in a kernel's Python on operands ``{0}``, ``{1}``, ...; empty if
            only a library computes it. ``{T}`` is the dtype of the operands, or of the parts of
            complex numbers ``{0.real}`` and ``{0.imag}``; ``{bits}`` the width of integers;
            ``{whole}`` the float from which all floats are integers, ``{most}`` the integer below
            the largest logarithm. Lines before the last name (by ``{t}`` and letters) parts of it.
        integer, boolean, complex: the expression for these kinds, if it differs.
        mixed: the expressions for an unsigned with a signed integer and for the reverse, for
            operations on which NumPy has no common dtype.
        kinds: the kinds of operand dtypes (``"i"``, ``"u"``, ``"f"``, ``"c"``, ``"b"``) for which
            the expressions are correct.
        takes_half: whether computing float16 in float32 and rounding afterwards is correct.
        cost: the cost of one element, in additions.
        float_cost: NumPy's cost for one float element, if it has no vector code for floats.
        number_cost: NumPy's cost for one integer element if `x2` is a number, which it divides by
            with a multiplication; a kernel's cost is not lower.
        functions: device functions that the expression calls, by name. Such an operation has no
            precompiled kernel and no host implementation: a generated kernel always computes it.
        is_device_only: the same for an operation whose expression calls no function.
        imaginary: for complex functions of NumPy and dpnp whose special values differ from the
            standard: returns the correct imaginary part, from the module to compute with, the real
            and imaginary part of the operand, and the computed imaginary part.
        comparison: ``"equality"`` or ``"order"`` for comparisons: an operand that no element can
            equal has one result, in both cases for integers outside the dtype.
        strength_reduced: maps a constant last operand to the name of the cheaper operation that
            NumPy uses.
        constants: maps a constant last operand to the expression and the cost on floats with it.
        refusal: returns why a constant last operand is rejected, from the kind of the result and
            the operand; empty if it is accepted.
        host_kinds: whether the ufunc is correct for host operands of these kinds, if the row does
            not imply it.
        made_by: the function of :func:`dparray.elementwise` that made the operation.
        samples: the operands of the example in the docstring, if the default ones are unsuitable.
        host, library: by kind of the result, a composed operation that replaces the function of
            NumPy or dpnp.tensor if that differs: from the module to compute with, its ``where``,
            that function and the operands, in the dtype of the result.
        parameters: the names of the public function's operands, derived from the ufunc.
        arity: the number of operands.
    """

    name: str
    ufunc: np.ufunc
    summary: str
    keeps_integers: bool = False
    aliases: tuple[str, ...] = ()
    expression: str = ""
    kinds: str = "f"
    cost: int = 1
    float_cost: int = 0
    number_cost: int = 0
    integer: str = ""
    boolean: str = ""
    complex: str = ""
    mixed: tuple[str, ...] = ()
    takes_half: bool = True
    functions: Mapping[str, Any] = field(default_factory=dict)
    is_device_only: bool = False
    imaginary: Callable[[Any, Any, Any, Any], Any] | None = None
    comparison: str = ""
    strength_reduced: Mapping[float, str] = field(default_factory=dict)
    constants: Mapping[float, tuple[str, int]] = field(default_factory=dict)
    refusal: Callable[[str, Any], str] | None = None
    host_kinds: Callable[..., bool] | None = None
    made_by: Any = None
    samples: tuple[str, ...] = ()
    host: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    library: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    parameters: tuple[str, ...] = field(init=False)
    arity: int = field(init=False)

    def __post_init__(self) -> None:
        count = int(self.ufunc.nin)
        names = ("x",) if count == 1 else tuple(f"x{position}" for position in range(1, count + 1))
        object.__setattr__(self, "arity", count)
        object.__setattr__(self, "parameters", names)

    def expression_on(self, kinds: str) -> str:
        """Return the expression on operands whose dtypes are of these kinds."""
        if self.mixed and kinds in ("ui", "iu"):
            return self.mixed[kinds == "iu"]
        kind = kinds[-1]
        special = {"b": self.boolean, "i": self.integer, "u": self.integer, "c": self.complex}
        return special.get(kind) or self.expression


def _of_one_element(x: Any) -> Any:
    raise NotImplementedError("the operation has no meaning for one element of its operands")


#: Stands for the ufunc of operations on whole arrays.
NO_UFUNC = np.frompyfunc(_of_one_element, 1, 1)


# Exact for floats below `whole`, above which every float is an integer: adding and subtracting it
# rounds to the nearest integer, ties to even.
_ROUNDED = "{t}r = math.copysign((abs({0}) + {whole}) - {whole}, {0})\n"


# Divisors for which the processor's division would trap are replaced before it.
_DIVISOR = "{t}n = ({1} < 0) & ({1} == {T}(-1))\n{t}d = {T}(1) if {t}n | ({1} == 0) else {1}\n"
# The quotient without the remainder, which division can round up to an integer (1 // 0.1), as in
# NumPy: NaN for infinities, and the sign of the quotient where it is 0.
_FLOORED_QUOTIENT = (
    "{t}m = math.fmod({0}, {1})\n"
    "{t}w = ({t}m != 0) & (({1} < 0) != ({t}m < 0))\n"
    "{t}q = ({0} - {t}m) / {1}\n"
    "{t}q = {t}q - {T}(1) if {t}w else {t}q\n"
    "{t}r = math.copysign((abs({t}q) + {whole}) - {whole}, {t}q)\n"
    "{t}f = {t}r - ({T}(1) if {t}r > {t}q else {T}(0))\n"
    "{t}f = {t}f if abs({t}q) < {whole} else {t}q\n"
    "{t}f = {t}f + {T}(1) if {t}q - {t}f > {T}(0.5) else {t}f\n"
    "{t}f = {t}f if {t}q != 0 else math.copysign({T}(0), {0} / {1})\n"
    "{0} / {1} if {1} == 0 else {t}f"
)
_SHIFT_FITS = "({1} >= 0) & ({1} < {bits})"


#: Separates the real and the imaginary part of a complex result.
PARTED = " + 1j * "
_COMPLEX = "{}" + PARTED + "{}"


_EACH = _COMPLEX.format  # of the texts for the two parts
_PRODUCT = _EACH(
    "{0.real} * {1.real} - {0.imag} * {1.imag}", "{0.real} * {1.imag} + {0.imag} * {1.real}"
)
_IS_TRUE = "(({{{0}.real}} != 0) | ({{{0}.imag}} != 0))"


# The quotient by R. Smith, "Algorithm 116: Complex division" (1962), as in NumPy. Division by zero
# gives the result of dividing both parts by it.
_QUOTIENT = (
    "{t}w = abs({1.real}) >= abs({1.imag})\n"
    "{t}z = ({1.real} == 0) & ({1.imag} == 0)\n"
    "{t}p = {1.real} if {t}w else {1.imag}\n"
    "{t}q = {1.imag} if {t}w else {1.real}\n"
    "{t}r = {t}q / {t}p\n"
    "{t}s = {T}(1) / ({t}p + {t}q * {t}r)\n"
    "{t}x = {0.real} + {0.imag} * {t}r if {t}w else {0.real} * {t}r + {0.imag}\n"
    "{t}y = {0.imag} - {0.real} * {t}r if {t}w else {0.imag} * {t}r - {0.real}\n"
    "{t}x = {0.real} / abs({1.real}) if {t}z else {t}x * {t}s\n"
    "{t}y = {0.imag} / abs({1.real}) if {t}z else {t}y * {t}s\n" + _EACH("{t}x", "{t}y")
)
_RECIPROCAL = (
    "{t}w = abs({0.imag}) <= abs({0.real})\n"
    "{t}p = {0.real} if {t}w else {0.imag}\n"
    "{t}q = {0.imag} if {t}w else {0.real}\n"
    "{t}r = {t}q / {t}p\n"
    "{t}d = {t}p + {t}q * {t}r\n"
    "{t}x = {T}(1) / {t}d\n"
    "{t}y = {t}r / {t}d\n" + _EACH("{t}x if {t}w else {t}y", "-{t}y if {t}w else -{t}x")
)
# If the exponential is too large, it is computed as the square of that of half the number.
_EXPONENTIAL = (
    "{t}w = {0.real} > {most}\n"
    "{t}e = math.exp({T}(0.5) * {0.real} if {t}w else {0.real})\n"
    "{t}f = {t}e if {t}w else {T}(1)\n"
    "{t}n = (abs({0.real}) == math.inf) & ((abs({0.imag}) == math.inf) | ({0.imag} != {0.imag}))\n"
    "{t}x = {t}e if {t}n else {t}e * math.cos({0.imag}) * {t}f\n"
    "{t}y = {T}(0) if {t}n & ({0.real} < 0) else {t}e * math.sin({0.imag}) * {t}f\n"
    + _EACH("{t}x", "{0.imag} if {0.imag} == 0 else {t}y")
)
# Large parts are divided by 4, so that their sum does not overflow.
_SQUARE_ROOT = (
    "{t}l = (abs({0.real}) > {most}) | (abs({0.imag}) > {most})\n"
    "{t}k = {T}(0.25) if {t}l else {T}(1)\n"
    "{t}a = {0.real} * {t}k\n"
    "{t}r = math.sqrt((abs({t}a) + math.hypot({t}a, {0.imag} * {t}k)) * {T}(0.5))\n"
    "{t}r = {t}r + {t}r if {t}l else {t}r\n"
    "{t}h = {0.imag} / ({t}r + {t}r)\n"
    "{t}w = {0.real} >= 0\n"
    "{t}x = {t}r if {t}w else abs({t}h)\n"
    "{t}y = {t}h if {t}w else math.copysign({t}r, {0.imag})\n"
    "{t}i = abs({0.imag}) == math.inf\n"
    "{t}z = {t}i | (({0.real} == 0) & ({0.imag} == 0))\n"
    + _EACH("abs({0.imag}) if {t}z else {t}x", "{0.imag} if {t}z else {t}y")
)
_IS_NAN = "(({0.real} != {0.real}) | ({0.imag} != {0.imag}))"


def _order(symbol: str) -> str:
    """Return NumPy's order of complex numbers: by real part, then by imaginary part."""
    return (
        f"(({{0.real}} {symbol[0]} {{1.real}})"
        " & ({0.imag} == {0.imag}) & ({1.imag} == {1.imag}))"
        f" | (({{0.real}} == {{1.real}}) & ({{0.imag}} {symbol} {{1.imag}}))"
    )


def _mixed(symbol: str) -> tuple[str, str]:
    """Return the comparison of an unsigned and a signed integer, and the reverse."""
    if symbol in ("==", "!="):
        is_negative, join = ("({} >= 0)", "&") if symbol == "==" else ("({} < 0)", "|")
        return (
            f"{is_negative.format('{1}')} {join} ({{0}} {symbol} {{U}}({{1}}))",
            f"{is_negative.format('{0}')} {join} ({{U}}({{0}}) {symbol} {{1}})",
        )
    # A negative number is below all others.
    first, second = ("&", "|") if symbol[0] == "<" else ("|", "&")
    tests = {"&": "({} >= 0)", "|": "({} < 0)"}
    return (
        f"{tests[first].format('{1}')} {first} ({{0}} {symbol} {{U}}({{1}}))",
        f"{tests[second].format('{0}')} {second} ({{U}}({{0}}) {symbol} {{1}})",
    )


#: A square root that is 0 of -0 and infinite of -inf, as powers are.
_ROOT = "{t}r = math.sqrt({0}) + {T}(0)\n{t}r = {T}(math.inf) if {0} == {T}(-math.inf) else {t}r\n"


def _refused_power(kind: str, exponent: Any) -> str:
    if kind != "i" or type(exponent) is not int or exponent >= 0:
        return ""
    return (
        f"an integer to the negative power {exponent} is not an integer; "
        f"convert first: x1.astype('float64')"
    )


def _power_of_integers(xp: Any, where: Any, power: Any, base: Any, exponent: Any) -> Any:
    """Return 1 or -1 for negative exponents of these bases, and 0 for any other, as in kernels.

    NumPy rejects a negative exponent at evaluation, long after the line with the mistake, and dpnp
    returns 0 for any base.
    """
    is_negative = xp.less(exponent, 0)
    exponent = where(is_negative, xp.bitwise_and(exponent, 1), exponent)
    is_zero = xp.logical_and(is_negative, xp.not_equal(xp.abs(base), 1))
    return where(is_zero, 0, power(base, exponent))


def _power_of_complex(xp: Any, where: Any, power: Any, base: Any, exponent: Any) -> Any:
    """Return powers of zero: 1 for power zero, 0 for a positive real part, else NaN in both parts.

    dpnp returns NaN for zero to the power zero, and infinities for negative real parts.
    """
    of_zero = where(xp.greater(exponent.real, 0), 0, complex(math.nan, math.nan))
    raised = where(xp.equal(base, 0), of_zero, power(base, exponent))
    return where(xp.equal(exponent, 0), 1, raised)


def _reciprocal_of_integers(xp: Any, where: Any, reciprocal: Any, x: Any) -> Any:
    """Return 1 and -1 unchanged, 0 for any other integer; dpnp supports floats only."""
    return where(xp.equal(xp.abs(x), 1), x, 0)


def _floored_quotient(xp: Any, where: Any, floor_divide: Any, x1: Any, x2: Any) -> Any:
    """Return NaN for infinities, as in NumPy; float16 is computed in float32 and rounded once."""
    if x1.dtype.char == "e":
        x1, x2 = (xp.astype(x, np.float32) for x in (x1, x2))
    dtype = x1.dtype
    rest = xp.copysign(xp.remainder(xp.abs(x1), xp.abs(x2)), x1)
    is_below = xp.logical_and(xp.not_equal(rest, 0), xp.not_equal(xp.less(x2, 0), xp.less(rest, 0)))
    quotient = (x1 - rest) / x2 - xp.astype(is_below, dtype)
    floored = xp.floor(quotient)
    floored = floored + xp.astype(xp.greater(quotient - floored, 0.5), dtype)
    whole = x1 / x2
    zero = xp.copysign(xp.zeros_like(whole), whole)
    floored = where(xp.equal(quotient, 0), zero, floored)
    return where(xp.equal(x2, 0), whole, floored)


def _shifted_right(xp: Any, where: Any, shift: Any, bits: Any, count: Any) -> Any:
    """Shift all bits out for a negative count; dpnp returns 0 for negative numbers, too."""
    gone = shift(bits, xp.full_like(count, 8 * bits.dtype.itemsize - 1))
    return where(xp.less(count, 0), gone, shift(bits, xp.maximum(count, 0)))


def _expm1_of_complex(xp: Any, where: Any, expm1: Any, x: Any) -> Any:
    """Return the standard's values at infinities and on the real axis, which NumPy lacks."""
    result = where(xp.isfinite(x), expm1(x), xp.exp(x) - 1)
    on_axis = x.imag == 0
    result.real[on_axis] = expm1(x.real[on_axis])
    result.imag[on_axis] = x.imag[on_axis]
    return result


def _imaginary_of_tanh(xp: Any, real: Any, imaginary: Any, result: Any) -> Any:
    """Return a zero with the operand's sign at infinity; C99 uses the sign of `sin(2 y)`."""
    return xp.where(xp.isinf(real), xp.copysign(xp.zeros_like(result), imaginary), result)


def _imaginary_of_acosh(xp: Any, real: Any, imaginary: Any, result: Any) -> Any:
    """Return pi/2 at `0 + NaN j`, where only the real part is NaN."""
    half_pi = xp.full_like(result, math.pi / 2)
    return xp.where(xp.logical_and(real == 0, xp.isnan(imaginary)), half_pi, result)


def _function(
    name: str,
    ufunc: np.ufunc,
    summary: str,
    cost: int = 1,
    of_complex: Callable[..., Any] | None = None,
    **others: Any,
) -> Op:
    """Return the row of a function that a kernel's Python has in ``math``.

    Args:
        name, ufunc, summary, cost: the fields; NumPy's name is an alias if it differs.
        of_complex: replaces a library's function for complex numbers.
        **others: further fields.
    """
    operands = ", ".join(f"{{{position}}}" for position in range(ufunc.nin))
    return Op(
        name,
        ufunc,
        summary,
        aliases=(ufunc.__name__,) if ufunc.__name__ != name else (),
        expression=f"math.{name}({operands})",
        cost=cost,
        library={"c": of_complex} if of_complex is not None else {},
        **others,
    )


def _rounding(name: str, ufunc: np.ufunc, summary: str, text: str) -> Op:
    """Return the row of a rounding function, with the text of the result without its sign."""
    return Op(
        name,
        ufunc,
        summary,
        keeps_integers=True,
        aliases=(ufunc.__name__,) if ufunc.__name__ != name else (),
        expression=_ROUNDED + "math.copysign(" + text + ", {0}) if abs({0}) < {whole} else {0}",
        integer="{0}",
        boolean="{0}",
        kinds="iufb",
        cost=2,
    )


def _comparison(name: str, ufunc: np.ufunc, symbol: str, boolean: str = "") -> Op:
    is_order = symbol not in ("==", "!=")
    parts = f"({{0.real}} {symbol} {{1.real}})", f"({{0.imag}} {symbol} {{1.imag}})"
    return Op(
        name,
        ufunc,
        f"whether `x1 {symbol} x2`",
        expression=f"{{0}} {symbol} {{1}}",
        boolean=boolean,
        kinds="iufcb",
        mixed=_mixed(symbol),
        complex=_order(symbol) if is_order else (" & " if symbol == "==" else " | ").join(parts),
        comparison="order" if is_order else "equality",
    )


def _extreme(name: str, ufunc: np.ufunc, symbol: str, summary: str) -> Op:
    parts = _EACH("{0.real} if {t}w else {1.real}", "{0.imag} if {t}w else {1.imag}")
    return Op(
        name,
        ufunc,
        summary,
        expression=f"{{0}} if {{0}} {symbol} {{1}} or {{0}} != {{0}} else {{1}}",
        kinds="iufcb",
        complex="{t}w = " + _IS_NAN + " | (" + _order(f"{symbol}=") + ")\n" + parts,
    )


def _logical(name: str, ufunc: np.ufunc, symbol: str, summary: str) -> Op:
    return Op(
        name,
        ufunc,
        summary,
        expression=f"({{0}} != 0) {symbol} ({{1}} != 0)",
        boolean=f"{{0}} {symbol} {{1}}",
        kinds="iufcb",
        float_cost=6,
        complex=f"{_IS_TRUE.format(0)} {symbol} {_IS_TRUE.format(1)}",
        samples=("[True, False]", "True"),
    )


def _bitwise(name: str, ufunc: np.ufunc, symbol: str, summary: str) -> Op:
    expression, samples = f"{{0}} {symbol} {{1}}", ("[6, 5]", "3")
    return Op(name, ufunc, summary, expression=expression, kinds="iub", samples=samples)


def _predicate(
    name: str, ufunc: np.ufunc, summary: str, expression: str, complex: str, integer: str
) -> Op:
    return Op(
        name,
        ufunc,
        summary,
        expression=expression,
        integer=integer,
        boolean=integer,
        complex=complex,
        kinds="iufcb",
    )


_ROWS = (
    Op(
        "add",
        np.add,
        "the sum `x1 + x2`",
        expression="{0} + {1}",
        boolean="{0} | {1}",
        kinds="iufcb",
        complex=_EACH("{0.real} + {1.real}", "{0.imag} + {1.imag}"),
    ),
    Op(
        "subtract",
        np.subtract,
        "the difference `x1 - x2`",
        expression="{0} - {1}",
        kinds="iufc",
        complex=_EACH("{0.real} - {1.real}", "{0.imag} - {1.imag}"),
    ),
    Op(
        "multiply",
        np.multiply,
        "the product `x1 * x2`",
        expression="{0} * {1}",
        boolean="{0} & {1}",
        kinds="iufcb",
        complex=_PRODUCT,
    ),
    Op(
        "divide",
        np.divide,
        "the quotient `x1 / x2`",
        aliases=("true_divide",),
        expression="{0} / {1}",
        cost=4,
        kinds="fc",
        complex=_QUOTIENT,
        library={"c": complex_functions.quotient},
    ),
    Op(
        "floor_divide",
        np.floor_divide,
        "the quotient rounded down, `x1 // x2`",
        expression=_FLOORED_QUOTIENT,
        library={"f": _floored_quotient},
        integer=_DIVISOR + "{T}(0) if {1} == 0 else ({T}(-{0}) if {t}n else {T}({0} // {t}d))",
        kinds="iuf",
        cost=8,
        number_cost=2,
    ),
    Op(
        "remainder",
        np.remainder,
        "the remainder with the sign of `x2`, `x1 % x2`",
        aliases=("mod",),
        expression="{t}m = math.fmod({0}, {1})\n"
        "{t}w = {t}m + {1} if ({1} < 0) != ({t}m < 0) else {t}m\n"
        "{t}w if {t}m != 0 else math.copysign({T}(0), {1})",
        integer=_DIVISOR + "{T}(0) if {t}d != {1} else {T}({0} % {t}d)",
        kinds="iuf",
        cost=8,
    ),
    Op(
        "pow",
        np.power,
        "`x1` raised to the power `x2`",
        aliases=("power",),
        expression="math.pow({0}, {1})",
        cost=16,
        kinds="iuf",
        integer="{T}(integer_power({0}, {1}))",
        strength_reduced={2: "square", 0.5: "sqrt", 1: "positive", -1: "reciprocal"},
        constants={
            3: ("{0} ** 3", 2),
            4: ("{0} ** 4", 2),
            1.5: (_ROOT + "abs({0}) * {t}r", 6),
            -0.5: (_ROOT + "{T}(1) / {t}r", 8),
            -1.5: (_ROOT + "{T}(1) / (abs({0}) * {t}r)", 8),
        },
        refusal=_refused_power,
        host_kinds=lambda x1, x2: "b" not in (kinds := x1 + x2) or "f" in kinds or "c" in kinds,
        host={"i": _power_of_integers},
        library={"i": _power_of_integers, "c": _power_of_complex},
    ),
    _function("atan2", np.arctan2, "the angle of the point (`x2`, `x1`) in radians", 12),
    _function("hypot", np.hypot, "the length `sqrt(x1**2 + x2**2)` without overflow", 8),
    _function("copysign", np.copysign, "the magnitude of `x1` with the sign of `x2`", 1),
    _function(
        "nextafter", np.nextafter, "the next value after `x1` towards `x2`", 1, takes_half=False
    ),
    Op(
        "logaddexp",
        np.logaddexp,
        "the logarithm of `exp(x1) + exp(x2)`",
        expression="{t}d = {0} - {1}\n"
        "{0} + {T}(0.6931471805599453) if {0} == {1} else "
        "({0} if {t}d > 0 else {1}) + math.log1p(math.exp(-abs({t}d)))",
        cost=20,
    ),
    _extreme("maximum", np.maximum, ">", "the larger value, or NaN if either is NaN"),
    _extreme("minimum", np.minimum, "<", "the smaller value, or NaN if either is NaN"),
    _comparison("equal", np.equal, "=="),
    _comparison("not_equal", np.not_equal, "!="),
    _comparison("less", np.less, "<", boolean="{1} & (not {0})"),
    _comparison("less_equal", np.less_equal, "<=", boolean="{1} | (not {0})"),
    _comparison("greater", np.greater, ">", boolean="{0} & (not {1})"),
    _comparison("greater_equal", np.greater_equal, ">=", boolean="{0} | (not {1})"),
    _logical("logical_and", np.logical_and, "&", "whether both are true (not zero)"),
    _logical("logical_or", np.logical_or, "|", "whether at least one is true (not zero)"),
    _logical("logical_xor", np.logical_xor, "^", "whether exactly one is true (not zero)"),
    _bitwise("bitwise_and", np.bitwise_and, "&", "the bits set in both, `x1 & x2`"),
    _bitwise("bitwise_or", np.bitwise_or, "|", "the bits set in at least one, `x1 | x2`"),
    _bitwise("bitwise_xor", np.bitwise_xor, "^", "the bits set in exactly one, `x1 ^ x2`"),
    Op(
        "bitwise_left_shift",
        np.left_shift,
        "the bits of `x1` moved to the left, `x1 << x2`",
        aliases=("left_shift",),
        expression="{t}n = {T}({1} & {T}({bits} - 1))\n"
        "{T}({0} << {t}n) if " + _SHIFT_FITS + " else {T}(0)",
        kinds="iu",
        samples=("[6, 5]", "1"),
    ),
    Op(
        "bitwise_right_shift",
        np.right_shift,
        "the bits of `x1` moved to the right, `x1 >> x2`",
        aliases=("right_shift",),
        expression="{t}n = {T}({1} & {T}({bits} - 1))\n"
        "{T}({0} >> {t}n) if " + _SHIFT_FITS + " else ({T}(-1) if {0} < 0 else {T}(0))",
        kinds="iu",
        library={"i": _shifted_right},
        samples=("[6, 5]", "1"),
    ),
    Op(
        "abs",
        np.absolute,
        "the absolute value",
        aliases=("absolute",),
        expression="abs({0})",
        boolean="{0}",
        kinds="iufcb",
        integer="{0} if {0} >= 0 else {T}(-{0})",
        complex="math.hypot({0.real}, {0.imag})",
    ),
    Op(
        "negative",
        np.negative,
        "the negated value, `-x`",
        expression="-{0}",
        kinds="iufc",
        complex=_EACH("-{0.real}", "-{0.imag}"),
    ),
    Op(
        "positive",
        np.positive,
        "a copy, `+x`",
        expression="{0}",
        kinds="iufc",
        complex=_EACH("{0.real}", "{0.imag}"),
    ),
    Op(
        "sign",
        np.sign,
        "the sign: -1, 0 or 1 (`x / abs(x)` for complex numbers)",
        expression="{T}(1) if {0} > 0 else "
        "({T}(-1) if {0} < 0 else ({0} if {0} != {0} else {T}(0)))",
        integer="{T}(1) if {0} > 0 else ({T}(-1) if {0} < 0 else {T}(0))",
        kinds="iuf",
        cost=2,
        library={"c": complex_functions.sign},
    ),
    Op(
        "square",
        np.square,
        "the square `x * x`",
        expression="{0} * {0}",
        kinds="iufc",
        complex=_PRODUCT.replace("{1.", "{0."),
    ),
    _function("sqrt", np.sqrt, "the square root", 4, kinds="fc", complex=_SQUARE_ROOT),
    _function("cbrt", np.cbrt, "the cube root", 20),
    Op(
        "reciprocal",
        np.reciprocal,
        "the reciprocal `1 / x`",
        expression="{T}(1) / {0}",
        cost=4,
        kinds="iufc",
        complex=_RECIPROCAL,
        integer="{0} if ({0} == 1) | (({0} < 0) & ({0} == {T}(-1))) else {T}(0)",
        host_kinds=lambda x: x in "fc",
        host={"i": _reciprocal_of_integers, "u": _reciprocal_of_integers},
        library={
            "i": _reciprocal_of_integers,
            "u": _reciprocal_of_integers,
            "c": complex_functions.reciprocal,
        },
    ),
    _function("exp", np.exp, "the exponential", 8, kinds="fc", complex=_EXPONENTIAL),
    _function("exp2", np.exp2, "two raised to the power `x`", 16),
    _function(
        "expm1", np.expm1, "`exp(x) - 1`, accurate near zero", 10, host={"c": _expm1_of_complex}
    ),
    _function("log", np.log, "the natural logarithm", 8, complex_functions.logarithm(math.e)),
    _function("log2", np.log2, "the logarithm to base 2", 10, complex_functions.logarithm(2)),
    _function("log10", np.log10, "the logarithm to base 10", 10, complex_functions.logarithm(10)),
    _function("log1p", np.log1p, "`log(1 + x)`, accurate near zero", 10),
    _function("sin", np.sin, "the sine of an angle in radians", 10, complex_functions.sin),
    _function("cos", np.cos, "the cosine of an angle in radians", 10, complex_functions.cos),
    _function("tan", np.tan, "the tangent of an angle in radians", 14),
    _function("asin", np.arcsin, "the inverse sine, in radians", 12, complex_functions.asin),
    _function("acos", np.arccos, "the inverse cosine, in radians", 12, complex_functions.acos),
    _function("atan", np.arctan, "the inverse tangent, in radians", 12, complex_functions.atan),
    _function("sinh", np.sinh, "the hyperbolic sine", 12, complex_functions.sinh),
    _function("cosh", np.cosh, "the hyperbolic cosine", 12, complex_functions.cosh),
    _function("tanh", np.tanh, "the hyperbolic tangent", 12, imaginary=_imaginary_of_tanh),
    _function("asinh", np.arcsinh, "the inverse hyperbolic sine", 14, complex_functions.asinh),
    _function(
        "acosh",
        np.arccosh,
        "the inverse hyperbolic cosine",
        14,
        complex_functions.acosh,
        imaginary=_imaginary_of_acosh,
        samples=("[1.5, 2.0]",),
    ),
    _function(
        "atanh",
        np.arctanh,
        "the inverse hyperbolic tangent",
        14,
        complex_functions.atanh,
        samples=("[0.25, 0.5]",),
    ),
    _rounding(
        "floor", np.floor, "the value rounded down", "{t}r - ({T}(1) if {t}r > {0} else {T}(0))"
    ),
    _rounding("ceil", np.ceil, "the value rounded up", "{t}r + ({T}(1) if {t}r < {0} else {T}(0))"),
    _rounding(
        "trunc",
        np.trunc,
        "the value rounded towards zero",
        "abs({t}r) - ({T}(1) if abs({t}r) > abs({0}) else {T}(0))",
    ),
    _rounding("round", np.rint, "the value rounded to the nearest integer, ties to even", "{t}r"),
    _predicate(
        "isfinite",
        np.isfinite,
        "whether the value is neither infinite nor NaN",
        "abs({0}) < math.inf",
        "(abs({0.real}) < math.inf) & (abs({0.imag}) < math.inf)",
        "{0} == {0}",
    ),
    _predicate(
        "isinf",
        np.isinf,
        "whether the value is infinite",
        "abs({0}) == math.inf",
        "(abs({0.real}) == math.inf) | (abs({0.imag}) == math.inf)",
        "{0} != {0}",
    ),
    _predicate("isnan", np.isnan, "whether the value is NaN", "{0} != {0}", _IS_NAN, "{0} != {0}"),
    Op(
        "signbit",
        np.signbit,
        "whether the sign bit is set",
        expression="math.copysign({T}(1), {0}) < 0",
    ),
    Op(
        "logical_not",
        np.logical_not,
        "whether the value is zero",
        expression="{0} == 0",
        boolean="not {0}",
        kinds="iufcb",
        float_cost=4,
        complex="({0.real} == 0) & ({0.imag} == 0)",
        samples=("[True, False]",),
    ),
    Op(
        "bitwise_invert",
        np.invert,
        "the inverted bits, `~x`",
        aliases=("invert", "bitwise_not"),
        expression="~{0}",
        boolean="not {0}",
        kinds="iub",
        samples=("[6, 5]",),
    ),
    Op(
        "conj",
        np.conjugate,
        "the complex conjugate",
        aliases=("conjugate",),
        expression="{0}",
        complex=_EACH("{0.real}", "-{0.imag}"),
        kinds="iufc",
    ),
)

OPS: dict[str, Op] = {op.name: op for op in _ROWS}


@functools.cache
def with_constant(op: Op, constant: float) -> Op:
    """Return an operation whose expression on floats contains its last operand."""
    expression, cost = op.constants[constant]
    of_numpy = op.float_cost or op.cost
    return replace(
        op, expression=expression, cost=cost, float_cost=of_numpy, constants={}, strength_reduced={}
    )


#: Python's operators that have a reflected and an in-place form, with their operations. Powers,
#: which treat squares separately, are excluded.
OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
#: Python's unary operators.
SINGLE_OPERATORS = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}

# Operations without a public function: a conversion (to the node's dtype), and `where`, whose dtype
# rule is promotion.
CONVERT = Op(
    "convert",
    np.positive,
    "the value in another dtype",
    expression="{0}",
    kinds="iufcbV",  # bfloat16, which only conversions support
    complex=_EACH("{0.real}", "{0.imag}"),
)
WHERE = Op(
    "where",
    np.add,
    "`x1` where the condition is true, else `x2`",
    expression="{1} if {0} else {2}",
    kinds="iufcb",
    complex=_EACH("{1.real} if {0} else {2.real}", "{1.imag} if {0} else {2.imag}"),
)
