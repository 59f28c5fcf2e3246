"""The programs of the stress test run, and a failing program is reduced to the failing step."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest


def load() -> Any:
    spec = importlib.util.spec_from_file_location("stress", Path(__file__).with_name("stress.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["stress"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stress = load()


@pytest.mark.parametrize("seed", range(4))
def test_programs_agree_with_numpy(seed: int, tmp_path: Path) -> None:
    program = [step for step in stress.make_program(seed) if step[0] not in stress.DAMAGE]
    assert stress.failure(program, tmp_path) is None


def test_the_smallest_failing_program_is_found() -> None:
    program = [("new", (n, 0, 0)) for n in range(30)]
    bad = [program[7], program[19]]
    found = stress.shrink(program, lambda part: all(step in part for step in bad))
    assert found == bad


INJECTED = [
    ("no_memory", (1, 0, 0)),
    ("no_memory_in_a_plan", (3, 0, 0)),
    ("bad_kernel", (0, 0, 0)),
    ("refused_module", (0, 5, 0)),
    ("await", (0, 1, 0)),
    ("tile", (3, 4, 0)),
    ("lazy", (3, 4, 2)),
]


@pytest.mark.slow
def test_each_injected_failure_and_random_program_is_a_step(tmp_path: Path) -> None:
    assert {name for name, _ in INJECTED} <= set(stress.STEPS)
    for size in (1, 3):
        assert stress.failure([("new", (1, size, 0)), *INJECTED], tmp_path) is None


def test_a_wrong_result_prints_the_seed_and_the_smallest_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stress, "STEPS", ("new", "sort", "reduce", "mask"))
    monkeypatch.setattr(stress, "WEIGHTS", [0.4, 0.2, 0.2, 0.2])
    monkeypatch.setattr(stress.dp, "flip", lambda x: x)  # descending sorts use it
    assert stress.stress(0.5, seed=3, threads=1) == 1
    said = capsys.readouterr().out
    assert said.startswith("seed 3: AssertionError")
    _, _, program = said.partition("the smallest program that shows it:\n")
    assert [line.strip()[:8] for line in program.splitlines()] == ["('sort',"]


def test_growth_that_no_kernel_explains_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert stress.grown([(10**9, 0)] * 4) == 0
    assert stress.grown([(10**9 + n * 10**8, 200 * n) for n in range(8)]) == 0
    assert stress.grown([(10**9 + n * 10**8, 0) for n in range(8)]) == 1
    assert "memory leaks" in capsys.readouterr().out


@pytest.mark.slow
def test_leaks_without_a_new_kernel_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stress, "_settled_threads", lambda: 1)
    monkeypatch.setattr(stress, "failure", lambda program, folder: None)
    with stress.Built() as built:
        assert stress.kept(range(3), tmp_path, built) == 0
        # The system takes pages back when it likes, so the sizes are given.
        sizes = iter(range(0, 10**9, 10**7))
        monkeypatch.setattr(stress, "resident", lambda: next(sizes))
        assert stress.kept(range(3), tmp_path, built) == 1
    assert "memory or threads leak that no kernel explains" in capsys.readouterr().out


@pytest.mark.slow
def test_threads_that_do_nothing_hang_and_those_that_work_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stress, "PATIENCE", 1)
    ends = threading.Event()
    waiting = threading.Thread(target=ends.wait, daemon=True)
    waiting.start()
    assert not stress.have_ended([waiting])
    ends.set()

    def work() -> None:
        began = time.process_time()
        while time.process_time() - began < 1.5:
            pass

    working = threading.Thread(target=work, daemon=True)
    working.start()
    monkeypatch.setattr(stress, "HUNG", 0.001)
    assert stress.have_ended([waiting, working])
