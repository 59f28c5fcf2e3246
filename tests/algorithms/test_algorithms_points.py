"""k-means and distances, against NumPy and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import algorithms
from dparray.algorithms import clustering
from dparray.kernels.distance import make_pairwise_distance_kernel
from dparray.kernels.kmeans import (
    make_accumulate_kernel,
    make_assign_kernel,
    make_centroids_kernel,
)
from dparray.kernels.nbody import make_acceleration_kernel
from tests.support import normal

# --- k-means --------------------------------------------------------------------------------------


def _nearest(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    differences = points[:, None, :].astype(np.float64) - centroids
    return np.square(differences).sum(-1).argmin(1)


def _means(points: np.ndarray, labels: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    means = centroids.astype(np.float64)
    for cluster in np.unique(labels):
        means[cluster] = points[labels == cluster].mean(0, dtype=np.float64)
    return means


# The last ones need several passes, because their sums do not fit into local memory.
@pytest.mark.parametrize(
    ("n", "clusters", "dimensions"),
    [(1, 1, 1), (5, 16, 3), (1009, 7, 2), (20_000, 16, 3), (3000, 300, 3), (999, 100, 70)],
)
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.sample(4)
def test_kmeans(queue: Any, n: int, clusters: int, dimensions: int, by_columns: bool) -> None:
    points, start = normal((n, dimensions)), normal((clusters, dimensions))
    array = dp.asarray(points, sycl_queue=queue)
    if by_columns:
        array = dp.asarray(np.ascontiguousarray(points.T), sycl_queue=queue).T
    centroids = dp.asarray(start, sycl_queue=queue)
    labels = algorithms.kmeans_assign(array, centroids)
    moved = algorithms.kmeans_update(array, labels, centroids)
    assert labels.queue == moved.queue == queue
    np.testing.assert_array_equal(labels.asnumpy(), _nearest(points, start))
    np.testing.assert_allclose(moved.asnumpy(), _means(points, labels.asnumpy(), start), atol=1e-5)


def test_kmeans_in_double_precision_with_labels_of_other_dtypes() -> None:
    points, start = normal((500, 4), "float64"), normal((6, 4), "float64")
    labels = algorithms.kmeans_assign(dp.asarray(points), dp.asarray(start))
    expected = _means(points, labels.asnumpy(), start)
    for dtype in ("int64", "uint8", "uint64"):
        moved = algorithms.kmeans_update(
            dp.asarray(points), labels.astype(dtype), dp.asarray(start)
        )
        np.testing.assert_allclose(moved.asnumpy(), expected, atol=1e-14)


def test_groups_of_a_gpu_take_little_local_memory(pretend: Any, monkeypatch: Any) -> None:
    pretend(kind="gpu", sub_groups=(32,), group=1024, local_memory=227 << 10)
    sizes: list[int] = []

    def noted(shape: tuple[int, ...], dtype: Any) -> dp.LocalAccessor:
        sizes.append(math.prod(shape) * np.dtype(dtype).itemsize)
        return dp.LocalAccessor(shape, dtype)

    monkeypatch.setattr(clustering, "LocalAccessor", noted)
    points, start = normal((5000, 9)), normal((80, 9))
    labels = algorithms.kmeans_assign(dp.asarray(points), dp.asarray(start))
    moved = algorithms.kmeans_update(dp.asarray(points), labels, dp.asarray(start))
    np.testing.assert_allclose(moved.asnumpy(), _means(points, labels.asnumpy(), start), atol=1e-5)
    assert 8 << 10 < sizes[0] <= 16 << 10


def test_an_empty_cluster_stays_and_strange_labels_touch_nothing() -> None:
    points = dp.asarray([[1.0], [3.0]])
    centroids = dp.asarray([[7.0], [8.0]])
    moved = algorithms.kmeans_update(points, dp.asarray([1, 1]), centroids)
    np.testing.assert_array_equal(moved.asnumpy(), [[7], [2]])
    moved = algorithms.kmeans_update(points, dp.asarray([-5, 10**6]), centroids)
    np.testing.assert_array_equal(moved.asnumpy(), [[7], [8]])


def test_means_are_rounded_with_ties_up() -> None:
    points = dp.asarray([[1.0], [1.25], [-1.0], [-1.25], [3.0]])
    labels, centroids = dp.asarray([0, 0, 1, 1, 3]), dp.zeros((4, 1)) + 0.3
    moved = algorithms.kmeans_update(points, labels, centroids, steps=4)
    np.testing.assert_array_equal(moved.asnumpy(), [[1.25], [-1.0], [0.3], [3.0]])
    for steps in (-1, math.nan, math.inf):
        with pytest.raises(ValueError, match="steps must be finite"):
            algorithms.kmeans_update(points, labels, centroids, steps=steps)


def test_the_mean_of_many_points_keeps_its_digits() -> None:
    points = np.full((3_000_000, 1), 0.1, np.float32)
    labels = dp.zeros(len(points), dtype="int32")
    moved = algorithms.kmeans_update(dp.asarray(points), labels, dp.zeros((1, 1), dtype="float32"))
    assert moved.item() == pytest.approx(np.float32(0.1), rel=1e-5)


def test_kmeans_with_wrong_arguments() -> None:
    points, centroids = dp.ones((5, 3)), dp.ones((2, 3))
    labels = dp.zeros(5, dtype="int32")
    with pytest.raises(dp.ShapeError, match="kmeans_assign: points"):
        algorithms.kmeans_assign(points, dp.ones((2, 4)))
    with pytest.raises(dp.ShapeError, match="must not be empty"):
        algorithms.kmeans_assign(points[:0], centroids)
    with pytest.raises(dp.DTypeError, match="both float64"):
        algorithms.kmeans_assign(points, centroids.astype("float32"))
    with pytest.raises(dp.ShapeError, match=r"labels must have shape \(5,\)"):
        algorithms.kmeans_update(points, labels[:4], centroids)
    with pytest.raises(dp.DTypeError, match="labels must be integers"):
        algorithms.kmeans_update(points, labels.astype("float32"), centroids)
    part = dp.Device("cpu").create_sub_devices()[0]
    with pytest.raises(dp.ExecutionPlacementError, match="labels"):
        algorithms.kmeans_update(points, labels.to_device(part), centroids)


# --- distances and gravitation --------------------------------------------------------------------


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    ("n", "m", "dimensions"), [(1, 1, 1), (17, 65, 3), (100, 63, 33), (2, 300, 100), (5, 5, 0)]
)
def test_pairwise_distance(queue: Any, n: int, m: int, dimensions: int, squared: bool) -> None:
    x, y = normal((n, dimensions)), normal((m, dimensions)) + np.float32(100)
    found = algorithms.pairwise_distance(
        dp.asarray(x, sycl_queue=queue), dp.asarray(y, sycl_queue=queue), squared=squared
    )
    assert found.queue == queue
    expected = np.square(x[:, None].astype(np.float64) - y[None]).sum(-1)
    np.testing.assert_allclose(
        found.asnumpy(), expected if squared else np.sqrt(expected), rtol=1e-5
    )


def test_near_points_lose_no_digits() -> None:
    x = np.array([[10_000.0, 20_000.0]], np.float32)
    found = algorithms.pairwise_distance(dp.asarray(x), dp.asarray(x + np.float32(0.5)))
    assert found.item() == pytest.approx(math.sqrt(0.5), rel=1e-6)


def test_points_with_wrong_arguments() -> None:
    x = dp.ones((4, 3), dtype="float32")
    with pytest.raises(dp.ShapeError, match="pairwise_distance: x"):
        algorithms.pairwise_distance(x, x[:, :2])
    with pytest.raises(dp.DTypeError, match="float64"):
        algorithms.pairwise_distance(x, x.astype("float64"))


def test_the_kernels_are_right_in_the_simulator() -> None:
    x, y, mass = normal((10, 3), "float64"), normal((6, 3), "float64"), np.arange(1.0, 7.0)
    labels, partials, moved = np.zeros(10, np.int32), np.zeros((2, 24)), np.zeros((6, 3))
    dp.simulate(make_assign_kernel(3, np.float64), 12, x, y, labels)
    np.testing.assert_array_equal(labels, _nearest(x, y))
    # Local memory for 5 of the 24 sums at a time.
    sums = dp.LocalAccessor((5, 4), np.float64)
    dp.simulate(make_accumulate_kernel(3, np.float64), dp.NdRange(8, 4), x, labels, partials, sums)
    dp.simulate(make_centroids_kernel(3, np.float64), 6, partials, y, moved, 0.0)
    np.testing.assert_allclose(moved, _means(x, labels, y))

    found, part = np.zeros((10, 6)), dp.LocalAccessor(3 * 2, np.float64)
    other = dp.LocalAccessor(1, np.float64)
    kernel = make_pairwise_distance_kernel(3, 2, squared=True, dtype=np.float64)
    dp.simulate(kernel, dp.NdRange(4 * 2 * 4, 4), x, y, found, part, other)
    step = y - x[:, None]
    np.testing.assert_allclose(found, np.square(step).sum(-1))

    pull, tile = np.zeros((6, 3)), dp.LocalAccessor((4, 4), np.float64)
    kernel = make_acceleration_kernel(np.float64)
    dp.simulate(kernel, dp.NdRange(8, 4), y, mass, pull, tile, 0.25)
    step = y - y[:, None]
    weight = mass / (np.square(step).sum(-1) + 0.25) ** 1.5
    np.testing.assert_allclose(pull, (step * weight[..., None]).sum(1))
