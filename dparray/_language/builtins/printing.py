"""``print`` and ``printf``."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dparray._ir.types import F64, I32, I64, U64
from dparray._language.builtins.registry import handles
from dparray._language.errors import Refusal
from dparray._language.values import NONE, Constant, Number, Text, described, is_number
from dparray.kernel_api import printf


@handles(print)
def _print(front: Any, node: Any, *values: Any) -> Constant:
    parts: list[Any] = []
    for value in values:
        parts += [Constant(" ")] if parts else []
        parts += value.parts if isinstance(value, Text) else [value]
    text, operands = "", []
    for part in parts:
        if isinstance(part, Constant) and isinstance(part.value, str):
            text += part.value.replace("%", "%%")
            continue
        if not is_number(part) or front.type_of(part).lanes > 1:
            raise Refusal(
                f"print takes numbers and strings in a kernel; got {described(part)}", node
            )
        kind = front.type_of(part)
        if kind.kind == "b":
            text += "%s"
            operands.append(front.number(part).op)
        elif kind.is_integer:
            text += "%d" if kind.kind == "i" else "%u"
            operands.append(front.to(part, I64 if kind.kind == "i" else U64).op)
        else:
            text += "%.10g"
            operands.append(front.to(part, F64).op)
    front.op("print", None, *operands, attribute=text + "\n")
    return NONE


class _Part(NamedTuple):
    """A conversion of a format string, with the text before it."""

    before: str
    flags: str
    letter: str


_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*[0-9]*(?:[.][0-9]+)?)(?:hh|h|ll|l)?(?P<letter>.?)", re.S
)
_OF_INTEGERS = "diuxXoc"
_OF_FLOATS = "fFeEgG"


def _parts_of(text: str, node: Any) -> tuple[list[_Part], str]:
    """Return the conversions of a format string, and the text after the last."""
    parts = []
    position = 0
    for match in _CONVERSION.finditer(text):
        before = text[position : match.start()]
        position = match.end()
        flags, letter = match["flags"], match["letter"]
        if letter == "%":
            parts.append(_Part(before + "%%", "", ""))
            continue
        if letter not in _OF_INTEGERS + _OF_FLOATS or not letter:
            raise Refusal(
                f"printf: unknown conversion {match[0]!r}; expected %d %i %u %x %X %o %c for "
                "integers, %f %F %e %E %g %G for floats, or %%, with flags, width and precision",
                node,
            )
        parts.append(_Part(before, flags, letter))
    return parts, text[position:]


@handles(printf)
def _printf(front: Any, node: Any, format: Any, *values: Any) -> Constant:
    if not isinstance(format, Constant) or not isinstance(format.value, str):
        raise Refusal("printf: the format must be a string literal", node)
    parts, after = _parts_of(format.value, node)
    letters = [part.letter for part in parts if part.letter]
    if len(letters) != len(values):
        raise Refusal(
            f"printf: the format has {len(letters)} conversions; got {len(values)} values", node
        )
    remaining = iter(values)
    text, operands = "", []
    for before, flags, letter in parts:
        text += before
        if letter:
            text += f"%{flags}{letter}"
            operands.append(_converted(front, letter, next(remaining), node).op)
    front.op("print", None, *operands, attribute=text + after)
    return NONE


def _converted(front: Any, letter: str, value: Any, node: Any) -> Number:
    kind = front.type_of(value) if is_number(value) else None
    takes_integer = letter in _OF_INTEGERS
    if kind is None or kind.lanes > 1 or takes_integer == kind.is_float:
        wanted = "an integer" if takes_integer else "a float"
        raise Refusal(f"printf: %{letter} takes {wanted}; got {described(value)}", node)
    if letter == "c":
        return front.to(value, I32)
    if takes_integer:
        return front.to(value, U64 if kind.kind == "u" else I64)
    return front.to(value, F64)
