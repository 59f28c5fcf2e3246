"""Errors that show the line of the program with the mistake."""

from __future__ import annotations

from typing import TypeVar

from dparray.exceptions import TileError

_MAX_LINE, _SHOWN_OF_LONG_LINES = 1000, 160
Error = TypeVar("Error", bound=TileError)


def line_and_column(source: str, position: int) -> tuple[int, int]:
    """Line and column of a position, both from 1."""
    position = min(position, len(source))
    before = source[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def failure(kind: type[Error], source: str, position: int, what: str, cure: str) -> Error:
    """Return an error with line, column, the line itself, a caret and the fix."""
    line, column = line_and_column(source, position)
    lines = source.split("\n")
    text = lines[line - 1].rstrip("\r")
    at = column - 1
    if len(text) > _MAX_LINE:
        start = max(at - _SHOWN_OF_LONG_LINES // 2, 0)
        text, at = text[start : start + _SHOWN_OF_LONG_LINES], at - start
    gap = "".join("\t" if each == "\t" else " " for each in text[:at])
    message = f"line {line}, column {column}: {what}\n    {text}\n    {gap}^\n{cure}"
    return kind(message, line=line, column=column)
