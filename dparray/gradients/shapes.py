"""The rules of functions that move, repeat and join elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray.exceptions import GradientError
from dparray.gradients.calls import (
    COMPOSED,
    CONSTANT,
    apply,
    is_array,
    with_tangent,
)
from dparray.gradients.elementwise import compose, function_of, register
from dparray.gradients.indexing import index_array, scatter
from dparray.gradients.public import dp
from dparray.gradients.rows import Joined, Linear, ReadOnlyView, View
from dparray.gradients.traced import Constant, Spec, Traced, constants, leaves_of


def _to_shape(g: Any, x: Any, *_: Any, **__: Any) -> Any:
    return dp.reshape(g, x.shape)


def _same(g: Any, *_: Any, **__: Any) -> Any:
    return g


def _transposed(g: Any, x: Any, axes: Any = None, **_: Any) -> Any:
    if axes is None:
        return dp.permute_dims(g, tuple(range(x.ndim))[::-1])
    axes = [axis % x.ndim for axis in axes]
    return dp.permute_dims(g, tuple(sorted(range(len(axes)), key=axes.__getitem__)))


def _of_diagonal(g: Any, x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    axis1, axis2 = axis1 % x.ndim, axis2 % x.ndim
    rows, columns = x.shape[axis1], x.shape[axis2]
    at = np.arange(max(0, min(rows + min(offset, 0), columns - max(offset, 0))))
    others = tuple([n for k, n in enumerate(x.shape) if k not in (axis1, axis2)])
    key = (index_array(at - min(offset, 0), g), index_array(at + max(offset, 0), g))
    spec = Spec(x).reshaped((rows, columns, *others))
    return dp.moveaxis(scatter(dp.moveaxis(g, -1, 0), key, spec), (0, 1), (axis1, axis2))


def _of_roll(g: Any, x: Any, shift: Any, axis: Any = None) -> Any:
    back = [-s for s in shift] if isinstance(shift, list | tuple) else -shift
    return dp.roll(g, back, axis=axis)


def _of_repeat(g: Any, x: Any, repeats: Any, axis: Any = None) -> Any:
    shape, line = (x.shape, axis % x.ndim) if axis is not None else ((x.size,), 0)
    repeats = constants(repeats)
    if isinstance(repeats, int | np.integer):
        split = (*shape[: line + 1], int(repeats), *shape[line + 1 :])
        return dp.reshape(dp.sum(dp.reshape(g, split), axis=line + 1), x.shape)
    counts = repeats.asnumpy() if isinstance(repeats, ndarray) else np.asarray(repeats)
    source = np.repeat(np.arange(shape[line]), np.broadcast_to(counts, shape[line]))
    key = (slice(None),) * line + (index_array(source, g),)
    return dp.reshape(scatter(g, key, Spec(x).reshaped(shape)), x.shape)


def _of_tile(g: Any, x: Any, reps: Any) -> Any:
    reps = (reps,) if isinstance(reps, int | np.integer) else tuple(reps)
    ndim = max(len(reps), x.ndim)
    reps = (1,) * (ndim - len(reps)) + reps
    shape = (1,) * (ndim - x.ndim) + x.shape
    split = tuple(itertools.chain.from_iterable(zip(reps, shape, strict=True)))
    return dp.reshape(dp.sum(dp.reshape(g, split), axis=tuple(range(0, 2 * ndim, 2))), x.shape)


def resized(x: Any, size: int, axis: int) -> Any:
    """Return an array cut or filled up with zeros to a length of an axis."""
    axis %= x.ndim
    if x.shape[axis] > size:
        return x[(slice(None),) * axis + (slice(0, size),)]
    if x.shape[axis] < size:
        widths = [(0, size - x.shape[axis] if k == axis else 0) for k in range(x.ndim)]
        return dp.pad(x, widths)
    return x


def _of_concat(i: int, g: Any, arrays: Any, axis: int | None = 0, **_: Any) -> Any:
    if axis is None:
        start = sum(x.size for x in arrays[:i])
        return dp.reshape(g[start : start + arrays[i].size], arrays[i].shape)
    axis %= g.ndim
    start = sum(x.shape[axis] for x in arrays[:i])
    return g[(slice(None),) * axis + (slice(start, start + arrays[i].shape[axis]),)]


def _of_stack(i: int, g: Any, arrays: Any, axis: int = 0, **_: Any) -> Any:
    return g[(slice(None),) * (axis % g.ndim) + (i,)]


def _pad(x: Any, pad_width: Any, mode: str = "constant", **options: Any) -> Any:
    """Pad a traced array: zeros by a rule, other modes by the positions that they copy."""
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))
    if mode == "constant":
        fill = options.get("constant_values", 0)
        inner = apply(_PAD, (x, tuple([(int(a), int(b)) for a, b in widths])), {})
        if isinstance(fill, int | float) and fill == 0:
            return inner
        frame = dp.pad(Spec(x).zeros(), pad_width, constant_values=constants(fill))
        return inner + frame
    if mode in ("linear_ramp", "mean", "maximum", "minimum", "median", "empty"):
        raise GradientError(f"pad: mode={mode!r} has no derivative; join slices: dp.concatenate")
    for axis, (before, behind) in enumerate(widths):
        at = np.pad(np.arange(x.shape[axis]), (before, behind), mode=mode, **options)  # type: ignore[call-overload]
        x = dp.take(x, index_array(at, x), axis=axis)
    return x


def _of_pad(g: Any, x: Any, widths: Any) -> Any:
    return g[tuple([slice(a, a + n) for (a, _), n in zip(widths, x.shape, strict=True)])]


_PAD = Linear("pad", lambda x, widths: dp.pad(x, widths), _of_pad)


def _diag(x: Any, k: int = 0) -> Any:
    if x.ndim == 2:
        return dp.diagonal(x, k)
    at = np.arange(x.shape[0])
    size = x.shape[0] + abs(k)
    key = (index_array(at + max(-k, 0), x), index_array(at + max(k, 0), x))
    return scatter(x, key, Spec(x).reshaped((size, size)))


def _meshgrid(*arrays: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> Any:
    order = list(range(len(arrays)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    made = [
        dp.reshape(x, [x.size if at == number else 1 for at in order])
        for number, x in enumerate(arrays)
    ]
    return made if sparse else dp.broadcast_arrays(*made)


def astype(x: Any, dtype: Any, copy: bool = True, **options: Any) -> Any:
    """Convert a traced array; integers and Booleans are constants."""
    to = dp.dtype(dtype)
    if to == x.dtype and not copy:
        return x
    if to.kind in "biu":
        return dp.astype(constants(x), to, **options)
    return apply(_ASTYPE, (x, to), {})


_ASTYPE = Linear("astype", lambda x, dtype: dp.astype(x, dtype), _same)
_COPY = Linear("copy", lambda x: x.copy() if isinstance(x, ndarray) else dp.copy(x), _same)


def copied(x: Any, *_: Any, **__: Any) -> Any:
    """Return a copy of a traced array."""
    return apply(_COPY, (x,), {})


def _asarray(obj: Any, dtype: Any = None, *_: Any, copy: Any = None, **place: Any) -> Any:
    """Convert a traced array, or nested lists of them."""
    place = {key: value for key, value in place.items() if value is not None}
    place.pop("order", None)
    if type(obj) is not Traced:
        like = next(leaves_of(obj))
        obj = dp.stack([_element(x, like) for x in obj])
    if place:
        wanted = dp.empty(0, **place)
        if wanted.queue != obj.queue:
            raise GradientError(
                "asarray: a differentiated array is not copied to another queue; copy it before: "
                "dp.grad(f)(x.to_device(...))"
            )
    if dtype is not None and dp.dtype(dtype) != obj.dtype:
        return astype(obj, dtype)
    return copied(obj) if copy else obj


def _element(x: Any, like: Any) -> Any:
    if type(x) in (list, tuple) and next(leaves_of(x), None) is not None:
        return dp.stack([_element(inner, like) for inner in x])
    if is_array(x):
        return x
    kind = like.dtype if isinstance(x, int | float) else None
    return dp.asarray(x, dtype=kind, sycl_queue=like.queue)


def _array(obj: Any, dtype: Any = None, *_: Any, ndmin: int = 0, **place: Any) -> Any:
    place.pop("copy", None)
    made = _asarray(obj, dtype, copy=True, **place)
    missing = ndmin - made.ndim
    return made if missing <= 0 else dp.reshape(made, (1,) * missing + made.shape)


def _contiguous(obj: Any, dtype: Any = None, **_: Any) -> Any:
    made = _asarray(obj, dtype)
    return made if made.ndim else dp.reshape(made, (1,))


def _filled_like(name: str) -> Callable[..., Any]:
    def made(x: Any, *args: Any, **options: Any) -> Any:
        value = args[0] if args else options.get("fill_value")
        if type(value) is Traced:  # full_like of a differentiated value
            shape = options.get("shape") or x.shape
            to = options.get("dtype") or (args[1] if len(args) > 1 else None) or x.dtype
            return dp.broadcast_to(astype(value, to, copy=False), shape).copy()
        values = getattr(dp, name)(constants(x), *constants(list(args)), **options)
        return constant_like(x, values)

    return made


def constant_like(x: Any, values: Any) -> Any:
    """Return an array as a constant of the transformation of ``x``, which may be written."""
    if type(x) is not Traced or values.dtype.kind not in "fc":
        return values
    if x._level.is_forward:
        return with_tangent(values, x._level, None)
    return Traced(values, x._level, (Constant([], [Spec(values)]), 0))


def _full(shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    made = dp.broadcast_to(fill_value, (shape,) if isinstance(shape, int) else tuple(shape))
    return copied(made) if dtype is None else astype(made, dtype)


def _linspace(start: Any, stop: Any, num: int = 50, *_: Any, **options: Any) -> Any:
    if options.get("retstep") or options.get("axis"):
        raise GradientError("linspace: has no derivative with retstep= or axis=")
    like = start if is_array(start) else stop
    steps = dp.linspace(
        0.0, 1.0, num, endpoint=options.get("endpoint", True), sycl_queue=like.queue
    )
    steps = dp.astype(steps, like.dtype)
    return start + dp.reshape(steps, (num,) + (1,) * like.ndim) * (stop - start)


def _real(x: Any) -> Any:
    return apply(_REAL, (x,), {}) if x.dtype.kind == "c" else x


def _imag(x: Any) -> Any:
    return apply(_IMAG, (x,), {}) if x.dtype.kind == "c" else dp.zeros_like(constants(x))


_REAL = ReadOnlyView("real", lambda x: dp.real(x), lambda g, x: dp.astype(g, x.dtype))
_IMAG = ReadOnlyView("imag", lambda x: dp.imag(x), lambda g, x: dp.astype(g, x.dtype) * 1j)


def _resize(x: Any, new_shape: Any) -> Any:
    shape = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    flat = dp.reshape(x, (-1,))
    at = np.arange(math.prod(shape)) % max(x.size, 1)
    return dp.reshape(dp.take(flat, index_array(at, x)), shape)


def _enter() -> None:
    for name in ("reshape", "ravel", "squeeze", "expand_dims"):
        register(name, View(name, getattr(dp, name), _to_shape))
    for name in ("transpose", "permute_dims"):
        register(name, View(name, getattr(dp, name), _transposed))
    rows = (
        View("moveaxis", dp.moveaxis, lambda g, x, source, to: dp.moveaxis(g, to, source)),
        View("swapaxes", dp.swapaxes, lambda g, x, a, b: dp.swapaxes(g, a, b)),
        View("flip", dp.flip, lambda g, x, axis=None: dp.flip(g, axis=axis)),
        ReadOnlyView("broadcast_to", dp.broadcast_to, _same),
        ReadOnlyView("diagonal", dp.diagonal, _of_diagonal),
        Linear("roll", dp.roll, _of_roll),
        Linear("repeat", dp.repeat, _of_repeat),
        Linear("tile", dp.tile, _of_tile),
        Joined("concat", dp.concat, _of_concat),
        Joined("stack", dp.stack, _of_stack),
    )
    for row in rows:
        register(row.name, row)
    turned = View("matrix_transpose", dp.matrix_transpose, lambda g, x: dp.matrix_transpose(g))
    register("matrix_transpose", turned, "linalg.matrix_transpose")
    compose(
        globals(),
        "pad diag meshgrid asarray array full linspace real imag resize",
    )
    composed: dict[str, Any] = {
        "astype": astype,
        "copy": copied,
        "asanyarray": _asarray,
        "ascontiguousarray": _contiguous,
        "asfortranarray": _contiguous,
        **{name: _filled_like(name) for name in ("zeros_like", "ones_like", "empty_like")},
        "full_like": _filled_like("full_like"),
    }
    COMPOSED.update({function_of(name): function for name, function in composed.items()})
    assert not CONSTANT & COMPOSED.keys()


_enter()
