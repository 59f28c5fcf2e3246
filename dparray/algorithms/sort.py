"""Stable sort by key."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dparray._array.dispatch import by_name, compute, into_out
from dparray._array.ndarray import materialize, ndarray
from dparray._array.nodes import positions
from dparray._kernel.decorators import device_func
from dparray._kernel.function import DeviceFunction
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement
from dparray.algorithms.ranges import (
    check_1d,
    check_kind,
    check_width,
    chunks,
    kernel_of,
    new,
    placement_of,
)
from dparray.algorithms.tiles import uses_tiles
from dparray.exceptions import ShapeError
from dparray.kernel_api import Range
from dparray.kernels.radix_sort import (
    DIGITS,
    make_digit_count_kernel,
    make_digit_of,
    make_digit_place_kernel,
    make_move_kernel,
)

__all__ = ["sort_by_key", "stable_argsort"]

_DIGIT_BITS = 8
# Below this many elements, the 256 counts of a chunk cost more than its elements.
_SMALLEST_CHUNK = 4096


def sort_by_key(
    keys: ndarray, values: ndarray | None = None, *, descending: bool = False
) -> tuple[ndarray, ndarray | None]:
    """Sort keys, and values along with them; equal keys keep their order.

    Args:
        keys: a 1-D array of shape ``(n,)``, of Boolean, integer or float dtype. NaN is sorted last.
        values: an array of shape ``(n,)`` on the same queue, reordered with the keys.
        descending: whether the largest key comes first. Equal keys also keep their order then.

    Returns:
        ``(sorted_keys, sorted_values)``, new arrays; the second is ``None`` if no values are given.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes differ, or are not one-dimensional.
        DTypeError: the keys are complex.

    Placement: runs on the common queue; the results have the coerced USM type.

    Example:
        >>> from dparray.algorithms import sort_by_key
        >>> keys, values = sort_by_key(dp.asarray([2, 1, 2, 0]), dp.asarray([10, 11, 12, 13]))
        >>> dp.asnumpy(values)
        array([13, 11, 10, 12])
    """
    operands = [("keys", keys)] + ([] if values is None else [("values", values)])
    where = placement_of("sort_by_key", operands)
    check_1d("sort_by_key", "keys", keys)
    check_kind("sort_by_key", "keys", keys, "biuf", "a Boolean, integer or real")
    if values is not None:
        check_width("sort_by_key", "values", values)
    if values is not None and values.shape != keys.shape:
        raise ShapeError(
            f"sort_by_key: values have shape {values.shape} and keys have shape {keys.shape}"
        )
    return _sorted(keys, values, descending, where)


def stable_argsort(keys: ndarray, *, descending: bool = False) -> ndarray:
    """Return the indices that sort an array: ``keys[stable_argsort(keys)]`` is sorted.

    Args:
        keys: see :func:`sort_by_key`.
        descending: whether the largest key comes first.

    Returns:
        An int64 array of shape ``(n,)``.

    Raises: see :func:`sort_by_key`.

    Placement: runs on the queue of ``keys``; the result has its USM type.

    Example:
        >>> from dparray.algorithms import stable_argsort
        >>> dp.asnumpy(stable_argsort(dp.asarray([2, 1, 2, 0])))
        array([3, 1, 0, 2])
    """
    where = placement_of("stable_argsort", [("keys", keys)])
    check_1d("stable_argsort", "keys", keys)
    check_kind("stable_argsort", "keys", keys, "biuf", "a Boolean, integer or real")
    if keys.size and uses_tiles(where.queue):
        order = _order_by_library(keys, descending)
        if order is not None:
            return order
    # 32-bit indices halve the memory traffic of every pass.
    small = keys.size <= np.iinfo(np.int32).max
    counted = positions(where, (keys.size,)).astype(np.int32 if small else np.int64)
    result: ndarray = _sorted(keys, counted, descending, where)[1].astype(np.int64, copy=False)
    return result


def _sorted(
    keys: ndarray, values: ndarray | None, descending: bool, where: Placement
) -> tuple[ndarray, Any]:
    bits = 8 * keys.dtype.itemsize
    unsigned = np.dtype(f"u{keys.dtype.itemsize}")
    digit_of = _digit_of(keys.dtype.kind.replace("b", "u"), bits, descending)
    counting = kernel_of(make_digit_count_kernel, digit_of)
    placing = kernel_of(make_digit_place_kernel)
    moving = kernel_of(make_move_kernel, digit_of, values is not None)
    if not keys.size:
        return new(0, keys.dtype, where), None if values is None else new(0, values.dtype, where)
    if uses_tiles(where.queue):
        order = _order_by_library(keys, descending)
        if order is not None:
            return keys[order], None if values is None else values[order]
    index_space, count, chunk = chunks(where.queue, keys.size, _SMALLEST_CHUNK)
    counts = new((count, DIGITS), np.int64, where)
    key_bits = _reinterpreted(keys, unsigned)
    spares = [new(keys.size, unsigned, where) for _ in range(min(2, bits // _DIGIT_BITS))]
    value_spares = [] if values is None else [new(keys.size, values.dtype, where) for _ in spares]
    for number in range(bits // _DIGIT_BITS):
        shift = np.uint64(number * _DIGIT_BITS)
        call_kernel(counting, index_space, key_bits, counts, chunk, shift)
        call_kernel(placing, Range(1), counts)
        target = spares[number % 2]
        value_target = target if values is None else value_spares[number % 2]
        source = key_bits if values is None else values
        call_kernel(
            moving, index_space, key_bits, source, counts, target, value_target, chunk, shift
        )
        key_bits = target
        values = None if values is None else value_target
    return _reinterpreted(key_bits, keys.dtype), values


def _order_by_library(keys: ndarray, descending: bool) -> ndarray | None:
    """Return the sorting indices by a library's stable sort; ``None`` if a backend is forced.

    dparray's radix sort counts the digits of a chunk in one work-item and places the counts of all
    chunks in another, which suits CPUs. To reverse the order without moving NaN or equal keys, the
    keys are negated, or complemented if they are integers.
    """
    if descending:
        keys = ~keys if keys.dtype.kind in "biu" else -keys
    order = new(keys.size, np.int64, placement_of("sort", [("keys", keys)]))
    argsort = into_out(functools.partial(by_name("argsort"), axis=0))
    return compute("argsort", (("keys", keys),), library=argsort, out=order)


@functools.cache
def _digit_of(kind: str, bits: int, descending: bool) -> DeviceFunction:
    made: DeviceFunction = device_func(make_digit_of(kind, bits, descending))
    return made


def _reinterpreted(x: ndarray, dtype: np.dtype[Any]) -> ndarray:
    """Return a view of the memory as another dtype of the same size."""
    layout = materialize(x)
    return ndarray._from_layout(layout.block, layout.offset, x.shape, layout.strides, dtype)
