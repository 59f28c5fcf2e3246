"""Write the function of a region: what one work-item does from a region's head to the next.

It returns the number of the region that follows, -1 at the end of the kernel. Values that cross
blocks are in local variables, which LLVM turns back into values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dparray._driver.host.accesses import may_be_moved
from dparray._driver.host.analysis import Function
from dparray._driver.host.plan import Plan, ids, memory_type, spelled
from dparray._driver.host.reading import (
    LABEL,
    NAME,
    Block,
    Call,
    Instruction,
    Unsupported,
    is_ordered,
    plain_name,
)

#: Marks the accesses of work-items as unordered, so that LLVM needs no tests whether they overlap.
ACCESS = ", !llvm.access.group !900000"
#: A call of a function that has no variant for vectors: the C library's, and copies of memory.
_SCALAR_CALL = re.compile(r"\bcall [^@]*@(?!\"?(?:llvm\.(?!mem)|dparray\.|_Z))")
_AGGREGATES = ("<", "{", "[")


def access_of(function: Function, blocks: Sequence[Block]) -> str:
    """Return the mark for the accesses of some blocks, empty if these must keep their order."""
    is_fixed = any(is_ordered(one) for block in blocks for one in block.body)
    return "" if is_fixed or may_be_moved(function, blocks) else ACCESS


def is_scalar(blocks: Sequence[Block]) -> bool:
    """Return whether LLVM cannot vectorize work-items of some blocks.

    It prints a remark on standard error if such a loop says how wide vectors are.
    """
    return any(
        is_ordered(one) or one.kind.startswith(_AGGREGATES) or _SCALAR_CALL.search(one.text)
        for block in blocks
        for one in block.body
    )


def parameters_of(plan: Plan) -> list[tuple[str, str]]:
    """Return the types and names of a region's parameters."""
    pairs = [(kind, name) for name, kind in plan.function.parameters] + ids(plan.function.ndim)
    for name, (kind, is_uniform) in plan.slots.items():
        own = spelled(name)
        pairs += [(kind, f"%uv.{own}"), ("ptr", f"%o.{own}")] if is_uniform else []
        pairs += [] if is_uniform else [("ptr", f"%c.{own}")]
    pairs += [("ptr", f"%pv.{spelled(name)}") for name in plan.allocas]
    for _, result in plan.function.joint.values():
        if result:
            pairs += [("ptr", f"%in.{spelled(result)}"), ("ptr", f"%ln.{spelled(result)}")]
    return [*pairs, ("ptr", "%dp.pc")] if plan.has_places else pairs


class Region:
    """A region's function.

    Attributes:
        text: the definition.
        exits: the heads of the regions that may follow.
        written: the slots that it may change.
        access: the mark of its accesses, empty if some must keep their order.
        is_scalar: whether LLVM cannot vectorize it.
    """

    def __init__(self, plan: Plan, head: str) -> None:
        self._plan, self._head = plan, head
        self._number = plan.heads.index(head)
        self._is_masked = head in plan.masked or plan.function.is_scheduled
        self._edges: list[list[str]] = []
        self.exits: set[str] = set()
        self._names = self._blocks()
        blocks = [plan.function.by[name] for name in self._names]
        self.access = access_of(plan.function, blocks)
        self.written = self._changed()
        live = plan.live[head] & set(plan.slots)
        self.is_scalar = is_scalar(blocks) or any(
            plan.slots[name][0].startswith(_AGGREGATES) for name in live | self.written
        )
        self._kept, self._lost = live, set[str]()
        if self._is_masked:
            if any(plan.slots[name][1] for name in self.written):
                raise Unsupported("a uniform value in a loop that work-items leave apart")
            ends = plan.heads if plan.function.is_scheduled else [plan.masked[head]]
            after = set[str]().union(*(plan.live[end] for end in ends))
            self._kept = live | after & self.written
            self._lost = (live - after) & self.written
        self.text = self._text()

    def _blocks(self) -> list[str]:
        """Return the blocks of the region in order, the head first."""
        by, names, coming = self._plan.function.by, set[str](), [self._head]
        while coming:
            name = coming.pop()
            if name not in names:
                names.add(name)
                coming += [each for each in by[name].to if each not in self._plan.heads]
        rest = [each.name for each in self._plan.function.blocks if each.name in names]
        return [self._head, *(name for name in rest if name != self._head)]

    def _changed(self) -> set[str]:
        changed: set[str] = set()
        for name in self._names:
            changed |= self._plan.written[name]
            for each in self._plan.function.by[name].to:
                body = self._plan.function.by[each].body
                changed |= {one.name for one in body if one.phi and one.name}
        return changed & set(self._plan.slots)

    def _text(self) -> str:
        plan = self._plan
        parameters = ", ".join(f"{kind} {name}" for kind, name in parameters_of(plan))
        lines = [f"define internal i32 @dp.region{self._number}({parameters}) alwaysinline {{"]
        lines += ["dp.start:", *self._start()]
        for position, name in enumerate(self._names):
            lines += self._block(position, name)
        for edge in self._edges:
            lines += edge
        if self._is_masked:
            lines += ["dp.out:", *self._stored(sorted(self._kept & self.written), "dp.out")]
            lines += ["  %dp.r = load i32, ptr %dp.next", "  ret i32 %dp.r"]
        return "\n".join([*lines, "}"])

    def _start(self) -> list[str]:
        plan = self._plan
        touched = set(plan.live[self._head]) | self.written
        for name in self._names:
            touched |= plan.live[name]
            for each in plan.function.by[name].to:
                touched |= plan.live[each]
        lines = [
            f"  %s.{spelled(name)} = alloca {plan.slots[name][0]}"
            for name in sorted(touched & set(plan.slots))
        ]
        for name, one in plan.allocas.items():
            kind = plan.interleaved.get(name, one.kind)
            lines.append(f"  {name} = getelementptr {kind}, ptr %pv.{spelled(name)}, i64 %dp.idx")
        for name in sorted(self._kept):
            (kind, is_uniform), own = plan.slots[name], spelled(name)
            if is_uniform:
                lines.append(f"  store {kind} %uv.{own}, ptr %s.{own}")
                continue
            stored, value = memory_type(kind), f"%cv.{own}"
            lines.append(f"  %ci.{own} = getelementptr {stored}, ptr %c.{own}, i64 %dp.idx")
            lines.append(f"  {value} = load {stored}, ptr %ci.{own}")
            if stored != kind:
                lines.append(f"  %ct.{own} = trunc {stored} {value} to {kind}")
                value = f"%ct.{own}"
            lines.append(f"  store {kind} {value}, ptr %s.{own}")
        if not self._is_masked:
            return [*lines, f'  br label %"{self._head}"']
        return [
            *lines,
            "  %dp.next = alloca i32",
            "  %dp.pp = getelementptr i32, ptr %dp.pc, i64 %dp.idx",
            "  %dp.was = load i32, ptr %dp.pp",
            "  store i32 %dp.was, ptr %dp.next",
            f"  %dp.in = icmp eq i32 %dp.was, {self._number}",
            f'  br i1 %dp.in, label %"{self._head}", label %dp.absent',
            "dp.absent:",
            *self._dropped(self._lost),
            "  br label %dp.out",
        ]

    # -- values

    def _resolved(self, value: str, values: dict[str, str], into: list[str], suffix: str) -> str:
        """Return the name of a value in a block: loaded, computed again, or as it is."""
        if value in values:
            return values[value]
        new = f"%{spelled(value)}.{suffix}"
        if value in self._plan.slots:
            into.append(f"  {new} = load {self._plan.slots[value][0]}, ptr %s.{spelled(value)}")
        elif value in self._plan.cheap:
            one = self._plan.cheap[value]
            names = {each: self._resolved(each, values, into, suffix) for each in one.used}
            text = NAME.sub(lambda found: names.get(found[0], found[0]), one.text)
            into.append(f"  {new} = {text}")
        else:
            return value
        values[value] = new
        return new

    def _stored(self, names: list[str], label: str) -> list[str]:
        """Return the instructions that store slots for later regions."""
        lines = []
        for at, name in enumerate(names):
            (kind, is_uniform), own = self._plan.slots[name], spelled(name)
            value = f"%{label}.w{at}"
            lines.append(f"  {value} = load {kind}, ptr %s.{own}")
            if is_uniform:
                lines.append(f"  store {kind} {value}, ptr %o.{own}")
                continue
            stored = memory_type(kind)
            if stored != kind:
                lines.append(f"  %{label}.z{at} = zext {kind} {value} to {stored}")
                value = f"%{label}.z{at}"
            lines.append(f"  %{label}.p{at} = getelementptr {stored}, ptr %c.{own}, i64 %dp.idx")
            lines.append(f"  store {stored} {value}, ptr %{label}.p{at}")
        return lines

    def _dropped(self, names: set[str]) -> list[str]:
        """Return the instructions that leave slots without a value, so that none is blended in."""
        return [
            f"  store {self._plan.slots[name][0]} poison, ptr %s.{spelled(name)}"
            for name in sorted(names)
        ]

    def _leaving(self, to: str, label: str) -> list[str]:
        """Return the instructions that end the region before another one."""
        self.exits.add(to)
        number = self._plan.heads.index(to)
        if self._is_masked:
            dropped = self._dropped(self._lost - self._plan.live[to])
            return [*dropped, f"  store i32 {number}, ptr %dp.next", "  br label %dp.out"]
        live = self._plan.live[to] & self.written
        return [*self._stored(sorted(live), label), f"  ret i32 {number}"]

    def _choice(self, text: str, source: str, values: dict[str, str], label: str) -> list[str]:
        """Return the end of the region at a branch that all work-items take together.

        The values of both ways are stored, so that the loop over work-items has no branch.
        """
        condition, names = text.split(",")[0].split()[2], self._plan.function.by[source].to
        lines, stores, live = list[str](), list[str](), set[str]()
        for at, to in enumerate(names):
            self.exits.add(to)
            live |= self._plan.live[to]
            for one, value in self._incoming(source, to, values, lines, f"{label}.{at}"):
                own, last = spelled(one.name or ""), f"%{label}.v{len(lines)}"
                if one.name in self._plan.live[names[1 - at]]:
                    ways = [f"{one.kind} {value}", f"{one.kind} %{label}.o.{own}"][:: 1 - 2 * at]
                    lines.append(f"  %{label}.o.{own} = load {one.kind}, ptr %s.{own}")
                    lines.append(f"  {last} = select i1 {condition}, {', '.join(ways)}")
                    value = last
                stores.append(f"  store {one.kind} {value}, ptr %s.{own}")
        numbers = ", ".join(f"i32 {self._plan.heads.index(to)}" for to in names)
        return [
            *lines,
            *stores,
            *self._stored(sorted(live & self.written), label),
            f"  %{label}.r = select i1 {condition}, {numbers}",
            f"  ret i32 %{label}.r",
        ]

    def _incoming(
        self, source: str, to: str, values: dict[str, str], into: list[str], suffix: str
    ) -> list[tuple[Instruction, str]]:
        """Return the phis of a block, and their values if it follows another block."""
        phis, values = [], dict(values)
        for one in self._plan.function.by[to].body:
            if one.phi:
                value = next(value for value, block in one.phi if block == source)
                if value.startswith("%"):
                    value = self._resolved(value, values, into, suffix)
                phis.append((one, value))
        return phis

    def _edge(self, source: str, to: str, values: dict[str, str]) -> str:
        """Return the label for an edge, with the stores of phis and the end of the region."""
        has_phis = any(one.phi for one in self._plan.function.by[to].body)
        is_exit = to in self._plan.heads
        if not has_phis and not is_exit:
            return f'%"{to}"'
        label = f"dp.edge{len(self._edges)}.{self._number}"
        lines = [f"{label}:"]
        incoming = self._incoming(source, to, values, lines, label)
        stores = [
            f"  store {one.kind} {value}, ptr %s.{spelled(one.name or '')}"
            for one, value in incoming
        ]
        lines += stores  # after all loads, since phis may exchange values
        lines += self._leaving(to, label) if is_exit else [f'  br label %"{to}"']
        self._edges.append(lines)
        return f"%{label}"

    # -- blocks

    def _block(self, position: int, name: str) -> list[str]:
        block = self._plan.function.by[name]
        body = [one for one in block.body if one.name not in self._plan.allocas]
        own = {one.name for one in body if one.name}
        values: dict[str, str] = {}
        loads, rest = [f'"{name}":'], list[str]()
        for one in body:
            if one.phi:
                assert one.name is not None
                loads.append(f"  {one.name} = load {one.kind}, ptr %s.{spelled(one.name)}")
                values[one.name] = one.name
        for one in body:
            if one.phi:
                continue
            for value in one.used:
                if value not in values and value not in own:
                    self._resolved(value, values, loads, f"u{position}")
            text = one.text
            if any(values.get(each, each) != each for each in one.used):
                text = NAME.sub(lambda found: values.get(found[0], found[0]), text)
            if one.name:
                values[one.name] = one.name
            rest += self._instruction(one, text, name, values, position)
        return loads + rest

    def _instruction(
        self, one: Instruction, text: str, block: str, values: dict[str, str], position: int
    ) -> list[str]:
        if block in self._plan.choices and one.opcode == "br":
            return self._choice(text, block, values, f"dp.choice{position}")
        if one.opcode == "br":

            def label(found: re.Match[str]) -> str:
                return f"label {self._edge(block, plain_name(found[1]), values)}"

            return [f"  {LABEL.sub(label, text)}"]
        if one.opcode == "joint":
            (to,) = self._plan.function.by[block].to
            call, name = self._plan.function.joint[to]
            arguments = [values.get(each, each) for each in call.arguments]
            lines = self._passed(call, arguments, name) if name else []
            return [*lines, *self._leaving(to, f"dp.joint{position}")]
        if one.opcode == "ret":
            if not self._is_masked:
                return ["  ret i32 -1"]
            if not self._plan.function.is_scheduled:
                raise Unsupported("a return from a loop that work-items leave apart")
            return [f"  store i32 {len(self._plan.heads)}, ptr %dp.next", "  br label %dp.out"]
        lines = [f"  {one.name} = {text}" if one.name else f"  {text}"]
        if one.name in self._plan.slots:
            assert one.name is not None
            lines.append(f"  store {one.kind} {one.name}, ptr %s.{spelled(one.name)}")
        return lines

    def _passed(self, call: Call, arguments: list[str], name: str) -> list[str]:
        """Return the stores of a work-item's arguments of a group function."""
        own = spelled(name)
        is_shuffle = call.name == "sub_group_shuffle"
        is_broadcast = call.name == "__spirv_GroupBroadcast"
        value = arguments[0] if is_shuffle else arguments[1] if is_broadcast else arguments[2]
        lines = [
            f"  %in.p.{own} = getelementptr {call.kind}, ptr %in.{own}, i64 %dp.idx",
            f"  store {call.kind} {value}, ptr %in.p.{own}",
        ]
        if not (is_shuffle or is_broadcast):
            return lines
        position = 1 if is_shuffle else 2
        lane, kind = arguments[position], call.types[position]
        if kind.startswith("<"):
            lines += self._linear(lane, kind, own)
            lane = f"%ln.l.{own}"
        elif kind != "i64":
            lines.append(f"  %ln.l.{own} = zext {kind} {lane} to i64")
            lane = f"%ln.l.{own}"
        return [
            *lines,
            f"  %ln.p.{own} = getelementptr i64, ptr %ln.{own}, i64 %dp.idx",
            f"  store i64 {lane}, ptr %ln.p.{own}",
        ]

    def _linear(self, lane: str, kind: str, own: str) -> list[str]:
        """Return the instructions for the number of a work-item from its id in several dims."""
        local = self._plan.function.local
        assert local is not None
        lines, linear = [], "0"
        for dimension, size in enumerate(local):
            is_last = dimension == len(local) - 1
            total = f"%ln.l.{own}" if is_last else f"%ln.a{dimension}.{own}"
            lines += [
                f"  %ln.e{dimension}.{own} = extractelement {kind} {lane}, i32 {dimension}",
                f"  %ln.m{dimension}.{own} = mul i64 {linear}, {size}",
                f"  {total} = add i64 %ln.m{dimension}.{own}, %ln.e{dimension}.{own}",
            ]
            linear = total
        return lines
