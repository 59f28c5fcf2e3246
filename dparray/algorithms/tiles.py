"""Scans, compaction and counting on GPUs: launches of the kernels in ``kernels/tiles.py``.

A GPU runs tens of thousands of work-items, and its memory accesses are efficient if adjacent lanes
access adjacent elements. The kernels for CPUs, which give each work-item a chunk of thousands of
consecutive elements, satisfy neither.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._driver.interface import Queue, Traits
from dparray._kernel.decorators import device_func
from dparray._kernel.function import DeviceFunction
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement
from dparray.algorithms.line_scans import MIN_ELEMENTS, scalar_of, scan_lines
from dparray.algorithms.ranges import filled, kernel_of, new
from dparray.kernel_api import LocalAccessor, NdRange
from dparray.kernels.combine import OPERATIONS
from dparray.kernels.histogram import bin_of_integer, make_bin_between_edges
from dparray.kernels.tiles import (
    COUNTED,
    ELEMENTS,
    make_carry_kernel,
    make_group_scan,
    make_local_count_kernel,
    make_look_back_kernel,
    make_tile_access,
    make_tile_scan_kernel,
    make_tile_select_kernel,
    make_tile_total_kernel,
)

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
    combine, scanning = _functions(op, kind)
    is_exact = out.dtype.kind in "iu"
    make = make_look_back_kernel if is_exact else make_tile_scan_kernel
    kernel = kernel_of(make, op, combine, scanning, _access(kind), kind, inclusive)
    index_space, tiles, scratch, tile = _tiles(x, out.dtype)
    if not is_exact:
        carry = _carries(op, x, out.dtype, start)
        call_kernel(kernel, index_space, x, carry, out, scratch, tile)
        return
    where = Placement(x.queue, "device")
    progress = filled(tiles + 1, np.int32(0), where)
    total, carry = new(tiles, out.dtype, where), new(tiles, out.dtype, where)
    local = scratch, tile, LocalAccessor(1, out.dtype), LocalAccessor(1, np.dtype(np.int32))
    call_kernel(kernel, index_space, x, out, progress, total, carry, start, *local)


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
    carry = _carries("add", mask, np.dtype(np.int64), np.int64(0))
    out = new(int(carry[-1:].item()), x.dtype, where)
    if out.size:
        index_space, _, scratch, tile = _tiles(mask, np.dtype(np.int32))
        _, scanning = _functions("add", np.int32)
        selecting = kernel_of(make_tile_select_kernel, scanning, _access(np.int32))
        call_kernel(selecting, index_space, x, mask, carry, out, scratch, tile)
    return out


def _tiles(x: ndarray, dtype: np.dtype[Any]) -> tuple[NdRange, int, Any, Any]:
    """Return the range over all tiles, their number, and the local memory of a group."""
    local = local_size(traits_of(x.queue))
    tiles = -(-x.size // (local * ELEMENTS))
    tile = LocalAccessor(local * (ELEMENTS + 1), dtype)
    return NdRange(tiles * local, local), tiles, LocalAccessor(local, dtype), tile


def _carries(op: str, x: ndarray, dtype: np.dtype[Any], start: Any) -> ndarray:
    """Return the result before each tile, and that of all tiles."""
    index_space, tiles, scratch, _ = _tiles(x, dtype)
    where = Placement(x.queue, "device")
    total, carry = new(tiles, dtype, where), new(tiles + 1, dtype, where)
    kind: Any = dtype.type
    functions = _functions(op, kind)
    reducing = kernel_of(make_tile_total_kernel, op, *functions, kind)
    carrying = kernel_of(make_carry_kernel, op, *functions, kind)
    call_kernel(reducing, index_space, x, total, scratch)
    lanes = local_size(traits_of(x.queue), _LANES)
    of_lanes = LocalAccessor(lanes, dtype)
    call_kernel(carrying, NdRange(lanes, lanes), total, carry, of_lanes, start)
    return carry


@functools.cache
def _access(dtype: type) -> tuple[DeviceFunction, DeviceFunction]:
    """Return the device functions that load and store a tile."""
    load, store = make_tile_access(dtype)
    return device_func(load), device_func(store)


@functools.cache
def _functions(op: str, dtype: type) -> tuple[DeviceFunction, DeviceFunction]:
    """Return the device functions that combine two values and scan the values of a group."""
    combine = device_func(OPERATIONS[op].combine)
    return combine, device_func(make_group_scan(combine, dtype))


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
