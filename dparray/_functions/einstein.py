"""Einstein notation: products of arrays summed over indices.

Matrix products are computed by BLAS. All other contractions are lowered by :mod:`dparray.tilelang`
to maps and reductions of views or to a custom kernel, all of them pending.
"""

from __future__ import annotations

import math
import numbers
import string
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from dparray import _dtypes, _layout, _satellites
from dparray._array.apply import astype_array, cast_unsafe
from dparray._array.assignment import write_out
from dparray._array.dispatch import compute
from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_arrays, check_out
from dparray._driver import traits_of
from dparray._evaluate import limits
from dparray._functions.options import ordered
from dparray.exceptions import ArgumentError, DTypeError, ShapeError

__all__ = ["einsum", "einsum_path"]

#: Up to this many elements, the product of two arrays is summed without BLAS.
_PLAIN_EINSUM = 256


def einsum(
    subscripts: Any,
    *arrays: Any,
    out: ndarray | None = None,
    dtype: DTypeLike | None = None,
    order: str = "K",
    casting: Any = "safe",
    optimize: Any = None,
) -> ndarray:
    """Compute sums of products of arrays in Einstein notation.

    Args:
        subscripts: the indices of each array, and after ``->`` those of the result. NumPy's other
            form also works: an array, the list of its indices, the next array and so on.
        *arrays: one array for each group of indices.
        out: an array to write the result to.
        dtype: the dtype to compute in; by default the promoted dtype of all arrays.
        order: the memory order of the result, ``"C"``, ``"F"``, or ``"A"`` for ``"F"`` if all
            arrays are F contiguous.
        casting: the allowed conversions to ``dtype``, as in NumPy.
        optimize: the order of the products, as in NumPy; a good one by default. With an explicit
            order, each product has the promoted dtype of its factors.

    Raises:
        DTypeError: an array cannot be converted to ``dtype``.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the subscripts do not match the arrays, or the result does not match ``out``.

    Example:
        >>> dp.einsum("ij,j->i", dp.ones((2, 3)), dp.ones(3)).asnumpy()
        array([3., 3.])
    """
    if out is dtype is None and order == "K" and type(subscripts) is str:
        small = _einsum_small(subscripts, arrays, optimize)
        if small is not None:
            return small
    subscripts, arrays = _read_subscripts("einsum", subscripts, arrays)
    given = [(f"arrays[{at}]", x) for at, x in enumerate(arrays)]
    named = [(name, x) for (name, _), x in zip(given, check_arrays("einsum", *given), strict=True)]
    if not named:
        raise ShapeError("einsum: at least one array is required")
    check_out("einsum", named, out)
    order = _layout.as_order(order, "K")
    if order not in ("K", "A", "C", "F"):
        raise ArgumentError(f"einsum: unknown order {order!r}; expected one of 'C', 'F', 'A', 'K'")
    if dtype is not None:
        wanted = _dtypes.check_device(_dtypes.as_dtype(dtype), traits_of(named[0][1].queue))
        for name, x in named:
            if not _dtypes.can_cast(x.dtype, wanted, casting):
                raise DTypeError(
                    f"einsum: {name} of dtype {x.dtype} cannot be cast to {wanted} with casting="
                    f"{casting!r}; give casting='unsafe', or write x.astype(...)"
                )
    elif optimize is None and len(named) > 2:
        wanted = _dtypes.promote([x.dtype for _, x in named])
        wanted = _dtypes.fit_device(wanted, traits_of(named[0][1].queue))
    else:
        wanted = None
    if wanted is not None:
        named = [(name, astype_array(x, wanted, copy=False)) for name, x in named]
    if optimize is None:
        optimize = True
    parts = [x for _, x in named]
    result = None
    labels = _labels(subscripts, [x.shape for x in parts])
    if labels is not None:
        result = _summed(labels, parts, optimize)
    if result is None:
        if len(named) < 3 and all(x.size <= _PLAIN_EINSUM for x in parts):
            optimize = False  # there is only one order, and a search takes longer than the sums
        has_half = any(x.dtype == np.float16 for x in parts)

        def by_library(library: Any, *given: Any) -> Any:
            if not has_half:
                return library.einsum(subscripts, *given, optimize=optimize)
            # NumPy also adds these in single precision.
            loop_dtype = _dtype_of_products(subscripts, parts, optimize)
            given = tuple(x.astype(_dtypes.float32) if x.dtype == np.float16 else x for x in given)
            return library.einsum(subscripts, *given, optimize=optimize).astype(loop_dtype)

        result = compute(
            "einsum",
            named,
            host=lambda *given: np.einsum(subscripts, *given, optimize=optimize),
            library=by_library,
        )
    if out is None and order != "K":
        return ordered(result, order, parts)
    if out is not None and casting == "unsafe":
        result = cast_unsafe(result, out.dtype)
    return write_out("einsum", result, out)


def _einsum_small(subscripts: str, arrays: tuple[Any, ...], optimize: Any) -> ndarray | None:
    """Return the result if there are few products, else ``None``."""
    products = 1
    for x in arrays:
        if type(x) is not ndarray:
            return None
        products *= x.size
    if not arrays or products > limits.host_elements < _count_of_products(subscripts, arrays):
        return None
    # With two or fewer arrays the order does not matter; with more it determines the dtype.
    optimize = optimize if len(arrays) > 2 and optimize is not None else False
    return compute_small(partial(np.einsum, subscripts, optimize=optimize), *arrays)


def _count_of_products(subscripts: str, arrays: tuple[ndarray, ...]) -> float:
    """Return the number of products, the size of all indices together; infinite if unknown."""
    sizes: dict[str, int] = {}
    given = subscripts.partition("->")[0].split(",")
    if len(given) != len(arrays):
        return math.inf
    for letters, x in zip(given, arrays, strict=True):
        if len(letters) != len(x.shape) or not letters.isalpha():  # spaces, or an ellipsis
            return math.inf
        sizes.update(zip(letters, x.shape, strict=True))
    return math.prod(sizes.values())


class _Labels(NamedTuple):
    """Return the indices of each array and of the result, as letters."""

    arrays: tuple[str, ...]
    result: str


def _labels(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> _Labels | None:
    """Return subscripts without ellipses, or ``None`` if invalid; NumPy has the best message."""
    text, arrow, result = subscripts.replace(" ", "").partition("->")
    given = text.split(",")
    if len(given) != len(shapes):
        return None
    spare = [each for each in string.ascii_letters if each not in subscripts]
    widest = 0
    for one, shape in zip(given, shapes, strict=True):
        missing = len(shape) - len(one.replace("...", ""))
        if missing < 0 or (missing and "..." not in one):
            return None
        widest = max(widest, missing)
    if widest > len(spare):
        return None
    whole = "".join(spare[:widest])
    arrays = []
    for one, shape in zip(given, shapes, strict=True):
        missing = len(shape) - len(one.replace("...", ""))
        arrays.append(one.replace("...", whole[widest - missing :], 1))
    if arrow:
        result = result.replace("...", whole, 1)
    else:
        letters = "".join(arrays)
        once = sorted(each for each in set(letters) - set(whole) if letters.count(each) == 1)
        result = whole + "".join(once)
    letters = "".join(arrays)
    is_plain = all(each in string.ascii_letters for each in letters + result)
    if not is_plain or len(set(result)) < len(result) or not set(result) <= set(letters):
        return None
    return _Labels(tuple(arrays), result)


def _path(
    subscripts: str, arrays: Sequence[ndarray], optimize: Any
) -> list[tuple[int, ...]] | None:
    """Return NumPy's order of the products, or ``None`` if the subscripts do not match."""
    shapes = [np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in arrays]
    try:
        return np.einsum_path(subscripts, *shapes, optimize=optimize)[0][1:]
    except (ValueError, TypeError):
        return None


def _dtype_of_products(subscripts: str, arrays: Sequence[ndarray], optimize: Any) -> np.dtype[Any]:
    """Return the dtype of a sum whose products have the promoted dtype of their factors."""
    dtypes = [x.dtype for x in arrays]
    if optimize and len(dtypes) > 2:
        for step in _path(subscripts, arrays, optimize) or ():
            dtypes.append(_dtypes.promote([dtypes[at] for at in step]))
            dtypes = [each for at, each in enumerate(dtypes) if at not in step]
    return _dtypes.promote(dtypes)


def _summed(labels: _Labels, arrays: Sequence[ndarray], optimize: Any) -> ndarray | None:
    """Compute the sum by contractions of one or two arrays; ``None`` if another way is faster."""
    sums = _satellites.provider("sums")
    left, names = list(arrays), list(labels.arrays)
    if len(left) > 2:
        if not optimize:
            return None
        path = _path(f"{','.join(names)}->{labels.result}", left, optimize)
        if path is None:
            return None
        if any(len(step) > 2 for step in path):
            path = [(0, 1)] * (len(left) - 1)
        if sums.dtype_of_products(left) is None:
            return None
    else:
        path = [tuple(range(len(left)))]
    for step in path:
        taken = [left[at] for at in step]
        indices = [names[at] for at in step]
        for at in sorted(step, reverse=True):
            del left[at], names[at]
        inside = "".join(indices)
        result = labels.result
        if names:
            wanted = set("".join(names)) | set(result)
            result = "".join(sorted(set(inside) & wanted))
        made = sums.sum_of_products(indices, result, taken)
        if made is None:
            if len(arrays) < 3:
                return None
            text = f"{','.join(indices)}->{result}"
            made = einsum(text, *taken, optimize=True)
        left.append(made)
        names.append(result)
    return left[0]


def _read_subscripts(
    function: str, subscripts: Any, arrays: tuple[Any, ...]
) -> tuple[str, tuple[Any, ...]]:
    """Return the subscripts as a string and the arrays, from either of NumPy's forms."""
    if isinstance(subscripts, str):
        return subscripts, arrays
    parts = (subscripts, *arrays)
    is_explicit = len(parts) % 2 == 1
    # Every second argument is a list of indices, which may be in an array; so is the last.
    parts = tuple(
        each.tolist()
        if (at % 2 or (is_explicit and at == len(parts) - 1))
        and isinstance(each, ndarray | np.ndarray)
        else each
        for at, each in enumerate(parts)
    )
    lists = parts[1::2]
    if not isinstance(subscripts, ndarray | list | tuple | numbers.Number) or not all(
        isinstance(indices, list | tuple) for indices in lists
    ):
        raise ArgumentError(
            f"{function}: subscripts must be a string such as 'ij,jk->ik'; got "
            f"{type(subscripts).__name__}"
        )
    texts = [_subscript(function, indices) for indices in lists]
    text = ",".join(texts)
    if is_explicit:
        text += "->" + _subscript(function, parts[-1])
    return text, parts[: len(lists) * 2 : 2]


def _subscript(function: str, indices: Any) -> str:
    """Convert a list of numbers and ``...`` to letters."""
    letters = []
    for index in indices:
        if isinstance(index, np.integer) or (
            isinstance(index, ndarray | np.ndarray) and index.ndim == 0
        ):
            index = index.item()
        if index is not Ellipsis and not (isinstance(index, int) and 0 <= index < 52):
            raise ArgumentError(f"{function}: index {index!r} must be from 0 to 51 or an ellipsis")
        letters.append("..." if index is Ellipsis else string.ascii_letters[index])
    return "".join(letters)


def einsum_path(subscripts: Any, *arrays: Any, optimize: Any = "greedy") -> tuple[Any, str]:
    """Return the best order for :func:`einsum`, determined from the shapes alone.

    Returns:
        The order in NumPy's format, and a table to print.

    Example:
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
