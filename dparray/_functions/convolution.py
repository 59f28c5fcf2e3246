"""Convolution and cross-correlation of vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dparray._array.dispatch import by_name, compute
from dparray._array.ndarray import ndarray
from dparray._functions.manipulation import reshape
from dparray._functions.public import public
from dparray.exceptions import ShapeError

__all__ = ["convolve", "correlate"]

_MODES = ("full", "same", "valid")


_METHODS = ("direct", "fft", "auto")
#: From about this length of the shorter vector, FFTs are faster than sums of products.
_TRANSFORMED = 500


def _slide(function: str, x: ndarray, v: ndarray, mode: str, method: str) -> ndarray:
    if mode not in _MODES:
        raise ValueError(f"{function}: mode must be one of {', '.join(_MODES)}; got {mode!r}")
    if function == "convolve":  # as in NumPy
        x, v = (reshape(one, (1,)) if one.ndim == 0 else one for one in (x, v))
    named = (("x", x), ("v", v))
    if x.ndim != 1 or v.ndim != 1 or not x.size or not v.size:
        raise ShapeError(
            f"{function}: shapes {x.shape} and {v.shape}; give two vectors that are not empty"
        )
    if method not in _METHODS:
        raise ValueError(f"{function}: method must be one of {', '.join(_METHODS)}; got {method!r}")
    if method == "auto":
        long = min(x.size, v.size) >= _TRANSFORMED and np.result_type(x.dtype, v.dtype).kind in "fc"
        method = "fft" if long else "direct"
    if method == "direct":
        library = partial(by_name(function), mode=mode)
    else:
        library = partial(_by_fft, function, mode)
    return compute(function, named, host=True, library=library)


def _by_fft(function: str, mode: str, xp: Any, a: Any, b: Any) -> Any:
    """Compute a convolution or correlation as in NumPy by FFTs of the zero-padded vectors."""
    dtype = np.result_type(a.dtype, b.dtype)
    if function == "correlate":
        b = xp.conj(b[::-1])
    count = a.shape[0] + b.shape[0] - 1
    if dtype.kind == "c":
        found = xp.fft.ifft(xp.fft.fft(a, n=count) * xp.fft.fft(b, n=count))
    else:
        found = xp.fft.irfft(xp.fft.rfft(a, n=count) * xp.fft.rfft(b, n=count), n=count)
    if dtype.kind not in "fc":
        found = xp.rint(found)
    shorter, longer = sorted((a.shape[0], b.shape[0]))
    if mode == "same":
        # NumPy's correlation is centered on the later middle element if the first vector is
        # shorter.
        late = function == "correlate" and a.shape[0] < b.shape[0]
        start = shorter // 2 if late else (shorter - 1) // 2
        found = found[start : start + longer]
    elif mode == "valid":
        found = found[shorter - 1 : longer]
    return found.astype(dtype)


@public(operands=("x", "v"), small=np.convolve, takes=("mode",))
def convolve(x: Any, v: Any, mode: str = "full", *, method: str = "direct") -> ndarray:
    """Convolve two vectors.

    Args:
        x: a vector; a scalar counts as a vector of one element.
        v: another vector or scalar.
        mode: ``"full"``, wherever they overlap; ``"same"``, as long as the longer one; ``"valid"``,
            where they overlap completely.
        method: ``"direct"``, sums of products; ``"fft"``, Fourier transforms, with errors relative
            to the largest element; ``"auto"``, transforms for long vectors of floats.

    Raises:
        ShapeError: one of them is empty or not a vector.
        ValueError: the mode or method is unknown.

    Example:
        >>> dp.convolve(dp.asarray([1, 2, 3]), dp.asarray([1, 1])).asnumpy()
        array([1, 3, 5, 3])
    """
    return _slide("convolve", x, v, mode, method)


@public(operands=("x", "v"), small=np.correlate, takes=("mode",))
def correlate(x: Any, v: Any, mode: str = "valid", *, method: str = "direct") -> ndarray:
    """Compute the cross-correlation of two vectors; scalars are not accepted. See :func:`convolve`.

    Example:
        >>> dp.correlate(dp.asarray([1, 2, 3]), dp.asarray([0, 1])).asnumpy()
        array([2, 3])
    """
    return _slide("correlate", x, v, mode, method)
