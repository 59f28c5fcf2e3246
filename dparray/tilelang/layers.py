"""Layers of neural networks as Tile functions: convolution, pooling, and dense.

Convolutions are direct: the program states which elements meet, and its kernel keeps several
results of a work-item in registers. Borders are filled with zeros before, so that the loops need
no conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dparray._array.apply import astype_array, copy_of
from dparray._array.fresh import from_host
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._functions.elementwise import divide
from dparray._functions.manipulation import reshape
from dparray._functions.padding import pad
from dparray.exceptions import ArgumentError, ShapeError
from dparray.tilelang.function import TileFunction, function
from dparray.tilelang.kernel_text import VECTOR
from dparray.tilelang.values import floatx

Pairs = tuple[tuple[int, int], ...]

#: Elements of an image from which on it pays to have whole vectors of filters.
_LARGE = 1 << 15


def conv(
    x: ndarray,
    w: ndarray,
    *,
    strides: int | Sequence[int] = 1,
    padding: Any = "valid",
    dilation: int | Sequence[int] = 1,
    channels: str = "last",
) -> ndarray:
    """Return a batch of convolutions in one, two or three dimensions, as neural networks mean them.

    The kernel is not reversed (a cross-correlation), and every output channel sums over all input
    channels.

    Args:
        x: ``(batch, *space, in)`` with ``channels="last"``, ``(batch, in, *space)`` with
            ``"first"``.
        w: ``(*window, in, out)`` with ``channels="last"``, ``(out, in, *window)`` with
            ``"first"``.
        strides: steps of the window, one for each dimension or one for all.
        padding: ``"valid"`` for none, ``"same"`` so that stride 1 keeps the size, or numbers of
            zeros: one for all borders, or for each dimension one or a pair (before, after).
        dilation: distances of the elements of the window, at least 1.
        channels: where the channels are: ``"last"`` or ``"first"``.

    Returns:
        An array laid out as ``x``, of the common dtype of ``x`` and ``w`` in Tile's rules, on
        their queue and in their USM type.

    Raises:
        ShapeError: the arrays do not fit together, or the window is larger than the padded space.
        ArgumentError: strides, padding, dilation or channels that are none.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> import dparray as dp
        >>> image = dp.ones((1, 4, 4, 1), dtype="float32")
        >>> mean = dp.full((3, 3, 1, 1), 1 / 9, dtype="float32")
        >>> dp.tilelang.conv(image, mean).shape
        (1, 2, 2, 1)
        >>> dp.tilelang.conv(image, mean, strides=2, padding="same").shape
        (1, 2, 2, 1)
    """
    x, w = check_array("conv", "x", x), check_array("conv", "w", w)
    count = _space("conv", x, channels)
    if w.ndim != count + 2:
        raise ShapeError(
            f"conv: w has shape {w.shape}, x {x.shape}; they have equally many dimensions"
        )
    first = channels == "first"
    window = w.shape[2:] if first else w.shape[:-2]
    inner = (x.shape[1], w.shape[1]) if first else (x.shape[-1], w.shape[-2])
    if inner[0] != inner[1]:
        raise ShapeError(
            f"conv: x {x.shape} has {inner[0]} channels, w {w.shape} expects {inner[1]}; with "
            f"channels={channels!r} w is {'(out, in, *window)' if first else '(*window, in, out)'}"
        )
    steps = _numbers("conv", "strides", strides, count)
    apart = _numbers("conv", "dilation", dilation, count)
    space = x.shape[2:] if first else x.shape[1:-1]
    reach = [d * (k - 1) + 1 for d, k in zip(apart, window, strict=True)]
    borders = _padding("conv", padding, space, reach, steps)
    _check_window("conv", space, reach, borders)
    if any(map(any, borders)):
        widths = ((0, 0), (0, 0), *borders) if first else ((0, 0), *borders, (0, 0))
        x = pad(x, widths)
    convolve = _convolution(steps, apart, first)
    filters = int(w.shape[-1])
    whole = -(-filters // VECTOR) * VECTOR
    if first or filters % VECTOR < 3 or whole > 2 * filters or x.size < _LARGE:
        made: ndarray = convolve(x, w)
        return made
    # Neighbouring work-items are neighbouring filters: drivers compute those beyond whole vectors
    # one by one, which takes longer than filters of zeros do.
    wider: ndarray = convolve(x, pad(w, ((0, 0),) * (w.ndim - 1) + ((0, whole - filters),)))
    return copy_of(wider[..., :filters])


def max_pool(
    x: ndarray,
    size: int | Sequence[int],
    *,
    strides: int | Sequence[int] | None = None,
    padding: Any = "valid",
    channels: str = "last",
) -> ndarray:
    """Return the largest element of each window; what lies outside of the array takes no part.

    Args:
        x: ``(batch, *space, channels)`` with ``channels="last"``, ``(batch, channels, *space)``
            with ``"first"``.
        size: of the window, one for each dimension or one for all.
        strides: its steps; as large as the window if not given.
        padding: as in :func:`conv`.
        channels: as in :func:`conv`.

    Returns:
        An array laid out as ``x``, of its dtype and placement. NaN is ignored.

    Raises:
        ShapeError: the window is larger than the padded space.
        ArgumentError: size, strides, padding or channels that are none.

    Example:
        >>> import dparray as dp
        >>> x = dp.reshape(dp.arange(16, dtype="float32"), (1, 4, 4, 1))
        >>> dp.tilelang.max_pool(x, 2)[0, :, :, 0].tolist()
        [[5.0, 7.0], [13.0, 15.0]]
    """
    x, window, steps, borders = _window("max_pool", x, size, strides, padding, channels)
    made: ndarray = _pool(">", window, steps, borders, channels == "first")(x)
    return made


def avg_pool(
    x: ndarray,
    size: int | Sequence[int],
    *,
    strides: int | Sequence[int] | None = None,
    padding: Any = "valid",
    channels: str = "last",
) -> ndarray:
    """Return the mean of each window; what lies outside of the array takes no part.

    Args:
        x, size, strides, padding, channels: as in :func:`max_pool`.

    Returns:
        A pending array laid out as ``x``; integers are converted to the default float dtype.

    Raises:
        ShapeError: the window is larger than the padded space.
        ArgumentError: size, strides, padding or channels that are none.

    Example:
        >>> import dparray as dp
        >>> x = dp.reshape(dp.arange(16, dtype="float32"), (1, 4, 4, 1))
        >>> dp.tilelang.avg_pool(x, 2)[0, :, :, 0].tolist()
        [[2.5, 4.5], [10.5, 12.5]]
    """
    x, window, steps, borders = _window("avg_pool", x, size, strides, padding, channels)
    if x.dtype.kind != "f":
        x = astype_array(x, floatx())
    first = channels == "first"
    total: ndarray = _pool("+", window, steps, borders, first)(x)
    space = total.shape[2:] if first else total.shape[1:-1]
    before = x.shape[2:] if first else x.shape[1:-1]
    counts = np.ones((), x.dtype)
    for count, size_before, wide, step, (left, _) in zip(
        space, before, window, steps, borders, strict=True
    ):
        start = step * np.arange(count) - left
        held = np.minimum(start + wide, size_before) - np.maximum(start, 0)
        counts = np.multiply.outer(counts, held)
    divisor = from_host(counts.astype(x.dtype), x.sycl_queue, x.usm_type)
    return divide(total, divisor if first else reshape(divisor, (*space, 1)))


def dense(x: ndarray, w: ndarray, b: ndarray | None = None) -> ndarray:
    """Return a dense layer: ``x @ w + b``.

    Args:
        x: (batch, in).
        w: (in, out).
        b: (out,), or nothing.

    Returns:
        A pending array (batch, out) of the common dtype in Tile's rules.

    Raises:
        TileShapeError: the arrays do not fit together.
        ExecutionPlacementError: they are on different queues.

    Example:
        >>> import dparray as dp
        >>> x = dp.ones((2, 3), dtype="float32")
        >>> dp.tilelang.dense(x, x.T, dp.ones(2, dtype="float32")).tolist()
        [[4.0, 4.0], [4.0, 4.0]]
    """
    made: ndarray = _dense(True)(x, w, b) if b is not None else _dense(False)(x, w)
    return made


# -- programs --------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _convolution(steps: tuple[int, ...], apart: tuple[int, ...], first: bool) -> TileFunction:
    axes = range(len(steps))
    sizes = ", ".join(f"X{a}" for a in axes)
    window = ", ".join(f"K{a}" for a in axes)
    read = ", ".join(f"{steps[a]} * x{a} + {apart[a]} * k{a}" for a in axes)
    moved = ", ".join(f"k{a}" for a in axes)
    points = ", ".join(f"x{a}" for a in axes)
    results = ", ".join(f"(X{a} - {apart[a]} * (K{a} - 1) - 1) / {steps[a]} + 1" for a in axes)
    if first:
        text = f"""function (I[N, C, {sizes}], K[F, C, {window}]) -> (O) {{
            O[n, f, {points}: N, F, {results}] = +(I[n, c, {read}] * K[f, c, {moved}]);
        }}"""
    else:
        text = f"""function (I[N, {sizes}, C], K[{window}, C, F]) -> (O) {{
            O[n, {points}, f: N, {results}, F] = +(I[n, {read}, c] * K[{moved}, c, f]);
        }}"""
    return function(text)


@lru_cache(maxsize=256)
def _pool(
    aggregation: str,
    window: tuple[int, ...],
    steps: tuple[int, ...],
    borders: Pairs,
    first: bool,
) -> TileFunction:
    axes = range(len(window))
    sizes = ", ".join(f"X{a}" for a in axes)
    points = ", ".join(f"x{a}" for a in axes)
    read = ", ".join(f"{steps[a]} * x{a} + k{a} - {borders[a][0]}" for a in axes)
    results = ", ".join(f"(X{a} + {sum(borders[a])} - {window[a]}) / {steps[a]} + 1" for a in axes)
    limits = ", ".join(f"k{a} < {window[a]}" for a in axes)
    if first:
        text = f"""function (I[N, C, {sizes}]) -> (O) {{
            O[n, c, {points}: N, C, {results}] = {aggregation}(I[n, c, {read}]), {limits};
        }}"""
    else:
        text = f"""function (I[N, {sizes}, C]) -> (O) {{
            O[n, {points}, c: N, {results}, C] = {aggregation}(I[n, {read}, c]), {limits};
        }}"""
    return function(text)


@lru_cache(maxsize=2)
def _dense(has_bias: bool) -> TileFunction:
    return function(
        f"""function (X[N, K], W[K, F]{", B[F]" if has_bias else ""}) -> (O) {{
            P[n, f: N, F] = +(X[n, k] * W[k, f]);
            O = P{" + B" if has_bias else ""};
        }}"""
    )


# -- arguments -------------------------------------------------------------------------------------


def _space(name: str, x: ndarray, channels: str) -> int:
    """The number of dimensions that are neither the batch nor the channels."""
    if channels not in ("last", "first"):
        raise ArgumentError(f"{name}: channels={channels!r}; it is 'last' or 'first'")
    if not 3 <= x.ndim <= 5:
        raise ShapeError(
            f"{name}: x has shape {x.shape}; it has a batch, one to three dimensions of space, and "
            "channels: reshape it, x[None, ..., None] for one image without them"
        )
    return int(x.ndim - 2)


def _numbers(name: str, what: str, given: Any, count: int) -> tuple[int, ...]:
    numbers = (given,) * count if isinstance(given, int | np.integer) else given
    if (
        not isinstance(numbers, tuple | list)
        or len(numbers) != count
        or not all(isinstance(each, int | np.integer) and each > 0 for each in numbers)
    ):
        raise ArgumentError(
            f"{name}: {what}={given!r}; it is an integer above 0, or one for each of {count} "
            "dimensions"
        )
    return tuple(int(each) for each in numbers)


def _padding(
    name: str, given: Any, space: Sequence[int], reach: Sequence[int], steps: Sequence[int]
) -> Pairs:
    count = len(space)
    if isinstance(given, str) and given == "valid":
        return ((0, 0),) * count
    if isinstance(given, str) and given == "same":
        total = [
            max(0, (-(-size // step) - 1) * step + wide - size)
            for size, wide, step in zip(space, reach, steps, strict=True)
        ]
        return tuple((each // 2, each - each // 2) for each in total)
    numbers = (given,) * count if isinstance(given, int | np.integer) else given
    pairs: list[tuple[int, int]] = []
    if isinstance(numbers, tuple | list) and len(numbers) == count:
        for each in numbers:
            pair = (each, each) if isinstance(each, int | np.integer) else each
            if (
                isinstance(pair, tuple | list)
                and len(pair) == 2
                and all(isinstance(one, int | np.integer) and one >= 0 for one in pair)
            ):
                pairs.append((int(pair[0]), int(pair[1])))
    if len(pairs) != count:
        raise ArgumentError(
            f"{name}: padding={given!r}; it is 'valid', 'same', an integer from 0, or for each of "
            f"{count} dimensions one or a pair"
        )
    return tuple(pairs)


def _check_window(name: str, space: Sequence[int], reach: Sequence[int], borders: Pairs) -> None:
    for size, wide, pair in zip(space, reach, borders, strict=True):
        if size + sum(pair) < wide:
            raise ShapeError(
                f"{name}: a window that reaches over {wide} elements is larger than {size} with "
                f"{sum(pair)} of padding; take a smaller window or dilation, or more padding"
            )


def _window(
    name: str, x: ndarray, size: Any, strides: Any, padding: Any, channels: str
) -> tuple[ndarray, tuple[int, ...], tuple[int, ...], Pairs]:
    x = check_array(name, "x", x)
    count = _space(name, x, channels)
    window = _numbers(name, "size", size, count)
    steps = window if strides is None else _numbers(name, "strides", strides, count)
    space = x.shape[2:] if channels == "first" else x.shape[1:-1]
    borders = _padding(name, padding, space, window, steps)
    _check_window(name, space, window, borders)
    for pair, wide in zip(borders, window, strict=True):
        if max(pair) >= wide:
            raise ArgumentError(
                f"{name}: padding={padding!r} leaves windows of {wide} without an element; it is "
                "smaller than the window"
            )
    return x, window, steps, borders
