"""Operations and conversions by dpnp have NumPy's values."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from tests.support import force


@pytest.mark.parametrize("executor", ["host", "library", "fused"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int32", "int64", "uint64"])
@pytest.mark.parametrize("given", ["float32", "float64"])
def test_large_floats_become_integers(given: str, dtype: str, executor: str) -> None:
    largest = min(np.iinfo(dtype).max, 2**62)
    x = np.array([0.0, 3.7, largest / 2, largest * 0.75]).astype(given)
    with force(executor):
        ours = dp.asarray(x)
        np.testing.assert_array_equal(ours.astype(dtype).asnumpy(), x.astype(dtype))
        out = dp.zeros((), dtype)
        dp.prod(ours[3:], out=out, dtype=given)
        assert out.item() == x[3:].astype(dtype)[0]


@pytest.mark.parametrize("executor", ["host", "library", "fused"])
@pytest.mark.parametrize("shape", [(1, 3, 4), (2, 3, 4), (5, 1, 3, 4)])
@pytest.mark.parametrize("name", ["add", "maximum", "hypot", "logical_and", "sqrt", "where"])
def test_results_go_to_arrays_of_more_dimensions(
    name: str, shape: tuple[int, ...], executor: str
) -> None:
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)[::-1]
    theirs = np.zeros(shape, "bool" if name == "logical_and" else "float64")
    with force(executor), dp.config.override(host_tier=executor == "host"):
        ours = dp.asarray(theirs)
        operands = [dp.asarray(each) for each in (x, y)]
        if name == "where":
            ours[...] = dp.where(operands[0] > 3, *operands)
            theirs[...] = np.where(x > 3, x, y)
        else:
            count = 1 if name == "sqrt" else 2
            getattr(dp, name)(*operands[:count], out=ours)
            getattr(np, name)(*(x, y)[:count], out=theirs)
        # The last bit of hypot is that of the device's library.
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-15 if name == "hypot" else 0)
