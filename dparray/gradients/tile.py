"""Calls of Tile functions with traced arrays, whose contractions have adjoints as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from dparray._placement import Placement
from dparray.gradients.calls import OF_CLASSES, is_array
from dparray.gradients.kernels import is_moved, kept
from dparray.gradients.public import dp
from dparray.gradients.tape import matched
from dparray.gradients.traced import Spec, innermost, lowered, stored
from dparray.gradients.transforms import recorded
from dparray.tilelang.adjoint import COTANGENT, OPERANDS, adjoint_of
from dparray.tilelang.contracting import Lowered
from dparray.tilelang.function import TileFunction

#: The adjoints of contractions, by the operand.
_PROGRAMS: WeakKeyDictionary[Lowered, dict[int, TileFunction | None]] = WeakKeyDictionary()


def call_traced(function: TileFunction, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Call a Tile function with traced arrays: its contractions are recorded with their adjoints.

    Raises:
        GradientError: a statement has no derivative.
    """
    named = {name: x for name, x in options.items() if name not in ("out", "device")}
    values = function._ordered(args, named)
    plain = [stored(x) for x in values]
    key, arrays = function._key(plain)
    placement = function._placement(arrays, None, plain)
    plan = function._plan(key, plain)
    slots: list[Any] = [x for x in values if is_array(x)]
    slots += [None] * (plan.slots - len(slots))
    for step, sources, target, _ in plan.instructions:
        operands = [slots[each] for each in sources]
        if isinstance(step, Lowered):
            slots[target] = _contracted(step, placement, *operands)
        else:
            slots[target] = step(placement, *operands)
    results = [dp.copy(slots[at]) if copies else slots[at] for at, copies in plan.outputs]
    return results[0] if function._results is None else function._results(*results)


OF_CLASSES[TileFunction] = call_traced


def _contracted(step: Lowered, placement: Placement, *operands: Any) -> Any:
    """Compute a contraction of arrays that may be traced, and record it."""
    level = innermost(operands)
    if level is None:
        return step(placement, *operands)
    if level.recording is not None:
        return level.recording.call(_contracted, (step, placement, *operands), {})
    places = [place for place, x in enumerate(operands) if is_moved(x, level)]
    values = [lowered(x, level) for x in operands]
    programs = _programs(step, places)
    answer = _contracted(step, placement, *values)
    reads = [kept(x) for x in values]
    specs = [Spec(values[place]) for place in places]

    def pulled(gs: list[Any]) -> list[Any]:
        given = {COTANGENT: gs[0]}
        given |= {name: read() for name, read in zip(OPERANDS, reads, strict=False)}
        made = [each and each(*[given[name] for name in each.inputs]) for each in programs]
        return [matched(g, spec) for g, spec in zip(made, specs, strict=True)]

    return recorded(level, operands, places, [answer], pulled)[0]


def _programs(step: Lowered, places: Sequence[int]) -> list[TileFunction | None]:
    known = _PROGRAMS.setdefault(step, {})
    for place in places:
        if place not in known:
            text = adjoint_of(step.contracted, place)
            known[place] = TileFunction(text) if text else None
    return [known[place] for place in places]
