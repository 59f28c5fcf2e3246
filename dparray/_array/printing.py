"""Arrays as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array.ndarray import as_method, ndarray
from dparray._evaluate import peek as _sample


def summary_threshold(x: ndarray, options: Any) -> int:
    """Return NumPy's threshold, or one that makes it summarize the corner of a large array."""
    # An infinite threshold, which prints everything, is not an integer.
    return 0 if x.size > options["threshold"] else x.size


def corner(x: ndarray, options: Any) -> np.ndarray:
    """Return the values that printing needs: all of a small array, the edges of a large one.

    An axis longer than both edges is reduced to the edges and one element between them, which NumPy
    then prints as "..."; it shows the last element even for empty edges. A pending array stays
    pending.
    """
    edge = int(options["edgeitems"])
    if x.size <= options["threshold"]:
        return _sample.read(x._node, (slice(None),) * x.ndim)
    pieces: list[list[slice]] = [
        [slice(0, edge + 1), slice(extent - max(edge, 1), extent)]
        if extent > 2 * edge + 1
        else [slice(None)]
        for extent in x.shape
    ]

    def gather(axis: int, index: tuple[slice, ...]) -> np.ndarray:
        if axis == x.ndim:
            return _sample.read(x._node, index)
        return np.concatenate(
            [gather(axis + 1, (*index, piece)) for piece in pieces[axis]], axis=axis
        )

    return gather(0, ())


@as_method
def __repr__(self: ndarray) -> str:
    options = np.get_printoptions()
    values = corner(self, options)
    text = np.array2string(
        values,
        separator=", ",
        prefix="array(",
        threshold=summary_threshold(self, options),
    )
    is_elsewhere = self.device.is_sub_device or not self.device.is_canonical
    # Short, since the components of a vector are read as a list.
    if not self.shape and not is_elsewhere:
        return repr(values)
    place = f"device='{self.device if is_elsewhere else self.device.filter_string}'"
    shape = f", shape={self.shape}" if not self.size and self.shape != (0,) else ""
    return f"array({text}{shape}, dtype={self.dtype}, {place}, usm_type='{self.usm_type}')"


@as_method
def __str__(self: ndarray) -> str:
    if self.shape == ():
        return str(self.asnumpy()[()])
    options = np.get_printoptions()
    return np.array2string(corner(self, options), threshold=summary_threshold(self, options))


@as_method
def __format__(self: ndarray, specification: str) -> str:
    if self.shape == () and specification:
        return format(self.item(), specification)
    try:
        return format(str(self), specification)
    except ValueError:
        raise ValueError(
            f"format: {specification!r} formats one number, and the array has shape {self.shape}; "
            f"write x.item(i), or with dp.printoptions(precision=2): print(x)"
        ) from None
