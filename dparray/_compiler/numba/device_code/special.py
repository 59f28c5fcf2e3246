"""The public special functions in kernels: the device function for the operands' precision.

Loaded with the compiler; importing it registers the implementations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.np.numpy_support import as_dtype

from dparray._compiler.numba.registration import device_overload
from dparray._language.special import PUBLIC, SpecialFunction, precision


def _implementation(meaning: SpecialFunction, *operands: Any) -> Callable[..., Any]:
    for operand in operands:
        if not isinstance(operand, types.Float | types.Integer | types.Boolean):
            raise TypingError(
                f"dp.special.{meaning.name}: takes real numbers in a kernel; got {operand}"
            )
    kind = precision([as_dtype(types.unliteral(operand)) for operand in operands])
    function = meaning.of(kind)
    number = types.float32 if kind is np.float32 else types.float64
    by_arity: dict[int, Callable[..., Any]] = {
        1: lambda a: function(number(a)),
        2: lambda a, b: function(number(a), number(b)),
        3: lambda a, b, c: function(number(a), number(b), number(c)),
    }
    return by_arity[len(operands)]


def _typed(meaning: SpecialFunction) -> Callable[..., Any]:
    by_arity: dict[int, Callable[..., Any]] = {
        1: lambda a: _implementation(meaning, a),
        2: lambda a, b: _implementation(meaning, a, b),
        3: lambda a, b, c: _implementation(meaning, a, b, c),
    }
    return by_arity[meaning.arity]


def register_new() -> bool:
    """Register public functions added since the last call; return whether there were any."""
    new = [function for function in PUBLIC if function not in _known]
    for function in new:
        device_overload(function)(_typed(PUBLIC[function]))
    _known.update(new)
    return bool(new)


_known: set[Callable[..., Any]] = set()
register_new()
