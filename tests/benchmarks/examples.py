"""Worked examples: array functions around handwritten kernels, meant for reading.

They look like a user's module: a function makes the result, chooses the range and launches a kernel
of ``dparray.kernels``. The benchmarks time them. The library does not use them: for products there
is :func:`dparray.matmul`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

import dparray as dp
from dparray.kernels.elementwise import make_black_scholes_kernel, make_mandelbrot_kernel
from dparray.kernels.matrix import make_matmul_kernel, make_transpose_kernel
from dparray.kernels.nbody import make_acceleration_kernel

# Rows of a product that a work-item keeps in registers, and columns of `a` in local memory.
_ROWS = 16
_DEPTH = 64
_LANES = 128
# The side of a tile of `transpose`. Several groups then share the local memory of a compute unit.
_SIDE = 32


@cache
def _kernel(make: Callable[..., Any], *arguments: Any) -> Any:
    """Return a kernel of a factory, always the same object, which keeps its compiled forms."""
    return dp.kernel(make(*arguments))


def nbody_acceleration(position: Any, mass: Any, softening: float) -> Any:
    """Return the acceleration of each body by the gravitation of all others.

    Body ``i`` gets the sum over ``j`` of ``mass[j] * d / (|d|**2 + softening**2)**1.5`` with ``d =
    position[j] - position[i]``. ``position`` has the shape ``(n, 3)``.
    """
    result = dp.empty_like(position)
    kernel = _kernel(make_acceleration_kernel, mass.dtype.type)
    index_space = dp.NdRange(-(-mass.size // _LANES) * _LANES, _LANES)
    tile = dp.LocalAccessor((4, _LANES), mass.dtype)
    dp.call_kernel(kernel, index_space, position, mass, result, tile, mass.dtype.type(softening**2))
    return result


def black_scholes(price: Any, strike: Any, years: Any, rate: float, volatility: float) -> Any:
    """Return the prices of European call and put options by the formula of Black and Scholes.

    The arrays have the same shape. ``rate`` and ``volatility`` are per year.
    """
    call, put = (dp.empty(price.size, dtype=price.dtype, device=price.device) for _ in range(2))
    number = price.dtype.type
    kernel = _kernel(make_black_scholes_kernel, number)
    flat = [x.reshape(-1) for x in (price, strike, years)]
    dp.call_kernel(kernel, dp.Range(call.size), *flat, call, put, number(rate), number(volatility))
    return call.reshape(price.shape), put.reshape(price.shape)


def mandelbrot(
    shape: tuple[int, int],
    *,
    left: float = -2.0,
    top: float = 1.25,
    step: float = 0.005,
    limit: int = 100,
    dtype: str = "float32",
    device: Any = None,
) -> Any:
    """Count the iterations for which points stay near 0 under ``z -> z*z + c``, at most ``limit``.

    The element ``[0, 0]`` belongs to the point ``left + top * 1j``; neighbors have the distance
    ``step``, and the imaginary part falls with the row.
    """
    result = dp.empty(shape, dtype="int32", device=device)
    number = np.dtype(dtype).type
    numbers = map(number, (left, top, step))
    kernel = _kernel(make_mandelbrot_kernel, number)
    dp.call_kernel(kernel, dp.Range.like(result), result, *numbers, limit)
    return result


def matmul(a: Any, b: Any) -> Any:
    """Return the matrix product of stacks of matrices, by tiles in local memory.

    `dp.matmul` uses the vendor's library, which is faster; this kernel is the same on every device
    and for every real dtype.
    """
    (m, k), n = a.shape[-2:], b.shape[-1]
    leading = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    stack = prod(leading)
    a = dp.broadcast_to(a, (*leading, m, k)).reshape(stack, m, k)
    b = dp.broadcast_to(b, (*leading, k, n)).reshape(stack, k, n)
    result = dp.empty((stack, m, n), dtype=a.dtype, device=a.device)
    if result.size:
        kernel = _kernel(make_matmul_kernel, _ROWS, _DEPTH, a.dtype.type)
        tiles = stack * -(-m // _ROWS) * -(-n // _LANES)
        index_space = dp.NdRange(tiles * _LANES, _LANES)
        part = dp.LocalAccessor(_ROWS * _DEPTH, a.dtype)
        dp.call_kernel(kernel, index_space, a, b, result, part)
    return result.reshape(*leading, m, n)


def transpose(x: Any) -> Any:
    """Return a C-contiguous copy with the last two axes exchanged, made by tiles in local memory.

    It reads and writes memory in long contiguous chunks. `dp.permute_dims` gives a view instead.
    """
    *leading, m, n = x.shape
    stack = prod(leading)
    result = dp.empty((stack, n, m), dtype=x.dtype, device=x.device)
    if result.size:
        kernel = _kernel(make_transpose_kernel, _SIDE, 1, x.dtype.type)
        size = stack * -(-m // _SIDE), -(-n // _SIDE) * _SIDE
        index_space = dp.NdRange(size, (1, _SIDE))
        tile = dp.LocalAccessor(_SIDE * (_SIDE + 1), x.dtype)
        flat = x.reshape(-1), result.reshape(-1)
        dp.call_kernel(kernel, index_space, *flat, tile, m, n)
    return result.reshape(*leading, n, m)
