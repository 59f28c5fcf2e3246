"""Runs of consecutive elements in device code: loaded, combined and stored as vectors.

``kernels.combine`` defines the functions on runs in plain Python, one element after another;
devices run these instead. A vector is scanned in registers, in logarithmically many steps, and
added to the preceding total: one dependent operation per vector, whereas a loop over elements has
one per element. (The steps follow W. D. Hillis and G. L. Steele, "Data Parallel Algorithms", 1986.)

Loaded by ``_compiler.numba.device_code``; importing it registers the implementations.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.np.arrayobj import make_array
from numba.np.numpy_support import as_dtype

from dparray._compiler.numba.device_code.vector_values import converted, elements_of, spread
from dparray._compiler.numba.registration import device_overload, instructions
from dparray._compiler.numba.types import DeviceArray, VectorType
from dparray.kernels.combine import OPERATIONS, combine_runs, identity, reduce_run, scan_run

_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
# The size of a vector in bytes, and the maximum number of elements that SPIR-V allows.
_VECTOR_BYTES = 64
_MAX_LANES = 16
# The number of vectors that are combined independently, which hides the latency of an operation.
_ACCUMULATORS = 4


def _vector(dtype: Any) -> VectorType:
    """Return the type of a vector in registers, whose elements are combined."""
    return VectorType(dtype, lanes_of(dtype))


def lanes_of(dtype: Any) -> int:
    """Return the number of elements in a vector of a Numba type."""
    return min(_MAX_LANES, _VECTOR_BYTES * 8 // int(dtype.bitwidth))


# --- operations on vectors ------------------------------------------------------------------------


def _combined(builder: Any, operation: str, dtype: Any, a: Any, b: Any) -> Any:
    """Combine two values or two vectors; minimum and maximum are NaN where ``a`` is."""
    is_float = isinstance(dtype, types.Float)
    if operation == "add":
        return builder.fadd(a, b) if is_float else builder.add(a, b)
    if operation == "multiply":
        return builder.fmul(a, b) if is_float else builder.mul(a, b)
    sign = "<" if operation == "minimum" else ">"
    if is_float:
        compare = builder.fcmp_ordered
    else:
        compare = builder.icmp_signed if dtype.signed else builder.icmp_unsigned
    return builder.select(compare(sign, b, a), b, a)


def _combined_nan(builder: Any, operation: str, dtype: Any, a: Any, b: Any) -> Any:
    """Combine as :func:`_combined` does; minimum and maximum are NaN where ``b`` is, too."""
    combined = _combined(builder, operation, dtype, a, b)
    if not _loses_nan(operation, dtype):
        return combined
    return builder.select(builder.fcmp_unordered("uno", b, b), b, combined)


def _loses_nan(operation: str, dtype: Any) -> bool:
    return operation in ("minimum", "maximum") and isinstance(dtype, types.Float)


def _identity(operation: str, dtype: Any) -> Any:
    """Return the identity of the operation; for float sums -0, as adding 0 would change -0."""
    value = identity(operation, as_dtype(dtype).type)
    return -value if operation == "add" and isinstance(dtype, types.Float) else value


def _constant_vector(llvm_type: Any, value: Any) -> Any:
    element = llvm_type.element
    return ir.Constant(llvm_type, [ir.Constant(element, value.item())] * llvm_type.count)


def _shuffled(builder: Any, first: Any, second: Any, lanes: Any) -> Any:
    """Return the pairs of lanes of two vectors."""
    return builder.shuffle_vector(
        first, second, ir.Constant(ir.VectorType(_INT32, len(lanes)), lanes)
    )


def _pointer(builder: Any, array: Any, index: Any) -> Any:
    """Return the address of an element of a strided 1-D array."""
    offset = builder.mul(index, builder.extract_value(array.strides, 0))
    space = array.data.type.addrspace
    first = builder.bitcast(array.data, ir.IntType(8).as_pointer(space))
    return builder.bitcast(builder.gep(first, [offset]), array.data.type)


@instructions(lambda array, index, like: _vector(like)(array, types.uint64, like))
def _load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Load the elements of ``array`` from ``index`` on, converted to the type of ``like``."""
    array, vector = signature.args[0], signature.return_type
    view = make_array(array)(context, builder, arguments[0])
    stored = ir.VectorType(view.data.type.pointee, vector.width)
    if array.layout == "C":
        pointer = builder.gep(view.data, [arguments[1]])
        pointer = builder.bitcast(pointer, stored.as_pointer(pointer.type.addrspace))
        loaded = builder.load(pointer, align=as_dtype(array.dtype).itemsize)
    else:
        loaded = ir.Constant(stored, ir.Undefined)
        for lane in range(vector.width):
            index = builder.add(arguments[1], _INT64(lane))
            element = builder.load(_pointer(builder, view, index))
            loaded = builder.insert_element(loaded, element, _INT32(lane))
    element = types.uint8 if isinstance(array.dtype, types.Boolean) else array.dtype
    return converted(context, builder, loaded, element, vector.dtype)


@instructions(lambda array, index, vector: types.void(array, types.uint64, vector))
def _store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Store the elements of a vector into ``array`` from ``index`` on."""
    array = signature.args[0]
    view = make_array(array)(context, builder, arguments[0])
    if array.layout == "C":
        pointer = builder.gep(view.data, [arguments[1]])
        pointer = builder.bitcast(pointer, arguments[2].type.as_pointer(pointer.type.addrspace))
        builder.store(arguments[2], pointer, align=as_dtype(array.dtype).itemsize)
    else:
        for lane, element in enumerate(elements_of(builder, arguments[2])):
            index = builder.add(arguments[1], _INT64(lane))
            builder.store(element, _pointer(builder, view, index))
    return context.get_dummy_value()


@instructions(lambda value: _vector(value)(value))
def _spread(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return a vector with one value in all elements."""
    return spread(builder, arguments[0], signature.return_type.width)


@instructions(lambda vector: vector.dtype(vector))
def _last(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the last element of a vector."""
    return builder.extract_element(arguments[0], _INT32(signature.args[0].width - 1))


@instructions(lambda vector, before: vector(vector, vector))
def _shifted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Shift a vector by one element; the first element comes from ``before``."""
    width = signature.return_type.width
    return _shuffled(builder, arguments[0], arguments[1], [width, *range(width - 1)])


def _combining(operation: str, combined: Any) -> Any:
    """Return a function that combines two values or two vectors."""

    @instructions(lambda left, right: left(left, left))
    def combine(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        operand = signature.return_type
        return combined(builder, operation, getattr(operand, "dtype", operand), *arguments)

    return combine


class _Instructions:
    """The operation-dependent parts: combine, reduce a vector, scan a vector."""

    def __init__(self, operation: str) -> None:
        @instructions(lambda like: _vector(like)(like))
        def nothing(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vector = signature.return_type
            identity = _identity(operation, vector.dtype)
            return _constant_vector(context.get_value_type(vector), identity)

        @instructions(lambda vector: vector.dtype(vector))
        def fold(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = elements_of(builder, arguments[0])
            while len(lanes) > 1:
                lanes = [
                    _combined_nan(builder, operation, signature.return_type, *pair)
                    for pair in zip(lanes[::2], lanes[1::2], strict=True)
                ]
            return lanes[0]

        @instructions(lambda vector: vector(vector))
        def scan(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (value,), (vector,) = arguments, signature.args
            neutral = _constant_vector(value.type, _identity(operation, vector.dtype))
            distance = 1
            while distance < vector.width:
                lanes = [
                    vector.width if lane < distance else lane - distance
                    for lane in range(vector.width)
                ]
                before = _shuffled(builder, value, neutral, lanes)
                value = _combined(builder, operation, vector.dtype, before, value)
                distance *= 2
            return value

        self.nothing = nothing
        self.combine = _combining(operation, _combined)
        self.combine_nan = _combining(operation, _combined_nan)
        self.fold = fold
        self.scan = scan


_instructions = functools.cache(_Instructions)


# --- the functions of kernels.combine -------------------------------------------------------------


def _checked(function: str, operation: Any, number: Any, *arrays: Any) -> _Instructions:
    name = getattr(operation, "literal_value", None)
    if name not in OPERATIONS:
        raise TypingError(
            f"{function}: the operation must be one of {', '.join(OPERATIONS)}, as a constant; got "
            f"{operation}"
        )
    for array in arrays:
        if not isinstance(array, DeviceArray) or array.ndim != 1:
            raise TypingError(f"{function}: requires arrays of one dimension; got {array}")
    if isinstance(number, types.Boolean) or not isinstance(number, types.Integer | types.Float):
        raise TypingError(f"{function}: combines integers or floats; got {number}")
    return _instructions(name)


@device_overload(combine_runs, prefer_literal=True)
def _combine_runs(
    operation: Any,
    a: Any,
    a_start: Any,
    b: Any,
    b_start: Any,
    out: Any,
    start: Any,
    count: Any,
) -> Any:
    dtype = getattr(out, "dtype", out)
    combine = _checked("combine_runs", operation, dtype, a, b, out).combine_nan
    lanes = np.uint64(lanes_of(dtype))

    def run(
        operation: Any,
        a: Any,
        a_start: Any,
        b: Any,
        b_start: Any,
        out: Any,
        start: Any,
        count: Any,
    ) -> Any:
        first = np.uint64(a_start)
        second = np.uint64(b_start)
        to = np.uint64(start)
        total = np.uint64(count)
        done = np.uint64(0)
        like = dtype(0)
        while total - done >= lanes:
            left = _load(a, first + done, like)
            right = _load(b, second + done, like)
            _store(out, to + done, combine(left, right))
            done += lanes
        while done < total:
            out[to + done] = combine(dtype(a[first + done]), dtype(b[second + done]))
            done += np.uint64(1)

    return run


@device_overload(reduce_run, prefer_literal=True)
def _reduce_run(operation: Any, x: Any, start: Any, count: Any, initial: Any) -> Any:
    dtype = types.unliteral(initial)
    apply = _checked("reduce_run", operation, dtype, x)
    nothing, combine, fold = apply.nothing, apply.combine_nan, apply.fold
    lanes = np.uint64(lanes_of(dtype))
    step = np.uint64(_ACCUMULATORS) * lanes
    one = np.uint64(1)

    def run(operation: Any, x: Any, start: Any, count: Any, initial: Any) -> Any:
        total = dtype(initial)
        at = np.uint64(start)
        left = np.uint64(count)
        a = b = c = d = nothing(total)
        while left >= step:
            a = combine(a, _load(x, at, total))
            b = combine(b, _load(x, at + lanes, total))
            c = combine(c, _load(x, at + lanes + lanes, total))
            d = combine(d, _load(x, at + lanes + lanes + lanes, total))
            at += step
            left -= step
        total = combine(total, fold(combine(combine(a, b), combine(c, d))))
        while left > np.uint64(0):
            total = combine(total, dtype(x[at]))
            at += one
            left -= one
        return total

    return run


@device_overload(scan_run, prefer_literal=True)
def _scan_run(
    operation: Any,
    x: Any,
    out: Any,
    start: Any,
    count: Any,
    before: Any,
    total: Any,
    inclusive: Any,
) -> Any:
    dtype = types.unliteral(before)
    apply = _checked("scan_run", operation, dtype, x, out)
    if out.dtype != dtype:
        raise TypingError(f"scan_run: the results are {dtype} and out has {out.dtype}")
    combine, combine_nan, scan = apply.combine, apply.combine_nan, apply.scan
    loses_nan = _loses_nan(operation.literal_value, dtype)
    lanes = np.uint64(lanes_of(dtype))
    one = np.uint64(1)

    def run(
        operation: Any,
        x: Any,
        out: Any,
        start: Any,
        count: Any,
        before: Any,
        total: Any,
        inclusive: Any,
    ) -> Any:
        carry = dtype(before)
        at = np.uint64(start)
        left = np.uint64(count)
        # Minimum and maximum of vectors may lose a NaN, but not the NaN of the carry.
        has_nan = loses_nan and total != total
        while left > np.uint64(0):
            if left >= lanes and not (has_nan and carry == carry):
                scanned = scan(_load(x, at, carry))
                carries = _spread(carry)
                results = combine(carries, scanned)
                _store(out, at, results if inclusive else _shifted(results, carries))
                # Not the last result, so that the next vector waits for only one operation.
                carry = combine(carry, _last(scanned))
                at += lanes
                left -= lanes
            else:
                after = combine_nan(carry, dtype(x[at]))
                out[at] = after if inclusive else carry
                carry = after
                at += one
                left -= one

    return run
