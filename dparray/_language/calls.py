"""Calls: functions of the language by their handlers, device functions translated in place."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from dparray._ir.instructions import Place
from dparray._language import array_functions, builtins, scalar_functions
from dparray._language.control import Control, Ended
from dparray._language.device_function import DeviceFunction
from dparray._language.errors import ON_ARRAYS, RECURSION, Refusal, call_problem
from dparray._language.promotion import WIDE, Rules, is_own
from dparray._language.references import KNOWN_PACKAGES
from dparray._language.syntax import scope_of, syntax_of
from dparray._language.values import (
    NONE,
    Array,
    Conflict,
    Constant,
    Frame,
    Item,
    Lambda,
    Method,
    Target,
    Tuple,
    described,
)

#: The modules whose functions are written in the language, without a decorator.
_OWN_MODULES = ("dparray._language.", "dparray.kernels.")
#: Functions of these modules compute with the types of their call, as ``np.maximum`` does.
_OF_CALLERS = (array_functions.__name__, scalar_functions.__name__)
#: Functions of these modules are no functions of users.
_PRELUDE = "dparray._language."


class Calls(Control):
    """The part of the front end for calls.

    Attributes:
        active: the code of the functions that are being translated, outermost first.
        callers: the statements that have called them.
        is_checked: whether the kernel checks its indices while it runs.
        is_sequential: whether this is a function of the host.
        has_arrays: whether array statements are allowed here.
        users_rules: the rules of types in functions that are not the package's own.
    """

    active: list[Any]
    callers: list[Place]
    is_checked: bool
    is_sequential: bool
    has_arrays: bool
    users_rules: Rules

    def value(self, node: ast.expr) -> Any:
        raise NotImplementedError

    def array_of(self, items: Sequence[Any], node: ast.AST) -> Any:
        raise NotImplementedError

    def read_name(self, value: Any, node: Any) -> Any:
        raise NotImplementedError

    def of_call(self, node: ast.Call) -> Any:
        called = self.value(node.func)
        if self.is_sequential and _is_of_comprehension(called, node):
            return self.of_comprehension(called.value, node)
        arguments: list[Any] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                arguments += self.items_of(self.value(each.value), each)
            elif self.has_arrays and isinstance(each, ast.List) and _takes_list(called):
                arguments.append(self.array_of([*map(self.value, each.elts)], node))
            else:
                arguments.append(self.value(each))
        for keyword in node.keywords:
            if keyword.arg is None:
                raise Refusal("device code has no dict: name the arguments", keyword.value)
        named = {str(each.arg): self.value(each.value) for each in node.keywords}
        value = self.call(called, arguments, named, node)
        if not self.is_noted_double(value):
            return value
        kinds = ", ".join(described(each) for each in arguments)
        name = ast.unparse(node.func).rpartition(".")[2]
        self.notes.computes_double(f"{name}({kinds}) is {described(value)}")
        return value

    def of_comprehension(self, function: Any, node: ast.Call) -> Any:
        """Translate a sum of a comprehension, ``any`` or ``all``, as loops over its items."""
        key = "comprehension", id(node)
        if key not in self.knowledge:
            self.knowledge[key] = _loops_of(function, node)
        name, loops = self.knowledge[key]
        self.frame.names[name] = Constant(function is all if function is not sum else 0, True)
        self.statements(loops)
        return self.read_name(self.frame.names[name], node)

    @property
    def is_in_kernel(self) -> bool:  # type: ignore[override]
        return self.frame.function is not None and len(self.active) == 1

    def call(self, called: Any, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Translate a call."""
        if isinstance(called, Lambda):
            return self.inlined_lambda(called, arguments, named, node)
        if isinstance(called, Method):
            return builtins.method(self, called, arguments, named, node)
        if not isinstance(called, Constant):
            raise Refusal(f"{described(called)} is not a function", node)
        if self.is_sequential and getattr(called.value, "__name__", "") == "prange":
            called = Constant(range)  # the iterations of a function that is called run in order
        handler = builtins.handler(called.value)
        if handler is not None:
            return self.handled(handler, called.value, arguments, named, node)
        function = called.value
        if isinstance(function, type) and hasattr(function, "_fields"):
            return self.named_tuple(function, arguments, named, node)
        if isinstance(function, DeviceFunction):
            function = function.py_func
        elif self.is_sequential and (users := _users_function(function)) is not None:
            function = users
        elif not _is_own(function):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else described(called)
            raise Refusal(call_problem(name, function), node)
        return self.inlined(function, arguments, named, node)

    def handled(
        self,
        handler: Any,
        called: Any,
        arguments: Sequence[Any],
        named: Mapping[str, Any],
        node: ast.AST,
    ) -> Any:
        """Translate the call of a function of the language."""
        try:
            _check_call(
                getattr(handler, "func", handler),
                len(getattr(handler, "args", ())) + 2 + len(arguments),
                frozenset(named) | frozenset(getattr(handler, "keywords", ())),
            )
        except TypeError as error:
            raise Refusal(builtins.wrong_call(called, node, error), node) from None
        return handler(self, node, *arguments, **named)

    def named_tuple(
        self, kind: Any, arguments: Sequence[Any], named: Mapping[str, Any], node: ast.AST
    ) -> Tuple:
        """Return an instance of a named tuple."""
        try:
            bound = inspect.signature(kind).bind(*arguments, **named)
        except TypeError as error:
            raise Refusal(f"the call does not fit {kind.__name__}: {error}", node) from None
        defaults = getattr(kind, "_field_defaults", {})
        values = bound.arguments
        return Tuple(
            tuple(
                values[name] if name in values else self.known(defaults[name])
                for name in kind._fields
            ),
            kind,
        )

    def inlined(
        self, function: FunctionType, arguments: list[Any], named: dict[str, Any], node: ast.AST
    ) -> Any:
        """Translate the body of a function in place."""
        frame = self.frame_of(function, arguments, named, node)
        body = syntax_of(function).tree.body
        return self.run(frame, body, function.__code__, function.__name__, node)

    def frame_of(
        self, function: FunctionType, arguments: list[Any], named: dict[str, Any], node: ast.AST
    ) -> Frame:
        """Return the frame of a call."""
        source = syntax_of(function)
        parameters = inspect.signature(function).parameters.values()
        defaults = {
            each.name: self.known(each.default)
            for each in parameters
            if each.default is not each.empty
        }
        frame = Frame(function, {}, scope_of(function), (*self.frame.path, id(node)))
        frame.rules = self.rules_of(function)
        if self.rules.is_numpy and not frame.rules.is_numpy:
            arguments = list(map(self.strong, arguments))
            named = {name: self.strong(value) for name, value in named.items()}
        frame.names = self.bound(source.tree.args, defaults, arguments, named, function, node)
        return frame

    def inlined_lambda(
        self, called: Lambda, arguments: list[Any], named: dict[str, Any], node: ast.AST
    ) -> Any:
        """Translate the body of a function that is defined in the kernel."""
        definition, outer = called.node, called.frame
        name = getattr(definition, "name", "lambda")
        args = definition.args
        positional = [each.arg for each in (*args.posonlyargs, *args.args)]
        first = len(positional) - len(args.defaults)
        defaults = dict(zip(positional[first:], map(self.value, args.defaults), strict=True))
        for keyword, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            if default is not None:
                defaults[keyword.arg] = self.value(default)
        path = (*self.frame.path, id(node))
        frame = Frame(outer.function, {}, outer.scope, path, outer=outer, rules=outer.rules)
        frame.names = self.bound(args, defaults, arguments, named, name, node)
        body = definition.body
        if isinstance(definition, ast.Lambda):
            body = [ast.copy_location(ast.Return(definition.body), definition.body)]
        return self.run(frame, body, definition, name, node)

    def bound(
        self,
        args: ast.arguments,
        defaults: Mapping[str, Any],
        arguments: Sequence[Any],
        named: Mapping[str, Any],
        function: Any,
        node: ast.AST,
    ) -> dict[str, Any]:
        """Return the arguments of a call by the names of parameters, as Python binds them."""
        if args.kwarg is not None:
            raise Refusal(
                f"{_name(function)} takes **{args.kwarg.arg}, and device code has no dict: name "
                "the parameters",
                node,
            )
        positional = [each.arg for each in (*args.posonlyargs, *args.args)]
        by_name = {each.arg for each in (*args.args, *args.kwonlyargs)}
        values = dict(zip(positional, arguments, strict=False))
        problem = ""
        if args.vararg is not None:
            values[args.vararg.arg] = Tuple(tuple(arguments[len(positional) :]))
        elif len(arguments) > len(positional):
            problem = "too many positional arguments"
        for name, value in named.items():
            if name in values and name in by_name:
                problem = problem or f"multiple values for argument '{name}'"
            elif name not in by_name:
                problem = problem or f"got an unexpected keyword argument '{name}'"
            values[name] = value
        for name in (*positional, *(each.arg for each in args.kwonlyargs)):
            if name not in values and name not in defaults:
                problem = problem or f"missing a required argument: '{name}'"
            values.setdefault(name, defaults.get(name))
        if problem:
            plain = copy.deepcopy(args)
            for each in (*plain.posonlyargs, *plain.args, plain.vararg, *plain.kwonlyargs):
                if each is not None:
                    each.annotation = None
            raise Refusal(
                f"the call does not fit the function {_name(function)}({ast.unparse(plain)}): "
                f"{problem}",
                node,
            )
        return values

    def run(
        self, frame: Frame, body: Sequence[ast.stmt], key: Any, name: str, node: ast.AST
    ) -> Any:
        """Translate the body of a called function; return the value that it returns."""
        if key in self.active and not any(map(is_function, frame.names.values())):
            written = ast.unparse(node.func) if isinstance(node, ast.Call) else name
            raise Refusal(f"{written} calls itself: {RECURSION}", node)
        caller, place = self.frame, self.place
        assert place is not None
        self.frame = frame
        self.active.append(key)
        self.callers.append(place)
        target = Target(self.flow("block"))
        frame.returns = target
        if not self.is_in_prelude:
            source = syntax_of(frame.function)
            self.place = place._replace(file=source.file, function=name)

        def translate() -> Any:
            self.statements(body)
            return NONE

        target.op.bodies = [self.inside(target, translate)]
        only = target.exits[0] if len(target.exits) == 1 else None
        if only is not None and only.body is target.op.bodies[0]:
            # The only way out is the end, so the body needs no block.
            self.body += only.body[:-1]
            value = only.value
        else:
            for each in target.exits:
                each.names = {}
            value = self.join(target)
        self.frame, self.place = caller, place
        self.active.pop()
        self.callers.pop()
        if self.has_ended:
            raise Ended
        if isinstance(value, Conflict):
            raise Refusal(f"what {name} returns: {value.text}", node)
        return value

    @property
    def rules(self) -> Rules:
        return self.frame.rules

    def rules_of(self, function: Any) -> Rules:
        """Return the rules of types in a function: wide numbers in the package's own."""
        if getattr(function, "__module__", None) in _OF_CALLERS:
            return self.rules
        return WIDE if is_own(function) else self.users_rules

    @property
    def is_in_prelude(self) -> bool:
        """Whether the language's own functions are translated, whose ops are at their calls."""
        return (getattr(self.frame.function, "__module__", None) or "").startswith(_PRELUDE)

    def check_method(self, owner: Any, name: str, node: ast.AST) -> None:
        problem = builtins.no_method(owner, name, node)
        if problem:
            raise Refusal(problem, node)

    def attribute_of_item(self, owner: Item, name: str) -> Any:
        if name == "dimensions":
            return Constant(owner.dimensions, True)
        if name == "leader" and owner.kind in ("Group", "SubGroup"):
            return self.python(builtins.work_items.leader(self, owner))
        return None

    def refuse_arrays(self, name: str, arguments: Sequence[Any], node: ast.AST) -> None:
        """Refuse whole arrays as the numbers that a function takes."""
        if any(isinstance(each, Array) for each in arguments):
            raise Refusal(f"{name} {ON_ARRAYS}", node)


@functools.lru_cache(maxsize=512)  # Reading a signature takes longer than translating most calls.
def _check_call(handler: Any, count: int, names: frozenset[str]) -> None:
    """Raise TypeError unless a handler takes ``count`` positional arguments and these names."""
    inspect.signature(handler).bind(*[None] * count, **dict.fromkeys(names))


def _is_of_comprehension(called: Any, node: ast.Call) -> bool:
    is_one = len(node.args) == 1 and isinstance(node.args[0], ast.ListComp | ast.GeneratorExp)
    is_known = isinstance(called, Constant) and called.value in (sum, any, all)
    return is_one and is_known and not node.keywords


def _takes_list(called: Any) -> bool:
    return isinstance(called, Constant) and called.value in (np.array, np.asarray)


def _loops_of(function: Any, node: ast.Call) -> tuple[str, list[ast.stmt]]:
    """Return the loops over the items of a comprehension, and the name of their result."""
    given: Any = copy.deepcopy(node.args[0])
    result = f".{id(node)}"
    own = {
        each.id
        for part in given.generators
        for each in ast.walk(part.target)
        if isinstance(each, ast.Name)
    }
    for each in ast.walk(given):
        if isinstance(each, ast.Name) and each.id in own:
            each.id = f"{result}.{each.id}"  # Its variables are its own.
    if function is sum:
        body: Any = ast.AugAssign(ast.Name(result, ast.Store()), ast.Add(), given.elt)
    else:
        test = given.elt if function is any else ast.UnaryOp(ast.Not(), given.elt)
        known = ast.Assign([ast.Name(result, ast.Store())], ast.Constant(function is any))
        body = ast.If(test, [known], [])
    for part in reversed(given.generators):
        for test in reversed(part.ifs):
            body = ast.If(test, [body], [])
        body = ast.For(part.target, part.iter, [body], [])
    return result, [ast.fix_missing_locations(ast.copy_location(body, node))]


def _is_own(function: Any) -> bool:
    """Return whether a plain Python function is a part of the language."""
    if not isinstance(function, FunctionType):
        return False
    return (function.__module__ or "").startswith(_OWN_MODULES)


def _users_function(value: Any) -> FunctionType | None:
    """Return the plain function of a user's function, compiled or not, which the host may call."""
    is_compiled = type(value).__name__ == "JitFunction"
    function = getattr(value, "py_func", None) if is_compiled else value
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    is_users = isinstance(function, FunctionType) and package not in {*KNOWN_PACKAGES, "dparray"}
    return function if is_users else None


def is_function(value: Any) -> bool:
    """Return whether a value can be called."""
    if isinstance(value, Constant):
        return callable(value.value)
    return isinstance(value, Lambda | Method)


def _name(function: Any) -> str:
    return getattr(function, "__name__", str(function))
