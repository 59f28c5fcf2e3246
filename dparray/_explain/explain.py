"""What will happen when a pending array is computed, found out without computing it.

The pending expression is copied, and the rules of ``_evaluate`` are applied to the copy: where they
would launch a kernel, a note is taken.
"""

from __future__ import annotations

import contextlib
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from dparray._array.operands import check_array
from dparray._codegen import elementwise, reduction, reduction_text
from dparray._compiler import cache
from dparray._compiler import key as kernel_key
from dparray._evaluate import evaluate, schedule
from dparray._evaluate import fused as tier_fused
from dparray._evaluate.schedule import is_call
from dparray._explain import svg as graph
from dparray._graph.node import Node, pending_order
from dparray._graph.reductions import Reduce
from dparray._layout import Layout
from dparray.device import describe_queue
from dparray.memory.blocks import planned_layout
from dparray.tilelang.function import TileFunction

__all__ = ["Explanation", "PlannedKernel", "PlannedOperation", "explain"]


@dataclass(frozen=True)
class PlannedOperation:
    """One node of the graph.

    Attributes:
        name: by which other operations refer to it; ``"t3"`` an operation, ``"a0"`` an array that
            has been computed.
        operation: the public name of the operation, ``"array"``, or ``"positions"``: 0, 1, 2, ...,
            which are in no memory.
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
        results: names of the operations whose values it stores.
        siblings: those of them that nothing explained needs: reductions of the same memory, which
            are computed in the same pass.
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
                f"{evaluate.HOST_ELEMENTS}, on an idle queue, so that a launch, or noting the "
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
        return "\n".join(lines)

    def svg(self) -> str:
        """The graph as a picture: arrays on top, each step of the computation in its colour."""
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


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _size(nbytes: int) -> str:
    if nbytes < 10_000:
        return f"{nbytes} bytes"
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 1_000_000 else f"{nbytes / 1e3:.0f} kB"


def explain(x: Any, *others: Any, **named: Any) -> Any:
    """How a pending array will be computed: which operations in which kernel, and why.

    Of a function of :mod:`dparray.tilelang` with its inputs, how a call computes its contractions.

    Nothing is computed, compiled or loaded.

    Args:
        x: an array; of one that is computed, the explanation says so.
        *others: further ones that are asked for together with it, as in ``dp.eval(x, y)``; those of
            one shape on one queue share kernels.

        **named: inputs of a Tile function by name.

    Returns:
        An :class:`Explanation`; of a Tile function its explanation.

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
    if isinstance(x, TileFunction):
        return x.explain(*others, **named)
    x = check_array("explain", "x", x)
    arrays = [x, *(check_array("explain", f"others[{i}]", y) for i, y in enumerate(others))]
    if x.is_only_on_host and not others:
        place = describe_queue(x.sycl_queue)
        return Explanation(x.shape, x.dtype.name, x.usm_type, place, False, (), (), True)
    plan = _Plan([array._node for array in arrays])
    return Explanation(
        x.shape,
        x.dtype.name,
        x.usm_type,
        describe_queue(x.sycl_queue),
        any(array._node.layout is None for array in arrays),
        *plan.result(),
    )


def _planned(node: Node) -> Layout:
    """Where a node's values would lie."""
    return planned_layout(node.queue, node.usm_type, node.shape, node.dtype)


class _Plan:
    """The rules of evaluation, applied to copies of nodes."""

    def __init__(self, roots: Sequence[Node]) -> None:
        groups = evaluate.grouped(roots)
        held = [evaluate.held_elsewhere(group) for group in groups]
        order = pending_order(roots)
        self.copies: dict[int, Node] = {}
        self.originals: dict[int, Node] = {}
        self.names: dict[int, str] = {}
        self.operations: dict[str, PlannedOperation] = {}
        self.kernel_of: dict[str, int] = {}
        self.kernels: list[PlannedKernel] = []
        self.siblings: set[int] = set()
        for node in (*order, *roots):
            self._copy(node)
        for group, stored in zip(groups, held, strict=True):
            wanted = [self.copies[id(node)] for node in group]
            wanted = [copy for copy in wanted if copy.layout is None]
            if wanted:
                self._compute(wanted, [self.copies[id(node)] for node in stored], "")

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
            if node.layout.block.memory is None:
                operation = "positions"
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
        self.originals[id(copy)] = node
        self.names[id(copy)] = name
        self.operations[name] = PlannedOperation(
            name, operation, operands, node.shape, node.dtype.name, None
        )
        return copy

    def _compute(
        self, nodes: Sequence[Node], held: Sequence[Node], stored_because: str
    ) -> None:
        """Note how nodes of one shape are computed, and count them as computed."""
        roots = list(nodes)
        first = roots[0]
        if first.size == 0:
            outputs = [(node, _planned(node)) for node in roots]
            self._note(roots, outputs, stored_because, "host", "there are no elements", "", "")
            return
        if evaluate.is_for_host(first.size, first.queue, first.usm_type, roots):
            reason = (
                f"{first.size} elements are at most {evaluate.HOST_ELEMENTS}, and the host "
                "reads and writes this memory: a launch would cost more than the work"
            )
            outputs = [(node, _planned(node)) for node in (*held, *roots)]
            self._note(pending_order(nodes), outputs, stored_because, "host", reason, "", "")
            return
        while roots:
            part = evaluate.plan(
                roots, held, None, None, lambda *inner: self._store(inner, nodes[-1])
            )
            kernel, siblings = self._with_siblings(part.kernel)
            outputs = [
                (node, _planned(node))
                for node in (*evaluate.stored_by(part.kernel, [*held, *roots]), *siblings)
            ]
            if kernel.domain is None:
                tier, reason, state, source = self._elements(kernel.order, outputs)
                if tier == "library":
                    self._without_kernel(kernel.order, outputs, stored_because, reason, source)
                else:
                    self._note(kernel.order, outputs, stored_because, tier, reason, state, source)
            else:
                self._reduce(kernel, outputs, stored_because)
            roots = part.apart

    def _with_siblings(self, kernel: schedule.Kernel) -> tuple[schedule.Kernel, list[Node]]:
        """The kernel with copies of the reductions that evaluation adds to it, and these."""
        if kernel.domain is None:
            return kernel, []
        order = [self.originals[id(copy)] for copy in kernel.order]
        _, found = evaluate.with_siblings(kernel._replace(order=order))
        copies = [self._copy(node) for node in found]
        self.siblings |= {id(copy) for copy in copies}
        return evaluate.joined(kernel, copies), copies

    def _reduce(
        self, kernel: schedule.Kernel, outputs: list[tuple[Node, Any]], stored_because: str
    ) -> None:
        """Note the kernels of values with reductions."""
        merges = ""
        while outputs:
            assert kernel.domain is not None
            now = tier_fused.first_pass(outputs, kernel)
            structure = now.program.structure
            source = reduction_text.source_of(structure)
            names = tier_fused.names_for(structure, now.order)
            size = prod(kernel.domain.shape)
            must = bool(merges) or tier_fused.must_generate(structure)
            tier, reason, state = self._state(structure, source, now.types, names, size, must)
            if tier == "library":
                self._without_kernel(kernel.order, outputs, stored_because, reason, source)
                return
            reason = merges or reason
            of = outputs[0][0]
            accumulators = [
                planned_layout(of.queue, of.usm_type, now.shape, dtype) for dtype in now.left_dtypes
            ]
            if not now.left:
                self._note(now.order, now.stored, stored_because, "fused", reason, state, source)
                return
            left = sum(layout.block.nbytes for layout in accumulators)
            self._note(now.order, now.stored, stored_because, "fused", reason, state, source, left)
            merges = "it merges what the groups of the kernel before have left"
            outputs, kernel = now.left, tier_fused.next_kernel(now, accumulators, kernel)

    def _without_kernel(
        self,
        order: Sequence[Node],
        outputs: list[tuple[Node, Any]],
        stored_because: str,
        reason: str,
        source: str,
    ) -> None:
        """Note values that no kernel, whose text it would be, computes as a whole."""
        roots = [value for value, _ in outputs]
        apart = "a user's function is called by a kernel of its own until there is one for all"

        def compute(*nodes: Node) -> None:
            for node in nodes:
                if node.layout is None:
                    self._compute([node], [], apart)

        evaluate.computed_apart(order, roots, compute)
        left = []
        for value, layout in outputs:
            if is_call(value):
                self._compute([value], [], apart)
            else:
                left.append((value, layout))
        if left:
            rest = pending_order([value for value, _ in left])
            self._note(rest, left, stored_because, "library", reason, "", source)

    def _note(
        self,
        order: Sequence[Node],
        outputs: Sequence[tuple[Node, Any]],
        stored_because: str,
        tier: str,
        reason: str,
        state: str,
        source: str,
        left: int = 0,
    ) -> None:
        """Note a kernel that leaves so many bytes for another; count its outputs as computed."""
        names = tuple(self.names[id(node)] for node in order)
        number = len(self.kernels) + 1
        self.kernel_of |= dict.fromkeys(names, number)
        leaves = {
            id(part): part
            for node in order
            for part in node.operands
            if isinstance(part, Node) and part.layout is not None
        }
        result = (outputs[-1] if outputs else (order[-1], None))[0]
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
                sum(
                    leaf.size * leaf.dtype.itemsize
                    for leaf in leaves.values()
                    if leaf.layout.block.memory is not None
                ),
                left + sum(node.size * node.dtype.itemsize for node, _ in outputs),
                tuple(self.names[id(node)] for node, _ in outputs),
                tuple(self.names[id(node)] for node, _ in outputs if id(node) in self.siblings),
            )
        )
        for node, layout in outputs:
            node.complete(layout)

    def _store(self, nodes: Sequence[Node], root: Node) -> None:
        for node in nodes:
            if node.layout is not None:
                continue
            if not reduction.is_generated(node):
                because = _ungenerated(node)
            elif type(node.op) is Reduce:
                because = (
                    "what needs it walks other axes, or memory that no cache holds until then"
                )
            elif node.size < root.size:
                because = (
                    f"it has {node.size} elements and is broadcast to {root.size}: storing it "
                    "costs less than computing it for each of them"
                )
            elif not reduction.is_generated(root):
                because = f"it is needed by {self.names[id(root)]}, which is not generated"
            else:
                because = f"a kernel takes at most {elementwise.MOST_ARRAYS} arrays"
            self._compute([node], [], because)

    def _elements(
        self, order: Sequence[Node], outputs: Sequence[tuple[Node, Any]]
    ) -> tuple[str, str, str, str]:
        """Tier, reason, the state of the kernel, its text, of values without reductions."""
        for node in order:
            if not elementwise.can_generate(node):
                return "library", _ungenerated(node), "", ""
        shape = outputs[0][0].shape
        tuning = tier_fused.tuning_of(outputs[0][1].block.queue)
        program = elementwise.linearize(order, outputs, shape, tuning)
        structure = program.structure
        source = elementwise.source_of(structure)
        types = (f"item:{1 + structure.has_rows}", *elementwise.types_of(structure))
        names = elementwise.functions_of(order)
        is_alone = len(order) == 1 and is_call(order[0])
        return *self._state(structure, source, types, names, prod(shape), is_alone), source

    def _state(
        self,
        structure: Any,
        source: str,
        types: tuple[str, ...],
        names: Mapping[str, Any],
        size: int,
        must_compile: bool,
    ) -> tuple[str, str, str]:
        """Tier, reason and the state of a structure's kernel."""
        fused = tier_fused.kept(structure)
        if fused is not None and fused.kernel is not None:
            return "fused", "its kernel is there", "compiled"
        done = fused.elements if fused is not None else 0
        function = elementwise.function_of(source, names)
        key = kernel_key.kernel_key(function, types, tier_fused.options())
        state = "on disk" if key is not None and cache.load(key) is not None else "new"
        if must_compile:
            return "fused", "only a kernel can compute it", state
        if schedule.is_worth_compiling(size, done + size):
            return "fused", f"{size} elements are worth {_work(state)}", state
        if state == "on disk" and not done and size >= schedule.LOAD_ELEMENTS:
            return "fused", f"{size} elements are worth {_work(state)}", state
        reason = (
            f"{done + size} elements of this structure so far are not worth compiling: that takes "
            f"{schedule.COMPILE_ELEMENTS} at once or {schedule.COMPILE_TOTAL_ELEMENTS} in all"
        )
        return "library", reason, state


def _called_sources(order: Sequence[Node]) -> str:
    """The text of the users' functions that a kernel calls, where there is a file of it."""
    texts = []
    for name, function in elementwise.functions_of(order).items():
        with contextlib.suppress(OSError, TypeError):
            text = textwrap.dedent(inspect.getsource(function.py_func))
            texts.append(f"\n# {name} is\n{text}")
    return "".join(texts)


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
