"""Modules and files named in texts exist; moving a file would break the texts silently."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.static

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path for top in ("dparray", "kernels", "tests") for path in (ROOT / top).rglob("*.py")
)
PAGES = [ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")]
MODULE = re.compile(r"\bdparray((?:\.[a-z_0-9]+)*\._?[a-z_0-9]+)")
FILE = re.compile(r"`([A-Za-z_0-9./]+(?:\.py|\.md|/))`")


def exists(dotted: str) -> bool:
    """Return whether a dotted name, if it looks like one, begins with a folder or file."""
    place = ROOT / "dparray"
    for part in dotted.strip(".").split("."):
        folder = ROOT / "kernels" if part == "kernels" and place.name == "dparray" else place / part
        if folder.is_dir():
            place = folder
        else:
            files = [place / f"{part}{end}" for end in (".py", ".pyi")]
            is_file = any(file.exists() for file in files)
            return place.name == "dparray" or is_file or in_init(place, part)
    return True


def in_init(folder: Path, name: str) -> bool:
    init = folder / "__init__.py"
    return not init.exists() or name in init.read_text()


def test_modules_that_a_text_names_exist() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: dparray{name}"
        for path in SOURCES
        for name in MODULE.findall(path.read_text())
        # Private modules are mentioned for maintainers, by their files.
        if name.startswith("._") and not exists(name)
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = set(FILE.findall(page.read_text()))
    assert named
    missing = {
        name
        for name in named
        if not any((base / name).exists() for base in (ROOT, ROOT / "dparray"))
    }
    assert not missing
