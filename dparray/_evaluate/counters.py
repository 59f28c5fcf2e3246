"""The group counters with which kernels find their last group."""

from __future__ import annotations

import threading
from typing import Any

from dparray import _dtypes
from dparray._codegen.reduction import most_counters
from dparray._evaluate.tuning import machine_of
from dparray.memory.blocks import zeros_beside_the_pool
from dparray.memory.packed import PackedArray

# By queue and thread, since threads may launch simultaneously.
_counters: dict[tuple[Any, int], PackedArray] = {}


def counters_of(queue: Any) -> PackedArray:
    """Return zeros in which a kernel counts groups, and which it resets for the queue's next one.

    Their memory is not from the pool, where they would keep a whole slab alive.
    """
    key = (queue, threading.get_ident())
    counters = _counters.get(key)
    if counters is None:
        count = most_counters(machine_of(queue))
        zeros = zeros_beside_the_pool(queue, count, _dtypes.int32)
        counters = _counters[key] = PackedArray(zeros)
    return counters
