"""Fixtures of the tests of code generation for NVIDIA GPUs."""

from __future__ import annotations

import pytest

from tests.cuda import packages


@pytest.fixture
def libdevice() -> None:
    """Skip the test without NVIDIA's math library."""
    packages.need_libdevice()
