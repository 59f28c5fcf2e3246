"""The suites' expectations are well formed and compared in both directions, and a suite runs.

The suites themselves are run by ``make suites``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.process

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def expectations() -> ModuleType:
    """Return the module of the scripts in this folder, which is not a package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        import expectations

        return expectations


TEXT = """
# What fails.
[strict] we refuse what they take, and say so
a.py::test_x 2
a.py::test_y
[chance] examples are drawn anew each time
a.py::test_x 1
b.py::test_z * a defect of theirs
"""


@pytest.mark.parametrize("file", sorted((HERE / "expected").glob("*.txt")), ids=lambda f: f.stem)
def test_every_group_has_a_reason(expectations: ModuleType, file: Path) -> None:
    found = expectations.parse(file.read_text())
    assert all(len(reason) > 20 for reason in found.reasons.values())
    used = {line.group for lines in found.tests.values() for line in lines}
    assert used == found.reasons.keys()


@pytest.mark.parametrize(
    "text", ["a.py::test_x", "[strict]", "[strict] short", "[strict] a reason in words\nno test"]
)
def test_invalid_expectations_raise(expectations: ModuleType, text: str) -> None:
    with pytest.raises(ValueError, match=r"line \d is neither"):
        expectations.parse(text)


@pytest.mark.parametrize(
    ("failed", "groups", "unexpected"),
    [
        (
            ["a.py::test_x[1]", "a.py::test_x[2]", "a.py::test_x[3]", "a.py::test_y"],
            {"strict": 3, "chance": 1},
            [],
        ),
        (
            ["a.py::test_y", "b.py::test_z[1]"],
            {"strict": 1, "chance": 1},
            ["3 of 3 pass now: a.py::test_x"],
        ),
        (
            ["c.py::test_new"],
            {"strict": 0, "chance": 0},
            [
                "3 of 3 pass now: a.py::test_x",
                "1 of 1 pass now: a.py::test_y",
                "1 of 1 failures not expected: c.py::test_new",
            ],
        ),
    ],
)
def test_differences_are_reported_in_both_directions(
    expectations: ModuleType, failed: list[str], groups: dict[str, int], unexpected: list[str]
) -> None:
    ran = ["a.py::test_x[1]", "a.py::test_y", "b.py::test_z[1]"]
    found = expectations.compare(failed, ran, expectations.parse(TEXT))
    assert found == (groups, unexpected)


def test_parameters_are_left_out(expectations: ModuleType) -> None:
    ids = ["a.py::T_param_6_{axis=0, shape=[0]}::test_x[b-{c}::d]", "a.py::T::test_x[1]"]
    assert {expectations.without_parameters(test) for test in ids} == {"a.py::T::test_x"}


def test_failed_tests_are_forgotten_to_run_again(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        import run

    report = tmp_path / "report.jsonl"
    for test, outcome in [("a", "passed"), ("b", "failed"), ("b", "passed"), ("c", "started")]:
        with report.open("a") as file:
            file.write(json.dumps({"test": test, "outcome": outcome}) + "\n")
    assert run.forget_failures(report) == ["b", "c"]
    assert set(run.outcomes(report)) == {"a"}


def test_tests_that_do_not_reach_dparray_are_counted_by_reason() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        import run

    skipped = "('test_a.py', 3, 'Skipped: not a test of dparray: numpy.full raises')"
    found = {
        "a": ("skipped", skipped),
        "b": ("skipped", skipped),
        "c": ("skipped", "('test_a.py', 9, 'Skipped: needs a GPU')"),
        "d": ("passed", ""),
    }
    assert run.not_reached(found) == {"not a test of dparray: numpy.full raises": 2}


def test_a_sample_is_compared_by_what_fails_alone(expectations: ModuleType) -> None:
    text = expectations.parse(TEXT)
    assert expectations.compare([], ["a.py::test_x[1]"], text, whole=False)[1] == []
    assert expectations.compare(["a.py::new"], [], text, whole=False)[1]


@pytest.mark.slow
def test_outcomes_are_recorded_and_a_crash_is_stepped_over(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import os, pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert 1 == 2\n"
        "@pytest.mark.skip\ndef test_skipped(): pass\n"
        "@pytest.mark.xfail\ndef test_known(): assert 0\n"
        "def test_end(): os._exit(3)\n"
        "def test_after(): pass\n"
    )
    report = tmp_path / "report.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider"]
    command += ["--rootdir", str(tmp_path), "-c", os.devnull]
    environment = os.environ | {"DPARRAY_SUITES_REPORT": str(report), "PYTHONPATH": str(HERE)}
    codes = [
        subprocess.run(
            [*command, str(tmp_path)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            check=False,
        ).returncode
        for _ in range(2)
    ]
    assert codes == [3, 0]
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    outcomes = {line["test"].partition("::")[2]: line["outcome"] for line in lines}
    assert outcomes == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_skipped": "skipped",
        "test_known": "xfailed",
        "test_end": "started",
        "test_after": "passed",
    }
