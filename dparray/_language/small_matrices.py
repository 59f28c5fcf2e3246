"""Matrices in kernels: tuples of 2, 3 or 4 row vectors of that width.

``inv``, ``det``, ``transpose`` and ``matmul`` stand for NumPy's functions. The simulator runs them,
and the compiler takes the implementation for the number of rows.
"""

from __future__ import annotations

from typing import Any

from dparray.kernel_api import vec


def transpose_2(m: Any) -> Any:
    a, b = m
    return vec(a.x, b.x), vec(a.y, b.y)


def transpose_3(m: Any) -> Any:
    a, b, c = m
    return vec(a.x, b.x, c.x), vec(a.y, b.y, c.y), vec(a.z, b.z, c.z)


def transpose_4(m: Any) -> Any:
    a, b, c, d = m
    return (
        vec(a.x, b.x, c.x, d.x),
        vec(a.y, b.y, c.y, d.y),
        vec(a.z, b.z, c.z, d.z),
        vec(a.w, b.w, c.w, d.w),
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
    s0, s1, s2 = a.x * b.y - b.x * a.y, a.x * b.z - b.x * a.z, a.x * b.w - b.x * a.w
    s3, s4, s5 = a.y * b.z - b.y * a.z, a.y * b.w - b.y * a.w, a.z * b.w - b.z * a.w
    c0, c1, c2 = c.x * d.y - d.x * c.y, c.x * d.z - d.x * c.z, c.x * d.w - d.x * c.w
    c3, c4, c5 = c.y * d.z - d.y * c.z, c.y * d.w - d.y * c.w, c.z * d.w - d.z * c.w
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
    s0, s1, s2 = a.x * b.y - b.x * a.y, a.x * b.z - b.x * a.z, a.x * b.w - b.x * a.w
    s3, s4, s5 = a.y * b.z - b.y * a.z, a.y * b.w - b.y * a.w, a.z * b.w - b.z * a.w
    c0, c1, c2 = c.x * d.y - d.x * c.y, c.x * d.z - d.x * c.z, c.x * d.w - d.x * c.w
    c3, c4, c5 = c.y * d.z - d.y * c.z, c.y * d.w - d.y * c.w, c.z * d.w - d.z * c.w
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


def apply_2(m: Any, n: Any) -> Any:
    return vec((m[0] * n).sum(), (m[1] * n).sum())


def apply_3(m: Any, n: Any) -> Any:
    return vec((m[0] * n).sum(), (m[1] * n).sum(), (m[2] * n).sum())


def apply_4(m: Any, n: Any) -> Any:
    return vec((m[0] * n).sum(), (m[1] * n).sum(), (m[2] * n).sum(), (m[3] * n).sum())


def product_2(m: Any, n: Any) -> Any:
    a, b = m
    return a.x * n[0] + a.y * n[1], b.x * n[0] + b.y * n[1]


def product_3(m: Any, n: Any) -> Any:
    a, b, c = m
    return (
        a.x * n[0] + a.y * n[1] + a.z * n[2],
        b.x * n[0] + b.y * n[1] + b.z * n[2],
        c.x * n[0] + c.y * n[1] + c.z * n[2],
    )


def product_4(m: Any, n: Any) -> Any:
    a, b, c, d = m
    return (
        a.x * n[0] + a.y * n[1] + a.z * n[2] + a.w * n[3],
        b.x * n[0] + b.y * n[1] + b.z * n[2] + b.w * n[3],
        c.x * n[0] + c.y * n[1] + c.z * n[2] + c.w * n[3],
        d.x * n[0] + d.y * n[1] + d.z * n[2] + d.w * n[3],
    )


def inv(m: Any) -> Any:
    return inv_2(m) if len(m) == 2 else inv_3(m) if len(m) == 3 else inv_4(m)


def det(m: Any) -> Any:
    return det_2(m) if len(m) == 2 else det_3(m) if len(m) == 3 else det_4(m)


def transpose(m: Any) -> Any:
    if len(m) == 2:
        return transpose_2(m)
    return transpose_3(m) if len(m) == 3 else transpose_4(m)


def matmul(m: Any, n: Any) -> Any:
    if not isinstance(n, tuple):
        return apply_2(m, n) if len(m) == 2 else apply_3(m, n) if len(m) == 3 else apply_4(m, n)
    if len(m) == 2:
        return product_2(m, n)
    return product_3(m, n) if len(m) == 3 else product_4(m, n)
