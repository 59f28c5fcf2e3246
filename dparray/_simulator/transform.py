"""Rewrite a kernel's code so that its literals have the same types as on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from dparray._simulator.numbers import literal


class View:
    """A module or an enumeration inside a kernel, with counterparts as members."""

    def __init__(self, owner: Any, stand_in: Callable[[Any], Any]) -> None:
        self._owner = owner
        self._stand_in = stand_in

    def __getattr__(self, name: str) -> Any:
        value = self._stand_in(getattr(self._owner, name))
        setattr(self, name, value)
        return value


def nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def typed_literals(code: CodeType) -> CodeType:
    """Return ``code`` whose literals have the types that the compiler gives them."""
    constants: list[Any] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constants.append(typed_literals(constant))
        elif type(constant) in (int, float, complex, tuple):
            constants.append(literal(constant))
        else:
            constants.append(constant)
    return code.replace(co_consts=tuple(constants))
