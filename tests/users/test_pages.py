"""A page that needs packages besides those of ``pip install .[notebook]`` begins with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.users import pages

NEEDY = [path for path in pages.PAGES if pages.notebook_of(path).metadata.get("needs")]


def first_paragraph(path: Path) -> str:
    """Return the text below the title of a page."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        text = pages.notebook_of(path).cells[0].source
    found = re.search(r"^# [^\n]*\n\n(.*?)\n\n", text, re.M | re.S)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("path", NEEDY, ids=lambda path: path.name)
def test_the_first_paragraph_names_what_a_page_needs(path: Path) -> None:
    assert "pip install" in first_paragraph(path)


def test_pages_about_other_packages_are_known() -> None:
    assert {"dpnp.md", "interoperability.md", "09-models.ipynb"} <= {path.name for path in NEEDY}


def test_cells_that_are_not_executed_on_the_site_are_left_out() -> None:
    path = pages.NOTEBOOKS / "guide" / "xarray.md"
    assert "import xarray" in path.read_text()
    assert not pages.notebook_of(path).cells


@pytest.mark.parametrize("name", ["status.md", "devices.md"])
def test_readme_repeats_the_included_text(name: str) -> None:
    included = pages.NOTEBOOKS / "_include" / name
    assert included.read_text() in (pages.ROOT / "README.md").read_text()
    including = [path for path in pages.PAGES if f"/_include/{name}" in path.read_text()]
    assert len(including) == 2
