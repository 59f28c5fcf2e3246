"""A Python function becomes a kernel in the IR.

One pass over the syntax tree finds the types and adds ops. Calls of device functions are
translated in place. Translation begins again where a loop turns out to carry a name that it
assigns first on some paths.
"""

from __future__ import annotations

import ast
import builtins as python
import contextlib
import copy
import enum
import functools
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dparray import _type_keys
from dparray._ir.instructions import Function, Op, Parameter, Place, walk
from dparray._ir.passes import finish, remove_unused, simplify
from dparray._ir.types import BOOL, F16, F32, F64, GLOBAL, I64, LOCAL, U64, Pointer, Type
from dparray._language.advice import Advice, Notes
from dparray._language.arrays import Made
from dparray._language.builtins.arrays import has_array
from dparray._language.checks import Checks, Site
from dparray._language.constants import plain
from dparray._language.control import Again, Ended
from dparray._language.errors import (
    CAPTURED,
    MAX_RAISED_VALUES,
    NO_MEMORY,
    NO_STRINGS,
    NOT_A_VALUE,
    NOT_AN_ELEMENT,
    RAISED_VALUES,
    Refusal,
    attribute_problem,
    unavailable,
    value_problem,
)
from dparray._language.memory import element_type
from dparray._language.numbers import SIGNS
from dparray._language.promotion import NUMPY, Rules
from dparray._language.source import Source
from dparray._language.syntax import scope_of, syntax_of
from dparray._language.values import (
    NONE,
    NUMBERS,
    Array,
    Complex,
    Conflict,
    Constant,
    Elements,
    Frame,
    Item,
    Lambda,
    Number,
    Optional,
    Range,
    Shared,
    Slice,
    Target,
    Text,
    Tuple,
    Unset,
    Vector,
    array_name,
    described,
    entries_of,
    is_number,
)

#: The packages whose objects have attributes in kernels.
_KNOWN = ("builtins", "dparray", "enum", "math", "numpy")
#: How often translation begins again.
_MAX_ATTEMPTS = 100
#: The elements of arrays without a shape: memory of generated kernels.
_UNBOUNDED = 1 << 62


class RaisedValue(NamedTuple):
    """A variable in an exception.

    Attributes:
        name: its name.
        stored: the dtype of its value in memory.
        kind: the class of its value in Python.
    """

    name: str
    stored: Any
    kind: Any


class _RaisedValues(ast.NodeTransformer):
    """Replaces the numbers in an exception that variables decide.

    Attributes:
        values: the numbers.
    """

    def __init__(self, front: FrontEnd) -> None:
        self.front = front
        self.values: list[RaisedValue] = []

    def visit(self, node: ast.AST) -> Any:
        """Store the largest expressions that are numbers or tuples of them."""
        names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
        if not isinstance(node, ast.expr) or not any(self.front.is_local(e.id) for e in names):
            return self.generic_visit(node)
        try:
            value = self.front.value(node)
        except Refusal:
            value = None
        if isinstance(value, Tuple) and all(map(is_number, value.items)):
            return ast.Tuple([self._stored(item, node) for item in value.items], ast.Load())
        if is_number(value):
            return self._stored(value, node)
        if isinstance(node, ast.Name):
            raise Refusal(f"an exception with the value of {node.id}", node)
        return self.generic_visit(node)

    def _stored(self, value: Any, node: ast.expr) -> ast.expr:
        name = f"__value_{len(self.values)}"
        self.values.append(self.front.raised_value(value, name, node))
        return ast.Name(name, ast.Load())


class Raised(NamedTuple):
    """An exception that a function of the host raises.

    Attributes:
        error: its expression.
        scope: the values of names.
        places: the statements that have led to it, the outermost first.
        values: the variables in it, in the order in which they are stored.
    """

    error: ast.Expression
    scope: Mapping[str, Any]
    places: tuple[Place, ...]
    values: tuple[RaisedValue, ...]


class Translation(NamedTuple):
    """A kernel in the IR, and what goes with it.

    Attributes:
        function: the kernel.
        advice: its warnings.
        sites: the checked expressions, by the number in a ``check``.
        shapes: the shapes of the arrays that it allocates.
        raised: its exceptions, by the number in a ``stop``, which counts from 1.
    """

    function: Function
    advice: Advice
    sites: Sequence[Site]
    shapes: Mapping[Op, tuple[int, ...]]
    raised: Sequence[Raised]


def translation(
    function: Callable[..., Any],
    keys: Sequence[str],
    checked: bool = False,
    rules: Rules = NUMPY,
    is_sequential: bool = False,
) -> Translation:
    """Translate a kernel, with its warnings and checks.

    Args:
        function: a function in the kernel language.
        keys: the type keys of its parameters.
        checked: whether indices are checked while it runs.
        rules: the rules of types in users' functions.
        is_sequential: whether it is a function of the host, not the work of a work-item.

    Raises:
        Refusal: the language does not have something in it.
    """
    knowledge: dict[Any, Any] = {}
    for _ in range(_MAX_ATTEMPTS):
        front = FrontEnd(knowledge, checked, rules, is_sequential)
        try:
            kernel = finish(front.kernel(function, keys), "the front end")
        except Again:
            continue
        dimensions = max((item.dimensions for item in front.items), default=0)
        advice = front.notes.advice(dimensions, syntax_of(function).lines)
        return Translation(kernel, advice, front.sites, front.shapes, front.raised)
    raise Refusal("the types of its variables do not settle")


def translated(
    function: Callable[..., Any],
    keys: Sequence[str],
    checked: bool = False,
    rules: Rules = NUMPY,
) -> Function:
    """Return a kernel in the IR; :func:`translation` without its warnings and checks."""
    return translation(function, keys, checked, rules).function


class FrontEnd(Checks):
    """Translates one kernel.

    Attributes:
        items: the work-item parameters.
        shapes: the shapes of the arrays that it allocates.
    """

    def __init__(
        self,
        knowledge: dict[Any, Any],
        is_checked: bool = False,
        rules: Rules = NUMPY,
        is_sequential: bool = False,
    ) -> None:
        self.knowledge = knowledge
        self.users_rules = rules
        self.is_checked = is_checked
        self.is_sequential = is_sequential
        self.body: list[Op] = []
        self.births: dict[Op, int] = {}
        self.python_integers: set[Op] = set()
        self.has_ended = False
        self.place: Place | None = None
        self.frame = Frame(None, {}, {}, ())
        self.targets: list[Target] = []
        self.active: list[Any] = []
        self.callers: list[Place] = []
        self.raised: list[Raised] = []
        self.relied: set[Op] = set()
        self.notes = Notes()
        self.sites: list[Site] = []
        self.shapes: dict[Op, tuple[int, ...]] = {}
        self.guards: dict[Op, Op] = {}
        self.last_guard: Op | None = None
        self.items: list[Item] = []
        self.held: list[Any] = []
        self.around: list[Frame] = []
        self.is_even = False
        self.changes: list[Op] = []
        self.given: list[tuple[list[Op], tuple[str, ...], ast.AST]] = []
        self.procedures: list[Function] = []
        self.numbers: dict[Any, int] = {}
        self.has_untyped = self.is_in_procedure = False
        self.captured: dict[int, Array] = {}
        self.raised_values: Array | None = None

    # -- kernels ----------------------------------------------------------------------------------

    def kernel(self, function: Callable[..., Any], keys: Sequence[str]) -> Function:
        """Translate a function with parameters of these types."""
        source = syntax_of(function)
        node = source.tree
        kernel = Function(node.name)
        arguments = node.args
        parameters = [
            each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        ]
        if len(parameters) != len(keys):
            raise Refusal(f"{node.name} takes {len(parameters)} arguments; {len(keys)} are given")
        self.frame = Frame(function, {}, scope_of(function), (), rules=self.rules_of(function))
        self.active.append(function.__code__)
        self.place = Place(source.file, source.first, node.name)
        whole = Target(self.flow("block"))
        self.targets.append(whole)
        self.frame.returns = whole
        outside, self.body = self.body, []
        for name, key in zip(parameters, keys, strict=True):
            self.frame.names[name] = self.parameter(kernel, name, _type_keys.parse(key))
        names = self.frame.names
        for at, array in enumerate(self.frame.scope.get(CAPTURED, ())):
            self.captured[id(array)] = names[f"{CAPTURED}{at}"]
        self.raised_values = names.get(RAISED_VALUES)
        self.items = [each for each in names.values() if isinstance(each, Item)]
        self.versions(source, kernel)
        whole.op.bodies = [self.body]
        self.body = outside
        kernel.body = [whole.op, Op("return", place=self.place)]
        self.check_given(kernel.body)
        kernel.procedures = self.procedures
        for each in (kernel, *kernel.procedures):
            simplify(each)
            remove_unused(each)
        return kernel

    def versions(self, source: Source, kernel: Function) -> None:
        """Translate the body; twice if indices need no check where arguments are not negative."""
        names = self.frame.names
        has_items = any(item.kind == "Item" for item in self.items)
        has_offsets = not self.is_checked and (has_items or self.is_sequential)
        natural = {
            name: replace(value, is_natural=True, relies=frozenset({value.op}))
            for name, value in names.items()
            if has_offsets and isinstance(value, Number) and value.type == I64
        }
        returns = self.targets[0]
        before = len(returns.exits)
        body = self.version(source, names | natural, "natural")
        if not self.relied:
            self.body += body
        elif any(op.name in ("barrier", "allocate", "group") for op in walk(body)):
            # Work-items meet at barriers, so they are not translated twice.
            del returns.exits[before:]
            self.body += self.version(source, names, "any")
        else:
            zero = self.constant(0, I64)
            tests = [self.op("ge", BOOL, op, zero) for op in kernel.parameters if op in self.relied]
            are_natural = functools.reduce(lambda a, b: self.op("and", BOOL, a, b), tests)
            choice = self.flow("if", are_natural)
            choice.bodies = [body, self.version(source, names, "any")]
            self.body.append(choice)
        for each in returns.exits:
            if each.value not in (None, NONE):
                raise Refusal("a kernel returns nothing: write the result into an array argument")

    def version(self, source: Source, names: dict[str, Any], word: str) -> list[Op]:
        outside, self.body = self.body, []
        self.frame.names, self.frame.path, self.has_ended = dict(names), (word,), False
        with contextlib.suppress(Ended):
            self.statements(source.tree.body)
        if not self.has_ended:
            self.leave(self.targets[0])
        self.has_ended = False
        body, self.body = self.body, outside
        return body

    def parameter(self, kernel: Function, name: str, key: _type_keys.TypeKey) -> Any:
        """Return the value of a parameter, and add its parts as a launch packs them."""

        def part(kind: Type | Pointer, word: str = "value", dimension: int = 0) -> Op:
            op = Op("parameter", kind, attribute=Parameter(name, word, dimension))
            kernel.parameters.append(op)
            return op

        def numbers(word: str, is_natural: bool = True) -> tuple[Number, ...]:
            return tuple(
                Number(part(I64, word, dimension), is_natural=is_natural)
                for dimension in range(key.ndim)
            )

        if key.kind == "constant":
            return self.known(_type_keys.value_of(key.dtype))
        if key.kind == "nditem":
            return Item("NdItem", key.ndim)
        if key.kind == "item":
            extents = numbers("extent")
            whole, starts = (numbers("range"), numbers("start")) if key.order else (extents, ())
            for dimension, extent in enumerate(extents):
                position = self.index("global_id", dimension)
                beyond = Number(self.op("ge", BOOL, position.op, extent.op))
                self.branch(beyond, lambda: self.leave(self.frame.returns), lambda: None)
            return Item("Item", key.ndim, whole, starts)
        kind, is_complex = element_type(key.numpy_dtype)
        if key.is_scalar and is_complex:
            parts = Tuple((Number(part(kind, "real")), Number(part(kind, "imag"))))
            return Complex(*(self.python(parts) if key.kind == "python" else parts).items)
        if kind == F64 and key.is_scalar:
            self.notes.computes_double(f"its argument {name} is float64")
        if key.is_scalar:
            number = Number(part(F32 if kind == F16 else kind))
            return self.python(number) if key.kind == "python" else number
        space = LOCAL if key.kind.startswith("local") else GLOBAL
        if key.as_pointer is key:
            extent = Number(self.constant(_UNBOUNDED, I64))
            return Array(part(Pointer(kind, space), "pointer"), (extent,))
        part(I64, "count")
        part(I64, "itemsize")
        pointer = part(Pointer(kind, space), "pointer")
        shape, strides = numbers("shape"), numbers("stride", is_natural=False)
        is_packed = key.order in ("C", "")
        own = None if is_packed else strides
        return Array(pointer, shape, own, key.order == "R", is_complex)

    # -- statements -------------------------------------------------------------------------------

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Translate statements, up to one after which nothing is reached."""
        for statement in body:
            if self.has_ended:
                return
            translate = getattr(self, f"do_{type(statement).__name__.lower()}", None)
            if translate is None:
                raise self.located(Refusal(unavailable(statement), statement))
            before, count = self.place, len(self.held)
            assert before is not None
            if not self.is_in_prelude and not isinstance(statement, Made):
                self.place = before._replace(line=self.first_line + statement.lineno - 1)
            if self.is_in_kernel:
                self.notes.line = statement.lineno - 1
            if not isinstance(statement, Made):
                self.statement = statement
            try:
                translate(statement)
            except Refusal as refusal:
                refusal.node = refusal.node or statement
                raise self.located(refusal) from None
            self.place = before
            del self.held[count:]

    @property
    def first_line(self) -> int:
        """The line of the ``def`` in its file."""
        return int(syntax_of(self.frame.function).first)

    def located(self, refusal: Refusal) -> Refusal:
        """Return a refusal that knows its function."""
        if refusal.function is None:
            refusal.function = self.frame.function
        return refusal

    def do_pass(self, statement: ast.Pass) -> None:
        pass

    def do_assert(self, statement: ast.Assert) -> None:
        if isinstance(statement.test, ast.Constant) and not statement.test.value:
            raise Refusal("an assertion always fails", statement)
        if not self.is_sequential:
            self.check_assertion(statement)
            return
        arguments = [] if statement.msg is None else [statement.msg]
        error = ast.Call(ast.Name("AssertionError", ast.Load()), arguments, [])
        holds = self.truth(self.value(statement.test))
        self.branch(holds, lambda: NONE, lambda: self.stop(error))

    def do_raise(self, statement: ast.Raise) -> None:
        if not self.is_sequential or statement.exc is None or statement.cause is not None:
            raise Refusal(unavailable(statement), statement)
        self.stop(statement.exc)

    def stop(self, error: ast.expr) -> None:
        kept = _RaisedValues(self)
        code = ast.fix_missing_locations(ast.Expression(kept.visit(copy.deepcopy(error))))
        assert self.place is not None
        places = (*self.callers, self.place)
        self.raised.append(Raised(code, self.frame.scope, places, tuple(kept.values)))
        self.body.append(self.new("stop", attribute=len(self.raised)))
        self.has_ended = True

    def raised_value(self, value: Any, name: str, node: ast.AST) -> RaisedValue:
        """Store a number in an exception, in which it has a name."""
        place, position = self.raised_values, int(name.rpartition("_")[2])
        is_shared = any(target.op.name == "parallel" for target in self.targets)
        if place is None or is_shared or self.is_in_procedure or position >= MAX_RAISED_VALUES:
            raise Refusal(f"an exception with the value of {ast.unparse(node)}", node)
        number = self.number(value)
        kind = number.type
        wide = F64 if kind.is_float else U64 if kind.kind == "u" else I64
        stored = self.to(number, wide).op
        stored = stored if wide == I64 else self.op("bitcast", I64, stored)
        pointer = self.op("offset", place.pointer.type, place.pointer, self.constant(position, I64))
        self.op("store", None, pointer, stored)
        own = np.bool_ if kind.kind == "b" else kind.dtype.type
        python_class = {"b": bool, "f": float}.get(kind.kind, int)
        return RaisedValue(name, wide.dtype, python_class if self.is_weak(value) else own)

    def do_delete(self, statement: ast.Delete) -> None:
        names = [each.id for each in statement.targets if isinstance(each, ast.Name)]
        if not self.is_sequential or len(names) < len(statement.targets):
            raise Refusal(unavailable(statement), statement)
        for name in names:
            self.frame.names.pop(name, None)

    def do_expr(self, statement: ast.Expr) -> None:
        if not isinstance(statement.value, ast.Constant):
            self.value(statement.value)

    def do_functiondef(self, statement: ast.FunctionDef) -> None:
        if statement.decorator_list:
            raise Refusal(
                f"{statement.name} is decorated inside a function: define it outside", statement
            )
        self.frame.names[statement.name] = Lambda(statement, self.frame)

    def do_return(self, statement: ast.Return) -> None:
        value = NONE if statement.value is None else self.named(self.value(statement.value))
        if self.frame.returns is self.targets[0] and value != NONE:
            raise Refusal(
                "a kernel returns nothing: write the result into an array argument", statement
            )
        self.leave(self.frame.returns, value)

    def do_assign(self, statement: ast.Assign) -> None:
        value = self.value(statement.value)
        if len(statement.targets) > 1 or not isinstance(statement.targets[0], ast.Subscript):
            value = self.named(value)
        for target in statement.targets:
            self.assign(target, value, statement.value)

    def do_annassign(self, statement: ast.AnnAssign) -> None:
        if statement.value is not None:
            self.assign(statement.target, self.named(self.value(statement.value)))

    def do_augassign(self, statement: ast.AugAssign) -> None:
        target, operation = statement.target, type(statement.op)
        if isinstance(target, ast.Subscript):
            owner, index = self.value(target.value), self.subscript(target.slice)
            if isinstance(owner, Array) and not _selects_part(owner, index):
                address = self.address(owner, index, target)
                before = self.read(owner, address)
                value = self.computed(operation, before, self.value(statement.value), statement)
                self.write(owner, address, value, statement)
                self.note_change(owner)
                return
            if isinstance(owner, Array) and self.has_arrays:
                if has_array(entries_of(index)):
                    raise Refusal("an update at an array of indices is not available", target)
                part = self.element(owner, index, target)
                self.update(part, operation, self.value(statement.value), statement)
                return
            self.refuse_assignment(owner, index, target)
        if isinstance(target, ast.Attribute):
            self.refuse_assignment(self.value(target.value), target.attr, target)
        assert isinstance(target, ast.Name)
        before = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        if isinstance(before, Array) and self.has_arrays:
            self.update(before, operation, self.value(statement.value), statement)
            return
        if isinstance(before, Elements):
            raise Refusal(NO_MEMORY, target)
        if isinstance(before, Array):
            raise Refusal(
                f"an operand of {SIGNS[operation]}= is {array_name(before)}, {NOT_AN_ELEMENT}",
                target,
            )
        value = self.computed(operation, before, self.value(statement.value), statement)
        self.assign(target, self.named(value))

    def update(self, place: Array, operation: type, operand: Any, node: ast.AST) -> None:
        """Translate ``place op= operand`` for an array, which is changed in place."""
        self.store_like(place, self.array_operation(operation, place, operand, node), node)
        self.note_change(place)

    def assign(self, target: ast.expr, value: Any, source: ast.expr | None = None) -> None:
        """Assign a value to a name, to several, or to an element.

        Args:
            target: what it is assigned to.
            value: the value.
            source: its expression, if it has one of its own.
        """
        if isinstance(target, ast.Name):
            self.frame.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            self.assign_items(target, value, source or target)
        elif isinstance(target, ast.Subscript):
            self.assign_element(target, value)
        else:
            assert isinstance(target, ast.Attribute)
            self.refuse_assignment(self.value(target.value), target.attr, target)

    def assign_items(self, target: ast.Tuple | ast.List, value: Any, source: ast.expr) -> None:
        names = target.elts
        if isinstance(value, Array):
            items = self.items_of_array(value, len(names), source)
        else:
            items = self.items_of(value, target)
        starred = [number for number, name in enumerate(names) if isinstance(name, ast.Starred)]
        if starred and len(items) >= len(names) - 1:
            first = starred[0]
            stop = len(items) - (len(names) - first - 1)
            items = [*items[:first], Tuple(tuple(items[first:stop])), *items[stop:]]
        if len(items) != len(names):
            raise Refusal(f"{len(names)} names are assigned from {len(items)} values", target)
        for name, item in zip(names, items, strict=True):
            self.assign(name.value if isinstance(name, ast.Starred) else name, item)

    def items_of_array(self, value: Array, count: int, node: ast.AST) -> list[Any]:
        """Return the rows of an array, or its elements, that several names take."""
        self.check_count(value, count, node)
        return [self.element(value, Constant(number), node) for number in range(count)]

    def assign_element(self, target: ast.Subscript, value: Any) -> None:
        owner = self.value(target.value)
        index = self.subscript(target.slice)
        if isinstance(owner, Tuple) and owner.kind is Vector:
            assert isinstance(target.value, ast.Name)
            items = list(owner.items)
            items[index.value] = value
            self.frame.names[target.value.id] = Tuple(tuple(items), Vector)
            return
        if isinstance(owner, Array) and self.has_arrays and _selects_part(owner, index):
            if has_array(entries_of(index)):
                self.scatter(owner, index, value, target)
            else:
                self.store(self.element(owner, index, target), value, target)
            self.note_change(owner)
            return
        if not isinstance(owner, Array) or _selects_part(owner, index):
            self.refuse_assignment(owner, index, target)
        self.write(owner, self.address(owner, index, target), value, target)
        self.note_change(owner)

    def refuse_assignment(self, owner: Any, name: Any, node: ast.AST) -> None:
        """Refuse an assignment to something that is no element of an array."""
        if isinstance(name, str):
            raise Refusal(
                f"'.{name}' of {described(owner)} cannot be assigned to in a kernel", node
            )
        if isinstance(owner, Array):
            raise Refusal(
                "assigning or copying a whole array is not available in a kernel: write a loop "
                "over its elements, or x[:] = y on the host",
                node,
            )
        if is_number(owner) and self.type_of(owner).lanes == 1:
            self.element(owner, name, node)  # which refuses it
        if isinstance(owner, Number):
            raise Refusal(
                "a vector is immutable: make another one, as in v = dp.vec(1, v[1], v[2])", node
            )
        raise Refusal(f"the items of {described(owner)} cannot be assigned to in a kernel", node)

    def do_if(self, statement: ast.If) -> None:
        test = self.value(statement.test)
        if isinstance(test, Constant):
            self.statements(statement.body if test.value else statement.orelse)
            return
        self.branch(
            self.in_place(self.truth, test, statement.test),
            lambda: self.where(statement.test, True, self.statements, statement.body),
            lambda: self.where(statement.test, False, self.statements, statement.orelse),
        )

    def where(self, test: ast.expr, holds: bool, translate: Callable[[Any], Any], part: Any) -> Any:
        """Translate a part that runs where a test holds, or does not: it tells what is None."""
        self.narrow(test, holds)
        return translate(part)

    def narrow(self, test: ast.expr, holds: bool) -> None:
        """Give names their values without ``None``, or ``None``, where a test tells which."""
        match test:
            case ast.UnaryOp(ast.Not(), operand):
                self.narrow(operand, not holds)
            case ast.BoolOp(operation, values) if isinstance(operation, ast.And) == holds:
                for each in values:
                    self.narrow(each, holds)
            case ast.Compare(ast.Name(id=name), [ast.Is() | ast.IsNot() as order], [right]):
                value = self.frame.names.get(name)
                if isinstance(value, Optional) and self.value(right) == NONE:
                    is_none = isinstance(order, ast.Is) == holds
                    self.frame.names[name] = NONE if is_none else value.value

    def in_place(self, translate: Callable[[Any], Any], value: Any, node: ast.AST) -> Any:
        """Translate something about a value; a refusal names the node."""
        try:
            return translate(value)
        except Refusal as refusal:
            refusal.node = refusal.node or node
            raise self.located(refusal) from None

    def do_while(self, statement: ast.While) -> None:
        test = statement.test
        is_endless = isinstance(test, ast.Constant) and bool(test.value)

        def condition() -> Number | None:
            if is_endless:
                return None
            return self.in_place(self.truth, self.value(test), test)

        self.loop(statement, condition, lambda: self.statements(statement.body), lambda: None)

    def do_for(self, statement: ast.For) -> None:
        over = self.whole(self.value(statement.iter))
        if isinstance(over, Range):
            self.counted(statement, over)
        elif isinstance(over, Shared):
            self.shared(statement, over)
        elif isinstance(over, Array):
            count = Range(Constant(0), over.shape[0], Constant(1))
            self.counted(statement, count, lambda number: self.element(over, number, statement))
        else:
            self.unrolled(statement, self.items_of(over, statement.iter))

    def do_break(self, statement: ast.Break) -> None:
        self.leave(self.frame.loops[-1][0])

    def do_continue(self, statement: ast.Continue) -> None:
        self.leave(self.frame.loops[-1][1])

    # -- expressions ------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        """Translate an expression."""
        translate = getattr(self, f"of_{type(node).__name__.lower()}", None)
        if translate is None:
            raise self.located(Refusal(unavailable(node), node))
        try:
            return translate(node)
        except Refusal as refusal:
            refusal.node = refusal.node or node
            raise self.located(refusal) from None

    def of_constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, complex):
            return self.known(node.value)
        return Constant(node.value, is_weak=type(node.value) is int)

    def of_name(self, node: ast.Name) -> Any:
        frame: Frame | None = self.frame
        while frame is not None:
            if node.id in frame.names:
                return self.read_name(frame.names[node.id], node)
            frame = frame.outer
        if node.id in self.frame.scope:
            return self.of_outside(self.frame.scope[node.id], node)
        if hasattr(python, node.id):
            return Constant(getattr(python, node.id))
        if node.id in self.frame.function.__code__.co_freevars:
            raise Refusal(
                f"nothing is assigned to '{node.id}' yet: launch the kernel after that", node
            )
        if node.id in self.frame.function.__code__.co_varnames:
            raise self.unassigned(node)
        raise Refusal(f"the name '{node.id}' is not defined", node)

    def read_name(self, value: Any, node: ast.Name) -> Any:
        if isinstance(value, Unset):
            forced = self.knowledge.setdefault(("forced", value.loop), set())
            if node.id in forced or not self.is_assigned_before(node):
                raise self.unassigned(node)
            forced.add(node.id)
            raise Again
        if isinstance(value, Conflict):
            raise Refusal(value.text, node)
        return value

    def unassigned(self, node: ast.Name) -> Refusal:
        return Refusal(
            f"'{node.id}' may be read before it is assigned: give it a value before the loop or "
            "condition",
            node,
        )

    def is_assigned_before(self, node: ast.Name) -> bool:
        """Return whether the text of the function assigns a name before it reads it."""
        place = node.lineno, node.col_offset
        return any(
            isinstance(each, ast.Name)
            and each.id == node.id
            and isinstance(each.ctx, ast.Store)
            and (each.lineno, each.col_offset) < place
            for each in ast.walk(syntax_of(self.frame.function).tree)
        )

    def known(self, value: Any) -> Any:
        """Return a value from outside of the kernel."""
        if not isinstance(value, enum.Enum) or isinstance(value, int):
            value = plain(value)
        if isinstance(value, tuple):
            kind = type(value) if hasattr(value, "_fields") else None
            return Tuple(tuple(self.known(each) for each in value), kind)
        if isinstance(value, complex | np.complexfloating):
            cast = np.float32 if isinstance(value, np.complex64) else float
            return Complex(
                self.number(Constant(cast(value.real))), self.number(Constant(cast(value.imag)))
            )
        return Constant(value, is_weak=type(value) is int)

    def of_outside(self, value: Any, node: ast.expr) -> Any:
        """Return the value of a global, a captured name or a member of a module."""
        if id(value) in self.captured and not self.is_in_procedure:
            return self.captured[id(value)]
        problem = value_problem(ast.unparse(node), value)
        if problem:
            raise Refusal(problem, node)
        return self.known(value)

    def enumeration(self, node: ast.expr) -> enum.Enum | type[enum.Enum] | None:
        """Return the enumeration, or the member of one, that an expression names."""
        if isinstance(node, ast.Attribute):
            owner: Any = self.enumeration(node.value)
            if owner is None and isinstance(node.value, ast.Name | ast.Attribute):
                module = self.value(node.value)
                owner = module.value if isinstance(module, Constant) else None
                owner = owner if isinstance(owner, types.ModuleType) else None
            value = getattr(owner, node.attr, None)
        elif isinstance(node, ast.Name) and not self.is_local(node.id):
            value = self.frame.scope.get(node.id)
        else:
            return None
        is_enumeration = isinstance(value, type) and issubclass(value, enum.Enum)
        return value if is_enumeration or isinstance(value, enum.Enum) else None

    def is_local(self, name: str) -> bool:
        """Return whether a name is a variable of the function or of one around it."""
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.names:
                return True
            frame = frame.outer
        return False

    def of_attribute(self, node: ast.Attribute) -> Any:
        member = self.enumeration(node.value)
        if isinstance(member, enum.Enum) and hasattr(member, node.attr):
            return self.known(getattr(member, node.attr))
        return self.member(self.value(node.value), node.attr, node, node.value)

    def member(self, owner: Any, name: str, node: ast.expr, owner_node: ast.expr) -> Any:
        """Return ``owner.name``.

        Args:
            owner: the value.
            name: the name.
            node: the expression.
            owner_node: the expression of the owner.
        """
        if isinstance(owner, Text):
            raise Refusal(NO_STRINGS, node)
        if not isinstance(owner, Constant):
            return self.attribute(owner, name, node)
        value = owner.value
        if isinstance(value, NUMBERS) and name in ("real", "imag"):
            return owner if name == "real" else Constant(type(value)(0))
        if isinstance(value, types.ModuleType):
            if not hasattr(value, name):
                raise Refusal(attribute_problem(value, name), node)
            return self.of_outside(getattr(value, name), node)
        if isinstance(value, type) and not issubclass(value, np.generic | enum.Enum):
            raise Refusal(NOT_A_VALUE.format(ast.unparse(owner_node)), node)
        package = type(value).__module__.partition(".")[0]
        if package not in _KNOWN and not isinstance(value, enum.Enum):
            raise Refusal(NOT_A_VALUE.format(ast.unparse(owner_node)), node)
        if isinstance(value, NUMBERS) and name in ("dtype", "astype"):
            return self.attribute(self.number(owner), name, node)
        try:
            return self.known(getattr(value, name))
        except AttributeError:
            raise Refusal(f"there is no attribute '{name}' on {described(owner)}", node) from None

    def of_tuple(self, node: ast.Tuple) -> Tuple:
        items: list[Any] = []
        for each in node.elts:
            if isinstance(each, ast.Starred):
                items += self.items_of(self.value(each.value), each)
            else:
                items.append(self.value(each))
        return Tuple(tuple(map(self.whole, items)))

    def of_unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if self.has_arrays and has_array((value,)) and not isinstance(node.op, ast.Not):
            return self.combined(lambda each: self.unary(type(node.op), each, node), [value])
        return self.unary(type(node.op), value, node)

    def of_binop(self, node: ast.BinOp) -> Any:
        first, second = self.value(node.left), self.value(node.right)
        if self.has_arrays and has_array((first, second)):
            return self.array_operation(type(node.op), first, second, node)
        for operand in (first, second):
            if isinstance(operand, Array):
                self.refuse_array(operand, node)
        return self.computed(type(node.op), first, second, node)

    def computed(self, operation: type, first: Any, second: Any, node: ast.AST) -> Any:
        """Return a binary operation of the source."""
        value = self.binary(operation, first, second, node)
        if self.is_noted_double(value):
            kinds = [
                self.type_of(each).name if is_number(each) else described(each)
                for each in (first, second)
            ]
            expression = f" {SIGNS[operation]} ".join(kinds)
            self.notes.computes_double(f"{expression} is {described(value)}")
        return value

    def refuse_array(self, operand: Array, node: ast.expr) -> None:
        raise Refusal(
            f"{ast.unparse(node)} works on whole arrays and is not available in a kernel, which "
            "works on elements: write a loop, use the math module, or call dparray's function on "
            "the host",
            node,
        )

    def of_compare(self, node: ast.Compare) -> Any:
        pairs = list(zip(node.ops, node.comparators, strict=True))

        def chain(left: Any, rest: Sequence[tuple[ast.cmpop, ast.expr]]) -> Any:
            (order, right_node), *more = rest
            right = self.value(right_node)
            result = self.compare(type(order), left, right, node)
            if not more:
                return result
            if isinstance(result, Constant):
                return chain(right, more) if result.value else Constant(False)
            test = self.truth(result)
            return self.branch(test, lambda: chain(right, more), lambda: Constant(False))

        return chain(self.value(node.left), pairs)

    def of_boolop(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)

        def rest(values: Sequence[ast.expr]) -> Any:
            first = self.value(values[0])
            if len(values) == 1:
                return first
            if isinstance(first, Constant):
                return rest(values[1:]) if bool(first.value) == is_and else first
            test = self.in_place(self.truth, first, values[0])

            def others() -> Any:
                return self.where(values[0], is_and, rest, values[1:])

            if is_and:
                return self.branch(test, others, lambda: self.falsy(first))
            return self.branch(test, lambda: first, others)

        return self.of_paths(rest(node.values), node)

    def falsy(self, value: Any) -> Any:
        """Return a value that is known to be false."""
        return Constant(False) if is_number(value) and self.type_of(value) == BOOL else value

    def of_ifexp(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        if isinstance(test, Constant):
            return self.value(node.body if test.value else node.orelse)
        result = self.branch(
            self.in_place(self.truth, test, node.test),
            lambda: self.where(node.test, True, self.whole_value, node.body),
            lambda: self.where(node.test, False, self.whole_value, node.orelse),
        )
        return self.of_paths(result, node)

    def whole_value(self, node: ast.expr) -> Any:
        """Translate an expression; an array expression is an array in memory."""
        return self.whole(self.value(node))

    def of_paths(self, value: Any, node: ast.AST) -> Any:
        """Return the value of an expression with several paths."""
        if isinstance(value, Conflict):
            raise Refusal(value.text, node)
        return value

    def of_namedexpr(self, node: ast.NamedExpr) -> Any:
        value = self.named(self.value(node.value))
        self.assign(node.target, value)
        return value

    def of_lambda(self, node: ast.Lambda) -> Lambda:
        return Lambda(node, self.frame)

    def of_joinedstr(self, node: ast.JoinedStr) -> Text:
        parts: list[Any] = []
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                if each.format_spec or each.conversion != -1:
                    raise Refusal(
                        'an f-string in a kernel takes no format; write dp.printf("%.3f\\n", x)',
                        node,
                    )
                part = self.value(each.value)
                parts += part.parts if isinstance(part, Text) else [part]
            else:
                parts.append(self.value(each))
        return Text(tuple(parts))

    def of_subscript(self, node: ast.Subscript) -> Any:
        owner = self.named(self.value(node.value))
        return self.element(owner, self.subscript(node.slice), node)

    def subscript(self, node: ast.expr) -> Any:
        """Translate an index."""
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            first, stop, step = (NONE if part is None else self.value(part) for part in parts)
            return Slice(first, stop, step, node)
        if isinstance(node, ast.Tuple):
            return Tuple(tuple(self.subscript(each) for each in node.elts))
        return self.value(node)


def _selects_part(owner: Array, index: Any) -> bool:
    """Return whether an index selects more than an element."""
    entries = entries_of(index)
    is_partial = any(
        isinstance(each, Slice | Array | Elements) or each in (NONE, Constant(...))
        for each in entries
    )
    return is_partial or len(entries) < len(owner.shape)
