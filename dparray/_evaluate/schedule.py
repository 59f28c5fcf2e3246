"""Scheduling: convert an expression to a :class:`dparray._evaluate.plan.Plan`.

The expression is copied with slots in place of arrays and scalars, so a plan cannot depend on
anything that is not in the key; nothing is computed, allocated or compiled. This module applies the
rules of :mod:`dparray._evaluate.fusion`, by which operations share a kernel, to all operations.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen import elementwise, reduction_steps
from dparray._codegen.canonical import Canonical
from dparray._codegen.elementwise import can_generate
from dparray._codegen.reduction import ReductionProgram, is_generated
from dparray._codegen.steps import Steps
from dparray._codegen.values import can_store
from dparray._dtypes import is_bfloat16
from dparray._evaluate import cost_model, host_operations, implementations, limits
from dparray._evaluate.expression import Expression, PlanTraits, Target
from dparray._evaluate.fusion import (
    FusionGroup,
    Split,
    is_call,
    joined,
    reduces,
    split,
    stored_by,
    with_tail,
)
from dparray._evaluate.multipass_reductions import (
    first_pass,
    local_memory,
    must_generate,
    next_group,
)
from dparray._evaluate.plan import (
    ContractionStep,
    FusedStep,
    HostStep,
    KernelEntry,
    KernelLaunch,
    LibraryStep,
    NewArray,
    Plan,
    Step,
)
from dparray._evaluate.reasons import why_not_generated, why_stored
from dparray._evaluate.slots import ScalarSlot, SlotBlock, slot_of
from dparray._graph.assembly import cells_of, count_cells, is_assembled, pieces_of
from dparray._graph.contractions import RESULT, Contraction, Tail
from dparray._graph.node import Node, Scalar, layout_of, pending_order
from dparray._graph.ops import Op
from dparray._graph.reductions import Reduce
from dparray._layout import (
    Layout,
    contiguous_run,
    is_contiguous,
    order_of_axes,
    strides_in_order,
)
from dparray._runtime.rounding import INDEX_LIMIT

Outputs = list[tuple[Any, Layout]]


class Work(NamedTuple):
    """Values that are computed by one step, or by several where no kernel computes all of them.

    Attributes:
        order: the pending nodes, operands before users.
        outputs: the values to store, and where.
        new: the arrays to allocate.
        stored_because: the reason why the results are stored, if they are inner values.
        siblings: the numbers of the nodes that are computed without being requested.
    """

    order: Sequence[Node]
    outputs: Outputs
    new: Sequence[NewArray] = ()
    stored_because: str = ""
    siblings: tuple[int, ...] = ()


#: Kernels by structure and target. When there are too many, all of them are dropped together with
#: their plans, because the driver keeps at least half a megabyte for each kernel.
entries: dict[Any, KernelEntry] = {}
MAX_ENTRIES = 1024
#: Functions that drop other references to these kernels.
when_forgotten: list[Callable[[], None]] = []


def entry_of(structure: Any, fp_contract: bool, target: Any) -> KernelEntry:
    """Return this process's entry for the kernel of a structure; a new entry has no kernel."""
    key = structure, fp_contract, target
    entry = entries.get(key)
    if entry is None:
        if len(entries) >= MAX_ENTRIES:
            forget()
        entry = entries.setdefault(key, KernelEntry(target))
    return entry


def forget() -> None:
    """Drop all kernels of structures, and other references to them."""
    entries.clear()
    for action in when_forgotten:
        action()


def schedule(
    expression: Expression, canonical: Canonical, traits: PlanTraits, target: Target | None = None
) -> Plan:
    """Return the plan that computes an expression.

    Args:
        expression: the expression.
        canonical: its signature.
        traits: the traits of the queue.
        target: the memory for the last root, or for the value of the expression.
    """
    return _Scheduler(expression, canonical, traits, target).plan()


class _Scheduler:
    """The state of scheduling: a copy of the expression, with marks on the computed nodes.

    A copied node that is computed has a layout, and keeps its operation and operands.
    """

    def __init__(
        self,
        expression: Expression,
        canonical: Canonical,
        traits: PlanTraits,
        target: Target | None,
    ) -> None:
        self.traits = traits
        self.leaves = len(canonical.arrays)
        self.slots = self.leaves
        self.numbers: dict[int, int] = {}  # of copies in the order of the expression
        self.copies: list[Any] = []  # copies, so that no other object gets their ids
        self.scalars = 0
        self.steps: list[Step] = []
        overlapped = frozenset(target.overlapped) if target is not None else frozenset()
        blocks = [
            SlotBlock(number, layout.block.memory is None, number in overlapped)
            for number, layout in enumerate(canonical.arrays)
        ]
        self.arrays = [
            Layout(block, 0, layout.shape, layout.strides, layout.dtype)
            for block, layout in zip(blocks, canonical.arrays, strict=True)
        ]
        copies: dict[int, Any] = {}
        order = [
            self._copy(node, number, copies, canonical)
            for number, node in enumerate(expression.order)
        ]
        self.siblings = order[len(order) - expression.siblings :] if expression.siblings else []
        self.roots = [order[number] for number in expression.roots]
        self.held = [order[number] for number in expression.held]
        self.value: Any = None
        self.target: Layout | None = None
        if target is not None:
            block = SlotBlock(self.slots)
            self.slots += 1
            self.usm_type = target.usm_type
            self.target = Layout(block, 0, target.shape, target.strides, target.dtype)
            value = expression.value
            self.value = (
                self.roots.pop() if value is None else self._operand(value, copies, canonical)
            )

    def _copy(self, node: Node, number: int, copies: dict[int, Any], canonical: Canonical) -> Node:
        parts = tuple([self._operand(part, copies, canonical) for part in node.operands])
        attributes = node.shape, node.size, node.queue, node.usm_type, node.axes
        copy = Node(implementations.operation_of(node), parts, node.signature, *attributes)
        copy.cost, copy.leaves = node.cost, node.leaves
        copies[id(node)] = copy
        self.numbers[id(copy)] = number
        self.copies.append(copy)
        return copy

    def _operand(
        self, part: Node | Scalar, copies: dict[int, Any], canonical: Canonical
    ) -> Node | Scalar:
        if type(part) is Scalar:
            self.scalars += 1
            return Scalar(ScalarSlot(self.scalars - 1))
        copy = copies.get(id(part))
        if copy is None:
            assert type(part) is Node
            layout = self.arrays[canonical.numbers[id(part)]]
            copy = copies[id(part)] = Node.leaf(layout, part.queue, part.usm_type)
        return copy

    def plan(self) -> Plan:
        if self.target is not None:
            self._write()
        elif self._is_for_host(self.roots[0].size, self.roots[0].usm_type, self.roots):
            self._on_host([*self.held, *self.roots])
        else:
            self._compute(self.roots, "")
        asked = [slot_of(layout_of(root)) for root in self.roots]
        if self.target is not None:
            asked = [slot_of(self.target)]
        return Plan(tuple(self.steps), self.leaves, self.slots, tuple(asked))

    # The groups, in order.

    def _write(self) -> None:
        """Compute the value into the target."""
        value, target = self.value, self.target
        assert target is not None
        is_pending = type(value) is Node and value.layout is None
        roots = [value] if is_pending else []
        gain = 0.0 if is_pending else self._gain_of_copy(value, target)
        if not gain and self._is_for_host(prod(target.shape), self.usm_type, roots):
            instead = self._beside_work(roots, (value, target))
            self._on_host(self.held, [(value, target)], instead=instead)
            return
        if is_pending:
            part = self._next(roots, self.held, True)
            is_pending = bool(roots)
            if is_pending:
                self._group(part.group, roots, self.held, "", [(value, target)])
        if not is_pending:  # a scalar, or a value that had to be computed before
            self._elements(Work([], [(value, target)]))
            step = self.steps[-1]
            # A launch without a gain has no alternative that NumPy computes.
            if gain and type(step) is FusedStep and step.launches[0].gain is not None:
                step.launches[0].gain = gain

    def _compute(self, nodes: Sequence[Node], stored_because: str) -> None:
        """Compute nodes, those of one shape together."""
        groups: dict[tuple[int, ...], list[Node]] = {}
        for node in dict.fromkeys(nodes):
            groups.setdefault(node.shape, []).append(node)
        for roots in groups.values():
            roots = [node for node in roots if node.layout is None]
            if roots:
                self._together(roots, stored_because)

    def _together(self, roots: list[Node], stored_because: str) -> None:
        """Compute pending nodes of one shape."""
        inside = set(map(id, pending_order(roots)))
        asked = set(map(id, roots))
        held = [
            node
            for node in self.held
            if id(node) in inside and id(node) not in asked and node.layout is None
        ]
        if self._is_for_host(roots[0].size, roots[0].usm_type, roots):
            self._on_host([*held, *roots], stored_because=stored_because)
            return
        while roots:
            part = self._next(roots, held, False)
            if not roots:
                return
            self._group(part.group, roots, held, stored_because, [])
            roots = part.apart

    def _next(self, roots: list[Node], held: Sequence[Node], is_written: bool) -> Split:
        """Return the part of ``roots`` for the next kernel, after computing the values it reads."""
        while True:
            part = split(roots, held, is_written, self.traits.machine)
            if not part.first:
                return part
            for node in part.first:
                if node.layout is None:
                    self._compute(
                        [each for each in part.first if each.shape == node.shape],
                        why_stored(node, roots[-1]),
                    )
            roots[:] = [node for node in roots if node.layout is None]
            if not roots:
                return Split([], FusionGroup([]), [])

    def _group(
        self,
        group: FusionGroup,
        roots: Sequence[Node],
        held: Sequence[Node],
        stored_because: str,
        stores: Outputs,
    ) -> None:
        """Compute the nodes of a group in ``roots`` or ``held``, and their sibling reductions."""
        written = {id(value) for value, _ in stores}
        wanted = [node for node in stored_by(group, [*held, *roots]) if id(node) not in written]
        siblings: list[Node] = []
        if group.domain is not None:
            siblings = self._siblings_of(group)
            group = joined(group, siblings)
        outputs, new = self._fresh([*wanted, *siblings])
        outputs += stores
        numbers = tuple(self.numbers[id(node)] for node in siblings)
        work = Work(group.order, outputs, new, stored_because, numbers)
        if group.domain is not None and all(can_store(v, to.dtype) for v, to in outputs):
            self.steps.append(self._reduced(group, work))
            self._done(outputs)
        else:
            self._elements(work)

    # Generated kernels.

    def _elements(self, work: Work) -> None:
        """Compute values of one shape."""
        order, outputs = work.order, work.outputs
        if not outputs:
            return
        is_alone = len(order) == 1 and type(order[0].op) is Contraction
        begin = order[0] if is_alone else with_tail(order, [value for value, _ in outputs])
        if begin is not None:
            self._contraction(begin, work)
            return
        shape = outputs[0][1].shape
        is_fused = (
            all(map(can_generate, order))
            and all(can_store(v, to.dtype) for v, to in outputs)
            and (
                prod(shape) < INDEX_LIMIT
                or _can_be_cut(order, prod(shape) // INDEX_LIMIT)
                or any(map(is_call, order))
            )
        )
        if not is_fused:
            self.steps += self._without_kernel(work)
            self._done(outputs)
            return
        is_alone = (len(order) == 1 and is_call(order[0])) or self._is_for_kernels(work)
        otherwise = [] if is_alone else self._without_kernel(Work(order, outputs))
        traits = self.traits
        is_gpu = traits.machine.sub_group > 0
        functions = elementwise.functions_of(order)
        has_vectors = traits.machine.loads_vectors
        launches: list[KernelLaunch] = []
        cells: Sequence[tuple[Any, ...]] = [(order, outputs, shape, {}, {})]
        axes = None
        if any(map(is_assembled, order)):
            axes = order_of_axes(shape, *[layout.strides for _, layout in outputs])
            axes = tuple(range(len(shape))) if axes is None else axes
            cells = cells_of(order, outputs, shape, axes[-1] if axes else 0)
        elif prod(shape) >= INDEX_LIMIT and _can_be_cut(order, prod(shape) // INDEX_LIMIT):
            # Ranges are rounded up by at most a quarter.
            cells = _pieces(order, outputs, shape, INDEX_LIMIT // 4 * 3)
            axes = _axes_of_pieces(cells)

        def linearized(cell: tuple[Any, ...]) -> elementwise.Program:
            nodes, stored, extents, jumps, bounds = cell
            return elementwise.linearize(
                nodes, stored, extents, traits.tuning, is_gpu, axes, jumps, has_vectors, bounds
            )

        programs = list(map(linearized, cells))
        lines, most_lines = programs[0].global_range[0], traits.machine.lines
        count = -(-lines // most_lines)
        if len(programs[0].global_range) > 1 and count > 1 and _can_be_cut(order, count):
            # The grid has fewer rows of groups than the expression needs.
            cells = _pieces(order, outputs, shape, prod(cells[0][2]) // count)
            axes = _axes_of_pieces(cells)
            programs = list(map(linearized, cells))
        for (_, stored, extents, *_), program in zip(cells, programs, strict=True):
            must_compile = is_alone or bool(launches)
            size = prod(extents)
            launch = self._launch(program, order, stored, (), functions, size, must_compile)
            launches.append(launch)
        if not launches[0].must_compile:
            launches[0].kernel_seconds, launches[0].gain = _estimate(order, otherwise)
        self.steps.append(
            FusedStep(
                **self._described(work),
                launches=tuple(launches),
                otherwise=tuple(otherwise),
                is_by_cells=len(cells) > 1,
            )
        )
        self._done(outputs)

    def _contraction(self, node: Node, work: Work) -> None:
        """Compute a contraction by a kernel or library, with the other nodes as its tail."""
        op, order, outputs = node.op, work.order, work.outputs
        assert type(op) is Contraction
        value, layout = outputs[0]
        is_plain = value is node and layout.dtype == node.dtype
        is_plain &= is_contiguous(layout.shape, layout.strides, layout.dtype.itemsize)
        # A user's function may read the target, or fail halfway.
        is_plain &= op.implementation is None or layout is not self.target
        if len(outputs) > 1 or not (is_plain or op.takes_tail):
            own, added = self._fresh([node])
            self._contraction(node, Work([node], own, added, work.stored_because))
            self._elements(Work([], outputs, work.new, "", work.siblings))
            return
        described = self._described(work)
        if op.implementation is not None:
            operations: dict[str, Any] = {"order": (node,), "values": tuple(outputs)}
            self.steps.append(LibraryStep(**described, **operations, because=op.reason))
            self._done(outputs)
            return
        read = [layout_of(part) for part in node.operands if type(part) is Node]
        read = [each for each in read if each.block.memory]
        if op.launch is None:
            arrays = tuple(map(slot_of, read))
            self.steps.append(
                ContractionStep(**described, op=op, arrays=arrays, output=slot_of(layout))
            )
            self._done(outputs)
            return
        tail, scalars = None, []
        if not is_plain:
            rest = [each for each in order if each is not node]
            parts = Steps(rest, [(value, layout.dtype)], names={id(node): RESULT})
            tail = Tail(
                parts.steps,
                tuple(
                    (each.dtype.str, _broadcast_steps(each, layout, op.shape))
                    for each in parts.arrays
                ),
                parts.scalar_dtypes,
                (parts.outputs[0][0], value.dtype.str),
                layout.dtype.str,
                _broadcast_steps(layout, layout, op.shape),
            )
            read += parts.arrays
            scalars = [(each.value.number, each.dtype) for each in parts.scalars]
        contraction = op.launch(node.queue, tail)
        launch = KernelLaunch(
            contraction.structure,
            entry_of(contraction.structure, True, self.traits.target),
            {},
            (*map(slot_of, read), slot_of(layout)),
            (slot_of(layout),),
            (),
            tuple(self.numbers[id(each)] for each in order),
            tuple(scalars),
            tuple(map(ctypes.c_int64, contraction.numbers)),
            (),
            contraction.global_range,
            contraction.local_range,
            node.size,
            must_compile=True,
            fp_contract=True,
            merges_chunks=False,
        )
        self.steps.append(FusedStep(**described, launches=(launch,)))
        self._done(outputs)

    def _reduced(self, group: FusionGroup, work: Work) -> FusedStep:
        """Return the step for a group with reductions: one kernel, or several in passes."""
        outputs = work.outputs
        described = self._described(work)
        is_alone = self._is_for_kernels(work)
        otherwise = [] if is_alone else self._without_kernel(Work(group.order, outputs))
        estimate = _estimate(group.order, otherwise)  # before a first pass changes the nodes
        launches: list[KernelLaunch] = []
        while outputs:
            assert group.domain is not None
            now = first_pass(outputs, group, self.traits.machine)
            accumulators, added = [], []
            for dtype in now.left_dtypes:
                layout, array = self._scratch(now.shape, dtype, outputs[0][0].usm_type)
                strides = tuple(stride * dtype.itemsize for stride in now.strides)
                accumulators.append(layout._replace(strides=strides))
                added.append(array)
            structure = now.program.structure
            functions = elementwise.functions_of(now.order) | reduction_steps.functions_of(
                structure
            )
            launches.append(
                self._launch(
                    now.program,
                    now.order,
                    now.stored,
                    added,
                    functions,
                    prod(group.domain.shape),
                    is_alone or bool(launches) or must_generate(structure),
                )
            )
            outputs = now.left
            if outputs:
                group = next_group(now, accumulators, group)
        if not launches[0].must_compile:
            launches[0].kernel_seconds, launches[0].gain = estimate
        return FusedStep(**described, launches=tuple(launches), otherwise=tuple(otherwise))

    def _launch(
        self,
        program: Any,
        order: Sequence[Node],
        outputs: Outputs,
        accumulators: Sequence[NewArray],
        functions: dict[str, Any],
        size: int,
        must_compile: bool,
    ) -> KernelLaunch:
        structure = program.structure
        entry = entry_of(structure, self.traits.fp_contract, self.traits.target)
        stored = [slot_of(layout) for _, layout in outputs]
        arguments = [*program.arrays, *(layout for _, layout in outputs)]
        offsets = tuple([layout.offset for layout in arguments])
        return KernelLaunch(
            structure,
            entry,
            functions,
            (*map(slot_of, arguments), *(array.slot for array in accumulators)),
            tuple(stored),
            tuple(accumulators),
            tuple(self.numbers[id(node)] for node in order),
            tuple((scalar.value.number, scalar.dtype) for scalar in program.scalars),
            program.numbers,
            local_memory(program) if isinstance(program, ReductionProgram) else (),
            program.global_range,
            program.local_range,
            size,
            must_compile,
            self.traits.fp_contract,
            getattr(structure, "merges_chunks", False),
            offsets=offsets if any(offsets) else (),
        )

    # Values that are computed without one kernel for all of them.

    def _on_host(
        self,
        nodes: Sequence[Node],
        stores: Sequence[tuple[Any, Layout]] = (),
        stored_because: str = "",
        instead: FusedStep | None = None,
    ) -> None:
        outputs, new = self._fresh(nodes)
        outputs += stores
        if len(nodes) == len(outputs) == 1 and nodes[0].size > cost_model.MIN_AT_ONCE:
            instead = self._beside_work(nodes, outputs[0])
        order = _in_turn([value for value, _ in outputs])
        described = self._described(Work(order, outputs, new, stored_because))
        estimate = cost_model.described(cost_model.saved_additions(order))
        because = f"memory that the host reads and writes; {estimate}"
        operations: dict[str, Any] = {"order": tuple(order), "values": tuple(outputs)}
        operations |= {"because": because, "operations": host_operations.bind(order, outputs)}
        self.steps.append(HostStep(**described, **operations, instead=instead))
        self._done(outputs)

    def _beside_work(self, roots: Sequence[Node], stored: tuple[Any, Layout]) -> FusedStep | None:
        """Return the kernel for a value whose memory the host would have to wait for, if any.

        The host computes the value only if no work uses the memory.
        """
        order = pending_order(roots)
        if self.held or not limits.chooses() or not all(type(node.op) is Op for node in order):
            return None
        copies = self._copies(order)
        value, target = stored
        before, self.steps = self.steps, []
        own = [(copies.get(id(value), value), target)]
        self._elements(Work([copies[id(node)] for node in order], own))
        steps, self.steps = self.steps, before
        step = steps[0]
        if len(steps) > 1 or type(step) is not FusedStep or step.launches[0].must_compile:
            return None
        step.launches[0].gain = cost_model.terms().launch
        return step

    def _without_kernel(self, work: Work) -> list[Step]:
        """Return steps to values while there is no kernel for all; mark no node as computed.

        Operations that only generated kernels can compute have a kernel of their own.
        """
        before, self.steps = self.steps, []
        order, new = work.order, work.new
        copies = self._copies(order)
        values: Outputs = [(copies.get(id(value), value), layout) for value, layout in work.outputs]
        roots = {id(value) for value, _ in values}
        apart = "a function that NumPy lacks has its own kernel until the fused kernel is compiled"
        for node in order:
            if is_call(node):
                copy = copies[id(node)]
                operands = [part for part in copy.operands if type(part) is Node]
                self._compute([part for part in operands if part.layout is None], apart)
                if id(copy) not in roots:
                    self._compute([copy], apart)
        left: Outputs = []
        computed = {id(copy) for copy in copies.values()}
        for value, layout in values:
            # the other contractions are computed above
            if id(value) in computed and is_call(value):
                own = [array for array in new if array.slot == slot_of(layout)]
                self._elements(Work([value], [(value, layout)], own, apart))
            else:
                left.append((value, layout))
        if left:
            slots = {slot_of(layout) for _, layout in left}
            new = [array for array in new if array.slot in slots]
            nodes = [value for value, _ in left if type(value) is Node]
            rest = _in_turn(nodes)
            described = self._described(work._replace(order=rest, outputs=left, new=new))
            usm_type = nodes[0].usm_type if nodes else self.usm_type
            operations: dict[str, Any] = {"order": tuple(rest), "values": tuple(left)}
            if self._may_be_on_host(usm_type, rest):
                operations["operations"] = host_operations.bind(rest, left)
                self.steps.append(HostStep(**described, **operations))
            else:
                reasons = [why_not_generated(node) for node in rest if not is_generated(node)]
                because = reasons[0] if reasons else ""
                self.steps.append(LibraryStep(**described, **operations, because=because))
        steps, self.steps = self.steps, before
        return steps

    def _copies(self, order: Sequence[Node]) -> dict[int, Node]:
        """Return copies of pending nodes, which stay pending when the originals are computed."""
        copies: dict[int, Node] = {}
        for node in order:
            parts = tuple([copies.get(id(part), part) for part in node.operands])
            assert node.op is not None
            attributes = node.shape, node.size, node.queue, node.usm_type, node.axes
            copy = Node(node.op, parts, node.signature, *attributes)
            copies[id(node)] = copy
            self.numbers[id(copy)] = self.numbers[id(node)]
            self.copies.append(copy)
        return copies

    # Slots.

    def _scratch(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        usm_type: str,
        axes: tuple[int, ...] | None = None,
    ) -> tuple[Layout, NewArray]:
        """Return a new slot: its layout, and the array to allocate for it."""
        strides = strides_in_order(shape, dtype.itemsize, axes)
        nbytes = prod(shape) * dtype.itemsize
        array = NewArray(self.slots, shape, dtype, usm_type, nbytes, strides)
        self.slots += 1
        return Layout(SlotBlock(array.slot), 0, shape, strides, dtype), array

    def _fresh(self, nodes: Sequence[Node]) -> tuple[Outputs, list[NewArray]]:
        """Return a new slot for each node: its outputs, and the arrays to allocate."""
        outputs: Outputs = []
        new = []
        for node in nodes:
            layout, array = self._scratch(node.shape, node.dtype, node.usm_type, node.axes)
            outputs.append((node, layout))
            new.append(array)
        return outputs, new

    def _described(self, work: Work) -> dict[str, Any]:
        """Return the fields that all classes of steps have."""
        order, outputs = work.order, work.outputs
        leaves = [part for node in order for part in node.operands]
        leaves += [value for value, _ in outputs]
        reads = {
            slot_of(layout_of(part)): None
            for part in leaves
            if type(part) is Node and part.layout is not None and part.layout.block.memory
        }
        target = self.target
        return {
            "new": tuple(work.new),
            "outputs": tuple(slot_of(layout) for _, layout in outputs),
            "stores": tuple(
                (slot_of(layout), self.numbers[id(value)])
                for value, layout in outputs
                if id(value) in self.numbers and layout is not target
            ),
            "nodes": tuple(self.numbers[id(node)] for node in order),
            "reads": tuple(reads),
            "stored_because": work.stored_because,
            "siblings": work.siblings,
        }

    def _done(self, outputs: Outputs) -> None:
        """Mark values as computed."""
        for value, layout in outputs:
            if type(value) is Node and value.layout is None:
                value.layout = layout
                value.cost, value.leaves = 0, 1

    # Rules.

    def _is_for_host(self, size: int, usm_type: str, roots: Sequence[Node]) -> bool:
        """Return whether the calling thread computes pending nodes, of ``size`` elements each.

        It does if it is faster than the kernel, or while there is no kernel.
        """
        if usm_type not in self.traits.host_memory or not limits.host_elements:
            return False
        order = pending_order(roots)
        walked = [
            node.operands[0].size if type(node.op) is Reduce else node.size  # type: ignore[union-attr]
            for node in order
        ]
        if not all(map(_is_known_to_host, order)):
            return False
        most = limits.host_elements
        if limits.chooses():
            most = min(most, cost_model.MIN_AT_ONCE)
        if max([size, *walked]) <= most:
            return True
        if not limits.chooses():
            return False
        return cost_model.gain(cost_model.saved_additions(order), count_cells(order)) <= 0

    def _gain_of_copy(self, value: Node | Scalar, target: Layout) -> float:
        """Return how much faster than NumPy a kernel copies a computed value in short rows."""
        if not limits.chooses() or type(value) is not Node:
            return 0.0
        run = min(map(contiguous_run, (layout_of(value), target)))
        return cost_model.gain_of_copy(prod(target.shape), run)

    def _may_be_on_host(self, usm_type: str, nodes: Sequence[Node]) -> bool:
        """Return whether the calling thread computes nodes that there is no kernel for yet."""
        return (
            usm_type in self.traits.host_memory
            and limits.may_compute_on_host()
            and all(is_generated(node) and _is_known_to_host(node) for node in nodes)
        )

    def _is_for_kernels(self, work: Work) -> bool:
        """Return whether only generated kernels can compute values: dpnp has no bfloat16, and CuPy
        would compile its own kernels.
        """
        if self.traits.has_steps and not _meets_bfloat16(work):
            return False
        usm_type = work.order[0].usm_type if work.order else self.usm_type
        return not self._may_be_on_host(usm_type, work.order)

    def _siblings_of(self, group: FusionGroup) -> list[Node]:
        """Return the pending reductions of a group's reduced operands over the same axes."""
        domain = group.domain
        assert domain is not None
        inside = set(map(id, group.order))
        walked = [
            node.operands[0]
            for node in group.order
            if type(node.op) is Reduce and not node.op.merges
        ]
        siblings = [
            node
            for node in self.siblings
            if node.layout is None
            and id(node) not in inside
            and any(reduces(node, each, domain) for each in walked)
        ]
        return siblings[: limits.MAX_SIBLINGS]


#: No device has memory for more pieces of the largest number of elements.
_MAX_PIECES = 1 << 14
# Different positions in an expression that is cut: each is another argument of the kernel.
_MAX_POSITIONS = 8


def _can_be_cut(order: Sequence[Node], count: int) -> bool:
    """Return whether an expression is computed in this many pieces.

    They must be expressions themselves; assembled operands are cut by other rules.
    """
    if count > _MAX_PIECES or any(map(is_assembled, order)):
        return False
    leaves = [part for node in order for part in node.operands if type(part) is Node]
    layouts = [part.layout for part in leaves if part.layout is not None]
    return len({each for each in layouts if each.block.memory is None}) <= _MAX_POSITIONS


def _pieces(
    order: Sequence[Node], outputs: Outputs, shape: tuple[int, ...], most: int
) -> Sequence[tuple[Any, ...]]:
    """Return the pieces of an expression that have at most this many elements."""
    axes = order_of_axes(shape, *[layout.strides for _, layout in outputs])
    pieces = pieces_of(order, outputs, shape, axes or tuple(range(len(shape))), most)
    return [(each.order, each.outputs, each.shape, each.jumps, {}) for each in pieces]


def _axes_of_pieces(pieces: Sequence[tuple[Any, ...]]) -> tuple[int, ...] | None:
    """Return all axes if positions begin elsewhere in a piece; otherwise ``None``."""
    jumps = [jump for _, _, _, own, _ in pieces for each in own.values() for _, jump in each]
    return tuple(range(len(pieces[0][2]))) if any(jumps) else None


def _estimate(order: Sequence[Node], otherwise: Sequence[Step]) -> tuple[float, float | None]:
    """Return the seconds of a kernel, and its gain if the calling thread may compute meanwhile."""
    launches = count_cells(order)
    seconds = cost_model.seconds_of_kernel(order, launches)
    if not otherwise or type(otherwise[-1]) is not HostStep:
        return seconds, None
    return seconds, cost_model.gain(cost_model.saved_additions(order), launches)


def _is_known_to_host(node: Node) -> bool:
    """Return whether NumPy can compute a node."""
    op = node.op
    if type(op) is Reduce:
        return not op.merges and op.reduction.has_library
    return not is_call(node) and type(op) is not Contraction


def _broadcast_steps(layout: Layout, to: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array, in elements, along the axes of a shape.

    The array broadcasts to ``to``, whose axes are those of the shape, or some of them merged.
    """
    steps = [
        0 if size == 1 else stride // layout.dtype.itemsize
        for size, stride in zip(layout.shape, layout.strides, strict=True)
    ]
    steps = [0] * (len(to.shape) - len(steps)) + steps
    strides: list[int] = []
    axis, left = len(to.shape) - 1, 1
    for size in reversed(shape):
        while axis > 0 and left >= to.shape[axis]:
            axis, left = axis - 1, 1
        strides.append(steps[axis] * left)
        left *= size
    return tuple(strides[::-1])


def _meets_bfloat16(work: Work) -> bool:
    """Return whether a value is read, computed or stored in bfloat16."""
    dtypes = {layout.dtype for _, layout in work.outputs}
    for node in work.order:
        parts = [part for part in node.operands if type(part) is Node]
        dtypes.update(part.dtype for part in (node, *parts))
    return any(map(is_bfloat16, dtypes))


def _in_turn(values: Sequence[Any]) -> list[Node]:
    """Return the pending nodes that values depend on, those of the last value first.

    The last value may be written to memory that the others read.
    """
    return pending_order([value for value in reversed(values) if type(value) is Node])
