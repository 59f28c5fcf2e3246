"""The text of kernels that fold rows of tens to hundreds of neighbors: a group folds many rows.

The lanes of a group walk row after row together, so that devices load vectors, and leave their
accumulators in local memory. Behind a barrier each lane merges those of one of the rows. A group
for each row would have a barrier and a merge of all lanes for each; a work-item for each row would
gather every element.
"""

from __future__ import annotations

from dparray._codegen.reduction_steps import ReductionStructure
from dparray._codegen.reduction_text import Text, Walk, decomposed
from dparray._codegen.values import Values


def source_of(structure: ReductionStructure) -> str:
    """Return the text of the kernel for a structure, of any form."""
    return (_RowsText if structure.form == "rows" else Text)(structure).source()


class _RowsText(Text):
    """Writes the text of a kernel of the form "rows", which has one loop and stores rows only."""

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
        self.rows = Values()  # those of another row are of no use
        self._to_row()
        self._merge_row(folded)
        for number in inside:
            self._finish(number)
        self._row_steps(1)
        self._store_rows()
        return "\n".join(self.lines) + "\n"

    def _to_row(self) -> None:
        """Where row ``o`` begins, and what is the same in all of it."""
        self.lines += decomposed("o", "n", self.structure.kept)
        self._starts()
        self._row_steps(0)

    def _merge_row(self, folded: list[int]) -> None:
        """Each lane merges what all lanes have left of its row."""
        lanes = self.structure.lanes
        self._add(f"left = lane * uint64({lanes + 1})")
        for number in folded:
            for name, accumulator in self._names(number, 0).items():
                self._add(f"{accumulator} = t{number}_{name}_local[left]")
        self._add(f"for other in range(1, {lanes}):")
        for number in folded:
            others = {name: f"t{number}_{name}_" for name in self.reductions[number].accumulators}
            for name, text in others.items():
                element = f"t{number}_{name}_local[left + uint64(other)]"
                self._add(f"{text} = {element}", indent="        ")
            self._merge(number, self._names(number, 0), others, "        ")
        self._settle(folded, "", "    ")
