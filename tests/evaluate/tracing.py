"""Count the calls of dparray's Python functions, in a process that other tests have not used."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dparray as dp
from dparray._array import fastpath
from dparray._driver.sycl import in_order

ROOT = Path(dp.__file__).parent

#: Whether the compiled module is there, without which more functions are Python's.
IS_COMPILED = fastpath.module is not None
_PLUGINS = ("tests.host.on_host", "tests.cuda.on_cuda")


def traced(function: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return a function's result, and the file of each dparray call in it.

    Calls that a wait makes until the work has ended are not counted: they depend on its time.
    """
    files: list[str] = []
    # Python 3.13 reports a comprehension as a call of the enclosing function
    running: set[int] = set()
    polling: list[FrameType] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "return":
            running.discard(id(frame))
            if polling and polling[0] is frame:
                polling.clear()
        elif event == "call" and not polling and id(frame) not in running:
            running.add(id(frame))
            if frame.f_code.co_filename.startswith(f"{ROOT}/"):
                files.append(frame.f_code.co_filename[len(f"{ROOT}/") :])
                if frame.f_code.co_name == "poll":
                    polling.append(frame)

    gc.collect()
    gc.disable()  # A collection calls the finalizers of other tests' objects.
    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return result, files


def in_a_new_process(request: pytest.FixtureRequest) -> None:
    """Run the tests of a file in a new process if other tests have used this one.

    In-order queues, occupied memory and uncollected objects of other tests lead to longer paths,
    which are not counted here.
    """
    others = {each for each in os.environ if each.startswith("PYTEST_XDIST")}
    has_other_tests = any(item.path != request.path for item in request.session.items)
    if others or has_other_tests or in_order.has_in_order_queue():
        plugins = [each for each in _PLUGINS if request.config.pluginmanager.hasplugin(each)]
        run = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *(word for each in plugins for word in ("-p", each)),
                str(request.path),
            ],
            capture_output=True,
            text=True,
            env={name: value for name, value in os.environ.items() if name not in others},
        )
        assert run.returncode == 0, run.stdout
        pytest.skip("passed in a new process")
