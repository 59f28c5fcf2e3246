"""Fixtures of the tests of gradients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dparray as dp


@pytest.fixture
def without_kernels() -> Iterator[None]:
    """Compute small arrays with NumPy: hundreds of kernels would be compiled otherwise."""
    with dp.config.override(fused_tier=False):
        yield
