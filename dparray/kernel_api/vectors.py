"""Vectors of kernels: a few numbers that are read, computed with and written together.

What OpenCL has as ``vloadn`` and ``vstoren`` and SYCL as ``vec``. The rules of their types, which
are NumPy's of arrays, are here for the compiler and the simulator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray.kernel_api.items import only_in_kernels

#: The numbers of elements that a vector may have.
WIDTHS = (2, 3, 4, 8, 16)
#: The attributes of the first elements.
FIELDS = "xyzw"
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BITWISE = ("and", "or", "xor")
SHIFTS = ("lshift", "rshift")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
#: Functions of ``math`` that work on vectors of floats, element by element; those of integers are
#: computed in float64.
UNARY = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "degrees", "erf"),
    *("erfc", "exp", "exp2", "expm1", "fabs", "gamma", "lgamma", "log", "log10", "log1p", "log2"),
    *("radians", "sin", "sinh", "sqrt", "tan", "tanh"),
)
BINARY = ("atan2", "copysign", "fmod", "hypot", "pow")
ROUNDING = ("ceil", "floor", "trunc")
PREDICATES = ("isfinite", "isinf", "isnan")


class vec:
    """A vector of 2, 3, 4, 8 or 16 numbers in the registers of a work-item.

    ``dp.vec(a, b, c, d)`` makes one of numbers, in their common dtype; :func:`vec_load` reads one
    from an array. Arithmetic, comparisons, ``min``, ``max``, ``abs`` and the functions of ``math``
    work element by element, in the types that NumPy has for arrays: int8 beside int8 is int8 and
    wraps around, int32 beside float32 is float64. A number beside a vector takes the vector's
    dtype, and a float beside integers makes float64. Comparisons give a vector of Booleans, for
    ``&``, ``|``, ``^``, ``~`` and :func:`vec_where`.

    ``v[k]`` is an element, and so are ``v.x``, ``v.y``, ``v.z`` and ``v.w``; ``len(v)`` is their
    number and ``v.dtype`` their dtype. A vector does not change: another one is made.

    Args:
        elements: as many integers, floats or Booleans.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def lengths(item, points, out):
        ...     i = item.get_id(0)
        ...     p = dp.vec_load(points, (i, 0), 3)
        ...     out[i] = (p * p).sum() ** 0.5
        >>> out = dp.zeros(2)
        >>> event = lengths[2](dp.asarray([[3.0, 0.0, 4.0], [2.0, 2.0, 1.0]]), out)
        >>> out.tolist()
        [5.0, 3.0]
    """

    def __init__(self, *elements: Any) -> None:
        only_in_kernels("vec")

    def astype(self, dtype: Any) -> vec:
        """Return the elements in another dtype, as a cast of each: SYCL's ``convert``."""
        raise NotImplementedError

    def sum(self) -> Any:
        """Return the sum of the elements, as NumPy types it; neighbors are added first.

        It is int64 or uint64 of integers and Booleans.
        """
        raise NotImplementedError

    def min(self) -> Any:
        """Return the least of the elements."""
        raise NotImplementedError

    def max(self) -> Any:
        """Return the greatest of the elements."""
        raise NotImplementedError

    def any(self) -> bool:
        """Return whether an element is true, or not zero."""
        raise NotImplementedError

    def all(self) -> bool:
        """Return whether all elements are true, or not zero."""
        raise NotImplementedError


def vec_load(array: Any, index: Any, width: int) -> vec:
    """Read consecutive elements of an array as a vector: ``array[index:index + width]``.

    One instruction of the device, where the elements lie side by side; they need not begin at a
    multiple of the width. The index is that of the first element, where OpenCL's ``vloadn`` and
    SYCL's ``vec.load`` count vectors: write ``index * width`` for theirs.

    Args:
        array: of Booleans, integers or floats, in any memory; of several dimensions, the elements
            follow each other in the last one. float16 values are read as float32.
        index: of the first element: an integer, or a tuple of integers, one for each dimension.
            Negative ones count from the end.
        width: 2, 3, 4, 8 or 16, as a constant.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def scale(item, x, factor):
        ...     i = 4 * item.get_id(0)
        ...     dp.vec_store(x, i, factor * dp.vec_load(x, i, 4))
        >>> x = dp.arange(8, dtype="float32")
        >>> event = scale[2](x, 0.5)
        >>> x.tolist()
        [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
    """
    only_in_kernels("vec_load")


def vec_store(array: Any, index: Any, vector: vec) -> None:
    """Write a vector into consecutive elements: ``array[index:index + width] = vector``.

    Args:
        array: as of :func:`vec_load`; the elements are converted to its dtype, as one that is
            assigned.
        index: of the first element.
        vector: what is written.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def place(item, out):
        ...     dp.vec_store(out, 2 * item.get_id(0), dp.vec(1, 2))
        >>> out = dp.zeros(4)
        >>> event = place[2](out)
        >>> out.tolist()
        [1.0, 2.0, 1.0, 2.0]
    """
    only_in_kernels("vec_store")


def vec_full(width: int, value: Any, dtype: Any) -> vec:
    """Return a vector that has one value everywhere.

    Args:
        width: 2, 3, 4, 8 or 16, as a constant.
        value: a number.
        dtype: of the elements.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def sum_rows(item, x, out):
        ...     total = dp.vec_full(4, 0, dp.float64)
        ...     for k in range(0, x.shape[1], 4):
        ...         total += dp.vec_load(x, (item.get_id(0), k), 4)
        ...     out[item.get_id(0)] = total.sum()
        >>> out = dp.zeros(2)
        >>> event = sum_rows[2](dp.arange(16.0).reshape(2, 8), out)
        >>> out.tolist()
        [28.0, 92.0]
    """
    only_in_kernels("vec_full")


def vec_where(condition: vec, a: Any, b: Any) -> vec:
    """Return the elements of ``a`` where a condition holds, and those of ``b`` where it does not.

    Args:
        condition: a vector of Booleans, as comparisons give it.
        a, b: vectors of the same width, or numbers; at least one is a vector.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def clip(item, x):
        ...     v = dp.vec_load(x, 0, 4)
        ...     dp.vec_store(x, 0, dp.vec_where(v < 2, v, 2))
        >>> x = dp.arange(4)
        >>> event = clip[1](x)
        >>> x.tolist()
        [0, 1, 2, 2]
    """
    only_in_kernels("vec_where")


# --- types ----------------------------------------------------------------------------------------

_DOUBLE = np.dtype("float64")


def width_of(what: str, width: Any) -> int:
    """Return a width, if it is one.

    Raises:
        TypeError: it is none.
    """
    if width not in WIDTHS:
        raise TypeError(f"{what}: the width is 2, 3, 4, 8 or 16, as a constant; got {width}")
    return int(width)


def common_dtype(
    operation: str, first: Any, second: Any, *, vectors: tuple[bool, bool] = (True, True)
) -> Any:
    """Return the dtype in which two operands are combined, of which one at least is a vector.

    Args:
        operation: a name of those above.
        first, second: the dtypes of the operands, of NumPy.
        vectors: which of the operands are vectors.

    Returns:
        A dtype; ``None`` where integers are compared, one of them unsigned, that no integer type
        holds.

    Raises:
        TypeError: vectors of such elements have no such operation.
    """
    for dtype in (first, second):
        if dtype.kind not in "biuf":
            raise TypeError(f"vec: the elements are truth values, integers or floats; got {dtype}")
    exact = operation in COMPARISONS and first.kind in "iu" and second.kind in "iu"
    if all(vectors) or exact:
        common = np.promote_types(first, second)
        if exact and common.kind == "f":
            return None
    else:
        vector, number = (first, second) if vectors[0] else (second, first)
        common = number if vector.kind == "b" else vector
        if number.kind == "f" and vector.kind != "f":
            common = _DOUBLE
    if operation == "truediv" and common.kind in "iu":
        common = _DOUBLE
    return checked_dtype(operation, common)


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"} | {
    "pow": "**", "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^",
    "invert": "~", "neg": "-", "pos": "+",
}  # fmt: skip


def checked_dtype(operation: str, dtype: Any) -> Any:
    """``dtype``, if vectors of it have an operation.

    Raises:
        TypeError: they have not.
    """
    sign = _SIGNS.get(operation, operation)
    if operation in (*BITWISE, *SHIFTS, "invert") and dtype.kind == "f":
        raise TypeError(f"vec: {sign} combines integers; got {dtype}: convert with .astype(...)")
    if operation in ROUNDING and dtype.kind != "f":
        raise TypeError(f"vec: {sign} is of floats; got {dtype}")
    if dtype.kind == "b" and operation not in (*BITWISE, *COMPARISONS, "invert", "where"):
        raise TypeError(
            f"vec: {sign} is not of truth values, which &, |, ^ and ~ combine and .sum() counts: "
            "convert with .astype(...)"
        )
    return dtype


def same_width(first: int, second: int) -> int:
    """Return the width of two vectors that are combined.

    Raises:
        TypeError: they differ.
    """
    if first != second:
        raise TypeError(f"vec: both operands have as many elements; got {first} and {second}")
    return first


NO_TRUTH = "vec: several elements have no one truth value: take .any() or .all() of them"
NO_ASSIGNMENT = (
    "vec: a vector is a value, whose elements are not assigned: make another with dp.vec(...) or "
    "dp.vec_where(...)"
)
