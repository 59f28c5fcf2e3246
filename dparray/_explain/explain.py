"""Find the plan of a pending array without computing it.

The plan of the pending expression is made as for an evaluation, and its steps are described. The
expression is copied, so that the stored result of one step can be a leaf of the next.
"""

from __future__ import annotations

import contextlib
import inspect
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from dparray import _hooks, _satellites, config
from dparray._array.operands import check_array
from dparray._codegen import elementwise
from dparray._codegen.canonical import Canonical
from dparray._evaluate import deferred_placement, dependents, evaluate, kernels, limits, reasons
from dparray._evaluate.expression import Expression
from dparray._evaluate.plan import (
    ContractionStep,
    FusedStep,
    HostStep,
    KernelLaunch,
    LibraryStep,
    NewArray,
    Step,
)
from dparray._evaluate.schedule import schedule
from dparray._explain import svg as graph
from dparray._graph.node import Node, pending_order
from dparray._profile.report import counted, explain_function
from dparray.device import describe_queue
from dparray.memory.blocks import planned_layout

if TYPE_CHECKING:
    from dparray._scheduling.trace import PlacedExpression

__all__ = ["Explanation", "PlannedKernel", "PlannedOperation", "explain"]


@dataclass(frozen=True)
class PlannedOperation:
    """One node of the graph.

    Attributes:
        name: the name that other operations use: ``"t3"`` for an operation, ``"a0"`` for a computed
            array.
        operation: the public name of the operation, ``"array"``, or ``"positions"``: 0, 1, 2, ...,
            which need no memory.
        operands: names, and scalars as they are.
        shape, dtype: of the result.
        kernel: the number of the kernel that computes it, or ``None`` for an array.
    """

    name: str
    operation: str
    operands: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    kernel: int | None

    def __str__(self) -> str:
        return f"{self.name} = {self.operation}({', '.join(self.operands)})"


@dataclass(frozen=True)
class PlannedKernel:
    """One step of the computation: a generated kernel, or its replacement.

    Attributes:
        number: its position in the order, from 1.
        tier: ``"fused"`` for one generated kernel, ``"host"`` for the calling thread, ``"library"``
            for one dpnp kernel per operation.
        reason: why this backend was chosen.
        stored_because: why the result is stored in memory.
        operations: names of the operations in the step.
        shape, dtype: of the result.
        state: for a generated kernel: ``"compiled"`` (in this process), ``"on disk"`` or ``"new"``.
        source: the source of a generated kernel.
        bytes_read, bytes_written: a lower bound of the array traffic.
        results: names of the operations whose values the step stores.
        siblings: stored operations that the explained array does not need: reductions of the same
            memory, which are computed in the same pass.
    """

    number: int
    tier: str
    reason: str
    stored_because: str
    operations: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    state: str
    source: str
    bytes_read: int
    bytes_written: int
    results: tuple[str, ...]
    siblings: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """The plan for computing an array: text when printed, a picture in a notebook.

    Attributes:
        shape, dtype, usm_type: of the array.
        queue: the queue of the computation.
        is_pending: whether anything is left to compute.
        operations: the graph, operands first.
        kernels: the steps, in order.
        is_on_host: whether the calling thread has computed the values, which have not been needed
            in USM memory yet.
        is_at_once: whether the values exist, their computation is unknown, and the calling thread
            computes additions of this many elements immediately.
        ran: the work of the call that returned the array, in order. If unknown (or if the call only
            recorded an expression), the last work on the queue, for any array.
        made_by: the name of that call; ``""`` if unknown.
        placed: under a policy of :func:`dparray.placement`, the steps with their devices, the
            alternatives, and the copies; the kernels above are then the plan for one device.

    Example:
        >>> dp.explain(dp.ones(3) + 1).shape
        (3,)
    """

    shape: tuple[int, ...]
    dtype: str
    usm_type: str
    queue: str
    is_pending: bool
    operations: tuple[PlannedOperation, ...]
    kernels: tuple[PlannedKernel, ...]
    is_on_host: bool = False
    ran: tuple[str, ...] = ()
    placed: PlacedExpression | None = None
    made_by: str = ""
    is_at_once: bool = False

    @property
    def source(self) -> str:
        """The source of the generated kernels."""
        return "\n".join(kernel.source for kernel in self.kernels if kernel.source)

    @property
    def tier(self) -> str:
        """Backend of the last step: ``"fused"``, ``"host"``, ``"library"``; ``""`` if unknown."""
        if self.is_on_host:
            return "host"
        return self.kernels[-1].tier if self.kernels else ""

    @property
    def reason(self) -> str:
        """Why that backend was chosen."""
        if self.is_on_host:
            return f"it was computed {reasons.why_immediate(prod(self.shape))}"
        return self.kernels[-1].reason if self.kernels else "the array is computed"

    @property
    def bytes_read(self) -> int:
        """Bytes that all kernels together read from arrays."""
        return sum(kernel.bytes_read for kernel in self.kernels)

    @property
    def bytes_written(self) -> int:
        """Bytes that all kernels together write to arrays."""
        return sum(kernel.bytes_written for kernel in self.kernels)

    def __str__(self) -> str:
        what = f"{self.dtype} array of shape {self.shape}, {self.usm_type} memory, {self.queue}"
        if not self.is_pending:
            because = ""
            if self.is_on_host:
                because = f"\n   because {self.reason}"
            elif self.is_at_once:
                because = (
                    f"\n   its operations are computed {reasons.why_immediate(prod(self.shape))}"
                )
            return f"{what}\ncomputed: nothing is pending{because}{self._told_ran()}"
        lines = [
            what + (self._told_ran() if self.made_by else ""),
            f"pending: {counted(sum(o.kernel is not None for o in self.operations), 'operation')} "
            f"in {counted(len(self.kernels), 'step')}; reads {_size(self.bytes_read)}, "
            f"writes {_size(self.bytes_written)}",
        ]
        if self.placed is not None:
            lines.append("its steps if all inputs were on one queue:")
        by_name = {operation.name: operation for operation in self.operations}
        for operation in self.operations:
            if operation.kernel is None:
                lines.append(
                    f"  {operation.name}: {operation.dtype} {operation.operation} of "
                    f"{operation.shape}"
                )
        for kernel in self.kernels:
            state = f", kernel {kernel.state}" if kernel.state else ""
            lines += [
                f"{kernel.number}. {kernel.tier}{state}: {kernel.dtype} of {kernel.shape}, "
                f"reads {_size(kernel.bytes_read)}, writes {_size(kernel.bytes_written)}",
                f"   because {kernel.reason}",
            ]
            if kernel.stored_because:
                lines.append(f"   stored because {kernel.stored_because}")
            if len(kernel.results) > 1:
                lines.append(f"   stores {', '.join(kernel.results)}")
            if kernel.siblings:
                lines.append(
                    f"   with {', '.join(kernel.siblings)}: pending too, and a pass over the same "
                    "memory"
                )
            lines += [f"     {by_name[name]}" for name in kernel.operations]
        if self.placed is not None:
            lines.append(str(self.placed))
        return "\n".join(lines)

    def _told_ran(self) -> str:
        if not self.ran:
            return ""
        ran = ", ".join(self.ran)
        if self.made_by:
            return f"\n{self.made_by} ran: {ran}"
        return (
            "\nthe call that wrote this array is not remembered (a view, a kernel of yours, or one "
            f"of many calls ago); the last work on its queue, oldest first: {ran}"
        )

    def svg(self) -> str:
        """Return the graph as a picture: arrays at the top, each step in its own color."""
        return graph.graph(
            [
                graph.Box(
                    operation.name,
                    _box_title(operation),
                    f"{operation.dtype} {'x'.join(map(str, operation.shape)) or 'scalar'}",
                    "" if operation.kernel is None else f"step {operation.kernel}",
                    tuple(name for name in operation.operands if name[0] in "at"),
                    operation.kernel,
                )
                for operation in self.operations
            ]
        )


def _box_title(operation: PlannedOperation) -> str:
    scalars = [name for name in operation.operands if name[0] not in "at"]
    return " ".join([operation.name, operation.operation, *scalars])


def _size(nbytes: int) -> str:
    if nbytes < 10_000:
        return f"{nbytes} bytes"
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 1_000_000 else f"{nbytes / 1e3:.0f} kB"


def explain(x: Any, *others: Any, **named: Any) -> Any:
    """Explain how a pending array will be computed: which operations form which kernel, and why.

    For a function of :mod:`dparray.tilelang` with its inputs: how a call computes its contractions.

    Nothing is computed, compiled or loaded. Any other function is an exception:
    ``dp.explain(function, *args)`` runs it and reports for each step where it ran, which argument
    decided, and why.

    Args:
        x: an array, or a function, which is called with the other arguments. For a computed array,
            the explanation reports the work of the call that returned it (or the last work on its
            queue).
        *others: more arrays to evaluate together with it, as in ``dp.eval(x, y)``; arrays of one
            shape on one queue share kernels.

        **named: inputs of a function by name.

    Returns:
        An :class:`Explanation`; for a Tile function, its explanation; for a function compiled by
        :func:`dparray.jit`, a text that lists its regions; for a model of :mod:`dparray.onnx`,
        which is run for the inputs, a :class:`dparray.onnx.ModelExplanation`; for another
        function, a :class:`dparray._profile.report.PlacementReport`.

    Raises:
        HostConversionError: ``x`` is not an array.

    Example:
        >>> x = dp.ones(1_000_000, dtype="float32")
        >>> plan = dp.explain(x * 2 + 1)
        >>> plan.tier, len(plan.kernels), plan.bytes_written
        ('fused', 1, 4000000)
        >>> dp.explain(x[:1000] * 2 + 1).tier
        'host'
    """
    if hasattr(type(x), "__dparray_explain__"):
        return x.__dparray_explain__(*others, **named)
    if callable(x) and not hasattr(x, "usm_type"):
        return explain_function(x, others, named)
    x = check_array("explain", "x", x)
    arrays = [x, *(check_array("explain", f"others[{i}]", y) for i, y in enumerate(others))]
    made_by, ran = _hooks.call_that_made(x)
    if x.is_only_on_host and not others:
        what = x.shape, x.dtype.name, x.usm_type, describe_queue(x.queue)
        return Explanation(*what, False, (), (), True, ran=ran, made_by=made_by)
    placed, nodes = None, [array._node for array in arrays]
    if deferred_placement.nodes and (policy := deferred_placement.policy_of(x._node)) is not None:
        placed = _satellites.provider("placement").planned(policy, nodes)
    plan = _Explanation(nodes)
    is_small = x._host_view is not None and 0 < x.size <= limits.host_elements and not others
    return Explanation(
        x.shape,
        x.dtype.name,
        x.usm_type,
        describe_queue(x.queue),
        any(array._node.layout is None for array in arrays),
        *plan.result(),
        ran=ran or _ran_last(x.queue),
        placed=placed,
        made_by=made_by,
        is_at_once=is_small and not made_by and config.host_tier,
    )


def _ran_last(queue: Any) -> tuple[str, ...]:
    """Return the last recorded work on a queue."""
    ran = [f"{kind} {name}" for name, kind, where, _ in tuple(_hooks.recent) if where == queue]
    return tuple(ran[-6:])


class _Explanation:
    """The plans of arrays, made for copies of their nodes, so that nothing is computed."""

    def __init__(self, roots: Sequence[Node]) -> None:
        groups = evaluate.grouped(roots)
        held = [dependents.externally_referenced(group) for group in groups]
        self.copies: dict[int, Node] = {}
        self.originals: dict[int, Node] = {}
        self.names: dict[int, str] = {}
        self.operations: dict[str, PlannedOperation] = {}
        self.kernel_of: dict[str, int] = {}
        self.kernels: list[PlannedKernel] = []
        for node in (*pending_order(roots), *roots):
            self._copy(node)
        for group, stored in zip(groups, held, strict=True):
            wanted = [self.copies[id(node)] for node in group]
            wanted = [copy for copy in wanted if copy.layout is None]
            if wanted:
                self._explain(wanted, [self.copies[id(node)] for node in stored])

    def result(self) -> tuple[tuple[PlannedOperation, ...], tuple[PlannedKernel, ...]]:
        operations = tuple(
            replace(each, kernel=self.kernel_of.get(each.name)) for each in self.operations.values()
        )
        return operations, tuple(self.kernels)

    def _copy(self, node: Node) -> Node:
        found = self.copies.get(id(node))
        if found is not None:
            return found
        if node.layout is not None:
            copy = Node.leaf(node.layout, node.queue, node.usm_type)
            count = sum(name[0] == "a" for name in self.operations)
            name, operation = f"a{count}", "array"
            if node.layout.block.memory is None:
                operation = "positions"
            operands: tuple[str, ...] = ()
        else:
            assert node.op is not None
            parts = tuple(
                self._copy(part) if isinstance(part, Node) else part for part in node.operands
            )
            attributes = node.shape, node.size, node.queue, node.usm_type, node.axes
            copy = Node(node.op, parts, node.signature, *attributes)
            count = sum(name[0] == "t" for name in self.operations)
            name, operation = f"t{count}", node.op.name
            operands = tuple(
                self.names[id(part)] if isinstance(part, Node) else repr(part.value)
                for part in parts
            )
        self.copies[id(node)] = copy
        self.originals[id(copy)] = node
        self.names[id(copy)] = name
        self.operations[name] = PlannedOperation(
            name, operation, operands, node.shape, node.dtype.name, None
        )
        return copy

    def _explain(self, roots: Sequence[Node], held: Sequence[Node]) -> None:
        """Record the steps for nodes of one shape, and treat their stored results as computed."""
        order = pending_order(roots)
        if roots[0].size == 0:
            self._note(
                "host", "there are no elements", "", order, roots[-1], roots, (), 0, 0, "", ""
            )
            return
        others = dependents.siblings_of([self.originals[id(node)] for node in order])
        siblings = [self._copy(node) for node in others]
        inside = set(map(id, order))
        siblings = [node for node in siblings if node.layout is None and id(node) not in inside]
        order += siblings
        number = {id(node): position for position, node in enumerate(order)}
        canonical = Canonical(order)
        expression = Expression(
            order,
            tuple(number[id(node)] for node in roots),
            tuple(number[id(node)] for node in held if id(node) in number),
            len(siblings),
        )
        plan = schedule(expression, canonical, evaluate.plan_traits_of(roots[0].queue))
        self.order = order
        self.nbytes = {
            slot: prod(layout.shape) * layout.dtype.itemsize
            for slot, layout in enumerate(canonical.arrays)
            if layout.block.memory is not None
        }
        for step in plan.steps:
            self._step(step)

    def _step(self, step: Step, because: str = "", source: str = "") -> None:
        """Record a step, with a reason if it replaces a kernel."""
        self._count(step.new)
        stored_because = step.stored_because
        if isinstance(step, FusedStep):
            first = step.launches[0]
            text = kernels.source_of(first.structure)
            tier, reason, state = _state(first, text)
            if tier == "otherwise":
                for other in step.otherwise:
                    self._step(
                        replace(
                            other,
                            stored_because=other.stored_because or stored_because,
                            siblings=step.siblings,
                        ),
                        reason,
                        text,
                    )
            launches = step.launches[:1] if step.is_by_cells else step.launches
            for launch in launches if tier == "fused" else ():
                if launch is not first:
                    text = kernels.source_of(launch.structure)
                    _, _, state = _state(launch, text)
                    reason = "it combines the partial results of the previous kernel's groups"
                self._count(launch.accumulators)
                order = [self.order[number] for number in launch.nodes]
                stores = {slot: self.order[number] for slot, number in step.stores}
                results = [stores[slot] for slot in launch.outputs]
                left = launch.accumulators if launch is not launches[-1] else ()
                self._note(
                    "fused",
                    reason,
                    stored_because,
                    order,
                    results[-1] if results else order[-1],
                    results,
                    step.siblings,
                    self._bytes(launch.reads),
                    self._bytes(launch.outputs) + self._bytes(array.slot for array in left),
                    state,
                    text,
                )
        else:
            results = [self.order[number] for _, number in step.stores]
            if isinstance(step, HostStep):
                tier, source = "host", ""
                reason = because or reasons.why_on_host(step.because)
            elif isinstance(step, ContractionStep):
                tier, reason, source = "fused", step.op.reason, ""
            else:
                assert isinstance(step, LibraryStep)
                tier, reason = "library", step.because or because
            self._note(
                tier,
                reason,
                stored_because,
                [self.order[number] for number in step.nodes],
                results[-1],
                results,
                step.siblings,
                self._bytes(step.reads),
                self._bytes(step.outputs),
                "",
                source,
            )
        for _, number in step.stores:
            node = self.order[number]
            if node.layout is None:
                node.complete(planned_layout(node.queue, node.usm_type, node.shape, node.dtype))

    def _count(self, arrays: Iterable[NewArray]) -> None:
        """Record the sizes of slots."""
        self.nbytes |= {array.slot: prod(array.shape) * array.dtype.itemsize for array in arrays}

    def _bytes(self, slots: Iterable[int]) -> int:
        return sum(self.nbytes.get(slot, 0) for slot in slots)

    def _note(
        self,
        tier: str,
        reason: str,
        stored_because: str,
        order: Sequence[Node],
        result: Node,
        results: Sequence[Node],
        siblings: Sequence[int],
        bytes_read: int,
        bytes_written: int,
        state: str,
        source: str,
    ) -> None:
        """Record a kernel, or its replacement."""
        names = tuple(self.names[id(node)] for node in order)
        number = len(self.kernels) + 1
        self.kernel_of |= dict.fromkeys(names, number)
        stored = [self.names[id(node)] for node in results]
        sibling_names = {self.names[id(self.order[sibling])] for sibling in siblings}
        self.kernels.append(
            PlannedKernel(
                number,
                tier,
                reason,
                stored_because,
                names,
                result.shape,
                result.dtype.name,
                state,
                source and source + _called_sources(order),
                bytes_read,
                bytes_written,
                tuple(stored),
                tuple(name for name in stored if name in sibling_names),
            )
        )


def _state(launch: KernelLaunch, source: str) -> tuple[str, str, str]:
    """Return backend, reason and state of a kernel."""
    entry, size = launch.entry, launch.size
    if entry.kernel is not None and (limits.uses_kernels() or launch.must_compile):
        return "fused", "its kernel is ready", "compiled"
    done = entry.elements
    state = "on disk" if kernels.is_on_disk(launch, source) else "new"
    if launch.must_compile:
        return "fused", "only a kernel can compute it", state
    if launch.gain is not None and limits.compiles_in_background():
        lost = entry.lost + max(launch.gain, 0.0)
        if limits.is_worth_waiting(launch.gain, lost) and config.fused_tier:
            return "fused", f"it gains {launch.gain * 1e3:.0f} ms: worth {_work(state)}", state
    elif limits.is_worth_compiling(size, done + size) or (
        state == "on disk" and not done and limits.is_worth_loading(size)
    ):
        return "fused", f"{size} elements are worth {_work(state)}", state
    return "otherwise", reasons.why_not_compiled(launch, done + size, state == "on disk"), state


def _called_sources(order: Sequence[Node]) -> str:
    """Return the source of the user functions that a kernel calls, if it is in a file."""
    texts = []
    for name, function in elementwise.functions_of(order).items():
        with contextlib.suppress(OSError, TypeError):
            text = textwrap.dedent(inspect.getsource(function.py_func))
            texts.append(f"\n# {name} is\n{text}")
    return "".join(texts)


def _work(state: str) -> str:
    return "loading the kernel from disk" if state == "on disk" else "compiling a kernel"
