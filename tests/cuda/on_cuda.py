"""Run tests with ``cuda:0`` as the default device, as a pytest plugin.

    python -m pytest -q -p tests.cuda.on_cuda tests/test_tiny.py tests/kernel

The driver is the stand-in of ``standin.py``; with ``CUDA_STANDIN=0`` in the environment it is the
real one. The fixture ``queue`` then has queues of the device.
"""

from __future__ import annotations

import os

import pytest

from tests.cuda import standin

os.environ["DPARRAY_DEVICE"] = "cuda:0"  # before anything imports dparray
_IS_STANDIN = os.environ.get("CUDA_STANDIN") != "0"

#: Why tests of these files and names cannot run there.
FILES: dict[str, tuple[str, ...]] = {}
TESTS: dict[str, tuple[str, ...]] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if _IS_STANDIN:
        standin.pytest_configure(config)


def pytest_report_header() -> str:
    return standin.pytest_report_header() if _IS_STANDIN else "driver: the machine's"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = {name: reason for reason, names in (FILES | TESTS).items() for name in names}
    for item in items:
        for name in (item.path.stem, item.name.split("[")[0]):
            if name in reasons:
                item.add_marker(pytest.mark.skip(reason=reasons[name]))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Repair the contexts, so that a fault in one test is not an error of all others."""
    if _IS_STANDIN:
        for device in range(2):
            standin.install().repair(device)
