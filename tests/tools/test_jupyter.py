"""A notebook as users see it: a real Jupyter server with Chromium.

The test opens a notebook with one cell for each kind of rich display and runs all cells from the
menu. It checks every output in the light and in the dark theme. ``DPARRAY_SCREENSHOTS`` names a
folder for screenshots.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

MEASURE = Path(__file__).with_name("measure.js").read_text()

THEMES = ("JupyterLab Light", "JupyterLab Dark")

#: Each cell by the name of its screenshot.
CELLS = {
    "setup": """\
import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import dparray as dp

%load_ext dparray
device = dp.Device("cpu")
first, second = device.create_sub_devices(partition=1)[:2]""",
    "line": "x = dp.sin(dp.linspace(0, 12, 1000)) * dp.linspace(1, 0, 1000)\ndp.eval(x)\nx",
    "pending-map": "t = dp.linspace(-3, 3, 200, device=first)\ndp.sin(t[:, None] ** 2 + t)",
    "image": "dp.asarray(data.astronaut())",
    "ten-gigabytes": "dp.broadcast_to(dp.arange(50_000, dtype='float32'), (50_000, 50_000))",
    "small": "dp.asarray([[1.5, 2], [3, 4]], usm_type='shared')",
    "four-dimensions": "dp.ones((2, 3, 4, 5), dtype='complex64')[..., ::2]",
    "placement-error": "dp.where(t > 0, dp.ones(200, device=first), dp.ones(200, device=second))",
    "devices": "dp.devices()",
    "device": "second",
    "memory": "dp.memory.stats()",
    "kernel": """\
@dp.kernel
def add(item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


a = dp.ones(1000, dtype="float32")
add[dp.Range(1000)](a, a, dp.empty_like(a))
add""",
    "explain": """\
u = dp.asarray(np.linspace(0, 1, 20_000, dtype="float32"))
many = dp.ones((40, 20_000), dtype="float32") * u
row = dp.sqrt(u * u + 1)
dp.explain(dp.exp(-row) * many - row / (many + 2.5))""",
    "explain-computed": "dp.explain(u)",
    "timing": "%dp_time -n -r 3 dp.sqrt(u)",
    "plot": """\
figure, axis = plt.subplots(figsize=(5, 2.5))
axis.plot(x.asnumpy())
axis.set_xlabel("place");""",
}  # fmt: skip

#: Text that each output must contain.
WORDS = {
    "line": ("(1000,) float64", "opencl:cpu:0", "computed", "USM type"),
    "pending-map": ("(200, 200) float64", "pending: ", "sub-device 1 of"),
    "image": ("(512, 512, 3) uint8", "768.0 KiB"),
    "ten-gigabytes": ("(50000, 50000) float32", "9.3 GiB"),
    "small": ("shared", "[[1.5, 2. ],"),
    "four-dimensions": ("complex64",),
    "placement-error": ("condition", "x1", "x2", "x2 = x2.to_device(condition.device)"),
    "devices": ("opencl:cpu:0",),
    "device": ("sub-device 2 of", "float64"),
    "memory": ("in use", "cached"),
    "kernel": ("add(item, a, b, out)", "float32"),
    "explain": ("dp.explain", "(40, 20000) float32", "pending: ", "fused", "reads"),
    "explain-computed": ("nothing is pending",),
    "timing": ("median", "NumPy"),
}
#: Outputs with a picture.
PICTURES = ("line", "pending-map", "image", "ten-gigabytes", "explain", "plot")


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Return the folder of the screenshots."""
    folder = Path(os.environ.get("DPARRAY_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def settings() -> dict[str, Any]:
    """Fetch nothing from outside, and render all cells, also those out of view."""
    return {
        "@jupyterlab/apputils-extension:notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
        },
        "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Return the address of a Jupyter server with the notebook and a separate home."""
    home = tmp_path / "home"
    (home / "settings").mkdir(parents=True)
    (home / "settings" / "overrides.json").write_text(json.dumps(settings()))
    folder = home / "notebooks"
    folder.mkdir()
    write_notebook(folder / "gallery.ipynb")
    environment = os.environ | {
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings" / "user"),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
        "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", "--IdentityProvider.token=",
        "--ServerApp.password=", f"--ServerApp.root_dir={folder}", "--expose-app-in-browser",
        f"--LabApp.app_settings_dir={home / 'settings'}",
    ]  # fmt: skip
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        yield until(lambda: address(process, home / "runtime"), "the server starts")
    except BaseException:
        print((home / "log").read_text())
        raise
    finally:
        process.terminate()
        process.wait(120)


def address(process: subprocess.Popen[bytes], runtime: Path) -> str:
    assert process.poll() is None, "the server has ended"
    for file in runtime.glob("jpserver-*.json"):
        return json.loads(file.read_text())["url"]
    return ""


def until(condition: Callable[[], Any], what: str, seconds: float = 120) -> Any:
    """Wait until the result of ``condition`` is true, and return it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: not within {seconds} seconds"
        time.sleep(0.1)
    return found


def write_notebook(path: Path) -> None:
    import nbformat  # takes 4 s, which would delay the collection of tests

    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    cells[list(CELLS).index("placement-error")].metadata["tags"] = ["raises-exception"]
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(book, path)


@pytest.fixture
def outputs(browser: Any, server: str, screenshots: Path, tmp_path: Path) -> dict[str, Any]:
    """Open the notebook and run all cells; return the area below each cell."""
    try:
        return opened_and_run(browser, server)
    except BaseException:
        browser.save_screenshot(str(screenshots / "failed.png"))
        print((tmp_path / "home" / "log").read_text())
        raise


def opened_and_run(browser: Any, server: str) -> dict[str, Any]:
    from selenium.webdriver.common.by import By

    for attempt in range(3):
        browser.get(f"{server}lab/tree/gallery.ipynb?reset")
        until(lambda: browser.find_elements(By.CSS_SELECTOR, ".jp-Notebook .jp-Cell"), "it opens")
        try:
            until(lambda: kernel_is_idle(browser), "the kernel starts", 60)
            break
        except AssertionError:  # JupyterLab sometimes misses the status; a user would reload.
            if attempt == 2:
                raise
    choose(browser, "Run", "Run All Cells")

    def prompts() -> list[str]:
        found = browser.find_elements(By.CSS_SELECTOR, ".jp-CodeCell .jp-InputPrompt")
        return [prompt.text for prompt in found]

    wanted = [f"[{number}]:" for number in range(1, len(CELLS) + 1)]
    until(lambda: prompts() == wanted, "all cells run")
    areas = browser.find_elements(By.CSS_SELECTOR, ".jp-CodeCell .jp-Cell-outputArea")
    return dict(zip(CELLS, areas, strict=True))


def kernel_is_idle(browser: Any) -> bool:
    return (
        browser.execute_script(
            "return window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status"
        )
        == "idle"
    )


def choose(browser: Any, menu: str, entry: str) -> None:
    """Click an entry of the menu bar."""
    from selenium.webdriver.common.by import By

    by_text = "//*[contains(@class, 'lm-{}') and normalize-space()='{}']"
    browser.find_element(By.XPATH, by_text.format("MenuBar-itemLabel", menu)).click()
    place = (By.XPATH, by_text.format("Menu-itemLabel", entry))
    until(lambda: browser.find_elements(*place), f"the menu {menu} opens")[0].click()


@pytest.mark.slow
def test_every_output_is_readable_in_both_themes(
    browser: Any, outputs: dict[str, Any], screenshots: Path
) -> None:
    found: dict[str, list[str]] = {}
    for theme in THEMES:
        browser.execute_async_script(
            "window.jupyterapp.commands.execute('apputils:change-theme', {theme: arguments[0]})"
            ".then(() => setTimeout(arguments[1], 500))",
            theme,
        )
        for name, area in outputs.items():
            if name == "setup":
                continue
            browser.execute_script("arguments[0].scrollIntoView()", area)
            area.screenshot(str(screenshots / f"{name}-{theme.rpartition(' ')[2].lower()}.png"))
            found[f"{name}, {theme}"] = complaints(browser, name, area)
        wider = browser.execute_script(
            "const page = document.querySelector('.jp-WindowedPanel-outer, .jp-Notebook');"
            "return page.scrollWidth - page.clientWidth"
        )
        assert wider <= 0, "the page scrolls sideways"
    assert {where: said for where, said in found.items() if said} == {}


def complaints(browser: Any, name: str, area: Any) -> list[str]:
    """Return the problems of a cell's output."""
    said = [f"{word!r} is missing" for word in WORDS.get(name, ()) if word not in area.text]
    pictures = 0
    # A traceback has IPython's colors, which dparray does not control.
    for part in area.find_elements(
        "css selector",
        ".jp-OutputArea-output:is(.jp-RenderedHTMLCommon, .jp-RenderedImage, .jp-RenderedText)"
        ":not([data-mime-type='application/vnd.jupyter.stderr'])",
    ):
        said += browser.execute_script(MEASURE, part)
        pictures += len(part.find_elements("css selector", "img"))
    if bool(pictures) != (name in PICTURES):
        said.append(f"{pictures} pictures")
    return said
