"""The cost model's terms of this machine: measured once, and kept on disk with the kernels."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray import _hooks, config
from dparray._codegen.canonical import Canonical
from dparray._compiler import cache
from dparray._evaluate import background, cost_model, evaluate, limits
from dparray._evaluate.cost_model import DEFAULT, Terms
from dparray._evaluate.execute import execute
from dparray._evaluate.expression import Expression
from dparray._evaluate.schedule import schedule
from dparray._graph.node import Node, Scalar, pending_order
from dparray._graph.ops import OPS
from dparray._layout import Layout
from dparray._runtime import device_facts, queues
from dparray.device import default_device
from dparray.memory.blocks import allocate

_SMALL, _CACHED, _SHARED, _LARGE = 16, 1 << 15, 1 << 16, 1 << 22
_VERSION = 6
#: So long the calling thread computes between two kernels, where the wake-up is measured, in
#: seconds. After milliseconds the device's threads sleep deeper, and the wake-up takes several
#: times as long; but a program whose kernels are that far apart loses little by it.
_APART = 5e-4
#: A term that is measured so many times as large or small as usual is not believed: the machine was
#: doing something else.
_MOST_UNUSUAL = 8.0
#: Where the measuring thread had a smaller share of a processor than this, other programs had the
#: rest, and nothing that was measured is believed.
_LEAST_SHARE = 0.85
#: The first kernel of a process loads the compiler, too.
_MOST_COMPILING = 2 * DEFAULT.compile

_lock = threading.Lock()
_is_done = False


def settle(queue: Any) -> Terms:
    """The terms, read from disk or measured on the device of ``queue``, a CPU, the first time.

    It takes about a fifth of a second, and the compiling of a kernel where there is none on disk.
    On a machine that is busy with other programs the terms are those of a usual machine, and none
    are kept.
    """
    global _is_done
    with _lock:
        if not _is_done and device_facts.is_cpu(queue):
            key = _key(queue)
            found = _read(key)
            if found is None:
                with _hooks.untold():
                    found, share = measure(queue)
                if share >= _LEAST_SHARE:
                    found = _believed(found)
                    cache.save(key, json.dumps(found._asdict()).encode())
                else:  # a later process measures
                    found = DEFAULT
            _is_done = True
            cost_model.remember(found)
            limits.follow_model()
    return cost_model.terms()


def _key(queue: Any) -> str:
    device = queue.sycl_device
    parts = (_VERSION, platform.node(), platform.machine(), os.cpu_count(), np.__version__)
    about = (device.name, device.driver_version, device.max_compute_units)
    return hashlib.sha256(repr(("cost model", parts, about)).encode()).hexdigest()


def _read(key: str) -> Terms | None:
    text = cache.load(key)
    if text is None:
        return None
    try:
        return Terms(**{name: float(value) for name, value in json.loads(text).items()})
    except (ValueError, TypeError, AttributeError):
        return None


def _believed(found: Terms) -> Terms:
    pairs = zip(found, DEFAULT, strict=True)
    return Terms(
        *(min(max(each, usual / _MOST_UNUSUAL), usual * _MOST_UNUSUAL) for each, usual in pairs)
    )


def measure(queue: Any) -> tuple[Terms, float]:
    """Measure the terms, on a queue of its own on the same device.

    Returns:
        The terms, and which share of a processor this thread had while it computed.
    """
    own = queues.beside(queue)
    began, began_computing = time.perf_counter(), time.thread_time()
    small, cached, large = (np.ones(count) for count in (_SMALL, _CACHED, _LARGE))
    node = least(lambda: np.add(small, small), 200)
    operation = least(lambda: np.add(cached, cached), 30) / _CACHED
    host_byte = least(lambda: np.add(large, 1.0, out=large), 3) / (2 * large.nbytes)
    share = (time.thread_time() - began_computing) / (time.perf_counter() - began)
    started = time.perf_counter()
    run = _addition(own, _SMALL)
    run()  # compiles
    compiled = time.perf_counter() - started
    launch = least(run, 100)
    on_all_cores = _addition(own, _SHARED)
    on_all_cores()
    at_work = []
    for _ in range(15):
        finish = time.perf_counter() + _APART
        while time.perf_counter() < finish:
            np.add(cached, cached)
        at_work.append(least(on_all_cores, 1))
    device_byte = least(_addition(own, _LARGE), 4) / (2 * large.nbytes)
    cores = max(int(queue.sycl_device.max_compute_units), 1)
    computing = _SHARED * operation / cores
    found = DEFAULT._replace(
        launch=launch,
        wake=max(sorted(at_work)[len(at_work) // 4] - launch - computing, 1e-6),
        node=node,
        operation=operation,
        host_byte=host_byte,
        device_byte=min(device_byte, host_byte),  # all cores move as much as one of them
        compile=min(max(compiled, DEFAULT.compile), _MOST_COMPILING),
        cores=float(cores),
    )
    return found, share


def least(call: Callable[[], Any], times: int) -> float:
    """The shortest of several calls: what others do on the machine only makes them longer."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best


def _addition(queue: Any, count: int) -> Callable[[], None]:
    """A kernel that adds a number to as many, and a wait for it."""
    return addition(queue, allocate(queue, "device", (count,), np.dtype(np.float64)))


def addition(queue: Any, layout: Layout) -> Callable[[], None]:
    """A kernel that adds a number to each of a vector, and a wait for it."""
    leaf, dtype, count = Node.leaf(layout, queue, "device"), layout.dtype, layout.shape[0]
    node = Node(OPS["add"], (leaf, Scalar(1.0)), (dtype,) * 3, (count,), count, queue, "device")
    return runner(queue, node)


def runner(queue: Any, node: Node) -> Callable[[], None]:
    """The kernels of a pending node, and a wait for them; the node stays pending."""
    order = pending_order([node])
    canonical = Canonical(order)
    traits = evaluate.traits_of(queue)._replace(host_memory=frozenset())
    plan = schedule(Expression(order, (len(order) - 1,)), canonical, traits)
    for launch in plan.launches:
        launch.must_compile = True

    def run() -> None:
        execute(plan, queue, canonical.arrays, canonical.scalars)
        queues.wait(queue)

    return run


def _settle_unless_pinned() -> None:
    if not config.cost_model:
        settle(default_device().sycl_queue)


background.do_first(_settle_unless_pinned)
