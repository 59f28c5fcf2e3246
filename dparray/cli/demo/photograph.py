"""Finding and reading the photograph."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

#: Photographs that ship in the scikit-image wheel, so that nothing is downloaded.
SHIPPED = {
    "astronaut": "astronaut.png",
    "chelsea": "chelsea.png",
    "coffee": "coffee.png",
    "hubble": "hubble_deep_field.jpg",
    "motorcycle": "motorcycle_left.png",
    "rocket": "rocket.jpg",
}
DEFAULT = "coffee"


class PhotographError(Exception):
    """There is no such image, or it cannot be read; the message says what to do."""


def find(name: str) -> Path:
    """The file of a photograph: a path, or one of the names in ``SHIPPED``.

    Raises:
        PhotographError: neither is there.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if name not in SHIPPED:
        what = "is a directory" if path.is_dir() else "is no file"
        raise PhotographError(
            f"{name!r} {what}; give the path of an image, or a photograph of scikit-image: "
            f"{', '.join(SHIPPED)}"
        )
    package = importlib.util.find_spec("skimage")
    if package is None or package.origin is None:
        raise PhotographError(
            f"the photograph {name!r} ships with scikit-image, which is not installed: "
            "pip install scikit-image (or pip install 'dparray[demo]'), or give the path of an "
            "image of your own"
        )
    path = Path(package.origin).parent / "data" / SHIPPED[name]
    if not path.is_file():
        raise PhotographError(
            f"the installed scikit-image does not ship {name!r} ({path} is missing): "
            "pip install --force-reinstall scikit-image, or give the path of an image of your own"
        )
    return path


def read(path: Path) -> np.ndarray:
    """The image as an array of shape (height, width, 3), uint8.

    Grey images become colour images, and transparent pixels are laid on white.

    Raises:
        PhotographError: the file is no image that Pillow reads.
    """
    try:
        with Image.open(path) as image:
            image.load()
            image = _upright(image)
            if image.has_transparency_data:
                layer = image.convert("RGBA")
                image = Image.new("RGBA", layer.size, "white")
                image.alpha_composite(layer)
            return np.array(image.convert("RGB"))
    except UnidentifiedImageError:
        raise PhotographError(f"{path} is not an image that Pillow can read") from None
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise PhotographError(f"{path} cannot be read: {error}") from None


def _upright(image: Image.Image) -> Image.Image:
    """The image as it is meant to be seen, with eight bits for each level.

    Cameras store how they were held; Pillow cuts deep grey levels off at 255 unless they are
    scaled.
    """
    image = ImageOps.exif_transpose(image)
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        levels = np.nan_to_num(np.asarray(image, np.float64))
        largest = levels.max()
        white = 255 if largest <= 255 else max(65535, largest)
        image = Image.fromarray((np.clip(levels / white, 0, 1) * 255 + 0.5).astype(np.uint8))
    return image
