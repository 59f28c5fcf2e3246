"""The values of names in a program, and the typed operations that compute them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dparray.exceptions import TileIndexError, TileNameError, TileShapeError, TileTypeError
from dparray.tilelang.failure import failure, line_and_column

DType = np.dtype[Any]
Shape = tuple[int | None, ...]

BOOL, INT32, INT64, UINT32 = map(np.dtype, (np.bool_, np.int32, np.int64, np.uint32))
UINT64, FLOAT16, FLOAT32, FLOAT64 = map(np.dtype, (np.uint64, np.float16, np.float32, np.float64))
DTYPES = frozenset(
    map(np.dtype, (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16))
) | frozenset((UINT32, UINT64, FLOAT16, FLOAT32, FLOAT64))


class TileWarning(UserWarning):
    """Issued for a valid program that may not do what it seems to do."""


class _Settings(threading.local):
    floatx: DType = FLOAT32


_settings = _Settings()


def floatx() -> DType:
    """Return the dtype of float literals, Python floats and functions of integers."""
    return _settings.floatx


def set_floatx(dtype: Any) -> DType:
    """Set the dtype of float literals, Python floats and functions of integers.

    The setting applies to the calling thread and to later calls.

    Args:
        dtype: ``float16``, ``float32`` (the default) or ``float64``.

    Returns:
        The previous dtype.

    Raises:
        TileTypeError: the dtype is not supported.

    Example:
        >>> from dparray import tilelang
        >>> before = tilelang.set_floatx("float64")
        >>> tilelang.set_floatx(before)
        dtype('float64')
    """
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        wanted = None
    if wanted not in (FLOAT16, FLOAT32, FLOAT64):
        raise TileTypeError(f"set_floatx: dtype must be float16, float32 or float64; got {dtype!r}")
    before = _settings.floatx
    _settings.floatx = wanted
    return before


class Constant(NamedTuple):
    """A number known when shapes are; ``value`` is ``None`` while only the text is checked.

    ``is_float`` is ``None`` if the text does not determine it.
    """

    value: int | float | None
    is_float: bool | None


class Unknown(NamedTuple):
    """An input of any rank, which may be a number."""


@dataclass(eq=False)
class Tensor:
    """A tensor; unknown shape, sizes and dtype are ``None`` while only the text is checked."""

    shape: Shape | None
    dtype: DType | None


class Group(NamedTuple):
    """A tuple of values."""

    members: tuple[Any, ...]


Value = Constant | Unknown | Tensor | Group


class Literal(NamedTuple):
    """A constant as an operand, with its dtype."""

    value: Any
    dtype: DType


@dataclass(eq=False)
class Operation:
    """One step: ``result`` from ``operands``; ``parameters`` depend on the operation."""

    name: str
    operands: tuple[Tensor | Literal, ...]
    result: Tensor
    parameters: Any = None


class Builder:
    """Collects the operations of a program; has its source for error messages."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.operations: list[Operation] = []

    def index_error(self, position: int, what: str, cure: str) -> TileIndexError:
        """Return an error about an index or a domain."""
        return failure(TileIndexError, self.source, position, what, cure)

    def name_error(self, position: int, what: str, cure: str) -> TileNameError:
        """Return an error about a name."""
        return failure(TileNameError, self.source, position, what, cure)

    def shape_error(self, position: int, what: str, cure: str) -> TileShapeError:
        """Return an error about a shape or a size."""
        return failure(TileShapeError, self.source, position, what, cure)

    def type_error(self, position: int, what: str, cure: str) -> TileTypeError:
        """Return an error about a dtype or a kind of value."""
        return failure(TileTypeError, self.source, position, what, cure)

    def emit(
        self,
        name: str,
        operands: Sequence[Tensor | Literal],
        shape: Shape | None,
        dtype: DType | None,
        parameters: Any = None,
    ) -> Tensor:
        """Record an operation."""
        result = Tensor(shape, dtype)
        self.operations.append(Operation(name, tuple(operands), result, parameters))
        return result

    def operand(self, value: Constant | Tensor, position: int) -> Tensor | Literal:
        """Return a value as an operand; constants get their dtype."""
        if isinstance(value, Tensor):
            return value
        dtype = self.dtype_of(value, position)
        if dtype is None:
            return Tensor((), None)
        return Literal(np.asarray(value.value).astype(dtype)[()], dtype)

    def dtype_of(self, value: Constant | Tensor, position: int) -> DType | None:
        """Return the dtype of a value as an operand."""
        if isinstance(value, Tensor):
            return value.dtype
        if value.is_float is None or value.value is None:
            return None
        if value.is_float:
            return floatx()
        for dtype in (INT32, INT64, UINT64):
            limits: Any = np.iinfo(dtype)
            if limits.min <= value.value <= limits.max:
                return dtype
        raise self.type_error(
            position,
            f"the integer {value.value} has more than 64 bits",
            "write it as a float",
        )

    def cast(self, value: Tensor | Literal, dtype: DType | None) -> Tensor | Literal:
        """Convert a value to a dtype."""
        if dtype is None or value.dtype is None or value.dtype == dtype:
            return value
        if isinstance(value, Literal):
            with np.errstate(all="ignore"):
                return Literal(np.asarray(value.value).astype(dtype)[()], dtype)
        return self.emit("cast", (value,), value.shape, dtype)

    def common(self, dtypes: Sequence[DType | None], position: int) -> DType | None:
        """Return the common dtype, from left to right."""
        found = dtypes[0]
        for dtype in dtypes[1:]:
            if found is None or dtype is None:
                return None
            before, found = found, common_dtype(found, dtype)
            if _loses_sign(before, dtype, found):
                self.warn(position, f"{before} and {dtype} are computed in {found}")
        return found

    def warn(self, position: int, what: str) -> None:
        """Warn about a position in the program, with its line as the location."""
        line, _ = line_and_column(self.source, position)
        warnings.warn_explicit(
            f"{what}, which cannot hold all their values; convert one with as_int or as_uint",
            TileWarning,
            "<tile program>",
            line,
            module="<tile program>",
            registry={},
        )

    def broadcast(self, shapes: Sequence[Shape | None], position: int) -> Shape | None:
        """Return the shape of an element-wise operation; ``None`` if a shape is not known."""
        if any(shape is None for shape in shapes):
            return None
        result: list[int | None] = []
        for shape in shapes:
            assert shape is not None
            result = [*[1] * (len(shape) - len(result)), *result]
            for at, size in enumerate(shape, len(result) - len(shape)):
                other = result[at]
                if other == 1 or (other is None and size not in (None, 1)):
                    result[at] = size
                elif size is not None and other is not None and size not in (1, other):
                    raise self.shape_error(
                        position,
                        f"the shapes {' and '.join(map(shown, shapes))} do not fit together: sizes "
                        f"{other} and {size} meet",
                        "sizes are equal or 1, counted from the last; reshape one of them, or "
                        "write a contraction",
                    )
        return tuple(result)


def shown(shape: Shape | None) -> str:
    """Format a shape for messages; unknown sizes are question marks."""
    return str(shape).replace("None", "?")


def common_dtype(left: DType, right: DType) -> DType:
    """Return Tile's common dtype of two: the float, the wider, else the left one."""
    if (left.kind == "f") != (right.kind == "f"):
        return left if left.kind == "f" else right
    return right if right.itemsize > left.itemsize else left


def _loses_sign(left: DType, right: DType, common: DType) -> bool:
    kinds = {left.kind, right.kind}
    if kinds != {"i", "u"}:
        return False
    unsigned = left if left.kind == "u" else right
    return common.kind == "u" or unsigned.itemsize >= common.itemsize
