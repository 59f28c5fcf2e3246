"""Draw a timeline as SVG: a row for each queue and thread, and the memory in use below.

Colors of medium brightness and gray text without background, readable on light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from dparray._profile.recorder import Record

_LEFT, _WIDTH, _ROW, _BAR, _MEMORY = 12, 940, 36, 16, 48
_COLORS = {
    "kernel": "#2f6ea5",
    "library": "#90488f",
    "host": "#a85a14",
    "copy": "#2f7d37",
    "compile": "#7a6a00",
    "wait": "#8a8a8a",
    "map": "#5f5fb8",
}
_GRAY = "#7d7d7d"
_MOST = 4000  # Above this number of bars, the shortest are omitted.


def row_of(record: Record) -> str:
    """Return the lane of a record: device work by queue, all other work by thread."""
    return record.queue if record.clock == "device" else f"thread {record.thread}"


def rows_of(records: Sequence[Record]) -> list[str]:
    """Return the rows, queues first."""
    names = dict.fromkeys(row_of(record) for record in records if record.kind != "allocate")
    return sorted(names, key=lambda name: name.startswith("thread "))


class _Lane:
    """Records, and the ends of the open ones, the innermost last."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.ends: list[float] = []

    def takes(self, start: float, end: float) -> bool:
        """Return whether a later record may be added."""
        while self.ends and self.ends[-1] <= start:
            self.ends.pop()
        return not self.ends or end <= self.ends[-1]


def lanes_of(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """Split each row into lanes in which records are disjoint or nested.

    Trace viewers drop other overlaps, which work on an out-of-order queue may have.
    """
    lanes: list[tuple[str, list[Record]]] = []
    for name in rows_of(records):
        found: list[_Lane] = []
        mine = [each for each in records if each.kind != "allocate" and row_of(each) == name]
        for each in sorted(mine, key=lambda each: (each.start, -each.duration)):
            end = each.start + each.duration
            lane = next((one for one in found if one.takes(each.start, end)), None)
            if lane is None:
                lane = _Lane()
                found.append(lane)
            lane.records.append(each)
            lane.ends.append(end)
        lanes += [
            (f"{name} ({number})" if number > 1 else name, lane.records)
            for number, lane in enumerate(found, 1)
        ]
    return lanes


def _unit_of(seconds: float) -> tuple[str, float]:
    """Return the unit of a duration, and the number of units in a second."""
    if seconds >= 2:
        return "s", 1.0
    return ("ms", 1e3) if seconds >= 2e-3 else ("us", 1e6)


def _step_of(length: float) -> float:
    """Return the distance of five to ten ticks along a length: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(length / 5))
    return power * max(factor for factor in (1, 2, 5) if factor * power <= length / 5 * (1 + 1e-9))


class Timeline:
    """A timeline; ``svg`` is its source, and a notebook shows the picture."""

    def __init__(self, records: Sequence[Record], seconds: float) -> None:
        ends = [record.start + record.duration for record in records]
        self._seconds = max([seconds, *ends, 1e-9])
        self._records = records

    @property
    def svg(self) -> str:
        """The picture as SVG source."""
        rows = rows_of(self._records)
        top = 30
        height = top + len(rows) * _ROW + _MEMORY + 40
        width = _WIDTH + 2 * _LEFT
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
            *self._legend(),
        ]
        bars = [record for record in self._records if record.kind != "allocate"]
        bars = sorted(bars, key=lambda each: -each.duration)[:_MOST]
        for number, name in enumerate(rows):
            y = top + number * _ROW
            parts.append(f'<text x="{_LEFT}" y="{y + 10}" fill="{_GRAY}">{escape(name)}</text>')
            parts.append(
                f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y + 15 + _BAR}" '
                f'y2="{y + 15 + _BAR}" stroke="{_GRAY}" stroke-opacity="0.35"/>'
            )
            parts += [self._bar(bar, y + 15) for bar in bars if row_of(bar) == name]
        parts += self._memory(top + len(rows) * _ROW + 4)
        parts += self._axis(height - 8)
        return "\n".join([*parts, "</svg>"])

    def _legend(self) -> list[str]:
        parts = []
        x = _LEFT
        for kind, color in _COLORS.items():
            if any(record.kind == kind for record in self._records):
                parts.append(f'<rect x="{x}" y="6" width="10" height="10" fill="{color}"/>')
                parts.append(f'<text x="{x + 14}" y="15" fill="{_GRAY}">{kind}</text>')
                x += 26 + 7 * len(kind)
        return parts

    def _x(self, seconds: float) -> float:
        return _LEFT + _WIDTH * min(max(seconds, 0.0) / self._seconds, 1.0)

    def _bar(self, record: Record, y: float) -> str:
        x = self._x(record.start)
        width = max(self._x(record.start + record.duration) - x, 0.6)
        about = f"{record.name}: {record.duration * 1e3:.3f} ms"
        about += f", {record.line}" if record.line else ""
        label = ""
        letters = int(width / 6.2)
        if letters > 5 and record.kind != "wait":  # a pale bar, on which text would be unreadable
            text = record.operations or record.name
            text = text if len(text) <= letters else text[: letters - 1] + "…"
            label = f'<text x="{x + 3:.1f}" y="{y + 12}" fill="#fff" font-size="10">'
            label += f"{escape(text)}</text>"
        opacity = "0.45" if record.kind == "wait" else "1"
        return (
            f'<g><title>{escape(about)}</title><rect x="{x:.2f}" y="{y}" width="{width:.2f}" '
            f'height="{_BAR}" fill="{_COLORS[record.kind]}" fill-opacity="{opacity}"/>{label}</g>'
        )

    def _memory(self, y: float) -> list[str]:
        """Return the memory in use as a step line, updated at each allocation."""
        seen = [(each.start, each.in_use) for each in self._records if each.kind == "allocate"]
        most = max((nbytes for _, nbytes in seen), default=0)
        parts = [
            f'<text x="{_LEFT}" y="{y + 10}" fill="{_GRAY}">memory in use, at most '
            f"{most / 1e6:.1f} MB</text>"
        ]
        if most:
            bottom, depth = y + _MEMORY, _MEMORY - 16
            path = f"M {self._x(seen[0][0]):.1f} {bottom}"
            for start, nbytes in seen:
                path += f" H {self._x(start):.1f} V {bottom - depth * nbytes / most:.1f}"
            path += f" H {_LEFT + _WIDTH} V {bottom} Z"
            parts.append(f'<path d="{path}" fill="#2f6ea5" fill-opacity="0.4" stroke="#2f6ea5"/>')
        return parts

    def _axis(self, y: float) -> list[str]:
        unit, scale = _unit_of(self._seconds)
        step = _step_of(self._seconds * scale)
        parts = []
        for count in range(int(self._seconds * scale / step + 1e-9) + 1):
            x = self._x(count * step / scale)
            anchor = "middle" if count else "start"
            if x > _LEFT + _WIDTH - 24:
                anchor = "end"
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 18}" y2="{y - 13}" stroke="{_GRAY}"/>'
                f'<text x="{x:.1f}" y="{y}" fill="{_GRAY}" text-anchor="{anchor}">'
                f"{count * step:g} {unit}</text>"
            )
        return parts

    def save(self, path: str | Path) -> None:
        """Write the picture to an SVG file."""
        Path(path).write_text(self.svg)

    def __repr__(self) -> str:
        bars = sum(record.kind != "allocate" for record in self._records)
        return f"<dparray timeline of {bars} bars; save('run.svg') writes it>"

    def _repr_svg_(self) -> str:
        return self.svg
