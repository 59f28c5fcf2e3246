"""Conversion of Tile text to tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from dparray.exceptions import TileSyntaxError
from dparray.tilelang.failure import failure

RESERVED = frozenset(
    ("function", "default", "no_defract", "polynomial", "expression", "contraction")
)

_NAME = r"[A-Za-z][A-Za-z0-9_]*'?"
_TOKEN = re.compile(
    rf"""(?P<space>[ \t\r\n]+)
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)
    |(?P<int>[0-9]+)
    |\#(?P<ID>{_NAME})
    |\$(?P<IDX>{_NAME})
    |(?P<name>{_NAME})
    |(?P<sign>\[\[|\]\]|->|==|!=|>=|<=|<<|>>|[-+*/?:;,.()\[\]{{}}=<>&|^~])""",
    re.VERBOSE | re.ASCII,
)
_CURES = {
    "//": "Tile has no comments: say it outside of the program, or in an attribute [[note]]",
    "/*": "Tile has no comments: say it outside of the program, or in an attribute [[note]]",
    "#": "Tile has no comments; # only stands right before a name, and makes it a tensor's",
    "$": "$ only stands right before a name, and makes it an index variable's",
    "%": "for the remainder of sizes write mod(a, b)",
    "!": "only != is an operator; for the opposite of a Boolean write A == 0",
    "_": "a name begins with a letter",
}


class Token(NamedTuple):
    """A token: ``kind`` is ``ID``, ``IDX``, ``int``, ``float``, ``end``, or the sign itself."""

    kind: str
    text: str
    position: int


def tokens(source: str) -> list[Token]:
    """Return the tokens of a program, the last one of kind ``end``.

    Raises:
        TileSyntaxError: a character does not begin a token, or is a comment.
    """
    found: list[Token] = []
    position = 0
    while position < len(source):
        pair = source[position : position + 2]
        match = None if pair in ("//", "/*") else _TOKEN.match(source, position)
        if match is None:
            raise _unknown(source, position)
        kind = match.lastgroup or ""
        text = match[kind]
        if kind == "sign":
            kind = text
        elif kind == "name":
            if text in RESERVED:
                kind = text
            else:
                kind = "ID" if text[0].isupper() else "IDX"
        if kind != "space":
            found.append(Token(kind, text, position))
        position = match.end()
    found.append(Token("end", "", len(source)))
    return found


def _unknown(source: str, position: int) -> TileSyntaxError:
    pair, character = source[position : position + 2], source[position]
    if pair in ("//", "/*"):
        what = f"{pair} begins no token"
    else:
        what = f"the character {character!r} is not part of the language"
    cure = _CURES.get(pair) or _CURES.get(
        character, "remove it; names are letters, digits and _, with an optional ' at the end"
    )
    return failure(TileSyntaxError, source, position, what, cure)
