"""Launches of handwritten kernels that are prepared once for all arrays of the same layouts.

A launch by ``call_kernel`` binds each argument by its class, and looks up the kernel for their
types. Here this is done by the first launch; the others fill in addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import numpy as np

from dparray import _hooks, config
from dparray._array.ndarray import materialize, ndarray
from dparray._kernel.function import KernelFunction
from dparray._layout import Layout
from dparray._runtime import host_maps
from dparray._runtime.launch import launch
from dparray._runtime.packing import Packed
from dparray.kernel_api import NdRange, Range
from dparray.memory.segments import Block

_MAX_KNOWN = 1024
_NO_NUMBERS = np.empty(0)
_known: dict[Any, Any] = {}


def known(key: Any, make: Callable[[], Any]) -> Any:
    """Return what ``make`` returned for a key."""
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        found = _known[key] = make()
    return found


def forget() -> None:
    """Drop all prepared launches."""
    _known.clear()


class Launch:
    """A launch of a kernel over a range.

    Args:
        kernel: the kernel; its device functions and the names that it refers to never change.
        index_space: the range.
        arguments: for each parameter an argument of :func:`call_kernel`, or the layout of memory
            that is never freed. A letter stands for an argument of each launch: ``"r"`` for an
            array that the kernel reads, ``"w"`` for one that it may write, ``"n"`` for a number.
    """

    def __init__(
        self, kernel: KernelFunction, index_space: NdRange | Range, *arguments: Any
    ) -> None:
        self._kernel, self._index_space, self._arguments = kernel, index_space, arguments
        if isinstance(index_space, Range):
            self._ranges: tuple[Any, Any] = tuple(index_space), None
        else:
            self._ranges = index_space.global_range, index_space.local_range
        self._compiled: Any = None

    def __call__(self, *arrays: Any, numbers: Any = _NO_NUMBERS) -> None:
        """Launch with arrays, or layouts of new memory, of the same dtypes and layouts each time.

        ``numbers`` is a NumPy array with the numbers that change.
        """
        if self._compiled is None or config.debug or host_maps.holds or _hooks.subscribers:
            self._launch_any(arrays, numbers)
            return
        words, memory = self._words.copy(), []
        for at, is_written, x in zip(self._places, self._are_written, arrays, strict=True):
            layout = x if type(x) is Layout else materialize(x)
            block = layout[0]
            if type(block) is not Block or (is_written and block.readers):
                self._launch_any(arrays, numbers)
                return
            words[at] = block.pointer + layout[1]
            memory.append(block.segment)
        memory = list(map(memory.__getitem__, self._order))
        if self._number_places:
            address = numbers.__array_interface__["data"][0]
            for at in self._number_places:
                words[at] = address
                address += numbers.itemsize
        packed = tuple.__new__(Packed, (b"", self._pack(*words), numbers, self._local_nbytes))
        launch(self._compiled, *self._ranges, (packed,), self._queue, (), (), memory, self._reads)

    def _launch_any(self, arrays: Sequence[Any], numbers: Any) -> None:
        """Launch by the general way, and prepare the next launch."""
        sources = {"r": iter(arrays), "n": iter(numbers)}
        sources["w"] = sources["r"]
        arguments = tuple(
            ndarray._from_layout(*value) if type(value) is Layout else value
            for each in self._arguments
            for value in [next(sources[each]) if type(each) is str else each]
        )
        self._kernel._launch(self._index_space, arguments)
        if self._compiled is None:
            self._prepare(arguments)

    def _prepare(self, arguments: tuple[Any, ...]) -> None:
        types, packed, self._queue, _, _ = self._kernel._bind(arguments)
        kinds = [each if type(each) is str else "" for each in self._arguments]
        words: list[int] = []
        objects: list[Any] = []
        starts: list[int] = []
        for kind, each in zip(kinds, packed, strict=True):
            # The second object of an array is its memory.
            objects.append(each.objects[0] if kind in ("r", "w") else each.objects)
            starts.append(len(words))
            words += Struct(f"{len(each.addresses) // 8}Q").unpack(each.addresses)
        places = [at for at, kind in enumerate(kinds) if kind in ("r", "w")]
        self._places = [starts[at] + 2 for at in places]  # after the numbers of elements and bytes
        self._number_places = [starts[at] for at, kind in enumerate(kinds) if kind == "n"]
        self._are_written = written = [kinds[at] == "w" for at in places]
        order = sorted(range(len(places)), key=written.__getitem__)
        self._order, self._reads = order, written.count(False)
        self._words, self._pack, self._objects = words, Struct(f"{len(words)}Q").pack, objects
        self._local_nbytes = sum(each.local_nbytes for each in packed)
        item = f"{'item' if self._ranges[1] is None else 'nditem'}:{len(self._ranges[0])}"
        self._compiled = self._kernel._compiled(item, types, self._queue)
