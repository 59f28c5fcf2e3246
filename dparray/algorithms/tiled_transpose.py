"""Copies of transposed matrices on GPUs, by tiles in local memory.

Copying a transposed matrix directly accesses one side across its rows, with a cache line per
element. Instead, a group reads a tile by rows and writes it by columns of local memory, so that
both sides are accessed contiguously.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dparray._array.apply import copy_of
from dparray._array.ndarray import materialize, ndarray
from dparray._codegen.reduction_steps import power_of_two
from dparray._driver import traits_of
from dparray._kernel.launch import call_kernel
from dparray._layout import contiguous_strides, is_contiguous
from dparray._placement import placement_of
from dparray.algorithms.ranges import WORDS, kernel_of, new
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.matrix import make_transpose_kernel

# The side lengths of a tile, and the maximum number of its rows that a group copies at a time: each
# work-item has 16 loads in flight.
_SIDE, _TOGETHER = 64, 4
# Smaller arrays fit in the caches in any access order; shorter sides leave tiles partly empty.
_FEWEST = 1 << 14
_SHORTEST = 8


def contiguous_copy(x: ndarray) -> ndarray:
    """Return a C-contiguous copy, which may be pending."""
    return transposed(x) if can_transpose(x) else copy_of(x)


def can_transpose(x: ndarray) -> bool:
    """Return whether ``x`` is a stack of transposed matrices that the kernel copies."""
    if (
        traits_of(x.queue).shares_memory
        or x.size < _FEWEST
        or x.ndim < 2
        or x.itemsize not in WORDS
    ):
        return False
    traits = traits_of(x.queue)
    (*_, rows, columns), (*outer, down, across) = x.shape, x.strides
    return (
        min(rows, columns) >= _SHORTEST
        and is_contiguous((*x.shape[:-2], columns, rows), (*outer, across, down), x.itemsize)
        and traits.group >= _SIDE
        and traits.local_memory >= _SIDE * (_SIDE + 1) * x.itemsize
    )


def transposed(x: ndarray) -> ndarray:
    """Return a C-contiguous copy."""
    rows, columns = x.shape[-2:]
    stack = math.prod(x.shape[:-2])
    out = new(x.shape, x.dtype, placement_of(x))
    word = np.dtype(WORDS[x.itemsize])
    tiles = stack * -(-rows // _SIDE) * -(-columns // _SIDE)
    together = power_of_two(min(_TOGETHER, traits_of(x.queue).group // _SIDE))
    local = _SIDE * together
    call_kernel(
        kernel_of(make_transpose_kernel, _SIDE, together),
        NdRange(tiles * local, local),
        _as_stack(x, (stack, columns, rows), word),
        _as_stack(out, (stack, rows, columns), word),
        LocalAccessor((_SIDE, _SIDE + 1), word),
    )
    return out


def _as_stack(x: ndarray, shape: tuple[int, ...], word: np.dtype[Any]) -> ndarray:
    """Return contiguous memory in another shape and dtype: one view instead of three."""
    block, offset, *_ = materialize(x)
    return ndarray._from_layout(
        block, offset, shape, contiguous_strides(shape, word.itemsize), word
    )
