"""Functions of sharded arrays: element-wise functions, reductions, products, NumPy's protocols.

Each calls the function of the same name on every shard. A reduction along the sharded axis combines
one partial result per device on the first device; other devices get a copy of the result when they
need it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from dparray import _layout, special
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_fits
from dparray._functions.user_functions import ElementwiseFunction
from dparray._graph.ops import COMPARISONS, OPERATORS, OPS, SINGLE_OPERATORS
from dparray.exceptions import (
    KernelArgumentError,
    ShapeError,
    ShardingError,
    UnsupportedFeatureError,
)
from dparray.sharding.array import (
    ShardedArray,
    described,
    failures,
    library,
    on_each,
    unequal,
)
from dparray.sharding.layout import Sharding
from dparray.sharding.operands import localised, refuse_cut

#: Functions whose result has one element per element of the operands.
_ELEMENTWISE = frozenset(
    {name for op in OPS.values() for name in (op.name, *op.aliases)}
    | {"rint", "angle", "clip", "imag", "real", "rsqrt", "where"}
    | {"round", "around", "astype", "isclose", "nan_to_num", "sinc", "copy"}
    | {"isreal", "iscomplex", "isneginf", "isposinf", "fix", "i0", "heaviside"}
    | {"zeros_like", "ones_like", "full_like", "empty_like", "divmod", "modf", "frexp"}
)

#: Reductions, and the functions that combine the results of the shards.
_REDUCTIONS = {
    **{name: name for name in ("sum", "prod", "max", "min", "any", "all")},
    "amax": "max",
    "amin": "min",
    "count_nonzero": "sum",
    "ptp": "ptp",
    "nansum": "sum",
    "nanprod": "prod",
    "nanmax": "nanmax",
    "nanmin": "nanmin",
    **{name: name for name in ("mean", "var", "std", "argmax", "argmin")},
}

#: Reductions that are undefined without elements.
_NONEMPTY = ("max", "min", "amax", "amin", "ptp", "nanmax", "nanmin")

#: Functions along one axis, with the default axis.
_ALONG_AXIS: dict[str, int | None] = {
    **dict.fromkeys(("sort", "argsort", "diff", "cumulative_sum", "cumulative_prod"), -1),
    **dict.fromkeys(("cumsum", "cumprod", "median", "quantile", "percentile"), None),
    **dict.fromkeys(("flip", "roll", "nanmean", "nanvar", "nanstd", "nanmedian"), None),
}


def call(name: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return a public function for sharded arrays.

    Raises:
        ShardingError: it would have to copy between devices.
        UnsupportedFeatureError: sharded arrays do not support the function.
    """
    if name == "where" and all(value is None for value in args[1:]):
        name = "nonzero"  # whose results depend on the sizes of other shards
    if name in _ELEMENTWISE:
        return elementwise_call(name, args, options)
    special = FUNCTIONS.get(name)
    if options.get("out") is not None:
        raise _not_supported(name, "out", f"; assign the result: out[...] = {name}(...)")
    if special is not None:
        return special(*args, **options)
    if name in _REDUCTIONS:
        return reduce(name, *args, **options)
    if name in _ALONG_AXIS:
        return along_axis(name, getattr(library(), name), _ALONG_AXIS[name], args, options)
    raise _unsupported(name)


def elementwise_call(
    name: str,
    args: Sequence[Any],
    options: dict[str, Any],
    function: Callable[..., Any] | None = None,
) -> Any:
    """Return an element-wise function on the shards of each device.

    Args:
        name: its name, for errors.
        args: its arguments by position.
        options: its keyword arguments.
        function: the function; that of the namespace by default.
    """
    function = function or getattr(library(), name)
    for key in ("shape", "device", "sycl_queue"):
        if options.get(key) is not None:
            raise _not_supported(name, key)
    keys = [key for key, value in options.items() if isinstance(value, ShardedArray | ndarray)]
    operands = [*args, *(options[key] for key in keys)]
    names = [*_parameters(function)[: len(args)], *keys]
    outs = [
        at for at, key in enumerate(names) if key.startswith("out") and operands[at] is not None
    ]
    is_sharded = bool(outs) and isinstance(operands[outs[0]], ShardedArray)
    target, out = (outs[0], operands[outs[0]]) if is_sharded else (None, None)
    if len(outs) > 1 or isinstance(options.get("out"), tuple) or "out1" in names:
        raise _not_supported(name, "out", "; use the results: a, b = ...")
    shapes = [
        value.shape
        for position, value in enumerate(operands)
        if position not in outs and isinstance(value, ShardedArray | ndarray)
    ]
    shape = _layout.broadcast_shapes(name, shapes)
    if out is not None:
        check_fits(name, shape, out.dtype, out, broadcasts=True)
        shape = out.shape
    local, sharding = localised(name, operands, names, target=target)
    if sharding.axis is not None and shape[sharding.axis] != sharding.bounds[-1]:
        at, x = next(
            (position, value)
            for position, value in enumerate(operands)
            if isinstance(value, ShardedArray) and not value.is_replicated
        )
        own = names[at]
        rows = [(own, described(x)), ("result", str(tuple(shape)))]
        line = f"{own} = dp.distribute({own}, {own}.devices, axis=None)"
        # Its only row is on one device, but is needed on all of them.
        raise unequal(name, rows, (own, x), Sharding(x.devices, None), line)

    def compute(values: Sequence[Any]) -> Any:
        arguments = {**options, **dict(zip(keys, values[len(args) :], strict=True))}
        return function(*values[: len(args)], **arguments)

    results = on_each(name, sharding, compute, local)
    if out is not None:
        return out
    if isinstance(results[0], tuple):
        return tuple(ShardedArray(sharding, parts) for parts in zip(*results, strict=True))
    return ShardedArray(sharding, results)


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    if isinstance(function, ElementwiseFunction):
        return function.parameters
    return tuple(inspect.signature(function).parameters)


def _not_supported(name: str, option: str, remedy: str = "") -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{name}: {option}= is not supported for sharded arrays{remedy or '; omit it'}"
    )


def replicate(whole: ndarray, like: Sharding) -> ShardedArray:
    """Return an array on one device that is copied to the others when they need it."""
    return ShardedArray(Sharding(like.devices, None), None, whole=whole)


def reduce(
    name: str, x: ShardedArray, axis: Any = None, *args: Any, keepdims: bool = False, **options: Any
) -> ShardedArray:
    """Return a reduction: of each shard alone, or combined if the sharded axis is reduced."""
    if name in ("mean", "var", "std"):
        return _moments(name, x, axis, *args, keepdims=keepdims, **options)
    if name in ("argmax", "argmin"):
        return _arg_extreme(name, x, axis, keepdims=keepdims)
    if args:
        options["dtype"] = args[0]
    axes = _axes(name, x, axis)
    for key in ("initial", "where"):
        if options.get(key) is not None:
            raise _not_supported(name, key)
    if len(args) > 1:
        raise _not_supported(name, "out")
    if not x.size and 0 in (x.shape[at] for at in axes) and name in _NONEMPTY:
        raise ShapeError(f"{name}: x of shape {x.shape} must not be empty along axes {axes}")
    if x.sharding.axis not in axes:
        return _reduce_parts(name, x, axes, keepdims, options)
    if name == "ptp":
        ends = [reduce(end, x, axes, keepdims=keepdims) for end in ("max", "min")]
        return call("subtract", ends, {})
    return combine(name, partial_results(name, x, axes, options), x.sharding, axes, keepdims)


def partial_results(
    name: str, x: ShardedArray, axes: tuple[int, ...], options: dict[str, Any]
) -> list[ndarray]:
    """Return the reduction of each nonempty shard, submitted to all queues."""
    function = getattr(library(), name)
    parts = []
    for number, shard in enumerate(x.shards):
        if shard.size or not x.size:
            with failures(name, x.sharding, number, shard.nbytes):
                part = function(shard, axis=axes, keepdims=True, **options)
                library().eval(part)
            parts.append(part)
    return parts


def combine(
    name: str,
    parts: list[ndarray],
    sharding: Sharding,
    axes: tuple[int, ...],
    keepdims: bool,
) -> ShardedArray:
    """Combine the results of the shards, with their axes kept, to one result."""
    axis = sharding.axis
    assert axis is not None
    first = sharding.devices[0]
    with failures(name, sharding, 0):
        gathered = [part.to_device(first) for part in parts]
        joined = library().concat(gathered, axis=axis)
        combining = _REDUCTIONS[name]
        options = {"dtype": joined.dtype} if combining in ("sum", "prod") else {}
        result = getattr(library(), combining)(joined, axis=axis, keepdims=True, **options)
        if not keepdims:
            result = library().squeeze(result, axis=axes)
    return replicate(result, sharding)


def _axes(name: str, x: ShardedArray, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(sorted(_layout.normalize_axes(name, axis, x.ndim)))


def _reduce_parts(
    name: str, x: ShardedArray, axes: tuple[int, ...], keepdims: bool, options: dict[str, Any]
) -> ShardedArray:
    """Reduce axes other than the sharded one."""
    compute = partial(getattr(library(), name), axis=axes, keepdims=keepdims, **options)
    results = on_each(name, x.sharding, compute, x.shards)
    return ShardedArray(_without(x.sharding, axes, keepdims), results)


def _without(sharding: Sharding, axes: tuple[int, ...], keepdims: bool) -> Sharding:
    axis = sharding.axis
    if axis is None or keepdims:
        return sharding
    return sharding.moved(axis - sum(at < axis for at in axes))


def _moments(
    name: str,
    x: ShardedArray,
    axis: Any = None,
    *,
    keepdims: bool = False,
    correction: float = 0,
    ddof: float = 0,
    dtype: Any = None,
) -> ShardedArray:
    """Compute a mean, variance or standard deviation from those of the shards."""
    axes = _axes(name, x, axis)
    options = {} if dtype is None else {"dtype": dtype}
    degrees = correction or ddof
    if x.sharding.axis not in axes:
        if name != "mean":
            options["correction"] = degrees
        return _reduce_parts(name, x, axes, keepdims, options)
    parts = [shard for shard in x.shards if shard.size] or list(x.shards)
    sharded = x.sharding.axis
    counts = [float(np.prod([part.shape[at] for at in axes])) for part in parts]
    total = sum(counts)
    means = partial_results("mean", x, axes, options)
    variances = partial_results("var", x, axes, options) if name != "mean" else []
    first = x.devices[0]
    with failures(name, x.sharding, 0):
        means = [part.to_device(first) for part in means]
        weights = [count / total if total else np.nan for count in counts]
        result = _weighted(means, weights)
        if name != "mean":
            centre = result
            moved = [part.to_device(first) for part in variances]
            spread = [
                part + library().square(library().abs(mean - centre))
                for part, mean in zip(moved, means, strict=True)
            ]
            left = total - degrees
            result = _weighted(spread, weights) * (total / left if left > 0 else np.nan)
            if name == "std":
                result = library().sqrt(result)
        if not keepdims:
            result = library().squeeze(result, axis=axes)
    assert sharded is not None
    return replicate(result, x.sharding)


def _weighted(parts: Sequence[ndarray], weights: Sequence[float]) -> Any:
    total: Any = parts[0] * weights[0]
    for part, weight in zip(parts[1:], weights[1:], strict=True):
        total = total + part * weight
    return total


def _arg_extreme(
    name: str, x: ShardedArray, axis: Any = None, *, keepdims: bool = False
) -> ShardedArray:
    """Return the index of the first maximum or minimum."""
    sharded = x.sharding.axis
    if axis is not None:
        axis = _layout.normalize_axis(name, axis, x.ndim)
    if sharded is None or (axis is not None and axis != sharded):
        function = getattr(library(), name)
        axes = tuple(range(x.ndim)) if axis is None else (axis,)
        results = [function(shard, axis=axis, keepdims=keepdims) for shard in x.shards]
        return ShardedArray(_without(x.sharding, axes, keepdims), results)
    if axis is None:
        if sharded != 0:
            raise refuse_cut(f"{name} over all axes", x, sharded, 0 if x.ndim > 1 else None)
        flat = [library().reshape(shard, (-1,)) for shard in x.shards]
        row = x.size // max(1, x.shape[0])
        starts = [start * row for start in x.sharding.bounds[:-1]]
        at = _position_of_extreme(name, flat, starts, 0, x.sharding)
        return replicate(library().reshape(at, (1,) * x.ndim if keepdims else ()), x.sharding)
    at = _position_of_extreme(name, x.shards, x.sharding.bounds[:-1], axis, x.sharding)
    return replicate(at if keepdims else library().squeeze(at, axis=axis), x.sharding)


def _position_of_extreme(
    name: str, parts: Sequence[ndarray], starts: Sequence[int], axis: int, sharding: Sharding
) -> Any:
    dp, first = library(), sharding.devices[0]
    if not any(part.shape[axis] for part in parts):
        raise ShapeError(f"{name}: x must not be empty along axis {axis}")
    positions, values = [], []
    for part, start in zip(parts, starts, strict=True):
        if part.shape[axis]:
            at = getattr(dp, name)(part, axis=axis, keepdims=True)
            values.append(dp.take_along_axis(part, at, axis=axis).to_device(first))
            positions.append((at + start).to_device(first))
    best = getattr(dp, name)(dp.concat(values, axis=axis), axis=axis, keepdims=True)
    return dp.take_along_axis(dp.concat(positions, axis=axis), best, axis=axis)


def along_axis(
    name: str,
    function: Callable[..., Any],
    default: Any,
    args: Sequence[Any],
    options: dict[str, Any],
) -> Any:
    """Return a function along axes, by default ``default``, that runs on each shard alone.

    Raises:
        ShardingError: the array is sharded along one of these axes.
    """
    x = args[0] if args else None
    if not isinstance(x, ShardedArray):
        raise ShardingError(f"{name}: the sharded array must be the first argument")
    arguments = inspect.signature(function).bind(*args, **options).arguments
    axis = arguments.get("axes" if "axes" in arguments else "axis", default)
    sharded = x.sharding.axis
    axes = _axes(name, x, axis)
    if sharded in axes:
        other = next((position for position in range(x.ndim) if position not in axes), None)
        raise refuse_cut(name, x, sharded, other)
    results = [function(shard, *args[1:], **options) for shard in x.shards]
    sharding = x.sharding
    if results[0].ndim < x.ndim:
        sharding = _without(sharding, axes, False)
    return ShardedArray(sharding, results)


def matmul(x1: Any, x2: Any, /) -> ShardedArray:
    """Return the matrix product of sharded arrays.

    These layouts need no copies: sharded rows of ``x1`` with a replicated ``x2``, a replicated
    ``x1`` with sharded columns of ``x2``, and stacks sharded alike. If the summed axis is sharded
    alike in both, each device computes a partial product, and the first device adds them. Any other
    layout raises.
    """
    for value in (x1, x2):
        if not isinstance(value, ShardedArray):
            localised("matmul", (x1, x2))  # raises
    first, second = x1.sharding.axis, x2.sharding.axis
    summed1, summed2 = x1.ndim - 1, max(x2.ndim - 2, 0)
    if x1.shape[summed1] != x2.shape[summed2]:
        raise ShapeError(f"matmul: shapes {x1.shape} and {x2.shape} do not match")
    _layout.broadcast_shapes("matmul of stacks", [x1.shape[:-2], x2.shape[:-2]])
    dp, devices = library(), x1.devices
    pairs = list(zip(x1.shards, x2.shards, strict=False))
    if devices == x2.devices:
        same = x1.sharding.bounds == x2.sharding.bounds
        if first == summed1 and second == summed2 and same:
            parts = []
            for number, (a, b) in enumerate(pairs):
                if a.shape[-1] or not x1.shape[-1]:
                    with failures("matmul", x1.sharding, number, a.nbytes):
                        part = dp.matmul(a, b)
                        dp.eval(part)
                    parts.append(part)
            with failures("matmul", x1.sharding, 0):
                moved = [part.to_device(devices[0]) for part in parts]
                total = moved[0]
                for part in moved[1:]:
                    total = total + part
            return replicate(total, x1.sharding)
        axis: int | None = -1
        ndim = max(x1.ndim, x2.ndim) - (x1.ndim == 1) - (x2.ndim == 1)
        if first is None and second is None:
            axis, cut = None, x1.sharding
        elif second is None and first is not None and first == x1.ndim - 2:
            axis, cut = ndim - 2 + (x2.ndim == 1), x1.sharding
        elif first is None and second is not None and x2.ndim > 1 and second == x2.ndim - 1:
            axis, cut = ndim - 1, x2.sharding
        elif (
            first is not None
            and second is not None
            and first < x1.ndim - 2
            and second < x2.ndim - 2
            and same
            and first - x1.ndim == second - x2.ndim
        ):
            axis, cut = ndim + first - x1.ndim, x1.sharding
        if axis is None or axis >= 0:
            results = on_each("matmul", cut, dp.matmul, x1.shards, x2.shards)
            return ShardedArray(cut.moved(axis), results)
    line = "x2 = dp.distribute(x2, x1.devices, axis=None), with the rows of x1 sharded"
    rows = [("x1", described(x1)), ("x2", described(x2))]
    raise unequal("matmul", rows, ("x2", x2), Sharding(devices, None), line)


def _joined(arrays: Sequence[Any], /, axis: int = 0) -> ShardedArray:
    """Join arrays along an axis that is not sharded."""
    local, sharding = localised("concatenate", arrays)
    axis = _layout.normalize_axis("concatenate", axis, local[0][0].ndim)
    if len({(x.ndim, x.shape[:axis], x.shape[axis + 1 :]) for x in arrays}) > 1:
        raise ShapeError(
            f"concatenate: shapes {', '.join(str(x.shape) for x in arrays)} must be equal except "
            f"along axis {axis}"
        )
    if axis == sharding.axis:
        raise refuse_cut(
            "concatenate", arrays[0], axis, 1 if arrays[0].ndim > 1 and not axis else 0
        )
    return ShardedArray(sharding, [library().concat(parts, axis=axis) for parts in local])


#: Functions with their own implementation.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul": matmul,
    "dot": matmul,
    "concat": _joined,
    "concatenate": _joined,
    "transpose": ShardedArray.transpose,
    "permute_dims": ShardedArray.transpose,
    "matrix_transpose": lambda x: x.transpose((*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)),
    "asnumpy": ShardedArray.asnumpy,
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "size": lambda x: x.size,
    "eval": lambda x: x.eval(),
}


# -- the methods and operators of arrays ----------------------------------------------------------


def _dparray_function(
    self: ShardedArray, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]
) -> Any:
    """Call a public function of dparray with this array as an argument."""
    if isinstance(function, ElementwiseFunction) or function in _of_special():
        return elementwise_call(function.__name__, args, options, function)
    name = function.__name__
    if name == "call_kernel":
        raise KernelArgumentError(
            f"kernel {args[0].__name__}: an argument is a sharded array; launch the kernel over "
            "its shards: dp.call_kernel(kernel, dp.sharding.ShardedRange(x), x)"
        )
    known = getattr(library(), name, function)
    if not (known is function or isinstance(known, ModuleType)) and name in _known():
        raise _unsupported(".".join([*function.__module__.split(".")[1:2], name]))
    return call(name, args, options)


@functools.cache
def _of_special() -> frozenset[Callable[..., Any]]:
    """Return the element-wise functions of :mod:`dparray.special`."""
    return frozenset(special._FUNCTIONS.values())


@functools.cache
def _known() -> frozenset[str]:
    """Return the names of the functions of the namespace that sharded arrays support."""
    return _ELEMENTWISE | FUNCTIONS.keys() | _REDUCTIONS.keys() | _ALONG_AXIS.keys()


def _unsupported(name: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{name}: sharded arrays are not supported; apply it to each shard, "
        f"x.map_blocks(...), or on one device, x.gather()"
    )


def _array_ufunc(
    self: ShardedArray, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
) -> Any:
    """Call the dparray function with the name of a NumPy ufunc."""
    name = ufunc.__name__
    if method != "__call__" or not hasattr(library(), name):
        raise UnsupportedFeatureError(
            f"numpy.{name}{'' if method == '__call__' else '.' + method}: sharded "
            "arrays are not supported; use x.map_blocks or x.gather()"
        )
    out = options.get("out")
    if isinstance(out, tuple) and len(out) == 1:
        options["out"] = out[0]
    return call(name, inputs, options)


def _array_function(
    self: ShardedArray, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
) -> Any:
    """Call the dparray function with the name of a NumPy function."""
    options = {key: value for key, value in kwargs.items() if value is not np._NoValue}
    return call(function.__name__, args, options)


def _operator(name: str) -> tuple[Callable[..., Any], ...]:
    def operate(self: ShardedArray, other: Any) -> Any:
        return call(name, (self, other), {})

    def reflected(self: ShardedArray, other: Any) -> Any:
        return call(name, (other, self), {})

    def in_place(self: ShardedArray, other: Any) -> Any:
        return call(name, (self, other), {"out": self})

    return operate, reflected, in_place


_METHODS = (
    *("sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "argmax", "argmin", "ptp"),
    *("astype", "round", "clip", "conj", "sort", "argsort", "cumsum", "cumprod", "copy"),
    *("reshape", "ravel", "squeeze", "swapaxes"),
)


def _method(name: str) -> Callable[..., Any]:
    def method(self: ShardedArray, *args: Any, **options: Any) -> Any:
        return call(name, (self, *args), options)

    method.__name__, method.__qualname__ = name, f"ShardedArray.{name}"
    method.__doc__ = f"Call :func:`dparray.{name}` with this array."
    return method


def _attach() -> None:
    for short, name in (OPERATORS | {"pow": "pow"}).items():
        for prefix, operator in zip(("", "r", "i"), _operator(name), strict=True):
            setattr(ShardedArray, f"__{prefix}{short}__", operator)
    for short, name in COMPARISONS.items():
        setattr(ShardedArray, f"__{short}__", _operator(name)[0])
    for short, name in SINGLE_OPERATORS.items():
        setattr(ShardedArray, f"__{short}__", _method(name))
    for name in _METHODS:
        setattr(ShardedArray, name, _method(name))
    ShardedArray.__matmul__ = matmul
    ShardedArray.__rmatmul__ = lambda self, other: matmul(other, self)
    ShardedArray.__hash__ = None  # type: ignore[assignment]  # as `==` compares elements
    ShardedArray.__dparray_function__ = _dparray_function
    ShardedArray.__array_ufunc__ = _array_ufunc
    ShardedArray.__array_function__ = _array_function


_attach()
