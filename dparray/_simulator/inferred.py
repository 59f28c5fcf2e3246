"""The types that the compiler infers for a simulated kernel and the functions that it calls."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import FunctionType

from dparray._compiler.numba.backend import backend, lock
from dparray._language.inference import Inferred
from dparray._simulator.transform import instrumented


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


def types_of(function: FunctionType, keys: Sequence[str]) -> Types:
    """Return the types of a kernel; none if it does not compile: variables then have Python's.

    Args:
        function: the kernel.
        keys: the type keys of its parameters.
    """
    for with_operands in (True, False):

        def instrument(original: FunctionType, with_operands: bool = with_operands) -> FunctionType:
            made = instrumented(original, with_operands=with_operands)
            if made is None:
                return original
            return made.function

        # It may not compile because an operand must be a constant, or not for any device.
        with contextlib.suppress(Exception), lock:
            found = backend().infer(function, list(keys), instrument)
            return Types(found, with_operands=with_operands)
    return Types()
