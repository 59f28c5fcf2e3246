"""The programs of the gallery: their pictures, the command, and the page that shows them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.examples import NAMES
from dparray.examples.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
#: Arguments with which a program takes a moment.
SMALL: dict[str, dict[str, int]] = {
    "reaction": {"height": 24, "width": 40, "steps": 5},
    "life": {"height": 24, "width": 40, "steps": 5},
    "galaxy": {"height": 24, "width": 40, "count": 256, "steps": 5},
}


def picture(name: str) -> np.ndarray:
    module: Any = importlib.import_module(f"dparray.examples.{name}")
    return dp.asnumpy(module.picture(**SMALL.get(name, {"height": 24, "width": 40})))


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_has_pixels_and_shows_something(name: str) -> None:
    pixels = picture(name)
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3
    assert len(np.unique(pixels)) > 5


def test_life_is_the_game_of_life() -> None:
    from dparray.examples.life import step

    cells = np.random.default_rng(0).integers(0, 2, (12, 17), dtype="int32")
    turned = [np.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    neighbors = np.sum(turned, axis=0)
    expected = (neighbors == 3) | ((neighbors == 2) & (cells == 1))
    after = dp.empty(cells.shape, dtype="int32")
    step(dp.asarray(cells), after, dp.zeros(cells.shape))
    assert (dp.asnumpy(after) == expected).all()


def test_the_mandelbrot_set_is_the_points_that_stay() -> None:
    from dparray.examples.mandelbrot import escape_times

    times, step = dp.empty((8, 8), dtype="int32"), dp.float32(0.4)
    dp.call_kernel(escape_times, dp.Range(8, 8), dp.float32(-2), dp.float32(1.4), step, times)
    c = (-2 + 0.4 * np.arange(8)) + 1j * (1.4 - 0.4 * np.arange(8))[:, None]
    z, stays = np.zeros_like(c), np.ones(c.shape, bool)
    for _ in range(200):
        z = np.where(stays, z * z + c, z)
        stays &= abs(z) < 2
    assert ((dp.asnumpy(times) == 200) == stays).mean() > 0.95  # the border depends on rounding


def test_the_command_writes_a_png(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spheres", "--folder", str(tmp_path)]) == 0
    assert (tmp_path / "spheres.png").read_bytes().startswith(b"\x89PNG")
    assert "spheres.png" in capsys.readouterr().out
    assert main(["life", "--source"]) == 0
    assert "@dp.jit" in capsys.readouterr().out


def test_the_gallery_shows_each_program_and_its_picture() -> None:
    page = (ROOT / "notebooks" / "gallery.md").read_text()
    for name in NAMES:
        assert f"../dparray/examples/{name}.py" in page
        assert f"images/examples/{name}.png" in page
        assert (ROOT / "notebooks" / "images" / "examples" / f"{name}.png").is_file()
