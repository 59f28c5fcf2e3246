"""Ten programs in NumPy's style, typical of published benchmarks.

Each takes the array module as ``np`` and runs unchanged with NumPy and with dparray. ``PROGRAMS``
maps each name to the function that creates its arguments, for small (published) and large sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy


class Program(NamedTuple):
    """A program, and its arguments by size.

    Attributes:
        run: called with the module and the arguments, as arrays of the module.
        arguments: creates the arguments with NumPy arrays, for ``"small"`` or ``"large"``.
    """

    run: Callable[..., Any]
    arguments: Callable[[str], tuple[Any, ...]]


def jacobi_2d(np: Any, steps: int, a: Any) -> Any:
    """Five-point stencil, from one grid to the other and back."""
    b = a.copy()
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )
    return a


def heat_3d(np: Any, steps: int, a: Any) -> Any:
    """The heat equation on a cube."""
    b = a.copy()
    for _ in range(steps):
        for old, new in ((a, b), (b, a)):
            inner = old[1:-1, 1:-1, 1:-1]
            new[1:-1, 1:-1, 1:-1] = (
                inner
                + 0.125 * (old[2:, 1:-1, 1:-1] - 2.0 * inner + old[:-2, 1:-1, 1:-1])
                + 0.125 * (old[1:-1, 2:, 1:-1] - 2.0 * inner + old[1:-1, :-2, 1:-1])
                + 0.125 * (old[1:-1, 1:-1, 2:] - 2.0 * inner + old[1:-1, 1:-1, :-2])
            )
    return a


def triangular_solve(np: Any, matrix: Any, right: Any) -> Any:
    """Forward substitution, one row after the other."""
    x = np.zeros_like(right)
    for i in range(matrix.shape[0]):
        x[i] = (right[i] - np.sum(matrix[i, :i] * x[:i])) / matrix[i, i]
    return x


def correlation(np: Any, data: Any) -> Any:
    """The correlation matrix of columns."""
    data = data - np.mean(data, axis=0)
    deviation = np.std(data, axis=0)
    deviation = np.where(deviation <= 0.1, 1.0, deviation)
    data = data / (np.sqrt(data.shape[0]) * deviation)
    return data.T @ data


def n_body(np: Any, steps: int, position: Any, velocity: Any, mass: Any) -> Any:
    """Gravitation between all pairs, by broadcasting; leap-frog steps."""
    for _ in range(steps):
        x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inverse = (dx * dx + dy * dy + dz * dz + 0.01) ** -1.5
        force = [np.sum(d * inverse * mass, axis=1) for d in (dx, dy, dz)]
        for axis in range(3):
            velocity[:, axis] += 0.01 * force[axis]
        position += 0.01 * velocity
    return position


def cavity_flow(np: Any, steps: int, u: Any, v: Any, p: Any) -> Any:
    """A lid-driven cavity: pressure by Jacobi steps, velocities by slices."""
    h, dt, nu = 2.0 / (u.shape[0] - 1), 0.0005, 0.1
    for _ in range(steps):
        b = (u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * h * dt)
        for _ in range(5):
            old = p.copy()
            p[1:-1, 1:-1] = 0.25 * (
                old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1] - h * h * b
            )
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0.0
        un, vn = u.copy(), v.copy()
        for new, old, slope in (
            (u, un, p[1:-1, 2:] - p[1:-1, :-2]),
            (v, vn, p[2:, 1:-1] - p[:-2, 1:-1]),
        ):
            inner = old[1:-1, 1:-1]
            new[1:-1, 1:-1] = (
                inner
                - un[1:-1, 1:-1] * dt / h * (inner - old[1:-1, :-2])
                - vn[1:-1, 1:-1] * dt / h * (inner - old[:-2, 1:-1])
                - dt / (2 * h) * slope
                + nu * dt / (h * h) * (old[1:-1, 2:] - 2 * inner + old[1:-1, :-2])
                + nu * dt / (h * h) * (old[2:, 1:-1] - 2 * inner + old[:-2, 1:-1])
            )
        u[0, :] = u[:, 0] = u[:, -1] = 0.0
        u[-1, :] = 1.0
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0.0
    return u + v


def softmax(np: Any, x: Any) -> Any:
    """Softmax over the last axis."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def mlp(np: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """A perceptron of two layers."""
    hidden = np.maximum(x @ w1 + b1, 0.0)
    return softmax(np, hidden @ w2 + b2)


def mandelbrot(np: Any, steps: int, re: Any, im: Any) -> Any:
    """The number of steps that each point stays inside, in real arithmetic."""
    zr, zi = np.zeros_like(re), np.zeros_like(im)
    count = np.zeros_like(re)
    for _ in range(steps):
        inside = zr * zr + zi * zi < 4.0
        zr, zi = (
            np.where(inside, zr * zr - zi * zi + re, zr),
            np.where(inside, 2.0 * zr * zi + im, zi),
        )
        count += inside
    return count


def k_means(np: Any, steps: int, points: Any, centres: Any) -> Any:
    """Lloyd's algorithm, distances by broadcasting."""
    for _ in range(steps):
        distance = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
        nearest = np.argmin(distance, axis=1)
        for k in range(centres.shape[0]):
            chosen = nearest == k
            count = np.maximum(np.sum(chosen), 1)
            centres[k] = np.sum(np.where(chosen[:, None], points, 0.0), axis=0) / count
    return centres


def _grid(small: int, large: int, dimensions: int, steps: int) -> Callable[[str], tuple[Any, ...]]:
    def arguments(size: str) -> tuple[Any, ...]:
        extent = small if size == "small" else large
        return steps, _random((extent,) * dimensions)

    return arguments


def _random(shape: tuple[int, ...], seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).uniform(0.1, 1.0, shape)


def _triangle(size: str) -> tuple[Any, ...]:
    n = 40 if size == "small" else 2000
    matrix = numpy.tril(_random((n, n))) / n + numpy.eye(n)
    return matrix, _random((n,), 1)


def _bodies(size: str) -> tuple[Any, ...]:
    n = 50 if size == "small" else 2000
    return 5, _random((n, 3)), _random((n, 3), 1), _random((n,), 2)


def _cavity(size: str) -> tuple[Any, ...]:
    n = 41 if size == "small" else 1500
    return 5, *(numpy.zeros((n, n)) for _ in range(3))


def _data(size: str) -> tuple[Any, ...]:
    return (_random((50, 20) if size == "small" else (20_000, 200)),)


def _rows(size: str) -> tuple[Any, ...]:
    return (_random((32, 40) if size == "small" else (3000, 2000)),)


def _layers(size: str) -> tuple[Any, ...]:
    batch, width, out = (16, 64, 10) if size == "small" else (2000, 1000, 1000)
    return (
        _random((batch, width)),
        _random((width, width), 1) - 0.5,
        _random((width,), 2),
        _random((width, out), 3) - 0.5,
        _random((out,), 4),
    )


def _plane(size: str) -> tuple[Any, ...]:
    n = 60 if size == "small" else 1500
    line = numpy.linspace(-2, 2, n)
    re, im = numpy.meshgrid(line, line)
    return 20, re, im


def _clusters(size: str) -> tuple[Any, ...]:
    n = 200 if size == "small" else 200_000
    return 3, _random((n, 3)), _random((5, 3), 1)


PROGRAMS: dict[str, Program] = {
    "jacobi 2-D": Program(jacobi_2d, _grid(40, 2000, 2, 10)),
    "heat 3-D": Program(heat_3d, _grid(16, 130, 3, 5)),
    "triangular solver": Program(triangular_solve, _triangle),
    "correlation": Program(correlation, _data),
    "n-body": Program(n_body, _bodies),
    "cavity flow": Program(cavity_flow, _cavity),
    "softmax": Program(softmax, _rows),
    "perceptron": Program(mlp, _layers),
    "mandelbrot": Program(mandelbrot, _plane),
    "k-means": Program(k_means, _clusters),
}
