"""Arrays over several devices: cut into shards, each on a queue of its own.

In: an array, devices and the axis to cut (:func:`dparray.distribute`). Out: arrays whose operations
run on every device on what lies there. ``layout`` says how an array is cut and what another cut
would move, ``operands`` finds what each device needs or raises, ``functions`` computes, ``kernels``
launches. It may import all that computes on one device, and is imported by tools alone.
"""

from dparray.sharding import blocks as blocks
from dparray.sharding import functions as functions
from dparray.sharding import rearranged as rearranged
from dparray.sharding.array import ShardedArray
from dparray.sharding.distribute import distribute
from dparray.sharding.kernels import ShardedEvent, ShardedRange
from dparray.sharding.layout import Sharding
from dparray.sharding.random import ShardedGenerator, default_rng

__all__ = [
    "ShardedArray",
    "ShardedEvent",
    "ShardedGenerator",
    "ShardedRange",
    "Sharding",
    "default_rng",
    "distribute",
]
