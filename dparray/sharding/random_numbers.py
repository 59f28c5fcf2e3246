"""Sharded random numbers, with one stream per shard."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import _layout
from dparray.device import Device
from dparray.exceptions import ArgumentError, ShapeError
from dparray.random import Generator
from dparray.random.generator import key_of
from dparray.sharding.array import ShardedArray, failures
from dparray.sharding.layout import Sharding, balanced, check_devices
from dparray.sharding.operands import localised

_DISTRIBUTIONS = (
    *("random", "uniform", "standard_normal", "normal", "lognormal", "standard_exponential"),
    *("exponential", "laplace", "logistic", "gumbel", "weibull", "pareto", "power", "rayleigh"),
    *("standard_cauchy", "triangular", "geometric", "standard_t", "wald", "logseries", "zipf"),
    *("standard_gamma", "gamma", "chisquare", "beta", "f", "vonmises", "poisson", "binomial"),
    *("negative_binomial", "hypergeometric", "integers"),
)


class ShardedGenerator:
    """A generator of sharded random numbers, created by :func:`default_rng`.

    It has the distributions of :class:`dparray.random.Generator`; ``size`` is the shape of the
    whole array, and ``axis`` is sharded equally. Each shard has its own stream: the numbers depend
    on the seed and the sharding, but not on the type of the devices.

    Example:
        >>> parts = [dp.Device("cpu").new_queue() for _ in range(2)]
        >>> rng = dp.sharding.default_rng(7, parts)
        >>> x = rng.normal(size=(1000, 3))
        >>> x.shape, x.sharding.sizes, bool(abs(float(x.mean())) < 0.1)
        ((1000, 3), (500, 500), True)
    """

    def __init__(self, seed: Any, devices: Sequence[Device]) -> None:
        self.devices = tuple(devices)
        streams = np.random.SeedSequence(key_of(seed)).spawn(len(self.devices))
        #: The generator of each shard.
        self.generators = tuple(
            Generator(int(stream.generate_state(1, np.uint64)[0]), device.queue, "device")
            for stream, device in zip(streams, self.devices, strict=True)
        )

    def _make(
        self, name: str, size: Any, axis: int, args: Sequence[Any], options: dict[str, Any]
    ) -> ShardedArray:
        if size is None:
            raise ArgumentError(
                f"{name}: size must be the shape of the whole array, such as size=(6, 2)"
            )
        shape = _layout.check_shape(size)
        axis = _layout.normalize_axis(name, axis, len(shape))
        bounds = balanced(shape[axis], len(self.devices))
        sharding = Sharding(self.devices, axis, bounds)
        local: list[list[Any]] = [list(args) for _ in self.devices]
        if any(isinstance(value, ShardedArray) for value in args):
            local, cut = localised(name, args)
            if cut.axis is not None:
                ndim = max(value.ndim for value in args if isinstance(value, ShardedArray))
                axis = cut.axis - ndim + len(shape)
                if axis < 0 or shape[axis] != cut.bounds[-1]:
                    raise ShapeError(
                        f"{name}: size {shape} does not match arguments sharded along an axis of "
                        f"length {cut.bounds[-1]}; give each device a copy: axis=None"
                    )
                sharding = Sharding(cut.devices, axis, cut.bounds)
        shards = []
        for number, generator in enumerate(self.generators):
            part = list(shape)
            part[axis] = sharding.sizes[number]
            with failures(name, sharding, number, math.prod(part)):
                shards.append(getattr(generator, name)(*local[number], size=tuple(part), **options))
        return ShardedArray(sharding, shards)

    def __repr__(self) -> str:
        return f"ShardedGenerator(Philox, on {'; '.join(map(str, self.devices))})"


def _distribution(name: str) -> Callable[..., ShardedArray]:
    at = list(inspect.signature(getattr(Generator, name)).parameters).index("size") - 1

    def draw(
        self: ShardedGenerator, *args: Any, size: Any = None, axis: int = 0, **options: Any
    ) -> ShardedArray:
        if len(args) == at + 1 and size is None:
            *args, size = args  # type: ignore[assignment]
        return self._make(name, size, axis, args, options)

    draw.__name__, draw.__qualname__ = name, f"ShardedGenerator.{name}"
    draw.__doc__ = f"Call ``dparray.random.Generator.{name}``, sharded along ``axis`` of ``size``."
    return draw


for _name in _DISTRIBUTIONS:
    setattr(ShardedGenerator, _name, _distribution(_name))


def default_rng(seed: Any = None, devices: Any = None) -> ShardedGenerator:
    """Return a generator with one stream per device.

    Args:
        seed: see :func:`dparray.random.default_rng`.
        devices: the device of each shard.

    Raises:
        ArgumentError: there are no devices, or the seed is invalid.

    Example:
        >>> rng = dp.sharding.default_rng(0, ["cpu"])
        >>> rng.integers(10, size=4).shape
        (4,)
    """
    return ShardedGenerator(seed, check_devices("default_rng", () if devices is None else devices))
