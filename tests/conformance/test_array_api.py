"""The expectations of the Array API suite are well formed; the suite runs where it is checked out.

Set ``DPARRAY_ARRAY_API_TESTS`` to the path of a checkout to run it with the other tests.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_array_api_tests.py")
_spec = importlib.util.spec_from_file_location("run_array_api_tests", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
script = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(script)


def test_every_expected_failure_names_its_reason() -> None:
    expected = script.expected_failures(script.EXPECTATIONS.read_text())
    assert all(len(reason) > 20 for reason in expected.values())
    with pytest.raises(ValueError, match=r"line 1 .* names no reason"):
        script.expected_failures("test_x.py::test_y\n")


def test_differences_are_reported_in_both_directions() -> None:
    expected = {"a": "why", "c": "why", "e": "for some examples: why"}
    found = script.compare({"a", "b"}, {"c", "d", "e"}, expected)
    assert found == ["fails, but is not expected to: b", "passes now, remove it: c"]


@pytest.mark.skipif("DPARRAY_ARRAY_API_TESTS" not in os.environ, reason="no checkout is named")
def test_the_suite_gives_what_is_expected() -> None:
    checkout = os.environ["DPARRAY_ARRAY_API_TESTS"]
    done = subprocess.run([sys.executable, SCRIPT, checkout], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
