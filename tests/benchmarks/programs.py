"""Whole programs in NumPy's style, run unchanged with NumPy and with dparray.

Ten of them are dparray's, small and large. ``--npbench DIR`` adds NPBench's at its sizes S and M.
Each is called twice before it is timed. The data of NPBench's programs is created anew for each
call and is not timed. All results are compared with NumPy's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import dparray as dp
from dparray._array.ndarray import ndarray
from tests.benchmarks import _npbench, npbench_jit
from tests.benchmarks._programs import PROGRAMS, Program
from tests.benchmarks._registry import Benchmark, Row, Settings, complete, finish, row
from tests.benchmarks._timer import Candidate, Timing

# Settings with fewer elements than this measure only the small programs.
_SMALLEST_LARGE = 1_000_000


def rows(settings: Settings) -> Iterator[Row]:
    """Yield each program, small and large; with ``--jit`` only NPBench's Numba forms."""
    if settings.jit and settings.npbench is not None:
        yield from npbench_jit.rows(settings)
        return
    sizes = ["small", "large"] if max(settings.sizes) >= _SMALLEST_LARGE else ["small"]
    for size in sizes:
        for name, program in PROGRAMS.items():
            yield _row(settings, f"{name}, {size}", program, size)
    if settings.npbench is None:
        return
    others = list(_npbench.programs(settings.npbench))
    for size in _npbench.SIZES if sizes[-1] == "large" else _npbench.SIZES[:1]:
        for each in others:
            yield _npbench_row(settings, each, size)


def _npbench_row(settings: Settings, program: _npbench.NPBenchProgram, size: str) -> Row:
    """Return the row of an NPBench program, whose results are checked before it is timed."""
    case = f"{program.name}, {size}"
    arguments = program.arguments(size)
    elements = sum(each.size for each in arguments.values() if isinstance(each, np.ndarray))
    given = _npbench.on_device(arguments, settings.device)
    expected = _npbench.on_host(arguments)
    with np.errstate(all="ignore"):
        theirs = program.run(*expected)
        try:
            found = program.ours(*given)
            wrong = _npbench.why_wrong([found, *given], [theirs, *expected])
        except Exception as error:
            return Row(case, elements, {}, where=f"FAILS: {type(error).__name__}: {error}"[:200])
        ready: list[Any] = []

        def ours() -> None:
            result = program.ours(*ready)
            for each in [*ready, *(result if isinstance(result, tuple) else [result])]:
                if isinstance(each, ndarray):
                    dp.eval(each)
            finish(settings)

        def make_ours() -> None:
            ready[:] = _npbench.on_device(arguments, settings.device)
            finish(settings)

        def make_theirs() -> None:
            ready[:] = _npbench.on_host(arguments)

        candidates = {
            "dparray": Candidate(ours, before=make_ours, alone=True),
            "numpy": Candidate(lambda: program.run(*ready), before=make_theirs, alone=True),
        }
        measured = row(settings, case, elements, candidates)
    return replace(measured, where=f"WRONG: {wrong}") if wrong else measured


def conclusion(rows: Sequence[Row]) -> Iterator[str]:
    """Yield for each size the geometric mean of the ratios, the worst ratio, and wrong results."""
    if any("numba" in each.timings for each in rows):
        yield from npbench_jit.conclusion(rows)
        return
    sizes: dict[str, list[Row]] = {}
    for each in rows:
        sizes.setdefault(each.case.rpartition(", ")[2], []).append(each)
    for size, group in sizes.items():
        ratios = {each.case: _speed(each.timings) for each in group if each.timings}
        bad = [each.case for each in group if each.where]
        worst = sorted(ratios, key=lambda case: ratios[case])[:8]
        yield (
            f"{size}: {len(group)} programs, geometric mean "
            f"{statistics.geometric_mean(ratios.values()) if ratios else math.nan:.2f} of NumPy's "
            f"speed; worst: {', '.join(f'{case} {ratios[case]:.2f}' for case in worst)}"
            + (f"; not right: {', '.join(bad)}" if bad else "")
        )


def _speed(timings: dict[str, Timing]) -> float:
    return timings["numpy"].median / timings["dparray"].median


def _row(settings: Settings, case: str, program: Program, size: str) -> Row:
    arguments = program.arguments(size)
    elements = sum(each.size for each in arguments if isinstance(each, np.ndarray))

    def ours() -> Any:
        return program.run(dp, *on_device(settings, arguments))

    def theirs() -> Any:
        return program.run(np, *on_host(arguments))

    candidates = {
        "dparray": Candidate(complete(settings, ours)),
        "numpy": Candidate(theirs),
    }
    return row(settings, case, elements, candidates)


def on_device(settings: Settings, arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Return the arguments with arrays of the device; copying them is part of the program."""
    copy: Callable[[Any], Any] = lambda each: dp.asarray(each, device=settings.device)  # noqa: E731
    return (copy(each) if isinstance(each, np.ndarray) else each for each in arguments)


def on_host(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Return the arguments with arrays to which the program may write."""
    return (each.copy() if isinstance(each, np.ndarray) else each for each in arguments)


BENCHMARK = Benchmark("programs", "programs in NumPy's style, unchanged", rows, conclude=conclusion)
