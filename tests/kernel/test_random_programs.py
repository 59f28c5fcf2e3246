"""Random programs give the same results on the device as in plain Python.

The default sample compares 20 programs, and ``--all`` 300, of which CI runs a third each time.
``python tests/kernel/random_programs.py --count 5000 --seed 400000`` compares any number, about 4
per second on an idle core.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import dparray as dp
from tests.kernel import random_programs
from tests.kernel.random_programs import Case, compare, make_case

_ROOT = Path(__file__).resolve().parents[2]
_IN_A_CASE = 20


def _compare_in_a_process(seeds: Iterable[int], *, with_uint64: bool = True) -> None:
    """Compare programs in a separate process, because a driver's compiler may end it."""
    text = (
        f"import dparray\ndparray.set_default_device({dp.Device().filter_string!r})\n"
        "from tests.kernel.random_programs import compare, make_case\n"
        f"for seed in {list(seeds)}:\n"
        "    print(seed, flush=True)\n"
        f"    compare(make_case(seed, with_uint64={with_uint64}))\n"
    )
    command = [sys.executable, "-c", text]
    run = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("part", range(15))
def test_random_programs_agree_with_plain_python(part: int) -> None:
    _compare_in_a_process(range(_IN_A_CASE * part, _IN_A_CASE * (part + 1)))


def _ungrouped_case(seed: int) -> Case:
    """Return the first program without groups, from ten times this seed on."""
    return next(case for case in map(make_case, itertools.count(10 * seed)) if not case.local)


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_programs_without_groups_do_what_plain_python_does(part: int) -> None:
    for seed in range(part * _IN_A_CASE, (part + 1) * _IN_A_CASE):
        compare(_ungrouped_case(seed))


@pytest.mark.parametrize("seed", [2001034, 2001579])
def test_private_memory_is_the_work_items_own(seed: int) -> None:
    compare(_ungrouped_case(seed))


@pytest.mark.parametrize("seed", [7, 21])
def test_wide_programs_agree_with_plain_python(seed: int) -> None:
    compare(make_case(seed, is_wide=True))


@pytest.mark.parametrize("seed", [60606, 60679, 61596, 62180, 62323, 70779])
def test_loops_that_exchange_or_keep_numbers_are_right(seed: int) -> None:
    compare(make_case(seed, with_uint64=False))


def test_loops_that_may_exchange_numbers_are_compiled() -> None:
    _compare_in_a_process([60036, 60696, 61669, 70786], with_uint64=False)


def test_a_loop_counted_in_two_bits_is_written() -> None:
    compare(make_case(62240, with_uint64=False))


def test_random_programs_on_each_queue(queue: Any) -> None:
    compare(make_case(5), queue)


@pytest.mark.parametrize("is_grouped", [False, True])
def test_a_program_that_differs_is_found(is_grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(each for each in map(make_case, range(99)) if bool(each.local) == is_grouped)
    if is_grouped:
        monkeypatch.setattr(dp, "simulate", lambda *arguments, **named: None)
    else:
        wanted = random_programs._computed_plainly(case, range(case.counts.size))
        wanted[0][-1, -1] += 1
        monkeypatch.setattr(random_programs, "_computed_plainly", lambda case, numbers: wanted)
    with pytest.raises(AssertionError, match="Range"):
        compare(case)


def test_a_program_is_made_of_its_seed_alone() -> None:
    assert make_case(7).text == make_case(7).text != make_case(8).text
