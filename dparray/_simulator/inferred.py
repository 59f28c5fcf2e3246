"""The types that the compiler infers for a simulated kernel and the functions that it calls."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from dparray._compiler.numba.backend import backend, lock
from dparray._language.inference import Inferred
from dparray._simulator.transform import instrumented
from dparray._type_keys import TypeKey, code_of, text_of
from dparray.kernel_api.constants import constant_parameters


class Types:
    """The inferred types of functions, for each combination of argument types.

    Attributes:
        with_operands: whether operands that may be Booleans are among the sites.
    """

    def __init__(
        self,
        found: Mapping[FunctionType, Sequence[Inferred]] | None = None,
        *,
        with_operands: bool = False,
    ) -> None:
        self._found = found or {}
        self.with_operands = with_operands

    def of(self, function: FunctionType) -> Sequence[Inferred]:
        """Return the types of a function; none if the compiler did not reach it."""
        return self._found.get(function, ())


def types_of(function: FunctionType, item: str, arguments: Sequence[Any]) -> Types:
    """Return the types of a kernel; none if it does not compile: variables then have Python's.

    Args:
        function: the kernel.
        item: the type key of its item.
        arguments: those after the item, as they are given to ``dp.simulate``.
    """
    names = list(function.__code__.co_varnames[1 : function.__code__.co_argcount])
    constants = constant_parameters(function)
    try:
        keys = [
            _type_key(value, name in constants)
            for name, value in zip(names, arguments, strict=True)
        ]
    except (ValueError, TypeError, AttributeError):  # errors that the simulation reports itself
        return Types()
    for with_operands in (True, False):

        def instrument(original: FunctionType, with_operands: bool = with_operands) -> FunctionType:
            made = instrumented(original, with_operands=with_operands)
            if made is None:
                return original
            return made.function

        # It may not compile because an operand must be a constant, or not for any device.
        with contextlib.suppress(Exception), lock:
            found = backend().infer(function, [item, *keys], instrument)
            return Types(found, with_operands=with_operands)
    return Types()


def _type_key(value: Any, is_constant: bool) -> str:
    if is_constant:
        return str(TypeKey("constant", text_of(value)))
    if type(value).__name__ == "LocalAccessor":
        shape = getattr(value, "shape", None)
        shape = value._shape if shape is None else shape
        dtype = np.dtype(getattr(value, "dtype", None) or value._dtype)
        return str(TypeKey("local", code_of(dtype), len(shape)))
    if hasattr(value, "shape") and hasattr(value, "ndim") and not isinstance(value, np.generic):
        return str(TypeKey("array", code_of(np.dtype(value.dtype)), value.ndim, "A"))
    if isinstance(value, bool | np.bool_):
        return "b1"
    if isinstance(value, np.generic):
        return code_of(value.dtype)
    if isinstance(value, int):
        return "i8" if -(2**63) <= value < 2**63 else "u8"
    return code_of(np.asarray(value).dtype)
