"""Assignments whose source and target overlap."""

from __future__ import annotations

import linecache
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dparray as dp
from dparray._language import arrays as arrays_of_language

_ROWS = ["m[0, 1:] = m[0, :0:-1]", "m[0, 1:] = m[0, :-1]", "m[1:] = m[:-1]", "m[:] = m[::-1]",
         "m[:, :] = m[:, ::-1]", "m[:-1, 1:] = m[1:, :-1]", "m[:, 1:] += m[:, :-1]",
         "m[0] = m[:, 0]", "m[:, 1] = m[:, 0]", "m[1], m[0] = m[0], m[1]",
         "m[1:], m[0] = m[:-1], m[1]",
         "m[:] = m.T", "m[0][1:] = m[0][:-1]", "m[1:] = (m if k else m[::-1])[:-1]",
         "np.add(m[:-1], 1, m[1:])", "np.add(m[:, ::-1], m, out=m)", "m[:] = m.T.reshape(m.shape)",
         "m[0, 1:] = m[1, :-1] = m[0, :-1]"]  # fmt: skip
_VECTORS = ["x[1:] = x[:-1]", "x[:-1] = x[1:]", "x[:] = x[::-1]", "x[1:] += x[:-1]",
            "x[1:] -= x[:-1] * 2 - x[1:]", "x[:-1:2] = x[1::2]", "x[::-1] = x",
            "np.subtract(x[:-1], 1, x[1:])", "y[:] = x", "y[1:] = x[:-1]", "y += x",
            "np.multiply(x, 2, out=y)", "y[2:2] = x[2:2]", "x[2:3] = x[1:2]",
            "x[np.array([2, 1, 0])] = x[:3]", "t = x[1:]; t[:] = x[:-1]",
            "x[1:] = y[:-1] = x[:-1]"]  # fmt: skip


def _function(body: list[str], name: str, parameters: str = "x, y, m, k") -> Any:
    text = "\n".join([f"def f({parameters}):", *(f"    {line}" for line in body)]) + "\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"dp": dp, "np": np}
    exec(compile(text, name, "exec"), space)
    return space["f"]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("dtype", "shares"), [("float64", 1), ("float64", 0), ("uint8", 1)])
@pytest.mark.parametrize("form", ["native", "shared", "range"])
@pytest.mark.parametrize("statement", _VECTORS + _ROWS)
def test_a_target_takes_old_values(statement: str, form: str, dtype: str, shares: bool) -> None:
    """``x`` and ``y`` may be views of one array."""
    body = [statement, "x *= 2"]
    if form == "range":
        body = ["for i in range(x.shape[0] - 6, x.shape[0]):", "    x[i] += 1", f"    {statement}"]
    function = _function(body, f"<{statement} {form}>")
    minimum = -1 if form == "shared" else arrays_of_language.MIN_SHARED_ELEMENTS

    def arguments() -> tuple[Any, ...]:
        base = np.arange(12).astype(dtype) ** 2 % 97
        m = (np.arange(81).reshape(9, 9) ** 2 % 101).astype(dtype)
        return base, m

    base, m = arguments()
    parts = base[1:], base[:-1] if shares else base[:-1].copy()
    function(*parts, m, 1)
    own_base, own_m = map(dp.asarray, arguments())
    own = own_base[1:], own_base[:-1] if shares else own_base[:-1].copy()
    with mock.patch.object(arrays_of_language, "MIN_SHARED_ELEMENTS", minimum):
        dp.jit(cache=False)(function)(*own, own_m, 1)
    for found, wanted in zip((*own, own_m), (*parts, m), strict=True):
        np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize(
    "statement", ["m[i, 1:] = m[i, :0:-1]", "m[i] = m[i, ::-1]", "m[i, 1:] += m[i, :-1]",
                  "np.add(m[i, :-1], 1, m[i, 1:])"]
)  # fmt: skip
@pytest.mark.sample(1)
def test_rows_of_a_prange_loop(statement: str) -> None:
    body = ["for i in dp.prange(m.shape[0]):", f"    {statement}"]
    function = _function(body, f"<{statement}>")
    m = (np.arange(81).reshape(9, 9) ** 2 % 101).astype(np.float64)
    own = dp.asarray(m)
    function(None, None, m, 1)
    dp.jit(cache=False)(function)(None, None, own, 1)
    np.testing.assert_array_equal(own.asnumpy(), m)


@dp.jit
def _line(start, end, count, dtype):
    made = np.empty((count,), dtype=dtype)
    for i in range(count):
        made[i] = start + i * (end - start)
    return made


@dp.jit
def _copy(start, end, count):
    line = _line(start, end, count, dtype=np.float64)
    made = np.zeros(line.shape)
    for i in range(count):
        made[i] = line[i]
    return made


def test_elements_of_an_array_of_an_unknown_type() -> None:
    assert _copy(0.0, 1.0, 4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "statement",
    ["i[i] = 3", "i[i] = 3 - i", "i[1:][i[:-1] % 3] = 2", "i[i[:2]] = i[2:]", "b[b] = False",
     "b[1:][b[:-1]] = False", "b[:-1][b[1:]] = True", "m[1, i] = m[1, ::-1]", "m[i, 2] = m[2, :4]"],
)  # fmt: skip
@pytest.mark.parametrize("form", ["native", "range"])
def test_an_index_or_a_mask_that_changes(statement: str, form: str) -> None:
    body = [statement] if form == "native" else ["for k in range(2):", f"    {statement}"]
    function = _function(body, f"<{statement} {form}>", "i, b, m")
    mask = np.array([1, 0, 0, 1, 1, 0], bool)
    arguments = np.array([2, 0, 3, 1]), mask, np.arange(16.0).reshape(4, 4)
    own = tuple(map(dp.asarray, arguments))
    function(*arguments)
    dp.jit(cache=False)(function)(*own)
    for found, wanted in zip(own, arguments, strict=True):
        np.testing.assert_array_equal(found.asnumpy(), wanted)
