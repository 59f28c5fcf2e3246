"""``make bench`` compares the right candidates and prints a table or JSON, without timing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray.cli.bench import machine as _machine
from tests.benchmarks import (
    _timer,
    allocation,
    fusion,
    launch,
    npbench_jit,
    overhead,
    shapes,
    standard,
)
from tests.benchmarks import command as bench
from tests.benchmarks import compile as first_calls
from tests.benchmarks._registry import Benchmark, Row, Settings
from tests.benchmarks._timer import Candidate, Timing
from tests.support import OPS

SETTINGS = Settings(dp.Device("cpu"), (9,), 0.0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the fewest calls that give a median."""
    monkeypatch.setattr(_timer, "_SHORTEST_BATCH", 0.0)
    monkeypatch.setattr(_timer, "_MIN_ROUNDS", 2)


def run_bench(*arguments: str) -> int:
    return bench.main(["--size", "9", "--seconds", "0", *arguments])


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_json_has_machine_settings_and_a_row_for_each_case(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_bench("launch", "allocation", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"machine", "settings", "benchmarks"}
    assert found["settings"] == {"sizes": [9], "seconds_per_row": 0.0}
    assert found["machine"]["cores"] == os.cpu_count()
    assert found["machine"]["packages"]["dpctl"]
    assert found["machine"]["device"].startswith("opencl:cpu:0")
    assert list(found["benchmarks"]) == ["launch", "allocation"]
    for benchmark in found["benchmarks"].values():
        for row in benchmark["rows"]:
            assert row["seconds"].keys() - {"dparray"} == row["ratios"].keys()
            assert all(
                0 < timing["best"] <= timing["median"] and timing["rounds"] >= 2
                for timing in row["seconds"].values()
            )


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_launch_is_compared_with_its_limit() -> None:
    rows = bench.measure_all(["launch"], SETTINGS)["benchmarks"]["launch"]["rows"]
    limits = {row["case"]: row.get("limit") for row in rows}
    assert limits == {
        "submit, Range": 20e-6,
        "submit, NdRange": 20e-6,
        "submit, Range, 100 pending": 20e-6,
        "submit and wait, Range": None,
        "submit and wait, NdRange": None,
    }
    for row in rows:
        if "limit" in row:
            median = row["seconds"]["dparray"]["median"]
            assert row["within_limit"] == (median <= row["limit"])


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_an_eager_call_is_compared_with_its_launch() -> None:
    rows = list(overhead.rows(SETTINGS))
    assert [row.case for row in rows] == list(overhead.CALLS)
    for row in rows:
        assert list(row.timings) == ["dparray", "launch", "dpnp"]
        assert row.limit == row.timings["launch"].median + 10e-6


@pytest.mark.usefixtures("quick")
def test_reuse_is_compared_with_the_driver_and_with_a_released_pool() -> None:
    rows = list(allocation.rows(SETTINGS))
    assert [row.case for row in rows] == [
        "allocate, device", "allocate, shared", "allocate, host", "x + x into new memory",
    ]  # fmt: skip
    assert list(rows[0].timings) == ["dparray", "dpctl_fresh"]
    assert list(rows[-1].timings) == ["dparray", "dparray_fresh", "numpy", "dpnp"]


@pytest.mark.usefixtures("quick")
def test_allocation_hits_the_pool_in_one_candidate_and_misses_in_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, Candidate] = {}

    def keep(candidates: dict[str, Candidate], budget: float) -> dict[str, Timing]:
        seen.update(candidates)
        return {}

    monkeypatch.setattr("tests.benchmarks._registry.measure", keep)
    # It runs in its own context: otherwise free memory next to arrays of other tests would be
    # reused.
    device = SETTINGS.device.sycl_queue.sycl_device
    queue = dpctl.SyclQueue(dpctl.SyclContext(device), device)
    allocation._fill(Settings(dp.Device(queue), (1_000_000,), 0.0), 1_000_000)
    seen["dparray"].batch(1)
    seen["dparray"].batch(1)
    before = dp.memory.stats().misses
    seen["dparray"].batch(3)
    assert dp.memory.stats().misses == before
    seen["dparray_fresh"].batch(1)
    assert dp.memory.stats().misses > before


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_gradients_are_compared() -> None:
    rows = list(bench.BENCHMARKS["gradients"].rows(SETTINGS))
    assert all(list(row.timings)[:3] == ["value_and_grad", "jit", "forward"] for row in rows)


def test_tile_functions_are_compared() -> None:
    rows = list(bench.BENCHMARKS["tile"].rows(SETTINGS))
    assert all(next(iter(row.timings)) == "tile" for row in rows)
    others = set().union(*(row.timings for row in rows))
    assert {"dparray @", "numpy", "elementwise", "a launch"} <= others


@pytest.mark.slow
def test_first_calls_are_timed_in_new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = bench.BENCHMARKS["compile"]
    monkeypatch.setattr("tests.benchmarks.compile._PROCESSES", 1)
    cases = [each for each in first_calls._CASES if each.name in ("max", "known user kernel")]
    monkeypatch.setattr("tests.benchmarks.compile._CASES", cases)
    settings = Settings(SETTINGS.device, (100_000,), 0.0)
    rows = list(benchmark.rows(settings))
    assert [row.case for row in rows] == [
        "max, kernels",
        "known user kernel, kernels",
        "max, chosen",
    ]
    assert all(row.timings["dparray"].median > 0 and row.limit for row in rows)


def test_every_operation_is_defined_on_the_values_it_is_timed_on() -> None:
    for op in OPS.values():
        assert np.isfinite(op.ufunc(*standard.operands_of(op, 100))).all(), op.name


@pytest.mark.usefixtures("quick")
def test_expressions_are_compared() -> None:
    rows = list(bench.BENCHMARKS["fusion"].rows(SETTINGS))
    assert any({"numpy", "dpnp"} <= row.timings.keys() for row in rows)
    assert any(row.bytes_moved for row in rows)
    assert all(next(iter(row.timings)).startswith("dparray") for row in rows)


@pytest.mark.slow
def test_loops_are_compared_with_numba() -> None:
    settings = Settings(dp.Device("cpu"), (), 0.0, only=("row maxima, 256", "3-d"))
    rows = list(bench.BENCHMARKS["loops"].measure(settings))
    cases = [row.case for row in rows if not row.case.startswith("control")]
    assert cases == ["row maxima, 256", "stencil, 3-d, 128"]
    assert all(list(row.timings) == ["dp.jit", "numba"] for row in rows)
    assert "2 cells" in next(bench.BENCHMARKS["loops"].conclude(rows))


@pytest.mark.usefixtures("quick")
def test_shapes_are_compared_with_contiguous_memory() -> None:
    benchmark = bench.BENCHMARKS["shapes"]
    rows = list(benchmark.rows(SETTINGS))
    assert {each.case.rpartition(", ")[2] for each in rows} == set(shapes.DTYPES)
    assert all(list(each.timings) == ["dparray", "numpy", "elementwise"] for each in rows)
    assert all(each.share is not None for each in rows)
    assert "ahead of NumPy" in next(benchmark.conclude(rows))


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_table_shows_medians_ratios_and_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench("launch") == 0
    table = capsys.readouterr().out
    assert "submit and wait, NdRange" in table
    assert "ABOVE 20 us" in table or "within 20 us" in table
    assert "ratio" in table
    assert "dparray [us]" in table
    assert _machine.processor_name() in table


@pytest.mark.usefixtures("quick")
def test_brackets_of_cases_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Row("x[mask] = 0.5", 60, {"dparray": Timing(1e-6, 1e-6, 0.0, 1)})
    monkeypatch.setitem(bench.BENCHMARKS, "launch", Benchmark("launch", "", lambda _: iter([row])))
    assert run_bench("launch") == 0
    assert "x[mask] = 0.5" in capsys.readouterr().out


def test_a_ratio_above_one_means_that_dparray_is_faster() -> None:
    row = Row("case", 9, {"dparray": Timing(1.0, 1.0, 0.0, 2), "numpy": Timing(3.0, 3.0, 0.0, 2)})
    assert bench._row_as_json(row)["ratios"] == {"numpy": 3.0}


@pytest.mark.usefixtures("quick")
def test_the_steps_of_plans_are_counted(tests_options: None) -> None:
    settings = Settings(SETTINGS.device, (200_000,), 0.0)
    host = [np.ones(200_000, np.float32)] * 2
    arguments = (host, 0, dict)
    one = fusion._case(settings, "one kernel", 200_000, lambda xp, a, b: a * b + a, *arguments)
    two = fusion._case(
        settings, "two", 200_000, lambda xp, a, b: xp.sum(a * b) + a.max() * b, *arguments
    )
    assert one.steps == 1
    assert bench._row_as_json(one)["plan_steps"] == 1
    assert "plan_steps" not in bench._row_as_json(Row("case", 9, one.timings))
    assert two.steps == 2


def test_an_unknown_benchmark_is_a_usage_error_that_lists_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run_bench("nonsense")
    message = capsys.readouterr().err
    assert "'nonsense'" in message
    assert all(name in message for name in bench.BENCHMARKS)


@pytest.mark.parametrize("size", ["-5", "many", "1e999"])
def test_a_size_is_a_positive_number(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench.main([f"--size={size}"])
    assert f"'{size}' is not a positive number" in capsys.readouterr().err


def test_an_unknown_device_is_an_error_without_traceback() -> None:
    command = [sys.executable, "-m", "dparray", "bench", "launch", "--device", "fpga"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.startswith("dparray bench: device: no device matches 'fpga'")


# --- the timer --------------------------------------------------------------------------------


def test_candidates_are_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_timer, "_SHORTEST_BATCH", 0.0)
    order: list[str] = []
    candidates = {name: Candidate(lambda name=name: order.append(name)) for name in "ab"}
    found = _timer.measure(candidates, 0.0)
    warm = 1 + _timer._MAX_WARM_CALLS
    assert "".join(order) == "aaaabbbb" + ("a" * warm + "b" * warm) * _timer._MIN_ROUNDS
    assert {timing.rounds for timing in found.values()} == {_timer._MIN_ROUNDS}


def test_a_median_ignores_an_outlier(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = chain([1.0, 1.0, 1.0], [1.0, 1.0, 50.0, 1.0, 1.0], repeat(1.0))
    monkeypatch.setattr(Candidate, "batch", lambda self, calls, warm=0: next(seconds))
    monkeypatch.setattr(_timer, "_SLOW", 2.0)
    found = _timer.measure({"dparray": Candidate(lambda: None)}, 0.0)["dparray"]
    assert (found.median, found.best, found.rounds) == (1.0, 1.0, 5)
    assert found.spread > 0


def test_work_around_a_batch_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def spend(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(_timer.time, "perf_counter", lambda: clock[0])
    candidate = Candidate(lambda: spend(2.0), before=lambda: spend(7.0), after=lambda: spend(9.0))
    assert candidate.batch(5) == 2.0


def test_the_launch_kernels_add() -> None:
    x, y, out, in_groups = (dp.ones(64, dtype="float32") for _ in range(4))
    dp.call_kernel(launch.add, dp.Range(64), x, y, out)
    dp.call_kernel(launch.add_in_groups, dp.NdRange(64, 64), x, y, in_groups)
    assert (dp.asnumpy(out) == 2).all()
    assert (dp.asnumpy(in_groups) == 2).all()


def test_the_processor_has_a_name_even_where_the_system_gives_none(tmp_path: Any) -> None:
    source = tmp_path / "cpuinfo"
    assert _machine.processor_name(source)
    source.write_text("processor\t: 0\nmodel name\t: Example CPU\n")
    assert _machine.processor_name(source) == "Example CPU"


def write_npbench(folder: Path, programs: dict[str, dict[str, str]]) -> Settings:
    """Write programs with the sources of their forms, and return settings that name the folder."""
    place = folder / "npbench" / "benchmarks" / "folder"
    place.mkdir(parents=True)
    (folder / "bench_info").mkdir()
    for name, forms in programs.items():
        make = "import numpy as np\ndef make(N):\n    return np.ones(N)\n"
        for suffix, text in {"": make, **forms}.items():
            (place / f"{name}{suffix}.py").write_text(text)
        description = {
            "module_name": name,
            "relative_path": "folder",
            "func_name": "run",
            "parameters": {"S": {"N": 5}},
            "init": {"func_name": "make", "input_args": ["N"], "output_args": ["x"]},
            "input_args": ["x"],
        }
        (folder / "bench_info" / f"{name}.json").write_text(json.dumps({"benchmark": description}))
    return Settings(dp.Device("cpu"), (9,), 0.0, folder)


def test_programs_of_npbench_are_compared_with_numpy(tmp_path: Path, quick: None) -> None:
    text = "import numpy as np\ndef run(x):\n    x *= {}\n"
    wrong = text.format("2 + (np.__name__ != 'numpy')")
    settings = write_npbench(
        tmp_path, {"double": {"_numpy": text.format(2)}, "wrong": {"_numpy": wrong}}
    )
    rows = [row for row in bench.BENCHMARKS["programs"].measure(settings) if ", S" in row.case]
    assert [row.case for row in rows] == ["double, S", "wrong, S"]
    assert [bool(row.where) for row in rows] == [False, True]
    assert all({"dparray", "numpy"} == row.timings.keys() for row in rows)
    (line,) = bench.BENCHMARKS["programs"].conclude(rows)
    assert "2 programs" in line
    assert line.endswith("not right: wrong, S")


def test_numba_programs_of_npbench_are_compared_with_numba(tmp_path: Path, quick: None) -> None:
    by_numpy = "def run(x):\n    x *= 2\n"
    by_numba = (
        "import numba as nb\nimport numpy as np\n@nb.jit(nopython=True)\n"
        "def run(x):\n    for i in range(x.shape[0]):\n        x[i] *= {}\n"
    )
    settings = write_npbench(
        tmp_path,
        {
            name: {"_numpy": by_numpy, "_numba_n": by_numba.format(factor)}
            for name, factor in (("double", 2), ("other", 3))
        },
    )
    rows = list(bench.BENCHMARKS["programs"].measure(replace(settings, jit=True)))
    assert [row.case for row in rows] == ["double, S", "other, S"]
    # The second program differs from NumPy in the same way as Numba.
    assert [row.where for row in rows] == ["", ""]
    assert all(list(row.timings) == ["dp.jit", "numba", "numpy"] for row in rows)
    (line,) = bench.BENCHMARKS["programs"].conclude(rows)
    assert line.startswith("S: 2 programs")


def test_a_folder_without_npbench_is_refused(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run_bench("programs", "--npbench", str(tmp_path))
    assert "git clone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "expected", "is_right"),
    [
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], True),
        ([1.0, 2.000001], [1.0, 2.0], True),
        ([1.0, 2.00001], [1.0, 2.0], False),
        ([1.0, np.nan], [1.0, 2.0], False),
        ([1.0, np.inf], [1.0, -np.inf], False),
        ([True], [False], False),
        ([1.0], [1.0, 2.0], False),
    ],
)
def test_results_of_programs_are_judged_in_tolerances(
    found: list[Any], expected: list[Any], is_right: bool
) -> None:
    with np.errstate(all="ignore"):
        distance = npbench_jit._distance(dp.asarray(found), np.asarray(expected))
    assert (distance <= 1.0) is is_right
