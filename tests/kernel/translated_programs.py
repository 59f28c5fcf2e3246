"""The programs of :mod:`tests.kernel.random_programs`, compiled without Numba in less time.

Numba takes most of the time of a random program, so the front end of the language translates the
programs without groups.

Run as a program, it compares any number: ``translated_programs.py --count 1000 --seed 0``, and with
``DPARRAY_TEST_WIDE=1`` programs with floats, memory in loops and narrow counters.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if it is run as a program
from dparray._compiler import compile as compiler
from dparray._compiler import llvm
from dparray._compiler.targets import back_end
from dparray._language.frontend import translated
from tests.kernel import random_programs
from tests.kernel.random_programs import Case, make_case


@contextlib.contextmanager
def without_numba() -> Iterator[None]:
    """Translate kernels with the front end inside."""

    def compile_kernel(
        function: Callable[..., Any],
        types: Sequence[str],
        options: Mapping[str, Any],
        target: Any,
        labels: Sequence[str] = (),
    ) -> Any:
        started = time.perf_counter()
        entry, text = llvm.module(translated(function, types))
        compiled = back_end(target).optimised(text, target)
        name = function.__name__
        return compiler._finished(name, entry, compiled, target, types, options, started)

    with (
        mock.patch.object(compiler, "compile_kernel", compile_kernel),
        mock.patch.object(compiler, "kernel_key", return_value=None),  # nothing is cached
    ):
        yield


def make_ungrouped_case(seed: int) -> Case:
    """Return the first program without groups, from ten times this seed on."""
    return next(case for case in map(make_case, itertools.count(10 * seed)) if not case.local)


def make_wide_case(seed: int) -> Case:
    """Return the program of a seed with floats, memory in loops and narrow counters."""
    return make_case(seed, is_wide=True)


def compare(case: Case, queue: Any = None) -> None:
    """Raise ``AssertionError`` unless a device and plain Python agree."""
    with without_numba():
        random_programs.compare(case, queue)


if __name__ == "__main__":
    from random_kernels import compare_seeds  # beside this program

    is_wide = "DPARRAY_TEST_WIDE" in os.environ
    compare_seeds(make_wide_case if is_wide else make_ungrouped_case, compare)
