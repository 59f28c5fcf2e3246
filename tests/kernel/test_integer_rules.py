"""Integers stay integers: in variables, loops, branches, functions and choices, in every dtype.

The expected values come from the rules of ``guide/kernels``, implemented here for plain Python
integers. Arithmetic is in int64, or in uint64 if no operand is signed. A variable that is one of
two integers has the type that holds both; for a uint64 and a signed integer this is int64.
"""

from __future__ import annotations

import itertools
import linecache
import operator
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import KernelTypeWarning

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *SIGNED, *UNSIGNED)


# --- the rules ------------------------------------------------------------------------------------


class Number(NamedTuple):
    """A number with its type; ``is_literal`` if it is a literal in the kernel."""

    value: int
    dtype: str
    is_literal: bool = False

    def to(self, dtype: str) -> Number:
        if dtype == "bool":
            return Number(int(self.value != 0), dtype)
        bits = np.dtype(dtype).itemsize * 8
        value = self.value % 2**bits
        if dtype.startswith("int") and value >> (bits - 1):
            value -= 2**bits
        return Number(value, dtype)


def is_weak(number: Number, beside: Number) -> bool:
    return number.is_literal and number.value >= 0 and beside.dtype == "uint64"


def arithmetic_dtype(a: Number, b: Number) -> str:
    """Return the dtype of a sum of two numbers."""
    kinds = {each.dtype for each, other in ((a, b), (b, a)) if not is_weak(each, other)}
    if kinds == {"bool"} or any(each in SIGNED for each in kinds):
        return "int64"
    return "uint64"


def joined_dtype(a: Number, b: Number) -> str:
    """Return the dtype of a variable that is one number or the other."""
    if is_weak(a, b) or is_weak(b, a):
        return "uint64"
    joined = np.promote_types(a.dtype, b.dtype)
    return "int64" if joined.kind == "f" else str(joined)


def power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 2**64)
    return a ** (b % 2) if a in (1, -1) else 0


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "**": power,
    "<<": lambda a, b: a << b if 0 <= b < 64 else 0,
    ">>": lambda a, b: a >> (b if 0 <= b < 64 else 64),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
UNARY: dict[str, Callable[[int], int]] = {
    "(-a)": operator.neg,
    "(~a)": operator.invert,
    "(+a)": operator.pos,
    "abs(a)": abs,
}


def unary_result(operation: Callable[[int], int], a: Number) -> Number:
    """Compute in the dtype of an integer; a Boolean counts as an int64, except for ``~``."""
    if a.dtype == "bool" and operation is operator.invert:
        return Number(1 - a.value, "bool")
    dtype = "int64" if a.dtype == "bool" else a.dtype
    return Number(operation(a.value), dtype).to(dtype)


def computed(operation: str, a: Number, b: Number) -> Number:
    dtype = arithmetic_dtype(a, b)
    if operation in ("<<", ">>"):  # the type is that of the left operand
        dtype = "uint64" if a.dtype in UNSIGNED else "int64"
    elif operation in ("&", "|", "^") and a.dtype == b.dtype == "bool":
        dtype = "bool"
    if operation in ("<<", ">>", "//", "%"):
        return Number(OPERATIONS[operation](a.value, b.value), dtype).to(dtype)
    second = b if operation == "**" else b.to(dtype)  # exponents keep their type
    return Number(OPERATIONS[operation](a.to(dtype).value, second.value), dtype).to(dtype)


def looped(operation: str, a: Number, b: Number) -> Number:
    """Compute ``t = a``, then three times ``t = t operation b``."""
    joined = a
    for _ in range(4):
        after = computed(operation, joined, b)
        dtype = joined_dtype(joined, after)
        joined = Number(a.value, dtype).to(dtype)
    total = a.to(joined.dtype)
    for _ in range(3):
        total = computed(operation, total, b).to(joined.dtype)
    return total


def extreme(choose: Callable[..., int], a: Number, b: Number) -> Number:
    """Compute ``min`` or ``max``, whose type holds either operand."""
    dtype = joined_dtype(a, b)
    mixed = "uint64" in (a.dtype, b.dtype) and (a.dtype in SIGNED or b.dtype in SIGNED)
    if mixed and not (is_weak(a, b) or is_weak(b, a)):
        dtype = "int64" if choose is min else "uint64"
    return Number(choose(a.value, b.value), dtype).to(dtype)


# --- the kernels ----------------------------------------------------------------------------------


def bits_and_sign(number: Number) -> list[int]:
    """Return a result's columns: its low bits, and a quotient that depends on its type."""
    return [number.value % 2**64, computed("//", number, Number(3, "int64", True)).value % 2**64]


def operations_with(b: Number | None) -> list[str]:
    """Return the operations; a power by a negative literal is a float."""
    is_float = b is not None and b.is_literal and b.value < 0
    return [each for each in OPERATIONS if not (is_float and each == "**")]


def expected_row(a: Number, b: Number) -> list[int]:
    row: list[int] = []
    for operation in operations_with(b):
        row += bits_and_sign(computed(operation, a, b))  # an expression
        row += bits_and_sign(computed(operation, a, b))  # an augmented assignment
        row += bits_and_sign(looped(operation, a, b))
    for name in ("+", "-", "*"):  # comparisons of results that wrap
        result = computed(name, a, b).value
        row += [int(result > 0), 0, int(result < a.value), 0, int(result >= b.value), 0]
    for unary in UNARY.values():
        result = unary_result(unary, a)
        row += [*bits_and_sign(result), int(result.value > 0), 0]
    for compare in COMPARISONS.values():
        row += [int(compare(a.value, b.value)), 0]
    for choose in (min, max):
        row += bits_and_sign(extreme(choose, a, b))
    joined = joined_dtype(a, b)
    is_first = a.value % 2 == 1
    one = (a if is_first else b).to(joined)
    row += bits_and_sign(one)  # branches
    row += bits_and_sign(one)  # a conditional expression
    row += bits_and_sign(one)  # a function with two returns
    row += bits_and_sign(computed("+", a, b))  # a function that adds its arguments
    return row


def source_of_kernel(second: str, operations: list[str]) -> tuple[str, int]:
    lines = [
        "@dp.device_func",
        "def either(a, b, is_first):",
        "    if is_first:",
        "        return a",
        "    return b",
        "@dp.device_func",
        "def total(a, b):",
        "    return a + b",
        "@dp.kernel",
        "def compute(item, x, y, out):",
        "    i = item.get_id(0)",
        "    a = x[i]",
        f"    b = {second}",
    ]
    column = 0

    def write(value: str, *, is_number: bool = True) -> None:
        nonlocal column
        lines.append(f"    out[i, {column}] = {value}")
        if is_number:
            lines.append(f"    out[i, {column + 1}] = ({value}) // 3")
        column += 2

    for number, name in enumerate(operations):
        write(f"a {name} b")
        lines.append(f"    s{number} = a")
        lines.append(f"    s{number} {name}= b")
        write(f"s{number}")
        lines.append(f"    t{number} = a")
        lines.append("    for _ in range(3):")
        lines.append(f"        t{number} = t{number} {name} b")
        write(f"t{number}")
    for name in ("+", "-", "*"):
        for comparison in ("> 0", "< a", ">= b"):
            write(f"(a {name} b) {comparison}", is_number=False)
    for text in UNARY:
        write(text)
        write(f"{text} > 0", is_number=False)
    for name in COMPARISONS:
        write(f"a {name} b", is_number=False)
    write("min(a, b)")
    write("max(a, b)")
    lines += ["    m = a", "    if a % 2 != 1:", "        m = b"]
    write("m")
    write("a if a % 2 == 1 else b")
    write("either(a, b, a % 2 == 1)")
    write("total(a, b)")
    return "\n".join(lines), column


def kernel_with(second: str, operations: list[str]) -> tuple[Any, int]:
    """Return the kernel whose second operand is this text, and the number of its columns."""
    text, columns = source_of_kernel(second, operations)
    name = f"<integer rules, {second}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"dp": dp, "np": np}
    exec(compile(text, name, "exec"), scope)
    return scope["compute"], columns


def values_of(dtype: str) -> list[int]:
    if dtype == "bool":
        return [0, 1]
    info = np.iinfo(dtype)
    inside = [0, 1, 2, 5, 63, 64, info.max - 1, info.max]
    return inside + ([-1, -3, info.min] if info.min else [])


def compare_with_rules(
    run: Callable[..., Any], first: str, second: str, literal: int | None = None
) -> None:
    operations = operations_with(None if literal is None else Number(literal, "int64", True))
    kernel, columns = kernel_with("y[i]" if literal is None else str(literal), operations)
    pairs = list(itertools.product(values_of(first), values_of(second)))
    x = np.array([a for a, _ in pairs], first)
    y = np.array([b for _, b in pairs], second)
    expected = np.array(
        [
            expected_row(
                Number(a, first),
                Number(b, second) if literal is None else Number(literal, "int64", True),
            )
            for a, b in pairs
        ],
        np.uint64,
    )
    out = dp.zeros((len(pairs), columns), dtype="uint64")
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelTypeWarning)
        run(kernel, dp.Range(len(pairs)), dp.asarray(x), dp.asarray(y), out)
    found = out.asnumpy()
    rows, wrong = np.nonzero(found != expected)
    texts = [line for line in source_of_kernel("b", operations)[0].splitlines() if "out[i" in line]
    assert not len(rows), (
        f"{run.__name__}, {first} and {second if literal is None else literal}: "
        + "; ".join(
            f"a={pairs[row][0]}, b={pairs[row][1]}: "
            f"{next(text for text in texts if f'out[i, {column}]' in text).strip()} "
            f"gave {found[row, column]}, not {expected[row, column]}"
            for row, column in list(zip(rows, wrong, strict=True))[:6]
        )
        + f" ({len(rows)} in all)"
    )


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
def largest_after_minus_one(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    s = -1
    for i in range(a.shape[0]):
        s = max(s, a[i])
    out[0] = s


@dp.kernel
def hashed(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    h = a[0] - LARGE + 5381
    for k in range(b.shape[0]):
        h = h * 31 + b[k] % 256
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
    *(largest_in_a_loop, sums_and_quotients, bits, largest_after_minus_one, hashed, of_either),
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
