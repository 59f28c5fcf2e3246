"""Functions of the host that call themselves: procedures, which a program calls by their numbers.

A procedure is translated once for each signature of its arguments. The type of its result comes
from the paths that do not call it; translation then begins again with that type.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

from dparray._ir.instructions import Function, Op, Parameter
from dparray._ir.types import I64, PRIVATE, Pointer, Type
from dparray._language.calls import Calls, is_function
from dparray._language.control import Again, Ended
from dparray._language.errors import Refusal
from dparray._language.syntax import scope_of, syntax_of
from dparray._language.values import (
    NONE,
    Array,
    Complex,
    Constant,
    Frame,
    Number,
    Target,
    Tuple,
    described,
    is_number,
)

#: For how many signatures a function that calls itself is translated.
MAX_SIGNATURES = 16


class _Kind(NamedTuple):
    """The kind of a value, without the ops that compute it.

    Attributes:
        name: the class of the value.
        detail: its type, or whatever else tells it from other values of its class.
        items: the kinds of its parts.
    """

    name: str
    detail: Any = None
    items: tuple[_Kind, ...] = ()


class Recursion(Calls):
    """The part of the front end for functions that call themselves.

    Attributes:
        procedures: those of the program.
        numbers: their numbers, by function and kinds of arguments.
        is_in_procedure: whether a procedure is translated.
        has_untyped: whether a path has ended at a call whose type is not known yet.
        changes: the memory that statements have changed, in order.
        last_guard: the check on which the ops that follow rely.
    """

    procedures: list[Function]
    numbers: dict[Any, int]
    is_in_procedure: bool
    has_untyped: bool
    changes: list[Op]
    last_guard: Op | None

    def whole(self, value: Any) -> Any:
        raise NotImplementedError

    def inlined(
        self, function: FunctionType, arguments: list[Any], named: dict[str, Any], node: ast.AST
    ) -> Any:
        """Translate the body of a function in place, or the call of its procedure."""
        key = "procedure", function.__code__
        is_known = key in self.knowledge
        if not (self.is_sequential and (is_known or function.__code__ in self.active)):
            return super().inlined(function, arguments, named, node)
        values = self.frame_of(function, arguments, named, node).names
        if any(map(is_function, values.values())):
            return super().inlined(function, arguments, named, node)
        if not is_known:
            self.knowledge[key] = True
            raise Again
        return self._called(function, values, node)

    def _called(self, function: FunctionType, values: dict[str, Any], node: ast.AST) -> Any:
        """Translate the call of a procedure with arguments, by the names of parameters."""
        values = {each: self.whole(value) for each, value in values.items()}
        kinds = {each: self._kind(value, node) for each, value in values.items()}
        key = function.__code__, tuple(kinds.items())
        if key not in self.numbers:
            self._check_signatures(key, function.__name__, node)
            self._translate(function, kinds, values, key, node)
        kind = self.knowledge.get(("result", key))
        if kind is None:  # The other paths of the function tell.
            self.op("stop", None, attribute=0)
            self.has_ended = self.has_untyped = True
            raise Ended
        arguments = [op for each, value in values.items() for op in self._parts(value, kinds[each])]
        types = list(_types(kind))
        results = [self.op("allocate", Pointer(each, PRIVATE), attribute=1) for each in types]
        self.op("call", None, *arguments, *results, attribute=self.numbers[key])
        self.changes.append(results[0] if results else self.body[-1])
        loaded = (self.op("load", each, place) for each, place in zip(types, results, strict=True))
        return _rebuilt(kind, loaded, None)

    def _check_signatures(self, key: Any, name: str, node: ast.AST) -> None:
        others = [kinds for code, kinds in self.numbers if code is key[0]]
        if len(others) < MAX_SIGNATURES:
            return
        shown = [", ".join(_label(kind) for _, kind in kinds) for kinds in others[:3]]
        raise Refusal(
            f"{name} calls itself with arguments of other types in each call: "
            f"({'), then ('.join(shown)}), and so on; compiled code has at most {MAX_SIGNATURES} "
            "versions of a recursive function: pass arguments of the same dtypes and numbers of "
            "dimensions in each recursive call, or use a loop",
            node,
        )

    def _translate(
        self,
        function: FunctionType,
        kinds: dict[str, _Kind],
        values: dict[str, Any],
        key: Any,
        node: ast.AST,
    ) -> None:
        """Add a procedure."""
        name = function.__name__
        procedure = Function(name)
        self.numbers[key] = len(self.procedures)
        self.procedures.append(procedure)
        frame = Frame(function, {}, scope_of(function), (("procedure", key),))
        frame.rules = self.rules_of(function)
        for each, kind in kinds.items():
            types = (*_types(kind),)
            parts = [_parameter(procedure, each, kind, at) for at, kind in enumerate(types)]
            frame.names[each] = _rebuilt(kind, iter(parts), values[each])
        around = self.frame, self.place, self.body, self.targets, self.active, self.held
        last_guard, others = self.last_guard, (self.has_untyped, self.is_in_procedure)
        outside = Target(self.flow("block"))
        self.body, self.targets, self.active, self.held = [], [outside], [], []
        self.last_guard, self.has_untyped, self.is_in_procedure = None, False, True
        tree = syntax_of(function).tree
        value: Any = NONE
        with contextlib.suppress(Ended):
            value = self.run(frame, tree.body, function.__code__, name, node)
        if not self.has_ended:
            value = self.whole(value)
            found = self._kind(value, node)
            self._settle(key, found)
            for number, op in enumerate(self._parts(value, found)):
                assert isinstance(op.type, Type)
                place = _parameter(procedure, "result", Pointer(op.type, PRIVATE), number)
                self.op("store", None, place, op)
            self.op("return", None)
        elif not self.has_untyped:
            self._settle(key, _Kind("constant", "None"))
        elif not others[1]:  # Otherwise the procedure around settles first.
            raise Refusal(
                f"{name} has no path that ends without a call of itself: return a value that needs "
                "no call in one of the cases: if n == 0: return 1",
                node,
            )
        procedure.body, self.has_ended = self.body, False
        self.frame, self.place, self.body, self.targets, self.active, self.held = around
        self.last_guard, (self.has_untyped, self.is_in_procedure) = last_guard, others

    def _settle(self, key: Any, kind: _Kind) -> None:
        """Note the kind of a result; begin again if it was another one."""
        are_numbers = all(each.name in ("number", "complex", "tuple") for each in _leaves(kind))
        if not are_numbers and kind != _Kind("constant", "None"):
            raise Refusal("a function that calls itself returns numbers, or nothing")
        if self.knowledge.get(("result", key)) != kind:
            self.knowledge["result", key] = kind
            raise Again

    def _kind(self, value: Any, node: ast.AST) -> _Kind:
        if is_number(value):
            return _Kind("number", (self.type_of(value), self.is_weak(value)))
        if isinstance(value, Complex):
            kinds = tuple(self._kind(each, node) for each in (value.real, value.imag))
            return _Kind("complex", None, kinds)
        if isinstance(value, Tuple):
            kinds = tuple(self._kind(each, node) for each in value.items)
            return _Kind("tuple", value.kind, kinds)
        if isinstance(value, Array):
            own = value.strides is not None, value.is_readonly, value.is_complex
            return _Kind("array", (value.pointer.type, len(value.shape), *own))
        if isinstance(value, Constant):
            return _Kind("constant", f"{value.value!r}")
        raise Refusal(f"a function that calls itself does not take {described(value)}", node)

    def _parts(self, value: Any, kind: _Kind) -> list[Op]:
        """Return the ops that compute a value."""
        if kind.name == "number":
            return [self.to(value, kind.detail[0]).op]
        if kind.name == "complex":
            return [value.real.op, value.imag.op]
        if kind.name == "tuple":
            pairs = zip(value.items, kind.items, strict=True)
            return [op for item, inner in pairs for op in self._parts(item, inner)]
        if kind.name == "array":
            return [value.pointer, *(each.op for each in (*value.shape, *(value.strides or ())))]
        return []


def _leaves(kind: _Kind) -> Iterator[_Kind]:
    yield kind
    for each in kind.items:
        yield from _leaves(each)


def _types(kind: _Kind) -> Iterator[Any]:
    """Yield the types of the ops that compute a value."""
    if kind.name == "number":
        yield kind.detail[0]
    elif kind.name == "array":
        pointer, ndim, has_strides, *_ = kind.detail
        yield pointer
        yield from (I64,) * (ndim * (1 + has_strides))
    for each in kind.items:
        yield from _types(each)


def _rebuilt(kind: _Kind, parts: Iterator[Op], known: Any) -> Any:
    """Return a value of ops; ``known`` is one of this kind, for what is known at compile time."""
    if kind.name == "number":
        return Number(next(parts), is_weak=kind.detail[1])
    if kind.name == "complex":
        return Complex(*(_rebuilt(each, parts, None) for each in kind.items))
    if kind.name == "tuple":
        items = known.items if known is not None else [None] * len(kind.items)
        pairs = zip(kind.items, items, strict=True)
        return Tuple(tuple(_rebuilt(each, parts, item) for each, item in pairs), kind.detail)
    if kind.name == "array":
        _, ndim, has_strides, is_readonly, is_complex = kind.detail
        pointer = next(parts)
        shape = tuple(Number(next(parts), is_natural=True) for _ in range(ndim))
        strides = tuple(Number(next(parts)) for _ in range(ndim)) if has_strides else None
        return Array(pointer, shape, strides, is_readonly, is_complex)
    return NONE if known is None else known


def _parameter(procedure: Function, name: str, kind: Any, number: int) -> Op:
    """Add a parameter to a procedure."""
    part = "pointer" if isinstance(kind, Pointer) else "value"
    op = Op("parameter", kind, attribute=Parameter(name, part, number))
    procedure.parameters.append(op)
    return op


def _label(kind: _Kind) -> str:
    if kind.name == "number":
        return str(kind.detail[0].name)
    if kind.name == "array":
        return f"{kind.detail[0].element.name}[{kind.detail[1]}]"
    return str(kind.detail) if kind.name == "constant" else kind.name
