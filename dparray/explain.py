"""What will happen when a pending array is computed, found out without computing it.

The pending expression is copied, and the rules of ``_evaluate`` are applied to the copy: where they
would launch a kernel, a note is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from dparray import _cache, _codegen, _evaluate, _graph, _kernel_key, _schedule, _tier_fused
from dparray._array import check_array, ndarray
from dparray._expr import Node, pending_order
from dparray._layout import contiguous_strides
from dparray._usm import Layout
from dparray.device import describe_queue

__all__ = ["Explanation", "PlannedKernel", "PlannedOperation", "explain"]


@dataclass(frozen=True)
class PlannedOperation:
    """One node of the graph.

    Attributes:
        name: by which other operations refer to it; ``"t3"`` an operation, ``"a0"`` an array that
            has been computed.
        operation: the public name of the operation, or ``"array"``.
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
    """One step of the computation: a generated kernel, or what is done in its place.

    Attributes:
        number: its place in the order, from 1.
        tier: ``"fused"`` one generated kernel, ``"host"`` the calling thread, ``"library"`` a ready
            kernel for each operation.
        reason: why this tier.
        stored_because: why the result gets memory of its own.
        operations: names of the operations in it.
        shape, dtype: of the result.
        state: of a generated kernel: ``"compiled"`` (in this process), ``"on disk"`` or ``"new"``.
        source: a generated kernel's text.
        bytes_read, bytes_written: at least that, of arrays.
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


@dataclass(frozen=True)
class Explanation:
    """How an array will be computed; printed, it is a text, in a notebook a picture.

    Attributes:
        shape, dtype, usm_type: of the array.
        queue: where everything runs.
        is_pending: whether anything is left to compute.
        operations: the graph, operands first.
        kernels: what is launched, in order.
        is_on_host: the calling thread has computed the values at the line that asked for them, and
            they have not been needed in USM memory yet.

    Example:
        >>> import dparray as dp
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

    @property
    def source(self) -> str:
        """The text of the generated kernels."""
        return "\n".join(kernel.source for kernel in self.kernels if kernel.source)

    @property
    def tier(self) -> str:
        """The tier of the last step: ``"fused"``, ``"host"``, ``"library"``; ``""`` if unknown."""
        if self.is_on_host:
            return "host"
        return self.kernels[-1].tier if self.kernels else ""

    @property
    def reason(self) -> str:
        """Why that tier."""
        if self.is_on_host:
            return (
                f"the calling thread computed {prod(self.shape)} elements at once: at most "
                f"{_evaluate.HOST_ELEMENTS}, on an idle queue, so that a launch, or noting the "
                "operation down, would have cost more than the work"
            )
        return self.kernels[-1].reason if self.kernels else "the array is computed"

    @property
    def bytes_read(self) -> int:
        """What all kernels together read from arrays."""
        return sum(kernel.bytes_read for kernel in self.kernels)

    @property
    def bytes_written(self) -> int:
        """What all kernels together write to arrays."""
        return sum(kernel.bytes_written for kernel in self.kernels)

    def __str__(self) -> str:
        what = f"{self.dtype} array of shape {self.shape}, {self.usm_type} memory, {self.queue}"
        if not self.is_pending:
            because = f"\n   because {self.reason}" if self.is_on_host else ""
            return f"{what}\ncomputed: nothing is pending{because}"
        lines = [
            what,
            f"pending: {_counted(sum(o.kernel is not None for o in self.operations), 'operation')} "
            f"in {_counted(len(self.kernels), 'step')}; reads {_size(self.bytes_read)}, "
            f"writes {_size(self.bytes_written)}",
        ]
        by_name = {operation.name: operation for operation in self.operations}
        for operation in self.operations:
            if operation.kernel is None:
                lines.append(f"  {operation.name}: {operation.dtype} array of {operation.shape}")
        for kernel in self.kernels:
            state = f", kernel {kernel.state}" if kernel.state else ""
            lines += [
                f"{kernel.number}. {kernel.tier}{state}: {kernel.dtype} of {kernel.shape}, "
                f"reads {_size(kernel.bytes_read)}, writes {_size(kernel.bytes_written)}",
                f"   because {kernel.reason}",
            ]
            if kernel.stored_because:
                lines.append(f"   stored because {kernel.stored_because}")
            lines += [f"     {by_name[name]}" for name in kernel.operations]
        return "\n".join(lines)

    def svg(self) -> str:
        """The graph as a picture: arrays on top, each step of the computation in its colour."""
        return _graph.graph(
            [
                _graph.Box(
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


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _size(nbytes: int) -> str:
    if nbytes < 10_000:
        return f"{nbytes} bytes"
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 1_000_000 else f"{nbytes / 1e3:.0f} kB"


def explain(x: ndarray) -> Explanation:
    """How a pending array will be computed: which operations in which kernel, and why.

    Nothing is computed, compiled or loaded. A reduction is computed when it is called, so it does
    not appear; what comes after it does.

    Args:
        x: an array; of one that is computed, the explanation says so.

    Raises:
        HostConversionError: ``x`` is no array.

    Example:
        >>> import dparray as dp
        >>> x = dp.ones(1_000_000, dtype="float32")
        >>> plan = dp.explain(x * 2 + 1)
        >>> plan.tier, len(plan.kernels), plan.bytes_written
        ('fused', 1, 4000000)
        >>> dp.explain(x[:1000] * 2 + 1).tier
        'host'
    """
    x = check_array("explain", "x", x)
    if x.is_only_on_host:
        place = describe_queue(x.sycl_queue)
        return Explanation(x.shape, x.dtype.name, x.usm_type, place, False, (), (), True)
    node = x._node
    held = [] if node.layout is not None else _evaluate.held_elsewhere([node])
    plan = _Plan([*held, node])
    del held
    return Explanation(
        x.shape,
        x.dtype.name,
        x.usm_type,
        describe_queue(x.sycl_queue),
        node.layout is None,
        *plan.result(),
    )


class _NoMemory:
    """Stands for a block of memory that would be allocated."""

    def __init__(self, queue: Any, usm_type: str, nbytes: int) -> None:
        self.queue = queue
        self.usm_type = usm_type
        self.nbytes = nbytes
        self.memory = self
        self.readers: Any = None


def _no_layout(node: Node) -> Layout:
    itemsize = node.dtype.itemsize
    block = _NoMemory(node.queue, node.usm_type, node.size * itemsize)
    return Layout(block, 0, node.shape, contiguous_strides(node.shape, itemsize), node.dtype)


class _Plan:
    """The rules of evaluation, applied to copies of nodes."""

    def __init__(self, roots: Sequence[Node]) -> None:
        order = pending_order(roots)
        self.copies: dict[int, Node] = {}
        self.names: dict[int, str] = {}
        self.operations: dict[str, PlannedOperation] = {}
        self.kernel_of: dict[str, int] = {}
        self.kernels: list[PlannedKernel] = []
        for node in order or roots:
            self._copy(node)
        copies = [self.copies[id(root)] for root in roots]
        del order
        if copies[0].layout is None:
            self._compute(copies, "")

    def result(self) -> tuple[tuple[PlannedOperation, ...], tuple[PlannedKernel, ...]]:
        operations = tuple(
            PlannedOperation(
                each.name,
                each.operation,
                each.operands,
                each.shape,
                each.dtype,
                self.kernel_of.get(each.name),
            )
            for each in self.operations.values()
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
            operands: tuple[str, ...] = ()
        else:
            assert node.op is not None
            parts = tuple(
                self._copy(part) if isinstance(part, Node) else part for part in node.operands
            )
            copy = Node(node.op, parts, node.loop, node.shape, node.size, node.queue, node.usm_type)
            count = sum(name[0] == "t" for name in self.operations)
            name, operation = f"t{count}", node.op.name
            operands = tuple(
                self.names[id(part)] if isinstance(part, Node) else repr(part.value)
                for part in parts
            )
        self.copies[id(node)] = copy
        self.names[id(copy)] = name
        self.operations[name] = PlannedOperation(
            name, operation, operands, node.shape, node.dtype.name, None
        )
        return copy

    def _compute(self, nodes: Sequence[Node], stored_because: str) -> None:
        """Note how nodes of one shape are computed, and count them as computed."""
        outputs = [(node, _no_layout(node)) for node in nodes]
        target = outputs[0][1]
        size = prod(target.shape)
        order = pending_order(nodes)
        source = state = ""
        if size == 0:
            tier, reason = "host", "there are no elements"
        elif size <= _evaluate.HOST_ELEMENTS and _evaluate.host_may_compute(target):
            tier = "host"
            reason = (
                f"{size} elements are at most {_evaluate.HOST_ELEMENTS}, and the host reads and "
                "writes this memory: a launch would cost more than the work"
            )
        else:
            _evaluate.store_first(nodes, size, lambda *inner: self._store(inner, nodes[0]))
            outputs = [each for each in outputs if each[0].layout is None]
            nodes = [node for node, _ in outputs]
            order = pending_order(nodes)
            tier, reason, state, source = self._tier(nodes, outputs, size)
        names = tuple(self.names[id(node)] for node in order)
        number = len(self.kernels) + 1
        self.kernel_of |= dict.fromkeys(names, number)
        leaves = {
            id(part): part
            for node in order
            for part in node.operands
            if isinstance(part, Node) and part.layout is not None
        }
        self.kernels.append(
            PlannedKernel(
                number,
                tier,
                reason,
                stored_because,
                names,
                target.shape,
                target.dtype.name,
                state,
                source,
                sum(leaf.size * leaf.dtype.itemsize for leaf in leaves.values()),
                sum(node.size * node.dtype.itemsize for node in nodes),
            )
        )
        for node, layout in outputs:
            node.complete(layout)

    def _store(self, nodes: Sequence[Node], root: Node) -> None:
        size = root.size
        for node in nodes:
            if node.layout is not None:
                continue
            if not _codegen.can_generate(node):
                because = _ungenerated(node)
            elif node.size < size:
                because = (
                    f"it has {node.size} elements and is broadcast to {size}: storing it costs "
                    "less than computing it for each of them"
                )
            elif not _codegen.can_generate(root):
                because = f"it is needed by {self.names[id(root)]}, which is not generated"
            else:
                because = f"a kernel takes at most {_codegen.MOST_ARRAYS} arrays"
            self._compute([node], because)

    def _tier(
        self, nodes: Sequence[Node], outputs: Sequence[tuple[Node, Any]], size: int
    ) -> tuple[str, str, str, str]:
        """Tier, reason, the state of the kernel, its text."""
        for node in nodes:
            if not _codegen.can_generate(node):
                return "library", _ungenerated(node), "", ""
        program = _codegen.linearize(pending_order(nodes), outputs, nodes[0].shape)
        structure = program.structure
        source = _codegen.source_of(structure)
        fused = _tier_fused.kernels.get(structure)
        if fused is not None and fused.kernel is not None:
            return "fused", "its kernel is there", "compiled", source
        done = fused.elements if fused is not None else 0
        types = (f"item:{1 + structure.has_rows}", *_codegen.types_of(structure))
        key = _kernel_key.kernel_key(_codegen.function_of(source), types, {})
        state = "on disk" if key is not None and _cache.load(key) is not None else "new"
        if _schedule.is_worth_compiling(size, done + size):
            return "fused", f"{size} elements are worth {_work(state)}", state, source
        if state == "on disk" and not done and size >= _schedule.LOAD_ELEMENTS:
            return "fused", f"{size} elements are worth {_work(state)}", state, source
        reason = (
            f"{done + size} elements of this structure so far are not worth compiling: that takes "
            f"{_schedule.COMPILE_ELEMENTS} at once or {_schedule.COMPILE_TOTAL_ELEMENTS} in all"
        )
        return "library", reason, state, source


def _work(state: str) -> str:
    return "loading the kernel from disk" if state == "on disk" else "compiling a kernel"


def _ungenerated(node: Node) -> str:
    """Why no kernel is generated for an operation."""
    assert node.op is not None
    dtypes = ", ".join(
        dict.fromkeys(
            part.dtype.name if isinstance(part, Node) else loop.name
            for part, loop in zip(node.operands, node.loop, strict=False)
        )
    )
    return f"no kernel is generated for {node.op.name} of {dtypes}: the library has one"
