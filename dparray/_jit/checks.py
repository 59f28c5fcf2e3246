"""Errors in a function that are found before it is compiled."""

from __future__ import annotations

import ast
import builtins
import difflib
import sys
from collections.abc import Iterable
from types import FunctionType, ModuleType

import numpy as np

from dparray._jit.inference import Inference, Value
from dparray._jit.source import Source, source_of


def checked_source(function: FunctionType) -> Source:
    """Read the definition of a function, and check the names that it refers to.

    Raises:
        KernelCompileError: the source is not available, a name or an attribute of a module is not
            defined, or the function is a generator or assigns a global.
    """
    source = source_of(function)
    assigned = _bound(source.definition)
    known = source.names.keys() | assigned | set(function.__code__.co_freevars)
    for node in ast.walk(source.definition):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            raise source.error(
                node, "a generator is not compiled", "write the values into an array, and return it"
            )
        if isinstance(node, ast.Global | ast.Nonlocal) and assigned & {*node.names}:
            fix = "return the value, and assign it where the function is called"
            raise source.error(node, "a compiled function cannot assign outside of it", fix)
        if isinstance(node, ast.Name) and node.id not in known and not hasattr(builtins, node.id):
            meant = _suggestion(node.id, known | vars(builtins).keys())
            fix = f"assign {node.id} before the first call, in the function or outside of it"
            raise source.error(node, f"the name {node.id!r} is not defined{meant}", fix)
        if isinstance(node, ast.Attribute):
            _check_attribute(source, node)
    return source


def _check_attribute(source: Source, node: ast.Attribute) -> None:
    module = source.resolve(node.value)
    if not isinstance(module, ModuleType) or hasattr(module, node.attr):
        return
    names: Iterable[str] = dir(module)
    if module.__name__ in ("numpy", "dparray", "dpnp"):
        library = sys.modules["dparray"]
        if any(hasattr(each, node.attr) for each in (library, np, library.special)):
            return
        names = dir(library)
    meant = _suggestion(node.attr, names)
    raise source.error(
        node,
        f"module {module.__name__!r} has no attribute {node.attr!r}{meant}",
        f"write a function that exists: dir({ast.unparse(node.value)}) lists them",
    )


def _suggestion(name: str, known: Iterable[str]) -> str:
    meant = difflib.get_close_matches(name, [each for each in known if each[:1] != "_"], 1, 0.75)
    return f"; did you mean {meant[0]!r}?" if meant else ""


def _bound(tree: ast.AST) -> set[str]:
    """Return the names that a function binds in any way."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        else:
            name = getattr(node, "name", getattr(node, "rest", None))
            found |= {name} if isinstance(name, str) else set()
    return found


def check_ranges(source: Source, types: Inference) -> None:
    """Reject the floats among the arguments of ``range``, which native code would truncate.

    Raises:
        KernelCompileError: with the line; it is a ``TypeError``, as in Python.
    """
    for node in ast.walk(source.definition):
        if isinstance(node, ast.Call) and types.called(node) in ("range", "prange"):
            for argument in node.args:
                kind = types.of(argument)
                if isinstance(kind, Value) and kind.dtype.kind not in "iub":
                    raise source.error(
                        argument,
                        f"{types.called(node)} takes integers, and this is a {kind.dtype}",
                        f"write // instead of /, or int({ast.unparse(argument)})",
                    )
