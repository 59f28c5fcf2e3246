"""Exponentials of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array.apply import astype_array
from dparray._array.ndarray import ndarray
from dparray.linalg.operands import compute, default_float, matrices

__all__ = ["expm"]

# The coefficients of the numerators of diagonal Pade approximants of exp, and the largest 1-norm
# for which their backward error is below the unit roundoff (Higham, SIAM J. Matrix Anal. Appl. 26,
# 2005). The denominators have the same coefficients with alternating signs.
_SINGLE = (3.925724783138660, (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1))
_DOUBLE = (
    5.371920351148152,
    (
        *(64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800),
        *(129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920),
        *(40840800, 960960, 16380, 182, 1),
    ),
)


def expm(x: Any, /) -> ndarray:
    """Return the exponentials of square matrices, by scaling, a Pade approximant and squaring.

    Args:
        x: matrices of shape (..., M, M). Integers become floats.

    Returns:
        The sums of ``x ** n / n!`` with matrix powers, which ``dp.exp`` is not.

    Norms decide how often a matrix is squared, so the queue is waited for.

    Raises:
        DTypeError: ``x`` is float16.
        ShapeError: the matrices are not square.

    Example:
        >>> turned = dp.linalg.expm(dp.asarray([[0.0, dp.pi / 2], [-dp.pi / 2, 0.0]]))
        >>> turned.asnumpy().round(6).tolist()
        [[0.0, 1.0], [-1.0, 0.0]]
    """
    x = matrices("expm", "x", x)
    if x.dtype.kind not in "fc":
        x = astype_array(x, default_float(x))
    return compute("expm", (("x", x),), _exponential)


def _exponential(xp: Any, a: Any) -> Any:
    """Return the exponentials of the arrays of NumPy or of a device's library."""
    if not a.size:
        return a.copy()
    limit, numbers = _SINGLE if a.dtype.char in "fF" else _DOUBLE
    coefficients = [each / numbers[0] for each in numbers]  # makes exp(0) exactly 1
    norms = np.asarray(_on_host(xp, abs(a).sum(axis=-2).max(axis=-1)), np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        halvings = np.ceil(np.log2(norms / limit))
    halvings = np.where(np.isfinite(halvings), np.maximum(halvings, 0), 0).astype(np.int64)
    factors = xp.asarray(np.exp2(-halvings.astype(np.float64)), dtype=a.real.dtype)
    a = a * factors[..., None, None]
    square = xp.matmul(a, a)
    unit = xp.broadcast_to(xp.asarray(np.eye(a.shape[-1]), dtype=a.dtype), a.shape)
    power, odd, even = square, coefficients[1] * unit, unit
    for number in range(2, len(coefficients), 2):
        power = square if number == 2 else xp.matmul(power, square)
        even = even + coefficients[number] * power
        if number + 1 < len(coefficients):
            odd = odd + coefficients[number + 1] * power
    odd = xp.matmul(a, odd)
    result = xp.linalg.solve(even - odd, even + odd)
    for step in range(int(halvings.max())):
        goes_on = xp.asarray(halvings > step)
        result = xp.where(goes_on[..., None, None], xp.matmul(result, result), result)
    return result


def _on_host(xp: Any, values: Any) -> Any:
    return values if xp is np else xp.asnumpy(values)
