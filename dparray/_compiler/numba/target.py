"""The target for which Numba compiles: its contexts, its pipeline, its dispatchers.

Numba types a function and lowers it to LLVM IR; this module tells it which functions device code
has, how arguments are laid out and how functions are called. :func:`lower_kernel` returns the
optimized module of a kernel; :mod:`dparray._compiler.back_ends.spirv` converts it to SPIR-V.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import Any, ClassVar

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import compiler, itanium_mangler, types, typing
from numba.core.base import BaseContext
from numba.core.callconv import MinimalCallConv
from numba.core.codegen import CPUCodegen, CPUCodeLibrary
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.descriptors import TargetDescriptor
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.imputils import Registry
from numba.core.options import TargetOptions, include_default_options
from numba.core.runtime.context import NRTContext
from numba.core.target_extension import (
    Generic,
    dispatcher_registry,
    jit_registry,
    target_override,
    target_registry,
)
from numba.core.targetconfig import ConfigStack
from numba.core.typeconv.rules import _init_casting_rules
from numba.core.typeconv.typeconv import TypeManager
from numba.core.typing import cmathdecl, enumdecl
from numba.core.typing.templates import Registry as TypingRegistry

from dparray._compiler import abi
from dparray._compiler.abi import TRIPLE
from dparray._compiler.numba import instructions, linkage, pipeline
from dparray._compiler.numba import patches as patches
from dparray._compiler.numba.constants import prepared_for_numba
from dparray._compiler.numba.pipeline import KernelPipeline, Pipeline
from dparray._compiler.numba.types import DeviceArray, GroupType, ItemType, NdItemType, data_models
from dparray._language.advice import Advice
from dparray.kernel_api import AddressSpace, MemoryOrder, MemoryScope

TARGET = pipeline.TARGET
LOCAL_ARRAY = "dparray_local_array"  # prefix of the names of variables in local memory
_INT8 = ir.IntType(8)
_ENUMERATIONS = (AddressSpace, MemoryOrder, MemoryScope)
_OPERATORS = frozenset(
    each for each in vars(operator).values() if isinstance(each, BuiltinFunctionType)
)
_MAX_SIGNATURES = 4096
_OTHER_CHARACTERS = re.compile(r"[^\w.$<>]", re.ASCII)

#: Typing and lowering of device code's operations, in addition to Numba's.
typing_registry = TypingRegistry()
registry = Registry(TARGET)


class _Device(Generic):
    """The Numba target for devices that run SPIR-V."""


target_registry[TARGET] = _Device


# --- modules --------------------------------------------------------------------------------------


class _Library(CPUCodeLibrary):
    """The code of a function. It is optimized once, after it was linked into a kernel."""

    def _optimize_functions(self, ll_module: Any) -> None:
        pass

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_specific(self) -> None:
        pass


class _Codegen(CPUCodegen):
    _library_class = _Library

    def _init(self, llvm_module: Any) -> None:
        self._data_layout = linkage.data_layout()
        self._target_data = llvm.create_target_data(self._data_layout)
        self._tm_features = ""

    def _create_empty_module(self, name: str) -> Any:
        # The name of a function may have any characters, and it is written in a comment.
        module = ir.Module(_OTHER_CHARACTERS.sub("_", name))
        module.triple = TRIPLE
        module.data_layout = linkage.data_layout()
        return module

    def _add_module(self, module: Any) -> None:
        pass


# --- contexts -------------------------------------------------------------------------------------


class TypingContext(typing.BaseContext):
    """The functions of device code, and the types of their results.

    Attributes:
        call_rules: called with each function and its arguments before typing; they return the
            positional arguments, or raise ``TypingError``.
        unify_rules: called with two types to unify; they return the common type, or ``None``.
    """

    call_rules: ClassVar[list[Callable[[Any, Any, Any], Any]]] = []
    unify_rules: ClassVar[list[Callable[[Any, Any], Any]]] = []

    def __init__(self) -> None:
        super().__init__()
        # Numba's rules cannot convert uint16 to float32, and therefore unify both to float64.
        self.tm = TypeManager()
        _init_casting_rules(self.tm).safe_unsafe(types.uint16, types.float32)

    def load_additional_registries(self) -> None:
        """Install functions for complex numbers and enumerations from Numba, and dparray's."""
        for module in (cmathdecl, enumdecl):
            self.install_registry(module.registry)
        self.install_registry(typing_registry)

    def resolve_value_type(self, val: Any) -> Any:
        """Return the type of a value to which a function refers.

        Raises:
            TypingError: it is a host array.
        """
        # Numba first tests whether a class is one of its lists, whose import takes 50 ms.
        if isinstance(val, type) and val.__module__ == "builtins":
            known = self._get_global_type(val)
            if known is not None:
                return known
        numba_type = super().resolve_value_type(val)
        if isinstance(numba_type, types.Array):
            raise TypingError("a kernel cannot refer to a host array; pass it as an argument")
        return numba_type

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call.

        Raises:
            TypingError: it is a NumPy function of whole arrays.
        """
        if isinstance(func, types.BoundFunction) and isinstance(func.this, types.Array):
            raise TypingError(f"{func} works on whole arrays")
        if isinstance(func, types.Function):
            module = str(getattr(func.typing_key, "__module__", None))
            if module.partition(".")[0] == "numpy" and any(
                isinstance(argument, types.Array) for argument in args
            ):
                raise TypingError(f"{func.typing_key.__name__} works on whole arrays")
        for rule in self.call_rules:
            args = rule(func, args, kws)
        return super().resolve_function_type(func, args, kws)

    def signature_of(self, function: types.Function, args: Any, kws: Any) -> Any:
        """Return the signature of a call of a Python or dparray function.

        Raises:
            TypingError: it does not accept these types.
        """
        find = super(types.Function, function).get_call_type
        if kws or self._is_checked():
            return find(self, args, kws)
        args = tuple(args)
        known = self._signatures.get((function, args))
        if known is None:
            known = find(self, args, kws)
            # The compilation of overloads is recorded where they are typed.
            implementation = None if known is None else function._impl_keys.get(known.args)
            if implementation in _OPERATORS:
                if len(self._signatures) == _MAX_SIGNATURES:
                    self._signatures.clear()
                self._signatures[function, args] = known
        else:
            function._impl_keys[known.args] = function.typing_key
        return known

    @functools.cached_property
    def _signatures(self) -> dict[tuple[Any, Any], Any]:
        """The signatures of operators by operand types.

        To find one, Numba tries everything registered for an operator, which took a tenth of the
        time of a kernel. A later registration creates another type for the operator.
        """
        return {}

    def _is_checked(self) -> bool:
        """Return whether indices are checked, for which Numba has other overloads."""
        flags = ConfigStack.top_or_none()
        if flags is None or not flags.boundscheck:
            return False
        self._signatures.clear()
        return True

    def unify_types(self, *given: Any) -> Any:
        """Return the common type of several types in any order: Numba stores results in a set.

        Literals come last, since a literal with a uint64 stays one, but two literals are an int64.
        """
        return super().unify_types(
            *sorted(given, key=lambda each: (isinstance(each, types.Literal), str(each)))
        )

    def unify_pairs(self, first: Any, second: Any) -> Any:
        """Return the common type of two types; ``None`` if there is none."""
        for rule in self.unify_rules:
            unified = rule(first, second)
            if unified is not None:
                return unified
        return super().unify_pairs(first, second)

    def resolve_getattr(self, typ: Any, attr: str) -> Any:
        """Return the type of an attribute; members of dparray's enumerations are constants."""
        if isinstance(typ, types.IntEnumClass) and typ.instance_class in _ENUMERATIONS:
            member = typ.instance_class.__members__.get(attr)
            if member is not None:
                return types.IntegerLiteral(int(member))
        if attr in ("real", "imag"):
            # The imaginary part of a literal is not that literal, as it is in Numba.
            typ = types.unliteral(typ)
        return super().resolve_getattr(typ, attr)


class _NoCounts(NRTContext):
    def incref(self, builder: Any, typ: Any, value: Any) -> None:
        pass

    def decref(self, builder: Any, typ: Any, value: Any) -> None:
        pass


class CallConv(MinimalCallConv):
    """The calling convention of functions in device code."""

    def call_function(
        self,
        builder: Any,
        callee: Any,
        resty: Any,
        argtys: Any,
        args: Any,
        attrs: Any = None,
        env: Any = None,
    ) -> Any:
        """Call a function compiled by Numba."""
        return super().call_function(builder, callee, resty, argtys, args)


class TargetContext(BaseContext):
    """The lowering of typed code to LLVM IR."""

    # Numba's own loop raises for the minimum exponent.
    implement_powi_as_math_call = True
    allow_dynamic_globals = True
    # Without it Numba rejects views as results of functions; see :attr:`nrt`.
    enable_nrt = True

    def __init__(self, typingctx: Any, target: str = TARGET) -> None:
        super().__init__(typingctx, target)

    def init(self) -> None:
        """Initialize; called by Numba's constructor."""
        self._codegen = _Codegen(TARGET)
        self.data_model_manager = data_models()

    def load_additional_registries(self) -> None:
        """Install Numba's functions for complex numbers, and dparray's."""
        # These imports register the lowering of Python's own operations.
        from numba.core import optional  # noqa: F401
        from numba.cpython import (  # noqa: F401
            builtins,
            cmathimpl,
            enumimpl,
            hashing,
            iterators,
            numbers,
            rangeobj,
            slicing,
            tupleobj,
        )
        from numba.misc import literal  # noqa: F401
        from numba.np import arrayobj  # noqa: F401

        self.install_registry(cmathimpl.registry)
        self.install_registry(registry)

    def create_module(self, name: str) -> Any:
        """Return an empty module."""
        return self._codegen._create_empty_module(name)

    def codegen(self) -> Any:
        """Return the code generator, which creates libraries of functions."""
        return self._codegen

    @property
    def target_data(self) -> Any:
        """The layout that defines the sizes of types."""
        return self._codegen._target_data

    @functools.cached_property
    def nrt(self) -> Any:
        """The reference counting: there is none, since there is no memory to allocate."""
        return _NoCounts(self, False)

    @functools.cached_property
    def call_conv(self) -> CallConv:
        """The calling convention."""
        return CallConv(self)

    def mangler(
        self, name: str, argtypes: Any, *, abi_tags: Any = (), uid: int | None = None
    ) -> str:
        """Return the mangled name of a function for argument types."""
        return itanium_mangler.mangle(name, argtypes, abi_tags=abi_tags, uid=uid)

    def declare_function(self, module: Any, fndesc: Any) -> Any:
        """Declare the function of a descriptor: inlined into its kernel, as devices have no stack.

        It is *convergent*, as Clang marks every function of device code: code with a barrier must
        not be moved or duplicated before it is inlined. LLVM removes the mark where possible.
        """
        function = super().declare_function(module, fndesc)
        function.attributes.add("alwaysinline")
        function.attributes.add("convergent")
        return function

    def get_executable(self, *arguments: Any) -> None:
        """Return nothing: the host does not run device code."""

    def insert_const_string(self, mod: Any, string: str) -> Any:
        """Return the names of exceptions, which no work-item raises."""
        return ir.Constant(_INT8.as_pointer(), None)

    def _compile_subroutine_no_cache(
        self, builder: Any, impl: Any, sig: Any, locals: Any = None, flags: Any = None
    ) -> Any:
        # The parts of a builtin operation are compiled with separate flags, and Numba's default is
        # to raise for a floating-point division by zero.
        if flags is None:
            flags = Flags()
            flags.error_model = "numpy"
        return super()._compile_subroutine_no_cache(builder, impl, sig, locals or {}, flags)


# --- dispatchers ----------------------------------------------------------------------------------


def set_flags(flags: Any) -> None:
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.enable_pyobject = False
    flags.enable_looplift = False
    flags.nrt = False
    # The other model raises for a division by zero, which would silently end the work-item.
    flags.error_model = "numpy"


_UNDERSTOOD: Any = include_default_options(
    *("boundscheck", "error_model", "fastmath", "forceinline", "inline"),
    *("no_cfunc_wrapper", "no_cpython_wrapper", "nopython"),
)


class _Options(_UNDERSTOOD, TargetOptions):
    def finalize(self, flags: Any, options: Any) -> None:
        set_flags(flags)


class _Descriptor(TargetDescriptor):
    options = _Options

    @functools.cached_property
    def typing_context(self) -> TypingContext:
        return TypingContext()

    @functools.cached_property
    def target_context(self) -> TargetContext:
        return TargetContext(self.typing_context)


descriptor = _Descriptor(TARGET)


class DeviceDispatcher(Dispatcher):
    """A function of device code, compiled for each combination of argument types."""

    targetdescr = descriptor

    def __init__(
        self, function: Callable[..., Any], pipeline: Any = Pipeline, **options: Any
    ) -> None:
        super().__init__(function, targetoptions=options, pipeline_class=pipeline)

    def compile(self, sig: Any) -> Any:
        """Compile for a signature."""
        with target_override(TARGET):
            return super().compile(sig)

    def add_overload(self, cres: Any) -> None:
        """Record a compilation for its argument types."""
        self.overloads[tuple(cres.signature.args)] = cres


def _decorate(*arguments: Any, **options: Any) -> Any:
    """Return the compiler that Numba uses for overload functions."""
    if arguments and callable(arguments[0]):
        return DeviceDispatcher(arguments[0])
    return DeviceDispatcher


dispatcher_registry[_Device] = DeviceDispatcher
jit_registry[_Device] = _decorate


def prepare(install: Callable[[Any], None]) -> None:
    """Install all registrations, and those that ``install`` adds to the target context.

    If they were refreshed outside of the target, overloads would permanently register for another.
    """
    with target_override(TARGET):
        descriptor.typing_context.refresh()
        descriptor.target_context.refresh()
        install(descriptor.target_context)


def refresh() -> None:
    """Install registrations that were added since the last call."""
    with target_override(TARGET):
        descriptor.typing_context.refresh()
        descriptor.target_context.refresh()


# --- kernels --------------------------------------------------------------------------------------


def compile_with(
    pipeline_class: Any, function: Callable[..., Any], argument_types: Sequence[Any], flags: Any
) -> Any:
    """Return the result of Numba's pipeline for a function that the host calls."""
    with target_override(TARGET):
        return compiler.compile_extra(
            descriptor.typing_context,
            descriptor.target_context,
            prepared_for_numba(function),
            tuple(argument_types),
            None,
            flags,
            {},
            pipeline_class=pipeline_class,
        )


@global_compiler_lock
def lower_kernel(
    function: Callable[..., Any], argument_types: Sequence[Any], *, debug: bool = False
) -> tuple[str, str, Advice]:
    """Return a kernel's entry point, its optimized module as LLVM IR, and warnings.

    Args:
        function: the kernel; the item is its first parameter, if it has one.
        argument_types: Numba's types.
        debug: whether indices are checked; a work-item ends at the first one out of bounds.

    Raises:
        numba.core.errors.NumbaError: it does not compile.
    """
    flags = Flags()
    set_flags(flags)
    flags.boundscheck = debug
    compiled = compile_with(KernelPipeline, function, argument_types, flags)
    result = compiled.signature.return_type
    if result not in (types.none, types.void):
        raise TypingError(f"a kernel must not return a value; this one returns {result}")
    library = compiled.library
    if not library._finalized:
        library.finalize()
    name = abi.entry_name(function.__name__)
    module = library._final_module
    entry = _entry(compiled.fndesc, compiled.signature.args, name, compiled.metadata["offsets"])
    module.link_in(llvm.parse_assembly(entry))
    is_ungrouped = any(isinstance(each, ItemType) for each in argument_types)
    if is_ungrouped and any(LOCAL_ARRAY in each.name for each in module.global_variables):
        raise TypingError(
            "LocalArray: work-items of a Range do not share local memory; use an NdRange"
        )
    return name, linkage.finished(module, name), compiled.metadata["advice"]


def _entry(fndesc: Any, argument_types: Sequence[Any], name: str, offsets: Sequence[int]) -> str:
    """Return a module with the entry point, which builds arrays of its parameters and calls.

    There are two calls if ``offsets`` are positions of arguments: LLVM leaves out the checks for
    negative indices in the one that is executed if none of these arguments is negative.

    The parameters of an array are the number of its elements, their size, the pointer, the shape
    and the strides.
    """
    context = descriptor.target_context
    module = context.create_module("entry")
    callee_type = context.call_conv.get_function_type(fndesc.restype, fndesc.argtypes)
    callee = ir.Function(module, callee_type, fndesc.llvm_func_name)
    parameters: list[Any] = []
    for numba_type in argument_types:
        parameters.extend(_parameters(context, numba_type))
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), parameters), name)
    entry.calling_convention = "spir_kernel"
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    given = iter(entry.args)
    if argument_types and isinstance(argument_types[0], ItemType):
        _leave_out(builder, entry.args[: argument_types[0].ndim])
    values = [_argument(context, builder, numba_type, given) for numba_type in argument_types]
    call = functools.partial(
        context.call_conv.call_function, builder, callee, fndesc.restype, argument_types, values
    )
    if offsets:
        are_up = (builder.icmp_signed(">=", values[at], values[at].type(0)) for at in offsets)
        with builder.if_then(functools.reduce(builder.and_, are_up)):
            call()
            builder.ret_void()
    call()
    builder.ret_void()
    return str(module)


_SPACES = (NdItemType, GroupType)
_NEITHER_KNOWN = 2  # the first members of an array, which do not exist on a device


def _leave_out(builder: Any, extents: Sequence[Any]) -> None:
    """End the work-items beyond the requested range."""
    for dimension, extent in enumerate(extents):
        builder.assume(builder.icmp_signed(">", extent, ir.IntType(64)(0)))
        number = instructions.index(builder, abi.GLOBAL_ID, dimension)
        with builder.if_then(builder.icmp_signed(">=", number, extent)):
            builder.ret_void()


def _parameters(context: Any, numba_type: Any) -> list[Any]:
    if isinstance(numba_type, _SPACES):
        return []
    flat = list(context.get_arg_packer([numba_type]).argument_types)
    return flat[_NEITHER_KNOWN:] if isinstance(numba_type, DeviceArray) else flat


def _argument(context: Any, builder: Any, numba_type: Any, given: Any) -> Any:
    if isinstance(numba_type, _SPACES):
        return context.get_constant_null(numba_type)
    packer = context.get_arg_packer([numba_type])
    kinds = list(packer.argument_types)
    values = []
    if isinstance(numba_type, DeviceArray):
        values = [ir.Constant(kind, None) for kind in kinds[:_NEITHER_KNOWN]]
    values += [next(given) for _ in kinds[len(values) :]]
    if isinstance(numba_type, DeviceArray):
        zero = ir.IntType(64)(0)
        for extent in values[5 : 5 + numba_type.ndim]:
            builder.assume(builder.icmp_signed(">=", extent, zero))
    (value,) = packer.from_arguments(builder, values)
    return value
