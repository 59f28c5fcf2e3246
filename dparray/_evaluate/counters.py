"""The counters of groups, of which kernels find the last to end."""

from __future__ import annotations

import threading
from typing import Any

from dparray import _dtypes
from dparray._codegen.reduction import most_counters
from dparray._evaluate.tuning import machine_of
from dparray.memory.blocks import zeros_beside_the_pool
from dparray.memory.packed import PackedArray

# By queue and thread: threads may launch at the same time.
_counters: dict[tuple[Any, int], PackedArray] = {}


def counters_of(queue: Any) -> PackedArray:
    """Zeros that a kernel counts groups in, and leaves as zeros for the next one on the queue.

    Their memory is not the pool's, since as long as they live they would keep all of a slab.
    """
    key = (queue, threading.get_ident())
    counters = _counters.get(key)
    if counters is None:
        count = most_counters(machine_of(queue))
        zeros = zeros_beside_the_pool(queue, count, _dtypes.int32)
        counters = _counters[key] = PackedArray(zeros)
    return counters
