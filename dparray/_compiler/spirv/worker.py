"""The helper process that reads modules as LLVM IR and writes them as SPIR-V.

It is run as a script and imports llvmlite, but nothing of dparray. LLVM's back end for SPIR-V
leaves state behind that breaks the next module, and its errors end the process. Each module is
therefore written by a new fork, which is created in advance.

The back end miscompiles unsupported constructs or ends the process. Each rule here avoids such a
case, with a test in ``tests/compiler/test_backend_rules.py``.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import signal
import struct
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

REQUEST = struct.Struct("<qi")  # the length of the text; the requested output
ANSWER = struct.Struct("<iq")  # the exit status; the length of what follows
# The output for a module that is already optimized, and for one that is not: the length of its
# optimized text, the text, and the binary.
BINARY, ASSEMBLY, OPTIMISED = range(3)
LENGTH = struct.Struct("<q")
OPTIONS = (
    # LSR converts indices of elements to pointers that loops increment. Intel's CPU driver then
    # does not recognize that neighboring work-items read neighboring elements: a sum takes 14 times
    # as long. CodeGenPrepare converts a sum that is also compared to an addition with carry
    # (OpIAddCarry), which crashes the compiler for Intel's GPUs (IGC 1.0.12504).
    "--disable-lsr",
    "--disable-cgp",
    # Induction variable simplification compares the counts of a loop's exits in 128 bits if 64
    # could overflow, which SPIR-V does not have, and computes closed forms of sums in more than 64.
    "--indvars-predicate-loops=false",
    "--replexitval=never",
    # Short loops are unrolled here, since their counts may be hidden from the driver: otherwise
    # the nearest of 16 points in space takes twice as long.
    "--unroll-full-max-count=8",
    "--unroll-threshold=64",
    "--unroll-max-percent-threshold-boost=100",
    "--unroll-allow-peeling=false",
)
TRIPLE = "spirv64-unknown-unknown"
SPEED = 2  # LLVM's optimization level, from 0 to 3

# SPIR-V has no poison, so these are conjunctions and disjunctions. Intel's CPU driver generates
# slower code for a condition in both forms: a stencil takes 1.8 times as long.
_CONJUNCTIONS = re.compile(r"= select i1 ([^\s,]+), i1 ([^\s,]+), i1 false$", re.MULTILINE)
_DISJUNCTIONS = re.compile(r"= select i1 ([^\s,]+), i1 true, i1 ([^\s,]+)$", re.MULTILINE)

# The float of a negated Boolean, 0 or -1, which the back end writes as 0 and 1.
_FLOATS_OF_SIGNS = re.compile(r"= sitofp i1 (?P<bit>\S+) to (?P<type>half|float|double)")
_MINUS_ONE = {"half": "0xHBC00", "float": "-1.000000e+00", "double": "-1.000000e+00"}
_ZERO = {"half": "0xH0000", "float": "0.000000e+00", "double": "0.000000e+00"}


def _choose_float(found: re.Match[str]) -> str:
    kind = found["type"]
    return f"= select i1 {found['bit']}, {kind} {_MINUS_ONE[kind]}, {kind} {_ZERO[kind]}"


# Intel's CPU driver (2026.0) converts the conditions at the beginning of a kernel to bounds of its
# loop over a group's work-items. This is correct for signed comparisons of an id itself. It is
# wrong for values computed from an id, unsigned comparisons and equality: work-items are skipped or
# repeated. The driver does not look through a function call, here one that returns its first
# argument, and then masks those work-items. Only comparisons that decide a branch are hidden: one
# in a select does not bound a loop, and hidden addresses would no longer be recognized as neighbors
# (a convolution takes 8 times as long). Conditions on a group's id are not hidden: they are uniform
# in the group, and hiding them costs masks (half of the time of a convolution).
_DEFINITIONS = re.compile(r"^  (%\S+) = (\S+) (.*)$", re.MULTILINE)
_NAMES = re.compile(r"%(?:[-\w.$]+|\"[^\"]*\")")
_IDS = re.compile(r"@_Z\d+get_\w*id[jv]\(")
_GROUP_ID = "get_group_id"
_IDS_OF_ITEMS = re.compile(rf"@_Z\d+(?!{_GROUP_ID})get_\w*id[jv]\(")
_FIRST_ID = "@_Z13get_global_idj"
_PASSES_ON = re.compile(r"@(?:llvm\.|_Z\d+(?:min|max)[a-z]{2}\()")
_COMPARISONS = re.compile(
    r"^  (?P<name>%\S+) = icmp (?P<same>samesign )?(?P<order>\w+) (?P<type>i8|i16|i32|i64) "
    r"(?P<left>\S+), (?P<right>\S+)$",
    re.MULTILINE,
)
_UNCHANGED = {
    kind: f"@_Z7add_sat{2 * code}"
    for kind, code in (("i8", "c"), ("i16", "s"), ("i32", "i"), ("i64", "l"))
}
_BRANCHES = re.compile(r"^  br i1 (%[^\s,]+),", re.MULTILINE)
_TRUTHS = frozenset(("and", "or", "xor", "select", "freeze", "phi", "zext", "sext", "trunc"))
_OF_NONE = {"eq": "slt i64 {}, 1", "ne": "sgt i64 {}, 0"}


def _with_hidden_ids(text: str, ids: set[str], computed: set[str]) -> str:
    """Hide the operands of comparisons that decide a branch, if computed from work-item ids."""
    deciding = _deciding(text)

    def hide(found: re.Match[str]) -> str:
        if found["name"] not in deciding:
            return found[0]
        order, kind = found["order"], found["type"]
        sides, lines = [found["left"], found["right"]], []
        if found["same"]:  # with equal signs, both orders are equivalent
            order = order.replace("u", "s")
        if order in _OF_NONE and kind == "i64" and sides[0] in ids and sides[1] == "0":
            return f"  {found['name']} = icmp {_OF_NONE[order].format(sides[0])}"
        for place, side in enumerate(sides):
            if side in computed or (side in ids and not order.startswith("s")):
                hidden = f"%dparray.hidden.{found.start()}.{place}"
                given = f"{kind} {side}, {kind} 0"
                lines.append(f"  {hidden} = call spir_func {kind} {_UNCHANGED[kind]}({given})")
                sides[place] = hidden
        compared = f"  {found['name']} = icmp {order} {kind} {sides[0]}, {sides[1]}"
        return "\n".join([*lines, compared])

    return _COMPARISONS.sub(hide, text)


def _ids_and_computed(text: str, wanted: re.Pattern[str]) -> tuple[set[str], set[str]]:
    """Return the names of ids from the given functions, and of values computed from them.

    Values read from memory or returned by device functions count as independent of ids.
    """
    users: dict[str, list[str]] = {}
    ids = set()
    for name, operation, rest in _DEFINITIONS.findall(text):
        if operation in ("call", "tail"):
            if wanted.search(rest):
                ids.add(name)
            if not _PASSES_ON.search(rest):
                continue
        elif operation == "load":
            continue
        for used in _NAMES.findall(rest):
            users.setdefault(used, []).append(name)
    return ids, _reached(ids, users)


def _reached(names: Iterable[str], following: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the names that follow from some, directly or by others."""
    reached: set[str] = set()
    coming = list(names)
    while coming:
        for name in following.get(coming.pop(), ()):
            if name not in reached:
                reached.add(name)
                coming.append(name)
    return reached


def _deciding(text: str) -> set[str]:
    """Return the names of the Booleans that decide branches, and of their operands."""
    made_of = {
        name: _NAMES.findall(rest)
        for name, operation, rest in _DEFINITIONS.findall(text)
        if (operation in _TRUTHS and "i1" in rest) or (operation == "icmp" and " i8 " in rest)
    }
    decided = _BRANCHES.findall(text)
    return {*decided, *_reached(decided, made_of)}


# If all work-items of a kernel write the same value to the same place, and a device function is
# called in a loop to compute it, Intel's CPU driver (2026.0) crashes when it builds the kernel. It
# does not if it cannot prove that the place is the same.
_STORES = re.compile(
    r"^  store (?!atomic|volatile)(?P<value>.+), ptr addrspace\(1\) (?P<place>[^\s,]+)"
    r"(?P<rest>.*)$",
    re.MULTILINE,
)
_MEMORY = re.compile(
    r"^  (?:%\S+ = )?(?:tail )?(?:store|load|getelementptr|call) (.*)$", re.MULTILINE
)
_NO_BYTES = "@_Z7sub_satll"


def _with_hidden_places(text: str, ids: set[str], computed: set[str]) -> str:
    """Hide the target of stores if no work-item accesses memory by its ids."""
    if any(
        name in ids or name in computed
        for rest in _MEMORY.findall(text)
        if not _PASSES_ON.search(rest)
        for name in _NAMES.findall(rest)
    ):
        return text

    def hide(found: re.Match[str]) -> str:
        name = f"%dparray.{{}}.{found.start()}"
        first, none, place = (name.format(each) for each in ("id", "none", "place"))
        return "\n".join(
            (
                f"  {first} = call spir_func i64 {_FIRST_ID}(i32 0)",
                f"  {none} = call spir_func i64 {_NO_BYTES}(i64 {first}, i64 {first})",
                f"  {place} = getelementptr i8, ptr addrspace(1) {found['place']}, i64 {none}",
                f"  store {found['value']}, ptr addrspace(1) {place}{found['rest']}",
            )
        )

    return _STORES.sub(hide, text)


# The back end writes these as calls of OpenCL functions, and Intel's CPU driver treats the result
# of a function as different in each work-item: a loop up to the minimum of two uniform numbers then
# runs with masks (a convolution takes 4 times as long).
_EXTREMES = re.compile(
    r"^  (?P<name>%\S+) = (?:tail )?call (?P<type>i\d+) @llvm\.(?P<which>[su]m(?:in|ax))"
    r"\.i\d+\(i\d+ (?:range\([^)]*\) )?(?P<a>[^\s,]+), i\d+ (?:range\([^)]*\) )?(?P<b>[^\s,)]+)\)"
    r".*$",
    re.MULTILINE,
)
_ORDERS = {"smin": "slt", "smax": "sgt", "umin": "ult", "umax": "ugt"}


def _chosen(found: re.Match[str]) -> str:
    a, b, kind = found["a"], found["b"], found["type"]
    is_first = f"%dparray.order.{found.start()}"
    order = _ORDERS[found["which"]]
    return (
        f"  {is_first} = icmp {order} {kind} {a}, {b}\n"
        f"  {found['name']} = select i1 {is_first}, {kind} {a}, {kind} {b}"
    )


# Intel's CPU driver (2026.2) keeps chains of integers in vector registers if that makes minima and
# maxima cheaper, and computes the complement in such a chain by all ones. For registers from 16 on,
# which functions like sine do not use, it does so by an instruction that processors do not have. A
# value that it does not know to be all ones is kept in a register like any other. A single minimum
# or maximum does not form a chain; one in a loop may become several.
_COMPLEMENTS = re.compile(
    r"^  (?P<name>%\S+) = xor (?P<type>i8|i16|i32|i64) (?P<given>[^\s,]+), -1$", re.MULTILINE
)
_EXTREME = re.compile(r"@llvm\.[su]m(?:in|ax)\.i\d+\(")
_IN_CHAINS = frozenset(
    ("add", "sub", "and", "or", "xor", "shl", "lshr", "ashr", "trunc", "zext", "sext")
) | {"select", "phi"}
_DIMENSIONS = "@_Z12get_work_dimv()"


def _none(name: str, kind: str) -> tuple[str, list[str]]:
    """Return a zero that is opaque to the driver, and the lines that compute it."""
    dimensions, none, wide = (f"%dparray.{of}.{name}" for of in ("dimensions", "none", "wide"))
    lines = [
        f"  {dimensions} = call spir_func i32 {_DIMENSIONS}",
        f"  {none} = lshr i32 {dimensions}, 2",
    ]
    if kind == "i32":
        return none, lines
    return wide, [*lines, f"  {wide} = {'zext' if kind == 'i64' else 'trunc'} i32 {none} to {kind}"]


def _with_hidden_ones(text: str) -> str:
    """Hide the ones in complements that are in a chain with minima or maxima."""
    if not (_COMPLEMENTS.search(text) and _EXTREME.search(text)):
        return text
    found = _chained(text)

    def hide(of: re.Match[str]) -> str:
        if of["name"] not in found:
            return of[0]
        kind, ones = of["type"], f"%dparray.ones.{of.start()}"
        none, lines = _none(f"of.ones.{of.start()}", kind)
        lines += [
            f"  {ones} = sub {kind} {none}, 1",
            f"  {of['name']} = xor {kind} {of['given']}, {ones}",
        ]
        return "\n".join(lines)

    return _COMPLEMENTS.sub(hide, text)


def _chained(text: str) -> set[str]:
    """Return the names of values in chains that may have several minima or maxima."""
    operands, extremes, in_loops = {}, set(), set()
    for name, operation, rest in _DEFINITIONS.findall(text):
        if operation in _IN_CHAINS:
            if operation == "phi":
                in_loops.add(name)
        elif operation in ("call", "tail") and _EXTREME.search(rest):
            extremes.add(name)
        else:
            continue
        operands[name] = _NAMES.findall(rest)
    neighbors: dict[str, list[str]] = {name: [] for name in operands}
    for name, used in operands.items():
        for one in used:
            if one in neighbors:
                neighbors[name].append(one)
                neighbors[one].append(name)
    found: set[str] = set()
    while extremes:
        chain: set[str] = set()
        coming = [extremes.pop()]
        while coming:
            name = coming.pop()
            if name not in chain:
                chain.add(name)
                coming += neighbors[name]
        if chain & extremes or chain & in_loops:
            found |= chain
        extremes -= chain
    return found


# Intel's CPU driver (2026.2) interleaves private memory by elements of all work-items, and accesses
# wrong elements through a pointer that a condition selects. It also converts an index selected from
# two numbers to such a pointer. It does not change a pointer that was a number, or an index with an
# opaque part.
_CHOICES = re.compile(
    r"^  (?P<name>%\S+) = select i1 (?P<is_first>[^\s,]+), ptr (?P<a>[^\s,]+), ptr (?P<b>[^\s,]+)$",
    re.MULTILINE,
)
_PLACES = re.compile(
    r"^(?P<head>  %\S+ = getelementptr [^\n]*, ptr %[^\n]*, i64 )(?P<at>%\S+)$", re.MULTILINE
)
_OF_TWO = re.compile(
    r"^  (?P<name>%\S+) = (?:(?:and i\d+ [^\n]*, 1|zext (?:nneg )?i1 [^\n]*|lshr i64 [^\n]*, 63"
    r"|lshr i32 [^\n]*, 31|select i1 [^\n]*, i\d+ -?\d+, i\d+ -?\d+)"
    r"|(?:[sz]ext (?:nneg )?|trunc (?:nuw |nsw )*|xor |add (?:nuw |nsw )*)i\d+ (?P<given>%[^\s,]+)"
    r"(?: to i\d+|, -?\d+))$",
    re.MULTILINE,
)


def _with_hidden_choices(text: str) -> str:
    """Hide that an address in private memory is one of two."""
    if " alloca " not in text:
        return text
    of_two: set[str] = set()
    for found in _OF_TWO.finditer(text):
        if found["given"] is None or found["given"] in of_two:
            of_two.add(found["name"])

    def hide_pointer(of: re.Match[str]) -> str:
        a, b, chosen, at = (f"%dparray.{name}.{of.start()}" for name in ("a", "b", "chosen", "at"))
        none, lines = _none(f"of.pointer.{of.start()}", "i64")
        lines += [
            f"  {a} = ptrtoint ptr {of['a']} to i64",
            f"  {b} = ptrtoint ptr {of['b']} to i64",
            f"  {chosen} = select i1 {of['is_first']}, i64 {a}, i64 {b}",
            f"  {at} = xor i64 {chosen}, {none}",
            f"  {of['name']} = inttoptr i64 {at} to ptr",
        ]
        return "\n".join(lines)

    def hide_index(of: re.Match[str]) -> str:
        if of["at"] not in of_two:
            return of[0]
        at = f"%dparray.index.{of.start()}"
        none, lines = _none(f"of.index.{of.start()}", "i64")
        return "\n".join([*lines, f"  {at} = xor i64 {of['at']}, {none}", f"{of['head']}{at}"])

    return _PLACES.sub(hide_index, _CHOICES.sub(hide_pointer, text))


# --- loops ----------------------------------------------------------------------------------------
# Intel's CPU driver (2026.2) vectorizes a kernel over its work-items, and then also the loops of
# the scalar kernel that it keeps for the remainder (its pass VPlanDriver). It has five defects:
# - if a loop ends when a counter's next value exceeds a bound, or has two exits, numbers that leave
#   the loop are those of another step: counters are one step late, sums over more than a vector's
#   steps are wrong, and memory is written in one step too many;
# - if a phi's next value is another phi of the loop, the pass crashes;
# - if a number is uniform before a loop that changes it under a condition of the work-item, and a
#   later loop starts with it, the value of one work-item is used for all. The loop therefore
#   starts with a function's result, which the driver treats as different in each work-item, unless
#   no choice in it depends on the work-item (a variance would take twice as long, with masks);
# - if a condition of the work-item does not change in a loop, the driver splits the loop, and
#   numbers that depend on the condition are those of one work-item for all. The condition is
#   therefore combined with bits of a number that the loop carries;
# - if a loop reads and writes memory at the lowest bits of a counter, ``p[k & 3] += 1``, the driver
#   assumes that no address repeats. These indices are therefore combined with an opaque zero.
# A loop is vectorized only if the driver can compute its number of steps. The compared values of
# exits are therefore combined with an opaque zero, as is a phi's next value that is another phi.
# Equalities (the ends of ``for`` loops) are unchanged if the loop has a single exit, unless it
# carries a number into another one and a number leaves it, or it sums floats, which the driver
# reorders: there ``or`` hides the count; with a function a matrix product takes 5 times as long.
# The driver looks through ``or`` where numbers are exchanged. A minimum and its index are no
# exchange: a condition decides them (with a hidden count, k-means takes 3 times as long).


class _Loop(NamedTuple):
    """A loop: the labels of its header, of all its blocks and of its latches."""

    header: str
    blocks: set[str]
    latches: set[str]


class _Function:
    """A function's lines, with the block of each, the edges of blocks, and definitions."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.labels: dict[int, str] = {}  # the block of each line
        self.ends: dict[str, int] = {}  # the last line of each block
        self.targets: dict[str, list[str]] = {}
        # the line, the operation and the rest
        self.definitions: dict[str, tuple[int, str, str]] = {}
        self.users: dict[str, set[str]] = {}  # the blocks that use each name
        self.varying: set[str] = set()  # hidden values that a driver takes for each work-item's own
        label = "%"
        for at, line in enumerate(lines):
            if found := _LABEL.match(line):
                label = "%" + found[1]
                continue
            self.labels[at] = label
            if line.startswith(_TERMINATORS):
                self.ends[label] = at
                self.targets[label] = _TARGETS.findall(line)
            found = _DEFINITIONS.match(line)
            rest = line
            if found:
                name, operation, rest = found.groups()
                self.definitions[name] = at, operation, rest
            for value in _NAMES.findall(rest):
                self.users.setdefault(value, set()).add(label)

    def loops(self) -> list[_Loop]:
        """Return the loops, by the edges that jump back to a dominating block."""
        sources: dict[str, list[str]] = {label: [] for label in self.targets}
        for label, targets in self.targets.items():
            for target in targets:
                sources[target].append(label)
        found: dict[str, _Loop] = {}
        entry = next(iter(self.targets))
        seen, active = {entry}, {entry}
        way = [(entry, iter(self.targets[entry]))]
        while way:
            label, coming = way[-1]
            target = next(coming, "")
            if not target:
                active.discard(label)
                way.pop()
            elif target in active:
                loop = found.setdefault(target, _Loop(target, {target}, set()))
                loop.latches.add(label)
            elif target not in seen:
                seen.add(target)
                active.add(target)
                way.append((target, iter(self.targets[target])))
        for loop in found.values():
            waiting = list(loop.latches)
            while waiting:
                label = waiting.pop()
                if label not in loop.blocks:
                    loop.blocks.add(label)
                    waiting += sources[label]
        return list(found.values())

    def exits(self, loop: _Loop) -> list[str]:
        """Return the labels of the blocks that exit a loop."""
        return [
            label
            for label in self.targets
            if label in loop.blocks and not loop.blocks.issuperset(self.targets[label])
        ]

    def leading_to(self, label: str) -> set[str]:
        """Return the blocks from which a block can be reached."""
        found: set[str] = set()
        coming = [label]
        while coming:
            each = coming.pop()
            more = {place for place, targets in self.targets.items() if each in targets} - found
            found |= more
            coming += more
        return found

    def conditions(self, loop: _Loop) -> list[str]:
        """Return the names that decide whether a loop exits."""
        found = (_BRANCHES.match(self.lines[self.ends[label]]) for label in self.exits(loop))
        return [one[1] for one in found if one]

    def is_in(self, name: str, loop: _Loop) -> bool:
        """Return whether a name is defined in a loop."""
        return name in self.definitions and self.labels[self.definitions[name][0]] in loop.blocks

    def sources(self, name: str, loop: _Loop, *, with_conditions: bool = True) -> set[str]:
        """Return a name and those in a loop from which it is computed, or chosen."""
        found: set[str] = set()
        coming = [name]
        while coming:
            each = coming.pop()
            if each not in found and self.is_in(each, loop):
                found.add(each)
                _, operation, rest = self.definitions[each]
                if operation == "select" and not with_conditions:
                    rest = rest.partition(", ")[2]
                coming += _NAMES.findall(rest)
        return found


_FUNCTION = re.compile(r"(^define [^\n]*\{\n)(.*?)(?=^\}$)", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"^([-\w.$]+|\"[^\"]*\"):")
_INCOMING = re.compile(r"\[ ([^\s,]+|splat \([^)]*\)), (%[-\w.$]+|%\"[^\"]*\") \]")
_TARGETS = re.compile(r"label (%[-\w.$]+|%\"[^\"]*\")")
_TERMINATORS = ("  br ", "  ret ", "  unreachable")
_COMPARED = re.compile(
    r"^  (?P<name>%\S+) = icmp (?P<order>(?:samesign )?\w+) (?P<type>i8|i16|i32|i64) "
    r"(?P<a>[^\s,]+), (?P<b>[^\s,]+)$"
)
_INTEGER_OF = {
    **{kind: kind for kind in ("i1", "i8", "i16", "i32", "i64")},
    "half": "i16",
    "float": "i32",
    "double": "i64",
}
# Operations for which no closed form is computed if they change in the loop.
_UNCOUNTED = frozenset(
    ("load", "udiv", "sdiv", "urem", "srem", "fptosi", "fptoui", "fcmp", "bitcast", "ptrtoint")
) | {"extractelement", "cmpxchg", "atomicrmw"}
_GROUP_FUNCTION = "__spirv_Group"
# Operations whose results are the same for all work-items if their operands are.
_ALIKE = frozenset(
    ("phi", "icmp", "select", "freeze", "sext", "zext", "trunc", "and", "or", "xor")
) | {*("add", "sub", "mul", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem")}
_IN_ORDER = frozenset(("fadd", "fsub", "fmul", "fdiv"))


def _zero(kind: str) -> str:
    """Return the name of a function's opaque zero for its loops."""
    return _none(f"of.loops.{kind}", kind)[0]


def _with_uncounted_loops(text: str) -> str:
    """Return the text of a module with loops that the driver handles correctly."""
    if " phi " not in text:
        return text
    compared = _LOWEST_BITS.sub(_compare_lowest_bit, text)
    return _FUNCTION.sub(lambda of: of[1] + _uncounted(of[2]), compared)


# The back end compares the lowest bit with 0 if a number is truncated to it.
_LOWEST_BITS = re.compile(
    r"^  (?P<name>%\S+) = trunc (?:nuw |nsw )*(?P<type>i8|i16|i32|i64) (?P<given>%\S+) to i1$",
    re.MULTILINE,
)


def _compare_lowest_bit(found: re.Match[str]) -> str:
    bit, kind = f"%dparray.lowest.{found.start()}", found["type"]
    return f"  {bit} = and {kind} {found['given']}, 1\n  {found['name']} = icmp ne {kind} {bit}, 0"


def _uncounted(body: str) -> str:
    lines = body.splitlines()
    function = _Function(lines)
    before: dict[int, list[str]] = {}  # the lines to insert before each line
    kinds: set[str] = set()
    loops = function.loops()
    for loop in loops:
        _cut_chains(function, loop, before, kinds)
        _hide_low_bits(function, loop, before, kinds)
        _hide_exits(function, loop, before, kinds)
    # Hidden values are choices of later loops, and they may differ in each work-item.
    waiting = loops
    while rest := [loop for loop in waiting if not _hide_starts(function, loop, before)]:
        if len(rest) == len(waiting):
            break
        waiting = rest
    for loop in sorted(loops, key=lambda each: len(each.blocks)):
        _hide_conditions(function, loop, before, kinds)
    if not before:
        return body
    zeros = [line for kind in sorted(kinds) for line in _none(f"of.loops.{kind}", kind)[1]]
    before.setdefault(min(function.ends.values()), [])[:0] = zeros
    result = []
    for at, line in enumerate(lines):
        result += [*before.get(at, ()), line]
    return "\n".join([*result, ""])


def _header_phis(function: _Function, loop: _Loop) -> dict[str, int]:
    """Return the integers and floats that a loop carries from step to step, and their lines."""
    return {
        name: at
        for name, (at, operation, _) in function.definitions.items()
        if operation == "phi"
        and function.labels[at] == loop.header
        and _kind_of_phi(function.lines[at]) in _INTEGER_OF
    }


def _kind_of_phi(line: str) -> str:
    return line.split(" = phi ")[1].split(" [ ")[0]


def _cut_chains(
    function: _Function, loop: _Loop, before: dict[int, list[str]], kinds: set[str]
) -> None:
    """Hide that the next value of a loop's phi may be another of its phis.

    The driver may know which of several values is chosen, or that a group function returns its
    argument. Phis that decide the exit are safe, and hiding them is slow: Euclid's algorithm takes
    twice as long.
    """
    conditions = function.conditions(loop)
    phis = _header_phis(function, loop)
    for name, at in phis.items():
        for value, place in _INCOMING.findall(function.lines[at]):
            if place not in loop.blocks:
                continue
            chosen = (_choices(function, loop, value, phis) & phis.keys()) - {name}
            if not chosen or all(
                chosen <= function.sources(condition, loop) for condition in conditions
            ):
                continue
            kind = _kind_of_phi(function.lines[at])
            whole = _INTEGER_OF[kind]
            hidden = f"%dparray.next.{at}.{function.ends[place]}"
            lines = before.setdefault(function.ends[place], [])
            if whole == kind:
                lines.append(f"  {hidden} = xor {kind} {value}, {_zero(kind)}")
            else:
                lines += [
                    f"  {hidden}.bits = bitcast {kind} {value} to {whole}",
                    f"  {hidden}.same = xor {whole} {hidden}.bits, {_zero(whole)}",
                    f"  {hidden} = bitcast {whole} {hidden}.same to {kind}",
                ]
            kinds.add(whole)
            old = f"[ {value}, {place} ]"
            function.lines[at] = function.lines[at].replace(old, f"[ {hidden}, {place} ]")


def _hide_starts(function: _Function, loop: _Loop, before: dict[int, list[str]]) -> bool:
    """Hide the first value of a phi whose next value depends on a condition of the work-item.

    Return whether there are such phis.
    """
    if _is_uniform(function, loop.blocks, _deciding_in(function, loop.blocks)):
        return False
    has_chosen = False
    for name, at in _header_phis(function, loop).items():
        incoming = _INCOMING.findall(function.lines[at])
        if not any(
            place in loop.blocks and _is_chosen(function, loop, name, value)
            for value, place in incoming
        ):
            continue
        has_chosen = True
        kind = _kind_of_phi(function.lines[at])
        for value, place in incoming:
            if place in loop.blocks:
                continue
            whole = {"i1": "i8"}.get(kind, _INTEGER_OF[kind])
            to, back = ("zext", "trunc") if kind == "i1" else ("bitcast", "bitcast")
            hidden = f"%dparray.start.{at}.{function.ends[place]}"
            given, lines = value, before.setdefault(function.ends[place], [])
            result = hidden
            if whole != kind:
                given, result = f"{hidden}.bits", f"{hidden}.same"
                lines.append(f"  {given} = {to} {kind} {value} to {whole}")
            call = f"call spir_func {whole} {_UNCHANGED[whole]}({whole} {given}, {whole} 0)"
            lines.append(f"  {result} = {call}")
            if whole != kind:
                lines.append(f"  {hidden} = {back} {whole} {result} to {kind}")
            function.varying.add(hidden)
            old = f"[ {value}, {place} ]"
            function.lines[at] = function.lines[at].replace(old, f"[ {hidden}, {place} ]")
    return has_chosen


def _is_uniform(function: _Function, blocks: Collection[str], names: Iterable[str]) -> bool:
    """Return whether names are the same for all work-items of a group, as are choices in blocks."""
    blocks, seen = set(blocks), set[str]()
    coming = list(names)
    while coming:
        name = coming.pop()
        if name in seen or name not in function.definitions:  # a parameter
            continue
        seen.add(name)
        at, operation, rest = function.definitions[name]
        if not function.varying.isdisjoint(_NAMES.findall(function.lines[at])):
            return False
        if operation == "phi" and function.labels[at] not in blocks:
            # The branches that lead to a phi choose its value; those of the loop are known.
            earlier = function.leading_to(function.labels[at]) - blocks
            coming += _deciding_in(function, earlier)
            blocks |= earlier
        elif operation not in _ALIKE and _GROUP_ID not in rest:
            return False
        coming += _NAMES.findall(rest)
    return True


def _deciding_in(function: _Function, blocks: Collection[str]) -> Iterator[str]:
    """Yield the names on which branches and choices in blocks depend."""
    for at, line in enumerate(function.lines):
        found = _DECISIONS.match(line) if function.labels.get(at) in blocks else None
        yield from _NAMES.findall(found[1]) if found else ()


def _choices(function: _Function, loop: _Loop, value: str, phis: Collection[str]) -> set[str]:
    """Return the possible sources of a value in a loop, with the phis of its header."""
    seen: set[str] = set()
    found: set[str] = set()
    coming = [value]
    while coming:
        each = coming.pop()
        if each in seen:
            continue
        seen.add(each)
        if each in phis or not function.is_in(each, loop):
            found.add(each)
            continue
        at, operation, rest = function.definitions[each]
        if operation == "phi":
            coming += [incoming for incoming, _ in _INCOMING.findall(function.lines[at])]
        elif operation == "select":
            coming += [side.split()[-1] for side in rest.split(", ")[1:]]
        elif operation == "freeze" or _GROUP_FUNCTION in rest:
            coming += _NAMES.findall(rest)
        elif rest.startswith("i1 "):  # a condition as a number
            found |= {"0", "1"}
        else:
            found.add(each)
    return found


def _is_chosen(function: _Function, loop: _Loop, name: str, value: str) -> bool:
    """Return whether a phi's next value, or one that reaches it in more steps, is a select."""
    phis = _header_phis(function, loop)
    waiting, seen = {value}, {name}
    while waiting:
        found = _choices(function, loop, waiting.pop(), phis)
        if len(found) > 1:
            return True
        for each in (found & phis.keys()) - seen:
            seen.add(each)
            line = function.lines[phis[each]]
            waiting |= {next for next, place in _INCOMING.findall(line) if place in loop.blocks}
    return False


def _hide_low_bits(
    function: _Function, loop: _Loop, before: dict[int, list[str]], kinds: set[str]
) -> None:
    """Hide that the indices of stores in a loop are the lowest bits of a counter."""
    if not any(
        line.startswith("  store ") and function.labels.get(at) in loop.blocks
        for at, line in enumerate(function.lines)
    ):
        return
    places: set[str] = set()
    for name, (at, operation, _) in function.definitions.items():
        if operation == "getelementptr" and function.labels[at] in loop.blocks:
            places |= function.sources(name, loop)
    for name in sorted(places):
        at = function.definitions[name][0]
        found = _LOW_BITS.match(function.lines[at])
        if found is None or not _is_in_steps(function, loop, found["given"]):
            continue
        kind, bits = found["to"] or found["type"], f"%dparray.bits.{at}"
        before.setdefault(at, []).append(f"  {bits} = {found['how']}")
        kinds.add(kind)
        function.lines[at] = f"  {name} = xor {kind} {bits}, {_zero(kind)}"


# Conversions from narrower integers also use the lowest bits: a narrow counter may wrap around.
_LOW_BITS = re.compile(
    r"^  %\S+ = (?P<how>(?:and|[sz]ext(?: nneg)?) (?P<type>i8|i16|i32|i64) (?P<given>%[^\s,]+)"
    r"(?:, \d+| to (?P<to>i32|i64)))$"
)
_IN_STEPS = frozenset(("phi", "add", "sub", "mul", "shl", "or", "and", "sext", "zext", "trunc"))


def _is_in_steps(function: _Function, loop: _Loop, value: str) -> bool:
    """Return whether a value changes by the same number in each step of a loop."""
    sources = function.sources(value, loop)
    return bool(sources) and all(function.definitions[each][1] in _IN_STEPS for each in sources)


def _sums_floats(function: _Function, loop: _Loop) -> bool:
    """Return whether a loop has a sum or product of floats, which the driver would reorder."""
    for name in _header_phis(function, loop):
        for value, _ in _INCOMING.findall(function.definitions[name][2]):
            _, made, of = function.definitions.get(value, (0, "", ""))
            if made in _IN_ORDER and name in _NAMES.findall(of):
                return True
    return False


def _leaves(function: _Function, loop: _Loop) -> bool:
    """Return whether a value of a loop is used after it."""
    return any(
        function.labels[at] in loop.blocks and not function.users.get(name, set()) <= loop.blocks
        for name, (at, _, _) in function.definitions.items()
    )


def _exchanges(function: _Function, loop: _Loop) -> bool:
    """Return whether a loop carries a number into another one, as swaps do."""
    phis = {
        name: value
        for name, (at, operation, rest) in function.definitions.items()
        if operation == "phi" and function.labels[at] == loop.header
        for value, place in _INCOMING.findall(rest)
        if place in loop.blocks
    }
    counting = {
        each for one in function.conditions(loop) for each in function.sources(one, loop)
    } & phis.keys()
    return any(
        (function.sources(value, loop, with_conditions=False) & phis.keys()) - {name} - counting
        for name, value in phis.items()
    )


def _leaves_computed(function: _Function, loop: _Loop) -> bool:
    """Return whether a phi leaves a loop, or a value made of phis that the loop does not carry on.

    The driver computes such a value behind the loop, and behind an outer loop, too, if it knows the
    number of steps of the loop. There it reads the phi as it would be in the next step.
    """
    phis = _header_phis(function, loop)
    carried: set[str] = set()
    for at in phis.values():
        incoming = _INCOMING.findall(function.lines[at])
        carried |= {value for value, place in incoming if place in loop.blocks}
    return any(
        function.labels[at] in loop.blocks
        and name not in carried
        and not function.users.get(name, set()) <= loop.blocks
        and function.sources(name, loop) & phis.keys()
        for name, (at, _, _) in function.definitions.items()
    )


def _hide_exits(
    function: _Function, loop: _Loop, before: dict[int, list[str]], kinds: set[str]
) -> None:
    """Hide the number of steps of a loop: each exit compares an opaque value."""
    exits = function.exits(loop)
    sums_floats = _sums_floats(function, loop)
    exchanges = _leaves(function, loop) and _exchanges(function, loop)
    is_plain = (
        not sums_floats
        and len(exits) == 1
        and exits[0] in loop.latches
        and not exchanges
        and not _leaves_computed(function, loop)
    )
    counted: list[tuple[int, re.Match[str], str]] = []
    for label in exits:
        found = _BRANCHES.match(function.lines[function.ends[label]])
        compared = list(_compared(function, loop, found[1])) if found else []
        if len(exits) == 1 and not all(side for _, _, side in compared):
            return
        counted += compared
    for at, found, side in counted:
        earlier = before.get(at, [])
        # A side that was hidden for an outer loop may be constant in this one.
        is_hidden = any(function.is_in(name, loop) for name in _NAMES.findall("".join(earlier)))
        if side and not is_hidden and not (is_plain and found["order"] in ("eq", "ne")):
            kind = found["type"]
            hidden = f"%dparray.count.{at}.{len(earlier)}"
            if found["order"] in ("eq", "ne"):  # the driver looks through an exclusive or in these
                if sums_floats and not exchanges:
                    line = f"  {hidden} = or {kind} {found[side]}, {_zero(kind)}"
                    kinds.add(kind)
                else:
                    given = f"{kind} {found[side]}, {kind} 0"
                    line = f"  {hidden} = call spir_func {kind} {_UNCHANGED[kind]}({given})"
                    function.varying.add(hidden)
            else:
                line = f"  {hidden} = xor {kind} {found[side]}, {_zero(kind)}"
                kinds.add(kind)
            before[at] = [*earlier, line]
            sides = {"a": found["a"], "b": found["b"], side: hidden}
            function.lines[at] = (
                f"  {found['name']} = icmp {found['order']} {kind} {sides['a']}, {sides['b']}"
            )


def _compared(
    function: _Function, loop: _Loop, condition: str
) -> Iterator[tuple[int, re.Match[str], str]]:
    """Return the comparisons of integers that make up an exit condition, with the side to hide.

    The side is "" if no count can be computed from the comparison.
    """
    coming, seen = [condition], set()
    while coming:
        name = coming.pop()
        if name in seen or name not in function.definitions:
            continue
        seen.add(name)
        at, operation, rest = function.definitions[name]
        if not function.is_in(name, loop):
            continue
        found = _COMPARED.match(function.lines[at])
        if found:
            sides = [side for side in "ab" if function.is_in(found[side], loop)]
            if sides:
                is_counted = all(
                    _is_counted(function, loop, found[side], found["order"]) for side in sides
                )
                yield at, found, sides[0] if is_counted else ""
        elif operation in _TRUTHS:
            coming += _NAMES.findall(rest)


_DECISIONS = re.compile(
    r"  (?:br|%\S+ = (?:select(?: [a-z]+)*|[sz]ext|and|or(?: disjoint)?)) i1 (%[^\s,]+(?:, \S+$)?)"
)


def _hide_conditions(
    function: _Function, loop: _Loop, before: dict[int, list[str]], kinds: set[str]
) -> None:
    """Hide which conditions of the work-item do not change in a loop.

    The driver splits the loop by such a condition. A number that depends on the condition and
    leaves the loop, or is computed behind it, is then that of one work-item for all. Other
    conditions stay, since hidden ones need masks: a convolution would take four times as long.
    """
    phis = _header_phis(function, loop)
    if not phis or _is_uniform(function, loop.blocks, _deciding_in(function, loop.blocks)):
        return
    deciding = {each for one in function.conditions(loop) for each in function.sources(one, loop)}
    kind_of = {name: _kind_of_phi(function.lines[at]) for name, at in phis.items()}
    number = min(phis, key=lambda name: (kind_of[name] not in _UNCHANGED, name not in deciding))
    inside = [at for at in function.labels if function.labels[at] in loop.blocks]
    start = next(
        at
        for at in inside
        if function.labels[at] == loop.header and " = phi " not in function.lines[at]
    )
    bit = f"%dparray.bit.{start}"
    fixed = [
        (at, name)
        for at in inside
        if (found := _DECISIONS.match(function.lines[at]))
        for name in _NAMES.findall(found[1])
        if _is_fixed(function, loop, name)
    ]
    is_chosen = len(function.exits(loop)) > 1 or _chooses_by(function, loop, fixed)
    hidden_here = [
        (at, name) for at, name in fixed if is_chosen or _is_known_outside(function, loop, name)
    ]
    for at, name in hidden_here:
        hidden = f"%dparray.fixed.{at}.{len(before.setdefault(at, []))}"
        before[at].append(f"  {hidden} = xor i1 {name}, {bit}")
        whole = rf"{re.escape(name)}(?=[, ]|$)"
        function.lines[at] = re.sub(whole, hidden, function.lines[at])
    if hidden_here:
        kind, whole = kind_of[number], _INTEGER_OF[kind_of[number]]
        lines, given = [], number
        if kind != whole:
            given = f"{bit}.whole"
            lines = [f"  {given} = bitcast {kind} {number} to {whole}"]
        lines.append(f"  {bit}.none = and {whole} {given}, {_zero(whole)}")
        lines.append(f"  {bit} = icmp ne {whole} {bit}.none, 0")
        before.setdefault(start, [])[:0] = lines
        kinds.add(whole)


def _is_fixed(function: _Function, loop: _Loop, name: str) -> bool:
    """Return whether a condition of the work-item does not change in a loop."""
    coming, seen = [name], set[str]()
    while coming:
        each = coming.pop()
        if each in seen or not function.is_in(each, loop):
            continue
        seen.add(each)
        _, operation, rest = function.definitions[each]
        if operation in ("phi", "load"):  # Most walks end here, after a few steps.
            return False
        coming += _NAMES.findall(rest)
    return not _is_uniform(function, (), [name])


def _chooses_by(function: _Function, loop: _Loop, fixed: Sequence[tuple[int, str]]) -> bool:
    """Return whether fixed conditions choose a number that a loop carries or that leaves it."""
    choosing = {function.lines[at].split(" = ")[0].strip() for at, _ in fixed}
    if any(function.lines[at].startswith("  br ") for at, _ in fixed):
        choosing |= {
            name
            for name, (at, operation, rest) in function.definitions.items()
            if operation == "phi"
            and function.labels[at] in loop.blocks - {loop.header}
            and len({value for value, _ in _INCOMING.findall(rest)}) > 1
        }
    kept = {
        value
        for name in _header_phis(function, loop)
        for value, place in _INCOMING.findall(function.definitions[name][2])  # before it is hidden
        if place in loop.blocks
    } | {
        name
        for name, (at, _, _) in function.definitions.items()
        if function.labels[at] in loop.blocks and not function.users.get(name, set()) <= loop.blocks
    }
    return any(function.sources(each, loop) & choosing for each in kept)


def _is_known_outside(function: _Function, loop: _Loop, name: str) -> bool:
    """Return whether a condition, or one on the same numbers, is used outside a loop."""
    about = {name, *_NAMES.findall(function.definitions[name][2])}
    return any(
        about & set(_NAMES.findall(function.lines[at]))
        for at, label in function.labels.items()
        if label not in loop.blocks
        and not function.lines[at].startswith(f"  {name} = ")
        and (name in function.lines[at] or " = icmp " in function.lines[at])
    )


def _is_counted(function: _Function, loop: _Loop, name: str, order: str) -> bool:
    """Return whether the driver might know how a number changes from step to step."""
    for each in function.sources(name, loop):
        _, operation, rest = function.definitions[each]
        is_call = operation in ("call", "tail") and "@llvm." not in rest
        if operation in _UNCOUNTED or is_call:
            return False
        if (
            operation == "xor"
            and order not in ("eq", "ne")
            and not rest.rsplit(", ", 1)[1].lstrip("-").isdigit()
        ):
            return False
    return True


# Intel's CPU driver (2026.2) reads values of other work-items from private memory that has no start
# of a lifetime. LLVM marks lifetimes where it inlines a function with memory, and every kernel is
# such a function, inlined into its entry point; ``tests/compiler/module_rules.py`` checks modules.


# LLVM aligns private memory like its longest vector. In kernels with a barrier or a group
# algorithm, Intel's CPU driver (2026.2) saves values needed afterwards for each work-item; it loses
# the address of memory aligned to more than 64 bytes, and the kernel writes to address 0. The
# widest registers have 64 bytes.
_ALIGNMENTS = re.compile(r"(?<=, align )(?:128|256|512|1024)$", re.MULTILINE)


# LLVM's passes compute indices in 64 bits and cut the result, where a GPU multiplies 32 bits in one
# instruction and 64 in several. So indices of 32 bits are cut by a function while they run.
LOW_BITS = "dparray.low_bits"
_CALLED_LOW_BITS = re.compile(
    rf"= (?:tail )?call spir_func i32 @{re.escape(LOW_BITS)}\(i64 ([^)]+)\).*$", re.MULTILINE
)
_DECLARED_LOW_BITS = re.compile(rf"^declare .*@{re.escape(LOW_BITS)}\(.*\n", re.MULTILINE)


def writable(text: str) -> str:
    """Return a module's text in a form that the back end writes correctly."""
    if LOW_BITS in text:
        text = _CALLED_LOW_BITS.sub(r"= trunc i64 \1 to i32", _DECLARED_LOW_BITS.sub("", text))
    text = _without_odd_integers(_ALIGNMENTS.sub("64", _MEETINGS.sub("", text)))
    ids, computed = of_items = _ids_and_computed(text, _IDS)
    if _GROUP_ID in text:
        of_items = _ids_and_computed(text, _IDS_OF_ITEMS)
    text = _with_hidden_places(_with_hidden_ids(text, *of_items), ids, computed)
    text = _EXTREMES.sub(_chosen, _with_hidden_choices(_with_hidden_ones(text)))
    text = _CONJUNCTIONS.sub(r"= and i1 \1, \2", text)
    text = _DISJUNCTIONS.sub(r"= or i1 \1, \2", text)
    text = _with_plain_cuts(_with_plain_extensions(_with_known_widths(text)))
    text = _with_uncounted_loops(text)
    for called in _HIDING:
        name = re.escape(called[: called.index("(") + 1].split()[1])
        if re.search(name, text) and not re.search(rf"^declare .*{name}", text, re.MULTILINE):
            text += f"\ndeclare spir_func {called}\n"
    return expanded(_FLOATS_OF_SIGNS.sub(_choose_float, text))


_HIDING = (
    *(f"i64 {_FIRST_ID}(i32)", f"i64 {_NO_BYTES}(i64, i64)", f"i32 {_DIMENSIONS}"),
    *(f"{kind} {name}({kind}, {kind})" for kind, name in _UNCHANGED.items()),
)


# --- group functions in loops ---------------------------------------------------------------------
# LLVM's passes can give a loop several latches, for example when they sink a store from one of two
# branches. Intel's CPU driver treats such a loop as two nested ones, and work-items on different
# paths no longer meet in a group function of the loop. A call that no pass may duplicate keeps a
# single latch; it is removed from the output.

_MEET = "@dparray.meet()"
_MEETINGS = re.compile(rf"^(?:  (?:tail )?call|declare) void {re.escape(_MEET)}.*\n", re.MULTILINE)
_CONVERGENT_GROUPS = re.compile(r"^attributes (#\d+) = \{[^}\n]* convergent ", re.MULTILINE)
_NAMED = r"(@[-\w.$]+|@\"[^\"]*\")\("
_DECLARED = re.compile(rf"^declare [^@\n]*{_NAMED}(.*)$", re.MULTILINE)
_DEFINED = re.compile(rf"^define [^@\n]*{_NAMED}")
_CALLED = re.compile(rf"^  (?:%\S+ = )?(?:tail )?call [^@\n]*{_NAMED}", re.MULTILINE)


def with_meetings(text: str) -> str:
    """Return a module's text in which loops with group functions have a single latch."""
    groups = set(_CONVERGENT_GROUPS.findall(text))
    together = {
        name
        for name, rest in _DECLARED.findall(text)
        if groups & set(rest.split()) and "__spirv_Atomic" not in name
    }
    if not together:
        return text
    calls = {
        defined[1]: set(_CALLED.findall(function[2]))
        for function in _FUNCTION.finditer(text)
        if (defined := _DEFINED.match(function[1]))
    }
    while more := {name for name, called in calls.items() if called & together} - together:
        together |= more
    meeting = _FUNCTION.sub(lambda of: of[1] + _with_one_way_back(of[2], together), text)
    attributes = "convergent nounwind willreturn memory(inaccessiblemem: readwrite)"
    return f"{meeting}\ndeclare void {_MEET} {attributes}\n"


def _with_one_way_back(body: str, together: set[str]) -> str:
    """Return the lines of a function; ``together`` are the functions that groups call together."""
    if "\n  switch " in body or together.isdisjoint(_CALLED.findall(body)):
        return body
    function = _Function(body.splitlines())
    lines, added = function.lines, []
    calling = {
        function.labels[at]
        for at, line in enumerate(lines)
        if (called := _CALLED.match(line)) and called[1] in together
    }
    for number, loop in enumerate(function.loops()):
        if calling.isdisjoint(loop.blocks):
            continue
        back = f"%dparray.back.{number}"
        added.append(f"{back[1:]}:")
        for name, (at, operation, _) in function.definitions.items():
            if operation != "phi" or function.labels[at] != loop.header:
                continue
            incoming = _INCOMING.findall(lines[at])
            kind = lines[at].split(" = phi ")[1].split(" [ ")[0]
            again = [f"[ {value}, {place} ]" for value, place in incoming if place in loop.latches]
            first = [
                f"[ {each}, {place} ]" for each, place in incoming if place not in loop.latches
            ]
            added.append(f"  {back}.{at} = phi {kind} {', '.join(again)}")
            lines[at] = f"  {name} = phi {kind} {', '.join([*first, f'[ {back}.{at}, {back} ]'])}"
        for label in loop.latches:
            end = function.ends[label]
            target = rf"label {re.escape(loop.header)}(?=,|$)"
            lines[end] = re.sub(target, f"label {back}", lines[end])
        added += [f"  call void {_MEET}", f"  br label {loop.header}"]
    return "\n".join([*lines, *added, ""])


# --- odd integers ---------------------------------------------------------------------------------
# LLVM counts the steps of a loop up to a masked number in as many bits as the mask has, and
# truncates numbers to the bits that are used. The back end cannot compare integers of fewer than 8
# bits, and other odd widths need an extension that not all drivers have. They are therefore stored
# in 8, 16, 32 or 64 bits, with zeros in the higher bits.

_ODD = r"i(?:[2-7]|9|1[0-57-9]|2\d|3[013-9]|4\d|5\d|6[0-3])"
_HAS_ODD = re.compile(rf"(?<![^\s(]){_ODD}(?![\w.])")
_ODD_RESULT = re.compile(r"^  (%\S+) = (.*)$")
_ODD_EXTENSION = re.compile(r"^([sz])ext (?:nneg )?i(\d+) (\S+) to i(\d+)$")
_ODD_CUT = re.compile(r"^trunc (?:nuw |nsw )*i(\d+) (\S+) to i(\d+)$")
_ODD_ORDER = re.compile(rf"^icmp (?:samesign )?(\w+) ({_ODD}) ([^\s,]+), (\S+)$")
_ODD_CHOICE = re.compile(rf"^(select i1 [^\s,]+, )({_ODD}) ([^\s,]+), {_ODD} (\S+)$")
_ODD_PHI = re.compile(rf"^phi ({_ODD}) (.*)$")
_ODD_FREEZE = re.compile(rf"^freeze ({_ODD}) (\S+)$")
_ODD_ARITHMETIC = re.compile(
    rf"^(?P<operation>add|sub|mul|shl|xor|and|or|lshr|ashr|[us]div|[us]rem) "
    rf"(?:nuw |nsw |exact |disjoint )*(?P<type>{_ODD}) (?P<a>[^\s,]+), (?P<b>\S+)$"
)
_ODD_EXTREME = re.compile(
    rf"^(?:tail )?call (?P<type>{_ODD}) @llvm\.(?P<which>[su]m(?:in|ax))\.i\d+"
    rf"\({_ODD} (?:range\([^)]*\) )?(?P<a>[^\s,]+), {_ODD} (?:range\([^)]*\) )?(?P<b>[^\s,)]+)\).*$"
)
_OVERFLOWING = frozenset(("add", "sub", "mul", "shl", "xor"))


def _standard_width(bits: int) -> int:
    """Return the width of the standard integer for some bits; a Boolean stays 1."""
    return 1 if bits == 1 else next(each for each in (8, 16, 32, 64) if bits <= each)


class _OddLine:
    """The lines that replace one with integers of odd widths.

    Attributes:
        name: the name of the result.
        lines: all lines except the last, which computes the result.
    """

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.lines: list[str] = []

    def add(self, text: str) -> str:
        """Add an instruction and return the name of its result."""
        name = f"%dparray.odd.{self.number}.{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def operand(self, value: str, bits: int, *, signed: bool = False) -> str:
        """Return an integer in its standard width, extended by its sign or by zeros."""
        if re.fullmatch(r"-?\d+", value):
            number = int(value) % (1 << bits)
            return str(number - (1 << bits) if signed and number >> (bits - 1) else number)
        width = _standard_width(bits)
        if not signed or width == bits:
            return value
        shifted = self.add(f"shl i{width} {value}, {width - bits}")
        return self.add(f"ashr i{width} {shifted}, {width - bits}")

    def masked(self, text: str, bits: int) -> list[str]:
        """Return all lines; the last truncates the result of an instruction to some bits."""
        width = _standard_width(bits)
        if width != bits:
            text = f"and i{width} {self.add(text)}, {(1 << bits) - 1}"
        return [*self.lines, f"  {self.name} = {text}"]

    def extension(self, sign: str, source: int, value: str, target: int) -> list[str]:
        """Return the lines of ``sext`` or ``zext``."""
        value = self.operand(value, source, signed=sign == "s")
        start, end = _standard_width(source), _standard_width(target)
        extended = (
            f"{sign}ext i{start} {value} to i{end}" if start < end else f"or i{end} {value}, 0"
        )
        return self.masked(extended, target)

    def cut(self, source: int, value: str, target: int) -> list[str]:
        """Return the lines of ``trunc``."""
        start, end = _standard_width(source), _standard_width(target)
        return self.masked(
            f"trunc i{start} {value} to i{end}" if end < start else f"or i{end} {value}, 0", target
        )

    def arithmetic(self, operation: str, bits: int, a: str, b: str) -> list[str]:
        """Return the lines of an operation on two integers."""
        signed = operation in ("ashr", "sdiv", "srem")
        a = self.operand(a, bits, signed=signed)
        b = self.operand(b, bits, signed=signed and operation != "ashr")
        text = f"{operation} i{_standard_width(bits)} {a}, {b}"
        if signed or operation in _OVERFLOWING:
            return self.masked(text, bits)
        return [*self.lines, f"  {self.name} = {text}"]

    def order(self, order: str, bits: int, a: str, b: str) -> str:
        """Return a comparison."""
        a, b = (self.operand(each, bits, signed=order.startswith("s")) for each in (a, b))
        return f"icmp {order} i{_standard_width(bits)} {a}, {b}"


def _without_odd_integers(text: str) -> str:
    """Return a module's text with integers of 1, 8, 16, 32 or 64 bits only."""
    if not _HAS_ODD.search(text):
        return text
    lines: list[str] = []
    for number, line in enumerate(text.splitlines()):
        lines += _with_standard_integers(line, number) if _HAS_ODD.search(line) else [line]
    return "\n".join([*lines, ""])


def _with_standard_integers(line: str, number: int) -> list[str]:
    result = _ODD_RESULT.match(line)
    if not result:
        return [] if line.startswith("declare ") and "@llvm." in line else [line]
    name, rest = result.groups()
    one = _OddLine(name, number)
    if found := _ODD_EXTENSION.match(rest):
        return one.extension(found[1], int(found[2]), found[3], int(found[4]))
    if found := _ODD_CUT.match(rest):
        return one.cut(int(found[1]), found[2], int(found[3]))
    if found := _ODD_ARITHMETIC.match(rest):
        return one.arithmetic(found["operation"], int(found["type"][1:]), found["a"], found["b"])
    if found := _ODD_ORDER.match(rest):
        text = one.order(found[1], int(found[2][1:]), found[3], found[4])
        return [*one.lines, f"  {name} = {text}"]
    if found := _ODD_EXTREME.match(rest):
        bits = int(found["type"][1:])
        a, b = (one.operand(found[side], bits) for side in "ab")
        is_first = one.add(one.order(_ORDERS[found["which"]], bits, found["a"], found["b"]))
        width = _standard_width(bits)
        return [*one.lines, f"  {name} = select i1 {is_first}, i{width} {a}, i{width} {b}"]
    if found := _ODD_CHOICE.match(rest):
        bits = int(found[2][1:])
        a, b = (f"i{_standard_width(bits)} {one.operand(each, bits)}" for each in found.group(3, 4))
        return [f"  {name} = {found[1]}{a}, {b}"]
    if found := _ODD_PHI.match(rest):
        bits = int(found[1][1:])
        incoming = (
            f"[ {one.operand(value, bits)}, {place} ]" for value, place in _INCOMING.findall(rest)
        )
        return [f"  {name} = phi i{_standard_width(bits)} {', '.join(incoming)}"]
    if found := _ODD_FREEZE.match(rest):
        return [f"  {name} = freeze i{_standard_width(int(found[1][1:]))} {found[2]}"]
    return [line]


# --- vectors --------------------------------------------------------------------------------------
# LLVM represents a part of an element, such as a truncated one, as an element of a vector with more
# and smaller elements, for example 32 or 6, which SPIR-V does not have.

_WIDTHS = (2, 3, 4, 8, 16)
_VECTORS = re.compile(
    r"^(?P<head> +(?P<name>%\S+) = (?:load |bitcast [^\n]* to ))"
    r"<(?P<count>\d+) x i(?P<bits>8|16|32)>(?P<rest>[^\n]*)$",
    re.MULTILINE,
)


def _with_known_widths(text: str) -> str:
    """Return a module's text with SPIR-V's vectors only."""
    for found in list(_VECTORS.finditer(text)):
        count, bits = int(found["count"]), int(found["bits"])
        fitting = (wide for wide in (64, 32, 16) if count * bits % wide == 0)
        wide = next((each for each in fitting if count * bits // each in _WIDTHS), 0)
        if count in _WIDTHS or not wide:
            continue
        kind = f"<{count * bits // wide} x i{wide}>"
        text = text.replace(found[0], f"{found['head']}{kind}{found['rest']}")

        def part(taken: re.Match[str], kind: str = kind, wide: int = wide, bits: int = bits) -> str:
            name, vector, (lane, shift) = taken[1], taken[2], divmod(int(taken[3]) * bits, wide)
            plain = name.strip('%"')
            return (
                f'  %"{plain} whole" = extractelement {kind} {vector}, i64 {lane}\n'
                f'  %"{plain} moved" = lshr i{wide} %"{plain} whole", {shift}\n'
                f'  {name} = trunc i{wide} %"{plain} moved" to i{bits}'
            )

        element = (
            rf"^ +(%\S+) = extractelement <{count} x i{bits}> ({re.escape(found['name'])}), i\d+ "
        )
        text = re.sub(rf"{element}(\d+)$", part, text, flags=re.MULTILINE)
    return text


# The back end combines a zero extension of a sign extension, and crashes if they are vectors.
_SIGN_EXTENSIONS = re.compile(r"^ +(%\S+) = sext (<\d+ x i\d+>) (%\S+) to <", re.MULTILINE)
_ZERO_EXTENSIONS = re.compile(
    r"^ +(?P<name>%\S+) = zext (?:nneg )?<\d+ x i(?P<bits>\d+)> (?P<given>%\S+) "
    r"to (?P<kind><\d+ x i\d+>)$",
    re.MULTILINE,
)


def _with_plain_extensions(text: str) -> str:
    """Return a module's text in which the sign extension is complete, followed by a mask."""
    by_signs = {name: (kind, given) for name, kind, given in _SIGN_EXTENSIONS.findall(text)}

    def masked(found: re.Match[str]) -> str:
        if found["given"] not in by_signs:
            return found[0]
        source, given = by_signs[found["given"]]
        name, kind = found["name"], found["kind"]
        whole = f'%"{name[1:].strip(chr(34))} whole"'
        element = _element_of(kind)
        mask = (1 << int(found["bits"])) - 1
        return (
            f"  {whole} = sext {source} {given} to {kind}\n"
            f"  {name} = and {kind} {whole}, splat ({element} {mask})"
        )

    return _ZERO_EXTENSIONS.sub(masked, text) if by_signs else text


# The back end masks a truncated and zero-extended number in its original width, whatever the target
# type: a 64-bit integer in a 32-bit operation, which all drivers reject. LLVM's passes leave none
# of these behind, except from parts of elements.
_KIND = r"(?:i\d+|<\d+ x i\d+>)"
_CUTS = re.compile(
    rf"^ +({_NAMES.pattern}) = trunc (?:nuw |nsw )*({_KIND}) ({_NAMES.pattern}) to {_KIND}$",
    re.MULTILINE,
)
_CUT_EXTENSIONS = re.compile(
    rf"^ +(?P<name>{_NAMES.pattern}) = zext (?:nneg )?(?P<cut>{_KIND}) (?P<given>{_NAMES.pattern}) "
    rf"to (?P<kind>{_KIND})$",
    re.MULTILINE,
)


def _element_of(kind: str) -> str:
    """Return the type of an element: ``i32`` for ``<8 x i32>`` and for ``i32``."""
    return kind.split()[-1].rstrip(">")


def _with_plain_cuts(text: str) -> str:
    """Return a module's text in which no number is truncated below the width of its use."""
    cuts = {name: (kind, given) for name, kind, given in _CUTS.findall(text)}

    def masked(found: re.Match[str]) -> str:
        source, given = found["cut"], found["given"]
        while given in cuts:
            source, given = cuts[given]
        name, kind = found["name"], found["kind"]
        element = _element_of(kind)
        if int(_element_of(source)[1:]) <= int(element[1:]):
            return found[0]
        mask = (1 << int(_element_of(found["cut"])[1:])) - 1
        whole = f'%"{name[1:].strip(chr(34))} uncut"'
        bits = f"{mask}" if kind == element else f"splat ({element} {mask})"
        cut = f"  {whole} = trunc {source} {given} to {kind}"
        return f"{cut}\n  {name} = and {kind} {whole}, {bits}"

    return _CUT_EXTENSIONS.sub(masked, text) if cuts else text


# --- intrinsics -----------------------------------------------------------------------------------
# LLVM generates these from plain code: bit reversal, and sums and products with overflow tests. The
# back end crashes for the first two, and drivers for its code for products.

_EXPANDED = r"bitreverse|s(?:add|sub)\.with\.overflow|[us]mul\.with\.overflow"
_DECLARATION = re.compile(
    rf"^declare [^@\n]*@llvm\.(?P<name>{_EXPANDED})\.i(?P<width>8|16|32|64)\([^\n]*$",
    re.MULTILINE,
)


def expanded(text: str) -> str:
    """Return the text of a module without these intrinsics."""
    definitions = []
    helpers = set()
    for found in _DECLARATION.finditer(text):
        name, width = found["name"], int(found["width"])
        if name == "bitreverse":
            definitions.append(_reversal(width))
        elif "mul" not in name:
            definitions.append(_sum(width, name))
        else:
            definition, helper = _product(width, signed=name.startswith("s"))
            definitions.append(definition)
            helpers.add(helper)
    if not definitions:
        return text
    text = _DECLARATION.sub("", text)
    text = re.sub(rf"@llvm\.({_EXPANDED})\.i(8|16|32|64)\b", r"@dparray.\1.i\2", text)
    declared = [helper for helper in sorted(helpers) if helper not in text]
    return "\n".join([text, *declared, *definitions])


def _reversal(width: int) -> str:
    """Return the definition of bit reversal: swap neighbors, then pairs, and so on."""
    kind = f"i{width}"
    lines = [f"define internal {kind} @dparray.bitreverse.{kind}({kind} %v0) {{"]
    step, at = 1, 0
    while step < width:
        mask = sum(((1 << step) - 1) << bit for bit in range(0, width, 2 * step))
        lines += [
            f"  %a{at} = lshr {kind} %v{at}, {step}",
            f"  %b{at} = and {kind} %a{at}, {mask}",
            f"  %c{at} = and {kind} %v{at}, {mask}",
            f"  %d{at} = shl {kind} %c{at}, {step}",
            f"  %v{at + 1} = or {kind} %b{at}, %d{at}",
        ]
        step, at = 2 * step, at + 1
    return "\n".join([*lines, f"  ret {kind} %v{at}", "}", ""])


def _sum(width: int, name: str) -> str:
    """Return the definition of a sum or difference with overflow, which the signs show."""
    kind, both = f"i{width}", f"{{ i{width}, i1 }}"
    operation = name[1:4]
    # A sum overflows if both operands have the other sign; a difference, by the operands' signs.
    other = "%low" if operation == "add" else "%a"
    return f"""define internal {both} @dparray.{name}.{kind}({kind} %a, {kind} %b) {{
  %low = {operation} {kind} %a, %b
  %first = xor {kind} %a, %low
  %second = xor {kind} %b, {other}
  %signs = and {kind} %first, %second
  %over = icmp slt {kind} %signs, 0
  %half = insertvalue {both} undef, {kind} %low, 0
  %whole = insertvalue {both} %half, i1 %over, 1
  ret {both} %whole
}}
"""


_CODES = {8: "ha", 16: "ts", 32: "ji", 64: "ml"}


def _product(width: int, *, signed: bool) -> tuple[str, str]:
    """Return the definition of a product with overflow by its upper half, and the declaration."""
    kind = f"i{width}"
    name = f"@dparray.{'s' if signed else 'u'}mul.with.overflow.{kind}"
    upper = f"@_Z6mul_hi{2 * _CODES[width][signed]}"
    both = f"{{ {kind}, i1 }}"
    fill = f"ashr {kind} %low, {width - 1}" if signed else f"and {kind} %low, 0"
    definition = f"""define internal {both} {name}({kind} %a, {kind} %b) {{
  %low = mul {kind} %a, %b
  %high = call spir_func {kind} {upper}({kind} %a, {kind} %b)
  %fill = {fill}
  %over = icmp ne {kind} %high, %fill
  %half = insertvalue {both} undef, {kind} %low, 0
  %whole = insertvalue {both} %half, i1 %over, 1
  ret {both} %whole
}}
"""
    return definition, f"declare spir_func {kind} {upper}({kind}, {kind})"


# --- modules --------------------------------------------------------------------------------------


def optimise(binding: Any, machine: Any, module: Any, speed: int = SPEED) -> None:
    """Run LLVM's passes over a module whose functions except the entry point are internal."""
    tuning = binding.create_pipeline_tuning_options(speed_level=speed)
    # The driver vectorizes over work-items.
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_interleaving = False
    tuning.loop_unrolling = True
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    cleaning = binding.create_new_module_pass_manager()
    # Switches are lowered to branches: for a switch with cases that share a block with a phi, IGC
    # 1.0.12504 loses entries of the phi and crashes.
    cleaning.add_lower_switch_pass()
    cleaning.add_global_dead_code_eliminate_pass()
    cleaning.add_strip_dead_prototype_pass()
    cleaning.run(module, builder)


def optimised(binding: Any, machine: Any, module: Any, speed: int = SPEED) -> str:
    """Return the text of a module, optimized, in a form that the back end writes correctly."""
    text = str(module)
    meeting = with_meetings(text)
    if meeting != text:
        module = binding.parse_assembly(meeting)
    optimise(binding, machine, module, speed)
    return writable(str(module))


def _machine(binding: Any) -> Any:
    """Return a new target machine: each writes one module, and takes 1 ms to create."""
    return binding.Target.from_triple(TRIPLE).create_target_machine(opt=SPEED)


def _optimised(binding: Any, machine: Any, text: str) -> str:
    head = f'target datalayout = "{machine.target_data}"\ntarget triple = "{TRIPLE}"\n'
    return optimised(binding, machine, binding.parse_assembly(head + text))


def _written(binding: Any, machine: Any, text: str, wanted: int) -> bytes:
    """Return the back end's output for a module, from a machine that has not written any."""
    module = binding.parse_assembly(text)
    if wanted == ASSEMBLY:
        assembly: str = machine.emit_assembly(module)
        return assembly.encode()
    binary: bytes = machine.emit_object(module)
    return binary


# Memory that a fork first touches is copied or mapped, which takes as long as writing a module, so
# a fork does this in advance. The passes leave no state behind, and neither does the back end for a
# module without functions.
_REHEARSAL = """
declare spir_func i64 @_Z13get_global_idj(i32)
declare spir_func float @_Z3expf(float)
define spir_kernel void @rehearsal(ptr addrspace(1) %x, i64 %n) {
entry:
  %id = call spir_func i64 @_Z13get_global_idj(i32 0)
  br label %body
body:
  %at = phi i64 [ %id, %entry ], [ %next, %body ]
  %place = getelementptr float, ptr addrspace(1) %x, i64 %at
  %old = load float, ptr addrspace(1) %place
  %new = call spir_func float @_Z3expf(float %old)
  store float %new, ptr addrspace(1) %place
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %end
end:
  ret void
}
"""
_EMPTY = f'target triple = "{TRIPLE}"\n'


class Writer(NamedTuple):
    """A fork that waits for one module and writes it.

    Attributes:
        process: its process id.
        request: the pipe from which it reads the module.
        output: the pipe to which it writes.
        errors: its error output.
    """

    process: int
    request: int
    output: int
    errors: int

    @classmethod
    def begun(cls, binding: Any) -> Writer:
        """Return a new fork."""
        request_from, request_to = os.pipe()
        output_from, output_to = os.pipe()
        error_from, error_to = os.pipe()
        child = os.fork()
        if child:
            for end in (request_from, output_to, error_to):
                os.close(end)
            return cls(child, request_to, output_from, error_from)
        try:
            for end in (request_to, output_from, error_from):
                os.close(end)
            os.dup2(error_to, 2)
            _written(binding, _machine(binding), _EMPTY, BINARY)
            optimiser, machine = _machine(binding), _machine(binding)
            _optimised(binding, optimiser, _REHEARSAL)
            with os.fdopen(request_from, "rb") as request:
                head = request.read(REQUEST.size)
                text = request.read().decode()
            if len(head) == REQUEST.size:
                wanted, content = REQUEST.unpack(head)[1], b""
                if wanted == OPTIMISED:
                    text, wanted = _optimised(binding, optimiser, text), BINARY
                    content = text.encode()
                    content = LENGTH.pack(len(content)) + content
                content += _written(binding, machine, text, wanted)
                with os.fdopen(output_to, "wb") as output:
                    output.write(LENGTH.pack(len(content)) + content)
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode()[:4000])
            os._exit(3)

    def answer(self, request: bytes) -> tuple[int, bytes]:
        """Return 0 and the output before the fork ends, which takes 2 ms; or else :meth:`ended`."""
        with contextlib.suppress(BrokenPipeError), os.fdopen(self.request, "wb") as out:
            out.write(request)
        with os.fdopen(self.output, "rb") as output:
            head = output.read(LENGTH.size)
            if len(head) == LENGTH.size:
                content = output.read(length := LENGTH.unpack(head)[0])
                if len(content) == length:
                    return 0, content
        return self.ended()

    def ended(self) -> tuple[int, bytes]:
        """Wait for the fork; return its exit status and its error output."""
        with os.fdopen(self.errors, "rb") as errors:
            complaint = errors.read()
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1]), complaint


def main(packages: str, extensions: str) -> None:
    """Answer requests until there are no more."""
    os.setsid()  # signals of a terminal to the parent's group must not reach this process
    sys.path.insert(0, packages)
    binding = importlib.import_module("llvmlite.binding")

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.set_option("", f"--spirv-ext={extensions}")
    for option in OPTIONS:
        binding.set_option("", option)
    # Loaded once, before forking.
    _written(binding, _machine(binding), _EMPTY, BINARY)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        writer = Writer.begun(binding)
        head = requests.read(REQUEST.size)
        if len(head) < REQUEST.size:
            writer.answer(b"")
            return
        request = head + requests.read(REQUEST.unpack(head)[0])
        status, content = writer.answer(request)
        # the system may have killed it for its memory use while it waited
        if status == -signal.SIGKILL:
            writer = Writer.begun(binding)
            status, content = writer.answer(request)
        try:
            answers.write(ANSWER.pack(status, len(content)) + content)
            answers.flush()
        except BrokenPipeError:  # The parent ended meanwhile. Closing the stream would raise again.
            os._exit(0)
        if not status:
            writer.ended()


if __name__ == "__main__":
    main(*sys.argv[1:])
