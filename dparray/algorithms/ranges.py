"""Helpers of the host functions: kernels by factory, ranges by device, checks of operands."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import empty_on
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._driver.interface import Queue
from dparray._kernel.decorators import device_func, kernel
from dparray._kernel.function import KernelFunction
from dparray._layout import check_shape
from dparray._placement import Placement, common_placement
from dparray.algorithms import launches
from dparray.exceptions import ArgumentError, DTypeError, HostConversionError, ShapeError
from dparray.kernel_api import NdRange
from dparray.kernels.combine import OPERATIONS, Operation

# A work-item processes at least this many elements, and a device gets this many work-items per
# compute unit, so that its threads share the work evenly.
_SMALLEST_CHUNK = 2048
_ITEMS_PER_UNIT = 32
_GPU_LOCAL_SIZE = 32
#: The integers as which elements of each size are copied, so that dtypes share kernels.
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def kernel_of(factory: Callable[..., Callable[..., None]], *key: Any) -> KernelFunction:
    """Return the kernel that ``factory(*key)`` makes, cached by key."""
    return _kernel_of(factory, key)


@functools.cache
def _kernel_of(factory: Callable[..., Callable[..., None]], key: tuple[Any, ...]) -> KernelFunction:
    made: KernelFunction = kernel(factory(*key))
    return made


def forget_kernels() -> None:
    """Drop the kernels that were made, as in a new process."""
    _kernel_of.cache_clear()
    launches.forget()


def operation(function: str, op: str) -> Operation:
    """Return the operation named ``op``, with the device functions that kernels call."""
    if not isinstance(op, str) or op not in OPERATIONS:
        raise ValueError(f"{function}: op must be one of {', '.join(OPERATIONS)}; got {op!r}")
    return _device_operation(str(op))


@functools.cache
def _device_operation(op: str) -> Operation:
    plain = OPERATIONS[op]
    return Operation(op, device_func(plain.combine))


def chunks(queue: Queue, size: int, smallest: int = _SMALLEST_CHUNK) -> tuple[NdRange, int, int]:
    """Return a range with one chunk per work-item, the number of chunks, and their size."""
    traits = traits_of(queue)
    items = max(1, min(-(-size // smallest), _ITEMS_PER_UNIT * traits.units))
    chunk = -(-size // items)
    chunk = -(-chunk // 16) * 16
    count = -(-size // chunk)
    local = 1 if traits.shares_memory else _GPU_LOCAL_SIZE
    return NdRange(-(-count // local) * local, local), count, chunk


def placement_of(function: str, operands: Sequence[tuple[str, Any]]) -> Placement:
    """Return the common placement of the operands, which must all be arrays."""
    for name, operand in operands:
        if not isinstance(operand, ndarray):
            raise HostConversionError(
                f"{function}: {name} must be a dparray array; got {type(operand).__name__}. Use "
                f"dp.asarray({name}) first"
            )
    return common_placement(function, operands)


def check_1d(function: str, name: str, x: ndarray) -> None:
    """Raise unless an array has one dimension."""
    if x.ndim != 1:
        raise ShapeError(
            f"{function}: {name} must have 1 dimension, not shape {x.shape}. "
            f"Use dp.reshape({name}, -1)"
        )


def check_kind(function: str, name: str, x: ndarray, kinds: str, what: str) -> None:
    """Raise unless the kind of a dtype is one of ``kinds``; ``what`` describes them."""
    if x.dtype.kind not in kinds:
        raise DTypeError(f"{function}: {name} must have {what} dtype, not {x.dtype}")


def whole_number(function: str, name: str, value: Any, lowest: int, highest: int) -> int:
    """Return an integer argument as an ``int`` after checking its bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, ndarray) or not lowest <= number <= highest:
        raise ArgumentError(
            f"{function}: {name} must be an integer from {lowest} to {highest}; got {value!r}"
        )
    return number


def real_number(function: str, name: str, value: Any) -> float:
    """Return a Python or NumPy number as a ``float``; raise for arrays."""
    if not isinstance(value, int | float | np.integer | np.floating):
        read = f"; read it first: {name}.item()" if isinstance(value, ndarray) else ""
        raise ArgumentError(
            f"{function}: {name} must be a number; got {type(value).__name__} {value!r}{read}"
        )
    return float(value)


def check_width(function: str, name: str, x: ndarray) -> None:
    """Raise for float16 operands."""
    if x.dtype == np.float16:
        raise DTypeError(
            f"{function}: {name} has dtype float16, which kernels do not support; convert it: "
            f"{name}.astype('float32')"
        )


def new(shape: int | tuple[int, ...], dtype: Any, where: Placement) -> ndarray:
    """Return an uninitialized array with a placement."""
    return empty_on(where, check_shape(shape), np.dtype(dtype))


def accumulator(op: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return NumPy's accumulator dtype: 64 bits for sums and products of integers."""
    return _dtypes.accumulator(dtype) if op in ("add", "multiply") else dtype


def filled(size: int, value: Any, where: Placement) -> ndarray:
    """Return a 1-D array filled with ``value``, a NumPy scalar."""
    result = empty_on(where, (size,), value.dtype)
    assign(result, value)
    return result
