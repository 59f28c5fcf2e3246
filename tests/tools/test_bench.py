"""``dparray bench``: rows compared with NumPy, and with another commit (``--ab``)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dparray as dp
from dparray.cli import main
from dparray.cli.bench import ab
from dparray.cli.bench import rows as ab_rows
from dparray.cli.bench.ab import Comparison
from dparray.exceptions import ArgumentError

SMALL, LARGE = (row.label for row in ab_rows.CONTROLS)
IN_A_CLONE = (Path(__file__).parents[2] / ".git").exists()


@pytest.mark.parametrize("row", [*ab_rows.CONTROLS, *ab_rows.ROWS], ids=lambda row: row.label)
def test_every_row_runs_more_than_once(row: ab_rows.Row) -> None:
    for xp in (dp, np) if row.has_numpy else (dp,):
        call = row.make(xp, None)
        call()
        call()
    dp.synchronize()


def test_labels_are_unique() -> None:
    labels = [row.label for row in ab_rows.ROWS]
    assert len(set(labels)) == len(labels)


def test_names_select_the_rows_that_contain_them() -> None:
    assert ab.chosen_rows(["sort: sort, 100_000"]) == ["sort: sort, 100_000"]
    assert len(ab.chosen_rows(["launch"])) == 4
    assert len(ab.chosen_rows([])) == len(ab_rows.ROWS)
    with pytest.raises(ArgumentError, match="no row contains 'nonsense'; the groups are elem"):
        ab.chosen_rows(["launch", "nonsense"])


def test_a_commit_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--ab", "no-such-commit"]) == 1
    message = capsys.readouterr().err
    assert "no-such-commit" in message if IN_A_CLONE else "needs a git clone" in message


@pytest.mark.slow
def test_rows_are_timed_with_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--rounds", "2", "small: x + y", "launch: submit, 64", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["machine"]["device"].startswith("opencl:cpu:0")
    plus, launch = found["rows"]
    assert plus["ratio"] == plus["numpy_seconds"] / plus["seconds"]
    assert launch["numpy_seconds"] is None
    assert main(["bench", "--rounds", "2", "small: x + y"]) == 0
    assert "elementwise small: x + y" in capsys.readouterr().out


@pytest.mark.parametrize("rounds", ["0", "-5", "many"])
def test_rounds_must_be_positive(rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["bench", f"--rounds={rounds}"])
    assert f"'{rounds}' is not a positive integer" in capsys.readouterr().err


def test_losses_are_listed() -> None:
    rows = [
        Comparison(SMALL, 1.0, 1.0),
        Comparison("a", 1e-6, 1e-6),
        Comparison("b", 1e-6, 0.9e-6),
        Comparison("c", 1e-6, 2e-6),
    ]
    text, status = ab.report(rows, "main")
    assert status == ab.LOST
    assert "1 of 3 rows below 0.97:\n  0.900  b" in text
    assert ab.report(rows[:2], "main")[1] == 0


@pytest.mark.parametrize("label", [SMALL, LARGE])
@pytest.mark.parametrize("ratio", [0.97, 1.03])
def test_nothing_is_judged_where_the_control_differs(label: str, ratio: float) -> None:
    text, status = ab.report([Comparison(label, 1.0, ratio), Comparison("a", 1.0, 0.5)], "main")
    assert status == ab.CANNOT_JUDGE
    assert f"{label} reads {ratio:.3f}" in text
    assert "rows below" not in text


@pytest.mark.slow
@pytest.mark.skipif(not IN_A_CLONE, reason="a sdist has no commits")
def test_this_tree_is_compared_with_a_commit(capsys: pytest.CaptureFixture[str]) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    arguments = ["--rounds", "2", "--pairs", "1", "elementwise small: x + y", "launch: submit, 64"]
    assert main(["bench", "--ab", head.strip(), *arguments]) in (0, ab.LOST, ab.CANNOT_JUDGE)
    text = capsys.readouterr().out
    assert all(name in text for name in ("control: NumPy, 1_000 ", *arguments[4:], head[:10]))


@pytest.mark.slow
def test_two_drivers_are_compared_in_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["x + y, 100_000", "kernel: Mandelbrot, 100_000"]
    assert main(["bench", "--drivers", "host,sycl", "--rounds", "2", *rows]) == 0
    text = capsys.readouterr().out
    assert all(row in text for row in rows)
    assert "100_000: geometric mean" in text


@pytest.mark.parametrize("names", ["host", "host,vulkan", "host,sycl,cuda"])
def test_drivers_must_be_two_known_ones(names: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--drivers", names]) == 1
    assert "must be two of sycl, cuda, host" in capsys.readouterr().err
