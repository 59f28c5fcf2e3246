"""Integers stay integers: in variables, loops, branches, functions and choices, in every dtype.

The expected values are those of the same statements in Python, with NumPy's numbers.
"""

from __future__ import annotations

import itertools
import linecache
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import KernelTypeWarning

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *SIGNED, *UNSIGNED)
JOINS = ("branched(a, b)", "a if a % 2 == 1 else b", "either(a, b, a % 2 == 1)")
OPERATIONS = ("+", "-", "*", "//", "%", "**", "<<", ">>", "&", "|", "^")

FUNCTIONS = """
def either(a, b, is_first):
    if is_first:
        return a
    return b

def total(a, b):
    return a + b

def repeated{n}(a, b):
    t = a
    for _ in range(3):
        t = t {operation} b
    return t

def augmented{n}(a, b):
    t = a
    t {operation}= b
    return t

def branched(a, b):
    m = a
    if a % 2 != 1:
        m = b
    return m
"""


def functions() -> list[str]:
    """Return the texts of the device functions."""
    texts = []
    for text in FUNCTIONS.strip().split("\n\n"):
        numbers = range(len(OPERATIONS)) if "{n}" in text else (0,)
        texts += [text.format(n=n, operation=OPERATIONS[n]) for n in numbers]
    return texts


def expressions() -> list[str]:
    """Return what is computed of two numbers."""
    found = []
    for number, name in enumerate(OPERATIONS):
        found += [f"a {name} b", f"repeated{number}(a, b)", f"augmented{number}(a, b)"]
    for name, order in itertools.product(("+", "-", "*"), ("> 0", "< a", ">= b")):
        found.append(f"int((a {name} b) {order})")
    found += [*("-a", "~a", "+a", "abs(a)", "int(-a > 0)", "min(a, b)", "max(a, b)", "total(a, b)")]
    found += [f"int(a {name} b)" for name in ("<", "<=", "==", "!=", ">", ">=")]
    # The quotient depends on the type.
    found += [f"({each}) // 3" for each in found]
    return [*found, *JOINS]


class _Whole:
    """The functions of Python with which NumPy's numbers are computed as in kernels."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"min": np.minimum, "max": np.maximum}
        for text in functions():
            exec(text, self.names)

    def __call__(self, expression: str, a: Any, b: Any) -> Any:
        """Return a value; ``None`` if NumPy has none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return eval(expression, {**self.names, "a": a, "b": b})
            except (TypeError, OverflowError, ValueError):
                return None


PLAIN = _Whole()


def source_of_kernel(second: str, chosen: list[str]) -> str:
    """Return the text of a kernel that computes expressions of ``x[i]`` and a second operand."""
    lines = []
    for text in functions():
        name = text.partition("(")[0].removeprefix("def ")
        if any(name in each for each in chosen):
            lines += ["@dp.device_func", *text.splitlines()]
    lines += ["@dp.kernel", "def compute(item, x, y, out):", "    i = item.get_id(0)"]
    lines += ["    a = x[i]", f"    b = {second}"]
    lines += [f"    out[i, {at}] = {each}" for at, each in enumerate(chosen)]
    return "\n".join(lines)


def kernel_with(second: str, chosen: list[str]) -> Any:
    """Return the kernel whose second operand is this text."""
    text = source_of_kernel(second, chosen)
    name = f"<integer rules, {second}, {len(chosen)}, {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"dp": dp, "np": np}
    exec(compile(text, name, "exec"), scope)
    return scope["compute"]


def values_of(dtype: str) -> list[int]:
    if dtype == "bool":
        return [0, 1]
    info = np.iinfo(dtype)
    inside = [0, 1, 2, 5, 63, 64, info.max - 1, info.max]
    return inside + ([-1, -3, info.min] if info.min else [])


def compare_with_rules(
    run: Callable[..., Any], first: str, second: str, literal: int | None = None
) -> None:
    pairs = list(itertools.product(values_of(first), values_of(second)))
    x = np.array([a for a, _ in pairs], first)
    y = np.array([b for _, b in pairs], second)
    one = np.ones(1, first)[0], np.ones(1, second)[0] if literal is None else literal
    sample = {each: PLAIN(each, *one) for each in expressions()}
    chosen = [
        each
        for each, value in sample.items()
        if value is not None and not isinstance(value, float | np.floating)
    ]
    if literal is not None and literal < 0 and first in UNSIGNED:
        chosen = [each for each in chosen if each not in JOINS]  # No type holds both.
    out = dp.zeros((len(pairs), len(chosen)), dtype="uint64")
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelTypeWarning)
        kernel = kernel_with("y[i]" if literal is None else str(literal), chosen)
        run(kernel, dp.Range(len(pairs)), dp.asarray(x), dp.asarray(y), out)
    wrong = []
    for a, b, row in zip(
        x, y if literal is None else [literal] * len(x), out.tolist(), strict=True
    ):
        for each, found in zip(chosen, row, strict=True):
            wanted = PLAIN(each, a, b)  # None: a negative power, which kernels round
            if wanted is not None and found != int(wanted) % 2**64:
                wrong.append(f"a={a}, b={b}: {each} gave {found}, not {int(wanted) % 2**64}")
    what = second if literal is None else literal
    assert not wrong, f"{run.__name__}, {first} and {what}: {wrong[:6]} ({len(wrong)} in all)"


# Each dtype with a uint64 and with an int8, in both orders; all pairs are compared by `python -m
# tests.kernel.test_integer_rules`.
CHOSEN = sorted(
    {(each, "uint64") for each in DTYPES}
    | {("uint64", each) for each in DTYPES}
    | {("bool", "bool"), ("int8", "uint8"), ("uint32", "int32"), ("uint8", "bool")}
)


RUNS = [dp.call_kernel, dp.simulate]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("first", "second"), CHOSEN)
@pytest.mark.sample(2)
def test_pairs_of_dtypes(run: Any, first: str, second: str) -> None:
    compare_with_rules(run, first, second)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("literal", [0, 3, -1])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint8", "uint64"])
@pytest.mark.sample(2)
def test_literals(run: Any, dtype: str, literal: int) -> None:
    compare_with_rules(run, dtype, "int64", literal)


# --- programs -------------------------------------------------------------------------------------

LARGE = 2**60 + 1  # a float64 cannot represent the last digits


@dp.device_func
def larger(a: Any, b: Any) -> Any:
    if a > b:
        return a
    return b


@dp.kernel
def largest_in_a_loop(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    m = a[0]
    for i in range(b.shape[0]):
        if b[i] > m:
            m = b[i]
    out[0] = m


@dp.kernel
def sums_and_quotients(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    t = a[0]
    for i in range(3):
        t += i
        t = t * 3 + i
        t = t // 2 + i
    out[0] = t


@dp.kernel
def bits(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    t = a[0]
    for i in range(3):
        t ^= i
        t |= 1 << i
        t &= ~(1 << (i + 1))
    out[0] = t


@dp.kernel
def hashed(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    h = a[0] - LARGE + 5381
    for k in range(b.shape[0]):
        h = h * 31 + int(b[k] % 256)
    out[0] = h % 1000


@dp.kernel
def of_either(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    t = a[0] if b[0] > 5 else b[0]
    u = larger(a[0], b[1])
    out[0] = t + u


@dp.kernel
def swapped(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    x, y = a[0], b[1]
    for _ in range(5):
        x, y = y, x
    while x > y:
        x -= 2**59
        y += 1
    out[0] = x
    out[1] = y


@dp.kernel
def counted_down(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    n = a[0] - LARGE + 3  # a uint64, like the literal
    total = 0
    for i in range(n, b[0] - 6, -1):
        total = total * 10 + i
    out[0] = total


PROGRAMS = [
    *(largest_in_a_loop, sums_and_quotients, bits, hashed, of_either),
    *(swapped, counted_down),
]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kernel", PROGRAMS, ids=lambda kernel: kernel.__name__)
def test_programs_compute_as_python_does(run: Any, kernel: Any) -> None:
    # Numbers that fit into int64, but are too large for a float64.
    a, b = [LARGE, LARGE + 2, LARGE + 6], [5, LARGE + 1, 7]
    expected = [0, 0]
    kernel.py_func(None, _List(a), _List(b), expected)
    expected = [(each + 2**63) % 2**64 - 2**63 for each in expected]
    out = dp.zeros(2, dtype="int64")
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelTypeWarning)
        run(
            kernel,
            dp.Range(1),
            dp.asarray(np.array(a, "uint64")),
            dp.asarray(np.array(b, "int64")),
            out,
        )
    assert out.tolist() == expected


class _List(list[int]):
    """A list with the shape of an array."""

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)


if __name__ == "__main__":
    for run, first, second in itertools.product(RUNS, DTYPES, (*DTYPES, 0, 3, -1, 64)):
        literal = second if isinstance(second, int) else None
        try:
            compare_with_rules(run, first, "int64" if literal is not None else second, literal)
        except AssertionError as error:
            print(error)
