"""Memory that kernels find zero, and leave zero for the next ones."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._driver.interface import Queue
from dparray.memory.blocks import zeros_beside_the_pool

_SMALLEST = 1 << 16
# By queue and thread, since threads may launch simultaneously. Queued kernels may use the former,
# smaller memory, so it is kept.
_layouts: dict[tuple[Queue, int], list[Any]] = {}


def zeros(queue: Queue, count: int, dtype: np.dtype[Any]) -> ndarray:
    """Return device memory full of zeros, for a kernel that clears what it wrote."""
    nbytes = count * dtype.itemsize
    layouts = _layouts.setdefault((queue, threading.get_ident()), [])
    if not layouts or layouts[-1].shape[0] < nbytes:
        size = max(_SMALLEST, 1 << (nbytes - 1).bit_length())
        layouts.append(zeros_beside_the_pool(queue, size, np.dtype(np.uint8)))
    return ndarray._from_layout(layouts[-1].block, 0, (count,), (dtype.itemsize,), dtype)
