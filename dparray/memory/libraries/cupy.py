"""Let CuPy, for CUDA, compute over our memory, with NumPy's values.

CuPy is imported at its first use. It calls NVIDIA's libraries (cuBLAS, cuSOLVER, cuFFT, CUB); it
compiles its element-wise kernels at their first use, so dparray's kernels convert and copy. This
file has the functions that CuPy lacks or computes in another way.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np

from dparray._driver import driver_of, order_of
from dparray._driver.interface import Queue
from dparray._layout import Layout, is_contiguous, shows_elements_twice
from dparray._runtime.queues import note_work
from dparray.memory import blocks, copies
from dparray.memory.blocks import Positions
from dparray.memory.libraries import LibraryErrors
from dparray.memory.libraries.names import TO_REAL, Here, Names, stored_dtype


class _Here(Here):
    """The place of calls, and by device the queue of the thread's last transform."""

    def __init__(self) -> None:
        self.transforms: dict[Any, Any] = {}


_here = _Here()


@functools.cache
def _cupy() -> Any:
    return importlib.import_module("cupy")


@functools.lru_cache(maxsize=64)
def _stream(queue: Any) -> Any:
    return _cupy().cuda.Stream.from_external(queue)


@functools.cache
def _lent_memory() -> type:
    """Return the class of our memory for CuPy; its objects have our block as ``block``."""
    return type("LentMemory", (_cupy().cuda.UnownedMemory,), {})


def _pointer(block: Any, offset: int = 0) -> Any:
    """Return a pointer into a block, which it keeps alive."""
    device = driver_of(block.queue).device_of(block.queue).device_id
    memory = _lent_memory()(block.pointer, block.nbytes, block, device)
    memory.block = block
    return _cupy().cuda.MemoryPointer(memory, offset)


def _allocate(nbytes: int) -> Any:
    """Return memory of the pool, for CuPy's results and temporary arrays."""
    layout = blocks.allocate(_here.queue, _here.usm_type, (max(nbytes, 1),), np.dtype(np.uint8))
    return _pointer(layout.block)


def _new(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    return library.array(blocks.allocate(_here.queue, _here.usm_type, shape, dtype))


def _packed(x: Any) -> Any:
    """Return a C-contiguous copy."""
    return _converted(x, x.dtype)


def _plain(x: Any) -> Any:
    """Return an array, or a copy of one that shows elements twice (with a step of 0)."""
    return _packed(x) if shows_elements_twice(x.shape, x.strides) else x


class _Names(Names):
    """The functions of a module of CuPy."""

    def _found(self, path: str) -> Any:
        if path in _REPLACED:
            return _REPLACED[path]
        if path.startswith("scipy"):
            function = importlib.import_module(f"cupyx.{path}")
        else:
            function = attrgetter(path)(_cupy())
        if isinstance(function, ModuleType):
            return _Names(path)
        if path.startswith("linalg.") and not isinstance(function, type):
            return _of_floats(function)
        if path.startswith("fft."):
            return _transform(path.removeprefix("fft."), function)
        return function


class _CuPy(_Names):
    """The :class:`dparray.memory.libraries.Library`; its arrays are CuPy's."""

    name = "CuPy"
    sorts_in_place = True

    def errors(self) -> LibraryErrors:
        memory = _cupy().cuda.memory
        return LibraryErrors(
            np.exceptions.AxisError, np.linalg.LinAlgError, memory.OutOfMemoryError
        )

    def array(self, layout: Layout, as_bits: bool = False) -> Any:
        block, dtype = layout.block, layout.dtype
        if isinstance(block, Positions):
            values = block.values(layout)
            layout = blocks.allocate(block.queue, block.usm_type, layout.shape, dtype)
            copies.copy_from_host(values, layout)
            block = layout.block
        dtype = stored_dtype(self.name, dtype, as_bits)
        return _cupy().ndarray(
            layout.shape, dtype, _pointer(block, layout.offset), strides=layout.strides
        )

    def layout(self, array: Any) -> Layout:
        block = array.data.mem.block
        note_work(block.queue)
        return Layout(
            block, array.data.ptr - block.pointer, array.shape, array.strides, array.dtype
        )

    def is_array(self, obj: object) -> bool:
        module = sys.modules.get("cupy")
        return module is not None and isinstance(obj, module.ndarray)

    @contextlib.contextmanager
    def calls(self, queue: Queue, usm_type: str = "device") -> Iterator[None]:
        cupy, driver = _cupy(), driver_of(queue)
        try:
            with (
                _here.at(queue, usm_type),
                driver.foreign_calls(queue),
                cupy.cuda.Device(driver.device_of(queue).device_id),
                _stream(queue),
                cupy.cuda.using_allocator(_allocate),
            ):
                yield
        finally:
            # The order does not know the work of CuPy on the stream.
            order_of(queue).add_event_pair([], [driver.barrier(queue)])

    def store(self, target: Any, source: Any) -> None:
        if isinstance(source, np.generic):
            source = source.item()
        if target.size:
            values = self.layout(source) if self.is_array(source) else source
            copies.assign(self.layout(target), values)

    def asarray(self, values: Any, dtype: Any = None, order: str = "K") -> Any:
        if self.is_array(values):
            wanted = values.dtype if dtype is None else np.dtype(dtype)
            is_ready = order != "C" or is_contiguous(values.shape, values.strides, values.itemsize)
            return values if values.dtype == wanted and is_ready else _converted(values, wanted)
        host = np.ascontiguousarray(values, dtype).reshape(np.shape(values))
        layout = blocks.allocate(_here.queue, _here.usm_type, host.shape, host.dtype)
        copies.copy_from_host(host, layout)
        return self.array(layout)

    def asnumpy(self, array: Any) -> np.ndarray:
        return copies.copy_to_host(self.layout(array))


def _converted(x: Any, dtype: Any) -> Any:
    """Return an array with NumPy's conversion to another dtype."""
    copy = _new(x.shape, np.dtype(dtype))
    library.store(copy, x)
    return copy


# Functions that CuPy lacks, or that differ from NumPy's.


def _matmul(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None and out.flags.c_contiguous and a.dtype == b.dtype == out.dtype:
        return _cupy().matmul(_plain(a), _plain(b), out=out)  # CuPy accepts no third operand
    product = _cupy().matmul(_plain(a), _plain(b))
    if out is None:
        return product
    library.store(out, product)
    return out


def _transform(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform of numbers of any kind and stride."""

    def transform(x: Any, **options: Any) -> Any:
        if x.dtype.kind not in "fc":
            x = _converted(x, np.float64)
        elif name in TO_REAL and x.dtype.kind == "c":
            x = _packed(x)  # cuFFT writes into its argument
        lengths = options.get("s")
        if lengths is not None and -1 in lengths:
            axes = options.get("axes") or range(-len(lengths), 0)
            pairs = zip(lengths, axes, strict=True)
            options["s"] = [x.shape[axis] if n == -1 else n for n, axis in pairs]
        _share_plans(_here.queue)
        return function(_plain(x), **options)

    return transform


def _share_plans(queue: Queue) -> None:
    """Let a transform wait for the thread's last one on another queue of the device: both may use
    one plan of CuPy's cache, which has one temporary array.
    """
    device = driver_of(queue).device_of(queue).device_id
    last = _here.transforms.get(device)
    if last is not None and last != queue:
        order_of(queue).add_event_pair([], order_of(last).submitted_events)
    _here.transforms[device] = queue


def _of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of linear algebra for matrices of any dtype and stride."""

    def ready(x: Any) -> Any:
        if not library.is_array(x):
            return x
        return _converted(x, np.float64) if x.dtype.kind not in "fc" else _plain(x)

    @functools.wraps(function)
    def of_any(*args: Any, **kwargs: Any) -> Any:
        errstate = importlib.import_module("cupyx").errstate
        args = tuple(map(ready, args))
        try:
            with errstate(linalg="raise"):  # By default, CuPy returns arbitrary values.
                return function(*args, **kwargs)
        except np.linalg.LinAlgError as error:
            reason = _routine(error)
            if reason == "getrf" and not all(map(_is_finite, filter(library.is_array, args))):
                with errstate(linalg="ignore"):  # NumPy returns NaN here.
                    return function(*args, **kwargs)
            raise np.linalg.LinAlgError(_REASONS.get(reason, str(error))) from None

    return of_any


#: The reason why a cuSOLVER routine fails.
_REASONS = {"potrf": "the matrix is not positive definite", "getrf": "the matrix is singular"}


def _routine(error: np.linalg.LinAlgError) -> str:
    """Return the cuSOLVER routine in a message of CuPy, without the letter of its dtype."""
    match = re.search(r"reported by [sdcz](\w+?)(Batched)? in", str(error))
    return match[1] if match else ""


def _cholesky(a: Any, upper: bool = False) -> Any:
    factor = _cupy().linalg.cholesky(a)
    return factor.conj().swapaxes(-1, -2) if upper else factor


def _qr(a: Any, mode: str = "reduced") -> Any:
    factors = _cupy().linalg.qr(a, mode)
    return factors if isinstance(factors, tuple | _cupy().ndarray) else tuple(factors)


def _each_matrix(function: Callable[..., Any], *stacks: Any) -> Any:
    """Call a function for each matrix of stacks of one shape; stack its results."""
    cupy, outer = _cupy(), stacks[0].shape[:-2]
    parts = [function(*(stack[index] for stack in stacks)) for index in np.ndindex(outer)]
    if isinstance(parts[0], tuple):
        return tuple(
            cupy.stack(each).reshape(*outer, *each[0].shape) for each in zip(*parts, strict=True)
        )
    return cupy.stack(parts).reshape(*outer, *parts[0].shape)


def _is_finite(x: Any) -> bool:
    return bool(_cupy().isfinite(x).all())


def _check_finite(name: str, *arrays: Any) -> None:
    for x in arrays:
        if not _is_finite(x):
            raise ValueError(f"{name}: array must not contain infs or NaNs")


def _lu(a: Any, permute_l: bool = False, check_finite: bool = True, p_indices: bool = False) -> Any:
    if check_finite:
        _check_finite("lu", a)
    if not a.size:
        return _of_none(a, permute_l, p_indices)
    function = functools.partial(_scipy().lu, check_finite=False)
    p, lower, upper = _each_matrix(function, a) if a.ndim > 2 else function(a)
    if permute_l:
        return _cupy().matmul(p, lower), upper
    return (p.argmax(axis=-1) if p_indices else p), lower, upper


def _of_none(a: Any, permute_l: bool, p_indices: bool) -> Any:
    """Return the factors of matrices without elements."""
    *outer, rows, columns = a.shape
    k = min(rows, columns)
    lower, upper = _new((*outer, rows, k), a.dtype), _new((*outer, k, columns), a.dtype)
    if permute_l:
        return lower, upper
    identity = np.arange(rows) if p_indices else np.eye(rows, dtype=a.dtype)
    p = library.asarray(np.broadcast_to(identity, (*outer, *identity.shape)))
    return p, lower, upper


def _lu_factor(a: Any, check_finite: bool = True) -> Any:
    if check_finite:
        _check_finite("lu_factor", a)
    function = functools.partial(_scipy().lu_factor, check_finite=False)
    return _each_matrix(function, a) if a.ndim > 2 and a.size else function(a)


def _lu_solve(factors: tuple[Any, Any], b: Any, trans: int = 0, check_finite: bool = True) -> Any:
    lu, rows = factors
    if not b.size:
        return _packed(b)
    rows = library.asarray(rows, np.int32)  # cuSOLVER reads integers of any size as int32
    if check_finite:
        _check_finite("lu_solve", lu, b)

    def solve(lu: Any, rows: Any, b: Any) -> Any:
        return _scipy().lu_solve((lu, rows), b, trans=trans, check_finite=False)

    if lu.ndim == 2 and b.ndim <= 2:
        return solve(lu, rows, b)
    cupy = _cupy()
    outer = np.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    return _each_matrix(
        lambda lu, rows, b: solve(lu, rows[:, 0], b),
        cupy.broadcast_to(lu, (*outer, *lu.shape[-2:])),
        cupy.broadcast_to(rows[..., None], (*outer, rows.shape[-1], 1)),
        cupy.broadcast_to(b, (*outer, *b.shape[-2:])),
    )


def _scipy() -> Any:
    return importlib.import_module("cupyx.scipy.linalg")


def _log2(x: Any, out: Any = None) -> Any:
    if x.dtype.kind != "c":
        return _cupy().log2(x, out=out)
    result = _cupy().log(x, out=out)
    for part in (result.real, result.imag):  # CuPy multiplies an infinity by an imaginary 0.
        part *= part.dtype.type(1 / np.log(2))
    return result


def _without_negative_nan(x: Any) -> Any:
    """Return an array without negative NaN, which CuPy's radix sort puts first."""
    cupy = _cupy()
    return cupy.where(cupy.isnan(x), x.dtype.type(np.nan), x) if x.dtype.kind == "f" else x


def _sort_in_place(x: Any, axis: int = -1) -> None:
    """Sort an array without negative NaN in its own memory: ``sort`` copies it first."""
    x.sort(axis)


def _argsort(x: Any, axis: int = -1) -> Any:
    return _cupy().argsort(_without_negative_nan(x), axis, kind="stable")


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, **options: Any) -> Any:
    cupy = _cupy()
    result = cupy.interp(x, xp, fp, left, right, **options)
    # At NaN, NumPy returns the value of a single point.
    return cupy.where(cupy.isnan(x), fp[0].astype(result.dtype), result) if xp.size == 1 else result


def _unique(name: str, x: Any) -> Any:
    result = getattr(_cupy(), name)(x)
    return result._replace(inverse_indices=result.inverse_indices.reshape(x.shape))


def _cumulative_logsumexp(
    x: Any, *, axis: int, dtype: Any, include_initial: bool = False, out: Any = None
) -> Any:
    """Scan by doubling: after each round, an element has the sum of twice as many."""
    x = library.asarray(x, dtype, order="C")
    if include_initial:
        shape = list(x.shape)
        shape[axis] += 1
        longer = _new(tuple(shape), x.dtype)
        library.store(longer, -np.inf)
        library.store(_along(longer, axis, 1, None), x)
        x = longer
    step = 1
    while step < x.shape[axis]:
        summed = _packed(x)
        library.store(
            _along(summed, axis, step, None),
            _cupy().logaddexp(_along(x, axis, step, None), _along(x, axis, 0, -step)),
        )
        x, step = summed, 2 * step
    if out is None:
        return x
    library.store(out, x)
    return out


def _along(x: Any, axis: int, start: int, stop: int | None) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None) -> Any:
    if library.is_array(bins):
        return bins
    if x.dtype.kind == "b":
        x = _converted(x, np.uint8)
    if range is None and x.size:  # Equal bins depend on the least and the largest element only.
        values = library.asnumpy(_cupy().stack([x.min(), x.max()]))
    else:
        values = np.empty(0, x.dtype)
    return library.asarray(np.histogram_bin_edges(values, bins, range))


def _histogram(
    x: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> Any:
    if x.dtype.kind == "b":
        x = _converted(x, np.uint8)
    edges = _histogram_bin_edges(x, bins, range)
    counts, edges = _cupy().histogram(x, bins=edges, density=density, weights=weights)
    if weights is not None and not density:
        counts = library.asarray(counts, weights.dtype)
    return counts, edges


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    if x.ndim == 1 and not x.size:
        return library.asarray(np.zeros(minlength, np.int64 if weights is None else np.float64))
    return _cupy().bincount(x, weights, minlength)


def _var(x: Any, *, axis: Any = None, correction: Any = 0, keepdims: bool = False) -> Any:
    return _cupy().var(x, axis=axis, ddof=correction, keepdims=keepdims)


_REPLACED: dict[str, Callable[..., Any]] = {
    "matmul": _matmul,
    "linalg.cholesky": _of_floats(_cholesky),
    "linalg.qr": _of_floats(_qr),
    "scipy.linalg.lu": _lu,
    "scipy.linalg.lu_factor": _lu_factor,
    "scipy.linalg.lu_solve": _lu_solve,
    "interp": _interp,
    "log2": _log2,
    "sort_in_place": _sort_in_place,
    "argsort": _argsort,
    **{name: functools.partial(_unique, name) for name in ("unique_inverse", "unique_all")},
    "cumulative_logsumexp": _cumulative_logsumexp,
    "histogram_bin_edges": _histogram_bin_edges,
    "histogram": _histogram,
    "bincount": _bincount,
    "var": _var,
}

library = _CuPy()
