"""A run fails if a worker takes too much memory."""

from __future__ import annotations

from typing import Any

import pytest

from tests import worker_memory

pytest_plugins = ["pytester"]


@pytest.mark.process
@pytest.mark.parametrize(("limit", "status"), [("8", 0), ("0.001", 1)])
def test_a_worker_has_a_limit_of_memory(pytester: Any, limit: str, status: int) -> None:
    pytester.makeconftest("from tests.worker_memory import *")
    pytester.makepyfile("def test_nothing():\n    pass")
    root = str(worker_memory.__file__).rpartition("/tests/")[0]
    pytester.makeini(f"[pytest]\npythonpath = {root}")
    pytester.syspathinsert(root)
    options = ("-p", "no:cacheprovider", "-n", "1", "--worker-memory", limit)
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=1)
    assert result.ret == status
    result.stdout.fnmatch_lines(["largest memory of the workers: gw0 * GB"])
    assert ("took more memory than 0.001 GB" in result.stdout.str()) == bool(status)
