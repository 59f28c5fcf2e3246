"""Warnings about kernels that compile: floats cut to integers, dimensions not read, first float64.

They are kept with the compiled kernel, also on disk, so a kernel from the cache warns like a newly
compiled one.
"""

from __future__ import annotations

from typing import NamedTuple


class Advice(NamedTuple):
    """The warnings of a kernel. Lines count from the ``def``.

    Attributes:
        cuts: the lines in which floats are cut to integers, with the warnings.
        line: the line that reads dimensions of the range.
        unread: the dimensions of the range that are not read.
        double: where the kernel first computes in float64, and the operands.
    """

    cuts: tuple[tuple[int, str], ...] = ()
    line: int = 0
    unread: tuple[int, ...] = ()
    double: str = ""


class Notes:
    """The notes that are taken while a kernel is translated.

    Attributes:
        line: the line of the kernel's statement that is being translated, from the ``def``.
        cuts: the lines that cut floats, with the warnings.
        read: the dimensions of the range that are read, each with the first line.
        reads_all: whether all dimensions may be read, as by a linear id.
        writes: whether an element is written; atomic operations may all meet in one on purpose.
        double: the first line that computes in float64, with the operation.
    """

    def __init__(self) -> None:
        self.line = 0
        self.cuts: set[tuple[int, str]] = set()
        self.read: dict[int, int] = {}
        self.reads_all = False
        self.writes = False
        self.double: tuple[int, str] | None = None

    def reads(self, dimension: int) -> None:
        """Note that a dimension of the range is read."""
        self.read.setdefault(dimension, self.line)

    def computes_double(self, text: str) -> None:
        """Note an operation whose result is float64."""
        if self.double is None or self.line < self.double[0]:
            self.double = self.line, text

    def advice(self, dimensions: int, lines: list[str]) -> Advice:
        """Return the warnings of a kernel.

        Args:
            dimensions: the number of dimensions of its range.
            lines: its source.
        """
        unread: tuple[int, ...] = ()
        if dimensions > 1 and self.writes and not self.reads_all:
            unread = tuple(each for each in range(dimensions) if each not in self.read)
        double = ""
        if self.double is not None:
            line, double = self.double
            if line and line < len(lines):
                double += f" in `{lines[line].strip()}`"
        return Advice(tuple(sorted(self.cuts)), min(self.read.values(), default=0), unread, double)
