"""NumPy's array methods and attributes that are not functions of the namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from dparray import _dtypes, _layout
from dparray._array.assignment import assign
from dparray._array.ndarray import array_method, materialize, ndarray, take_layout_of
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._functions import missing_names
from dparray._functions.creation import zeros
from dparray._functions.indexing import compress, put
from dparray._functions.manipulation import ravel
from dparray._functions.sorting import argpartition, partition
from dparray.exceptions import ShapeError

__all__ = [
    "may_share_memory",
    "shares_memory",
]


def shares_memory(x1: ndarray, x2: ndarray, /) -> bool:
    """Return whether two arrays share an allocation, as views of one array do.

    Example:
        >>> x = dp.ones(4)
        >>> dp.shares_memory(x, x[1:]), dp.shares_memory(x, x.copy())
        (True, False)
    """
    x1, x2 = check_array("shares_memory", "x1", x1), check_array("shares_memory", "x2", x2)
    return bool(x1.block.pointer == x2.block.pointer)


may_share_memory = shares_memory


@array_method("view")
def _view(self: ndarray, dtype: Any = None) -> ndarray:
    """Reinterpret the memory as another dtype; without one, return another view.

    Raises:
        ShapeError: the last axis is not contiguous, its bytes are not divisible, or elements would
            not be aligned to their size.
    """
    wanted = self.dtype if dtype is None else _dtypes.as_dtype(dtype)
    _dtypes.check_device(wanted, traits_of(self.queue))
    if wanted.itemsize == self.itemsize:
        return self._view(self.shape, self.strides, self.offset, wanted)
    has_gaps = self.ndim > 0 and self.strides[-1] != self.itemsize
    if self.ndim == 0 or (has_gaps and self.shape[-1] != 1 and self.size):
        raise ShapeError(
            f"view: {self.dtype} as {wanted} requires a contiguous last axis; write "
            "x.copy().view(...)"
        )
    nbytes = self.shape[-1] * self.itemsize
    if nbytes % wanted.itemsize:
        raise ShapeError(
            f"view: the last axis has {nbytes} bytes, not a multiple of the size of {wanted}"
        )
    shape = (*self.shape[:-1], nbytes // wanted.itemsize)
    if not self.size:
        return self._view(
            shape, _layout.contiguous_strides(shape, wanted.itemsize), self.offset, wanted
        )
    # The stride of an axis of one element has no meaning.
    steps = [0 if n == 1 else step for n, step in zip(shape, self.strides, strict=True)][:-1]
    if any(place % wanted.itemsize for place in (self.offset, *steps)):
        raise ShapeError(
            f"view: elements of {wanted} would not be aligned to {wanted.itemsize} bytes; "
            f"write x.copy().view(...)"
        )
    return self._view(shape, (*steps, wanted.itemsize), self.offset, wanted)


def _set_dtype(self: ndarray, dtype: Any) -> None:
    """Reinterpret the array's own memory as another dtype; see :meth:`view`."""
    materialize(self)  # evaluates a pending array
    take_layout_of(self, _view(self, dtype))


def _set_strides(self: ndarray, strides: Any) -> None:
    raise AttributeError(
        f"x.strides cannot be set; write x = dp.lib.stride_tricks.as_strided(x, {self.shape}, "
        f"{strides!r:.40})"
    )


@array_method("resize")
def _resize_in_place(self: ndarray, *new_shape: Any, refcheck: bool = True) -> None:
    """Resize the array in place, truncated or padded with zeros; views keep the old memory.

    Elements keep their memory order: column by column for an array in Fortran order.

    Args:
        *new_shape: the new shape, as sizes or a tuple.
        refcheck: ignored; other views never lose their memory.
    """
    given = new_shape[0] if len(new_shape) == 1 else new_shape
    by_columns = self.flags.fnc
    order = "F" if by_columns else "C"
    resized = zeros(given, self.dtype, order, usm_type=self.usm_type, sycl_queue=self.queue)
    count = min(self.size, resized.size)
    old, new = (self.T, resized.T) if by_columns else (self, resized)
    ravel(new)[:count] = ravel(old)[:count]
    materialize(resized)  # evaluates it
    take_layout_of(self, resized)


def _absent_attribute(name: str, reason: str) -> property:
    def refuse(self: ndarray) -> NoReturn:
        raise AttributeError(f"'ndarray' object has no attribute {name!r}: {reason}")

    return property(refuse, doc=f"Not available: {reason}.")


@array_method("partition")
def _partition_in_place(
    self: ndarray, kth: int | Sequence[int], axis: int = -1, kind: str = "introselect"
) -> None:
    """Partition the array in place, as NumPy's method does; see :func:`dparray.partition`."""
    assign(self, partition(self, kth, axis, kind), "partition")


@array_method("argpartition")
def _argpartition(
    self: ndarray, kth: int | Sequence[int], axis: int = -1, kind: str = "introselect"
) -> ndarray:
    """Return the indices that partition the array; see :func:`dparray.argpartition`."""
    return argpartition(self, kth, axis, kind)


@array_method("compress")
def _compress(
    self: ndarray, condition: ndarray, axis: int | None = None, out: ndarray | None = None
) -> ndarray:
    """Return the slices where ``condition`` is true; see :func:`dparray.compress`."""
    return compress(condition, self, axis, out)


@array_method("put")
def _put(self: ndarray, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write to elements of the flattened array; see :func:`dparray.put`."""
    put(self, indices, values, mode)


def _attach() -> None:
    for name, set_it in (("dtype", _set_dtype), ("strides", _set_strides)):
        setattr(ndarray, name, vars(ndarray)[name].setter(set_it))
    for name, reason in missing_names.ATTRIBUTES.items():
        setattr(ndarray, name, _absent_attribute(name, reason))


_attach()
