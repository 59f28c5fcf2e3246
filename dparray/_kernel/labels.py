"""How the types of a kernel's arguments are written for people."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

Signature = tuple[str, ...]


def labels_of(types: Iterable[str]) -> Signature:
    """Type keys in words: ``float32[2-D, C]``, ``local float32[1-D]``, ``int64``, ``Item(1)``."""
    return tuple(map(_label, types))


def _label(key: str) -> str:
    kind, _, rest = key.partition(":")
    if kind in ("item", "nditem"):
        return f"{'Item' if kind == 'item' else 'NdItem'}({rest})"
    local = "local " if kind.startswith("local ") else ""
    name = np.dtype(kind.removeprefix("local ")).name
    if not rest:
        return name
    if local:
        return f"local {name}[{rest}-D]"
    return f"{name}[{rest[:-1]}-D, {rest[-1]}]"
