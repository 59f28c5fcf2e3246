"""Methods of NumPy's ufuncs: ``add.reduce``, ``maximum.accumulate``, ``add.at``.

Functions of the namespace that are ufuncs in NumPy have these methods as attributes. On a CPU
device NumPy computes those that are not a dparray reduction; on other devices they are composed of
dparray functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import empty_on, from_host
from dparray._array.apply import astype_array, copy_of
from dparray._array.assignment import assign, write_out
from dparray._array.dispatch import compute
from dparray._array.ndarray import ndarray
from dparray._array.operands import (
    check_array,
    check_out,
    checked_scalar,
    dispatch_override,
    is_taken_from_host,
    on_queue_of,
)
from dparray._driver import traits_of
from dparray._functions import bits, elementwise, mathematics, products
from dparray._functions.advanced_indexing import index_for_numpy
from dparray._functions.cumulative import cumprod, cumsum, cumulative_logsumexp
from dparray._functions.elementwise import where as where_of
from dparray._functions.manipulation import broadcast_to, moveaxis, ravel, reshape
from dparray._functions.nan_reductions import nanmax, nanmin
from dparray._functions.ranges import arange
from dparray._functions.reductions import all as all_of
from dparray._functions.reductions import any as any_of
from dparray._functions.reductions import logsumexp
from dparray._functions.reductions import max as max_of
from dparray._functions.reductions import min as min_of
from dparray._functions.reductions import prod as prod_of
from dparray._functions.reductions import sum as sum_of
from dparray._functions.sorting import argsort
from dparray._placement import common_placement, placement_of
from dparray.algorithms.tiles import has_scan, scan_axis
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

_REDUCTIONS: dict[str, Callable[..., ndarray]] = {
    "add": sum_of,
    "multiply": prod_of,
    "maximum": max_of,
    "minimum": min_of,
    "fmax": nanmax,
    "fmin": nanmin,
    "logical_and": all_of,
    "logical_or": any_of,
    "logaddexp": logsumexp,
}
_SCANS: dict[str, Callable[..., ndarray]] = {
    "add": cumsum,
    "multiply": cumprod,
    "logaddexp": lambda x, axis, dtype, out: cumulative_logsumexp(
        x, axis=axis, dtype=dtype, out=out
    ),
}
#: Integers are combined in 64 bits.
_WIDENS = frozenset({"add", "multiply"})
_TAKES_DTYPE = frozenset({"add", "multiply", "logaddexp"})
#: For these functions the order and the pairing of elements do not matter. All others go from the
#: first element to the last.
_ASSOCIATIVE = frozenset(_REDUCTIONS) | {
    *("bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor"),
    *("gcd", "hypot", "logaddexp2"),
}
#: Reductions without an initial value, and those without a mask.
_WITHOUT_INITIAL = frozenset({"logical_and", "logical_or", "logaddexp"})
_WITHOUT_WHERE = frozenset({"logaddexp"})
#: Applying these to one element several times equals applying them once to all values combined.
_AT_ONCE = {"subtract": "add", "divide": "multiply"}


def _loop_dtype(name: str, ufunc: np.ufunc, x: ndarray, dtype: Any) -> np.dtype[Any]:
    """Return the dtype in which to combine elements.

    Raises:
        DTypeError: the function's results cannot be its operands, as for ``less``.
    """
    if dtype is not None and name != "ldexp":  # its operands never have the same dtype
        return _dtypes.check_device(_dtypes.as_dtype(dtype), traits_of(x.queue))
    if name in _WIDENS and x.dtype.kind in "biu":
        return _dtypes.uint64 if x.dtype.kind == "u" else _dtypes.int64
    if name in _ASSOCIATIVE:
        return _dtypes.resolve(ufunc, (x.dtype, x.dtype))[-1]
    try:
        signature = ufunc.resolve_dtypes((None, x.dtype, None), reduction=True)
    except TypeError:
        signature = None
    if signature is None or len(set(signature)) != 1:
        raise DTypeError(f"{name}: not defined as a reduction of {x.dtype}; use {name}(x1, x2)")
    return _dtypes.fit_device(signature[-1], traits_of(x.queue))


def _as_exponents(name: str, ufunc: np.ufunc, x: ndarray, dtype: Any) -> ndarray:
    """Convert integers of ``logaddexp`` to floats as NumPy does; keep other operands."""
    if name != "logaddexp" or dtype is not None or x.dtype.kind not in "biu":
        return x
    return astype_array(x, _loop_dtype(name, ufunc, x, None), copy=False)


def _reduce(
    name: str,
    ufunc: np.ufunc,
    call: Callable[..., ndarray],
    x: Any,
    /,
    axis: Any = 0,
    dtype: Any = None,
    out: ndarray | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> ndarray:
    """Reduce the elements along axes by the function."""
    function = f"{name}.reduce"
    x = _as_exponents(name, ufunc, check_array(function, "x", x), dtype)
    is_ours = initial is None or name not in _WITHOUT_INITIAL
    if name in _REDUCTIONS and is_ours and (where is True or name not in _WITHOUT_WHERE):
        options: dict[str, Any] = {} if where is True else {"where": where}
        if initial is not None:
            options["initial"] = initial
        if dtype is not None and name in _TAKES_DTYPE:
            options["dtype"] = dtype
        elif dtype is not None:
            x = astype_array(x, _dtypes.as_dtype(dtype), copy=False)
        return _REDUCTIONS[name](x, axis, out=out, keepdims=keepdims, **options)
    placement = placement_of(x)
    if where is not True:
        where = check_array(function, "where", where, placement)
        common_placement(function, (("x", x), ("where", where)))
        if where.dtype != bool:
            raise DTypeError(f"{function}: where must be a Boolean mask, not {where.dtype}")
        if initial is None and ufunc.identity is None:
            raise ArgumentError(
                f"{function}: the function has no identity, so where= requires initial="
            )
    check_out(function, (("x", x),), out)
    axes = tuple(range(x.ndim)) if axis is None else _layout.normalize_axes(function, axis, x.ndim)
    if name not in _ASSOCIATIVE and len(axes) > 1:
        raise ArgumentError(
            f"{function}: the order of elements matters, so axis= must be a single axis"
        )
    loop_dtype = _loop_dtype(name, ufunc, x, dtype)
    lines = astype_array(_lines(x, axes), loop_dtype, copy=False)
    mask = None if where is True else _lines(broadcast_to(where, x.shape), axes)
    neutral: Any = (
        None if ufunc.identity is None else np.asarray(ufunc.identity).astype(loop_dtype)[()]
    )
    first = (
        neutral
        if initial is None
        else loop_dtype.type(checked_scalar(function, initial, loop_dtype))
    )
    if name in _ASSOCIATIVE:
        lines = lines if mask is None else where_of(mask, lines, neutral)
        result = _combined(function, call, lines, first)
        # `gcd` and `hypot` change the sign of a single element
        if mask is not None and initial is not None:
            result = where_of(any_of(mask, -1), result, first)
    else:
        result = _folded(function, ufunc, call, lines, first, mask)
    if keepdims:
        result = reshape(
            result, tuple(1 if at in axes else extent for at, extent in enumerate(x.shape))
        )
    return write_out(function, result, out)


def _lines(x: ndarray, axes: tuple[int, ...]) -> ndarray:
    """Return an array with the elements along some axes as its last axis."""
    kept = tuple(extent for at, extent in enumerate(x.shape) if at not in axes)
    lines = moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim)))
    return reshape(lines, (*kept, int(np.prod([x.shape[at] for at in axes]))))


def _combined(
    function: str, call: Callable[..., ndarray], lines: ndarray, first: np.generic | None
) -> ndarray:
    """Combine all elements of each line pairwise, with the initial value."""
    if lines.shape[-1] == 0:
        return _started(function, lines, first)
    left_over: list[Any] = [] if first is None else [first]
    while (count := lines.shape[-1]) > 1:
        if count % 2:
            left_over.append(lines[..., count - 1])
        half = count // 2
        lines = call(lines[..., :half], lines[..., half : 2 * half])
    result = lines[..., 0]
    for one in left_over:
        result = call(result, one)
    return result if left_over else copy_of(result)  # not a view of the operand


def _folded(
    function: str,
    ufunc: np.ufunc,
    call: Callable[..., ndarray],
    lines: ndarray,
    first: np.generic | None,
    mask: ndarray | None,
) -> ndarray:
    """Combine the elements of each line under a mask from the first to the last."""
    result = _started(function, lines, first)
    named = [("x", lines)] if mask is None else [("x", lines), ("where", mask)]

    def by_numpy(x: np.ndarray, *views: np.ndarray) -> None:
        *masks, out = views
        options: dict[str, Any] = {} if first is None else {"initial": first}
        ufunc.reduce(x, -1, out.dtype, out, where=masks[0] if masks else True, **options)

    if compute(function, named, host=by_numpy, out=result) is None:
        for at in range(first is None, lines.shape[-1]):
            combined = call(result, lines[..., at])
            if mask is not None:
                combined = where_of(mask[..., at], combined, result)
            assign(result, combined, function)
    return result


def _started(function: str, lines: ndarray, first: np.generic | None) -> ndarray:
    """Return the start value of each line: an initial value, or its first element.

    Raises:
        ShapeError: there is neither.
    """
    if first is None and not lines.shape[-1]:
        raise ShapeError(f"{function}: x must not be empty, since the function has no identity")
    result = empty_on(placement_of(lines), lines.shape[:-1], lines.dtype)
    assign(result, lines[..., 0] if first is None else first, function)
    return result


def _accumulate(
    name: str,
    ufunc: np.ufunc,
    call: Callable[..., ndarray],
    x: Any,
    /,
    axis: int = 0,
    dtype: Any = None,
    out: ndarray | None = None,
) -> ndarray:
    """Accumulate the elements along an axis by the function."""
    function = f"{name}.accumulate"
    x = check_array(function, "x", x)
    if not x.ndim:
        raise ArgumentError(f"{function}: x must have at least 1 dimension")
    if name in _SCANS:
        return _SCANS[name](_as_exponents(name, ufunc, x, dtype), axis, dtype, out)
    check_out(function, (("x", x),), out)
    axis = _layout.normalize_axis(function, axis, x.ndim)
    loop_dtype = _loop_dtype(name, ufunc, x, dtype)
    result = empty_on(placement_of(x), x.shape, loop_dtype)

    def by_kernel() -> ndarray:
        scan_axis(name, x, result, axis)
        return result

    found = compute(
        function,
        (("x", x),),
        kernel=by_kernel if has_scan(name, x, loop_dtype) else None,
        host=lambda a, r: ufunc.accumulate(a, axis, loop_dtype, out=r),
        out=result,
    )
    if found is None:
        assign(result, x, function)
        lines = moveaxis(result, axis, -1)
        step = 1
        if name not in _ASSOCIATIVE:
            for at in range(1, lines.shape[-1]):
                lines[..., at] = call(lines[..., at - 1], lines[..., at])
            step = lines.shape[-1]
        while step < lines.shape[-1]:
            lines[..., step:] = call(lines[..., :-step], lines[..., step:])
            step *= 2
    return write_out(function, result, out)


def _outer(
    name: str,
    ufunc: np.ufunc,
    call: Callable[..., ndarray],
    x1: Any,
    x2: Any,
    /,
    out: ndarray | None = None,
) -> ndarray:
    """Apply the function to all pairs of elements."""
    function = f"{name}.outer"
    x1, x2 = check_array(function, "x1", x1), check_array(function, "x2", x2)
    added = (None,) * x2.ndim
    index: tuple[Any, ...] = (..., *added)
    spread = x1[index]
    return call(spread, x2) if out is None else call(spread, x2, out=out)


def _at(
    name: str,
    ufunc: np.ufunc,
    call: Callable[..., ndarray],
    x: ndarray,
    indices: Any,
    values: Any,
    /,
) -> None:
    """Compute ``x[indices] = function(x[indices], values)``, once for each repeated index."""
    function = f"{name}.at"
    x = check_array(function, "x", x)
    if isinstance(values, list | tuple):
        values = from_host(np.asarray(values), x.queue, x.usm_type)
    elif is_taken_from_host(values):
        values = check_array(function, "values", values, placement_of(x))
    named = [("x", x)]
    entries = indices if type(indices) is tuple else (indices,)
    for position, entry in enumerate(entries):
        if isinstance(entry, ndarray):
            named.append((f"index {position}", entry))
    is_array = isinstance(values, ndarray)
    if is_array or not isinstance(values, bool | int | float | complex | np.generic):
        named.append(("values", check_array(function, "values", values)))
    common_placement(function, named)
    key = values.dtype if isinstance(values, ndarray | np.generic) else type(values)
    signature = _dtypes.resolve(ufunc, (x.dtype, np.dtype("bool") if key is bool else key))
    if not _dtypes.can_cast(signature[-1], x.dtype, "same_kind"):
        raise DTypeError(f"{function}: the result cannot be stored in x of dtype {x.dtype}")
    if key is int and signature[1].kind in "iu":  # NumPy uses int64, and float64 with uint64
        values = signature[1].type(checked_scalar(function, values, signature[1]))

    def by_numpy(*views: np.ndarray) -> None:
        target, inputs = views[-1], list(views[:-1])
        taken = inputs.pop() if is_array else values
        try:
            ufunc.at(target, index_for_numpy(indices, inputs), taken)
        except ValueError as error:
            raise ShapeError(f"{function}: {error}") from None

    if compute(function, named[1:], host=by_numpy, out=x) is not None:
        return
    positions = arange(x.size, sycl_queue=x.queue, usm_type=x.usm_type)
    targets = reshape(positions, x.shape)[indices]
    amounts = empty_on(placement_of(x), targets.shape, signature[1])
    assign(amounts, values, function)
    flat, targets, amounts = reshape(x, (x.size,)), ravel(targets), ravel(amounts)
    if name not in _AT_ONCE and name not in _ASSOCIATIVE:  # the order and the pairs must be kept
        for at, target in enumerate(targets.asnumpy().tolist()):
            flat[target] = call(flat[target], amounts[at])
    elif targets.size:
        order = argsort(targets)
        targets, amounts = targets[order], amounts[order]
        combine = getattr(elementwise, _AT_ONCE[name]) if name in _AT_ONCE else call
        _combine_runs(combine, targets, amounts)
        is_last = empty_on(placement_of(x), targets.shape, _dtypes.bool)
        is_last[-1:] = True
        is_last[:-1] = targets[1:] != targets[:-1]
        chosen = targets[is_last]
        flat[chosen] = call(flat[chosen], amounts[is_last])
    if flat.block is not x.block:
        assign(x, reshape(flat, x.shape), function)


def _combine_runs(call: Callable[..., ndarray], runs: ndarray, values: ndarray) -> None:
    """Combine each element of ``values`` with the earlier ones of its run, in place."""
    step = 1
    while step < runs.shape[0]:
        same = runs[step:] == runs[:-step]
        if not bool(any_of(same)):
            return
        combined = call(values[:-step], values[step:])
        same = reshape(same, (same.shape[0],) + (1,) * (values.ndim - 1))
        values[step:] = where_of(same, combined, values[step:])
        step *= 2


def _reduceat(
    name: str,
    ufunc: np.ufunc,
    call: Callable[..., ndarray],
    x: Any,
    indices: Any,
    /,
    axis: int = 0,
    dtype: Any = None,
    out: ndarray | None = None,
) -> ndarray:
    """Reduce the elements of slices that start at ``indices``.

    A slice that would be empty is its first element. The host waits for the indices.
    """
    function = f"{name}.reduceat"
    x = check_array(function, "x", x)
    if isinstance(indices, list | tuple):
        indices = from_host(np.asarray(indices, np.int64), x.queue, x.usm_type)
    indices = on_queue_of(x, indices)
    indices = check_array(function, "indices", indices)
    placement = common_placement(function, (("x", x), ("indices", indices)))
    check_out(function, (("x", x), ("indices", indices)), out)
    axis = _layout.normalize_axis(function, axis, x.ndim)
    starts = indices.asnumpy()
    if starts.ndim != 1 or starts.dtype.kind not in "iu":
        raise ArgumentError(f"{function}: indices must be a vector of integers")
    extent = x.shape[axis]
    if starts.size and (starts.min() < 0 or starts.max() >= extent):
        raise IndexError(f"{function}: indices must be from 0 to {extent - 1}")
    loop_dtype = _loop_dtype(name, ufunc, x, dtype)
    shape = (*x.shape[:axis], starts.size, *x.shape[axis + 1 :])
    result = empty_on(placement, shape, loop_dtype)
    found = compute(
        function,
        (("x", x), ("indices", indices)),
        host=lambda a, i, r: ufunc.reduceat(a, i, axis, loop_dtype, r),
        out=result,
    )
    if found is None:
        stops = np.append(starts[1:], extent)
        counts = np.maximum(stops.astype(np.int64) - starts, 1)
        ends = np.cumsum(counts)
        positions = np.arange(counts.sum()) + np.repeat(starts - (ends - counts), counts)
        runs = from_host(np.repeat(np.arange(counts.size), counts), *placement)
        lines = moveaxis(x, axis, 0)[from_host(positions, *placement)]
        lines = copy_of(astype_array(lines, loop_dtype, copy=False))
        if name in _ASSOCIATIVE:
            _combine_runs(call, runs, lines)
            found = lines[from_host(ends - 1, *placement)]
        else:
            found = lines[from_host(ends - counts, *placement)]
            for run, (start, count) in enumerate(zip(ends - counts, counts, strict=True)):
                for at in range(start + 1, start + count):
                    found[run] = call(found[run], lines[at])
        assign(moveaxis(result, axis, 0), found, function)
    return write_out(function, result, out)


_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
    "at": _at,
    "reduceat": _reduceat,
}


def _overridable(method: str) -> Callable[..., Any]:
    """Return a method that calls the override of its arguments' classes, if there is one."""
    make = _METHODS[method]

    @wraps(make)
    def dispatched(name: str, ufunc: np.ufunc, call: Any, /, *args: Any, **options: Any) -> Any:
        found = dispatch_override(getattr(call, method), args, **options)
        return make(name, ufunc, call, *args, **options) if found is NotImplemented else found

    return dispatched


#: Type characters without dparray arrays: extended precision, objects, times.
_FOREIGN_TYPES = frozenset("gGOmM")


def _attach() -> None:
    """Add NumPy's ufunc attributes to the functions that are ufuncs in NumPy."""
    for module in (elementwise, mathematics, bits, products):
        for name in vars(module)["__all__"]:
            ufunc: Any = getattr(np, name, None)
            if not isinstance(ufunc, np.ufunc):
                continue
            call: Any = getattr(module, name)
            call.nin, call.nout, call.nargs = ufunc.nin, ufunc.nout, ufunc.nargs
            call.identity, call.signature = ufunc.identity, ufunc.signature
            call.types = [loop for loop in ufunc.types if not _FOREIGN_TYPES & set(loop)]
            call.ntypes = len(call.types)
            if (ufunc.nin, ufunc.nout, ufunc.signature) == (2, 1, None):
                for method in _METHODS:
                    own = partial(_overridable(method), ufunc.__name__, ufunc, call)
                    own.__name__ = f"{ufunc.__name__}.{method}"  # type: ignore[attr-defined]
                    setattr(call, method, own)


_attach()
