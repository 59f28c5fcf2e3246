"""Discrete Fourier transforms.

On a CPU device NumPy transforms in the arrays' own memory, which was measured two to seven times
faster than a call of oneMKL; elsewhere the device's library does. Single precision stays single.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import from_host
from dparray._array.apply import astype_array
from dparray._array.assignment import write_out
from dparray._array.dispatch import by_name, compute
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_out
from dparray._driver import traits_of
from dparray._functions.joining import concat
from dparray._functions.public import guard, public
from dparray._functions.ranges import arange
from dparray._functions.rearranging import roll
from dparray._imports import refuse_calls
from dparray.exceptions import ArgumentError, AxisError, DTypeError, ShapeError
from dparray.memory.libraries.names import TO_REAL

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


class _Row(NamedTuple):
    """A transform.

    Attributes:
        name: of the function, which NumPy and the libraries have too.
        summary: what it is, for the docstring.
        sample, shown, result: the example: its array, the part that is printed, and the output.
        takes_complex: it takes complex numbers.
        points: what the number of points is, along one axis.
    """

    name: str
    summary: str
    sample: str
    result: str
    shown: str = ".asnumpy()"
    takes_complex: bool = True
    points: str = "the number of points; the axis is cut or padded with zeros to it"


_OF_FREQUENCIES = (
    "the number of points of the result; `2 * (m - 1)` for `m` frequencies if not given"
)
_OF_VALUES = "the number of points of the result; `2 * (m - 1)` for `m` values if not given"

_ALONG_AXIS = (
    _Row(
        "fft",
        "The discrete Fourier transform along an axis",
        "asarray([1.0, 0.0])",
        "array([1.+0.j, 1.+0.j])",
    ),
    _Row("ifft", "The inverse of :func:`fft`", "asarray([2.0, 0.0])", "array([1.+0.j, 1.+0.j])"),
    _Row(
        "rfft",
        "The transform of real numbers: the `n // 2 + 1` frequencies that are not negative",
        "asarray([1.0, 0.0, 0.0])",
        "array([1.+0.j, 1.+0.j])",
        takes_complex=False,
    ),
    _Row(
        "irfft",
        "The inverse of :func:`rfft`, a real array",
        "asarray([2.0, 0.0])",
        "array([1., 1.])",
        points=_OF_FREQUENCIES,
    ),
    _Row(
        "hfft",
        "The real transform of a signal with Hermitian symmetry, given its first half",
        "asarray([1.0, 0.0])",
        "array([1., 1.])",
        points=_OF_VALUES,
    ),
    _Row(
        "ihfft",
        "The inverse of :func:`hfft`",
        "asarray([2.0, 0.0])",
        "array([1.-0.j, 1.-0.j])",
        takes_complex=False,
    ),
)
_OVER_AXES = (
    _Row("fftn", "The transform over several axes", "ones((2, 2))", "(4+0j)", "[0, 0].item()"),
    _Row("ifftn", "The inverse of :func:`fftn`", "ones((2, 2))", "(1+0j)", "[0, 0].item()"),
    _Row(
        "rfftn",
        "The transform of real numbers over several axes; the last one as :func:`rfft`",
        "ones((2, 4))",
        "(2, 3)",
        ".shape",
        takes_complex=False,
    ),
    _Row(
        "irfftn", "The inverse of :func:`rfftn`, a real array", "ones((2, 3))", "(2, 4)", ".shape"
    ),
)
_OVER_TWO_AXES = tuple(
    row._replace(
        name=f"{row.name[:-1]}2",
        summary=row.summary.replace("fftn", "fft2").replace("several axes", "two axes"),
    )
    for row in _OVER_AXES
)

_TEMPLATE = """{summary}.

    Args:
        x: an array.
{parameters}
        norm: where to divide by the number of points: ``"backward"`` (in the inverse transform),
            ``"ortho"`` (by its root in both) or ``"forward"``.
        out: an array for the result.

    Returns:
        An array on the queue of ``x``, in its precision.

    Raises:
        AxisError: there is no such axis.
        DTypeError: {refused}the result does not fit ``out``.
        ExecutionPlacementError: ``x`` and ``out`` are on different queues.
        ShapeError: the number of points is not positive, or the result does not fit ``out``.
        ValueError: there is no such norm.

    Example:
        >>> dp.fft.{name}(dp.{sample}){shown}
        {result}
    """


def _transform(row: _Row, x: Any, norm: str | None, out: ndarray | None, **options: Any) -> ndarray:
    """Let NumPy or the device's library do the transform of that name."""
    name = row.name
    x = check_array(name, "x", x)
    check_out(name, (("x", x),), out)
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward'; got {norm!r}")
    if not row.takes_complex and x.dtype.kind == "c":
        raise DTypeError(f"{name}: takes real numbers, not {x.dtype}; use dp.fft.fft")
    if not x.ndim and "axes" in options:
        raise AxisError(f"{name}: x must have at least one axis; it has none")
    axes = options.get("axes", options.get("axis"))
    for axis in () if axes is None else (axes,) if isinstance(axes, int) else axes:
        _layout.normalize_axis(name, axis, x.ndim)
    lengths = options.get("n", options.get("s"))
    for length in () if lengths is None else (lengths,) if isinstance(lengths, int) else lengths:
        if length < 1 and length != -1:
            raise ShapeError(f"{name}: {length} data points; there must be 1 or more")
    if isinstance(axes, Sequence) and not axes:  # NumPy returns the array itself.
        if row.takes_complex and name not in TO_REAL:
            return x if out is None else write_out(name, x, out)
        raise AxisError(f"{name}: no axis is named, but the last one changes its length")

    if x.dtype == np.float16:  # NumPy scales in float16, whose results overflow.
        x = x.astype(np.float32)
    transform = partial(by_name(f"fft.{name}"), norm=norm, **options)
    if x.size:
        return write_out(name, compute(name, (("x", x),), host=True, library=transform), out)
    # A device has nothing to read, and a library may return another shape and dtype. NumPy's irfft
    # of no points reads memory next to them.
    try:
        values = np.zeros_like(transform(np, np.empty(x.shape, x.dtype)))
    except ValueError as error:
        raise ShapeError(f"{name}: {error}") from None
    return write_out(name, from_host(values, x.queue, x.usm_type), out)


class _AlongAxis(Protocol):
    def __call__(
        self,
        x: Any,
        /,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = "backward",
        out: ndarray | None = None,
    ) -> ndarray: ...


class _OverAxes(Protocol):
    def __call__(
        self,
        x: Any,
        /,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str | None = "backward",
        out: ndarray | None = None,
    ) -> ndarray: ...


def _along_axis(row: _Row) -> _AlongAxis:
    def transform(
        x: Any,
        /,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = "backward",
        out: ndarray | None = None,
    ) -> ndarray:
        return _transform(row, x, norm, out, n=n, axis=axis)

    _describe(transform, row, f"        n: {row.points}.", "        axis: the axis.")
    return transform


def _over_axes(row: _Row, usual: tuple[int, ...] | None, which: str) -> _OverAxes:
    def transform(
        x: Any,
        /,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = usual,
        norm: str | None = "backward",
        out: ndarray | None = None,
    ) -> ndarray:
        if axes is None and s is not None:
            axes = tuple(range(-len(s), 0))
        return _transform(row, x, norm, out, s=s, axes=axes)

    _describe(
        transform,
        row,
        "        s: the numbers of points along the axes.",
        f"        axes: {which} if not given.",
    )
    return transform


def _describe(function: Any, row: _Row, *parameters: str) -> None:
    """Give a transform its name and its docstring."""
    function.__name__ = function.__qualname__ = row.name
    function.__code__ = function.__code__.replace(co_name=row.name)  # the name in logs
    function.__doc__ = _TEMPLATE.format(
        parameters="\n".join(parameters),
        refused="" if row.takes_complex else "``x`` is complex, or ",
        **row._asdict(),
    )


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_axis, _ALONG_AXIS)
fftn, ifftn, rfftn, irfftn = (
    _over_axes(row, None, "all of them, or the last ``len(s)``") for row in _OVER_AXES
)
fft2, ifft2, rfft2, irfft2 = (_over_axes(row, (-2, -1), "the last two") for row in _OVER_TWO_AXES)


def __getattr__(name: str) -> NoReturn:
    because = ": libraries keep their plans; there is nothing to set" if name == "config" else ""
    message = f"module 'dparray.fft' has no attribute {name!r}{because}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


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
    """Return the frequencies of :func:`fft` of ``n`` points that lie ``d`` apart.

    Placement and errors as of :func:`dparray.empty`; the dtype must be a real float.

    Example:
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
    """Return the frequencies of :func:`rfft` of ``n`` points that lie ``d`` apart; see
    :func:`fftfreq`.

    Example:
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
    traits = traits_of(numbers.queue)
    chosen = _dtypes.default_float(traits) if dtype is None else _dtypes.as_dtype(dtype)
    if chosen.kind != "f":
        raise DTypeError(f"{name}: dtype must be a real float dtype, not {chosen}")
    return astype_array(numbers * float(1.0 / (n * d)), chosen, copy=False)


@public()
def fftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> ndarray:
    """Return a copy with the frequency 0 moved from the front to the middle of axes.

    Example:
        >>> dp.fft.fftshift(dp.asarray([0, 1, -2, -1])).asnumpy()
        array([-2, -1,  0,  1])
    """
    moved = range(x.ndim) if axes is None else _layout.normalize_axes("fftshift", axes, x.ndim)
    return roll(x, [x.shape[axis] // 2 for axis in moved], tuple(moved))


@public()
def ifftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> ndarray:
    """Return the inverse of :func:`fftshift`.

    Example:
        >>> dp.fft.ifftshift(dp.asarray([-2, -1, 0, 1])).asnumpy()
        array([ 0,  1, -2, -1])
    """
    moved = range(x.ndim) if axes is None else _layout.normalize_axes("ifftshift", axes, x.ndim)
    return roll(x, [-(x.shape[axis] // 2) for axis in moved], tuple(moved))


guard(sys.modules[__name__], __all__)


refuse_calls(__name__, "dp.fft.fft(x)")
