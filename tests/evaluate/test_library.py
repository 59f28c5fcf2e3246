"""What dpnp computes and converts has NumPy's values."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import limits


@pytest.mark.parametrize("executor", ["host", "library", "fused"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int32", "int64", "uint64"])
@pytest.mark.parametrize("given", ["float32", "float64"])
def test_large_floats_become_integers(given: str, dtype: str, executor: str) -> None:
    largest = min(np.iinfo(dtype).max, 2**62)
    x = np.array([0.0, 3.7, largest / 2, largest * 0.75]).astype(given)
    with limits.force(executor):
        ours = dp.asarray(x)
        np.testing.assert_array_equal(ours.astype(dtype).asnumpy(), x.astype(dtype))
        out = dp.zeros((), dtype)
        dp.prod(ours[3:], out=out, dtype=given)
        assert out.item() == x[3:].astype(dtype)[0]
