"""Scans, compaction and counting on GPUs: launches of the kernels in ``kernels/tiles.py``.

A GPU runs tens of thousands of work-items, and its memory accesses are efficient if adjacent lanes
access adjacent elements. The kernels for CPUs, which give each work-item a chunk of thousands of
consecutive elements, satisfy neither.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import empty_on
from dparray._array.ndarray import materialize, ndarray
from dparray._driver import traits_of
from dparray._driver.interface import Queue, Traits
from dparray._kernel.decorators import device_func
from dparray._kernel.function import DeviceFunction
from dparray._layout import Block, Layout
from dparray._placement import Placement
from dparray.algorithms.launches import Launch, known
from dparray.algorithms.line_scans import MIN_ELEMENTS, scalar_of, scan_lines
from dparray.algorithms.ranges import filled, kernel_of
from dparray.algorithms.workspace import zeros
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.combine import OPERATIONS
from dparray.kernels.histogram import bin_of_integer, make_bin_between_edges
from dparray.kernels.tiles import (
    COUNTED,
    ELEMENTS,
    TILES_COUNTED,
    count_flags,
    flags_at_end,
    make_carry_kernel,
    make_group_scan,
    make_local_count_kernel,
    make_look_back,
    make_look_back_kernel,
    make_mask_count_kernel,
    make_tile_access,
    make_tile_scan_kernel,
    make_tile_select_kernel,
    make_tile_total_kernel,
    whole_flags,
)
from dparray.memory.blocks import allocate
from dparray.memory.copies import copy_to_host

#: Whether integers are scanned and selected in one launch, in which groups wait for earlier ones;
#: otherwise in three, for comparisons.
LOOKS_BACK = True
# The work-items of a group, if the device supports groups of this size.
_LOCAL = 256
# The work-items of the one group that scans the results of all tiles, if the device supports it.
_LANES = 1024
# The counts of a group use at most this share of the local memory, so that two groups fit.
_LOCAL_MEMORY_SHARE = 2
# The kernels count in 32 bits.
_MAX_COUNTED = (1 << 31) - 1


def uses_tiles(queue: Queue) -> bool:
    """Return whether the kernels of this module should be used on a queue's device."""
    return not traits_of(queue).shares_memory


def local_size(traits: Traits, most: int = _LOCAL) -> int:
    """Return the size of a group: a multiple of the sub-group sizes, which are powers of two."""
    most = min(most, traits.group)
    return max(most // traits.sub_group, 1) * traits.sub_group


def scan(op: str, x: ndarray, out: ndarray, initial: Any, inclusive: bool) -> None:
    """Scan a nonempty 1-D array: integers in one launch, reals in three.

    In one launch, the order in which results are combined differs from run to run.
    """
    start = scalar_of(op, initial, out.dtype)
    form, key = materialize(x)[2:], (op, out.dtype, out.strides, start, inclusive, LOOKS_BACK)
    make = functools.partial(_make_scan, op, x, out.dtype, start, inclusive)
    known(("scan", x.queue, traits_of(x.queue), get_ident(), *form, *key), make)(x, out)


def _make_scan(
    op: str, x: ndarray, dtype: np.dtype[Any], start: Any, inclusive: bool
) -> Callable[[ndarray, ndarray], None]:
    """Return a function that scans arrays like ``x``."""
    kind: Any = dtype.type
    index_space, tiles, lanes = _tiles(x)
    combine, scanning = _functions(op, kind, lanes)
    scratch = LocalAccessor(lanes, dtype)
    tile = LocalAccessor(lanes * (ELEMENTS + 1), dtype)
    common = (op, combine, scanning, _access(kind, lanes))
    if dtype.kind not in "iu" or not LOOKS_BACK:
        carries = _make_carries(op, x, dtype, start)
        kernel = kernel_of(make_tile_scan_kernel, *common, kind, lanes, inclusive)
        scan_tiles = Launch(kernel, index_space, "r", "r", "w", scratch, tile)
        return lambda x, out: scan_tiles(x, carries(x), out)
    is_packed = dtype.itemsize <= 4 and "atomic64" in traits_of(x.queue).aspects
    back = _look_back(op, kind, lanes, is_packed)
    kernel = kernel_of(make_look_back_kernel, *common, back, kind, lanes, inclusive)
    progress = zeros(x.queue, tiles + 2, np.dtype(np.int64 if is_packed else np.int32))
    ones = LocalAccessor(1, dtype), LocalAccessor(1, np.dtype(np.int64))
    arguments = ("r", "w", progress, "w", "w", start, scratch, tile, *ones)
    look_back = Launch(kernel, index_space, *arguments)
    if is_packed:
        return lambda x, out: look_back(x, out, out, out)

    def run(x: ndarray, out: ndarray) -> None:
        total, carry = (allocate(x.queue, "device", (tiles,), dtype) for _ in range(2))
        look_back(x, out, total, carry)

    return run


def has_scan(op: str, x: ndarray, loop_dtype: np.dtype[Any]) -> bool:
    """Return whether :func:`scan_axis` can scan ``x`` in ``loop_dtype``, and is worth a launch.

    On GPUs, only the scan of a vector is fast.
    """
    return (
        x.size >= MIN_ELEMENTS
        and op in OPERATIONS
        and x.dtype.kind in "biuf"
        and loop_dtype.kind in "iuf"
        and "float16" not in (x.dtype.name, loop_dtype.name)
        and (x.ndim == 1 or not uses_tiles(x.queue))
    )


def scan_axis(
    op: str,
    x: ndarray,
    out: ndarray,
    axis: int = 0,
    *,
    initial: Any = None,
    inclusive: bool = True,
) -> None:
    """Scan a nonempty array along an axis; on GPUs, a vector."""
    if uses_tiles(x.queue):
        scan(op, x, out, initial, inclusive)
    else:
        scan_lines(op, x, out, axis, initial=initial, inclusive=inclusive)


def select(x: ndarray, mask: ndarray, where: Placement) -> ndarray:
    """Return the selected elements; the host reads only the size of the result."""
    return _selected(x, mask, where, x.dtype, is_index=False)


def positions(mask: ndarray) -> ndarray:
    """Return the indices of the true elements of a nonempty 1-D mask, as int64."""
    where = Placement(mask.queue, mask.usm_type)
    return _selected(mask, mask, where, np.dtype(np.int64), is_index=True)


def _selected(
    x: ndarray, mask: ndarray, where: Placement, dtype: np.dtype[Any], is_index: bool
) -> ndarray:
    values, flags = materialize(x), materialize(mask)
    words = _words(flags)
    make = functools.partial(_make_selection, mask, words, dtype, is_index)
    form = (*values[2:], *flags[2:], words[2], dtype, is_index, LOOKS_BACK)
    key = ("select", mask.queue, traits_of(mask.queue), get_ident(), *form)
    carries, select = known(key, make)
    carry = carries(flags, words)
    block, _, (count,), strides, int64 = carry
    (size,) = copy_to_host(Layout(block, 8 * (count - 1), (1,), strides, int64))
    out = allocate(*where, (int(size),), dtype)
    if size:
        select(values, flags, words, carry, out.block)
    return ndarray._from_layout(*out)


def _make_selection(
    mask: ndarray, words: Layout, dtype: np.dtype[Any], is_index: bool
) -> tuple[Callable[..., Layout], Callable[..., None]]:
    """Return functions that count before each tile, and that select elements."""
    index_space, tiles, lanes = _tiles(mask)
    _, scanning = _functions("add", np.int32, lanes)
    scratch, int64 = LocalAccessor(lanes, np.dtype(np.int32)), np.dtype(np.int64)
    kind: Any = dtype.type
    selecting = kernel_of(make_tile_select_kernel, scanning, _flags, lanes, kind, is_index)
    local = [LocalAccessor(2 * lanes, np.dtype(each)) for each in (np.uint64, np.int32)]
    arguments = ("r", "r", "r", "r", "w", scratch, *local)

    launch = Launch(selecting, index_space, *arguments)

    def select(x: Layout, mask: Layout, words: Layout, carry: Layout, out: Block) -> None:
        # The kernel does not read the size of the result, so one launch serves all sizes.
        launch(x, mask, words, carry, Layout(out, 0, mask.shape, (dtype.itemsize,), dtype))

    if not LOOKS_BACK or "atomic64" not in traits_of(mask.queue).aspects:
        carries = _make_carries("add", mask, int64, np.int64(0))
        return lambda mask, words: carries(mask), select
    back = _look_back("add", np.int64, lanes, True)
    _, adding = _functions("add", np.int64, lanes)
    counting = kernel_of(make_mask_count_kernel, adding, back, _flags, lanes)
    groups, one = -(-tiles // TILES_COUNTED), LocalAccessor(1, int64)
    progress = zeros(mask.queue, groups + 2, int64)
    arguments_of_count = ("r", "r", "w", progress, LocalAccessor(lanes, int64), one, one)
    count = Launch(counting, NdRange(groups * lanes, lanes), *arguments_of_count)

    def counted(mask: Layout, words: Layout) -> Layout:
        carry = allocate(mask.block.queue, "device", (tiles + 1,), int64)
        count(mask, words, carry)
        return carry

    return counted, select


def _words(mask: Layout) -> Layout:
    """Return the memory of a mask as uint64, without elements if it is not aligned."""
    block, offset, (size,), strides, _ = mask
    is_aligned = (block.pointer + offset) % 8 == 0 and strides == (1,)
    shape = (size // 8 if is_aligned else 0,)
    return Layout(block, offset if is_aligned else 0, shape, (8,), np.dtype(np.uint64))


def _tiles(x: ndarray) -> tuple[NdRange, int, int]:
    """Return the range over all tiles, their number, and the size of a group."""
    lanes = local_size(traits_of(x.queue))
    tiles = -(-x.size // (lanes * ELEMENTS))
    return NdRange(tiles * lanes, lanes), tiles, lanes


def _make_carries(
    op: str, x: ndarray, dtype: np.dtype[Any], start: Any
) -> Callable[[ndarray | Layout], Layout]:
    """Return a function of arrays like ``x`` that returns the result before each tile, and of all.

    It takes two launches.
    """
    index_space, tiles, lanes = _tiles(x)
    kind: Any = dtype.type
    functions = _functions(op, kind, lanes)
    reducing = kernel_of(make_tile_total_kernel, op, *functions, kind, lanes)
    totals = Launch(reducing, index_space, "r", "w", LocalAccessor(lanes, dtype))
    lanes = local_size(traits_of(x.queue), _LANES)
    carrying = kernel_of(make_carry_kernel, op, *_functions(op, kind, lanes), kind)
    scratch = LocalAccessor(lanes, dtype)
    carries = Launch(carrying, NdRange(lanes, lanes), "r", "w", scratch, start)

    queue = x.queue

    def run(x: ndarray | Layout) -> Layout:
        total = allocate(queue, "device", (tiles,), dtype)
        carry = allocate(queue, "device", (tiles + 1,), dtype)
        totals(x, total)
        carries(total, carry)
        return carry

    return run


_flags = tuple(map(device_func, (whole_flags, flags_at_end, count_flags)))


@functools.cache
def _access(dtype: type, lanes: int) -> tuple[DeviceFunction, ...]:
    """Return the device functions that load and store a tile."""
    return tuple(map(device_func, make_tile_access(dtype, lanes)))


@functools.cache
def _functions(op: str, dtype: type, lanes: int) -> tuple[DeviceFunction, DeviceFunction]:
    """Return the device functions that combine two values and scan the values of a group."""
    combine = device_func(OPERATIONS[op].combine)
    return combine, device_func(make_group_scan(combine, dtype, lanes))


@functools.cache
def _look_back(op: str, dtype: type, lanes: int, is_packed: bool) -> tuple[DeviceFunction, ...]:
    """Return the device functions with which a tile gets its number and looks back."""
    combine, _ = _functions(op, dtype, lanes)
    return tuple(map(device_func, make_look_back(op, combine, dtype, lanes, is_packed)))


@functools.cache
def bin_between_edges(dtype: type) -> DeviceFunction:
    """Return the device function that finds the bin of a value."""
    return device_func(make_bin_between_edges(dtype))


_bin_of_integer = device_func(bin_of_integer)


def counts_in_tiles(x: ndarray) -> bool:
    """Return whether the kernels of this module should count an array."""
    traits = traits_of(x.queue)
    return not traits.shares_memory and (x.size <= _MAX_COUNTED or "atomic64" in traits.aspects)


def count_in_bins(
    x: ndarray, edges: Any, numbers: np.ndarray, where: Placement
) -> tuple[ndarray, ndarray]:
    """Count the elements in bins of equal width, as int64; return the counts and the edges.

    Args:
        x: a 1-D array.
        edges: the edges as an array, or the layout of memory that is never freed.
        numbers: the outer edges, the bins divided by their distance, and the margin, as for
            :func:`dparray.kernels.histogram.make_bin_between_edges`.
        where: the placement of the results.
    """
    bins = edges.shape[0] - 1
    kind: Any = numbers.dtype.type
    copied = edges
    if type(edges) is Layout:
        copied = empty_on(where, (bins + 1,), edges.dtype)
    return _counted(bin_between_edges(kind), x, bins, where, edges, copied, numbers), copied


def count_integers(x: ndarray, bins: int, where: Placement) -> ndarray:
    """Count the occurrences of each integer from 0 on, as int64."""
    return _counted(_bin_of_integer, x, bins, where, x, x, np.zeros(4, np.int64))


def _counted(
    bin_of: DeviceFunction,
    x: ndarray,
    bins: int,
    where: Placement,
    edges: Any,
    copied: ndarray,
    numbers: np.ndarray,
) -> ndarray:
    is_kept = type(edges) is Layout
    make = functools.partial(_make_count, bin_of, x, bins, edges if is_kept else None, numbers)
    form = (*materialize(x)[2:], bins, is_kept and edges[0], numbers.dtype)
    key = ("count", x.queue, traits_of(x.queue), get_ident(), *form)
    launch, dtype = known(key, make)
    if dtype is None:
        out = empty_on(where, (bins,), _dtypes.int64)
    else:
        out = filled(bins, dtype.type(0), where)
    launch(*((x, out, copied) if is_kept else (x, out, edges, copied)), numbers=numbers)
    return out if dtype is None else out.astype(np.int64, copy=False)


def _make_count(
    bin_of: DeviceFunction, x: ndarray, bins: int, edges: Layout | None, numbers: np.ndarray
) -> tuple[Launch, np.dtype[Any] | None]:
    """Return a launch that counts arrays like ``x``, and the dtype of its counts in memory.

    The dtype is ``None`` if counts are added up in local memory first, and need no zeros.
    """
    traits = traits_of(x.queue)
    lanes = local_size(traits)
    # A work-item counts this many elements at a time, but small arrays use all units of the device.
    groups = max(1, min(-(-x.size // (lanes * COUNTED)), _resident_groups(traits, lanes)))
    fitting = traits.local_memory // _LOCAL_MEMORY_SHARE // (4 * max(bins, 1))
    copies = min(fitting, lanes // traits.sub_group)
    # All counts fit in 32 bits, for devices without atomic operations on 64.
    dtype = np.dtype(np.int64 if "atomic64" in traits.aspects else np.int32)
    sums = zeros(x.queue, bins + 1 if copies else 1, dtype)
    element: Any = x.dtype.type
    kernel = kernel_of(
        make_local_count_kernel, bin_of, element, lanes, copies > 0, edges is not None
    )
    counts, last = (LocalAccessor(max(each, 1), np.dtype(np.int32)) for each in (copies * bins, 1))
    arguments = ("r", "w", sums, edges or "r", "w", counts, last, max(copies, 1), *"nnnn")
    return Launch(kernel, NdRange(groups * lanes, lanes), *arguments), None if copies else dtype


def _resident_groups(traits: Traits, local: int) -> int:
    """Return how many groups a device holds at a time."""
    return max(1, traits.units * traits.threads * traits.sub_group // local)
