"""Iterations of ``prange`` loops that depend on each other are refused before anything runs."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

REFUSED = dp.exceptions.KernelCompileError


def function_of(body: str, loop: str = "for i in dp.prange(len(a)):", after: str = "m") -> Any:
    """Return ``f(a, b, c)``, whose loop has a body; ``c`` has two dimensions."""
    lines = [line for each in body.split("; ") for line in each.split("\n")]
    text = (
        "def f(a, b, c):\n    def add(v):\n        return v + m\n"
        "    a[0] = 100\n    m = k = t = 0\n"
        f"    {loop}\n"
        + "".join(" " * 16 + line + "\n" for line in lines)
        + f"    return {after}\n"
    )
    name = f"<function {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"dp": dp, "np": np}
    exec(compile(text, name, "exec"), space)
    function: Callable[..., Any] = space["f"]
    return function


def arguments() -> tuple[np.ndarray, ...]:
    return np.zeros(7), np.array([1.0, 2, 1, 3, 0, 2, 1]), np.arange(21.0).reshape(7, 3)


def assert_refused(function: Any, message: str) -> None:
    arrays = [dp.asarray(x) for x in arguments()]
    compiled = dp.jit(function)
    with pytest.raises(REFUSED, match=message):
        compiled(*arrays)
    with dp.config.override(debug=True), pytest.raises(REFUSED, match=message):
        compiled(*arrays)
    with pytest.raises(REFUSED, match=message):
        dp.simulate(compiled, *arrays)
    assert arrays[0].tolist() == [0] * 7  # no statement has run


def assert_same(function: Any) -> None:
    hosts = arguments()
    wanted = function(*hosts)
    arrays = [dp.asarray(x) for x in arguments()]
    found = dp.jit(cache=False)(function)(*arrays)
    np.testing.assert_array_equal(np.asarray(dp.asarray(found).asnumpy()), np.asarray(wanted))
    for one, other in zip(arrays, hosts, strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other)


READS = [
    "a[i] = m + b[i]; m += b[i]",
    "t = m + b[i]; m += b[i]; a[i] = t",
    "m += b[i]; a[i] = m",
    "a[m] = b[i]; m += 1",
    "m += 1\nif m > 3:\n    a[i] = 1",
    "if i > 2:\n    m += 1\nelse:\n    a[i] = m",
    "m = max(m, b[i]); a[i] = abs(m)",
    "if b[i] == m:\n    a[i] = i\nm = max(m, b[i])",
    "m = min(m, b[i]); k = max(k, b[i] - m)",
    "m += b[i]; k += m",
    "m += k; k += m",
    "if m < 4:\n    m += b[i]",
    "for j in range(m):\n    a[i] += 1\nm += 1",
    "for j in range(2):\n    m += 1\n    a[i] += m",
    "while m < 3:\n    m += 1",
    "m += b[i]\na[i] = (lambda: m)()",
    "m[0] = 1; m += b[i]",
]


@pytest.mark.sample(len(READS))
@pytest.mark.parametrize("body", READS)
def test_a_reduction_is_read_after_the_loop_only(body: str) -> None:
    assert_refused(
        function_of(body), r"is a reduction(.|\n)*\^\nread \w after the loop, or use range"
    )


CARRIED = [
    "a[i] = t; t = b[i]",
    "if i > 0:\n    a[i] = t\nt = b[i]",
    "t: float\na[i] = t; t = b[i]",
    "a[i] = t\nfor t in range(3):\n    a[i] += t",
    "m, k = m + b[i], m",
    "m = k = m + b[i]",
    "m = max(m, m + 1)",
    "m += m",
    "m = m + b[i] + m",
    "m = (m + b[i]) % 7",
    "m = m and b[i] > 0",
    "m = m or b[i] > 0",
    "m = b[i] if b[i] > m else m",
    "m += 1; m *= 2",
    "if b[i] > m:\n    m = b[i] + 1",
    "if b[i] < m:\n    m = b[i]\nif b[i] > m:\n    m = b[i]",
    "if b[i] > m and m > 1:\n    m = b[i]",
    "if b[i] > m:\n    m = b[i]\n    k = i - m",
    "if b[i] > m:\n    m = b[i]\nelse:\n    a[i] = 1",
    "m = b[i] - m",
]


@pytest.mark.sample(len(CARRIED))
@pytest.mark.parametrize("body", CARRIED)
def test_no_other_value_is_carried_to_the_next_iteration(body: str) -> None:
    assert_refused(
        function_of(body), r"'[mt]' (carries|is a red)(.|\n)*\^(.|\n)*use range for this"
    )


@pytest.mark.parametrize("after", ["t", "i", "a[i - 1]"])
def test_the_last_value_of_a_variable_is_not_kept(after: str) -> None:
    assert_refused(
        function_of("t = b[i]; a[i] = t", after=after), r"'[it]' is read after the prange"
    )


def test_the_next_iteration_of_a_loop_around_reads_no_variable() -> None:
    loop = "for k in range(2):\n     a[1] = t\n     for i in dp.prange(len(a)):"
    assert_refused(function_of("t = b[i]; a[i] = t", loop), "'t' is read after the prange")


@pytest.mark.parametrize("body", ["m = b[i]; a[i] = add(1)", "m += b[i]; a[i] = add(1)"])
def test_a_local_function_reads_no_variable_of_the_iterations(body: str) -> None:
    assert_refused(
        function_of(body, after="0"), "'add' .* reads 'm'(.|\n)*pass m to add as an argu"
    )


FIXED = [
    "a[0] += b[i]",
    "a[:] += b[i]",
    "a[0] = max(a[0], b[i])",
    "if b[i] > a[0]:\n    a[0] = b[i]",
    "a[0] = b[i]",
    "a[k] += b[i]",
    "for j in range(3):\n    a[j] += c[i, j]",
    "for j in range(3):\n    a[j] = c[i, j]\nb[i] = a.sum()",
    "for j in range(c.shape[1]):\n    if c[i, j] > 3:\n        a[j] += 1",
]


@pytest.mark.sample(len(FIXED))
@pytest.mark.parametrize("body", FIXED)
def test_a_reduction_is_not_an_element_of_an_array(body: str) -> None:
    message = r"all iterations of the prange loop write a\[(.|\n)*\^\nsum into a variable"
    assert_refused(function_of(body), message)


@pytest.mark.parametrize("body", [
    "m += c[i, j]; c[i, j] = m", "a[0] += c[i, j]", "a[j] += c[i, j]", "c[i, j] = t; t = c[i, j]",
])  # fmt: skip
@pytest.mark.parametrize("depth", [2, 3])
def test_iterations_of_collapsed_loops(body: str, depth: int) -> None:
    loop = "for i in dp.prange(7):\n     for j in dp.prange(3):"
    if depth == 3:
        loop += "\n      for l in dp.prange(2):"
    assert_refused(function_of(body, loop), "reduc|write a|carries")


def test_an_inner_loop_that_depends_on_the_order_runs_in_order() -> None:
    loop = "for i in dp.prange(7):\n     for j in dp.prange(3):"
    assert_same(function_of("a[i] += c[i, j]", loop))
    assert_same(function_of("t = c[i, j]; a[i] = t", loop))


def test_guards_and_elements_of_single_iterations() -> None:
    assert_same(
        function_of(
            "if b[i] > m:\n    m = b[i]\n"
            "if b[i] == 0 and k >= -b[i]:\n    k = min(k, -b[i])\n"
            "t += 1; t -= b[i]\n"
            "if i == 2:\n    a[0] += b[i]\n"
            "if b[i] > 2:\n    c[0, 0] = 1\n"
            "j = i; c[j, 1] += 1; n = 1; n += b[i]; c[i, 2] = n",
            after="m, k, t",
        )
    )


def test_a_reduction_of_an_array_that_the_loop_reads_is_refused() -> None:
    def f(x: Any) -> None:
        row = x[0]
        for i in dp.prange(1, x.shape[0]):
            row += np.sort(x[i])

    host = arguments()[2]
    x, y = dp.asarray(host), dp.zeros(3)
    compiled = dp.jit(f)
    with pytest.raises(REFUSED, match=r"'row' is a reduction, and the loop(.|\n)*row\.copy"):
        compiled(x)
    np.testing.assert_array_equal(x.asnumpy(), host)

    def copied(x: Any, row: Any) -> None:
        for i in dp.prange(1, x.shape[0]):
            row += np.sort(x[i])

    dp.jit(cache=False)(copied)(x, y)
    np.testing.assert_array_equal(y.asnumpy(), host[1:].sum(axis=0))
