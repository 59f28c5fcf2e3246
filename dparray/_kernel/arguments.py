"""Pack kernel arguments with a *binder*, which is generated once for each combination of classes.

A launch with known classes therefore makes no decisions about types. A type key
(:mod:`dparray._type_keys`) tells the compiler all it needs about an argument.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray, packed
from dparray._array.operands import layout_of
from dparray._driver.interface import Queue
from dparray._layout import Block
from dparray._runtime.packing import Packed, pack_local, pack_scalar, pack_scalars
from dparray._type_keys import TypeKey, code_of, parse, text_of
from dparray.device import copying_call
from dparray.exceptions import (
    HostConversionError,
    KernelArgumentError,
)
from dparray.kernel_api import LocalAccessor
from dparray.kernel_api.constants import Constant
from dparray.memory.libraries import cuda_arrays
from dparray.memory.packed import shaped

_SCALAR_TYPES: dict[str, Any] = {
    "b1": ctypes.c_uint8,
    "i1": ctypes.c_int8,
    "i2": ctypes.c_int16,
    "i4": ctypes.c_int32,
    "i8": ctypes.c_int64,
    "u1": ctypes.c_uint8,
    "u2": ctypes.c_uint16,
    "u4": ctypes.c_uint32,
    "u8": ctypes.c_uint64,
    "f2": ctypes.c_float,  # the type of float16 in a kernel
    "f4": ctypes.c_float,
    "f8": ctypes.c_double,
}


#: The arguments of one launch: a type key for each; the packed arguments; the queue of the array
#: arguments, or ``None`` if there are none or their queues differ; the owners of memory outside the
#: pool, which must outlive the kernel; and the blocks of dparray's arrays. A plain tuple, which is
#: cheapest to create.
Bound = tuple[tuple[str, ...], list[Packed], Queue | None, tuple[Any, ...], tuple[Block, ...]]
Binder = Callable[..., Bound]


def _foreign(array: Any) -> tuple[str, Packed, Queue]:
    cls = type(array)
    # Classes such as PyTorch's have the interface of CUDA for arrays of the host, too.
    if not hasattr(cls, "__sycl_usm_array_interface__") and not cuda_arrays.is_array(array):
        raise TypeError(_unsupported(cls))
    layout = layout_of(array)
    return *shaped(layout), layout.block.queue


def _integer(value: int) -> tuple[str, Packed]:
    if -(2**63) <= value < 2**63:
        return "python i8", pack_scalar(ctypes.c_int64(value))
    if 0 <= value < 2**64:
        return "python u8", pack_scalar(ctypes.c_uint64(value))
    raise TypeError(
        f"the integer {value}, which does not fit into 64 bits; pass a floating-point number: "
        f"float({value})"
    )


def _complex(value: complex) -> Packed:
    part = ctypes.c_float if isinstance(value, np.complex64) else ctypes.c_double
    return pack_scalars((part(value.real), part(value.imag)))


def _local(accessor: Any) -> tuple[str, Packed]:
    return _local_of(accessor._dtype, accessor._shape)


@functools.lru_cache(maxsize=256)
def _local_of(element: type, shape: tuple[int, ...]) -> tuple[str, Packed]:
    dtype = np.dtype(element)
    return str(TypeKey("local", code_of(dtype), len(shape))), pack_local(dtype, shape)


def _constant(constant: Constant) -> tuple[str, Packed]:
    return str(TypeKey("constant", text_of(constant.value))), pack_scalars(())


def is_native(cls: type) -> bool:
    """Return whether arrays of this class are dparray's."""
    return hasattr(cls, "_packed")


def is_array(cls: type) -> bool:
    """Return whether a kernel takes objects of this class as arrays."""
    interfaces = ("__sycl_usm_array_interface__", "__cuda_array_interface__")
    return is_native(cls) or any(hasattr(cls, name) for name in interfaces)


def _scalar_key(cls: type) -> str | None:
    """Return the type key of all values of a scalar class; ``None`` for other classes."""
    if cls is bool:
        return "python b1"
    if issubclass(cls, np.generic):
        dtype = np.dtype(cls)
        key = code_of(dtype)
        return key if key in _SCALAR_TYPES or key in ("c8", "c16") else None
    if issubclass(cls, float):
        return "python f8"
    if issubclass(cls, complex):
        return "python c16"
    return None


def make_binder(classes: Sequence[type]) -> Binder:
    """Make a function that binds arguments of these classes, and returns ``Bound``."""
    names = [f"a{i}" for i in range(len(classes))]
    scope: dict[str, Any] = {
        "packed": packed,
        "foreign": _foreign,
        "integer": _integer,
        "complex_": _complex,
        "local": _local,
        "constant": _constant,
        "number": pack_scalar,
    }
    body: list[str] = []
    keys: list[str] = []
    arguments: list[str] = []
    queues: list[str] = []
    borrowed: list[str] = []
    blocks: list[str] = []
    for i, cls in enumerate(classes):
        scalar = _scalar_key(cls)
        if is_native(cls):
            body.append(f"t{i} = a{i}._packed or packed(a{i})")
            body.append(f"k{i}, p{i} = t{i}.shaped or t{i}.pack_shaped()")
            queues.append(f"a{i}.queue")
            borrowed.append(f"*t{i}.owners")
            blocks.append(f"t{i}.block")
        elif is_array(cls):
            body.append(f"k{i}, p{i}, q{i} = foreign(a{i})")
            queues.append(f"q{i}")
            borrowed.append(f"a{i}")
        elif issubclass(cls, LocalAccessor):
            body.append(f"k{i}, p{i} = local(a{i})")
        elif cls is Constant:
            body.append(f"k{i}, p{i} = constant(a{i})")
        elif scalar is not None and parse(scalar).dtype in ("c8", "c16"):
            body.append(f"p{i} = complex_(a{i})")
        elif scalar is not None:
            code = parse(scalar).dtype
            scope[f"c_{code}"] = _SCALAR_TYPES[code]
            convert = "" if code[0] == "f" else "int"
            body.append(f"p{i} = number(c_{code}({convert}(a{i})))")
        elif issubclass(cls, int):
            body.append(f"k{i}, p{i} = integer(a{i})")
        else:
            raise KernelArgumentError(_unsupported(cls))
        keys.append(f"k{i}" if scalar is None else repr(scalar))
        arguments.append(f"p{i}")
    body.append("queue = " + (queues[0] if queues else "None"))
    for other in queues[1:]:
        body.append(f"other = {other}")
        body.append("if other is not queue and other != queue: queue = None")
    text = "\n    ".join(
        [
            f"def bind({', '.join(names)}):",
            *body,
            f"return ({''.join(k + ', ' for k in keys)}), [{', '.join(arguments)}], queue, "
            f"({''.join(b + ', ' for b in borrowed)}), ({''.join(b + ', ' for b in blocks)})",
        ]
    )
    exec(compile(text, "<dparray binder>", "exec"), scope)
    return scope["bind"]


def _unsupported(cls: type) -> str:
    if cls is str or cls is type(None) or issubclass(cls, tuple | np.dtype | type):
        return (
            f"a {cls.__qualname__}, which only dp.constexpr parameters accept, as in "
            "def kernel(item, x, sizes: dp.constexpr); the kernel is compiled for each value. "
            "Pass numbers that change as separate arguments, or as an array"
        )
    return (
        f"a {cls.__module__}.{cls.__qualname__}; a kernel takes arrays of dparray, anything with "
        "__sycl_usm_array_interface__ (dpnp), or with __cuda_array_interface__ on a GPU (CuPy, "
        "PyTorch), LocalAccessor, and Python or NumPy scalars (bool, integers to 64 bits, float32, "
        "float64, complex64, complex128); dp.asarray(values) makes an array of host data"
    )


def explain_arguments(kernel: str, parameters: Sequence[str], arguments: Sequence[Any]) -> None:
    """Raise the error that names the first invalid argument of a kernel, if there is one."""
    queue = next((value.queue for value in arguments if isinstance(value, ndarray)), None)
    for name, value in zip(parameters, arguments, strict=True):
        what = f"kernel {kernel}: argument {name!r}"
        if isinstance(value, np.ndarray):
            raise HostConversionError(
                f"{what} is a NumPy array, in host memory; copy it to the device first: "
                f"{name} = {copying_call(name, queue)}"
            )
        if isinstance(value, tuple | list) and any(is_array(type(each)) for each in value):
            raise KernelArgumentError(
                f"{what} is a {type(value).__name__} of arrays; pass each array as a separate "
                f"argument, as in def {kernel}(item, a, b), or stack them: dp.stack({name})"
            )
        try:
            make_binder((type(value),))(value)
        except (TypeError, ValueError) as error:
            raise KernelArgumentError(f"{what} is {error}") from None
