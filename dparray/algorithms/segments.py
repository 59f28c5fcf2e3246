"""Reductions over segments, and sparse matrix-vector products."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dparray import config
from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._kernel.decorators import device_func
from dparray._kernel.function import DeviceFunction
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement
from dparray.algorithms import tiles
from dparray.algorithms.ranges import (
    accumulator,
    check_1d,
    check_kind,
    check_width,
    chunks,
    filled,
    kernel_of,
    new,
    operation,
    placement_of,
)
from dparray.algorithms.work_sizes import rounded_up
from dparray.exceptions import ArgumentError, ShapeError
from dparray.kernel_api import NdRange, Range
from dparray.kernels.combine import Operation, identity
from dparray.kernels.segmented import (
    find_segment,
    make_carry_by_sub_groups_kernel,
    make_carry_kernel,
    make_csr_matvec_kernel,
    make_lane_reduction,
    make_segmented_reduce_kernel,
    make_segments_by_sub_groups_kernel,
)

__all__ = ["csr_matvec", "segmented_reduce"]

# On a GPU: the sub-groups per resident one, and the minimum number of elements of a sub-group.
_WAVES = 2
_SMALLEST_CHUNK = 256

_find_segment = device_func(find_segment)


def segmented_reduce(x: ndarray, offsets: ndarray, op: str = "add") -> ndarray:
    """Reduce each segment of an array.

    Args:
        x: a 1-D array of shape ``(n,)``, of real or Boolean dtype.
        offsets: nondecreasing integers of shape ``(segments + 1,)``, from 0 to n. Segment s has the
            elements ``x[offsets[s]:offsets[s + 1]]``. Invalid offsets are detected only under
            ``dp.config.debug``; without it the results are undefined, but no memory outside the
            arrays is accessed.
        op: ``"add"``, ``"multiply"``, ``"minimum"`` or ``"maximum"``.

    Returns:
        An array of shape ``(segments,)``. Sums and products of integers have 64 bits, as in NumPy.
        An empty segment gives the identity of the operation (0, 1, the largest or the smallest
        value of the dtype).

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: an array is not one-dimensional, or there are no offsets.
        DTypeError: ``x`` is complex, or ``offsets`` are not integers.
        ValueError: ``op`` is not one of the four.
        ArgumentError: the offsets decrease or are out of range (checked under ``dp.config.debug``,
            where the host reads them).

    Placement: runs on the common queue; the result has the coerced USM type.

    Example:
        >>> from dparray.algorithms import segmented_reduce
        >>> x, offsets = dp.asarray([1, 2, 3, 4]), dp.asarray([0, 1, 1, 4])
        >>> dp.asnumpy(segmented_reduce(x, offsets))
        array([1, 0, 9])
    """
    combine = operation("segmented_reduce", op)
    where = placement_of("segmented_reduce", [("x", x), ("offsets", offsets)])
    check_1d("segmented_reduce", "x", x)
    check_kind("segmented_reduce", "x", x, "biuf", "a real or Boolean")
    check_width("segmented_reduce", "x", x)
    _check_offsets("segmented_reduce", offsets, x.size)
    total = accumulator(op, x.dtype)
    dtype: Any = (np.dtype(np.uint8) if total.kind == "b" else total).type
    out = filled(offsets.size - 1, identity(op, dtype), where)
    if not x.size or not out.size:
        return out
    if tiles.uses_tiles(where.queue):
        return _by_sub_groups(combine, (x, offsets, offsets, x), False, out)
    index_space, count, chunk = chunks(where.queue, x.size)
    carry, carry_segment = new(count, dtype, where), new(count, np.int64, where)
    reducing = kernel_of(make_segmented_reduce_kernel, combine, _find_segment, dtype)
    call_kernel(reducing, index_space, x, offsets, out, carry, carry_segment, chunk)
    if count > 1:
        adding = kernel_of(make_carry_kernel, combine, dtype)
        call_kernel(adding, Range(1), carry, carry_segment, out)
    return out


def csr_matvec(data: ndarray, indices: ndarray, offsets: ndarray, x: ndarray) -> ndarray:
    """Multiply a sparse matrix in CSR format by a vector.

    Args:
        data: the stored elements row by row, of shape ``(stored,)`` and a real dtype.
        indices: the column of each stored element, integers of shape ``(stored,)``, as in SciPy.
            They must be from 0 to ``x.size - 1``. Invalid indices are detected only under
            ``dp.config.debug``; without it they are treated as the last column.
        offsets: integers of shape ``(rows + 1,)``, SciPy's ``indptr``: row r has the stored
            elements from ``offsets[r]`` up to ``offsets[r + 1]``. For invalid offsets see
            :func:`segmented_reduce`.
        x: the vector, of shape ``(columns,)`` and a real dtype.

    Returns:
        An array of shape ``(rows,)`` with the dtype of the product.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError: an array is not one-dimensional, ``data`` and ``indices`` differ in size, or
            there are stored elements but ``x`` is empty.
        DTypeError: ``data`` or ``x`` is Boolean or complex, or the others are not integers.
        ArgumentError: indices or offsets are invalid (checked under ``dp.config.debug``, where the
            host reads them).

    Placement: runs on the common queue; the result has the coerced USM type.

    Example:
        >>> from dparray.algorithms import csr_matvec
        >>> data, indices = dp.asarray([1.0, 2.0, 3.0]), dp.asarray([0, 2, 1])
        >>> offsets, x = dp.asarray([0, 2, 3]), dp.asarray([1.0, 2.0, 3.0])
        >>> dp.asnumpy(csr_matvec(data, indices, offsets, x))
        array([7., 6.])
    """
    operands = [("data", data), ("indices", indices), ("offsets", offsets), ("x", x)]
    where = placement_of("csr_matvec", operands)
    for name, operand in operands:
        check_1d("csr_matvec", name, operand)
    for name, operand in (("data", data), ("x", x)):
        check_kind("csr_matvec", name, operand, "iuf", "an integer or real")
        check_width("csr_matvec", name, operand)
    check_kind("csr_matvec", "indices", indices, "iu", "an integer")
    _check_offsets("csr_matvec", offsets, data.size)
    if data.shape != indices.shape:
        raise ShapeError(
            f"csr_matvec: data has shape {data.shape} and indices has shape {indices.shape}"
        )
    if data.size and not x.size:
        raise ShapeError(f"csr_matvec: x is empty, but data has {data.size} elements")
    if config.debug and data.size:
        smallest, largest = indices.min().item(), indices.max().item()
        if smallest < 0 or largest >= x.size:
            raise ArgumentError(
                f"csr_matvec: indices must be from 0 to {x.size - 1}, positions in x; got values "
                f"from {smallest} to {largest}"
            )
    dtype: Any = np.result_type(data.dtype, x.dtype).type
    out = filled(offsets.size - 1, dtype(0), where)
    if not data.size or not out.size:
        return out
    if tiles.uses_tiles(where.queue):
        adding = operation("csr_matvec", "add")
        return _by_sub_groups(adding, (data, indices, offsets, x), True, out)
    index_space, count, chunk = chunks(where.queue, data.size)
    carry, carry_segment = new(count, dtype, where), new(count, np.int64, where)
    multiplying = kernel_of(make_csr_matvec_kernel, _find_segment, dtype)
    call_kernel(
        multiplying, index_space, data, indices, offsets, x, out, carry, carry_segment, chunk
    )
    if count > 1:
        carrying = kernel_of(make_carry_kernel, operation("csr_matvec", "add"), dtype)
        call_kernel(carrying, Range(1), carry, carry_segment, out)
    return out


def _by_sub_groups(
    combine: Operation, operands: tuple[ndarray, ...], has_columns: bool, out: ndarray
) -> ndarray:
    """Fill ``out`` with the results of segments, on a GPU."""
    where, traits = Placement(out.queue, "device"), traits_of(out.queue)
    size = operands[0].size
    fewest = max(-(-size // (_WAVES * traits.units * traits.threads)), _SMALLEST_CHUNK)
    chunk = rounded_up(fewest, traits.sub_group)
    count, local = -(-size // chunk), tiles.local_size(traits)
    dtype: Any = out.dtype.type
    carries = new(count, dtype, where), new(count, np.int64, where)
    index_space = NdRange(rounded_up(count * traits.sub_group, local), local)
    lanes = _lane_reduction(combine.name, dtype)
    reducing = kernel_of(
        make_segments_by_sub_groups_kernel, combine, _find_segment, lanes, dtype, has_columns
    )
    call_kernel(reducing, index_space, *operands, out, *carries, chunk)
    if count > 1:
        adding = kernel_of(make_carry_by_sub_groups_kernel, combine, lanes, dtype)
        call_kernel(adding, index_space, *carries, out)
    return out


@functools.cache
def _lane_reduction(op: str, dtype: type) -> DeviceFunction:
    """Return the device function that combines the values of a sub-group."""
    return device_func(make_lane_reduction(operation("segments", op).combine, dtype))


def _check_offsets(function: str, offsets: ndarray, size: int) -> None:
    check_1d(function, "offsets", offsets)
    check_kind(function, "offsets", offsets, "iu", "an integer")
    if not offsets.size:
        raise ShapeError(f"{function}: offsets must have at least one element")
    if config.debug:
        found = offsets.asnumpy()
        if found[0] < 0 or found[-1] > size or (found[1:] < found[:-1]).any():
            raise ArgumentError(
                f"{function}: offsets must be nondecreasing, from 0 to {size}, the number of "
                f"elements; got {found}"
            )
