"""Whole programs in NumPy's style, run unchanged with NumPy and with dparray."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dparray as dp
from dparray.cli.bench._programs import PROGRAMS, Program
from dparray.cli.bench._registry import Benchmark, Row, Settings, complete, row
from dparray.cli.bench._timer import Candidate

# Settings of fewer elements than this measure the small programs only.
_SMALLEST_LARGE = 1_000_000


def rows(settings: Settings) -> Iterator[Row]:
    """Each program, small and large."""
    sizes = ["small", "large"] if max(settings.sizes) >= _SMALLEST_LARGE else ["small"]
    for size in sizes:
        for name, program in PROGRAMS.items():
            yield _row(settings, f"{name}, {size}", program, size)


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
    """The arguments with arrays of the device; copying them is a part of the program."""
    copy: Callable[[Any], Any] = lambda each: dp.asarray(each, device=settings.device)  # noqa: E731
    return (copy(each) if isinstance(each, np.ndarray) else each for each in arguments)


def on_host(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """The arguments with arrays that the program may write to."""
    return (each.copy() if isinstance(each, np.ndarray) else each for each in arguments)


BENCHMARK = Benchmark("programs", "programs in NumPy's style, unchanged", rows)
