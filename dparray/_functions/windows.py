"""Window functions of signal processing."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._dtypes import default_float
from dparray._functions.conversion import asarray
from dparray.device import queue_of

__all__ = [
    "bartlett",
    "blackman",
    "hamming",
    "hanning",
    "kaiser",
]


def _window(values: np.ndarray, place: dict[str, Any]) -> ndarray:
    queue = queue_of(place.get("device"), place.get("sycl_queue"))
    return asarray(values, **{"dtype": default_float(traits_of(queue)), **place})


def hanning(m: int, **place: Any) -> ndarray:
    """Return the Hann window of ``m`` points; for ``device=`` see :func:`asarray`.

    Example:
        >>> dp.hanning(3).asnumpy()
        array([0., 1., 0.])
    """
    return _window(np.hanning(m), place)


def hamming(m: int, **place: Any) -> ndarray:
    """Return the Hamming window of ``m`` points; for ``device=`` see :func:`asarray`.

    Example:
        >>> dp.hamming(3).asnumpy()
        array([0.08, 1.  , 0.08])
    """
    return _window(np.hamming(m), place)


def blackman(m: int, **place: Any) -> ndarray:
    """Return the Blackman window of ``m`` points; for ``device=`` see :func:`asarray`.

    Example:
        >>> round(float(dp.blackman(3)[1]), 6)
        1.0
    """
    return _window(np.blackman(m), place)


def bartlett(m: int, **place: Any) -> ndarray:
    """Return the Bartlett window of ``m`` points; for ``device=`` see :func:`asarray`.

    Example:
        >>> dp.bartlett(3).asnumpy()
        array([0., 1., 0.])
    """
    return _window(np.bartlett(m), place)


def kaiser(m: int, beta: float, **place: Any) -> ndarray:
    """Return the Kaiser window of ``m`` points; for ``device=`` see :func:`asarray`.

    Example:
        >>> round(float(dp.kaiser(3, 5.0)[1]), 6)
        1.0
    """
    return _window(np.kaiser(m, beta), place)
