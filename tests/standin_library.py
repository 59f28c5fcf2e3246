"""NumPy as the library of the stand-in driver: the shortest example of an adapter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dparray._driver import driver_of
from dparray._driver.interface import Queue
from dparray._dtypes import is_bfloat16
from dparray._layout import Layout
from dparray.exceptions import DTypeError
from dparray.memory import blocks
from dparray.memory.libraries import LibraryErrors


class _NumPy:
    """The :class:`dparray.memory.libraries.Library`; NumPy computes when it is called."""

    name = "NumPy"
    has_kernels = False

    def __init__(self) -> None:
        self.called: list[str] = []
        self._place: tuple[Any, str] = None, "device"

    def errors(self) -> LibraryErrors:
        return LibraryErrors(np.exceptions.AxisError, np.linalg.LinAlgError, MemoryError)

    def array(self, layout: Layout, as_bits: bool = False) -> np.ndarray:
        dtype = layout.dtype
        if is_bfloat16(dtype):
            if not as_bits:
                raise DTypeError("NumPy has no bfloat16")
            dtype = np.dtype(np.uint16)
        values = layout.block.memory.values if layout.block.memory else np.empty(0)
        return np.ndarray(layout.shape, dtype, values, layout.offset, layout.strides)

    def layout(self, array: np.ndarray) -> Layout:
        queue, usm_type = self._place
        made = blocks.allocate(queue, usm_type, array.shape, array.dtype)
        self.array(made)[...] = array
        return made

    def is_array(self, obj: object) -> bool:
        return isinstance(obj, np.ndarray | np.generic)

    @contextmanager
    def calls(self, queue: Queue, usm_type: str = "device") -> Iterator[None]:
        self._place = queue, usm_type
        driver_of(queue).wait_for_queue(queue)
        with np.errstate(all="ignore"):
            yield

    def store(self, target: np.ndarray, source: Any) -> None:
        target[...] = np.copy(source)

    def asarray(self, values: Any, dtype: Any = None, order: str = "K") -> np.ndarray:
        return np.asarray(values, dtype, order)  # type: ignore[call-overload,no-any-return]

    def asnumpy(self, array: np.ndarray) -> np.ndarray:
        return array

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        self.called.append(name)
        return found


library = _NumPy()
