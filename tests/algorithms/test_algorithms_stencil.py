"""Convolutions of the kernel collection compared with SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import algorithms
from dparray.kernels.stencil import make_convolution_kernel, make_separable_convolution_kernel
from tests.support import normal

ndimage = pytest.importorskip("scipy.ndimage")

SCIPY_MODES = {"edge": "nearest", "zero": "constant"}


# Around the tiles (1024; 16 by 64; 4 by 8 by 64), smaller than the window, and a single element.
@pytest.mark.parametrize("boundary", SCIPY_MODES)
@pytest.mark.parametrize(
    ("shape", "window"),
    [
        ((1,), (5,)),
        ((1023,), (7,)),
        ((1025,), (1,)),
        ((3500,), (65,)),
        ((2,), (9,)),
        ((16, 64), (3, 3)),
        ((17, 65), (5, 3)),
        ((1, 200), (3, 7)),
        ((200, 1), (1, 5)),
        ((4, 8, 64), (3, 3, 3)),
        ((5, 9, 67), (1, 3, 5)),
        ((2, 1, 3), (5, 5, 5)),
    ],
)
@pytest.mark.sample(4)
def test_convolution(
    queue: Any, shape: tuple[int, ...], window: tuple[int, ...], boundary: str
) -> None:
    x, weights = normal(shape), normal(window)
    found = algorithms.convolve_dense(
        dp.asarray(x, sycl_queue=queue), dp.asarray(weights, sycl_queue=queue), boundary=boundary
    )
    assert found.queue == queue
    expected = ndimage.convolve(
        x.astype(np.float64), weights.astype(np.float64), mode=SCIPY_MODES[boundary]
    )
    np.testing.assert_allclose(found.asnumpy(), expected, atol=1e-5 * weights.size)


def test_convolution_in_double_precision_of_views() -> None:
    x, weights = normal((40, 60), "float64"), normal((5, 5), "float64")
    found = algorithms.convolve_dense(dp.asarray(x)[::2, ::-1], dp.asarray(weights).T)
    np.testing.assert_allclose(
        found.asnumpy(), ndimage.convolve(x[::2, ::-1], weights.T, mode="nearest"), atol=1e-12
    )


def test_a_window_that_needs_smaller_tiles() -> None:
    x, weights = normal((50, 70), "float64"), normal((101, 101), "float64")
    found = algorithms.convolve_dense(dp.asarray(x), dp.asarray(weights), boundary="zero")
    # SciPy stores an offset for each pair of an element near the border and a weight, 280 MB here.
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, 50), weights.shape)
    expected = np.einsum("abij,ij->ab", windows, weights[::-1, ::-1])
    np.testing.assert_allclose(found.asnumpy(), expected, atol=1e-9)


@pytest.mark.parametrize("radius", [0, 1, 5])
@pytest.mark.parametrize("shape", [(1, 1), (2, 33, 65), (7, 200), (200, 7), (2, 3, 32, 64), (0, 5)])
def test_separable_convolution(queue: Any, shape: tuple[int, ...], radius: int) -> None:
    x, weights = normal(shape), normal((2 * radius + 1,))
    found = algorithms.convolve_separable(
        dp.asarray(x, sycl_queue=queue), dp.asarray(weights, sycl_queue=queue)
    )
    expected = x.astype(np.float64)
    if x.size:
        for axis in (-1, -2):
            expected = ndimage.correlate1d(expected, weights, axis, mode="nearest")
    np.testing.assert_allclose(found.asnumpy(), expected, atol=1e-5 * (1 + radius) ** 2)


@pytest.mark.parametrize("function", [algorithms.convolve_dense, algorithms.convolve_separable])
def test_wrong_arguments(function: Any) -> None:
    x = dp.ones((4, 4), dtype="float32")
    weights = dp.ones((3, 3) if function is algorithms.convolve_dense else 3, dtype="float32")
    even = dp.ones((2, 2) if function is algorithms.convolve_dense else 2, dtype="float32")
    with pytest.raises(dp.ShapeError, match="odd"):
        function(x, even)
    with pytest.raises(dp.ShapeError, match="dimensions"):
        function(dp.ones(4, dtype="float32")[0], weights)
    with pytest.raises(dp.DTypeError, match="both be float32 or both float64"):
        function(x, weights.astype("float64"))
    with pytest.raises(dp.DTypeError, match="int64"):
        function(dp.ones((4, 4), dtype="int64"), weights.astype("int64"))
    with pytest.raises(dp.ExecutionPlacementError, match=function.__name__):
        function(x, weights.to_device(dp.Device("cpu").create_sub_devices()[0]))
    huge = dp.ones(
        (1, 100_001) if function is algorithms.convolve_dense else 100_001, dtype="float32"
    )
    with pytest.raises(dp.KernelRangeError, match="local memory"):
        function(x, huge)


def test_a_boundary_that_does_not_exist() -> None:
    x = dp.ones(4, dtype="float32")
    with pytest.raises(ValueError, match="boundary must be one of edge, zero; got 'mirror'"):
        algorithms.convolve_dense(x, x[:3], boundary="mirror")


@pytest.mark.parametrize("boundary", SCIPY_MODES)
def test_the_convolution_is_right_in_the_simulator(boundary: str) -> None:
    """Tiles are twice as wide as a group, at all edges of a volume and inside."""
    x, weights = normal((3, 6, 27)), normal((3, 3, 5))
    out = np.zeros_like(x)
    kernel = make_convolution_kernel(weights.shape, boundary == "edge", np.float32)
    tile = dp.LocalAccessor((4, 6, 12), np.float32)
    dp.simulate(kernel, dp.NdRange(2 * 2 * 4 * 4, 4), x, weights, out, tile)
    expected = ndimage.correlate(x, weights, mode=SCIPY_MODES[boundary])
    np.testing.assert_allclose(out, expected, atol=1e-5)


def test_the_separable_convolution_is_right_in_the_simulator() -> None:
    x, weights = normal((2, 6, 11)), normal((5,))
    out = np.zeros_like(x)
    tiles = dp.LocalAccessor((8, 8), np.float32), dp.LocalAccessor((8, 4), np.float32)
    kernel = make_separable_convolution_kernel(2)
    dp.simulate(kernel, dp.NdRange(2 * 2 * 3 * 4, 4), x, weights, out, *tiles)
    expected = x
    for axis in (2, 1):
        expected = ndimage.correlate1d(expected, weights, axis, mode="nearest")
    np.testing.assert_allclose(out, expected, atol=1e-5)
