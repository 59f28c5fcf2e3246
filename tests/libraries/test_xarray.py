"""xarray wraps arrays; its indexing, statistics, groups and interpolation compute on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

xr = pytest.importorskip("xarray")

VALUES = np.random.default_rng(0).random((4, 6))


def held(values: Any) -> Any:
    return xr.DataArray(
        values,
        dims=("t", "z"),
        coords={"t": [0.0, 1.0, 2.0, 3.0], "z": np.arange(6.0), "part": ("t", list("abab"))},
    )


CALLS: dict[str, Callable[[Any], Any]] = {
    "isel slice": lambda d: d.isel(z=slice(1, 4)),
    "isel list": lambda d: d.isel(z=[0, 2]),
    "isel array": lambda d: d.isel(z=np.array([0, 2])),
    "isel mask": lambda d: d.isel(z=np.array([True, False] * 3)),
    "sel mask": lambda d: d.sel(t=d.part == "a"),
    "sortby": lambda d: d.sortby("z", ascending=False),
    "reindex": lambda d: d.reindex(z=[0.0, 2.0]),
    "dropna": lambda d: d.where(d > 0.05).dropna("z"),
    "groupby map": lambda d: d.groupby("part").map(lambda g: g - g.mean()),
    "isel lists": lambda d: d.isel(z=[0, 2], t=[3, 1]),
    "sel": lambda d: d.sel(z=[1.0, 3.0]),
    "sel nearest": lambda d: d.sel(z=[0.9, 3.2], method="nearest"),
    "where": lambda d: d.where(d > 0.5, 0.0),
    "where dropped": lambda d: d.where(d.z > 2, drop=True),
    "mean": lambda d: d.mean("t"),
    "std": lambda d: d.std(),
    "median": lambda d: d.median("z"),
    "max": lambda d: d.max("z"),
    "argmax": lambda d: d.argmax("z"),
    "cumsum": lambda d: d.cumsum("z"),
    "quantile": lambda d: d.quantile(0.3, dim="z"),
    "quantiles": lambda d: d.quantile([0.25, 0.5], dim="t"),
    "groupby sum": lambda d: d.groupby("part").sum(),
    "groupby mean": lambda d: d.groupby("part").mean(),
    "groupby max": lambda d: d.groupby("part").max(),
    "differentiate": lambda d: d.differentiate("z"),
    "diff": lambda d: d.diff("z"),
    "shift": lambda d: d.shift(z=1),
    "roll": lambda d: d.roll(z=2),
    "concat": lambda d: xr.concat([d, d + 1], dim="t"),
    "transpose": lambda d: d.transpose("z", "t"),
    "dot": lambda d: xr.dot(d, d, dim="z"),
    "rolling": lambda d: d.rolling(z=3).mean(),
    "coarsen": lambda d: d.coarsen(z=2).mean(),
    "stack": lambda d: d.stack(both=("t", "z")),
    "clip": lambda d: d.clip(0.2, 0.8),
    "fillna": lambda d: d.where(d > 0.5).fillna(7.0),
    "isin": lambda d: d.isin([VALUES[0, 0]]),
}


#: Calls that combine data with a mask on the host, which the user has to allow.
WITH_HOST_DATA = {"where dropped"}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    wanted = CALLS[name](held(VALUES))
    with dp.config.override(host_operands="copy" if name in WITH_HOST_DATA else "error"):
        found = CALLS[name](held(dp.asarray(VALUES)))
    assert isinstance(found.data, dp.ndarray), type(found.data)
    assert found.dims == wanted.dims
    np.testing.assert_allclose(found.data.asnumpy(), wanted.data, rtol=1e-12)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_interp_is_scipys_on_the_host(method: str) -> None:
    points = [0.6, 1.4, 4.25]
    with pytest.raises(dp.HostConversionError):
        held(dp.asarray(VALUES)).interp(z=points, method=method)
    with dp.config.override(host_operands="copy"):
        found = held(dp.asarray(VALUES)).interp(z=points, method=method)
    assert isinstance(found.data, np.ndarray)
    wanted = held(VALUES).interp(z=points, method=method)
    np.testing.assert_allclose(found.data, wanted.data, rtol=1e-12)


def test_stays_on_its_queue(queue: Any) -> None:
    d = held(dp.asarray(VALUES, sycl_queue=queue))
    for found in (d.isel(z=[0, 2]), d.mean("t"), d.quantile(0.3, dim="z"), d.groupby("part").sum()):
        assert found.data.sycl_queue == queue


def test_as_numpy() -> None:
    np.testing.assert_array_equal(held(dp.asarray(VALUES)).data.asnumpy(), VALUES)
