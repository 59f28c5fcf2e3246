"""Convolution, padding, sums over indices, functions along an axis."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.apply import astype_array
from dparray._array.assignment import assign, delivered
from dparray._array.fresh import empty_on
from dparray._array.libraries import call_either
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_arrays, check_out
from dparray._functions.creation import asarray
from dparray._functions.manipulation import moveaxis, reshape, stack
from dparray._placement import Placement, common_placement
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

__all__ = ["apply_along_axis", "convolve", "correlate", "einsum", "einsum_path", "pad"]

#: Two arrays of up to so many elements are multiplied and summed without BLAS.
_PLAIN_EINSUM = 256
_MODES = ("full", "same", "valid")


def _slide(function: str, x: Any, v: Any, mode: str) -> ndarray:
    x, v = check_arrays(function, ("x", x), ("v", v))
    named = (("x", x), ("v", v))
    common_placement(function, named)
    if mode not in _MODES:
        raise ValueError(f"{function}: mode {mode!r} is none of {', '.join(_MODES)}")
    if x.ndim != 1 or v.ndim != 1 or not x.size or not v.size:
        raise ShapeError(
            f"{function}: shapes {x.shape} and {v.shape}; give two vectors that are not empty"
        )
    return call_either(function, lambda xp, a, b: getattr(xp, function)(a, b, mode), named)


def convolve(x: Any, v: Any, mode: str = "full") -> ndarray:
    """The convolution of two vectors.

    Args:
        x: a vector.
        v: a vector.
        mode: ``"full"``: wherever they overlap; ``"same"``: as long as the longer one; ``"valid"``:
            where they overlap wholly.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: one of them is no vector, or empty.

    Example:
        >>> import dparray as dp
        >>> dp.convolve(dp.asarray([1, 2, 3]), dp.asarray([1, 1])).asnumpy()
        array([1, 3, 5, 3])
    """
    return _slide("convolve", x, v, mode)


def correlate(x: Any, v: Any, mode: str = "valid") -> ndarray:
    """The cross-correlation of two vectors; arguments and errors as of :func:`convolve`.

    Example:
        >>> import dparray as dp
        >>> dp.correlate(dp.asarray([1, 2, 3]), dp.asarray([0, 1])).asnumpy()
        array([2, 3])
    """
    return _slide("correlate", x, v, mode)


def einsum(
    subscripts: Any,
    *arrays: Any,
    out: ndarray | None = None,
    dtype: Any = None,
    order: str = "K",
    casting: Any = "safe",
    optimize: Any = True,
) -> ndarray:
    """Products of arrays, summed over indices: Einstein's notation.

    Args:
        subscripts: the indices of each array, and after ``->`` those of the result. NumPy's other
            form works too: an array, the list of its indices, the next array and so on.
        *arrays: as many arrays.
        out: an array for the result.
        dtype: the dtype to compute in; the promoted dtype if not given.
        order: ``"F"`` for a result in Fortran's order.
        casting: which conversions to ``dtype`` are allowed, as of NumPy.
        optimize: multiply in a good order; as of NumPy.

    Raises:
        DTypeError: an array does not convert to ``dtype``.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the subscripts do not fit the arrays, or the result not ``out``.

    Example:
        >>> import dparray as dp
        >>> dp.einsum("ij,j->i", dp.ones((2, 3)), dp.ones(3)).asnumpy()
        array([3., 3.])
    """
    subscripts, arrays = _read_subscripts("einsum", subscripts, arrays)
    given = [(f"arrays[{at}]", x) for at, x in enumerate(arrays)]
    named = [(name, x) for (name, _), x in zip(given, check_arrays("einsum", *given), strict=True)]
    if not named:
        raise ShapeError("einsum: needs at least one array")
    common_placement("einsum", named)
    check_out("einsum", named, out)
    if order not in ("K", "A", "C", "F"):
        raise ArgumentError(f"einsum: order {order!r} is none of 'C', 'F', 'A', 'K'")
    if dtype is not None:
        wanted = _dtypes.check_device(_dtypes.as_dtype(dtype), named[0][1].sycl_device)
        for name, x in named:
            if not np.can_cast(x.dtype, wanted, casting):
                raise DTypeError(
                    f"einsum: {name} of dtype {x.dtype} does not convert to {wanted} by the rule "
                    f"{casting!r}; give casting='unsafe', or write x.astype(...)"
                )
        named = [(name, astype_array(x, wanted, copy=False)) for name, x in named]
    if len(named) < 3 and all(x.size <= _PLAIN_EINSUM for _, x in named):
        optimize = False  # there is one order, and looking for it takes longer than the sums
    result = call_either(
        "einsum", lambda xp, *parts: xp.einsum(subscripts, *parts, optimize=optimize), named
    )
    return delivered("einsum", asarray(result, order="F") if order == "F" else result, out)


def _read_subscripts(
    function: str, subscripts: Any, arrays: tuple[Any, ...]
) -> tuple[str, tuple[Any, ...]]:
    """The subscripts as text and the arrays, from either of NumPy's forms."""
    if isinstance(subscripts, str):
        return subscripts, arrays
    parts = (subscripts, *arrays)
    lists = parts[1::2]
    if not isinstance(subscripts, ndarray | list | tuple) or not all(
        isinstance(indices, list | tuple) for indices in lists
    ):
        raise ArgumentError(
            f"{function}: subscripts must be a text such as 'ij,jk->ik'; got "
            f"{type(subscripts).__name__}"
        )
    is_explicit = len(parts) % 2 == 1
    texts = [_subscript(function, indices) for indices in lists]
    text = ",".join(texts)
    if is_explicit:
        text += "->" + _subscript(function, parts[-1])
    return text, parts[: len(lists) * 2 : 2]


def _subscript(function: str, indices: Any) -> str:
    """A list of numbers and ``...`` as letters."""
    letters = []
    for index in indices:
        if index is not Ellipsis and not (isinstance(index, int) and 0 <= index < 52):
            raise ArgumentError(f"{function}: index {index!r} is neither 0 ... 51 nor an ellipsis")
        letters.append("..." if index is Ellipsis else string.ascii_letters[index])
    return "".join(letters)


def einsum_path(subscripts: Any, *arrays: Any, optimize: Any = "greedy") -> tuple[Any, str]:
    """In which order :func:`einsum` multiplies best, found from the shapes alone.

    Returns:
        The order as NumPy gives it, and a table to be printed.

    Example:
        >>> import dparray as dp
        >>> dp.einsum_path("ij,jk,k->i", dp.ones((2, 3)), dp.ones((3, 4)), dp.ones(4))[0]
        ['einsum_path', (1, 2), (0, 1)]
    """
    subscripts, arrays = _read_subscripts("einsum_path", subscripts, arrays)
    named = [check_array("einsum_path", f"arrays[{at}]", x) for at, x in enumerate(arrays)]
    shapes = [np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in named]
    try:
        return np.einsum_path(subscripts, *shapes, optimize=optimize)
    except ValueError as error:
        raise ShapeError(f"einsum_path: {error}") from None


_STATISTICS = ("maximum", "minimum", "mean", "median")
_PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "empty")


def pad(
    x: Any,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    stat_length: Any = None,
    end_values: Any = 0,
) -> ndarray:
    """A copy with elements added before and after along each axis.

    Args:
        x: an array.
        pad_width: how many: a number; a pair (before, after) for all axes; or one pair for each.
        mode: ``"constant"``, ``"edge"`` (the outermost element), ``"reflect"`` and
            ``"symmetric"`` (mirrored at it, without and with it), ``"wrap"``, ``"empty"``,
            ``"maximum"``, ``"minimum"``, ``"mean"``, ``"median"`` or ``"linear_ramp"``.
        constant_values: the added elements for ``"constant"``, in the form of ``pad_width``.
        stat_length: of how many elements at the edges the maximum and so on are, in that form.
        end_values: where the ramps end, in that form.

    Raises:
        ShapeError: ``pad_width`` does not fit.
        ValueError: there is no such mode.

    Example:
        >>> import dparray as dp
        >>> dp.pad(dp.asarray([1, 2]), (1, 2)).asnumpy()
        array([0, 1, 2, 0, 0])
    """
    x = check_array("pad", "x", x)
    if mode in _STATISTICS or mode == "linear_ramp":
        options = (
            {"end_values": end_values} if mode == "linear_ramp" else {"stat_length": stat_length}
        )
        _pairs("pad_width", pad_width, x.ndim)
        return call_either(
            "pad", lambda xp, a: xp.pad(a, pad_width, mode=mode, **options), (("x", x),)
        )
    if mode not in _PAD_MODES:
        known = (*_PAD_MODES, *_STATISTICS, "linear_ramp")
        raise ArgumentError(f"pad: mode {mode!r} is none of {', '.join(known)}")
    widths = _pairs("pad_width", pad_width, x.ndim)
    if any(width < 0 for pair in widths for width in pair):
        raise ShapeError(f"pad: pad_width {pad_width!r} has negative numbers")
    constants = _pairs("constant_values", constant_values, x.ndim)
    result = empty_on(
        Placement(x.sycl_queue, x.usm_type),
        tuple(
            before + extent + after for extent, (before, after) in zip(x.shape, widths, strict=True)
        ),
        x.dtype,
    )
    inside = tuple(
        slice(before, before + extent) for extent, (before, _) in zip(x.shape, widths, strict=True)
    )
    assign(result[inside], x, "pad")
    for axis, (before, after) in enumerate(widths):
        # The axes after this one are not padded yet, so only their inner part counts.
        rest = inside[axis + 1 :]
        extent = x.shape[axis]
        if mode == "constant":
            assign(
                result[_layout.at_axis(axis, slice(0, before), *rest)], constants[axis][0], "pad"
            )
            after_all = _layout.at_axis(axis, slice(before + extent, None), *rest)
            assign(result[after_all], constants[axis][1], "pad")
        elif mode != "empty" and (before or after):
            if extent == 0:
                raise ShapeError(f"pad: axis {axis} is empty, so mode {mode!r} has nothing to add")
            line = np.arange(-before, extent + after)
            sources = _sources(line, extent, mode) + before
            for place in (*range(before), *range(before + extent, len(line))):
                source = result[_layout.at_axis(axis, int(sources[place]), *rest)]
                result[_layout.at_axis(axis, place, *rest)] = source
    return result


def _pairs(name: str, value: Any, ndim: int) -> list[tuple[Any, Any]]:
    try:
        return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()]
    except ValueError:
        raise ShapeError(f"pad: {name} {value!r} is not in pairs for {ndim} axes") from None


def _sources(line: np.ndarray, extent: int, mode: str) -> np.ndarray:
    """Which element each place takes, places counted from the first element."""
    if mode == "edge":
        return np.clip(line, 0, extent - 1)
    if mode == "wrap":
        return line % extent
    if mode == "symmetric":
        folded = line % (2 * extent)
        return np.where(folded < extent, folded, 2 * extent - 1 - folded)
    period = max(2 * extent - 2, 1)
    folded = line % period
    return np.where(folded < extent, folded, period - folded)


def apply_along_axis(
    function: Callable[..., Any], axis: int, x: Any, *args: Any, **kwargs: Any
) -> ndarray:
    """What ``function`` makes of each line along an axis.

    Args:
        function: takes a vector (an array on the queue of ``x``) and ``args``, and returns an array
            or a scalar, of one shape for all lines.
        axis: the axis.
        x: an array.
        *args: for the function.
        **kwargs: for the function.

    Raises:
        AxisError: there is no such axis.
        ShapeError: there is no line, or the results differ in shape.

    Example:
        >>> import dparray as dp
        >>> dp.apply_along_axis(dp.sum, 0, dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([4, 6])
    """
    x = check_array("apply_along_axis", "x", x)
    axis = _layout.normalize_axis("apply_along_axis", axis, x.ndim)
    lines = moveaxis(x, axis, -1)
    kept = lines.shape[:-1]
    if 0 in kept:
        raise ShapeError(f"apply_along_axis: an array of shape {x.shape} has no line along {axis}")
    results = [
        check_array("apply_along_axis", "a result", function(lines[at], *args, **kwargs))
        for at in np.ndindex(kept)
    ]
    if len({result.shape for result in results}) != 1:
        raise ShapeError("apply_along_axis: the results differ in shape")
    whole = reshape(stack(results), (*kept, *results[0].shape))
    added = range(len(kept), whole.ndim)
    return moveaxis(whole, tuple(added), tuple(axis + at for at in range(len(added))))
