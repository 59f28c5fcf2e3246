"""The group counters with which kernels find their last group."""

from __future__ import annotations

import threading
from typing import Any

from dparray import _dtypes
from dparray._codegen.domain import Machine
from dparray._codegen.reduction import most_counters
from dparray._evaluate.tuning import machine_of
from dparray.memory.blocks import zeros_beside_the_pool
from dparray.memory.packed import PackedArray

# By queue, thread (threads may launch simultaneously) and facts that bound their number.
_counters: dict[tuple[Any, int, Machine], PackedArray] = {}


def counters_of(queue: Any) -> PackedArray:
    """Return zeros in which a kernel counts groups, and which it resets for the queue's next one.

    Their memory is not from the pool, where they would keep a whole slab alive.
    """
    key = (queue, threading.get_ident(), machine_of(queue))
    counters = _counters.get(key)
    if counters is None:
        zeros = zeros_beside_the_pool(queue, most_counters(key[-1]), _dtypes.int32)
        counters = _counters[key] = PackedArray(zeros)
    return counters
