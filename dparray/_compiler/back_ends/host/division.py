"""Divide integers of at most 32 bits as float64, since processors divide no vectors of integers.

The quotient is exact: it is rounded by less than 2**-53 of itself, and one that is not an integer
is further from the next integer than that. A divisor of zero gives no result, as in LLVM.
"""

from __future__ import annotations

import re

_EXTENDED = re.compile(r"([sz])ext (?:nneg )?i(?:8|16|32) \S+ to i64")
_CHOSEN = re.compile(r"select i1 \S+, i64 (\S+), i64 (\S+)")
_DIVIDED = re.compile(
    r"([su])(div|rem) (?:exact )?i(8|16|32|64) (\S+), (%\S+)(?:, !.*)?",
)
_TRUNC = "declare double @llvm.trunc.f64(double)"


def as_floats(text: str) -> str:
    """Return a module whose divisions of narrow integers by variables are those of float64.

    Args:
        text: an optimized module.
    """
    lines, narrow, count = list[str](), dict[str, str](), 0
    for line in text.splitlines():
        if line.startswith("define "):
            narrow = {}
        name, _, value = line.strip().partition(" = ")
        if extended := _EXTENDED.fullmatch(value):
            narrow[name] = extended[1]
        elif chosen := _CHOSEN.fullmatch(value):
            kinds = {_kind(each, narrow) for each in chosen.groups()} - {"c"}
            if len(kinds) == 1 and None not in kinds:
                narrow[name] = str(kinds.pop())
        divided = _DIVIDED.fullmatch(value)
        if divided and _is_narrow(divided, narrow):
            lines += _written(name, divided, count)
            count += 1
        else:
            lines.append(line)
    if count and _TRUNC not in text:
        lines.append(_TRUNC)
    return "\n".join([*lines, ""]) if count else text


def _kind(value: str, narrow: dict[str, str]) -> str | None:
    """Return the extension that made an int64, ``"c"`` for a small constant, otherwise ``None``."""
    if value.startswith("%"):
        return narrow.get(value)
    return "c" if value.isdigit() and int(value) < 1 << 31 else None


def _is_narrow(divided: re.Match[str], narrow: dict[str, str]) -> bool:
    sign, _, bits, *operands = divided.groups()
    kinds = {_kind(each, narrow) for each in operands}
    return bits != "64" or (None not in kinds and (sign == "s" or "s" not in kinds))


def _written(name: str, divided: re.Match[str], number: int) -> list[str]:
    sign, operation, bits, a, b = divided.groups()
    kind, own = f"i{bits}", f"%division{number}"
    lines = [
        f"  {own}.a = {sign}itofp {kind} {a} to double",
        f"  {own}.b = {sign}itofp {kind} {b} to double",
        f"  {own}.q = fdiv double {own}.a, {own}.b",
    ]
    value = f"{own}.q"
    if operation == "rem":
        lines += [
            f"  {own}.t = call double @llvm.trunc.f64(double {own}.q)",
            f"  {own}.p = fmul double {own}.t, {own}.b",
            f"  {own}.r = fsub double {own}.a, {own}.p",
        ]
        value = f"{own}.r"
    return [*lines, f"  {name} = fpto{sign}i double {value} to {kind}"]
