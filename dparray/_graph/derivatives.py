"""The derivatives of the operations in the tables: a row for each operation, as text.

A row of an element-wise operation has the partial derivative by each operand, an expression in
dparray's functions and these names:

- ``x`` and ``y``: the operands; ``r``: the result;
- ``g``: the cotangent (in forward mode the tangent), by which expressions without it are
  multiplied;
- ``~`` in front: the product is 0 where the cotangent is 0, even if the derivative is infinite
  (:func:`dparray.gradients.rules.safe`).

In rows of reductions, ``x`` is the array, and ``g`` and ``r`` have the reduced axes with length 1.
``n`` is the number of reduced elements, and ``m`` the same less the correction.

``"0"`` stands for a derivative that is zero wherever it exists, and ``None`` for an operation with
integer or Boolean results, which has none. An operation without a row has no derivative: a test
asks for the row of each operation, and :mod:`dparray.gradients` raises an error with its name.
"""

from __future__ import annotations

Row = tuple[str, ...] | None

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_LOGICAL = ("logical_and", "logical_or", "logical_xor", "logical_not")
_BITS = (
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"),
    *("bitwise_left_shift", "bitwise_right_shift"),
)
_PREDICATES = ("isfinite", "isinf", "isnan", "signbit")

#: The rows of :data:`dparray._graph.ops.OPS`.
OF_OPS: dict[str, Row] = {
    "add": ("g", "g"),
    "subtract": ("g", "-g"),
    "multiply": ("y", "x"),
    "divide": ("~1 / y", "~-r / y"),
    "floor_divide": ("0", "0"),
    "remainder": ("g", "-floor_divide(x, y)"),
    "pow": ("~power_by_base(x, y)", "~power_by_exponent(x, y, r)"),
    "atan2": ("~part_of_angle(y, x)", "~-part_of_angle(x, y)"),
    "hypot": ("~x / r", "~y / r"),
    "copysign": ("copysign(1.0, x) * copysign(1.0, y)", "0"),
    "nextafter": ("g", "0"),
    "logaddexp": ("~exp(x - r)", "~exp(y - r)"),
    "maximum": ("above(x, y)", "above(y, x)"),
    "minimum": ("above(y, x)", "above(x, y)"),
    "abs": ("sign(x)",),
    "negative": ("-g",),
    "positive": ("g",),
    "sign": ("0",),
    "square": ("2 * x",),
    "sqrt": ("~0.5 / r",),
    "cbrt": ("~1 / (3 * r * r)",),
    "reciprocal": ("~-r * r",),
    "exp": ("r",),
    "exp2": ("r * 0.6931471805599453",),
    "expm1": ("r + 1",),
    "log": ("~1 / x",),
    "log2": ("~1.4426950408889634 / x",),
    "log10": ("~0.4342944819032518 / x",),
    "log1p": ("~1 / (1 + x)",),
    "sin": ("cos(x)",),
    "cos": ("-sin(x)",),
    "tan": ("1 + r * r",),
    "asin": ("~1 / sqrt((1 - x) * (1 + x))",),
    "acos": ("~-1 / sqrt((1 - x) * (1 + x))",),
    "atan": ("1 / (1 + x * x)",),
    "sinh": ("cosh(x)",),
    "cosh": ("sinh(x)",),
    "tanh": ("1 - r * r",),
    "asinh": ("1 / sqrt(x * x + 1)",),
    "acosh": ("~1 / (sqrt(x - 1) * sqrt(x + 1))",),
    "atanh": ("~1 / ((1 - x) * (1 + x))",),
    "floor": ("0",),
    "ceil": ("0",),
    "trunc": ("0",),
    "round": ("0",),
    "conj": ("conj(g)",),
    **dict.fromkeys((*_COMPARISONS, *_LOGICAL, *_BITS, *_PREDICATES)),
}

#: The rows of :data:`dparray._graph.reductions.REDUCTIONS`. ``fmax`` and ``fmin`` are the
#: reductions of ``nanmax`` and ``nanmin``.
OF_REDUCTIONS: dict[str, Row] = {
    "sum": ("g",),
    "prod": ("g * products_of_others(x, axes)",),
    "max": ("g * ties(x, r, axes)",),
    "min": ("g * ties(x, r, axes)",),
    "fmax": ("g * ties(x, r, axes)",),
    "fmin": ("g * ties(x, r, axes)",),
    "mean": ("g / n",),
    "var": ("g * (x - mean(x, axis=axes, keepdims=True)) * (2 / m)",),
    **dict.fromkeys(("all", "any", "argmax", "argmin")),
}
