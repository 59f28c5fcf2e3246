"""``dparray demo``: an image pipeline on a photograph, each stage compared with NumPy.

Array functions compute the luminance and the gradient; kernels of :mod:`dparray.algorithms` compute
the blur and a palette by k-means. The stages are written once for dparray and NumPy, with the
module as ``xp``.

`coffee.npz` has the photograph, by Rachel Michetti for Pikolo Espresso Bar, which is free of
copyright (CC0).

Exit status: 0 when all stages agree with NumPy, 1 when one differs or the picture cannot be
written.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dparray as dp
from dparray._notebook.pictures import png
from dparray.exceptions import ArgumentError

__all__ = ["add_arguments", "run"]

_RADIUS = 4
_COLORS = 8
_STEPS = 5
_RUNS = 7
_WARM_SECONDS = 0.3
_DARK_LIMIT = 0.008856


class Stage(NamedTuple):
    """The result of a stage: seconds of dparray and of NumPy, and their difference."""

    name: str
    seconds: float
    numpy_seconds: float
    difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the tolerance; never for NaN."""
        return self.difference <= self.tolerance


# --- the stages -----------------------------------------------------------------------------------


def luminance(xp: Any, image: Any) -> Any:
    """Return the lightness (CIE L*, from 0 to 1) of an sRGB image with planes from 0 to 1."""
    linear = xp.where(image <= 0.04045, image / 12.92, ((image + 0.055) / 1.055) ** 2.4)
    y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return xp.where(y <= _DARK_LIMIT, 9.033 * y, 1.16 * xp.cbrt(y) - 0.16)


def gradient(xp: Any, light: Any) -> Any:
    """Return the magnitude of the Sobel gradient, zero at the border."""
    down = light[:-2] + 2 * light[1:-1] + light[2:]
    across = light[:, :-2] + 2 * light[:, 1:-1] + light[:, 2:]
    x, y = down[:, 2:] - down[:, :-2], across[2:] - across[:-2]
    result = xp.zeros_like(light)
    result[1:-1, 1:-1] = xp.sqrt(x * x + y * y) / 8
    return result


def blur(xp: Any, image: Any, weights: Any) -> Any:
    """Return a blurred image: by kernels with local memory, or by shifted slices in NumPy."""
    if xp is dp:
        return dp.algorithms.convolve_separable(image, weights)
    height, width = image.shape[1:]
    padded = np.pad(image, ((0, 0), (_RADIUS, _RADIUS), (_RADIUS, _RADIUS)), mode="edge")
    rows = sum(weight * padded[:, i : i + height] for i, weight in enumerate(weights))
    return sum(weight * rows[..., j : j + width] for j, weight in enumerate(weights))


def palette(xp: Any, image: Any) -> Any:
    """Return the image in a few colors that k-means finds."""
    points = image.reshape(3, -1).T
    colors = points[:: max(1, len(points) // _COLORS)][:_COLORS]
    for _ in range(_STEPS):
        labels = _nearest(xp, points, colors)
        counts = xp.maximum(xp.bincount(labels, minlength=_COLORS), 1)
        sums = [xp.bincount(labels, weights=points[:, c], minlength=_COLORS) for c in range(3)]
        colors = (xp.stack(sums, axis=1) / counts[:, None]).astype("float32")
    return colors[_nearest(xp, points, colors)].T.reshape(image.shape)


def _nearest(xp: Any, points: Any, colors: Any) -> Any:
    if xp is dp:
        return dp.algorithms.kmeans_assign(points, colors)
    return xp.argmin(xp.sum((points[:, None] - colors[None]) ** 2, axis=2), axis=1)


# --- the command ----------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray demo``."""
    add = parser.add_argument
    add("image", nargs="?", type=Path, help="another photograph, read by Pillow")
    add("--device", metavar="DEVICE", help="where to run (default: the default device)")
    add(
        "--output",
        type=Path,
        default=Path("dparray-demo.png"),
        metavar="FILE.png",
        help="the picture of the stages (default: %(default)s)",
    )
    add("--json", action="store_true", help="print the results as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run the stages, write the picture and print a table."""
    output: Path = arguments.output
    if output.suffix.lower() != ".png" or not output.parent.is_dir() or output.is_dir():
        raise ArgumentError(
            f"--output must be the name of a .png file in an existing folder, not {str(output)!r}"
        )
    rgb = read(arguments.image)
    device = dp.Device(arguments.device)
    stages, panels = measure(rgb, device)
    try:
        output.write_bytes(png(np.concatenate([np.hstack(panels[:3]), np.hstack(panels[3:])])))
    except OSError as error:
        raise ArgumentError(f"{output} cannot be written: {error}") from None
    if arguments.json:
        values = [stage._asdict() | {"agrees": stage.agrees} for stage in stages]
        print(json.dumps({"device": str(device), "picture": str(output), "stages": values}))
    else:
        height, width = rgb.shape[:2]
        print(f"{width} x {height} pixels on {device.name}; medians of {_RUNS} runs")
        print(f"{'stage':12} {'dparray':>10} {'NumPy':>10}  largest difference (allowed)")
        for stage in stages:
            print(
                f"{stage.name:12} {stage.seconds * 1e3:7.2f} ms {stage.numpy_seconds * 1e3:7.2f} ms"
                f"  {stage.difference:.2g} ({stage.tolerance:.2g})"
            )
        print(f"picture: {output} (original, luminance, gradient; blur, palette, its edges)")
    wrong = [stage.name for stage in stages if not stage.agrees]
    if wrong:
        print(
            f"dparray demo: {', '.join(wrong)}: the values differ from NumPy's; "
            "run `dparray doctor`",
            file=sys.stderr,
        )
    return 1 if wrong else 0


def read(path: Path | None) -> np.ndarray:
    """Return the pixels of an image, or of the bundled photograph, as uint8.

    Raises:
        ArgumentError: Pillow is not installed, or the file is not an image.
    """
    if path is None:
        with np.load(Path(__file__).with_name("coffee.npz")) as file:
            return file["photograph"]
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ArgumentError(
            "reading an image needs Pillow, which is in the extra `pictures`: pip install pillow"
        ) from None
    try:
        with Image.open(path) as image:
            return np.array(ImageOps.exif_transpose(image).convert("RGB"))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ArgumentError(f"{path} is not an image that Pillow can read: {error}") from None


def measure(rgb: np.ndarray, device: Any) -> tuple[list[Stage], list[np.ndarray]]:
    """Run the stages on a device and in NumPy.

    Returns:
        The stages, and six panels of the picture as uint8.
    """
    host = np.ascontiguousarray(rgb.transpose(2, 0, 1)).astype(np.float32) / np.float32(255)
    reach = np.arange(-_RADIUS, _RADIUS + 1)
    bell = np.exp(-((reach / (_RADIUS / 2)) ** 2) / 2).astype(np.float32)
    bell /= bell.sum()
    image, weights = (dp.asarray(values, device=device) for values in (host, bell))
    stages: list[Stage] = []

    def stage(name: str, function: Callable[..., Any], operands: Any, hosts: Any) -> Any:
        result, seconds = _timed(lambda: function(dp, *operands))
        expected, numpy_seconds = _timed(lambda: function(np, *hosts))
        difference = _difference(result.asnumpy(), expected, host if name == "palette" else None)
        stages.append(Stage(name, seconds, numpy_seconds, difference, 1e-4))
        return result

    light = stage("luminance", luminance, (image,), (host,))
    edges = stage("gradient", gradient, (light,), (light.asnumpy(),))
    soft = stage("blur", blur, (image, weights), (host, bell))
    few = stage("palette", palette, (image,), (host,))
    lines = gradient(dp, luminance(dp, few))
    shown = [image, light, 1 - 4 * edges, soft, few, 1 - 4 * lines]
    return stages, [_pixels(values.asnumpy()) for values in shown]


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and the median seconds of a call once its kernels are compiled."""
    times: list[float] = []
    begun = time.perf_counter()
    while len(times) < _RUNS:
        start = time.perf_counter()
        result = function()
        if isinstance(result, dp.ndarray):
            dp.synchronize(result)
        if start - begun >= _WARM_SECONDS:
            times.append(time.perf_counter() - start)
    return result, statistics.median(times)


def _difference(actual: np.ndarray, expected: np.ndarray, image: np.ndarray | None) -> float:
    """Return the largest difference of two results.

    A pixel halfway between two palette colors may take either, so palettes are compared by the
    distance of each image pixel to its color.
    """
    if image is not None:
        actual, expected = (np.linalg.norm(each - image, axis=0) for each in (actual, expected))
    return float(np.max(np.abs(actual - expected), initial=0.0))


def _pixels(values: np.ndarray) -> np.ndarray:
    levels = (np.clip(values, 0, 1) * 255 + 0.5).astype(np.uint8)
    return levels.transpose(1, 2, 0) if levels.ndim == 3 else np.stack([levels] * 3, axis=2)
