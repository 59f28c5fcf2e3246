"""Kernels that check their indices: what ``dp.config.debug`` launches instead of the kernel.

The kernel's syntax tree is copied, and every index of an array is passed through
:func:`check_index`, which on the device returns an index outside the array as the first element's
and notes the fault in a record that is one more argument. Device functions that the kernel calls
are copied along. Nothing returns early, so barriers stay where they are.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from dparray._compile_errors import Source, quote, source_of
from dparray._compiler import DeviceFunction
from dparray._kernel_key import referred_values
from dparray._runtime import kernel_language

RECORD = "dparray_fault"
_CHECK = "dparray_check_index"
MAX_CHECKED_DIMENSIONS = 3
# Record: faults seen, site, number of indices, the indices, the shape.
RECORD_SIZE = 3 + 2 * MAX_CHECKED_DIMENSIONS
_INDICES = 3
_SHAPE = _INDICES + MAX_CHECKED_DIMENSIONS


class Site(NamedTuple):
    """Where an array is indexed."""

    function: str
    array: str
    source: Source
    line: int
    column: int
    end_column: int


class CheckedKernel(NamedTuple):
    """The copy of a kernel, with the record as its last parameter, and its sites by number."""

    function: Callable[..., Any]
    sites: list[Site]


def check_index(array: Any, index: Any, record: Any, site: int) -> Any:
    """``index``, or the first element's when it is outside ``array``; only in kernels."""
    raise NotImplementedError("check_index runs in kernels")


def checked_copy(function: Callable[..., Any]) -> CheckedKernel | None:
    """The checking copy of a kernel's Python function; ``None`` without its source."""
    copier = _Copier()
    copied = copier.copy(function)
    return None if copied is None else CheckedKernel(copied, copier.sites)


def describe_fault(kernel: str, checked: CheckedKernel, record: Any) -> str:
    """The message for a record that a launch left."""
    faults, number, count = (int(value) for value in record[:3])
    site = checked.sites[number]
    indices = tuple(int(value) for value in record[_INDICES : _INDICES + count])
    shape = tuple(int(value) for value in record[_SHAPE : _SHAPE + count])
    shown = str(indices[0]) if count == 1 else str(indices)
    place = quote(site.source, site.line, site.column, site.end_column)
    others = f" ({faults - 1} more accesses were out of bounds)" if faults > 1 else ""
    where = "" if site.function == kernel else f" in {site.function}"
    return (
        f"kernel {kernel}: index {shown} is out of bounds of {site.array}, whose shape is "
        f"{shape}{where}{others}\n{place.rstrip()}"
    )


class _Copier:
    """Copies a kernel and the device functions it reaches; each once."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.copies: dict[int, DeviceFunction] = {}

    def copy(self, function: Any) -> Callable[..., Any] | None:
        source = source_of(function)
        if source is None:
            return None
        scope = {**function.__globals__, **referred_values(function), _CHECK: check_index}
        tree = source.tree
        tree.decorator_list = []
        tree.returns = None
        for argument in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs):
            argument.annotation = None
        tree.args.defaults = []
        tree.args.kw_defaults = [None] * len(tree.args.kwonlyargs)
        tree = _Checker(self, source, scope).visit(tree)
        tree.args.args.append(ast.arg(RECORD))
        module = ast.fix_missing_locations(ast.Module([tree], []))
        ast.increment_lineno(module, source.first - 1)
        exec(compile(module, source.file, "exec"), scope)
        copied = scope[tree.name]
        copied.__qualname__ = function.__qualname__
        return copied

    def device_function(self, original: Any) -> DeviceFunction | None:
        known = self.copies.get(id(original))
        if known is None:
            copied = self.copy(original.py_func)
            if copied is None:
                return None
            options = getattr(original, "options", {})
            known = self.copies[id(original)] = DeviceFunction(copied, options)
        return known


class _Checker(ast.NodeTransformer):
    """Passes every index through the check, and the record to every device function."""

    def __init__(self, copier: _Copier, source: Source, scope: dict[str, Any]) -> None:
        self.copier = copier
        self.source = source
        self.scope = scope
        self.atomic = kernel_language().AtomicRef

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        site = (node.lineno, node.col_offset, node.end_col_offset)
        array_text = ast.unparse(node.value)
        self.generic_visit(node)
        if isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "strides"):
            return node
        if any(isinstance(part, ast.Slice) for part in ast.walk(node.slice)):
            return node
        node.slice = self.checked(node.value, node.slice, array_text, site)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = self.resolve(node.func)
        site = (node.lineno, node.col_offset, node.end_col_offset)
        array_text = ast.unparse(node.args[0]) if node.args else ""
        self.generic_visit(node)
        if called is self.atomic:
            if len(node.args) > 1:
                node.args[1] = self.checked(node.args[0], node.args[1], array_text, site)
            for keyword in node.keywords:
                if keyword.arg == "index" and node.args:
                    keyword.value = self.checked(node.args[0], keyword.value, array_text, site)
        elif isinstance(getattr(called, "py_func", None), types.FunctionType):
            copied = self.copier.device_function(called)
            if copied is not None:
                name = f"dparray_checked_{copied.__name__}_{id(called)}"
                self.scope[name] = copied
                node.func = ast.Name(name, ast.Load())
                node.keywords.append(ast.keyword(RECORD, ast.Name(RECORD, ast.Load())))
        return node

    def checked(
        self, array: ast.expr, index: ast.expr, text: str, site: tuple[int, int, int | None]
    ) -> ast.expr:
        line, column, end_column = site
        indent = self.source.indent
        self.copier.sites.append(
            Site(
                self.source.tree.name,
                text,
                self.source,
                line + self.source.first - 1,
                column + indent,
                (end_column or column + 1) + indent,
            )
        )
        number = ast.Constant(len(self.copier.sites) - 1)
        record = ast.Name(RECORD, ast.Load())
        base = ast.parse(ast.unparse(array), mode="eval").body
        return ast.Call(ast.Name(_CHECK, ast.Load()), [base, index, record, number], [])

    def resolve(self, node: ast.expr) -> Any:
        path = []
        while isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        value = self.scope.get(node.id) if isinstance(node, ast.Name) else None
        for name in reversed(path):
            value = getattr(value, name, None)
        return value
