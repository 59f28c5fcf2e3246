"""Let dpnp and dpnp.tensor, for SYCL, compute over our memory, with NumPy's values.

They are imported at the first use of an attribute of ``dpnp`` or ``dpt`` here: the import takes
0.5 s and 250 MB, most of it oneMKL. The functions of :data:`library` are those of dpnp.tensor where
it has them. Those that are dpnp's alone call oneMKL, and follow the rules of :func:`_by_onemkl`. A
defect of a function is avoided by a function of the same name in this file.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from math import prod
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from dparray._driver import driver_named, driver_of, traits_of
from dparray._driver.interface import Queue
from dparray._dtypes import default_float
from dparray._layout import Layout, shows_elements_twice
from dparray._runtime import fallback, queues
from dparray._runtime.queues import note_work
from dparray.memory.blocks import SHARED, BorrowedBlock, Positions
from dparray.memory.libraries import LibraryErrors
from dparray.memory.libraries.names import TO_REAL, Here, Names, stored_dtype

if TYPE_CHECKING:
    import dpnp
    import dpnp.tensor as dpt

__all__ = ["dpnp", "dpt", "is_tensor", "layout_of_tensor", "library", "tensor_of"]


class _Module:
    """A placeholder for a module, which is imported when an attribute is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._name), name)
        _make_statics()
        setattr(self, name, value)
        return value


_making_statics = threading.Lock()
_with_statics: set[str] = set()
_OF_ARRAYS = re.compile(r"\((\w+: .*usm_ndarray.*)\) ->")


def _make_statics() -> None:
    """Make dpnp's compiled modules create their static objects before their first array.

    They create these behind a C++ lock, and release the interpreter's lock meanwhile: a second
    thread that arrives there would wait forever with the interpreter's lock held. So one thread
    first calls a function of each module, with arguments that it rejects.
    """
    driver_named("sycl").make_ready()  # type: ignore[union-attr]
    with _making_statics:
        for name, module in tuple(sys.modules.items()):
            if not name.startswith("dpnp.") or name in _with_statics:
                continue
            _with_statics.add(name)
            for function in vars(module).values():
                text = getattr(function, "__doc__", None)
                match = _OF_ARRAYS.search(text) if type(function) is type(len) and text else None
                if match is not None:
                    with contextlib.suppress(Exception):
                        function(*[object()] * len(re.findall(r"\w+: ", match[1])))
                    break


if not TYPE_CHECKING:
    dpnp, dpt = _Module("dpnp"), _Module("dpnp.tensor")


# Arrays.


def _type(module: str, name: str) -> Any:
    """Return a dpnp class, or, if dpnp is not imported, a class without instances."""
    return getattr(sys.modules.get(module), name, ())


def is_tensor(obj: object) -> bool:
    """Return whether an object is an array of dpnp.tensor."""
    return isinstance(obj, _type("dpnp.tensor", "usm_ndarray"))


def _is_dpnp(obj: object) -> bool:
    """Return whether an object is an array of dpnp."""
    return isinstance(obj, _type("dpnp", "ndarray"))


def tensor_of(layout: Layout, as_bits: bool = False) -> dpt.usm_ndarray:
    """Return the array as a ``dpnp.tensor.usm_ndarray`` over the same memory.

    A caller that lets the library work on it must call :func:`note_work`.

    Args:
        layout: the array.
        as_bits: whether bfloat16 becomes uint16, for copies.

    Raises:
        DTypeError: the array is bfloat16.
    """
    block = layout.block
    if isinstance(block, Positions):
        values = block.values(layout)
        with driver_of(block.queue).foreign_calls(block.queue):
            return dpt.asarray(values, sycl_queue=block.queue, usm_type=block.usm_type)
    itemsize = layout.dtype.itemsize
    return dpt.usm_ndarray(
        layout.shape,
        dtype=stored_dtype(library.name, layout.dtype, as_bits),
        strides=tuple(stride // itemsize for stride in layout.strides),
        buffer=block.memory,
        offset=layout.offset // itemsize,
    )


def _on_queue(tensor: dpt.usm_ndarray, queue: Queue) -> dpt.usm_ndarray:
    """Return the tensor on another queue of its context, over the same memory, which it keeps
    alive.

    The caller orders the work of both queues.
    """
    if tensor.sycl_queue == queue:
        return tensor
    memory = tensor.usm_data
    shown = driver_of(queue).part(memory, memory._pointer, memory.nbytes, queue)
    return dpt.usm_ndarray(
        tensor.shape,
        dtype=tensor.dtype,
        strides=tensor.strides,
        buffer=shown,
        offset=tensor._element_offset,
    )


def layout_of_tensor(
    tensor: dpt.usm_ndarray, is_shared: bool = False, is_read_only: bool = False
) -> Layout:
    """Return the layout of a ``usm_ndarray``, over its memory.

    Args:
        tensor: a result of the library without other references, or
        is_shared: a user's array, which the user can write at any time.
        is_read_only: writes through the layout raise.
    """
    note_work(tensor.sycl_queue)
    itemsize = tensor.dtype.itemsize
    readers = SHARED if is_shared else None
    memory = tensor.usm_data
    return Layout(
        BorrowedBlock(
            memory, memory.nbytes, memory.get_usm_type(), tensor.sycl_queue, readers, is_read_only
        ),
        tensor._element_offset * itemsize,
        tensor.shape,
        tuple(stride * itemsize for stride in tensor.strides),
        tensor.dtype,
    )


def _dpnp_array(value: Any) -> Any:
    """Return a ``dpnp.ndarray`` over the memory of a tensor, and any other value unchanged."""
    return dpnp.ndarray._create_from_usm_ndarray(value) if is_tensor(value) else value


def _tensor(value: Any) -> Any:
    """Return the tensor of a dpnp array, and any other value unchanged."""
    return value._array_obj if _is_dpnp(value) else value


# The functions.


_here = Here()


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value, or a tuple, list or dictionary of values, with each value changed."""
    if isinstance(value, tuple | list):
        parts = [_changed(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {name: _changed(part, change) for name, part in value.items()}
    return change(value)


def _tensor_here(value: Any) -> Any:
    """Return the tensor of a dpnp array on the queue of the call, and any other value unchanged.

    A placement policy computes on another queue of the memory's context, which dpnp refuses.
    """
    return _on_queue(value._array_obj, _here.queue) if _is_dpnp(value) else value


def _by_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors as one of dpnp arrays."""

    @functools.wraps(function)
    def of_arrays(*args: Any, **kwargs: Any) -> Any:
        result = function(*_changed(args, _tensor_here), **_changed(kwargs, _tensor_here))
        return _changed(result, _dpnp_array)

    return of_arrays


def _by_onemkl(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of dpnp arrays that calls oneMKL, as one without a deadlock.

    Each host task that releases the objects of dpnp's work takes the interpreter's lock on one of
    SYCL's few threads for such tasks. dpnp's calls of oneMKL hold the lock while they wait for a
    host task of their own: a deadlock if all those threads wait for the lock (dpnp 0.20: Cholesky
    of stacks, transforms). On an in-order queue they even wait for the host tasks of the same call;
    another queue is used instead.
    """

    @functools.wraps(function)
    def of_arrays(*args: Any, **kwargs: Any) -> Any:
        queue = _here.queue
        driver = driver_of(queue)
        driver.wait_for_kept(queue)
        if not driver.is_in_order(queue):
            return function(*_moved(args, queue), **_moved(kwargs, queue))
        other = queues.out_of_order(queue)
        queues.wait(queue)
        try:
            result = function(*_moved(args, other), **_moved(kwargs, other))
        finally:
            driver.wait_for_kept(other)
            queues.wait(other)
        return _moved(result, queue)

    return of_arrays


def _moved(value: Any, queue: Queue) -> Any:
    def move(each: Any) -> Any:
        if not _is_dpnp(each) or each.sycl_queue == queue:
            return each
        return _dpnp_array(_on_queue(each._array_obj, queue))

    return _changed(value, move)


#: Functions that dpnp.tensor has too, but not by oneMKL.
_OF_ONEMKL = frozenset({"matmul", "tensordot", "vecdot"})


class _Names(Names):
    """The functions of a module of dpnp."""

    def _found(self, path: str) -> Any:
        if path in _REPLACED:
            return _REPLACED[path]
        is_tensors = "." not in path and path not in _OF_ONEMKL and hasattr(dpt, path)
        function = getattr(dpt, path) if is_tensors else attrgetter(path)(dpnp)
        if isinstance(function, ModuleType):
            return _Names(path)
        if isinstance(function, type) or not callable(function):
            return function
        if path.startswith("linalg."):
            function = _of_floats(function)
        elif path.startswith("fft."):
            function = _transform(path.removeprefix("fft."), function)
        return _by_tensors(function) if is_tensors else _by_onemkl(function)


class _Dpnp(_Names):
    """The :class:`dparray.memory.libraries.Library`; its arrays are dpnp's."""

    name = "dpnp"
    sorts_in_place = False

    def errors(self) -> LibraryErrors:
        memory: Any = importlib.import_module("dpctl.memory")
        return LibraryErrors(
            dpnp.exceptions.AxisError, dpnp.linalg.LinAlgError, memory.USMAllocationError
        )

    def array(self, layout: Layout, as_bits: bool = False) -> Any:
        return _dpnp_array(tensor_of(layout, as_bits))

    def layout(self, array: Any) -> Layout:
        return layout_of_tensor(array._array_obj)

    def is_array(self, obj: object) -> bool:
        return _is_dpnp(obj)

    @contextlib.contextmanager
    def calls(self, queue: Queue, usm_type: str = "device") -> Iterator[None]:
        with _here.at(queue, usm_type), driver_of(queue).foreign_calls(queue):
            yield

    def store(self, target: Any, source: Any) -> None:
        _store(_tensor(target), _tensor(source))

    def asarray(self, values: Any, dtype: Any = None, order: str = "K") -> Any:
        keywords = {"sycl_queue": _here.queue, "usm_type": _here.usm_type}
        if _is_dpnp(values):
            values, keywords = values._array_obj, {}
        return _dpnp_array(dpt.asarray(values, dtype=dtype, order=order, **keywords))

    def asnumpy(self, array: Any) -> np.ndarray:
        values: np.ndarray = array.asnumpy()
        return values


# Conversions.


def _converts(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Return whether dpnp converts between two dtypes with the same values as NumPy.

    dpnp converts floats to signed integers first. Intel's compiler converts floats to 8-bit
    integers by saturation (200.0 becomes 127 in ``uint8``) on processors without AVX-512.
    """
    return source.kind != "f" or not (target.kind == "u" or target in (np.int8, np.int16))


def _store(target: Any, source: Any) -> None:
    """Copy a tensor or a scalar into a tensor, with NumPy's conversions."""
    if not is_tensor(source) or _converts(source.dtype, target.dtype):
        pass
    elif target.dtype.itemsize < 4:
        source = dpt.astype(source, np.int32)
    elif target.dtype == np.uint32:
        source = dpt.astype(source, np.int64)
    elif source.dtype.itemsize > 2:
        is_high = dpt.greater_equal(source, 2.0**63)
        low = dpt.astype(_where(is_high, dpt.subtract(source, 2.0**63), source), np.int64)
        high = dpt.bitwise_left_shift(dpt.astype(is_high, np.int64), 63)
        source = dpt.bitwise_xor(low, high)
    target[...] = source


def _converted(tensor: Any, dtype: np.dtype[Any] | None) -> Any:
    """Return a tensor, or a copy in another dtype."""
    if dtype is None or tensor.dtype == dtype:
        return tensor
    copy = dpt.empty_like(tensor, dtype=dtype)
    _store(copy, tensor)
    return copy


# Functions with other values than NumPy's.


def _where(condition: Any, x1: Any, x2: Any, out: Any = None) -> Any:
    """Return elements of two tensors; dpnp 0.20 writes outside results with negative strides."""
    if out is not None and min(out.strides, default=0) >= 0:
        return dpt.where(condition, x1, x2, out=out)
    result = dpt.where(condition, x1, x2, order="C")
    if out is None:
        return result
    out[...] = result
    return out


def _first_nan(name: str) -> Callable[..., Any]:
    """Return NumPy's ``argmax`` or ``argmin``; dpnp's return the position of the last NaN."""

    def positions(tensor: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        result = getattr(dpt, name)(tensor, axis=axis, keepdims=keepdims)
        if tensor.dtype.kind != "f":
            return result
        is_nan = dpt.isnan(tensor)
        first = dpt.argmax(dpt.astype(is_nan, "i1"), axis=axis, keepdims=keepdims)
        return _where(dpt.any(is_nan, axis=axis, keepdims=keepdims), first, result)

    return positions


def _in_dtype(name: str) -> Callable[..., Any]:
    """Return a function with ``dtype=`` whose conversion is dpnp's where that is NumPy's."""

    def function(tensor: Any, *, dtype: Any = None, **options: Any) -> Any:
        if dtype is not None and not _converts(tensor.dtype, dtype):
            tensor = _converted(tensor, dtype)
        return getattr(dpt, name)(tensor, dtype=dtype, **options)

    return function


def _mean(tensor: Any, *, dtype: Any = None, **options: Any) -> Any:
    return dpt.mean(_converted(tensor, dtype), **options)


def _var(tensor: Any, *, axis: Any, dtype: Any = None, correction: Any = 0, **options: Any) -> Any:
    """Return NumPy's variances, also with a divisor of zero, for which dpnp returns NaN."""
    tensor = _converted(tensor, dtype)
    axes = (axis,) if isinstance(axis, int) else range(tensor.ndim) if axis is None else axis
    if correction != prod(tensor.shape[each] for each in axes):
        return dpt.var(tensor, axis=axis, correction=correction, **options)
    return dpt.divide(dpt.var(tensor, axis=axis, **options), 0.0)


def _lcm(a: Any, b: Any) -> Any:
    """Return NumPy's least common multiples; dpnp's lose the sign of one that wrapped around."""
    common = dpnp.gcd(a, b)
    return dpnp.abs(a) // dpnp.where(common == 0, dpnp.ones_like(common), common) * dpnp.abs(b)


def _interp(x: Any, xp: Any, fp: Any, *, period: Any = None, **ends: Any) -> Any:
    """Interpolate in arrays of any shape and stride; dpnp takes contiguous vectors only."""
    shape = x.shape
    x, xp, fp = (dpnp.reshape(each, -1) for each in (x, xp, fp))
    if xp.size == 1 and period is None:
        # For a single sample point NumPy returns its value, even for NaN.
        x = dpnp.where(dpnp.isnan(x), xp, x)
    if period is not None:  # dpnp would overwrite both
        real = default_float(traits_of(_here.queue))
        x, xp = (dpnp.remainder(each.astype(real), abs(period)) for each in (x, xp))
    x, xp, fp = (dpnp.ascontiguousarray(each) for each in (x, xp, fp))
    return dpnp.reshape(dpnp.interp(x, xp, fp, period=period, **ends), shape)


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    if x.ndim == 1 and not x.size:  # dpnp looks for the largest element
        return 0 * dpnp.bincount(dpnp.zeros_like(x, shape=1), minlength=minlength)[:minlength]
    return dpnp.bincount(x, weights, minlength=minlength)


def _matmul(a: Any, b: Any, out: Any = None) -> Any:
    """Multiply matrices of all dtypes."""
    dtype = np.result_type(a.dtype, b.dtype)
    if dtype.kind in "iu" and a._array_obj.usm_data._pointer == b._array_obj.usm_data._pointer:
        b = b.copy()  # for `x @ x.T`, integers become floats, which do not wrap around
    a, b = (
        each.copy() if shows_elements_twice(each.shape[-2:], each.strides[-2:]) else each
        for each in (a, b)
    )
    if dtype.char == "e":  # dpnp has none; NumPy accumulates in float32, too
        product = dpnp.matmul(a.astype(np.float32), b.astype(np.float32))
        if out is None:
            return product.astype(dtype)
        out[...] = product
        return out
    return dpnp.matmul(a, b, out=out)


def _einsum(subscripts: str, *arrays: Any, optimize: Any = False) -> Any:
    """Copy views and arrays whose diagonal is taken, which dpnp 0.20 handles wrongly.

    For a single array it reads from the start of the memory, and it rejects broadcast arrays.
    """
    terms = subscripts.replace(" ", "").partition("->")[0].replace("...", "").split(",")
    repeats = (len(set(term)) < len(term) for term in terms)
    ready = [
        x.copy() if is_diagonal or _is_view(x) else x
        for x, is_diagonal in zip(arrays, repeats, strict=False)
    ]
    return dpnp.einsum(subscripts, *ready, optimize=optimize)


def _is_view(x: Any) -> bool:
    """Return whether an array has an offset into its memory, or repeats elements."""
    repeats = any(step <= 0 < extent - 1 for step, extent in zip(x.strides, x.shape, strict=True))
    return repeats or bool(x._array_obj._element_offset)


def _transform(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform of numbers of any kind and stride."""

    def transform(x: Any, **options: Any) -> Any:
        has_double = "fp64" in traits_of(_here.queue).aspects
        if x.dtype.kind not in "fc":
            x = x.astype(np.float64 if has_double else np.float32)
        writes = name in TO_REAL and x.dtype.kind == "c"  # into its argument
        if writes or shows_elements_twice(x.shape, x.strides):
            x = x.copy()  # it reads beyond what is broadcast, too
        if has_double and _fails_in_single(name, x, options):
            return function(x.astype(np.complex128), **options).astype(np.float32)
        return function(x, **options)

    return transform


def _fails_in_single(name: str, values: Any, options: dict[str, Any]) -> bool:
    """Return whether oneMKL makes errors of 3 % of the largest result.

    It was seen (2026) in transforms to real numbers in single precision, of 8192 points and more,
    an even number of them that is no power of 2; not in all of these.
    """
    if name not in TO_REAL or values.dtype not in (np.float32, np.complex64):
        return False
    axes, points = options.get("axes", options.get("axis")), options.get("n", options.get("s"))
    last = -1 if axes is None else axes if isinstance(axes, int) else axes[-1]
    if isinstance(points, Sequence):
        points = points[-1]
    if points is None or points == -1:
        points = 2 * (values.shape[last] - 1)
    return points >= 8192 and points % 2 == 0 and points & (points - 1) > 0


def _of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of linear algebra for matrices of any dtype and stride."""

    def ready(x: Any) -> Any:
        if not _is_dpnp(x):
            return x
        if x.dtype.kind not in "fc":
            return x.astype(default_float(traits_of(_here.queue)))
        return x.copy() if shows_elements_twice(x.shape, x.strides) else x  # a step of 0

    @functools.wraps(function)
    def of_any(*args: Any, **kwargs: Any) -> Any:
        return function(*map(ready, args), **kwargs)

    return of_any


def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    # Of one matrix by columns, dpnp 0.20 computes in the memory of the matrix itself.
    return dpnp.linalg.eigvalsh(a.copy(order="C"), UPLO)


def _on_host(name: str) -> Callable[..., Any]:
    """Return what dpnp's function returns, which copies to NumPy, if the policy allows it."""

    def function(a: Any) -> Any:
        if not traits_of(_here.queue).shares_memory:
            fallback.leaves(_here.queue, a.nbytes)
        return getattr(dpnp.linalg, name)(a)

    return function


def _lu_solve(factors: tuple[Any, Any], b: Any, **options: Any) -> Any:
    # dpnp reads the rows of a stack as if they were stored one behind the other.
    lu, rows = factors
    return dpnp.scipy.linalg.lu_solve((lu, dpnp.ascontiguousarray(rows)), b, **options)


_REPLACED: dict[str, Callable[..., Any]] = {
    **{name: _by_tensors(_first_nan(name)) for name in ("argmax", "argmin")},
    **{
        name: _by_tensors(_in_dtype(name))
        for name in ("sum", "prod", "cumulative_sum", "cumulative_prod", "cumulative_logsumexp")
    },
    "where": _by_tensors(_where),
    "mean": _by_tensors(_mean),
    "var": _by_tensors(_var),
    "lcm": _by_onemkl(_lcm),
    "interp": _by_onemkl(_interp),
    "bincount": _by_onemkl(_bincount),
    "matmul": _by_onemkl(_matmul),
    "einsum": _by_onemkl(_einsum),
    "linalg.eigvalsh": _by_onemkl(_of_floats(_eigvalsh)),
    **{f"linalg.{name}": _by_onemkl(_of_floats(_on_host(name))) for name in ("eig", "eigvals")},
    "scipy.linalg.lu_solve": _by_onemkl(_lu_solve),
}

library = _Dpnp()
