"""The site builds without a warning, its links work, and it fetches nothing from elsewhere.

Building it runs every code block of its pages.
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
    """Build the site; return its folder."""
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
    """The addresses that a page refers to, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the addresses and anchors of a tag."""
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
    """Return blocks that need a library outside of the environment, by that library."""
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
        pytest.skip(f"{library} is not installed; `make suites` installs it")
    exec(compile(f"import dparray as dp\n{code}", library, "exec"), {})


def test_no_page_has_python_that_does_not_run() -> None:
    for path in sorted(PAGES.rglob("*.md")):
        assert "```python" not in path.read_text(), f"{path}: write a code-cell, which runs"


@pytest.fixture
def front(site: Path, browser: Any) -> Any:
    """Return a browser at the front page."""
    browser.get((site / "index.html").as_uri())
    return browser


@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize(
    "page",
    [
        "index",
        "tutorials",
        "03-fusion",
        "guide/kernels",
        "reference/elementwise",
        "reference/generated/dparray.histogram",
        "project/benchmarks",
    ],
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


def test_the_front_page_has_what_a_stranger_needs(front: Any) -> None:
    text = front.execute_script("return document.querySelector('article').innerText")
    for words in ("pip install", f"Version {dp.__version__}", "alpha", "Apache-2.0", "CPU devices"):
        assert words in text
    head = "return document.querySelector('meta[name=description]').content"
    assert "SYCL" in front.execute_script(head)


def test_a_guide_page_shows_the_results_of_its_code(browser: Any, site: Path) -> None:
    browser.get((site / "guide" / "files.html").as_uri())
    outputs = "return [...document.querySelectorAll('.cell_output')].map(each => each.innerText)"
    assert "(100, 10)" in browser.execute_script(outputs)[0]


def test_a_function_page_links_to_its_source_and_to_numpy(browser: Any, site: Path) -> None:
    browser.get((site / "reference" / "generated" / "dparray.histogram.html").as_uri())
    links = browser.execute_script(
        "return [...document.querySelectorAll('article a')].map(a => a.href)"
    )
    assert any("_modules/dparray/_functions/histograms" in link for link in links)
    assert any(link.endswith("numpy.histogram.html") for link in links)
    assert any(link.endswith("reference/reductions.html") for link in links)
    assert any(link.endswith("generated/dparray.histogram2d.html") for link in links)  # the next


def test_rich_displays_of_a_notebook_are_readable_in_both_modes(browser: Any, site: Path) -> None:
    browser.get((site / "01-compute-follows-data.html").as_uri())
    contrast = """
        document.documentElement.dataset.theme = arguments[0];
        const card = document.querySelector('.cell_output .text_html table');
        const parts = color => color.match(/[\\d.]+/g).map(Number);
        let node = card;
        while (node && (parts(getComputedStyle(node).backgroundColor)[3] ?? 1) === 0)
            node = node.parentElement;
        const light = color => 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2];
        const back = node ? parts(getComputedStyle(node).backgroundColor) : [255, 255, 255];
        return Math.abs(light(parts(getComputedStyle(card).color)) - light(back));
    """
    for mode in ("light", "dark"):
        assert browser.execute_script(contrast, mode) > 100, mode


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("histogram", "reference/generated/dparray.histogram.html"),
        ("gpu", "guide/gpus.html"),
        ("first run slow", "start/first-run.html"),
        ("slow first call", "start/first-run.html"),
        ("keras", "guide/keras.html"),
        ("xarray", "guide/xarray.html"),
        ("plot", "guide/plotting.html"),
    ],
)
def test_the_first_hit_of_a_search_is_the_right_page(
    browser: Any, site: Path, query: str, first: str
) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get((site / "search.html").as_uri() + f"?q={query.replace(' ', '+')}")
    done = "return document.querySelector('#search-results .search-summary')?.innerText || ''"
    WebDriverWait(browser, 30).until(lambda window: "found" in window.execute_script(done))
    hits = browser.find_elements(By.CSS_SELECTOR, "ul.search li a")
    found = [hit.get_attribute("href").partition("?")[0] for hit in hits]
    assert found
    assert first in found[0], found[:5]
