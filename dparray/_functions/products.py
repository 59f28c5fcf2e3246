"""Products of vectors and matrices, and the ``@`` operators.

On a CPU device NumPy's BLAS multiplies in the arrays' own memory. On other devices, and on
sub-devices where NumPy would use cores outside the sub-device, the device's library multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dparray import _dtypes, _layout, _placement
from dparray._array.allocation import empty_on
from dparray._array.apply import apply, astype_array, ops
from dparray._array.assignment import assign
from dparray._array.dispatch import compute
from dparray._array.host_fastpath import array_type, is_ready
from dparray._array.ndarray import as_method, host_view, ndarray
from dparray._array.nodes import array_of_operation
from dparray._array.operands import (
    check_arrays,
    check_fits,
    check_out,
    dispatch_override,
    overriding,
)
from dparray._driver import traits_of
from dparray._evaluate import host, implementations, limits
from dparray._functions.creation import zeros_like
from dparray._functions.joining import joined
from dparray._functions.manipulation import (
    broadcast_to,
    diagonal,
    expand_dims,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
)
from dparray._functions.operands import conjugate
from dparray._functions.options import (
    DEFAULT_CASTING,
    DEFAULT_ORDER,
    are_default,
    product_with_options,
    single_axis,
    spreads_over,
    with_kept_axis,
)
from dparray._functions.public import public
from dparray._functions.reductions import any as any_of
from dparray._functions.reductions import sum as sum_of
from dparray._graph.contractions import contraction
from dparray._graph.ops import OPS
from dparray._layout import Layout
from dparray._placement import common_placement
from dparray.exceptions import ShapeError

__all__ = [
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
]

#: On a sub-device, NumPy's BLAS uses one core up to about this many multiplications.
ONE_CORE_PRODUCTS = 1 << 18
#: Products of two matrices with at most this many multiplications stay on the calling thread. BLAS
#: threads save 30 microseconds if cores are idle; on a loaded machine they wait for each other for
#: 7 to 60 milliseconds.
CALLING_THREAD_PRODUCTS = 1 << 21
#: The minimum number of rows of a block: with fewer, blocks cost more than threads save.
MIN_ROWS_OF_PART = 16


def _product(x1: ndarray, x2: ndarray, function: str, out: ndarray | None = None) -> ndarray:
    """Compute the matrix product by NumPy's rules, after checking that operands share a queue."""
    if type(x1) is not ndarray or type(x2) is not ndarray:
        taken = dispatch_override(matmul, (x1, x2))
        if taken is not NotImplemented:
            return taken
    shape = _shape_of(x1, x2, function)
    named = [("x1", x1), ("x2", x2)]
    if out is not None:
        check_out(function, named, out)
        named.append(("out", out))
    placement = common_placement(function, named)
    loop_dtype = _dtypes.fit_device(
        _dtypes.resolve(np.matmul, (x1.dtype, x2.dtype))[-1], traits_of(placement.queue)
    )
    if out is not None:
        core = (x1.ndim > 1) + (x2.ndim > 1)
        spreads = function == "matmul" and spreads_over(shape, out.shape, core)
        check_fits(function, shape, loop_dtype, out, broadcasts=spreads)
    if _dtypes.is_bfloat16(loop_dtype):  # multiplied in float32, and rounded once
        wide1, wide2 = (astype_array(x, _dtypes.float32, False) for x in (x1, x2))
        result = astype_array(_product(wide1, wide2, function), loop_dtype)
    else:
        operands = [astype_array(x, loop_dtype, False) for x in (x1, x2)]
        signature, shapes = (loop_dtype,) * 3, (x1.shape, x2.shape)
        given = _MATMUL, shapes, signature, placement.queue
        if x1.size and x2.size and implementations.find(*given):
            result = array_of_operation(_MATMUL, operands, signature, shape, placement, False)
        else:
            result = empty_on(placement, shape, loop_dtype)
            _multiply(operands[0], operands[1], result)
    if out is None:
        return result
    assign(out, result, function)
    return out


def _shape_of(x1: ndarray, x2: ndarray, function: str) -> tuple[int, ...]:
    """Return the shape of a matrix product.

    Raises:
        ShapeError: the shapes cannot be multiplied.
    """
    if x1.ndim == 0 or x2.ndim == 0:
        raise ShapeError(f"{function}: the matrix product needs vectors or matrices; use x1 * x2")
    columns, rows = x1.shape[-1], x2.shape[-2 if x2.ndim > 1 else 0]
    if columns != rows:
        raise ShapeError(
            f"{function}: shapes {x1.shape} and {x2.shape} do not match: "
            f"{columns} columns against {rows} rows"
        )
    batch = _layout.broadcast_shapes(function, [x1.shape[:-2], x2.shape[:-2]])
    return (*batch, *x1.shape[-2:-1], *(x2.shape[-1:] if x2.ndim > 1 else ()))


def _is_small_product(x1: ndarray, x2: Any) -> bool:
    return (
        not _placement.in_force
        and type(x2) is ndarray
        and x1.ndim > 0
        and x1.size * x2.size <= ONE_CORE_PRODUCTS * x1.shape[-1]
    )


def _multiply_on_host(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Compute the product with NumPy, in blocks of rows so small that BLAS starts no threads."""
    if a.ndim == b.ndim == out.ndim == 2 and a.dtype.kind == "f":
        rows = ONE_CORE_PRODUCTS // b.size
        if rows >= MIN_ROWS_OF_PART and rows < len(a) <= CALLING_THREAD_PRODUCTS // b.size:
            for start in range(0, len(a), rows):
                part = slice(start, start + rows)
                np.matmul(a[part], b, out=out[part])
            return
    np.matmul(a, b, out=out)


def _multiply(x1: ndarray, x2: ndarray, result: ndarray) -> None:
    """Compute the matrix product into ``result``; all arrays have one dtype."""
    if result.size == 0:
        return
    if x1.shape[-1] == 0:
        assign(result, 0)
        return
    on_root = not traits_of(result.queue).is_part
    is_for_host = on_root or result.size * x1.shape[-1] <= ONE_CORE_PRODUCTS

    compute(
        "matmul",
        (("x1", x1), ("x2", x2)),
        host=_multiply_on_host if is_for_host else None,
        library=lambda library, a, b, out: library.matmul(a, b, out=out),
        out=result,
    )


def _multiply_layouts(arrays: Sequence[Layout], output: Layout) -> None:
    x1, x2, result = (ndarray._from_layout(*layout) for layout in (*arrays, output))
    _multiply(x1, x2, result)


#: The matrix product as an operation in an expression.
_MATMUL = contraction(
    "matmul",
    "the matrix product",
    2,
    "matrix products use a library: NumPy's BLAS on a CPU device, oneMKL on others",
    lambda shape: shape[-1],
    alone=_multiply_layouts,
)


@public(
    operands=("x1", "x2"),
    small=np.matmul,
    when=_is_small_product,
    converts=False,
    operation=_MATMUL,
)
def matmul(
    x1: Any,
    x2: Any,
    /,
    out: ndarray | None = None,
    *,
    axes: Any = None,
    dtype: Any = None,
    casting: str = DEFAULT_CASTING,
    order: str = DEFAULT_ORDER,
    subok: bool = True,
) -> ndarray:
    """Return the matrix product `x1 @ x2`.

    Args:
        x1: a vector, a matrix or a stack of matrices of shape (..., M, K).
        x2: a vector, a matrix or a stack of matrices of shape (..., K, N).
        out: an array to write the result to.
        axes: the axes of the matrices in ``x1``, ``x2`` and the result; the last ones by default.
        dtype: the dtype to compute in.
        casting: the allowed conversions to ``dtype`` and ``out``, as in NumPy.
        order: ``"F"`` for a new result in Fortran order.
        subok: ignored; arrays have no subclasses.

    Returns:
        An array of shape (..., M, N) with the promoted dtype on the common queue. If an operand is
        a vector, its axis is omitted.

    Raises:
        ArgumentError: ``axes``, ``casting`` or ``order`` is invalid.
        DTypeError: ``casting`` forbids a conversion.
        ShapeError: the shapes do not match.

    Example:
        >>> dp.matmul(dp.asarray([[1, 2], [3, 4]]), dp.asarray([1, 1])).asnumpy()
        array([3, 7])
    """
    if isinstance(out, tuple) or not are_default(axes, dtype, casting, order):
        return product_with_options(
            *("matmul", _cores_of_matrices, matmul, (x1, x2)),
            *(out, axes, dtype, casting, order),
        )
    if out is None and _placement.in_force and type(x1) is type(x2) is ndarray:
        pending = _pending_product(x1, x2)
        if pending is not None:
            return pending
    x1, x2 = check_arrays("matmul", ("x1", x1), ("x2", x2))
    return _product(x1, x2, "matmul", out)


def _pending_product(x1: ndarray, x2: ndarray) -> ndarray | None:
    """Return the product as an expression whose device a policy chooses.

    Return ``None`` without a policy, and for empty operands.
    """
    if _placement.policy_in_force() is None or not (x1.size and x2.size):
        return None
    if any(_dtypes.is_bfloat16(x.dtype) for x in (x1, x2)):
        return None
    shape = _shape_of(x1, x2, "matmul")
    placement = common_placement("matmul", (("x1", x1), ("x2", x2)), True)
    loop_dtype = _dtypes.fit_device(
        _dtypes.resolve(np.matmul, (x1.dtype, x2.dtype))[-1], traits_of(placement.queue)
    )
    operands = astype_array(x1, loop_dtype, False), astype_array(x2, loop_dtype, False)
    return array_of_operation(_MATMUL, operands, (loop_dtype,) * 3, shape, placement, False)


def _cores_of_matrices(x1: ndarray, x2: ndarray) -> tuple[int, int, int]:
    return min(x1.ndim, 2), min(x2.ndim, 2), (x1.ndim > 1) + (x2.ndim > 1)


def _small_product(x1: Any, x2: Any) -> ndarray | None:
    """Compute the product of small vectors or matrices on the host immediately, or ``None``."""
    if type(x1) is not ndarray or type(x2) is not ndarray or implementations.are_for_cpu:
        return None
    first, second = host_view(x1), host_view(x2)
    if (
        first is None
        or second is None
        or not (0 < first.ndim <= 2 and 0 < second.ndim <= 2)
        or x2.queue is not x1.queue
        or x2.usm_type != x1.usm_type
        or not is_ready(x1, x2)
    ):
        return None
    # otherwise the number of products is below the limit
    if first.size * second.size > ONE_CORE_PRODUCTS:
        size = (len(first) if first.ndim == 2 else 1) * (second.shape[1] if second.ndim == 2 else 1)
        if size > limits.host_elements or size * len(second) > ONE_CORE_PRODUCTS:
            return None
    values = host.call(np.matmul, first, second, owner=x1)
    if values is None:
        return None
    return ndarray._from_host_value(
        values if type(values) is array_type else np.asarray(values), x1.queue, x1.usm_type
    )


def _install_operators() -> None:
    def left(self: ndarray, other: Any) -> ndarray:
        return matmul(self, other)

    def right(self: ndarray, other: Any) -> ndarray:
        return matmul(other, self)

    def in_place(self: ndarray, other: Any) -> ndarray:
        return matmul(self, other, out=self)

    for name, method in (("matmul", left), ("rmatmul", right), ("imatmul", in_place)):
        method.__name__ = f"__{name}__"
        method.__qualname__ = f"ndarray.__{name}__"
        method.__code__ = method.__code__.replace(co_name="matmul")  # the name in logs
        setattr(ndarray, f"__{name}__", method)


_install_operators()


def _are_equal_vectors(x1: ndarray, x2: Any, axis: Any) -> bool:
    return type(x2) is ndarray and x1.ndim == 1 and x1.shape == x2.shape and axis in (None, 0, -1)


@public(
    operands=("x1", "x2"),
    small=lambda x1, x2, axis: np.vdot(x1, x2),
    takes=("axis",),
    when=_are_equal_vectors,
    converts=False,
)
def vecdot(
    x1: Any,
    x2: Any,
    /,
    out: ndarray | None = None,
    *,
    axis: int | None = None,
    axes: Any = None,
    keepdims: bool = False,
    dtype: Any = None,
    casting: str = DEFAULT_CASTING,
    order: str = DEFAULT_ORDER,
    subok: bool = True,
) -> ndarray:
    """Return the vector dot product, the sum of `conj(x1) * x2` along an axis.

    Args:
        x1: an array.
        x2: an array whose shape broadcasts with that of ``x1``, with the same length along
            ``axis``.
        out: an array to write the result to.
        axis: the axis of the vectors; the last one by default.
        axes: the axis of the vectors for ``x1`` and ``x2`` separately.
        keepdims: whether to keep the axis, with length 1.
        dtype, casting, order, subok: see :func:`matmul`.

    Raises:
        ArgumentError: both ``axis`` and ``axes`` are given, or an option is invalid.
        DTypeError: ``casting`` forbids a conversion.
        ShapeError: the lengths along the axis differ, or the result does not match ``out``.

    Example:
        >>> int(dp.vecdot(dp.asarray([1, 2]), dp.asarray([3, 4])))
        11
    """
    if out is None and keepdims is False and are_default(axes, dtype, casting, order):
        return _vecdot(x1, x2, -1 if axis is None else axis)
    kept = _layout.check_flag("vecdot", "keepdims", keepdims)

    def compute(first: ndarray, second: ndarray) -> ndarray:
        found = _vecdot(first, second)
        return with_kept_axis("vecdot", found, axis, axes) if kept else found

    result_axes = single_axis("vecdot", axis, axes)
    if kept and result_axes is not None:
        result_axes = [*result_axes[:2], ()]
    return product_with_options(
        *("vecdot", lambda first, second: (1, 1, 0), compute, (x1, x2)),
        *(out, result_axes, dtype, casting, order),
    )


def _vecdot(x1: Any, x2: Any, axis: int = -1) -> ndarray:
    x1, x2 = check_arrays("vecdot", ("x1", x1), ("x2", x2))
    first = moveaxis(x1, _layout.normalize_axis("vecdot", axis, x1.ndim), -1)
    second = moveaxis(x2, _layout.normalize_axis("vecdot", axis, x2.ndim), -1)
    if first.shape[-1] != second.shape[-1]:
        raise ShapeError(
            f"vecdot: shapes {x1.shape} and {x2.shape} have different lengths along axis {axis}"
        )
    if first.ndim == second.ndim == 1:
        return _product(conjugate(first), second, "vecdot")
    has_halves = _dtypes.resolve(np.multiply, (first.dtype, second.dtype))[-1] == _dtypes.float16
    if has_halves:  # summed in float32, and rounded once
        first, second = (astype_array(x, _dtypes.float32, copy=False) for x in (first, second))
    products = conjugate(first) * second
    if products.dtype.kind == "b":
        return any_of(products, -1)
    result = sum_of(products, -1, products.dtype)
    return astype_array(result, _dtypes.float16, copy=False) if has_halves else result


@as_method
def dot(x1: Any, x2: Any, /, out: ndarray | None = None) -> ndarray:
    """Return NumPy's dot product: of vectors, of matrices, or over the last and second-last axes.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not match.

    Example:
        >>> int(dp.dot(dp.asarray([1, 2]), dp.asarray([3, 4])))
        11
    """
    if out is None:
        small = _small_product(x1, x2)
        if small is not None:
            return small
    if overriding((x1, x2, out)) is not None:
        return dispatch_override(dot, (x1, x2), out=out)
    x1, x2 = check_arrays("dot", ("x1", x1), ("x2", x2))
    check_out("dot", (("x1", x1), ("x2", x2)), out)
    if x1.ndim == 0 or x2.ndim == 0:
        return apply(OPS["multiply"], x1, x2, out=out)
    if x1.ndim <= 2 and x2.ndim <= 2:
        return _product(x1, x2, "dot", out)
    result = tensordot(x1, x2, axes=((-1,), (-2 if x2.ndim > 1 else -1,)))
    if out is None:
        return result
    assign(out, result, "dot")
    return out


def _has_few_products(x1: ndarray, x2: Any) -> bool:
    """Return whether two arrays have few products of elements."""
    return type(x2) is ndarray and x1.size * x2.size <= limits.host_elements


def _has_few_known_products(x1: ndarray, x2: Any, axes: Any) -> bool:
    is_known = type(axes) in (tuple, list) or (type(axes) is int and axes >= 0)
    return is_known and _has_few_products(x1, x2)


@public(operands=("x1", "x2"), small=np.tensordot, takes=("axes",), when=_has_few_known_products)
def tensordot(x1: Any, x2: Any, /, axes: Any = 2) -> ndarray:
    """Return the sum of products over pairs of axes.

    Args:
        x1: an array.
        x2: an array.
        axes: the number of last axes of ``x1`` that are summed with the first axes of ``x2``; or
            two sequences of axes.

    Raises:
        ShapeError: the lengths of paired axes differ.

    Example:
        >>> dp.tensordot(dp.ones((2, 3)), dp.ones((3, 4)), axes=1).shape
        (2, 4)
    """
    if isinstance(axes, int | np.integer):
        axes = int(axes)
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ShapeError(
                f"tensordot: axes={axes} for arrays of {x1.ndim} and {x2.ndim} dimensions"
            )
        first = tuple(range(x1.ndim - axes, x1.ndim))
        second = tuple(range(axes))
    else:
        first = _layout.normalize_axes("tensordot", axes[0], x1.ndim)
        second = _layout.normalize_axes("tensordot", axes[1], x2.ndim)
    extents = [x1.shape[axis] for axis in first]
    if extents != [x2.shape[axis] for axis in second]:
        raise ShapeError(
            f"tensordot: axes {first} of {x1.shape} and {second} of {x2.shape} differ in length"
        )
    free1 = [axis for axis in range(x1.ndim) if axis not in first]
    free2 = [axis for axis in range(x2.ndim) if axis not in second]
    shape1 = tuple(x1.shape[axis] for axis in free1)
    shape2 = tuple(x2.shape[axis] for axis in free2)
    rows = reshape(permute_dims(x1, (*free1, *first)), (prod(shape1), prod(extents)))
    columns = reshape(permute_dims(x2, (*second, *free2)), (prod(extents), prod(shape2)))
    return reshape(_product(rows, columns, "tensordot"), shape1 + shape2)


@public(operands=("x1", "x2"), small=np.outer, when=_has_few_products)
def outer(x1: Any, x2: Any, /, out: ndarray | None = None) -> ndarray:
    """Return the outer product: a matrix of all products of two elements.

    Example:
        >>> dp.outer(dp.asarray([1, 2]), dp.asarray([3, 4])).asnumpy()
        array([[3, 4],
               [6, 8]])
    """
    return apply(OPS["multiply"], expand_dims(ravel(x1), 1), expand_dims(ravel(x2), 0), out=out)


@public(operands=("x1", "x2"), small=np.inner, when=_has_few_products)
def inner(x1: Any, x2: Any, /) -> ndarray:
    """Return the sum of products over the last axes of both arrays, without conjugation.

    Raises:
        ShapeError: the last axes have different lengths.

    Example:
        >>> int(dp.inner(dp.asarray([1, 2]), dp.asarray([3, 4])))
        11
    """
    if x1.ndim == 0 or x2.ndim == 0:
        return ops.multiply(x1, x2)
    return tensordot(x1, x2, axes=((-1,), (-1,)))


@public(operands=("x1", "x2"), small=np.vdot, when=lambda x1, x2: type(x2) is ndarray)
def vdot(x1: Any, x2: Any, /) -> ndarray:
    """Return the dot product of two flattened arrays, the first one conjugated.

    Raises:
        ShapeError: the sizes differ.

    Example:
        >>> complex(dp.vdot(dp.asarray([1j]), dp.asarray([1j])))
        (1+0j)
    """
    return _product(conjugate(ravel(x1)), ravel(x2), "vdot")


@public(operands=("x1", "x2"))
def kron(x1: Any, x2: Any, /) -> ndarray:
    """Return the Kronecker product: the blocks are the elements of ``x1`` times ``x2``.

    Example:
        >>> dp.kron(dp.asarray([1, 10]), dp.asarray([1, 2])).asnumpy()
        array([ 1,  2, 10, 20])
    """
    ndim = max(x1.ndim, x2.ndim)
    shape1 = (1,) * (ndim - x1.ndim) + x1.shape
    shape2 = (1,) * (ndim - x2.ndim) + x2.shape
    blocks = reshape(x1, tuple(part for extent in shape1 for part in (extent, 1)))
    inside = reshape(x2, tuple(part for extent in shape2 for part in (1, extent)))
    products = blocks * inside
    return reshape(products, tuple(a * b for a, b in zip(shape1, shape2, strict=True)))


@as_method
@public()
def trace(
    x: Any,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: ndarray | None = None,
) -> ndarray:
    """Return the sum of a diagonal of two axes.

    Raises:
        AxisError: an axis is out of range.

    Example:
        >>> int(dp.trace(dp.asarray([[1, 2], [3, 4]])))
        5
    """
    return sum_of(diagonal(x, offset, axis1, axis2), -1, dtype, out)


def _are_alike_in_space(x1: ndarray, x2: Any) -> bool:
    return type(x2) is ndarray and x1.shape == x2.shape and x1.shape[-1:] == (3,)


@public(operands=("x1", "x2"), small=np.cross, when=_are_alike_in_space)
def cross(
    x1: Any,
    x2: Any,
    /,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> ndarray:
    """Return the cross product of 3-element vectors along an axis.

    A 2-element vector has 0 as its third element. For two such vectors, only the third element of
    the product is returned.

    Args:
        x1: an array.
        x2: an array whose shape broadcasts with that of ``x1``.
        axisa, axisb, axisc: the axis of the vectors in ``x1``, in ``x2`` and in the result.
        axis: the same axis for all three.

    Raises:
        ShapeError: the length along ``axis`` is neither 2 nor 3.

    Example:
        >>> dp.cross(dp.asarray([1, 0, 0]), dp.asarray([0, 1, 0])).asnumpy()
        array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    first = moveaxis(x1, _layout.normalize_axis("cross", axisa, x1.ndim), -1)
    second = moveaxis(x2, _layout.normalize_axis("cross", axisb, x2.ndim), -1)
    extents = {first.shape[-1], second.shape[-1]}
    if not extents <= {2, 3}:
        raise ShapeError(
            f"cross: shapes {x1.shape} and {x2.shape} along axes {axisa} and {axisb}; the lengths "
            f"must be 3, or 2 for vectors in a plane"
        )
    shape = _layout.broadcast_shapes("cross", [first.shape[:-1], second.shape[:-1]])
    a, b = (
        [
            broadcast_to(x[..., at], shape) if at < x.shape[-1] else zeros_like(x, shape=shape)
            for at in range(3)
        ]
        for x in (first, second)
    )
    parts = [
        (a[(at + 1) % 3] * b[(at + 2) % 3]) - (a[(at + 2) % 3] * b[(at + 1) % 3])
        for at in (range(3) if 3 in extents else (2,))
    ]
    if 3 not in extents:
        return parts[0]
    return joined("cross", [("", expand_dims(part, axisc)) for part in parts], axisc)


def matvec(
    x1: Any,
    x2: Any,
    /,
    out: ndarray | None = None,
    *,
    axes: Any = None,
    dtype: Any = None,
    casting: str = DEFAULT_CASTING,
    order: str = DEFAULT_ORDER,
    subok: bool = True,
) -> ndarray:
    """Multiply matrices by vectors, stacked along the axes before the last.

    Args:
        x1: matrices of shape (..., M, N).
        x2: vectors of shape (..., N).
        out: an array to write the result to.
        axes, dtype, casting, order, subok: see :func:`matmul`.

    Raises:
        ArgumentError: an option is invalid.
        DTypeError: ``casting`` forbids a conversion.
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: the shapes do not match.

    Example:
        >>> dp.matvec(dp.asarray([[1, 2], [3, 4]]), dp.asarray([1, 1])).asnumpy()
        array([3, 7])
    """
    return product_with_options(
        *("matvec", lambda first, second: (2, 1, 1), _matvec, (x1, x2)),
        *(out, axes, dtype, casting, order),
    )


def _matvec(x1: ndarray, x2: ndarray) -> ndarray:
    if x1.ndim < 2 or x2.ndim < 1:
        raise ShapeError(f"matvec: shapes {x1.shape} and {x2.shape} do not match")
    return matmul(x1, expand_dims(x2, -1))[..., 0]


def vecmat(
    x1: Any,
    x2: Any,
    /,
    out: ndarray | None = None,
    *,
    axes: Any = None,
    dtype: Any = None,
    casting: str = DEFAULT_CASTING,
    order: str = DEFAULT_ORDER,
    subok: bool = True,
) -> ndarray:
    """Multiply conjugated vectors by matrices; for arguments and errors see :func:`matvec`.

    Example:
        >>> dp.vecmat(dp.asarray([1, 1]), dp.asarray([[1, 2], [3, 4]])).asnumpy()
        array([4, 6])
    """
    return product_with_options(
        *("vecmat", lambda first, second: (1, 2, 1), _vecmat, (x1, x2)),
        *(out, axes, dtype, casting, order),
    )


def _vecmat(x1: ndarray, x2: ndarray) -> ndarray:
    if x1.ndim < 1 or x2.ndim < 2:
        raise ShapeError(f"vecmat: shapes {x1.shape} and {x2.shape} do not match")
    return matmul(expand_dims(conjugate(x1), -2), x2)[..., 0, :]
