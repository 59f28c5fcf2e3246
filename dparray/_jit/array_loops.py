"""Array statements outside of loops over elements, as ``prange`` loops over rows in native code.

Numba's own parallel loops take longer to start, and write temporary arrays. A statement such as
``v[1:-1, 1:-1] = u[2:, 1:-1] * a`` therefore becomes::

    place, other = v[1:-1, 1:-1], u[2:, 1:-1]
    if <same shapes, and no overlap of other elements>:
        for row in prange(place.shape[0]):
            v[1 + row, 1:-1] = u[2 + row, 1:-1] * a
    else:
        v[1:-1, 1:-1] = u[2:, 1:-1] * a

The loop is divided as the user's are, and its rows become loops over elements.
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray._jit.inference import ABOUT_ARRAYS, Inference, Value, constant, is_array
from dparray._jit.native_functions import FITS
from dparray._jit.source import Source, copied, entries_of, expressions_of, prange

_ROWS, _ROW = "__rows__", "__row__"
#: Functions that compute nothing with the arrays that they get.
_CREATION = frozenset({"len", "range", "empty", "zeros", "ones", "full", "empty_like", "zeros_like",
                       "ones_like", "full_like"})  # fmt: skip
#: Statements that contain other statements.
_COMPOUND = ast.For | ast.While | ast.If
_SIMPLE = ast.Assign | ast.AugAssign


def with_row_loops(
    source: Source, types: Inference
) -> tuple[Source, ast.FunctionDef, Inference] | None:
    """Return a function with loops instead of array statements, with its source and its types;
    ``None`` if it has an array statement that cannot become one.
    """
    loops = _RowLoops(types)
    tree = copied(source.definition)
    tree.args.defaults = []
    tree.body = loops.block(tree.body)
    if not loops.is_whole or not loops.count:
        return None
    names = {**source.names, _ROWS: sys.modules[prange.__module__]}
    source = dataclasses.replace(source, names=names)
    return source, tree, Inference(tree, types.parameters, names, types.callees)


class _RowLoops:
    """Rewrites statements.

    Attributes:
        is_whole: whether all statements on arrays became loops.
        count: how many generated names there are.
    """

    def __init__(self, types: Inference) -> None:
        self.types = types
        self.is_whole = True
        self.count = 0
        self._lines: set[int] = set()

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return statements that do the same."""
        result: list[ast.stmt] = []
        for statement in body:
            own = expressions_of(statement)
            is_update = isinstance(statement, ast.AugAssign) and self._is_array(statement.target)
            if not is_update and not any(map(self._computes_array, own)):
                if isinstance(statement, _COMPOUND):
                    statement.body = self.block(statement.body)
                    statement.orelse = self.block(statement.orelse)
                result.append(statement)
                continue
            # The line is part of the name of a loop's function.
            is_possible = isinstance(statement, _SIMPLE) and statement.lineno not in self._lines
            made = self._loop(statement) if is_possible else None
            self.is_whole = self.is_whole and made is not None
            self._lines.add(statement.lineno)
            given = set(ast.walk(statement))
            for node in (node for each in made or () for node in ast.walk(each)):
                if node not in given and isinstance(node, ast.expr | ast.stmt):
                    ast.copy_location(node, statement)
            result += made or [statement]
        return result

    def _is_array(self, node: ast.expr) -> bool:
        return is_array(self.types.of(node))

    def _computes_array(self, node: ast.expr) -> bool:
        """Return whether an expression computes with arrays, and not only creates or names one."""
        if isinstance(node, ast.Attribute) and node.attr in ABOUT_ARRAYS:
            return False
        if isinstance(node, ast.Call):
            is_plain = self.types.called(node) in _CREATION
            return not is_plain and any(map(self._is_array, [node, *node.args]))
        is_computed = self._is_array(node) and not isinstance(node, ast.Name)
        return is_computed or any(map(self._computes_array, expressions_of(node)))

    def _loop(self, statement: Any) -> list[ast.stmt] | None:
        is_update = isinstance(statement, ast.AugAssign)
        target = statement.target if is_update else statement.targets[0]
        kind = self.types.of(target)
        if not isinstance(kind, Value) or not (is_update or isinstance(target, ast.Subscript)):
            return None
        if not is_update and len(statement.targets) > 1:
            return None
        self._heads: list[ast.stmt] = []
        self._views: dict[str, str] = {}
        self._ndim = kind.ndim
        place, value = self._row(target), self._row(statement.value)
        if place is None or value is None:
            return None
        (own, *others) = self._views.values()
        place.ctx = ast.Store()
        row: Any = copied(statement)
        row.value = value
        if is_update:
            row.target = place
        else:
            row.targets = [place]
        condition = " and ".join(f"{FITS}({own}, {each})" for each in others) or "True"
        loop: Any = ast.parse(
            f"if {condition}:\n for {_ROW} in {_ROWS}.prange({own}.shape[0]): pass"
        ).body
        loop[0].body[0].body = [row]
        loop[0].orelse = [statement]
        return [*self._heads, *loop]

    def _assigned(self, value: ast.expr) -> str:
        name = f"__w{self.count}"
        self.count += 1
        self._heads.append(ast.Assign([ast.Name(name, ast.Store())], value))
        return name

    def _row(self, node: ast.expr) -> Any:
        """Return the row of an array expression, or the number; ``None`` if there is none."""
        kind = self.types.of(node)
        if not isinstance(kind, Value):
            return None
        if not kind.ndim:  # before the statement changes what it may read
            is_plain = isinstance(node, ast.Name | ast.Constant)
            return copied(node) if is_plain else ast.Name(self._assigned(copied(node)), ast.Load())
        if kind.ndim != self._ndim:
            return None
        if isinstance(node, ast.Name | ast.Subscript):
            return self._view(node)
        made = copied(node)
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
            made.left, made.right = self._row(node.left), self._row(node.right)
            parts = [made.left, made.right]
        elif isinstance(node, ast.UnaryOp):
            made.operand = self._row(node.operand)
            parts = [made.operand]
        elif isinstance(node, ast.Call) and not node.keywords:
            function = vars(np).get(self.types.called(node))
            if function is not np.where and not isinstance(function, np.ufunc):
                return None
            if isinstance(function, np.ufunc) and len(node.args) != function.nin:
                return None
            parts = made.args = [self._row(each) for each in node.args]
        else:
            return None
        return None if any(each is None for each in parts) else made

    def _view(self, node: Any) -> ast.expr | None:
        base, entries = (node, []) if isinstance(node, ast.Name) else (node.value, entries_of(node))
        kind = self.types.of(base)
        if not isinstance(base, ast.Name) or not isinstance(kind, Value):
            return None
        if [ast.unparse(each) for each in entries] == ["..."]:
            entries = []
        entries += [ast.Slice()] * (kind.ndim - len(entries))
        made: list[ast.expr] = []
        is_taken = False
        for axis, each in enumerate(entries):
            if not isinstance(each, ast.Slice):
                index = self.types.of(each)
                if not isinstance(index, Value) or index.ndim or index.dtype.kind not in "iu":
                    return None
                plain = isinstance(each, ast.Name | ast.Constant)
                made.append(each if plain else ast.Name(self._assigned(copied(each)), ast.Load()))
            elif is_taken:
                if any(isinstance(inner, ast.Call | ast.Subscript) for inner in ast.walk(each)):
                    return None  # which may read what the statement changes
                made.append(each)
            else:
                start = self._start(each, f"{base.id}.shape[{axis}]")
                if start is None:
                    return None
                is_taken = True
                text = _ROW if start == "0" else f"{start} + {_ROW}"
                made.append(ast.parse(text, mode="eval").body)
        while len(made) > 1 and ast.unparse(made[-1]) == ":":
            made.pop()
        text = ast.unparse(node)
        if text not in self._views:
            view = copied(node)
            view.ctx = ast.Load()
            self._views[text] = base.id if isinstance(node, ast.Name) else self._assigned(view)
        index = made[0] if len(made) == 1 else ast.Tuple(made, ast.Load())
        return ast.Subscript(ast.Name(base.id, ast.Load()), copied(index), ast.Load())

    def _start(self, node: ast.Slice, length: str) -> str | None:
        """Return where a slice with at least one element begins."""
        if constant(node.step) not in (None, 1) or (node.step and constant(node.step) is None):
            return None
        start = constant(node.lower)
        if node.lower is None or (type(start) is int and start >= 0):
            return str(start or 0)
        kind = self.types.of(node.lower)
        if not isinstance(kind, Value) or kind.ndim or kind.dtype.kind not in "iu":
            return None
        text = ast.unparse(node.lower)
        text = f"max({text} if {text} >= 0 else {text} + {length}, 0)"
        return self._assigned(ast.parse(text, mode="eval").body)
