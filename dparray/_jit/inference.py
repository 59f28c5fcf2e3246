"""Types of a function's expressions under the rules of NumPy 2.

The plan of a function depends on them: what is an array, what its regions take, what it returns.
The inference ignores the order of statements: a variable has the join of all its assignments. A
type that is not known exactly is :data:`UNKNOWN`, never a guess.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import operator
from collections.abc import Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from dparray._jit.signs import is_natural
from dparray._jit.source import Source, entries_of, source_of, users_function
from dparray.exceptions import KernelCompileError

#: How often a function is read until its types settle.
_MAX_READINGS = 6
#: For how many types of its arguments a recursive function may be compiled.
MAX_VERSIONS = 16


class Value(NamedTuple):
    """An array or a number.

    Attributes:
        dtype: of the elements.
        ndim: the number of dimensions; 0 for a number.
        is_weak: whether it is a Python number, which takes the dtype of the other operand.
    """

    dtype: np.dtype[Any]
    ndim: int = 0
    is_weak: bool = False


class Items(NamedTuple):
    """A tuple, or a list from outside of the code."""

    items: tuple[Any, ...]


class Known(NamedTuple):
    """A value known when the function is compiled: a module, a dtype, a function, a string."""

    value: Any


class Unknown:
    """The type of an expression that cannot be inferred."""


UNKNOWN = Unknown()
#: The type of a call of a function that calls itself, before that is known; it joins with any.
PENDING = Unknown()
_MISSING = object()

WEAK_BOOL = Value(np.dtype(bool), 0, True)
WEAK_INT = Value(np.dtype("int64"), 0, True)
WEAK_FLOAT = Value(np.dtype("float64"), 0, True)
WEAK_COMPLEX = Value(np.dtype("complex128"), 0, True)
_WEAK = {bool: WEAK_BOOL, int: WEAK_INT, float: WEAK_FLOAT, complex: WEAK_COMPLEX}
_PYTHON = {"i": int, "f": float, "c": complex, "b": np.dtype(bool)}

UFUNCS: dict[type, np.ufunc] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide, ast.Mod: np.remainder, ast.Pow: np.power,
    ast.BitAnd: np.bitwise_and, ast.BitOr: np.bitwise_or, ast.BitXor: np.bitwise_xor,
    ast.LShift: np.left_shift, ast.RShift: np.right_shift,
}  # fmt: skip
OPERATORS: dict[str, type] = {ufunc.__name__: kind for kind, ufunc in UFUNCS.items()}
COMPARISONS: dict[type, np.ufunc] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
    ast.Eq: np.equal, ast.NotEq: np.not_equal,
}  # fmt: skip
#: Python's operators.
ON_PYTHON: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_SAME_DTYPE = frozenset(
    {"copy", "ascontiguousarray", "flip", "flipud", "fliplr", "roll", "sort", "transpose", "triu",
     "tril", "zeros_like", "ones_like", "empty_like", "full_like", "asarray", "array"}
)  # fmt: skip
_FOLDS = frozenset(
    {"sum", "prod", "min", "max", "amin", "amax", "mean", "std", "var", "any", "all"}
)
_FOLD_INDEX = frozenset({"argmin", "argmax"})
_ARRAY_MODULES = ("numpy", "dparray", "dpnp")
#: Functions of ``linalg``.
_OF_MATRICES = frozenset({"inv", "solve", "det"})
_NEW = frozenset({"zeros", "ones", "empty", "full"})
#: Attributes of arrays that read no elements.
ABOUT_ARRAYS = frozenset({"shape", "size", "ndim", "dtype"})
_INTEGER_MATH = frozenset({"floor", "ceil", "trunc", "gcd", "factorial", "isqrt", "lcm", "comb"})
_BOOLEAN_MATH = frozenset({"isnan", "isinf", "isfinite", "isclose"})


def type_of(value: Any) -> Any:
    """Return the type of an argument or of a captured value."""
    weak = _WEAK.get(type(value))
    if weak is not None:
        return weak
    if isinstance(value, np.generic):
        return Value(value.dtype)
    if isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype"):
        return Value(np.dtype(value.dtype), len(value.shape))
    if isinstance(value, tuple | list):
        return Items(tuple(map(type_of, value)))
    return Known(value)


def join(first: Any, second: Any) -> Any:
    """Return the type of a variable with two assignments."""
    if first is None or first is PENDING or first == second:
        return second
    if second is None or second is PENDING:
        return first
    if isinstance(first, Value) and isinstance(second, Value) and first.ndim == second.ndim:
        if first.is_weak and second.is_weak:
            return Value(np.result_type(first.dtype, second.dtype), 0, True)
        if first.is_weak or second.is_weak:
            strong, weak = (second, first) if first.is_weak else (first, second)
            if np.result_type(strong.dtype, _python_type(weak)) == strong.dtype:
                return strong
    if isinstance(first, Items) and isinstance(second, Items):
        return (
            UNKNOWN
            if len(first.items) != len(second.items)
            else Items(tuple(map(join, first.items, second.items)))
        )
    return UNKNOWN


def _python_type(value: Value) -> Any:
    if value.dtype.kind == "b":
        return np.dtype(bool)
    return {"i": 1, "f": 1.0, "c": 1j}[value.dtype.kind]


def _operand(value: Value) -> Any:
    return _PYTHON[value.dtype.kind] if value.is_weak else value.dtype


def resolve(ufunc: np.ufunc, operands: Sequence[Value]) -> tuple[Any, ...] | None:
    """Return NumPy's dtypes for the operands and the result of an operation, or ``None``."""
    if ufunc.nout != 1 or len(operands) != ufunc.nin:
        return None
    given: list[Any] = [_operand(value) for value in operands]
    if all(value.is_weak for value in operands):
        given = [value.dtype for value in operands]
    try:
        return ufunc.resolve_dtypes((*given, None))
    except TypeError:
        return None


def is_number(kind: Any) -> bool:
    """Return whether a type is that of a number."""
    return isinstance(kind, Value) and not kind.ndim


def is_array(kind: Any) -> bool:
    """Return whether a type is that of an array."""
    return isinstance(kind, Value) and kind.ndim > 0


class _Callees(dict[Any, tuple[Source | None, Any]]):
    """The sources of the functions that a function calls, and the types of their results.

    Attributes:
        are_recursive: whether one of them calls itself.
    """

    are_recursive = False


class Inference:
    """The types of a function's variables and expressions.

    Args:
        tree: the function.
        parameters: the types of its parameters.
        names: the values of its globals and captured names.
        callees: the sources of the user's functions that it calls, and the types of their results,
            by the types of the arguments; empty at first.
    """

    def __init__(
        self,
        tree: ast.FunctionDef,
        parameters: Mapping[str, Any],
        names: Mapping[str, Any],
        callees: _Callees | None = None,
    ) -> None:
        self.callees = _Callees() if callees is None else callees
        self.functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self.tree = tree
        self.names = names
        self.variables: dict[str, Any] = dict(parameters)
        self.parameters = dict(parameters)
        #: Variables with values of several types, and ``return`` if the results have such.
        self.mixed: set[str] = set()
        #: Whether all results are numbers of one dtype, those of Python among them.
        self.has_one_dtype = True
        self.result: Any = None
        self._read()
        if callees is None and self.callees.are_recursive:
            self._settle_callees()
            self.variables, self.mixed, self.has_one_dtype = dict(parameters), set(), True
            self._read()

    def _read(self) -> None:
        """Find the types of the variables and of the result."""
        for _ in range(_MAX_READINGS):
            before = dict(self.variables)
            self.result = None
            for statement in self.tree.body:
                self._statement(statement)
            if before == self.variables:
                break
        else:
            self.variables = dict.fromkeys(self.variables, UNKNOWN)

    # -- statements -----------------------------------------------------------------------------

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.of(node.value)
            for target in node.targets:
                self._assign(target, value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, self.of(node.value))
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                own = self.of(node.target)
                if not is_array(own):  # which keeps its dtype
                    kind = self._power(node, self.binary(node.op, own, self.of(node.value)))
                    self._assign(node.target, kind)
        elif isinstance(node, ast.For):
            self._assign(node.target, self._item(node.iter))
        elif isinstance(node, ast.Return):
            value = Known(None) if node.value is None else self.of(node.value)
            if PENDING not in (self.result, value) and self.result not in (None, value):
                self.mixed.add("return")
                dtypes = [getattr(each, "dtype", None) for each in (value, self.result)]
                self.has_one_dtype &= is_number(value) and dtypes[0] == dtypes[1]
            self.result = join(self.result, value)
        elif isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, UNKNOWN)
        for name in ("body", "orelse", "finalbody"):
            for inner in getattr(node, name, ()):
                if isinstance(inner, ast.stmt) and not isinstance(node, ast.FunctionDef):
                    self._statement(inner)

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            known = self.variables.get(target.id)
            if PENDING not in (known, value) and known is not None and known != value:
                self.mixed.add(target.id)
            self.variables[target.id] = join(known, value)
        elif isinstance(target, ast.Tuple | ast.List):
            count = len(target.elts)
            items: Sequence[Any] = [UNKNOWN] * count
            if isinstance(value, Items) and len(value.items) == count:
                items = value.items
            elif isinstance(value, Value) and value.ndim:
                items = [value._replace(ndim=value.ndim - 1)] * count
            for inner, item in zip(target.elts, items, strict=True):
                self._assign(inner, item)

    def _item(self, node: ast.expr) -> Any:
        """Return the type of an iteration variable."""
        if isinstance(node, ast.Call):
            name = self.called(node)
            if name in ("range", "prange", "ndindex"):
                return WEAK_INT if name != "ndindex" else UNKNOWN
            if name == "enumerate" and len(node.args) == 1:
                return Items((WEAK_INT, self._item(node.args[0])))
            if name == "zip":
                return Items(tuple(map(self._item, node.args)))
        value = self.of(node)
        if isinstance(value, Value) and value.ndim:
            return value._replace(ndim=value.ndim - 1)
        if isinstance(value, Items) and value.items:
            return functools.reduce(join, value.items)
        return UNKNOWN

    # -- expressions ----------------------------------------------------------------------------

    def of(self, node: ast.expr) -> Any:
        """Return the type of an expression."""
        method = getattr(self, f"_of_{type(node).__name__}", None)
        return UNKNOWN if method is None else method(node)

    def _of_Constant(self, node: ast.Constant) -> Any:
        return type_of(node.value)

    def _of_Name(self, node: ast.Name) -> Any:
        if node.id in self.variables:
            value = self.variables[node.id]
            return UNKNOWN if value is None else value
        value = self.names.get(node.id, _MISSING)
        if value is _MISSING or value is vars(builtins).get(node.id, UNKNOWN):
            return Known(Builtin(node.id))
        return type_of(value)

    def _of_Tuple(self, node: ast.Tuple) -> Any:
        return Items(tuple(map(self.of, node.elts)))

    def _of_BinOp(self, node: ast.BinOp) -> Any:
        return self._power(node, self.binary(node.op, self.of(node.left), self.of(node.right)))

    @staticmethod
    def _power(node: Any, kind: Any) -> Any:
        """Return the type of an operation; a power of Python integers may be a float."""
        may_be_float = isinstance(node.op, ast.Pow) and not is_natural(node)
        return WEAK_FLOAT if may_be_float and kind == WEAK_INT else kind

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        """Return the type of an operation."""
        if isinstance(left, Items) and isinstance(right, Items) and isinstance(op, ast.Add):
            return Items(left.items + right.items)
        if not (isinstance(left, Value) and isinstance(right, Value)):
            return PENDING if PENDING in (left, right) else UNKNOWN
        if isinstance(op, ast.MatMult):
            return _product(left, right)
        if left.is_weak and right.is_weak:
            return self._weak(op, left, right)
        found = resolve(UFUNCS[type(op)], (left, right))
        if found is None:
            return UNKNOWN
        return Value(found[-1], max(left.ndim, right.ndim))

    @staticmethod
    def _weak(op: ast.operator, left: Value, right: Value) -> Any:
        try:
            numbers = [value.dtype.type(1).item() for value in (left, right)]
            return type_of(ON_PYTHON[type(op)](*numbers))
        except (TypeError, KeyError):
            return UNKNOWN

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.of(node.operand)
        if isinstance(node.op, ast.Not):
            return WEAK_BOOL
        if isinstance(value, Value) and value.dtype.kind == "b":
            return WEAK_INT if value.is_weak else UNKNOWN
        return value

    def _of_BoolOp(self, node: ast.BoolOp) -> Any:
        return functools.reduce(join, map(self.of, node.values))

    def _of_Compare(self, node: ast.Compare) -> Any:
        values = [self.of(node.left), *map(self.of, node.comparators)]
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return WEAK_BOOL
        if not all(isinstance(value, Value) for value in values):
            return WEAK_BOOL if all(isinstance(v, Known) for v in values) else UNKNOWN
        if all(value.is_weak for value in values):
            return WEAK_BOOL
        return Value(np.dtype(bool), max(value.ndim for value in values))

    def _of_IfExp(self, node: ast.IfExp) -> Any:
        return join(self.of(node.body), self.of(node.orelse))

    def _of_Attribute(self, node: ast.Attribute) -> Any:
        value = self.of(node.value)
        name = node.attr
        if isinstance(value, Known):
            if _is_array_module(value.value) and hasattr(np, name):
                return type_of(getattr(np, name))
            found = getattr(value.value, name, UNKNOWN)
            return found if found is UNKNOWN else type_of(found)
        if isinstance(value, Value):
            if name == "shape":
                return Items((WEAK_INT,) * value.ndim)
            if name in ("size", "ndim", "itemsize", "nbytes"):
                return WEAK_INT
            if name == "T":
                return value
            if name == "dtype":
                return Known(value.dtype)
            if name in ("real", "imag"):
                return value._replace(dtype=value.dtype.type(0).real.dtype)
        return UNKNOWN

    def _of_Subscript(self, node: ast.Subscript) -> Any:
        value = self.of(node.value)
        entries = entries_of(node)
        if isinstance(value, Items):
            at = constant(node.slice)
            if isinstance(at, int) and -len(value.items) <= at < len(value.items):
                return value.items[at]
            if isinstance(node.slice, ast.Slice):
                bounds = node.slice.lower, node.slice.upper, node.slice.step
                parts = [*map(constant, bounds)]
                if all(part is None or isinstance(part, int) for part in parts):
                    return Items(value.items[slice(*parts)])
            return functools.reduce(join, value.items) if value.items else UNKNOWN
        if not isinstance(value, Value) or not value.ndim:
            return UNKNOWN
        taken = added = 0
        advanced: list[int] = []
        for entry in entries:
            if isinstance(entry, ast.Slice):
                continue
            if isinstance(entry, ast.Constant) and entry.value is None:
                added += 1
                continue
            if isinstance(entry, ast.Constant) and entry.value is Ellipsis:
                continue
            index = self.of(entry)
            if isinstance(index, Known) and index.value is None:
                added += 1
            elif isinstance(index, Items) and len(entries) == 1:
                taken += len(index.items)
            elif not isinstance(index, Value):
                return UNKNOWN
            elif index.ndim == 0:
                taken += 1
            elif index.dtype.kind == "b":
                taken += index.ndim
                advanced.append(1)
            else:
                taken += 1
                advanced.append(index.ndim)
        ndim = value.ndim - taken + added + max(advanced, default=0)
        return value._replace(ndim=ndim) if ndim >= 0 else UNKNOWN

    def called(self, node: ast.Call) -> str:
        """Return the plain name of the called function; ``""`` if it is not a name, or names a
        function of the user, which may have the name of another.
        """
        if self.users_callee(node) is not None:
            return ""
        if isinstance(node.func, ast.Name):
            is_own = node.func.id in self.variables or node.func.id in self.functions
            return "" if is_own else node.func.id
        return node.func.attr if isinstance(node.func, ast.Attribute) else ""

    def users_callee(self, node: ast.Call) -> FunctionType | None:
        """Return the user's function that a call names, unless a variable does."""
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        function = self.of(node.func)
        if not isinstance(root, ast.Name) or root.id in self.variables:
            return None
        return users_function(function.value) if isinstance(function, Known) else None

    def types_of_arguments(self, node: ast.Call) -> tuple[Any, ...]:
        """Return the types of the arrays and numbers that a call passes by position; empty if it
        passes none, or others by name.
        """
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            return ()
        kinds = [self.of(each) for each in node.args]
        kinds = [
            kind if isinstance(kind, Value) and kind.dtype.kind in "biufc" else UNKNOWN
            for kind in kinds
        ]
        return () if all(kind is UNKNOWN for kind in kinds) else tuple(kinds)

    def _result_of(self, function: FunctionType, node: ast.Call) -> Any:
        """Return the type of the number that a user's function returns."""
        key = function, self.types_of_arguments(node)
        if key not in self.callees:
            unfinished = [each for (each, _), (source, _) in self.callees.items() if source is None]
            if unfinished.count(function) > MAX_VERSIONS:
                return UNKNOWN  # The types may change in each recursive call, without an end.
            self.callees[key] = None, PENDING
            self._read_callee(key)
        elif self.callees[key][0] is None:
            self.callees.are_recursive = True
        return self.callees[key][1]

    def _read_callee(self, key: Any) -> None:
        """Note the source of a called function, and the type of its result."""
        function, kinds = key
        try:
            source = source_of(function)
        except KernelCompileError:  # the compiler reports it
            self.callees[key] = None, UNKNOWN
            return
        given = types_of_parameters(source, kinds)
        inner = Inference(source.definition, given, source.names, self.callees)
        is_one = inner.has_one_dtype and isinstance(source.definition.body[-1], ast.Return)
        is_known = is_one and (is_number(inner.result) or inner.result is PENDING)
        self.callees[key] = source, inner.result if is_known else UNKNOWN

    def _settle_callees(self) -> None:
        """Read functions that call themselves until the types of their results settle."""
        for _ in range(_MAX_READINGS):
            before = [result for _, result in self.callees.values()]
            for key in [*self.callees]:
                self._read_callee(key)
            results = [result for _, result in self.callees.values()]
            if results == before:
                break
        else:
            results = []
        for key, (source, result) in self.callees.items():
            is_known = bool(results) and result is not PENDING
            self.callees[key] = source, result if is_known else UNKNOWN

    def _of_Call(self, node: ast.Call) -> Any:
        callee = self.users_callee(node)
        if callee is not None:
            return self._result_of(callee, node)
        if isinstance(node.func, ast.Attribute):
            owner = self.of(node.func.value)
            if isinstance(owner, Known) and isinstance(owner.value, ModuleType):
                if owner.value is math:
                    return self._math(node.func.attr)
                name, _, of_matrices = owner.value.__name__.partition(".")
                if _is_array_module(owner.value) or (
                    name in _ARRAY_MODULES
                    and of_matrices == "linalg"
                    and node.func.attr in _OF_MATRICES
                ):
                    return self._array_function(node.func.attr, node.args, node)
                return UNKNOWN
            if isinstance(owner, Value):
                return self._array_function(node.func.attr, [node.func.value, *node.args], node)
            return UNKNOWN
        function = self.of(node.func)
        if not isinstance(function, Known):
            return UNKNOWN
        value = function.value
        if isinstance(value, Builtin):
            return self._builtin(value.name, node)
        if isinstance(value, type) and issubclass(value, np.generic):
            return self._converted(np.dtype(value), node)
        if getattr(value, "__module__", "") == "math":
            return self._math(value.__name__)
        if isinstance(value, np.ufunc):
            return self._array_function(value.__name__, node.args, node)
        return UNKNOWN

    @staticmethod
    def _math(name: str) -> Any:
        if name in _INTEGER_MATH:
            return WEAK_INT
        return WEAK_BOOL if name in _BOOLEAN_MATH else WEAK_FLOAT

    def _converted(self, dtype: np.dtype[Any], node: ast.Call) -> Any:
        values = [self.of(argument) for argument in node.args]
        if len(values) == 1 and isinstance(values[0], Value):
            return Value(dtype, values[0].ndim)
        return Value(dtype) if not values else UNKNOWN

    def _builtin(self, name: str, node: ast.Call) -> Any:
        values = [self.of(argument) for argument in node.args]
        weak = {"int": WEAK_INT, "len": WEAK_INT, "float": WEAK_FLOAT, "bool": WEAK_BOOL,
                "complex": WEAK_COMPLEX, "ord": WEAK_INT}.get(name)  # fmt: skip
        if weak is not None:
            return weak
        if name == "abs" and len(values) == 1 and isinstance(values[0], Value):
            return values[0]._replace(dtype=abs(values[0].dtype.type(1)).dtype)
        if name in ("min", "max") and len(values) > 1:
            return functools.reduce(join, values)
        if name == "round" and values:
            return WEAK_INT if len(values) == 1 else values[0]
        return UNKNOWN

    def _array_function(self, name: str, arguments: Sequence[ast.expr], node: ast.Call) -> Any:
        if name.startswith("_"):
            return UNKNOWN
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        given = getattr(np, name, None)
        if isinstance(given, type) and issubclass(given, np.generic):
            return self._converted(np.dtype(given), node)
        if name in _NEW:
            position = 2 if name == "full" else 1
            dtype = self._dtype(named.get("dtype"), arguments[position : position + 1])
            if dtype is None and name == "full" and len(arguments) > 1:
                filled = self.of(arguments[1])
                dtype = filled.dtype if isinstance(filled, Value) else UNKNOWN
            if dtype is None:
                dtype = np.dtype("float64")
            shape = self.of(arguments[0]) if arguments else self.of_named(named, "shape")
            ndim = len(shape.items) if isinstance(shape, Items) else 1
            if dtype is UNKNOWN or isinstance(shape, Unknown):
                return UNKNOWN
            return Value(dtype, ndim)
        if name in ("arange", "linspace", "eye", "identity"):
            dtype = self._dtype(named.get("dtype"), ())
            if dtype is UNKNOWN:
                return UNKNOWN
            if dtype is None:
                dtype = np.dtype("float64")
                if name == "arange":
                    values = [self.of(argument) for argument in arguments]
                    if not all(isinstance(value, Value) for value in values):
                        return UNKNOWN
                    dtype = np.result_type(*(value.dtype for value in values))
            return Value(dtype, 2 if name in ("eye", "identity") else 1)
        values = [self.of(argument) for argument in arguments]
        if not values or not isinstance(values[0], Value):
            return UNKNOWN
        first = values[0]
        if name == "item":
            return type_of(first.dtype.type(0).item())
        if name == "astype":
            dtype = self._dtype(named.get("dtype"), arguments[1:2])
            return UNKNOWN if dtype in (None, UNKNOWN) else first._replace(dtype=dtype)
        if name in _SAME_DTYPE:
            dtype = self._dtype(named.get("dtype"), ()) or first.dtype
            return UNKNOWN if dtype is UNKNOWN else Value(dtype, first.ndim)
        if name == "argsort" and not set(named) - {"axis"}:
            return Value(np.dtype(np.int64), first.ndim)
        if name in _OF_MATRICES and all(isinstance(value, Value) for value in values):
            dtype = np.result_type(*(value.dtype for value in values))
            dtype = dtype if dtype.kind in "fc" else np.dtype(np.float64)
            return Value(dtype, 0 if name == "det" else values[-1].ndim)
        if name in ("flatten", "ravel"):
            return first._replace(ndim=1)
        if name == "reshape":
            shapes = values[1:]
            if len(shapes) == 1 and isinstance(shapes[0], Items):
                return first._replace(ndim=len(shapes[0].items))
            return first._replace(ndim=len(shapes))
        if name in _FOLDS | _FOLD_INDEX:
            return self._fold(name, first, arguments, named)
        if name in ("dot", "matmul") and len(values) == 2 and isinstance(values[1], Value):
            return _product(first, values[1])
        if name == "where" and len(values) == 3:
            if all(isinstance(value, Value) for value in values):
                return _choice(first, values[1], values[2])
            return UNKNOWN
        if isinstance(given, np.ufunc) and all(isinstance(value, Value) for value in values):
            found = resolve(given, values)
            if found is None or "dtype" in named:
                return UNKNOWN
            return Value(found[-1], max(value.ndim for value in values))
        return UNKNOWN

    def of_named(self, named: Mapping[str | None, ast.expr], name: str) -> Any:
        """Return the type of a keyword argument."""
        return self.of(named[name]) if name in named else UNKNOWN

    def _fold(self, name: str, first: Value, arguments: Sequence[Any], named: Any) -> Any:
        axis = named.get("axis", arguments[1] if len(arguments) > 1 else None)
        wanted = self._dtype(named.get("dtype"), ())
        has_dtype = name in ("sum", "prod") and wanted is not UNKNOWN
        if set(named) - {"axis", *["dtype"] * has_dtype} or len(arguments) > 2:
            return UNKNOWN
        ndim = 0
        if axis is not None and constant(axis) is not None:
            if not isinstance(constant(axis), int):
                return UNKNOWN
            ndim = first.ndim - 1
        dtype = getattr(np, name)(np.ones(1, first.dtype)).dtype
        return Value(wanted if has_dtype and wanted else dtype, ndim)

    def _dtype(self, node: ast.expr | None, rest: Sequence[ast.expr]) -> Any:
        """Return the dtype that an argument requests, or ``None`` if there is no argument."""
        if node is None:
            if not rest:
                return None
            node = rest[0]
        value = self.of(node)
        if not isinstance(value, Known):
            return UNKNOWN
        if value.value is None:
            return None
        wanted = value.value
        if isinstance(wanted, Builtin):
            wanted = wanted.name
        try:
            return np.dtype(wanted)
        except TypeError:
            return UNKNOWN


def types_of_parameters(source: Source, kinds: Sequence[Any]) -> dict[str, Any]:
    """Return the types of a function's parameters for the types of the first arguments of a call,
    if they are known.
    """
    names = [each.arg for each in source.definition.args.args]
    defaults = source.defaults if kinds else []
    omitted = dict(zip(names[len(names) - len(defaults) :], map(type_of, defaults), strict=True))
    given = dict(zip(names, kinds, strict=False))
    return {**dict.fromkeys(names, UNKNOWN), **omitted, **given}


class Builtin(NamedTuple):
    """A Python builtin, the value of a name that is neither assigned nor captured."""

    name: str


def _choice(condition: Value, first: Value, second: Value) -> Any:
    found = resolve(np.maximum, (first, second))
    ndim = max(condition.ndim, first.ndim, second.ndim)
    return UNKNOWN if found is None else Value(found[-1], ndim)


def _product(left: Value, right: Value) -> Any:
    """Return the type of a product of matrices and vectors."""
    ndim = {(1, 1): 0, (2, 1): 1, (1, 2): 1, (2, 2): 2}.get((left.ndim, right.ndim))
    return UNKNOWN if ndim is None else Value(np.result_type(left.dtype, right.dtype), ndim)


def constant(node: ast.expr | None) -> Any:
    """Return the value of a literal, ``None`` for no expression, or ``UNKNOWN``."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except ValueError:
        return UNKNOWN


def _is_array_module(module: Any) -> bool:
    return isinstance(module, ModuleType) and module.__name__ in _ARRAY_MODULES
