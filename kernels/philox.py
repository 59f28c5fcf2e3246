"""Random numbers: the counter-based generator Philox-4x32-10.

J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011). The
four words of a block depend only on a 128-bit counter and a 64-bit key. A work-item computes the
blocks of its own index, so the numbers do not depend on the device, the range or the division of
the work. Any number can be computed without those before it.

Outputs hold whole blocks: a bounds check in every item would turn consecutive stores into scattered
ones, and the kernel would take five times as long. Integers are converted to reals from signed
types, because that is faster.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from numpy import int32, int64, uint32, uint64

__all__ = ["make_bits_kernel", "make_normal_kernel", "make_uniform_kernel", "philox"]

_LOW = uint64(0xFFFFFFFF)
_WORD = uint64(32)
_MULTIPLIER_0 = uint64(0xD2511F53)
_MULTIPLIER_1 = uint64(0xCD9E8D57)
_WEYL_0 = uint64(0x9E3779B9)
_WEYL_1 = uint64(0xBB67AE85)
_ROUNDS = 10


def philox(counter: Any, stream: Any, key: Any) -> tuple[Any, Any, Any, Any]:
    """Compute one block: four words of 32 bits, each in a uint64.

    ``counter`` gives the low 64 bits of the 128-bit counter, ``stream`` the high ones, and ``key``
    the 64-bit key, all uint64. Plain Python; the host makes a device function of it.
    """
    c0 = counter & _LOW
    c1 = counter >> _WORD
    c2 = stream & _LOW
    c3 = stream >> _WORD
    k0 = key & _LOW
    k1 = key >> _WORD
    for _ in range(_ROUNDS):
        product_0 = _MULTIPLIER_0 * c0
        product_1 = _MULTIPLIER_1 * c2
        c0 = (product_1 >> _WORD) ^ c1 ^ k0
        c1 = product_1 & _LOW
        c2 = (product_0 >> _WORD) ^ c3 ^ k1
        c3 = product_0 & _LOW
        k0 = (k0 + _WEYL_0) & _LOW
        k1 = (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@functools.cache
def make_bits_kernel(block: Callable[..., Any]) -> Callable[..., None]:
    """Generate random words of 32 bits.

    Launch over a ``Range`` of ``blocks`` items.

    Args:
        block: ``philox`` as a device function.

    Kernel parameters:
        out (4 * blocks,): output of uint32.
        counter, stream, key: uint64, of the first block.
    """

    def bits(item: Any, out: Any, counter: Any, stream: Any, key: Any) -> None:
        i = item.get_id(0)
        w0, w1, w2, w3 = block(counter + uint64(i), stream, key)
        first = 4 * i
        out[first] = uint32(w0)
        out[first + 1] = uint32(w1)
        out[first + 2] = uint32(w2)
        out[first + 3] = uint32(w3)

    return bits


@functools.cache
def make_uniform_kernel(block: Callable[..., Any], dtype: type, bits: int) -> Callable[..., None]:
    """Generate random reals in [low, low + width).

    Launch over a ``Range`` of ``blocks`` items.

    Args:
        block: ``philox`` as a device function.
        dtype: ``float32`` or ``float64``.
        bits: 32 for each number, of which 24 are used, or 64, of which 53 are.

    Kernel parameters:
        out (blocks * 128 / bits,): output of ``dtype``.
        counter, stream, key: uint64, of the first block.
        low, width: scalars of ``dtype``.
    """
    step_24 = dtype(2.0**-24)
    step_53 = dtype(2.0**-53)
    shift_24 = uint64(8)
    shift_53 = uint64(11)

    def uniform_32(
        item: Any, out: Any, counter: Any, stream: Any, key: Any, low: Any, width: Any
    ) -> None:
        i = item.get_id(0)
        w0, w1, w2, w3 = block(counter + uint64(i), stream, key)
        first = 4 * i
        out[first] = low + width * (dtype(int32(w0 >> shift_24)) * step_24)
        out[first + 1] = low + width * (dtype(int32(w1 >> shift_24)) * step_24)
        out[first + 2] = low + width * (dtype(int32(w2 >> shift_24)) * step_24)
        out[first + 3] = low + width * (dtype(int32(w3 >> shift_24)) * step_24)

    def uniform_64(
        item: Any, out: Any, counter: Any, stream: Any, key: Any, low: Any, width: Any
    ) -> None:
        i = item.get_id(0)
        w0, w1, w2, w3 = block(counter + uint64(i), stream, key)
        first = 2 * i
        u0 = dtype(int64(((w1 << _WORD) | w0) >> shift_53)) * step_53
        out[first] = low + width * u0
        u1 = dtype(int64(((w3 << _WORD) | w2) >> shift_53)) * step_53
        out[first + 1] = low + width * u1

    return uniform_32 if bits == 32 else uniform_64


@functools.cache
def make_normal_kernel(block: Callable[..., Any], dtype: type) -> Callable[..., None]:
    """Generate normally distributed reals, two from two uniform ones.

    G. Box and M. Muller, "A Note on the Generation of Random Normal Deviates" (1958). A block gives
    four float32 or two float64.

    Launch over a ``Range`` of ``blocks`` items.

    Args:
        block: ``philox`` as a device function.
        dtype: ``float32`` or ``float64``.

    Kernel parameters:
        out (4 * blocks,) of float32 or (2 * blocks,) of float64: output.
        counter, stream, key: uint64, of the first block.
        mean, deviation: scalars of ``dtype``.
    """
    step_24 = dtype(2.0**-24)
    step_53 = dtype(2.0**-53)
    shift_24 = uint64(8)
    shift_53 = uint64(11)
    one = dtype(1)
    minus_two = dtype(-2)
    full_turn = dtype(2 * math.pi)

    def normal_32(
        item: Any, out: Any, counter: Any, stream: Any, key: Any, mean: Any, deviation: Any
    ) -> None:
        i = item.get_id(0)
        w0, w1, w2, w3 = block(counter + uint64(i), stream, key)
        first = 4 * i
        # One minus a number in [0, 1) is in (0, 1], where the logarithm is finite.
        radius = deviation * math.sqrt(
            minus_two * math.log(one - dtype(int32(w0 >> shift_24)) * step_24)
        )
        angle = full_turn * (dtype(int32(w1 >> shift_24)) * step_24)
        out[first] = mean + radius * math.cos(angle)
        out[first + 1] = mean + radius * math.sin(angle)
        radius = deviation * math.sqrt(
            minus_two * math.log(one - dtype(int32(w2 >> shift_24)) * step_24)
        )
        angle = full_turn * (dtype(int32(w3 >> shift_24)) * step_24)
        out[first + 2] = mean + radius * math.cos(angle)
        out[first + 3] = mean + radius * math.sin(angle)

    def normal_64(
        item: Any, out: Any, counter: Any, stream: Any, key: Any, mean: Any, deviation: Any
    ) -> None:
        i = item.get_id(0)
        w0, w1, w2, w3 = block(counter + uint64(i), stream, key)
        first = 2 * i
        u0 = dtype(int64(((w1 << _WORD) | w0) >> shift_53)) * step_53
        u1 = dtype(int64(((w3 << _WORD) | w2) >> shift_53)) * step_53
        radius = deviation * math.sqrt(minus_two * math.log(one - u0))
        out[first] = mean + radius * math.cos(full_turn * u1)
        out[first + 1] = mean + radius * math.sin(full_turn * u1)

    return normal_64 if dtype(0).itemsize == 8 else normal_32
