"""Register device code with Numba: implementations in Python, and instructions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from numba.extending import intrinsic, overload

from dparray._compiler.target import TARGET

#: Registers a function that returns the implementation for the types of arguments. It is not
#: strict, so that an implementation may be a lambda, which has no annotations.
device_overload = functools.partial(overload, target=TARGET, strict=False)


def implement(function: Any, implementation: Callable[..., Any], **options: Any) -> None:
    """Register one implementation of a function, for all types of arguments."""
    device_overload(function, **options)(lambda *arguments, **named: implementation)


def instructions(signature_of: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Register a function of device code by the function that writes its instructions.

    Args:
        signature_of: returns Numba's signature for the types of the arguments.
        options: those of Numba's ``intrinsic``.
    """

    def register(write: Callable[..., Any]) -> Any:
        def typed(typing_context: Any, *arguments: Any) -> Any:
            return signature_of(*arguments), write

        context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [context, *inspect.signature(signature_of).parameters.values()]
        typed.__name__ = write.__name__
        typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return intrinsic(target=TARGET, **options)(typed)

    return register
