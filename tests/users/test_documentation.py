"""Functions, options and commands named in the pages exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dparray as dp

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "notebooks").rglob("*.md"))]
_NAME = re.compile(r"(?<![\w.])dp((?:\.[A-Za-z_]\w*)+)")
_NAME_OF_AN_ARRAY = re.compile(r"(?<![\w.)\]])x\.([A-Za-z_]\w*)")
#: Names that the pages describe as missing.
ABSENT = {"dp.ElementwiseKernel", "dp.cuda", "dp.jit", "x.get", "dp.nditer"}


def prose(page: Path) -> Iterator[str]:
    """Return a page's lines outside of blocks; of tables of two libraries, dparray's column."""
    inside = ""
    theirs = page.parent.name == "coming-from"
    for line in page.read_text().splitlines():
        fence = re.match(r"\s*(`{3,}|:{3,})", line)
        if fence and (not inside or line.strip() == inside):
            inside = "" if inside else fence[1]
        elif not inside or inside.startswith(":"):
            yield line.split("|", 2)[2] if theirs and line.startswith("|") else line


def spans(page: Path) -> Iterator[str]:
    yield from (code for line in prose(page) for code in re.findall(r"`([^`]+)`", line))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_dparray_name_on_a_page_exists(page: Path) -> None:
    missing = []
    for code in spans(page):
        for found in _NAME.finditer(code):
            value: Any = dp
            try:
                for part in found[1].split(".")[1:]:
                    value = getattr(value, part)
            except AttributeError:
                missing.append(found[0])
        missing += [
            f"x.{name}" for name in _NAME_OF_AN_ARRAY.findall(code) if not hasattr(dp.ndarray, name)
        ]
    assert not set(missing) - ABSENT


def test_every_test_that_a_page_names_is_there() -> None:
    files = list((ROOT / "tests").rglob("test_*.py"))
    known = {file.name for file in files}
    for file in files:
        known.update(re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE))
    named = {
        code for page in PAGES for code in spans(page) if re.fullmatch(r"test_\w+(\.py)?", code)
    }
    assert len(named) > 50  # the compiler workarounds, in notebooks/project/design.md
    assert not named - known
