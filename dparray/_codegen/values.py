"""Values in kernel source: dtypes, conversions, loads, stores, parameters and names."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dparray._dtypes import NAMES, is_bfloat16
from dparray._graph.node import Node, Scalar
from dparray._graph.ops import PARTED
from dparray._layout import Layout
from dparray._type_keys import TypeKey, code_of

# Kernels are named after their operations, up to this many characters.
LONGEST_NAME = 48

# The dtype, in a structure, of an array whose elements are their own indices: no memory is read.
POSITIONS = "positions"


def is_convertible(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether a kernel can convert values of one dtype to another."""
    return dtype.kind != "c" or wanted.kind in "cb"  # bfloat16 is of kind "V"


def can_store(value: Node | Scalar, dtype: np.dtype[Any]) -> bool:
    """Return whether a kernel can write this value to memory of ``dtype``."""
    return type(value) is Scalar or is_convertible(value.dtype, dtype)  # type: ignore[union-attr]


def dtype_read(layout: Layout) -> str:
    """Return the dtype of an input array, as the structure of a kernel names it."""
    return POSITIONS if layout.block.memory is None else str(layout.dtype.str)


BOOL, HALF = np.dtype(np.bool_).str, np.dtype(np.float16).str

# The dtypes in which kernels compute, with the names of their conversions.
TYPE_NAMES = {np.dtype(name).str: name for name in NAMES if name not in ("bool", "float16")}

# The name of bfloat16 in ml_dtypes, which is optional; to NumPy it is a dtype without a kind.
BFLOAT16 = "<V2"

# The 16-bit dtypes that kernels compute in float32, with the names of the functions that round to
# them.
ROUNDED = {HALF: "half", BFLOAT16: "bfloat16"}

# The conversion functions; for 16-bit floats they round, and the result stays float32.
CONVERSIONS = TYPE_NAMES | ROUNDED

INT64 = np.dtype(np.int64).str


# dpctl does not accept 8- and 16-bit integers as kernel arguments, so they are passed as 32-bit
# ones.
_NARROW = frozenset({BOOL, *(np.dtype(code).str for code in ("i1", "i2", "u1", "u2"))})


_CTYPES: dict[np.dtype[Any], Any] = {
    np.dtype(dtype): ctypes.c_int32
    if dtype in _NARROW
    else np.ctypeslib.as_ctypes_type(np.dtype(dtype))
    for dtype in (BOOL, *TYPE_NAMES)
    if np.dtype(dtype).kind != "c"
} | {np.dtype(HALF): lambda value: ctypes.c_float(float(np.float16(value)))}


_PARTS = {np.dtype(np.complex64): ctypes.c_float, np.dtype(np.complex128): ctypes.c_double}

_PART_NAMES = {
    np.dtype(np.complex64).str: "float32",
    np.dtype(np.complex128).str: "float64",
}


def scalar_arguments(value: Any, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return the kernel arguments for a scalar of a dtype: one, or two for a complex number."""
    if is_bfloat16(dtype):
        return (ctypes.c_float(float(dtype.type(value))),)
    make = _CTYPES.get(dtype)
    if make is not None:
        return (make(value),)
    part = _PARTS[dtype]
    number = complex(value)
    return part(number.real), part(number.imag)


def converted_text(text: str, dtype: str, wanted: str) -> str:
    if dtype == wanted:
        return text
    if wanted == BOOL:
        if dtype in _PART_NAMES:
            return f"(({text}_real != 0) | ({text}_imag != 0))"
        return f"({text} != 0)"
    return f"{CONVERSIONS[wanted]}({text})"


class Parts(NamedTuple):
    """A complex value as the source of its parts; in a template, ``{0}`` is the whole value.

    In kernels, complex values are pairs of floats named ``x_real`` and ``x_imag``, and their memory
    is an array of floats: the vectorizer of Intel's CPU driver crashes on loops over complex
    numbers.
    """

    real: str
    imag: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}(complex({self.real}, {self.imag}))"

    def __format__(self, specification: str) -> str:
        return str(self)


def parts_of(name: str, dtype: str, wanted: str) -> Parts:
    """Return a named value as a complex value of a dtype."""
    part = _PART_NAMES[wanted]
    if dtype not in _PART_NAMES:
        real = converted_text(name, dtype, np.dtype(part).str)
        return Parts(real, f"{part}(0)", TYPE_NAMES[wanted])
    real, imag = f"{name}_real", f"{name}_imag"
    if dtype != wanted:
        real, imag = f"{part}({real})", f"{part}({imag})"
    return Parts(real, imag, TYPE_NAMES[wanted])


def store(array: str, index: str, name: str, dtype: str, wanted: str) -> list[str]:
    """Return the lines that store a named value in an element of an array of dtype ``wanted``."""
    if wanted in ROUNDED:
        return [f"{array}[{index}] = {ROUNDED[wanted]}_bits({name})"]
    if wanted not in _PART_NAMES:
        return [f"{array}[{index}] = {converted_text(name, dtype, wanted)}"]
    value = parts_of(name, dtype, wanted)
    first, second = _part_indices(index)
    return [f"{array}[{first}] = {value.real}", f"{array}[{second}] = {value.imag}"]


def _part_indices(index: str) -> tuple[str, str]:
    return f"uint64(2) * ({index})", f"uint64(2) * ({index}) + uint64(1)"


def array_parameters(arrays: Iterable[tuple[str, ...]]) -> list[tuple[str, str]]:
    """Return name and type key of the parameters for the arrays in memory."""
    return [
        (f"a{number}", array_key(dtype))
        for number, (dtype, *_) in enumerate(arrays)
        if dtype != POSITIONS
    ]


def load(number: int, dtype: str, index: str, array: str = "", test: str = "") -> list[str]:
    """Return the lines that load an element of an array, or of a copy of it named ``array``.

    If the condition ``test`` is given, the value is zero unless it holds.
    """
    array = array or f"a{number}"
    if test:
        kind = _PART_NAMES.get(dtype) or ("float32" if dtype in ROUNDED else TYPE_NAMES[dtype])
        lines = load(number, dtype, index, array)
        return [f"{line} if {test} else {kind}(0)" for line in lines]
    if dtype == POSITIONS:
        return [f"x{number} = int64({index})"]
    if dtype in ROUNDED:
        return [f"x{number} = {ROUNDED[dtype]}_value({array}[{index}])"]
    if dtype in _PART_NAMES:
        first, second = _part_indices(index)
        return [f"x{number}_real = {array}[{first}]", f"x{number}_imag = {array}[{second}]"]
    return [f"x{number} = {array}[{index}]"]


def scalar_parameters(scalars: Sequence[str]) -> list[tuple[str, str]]:
    """Return name and type key of the parameters for the scalars."""
    parameters: list[tuple[str, str]] = []
    for number, dtype in enumerate(scalars):
        if dtype in _NARROW:
            parameters.append((f"p{number}", "i4"))
        elif dtype in _PART_NAMES:
            part = type_key(_PART_NAMES[dtype])
            parameters += [(f"s{number}_real", part), (f"s{number}_imag", part)]
        else:
            parameters.append((f"s{number}", type_key(dtype)))
    return parameters


def scalar_lines(scalars: Sequence[str]) -> list[str]:
    """Return the lines that convert each narrow scalar to its own dtype."""
    return [
        f"    s{number} = "
        + (f"p{number} != 0" if dtype == BOOL else f"{TYPE_NAMES[dtype]}(p{number})")
        for number, dtype in enumerate(scalars)
        if dtype in _NARROW
    ]


def array_key(dtype: str) -> str:
    """Return the type key of an array of a dtype in kernels, contiguous.

    16-bit floats are passed as their bits, complex numbers as their parts.
    """
    dtype = _PART_NAMES.get(dtype, dtype)
    return str(TypeKey("array", "u2" if dtype in ROUNDED else type_key(dtype), 1, "C"))


def element_key(dtype: str) -> str:
    """Return the type key of an element of an array in memory, as :func:`array_key` has it."""
    return array_key(dtype).partition(":")[0]


def type_key(dtype: str) -> str:
    """Return the type key of a value of a dtype as a kernel computes with it."""
    dtype = np.dtype(np.float32).str if dtype in ROUNDED else dtype
    return code_of(np.dtype(dtype))


def kernel_name(steps: Sequence[Any], last: str = "") -> str:
    """Return the kernel name for some steps: as many of its operations as fit."""
    words = ["fused", *(step[0] for step in steps), *([last] if last else [])]
    name = "_".join(words)
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME].rpartition('_')[0]}_etc"


@lru_cache(maxsize=32)
def _words(dtype: str) -> dict[str, str]:
    """Return the dtype names that templates of :class:`dparray._graph.ops.Op` may use."""
    if dtype in ROUNDED:  # computed in float32, and rounded afterwards
        return _words(np.dtype(np.float32).str)
    kind = np.dtype(dtype)
    words = {"T": TYPE_NAMES.get(dtype, ""), "bits": str(8 * kind.itemsize)}
    if kind.kind == "c":
        words["T"], words["C"] = _PART_NAMES[dtype], words["T"]
    if kind.kind in "iu":
        words["U"] = f"uint{words['bits']}"
    if kind.kind in "fc":
        words["most"] = str(math.floor(math.log(np.finfo(kind).max)))
        words["whole"] = f"{words['T']}({float(2 ** np.finfo(kind).nmant)!r})"
    return words


class _Loaded(str):
    """The name of a loaded value; ``{0:array}`` is that of the array it comes from."""

    __slots__ = ()

    def __format__(self, specification: str) -> str:
        return f"a{self[1:]}" if specification == "array" else str(self)


class Values:
    """The names of the values computed so far, in one block of kernel source.

    Args:
        outer: the values available before the block.
    """

    def __init__(self, outer: Values | None = None) -> None:
        self._known: dict[str, str] = dict(outer._known) if outer else {}
        self._names: dict[str, str] = dict(outer._names) if outer else {}

    def name(self, reference: str) -> str:
        """Return the name of the value of a reference (``"a0"``, ``"s0"``, ``"t0"``)."""
        known = self._names.get(reference)
        return known or (f"x{reference[1:]}" if reference[0] == "a" else reference)

    def emit(self, steps: Iterable[tuple[int, Any]], lines: list[str], indent: str) -> None:
        """Append the lines that compute numbered steps, each expression once."""
        for number, (_, template, references, signature, result) in steps:
            own = f"t{number}"
            converted: list[Any] = []
            for position, ((name, dtype), wanted) in enumerate(
                zip(references, signature, strict=True)
            ):
                if wanted in _PART_NAMES:
                    converted.append(parts_of(self.name(name), dtype, wanted))
                    continue
                text = converted_text(self.name(name), dtype, wanted)
                if dtype != wanted:
                    text = self._named(text, f"c{number}_{position}", lines, indent)
                elif name[0] == "a":
                    text = _Loaded(text)
                converted.append(text)
            words = {"t": f"{own}_", **_words(signature[0])}
            *parts, text = (line.format(*converted, **words) for line in template.split("\n"))
            lines += [indent + part for part in parts]
            if result in _PART_NAMES:
                self._names[own] = self._named_parts(text, own, _PART_NAMES[result], lines, indent)
                continue
            if result != BOOL:
                text = f"{CONVERSIONS[result]}({text})"
            self._names[own] = self._named(text, own, lines, indent)

    def _named(self, text: str, name: str, lines: list[str], indent: str) -> str:
        if text not in self._known:
            self._known[text] = name
            lines.append(f"{indent}{name} = {text}")
        return self._known[text]

    def _named_parts(self, text: str, name: str, part: str, lines: list[str], indent: str) -> str:
        """Name a complex value: the source of its parts, or of a call."""
        if text not in self._known:
            self._known[text] = name
            real, _, imag = text.partition(PARTED)
            if not imag:
                lines.append(f"{indent}{name}_value = {text}")
                real, imag = f"{name}_value.real", f"{name}_value.imag"
            lines.append(f"{indent}{name}_real = {part}({real})")
            lines.append(f"{indent}{name}_imag = {part}({imag})")
        return self._known[text]


def dtype_of(structure: Any, name: str) -> str:
    number = int(name[1:])
    if name[0] == "t":
        return str(structure.steps[number][4])
    if name[0] != "a":
        return str(structure.scalars[number])
    dtype = structure.arrays[number][0]
    return INT64 if dtype == POSITIONS else str(dtype)
