"""f-strings in ``print``: device code has no strings, so their parts become arguments."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import ir
from numba.core.errors import UnsupportedError

from dparray._compiler.numba.passes import change


def print_joined(*parts: Any) -> None:
    """Print the parts without spaces between them; calls of ``print`` become calls of this."""


@change()
def print_formatted(state: Any) -> bool:
    """Replace calls of ``print`` whose arguments are f-strings by calls with their parts."""
    assigned: dict[str, list[Any]] = {}
    for block in state.func_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            assigned.setdefault(statement.target.name, []).append(statement)
    known = {name: each[0] for name, each in assigned.items() if len(each) == 1}
    is_changed = False
    for block in state.func_ir.blocks.values():
        for call in list(block.find_exprs(op="call")):
            if _value_of(known, call.func) is print and not call.kws:
                is_changed |= _rewrite(block, known, call)
        for call in block.find_exprs(op="call"):
            if _value_of(known, call.func) is str:
                raise UnsupportedError("str is not available in device code", call.loc)
    return is_changed


def _value_of(known: dict[str, Any], variable: Any) -> Any:
    value = getattr(known.get(variable.name), "value", None)
    return value.value if isinstance(value, ir.Global | ir.FreeVar | ir.Const) else None


def _rewrite(block: Any, known: dict[str, Any], call: Any) -> bool:
    parts: list[Any] = []
    replaced: list[Any] = []
    for argument in call.args:
        parts += [" "] if parts else []
        parts += _parts(known, argument, replaced)
    if not replaced:
        return False
    scope, loc = block.scope, call.loc
    added = []
    for at, part in enumerate(parts):
        if isinstance(part, str):
            parts[at] = scope.redefine("$part", loc)
            added.append(ir.Assign(ir.Const(part, loc), parts[at], loc))
    function = scope.redefine("$print_joined", loc)
    added.append(ir.Assign(ir.Global("print_joined", print_joined, loc), function, loc))
    call.func, call.args = function, tuple(parts)
    body = [each for each in block.body if not any(each is gone for gone in replaced)]
    at = next(i for i, each in enumerate(body) if getattr(each, "value", None) is call)
    block.body = [*body[:at], *added, *body[at:]]
    return True


def _parts(known: dict[str, Any], variable: Any, replaced: list[Any]) -> list[Any]:
    """Return the variables that an f-string joins, and record the statements that join them."""
    statement = known.get(variable.name)
    value = getattr(statement, "value", None)
    if statement is None or not isinstance(value, ir.Expr) or not statement.target.is_temp:
        return [variable]
    if value.op == "call" and _value_of(known, value.func) is str and len(value.args) == 1:
        replaced += [statement, known[value.func.name]]
        return [value.args[0]]
    if value.op == "binop" and value.fn is operator.add:
        before = len(replaced)
        parts = [*_parts(known, value.lhs, replaced), *_parts(known, value.rhs, replaced)]
        are_texts = len(replaced) > before or all(
            isinstance(_value_of(known, each), str) for each in (value.lhs, value.rhs)
        )
        if are_texts:
            replaced.append(statement)
            return parts
    return [variable]
