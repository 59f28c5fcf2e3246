"""Inspection of dtypes, type promotion and device capabilities."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.ndarray import as_method, ndarray
from dparray._driver import traits_of
from dparray._functions.public import public
from dparray.device import Device, default_device
from dparray.device import devices as _devices
from dparray.exceptions import DTypeError

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "can_cast",
    "common_type",
    "finfo",
    "iinfo",
    "iscomplexobj",
    "isdtype",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "min_scalar_type",
    "ndim",
    "promote_types",
    "result_type",
    "shape",
    "size",
]

__array_api_version__ = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "fV",  # bfloat16
    "complex floating": "c",
    "numeric": "iufcV",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a given kind.

    Args:
        dtype: a dtype.
        kind: another dtype; or ``"bool"``, ``"signed integer"``, ``"unsigned integer"``,
            ``"integral"``, ``"real floating"``, ``"complex floating"``, ``"numeric"``; or a tuple
            of these, one of which must match.

    Raises:
        DTypeError: the dtype is unknown.
        ValueError: the kind is unknown.

    Example:
        >>> dp.isdtype(dp.int8, "integral"), dp.isdtype(dp.int8, ("bool", dp.float32))
        (True, False)
    """
    found = _dtypes.as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(found, one) for one in kind)
    if isinstance(kind, str) and kind in _KINDS and kind != "bool":
        return found.kind in _KINDS[kind]
    try:
        return bool(found == _dtypes.as_dtype(kind))
    except DTypeError:
        raise ValueError(
            f"isdtype: kind must be a dtype or one of {', '.join(_KINDS)}; got {kind!r}"
        ) from None


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating-point dtype, as Python numbers, with NumPy's names."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]

    @property
    def tiny(self) -> float:
        """NumPy's name for ``smallest_normal``."""
        return self.smallest_normal

    @property
    def resolution(self) -> float:
        """The decimal resolution, ``10 ** -precision``."""
        return 0.01 if _dtypes.is_bfloat16(self.dtype) else float(np.finfo(self.dtype).resolution)

    @property
    def precision(self) -> int:
        """The number of decimal digits that are always preserved."""
        return int(-math.log10(self.eps))

    @property
    def nmant(self) -> int:
        """The number of mantissa bits, without the leading one."""
        return -self.machep

    @property
    def machep(self) -> int:
        """The exponent of ``eps``, a power of two."""
        return math.frexp(self.eps)[1] - 1

    @property
    def epsneg(self) -> float:
        """The distance from 1 to the next smaller number."""
        return self.eps / 2

    @property
    def negep(self) -> int:
        """The exponent of ``epsneg``, a power of two."""
        return self.machep - 1

    @property
    def iexp(self) -> int:
        """The number of exponent bits."""
        return self.bits - self.nmant - 1

    @property
    def nexp(self) -> int:
        """NumPy's other name for ``iexp``."""
        return self.iexp

    @property
    def maxexp(self) -> int:
        """The smallest power of two that overflows."""
        return int(2 ** (self.iexp - 1))

    @property
    def minexp(self) -> int:
        """The exponent of ``smallest_normal``, a power of two."""
        return 2 - self.maxexp

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number."""
        return self.smallest_normal * self.eps


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]

    @property
    def kind(self) -> str:
        """``"i"`` for signed and ``"u"`` for unsigned dtypes."""
        return self.dtype.kind

    @property
    def key(self) -> str:
        """The kind and the number of bits, such as ``"i64"``."""
        return f"{self.kind}{self.bits}"


def _dtype_of(value: Any) -> np.dtype[Any]:
    return value.dtype if isinstance(value, ndarray) else _dtypes.as_dtype(value)


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a floating-point dtype or of the dtype of an array.

    For a complex dtype these are the limits of its parts.

    Raises:
        DTypeError: the dtype is not floating-point.

    Example:
        >>> dp.finfo(dp.float32).bits
        32
    """
    dtype = _dtype_of(type)
    if _dtypes.is_bfloat16(dtype):
        most = (2 - 2.0**-7) * 2.0**127
        return FloatInfo(16, 2.0**-7, most, -most, 2.0**-126, dtype)
    if dtype.kind not in "fc":
        raise DTypeError(f"finfo: {dtype} must be floating-point; use dp.iinfo for integers")
    info = np.finfo(dtype)
    return FloatInfo(
        info.bits,
        float(info.eps),
        float(info.max),
        float(info.min),
        float(info.smallest_normal),
        info.dtype,
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer dtype or of the dtype of an array.

    Raises:
        DTypeError: the dtype is not an integer dtype.

    Example:
        >>> dp.iinfo(dp.int8).max
        127
    """
    dtype = _dtype_of(type)
    if dtype.kind not in "iu":
        raise DTypeError(f"iinfo: {dtype} must be an integer dtype; use dp.finfo for floats")
    info = np.iinfo(dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype to which arrays, dtypes and Python scalars promote; scalars are weak.

    The values and the placement of arrays have no effect.

    Raises:
        DTypeError: a dtype is unknown, or there are no arguments.

    Example:
        >>> dp.result_type(dp.int8, dp.ones(3, dtype="float32")).name
        'float32'
    """
    keys = [
        value
        if isinstance(value, int | float | complex) and not isinstance(value, np.generic)
        else value.dtype
        if isinstance(value, ndarray | np.generic)
        else _dtypes.as_dtype(value)
        for value in arrays_and_dtypes
    ]
    if not keys:
        raise DTypeError("result_type: give at least one array or dtype")
    if all(isinstance(key, int | float | complex) for key in keys):
        traits = traits_of(default_device().queue)
        return np.result_type(*(_dtypes.default_for_scalar(type(key), traits) for key in keys))
    keys = [_dtypes.bool if key is True or key is False else key for key in keys]
    return _dtypes.promote(keys)


def promote_types(type1: Any, type2: Any, /) -> np.dtype[Any]:
    """Return the dtype to which two dtypes promote.

    Example:
        >>> dp.promote_types("int8", "uint8").name
        'int16'
    """
    return _dtypes.promote((_dtypes.as_dtype(type1), _dtypes.as_dtype(type2)))


def can_cast(from_: Any, to: Any, /, casting: str = "safe") -> bool:
    """Return whether an array or a dtype can be cast to another dtype by NumPy's casting rule.

    Example:
        >>> dp.can_cast(dp.int32, dp.float64), dp.can_cast(dp.float64, dp.int32)
        (True, False)
    """
    return _dtypes.can_cast(_dtype_of(from_), _dtypes.as_dtype(to), casting)


def issubdtype(arg1: Any, arg2: Any, /) -> bool:
    """Return whether a dtype is a subtype of another in NumPy's type hierarchy.

    Example:
        >>> dp.issubdtype(dp.float32, dp.float64)
        False
    """
    return bool(np.issubdtype(arg1, arg2))


def min_scalar_type(x: Any, /) -> np.dtype[Any]:
    """Return the smallest dtype that holds a scalar; for an array its dtype.

    Example:
        >>> dp.min_scalar_type(300)
        dtype('uint16')
    """
    if isinstance(x, ndarray):
        return x.dtype if x.ndim else _dtypes.as_dtype(np.min_scalar_type(x.item()))
    return _dtypes.as_dtype(np.min_scalar_type(x))


def common_type(*arrays: Any) -> type:
    """Return the float type to which all arrays can be cast; the default float for integers.

    Raises:
        DTypeError: an array is Boolean.

    Example:
        >>> dp.common_type(dp.ones(2, dtype="float32"), dp.arange(3))
        <class 'numpy.float64'>
    """
    found: list[np.dtype[Any]] = [_dtypes.float16]
    for x in arrays:
        dtype = _dtype_of(x)
        if dtype.kind == "b":
            raise DTypeError("common_type: not defined for bool; convert with `x.astype(...)`")
        found.append(_dtypes.float64 if dtype.kind in "iu" else dtype)
    scalar: type = np.result_type(*found).type
    return scalar


def isscalar(x: Any, /) -> bool:
    """Return whether ``x`` is a number, a string or a NumPy scalar; false for 0-d arrays.

    Example:
        >>> dp.isscalar(1.5), dp.isscalar(dp.asarray(1.5))
        (True, False)
    """
    return isinstance(x, numbers.Number | str | bytes | memoryview | np.generic)


@public()
def iscomplexobj(x: Any, /) -> bool:
    """Return whether an array has a complex dtype, or a scalar a complex type.

    Example:
        >>> dp.iscomplexobj(dp.ones(2))
        False
    """
    return bool(x.dtype.kind == "c")


def isrealobj(x: Any, /) -> bool:
    """Return whether an array has a real dtype, or a scalar a real type.

    Example:
        >>> dp.isrealobj(dp.ones(2))
        True
    """
    return not iscomplexobj(x)


@public()
def ndim(x: Any, /) -> int:
    """Return the number of dimensions of an array or a scalar.

    Example:
        >>> dp.ndim(dp.ones((2, 3)))
        2
    """
    return x.ndim


@public()
def shape(x: Any, /) -> tuple[int, ...]:
    """Return the shape of an array or a scalar.

    Example:
        >>> dp.shape(dp.ones((2, 3)))
        (2, 3)
    """
    return x.shape


@public()
def size(x: Any, /, axis: int | Sequence[int] | None = None) -> int:
    """Return the number of elements of an array, or along one or more axes.

    Example:
        >>> dp.size(dp.ones((2, 3)))
        6
    """
    if axis is None:
        return x.size
    return math.prod(x.shape[at] for at in _layout.normalize_axes("size", axis, x.ndim))


class NamespaceInfo:
    """The result of :func:`__array_namespace_info__`: devices, dtypes and capabilities.

    Example:
        >>> info = dp.__array_namespace_info__()
        >>> info.default_dtypes()["real floating"].name
        'float64'
        >>> info.capabilities()["boolean indexing"]
        True
    """

    def capabilities(self) -> dict[str, Any]:
        """Return the supported optional parts of the Array API standard."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device that creation functions use."""
        return default_device()

    def devices(self) -> tuple[Device, ...]:
        """Return all devices that can hold arrays."""
        return tuple(_devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the default dtypes on a device, by kind."""
        traits = traits_of(Device(device).queue)
        return {
            "real floating": _dtypes.default_float(traits),
            "complex floating": _dtypes.default_complex(traits),
            "integral": _dtypes.int64,
            "indexing": _dtypes.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the standard's dtypes that a device supports, by name, of one kind or all."""
        traits = traits_of(Device(device).queue)
        names = [name for name in _dtypes.NAMES if name != "float16"]
        if "fp64" not in traits.aspects:
            names = [name for name in names if name not in ("float64", "complex128")]
        dtypes = {name: np.dtype(name) for name in names}
        if kind is None:
            return dtypes
        return {name: dtype for name, dtype in dtypes.items() if isdtype(dtype, kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """Return the standard's inspection API: devices, default dtypes, capabilities.

    Example:
        >>> dp.__array_namespace_info__().default_device() == dp.default_device()
        True
    """
    return NamespaceInfo()


@as_method
def __array_namespace__(self: ndarray, /, *, api_version: str | None = None) -> ModuleType:
    """Return the module ``dparray``, which implements the standard.

    Raises:
        ValueError: this version of the standard is not supported.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: api_version must be one of {', '.join(VERSIONS)}; got "
            f"{api_version!r}"
        )
    return sys.modules["dparray"]
