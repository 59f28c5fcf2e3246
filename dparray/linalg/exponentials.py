"""Exponentials of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array.apply import astype_array
from dparray._array.ndarray import ndarray
from dparray.linalg.operands import compute, default_float, matrices
from dparray.memory.libraries.dpnp import dpnp

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
        >>> import dparray as dp
        >>> turned = dp.linalg.expm(dp.asarray([[0.0, dp.pi / 2], [-dp.pi / 2, 0.0]]))
        >>> turned.asnumpy().round(6).tolist()
        [[0.0, 1.0], [-1.0, 0.0]]
    """
    x = matrices("expm", "x", x)
    if x.dtype.kind not in "fc":
        x = astype_array(x, default_float(x))
    return compute(
        "expm", lambda a: _exponential(np, a), lambda a: _exponential(dpnp, a), (("x", x),)
    )


def _exponential(xp: Any, a: Any) -> Any:
    """Return the exponentials of arrays of NumPy's or dpnp's."""
    if not a.size:
        return a.copy()
    limit, numbers = _SINGLE if a.dtype.char in "fF" else _DOUBLE
    coefficients = [each / numbers[0] for each in numbers]  # so that exp(0) is exactly 1
    norms = np.asarray(_on_host(abs(a).sum(axis=-2).max(axis=-1)), np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        halvings = np.ceil(np.log2(norms / limit))
    halvings = np.where(np.isfinite(halvings), np.maximum(halvings, 0), 0).astype(np.int64)
    factors = _on_device(xp, np.exp2(-halvings.astype(np.float64)), a, a.real.dtype)
    a = a * factors[..., None, None]
    square = a @ a
    unit = xp.broadcast_to(_on_device(xp, np.eye(a.shape[-1]), a, a.dtype), a.shape)
    power, odd, even = square, coefficients[1] * unit, unit
    for number in range(2, len(coefficients), 2):
        power = square if number == 2 else power @ square
        even = even + coefficients[number] * power
        if number + 1 < len(coefficients):
            odd = odd + coefficients[number + 1] * power
    odd = a @ odd
    result = xp.linalg.solve(even - odd, even + odd)
    for step in range(int(halvings.max())):
        goes_on = _on_device(xp, halvings > step, a, np.dtype(bool))
        result = xp.where(goes_on[..., None, None], result @ result, result)
    return result


def _on_host(values: Any) -> Any:
    return values if isinstance(values, np.ndarray | np.generic) else values.asnumpy()


def _on_device(xp: Any, values: Any, like: Any, dtype: Any) -> Any:
    if xp is np:
        return np.asarray(values, dtype)
    return xp.asarray(values, dtype=dtype, sycl_queue=like.sycl_queue, usm_type=like.usm_type)
