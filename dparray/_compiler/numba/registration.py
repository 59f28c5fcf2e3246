"""Register device code with Numba: types of calls, implementations in Python, instructions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.core.typing.templates import AbstractTemplate, CallableTemplate
from numba.extending import intrinsic, overload

from dparray._compiler.numba.target import TARGET, typing_registry

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


def typed(function: Any, *, prefer_literal: bool = False) -> Callable[..., Any]:
    """Register a function that has the parameters of ``function`` and returns a call's type."""
    members = {"key": function, "prefer_literal": prefer_literal}

    def register(typer: Callable[..., Any]) -> Any:
        template = type(
            typer.__name__, (CallableTemplate,), {**members, "generic": lambda self: typer}
        )
        return typing_registry.register_global(function)(template)

    return register


def typed_by_arguments(function: Any, *, prefer_literal: bool = False) -> Callable[..., Any]:
    """Register a function of the positional and the named arguments' types, which returns the
    signature of a call, or ``None``.
    """
    members = {"key": function, "prefer_literal": prefer_literal}

    def register(signature_of: Callable[[Any, Any], Any]) -> Any:
        def generic(self: Any, args: Any, kws: Any) -> Any:
            return signature_of(args, kws)

        template = type(signature_of.__name__, (AbstractTemplate,), {**members, "generic": generic})
        return typing_registry.register_global(function)(template)

    return register


def bound_method(owner: Any, label: str, name: str, typer: Callable[..., Any]) -> Any:
    """Return the type of a method of a value, whose calls have the types that ``typer`` returns."""
    members = {"key": (type(owner), name), "recvr": owner, "generic": lambda self: typer}
    return types.BoundFunction(type(f"{label}.{name}", (CallableTemplate,), members), owner)
