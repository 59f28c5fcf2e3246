"""Device functions: Python functions that kernels call. This module only stores them."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from dparray._language.references import Reference, with_references
from dparray._language.source import remember


class DeviceFunction:
    """A Python function that kernels and other device functions may call.

    It is compiled into each kernel that calls it. On the host, a call runs the Python function.

    Attributes:
        py_func: the Python function.
        options: the options of the decorator.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.py_func = function
        remember(function)
        self.options = dict(options)
        self._made_by = type(self), function, options
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__

    def frozen(self) -> tuple[DeviceFunction, tuple[Reference, ...]]:
        """Return the function with the current values that it and its callees refer to, and these
        values.

        Later assignments to a global or captured name do not affect the copy.
        """
        found: list[Reference] = []
        copy = self._frozen(found, {})
        return copy, tuple(found)

    def _frozen(
        self, found: list[Reference], made: dict[DeviceFunction, DeviceFunction]
    ) -> DeviceFunction:
        if self not in made:
            copy = made[self] = DeviceFunction(self.py_func, self.options)
            assert isinstance(self.py_func, FunctionType)
            copy.py_func = with_references(
                self.py_func,
                found,
                lambda value: (
                    value._frozen(found, made) if isinstance(value, DeviceFunction) else value
                ),
            )
        return made[self]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.__qualname__  # Pickled by name, like functions.

    def __repr__(self) -> str:
        return f"<dparray device function {self.__qualname__}>"


def may_loop(function: Callable[..., Any]) -> bool:
    """Return whether a function may loop: it jumps backward, or calls a function, which may loop.

    Work-items of a function without loops end soon.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return True
    jumps = {*dis.hasjrel, *dis.hasjabs}
    for each in dis.get_instructions(code):
        if each.opcode in jumps and each.argval <= each.offset:
            return True
    captured = inspect.getclosurevars(function)
    values = (*captured.globals.values(), *captured.nonlocals.values())
    return any(isinstance(value, DeviceFunction | FunctionType) for value in values)
