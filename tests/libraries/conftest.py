"""Settings for xarray, which creates index arrays and quantiles with NumPy.

Its users must therefore allow copies of host data.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dparray as dp


@pytest.fixture(autouse=True)
def copies_are_allowed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Allow copies in the tests of xarray; the other libraries need no option."""
    allowed = request.path.stem == "test_xarray"
    with dp.config.override(host_operands="copy" if allowed else "error"):
        yield
