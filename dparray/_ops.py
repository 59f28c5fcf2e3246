"""The table of elementwise operations: one row states an operation once.

Functions, operators, docstrings and tests are all made from it. The ufunc of a row is NumPy's
function of the same meaning: it gives the dtype rule and is the reference in tests; it is never
called on device data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An elementwise operation.

    Attributes:
        name: the public name, which is the Array API's where that has one.
        ufunc: NumPy's ufunc of the same meaning.
        summary: what it computes, for the docstring.
        keeps_integers: integer and boolean inputs pass unchanged (rounding functions).
        aliases: NumPy's further public names.
        expression: the operation in a kernel's Python on operands ``{0}``, ``{1}``, ...; empty
            where only a library computes it. ``{T}`` is the operands' dtype, ``{bits}`` its width,
            ``{whole}`` the float from which on all floats are integers. Lines before the last
            give names (``{t}`` and letters) to parts of it.
        integer, boolean: the expression on integers and on booleans, where it is another.
        kinds: the kinds of operand dtypes (``"i"``, ``"u"``, ``"f"``, ``"b"``) for which the
            expressions are right.
        weight: the cost of one element, in additions.
        imaginary: where NumPy's and dpnp's complex function has other special values than the
            standard: the right imaginary part, from the module to compute with, the operand's real
            and imaginary part, and the imaginary part that was found.
        parameters: the names of the public function's operands; follows from the ufunc.
        arity: how many there are.
    """

    name: str
    ufunc: np.ufunc
    summary: str
    keeps_integers: bool = False
    aliases: tuple[str, ...] = ()
    expression: str = ""
    kinds: str = "f"
    weight: int = 1
    integer: str = ""
    boolean: str = ""
    imaginary: Callable[[Any, Any, Any, Any], Any] | None = None
    parameters: tuple[str, ...] = field(init=False)
    arity: int = field(init=False)

    def __post_init__(self) -> None:
        count = int(self.ufunc.nin)
        names = ("x",) if count == 1 else tuple(f"x{place}" for place in range(1, count + 1))
        object.__setattr__(self, "arity", count)
        object.__setattr__(self, "parameters", names)

    def expression_on(self, kind: str) -> str:
        """The expression on operands whose dtype is of a kind."""
        special = self.boolean if kind == "b" else self.integer if kind in "iu" else ""
        return special or self.expression


# Exact for floats below `whole`, above which every float is an integer: adding and subtracting it
# rounds to the nearest integer, halves to even.
_ROUNDED = "{t}r = math.copysign((abs({0}) + {whole}) - {whole}, {0})\n"


def _rounding(text: str) -> str:
    return _ROUNDED + "math.copysign(" + text + ", {0}) if abs({0}) < {whole} else {0}"


# Divisors for which the processor's division would trap are replaced before it.
_DIVISOR = "{t}n = ({1} < 0) & ({1} == {T}(-1))\n{t}d = {T}(1) if {t}n | ({1} == 0) else {1}\n"
_SHIFT_FITS = "({1} >= 0) & ({1} < {bits})"


def _imaginary_of_tanh(xp: Any, real: Any, imaginary: Any, found: Any) -> Any:
    """A zero with the operand's sign beside +-1 at infinity; C99 gives it that of `sin(2 y)`."""
    return xp.where(xp.isinf(real), xp.copysign(xp.zeros_like(found), imaginary), found)


def _imaginary_of_acosh(xp: Any, real: Any, imaginary: Any, found: Any) -> Any:
    """Half pi at `0 + NaN j`, where the real part alone is NaN."""
    half_pi = xp.full_like(found, math.pi / 2)
    return xp.where(xp.logical_and(real == 0, xp.isnan(imaginary)), half_pi, found)


_ROWS = (
    Op(
        "add",
        np.add,
        "the sum `x1 + x2`",
        expression="{0} + {1}",
        boolean="{0} | {1}",
        kinds="iufb",
    ),
    Op("subtract", np.subtract, "the difference `x1 - x2`", expression="{0} - {1}", kinds="iuf"),
    Op(
        "multiply",
        np.multiply,
        "the product `x1 * x2`",
        expression="{0} * {1}",
        boolean="{0} & {1}",
        kinds="iufb",
    ),
    Op(
        "divide",
        np.divide,
        "the quotient `x1 / x2`",
        aliases=("true_divide",),
        expression="{0} / {1}",
        weight=4,
    ),
    Op(
        "floor_divide",
        np.floor_divide,
        "the quotient rounded down, `x1 // x2`",
        expression=_DIVISOR + "{T}(0) if {1} == 0 else ({T}(-{0}) if {t}n else {T}({0} // {t}d))",
        kinds="iu",  # of floats it is made of other operations
        weight=8,
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
        weight=8,
    ),
    Op(
        "pow",
        np.power,
        "`x1` raised to the power `x2`",
        aliases=("power",),
        expression="math.pow({0}, {1})",
        weight=16,
    ),
    Op(
        "atan2",
        np.arctan2,
        "the angle of the point (`x2`, `x1`) in radians",
        aliases=("arctan2",),
        expression="math.atan2({0}, {1})",
        weight=12,
    ),
    Op(
        "hypot",
        np.hypot,
        "the length `sqrt(x1**2 + x2**2)` without overflow",
        expression="math.hypot({0}, {1})",
        weight=8,
    ),
    Op(
        "copysign",
        np.copysign,
        "the magnitude of `x1` with the sign of `x2`",
        expression="math.copysign({0}, {1})",
    ),
    Op("nextafter", np.nextafter, "the next value after `x1` towards `x2`"),
    Op(
        "logaddexp",
        np.logaddexp,
        "the logarithm of `exp(x1) + exp(x2)`",
        expression="{t}d = {0} - {1}\n"
        "{0} + {T}(0.6931471805599453) if {0} == {1} else "
        "({0} if {t}d > 0 else {1}) + math.log1p(math.exp(-abs({t}d)))",
        weight=20,
    ),
    Op(
        "maximum",
        np.maximum,
        "the larger of the two; NaN if one of them is",
        expression="{0} if {0} > {1} or {0} != {0} else {1}",
        kinds="iufb",
    ),
    Op(
        "minimum",
        np.minimum,
        "the smaller of the two; NaN if one of them is",
        expression="{0} if {0} < {1} or {0} != {0} else {1}",
        kinds="iufb",
    ),
    Op("equal", np.equal, "whether `x1 == x2`", expression="{0} == {1}", kinds="iufb"),
    Op("not_equal", np.not_equal, "whether `x1 != x2`", expression="{0} != {1}", kinds="iufb"),
    Op("less", np.less, "whether `x1 < x2`", expression="{0} < {1}", kinds="iuf"),
    Op("less_equal", np.less_equal, "whether `x1 <= x2`", expression="{0} <= {1}", kinds="iuf"),
    Op("greater", np.greater, "whether `x1 > x2`", expression="{0} > {1}", kinds="iuf"),
    Op(
        "greater_equal",
        np.greater_equal,
        "whether `x1 >= x2`",
        expression="{0} >= {1}",
        kinds="iuf",
    ),
    Op(
        "logical_and",
        np.logical_and,
        "whether both are true (not zero)",
        expression="({0} != 0) & ({1} != 0)",
        boolean="{0} & {1}",
        kinds="iufb",
    ),
    Op(
        "logical_or",
        np.logical_or,
        "whether one of the two is true (not zero)",
        expression="({0} != 0) | ({1} != 0)",
        boolean="{0} | {1}",
        kinds="iufb",
    ),
    Op(
        "logical_xor",
        np.logical_xor,
        "whether exactly one of the two is true (not zero)",
        expression="({0} != 0) ^ ({1} != 0)",
        boolean="{0} ^ {1}",
        kinds="iufb",
    ),
    Op(
        "bitwise_and",
        np.bitwise_and,
        "the bits set in both, `x1 & x2`",
        expression="{0} & {1}",
        kinds="iub",
    ),
    Op(
        "bitwise_or",
        np.bitwise_or,
        "the bits set in one of the two, `x1 | x2`",
        expression="{0} | {1}",
        kinds="iub",
    ),
    Op(
        "bitwise_xor",
        np.bitwise_xor,
        "the bits set in exactly one of the two, `x1 ^ x2`",
        expression="{0} ^ {1}",
        kinds="iub",
    ),
    Op(
        "bitwise_left_shift",
        np.left_shift,
        "the bits of `x1` moved to the left, `x1 << x2`",
        aliases=("left_shift",),
        expression="{t}n = {T}({1} & {T}({bits} - 1))\n"
        "{T}({0} << {t}n) if " + _SHIFT_FITS + " else {T}(0)",
        kinds="iu",
    ),
    Op(
        "bitwise_right_shift",
        np.right_shift,
        "the bits of `x1` moved to the right, `x1 >> x2`",
        aliases=("right_shift",),
        expression="{t}n = {T}({1} & {T}({bits} - 1))\n"
        "{T}({0} >> {t}n) if " + _SHIFT_FITS + " else ({T}(-1) if {0} < 0 else {T}(0))",
        kinds="iu",
    ),
    Op(
        "abs",
        np.absolute,
        "the absolute value",
        aliases=("absolute",),
        expression="abs({0})",
        boolean="{0}",
        kinds="ifb",
    ),
    Op("negative", np.negative, "the negated value, `-x`", expression="-{0}", kinds="iuf"),
    Op(
        "positive",
        np.positive,
        "the value itself, `+x`, in a new array",
        expression="{0}",
        kinds="iuf",
    ),
    Op(
        "sign",
        np.sign,
        "the sign: -1, 0 or 1 (`x / abs(x)` of complex numbers)",
        expression="{T}(1) if {0} > 0 else "
        "({T}(-1) if {0} < 0 else ({0} if {0} != {0} else {T}(0)))",
        integer="{T}(1) if {0} > 0 else ({T}(-1) if {0} < 0 else {T}(0))",
        kinds="iuf",
        weight=2,
    ),
    Op("square", np.square, "the square `x * x`", expression="{0} * {0}", kinds="iuf"),
    Op("sqrt", np.sqrt, "the square root", expression="math.sqrt({0})", weight=4),
    Op(
        "cbrt",
        np.cbrt,
        "the cube root",
        # A step of Newton's makes the power's last digits right.
        expression="{t}r = math.copysign(math.pow(abs({0}), {T}(1 / 3)), {0})\n"
        "{t}n = {t}r - ({t}r * {t}r * {t}r - {0}) / ({T}(3) * {t}r * {t}r)\n"
        "{t}n if ({t}r != 0) & (abs({t}r) < math.inf) else {t}r",
        weight=20,
    ),
    Op(
        "reciprocal",
        np.reciprocal,
        "the reciprocal `1 / x`",
        expression="{T}(1) / {0}",
        weight=4,
    ),
    Op("exp", np.exp, "the exponential", expression="math.exp({0})", weight=8),
    Op(
        "exp2",
        np.exp2,
        "two raised to the power `x`",
        expression="math.pow({T}(2), {0})",
        weight=16,
    ),
    Op("expm1", np.expm1, "`exp(x) - 1`, exact near zero", expression="math.expm1({0})", weight=10),
    Op("log", np.log, "the natural logarithm", expression="math.log({0})", weight=8),
    Op("log2", np.log2, "the logarithm to base 2", expression="math.log2({0})", weight=10),
    Op("log10", np.log10, "the logarithm to base 10", expression="math.log10({0})", weight=10),
    Op("log1p", np.log1p, "`log(1 + x)`, exact near zero", expression="math.log1p({0})", weight=10),
    Op("sin", np.sin, "the sine of an angle in radians", expression="math.sin({0})", weight=10),
    Op("cos", np.cos, "the cosine of an angle in radians", expression="math.cos({0})", weight=10),
    Op("tan", np.tan, "the tangent of an angle in radians", expression="math.tan({0})", weight=14),
    Op(
        "asin",
        np.arcsin,
        "the inverse sine, in radians",
        aliases=("arcsin",),
        expression="math.asin({0})",
        weight=12,
    ),
    Op(
        "acos",
        np.arccos,
        "the inverse cosine, in radians",
        aliases=("arccos",),
        expression="math.acos({0})",
        weight=12,
    ),
    Op(
        "atan",
        np.arctan,
        "the inverse tangent, in radians",
        aliases=("arctan",),
        expression="math.atan({0})",
        weight=12,
    ),
    Op("sinh", np.sinh, "the hyperbolic sine", expression="math.sinh({0})", weight=12),
    Op("cosh", np.cosh, "the hyperbolic cosine", expression="math.cosh({0})", weight=12),
    Op(
        "tanh",
        np.tanh,
        "the hyperbolic tangent",
        expression="math.tanh({0})",
        weight=12,
        imaginary=_imaginary_of_tanh,
    ),
    Op(
        "asinh",
        np.arcsinh,
        "the inverse hyperbolic sine",
        aliases=("arcsinh",),
        expression="math.asinh({0})",
        weight=14,
    ),
    Op(
        "acosh",
        np.arccosh,
        "the inverse hyperbolic cosine",
        aliases=("arccosh",),
        expression="math.acosh({0})",
        weight=14,
        imaginary=_imaginary_of_acosh,
    ),
    Op(
        "atanh",
        np.arctanh,
        "the inverse hyperbolic tangent",
        aliases=("arctanh",),
        expression="math.atanh({0})",
        weight=14,
    ),
    Op(
        "floor",
        np.floor,
        "the value rounded down",
        keeps_integers=True,
        expression=_rounding("{t}r - ({T}(1) if {t}r > {0} else {T}(0))"),
        integer="{0}",
        boolean="{0}",
        kinds="iufb",
        weight=2,
    ),
    Op(
        "ceil",
        np.ceil,
        "the value rounded up",
        keeps_integers=True,
        expression=_rounding("{t}r + ({T}(1) if {t}r < {0} else {T}(0))"),
        integer="{0}",
        boolean="{0}",
        kinds="iufb",
        weight=2,
    ),
    Op(
        "trunc",
        np.trunc,
        "the value rounded towards zero",
        keeps_integers=True,
        expression=_rounding("abs({t}r) - ({T}(1) if abs({t}r) > abs({0}) else {T}(0))"),
        integer="{0}",
        boolean="{0}",
        kinds="iufb",
        weight=2,
    ),
    Op(
        "round",
        np.rint,
        "the value rounded to the nearest integer, halves to even",
        True,
        ("rint",),
        expression=_rounding("{t}r"),
        integer="{0}",
        boolean="{0}",
        kinds="iufb",
        weight=2,
    ),
    Op(
        "isfinite",
        np.isfinite,
        "whether the value is neither infinite nor NaN",
        expression="abs({0}) < math.inf",
    ),
    Op("isinf", np.isinf, "whether the value is infinite", expression="abs({0}) == math.inf"),
    Op("isnan", np.isnan, "whether the value is NaN", expression="{0} != {0}"),
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
        kinds="iufb",
    ),
    Op(
        "bitwise_invert",
        np.invert,
        "the inverted bits, `~x`",
        aliases=("invert", "bitwise_not"),
        expression="~{0}",
        boolean="not {0}",
        kinds="iub",
    ),
    Op("conj", np.conjugate, "the complex conjugate", aliases=("conjugate",)),
)

OPS: dict[str, Op] = {op.name: op for op in _ROWS}

# Operations with no public function of their own: they stand for a conversion (whose dtype is the
# node's), and for `where`, whose dtype rule is that of promotion.
CONVERT = Op("convert", np.positive, "the value in another dtype", expression="{0}", kinds="iufb")
WHERE = Op(
    "where",
    np.add,
    "`x1` where the condition is true, else `x2`",
    expression="{1} if {0} else {2}",
    kinds="iufb",
)
