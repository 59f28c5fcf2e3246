"""End recursive native code with an error before its stack ends, as Python does."""

from __future__ import annotations

import ast
import functools
import importlib
from typing import Any

from dparray._array import fastpath
from dparray._jit.source import at_line

_HAS_STACK = "__has_stack__"
_SYMBOL = "dparray_has_stack"


@functools.cache
def _stack_check(address: int) -> Any:
    """Return a function for native code: 0 if the calling thread has little stack left.

    Args:
        address: of the C function that it calls.
    """
    types = importlib.import_module("numba").types
    importlib.import_module("llvmlite.binding").add_symbol(_SYMBOL, address)
    return types.ExternalFunction(_SYMBOL, types.int32())


def guard(definition: ast.FunctionDef) -> dict[str, Any]:
    """Let a function raise RecursionError if its thread has little stack left.

    Return the function that it calls for this, by name.
    """
    if fastpath.module is None:  # Only a C function knows where the stack ends.
        return {}
    message = f"maximum recursion depth exceeded in {definition.name}"
    text = f"if {_HAS_STACK}() == 0:\n    raise RecursionError({message!r})"
    definition.body[:0] = at_line(ast.parse(text), definition.lineno).body
    return {_HAS_STACK: _stack_check(fastpath.module.has_stack)}
