"""On every backend, histograms count values next to bin edges as NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
def test_edges_are_numpys_where_the_host_does_not_compute(dtype: str) -> None:
    x = np.array([-1, 7, 6, -3, 2, 7, 7], dtype)
    with dp.config.override(host_tier=False):
        counts, edges = dp.histogram(dp.asarray(x), range=(-4.0, 6.0))
    wanted, wanted_edges = np.histogram(x, range=(-4.0, 6.0))
    np.testing.assert_array_equal(counts.asnumpy(), wanted)
    np.testing.assert_array_equal(edges.asnumpy(), wanted_edges)
