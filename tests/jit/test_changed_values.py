"""``dp.jit`` computes with the current values of everything that a function refers to."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import runs_loops_on_host

_INNER = """
K = {k}

def by_global(x):
    return x * K
"""
_HELPER = """
import enum
import numpy as np
import dparray as dp
import changing_inner
from changing_inner import by_global as imported

K = {k}
ARRAY = np.array([{k}])
PAIR = (0.0, {k})

class Mode(enum.Enum):
    FAST = {k}

def by_global(x):
    return x * K

def far(x):
    return by_global(x)

def from_other_file(x):
    return imported(x)

def by_member(x):
    return x * changing_inner.K

def by_text(x):
    return x * {k}

def by_default(x, k={k}):
    return x * k

def by_keyword(x, *, k={k}):
    return x * k

def by_element(x):
    return x * ARRAY[0]

def by_item(x):
    return x * PAIR[1]

def by_class(x):
    return x * Mode.FAST.value

def capturing(k):
    def by_capture(x):
        return x * k
    return by_capture

by_capture = capturing({k})

@dp.jit
def near_compiled(x):
    return x * K

@dp.jit
def compiled(x):
    return near_compiled(x)

@dp.device_func
def device(x):
    return x * K
"""
_CALLS = [
    *("by_global", "far", "from_other_file", "by_member", "by_text", "by_default", "by_keyword"),
    *("by_element", "by_item", "by_class", "by_capture", "compiled", "device"),
]
_EXPRESSIONS = [
    *(f"{name}(x[i])" for name in _CALLS),
    *(f"helper.{name}(x[i])" for name in ("far", "by_capture", "device")),
    *("x[i] * helper.K", "x[i] * helper.changing_inner.K", "x[i] * helper.ARRAY[0]"),
]
_HEAD = f"""
import dparray as dp
import changing_helper as helper
from changing_helper import {", ".join(_CALLS)}
"""
_FORMS = {
    "loop": "for i in range(x.shape[0]):\n        x[i] = {}",
    "prange": "for i in dp.prange(x.shape[0]):\n        x[i] = {}",
    "array": "x[:] = {}",
    "driver": "for i in dp.prange(x.shape[0]):\n        x[i] += 1\n    x[:] = {}",
}


def _write(folder: Path, k: float) -> None:
    (folder / "changing_inner.py").write_text(_INNER.format(k=k))
    (folder / "changing_helper.py").write_text(_HELPER.format(k=k))


def _define(file: Path, body: str) -> Any:
    """Return a compiled function in a file that imports the helpers."""
    file.write_text(f"{_HEAD}\n@dp.jit\ndef f(x):\n    {body}\n")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    return space["f"]


class TestInOneProcess:
    @pytest.fixture
    def modules(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[list[types.ModuleType]]:
        """Import the helpers; they are forgotten after the test."""
        monkeypatch.syspath_prepend(tmp_path)
        # Python does not notice a change within a second that keeps the size.
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        _write(tmp_path, 1.5)
        names = ("changing_inner", "changing_helper")
        yield [importlib.import_module(name) for name in names]
        for name in names:
            del sys.modules[name]

    def compare(self, function: Any) -> float:
        x, wanted = dp.asarray([2.0, 3.0]), dp.asarray([2.0, 3.0])
        function(x)
        function.py_func(wanted)
        np.testing.assert_array_equal(x.asnumpy(), wanted.asnumpy())
        return float(wanted[0])

    @pytest.mark.parametrize("expression", _EXPRESSIONS)
    @pytest.mark.parametrize("form", _FORMS)
    @pytest.mark.sample(2)
    def test_a_value_changes(
        self, form: str, expression: str, tmp_path: Path, modules: list[types.ModuleType]
    ) -> None:
        if form in ("array", "driver"):
            expression = expression.replace("x[i]", "x")
        function = _define(tmp_path / "main.py", _FORMS[form].format(expression))
        first = self.compare(function)
        for module in modules:
            module.K = 2.5
        self.compare(function)
        modules[1].ARRAY[0] = 4.5
        self.compare(function)
        _write(tmp_path, 3.5)
        for module in modules:
            importlib.reload(module)
        last = self.compare(function)
        assert last != first or "helper" not in expression  # an imported function is the old one

    @pytest.mark.parametrize("form", ["loop", "prange", "array"])
    @pytest.mark.sample(1)
    def test_a_function_is_changed_in_place(
        self, form: str, tmp_path: Path, modules: list[types.ModuleType]
    ) -> None:
        """IPython's autoreload assigns the new code to the old function."""
        if form == "prange" and not runs_loops_on_host():
            pytest.skip("kernels call no functions without @dp.device_func")
        expression = "by_text(x[i])" if form != "array" else "by_text(x)"
        function = _define(tmp_path / "main.py", _FORMS[form].format(expression))
        first, helper = self.compare(function), modules[1]
        by_text = helper.by_text
        _write(tmp_path, 3.5)
        importlib.reload(helper)
        by_text.__code__ = helper.by_text.__code__
        assert self.compare(function) != first


def test_a_builtin_is_shadowed() -> None:
    space: dict[str, Any] = {"dp": dp, "__name__": __name__}

    def g(x: Any) -> Any:
        for i in range(x.shape[0]):
            x[i] = abs(x[i])

    function = dp.jit(types.FunctionType(g.__code__, space, "g"))
    x = dp.asarray([-2.0])
    function(x)
    space["abs"] = np.sqrt
    x[0] = 4.0
    function(x)
    assert x.tolist() == [2.0]


def test_closures_of_one_function_have_their_own_values() -> None:
    def scaled_by(k: float) -> Any:
        def scaled(x: float) -> float:
            return x * k

        @dp.jit
        def function(x: Any) -> None:
            for i in range(x.shape[0]):
                x[i] = scaled(x[i])

        return function

    x = dp.ones(2)
    for k in (2.0, 3.0):
        scaled_by(k)(x)
    assert x.tolist() == [6.0, 6.0]


def test_a_kernel_notices_another_dtype() -> None:
    space: dict[str, Any] = {"kind": np.float32}

    def rounded(item: Any, x: Any) -> None:
        i = item.get_id(0)
        x[i] = kind(x[i])  # noqa: F821

    kernel = dp.kernel(types.FunctionType(rounded.__code__, space, "rounded"))
    x = dp.asarray([0.1])
    kernel[1](x).wait()
    assert x.item() == np.float32(0.1)
    space["kind"] = np.float64
    x[0] = 0.1
    kernel[1](x).wait()
    assert x.item() == 0.1


def test_a_global_cannot_be_assigned() -> None:
    def count(x: Any) -> None:
        global COUNT
        COUNT = x.shape[0]
        x[:] = COUNT

    with pytest.raises(dp.exceptions.KernelCompileError, match="cannot assign outside"):
        dp.jit(count)(dp.ones(2))


COUNT = 0


_PROGRAM = f"""{_HEAD}
import json
found = {{}}
for at, expression in enumerate({_EXPRESSIONS}):
    file = f"function_{{at}}.py"
    with open(file, "w") as written:
        written.write(f"@dp.jit\\ndef f(x):\\n    return {{expression.replace('[i]', '')}}\\n")
    with open(file) as text:
        exec(compile(text.read(), file, "exec"))
    found[expression] = float(f(2.0)), f.py_func(2.0)
print(json.dumps(found))
"""


@pytest.mark.process
class TestBetweenProcesses:
    @pytest.fixture(scope="class")
    @staticmethod
    def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[float]]]:
        """Return results of compiled and uncompiled functions, before and after an edit."""
        folder = tmp_path_factory.mktemp("changed")
        (folder / "program.py").write_text(_PROGRAM)
        environment = {**os.environ, "DPARRAY_CACHE_DIR": str(folder / "cache")}
        found = []
        for k in (1.5, 2.5):
            _write(folder, k)
            run = subprocess.run(
                [sys.executable, "-B", "program.py"],
                cwd=folder, env=environment, capture_output=True, text=True,
            )  # fmt: skip
            assert run.returncode == 0, run.stderr
            found.append(json.loads(run.stdout))
        assert any((folder / "cache").rglob("*.region"))
        return found

    @pytest.mark.parametrize("expression", _EXPRESSIONS)
    @pytest.mark.slow
    @pytest.mark.sample(4)
    def test_a_file_is_edited(self, expression: str, runs: list[dict[str, list[float]]]) -> None:
        before, after = (run[expression] for run in runs)
        assert before == [3.0, 3.0]
        assert after == [5.0, 5.0]
