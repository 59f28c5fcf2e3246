"""Turning a compiler's complaint into a few lines: the source line, a caret, what to do.

When a kernel fails to compile, its syntax tree is searched for what device code cannot do. A
finding on the line that Numba names, else the first finding, is reported; without one, the
sentence of Numba that says most. The full text stays on the error.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import re
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

_DEVICE_BUILTINS = frozenset(
    {"abs", "bool", "complex", "divmod", "enumerate", "float", "int", "len", "max", "min", "pow",
     "print", "range", "round", "tuple", "zip"}
)  # fmt: skip
_HOST_PACKAGES = frozenset({"numba_dpex", "dparray", "numba", "math", "cmath", "operator"})
_STATEMENTS = {
    ast.Try: "an exception handler",
    ast.Raise: "raising an exception",
    ast.Assert: "an assertion",
    ast.With: "a with block",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.Global: "assigning to a global",
    ast.Nonlocal: "assigning to a captured variable",
    ast.ClassDef: "a class",
    ast.Yield: "a generator",
    ast.YieldFrom: "a generator",
    ast.Await: "await",
}
_CONTAINERS = {
    ast.List: "a list",
    ast.ListComp: "a list",
    ast.Dict: "a dict",
    ast.DictComp: "a dict",
    ast.Set: "a set",
    ast.SetComp: "a set",
}
_NO_CONTAINERS = (
    "device code has no memory to grow in; use dp.PrivateArray(size, dtype) for one work-item, "
    "dp.LocalAccessor for a work-group, or an array argument"
)


class Finding(NamedTuple):
    """Something device code cannot do, where it stands, and what to write instead."""

    line: int
    column: int
    end_column: int
    problem: str


class Source(NamedTuple):
    """The text of a function: its file, the number of its first line, its lines and tree."""

    file: str
    first: int
    lines: list[str]
    tree: ast.FunctionDef
    indent: int


def source_of(function: Callable[..., Any]) -> Source | None:
    """The function's source, or ``None`` where there is no file, as at a prompt."""
    try:
        lines, first = inspect.getsourcelines(function)
        text = "".join(lines)
        dedented = textwrap.dedent(text)
        node = ast.parse(dedented).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(node, ast.FunctionDef):
        return None
    indent = len(lines[0]) - len(lines[0].lstrip())
    file = inspect.getsourcefile(function) or "<unknown>"
    return Source(file, first, [line.rstrip("\n") for line in lines], node, indent)


def quote(source: Source | None, line: int, column: int | None, end_column: int | None) -> str:
    """``file:line`` with the line of source and a caret under the columns."""
    if source is None:
        return ""
    number = line - source.first
    if not 0 <= number < len(source.lines):
        return f"  {source.file}:{line}\n"
    text = source.lines[number]
    if column is None or end_column is None:
        column = len(text) - len(text.lstrip())
        end_column = len(text)
    marker = " " * column + "^" * max(end_column - column, 1)
    shown = textwrap.dedent(f"{text}\n{marker}")
    body = "".join(f"    {part}\n" for part in shown.splitlines())
    return f"  {source.file}:{line}\n{body}"


def describe_failure(
    function: Callable[..., Any], parameters: Sequence[str], text: str, *, is_kernel: bool = True
) -> str:
    """The few lines that say why ``function`` does not compile.

    Args:
        function: the kernel, or a device function.
        parameters: its parameters with their types, for the first line.
        text: the compiler's full text.
        is_kernel: a device function may return a value.
    """
    name = function.__name__
    kind = "kernel" if is_kernel else "function"
    head = f"{kind} {name} does not compile for ({', '.join(parameters)})\n"
    source = source_of(function)
    findings = list(_findings(function, source, is_kernel)) if source else []
    blamed = _blamed_line(text, source)
    for finding in findings:
        if blamed is None or finding.line == blamed:
            break
    else:
        finding = findings[0] if findings else None  # type: ignore[assignment]
    if finding is not None:
        place = quote(source, finding.line, finding.column, finding.end_column)
        return head + place + finding.problem
    for called in called_device_functions(function):
        inner = source_of(called)
        for found in _findings(called, inner, False) if inner else ():
            place = quote(inner, found.line, found.column, found.end_column)
            return f"{head}in the device function {called.__name__}:\n{place}{found.problem}"
    place = quote(source, blamed, None, None) if blamed is not None else ""
    undefined = re.search(r"NameError: name '(\w+)' is not defined", text)
    if undefined and source:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name) and node.id == undefined[1]:
                start = node.col_offset + source.indent
                line = node.lineno + source.first - 1
                place = quote(source, line, start, start + len(node.id))
                break
    return head + place + _shortened(text) + "\nThe compiler's full text is in .details"


def _blamed_line(text: str, source: Source | None) -> int | None:
    """The last line of the kernel's own file that the compiler names."""
    if source is None:
        return None
    found = None
    last = source.first + len(source.lines)
    name = re.escape(source.file.rpartition("/")[2])
    for match in re.finditer(rf'{name}"?(?:, line | \()(\d+)', text):
        line = int(match[1])
        if source.first <= line < last:
            found = line
    return found


# What the compiler says, and what it means to the author of the kernel; the first match counts.
_TELLING = (
    (
        r"Unknown attribute '(?:get_group|get_local\w+|get_global\w+)' of type Item",
        "an Item of a Range has no group and no local id: launch over an NdRange, which gives an "
        "NdItem",
    ),
    (
        r"Unknown attribute '(?:get_id|get_range|get_linear_id)' of type NdItem",
        "an NdItem has get_global_id and get_local_id; get_id belongs to the Item of a Range",
    ),
    (
        r"ol_(\w+)\(AtomicRef< (\w+)",
        "AtomicRef.{0} is not available for {1} elements, or its value is of another type: "
        "convert it",
    ),
    (r"(fetch_\w+) operation only supported on", "AtomicRef.{0} works on int32 and int64 elements"),
    (r"the operation is one of .+", "{all}"),
    (r"takes an? .+; got .+", "{all}"),
    (r"(?:setitem|getitem)\((\w+\[.+?\]), UniTuple\(\w+ x (\d)\)", "{0} takes no {1} indices"),
    (
        r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'",
        "{1}.{0} is not available in a kernel",
    ),
    (r"Unknown attribute '(\w+)' of type (.+)", "there is no attribute '{0}' on {1}"),
    (r"NameError: name '(\w+)' is not defined", "the name '{0}' is not defined"),
    (
        r"Untyped global name '(\w+)':? ?(.*)",
        "the value of '{0}' cannot be used in a kernel: {1}",
    ),
    (
        r"Cannot unify (.+) and (.+) for '(\w+)[\w.$]*'",
        "'{2}' would be {0} on one path and {1} on another; convert one of them",
    ),
    (
        r"No implementation of function Function\((.+?)\) found for signature:\s+>>> (.+)",
        "{1} is not available in a kernel for these types",
    ),
    (r"No conversion from (.+) to (.+) for", "there is no conversion from {0} to {1}"),
    (
        r"local variable '(\w+)' referenced before assignment",
        "'{0}' may be used before it is assigned",
    ),
    (
        r"Use of unsupported opcode \((\w+)\)",
        "the Python operation {0} is not available in a kernel",
    ),
)


def _in_words(text: str) -> str:
    """Numba's types as our messages write them."""
    text = re.sub(
        r"(USMNdArray|DpnpNdArray)\(dtype=(\w+), ndim=(\d+), layout=(\w).*?sycl_queue=.*?\)",
        r"\2[\3-D, \4]",
        text,
    )
    text = re.sub(r"LocalAccessor\(dtype=(\w+), ndim=(\d+).*?\)", r"local \1[\2-D]", text)
    return re.sub(r"Literal\[\w+\]\((.*?)\)", r"\1", text)


def _shortened(text: str) -> str:
    text = _in_words(text)
    for pattern, sentence in _TELLING:
        match = re.search(pattern, text)
        if match:
            parts = (part.strip() for part in match.groups())
            return sentence.format(*parts, all=match[0].strip())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in", "During", "File"))]
    return (telling or lines or ["no reason was given"])[0][:200]


def _resolve(function: Callable[..., Any], node: ast.expr) -> Any:
    """The object that a name or a dotted name in the function means; ``None`` if unknown."""
    path = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    scope = inspect.getclosurevars(function)
    for names in (scope.nonlocals, scope.globals, vars(builtins)):
        if node.id in names:
            value = names[node.id]
            break
    else:
        return None
    for name in reversed(path):
        value = getattr(value, name, None)
    return value


def called_device_functions(function: Callable[..., Any]) -> Iterator[types.FunctionType]:
    """The Python functions of the device functions that a function refers to by name."""
    scope = inspect.getclosurevars(function)
    for value in (*scope.nonlocals.values(), *scope.globals.values()):
        called = getattr(value, "py_func", None)
        if isinstance(called, types.FunctionType) and called is not function:
            yield called


def _findings(
    function: Callable[..., Any], source: Source | None, is_kernel: bool
) -> Iterator[Finding]:
    if source is None:
        return
    # print and the group algorithms take words, and a string alone is a docstring.
    allowed = {
        id(part)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call | ast.Expr)
        for part in ast.iter_child_nodes(node)
        if isinstance(part, ast.Constant)
    }
    for statement in source.tree.body:
        for node in ast.walk(statement):
            problem = _problem(function, node, is_kernel)
            if problem is None or id(node) in allowed:
                continue
            if isinstance(node, ast.expr | ast.stmt):
                one_line = node.end_lineno == node.lineno
                end = node.end_col_offset if one_line else None
                yield Finding(
                    node.lineno + source.first - 1,
                    node.col_offset + source.indent,
                    (end if end is not None else node.col_offset + 1) + source.indent,
                    problem,
                )


def _problem(function: Callable[..., Any], node: ast.AST, is_kernel: bool) -> str | None:
    if isinstance(node, ast.Return) and node.value is not None and is_kernel:
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            return None
        return "a kernel returns nothing: write the result into an array argument"
    if type(node) in _STATEMENTS:
        return f"{_STATEMENTS[type(node)]} is not available in device code"
    if type(node) in _CONTAINERS:
        return f"{_CONTAINERS[type(node)]} is not available in device code: {_NO_CONTAINERS}"
    if isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    ):
        return "a string is not available in device code; only print takes one, beside a number"
    if isinstance(node, ast.Call):
        return _call_problem(function, node)
    if isinstance(node, ast.Name) and isinstance(_resolve(function, node), np.ndarray):
        return (
            f"{node.id} is a NumPy array of the host: pass dp.asarray({node.id}, device=...) as an "
            "argument; a few constants can be a tuple"
        )
    return None


def _call_problem(function: Callable[..., Any], call: ast.Call) -> str | None:
    called = _resolve(function, call.func)
    if called is None:
        return None
    name = ast.unparse(call.func)
    if isinstance(called, types.BuiltinFunctionType | type) and called in vars(builtins).values():
        if called.__name__ in _DEVICE_BUILTINS:
            return None
        return f"{name} is not available in device code: {_NO_CONTAINERS}"
    if isinstance(called, np.ufunc):
        if hasattr(math, called.__name__):
            return f"{name} is not available in a kernel; use math.{called.__name__}"
        return f"{name} is not available in a kernel; write it with operators and the math module"
    if isinstance(called, type):
        return None
    package = (getattr(called, "__module__", None) or "").partition(".")[0]
    if package == "numpy":
        return (
            f"{name} works on whole arrays and is not available in a kernel, which works on "
            "elements: write a loop, use the math module, or call dparray's function on the host"
        )
    if hasattr(called, "py_func"):
        if hasattr(called, "options") and not type(called).__name__.startswith("Device"):
            return (
                f"{name} is a kernel, and only the host launches kernels: make it a dp.device_func"
            )
        return None
    if package == "dparray" and not _in_kernel_language(called):
        return f"{name} is a host function: call it before or after the kernel"
    if isinstance(called, types.FunctionType) and package not in _HOST_PACKAGES:
        return f"{name} is a Python function: decorate it with @dp.device_func"
    return None


def _in_kernel_language(called: Any) -> bool:
    return (getattr(called, "__module__", "") or "").startswith(
        ("dparray.kernel_api", "dparray._group_algorithms")
    )
