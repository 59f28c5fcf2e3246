"""Copies of transposed matrices on GPUs, by tiles in local memory.

Copying a transposed matrix directly accesses one side across its rows, with a cache line per
element. Instead, a group reads a tile by rows and writes it by columns of local memory, so that
both sides are accessed contiguously.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dparray._array.allocation import empty_on
from dparray._array.apply import copy_of
from dparray._array.ndarray import materialize, ndarray
from dparray._codegen.reduction_steps import power_of_two
from dparray._driver import traits_of
from dparray._driver.interface import Traits
from dparray._layout import Layout, is_contiguous
from dparray._placement import placement_of
from dparray.algorithms.launches import Launch, known
from dparray.algorithms.ranges import WORDS, kernel_of
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.matrix import make_transpose_kernel

# The side lengths of a tile, and the maximum number of its rows that a group copies at a time: each
# work-item has 16 loads in flight.
_SIDE = 64
_TOGETHER = 4
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
    word = np.dtype(WORDS[x.itemsize])
    out = empty_on(placement_of(x), x.shape, x.dtype)
    traits = traits_of(x.queue)
    key = ("transpose", x.queue, traits, stack, rows, columns, word, _SIDE)
    launch = known(key, functools.partial(_launch_of, traits, stack, columns, rows, word))
    launch(_as_words(x, word), _as_words(out, word))
    return out


def _launch_of(traits: Traits, stack: int, m: int, n: int, word: np.dtype[Any]) -> Launch:
    """Return a launch that copies a stack of m by n matrices transposed."""
    together = power_of_two(min(_TOGETHER, traits.group // _SIDE))
    groups = [stack * -(-m // _SIDE), -(-n // _SIDE)]
    # The device has the dimensions in reverse order.
    is_wide = groups[0] > traits.groups[1]
    if is_wide:
        groups.reverse()
    kind: Any = word.type
    kernel = kernel_of(make_transpose_kernel, _SIDE, together, kind, is_wide)
    index_space = NdRange((groups[0] * together, groups[1] * _SIDE), (together, _SIDE))
    return Launch(kernel, index_space, "r", "w", LocalAccessor(_SIDE * (_SIDE + 1), word), m, n)


def _as_words(x: ndarray, word: np.dtype[Any]) -> Layout:
    """Return the memory of an array without gaps as a vector of integers."""
    block, offset, *_ = materialize(x)
    return Layout(block, offset, (x.size,), (word.itemsize,), word)
