"""Plans of models: the recorded calls, and the evaluations that they lead to.

The recorded calls are compiled into one straight-line function. At its second call, the evaluations
that its calls lead to are noted. An evaluation that depends on nothing but variables and constants
of the plan then replaces the calls whose values it computes: its bound plan runs with the memory of
the variables, so that neither operands are checked nor nodes and keys are made again.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dparray import _hooks, _placement, config
from dparray._codegen.canonical import Canonical
from dparray._evaluate import bound_plan, evaluate
from dparray._evaluate.bound_plan import BoundPlan
from dparray._graph.node import Node
from dparray._runtime import host_maps
from dparray.onnx import functions as dp

Function = Callable[..., Any]

_VARIABLE = re.compile(r"\bt\d+\b")
_binding = threading.Lock()  # One call binds a plan; others run it as recorded.


class Line(NamedTuple):
    """A recorded call.

    Attributes:
        label: the number of the node whose call it is.
        results: the variables it assigns; several for a tuple.
        text: the source of the assignment.
        reads: the variables that it reads.
        defers: whether it does nothing but record operations.
    """

    label: int
    results: tuple[str, ...]
    text: str
    reads: frozenset[str]
    defers: bool


def _needed(lines: Iterable[Line], returned: str) -> list[tuple[Line, list[str]]]:
    """Return the lines that compute what is returned, each with the variables it reads last."""
    needed, found = set(_VARIABLE.findall(returned)), []
    for line in reversed(list(lines)):
        if needed.intersection(line.results):
            last = sorted(line.reads.union(line.results) - needed)
            needed |= line.reads
            found.append((line, last))
    return found[::-1]


def _compiled(heads: Iterable[str], lines: Iterable[Line], returned: str, space: Any) -> Function:
    """Return a function of the variables ``heads`` that runs lines in a name space."""
    text = [f"def plan({', '.join(heads)}):"]
    for line, last in _needed(lines, returned):
        text.append(f"    {line.text}")
        if last:  # their memory can be reused
            text.append(f"    del {', '.join(last)}")
    text.append(f"    return {returned}")
    space = dict(space)
    exec(compile("\n".join(text), "<plan of an ONNX model>", "exec"), space)
    function: Function = space["plan"]
    return function


class Plan:
    """The recorded calls as a function of the inputs; see the module."""

    def __init__(
        self, heads: list[str], lines: list[Line], returned: list[str], constants: list[Any]
    ) -> None:
        self.heads, self.returned = heads, f"[{', '.join(returned)}]"
        self.lines = [line for line, _ in _needed(lines, self.returned)]
        self.constants = {f"c{number}": value for number, value in enumerate(constants)}
        self.recorded = _compiled(heads, lines, self.returned, self.constants)
        self._bound: Function | None = None
        self._token: object | None = None

    def __call__(self, *inputs: Any) -> Any:
        """Compute the outputs."""
        if _hooks.subscribers or _placement.in_force or host_maps.holds or config.plans_differ:
            return self.recorded(*inputs)
        if self._bound is not None and (
            self._token is None or self._token in bound_plan.plans
        ):  # no option was set that changes plans
            return self._bound(*inputs)
        if not _binding.acquire(blocking=False):
            return self.recorded(*inputs)
        try:
            return self._bind(inputs)
        finally:
            _binding.release()

    def watched(self, watch: Callable[[int, Any], Any]) -> Function:
        """Return the function with a call of ``watch(label, value)`` after each call."""
        lines = [
            line._replace(text=f"{line.text}; watch({line.label}, {line.results[0]})")
            for line in self.lines
        ]
        return _compiled(self.heads, lines, self.returned, {**self.constants, "watch": watch})

    def _bind(self, inputs: Sequence[Any]) -> Any:
        """Run as recorded, and replace the calls whose values are computed by one evaluation."""
        nodes: dict[str, Any] = {}
        result: dict[str, tuple[set[str], Evaluation]] = {}
        assigned = {line.results[0]: line for line in self.lines}
        constants = _arrays_in(self.constants.values())

        def watch(name: str, value: Any) -> None:
            if isinstance(value, dp.ndarray) and not (
                value._block is None and value._host_view is not None
            ):
                nodes[name] = weakref.ref(value._node)

        def note(bound: BoundPlan, canonical: Canonical, order: Sequence[Node]) -> None:
            living = {name: ref() for name, ref in nodes.items() if ref() is not None}
            names = {id(node): name for name, node in living.items()}
            inner = {names[id(node)] for node in order if id(node) in names}
            if id(order[-1]) not in names or not inner <= assigned.keys():
                return
            reads = frozenset().union(*[assigned[name].reads for name in inner]) - inner
            slots, blocks = {}, {id(x._block) for x in constants}
            for position, layout in enumerate(canonical.arrays):
                found = [name for name in reads & living.keys() if living[name].layout == layout]
                if len(found) == 1:
                    slots[found[0]] = position
                elif found or not (layout.block.memory is None or id(layout.block) in blocks):
                    return
            if slots.keys() == reads and all(assigned[name].defers for name in inner):
                result[names[id(order[-1])]] = inner, Evaluation(bound, canonical, order, slots)

        for name, x in zip(self.heads, inputs, strict=True):
            watch(name, x)
        space: dict[str, Any] = {**self.constants, "watch": watch}
        lines = [
            line._replace(text=f"{line.text}; watch({line.results[0]!r}, {line.results[0]})")
            for line in self.lines
        ]
        evaluate.observers.append(note)
        try:
            results = _compiled(self.heads, lines, self.returned, space)(*inputs)
        finally:
            evaluate.observers.remove(note)
        self._token = None
        bound = {line.results: line for line in self.lines}
        for root, (names, evaluation) in result.items():
            outside = [line.reads for line in self.lines if line.results[0] not in names]
            outside.append(frozenset(_VARIABLE.findall(self.returned)))
            if any((names - {root}) & reads for reads in outside):
                continue  # another line reads an inner value
            own = [line for line in self.lines if line.results[0] in names]
            evaluation.recorded = _compiled(evaluation.slots, own, root, self.constants)
            text = f"{root} = e{root}({', '.join(evaluation.slots)})"
            reads = frozenset(evaluation.slots)
            bound[root,] = assigned[root]._replace(text=text, reads=reads)
            space[f"e{root}"] = evaluation
            if self._token is None:
                self._token = object()
                bound_plan.keep(self._token, evaluation.bound)
        self._bound = _compiled(self.heads, bound.values(), self.returned, space)
        return results


class Evaluation:
    """One evaluation by a bound plan, with the memory of other arrays.

    Attributes:
        bound: the bound plan.
        slots: the number of the layout of each variable that it reads.
        recorded: the calls that it replaces, which compute arrays of another layout.
    """

    recorded: Function

    def __init__(
        self, bound: BoundPlan, canonical: Canonical, order: Sequence[Node], slots: dict[str, int]
    ) -> None:
        self.bound, self.slots = bound, slots
        self._layouts: list[Any] = list(canonical.arrays)
        self._scalars = canonical.scalars
        self._forms = []
        for slot in slots.values():
            layout = self._layouts[slot]
            self._forms.append((slot, layout[2:], layout.block.usm_type))
            self._layouts[slot] = None  # The arrays of this call must not be kept.
        root = order[-1]
        self._inner = (_Inner,) * (len(order) - 1)
        self._queue = root.queue
        self._root: Any = (root.op, (), root.signature, root.shape, root.size)
        self._root += (root.queue, root.usm_type, root.axes)

    def __call__(self, *arrays: Any) -> Any:
        """Submit the work, and return the result."""
        layouts = self._layouts.copy()
        for x, (at, form, usm_type) in zip(arrays, self._forms, strict=True):
            node = x._node
            layout = node.layout
            if layout is None:
                evaluate.evaluate(node)
                layout = node.layout
            is_here = node.queue is self._queue and node.usm_type == usm_type
            if layout[2:] != form or not is_here:
                return self.recorded(*arrays)
            layouts[at] = layout
        canonical = Canonical.__new__(Canonical)
        canonical.arrays, canonical.scalars = layouts, self._scalars
        node = Node(*self._root)
        with host_maps.lock:
            self.bound.run(canonical, None, (*self._inner, node))  # type: ignore[arg-type]
        return dp.ndarray._pending(node)


class _Inner:
    """An inner value of an evaluation, which is not kept where a step of the plan stores it."""

    layout = ()


def _arrays_in(values: Iterable[Any]) -> list[Any]:
    """Return the arrays in constants, also in tuples and lists of them."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, tuple | list):
            found += _arrays_in(value)
        elif isinstance(value, dp.ndarray):
            found.append(value)
    return found
