"""Run the tests of ``driver/`` in processes whose CUDA driver is the stand-in of ``standin.c``.

A driver belongs to a whole process, so these tests cannot run beside those of other devices.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cuda import standin

_ROOT = Path(__file__).resolve().parents[2]
_FILES = sorted(Path(__file__).with_name("driver").glob("test_*.py"))
# A worker's variables, and the sample of the outer run.
_NOT_INHERITED = ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")


def run(file: Path) -> None:
    """Run the tests of a file in a process with the stand-in; fail if none of them passes."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", standin.__name__, str(file)]
    environment = {name: each for name, each in os.environ.items() if name not in _NOT_INHERITED}
    environment["PYTHONPATH"] = str(_ROOT)
    done = subprocess.run(
        command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    text = f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    assert done.returncode == 0, text
    assert re.search(r"\b[1-9]\d* passed\b", done.stdout), text


@pytest.fixture(autouse=True)
def _stand_in_can_be_built() -> None:
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    try:
        standin.build()
    except standin.UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.process
@pytest.mark.sample(1)
@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_with_the_stand_in(file: Path) -> None:
    run(file)


@pytest.mark.process
def test_a_file_whose_tests_are_all_skipped_fails(tmp_path: Path) -> None:
    file = tmp_path / "test_skipped.py"
    file.write_text("import pytest\n\ndef test_it():\n    pytest.skip()\n")
    with pytest.raises(AssertionError, match="1 skipped"):
        run(file)
