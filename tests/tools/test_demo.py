"""``dparray demo``: its stages compared with NumPy, its picture, and its errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dparray as dp
from dparray.cli import demo, main


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_WARM_SECONDS", 0.0)
    monkeypatch.setattr(demo, "_RUNS", 1)


def _image(folder: Path, shape: tuple[int, ...] = (30, 40, 3)) -> Path:
    path = folder / "photograph.png"
    Image.fromarray(np.random.default_rng(7).integers(0, 256, shape).astype(np.uint8)).save(path)
    return path


@pytest.mark.parametrize("shape", [(3, 3), (9, 70), (67, 130)])
def test_all_stages_agree_with_numpy(queue: Any, shape: tuple[int, int]) -> None:
    rgb = np.random.default_rng(1).integers(0, 256, (*shape, 3)).astype(np.uint8)
    stages, panels = demo.measure(rgb, dp.Device(queue))
    assert [stage.name for stage in stages] == ["luminance", "gradient", "blur", "palette"]
    assert all(stage.agrees for stage in stages), stages
    assert {panel.shape for panel in panels} == {rgb.shape}


def test_the_bundled_photograph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "result.png"
    assert main(["demo", "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert "300 x 200 pixels on" in printed
    assert f"picture: {output}" in printed
    with Image.open(output) as picture:
        assert picture.size == (900, 400)


def test_an_image_of_the_users_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "result.png"
    arguments = ["demo", str(_image(tmp_path)), "--output", str(output), "--json"]
    assert main(arguments) == 0
    assert all(stage["agrees"] for stage in json.loads(capsys.readouterr().out)["stages"])


def test_a_stage_that_differs_is_named_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    blur = demo.blur
    monkeypatch.setattr(demo, "blur", lambda xp, *a: blur(xp, *a) + (1 if xp is dp else 0))
    assert main(["demo", "--output", str(tmp_path / "result.png")]) == 1
    assert "blur: the values differ from NumPy's" in capsys.readouterr().err


def test_not_a_number_never_agrees() -> None:
    assert not demo.Stage("blur", 1.0, 1.0, float("nan"), 1.0).agrees


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no/such/file.png"], "is not an image that Pillow can read"),
        (["{text}"], "is not an image that Pillow can read"),
        (["--device", "abacus"], "no device matches 'abacus'; available:"),
        (["--output", "{folder}"], "--output must be the name of a .png file"),
        (["--output", "{folder}/no/where.png"], "--output must be the name of a .png file"),
        (["--output", "{folder}/result.bmp"], "--output must be the name of a .png file"),
    ],
)
def test_a_wrong_argument_ends_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    text = tmp_path / "text.png"
    text.write_text("not an image")
    places = {"folder": tmp_path, "text": text}
    assert main(["demo", *(argument.format(**places) for argument in arguments)]) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert list(tmp_path.iterdir()) == [text]


def test_without_pillow_the_error_names_the_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = _image(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["demo", str(image)]) == 1
    assert "the extra `pictures`: pip install pillow" in capsys.readouterr().err
