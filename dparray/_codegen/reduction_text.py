"""The source of a kernel with reductions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen.indexing import divided, division, index_terms, product
from dparray._codegen.reduction_positions import (
    COUNTERS,
    MERGED_CHUNKS,
    MERGED_INDEX,
    PARTIAL_INDEX,
    POSITIONS,
)
from dparray._codegen.reduction_steps import (
    ACCUMULATORS,
    FLAT,
    MAX_STEPS_WRITTEN,
    STAGED_TOGETHER,
    ReductionStructure,
    accumulator_dtypes,
    is_reduction,
    is_widened,
    loops_before,
    parameters_of,
    power_of_two,
    reductions_of,
)
from dparray._codegen.values import (
    BOOL,
    CONVERSIONS,
    TYPE_NAMES,
    Values,
    converted_text,
    dtype_of,
    kernel_name,
    load,
    scalar_lines,
    store,
)
from dparray._graph.ops import OPS
from dparray._graph.reductions import GROWTH, MAX_UNSETTLED

# A quotient is a product with an inverse, corrected twice by the rest that it leaves. If both
# numbers are between these, the rest is exact, and the result is that of a division.
_LEAST_DIVIDEND, _MOST_DIVIDEND = f"float32({2.0**-100})", f"float32({2.0**100})"
_LEAST_DIVISOR, _MOST_DIVISOR = f"float32({2.0**-24})", f"float32({2.0**24})"
_CORRECTED = (
    "{{t}}q = fused_multiply_add(fused_multiply_add(-{{t}}q, {{1}}, {{0}}), {inverse}, {{t}}q)\n"
)
_QUOTIENT = f"{{{{t}}}}q = {{{{0}}}} * {{inverse}}\n{_CORRECTED}{_CORRECTED}{{{{t}}}}q"

# A value is kept in local memory if computing it again costs at least this many additions.
MIN_COST_KEPT = 4


def _of_vector(name: str, number: int) -> str:
    """Return the name for an additional vector of outputs."""
    return f"{name}__{number}"


def _names_in(line: str) -> list[ast.Name]:
    """Return the names in a statement or the head of one, the last first."""
    text = line.lstrip()
    tree = ast.parse(f"{text} pass" if text.endswith(":") else text)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return sorted(names, key=lambda node: -node.col_offset)


class Text:
    """Generates the source of one kernel.

    Attributes:
        lines: the lines generated so far.
        rows: the available values per output, outside of loops.
        own: the names that are separate for each output of a work-item.
        size: the size of a sub-group.
        quotients: the steps that multiply by the inverse of an output's value, by their number.
    """

    def __init__(self, structure: ReductionStructure) -> None:
        self.structure = structure
        self.steps = structure.steps
        self.lines: list[str] = []
        self.size = str(structure.sub_group or "sub_group.get_local_range()")
        # A single dimension needs no division.
        self.j = "j0" if structure.reduced == 1 else "j"
        self.rows = Values()
        self.own: set[str] = set()
        self.loops = loops_before(self.steps)
        self.reductions = {number: row for number, row, _ in reductions_of(structure)}
        self.same = self._which_are_same()
        self.quotients: dict[int, Any] = {}
        self.varies = self._which_vary()
        last = max(self.loops[number] for number in self.reductions)
        self.elements: dict[int, list[int]] = {}
        for number, (name, _, _, _, is_row) in enumerate(structure.outputs):
            if not is_row:
                loop = last if structure.elements_last else self._before(name)
                self.elements.setdefault(loop, []).append(number)
        self.count = max([last, *(loop + 1 for loop in self.elements)])
        self.kept = self._which_is_kept() if structure.keeps_values else None

    def source(self) -> str:
        structure = self.structure
        self._begin_text()
        if structure.form == "columns":
            self.lines += self._decomposed("outer", "n", structure.output_ndim - 1, name="o")
            if structure.loads_vectors:
                self._add(f"column = column + lane * uint64({structure.vectors - 1})")
            for number in range(1, structure.vectors):
                further = number if structure.loads_vectors else structure.lanes * number
                self._add(f"{_of_vector('column', number)} = column + uint64({further})")
            self.own.add("column")
        elif structure.form == "short rows":
            for number in range(1, structure.vectors):
                further = structure.lanes * number
                self._add(f"{_of_vector('place', number)} = place + uint64({further})")
            self.own.add("place")
        else:
            self.lines += self._decomposed("o", "n", structure.output_ndim)
        self._starts()
        self._row_steps(0)
        if structure.held:
            self._hold()
        elif structure.staged:
            self._stage()
        for loop in range(self.count):
            self._loop(loop)
            if not structure.leaves_accumulators:
                self._row_steps(loop + 1)
        self._store_rows()
        return "\n".join(self.lines) + "\n"

    def _begin_text(self) -> None:
        """Emit the name and the parameters, and the position of the work-item."""
        structure = self.structure
        names = ", ".join(name for name, _ in parameters_of(structure))
        self.lines = [f"def {kernel_name(structure.steps)}(item, {names}):"]
        self.lines += scalar_lines(structure.scalars)
        if structure.form in ("columns", "short rows"):
            self._add(f"width = uint64({structure.lanes * structure.vectors})")
        in_sub_groups = structure.staged_rows and structure.form == "sub-groups"
        for line in POSITIONS["staged sub-groups" if in_sub_groups else structure.form]:
            words = {"lanes": structure.lanes, "rows": structure.staged_rows, "size": self.size}
            self._add(divided(line.format(**words), structure.is_narrow))

    def _starts(self) -> None:
        """Emit the start of an output's elements in each array; load those that are constant."""
        structure = self.structure
        with self._for_each_vector():
            if structure.form == "columns":
                self._add("o = outer * row + column", f"o{structure.output_ndim - 1} = column")
            elif structure.form == "short rows":
                self._add(divided("turn = place // row", structure.is_narrow))
                self._add("o0 = place - turn * row", "first = begin * step + turn")
            for number, (dtype, kept, reduced) in enumerate(structure.arrays):
                self._add(f"b{number} = {self._row_index(kept, f'a{number}')}")
                if not self._is_walked(reduced):
                    self._add(*load(number, dtype, f"b{number}"))
            for number, (_, _, kept, _, is_row) in enumerate(structure.outputs):
                if not is_row:
                    # All elements belong to output number 0. A constant would also be correct, but
                    # Intel's CPU driver crashes on some stores to one element by all work-items.
                    start = self._row_index(kept, f"out{number}") if kept.strip("0") else "o"
                    self._add(f"d{number} = {start}")

    @contextmanager
    def _for_each_vector(self) -> Iterator[None]:
        """Repeat the lines written inside for each additional vector of outputs."""
        start = len(self.lines)
        yield
        if self.structure.vectors == 1:
            return
        lines = [(line, _names_in(line)) for line in self.lines[start:]]
        nodes = [node for _, names in lines for node in names]
        self.own.update(node.id for node in nodes if isinstance(node.ctx, ast.Store))
        for number in range(1, self.structure.vectors):
            self.lines += [self._renamed(line, names, number) for line, names in lines]

    def _renamed(self, line: str, names: Sequence[ast.Name], number: int) -> str:
        """Return a line with the names for an additional vector of outputs."""
        indent = len(line) - len(line.lstrip())
        for node in names:
            if node.id in self.own:
                start = indent + node.col_offset
                line = line[:start] + _of_vector(node.id, number) + line[start + len(node.id) :]
        return line

    # -- dependencies -----------------------------------------------------------------------------

    def _is_walked(self, letters: str) -> bool:
        return letters.strip("0") != ""

    def _which_vary(self) -> list[bool]:
        """Return for each step whether its value varies along the reduced axes."""
        varies: list[bool] = []
        for step in self.steps:
            varies.append(
                not is_reduction(step)
                and any(
                    varies[int(name[1:])]
                    if name[0] == "t"
                    else name[0] == "a" and self._is_walked(self.structure.arrays[int(name[1:])][2])
                    for name, _ in step[2]
                )
            )
        return varies

    def _which_are_same(self) -> dict[int, int]:
        """Return for each reduction the first equal one."""
        first: dict[Any, int] = {}
        return {number: first.setdefault(self.steps[number], number) for number in self.reductions}

    def _before(self, name: str) -> int:
        return self.loops[int(name[1:])] if name[0] == "t" else 0

    def _which_is_kept(self) -> Kept | None:
        """Return the value that a loop writes in place of the elements in local memory, since later
        loops need only that value: in a softmax, the exponential.
        """
        if len(self.structure.staged) != 1:
            return None
        (array,) = self.structure.staged
        for loop in range(self.count - 1):
            later = [
                name for other in range(loop + 1, self.count) for name in self._names_of(other)
            ]
            again = self._needed(later)[0]
            for step in reversed(self._needed(self._names_of(loop))[0]):
                if step in again and self.steps[step][4] == self.structure.arrays[array][0]:
                    left, arrays = self._needed(later, step)
                    ops = [OPS.get(self.steps[other][0]) for other in set(again) - set(left)]
                    cost = sum(op.cost for op in ops if op is not None)
                    if array not in arrays and cost >= MIN_COST_KEPT:
                        return Kept(loop, step, array)
        return None

    def _names_of(self, loop: int) -> list[str]:
        """Return the names of the values that a loop reduces or stores."""
        _, folded = self._inside(loop)
        names = [name for number in folded for name, _ in self.steps[number][2]]
        return names + [self.structure.outputs[at][0] for at in self.elements.get(loop, [])]

    def _needed(self, names: Sequence[str], kept: int | None = None) -> tuple[list[int], list[int]]:
        """Return the steps and arrays from which values in a loop are computed inside it.

        The step ``kept`` is not computed there.
        """
        reached: set[str] = set()
        stack = list(names)
        while stack:
            name = stack.pop()
            is_step = name[0] == "t"
            if name in reached or name[0] == "s" or (is_step and not self.varies[int(name[1:])]):
                continue
            if name == f"t{kept}":
                continue
            reached.add(name)
            if is_step:
                stack += [operand for operand, _ in self.steps[int(name[1:])][2]]
        steps = sorted(int(name[1:]) for name in reached if name[0] == "t")
        arrays = sorted(
            int(name[1:])
            for name in reached
            if name[0] == "a" and self._is_walked(self.structure.arrays[int(name[1:])][2])
        )
        return steps, arrays

    # -- outside of loops -------------------------------------------------------------------------

    def _add(self, *lines: str, indent: str = "    ") -> None:
        self.lines += [indent + line for line in lines]

    def _decomposed(
        self, index: str, extent: str, dimensions: int, indent: str = "    ", name: str = ""
    ) -> list[str]:
        """Return the lines that divide a linear index into one for each dimension."""
        name, rest = name or index, index
        lines = []
        for dimension in range(dimensions - 1, 0, -1):
            ratio, is_narrow = f"{name}q{dimension}", self.structure.is_narrow
            lines += division(rest, f"{extent}{dimension}", ratio, f"{name}{dimension}", is_narrow)
            rest = ratio
        lines += [f"{name}0 = {rest}"] if dimensions else []
        return [indent + line for line in lines]

    def _row_index(self, letters: str, name: str) -> str:
        unrolled, is_narrow = self.structure.unrolled, self.structure.is_narrow
        return index_terms(letters, "o", f"{name}_k", unrolled, is_narrow) or "uint64(0)"

    def _row_steps(self, loop: int) -> None:
        """Emit the steps on results of reductions that are available after ``loop`` loops."""
        with self._for_each_vector():
            self.rows.emit(
                (
                    (number, step)
                    for number, step in enumerate(self.steps)
                    if not (self.varies[number] or is_reduction(step))
                    and self.loops[number] == loop
                ),
                self.lines,
                "    ",
            )

    def _store_rows(self) -> None:
        stored = [
            (number, output) for number, output in enumerate(self.structure.outputs) if output[4]
        ]
        if not stored:
            return
        with self._for_each_vector():
            indent = self._only_once("    ")
            for number, (name, dtype, kept, _, _) in stored:
                text, known = self.rows.name(name), dtype_of(self.structure, name)
                index = self._row_index(kept, f"out{number}")
                self._add(*store(f"out{number}", index, text, known, dtype), indent=indent)

    def _only_once(self, indent: str) -> str:
        """Begin a block that one work-item per output runs; return its indentation."""
        if self.structure.form in ("items", "rows"):
            return indent
        is_one = "column >= own" if self.structure.form == "columns" else "lane == 0"
        self._add(f"if {is_one}:", indent=indent)
        return indent + "    "

    # -- loops ------------------------------------------------------------------------------------

    def _inside(self, loop: int) -> tuple[list[int], list[int]]:
        """Return the reductions of a loop, and those that are folded in it."""
        inside = [number for number in self.reductions if self.loops[number] == loop + 1]
        return inside, [number for number in inside if self.same[number] == number]

    def _loop(self, loop: int) -> None:
        """Emit one traversal of the reduced elements of an output."""
        inside, folded = self._inside(loop)
        walk = self._walk(loop, folded, self.elements.get(loop, []), self._names_of(loop))
        copies = self._copies(walk)
        if self.structure.unrolled:
            self._unrolled(walk)
        elif self.structure.held:
            copies = self._in_registers(walk)
        else:
            self._rolled(walk, copies)
        self._merge_copies(folded, copies)
        self._settle(folded, "", "    ")
        if folded and self.structure.form == "lanes":
            self._merge_lanes(folded)
        if folded and self.structure.form == "sub-groups":
            self._merge_sub_group(folded)
        if folded and self.structure.merges_chunks:
            self._merge_chunks(folded)
        with self._for_each_vector():
            if self.structure.leaves_accumulators:
                self._leave_accumulators(inside)
            else:
                for number in inside:
                    self._finish(number)

    def _walk(self, loop: int, folded: list[int], stored: list[int], names: Sequence[str]) -> Walk:
        """Return the walk in which a loop computes values of these names."""
        kept = self.kept
        if kept is None or loop < kept.loop:
            return Walk(folded, stored, *self._needed(names))
        if loop == kept.loop:
            return Walk(folded, stored, *self._needed(names), writes=kept)
        needed = self._needed(names, kept.step)
        reads = kept if needed != self._needed(names) else None
        return Walk(folded, stored, *needed, reads=reads)

    def _copies(self, walk: Walk) -> int:
        """Return the number of accumulator copies of a work-item for each reduction of a loop."""
        # Settled reductions have several sums, which also hide latency; copies cost more than they
        # gain.
        if self._settled(walk) or self.structure.form not in ACCUMULATORS:
            return 1
        if not (walk.folded or self.structure.staged):
            return 1
        most = MAX_STEPS_WRITTEN // max(1, len(walk.steps))
        return max(1, min(ACCUMULATORS[self.structure.form], most))

    def _merge_copies(self, folded: Sequence[int], copies: int) -> None:
        for number in folded:
            for other in range(1, copies):
                self._merge(number, self._names(number, 0), self._names(number, other), "    ")

    def _unrolled(self, walk: Walk) -> None:
        with self._for_each_vector():
            for number in walk.folded:
                if not self._takes_first(number):
                    self._begin(number, 0, "", "    ")
        settled = self._settled(walk)
        for position in range(self.structure.unrolled):
            self._add(f"{self.j} = uint64({position})")
            self._element(walk, "    ", 0, str(position), is_first=position == 0)
            so_many = position + 1
            if 1 < so_many == power_of_two(so_many) < self.structure.unrolled:
                self._settle(settled, str(so_many), "    ")
        self._end(walk.folded, 1, str(self.structure.unrolled), "    ")

    def _in_registers(self, walk: Walk) -> int:
        """Emit a loop over the elements that registers hold; return the copies of accumulators."""
        structure, settled = self.structure, self._settled(walk)
        count = structure.held if structure.is_full else structure.held - 1
        copies = 1 if settled else max(1, min(ACCUMULATORS[structure.form], count))
        for number in walk.folded:
            if self._has_fold(number) and self.reductions[number].begins_with_element:
                self._load_first(number)
            for copy in range(copies):
                self._begin(number, copy, f"t{number}_first", "    ")
        if not walk.folded and self._find_quotients(walk):
            self._add("if is_usual:")
            self._stored_from_registers(walk)
            self.quotients.clear()
            self._add("else:")
            self._stored_from_registers(walk)
            return copies
        rounds, until = count // copies, GROWTH
        for at in range(count):
            self._add(f"{self.j} = first + uint64({at}) * step")
            turn, copy = divmod(at, copies)
            is_counted = turn < rounds
            if at == rounds * copies:
                self._end(walk.folded, copies, str(rounds), "    ")
            self._element(walk, "    ", copy * is_counted, str(turn) * is_counted, loaded=str(at))
            if at + 1 == until < count:
                self._settle(settled, str(until), "    ")
                until = min(until * GROWTH, until + MAX_UNSETTLED)
        if count == rounds * copies:
            self._end(walk.folded, copies, str(rounds), "    ")
        if not structure.is_full:
            self._add(f"{self.j} = first + uint64({count}) * step", f"if {self.j} < count:")
            self._element(walk, "        ", 0, "", loaded=str(count))
        return copies

    def _stored_from_registers(self, walk: Walk) -> None:
        """Emit a loop without reductions over the elements that registers hold, inside a block."""
        for at in range(self.structure.held):
            indent = "        "
            self._add(f"{self.j} = first + uint64({at}) * step", indent=indent)
            if at == self.structure.held - 1 and not self.structure.is_full:
                self._add(f"if {self.j} < count:", indent=indent)
                indent += "    "
            self._element(walk, indent, 0, "", loaded=str(at))

    def _find_quotients(self, walk: Walk) -> bool:
        """Return whether a loop has divisions that products with an inverse replace.

        The inverses are emitted, and whether all elements of the work-item are such that the result
        is the same. A division each would be slower than the test, and the compiler would compute
        both for each element.
        """
        single = np.dtype(np.float32).str
        dividends: dict[str, str] = {}
        for number in walk.steps:
            name, _, references, signature, result = self.steps[number]
            kinds = {*map(str, signature), result, *(dtype for _, dtype in references)}
            if name != "divide" or kinds != {single} or self._varies(references[1][0]):
                continue
            value = self.rows.name(references[1][0])
            inverse, most = f"inverse_{value}", f"most_{value}"
            is_usual = f"abs({value}) > {_LEAST_DIVISOR} and abs({value}) < {_MOST_DIVISOR}"
            if most not in dividends.values():
                self._add(f"{inverse} = float32(1) / {value}")
                self._add(f"{most} = {_MOST_DIVIDEND} if {is_usual} else float32(0)")
            dividends[references[0][0]] = most
            text = _QUOTIENT.format(inverse=inverse)
            self.quotients[number] = name, text, references, signature, result
        if not dividends:
            return False
        kept = walk.reads.step if walk.reads is not None else None
        steps, arrays = self._needed(list(dividends), kept)
        self._add("is_usual = True")
        for at in range(self.structure.held):
            self._add(f"{self.j} = first + uint64({at}) * step")
            values = self._loaded(walk._replace(steps=steps, arrays=arrays), "    ", str(at))
            for name, most in dividends.items():
                size = f"abs({values.name(name)})"
                self._add(f"is_usual = is_usual & ({size} > {_LEAST_DIVIDEND}) & ({size} < {most})")
        return True

    def _varies(self, name: str) -> bool:
        """Return whether a value varies along the reduced axes."""
        if name[0] == "t":
            return self.varies[int(name[1:])]
        return name[0] == "a" and self._is_walked(self.structure.arrays[int(name[1:])][2])

    def _rolled(self, walk: Walk, copies: int) -> None:
        for number in walk.folded:
            if self._has_fold(number) and self.reductions[number].begins_with_element:
                self._load_first(number)
        with self._for_each_vector():
            for number in walk.folded:
                for copy in range(copies):
                    self._begin(number, copy, f"t{number}_first", "    ")
        rows = 1 if self._settled(walk) else self.structure.rows_together
        together = copies * rows
        whole = f"trips // {together}" if together > 1 else "trips"
        inner = "            "
        if settled := self._settled(walk):
            self._add(
                "until = int64(0)",
                "while until < trips:",
                "    done = until",
                f"    until = done * {GROWTH} if done > 0 else int64({GROWTH})",
                f"    most = done + {MAX_UNSETTLED}",
                "    until = until if until < most else most",
                "    until = until if until < trips else trips",
                "    if done > 0:",
            )
            self._settle(settled, "done", inner)
            self._add("    for trip in range(done, until):")
        elif self.structure.loads_vectors:
            # With both kinds of loads in one loop, the compiler makes single loads of all.
            width = self.structure.vectors
            tests = " and ".join(f"is_aligned(a{number}, {width})" for number in walk.arrays)
            self._add(f"if {tests}:", f"    for trip in range({whole}):")
            self._rows_together(walk, rows, inner, self._load_vectors)
            self._add("else:", f"    for trip in range({whole}):")
        else:
            self._add(f"for trip in range({whole}):")
            inner = "        "
        for copy in range(copies):
            trip = f"trip * {copies} + {copy}" if copies > 1 else "trip"
            # Other forms step by a constant, of which the compiler makes shifts.
            is_narrow = self.structure.is_narrow and self.structure.form == "sub-groups"
            walked = product(f"uint64({trip})", "step", is_narrow)
            if rows == 1:
                self._go_to(f"first + {walked}", inner)
                self._element(walk, inner, copy, "trip")
        self._keep(walk, copies, inner)
        if rows > 1:
            self._rows_together(walk, rows, inner)
            whole = f"{whole} * {rows}"
        self._end(walk.folded, copies, whole, "    ")
        inner = "        "
        if together > 1:
            self._add(f"for trip in range(trips - trips % {together}, trips):")
            self._add(f"{self.j} = first + uint64(trip) * step", indent=inner)
            self._element(walk, inner, 0, "")
            self._keep(walk, 1, inner)
        if self.structure.form in ("lanes", "rows", "sub-groups"):
            self._add(f"{self.j} = last", f"if {self.j} < count:")
            self._element(walk, inner, 0, "")
            self._keep(walk, 1, inner)
        elif self.structure.form == "short rows":
            self._rest(walk)

    def _rows_together(
        self, walk: Walk, rows: int, indent: str, load_row: Callable[..., None] | None = None
    ) -> None:
        """Load elements of several rows, and then fold them in their order."""
        load_row = load_row or self._load_row
        for is_loaded in (False, True):
            for row in range(rows):
                self._add(f"{self.j} = first + uint64(trip * {rows} + {row}) * step", indent=indent)
                if is_loaded:
                    self._element(walk, indent, 0, f"(trip * {rows} + {row})", loaded=str(row))
                    continue
                self._take_apart(indent)
                load_row(walk.arrays, str(row), indent)

    def _load_row(self, arrays: Sequence[int], row: str, indent: str) -> None:
        with self._for_each_vector():
            for number in arrays:
                self._load(number, indent, row)

    def _load_vectors(self, arrays: Sequence[int], row: str, indent: str) -> None:
        """Load the elements of a row together."""
        for number in arrays:
            dtype, _, letters = self.structure.arrays[number]
            index = self._element_index(f"b{number}", letters, f"a{number}")
            vector = f"load_vector(a{number}, {index}, {self.structure.vectors})"
            self._add(f"v{number} = {vector}", indent=indent)
            self.own.add(f"x{number}_{row}")
            for lane in range(self.structure.vectors):
                name = f"x{number}_{row}"
                name = _of_vector(name, lane) if lane else name
                for line in load(number, dtype, str(lane), f"v{number}"):
                    self._add(f"{name} = {line.partition(' = ')[2]}", indent=indent)

    def _go_to(self, element: str, indent: str) -> None:
        """Emit the assignment of the next element's number to ``j``."""
        if self.structure.form == "short rows":
            # Adjacent slots have adjacent elements, which the device cannot infer from a division.
            self._add("block = (begin + uint64(trip)) * width", indent=indent)
            with self._for_each_vector():
                self._add(f"{self.j} = {element}", "flat = block + place", indent=indent)
        else:
            self._add(f"{self.j} = {element}", indent=indent)

    def _rest(self, walk: Walk) -> None:
        """Fold the rows after the last whole block, in the last chunk.

        Slots without a row fold the identity, since conditions would mask the whole loop.
        """
        self._add("is_last = begin + uint64(trips) == blocks")
        with self._for_each_vector():
            self._add(
                "left = blocks * step + turn",
                "is_left = is_last & (left < count)",
                f"{self.j} = left if is_left else first",
                f"flat = {self.j} * row + o0",
            )
        self._element(walk, "    ", 0, "", is_left=True)

    def _element(
        self,
        walk: Walk,
        indent: str,
        copy: int,
        n: str,
        is_first: bool = False,
        is_left: bool = False,
        loaded: str = "",
    ) -> None:
        """Emit the fold of element ``j`` into its accumulators, and the stores of its values.

        With ``is_left``, only if the variable of that name is true. ``loaded`` is the end of the
        names of values that are loaded already.
        """
        structure = self.structure
        if walk.arrays or walk.stored:
            self._take_apart(indent)
        with self._for_each_vector():
            values = self._loaded(walk, indent, loaded)
            if walk.writes is not None and structure.held:
                _, step, number = walk.writes
                self._add(f"x{number}_{loaded} = {values.name(f't{step}')}", indent=indent)
            elif walk.writes is not None:
                _, step, number = walk.writes
                # Stored after the loads of other copies, which would wait for it.
                self._add(f"kept{copy} = {values.name(f't{step}')}", indent=indent)
                self._add(f"place{copy} = {self._staged_index(self.j)}", indent=indent)
            for number in walk.folded:
                self._fold(number, values, indent, copy, n, is_first, is_left)
            if walk.stored:
                indent = self._only_once(indent) if structure.form == "columns" else indent
            for number in walk.stored:
                name, dtype, _, letters, _ = structure.outputs[number]
                index = self._element_index(f"d{number}", letters, f"out{number}")
                text, known = values.name(name), dtype_of(structure, name)
                self._add(*store(f"out{number}", index, text, known, dtype), indent=indent)

    def _loaded(self, walk: Walk, indent: str, loaded: str) -> Values:
        """Emit the loads and the steps of an element; return the names of its values."""
        for number in walk.arrays:
            if loaded and (not self.structure.held or number in self.structure.staged):
                self._add(f"x{number} = x{number}_{loaded}", indent=indent)
            else:
                self._load(number, indent)
        self._load_kept(walk, indent, loaded)
        values = Values(self.rows)
        steps = [(number, self.quotients.get(number, self.steps[number])) for number in walk.steps]
        values.emit(steps, self.lines, indent)
        return values

    def _keep(self, walk: Walk, copies: int, indent: str) -> None:
        """Emit the stores of values that later loops read."""
        if walk.writes is not None:
            number = walk.writes.array
            dtype = self.structure.arrays[number][0]
            for copy in range(copies):
                lines = store(f"a{number}_local", f"place{copy}", f"kept{copy}", dtype, dtype)
                self._add(*lines, indent=indent)

    def _load_kept(self, walk: Walk, indent: str, loaded: str = "") -> None:
        """Emit the load of the value that an earlier loop kept."""
        if walk.reads is not None:
            _, step, number = walk.reads
            if self.structure.held:
                self._add(f"t{step} = x{number}_{loaded}", indent=indent)
                return
            self._load(number, indent)
            self._add(f"t{step} = x{number}", indent=indent)

    def _load(self, number: int, indent: str, name: str = "") -> None:
        """Emit the load of element ``j`` of an array, whose value gets a name of its own."""
        dtype, _, letters = self.structure.arrays[number]
        if number in self.structure.in_local_memory:
            index, array = self._staged_index(self.j), f"a{number}_local"
        else:
            index, array = self._element_index(f"b{number}", letters, f"a{number}"), ""
        lines = load(number, dtype, index, array)
        if name:
            lines = [line.replace(f"x{number} = ", f"x{number}_{name} = ", 1) for line in lines]
        self._add(*lines, indent=indent)

    def _staged_index(self, element: str) -> str:
        """Return the index in local memory of an element of the output's row."""
        return f"staged + {element}" if self.structure.form == "sub-groups" else element

    def _hold(self) -> None:
        """Load the elements of a work-item, for all loops; its first again in place of one after
        the end.
        """
        structure = self.structure
        for at in range(structure.held):
            self._add(f"{self.j} = first + uint64({at}) * step")
            if at == structure.held - 1 and not structure.is_full:
                text = f"{self.j} if int64({self.j}) < int64(count) else first"
                self._add(f"{self.j} = {text}")
            self._take_apart("    ")
            for number in structure.staged:
                self._load(number, "    ", str(at))

    def _stage(self) -> None:
        """Copy the elements of an output to local memory, for all loops.

        A work-item reads none but those that it copies, so there is no barrier. It waits for
        several loads together. In place of elements after the last, it copies its first again.
        """
        several = max(1, STAGED_TOGETHER // len(self.structure.staged))
        self._add(f"for trip in range(trips // {several}):")
        self._stage_together(several, is_last=False)
        self._add(f"trip = trips // {several}", f"if uint64(trip * {several}) * step < count:")
        self._stage_together(several, is_last=True)

    def _stage_together(self, several: int, is_last: bool) -> None:
        """Copy several elements of a work-item, of which the last may be after the end."""
        inner = "        "
        for copy in range(several):
            self._add(f"j_{copy} = first + uint64(trip * {several} + {copy}) * step", indent=inner)
            if is_last:
                text = f"j_{copy} if int64(j_{copy}) < int64(count) else first"
                self._add(f"j_{copy} = {text}", indent=inner)
            self._add(f"{self.j} = j_{copy}", indent=inner)
            self._take_apart(inner)
            for number in self.structure.staged:
                letters = self.structure.arrays[number][2]
                index = self._element_index(f"b{number}", letters, f"a{number}")
                self._add(f"a{number}_{copy} = a{number}[{index}]", indent=inner)
        for copy in range(several):
            for number in self.structure.staged:
                index = self._staged_index(f"j_{copy}")
                self._add(f"a{number}_local[{index}] = a{number}_{copy}", indent=inner)

    def _take_apart(self, indent: str) -> None:
        """Return the indices of element ``j``, one for each dimension."""
        if self.structure.reduced > 1:
            self.lines += self._decomposed("j", "m", self.structure.reduced, indent)

    def _element_index(self, start: str, letters: str, name: str) -> str:
        if letters == FLAT:
            return "flat"
        terms = index_terms(letters, "j", f"{name}_r", 0, self.structure.is_narrow)
        return f"{start} + {terms}" if terms else start

    # -- reductions -------------------------------------------------------------------------------

    def _word(self, number: int) -> dict[str, str]:
        """Return the names that the templates of a reduction may use, except its accumulators."""
        _, (row, _), references, signature, _ = self.steps[number]
        operand = np.dtype(signature[0])
        own = accumulator_dtypes(row, operand)[0]
        words = {"A": TYPE_NAMES[own.str], "t": f"t{number}_"}
        if own.kind == "f":
            words |= {
                "lowest": f"{words['A']}(-math.inf)",
                "highest": f"{words['A']}(math.inf)",
                "nan": f"{words['A']}(math.nan)",
            }
        else:
            limits = np.iinfo(own)
            words |= {
                "lowest": f"{words['A']}({limits.min})",
                "highest": f"{words['A']}({limits.max})",
                "nan": f"{words['A']}(0)",
            }
        words |= {name: f"t{number}_{name}" for name in row.functions}
        scalars = references[len(references) - row.scalars :]
        wanted = signature[len(references) - row.scalars :]
        for index, ((name, dtype), kind) in enumerate(zip(scalars, wanted, strict=True)):
            words[f"s{index}"] = converted_text(name, dtype, kind)
        return words

    def _names(self, number: int, copy: int) -> dict[str, str]:
        """Return the names of the accumulators of a reduction."""
        number = self.same[number]
        row = self.reductions[number]
        return {name: f"t{number}_{name}{copy}" for name in row.accumulators}

    def _has_fold(self, number: int) -> bool:
        return bool(self.reductions[number].fold) and not self.steps[number][1][1]

    def _takes_first(self, number: int) -> bool:
        """Return whether the accumulators of an unrolled loop start with its first element."""
        return not self._has_fold(number) or self.reductions[number].begins_with_element

    def _begin(self, number: int, copy: int, first: str, indent: str) -> None:
        """Emit the initial values of accumulators, before the first element."""
        row = self.reductions[number]
        names, words = self._names(number, copy), self._word(number)
        if self._has_fold(number):
            lines = (line.format(first=first, **names, **words) for line in row.begin)
            self._add(*lines, indent=indent)
        else:
            self._set_identity(number, copy)

    def _set_identity(self, number: int, copy: int) -> None:
        """Set accumulators to the identity of a merge."""
        row, words = self.reductions[number], self._word(number)
        for name, text in zip(self._names(number, copy).values(), row.identity, strict=True):
            self._add(f"{name} = {text.format(**words)}")

    def _end(self, numbers: Sequence[int], copies: int, count: str, indent: str) -> None:
        """Emit the conversion of folded values to accumulators."""
        with self._for_each_vector():
            for number in filter(self._has_fold, numbers):
                words = self._word(number) | {"count": count, "copies": str(copies)}
                for copy in range(copies):
                    names = self._names(number, copy) | {"copy": str(copy)}
                    lines = self.reductions[number].end
                    self._add(*(line.format(**names, **words) for line in lines), indent=indent)

    def _settled(self, walk: Walk) -> list[int]:
        """Return the reductions of a loop that are settled in it."""
        return [number for number in walk.folded if self.reductions[number].settle]

    def _settle(self, numbers: Sequence[int], count: str, indent: str) -> None:
        """Settle accumulators over this many elements, if they are not complete yet."""
        if count:
            self._end(numbers, 1, count, indent)
        with self._for_each_vector():
            for number in numbers:
                words = self._names(number, 0) | self._word(number)
                lines = self.reductions[number].settle
                self._add(*(line.format(**words) for line in lines), indent=indent)

    def _load_first(self, number: int) -> None:
        """Emit the first element that the work-item folds."""
        operand = self.steps[number][2][0][0]
        walk = self._walk(self.loops[number] - 1, [], [], [operand])._replace(writes=None)
        # If there are more lanes than elements, some have none in whole trips.
        may_have_none = self.structure.form in ("lanes", "sub-groups")
        first = "first if trips > 0 else uint64(0)" if may_have_none else "first"
        if self.structure.form == "short rows":
            with self._for_each_vector():
                self._add(f"{self.j} = first", "flat = begin * width + place")
        else:
            self._add(f"{self.j} = {first}")
        self._take_apart("    ")
        with self._for_each_vector():
            values = self._loaded(walk, "    ", "0" if self.structure.held else "")
            name, dtype = self.steps[number][2][0]
            text = converted_text(values.name(name), dtype, self.steps[number][3][0])
            self._add(f"t{number}_first = {text}")

    def _fold(
        self,
        number: int,
        values: Values,
        indent: str,
        copy: int,
        n: str,
        is_first: bool,
        is_left: bool,
    ) -> None:
        """Fold the element into the accumulators."""
        _, (row, merges), references, _, _ = self.steps[number]
        words = self._word(number)
        operands = [
            self._operand(number, index, values, indent)
            for index in range(len(references) - row.scalars)
        ]
        names = self._names(number, copy)
        if self._has_fold(number) and n:
            if is_first and self._takes_first(number):
                self._begin(number, copy, operands[0], indent)
            lines = (line.format(v=operands[0], n=n, **names, **words) for line in row.fold)
            self._add(*lines, indent=indent)
            return
        if merges:
            other = dict(zip(row.accumulators, operands, strict=True))
        else:
            other = {
                name: text.format(v=operands[0], j=self.j, **words)
                for name, text in zip(row.accumulators, row.lifted, strict=True)
            }
        if is_left:
            pairs = zip(row.accumulators, row.identity, strict=True)
            for name, none in pairs:
                own = f"t{number}_{name}_left"
                text = f"{words['A']}({other[name]})" if not row.accumulators[name] else other[name]
                self._add(f"{own} = {text} if is_left else {none.format(**words)}", indent=indent)
                other[name] = own
        if is_first:
            for name, text in other.items():
                self._add(f"{names[name]} = {text}", indent=indent)
        else:
            self._merge(number, names, other, indent)

    def _operand(self, number: int, index: int, values: Values, indent: str) -> str:
        """Return the name of an operand's element in the dtype of the accumulators."""
        _, (row, _), references, signature, _ = self.steps[number]
        name, dtype = references[index]
        text = converted_text(values.name(name), dtype, signature[index])
        if is_widened(row, np.dtype(signature[index])):
            text = f"int32({text})"
        if text == values.name(name):
            return text
        self._add(f"t{number}_v{index} = {text}", indent=indent)
        return f"t{number}_v{index}"

    def _merge(
        self, number: int, names: Mapping[str, str], other: Mapping[str, str], indent: str
    ) -> None:
        words = {**self._word(number), **names}
        words |= {f"{name}_": text for name, text in other.items()}
        for line in self.reductions[number].merge:
            self._add(line.format(**words), indent=indent)

    def _merge_others(self, folded: Sequence[int], place: str) -> None:
        """Merge accumulators of other work-items, in a loop.

        Args:
            folded: the reductions.
            place: where an accumulator is read. ``{own}`` is the work-item's own one, ``{shared}``
                the beginning of its name in memory.
        """
        indent = "        "
        for number in folded:
            names = self._names(number, 0)
            others = {name: f"t{number}_{name}_" for name in names}
            for name, own in names.items():
                text = place.format(own=own, shared=f"t{number}_{name}")
                self._add(f"{others[name]} = {text}", indent=indent)
            self._merge(number, names, others, indent)

    def _merge_lanes(self, folded: Sequence[int]) -> None:
        """Merge the accumulators of a group, and give the result to all of its work-items."""
        place, many, indent = "lane", str(self.structure.lanes), "    "
        if self.structure.merges_in_sub_groups:
            self._add("sub_group = item.get_sub_group()")
            self._merge_sub_group(folded)
            self._add(f"size = {self.size}")
            self._add("if sub_group.get_local_id() == 0:")
            place, many = "uint64(sub_group.get_group_id())", f"{many} // size"
            indent = "        "
        for number in folded:
            for name, accumulator in self._names(number, 0).items():
                self._add(f"t{number}_{name}_local[{place}] = {accumulator}", indent=indent)
        self._add("group_barrier(group, MemoryScope.WORK_GROUP)")
        for number in folded:
            for name, accumulator in self._names(number, 0).items():
                self._add(f"{accumulator} = t{number}_{name}_local[uint64(0)]")
        self._add(f"for other in range(1, {many}):")
        self._merge_others(folded, "{shared}_local[uint64(other)]")
        self._settle(folded, "", "    ")

    def _merge_sub_group(self, folded: Sequence[int]) -> None:
        """Merge the accumulators of a sub-group, and give the result to all of its work-items.

        Each lane merges with the lane whose number differs in one bit, bit after bit. Merging in
        two orders may round differently, so all lanes take the result of the first lane.
        """
        inner = "        "
        self._add("own = uint64(sub_group.get_local_id())")
        self._add(f"distance = uint64({self.size}) // uint64(2)")
        self._add("while distance > uint64(0):")
        self._merge_others(folded, "select_from_group(sub_group, {own}, own ^ distance)")
        self._settle(folded, "", inner)
        self._add("distance = distance // uint64(2)", indent=inner)
        for number in folded:
            for accumulator in self._names(number, 0).values():
                first = f"select_from_group(sub_group, {accumulator}, uint64(0))"
                self._add(f"{accumulator} = {first}")

    def _merge_chunks(self, folded: Sequence[int]) -> None:
        """Let the last group of an output continue, with the accumulators of all chunks."""
        form, index = self.structure.form, MERGED_INDEX[self.structure.form]
        # The accumulators of all work-items must be in memory before their group is counted.
        everywhere = "group_barrier(item.get_group(), MemoryScope.DEVICE)"
        self._add(f"counter = {COUNTERS[form]}")
        indent = self._only_once("    ") if form == "lanes" else "    "
        with self._for_each_vector():
            self._add(f"place = {index}", indent=indent)
            for number in folded:
                self._leave(number, "place", indent)
        self._add(
            everywhere,
            "if item.get_local_id(0) == 0:",
            "    counted = AtomicRef(arrived, counter, memory_order=MemoryOrder.ACQ_REL)",
            "    is_last[0] = int32(uint64(counted.fetch_add(1)) + uint64(1) == chunks)",
            "    if is_last[0] == 1:",
            "        arrived[counter] = 0",
            everywhere,
            "if is_last[0] == 0:",
            "    return",
        )
        with self._for_each_vector():
            for number in folded:
                self._set_identity(number, 0)
        self._add(f"for merged in {MERGED_CHUNKS[form].format(lanes=self.structure.lanes)}:")
        self._add("    chunk = uint64(merged)")
        with self._for_each_vector():
            self._add(f"place = {index}", indent="        ")
            self._merge_others(folded, "{shared}_out[place]")
        self._settle(folded, "", "        ")
        if form == "lanes":
            self._merge_lanes(folded)

    def _leave_accumulators(self, folded: Sequence[int]) -> None:
        """Leave the accumulators for another kernel."""
        indent = "    " if self.structure.form == "short rows" else self._only_once("    ")
        for number in folded:
            self._leave(number, PARTIAL_INDEX[self.structure.form], indent)

    def _leave(self, number: int, index: str, indent: str) -> None:
        """Store the accumulators of a reduction in memory."""
        for name, text in self._names(number, 0).items():
            self._add(f"t{number}_{name}_out[{index}] = {text}", indent=indent)

    def _finish(self, number: int) -> None:
        result = self.steps[number][4]
        row, words = self.reductions[number], self._names(number, 0) | self._word(number)
        self._add(*(line.format(**words) for line in row.finish))
        text = row.result.format(**words)
        if result != BOOL:
            text = f"{CONVERSIONS[result]}({text})"
        self._add(f"t{number} = {text}")


class Kept(NamedTuple):
    """A step whose value a loop writes in place of the elements of an array in local memory."""

    loop: int
    step: int
    array: int


class Walk(NamedTuple):
    """One loop: the steps it folds, the outputs it stores, the steps and arrays it needs, and the
    value that it keeps for later loops or reads.
    """

    folded: list[int]
    stored: list[int]
    steps: list[int]
    arrays: list[int]
    writes: Kept | None = None
    reads: Kept | None = None
