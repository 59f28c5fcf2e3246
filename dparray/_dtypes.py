"""Supported dtypes, promotion, and the dtypes that a device can compute.

A dtype is a ``numpy.dtype``. Promotion follows NumPy (a superset of the Array API's rules), with
weak Python scalars. Only on a device without ``fp64`` do results stay in single precision that
NumPy would promote to double precision from other inputs.
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from dparray._driver.interface import Traits
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

#: Whether bfloat16 was used: without it, no code needs to check for it.
is_bfloat16_used = False
#: The package that defines bfloat16 for NumPy; it is imported at the first use of bfloat16.
_BFLOAT16_PACKAGE = "ml_dtypes"

_ASPECTS = {float16: "fp16", float64: "fp64", complex128: "fp64"}
_SINGLE = {float64: float32, complex128: complex64}
_HALF_TO_SINGLE = {float16: float32}


def is_bfloat16(dtype: np.dtype[Any]) -> builtins.bool:
    """Return whether a dtype is the bfloat16 of ``ml_dtypes``, which NumPy gives no kind."""
    return dtype.char == "E"  # type: ignore[comparison-overlap]


@lru_cache(maxsize=1)
def bfloat16() -> np.dtype[Any]:
    """Return the dtype bfloat16.

    Raises:
        DTypeError: the package that defines it is not installed.
    """
    global is_bfloat16_used
    is_bfloat16_used = True
    try:
        return np.dtype(importlib.import_module(_BFLOAT16_PACKAGE).bfloat16)
    except ImportError:
        raise DTypeError(
            "dtype bfloat16 needs the package ml_dtypes, which is not installed: "
            "pip install ml_dtypes"
        ) from None


def _unsupported(dtype: Any) -> DTypeError:
    """Return the error for a dtype that arrays do not have."""
    has_fields = isinstance(dtype, list) or getattr(dtype, "fields", None) is not None
    advice = "; arrays have no fields: keep an array for each field" if has_fields else ""
    return DTypeError(f"unsupported dtype {dtype!r}; expected one of {', '.join(NAMES)}{advice}")


@lru_cache(maxsize=256)
def _from_hashable(dtype: Any) -> np.dtype[Any]:
    if dtype == "bfloat16":
        return bfloat16()
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = None
    if result is not None and result.name == "bfloat16":
        return bfloat16()
    if result is None or result not in SUPPORTED:
        raise _unsupported(dtype)
    return result.newbyteorder("=") if result.byteorder == ">" else result


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` (a ``numpy.dtype``, a class, a name) as a ``numpy.dtype`` that arrays
    support.

    Raises:
        DTypeError: the dtype is unknown, or arrays do not support it.
    """
    try:
        return _from_hashable(dtype)
    except TypeError as error:
        if isinstance(error, DTypeError):
            raise
        raise _unsupported(dtype) from None


def check_device(dtype: np.dtype[Any], traits: Traits) -> np.dtype[Any]:
    """Return ``dtype`` if a device can compute in it.

    Raises:
        UnsupportedDeviceError: the device lacks the aspect.
    """
    aspect = _ASPECTS.get(dtype)
    if aspect is not None and aspect not in traits.aspects:
        smaller = _SINGLE.get(dtype) or _HALF_TO_SINGLE[dtype]
        raise UnsupportedDeviceError(
            f"dtype {dtype} needs the aspect {aspect}, which {traits.name} lacks; "
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


def default_float(traits: Traits) -> np.dtype[Any]:
    """Return ``float64``, or ``float32`` on a device without double precision."""
    return float64 if "fp64" in traits.aspects else float32


def default_complex(traits: Traits) -> np.dtype[Any]:
    """Return ``complex128``, or ``complex64`` on a device without double precision."""
    return complex128 if "fp64" in traits.aspects else complex64


def default_for_scalar(scalar_type: type, traits: Traits) -> np.dtype[Any]:
    """Return the dtype of a Python scalar of this type on a device if nothing else decides."""
    if issubclass(scalar_type, np.bool_ | builtins.bool):
        return bool
    if issubclass(scalar_type, int):
        return int64
    return default_float(traits) if issubclass(scalar_type, float) else default_complex(traits)


def fit_device(dtype: np.dtype[Any], traits: Traits) -> np.dtype[Any]:
    """Return a promotion's result on a device: single precision if double is missing."""
    if "fp64" in traits.aspects:
        return dtype
    return _SINGLE.get(dtype, dtype)


@lru_cache(maxsize=4096)
def resolve(ufunc: np.ufunc, operands: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of a loop of ``ufunc``: one for each operand, then one for each result.

    ``operands`` are dtypes, or ``bool``, ``int``, ``float``, ``complex`` for weak scalars.

    Raises:
        DTypeError: the ufunc has no loop for these operands.
    """
    if any(type(each) is not type and is_bfloat16(each) for each in operands):
        try:
            dtypes = resolve(ufunc, tuple(_stand_ins(operands)))
        except DTypeError:
            raise _undefined(ufunc, operands) from None
        return tuple(bfloat16() if dtype == float16 else dtype for dtype in dtypes)
    try:
        return tuple(ufunc.resolve_dtypes((*operands, *(None,) * ufunc.nout)))
    except TypeError:
        raise _undefined(ufunc, operands) from None


def _undefined(ufunc: np.ufunc, operands: tuple[Any, ...]) -> DTypeError:
    shown = ", ".join(getattr(operand, "name", None) or operand.__name__ for operand in operands)
    return DTypeError(f"{ufunc.__name__}: not defined for {shown}; convert with `x.astype(...)`")


def promotion_key(scalar: Any) -> Any:
    """Return a scalar's key in promotion: NumPy's dtype, or the weak kind of a Python scalar.

    The value represents all values of its kind.
    """
    dtype = OF_NUMPY_SCALAR.get(type(scalar))
    if dtype is not None:
        return dtype
    if isinstance(scalar, np.generic):  # bfloat16
        return scalar.dtype
    if isinstance(scalar, builtins.bool):
        return bool
    return 0 if isinstance(scalar, int) else 0.0 if isinstance(scalar, float) else 0j


def promote(dtypes: Iterable[Any]) -> np.dtype[Any]:
    """Return the dtype that all ``dtypes`` (and weak Python scalars) promote to."""
    operands = list(dtypes)
    first = operands[0] if operands else None
    if isinstance(first, np.dtype) and operands.count(first) == len(operands):
        return first
    if any(isinstance(each, np.dtype) and is_bfloat16(each) for each in operands):
        promoted = np.result_type(*_stand_ins(operands))
        return bfloat16() if promoted == float16 else promoted
    return np.result_type(*operands)


@lru_cache(maxsize=1024)
def can_cast(source: Any, target: Any, casting: str = "safe") -> builtins.bool:
    """Return whether a conversion is allowed by a rule; bfloat16 converts as float16 does."""
    pair = [
        float16 if isinstance(each, np.dtype) and is_bfloat16(each) else each
        for each in (source, target)
    ]
    if source != target and pair[0] == pair[1]:
        return casting in ("same_kind", "unsafe")
    return builtins.bool(np.can_cast(pair[0], pair[1], casting))  # type: ignore[arg-type]


def _stand_ins(dtypes: Iterable[Any]) -> Iterator[Any]:
    """Yield dtypes whose promotion shows how bfloat16 promotes, which NumPy does not define.

    bfloat16 promotes as JAX has it: integers and Python scalars leave it as it is, of float16 and
    it the result is float32. So float16 stands for it where no other float is, float32 else, and
    int8 for all integers, which NumPy would promote to larger floats.
    """
    operands = list(dtypes)
    strong = [each for each in operands if isinstance(each, np.dtype)]
    is_alone = not any(each.kind in "fc" for each in strong)
    for each in operands:
        if isinstance(each, np.dtype) and is_bfloat16(each):
            yield float16 if is_alone else float32
        elif isinstance(each, np.dtype) and each.kind in "iu":
            yield int8
        else:
            yield each
