"""Random numbers: generators whose numbers are made on the device, the same on every device.

The generator is Philox-4x32-10, a function of a seed and a position, so a sequence does not depend
on how it is cut into calls: ``random(10)`` twice gives the numbers of ``random(20)``.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array import (
    apply,
    assign,
    astype_array,
    check_array,
    from_host,
    ndarray,
    scalar_value,
)
from dparray._elementwise import where
from dparray._manipulation import reshape
from dparray._ops import OPS
from dparray._placement import check_usm_type, common_placement
from dparray._reductions import cumsum
from dparray._searching import searchsorted
from dparray._sorting import argsort
from dparray.algorithms._random import philox_bits, philox_normal, philox_uniform
from dparray.device import Device, queue_of
from dparray.exceptions import DTypeError, ShapeError

__all__ = [
    "Generator",
    "choice",
    "default_rng",
    "exponential",
    "normal",
    "permutation",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "seed",
    "shuffle",
    "standard_normal",
    "uniform",
]

Size = int | Sequence[int] | None
_WORDS_IN_BLOCK = 4


class Generator:
    """Random numbers on one queue; made by :func:`default_rng`.

    The state is a seed and a position in its sequence; numbers of 64 bits take two positions. Calls
    from several threads get different numbers.

    Example:
        >>> import dparray as dp
        >>> rng = dp.random.default_rng(seed=1)
        >>> rng.random((2, 3)).shape
        (2, 3)
        >>> first, second = dp.random.default_rng(7), dp.random.default_rng(7)
        >>> dp.array_equal(first.random(4), second.random(4))
        True
    """

    def __init__(self, key: int, queue: Any, usm_type: str) -> None:
        self._key = key
        self._position = 0
        self._queue = queue
        self._usm_type = usm_type
        self._lock = threading.Lock()

    @property
    def device(self) -> Device:
        """Where the numbers are made."""
        return Device(self._queue)

    def __repr__(self) -> str:
        return f"Generator(Philox, seed={self._key}, position={self._position}, on {self.device})"

    # -- words ----------------------------------------------------------------------------------

    def _place(self) -> dict[str, Any]:
        return {"sycl_queue": self._queue, "usm_type": self._usm_type}

    def _take(self, count: int, words: int) -> tuple[int, int, int]:
        """Take positions for ``count`` numbers of so many words.

        Returns:
            The first block, how many numbers of it were taken before, and how many numbers to make.
        """
        with self._lock:
            start = -(-self._position // words) * words
            self._position = start + count * words
        block, taken = divmod(start, _WORDS_IN_BLOCK)
        return block, taken // words, taken // words + count

    def _float(self, dtype: Any) -> np.dtype[Any]:
        device = self._queue.sycl_device
        if dtype is None:
            return _dtypes.default_float(device)
        found = _dtypes.check_device(_dtypes.as_dtype(dtype), device)
        if found not in (_dtypes.float32, _dtypes.float64):
            raise DTypeError(f"random: dtype {found} is neither float32 nor float64")
        return found

    def _floats(self, make: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> ndarray:
        count = math.prod(shape)
        block, skip, total = self._take(count, dtype.itemsize // 4)
        numbers = make(total, self._key, dtype=dtype, counter=block, **self._place())
        return reshape(numbers[skip:], shape)

    def _integers64(self, count: int) -> ndarray:
        """Words of 64 bits."""
        block, skip, total = self._take(count, 2)
        words = philox_bits(2 * total, self._key, counter=block, **self._place())
        return words._view((count,), (8,), words.offset + 8 * skip, _dtypes.uint64)

    def _arguments(
        self, function: str, size: Size, **named: Any
    ) -> tuple[list[Any], tuple[int, ...]]:
        """Parameters of a distribution, and the shape of the result."""
        values = {name: scalar_value(value) for name, value in named.items()}
        for name, value in values.items():
            if not isinstance(value, bool | int | float):
                values[name] = check_array(function, name, value)
        arrays = [(name, value) for name, value in values.items() if isinstance(value, ndarray)]
        if arrays:
            common_placement(function, [*arrays, ("the generator", _Placed(self))])
        shapes = [value.shape for _, value in arrays]
        if size is None:
            shape = _layout.broadcast_shapes(function, shapes) if shapes else ()
        else:
            shape = _layout.check_shape(size)
            for found in shapes:
                _layout.broadcast_strides(function, found, (0,) * len(found), shape)
        return list(values.values()), shape

    # -- distributions --------------------------------------------------------------------------

    def random(self, size: Size = None, dtype: Any = None, out: ndarray | None = None) -> ndarray:
        """Numbers from 0 up to, not including, 1.

        Args:
            size: the result's shape; a single number if not given.
            dtype: ``float64`` or ``float32``; the device's default float if not given.
            out: an array for the result.

        Raises:
            DTypeError: there is no such dtype of random floats.
            ShapeError: ``size`` is no shape.
        """
        if out is not None:
            placed = (("the generator", _Placed(self)), ("out", check_array("random", "out", out)))
            common_placement("random", placed)
            size = out.shape if size is None else size
        chosen = self._float(dtype if out is None or dtype is not None else out.dtype)
        shape = () if size is None else _layout.check_shape(size)
        result = self._floats(philox_uniform, shape, chosen)
        if out is None:
            return result
        assign(out, result, "random")
        return out

    def uniform(
        self, low: Any = 0.0, high: Any = 1.0, size: Size = None, *, dtype: Any = None
    ) -> ndarray:
        """Numbers from ``low`` up to ``high``, which may be arrays on the generator's queue."""
        (low, high), shape = self._arguments("uniform", size, low=low, high=high)
        width = apply(OPS["subtract"], high, low) if isinstance(high, ndarray) else high - low
        scaled = apply(OPS["multiply"], self.random(shape, dtype), width)
        return apply(OPS["add"], scaled, low)

    def standard_normal(self, size: Size = None, dtype: Any = None) -> ndarray:
        """Normally distributed numbers with mean 0 and deviation 1."""
        shape = () if size is None else _layout.check_shape(size)
        return self._floats(philox_normal, shape, self._float(dtype))

    def normal(
        self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, *, dtype: Any = None
    ) -> ndarray:
        """Normally distributed numbers with mean ``loc`` and deviation ``scale``."""
        (loc, scale), shape = self._arguments("normal", size, loc=loc, scale=scale)
        numbers = self.standard_normal(shape, dtype)
        return apply(OPS["add"], apply(OPS["multiply"], numbers, scale), loc)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Size = None) -> ndarray:
        """Numbers whose logarithms are normally distributed."""
        return apply(OPS["exp"], self.normal(mean, sigma, size))

    def exponential(self, scale: Any = 1.0, size: Size = None, *, dtype: Any = None) -> ndarray:
        """Exponentially distributed numbers with mean ``scale``."""
        (scale,), shape = self._arguments("exponential", size, scale=scale)
        logarithm = apply(OPS["log1p"], apply(OPS["negative"], self.random(shape, dtype)))
        return apply(OPS["multiply"], apply(OPS["negative"], logarithm), scale)

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Size = None,
        dtype: Any = "int64",
        endpoint: bool = False,
    ) -> ndarray:
        """Integers from ``low`` up to ``high``, or from 0 up to ``low`` if that is all.

        Args:
            low: the least value.
            high: where they end.
            size: the result's shape; a single number if not given.
            dtype: an integer dtype, or ``bool``.
            endpoint: ``high`` itself is included.

        Raises:
            DTypeError: the dtype is no integer.
            ValueError: there is no integer in the range, or the dtype cannot hold all.
        """
        first, last = (0, int(low)) if high is None else (int(low), int(high))
        last -= not endpoint
        chosen = _dtypes.as_dtype(dtype)
        if chosen.kind not in "biu":
            raise DTypeError(f"integers: dtype {chosen} is no integer")
        limits = (0, 1) if chosen.kind == "b" else (np.iinfo(chosen).min, np.iinfo(chosen).max)
        if last < first or first < limits[0] or last > limits[1]:
            raise ValueError(
                f"integers: there is no range {first} ... {last} within {limits[0]} ... {limits[1]}"
            )
        shape = () if size is None else _layout.check_shape(size)
        words = self._integers64(math.prod(shape))
        count = last - first + 1
        if count < 1 << 64:
            words = apply(OPS["remainder"], words, count)
        # Addition wraps around in 64 bits, so it does for negative first values too.
        offset = from_host(np.asarray(first % (1 << 64), np.uint64), self._queue, self._usm_type)
        return reshape(astype_array(apply(OPS["add"], words, offset), chosen), shape)

    def permutation(self, x: Any, axis: int = 0) -> ndarray:
        """The integers 0 ... ``x`` - 1, or a copy of an array, in random order along an axis."""
        if isinstance(x, int | np.integer):
            return argsort(self._integers64(int(x)))
        x = check_array("permutation", "x", x)
        common_placement("permutation", (("x", x), ("the generator", _Placed(self))))
        axis = _layout.normalize_axis("permutation", axis, x.ndim)
        order = argsort(self._integers64(x.shape[axis]))
        return x[_layout.at_axis(axis, order)]

    def shuffle(self, x: ndarray, axis: int = 0) -> None:
        """Bring an array into random order along an axis, in its own memory."""
        x = check_array("shuffle", "x", x)
        assign(x, self.permutation(x, axis), "shuffle")

    def choice(
        self,
        a: Any,
        size: Size = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> ndarray:
        """Random elements along an axis of an array, or of the integers 0 ... ``a`` - 1.

        Args:
            a: an array on the generator's queue, or a positive integer.
            size: how many, as a shape; a single one if not given.
            replace: an element may be chosen again.
            p: the probability of each: a list or a vector; equal ones if not given.
            axis: the axis.
            shuffle: without effect: the order is always random.

        Raises:
            ShapeError: ``p`` does not fit, or there are not as many elements to choose.
            ValueError: there is nothing to choose from.
        """
        if isinstance(a, list | tuple):
            a = from_host(np.asarray(a), self._queue, self._usm_type)
        if isinstance(p, list | tuple):
            p = from_host(np.asarray(p, np.float64), self._queue, self._usm_type)
        named: list[tuple[str, Any]] = [("the generator", _Placed(self))]
        if not isinstance(a, int | np.integer):
            named.append(("a", check_array("choice", "a", a)))
        if p is not None:
            named.append(("p", check_array("choice", "p", p)))
        common_placement("choice", named)
        population = int(a) if isinstance(a, int | np.integer) else a.shape[axis]
        if population < 1:
            raise ValueError("choice: there is nothing to choose from")
        if p is not None and p.shape != (population,):
            raise ShapeError(f"choice: p has shape {p.shape} for {population} elements")
        shape = () if size is None else _layout.check_shape(size)
        count = math.prod(shape)
        if not replace and count > population:
            raise ShapeError(f"choice: {count} of {population} elements without replacement")
        positions = reshape(self._chosen(population, count, replace, p), shape)
        if isinstance(a, int | np.integer):
            return positions
        return a[_layout.at_axis(axis % a.ndim, positions)]

    def _chosen(self, population: int, count: int, replace: bool, p: Any) -> ndarray:
        if p is None:
            if replace:
                return self.integers(population, size=count)
            return argsort(self._integers64(population))[:count]
        if replace:
            heights = cumsum(p)
            levels = apply(OPS["multiply"], self.random(count), heights[-1])
            found = searchsorted(heights, levels, side="right")
            return apply(OPS["minimum"], found, population - 1)
        # The largest of log(p) + Gumbel noise are a sample without replacement.
        noise = apply(OPS["log"], self.exponential(size=population))
        keys = apply(OPS["subtract"], noise, apply(OPS["log"], p))
        return argsort(where(apply(OPS["greater"], p, 0), keys, math.inf))[:count]


class _Placed:
    """A generator as the placement checker sees arrays; it decides no USM type."""

    def __init__(self, generator: Generator) -> None:
        self.sycl_queue = generator._queue
        self.usm_type = "host"
        self.shape = ()


def default_rng(
    seed: int | None = None,
    *,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> Generator:
    """A generator of random numbers.

    Args:
        seed: an integer of at most 64 bits; a random one if not given. The same seed gives the
            same numbers on every device.
        device: where the numbers are made; the default device if not given.
        usm_type: ``"device"`` (the default), ``"shared"`` or ``"host"``.
        sycl_queue: the queue; may be given instead of ``device``.

    Raises:
        DeviceError: there is no such device, or ``device`` and ``sycl_queue`` disagree.
        ValueError: the seed is negative or larger.

    Example:
        >>> import dparray as dp
        >>> rng = dp.random.default_rng(0)
        >>> rng.integers(10, size=5).shape
        (5,)
    """
    key = secrets.randbits(64) if seed is None else int(seed)
    if not 0 <= key < 1 << 64:
        raise ValueError(f"default_rng: seed {seed} is outside 0 ... 2**64 - 1")
    kind = check_usm_type("device" if usm_type is None else usm_type)
    return Generator(key, queue_of(device, sycl_queue), kind)


# -- one generator for everybody, as NumPy's programs use it --------------------------------------

_shared: dict[Any, Generator] = {}
_shared_seed: list[int] = []


def _everybodys() -> Generator:
    """The generator behind the module's functions, on the default device of the moment."""
    queue = queue_of(None, None)
    if not _shared_seed:
        _shared_seed.append(secrets.randbits(64))
    generator = _shared.get(queue)
    if generator is None:
        generator = _shared[queue] = Generator(_shared_seed[0], queue, "device")
    return generator


def seed(seed: int | None = None) -> None:
    """Start the numbers of the module's functions anew.

    Example:
        >>> import dparray as dp
        >>> dp.random.seed(3)
        >>> first = dp.random.rand(4)
        >>> dp.random.seed(3)
        >>> dp.array_equal(first, dp.random.rand(4))
        True
    """
    _shared.clear()
    _shared_seed[:] = [secrets.randbits(64) if seed is None else int(seed) % (1 << 64)]


def random(size: Size = None) -> ndarray:
    """Numbers from 0 up to, not including, 1.

    Example:
        >>> import dparray as dp
        >>> dp.random.random(3).shape
        (3,)
    """
    return _everybodys().random(size)


random_sample = random


def rand(*shape: int) -> ndarray:
    """Numbers from 0 up to, not including, 1, in the shape given by the arguments.

    Example:
        >>> import dparray as dp
        >>> dp.random.rand(2, 3).shape
        (2, 3)
    """
    return _everybodys().random(shape)


def randn(*shape: int) -> ndarray:
    """Normally distributed numbers in the shape given by the arguments.

    Example:
        >>> import dparray as dp
        >>> dp.random.randn(2, 3).shape
        (2, 3)
    """
    return _everybodys().standard_normal(shape)


def standard_normal(size: Size = None) -> ndarray:
    """Normally distributed numbers with mean 0 and deviation 1.

    Example:
        >>> import dparray as dp
        >>> dp.random.standard_normal(3).shape
        (3,)
    """
    return _everybodys().standard_normal(size)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> ndarray:
    """Normally distributed numbers; ``loc`` and ``scale`` may be arrays on the default device.

    Example:
        >>> import dparray as dp
        >>> dp.random.normal(1.0, 2.0, size=3).shape
        (3,)
    """
    return _everybodys().normal(loc, scale, size)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Size = None) -> ndarray:
    """Numbers from ``low`` up to ``high``, which may be arrays on the default device.

    Example:
        >>> import dparray as dp
        >>> dp.random.uniform(1.0, 2.0, size=3).shape
        (3,)
    """
    return _everybodys().uniform(low, high, size)


def exponential(scale: Any = 1.0, size: Size = None) -> ndarray:
    """Exponentially distributed numbers with mean ``scale``.

    Example:
        >>> import dparray as dp
        >>> dp.random.exponential(2.0, size=3).shape
        (3,)
    """
    return _everybodys().exponential(scale, size)


def randint(low: int, high: int | None = None, size: Size = None, dtype: Any = "int64") -> ndarray:
    """Integers from ``low`` up to, not including, ``high``; see :meth:`Generator.integers`.

    Example:
        >>> import dparray as dp
        >>> int(dp.random.randint(1)) == 0
        True
    """
    return _everybodys().integers(low, high, size, dtype)


def permutation(x: Any) -> ndarray:
    """The integers 0 ... ``x`` - 1, or a copy of an array, in random order.

    Example:
        >>> import dparray as dp
        >>> dp.sort(dp.random.permutation(3)).asnumpy()
        array([0, 1, 2])
    """
    return _generator_of(x).permutation(x)


def shuffle(x: ndarray) -> None:
    """Bring an array into random order along its first axis.

    Example:
        >>> import dparray as dp
        >>> x = dp.arange(3)
        >>> dp.random.shuffle(x)
        >>> int(x.sum())
        3
    """
    _generator_of(x).shuffle(x)


def choice(a: Any, size: Size = None, replace: bool = True, p: Any = None) -> ndarray:
    """Random elements of an array or of the integers 0 ... ``a`` - 1.

    See :meth:`Generator.choice`.

    Example:
        >>> import dparray as dp
        >>> dp.random.choice(5, size=3).shape
        (3,)
    """
    return _generator_of(a).choice(a, size, replace, p)


def _generator_of(x: Any) -> Generator:
    """Everybody's generator, on the queue of an array."""
    if not isinstance(x, ndarray):
        return _everybodys()
    generator = _everybodys()
    if x.sycl_queue == generator._queue:
        return generator
    found = _shared.get(x.sycl_queue)
    if found is None:
        found = _shared[x.sycl_queue] = Generator(_shared_seed[0], x.sycl_queue, x.usm_type)
    return found
