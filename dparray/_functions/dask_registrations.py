"""Registration of arrays with Dask and ``distributed``, each when it is imported.

Dask computes on chunks by NumPy's protocols. For everything else it looks up functions by type: how
to concatenate, contract, count, measure, name and send arrays.
"""

from __future__ import annotations

import linecache
import sys
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from dparray._array.allocation import from_host
from dparray._array.ndarray import materialize, ndarray
from dparray._functions.user_functions import ElementwiseFunction, ReductionFunction
from dparray._kernel.function import KernelFunction
from dparray._language.device_function import DeviceFunction
from dparray._language.references import referred_values
from dparray.device import default_device
from dparray.memory import copies
from dparray.random.generator import Generator, key_of


def _library() -> Any:
    return sys.modules["dparray"]


def tell_array_backends(backends: ModuleType) -> None:
    """Register Dask's functions of chunks, and the creation functions as backend ``"dparray"``."""
    dp = _library()
    backends.concatenate_lookup.register(ndarray, dp.concatenate)
    backends.tensordot_lookup.register(ndarray, dp.tensordot)
    backends.einsum_lookup.register(ndarray, _einsum)
    backends.empty_lookup.register(ndarray, dp.empty)
    backends.divide_lookup.register(ndarray, _divide)
    backends.percentile_lookup.register(ndarray, backends.percentile)
    backends.numel_lookup.register(ndarray, backends._numel_arraylike)
    backends.nannumel_lookup.register(ndarray, _count_of_numbers)
    backends.take_lookup.register(ndarray, _take)
    backends.to_numpy_dispatch.register(ndarray, lambda data, **options: data.asnumpy())
    backends.array_creation_dispatch.register_backend("dparray", _backend(backends))


def _einsum(*operands: Any, dtype: Any = None, **options: Any) -> ndarray:
    """Call ``einsum`` without the memory order and casting that Dask passes, which are defaults."""
    result = _library().einsum(*operands)
    return result if dtype is None else result.astype(dtype, copy=False)


def _divide(x1: Any, x2: Any, out: Any = None, dtype: Any = None) -> ndarray:
    return _library().divide(x1, x2, out=out, dtype=dtype)


def _take(x: ndarray, indices: Any, axis: int = 0) -> ndarray:
    """Take elements at indices that Dask gives as a NumPy array."""
    if isinstance(indices, np.ndarray):
        indices = from_host(indices, x.queue, x.usm_type)
    return x.take(indices, axis=axis)


def _count_of_numbers(x: ndarray, **options: Any) -> ndarray:
    """Return the number of elements that are not NaN."""
    dp = _library()
    return dp.sum(~dp.isnan(x), **options)


def _backend(backends: ModuleType) -> Any:
    """Return the backend selected by ``dask.config.set({"array.backend": "dparray"})``."""
    dp = _library()

    def creation(name: str) -> Any:
        def create(*args: Any, meta: Any = None, **options: Any) -> Any:
            return _created(name, *args, meta=dp.empty(()) if meta is None else meta, **options)

        return staticmethod(create)

    class DparrayBackend(backends.ArrayBackendEntrypoint):  # type: ignore[name-defined]
        """Creation functions whose chunks are dparray arrays."""

        @classmethod
        def to_backend_dispatch(cls) -> Any:
            return _on_device

        @classmethod
        def to_backend(cls, data: Any, **options: Any) -> Any:
            if isinstance(data._meta, ndarray):
                return data
            return data.map_blocks(_on_device, **options)

        @property
        def RandomState(self) -> Any:
            return dp.random.RandomState

        @property
        def default_bit_generator(self) -> Any:
            return ChunkGenerator

        ones, zeros, empty, full = map(creation, ("ones", "zeros", "empty", "full"))

        @staticmethod
        def arange(*args: Any, like: Any = None, **options: Any) -> Any:
            return _created("arange", *args, like=dp.empty(()) if like is None else like, **options)

    return DparrayBackend()


def _on_device(data: Any, **options: Any) -> ndarray:
    return data if isinstance(data, ndarray) else _library().asarray(data, **options)


def _created(name: str, *args: Any, **options: Any) -> Any:
    """Return Dask's creation function for chunks like a given example array."""
    import dask
    import dask.array

    with dask.config.set({"array.backend": "numpy"}):
        return getattr(dask.array, name)(*args, **options)


class ChunkGenerator(Generator):
    """Return the random stream of a chunk, on the default device."""

    def __init__(self, seed: Any = None) -> None:
        own = isinstance(seed, np.random.SeedSequence)
        self._seed_seq = seed if own else np.random.SeedSequence(key_of(seed))
        super().__init__(key_of(self._seed_seq), default_device().queue, "device")

    def __reduce__(self) -> Any:
        return ChunkGenerator, (self._seed_seq,)

    def __dask_tokenize__(self) -> Any:
        return "dparray.random", self._key


def tell_sizeof(module: ModuleType) -> None:
    """Return the bytes of device memory that an array holds, which spilling relies on."""
    module.sizeof.register(ndarray, lambda x: x.nbytes + 120)


def tell_tokenize(module: ModuleType) -> None:
    """Return a token for an array: equal arrays on one device have the same token."""

    @module.normalize_token.register(ndarray)
    def normalize(x: ndarray) -> Any:
        values = module.normalize_token(x.asnumpy())
        return "dparray", values, str(x.device), x.usm_type


class _Kept:
    """Host memory of an array, which keeps the array alive while the memory is in use."""

    def __init__(self, owner: ndarray, values: np.ndarray) -> None:
        self.owner = owner
        self.__array_interface__ = values.__array_interface__


def host_values(x: ndarray) -> np.ndarray:
    """Return the values for the host: shared memory on a CPU device, otherwise a copy.

    Waits for pending work on the array.
    """
    layout = materialize(x)
    views = copies.host_views("asarray", x.queue, layout)
    if views is None:
        return x.asnumpy()
    return np.asarray(_Kept(x, views[0])) if x.size else views[0]


def serialize(x: ndarray, context: Any = None) -> tuple[dict[str, Any], list[Any]]:
    """Serialize an array to a header and frames, without a copy if the host can read it."""
    values = host_values(x)
    order: Any = "F" if values.flags.f_contiguous and not values.flags.c_contiguous else "C"
    # The elements of a view with gaps are copied into contiguous memory.
    flat: Any = values.reshape(-1, order=order) if values.size else np.empty(0, values.dtype)
    flat = np.ascontiguousarray(flat)
    header = {
        "shape": x.shape,
        "dtype": values.dtype.str,
        "order": order,
        "usm_type": x.usm_type,
    }
    return header, [memoryview(flat).cast("B") if flat.size else b""]


def deserialize(header: dict[str, Any], frames: list[Any]) -> ndarray:
    """Deserialize an array to the default device of this process or thread."""
    (frame,) = frames
    dtype = np.dtype(header["dtype"])
    values = np.frombuffer(frame, dtype).reshape(header["shape"], order=header["order"])
    return from_host(values, default_device().queue, header["usm_type"])


def tell_serialization(module: ModuleType) -> None:
    """Register how ``distributed`` sends arrays, in the families ``"dask"`` and ``"dparray"``."""
    module.dask_serialize.register(ndarray, serialize)
    module.dask_deserialize.register(ndarray, deserialize)

    def dumps(x: Any) -> tuple[dict[str, Any], list[Any]]:
        if not isinstance(x, ndarray):
            raise NotImplementedError(type(x).__name__)
        header, frames = serialize(x)
        plain = {"sub-header": header, "serializer": "dparray"}
        return plain | {"compression": (False,) * len(frames)}, frames

    def loads(header: dict[str, Any], frames: list[Any]) -> ndarray:
        return deserialize(header["sub-header"], frames)

    module.register_serialization_family("dparray", dumps, loads)


def tell_cloudpickle(module: ModuleType, *kinds: type) -> None:
    """Make compiled functions travel by value where Python functions do, with their source files.

    ``dp.jit`` compiles from source. ``_made_by`` is the callable and its arguments that made one.
    """

    def goes_by_value(value: Any) -> bool:
        home = value.__module__ or "__main__"
        found: Any = sys.modules.get(home)
        for name in value.__qualname__.split("."):
            found = getattr(found, name, None)
        by_value = ("__main__", *module.list_registry_pickle_by_value())
        return found is not value or any(f"{home}.".startswith(f"{each}.") for each in by_value)

    def add_files(value: Any, files: dict[str, list[str]], seen: set[Any]) -> dict[str, list[str]]:
        function = getattr(value, "py_func", value)
        if isinstance(function, FunctionType) and function not in seen and goes_by_value(value):
            file = function.__code__.co_filename
            files[file] = linecache.getlines(file)
            seen.add(function)
            for each in referred_values(function).values():
                add_files(each, files, seen)
        return files

    def reduced(value: Any) -> Any:
        if not goes_by_value(value):
            return value.__reduce__()
        return _rebuilt, (add_files(value, {}, set()), *value._made_by)

    for kind in kinds or (KernelFunction, DeviceFunction, ElementwiseFunction, ReductionFunction):
        module.Pickler._dispatch_table[kind] = reduced


def _rebuilt(files: dict[str, list[str]], make: Any, *arguments: Any) -> Any:
    for file, lines in files.items():
        linecache.cache[file] = sum(map(len, lines)), None, lines, file
    return make(*arguments)
