"""The options that NumPy's ufuncs take: ``out``, ``where`` and ``dtype``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array import (
    assign,
    astype_array,
    check_array,
    check_out,
    choose_elements,
    ndarray,
)
from dparray._placement import common_placement
from dparray.exceptions import DTypeError, ShapeError


def apply_with_options(
    function: str,
    parameters: tuple[str, ...],
    compute: Callable[..., ndarray],
    operands: tuple[Any, ...],
    out: Any,
    where: Any,
    dtype: Any,
) -> ndarray:
    """An elementwise function with the options of NumPy's ufuncs.

    Args:
        function: the public function.
        parameters: the names of its operands.
        compute: makes the result of the operands.
        operands: arrays and scalars.
        out: an array for the result, or a tuple of it, or ``None``.
        where: a mask, or ``True``.
        dtype: the dtype that arrays are converted to first, or ``None``.
    """
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if dtype is not None:
        operands = tuple(_in_dtype(function, value, dtype) for value in operands)
    placed = [
        (name, value)
        for name, value in zip(parameters, operands, strict=True)
        if isinstance(value, ndarray)
    ]
    if where is not True:
        placed.append(("where", check_array(function, "where", where)))
        if placed[-1][1].dtype.kind != "b":
            raise DTypeError(
                f"{function}: where of dtype {placed[-1][1].dtype} is no mask; compare it with "
                f"something"
            )
    check_out(function, placed, out)
    common_placement(function, placed)
    result = compute(*operands)
    if out is not None and not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise DTypeError(
            f"{function}: the result of dtype {result.dtype} does not fit out of dtype {out.dtype}"
        )
    if where is not True:
        mask = placed[-1][1]
        if out is None:
            return choose_elements(function, mask, result, 0)
        result = choose_elements(function, mask, astype_array(result, out.dtype, False), out)
    if out is None:
        return result
    if _layout.broadcast_shapes(function, [result.shape, out.shape]) != out.shape:
        raise ShapeError(
            f"{function}: the result of shape {result.shape} does not fit out of {out.shape}"
        )
    assign(out, result, function)
    return out


def with_options(compute: Callable[..., ndarray]) -> Callable[..., ndarray]:
    """Give a function of one or two arrays the options of NumPy's ufuncs."""
    name = compute.__name__
    function: Callable[..., ndarray]
    if compute.__code__.co_argcount == 1:

        def unary(
            x: Any, /, out: ndarray | None = None, *, where: Any = True, dtype: Any = None
        ) -> ndarray:
            if out is None and where is True and dtype is None:
                return compute(x)
            return apply_with_options(name, ("x",), compute, (x,), out, where, dtype)

        function = unary
    else:

        def binary(
            x1: Any, x2: Any, /, out: ndarray | None = None, *, where: Any = True, dtype: Any = None
        ) -> ndarray:
            if out is None and where is True and dtype is None:
                return compute(x1, x2)
            return apply_with_options(name, ("x1", "x2"), compute, (x1, x2), out, where, dtype)

        function = binary
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = compute.__doc__, compute.__module__
    return function


def _in_dtype(function: str, value: Any, dtype: Any) -> Any:
    """An operand in the dtype that an operation is asked to compute in."""
    wanted = _dtypes.as_dtype(dtype)
    if not isinstance(value, ndarray):
        return value
    if not np.can_cast(value.dtype, wanted, "same_kind"):
        raise DTypeError(
            f"{function}: {value.dtype} does not become {wanted} by itself; convert with "
            f"`x.astype('{wanted}')`"
        )
    return astype_array(value, wanted, copy=False)
