"""A stand-in for CuPy over the memory of the stand-in for NVIDIA's driver; NumPy computes.

    from tests.cuda import cupy_standin
    cupy_standin.install()    # before anything imports cupy

Real CuPy needs a real driver. These modules ``cupy`` and ``cupyx`` have its classes of memory and
streams, and NumPy's functions under the names that CuPy has, if it is installed. Arrays are in
device memory, which the host cannot reach otherwise. A call first waits for the current stream of
the thread alone, so that a missing order of other streams shows. As in CuPy, results without
dimensions are arrays, arrays are never converted to NumPy's implicitly, and singular matrices raise
only with ``cupyx.errstate(linalg="raise")``.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import operator
import re
import sys
import threading
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.cuda import standin

_OPERATORS = [
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"),
    *("lshift", "rshift"),
]
_COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]
_NUMPYS = (np.ndarray, np.generic)
_UNARY = ["neg", "pos", "abs", "invert"]


#: The names of the functions that were called.
called: list[str] = []


class OutOfMemoryError(MemoryError):
    """An allocation failed."""


# --- memory and streams ---------------------------------------------------------------------------


class UnownedMemory:
    """Memory of another library."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class Memory(UnownedMemory):
    """Memory from the driver, freed when the object dies."""

    def __init__(self, size: int) -> None:
        from cuda.bindings import driver

        error, pointer = driver.cuMemAlloc(max(1, size))
        if int(error):
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes")
        super().__init__(int(pointer), size, None, _thread.device)

    def __del__(self) -> None:
        from cuda.bindings import driver

        driver.cuMemFree(self.ptr)


class MemoryPointer:
    """An address in memory."""

    def __init__(self, mem: UnownedMemory, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id


def _allocate(size: int) -> MemoryPointer:
    return MemoryPointer(Memory(size), 0)


class _Thread(threading.local):
    stream: Any = None
    device = 0
    raises = False
    allocator = staticmethod(_allocate)


_thread = _Thread()


class Stream:
    """A stream; as a context, the current one of the thread."""

    def __init__(self, ptr: int = 0, device_id: int = -1) -> None:
        self.ptr, self.device_id = int(ptr), device_id
        self._before: list[Any] = []

    @classmethod
    def from_external(cls, source: Any) -> Stream:
        """Return the stream of an object with ``__cuda_stream__``."""
        return cls(source.__cuda_stream__()[1])

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    def synchronize(self) -> None:
        """Wait for the stream's work."""
        from cuda.bindings import driver

        (error,) = driver.cuStreamSynchronize(self.ptr)
        if int(error):
            raise RuntimeError(error.name)

    def use(self) -> Stream:
        """Make this the current stream of the thread."""
        _thread.stream = self
        return self

    def __enter__(self) -> Stream:
        self._before.append(_thread.stream)
        return self.use()

    def __exit__(self, *_: object) -> None:
        _thread.stream = self._before.pop()


def get_current_stream() -> Stream:
    """Return the current stream of the thread."""
    return _thread.stream or Stream(0)


class Device:
    """A device; as a context, the current one of the thread."""

    def __init__(self, device: int = 0) -> None:
        self.id, self._before = int(device), [0]

    def use(self) -> None:
        """Make this the current device of the thread."""
        _thread.device = self.id

    def synchronize(self) -> None:
        """Wait for all work."""
        from cuda.bindings import driver

        driver.cuCtxSynchronize()

    def __enter__(self) -> Device:
        self._before.append(_thread.device)
        self.use()
        return self

    def __exit__(self, *_: object) -> None:
        _thread.device = self._before.pop()


@contextlib.contextmanager
def using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    """Set the allocator of the thread."""
    before, _thread.allocator = _thread.allocator, allocator or _allocate  # type: ignore[assignment]
    try:
        yield
    finally:
        _thread.allocator = before


@contextlib.contextmanager
def errstate(*, linalg: str | None = None, **_: Any) -> Iterator[None]:
    """Set whether singular matrices raise."""
    before, _thread.raises = _thread.raises, linalg == "raise"
    try:
        yield
    finally:
        _thread.raises = before


# --- arrays ---------------------------------------------------------------------------------------


def _bytes_of(pointer: int, nbytes: int) -> tuple[np.ndarray, int]:
    """Return the stand-in's whole memory, and the place of an address in it."""
    memory = standin.install()._memory(0)
    return memory.bytes, pointer - memory.start


class ndarray:
    """An array in device memory."""

    __array_priority__ = 100

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: MemoryPointer | None = None,
        strides: Any = None,
        order: str = "C",
    ) -> None:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        dtype = np.dtype(dtype)
        if memptr is None:
            memptr = _thread.allocator(max(1, prod(shape) * dtype.itemsize))
        self.data = memptr
        whole, place = _bytes_of(memptr.ptr, dtype.itemsize)
        if 0 in shape:
            self._view = np.empty(shape, dtype, order)
        else:
            first = whole[place : place + dtype.itemsize].view(dtype)
            steps = strides
            if strides is None:
                steps = [dtype.itemsize * each for each in np.empty(shape, "u1", order).strides]
            self._view = np.lib.stride_tricks.as_strided(first, shape, steps)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.data.ptr, False),
            "strides": self.strides,
            "version": 3,
            "stream": get_current_stream().ptr or 1,
        }

    @property
    def device(self) -> Device:
        return Device(max(0, self.data.device_id))

    def get(self, *_: Any, **__: Any) -> np.ndarray:
        """Return the values on the host."""
        get_current_stream().synchronize()
        return self._view.copy()

    def set(self, values: np.ndarray, *_: Any) -> None:
        """Take values of the host."""
        get_current_stream().synchronize()
        self._view[...] = values

    def __getitem__(self, index: Any) -> Any:
        return _call(operator.getitem, self, index, shares=True)

    def __setitem__(self, index: Any, value: Any) -> None:
        _call(operator.setitem, self, index, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._view, name)
        if not callable(found):
            return _wrapped(found, self, shares=True)
        shares = name in (
            "reshape",
            "view",
            "transpose",
            "swapaxes",
            "squeeze",
            "diagonal",
            "ravel",
        )
        return lambda *given, **named: _call(found, *given, owner=self, shares=shares, **named)

    def sort(self, axis: int = -1) -> None:
        """Sort in place, negative NaN first."""
        _call(operator.setitem, self, ..., _call(_sort, self, axis))

    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __index__(self) -> int:
        return operator.index(self.get()[()])

    __hash__ = None  # type: ignore[assignment]


def _add_operators() -> None:
    for name in (*_OPERATORS, *_COMPARISONS, *_UNARY):
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(ndarray, f"__{name}__", lambda *given, function=function: _call(function, *given))
    for name in _OPERATORS:
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(
            ndarray,
            f"__r{name}__",
            lambda x, other, function=function: _call(function, other, x),
        )

        def in_place(x: ndarray, other: Any, function: Any = function) -> ndarray:
            x[...] = _call(function, x, other)
            return x

        setattr(ndarray, f"__i{name}__", in_place)


_add_operators()


def _plain(value: Any) -> Any:
    if hasattr(value, "__cuda_array_interface__"):
        return asarray(value)._view
    if isinstance(value, tuple | list):
        items = [_plain(each) for each in value]
        return type(value)(items) if type(value) in (tuple, list) else type(value)(*items)
    return value


def _wrapped(value: Any, owner: ndarray | None = None, *, shares: bool = False) -> Any:
    """Return a result of NumPy as one of CuPy: numbers are arrays without dimensions."""
    if isinstance(value, tuple) and any(isinstance(each, _NUMPYS) for each in value):
        items = [_wrapped(each, owner, shares=shares) for each in value]
        return type(value)(items) if type(value) is tuple else type(value)(*items)
    if isinstance(value, list) and any(isinstance(each, np.ndarray) for each in value):
        return [_wrapped(each, owner, shares=shares) for each in value]
    if not isinstance(value, _NUMPYS):
        return value
    value = np.asarray(value)
    if shares and owner is not None and value.size and np.shares_memory(value, owner._view):
        distance = value.__array_interface__["data"][0] - owner._view.__array_interface__["data"][0]
        memory = owner.data.mem
        pointer = MemoryPointer(memory, owner.data.ptr - memory.ptr + distance)
        return ndarray(value.shape, value.dtype, pointer, value.strides)
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    result = ndarray(value.shape, value.dtype, order=order)
    result._view[...] = value
    return result


def _call(
    function: Callable[..., Any],
    *arguments: Any,
    owner: ndarray | None = None,
    shares: bool = False,
    **named: Any,
) -> Any:
    get_current_stream().synchronize()
    if owner is None:
        owner = next((each for each in arguments if isinstance(each, ndarray)), None)
    out = named.get("out")
    with np.errstate(all="ignore"):
        found = function(
            *map(_plain, arguments), **{key: _plain(each) for key, each in named.items()}
        )
    return out if isinstance(out, ndarray) else _wrapped(found, owner, shares=shares)


# --- modules --------------------------------------------------------------------------------------


def _keys(x: np.ndarray) -> np.ndarray:
    """Return numbers in the order of a radix sort, which puts negative NaN first."""
    return np.where(np.isnan(x) & np.signbit(x), -np.inf, x) if x.dtype.kind == "f" else x


def _argsort(x: np.ndarray, axis: int = -1, **options: Any) -> np.ndarray:
    return np.argsort(_keys(x), axis, **options)


def _sort(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.take_along_axis(x, np.argsort(_keys(x), axis, kind="stable"), axis)


def _histogram(x: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    counts, edges = np.histogram(x, **options)
    return counts if options.get("weights") is None else counts.astype(float), edges


def _interp(x: np.ndarray, xp: np.ndarray, *values: Any, **options: Any) -> np.ndarray:
    return np.where(np.isnan(x), np.nan, np.interp(x, xp, *values, **options))


def _log2(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.asarray(np.log2(x, out=out))
    return np.asarray(np.multiply(np.log(x), x.dtype.type(1 / np.log(2)), out=out))


def _lu_solve(factors: tuple[np.ndarray, np.ndarray], b: np.ndarray, **options: Any) -> np.ndarray:
    import scipy.linalg

    lu, rows = factors
    assert b.size, "cuSOLVER reports nothing here, and CuPy reads the report"
    rows = np.ascontiguousarray(rows).view(np.int32)[: len(lu)]  # whatever their dtype
    return np.asarray(scipy.linalg.lu_solve((lu, rows), b, **options))


def _matmul(a: np.ndarray, b: np.ndarray, /, **options: Any) -> Any:
    return np.matmul(a, b, **options)


#: What CuPy computes otherwise than NumPy and SciPy, as seen on an H100.
_AS_ON_CARDS: dict[str, Callable[..., Any]] = {
    "argsort": _argsort,
    "histogram": _histogram,
    "interp": _interp,
    "log2": _log2,
    "lu_solve": _lu_solve,
    "matmul": _matmul,
    "sort": _sort,
}


class _Functions(ModuleType):
    """A module with the functions of another one, under the names that CuPy has."""

    def __init__(self, name: str, source: Any, names: set[str] | None) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)
        self.__path__ = []  # type: ignore[attr-defined]  other modules are below it
        self.__dict__["_source"], self.__dict__["_names"] = source, names

    def __getattr__(self, name: str) -> Any:
        names = self.__dict__["_names"]
        if name.startswith("__") or (names is not None and name not in names):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = _AS_ON_CARDS.get(name) or getattr(self.__dict__["_source"], name)
        if isinstance(found, type | ModuleType) or not callable(found):
            return found
        is_linear = self.__name__.endswith("linalg")

        def call(*arguments: Any, **named: Any) -> Any:
            called.append(name)
            try:
                return _call(found, *arguments, **named)
            except np.linalg.LinAlgError:
                if is_linear and not _thread.raises:
                    raise AssertionError("CuPy returns garbage here: use errstate") from None
                routine = "dpotrf" if name == "cholesky" else "dgetrf"
                raise np.linalg.LinAlgError(
                    f"Error reported by {routine} in cuSOLVER. devInfo = [1]."
                ) from None

        return call


def _names_in(folder: Path | None, *files: str) -> set[str] | None:
    """Return the names that files of the installed CuPy import or define; None without CuPy."""
    if folder is None:
        return None
    text = "".join((folder / each).read_text() for each in files)
    names = re.findall(r"import (?:\w+ as )?(\w+)|^def (\w+)|^(\w+) = ", text, re.MULTILINE)
    return {each for found in names for each in found if each}


def asnumpy(x: Any, *_: Any, **__: Any) -> np.ndarray:
    """Return the values on the host."""
    return x.get() if isinstance(x, ndarray) else np.asarray(x)


def asarray(x: Any, dtype: Any = None, order: Any = None, **_: Any) -> ndarray:
    """Return an array of an array, of NumPy's, or of an object with the interface of CUDA."""
    if hasattr(x, "__cuda_array_interface__") and not isinstance(x, ndarray):
        seen = x.__cuda_array_interface__
        memory = UnownedMemory(seen["data"][0], 0, x)
        if seen.get("stream"):
            Stream(seen["stream"]).synchronize()
        pointer = MemoryPointer(memory, 0)
        x = ndarray(seen["shape"], np.dtype(seen["typestr"]), pointer, seen.get("strides"))
    if isinstance(x, ndarray) and dtype in (None, x.dtype) and order in (None, "K", "A"):
        return x
    return _call(lambda each: np.array(each, dtype, order=order or "K"), x)


def install() -> ModuleType:
    """Let ``import cupy`` and ``import cupyx`` return the stand-ins; return ``cupy``."""
    if isinstance(sys.modules.get("cupy"), _Functions):
        return sys.modules["cupy"]
    spec = importlib.util.find_spec("cupy")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    cupy = _Functions("cupy", np, _names_in(folder, "__init__.py"))
    cuda = ModuleType("cupy.cuda")
    memory = ModuleType("cupy.cuda.memory")
    for each in (UnownedMemory, Memory, MemoryPointer, OutOfMemoryError, using_allocator):
        setattr(memory, each.__name__, each)
        setattr(cuda, each.__name__, each)
    for each in (Stream, Device, get_current_stream):
        setattr(cuda, each.__name__, each)
    cuda.ExternalStream = Stream  # type: ignore[attr-defined]
    cuda.memory = memory  # type: ignore[attr-defined]
    cuda.get_allocator = lambda: _thread.allocator  # type: ignore[attr-defined]
    vars(cupy).update(ndarray=ndarray, asnumpy=asnumpy, asarray=asarray, cuda=cuda)
    # CuPy's result is sorted, NumPy's is not.
    vars(cupy).update(unique_values=lambda x: cupy.unique(x, equal_nan=False))
    for name in ("linalg", "fft"):
        module = _Functions(
            f"cupy.{name}", getattr(np, name), _names_in(folder, f"{name}/__init__.py")
        )
        vars(cupy)[name] = sys.modules[f"cupy.{name}"] = module
    sys.modules |= {"cupy": cupy, "cupy.cuda": cuda, "cupy.cuda.memory": memory}
    cupyx = ModuleType("cupyx")
    cupyx.errstate = errstate  # type: ignore[attr-defined]
    sys.modules["cupyx"] = cupyx
    with contextlib.suppress(ImportError):
        import scipy.linalg

        package = ModuleType("cupyx.scipy")
        package.linalg = _Functions("cupyx.scipy.linalg", scipy.linalg, None)  # type: ignore[attr-defined]
        cupyx.scipy = package  # type: ignore[attr-defined]
        sys.modules |= {"cupyx.scipy": package, "cupyx.scipy.linalg": package.linalg}
    return cupy
