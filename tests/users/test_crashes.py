"""A kernel that accesses memory outside its arrays ends the process, with a report."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

KERNEL = """
import sys
import dparray as dp

@dp.kernel
def leaves(item, a, far):
    a[item.get_id(0) + far] = 1

a = dp.ones(10)
dp.call_kernel(leaves, dp.Range(len(a)), a, int(sys.argv[1]))
print(a.sum(), flush=True)
"""


def run(tmp_path: Path, text: str, far: int, *options: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.py"
    program.write_text(text)
    return subprocess.run(
        [sys.executable, *options, str(program), str(far)],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_an_index_far_outside_prints_the_lines_that_ran(tmp_path: Path) -> None:
    # A single work-item: if several threads fault, the process may end before all is printed. The
    # driver reports the fault too, which now and then cuts the lines of Python.
    for _ in range(4):
        done = run(tmp_path, KERNEL.replace("ones(10)", "ones(1)"), 10**9)
        assert done.returncode == -11
        assert "Segmentation fault" in done.stderr
        if re.search(r'program\.py", line \d+ in <module>', done.stderr):
            return
    pytest.fail(done.stderr)


@pytest.mark.slow
def test_a_handler_that_was_there_before_stays(tmp_path: Path) -> None:
    own = "import os, signal\nsignal.signal(signal.SIGSEGV, lambda *_: print('mine'))\n"
    done = run(tmp_path, own + KERNEL + "os.kill(os.getpid(), signal.SIGSEGV)\n", 0)
    assert (done.returncode, done.stdout) == (
        0,
        "10.0\nmine\n",
    )  # the driver adds a line of its own


@pytest.mark.slow
def test_debug_mode_names_the_line_instead(tmp_path: Path) -> None:
    done = run(tmp_path, KERNEL.replace("a = dp", "dp.config.debug = True\na = dp"), 10**9)
    assert done.returncode == 1
    # The driver decides which work-item faults first.
    assert re.search("index 100000000[0-9] is out of bounds of a", done.stderr)
    assert "a[item.get_id(0) + far] = 1" in done.stderr


def test_a_program_without_such_an_index_does_not_warn(tmp_path: Path) -> None:
    done = run(tmp_path, KERNEL, 0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10.0\n", "")


def test_a_handler_of_the_program_is_the_one_that_runs(tmp_path: Path) -> None:
    own = "import os, signal\nsignal.signal(signal.SIGSEGV, lambda *_: print('mine'))\n"
    done = run(tmp_path, KERNEL + own + "os.kill(os.getpid(), signal.SIGSEGV)\n", 0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10.0\nmine\n", "")
