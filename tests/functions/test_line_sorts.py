"""Sorting many lines by NumPy, on several threads."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp


@pytest.mark.parametrize("dtype", ["float64", "int64", "float32", "uint8", "float16"])
@pytest.mark.parametrize("shape", [(300, 500), (500, 300), (3, 70_000), (20_000, 9), (40, 50, 70)])
def test_many_lines_are_divided_among_threads(shape: tuple[int, ...], dtype: str) -> None:
    values = np.random.default_rng(6).integers(0, 120, shape).astype(dtype)
    if values.dtype.kind == "f":
        values.flat[::7], values.flat[1::11], values.flat[5::13] = -0.0, 0.0, np.nan
    x = dp.asarray(values)
    for axis in range(values.ndim):
        found = dp.argsort(x, axis=axis).asnumpy()
        np.testing.assert_array_equal(found, np.argsort(values, axis=axis, kind="stable"))
        found = dp.sort(x, axis=axis, descending=True).asnumpy()
        np.testing.assert_array_equal(found, np.flip(np.sort(values, axis=axis), axis))
        keys = [values, values // values.dtype.type(3)]
        found = dp.lexsort([dp.asarray(key) for key in keys], axis=axis).asnumpy()
        np.testing.assert_array_equal(found, np.lexsort(keys, axis=axis))
        unstable = dp.argsort(x, axis=axis, stable=False).asnumpy()
        np.testing.assert_array_equal(
            np.take_along_axis(values, unstable, axis), np.sort(values, axis=axis)
        )


def test_an_error_of_a_thread_is_raised_by_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(lines: np.ndarray, axis: int) -> np.ndarray:
        raise MemoryError("no more")

    monkeypatch.setattr(np, "argsort", fail)
    with pytest.raises(MemoryError, match="no more"):
        dp.argsort(dp.asarray(np.zeros((300, 500))), stable=False)
