"""HTML tables for notebooks, in the colors of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;padding:1px 10px 1px 0;vertical-align:top;white-space:nowrap"
_NUMBER = _CELL.replace("left", "right", 1)
#: Long texts wrap, so that no horizontal scrolling is needed.
_SENTENCE = _CELL.replace("nowrap", "normal;min-width:14em")
_LONG = 45


def _style(texts: Sequence[str]) -> str:
    """Return the style of a column with long texts."""
    if max(map(len, texts), default=0) > _LONG:
        return _SENTENCE
    is_number = all(not text or text[0].isdecimal() for text in texts) and any(texts)
    return _NUMBER if is_number else _CELL


def card(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *below: str) -> str:
    """Return a table with a title, and pictures or lines of text, as HTML, below it."""
    rows = list(rows)
    styles = [_style([row[position] for row in rows]) for position in range(len(heads))]

    def line(cell: str, texts: Sequence[str]) -> str:
        return "".join(
            f'<{cell} style="{style}">{escape(text)}</{cell}>'
            for style, text in zip(styles, texts, strict=True)
        )

    head = line("th", heads)
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    parts = "".join(f"<div>{part}</div>" for part in below)
    return (
        f'<div style="overflow-x:auto"><div style="font-weight:bold">{escape(title)}</div>'
        f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{parts}</div>"
    )
