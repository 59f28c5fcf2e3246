"""xarray and Dask make index arrays and quantiles with NumPy: the user lets them through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dparray as dp


@pytest.fixture(autouse=True)
def copies_are_allowed(request: pytest.FixtureRequest) -> Iterator[None]:
    """As a program has it that uses these two; the others need nothing."""
    allowed = request.path.stem in ("test_xarray", "test_dask")
    with dp.config.override(host_operands="copy" if allowed else "error"):
        yield
