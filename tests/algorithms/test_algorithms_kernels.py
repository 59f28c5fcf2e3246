"""The collection's kernels in the simulator, with sizes that divide nothing.

There are no races, no barriers that some work-items miss, no accesses out of bounds, and no reads
of uninitialized local memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dparray import simulate
from dparray.kernel_api import LocalAccessor, NdRange, Range
from dparray.kernels import distance, elementwise, kmeans, matrix, nbody, stencil

FLOAT = np.float32


def _values(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).random(shape).astype(FLOAT)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, FLOAT)


def _local(*shape: int) -> Any:
    return LocalAccessor(shape, FLOAT)


def test_matrix_product() -> None:
    a, b, c = _values(2, 5, 9), _values(2, 9, 7), _zeros(2, 5, 7)
    kernel = matrix.make_matmul_kernel(4, 4, FLOAT)
    simulate(kernel, NdRange(2 * 2 * 2 * 4, 4), a, b, c, _local(16))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("together", [1, 2, 4])
@pytest.mark.parametrize("shape", [(2, 7, 5), (1, 8, 4), (3, 4, 13)])
def test_transposition(shape: tuple[int, ...], together: int, is_wide: bool) -> None:
    stack, m, n = shape
    x, out = _values(*shape), _zeros(stack, n, m)
    kernel = matrix.make_transpose_kernel(4, together, FLOAT, is_wide)
    groups = (stack * -(-m // 4), -(-n // 4))[:: -1 if is_wide else 1]
    size = groups[0] * together, groups[1] * 4
    flat = x.reshape(-1), out.reshape(-1)
    simulate(kernel, NdRange(size, (together, 4)), *flat, _local(20), m, n)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1))


def test_separable_convolution() -> None:
    x, out, weights = _values(2, 5, 7), _zeros(2, 5, 7), _values(3)
    kernel = stencil.make_separable_convolution_kernel(1)
    index_space = NdRange(2 * 2 * 2 * 4, 4)
    simulate(kernel, index_space, x, weights, out, _local(5, 6), _local(5, 4))
    edges = np.pad(x, ((0, 0), (1, 1), (1, 1)), mode="edge")
    rows = sum(weights[k] * edges[:, :, k : k + 7] for k in range(3))
    np.testing.assert_allclose(out, sum(weights[k] * rows[:, k : k + 5] for k in range(3)), 1e-5)


@pytest.mark.parametrize("repeats_edges", [True, False])
def test_convolution(repeats_edges: bool) -> None:
    x, out, weights = _values(3, 5, 7), _zeros(3, 5, 7), _values(3, 1, 3)
    kernel = stencil.make_convolution_kernel((3, 1, 3), repeats_edges, FLOAT)
    simulate(kernel, NdRange(2 * 2 * 2 * 4, 4), x, weights, out, _local(4, 3, 6))
    padded = np.pad(x, ((1, 1), (0, 0), (1, 1)), mode="edge" if repeats_edges else "constant")
    expected = sum(
        weights[a, 0, c] * padded[a : a + 3, :, c : c + 7] for a in range(3) for c in range(3)
    )
    np.testing.assert_allclose(out, expected, rtol=1e-5)


@pytest.mark.parametrize("capacity", [16, 5])
def test_kmeans(capacity: int) -> None:
    points, centroids, moved = _values(21, 3), _values(4, 3), _zeros(4, 3)
    labels, partials = np.zeros(21, np.int32), _zeros(2, 16)
    simulate(kmeans.make_assign_kernel(3, FLOAT), Range(24), points, centroids, labels)
    accumulate = kmeans.make_accumulate_kernel(3, FLOAT)
    simulate(accumulate, NdRange(8, 4), points, labels, partials, _local(capacity, 4))
    simulate(kmeans.make_centroids_kernel(3, FLOAT), Range(4), partials, centroids, moved, FLOAT(0))
    expected = np.square(points[:, None] - centroids).sum(-1).argmin(1)
    np.testing.assert_array_equal(labels, expected)
    for cluster in np.unique(labels):
        np.testing.assert_allclose(moved[cluster], points[labels == cluster].mean(0), rtol=1e-5)


@pytest.mark.parametrize("is_staged", [False, True])
def test_pairwise_distance(is_staged: bool) -> None:
    x, y, found = _values(5, 3), _values(7, 3), _zeros(5, 7)
    kernel = distance.make_pairwise_distance_kernel(4, 2, False, FLOAT, is_staged)
    simulate(kernel, NdRange(2 * 2 * 4, 4), x, y, found, _local(8), _local(4 * 3))
    np.testing.assert_allclose(found, np.sqrt(np.square(x[:, None] - y).sum(-1)), rtol=1e-5)


def test_nbody() -> None:
    position, mass, found = _values(6, 3), _values(6), _zeros(6, 3)
    kernel = nbody.make_acceleration_kernel(FLOAT)
    simulate(kernel, NdRange(8, 4), position, mass, found, _local(4, 4), FLOAT(0.25))
    step = position - position[:, None]
    square = np.square(step).sum(-1) + 0.25
    np.testing.assert_allclose(found, (step * (mass / square**1.5)[..., None]).sum(1), rtol=1e-4)


def test_elements() -> None:
    price, call, put = _values(5) + 1, _zeros(5), _zeros(5)
    kernel = elementwise.make_black_scholes_kernel(FLOAT)
    simulate(kernel, Range(8), price, price, price, call, put, FLOAT(0.0), FLOAT(0.2))
    np.testing.assert_allclose(call, put, rtol=1e-4)  # without interest, at the money
    count = np.zeros((3, 5), np.int32)
    origin = FLOAT(-2), FLOAT(1), FLOAT(0.5)
    simulate(elementwise.make_mandelbrot_kernel(FLOAT), Range(3, 8), count, *origin, 10)
    assert count[2, 4] == 10
    assert count[0, 0] < 3
