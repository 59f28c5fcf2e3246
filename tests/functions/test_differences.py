"""The list of differences from NumPy: its examples run, and all known differences are listed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.functions.test_every_function import KNOWN

PAGE = Path(__file__).parents[2] / "notebooks" / "coming-from" / "differences.md"
TEXT = PAGE.read_text()
CELLS = re.findall(r"```\{code-cell\} python\n(.*?)```", TEXT, re.DOTALL)


def test_every_line_runs() -> None:
    scope: dict[str, Any] = {"__name__": "differences"}
    assert len(CELLS) > 20
    for cell in CELLS:
        exec(compile(cell, str(PAGE), "exec"), scope)


@pytest.mark.parametrize("reason", sorted({reason for _, reason in KNOWN}))
def test_permitted_differences_are_on_the_page(reason: str) -> None:
    words = " ".join(TEXT.replace("*", "").replace("`", "").split()).lower()
    assert reason.lower().replace("`", "") in words
