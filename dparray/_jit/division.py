"""The iterations of ``prange`` loops in native code, divided into parts for threads."""

from __future__ import annotations

import ast
from typing import Any

SYMBOLS = {ast.Add: "+", ast.Sub: "+", ast.Mult: "*", ast.BitOr: "|", ast.BitXor: "^",
            ast.BitAnd: "&"}  # fmt: skip
IDENTITIES: dict[type, int] = {
    ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.BitOr: 0, ast.BitXor: 0, ast.BitAnd: -1
}  # fmt: skip


def range_of(arguments: list[ast.expr]) -> tuple[ast.expr, ast.expr, ast.expr]:
    """Return start, stop and step of a range."""
    given = list(arguments)
    if len(given) == 1:
        given.insert(0, ast.Constant(0))
    return given[0], given[1], given[2] if len(given) == 3 else ast.Constant(1)


def loop_over(loop: Any, starts: list[tuple[str, str]]) -> str:
    """Return the loops over the iterations of a part, with ``pass`` for the body.

    The innermost loop counts from 0, and ``max`` keeps the first index from being negative, so that
    compilers leave out the checks for negative indices and vectorize.
    """
    mark, text, indent, rest = loop.line, "", "", ""
    begin, end = "__first", "__last"
    if len(starts) > 1:
        count = f"__count{len(starts) - 1}_{mark}"
        text = f"for __at in range((__last - 1) // {count} - __first // {count} + 1):\n"
        text += f" __row = max(__first // {count}, 0) + __at\n"
        indent, rest = " ", "__row"
        for axis in reversed(range(len(starts) - 1)):
            at = f"{rest} % __count{axis}_{mark}" if axis else rest
            text += f" {loop.loops[axis][0]} = {_index(*starts[axis], at)}\n"
            rest = f"({rest} // __count{axis}_{mark})"
        begin = f"__first - __row * {count}"
        end = f"min(__last - __row * {count}, {count})"
    text += f"{indent}__from = max({begin}, 0)\n"
    text += f"{indent}for __at in range({end} - __from):\n"
    value = _index(*starts[-1], "(__from + __at)")
    return f"{text}{indent} {loop.loops[-1][0]} = {value}\n{indent} pass"


def _index(start: str, step: str, position: str) -> str:
    """Return the value of a loop variable."""
    scaled = position if step == "1" else f"{position} * {step}"
    return scaled if start == "0" else f"{start} + {scaled}"
