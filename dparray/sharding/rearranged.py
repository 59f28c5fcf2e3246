"""Functions of sharded arrays that reshape, sum products, count and transform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, prod
from typing import Any

from dparray import _layout
from dparray._array.ndarray import ndarray
from dparray.exceptions import ArgumentError, ShapeError, ShardingError, UnsupportedFeatureError
from dparray.sharding.array import ShardedArray, along, failures, library, on_each
from dparray.sharding.functions import FUNCTIONS, along_axis, call, replicate
from dparray.sharding.layout import Sharding
from dparray.sharding.operands import refuse_cut

# Shape manipulation.


def reshape(x: ShardedArray, shape: Any, *others: Any, **options: Any) -> ShardedArray:
    """Return the array with another shape, in which each shard keeps its elements.

    The result is a view if every shard can be one, otherwise a copy.

    Raises:
        ShapeError: the shape has another number of elements.
        ShardingError: elements would move to other devices.
    """
    copy = options.pop("copy", None)
    unknown = {key for key, value in options.items() if value not in (None, "C")}
    if unknown:
        raise UnsupportedFeatureError(
            f"reshape: {', '.join(unknown)} is not supported for sharded arrays"
        )
    wanted = [shape, *others] if isinstance(shape, int) else list(shape)
    if wanted.count(-1) == 1:
        rest = prod(size for size in wanted if size != -1)
        if rest and x.size % rest == 0:
            wanted[wanted.index(-1)] = x.size // rest
    if prod(wanted) != x.size or min(wanted, default=0) < 0:
        raise ShapeError(f"reshape: an array of shape {x.shape} cannot have shape {tuple(wanted)}")
    axis = x.sharding.axis
    if axis is None:
        sharding = x.sharding
        sizes: list[int | None] = [None] * len(x.devices)
    else:
        sharding = _reshaped(x, axis, wanted)
        sizes = list(sharding.sizes)
        axis = sharding.axis
    shapes = [
        tuple(size if at == axis and size is not None else each for at, each in enumerate(wanted))
        for size in sizes
    ]
    # A view of some shards and a copy of others would make writes change a part of x.
    if not copy and any(
        _layout.reshape_strides(shard.shape, shard.strides, own, shard.itemsize) is None
        for shard, own in zip(x.shards, shapes, strict=True)
    ):
        if copy is False:
            raise ValueError(
                f"reshape: copy=False, but not every shard of x of shape {x.shape} can be viewed "
                f"as a part of {tuple(wanted)} without a copy"
            )
        copy = True
    compute = partial(library().reshape, copy=copy)
    return ShardedArray(sharding, on_each("reshape", x.sharding, compute, x.shards, shapes))


def _reshaped(x: ShardedArray, axis: int, wanted: Sequence[int]) -> Sharding:
    """Return the sharding of another shape, whose bounds are at whole rows."""
    if not x.size:
        at = list(wanted).index(0)
        return Sharding(x.devices, at, (0,) * (len(x.devices) + 1))
    before, row = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    for at in range(len(wanted)):
        own = prod(wanted[at + 1 :])
        starts = [bound * row for bound in x.sharding.bounds]
        if prod(wanted[:at]) == before and own and all(start % own == 0 for start in starts):
            return Sharding(x.devices, at, tuple([start // own for start in starts]))
    raise ShardingError(
        f"reshape: x of shape {x.shape} is sharded along axis {axis} at {x.sharding.bounds[1:-1]}, "
        f"which is inside a row of shape {tuple(wanted)}, and nothing is copied implicitly: "
        "dp.distribute(x.gather().reshape(...), x.devices)"
    )


def ravel(x: ShardedArray, order: str = "C") -> ShardedArray:
    """Flatten the array."""
    return reshape(x, (-1,), order=order)


def expand_dims(x: ShardedArray, axis: Any = 0) -> ShardedArray:
    """Insert axes of length 1."""
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = _layout.normalize_axes("expand_dims", given, x.ndim + len(given))
    sizes = iter(x.shape)
    shape = [1 if position in axes else next(sizes) for position in range(x.ndim + len(given))]
    places = [position for position in range(len(shape)) if position not in axes]
    return _with_axes(x, "expand_dims", {"axis": axis}, places)


def squeeze(x: ShardedArray, axis: Any = None) -> ShardedArray:
    """Remove axes of length 1."""
    ones = tuple(at for at, size in enumerate(x.shape) if size == 1 and at != x.sharding.axis)
    axes = ones if axis is None else _layout.normalize_axes("squeeze", axis, x.ndim)
    if x.sharding.axis in axes:
        raise refuse_cut("squeeze", x, x.sharding.axis, None)
    kept = iter(range(x.ndim))
    places = [-1 if position in axes else next(kept) for position in range(x.ndim)]
    return _with_axes(x, "squeeze", {"axis": tuple(axes)}, places)


def _with_axes(
    x: ShardedArray, name: str, options: dict[str, Any], places: Sequence[int]
) -> ShardedArray:
    shards = [getattr(library(), name)(shard, **options) for shard in x.shards]
    axis = x.sharding.axis
    return ShardedArray(x.sharding.moved(None if axis is None else places[axis]), shards)


def swapaxes(x: ShardedArray, axis1: int, axis2: int) -> ShardedArray:
    """Exchange two axes."""
    order = list(range(x.ndim))
    first, second = (_layout.normalize_axis("swapaxes", at, x.ndim) for at in (axis1, axis2))
    order[first], order[second] = second, first
    return x.transpose(tuple(order))


# Norms.


def vector_norm(
    x: ShardedArray, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> ShardedArray:
    """Return vector norms."""
    if x.dtype.kind in "biu":
        x = call("astype", (x, "float64"), {})
    sizes = call("abs", (x,), {})
    options = {"axis": axis, "keepdims": keepdims}
    if ord in (inf, -inf):
        return call("max" if ord > 0 else "min", (sizes,), options)
    if ord == 0:
        return call("astype", (call("count_nonzero", (sizes,), options), sizes.dtype), {})
    if ord == 1:
        return call("sum", (sizes,), options)
    if ord == 2:
        return call("sqrt", (call("sum", (sizes * sizes,), options),), {})
    return call("sum", (sizes**ord,), options) ** (1 / ord)


def norm(x: ShardedArray, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return vector norms, and the matrix norms that need no decomposition."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    if ord is None or (ord in ("fro", "f") and len(axes) == 2):
        return vector_norm(x, axis=axes, keepdims=keepdims)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=ord)
    if len(axes) == 2 and ord in (1, -1, inf, -inf):
        rows, columns = _layout.normalize_axes("norm", axes, x.ndim)
        summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = call("sum", (call("abs", (x,), {}),), {"axis": summed, "keepdims": True})
        found = call("max" if ord > 0 else "min", (sums,), {"axis": other, "keepdims": True})
        return found if keepdims else squeeze(found, axes)
    raise UnsupportedFeatureError(
        f"norm: ord={ord!r} is not supported for sharded arrays; use x.gather()"
    )


# Sums of products.


def einsum(subscripts: str, *operands: Any, **options: Any) -> ShardedArray:
    """Return sums of products in Einstein notation.

    All sharded operands must be sharded along the same letter. If the result has this letter, it is
    sharded there; otherwise the results of the shards are added on the first device.

    Raises:
        ShardingError: operands are sharded along several letters or at different positions.
    """
    if not isinstance(subscripts, str) or "..." in subscripts or any(options.values()):
        raise UnsupportedFeatureError(
            "einsum: for sharded arrays, subscripts must be a string without '...', without options"
        )
    given, arrow, output = subscripts.replace(" ", "").partition("->")
    letters = given.split(",")
    if not arrow:
        output = "".join(sorted(each for each in set(given) - {","} if given.count(each) == 1))
    if len(letters) != len(operands):
        raise ArgumentError(
            f"einsum: {subscripts!r} has {len(letters)} terms, but there are {len(operands)} arrays"
        )
    leader: tuple[str, Sharding] | None = None
    sizes: dict[str, int] = {}
    for number, (term, x) in enumerate(zip(letters, operands, strict=True)):
        if not isinstance(x, ShardedArray):
            raise ShardingError(
                f"einsum: operands[{number}] is on one device; write "
                "dp.distribute(operand, x.devices, axis=None) for a copy on each"
            )
        if len(term) != x.ndim:
            raise ShapeError(
                f"einsum: {term!r} has {len(term)} letters, but its array has {x.ndim} axes"
            )
        for letter, size in zip(term, x.shape, strict=True):
            if 1 not in (size, known := sizes.setdefault(letter, size)) and size != known:
                raise ShapeError(
                    f"einsum: {letter!r} has sizes {known} and {size}; operands[{number}] has "
                    f"shape {x.shape}"
                )
        if x.sharding.axis is not None:
            found = term[x.sharding.axis], x.sharding
            leader = leader or found
            same = leader[1].bounds == found[1].bounds and leader[1].devices == found[1].devices
            if leader[0] != found[0] or not same or term.count(found[0]) > 1:
                raise ShardingError(
                    f"einsum: operands[{number}] is sharded along {found[0]!r} ({found[1]}), "
                    f"another along {leader[0]!r} ({leader[1]}), and nothing is copied implicitly: "
                    f"dp.distribute(operand, like=...), or x.gather()"
                )
    compute = partial(library().einsum, f"{given}->{output}")
    parts = [
        [_at_letter(x, term, leader, number) for number in range(len(operands[0].devices))]
        for term, x in zip(letters, operands, strict=True)
    ]
    results = on_each("einsum", operands[0].sharding, compute, *parts)
    if leader is None:
        return ShardedArray(operands[0].sharding, results)
    letter, sharding = leader
    if letter in output:
        return ShardedArray(sharding.moved(output.index(letter)), results)
    return replicate(_added(results, sharding), sharding)


def _at_letter(
    x: ShardedArray, term: str, leader: tuple[str, Sharding] | None, number: int
) -> ndarray:
    """Return the part of an operand that a device needs."""
    shard = x.shards[number]
    if leader is None or x.sharding.axis is not None or leader[0] not in term:
        return shard
    bounds = leader[1].bounds
    for axis, letter in enumerate(term):
        if letter == leader[0]:
            shard = shard[along(axis, slice(bounds[number], bounds[number + 1]))]
    return shard


def _added(parts: Sequence[ndarray], sharding: Sharding) -> Any:
    """Add results on the first device."""
    library().eval(*parts)
    with failures("sum", sharding, 0):
        first, *others = [part.to_device(sharding.devices[0]) for part in parts]
        total: Any = first
        for part in others:
            total = total + part
    return total


# Histograms.


def histogram(
    x: ShardedArray,
    bins: Any = 10,
    range: Any = None,
    weights: Any = None,
    density: bool = False,
) -> tuple[ShardedArray, ShardedArray]:
    """Return a histogram, whose counts are added over the shards, and its edges, on each device."""
    dp = library()
    if isinstance(bins, str) or isinstance(weights, ndarray):
        raise UnsupportedFeatureError(
            "histogram: for sharded arrays, bins must be a number or edges, and weights must be "
            "sharded: dp.distribute(weights, like=x)"
        )
    if range is None and isinstance(bins, int) and x.size:
        range = float(call("min", (x,), {})), float(call("max", (x,), {}))
    parts: Sequence[Any] = [weights] * len(x.devices)
    if isinstance(weights, ShardedArray):
        parts = weights.shards
        if [part.shape for part in parts] != [part.shape for part in x.shards]:
            raise ShardingError(
                "histogram: weights must be sharded: weights = dp.distribute(weights, like=x)"
            )
    whole = bins.gather() if isinstance(bins, ShardedArray) else bins

    def compute(shard: ndarray, weights: Any) -> Any:
        own = whole.to_device(shard.device) if isinstance(whole, ndarray) else whole
        return dp.histogram(shard, own, range, weights=weights)

    count = 1 if x.is_replicated else len(x.devices)
    results = on_each("histogram", x.sharding, compute, x.shards[:count], parts[:count])
    edges = results[0][1]
    total = _added([counts for counts, _ in results], x.sharding)
    if density:
        total = total / dp.sum(total) / dp.diff(edges)
    return replicate(total, x.sharding), replicate(edges, x.sharding)


# Fourier transforms.


def _transform(name: str, default: Any) -> Callable[..., Any]:
    def transform(x: ShardedArray, *args: Any, **options: Any) -> Any:
        return along_axis(name, getattr(library().fft, name), default, (x, *args), options)

    return transform


_TRANSFORMS = {
    **dict.fromkeys(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), -1),
    **dict.fromkeys(("fft2", "ifft2", "rfft2", "irfft2"), (-2, -1)),
    **dict.fromkeys(("fftn", "ifftn", "rfftn", "irfftn", "fftshift", "ifftshift"), None),
}


# Explanation.


class ShardExplanations(list[Any]):
    """The plan of each shard; prints as text."""

    def __str__(self) -> str:
        return "\n\n".join(f"shard {n}: {each}" for n, each in enumerate(self, 1))


def explain(x: ShardedArray, *others: Any, **named: Any) -> ShardExplanations:
    """Return how each shard would be computed, without computing anything."""
    explain_one = library().explain
    return ShardExplanations(
        explain_one(
            shard,
            *[other.shards[n] if isinstance(other, ShardedArray) else other for other in others],
            **named,
        )
        for n, shard in enumerate(x.shards)
    )


_HERE = (
    *(reshape, ravel, expand_dims, squeeze, swapaxes, vector_norm, norm, einsum, histogram),
    explain,
)
FUNCTIONS.update({function.__name__: function for function in _HERE})
FUNCTIONS.update({name: _transform(name, default) for name, default in _TRANSFORMS.items()})
