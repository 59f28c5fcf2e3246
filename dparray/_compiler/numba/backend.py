"""Numba with dparray's target: types of type keys, dispatchers of device functions, LLVM IR.

The first compilation imports Numba, not this module.
"""

from __future__ import annotations

import functools
import gc
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from dparray import _type_keys
from dparray._compiler.key import UnkeyedError, describe
from dparray._compiler.numba.constants import prepared_for_numba
from dparray._language.advice import Advice
from dparray._language.device_function import DeviceFunction
from dparray._language.inference import Inferred
from dparray._type_keys import TypeKey, value_of
from dparray.exceptions import KernelArgumentError, KernelCompileError


class Backend:
    """Numba and dparray's target, ready to compile; created once, by the first compilation."""

    def __init__(self) -> None:
        from numba.core import errors, types
        from numba.extending import typeof_impl
        from numba.np import numpy_support

        from dparray._compiler.numba import target
        from dparray._compiler.numba.device_code.functions import install
        from dparray._compiler.numba.device_code.special import register_new
        from dparray._compiler.numba.types import (
            LOCAL,
            ConstantType,
            DeviceArray,
            ItemType,
            NdItemType,
        )

        self.target = target
        self.register_new = register_new
        self.types = types
        self.typing_error = errors.TypingError
        self.from_dtype = numpy_support.from_dtype
        self.as_dtype = numpy_support.as_dtype
        self.array_type = DeviceArray
        self.constant_type = ConstantType
        self.local_space = LOCAL
        self.item_types: dict[str, Any] = {"item": ItemType, "nditem": NdItemType}
        #: While a kernel is typed for the simulator: a function that returns the dispatcher of a
        #: device function.
        self.dispatcher_for_typing: Callable[[DeviceFunction], Any] | None = None
        target.prepare(install)
        # A device function represents its dispatcher wherever a kernel names it.
        typeof_impl.register(DeviceFunction)(
            lambda value, context: types.Dispatcher(dispatcher_of(value))
        )

    def numba_type(self, key: str) -> Any:
        """Return the Numba type of a type key."""
        parsed = _type_keys.parse(key)
        if parsed.is_item:
            made = self.item_types[parsed.kind]
            return made(parsed.ndim, in_pieces=True) if parsed.order else made(parsed.ndim)
        if parsed.kind == "constant":
            return self.constant_type(value_of(parsed.dtype))
        if parsed.kind == "scalar" and parsed.dtype == "b1":
            return self.types.boolean
        dtype = self.from_dtype(parsed.numpy_dtype)
        if parsed.kind == "scalar":
            return dtype
        if parsed.kind == "local":
            return self.array_type(dtype, parsed.ndim, "C", self.local_space)
        if parsed.order == "R":
            return self.array_type(dtype, parsed.ndim, "A", readonly=True)
        return self.array_type(dtype, parsed.ndim, parsed.order)

    def key_of_type(self, numba_type: Any) -> str:
        """Return the type key of a Numba type."""
        for kind, cls in self.item_types.items():
            if isinstance(numba_type, cls):
                return str(TypeKey(kind, "", numba_type.ndim))
        try:
            dtype = self.as_dtype(getattr(numba_type, "dtype", numba_type))
            code = _type_keys.code_of(dtype)
        except NotImplementedError:
            raise KernelArgumentError(f"kernel: a kernel cannot take a {numba_type}") from None
        if isinstance(numba_type, self.array_type):
            if numba_type.addrspace == self.local_space:
                return str(TypeKey("local", code, numba_type.ndim))
            order = numba_type.layout if numba_type.mutable else "R"
            return str(TypeKey("array", code, numba_type.ndim, order))
        if isinstance(numba_type, self.types.Array):
            raise KernelArgumentError(
                f"kernel: {numba_type} is an array of the host; a signature takes "
                "numba_dpex.USMNdArray(ndim, layout, dtype)"
            )
        return code

    def compile(
        self, function: Callable[..., Any], types: Sequence[str], *, debug: bool
    ) -> tuple[str, str, Advice]:
        """Return the entry point, the LLVM IR of the module, and the warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Numba's warnings about its own internals
            if self.register_new():  # Parts of the namespace are loaded on first use.
                self.target.refresh()
            given = [self.numba_type(key) for key in types]
            lower = self.target.lower_kernel
            lowered: tuple[str, str, Advice] = lower(function, given, debug=debug)
            return lowered

    def infer(
        self,
        function: FunctionType,
        types: Sequence[str],
        instrument: Callable[[FunctionType], FunctionType],
    ) -> dict[FunctionType, list[Inferred]]:
        """Return the types of a kernel and of the device functions that it calls.

        Args:
            function: the kernel.
            types: the type keys of its parameters, the item first.
            instrument: returns the copy of a function that is typed instead of it.

        Raises:
            numba.core.errors.NumbaError, KernelError: the kernel does not compile.
        """
        from dparray._compiler.numba import target_inference

        records: dict[FunctionType, list[Inferred]] = {}
        dispatchers: dict[FunctionType, Any] = {}

        def dispatcher(device_function: DeviceFunction) -> Any:
            original = device_function.py_func
            assert isinstance(original, FunctionType)
            if original not in dispatchers:
                found = records.setdefault(original, [])
                copy = target_inference.recording(instrument(original), found)
                dispatchers[original] = _make_dispatcher(
                    DeviceFunction(copy, device_function.options), target_inference.Recording
                )
            return dispatchers[original]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.register_new()
            self.target.refresh()
            given = [self.numba_type(key) for key in types]
            copy = target_inference.recording(
                instrument(function), records.setdefault(function, [])
            )
            self.dispatcher_for_typing = dispatcher
            try:
                target_inference.infer_kernel(copy, given)
            finally:
                self.dispatcher_for_typing = None
        return records


def compile_error(message: str, *, details: str) -> KernelCompileError:
    """Return the error of a kernel that does not compile.

    Handlers written for numba-dpex catch it, too: if Numba is loaded, it is one of Numba's errors.
    """
    kind = _error_class() if "numba.core.errors" in sys.modules else KernelCompileError
    return kind(message, details=details)


@functools.lru_cache(maxsize=1)
def _error_class() -> type[KernelCompileError]:
    """Return a class of compile errors that are Numba errors, too."""
    from numba.core.errors import TypingError

    class CompileError(KernelCompileError, TypingError):
        def __init__(self, message: str, *, details: str = "") -> None:
            TypingError.__init__(self, message)
            self.args = (message,)
            self.details = details

        def __str__(self) -> str:
            return str(self.args[0])

    CompileError.__name__ = CompileError.__qualname__ = "KernelCompileError"
    CompileError.__module__ = KernelCompileError.__module__
    return CompileError


def keys_of_signatures(signatures: Any) -> list[tuple[str, ...]]:
    """Return the type keys, item first, of a signature in Numba's types or of a list of them.

    Raises:
        KernelArgumentError: a type that kernels do not support, or a signature with a return type.
    """
    given = signatures if isinstance(signatures, list) else [signatures]
    return [_keys_of_signature(signature) for signature in given]


def _keys_of_signature(signature: Any) -> tuple[str, ...]:
    compiler = backend()
    from numba.core.sigutils import normalize_signature

    try:
        arguments, result = normalize_signature(signature)
    except Exception as error:
        raise KernelArgumentError(
            f"kernel: {signature!r} is neither a function nor a signature: {error}"
        ) from error
    if result is not None and result != compiler.types.void:
        raise KernelArgumentError(f"kernel: a kernel returns nothing; the signature says {result}")
    return tuple(map(compiler.key_of_type, arguments))


_backend: Backend | None = None
lock = threading.RLock()


def backend() -> Backend:
    """Return the loaded compiler; the first call imports Numba."""
    global _backend
    with lock:
        if _backend is None:
            _backend = Backend()
            # All these objects live as long as the process, so the garbage collector need not scan
            # them while they are young, which took 30 ms. (Objects frozen by the program stay
            # frozen.)
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
        return _backend


def dispatcher_of(function: DeviceFunction) -> Any:
    """Return the dispatcher of a device function for the current values of the names it uses.

    A dispatcher freezes those values at its first compilation, so other values need another one.
    """
    for_typing = backend().dispatcher_for_typing
    if for_typing is not None:
        return for_typing(function)
    try:
        key = repr(describe(function.py_func))
    except UnkeyedError:
        return _make_dispatcher(function)
    if key not in function.dispatchers:
        function.dispatchers[key] = _make_dispatcher(function)
    return function.dispatchers[key]


def _make_dispatcher(function: DeviceFunction, pipeline: Any = None) -> Any:
    """Return a dispatcher that binds the arguments of a call as Python does."""
    dispatcher = backend().target.DeviceDispatcher(
        prepared_for_numba(without_keyword_only(function.py_func)),
        **({} if pipeline is None else {"pipeline": pipeline}),
    )
    get_template = dispatcher.get_call_template
    signature = _without_annotations(inspect.signature(function.py_func))

    def get_checked_template(arguments: Any, keywords: Any) -> Any:
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                raise backend().typing_error(
                    f"{function.__name__} takes {parameter}, and device code has no dict: name "
                    "the parameters"
                )
        try:
            signature.bind(*arguments, **dict(keywords))
        except TypeError as error:
            raise backend().typing_error(f"{function.__name__}{signature}: {error}") from None
        return get_template(arguments, keywords)

    dispatcher.get_call_template = get_checked_template
    return dispatcher


def _without_annotations(signature: inspect.Signature) -> inspect.Signature:
    none = inspect.Parameter.empty
    parameters = [each.replace(annotation=none) for each in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=none)


def without_keyword_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with positional parameters only, the only kind that Numba supports.

    Keyword-only parameters follow the others; one without a default gets a default that no call
    uses.
    """
    code = function.__code__
    parameters = inspect.signature(function).parameters.values()
    named = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    if not named or any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return function
    assert isinstance(function, FunctionType)
    count = code.co_argcount + code.co_kwonlyargcount
    copy = FunctionType(
        code.replace(co_argcount=count, co_kwonlyargcount=0),
        function.__globals__,
        function.__name__,
        closure=function.__closure__,
    )
    defaults = [each.default for each in parameters]
    absent = inspect.Parameter.empty
    first = next((at for at, one in enumerate(defaults) if one is not absent), count)
    copy.__defaults__ = tuple(None if one is absent else one for one in defaults[first:])
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy
