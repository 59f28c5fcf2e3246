"""The short way to one operation of large arrays that NumPy computes.

On a million elements a core of a CPU reaches the memory's speed, and all that a program waits for
beside NumPy's own time is Python, whose code such arrays drive out of a core's caches: every call
less counts three times. So what a plan of one step of the host's has decided is remembered by the
operation and its operands, without the plan's numbers and slots.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from dparray import _hooks, config
from dparray._evaluate import host
from dparray._evaluate.plan import Plan
from dparray._graph.node import Node, Scalar
from dparray._layout import Layout
from dparray._runtime import access, queues
from dparray.memory import pool
from dparray.memory.segments import Block


class _Result(NamedTuple):
    """Where the result of an operation lies."""

    nbytes: int
    strides: tuple[int, ...]


#: By an operation with its operands' layouts. All are dropped when there are many.
_known: dict[Any, _Result] = {}
_MOST_KNOWN = 1024
_values = vars(config)

#: The operations among them: who evaluates one asks here first.
operations: set[Any] = set()


def forget() -> None:
    """Forget all, since another executor may be the one."""
    _known.clear()
    operations.clear()


_hooks.when_set("executor", forget)


def note(node: Node, plan: Plan) -> None:
    """Remember a pending node whose plan begins with a step of the host's, if that is all of it."""
    key = _key_of(node)
    step = plan.steps[0]
    if key is None or len(plan.steps) > 1 or len(step.new) != 1:
        return
    if len(_known) >= _MOST_KNOWN:
        forget()
    new = step.new[0]
    _known[key] = _Result(new.nbytes, new.strides)
    operations.add(node.op)


def compute(node: Node) -> bool:
    """Compute a pending node if it is known; false if the long way has to.

    It has to where somebody listens, and where the host would wait for the memory.
    """
    key = _key_of(node)
    found = _known.get(key) if key is not None else None
    if found is None or access.holds or _hooks.subscribers or not _values["host_tier"]:
        return False
    operands: list[Any] = []
    working = queues.working
    for part, dtype in zip(node.operands, node.loop, strict=False):
        if type(part) is Scalar:
            operands.append(dtype.type(part.value))
            continue
        block, offset, shape, strides, own = part.layout  # type: ignore[misc, union-attr]
        if working and not queues.may_read(block):
            return False
        operands.append(np.ndarray(shape, own, block.host_bytes, offset, strides))
    block = pool.allocate(node.queue, node.usm_type, found.nbytes)
    if working and not queues.may_write(block):  # it lay elsewhere before
        return False
    out: np.ndarray = np.ndarray(node.shape, node.dtype, block.host_bytes, 0, found.strides)
    if host.call(host.compute_node, node, operands, out) is None:
        return False
    assert node.op is not None
    _hooks.recent.append((node.op.name, "NumPy for", node.queue, get_ident()))
    node.complete(Layout(block, 0, node.shape, found.strides, node.dtype))
    return True


def _key_of(node: Node) -> tuple[Any, ...] | None:
    """What decides how a node is computed, if all its arrays lie in the pool's memory."""
    key: list[Any] = [node.op, node.loop, node.shape, node.axes, node.queue, node.usm_type]
    for part in node.operands:
        if type(part) is Scalar:
            key.append(None)
            continue
        layout = part.layout  # type: ignore[union-attr]
        if layout is None or type(layout.block) is not Block:
            return None
        key += layout.shape, layout.strides, layout.dtype
    return tuple(key)
