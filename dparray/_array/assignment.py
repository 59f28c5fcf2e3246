"""Write values into existing arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dparray import _layout, _placement
from dparray._array.allocation import from_host
from dparray._array.host_fastpath import write_small
from dparray._array.ndarray import materialize, ndarray
from dparray._array.nodes import host_number, node_of
from dparray._array.operands import (
    OVERRIDE,
    arrays_inside,
    check_fits,
    checked_scalar,
    dispatch_override,
    foreign_operand,
    scalar_value,
    shared,
    stack_nested,
)
from dparray._driver import traits_of
from dparray._dtypes import fit_device
from dparray._evaluate import writes
from dparray._graph.node import Scalar
from dparray._graph.ops import Op
from dparray._layout import Layout
from dparray._placement import Placement, common_placement, placement_of
from dparray.exceptions import ArgumentError, DTypeError
from dparray.memory.blocks import is_read_only


def write_out(
    name: str, result: ndarray, out: ndarray | None, casting: Any = "same_kind"
) -> ndarray:
    """Return the result itself, or ``out`` with it; ``out`` is checked before it is written."""
    if out is None:
        return result
    check_fits(name, result.shape, result.dtype, out, casting)
    assign(out, result, name)
    return out


def writable_layout(function: str, target: ndarray) -> Layout:
    """Return the layout of an array that is about to be written; computes it if it is pending.

    Raises:
        ArgumentError: elements share memory, as in the result of ``dp.broadcast_to``, or the owner
            of the memory forbids writes.
    """
    layout = materialize(target)
    if _layout.shows_elements_twice(layout.shape, layout.strides):
        raise ArgumentError(
            f"{function}: the array of shape {layout.shape} is read-only, because it shows "
            "elements more than once; write to a copy of it: x = x.copy()"
        )
    if is_read_only(layout.block):
        raise ArgumentError(
            f"{function}: the array of shape {layout.shape} is read-only, because the owner of its "
            "memory forbids writes; write to a copy of it: x = x.copy()"
        )
    return layout


def assign(target: ndarray, value: Any, function: str = "x[...] = value") -> None:
    """Write ``value`` into ``target``, broadcast and converted; checks come before any write.

    Writing a NumPy array is an explicit copy to the device.
    """
    if not write_small(target, Ellipsis, value):
        write(target, value, writable_layout(function, target), function)


def sent_to(target: ndarray, value: np.ndarray) -> ndarray:
    """Return a copy of a NumPy array on the device of ``target``, to which it is assigned.

    The host converts to the dtype of ``target`` if the device has no double precision.
    """
    keeps_parts = value.dtype.kind != "c" or target.dtype.kind == "c"
    if keeps_parts and fit_device(value.dtype, traits_of(target.queue)) != value.dtype:
        value = value.astype(target.dtype)
    return from_host(value, target.queue, target.usm_type)


def write(target: ndarray, value: Any, layout: Layout, function: str) -> None:
    """Assign as :func:`assign` does, where the layout is that of :func:`writable_layout`."""
    if not isinstance(value, ndarray):
        if hasattr(type(value), OVERRIDE):
            dispatch_override(ndarray.__setitem__, (target, Ellipsis, value))
            return
        value = scalar_value(shared(value))
        if isinstance(value, bool | int | float | complex):
            value = checked_scalar(function, value, target.dtype)
            if target.size:
                writes.store(Scalar(value), layout)
            return
        if isinstance(value, np.ndarray):
            value = sent_to(target, value)
        elif isinstance(value, list | tuple | range):
            placement = placement_of(target)
            common_placement(function, [("x", target), *arrays_inside("value", value)])
            value = stack_nested(function, value, placement, "value")
        elif not isinstance(value, ndarray):
            raise foreign_operand(function, "value", value, target.queue)
    common_placement(function, (("x", target), ("value", value)), True)
    shape, wanted = value.shape, layout.shape
    while len(shape) > len(wanted) and shape[0] == 1:
        shape = shape[1:]
    if shape != value.shape:
        value = value._view(shape, value.strides[len(value.shape) - len(shape) :], value.offset)
    strides = value.strides
    if shape != wanted:
        strides = _layout.broadcast_strides(function, shape, strides, wanted)
    if value.dtype.kind == "c" and layout.dtype.kind != "c":
        raise DTypeError(
            f"{function}: {value.dtype} does not fit into {layout.dtype}; "
            f"take dp.real(value) or dp.abs(value) first"
        )
    if 0 in wanted:
        return
    number = None if _placement.in_force else host_number(value, layout.dtype)
    if number is not None:
        writes.store(Scalar(number), layout)
        return
    if shape != wanted:
        value = value._view(wanted, strides, value.offset)
    writes.store(value._node, layout)


def write_value(
    op: Op,
    operands: Sequence[Any],
    signature: tuple[np.dtype[Any], ...],
    target: Layout,
    placement: Placement,
) -> None:
    """Write a checked operation into a layout of its shape or a larger one."""
    writes.store(node_of(op, operands, signature, target.shape, placement), target, True)
