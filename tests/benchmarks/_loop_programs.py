"""Programs of ``prange`` loops, as users of Numba write them, for both compilers."""

from __future__ import annotations

from typing import Any

from numba import prange


def stencil_rows(v: Any, u: Any, a: Any) -> None:
    n, m = u.shape
    for i in prange(1, n - 1):
        for j in range(1, m - 1):
            v[i, j] = u[i, j] + a * (
                u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
            )


def stencil_both(v: Any, u: Any, a: Any) -> None:
    n, m = u.shape
    for i in prange(1, n - 1):
        for j in prange(1, m - 1):
            v[i, j] = u[i, j] + a * (
                u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
            )


def row_statements(v: Any, u: Any, a: Any) -> None:
    for i in prange(1, u.shape[0] - 1):
        v[i, 1:-1] = u[i, 1:-1] + a * (
            u[i - 1, 1:-1] + u[i + 1, 1:-1] + u[i, :-2] + u[i, 2:] - 4 * u[i, 1:-1]
        )


def array_statement(v: Any, u: Any, a: Any) -> None:
    v[1:-1, 1:-1] = u[1:-1, 1:-1] + a * (
        u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    )


def row_maxima(out: Any, u: Any) -> None:
    for i in prange(u.shape[0]):
        largest = u[i, 0]
        for j in range(1, u.shape[1]):
            if u[i, j] > largest:
                largest = u[i, j]
        out[i] = largest


def transposition(v: Any, u: Any) -> None:
    for i in prange(u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = u[j, i]


def saxpy(y: Any, x: Any, a: Any) -> None:
    for i in prange(x.size):
        y[i] = a * x[i] + y[i]


def shift(y: Any, x: Any, k: Any) -> None:
    for i in prange(k, x.size - k):
        y[i] = x[i - k] + x[i + k]


def sum_of_products(x: Any, y: Any) -> Any:
    total = 0.0
    for i in prange(x.size):
        total += x[i] * y[i]
    return total


def stencil_3d(v: Any, u: Any, a: Any) -> None:
    n, m, p = u.shape
    for i in prange(1, n - 1):
        for j in range(1, m - 1):
            for k in range(1, p - 1):
                v[i, j, k] = u[i, j, k] + a * (
                    u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                    + u[i, j, k - 1] + u[i, j, k + 1] - 6 * u[i, j, k]
                )  # fmt: skip


def matrix_product(c: Any, a: Any, b: Any) -> None:
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total


def mandelbrot(out: Any, limit: Any) -> None:
    n, m = out.shape
    for i in prange(n):
        for j in range(m):
            x0, y0 = -2.0 + 3.0 * j / m, -1.5 + 3.0 * i / n
            x, y, count = 0.0, 0.0, 0
            while x * x + y * y <= 4.0 and count < limit:
                x, y = x * x - y * y + x0, 2.0 * x * y + y0
                count += 1
            out[i, j] = count


def n_body(force: Any, x: Any) -> None:
    for i in prange(x.shape[1]):
        fx = fy = fz = 0.0
        for j in range(x.shape[1]):
            dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
            square = dx * dx + dy * dy + dz * dz + 1e-3
            weight = 1.0 / (square * square**0.5)
            fx += weight * dx
            fy += weight * dy
            fz += weight * dz
        force[0, i], force[1, i], force[2, i] = fx, fy, fz


def histogram(bins: Any, x: Any) -> None:
    parts, count = bins.shape
    for part in prange(parts):
        for i in range(part * x.size // parts, (part + 1) * x.size // parts):
            bins[part, int(x[i] * count)] += 1


def sparse_product(y: Any, data: Any, columns: Any, starts: Any, x: Any) -> None:
    for i in prange(y.size):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += data[k] * x[columns[k]]
        y[i] = total
