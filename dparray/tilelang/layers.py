"""Convolutions and dense layers of neural networks as Tile functions.

Convolutions are direct: the program specifies which elements are combined, and its kernel keeps
several results of a work-item in registers. With a window of one element they are matrix products.
Padding is not stored: the program excludes what is outside of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from dparray._array.apply import copy_of
from dparray._array.dispatch import compute, host_views
from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._functions.creation import empty_like
from dparray._functions.manipulation import permute_dims, reshape
from dparray._functions.padding import pad
from dparray._functions.products import matmul
from dparray._functions.public import public
from dparray._layout import is_contiguous
from dparray._placement import policy_in_force
from dparray._runtime.threads import share_out
from dparray.exceptions import ShapeError
from dparray.memory.libraries.numpy import products_on_calling_threads
from dparray.tilelang.contracting import merged
from dparray.tilelang.function import TileFunction, function
from dparray.tilelang.kernel_text import VECTOR
from dparray.tilelang.values import FLOAT32, FLOAT64
from dparray.tilelang.windows import (
    Pairs,
    borders_of,
    channels_first,
    channels_last,
    check_window,
    numbers_of,
    space_of,
)

#: The minimum number of elements of an image for which padding filters to whole vectors pays off.
_LARGE = 1 << 15
#: For windows of one element: the number of multiplications up to which BLAS uses one thread.
_SMALL_PRODUCT = 1 << 18
#: The bytes of windows that are copied at a time, for their product with the filters.
_COPIED = 1 << 22
#: Parts of an image for each thread, of which each multiplies by all filters.
_PIECES_PER_THREAD = 2


@public(operands=("x", "w"))
def conv(
    x: ndarray,
    w: ndarray,
    *,
    strides: int | Sequence[int] = 1,
    padding: Any = "valid",
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    channels: str = "last",
) -> ndarray:
    """Return a batch of convolutions in one, two or three dimensions, as in neural networks.

    The kernel is not reversed (a cross-correlation), and every output channel sums over all input
    channels of its group.

    Args:
        x: ``(batch, *space, in)`` with ``channels="last"``, ``(batch, in, *space)`` with
            ``"first"``.
        w: ``(*window, in / groups, out)`` with ``channels="last"``, ``(out, in / groups, *window)``
            with ``"first"``.
        strides: strides of the window, one for each dimension or one for all.
        padding: ``"valid"`` for none, ``"same"`` to keep the size with stride 1, or the number of
            zeros: one for all borders, or for each dimension one or a pair (before, after).
        dilation: the spacing of the window's elements, at least 1.
        groups: the number of equal groups of channels, each with its own filters; with as many
            groups as input channels, the convolution is depthwise.
        channels: the position of the channels, ``"last"`` or ``"first"``.

    Returns:
        An array with the axes of ``x``, of the common dtype of ``x`` and ``w`` in Tile's rules, on
        their queue and with their USM type. With ``"first"`` it is a view of channels-last memory,
        so that the next convolution needs no copy.

    Raises:
        ShapeError: the shapes do not match, or the window is larger than the padded space.
        ArgumentError: invalid strides, padding, dilation, groups or channels.

    Example:
        >>> image = dp.ones((1, 4, 4, 1), dtype="float32")
        >>> mean = dp.full((3, 3, 1, 1), 1 / 9, dtype="float32")
        >>> dp.tilelang.conv(image, mean).shape
        (1, 2, 2, 1)
        >>> dp.tilelang.conv(image, mean, strides=2, padding="same").shape
        (1, 2, 2, 1)
    """
    count = space_of("conv", x, channels)
    if w.ndim != count + 2:
        raise ShapeError(
            f"conv: w has shape {w.shape} and x {x.shape}; they must have equally many dimensions"
        )
    is_first = channels == "first"
    steps = numbers_of("conv", "strides", strides, count)
    apart = numbers_of("conv", "dilation", dilation, count)
    (parts,) = numbers_of("conv", "groups", groups, 1)
    if is_first:
        x, w = channels_last(x), permute_dims(w, (*range(2, w.ndim), 1, 0))
    *window, depth, filters = w.shape
    _check_channels(x.shape[-1], depth, filters, parts, channels)
    space = x.shape[1:-1]
    reach = [d * (k - 1) + 1 for d, k in zip(apart, window, strict=True)]
    borders = borders_of("conv", padding, space, reach, steps)
    check_window("conv", space, reach, borders)
    if is_first:
        x, w = _contiguous(x), _contiguous(w)
    made: ndarray = convolved(x, w, steps, apart, borders, parts)
    return channels_first(made) if is_first else made


def _check_channels(given: int, depth: int, filters: int, groups: int, channels: str) -> None:
    """Check that the channels of an image, the channels of filters, and groups match."""
    if given % groups or filters % groups:
        raise ShapeError(
            f"conv: groups={groups} must divide the {given} channels of x and the {filters} of w"
        )
    if given != depth * groups:
        layout = "(out, in, *window)" if channels == "first" else "(*window, in, out)"
        each = f" in each of {groups} groups" if groups > 1 else ""
        raise ShapeError(
            f"conv: x has {given // groups} channels{each}, w expects {depth}; with "
            f"channels={channels!r} w is {layout}"
        )


def _contiguous(x: ndarray) -> ndarray:
    """Return an array with contiguous channels; other layouts take 5 times as long."""
    return x if is_contiguous(x.shape, x.strides, x.itemsize) else copy_of(x)


def _is_product(x: ndarray, w: ndarray, borders: Pairs) -> bool:
    """Return whether a convolution is a matrix product that libraries compute faster.

    It then needs no compilation. On a CPU the kernel is as fast for large products. It does not
    wait for the threads of BLAS, which keep a core busy for some time after each product.
    """
    if any(size > 1 for size in w.shape[:-2]) or any(map(any, borders)):
        return False
    if not x.dtype == w.dtype in (FLOAT32, FLOAT64):
        return False
    traits = traits_of(x.queue)
    return x.size * w.shape[-1] <= _SMALL_PRODUCT or (
        traits.prefers_products or not traits.shares_memory
    )


def convolved(
    x: ndarray,
    w: ndarray,
    steps: tuple[int, ...],
    apart: tuple[int, ...],
    borders: Pairs,
    groups: int,
) -> Any:
    """Convolve with the channels last; with a policy, arrays may be on several devices."""
    depth, filters = w.shape[-2:]
    if groups > 1:
        kind = "depthwise" if depth == 1 and filters == groups else "grouped"
        w = reshape(
            w, (*w.shape[:-2], *((groups,) if kind == "depthwise" else (depth, groups, -1)))
        )
        if kind == "grouped":
            x = reshape(x, (*x.shape[:-1], groups, depth))
        made = _convolution(steps, apart, borders, kind)(x, w)
        # A view of a pending array would evaluate it, so none is made if the shape is correct.
        return made if kind == "depthwise" else reshape(made, (*made.shape[:-2], filters))
    if _is_for_library(x, w, borders):
        made = _by_products(x, w, steps, apart, borders)
        if made is not None:
            return made
    if _is_product(x, w, borders):
        cuts = (slice(None), *(slice(None, None, step) for step in steps))
        x = x[cuts]
        made = matmul(reshape(x, (-1, depth)), reshape(w, (depth, filters)))
        return reshape(made, (*x.shape[:-1], filters))
    convolve = _convolution(steps, apart, borders, "dense")
    whole = -(-filters // VECTOR) * VECTOR
    if filters % VECTOR < 3 or whole > 2 * filters or x.size < _LARGE:
        return convolve(x, w)
    # Neighboring work-items compute neighboring filters: drivers compute the remainder of a vector
    # one by one, which takes longer than zero filters.
    wider = convolve(x, pad(w, ((0, 0),) * (w.ndim - 1) + ((0, whole - filters),)))
    return copy_of(wider[..., :filters])


def _is_for_library(x: ndarray, w: ndarray, borders: Pairs) -> bool:
    """Return whether matrix products compute a convolution faster than its kernel."""
    if (
        not traits_of(x.queue).prefers_products
        or not x.dtype == w.dtype in (FLOAT32, FLOAT64)
        or 0 in (*x.shape, *w.shape)
        or policy_in_force() is not None  # It chooses a device for the kernel.
    ):
        return False
    if not any(map(any, borders)):
        return True
    # Padding leaves points out, and a product multiplies its zeros by the filters.
    views = host_views("convolution", w)
    return views is not None and bool(np.isfinite(views[0]).all())


def _by_products(
    x: ndarray, w: ndarray, steps: tuple[int, ...], apart: tuple[int, ...], borders: Pairs
) -> Any:
    """Convolve on the host, by products of the filters with copies of some windows at a time.

    ``None`` if the host may not compute.
    """
    *window, depth, filters = w.shape
    counts = [
        (size + sum(border) - d * (k - 1) - 1) // step + 1
        for size, border, k, d, step in zip(
            x.shape[1:-1], borders, window, apart, steps, strict=True
        )
    ]
    units = traits_of(x.queue).units
    rows = max(_COPIED // max(prod((*counts[1:], *window, depth)) * x.itemsize, 1), 1)
    # Each thread copies all windows, or reads all filters, whichever are fewer.
    columns = filters
    if filters > len(x) * prod(counts):
        columns = max(-(-filters // units), VECTOR)
    else:
        rows = min(rows, -(-len(x) * counts[0] // (_PIECES_PER_THREAD * units)))

    def convolve(image: np.ndarray, weights: np.ndarray, made: np.ndarray) -> None:
        padded = np.ascontiguousarray(np.pad(image, ((0, 0), *borders, (0, 0))))
        flat = np.ascontiguousarray(weights).reshape(-1, filters)
        every, *strides, last = padded.strides
        moved = [step * stride for step, stride in zip(steps, strides, strict=True)]
        inside = [d * stride for d, stride in zip(apart, strides, strict=True)]

        def multiply(piece: tuple[int, int, int]) -> None:
            number, first, column = piece
            part, some = made[number, first : first + rows], slice(column, column + columns)
            windows = np.ndarray(
                (*part.shape[:-1], *window, depth),
                padded.dtype,
                padded,
                number * every + first * moved[0],
                (*moved, *inside, last),
            )
            target = part.reshape(-1, filters)[:, some]
            np.matmul(windows.reshape(-1, len(flat)), flat[:, some], out=target)

        places = range(len(padded)), range(0, counts[0], rows), range(0, filters, columns)
        with products_on_calling_threads():
            share_out(multiply, list(product(*places)), units)

    out = empty_like(x, shape=(len(x), *counts, filters))
    return compute("conv", (("x", x), ("w", w)), host=convolve, out=out)


def conv_packed(
    x: ndarray, w: ndarray, steps: tuple[int, ...], apart: tuple[int, ...], borders: Pairs
) -> ndarray:
    """Return a convolution with the channels last, by filters in the order of their use.

    Filters in groups of a vector are read in the order of memory: large filters are thus read at
    the speed of the memory.

    Args:
        x: ``(batch, *space, in)``.
        w: ``(out / VECTOR, *window, in, VECTOR)``, or ``(*window, in)`` for one filter per channel.
        steps, apart, borders: strides, dilation and padding for each dimension.
    """
    if w.ndim < x.ndim:
        depthwise: ndarray = _convolution(steps, apart, borders, "depthwise")(x, w)
        return depthwise
    made = _convolution(steps, apart, borders, "packed")(x, w)
    return merged(made, (*made.shape[:-2], made.shape[-2] * made.shape[-1]))


def dense(x: ndarray, w: ndarray, b: ndarray | None = None) -> ndarray:
    """Return a dense layer: ``x @ w + b``.

    Args:
        x: (batch, in).
        w: (in, out).
        b: (out,), or nothing.

    Returns:
        A pending array (batch, out) of the common dtype in Tile's rules.

    Raises:
        TileShapeError: the shapes do not match.
        ExecutionPlacementError: they are on different queues.

    Example:
        >>> x = dp.ones((2, 3), dtype="float32")
        >>> dp.tilelang.dense(x, x.T, dp.ones(2, dtype="float32")).tolist()
        [[4.0, 4.0], [4.0, 4.0]]
    """
    made: ndarray = _dense(True)(x, w, b) if b is not None else _dense(False)(x, w)
    return made


# -- programs --------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _convolution(
    steps: tuple[int, ...], apart: tuple[int, ...], borders: Pairs, kind: str
) -> TileFunction:
    axes = range(len(steps))
    sizes = ", ".join(f"X{a}" for a in axes)
    window = ", ".join(f"K{a}" for a in axes)
    read = ", ".join(f"{steps[a]} * x{a} + {apart[a]} * k{a} - {borders[a][0]}" for a in axes)
    moved = ", ".join(f"k{a}" for a in axes)
    points = ", ".join(f"x{a}" for a in axes)
    results = ", ".join(
        f"(X{a} + {sum(borders[a])} - {apart[a]} * (K{a} - 1) - 1) / {steps[a]} + 1" for a in axes
    )
    # The indices of the image, of the filters and of the result, each with its sizes.
    image, filters, result = {
        "dense": (("c", "C"), (f"{moved}, c, f", f"{window}, C, F"), ("f", "F")),
        "packed": (("c", "C"), (f"g, {moved}, c, v", f"G, {window}, C, V"), ("g, v", "G, V")),
        "depthwise": (("g", "G"), (f"{moved}, g", f"{window}, G"), ("g", "G")),
        "grouped": (
            ("g, c", "G, C"),
            (f"{moved}, c, g, f", f"{window}, C, G, F"),
            ("g, f", "G, F"),
        ),
    }[kind]
    return function(
        f"""function (I[N, {sizes}, {image[1]}], K[{filters[1]}]) -> (O) {{
            O[n, {points}, {result[0]}: N, {results}, {result[1]}] =
                +(I[n, {read}, {image[0]}] * K[{filters[0]}]);
        }}"""
    )


@lru_cache(maxsize=2)
def _dense(has_bias: bool) -> TileFunction:
    return function(
        f"""function (X[N, K], W[K, F]{", B[F]" if has_bias else ""}) -> (O) {{
            P[n, f: N, F] = +(X[n, k] * W[k, f]);
            O = P{" + B" if has_bias else ""};
        }}"""
    )
