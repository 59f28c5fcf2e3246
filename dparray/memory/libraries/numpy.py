"""Let NumPy and SciPy compute in memory that the host reads: for a device that is the host.

Most of what NumPy computes there never comes here: ``compute(host=)`` calls it directly.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dparray._driver.interface import Queue
from dparray._layout import Layout
from dparray._runtime import queues
from dparray.exceptions import UnsupportedFeatureError
from dparray.memory import blocks, staging
from dparray.memory.libraries import LibraryErrors

__all__ = ["library"]


class _NumPy:
    """The :class:`dparray.memory.libraries.Library`; it computes when it is called."""

    name = "NumPy"
    has_kernels = False

    def __init__(self) -> None:
        self._place: tuple[Any, str] = None, "device"

    def errors(self) -> LibraryErrors:
        return LibraryErrors(np.exceptions.AxisError, np.linalg.LinAlgError, MemoryError)

    def array(self, layout: Layout, as_bits: bool = False) -> np.ndarray:
        return staging.host_view(layout)

    def layout(self, array: Any) -> Layout:
        queue, usm_type = self._place
        made = blocks.allocate(queue, usm_type, array.shape, array.dtype)
        self.array(made)[...] = array
        return made

    def is_array(self, obj: object) -> bool:
        return isinstance(obj, np.ndarray | np.generic)

    @contextmanager
    def calls(self, queue: Queue, usm_type: str = "device") -> Iterator[None]:
        self._place = queue, usm_type
        queues.wait(queue)
        with np.errstate(all="ignore"):
            yield

    def store(self, target: np.ndarray, source: Any) -> None:
        target[...] = source.copy() if np.may_share_memory(target, source) else source

    def asarray(self, values: Any, dtype: Any = None, order: str = "K") -> np.ndarray:
        return np.asarray(values, dtype, order)  # type: ignore[call-overload,no-any-return]

    def asnumpy(self, array: np.ndarray) -> np.ndarray:
        return array

    def __getattr__(self, name: str) -> Any:
        if name != "scipy":
            return getattr(np, name)
        try:
            importlib.import_module("scipy.linalg")
        except ImportError as error:
            raise UnsupportedFeatureError(
                f"SciPy computes this on the host and cannot be imported ({error}): "
                "pip install scipy"
            ) from None
        return importlib.import_module("scipy")


library = _NumPy()
