"""Convert the constants of a function for Numba. Imports no Numba."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from dparray._language.constants import plain


def prepared_for_numba(function: Any) -> Any:
    """Return a function whose defaults are plain numbers, and whose names Numba takes."""
    defaults = function.__defaults__ or ()
    # Numba makes a class of this name, and imports the module.
    name, module = function.__name__.replace("\0", " "), function.__module__ or "builtins"
    given = function.__name__, function.__module__
    if (name, module) == given and all(plain(each) is each for each in defaults):
        return function
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        name,
        tuple(map(plain, defaults)) or None,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__, copy.__module__ = function.__qualname__, module
    return copy
