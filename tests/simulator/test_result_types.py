"""Each expression has the same type and value in the simulator as on a device, for all dtypes.

NumPy's numbers decide which expressions there are; kernels refuse the others.
"""

from __future__ import annotations

import itertools
import linecache
import math
from typing import Any

import numpy as np
import pytest

import dparray as dp

REAL = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", ">", ">=")
BINARY = (
    *(f"a {symbol} b" for symbol in OPERATORS),
    *("min(a, b)", "max(a, b)", "max(b, 1, a)", "min(a, b, a)", "pow(a, b)", "sum((a, b))"),
    *("divmod(a, b)[0]", "divmod(a, b)[1]", "a if a else b", "a or b", "(a, b)[1]"),
    *("abs(a) * b", "-a + b", "(-a) * (-b)", "max(a, b) * b", "np.float32(1.1) * max(a, b)"),
    *(f"math.{name}(a, b)" for name in ("atan2", "copysign", "fmod", "hypot", "nextafter", "pow")),
    "np.float32(1.1) * math.copysign(a, b)",
)
BITS = ("a << b", "a >> b", "a & b", "a | b", "a ^ b", "math.ldexp(a, b)", "~(a | b)")
UNARY = (
    *("-a", "+a", "abs(a)", "-abs(a)", "round(a)", "round(a, 1)", "int(a)", "float(a)", "bool(a)"),
    *("a + 1", "1 - a", "a * 2.0", "a * np.float32(2)", "a // 2", "a ** 2", "a ** -1", "2 ** a"),
    *("a ** 0.5", "max(a, 1)", "max(a, a, 1)", "min(a, 2.5)", "max(a, True)", "divmod(a, 3)[0]"),
    *("pow(a, 2)", "sum((a, a))", "np.float32(1.1) * -a", "np.float32(1.1) * abs(a)", "True + a"),
    *("np.int8(a)", "np.uint32(a)", "np.float16(a) + a", "math.ldexp(a, 2)", "a and 2"),
    *(f"math.{name}(a)" for name in ("sqrt", "exp", "erf", "gamma", "degrees", "fabs", "isnan")),
)


def kernel_of(expressions: tuple[str, ...], count: int) -> Any:
    """Return a kernel that calls a device function for each expression."""
    names, arrays = ", ".join("ab"[:count]), ", ".join("xy"[:count])
    elements = ", ".join(f"{name}[i]" for name in "xy"[:count])
    lines = []
    for at, expression in enumerate(expressions):
        lines += ["@dp.device_func", f"def compute{at}({names}):", f"    return {expression}"]
    lines += ["@dp.kernel", f"def kernel(item, {arrays}, out):", "    i = item.get_id(0)"]
    lines += [f"    out[i, {at}] = compute{at}({elements})" for at in range(len(expressions))]
    text, name = "\n".join(lines), f"<{len(expressions)} expressions of {count}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"dp": dp, "np": np, "math": math}
    exec(compile(text, name, "exec"), scope)
    return scope["kernel"]


def is_numpys(expression: str, dtypes: tuple[str, ...]) -> bool:
    """Return whether NumPy's numbers of these types can be computed with in this way."""
    names = {"np": np, "math": math} | {
        name: np.dtype(dtype).type(1) for name, dtype in zip("ab", dtypes, strict=False)
    }
    try:
        eval(expression, names)
    except TypeError:  # Python's round takes no Boolean of NumPy.
        return "math." in expression or "round(" in expression
    except OverflowError:
        return False
    except ValueError as error:
        return "negative integer powers" not in str(error)
    return True


def differences(expressions: tuple[str, ...], dtypes: tuple[str, ...]) -> list[str]:
    """Return the differences of types and values between device and simulator."""
    refused = [each for each in expressions if not is_numpys(each, dtypes)]
    one = [dp.zeros(1, dtype=dtype) for dtype in dtypes]
    for expression in refused:
        with pytest.raises(dp.exceptions.KernelCompileError, match=r"as in NumPy|does not fit"):
            kernel_of((expression,), len(dtypes))[1](*one, dp.zeros((1, 1)))
    expressions = tuple(each for each in expressions if each not in refused)
    kernel = kernel_of(expressions, len(dtypes))
    samples = (np.asarray([2.25, 3.0, 1.0, 0.0]).astype(dtype) for dtype in dtypes)
    arguments = [dp.asarray(each.ravel()) for each in np.meshgrid(*samples)]
    outs = [dp.zeros((arguments[0].size, len(expressions))) for _ in range(2)]
    for run, out in zip((dp.call_kernel, dp.simulate), outs, strict=True):
        run(kernel, dp.Range(len(out)), *arguments, out)
    first = np.zeros((1, len(expressions)))  # in Python, as under a debugger
    dp.simulate(kernel, dp.Range(1), *(each[:1].asnumpy() for each in arguments), first, item=0)
    device, simulated = (out.asnumpy().T for out in outs)
    tolerance = 1e-6 if "float32" in dtypes or "float16" in dtypes else 1e-14
    return [
        f"{expression} of {dtypes}: {device[at]} on the device, {simulated[at]} simulated, "
        f"{first[0, at]} in Python"
        for at, expression in enumerate(expressions)
        if not np.allclose(device[at], simulated[at], rtol=tolerance, atol=0, equal_nan=True)
        or not np.allclose(device[at, 0], first[0, at], rtol=tolerance, equal_nan=True)
    ]


pytestmark = pytest.mark.filterwarnings("ignore::dparray.exceptions.KernelTypeWarning")


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", REAL)
def test_expressions_of_one_number(dtype: str) -> None:
    assert differences(UNARY, (dtype,)) == []


PAIRS = [
    *(("int8", "float32"), ("int32", "float32"), ("uint64", "int64"), ("bool", "int8")),
    *(("uint64", "bool"), ("uint8", "uint64"), ("float16", "int16"), ("bool", "bool")),
    *(("float32", "float32"), ("int64", "float64"), ("uint64", "float32")),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_expressions_of_two_numbers(first: str, second: str) -> None:
    expressions = BINARY if "float" in first + second else BINARY + BITS
    assert differences(expressions, (first, second)) == []


if __name__ == "__main__":
    for pair in itertools.product(REAL, REAL):
        print(*differences(BINARY, pair), sep="\n", end="")
