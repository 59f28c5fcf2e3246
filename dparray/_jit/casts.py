"""Conversions that make Numba compute with the dtypes of NumPy 2, and checks that it leaves out.

Numba widens integers in an expression and lets LLVM assume that signed ones do not overflow.
NumPy's results have a dtype of their own, in which they wrap around. Operations on float64 and
complex128 alone stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dparray import config
from dparray._jit.inference import (
    COMPARISONS,
    DEFAULT_DTYPES,
    ON_PYTHON,
    OPERATORS,
    UFUNCS,
    UNKNOWN,
    WEAK_INT,
    Inference,
    Known,
    Value,
    is_array,
    is_number,
    resolve,
)
from dparray._jit.native_functions import (
    INTEGER_CODE,
    apart_from,
    dot_of,
    fitted_to,
    integer_call,
    loaded,
    mask_of,
    operation_of,
    product_with,
    selected_by,
    sum_of_product,
)
from dparray._jit.signs import is_natural
from dparray._jit.source import Source, assigned_names, root_of
from dparray._language.constants import is_too_large

#: The name of NumPy in generated code.
NUMPY = "__numpy__"


class Casts(ast.NodeTransformer):
    """Rewrites the operations of a function.

    Args:
        types: the types of the function.

    Attributes:
        doubts: operations with unknown types, for which Numba's typing decides.
    """

    def __init__(self, types: Inference) -> None:
        self.types = types
        self.doubts: list[ast.expr | ast.stmt] = []

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Convert the operands and the result of an operation."""
        left, right = self.types.of(node.left), self.types.of(node.right)
        if isinstance(node.op, ast.MatMult) and left == right:
            sides = [node.left, node.right]
            gathered = next(filter(self._is_gathered, sides), None)
            if isinstance(gathered, ast.Subscript):
                sides.remove(gathered)
                vector, values, at = map(self.visit, (*sides, gathered.value, gathered.slice))
                return product_with(vector, values, at)
            if self._are_vectors(node.left, node.right):
                return dot_of(*map(self.visit, sides))
        if isinstance(node.op, ast.Pow | ast.LShift):
            number = _folded(node)
            if number is not None and not -(2**63) <= number < 2**64:
                # The compilers would wrap such a number around; they reject it as a constant.
                return ast.copy_location(ast.Constant(number), node)
        self.generic_visit(node)
        return self._converted(node, left, right)

    def _are_vectors(self, *nodes: ast.expr) -> bool:
        """Return whether expressions are vectors of one dtype of floats, in native code."""
        kinds = [self.types.of(each) for each in nodes]
        are_alike = len(kinds) == 2 and kinds[0] == kinds[1]
        kind = kinds[0] if are_alike else None
        return isinstance(kind, Value) and kind.ndim == 1 and kind.dtype.kind == "f"

    def _is_gathered(self, node: ast.expr) -> bool:
        """Return whether an expression is a vector of floats at integer indices: ``x[at]``."""
        if not isinstance(node, ast.Subscript) or config.debug:  # which checks the indices
            return False
        base, at = self.types.of(node.value), self.types.of(node.slice)
        are_vectors = all(isinstance(each, Value) and each.ndim == 1 for each in (base, at))
        return are_vectors and base.dtype.kind == "f" and at.dtype.kind in "iu"

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Convert ``x op= y`` for a number to an assignment, whose operation can be converted."""
        left, right = self.types.of(node.target), self.types.of(node.value)
        updates_array = is_array(left)
        is_separate = updates_array and _is_separate(node, left, right)
        self.generic_visit(node)
        if updates_array:
            if is_separate:
                made: Any = separated(node)
                made.value = self._converted(made.value, left, right)
                return made
            if isinstance(right, Value) and right.is_weak and left.dtype not in DEFAULT_DTYPES:
                node.value = cast_to(node.value, left.dtype)
            else:
                node.value = self._apart(node.target, node.value)
            if not is_number(right):
                node.value = fitted_to(node.target, node.value)
            return node
        if left is UNKNOWN and not is_number(right):
            node.value = fitted_to(node.target, node.value)
        if not isinstance(left, Value):  # which may be an array, and is then changed in place
            self.doubts.append(node)
            return node
        load = loaded(node.target)
        value = ast.copy_location(ast.BinOp(load, node.op, node.value), node)
        value.__dict__ |= {"is_natural": is_natural(node)}
        converted = self._converted(value, left, right)
        if converted is value and value.op is node.op:
            return node
        return ast.copy_location(ast.Assign([node.target], converted), node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Give a slice the values that its right side had before, as NumPy does."""
        targets, values = node.targets, [node.value]
        if isinstance(targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            targets, values = targets[0].elts, node.value.elts
        if len(targets) == 1 or not any(map(self._is_slice, targets)):
            is_slice = self._is_slice(node.targets[0])
            own, kind = self.types.of(node.targets[0]), self.types.of(node.value)
            self.generic_visit(node)
            is_wide = isinstance(node.targets[0], ast.Name) and own == Value(_WIDE)
            if is_wide and kind == WEAK_INT and (_integer(node.value) or 0) >= 0:
                node.value = cast_to(node.value, _WIDE)  # Numba's join with uint64 is float64
            if is_slice:
                node.value = self._apart(node.targets[0], node.value)
            return node
        names = [f"__value_{node.lineno}_{at}" for at in range(len(values))]
        made = [ast.Assign([ast.Name(name, ast.Store())], value)
                for name, value in zip(names, values, strict=True)]  # fmt: skip
        loaded = [ast.Name(names[at % len(names)], ast.Load()) for at in range(len(targets))]
        made += [ast.Assign([target], value) for target, value in zip(targets, loaded, strict=True)]
        return [self.visit(_at(node, each)) for each in made]

    def _is_slice(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Subscript) and not is_number(self.types.of(node))

    def _apart(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """Return a value that overlaps a target only if both have the same elements."""
        kind = self.types.of(value)
        is_view = isinstance(value, ast.Name | ast.Subscript | ast.Attribute | ast.IfExp)
        if isinstance(value, ast.Call):
            is_view = kind is UNKNOWN or self.types.called(value) in _VIEWS
        if not is_view or is_number(kind):
            return value
        index = self.types.of(target.slice) if isinstance(target, ast.Subscript) else None
        if isinstance(index, Value) and index.ndim:  # the target is no view
            return _at(value, ast.Call(ast.Attribute(value, "copy", ast.Load()), [], []))
        roots = {root_of(target), root_of(value)}
        return apart_from(target, value, len(roots & self.types.parameters.keys()) == 2)

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Make ``np.add(x, y, out)`` an assignment, whose operation can be converted."""
        call: Any = node.value
        ufunc = vars(np).get(self.types.called(call)) if isinstance(call, ast.Call) else None
        if isinstance(ufunc, np.ufunc) and _has_positional_out(call, ufunc):
            made = ast.Call(call.func, call.args[:-1], [])
            kinds = [*map(self.types.of, [made, *call.args])]
            is_known = all(isinstance(each, Value) for each in kinds)
            is_float = is_known and all(each.is_weak or each.dtype.char in "dD" for each in kinds)
            is_cast = is_known and np.can_cast(kinds[0].dtype, kinds[-1].dtype, "same_kind")
            if is_cast and not is_float:
                out: Any = call.args[-1]
                out = ast.Subscript(out, ast.Slice()) if isinstance(out, ast.Name) else out
                out.ctx = ast.Store()
                return self.visit(_at(node, ast.Assign([out], made)))
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Convert the Python numbers among the arguments of an element-wise function, and call a
        user's function that is compiled for these types.
        """
        if self.types.users_callee(node) is not None:
            kinds = self.types.types_of_arguments(node)
            self.generic_visit(node)
            if kinds:
                name = ast.Name(_typed_name(ast.unparse(node.func), kinds), ast.Load())
                node.func = ast.copy_location(name, node.func)
            return node
        compared = _COMPARED.get(self.types.called(node))
        if compared is not None and len(node.args) == 2 and not node.keywords:
            return self.visit(_at(node, ast.Compare(node.args[0], [compared()], node.args[1:])))
        product, axes = self._summed(node)
        if axes and isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
            product = self.visit(product)
            if isinstance(product, ast.BinOp):
                return sum_of_product(product.left, product.right, axes)
        if self.types.called(node) in ("dot", "vdot", "inner") and self._are_vectors(*node.args):
            return dot_of(*map(self.visit, node.args))
        result = self.types.of(node)
        values = [self.types.of(argument) for argument in node.args]
        ufunc = vars(np).get(self.types.called(node))
        converts = self._makes_python_number(node, result)
        self.generic_visit(node)
        if converts:
            return cast_to(node, result.dtype)
        if isinstance(ufunc, np.ufunc) and _has_positional_out(node, ufunc):
            out, inputs = node.args[ufunc.nin], node.args[: ufunc.nin]
            node.args[: ufunc.nin] = [fitted_to(out, self._apart(out, each)) for each in inputs]
            return node
        if self.types.called(node) == "where" and isinstance(result, Value) and len(values) == 3:
            for at in (1, 2):
                if values[at].is_weak and not result.is_weak:
                    node.args[at] = cast_to(node.args[at], result.dtype)
        if self.types.called(node) == "abs":
            ufunc = np.absolute
        if not isinstance(ufunc, np.ufunc) or not isinstance(result, Value):
            return node
        if not all(isinstance(value, Value) for value in values):
            return node
        name, dtype = ufunc.__name__, result.dtype
        is_integer = dtype.kind in "biu" and not result.is_weak
        if is_integer or name == "floor_divide":  # which Numba computes differently from //
            if name in OPERATORS:
                operation = ast.BinOp(node.args[0], OPERATORS[name](), node.args[1])
                operation.__dict__ |= {"is_natural": True}  # its result is an integer
                return self._converted(_at(node, operation), *values)
            is_own = name in INTEGER_CODE and (name == "square" or dtype not in DEFAULT_DTYPES)
            if is_own:
                return integer_call(name, dtype, *node.args)
        found = resolve(ufunc, values)
        if found is None or _is_default(values):
            return node
        for position, value in enumerate(values):
            if value.dtype != found[position]:
                node.args[position] = _as(node.args[position], value, found[position])
        return cast_to(node, dtype) if dtype.kind in "iu" and not result.ndim else node

    def _makes_python_number(self, node: ast.Call, result: Any) -> bool:
        """Return whether a call makes a Python number of one for which Numba keeps the type."""
        name, values = self.types.called(node), [self.types.of(each) for each in node.args]
        if name == "item":
            return is_number(result)
        if name in ("int", "float", "complex", "round"):
            is_other = any(not (is_number(each) and each.is_weak) for each in values)
            return is_number(result) and result.is_weak and is_other
        are_integers = bool(values) and all(
            is_number(each) and each.dtype.kind in "iu" for each in values
        )
        return result == WEAK_INT and are_integers and name not in ("len", "ord")

    def _summed(self, node: ast.expr) -> tuple[ast.expr, list[int]]:
        """Return what nested calls of ``np.sum`` sum, and the axes, from the inside out."""
        if not isinstance(node, ast.Call) or self.types.called(node) != "sum":
            return node, []
        function, parts = node.func, [*node.args, *(each.value for each in node.keywords)]
        if isinstance(function, ast.Attribute) and not isinstance(
            self.types.of(function.value), Known
        ):
            parts.insert(0, function.value)
        axis = _integer(parts[1]) if len(parts) == 2 else None
        if axis is None or not {each.arg for each in node.keywords} <= {"axis"}:
            return node, []
        summed, axes = self._summed(parts[0])
        return summed, [*axes, axis]

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Check the lengths of masks."""
        base, index = self.types.of(node.value), self.types.of(node.slice)
        are_vectors = all(isinstance(each, Value) and each.ndim == 1 for each in (base, index))
        if are_vectors and index.dtype.kind == "b" and isinstance(node.ctx, ast.Load):
            return selected_by(self.visit(node.value), self.visit(node.slice))
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        masks = [self._may_be_mask(node.value, entry) for entry in entries]
        self.generic_visit(node)
        changed = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for at, is_mask in enumerate(masks):
            others = [ast.unparse(each) for each in entries[:at]]
            if is_mask and not {"None", "...", "np.newaxis"} & {*others}:
                changed[at] = mask_of(node.value, at, changed[at])
        if len(changed) == 1 and not isinstance(node.slice, ast.Tuple):
            node.slice = changed[0]
        return node

    def _may_be_mask(self, array: ast.expr, index: ast.expr) -> bool:
        base, kind = self.types.of(array), self.types.of(index)
        if kind is UNKNOWN:
            is_other = isinstance(base, Value) or base is UNKNOWN
            return is_other and isinstance(index, ast.Name | ast.Compare | ast.BinOp)
        return is_array(kind) and kind.dtype.kind == "b"

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Keep the dtype of a value that Numba would widen."""
        value = self.types.of(node.operand)
        self.generic_visit(node)
        if isinstance(node.op, ast.Not | ast.UAdd) or not isinstance(value, Value):
            return node
        if isinstance(node.op, ast.Invert) and value.dtype.kind == "b" and not value.is_weak:
            return _at(node, ast.Compare(node.operand, [ast.Eq()], [ast.Constant(False)]))
        if value.is_weak or _is_default((value,)):
            return node
        if value.ndim:
            name = "negative" if isinstance(node.op, ast.USub) else "invert"
            is_integer = value.dtype.kind in "iu"
            return integer_call(name, value.dtype, node.operand) if is_integer else node
        node.operand = cast_to(node.operand, value.dtype)
        return cast_to(node, value.dtype)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Compare in NumPy's dtype, and compare uint64 exactly with signed integers."""
        values = list(map(self.types.of, [node.left, *node.comparators]))
        self.generic_visit(node)
        if len(values) != 2 or not all(isinstance(value, Value) for value in values):
            return node
        found = None if values[0].is_weak and values[1].is_weak else resolve(np.less, values)
        if found is None or type(node.ops[0]) not in COMPARISONS:
            return node
        if all(value.dtype.kind in "iu" for value in values):
            if any(value.dtype == np.uint64 for value in values):
                number = _integer(node.comparators[0])
                if number is not None and number >= 0:
                    node.comparators = [cast_to(node.comparators[0], np.dtype(np.uint64))]
                elif values[0].dtype != values[1].dtype:
                    name = COMPARISONS[type(node.ops[0])].__name__
                    return integer_call(name, np.dtype(bool), node.left, node.comparators[0])
        elif found[0].kind in "fc" and not _is_default(values):
            node.left = _as(node.left, values[0], found[0])
            node.comparators = [_as(node.comparators[0], values[1], found[1])]
        return node

    def _converted(self, node: ast.BinOp, left: Any, right: Any) -> Any:
        if not (isinstance(left, Value) and isinstance(right, Value)):
            self.doubts.append(node)
            is_narrow = isinstance(node.op, _WRAPPING | ast.FloorDiv | ast.LShift | ast.RShift)
            name = UFUNCS[type(node.op)].__name__ if is_narrow else ""
            return operation_of(name, node.left, node.right) if name else node
        if (left.is_weak and right.is_weak) or isinstance(node.op, ast.MatMult):
            are_integers = left.dtype.kind in "bi" and right.dtype.kind in "bi"
            if isinstance(node.op, ast.Pow) and are_integers and not is_natural(node):
                node.left, node.right = cast_to(node.left, _FLOAT), cast_to(node.right, _FLOAT)
            return node
        found = resolve(UFUNCS[type(node.op)], (left, right))
        if found is None:
            if not _is_default((left, right)):
                self.doubts.append(node)
            return node
        dtype, is_array = found[-1], bool(left.ndim or right.ndim)
        if dtype.kind == "b":
            if isinstance(node.op, ast.Add | ast.Mult):
                node.op = ast.BitOr() if isinstance(node.op, ast.Add) else ast.BitAnd()
            return node
        if dtype.kind in "iu":
            is_converted = is_array and (left.dtype != dtype or right.dtype != dtype)
            if is_converted or _differs(node.op, node.right, dtype, is_array):
                return integer_call(UFUNCS[type(node.op)].__name__, dtype, node.left, node.right)
            if dtype == np.int64 and isinstance(node.op, _WRAPPING):
                # Numba lets LLVM assume that only sums of unsigned integers overflow.
                node.left, node.right = cast_to(node.left, _WIDE), cast_to(node.right, _WIDE)
                return cast_to(node, dtype)
        if _is_default((left, right)) or _stays_in_range(node, (left, right), dtype):
            return node
        node.left = _as(node.left, left, found[0])
        node.right = _as(node.right, right, found[1])
        return node if is_array else cast_to(node, dtype)


def _typed_name(name: str, kinds: Sequence[Any]) -> str:
    """Return the name in generated code of a user's function for some types of arguments."""
    codes = (
        f"{kind.dtype} {kind.ndim} {kind.is_weak:d}" if isinstance(kind, Value) else ""
        for kind in kinds
    )
    return f"{name}({', '.join(codes)})"


def types_in_name(name: str) -> tuple[str, tuple[Any, ...]]:
    """Return the parts of such a name; the types of any other are empty."""
    plain, mark, codes = name.removesuffix(")").partition("(")
    found = [each.split() for each in codes.split(", ")] if mark else []
    return plain, tuple(
        Value(np.dtype(each[0]), int(each[1]), each[2] == "1") if each else UNKNOWN
        for each in found
    )


#: Functions and methods whose results may show the memory of an argument.
_VIEWS = frozenset({"reshape", "ravel", "transpose", "swapaxes", "view", "flip", "flipud", "fliplr",
                    "squeeze", "expand_dims", "broadcast_to", "asarray", "ascontiguousarray",
                    "atleast_1d", "atleast_2d", "diagonal", "diag", "astype"})  # fmt: skip


def _has_positional_out(node: ast.Call, ufunc: np.ufunc) -> bool:
    """Return whether a call has an ``out``; make it positional, because Numba takes no keyword."""
    if [each.arg for each in node.keywords] == ["out"]:
        node.args.append(node.keywords.pop().value)
    return len(node.args) > ufunc.nin


_WRAPPING = ast.Add | ast.Sub | ast.Mult
#: The operators of NumPy's functions that compare.
_COMPARED = {ufunc.__name__: kind for kind, ufunc in COMPARISONS.items()}
_WIDE = np.dtype(np.uint64)
_FLOAT = np.dtype(np.float64)


def _differs(op: ast.operator, right: ast.expr, dtype: np.dtype[Any], is_array: bool) -> bool:
    """Return whether Numba computes another result of integers than NumPy.

    Results of elements are converted to their dtype, those of arrays are not.
    """
    number, bits = _integer(right), 8 * dtype.itemsize
    if isinstance(op, _WRAPPING):
        return is_array and dtype != np.uint64
    if isinstance(op, ast.FloorDiv):  # the smallest integer by -1
        may_overflow = dtype.kind == "i" and (number is None or number == -1)
        return may_overflow and (is_array or bits == 64)
    if isinstance(op, ast.LShift | ast.RShift):
        is_in_range = number is not None and 0 <= number < bits
        return not is_in_range or (is_array and isinstance(op, ast.LShift) and bits < 64)
    if isinstance(op, ast.Pow):
        return number is None or number < 0 or (is_array and bits < 64)
    return False


def _is_separate(node: ast.AugAssign, left: Value, right: Any) -> bool:
    """Return whether Numba computes another result of ``x op= y`` for integers than NumPy."""
    is_product = isinstance(node.op, ast.MatMult)
    if left.dtype.kind not in "iub" or not isinstance(right, Value) or is_product:
        return False
    found = resolve(UFUNCS[type(node.op)], (left, right))
    if found is None or not np.can_cast(found[-1], left.dtype, "same_kind"):
        return False  # an error, as in NumPy
    is_other = found[-1] != left.dtype or left.dtype.kind == "b"
    return is_other or _differs(node.op, node.value, left.dtype, False)


def separated(node: ast.AugAssign) -> ast.Assign:
    """Return ``x[...] = x[...] op y`` for ``x[...] op= y``."""
    target: ast.expr = node.target
    value = ast.BinOp(loaded(target), node.op, node.value)
    if isinstance(target, ast.Name):
        target = ast.Subscript(loaded(target), ast.Slice(), ast.Store())
    made = ast.copy_location(ast.Assign([target], value), node)
    return ast.fix_missing_locations(made)


def check_literals(source: Source, types: Inference) -> None:
    """Reject integer literals that do not fit the integer arrays and elements they are used with.

    NumPy raises; the compilers would wrap the number around.

    Raises:
        OverflowError: a literal does not fit; the message has the line.
    """
    for node, dtype in (*_meetings(source.definition, types), *_items_of_arrays(source, types)):
        number = _integer(node)
        if number is not None:
            check_fit(source, node, number, dtype)


def check_fit(source: Source, node: ast.expr, number: int, dtype: np.dtype[Any]) -> None:
    """Raise NumPy's error for an integer that does not fit a dtype.

    Raises:
        OverflowError: with the line.
    """
    limits = np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise OverflowError(
            source.text_of_error(
                node,
                f"{number} does not fit into {dtype} ({limits.min} ... {limits.max})",
                "convert the array first, as in x.astype(np.int64)",
            )
        )


def parameters_in_bounds(source: Source, types: Inference) -> list[tuple[str, ast.expr, Any]]:
    """Return the parameters that are Python integers and certainly meet narrower ones: the name,
    where it does, and the dtype.

    Statements under a condition are left out, since they may not run.
    """
    assigned = assigned_names(source.definition.body)
    found: list[tuple[str, ast.expr, Any]] = []
    for statement in _unconditional(source.definition.body):
        for node, dtype in _meetings(statement, types):
            is_narrow = dtype.itemsize < 8 or dtype.kind == "u"
            if isinstance(node, ast.Name) and node.id not in assigned and is_narrow:
                kind = types.parameters.get(node.id)
                if isinstance(kind, Value) and kind.is_weak and kind.dtype.kind == "i":
                    found.append((node.id, node, dtype))
    return found


def _unconditional(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that every call runs, unless a loop has no iteration."""
    for statement in body:
        if isinstance(statement, ast.For):
            yield from _unconditional(statement.body)
        is_branch = isinstance(statement, ast.If | ast.While | ast.With | ast.Try)
        jumps = ast.Return | ast.Raise | ast.Break | ast.Continue
        if any(isinstance(node, jumps) for node in ast.walk(statement)):
            if isinstance(statement, ast.Return):
                yield statement
            return
        has_choice = any(isinstance(node, ast.IfExp | ast.BoolOp) for node in ast.walk(statement))
        if not (is_branch or has_choice or isinstance(statement, ast.For | ast.FunctionDef)):
            yield statement


def _meetings(tree: ast.AST, types: Inference) -> Iterator[tuple[ast.expr, np.dtype[Any]]]:
    """Yield the operands and stored values that take the dtype of the integers that they meet."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div):
            pairs += [(node.left, node.right), (node.right, node.left)]
        elif isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.Div):
            pairs.append((node.value, node.target))
        elif isinstance(node, ast.Assign):
            pairs += [
                (node.value, target.value)
                for target in node.targets
                if isinstance(target, ast.Subscript)
            ]
        elif isinstance(node, ast.Call):
            pairs += _operands_of_call(node, types)
    for own, other in pairs:
        kind = types.of(other)
        if isinstance(kind, Value) and not kind.is_weak and kind.dtype.kind in "iu":
            yield own, kind.dtype


def _items_of_arrays(source: Source, types: Inference) -> Iterator[tuple[ast.expr, np.dtype[Any]]]:
    """Yield the items of lists that become arrays of integers of a given dtype."""
    for node in ast.walk(source.definition):
        if not isinstance(node, ast.Call) or types.called(node) not in ("array", "asarray"):
            continue
        given = [each.value for each in node.keywords if each.arg == "dtype"] or node.args[1:2]
        dtype: Any = source.resolve(given[0]) if given else None
        is_list = bool(node.args) and isinstance(node.args[0], ast.List | ast.Tuple)
        if is_list and isinstance(dtype, type) and issubclass(dtype, np.integer):
            for each in ast.walk(node.args[0]):
                if isinstance(each, ast.expr):
                    yield each, np.dtype(dtype)


def _operands_of_call(node: ast.Call, types: Inference) -> list[tuple[ast.expr, ast.expr]]:
    """Return the operands of a function that take a dtype, each with what has that dtype."""
    name, result, values = types.called(node), types.of(node), node.args
    function = vars(np).get(name)
    if name == "fill" and len(values) == 1 and isinstance(node.func, ast.Attribute):
        return [(values[0], node.func.value)]
    if name in ("full", "full_like") and len(values) > 1:
        return [(values[1], node)]
    if not isinstance(result, Value) or any(each.arg == "dtype" for each in node.keywords):
        return []
    if isinstance(function, type) and issubclass(function, np.integer) and len(values) == 1:
        return [(values[0], node)]
    first = 1 if name == "where" and len(values) == 3 else 0
    is_binary = isinstance(function, np.ufunc) and function.nin == 2 and len(values) > 1
    if (first or is_binary) and result.dtype.kind in "iu":
        one, other = values[first : first + 2]
        return [(one, other), (other, one)]
    return []


def _stays_in_range(node: ast.BinOp, values: tuple[Value, Value], dtype: np.dtype[Any]) -> bool:
    """Return whether 64-bit integers give the same value as an operation of narrow integers.

    In that case no conversion is needed. Compilers generate slower code for narrow numbers: a CRC
    takes 2.7 times as long.
    """
    if any(value.ndim for value in values) or dtype.kind not in "iu" or dtype.itemsize == 8:
        return False
    if not isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.RShift):
        return False
    operands = (node.left, node.right)
    return all(
        _fits(operand, dtype) if value.is_weak else value.dtype.kind in "iu"
        for operand, value in zip(operands, values, strict=True)
    )


def _fits(node: ast.expr, dtype: np.dtype[Any]) -> bool:
    """Return whether an integer surely fits a dtype: a literal, or a number masked by one."""
    number = _integer(node)
    if number is not None:
        limits = np.iinfo(dtype)
        return limits.min <= number <= limits.max
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        masks = [_integer(part) for part in (node.left, node.right)]
        return any(mask is not None and 0 <= mask <= np.iinfo(dtype).max for mask in masks)
    return False


def _integer(node: ast.expr) -> int | None:
    """Return the value of an integer literal."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _integer(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def _is_default(values: Any) -> bool:
    dtypes = {value.dtype for value in values}
    # Numba divides two arrays of Booleans in float32.
    are_booleans = dtypes == {np.dtype(bool)} and len(values) > 1
    return dtypes <= DEFAULT_DTYPES and not are_booleans


def _as(node: ast.expr, value: Value, dtype: np.dtype[Any]) -> ast.expr:
    """Convert an operand to the dtype that the operation computes in."""
    if not value.ndim:
        return cast_to(node, dtype)
    if value.dtype == dtype:
        return node
    convert = ast.Attribute(node, "astype", ast.Load())
    return _at(node, ast.Call(convert, [dtype_of(dtype)], []))


def _folded(node: ast.expr) -> int | None:
    """Return the value of integer literals and operations on them.

    A number of thousands of digits is replaced by a smaller one that exceeds 64 bits, too.
    """
    if not isinstance(node, ast.BinOp):
        return _integer(node)
    left, right = _folded(node.left), _folded(node.right)
    if left is None or right is None:
        return None
    symbol = {ast.Pow: "**", ast.LShift: "<<"}.get(type(node.op), "")
    if is_too_large(symbol, left, right) and (right > 128 or left.bit_length() > 64):
        return 1 << 64
    try:
        number = ON_PYTHON[type(node.op)](left, right)
    except (ArithmeticError, KeyError, ValueError):
        return None
    return number if type(number) is int else None


def dtype_of(dtype: np.dtype[Any]) -> ast.expr:
    """Return the expression of a dtype's class."""
    name = "bool_" if dtype.kind == "b" else dtype.name
    return ast.Attribute(ast.Name(NUMPY, ast.Load()), name, ast.Load())


def _at(place: Any, node: ast.AST) -> Any:
    return ast.fix_missing_locations(ast.copy_location(node, place))


def cast_to(node: ast.expr, dtype: np.dtype[Any]) -> ast.expr:
    """Return a number converted to a dtype."""
    return _at(node, ast.Call(dtype_of(dtype), [node], []))
