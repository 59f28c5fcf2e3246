"""The soak's programs run, and a failing one is cut down to what fails."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def load() -> Any:
    spec = importlib.util.spec_from_file_location("soak", Path(__file__).with_name("soak.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["soak"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


soak = load()


@pytest.mark.parametrize("seed", range(4))
def test_programs_agree_with_numpy(seed: int, tmp_path: Path) -> None:
    program = [step for step in soak.make_program(seed) if step[0] != "bad_cache"]
    assert soak.failure(program, tmp_path) is None


def test_the_smallest_failing_program_is_found() -> None:
    program = [("new", (n, 0, 0)) for n in range(30)]
    bad = [program[7], program[19]]
    found = soak.shrink(program, lambda part: all(step in part for step in bad))
    assert found == bad
