"""Supported dtypes, promotion, and the dtypes that a device can compute.

A dtype is a ``numpy.dtype``. Promotion follows NumPy (a superset of the Array API's rules), with
weak Python scalars. Only on a device without ``fp64`` do results stay in single precision that
NumPy would promote to double precision from other inputs.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from dparray.exceptions import DTypeError, UnsupportedDeviceError

bool = np.dtype(np.bool_)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)
float16 = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)

NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
SUPPORTED = frozenset(np.dtype(name) for name in NAMES)

#: The dtypes of NumPy scalars, by their exact types: in promotion they are as strong as arrays.
#: ``np.float64`` is a ``float`` and ``np.complex128`` a ``complex``, so types are compared exactly.
OF_NUMPY_SCALAR: dict[type, np.dtype[Any]] = {
    np.longlong: int64,
    np.ulonglong: uint64,
    **{dtype.type: dtype for dtype in map(np.dtype, NAMES)},
}
#: The types of Python scalars, which are weak in promotion, and of NumPy scalars.
SCALARS = frozenset({builtins.bool, int, float, complex, *OF_NUMPY_SCALAR})

_ASPECTS = {float16: "fp16", float64: "fp64", complex128: "fp64"}
_SINGLE = {float64: float32, complex128: complex64}
_HALF_TO_SINGLE = {float16: float32}


@lru_cache(maxsize=256)
def _from_hashable(dtype: Any) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found not in SUPPORTED:
        raise DTypeError(f"unsupported dtype {dtype!r}; expected one of {', '.join(NAMES)}")
    return found.newbyteorder("=") if found.byteorder == ">" else found


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` (a ``numpy.dtype``, a class, a name) as a ``numpy.dtype`` that arrays
    support.

    Raises:
        DTypeError: there is no such dtype, or arrays do not support it.
    """
    try:
        return _from_hashable(dtype)
    except TypeError as error:
        if isinstance(error, DTypeError):
            raise
        raise DTypeError(
            f"unsupported dtype {dtype!r}; expected one of {', '.join(NAMES)}"
        ) from None


def has_aspect(device: Any, aspect: str) -> builtins.bool:
    """Return whether ``device`` (a ``dpctl.SyclDevice``) can compute in dtypes of an aspect."""
    return builtins.bool(getattr(device, f"has_aspect_{aspect}"))


def check_device(dtype: np.dtype[Any], device: Any) -> np.dtype[Any]:
    """Return ``dtype`` if ``device`` (a ``dpctl.SyclDevice``) can compute in it.

    Raises:
        UnsupportedDeviceError: the device lacks the aspect.
    """
    aspect = _ASPECTS.get(dtype)
    if aspect is not None and not has_aspect(device, aspect):
        smaller = _SINGLE.get(dtype) or _HALF_TO_SINGLE[dtype]
        raise UnsupportedDeviceError(
            f"dtype {dtype} needs the aspect {aspect}, which {device.name} lacks; "
            f"use dtype={smaller.name!r} or another device"
        )
    return dtype


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of NumPy's sums and products: 64 bits for integers and Booleans."""
    if dtype.kind in "bi":
        return int64
    return uint64 if dtype.kind == "u" else dtype


def real_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the real and imaginary parts; a real dtype itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def default_float(device: Any) -> np.dtype[Any]:
    """Return ``float64``, or ``float32`` on a device without double precision."""
    return float64 if has_aspect(device, "fp64") else float32


def default_complex(device: Any) -> np.dtype[Any]:
    """Return ``complex128``, or ``complex64`` on a device without double precision."""
    return complex128 if has_aspect(device, "fp64") else complex64


def default_for_scalar(scalar_type: type, device: Any) -> np.dtype[Any]:
    """Return the dtype of a Python scalar of this type on ``device`` if nothing else decides."""
    if issubclass(scalar_type, np.bool_ | builtins.bool):
        return bool
    if issubclass(scalar_type, int):
        return int64
    return default_float(device) if issubclass(scalar_type, float) else default_complex(device)


def fit_device(dtype: np.dtype[Any], device: Any) -> np.dtype[Any]:
    """Return a promotion's result on ``device``: single precision if double is missing."""
    if has_aspect(device, "fp64"):
        return dtype
    return _SINGLE.get(dtype, dtype)


def library_converts(source: np.dtype[Any], target: np.dtype[Any]) -> builtins.bool:
    """Return whether dpnp converts between two dtypes with the same values as NumPy.

    dpnp converts floats to signed integers first. Intel's compiler converts floats to 8-bit
    integers by saturation (200.0 becomes 127 in ``uint8``) on processors without AVX-512.
    """
    return source.kind != "f" or not (target.kind == "u" or target in (int8, int16))


@lru_cache(maxsize=4096)
def resolve(ufunc: np.ufunc, operands: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of a loop of ``ufunc``: one for each operand, then one for each result.

    ``operands`` are dtypes, or ``bool``, ``int``, ``float``, ``complex`` for weak scalars.

    Raises:
        DTypeError: the ufunc has no loop for these operands.
    """
    try:
        return tuple(ufunc.resolve_dtypes((*operands, *(None,) * ufunc.nout)))
    except TypeError:
        shown = ", ".join(
            getattr(operand, "name", None) or operand.__name__ for operand in operands
        )
        raise DTypeError(
            f"{ufunc.__name__}: not defined for {shown}; convert with `x.astype(...)`"
        ) from None


def promotion_key(scalar: Any) -> Any:
    """Return how a scalar takes part in promotion: NumPy's by its dtype, Python's as a weak value.

    The value represents all values of its kind.
    """
    dtype = OF_NUMPY_SCALAR.get(type(scalar))
    if dtype is not None:
        return dtype
    if isinstance(scalar, builtins.bool):
        return bool
    return 0 if isinstance(scalar, int) else 0.0 if isinstance(scalar, float) else 0j


def promote(dtypes: Iterable[Any]) -> np.dtype[Any]:
    """Return the dtype that all ``dtypes`` (and weak Python scalars) promote to."""
    return np.result_type(*dtypes)
