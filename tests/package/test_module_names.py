"""Files, names and numbers in texts exist; moving a file would break the texts silently."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.static

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("dparray", "kernels", "notebooks", "tests")
FILES = [path for top in TOPS for path in sorted((ROOT / top).rglob("*.*")) if path.is_file()]
SOURCES = [path for path in FILES if path.suffix == ".py"]
PAGES = [
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "dparray").rglob("README.md")),
]
MODULE = re.compile(r"\bdparray((?:\.[a-z_0-9]+)*\._?[a-z_0-9]+)")
FILE = re.compile(r"`([A-Za-z_0-9./]+(?:\.py|\.md|\.c|/))`")
#: A name in code, with its last attribute; names of other packages are not looked up.
NAME = re.compile(r"`@?((?!dpctl|numba)[A-Za-z_][\w.]*\w)(?:\([^`]*\))?`")
#: A constant with its value, as `MAX_PLANS` (4,096).
NUMBER = re.compile(r"`([A-Z][A-Z_]+)` \(([\d,]+)\)")


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = set(FILE.findall(page.read_text()))
    assert named
    bases = (ROOT, ROOT / "dparray", page.parent)
    missing = {name for name in named if not any((base / name).exists() for base in bases)}
    # A name without a folder is that of a file in several folders.
    assert not missing - {path.name for path in FILES if path.is_relative_to(page.parent)}


@functools.cache
def code() -> str:
    return "\n".join(path.read_text() for path in FILES if path.suffix in (".py", ".pyi", ".c"))


def unknown_names(text: str) -> set[str]:
    """Return the names that a text has in backticks and the code nowhere."""
    named = NAME.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    known = {*re.findall(r"\w+", code()), *(part for path in FILES for part in path.parts)}
    known |= {path.stem for path in FILES}
    return {
        name
        for name in named
        if not name.endswith((".py", ".md", ".c", ".yml")) and name.rpartition(".")[2] not in known
    }


def wrong_numbers(text: str) -> list[str]:
    """Return the constants to which a text gives another value than the code."""
    return [
        f"{name}: {value}"
        for name, value in NUMBER.findall(text)
        if int(value.replace(",", ""))
        not in [eval(each) for each in re.findall(rf"^{name} = ([\d_ <*]+)", code(), re.MULTILINE)]
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_names_and_numbers_of_the_code(page: Path) -> None:
    assert not unknown_names(page.read_text())
    assert not wrong_numbers(page.read_text())


def test_the_checks_of_pages_find() -> None:
    assert unknown_names("`nowhere_at" + "_all()`, `Traits`") == {"nowhere_at" + "_all"}
    assert wrong_numbers("`MAX_PLANS` (4,096), `MAX_LEAVES` (3)") == ["MAX_LEAVES: 3"]


def test_the_map_is_short() -> None:
    """It is read first; the details are in the folders."""
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= 900
