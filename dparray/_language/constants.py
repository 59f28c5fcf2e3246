"""Convert constants that a kernel refers to into plain numbers for the compiler.

An instance of a subclass of ``int`` or ``float`` becomes its number, regardless of how it prints,
and so does a member of an ``IntEnum`` or ``IntFlag``.
"""

from __future__ import annotations

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
    if kind.__module__ == "numba.core.types.scalars":
        # Programs for numba-dpex name types of elements as Numba does: float32.
        return np.dtype(str(value)).type
    return value


def is_too_large(operator: str, left: Any, right: Any) -> bool:
    """Return whether a power or shift of integers of the source certainly exceeds 64 bits."""
    if operator not in ("**", "<<") or type(left) is not int or type(right) is not int:
        return False
    if operator == "<<":
        return left != 0 and right > 64
    return abs(left) > 1 and (right > 64 or (right > 0 and not -(2**63) <= left**right < 2**64))
