"""Quantiles on devices whose memory the host cannot access: of sorted lines, and of a vector."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np

from dparray._array.ndarray import materialize, ndarray
from dparray._driver import traits_of
from dparray._kernel.decorators import device_func
from dparray._layout import Layout
from dparray.algorithms.launches import Launch, known
from dparray.algorithms.ranges import kernel_of
from dparray.algorithms.tiles import local_size
from dparray.algorithms.workspace import zeros
from dparray.kernel_api import LocalAccessor, NdRange, Range
from dparray.kernels.quantile import (
    DIGIT_BITS,
    DIGITS,
    STATE,
    make_ordered,
    make_quantile_kernel,
    make_rank_kernel,
)
from dparray.memory.blocks import allocate

#: Whether the elements around a quantile of a vector are found without a sort, for comparisons.
SELECTS = True
# The elements that a work-item counts at a time, and the groups of a unit.
_COUNTED, _GROUPS_A_UNIT = 8, 4


def can_pick(ordered: ndarray, dtype: np.dtype[Any]) -> bool:
    """Return whether the kernel should be used for sorted lines and a result of ``dtype``."""
    kinds = ordered.dtype.kind + dtype.kind
    return (
        not traits_of(ordered.queue).shares_memory
        and set(kinds) <= set("iuf")
        and np.float16 not in (ordered.dtype, dtype)
    )


def write_quantile(
    ordered: ndarray, out: ndarray, low: int, high: int, weight: float, is_chosen: bool
) -> None:
    """Write one quantile of each line of a C-contiguous array to another one, in one launch."""
    dtype, numbers = out.dtype.type, (ordered.shape[-1], low, high)

    def make() -> Launch:
        kernel = kernel_of(make_quantile_kernel, dtype, is_chosen, ordered.dtype.kind == "f")
        weights = dtype(weight), dtype(1 - weight)
        return Launch(kernel, Range(out.size), "r", "w", *map(np.int64, numbers), *weights)

    key = ordered.queue, ordered.dtype, dtype, out.size, *numbers, weight, is_chosen
    known(("pick", traits_of(ordered.queue), *key), make)(*map(_vector, (ordered, out)))


def _vector(x: ndarray) -> Layout:
    """Return the layout of a C-contiguous array as a vector."""
    return materialize(x)._replace(shape=(x.size,), strides=(x.itemsize,))


def can_select(x: ndarray, dtype: np.dtype[Any]) -> bool:
    """Return whether :func:`write_selected` should be used for a quantile of a vector."""
    return (
        SELECTS
        and 0 < x.size < 1 << 31
        and "atomic64" in traits_of(x.queue).aspects
        and can_pick(x, dtype)
    )


def write_selected(
    x: ndarray, out: ndarray, fraction: float, method: str, rule: Callable[..., Any]
) -> None:
    """Write one quantile of a vector to ``out`` without sorting the vector.

    Args:
        x: the vector.
        out: the result, without dimensions.
        fraction, method: the quantile.
        rule: a function of a method, a length and a fraction. It returns the ranks of the two
            elements around a quantile, the weight of the upper one, and whether one is chosen.
    """
    layout = materialize(x)
    make = functools.partial(_make_selection, x, out.dtype, fraction, method, rule)
    form = layout[2:], out.dtype, fraction, method
    known(("quantile", x.queue, traits_of(x.queue), get_ident(), *form), make)(
        layout, materialize(out)
    )


def _make_selection(
    x: ndarray, dtype: np.dtype[Any], fraction: float, method: str, rule: Callable[..., Any]
) -> Callable[[Layout, Layout], None]:
    """Return a function that writes one quantile of vectors like ``x``."""
    (low, high), weight, is_chosen = rule(method, x.size, fraction)
    queue, traits, bits = x.queue, traits_of(x.queue), 8 * x.dtype.itemsize
    unsigned, is_float = np.dtype(f"u{x.dtype.itemsize}"), x.dtype.kind == "f"
    lanes = local_size(traits)
    groups = min(-(-x.size // (lanes * _COUNTED)), traits.units * _GROUPS_A_UNIT)
    kernel = kernel_of(
        make_rank_kernel, *_ordered(x.dtype.kind, bits), unsigned.type, lanes, is_float
    )
    state = zeros(queue, STATE + 2 * DIGITS, np.dtype(np.int64))
    int32 = np.dtype(np.int32)
    local = [LocalAccessor(size, int32) for size in (2 * DIGITS, 2 * lanes, 1)]
    digit = Launch(kernel, NdRange(groups * lanes, lanes), "r", "w", state, *local, *"nnnnn")
    numbers, end = [], bits
    while end:
        width = min(DIGIT_BITS, end)
        end -= width
        numbers.append(np.array([low, high, end, width, end + width == bits], np.int64))
    number: Any = dtype.type
    picking = kernel_of(make_quantile_kernel, number, is_chosen, is_float)
    weights = number(weight), number(1 - weight)
    element = x.dtype
    pick = Launch(picking, Range(1), "r", "w", *map(np.int64, (3, 0, 1)), *weights)

    def run(x: Layout, out: Layout) -> None:
        bits_of_x = x._replace(dtype=unsigned)
        found = allocate(queue, "device", (3,), unsigned)
        for each in numbers:
            digit(bits_of_x, found, numbers=each)
        pick(found._replace(dtype=element), out._replace(shape=(1,), strides=(dtype.itemsize,)))

    return run


@functools.cache
def _ordered(kind: str, bits: int) -> tuple[Any, ...]:
    """Return the device functions between the bits of elements and ordered integers."""
    return tuple(map(device_func, make_ordered(kind, bits)))
