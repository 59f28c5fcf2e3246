"""Index checks in device code; :mod:`dparray._compiler.numba.checks` inserts the calls.

Loaded with the rest of the device code; importing it registers the implementations.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np.arrayobj import make_array

from dparray._compiler.numba.checks import (
    check,
    checked_assertion,
    checked_dimension,
    checked_index,
    checked_item,
    checked_load,
    checked_parts,
    checked_step,
    checked_store,
    is_inside,
)
from dparray._compiler.numba.device_code.exceptions import SPACES, check_dimension, check_step
from dparray._compiler.numba.registration import device_overload, instructions
from dparray._compiler.numba.types import VectorType
from dparray._ir.checks import (
    DIMENSIONS,
    INDEX_COUNT,
    INDICES,
    MAX_NUMBERS,
    SHAPE,
    SITE,
    UNSIGNED,
)
from dparray.kernel_api import vec_full, vec_load, vec_store

_INT64 = ir.IntType(64)


def _is_checked(array: Any, index: Any) -> bool:
    """Return whether this is the index of an element or a row: integers, into an array."""
    if isinstance(array, types.BaseTuple | VectorType):
        return isinstance(index, types.Integer)
    kinds = _kinds(index)
    return (
        isinstance(array, types.Array)
        and len(kinds) <= array.ndim <= MAX_NUMBERS
        and all(isinstance(kind, types.Integer) for kind in kinds)
    )


def _kinds(index: Any) -> tuple[Any, ...]:
    return tuple(index) if isinstance(index, types.BaseTuple) else (index,)


def _extents(context: Any, builder: Any, array: Any, value: Any) -> list[Any]:
    if isinstance(array, VectorType):
        return [ir.Constant(_INT64, array.width)]
    if isinstance(array, types.BaseTuple):
        return [ir.Constant(_INT64, len(array))]
    if isinstance(array, SPACES):
        return [ir.Constant(_INT64, array.ndim)]
    if not isinstance(array, types.Array):
        return []
    shape = make_array(array)(context, builder, value).shape
    return list(cgutils.unpack_tuple(builder, shape, array.ndim))


def _indices(context: Any, builder: Any, index: Any, value: Any) -> list[Any]:
    values = [value]
    if isinstance(index, types.BaseTuple):
        values = cgutils.unpack_tuple(builder, value, len(index))
    return [
        context.cast(builder, one, kind, types.int64 if kind.signed else types.uint64)
        for kind, one in zip(_kinds(index), values, strict=True)
    ]


def _inside_by(width: int, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return whether every index of a run is within its dimension; negative ones count from the
    end.
    """
    array, index = signature.args[:2]
    extents = _extents(context, builder, array, arguments[0])
    more = ir.Constant(_INT64, width - 1)
    inside = ir.Constant(ir.IntType(1), 1)
    indices = _indices(context, builder, index, arguments[1])
    for at, (kind, position, extent) in enumerate(
        zip(_kinds(index), indices, extents, strict=False)
    ):
        ends = extent
        if width > 1 and at == len(extents) - 1:
            ends = builder.sub(extent, more)
            inside = builder.and_(inside, builder.icmp_signed(">", ends, _INT64(0)))
        compare = builder.icmp_signed if kind.signed else builder.icmp_unsigned
        if kind.signed:
            from_the_end = builder.icmp_signed(">=", position, builder.neg(extent))
            inside = builder.and_(inside, from_the_end)
            is_negative = builder.icmp_signed("<", position, _INT64(0))
            counted = builder.add(position, extent)
            position = builder.select(is_negative, counted, position)
        inside = builder.and_(inside, compare("<", position, ends))
    return inside


@instructions(lambda array, index: types.boolean(array, index))
def _inside(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return whether an index selects an element."""
    return _inside_by(1, context, builder, signature, arguments)


@instructions(
    lambda array, index, width: types.boolean(array, types.unliteral(index), width),
    prefer_literal=True,
)
def _all_inside(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return whether a run along the last dimension is within an array."""
    width = getattr(signature.args[2], "literal_value", 1)
    return _inside_by(width, context, builder, signature, arguments)


@instructions(lambda array, index, record, site: types.void(array, index, record, site))
def _note(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Count a fault; the first fault also stores its site, its indices and the shape."""
    array, index, record, site = signature.args
    data = make_array(record)(context, builder, arguments[2]).data

    def put(position: int, value: Any) -> None:
        builder.store(value, builder.gep(data, [ir.Constant(_INT64, position)]))

    before = builder.atomic_rmw("add", data, ir.Constant(_INT64, 1), "monotonic")
    with builder.if_then(builder.icmp_unsigned("==", before, ir.Constant(_INT64, 0))):
        kinds = _kinds(index)
        unsigned = sum(1 << at for at, kind in enumerate(kinds) if not kind.signed)
        extents = _extents(context, builder, array, arguments[0])
        put(SITE, context.cast(builder, arguments[3], site, types.int64))
        put(INDEX_COUNT, ir.Constant(_INT64, len(kinds)))
        put(UNSIGNED, ir.Constant(_INT64, unsigned))
        put(DIMENSIONS, ir.Constant(_INT64, len(extents)))
        for position, value in enumerate(_indices(context, builder, index, arguments[1])):
            put(INDICES + position, value)
        for position, value in enumerate(extents):
            put(SHAPE + position, value)
    return context.get_dummy_value()


@instructions(lambda index: types.unliteral(index)(index))
def _first(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the first element's index, of the same type."""
    return context.get_constant_null(signature.return_type)


@device_overload(is_inside)
def _is_inside(array: Any, index: Any) -> Any:
    """Return whether an index is inside an array."""
    if _is_checked(array, index):
        return lambda array, index: _inside(array, index)
    return lambda array, index: True


@device_overload(check)
def _check(array: Any, index: Any, record: Any, site: Any) -> Any:
    """Return whether an index is inside an array; if not, record it."""
    if not _is_checked(array, index):
        return lambda array, index, record, site: True

    def checking(array: Any, index: Any, record: Any, site: Any) -> Any:
        inside = _inside(array, index)
        if not inside:
            _note(array, index, record, site)
        return inside

    return checking


@device_overload(checked_index)
def _checked_index(array: Any, index: Any, record: Any, site: Any) -> Any:
    """Return an index; if it is outside the array, record it and return the first index."""
    if not _is_checked(array, index):
        return lambda array, index, record, site: index
    return lambda array, index, record, site: (
        index if check(array, index, record, site) else _first(index)
    )


@device_overload(checked_item, prefer_literal=True)
def _checked_item(array: Any, index: Any, record: Any, site: Any) -> Any:
    """Return an element; outside the array, record it and return the first element."""
    if isinstance(array, types.BaseTuple) and isinstance(index, types.IntegerLiteral):
        # The compiler checks constants, and needs the literal if the items have several types.
        position = index.literal_value
        return lambda array, index, record, site: array[position]
    if not _is_checked(array, index):
        return lambda array, index, record, site: array[index]
    return lambda array, index, record, site: array[checked_index(array, index, record, site)]


@device_overload(checked_load, prefer_literal=True)
def _checked_load(array: Any, index: Any, width: Any, record: Any, site: Any) -> Any:
    """Run ``vec_load``; record elements outside the array, which are read as zeros."""
    if not _is_run(array, index):
        return lambda array, index, width, record, site: vec_load(array, index, width)
    count = getattr(width, "literal_value", 0)
    element = array.dtype

    def checking(array: Any, index: Any, width: Any, record: Any, site: Any) -> Any:
        if _all_inside(array, index, count):
            return vec_load(array, index, count)
        _note(array, index, record, site)
        return vec_full(count, 0, element)

    return checking


@device_overload(checked_store)
def _checked_store(array: Any, index: Any, vector: Any, record: Any, site: Any) -> Any:
    """Run ``vec_store``, unless elements are outside the array, which is recorded."""
    if not _is_run(array, index) or not isinstance(vector, VectorType):
        return lambda array, index, vector, record, site: vec_store(array, index, vector)
    count = vector.width

    def checking(array: Any, index: Any, vector: Any, record: Any, site: Any) -> Any:
        if _all_inside(array, index, count):
            vec_store(array, index, vector)
        else:
            _note(array, index, record, site)

    return checking


def _is_run(array: Any, index: Any) -> bool:
    """Return whether this may be the index of the first of several elements."""
    return (
        isinstance(array, types.Array)
        and _is_checked(array, index)
        and len(_kinds(index)) == array.ndim
    )


@device_overload(checked_step, prefer_literal=True)
def _checked_step(of: Any, step: Any, record: Any, site: Any) -> Any:
    """Return the step of a ``range`` or ``slice``, and record a step of 0."""
    check_step(slice if isinstance(of, types.Function) and of.typing_key is slice else range, step)
    if not isinstance(step, types.Integer):
        return lambda of, step, record, site: step

    def checking(of: Any, step: Any, record: Any, site: Any) -> Any:
        if step == 0:
            _note(step, step, record, site)
        return step

    return checking


@device_overload(checked_dimension, prefer_literal=True)
def _checked_dimension(space: Any, dimension: Any, record: Any, site: Any) -> Any:
    """Return a dimension of an item or a group, or 0 if it does not exist, which is recorded."""
    if not isinstance(space, SPACES) or not isinstance(dimension, types.Integer):
        return lambda space, dimension, record, site: dimension
    check_dimension(space, dimension)
    count = space.ndim

    def checking(space: Any, dimension: Any, record: Any, site: Any) -> Any:
        if dimension >= 0 and dimension < count:
            return dimension
        _note(space, dimension, record, site)
        return _first(dimension)

    return checking


@device_overload(checked_parts)
def _checked_parts(value: Any, count: Any, record: Any, site: Any) -> Any:
    """Return a value that is unpacked to this many names; record a different length."""
    if not isinstance(value, types.Array):
        return lambda value, count, record, site: value

    def checking(value: Any, count: Any, record: Any, site: Any) -> Any:
        if len(value) != count:
            _note(value, count, record, site)
        return value

    return checking


@device_overload(checked_assertion)
def _checked_assertion(of: Any, holds: Any, record: Any, site: Any) -> Any:
    """Record a failed assertion."""

    def checking(of: Any, holds: Any, record: Any, site: Any) -> Any:
        if not holds:
            _note(of, (), record, site)

    return checking
