"""Users' implementations of operations. Plans use them before they choose among the backends.

In a plan, such an operation is a contraction that the implementation computes alone, from whole
arrays in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dparray import _hooks, config
from dparray._driver import traits_of
from dparray._evaluate.dependents import lock
from dparray._graph.contractions import contraction
from dparray._graph.node import Node
from dparray._graph.reductions import Reduce


class Operand(NamedTuple):
    """An operand, as the condition of an implementation sees it; scalars have the shape ()."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Implementation(NamedTuple):
    """An implementation of an operation.

    Attributes:
        compute: called with the operation, its signature, layouts and scalars, and the layout of
            the result, which it fills.
        device_type: the kind of device that it is for; ``None`` for all.
        when: returns whether it accepts operands; ``None`` if it accepts all.
        reason: the text for explanations.
    """

    compute: Callable[..., None]
    device_type: str | None
    when: Callable[..., Any] | None
    reason: str


#: By operation, the latest last. An operation is a row of a table, or a user's array function.
registered: dict[Any, tuple[Implementation, ...]] = {}
#: Whether some are for CPU devices, where small arrays then have no fast path.
are_for_cpu = False


def set_for(operation: Any, implementations: Iterable[Implementation]) -> None:
    """Set the implementations of an operation, and drop all plans."""
    global are_for_cpu
    with lock:  # No plan is made meanwhile.
        registered[operation] = tuple(implementations)
        if not registered[operation]:
            del registered[operation]
        kinds = {each.device_type for candidates in registered.values() for each in candidates}
        are_for_cpu = not kinds.isdisjoint((None, "cpu"))
        _hooks.option_was_set("plans")
        _hooks.option_was_set("implementations")


def find(
    op: Any, shapes: Iterable[tuple[int, ...]], signature: Iterable[np.dtype[Any]], queue: Any
) -> Implementation | None:
    """Return the implementation of an operation on a queue, if there is one."""
    if not registered or not config.implementations:
        return None
    row = op.reduction if type(op) is Reduce else op
    kind, operands = traits_of(queue).kind, list(map(Operand, shapes, signature))
    for each in reversed(registered.get(row.made_by or row, ())):
        if each.device_type in (None, kind) and (each.when is None or each.when(*operands)):
            return each
    return None


def operation_of(node: Node) -> Any:
    """Return the operation of a pending node as a plan has it."""
    op = node.op
    if not registered or (type(op) is Reduce and op.merges):
        return op
    operands = node.operands[:1] if type(op) is Reduce else node.operands
    shapes = [part.shape if type(part) is Node else () for part in operands]
    function = find(op, shapes, node.signature, node.queue)
    if function is None or op is None:
        return op
    compute, count = partial(function.compute, op, node.signature), len(node.operands)
    return contraction(op.name, "", count, function.reason, len, implementation=compute)
