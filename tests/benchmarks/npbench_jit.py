"""NPBench's Numba forms, unchanged, compiled by ``dp.jit`` and by Numba.

The fastest form of each side is timed, in turns with the other side's and with NumPy. A result is
right if it agrees with that of the NumPy form or with that of Numba, because some forms differ from
the NumPy form by design.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import dparray as dp
from dparray._array.ndarray import ndarray
from tests.benchmarks import _npbench
from tests.benchmarks._registry import Row, Settings, finish, row
from tests.benchmarks._timer import Candidate, Timing

_LARGE = 1_000_000
_SHORT = 5e-3


class _Side:
    """A program in one of its forms.

    Attributes:
        result: the result of the last call, with the arguments.
    """

    def __init__(self, run: Callable[..., Any], prepare: Callable[[], list[Any]]) -> None:
        self.run = run
        self.prepare = prepare
        self.ready: list[Any] = []
        self.result: list[Any] = []
        self.is_short = False

    def before(self) -> None:
        """Create the data anew.

        A short program runs once before, so that its code is in the caches, as in a loop.
        """
        ready = self.prepare()
        if self.is_short:
            self.ready = self.prepare()
            dp.synchronize()
            self.call()
        self.ready = ready
        dp.synchronize()

    def call(self) -> None:
        """Run the program and wait for its results."""
        result = self.run(*self.ready)
        for each in [*self.ready, *(result if isinstance(result, tuple) else [result])]:
            if isinstance(each, ndarray):
                dp.eval(each)
        dp.synchronize()
        self.result = [result, *self.ready]

    def seconds(self) -> float:
        """Return the time of the second of two calls; the first compiles."""
        self.before()
        self.call()
        self.before()
        start = time.perf_counter()
        self.call()
        seconds = time.perf_counter() - start
        self.is_short |= seconds < _SHORT
        return seconds


def rows(settings: Settings) -> Iterator[Row]:
    """Yield each program that has Numba forms, at the sizes S and M."""
    assert settings.npbench is not None
    sizes = _npbench.SIZES if max(settings.sizes) >= _LARGE else _npbench.SIZES[:1]
    for size in sizes:
        for program in _npbench.programs(settings.npbench):
            if settings.only and program.name not in settings.only:
                continue
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = _row(settings, program, size)
            if found is not None:
                yield found


def _row(settings: Settings, program: _npbench.NPBenchProgram, size: str) -> Row | None:
    case = f"{program.name}, {size}"
    theirs = program.numba_forms()
    if not theirs:
        return None
    arguments = program.arguments(size)
    elements = sum(each.size for each in arguments.values() if isinstance(each, np.ndarray))
    numpy = _Side(program.run, lambda: _npbench.on_host(arguments))
    numpy.seconds()
    numba = _fastest(theirs, lambda: _npbench.on_host(arguments), numpy.result)
    if isinstance(numba, str):
        return None  # Numba no longer compiles its own form
    jit = _fastest(
        program.numba_forms(dp.jit),
        lambda: _npbench.on_device(arguments, settings.device),
        numpy.result,
    )
    if isinstance(jit, str):
        return Row(case, elements, {}, where=f"FAILS: {jit}"[:200])
    finish(settings)
    ours, theirs = (_distance(side.result, numpy.result) for side in (jit, numba))
    is_wrong = ours > max(theirs, 1.0) and _distance(jit.result, numba.result) > 1.0
    sides = {"dp.jit": jit, "numba": numba, "numpy": numpy}
    candidates = {
        name: Candidate(side.call, before=side.before, alone=True) for name, side in sides.items()
    }
    measured = row(settings, case, elements, candidates)
    return replace(measured, where=f"WRONG by {ours:.2g} tolerances") if is_wrong else measured


def _fastest(
    forms: dict[str, Callable[..., Any]], prepare: Callable[[], list[Any]], expected: Any
) -> _Side | str:
    """Return the fastest form that runs, or the error of the last one.

    A form whose results differ from the NumPy form, such as one with a race, is taken if all
    differ.
    """
    best: tuple[bool, float, _Side] | None = None
    problem = ""
    for run in forms.values():
        side = _Side(run, prepare)
        try:
            seconds = min(side.seconds(), side.seconds())
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            continue
        is_wrong = _distance(side.result, expected) > 1.0
        if best is None or (is_wrong, seconds) < best[:2]:
            best = is_wrong, seconds, side
    return problem if best is None else best[2]


def _distance(found: Any, expected: Any) -> float:
    """The largest difference between results, in units of the tolerance: at most 1 if right."""
    if isinstance(expected, list | tuple):
        parts = (_distance(a, b) for a, b in zip(found, expected, strict=False))
        return max(parts, default=0.0)
    if not isinstance(expected, np.ndarray | np.generic | int | float | complex):
        return 0.0
    ours = np.asarray(found.asnumpy() if isinstance(found, ndarray) else found)
    theirs = np.asarray(expected)
    if ours.shape != theirs.shape:
        return math.inf
    finite = np.abs(theirs[np.isfinite(theirs)])
    scale = float(finite.max(initial=0.0)) or 1.0
    tolerance = 1e-3 if theirs.dtype.char in "fF" else 1e-6
    differs = ~np.isclose(ours, theirs, 0.0, 0.0, equal_nan=True)
    difference = np.abs(ours[differs] * 1.0 - theirs[differs])
    allowed = tolerance * (scale + np.abs(theirs[differs]))
    return float(
        np.nan_to_num(difference / allowed, nan=math.inf, posinf=math.inf).max(initial=0.0)
    )


def conclusion(rows: Sequence[Row]) -> Iterator[str]:
    """Yield for each size the geometric means, the slowest programs, and the wrong ones."""
    sizes: dict[str, list[Row]] = {}
    for each in rows:
        sizes.setdefault(each.case.rpartition(", ")[2], []).append(each)
    for size, group in sizes.items():
        timed = [each for each in group if each.timings]
        ratios = {each.case: _speed(each.timings, "numba") for each in timed}
        means = {
            name: statistics.geometric_mean([_speed(each.timings, name) for each in timed])
            if timed
            else math.nan
            for name in ("numba", "numpy")
        }
        worst = sorted(ratios, key=lambda case: ratios[case])[:8]
        bad = [each.case for each in group if each.where]
        yield (
            f"{size}: {len(group)} programs; geometric mean of the speed relative to Numba's best "
            f"form {means['numba']:.2f}, to NumPy {means['numpy']:.2f}; lowest to Numba: "
            f"{', '.join(f'{case} {ratios[case]:.2f}' for case in worst)}"
            + (f"; not right: {', '.join(bad)}" if bad else "")
        )


def _speed(timings: dict[str, Timing], other: str) -> float:
    return timings[other].median / timings["dp.jit"].median
