"""A kernel that leaves its arrays ends the process: what is said then."""

from __future__ import annotations

import platform
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
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the handler is for x86-64")
@pytest.mark.parametrize("options", [(), ("-X", "faulthandler")])
@pytest.mark.parametrize("size", [10, 100_000], ids=["few work-items", "several threads"])
def test_an_index_far_outside_ends_with_the_way_to_find_its_line(
    tmp_path: Path, options: tuple[str, ...], size: int
) -> None:
    done = run(tmp_path, KERNEL.replace("ones(10)", f"ones({size})"), 10**9, *options)
    assert done.returncode == -11
    assert done.stderr.count("DPARRAY_DEBUG=1") == 1  # however many threads fault at once
    assert "dp.simulate" in done.stderr
    assert ("most recent call first" in done.stderr) == bool(options)


@pytest.mark.slow
def test_debug_mode_names_the_line_instead(tmp_path: Path) -> None:
    done = run(tmp_path, KERNEL.replace("a = dp", "dp.config.debug = True\na = dp"), 10**9)
    assert done.returncode == 1
    # Which work-item is seen first is the driver's to say.
    assert re.search("index 100000000[0-9] is out of bounds of a", done.stderr)
    assert "a[item.get_id(0) + far] = 1" in done.stderr


def test_a_program_without_such_an_index_says_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, KERNEL, 0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10.0\n", "")


def test_a_handler_of_the_program_is_the_one_that_runs(tmp_path: Path) -> None:
    own = "import os, signal\nsignal.signal(signal.SIGSEGV, lambda *_: print('mine'))\n"
    done = run(tmp_path, KERNEL + own + "os.kill(os.getpid(), signal.SIGSEGV)\n", 0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10.0\nmine\n", "")
