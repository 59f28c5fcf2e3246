"""End recursive native code with an error before its stack ends, as Python does."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from dparray._array import fastpath
from dparray._jit.shared_loops import stack_check
from dparray._jit.source import at_line

_HAS_STACK = "__has_stack__"


def guard(definitions: Iterable[ast.FunctionDef]) -> dict[str, Any]:
    """Let functions raise RecursionError if their thread has little stack left.

    Return the function that they call for this, by name.
    """
    if fastpath.module is None:  # Only a C function knows where the stack ends.
        return {}
    for definition in definitions:
        message = f"maximum recursion depth exceeded in {definition.name}"
        text = f"if {_HAS_STACK}() == 0:\n    raise RecursionError({message!r})"
        definition.body[:0] = at_line(ast.parse(text), definition.lineno).body
    return {_HAS_STACK: stack_check(fastpath.module.has_stack)}
