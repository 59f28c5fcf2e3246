"""``print`` and ``printf`` in device code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import Registry
from numba.core.typing.templates import signature

from dparray._compiler import abi
from dparray._compiler.numba import instructions as device
from dparray._compiler.numba.formatted_prints import print_joined
from dparray._compiler.numba.registration import typed_by_arguments
from dparray._compiler.numba.target import registry
from dparray._compiler.numba.types import CONSTANT
from dparray.kernel_api import printf

_registry = Registry()


def install(target_context: Any) -> None:
    """Register with the target everything that must follow Numba's own registration."""
    target_context.install_registry(_registry)


@_registry.lower_cast(types.StringLiteral, types.unicode_type)
def _string(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return context.get_constant_null(target)


def _constant_text(builder: Any, text: str) -> Any:
    """Return the address of a string in constant memory."""
    module = builder.module
    content = cgutils.make_bytearray(text.encode() + b"\0")
    constant = cgutils.add_global_variable(
        module, content.type, module.get_unique_name("dparray_print"), addrspace=CONSTANT
    )
    constant.linkage = "internal"
    constant.global_constant = True
    constant.initializer = content
    return constant.bitcast(ir.IntType(8).as_pointer(CONSTANT))


_TEXT_CODE = "PU3AS2Kc"
_CODES = {"i32": "i", "i64": "l", "double": "d"}


@typed_by_arguments(print_joined, prefer_literal=True)
def _typed_print(args: Any, kws: Any) -> Any:
    return signature(types.none, *args)


@_registry.lower(print, types.VarArg(types.Any))
def _print(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return _print_with(" ", context, builder, signature, arguments)


@registry.lower(print_joined, types.VarArg(types.Any))
def _print_joined(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return _print_with("", context, builder, signature, arguments)


def _print_with(between: str, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    parts = []
    values = []
    for numba_type, value in zip(signature.args, arguments, strict=True):
        if isinstance(numba_type, types.StringLiteral):
            parts.append(numba_type.literal_value.replace("%", "%%"))
        elif isinstance(numba_type, types.Boolean):
            parts.append("%s")
            is_true = context.cast(builder, value, numba_type, types.boolean)
            words = (_constant_text(builder, word) for word in ("True", "False"))
            values.append(builder.select(is_true, *words))
        elif isinstance(numba_type, types.Integer):
            parts.append("%ld" if numba_type.signed else "%lu")
            wide = types.int64 if numba_type.signed else types.uint64
            values.append(context.cast(builder, value, numba_type, wide))
        elif isinstance(numba_type, types.Float):
            parts.append("%.10g")
            values.append(context.cast(builder, value, numba_type, types.float64))
        else:
            raise NotImplementedError(
                f"print takes numbers and strings in a kernel; got {numba_type}"
            )
    _printf(builder, between.join(parts) + "\n", values)
    return context.get_dummy_value()


def _printf(builder: Any, text: str, values: Sequence[Any]) -> None:
    # One declaration for each list of types: the back end does not support pointers for "...".
    codes = "".join(_CODES.get(str(value.type), _TEXT_CODE) for value in values)
    name = abi.mangled("__spirv_ocl_printf", _TEXT_CODE + codes)
    device.call(builder, name, device.INT32, [_constant_text(builder, text), *values])


# --- printf ---------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A conversion of a format string, with the text before it."""

    before: str
    flags: str
    letter: str


def parts_of(text: str) -> tuple[list[_Part], str]:
    """Return the conversions of a format string, and the text after the last.

    Raises:
        TypingError: it has a conversion that kernels do not support.
    """
    parts = []
    at = 0
    for found in _CONVERSION.finditer(text):
        before = text[at : found.start()]
        at = found.end()
        flags, letter = found["flags"], found["letter"]
        if letter == "%":
            parts.append(_Part(before + "%%", "", ""))
            continue
        if letter not in _OF_INTEGERS + _OF_FLOATS or not letter:
            raise TypingError(
                f"printf: unknown conversion {found[0]!r}; expected %d %i %u %x %X %o %c for "
                "integers, %f %F %e %E %g %G for floats, or %%, with flags, width and precision"
            )
        parts.append(_Part(before, flags, letter))
    return parts, text[at:]


_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*[0-9]*(?:[.][0-9]+)?)(?:hh|h|ll|l)?(?P<letter>.?)", re.S
)
_OF_INTEGERS = "diuxXoc"
_OF_FLOATS = "fFeEgG"


@typed_by_arguments(printf, prefer_literal=True)
def _typed_printf(args: Any, kws: Any) -> Any:
    if kws or not args or not isinstance(args[0], types.StringLiteral):
        raise TypingError("printf: the format must be a string literal")
    parts, _ = parts_of(args[0].literal_value)
    letters = [part.letter for part in parts if part.letter]
    if len(letters) != len(args) - 1:
        raise TypingError(
            f"printf: the format has {len(letters)} conversions; got {len(args) - 1} values"
        )
    for letter, value in zip(letters, args[1:], strict=True):
        number = types.unliteral(value)
        whole = isinstance(number, types.Integer | types.Boolean)
        if not (whole if letter in _OF_INTEGERS else isinstance(number, types.Float)):
            wanted = "an integer" if letter in _OF_INTEGERS else "a float"
            raise TypingError(f"printf: %{letter} takes {wanted}; got {number}")
    return signature(types.void, *args)


@registry.lower(printf, types.VarArg(types.Any))
def _lower_printf(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    parts, after = parts_of(signature.args[0].literal_value)
    given = iter(zip(signature.args[1:], arguments[1:], strict=True))
    text, values = "", []
    for before, flags, letter in parts:
        text += before
        if not letter:
            continue
        numba_type, value = next(given)
        wide, prefix = types.float64, ""
        if letter == "c":
            wide = types.int32
        elif letter in _OF_INTEGERS:
            unsigned = isinstance(numba_type, types.Integer) and not numba_type.signed
            wide, prefix = types.uint64 if unsigned else types.int64, "l"
        text += f"%{flags}{prefix}{letter}"
        values.append(context.cast(builder, value, types.unliteral(numba_type), wide))
    _printf(builder, text + after, values)
    return context.get_dummy_value()
