"""Values that loops compute from their counters, and only later code reads.

Intel's CPU compiler moved the computation after the loops, where it read a loop's counter one step
late.
"""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import dparray as dp

_KERNEL = """
def program(item, n, x, out):
    i = item.get_id(0)
    m = n[i]
    v = x[i]
    c = m
    for k in range(m):
        c = {first}
        for j in range({steps}):
            c = {next}
    out[i] = c
"""


_KEPT_AND_READ_IN_ANOTHER_LOOP = """
def program(item, n, x, out):
    i = item.get_id(0)
    m = n[i]
    v = x[i]
    b = 1
    c = m
    for k in range(m):
        c = m | v
        j = 0
        while j < k & 3:
            j += 1
            b = v & i
            c = (j * 6) % 6
    k = 0
    while k != (m if m > 0 else 0):
        k += 1
        b = (i * i) % 6
        j = 0
        while j != (k & 3 if k & 3 > 0 else 0):
            j += 1
            b = i + c
    out[i] = b
"""


class _Item:
    def __init__(self, number: int) -> None:
        self.number = number

    def get_id(self, dimension: int) -> int:
        return self.number


@pytest.mark.parametrize(
    ("first", "steps", "next"),
    [
        ("v ^ k", "m", "c + m"),
        ("v ^ k", "m", "c + 3"),
        ("v ^ k", "5", "c * 3 + j"),
        ("(v + 7 * k) // 5", "m", "c + j"),
        ("(v + 7 * k) % 5", "7", "c + j"),
        ("x[k]", "m", "c + j"),
        ("x[k] - k", "3", "c + m"),
        ("k * k * k", "k", "c + m"),
        ("v - k", "m", "(c + m) & 255"),
        ("0", "6", "(v ^ k) + m"),
    ],
)
@pytest.mark.parametrize("size", [3, 11, 35])
def test_values_of_inner_loops_are_those_of_the_last_step(
    first: str, steps: str, next: str, size: int
) -> None:
    _compare(_KERNEL.format(first=first, steps=steps, next=next), size)


@pytest.mark.parametrize("size", [3, 11, 19, 35])
def test_values_of_a_loop_are_read_in_another_loop(size: int) -> None:
    _compare(_KEPT_AND_READ_IN_ANOTHER_LOOP, size)


def _compare(text: str, size: int) -> None:
    name = f"<nested loops {hash(text):x}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {}
    exec(compile(text, name, "exec"), scope)
    counts, values = np.arange(size) % 8, np.arange(size) * 3 + 11
    wanted = np.zeros(size, "int64")
    for number in range(size):
        scope["program"](_Item(number), counts.tolist(), values.tolist(), wanted)
    out = dp.zeros(size, dtype="int64")
    kernel = dp.kernel(scope["program"])
    dp.call_kernel(kernel, dp.Range(size), dp.asarray(counts), dp.asarray(values), out)
    np.testing.assert_array_equal(out.asnumpy(), wanted)
