"""The types of values in a program: numbers, vectors of numbers, and pointers to them.

``dparray._language`` has the rules by which two of them meet.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np


class Type(NamedTuple):
    """A number, or a vector of numbers.

    Attributes:
        kind: ``"b"`` for Booleans, ``"i"`` and ``"u"`` for integers, ``"f"`` for floats.
        bits: the width of a number; 1 for Booleans.
        lanes: the number of elements of a vector; 1 for a number.
    """

    kind: str
    bits: int
    lanes: int = 1

    def __str__(self) -> str:
        name = "bool" if self.kind == "b" else f"{self.kind}{self.bits}"
        return name if self.lanes == 1 else f"{name}x{self.lanes}"

    @property
    def scalar(self) -> Type:
        """The type of an element of a vector."""
        return self._replace(lanes=1)

    @property
    def flag(self) -> Type:
        """The type of a comparison of two values of this type."""
        return Type("b", 1, self.lanes)

    @property
    def name(self) -> str:
        """NumPy's name of a number."""
        word = {"b": "bool", "i": "int", "u": "uint", "f": "float"}[self.kind]
        return word if self.kind == "b" else f"{word}{self.bits}"

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of a number, or of the elements of a vector."""
        return np.dtype(self.name)

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def size(self) -> int:
        """The bytes of a number in memory."""
        return max(self.bits, 8) // 8


class Pointer(NamedTuple):
    """The address of elements in a memory space."""

    element: Type
    space: int

    def __str__(self) -> str:
        return f"*{self.element}.{SPACES[self.space]}"


# The memory spaces, numbered as in SYCL and OpenCL.
PRIVATE, GLOBAL, LOCAL = 0, 1, 3
SPACES = {PRIVATE: "private", GLOBAL: "global", LOCAL: "local"}

BOOL = Type("b", 1)
I8, I16, I32, I64 = (Type("i", bits) for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (Type("u", bits) for bits in (8, 16, 32, 64))
F16, F32, F64 = (Type("f", bits) for bits in (16, 32, 64))
NUMBERS = (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64)
#: The types of numbers by NumPy's names.
BY_NAME = {number.name: number for number in NUMBERS}


@lru_cache(maxsize=64)
def of_dtype(dtype: Any) -> Type:
    """Return the type of a NumPy dtype.

    Raises:
        KeyError: no number of the language has this dtype.
    """
    return BY_NAME[np.dtype(dtype).name]
