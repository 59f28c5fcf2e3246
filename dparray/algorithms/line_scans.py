"""Scans of the lines of an array along an axis, in kernels.

The kernels need work-groups that make progress independently of each other, as on CPUs; on other
devices the dpnp backend scans.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import empty_on
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._driver.interface import Queue
from dparray._kernel.decorators import device_func
from dparray._kernel.launch import call_kernel
from dparray._language.device_function import DeviceFunction
from dparray._placement import Placement
from dparray.algorithms.ranges import kernel_of
from dparray.kernel_api import NdRange
from dparray.kernels import scan
from dparray.kernels.combine import OPERATIONS, identity

# Up to this many elements, NumPy scans an array on the host faster than a kernel is launched.
MIN_ELEMENTS = 1 << 15
# A tile and its results fit in the cache of a core.
_TILE_BYTES = 1 << 18
# The minimum number of work-items per compute unit, so that its threads share the work evenly.
_ITEMS_A_UNIT = 8
# A work-item reads at least this many bytes of adjacent lines.
_MIN_COLUMN_BYTES = 256


def runs_scans(queue: Queue) -> bool:
    """Return whether the kernels of this module can run on a queue."""
    return traits_of(queue).shares_memory


def scan_lines(
    op: str,
    x: ndarray,
    out: ndarray,
    axis: int = 0,
    *,
    initial: Any = None,
    inclusive: bool = True,
) -> None:
    """Scan the lines of an array along an axis.

    Args:
        op: a name in ``kernels.combine.OPERATIONS``.
        x: an array of at least one dimension, of a real dtype except float16.
        out: an array with the shape of ``x`` and the dtype to combine in, on the same queue.
        axis: the axis, not negative.
        initial: the value before the first element of each line; the identity if ``None``. Only for
            1-D arrays.
        inclusive: whether each result includes the element at its position; must be true for arrays
            of more than one dimension.
    """
    if not x.size:
        return
    queue = out.queue
    length = x.shape[axis]
    width = prod(x.shape[axis + 1 :])
    results = out
    if x.ndim > 1:
        if not out.flags.c_contiguous:
            results = empty_on(Placement(queue, out.usm_type), out.shape, out.dtype)
        if not x.flags.c_contiguous:
            assign(results, x)
            x = results
        x, flat = x.reshape(-1), results.reshape(-1)
    else:
        flat = results
    if width > 1:
        _scan_columns(op, x, flat, length, width)
    else:
        tile = _TILE_BYTES // out.itemsize
        value = scalar_of(op, initial, out.dtype)
        scan_long_or_short = _scan_tiles if length > tile else _scan_whole
        scan_long_or_short(op, x, flat, length, tile, value, inclusive)
    if results is not out:
        assign(out, results)


def _scan_tiles(
    op: str, x: ndarray, out: ndarray, length: int, tile: int, initial: Any, inclusive: bool
) -> None:
    tiles = x.size // length * -(-length // tile)
    progress, carry = chain_memory(out.queue, tiles, out.dtype)
    scanning = kernel_of(scan.make_chained_scan_kernel, op, chain_of(op), out.dtype.type, inclusive)
    index_space = NdRange(tiles, 1)
    call_kernel(scanning, index_space, x, progress, carry, out, length, tile, initial)


def chain_memory(queue: Queue, tiles: int, dtype: np.dtype[Any]) -> tuple[ndarray, ndarray]:
    """Return the arguments ``progress`` and ``carry`` of a launch with chained tiles."""
    place = Placement(queue, "device")
    progress = empty_on(place, (tiles + 1,), _dtypes.int64)
    assign(progress, 0)
    return progress, empty_on(place, (tiles,), dtype)


def _scan_whole(
    op: str, x: ndarray, out: ndarray, length: int, tile: int, initial: Any, inclusive: bool
) -> None:
    lines = x.size // length
    share = max(1, min(tile // length, lines // _most_items(out)))
    scanning = kernel_of(scan.make_line_scan_kernel, op, out.dtype.type, inclusive)
    index_space = NdRange(-(-lines // share), 1)
    call_kernel(scanning, index_space, x, out, length, share, initial)


def _scan_columns(op: str, x: ndarray, out: ndarray, length: int, width: int) -> None:
    blocks = x.size // (length * width)
    vector = _MIN_COLUMN_BYTES // out.itemsize
    share = max(1, width * blocks // _most_items(out))
    share = min(-(-share // vector) * vector, width)
    scanning = kernel_of(scan.make_column_scan_kernel, op, out.dtype.type)
    index_space = NdRange((blocks, -(-width // share)), (1, 1))
    call_kernel(scanning, index_space, x, out, length, width, share)


def _most_items(out: ndarray) -> int:
    return int(_ITEMS_A_UNIT * traits_of(out.queue).units)


def scalar_of(op: str, initial: Any, dtype: np.dtype[Any]) -> Any:
    """Return the initial value of a line as a kernel scalar; the identity if ``None``."""
    value = identity(op, dtype.type) if initial is None else dtype.type(initial)
    # dpctl does not accept 8-bit scalars; the kernel uses the low bits.
    wide: Any = {"i": np.int64, "u": np.uint64}.get(dtype.kind)
    return value if wide is None else wide(value)


@functools.cache
def chain_of(op: str) -> DeviceFunction:
    """Return the device function that passes the combined value of a tile to the next tile."""
    return device_func(scan.make_chain(device_func(OPERATIONS[op].combine)))
