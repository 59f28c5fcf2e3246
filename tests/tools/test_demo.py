"""The demo: its stages against NumPy, its picture, and what it says when called wrongly."""

from __future__ import annotations

import argparse
import builtins
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dparray as dp
from dparray.cli import demo
from dparray.cli.demo import photograph, picture, pipeline, reference, stages


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "WARM_UP_SECONDS", 0.0)


def _photograph(directory: Path, shape: tuple[int, ...], mode: str = "RGB") -> Path:
    levels = np.random.default_rng(7).integers(0, 256, shape).astype(np.uint8)
    path = directory / "photograph.png"
    Image.fromarray(levels, mode if mode == "LA" else None).save(path)
    return path


def _run(*argv: Any) -> int:
    return demo.main([*map(str, argv), "--repeat", "1", "--iterations", "3"])


# --- what it computes -----------------------------------------------------------------------------


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_all_stages_agree_with_numpy_where_they_were_asked_to_run(
    queue: Any, usm_type: str
) -> None:
    rgb = np.random.default_rng(1).integers(0, 256, (67, 130, 3)).astype(np.uint8)
    settings = stages.Settings(dp.Device(queue), usm_type, 9, 4, 2.0, 1)
    measured = list(stages.measure(rgb, settings, lambda stage, step: None))
    assert tuple(m.stage for m in measured) == stages.STAGES
    for m in measured:
        assert m.agrees, (m.stage, m.difference)
        assert m.queue == queue, m.stage
        assert m.usm_type == usm_type, m.stage


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (2, 2), (3, 5), (400, 3), (257, 263)])
def test_sizes_that_no_tile_divides(queue: Any, shape: tuple[int, int]) -> None:
    rgb = np.random.default_rng(2).integers(0, 256, (*shape, 3)).astype(np.uint8)
    settings = stages.Settings(dp.Device(queue), "device", 16, 3, 3.0, 1)
    assert all(m.agrees for m in stages.measure(rgb, settings, lambda stage, step: None))


def test_equal_distances_fall_to_the_first_colour() -> None:
    planes = np.full((3, 4, 4), 100, np.float32)
    colours = np.array([[104, 100, 100], [96, 100, 100], [100, 100, 104]], np.float32)
    palette, labels = pipeline.quantise(dp.asarray(planes), dp.asarray(colours), 1)
    assert not labels.asnumpy().any()
    # The pixels move the first colour; the others have none and stay where they were.
    np.testing.assert_array_equal(palette.asnumpy(), [[100, 100, 100], *colours[1:]])


def test_more_colours_than_the_photograph_has() -> None:
    rgb = np.zeros((5, 5, 3), np.uint8)
    rgb[2:] = 200
    settings = stages.Settings(dp.Device("cpu"), "device", 32, 3, 1.0, 1)
    quantised = list(stages.measure(rgb, settings, lambda stage, step: None))[-1]
    palette, labels = quantised.result
    np.testing.assert_array_equal(palette[labels], rgb)
    assert quantised.difference == 0


def test_a_result_that_differs_is_noticed() -> None:
    planes = np.random.default_rng(3).integers(0, 256, (3, 8, 8)).astype(np.float32)
    expected = reference.quantise(planes, reference.starting_colours(planes, 4), 3)
    assert stages._palette_difference(planes, expected, expected) == 0
    wrong_labels = expected[0], np.zeros_like(expected[1])
    assert stages._palette_difference(planes, wrong_labels, expected) > 0.25
    wrong_palette = expected[0] + np.float32(1), expected[1]
    assert stages._palette_difference(planes, wrong_palette, expected) > 0.25
    out_of_range = expected[0], expected[1] + 100
    assert stages._palette_difference(planes, out_of_range, expected) > 0.25


def test_not_a_number_never_agrees() -> None:
    measurement = stages.Measurement("", "", None, "", 0, 0, 0, float("nan"), 1.0, ())
    assert not measurement.agrees


def test_the_gaussian_sums_to_one_and_reaches_three_deviations() -> None:
    weights = reference.gaussian(2.0)
    assert weights.dtype == np.float32
    assert len(weights) == 13
    assert weights.sum() == pytest.approx(1)


# --- the command ----------------------------------------------------------------------------------


def test_the_table_says_where_each_stage_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = _photograph(tmp_path, (30, 40, 3))
    output = tmp_path / "result.png"
    status = _run(image, "--device", "cpu", "--usm-type", "shared", "--output", output)
    printed = capsys.readouterr().out
    assert status == 0
    for stage in stages.STAGES:
        line = next(line for line in printed.splitlines() if f" {stage} " in line)
        for cell in ("opencl:cpu:0", "canonical queue", "shared", " ms "):
            assert cell in line, line
    assert "median of 1 runs" in printed
    with Image.open(output) as written:
        assert written.width == 1500
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


@pytest.mark.skipif(importlib.util.find_spec("skimage") is None, reason="needs scikit-image")
def test_the_photograph_that_ships_with_scikit_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "result.png"
    assert _run("--output", output, "--width", 600) == 0
    assert "coffee.png, 600 x 400" in capsys.readouterr().out
    with Image.open(output) as written:
        assert written.width == 600


def test_every_listed_photograph_ships_in_the_wheel() -> None:
    pytest.importorskip("skimage")
    for name in photograph.SHIPPED:
        assert photograph.read(photograph.find(name)).shape[2] == 3


def test_a_sub_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if dp.Device("cpu").sycl_device.max_compute_units < 2:
        pytest.skip("a CPU with one compute unit has no sub-devices")
    image = _photograph(tmp_path, (30, 40, 3))
    arguments = (image, "--output", tmp_path / "result.png")
    assert _run(*arguments, "--device", "cpu/sub-device:1") == 0
    assert "sub-device 2 of" in capsys.readouterr().out
    assert _run(*arguments, "--device", "sub-device:99") == 2
    assert "numbered from 0" in capsys.readouterr().err


def test_a_stage_that_differs_is_named_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    blur = pipeline.blur
    monkeypatch.setattr(pipeline, "blur", lambda planes, weights: blur(planes, weights) + 1)
    image = _photograph(tmp_path, (10, 10, 3))
    assert _run(image, "--output", tmp_path / "result.png") == 1
    assert "not what NumPy computes: blur" in capsys.readouterr().err


@pytest.mark.parametrize(("shape", "mode"), [((6, 7), "L"), ((6, 7, 4), "RGBA"), ((6, 7, 2), "LA")])
def test_grey_and_transparent_images(tmp_path: Path, shape: tuple[int, ...], mode: str) -> None:
    rgb = photograph.read(_photograph(tmp_path, shape, mode))
    assert rgb.shape == (6, 7, 3)
    assert rgb.dtype == np.uint8


def test_transparent_pixels_are_white(tmp_path: Path) -> None:
    clear = tmp_path / "clear.png"
    Image.new("RGBA", (2, 2), (200, 10, 10, 0)).save(clear)
    assert (photograph.read(clear) == 255).all()


@pytest.mark.parametrize(
    ("level", "dtype", "expected"),
    [
        (0x8000, np.uint16, 128),
        (200, np.uint16, 200),
        (0.0, np.float32, 0),
        (np.nan, np.float32, 0),
    ],
)
def test_deep_grey_is_scaled(tmp_path: Path, level: Any, dtype: Any, expected: int) -> None:
    deep = tmp_path / "deep.tif"
    Image.fromarray(np.full((2, 2), level, dtype)).save(deep)
    assert (photograph.read(deep) == expected).all()


def test_a_camera_held_sideways(tmp_path: Path) -> None:
    path = tmp_path / "sideways.jpg"
    image = Image.new("RGB", (40, 20))
    orientation = image.getexif()
    orientation[0x0112] = 6
    image.save(path, exif=orientation)
    assert photograph.read(path).shape == (40, 20, 3)


# --- called wrongly -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no/such/file.png"], "'no/such/file.png' is no file; give the path of an image"),
        (["{directory}"], "is a directory"),
        (["{text}"], "is not an image that Pillow can read"),
        (["{cut}"], "cannot be read"),
        (["{image}", "--device", "abacus"], "no device fits 'abacus'; available:"),
        (["{image}", "--output", "{directory}"], "is a directory"),
        (["{image}", "--output", "{directory}/no/where.png"], "there is no directory"),
        (["{image}", "--output", "{directory}/result.bmp"], "must end in .png"),
    ],
)
def test_a_wrong_argument_ends_with_status_2_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    image = _photograph(tmp_path, (20, 20, 3))
    text = tmp_path / "text.png"
    text.write_text("not an image")
    cut = tmp_path / "cut.png"
    cut.write_bytes(image.read_bytes()[:200])
    before = sorted(tmp_path.iterdir())
    places = {"directory": tmp_path, "image": image, "text": text, "cut": cut}
    assert _run(*(argument.format(**places) for argument in arguments)) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--usm-type", "managed"],
        ["--colors", "0"],
        ["--colors", "257"],
        ["--blur", "nan"],
        ["--blur", "wide"],
        ["--repeat", "0"],
        ["--width", "-5"],
        ["--iterations", "many"],
    ],
)
def test_a_value_that_an_option_cannot_have(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        demo.main(arguments)
    assert exit_.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_without_scikit_image_the_line_that_installs_it_is_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert _run("--output", tmp_path / "result.png") == 2
    assert "pip install scikit-image" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "result.png"
    output.write_bytes(b"the old picture")

    def fail(self: Any, file: Any, *args: Any, **kwargs: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", fail)
    with pytest.raises(builtins.OSError, match="No space left"):
        picture.write(Image.new("RGB", (2, 2)), output)
    assert output.read_bytes() == b"the old picture"
    assert list(tmp_path.iterdir()) == [output]


def test_the_picture_of_an_extreme_shape_stays_small(tmp_path: Path) -> None:
    part = Image.new("RGB", (1, 3000))
    image = picture.panels([("a", "b", part)] * 6, 300)
    assert image.width == 300
    assert image.height < 500


def test_the_arguments_fit_into_a_parser_of_commands() -> None:
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers().add_parser("demo")
    demo.add_arguments(sub)
    arguments = parser.parse_args(["demo", "photo.jpg", "--colours", "8"])
    assert (arguments.image, arguments.colours, arguments.device) == ("photo.jpg", 8, None)
