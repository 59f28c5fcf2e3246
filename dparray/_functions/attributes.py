"""Assembling and iterating over arrays with NumPy's names: ``block``, ``r_``, ``x.flat``."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.allocation import from_host
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._functions.joining import on_one_queue, resize
from dparray._functions.manipulation import broadcast_to, ravel, reshape
from dparray._placement import common_placement
from dparray.exceptions import ShapeError, UnsupportedFeatureError

__all__ = [
    "broadcast",
    "flatiter",
    "ndenumerate",
]


def is_weak(value: Any) -> bool:
    """Return whether a value is a Python scalar; NumPy scalars have a dtype of their own."""
    is_scalar = isinstance(value, bool | int | float | complex)
    return is_scalar and not isinstance(value, np.generic)


class ndenumerate:
    """Iterate over pairs of an index and its element; the host copies all values once.

    Example:
        >>> [(index, int(value)) for index, value in dp.ndenumerate(dp.asarray([[1, 2]]))]
        [((0, 0), 1), ((0, 1), 2)]
    """

    def __init__(self, x: Any) -> None:
        self._pairs = np.ndenumerate(check_array("ndenumerate", "x", x).asnumpy())

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        return self

    def __next__(self) -> tuple[tuple[int, ...], Any]:
        return next(self._pairs)


class broadcast:
    """Arrays broadcast together: their common shape, and an iterator over their elements.

    Example:
        >>> dp.broadcast(dp.ones((3, 1)), dp.ones(4)).shape
        (3, 4)
    """

    def __init__(self, *arrays: Any) -> None:
        self._arrays = on_one_queue("broadcast", arrays)
        shapes = [x.shape for x in self._arrays]
        self.shape = _layout.broadcast_shapes("broadcast", shapes) if shapes else ()
        self.ndim = self.nd = len(self.shape)
        self.size = math.prod(self.shape)
        self.numiter = len(self._arrays)

    @property
    def iters(self) -> tuple[Iterator[Any], ...]:
        """Iterators over the elements of each array after broadcasting."""
        return tuple(iter(broadcast_to(x, self.shape).flat) for x in self._arrays)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self.iters, strict=True)


class flatiter:
    """The elements of an array in C order, returned by ``x.flat``: read, assign and iterate.

    Example:
        >>> x = dp.asarray([[1, 2], [3, 4]])
        >>> x.flat[[0, 3]] = 9
        >>> x.flat[1:].asnumpy()
        array([2, 3, 9])
        >>> [int(element) for element in x.flat]
        [9, 2, 3, 9]
    """

    def __init__(self, x: ndarray) -> None:
        self.base = x
        self._rest: Iterator[Any] | None = None

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return iter(ravel(self.base))

    def __next__(self) -> Any:
        """Return the next element; the host reads all elements with the first one."""
        if self._rest is None:
            self._rest = iter(self)
        return next(self._rest)

    def __getitem__(self, index: Any) -> ndarray:
        return ravel(self.base)[index].copy()

    def __setitem__(self, index: Any, value: Any) -> None:
        x = self.base
        flat = ravel(x)
        if isinstance(value, list | tuple):
            value = from_host(np.asarray(value), x.queue, x.usm_type)
        selected = flat[index]
        if isinstance(value, ndarray):
            common_placement("x.flat[...] = value", (("x", x), ("value", value)))
            if value.size == 0:
                raise ShapeError("x.flat[...] = value: value must not be empty")
            if value.shape != selected.shape:  # NumPy repeats and truncates values here
                value = resize(ravel(value), selected.shape)
        flat[index] = value
        if flat.block is not x.block:
            assign(x, reshape(flat, x.shape), "x.flat[...] = value")

    def copy(self) -> ndarray:
        """Return the elements as a 1-D array."""
        return ravel(self.base).copy()

    def __repr__(self) -> str:
        return f"flatiter({self.base!r})"


class flags:
    """The memory layout of an array, returned by ``x.flags``; flags cannot be changed.

    Attributes:
        c_contiguous, f_contiguous: whether the elements are contiguous in C or Fortran order.
        writeable: whether no two elements share memory.
        aligned: always true.
    """

    _NAMES = ("c_contiguous", "f_contiguous", "writeable", "aligned")
    _SHORT = types.MappingProxyType(
        {"C": "c_contiguous", "F": "f_contiguous", "W": "writeable", "A": "aligned"}
    )

    def __init__(self, x: ndarray) -> None:
        found = {
            f"{order.lower()}_contiguous": _layout.is_contiguous(
                x.shape, x.strides, x.itemsize, order
            )
            for order in "CF"
        }
        repeats = _layout.shows_elements_twice(x.shape, x.strides)
        self.__dict__.update(found, writeable=not repeats, aligned=True)

    @property
    def contiguous(self) -> bool:
        """The NumPy alias for ``c_contiguous``."""
        return bool(self.__dict__["c_contiguous"])

    @property
    def fnc(self) -> bool:
        """Whether the array is F contiguous and not C contiguous."""
        return bool(self.__dict__["f_contiguous"] and not self.__dict__["c_contiguous"])

    @property
    def forc(self) -> bool:
        """Whether the array is F contiguous or C contiguous."""
        return bool(self.__dict__["f_contiguous"] or self.__dict__["c_contiguous"])

    def __getitem__(self, name: str) -> bool:
        key = self._SHORT.get(name, name.lower())
        if key not in (*self._NAMES, "contiguous", "fnc", "forc"):
            raise KeyError(self._missing(name))
        return bool(getattr(self, key))

    def __getattr__(self, name: str) -> bool:
        raise AttributeError(f"flags: {self._missing(name)}", name=name, obj=self)

    def _missing(self, name: str) -> str:
        cure = ""
        if name.lower() in ("o", "owndata"):
            cure = "; dp.shares_memory(x, y) tells whether two arrays share memory"
        return f"unknown flag {name!r}; expected one of {', '.join(self._NAMES).upper()}{cure}"

    def __setattr__(self, name: str, value: Any) -> None:
        raise UnsupportedFeatureError(
            f"flags.{name}: the flags of a device array cannot be changed; take a copy to "
            f"keep the values"
        )

    def __setitem__(self, name: str, value: Any) -> None:
        self.__setattr__(name.lower(), value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, flags):
            return NotImplemented
        return self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # as NumPy's

    def __repr__(self) -> str:
        return "\n".join(f"  {name.upper()} : {getattr(self, name)}" for name in self._NAMES)


def _set_flat(self: ndarray, value: Any) -> None:
    flatiter(self)[:] = value


def _attach() -> None:
    ndarray.flat = property(
        flatiter, _set_flat, doc="The elements in C order, to read, assign and iterate."
    )
    ndarray.flags = property(flags, doc="The memory layout of the array.")
    ndarray.__class_getitem__ = classmethod(types.GenericAlias)  # type: ignore[attr-defined]


_attach()
