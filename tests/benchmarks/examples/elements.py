"""A work-item for each element: option prices, and the Mandelbrot set."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement, check_usm_type, common_placement
from dparray.algorithms.ranges import kernel_of, real_number, whole_number
from dparray.algorithms.work_sizes import rounded_up
from dparray.device import queue_of
from dparray.exceptions import ArgumentError, DTypeError, ShapeError
from dparray.kernel_api import Range
from dparray.kernels.elementwise import (
    make_black_scholes_kernel,
    make_mandelbrot_kernel,
)

__all__ = ["black_scholes", "mandelbrot"]


def black_scholes(
    price: ndarray, strike: ndarray, years: ndarray, /, *, rate: float, volatility: float
) -> tuple[ndarray, ndarray]:
    """Return the prices of European call and put options by the formula of Black and Scholes.

    Args:
        price: of the underlying, positive; any shape, float32 or float64.
        strike: strike prices, positive, of the same shape and dtype.
        years: until expiry, positive, of the same shape and dtype.
        rate: of interest without risk, per year.
        volatility: standard deviation of the logarithm of the price, per year; positive.

    Returns:
        The prices of calls and of puts, of the same shape and dtype, on the queue of the arrays,
        with a USM type coerced from their USM types. Elements that are not positive
        give NaN or infinity.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes differ.
        DTypeError: the dtypes differ or are not of floating point.
        ValueError: ``volatility`` is not positive.

    Example:
        >>> from tests.benchmarks.examples import black_scholes
        >>> price, strike, years = (dp.asarray([v], dtype="float64") for v in (100, 100, 1))
        >>> call, put = black_scholes(price, strike, years, rate=0.05, volatility=0.2)
        >>> round(call.item(), 4), round(put.item(), 4)
        (10.4506, 5.5735)
    """
    name = "black_scholes"
    named = [
        (label, check_array(name, label, x))
        for label, x in (("price", price), ("strike", strike), ("years", years))
    ]
    placement = common_placement(name, named)
    shapes = [x.shape for _, x in named]
    if any(shape != shapes[0] for shape in shapes):
        raise ShapeError(f"{name}: price, strike and years must have one shape; got {shapes}")
    dtype = named[0][1].dtype
    if any(x.dtype != dtype for _, x in named) or dtype.name not in ("float32", "float64"):
        raise DTypeError(
            f"{name}: price, strike and years must all be float32 or all float64; got "
            f"{', '.join(x.dtype.name for _, x in named)}; convert with x.astype('float32')"
        )
    rate = real_number(name, "rate", rate)
    if not real_number(name, "volatility", volatility) > 0:
        raise ArgumentError(f"{name}: volatility must be positive; got {volatility!r}")
    call, put = (empty_on(placement, shapes[0], dtype) for _ in range(2))
    if call.size:
        flat = [x.reshape((x.size,)) for x in (*(x for _, x in named), call, put)]
        call_kernel(
            kernel_of(make_black_scholes_kernel, dtype.type),
            Range(rounded_up(call.size)),
            *flat,
            dtype.type(rate),
            dtype.type(volatility),
        )
    return call, put


def mandelbrot(
    shape: tuple[int, int],
    /,
    *,
    left: float = -2.0,
    top: float = 1.25,
    step: float = 0.005,
    limit: int = 100,
    dtype: Any = "float32",
    device: Any = None,
    usm_type: str = "device",
    sycl_queue: Any = None,
) -> ndarray:
    """Count the iterations for which points stay near 0 under ``z -> z*z + c``.

    Args:
        shape: ``(height, width)`` of the result.
        left, top: real and imaginary part of the point of element ``[0, 0]``.
        step: distance of neighbors; the imaginary part falls with the row.
        limit: the most iterations, at least 1.
        dtype: float32 or float64, to compute in.
        device, sycl_queue: where to compute; the default device if neither is given.
        usm_type: of the result.

    Returns:
        An int32 array of the shape: the iterations until ``|z| > 2``, or ``limit``.

    Raises:
        ShapeError: ``shape`` is not two whole numbers.
        ValueError: ``limit`` is not from 1 to the largest int32.
        DTypeError: another dtype.
        DeviceError: the device and the queue disagree, or there is no such device.
        UnsupportedDeviceError: the device does not compute in ``dtype``.
        UsmTypeError: there is no such USM type.

    Example:
        >>> from tests.benchmarks.examples import mandelbrot
        >>> mandelbrot((1, 4), left=-2.5, top=0, step=1.0, limit=50).asnumpy()
        array([[ 1, 50, 50,  5]], dtype=int32)
    """
    name = "mandelbrot"
    queue = queue_of(device, sycl_queue)
    extents = _layout.check_shape(shape)
    if len(extents) != 2:
        raise ShapeError(f"{name}: shape must be (height, width); got {shape!r}")
    limit = whole_number(name, "limit", limit, 1, np.iinfo(np.int32).max)
    numbers = [
        real_number(name, label, value)
        for label, value in (("left", left), ("top", top), ("step", step))
    ]
    working = _dtypes.as_dtype(dtype)
    if working.name not in ("float32", "float64"):
        raise DTypeError(f"{name}: dtype must be float32 or float64; got {working}")
    _dtypes.check_device(working, traits_of(queue))
    placement = Placement(queue, check_usm_type(usm_type))
    result = empty_on(placement, extents, _dtypes.int32)
    if result.size:
        call_kernel(
            kernel_of(make_mandelbrot_kernel, working.type),
            Range(result.shape[0], rounded_up(result.shape[1], 16)),
            result,
            *map(working.type, numbers),
            limit,
        )
    return result
