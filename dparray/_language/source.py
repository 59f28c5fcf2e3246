"""Find the source of functions, and quote lines of it in messages."""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import itertools
import linecache
import sys
import textwrap
import types
import weakref
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


#: The lines of a function's file when it was defined, by its code.
_defined_in: weakref.WeakKeyDictionary[types.CodeType, list[str]] = weakref.WeakKeyDictionary()


def remember(function: Callable[..., Any]) -> None:
    """Keep the text of a function's file, which may change before the function is compiled."""
    code = getattr(function, "__code__", None)
    if code is None or code in _defined_in:
        return
    if not (function.__module__ or "").startswith("dparray."):
        linecache.checkcache(code.co_filename)
        _defined_in[code] = linecache.getlines(code.co_filename, function.__globals__)


def lines_of(function: Callable[..., Any]) -> tuple[list[str], int]:
    """Return the lines of a function in its file as it is now, and the number of the first.

    ``inspect.getsourcelines`` finds the paths of all imported modules first, which takes 20 ms.

    Raises:
        OSError: there is no such file.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    if not lines:
        raise OSError(f"the source of {code.co_name} is not available")
    return inspect.getblock(lines), code.co_firstlineno


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
    code = function.__code__
    found = _of_a_file(function, exact)
    if found is None:
        # The lines of a function may be a part of an expression, or its file has changed.
        lines = _defined_in.get(code) or linecache.getlines(code.co_filename, function.__globals__)
        found = _inside("".join(lines), code)
    return found or _of_a_command(code) or _of_a_prompt(code)


def _of_a_file(function: Callable[..., Any], exact: bool) -> Source | None:
    """Return the source of a function as its file has it now."""
    code = function.__code__
    try:
        lines, first = lines_of(function)
    except (OSError, SyntaxError):
        return None
    try:
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError:
        return None
    indent = len(lines[0]) - len(lines[0].lstrip())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    node = next((node for node in nodes if _compiles_to(node, code)), None)
    # pytest compiles assertions in another form than that of the file.
    if node is None and not (exact and "@pytest_ar" not in (*code.co_names, *code.co_freevars)):
        named = (node for node in nodes if getattr(node, "name", "<lambda>") == code.co_name)
        node = next(named, None)
    if node is None:
        return None
    plain = [line.rstrip("\n") for line in lines]
    return Source(code.co_filename, first, plain, _definition(node), indent)


def _definition(node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef:
    """Return the definition of a function that does what a lambda does."""
    if isinstance(node, ast.FunctionDef):
        return node
    result = ast.copy_location(ast.Return(node.body), node.body)
    definition = ast.FunctionDef("<lambda>", node.args, [result], [])
    return ast.copy_location(definition, node)


def _of_a_command(code: types.CodeType) -> Source | None:
    """Return the source of a function in the text of ``python -c``."""
    arguments = sys.orig_argv
    if code.co_filename != "<string>" or "-c" not in arguments[:-1]:
        return None
    text = arguments[arguments.index("-c") + 1]
    return _inside(text, code)


def _of_a_prompt(code: types.CodeType) -> Source | None:
    """Return the source of a function that was typed at Python's prompt, from its history."""
    readline = sys.modules.get("readline")
    if code.co_filename not in ("<stdin>", "<python-input>") or readline is None:
        return None
    count = readline.get_current_history_length()
    typed = [readline.get_history_item(number + 1) or "" for number in range(count)]
    for start in reversed(range(count)):
        if typed[start].startswith(f"def {code.co_name}("):
            rest = itertools.takewhile(lambda line: line[:1].isspace(), typed[start + 1 :])
            found = _inside("\n".join([typed[start], *rest]), code)
            if found is not None:
                return found
    return None


def _inside(text: str, code: types.CodeType) -> Source | None:
    """Return the source of a function that a text defines."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and _compiles_to(node, code):
            return Source(code.co_filename, 1, text.splitlines(), _definition(node), 0)
    return None


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
    alone_code = _inner(_inner(compiled, "outer"), getattr(node, "name", "<lambda>"))
    return _instructions(alone_code) == _instructions(code)


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    """Return the code of a function inside. From Python 3.14 on, its annotations come first."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return next(one for one in inner if one.co_name == name)


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
