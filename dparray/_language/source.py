"""Find the source of functions, and quote lines of it in messages."""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any, NamedTuple

#: The attribute with which a generated function provides its own :class:`Source`.
GIVEN_SOURCE = "__dparray_source__"
#: The global of a generated function that contains its text.
TEXT = "__dparray_text__"
#: Steps that are irrelevant to a function's effect.
INCIDENTAL = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL"})


class Source(NamedTuple):
    """The source of a function: its file, the first line's number, its lines and syntax tree."""

    file: str
    first: int
    lines: list[str]
    tree: ast.FunctionDef
    indent: int


def source_of(function: Callable[..., Any], *, exact: bool = False) -> Source | None:
    """Return the function's source, or ``None`` if there is no file, as at a prompt.

    A lambda is returned as the definition of a function that returns its value.

    Args:
        function: the function.
        exact: return ``None`` if the file has changed since the definition.
    """
    own: Source | None = getattr(function, GIVEN_SOURCE, None)
    if own is not None:
        return own._replace(tree=copy.deepcopy(own.tree))  # Callers transform the tree.
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    indent = len(lines[0]) - len(lines[0].lstrip())
    file = inspect.getsourcefile(function) or "<unknown>"
    code = function.__code__
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    node = next((node for node in nodes if _compiles_to(node, code)), None)
    if node is None and not exact:
        named = (node for node in nodes if getattr(node, "name", "<lambda>") == code.co_name)
        node = next(named, None)
    if node is None:
        return None
    if isinstance(node, ast.Lambda):
        result = ast.copy_location(ast.Return(node.body), node.body)
        definition = ast.FunctionDef("<lambda>", node.args, [result], [])
        node = ast.copy_location(definition, node)
    return Source(file, first, [line.rstrip("\n") for line in lines], node, indent)


def _compiles_to(node: ast.FunctionDef | ast.Lambda, code: types.CodeType) -> bool:
    """Return whether a function was compiled from a definition; its file may have changed since."""
    args = node.args
    arguments = ast.arguments(
        args.posonlyargs,
        args.args,
        args.vararg,
        args.kwonlyargs,
        [None] * len(args.kwonlyargs),
        args.kwarg,
        [],
    )
    alone: ast.stmt = (
        ast.Expr(ast.Lambda(arguments, node.body))
        if isinstance(node, ast.Lambda)
        else ast.FunctionDef(node.name, arguments, node.body, [])
    )
    # Names that the function captures are captured here, too.
    captured = ast.arguments(
        [], [ast.arg(name) for name in code.co_freevars], None, [], [], None, []
    )
    # Its own name, if it is not among them, is a global.
    is_global = isinstance(alone, ast.FunctionDef) and alone.name not in code.co_freevars
    own: list[ast.stmt] = [ast.Global([code.co_name])] if is_global else []
    outer = ast.FunctionDef("outer", captured, [*own, alone], [])
    module = ast.fix_missing_locations(ast.Module([outer], []))
    try:
        flags = code.co_flags & annotations.compiler_flag
        compiled = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return _instructions(_first_inside(_first_inside(compiled))) == _instructions(code)


def _first_inside(code: types.CodeType) -> types.CodeType:
    return next(one for one in code.co_consts if isinstance(one, types.CodeType))


def _instructions(code: types.CodeType) -> list[Any]:
    """Return the steps of a function, independent of the scope of its definition."""
    steps: list[dis.Instruction] = []
    positions: dict[int, int] = {}
    for step in dis.get_instructions(code):
        positions[step.offset] = len(steps)
        if step.opname not in INCIDENTAL:
            steps.append(step)
    found: list[Any] = [code.co_varnames, code.co_freevars]
    for step in steps:
        what: Any = repr(step.argval)
        if step.opcode in dis.hasjabs or step.opcode in dis.hasjrel:
            what = positions[step.argval]
        elif isinstance(step.argval, types.CodeType):
            what = _instructions(step.argval)
        elif ".<locals>." in what:
            what = None
        # Whether a method or an attribute is loaded depends on how a module's name was assigned.
        found.append((step.opname.replace("METHOD", "ATTR"), what))
    return found


def quote(source: Source, line: int, column: int | None, end_column: int | None) -> str:
    """Format ``file:line`` with the source line and carets below the columns."""
    number = line - source.first
    if not 0 <= number < len(source.lines):  # The file has changed since.
        return f"  {source.file}:{line}\n"
    text = source.lines[number]
    if column is None or end_column is None:
        column = len(text) - len(text.lstrip())
        end_column = len(text)
    marker = " " * column + "^" * max(end_column - column, 1)
    shown = textwrap.dedent(f"{text}\n{marker}")
    body = "".join(f"    {part}\n" for part in shown.splitlines())
    return f"  {source.file}:{line}\n{body}"
