"""Tables for notebooks, in the page's own colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;padding:1px 10px 1px 0;white-space:nowrap"


def card(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *below: str) -> str:
    """A table under a title, and pictures or lines of text below it, which are HTML."""
    head = "".join(f'<th style="{_CELL}">{escape(text)}</th>' for text in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(text)}</td>' for text in row) + "</tr>"
        for row in rows
    )
    parts = "".join(f"<div>{part}</div>" for part in below)
    return (
        f'<div style="overflow-x:auto"><div style="font-weight:bold">{escape(title)}</div>'
        f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{parts}</div>"
    )
