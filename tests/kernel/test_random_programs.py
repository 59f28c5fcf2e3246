"""Random programs give on the device what plain Python gives.

``python tests/kernel/random_programs.py --count 5000`` compares as many as wanted.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kernel import random_programs
from tests.kernel.random_programs import Wrapping, compare, make_case

_PROGRAM = Path(__file__).with_name("random_programs.py")
_IN_A_CASE = 32


@pytest.mark.parametrize("part", range(7))
def test_random_programs_do_what_plain_python_does(part: int) -> None:
    # In processes of their own, as a driver's compiler may end one.
    numbers = ("--count", str(_IN_A_CASE), "--seed", str(_IN_A_CASE * part))
    run = subprocess.run(
        [sys.executable, str(_PROGRAM), *numbers], capture_output=True, text=True, timeout=600
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("seed", [60606, 60679, 61596, 62180, 62323, 70779])
def test_loops_that_exchange_or_keep_numbers_are_right(seed: int) -> None:
    compare(make_case(seed))


@pytest.mark.parametrize("seed", [60036, 60696, 61669, 70786])
def test_loops_that_may_exchange_numbers_are_compiled(seed: int) -> None:
    # In a process of its own, which the driver's compiler ended.
    command = [sys.executable, str(_PROGRAM), "--count", "1", "--seed", str(seed)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_loop_counted_in_two_bits_is_written() -> None:
    compare(make_case(62240))


def test_random_programs_on_each_queue(queue: Any) -> None:
    compare(make_case(5), queue)


def test_a_program_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(each for each in map(make_case, range(99)) if each.is_plain)
    wanted = random_programs._computed_plainly(case)
    wanted[-1, -1] += 1
    monkeypatch.setattr(random_programs, "_computed_plainly", lambda case: wanted)
    with pytest.raises(AssertionError, match="Range"):
        compare(case)


def test_wrapping_integers_are_those_of_64_bits() -> None:
    most = Wrapping(2**63 - 1)
    assert (most + 1, -(most + 1), most * 2, most << 1) == (-(2**63), -(2**63), -2, -2)
    assert (1 + most, Wrapping(-7) // 2, Wrapping(-7) % 3, 5 - most) == (
        *(-(2**63), -4, 2),
        6 - 2**63,
    )
    assert type(most >> 1) is type(3 & most) is Wrapping


def test_a_program_is_made_of_its_seed_alone() -> None:
    assert make_case(7).text == make_case(7).text != make_case(8).text
