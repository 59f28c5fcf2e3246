"""Profiles, timers and the log: their contents, and that they change nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray import _hooks
from dparray._evaluate import timing
from dparray._profile import profile
from dparray._profile.recorder import Record
from dparray._profile.timeline import Timeline, lanes_of
from dparray.memory.blocks import allocate
from tests.support import force

COUNT = 400_000


def line_here() -> int:
    return sys._getframe(1).f_lineno


@pytest.mark.usefixtures("tests_options")
def test_a_kernel_is_recorded_with_the_line_that_built_it(queue: Any) -> None:
    x = dp.ones(COUNT, dtype="float32", sycl_queue=queue)
    dp.eval(x)
    (x * 3 + 1).asnumpy()
    with dp.profile() as p:
        y = x * 3 + 1
        line = line_here() - 1
        values = y.asnumpy()
    assert y.sycl_queue == queue
    np.testing.assert_array_equal(values, 4)
    (kernel,) = [event for event in p.events if event.kind == "kernel"]
    assert kernel.line == f"test_profile.py:{line}"
    assert kernel.operations == "multiply, add"
    assert kernel.nbytes == 2 * x.nbytes
    assert kernel.clock == "device"
    assert 0 <= kernel.start <= p.seconds
    assert 0 < kernel.duration < p.seconds
    assert kernel.queue == str(dp.Device(queue))
    copies = [event for event in p.events if event.kind == "copy"]
    assert [(each.nbytes, each.name) for each in copies] == [(4 * COUNT, "to the host")]
    assert any(event.kind == "allocate" and event.nbytes == 4 * COUNT for event in p.events)


@pytest.mark.usefixtures("tests_options")
def test_everything_else_is_recorded(queue: Any) -> None:
    @dp.kernel
    def fresh_kernel_of_this_test(item: Any, x: Any) -> None:
        x[item.get_id(0)] += 1

    with dp.profile() as p:
        x = dp.asarray(np.ones(COUNT), sycl_queue=queue)
        event = dp.call_kernel(fresh_kernel_of_this_test, dp.Range(COUNT), x)
        event.wait()
        with x.map("r"):
            pass
        dp.sort(x)
        small = dp.ones(3, sycl_queue=queue)
        dp.synchronize(x)
        float((small + 1)[0])
        dp.matmul(dp.ones((200, 200), sycl_queue=queue), dp.ones((200, 200), sycl_queue=queue))
    kinds = {each.kind for each in p.events}
    assert {"kernel", "host", "copy", "allocate", "wait", "map"} <= kinds
    assert all(each.line.startswith("test_profile.py:") for each in p.events)
    assert any(each.name.startswith("fresh_kernel") for each in p.events)
    assert any(each.kind == "host" and each.name == "add" for each in p.events)


def test_compiles_are_recorded() -> None:
    number = time.time_ns() % 1_000_000_007

    @dp.kernel
    def new_kernel(item: Any, x: Any) -> None:
        x[item.get_id(0)] = number

    with dp.profile() as p:
        dp.call_kernel(new_kernel, dp.Range(3), dp.zeros(3))
    names = [event.name for event in p.events if event.kind == "compile"]
    assert names == ["new_kernel", "new_kernel (by the driver)"]


@pytest.mark.usefixtures("tests_options")
def test_the_table_and_the_pictures(queue: Any, tmp_path: Path) -> None:
    x = dp.ones(COUNT, sycl_queue=queue)
    with dp.profile() as p:
        for _ in range(3):
            float((dp.sin(x) + x).sum())
    row = next(row for row in p.rows if row.kind == "kernel")
    assert row.calls == 3
    assert row.mean == pytest.approx(row.total / 3)
    assert row.bandwidth is not None
    assert row.share is not None
    assert row.share > 0
    text = str(p)
    assert row.line in text
    assert "GB/s, measured there" in text
    assert row.line in p._repr_html_()
    picture = p.plot()
    picture.save(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text() == picture.svg
    assert row.line in picture.svg
    p.to_chrome_trace(tmp_path / "run.json")
    trace = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    assert {"X", "M", "C"} == {each["ph"] for each in trace}
    names = {each["tid"]: each["args"]["name"] for each in trace if each["name"] == "thread_name"}
    assert str(dp.Device(queue)) in names.values()
    spans = [each for each in trace if each["ph"] == "X"]
    assert all(each["pid"] == 1 and each["tid"] in names and each["ts"] >= 0 for each in spans)
    assert 1 not in names  # the number of the process's main thread
    shown = [each for each in spans if each["cat"] == "kernel"]
    assert len(shown) >= 3
    assert all(each["dur"] > 0 for each in shown)


def test_queues_have_a_column_where_there_are_several(tmp_path: Path) -> None:
    cpu = dp.Device("cpu")
    parts = [dp.ones(COUNT, device=part) for part in cpu.create_sub_devices(partition=1)[:2]]
    dp.eval(*parts)
    with force("fused"), dp.profile() as p:
        for part in parts:
            dp.eval(part + 1)
    rows = [row for row in p.rows if row.kind == "kernel"]
    assert {row.queue for row in rows} == {str(part.device) for part in parts}
    text = str(p)
    assert text.splitlines()[0].split()[:3] == ["what", "line", "queue"]
    for part in parts:
        assert str(part.device).removesuffix(", default queue") in text
        assert str(part.device).removesuffix(", default queue") in p._repr_html_()


def _check_trace(trace: Any) -> None:
    """Check the rules of the trace event format for complete events, metadata and counters."""
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    named, ends = set(), {}
    for each in trace["traceEvents"]:
        assert isinstance(each["name"], str)
        assert isinstance(each["pid"], int)
        if each["ph"] == "M":
            assert each["name"] in ("process_name", "thread_name", "thread_sort_index")
            named.add(each.get("tid"))
            continue
        assert isinstance(each["ts"], float | int)
        assert np.isfinite(each["ts"])
        if each["ph"] == "C":
            assert all(isinstance(value, float | int) for value in each["args"].values())
            continue
        assert each["ph"] == "X"
        assert isinstance(each["cat"], str)
        assert isinstance(each["tid"], int)
        assert each["tid"] in named
        assert each["dur"] >= 0
        assert np.isfinite(each["dur"])
        # Spans of one thread are disjoint or nested.
        open_ends = ends.setdefault(each["tid"], [])
        while open_ends and open_ends[-1] <= each["ts"] + 1e-3:
            open_ends.pop()
        end = each["ts"] + each["dur"]
        assert not open_ends or end <= open_ends[-1] + 1e-3
        open_ends.append(end)


def test_a_trace_is_of_the_trace_event_format(queue: Any, tmp_path: Path) -> None:
    x = dp.ones(COUNT, sycl_queue=queue)

    def work() -> None:
        for _ in range(3):
            dp.eval(dp.tan(x) * 3)
            dp.sort(x)
        with x.map("r"):
            pass

    with dp.profile() as p:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
    p.to_chrome_trace(tmp_path / "trace.json")
    _check_trace(json.loads((tmp_path / "trace.json").read_text()))


def test_overlapping_events_have_separate_lanes() -> None:
    def record(name: str, start: float, end: float) -> Record:
        return Record("kernel", name, "a queue", "", start, end - start, 0, "device")

    work = [record(*each) for each in [("a", 0, 4), ("b", 1, 2), ("c", 3, 6), ("d", 4, 5)]]
    work.append(record("e", 7, 8))
    lanes = [(name, [each.name for each in found]) for name, found in lanes_of(work)]
    assert lanes == [("a queue", ["a", "b", "d", "e"]), ("a queue (2)", ["c"])]


def test_an_expression_of_the_library_is_counted_once(queue: Any) -> None:
    x = dp.ones(COUNT, sycl_queue=queue)
    dp.eval(x)
    with force("library"), dp.profile() as p:
        y = dp.sin(x) + 1
        line = line_here() - 1
        dp.eval(y)
    found = [each for each in p.events if each.kind == "library"]
    assert [each.name for each in found] == ["sin", "add"]
    assert {each.line for each in found} == {f"test_profile.py:{line}"}
    first, second = found
    assert first.start + first.duration <= second.start + 1e-6


def test_an_empty_profile_says_that_nothing_ran() -> None:
    with dp.profile() as p:
        pass
    assert str(p).startswith("nothing ran")
    assert dp.profile().events == ()


@pytest.mark.parametrize(
    ("seconds", "marks"),
    [
        (19.74, ["0 s", "2 s", "18 s"]),
        (0.0123, ["0 ms", "2 ms", "12 ms"]),
        (3e-4, ["0 us", "50 us", "300 us"]),
    ],
)
def test_the_marks_of_a_timeline_are_round_numbers(seconds: float, marks: list[str]) -> None:
    picture = Timeline([], seconds).svg
    found = re.findall(r">([0-9.e+-]+ [mu]?s)<", picture)
    assert 5 <= len(found) <= 11
    assert [found[0], found[1], found[-1]] == marks


def test_work_of_dparrays_threads_is_attributed_to_the_calling_line() -> None:
    kernel = SimpleNamespace(name="made")

    def compile_for(by: Any) -> None:
        with _hooks.attributed_to(by):
            _hooks.emit("compile", kernel=kernel, seconds=0.1, origin="compiled")

    with dp.profile() as p:
        thread = threading.Thread(target=compile_for, args=(_hooks.caller(),))
        thread.start()
        thread.join()
    (record,) = p.events
    assert record.line.startswith("test_profile.py:")


def test_pending_arrays_are_reported_as_pending(queue: Any) -> None:
    with dp.profile() as p:
        y = dp.ones(COUNT, sycl_queue=queue) * 2
    assert [x is y for x in p.pending] == [True]
    assert "1 array built in the block is still pending" in str(p)
    dp.eval(y)
    assert not p.pending
    assert "pending" not in str(p)


def test_work_of_the_host_has_its_bytes() -> None:
    x = dp.asarray(np.arange(COUNT)[::-1].copy())
    with dp.profile() as p:
        dp.sort(x)
    assert any(each.kind == "host" and each.nbytes >= x.nbytes for each in p.events)


@pytest.mark.parametrize("count", [64, COUNT])
def test_expressions_of_the_host_have_the_bytes_of_operands_and_results(count: int) -> None:
    x, y = dp.ones(count), dp.ones(count)
    dp.eval(x, y)
    with force("host"), dp.profile() as p:
        dp.eval(dp.add(x, y))
    assert [each.nbytes for each in p.events if each.kind == "host"] == [3 * x.nbytes]


@pytest.mark.usefixtures("tests_options")
def test_blocks_may_be_nested_and_see_all_threads(queue: Any) -> None:
    def work() -> None:
        dp.eval(dp.ones(COUNT, sycl_queue=queue) * 3 + 2)
        dp.synchronize(dp.Device(queue))

    with dp.profile() as outer:
        work()
        with dp.profile() as inner:
            threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        work()
    count = [sum(each.kind in ("kernel", "library") for each in p.events) for p in (inner, outer)]
    assert count == [3, 5]
    assert {"worker 0", "worker 1", "worker 2"} <= {each.thread for each in inner.events}
    assert not _hooks.subscribers


@pytest.mark.usefixtures("tests_options")
def test_an_in_order_queue_is_timed_by_the_host_and_the_table_says_so() -> None:
    device = dp.Device("cpu").sycl_device
    queue = dpctl.SyclQueue(device, property="in_order")
    x = dp.ones(COUNT, sycl_queue=queue)
    with dp.profile() as p:
        (x * 2 + 1).asnumpy()
    assert {each.clock for each in p.events} == {"host"}
    assert "collects none" in str(p)
    with dp.timer(x) as t:
        y = x * 2 + 1
    assert t.device is None
    assert float(y[0]) == 3


@pytest.mark.usefixtures("tests_options")
def test_a_timer_waits_for_expressions_built_inside(queue: Any) -> None:
    x = dp.ones(COUNT, sycl_queue=queue)
    y = dp.sin(x) + 1
    dp.eval(dp.sin(x) + 1)
    with dp.timer(x) as t:
        y = dp.sin(x) + 1
    assert not y.is_pending
    assert t.device is not None
    assert t.host >= t.device > 0
    with dp.timer(dp.Device(queue)) as t:
        time.sleep(0.02)
    assert t.host >= 0.02
    assert t.device == 0
    assert "host" in repr(t)


def test_a_timer_evaluates_and_reports_expressions_of_other_queues() -> None:
    device = dp.Device("cpu").sycl_device
    x = dp.ones(COUNT, sycl_queue=dpctl.SyclQueue(device))
    with force("fused"):
        dp.eval(dp.cos(x) + 1)
        with dp.timer(dp.Device(dpctl.SyclQueue(device))) as t:
            y = dp.cos(x) + 1
    assert not y.is_pending
    assert y.ready
    assert t.device == 0
    assert f"the work was on {x.device}" in repr(t)


def test_a_timer_reports_work_of_the_calling_thread() -> None:
    x = dp.ones(COUNT)
    with force("host"), dp.timer(x) as t:
        y = x + 1
    assert t.device == 0
    assert "the calling thread did the work" in repr(t)
    assert float(y[0]) == 2


def test_measurements_of_the_machine_are_not_recorded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue = dp.Device("cpu").sycl_queue
    with dp.config.override(log=True), dp.profile() as p, _hooks.events_disabled():
        layout = allocate(queue, "device", (16,), np.dtype(np.float64))
        timing.addition(queue, layout)()
    assert p.events == ()
    assert not capsys.readouterr().err


def test_bandwidth_is_measured_with_the_profile_or_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profile, "_bandwidths", {})
    x = dp.ones(COUNT, sycl_queue=dpctl.SyclQueue("cpu"))
    dp.eval(x)
    with force("fused"), dp.profile() as p:
        dp.eval(x + 1)
        previous = dp.memory.set_limit(1)
        try:
            dp.memory.release()
            assert "100 % is" not in str(p)
        finally:
            dp.memory.set_limit(previous)
        assert "100 % is" in str(p)
        (row,) = [row for row in p.rows if row.kind == "kernel"]
    assert row.calls == 1
    assert row.share is not None
    assert 0 < row.share < 1e3


@pytest.mark.parametrize("executor", ["host", "fused"])
def test_profiling_changes_no_result(queue: Any, executor: str) -> None:
    x = dp.asarray(np.random.default_rng(1).normal(size=50_000), sycl_queue=queue)

    def results() -> list[np.ndarray]:
        parts = [x.sum(), dp.sort(x), dp.cumsum(x), (x * 2 - 1) / 3, dp.var(x), x[x > 0]]
        return [part.asnumpy() for part in parts]

    # The choice of the backend depends on the load, and each backend rounds sums differently.
    with force(executor):
        plain = results()
        with dp.profile():
            inside = results()
    for one, other in zip(plain, inside, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_profile_is_used_once() -> None:
    with dp.profile() as p:
        pass
    assert p.events == ()
    with pytest.raises(dp.exceptions.ArgumentError, match="new one"):
        p.__enter__()
    with dp.profile() as p, pytest.raises(dp.exceptions.ArgumentError, match="new one"), p:
        pass
    assert not _hooks.subscribers


@pytest.mark.usefixtures("tests_options")
def test_the_log_contains_all_work(queue: Any, capsys: pytest.CaptureFixture[str]) -> None:
    x = dp.asarray(np.arange(COUNT)[::-1].copy(), sycl_queue=queue)
    with dp.config.override(log=True):
        (x * 2 + 1).asnumpy()
        line = line_here() - 1
        dp.sort(x)
        dp.ones(3, sycl_queue=queue) + 1
        with x.map("r"):
            pass
        moved = x.to_device(dp.Device(dpctl.SyclQueue(queue.sycl_device)))
        dp.synchronize(x)
    told = capsys.readouterr().err
    assert f"copy {8 * COUNT} bytes from {dp.Device(queue)} to " in told
    assert f" to {moved.device} [test_profile.py" in told
    assert f"host sort {16 * COUNT} bytes" in told
    assert "host add 48 bytes, on the calling thread" in told
    assert f"[test_profile.py:{line}]" in told
    for word in ("launch fused", "copy", "host", "map 'r'", f"{8 * COUNT} bytes"):
        assert word in told
    (x * 2 + 1).asnumpy()
    assert not capsys.readouterr().err


@pytest.mark.slow
def test_the_command_profiles_a_script(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "import sys, dparray as dp\n"
        "if __name__ == '__main__':\n"
        "    print('argument', sys.argv[1])\n"
        "    y = dp.sin(dp.ones(300_000)) + 1\n"
        "    y.asnumpy()\n"
    )
    trace, plot = tmp_path / "t.json", tmp_path / "t.svg"
    command = [sys.executable, "-m", "dparray", "profile", "--trace", str(trace)]
    run = subprocess.run(
        [*command, "--plot", str(plot), str(script), "--mine"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "argument --mine" in run.stdout
    assert "mine.py:4" in run.stdout
    assert json.loads(trace.read_text())["traceEvents"]
    assert plot.read_text().startswith("<svg")
    command[-1] = str(tmp_path / "none" / "t.json")
    nowhere = subprocess.run([*command, str(script)], capture_output=True, text=True)
    assert nowhere.returncode == 1
    assert "no folder" in nowhere.stderr
    assert not nowhere.stdout  # the script has not run
    missing = subprocess.run([*command, "no.py"], capture_output=True, text=True)
    assert missing.returncode == 1
    assert "no.py" in missing.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("    values[7]\n", 1),
        ("    dp.ones(3) + dp.ones(4)\n", 1),
        ("    raise KeyboardInterrupt\n", 130),
        ("    sys.exit(3)\n", 3),
    ],
)
def test_a_script_that_fails_shows_its_own_lines_and_its_profile(
    tmp_path: Path, end: str, status: int
) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "import sys, dparray as dp\n"
        "def main(values):\n"
        "    (dp.sin(dp.ones(300_000)) + 1).asnumpy()\n" + end + "main([1])\n"
    )
    command = [sys.executable, "-m", "dparray", "profile", str(script)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == status
    assert "mine.py:3" in run.stdout
    if status == 3:
        assert not run.stderr
        return
    frames = [line.split('"')[1] for line in run.stderr.splitlines() if line[:7] == "  File "]
    assert frames[:2] == [str(script)] * 2
    assert not any("runpy" in file or "dparray/cli" in file for file in frames)
    script.write_text("def :\n")
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1
    assert "SyntaxError" in run.stderr
    assert "runpy" not in run.stderr


def test_a_long_table_shows_the_rows_that_took_longest() -> None:
    x = dp.ones(60)
    with dp.profile() as recorded:
        for statement in ("x + 1", "x * 2", "dp.sin(x)", "dp.sum(x)"):
            eval(statement, {"x": x, "dp": dp})
    assert len(recorded.rows) >= 4
    lines = recorded.text(max_rows=2).splitlines()
    shown = [row for row in recorded.rows if row.kind != "allocate"]
    assert lines[3].startswith(f"{len(shown) - 2} more rows of ")
    assert "more rows" not in str(recorded)
