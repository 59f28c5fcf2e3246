"""Write the frame of a kernel's program: its arguments, and the loop over units.

A unit is a group, or a piece of a row of a range without groups. The function's signature is that
of the parts of a parallel loop (`dparray/_array/_fastpath_pool.c`).
"""

from __future__ import annotations

import re

from dparray._driver.host.analysis import Function
from dparray._driver.host.guards import Guard
from dparray._driver.host.plan import NARROW_WIDTH, ids

RUN, PACK = "dp_run", "dp_pack"
#: The 64-bit words before the arguments in a launch's data: the sizes of the range, of a group, and
#: the numbers of groups, three each; items of a unit, units of a row, bytes of local memory.
WORDS = 12
_GLOBAL, _LOCAL, _GROUPS, _ITEMS, _UNITS, LOCAL_BYTES = 0, 3, 6, 9, 10, 11
MARKS = f"""
!900000 = distinct !{{}}
!900001 = !{{!"llvm.loop.parallel_accesses", !900000}}
!900002 = !{{!"llvm.loop.unroll.disable"}}
!900003 = !{{!"llvm.loop.vectorize.width", i32 {NARROW_WIDTH}}}
!900004 = !{{!"llvm.loop.vectorize.followup_vectorized", !900005, !900006}}
!900005 = !{{!"llvm.loop.isvectorized", i32 1}}
!900006 = !{{!"llvm.loop.unroll.runtime.disable"}}
"""
ALIGNMENT = 64


class Frame:
    """The frame of a program.

    Attributes:
        function: the kernel's function.
        marks: the marks of loops.
        work_bytes: the size of the arrays of work-items that are not on the stack.
        guard: the lines that find the work-items of a row which do something.
    """

    def __init__(
        self, function: Function, local_parameters: tuple[int, ...], local_bytes: int
    ) -> None:
        self.function = function
        self.marks: list[str] = []
        self.work_bytes = 0
        self._in_local = local_parameters
        self._local_bytes = local_bytes
        self.last = function.ndim - 1
        self.guard = Guard(function).lines if function.local is None else []

    def latch(
        self, condition: str, body: str, end: str, access: str, sets_width: bool = False
    ) -> str:
        """Return the branch at the end of an innermost loop over work-items.

        Args:
            condition: whether it goes on.
            body, end: labels.
            access: the mark of its accesses, if they are unordered.
            sets_width: whether vectors have ``NARROW_WIDTH`` work-items. LLVM's own choice fits the
                widest type in the loop, so it has half as many beside 64-bit values.
        """
        number = 900_010 + len(self.marks)
        marks = "!900001, !900002, !900004" if access else "!900002"
        if sets_width:
            marks += ", !900003"
        self.marks.append(f"!{number} = distinct !{{!{number}, {marks}}}")
        return f"  br i1 {condition}, label %{body}, label %{end}, !llvm.loop !{number}"

    def head(self) -> list[str]:
        """Load the arguments and sizes."""
        function = self.function
        lines = [
            f"define i32 @{RUN}(ptr noalias readonly %data, ptr %error, i64 %number, i64 %first, "
            "i64 %last) {",
            "entry:",
        ]

        def load(name: str, kind: str, word: int) -> None:
            lines.append(f"  {name}.at = getelementptr i64, ptr %data, i64 {word}")
            lines.append(f"  {name} = load {kind}, ptr {name}.at, !invariant.load !900000")

        if self._in_local or self._local_bytes:
            load("%local.bytes", "i64", LOCAL_BYTES)
            lines.append(f"  %dp.local = alloca i8, i64 %local.bytes, align {ALIGNMENT}")
        else:
            lines.append("  %dp.local = getelementptr i8, ptr null, i64 0")
        for at, (name, kind) in enumerate(function.parameters):
            if at in self._in_local:
                load(f"%offset{at}", "i64", WORDS + at)
                lines.append(f"  {name} = getelementptr i8, ptr %dp.local, i64 %offset{at}")
            else:
                lines.append(f"  %at{at} = getelementptr i64, ptr %data, i64 {WORDS + at}")
                lines.append(f"  {name} = load {kind}, ptr %at{at}, !invariant.load !900000")
        for code, base in (("gs", _GLOBAL), ("ls", _LOCAL), ("ws", _GROUPS)):
            for dimension in range(function.ndim):
                load(f"%dp.{code}{dimension}", "i64", base + dimension)
        load("%items", "i64", _ITEMS)
        load("%units", "i64", _UNITS)
        if self.work_bytes:
            lines.append(f"  %dp.work.at = call ptr @malloc(i64 {self.work_bytes + ALIGNMENT})")
            lines.append("  %dp.work.number = ptrtoint ptr %dp.work.at to i64")
            lines.append(f"  %dp.work.more = and i64 %dp.work.number, {ALIGNMENT - 1}")
            lines.append(f"  %dp.work.skip = sub i64 {ALIGNMENT}, %dp.work.more")
            lines.append("  %dp.work = getelementptr i8, ptr %dp.work.at, i64 %dp.work.skip")
        else:
            lines.append("  %dp.work = getelementptr i8, ptr null, i64 0")
        return [
            *lines,
            "  %some = icmp slt i64 %first, %last",
            "  br i1 %some, label %unit, label %done",
        ]

    def tail(self) -> list[str]:
        """Go to the next unit, or end."""
        return [
            "unit.end:",
            "  %unit.next = add i64 %at, 1",
            "  %unit.more = icmp slt i64 %unit.next, %last",
            "  br i1 %unit.more, label %unit, label %done",
            "done:",
            *(["  call void @free(ptr %dp.work.at)"] if self.work_bytes else []),
            "  ret i32 0",
            "}",
        ]

    def row(self) -> list[str]:
        """Find the row of a unit of a range, and its items in the last dimension."""
        raw = ".0" if self.guard else ""
        lines = [
            "unit:",
            "  %at = phi i64 [ %first, %entry ], [ %unit.next, %unit.end ]",
            "  %row = udiv i64 %at, %units",
            "  %piece = urem i64 %at, %units",
            f"  %low{raw} = mul i64 %piece, %items",
            f"  %end = add i64 %low{raw}, %items",
            f"  %high{raw} = call i64 @llvm.smin.i64(i64 %end, i64 %dp.gs{self.last})",
        ]
        rest = "%row"
        for dimension in range(self.last - 1, -1, -1):
            if dimension:
                lines.append(f"  %dp.g{dimension} = urem i64 {rest}, %dp.gs{dimension}")
                lines.append(f"  %rest{dimension} = udiv i64 {rest}, %dp.gs{dimension}")
                rest = f"%rest{dimension}"
            else:
                lines.append(f"  %dp.g0 = add i64 {rest}, 0")
        return lines + self.guard

    def arguments(self, values: dict[str, str], known: str) -> str:
        """Return arguments for the parameters and ids.

        Args:
            values: those that differ from their names.
            known: a pattern for the names of the other ids that have values.
        """
        arguments = [f"{kind} {name}" for name, kind in self.function.parameters]
        for kind, name in ids(self.function.ndim):
            value = name if re.fullmatch(known, name) else "null" if kind == "ptr" else "0"
            arguments.append(f"{kind} {values.get(name, value)}")
        return ", ".join(arguments)

    def parameters(self, extra: str = "") -> str:
        """Return the parameters that these arguments are for."""
        given = [f"{kind} {name}" for name, kind in self.function.parameters]
        return (
            ", ".join([*given, *(f"{kind} {name}" for kind, name in ids(self.function.ndim))])
            + extra
        )


def packer(function_parameters: list[tuple[str, str]]) -> str:
    """Return a function that copies the arguments of a launch into its data."""
    lines = [f"define void @{PACK}(ptr %addresses, ptr %slots) {{"]
    for at, (_, kind) in enumerate(function_parameters):
        lines += [
            f"  %a{at} = getelementptr ptr, ptr %addresses, i64 {at}",
            f"  %v{at} = load ptr, ptr %a{at}",
            f"  %s{at} = getelementptr i64, ptr %slots, i64 {at}",
        ]
        if kind != "ptr":
            lines.append(f"  %l{at} = load {kind}, ptr %v{at}")
        value = f"%v{at}" if kind == "ptr" else f"%l{at}"
        lines.append(f"  store {kind} {value}, ptr %s{at}")
    return "\n".join([*lines, "  ret void", "}", ""])
