"""Type keys: short texts that tell the compiler all it needs about a kernel's parameters.

``"f4:2C"`` is a two-dimensional C-contiguous float32 array, ``"local f4:1"`` local memory.
``"pointer f4"`` and ``"local pointer f4"`` are memory without shape, ``"i8"`` a scalar,
``"python i8"`` a Python number,
``"item:1"`` and ``"nditem:2"`` the work-item, ``"constant:5"`` a value that is compiled in. Type
keys are part of the keys of kernels, in memory and on disk, so they are passed as text;
:class:`TypeKey` formats and parses them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

#: The signature of a kernel: the type key of each parameter.
Signature = tuple[str, ...]


# The kinds of memory, with their shape and without.
_POINTERS = {"array": "pointer", "local": "local pointer"}


class TypeKey(NamedTuple):
    """The parts of a type key.

    Attributes:
        kind: ``"array"``, ``"local"``, ``"pointer"`` or ``"local pointer"`` (their counterparts in
            generated kernels), ``"scalar"``, ``"python"`` (a Python number), ``"item"``,
            ``"nditem"`` or ``"constant"``.
        dtype: kind and itemsize of the elements, such as ``"f4"``; empty for a work-item; the value
            of a constant as text.
        ndim: the number of dimensions; 0 for a scalar.
        order: ``"C"``, ``"F"`` or ``"A"`` for an array: the index arithmetic that it allows.
            ``"R"`` is ``"A"`` for a read-only array, whose elements share memory. ``"+"`` marks the
            item of a range that is launched in pieces.
    """

    kind: str
    dtype: str = ""
    ndim: int = 0
    order: str = ""

    def __str__(self) -> str:
        if self.kind == "array":
            return f"{self.dtype}:{self.ndim}{self.order}"
        if self.kind == "local":
            return f"local {self.dtype}:{self.ndim}"
        if self.kind == "python" or self.kind in _POINTERS.values():
            return f"{self.kind} {self.dtype}"
        if self.kind == "constant":
            return f"constant:{self.dtype}"
        return self.dtype if self.kind == "scalar" else f"{self.kind}:{self.ndim}{self.order}"

    @property
    def is_item(self) -> bool:
        """Whether the key is that of a work-item."""
        return self.kind in ("item", "nditem")

    @property
    def is_scalar(self) -> bool:
        """Whether the key is that of a number."""
        return self.kind in ("scalar", "python")

    @property
    def as_strong(self) -> TypeKey:
        """The key of a number with a type of its own; otherwise the key itself."""
        return self._replace(kind="scalar") if self.kind == "python" else self

    @property
    def as_pointer(self) -> TypeKey:
        """The key without a shape for memory; otherwise the key itself."""
        kind = _POINTERS.get(self.kind)
        return self if kind is None else TypeKey(kind, self.dtype)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of the elements, or of the scalar."""
        return np.dtype(self.dtype)

    @property
    def label(self) -> str:
        """A readable form: ``float32[2-D, C]``, ``local float32[1-D]``, ``int64``, ``Item(1)``."""
        if self.is_item:
            return f"{'Item' if self.kind == 'item' else 'NdItem'}({self.ndim})"
        if self.kind == "constant":
            return f"constant {_shown(value_of(self.dtype))}"
        if self.kind == "python":
            return type(self.numpy_dtype.type(0).item()).__name__
        name = self.numpy_dtype.name
        if self.kind == "scalar":
            return name
        if self.kind in _POINTERS.values():
            return f"{self.kind.replace('pointer', name)}*"
        if self.kind == "local":
            return f"local {name}[{self.ndim}-D]"
        order = "A, read-only" if self.order == "R" else self.order
        return f"{name}[{self.ndim}-D, {order}]"


@lru_cache(maxsize=1024)
def parse(key: str) -> TypeKey:
    """Parse a type key."""
    kind, _, rest = key.partition(":")
    if kind in ("item", "nditem"):
        return TypeKey(kind, "", int(rest.removesuffix("+")), "+" if rest.endswith("+") else "")
    if not rest and " " in kind:
        pointer, _, dtype = kind.rpartition(" ")
        return TypeKey(pointer, dtype)
    if not rest:
        return TypeKey("scalar", kind)
    if kind == "constant":
        return TypeKey(kind, rest)
    if kind.startswith("local "):
        return TypeKey("local", kind.removeprefix("local "), int(rest))
    return TypeKey("array", kind, int(rest[:-1]), rest[-1])


def labels_of(keys: Iterable[str]) -> Signature:
    """Return type keys in readable form."""
    return tuple([parse(key).label for key in keys])


@lru_cache(maxsize=64)
def code_of(dtype: np.dtype[Any]) -> str:
    """Return kind and itemsize of a dtype, as type keys have it."""
    return f"{dtype.kind}{dtype.itemsize}"


# --- constants ------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """Return a constant as a text that is unique to it.

    Raises:
        TypeError: the value cannot be such a constant.
    """
    return json.dumps(_encoded(value))


def value_of(text: str) -> Any:
    """Return the constant of a text from :func:`text_of`."""
    return _decoded(json.loads(text))


def _encoded(value: Any) -> Any:
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise TypeError(f"the integer {value}, which does not fit into 64 bits")
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, tuple):
        return [_encoded(part) for part in value]
    is_dtype = isinstance(value, np.dtype) or (
        isinstance(value, type) and (issubclass(value, np.generic) or value in (bool, int, float))
    )
    if is_dtype and np.dtype(value).kind in "biufc":
        return {"dtype": np.dtype(value).str}
    raise TypeError(
        f"a {type(value).__name__}; a dp.constexpr parameter takes Booleans, integers, "
        "floats, strings, None, dtypes and tuples of these"
    )


def _shown(value: Any) -> str:
    return np.dtype(value).name if isinstance(value, type) else repr(value)


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_decoded, value))
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return float.fromhex(text) if kind == "float" else np.dtype(text).type
    return value
