"""``dp.vec`` in device code: typed by NumPy's rules, lowered to LLVM vectors.

Operations without an LLVM vector instruction are computed element by element. Loaded with the rest
of the device code; importing it registers the implementations.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.npydecl import parse_dtype
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature
from numba.np.arrayobj import fix_integer_index
from numba.np.numpy_support import as_dtype, from_dtype

from dparray._compiler import abi
from dparray._compiler.numba import instructions as device
from dparray._compiler.numba import mathematics
from dparray._compiler.numba.registration import bound_method, typed_by_arguments
from dparray._compiler.numba.target import registry, typing_registry
from dparray._compiler.numba.types import VectorType
from dparray.kernel_api import vectors as rules

_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
NUMBERS = (types.Boolean, types.Integer, types.Float)
_WIDE = {True: types.int64, False: types.uint64}


# --- types ----------------------------------------------------------------------------------------


def _checked(rule: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Apply a type rule, and raise its errors as Numba's errors."""
    try:
        return rule(*arguments, **named)
    except TypeError as error:
        raise TypingError(str(error)) from None


def dtype_of(numba_type: Any) -> Any:
    """Return NumPy's dtype of a number or of a vector's elements."""
    element = numba_type.dtype if isinstance(numba_type, VectorType) else numba_type
    return as_dtype(types.unliteral(element))


def common_type(operation: str, operands: Sequence[Any]) -> Any:
    """Return the type in which two operands are combined; ``None`` if none holds both."""
    common = _checked(
        rules.common_dtype,
        operation,
        *map(dtype_of, operands),
        vectors=tuple(isinstance(each, VectorType) for each in operands),
    )
    return None if common is None else from_dtype(common)


def width_of(operands: Sequence[Any]) -> int:
    widths = [each.width for each in operands if isinstance(each, VectorType)]
    return int(_checked(rules.same_width, widths[0], widths[-1]))


def constant_width(what: str, width: Any) -> int:
    return int(_checked(rules.width_of, what, getattr(width, "literal_value", width)))


def element_of(what: str, dtype: Any) -> Any:
    element = parse_dtype(dtype)
    if not isinstance(element, NUMBERS):
        raise TypingError(f"{what}: a dtype such as dp.float32; got {dtype}")
    return element


def in_registers(element: Any) -> Any:
    """Return the type in which elements are computed: float32 for float16."""
    return types.float32 if element == types.float16 else element


# --- values ---------------------------------------------------------------------------------------


def elements_of(builder: Any, vector: Any) -> list[Any]:
    return [builder.extract_element(vector, _INT32(at)) for at in range(vector.type.count)]


def vector_of(builder: Any, elements: Sequence[Any]) -> Any:
    vector = ir.Constant(ir.VectorType(elements[0].type, len(elements)), ir.Undefined)
    for at, element in enumerate(elements):
        vector = builder.insert_element(vector, element, _INT32(at))
    return vector


def spread(builder: Any, number: Any, width: int) -> Any:
    """Return a vector whose elements all have the value of one number."""
    llvm_type = ir.VectorType(number.type, width)
    nothing = ir.Constant(llvm_type, ir.Undefined)
    one = builder.insert_element(nothing, number, _INT32(0))
    lanes = ir.Constant(ir.VectorType(_INT32, width), [0] * width)
    return builder.shuffle_vector(one, nothing, lanes)


def converted(context: Any, builder: Any, vector: Any, source: Any, target: Any) -> Any:
    """Return the elements of a vector converted to another type."""
    if source == target:
        return vector
    to = ir.VectorType(context.get_value_type(target), vector.type.count)
    from_float, to_float = isinstance(source, types.Float), isinstance(target, types.Float)
    if isinstance(target, types.Boolean):
        zero = ir.Constant(vector.type, None)
        if from_float:
            return builder.fcmp_unordered("!=", vector, zero)
        return builder.icmp_unsigned("!=", vector, zero)
    signed = isinstance(source, types.Integer) and source.signed
    if from_float and to_float:
        return (builder.fpext if source.bitwidth < target.bitwidth else builder.fptrunc)(vector, to)
    if from_float:
        return device.whole(builder, vector, to, target.signed)
    if to_float:
        return (builder.sitofp if signed else builder.uitofp)(vector, to)
    bits = 1 if isinstance(source, types.Boolean) else source.bitwidth
    if bits == target.bitwidth:
        return vector
    if bits > target.bitwidth:
        return builder.trunc(vector, to)
    return (builder.sext if signed else builder.zext)(vector, to)


def number_as(context: Any, builder: Any, value: Any, numba_type: Any, element: Any) -> Any:
    """Return a number, perhaps a literal, converted to another type."""
    number = types.unliteral(numba_type)
    value = context.cast(builder, value, numba_type, number)
    return context.cast(builder, value, number, element)


def as_vector(
    context: Any, builder: Any, value: Any, numba_type: Any, element: Any, width: int
) -> Any:
    """Return an operand as a vector with elements of a given type."""
    if isinstance(numba_type, VectorType):
        return converted(context, builder, value, numba_type.dtype, element)
    return spread(builder, number_as(context, builder, value, numba_type, element), width)


def as_vectors(
    context: Any, builder: Any, values: Sequence[Any], numba_types: Sequence[Any], element: Any
) -> list[Any]:
    """Return operands, at least one of which is a vector, as vectors of one type."""
    width = width_of(numba_types)
    return [
        as_vector(context, builder, value, numba_type, element, width)
        for value, numba_type in zip(values, numba_types, strict=True)
    ]


def _of_each(
    context: Any, builder: Any, function: Callable[..., Any], kinds: Any, vectors: Sequence[Any]
) -> Any:
    """Apply a function of numbers, with a signature, to each element."""
    operands = zip(*(elements_of(builder, each) for each in vectors), strict=True)
    return vector_of(
        builder,
        [context.compile_internal(builder, function, kinds, elements) for elements in operands],
    )


# --- operators ------------------------------------------------------------------------------------

_OPERATORS = {
    name: [
        getattr(operator, name + ("_" if name in ("and", "or") else "")),
        *([getattr(operator, f"i{name}")] if name not in rules.COMPARISONS else []),
    ]
    for name in (*rules.ARITHMETIC, *rules.BITWISE, *rules.SHIFTS, *rules.COMPARISONS)
}
_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_OF_FLOATS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}
_OF_INTEGERS = {name: name for name in ("add", "sub", "mul", "xor")} | {"and": "and_", "or": "or_"}


# Applied to each element if LLVM has no vector instruction with the kernels' meaning.
_OF_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def _binary(operation: str) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
        common, width = common_type(operation, actual.args), width_of(actual.args)
        kinds = [common, common]
        if common is None:
            kinds = [getattr(each, "dtype", types.unliteral(each)) for each in actual.args]
        a, b = (
            as_vector(context, builder, value, given, kind, width)
            for value, given, kind in zip(arguments, actual.args, kinds, strict=True)
        )
        if common is None:
            function, result = _OF_NUMBERS[operation], types.boolean(*kinds)
            return _of_each(context, builder, function, result, (a, b))
        is_float = isinstance(common, types.Float)
        if operation in _SIGNS:
            return _compared(builder, _SIGNS[operation], common, a, b)
        name = (_OF_FLOATS if is_float else _OF_INTEGERS).get(operation)
        if name is not None:
            return getattr(builder, name)(a, b)
        kind = common if is_float else _WIDE[common.signed]
        wide = [converted(context, builder, each, common, kind) for each in (a, b)]
        result = _of_each(context, builder, _OF_NUMBERS[operation], kind(kind, kind), wide)
        return converted(context, builder, result, kind, common)

    return generate


def _compared(builder: Any, sign: str, element: Any, a: Any, b: Any) -> Any:
    if isinstance(element, types.Float):
        compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
        return compare(sign, a, b)
    is_signed = isinstance(element, types.Integer) and element.signed
    return (builder.icmp_signed if is_signed else builder.icmp_unsigned)(sign, a, b)


def _choice(sign: str) -> Callable[..., Any]:
    """Return ``min`` or ``max``: the second operand if its comparison with the first is true."""

    def generate(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
        common = actual.return_type.dtype
        a, b = as_vectors(context, builder, arguments, actual.args, common)
        return builder.select(_compared(builder, sign, common, b, a), b, a)

    return generate


_PAIRS = (
    (VectorType, VectorType),
    *((VectorType, number) for number in NUMBERS),
    *((number, VectorType) for number in NUMBERS),
)


def _register_binary(function: Any, operation: str, generate: Callable[..., Any]) -> None:
    @typed_by_arguments(function)
    def signature_of(args: Any, kws: Any) -> Any:
        if kws or not any(isinstance(each, VectorType) for each in args):
            return None
        if len(args) != 2:
            raise TypingError(f"vec: {function.__name__} takes 2 operands; got {len(args)}")
        if not all(isinstance(each, (VectorType, *NUMBERS)) for each in args):
            raise TypingError(
                "vec: a vector is combined with vectors and numbers; got "
                + next(str(each) for each in args if not isinstance(each, VectorType))
            )
        width = width_of(args)
        common = common_type(operation, args)
        result = types.boolean if operation in rules.COMPARISONS else common
        return signature(VectorType(result, width), *args)

    for operands in _PAIRS:
        registry.lower(function, *operands)(generate)


for _operation, _functions in _OPERATORS.items():
    for _function in _functions:
        _register_binary(_function, _operation, _binary(_operation))
_register_binary(builtins.min, "min", _choice("<"))
_register_binary(builtins.max, "max", _choice(">"))


def _negated(context: Any, builder: Any, element: Any, value: Any) -> Any:
    return builder.fneg(value) if isinstance(element, types.Float) else builder.neg(value)


def _magnitude(context: Any, builder: Any, element: Any, value: Any) -> Any:
    if isinstance(element, types.Float):
        return _of_opencl(builder, "fabs", element, (value,))
    if not element.signed:
        return value
    is_negative = builder.icmp_signed("<", value, ir.Constant(value.type, None))
    return builder.select(is_negative, builder.neg(value), value)


_UNARY = {
    "neg": (operator.neg, _negated),
    "pos": (operator.pos, lambda context, builder, element, value: value),
    "invert": (operator.invert, lambda context, builder, element, value: builder.not_(value)),
    "abs": (builtins.abs, _magnitude),
}


def _register_unary(operation: str, function: Any, compute: Callable[..., Any]) -> None:
    @typed_by_arguments(function)
    def signature_of(args: Any, kws: Any) -> Any:
        if kws or len(args) != 1 or not isinstance(args[0], VectorType):
            return None
        _checked(rules.checked_dtype, operation, dtype_of(args[0]))
        return signature(args[0], *args)

    @registry.lower(function, VectorType)
    def generate(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
        return compute(context, builder, actual.args[0].dtype, arguments[0])


for _operation, (_function, _compute) in _UNARY.items():
    _register_unary(_operation, _function, _compute)


def _refuse(function: Any, why: str) -> None:
    """Raise an error that names the replacement of something that vectors do not support."""

    @typed_by_arguments(function)
    def signature_of(args: Any, kws: Any) -> Any:
        if args and isinstance(args[0], VectorType):
            raise TypingError(why)
        return None


_refuse(bool, rules.NO_TRUTH)
_refuse(operator.not_, rules.NO_TRUTH)
_refuse(operator.setitem, rules.NO_ASSIGNMENT)


# --- mathematics ----------------------------------------------------------------------------------


# OpenCL's functions of vectors, by their names.
_OPENCL = {
    name: mathematics.UNARY.get(name, name)
    for name in (*rules.UNARY, *rules.BINARY, *rules.ROUNDING)
}


def _of_opencl(builder: Any, name: str, element: Any, vectors: Sequence[Any]) -> Any:
    code = f"Dv{vectors[0].type.count}_{device.code_of(element)}" + "S_" * (len(vectors) - 1)
    mangled = abi.mangled(name, code)
    return device.call(builder, mangled, vectors[0].type, vectors, pure=True)


def _register_math(name: str, count: int) -> None:
    function = getattr(math, name, None)  # math.exp2 and math.cbrt need Python 3.11
    if function is None:
        return

    @typed_by_arguments(function)
    def signature_of(args: Any, kws: Any) -> Any:
        if kws or len(args) != count:
            return None
        if not all(isinstance(each, (VectorType, *NUMBERS)) for each in args):
            return None
        if not any(isinstance(each, VectorType) for each in args):
            return None
        if name in rules.ROUNDING:
            _checked(rules.checked_dtype, name, dtype_of(args[0]))
        common = common_type("truediv", (args[0], args[-1]))
        result = types.boolean if name in rules.PREDICATES else common
        return signature(VectorType(result, width_of(args)), *args)

    def generate(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
        common = common_type("truediv", (actual.args[0], actual.args[-1]))
        kinds = actual.return_type.dtype(*[common] * count)
        vectors = as_vectors(context, builder, arguments, actual.args, common)
        if name in _OPENCL:
            return _of_opencl(builder, _OPENCL[name], common, vectors)
        compute = context.get_function(function, kinds)
        return vector_of(
            builder,
            [
                compute(builder, list(each))
                for each in zip(*(elements_of(builder, one) for one in vectors), strict=True)
            ],
        )

    for operands in ((VectorType,),) if count == 1 else _PAIRS:
        registry.lower(function, *operands)(generate)


for _name in (*rules.UNARY, *rules.ROUNDING, *rules.PREDICATES):
    _register_math(_name, 1)
for _name in rules.BINARY:
    _register_math(_name, 2)


# --- attributes and methods -----------------------------------------------------------------------


@typing_registry.register_attr
class _Attributes(AttributeTemplate):
    key = VectorType

    def generic_resolve(self, value: Any, attr: str) -> Any:
        if attr in tuple(rules.FIELDS[: value.width]):
            return value.dtype
        if attr == "dtype":
            return types.DType(value.dtype)
        if attr == "astype":
            return bound_method(value, "vec", attr, _typed_cast(value))
        if attr in ("sum", "min", "max", "any", "all"):
            return bound_method(value, "vec", attr, lambda: _reduced(value, attr))
        return None


def _typed_cast(vector: Any) -> Callable[..., Any]:
    def typer(dtype: Any) -> Any:
        return VectorType(in_registers(element_of("vec.astype", dtype)), vector.width)

    return typer


def _reduced(vector: Any, name: str) -> Any:
    """Return the dtype of an element, or of the sum of several, by NumPy's rules."""
    if name in ("any", "all"):
        return types.boolean
    if name == "sum" and not isinstance(vector.dtype, types.Float):
        return _WIDE[not isinstance(vector.dtype, types.Integer) or vector.dtype.signed]
    _checked(rules.checked_dtype, name, dtype_of(vector))
    return vector.dtype


@registry.lower_getattr_generic(VectorType)
def _lower_attribute(context: Any, builder: Any, numba_type: Any, value: Any, name: str) -> Any:
    if name == "dtype":
        return context.get_dummy_value()
    return builder.extract_element(value, _INT32(rules.FIELDS.index(name)))


@registry.lower((VectorType, "astype"), VectorType, types.Any)
def _lower_cast(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    source, target = actual.args[0].dtype, actual.return_type.dtype
    vector = converted(context, builder, arguments[0], source, target)
    if parse_dtype(actual.args[1]) != types.float16:
        return vector
    half = ir.VectorType(ir.HalfType(), actual.return_type.width)
    return builder.fpext(builder.fptrunc(vector, half), vector.type)


def _register_reduction(name: str) -> None:
    @registry.lower((VectorType, name), VectorType)
    def generate(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
        source, kind = actual.args[0].dtype, actual.return_type
        vector = converted(context, builder, arguments[0], source, kind)
        return _folded(builder, name, kind, elements_of(builder, vector))


def _folded(builder: Any, name: str, kind: Any, elements: list[Any]) -> Any:
    """Combine neighboring elements repeatedly until one is left."""

    def combine(a: Any, b: Any) -> Any:
        if name == "sum":
            return (builder.fadd if isinstance(kind, types.Float) else builder.add)(a, b)
        if name in ("any", "all"):
            return (builder.or_ if name == "any" else builder.and_)(a, b)
        return builder.select(_compared(builder, "<" if name == "min" else ">", kind, b, a), b, a)

    while len(elements) > 1:
        pairs = [combine(a, b) for a, b in zip(elements[:-1:2], elements[1::2], strict=True)]
        elements = pairs + elements[len(elements) // 2 * 2 :]
    return elements[0]


for _name in ("sum", "min", "max", "any", "all"):
    _register_reduction(_name)


@typed_by_arguments(len)
def _length(args: Any, kws: Any) -> Any:
    if kws or len(args) != 1 or not isinstance(args[0], VectorType):
        return None
    return signature(types.intp, *args)


@registry.lower(len, VectorType)
def _lower_length(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    return _INT64(actual.args[0].width)


@typed_by_arguments(operator.getitem)
def _element(args: Any, kws: Any) -> Any:
    if kws or not isinstance(args[0], VectorType):
        return None
    vector, index = args
    if not isinstance(index, types.Integer):
        raise TypingError(f"vec: takes an integer as index; got {index}")
    return signature(vector.dtype, vector, index)


@typing_registry.register
class _GetWrittenElement(AbstractTemplate):
    key = "static_getitem"

    def generic(self, args: Any, kws: Any) -> Any:
        vector, index = args
        is_known = isinstance(vector, VectorType) and isinstance(index, int)
        if is_known and not -vector.width <= index < vector.width:
            raise TypingError(f"vec: the index is below {vector.width}; got {index}")
        return None  # It is typed like any other index.


@registry.lower(operator.getitem, VectorType, types.Integer)
def _lower_element(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
    vector, index = actual.args
    count = _INT64(vector.width)
    at = fix_integer_index(context, builder, types.unliteral(index), arguments[1], count)
    return builder.extract_element(arguments[0], builder.trunc(at, _INT32))
