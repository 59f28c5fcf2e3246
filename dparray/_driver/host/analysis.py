"""Analyze a kernel's function: ids, dominators, loops, and which values differ in a group.

A value is *divergent* if work-items of a group may have different ones, and otherwise *uniform*. A
block is *partial* if only some work-items run it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection

from dparray._driver.host.dominators import dominators
from dparray._driver.host.reading import (
    NAME,
    Block,
    Call,
    Instruction,
    Unsupported,
    called,
    is_joint,
)

IDS = {
    "get_global_id": "g",
    "get_local_id": "l",
    "get_group_id": "w",
    "get_global_size": "gs",
    "get_local_size": "ls",
    "get_num_groups": "ws",
}
#: Without side effects and memory, so that their results may be computed again.
_PURE = frozenset(
    (
        *("add", "sub", "mul", "shl", "lshr", "ashr", "and", "or", "xor", "icmp", "fcmp", "fadd"),
        *("fsub", "fmul", "fneg", "select", "getelementptr", "trunc", "zext", "sext", "fptrunc"),
        *("fpext", "fptosi", "fptoui", "sitofp", "uitofp", "bitcast", "ptrtoint", "inttoptr"),
        *("extractvalue", "insertvalue", "extractelement", "insertelement", "shufflevector"),
        "freeze",
    )
)
_PURE_CALL = re.compile(r"@llvm\.(?:[su](?:min|max)|abs)\.")
_LEFT_OUT = ("llvm.assume", "llvm.lifetime", "llvm.experimental.noalias")
#: Work-items of a sub-group, at most.
LANES = 16


class Function:
    """A kernel's function.

    Attributes:
        blocks: its blocks, cut behind each operation of several work-items.
        parameters: names and types.
        local: the sizes of a group, ``None`` for a range without groups.
        lanes: the work-items of a sub-group.
        joint: by the block behind it, the call that several work-items make, and its result.
        defs: by name, the block and the instruction of each value.
        dom, pdom: by block, its dominators and post-dominators.
        loops: by head, the blocks of each loop.
        interleaved: by name, the element types of private arrays that are stored by elements.
        is_scheduled: whether sub-groups take different ways to functions of a sub-group.
    """

    def __init__(
        self,
        blocks: list[Block],
        parameters: list[tuple[str, str]],
        ndim: int,
        local: tuple[int, ...] | None,
    ) -> None:
        self.blocks, self.parameters, self.ndim, self.local = blocks, parameters, ndim, local
        # All sub-groups of a group are equally large, so that loops over their size are uniform.
        self.lanes = math.gcd(math.prod(local), LANES) if local else LANES
        self.joint: dict[str, tuple[Call, str | None]] = {}
        self.divergent: set[str] = set()
        self.partial: set[str] = set()
        self.interleaved: dict[str, str] = {}
        self.is_scheduled = False
        self._replace_ids()
        self._cut_joint()
        self._drop_single_phis()
        self.analyze()

    # -- preparation

    def _replace_ids(self) -> None:
        """Replace calls for ids by the names of parameters."""
        replaced: dict[str, str] = {}
        for block in self.blocks:
            kept: list[Instruction] = []
            for one in block.body:
                call = called(one)
                if call is None:
                    kept.append(one)
                elif call.name == "dparray.local":
                    place = f"getelementptr i8, ptr %dp.local, i64 {call.arguments[0]}"
                    kept.append(Instruction(one.name, "getelementptr", place, "ptr"))
                elif call.name in IDS and not call.arguments[0].isdigit():
                    kept += self._chosen_id(one, call)
                elif (value := self._number(call)) is not None:
                    assert one.name is not None
                    replaced[one.name] = value
                elif not call.name.startswith(_LEFT_OUT):
                    kept.append(one)
            block.body = kept
        self._rename(replaced)

    def _number(self, call: Call) -> str | None:
        """Return the value of an id or a size; ``None`` for other functions."""
        if call.name in IDS:
            return self._id(IDS[call.name], int(call.arguments[0]))
        items = math.prod(self.local) if self.local else 0
        return {
            "get_work_dim": str(self.ndim),
            "get_sub_group_size": str(self.lanes),
            "get_max_sub_group_size": str(self.lanes),
            "get_sub_group_local_id": "%dp.lane",
            "get_sub_group_id": "%dp.sub_group",
            "get_num_sub_groups": str(items // self.lanes),
        }.get(call.name)

    def _id(self, code: str, dimension: int) -> str:
        if dimension >= self.ndim:
            return "0" if code in "glw" else "1"
        if code == "ls" and self.local:
            return str(self.local[dimension])
        return f"%dp.{code}{dimension}"

    def _chosen_id(self, one: Instruction, call: Call) -> list[Instruction]:
        """Return the instructions that choose the id of a dimension which is not a constant."""
        code, which = IDS[call.name], call.arguments[0]
        value, instructions = self._id(code, self.ndim), []
        for dimension in range(self.ndim):
            is_it = f"{one.name}.is{dimension}".replace('"', "")
            is_last = dimension == self.ndim - 1
            name = one.name if is_last else f"{one.name}.or{dimension}".replace('"', "")
            own = self._id(code, dimension)
            instructions.append(
                Instruction(is_it, "icmp", f"icmp eq i32 {which}, {dimension}", "i1")
            )
            text = f"select i1 {is_it}, i64 {own}, i64 {value}"
            instructions.append(Instruction(name, "select", text, "i64"))
            assert name is not None
            value = name
        for each in instructions:
            each.used = NAME.findall(each.text)
        return instructions

    def _rename(self, replaced: dict[str, str]) -> None:
        for one in [one for block in self.blocks for one in block.body]:
            if one.phi:
                one.phi = [(replaced.get(value, value), block) for value, block in one.phi]
                one.used = [value for value, _ in one.phi if value.startswith("%")]
            elif any(each in replaced for each in one.used):
                one.text = NAME.sub(lambda found: replaced.get(found[0], found[0]), one.text)
                used = [replaced.get(each, each) for each in one.used]
                one.used = [each for each in used if each.startswith("%")]

    def _cut_joint(self) -> None:
        """Begin a block behind each operation of several work-items."""
        parts: list[Block] = []
        last_part: dict[str, str] = {}
        for block in self.blocks:
            current = Block(block.name, [])
            parts.append(current)
            for one in block.body:
                call = called(one)
                if call is None or not is_joint(call.name):
                    current.body.append(one)
                    continue
                after = f"{block.name}.after{len(parts)}"
                self.joint[after] = call, one.name
                used = [each for each in call.arguments if each.startswith("%")]
                current.body.append(Instruction(None, "joint", one.text, "void", used))
                current.to = [after]
                current = Block(after, [])
                parts.append(current)
            current.to = block.to
            last_part[block.name] = current.name
        self.blocks = parts
        for one in [one for block in parts for one in block.body]:
            one.phi = [(value, last_part[block]) for value, block in one.phi]

    def _drop_single_phis(self) -> None:
        replaced: dict[str, str] = {}
        for block in self.blocks:
            for one in block.body:
                if one.opcode == "phi" and len(one.phi) == 1:
                    assert one.name is not None
                    replaced[one.name] = one.phi[0][0]
            block.body = [one for one in block.body if one.name not in replaced]
        for name in replaced:
            while replaced[name] in replaced:
                replaced[name] = replaced[replaced[name]]
        self._rename(replaced)

    # -- the graph

    def analyze(self) -> None:
        """Find definitions, dominators and loops."""
        names = [block.name for block in self.blocks]
        self.by = {block.name: block for block in self.blocks}
        self.predecessors: dict[str, list[str]] = defaultdict(list)
        for block in self.blocks:
            for each in dict.fromkeys(block.to):
                self.predecessors[each].append(block.name)
        self.defs: dict[str, tuple[str, Instruction]] = {
            one.name: (block.name, one) for block in self.blocks for one in block.body if one.name
        }
        for after, (call, name) in self.joint.items():
            if name:
                self.defs[name] = after, Instruction(name, "joint", "", call.kind)
        self.dom = dominators({names[0]}, lambda name: self.predecessors[name], names)
        ends = {block.name for block in self.blocks if not block.to}
        self.pdom = dominators(ends, lambda name: self.by[name].to, names[::-1])
        self.loops: dict[str, set[str]] = {}
        for block in self.blocks:
            for head in block.to:
                if head in self.dom[block.name]:
                    self.loops.setdefault(head, set()).update(self._loop(head, block.name))

    def _loop(self, head: str, latch: str) -> set[str]:
        inside, coming = {head}, [latch]
        while coming:
            name = coming.pop()
            if name not in inside:
                inside.add(name)
                coming += self.predecessors[name]
        return inside

    def nearest(self, names: Collection[str]) -> str | None:
        """Return the first of some post-dominators of a block, which all others post-dominate."""
        for name in names:
            if all(name == each or each in self.pdom[name] for each in names):
                return name
        return None

    def can_end(self, start: str, stops: Collection[str] = ()) -> bool:
        """Return whether the function may return from a block before it reaches others."""
        seen: set[str] = set()
        coming = [start]
        while coming:
            name = coming.pop()
            if name in seen:
                continue
            seen.add(name)
            if not self.by[name].to:
                return True
            coming += [each for each in self.by[name].to if each not in stops]
        return False

    def may_wait(self) -> bool:
        """Return whether a loop reads by an atomic operation, and may so wait for other work."""
        inside = set[str]().union(*self.loops.values())
        used = {each for block in self.blocks for one in block.body for each in one.used}
        return any(
            one.text.startswith(("load atomic", "cmpxchg"))
            or (one.opcode == "atomicrmw" and one.name in used)
            for name in inside
            for one in self.by[name].body
        )

    # -- divergence

    def diverge(self) -> None:
        """Find the divergent values and the partial blocks.

        Raises:
            Unsupported: some work-items reach an operation of all of them, and others do not.
        """
        vary = range(self.ndim) if self.local else [self.ndim - 1]
        self.divergent = {f"%dp.{code}{dimension}" for dimension in vary for code in "gl"}
        self.divergent |= {"%dp.lane", "%dp.sub_group", "%dp.idx"}
        self.partial = set()
        joins: set[str] = set()
        handled: set[str] = set()
        changed = True
        while changed:
            changed = False
            for block in self.blocks:
                differing = {
                    one.name
                    for one in block.body
                    if one.name and (self._diverges(one) or (one.phi and block.name in joins))
                }
                if block.name in self.joint:
                    call, name = self.joint[block.name]
                    if name and not _is_uniform(call):
                        differing.add(name)
                if not differing <= self.divergent:
                    self.divergent |= differing
                    changed = True
                is_choice = len(block.to) > 1 and block.name not in handled
                if is_choice and not self.divergent.isdisjoint(block.body[-1].used):
                    handled.add(block.name)
                    changed = True
                    seen, nearest = self.between(block)
                    self.partial |= seen
                    joins |= seen | ({nearest} if nearest else set())

        for name in handled:
            seen, _ = self.between(self.by[name])
            reached = [is_of_sub_group(self.joint[each][0]) for each in seen & self.joint.keys()]
            is_refused = not all(reached)
            if is_refused and self._is_of_ids(self.by[name].body[-1]):
                raise Unsupported(
                    "barriers and group functions that, as far as it can tell, "
                    "only some work-items reach"
                )
            self.is_scheduled |= any(reached)
        if self.is_scheduled:
            self.partial = set(self.by)

    def _is_of_ids(self, one: Instruction) -> bool:
        """Return whether an operand depends on nothing but ids and parameters.

        Branches that depend on memory are taken together if there is a barrier in them.
        """
        waiting, seen = list(one.used), set[str]()
        while waiting:
            value = waiting.pop()
            if value in self.defs and value not in seen:
                seen.add(value)
                if self.defs[value][1].opcode not in _PURE:
                    return False
                waiting += self.defs[value][1].used
        return True

    def _diverges(self, one: Instruction) -> bool:
        if not self.divergent.isdisjoint(one.used):
            return True
        if one.opcode == "call":
            return "@llvm." not in one.text or "@llvm.masked" in one.text
        return one.opcode in ("load", "alloca", "atomicrmw", "cmpxchg")

    def between(self, block: Block) -> tuple[set[str], str | None]:
        """Return the blocks from a divergent branch to where all work-items meet, and that one."""
        nearest = self.nearest(self.pdom[block.name] - {block.name})
        seen: set[str] = set()
        coming = list(block.to)
        while coming:
            name = coming.pop()
            if name not in seen and name != nearest:
                seen.add(name)
                coming += self.by[name].to
        return seen, nearest

    # -- values that are computed again

    def cheap_values(self) -> tuple[dict[str, Instruction], dict[str, set[str]]]:
        """Return the values that are computed again where they are used, and their bases.

        They depend on parameters, ids and uniform values alone. That gives the same value: a
        definition dominates its uses, so an operand cannot have been defined again between them.
        The bases are the uniform values that are loaded for it.
        """
        inputs = {name for name, _ in self.parameters}
        every = [one for block in self.blocks for one in block.body if one.name]
        inputs |= {one.name for one in every if one.name and one.opcode == "alloca"}
        pure = {one.name: one for one in every if one.name and is_pure(one)}
        uniform = {
            name
            for name, (where, _) in self.defs.items()
            if name not in self.divergent and where not in self.partial and name not in pure
        }
        cheap: dict[str, Instruction] = {}
        changed = True
        while changed:
            changed = False
            for name, one in pure.items():
                if name not in cheap and all(
                    each in inputs or each in cheap or each in uniform or each.startswith("%dp.")
                    for each in one.used
                ):
                    cheap[name] = one
                    changed = True
        bases: dict[str, set[str]] = {}
        for name, one in cheap.items():  # in the order in which they became cheap
            bases[name] = set()
            for each in one.used:
                bases[name] |= bases[each] if each in cheap else {each} & uniform
        return cheap, bases


def is_pure(one: Instruction) -> bool:
    """Return whether an instruction may be computed again, or elsewhere."""
    return one.opcode in _PURE or (one.opcode == "call" and bool(_PURE_CALL.search(one.text)))


def is_of_sub_group(call: Call) -> bool:
    """Return whether an operation of several work-items concerns a sub-group."""
    return call.name == "sub_group_shuffle" or call.arguments[0] == "3"


def _is_uniform(call: Call) -> bool:
    """Return whether a group function has one result for the whole group."""
    if call.name == "__spirv_ControlBarrier" or call.arguments[0] != "2":
        return False
    return call.name == "__spirv_GroupBroadcast" or (
        call.name.startswith("__spirv_Group") and call.arguments[1] == "0"
    )


def checked_calls(function: Function) -> None:
    """Raise for calls that the driver does not know.

    Raises:
        Unsupported: there is one.
    """
    for one in [one for block in function.blocks for one in block.body]:
        call = called(one)
        if call is not None and "@_Z" in one.text:
            raise Unsupported(f"it calls {call.name}")
