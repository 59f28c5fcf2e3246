"""``x[index]`` and ``x[index] = value`` on devices whose memory the host cannot access."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import astype_array, choose_elements, ops
from dparray._array.assignment import assign, writable_layout
from dparray._array.ndarray import materialize, ndarray
from dparray._driver import traits_of
from dparray._kernel.launch import call_kernel
from dparray._layout import is_contiguous
from dparray._placement import Placement
from dparray._runtime.queues import wait_to_read, wait_to_write
from dparray.algorithms.ranges import WORDS, kernel_of
from dparray.device import supports_usm
from dparray.kernel_api import Range
from dparray.kernels.gather import make_gather_kernel
from dparray.memory.copies import host_view


def can_gather(x: ndarray, positions: Sequence[ndarray]) -> bool:
    """Return whether the kernel should be used for an array and index arrays into it."""
    return (
        not traits_of(x.queue).shares_memory
        and x.size > 0
        and is_contiguous(x.shape, x.strides, x.itemsize)
        and all(each.size > 0 and each.dtype.kind in "iu" for each in positions)
    )


def gather(x: ndarray, positions: Sequence[ndarray], axis: int, where: Placement) -> ndarray | None:
    """Return the elements at the given indices along adjacent axes.

    The host waits for the kernel, which reports whether all indices are within bounds. Returns
    ``None`` if one is not.

    Args:
        x: a C-contiguous array.
        positions: one index array for each axis; their shapes must broadcast.
        axis: the first of the axes.
        where: the placement of the result.
    """
    flat, shape = _as_one_axis(x, positions, axis)
    out = empty_on(where, shape, x.dtype)
    fault = _Fault(where.queue)
    _launch("get", x, flat, out, slice(axis, axis + len(positions)), fault)
    return None if fault.is_set() else out


def put(x: ndarray, positions: Sequence[ndarray], axis: int, value: Any) -> bool:
    """Set the elements at the given indices, and return ``True``, if all are within bounds.

    A kernel checks all indices before another one writes; the host waits once, for both.

    Args:
        x: a C-contiguous array.
        positions: see :func:`gather`.
        axis: see :func:`gather`.
        value: a number that the dtype of ``x`` can represent, or an array with the placement of
            ``x`` that broadcasts to the shape of the selection.
    """
    function, where = "x[index] = value", Placement(x.queue, x.usm_type)
    memory = writable_layout(function, x).block.memory
    flat, shape = _as_one_axis(x, positions, axis)
    if materialize(flat).block.memory is memory:
        flat = flat.copy()
    role, values = "put", value
    if not isinstance(value, ndarray) and x.itemsize <= 8:
        role, values = "fill", np.uint64(np.asarray(value, x.dtype).view(WORDS[x.itemsize]))
    elif not (
        isinstance(value, ndarray)
        and (value.shape, value.dtype) == (shape, x.dtype)
        and value.flags.c_contiguous
        and materialize(value).block.memory is not memory
    ):
        values = empty_on(where, shape, x.dtype)
        assign(values, value, function)
    axes, fault = slice(axis, axis + len(positions)), _Fault(where.queue)
    _launch("check", x, flat, flat, axes, fault)
    _launch(role, x, flat, values, axes, fault)
    return not fault.is_set()


def _as_one_axis(
    x: ndarray, positions: Sequence[ndarray], axis: int
) -> tuple[ndarray, tuple[int, ...]]:
    """Return the indices along the indexed axes taken as one, and the shape of the selection."""
    end = axis + len(positions)
    flat = positions[0] if len(positions) == 1 else _flattened(positions, x.shape[axis:end])
    return flat, (*x.shape[:axis], *flat.shape, *x.shape[end:])


def _launch(role: str, x: ndarray, flat: ndarray, other: Any, axes: slice, fault: _Fault) -> None:
    """Launch the kernel with a role over the selected elements, or over the indices."""
    word = np.dtype(WORDS[min(x.itemsize, 8)])
    words = x.itemsize // word.itemsize
    extent, inner = math.prod(x.shape[axes]), math.prod(x.shape[axes.stop :]) * words
    is_flat, size = inner == 1 and axes.start == 0, x.size // extent * flat.size * words
    if role == "check":
        is_flat, size = True, flat.size
    elif isinstance(other, ndarray):
        other = _all_words(other, word)
    call_kernel(
        kernel_of(make_gather_kernel, is_flat, flat.dtype.kind == "i", role, size < 1 << 32),
        Range(size),
        *(_all_words(x, word), flat if flat.ndim == 1 else flat.reshape(-1), other, fault.array),
        *(np.int64(extent), np.int64(inner)),
    )


def _all_words(x: ndarray, word: np.dtype[Any]) -> ndarray:
    """Return the elements of a C-contiguous array as integers along one axis."""
    block, offset = materialize(x)[:2]
    shape = (x.nbytes // word.itemsize,)
    return ndarray._from_layout(block, offset, shape, (word.itemsize,), word)


class _Fault:
    """Allocate a number that a kernel sets, in host memory if the device can write to it."""

    def __init__(self, queue: Any) -> None:
        self._view = None
        if supports_usm(traits_of(queue), "host"):
            self.array = empty_on(Placement(queue, "host"), (1,), _dtypes.int32)
            layout = materialize(self.array)
            wait_to_write(layout.block)
            self._view = host_view(layout)
            self._view[0] = 0
        else:
            self.array = from_host(np.zeros(1, np.int32), queue, "device")

    def is_set(self) -> bool:
        """Wait for the kernel, and return whether it set the number."""
        if self._view is None:
            return bool(self.array.item())
        wait_to_read(materialize(self.array).block)
        return bool(self._view[0])


def _signed(positions: ndarray) -> ndarray:
    """Convert indices to int32 or int64, whichever is suitable."""
    if positions.dtype in (np.int32, np.int64):
        return positions
    if positions.dtype == np.uint64:  # the largest values would become negative
        positions = ops.minimum(positions, np.iinfo(np.int64).max)
    return astype_array(positions, _dtypes.int64)


def _flattened(positions: Sequence[ndarray], extents: Sequence[int]) -> ndarray:
    """Combine the indices of several axes; out of range if one is outside its axis."""
    flat = None
    is_outside = None
    for each, extent in zip(positions, extents, strict=True):
        at = _signed(each)
        if at.dtype != np.int64:
            at = astype_array(at, _dtypes.int64)
        at = choose_elements("x[index]", at < 0, at + extent, at)
        outside = ops.logical_or(at < 0, at >= extent)
        if flat is None or is_outside is None:
            flat, is_outside = at, outside
        else:
            flat = flat * extent + at
            is_outside = ops.logical_or(is_outside, outside)
    assert flat is not None
    assert is_outside is not None
    return choose_elements("x[index]", is_outside, math.prod(extents), flat)
