"""First calls: how long a program waits before its kernels are compiled.

Each row is a call in new processes. Each process has its own empty cache, or, if the case states
so, the cache that the previous process has filled. The limits are those of issue 18.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from tests.benchmarks import _cold_call
from tests.benchmarks._registry import Benchmark, Row, Settings
from tests.benchmarks._timer import Timing

_PROCESSES = 3
_PROGRAM = (
    "import sys; from tests.benchmarks import _cold_call; "
    "_cold_call.main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])"
)


class _Case(NamedTuple):
    """The timed call, which follows another call in the same process."""

    name: str
    call: str
    before: str
    limit: float
    known: bool = False  # whether it is in the disk cache


_FUNCTIONS = list(_cold_call.CALLS)[: list(_cold_call.CALLS).index("array expression")]
_CASES = (
    *(_Case(name, name, "", 0.150) for name in _FUNCTIONS),
    _Case("first array expression", "array expression", "", 0.200),
    _Case("first user kernel", "user kernel", "", 0.600),
    _Case("new structure", "another expression", "array expression", 0.030),
    _Case("another user kernel", "another user kernel", "user kernel", 0.045),
    _Case("first launch, known user kernel", "user kernel", "", 0.040, known=True),
    _Case("known expression", "another expression", "array expression", 0.007, known=True),
    _Case("known user kernel", "another user kernel", "user kernel", 0.007, known=True),
)

_EXECUTOR = 3  # index among the words of a command


def rows(settings: Settings) -> Iterator[Row]:
    """Yield each call, computed by kernels and by the backend that dparray chooses."""
    (size, *_) = settings.sizes
    for executor, who in (("fused", "kernels"), ("", "chosen")):
        for case in _CASES:
            if executor or case.name in _FUNCTIONS:
                times = sorted(_times(case, executor, size, settings.device.filter_string))
                timing = _timing(times)
                yield Row(f"{case.name}, {who}", size, {"dparray": timing}, limit=case.limit)


def _timing(times: list[float]) -> Timing:
    median = statistics.median(times)
    return Timing(median, times[0], (times[-1] - times[0]) / median, len(times))


def _times(case: _Case, executor: str, size: int, filter_string: str) -> Iterator[float]:
    calls = [name for name in (case.before, case.call) if name]
    command = [sys.executable, "-c", _PROGRAM, executor, str(size), filter_string, *calls]
    with tempfile.TemporaryDirectory() as kept:
        if case.known:
            _run(command, kept)
        for _ in range(_PROCESSES):
            if case.known:
                yield _run(command, kept)
            else:
                with tempfile.TemporaryDirectory() as empty:
                    yield _run(command, empty)


def _run(command: list[str], cache: str) -> float:
    """Return the seconds of the last call of a process."""
    environment = {**os.environ, "DPARRAY_CACHE_DIR": cache, "DPARRAY_NOTICES": "0"}
    if command[_EXECUTOR] == "fused":  # the host computes nothing while kernels are compiled
        environment["DPARRAY_BACKGROUND_COMPILE"] = "0"
    finished = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(finished.stdout.split()[-1])


BENCHMARK = Benchmark("compile", "first calls, in milliseconds of waiting", rows, (2_000_000,))
