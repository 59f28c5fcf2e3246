"""The picture of the results: labelled panels, written so that no half-written file remains."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_COLUMNS = 3
_TALLEST = 1.5  # height of a panel over its width
_BACKGROUND = (250, 250, 248)
_INK = (32, 32, 36)
_FAINT = (108, 108, 114)


def grey(values: np.ndarray, white: float = 1.0) -> Image.Image:
    """An image of values from 0 (black) to ``white``; larger ones are white too."""
    return Image.fromarray((np.clip(values / white, 0, 1) * 255 + 0.5).astype(np.uint8))


def colour(planes: np.ndarray) -> Image.Image:
    """An image of planes (3, height, width) of levels from 0 to 255."""
    levels = (np.clip(planes, 0, 255) + 0.5).astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(levels.transpose(1, 2, 0)))


def pencil(gradient: np.ndarray) -> Image.Image:
    """Edges as dark strokes on white paper, the strongest few in full black."""
    strongest = float(np.quantile(gradient, 0.99)) if gradient.size else 0.0
    return grey(1 - np.sqrt(np.clip(gradient / (strongest or 1.0), 0, 1)))


def palette(centroids: np.ndarray, counts: np.ndarray, size: tuple[int, int]) -> Image.Image:
    """The colours from dark to light, each as broad as its share of the pixels."""
    width, height = size
    order = np.argsort(centroids @ np.array([0.2126, 0.7152, 0.0722]), kind="stable")
    edges = np.concatenate(([0], np.cumsum(counts[order]))) / max(1, counts.sum()) * width
    image = Image.new("RGB", size, _BACKGROUND)
    draw = ImageDraw.Draw(image)
    for left, right, number in zip(edges[:-1], edges[1:], order, strict=True):
        if round(right) > round(left):
            level = tuple(int(value + 0.5) for value in centroids[number])
            draw.rectangle((round(left), 0, round(right) - 1, height - 1), fill=level)
    return image


def panels(parts: Sequence[tuple[str, str, Image.Image]], width: int) -> Image.Image:
    """Images under their titles in rows of three.

    Args:
        parts: title, a line about it, and an image; all images of one size.
        width: of the picture, in pixels.
    """
    gap = max(4, width // 90)
    panel_width = max(1, (width - (_COLUMNS + 1) * gap) // _COLUMNS)
    first = parts[0][2]
    scale = min(panel_width / first.width, _TALLEST * panel_width / first.height)
    size = max(1, round(first.width * scale)), max(1, round(first.height * scale))
    title_font, line_font = _fonts(panel_width)
    title_height = round(title_font.size * 1.35)
    caption = title_height + round(line_font.size * 1.6)
    rows = -(-len(parts) // _COLUMNS)
    image = Image.new("RGB", (width, gap + rows * (caption + size[1] + gap)), _BACKGROUND)
    draw = ImageDraw.Draw(image)
    for number, (title, line, part) in enumerate(parts):
        left = gap + number % _COLUMNS * (panel_width + gap)
        top = gap + number // _COLUMNS * (caption + size[1] + gap)
        draw.text((left, top), title, _INK, title_font)
        draw.text((left, top + title_height), line, _FAINT, line_font)
        # Few pixels are shown as the squares they are.
        filter_ = Image.Resampling.NEAREST if part.width < 64 else Image.Resampling.LANCZOS
        image.paste(part.convert("RGB").resize(size, filter_), (left, top + caption))
    return image


def _fonts(panel_width: int) -> tuple[ImageFont.FreeTypeFont, ImageFont.FreeTypeFont]:
    size = min(24, max(9, panel_width // 17))
    title, line = (ImageFont.load_default(points) for points in (size + 2, max(8, size * 4 // 5)))
    if not isinstance(title, ImageFont.FreeTypeFont) or not isinstance(line, type(title)):
        raise OSError("Pillow was built without FreeType, so it cannot write captions")
    return title, line


def write(image: Image.Image, path: Path) -> None:
    """Write a PNG: the whole of it or, if that fails, nothing.

    Raises:
        OSError: the file cannot be written; what was there before is still there.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            image.save(file, "PNG", optimize=True)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)  # mkstemp's files are for their owner only
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
