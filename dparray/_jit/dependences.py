"""Dependences between iterations of a ``prange`` loop, through variables and fixed elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, cast

from dparray._jit.source import Source, assigned_names, upward_exposed, used_names

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.BitOr, ast.BitXor, ast.BitAnd)


def find_reductions(
    source: Source, body: list[ast.stmt], variables: set[str]
) -> dict[str, tuple[Any, bool]]:
    """Return the operator of each reduction variable, and whether all updates are augmented.

    An operator is the class of the operator, ``"min"`` or ``"max"``. Only the updates may read such
    a variable, and conditions like that of ``if x > m: m = x``.

    Raises:
        KernelCompileError: an iteration reads a variable that another iteration assigns.
    """
    found = {}
    for name in sorted((upward_exposed(body) & assigned_names(body)) - variables):
        uses = [use for statement in body for use in uses_of(statement, name)]
        updates = [(node, op) for node, op in uses if op is not None]
        others = [node for node, op in uses if op is None]
        operators = [op for _, op in updates]
        wrong = [each for each in others if not isinstance(each.ctx, ast.Load)]
        wrong += [node for node, op in updates if op != operators[0]]
        if wrong or not updates:
            raise source.error(
                (wrong or others)[0],
                f"{name!r} carries a value from one iteration of the prange loop to the next, and "
                "is not a reduction",
                f"use range for this loop, or combine by one operator: {name} += ..., *=, |=, &=, "
                f"^=, {name} = min({name}, ...) or max",
            )
        if others:
            raise source.error(
                others[0],
                f"{name!r} is a reduction of the prange loop, whose iterations run together, so it "
                "has its value only after the loop",
                f"read {name} after the loop, or use range for this loop",
            )
        found[name] = operators[0], all(isinstance(node, ast.AugAssign) for node, _ in updates)
    return found


def put_first(body: list[ast.stmt], name: str) -> None:
    """Write a variable as the first operand of its updates by ``min`` and ``max``.

    These return their first operand if one is NaN, so that NaN is left out, whichever part of the
    loop it is in. With the operands as in ``max(x[i], m)``, a NaN drops the elements before it.
    """
    for node in cast("Iterator[Any]", (e for each in body for e in ast.walk(each))):
        is_call = isinstance(node, ast.Call) and ast.unparse(node.func) in ("min", "max")
        if is_call and len(node.args) == 2 and _is(node.args[1], name):
            node.args.reverse()


def uses_of(node: ast.AST, name: str) -> Iterator[tuple[Any, Any]]:
    """Yield the updates of a variable, each with its operator, and other places of its name."""
    op = _update(node, name)[0] or _guarded_update(node, name)
    if op is not None or _is(node, name):
        yield node, op
    else:
        for child in ast.iter_child_nodes(node):
            yield from uses_of(child, name)


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _update(statement: ast.AST, name: str) -> tuple[Any, ast.expr | None]:
    """Return the operator by which a statement updates a variable, and the other operand."""
    op: Any = None
    value: ast.expr | None = None
    if isinstance(statement, ast.AugAssign) and _is(statement.target, name):
        op, value = type(statement.op), statement.value
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        given = statement.value if _is(statement.targets[0], name) else None
        if isinstance(given, ast.BinOp) and _is(given.left, name):
            op, value = type(given.op), given.right
        elif isinstance(given, ast.Call) and len(given.args) == 2 and not given.keywords:
            called = ast.unparse(given.func).rpartition(".")[2]
            op = {"minimum": "min", "maximum": "max"}.get(called, called)
            others = [each for each in given.args if not _is(each, name)]
            value = others[0] if op in ("min", "max") and len(others) == 1 else None
    if value is None or name in used_names(value):
        return None, None
    op = ast.Add if op is ast.Sub else op
    return (op, value) if op in ("min", "max", *_OPERATORS) else (None, None)


def _guarded_update(statement: ast.AST, name: str) -> Any:
    """Return ``"max"`` for ``if x > m: m = x`` or ``m = max(m, x)``, or ``"min"``, or ``None``."""
    if not isinstance(statement, ast.If) or len(statement.body) != 1 or statement.orelse:
        return None
    test, update = statement.test, statement.body[0]
    is_and = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    tests = [each for each in (test.values if is_and else [test]) if name in used_names(each)]  # type: ignore[attr-defined]
    if len(tests) != 1 or not isinstance(tests[0], ast.Compare) or len(tests[0].ops) != 1:
        return None
    (sign,), sides = tests[0].ops, [tests[0].left, tests[0].comparators[0]]
    values = [each for each in sides if not _is(each, name)]
    if len(values) != 1 or not isinstance(sign, ast.Gt | ast.GtE | ast.Lt | ast.LtE):
        return None
    op = "max" if isinstance(sign, ast.Gt | ast.GtE) == (values[0] is sides[0]) else "min"
    own, value = _update(update, name)
    is_plain = isinstance(update, ast.Assign) and [_is(e, name) for e in update.targets] == [True]
    if own is None and is_plain:
        own, value = op, update.value  # type: ignore[attr-defined]
    is_same = value is not None and ast.dump(value) == ast.dump(values[0])
    return op if own == op and is_same else None


def fixed_update(body: list[ast.stmt], variable: str) -> ast.Subscript | None:
    """Return an element or slice that iterations for all values of a loop variable update.

    The result would depend on their order. Return ``None`` if there is no such element. Indices
    that an iteration computes, as in histograms, are not compared.
    """
    changing = {variable} | assigned_names(body)
    for node in (node for each in body for node in ast.walk(each)):
        if isinstance(node, ast.For) and not used_names(node.iter) & changing:
            changing -= assigned_names(node.target)
    for statement, tested, is_always in _statements(body, variable, set(), True):
        read = _names_of_elements(statement.value) | tested
        for node in ast.walk(statement):
            if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
                continue
            has_call = any(isinstance(each, ast.Call) for each in ast.walk(node))
            is_read = isinstance(statement, ast.AugAssign) or ast.unparse(node.value) in read
            is_last = is_always and read & changing  # in order, the last value would stay
            if not used_names(node) & changing and not has_call and (is_read or is_last):
                return node
    return None


def _statements(
    body: list[ast.stmt], variable: str, tested: set[str], is_always: bool
) -> Iterator[tuple[ast.Assign | ast.AugAssign, set[str], bool]]:
    """Yield assignments that many iterations execute, the names in their conditions, and whether
    all iterations execute them.
    """
    for node in body:
        if isinstance(node, ast.Assign | ast.AugAssign):
            yield node, tested, is_always
        elif isinstance(node, ast.If | ast.For | ast.While):
            test = None if isinstance(node, ast.For) else node.test
            # A condition such as i == 0 selects one iteration.
            is_one = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)
            if test is None or not is_one or variable not in used_names(test):
                names = tested if test is None else tested | _names_of_elements(test)
                inner = [*node.body, *node.orelse]
                yield from _statements(inner, variable, names, is_always and test is None)
        is_always &= not any(isinstance(each, ast.Continue) for each in ast.walk(node))


def _names_of_elements(tree: ast.AST) -> set[str]:
    """Return the names that an expression reads, except those of which it reads the shape."""
    nodes = [*ast.walk(tree)]
    about = [
        node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr == "shape"
    ]
    return {node.id for node in nodes if isinstance(node, ast.Name) and node not in about}
