"""Statements and values of compiled functions as the kernel language has them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from dparray import kernel_api
from dparray._jit.captured import of_one_type
from dparray._jit.inference import Inference, Value, is_number
from dparray._jit.signs import is_natural
from dparray._jit.source import (
    PlainMembers,
    Source,
    at_line,
    is_prange_function,
    python_function_of,
)
from dparray._language.device_function import DeviceFunction
from dparray._type_keys import code_of

#: The name of NumPy in generated code.
NUMPY = "__numpy__"
#: Python's classes of numbers by the kinds of dtypes.
PYTHON_CLASSES = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}


class PlainLoops(PlainMembers):
    """Replaces ``prange`` loops inside a kernel by plain loops, and names of the kernel API."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite ``prange``."""
        self.generic_visit(node)
        if is_prange_function(self.source.resolve(node.func)):
            node.func = ast.copy_location(ast.Name("range", ast.Load()), node.func)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Rewrite ``dp.AtomicRef``: in kernels, the module stands for NumPy."""
        if not is_of_kernels(self.source, node):
            return super().visit_Attribute(node)
        self.source.names[f"dp.{node.attr}"] = self.source.resolve(node)
        return ast.copy_location(ast.Name(f"dp.{node.attr}", ast.Load()), node)


class FloatPowers(ast.NodeTransformer):
    """Makes floats of powers of Python integers whose exponents may be negative."""

    def __init__(self, types: Inference) -> None:
        self.types = types

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Convert the operands of such a power."""
        kinds = [self.types.of(each) for each in (node.left, node.right)]
        self.generic_visit(node)
        are_integers = all(
            is_number(kind) and kind.is_weak and kind.dtype.kind in "bi" for kind in kinds
        )
        if isinstance(node.op, ast.Pow) and are_integers and not is_natural(node):
            node.left, node.right = _float_of(node.left), _float_of(node.right)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Convert the operands of ``k **= n``."""
        if not (isinstance(node.op, ast.Pow) and isinstance(node.target, ast.Name)):
            return self.generic_visit(node)
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        power: Any = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        power.is_natural = is_natural(node)
        return self.visit(ast.copy_location(ast.Assign([node.target], power), node))


def _float_of(node: ast.expr) -> ast.expr:
    made = ast.Call(ast.Name("float", ast.Load()), [node], [])
    return ast.fix_missing_locations(ast.copy_location(made, node))


def python_numbers(types: Mapping[str, Value], line: int) -> list[ast.stmt]:
    """Return statements that make Python numbers of the arguments of a kernel that are such."""
    texts = [
        f"{name} = {PYTHON_CLASSES[kind.dtype.kind]}({name})"
        for name, kind in types.items()
        if kind.is_weak
    ]
    made: list[ast.stmt] = at_line(ast.parse("\n".join(texts)), line).body
    return made


def is_of_kernels(source: Source, node: ast.AST) -> bool:
    """Return whether a name or an attribute is one of the kernel language, such as AtomicRef."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    name = node.id if isinstance(node, ast.Name) else node.attr
    return name in kernel_api.__all__ and source.resolve(node) is getattr(kernel_api, name)


def for_kernel(value: Any) -> Any:
    """Return a captured value as kernels accept it."""
    if isinstance(value, ModuleType) and value.__name__ in ("dparray", "dpnp"):
        return np
    if type(value) is list:
        return tuple(map(for_kernel, of_one_type(value)))
    function = python_function_of(value)
    if isinstance(function, FunctionType) and type(value).__name__ == "JitFunction":
        return DeviceFunction(function, {})
    return value


def type_key(kind: Value, order: str) -> str:
    """Return the type key of an array of a memory order, or of a number."""
    code = code_of(kind.dtype)
    return f"{code}:{kind.ndim}{order}" if kind.ndim else code


def dtype_of(dtype: np.dtype[Any]) -> ast.expr:
    """Return the expression of a dtype's class."""
    name = "bool_" if dtype.kind == "b" else dtype.name
    return ast.Attribute(ast.Name(NUMPY, ast.Load()), name, ast.Load())


def cast_to(node: ast.expr, dtype: np.dtype[Any]) -> ast.expr:
    """Return a number converted to a dtype."""
    made = ast.Call(dtype_of(dtype), [node], [])
    return ast.fix_missing_locations(ast.copy_location(made, node))
