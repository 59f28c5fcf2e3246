"""Arrays sharded over several devices, with each shard on its own queue.

In: an array, devices and the axis to shard (:func:`dparray.distribute`). Out: arrays whose
operations run on every device on its own shard. ``layout`` describes how an array is sharded and
the cost of another layout, ``operands`` finds the operands for each device or raises, ``functions``
computes, and ``kernels`` launches. Imports: rows up to ``functions``.
"""

from dparray.sharding import blockwise as blockwise
from dparray.sharding import functions as functions
from dparray.sharding import rearranged as rearranged
from dparray.sharding.array import ShardedArray
from dparray.sharding.distribute import distribute
from dparray.sharding.kernels import ShardedEvent, ShardedRange
from dparray.sharding.layout import Sharding
from dparray.sharding.random_numbers import ShardedGenerator, default_rng

__all__ = [
    "ShardedArray",
    "ShardedEvent",
    "ShardedGenerator",
    "ShardedRange",
    "Sharding",
    "default_rng",
    "distribute",
]
