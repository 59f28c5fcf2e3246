"""``x[index]`` and ``x[index] = value``."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.apply import copy_of
from dparray._array.assignment import writable_layout, write
from dparray._array.host_fastpath import write_small
from dparray._array.ndarray import (
    as_method,
    give_memory,
    has_memory,
    ndarray,
)
from dparray._evaluate import host
from dparray._hooks import latest_work, note_call

as_array = np.asarray


@as_method
def __getitem__(self: ndarray, index: Any) -> ndarray:
    is_positions = type(index) is ndarray and index.shape
    if not is_positions and _layout.is_basic_index(index):
        layout = _layout.basic_index(self.shape, self.strides, self.offset, index)
        if not layout[0] and not has_memory(self) and self._alias is not None:
            give_memory(self)  # A second access to a value suggests that more will follow.
            layout = _layout.basic_index(self.shape, self.strides, self.offset, index)
        view = self._view(*layout)
        return view if view.shape or _has_ellipsis(index) else _element(view)
    mark = latest_work()
    taken = self._take_advanced(index)
    note_call("x[index]", mark, taken)
    return taken


@as_method
def __setitem__(self: ndarray, index: Any, value: Any) -> None:
    layout = writable_layout("x[index] = value", self)  # A view of a pending array is not written.
    if index is Ellipsis:
        write(self, value, layout, "x[...] = value")
    elif _layout.is_basic_index(index):
        block, offset, shape, strides, dtype = layout
        shape, strides, offset = _layout.basic_index(shape, strides, offset, index)
        view = ndarray._from_layout(block, offset, shape, strides, dtype)
        if type(value) is ndarray and _is_same(view, value):
            return
        if not write_small(view, Ellipsis, value):
            layout = _layout.Layout(block, offset, shape, strides, dtype)
            write(view, value, layout, "x[...] = value")
    else:
        self._put_advanced(index, value)


def _is_same(view: ndarray, value: ndarray) -> bool:
    """Return whether a value is already at its destination, as after ``x[1:] += 1``."""
    return (
        value._block is not None
        and value._block is view._block
        and value.dtype == view.dtype
        and value.shape == view.shape
        and value.strides == view.strides
        and value.offset == view.offset
    )


def _has_ellipsis(index: Any) -> bool:
    entries = index if type(index) is tuple else (index,)
    return any(entry is Ellipsis for entry in entries)


def _element(view: ndarray) -> ndarray:
    """Return a copy of the elements that integers select: later writes do not change it, as in
    NumPy.
    """
    seen = view._host_view
    if seen is not None and host.is_ready(view._block):
        return ndarray._from_host_value(seen.copy(), view.queue, view.usm_type)
    return copy_of(view)
