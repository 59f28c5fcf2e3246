"""Write the loops over work-items that run a kernel, marked for vectorization."""

from __future__ import annotations

import math

from dparray._driver.host.analysis import Function, checked_calls
from dparray._driver.host.frame import ALIGNMENT, MARKS, Frame
from dparray._driver.host.group_functions import between
from dparray._driver.host.plan import Plan, memory_type, spelled
from dparray._driver.host.reading import Unsupported, size_of
from dparray._driver.host.region import Region, access_of, is_scalar, parameters_of

# Arrays of work-items of at least this many bytes are not on the stack.
_LARGE = 1 << 15


class Program(Frame):
    """The text of a kernel's program for one size of group.

    Args:
        in_order: whether work-items with loops run one after the other: LLVM then makes vectors of
            the iterations of their innermost loops.

    Attributes:
        text: functions and marks.
        is_plain: whether it is one loop over work-items.
        is_straight: whether a work-item has no loops, so that its time is known.
        needs: declarations of the functions that it calls.
    """

    def __init__(
        self,
        function: Function,
        local_parameters: tuple[int, ...],
        local_bytes: int,
        in_order: bool,
    ) -> None:
        super().__init__(function, local_parameters, local_bytes)
        self._is_range = function.local is None
        self.needs = {
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare i64 @llvm.smax.i64(i64, i64)",
            "declare i64 @llvm.sadd.sat.i64(i64, i64)",
            "declare i64 @llvm.umin.i64(i64, i64)",
            "declare ptr @malloc(i64)",
            "declare void @free(ptr)",
        }
        checked_calls(function)
        every = [one for block in function.blocks for one in block.body]
        is_simple = self._is_range and not function.joint
        is_simple = is_simple and all(one.opcode != "alloca" for one in every)
        has_regions = function.loops and not in_order and Plan(function).has_loops
        self.is_plain = is_simple and not has_regions
        self.is_straight = self.is_plain and not function.loops
        body = self._plain() if self.is_plain else self._in_regions()
        self.text = "\n".join([body, MARKS, *self.marks, ""])

    def _in_regions(self) -> str:
        try:
            return self._regions(Plan(self.function))
        except Unsupported:
            self.marks.clear()
            return self._regions(Plan(self.function, allows_masks=False))

    # -- kernels of ranges without loops

    def _plain(self) -> str:
        """Return a kernel of a range as it is, in one loop."""
        self.function.diverge()
        access = access_of(self.function, self.function.blocks)
        item = [f"define internal void @dp.item({self.parameters()}) alwaysinline {{"]
        for block in self.function.blocks:
            item.append(f'"{block.name}":')
            for one in block.body:
                text = one.text
                if one.phi:
                    pairs = ", ".join(f'[ {value}, %"{name}" ]' for value, name in one.phi)
                    text = f"phi {one.kind} {pairs}"
                item.append(f"  {one.name} = {text}" if one.name else f"  {text}")
        arguments = self.arguments({f"%dp.g{self.last}": "%x"}, r"%dp\.gs?\d")
        run = [
            *self.head(),
            *self.row(),
            "  %any = icmp slt i64 %low, %high",
            "  br i1 %any, label %item, label %unit.end",
            "item:",
            "  %x = phi i64 [ %low, %unit ], [ %x.next, %item ]",
            f"  call void @dp.item({arguments}){access}",
            "  %x.next = add nuw nsw i64 %x, 1",
            "  %x.more = icmp slt i64 %x.next, %high",
            self.latch("%x.more", "item", "unit.end", access, self._mixes_floats()),
            *self.tail(),
        ]
        return "\n".join([*item, "}", *run])

    def _mixes_floats(self) -> bool:
        """Return whether a kernel reads float32, also computes in float64, and has vectors."""
        if is_scalar(self.function.blocks):
            return False
        texts = [one.text for block in self.function.blocks for one in block.body]
        reads_single = any(text.startswith("load float,") for text in texts)
        return reads_single and any("double" in text for text in texts)

    # -- kernels in regions

    def _regions(self, plan: Plan) -> str:
        """Return the functions of the regions, the block of work-items that runs them, and
        the function that the driver calls.
        """
        regions = {head: Region(plan, head) for head in plan.heads}
        self._check_meetings(plan, regions)
        block = self._block(plan, regions)
        run = self._groups() if not self._is_range else self._pieces(plan.count)
        texts = [region.text for region in regions.values()]
        return "\n".join([*texts, *block, *self.head(), *run, *self.tail()])

    def _check_meetings(self, plan: Plan, regions: dict[str, Region]) -> None:
        for head, region in regions.items():
            apart = region.exits & set(plan.masked)
            if not apart:
                continue
            to = next(iter(apart))
            if region.exits - {to, plan.masked[to]} or self.function.can_end(head, plan.heads):
                raise Unsupported("a loop that work-items leave apart, among others")

    def _arrays(self, plan: Plan) -> list[str]:
        """Allocate the values of all work-items."""
        lines: list[str] = []
        self.work_bytes = 0

        def array(name: str, kind: str) -> None:
            nbytes = plan.count * size_of(kind)
            if nbytes < _LARGE:
                lines.append(f"  {name} = alloca [{plan.count} x {kind}], align {ALIGNMENT}")
                return
            lines.append(f"  {name} = getelementptr i8, ptr %dp.work, i64 {self.work_bytes}")
            self.work_bytes += -(-nbytes // ALIGNMENT) * ALIGNMENT

        for name, (kind, is_uniform) in plan.slots.items():
            own = spelled(name)
            if is_uniform:
                lines += [f"  %u.{own} = alloca {kind}", f"  %o.{own} = alloca {kind}"]
            else:
                array(f"%c.{own}", memory_type(kind))
        for name, one in plan.allocas.items():
            array(f"%pv.{spelled(name)}", one.kind)
        for call, result in self.function.joint.values():
            if result:
                array(f"%in.{spelled(result)}", call.kind)
                array(f"%ln.{spelled(result)}", "i64")
        if plan.has_places:
            array("%dp.pc", "i32")
        return [*lines, "  %dp.next = alloca i32"]

    def _block(self, plan: Plan, regions: dict[str, Region]) -> list[str]:
        """Write the function that runs the regions for the work-items of a group or piece."""
        lines = [
            f"define internal void @dp.block({self.parameters(', i64 %dp.count')}) alwaysinline {{",
            "entry:",
            *self._arrays(plan),
            *(_scheduler(plan) if self.function.is_scheduled else ["  br label %pre0"]),
        ]
        for number, head in enumerate(plan.heads):
            lines.append(f"pre{number}:")
            if head in self.function.joint:
                lines += between(plan, head, number, self.needs)
            else:
                lines.append(f"  br label %begin{number}")
            lines += self._loop(plan, regions[head], number, head)
            lines += self._next(plan, regions[head], number, head)
        return [*lines, "finish:", "  ret void", "}"]

    def _loop(self, plan: Plan, region: Region, k: int, head: str) -> list[str]:
        """Write the loops over work-items that run a region."""
        function, values = self.function, dict[str, str]()
        lines = [f"begin{k}:"]
        for name, (kind, is_uniform) in plan.slots.items():
            if not is_uniform:
                continue
            own = spelled(name)
            values[f"%uv.{own}"] = "poison"
            if name in plan.live[head] or name in region.written:
                lines.append(f"  %uv{k}.{own} = load {kind}, ptr %u.{own}")
                values[f"%uv.{own}"] = f"%uv{k}.{own}"
            if name in region.written:
                lines.append(f"  store {kind} %uv{k}.{own}, ptr %o.{own}")
        has_places = bool(region.exits & set(plan.masked)) or function.is_scheduled
        dimensions = [self.last] if self._is_range else list(range(function.ndim))
        before = f"begin{k}"
        for depth in range(len(dimensions)):
            lines += [
                f"  br label %l{k}.{depth}",
                f"l{k}.{depth}:",
                f"  %i{k}.{depth} = phi i64 [ 0, %{before} ], [ %n{k}.{depth}, %e{k}.{depth} ]",
            ]
            before = f"l{k}.{depth}"
        lines += self._numbers(k, values)
        arguments = ", ".join(
            f"{kind} {values.get(name, name)}" for kind, name in parameters_of(plan)
        )
        lines.append(f"  %r{k} = call i32 @dp.region{k}({arguments}){region.access}")
        if has_places:
            lines += [
                f"  %pp{k} = getelementptr i32, ptr %dp.pc, i64 {values['%dp.idx']}",
                f"  store i32 %r{k}, ptr %pp{k}{region.access}",
            ]
        else:
            lines.append(f"  store i32 %r{k}, ptr %dp.next")
        sets_width = plan.is_narrow and not region.is_scalar
        innermost = len(dimensions) - 1
        lines.append(f"  br label %e{k}.{innermost}")
        for depth in range(innermost, -1, -1):
            size = "%dp.count" if function.local is None else str(function.local[depth])
            end = f"e{k}.{depth - 1}" if depth else f"f{k}"
            condition = f"%m{k}.{depth}"
            lines += [
                f"e{k}.{depth}:",
                f"  %n{k}.{depth} = add nuw nsw i64 %i{k}.{depth}, 1",
                f"  {condition} = icmp ult i64 %n{k}.{depth}, {size}",
                self.latch(condition, f"l{k}.{depth}", end, region.access, sets_width)
                if depth == innermost
                else f"  br i1 {condition}, label %l{k}.{depth}, label %{end}",
            ]
        return lines

    def _numbers(self, k: int, values: dict[str, str]) -> list[str]:
        """Write the ids of a work-item, and note their names."""
        function, index = self.function, f"%i{k}.0"
        lines: list[str] = []
        if function.local is None:
            lines.append(f"  %x{k} = add nuw nsw i64 %dp.g{self.last}, {index}")
            values[f"%dp.g{self.last}"] = f"%x{k}"
        else:
            for d, size in enumerate(function.local):
                values[f"%dp.l{d}"], values[f"%dp.g{d}"] = f"%i{k}.{d}", f"%gx{k}.{d}"
                lines.append(f"  %wb{k}.{d} = mul nuw nsw i64 %dp.w{d}, {size}")
                lines.append(f"  %gx{k}.{d} = add nuw nsw i64 %wb{k}.{d}, %i{k}.{d}")
                if d:
                    lines.append(f"  %im{k}.{d} = mul nuw nsw i64 {index}, {size}")
                    lines.append(f"  %ia{k}.{d} = add nuw nsw i64 %im{k}.{d}, %i{k}.{d}")
                    index = f"%ia{k}.{d}"
        values["%dp.idx"] = index
        values["%dp.lane"], values["%dp.sub_group"] = f"%sl{k}", f"%sg{k}"
        return [
            *lines,
            f"  %si{k} = trunc i64 {index} to i32",
            f"  %sl{k} = and i32 %si{k}, {function.lanes - 1}",
            f"  %sg{k} = lshr i32 %si{k}, {function.lanes.bit_length() - 1}",
        ]

    def _next(self, plan: Plan, region: Region, k: int, head: str) -> list[str]:
        """Write the way from a region to the next one."""
        lines = [f"f{k}:"]
        if self.function.is_scheduled:
            return [*lines, "  br label %choose"]
        for name in sorted(region.written):
            kind, is_uniform = plan.slots[name]
            if is_uniform:
                own = spelled(name)
                lines.append(f"  %co{k}.{own} = load {kind}, ptr %o.{own}")
                lines.append(f"  store {kind} %co{k}.{own}, ptr %u.{own}")
        numbers = sorted(plan.heads.index(each) for each in region.exits)
        can_end = self.function.can_end(head, plan.heads)
        if apart := region.exits & set(plan.masked):
            (to,) = apart
            number, after = plan.heads.index(to), plan.heads.index(plan.masked[to])
            # A loop of its own: LLVM would split the region's loop, and not vectorize it.
            return [
                *lines,
                f"  br label %p{k}",
                f"p{k}:",
                f"  %pi{k} = phi i64 [ 0, %f{k} ], [ %pn{k}, %p{k} ]",
                f"  %pa{k} = phi i1 [ false, %f{k} ], [ %po{k}, %p{k} ]",
                f"  %pq{k} = getelementptr i32, ptr %dp.pc, i64 %pi{k}",
                f"  %pl{k} = load i32, ptr %pq{k}",
                f"  %pt{k} = icmp eq i32 %pl{k}, {number}",
                f"  %po{k} = or i1 %pa{k}, %pt{k}",
                f"  %pn{k} = add nuw nsw i64 %pi{k}, 1",
                f"  %pm{k} = icmp ult i64 %pn{k}, %dp.count",
                f"  br i1 %pm{k}, label %p{k}, label %q{k}",
                f"q{k}:",
                f"  br i1 %po{k}, label %pre{number}, label %pre{after}",
            ]
        if not numbers:
            return [*lines, "  ret void"]
        default = "finish" if can_end else f"pre{numbers.pop()}"
        cases = " ".join(f"i32 {each}, label %pre{each}" for each in numbers)
        return [
            *lines,
            f"  %nx{k} = load i32, ptr %dp.next",
            f"  switch i32 %nx{k}, label %{default} [ {cases} ]",
        ]

    def _groups(self) -> list[str]:
        """Write the loop over groups."""
        lines = ["unit:", "  %at = phi i64 [ %first, %entry ], [ %unit.next, %unit.end ]"]
        rest = "%at"
        for dimension in range(self.last, 0, -1):
            lines.append(f"  %dp.w{dimension} = urem i64 {rest}, %dp.ws{dimension}")
            lines.append(f"  %rest{dimension} = udiv i64 {rest}, %dp.ws{dimension}")
            rest = f"%rest{dimension}"
        lines.append(f"  %dp.w0 = add i64 {rest}, 0")
        arguments = self.arguments({}, r"%dp\.(?:(?:w|gs|ls|ws)\d|local|work)")
        count = math.prod(self.function.local or ())
        return [*lines, f"  call void @dp.block({arguments}, i64 {count})", "  br label %unit.end"]

    def _pieces(self, count: int) -> list[str]:
        """Write the loop over blocks of a row, which calls a copy for the last items."""

        def call(start: str, count: str) -> str:
            known = r"%dp\.(?:gs?\d|work)"
            arguments = self.arguments({f"%dp.g{self.last}": start}, known)
            return f"  call void @dp.block({arguments}, i64 {count})"

        return [
            *self.row(),
            f"  %first.end = add i64 %low, {count}",
            "  %any = icmp sle i64 %first.end, %high",
            "  br i1 %any, label %item, label %tail",
            "item:",
            "  %x = phi i64 [ %low, %unit ], [ %x.next, %item ]",
            call("%x", str(count)),
            f"  %x.next = add nuw nsw i64 %x, {count}",
            f"  %x.end = add nuw nsw i64 %x.next, {count}",
            "  %x.more = icmp sle i64 %x.end, %high",
            "  br i1 %x.more, label %item, label %tail",
            "tail:",
            "  %t = phi i64 [ %low, %unit ], [ %x.next, %item ]",
            "  %left = sub i64 %high, %t",
            "  %is.left = icmp sgt i64 %left, 0",
            "  br i1 %is.left, label %rest, label %unit.end",
            "rest:",
            call("%t", "%left"),
            "  br label %unit.end",
        ]


def _scheduler(plan: Plan) -> list[str]:
    """Write the choice of the next region: the first one that a work-item wants."""
    end = len(plan.heads)
    cases = " ".join(f"i32 {number}, label %pre{number}" for number in range(end))
    return [
        "  %dp.places.size = mul i64 %dp.count, 4",
        "  call void @llvm.memset.p0.i64(ptr %dp.pc, i8 0, i64 %dp.places.size, i1 false)",
        "  br label %choose",
        "choose:",
        "  br label %place",
        "place:",
        "  %dp.place.at = phi i64 [ 0, %choose ], [ %dp.place.next, %place ]",
        f"  %dp.first = phi i32 [ {end}, %choose ], [ %dp.first.next, %place ]",
        "  %dp.place.of = getelementptr i32, ptr %dp.pc, i64 %dp.place.at",
        "  %dp.wanted = load i32, ptr %dp.place.of",
        "  %dp.first.next = call i32 @llvm.umin.i32(i32 %dp.first, i32 %dp.wanted)",
        "  %dp.place.next = add i64 %dp.place.at, 1",
        "  %dp.place.more = icmp ult i64 %dp.place.next, %dp.count",
        "  br i1 %dp.place.more, label %place, label %chosen",
        "chosen:",
        f"  switch i32 %dp.first.next, label %finish [ {cases} ]",
    ]
