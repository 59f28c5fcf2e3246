"""What device code can do here beyond numba-dpex: printing, views, and the group algorithms.

Loaded together with numba-dpex; nothing else imports it. Each part registers an implementation
with Numba for the SPIR-V target.
"""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel.models import OpaqueModel
from numba.core.errors import TypingError
from numba.core.imputils import Registry
from numba.cpython import cmathimpl
from numba.extending import intrinsic, overload, overload_attribute
from numba.np.arrayobj import make_array
from numba_dpex.core.types import USMNdArray
from numba_dpex.core.types.kernel_api.index_space_ids import GroupType
from numba_dpex.core.types.kernel_api.local_accessor import LocalAccessorType
from numba_dpex.kernel_api_impl.spirv.arrayobj import _getitem_array_generic
from numba_dpex.kernel_api_impl.spirv.math import mathimpl
from numba_dpex.kernel_api_impl.spirv.target import SPIRV_TARGET_NAME

from dparray._codegen.intrinsics import half, half_bits, half_value, of_kind
from dparray._compiler.device_code import (
    atomics,  # noqa: F401  it replaces numba-dpex's
    checks,  # noqa: F401  what checked kernels call
    exceptions,
    special,  # noqa: F401  the public special functions in kernels
    vectors,
)
from dparray._compiler.device_code import integers as device_integers
from dparray.kernel_api import (
    GROUP_OPERATIONS,
    group_barrier,
    group_broadcast,
    group_inclusive_scan,
    group_reduce,
)

_registry = Registry()
_CONSTANT_SPACE = 2
_LOCAL_SPACE = 3
_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)


def install(target_context: Any) -> None:
    """Register with numba-dpex's target what importing this module has not."""
    # A string literal is a variable, too, before it becomes a part of a format.
    target_context.data_model_manager.register(types.UnicodeType, OpaqueModel)
    LocalAccessorType.copy = _copy_local_type
    target_context.install_registry(cmathimpl.registry)  # numba-dpex has the types only
    target_context.install_registry(_registry)
    device_integers.install(target_context)  # after it: floors of integers are no floats
    vectors.install(target_context)
    exceptions.install(target_context)


# --- print ----------------------------------------------------------------------------------------
# numba-dpex's goes through a generic pointer and lengths that OpenCL does not have ("%lld"), and
# prints zeros on the CPU device.


@_registry.lower_cast(types.StringLiteral, types.unicode_type)
def _string(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return context.get_constant_null(target)


def _constant_text(builder: Any, text: str) -> Any:
    """The address of a text in constant memory."""
    module = builder.module
    content = cgutils.make_bytearray(text.encode() + b"\0")
    constant = cgutils.add_global_variable(
        module, content.type, module.get_unique_name("dparray_print"), addrspace=_CONSTANT_SPACE
    )
    constant.linkage = "internal"
    constant.global_constant = True
    constant.initializer = content
    return constant.bitcast(ir.IntType(8).as_pointer(_CONSTANT_SPACE))


@_registry.lower(print, types.VarArg(types.Any))
def _print(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    parts = []
    values = []
    for numba_type, value in zip(signature.args, arguments, strict=True):
        if isinstance(numba_type, types.StringLiteral):
            parts.append(numba_type.literal_value.replace("%", "%%"))
        elif isinstance(numba_type, types.Boolean):
            parts.append("%s")
            is_true = context.cast(builder, value, numba_type, types.boolean)
            words = (_constant_text(builder, word) for word in ("True", "False"))
            values.append(builder.select(is_true, *words))
        elif isinstance(numba_type, types.Integer):
            parts.append("%ld" if numba_type.signed else "%lu")
            wide = types.int64 if numba_type.signed else types.uint64
            values.append(context.cast(builder, value, numba_type, wide))
        elif isinstance(numba_type, types.Float):
            parts.append("%.10g")
            values.append(context.cast(builder, value, numba_type, types.float64))
        else:
            raise NotImplementedError(
                f"print takes numbers and strings in a kernel; got {numba_type}"
            )
    pointer = _constant_text(builder, " ".join(parts) + "\n")
    printf = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_INT32, [pointer.type], var_arg=True),
        "_Z18__spirv_ocl_printfPU3AS2Kcz",
    )
    printf.calling_convention = "spir_func"
    builder.call(printf, [pointer, *values])
    return context.get_dummy_value()


# --- math of integers -----------------------------------------------------------------------------
# Typing gives math.sin(integer) a float64; numba-dpex has no code for it.


def _on_floats(implementation: Any, signature: Any) -> Any:
    """``implementation``, for arguments that are converted to its types first."""

    def apply(context: Any, builder: Any, actual: Any, arguments: Any) -> Any:
        converted = [
            context.cast(builder, value, given, wanted)
            for value, given, wanted in zip(arguments, actual.args, signature.args, strict=True)
        ]
        result = implementation(context, builder, signature, converted)
        return context.cast(builder, result, signature.return_type, actual.return_type)

    return apply


def _add_math_of_integers() -> None:
    integers = (types.int32, types.int64, types.uint32, types.uint64)
    for (name, signature), implementation in tuple(mathimpl.lower_ocl_impl.items()):
        function = getattr(math, name, None)
        kinds = set(signature.args)
        if function is None or kinds not in ({types.float32}, {types.float64}):
            continue
        converted = _on_floats(implementation, signature)
        (kind,) = kinds
        for arguments in itertools.product((*integers, kind), repeat=len(signature.args)):
            # Integers alone are computed in float64.
            if set(arguments) != kinds and (kind in arguments or kind == types.float64):
                _registry.lower(function, *arguments)(converted)


_add_math_of_integers()


@overload(float, target=SPIRV_TARGET_NAME)
def _float_of_truth(x: Any) -> Any:
    if not isinstance(x, types.Boolean):
        return None

    def number(x: Any) -> Any:
        return 1.0 if x else 0.0

    return number


def _add_function(name: str, count: int) -> None:
    """``math.<name>``, a function of so many numbers that OpenCL has and numba-dpex no type for."""
    function = getattr(math, name, None)  # math.exp2 is of Python 3.11
    if function is None:
        return

    @intrinsic(target=SPIRV_TARGET_NAME)
    def apply(typing_context: Any, arguments: Any) -> Any:
        single = all(part in (types.float32, types.float16) for part in arguments)
        kind = types.float32 if single else types.float64
        signature = kind(*[kind] * count)

        def generate(context: Any, builder: Any, actual: Any, values: Any) -> Any:
            parts = cgutils.unpack_tuple(builder, values[0])
            converted = [
                context.cast(builder, value, given, kind)
                for value, given in zip(parts, arguments, strict=True)
            ]
            implementation = mathimpl._mk_fn_decl(name, signature)
            return implementation(context, builder, signature, converted)

        return kind(arguments), generate

    def of_one(x: Any) -> Any:
        def implementation(x: Any) -> Any:
            return apply((x,))

        return implementation

    def of_two(x: Any, y: Any) -> Any:
        def implementation(x: Any, y: Any) -> Any:
            return apply((x, y))

        return implementation

    overload(function, target=SPIRV_TARGET_NAME)(of_one if count == 1 else of_two)


for _name, _count in (("exp2", 1), ("log2", 1), ("hypot", 2), ("nextafter", 2)):
    _add_function(_name, _count)


# --- quotients and powers -------------------------------------------------------------------------
# Numba's quotient of complex numbers raises where it divides by zero, and their power is a C
# function. Its power of a float and an integer raises for the least integer.


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


_LARGEST_LOOP = 100  # up to this exponent, integers multiply, as in NumPy


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


_LONGEST_LOOP = 0x10000  # Numba's, from which on logarithms are faster


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
# numba-dpex makes views of one index or slice; of several, Numba's code asks for fields that
# device arrays do not have.


@_registry.lower(operator.getitem, USMNdArray, types.BaseTuple)
def _get_by_tuple(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array_type, index_type = signature.args
    if any(isinstance(part, types.Array) for part in index_type):
        raise NotImplementedError("an array cannot index an array in a kernel; write a loop")
    array = make_array(array_type)(context, builder, arguments[0])
    indices = cgutils.unpack_tuple(builder, arguments[1], count=len(index_type))
    return _getitem_array_generic(
        context, builder, signature.return_type, array_type, array, tuple(index_type), indices
    )


def _copy_local_type(
    self: Any,
    dtype: Any = None,
    ndim: int | None = None,
    layout: str | None = None,
    **others: Any,
) -> Any:
    """The type of a view of a local accessor; it stays in local memory."""
    dtype = self.dtype if dtype is None else dtype
    ndim = self.ndim if ndim is None else ndim
    if layout in (None, "C"):
        return LocalAccessorType(ndim, dtype)
    return USMNdArray(
        ndim=ndim, layout=layout, dtype=dtype, queue=self.queue, addrspace=self.addrspace
    )


# --- group algorithms -----------------------------------------------------------------------------

_WORKGROUP_SCOPE = 2
_REDUCE = 0
_INCLUSIVE_SCAN = 1
# Instruction by operation and kind of number.
_INSTRUCTIONS = {
    ("add", "i"): "IAdd",
    ("add", "u"): "IAdd",
    ("add", "f"): "FAdd",
    ("min", "i"): "SMin",
    ("min", "u"): "UMin",
    ("min", "f"): "FMin",
    ("max", "i"): "SMax",
    ("max", "u"): "UMax",
    ("max", "f"): "FMax",
}
_MANGLED = {
    ("i", 32): "i",
    ("u", 32): "j",
    ("i", 64): "l",
    ("u", 64): "m",
    ("f", 32): "f",
    ("f", 64): "d",
}
# The largest work-group whose scan is in row-major order in two and three dimensions.
SCAN_GROUP_LIMIT = 8192


def _number(function: str, group: Any, value: Any) -> tuple[Any, Any, str]:
    """The type of a value, the type the instruction works in, and its kind."""
    if not isinstance(group, GroupType):
        raise TypingError(f"{function}: the first argument is a group, as item.get_group() gives")
    value = types.unliteral(value)
    if isinstance(value, types.Boolean) or not isinstance(value, types.Integer | types.Float):
        raise TypingError(f"{function}: takes an integer or a float; got {value}")
    if isinstance(value, types.Float):
        if value.bitwidth not in (32, 64):
            raise TypingError(f"{function}: takes float32 or float64; got {value}")
        return value, value, "f"
    kind = "i" if value.signed else "u"
    working = value
    if value.bitwidth < 32:
        working = types.int32 if value.signed else types.uint32
    return value, working, kind


def _operation(function: str, operation: Any) -> str:
    name = getattr(operation, "literal_value", operation)
    if isinstance(operation, types.Omitted):
        name = operation.value
    if name not in GROUP_OPERATIONS:
        raise TypingError(
            f"{function}: the operation is one of {', '.join(map(repr, GROUP_OPERATIONS))}, "
            f"written out in the call; got {name!r}"
        )
    return name


def _convergent(function: Any) -> Any:
    function.calling_convention = "spir_func"
    function.attributes.add("convergent")
    function.attributes.add("nounwind")
    return function


def _builtin(builder: Any, name: str) -> Any:
    """The value of a built-in variable of SPIR-V: three 64-bit integers."""
    module = builder.module
    name = f"__spirv_BuiltIn{name}"
    variable = module.globals.get(name)
    if variable is None:
        vector = ir.VectorType(_INT64, 3)
        variable = cgutils.add_global_variable(module, vector, name, addrspace=1)
        variable.linkage = "external"
        variable.global_constant = True
        variable.align = 32
    return builder.load(variable)


def _instruction(operation: str, kind: str, group_operation: int) -> Any:
    """An intrinsic that applies one group instruction to one value of each work-item."""
    name = f"__spirv_Group{_INSTRUCTIONS[operation, kind]}"

    @intrinsic(target=SPIRV_TARGET_NAME)
    def apply(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = signature.args[0]
            llvm_type = context.get_value_type(number)
            mangled = f"_Z{len(name)}{name}jj{_MANGLED[kind, number.bitwidth]}"
            function_type = ir.FunctionType(llvm_type, [_INT32, _INT32, llvm_type])
            function = _convergent(
                cgutils.get_or_insert_function(builder.module, function_type, mangled)
            )
            scope = ir.Constant(_INT32, _WORKGROUP_SCOPE)
            what = ir.Constant(_INT32, group_operation)
            return builder.call(function, [scope, what, arguments[0]])

        return value(value), generate

    return apply


@overload(group_reduce, target=SPIRV_TARGET_NAME, prefer_literal=True)
def _group_reduce(group: Any, value: Any, operation: Any = "add") -> Any:
    number, working, kind = _number("group_reduce", group, value)
    apply = _instruction(_operation("group_reduce", operation), kind, _REDUCE)

    def reduce(group: Any, value: Any, operation: Any = "add") -> Any:
        return number(apply(working(value)))

    return reduce


@intrinsic(target=SPIRV_TARGET_NAME)
def _broadcast(typing_context: Any, group: Any, value: Any, local_id: Any) -> Any:
    """The value of the work-item with this row-major local id."""
    dimensions = group.ndim

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = signature.args[1]
        kind = "f" if isinstance(number, types.Float) else ("i" if number.signed else "u")
        llvm_type = context.get_value_type(number)
        linear = arguments[2]
        sizes = _builtin(builder, "WorkgroupSize")
        place: list[Any] = [None] * dimensions
        for dimension in reversed(range(dimensions)):
            size = builder.extract_element(sizes, ir.Constant(_INT32, dimension))
            place[dimension] = linear if dimension == 0 else builder.urem(linear, size)
            linear = builder.udiv(linear, size)
        if dimensions == 1:
            id_type, id_mangled, identifier = _INT64, "m", place[0]
        else:
            id_type, id_mangled = ir.VectorType(_INT64, dimensions), f"Dv{dimensions}_m"
            identifier = ir.Constant(id_type, ir.Undefined)
            for dimension, part in enumerate(place):
                position = ir.Constant(_INT32, dimension)
                identifier = builder.insert_element(identifier, part, position)
        name = "__spirv_GroupBroadcast"
        mangled = f"_Z{len(name)}{name}j{_MANGLED[kind, number.bitwidth]}{id_mangled}"
        function_type = ir.FunctionType(llvm_type, [_INT32, llvm_type, id_type])
        function = _convergent(
            cgutils.get_or_insert_function(builder.module, function_type, mangled)
        )
        scope = ir.Constant(_INT32, _WORKGROUP_SCOPE)
        return builder.call(function, [scope, arguments[1], identifier])

    return value(group, value, types.int64), generate


@overload(group_broadcast, target=SPIRV_TARGET_NAME)
def _group_broadcast(group: Any, value: Any, local_id: Any = 0) -> Any:
    number, working, _ = _number("group_broadcast", group, value)
    if isinstance(local_id, types.Type) and not isinstance(local_id, types.Integer | types.Omitted):
        raise TypingError(f"group_broadcast: takes an integer as the local id; got {local_id}")

    def broadcast(group: Any, value: Any, local_id: Any = 0) -> Any:
        return number(_broadcast(group, working(value), local_id))

    return broadcast


@intrinsic(target=SPIRV_TARGET_NAME)
def _scan_scratch(typing_context: Any, value: Any) -> Any:
    """The address of local memory for one value of each work-item of a group."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_value_type(signature.args[0])
        storage = ir.ArrayType(element, SCAN_GROUP_LIMIT)
        name = f"dparray_scan_{signature.args[0]}"
        variable = builder.module.globals.get(name)
        if variable is None:
            variable = cgutils.add_global_variable(
                builder.module, storage, name, addrspace=_LOCAL_SPACE
            )
            variable.linkage = "internal"
            variable.initializer = ir.Constant(storage, ir.Undefined)
        zero = ir.Constant(_INT32, 0)
        return builder.gep(variable, [zero, zero])

    pointer = types.CPointer(types.unliteral(value), addrspace=_LOCAL_SPACE)
    return pointer(value), generate


@intrinsic(target=SPIRV_TARGET_NAME)
def _put(typing_context: Any, pointer: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], builder.gep(arguments[0], [arguments[1]]))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, pointer.dtype), generate


@intrinsic(target=SPIRV_TARGET_NAME)
def _get(typing_context: Any, pointer: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.gep(arguments[0], [arguments[1]]))

    return pointer.dtype(pointer, types.int64), generate


def _make_local_id(*, row_major: bool) -> Any:
    """An intrinsic: the local id in one number, row-major or as the group instructions count."""

    @intrinsic(target=SPIRV_TARGET_NAME)
    def local_id(typing_context: Any, group: Any) -> Any:
        order = range(group.ndim) if row_major else reversed(range(group.ndim))
        dimensions = tuple(order)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            ids = _builtin(builder, "LocalInvocationId")
            sizes = _builtin(builder, "WorkgroupSize")
            linear = ir.Constant(_INT64, 0)
            for dimension in dimensions:
                at = ir.Constant(_INT32, dimension)
                linear = builder.mul(linear, builder.extract_element(sizes, at))
                linear = builder.add(linear, builder.extract_element(ids, at))
            return linear

        return types.int64(group), generate

    return local_id


_row_major_id = _make_local_id(row_major=True)
_instruction_id = _make_local_id(row_major=False)


@overload_attribute(GroupType, "leader", target=SPIRV_TARGET_NAME)
def _leader(group: Any) -> Any:
    def is_leader(group: Any) -> Any:
        return _row_major_id(group) == 0

    return is_leader


@overload(group_inclusive_scan, target=SPIRV_TARGET_NAME, prefer_literal=True)
def _group_inclusive_scan(group: Any, value: Any, operation: Any = "add") -> Any:
    number, working, kind = _number("group_inclusive_scan", group, value)
    apply = _instruction(_operation("group_inclusive_scan", operation), kind, _INCLUSIVE_SCAN)

    if group.ndim == 1:

        def scan(group: Any, value: Any, operation: Any = "add") -> Any:
            return number(apply(working(value)))

        return scan

    def scan_row_major(group: Any, value: Any, operation: Any = "add") -> Any:
        # The instruction counts the first dimension fastest; SYCL and Python count the last.
        scratch = _scan_scratch(working(value))
        mine = _row_major_id(group)
        ranked = _instruction_id(group)
        _put(scratch, mine, working(value))
        group_barrier(group)
        scanned = apply(_get(scratch, ranked))
        group_barrier(group)
        _put(scratch, ranked, scanned)
        group_barrier(group)
        result = _get(scratch, mine)
        group_barrier(group)
        return number(result)

    return scan_row_major


# --- half precision -------------------------------------------------------------------------------


@intrinsic(target=SPIRV_TARGET_NAME)
def _extended(typing_context: Any, bits: Any) -> Any:
    """The float32 of a half's bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


@intrinsic(target=SPIRV_TARGET_NAME)
def _truncated(typing_context: Any, value: Any) -> Any:
    """The bits of the half nearest to a float32 or float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(value), generate


def _float_of(value: Any) -> Any:
    """The float that a number is rounded from."""
    return value if isinstance(value, types.Float) else types.float32


@overload(half_value, target=SPIRV_TARGET_NAME)
def _half_value(bits: Any) -> Any:
    def extend(bits: Any) -> Any:
        return _extended(bits)

    return extend


@overload(half_bits, target=SPIRV_TARGET_NAME)
def _half_bits(value: Any) -> Any:
    number = _float_of(value)

    def truncate(value: Any) -> Any:
        return _truncated(number(value))

    return truncate


@overload(half, target=SPIRV_TARGET_NAME)
def _half(value: Any) -> Any:
    number = _float_of(value)

    def round_to_half(value: Any) -> Any:
        return _extended(_truncated(number(value)))

    return round_to_half


# --- results of users' functions ------------------------------------------------------------------

_KINDS: dict[str, tuple[type, ...]] = {
    "b": (types.Boolean, types.Integer),
    "i": (types.Boolean, types.Integer),
    "f": (types.Float,),
}
_KIND_NAMES = {"b": "a truth value", "i": "an integer", "f": "a float"}


@overload(of_kind, target=SPIRV_TARGET_NAME, prefer_literal=True)
def _of_kind(value: Any, kind: Any) -> Any:
    wanted = getattr(kind, "literal_value", None)
    if wanted is None:
        return None
    if not isinstance(value, _KINDS[wanted]):
        raise TypingError(
            f"it returns {types.unliteral(value)}, where {_KIND_NAMES[wanted]} is expected: give "
            "the dtype= of the result, or return the same kind of number on all paths"
        )

    def itself(value: Any, kind: Any) -> Any:
        return value

    return itself
