"""``dparray report``: results compared with NumPy's, and a file that survives a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.cli import main, report


def test_every_call_agrees_on_the_cpu() -> None:
    found = list(report.results(dp.Device("cpu"), 5000))
    assert [each["call"] for each in found] == list(report.CALLS)
    assert [each for each in found if each["status"] != "ok"] == []
    assert all(each["milliseconds"] > 0 for each in found)


def test_the_file_has_devices_checks_and_differences(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    monkeypatch.setattr(report, "CALLS", ("x + y", "xp.no_such_function(x)"))
    answers: dict[str, Any] = {"info": {"devices": []}, "doctor": [], "bench": {"rows": []}}
    monkeypatch.setattr(report, "_of_command", lambda name, *more: answers[name])
    assert main(["report", "--device", "cpu", "--output", str(path), "--elements", "100"]) == 1
    written = json.loads(path.read_text())
    assert written["info"] == answers["info"]
    assert written["bench"] == answers["bench"]
    assert written["driver"] == dp.Device("cpu").sycl_device.driver_version
    assert [each["status"].split(":")[0] for each in written["calls"]] == ["ok", "AttributeError"]
    assert "1 of 2 calls as NumPy's" in capsys.readouterr().out


def test_a_call_that_ends_the_process_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    monkeypatch.setattr(report, "CALLS", ("x + y", "exit(3)", "x * y"))
    monkeypatch.setattr(report, "_of_command", lambda name, *more: {})
    with pytest.raises(SystemExit):
        main(["report", "--device", "cpu", "--output", str(path), "--elements", "100"])
    first, last = json.loads(path.read_text())["calls"]
    assert first["status"] == "ok"
    assert last == {"call": "exit(3)", "status": "ended the process"}


def test_results_that_differ_are_reported() -> None:
    assert report.compared(np.array([1.0, 2.0]), [1.0, 2.0001]) == "ok"
    assert report.compared(np.array([1.0, 2.5]), [1.0, 2.0]).startswith("differs by 1.7e-01")
    assert report.compared(np.zeros(3), np.zeros(4)) == "shape (3,) instead of (4,)"
    assert report.compared(np.array([np.nan]), [1.0]) != "ok"


@pytest.mark.slow
def test_the_bench_rows_are_those_of_the_device() -> None:
    options = ("launch", "--device", "cpu", "--rounds", "2")
    found = report._of_command("bench", *options)
    assert found["machine"]["device"]
    assert all(row["seconds"] > 0 for row in found["rows"])
    assert found["rows"]
