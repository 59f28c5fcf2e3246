"""Convert constants that a kernel refers to into plain numbers for the compiler.

An instance of a subclass of ``int`` or ``float`` becomes its number, regardless of how it prints,
and so does a member of an ``IntEnum`` or ``IntFlag``.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return ``value`` with plain numbers instead of subclasses of numbers, also inside tuples."""
    kind = type(value)
    if kind in (bool, int, float, complex) or value is None:
        return value
    bases: tuple[Any, ...] = (int, float, complex)
    for base in bases:  # with the methods of the base class, which cannot be overridden
        if isinstance(value, base) and not isinstance(value, np.generic):
            return base.__pos__(value)
    if isinstance(value, np.generic):
        is_plain = kind.__module__ == "numpy" or value.dtype.kind not in "biufc"
        return value if is_plain else np.frombuffer(value.tobytes(), value.dtype)[0]
    if isinstance(value, tuple):
        parts = tuple(map(plain, tuple.__iter__(value)))
        if all(a is b for a, b in zip(parts, tuple.__iter__(value), strict=True)):
            return value
        return kind(*parts) if hasattr(kind, "_fields") else parts
    return value


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
