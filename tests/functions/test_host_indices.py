"""NumPy arrays as indices, masks and counts are copied to the queue of the array, as lists are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

I = np.array([2, 0, -1])  # noqa: E741
MASK = np.array([True, False, True, False])
X = np.arange(12.0).reshape(4, 3)
WIDE = X > 4

READS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda xp, x: x[I],
    "unsigned": lambda xp, x: x[np.array([1, 2], "uint8")],
    "no rows": lambda xp, x: x[np.array([], "int64")],
    "columns": lambda xp, x: x[:, I],
    "both": lambda xp, x: x[I, I],
    "grid": lambda xp, x: x[np.ix_([0, 3], [0, 2])],
    "new axis": lambda xp, x: x[None, I, ..., 1:],
    "mask of rows": lambda xp, x: x[MASK],
    "mask of elements": lambda xp, x: x[WIDE],
    "mask and integer": lambda xp, x: x[MASK, 1],
    "nonzero": lambda xp, x: x[np.nonzero(WIDE)],
    "flat": lambda xp, x: x.flat[I],
    "take": lambda xp, x: xp.take(x, I),
    "take along": lambda xp, x: x.take(I, axis=1),
    "take, clip": lambda xp, x: xp.take(x, np.array([5, 1]), axis=0, mode="clip"),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, I.reshape(1, 3), axis=0),
    "compress": lambda xp, x: xp.compress(MASK, x, axis=0),
    "extract": lambda xp, x: xp.extract(WIDE, x),
    "delete": lambda xp, x: xp.delete(x, I, axis=0),
    "insert": lambda xp, x: xp.insert(x, np.array([1, 1]), 7.0, axis=0),
    "repeat": lambda xp, x: xp.repeat(x, np.array([1, 2, 0, 1]), axis=0),
    "roll": lambda xp, x: xp.roll(x, np.array([1, 2]), axis=(0, 1)),
    "reduceat": lambda xp, x: xp.add.reduceat(x, np.array([0, 2]), axis=0),
    "sorter": lambda xp, x: xp.searchsorted(x[::-1, 0], 4.0, sorter=np.array([3, 2, 1, 0])),
    "partition": lambda xp, x: xp.partition(x, np.array([1]), axis=1),
    "quantile": lambda xp, x: xp.quantile(x, np.array([0.25, 0.5]), axis=0),
    "percentile": lambda xp, x: xp.nanpercentile(x, np.array([10, 20.0])),
    "gradient": lambda xp, x: xp.gradient(x[:, 0], np.array([0.0, 1.0, 3.0, 4.0])),
}

WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda xp, x: x.__setitem__(I, 5.0),
    "columns": lambda xp, x: x.__setitem__((slice(None), I), 5.0),
    "mask": lambda xp, x: x.__setitem__(MASK, -1.0),
    "mask of elements": lambda xp, x: x.__setitem__(WIDE, -1.0),
    "in place": lambda xp, x: x.__setitem__(I, x[I] * 2),
    "flat": lambda xp, x: x.flat.__setitem__(I, 3.0),
    "put": lambda xp, x: xp.put(x, I, 8.0),
    "put_along_axis": lambda xp, x: xp.put_along_axis(x, I.reshape(1, 3), 4.0, axis=0),
    "putmask": lambda xp, x: xp.putmask(x, WIDE, 2.0),
    "place": lambda xp, x: xp.place(x, WIDE, [1.0, 2.0]),
    "at": lambda xp, x: xp.add.at(x, I, 1.0),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("is_large", [False, True])
def test_reads(name: str, is_large: bool, queue: Any) -> None:
    x = dp.asarray(X, sycl_queue=queue)
    with dp.config.override(host_tier=not is_large):
        found = READS[name](dp, x)
    wanted = READS[name](np, X)
    assert found.queue == queue
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found.asnumpy(), wanted)


@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, queue: Any) -> None:
    x, wanted = dp.asarray(X, sycl_queue=queue), X.copy()
    WRITES[name](dp, x)
    WRITES[name](np, wanted)
    np.testing.assert_array_equal(x.asnumpy(), wanted)


def test_a_large_array_is_indexed_on_its_device() -> None:
    at = np.arange(0, 1_000_000, 3)
    x = dp.arange(1_000_000)
    np.testing.assert_array_equal(x[at].asnumpy(), at)
    x[at] = 0
    assert int(x.sum()) == sum(range(1_000_000)) - int(at.sum())


@pytest.mark.parametrize("values", [[1.0], ["a"], [None], []])
def test_other_dtypes_are_not_indices(values: list[Any]) -> None:
    index = np.array(values)
    for work in (lambda: dp.asarray(X)[index], lambda: dp.asarray(X).__setitem__(index, 0)):
        with pytest.raises(IndexError, match="indices must be integers or a mask"):
            work()


def test_data_from_the_host_still_raises() -> None:
    x = dp.asarray(X)
    for work in (lambda: x + X, lambda: dp.where(WIDE, x, 0), lambda: dp.maximum(x, X)):
        with pytest.raises(dp.HostConversionError):
            work()
    with pytest.raises(IndexError, match="out of bounds"):
        x[np.array([4])]


@pytest.mark.parametrize("place", [100_000, -100_001])
def test_one_position_outside_among_many_raises(place: int) -> None:
    values = np.arange(100_000.0)
    at = np.arange(-50_000, 50_000)
    x, positions = dp.asarray(values), dp.asarray(at)
    np.testing.assert_array_equal(dp.take(x, positions).asnumpy(), values[at])
    positions[70_000] = place
    with pytest.raises(IndexError, match=f"index {place} is out of bounds"):
        dp.take(x, positions)
