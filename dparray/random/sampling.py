"""Integers, permutations and choices."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import from_host
from dparray._array.apply import astype_array
from dparray._array.assignment import assign
from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_out
from dparray._functions.indexing import take_along_axis
from dparray._functions.manipulation import reshape
from dparray._functions.sorting import argsort
from dparray._placement import common_placement
from dparray.exceptions import ArgumentError, DTypeError
from dparray.random.streams import (
    Placed,
    Size,
    Streams,
    check_bounds,
    integer_bound,
)


class Sampling(Streams):
    """The methods that draw from finite sets."""

    def bytes(self, length: int) -> builtins.bytes:
        """Return ``length`` random bytes, on the host."""
        count = operator.index(length)
        return self._integers64(-(-count // 8)).asnumpy().tobytes()[:count]

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Size = None,
        dtype: Any = "int64",
        endpoint: bool = False,
    ) -> ndarray:
        """Draw integers from ``low`` up to ``high``, or from 0 up to ``low``.

        Args:
            low: the lowest value: an integer, or an array on the generator's queue.
            high: the end of the range, excluded unless ``endpoint`` is true.
            size: the shape of the result; a single number by default.
            dtype: an integer dtype, or ``bool``.
            endpoint: whether ``high`` itself is included.

        Raises:
            DTypeError: the dtype is not an integer dtype.
            ArgumentError: the range contains no integer, or the dtype cannot hold all of its
                integers.
        """
        chosen = _dtypes.as_dtype(dtype)
        if chosen.kind not in "biu":
            raise DTypeError(f"integers: dtype must be an integer dtype, not {chosen}")
        low, high = (0, low) if high is None else (low, high)
        if any(isinstance(bound, ndarray | list | tuple) for bound in (low, high)):
            return self._integers_between(low, high, size, chosen, endpoint)
        first, last = integer_bound("low", low), integer_bound("high", high)
        last -= not endpoint
        limits = (0, 1) if chosen.kind == "b" else (np.iinfo(chosen).min, np.iinfo(chosen).max)
        if last < first or first < limits[0] or last > limits[1]:
            raise ArgumentError(
                f"integers: the range from {first} to {last} is empty or not within "
                f"{limits[0]} to {limits[1]}, the range of {chosen}"
            )
        shape = () if size is None else _layout.check_shape(size)
        words = self._integers64(math.prod(shape))
        count = last - first + 1
        small = compute_small(_between, words, first, count, chosen, shape)
        if small is not None:
            return small
        if count < 1 << 64:
            words = words % count
        # Addition wraps around in 64 bits, so negative first values are correct too.
        offset = from_host(np.asarray(first % (1 << 64), np.uint64), self._queue, self._usm_type)
        return reshape(astype_array(words + offset, chosen), shape)

    def _integers_between(
        self, low: Any, high: Any, size: Size, dtype: np.dtype[Any], endpoint: bool
    ) -> ndarray:
        """Draw integers between bounds, at least one of which is an array."""
        (low, high), shape = self._arguments("integers", size, low=(low,), high=(high,))
        count = high - low + int(endpoint)
        if count.dtype.kind not in "iu":
            raise DTypeError("integers: low and high must be integers")
        check_bounds("integers", **{"high - low": (count, 1, 2.0**63)})
        words = reshape(self._integers64(math.prod(shape)), shape)
        rest = words % astype_array(count, _dtypes.uint64)
        return astype_array(astype_array(rest, _dtypes.int64) + low, dtype)

    def permutation(self, x: Any, axis: int = 0) -> ndarray:
        """Return 0 to ``x`` - 1, or a copy of an array, in random order along an axis."""
        if isinstance(x, int | np.integer):
            return argsort(self._integers64(max(int(x), 0)))
        if isinstance(x, list | tuple):
            x = from_host(np.asarray(x), self._queue, self._usm_type)
        x = check_array("permutation", "x", x)
        common_placement("permutation", (("generator", Placed(self)), ("x", x)))
        axis = _layout.normalize_axis("permutation", axis, x.ndim)
        order = argsort(self._integers64(x.shape[axis]))
        return x[_layout.at_axis(axis, order)]

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle an array along an axis, or a list, in place."""
        if isinstance(x, list):
            x[:] = [x[position] for position in self.permutation(len(x)).tolist()]
            return
        x = check_array("shuffle", "x", x)
        assign(x, self.permutation(x, axis), "shuffle")

    def permuted(self, x: Any, *, axis: int | None = None, out: ndarray | None = None) -> ndarray:
        """Return a copy of an array in which each line along an axis is shuffled independently.

        Without ``axis``, all elements are shuffled together.
        """
        if isinstance(x, list | tuple):
            x = from_host(np.asarray(x), self._queue, self._usm_type)
        x = check_array("permuted", "x", x)
        placed = [("generator", Placed(self)), ("x", x)]
        common_placement("permuted", placed)
        check_out("permuted", [("x", x)], out)
        if axis is None:
            result = reshape(self.permutation(reshape(x, (x.size,))), x.shape)
        else:
            axis = _layout.normalize_axis("permuted", axis, x.ndim)
            order = argsort(reshape(self._integers64(x.size), x.shape), axis)
            result = take_along_axis(x, order, axis)
        if out is None:
            return result
        assign(out, result, "permuted")
        return out


def _between(
    words: np.ndarray, first: int, count: int, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> np.ndarray:
    """Turn random words into ``count`` possible integers starting at ``first``."""
    if count < 1 << 64:
        words = words % np.uint64(count)
    return (words + np.uint64(first % (1 << 64))).astype(dtype).reshape(shape)
