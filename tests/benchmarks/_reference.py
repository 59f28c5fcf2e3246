"""The stages in NumPy: reference results for the device, and times to compare with.

They are written for speed in NumPy and do not imitate the device's algorithms.
"""

from __future__ import annotations

import numpy as np

#: Centroids are rounded to an eighth of a gray level, so that float32 represents distances exactly.
STEPS_OF_A_LEVEL = 8


def starting_colors(planes: np.ndarray, colors: int) -> np.ndarray:
    """Return initial colors for k-means: each is the farthest from those before it.

    It samples about 4,096 pixels, begins next to their mean and draws no random numbers. If the
    sample has fewer colors, some are repeated.
    """
    pixels = planes.reshape(3, -1).T
    points = pixels[:: max(1, len(pixels) // 4096)]
    chosen = [points[np.argmin(np.sum((points - points.mean(0)) ** 2, 1))]]
    shortest = np.full(len(points), np.inf)
    for _ in range(colors - 1):
        shortest = np.minimum(shortest, np.sum((points - chosen[-1]) ** 2, 1))
        chosen.append(points[np.argmax(shortest)])
    return np.array(chosen, np.float32)


def gaussian(sigma: float) -> np.ndarray:
    """Return the weights of a Gaussian to three standard deviations, with the sum 1."""
    radius = max(1, int(3 * sigma + 0.5))
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return (weights / weights.sum()).astype(np.float32)


def luminance(planes: np.ndarray) -> np.ndarray:
    """Return the lightness of a photograph (3, height, width) of levels from 0 to 255."""
    level = planes / np.float32(255)
    linear = np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)
    y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return np.where(y <= 0.008856, 9.033 * y, 1.16 * np.cbrt(y) - 0.16)


def gradient(image: np.ndarray) -> np.ndarray:
    """Return the length of the gradient by Sobel's operator, zero at the boundary."""
    down = image[:-2] + 2 * image[1:-1] + image[2:]
    across = image[:, :-2] + 2 * image[:, 1:-1] + image[:, 2:]
    x = down[:, 2:] - down[:, :-2]
    y = across[2:] - across[:-2]
    result = np.zeros_like(image)
    result[1:-1, 1:-1] = np.sqrt(x * x + y * y) / 8
    return result


def blur(planes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weigh neighbors along rows and then along columns, with the edges repeated."""
    radius = len(weights) // 2
    height, width = planes.shape[1:]
    padded = np.pad(planes, ((0, 0), (radius, radius), (radius, radius)), mode="edge")
    rows = weights[0] * padded[:, :, :width]
    for k in range(1, len(weights)):
        rows += weights[k] * padded[:, :, k : k + width]
    result = weights[0] * rows[:, :height]
    for k in range(1, len(weights)):
        result += weights[k] * rows[:, k : k + height]
    return result


def quantise(
    planes: np.ndarray, centroids: np.ndarray, iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a palette by k-means, and the index of each pixel's color in it."""
    points = planes.reshape(3, -1)
    for _ in range(iterations):
        labels = nearest(points, centroids)
        count = np.bincount(labels, minlength=len(centroids))[:, None]
        total = np.stack(
            [np.bincount(labels, weights=plane, minlength=len(centroids)) for plane in points], 1
        )
        means = np.where(count > 0, total / np.maximum(count, 1), centroids)
        centroids = (np.floor(means * STEPS_OF_A_LEVEL + 0.5) / STEPS_OF_A_LEVEL).astype(np.float32)
    return centroids, nearest(points, centroids).reshape(planes.shape[1:])


def nearest(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Return the index of the nearest of ``centroids`` (colors, 3) for each point of (3, n)."""
    # One pass per centroid is faster than one array of all distances, which exceeds the cache.
    shortest = np.full(points.shape[1], np.inf, points.dtype)
    labels = np.zeros(points.shape[1], np.int32)
    for number, centroid in enumerate(centroids):
        distance = np.square(points[0] - centroid[0])
        distance += np.square(points[1] - centroid[1])
        distance += np.square(points[2] - centroid[2])
        nearer = distance < shortest
        labels[nearer] = number
        np.minimum(distance, shortest, out=shortest)
    return labels
