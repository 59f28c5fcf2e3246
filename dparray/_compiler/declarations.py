"""Read the declarations of functions in the text of LLVM IR, for back ends that define them."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

#: A line that declares a function: result type, name with or without quotes, parameters.
DECLARED = re.compile(
    r"^declare (?:spir_func )?([^@\n]*?)@(?:\"([^\"]+)\"|([-\w.$]+))\(([^\n]*)\n", re.MULTILINE
)
_UNCONTRACTED = re.compile(r"(= f(?:add|sub|mul)) (?!contract )")
_TYPE = re.compile(r"ptr(?: addrspace\(\d+\))?|<[^>]*>|\{[^}]*\}|\[[^\]]*\]|[a-z]\w*")


#: LLVM's atomic updates, by the ends of their names in SPIR-V.
UPDATES = {
    "IAdd": "add",
    "ISub": "sub",
    "SMin": "min",
    "SMax": "max",
    "UMin": "umin",
    "UMax": "umax",
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "Exchange": "xchg",
    "FAddEXT": "fadd",
    "FMinEXT": "fmin",
    "FMaxEXT": "fmax",
}


def contracted(text: str) -> str:
    """Return a module in which products and sums may be contracted to fused operations."""
    return _UNCONTRACTED.sub(r"\1 contract ", text)


class Function(NamedTuple):
    """A declared function.

    Attributes:
        name: its name.
        result: its LLVM type.
        parameters: LLVM types.
    """

    name: str
    result: str
    parameters: tuple[str, ...]


def split(parameters: str) -> list[str]:
    """Split a list of parameters or arguments, up to its closing parenthesis."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(parameters):
        depth += (letter in "(<{[") - (letter in ")>}]")
        if depth < 0 or (letter == "," and not depth):
            parts.append(parameters[start:at].strip())
            start = at + 1
        if depth < 0:
            break
    return [each for each in parts if each]


def function_of(name: str, result: str, parameters: str) -> Function:
    """Return a function by the text of its declaration, or of a call of it.

    Attributes precede the type of a result, and follow that of a parameter.
    """
    kinds = tuple(_TYPE.findall(each)[0] for each in split(parameters))
    return Function(name, _TYPE.findall(result)[-1], kinds)


def float_literal(number: float, code: str) -> str:
    """Return a float's bits, by OpenCL's code; LLVM writes a float32's as a float64, too."""
    (rounded,) = struct.unpack(code, struct.pack(code, number))
    return "0x" + struct.pack(">d", rounded).hex().upper()
