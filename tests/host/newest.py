"""The machine code of the newest kernel of the host, compiled again without the cache on disk."""

from __future__ import annotations

import pytest

from dparray._driver.host import modules


def compile_newest() -> None:
    modules.by_number[max(modules.by_number)]._compiled(1, None)


def vectorized_code(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the vectorized module of the newest kernel."""
    texts: list[str] = []
    monkeypatch.setattr(modules, "inline_variants", lambda module: texts.append(str(module)))
    compile_newest()
    return texts[0]
