"""Divide a kernel's function into regions, each of which becomes a loop over work-items.

The function is cut at barriers and group functions, and at the heads and exits of loops that all
work-items run together. Of a loop that work-items leave at different times, each iteration is a
region of the work-items that are still in it. Values that cross regions are stored for each
work-item, or once if they are uniform. Cheap values are computed again instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from dparray._driver.host.analysis import Function, is_of_sub_group
from dparray._driver.host.reading import Block, Instruction, Unsupported, size_of

#: Work-items of a block of a range without groups.
WIDTH = 32
#: Work-items of a block whose loops end at different times. Each step computes the whole block
#: until the last work-item has left the loop, so a block is one vector, which fits into registers.
NARROW_WIDTH = 16
#: Elements of a private array that is cleared one by one.
_MAX_CLEARED = 64
_ALIGNMENT = re.compile(r", align (\d+)")
_SCALAR_ARRAY = re.compile(r"\[(\d+) x (half|float|double|i8|i16|i32|i64)\]")


def spelled(name: str) -> str:
    """Return a value's name as a part of other names."""
    return re.sub(r"[^\w.]", "_", name[1:])


def memory_type(kind: str) -> str:
    """Return the type of a value in an array of work-items."""
    return "i8" if kind == "i1" else kind


def ids(ndim: int) -> list[tuple[str, str]]:
    """Return the types and names of the parameters for ids, sizes and memory of a group."""
    parameters = [
        ("i64", f"%dp.{code}{dimension}")
        for dimension in range(ndim)
        for code in ("g", "l", "w", "gs", "ls", "ws")
    ]
    parameters += [("i64", "%dp.idx"), ("i32", "%dp.lane"), ("i32", "%dp.sub_group")]
    return [*parameters, ("ptr", "%dp.local"), ("ptr", "%dp.work")]


class Plan:
    """The regions of a function.

    Attributes:
        function: the function.
        count: work-items of a block, at most.
        is_narrow: whether a block is one vector, since work-items leave loops at different times.
        slots: by name, the type of each value that crosses blocks, and whether it is uniform.
        allocas: private memory; the type of one is its ``kind``.
        interleaved: by name, the element types of private arrays that are stored by elements.
        heads: the blocks with which regions begin.
        choices: the blocks behind which all work-items go to one of two regions.
        masked: by the head of a loop that work-items leave at different times, where they meet.
        live: by block, the slots that are read from there on.
        written: by block, the slots that it defines.
    """

    def __init__(self, function: Function, allows_masks: bool = True) -> None:
        self.function = function
        self.is_range = function.local is None
        self.interleaved = function.interleaved  # Its accesses are changed only once.
        function.diverge()
        self.masked: dict[str, str] = {}
        self._together: list[str] = []
        self.heads = self._heads(allows_masks)
        self.is_narrow = self.is_range and len(self._together) < len(function.loops)
        width = NARROW_WIDTH if self.is_narrow else WIDTH
        self.count = math.prod(function.local) if function.local else width
        every = [one for block in function.blocks for one in block.body]
        self.allocas = {one.name: one for one in every if one.name and one.opcode == "alloca"}
        for one in self.allocas.values():
            one.kind = _ALIGNMENT.sub("", one.text.removeprefix("alloca ")).split(", i32")[0]
        self._interleave()
        for name, one in self.allocas.items():
            if name not in self.interleaved and (found := _ALIGNMENT.search(one.text)):
                # LLVM's passes may have aligned it for vectors: each work-item's is aligned so.
                unit = int(found[1])
                one.kind = f"[{-(-size_of(one.kind) // unit) * unit} x i8]"
        self.cheap, self._bases = function.cheap_values()
        self.slots = self._slots()
        self.choices = self._cut_choices()
        self.written: dict[str, set[str]] = {}
        self.live: dict[str, set[str]] = {}
        self._find_live()

    @property
    def has_places(self) -> bool:
        """Whether each work-item remembers which region it wants."""
        return bool(self.masked) or self.function.is_scheduled

    @property
    def has_loops(self) -> bool:
        """Whether regions end at loops."""
        return bool(self._together or self.masked)

    # -- private arrays

    def _interleave(self) -> None:
        """Store private arrays by elements, so that work-items are neighbors in memory."""
        users: dict[str, list[Instruction]] = {}
        for block in self.function.blocks:
            for one in block.body:
                for each in dict.fromkeys(one.used):
                    users.setdefault(each, []).append(one)
        for name, one in self.allocas.items():
            match = _SCALAR_ARRAY.fullmatch(one.kind)
            if not match or name in self.interleaved:
                continue
            changes = self._interleaved_accesses(name, one.kind, users)
            if changes is None:
                continue
            self.interleaved[name] = match[2]
            zeros = []
            for user, text in changes:
                if text is None:
                    zeros.append(user)
                else:
                    user.text = text
            for block in self.function.blocks:
                for user in [each for each in block.body if each in zeros]:
                    position = block.body.index(user)
                    clearing = self._cleared(name, int(match[1]), match[2], block, position)
                    block.body[position : position + 1] = clearing

    def _interleaved_accesses(
        self, name: str, whole: str, users: dict[str, list[Instruction]]
    ) -> list[tuple[Instruction, str | None]] | None:
        """Return new texts for the uses of a private array; ``None`` for one that clears it.

        The result is ``None`` if there are other uses of the array.
        """
        match = _SCALAR_ARRAY.fullmatch(whole)
        assert match is not None
        count, kind = int(match[1]), match[2]
        zeros = f"i8 0, i64 {count * size_of(kind)},"
        changes: list[tuple[Instruction, str | None]] = []
        pointers = [name]
        for pointer in pointers:  # Addresses may be computed from others.
            for user in users.get(pointer, ()):
                if _is_access(user, pointer, kind):
                    changes.append((user, _ALIGNMENT.sub("", user.text)))
                    continue
                if "@llvm.memset.p0.i64(" in user.text:
                    if pointer != name or zeros not in user.text or count > _MAX_CLEARED:
                        return None
                    changes.append((user, None))
                    continue
                element = _element(user, pointer, whole, kind)
                if element is None or user.name is None:
                    return None
                text = f"getelementptr [{self.count} x {kind}], ptr {pointer}, {element}"
                changes.append((user, text))
                pointers.append(user.name)
        return changes

    def _cleared(
        self, name: str, count: int, kind: str, block: Block, number: int
    ) -> list[Instruction]:
        """Return the instructions that clear an interleaved array."""
        instructions = []
        zero = "zeroinitializer" if kind in ("half", "float", "double") else "0"
        for at in range(count):
            place = f"%z{number}.{at}.{spelled(name)}"
            text = f"getelementptr [{self.count} x {kind}], ptr {name}, i64 {at}"
            address = Instruction(place, "getelementptr", text, "ptr", [name])
            self.function.defs[place] = block.name, address
            store = f"store {kind} {zero}, ptr {place}"
            instructions += [address, Instruction(None, "store", store, "void", [place])]
        return instructions

    # -- values that cross blocks

    def _slots(self) -> dict[str, tuple[str, bool]]:
        function = self.function
        arguments = {name for name, _ in function.parameters}
        uses: dict[str, set[str]] = {}

        def use(value: str, where: str) -> None:
            is_again = value in self.cheap and function.defs[value][0] != where
            for each in self._bases[value] if is_again else (value,):
                uses.setdefault(each, set()).add(where)

        for block in function.blocks:
            for one in block.body:
                for value, where in one.phi or [(value, block.name) for value in one.used]:
                    use(value, where)
        return {
            name: (one.kind, name not in function.divergent and where not in function.partial)
            for name, (where, one) in function.defs.items()
            if name not in self.cheap and name not in arguments and name not in self.allocas
            if one.opcode in ("phi", "joint") or uses.get(name, set()) - {where}
        }

    def needs(self, value: str, where: str) -> set[str]:
        """Return the slots that a use of a value in a block reads."""
        if value in self.slots:
            return {value}
        if value in self.cheap and self.function.defs[value][0] != where:
            return {each for each in self._bases[value] if each in self.slots}
        return set()

    def _find_live(self) -> None:
        function = self.function
        used: dict[str, set[str]] = {}
        for block in function.blocks:
            read, defined = set[str](), set[str]()
            for one in block.body:
                if one.phi:
                    assert one.name is not None
                    read.add(one.name)
                    continue
                for value in one.used:
                    read |= self.needs(value, block.name) - defined
                if one.name in self.slots:
                    assert one.name is not None
                    defined.add(one.name)
            used[block.name], self.written[block.name] = read, defined
        phis = {block.name: _phis(block) for block in function.blocks}
        self.live = {name: set(found) for name, found in used.items()}
        changed = True
        while changed:
            changed = False
            for block in reversed(function.blocks):
                name = block.name
                out: set[str] = set()
                for each in block.to:
                    out |= self.live[each] - phis[each]
                    if each in function.joint:
                        out -= {function.joint[each][1] or ""}
                    for one in function.by[each].body:
                        for value, where in one.phi:
                            if where == name:
                                out |= self.needs(value, where)
                new = used[name] | (out - self.written[name] - phis[name]) | phis[name]
                if new != self.live[name]:
                    self.live[name], changed = new, True

    # -- regions

    def _heads(self, allows_masks: bool) -> list[str]:
        function = self.function
        # The scheduler takes the first region that work-items want, and they meet at barriers last.
        joint = sorted(
            function.joint, key=lambda name: not is_of_sub_group(function.joint[name][0])
        )
        heads = [function.blocks[0].name, *joint]
        for head, inside in function.loops.items():
            exits = [name for name in inside if not inside.issuperset(function.by[name].to)]
            is_uniform = head not in function.partial and all(
                function.divergent.isdisjoint(function.by[name].body[-1].used) for name in exits
            )
            if is_uniform and exits:
                self._together.append(head)
                heads.append(head)
                ends = [to for name in exits for to in function.by[name].to if to not in inside]
                if not function.partial.isdisjoint(ends):
                    raise Unsupported(
                        "a loop whose end, as far as it can tell, only some work-items reach"
                    )
                heads += ends
        for head, inside in function.loops.items() if allows_masks else ():
            if head in self._together or not inside.isdisjoint(function.joint):
                continue
            if self._is_nested(head, inside):
                continue
            meeting = function.nearest(function.pdom[head] - function.partial - inside)
            if meeting is not None:
                self.masked[head] = meeting
                heads += [head, meeting]
                # A region ends where all work-items decide to begin the loop.
                heads += [
                    name
                    for name in function.predecessors[head]
                    if name not in inside and name not in function.partial
                    if function.by[name].to == [head]
                ]
        return list(dict.fromkeys(heads))

    def _cut_choices(self) -> set[str]:
        """Cut at branches that all work-items take together if a region begins on one of the ways.

        Such a branch is decided once, behind the loop over work-items, which LLVM can then
        vectorize.
        """
        function, choices, size = self.function, set[str](), -1
        blocks = [block for block in function.blocks if len(set(block.to)) == 2]
        while len(choices) != size:
            size = len(choices)
            for block in blocks:
                if block.name in choices or not function.partial.isdisjoint(
                    [block.name, *block.to]
                ):
                    continue
                between, meeting = function.between(block)
                is_uniform = function.divergent.isdisjoint(block.body[-1].used)
                if is_uniform and not between.isdisjoint(self.heads):
                    choices.add(block.name)
                    more = [*block.to, *([] if meeting is None else [meeting])]
                    self.heads += [each for each in dict.fromkeys(more) if each not in self.heads]
        return choices

    def _is_nested(self, head: str, inside: Collection[str]) -> bool:
        others = [each for each in self.function.loops if each != head]
        return any(head in self.function.loops[each] or each in inside for each in others)


def _is_access(user: Instruction, pointer: str, kind: str) -> bool:
    """Return whether an instruction loads or stores an element at an address."""
    place = rf"ptr {re.escape(pointer)}(?:,|$)"
    if user.opcode == "load":
        return re.match(rf"load {kind}, {place}", user.text) is not None
    return user.opcode == "store" and bool(re.match(rf"store {kind} [^,]+, {place}", user.text))


def _element(user: Instruction, pointer: str, whole: str, kind: str) -> str | None:
    """Return how many elements behind another an address is; ``None`` if that is not known."""
    address = re.fullmatch(
        rf"getelementptr (?:inbounds |nuw |nusw )*(.+?), ptr {re.escape(pointer)}"
        r"((?:, i(?:32|64) \S+)+)",
        user.text,
    )
    if not address:
        return None
    index = address[2].removeprefix(", ").split(", ")
    if address[1] == kind and len(index) == 1:
        return index[0]
    if address[1] == whole and len(index) == 2 and index[0].endswith(" 0"):
        return index[1]
    offset = re.fullmatch(r"i64 (-?\d+)", index[0])
    if address[1] == "i8" and offset and int(offset[1]) % size_of(kind) == 0:
        return f"i64 {int(offset[1]) // size_of(kind)}"
    return None


def _phis(block: Block) -> set[str]:
    return {one.name for one in block.body if one.phi and one.name}
