"""The stages on a device: array functions, and kernels launched over work-groups."""

from __future__ import annotations

import dparray as dp
from dparray import algorithms
from dparray._array.ndarray import ndarray

#: Centroids are kept to an eighth of a grey level. All differences between a colour and a centroid
#: are then multiples of an eighth, and float32 holds the sum of their squares exactly: distances
#: tie on one device if and only if they tie on every other, and in NumPy.
STEPS_OF_A_LEVEL = 8


def luminance(planes: ndarray) -> ndarray:
    """Lightness (CIE L*, from 0 to 1) of a photograph in sRGB: array functions.

    Args:
        planes: shape (3, height, width), float32, levels from 0 to 255.

    Returns:
        Shape (height, width).
    """
    level = planes / 255
    linear = dp.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)
    y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return dp.where(y <= 0.008856, 9.033 * y, 1.16 * dp.cbrt(y) - 0.16)


def gradient(image: ndarray) -> ndarray:
    """Length of the gradient by Sobel's operator, zero at the border: array functions, views.

    Args:
        image: shape (height, width), float32.

    Returns:
        The same shape.
    """
    if min(image.shape) < 3:
        return dp.zeros_like(image)
    height, width = image.shape

    def at(down: int, right: int) -> ndarray:
        """The neighbour of every inner pixel: a view."""
        return image[1 + down : height - 1 + down, 1 + right : width - 1 + right]

    x = at(-1, 1) - at(-1, -1) + 2 * (at(0, 1) - at(0, -1)) + at(1, 1) - at(1, -1)
    y = at(1, -1) - at(-1, -1) + 2 * (at(1, 0) - at(-1, 0)) + at(1, 1) - at(-1, 1)
    result = dp.zeros_like(image)
    result[1:-1, 1:-1] = dp.sqrt(x * x + y * y) / 8
    return result


def blur(planes: ndarray, weights: ndarray) -> ndarray:
    """Gaussian blur: a kernel that keeps tiles of the image in local memory.

    Args:
        planes: shape (3, height, width), float32.
        weights: shape (2 * radius + 1,), float32.

    Returns:
        The shape of ``planes``.
    """
    return algorithms.convolve_separable(planes, weights)


def quantise(planes: ndarray, centroids: ndarray, iterations: int) -> tuple[ndarray, ndarray]:
    """Palette of a photograph by k-means, and the photograph in its colours: three kernels.

    Args:
        planes: shape (3, height, width), float32, levels from 0 to 255.
        centroids: the colours to start from, shape (colours, 3), float32.
        iterations: how often the colours move to the mean of their pixels.

    Returns:
        The palette, of the shape of ``centroids``, and the number of each pixel's colour in it,
        shape (height, width), int32.
    """
    points = planes.reshape(3, -1).T
    for _ in range(iterations):
        labels = algorithms.kmeans_assign(points, centroids)
        centroids = algorithms.kmeans_update(points, labels, centroids, steps=STEPS_OF_A_LEVEL)
    labels = algorithms.kmeans_assign(points, centroids)
    return centroids, labels.reshape(planes.shape[1:])
