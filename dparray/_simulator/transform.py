"""Rewrite a kernel's code so that numbers have the same types as on a device."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from dparray._language.inference import SITE, Inferred, site
from dparray._language.source import source_of
from dparray._simulator.numbers import converter, literal


class View:
    """A module or an enumeration inside a kernel, with counterparts as members."""

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
    """Return ``code`` whose literals have the types that the compiler gives them."""
    constants: list[Any] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constants.append(typed_literals(constant))
        elif type(constant) in (int, float, complex, tuple):
            constants.append(literal(constant))
        else:
            constants.append(constant)
    return code.replace(co_consts=tuple(constants))


# --- types of variables ---------------------------------------------------------------------------
# A variable that is assigned more than once, `a if condition else b` and an item of a tuple have
# one type in a kernel, which the compiler infers from all assigned values. Each such place is a
# *site*. The compiler types a copy of the function in which sites are calls of
# ``_compiler.inference.site``; in the copy that runs they are calls that convert to these types.

CONVERT = "dparray_convert_"
_Wrap = Callable[[int, ast.expr], ast.expr]

# NumPy's operators on Booleans return Booleans or raise; those of a kernel return integers.
_BOOLEAN_OPERATORS = (
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift),
    *(ast.USub, ast.UAdd),
)
_MAY_BE_BOOLEAN = (ast.Name, ast.Subscript, ast.Call, ast.Compare, ast.BoolOp, ast.IfExp)


class Instrumented(NamedTuple):
    """A copy of a function, with its sites.

    Attributes:
        function: the copy, for the compiler.
        operands: the sites that are the operands of operators which are others of Booleans.
    """

    function: Any  # mypy treats function attributes as methods.
    operands: tuple[tuple[int, ...], ...]


def instrumented(function: FunctionType, *, with_operands: bool) -> Instrumented | None:
    """Return a copy of the function that records the types of its sites, if it has any."""
    typing = _Typing(lambda number, node: _call(SITE, ast.Constant(number), node), with_operands)
    code = _rewritten(function, typing)
    if code is None or not typing.count:
        return None
    scope = {**function.__globals__, SITE: site}
    copy = FunctionType(code, scope, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return Instrumented(copy, tuple(typing.operands))


def converting(
    function: FunctionType, inferred: Inferred, *, with_operands: bool
) -> tuple[CodeType, dict[str, Any]]:
    """Return the code of a function that converts at its sites, and the names it calls."""
    kinds = dict(inferred.sites)
    probe = instrumented(function, with_operands=with_operands)
    # If both operands are Booleans, they are converted to integers.
    for numbers in () if probe is None else probe.operands:
        are_boolean = all(kinds.get(number) == "bool" for number in numbers)
        for number in numbers:
            kinds[number] = "int64" if are_boolean else None
    found = {number: converter(kind) for number, kind in kinds.items()}
    converters = {number: convert for number, convert in found.items() if convert is not None}

    def wrap(number: int, node: ast.expr) -> ast.expr:
        return _call(f"{CONVERT}{number}", node) if number in converters else node

    code = _rewritten(function, _Typing(wrap, with_operands)) if converters else None
    if code is None:
        return function.__code__, {}
    return code, {f"{CONVERT}{number}": convert for number, convert in converters.items()}


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _rewritten(function: FunctionType, typing: _Typing) -> CodeType | None:
    """Return the code of a transformed function; ``None`` without source."""
    source = source_of(function, exact=True)
    if source is None:
        return None
    tree = source.tree
    tree.decorator_list = []
    tree.returns = None
    for argument in ast.walk(tree.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    tree.args.defaults, tree.args.kw_defaults = [], [None] * len(tree.args.kwonlyargs)
    typing.start(tree)
    tree.body = [typing.visit(statement) for statement in tree.body]
    # Captured names must stay captured, so the function is defined inside another that has them.
    captured = [ast.arg(name) for name in function.__code__.co_freevars]
    parameters = ast.arguments([], captured, None, [], [], None, [])
    outer = ast.FunctionDef("dparray_outer", parameters, [tree], [])
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, tree)], []))
    ast.increment_lineno(module, source.first - 1)
    codes = nested(compile(module, source.file, "exec"))
    return next(code for code in codes if code.co_name == tree.name)


def _assigned(tree: ast.FunctionDef) -> Iterator[str]:
    """Yield the assigned variables of a function, once for each assignment."""
    yield from (each.arg for each in ast.walk(tree.args) if isinstance(each, ast.arg))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if isinstance(node, ast.For | ast.AugAssign) and isinstance(node.target, ast.Name):
            # Counted twice: it is assigned in each turn, or had a value before.
            yield node.target.id


class _Typing(ast.NodeTransformer):
    """Wraps the sites of a function, always in the same order."""

    def __init__(self, wrap: _Wrap, with_operands: bool) -> None:
        self.wrap = wrap
        self.with_operands = with_operands
        self.count = 0
        self.operands: list[tuple[int, ...]] = []

    def start(self, tree: ast.FunctionDef) -> None:
        times = Counter(_assigned(tree))
        self.variables = set(times)
        self.joined = {name for name, count in times.items() if count > 1}
        self.tuples = {
            name.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
            for name in node.targets
            if isinstance(name, ast.Name)
        }

    def site(self, node: ast.expr, original: ast.expr) -> ast.expr:
        number, self.count = self.count, self.count + 1
        made = self.wrap(number, node)
        return made if made is node else ast.copy_location(made, original)

    # Inner functions are inlined by the compiler, which requires them to be unchanged.

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    visit_Lambda = visit_ListComp = visit_GeneratorExp = visit_FunctionDef  # type: ignore[assignment]

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self.joined:
            return self.site(node, node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        # The statement also reads the variable.
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        ast.copy_location(value, node)
        ast.copy_location(value.left, node.target)
        return self.visit(ast.copy_location(ast.Assign([node.target], value), node))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self.condition(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return self.site(node, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return self.site(node, node)

    def condition(self, node: ast.expr) -> ast.expr:
        """Transform a condition: only its truth matters, so `and` and `or` need no common type."""
        if isinstance(node, ast.BoolOp):
            node.values = [self.condition(each) for each in node.values]
            return node
        made: ast.expr = self.visit(node)
        return made

    def visit_If(self, node: ast.If | ast.While) -> ast.AST:
        node.test = self.condition(node.test)
        node.body = [self.visit(each) for each in node.body]
        node.orelse = [self.visit(each) for each in node.orelse]
        return node

    visit_While = visit_If

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        takes_item = (
            isinstance(node.ctx, ast.Load)
            and not isinstance(node.slice, ast.Constant | ast.Slice)
            and (
                isinstance(node.value, ast.Tuple)
                or (isinstance(node.value, ast.Name) and node.value.id in self.tuples)
            )
        )
        self.generic_visit(node)
        return self.site(node, node) if takes_item else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        asks = isinstance(node.op, _BOOLEAN_OPERATORS) and self.may_be(node.left, node.right)
        self.generic_visit(node)
        if asks:
            self.operands.append((self.count, self.count + 1))
            node.left = self.site(node.left, node.left)
            node.right = self.site(node.right, node.right)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        asks = isinstance(node.op, _BOOLEAN_OPERATORS) and self.may_be(node.operand)
        self.generic_visit(node)
        if asks:
            self.operands.append((self.count,))
            node.operand = self.site(node.operand, node.operand)
        return node

    def may_be(self, *nodes: ast.expr) -> bool:
        """Return whether all operands may be Booleans."""
        return self.with_operands and all(
            (
                isinstance(node, _MAY_BE_BOOLEAN)
                or isinstance(getattr(node, "value", None), bool)  # the literals True and False
            )
            and not (isinstance(node, ast.Name) and node.id not in self.variables)
            for node in nodes
        )
