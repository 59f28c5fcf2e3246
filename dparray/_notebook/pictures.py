"""Small pictures of sampled values as HTML: a sparkline, a heat map, an image.

They need no JavaScript and no files, and are readable on light and dark pages: lines have a medium
color, and NaN is transparent. All are ``img`` elements, because viewers keep these on untrusted
pages and remove ``svg`` elements.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

#: Elements sampled along each axis.
LINE_SAMPLES = (256,)
MAP_SAMPLES = (90, 90)
IMAGE_SAMPLES = (160, 160, 4)

_LINE_WIDTH, _LINE_HEIGHT = 220, 56
_LINE_COLOR = "#3a86c8"
_LONGEST_SIDE = 150
_SHORTEST_SIDE = 12

# From dark blue over green to yellow, with evenly increasing lightness, so the map is readable in
# gray too.
_COLORS = np.array(
    [
        (68, 1, 84),
        (71, 45, 123),
        (59, 82, 139),
        (44, 114, 142),
        (33, 145, 140),
        (40, 174, 128),
        (94, 201, 98),
        (173, 220, 48),
        (253, 231, 37),
    ],
    np.float64,
)


def real(values: np.ndarray) -> np.ndarray:
    """Return values as float64; complex ones as their magnitude."""
    if values.dtype.kind == "c":
        values = np.abs(values)
    return values.astype(np.float64)


def finite_range(values: np.ndarray) -> tuple[float, float] | None:
    """Return the smallest and the largest finite value, or ``None`` if there is none."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else None


def _scaled(values: np.ndarray) -> np.ndarray:
    """Scale values from their finite range to 0 ... 1; infinities to its ends, NaN to NaN."""
    low, high = finite_range(values) or (0.0, 1.0)
    # Halved, so that the difference of two large numbers does not overflow.
    span = high / 2 - low / 2
    if span == 0:
        return np.where(np.isnan(values), np.nan, 0.5)
    return (np.clip(values, low, high) / 2 - low / 2) / span


def sparkline(values: np.ndarray) -> str:
    """Return a line through 1-D values, with gaps at non-finite values."""
    heights = _scaled(np.where(np.isfinite(values), values, np.nan))
    across = (_LINE_WIDTH - 4) / max(len(values) - 1, 1)
    pieces: list[str] = []
    run: list[str] = []
    for position, height in enumerate(heights):
        if np.isnan(height):
            pieces.append(" ".join(run))
            run = []
            continue
        x, y = 2 + position * across, 2 + (1 - height) * (_LINE_HEIGHT - 4)
        run.append(f"{'L' if run else 'M'}{x:.1f} {y:.1f}")
        if len(run) == 1:
            run.append("h0.01")  # so that a single point is visible
    pieces.append(" ".join(run))
    path = " ".join(filter(None, pieces))
    return drawing(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LINE_WIDTH}" height="{_LINE_HEIGHT}" '
        f'viewBox="0 0 {_LINE_WIDTH} {_LINE_HEIGHT}">'
        f'<path d="{path}" fill="none" stroke="{_LINE_COLOR}" stroke-width="1.5" '
        f'stroke-linejoin="round" stroke-linecap="round"/></svg>',
        "the values as a line",
    )


def drawing(svg: str, meaning: str) -> str:
    """Return an SVG of fixed size."""
    data = base64.b64encode(svg.encode()).decode()
    style = "max-width:none;margin:0;display:block"
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{meaning}" style="{style}">'


def heat_map(values: np.ndarray, shape: tuple[int, ...]) -> str:
    """Return 2-D values as colors; NaN is transparent.

    Args:
        values: the sample, (rows, columns).
        shape: the shape of the sampled array, for the proportions.
    """
    scaled = _scaled(values)
    is_number = ~np.isnan(scaled)
    position = np.where(is_number, scaled, 0.0) * (len(_COLORS) - 1)
    steps = np.arange(len(_COLORS))
    pixels = np.empty((*values.shape, 4), np.uint8)
    for channel in range(3):
        pixels[..., channel] = np.interp(position, steps, _COLORS[:, channel])
    pixels[..., 3] = np.where(is_number, 255, 0)
    return _picture(pixels, shape)


def image(values: np.ndarray, shape: tuple[int, ...]) -> str:
    """Return values of shape (height, width, 3 or 4) as colors.

    8-bit integers, and floats from 0 to 1, are used as they are; others are scaled to 0 ... 1.
    """
    if values.dtype != np.uint8:
        values = real(values)
        low, high = finite_range(values) or (0.0, 1.0)
        scaled = values if low >= 0 and high <= 1 else _scaled(values)
        values = (np.nan_to_num(np.clip(scaled, 0, 1)) * 255).astype(np.uint8)
    return _picture(values, shape)


def png(pixels: np.ndarray) -> bytes:
    """Return a PNG file of uint8 pixels of shape (height, width, 3 or 4)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    height, width, channels = pixels.shape
    color_type = {3: 2, 4: 6}[channels]
    # Each row begins with its filter; 0 stores the bytes unchanged.
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            chunk(b"IEND", b""),
        )
    )


def _picture(pixels: np.ndarray, shape: tuple[int, ...]) -> str:
    rows, columns = shape[:2]
    scale = _LONGEST_SIDE / max(rows, columns)
    width, height = (max(round(side * scale), _SHORTEST_SIDE) for side in (columns, rows))
    data = base64.b64encode(png(pixels)).decode()
    smoothing = "auto" if rows * columns > pixels.shape[0] * pixels.shape[1] else "pixelated"
    return (
        f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" '
        f'alt="the values as a picture" '
        f'style="image-rendering:{smoothing};margin:0;display:block">'
    )
