"""The common part of the adapters of dpnp and CuPy: functions by NumPy's names, and their place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dparray._driver.interface import Queue
from dparray._dtypes import is_bfloat16
from dparray.exceptions import DTypeError

#: Transforms whose results are real; both libraries write into their complex argument.
TO_REAL = frozenset({"irfft", "irfft2", "irfftn", "hfft"})


class Here(threading.local):
    """The queue of the present thread's calls, and the kind of memory that they allocate."""

    queue: Any = None
    usm_type = "device"

    @contextmanager
    def at(self, queue: Queue, usm_type: str) -> Iterator[None]:
        """Set both for calls inside a ``with`` block."""
        before = self.queue, self.usm_type
        self.queue, self.usm_type = queue, usm_type
        try:
            yield
        finally:
            self.queue, self.usm_type = before


def stored_dtype(library: str, dtype: np.dtype[Any], as_bits: bool) -> np.dtype[Any]:
    """Return the dtype of a library's array over memory of a dtype: uint16 for bits of bfloat16.

    Raises:
        DTypeError: the array is bfloat16, and ``as_bits`` is false.
    """
    if not is_bfloat16(dtype):
        return dtype
    if not as_bits:
        raise DTypeError(
            f"{library}, which computes this, has no bfloat16; write x.astype('float32') first"
        )
    return np.dtype(np.uint16)


class Names:
    """The functions of a module of a library, looked up when they are first used."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        function = self._found(f"{self._path}.{name}".lstrip("."))
        setattr(self, name, function)
        return function

    def _found(self, path: str) -> Any:
        """Return the function or the submodule at a path, such as ``linalg.inv``."""
        raise NotImplementedError
