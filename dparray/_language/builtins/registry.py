"""The table from Python's objects to the handlers that translate their calls.

A handler takes the front end, the node of the call, and the arguments by Python's rules of calls.
It returns a value (:mod:`dparray._language.values`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dparray._language.errors import Refusal
from dparray._language.values import Constant, Tuple

Handler = Callable[..., Any]

HANDLERS: dict[Any, Handler] = {}


class Native:
    """A function that a handler passes to a function of the prelude."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler


def handles(*functions: Any) -> Callable[[Handler], Handler]:
    """Register the handler of functions."""

    def register(handler: Handler) -> Handler:
        for function in functions:
            HANDLERS[function] = handler
        return handler

    return register


def known(value: Any, what: str) -> Any:
    """Return the value of an argument that must be known at compile time.

    Raises:
        Refusal: it is not.
    """
    if isinstance(value, Tuple):
        return tuple(known(each, what) for each in value.items)
    if isinstance(value, Constant):
        return value.value
    raise Refusal(f"{what} must be a constant")
