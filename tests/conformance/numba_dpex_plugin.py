"""A pytest plugin that runs numba-dpex's own kernel tests on dparray.

``pytest -p numba_dpex_plugin --pyargs numba_dpex.tests.kernel_tests``, with this folder on the
path. Tests listed in ``numba_dpex_exceptions.txt`` are expected to fail, each for the reason above
it; one that passes all the same fails the run, so the list stays true. A reason that starts with
"not run" leaves the test out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import dparray  # finds the driver and adapts numba-dpex, before its tests import it

EXCEPTIONS = Path(__file__).with_name("numba_dpex_exceptions.txt")

assert dparray.__version__


def exceptions() -> dict[str, str]:
    """Reasons by test: a line that starts with ``#`` is the reason of the lines below it."""
    reasons: dict[str, str] = {}
    reason = ""
    for line in EXCEPTIONS.read_text().splitlines():
        if line.startswith("#"):
            reason = line.removeprefix("#").strip()
        elif line.strip():
            reasons[line.strip()] = reason
    return reasons


def pytest_configure(config: pytest.Config) -> None:
    """Give Numba the option that these tests set and that newer versions have dropped."""
    from numba.core import config as numba_config

    if not hasattr(numba_config, "CAPTURED_ERRORS"):
        numba_config.CAPTURED_ERRORS = "new_style"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the exceptions."""
    reasons = exceptions()
    for item in items:
        name = item.nodeid.rpartition("/")[2]
        reason = reasons.get(name) or reasons.get(name.partition("[")[0])
        if reason is not None:
            mark = (
                pytest.mark.skip(reason=reason)
                if reason.startswith("not run")
                else pytest.mark.xfail(reason=reason, strict=True)
            )
            item.add_marker(mark)
