"""Timing of generated kernels, for bandwidths and for estimates of placement policies."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dparray._codegen.canonical import Canonical
from dparray._evaluate import evaluate
from dparray._evaluate.execute import execute
from dparray._evaluate.expression import Expression
from dparray._evaluate.schedule import schedule
from dparray._graph.node import Node, Scalar, pending_order
from dparray._graph.ops import OPS
from dparray._layout import Layout
from dparray._runtime import queues


def least(call: Callable[[], Any], times: int) -> float:
    """Return the shortest time of several calls; other load only makes calls longer."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best


def addition(queue: Any, layout: Layout) -> Callable[[], None]:
    """Return a call that adds a number to a vector by a kernel, and waits for it."""
    leaf, dtype, count = Node.leaf(layout, queue, "device"), layout.dtype, layout.shape[0]
    node = Node(OPS["add"], (leaf, Scalar(1.0)), (dtype,) * 3, (count,), count, queue, "device")
    return runner(queue, node)


def runner(queue: Any, node: Node) -> Callable[[], None]:
    """Return a call that runs the kernels of a pending node, which stays pending."""
    order = pending_order([node])
    canonical = Canonical(order)
    traits = evaluate.plan_traits_of(queue)._replace(host_memory=frozenset())
    plan = schedule(Expression(order, (len(order) - 1,)), canonical, traits)
    for launch in plan.launches:
        launch.must_compile = True

    def run() -> None:
        execute(plan, queue, canonical.arrays, canonical.scalars)
        queues.wait(queue)

    return run
