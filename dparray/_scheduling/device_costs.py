"""The costs of steps on devices and of copies between them, measured once and cached on disk.

The estimate for a step is a launch plus the maximum of its memory traffic and its arithmetic, by
rates that are measured for each class of operation. On the host's own device, the calling thread
computes small arrays; :mod:`dparray._evaluate.cost_model` estimates that cost.
"""

from __future__ import annotations

import hashlib
import json
import platform
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np

from dparray import _hooks
from dparray._compiler import cache
from dparray._driver import place_of, traits_of
from dparray._evaluate import cost_model, limits, timing
from dparray._evaluate.evaluate import host_may_compute
from dparray._graph.contractions import Contraction
from dparray._graph.node import Node, Scalar
from dparray._graph.ops import OPS
from dparray._graph.reductions import REDUCTION_COST, REDUCTIONS, Reduce
from dparray._runtime import queues
from dparray._scheduling.problem import Link
from dparray.memory import copies, pool
from dparray.memory.blocks import allocate
from dparray.memory.libraries import library_of

_LARGE, _CHAIN, _CHAINED, _ROWS = 1 << 22, 64, 1 << 19, 512
_SMALL_COPY, _LARGE_COPY = 1 << 10, 1 << 24
_VERSION = 3


class Speeds(NamedTuple):
    """The rates of a device per second; by default those of a server processor, two cores.

    Attributes:
        launch: the seconds of overhead per step.
        memory: the bytes that an element-wise step reads and writes.
        reduction: the bytes that a reduction reads.
        single, double: additions in float32 and float64, with operands in registers.
        single_function, double_function: the same, in the units in which exponentials, sines and
            similar functions are counted; compilers generate very different code for them.
        single_product, double_product: multiplications in matrix products.
    """

    launch: float = 50e-6
    memory: float = 12e9
    reduction: float = 12e9
    single: float = 20e9
    double: float = 10e9
    single_function: float = 4e9
    double_function: float = 2e9
    single_product: float = 20e9
    double_product: float = 10e9

    def times(self, factor: float) -> Speeds:
        """Return the rates of a device that is faster by a factor, except for launches."""
        return Speeds(self.launch, *(factor * each for each in self[1:]))


#: Each :class:`dparray._scheduling.simulated.SimulatedDevice` by its queue.
declared: dict[Any, Any] = {}

_lock = threading.RLock()
_known: dict[Any, Any] = {}


def has_aspect(queue: Any, aspect: str) -> bool:
    """Return whether a device supports double (``"fp64"``) or half (``"fp16"``) precision."""
    said = declared.get(queue)
    if said is not None:
        return aspect in said._aspects
    return aspect in traits_of(queue).aspects


def can_hold(dtype: np.dtype[Any], queue: Any) -> bool:
    """Return whether a device supports a dtype."""
    aspect = {"d": "fp64", "D": "fp64", "e": "fp16"}.get(dtype.char)
    return aspect is None or has_aspect(queue, aspect)


def can_compute(nodes: Sequence[Node], queue: Any) -> bool:
    """Return whether a device supports the dtypes of operations."""
    return all(
        can_hold(dtype, queue) for dtype in {each for node in nodes for each in node.signature}
    )


def free_memory(queue: Any) -> float:
    """Return the bytes that are available for new arrays on a device."""
    said = declared.get(queue)
    limit, in_use = pool.limit_and_use(queue)
    total = _total_memory(queue) if said is None else said._memory
    if limit is not None:
        total = min(total, limit)
    if said is not None:
        in_use = pool.in_use_on(queue)
    return max(total - in_use, 0.0)


@lru_cache(maxsize=64)
def _total_memory(queue: Any) -> float:
    return float(traits_of(queue).memory)


# Devices.


def speeds_of(queue: Any, measures: bool = True) -> Speeds:
    """Return the rates of a device: declared, cached in memory or on disk, or measured.

    Args:
        queue: a queue on the device.
        measures: whether they may be measured, which takes about a second; otherwise the defaults
            are used.
    """
    said = declared.get(queue)
    if said is not None:
        return said._speeds
    found: Speeds = _settled(
        _key_of(queue),
        measures,
        lambda: _measured(queue),
        Speeds,
        lambda speeds: _is_refuted(queue, speeds),
    )
    return found


def _key_of(queue: Any) -> tuple[Any, ...]:
    return "speeds", *_kind(queue)


def _settled(key: Any, measures: bool, measure: Any, made: Any, is_refuted: Any) -> Any:
    """Return the measurement for a key, from memory, from disk, or taken now."""
    with _lock:
        speeds = _known.get(key)
        if speeds is None:
            name = hashlib.sha256(repr((key, _VERSION, platform.node())).encode()).hexdigest()
            text = None if key in _doubted else cache.load(name)
            try:
                speeds = made._make(map(float, json.loads(text or b"")))  # none may be missing
                if not all(0 <= rate < inf for rate in speeds) or not speeds[0]:
                    raise ValueError("no rates")
            except (ValueError, TypeError):
                speeds = None
            if measures:
                with _hooks.events_disabled():
                    if speeds is None or is_refuted(speeds):
                        speeds = measure()
                        cache.save(name, json.dumps(list(speeds)).encode())
            elif speeds is None:
                return made()
            else:
                return speeds  # not cached, since it has not been checked
            _known[key] = speeds
        return speeds


#: Rates from disk are measured again if the device turns out faster by this factor. They were then
#: measured on a loaded machine.
_REFUTING = 1.5

_doubted: set[Any] = set()


def doubt(queue: Any) -> bool:
    """Discard the rates of a device so that they are measured again; return whether they were.

    Called after steps took much longer or shorter than estimated. Happens once per process for each
    kind of device, since the device may be busy with other programs.
    """
    if queue in declared:
        return False
    key = _key_of(queue)
    with _lock:
        if key in _doubted:
            return False
        _doubted.add(key)
        _known.pop(key, None)
    return True


def _is_refuted(queue: Any, speeds: Speeds) -> bool:
    """Return whether a device is measurably faster than rates from disk, which takes some 10 ms."""
    own = queues.sibling_queue(queue)
    single = np.dtype(np.float32)
    chain = _fastest(timing.runner(own, _sum_of(own, _CHAINED, single, _CHAIN)), 0.0)
    if _CHAIN * _CHAINED / _beyond(chain, speeds.launch) > _REFUTING * speeds.single:
        return True
    memory = _fastest(timing.runner(own, _sum_of(own, _LARGE, single, 1)), 0.0)
    return 2 * _LARGE * single.itemsize / _beyond(memory, speeds.launch) > _REFUTING * speeds.memory


@lru_cache(maxsize=64)
def _kind(queue: Any) -> tuple[Any, ...]:
    """Return the kind of a device: devices of one kind are equally fast."""
    traits = traits_of(queue)
    return traits.name, traits.version, traits.units, traits.is_part


def _measured(queue: Any) -> Speeds:
    own = queues.sibling_queue(queue)
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    launch = _fastest(timing.runner(own, _sum_of(own, 16, single, 1)))
    memory = _fastest(timing.runner(own, _sum_of(own, _LARGE, single, 1)))
    leaf = _leaf(own, (_LARGE,), single)
    reduce = Reduce(REDUCTIONS["sum"], (0,), False)
    total = Node(reduce, (leaf,), (single, single), (), 1, own, "device")
    reduced = _fastest(timing.runner(own, total))
    nbytes = _LARGE * single.itemsize
    rates = {
        "memory": 2 * nbytes / _beyond(memory, launch),
        "reduction": nbytes / _beyond(reduced, launch),
        "double": 0.0,
        "double_function": 0.0,
        "double_product": 0.0,
    }
    dtypes: dict[str, np.dtype[Any]] = {"single": single}
    if has_aspect(queue, "fp64"):
        dtypes["double"] = double
    for name, dtype in dtypes.items():
        chain = _fastest(timing.runner(own, _sum_of(own, _CHAINED, dtype, _CHAIN)))
        rates[name] = _CHAIN * _CHAINED / _beyond(chain, launch)
        functions = _fastest(timing.runner(own, _functions_of(own, dtype)))
        rates[f"{name}_function"] = _CHAINED * _FUNCTIONS_COST / _beyond(functions, launch)
        product = _fastest(_product(own, dtype), 3 * _MEASURED_FOR)
        rates[f"{name}_product"] = _ROWS**3 / product
    return Speeds(launch, **rates)


#: Each rate is the best of the calls within this time, since other load only makes them longer.
_MEASURED_FOR, _MIN_CALLS = 0.25, 8


def _fastest(call: Callable[[], Any], seconds: float = _MEASURED_FOR) -> float:
    best = timing.least(call, 1)
    until = time.perf_counter() + seconds
    calls = 0
    while calls < _MIN_CALLS or time.perf_counter() < until:
        best = min(best, timing.least(call, 1))
        calls += 1
    return best


def _beyond(seconds: float, launch: float) -> float:
    return max(seconds - launch, seconds / 4)


def _leaf(queue: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Node:
    layout = allocate(queue, "device", shape, dtype)
    copies.assign(layout, 1.0)  # type: ignore[arg-type]
    return Node.leaf(layout, queue, "device")


def _sum_of(queue: Any, count: int, dtype: np.dtype[Any], additions: int) -> Node:
    """Create a chain of alternating additions and multiplications on a vector."""
    node = _leaf(queue, (count,), dtype)
    for number in range(additions):
        op, value = OPS["multiply" if number % 2 else "add"], 0.999 if number % 2 else 0.001
        node = Node(op, (node, Scalar(value)), (dtype,) * 3, (count,), count, queue, "device")
    return node


#: A chain of functions whose values stay small.
_FUNCTIONS = ("sin", "exp", "cos", "tanh")
_FUNCTIONS_COST = sum(OPS[name].cost for name in _FUNCTIONS)


def _functions_of(queue: Any, dtype: np.dtype[Any]) -> Node:
    """Create a chain of functions of a vector."""
    node = _leaf(queue, (_CHAINED,), dtype)
    for name in _FUNCTIONS:
        attributes = (_CHAINED,), _CHAINED, queue, "device"
        node = Node(OPS[name], (node,), (dtype, dtype), *attributes)
    return node


def _product(queue: Any, dtype: np.dtype[Any]) -> Any:
    """Compute a matrix product as `x @ y` does, and wait for it."""
    layouts = [_leaf(queue, (_ROWS, _ROWS), dtype).layout for _ in range(3)]
    views = None if traits_of(queue).is_part else copies.host_views("matmul", queue, *layouts)  # type: ignore[arg-type]
    if views is not None:
        queues.wait_to_write(layouts[2].block)  # type: ignore[union-attr]
        return lambda: np.matmul(views[0], views[1], out=views[2])
    library = library_of(queue)
    first, second, out = (library.array(layout) for layout in layouts)  # type: ignore[arg-type]

    def run() -> None:
        with library.calls(queue):
            library.matmul(first, second, out=out)
        queues.note_work(queue)
        queues.wait(queue)

    return run


# Links.


class _Measured(NamedTuple):
    latency: float = 20e-6
    bandwidth: float = 5e9


def link_of(source: Any, target: Any, measures: bool = True) -> Link:
    """Return the link from the memory of one queue to that of another."""
    if source == target:
        return Link()
    for one, other in ((source, target), (target, source)):
        said = declared.get(one)
        if said is not None:
            return said._link_to(one, other)
    (domain, device), (other_domain, other_device) = place_of(source), place_of(target)
    same_context = domain == other_domain
    if same_context and device == other_device:
        return Link()
    kinds = sorted((_kind(source), _kind(target)))
    key = ("link", *kinds, same_context)
    found_ = _settled(
        key,
        measures,
        lambda: _measured_link(source, target),
        _Measured,
        lambda link: (
            _LARGE_COPY / _seconds_of_copy(source, target, _LARGE_COPY, 0.0)
            > _REFUTING * link.bandwidth
        ),
    )
    # Copies between contexts go through the host, one after the other.
    channel = channel_of(frozenset((source, target))) if same_context else 0
    return Link(found_.latency, found_.bandwidth, channel)


_channels: dict[Any, int] = {}


def channel_of(key: Any) -> int:
    """Return the number of a channel; zero is that of the host, the default."""
    return _channels.setdefault(key, len(_channels) + 1)


def _measured_link(source: Any, target: Any) -> _Measured:
    small, large = (_seconds_of_copy(source, target, n) for n in (_SMALL_COPY, _LARGE_COPY))
    return _Measured(small, (_LARGE_COPY - _SMALL_COPY) / _beyond(large, small))


def _seconds_of_copy(
    source: Any, target: Any, nbytes: int, seconds: float = _MEASURED_FOR
) -> float:
    layout = _leaf(source, (nbytes // 4,), np.dtype(np.float32)).layout
    assert layout is not None
    queues.wait(source)

    def run() -> None:
        copies.copy_to_queue(layout, target, "device")
        queues.wait(target)
        queues.wait(source)

    run()
    return _fastest(run, seconds)


# Steps.


class Work(NamedTuple):
    """The work of a step, independent of the device.

    Attributes:
        traffic: the bytes that are read and written.
        reduced: the bytes of these that reductions read.
        single, double: additions in float32 or narrower, and in float64.
        single_function, double_function: the cost of functions, in additions.
        single_product, double_product: multiplications in matrix products.
        calls: the number of library calls: operations that are not part of a kernel.
    """

    traffic: float = 0.0
    reduced: float = 0.0
    single: float = 0.0
    double: float = 0.0
    single_function: float = 0.0
    double_function: float = 0.0
    single_product: float = 0.0
    double_product: float = 0.0
    calls: int = 1


#: More traffic than these bytes comes from memory. The share of its time if it comes from a cache,
#: and the share of an addition's cost in a kernel, whose operands are in registers.
CACHED_BYTES, FROM_CACHES, IN_REGISTERS = 8 << 20, 0.25, 0.15

#: From this cost on, an operation counts as a function.
_MIN_FUNCTION_COST = 8

_WIDE = frozenset("dDFqQlL")


def work_of(nodes: Sequence[Node], results: Sequence[Node], is_fused: bool) -> Work:
    """Return the work of operations that are computed together; other operands are in memory.

    Args:
        nodes: the operations.
        results: the nodes that are stored.
        is_fused: whether they are one kernel; otherwise each is a separate one.
    """
    inside = set(map(id, nodes))
    read: dict[int, int] = {}
    counts = dict.fromkeys(Work._fields, 0.0)
    for node in nodes:
        op = node.op
        width = "double" if node.signature[0].char in _WIDE else "single"
        operands = [part for part in node.operands if type(part) is Node]
        for part in operands:
            if id(part) not in inside or not is_fused:
                read[id(part)] = part.size * part.dtype.itemsize
        if isinstance(op, Contraction):
            points = node.size * op.terms(operands[0].shape)
            if op.is_library:
                counts[f"{width}_product"] += points
            else:
                counts[width] += points * op.whole
        elif isinstance(op, Reduce):
            walked = operands[0]
            counts["reduced"] += walked.size * walked.dtype.itemsize
            counts[width] += walked.size * max(op.cost // REDUCTION_COST - 1, IN_REGISTERS)
        elif op is not None and op.cost >= _MIN_FUNCTION_COST:
            counts[f"{width}_function"] += node.size * op.cost
        elif op is not None:
            counts[width] += node.size * (op.cost - 1 + IN_REGISTERS)
    stored = nodes if not is_fused else results
    written = sum(node.size * node.dtype.itemsize for node in stored)
    counts["traffic"] = float(sum(read.values()) + written)
    calls = 1 if is_fused else len(nodes)
    return Work(**{**counts, "calls": calls})  # type: ignore[arg-type]


def seconds_of(work: Work, speeds: Speeds) -> float:
    """Return the seconds for work at given rates; ``inf`` if it requires fp64 that is missing."""
    share = 1.0 if work.traffic > CACHED_BYTES else FROM_CACHES
    arithmetic = 0.0
    for name in Work._fields[2:-1]:
        amount = getattr(work, name)
        if amount:
            rate = getattr(speeds, name)
            if not rate:  # 64-bit integers on a device without float64
                rate = getattr(speeds, name.replace("double", "single")) / 4
            arithmetic += amount / rate
    reading = min(work.reduced, work.traffic)
    moving = (work.traffic - reading) / speeds.memory + reading / speeds.reduction
    return work.calls * speeds.launch + max(moving * share, arithmetic)


def seconds_on(
    queue: Any, nodes: Sequence[Node], results: Sequence[Node], work: Work, measures: bool = True
) -> float:
    """Return the seconds of a step on a device; ``inf`` if the device cannot compute it.

    Args:
        queue: a queue of the device.
        nodes: the operations.
        results: the nodes that are stored.
        work: the work of the step.
        measures: whether the device may be measured.
    """
    if not can_compute(nodes, queue):
        return inf
    seconds = seconds_of(work, speeds_of(queue, measures))
    if (
        queue not in declared
        and traits_of(queue).shares_memory
        and limits.chooses()
        and host_may_compute(queue, "device")
        and not any(isinstance(node.op, Contraction) for node in nodes)
    ):
        seconds = min(seconds, cost_model.seconds_on_host(nodes))
    return seconds
