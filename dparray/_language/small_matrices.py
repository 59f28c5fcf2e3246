"""Matrices in kernels: tuples of 2, 3 or 4 row vectors of that width.

``inv``, ``det``, ``transpose``, ``matmul`` and, for 2 and 3 rows, ``svd`` stand for NumPy's
functions. The simulator runs them, and the compiler takes the branch for the number of rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dparray.kernel_api import vec

# The frontend replaces these, and vectors are no arrays for a type checker.
norm: Any = np.linalg.norm
cross: Any = np.cross
#: A column below this part of the longest one has no direction of its own. Its square is a normal
#: number of float32.
_SMALL = 1e-15


def mapped(function: Any, values: Any, other: Any) -> Any:
    """Return the results of a function of each of 2, 3 or 4 values and another one."""
    a, b = function(values[0], other), function(values[1], other)
    if len(values) == 2:
        return a, b
    c = function(values[2], other)
    return (a, b, c) if len(values) == 3 else (a, b, c, function(values[3], other))


def column(k: Any, m: Any) -> Any:
    if len(m) == 2:
        return vec(m[0][k], m[1][k])
    if len(m) == 3:
        return vec(m[0][k], m[1][k], m[2][k])
    return vec(m[0][k], m[1][k], m[2][k], m[3][k])


def transpose(m: Any) -> Any:
    return mapped(column, tuple(range(len(m))), m)


def weighted(row: Any, n: Any) -> Any:
    """Return the sum of the rows of a matrix, each times an element of a vector."""
    total = row[0] * n[0] + row[1] * n[1]
    if len(n) > 2:
        total = total + row[2] * n[2]
    return total + row[3] * n[3] if len(n) > 3 else total


def dotted(row: Any, v: Any) -> Any:
    return (row * v).sum()


def matmul(m: Any, n: Any) -> Any:
    return mapped(weighted, m, n) if isinstance(n, tuple) else vec(*mapped(dotted, m, n))


def minors(a: Any, b: Any) -> Any:
    """Return the determinants of two columns of two rows (Laplace)."""
    return (
        *(a.x * b.y - b.x * a.y, a.x * b.z - b.x * a.z, a.x * b.w - b.x * a.w),
        *(a.y * b.z - b.y * a.z, a.y * b.w - b.y * a.w, a.z * b.w - b.z * a.w),
    )


def det_2(m: Any) -> Any:
    a, b = m
    return a.x * b.y - a.y * b.x


def det_3(m: Any) -> Any:
    a, b, c = m
    x, y, z = b.y * c.z - b.z * c.y, b.z * c.x - b.x * c.z, b.x * c.y - b.y * c.x
    return a.x * x + a.y * y + a.z * z


def det_4(m: Any) -> Any:
    # By the determinants of two columns in the upper and the lower half (Laplace).
    a, b, c, d = m
    s0, s1, s2, s3, s4, s5 = minors(a, b)
    c0, c1, c2, c3, c4, c5 = minors(c, d)
    return (s0 * c5 - s1 * c4 + s2 * c3) + (s3 * c2 - s4 * c1 + s5 * c0)


def inv_2(m: Any) -> Any:
    a, b = m
    size = a.x * b.y - a.y * b.x
    return vec(b.y, -a.y) / size, vec(-b.x, a.x) / size


def inv_3(m: Any) -> Any:
    a, b, c = m
    x, y, z = b.y * c.z - b.z * c.y, b.z * c.x - b.x * c.z, b.x * c.y - b.y * c.x
    size = a.x * x + a.y * y + a.z * z
    return (
        vec(x, c.y * a.z - c.z * a.y, a.y * b.z - a.z * b.y) / size,
        vec(y, c.z * a.x - c.x * a.z, a.z * b.x - a.x * b.z) / size,
        vec(z, c.x * a.y - c.y * a.x, a.x * b.y - a.y * b.x) / size,
    )


def inv_4(m: Any) -> Any:
    a, b, c, d = m
    s0, s1, s2, s3, s4, s5 = minors(a, b)
    c0, c1, c2, c3, c4, c5 = minors(c, d)
    size = (s0 * c5 - s1 * c4 + s2 * c3) + (s3 * c2 - s4 * c1 + s5 * c0)
    return (
        vec(b.y * c5 - b.z * c4 + b.w * c3, a.z * c4 - a.y * c5 - a.w * c3,
            d.y * s5 - d.z * s4 + d.w * s3, c.z * s4 - c.y * s5 - c.w * s3) / size,
        vec(b.z * c2 - b.x * c5 - b.w * c1, a.x * c5 - a.z * c2 + a.w * c1,
            d.z * s2 - d.x * s5 - d.w * s1, c.x * s5 - c.z * s2 + c.w * s1) / size,
        vec(b.x * c4 - b.y * c2 + b.w * c0, a.y * c2 - a.x * c4 - a.w * c0,
            d.x * s4 - d.y * s2 + d.w * s0, c.y * s2 - c.x * s4 - c.w * s0) / size,
        vec(b.y * c1 - b.x * c3 - b.z * c0, a.x * c3 - a.y * c1 + a.z * c0,
            d.y * s1 - d.x * s3 - d.z * s0, c.x * s3 - c.y * s1 + c.z * s0) / size,
    )  # fmt: skip


def inv(m: Any) -> Any:
    return inv_2(m) if len(m) == 2 else inv_3(m) if len(m) == 3 else inv_4(m)


def det(m: Any) -> Any:
    return det_2(m) if len(m) == 2 else det_3(m) if len(m) == 3 else det_4(m)


# --- singular values, by rotations of columns (one-sided Jacobi) ----------------------------------


def rotated(p: Any, q: Any, v: Any, w: Any) -> Any:
    """Return two columns made orthogonal by a rotation, the longer one first, and v and w alike."""
    both, difference = (p * q).sum(), (q * q).sum() - (p * p).sum()
    if both != 0:
        z = difference / (2 * both)
        t = math.copysign(1.0, z) / (abs(z) + math.hypot(1.0, z))
        c = 1 / math.hypot(1.0, t)
        s = c * t
        p, q, v, w = c * p - s * q, s * p + c * q, c * v - s * w, s * v + c * w
    return (p, q, v, w) if (p * p).sum() >= (q * q).sum() else (q, p, w, v)


def svd_2(m: Any) -> Any:
    a, b = m
    size = max(abs(a).max(), abs(b).max())
    p, q = transpose((a / (size + (size == 0)), b / (size + (size == 0))))
    zero = 0 * p.x
    v, w = vec(zero + 1, zero), vec(zero, zero + 1)
    for _ in range(2):
        p, q, v, w = rotated(p, q, v, w)
    x: Any = p / norm(p) if size > 0 else v
    y: Any = vec(-x.y, x.x)
    y = y if (y * q).sum() >= 0 else -y
    return transpose((x, y)), vec(norm(p), norm(q)) * size, (v, w)


def orthogonal(x: Any) -> Any:
    """Return a vector of length 1 that is orthogonal to one of length 1."""
    least = min(abs(x.x), abs(x.y), abs(x.z))
    y = vec(0 * x.x, -x.z, x.y) if abs(x.x) == least else vec(-x.y, x.x, 0 * x.x)
    y = vec(x.z, 0 * x.x, -x.x) if abs(x.y) == least else y
    return y / norm(y)


def svd_3(m: Any) -> Any:
    a, b, c = m
    size = max(abs(a).max(), abs(b).max(), abs(c).max())
    unit = size + (size == 0)
    p, q, r = transpose((a / unit, b / unit, c / unit))
    zero = 0 * p.x
    u, v, w = vec(zero + 1, zero, zero), vec(zero, zero + 1, zero), vec(zero, zero, zero + 1)
    for _ in range(6):
        p, q, u, v = rotated(p, q, u, v)
        p, r, u, w = rotated(p, r, u, w)
        q, r, v, w = rotated(q, r, v, w)
    one, two, three = norm(p), norm(q), norm(r)
    x = p / one if size > 0 else u
    y = orthogonal(x)
    if two > _SMALL * one:
        y = q - (q * x).sum() * x
        y = y / norm(y)
    z = cross(x, y)
    z = z if (z * r).sum() >= 0 else -z
    return transpose((x, y, z)), vec(one, two, three) * size, (u, v, w)


def svd(m: Any) -> Any:
    return svd_2(m) if len(m) == 2 else svd_3(m)
