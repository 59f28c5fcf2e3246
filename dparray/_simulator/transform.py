"""The names and the code of kernels that run as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any


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
