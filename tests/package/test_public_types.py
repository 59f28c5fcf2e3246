"""A type checker in strict mode finds the public names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.static

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import dparray as dp
from dparray import ndarray

x: ndarray = dp.ones(3, dtype=dp.float32)
y: dp.ndarray = dp.sin(x) + dp.where(x > 0, x, 2.0)

@dp.kernel
def fill(item: dp.Item, a: dp.ndarray) -> None:
    a[item.get_id(0)] = dp.pi

dp.call_kernel(fill, dp.Range(3), x)
dp.linalg.norm(dp.fft.fft(x))
a: dp.ndarray = dp.linspace(0, 1, 5)
b, step = dp.linspace(0, 1, 5, retstep=True)
c: dp.ndarray = dp.where(x > 0, x, 2.0)
(d,) = dp.where(x > 0)
made: dp.KernelFunction = fill
event: dp.Event = dp.call_kernel(fill, dp.Range(3), x)

@dp.kernel(debug=True)
def checked(item: dp.Item, a: dp.ndarray) -> None:
    a[item.get_id(0)] = 1

checked[3](x)

@dp.elementwise
def double(value: float) -> float:
    return value * 2

@dp.reduction(identity=0.0)
def total(a: float, b: float) -> float:
    return a + b

e: dp.ndarray = double(x) + total(x)
dp.random.default_rng(1)
with dp.config.override(lazy=False):
    dp.explain(y)
place: dp.Device = x.device
error: type[dp.DparrayError] = dp.ExecutionPlacementError
"""


WRONG = """
import dparray as dp

x = dp.ones(3)
dp.sinn(x)
x.summ()
dp.linalg.nrom(x)
dp.random.norml(3)
y: str = dp.linspace(0, 1, 5)
"""


def checked(program: Path, text: str) -> subprocess.CompletedProcess[str]:
    program.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", f"--config-file={ROOT / 'pyproject.toml'}"]
    return subprocess.run(
        [*command, "--follow-imports=silent", str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


@pytest.mark.slow
def test_a_strictly_typed_program_may_use_every_public_name(tmp_path: Path) -> None:
    done = checked(tmp_path / "program.py", PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr


def test_misspelt_names_are_found(tmp_path: Path) -> None:
    done = checked(tmp_path / "program.py", WRONG)
    found = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    assert found == [5, 6, 7, 8, 9], done.stdout
