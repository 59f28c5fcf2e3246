"""Streams of random words: each draw takes its own range of Philox's counters."""

from __future__ import annotations

import functools
import math
import operator
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import apply, astype_array, ops
from dparray._array.assignment import assign
from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_fits, scalar_value
from dparray._driver import traits_of
from dparray._functions.manipulation import broadcast_to, reshape
from dparray._functions.protocols import unpickled_device
from dparray._functions.reductions import all as all_of
from dparray._graph.ops import OPS
from dparray._kernel.decorators import device_func
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement, coerced_usm_type, common_placement
from dparray.algorithms.random import philox_bits, philox_uniform
from dparray.algorithms.ranges import kernel_of
from dparray.device import Device, sub_device_path
from dparray.exceptions import ArgumentError, DTypeError
from dparray.kernel_api import Range
from dparray.kernels.philox import philox
from dparray.kernels.variates import (
    make_binomial_kernel,
    make_hypergeometric_kernel,
    make_log_binomial,
    make_log_poisson,
    make_poisson_kernel,
    make_reals,
)

Size = int | Sequence[int] | None


_WORDS_IN_BLOCK = 4


class Streams:
    """The state of every draw: a key, a counter, a placement, and streams for kernels."""

    def __init__(self, key: int, queue: Any, usm_type: str) -> None:
        self._key = key
        self._position = 0
        self._queue = queue
        self._usm_type = usm_type
        self._lock = threading.Lock()

    @property
    def device(self) -> Device:
        """The queue on which the numbers are generated."""
        return Device(self._queue)

    def __repr__(self) -> str:
        return f"Generator(Philox, seed={self._key}, position={self._position}, on {self.device})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Streams:
        """Return a generator on the same queue that continues with the same numbers."""
        return _restored(type(self), self._key, self._position, self._queue, self._usm_type)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the state, and the names of the device and the sub-device, for pickling."""
        place = self.device.filter_string, sub_device_path(self._queue)
        return _unpickled, (type(self), self._key, self._position, *place, self._usm_type)

    def _placement(self) -> dict[str, Any]:
        return {"sycl_queue": self._queue, "usm_type": self._usm_type}

    def _take(self, count: int, words: int) -> tuple[int, int, int]:
        """Reserve positions for ``count`` numbers of ``words`` 32-bit words each.

        Returns:
            The first block, the numbers in it that are taken already, and that number plus
            ``count``.
        """
        with self._lock:
            start = -(-self._position // words) * words
            self._position = start + count * words
        block, taken = divmod(start, _WORDS_IN_BLOCK)
        return block, taken // words, taken // words + count

    def _float(self, dtype: Any) -> np.dtype[Any]:
        traits = traits_of(self._queue)
        if dtype is None:
            return _dtypes.default_float(traits)
        found = _dtypes.check_device(_dtypes.as_dtype(dtype), traits)
        if found not in (_dtypes.float32, _dtypes.float64):
            raise DTypeError(f"random: dtype {found} is neither float32 nor float64")
        return found

    def _floats(self, make: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> ndarray:
        count = math.prod(shape)
        block, skip, total = self._take(count, dtype.itemsize // 4)
        numbers = make(total, self._key, dtype=dtype, counter=block, **self._placement())
        small = compute_small(_rest_of, numbers, skip, shape)
        return reshape(numbers[skip:], shape) if small is None else small

    def _integers64(self, count: int) -> ndarray:
        """Draw 64-bit words."""
        block, skip, total = self._take(count, 2)
        words = philox_bits(2 * total, self._key, counter=block, **self._placement())
        small = compute_small(_words_of_64_bits, words, skip)
        if small is not None:
            return small
        return words._view((count,), (8,), words.offset + 8 * skip, _dtypes.uint64)

    def _arguments(
        self, function: str, size: Size, **named: tuple[Any, ...]
    ) -> tuple[list[Any], tuple[int, ...]]:
        """Return the parameters of a distribution, and the shape of the result.

        Each parameter comes with its bounds, as in :func:`check_bounds`, if it has any.
        """
        values = {name: scalar_value(value) for name, (value, *_) in named.items()}
        for name, value in values.items():
            if isinstance(value, list | tuple):
                values[name] = from_host(np.asarray(value), self._queue, self._usm_type)
            elif not isinstance(value, bool | int | float):
                values[name] = check_array(function, name, value)
        arrays = [(name, value) for name, value in values.items() if isinstance(value, ndarray)]
        if arrays:
            common_placement(function, [("generator", Placed(self)), *arrays])
        shapes = [value.shape for _, value in arrays]
        if size is None:
            shape = _layout.broadcast_shapes(function, shapes) if shapes else ()
        else:
            shape = _layout.check_shape(size)
            for found in shapes:
                _layout.broadcast_strides(function, found, (0,) * len(found), shape)
        bounds = {name: (values[name], *rest) for name, (_, *rest) in named.items() if rest}
        check_bounds(function, **bounds)
        return list(values.values()), shape

    def _uniforms(self, shape: tuple[int, ...], count: int) -> list[ndarray]:
        """Draw ``count`` consecutive uniform numbers for each element of a shape."""
        numbers = self._floats(philox_uniform, (*shape, count), self._float(None))
        return [numbers[..., position] for position in range(count)]

    def _streams(self, count: int, each: int = 1) -> int:
        """Reserve ``each * count`` unused streams; return the number of the first."""
        block, skip, _ = self._take(each * count, 2)
        return 2 * block + skip + 1

    def _variates(
        self,
        factory: Any,
        shape: tuple[int, ...],
        parameters: Sequence[Any],
        *,
        is_integer: bool = True,
        first: int | None = None,
        step: int = 1,
    ) -> ndarray:
        """Draw numbers with a kernel of ``kernels.variates``, one stream for each element.

        Args:
            factory: the function that makes the kernel.
            shape: the shape of the result.
            parameters: arrays that broadcast to it, or scalars.
            is_integer: whether the numbers are integers.
            first: the stream of the first element; new streams are reserved by default.
            step: the difference between the streams of consecutive elements.
        """
        count = math.prod(shape)
        first = self._streams(count) if first is None else first
        real = _dtypes.default_float(traits_of(self._queue))
        vectors = [self._vector(value, shape, real) for value in parameters]
        arrays = [(f"parameter {at}", value) for at, value in enumerate(vectors)]
        placement = common_placement("random", [("generator", Placed(self)), *arrays])
        usm_type = coerced_usm_type(placement.usm_type, self._usm_type)
        dtype = _dtypes.int64 if is_integer else real
        result = empty_on(Placement(self._queue, usm_type), (count,), dtype)
        if count:
            numbers = (np.uint64(number) for number in (first, step, self._key))
            call_kernel(
                kernel_of(_of_distribution, factory, real), Range(count), result, *vectors, *numbers
            )
        return reshape(result, shape)

    def _vector(self, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> ndarray:
        """Return an array with the parameter of each element; a scalar has one element that all
        read.
        """
        count = math.prod(shape)
        if not isinstance(value, ndarray):
            value = from_host(np.asarray(value, dtype), self._queue, "host")
        if value.size == 1:
            value = reshape(astype_array(value, dtype, copy=False), ())
            return value._view((count,), (0,), value.offset)
        return reshape(astype_array(broadcast_to(value, shape), dtype, copy=False), (count,))

    def random(self, size: Size = None, dtype: Any = None, out: ndarray | None = None) -> ndarray:
        """Draw numbers from 0 up to but excluding 1.

        Args:
            size: the shape of the result; a single number by default.
            dtype: ``float64`` or ``float32``; the default float of the device if not given.
            out: an array to write to.

        Raises:
            DTypeError: the dtype is not a float dtype that can be drawn.
            ShapeError: ``size`` is not a shape.
        """
        return self._into("random", philox_uniform, size, dtype, out)

    def _into(
        self, function: str, make: Any, size: Size, dtype: Any, out: ndarray | None
    ) -> ndarray:
        """Draw floats into a new array or into ``out``."""
        if out is not None:
            placed = (("generator", Placed(self)), ("out", check_array(function, "out", out)))
            common_placement(function, placed)
            size = out.shape if size is None else size
        chosen = self._float(dtype if out is None or dtype is not None else out.dtype)
        shape = () if size is None else _layout.check_shape(size)
        result = self._floats(make, shape, chosen)
        if out is not None:
            check_fits(function, shape, chosen, out, "equiv")
            assign(out, result, function)
        return result if out is None else out

    def _scaled(self, standard: ndarray, scale: Any, loc: Any = 0) -> ndarray:
        return standard * scale + loc

    def _inside(self, shape: tuple[int, ...]) -> ndarray:
        """Draw uniform numbers that exclude 0, so that their logarithms are finite."""
        numbers = self.random(shape)
        return ops.maximum(numbers, float(np.finfo(numbers.dtype).eps) / 2)


def _rest_of(numbers: np.ndarray, skip: int, shape: tuple[int, ...]) -> np.ndarray:
    return numbers[skip:].reshape(shape)


def _words_of_64_bits(words: np.ndarray, skip: int) -> np.ndarray:
    return words.view(np.uint64)[skip:]


def _restored(kind: type[Streams], key: int, position: int, queue: Any, usm_type: str) -> Streams:
    """Create a generator with the state of another."""
    made = kind.__new__(kind)
    Streams.__init__(made, key, queue, usm_type)
    made._position = position
    return made


def _unpickled(
    kind: type[Streams], key: int, position: int, filter_string: str, path: Any, usm_type: str
) -> Streams:
    """Restore a pickled generator, on its original device or the closest available one."""
    device = unpickled_device("generator", filter_string, path)
    return _restored(kind, key, position, device.queue, usm_type)


class Placed:
    """Describe a generator to the placement check; it does not affect the USM type."""

    def __init__(self, generator: Streams) -> None:
        self.queue = generator._queue
        self.usm_type = "host"
        self.shape = ()


def check_bounds(function: str, **bounds: tuple[Any, ...]) -> None:
    """Raise if a parameter is outside its range; the host waits for the values of arrays.

    A bound is the parameter, its lowest and highest value, whether the lowest is excluded, and
    whether the highest is excluded.
    """
    for name, (value, low, high, *excluded) in bounds.items():
        least, greatest = (*excluded, False, False)[:2]
        if isinstance(value, ndarray):
            above = apply(OPS["greater" if least else "greater_equal"], value, low)
            below = apply(OPS["less" if greatest else "less_equal"], value, high)
            fits = bool(all_of(ops.logical_and(above, below)))
        else:
            fits = (low < value if least else low <= value) and (
                value < high if greatest else value <= high
            )
        if not fits:
            is_array = isinstance(value, ndarray)
            shown = "has an element outside its range;" if is_array else f"is {value!r};"
            limit = f"more than {low}" if least else f"{low} or more"
            upper = f" and less than {high:g}" if greatest else f" and at most {high:g}"
            upper = "" if high == math.inf and not greatest else upper
            raise ArgumentError(f"{function}: {name} {shown} it must be {limit}{upper}")


def integer_bound(name: str, value: Any) -> int:
    """Return a bound as an integer; a float must have an integer value."""
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        raise ArgumentError(f"integers: {name} must be an integer; got {value!r}") from None


def _of_distribution(factory: Any, dtype: np.dtype[Any]) -> Any:
    """Specialize the kernel of a distribution for the device's default float dtype."""
    reals, log_poisson, log_binomial = _device_functions(dtype)
    if factory is make_hypergeometric_kernel:
        return factory(reals, log_binomial, dtype.type)
    if factory in (make_binomial_kernel, make_poisson_kernel):
        return factory(reals, log_poisson, dtype.type)
    return factory(reals, dtype.type)


@functools.cache
def _device_functions(dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """Return the device functions that the kernels of distributions call."""
    reals = device_func(make_reals(device_func(philox), dtype.type))
    log_poisson = device_func(make_log_poisson(dtype.type))
    return reals, log_poisson, device_func(make_log_binomial(log_poisson))
