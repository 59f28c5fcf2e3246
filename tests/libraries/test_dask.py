"""Dask's reductions and contractions compute on chunks that are dparray arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

da = pytest.importorskip("dask.array")

VALUES = np.random.default_rng(0).random((6, 8))

CALLS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda d: d.sum(),
    "sum axis": lambda d: d.sum(axis=0),
    "prod": lambda d: d.prod(axis=1),
    "mean": lambda d: d.mean(),
    "mean axis": lambda d: d.mean(axis=1),
    "std": lambda d: d.std(),
    "var": lambda d: d.var(axis=0, ddof=1),
    "min": lambda d: d.min(axis=0),
    "max": lambda d: d.max(),
    "argmax": lambda d: d.argmax(axis=1),
    "argmin": lambda d: d.argmin(axis=0),
    "any": lambda d: (d > 0.9).any(axis=0),
    "all": lambda d: (d > 0.01).all(),
    "nansum": lambda d: da.nansum(d, axis=0),
    "nanmean": lambda d: da.nanmean(d, axis=0),
    "cumsum": lambda d: d.cumsum(axis=0),
    "tensordot": lambda d: da.tensordot(d, d, axes=([1], [1])),
    "matmul": lambda d: d @ d.T,
    "einsum": lambda d: da.einsum("ij,kj->ik", d, d),
    "percentile": lambda d: da.percentile(d.reshape(-1), [25, 50]),
    "isin": lambda d: da.isin(d, d[0, :2]),
    "slices": lambda d: d[1:5, ::2] + 1,
    "list": lambda d: d[[0, 4, 5]],
    "mask": lambda d: da.where(d > 0.5, d, 0),
    "concatenate": lambda d: da.concatenate([d, d * 2]),
    "stack": lambda d: da.stack([d, d]),
    "map_blocks": lambda d: d.map_blocks(dp.sqrt if isinstance(d._meta, dp.ndarray) else np.sqrt),
    "sin": lambda d: np.sin(d),
    "nanargmax": lambda d: da.nanargmax(d, axis=0),
    "argtopk": lambda d: da.argtopk(d, 2, axis=0),
    "isin of numbers": lambda d: da.isin((d * 5).astype("i4"), [1, 2]),
    "take": lambda d: da.take(d, [4, 1, 0], axis=0),
    "array of positions": lambda d: d[:, np.array([7, 0, 1])],
    "array of Dask as positions": lambda d: d[da.from_array(np.array([1, 2]))],
    "NumPy mask of rows": lambda d: d[np.arange(6) % 2 == 0],
    "vindex": lambda d: d.vindex[[1, 2], [3, 4]],
    "insert": lambda d: da.insert(d, 2, 0, axis=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    wanted = CALLS[name](da.from_array(VALUES, chunks=(3, 4)))
    found = CALLS[name](da.from_array(dp.asarray(VALUES), chunks=(3, 4), asarray=False))
    result = found.compute(scheduler="synchronous")
    assert isinstance(result, dp.ndarray), type(result)
    np.testing.assert_allclose(
        result.asnumpy(), wanted.compute(scheduler="synchronous"), rtol=1e-12
    )


def test_host_data_of_the_user_still_raises() -> None:
    d = da.from_array(dp.asarray(VALUES), chunks=(3, 4), asarray=False)
    added = d.map_blocks(lambda chunk: chunk + np.ones(4), dtype="f8", meta=d._meta)
    for given in (d + np.ones(8), added):
        with pytest.raises(dp.HostConversionError):
            given.compute(scheduler="synchronous")


def test_with_threads() -> None:
    d = da.from_array(dp.asarray(VALUES), chunks=(2, 2), asarray=False)
    found = (d + d.T.T * 2).sum(axis=0).compute(scheduler="threads")
    np.testing.assert_allclose(found.asnumpy(), 3 * VALUES.sum(axis=0), rtol=1e-12)
