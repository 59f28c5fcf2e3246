"""Draw a graph of named boxes as an SVG: the nodes of an expression, from its arrays downward.

White text is on boxes of medium brightness, and lines are gray, so the picture is readable on light
and dark pages. It needs no JavaScript and no other files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT, _GAP, _FALL = 184, 36, 12, 26
_DETOUR = 10
#: The number of characters of the monospace font that fit into a box.
_LETTERS = 25
_COLORS = ("#a85a14", "#2f6ea5", "#2f7d37", "#90488f", "#7a6a00", "#5f5fb8")
_GRAY = "#717171"


def color(group: int) -> str:
    """Return the color of the boxes of a group."""
    return _COLORS[group % len(_COLORS)]


class Box(NamedTuple):
    """A box of the graph.

    Attributes:
        name: the name that other boxes use.
        title, subtitle: its two lines.
        note: the text at the right of the title.
        operands: the names of the boxes above that it depends on.
        group: boxes with the same number have the same color; ``None`` has no color.
    """

    name: str
    title: str
    subtitle: str
    note: str
    operands: tuple[str, ...]
    group: int | None


class _Slot:
    """A slot in a row: a box, or a place where the line from a box crosses the row.

    ``above`` and ``below`` are the slots that lines lead to.
    """

    def __init__(self, width: int, box: Box | None = None) -> None:
        self.width = width
        self.box = box
        self.middle = 0.0
        self.above: list[_Slot] = []
        self.below: list[_Slot] = []


def graph(boxes: Sequence[Box]) -> str:
    """Return the picture as SVG source.

    The layout follows K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of
    hierarchical system structures" (1981): rows by the longest path from the top, a slot for each
    line that crosses a row, and rows ordered by the mean of their neighbors.

    Args:
        boxes: each after its operands.
    """
    rows = _rows(boxes, _levels(boxes))
    for _ in range(3):
        for row in rows:
            _order(row, "above")
        for row in reversed(rows):
            _order(row, "below")
    for row in (*rows, *reversed(rows), *rows):
        _spread(row)
    slots = [slot for row in rows for slot in row]
    left = min((slot.middle - slot.width / 2 for slot in slots), default=0) - _GAP
    right = max((slot.middle + slot.width / 2 for slot in slots), default=0) + _GAP
    width, height = round(right - left), len(rows) * (_HEIGHT + _FALL) - _FALL + 2 * _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="11">'
    ]
    for number, row in enumerate(rows):
        top = _GAP + number * (_HEIGHT + _FALL)
        for slot in row:
            parts += _lines(slot, slot.middle - left, top, left)
            parts += _drawn(slot, slot.middle - left, top)
    return "".join([*parts, "</svg>"])


def _levels(boxes: Sequence[Box]) -> Mapping[str, int]:
    """Return the row of each box: below its operands; without operands just above its user."""
    level: dict[str, int] = {}
    for box in boxes:
        level[box.name] = 1 + max((level[name] for name in box.operands), default=-1)
    for box in boxes:
        if not box.operands:
            users = [level[user.name] for user in boxes if box.name in user.operands]
            level[box.name] = min(users, default=1) - 1
    return level


def _rows(boxes: Sequence[Box], level: Mapping[str, int]) -> list[list[_Slot]]:
    rows: list[list[_Slot]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    # the slots of each box: itself, then the crossings of its line
    way: dict[str, list[_Slot]] = {}
    for box in boxes:
        slot = _Slot(_WIDTH, box)
        rows[level[box.name]].append(slot)
        way[box.name] = [slot]
    for box in boxes:
        slot = way[box.name][0]
        for name in dict.fromkeys(box.operands):
            passed = way[name]
            while level[name] + len(passed) < level[box.name]:
                detour = _Slot(_DETOUR)
                rows[level[name] + len(passed)].append(detour)
                _join(passed[-1], detour)
                passed.append(detour)
            _join(passed[level[box.name] - level[name] - 1], slot)
    return rows


def _join(upper: _Slot, lower: _Slot) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _order(row: list[_Slot], side: str) -> None:
    """Sort a row by the mean slot of its neighbors on one side."""
    for slot in row:
        neighbors = getattr(slot, side)
        if neighbors:
            slot.middle = sum(neighbor.middle for neighbor in neighbors) / len(neighbors)
    row.sort(key=lambda slot: slot.middle)
    for number, slot in enumerate(row):
        slot.middle = number * (_WIDTH + _GAP)


def _spread(row: list[_Slot]) -> None:
    """Move the slots of a row to the mean of their neighbors, as far as there is room."""
    wanted = []
    for slot in row:
        near = slot.above + slot.below
        wanted.append(sum(each.middle for each in near) / len(near) if near else slot.middle)
    free = float("-inf")
    for slot, middle in zip(row, wanted, strict=True):
        slot.middle = max(middle, free + slot.width / 2)
        free = slot.middle + slot.width / 2 + _GAP
    pushed = sum(slot.middle - middle for slot, middle in zip(row, wanted, strict=True))
    for slot in row:
        slot.middle -= pushed / len(row)


def _lines(slot: _Slot, x: float, top: int, left: float) -> list[str]:
    start = top + (_HEIGHT if slot.box else 0)
    end, bend = top + _HEIGHT + _FALL, top + _HEIGHT + _FALL / 2
    lines = []
    for lower in slot.below:
        to = lower.middle - left
        lines.append(
            f'<path d="M{x:.0f} {start} V{top + _HEIGHT} C{x:.0f} {bend:.0f} {to:.0f} {bend:.0f} '
            f'{to:.0f} {end}" fill="none" stroke="{_GRAY}"/>'
        )
    return lines


def _drawn(slot: _Slot, x: float, top: int) -> list[str]:
    if slot.box is None:
        return []
    corner = round(x - _WIDTH / 2)
    paint = _GRAY if slot.box.group is None else color(slot.box.group)
    note = slot.box.note
    title = _shortened(slot.box.title, _LETTERS - len(note) - bool(note))
    return [
        f'<rect x="{corner}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="{paint}"/>',
        f'<text x="{corner + 8}" y="{top + 15}" fill="white" font-weight="bold">'
        f"{escape(title)}</text>",
        f'<text x="{corner + _WIDTH - 8}" y="{top + 15}" fill="white" text-anchor="end">'
        f"{escape(note)}</text>",
        f'<text x="{corner + 8}" y="{top + 29}" fill="white">'
        f"{escape(_shortened(slot.box.subtitle, _LETTERS))}</text>",
    ]


def _shortened(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
