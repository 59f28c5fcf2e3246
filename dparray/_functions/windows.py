"""Window functions of signal processing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
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


_TEMPLATE = """Return the {title} window of ``m`` points; for ``device=`` see :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> {sample}
        {result}
    """


def _window(values: np.ndarray, place: dict[str, Any]) -> ndarray:
    queue = queue_of(place.get("device"), place.get("sycl_queue"))
    return asarray(values, **{"dtype": default_float(queue.sycl_device), **place})


def _window_by_numpy(title: str, name: str, sample: str, result: str) -> Callable[..., ndarray]:
    """Create a window function from NumPy's; the rest is for its docstring."""
    by_numpy = getattr(np, name)

    def function(m: int, **place: Any) -> ndarray:
        return _window(by_numpy(m), place)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _TEMPLATE.format(title=title, sample=sample, result=result)
    return function


hanning = _window_by_numpy("Hann", "hanning", "dp.hanning(3).asnumpy()", "array([0., 1., 0.])")
hamming = _window_by_numpy(
    "Hamming", "hamming", "dp.hamming(3).asnumpy()", "array([0.08, 1.  , 0.08])"
)
blackman = _window_by_numpy("Blackman", "blackman", "round(float(dp.blackman(3)[1]), 6)", "1.0")
bartlett = _window_by_numpy(
    "Bartlett", "bartlett", "dp.bartlett(3).asnumpy()", "array([0., 1., 0.])"
)


def kaiser(m: int, beta: float, **place: Any) -> ndarray:
    """Return the Kaiser window of ``m`` points; for ``device=`` see :func:`asarray`.

    Example:
        >>> import dparray as dp
        >>> round(float(dp.kaiser(3, 5.0)[1]), 6)
        1.0
    """
    return _window(np.kaiser(m, beta), place)
