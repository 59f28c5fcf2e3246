"""The rules of element-wise operations and reductions, and the functions that their texts use."""

from __future__ import annotations

import functools
import math
from typing import Any

from dparray import config
from dparray._graph import derivatives
from dparray._graph.ops import OPS
from dparray.gradients.calls import COMPOSED, ROWS, ROWS_BY_NAME, apply
from dparray.gradients.public import dp
from dparray.gradients.rows import NAMES, Elementwise, Reduced, Row
from dparray.gradients.traced import Traced


def _product(g: Any, d: Any) -> Any:
    return dp.where(g == 0, 0, g * d) if config.zero_wins else g * d


def safe(g: Any, d: Any) -> Any:
    """Return ``g * d``; 0 where ``g`` is 0, even if ``d`` is infinite or NaN.

    It is an operation with a row of its own, linear in ``g``: derivatives of the selection would be
    wrong in second derivatives and in forward mode.
    """
    if type(g) is Traced or type(d) is Traced:
        return apply(ROWS_BY_NAME["safe"], (g, d), {})
    return _product(g, d)


def above(x: Any, y: Any) -> Any:
    """Return 1 where ``x`` is larger, 1/2 where both are equal, and otherwise 0.

    The result of the operation is not compared: a pending operand may be computed again by another
    backend, which rounds differently.
    """
    return dp.where(x > y, 1.0, dp.where(x == y, 0.5, 0.0))


def above_or_alone(x: Any, y: Any) -> Any:
    """Return the same, and 1 where ``y`` is NaN."""
    return dp.where(y == y, above(x, y), 1.0)


def below_or_alone(x: Any, y: Any) -> Any:
    """Return the same where ``x`` is smaller."""
    return dp.where(y == y, above(y, x), 1.0)


def power_by_base(x: Any, y: Any) -> Any:
    """Return the derivative of ``x ** y`` by ``x``; 0 for the power 0."""
    if isinstance(y, int | float):
        return dp.zeros_like(x) if y == 0 else x * 2 if y == 2 else y * x ** (y - 1)
    return dp.where(y == 0, 0, y * x ** dp.where(y == 0, 1, y - 1))


def power_by_exponent(x: Any, y: Any, r: Any) -> Any:
    """Return the derivative of ``x ** y`` by ``y``; 0 where ``x`` is 0."""
    if isinstance(x, int | float):
        return r * (math.log(x) if x > 0 else 0.0 if x == 0 else math.nan)
    return dp.where(x == 0, 0, r * dp.log(dp.where(x == 0, 1, x)))


def part_of_angle(x: Any, y: Any) -> Any:
    """Return ``x / (x**2 + y**2)`` without overflow."""
    length = dp.hypot(x, y)
    return x / length / length


def slope_of_sinc(x: Any, r: Any) -> Any:
    """Return the derivative of ``sinc``; near 0 by its series, which has derivatives, too."""
    square = (math.pi * x) * (math.pi * x)
    series = -(math.pi**2 / 3) * x * (1 - square / 10 * (1 - square / 28 * (1 - square / 54)))
    at = dp.where(dp.abs(x) < 0.05, 1, x)
    return dp.where(dp.abs(x) < 0.05, series, (dp.cos(math.pi * at) - dp.sinc(at)) / at)


def quotient(r: Any, x: Any, limit: float) -> Any:
    """Return ``r / x``, or its limit where ``x`` is 0."""
    return dp.where(x == 0, limit, r / dp.where(x == 0, 1, x))


def ties(x: Any, r: Any, axes: tuple[int, ...]) -> Any:
    """Return 0 for elements that are not the extreme, and equal shares of 1 for those that are."""
    is_extreme = dp.astype(x == r, x.dtype)
    return is_extreme / dp.sum(is_extreme, axis=axes, keepdims=True)


def products_of_others(x: Any, axes: tuple[int, ...]) -> Any:
    """Return the product of the other elements for each element; right with zeros, too."""
    left = [axis for axis in range(x.ndim) if axis not in axes]
    order = (*left, *axes)
    rows = tuple([x.shape[axis] for axis in left])
    lines = dp.reshape(dp.permute_dims(x, order), (*rows, math.prod(x.shape[a] for a in axes)))
    one = dp.ones_like(lines[..., :1])
    before = dp.cumprod(dp.concatenate([one, lines[..., :-1]], axis=-1), axis=-1)
    turned = dp.flip(lines, axis=-1)
    behind = dp.cumprod(dp.concatenate([one, turned[..., :-1]], axis=-1), axis=-1)
    others = dp.reshape(before * dp.flip(behind, axis=-1), tuple([x.shape[axis] for axis in order]))
    return dp.permute_dims(others, tuple(sorted(range(x.ndim), key=order.__getitem__)))


#: Element-wise functions that are not operations of the table.
_OTHERS: dict[str, tuple[str, ...]] = {
    "fmax": ("above_or_alone(x, y)", "above_or_alone(y, x)"),
    "fmin": ("below_or_alone(x, y)", "below_or_alone(y, x)"),
    "fmod": ("g", "-trunc(x / y)"),
    "float_power": ("~power_by_base(x, y)", "~power_by_exponent(x, y, r)"),
    "heaviside": ("0", "where(x == 0, 1.0, 0.0)"),
    "ldexp": ("exp2(astype(y, r.dtype))", "0"),
    "logaddexp2": ("~exp2(x - r)", "~exp2(y - r)"),
    "rsqrt": ("~-0.5 * r / x",),
    "rint": ("0",),
    "round": ("0",),
    "fix": ("0",),
    "spacing": ("0",),
    "deg2rad": ("g * 0.017453292519943295",),
    "rad2deg": ("g * 57.29577951308232",),
    "fabs": ("sign(x)",),
    "sinc": ("slope_of_sinc(x, r)",),
    "i0": ("special.i1(x)",),
    "nan_to_num": ("where(isfinite(x), 1.0, 0.0)",),
    "where": ("0", "where(x, g, 0)", "where(x, 0, g)"),
}


def register(name: str, row: Row, *others: str) -> None:
    """Enter the row of a public function, which may have further names."""
    for one in (name, *others):
        ROWS[function_of(one)] = row


def function_of(name: str) -> Any:
    """Return the public function of a name with its namespace."""
    return functools.reduce(getattr, name.split("."), dp)


def compose(module: dict[str, Any], names: str, into: dict[Any, Any] = COMPOSED) -> None:
    """Enter functions of a module for public functions: ``_norm`` for ``linalg.norm``."""
    for name in names.split():
        into[function_of(name)] = module[f"_{name.rpartition('.')[2]}"]


_HELPERS = (
    *(safe, above, above_or_alone, below_or_alone, power_by_base, power_by_exponent),
    *(part_of_angle, slope_of_sinc, quotient, ties, products_of_others),
)
NAMES |= {helper.__name__: helper for helper in _HELPERS}
_USED = (
    *("abs", "arctan", "astype", "broadcast_to", "cos", "cosh", "copysign", "exp", "exp2", "expm1"),
    *("floor", "floor_divide", "hypot", "isfinite", "log", "log1p", "log2", "maximum", "mean"),
    *("minimum", "sign", "sin", "sinh", "sqrt", "square", "sum", "tanh", "trunc", "where"),
    *("conj", "clip", "ones_like", "zeros_like"),
)
NAMES |= {name: getattr(dp, name) for name in _USED} | {"special": dp.special, "math": math}


class OfComplex(Row):
    """A function of complex numbers that is not holomorphic, such as ``abs``.

    The cotangent of a complex array is d/d(real) + 1j d/d(imaginary).
    """

    reads_answer = True

    def __init__(self, name: str, compute: Any, of_real: Row) -> None:
        super().__init__(name, compute)
        self._of_real = of_real

    def keep(self, places: Any, operands: Any, answer: Any) -> tuple[Any, Any]:
        """Return what the rule needs of the operands and the result."""
        if operands[0].dtype.kind != "c":
            return self._of_real.keep(places, operands, answer)
        return super().keep(places, operands, answer)

    def transpose(self, place: Any, g: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the cotangent of an operand from that of the result."""
        x = operands[0]
        if x.dtype.kind != "c":
            return self._of_real.transpose(place, g, answer, operands, options)
        if self.name == "abs":
            return g * dp.where(answer == 0, 0, x / dp.where(answer == 0, 1, answer))
        along = dp.real(dp.conj(answer) * g) * answer  # of sign
        return safe(g - along, dp.astype(1 / dp.abs(x), x.dtype))

    def push(self, tangents: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the tangent of the result from those of operands."""
        if operands[0].dtype.kind != "c":
            return self._of_real.push(tangents, answer, operands, options)
        return super().push(tangents, answer, operands, options)


def _enter() -> None:
    for name, texts in derivatives.OF_OPS.items():
        if texts is not None:
            row: Row = Elementwise(name, getattr(dp, name), texts)
            if name in ("abs", "sign"):
                row = OfComplex(name, getattr(dp, name), row)
            register(name, row, *OPS[name].aliases)
    for name, texts in _OTHERS.items():
        register(name, Elementwise(name, getattr(dp, name), texts))
    register("deg2rad", ROWS[dp.deg2rad], "radians")
    register("rad2deg", ROWS[dp.rad2deg], "degrees")
    register("round", ROWS[dp.round], "around")
    for name in ("sum", "prod", "max", "min", "mean", "var"):
        texts = derivatives.OF_REDUCTIONS[name]
        assert texts is not None
        register(name, Reduced(name, getattr(dp, name), texts[0]))
    register("max", ROWS[dp.max], "amax")
    register("min", ROWS[dp.min], "amin")
    ROWS_BY_NAME["safe"] = Elementwise("safe", _product, ("safe(g, y)", "x"))


_enter()
