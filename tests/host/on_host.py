"""Run tests on the host's own driver, without SYCL, as a pytest plugin.

    python -m pytest -q -p tests.host.on_host tests/test_tiny.py tests/kernel

The fixture ``queue`` then has queues of ``host:cpu``. ``HOST_PART=1/8`` takes an eighth of the
tests. Tests about SYCL's objects and modules are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.as_gpu import leave_to_other_parts

#: Files and tests that cannot run there, by reason.
LEFT_OUT: dict[str, tuple[str, ...]] = {}
#: Errors that only a driver other than SYCL's raises.
_OF_SYCL = re.compile(r"has no SYCL objects|Sycl\w+ is not a queue|only OpenCL drivers compile")


def pytest_sessionstart() -> None:
    from dparray import _driver

    _driver._found["sycl"] = _driver.Missing("sycl", "tests run without it", "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_to_other_parts("HOST_PART", config, items)
    reasons = {name: reason for reason, names in LEFT_OUT.items() for name in names}
    for item in items:
        for name in (item.path.stem, item.name.split("[")[0]):
            if name in reasons:
                item.add_marker(pytest.mark.skip(reason=reasons[name]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    try:
        return (yield)
    except Exception as error:
        if _OF_SYCL.search(str(error)):
            pytest.skip("it is about SYCL")
        raise
