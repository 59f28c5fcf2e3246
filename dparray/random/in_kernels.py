"""Random numbers in kernels: functions of a seed and an index, without a state to keep."""

from __future__ import annotations

import math
from typing import Any

from numpy import float32, float64, int32, int64, uint32, uint64

from dparray._kernel.decorators import device_func
from dparray.kernels.philox import philox

__all__ = [
    "philox_normal_float32",
    "philox_normal_float64",
    "philox_uint32",
    "philox_uint64",
    "philox_uniform_float32",
    "philox_uniform_float64",
]

_block = device_func(philox)
_STREAM = uint64(0)
_WORD = uint64(32)
_SHIFT_32 = uint64(8)
_SHIFT_64 = uint64(11)
_STEP_32 = float32(2.0**-24)
_STEP_64 = float64(2.0**-53)
_ONE = float32(1)
_MINUS_TWO = float32(-2)
_FULL_TURN = float32(2 * math.pi)


@device_func
def philox_uint32(seed: Any, index: Any) -> Any:
    """Return a random uint32 in a kernel.

    Args:
        seed: an integer, the same in all work-items.
        index: an integer that selects the number: equal seeds and indices give the same one, on
            every device. Use another index for each number, as ``i * count + k`` for the k-th of
            work-item i.

    Example:
        >>> @dp.kernel
        ... def fill(item, out, seed):
        ...     i = item.get_id(0)
        ...     out[i] = dp.random.philox_uint32(seed, i) % 6 + 1
        >>> dice = dp.empty(1000, dtype="int64")
        >>> event = fill[1000](dice, 42)
        >>> dice.min().item(), dice.max().item()
        (1, 6)
    """
    word, _, _, _ = _block(uint64(index), _STREAM, uint64(seed))
    return uint32(word)


@device_func
def philox_uint64(seed: Any, index: Any) -> Any:
    """Return a random uint64 in a kernel.

    Args:
        seed, index: see :func:`philox_uint32`.

    Example:
        >>> @dp.kernel
        ... def fill(item, out):
        ...     i = item.get_id(0)
        ...     out[i] = dp.random.philox_uint64(0, i)
        >>> words = dp.empty(1000, dtype="uint64")
        >>> event = fill[1000](words)
        >>> dp.unique(words).size
        1000
    """
    low, high, _, _ = _block(uint64(index), _STREAM, uint64(seed))
    return (high << _WORD) | low


@device_func
def philox_uniform_float32(seed: Any, index: Any) -> Any:
    """Return a random float32 in [0, 1) in a kernel, a multiple of 2**-24.

    Args:
        seed, index: see :func:`philox_uint32`.

    Example:
        >>> @dp.kernel
        ... def fill(item, out):
        ...     i = item.get_id(0)
        ...     out[i] = dp.random.philox_uniform_float32(0, i)
        >>> x = dp.empty(1000, dtype="float32")
        >>> event = fill[1000](x)
        >>> bool(x.min() >= 0 and x.max() < 1)
        True
    """
    word, _, _, _ = _block(uint64(index), _STREAM, uint64(seed))
    return float32(int32(word >> _SHIFT_32)) * _STEP_32


@device_func
def philox_uniform_float64(seed: Any, index: Any) -> Any:
    """Return a random float64 in [0, 1) in a kernel, a multiple of 2**-53.

    Args:
        seed, index: see :func:`philox_uint32`.

    Example:
        Estimate pi from random points of the unit square.

        >>> @dp.kernel
        ... def in_circle(item, out, seed):
        ...     i = item.get_id(0)
        ...     x = dp.random.philox_uniform_float64(seed, 2 * i)
        ...     y = dp.random.philox_uniform_float64(seed, 2 * i + 1)
        ...     out[i] = x * x + y * y < 1
        >>> inside = dp.empty(100_000, dtype=bool)
        >>> event = in_circle[100_000](inside, 7)
        >>> round(4 * inside.mean().item(), 1)
        3.1
    """
    low, high, _, _ = _block(uint64(index), _STREAM, uint64(seed))
    return float64(int64(((high << _WORD) | low) >> _SHIFT_64)) * _STEP_64


@device_func
def philox_normal_float32(seed: Any, index: Any) -> Any:
    """Return a normally distributed float32 with mean 0 and variance 1 in a kernel.

    Args:
        seed, index: see :func:`philox_uint32`.

    Example:
        >>> import numpy as np
        >>> @dp.kernel
        ... def walk(item, ends, seed, steps):
        ...     i = item.get_id(0)
        ...     at = np.float32(0)
        ...     for k in range(steps):
        ...         at += dp.random.philox_normal_float32(seed, i * steps + k)
        ...     ends[i] = at
        >>> ends = dp.empty(10_000, dtype="float32")
        >>> event = walk[10_000](ends, 3, 16)
        >>> round(ends.std().item())
        4
    """
    w0, w1, _, _ = _block(uint64(index), _STREAM, uint64(seed))
    # One minus a number in [0, 1) is in (0, 1], where the logarithm is finite.
    radius = math.sqrt(_MINUS_TWO * math.log(_ONE - float32(int32(w0 >> _SHIFT_32)) * _STEP_32))
    return radius * math.cos(_FULL_TURN * (float32(int32(w1 >> _SHIFT_32)) * _STEP_32))


@device_func
def philox_normal_float64(seed: Any, index: Any) -> Any:
    """Return a normally distributed float64 with mean 0 and variance 1 in a kernel.

    Args:
        seed, index: see :func:`philox_uint32`.

    Example:
        >>> @dp.kernel
        ... def fill(item, out, seed):
        ...     i = item.get_id(0)
        ...     out[i] = dp.random.philox_normal_float64(seed, i)
        >>> x = dp.empty(10_000)
        >>> event = fill[10_000](x, 3)
        >>> abs(round(x.mean().item(), 1)), round(x.std().item(), 1)
        (0.0, 1.0)
    """
    w0, w1, w2, w3 = _block(uint64(index), _STREAM, uint64(seed))
    first = float64(int64(((w1 << _WORD) | w0) >> _SHIFT_64)) * _STEP_64
    second = float64(int64(((w3 << _WORD) | w2) >> _SHIFT_64)) * _STEP_64
    return math.sqrt(-2.0 * math.log(1.0 - first)) * math.cos(2.0 * math.pi * second)
