"""Array statements in the parts of ``prange`` loops, as loops over elements in native code.

Numba allocates an array for each operation of such a statement, and its loops are not vectorized.
A statement on slices, and a reduction of them, therefore becomes::

    place, row = out[i, :], x[i, :]
    if <same shapes, and no overlap of other elements>:
        for k in range(place.shape[0]):
            place[k] = 2 * row[k]
    else:
        out[i, :] = 2 * x[i, :]

The statement itself broadcasts, copies, and raises errors.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray._jit.casts import NUMPY, cast_to, dtype_of
from dparray._jit.inference import OPERATORS, Value, is_array
from dparray._jit.native_functions import FITS
from dparray._jit.scalarize import Scalarizer, _Elements, _is_view
from dparray._jit.shared_loops import LARGEST, REORDERED, SMALLEST
from dparray._jit.source import copied, entries_of
from dparray.exceptions import KernelCompileError

#: The order of kinds: a value is stored only in elements of the same or a later kind.
_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


class RowLoops(Scalarizer):
    """Rewrites the body of a part of a loop."""

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return statements that do the same."""
        result: list[ast.stmt] = []
        for statement in body:
            self._line = statement.lineno
            if isinstance(statement, ast.If | ast.For | ast.While):
                for name in ("body", "orelse"):
                    setattr(statement, name, self.block(getattr(statement, name)))
                result.append(statement)
                continue
            for made in self._guarded(statement) or [statement]:
                result.append(self._located(made, statement))
        return result

    def _guarded(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements that replace one; none if there is nothing to replace."""
        if not isinstance(statement, ast.Assign | ast.AugAssign):
            return []
        self._heads: list[ast.stmt] = []
        self._conditions: dict[str, None] = {}  # in order
        self._shown: dict[str, ast.Name] = {}
        fast: Any = copied(statement)
        is_update = isinstance(statement, ast.AugAssign)
        target = fast.target if is_update else fast.targets[0]
        is_name = isinstance(target, ast.Name) and not is_update
        before: list[ast.stmt] = []
        try:
            if is_name and len(fast.targets) == 1 and self._is_new(fast.value):
                before = self._made(target, fast.value)
            elif not is_name and is_array(self.types.of(target)):
                before = self._stores(fast, target)
            elif is_update or len(fast.targets) == 1:
                fast.value = self._scalar(fast.value, before)
                before.append(fast)
        except KernelCompileError:
            return []
        if not self._conditions:
            return []
        condition = ast.parse(" and ".join(self._conditions), mode="eval").body
        return [*self._heads, ast.If(condition, before, [statement])]

    def _is_new(self, value: ast.expr) -> bool:
        kind = self.types.of(value)
        return isinstance(kind, Value) and kind.ndim == 1 and not _is_view(value)

    def _made(self, target: ast.Name, node: ast.expr) -> list[ast.stmt]:
        """Return the statements that compute a new vector."""
        before: list[ast.stmt] = []
        value = self._lower(node, before)
        first = self._alike(value)
        dtype = ast.unparse(dtype_of(value.type.dtype))
        made = ast.parse(f"{NUMPY}.empty({first}.shape, {dtype})", mode="eval").body
        place, index = self._assigned(made, before), self._names(1)
        element = ast.Subscript(place, ast.Name(index[0], ast.Load()), ast.Store())
        before += self._loops(index, value.lengths, [ast.Assign([element], value.at(index))])
        return [*before, _assigned_to(target.id, place)]

    def _alike(self, value: _Elements) -> str:
        """Require one shape of all arrays in a value, and return the name of the first."""
        if not value.leaves or any(axes != str(value.type.ndim) for _, axes in value.leaves):
            raise KernelCompileError("broadcasts")
        first = value.leaves[0][0]
        self._conditions |= {f"{first}.shape == {name}.shape": None for name, _ in value.leaves}
        return first

    def _stores(self, node: Any, target: ast.expr) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        if isinstance(node, ast.Assign) and len(node.targets) != 1:
            raise self._refusal(node, "several targets", "")
        value, place = self._lower(node.value, before), self._lower(target, before)
        if isinstance(node, ast.AugAssign):
            value = self._operation(node.op, place, value)
        (own, _), *_ = place.leaves
        dtypes = value.type.dtype, place.type.dtype
        if isinstance(node, ast.AugAssign) and dtypes[0] != dtypes[1]:
            raise self._refusal(node, "another dtype", "")
        if _RANKS[dtypes[0].kind] > _RANKS[dtypes[1].kind]:
            raise self._refusal(node, "a conversion that loses more than precision", "")
        for name, axes in value.leaves:
            if name != own and axes != place.leaves[0][1]:
                raise self._refusal(node, "broadcasts", "")
            self._conditions["True" if name == own else f"{FITS}({own}, {name})"] = None
        if not value.leaves:  # a number in all elements
            self._conditions["True"] = None
        index = self._names(place.type.ndim)
        store: Any = place.at(index)
        store.ctx = ast.Store()
        before += self._loops(index, place.lengths, [ast.Assign([store], value.at(index))])
        return before

    def _lower(self, node: ast.expr, before: list[ast.stmt]) -> _Elements:
        kind = self.types.of(node)
        if isinstance(kind, Value) and kind.ndim and kind.dtype.kind not in _RANKS:
            raise KernelCompileError("not of numbers")
        return super()._lower(node, before)

    def _operation(self, op: ast.operator, left: _Elements, right: _Elements) -> _Elements:
        made = super()._operation(op, left, right)
        if made.type.dtype.kind in "iu" and isinstance(op, ast.Pow):
            raise KernelCompileError("a power that may raise an exception")
        return made

    def _view(self, node: ast.expr, kind: Value, before: list[ast.stmt]) -> _Elements:
        if isinstance(node, ast.Name):
            name = node
        else:
            self._check_indices(node)
            view: Any = copied(node)
            view.ctx = ast.Load()
            text = ast.unparse(view)
            has_call = any(isinstance(each, ast.Call) for each in ast.walk(view))
            if has_call or text not in self._shown:
                self._shown[text] = self._assigned(view, self._heads)
            name = self._shown[text]
        lengths = tuple(
            ast.parse(f"{name.id}.shape[{axis}]", mode="eval").body for axis in range(kind.ndim)
        )

        def at(index: Sequence[str]) -> ast.expr:
            own = [ast.parse(each, mode="eval").body for each in index[-kind.ndim :]]
            place = own[0] if len(own) == 1 else ast.Tuple(own, ast.Load())
            return ast.Subscript(ast.Name(name.id, ast.Load()), place, ast.Load())

        return _Elements(kind, at, ((name.id, str(kind.ndim)),), lengths)

    def _check_indices(self, node: Any) -> None:
        """Refuse views of an array at integer or Boolean arrays, which are copies."""
        while not isinstance(node, ast.Name):
            for each in entries_of(node) if isinstance(node, ast.Subscript) else ():
                kind = None if isinstance(each, ast.Slice) else self.types.of(each)
                if kind is not None and not (isinstance(kind, Value) and kind.ndim == 0):
                    raise self._refusal(each, "an index that is an array", "")
            node = node.value

    def _product(self, node: ast.expr, both: list[ast.expr], before: list[ast.stmt]) -> ast.expr:
        return node  # `Casts` replaces it

    def _reduced(
        self, fold: str, value: _Elements, dtype: np.dtype[Any], before: list[ast.stmt]
    ) -> ast.expr:
        if fold in ("any", "all"):
            raise KernelCompileError("ends at the first element that decides")
        first = self._alike(value)
        self._conditions[f"{first}.size > 0"] = None
        index = self._names(value.type.ndim)
        total = self._names(1)[0]
        element = cast_to(value.at(index), dtype)
        start = cast_to(ast.Constant(int(fold == "prod")), dtype)
        read = ast.Name(total, ast.Load())
        op: ast.operator = ast.Mult() if fold == "prod" else ast.Add()
        function: ast.expr = ast.Attribute(ast.Name(NUMPY, ast.Load()), f"{fold}imum", ast.Load())
        if fold in ("min", "max"):
            start = value.at(["0"] * value.type.ndim)
            if dtype.kind == "f":
                function = ast.Name(LARGEST if fold == "max" else SMALLEST, ast.Load())
        elif dtype.kind in "fc":  # in any order, as NumPy's
            function = ast.Name(REORDERED[type(op)], ast.Load())
        update: ast.expr = ast.Call(function, [read, element], [])
        if fold not in ("min", "max") and dtype.kind in "iu":
            update = ast.BinOp(read, op, element)
        before.append(_assigned_to(total, start))
        before += self._loops(index, value.lengths, [_assigned_to(total, update)])
        result = ast.Name(total, ast.Load())
        if fold != "mean":
            return result
        count = ast.parse(f"{first}.size", mode="eval").body
        return ast.BinOp(result, ast.Div(), cast_to(count, dtype))

    @staticmethod
    def _element_function(name: str, arguments: list[ast.expr]) -> ast.expr:
        if name in OPERATORS:
            return Scalarizer._element_function(name, arguments)
        function = ast.Attribute(ast.Name(NUMPY, ast.Load()), name, ast.Load())
        return ast.Call(function, arguments, [])


def _assigned_to(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)
