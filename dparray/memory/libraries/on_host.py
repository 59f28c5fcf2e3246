"""Let NumPy compute on the host where a device's library is not installed, if the policy for
fallbacks allows it (:mod:`dparray._runtime.fallback`).

The arrays of one call are NumPy arrays over copies of the blocks; what a call has changed is copied
back when it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dparray._driver.interface import Queue
from dparray._layout import Layout
from dparray.memory import blocks, copies
from dparray.memory.libraries.numpy import _NumPy


class _OnHost(_NumPy):
    """The :class:`dparray.memory.libraries.Library`; its arrays last for one call.

    The copies belong to a thread: by the address of a block, the block as bytes, their copy, and
    the bytes before the call. A call inside of another one uses its copies.
    """

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[int, tuple[Layout, np.ndarray, np.ndarray]] = {}
        self._depth = 0

    def _view(self, layout: Layout) -> np.ndarray:
        block = layout.block
        if isinstance(block, blocks.Positions):
            return block.values(layout)
        if block.pointer not in self._copies:
            whole = Layout(block, 0, (block.nbytes,), (1,), np.dtype(np.uint8))
            try:
                host = copies.copy_to_host(whole)
            except BaseException:
                self._copies.clear()
                raise
            self._copies[block.pointer] = whole, host, host.copy()
        values = self._copies[block.pointer][1]
        return np.ndarray(layout.shape, layout.dtype, values, layout.offset, layout.strides)

    def layout(self, array: Any) -> Layout:
        copy = blocks.allocate(*self._place, array.shape, array.dtype)
        copies.copy_from_host(np.ascontiguousarray(array).reshape(array.shape), copy)
        return copy

    @contextmanager
    def calls(self, queue: Queue, usm_type: str = "device") -> Iterator[None]:
        self._depth += 1
        try:
            with np.errstate(all="ignore"):
                yield
        finally:
            self._depth -= 1
            self._place = queue, usm_type  # of the results, which become layouts afterwards
            if not self._depth:
                copies_of_call, self._copies = self._copies, {}
                for whole, values, before in copies_of_call.values():
                    if not np.array_equal(values, before):
                        copies.copy_from_host(values, whole)


library = _OnHost()
