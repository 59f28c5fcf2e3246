"""What a user's scalar function returns, held against what is stored of it."""

from __future__ import annotations

from typing import Any


def of_kind(value: Any, kind: str) -> Any:
    """``value``; a kernel in which it is no number of ``kind`` does not compile.

    What a function returns is of one type in a kernel, the same on all its paths. A float on one of
    them would be cut where a trial of another path has found integers.

    Args:
        value: what the function returns.
        kind: ``"b"`` or ``"i"`` for truth values and integers, ``"f"`` for floats.
    """
    return value
