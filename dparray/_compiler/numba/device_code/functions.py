"""Powers and float16 for device code.

Loaded with the compiler; nothing else imports it. Each part registers an implementation with Numba
for the target.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.imputils import Registry
from numba.np import arrayobj

from dparray._compiler.numba import instructions as device
from dparray._compiler.numba import language, mathematics  # noqa: F401
from dparray._compiler.numba.device_code import (
    atomics,  # noqa: F401
    checks,  # noqa: F401  what checked kernels call
    elements,  # noqa: F401
    exceptions,
    group_algorithms,  # noqa: F401
    printing,
    small_matrices,  # noqa: F401
    special,  # noqa: F401  the public special functions in kernels
    type_limits,  # noqa: F401  numpy.finfo and numpy.iinfo
    vector_memory,  # noqa: F401  dp.vec in kernels
    vector_values,  # noqa: F401
    vectors,  # noqa: F401  what kernels.combine calls
    work_items,  # noqa: F401  kernels without a work-item parameter
)
from dparray._compiler.numba.device_code import integers as device_integers
from dparray._compiler.numba.registration import device_overload, implement, instructions
from dparray._compiler.numba.types import DeviceArray
from dparray._language.intrinsics import (
    bfloat16,
    bfloat16_bits,
    bfloat16_value,
    flat,
    half,
    half_bits,
    half_value,
    multiply_add_32,
    of_kind,
)

_registry = Registry()
_INT64 = ir.IntType(64)


def install(target_context: Any) -> None:
    """Register with the target what importing this module has not."""
    target_context.install_registry(_registry)
    # Registered later than Numba's own functions, which would convert integers to floats.
    device_integers.install(target_context)
    printing.install(target_context)
    exceptions.install(target_context)


# --- numbers --------------------------------------------------------------------------------------


@device_overload(float)
def _float_of_number(x: Any) -> Any:
    if isinstance(x, types.Boolean):
        return lambda x: 1.0 if x else 0.0
    return (lambda x: np.float32(x)) if x == types.float16 else None


@device_overload(math.log)
def _log_to_a_base(x: Any, base: Any) -> Any:
    return lambda x, base: math.log(x) / math.log(base)


def _integer_of_float(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return device.whole(builder, value, context.get_value_type(target), target.signed)


for _source in sorted(types.real_domain | {types.float16}, key=str):
    for _target in sorted(types.unsigned_domain | {types.int8, types.int16}, key=str):
        _registry.lower_cast(_source, _target)(_integer_of_float)


# --- quotients and powers -------------------------------------------------------------------------
# Numba's complex division raises on division by zero, and its complex power is a C function. Its
# power of a float and an integer raises for the smallest integer.


def _quotient_of_complex(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    # Scaled by the larger part of the divisor, as in NumPy: R. L. Smith, "Algorithm 116", 1962.
    def quotient(a: Any, b: Any) -> Any:
        if abs(b.real) >= abs(b.imag):
            if b.real == 0:
                return complex(a.real / abs(b.real), a.imag / abs(b.real))
            ratio = b.imag / b.real
            size = b.real + b.imag * ratio
            return complex((a.real + a.imag * ratio) / size, (a.imag - a.real * ratio) / size)
        ratio = b.real / b.imag
        size = b.real * ratio + b.imag
        return complex((a.real * ratio + a.imag) / size, (a.imag * ratio - a.real) / size)

    return context.compile_internal(builder, quotient, signature, arguments)


_LARGEST_LOOP = 100  # Up to this exponent, integers are multiplied, as in NumPy.


def _power_of_complex(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    real = signature.return_type.underlying_float

    def power(base: Any, exponent: Any) -> Any:
        if exponent == 0:
            return complex(real(1), real(0))
        size = math.hypot(base.real, base.imag)
        if size == real(0):
            unknown = real(0 if exponent.real > 0 else math.nan)
            return complex(unknown, unknown)
        times = abs(exponent.real)
        if exponent.imag == 0 and times <= _LARGEST_LOOP and math.floor(times) == times:
            product = base
            for _ in range(1, int(times)):
                product *= base
            return real(1) / product if exponent.real < 0 else product
        logarithm = math.log(size)
        turn = math.atan2(base.imag, base.real)
        size = math.exp(exponent.real * logarithm - exponent.imag * turn)
        turn = exponent.imag * logarithm + exponent.real * turn
        return complex(size * math.cos(turn), size * math.sin(turn))

    return context.compile_internal(builder, power, signature, arguments)


_LONGEST_LOOP = 0x10000  # Numba's limit, above which logarithms are faster.


def _power_by_integer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    result, wide = signature.return_type, types.uint64

    def power(base: Any, exponent: Any) -> Any:
        left = wide(0) - wide(exponent) if exponent < 0 else wide(exponent)
        if left > wide(_LONGEST_LOOP):
            return result(math.pow(result(base), float(exponent)))
        factor, product = result(base), result(1)
        while left != wide(0):
            if left & wide(1) != wide(0):
                product *= factor
            left >>= wide(1)
            factor *= factor
        return result(1) / product if exponent < 0 else product

    return context.compile_internal(builder, power, signature, arguments)


for _kind in (types.complex64, types.complex128):
    for _division in (operator.truediv, operator.itruediv):
        _registry.lower(_division, _kind, _kind)(_quotient_of_complex)
for _raising in (operator.pow, operator.ipow, pow):
    _registry.lower(_raising, types.Complex, types.Complex)(_power_of_complex)
    for _kind in sorted(types.integer_domain, key=str):
        _registry.lower(_raising, types.Float, _kind)(_power_by_integer)


# --- views ----------------------------------------------------------------------------------------


@instructions(lambda array: array.copy(ndim=1, layout="C")(array))
def _flat_view(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the memory from an array's first element on."""
    array = arrayobj.make_array(signature.args[0])(context, builder, arguments[0])
    view = arrayobj.make_array(signature.return_type)(context, builder)
    most = ir.Constant(_INT64, (1 << 63) - 1)
    arrayobj.populate_array(
        view, array.data, [most], [array.itemsize], array.itemsize, array.meminfo
    )
    return view._getvalue()


@device_overload(flat)
def _flat(array: Any) -> Any:
    return (lambda array: _flat_view(array)) if isinstance(array, DeviceArray) else None


# --- half precision -------------------------------------------------------------------------------


@instructions(lambda bits: types.float32(types.uint16))
def _extended(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the float32 value of float16 bits."""
    return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())


@instructions(lambda value: types.uint16(value))
def _truncated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the bits of the float16 nearest to a float32 or float64."""
    return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))


def _float_of(value: Any) -> Any:
    """Return the float that a number is rounded from."""
    return value if isinstance(value, types.Float) else types.float32


@device_overload(half_bits)
def _half_bits(value: Any) -> Any:
    number = _float_of(value)
    return lambda value: _truncated(number(value))


@device_overload(half)
def _half(value: Any) -> Any:
    number = _float_of(value)
    return lambda value: _extended(_truncated(number(value)))


implement(half_value, lambda bits: _extended(bits))
implement(
    multiply_add_32,
    lambda first, second, added: np.uint64(np.int64(np.int32(first * second + added))),
)


# --- bfloat16 -------------------------------------------------------------------------------------


@instructions(lambda bits: types.float32(types.uint32))
def _float_of_bits(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the float32 with these 32 bits."""
    return builder.bitcast(arguments[0], ir.FloatType())


@instructions(lambda value: types.uint32(types.float32))
def _bits_of_float(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the 32 bits of a float32."""
    return builder.bitcast(arguments[0], ir.IntType(32))


def _nearest_bfloat16(value: Any) -> Any:
    """Return the bits of the bfloat16 nearest to a number."""
    number = types.float32(value)
    bits = types.uint64(_bits_of_float(number))
    upper = bits >> types.uint64(16)
    rounded = (bits + types.uint64(32767) + (upper & types.uint64(1))) >> types.uint64(16)
    return types.uint16(upper | types.uint64(64) if number != number else rounded)


implement(bfloat16_value, lambda bits: _float_of_bits(types.uint32(bits) << types.uint32(16)))
implement(bfloat16_bits, _nearest_bfloat16)
implement(bfloat16, lambda value: bfloat16_value(bfloat16_bits(value)))


# --- float16 of user-defined kernels --------------------------------------------------------------


def _rounded_to_half(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    """Round a number to float16, kept as float32 until it is stored."""
    if not isinstance(source, types.Float):
        value = context.cast(builder, value, source, types.float64)
    return builder.fpext(builder.fptrunc(value, ir.HalfType()), ir.FloatType())


for _source in (types.float32, types.float64, types.Integer, types.Boolean):
    _registry.lower_cast(_source, types.float16)(_rounded_to_half)


@_registry.lower_constant(types.float16)
def _constant_half(context: Any, builder: Any, numba_type: Any, value: Any) -> Any:
    return ir.Constant(ir.FloatType(), float(value))


# --- results of users' functions ------------------------------------------------------------------

_KINDS: dict[str, tuple[type, ...]] = {
    "b": (types.Boolean, types.Integer),
    "i": (types.Boolean, types.Integer),
    "f": (types.Float,),
}
_KIND_NAMES = {"b": "a truth value", "i": "an integer", "f": "a float"}


@device_overload(of_kind, prefer_literal=True)
def _of_kind(value: Any, kind: Any) -> Any:
    expected = getattr(kind, "literal_value", None)
    if expected is None:
        return None
    if not isinstance(value, _KINDS[expected]):
        raise TypingError(
            f"it returns {types.unliteral(value)}, where {_KIND_NAMES[expected]} is expected: give "
            "the dtype= of the result, or return the same kind of number on all paths"
        )
    return lambda value, kind: value
