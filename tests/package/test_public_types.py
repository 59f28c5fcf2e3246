"""A user's type checker, at its strictest, finds the public names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
dp.random.default_rng(1)
with dp.config.override(lazy=False):
    dp.explain(y)
place: dp.Device = x.device
error: type[dp.DparrayError] = dp.ExecutionPlacementError
"""


def test_a_strictly_typed_program_may_use_every_public_name(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", f"--config-file={ROOT / 'pyproject.toml'}"]
    done = subprocess.run(
        [*command, "--follow-imports=silent", str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
