"""The public special functions in kernels: the device function for the operands' precision.

Loaded with the compiler; importing it registers the implementations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from dparray._compiler.special import PUBLIC, SpecialFunction, precision
from dparray._compiler.target import TARGET


def _implementation(meaning: SpecialFunction, operands: tuple[Any, ...]) -> Callable[..., Any]:
    for operand in operands:
        if not isinstance(operand, types.Float | types.Integer | types.Boolean):
            raise TypingError(
                f"dp.special.{meaning.name}: takes real numbers in a kernel; got {operand}"
            )
    kind = precision([as_dtype(types.unliteral(operand)) for operand in operands])
    function = meaning.of(kind)
    number = types.float32 if kind is np.float32 else types.float64

    def of_one(a: Any) -> Any:
        return function(number(a))

    def of_two(a: Any, b: Any) -> Any:
        return function(number(a), number(b))

    def of_three(a: Any, b: Any, c: Any) -> Any:
        return function(number(a), number(b), number(c))

    return (of_one, of_two, of_three)[len(operands) - 1]


def _typed(meaning: SpecialFunction) -> Callable[..., Any]:
    def of_one(a: Any) -> Any:
        return _implementation(meaning, (a,))

    def of_two(a: Any, b: Any) -> Any:
        return _implementation(meaning, (a, b))

    def of_three(a: Any, b: Any, c: Any) -> Any:
        return _implementation(meaning, (a, b, c))

    return (of_one, of_two, of_three)[meaning.arity - 1]


def register_new() -> bool:
    """Register public functions added since the last call; return whether there were any."""
    new = [function for function in PUBLIC if function not in _known]
    for function in new:
        overload(function, target=TARGET)(_typed(PUBLIC[function]))
    _known.update(new)
    return bool(new)


_known: set[Callable[..., Any]] = set()
register_new()
