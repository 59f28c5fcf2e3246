"""End recursive native code with an error before its stack ends, as Python does."""

from __future__ import annotations

import ast
import functools
import importlib
from typing import Any

from dparray._array import fastpath
from dparray._jit.source import at_line

_HAS_STACK, _SYMBOL = "__has_stack__", "dparray_has_stack"


@functools.cache
def functions() -> dict[str, Any]:
    """Return the function that recursive code calls first, by name."""
    if fastpath.module is None:  # Only a C function knows where the stack ends.
        return {}
    types = importlib.import_module("numba").types
    binding = importlib.import_module("llvmlite.binding")
    binding.add_symbol(_SYMBOL, fastpath.module.has_stack)
    return {_HAS_STACK: types.ExternalFunction(_SYMBOL, types.int32())}


def guard(definition: ast.FunctionDef) -> None:
    """Let a function raise RecursionError if its thread has little stack left."""
    if fastpath.module is not None:
        message = f"maximum recursion depth exceeded in {definition.name}"
        text = f"if {_HAS_STACK}() == 0:\n    raise RecursionError({message!r})"
        definition.body[:0] = at_line(ast.parse(text), definition.lineno).body
