"""Random numbers from the counter-based generator Philox-4x32-10."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array import fastpath
from dparray._array.allocation import chosen_placement, empty_on, is_made_by_host
from dparray._array.ndarray import ndarray
from dparray._driver.interface import Queue
from dparray._kernel.decorators import device_func
from dparray._kernel.launch import call_kernel
from dparray._layout import check_shape
from dparray.algorithms.ranges import kernel_of, real_number, whole_number
from dparray.algorithms.work_sizes import rounded_up
from dparray.exceptions import ArgumentError, DTypeError
from dparray.kernel_api import Range
from dparray.kernels.philox import make_bits_kernel, make_normal_kernel, make_uniform_kernel, philox

__all__ = ["philox_bits", "philox_normal", "philox_uniform"]

_BLOCK = device_func(philox)
_LARGEST_WORD = (1 << 64) - 1
_BLOCK_BYTES = 16


def philox_bits(
    shape: int | Sequence[int],
    seed: int,
    *,
    counter: int = 0,
    stream: int = 0,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Generate 32-bit random words, as the reference implementation in the paper does.

    Args:
        shape: the shape of the result.
        seed: the key, from 0 to ``2**64 - 1``. Different seeds give independent sequences.
        counter: the first block of four words, from 0 to ``2**64 - 1``. Block c gives the elements
            from ``4 * c`` on, so long sequences can be generated piece by piece. Block 0 follows
            the last block.
        stream: the high 64 bits of the counter, with the same limits: more sequences for one seed.
        device, usm_type, sycl_queue: the placement of the result, as for ``dp.empty``.

    Returns:
        A uint32 array of ``shape``. The same arguments give the same words on every device.

    Raises:
        ShapeError, DeviceError, UsmTypeError: see ``dp.empty``.
        ArgumentError: ``seed``, ``counter`` or ``stream`` is not an integer within its limits.

    Placement: a creation function: runs on the given queue, or on that of the default device.

    Example:
        >>> from dparray.algorithms import philox_bits
        >>> [hex(word) for word in dp.asnumpy(philox_bits(2, seed=0)).tolist()]
        ['0x6627e8d5', '0xe169c58d']
    """
    where = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
    start = _start("philox_bits", seed, counter, stream)
    return _random(shape, np.uint32, where, make_bits_kernel, (), start, ())


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
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Generate random floats, uniformly distributed in ``[low, high)``.

    Args:
        shape, seed, stream, device, usm_type, sycl_queue: see :func:`philox_bits`.
        low, high: the bounds. As in NumPy, rounding may give ``high`` itself if it is large
            compared with the width.
        dtype: ``float32`` (24 random bits, four elements per block) or ``float64`` (53 bits, two
            elements).
        counter: the first block.

    Returns:
        An array of ``shape`` and ``dtype``.

    Raises:
        DTypeError: ``dtype`` is neither float32 nor float64.
        ArgumentError: the bounds are not numbers, are in decreasing order, or have no finite
            difference in ``dtype``.
        UnsupportedDeviceError: ``dtype`` is float64 and the device does not support it.
        DparrayError: any other error of :func:`philox_bits`.

    Placement: see :func:`philox_bits`.

    Example:
        >>> from dparray.algorithms import philox_uniform
        >>> x = philox_uniform((2, 3), seed=1)
        >>> x.shape, x.dtype
        ((2, 3), dtype('float32'))
    """
    where = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
    scalar = _real("philox_uniform", dtype)
    bounds = real_number("philox_uniform", "low", low), real_number("philox_uniform", "high", high)
    with np.errstate(over="ignore", invalid="ignore"):
        first, width = scalar(bounds[0]), scalar(bounds[1]) - scalar(bounds[0])
    if not 0 <= width < np.inf:
        raise ArgumentError(
            f"philox_uniform: low must not exceed high, and their difference must be finite in "
            f"{np.dtype(scalar)}; got {low!r} and {high!r}"
        )
    key = (scalar, 8 * scalar(0).itemsize)
    start = _start("philox_uniform", seed, counter, stream)
    parameters = (first, width)
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
    sycl_queue: Queue | None = None,
) -> ndarray:
    """Generate random floats that are normally distributed.

    Args:
        shape, seed, stream, device, usm_type, sycl_queue: see :func:`philox_bits`.
        mean, deviation: the mean and the standard deviation.
        dtype: ``float32`` (four elements per block) or ``float64`` (two).
        counter: the first block.

    Returns:
        An array of ``shape`` and ``dtype``. Its last bits depend on the device's ``log``, ``sin``
        and ``cos``.

    Raises:
        ArgumentError: ``deviation`` is negative or NaN, or one of the two is not a number.
        DparrayError: any other error of :func:`philox_uniform`.

    Placement: see :func:`philox_bits`.

    Example:
        >>> from dparray.algorithms import philox_normal
        >>> philox_normal(4, seed=1, dtype="float64").dtype
        dtype('float64')
    """
    where = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
    scalar = _real("philox_normal", dtype)
    if not real_number("philox_normal", "deviation", deviation) >= 0:
        raise ArgumentError(f"philox_normal: deviation must not be negative; got {deviation!r}")
    parameters = (scalar(real_number("philox_normal", "mean", mean)), scalar(deviation))
    start = _start("philox_normal", seed, counter, stream)
    return _random(shape, scalar, where, make_normal_kernel, (scalar,), start, parameters)


def _real(function: str, dtype: Any) -> Any:
    given = _dtypes.as_dtype(dtype)
    if given not in (np.float32, np.float64):
        raise DTypeError(f"{function}: dtype must be float32 or float64; got {given}")
    return given.type


def _start(function: str, seed: Any, counter: Any, stream: Any) -> tuple[np.uint64, ...]:
    """Return the start of a sequence as kernel arguments: counter, stream, key."""
    named = (("counter", counter), ("stream", stream), ("seed", seed))
    return tuple(
        np.uint64(whole_number(function, name, value, 0, _LARGEST_WORD)) for name, value in named
    )


def _uniform(words: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Convert random words to numbers in [0, 1), exactly as the kernel does."""
    if dtype.itemsize == 4:
        return (words >> np.uint32(8)).astype(dtype) * dtype.type(2.0**-24)
    return (words.view(np.uint64) >> np.uint64(11)).astype(dtype) * 2.0**-53


def _normal(words: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Convert random words to normally distributed numbers, exactly as the kernel does."""
    numbers = _uniform(words, dtype)
    pairs = numbers.reshape(-1, 2)
    radius = np.sqrt(dtype.type(-2) * np.log(dtype.type(1) - pairs[:, 0]))
    angle = dtype.type(2 * math.pi) * pairs[:, 1]
    np.multiply(radius, np.cos(angle), pairs[:, 0])
    np.multiply(radius, np.sin(angle), pairs[:, 1])
    return numbers


#: The host function for short sequences that corresponds to each kernel, and the cost of a number
#: in element operations.
_BY_NUMPY: dict[Callable[..., Any], tuple[Callable[..., np.ndarray], int]] = {
    make_bits_kernel: (lambda words, dtype: words, 2),
    make_uniform_kernel: (_uniform, 4),
    make_normal_kernel: (_normal, 8),
}


def _random(
    shape: int | Sequence[int],
    dtype: Any,
    where: dict[str, Any],
    factory: Callable[..., Callable[..., None]],
    key: tuple[Any, ...],
    start: tuple[np.uint64, ...],
    parameters: tuple[Any, ...],
) -> ndarray:
    extents = check_shape(shape)
    size = math.prod(extents)
    per_block = _BLOCK_BYTES // np.dtype(dtype).itemsize
    blocks = -(-size // per_block)
    placement = chosen_placement(**where)
    by_numpy, weight = _BY_NUMPY[factory]
    # With other parameters a kernel may round once where NumPy rounds twice.
    is_plain = parameters in ((), (0, 1))
    if is_plain and fastpath.module is not None and is_made_by_host(weight * size, *placement):
        words = np.empty(4 * blocks, np.uint32)
        fastpath.module.philox_words(*map(int, start), words)
        made = by_numpy(words, np.dtype(dtype))[:size]
        return ndarray._from_host_value(np.array(made.reshape(extents)), *placement)
    blocks = rounded_up(blocks)
    # Kernels write whole blocks; the result is a view of the requested elements.
    whole = empty_on(placement, (blocks * per_block,), np.dtype(dtype))
    if size > 0:
        random = kernel_of(factory, _BLOCK, *key)
        call_kernel(random, Range(blocks), whole, *start, *parameters)
    result: ndarray = whole[:size].reshape(extents)
    return result
