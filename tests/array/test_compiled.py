"""The compiled short way of small arrays does what the Python functions do that it stands for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dparray._array import build_short

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the module, built now."""
    try:
        return build_short.build(tmp_path_factory.mktemp("short"))
    except OSError as error:
        pytest.skip(f"there is no C compiler: {error}")


def run(command: list[str], module: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DPARRAY_COMPILED": module, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, cwd=ROOT
    )


@pytest.mark.parametrize("seed", ["1", "2"])
def test_random_programs_come_to_the_same(module: Path, seed: str) -> None:
    command = ["tests/array/random_small_arrays.py"]
    theirs = run([*command, "python", seed, "300"], "0")
    ours = run([*command, "compiled", seed, "300"], str(module))
    assert theirs.returncode == 0, theirs.stderr[-2000:]
    assert ours.returncode == 0, ours.stderr[-2000:]
    for mine, other in zip(ours.stdout.splitlines(), theirs.stdout.splitlines(), strict=True):
        assert mine == other


def test_tests_of_small_arrays_pass_with_it(module: Path) -> None:
    command = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    files = ["tests/evaluate/test_small_arrays.py", "tests/users/test_reading_values.py"]
    done = run([*command, *files], str(module))
    assert done.returncode == 0, done.stdout[-2000:]


_THREADS = """
import threading
import numpy as np
import dparray as dp

def work(seed, found):
    x = dp.arange(3000.0)
    for _ in range(300):
        x[1:] += 1.0
        y = (x + seed) * 2 - x[5] * x[6] / 0.0
    found.append(float(x[10]))

found = []
threads = [threading.Thread(target=work, args=(each, found)) for each in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
assert found == [310.0] * 4, found
print("same")
"""


def test_threads_compute_at_the_same_time(module: Path) -> None:
    done = run(["-W", "error", "-c", _THREADS], str(module))
    assert done.stdout == "same\n", done.stderr[-2000:]


def test_an_interrupt_is_no_refusal(module: Path) -> None:
    program = (
        "import dparray as dp\n"
        "class Stop:\n"
        "    def __index__(self): raise KeyboardInterrupt\n"
        "try: dp.arange(5.0)[slice(Stop(), None)]\n"
        "except KeyboardInterrupt: print('stopped')\n"
    )
    assert run(["-c", program], str(module)).stdout == "stopped\n"


def test_a_file_that_is_no_module_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "_short.abi3.so"
    file.write_bytes(b"no library")
    done = run(["-c", "import dparray as dp; print((dp.arange(3) + 1).tolist())"], str(file))
    assert done.stdout == "[1, 2, 3]\n", done.stderr


def test_who_listens_is_told_of_small_work(module: Path) -> None:
    program = (
        "import dparray as dp\n"
        "from dparray._functions import compiled\n"
        "assert compiled.is_installed\n"
        "x = dp.arange(5.0)\n"
        "fast = dp.ndarray.__add__\n"
        "with dp.profile() as p:\n"
        "    y = x + 1\n"
        "    y *= 2\n"
        "    float(y[0])\n"
        "print([(each.kind, each.name) for each in p.events])\n"
        "assert dp.ndarray.__add__ is fast\n"
    )
    done = run(["-c", program], str(module))
    told = "[('host', 'add'), ('host', 'multiply'), ('copy', 'to the host')]\n"
    assert done.stdout == told, done.stderr
