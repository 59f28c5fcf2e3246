"""A refusal names the line and the part of it, says what is wrong, and how to fix it."""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._language.errors import Refusal, described_refusal
from dparray._language.frontend import translation

PLAIN = [1, 2]


@dp.device_func
def asks_for_a_color(value: Any) -> Any:
    return value.color


@dp.device_func
def factorial(n: Any) -> Any:
    return 1 if n < 2 else n * factorial(n - 1)


def kernel_of(body: str, file: str) -> Callable[..., Any]:
    """Return a kernel of ``x``, whose source is registered as that of a file."""
    lines = ["def wrong(item, x):", *(f"    {line}" for line in body.splitlines())]
    text = "\n".join(lines) + "\n"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = dict(globals())
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    kernel: Callable[..., Any] = scope["wrong"]
    return kernel


def refused(body: str, keys: tuple[str, ...] = ("nditem:1", "f8:1C")) -> tuple[Refusal, str]:
    kernel = kernel_of(body, f"<refused {abs(hash(body))}>")
    with pytest.raises(Refusal) as caught:
        translation(kernel, keys)
    return caught.value, described_refusal(caught.value, kernel, ("x: float64[1-D, C]",))


#: The body of a kernel, the part that is marked, and the sentence.
CASES = [
    ("x[0] = x[0] * 10**33", "10**33", r"10\*\*33 does not fit into 64 bits: write a float"),
    ("x[0] = x[1:3]", "x[0]", r"what is assigned is float64\[1-D, C\], a whole array"),
    ("x[0, 0] = 1", "x[0, 0]", r"too many indices for float64\[1-D, C\]: it takes 1, and 2"),
    ("x[x[0]] = 1", "x[x[0]]", "an index is an integer, and this one is float64"),
    ("x[0] = 2j", "x[0]", r"a complex128 does not fit into .* write its \.real"),
    ("a, b = (1, 2, x[0])", "a, b", "2 names are assigned from 3 values"),
    ("x[0] = missing", "missing", "the name 'missing' is not defined"),
    ("x[0] = PLAIN[0]", "PLAIN", "PLAIN is a list of the host: a few constants can be a tuple"),
    ("x[0] = max(x)", "max(x)", r"max\(x\) works on whole arrays"),
    ("x[0] = math.sqr(x[1])", "math.sqr", r"'math' has no attribute 'sqr'; did you mean sqrt\?"),
    ("x[0] = math.comb(3, 2)", "math.comb(3, 2)", "math.comb is not available in a kernel"),
    ("x[0] = item.get_id(0)", "item.get_id", r"did you mean get_global_id\(0\)\?"),
    ("x[0] = item.get_global_id(3)", "item.get_global_id(3)", "has only dimension 0; got dim"),
    ("y = x[0] if x[1] > 2 else (1, 2)", "x[0] if x[1] > 2 else (1, 2)", "a value would be float"),
    ("f = math.sin if x[0] > 1 else math.cos", "math.sin if x[0] > 1 else math.cos", "choose one"),
    ("y = 1\ny[0] = 2", "y[0]", "what is indexed is one int64, which has no elements"),
    ("y = {}", "{}", "a dict is not available in device code: .* use dp.PrivateArray"),
    ("raise ValueError", "raise ValueError", "raising an exception is not available"),
    ("x[0] = x[0] & 1", "x[0] & 1", "& works on integers, and an operand is float64"),
    ("for i in range(0, 9, 0): x[i] = 1", "range(0, 9, 0)", "the step of a range is not 0"),
    ("dp.group_barrier(item)", "dp.group_barrier(item)", r"takes item\.get_group\(\)"),
    ("y = dp.PrivateArray(len(x), float)", "dp.PrivateArray(len(x), float)", "a constant shape"),
    (
        "x[0] = dp.vec(1, 2, 3)",
        "x[0] = dp.vec(1, 2, 3)",
        "a vector of 3: take one of its",
    ),
    ("n = 2\nfor k in range(3): n = n ** (k - 1)", "n ** (k - 1)", r"or x \*\* max\(k, 0\)"),
    ("x[0] = 2 ** int(x[0])", "2 ** int(x[0])", "the exponent of this power of integers may be"),
    ("y = dp.PrivateArray(2**32, int)", "dp.PrivateArray(2**32, int)", r"at most 2\*\*31 - 1"),
    ("item.get_sub_group().get_local_id(0)", "item.get_sub_group().get_local_id(0)", "no argument"),
    ("x[0] = None", "x[0] = None", "a value used here is None"),
    ("print(x)", "print(x)", r"print takes numbers and strings in a kernel; got float64\[1-D"),
]


@pytest.mark.parametrize(("body", "marked", "words"), CASES, ids=[each[0] for each in CASES])
def test_the_message_marks_the_part_that_is_wrong(body: str, marked: str, words: str) -> None:
    refusal, text = refused(body)
    assert isinstance(refusal.node, ast.expr | ast.stmt)
    head, place, line, carets, *sentence = text.splitlines()
    assert head == "kernel wrong does not compile for (x: float64[1-D, C])"
    assert place.endswith(f":{len(body.splitlines()) + 1}")
    start = carets.index("^")
    width = carets.count("^")
    assert marked.startswith(line[start : start + width])
    assert marked[:4] == line[start : start + 4]
    assert len(sentence) == 1
    with pytest.raises(Refusal, match=words):
        raise refusal


def test_a_part_of_a_device_function_is_shown_with_the_function() -> None:
    _, text = refused("x[0] = asks_for_a_color(x[0])")
    assert "in the device function asks_for_a_color:" in text
    assert "return value.color" in text
    assert "there is no attribute 'color' on float64" in text


def test_recursion_is_refused_where_a_function_calls_itself() -> None:
    _, text = refused("x[0] = factorial(item.get_global_id(0))")
    assert "factorial(n - 1)" in text
    assert "recursion is not available in device code: write a loop" in text


def test_a_name_is_not_read_before_the_text_assigns_it() -> None:
    body = "for k in range(3):\n    if k > 0 and last == k: x[0] += 1\n    last = k"
    refusal, _ = refused(body)
    assert "'last' may be read before it is assigned" in str(refusal)
    kernel = kernel_of(body.replace("if k > 0", "last = k - 1\n    if k > 0"), "<assigned>")
    translation(kernel, ("item:1", "f8:1C"))


def test_a_changed_file_is_not_the_source() -> None:
    kernel = kernel_of("x[0] = 1", "<changed>")
    lines = ["def wrong(item, x):\n", "    x[0] = 2\n"]
    linecache.cache["<changed>"] = (9, None, lines, "<changed>")
    with pytest.raises(Refusal, match="the source of wrong is not known"):
        translation(kernel, ("item:1", "f8:1C"))


def test_warnings_name_lines_and_operands() -> None:
    def kernel(item: Any, x: Any, whole: Any) -> None:
        i = item.get_id(0)
        y = x[i] * np.float32(2)
        y += x[i] * np.int32(3)
        whole[i, 0] = y

    advice = translation(kernel, ["item:2", "f4:1C", "i8:2C"]).advice
    assert advice.unread == (1,)
    assert advice.line == 1
    assert advice.double == "float32 * int32 is float64 in `y += x[i] * np.int32(3)`"
    ((line, text),) = advice.cuts
    assert line == 4
    assert "float64 is written into an array of int64, which drops the fraction" in text


def test_an_argument_of_float64_comes_first() -> None:
    def kernel(item: Any, x: Any, factor: Any) -> None:
        x[0] *= factor * math.pi

    advice = translation(kernel, ["item:1", "f4:1C", "f8"]).advice
    assert advice.double == "its argument factor is float64"
