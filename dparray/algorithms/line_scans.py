"""Scans of the lines of an array along an axis, in kernels.

Needs work-groups that make progress independently of each other, as those of CPUs do; on other
devices the library scans.
"""

from __future__ import annotations

import functools
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import empty_on
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._compiler.device_function import DeviceFunction
from dparray._kernel.decorators import device_func, kernel
from dparray._kernel.function import KernelFunction
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement
from dparray._runtime import device_facts
from dparray.kernel_api import NdRange
from dparray.kernels import scan
from dparray.kernels.combine import OPERATIONS, identity

if TYPE_CHECKING:
    import dpctl

# Up to so many elements, NumPy scans an array on the host in the time of a launch.
MIN_ELEMENTS = 1 << 15
# A tile and its results stay in the cache of a core.
_TILE_BYTES = 1 << 18
# Work-items for each compute unit, at least, so that its threads share the work evenly.
_ITEMS_A_UNIT = 8
# A work-item takes so many bytes of neighboring lines across memory, at least.
_MIN_COLUMN_BYTES = 256


def runs_scans(queue: dpctl.SyclQueue) -> bool:
    """Return whether the kernels of this module may run on a queue."""
    return device_facts.is_cpu(queue)


def has_scan(op: str, x: ndarray, loop: np.dtype[Any]) -> bool:
    """Return whether kernels are there to scan ``x`` with numbers of ``loop``, and worth their
    launch.
    """
    return (
        x.size >= MIN_ELEMENTS
        and op in OPERATIONS
        and x.dtype.kind in "biuf"
        and loop.kind in "iuf"
        and "float16" not in (x.dtype.name, loop.name)
        and runs_scans(x.sycl_queue)
    )


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
        op: the name of one of ``kernels.combine.OPERATIONS``.
        x: an array of at least one dimension, of a real dtype but float16.
        out: an array of the shape of ``x`` and the dtype to combine in, on the same
            queue.
        axis: the axis, not negative.
        initial: what comes before the first element of each line; the identity if ``None``. Only
            for arrays of one dimension.
        inclusive: whether each result includes the element at its position, as it must if there are
            more dimensions than one.
    """
    if not x.size:
        return
    queue = out.sycl_queue
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
    progress, carry = chain_memory(out.sycl_queue, tiles, out.dtype)
    scanning = _chained_scan(op, out.dtype, inclusive)
    index_space = NdRange((tiles,), (1,))
    call_kernel(scanning, index_space, x, progress, carry, out, length, tile, initial)


def chain_memory(
    queue: dpctl.SyclQueue, tiles: int, dtype: np.dtype[Any]
) -> tuple[ndarray, ndarray]:
    """Return the arguments ``progress`` and ``carry`` of a launch whose tiles are chained."""
    place = Placement(queue, "device")
    progress = empty_on(place, (tiles + 1,), _dtypes.int64)
    assign(progress, 0)
    return progress, empty_on(place, (tiles,), dtype)


def _scan_whole(
    op: str, x: ndarray, out: ndarray, length: int, tile: int, initial: Any, inclusive: bool
) -> None:
    lines = x.size // length
    share = max(1, min(tile // length, lines // _most_items(out)))
    scanning = _line_scan(op, out.dtype, inclusive)
    index_space = NdRange((-(-lines // share),), (1,))
    call_kernel(scanning, index_space, x, out, length, share, initial)


def _scan_columns(op: str, x: ndarray, out: ndarray, length: int, width: int) -> None:
    blocks = x.size // (length * width)
    vector = _MIN_COLUMN_BYTES // out.itemsize
    share = max(1, width * blocks // _most_items(out))
    share = min(-(-share // vector) * vector, width)
    scanning = _column_scan(op, out.dtype)
    index_space = NdRange((blocks, -(-width // share)), (1, 1))
    call_kernel(scanning, index_space, x, out, length, width, share)


def _most_items(out: ndarray) -> int:
    return int(_ITEMS_A_UNIT * out.sycl_queue.sycl_device.max_compute_units)


def scalar_of(op: str, initial: Any, dtype: np.dtype[Any]) -> Any:
    """Return the initial value of a line, as a scalar for kernels; the identity if ``None``."""
    value = identity(op, dtype.type) if initial is None else dtype.type(initial)
    # dpctl takes no scalars of 8 bits; the kernel takes the bits it needs.
    wide: Any = {"i": np.int64, "u": np.uint64}.get(dtype.kind)
    return value if wide is None else wide(value)


@functools.cache
def chain_of(op: str) -> DeviceFunction:
    """Return the device function by which tiles hand on what they combine to."""
    return device_func(scan.make_chain(device_func(OPERATIONS[op].combine)))


@functools.cache
def _chained_scan(op: str, dtype: np.dtype[Any], inclusive: bool) -> KernelFunction:
    return kernel(scan.make_chained_scan_kernel(op, chain_of(op), dtype.type, inclusive))


@functools.cache
def _line_scan(op: str, dtype: np.dtype[Any], inclusive: bool) -> KernelFunction:
    return kernel(scan.make_line_scan_kernel(op, dtype.type, inclusive))


@functools.cache
def _column_scan(op: str, dtype: np.dtype[Any]) -> KernelFunction:
    return kernel(scan.make_column_scan_kernel(op, dtype.type))
