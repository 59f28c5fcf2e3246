"""The timer of all benchmarks.

Candidates are measured in turns, so that a change of the machine's speed affects all of them. The
result is a median with its spread.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dparray import config
from dparray._evaluate import background

_SHORTEST_BATCH = 200e-6
_LONGEST_BATCH = 200
_MIN_ROUNDS = 5
_MAX_ROUNDS = 201
# Batches below the first limit are preceded by untimed calls, for some time and up to some number.
_COLD_MATTERS = 20e-3
_WARM_SECONDS = 2e-3
_MAX_WARM_CALLS = 8
# How often the processor time of the process is read; the kernel counts it every 4 ms.
_READING = 8e-3
_LONGEST_REST = 0.5
_SLOW = 0.25
_ROUNDS_IF_SLOW = 3


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Candidate:
    """A timed call; ``before`` and ``after`` run around a batch of calls and are not timed."""

    call: Callable[[], Any]
    before: Callable[[], Any] = _nothing
    after: Callable[[], Any] = _nothing
    alone: bool = False  # one call per batch

    def batch(self, calls: int, warm_calls: int = 0) -> float:
        """Return the seconds of one call in a batch of ``calls``, after some untimed calls."""
        call, many = self.call, range(calls)
        for _ in range(warm_calls):
            call()
        self.before()
        started = time.perf_counter()
        for _ in many:
            call()
        seconds = time.perf_counter() - started
        self.after()
        return seconds / calls


@dataclass(frozen=True)
class Timing:
    """The time of one call in seconds: median, minimum, and interquartile range over the median.

    ``rounds`` is the number of batches, ``low`` the 20th percentile.
    """

    median: float
    best: float
    spread: float
    rounds: int
    low: float = 0.0


def measure(candidates: Mapping[str, Candidate], budget: float = 0.5) -> dict[str, Timing]:
    """Warm up all candidates, then time them in turns for about ``budget`` seconds in total.

    Short calls are timed as in a loop. Untimed calls come first, so that caches and threads are in
    the state that the same candidate leaves, not the previous one. After a long call, the next one
    starts when no thread is active.
    """
    calls = {}
    warm_calls, rounds, is_long = {}, {}, {}
    for name, candidate in candidates.items():
        # otherwise the first calls would run without the kernel
        with config.override(background_compile=False):
            for _ in range(2):
                candidate.batch(1)  # compiles, fills caches and pools
        background.wait()
        once = min(candidate.batch(1), candidate.batch(1))
        fitting = int(_SHORTEST_BATCH / max(once, 1e-9)) + 1
        calls[name] = 1 if candidate.alone else min(fitting, _LONGEST_BATCH)
        is_long[name] = once >= _COLD_MATTERS
        is_short = not is_long[name] and not candidate.alone
        fitting = int(_WARM_SECONDS / max(once, 1e-9)) + 1
        warm_calls[name] = min(fitting, _MAX_WARM_CALLS) if is_short else 0
        rounds[name] = _ROUNDS_IF_SLOW if once > _SLOW else _MAX_ROUNDS
    times: dict[str, list[float]] = {name: [] for name in candidates}
    collects = gc.isenabled()
    gc.disable()
    try:
        deadline = time.perf_counter() + budget
        for done in range(_MAX_ROUNDS):
            if done >= _MIN_ROUNDS and time.perf_counter() > deadline:
                break
            for name, candidate in candidates.items():
                if done < rounds[name]:
                    times[name].append(candidate.batch(calls[name], warm_calls[name]))
                    if is_long[name]:
                        _wait_for_threads()
    finally:
        if collects:
            gc.enable()
    return {name: summary(found) for name, found in times.items()}


def _wait_for_threads() -> None:
    """Wait until no thread of this process is active.

    The threads of a BLAS library wait actively for 100 ms after their last call, and would take a
    core from the next candidate.
    """
    deadline = time.perf_counter() + _LONGEST_REST
    while time.perf_counter() < deadline:
        before = time.process_time()
        time.sleep(_READING)
        if time.process_time() - before < _READING / 4:
            break


def summary(times: list[float]) -> Timing:
    """Return median, minimum and spread of at least two times."""
    low, median, high = statistics.quantiles(times, n=4)
    spread = (high - low) / median if median else 0.0
    return Timing(median, min(times), spread, len(times), statistics.quantiles(times, n=5)[0])
