"""Fail a run in which a worker of pytest-xdist takes more memory than ``--worker-memory`` says.

A worker reports the largest resident size that it has had, which other programs do not change. Much
of it stays until the worker ends: libraries and collected tests take 0.8 GB, and LLVM keeps 1 to 3
MB for each function that Numba compiles.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

_peaks = pytest.StashKey[dict[str, float]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--worker-memory``."""
    text = "fail if a worker takes more memory than GB = 2**30 bytes; without effect with --all"
    parser.addoption("--worker-memory", metavar="GB", type=float, help=text)


def own_peak() -> float | None:
    """Return the largest resident size of this process, in gigabytes; on Windows ``None``."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def limit_of(config: pytest.Config) -> float:
    """Return the limit of a run in gigabytes, infinity without one."""
    chosen: float | None = config.getoption("--worker-memory")
    return float("inf") if chosen is None or config.getoption("--all", False) else chosen


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Record what a worker has reported; one that crashed reports nothing."""
    peak = getattr(node, "workeroutput", {}).get("memory")
    if peak is not None:
        node.config.stash.setdefault(_peaks, {})[node.gateway.id] = peak


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report this worker's size, or, in the main process, fail if one was too large."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["memory"] = own_peak()
    elif _too_large(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the sizes of the workers."""
    peaks = config.stash.get(_peaks, {})
    if peaks:
        sizes = ", ".join(f"{name} {peak:.2f} GB" for name, peak in sorted(peaks.items()))
        terminalreporter.write_line(f"largest memory of the workers: {sizes}")
    for name in _too_large(config):
        text = f"FAILED: worker {name} took more memory than {limit_of(config)} GB"
        terminalreporter.write_line(text, red=True)


def _too_large(config: pytest.Config) -> list[str]:
    limit = limit_of(config)
    return [name for name, peak in config.stash.get(_peaks, {}).items() if peak > limit]
