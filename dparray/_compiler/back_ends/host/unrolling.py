"""Mark short loops of constant length, so that LLVM unrolls them.

Otherwise each step would be a loop over work-items, and private arrays would stay in memory.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Mapping

#: Steps of a short loop, the instructions that replace it, and those of a function, at most.
_MAX_STEPS, _MAX_UNROLLED, _MAX_LENGTH = 16, 512, 2048
#: Counters beyond might wrap around.
_MAX_COUNTER = 100
_BLOCK = re.compile(r'^("[^"]*"|[-\w.$]+):')
_LATCH = re.compile(r"  br i1 (%\S+), label %(\S+), label %(\S+)")
_LABEL = re.compile(r'label %("[^"]*"|[-\w.$]+)')
_TEST = re.compile(r"icmp (?:samesign )?([us]?)(eq|ne|lt|le|gt|ge) i\d+ (%\S+), (-?\d+)")
#: LLVM's test of a loop of two steps.
_ONCE_MORE = re.compile(r"phi i1 \[ (?:false, \S+ \], \[ true|true, \S+ \], \[ false), \S+ \]")
_STEP = re.compile(r"add [nuws ]*i\d+ (%\S+), (-?\d+)")
_VALUE = r"\[ (%\S+), \S+ \]"
_BEGIN = re.compile(rf"phi i\d+ (?:{_VALUE}, )?\[ (-?\d+), \S+ \](?:, {_VALUE})?")


def with_marked_loops(text: str) -> str:
    """Return a module with marks at the loops that LLVM is to unroll.

    Args:
        text: an optimized module, whose loops are tested at their ends.
    """
    lines, marks = text.splitlines(), list[str]()
    for at, line in enumerate(lines):
        if line.startswith("define "):
            _mark_loops(lines, range(at + 1, lines.index("}", at)), marks)
    return "\n".join([*lines, *marks, ""]) if marks else text


def _mark_loops(lines: list[str], of_function: range, marks: list[str]) -> None:
    blocks, before, values, loops = dict[str, list[int]](), defaultdict(list), dict[str, str](), []
    for at in filter(lines.__getitem__, of_function):
        if head := _BLOCK.match(lines[at]):
            name = head[1]
        blocks.setdefault(name, []).append(at)
        result, _, instruction = lines[at].strip().partition(" = ")
        values[result] = instruction
        for label in _LABEL.findall(lines[at]) if not instruction else ():
            before[label].append(name)
    entry, weights = next(iter(blocks)), {name: len(each) for name, each in blocks.items()}
    for name, (*_, at) in blocks.items():
        if latch := _LATCH.fullmatch(lines[at]):
            for start, goes_on in ((latch[2], True), (latch[3], False)):
                body = _body(start, name, before)
                if entry not in body and latch[3 if goes_on else 2] not in body:
                    loops.append((body, at, _steps(latch[1], values, goes_on)))
    for body, at, steps in sorted(loops, key=lambda loop: len(loop[0])):
        calls = any("@_Z" in lines[one] for name in body for one in blocks[name])
        size = steps * sum(weights[name] for name in body)
        if 0 < size <= min(_MAX_UNROLLED, _MAX_LENGTH - sum(weights.values())) and not calls:
            weights |= {name: weights[name] * steps for name in body}
            number = 910_000 + len(marks)
            lines[at] += f", !llvm.loop !{number}"
            marks.append(f"!{number} = distinct !{{!{number}, !{number + 1}}}")
            marks.append(f'!{number + 1} = !{{!"llvm.loop.unroll.full"}}')


def _body(head: str, latch: str, before: Mapping[str, list[str]]) -> set[str]:
    """Return the blocks from which a latch is reached without passing the head of its loop."""
    body, left = {head}, [latch]
    while left:
        if (name := left.pop()) not in body:
            body.add(name)
            left += before[name]
    return body


def _steps(test: str, values: dict[str, str], goes_on: bool) -> int:
    """Return how many steps a loop has; 0 if that is not a small constant.

    Args:
        test: the condition at its end.
        values: the instructions of the function, by the names of their results.
        goes_on: whether the loop goes on if the condition is true.
    """
    found = _TEST.fullmatch(values.get(test, ""))
    if not found:
        return 2 if _ONCE_MORE.fullmatch(values.get(test, "")) else 0
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
