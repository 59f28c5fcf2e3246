"""When kernels are compiled: once for each kernel and types, in memory and on disk."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from tests.support import execute, observed

pytestmark = pytest.mark.process

FACTORS = itertools.count(2000)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def compiled(new_cache: None) -> Iterator[list[tuple[str, str]]]:
    """Record names and origins of compiled kernels, with an empty disk cache."""
    events: list[tuple[str, str]] = []

    def note(event: str, **values: Any) -> None:
        if event == "compile":
            events.append((values["kernel"].name, values["origin"]))

    with observed(note):
        yield events


def make_scale(factor: Any) -> Any:
    @dp.kernel
    def scale(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] * factor

    return scale


def test_a_repeated_launch_compiles_nothing(compiled: list[Any]) -> None:
    scale = make_scale(1001)
    x = dp.ones(4, dtype="int64")
    for _ in range(3):
        scale[4](x)
    assert compiled == [("scale", "compiled")]


def test_no_kernel_makes_the_next_one_cost_more(
    compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is not forked: the helper that writes kernels is already running."""
    x = dp.ones(4, dtype="int64")
    make_scale(1010)[4](x)
    spawned = []
    spawn = os.posix_spawn

    def note(path: Any, *args: Any, **options: Any) -> int:
        spawned.append(os.path.basename(path))
        return spawn(path, *args, **options)

    monkeypatch.setattr(os, "posix_spawn", note)
    for factor in (1011, 1012, 1013):
        make_scale(factor)[4](x)
    assert spawned == []
    assert len(compiled) == 4


def test_each_combination_of_types_is_compiled(compiled: list[Any]) -> None:
    scale = make_scale(1002)
    scale[4](dp.ones(4, dtype="int64"))
    scale[4](dp.ones(4, dtype="int32"))
    scale[4](dp.ones(8, dtype="int32")[::2])
    scale[4](dp.ones(4, dtype="int32"))
    assert [name for name, _ in compiled] == ["scale"] * 3


def test_another_queue_compiles_nothing(compiled: list[Any], queue: dpctl.SyclQueue) -> None:
    factor = next(FACTORS)
    scale = make_scale(factor)
    scale[4](dp.ones(4, dtype="int64"))
    x = dp.ones(4, dtype="int64", sycl_queue=queue)
    scale[4](x)
    fresh = dp.ones(4, dtype="int64", sycl_queue=dpctl.SyclQueue(queue.sycl_device))
    scale[4](fresh)
    assert compiled == [("scale", "compiled")]
    assert x.tolist() == fresh.tolist() == [factor] * 4


def test_equal_kernels_share_and_closures_never_meet(compiled: list[Any]) -> None:
    """numba-dpex issue 897."""
    results = []
    for factor in (1004, 1005, 1004, np.float32(1004)):
        x = dp.ones(2, dtype="int64")
        make_scale(factor)[2](x)
        results.append(x.tolist())
    assert results == [[1004] * 2, [1005] * 2, [1004] * 2, [1004] * 2]
    assert len(compiled) == 3


def test_a_changed_device_function_is_another_kernel(compiled: list[Any]) -> None:
    scope: dict[str, Any] = {"dp": dp, "N": 3}
    execute("def grow(v):\n    return v + N\ngrow = dp.device_func(grow)\n", scope)
    text = "def kernel(item, x):\n    x[item.get_id(0)] = grow(x[item.get_id(0)])\n"
    results = []
    for n in (3, 70, 3):
        scope["N"] = n
        execute(text, scope)
        x = dp.zeros(1, dtype="int64")
        dp.call_kernel(dp.kernel(scope["kernel"]), dp.Range(1), x)
        results.append(x.item())
    assert results == [3, 70, 3]
    assert len(compiled) == 2


def test_a_launch_uses_the_values_assigned_last(compiled: list[Any]) -> None:
    """In notebooks, users execute a cell with a constant or a device function again."""
    scope: dict[str, Any] = {"dp": dp, "N": 3}
    define = "@dp.device_func\ndef grow(v):\n    return v {} N\n"
    execute(define.format("+"), scope)
    execute("@dp.kernel\ndef kernel(item, x):\n    x[item.get_id(0)] = grow(5) + N\n", scope)
    kernel = scope["kernel"]

    def launch() -> Any:
        x = dp.zeros(1, dtype="int64")
        kernel[1](x)
        return x.item()

    assert launch() == launch() == 11
    scope["N"] = 70
    assert launch() == launch() == 145
    execute(define.format("-"), scope)
    assert launch() == 5
    scope["N"] = 3
    assert launch() == 5
    scope["N"] = 4
    with dp.config.override(debug=True):
        assert launch() == 5
    execute(define.format("*"), scope)
    scope["N"] = 3
    assert launch() == 18
    assert len(compiled) == 6


def test_a_launch_follows_the_members_of_modules(compiled: list[Any]) -> None:
    settings = types.ModuleType("settings")
    settings.inner = types.ModuleType("settings.inner")  # type: ignore[attr-defined]
    settings.inner.step = 1
    settings.factor = 3  # type: ignore[attr-defined]
    text = "@dp.device_func\ndef grow(v):\n    return v * factor\n"
    settings.dp = dp  # type: ignore[attr-defined]
    execute(text, settings.__dict__)
    settings.grow = dp.device_func(  # type: ignore[attr-defined]
        types.FunctionType(settings.grow.py_func.__code__, settings.__dict__)
    )

    @dp.kernel
    def kernel(item: dp.Item, x: Any) -> None:
        x[item.get_id(0)] = settings.grow(5) + settings.inner.step

    @dp.elementwise
    def grown(x: Any) -> Any:
        return settings.grow(x) + settings.inner.step

    def launch() -> Any:
        x = dp.zeros(1, dtype="int64")
        kernel[1](x)
        return x.item()

    five = dp.asarray(5)
    assert launch() == launch() == grown(five).item() == 16
    assert len(compiled) == 2
    pending = grown(five)
    settings.inner.step = 100
    assert launch() == grown(five).item() == 115
    settings.factor = 10  # type: ignore[attr-defined]
    assert launch() == grown(five).item() == 150
    assert pending.item() == 16


def test_a_launch_follows_a_captured_name(compiled: list[Any]) -> None:
    factor = 2

    @dp.kernel
    def scale(item: dp.Item, x: Any) -> None:
        x[0] *= factor

    x = dp.ones(1)
    scale[1](x)
    factor = 5
    scale[1](x)
    assert x.item() == 10


@dp.device_func
def halved(value: Any) -> Any:
    return value / 2


@dp.kernel
def halve(item: dp.Item, x: Any) -> None:
    x[item.get_id(0)] = halved(x[item.get_id(0)])


def test_kernels_are_pickled_and_copied_by_name() -> None:
    for function in (halve, halved):
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is function


def test_options_are_other_kernels(compiled: list[Any]) -> None:
    def triple(item: Any, x: Any) -> None:
        x[item.get_id(0)] *= 3

    x = dp.ones(1, dtype="int64")
    for options in ({}, {"inline_threshold": 3}, {"debug": True}, {}):
        dp.kernel(**options)(triple)[1](x)
    assert x.item() == 81
    assert len(compiled) == 3


PROGRAM = """
import sys, time
import dparray as dp
from dparray import _hooks
origins = []
def note(event, **values):
    if event == "compile":
        origins.append(values["origin"])
_hooks.subscribe(note)

@dp.device_func
def twice(v):
    return 2 * v

@dp.kernel
def kernel(item, x, y):
    i = item.get_id(0)
    y[i] = twice(x[i]) + {constant}

x = dp.asarray([1, 2, 3])
y = dp.zeros_like(x)
x.asnumpy(), y.asnumpy()
origins.clear()
dp.call_kernel(kernel, dp.Range(3), x, y)
assert y.tolist() == [2 * v + {constant} for v in (1, 2, 3)], y.tolist()
print(",".join(origins), "numba" in sys.modules, flush=True)
"""


def run(cache: Path, program: str = PROGRAM, constant: int = 1) -> tuple[str, str]:
    environment = dict(os.environ, DPARRAY_CACHE_DIR=str(cache), PYTHONPATH=str(ROOT))
    command = [sys.executable, "-c", program.replace("{constant}", str(constant))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_processes_launch_without_importing_numba(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == "compiled False"
    assert run(tmp_path)[0] == "disk False"
    assert run(tmp_path, constant=2)[0] == "compiled False"
    assert run(tmp_path, constant=1)[0] == "disk False"


def test_damaged_entries_are_compiled_anew(tmp_path: Path) -> None:
    run(tmp_path)
    entries = list(tmp_path.rglob("*.kernel"))
    assert entries
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-100])
    assert run(tmp_path)[0] == "compiled False"
    assert run(tmp_path)[0] == "disk False"


def test_a_read_only_cache_folder_warns_once_and_compiles(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    output, errors = run(blocked / "cache")
    assert output == "compiled False"
    assert errors.count("RuntimeWarning") == 1
    assert "DPARRAY_CACHE_DIR" in errors


@pytest.mark.slow
def test_processes_that_race_for_one_kernel_all_get_it(tmp_path: Path) -> None:
    environment = dict(os.environ, DPARRAY_CACHE_DIR=str(tmp_path), PYTHONPATH=str(ROOT))
    command = [sys.executable, "-c", PROGRAM.replace("{constant}", "5")]
    racers = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = [racer.communicate(timeout=300)[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 4
    assert all(output.split(" ")[0].strip() in ("compiled", "disk") for output in outputs)
    assert run(tmp_path, constant=5)[0] == "disk False"


def test_a_kernel_over_many_ranges_stays_right() -> None:
    @dp.kernel
    def count(item: dp.Item, x: Any) -> None:
        x[item.get_id(0)] += 1

    most = 1100  # more than a kernel remembers
    x = dp.zeros(most, dtype="int64")
    for size in range(1, most + 1):
        count[size](x)
    assert x.tolist() == list(range(most, 0, -1))
    count[most](x)
    assert int(x[0]) == most + 1


def test_threads_may_compile_and_launch_at_the_same_time(compiled: list[Any]) -> None:
    factors = [next(FACTORS) for _ in range(3)]
    shared = make_scale(factors[0])
    wrong: list[str] = []

    def work(number: int) -> None:
        own = make_scale(factors[1 + number % 2])
        for kernel, factor in ((shared, factors[0]), (own, factors[1 + number % 2])):
            for _ in range(20):
                x = dp.ones(100, dtype="int64")
                kernel[100](x)
                if x.tolist() != [factor] * 100:
                    wrong.append(f"thread {number}, factor {factor}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(compiled) >= 3


def test_kernels_that_name_classes_import_no_lists_of_numba(tmp_path: Path) -> None:
    """Numba checks whether each class is one of its typed lists, and imports them for that."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "import dparray as dp\n"
        "@dp.kernel\n"
        "def count(item, x):\n"
        "    for k in range(3):\n"
        "        x[item.get_id(0)] += float(k)\n"
        "x = dp.zeros(2)\n"
        "dp.call_kernel(count, dp.Range(2), x)\n"
        "print(x.tolist(), 'numba.typed.typedlist' in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DPARRAY_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[3.0, 3.0] False"
