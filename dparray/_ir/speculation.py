"""Load elements before conditions in loops that only some work-items meet.

These are elements that all work-items read, which a processor would load once for each work-item of
a vector under a condition, and elements that all iterations read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dparray._ir.facts import IN_LAUNCH, Uniformity, accesses
from dparray._ir.instructions import CONTROL, OPS, Function, Op, constant, walk
from dparray._ir.types import BOOL, I64, Pointer, Type


def load_early(function: Function) -> None:
    """Move loads out of the conditions in loops that all work-items run together.

    The index is the same for all work-items or all iterations, and no work-item writes the array.
    Where the condition is not met, the index may be outside, so that it is replaced by 0 there.
    """
    if any(op.name == "loop" for op in walk(function.body)):
        _Mover(function).body(function.body, None)


class _Mover:
    def __init__(self, function: Function) -> None:
        facts = Uniformity(function)
        self.levels, self.joint = facts.levels, facts.joint_loops(function)
        self.written = {name for name, each in accesses(function).items() if each.writes}
        self.parts = {(op.attribute.argument, op.attribute.part): op for op in function.parameters}

    def body(self, body: list[Op], loop: Op | None) -> None:
        """Move the loads of a body's conditions, in the innermost loop around it."""
        at = 0
        while at < len(body):
            op = body[at]
            for inner in op.bodies:
                self.body(inner, op if op.name == "loop" else loop)
            is_joint = loop is not None and id(loop) in self.joint
            if op.name == "if" and is_joint and not self.is_uniform(op.operands[0]):
                assert loop is not None
                changing = {id(each) for each in (*loop.carried, *_computed(loop.bodies[0]))}
                moved = [each for inner in op.bodies for each in self.moved(inner, changing)]
                body[at:at] = moved
                at += len(moved)
            at += 1

    def is_uniform(self, op: Op) -> bool:
        return op.name == "constant" or self.levels.get(id(op)) == IN_LAUNCH

    def moved(self, body: list[Op], changing: set[int]) -> list[Op]:
        """Take the loads out of a body, up to where it may change memory.

        Args:
            body: of a condition.
            changing: the values that the loop around it computes, by identity.
        """
        moved: list[Op] = []
        for op in list(body):
            if op.name in CONTROL or (OPS[op.name].has_effect and op.name != "check"):
                break
            if op.name != "load" or op.operands[0].name != "offset":
                continue
            pointer = op.operands[0]
            array, index = pointer.operands
            is_whole = array.name == "parameter" and pointer.attribute != "bytes"
            if not is_whole or array.attribute.argument in self.written:
                continue
            before = self.computing(index, body)
            name = array.attribute.argument
            count, itemsize = (self.parts.get((name, part)) for part in ("count", "itemsize"))
            if before is None or count is None or itemsize is None or index.type != I64:
                continue
            used = {id(each) for op in before for each in op.operands} | {id(index)}
            is_fixed = used.isdisjoint(changing - {id(each) for each in before})
            if not (is_fixed or self.is_uniform(index)):
                continue
            body[:] = [each for each in body if each is not op and each not in before]
            moved += [*before, *_inside(op, count, itemsize), op]
        return moved

    def computing(self, index: Op, body: list[Op]) -> list[Op] | None:
        """Return the ops of a body that compute an index; ``None`` if they cannot be moved."""
        found: list[Op] = []
        waiting = [index]
        while waiting:
            op = waiting.pop()
            if any(op is each for each in body) and op not in found:
                if not OPS[op.name].is_cheap:
                    return None
                found.append(op)
                waiting += op.operands
        return [each for each in body if each in found]


def _computed(body: Sequence[Op]) -> Iterator[Op]:
    """Yield the values that a body computes."""
    for op in walk(body):
        yield from (op, *op.results, *op.carried)


def _inside(load: Op, count: Op, itemsize: Op) -> list[Op]:
    """Let a load read the first element where its index is outside; return the ops for that.

    An index counts the parts of complex numbers, of which an array has ``count``.
    """
    array, index = load.operands[0].operands
    assert isinstance(array.type, Pointer)
    zero = constant(0, I64)
    shift = constant((max(array.type.element.bits, 8) // 8).bit_length() - 1, I64)
    ops: list[Op] = []

    def op(name: str, kind: Type, *operands: Op) -> Op:
        ops.append(Op(name, kind, operands, place=load.place))
        return ops[-1]

    size = op("shr", I64, op("mul", I64, count, itemsize), shift)
    is_inside = op("and", BOOL, op("ge", BOOL, index, zero), op("lt", BOOL, index, size))
    chosen = op("select", I64, is_inside, index, zero)
    load.operands[0] = Op("offset", array.type, [array, chosen], place=load.place)
    load.marks |= {"early"}
    return [*ops, load.operands[0]]
