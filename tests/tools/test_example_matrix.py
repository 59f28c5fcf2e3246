"""Tiled matrix multiplication and transposition compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.kernels.matrix import make_matmul_kernel, make_transpose_kernel
from tests.benchmarks import examples


def _values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


# Around the tile (16 by 128, 64 deep), and matrices that are vectors.
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (1, 1, 1),
        (1, 70, 1),
        (70, 1, 70),
        (16, 64, 128),
        (17, 65, 129),
        (15, 63, 127),
        (100, 200, 3),
    ],
)
def test_sizes_that_no_tile_divides(queue: Any, m: int, k: int, n: int) -> None:
    a, b = _values((m, k), "float32"), _values((k, n), "float32")
    found = examples.matmul(dp.asarray(a, sycl_queue=queue), dp.asarray(b, sycl_queue=queue))
    assert found.sycl_queue == queue
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found.asnumpy(), exact, atol=1e-5 * np.sqrt(k))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "uint64", "float64"])
def test_dtypes(dtype: str) -> None:
    a, b = _values((20, 30), dtype), _values((30, 140), dtype)
    found = examples.matmul(dp.asarray(a), dp.asarray(b))
    assert found.dtype == dtype
    np.testing.assert_allclose(found.asnumpy(), a @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 17, 9), (2, 9, 33)),
        ((3, 1, 5, 6), (4, 6, 7)),
        ((5, 6), (3, 6, 7)),
        ((3, 5, 0), (3, 0, 7)),
        ((0, 6), (6, 7)),
    ],
)
def test_stacks_broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = _values(a, "float64"), _values(b, "float64")
    found = examples.matmul(dp.asarray(x), dp.asarray(y)).asnumpy()
    np.testing.assert_allclose(found, x @ y, atol=1e-12)


def test_views_are_multiplied_with_their_layout() -> None:
    a, b = _values((50, 60), "float64"), _values((100, 80), "float64")
    found = examples.matmul(dp.asarray(a).T, dp.asarray(b)[::-2, ::3])
    np.testing.assert_allclose(found.asnumpy(), a.T @ b[::-2, ::3], atol=1e-12)


def test_matmul_with_wrong_arguments() -> None:
    x = dp.ones((3, 4), dtype="float32")
    with pytest.raises(dp.ShapeError, match=r"columns of a and the rows of b"):
        examples.matmul(x, x)
    with pytest.raises(dp.ShapeError, match="a needs two or more dimensions"):
        examples.matmul(dp.ones(3), x)
    with pytest.raises(dp.DTypeError, match="one dtype"):
        examples.matmul(x, dp.ones((4, 2), dtype="float64"))
    other = dp.ones((4, 2), dtype="float32").to_device(dp.Device("cpu").create_sub_devices()[0])
    with pytest.raises(dp.ExecutionPlacementError, match="matmul"):
        examples.matmul(x, other)


@pytest.mark.parametrize(
    "shape", [(1, 1), (127, 128), (129, 257), (1, 300), (300, 1), (3, 70, 145)]
)
def test_transposition(queue: Any, shape: tuple[int, ...]) -> None:
    x = _values(shape, "float32")
    found = examples.transpose(dp.asarray(x, sycl_queue=queue))
    assert found.sycl_queue == queue
    np.testing.assert_array_equal(found.asnumpy(), np.swapaxes(x, -1, -2))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float64"])
def test_transposition_of_every_dtype(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (40, 50)).astype(dtype)
    found = examples.transpose(dp.asarray(x))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.asnumpy(), x.T)


def test_transposition_of_a_view_copies() -> None:
    x = np.arange(60.0).reshape(6, 10)
    array = dp.asarray(x)
    found = examples.transpose(array[::2, ::-3])
    found[...] = found + 1
    np.testing.assert_array_equal(found.asnumpy(), x[::2, ::-3].T + 1)
    np.testing.assert_array_equal(array.asnumpy(), x)
    assert examples.transpose(dp.zeros((0, 3))).shape == (3, 0)
    with pytest.raises(dp.ShapeError, match="two or more dimensions"):
        examples.transpose(dp.ones(3))


def test_the_kernels_are_right_in_the_simulator() -> None:
    a, b = _values((2, 5, 7), "float32"), _values((2, 7, 9), "float32")
    out = np.zeros((2, 5, 9), np.float32)
    part = dp.LocalAccessor(2 * 3, np.float32)
    kernel = make_matmul_kernel(2, 3, np.float32)
    dp.simulate(kernel, dp.NdRange(2 * 3 * 3 * 4, 4), a, b, out, part)
    np.testing.assert_allclose(out, a @ b, atol=1e-5)
    out = np.zeros((2, 7, 5), np.float32)
    tile = dp.LocalAccessor((4, 5), np.float32)
    dp.simulate(make_transpose_kernel(4, 1), dp.NdRange(2 * 2 * 2 * 4, 4), a, out, tile)
    np.testing.assert_array_equal(out, a.swapaxes(1, 2))
