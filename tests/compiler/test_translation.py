"""Generated text is compiled without Numba, and has the same meaning as with Numba."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._codegen.elementwise import function_of
from dparray._compiler import compile
from dparray.exceptions import KernelCompileError
from tests.support import TARGET

# Operands of all kinds in combination, also with literals.
EXPRESSIONS = [
    "{0} // {1}",
    "{0} % {1}",
    "{0} // 3",
    "{0} % 7",
    "{0} / {1}",
    "{0} + {1} * 2",
    "-{0}",
    "~{0} ^ {1}",
    "{0} & 6 | {1}",
    "({0} < {1}) | ({0} == 3)",
    "({0} >= {1}) & ({1} != 0)",
    "{0} << ({1} & 15)",
    "{0} >> ({1} & 7)",
    "abs(int16({0}))",
    "{0} if {0} > {1} else {1}",
    "{0} // {1} if {1} != 0 else {0}",
    "not {0} and {1} > 2 or {0} > 5",
    "int8({0}) - uint16({1})",
    "float32({0}) * float32(0.1)",
    "integer_power({0}, {1} & 7)",
    "half(float32({0}) * float32(1.1))",
    "int32({0}) % 3 + uint64(5)",
    "min(int64({0}), 3)",
    "max(int64({0}), int64({1}) * 2)",
    "max(uint64({0} & 15), uint64({1} & 7))",
]
PAIRS = [
    ("int8", "int8"),
    ("uint8", "int16"),
    ("uint32", "int32"),
    ("int16", "uint16"),
    ("int64", "uint64"),
    ("uint64", "int32"),
    ("uint64", "uint64"),
    ("int64", "int64"),
]
# Generated code never divides one by the other, nor chooses one of them.
MIXED = {("int64", "uint64"), ("uint64", "int32")}
VALUES = [-128, -9, -7, -1, 0, 1, 2, 3, 7, 100]


def _text(pair: tuple[str, str]) -> str:
    lines = ["def numbers(item, a, b, out, size):", "    i = uint64(item.get_id(0))"]
    lines += ["    if i >= size:", "        return", "    x = a[i]", "    y = b[i]"]
    for place, expression in enumerate(EXPRESSIONS):
        if pair in MIXED and any(word in expression for word in ("// {1}", "% {1}", "if {")):
            continue
        value = f"float64({expression.format('x', 'y')})"
        lines.append(f"    out[uint64({place}) * size + i] = {value}")
    return "\n".join(lines) + "\n"


def _results(kernel: Any, pair: tuple[str, str]) -> np.ndarray:
    first, second = (np.array(VALUES).astype(kind) for kind in pair)
    a, b = np.repeat(first, len(VALUES)), np.tile(second, len(VALUES))
    out = dp.zeros(len(EXPRESSIONS) * a.size)
    dp.call_kernel(kernel, dp.Range(a.size), dp.asarray(a), dp.asarray(b), out, np.uint64(a.size))
    return out.asnumpy().reshape(len(EXPRESSIONS), a.size)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.sample(3)
def test_numbers_are_those_of_numba(pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = _text(pair)
    expected = _results(dp.kernel(function_of(text)), pair)
    obtained: list[str] = []

    def obtain(function: Any, types: Any, options: Any, target: Any, *others: Any) -> Any:
        obtained.append(function.__name__)
        return compile.compile_generated(text, types, options, target)

    monkeypatch.setattr(compile, "obtain_kernel", obtain)
    found = _results(dp.kernel(function_of(text)), pair)
    assert obtained == ["numbers"]
    for expression, ours, theirs in zip(EXPRESSIONS, found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=expression)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("out[i] = unknown", "unknown"),
        ("out[i] = erfcx(x)", "erfcx"),
        ("with x:\n        pass", "with"),
    ],
)
def test_text_that_is_not_in_the_language_is_refused(body: str, word: str) -> None:
    text = f"def f(item, a, out):\n    i = uint64(item.get_id(0))\n    x = a[i]\n    {body}\n"
    with pytest.raises(KernelCompileError, match=f"a bug in dparray.*{word}"):
        compile.compile_generated(text, ("item:1", "f4:1C", "f4:1C"), {}, TARGET)


def test_array_programs_import_no_numba(tmp_path: Any) -> None:
    program = """
    import sys
    import numpy as np
    import dparray as dp
    from dparray._evaluate import limits

    with limits.force("fused"):
        x = dp.asarray(np.arange(12.0).reshape(3, 4))
        y = (dp.exp(x) * 2 + x // 3) % 5
        z = (x - x.mean(axis=0)) / x.std(axis=1, keepdims=True)
        print(y.tolist(), z.tolist(), dp.argmax(x, axis=1).tolist())
    assert "numba" not in sys.modules
    assert "llvmlite" not in sys.modules
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "DPARRAY_CACHE_DIR": str(tmp_path)},
    )


BETWEEN_EQUAL_CONDITIONS = """\
def waits(item, x, out, local):
    i = uint64(item.get_global_id(0))
    lane = uint64(item.get_local_id(0))
    group = item.get_group()
    if lane < 2:
        local[lane] = x[i] + 1
    else:
        local[lane] = x[i] * 2
    group_barrier(group, MemoryScope.WORK_GROUP)
    if lane < 2:
        out[i] = local[3 - lane]
    else:
        out[i] = 0 - local[3 - lane]
"""


def test_a_barrier_is_not_copied_into_the_branches_after_it() -> None:
    types = ("nditem:1", "i8:1C", "i8:1C", "local i8:1")
    kernel = compile.compile_generated(BETWEEN_EQUAL_CONDITIONS, types, {}, TARGET)
    assert len(re.findall(r"call [^\n]*ControlBarrier", kernel.llvm)) == 1
