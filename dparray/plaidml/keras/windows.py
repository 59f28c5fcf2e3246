"""The four functions that Keras' NumPy backend takes from JAX: convolutions and windows."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np

from dparray._functions.creation import zeros, zeros_like
from dparray._functions.elementwise import add, maximum, minimum
from dparray._functions.manipulation import permute_dims
from dparray._functions.padding import pad
from dparray._functions.rearranging import flip
from dparray.tilelang.layers import conv
from dparray.tilelang.windows import borders_of

Pairs = Sequence[tuple[int, int]]
_Numbers = namedtuple("_Numbers", "lhs_spec rhs_spec out_spec")


def jax_module(unwrapped: Callable[[Any], Any]) -> ModuleType:
    """Return a module ``jax`` with these functions; ``unwrapped`` returns arrays of variables."""

    def convolve(
        x: Any, w: Any, steps: Any, padding: Any, rhs_dilation: Any = None,
        dimension_numbers: Any = None, feature_group_count: int = 1, **_: Any,
    ) -> Any:  # fmt: skip
        x, w = unwrapped(x), unwrapped(w)
        dtype = np.result_type(x.dtype, w.dtype)
        wide = "float32" if dtype.name == "bfloat16" else dtype  # Tile has no bfloat16.
        x, back = _channels_last(x.astype(wide), dimension_numbers)
        apart = rhs_dilation or (1,) * (x.ndim - 2)
        pads = _pads(padding, x.shape[1:-1], w.shape, steps, apart)
        result = back(_convolved(x, w.astype(wide), steps, pads, apart, feature_group_count))
        return result.astype(dtype)

    def transpose(
        x: Any, w: Any, steps: Any, padding: Any, rhs_dilation: Any = None,
        dimension_numbers: Any = None, transpose_kernel: bool = False, **_: Any,
    ) -> Any:  # fmt: skip
        x, back = _channels_last(unwrapped(x), dimension_numbers)
        w, count = unwrapped(w), x.ndim - 2
        space = [(size - 1) * step + 1 for size, step in zip(x.shape[1:-1], steps, strict=True)]
        wide = zeros_like(x, shape=(x.shape[0], *space, x.shape[-1]))
        every = (slice(None), *(slice(None, None, step) for step in steps))
        wide[every] = x
        if transpose_kernel:
            order = (*range(count), count + 1, count)
            w = permute_dims(flip(w, axis=tuple(range(count))), order)
        cut = (
            slice(None),
            *(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(space, padding, strict=True)),
        )
        pads = [(max(0, a), max(0, b)) for a, b in padding]
        apart = rhs_dilation or (1,) * count
        return back(_convolved(wide[cut], w, (1,) * count, pads, apart, 1))

    def reduce_window(
        x: Any, init: Any, function: Any, window: Any, steps: Any, padding: Any, **_: Any
    ) -> Any:
        x = unwrapped(x)
        pads = _pads(padding, x.shape, window, steps, (1,) * x.ndim)
        if any(map(any, pads)):
            first = init.asnumpy() if hasattr(init, "asnumpy") else init
            x = pad(x, tuple(pads), constant_values=np.asarray(first).astype(x.dtype)[()])
        counts = [(n - k) // step + 1 for n, k, step in zip(x.shape, window, steps, strict=True)]
        views = (
            x[tuple(
                slice(i, i + step * (count - 1) + 1, step)
                for i, step, count in zip(at, steps, counts, strict=True)
            )]
            for at in np.ndindex(*window)
        )  # fmt: skip
        return reduce(function, views)

    lax: Any = ModuleType("jax.lax")
    vars(lax).update(
        ConvDimensionNumbers=_Numbers, conv_general_dilated=convolve, conv_transpose=transpose,
        reduce_window=reduce_window, max=maximum, min=minimum, add=add,
    )  # fmt: skip
    jax: Any = ModuleType("jax")
    jax.lax, jax.nn = lax, ModuleType("jax.nn")
    result: ModuleType = jax
    return result


def _channels_last(x: Any, numbers: Any) -> Any:
    """Return an image with the channels last, and a function that restores their position."""
    if numbers.lhs_spec[1] != 1:
        return x, lambda y: y
    last = x.ndim - 1
    return (
        permute_dims(x, (0, *range(2, x.ndim), 1)),
        lambda y: permute_dims(y, (0, last, *range(1, last))),
    )


def _pads(padding: Any, space: Any, window: Any, steps: Any, apart: Any) -> Pairs:
    reach = [d * (k - 1) + 1 for k, d in zip(window, apart, strict=False)]
    given = padding.lower() if isinstance(padding, str) else list(map(tuple, padding))
    return borders_of("conv", given, space, reach, steps)


def _convolved(x: Any, w: Any, steps: Any, pads: Pairs, apart: Any, groups: int) -> Any:
    """Convolve ``(N, *space, C)`` with ``(*window, C / groups, F)``."""
    room = [n + sum(each) for n, each in zip(x.shape[1:-1], pads, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(apart, w.shape, strict=False)]
    if any(n < k for n, k in zip(room, reach, strict=True)):
        empty = (x.shape[0], *(0,) * len(room), w.shape[-1])
        return zeros(empty, dtype=x.dtype, device=x.queue)
    return conv(x, w, strides=list(steps), padding=list(pads), dilation=list(apart), groups=groups)
