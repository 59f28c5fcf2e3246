"""Registration of arrays with einops and Dask, which keep lists of the types they know."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from dparray import _satellites
from dparray._array.ndarray import ndarray
from dparray._imports import when_imported


def _tell_einops(backends: ModuleType) -> None:
    """Let einops find dparray's backend among the subclasses of its ``AbstractBackend``."""
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

    # einops finds the class among the subclasses as long as a reference to it exists.
    backends.DparrayBackend = DparrayBackend  # type: ignore[attr-defined]


#: Modules of Dask, its workers and its serialization, and the functions that register arrays.
_OF_DASK = {
    "cloudpickle.cloudpickle": "tell_cloudpickle",
    "dask.array.backends": "tell_array_backends",
    "dask.sizeof": "tell_sizeof",
    "dask.tokenize": "tell_tokenize",
    "distributed.protocol.serialize": "tell_serialization",
}


def install() -> None:
    """Register arrays with the libraries, now if they are imported, else when they are."""
    when_imported("einops._backends", _tell_einops)
    for name, teller in _OF_DASK.items():
        when_imported(name, partial(_tell_dask, teller))


def travels_by_value(kind: type) -> None:
    """Make functions of a class travel by cloudpickle; see ``tell_cloudpickle``."""
    when_imported("cloudpickle.cloudpickle", lambda x: _tell_dask("tell_cloudpickle", x, kind))


def _tell_dask(teller: str, module: ModuleType, *kinds: type) -> None:
    getattr(_satellites.provider("dask"), teller)(module, *kinds)
