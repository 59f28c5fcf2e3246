"""Run numba-dpex's kernel tests on dparray, as a pytest plugin.

The tests are those in the folder ``NUMBA_DPEX_PACKAGE``; the module ``numba_dpex`` is dparray's.
Tests listed in ``numba_dpex_exceptions.txt`` are expected to fail, each for the reason above it. If
one of them passes, the run fails, so that the list stays correct. A test whose reason starts with
"not run" is left out.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dparray._kernel import numba_dpex_module

EXCEPTIONS = Path(__file__).with_name("numba_dpex_exceptions.txt")


class _Nothing(ModuleType):
    """A module of numba-dpex that its tests import, but dparray does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return 0


def _prepare() -> None:
    # This comes before the package itself, whose folder is on the path.
    sys.meta_path.insert(0, numba_dpex_module.stand_in)
    import numba_dpex

    numba_dpex.__path__ = [os.environ["NUMBA_DPEX_PACKAGE"]]  # needed by its tests
    for name in (
        "config",
        "descriptor",
        "runtime",
        "runtime.context",
        "targets",
        "targets.dpjit_target",
    ):
        module = _Nothing(f"numba_dpex.core.{name}")
        sys.modules[module.__name__] = module
    numba_dpex.config = sys.modules["numba_dpex.core.config"]
    numba_dpex.core.config = numba_dpex.config


_prepare()


def exceptions() -> dict[str, str]:
    """Return reasons by test: a line that starts with ``#`` is the reason of the lines below it."""
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
