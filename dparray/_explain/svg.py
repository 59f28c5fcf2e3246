"""A graph of named boxes as an SVG: what an expression is made of, from its arrays downwards.

White text stands on boxes of middle brightness, and lines are grey, so that the picture shows on
light and dark pages; it needs no JavaScript and nothing around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT, _GAP, _FALL = 184, 36, 12, 26
_DETOUR = 10
#: Of a text in a box: so many letters of the monospace font fit.
_LETTERS = 25
_COLOURS = ("#a85a14", "#2f6ea5", "#2f7d37", "#90488f", "#7a6a00", "#5f5fb8")
_GREY = "#717171"


def colour(group: int) -> str:
    """The colour of the boxes of a group."""
    return _COLOURS[group % len(_COLOURS)]


class Box(NamedTuple):
    """A box of the graph.

    Attributes:
        name: by which other boxes refer to it.
        title, subtitle: its two lines.
        note: at the right of the title.
        operands: the names of the boxes above it that it needs.
        group: boxes of one number have one colour; ``None`` has none.
    """

    name: str
    title: str
    subtitle: str
    note: str
    operands: tuple[str, ...]
    group: int | None


class _Place:
    """A place in a row: a box, or where the line from a box passes a row on its way further down.

    ``above`` and ``below`` are the places that lines lead to.
    """

    def __init__(self, width: int, box: Box | None = None) -> None:
        self.width = width
        self.box = box
        self.middle = 0.0
        self.above: list[_Place] = []
        self.below: list[_Place] = []


def graph(boxes: Sequence[Box]) -> str:
    """The picture, as the text of an SVG.

    The layout is that of K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of
    hierarchical system structures" (1981): rows by the longest way from the top, places of their
    own for lines that pass a row, and rows ordered by the mean of their neighbours.

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
    places = [place for row in rows for place in row]
    left = min((place.middle - place.width / 2 for place in places), default=0) - _GAP
    right = max((place.middle + place.width / 2 for place in places), default=0) + _GAP
    width, height = round(right - left), len(rows) * (_HEIGHT + _FALL) - _FALL + 2 * _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="11">'
    ]
    for number, row in enumerate(rows):
        top = _GAP + number * (_HEIGHT + _FALL)
        for place in row:
            parts += _lines(place, place.middle - left, top, left)
            parts += _drawn(place, place.middle - left, top)
    return "".join([*parts, "</svg>"])


def _levels(boxes: Sequence[Box]) -> Mapping[str, int]:
    """The row of each box: below its operands; one without operands just above who needs it."""
    level: dict[str, int] = {}
    for box in boxes:
        level[box.name] = 1 + max((level[name] for name in box.operands), default=-1)
    for box in boxes:
        if not box.operands:
            users = [level[user.name] for user in boxes if box.name in user.operands]
            level[box.name] = min(users, default=1) - 1
    return level


def _rows(boxes: Sequence[Box], level: Mapping[str, int]) -> list[list[_Place]]:
    rows: list[list[_Place]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    way: dict[str, list[_Place]] = {}  # of each box: itself, then where its line passes rows
    for box in boxes:
        place = _Place(_WIDTH, box)
        rows[level[box.name]].append(place)
        way[box.name] = [place]
    for box in boxes:
        place = way[box.name][0]
        for name in dict.fromkeys(box.operands):
            passed = way[name]
            while level[name] + len(passed) < level[box.name]:
                detour = _Place(_DETOUR)
                rows[level[name] + len(passed)].append(detour)
                _join(passed[-1], detour)
                passed.append(detour)
            _join(passed[level[box.name] - level[name] - 1], place)
    return rows


def _join(upper: _Place, lower: _Place) -> None:
    upper.below.append(lower)
    lower.above.append(upper)


def _order(row: list[_Place], side: str) -> None:
    """Sort a row by the mean place of its neighbours on one side."""
    for place in row:
        neighbours = getattr(place, side)
        if neighbours:
            place.middle = sum(each.middle for each in neighbours) / len(neighbours)
    row.sort(key=lambda place: place.middle)
    for number, place in enumerate(row):
        place.middle = number * (_WIDTH + _GAP)


def _spread(row: list[_Place]) -> None:
    """Move the places of a row to the mean of their neighbours, as far as there is room."""
    wanted = []
    for place in row:
        near = place.above + place.below
        wanted.append(sum(each.middle for each in near) / len(near) if near else place.middle)
    free = float("-inf")
    for place, middle in zip(row, wanted, strict=True):
        place.middle = max(middle, free + place.width / 2)
        free = place.middle + place.width / 2 + _GAP
    pushed = sum(place.middle - middle for place, middle in zip(row, wanted, strict=True))
    for place in row:
        place.middle -= pushed / len(row)


def _lines(place: _Place, x: float, top: int, left: float) -> list[str]:
    start = top + (_HEIGHT if place.box else 0)
    end, bend = top + _HEIGHT + _FALL, top + _HEIGHT + _FALL / 2
    lines = []
    for lower in place.below:
        to = lower.middle - left
        lines.append(
            f'<path d="M{x:.0f} {start} V{top + _HEIGHT} C{x:.0f} {bend:.0f} {to:.0f} {bend:.0f} '
            f'{to:.0f} {end}" fill="none" stroke="{_GREY}"/>'
        )
    return lines


def _drawn(place: _Place, x: float, top: int) -> list[str]:
    if place.box is None:
        return []
    corner = round(x - _WIDTH / 2)
    paint = _GREY if place.box.group is None else colour(place.box.group)
    note = place.box.note
    title = _shortened(place.box.title, _LETTERS - len(note) - bool(note))
    return [
        f'<rect x="{corner}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="{paint}"/>',
        f'<text x="{corner + 8}" y="{top + 15}" fill="white" font-weight="bold">'
        f"{escape(title)}</text>",
        f'<text x="{corner + _WIDTH - 8}" y="{top + 15}" fill="white" text-anchor="end">'
        f"{escape(note)}</text>",
        f'<text x="{corner + 8}" y="{top + 29}" fill="white">'
        f"{escape(_shortened(place.box.subtitle, _LETTERS))}</text>",
    ]


def _shortened(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
