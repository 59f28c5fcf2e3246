"""Mark short loops of constant length, so that LLVM unrolls them.

Otherwise each step would be a loop over work-items, and private arrays would stay in memory.
"""

from __future__ import annotations

import re

#: Steps of a short loop, and the instructions that replace it, at most.
_MAX_STEPS, _MAX_UNROLLED = 16, 512
_BLOCK = re.compile(r'^("[^"]*"|[-\w.$]+):')
_LATCH = re.compile(r"  br i1 (%\S+), label %(\S+), label %(\S+)")
_END = re.compile(r"icmp (?:samesign )?(eq|ne|[us]lt) i\d+ (%\S+), (-?\d+)")
_STEP = re.compile(r"add [nuws ]*i\d+ (%\S+), (-?\d+)")
_VALUE = r"\[ (%\S+), \S+ \]"
_BEGIN = re.compile(rf"phi i\d+ (?:{_VALUE}, )?\[ (-?\d+), \S+ \](?:, {_VALUE})?")


def with_marked_loops(text: str) -> str:
    """Return a module with marks at the loops that LLVM is to unroll.

    Args:
        text: an optimized module, whose loops are tested at their ends.
    """
    lines, heads, values = text.splitlines(), dict[str, int](), dict[str, str]()
    weights, marks = [1] * len(lines), list[str]()
    for at, line in enumerate(lines):
        if line.startswith("define "):
            heads, values = {}, {}
        elif block := _BLOCK.match(line):
            heads[block[1]] = at
        elif " = " in line:
            name, _, values[name] = line.strip().partition(" = ")
        elif latch := _LATCH.fullmatch(line):
            begin = min(heads.get(latch[2], at), heads.get(latch[3], at))
            steps = _steps(latch[1], values)
            size = sum(weights[begin:at]) * steps
            if 0 < size <= _MAX_UNROLLED and "@_Z" not in "".join(lines[begin:at]):
                weights[begin:at] = [each * steps for each in weights[begin:at]]
                number = 910_000 + len(marks)
                lines[at] += f", !llvm.loop !{number}"
                marks.append(f"!{number} = distinct !{{!{number}, !{number + 1}}}")
                marks.append(f'!{number + 1} = !{{!"llvm.loop.unroll.full"}}')
    return "\n".join([*lines, *marks, ""]) if marks else text


def _steps(test: str, values: dict[str, str]) -> int:
    """Return how many steps a loop has that ends by a test; 0 if that is not a small constant."""
    end = _END.fullmatch(values.get(test, ""))
    step = _STEP.fullmatch(values.get(end[2], "")) if end else None
    begin = _BEGIN.fullmatch(values.get(step[1], "")) if step else None
    if not end or not step or not begin or end[2] not in (begin[1], begin[3]):
        return 0
    length, each = int(end[3]) - int(begin[2]), int(step[2])
    if each == 0 or (length % each and end[1] in ("eq", "ne")):
        return 0
    steps = -(-length // each)
    return steps if 0 < steps <= _MAX_STEPS else 0
