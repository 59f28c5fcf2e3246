"""A pytest plugin of the suites: it replaces the tested library by dparray and records outcomes.

Each test adds a line to the file that ``DPARRAY_SUITES_REPORT`` names, when it starts and when it
has an outcome. So a test that ends the process is known, and finished tests are not repeated.
``DPARRAY_SUITES_SAMPLE=10`` takes every tenth test.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

REPORT = Path(os.environ["DPARRAY_SUITES_REPORT"])
SAMPLE = int(os.environ.get("DPARRAY_SUITES_SAMPLE", "1"))

# This runs before a test is collected, because the suites' own modules import the replaced names.
if "DPARRAY_SUITES_SUBSTITUTE" in os.environ:
    importlib.import_module(os.environ["DPARRAY_SUITES_SUBSTITUTE"])


def write(**values: Any) -> None:
    with REPORT.open("a") as file:
        file.write(json.dumps(values) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seen = set()
    if REPORT.exists():
        seen = {json.loads(line)["test"] for line in REPORT.read_text().splitlines()}
    kept = [item for item in items[::SAMPLE] if item.nodeid not in seen]
    config.hook.pytest_deselected(items=items[len(kept) :])
    items[:] = kept


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        write(test=report.nodeid, outcome="failed", error=_message(report))


def pytest_runtest_logstart(nodeid: str) -> None:
    write(test=nodeid, outcome="started")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        write(test=report.nodeid, outcome="failed", error=_message(report))
    elif report.when == "call" and report.passed:
        write(test=report.nodeid, outcome="passed")
    elif report.skipped:
        outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        write(test=report.nodeid, outcome=outcome, error=str(report.longrepr)[-600:])


def _message(report: Any) -> str:
    """Return the last error of a report, and where it was raised."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return str(report.longrepr)[-600:]
    return f"{crash.message[:600]} @ {crash.path}:{crash.lineno}"
