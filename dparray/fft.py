"""Discrete Fourier transforms.

On a CPU device NumPy transforms in the arrays' own memory, which was measured two to seven times
faster than a call of oneMKL; elsewhere oneMKL does through dpnp. Single precision stays single.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import apply, astype_array
from dparray._array.assignment import delivered
from dparray._array.fresh import from_host
from dparray._array.libraries import call_neighbour, numpy_views
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_out
from dparray._functions.joining import concat
from dparray._functions.ranges import arange
from dparray._functions.rearranging import roll
from dparray._graph.ops import OPS
from dparray._runtime.device_facts import computes_in_double
from dparray.exceptions import ArgumentError, DTypeError, ShapeError
from dparray.memory.exchange import dpnp as neighbour

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_NORMS = (None, "backward", "ortho", "forward")


def _transform(name: str, x: Any, norm: str | None, out: ndarray | None, **options: Any) -> ndarray:
    """Let NumPy or dpnp do the transform of that name."""
    x = check_array(name, "x", x)
    check_out(name, (("x", x),), out)
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm {norm!r} is none of 'backward', 'ortho', 'forward'")
    if name in ("rfft", "rfftn", "rfft2", "ihfft") and x.dtype.kind == "c":
        raise DTypeError(f"{name}: takes real numbers, not {x.dtype}; use dp.fft.fft")
    axes = options.get("axes", options.get("axis"))
    for axis in () if axes is None else (axes,) if isinstance(axes, int) else axes:
        _layout.normalize_axis(name, axis, x.ndim)
    lengths = options.get("n", options.get("s"))
    for length in () if lengths is None else (lengths,) if isinstance(lengths, int) else lengths:
        if length < 1 and length != -1:
            raise ShapeError(f"{name}: {length} data points; there must be 1 or more")
    views = numpy_views(x)
    if views is None and (x.dtype.kind not in "fc" or x.dtype == _dtypes.float16):
        single = x.dtype == _dtypes.float16 or not computes_in_double(x.sycl_queue)
        x = astype_array(x, _dtypes.float32 if single else _dtypes.float64)
    if x.size == 0:  # nothing to read on a device, and dpnp has another shape and dtype
        views = [np.empty(x.shape, x.dtype)]
    if views is not None:
        try:
            with np.errstate(all="ignore"):
                found = getattr(np.fft, name)(views[0], norm=norm, **options)
        except ValueError as error:
            raise ShapeError(f"{name}: {error}") from None
        if x.size == 0:  # NumPy's irfft of no points reads beside them
            found = np.zeros_like(found)
        return delivered(name, from_host(found, x.sycl_queue, x.usm_type), out)
    function = getattr(neighbour.fft, name)
    found = call_neighbour(name, function, (("x", x),), norm=norm, **options)
    return delivered(name, found, out)


def fft(
    x: Any,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The discrete Fourier transform along an axis.

    Args:
        x: an array.
        n: the number of points; the axis is cut or padded with zeros to it.
        axis: the axis.
        norm: where to divide by the number of points: ``"backward"`` (in the inverse transform),
            ``"ortho"`` (by its root in both) or ``"forward"``.
        out: an array for the result.

    Returns:
        A complex array on the queue of ``x``, in its precision.

    Raises:
        AxisError: there is no such axis.
        ExecutionPlacementError: ``x`` and ``out`` are on different queues.
        ShapeError: the number of points is not positive, or the result does not fit ``out``.
        ValueError: there is no such norm.

    Example:
        >>> import dparray as dp
        >>> dp.fft.fft(dp.asarray([1.0, 0.0])).asnumpy()
        array([1.+0.j, 1.+0.j])
    """
    return _transform("fft", x, norm, out, n=n, axis=axis)


def ifft(
    x: Any,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The inverse of :func:`fft`.

    Args:
        x: an array.
        n: the number of points; the axis is cut or padded with zeros to it.
        axis: the axis.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.ifft(dp.asarray([2.0, 0.0])).asnumpy()
        array([1.+0.j, 1.+0.j])
    """
    return _transform("ifft", x, norm, out, n=n, axis=axis)


def rfft(
    x: Any,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The transform of real numbers: the `n // 2 + 1` frequencies that are not negative.

    Args:
        x: an array.
        n: the number of points; the axis is cut or padded with zeros to it.
        axis: the axis.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.rfft(dp.asarray([1.0, 0.0, 0.0])).asnumpy()
        array([1.+0.j, 1.+0.j])
    """
    return _transform("rfft", x, norm, out, n=n, axis=axis)


def irfft(
    x: Any,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The inverse of :func:`rfft`, a real array.

    Args:
        x: an array.
        n: the number of points of the result; `2 * (m - 1)` for `m` frequencies if not given.
        axis: the axis.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.irfft(dp.asarray([2.0, 0.0])).asnumpy()
        array([1., 1.])
    """
    return _transform("irfft", x, norm, out, n=n, axis=axis)


def hfft(
    x: Any,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The real transform of a signal with Hermitian symmetry, given its first half.

    Args:
        x: an array.
        n: the number of points of the result; `2 * (m - 1)` for `m` values if not given.
        axis: the axis.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.hfft(dp.asarray([1.0, 0.0])).asnumpy()
        array([1., 1.])
    """
    return _transform("hfft", x, norm, out, n=n, axis=axis)


def ihfft(
    x: Any,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The inverse of :func:`hfft`.

    Args:
        x: an array.
        n: the number of points; the axis is cut or padded with zeros to it.
        axis: the axis.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.ihfft(dp.asarray([2.0, 0.0])).asnumpy()
        array([1.-0.j, 1.-0.j])
    """
    return _transform("ihfft", x, norm, out, n=n, axis=axis)


def fftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The transform over several axes.

    Args:
        x: an array.
        s: the numbers of points along the axes.
        axes: the axes; all of them, or the last ``len(s)`` if not given.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.fftn(dp.ones((2, 2)))[0, 0].item()
        (4+0j)
    """
    return _transform("fftn", x, norm, out, s=s, axes=_axes(x, s, axes))


def ifftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The inverse of :func:`fftn`.

    Args:
        x: an array.
        s: the numbers of points along the axes.
        axes: the axes; all of them, or the last ``len(s)`` if not given.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.ifftn(dp.ones((2, 2)))[0, 0].item()
        (1+0j)
    """
    return _transform("ifftn", x, norm, out, s=s, axes=_axes(x, s, axes))


def rfftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The transform of real numbers over several axes; the last one as :func:`rfft`.

    Args:
        x: an array.
        s: the numbers of points along the axes.
        axes: the axes; all of them, or the last ``len(s)`` if not given.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.rfftn(dp.ones((2, 4))).shape
        (2, 3)
    """
    return _transform("rfftn", x, norm, out, s=s, axes=_axes(x, s, axes))


def irfftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The inverse of :func:`rfftn`, a real array.

    Args:
        x: an array.
        s: the numbers of points along the axes.
        axes: the axes; all of them, or the last ``len(s)`` if not given.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.irfftn(dp.ones((2, 3))).shape
        (2, 4)
    """
    return _transform("irfftn", x, norm, out, s=s, axes=_axes(x, s, axes))


def fft2(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = (-2, -1),
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The transform over two axes.

    Args:
        x: an array.
        s: the numbers of points along the axes.
        axes: the axes; the last two if not given.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.fft2(dp.ones((2, 2)))[0, 0].item()
        (4+0j)
    """
    return _transform("fft2", x, norm, out, s=s, axes=axes)


def ifft2(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = (-2, -1),
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The inverse of :func:`fft2`.

    Args:
        x: an array.
        s: the numbers of points along the axes.
        axes: the axes; the last two if not given.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.ifft2(dp.ones((2, 2)))[0, 0].item()
        (1+0j)
    """
    return _transform("ifft2", x, norm, out, s=s, axes=axes)


def rfft2(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = (-2, -1),
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The transform of real numbers over two axes.

    Args:
        x: an array.
        s: the numbers of points along the axes.
        axes: the axes; the last two if not given.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.rfft2(dp.ones((2, 4))).shape
        (2, 3)
    """
    return _transform("rfft2", x, norm, out, s=s, axes=axes)


def irfft2(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = (-2, -1),
    norm: str | None = "backward",
    out: ndarray | None = None,
) -> ndarray:
    """The inverse of :func:`rfft2`, a real array.

    Args:
        x: an array.
        s: the numbers of points along the axes.
        axes: the axes; the last two if not given.
        norm: as of :func:`fft`, with its errors.
        out: an array for the result.

    Example:
        >>> import dparray as dp
        >>> dp.fft.irfft2(dp.ones((2, 3))).shape
        (2, 4)
    """
    return _transform("irfft2", x, norm, out, s=s, axes=axes)


def _axes(x: Any, s: Sequence[int] | None, axes: Sequence[int] | None) -> Sequence[int] | None:
    """The last axes where only the numbers of points are given."""
    return tuple(range(-len(s), 0)) if axes is None and s is not None else axes


def fftfreq(
    n: int,
    /,
    d: float = 1.0,
    *,
    dtype: Any = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> ndarray:
    """The frequencies of :func:`fft` of ``n`` points that lie ``d`` apart.

    Placement and errors as of :func:`dparray.empty`; the dtype must be a real float.

    Example:
        >>> import dparray as dp
        >>> dp.fft.fftfreq(4).asnumpy()
        array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    place = {"device": device, "usm_type": usm_type, "sycl_queue": sycl_queue}
    _check_count("fftfreq", n)
    middle = (n - 1) // 2 + 1
    numbers = concat([arange(middle, **place), arange(-(n // 2), 0, **place)])
    return _scaled("fftfreq", numbers, n, d, dtype)


def rfftfreq(
    n: int,
    /,
    d: float = 1.0,
    *,
    dtype: Any = None,
    device: Any = None,
    usm_type: str | None = None,
    sycl_queue: Any = None,
) -> ndarray:
    """The frequencies of :func:`rfft` of ``n`` points that lie ``d`` apart; see :func:`fftfreq`.

    Example:
        >>> import dparray as dp
        >>> dp.fft.rfftfreq(4).asnumpy()
        array([0.  , 0.25, 0.5 ])
    """
    _check_count("rfftfreq", n)
    numbers = arange(n // 2 + 1, device=device, usm_type=usm_type, sycl_queue=sycl_queue)
    return _scaled("rfftfreq", numbers, n, d, dtype)


def _check_count(name: str, n: Any) -> None:
    try:
        operator.index(n)
    except TypeError:
        raise ArgumentError(f"{name}: n is {n!r}; it must be an integer") from None


def _scaled(name: str, numbers: ndarray, n: int, d: float, dtype: Any) -> ndarray:
    device = numbers.sycl_queue.sycl_device
    chosen = _dtypes.default_float(device) if dtype is None else _dtypes.as_dtype(dtype)
    if chosen.kind != "f":
        raise DTypeError(f"{name}: dtype {chosen} is no real float")
    return astype_array(apply(OPS["divide"], numbers, n * d), chosen, copy=False)


def fftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> ndarray:
    """A copy with the frequency 0 moved from the front to the middle of axes.

    Raises:
        AxisError: there is no such axis.

    Example:
        >>> import dparray as dp
        >>> dp.fft.fftshift(dp.asarray([0, 1, -2, -1])).asnumpy()
        array([-2, -1,  0,  1])
    """
    x = check_array("fftshift", "x", x)
    moved = range(x.ndim) if axes is None else _layout.normalize_axes("fftshift", axes, x.ndim)
    return roll(x, [x.shape[axis] // 2 for axis in moved], tuple(moved))


def ifftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> ndarray:
    """The inverse of :func:`fftshift`.

    Raises:
        AxisError: there is no such axis.

    Example:
        >>> import dparray as dp
        >>> dp.fft.ifftshift(dp.asarray([-2, -1, 0, 1])).asnumpy()
        array([ 0,  1, -2, -1])
    """
    x = check_array("ifftshift", "x", x)
    moved = range(x.ndim) if axes is None else _layout.normalize_axes("ifftshift", axes, x.ndim)
    return roll(x, [-(x.shape[axis] // 2) for axis in moved], tuple(moved))
