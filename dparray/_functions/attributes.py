"""Arrays put together and gone through as NumPy's programs do: ``block``, ``r_``, ``x.flat``."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.apply import apply
from dparray._array.assignment import assign
from dparray._array.fresh import from_host
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._functions.creation import arange, asarray, linspace
from dparray._functions.editing import resize
from dparray._functions.manipulation import (
    atleast_1d,
    broadcast_to,
    concat,
    expand_dims,
    ravel,
    reshape,
    split,
    vstack,
)
from dparray._functions.products import matmul
from dparray._functions.reductions import all as all_of
from dparray._functions.sorting import sort
from dparray._graph.ops import OPS
from dparray._placement import common_placement
from dparray.exceptions import ArgumentError, ShapeError, UnsupportedFeatureError

__all__ = [
    "apply_over_axes",
    "asarray_chkfinite",
    "block",
    "broadcast",
    "c_",
    "dsplit",
    "flatiter",
    "isfortran",
    "matvec",
    "ndenumerate",
    "r_",
    "require",
    "row_stack",
    "sort_complex",
    "vecmat",
]

row_stack = vstack


# -- put together ---------------------------------------------------------------------------------


def _arrays_in(nested: Any) -> Iterator[ndarray]:
    if isinstance(nested, list):
        for part in nested:
            yield from _arrays_in(part)
    elif isinstance(nested, ndarray):
        yield nested


def _on_one_queue(function: str, values: Sequence[Any]) -> list[ndarray]:
    """Arrays, and scalars and lists as arrays beside them; all on one queue."""
    arrays = [(f"arrays[{at}]", x) for at, x in enumerate(values) if isinstance(x, ndarray)]
    place: dict[str, Any] = {}
    if arrays:
        placement = common_placement(function, arrays)
        place = {"sycl_queue": placement.queue, "usm_type": placement.usm_type}
    return [
        x
        if isinstance(x, ndarray)
        else asarray(x, **place)
        if isinstance(x, list | tuple | range)
        else _beside(function, f"arrays[{at}]", x, place)
        for at, x in enumerate(values)
    ]


def _beside(function: str, name: str, value: Any, place: dict[str, Any]) -> ndarray:
    """A scalar as an array; anything else is refused."""
    if isinstance(value, bool | int | float | complex | np.generic):
        return asarray(value, **place)
    return check_array(function, name, value)


def block(arrays: Any) -> ndarray:
    """An array put together of blocks in nested lists: the innermost along the last axis.

    Args:
        arrays: an array, a scalar, or nested lists of them, all nested to the same depth.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the blocks do not fit, or lists differ in depth.

    Example:
        >>> import dparray as dp
        >>> one, two = dp.eye(2, dtype="int32"), dp.full((2, 2), 2, dtype="int32")
        >>> dp.block([[one, two], [two, one]]).shape
        (4, 4)
    """
    inside = [(f"arrays[{at}]", x) for at, x in enumerate(_arrays_in(arrays))]
    place: dict[str, Any] = {}
    if inside:
        placement = common_placement("block", inside)
        place = {"sycl_queue": placement.queue, "usm_type": placement.usm_type}
    depth = _depth(arrays)
    most = max([depth, *(x.ndim for _, x in inside)])

    def joined(nested: Any, level: int) -> ndarray:
        if isinstance(nested, list):
            return concat([joined(part, level + 1) for part in nested], axis=most - depth + level)
        x = nested if isinstance(nested, ndarray) else _beside("block", "a block", nested, place)
        return reshape(x, (1,) * (most - x.ndim) + x.shape)

    result = joined(arrays, 0)
    return result if depth else result.copy()


def _depth(nested: Any) -> int:
    if not isinstance(nested, list):
        return 0
    depths = {_depth(part) for part in nested}
    if len(depths) != 1:
        raise ShapeError("block: lists are empty or nested to different depths")
    return depths.pop() + 1


def _is_weak(value: Any) -> bool:
    """Whether a value is a scalar of Python's: NumPy's have a dtype of their own."""
    is_scalar = isinstance(value, bool | int | float | complex)
    return is_scalar and not isinstance(value, np.generic)


class _Joiner:
    """``r_`` and ``c_``: arrays, scalars and slices joined by indexing."""

    def __init__(self, name: str, axis: int, ndmin: int, first: int) -> None:
        self.name = name
        self.axis = axis
        self.ndmin = ndmin
        self.first = first

    def __getitem__(self, key: Any) -> ndarray:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, first = self.axis, self.ndmin, self.first
        if parts and isinstance(parts[0], str):
            try:
                numbers = [int(number) for number in parts.pop(0).split(",")]
            except ValueError:
                raise UnsupportedFeatureError(
                    f"{self.name}: matrices are not supported; a string gives numbers: "
                    f"'axis, ndmin, first'"
                ) from None
            axis, ndmin, first = [*numbers, *(self.axis, 1, -1)[len(numbers) :]][:3]
        arrays = [x for x in parts if isinstance(x, ndarray)]
        place: dict[str, Any] = {}
        if arrays:
            placement = common_placement(
                self.name, [(f"arrays[{at}]", x) for at, x in enumerate(arrays)]
            )
            place = {"sycl_queue": placement.queue, "usm_type": placement.usm_type}
        lines = [self._line(x, place) if isinstance(x, slice) else x for x in parts]
        weak = [x for x in lines if _is_weak(x)]
        shaped = [self._shaped(x, ndmin, first) for x in _on_one_queue(self.name, lines)]
        strong = [x.dtype for x, given in zip(shaped, lines, strict=True) if not _is_weak(given)]
        dtype = np.result_type(*strong, *weak) if strong or weak else None
        return concat(shaped, axis=axis, dtype=dtype)

    @staticmethod
    def _line(one: slice, place: dict[str, Any]) -> ndarray:
        start = 0 if one.start is None else one.start
        if isinstance(one.step, complex):
            return linspace(start, one.stop, int(abs(one.step)), **place)
        return arange(start, one.stop, 1 if one.step is None else one.step, **place)

    @staticmethod
    def _shaped(x: ndarray, ndmin: int, first: int) -> ndarray:
        """At least ``ndmin`` dimensions; those that are there begin at ``first``."""
        x = atleast_1d(x)
        added = ndmin - x.ndim
        if added <= 0:
            return x
        before = first if first >= 0 else added + 1 + first
        before = min(max(before, 0), added)
        return reshape(x, (1,) * before + x.shape + (1,) * (added - before))


r_ = _Joiner("r_", 0, 1, -1)
c_ = _Joiner("c_", -1, 2, 0)


def dsplit(x: Any, indices_or_sections: Any) -> list[ndarray]:
    """:func:`split` along the third axis.

    Example:
        >>> import dparray as dp
        >>> len(dp.dsplit(dp.ones((1, 2, 4)), 2))
        2
    """
    x = check_array("dsplit", "x", x)
    if x.ndim < 3:
        raise ShapeError(f"dsplit: needs 3 dimensions or more, x has {x.ndim}")
    return split(x, indices_or_sections, 2)


def apply_over_axes(function: Callable[..., Any], x: Any, axes: Any) -> ndarray:
    """A function of an array and an axis applied along several axes, which are kept.

    Raises:
        AxisError: there is no such axis.

    Example:
        >>> import dparray as dp
        >>> dp.apply_over_axes(dp.sum, dp.ones((2, 3, 4)), (0, 2)).shape
        (1, 3, 1)
    """
    x = check_array("apply_over_axes", "x", x)
    for axis in _layout.normalize_axes("apply_over_axes", axes, x.ndim):
        result = check_array("apply_over_axes", "the function's result", function(x, axis))
        x = result if result.ndim == x.ndim else expand_dims(result, axis)
    return x


def asarray_chkfinite(
    obj: Any, dtype: Any = None, order: str | None = None, **place: Any
) -> ndarray:
    """:func:`asarray` that refuses NaN and infinity; the host waits to know.

    Raises:
        ArgumentError: there is NaN or infinity.

    Example:
        >>> import dparray as dp
        >>> dp.asarray_chkfinite([1.0, 2.0]).shape
        (2,)
    """
    x = asarray(obj, dtype, order, **place)
    if x.dtype.kind in "fc" and not bool(all_of(apply(OPS["isfinite"], x))):
        raise ArgumentError("asarray_chkfinite: there is NaN or infinity among the values")
    return x


def require(x: Any, dtype: Any = None, requirements: Any = None) -> ndarray:
    """An array of a dtype that meets NumPy's requirements, copied where it has to be.

    Args:
        x: whatever :func:`asarray` takes.
        dtype: the dtype.
        requirements: some of ``"C"``, ``"F"``, ``"A"`` (aligned) and ``"W"`` (writeable), which all
            arrays are, ``"O"`` (owns its memory) and ``"E"``, a list of them or one.

    Raises:
        ArgumentError: there is no such requirement, or both orders are asked for.

    Example:
        >>> import dparray as dp
        >>> dp.require([[1, 2]], "float32", "F").flags.f_contiguous
        True
    """
    known = {"C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F"}
    known |= {"FORTRAN": "F", "A": "A", "ALIGNED": "A", "W": "W", "WRITEABLE": "W"}
    known |= {"O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E"}
    given = [requirements] if isinstance(requirements, str) else list(requirements or ())
    unknown = [one for one in given if str(one).upper() not in known]
    if unknown:
        raise ArgumentError(f"require: {unknown[0]!r} is none of C, F, A, W, O, E")
    wanted = {known[str(one).upper()] for one in given}
    if {"C", "F"} <= wanted:
        raise ArgumentError("require: an array cannot be asked to be both C and F contiguous")
    order = "C" if "C" in wanted else "F" if "F" in wanted else None
    return asarray(x, dtype, order, copy=True if "O" in wanted else None)


def isfortran(x: ndarray) -> bool:
    """Whether columns lie one after another, and rows do not.

    Example:
        >>> import dparray as dp
        >>> dp.isfortran(dp.ones((2, 3)).T)
        True
    """
    return bool(check_array("isfortran", "x", x).flags.fnc)


def matvec(x1: Any, x2: Any, /) -> ndarray:
    """Products of matrices and vectors, stacked along the axes before the last.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not fit.

    Example:
        >>> import dparray as dp
        >>> dp.matvec(dp.asarray([[1, 2], [3, 4]]), dp.asarray([1, 1])).asnumpy()
        array([3, 7])
    """
    x1, x2 = check_array("matvec", "x1", x1), check_array("matvec", "x2", x2)
    common_placement("matvec", (("x1", x1), ("x2", x2)))
    if x1.ndim < 2 or x2.ndim < 1:
        raise ShapeError(f"matvec: no product of shapes {x1.shape} and {x2.shape}")
    return matmul(x1, expand_dims(x2, -1))[..., 0]


def vecmat(x1: Any, x2: Any, /) -> ndarray:
    """Products of conjugated vectors and matrices; errors as of :func:`matvec`.

    Example:
        >>> import dparray as dp
        >>> dp.vecmat(dp.asarray([1, 1]), dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([4, 6])
    """
    x1, x2 = check_array("vecmat", "x1", x1), check_array("vecmat", "x2", x2)
    common_placement("vecmat", (("x1", x1), ("x2", x2)))
    if x1.ndim < 1 or x2.ndim < 2:
        raise ShapeError(f"vecmat: no product of shapes {x1.shape} and {x2.shape}")
    conjugated = apply(OPS["conj"], x1) if x1.dtype.kind == "c" else x1
    return matmul(expand_dims(conjugated, -2), x2)[..., 0, :]


def sort_complex(x: Any) -> ndarray:
    """The elements by their real parts, then by their imaginary ones, as complex numbers.

    Example:
        >>> import dparray as dp
        >>> dp.sort_complex(dp.asarray([2 + 1j, 1 - 1j])).asnumpy()
        array([1.-1.j, 2.+1.j])
    """
    x = check_array("sort_complex", "x", x)
    if x.dtype.kind != "c":
        x = apply(OPS["add"], x, 0j)
    return sort(x, axis=-1)


# -- gone through ---------------------------------------------------------------------------------


class ndenumerate:
    """Pairs of an index and the element there; the host has all values, from one copy.

    Example:
        >>> import dparray as dp
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
    """The shape that arrays broadcast to, and their elements by it.

    Example:
        >>> import dparray as dp
        >>> dp.broadcast(dp.ones((3, 1)), dp.ones(4)).shape
        (3, 4)
    """

    def __init__(self, *arrays: Any) -> None:
        self._arrays = _on_one_queue("broadcast", arrays)
        shapes = [x.shape for x in self._arrays]
        self.shape = _layout.broadcast_shapes("broadcast", shapes) if shapes else ()
        self.ndim = self.nd = len(self.shape)
        self.size = math.prod(self.shape)
        self.numiter = len(self._arrays)

    @property
    def iters(self) -> tuple[Iterator[Any], ...]:
        """For each array its elements, repeated as broadcasting has it."""
        return tuple(iter(broadcast_to(x, self.shape).flat) for x in self._arrays)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self.iters, strict=True)


class flatiter:
    """The elements of an array in C order, as ``x.flat`` gives them: read, written and counted.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([[1, 2], [3, 4]])
        >>> x.flat[[0, 3]] = 9
        >>> x.flat[1:].asnumpy()
        array([2, 3, 9])
        >>> [int(element) for element in x.flat]
        [9, 2, 3, 9]
    """

    def __init__(self, x: ndarray) -> None:
        self.base = x

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return iter(ravel(self.base))

    def __getitem__(self, index: Any) -> ndarray:
        return ravel(self.base)[index].copy()

    def __setitem__(self, index: Any, value: Any) -> None:
        x = self.base
        flat = ravel(x)
        if isinstance(value, list | tuple):
            value = from_host(np.asarray(value), x.sycl_queue, x.usm_type)
        selected = flat[index]
        if isinstance(value, ndarray):
            common_placement("x.flat[...] = value", (("x", x), ("value", value)))
            if value.size == 0:
                raise ShapeError("x.flat[...] = value: there is no value")
            if value.shape != selected.shape:  # NumPy repeats and cuts values here
                value = resize(ravel(value), selected.shape)
        flat[index] = value
        if flat.block is not x.block:
            assign(x, reshape(flat, x.shape), "x.flat[...] = value")

    def copy(self) -> ndarray:
        """The elements as a vector."""
        return ravel(self.base).copy()

    def __repr__(self) -> str:
        return f"flatiter({self.base!r})"


class flags:
    """How an array lies in memory, as ``x.flags`` gives it; flags cannot be changed.

    Attributes:
        c_contiguous, f_contiguous: elements lie one after another, rows or columns first.
        writeable: no two elements share their memory, so that writing makes sense.
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
        repeats = any(
            extent > 1 and stride == 0 for extent, stride in zip(x.shape, x.strides, strict=True)
        )
        self.__dict__.update(found, writeable=not repeats, aligned=True)

    @property
    def contiguous(self) -> bool:
        """``c_contiguous`` by its other name."""
        return bool(self.__dict__["c_contiguous"])

    @property
    def fnc(self) -> bool:
        """F contiguous and not C contiguous."""
        return bool(self.__dict__["f_contiguous"] and not self.__dict__["c_contiguous"])

    @property
    def forc(self) -> bool:
        """F contiguous or C contiguous."""
        return bool(self.__dict__["f_contiguous"] or self.__dict__["c_contiguous"])

    def __getitem__(self, name: str) -> bool:
        key = self._SHORT.get(name, name.lower())
        if key not in (*self._NAMES, "contiguous", "fnc", "forc"):
            raise KeyError(f"{name!r} is none of {', '.join(self._NAMES).upper()}")
        return bool(getattr(self, key))

    def __setattr__(self, name: str, value: Any) -> None:
        raise UnsupportedFeatureError(
            f"flags.{name}: the flags of an array on a device cannot be changed; take a copy to "
            f"keep the values"
        )

    def __setitem__(self, name: str, value: Any) -> None:
        self.__setattr__(name.lower(), value)

    def __repr__(self) -> str:
        return "\n".join(f"  {name.upper()} : {getattr(self, name)}" for name in self._NAMES)


def _set_flat(self: ndarray, value: Any) -> None:
    flatiter(self)[:] = value


def _attach() -> None:
    ndarray.flat = property(
        flatiter, _set_flat, doc="The elements in C order, to read, to write and to go through."
    )
    ndarray.flags = property(flags, doc="How the array lies in memory.")
    ndarray.__class_getitem__ = classmethod(types.GenericAlias)  # type: ignore[attr-defined]


_attach()
