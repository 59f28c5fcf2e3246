"""The kernel's code, rewritten so that numbers have the types they have on a device."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from dparray._compiler.diagnosis import source_of
from dparray._compiler.key import referred_values
from dparray._simulator.numbers import literal, unified


class View:
    """A module or an enumeration as the kernel sees it: members stand for their counterparts."""

    def __init__(self, owner: Any, stand_in: Callable[[Any], Any]) -> None:
        self._owner = owner
        self._stand_in = stand_in

    def __getattr__(self, name: str) -> Any:
        value = self._stand_in(getattr(self._owner, name))
        setattr(self, name, value)
        return value


def nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def typed_literals(code: CodeType) -> CodeType:
    """``code`` with literals of the types the compiler gives them."""
    constants: list[Any] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constants.append(typed_literals(constant))
        elif type(constant) in (int, float, complex, tuple):
            constants.append(literal(constant))
        else:
            constants.append(constant)
    return code.replace(co_consts=tuple(constants))


# --- choices --------------------------------------------------------------------------------------
# `a if condition else b` has one type in a kernel, whichever it gives. The other value is computed,
# too, where that can be done without being seen: it tells its type.

CHOOSE = "dparray_choose"

# An item of a tuple that a computed index takes has the type of all items: a number that is written
# among them is an int64, whatever it comes beside. Tuples of others are not taken from that way.
ITEM = "dparray_item"
_PURE = (
    *(ast.Name, ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp),
    *(ast.IfExp, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
)
_PURE_BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "round"})


def choose(condition: Any, first: Callable[[], Any], second: Callable[[], Any], seen: int) -> Any:
    """The value of a choice; ``seen`` has a bit for each side that must not be computed unasked."""
    taken, other = (first, second) if condition else (second, first)
    value = taken()
    if seen >> (1 if condition else 0) & 1:
        return value
    try:
        beside = other()
    except Exception:  # the side that is not taken may have no value, as a quotient by zero
        return value
    return unified(value, beside)


def with_typed_parts(function: FunctionType) -> CodeType:
    """The code of a function in which choices and items of tuples have the types of all of them.

    It is the function's own where it has none, and where its source is not at hand.
    """
    source = source_of(function, exact=True)
    if source is None:
        return function.__code__
    tree = source.tree
    tuples = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
        for name in node.targets
        if isinstance(name, ast.Name)
    }
    if not any(isinstance(node, ast.IfExp) or _takes_item(node, tuples) for node in ast.walk(tree)):
        return function.__code__
    tree.decorator_list = []
    tree.returns = None
    for argument in ast.walk(tree.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    tree.args.defaults, tree.args.kw_defaults = [], [None] * len(tree.args.kwonlyargs)
    _Typing(referred_values(function), tuples).visit(tree)
    # Captured names stay captured: the function is made inside of one that has them.
    captured = [ast.arg(name) for name in function.__code__.co_freevars]
    parameters = ast.arguments([], captured, None, [], [], None, [])
    outer = ast.FunctionDef("dparray_outer", parameters, [tree], [])
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, tree)], []))
    ast.increment_lineno(module, source.first - 1)
    codes = nested(compile(module, source.file, "exec"))
    return next(code for code in codes if code.co_name == tree.name)


def _takes_item(node: ast.AST, tuples: set[str]) -> bool:
    """Whether a computed index takes an item of a tuple, written or of one of these names."""
    return (
        isinstance(node, ast.Subscript)
        and not isinstance(node.slice, ast.Constant | ast.Slice)
        and (
            isinstance(node.value, ast.Tuple)
            or (isinstance(node.value, ast.Name) and node.value.id in tuples)
        )
    )


class _Typing(ast.NodeTransformer):
    def __init__(self, known: dict[str, Any], tuples: set[str]) -> None:
        self.known = known
        self.tuples = tuples

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not _takes_item(node, self.tuples):
            return node
        return ast.copy_location(ast.Call(ast.Name(ITEM, ast.Load()), [node], []), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        seen = sum(
            bit for bit, side in ((1, node.body), (2, node.orelse)) if not self.is_pure(side)
        )
        self.generic_visit(node)
        if seen == 3:
            return node
        sides = [
            ast.Lambda(ast.arguments([], [], None, [], [], None, []), side)
            for side in (node.body, node.orelse)
        ]
        call = ast.Call(ast.Name(CHOOSE, ast.Load()), [node.test, *sides, ast.Constant(seen)], [])
        return ast.copy_location(call, node)

    def is_pure(self, node: ast.expr) -> bool:
        """Whether nothing shows that an expression was computed."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                called = ast.unparse(part.func)
                is_type = isinstance(self.known.get(called), type)
                is_number = ".get_" in called or called.startswith("math.")
                if not (called in _PURE_BUILTINS or is_type or is_number):
                    return False
            elif not isinstance(part, _PURE):
                return False
        return True
