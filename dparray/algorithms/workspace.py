"""Memory beside the pool: zeros that kernels leave zero for the next ones, and constants."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from dparray._driver.interface import Queue
from dparray._layout import Layout
from dparray.memory import copies
from dparray.memory.blocks import zeros_beside_the_pool

_SMALLEST = 1 << 16
# By queue and thread, since threads may launch simultaneously. Queued kernels may use the former,
# smaller memory, so it is kept.
_layouts: dict[tuple[Queue, int], list[Any]] = {}


def zeros(queue: Queue, count: int, dtype: np.dtype[Any]) -> Layout:
    """Return device memory full of zeros, for a kernel that clears what it wrote."""
    nbytes = count * dtype.itemsize
    layouts = _layouts.setdefault((queue, threading.get_ident()), [])
    if not layouts or layouts[-1].shape[0] < nbytes:
        size = max(_SMALLEST, 1 << (nbytes - 1).bit_length())
        layouts.append(zeros_beside_the_pool(queue, size, np.dtype(np.uint8)))
    return Layout(layouts[-1].block, 0, (count,), (dtype.itemsize,), dtype)


def kept_memory(queue: Queue, values: np.ndarray) -> Layout:
    """Return a copy of a 1-D host array in device memory beside the pool."""
    layout = zeros_beside_the_pool(queue, values.size, values.dtype)
    copies.copy_from_host(values, layout)
    return layout
