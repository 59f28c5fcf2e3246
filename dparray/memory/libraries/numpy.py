"""Let NumPy and SciPy compute in memory that the host reads: for a device that is the host.

Most of what NumPy computes there never comes here: ``compute(host=)`` calls it directly.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from dparray._driver.interface import Queue
from dparray._dtypes import is_bfloat16
from dparray._layout import Layout
from dparray._runtime import queues
from dparray.exceptions import DTypeError, UnsupportedFeatureError
from dparray.memory import blocks, staging
from dparray.memory.libraries import LibraryErrors

__all__ = ["library"]


class _NumPy(threading.local):
    """The :class:`dparray.memory.libraries.Library`; it computes when it is called.

    The queue and the USM type of its results belong to a thread.
    """

    name = "NumPy"
    sorts_in_place = False

    def __init__(self) -> None:
        self._place: tuple[Any, str] = None, "device"

    def errors(self) -> LibraryErrors:
        return LibraryErrors(np.exceptions.AxisError, np.linalg.LinAlgError, MemoryError)

    def array(self, layout: Layout, as_bits: bool = False) -> np.ndarray:
        if is_bfloat16(layout.dtype):
            if not as_bits:
                raise DTypeError("NumPy has no bfloat16")
            layout = layout._replace(dtype=np.dtype(np.uint16))
        return self._view(layout)

    def _view(self, layout: Layout) -> np.ndarray:
        return staging.view_at_address(layout)

    def layout(self, array: Any) -> Layout:
        queue, usm_type = self._place
        copy = blocks.allocate(queue, usm_type, array.shape, array.dtype)
        queues.wait_to_write(copy.block)  # Work on the memory's previous array may not be done.
        self.array(copy)[...] = array
        return copy

    def is_array(self, obj: object) -> bool:
        return isinstance(obj, np.ndarray | np.generic)

    @contextmanager
    def calls(self, queue: Queue, usm_type: str = "device") -> Iterator[None]:
        queues.wait(queue)
        try:
            with np.errstate(all="ignore"):
                yield
        finally:
            self._place = queue, usm_type  # of the results, which become layouts afterwards

    def store(self, target: np.ndarray, source: Any) -> None:
        target[...] = source.copy() if np.may_share_memory(target, source) else source

    def asarray(self, values: Any, dtype: Any = None, order: str = "K") -> np.ndarray:
        return np.asarray(values, dtype, order)  # type: ignore[call-overload]

    def asnumpy(self, array: np.ndarray) -> np.ndarray:
        return array

    def unique_values(self, x: np.ndarray) -> np.ndarray:
        return np.unique(x, equal_nan=False)  # NumPy's unique_values does not sort.

    def __getattr__(self, name: str) -> Any:
        if name != "scipy":
            return _REPLACED.get(name) or getattr(np, name)
        try:
            importlib.import_module("scipy.linalg")
        except ImportError as error:
            raise UnsupportedFeatureError(
                f"SciPy computes this on the host and cannot be imported ({error}): "
                "pip install scipy"
            ) from None
        return importlib.import_module("scipy")


_lock = threading.Lock()
#: How many callers share products out, and the threads of OpenBLAS before.
_sharing = _threads_before = 0


@contextmanager
def products_on_calling_threads() -> Iterator[None]:
    """Let NumPy's products use no threads of their own meanwhile, in the whole process.

    A product that OpenBLAS divides ends when its last thread does: on a busy machine its caller
    waits until the system runs that thread. Callers that divide products themselves do not.
    """
    global _sharing, _threads_before
    get, change = _blas_threads()
    with _lock:
        if not _sharing:
            _threads_before = get()
            change(1)
        _sharing += 1
    try:
        yield
    finally:
        with _lock:
            _sharing -= 1
            if not _sharing:
                change(_threads_before)


@cache
def _blas_threads() -> tuple[Callable[[], int], Callable[[int], Any]]:
    """Return the functions that read and set the threads of the OpenBLAS in NumPy's wheels."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in folder.glob("libscipy_openblas*"):
            loaded = ctypes.CDLL(str(path))
            end = "64_" if "64_" in path.name else ""
            with suppress(AttributeError):
                get = loaded[f"scipy_openblas_get_num_threads{end}"]
                return get, loaded[f"scipy_openblas_set_num_threads{end}"]
    return lambda: 1, lambda threads: None


def _cumulative_logsumexp(
    x: Any, *, axis: int, dtype: Any, include_initial: bool = False, out: np.ndarray
) -> None:
    target = np.moveaxis(out, axis, 0)
    if include_initial:
        target[0], target = -np.inf, target[1:]
    np.logaddexp.accumulate(np.moveaxis(x, axis, 0), 0, dtype, out=target)


#: Functions that NumPy lacks, or whose defaults differ from those of a :class:`Library`.
_REPLACED: dict[str, Callable[..., Any]] = {
    "argsort": partial(np.argsort, kind="stable"),
    "cumulative_logsumexp": _cumulative_logsumexp,
}

library = _NumPy()
