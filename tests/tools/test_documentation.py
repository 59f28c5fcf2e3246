"""The site builds without a warning, its links lead somewhere, and nothing of it is fetched.

Building it runs every block of its pages.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import dparray as dp

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "notebooks"
CELL = r"^```\{code-cell\}[^\n]*\n(.*?)^```"

pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    arguments = ["-q", "-W", "--keep-going", "-b", "html", "-d", folder / "doctrees"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *arguments, PAGES, folder / "html"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    return folder / "html"


class Page(HTMLParser):
    """The addresses that a page names, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note down what a tag names."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in {"stylesheet", "preload", "icon"}:
            self.loaded.append(given["href"])
        elif "src" in given:
            self.loaded.append(given["src"])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text()) for path in site.rglob("*.html")}


def test_every_link_within_the_site_leads_somewhere(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        if "_modules" in path.parts:  # source pages also link to objects that no page documents
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = target not in pages or anchor in pages[target].anchors | {""}
            if not (target.exists() and known):
                broken.append(f"{path.name}: {link}")
    assert not broken, "\n".join(broken[:40])


def test_a_page_loads_nothing_from_elsewhere(pages: dict[Path, Page]) -> None:
    loaded = {link for page in pages.values() for link in page.loaded}
    assert not {link for link in loaded if urlsplit(link).netloc}


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    objects = inventory.data if hasattr(inventory, "data") else inventory
    documented = {
        name for kind, entries in objects.items() if kind.startswith("py:") for name in entries
    }
    types = (site / "reference" / "types.html").read_text()
    missing = []
    for module in (dp, dp.fft, dp.linalg, dp.random, dp.special, dp.algorithms, dp.memory):
        for name in module.__all__:
            value = getattr(module, name)
            numpys = (getattr(value, "__module__", None) or "").startswith("numpy")
            if inspect.ismodule(value) or numpys or not callable(value):
                continue
            if f"{module.__name__}.{name}" not in documented and f">{name}<" not in types:
                missing.append(f"{module.__name__}.{name}")
    assert not missing


def test_pages_name_every_option_and_every_error() -> None:
    options = (PAGES / "reference" / "options.md").read_text()
    for name in dp.config.OPTIONS:
        assert f"DPARRAY_{name.upper()}" in options
    errors = (PAGES / "reference" / "errors.md").read_text()
    for name in dp.exceptions.__all__:
        if not name.startswith("Tile") and name not in {"DparrayError", "KernelError"}:
            assert f"`{name}`" in errors


def cells_left_out() -> Iterator[Any]:
    """Blocks that need a library which is not part of the environment, by that library."""
    for path in sorted(PAGES.rglob("*.md")):
        for cell in re.findall(CELL, path.read_text(), re.M | re.S):
            needs = re.search(r"^# needs (\w+)", cell, re.M)
            assert ("skip-execution" in cell) == bool(needs), f"{path}: {cell}"
            if needs:
                code = "\n".join(line for line in cell.splitlines() if not line.startswith(":"))
                yield pytest.param(needs[1], code, id=f"{path.stem}-{needs[1]}")


@pytest.mark.parametrize(("library", "code"), list(cells_left_out()))
def test_a_block_for_another_library_runs_where_it_is_installed(library: str, code: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed; `make suites` brings it")
    exec(compile(f"import dparray as dp\n{code}", library, "exec"), {})


def test_no_page_has_python_that_does_not_run() -> None:
    for path in sorted(PAGES.rglob("*.md")):
        assert "```python" not in path.read_text(), f"{path}: write a code-cell, which runs"


@pytest.fixture
def front(site: Path, browser: Any) -> Any:
    """A browser, at the front page."""
    browser.get((site / "index.html").as_uri())
    return browser


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "page", ["index", "guide/kernels", "reference/elementwise", "project/benchmarks"]
)
def test_a_page_is_as_wide_as_its_window(browser: Any, site: Path, width: int, page: str) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.get((site / f"{page}.html").as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_site_has_a_light_and_a_dark_face(front: Any) -> None:
    def background(mode: str) -> str:
        return front.execute_script(
            "document.documentElement.dataset.theme = arguments[0];"
            "return getComputedStyle(document.body).backgroundColor",
            mode,
        )

    assert background("light") != background("dark")


def test_search_finds_a_function(browser: Any, site: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get((site / "search.html").as_uri() + "?q=group_barrier")
    found = WebDriverWait(browser, 30).until(
        lambda window: window.find_elements(By.CSS_SELECTOR, "ul.search li a")
    )
    assert any("kernels" in link.get_attribute("href") for link in found)
