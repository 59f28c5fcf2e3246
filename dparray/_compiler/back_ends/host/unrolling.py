"""Mark short loops of constant length, so that LLVM unrolls them.

Otherwise each step would be a loop over work-items, and private arrays would stay in memory.
"""

from __future__ import annotations

import operator
import re

#: Steps of a short loop, and the instructions that replace it, at most.
_MAX_STEPS, _MAX_UNROLLED = 16, 512
#: Counters beyond might wrap around.
_MAX_COUNTER = 100
_BLOCK = re.compile(r'^("[^"]*"|[-\w.$]+):')
_LATCH = re.compile(r"  br i1 (%\S+), label %(\S+), label %(\S+)")
_TEST = re.compile(r"icmp (?:samesign )?([us]?)(eq|ne|lt|le|gt|ge) i\d+ (%\S+), (-?\d+)")
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
            to = [heads.get(each, at) for each in latch.groups()[1:]]
            begin = min(to)
            steps = _steps(latch[1], values, to[0] == begin)
            size = sum(weights[begin:at]) * steps
            if 0 < size <= _MAX_UNROLLED and "@_Z" not in "".join(lines[begin:at]):
                weights[begin:at] = [each * steps for each in weights[begin:at]]
                number = 910_000 + len(marks)
                lines[at] += f", !llvm.loop !{number}"
                marks.append(f"!{number} = distinct !{{!{number}, !{number + 1}}}")
                marks.append(f'!{number + 1} = !{{!"llvm.loop.unroll.full"}}')
    return "\n".join([*lines, *marks, ""]) if marks else text


def _steps(test: str, values: dict[str, str], goes_on: bool) -> int:
    """Return how many steps a loop has; 0 if that is not a small constant.

    Args:
        test: the condition at its end.
        values: the instructions of the function, by the names of their results.
        goes_on: whether the loop goes on if the condition is true.
    """
    found = _TEST.fullmatch(values.get(test, ""))
    if not found:
        return 0
    sign, order, tested, bound = found.groups()
    step = _STEP.fullmatch(values.get(tested, ""))
    counter = step[1] if step else tested
    begin = _BEGIN.fullmatch(values.get(counter, ""))
    if not begin:
        return 0
    after = begin[1] or begin[3]
    step = _STEP.fullmatch(values.get(after, ""))
    if not step or step[1] != counter or tested not in (counter, after):
        return 0
    number = int(begin[2])
    for steps in range(1, _MAX_STEPS + 1):
        after_step = number + int(step[2])
        value = after_step if tested == after else number
        if abs(value) > _MAX_COUNTER or (sign == "u" and value < 0):
            return 0
        if getattr(operator, order)(value, int(bound)) != goes_on:
            return steps
        number = after_step
    return 0
