"""Rewrites of programs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dparray._ir.instructions import CONTROL, OPS, Function, Op, walk

MAX_SELECTED_OPS = 6

#: Tests set it: programs are verified after each stage, here and in processes that tests start.
_VERIFIES = bool(os.environ.get("DPARRAY_VERIFY_IR"))


def finish(function: Function, stage: str) -> Function:
    """Return the program of a stage, which tests verify.

    Args:
        function: the program as the stage leaves it.
        stage: its name, for errors of the verifier.
    """
    if _VERIFIES:
        from dparray._ir.verify import verify

        verify(function, stage)
    return function


def selected(op: Op) -> list[Op] | None:
    """Return an ``if`` as ops that compute both bodies and select the results.

    Return ``None`` where a body has another way out, or computes more than a branch costs.
    """
    *_, first = op.bodies[0]
    *_, second = op.bodies[1]
    inner = [each for body in op.bodies for each in body[:-1]]
    if not op.results or len(inner) > MAX_SELECTED_OPS:
        return None
    if any(jump.name != "leave" or jump.attribute is not op for jump in (first, second)):
        return None
    if not all(OPS[each.name].is_cheap for each in inner):
        return None
    for number, result in enumerate(op.results):
        result.name = "select"
        result.operands = [op.operands[0], first.operands[number], second.operands[number]]
    return [*inner, *op.results]


def remove_unused(function: Function) -> None:
    """Remove the ops, results and carried values that nothing needs."""
    needed = _needed(function.body)
    bodies = [function.body]
    while bodies:
        body = bodies.pop()
        body[:] = [op for op in body if OPS[op.name].has_effect or id(op) in needed]
        for op in body:
            bodies += op.bodies
            if op.name in ("leave", "repeat"):
                target = op.attribute
                values = target.results if op.name == "leave" else target.carried
                op.operands = _kept(op.operands, values, needed)
    for op in walk(function.body):
        if op.name == "loop":
            op.operands = _kept(op.operands, op.carried, needed)
            op.carried = _kept(op.carried, op.carried, needed)
        op.results = _kept(op.results, op.results, needed)


def _kept(ops: Sequence[Op], values: Sequence[Op], needed: set[int]) -> list[Op]:
    return [op for op, value in zip(ops, values, strict=True) if id(value) in needed]


def _needed(body: Sequence[Op]) -> set[int]:
    """Return the ops whose values ops with an effect depend on, by identity."""
    sources: dict[int, list[Op]] = {}
    pending: list[Op] = []
    for op in walk(body):
        if op.name == "loop":
            for carried, first in zip(op.carried, op.operands, strict=True):
                sources.setdefault(id(carried), []).append(first)
        elif op.name in ("leave", "repeat"):
            target = op.attribute
            values = target.results if op.name == "leave" else target.carried
            for value, operand in zip(values, op.operands, strict=True):
                sources.setdefault(id(value), []).append(operand)
        elif OPS[op.name].has_effect:
            pending += op.operands
    needed: set[int] = set()
    while pending:
        op = pending.pop()
        if id(op) not in needed:
            needed.add(id(op))
            pending += op.operands if op.name not in CONTROL else ()
            pending += sources.get(id(op), ())
    return needed


def simplify(function: Function) -> None:
    """Remove blocks that are left at their end alone, and conditions without effect."""
    replaced: dict[int, Op] = {}
    _simplify(function.body, replaced)
    for op in walk(function.body):
        op.operands = [_last(operand, replaced) for operand in op.operands]


def _simplify(body: list[Op], replaced: dict[int, Op]) -> None:
    new: list[Op] = []
    for op in body:
        for inner in op.bodies:
            _simplify(inner, replaced)
        if op.name == "block" and _is_left_at_its_end(op):
            *inside, jump = op.bodies[0]
            new += inside
            replaced |= {
                id(result): value for result, value in zip(op.results, jump.operands, strict=True)
            }
        elif op.name != "if" or not all(_is_empty(inner, op) for inner in op.bodies):
            new.append(op)
    body[:] = new


def _is_empty(body: Sequence[Op], owner: Op) -> bool:
    return body[0].name == "leave" and body[0].attribute is owner and not owner.results


def _is_left_at_its_end(block: Op) -> bool:
    ways = [op for op in walk(block.bodies[0]) if op.name == "leave" and op.attribute is block]
    return len(ways) == 1 and block.bodies[0][-1] is ways[0]


def _last(op: Op, replaced: dict[int, Op]) -> Op:
    while id(op) in replaced:
        op = replaced[id(op)]
    return op
