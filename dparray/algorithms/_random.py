"""Random numbers from the counter-based generator Philox-4x32-10."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dparray._array import ndarray
from dparray._creation import empty
from dparray._manipulation import reshape
from dparray.algorithms._ranges import kernel_of, rounded
from dparray.exceptions import DTypeError
from dparray.kernel import call_kernel, device_func
from dparray.kernel_api import Range
from dparray.kernels.philox import (
    make_bits_kernel,
    make_normal_kernel,
    make_uniform_kernel,
    philox,
)

if TYPE_CHECKING:
    import dpctl

__all__ = ["philox_bits", "philox_normal", "philox_uniform"]

_BLOCK = device_func(philox)
_WORD_MASK = (1 << 64) - 1
_BLOCK_BYTES = 16


def philox_bits(
    shape: int | Sequence[int],
    seed: int,
    *,
    counter: int = 0,
    stream: int = 0,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """Random words of 32 bits, as the paper's reference implementation gives them.

    Args:
        shape: extents of the result.
        seed: the key, 64 bits. Seeds give sequences that have nothing to do with each other.
        counter: the block of four words to start with, 64 bits: block c gives the elements from
            ``4 * c`` on, so long sequences can be made piece by piece.
        stream: the high 64 bits of the counter: further sequences of one seed.
        device, usm_type, sycl_queue: where the result is, as for ``dp.empty``.

    Returns:
        A uint32 array of ``shape``. The same arguments give the same words on every device.

    Raises:
        ShapeError, DeviceError, UsmTypeError: as ``dp.empty``.
        TypeError: ``seed``, ``counter`` or ``stream`` is no integer.

    Placement: a creation function: runs on the named queue, or on the default device's.

    Example:
        >>> import dparray as dp
        >>> from dparray.algorithms import philox_bits
        >>> [hex(word) for word in dp.asnumpy(philox_bits(2, seed=0)).tolist()]
        ['0x6627e8d5', '0xe169c58d']
    """
    where = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
    return _random(shape, np.uint32, where, make_bits_kernel, (), (seed, counter, stream), ())


def philox_uniform(
    shape: int | Sequence[int],
    seed: int,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: Any = "float32",
    counter: int = 0,
    stream: int = 0,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """Random reals, uniformly distributed in ``[low, high)``.

    Args:
        shape, seed, stream, device, usm_type, sycl_queue: as for :func:`philox_bits`.
        low, high: the bounds. (Rounding may give ``high`` itself when it is large against the
            width, as with NumPy.)
        dtype: ``float32`` (24 random bits, four elements in a block) or ``float64`` (53, two).
        counter: the block to start with.

    Returns:
        An array of ``shape`` and ``dtype``.

    Raises:
        DTypeError: ``dtype`` is neither float32 nor float64.
        UnsupportedDeviceError: ``dtype`` is float64 and the device has none.
        As :func:`philox_bits` otherwise.

    Placement: as :func:`philox_bits`.

    Example:
        >>> from dparray.algorithms import philox_uniform
        >>> x = philox_uniform((2, 3), seed=1)
        >>> x.shape, x.dtype
        ((2, 3), dtype('float32'))
    """
    where = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
    scalar = _real("philox_uniform", dtype)
    parameters = (scalar(low), scalar(high) - scalar(low))
    key = (scalar, 8 * scalar(0).itemsize)
    start = (seed, counter, stream)
    return _random(shape, scalar, where, make_uniform_kernel, key, start, parameters)


def philox_normal(
    shape: int | Sequence[int],
    seed: int,
    mean: float = 0.0,
    deviation: float = 1.0,
    *,
    dtype: Any = "float32",
    counter: int = 0,
    stream: int = 0,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: dpctl.SyclQueue | None = None,
) -> ndarray:
    """Random reals, normally distributed.

    Args:
        shape, seed, stream, device, usm_type, sycl_queue: as for :func:`philox_bits`.
        mean, deviation: of the distribution.
        dtype: ``float32`` (four elements in a block) or ``float64`` (two).
        counter: the block to start with.

    Returns:
        An array of ``shape`` and ``dtype``. Its last bits depend on the device's ``log``, ``sin``
        and ``cos``.

    Raises: as :func:`philox_uniform`.

    Placement: as :func:`philox_bits`.

    Example:
        >>> from dparray.algorithms import philox_normal
        >>> philox_normal(4, seed=1, dtype="float64").dtype
        dtype('float64')
    """
    where = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
    scalar = _real("philox_normal", dtype)
    parameters = (scalar(mean), scalar(deviation))
    start = (seed, counter, stream)
    return _random(shape, scalar, where, make_normal_kernel, (scalar,), start, parameters)


def _real(function: str, dtype: Any) -> Any:
    given = np.dtype(dtype)
    if given not in (np.float32, np.float64):
        raise DTypeError(f"{function}: dtype must be float32 or float64; got {given}")
    return given.type


def _random(
    shape: int | Sequence[int],
    dtype: Any,
    where: dict[str, Any],
    factory: Callable[..., Callable[..., None]],
    key: tuple[Any, ...],
    start: tuple[int, int, int],
    parameters: tuple[Any, ...],
) -> ndarray:
    extents = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    size = math.prod(extents)
    per_block = _BLOCK_BYTES // np.dtype(dtype).itemsize
    blocks = rounded(-(-size // per_block))
    # Kernels write whole blocks; the result is a view of as much as was asked for.
    whole = empty(blocks * per_block, dtype, **where)
    if size > 0:
        seed, counter, stream = (np.uint64(number & _WORD_MASK) for number in start)
        random = kernel_of(factory, _BLOCK, *key)
        call_kernel(random, Range(blocks), whole, counter, stream, seed, *parameters)
    return reshape(whole[:size], extents)
