"""Scans, compaction and counting on GPUs: launches of the kernels in ``kernels/tiles.py``.

A GPU runs tens of thousands of work-items, and its memory accesses are efficient if adjacent lanes
access adjacent elements. The kernels for CPUs, which give each work-item a chunk of thousands of
consecutive elements, satisfy neither.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dparray._array.ndarray import materialize, ndarray
from dparray._driver import traits_of
from dparray._driver.interface import Queue, Traits
from dparray._kernel.decorators import device_func
from dparray._kernel.function import DeviceFunction
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement
from dparray.algorithms.line_scans import MIN_ELEMENTS, scalar_of, scan_lines
from dparray.algorithms.ranges import filled, kernel_of, new
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
    kind: Any = out.dtype.type
    index_space, tiles, lanes = _tiles(x)
    combine, scanning = _functions(op, kind, lanes)
    scratch = LocalAccessor(lanes, out.dtype)
    tile = LocalAccessor(lanes * (ELEMENTS + 1), out.dtype)
    common = (op, combine, scanning, _access(kind, lanes))
    if out.dtype.kind not in "iu" or not LOOKS_BACK:
        carry = _carries(op, x, out.dtype, start)
        kernel = kernel_of(make_tile_scan_kernel, *common, kind, lanes, inclusive)
        call_kernel(kernel, index_space, x, carry, out, scratch, tile)
        return
    where = Placement(x.queue, "device")
    is_packed = out.itemsize <= 4 and "atomic64" in traits_of(x.queue).aspects
    back = _look_back(op, kind, lanes, is_packed)
    kernel = kernel_of(make_look_back_kernel, *common, back, kind, lanes, inclusive)
    progress = zeros(x.queue, tiles + 2, np.dtype(np.int64 if is_packed else np.int32))
    total = carry = out
    if not is_packed:
        total, carry = new(tiles, out.dtype, where), new(tiles, out.dtype, where)
    ones = LocalAccessor(1, out.dtype), LocalAccessor(1, np.dtype(np.int64))
    call_kernel(kernel, index_space, x, out, progress, total, carry, start, scratch, tile, *ones)


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
    index_space, tiles, lanes = _tiles(mask)
    words = _words(mask)
    _, scanning = _functions("add", np.int32, lanes)
    scratch, int64 = LocalAccessor(lanes, np.dtype(np.int32)), np.dtype(np.int64)
    if LOOKS_BACK and "atomic64" in traits_of(mask.queue).aspects:
        carry = new(tiles + 1, int64, Placement(mask.queue, "device"))
        back = _look_back("add", np.int64, lanes, True)
        _, adding = _functions("add", np.int64, lanes)
        counting = kernel_of(make_mask_count_kernel, adding, back, _flags, lanes)
        groups, one = -(-tiles // TILES_COUNTED), LocalAccessor(1, int64)
        local = LocalAccessor(lanes, int64), one, one
        progress = zeros(mask.queue, groups + 2, int64)
        call_kernel(counting, NdRange(groups * lanes, lanes), mask, words, carry, progress, *local)
    else:
        carry = _carries("add", mask, int64, np.int64(0))
    out = new(int(carry[-1:].item()), dtype, where)
    if out.size:
        kind: Any = dtype.type
        selecting = kernel_of(make_tile_select_kernel, scanning, _flags, lanes, kind, is_index)
        tile, counts = (LocalAccessor(2 * lanes, np.dtype(each)) for each in (np.uint64, np.int32))
        call_kernel(selecting, index_space, x, mask, words, carry, out, scratch, tile, counts)
    return out


def _words(mask: ndarray) -> ndarray:
    """Return the memory of a mask as uint64, without elements if it is not aligned."""
    block, offset, *_ = materialize(mask)
    is_aligned = (block.pointer + offset) % 8 == 0 and mask.strides == (1,)
    shape, word = (mask.size // 8 if is_aligned else 0,), np.dtype(np.uint64)
    return ndarray._from_layout(block, offset if is_aligned else 0, shape, (8,), word)


def _tiles(x: ndarray) -> tuple[NdRange, int, int]:
    """Return the range over all tiles, their number, and the size of a group."""
    lanes = local_size(traits_of(x.queue))
    tiles = -(-x.size // (lanes * ELEMENTS))
    return NdRange(tiles * lanes, lanes), tiles, lanes


def _carries(op: str, x: ndarray, dtype: np.dtype[Any], start: Any) -> ndarray:
    """Return the result before each tile, and that of all tiles."""
    index_space, tiles, lanes = _tiles(x)
    where = Placement(x.queue, "device")
    total, carry = new(tiles, dtype, where), new(tiles + 1, dtype, where)
    kind: Any = dtype.type
    functions = _functions(op, kind, lanes)
    reducing = kernel_of(make_tile_total_kernel, op, *functions, kind, lanes)
    call_kernel(reducing, index_space, x, total, LocalAccessor(lanes, dtype))
    lanes = local_size(traits_of(x.queue), _LANES)
    carrying = kernel_of(make_carry_kernel, op, *_functions(op, kind, lanes), kind)
    scratch = LocalAccessor(lanes, dtype)
    call_kernel(carrying, NdRange(lanes, lanes), total, carry, scratch, start)
    return carry


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
    return uses_tiles(x.queue) and x.size <= _MAX_COUNTED


def count_in_bins(
    x: ndarray,
    edges: ndarray,
    ends: tuple[Any, Any],
    scale: Any,
    margin: Any,
    where: Placement,
) -> ndarray:
    """Count the elements in bins of equal width, as int64; ``ends`` are the outer edges."""
    kind: Any = edges.dtype.type
    return _counted(bin_between_edges(kind), x, edges.size - 1, where, edges, *ends, scale, margin)


def count_integers(x: ndarray, bins: int, where: Placement) -> ndarray:
    """Count the occurrences of each integer from 0 on, as int64."""
    return _counted(_bin_of_integer, x, bins, where, x, 0, 0, 0, 0)


def _counted(
    bin_of: DeviceFunction, x: ndarray, bins: int, where: Placement, *parameters: Any
) -> ndarray:
    traits = traits_of(x.queue)
    local = local_size(traits)
    # A work-item counts this many elements at a time, but small arrays use all units of the device.
    groups = max(1, min(-(-x.size // (local * COUNTED)), _resident_groups(traits, local)))
    fitting = traits.local_memory // _LOCAL_MEMORY_SHARE // (4 * max(bins, 1))
    copies = min(fitting, local // traits.sub_group)
    # All counts fit in 32 bits, for devices without atomic operations on 64.
    dtype = np.dtype(np.int64 if "atomic64" in traits.aspects else np.int32)
    kind: Any = dtype.type
    out = filled(bins, kind(0), where)
    counts = LocalAccessor(max(copies * bins, 1), np.dtype(np.int32))
    element: Any = x.dtype.type
    counting = kernel_of(make_local_count_kernel, bin_of, element, kind, copies > 0)
    index_space = NdRange(groups * local, local)
    call_kernel(counting, index_space, x, out, counts, max(copies, 1), *parameters)
    return out if kind is np.int64 else out.astype(np.int64)


def _resident_groups(traits: Traits, local: int) -> int:
    """Return how many groups a device holds at a time."""
    return max(1, traits.units * traits.threads * traits.sub_group // local)
