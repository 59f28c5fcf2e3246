"""Vectors in kernels: a few numbers that are loaded, computed and stored together.

They correspond to ``vloadn`` and ``vstoren`` in OpenCL and ``vec`` in SYCL. The type rules, which
are those of NumPy arrays, are shared by the compiler and the simulator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray.kernel_api.items import only_in_kernels

#: The supported vector widths.
WIDTHS = (2, 3, 4, 8, 16)
#: The attributes for the first elements.
FIELDS = "xyzw"
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BITWISE = ("and", "or", "xor")
SHIFTS = ("lshift", "rshift")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
#: Functions of ``math`` that work on vectors of floats, element-wise; integers are computed in
#: float64.
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

    ``dp.vec(a, b, c, d)`` creates one from numbers, in their common dtype; :func:`vec_load` reads
    one from an array. Arithmetic, comparisons, ``min``, ``max``, ``abs`` and the functions of
    ``math`` work element-wise, with the dtypes of NumPy arrays: int8 with int8 is int8 and wraps
    around, int32 with float32 is float64. A Python number takes the vector's dtype, and a float
    with integers gives float64. Comparisons give a vector of Booleans for ``&``, ``|``, ``^``,
    ``~`` and :func:`vec_where`.

    ``v[k]`` is an element, as are ``v.x``, ``v.y``, ``v.z`` and ``v.w``; ``len(v)`` is the width
    and ``v.dtype`` the dtype. A vector is immutable; each operation returns a new one.

    Args:
        elements: 2, 3, 4, 8 or 16 integers, floats or Booleans.

    Example:
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
        """Return the elements cast to another dtype; SYCL's ``convert``."""
        raise NotImplementedError

    def sum(self) -> Any:
        """Return the sum of the elements in NumPy's dtype for a sum; neighbors are added first.

        Sums of integers and Booleans are int64 or uint64.
        """
        raise NotImplementedError

    def min(self) -> Any:
        """Return the smallest element."""
        raise NotImplementedError

    def max(self) -> Any:
        """Return the largest element."""
        raise NotImplementedError

    def any(self) -> bool:
        """Return whether any element is nonzero."""
        raise NotImplementedError

    def all(self) -> bool:
        """Return whether all elements are nonzero."""
        raise NotImplementedError


def vec_load(array: Any, index: Any, width: int) -> vec:
    """Read consecutive elements of an array as a vector: ``array[index:index + width]``.

    This is one device instruction if the elements are contiguous; they need not be aligned to the
    width. The index counts elements, whereas ``vloadn`` in OpenCL and ``vec.load`` in SYCL count
    vectors: write ``index * width`` to port those calls.

    Args:
        array: an array of Booleans, integers or floats in any memory. In several dimensions, the
            elements follow each other along the last axis. float16 values are read as float32.
        index: the index of the first element: an integer, or a tuple with one integer per
            dimension. Negative indices count from the end.
        width: 2, 3, 4, 8 or 16, a constant.

    Example:
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
        array: see :func:`vec_load`; the elements are converted to its dtype, as by an assignment.
        index: the index of the first element.
        vector: the vector to write.

    Example:
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
    """Return a vector with one value in all elements.

    Args:
        width: 2, 3, 4, 8 or 16, a constant.
        value: a number.
        dtype: the dtype of the elements.

    Example:
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
    """Return the elements of ``a`` where a condition is true, and those of ``b`` elsewhere.

    Args:
        condition: a vector of Booleans, the result of a comparison.
        a, b: vectors of the same width, or numbers; at least one must be a vector.

    Example:
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
    """Return a vector width, or raise if it is invalid.

    Raises:
        TypeError: the width is not supported.
    """
    if width not in WIDTHS:
        raise TypeError(f"{what}: width must be the constant 2, 3, 4, 8 or 16; got {width}")
    return int(width)


def common_dtype(
    operation: str, first: Any, second: Any, *, vectors: tuple[bool, bool] = (True, True)
) -> Any:
    """Return the dtype in which two operands are combined; at least one is a vector.

    Args:
        operation: one of the operation names above.
        first, second: the NumPy dtypes of the operands.
        vectors: which of the operands are vectors.

    Returns:
        A dtype, or ``None`` for a comparison of integers that no single integer type can hold.

    Raises:
        TypeError: vectors of these dtypes do not support the operation.
    """
    for dtype in (first, second):
        if dtype.kind not in "biuf":
            raise TypeError(f"vec: elements must be Booleans, integers or floats; got {dtype}")
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
    """Return ``dtype`` if vectors of it support an operation.

    Raises:
        TypeError: they do not.
    """
    sign = _SIGNS.get(operation, operation)
    if operation in (*BITWISE, *SHIFTS, "invert") and dtype.kind == "f":
        raise TypeError(f"vec: {sign} requires integers; got {dtype}; convert with .astype(...)")
    if operation in ROUNDING and dtype.kind != "f":
        raise TypeError(f"vec: {sign} requires floats; got {dtype}")
    if dtype.kind == "b" and operation not in (*BITWISE, *COMPARISONS, "invert", "where"):
        raise TypeError(
            f"vec: {sign} does not work on Booleans; use &, |, ^, ~ or .sum(), or "
            "convert with .astype(...)"
        )
    return dtype


def same_width(first: int, second: int) -> int:
    """Return the width of two vectors that are combined.

    Raises:
        TypeError: the widths differ.
    """
    if first != second:
        raise TypeError(f"vec: both operands must have the same width; got {first} and {second}")
    return first


NO_TRUTH = "vec: the truth value of several elements is ambiguous; use .any() or .all()"
NO_ASSIGNMENT = (
    "vec: a vector is immutable; create another one with dp.vec(...) or dp.vec_where(...)"
)
