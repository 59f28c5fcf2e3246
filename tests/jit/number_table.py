"""A table of operations on numbers: compiled functions against NumPy, at the extremes of dtypes.

Each operation is computed for each pair of extreme values, alone and inside a larger expression, in
each way in which a compiled function may run. To go through the whole table, or some pairs of it:

    python tests/jit/number_table.py [FORMS [PAIRS]], as in: range,prange int8:int16,uint8:number
"""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any
from unittest import mock

import numpy as np

import dparray as dp
from dparray._jit import function as jit_function
from dparray._language import arrays as arrays_of_language

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
          "float64", "bool")  # fmt: skip
#: Second operands that are Python numbers: in the text of the function, or its argument.
NUMBERS = {"number": (3, -1, 0.1), "argument": (2, 0.1)}
#: How the function runs: as native code, with shared statements, as a driver, with its own loops.
FORMS = ("native", "shared", "driver", "range", "prange")
OPERATIONS = (
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / {y}", "{x} // {y}", "{x} % {y}", "{x} & {y}",
    "{x} | {y}", "{x} ^ {y}", "{x} << {y}", "{x} >> {y}", "{x} ** ({y} & 7)", "{x} < {y}",
    "{x} <= {y}", "{x} == {y}", "{x} != {y}", "{x} > {y}", "{x} >= {y}", "np.maximum({x}, {y})",
    "np.minimum({x}, {y})", "np.add({x}, {y})", "np.multiply({x}, {y})",
    "np.floor_divide({x}, {y})", "np.right_shift({x}, {y})", "-{x}", "~{x}", "abs({x})",
    "np.abs({x})", "np.square({x})", "np.negative({x})", "np.sign({x})",
)  # fmt: skip
#: Expressions around an operation, whose results show whether its result has NumPy's dtype.
AROUND = ("{e}", "({e}) // 2", "({e}) < {x}", "({e}) > 0", "({e}) * 2 - {y}", "({e}) / 2",
          "({e}) >> 1", "np.maximum({e}, 3)")  # fmt: skip
_LIMITS = {
    "native": (jit_function, ()),
    "shared": (arrays_of_language, ("MIN_SHARED_ELEMENTS",)),
    "driver": (jit_function, ("MAX_NATIVE_ELEMENTS",)),
}
_count = itertools.count()


def values_of(dtype: str) -> list[Any]:
    """Return the extreme values of a dtype, and ordinary ones."""
    if dtype == "bool":
        return [False, True]
    if dtype.startswith("float"):
        return [0.0, -0.0, 1.0, -1.5, 0.1, 3.7, 1e10, -7.0]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    numbers = {0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 100, -1, -2, -7, low, high, low + 1, high - 1}
    numbers |= {high // 2 + 1, high // 3}
    return sorted(number for number in numbers if low <= number <= high)


def operands_of(first: str, second: str) -> tuple[np.ndarray, list[Any]]:
    """Return an array, and the second operands: an array of all pairs, or numbers."""
    if second in NUMBERS:
        return np.array(values_of(first), first), list(NUMBERS[second])
    pairs = list(itertools.product(values_of(first), values_of(second)))
    x, y = (np.array([pair[at] for pair in pairs], (first, second)[at]) for at in range(2))
    return x, [y]


def check(
    first: str,
    second: str,
    form: str,
    operations: Sequence[str] = OPERATIONS,
    around: Sequence[str] = AROUND,
) -> list[str]:
    """Return the differences between compiled and uncompiled operations on two dtypes."""
    x, others = operands_of(first, second)
    found = []
    for y in others:
        cases = []
        for inner, outer in itertools.product(operations, around):
            text = outer.format(e=inner, x="{x}", y="{y}")
            name = repr(y) if second == "number" else "y"
            text = text.format(x="{x}", y="{y}" if name == "y" else name)
            try:
                with np.errstate(all="ignore"):
                    wanted = eval(text.format(x="x", y="y"), {"x": x, "y": y, "np": np})
            except (TypeError, ValueError, OverflowError):  # nothing that NumPy computes
                continue
            if wanted.dtype != np.float16:
                cases.append((text, wanted))
        for at in range(0, len(cases), 8):
            found += _differences(x, y, form, cases[at : at + 8])
    return found


def _differences(x: np.ndarray, y: Any, form: str, cases: list[tuple[str, Any]]) -> list[str]:
    outs = []
    if form in _LIMITS:
        head = "def f(x, y):"
        body = [f"    r{at} = {text.format(x='x', y='y')}" for at, (text, _) in enumerate(cases)]
        body.append(f"    return {', '.join(f'r{at}' for at in range(len(cases)))},")
    else:
        head = f"def f(x, y, {', '.join(f'o{at}' for at in range(len(cases)))}):"
        body = [f"    for i in {'dp.prange' if form == 'prange' else 'range'}(x.shape[0]):"]
        y_text = "y[i]" if isinstance(y, np.ndarray) else "y"
        body += [
            f"        o{at}[i] = {text.format(x='x[i]', y=y_text)}"
            for at, (text, _) in enumerate(cases)
        ]
        outs = [dp.zeros(x.size, dtype=wanted.dtype) for _, wanted in cases]
    text = "\n".join([head, *body]) + "\n"
    name = f"<table {next(_count)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"dp": dp, "np": np}
    exec(compile(text, name, "exec"), space)
    function = dp.jit(cache=False)(space["f"])
    owner, names = _LIMITS.get(form, (None, ()))
    limits = dict.fromkeys(names, -1)
    with mock.patch.multiple(owner, **limits) if limits else nullcontext():
        given = dp.asarray(y) if isinstance(y, np.ndarray) else y
        results = function(dp.asarray(x), given, *outs)
    found = []
    for (case, wanted), result in zip(cases, outs or results, strict=True):
        right, own = wanted, result.asnumpy()
        are_equal = np.array_equal(own, right, equal_nan=own.dtype.kind == "f")
        if own.dtype.kind == "f" and "**" in case:  # the last digit depends on the library
            are_equal = np.allclose(own, right, rtol=4 * np.finfo(own.dtype).eps, equal_nan=True)
        if own.dtype != right.dtype or not are_equal:
            at = np.flatnonzero((own != right) & ~((own != own) & (right != right)))[:1]
            found.append(
                f"{form}, {case.format(x='x', y='y')}, x of {x.dtype}, y of {np.asarray(y).dtype}: "
                f"{own.dtype} {own[at]}, right {right.dtype} {right[at]}, x = {x[at]}"
            )
    return found


if __name__ == "__main__":
    forms = sys.argv[1].split(",") if len(sys.argv) > 1 else FORMS
    pairs = [
        each.split(":") for each in sys.argv[2].split(",")
    ] if len(sys.argv) > 2 else itertools.product(DTYPES, (*DTYPES, *NUMBERS))  # fmt: skip
    for first, second in pairs:
        for form in forms:
            differences = check(first, second, form)
            print(f"{first} {second} {form}: {len(differences)} differ", *differences, sep="\n    ")
