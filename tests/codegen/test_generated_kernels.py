"""Random small kernels: the device and the simulator give the same results."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings

import dparray as dp
from dparray.exceptions import KernelCompileError
from tests.support import examples, execute

SIZE = 6
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]


@st.composite
def integer(draw: Any, depth: int) -> str:
    """Return an integer expression: elements of ``x`` and ``y``, the index, variables, literals."""
    if depth == 0:
        return draw(st.sampled_from(["i", "x[i]", "y[i]", "y[-1]", "n", "3", "7", "-2", "len(x)"]))
    inner = integer(depth - 1)
    kind = draw(st.sampled_from(["binary", "binary", "call", "choice", "unary", "shift", "cast"]))
    if kind == "binary":
        operator = draw(st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^"]))
        return f"({draw(inner)} {operator} {draw(inner)})"
    if kind == "shift":
        operator = draw(st.sampled_from(["<<", ">>"]))
        return f"({draw(inner)} {operator} {draw(st.integers(0, 5))})"
    if kind == "call":
        # The extremum of a uint64 and a signed integer is a float64, which has no bitwise
        # operations.
        name = draw(st.sampled_from(["min", "max"]))
        return f"{name}(np.int64({draw(inner)}), np.int64({draw(inner)}))"
    if kind == "unary":
        return draw(st.sampled_from(["(-{})", "(~{})", "({} ** 2)", "int({})"])).format(draw(inner))
    if kind == "cast":
        return f"np.{draw(st.sampled_from(INTEGERS))}({draw(inner)})"
    # Both branches have one type, as the compiler requires; the simulator uses the type of the
    # branch taken.
    first, second = draw(inner), draw(inner)
    return f"(np.int64({first}) if {draw(condition(depth - 1))} else np.int64({second}))"


#: Refusals of expressions that NumPy refuses, too: ``y[i] + -2`` of uint8, and ``&`` of uint64 and
#: a signed integer or the float64 that is their sum.
REFUSED_AS_BY_NUMPY = ("does not fit", "has no type", "works on integers")


@st.composite
def real(draw: Any, depth: int) -> str:
    """Return a float expression: elements of ``a`` and ``b``, a variable, literals."""
    if depth == 0:
        return draw(st.sampled_from(["a[i]", "b[i]", "b[-2]", "v", "0.5", "2.0", "float(i)"]))
    inner = real(depth - 1)
    kind = draw(st.sampled_from(["binary", "binary", "call", "choice", "unary", "cast", "mixed"]))
    if kind == "binary":
        return f"({draw(inner)} {draw(st.sampled_from(['+', '-', '*']))} {draw(inner)})"
    if kind == "call":
        return f"{draw(st.sampled_from(['min', 'max']))}({draw(inner)}, {draw(inner)})"
    if kind == "unary":
        forms = ["(-{})", "abs({})", "({} ** 2)", "math.sqrt(abs({}))", "({} / 4.0)"]
        return draw(st.sampled_from(forms)).format(draw(inner))
    if kind == "cast":
        return f"np.{draw(st.sampled_from(FLOATS))}({draw(inner)})"
    if kind == "mixed":
        return f"({draw(inner)} + i * 2)"
    return f"(float({draw(inner)}) if {draw(condition(depth - 1))} else float({draw(inner)}))"


@st.composite
def condition(draw: Any, depth: int) -> str:
    comparison = draw(st.sampled_from(["<", "<=", "==", "!=", ">", ">="]))
    first = f"{draw(integer(depth))} {comparison} {draw(integer(depth))}"
    kind = draw(st.sampled_from(["plain", "not", "and", "or"]))
    if kind == "plain":
        return first
    if kind == "not":
        return f"not {first}"
    return f"i % 2 == 0 {kind} {first}"


@st.composite
def kernels(draw: Any) -> str:
    """Return a kernel with a loop, branches and variables that change in them."""
    lines = [
        "def kernel(item, x, y, a, b, integers, reals):",
        "    i = item.get_id(0)",
        "    n = np.int64(x[i])",
        "    v = 0.25",
        f"    for j in range({draw(st.integers(0, 4))}):",
        f"        n = np.int64(n * 3 + {draw(integer(2))})",
        f"        if {draw(condition(1))}:",
        f"            {draw(st.sampled_from(['break', 'continue', 'n = n ^ j', 'v = v + j']))}",
        f"        v = float(min(max({draw(real(2))}, -9.0), 9.0))",
    ]
    lines += [f"    integers[i, {place}] = {draw(integer(2))}" for place in range(3)]
    lines += [f"    reals[i, {place}] = {draw(real(2))}" for place in range(3)]
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=kernels(),
    kinds=st.tuples(*[st.sampled_from(INTEGERS)] * 2, *[st.sampled_from(FLOATS)] * 2),
    seed=st.integers(0, 1000),
)
def test_device_and_simulator_agree(text: str, kinds: tuple[str, ...], seed: int) -> None:
    scope: dict[str, Any] = {"np": np, "math": math}
    execute(text, scope)
    kernel = dp.kernel(scope["kernel"])
    rng = np.random.default_rng(seed)
    arrays = [
        (rng.integers(-100, 100, SIZE) if place < 2 else rng.normal(size=SIZE)).astype(kind)
        for place, kind in enumerate(kinds)
    ]
    arrays += [np.zeros((SIZE, 3), np.int64), np.zeros((SIZE, 3))]
    on_device = [dp.asarray(array) for array in arrays]
    try:
        kernel[SIZE](*on_device)
    except KernelCompileError as error:
        if not any(each in str(error) for each in REFUSED_AS_BY_NUMPY):
            raise
        reject()
    dp.simulate(kernel, SIZE, *arrays)
    np.testing.assert_array_equal(on_device[-2].asnumpy(), arrays[-2], err_msg=text)
    np.testing.assert_allclose(
        on_device[-1].asnumpy(), arrays[-1], rtol=1e-4, atol=1e-4, err_msg=text
    )
