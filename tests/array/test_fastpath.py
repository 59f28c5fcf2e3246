"""The compiled fast path of small arrays computes the same results as the general way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dparray._array import build_fastpath, fastpath

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the file of the module."""
    try:
        return build_fastpath.build(tmp_path_factory.mktemp("fastpath"))
    except OSError as error:
        pytest.skip(f"there is no C compiler: {error}")


def run(command: list[str], module: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DPARRAY_COMPILED": module, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, cwd=ROOT
    )


def test_a_free_threaded_python_loads_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPARRAY_COMPILED", raising=False)
    monkeypatch.setattr(sys, "abiflags", "t", raising=False)
    assert fastpath._load() == (None, "")


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "2"])
def test_random_programs_come_to_the_same(module: Path, seed: str) -> None:
    command = ["tests/array/random_small_arrays.py"]
    theirs = run([*command, "python", seed, "300"], "0")
    ours = run([*command, "compiled", seed, "300"], str(module))
    assert theirs.returncode == 0, theirs.stderr[-2000:]
    assert ours.returncode == 0, ours.stderr[-2000:]
    for mine, other in zip(ours.stdout.splitlines(), theirs.stdout.splitlines(), strict=True):
        assert mine == other


@pytest.mark.slow
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


def test_an_interrupt_passes_through_an_index(module: Path) -> None:
    program = (
        "import dparray as dp\n"
        "class Stop:\n"
        "    def __index__(self): raise KeyboardInterrupt\n"
        "try: dp.arange(5.0)[slice(Stop(), None)]\n"
        "except KeyboardInterrupt: print('stopped')\n"
    )
    assert run(["-c", program], str(module)).stdout == "stopped\n"


@pytest.mark.parametrize("name", ["passwd", "_fastpath.abi3.so", "missing"])
def test_a_named_file_that_is_not_the_module_is_an_error(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    if name != "missing":
        file.write_bytes(b"root:x:0:0:root")
    done = run(["-c", "import dparray"], str(file))
    last = done.stderr.splitlines()[-1]
    assert f"ImportError: DPARRAY_COMPILED={file}: " in last, done.stderr
    assert "set it to 0" in last


def test_subscribers_get_events_of_small_work(module: Path) -> None:
    program = (
        "import dparray as dp\n"
        "from dparray._functions import install_fastpath\n"
        "assert install_fastpath.is_installed\n"
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


def test_a_module_of_another_source_is_not_loaded(module: Path, tmp_path: Path) -> None:
    file = tmp_path / "_fastpath.abi3.so"
    made_from = build_fastpath.source_digest().encode()
    file.write_bytes(module.read_bytes().replace(made_from, b"00000000"))
    done = run(["-c", "import dparray"], str(file))
    assert "built from another source" in done.stderr


@pytest.mark.parametrize("form", ["compiled", "python"])
def test_positions_masks_and_elements_are_numpys(module: Path, form: str) -> None:
    done = run(["-c", _SELECTING], str(module) if form == "compiled" else "0")
    assert done.stdout == "same\n", done.stderr[-2000:]


_SELECTING = """
import itertools
import numpy as np
import dparray as dp

def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, (ours.dtype, theirs.dtype)
    assert ours.asnumpy().tobytes() == theirs.tobytes()

for dtype in ("float64", "float32", "int64", "int32", "uint8", "bool", "complex64"):
    values = np.arange(24).reshape(4, 6).astype(dtype)
    x = dp.asarray(values)
    chosen = [np.array([2, -1, 0]), np.array([[1], [3]], "int32"), np.array([], "int64")]
    chosen += [np.array([True, False, True, True]), values > 5, np.array(1), np.array(-1, "int32")]
    for index in chosen:
        same(x[dp.asarray(index)], values[index])
        if index.dtype != bool:
            same(x.T[dp.asarray(index)], values.T[index])
        for value in (1, 0):
            ours, theirs = dp.asarray(values), values.copy()
            ours[dp.asarray(index)] = value
            theirs[index] = value
            same(ours, theirs)
    mask, column = np.array([True, False, True, True]), np.array([1, 0, -1])
    below, rows = np.array([[0], [3]]), np.array([2, 2, 0], "int32")
    for index in ((rows, column), (rows, slice(1, 4)), (below, column), (mask, 2), (..., column),
                  (None, rows), (mask, column), (slice(None), mask[[0, 1, 2, 3, 0, 1]]),
                  (rows, 9), (rows, column[:2])):
        mine = tuple(dp.asarray(each) if isinstance(each, np.ndarray) else each for each in index)
        try:
            selected = values[index]
        except IndexError:
            for attempt in (lambda: x[mine], lambda: dp.asarray(values).__setitem__(mine, 1)):
                try:
                    attempt()
                except (IndexError, dp.ShapeError):
                    continue
                raise AssertionError(index)
            continue
        same(x[mine], selected)
        for value in (1, selected[::-1].copy(), values[:1, :1]):
            ours, theirs = dp.asarray(values), values.copy()
            ours[mine] = dp.asarray(value) if isinstance(value, np.ndarray) else value
            theirs[index] = value
            same(ours, theirs)
    first = dp.asarray(2)
    same(x[first, 1:], values[2, 1:])
    same(x[first, np.int64(3)], values[2, 3])
    same(x[2:2], values[2:2])
    same(x[:, 9:], values[:, 9:])
    element, number = x[1, 2], values[1, 2]
    x[1, 2] = x[3, 3]
    same(element, number)
    same(x[1, 2], values[3, 3])
    for wrong in ((4, 0), (0, -7), dp.asarray([9]), dp.asarray([True])):
        try:
            x[wrong]
        except IndexError:
            continue
        raise AssertionError(wrong)

numbers = [np.float64(0.1), np.float64(0), np.float64("nan"), np.float64("-inf"), np.float32(0.1),
           np.int64(2**62), np.int64(-9), np.int32(-7), np.int16(2**14), np.int8(-128),
           np.uint8(200), np.uint16(7), np.uint32(2**31 + 5), np.uint64(2**63), np.bool_(True),
           np.complex64(1 + 2j)]
operators = ["+", "-", "*", "/", "//", "%", "<<", ">>", "<", "<=", ">", ">=", "==", "!=",
             "&", "|", "^"]
with np.errstate(all="ignore"):
    for a, b in itertools.product(numbers, [*numbers, 3, -2, 0, 200, 0.5, 1e300, 2**60, True]):
        for operator in operators:
            for reverse in (False, True):
                try:
                    theirs = eval(f"b {operator} a" if reverse else f"a {operator} b")
                except (TypeError, OverflowError, ValueError):
                    continue
                is_ours = isinstance(b, np.generic)
                own = {"a": dp.asarray(a), "b": dp.asarray(b) if is_ours else b}
                same(eval(f"b {operator} a" if reverse else f"a {operator} b", own), theirs)
        for operator in ("+=", "-=", "*=", "//=", "&=", ">>="):
            theirs = np.array(a)
            try:
                exec(f"theirs {operator} b")
            except (TypeError, OverflowError):
                continue
            ours, number = dp.asarray(a), dp.asarray(b) if isinstance(b, np.generic) else b
            exec(f"ours {operator} number")
            same(ours, theirs)
    for a in numbers:
        for single in ("-a", "+a", "abs(a)", "~a"):
            try:
                theirs = eval(single)
            except TypeError:
                continue
            same(eval(single, {"a": dp.asarray(a)}), theirs)

for value in (7, -7, 300, 0.5, 2**70, np.float64(0.5), np.int64(3), True):
    for dtype in ("float64", "float32", "int64", "uint8", "bool"):
        theirs = np.zeros((2, 3), dtype)
        ours = dp.asarray(theirs)
        try:
            theirs[1, 2] = value
        except OverflowError:
            try:
                ours[1, 2] = value
            except OverflowError:
                same(ours, theirs)
                continue
            raise AssertionError(value)
        try:
            ours[1, 2] = value
        except dp.DTypeError:
            assert dtype == "bool" or not np.can_cast(type(value), dtype, "same_kind"), value
            continue
        same(ours, theirs)
print("same")
"""


def test_reused_number_objects_keep_their_values(module: Path) -> None:
    done = run(["-c", _LETTING_GO], str(module))
    assert done.stdout == "same\n", done.stderr[-2000:]


_LETTING_GO = """
import weakref
import numpy as np
import dparray as dp

x = dp.arange(100.0)
kept = [x[at] + 1 for at in range(100)]
assert [float(each) for each in kept] == list(range(1, 101))
seen = []
for at, number in enumerate(x):
    if at % 7 == 0:
        seen.append((weakref.ref(number), number + 0.5))
assert all(ref() is None or float(ref()) == 7 * at for at, (ref, _) in enumerate(seen))
assert [float(half) for _, half in seen] == [7 * at + 0.5 for at in range(len(seen))]
first = x[3]
view, first = first.reshape(1), None
others = [x[at] * 2 for at in range(40)]
assert view.tolist() == [3.0]
number = x[5]
ref, number = weakref.ref(number), None
others = [x[at] for at in range(40)]
assert ref() is None or float(ref()) == 5
dp.synchronize()
before = dp.memory.stats().in_use
for dtype in (float, "float32", int, bool):
    for at in range(3):
        number = dp.asarray(np.ones(9, dtype))[at]
        rows = number.reshape(1, 1)
        double = number * 2
        double.shape = (1,)
        double.block
number = rows = double = None
assert dp.memory.stats().in_use == before, "a number that is gone has memory"
print("same")
"""
