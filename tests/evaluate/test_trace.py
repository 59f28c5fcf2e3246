"""An operation takes few steps through the package: its function calls are counted."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._array import fastpath
from dparray._driver.sycl import in_order

ROOT = Path(dp.__file__).parent

#: The maximum number of Python calls: with the compiled module, and without it.
IS_COMPILED = fastpath.module is not None


def traced(function: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return a function's result, and the file of each dparray call in it."""
    files: list[str] = []
    # Python 3.13 reports a comprehension as a call of the enclosing function
    running: set[int] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "return":
            running.discard(id(frame))
        elif event == "call" and id(frame) not in running:
            running.add(id(frame))
            if frame.f_code.co_filename.startswith(f"{ROOT}/"):
                files.append(frame.f_code.co_filename[len(f"{ROOT}/") :])

    gc.collect()
    gc.disable()  # A collection calls the finalizers of other tests' objects.
    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return result, files


@pytest.fixture(scope="module", autouse=True)
def _process_of_its_own() -> None:
    """Run the tests of this file in a new process if other tests have used this one.

    In-order queues, occupied memory and uncollected objects of other tests lead to longer paths,
    which are not counted here.
    """
    others = {each for each in os.environ if each.startswith("PYTEST_XDIST")}
    if others or in_order.has_in_order_queue():
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
            capture_output=True,
            text=True,
            env={name: value for name, value in os.environ.items() if name not in others},
        )
        assert run.returncode == 0, run.stdout
        pytest.skip("passed in a new process")


@pytest.fixture
def operands(fused: None) -> list[dp.ndarray]:
    """Return two arrays whose sum a kernel has computed before."""
    arrays = [dp.asarray(np.ones(200_000, np.float32)) for _ in range(2)]
    for _ in range(3):
        dp.add(*arrays).asnumpy()
    return arrays


def folders(files: list[str]) -> set[str]:
    """Return the stages of the pipeline to which the files belong."""
    return {file.partition("/")[0] for file in files}


def test_an_operation_is_recorded_in_few_calls(operands: list[dp.ndarray]) -> None:
    _, files = traced(lambda: dp.add(*operands))
    assert len(files) <= 19
    assert len(folders(files)) <= 6


def test_a_cached_expression_is_read_in_few_calls(operands: list[dp.ndarray]) -> None:
    pending = dp.add(*operands)
    values, files = traced(pending.asnumpy)
    assert values[0] == 2
    assert len(files) <= (35 if IS_COMPILED else 51), files
    assert len(folders(files)) <= 8, folders(files)
    assert len(set(files)) <= (11 if IS_COMPILED else 16), sorted(set(files))
    assert "_evaluate/schedule.py" not in files


def test_a_cached_eager_call_schedules_nothing(
    operands: list[dp.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dp.config, "lazy", False)
    dp.synchronize(dp.add(*operands))  # no launch is waited for
    _, files = traced(lambda: dp.add(*operands))
    assert len(files) <= (28 if IS_COMPILED else 45), files
    assert not {"_evaluate/schedule.py", "_codegen/elementwise.py"} & set(files)


def test_a_cached_slice_statement_takes_few_calls(operands: list[dp.ndarray]) -> None:
    x, y = operands

    def statement() -> None:
        x[1:-1] += y[1:-1]

    for _ in range(3):
        statement()
        dp.synchronize(x)
    _, files = traced(statement)
    assert len(files) <= (55 if IS_COMPILED else 129), files
    assert "_evaluate/schedule.py" not in files


#: Functions of large arrays: the maximum numbers of calls and of files. `pad` writes the array
#: into its result as a slice statement does.
KNOWN_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "concatenate": (lambda x, mask, at: dp.concatenate([x, x]), 60, 12),
    "where": (lambda x, mask, at: dp.where(mask, x, x), 60, 12),
    "median": (lambda x, mask, at: dp.median(x), 60, 14),
    "take": (lambda x, mask, at: dp.take(x, at), 60, 17),
    "stack": (lambda x, mask, at: dp.stack([x, x]), 60, 13),
    "pad": (lambda x, mask, at: dp.pad(x, 3), 80, 28),
    "roll": (lambda x, mask, at: dp.roll(x, 3), 60, 12),
}


@pytest.mark.skipif(not IS_COMPILED, reason="the fast path is not built")
@pytest.mark.parametrize("name", KNOWN_FUNCTIONS)
def test_a_known_function_of_large_arrays_takes_few_calls(name: str) -> None:
    function, most_calls, most_files = KNOWN_FUNCTIONS[name]
    x, mask, at = (dp.asarray(np.ones(200_000, each)) for each in ("f4", "?", "i8"))
    calls = []
    for _ in range(10):  # The first calls choose how to compute.
        result, files = traced(lambda: function(x, mask, at))
        dp.synchronize(result)
        calls.append(files)
    files = min(calls, key=len)
    assert len(files) <= most_calls, "\n".join(files)
    assert len(set(files)) <= most_files, sorted(set(files))
