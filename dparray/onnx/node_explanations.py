"""The explanation of how each node of a model is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class NodePlan:
    """The way in which one node is computed.

    Attributes:
        number: its position in the model, from 0.
        operator, name: as in the model.
        how: ``"folded"`` (at load), ``"merged"`` (into another node's weights), ``"constant"``
            (when the plan was recorded, since the value follows from shapes), ``"view"`` (without
            computation), ``"host"``, or ``"device"``.
        calls: the functions that the plan calls for it.
        devices: under a policy of :func:`dparray.placement`, the devices that computed it, each
            node evaluated alone.
    """

    number: int
    operator: str
    name: str
    how: str
    calls: tuple[str, ...]
    devices: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = Counter(self.calls)
        calls = ", ".join(
            f"{name} x{count}" if count > 1 else name for name, count in counts.items()
        )
        devices = f" on {', '.join(self.devices)}" if self.devices else ""
        return f"{self.number:4}  {self.operator:20} {self.how:10} {calls}{devices}"


@dataclass(frozen=True)
class ModelExplanation:
    """The way in which a model is computed; prints as a table of the nodes.

    Attributes:
        nodes: how each node is computed.
        is_recorded: whether later calls replay a plan. Otherwise, values that depend on inputs are
            read on the host, and each call runs all nodes again.
        nbytes: the size of the weights in bytes.
        outputs: :func:`dparray.explain` of each pending output: its kernels.
    """

    nodes: tuple[NodePlan, ...]
    is_recorded: bool
    nbytes: int
    outputs: tuple[Any, ...]

    def __str__(self) -> str:
        how = Counter(node.how for node in self.nodes)
        counts = ", ".join(f"{count} {name}" for name, count in sorted(how.items()))
        replay = "replayed from a recorded plan" if self.is_recorded else "run node by node"
        lines = [
            f"{len(self.nodes)} nodes ({counts}), {self.nbytes:,} bytes of weights, {replay}",
            "  no.  operator             how        calls",
            *map(str, self.nodes),
        ]
        return "\n".join([*lines, *map(str, self.outputs)])


def explained(
    model: Any,
    recorder: Any,
    outputs: Any = (),
    devices: Mapping[int, tuple[str, ...]] = MappingProxyType({}),
) -> ModelExplanation:
    """Return the explanation of a model from the calls that a recorder recorded."""
    folded = {node.number for node in model.folded}
    rows = []
    for node in model.nodes:
        calls = tuple(recorder.calls.get(node.number, ())) if recorder is not None else ()
        if node.number in folded:
            how = "folded"
        elif node.number in model.merged:
            how, calls = "merged", (f"into {model.merged[node.number]}",)
        elif recorder is None or not recorder.is_recording:
            how = "device"
        elif not calls:
            how = "constant"
        elif set(calls) <= {"reshape", "transpose", "getitem", "broadcast_to"}:
            how = "view"
        else:
            how = "device"
        where = devices.get(node.number, ())
        rows.append(NodePlan(node.number, node.operator, node.proto.name, how, calls, where))
    is_recorded = recorder is not None and recorder.is_recording
    return ModelExplanation(tuple(rows), is_recorded, model.nbytes, tuple(outputs))
