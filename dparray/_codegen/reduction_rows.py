"""Source of kernels that reduce rows of tens to hundreds of elements, many rows per group.

The lanes of a group traverse row after row together, so that devices load vectors, and leave their
accumulators in local memory. After a barrier each lane merges the accumulators of one row. With a
group per row, each row would need its own barrier and merge; with a work-item per row, every
element would be gathered.
"""

from __future__ import annotations

from dparray._codegen.reduction_steps import ReductionStructure
from dparray._codegen.reduction_text import Text, Walk
from dparray._codegen.values import Values


def source_of(structure: ReductionStructure) -> str:
    """Return the source of the kernel for a structure, for any form."""
    return (_RowsText if structure.form == "rows" else Text)(structure).source()


class _RowsText(Text):
    """Generates the source of a kernel of the form "rows", with one loop and row outputs only."""

    def source(self) -> str:
        self._begin_text()
        lanes = self.structure.lanes
        self._add(f"for turn in range({lanes}):")
        start = len(self.lines)
        self._add(
            "o = begin + uint64(turn)",
            "o = o if int64(o) < int64(kept) else kept - uint64(1)",
        )
        inside, folded = self._inside(0)
        self._to_row()
        names = [name for number in folded for name, _ in self.steps[number][2]]
        walk = Walk(folded, [], *self._needed(names))
        copies = self._copies(walk)
        self._rolled(walk, copies)
        self._merge_copies(folded, copies)
        self._settle(folded, "", "    ")
        for number in folded:
            for name, accumulator in self._names(number, 0).items():
                index = f"uint64(turn) * uint64({lanes + 1}) + lane"
                self._add(f"t{number}_{name}_local[{index}] = {accumulator}")
        self.lines[start:] = ["    " + line for line in self.lines[start:]]
        self._add(
            "group_barrier(group, MemoryScope.WORK_GROUP)",
            "o = begin + lane",
            "if int64(o) >= int64(kept):",
            "    return",
        )
        self.rows = Values()  # values of another row are no longer valid
        self._to_row()
        self._merge_row(folded)
        for number in inside:
            self._finish(number)
        self._row_steps(1)
        self._store_rows()
        return "\n".join(self.lines) + "\n"

    def _to_row(self) -> None:
        """Emit the start of row ``o``, and the values that are constant within the row."""
        self.lines += self._decomposed("o", "n", self.structure.output_ndim)
        self._starts()
        self._row_steps(0)

    def _merge_row(self, folded: list[int]) -> None:
        """Emit the merge, in each lane, of all lanes' accumulators for its row."""
        lanes = self.structure.lanes
        self._add(f"left = lane * uint64({lanes + 1})")
        for number in folded:
            for name, accumulator in self._names(number, 0).items():
                self._add(f"{accumulator} = t{number}_{name}_local[left]")
        self._add(f"for other in range(1, {lanes}):")
        self._merge_others(folded, "{shared}_local[left + uint64(other)]")
        self._settle(folded, "", "    ")
