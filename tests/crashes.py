"""Report where a pytest-xdist worker was when it crashed, or when a test took too long.

Python's fault handler writes the stacks to standard error, far from the report. Here each worker
has a file for them, and the report of the test includes it.
"""

from __future__ import annotations

import faulthandler
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

_FOLDER = "DPARRAY_TEST_CRASHES"
_LINES_OF_A_THREAD = 12
_LONGEST = 6000
_folder = pytest.StashKey[tempfile.TemporaryDirectory]()


def configure(config: pytest.Config) -> None:
    """Choose the folder, or, in a worker, write the stacks there."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        config.stash[_folder] = tempfile.TemporaryDirectory(prefix="dparray-test-crashes-")
        os.environ[_FOLDER] = config.stash[_folder].name
    elif fault_handler_stderr_fd_key in config.stash:
        # pytest has no public option for this file.
        with Path(os.environ[_FOLDER], worker).open("w") as file:
            os.dup2(file.fileno(), config.stash[fault_handler_stderr_fd_key])
        faulthandler.enable(config.stash[fault_handler_stderr_fd_key])


def unconfigure(config: pytest.Config) -> None:
    """Remove the folder."""
    if _folder in config.stash:
        config.stash[_folder].cleanup()


def innermost_calls(stacks: str) -> str:
    """Return the innermost calls of every thread: the outer ones are pytest's."""
    threads: list[list[str]] = [[]]
    for line in stacks.splitlines():
        if not line.startswith("  "):
            threads.append([])
        threads[-1].append(line)
    return "\n".join(line for thread in threads for line in thread[: 1 + _LINES_OF_A_THREAD])


def stacks_of(node: Any) -> str:
    """Return the stacks of a worker that has crashed."""
    file = Path(os.environ[_FOLDER], node.gateway.id)
    return file.read_text(errors="replace") if file.is_file() else ""


def has_timed_out(node: Any) -> bool:
    """Return whether a test of the worker took longer than `faulthandler_timeout`."""
    return stacks_of(node).startswith("Timeout")


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: Any, sched: Any) -> None:
    """Add the stacks to the report; a test that is repeated does not count as a failure yet."""
    report.longrepr += "\n" + innermost_calls(stacks_of(report.node))[:_LONGEST]
    if crashitem == sched.runs_again:
        report.outcome = "skipped"
        report.longrepr = (crashitem, None, f"took too long, and runs again: {report.longrepr}")
