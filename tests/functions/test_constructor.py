"""``dp.ndarray(shape, ...)`` is NumPy's constructor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp


@pytest.mark.parametrize("order", ["C", "F", None])
@pytest.mark.parametrize("shape", [5, (), (2, 3), (300, 200), (0, 4), [2, 2]])
def test_an_uninitialized_array(shape: Any, order: str | None) -> None:
    expected = np.ndarray(shape, np.float32, order=order)
    x = dp.ndarray(shape, dtype=np.float32, order=order)
    assert type(x) is dp.ndarray
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    assert not x.size or x.strides == expected.strides
    x[...] = 3
    assert (x + 1).sum().item() == 4 * x.size


def test_the_default_dtype_is_numpys() -> None:
    assert dp.ndarray(3).dtype == np.ndarray(3).dtype


def test_placement_is_chosen_as_for_empty(queue: Any) -> None:
    x = dp.ndarray((4,), "int32", usm_type="shared", sycl_queue=queue)
    assert x.queue is queue
    assert x.usm_type == "shared"
    x[...] = 7
    assert (x * 2).asnumpy().tolist() == [14] * 4


def test_a_buffer_is_shared(queue: Any) -> None:
    values = np.arange(24.0)
    x = dp.asarray(values, sycl_queue=queue)
    y = dp.ndarray((2, 3), np.float64, x, 16, (48, 16))
    expected = np.ndarray((2, 3), np.float64, values, 16, (48, 16))
    assert y.queue is queue
    np.testing.assert_array_equal(y.asnumpy(), expected)
    y[1] = -1.0
    expected[1] = -1.0
    np.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"buffer": np.zeros(4)}, dp.HostConversionError, "dp.asarray"),
        ({"buffer": bytearray(32)}, dp.HostConversionError, "host memory"),
        ({"offset": 8}, dp.ArgumentError, "require buffer="),
        ({"buffer": dp.zeros(3)}, dp.ShapeError, "the buffer has 24"),
        ({"buffer": dp.zeros(9), "offset": -8}, dp.ShapeError, "bytes -8"),
        ({"buffer": dp.zeros(9), "strides": (8, 8)}, dp.ShapeError, "2 strides"),
        ({"buffer": dp.zeros(9), "offset": 4}, dp.ArgumentError, "whole float64"),
        ({"buffer": dp.zeros(18)[::2]}, dp.ArgumentError, "not contiguous"),
        ({"buffer": dp.zeros(9), "device": "cpu"}, dp.ArgumentError, "omit device"),
    ],
)
def test_wrong_buffers_are_refused(given: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        dp.ndarray((4,), np.float64, **given)


def test_vectorized_numpy_functions_raise_the_conversion_error() -> None:
    with pytest.raises(dp.HostConversionError, match=r"x\.asnumpy\(\)"):
        np.vectorize(lambda x: x + 1)(dp.zeros(3))
