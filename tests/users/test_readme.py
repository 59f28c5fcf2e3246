"""The code blocks of README run and print the shown output, with one compute unit and with many."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
UNITS = sorted({1, len(os.sched_getaffinity(0))})


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.sample(1)
def test_each_block_of_readme_runs_alone(units: int, tmp_path: Path) -> None:
    if shutil.which("taskset") is None:
        pytest.skip("needs taskset")
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:units]))
    outside = {key: value for key, value in os.environ.items() if key != "OCL_ICD_FILENAMES"}
    stdout = ""
    for number, block in enumerate(BLOCKS):
        program = tmp_path / f"block{number}.py"
        program.write_text(block)
        done = subprocess.run(
            ["taskset", "-c", cores, sys.executable, program],
            cwd=tmp_path,
            env={**outside, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        stdout += done.stdout
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    shown = [text for language, text in blocks if not language]
    assert len(shown) == 3
    for text in shown:
        for part in text.split("...\n"):
            assert words(part) in words(stdout)


def test_the_first_block_explains_the_kernel_that_runs(tmp_path: Path) -> None:
    program = tmp_path / "block.py"
    program.write_text(BLOCKS[0])
    without_options = {key: text for key, text in os.environ.items() if key[:8] != "DPARRAY_"}
    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env={
            **without_options,
            "PYTHONPATH": str(ROOT),
            "DPARRAY_CACHE_DIR": str(tmp_path / "cache"),
            "DPARRAY_DEVICE": "host:cpu",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^1\. fused, kernel new", done.stdout, re.M)
    assert "not compiled" not in done.stdout
    assert done.stdout.endswith("\n1.0\n")


def words(text: str) -> str:
    """Return a text without its line breaks and the position in the example's file."""
    return " ".join(re.sub(r"\S*\.py:\d+", "example.py", text).split())


def test_no_block_of_readme_needs_a_number_of_compute_units() -> None:
    assert not any("create_sub_devices" in block for block in BLOCKS)
