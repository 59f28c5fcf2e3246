"""Array statements inside the loops of kernels, as loops over elements.

The kernel language works on elements. A statement on slices (``out[i, :] = a[i, :] * 2``) and a
reduction of one (``x[i].sum()``) become loops of the work-item. Views (``row = a[i]``) stay:
kernels have them. NumPy functions of numbers become those of :mod:`math`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from dparray._jit.inference import OPERATORS, UFUNCS, Inference, Value, is_array, resolve
from dparray._jit.kernel_texts import cast_to
from dparray._jit.source import Source, copied, entries_of, root_of
from dparray._language.device_function import DeviceFunction
from dparray.exceptions import KernelCompileError

_MATH_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "arctan2": "atan2", "deg2rad": "radians",
    "rad2deg": "degrees", "fabs": "fabs",
} | {
    name: name
    for name in (
        "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos",
        "tan", "sinh", "cosh", "tanh", "degrees", "radians", "floor", "ceil", "trunc", "isnan",
        "isinf", "isfinite", "hypot", "copysign", "fmod", "nextafter",
    )
    if hasattr(math, name)
}  # fmt: skip
_SIGNS: dict[str, Callable[[], ast.unaryop]] = {
    "negative": ast.USub, "positive": ast.UAdd, "invert": ast.Invert, "bitwise_invert": ast.Invert,
    "logical_not": ast.Not,
}  # fmt: skip
_FOLDS = {"sum": "sum", "prod": "prod", "min": "min", "amin": "min", "max": "max", "amax": "max",
          "mean": "mean", "any": "any", "all": "all"}  # fmt: skip
_MATH = "__math__"


def _maximum(x: Any, y: Any) -> Any:
    return x if x > y or x != x else y


def _minimum(x: Any, y: Any) -> Any:
    return x if x < y or x != x else y


def _square(x: Any) -> Any:
    return x * x


#: What the names in generated code stand for.
NAMES: dict[str, Any] = {
    _MATH: math,
    "__maximum__": DeviceFunction(_maximum, {}),
    "__minimum__": DeviceFunction(_minimum, {}),
    "__square__": DeviceFunction(_square, {}),
}
_HELPERS = {"maximum": "__maximum__", "minimum": "__minimum__", "square": "__square__"}


class _Elements(NamedTuple):
    """An array expression by its elements.

    Attributes:
        type: its dtype and number of dimensions.
        at: gives the expression of the element at indices, of which there are at least ``ndim``.
        leaves: the arrays that it reads: the name of each, and the axes that its index slices.
        lengths: gives the expression of the length of an axis.
    """

    type: Value
    at: Callable[[Sequence[str]], ast.expr]
    leaves: tuple[tuple[str, str], ...] = ()
    lengths: tuple[ast.expr, ...] = ()


class _Inversions(ast.NodeTransformer):
    """Write ``~b`` of NumPy's Booleans as ``b == False``: inversions of Booleans have no type."""

    def __init__(self, types: Inference) -> None:
        self._types = types

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        kind = self._types.of(node.operand) if isinstance(node.op, ast.Invert) else None
        if not isinstance(kind, Value) or kind.dtype.kind != "b" or kind.is_weak:
            return node
        compared = ast.Compare(node.operand, [ast.Eq()], [ast.Constant(False)])
        return ast.fix_missing_locations(ast.copy_location(compared, node))


class Scalarizer:
    """Rewrites the body of a loop for kernels.

    Attributes:
        has_loops: whether array statements were made into loops.
    """

    def __init__(self, source: Source, types: Inference, body: Sequence[ast.stmt]) -> None:
        self.source = source
        self.types = types
        self.has_loops = False
        self._count = 0
        self._line = 0
        self._elements: dict[str, _Elements] = {}
        self._views: dict[str, tuple[str, str]] = {}
        nodes = [node for each in body for node in ast.walk(each)]
        names = [node.id for node in nodes if isinstance(node, ast.Name)
                 and isinstance(node.ctx, ast.Store)]  # fmt: skip
        self._once = {name for name in names if names.count(name) == 1}
        shown = {
            target.id: root_of(node.value)
            for node in nodes
            if isinstance(node, ast.Assign) and _is_view(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        stored = [
            root_of(node) for node in nodes
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        ]  # fmt: skip
        self._written = {shown.get(name, name) for name in stored} | set(stored)

    # -- statements -----------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return statements on elements that do the same.

        Raises:
            KernelCompileError: a statement that kernels cannot have.
        """
        result: list[ast.stmt] = []
        for statement in body:
            self._line = statement.lineno
            for made in self._statement(_Inversions(self.types).visit(statement)):
                result.append(self._located(made, statement))
        return result

    def _statement(self, node: Any) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        if isinstance(node, ast.If | ast.While):
            node.test = self._scalar(node.test, before)
            if before and isinstance(node, ast.While):
                raise self._refusal(
                    node.test, "a while loop's condition computes with arrays",
                    "compute it into a variable before the loop and at the end of its body",
                )  # fmt: skip
        elif isinstance(node, ast.For):
            node.iter = self._scalar(node.iter, before)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            made = self._array_statement(node)
            if made is not None:
                return made
            if node.value is not None:
                node.value = self._scalar(node.value, before)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for each in ast.walk(target):
                    if isinstance(each, ast.Subscript):
                        each.slice = self._scalar(each.slice, before)
        elif isinstance(node, ast.Expr):
            node.value = self._scalar(node.value, before)
        for name in ("body", "orelse"):
            if getattr(node, name, None) and not isinstance(node, ast.FunctionDef):
                setattr(node, name, self.block(getattr(node, name)))
        return [*before, node]

    def _array_statement(self, node: Any) -> list[ast.stmt] | None:
        """Return the loops of an assignment of arrays; ``None`` for other assignments."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        kinds = [self.types.of(target) for target in targets]
        if isinstance(targets[0], ast.Name) and not isinstance(node, ast.AugAssign):
            kinds = [self.types.of(node.value)] if node.value is not None else []
        if not any(map(is_array, kinds)):
            return None
        if len(targets) != 1:
            raise self._refusal(node, "an array is assigned to several targets", "assign it twice")
        target = targets[0]
        before: list[ast.stmt] = []
        if isinstance(target, ast.Name) and isinstance(node, ast.AugAssign):
            target = ast.copy_location(ast.Subscript(target, ast.Slice(), ast.Load()), target)
        if isinstance(target, ast.Name):
            if _is_view(node.value):
                root, axes = self._leaf(node.value)
                self._views[target.id] = root, axes if target.id in self._once else target.id
                node.value = self._scalar(node.value, before)
                return [*before, node]
            value = self._lower(node.value, before)
            self._keep(node, target.id, value)
            return before
        value = self._lower(node.value, before)
        place = self._lower(target, before)
        if value.type.ndim > place.type.ndim:
            raise self._refusal(
                node, f"{value.type.ndim} dimensions do not fit into {place.type.ndim}", ""
            )
        if isinstance(node, ast.AugAssign):
            value = self._operation(node.op, place, value)
        own = place.leaves[0]
        for name, axes in value.leaves:
            if name == own[0] and axes != own[1]:
                raise self._refusal(
                    node, f"both sides are slices of {name} that may overlap, and a work-item has "
                    "no memory for a copy",
                    "write the result into another array, or write a loop over the elements",
                )  # fmt: skip
        index = self._names(place.type.ndim)
        store = ast.Assign([_stored(place.at(index))], value.at(index))
        return [*before, *self._loops(index, place.lengths, [store])]

    def _keep(self, node: Any, name: str, value: _Elements) -> None:
        """Let a variable stand for an array expression, which is computed where it is read."""
        if name not in self._once or {root for root, _ in value.leaves} & self._written:
            raise self._no_memory(node, name)
        self._elements[name] = value
        self.has_loops = True

    def _loops(
        self, index: Sequence[str], lengths: Sequence[ast.expr], body: list[ast.stmt]
    ) -> list[ast.stmt]:
        self.has_loops = True
        for name, length in zip(reversed(index), reversed(lengths), strict=True):
            iterated = ast.Call(ast.Name("range", ast.Load()), [copied(length)], [])
            body = [ast.For(ast.Name(name, ast.Store()), iterated, body, [])]
        return body

    # -- arrays by their elements ---------------------------------------------------------------

    def _lower(self, node: ast.expr, before: list[ast.stmt]) -> _Elements:
        """Return an expression by its elements; statements that it needs first go to ``before``."""
        kind = self.types.of(node)
        if isinstance(node, ast.Name) and node.id in self._elements:
            return self._elements[node.id]
        if not isinstance(kind, Value):
            called = self.types.called(node) if isinstance(node, ast.Call) else ""
            problem = f"{called} of an array is not available in a kernel"
            raise self._refusal(
                node, problem if called else "the type of this expression is not known",
                "write a loop over the elements",
            )  # fmt: skip
        if not kind.ndim:
            value = self._scalar(node, before)
            if not isinstance(value, ast.Name | ast.Constant):
                value = self._assigned(value, before)
            return _Elements(kind, lambda index: copied(value))
        if _is_view(node):
            if root_of(node) in self._elements:
                raise self._no_memory(node, root_of(node))
            return self._view(node, kind, before)
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
            left, right = self._lower(node.left, before), self._lower(node.right, before)
            return self._operation(node.op, left, right)
        if isinstance(node, ast.UnaryOp):
            value_of = self._lower(node.operand, before)
            return value_of._replace(
                type=kind,
                at=lambda index: self._of_dtype(
                    ast.UnaryOp(node.op, value_of.at(index)), kind.dtype
                ),
            )
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            first = self._lower(node.left, before)
            second = self._lower(node.comparators[0], before)
            return _together(
                kind, [first, second], lambda parts: ast.Compare(parts[0], node.ops, [parts[1]])
            )
        if isinstance(node, ast.Call):
            return self._call(node, kind, before)
        raise self._refusal(node, "this array expression is not available in a kernel",
                            "write a loop over the elements")  # fmt: skip

    def _operation(self, op: ast.operator, left: _Elements, right: _Elements) -> _Elements:
        operands = [left.type, right.type]
        found = resolve(UFUNCS[type(op)], operands)
        kind = self.types.binary(op, *operands)
        if found is None or not isinstance(kind, Value):
            raise KernelCompileError("an operation of arrays whose types are not known")

        def element(parts: list[ast.expr]) -> ast.expr:
            first, second = _converted(parts, operands, found)
            return self._of_dtype(ast.BinOp(first, op, second), found[-1])

        return _together(kind, [left, right], element)

    def _view(self, node: ast.expr, kind: Value, before: list[ast.stmt]) -> _Elements:
        """Return an array, or a view of one, by its elements."""
        leaf = self._leaf(node)
        if isinstance(node, ast.Attribute):  # the transpose
            inner = self._lower(node.value, before)
            own = inner.type.ndim
            return _Elements(
                kind, lambda index: inner.at(list(reversed(index[len(index) - own :]))),
                inner.leaves, tuple(reversed(inner.lengths)),
            )  # fmt: skip
        axes: list[bool] = [True] * kind.ndim
        name = node
        if isinstance(node, ast.Subscript):
            entries = entries_of(node)
            added = [_is_none(each) for each in entries]
            if any(added):
                count = len(entries) - sum(added)
                axes = [not new for each, new in zip(entries, added, strict=True)
                        if new or isinstance(each, ast.Slice)]  # fmt: skip
                base = self.types.of(node.value)
                axes += [True] * (base.ndim - count)
                kept: list[ast.expr] = [e for e, new in zip(entries, added, strict=True) if not new]
                if any(isinstance(e, ast.Constant) and e.value is Ellipsis for e in kept):
                    raise self._refusal(node, "... beside None is not available in a kernel", "")
                index = ast.Tuple(kept, ast.Load()) if kept else ast.Slice()
                node = ast.copy_location(ast.Subscript(node.value, index, ast.Load()), node)
            read = ast.Subscript(node.value, self._scalar(copied(node.slice), before), ast.Load())
            name = self._assigned(ast.copy_location(read, node), before)
        assert isinstance(name, ast.Name)
        lengths = [_length(name.id, axis) for axis in range(sum(axes))]
        # A number that an index is multiplied by, so that axes of one element are broadcast.
        factors = [
            self._assigned(ast.parse(f"1 if {ast.unparse(each)} != 1 else 0", mode="eval").body,
                           before)
            for each in lengths
        ]  # fmt: skip
        positions = [at for at, is_real in enumerate(axes) if is_real]
        one = ast.Constant(1)
        shown = iter(lengths)

        def at(index: Sequence[str]) -> ast.expr:
            own = index[len(index) - len(axes) :]
            parts: list[ast.expr] = [
                ast.BinOp(ast.Name(own[position], ast.Load()), ast.Mult(), copied(factor))
                for position, factor in zip(positions, factors, strict=True)
            ]
            place = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
            return ast.Subscript(ast.Name(name.id, ast.Load()), place, ast.Load())

        return _Elements(
            kind, at, (leaf,), tuple(next(shown) if is_real else one for is_real in axes)
        )

    def _leaf(self, node: ast.expr) -> tuple[str, str]:
        """Return the array that a view shows, and which of its axes are sliced how."""
        root = root_of(node)
        if root in self._views:
            shown, axes = self._views[root]
            root = shown
        else:
            axes = ""
        if isinstance(node, ast.Subscript):
            entries = [ast.unparse(each) if isinstance(each, ast.Slice) else "at"
                       for each in entries_of(node)]  # fmt: skip
            while entries and entries[-1] == ":":  # as if it were not there
                entries.pop()
            axes += ", ".join(entries)
        elif isinstance(node, ast.Attribute):
            axes += ".T"
        return root, axes

    def _operands(self, node: ast.Call) -> list[ast.expr]:
        """Return the arguments of a function of NumPy, or of a method with its array."""
        if isinstance(node.func, ast.Attribute):
            array = node.func.value
            if isinstance(self.types.of(array), Value):
                return [array, *node.args]
        return list(node.args)

    def _call(self, node: ast.Call, kind: Value, before: list[ast.stmt]) -> _Elements:
        """Return a call of an element-wise function."""
        name, given = self.types.called(node), self._operands(node)
        if name in ("astype", "copy", "asarray", "ascontiguousarray") and given:
            value = self._lower(given[0], before)
            return value._replace(type=kind, at=lambda index: cast_to(value.at(index), kind.dtype))
        arguments = [self._lower(each, before) for each in given]
        operands = [each.type for each in arguments]
        if name == "where" and len(arguments) == 3:
            return _together(
                kind, arguments, lambda parts: ast.IfExp(
                    parts[0], *_converted(parts[1:], operands[1:], [kind.dtype] * 2)
                ),
            )  # fmt: skip
        ufunc = vars(np).get(name)
        found = resolve(ufunc, operands) if isinstance(ufunc, np.ufunc) else None
        if found is None or node.keywords or not self._has_element_function(name):
            raise self._refusal(
                node, f"{name or 'this function'} of an array is not available in a kernel",
                "write a loop over the elements",
            )  # fmt: skip
        dtypes = found

        def element(parts: list[ast.expr]) -> ast.expr:
            converted = _converted(parts, operands, dtypes)
            return self._of_dtype(self._element_function(name, converted), dtypes[-1])

        return _together(kind, arguments, element)

    # -- numbers --------------------------------------------------------------------------------

    @staticmethod
    def _has_element_function(name: str) -> bool:
        return name in {*_MATH_NAMES, *_HELPERS, *_SIGNS, *OPERATORS, "abs", "absolute"}

    @staticmethod
    def _element_function(name: str, arguments: list[ast.expr]) -> ast.expr:
        """Return a function of NumPy applied to numbers."""
        if name in OPERATORS:
            return ast.BinOp(arguments[0], OPERATORS[name](), arguments[1])
        if name in _SIGNS:
            return ast.UnaryOp(_SIGNS[name](), arguments[0])
        function: ast.expr = ast.Name("abs", ast.Load())
        if name in _HELPERS:
            function = ast.Name(_HELPERS[name], ast.Load())
        elif name in _MATH_NAMES:
            function = ast.Attribute(ast.Name(_MATH, ast.Load()), _MATH_NAMES[name], ast.Load())
        return ast.Call(function, arguments, [])

    def _scalar(self, node: ast.expr, before: list[ast.stmt]) -> Any:
        """Return an expression of numbers, in which reductions of arrays are variables."""
        scalarizer = self

        class Numbers(ast.NodeTransformer):
            def visit_Call(self, call: ast.Call) -> ast.AST:
                reduced = scalarizer._reduction(call, before)
                if reduced is not None:
                    return reduced
                values = [scalarizer.types.of(argument) for argument in call.args]
                self.generic_visit(call)
                name = scalarizer.types.called(call)
                ufunc = vars(np).get(name)
                function = scalarizer.source.resolve(call.func)
                is_numpy = isinstance(function, np.ufunc) or (isinstance(ufunc, np.ufunc) and (
                    (getattr(function, "__module__", None) or "").partition(".")[0]
                    in ("dparray", "dpnp")
                ))  # fmt: skip
                if not is_numpy or not all(
                    isinstance(value, Value) and not value.ndim for value in values
                ):
                    return call
                found = resolve(cast("np.ufunc", ufunc), values)
                if found is None or call.keywords or not scalarizer._has_element_function(name):
                    return call
                numbers = _converted(call.args, values, found)
                value = scalarizer._element_function(name, numbers)
                value = scalarizer._of_dtype(value, found[-1])
                return ast.fix_missing_locations(ast.copy_location(value, call))

            def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
                elements = scalarizer._elements.get(root_of(node))
                if elements is not None:
                    return scalarizer._element_of(node, elements, before)
                self.generic_visit(node)
                return node

            def visit_Name(self, node: ast.Name) -> ast.AST:
                if node.id in scalarizer._elements:
                    raise scalarizer._no_memory(node, node.id)
                return node

            def visit_BinOp(self, operation: ast.BinOp) -> ast.AST:
                if isinstance(operation.op, ast.MatMult):
                    both = [operation.left, operation.right]
                    return scalarizer._product(operation, both, before)
                self.generic_visit(operation)
                return operation

        return Numbers().visit(node)

    def _element_of(
        self, node: ast.Subscript, elements: _Elements, before: list[ast.stmt]
    ) -> ast.expr:
        """Return an element of an array expression that a variable stands for."""
        entries = entries_of(node)
        numbers = [each.value if isinstance(each, ast.Constant) else None for each in entries]
        are_indices = all(type(each) is int and each >= 0 for each in numbers)
        is_element = isinstance(node.value, ast.Name) and len(entries) == elements.type.ndim
        if not (is_element and are_indices):
            raise self._no_memory(node, root_of(node))
        return elements.at([self._assigned(each, before).id for each in entries])

    def _no_memory(self, node: ast.AST, name: str) -> KernelCompileError:
        return self._refusal(
            node, f"{name} is a new array, for which a work-item has no memory",
            "write into an array made outside of the loop (out[i, :] = ...)",
        )  # fmt: skip

    def _reduction(self, node: ast.Call, before: list[ast.stmt]) -> ast.expr | None:
        """Return a variable with the reduction of an array; ``None`` for any other call."""
        name, given = self.types.called(node), self._operands(node)
        kinds = [self.types.of(each) for each in given]
        if name in ("dot", "vdot", "inner") and len(given) == 2 and all(map(is_array, kinds)):
            return self._product(node, given, before)
        if name not in _FOLDS or not given or not is_array(kinds[0]):
            return None
        kind = self.types.of(node)
        if len(given) != 1 or node.keywords or not isinstance(kind, Value) or kind.ndim:
            raise self._refusal(
                node, f"{name} along an axis is not available in a kernel",
                "reduce rows in a loop, or the whole array outside of the loop",
            )  # fmt: skip
        return self._reduced(_FOLDS[name], self._lower(given[0], before), kind.dtype, before)

    def _product(
        self, node: ast.expr, both: list[ast.expr], before: list[ast.stmt]
    ) -> ast.expr:  # fmt: skip
        left, right = (self._lower(each, before) for each in both)
        if left.type.ndim != 1 or right.type.ndim != 1:
            raise self._refusal(
                node, "a product of matrices is not available in a kernel",
                "multiply outside of the prange loop: a @ b",
            )  # fmt: skip
        products = self._operation(ast.Mult(), left, right)
        return self._reduced("sum", products, products.type.dtype, before)

    def _reduced(
        self, fold: str, value: _Elements, dtype: np.dtype[Any], before: list[ast.stmt]
    ) -> ast.expr:
        index = self._names(value.type.ndim)
        first = value.at(index)
        total = self._names(1)[0]
        read = ast.Name(total, ast.Load())
        start: ast.expr = ast.Constant(dtype.type(fold in ("prod", "all")).item())
        element = self._of_dtype(first, dtype)
        if fold in ("min", "max"):
            zeros = [f"{name}" for name in index]
            before += [_assignment(name, ast.Constant(0)) for name in zeros]
            start = value.at(index)
            function = ast.Name(f"__{fold}imum__", ast.Load())
            combined: ast.expr = ast.Call(function, [read, element], [])
        elif fold in ("any", "all"):
            op: ast.operator = ast.BitOr() if fold == "any" else ast.BitAnd()
            if value.type.dtype.kind != "b":
                element = ast.Compare(first, [ast.NotEq()], [ast.Constant(0)])
            combined = ast.BinOp(read, op, element)
        else:
            op = ast.Mult() if fold == "prod" else ast.Add()
            combined = ast.BinOp(read, op, cast_to(first, dtype))
        before.append(_assignment(total, cast_to(start, dtype)))
        store = _assignment(total, cast_to(combined, dtype))
        before += self._loops(index, value.lengths, [store])
        if fold == "mean":
            count: ast.expr = copied(value.lengths[0])
            for length in value.lengths[1:]:
                count = ast.BinOp(count, ast.Mult(), copied(length))
            quotient = ast.BinOp(ast.Name(total, ast.Load()), ast.Div(), cast_to(count, dtype))
            before.append(_assignment(total, cast_to(quotient, dtype)))
        return ast.Name(total, ast.Load())

    # -- helpers --------------------------------------------------------------------------------

    def _located(self, made: ast.stmt, statement: ast.stmt) -> ast.stmt:
        """Give the generated parts of a statement the line of the user's."""
        for node in cast("Iterator[Any]", ast.walk(made)):
            is_placed = isinstance(node, ast.expr | ast.stmt)
            if is_placed and getattr(node, "lineno", 0) <= self.source.first_line:
                ast.copy_location(node, statement)
        return ast.fix_missing_locations(made)

    def _names(self, count: int) -> list[str]:
        first = self._count
        self._count += count
        return [f"__e{first + at}" for at in range(count)]

    def _assigned(self, value: ast.expr, before: list[ast.stmt]) -> ast.Name:
        name = self._names(1)[0]
        before.append(_assignment(name, value))
        return ast.Name(name, ast.Load())

    @staticmethod
    def _of_dtype(node: ast.expr, dtype: np.dtype[Any]) -> ast.expr:
        """Return a result in NumPy's dtype, where that of the kernel language may be wider."""
        return node if dtype in _AGREED else cast_to(node, dtype)

    def _refusal(self, node: ast.AST, problem: str, fix: str) -> KernelCompileError:
        if not hasattr(node, "lineno"):
            node = ast.Pass(lineno=self._line, col_offset=self.source.indent_of(self._line))
        return self.source.error(node, problem, fix)


#: Dtypes of operations whose result has the same dtype in the kernel language.
_AGREED = frozenset(map(np.dtype, ("float64", "int64", "complex128", "bool", "float32")))


def _converted(
    nodes: Sequence[ast.expr], kinds: Sequence[Value], dtypes: Sequence[np.dtype[Any]]
) -> list[ast.expr]:
    """Return expressions of numbers, converted to the first of the dtypes."""
    return [
        node if kind.dtype == dtype else cast_to(node, dtype)
        for node, kind, dtype in zip(nodes, kinds, dtypes, strict=False)
    ]


def _together(
    kind: Value, parts: Sequence[_Elements], element: Callable[[list[ast.expr]], ast.expr]
) -> _Elements:
    """Return an element-wise combination of expressions, broadcast."""
    ndim = kind.ndim
    lengths: list[ast.expr] = []
    for axis in range(ndim):
        known = [
            each.lengths[axis - ndim + each.type.ndim]
            for each in parts
            if each.type.ndim >= ndim - axis
        ]
        length = known[0]
        for other in known[1:]:
            if ast.dump(other) == ast.dump(length):
                continue
            if isinstance(length, ast.Constant):
                length = other
            elif not isinstance(other, ast.Constant):
                call = ast.Call(ast.Name("max", ast.Load()), [length, other], [])
                length = call
        lengths.append(length)
    return _Elements(
        kind,
        lambda index: element([each.at(index) for each in parts]),
        tuple(leaf for each in parts for leaf in each.leaves),
        tuple(lengths),
    )


def _is_view(node: ast.expr | None) -> bool:
    """Return whether an expression shows an array: a name, its basic indexing or transpose."""
    if isinstance(node, ast.Attribute):
        return node.attr == "T" and _is_view(node.value)
    return isinstance(node, ast.Name) or (isinstance(node, ast.Subscript) and _is_view(node.value))


def _is_none(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "newaxis"
    return isinstance(node, ast.Constant) and node.value is None


def _length(name: str, axis: int) -> ast.expr:
    return ast.parse(f"{name}.shape[{axis}]", mode="eval").body


def _assignment(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _stored(node: ast.expr) -> ast.expr:
    place: Any = node
    place.ctx = ast.Store()
    return node
