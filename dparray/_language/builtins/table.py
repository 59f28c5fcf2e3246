"""The table of the functions that kernels may call, which documentation and tests read.

A row names a function as a kernel writes it, the type of its result, and its meaning. Functions of
dparray's kernel language have their meaning in their docstrings. ``HANDLERS`` has what translates
the calls; functions of arrays, such as ``np.maximum``, stand for one of numbers, by their names in
:mod:`dparray._language.scalar_functions`.
"""

from __future__ import annotations

import builtins
import cmath
import inspect
import math
import operator
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dparray import kernel_api
from dparray._language.scalar_functions import names
from dparray.kernel_api import work_items

_ROWS = """
## Python's functions
abs(x) :: that of x :: The magnitude.
all(values) :: Boolean :: Whether all items of a tuple are true.
any(values) :: Boolean :: Whether any item of a tuple is true.
bool(x) :: Boolean :: Whether a number is not 0.
complex(real, imag) :: complex128; complex64 for two float32 :: A complex number.
divmod(a, b) :: those of a // b and a % b :: The quotient rounded down, and the remainder.
enumerate(values, start=0) :: tuple of pairs :: The items of a tuple with their numbers.
float(x) :: Python float :: A float, which takes the type of what it meets.
getattr(x, name) :: that of x.name :: An attribute or a method, by a name that is a constant.
int(x) :: Python integer :: An integer; the fraction is dropped.
isinstance(x, kinds) :: constant :: Whether a number belongs to a class, at compile time.
len(x) :: Python integer :: The size of the first axis of an array, or the number of items.
max(a, b) :: the type that holds both :: The largest value; with a NaN, the first value.
min(a, b) :: the type that holds both :: The smallest value; with a NaN, the first value.
pow(a, b) :: that of a ** b :: A power.
print(values) :: none :: Print numbers, strings and f-strings in a line.
range(start, stop, step) :: Python integers :: Integers to loop over.
reversed(values) :: tuple :: The items of a tuple, last first.
round(x, digits) :: Python integer; with digits that of x :: The nearest number, ties to even.
sum(values, start=0) :: that of the additions :: The sum of the items of a tuple.
tuple(values) :: tuple :: The items as a tuple.
type(x) :: constant :: The NumPy type of a number, at compile time.
zip(tuples) :: tuple of tuples :: The items of tuples, side by side.

## Mathematics
math.acos(x) :: float :: The inverse cosine.
math.acosh(x) :: float :: The inverse hyperbolic cosine.
math.asin(x) :: float :: The inverse sine.
math.asinh(x) :: float :: The inverse hyperbolic sine.
math.atan(x) :: float :: The inverse tangent.
math.atan2(y, x) :: float :: The angle of the point (x, y).
math.atanh(x) :: float :: The inverse hyperbolic tangent.
math.cbrt(x) :: float :: The cube root.
math.ceil(x) :: float; an integer for integers :: The smallest integer that is not below x.
math.copysign(x, y) :: float :: The magnitude of x with the sign of y.
math.cos(x) :: float :: The cosine.
math.cosh(x) :: float :: The hyperbolic cosine.
math.degrees(x) :: float :: An angle in degrees.
math.erf(x) :: float :: The error function.
math.erfc(x) :: float :: The complementary error function.
math.exp(x) :: float :: The exponential.
math.exp2(x) :: float :: The power of 2.
math.expm1(x) :: float :: The exponential minus 1, exact near 0.
math.fabs(x) :: float :: The magnitude.
math.floor(x) :: float; an integer for integers :: The largest integer that is not above x.
math.fmod(x, y) :: float :: The remainder with the sign of x.
math.gamma(x) :: float :: The gamma function.
math.hypot(x, y) :: float :: The length of the vector (x, y).
math.isfinite(x) :: Boolean :: Whether a number is neither infinite nor NaN.
math.isinf(x) :: Boolean :: Whether a number is infinite.
math.isnan(x) :: Boolean :: Whether a number is NaN.
math.ldexp(x, n) :: float :: The product of x and a power of 2.
math.lgamma(x) :: float :: The logarithm of the magnitude of the gamma function.
math.log(x, base) :: float :: The natural logarithm, or the one to a base.
math.log10(x) :: float :: The logarithm to base 10.
math.log1p(x) :: float :: The logarithm of 1 + x, exact near 0.
math.log2(x) :: float :: The logarithm to base 2.
math.nextafter(x, y) :: float :: The next float after x towards y.
math.pow(x, y) :: float :: A power, computed in floats.
math.prod(values, start=1) :: that of the products :: The product of the items of a tuple.
math.radians(x) :: float :: An angle in radians.
math.sin(x) :: float :: The sine.
math.sinh(x) :: float :: The hyperbolic sine.
math.sqrt(x) :: float :: The square root.
math.tan(x) :: float :: The tangent.
math.tanh(x) :: float :: The hyperbolic tangent.
math.trunc(x) :: float; an integer for integers :: The integer towards 0.

## Complex numbers
cmath.acos(z) :: complex :: The inverse cosine.
cmath.acosh(z) :: complex :: The inverse hyperbolic cosine.
cmath.asin(z) :: complex :: The inverse sine.
cmath.asinh(z) :: complex :: The inverse hyperbolic sine.
cmath.atan(z) :: complex :: The inverse tangent.
cmath.atanh(z) :: complex :: The inverse hyperbolic tangent.
cmath.cos(z) :: complex :: The cosine.
cmath.cosh(z) :: complex :: The hyperbolic cosine.
cmath.exp(z) :: complex :: The exponential.
cmath.isfinite(z) :: Boolean :: Whether both parts are neither infinite nor NaN.
cmath.isinf(z) :: Boolean :: Whether a part is infinite.
cmath.isnan(z) :: Boolean :: Whether a part is NaN.
cmath.log(z) :: complex :: The natural logarithm.
cmath.log10(z) :: complex :: The logarithm to base 10.
cmath.phase(z) :: float :: The angle of a complex number.
cmath.polar(z) :: tuple of two floats :: The magnitude and the angle.
cmath.rect(r, phi) :: complex :: The complex number of a magnitude and an angle.
cmath.sin(z) :: complex :: The sine.
cmath.sinh(z) :: complex :: The hyperbolic sine.
cmath.sqrt(z) :: complex :: The square root.
cmath.tan(z) :: complex :: The tangent.
cmath.tanh(z) :: complex :: The hyperbolic tangent.

## Operators as functions
operator.abs(x) :: that of abs(x) :: The magnitude.
operator.add(a, b) :: that of a + b :: The sum.
operator.and_(a, b) :: that of a & b :: The bits that are set in both.
operator.eq(a, b) :: Boolean :: Whether both are equal.
operator.floordiv(a, b) :: that of a // b :: The quotient rounded down.
operator.ge(a, b) :: Boolean :: Whether a is greater or equal.
operator.gt(a, b) :: Boolean :: Whether a is greater.
operator.invert(x) :: that of ~x :: The inverted bits.
operator.le(a, b) :: Boolean :: Whether a is less or equal.
operator.lshift(a, b) :: that of a << b :: A shift to the left.
operator.lt(a, b) :: Boolean :: Whether a is less.
operator.mod(a, b) :: that of a % b :: The remainder.
operator.mul(a, b) :: that of a * b :: The product.
operator.ne(a, b) :: Boolean :: Whether they differ.
operator.neg(x) :: that of -x :: The negative.
operator.not_(x) :: Boolean :: Whether a number is 0.
operator.or_(a, b) :: that of a | b :: The bits that are set in either.
operator.pos(x) :: that of +x :: The number.
operator.pow(a, b) :: that of a ** b :: A power.
operator.rshift(a, b) :: that of a >> b :: A shift to the right.
operator.sub(a, b) :: that of a - b :: The difference.
operator.truediv(a, b) :: that of a / b :: The quotient.
operator.truth(x) :: Boolean :: Whether a number is not 0.
operator.xor(a, b) :: that of a ^ b :: The bits that differ.

## Types
np.dtype(kind) :: constant :: A dtype, which converts numbers and creates arrays.
np.finfo(kind) :: constants :: The limits of a type of floats.
np.iinfo(kind) :: constants :: The limits of a type of integers.
"""

_WITHOUT_ITEM = "Kernels without an item"
#: Groups of dparray's own functions, whose rows are their docstrings.
_OWN: dict[str, tuple[Any, ...]] = {
    "Memory": (kernel_api.AtomicRef, kernel_api.LocalArray, kernel_api.PrivateArray),
    "Barriers and fences": (kernel_api.atomic_fence, kernel_api.group_barrier),
    "Group algorithms": (
        *(kernel_api.all_of_group, kernel_api.any_of_group, kernel_api.none_of_group),
        *(kernel_api.group_broadcast, kernel_api.group_reduce, kernel_api.reduce_over_group),
        *(kernel_api.group_inclusive_scan, kernel_api.inclusive_scan_over_group),
        kernel_api.exclusive_scan_over_group,
        *(kernel_api.select_from_group, kernel_api.permute_group_by_xor),
        *(kernel_api.shift_group_left, kernel_api.shift_group_right),
    ),
    "Vectors": (
        *(kernel_api.vec, kernel_api.vec_full, kernel_api.vec_load, kernel_api.vec_store),
        kernel_api.vec_where,
    ),
    "Printing": (kernel_api.printf,),
    _WITHOUT_ITEM: (
        *(work_items.get_global_id, work_items.get_global_size, work_items.get_group_id),
        *(work_items.get_local_id, work_items.get_local_size, work_items.get_num_groups),
        *(work_items.barrier, work_items.mem_fence, work_items.sub_group_barrier),
        *(work_items.add_atomically, work_items.sub_atomically),
    ),
}
#: The names in numba_dpex of the functions for kernels without an item.
_DPEX_NAMES = {function: f"numba_dpex.{function.__name__}" for function in _OWN[_WITHOUT_ITEM]} | {
    work_items.add_atomically: "numba_dpex.atomic.add",
    work_items.sub_atomically: "numba_dpex.atomic.sub",
    work_items.sub_group_barrier: "numba_dpex.sub_group_barrier",
}


class Row(NamedTuple):
    """A function of the kernel language.

    Attributes:
        name: how a kernel writes it.
        parameters: as text.
        function: Python's object; ``None`` if this version of Python does not have it.
        group: the heading of its group.
        result: the type of its result.
        summary: its meaning, in a sentence.
    """

    name: str
    parameters: str
    function: Any
    group: str
    result: str
    summary: str


def rows() -> Iterator[Row]:
    """Yield all rows, group by group."""
    group = ""
    for line in _ROWS.strip().splitlines():
        if line.startswith("## "):
            group = line.removeprefix("## ")
        elif line:
            call, result, summary = line.split(" :: ")
            name, _, parameters = call.removesuffix(")").partition("(")
            yield Row(name, parameters, _object(name), group, result, summary)
    for group, functions in _OWN.items():
        for function in functions:
            summary = (inspect.getdoc(function) or "").partition("\n")[0]
            summary = re.sub(":[a-z]+:`(.+?)`", r"`dp.\1`", summary).replace("``", "`")
            parameters = ", ".join(
                f"*{each.name}" if each.kind is each.VAR_POSITIONAL else each.name
                for each in inspect.signature(function).parameters.values()
            )
            name = _DPEX_NAMES.get(function, f"dp.{function.__name__}")
            yield Row(name, parameters, function, group, "", summary)


def _object(name: str) -> Any:
    module, _, own = name.rpartition(".")
    owner: Any = {"math": math, "cmath": cmath, "operator": operator, "np": np, "": builtins}[
        module
    ]
    return getattr(owner, own, None)


def page() -> str:
    """Return the page of the documentation that lists the functions."""
    lines = [
        "# Functions in kernels",
        "",
        "Kernels and device functions may call these functions, and device functions of yours.",
        '"float" in the table is float64 for float64 and integers, and float32 for smaller floats.',
        "Functions of arrays may be called with numbers, and follow the types of kernels:",
        "",
        "```text",
        *textwrap.wrap(", ".join(names()), 100),
        "```",
    ]
    group = ""
    for row in rows():
        has_result = row.group not in _OWN
        if row.group != group:
            group = row.group
            head = "| function | result | meaning |" if has_result else "| function | meaning |"
            lines += ["", f"## {group}", "", head, "|---" * (head.count("|") - 1) + "|"]
        cells = [f"`{row.name}({row.parameters})`", *[row.result] * has_result, row.summary]
        lines.append("".join(f"| {cell} ".replace(" | ", r" \| ") for cell in cells) + "|")
    return "\n".join(lines) + "\n"
