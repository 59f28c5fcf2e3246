"""Registrations of our arrays with einops and Dask: they keep lists of the types they know.

They are told when they are imported, before or after us; nothing is imported for that.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._functions import dask_registrations


def _tell_einops(backends: ModuleType) -> None:
    """Let einops find our backend among the subclasses of its ``AbstractBackend``."""
    library = sys.modules["dparray"]

    class DparrayBackend(backends.AbstractBackend):  # type: ignore[name-defined]
        framework_name = "dparray"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, ndarray)

        def from_numpy(self, x: np.ndarray) -> ndarray:
            return library.asarray(x)

        def to_numpy(self, x: ndarray) -> np.ndarray:
            return x.asnumpy()

        def arange(self, start: int, stop: int) -> ndarray:
            return library.arange(start, stop)

        def stack_on_zeroth_dimension(self, tensors: Sequence[ndarray]) -> ndarray:
            return library.stack(tensors)

        def add_axis(self, x: ndarray, new_position: int) -> ndarray:
            return library.expand_dims(x, axis=new_position)

        def tile(self, x: ndarray, repeats: tuple[int, ...]) -> ndarray:
            return library.tile(x, repeats)

        def concat(self, tensors: Sequence[ndarray], axis: int) -> ndarray:
            return library.concatenate(tensors, axis=axis)

        def is_float_type(self, x: ndarray) -> bool:
            return x.dtype.kind == "f"

        def einsum(self, pattern: str, *x: ndarray) -> ndarray:
            return library.einsum(pattern, *x)

    # einops finds it among the subclasses as long as a reference holds it.
    backends.DparrayBackend = DparrayBackend  # type: ignore[attr-defined]


_TELL: dict[str, Callable[[ModuleType], None]] = {
    "einops._backends": _tell_einops,
    **dask_registrations.TELL,
}


class _Teller(importlib.abc.MetaPathFinder):
    """Finds nothing itself: what is in ``_TELL`` is told right after its import."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        tell = _TELL.get(fullname)
        if tell is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                _tell_after(spec.loader, tell)
                return spec
        return None


def _tell_after(loader: Any, tell: Callable[[ModuleType], None]) -> None:
    execute = loader.exec_module

    def execute_and_tell(module: ModuleType) -> None:
        execute(module)
        tell(module)

    loader.exec_module = execute_and_tell


def install() -> None:
    """Tell the libraries that are imported, and those that will be."""
    for name, tell in _TELL.items():
        if name in sys.modules:
            tell(sys.modules[name])
    sys.meta_path.insert(0, _Teller())
