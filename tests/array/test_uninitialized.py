"""An array that was never initialized raises an exception in every operation; nothing crashes."""

from __future__ import annotations

import copy
import operator
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import compiled_module

ROOT = Path(__file__).resolve().parents[2]

_OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_"),
        *("xor", "lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne", "iadd", "isub", "imul"),
        *("itruediv", "ifloordiv", "imod", "ipow", "imatmul", "iand", "ior", "ixor", "ilshift"),
        *("irshift", "getitem", "contains"),
    )
}
_PROGRAM = """
import sys
import dparray as dp
sys.path[:0] = ["tests/array"]
import test_uninitialized as tests

tests.every_operation(tests.uninitialized)
for slot in ("_host_view", "_block", "_packed", "queue", "usm_type"):
    def damaged():
        x = dp.arange(4.0)
        x[1:]
        delattr(x, slot)
        return x
    tests.every_operation(damaged, may_work=True)
print("no crash")
"""


def uninitialized() -> Any:
    return dp.ndarray.__new__(dp.ndarray)


def every_operation(make: Callable[[], Any], may_work: bool = False) -> None:
    """Try every operator, attribute and method; each may work or raise an exception."""

    def attempt(name: str, function: Callable[[], Any]) -> None:
        try:
            found = function()
        except Exception:
            return
        assert may_work or found is NotImplemented, f"{name}: {found!r}"

    x, y, large = make(), dp.arange(4.0), dp.ones(300_000)
    for name, function in _OPERATORS.items():
        for other in (2, 0.5, np.float64(2), y, large, make(), dp.arange(4), slice(1, None), None):
            attempt(f"{name}(x, {type(other)})", lambda f=function, o=other: f(make(), o))
        for other in (2, 0.5, np.float64(2), dp.arange(4.0), large):
            attempt(f"{name}({type(other)}, x)", lambda f=function, o=other: f(o, make()))
    for function in (operator.neg, operator.pos, operator.invert, operator.not_, operator.index):
        attempt(str(function), lambda f=function: f(make()))
    for function in (float, int, complex, bool, repr, str, hash, len, list, bytes, iter,
                     copy.copy, copy.deepcopy, pickle.dumps, np.asarray, dp.asnumpy,
                     dp.asarray, dp.eval, dp.sin, dp.sum, dp.sort, dp.abs, memoryview):  # fmt: skip
        if function is not hash:
            attempt(str(function), lambda f=function: f(make()))
    for function in (dp.add, dp.matmul, dp.dot, dp.concatenate, dp.where, dp.take, dp.minimum):
        attempt(str(function), lambda f=function: f(make(), y))
        attempt(str(function), lambda f=function: f([make(), y]))
        attempt(str(function), lambda f=function: f(y, make()))
    for index in (0, -1, slice(1, None), (0, 0), ..., None, y > 1, dp.arange(2), [0, 1]):
        attempt(f"x[{index}]", lambda i=index: make()[i])
        attempt(f"x[{index}] = 1", lambda i=index: operator.setitem(make(), i, 1) or 1)
        attempt(f"y[{index}] = x", lambda i=index: operator.setitem(dp.ones(4), i, make()) or 1)
    attempt("y[x]", lambda: y[make()])
    harmless = {"__class__", "__doc__", "__init__", "__init_subclass__", "__new__", "__slots__"}
    for name in sorted(set(dir(type(x))) - harmless):
        try:
            member = getattr(make(), name)
        except Exception:
            continue
        if callable(member):
            for args in ((), (1,), (y,), (make(),), (0, 1)):
                try:
                    member(*args)
                except Exception:
                    continue


@pytest.mark.parametrize("compiled", ["1", "0"])
def test_no_operation_crashes(compiled: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("DPARRAY_COMPILED", None)
    if compiled == "0":
        environment["DPARRAY_COMPILED"] = "0"
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, cwd=ROOT, env=environment
    )
    assert (done.returncode, done.stdout) == (0, "no crash\n"), done.stderr[-2000:]


@pytest.mark.parametrize("name", ["add", "pow", "matmul", "lt", "iadd", "getitem"])
def test_the_error_shows_how_to_create_arrays(name: str) -> None:
    if compiled_module is None:
        pytest.skip("the compiled module is not built")
    with pytest.raises(TypeError, match=r"never initialized.*dp\.empty"):
        _OPERATORS[name](uninitialized(), 1)
