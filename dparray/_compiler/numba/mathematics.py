"""Mathematics in device code: the module ``math`` by OpenCL's functions, ``cmath`` by Numba's.

As a device has them, ``math.floor``, ``math.ceil`` and ``math.trunc`` of a float are floats.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import ConcreteTemplate, signature

from dparray._compiler import abi
from dparray._compiler.numba import instructions as device
from dparray._compiler.numba.target import registry, typing_registry

_FLOATS = (types.float32, types.float64)
_WIDE = (types.int64, types.uint64)
# Functions of one number, with OpenCL's names; integers are converted to float64.
_UNARY_NAMES = (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 fabs lgamma log log10 "
    "log1p log2 sin sinh sqrt tan tanh degrees radians"
)
UNARY = {name: name for name in _UNARY_NAMES.split()} | {"gamma": "tgamma"}
_ROUNDING = ("ceil", "floor", "trunc")
_BINARY = ("atan2", "copysign", "fmod", "hypot", "nextafter", "pow")
_PREDICATES = ("isfinite", "isinf", "isnan")


def _register(function: Any, cases: list[Any]) -> None:
    template = type(f"math_{function.__name__}", (ConcreteTemplate,), {"cases": cases})
    typing_registry.register_global(function)(template)


def _lower(function: Any, name: str, result: Any, arguments: tuple[Any, ...], kind: Any) -> None:
    """Lower a function of ``math`` to OpenCL's for one kind of number, with converted arguments."""

    @registry.lower(function, *arguments)
    def lower(context: Any, builder: Any, actual: Any, values: Any) -> Any:
        converted = [
            context.cast(builder, value, given, kind)
            for value, given in zip(values, actual.args, strict=True)
        ]
        mangled = abi.mangled(name, device.code_of(kind) * len(converted))
        found = device.call(builder, mangled, context.get_value_type(kind), converted, pure=True)
        return context.cast(builder, found, kind, result)


def _register_functions() -> None:
    for name, theirs in UNARY.items():
        function = getattr(math, name, None)  # only in Python 3.11 and later
        if function is None:
            continue
        _register(
            function,
            [signature(types.float64, kind) for kind in _WIDE]
            + [signature(kind, kind) for kind in _FLOATS],
        )
        for kind in _FLOATS:
            _lower(function, theirs, kind, (kind,), kind)
        for integer in _WIDE:
            _lower(function, theirs, types.float64, (integer,), types.float64)
    for name in _ROUNDING:
        function = getattr(math, name)
        cases = [signature(types.int64, kind) for kind in (types.boolean, types.int64)]
        _register(function, cases + [signature(kind, kind) for kind in _FLOATS])
        for kind in _FLOATS:
            _lower(function, name, kind, (kind,), kind)
    for name in _BINARY:
        function = getattr(math, name)
        cases = [signature(kind, kind, kind) for kind in _FLOATS]
        cases += [signature(types.float64, kind, kind) for kind in (*_WIDE, types.boolean)]
        _register(function, cases)
        for kind in _FLOATS:
            _lower(function, name, kind, (kind, kind), kind)
        for kind in (*_WIDE, types.boolean):
            _lower(function, name, types.float64, (kind, kind), types.float64)
    for name in _PREDICATES:
        _register(
            getattr(math, name), [signature(types.boolean, kind) for kind in (*_WIDE, *_FLOATS)]
        )


_register_functions()
_register(
    math.ldexp,
    [signature(kind, kind, types.int32) for kind in _FLOATS]
    + [signature(types.float64, kind, types.int32) for kind in (*_WIDE, types.boolean)],
)


@registry.lower(math.ldexp, types.Float, types.int32)
@registry.lower(math.ldexp, types.Integer, types.int32)
@registry.lower(math.ldexp, types.Boolean, types.int32)
def _ldexp(context: Any, builder: Any, actual: Any, values: Any) -> Any:
    kind = actual.return_type
    value = context.cast(builder, values[0], actual.args[0], kind)
    name = abi.mangled("ldexp", f"{device.code_of(kind)}i")
    return device.call(builder, name, context.get_value_type(kind), (value, values[1]), pure=True)


@registry.lower(math.isnan, types.Float)
def _isnan(context: Any, builder: Any, actual: Any, values: Any) -> Any:
    return builder.fcmp_unordered("uno", values[0], values[0])


def _magnitude(context: Any, builder: Any, actual: Any, values: Any) -> tuple[Any, Any]:
    kind = actual.args[0]
    llvm_type = context.get_value_type(kind)
    name = abi.mangled("fabs", device.code_of(kind))
    size = device.call(builder, name, llvm_type, values, pure=True)
    return size, ir.Constant(llvm_type, math.inf)


@registry.lower(math.isinf, types.Float)
def _isinf(context: Any, builder: Any, actual: Any, values: Any) -> Any:
    return builder.fcmp_ordered("==", *_magnitude(context, builder, actual, values))


@registry.lower(math.isfinite, types.Float)
def _isfinite(context: Any, builder: Any, actual: Any, values: Any) -> Any:
    return builder.fcmp_ordered("<", *_magnitude(context, builder, actual, values))


def _of_integers(function: Any, answer: int) -> None:
    @registry.lower(function, types.Integer)
    def lower(context: Any, builder: Any, actual: Any, values: Any) -> Any:
        return ir.Constant(ir.IntType(1), answer)


_of_integers(math.isnan, 0)
_of_integers(math.isinf, 0)
_of_integers(math.isfinite, 1)
