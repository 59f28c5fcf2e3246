"""Compiling: a Python function, type keys and options become a :class:`Kernel`.

Numba is imported by the first real compilation, not by this module.

Type keys are those of ``_launcher``; the item parameter has ``"item:N"`` or ``"nditem:N"``.
The key of a kernel never holds a queue, so all queues share it.
"""

from __future__ import annotations

import inspect
import json
import re
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import dpctl
import numpy as np
from dpctl.program import SyclProgramCompilationError

from dparray import _hooks
from dparray._compiler import cache, emission, interrupts
from dparray._compiler.diagnosis import MAY_RAISE, describe_failure, refusal
from dparray._compiler.key import Reference, UnkeyedError, describe, kernel_key, with_references
from dparray._compiler.program import obtain_program
from dparray._runtime.device_facts import place_of
from dparray.exceptions import (
    KernelArgumentError,
    KernelCompileError,
    KernelError,
    UnsupportedDeviceError,
)

# Queues that a kernel finds its built form by at once.
_MOST_QUEUES = 64


class Kernel:
    """A compiled kernel: SPIR-V, its entry point, and what devices built of it.

    State: one built ``SyclKernel`` for each context and device, made when it is first launched
    there. Building twice by two threads at once is harmless.

    Attributes:
        name: the Python function's name.
        entry: the entry point in the SPIR-V module.
        spirv: the module.
        types: type keys, the item first.
        seconds: what compiling took, in this process or the one that left it on disk.
        origin: ``"compiled"`` or ``"disk"``.
    """

    __slots__ = (
        "_built",
        "_by_queue",
        "_llvm",
        "build_options",
        "entry",
        "name",
        "origin",
        "seconds",
        "spirv",
        "types",
    )

    def __init__(
        self,
        name: str,
        entry: str,
        spirv: bytes,
        types: tuple[str, ...],
        *,
        llvm: bytes,
        seconds: float = 0.0,
        origin: str = "compiled",
        build_options: str = "",
    ) -> None:
        self.name = name
        self.entry = entry
        self.spirv = spirv
        self.types = types
        self.seconds = seconds
        self.origin = origin
        self.build_options = build_options
        self._llvm = llvm
        self._built: dict[tuple[Any, Any], Any] = {}
        self._by_queue: dict[dpctl.SyclQueue, Any] = {}

    @property
    def llvm(self) -> str:
        """The LLVM module as text."""
        return zlib.decompress(self._llvm).decode()

    def sycl_kernel(self, queue: dpctl.SyclQueue) -> Any:
        """The ``dpctl.program.SyclKernel`` for the context and device of ``queue``.

        Raises:
            UnsupportedDeviceError: the kernel computes in float64 and the device does not.
            KernelCompileError: the driver refuses the module.
        """
        built = self._by_queue.get(queue)
        if built is None:
            place = place_of(queue)
            built = self._built.get(place)
            if built is None:
                built = self._built[place] = self._build(queue)
            if len(self._by_queue) >= _MOST_QUEUES:
                self._by_queue.clear()
            self._by_queue[queue] = built
        return built

    def check_device(self, device: dpctl.SyclDevice) -> None:
        """Raise ``UnsupportedDeviceError`` if it computes in float64 and a device does not."""
        if needs_float64(self.spirv) and not has_float64(device):
            raise UnsupportedDeviceError(
                f"kernel {self.name}: it computes in float64, which {device.name} does not have. "
                "Use float32 arrays, and write constants as np.float32(0.5): a plain Python float "
                "is float64"
            )
        if declares(self.spirv, _INT64_ATOMICS) and not has_atomic64(device):
            raise UnsupportedDeviceError(
                f"kernel {self.name}: it has atomic operations on 64-bit elements, for which "
                f"{device.name} lacks the aspect atomic64. Use int32, uint32 or float32 arrays "
                "where AtomicRef points, or another device"
            )

    def _build(self, queue: dpctl.SyclQueue) -> Any:
        self.check_device(queue.sycl_device)
        try:
            start = time.perf_counter()
            program = obtain_program(queue, self.spirv, self.build_options)
            built = program.get_sycl_kernel(self.entry)
            if _hooks.subscribers:
                _hooks.emit("build", kernel=self, queue=queue, start=start)
            return built
        except SyclProgramCompilationError as error:
            raise KernelCompileError(
                f"kernel {self.name}: the driver of {queue.sycl_device.name} does not accept the "
                f"compiled module: {error}",
                details=str(error),
            ) from error

    def to_bytes(self) -> bytes:
        """What the disk cache keeps of it."""
        head = {
            "entry": self.entry,
            "name": self.name,
            "types": self.types,
            "seconds": float(self.seconds),
            "build_options": self.build_options,
            "spirv": len(self.spirv),
        }
        return json.dumps(head).encode() + b"\n" + self.spirv + self._llvm

    @classmethod
    def from_bytes(cls, text: bytes) -> Kernel:
        """The kernel that :meth:`to_bytes` wrote.

        Raises:
            ValueError, TypeError, KeyError, RecursionError: these are other bytes.
        """
        line, _, rest = text.partition(b"\n")
        head = json.loads(line)
        size, types = head["spirv"], head["types"]
        texts = (head["name"], head["entry"], head["build_options"], *types)
        is_module = type(size) is int and 0 < size <= len(rest) and size % 4 == 0
        if (
            not is_module
            or type(types) is not list
            or not all(type(each) is str for each in texts)
            or type(head["seconds"]) is not float
            or not rest.startswith(_ZLIB_HEADER, size)
            or head["entry"] not in _entry_points(rest[:size])
        ):
            raise ValueError("this is no kernel")
        return cls(
            head["name"],
            head["entry"],
            rest[:size],
            tuple(types),
            llvm=rest[size:],
            seconds=head["seconds"],
            origin="disk",
            build_options=head["build_options"],
        )


_ZLIB_HEADER = b"x"
_SPIRV_MAGIC = 0x07230203
_SPIRV_HEADER_WORDS = 5
_OP_ENTRY_POINT = 15
_OP_CAPABILITY = 17
_OP_FUNCTION = 54
_FLOAT64 = 10
_INT64_ATOMICS = 12


def _entry_points(spirv: bytes) -> set[str]:
    """The names of the kernels in a SPIR-V module.

    Raises:
        ValueError: it is no module.
    """
    words = memoryview(spirv).cast("I")
    if len(words) < _SPIRV_HEADER_WORDS or words[0] != _SPIRV_MAGIC:
        raise ValueError("this is no SPIR-V module")
    names = set()
    at = _SPIRV_HEADER_WORDS
    while at < len(words) and (words[at] & 0xFFFF) != _OP_FUNCTION:
        count = words[at] >> 16
        if not count or at + count > len(words):
            raise ValueError("this is no SPIR-V module")
        if words[at] & 0xFFFF == _OP_ENTRY_POINT:
            literal = spirv[4 * (at + 3) : 4 * (at + count)]
            names.add(literal.partition(b"\0")[0].decode())
        at += count
    return names


def needs_float64(spirv: bytes) -> bool:
    """Whether a SPIR-V module declares the capability Float64."""
    return declares(spirv, _FLOAT64)


def declares(spirv: bytes, capability: int) -> bool:
    """Whether a SPIR-V module declares a capability."""
    words = memoryview(spirv).cast("I")
    at = _SPIRV_HEADER_WORDS
    while at < len(words) and words[at] & 0xFFFF == _OP_CAPABILITY:
        if words[at + 1] == capability:
            return True
        at += words[at] >> 16
    return False


def has_float64(device: dpctl.SyclDevice) -> bool:
    """Whether a device computes in float64."""
    return bool(device.has_aspect_fp64)


def has_atomic64(device: dpctl.SyclDevice) -> bool:
    """Whether a device has atomic operations on 64-bit elements."""
    return bool(device.has_aspect_atomic64)


# --- Numba types ----------------------------------------------------------------------------------


class _Backend:
    """Numba and our target, loaded and ready to compile; made once by the first compilation."""

    def __init__(self) -> None:
        emission.start()  # it loads LLVM while Numba is imported here
        from numba.core import errors, types
        from numba.extending import typeof_impl
        from numba.np import numpy_support

        from dparray._compiler import target
        from dparray._compiler.device_code.groups import install
        from dparray._compiler.types import LOCAL, DeviceArray, ItemType, NdItemType

        self.target = target
        self.types = types
        self.error = _error_class()
        self.typing_error = errors.TypingError
        self.from_dtype = numpy_support.from_dtype
        self.as_dtype = numpy_support.as_dtype
        self.array_type = DeviceArray
        self.local_space = LOCAL
        self.item_types = {"item": ItemType, "nditem": NdItemType}
        target.prepare(install)
        # A device function of ours stands for its dispatcher wherever a kernel names it.
        typeof_impl.register(DeviceFunction)(
            lambda value, context: types.Dispatcher(value.dispatcher)
        )

    def numba_type(self, key: str) -> Any:
        """The Numba type of a type key."""
        kind, _, rest = key.partition(":")
        if kind in self.item_types:
            return self.item_types[kind](int(rest))
        if not rest:
            return self.types.boolean if kind == "b1" else self.from_dtype(_dtype(kind))
        if kind.startswith("local "):
            dtype = self.from_dtype(_dtype(kind.removeprefix("local ")))
            return self.array_type(dtype, int(rest), "C", self.local_space)
        return self.array_type(self.from_dtype(_dtype(kind)), int(rest[:-1]), rest[-1])

    def key_of_type(self, numba_type: Any) -> str:
        """The type key of a Numba type."""
        for kind, cls in self.item_types.items():
            if isinstance(numba_type, cls):
                return f"{kind}:{numba_type.ndim}"
        try:
            dtype = self.as_dtype(getattr(numba_type, "dtype", numba_type))
            kind = f"{dtype.kind}{dtype.itemsize}"
        except NotImplementedError:
            raise KernelArgumentError(f"kernel: a kernel cannot take a {numba_type}") from None
        if isinstance(numba_type, self.array_type):
            if numba_type.addrspace == self.local_space:
                return f"local {kind}:{numba_type.ndim}"
            return f"{kind}:{numba_type.ndim}{numba_type.layout}"
        if isinstance(numba_type, self.types.Array):
            raise KernelArgumentError(
                f"kernel: {numba_type} is an array of the host; a signature takes "
                "numba_dpex.USMNdArray(ndim, layout, dtype)"
            )
        return kind

    def compile(
        self, function: Callable[..., Any], types: Sequence[str], *, debug: bool
    ) -> tuple[str, str]:
        """The entry point and the module in LLVM's text."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Numba's, about its own internals
            given = [self.numba_type(key) for key in types]
            lowered: tuple[str, str] = self.target.lower_kernel(function, given, debug=debug)
            return lowered


def _error_class() -> Any:
    """Our compile error that handlers written for numba-dpex catch too."""
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


def _dtype(kind: str) -> Any:
    return np.dtype(kind)


def keys_of_signatures(signatures: Any) -> list[tuple[str, ...]]:
    """Type keys, the item first, of one signature in Numba's types or of a list of them.

    Raises:
        KernelArgumentError: a type that kernels do not take, or a signature with a return type.
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


_backend: _Backend | None = None
_lock = threading.RLock()


def backend() -> _Backend:
    """The loaded compiler; the first call imports Numba."""
    global _backend
    with _lock:
        if _backend is None:
            _backend = _Backend()
        return _backend


# --- compiling ------------------------------------------------------------------------------------

# Kernels by key, oldest first. Whoever uses a kernel holds it, too, so dropping one here only
# costs a later look at the disk.
_kernels: dict[str, Kernel] = {}
_MOST_KERNELS = 2048


def obtain_kernel(
    function: Callable[..., Any],
    types: Sequence[str],
    options: Mapping[str, Any],
    labels: Sequence[str] = (),
) -> Kernel:
    """The kernel of ``function`` for these types: from memory, from disk, or compiled now.

    Args:
        function: a Python function in the kernel language.
        types: type keys, the item first.
        options: ``debug``, ``inline_threshold``, ``fp_contract``.
        labels: the parameters with their types, for error messages.

    Raises:
        KernelCompileError: it does not compile.
    """
    key = kernel_key(function, types, options)
    if key is None:
        return compile_kernel(function, types, options, labels)
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = _load(key) or _compile_and_save(key, function, types, options, labels)
        _remember(key, kernel)
    return kernel


def _remember(key: str, kernel: Kernel) -> None:
    with _lock:
        while len(_kernels) >= _MOST_KERNELS:
            del _kernels[next(iter(_kernels))]
        _kernels[key] = kernel


def recall_kernel(
    function: Callable[..., Any], types: Sequence[str], options: Mapping[str, Any]
) -> Kernel | None:
    """The kernel if memory or disk hold it; nothing is compiled."""
    key = kernel_key(function, types, options)
    if key is None:
        return None
    kernel = _kernels.get(key) or _load(key)
    if kernel is not None:
        _remember(key, kernel)
    return kernel


def forget() -> None:
    """Drop the kernels held in memory, as a new process would; those on disk stay."""
    _kernels.clear()


def _load(key: str) -> Kernel | None:
    started = time.perf_counter()
    text = cache.load(key)
    if text is None:
        return None
    try:
        kernel = Kernel.from_bytes(text)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if _hooks.subscribers:
        seconds = time.perf_counter() - started
        _hooks.emit("compile", kernel=kernel, seconds=seconds, origin="disk")
    return kernel


def _compile_and_save(
    key: str,
    function: Callable[..., Any],
    types: Sequence[str],
    options: Mapping[str, Any],
    labels: Sequence[str],
) -> Kernel:
    kernel = compile_kernel(function, types, options, labels)
    cache.save(key, kernel.to_bytes())
    return kernel


def compile_kernel(
    function: Callable[..., Any],
    types: Sequence[str],
    options: Mapping[str, Any],
    labels: Sequence[str] = (),
) -> Kernel:
    """Compile ``function``, whatever the caches hold.

    An interrupt comes after it: Numba, stopped in the middle, leaves things half made.
    """
    with interrupts.deferred(), _lock:
        compiler = backend()
        started = time.perf_counter()
        reason = refusal(function)
        entry, llvm, spirv = "", "", b""
        if reason is None:
            try:
                entry, llvm = compiler.compile(function, types, debug=bool(options.get("debug")))
                reason = _missing_function(llvm)
                if reason is None:
                    spirv = emission.emit(llvm)
            except KernelError:
                raise
            except OSError as error:
                raise KernelError(
                    f"kernel {function.__name__}: the system refused what the compiler needs "
                    f"({error})"
                ) from error
            except Exception as error:
                reason = str(error)
        if reason is not None:
            # Numba's frames say nothing to the author of the kernel; its text is in .details.
            message = describe_failure(function, labels or types, reason)
            raise compiler.error(message, details=reason)
        if options.get("fp_contract"):
            spirv = emission.contracted(spirv)
        seconds = time.perf_counter() - started
        kernel = Kernel(
            function.__name__,
            entry,
            spirv,
            tuple(types),
            llvm=zlib.compress(llvm.encode(), 1),
            seconds=seconds,
            # A debugger finds what the driver has not optimised away.
            build_options="-cl-opt-disable -g" if options.get("debug") else "",
        )
    _hooks.emit("compile", kernel=kernel, seconds=seconds, origin="compiled")
    return kernel


# Functions of Numba's own libraries on the host, which its code for the host calls.
_HOST_FUNCTION = re.compile(r'^declare [^@\n]*@"?((?:numba|NRT|Py)_\w+)', re.MULTILINE)
_MAY_RAISE = re.compile(rf'^declare [^@\n]*@"{MAY_RAISE}([^"]+)"', re.MULTILINE)


def _missing_function(llvm: str) -> str | None:
    """Why a driver will not accept the module, if it calls what only hosts have."""
    found = _MAY_RAISE.search(llvm)
    if found:
        return found[1]
    found = _HOST_FUNCTION.search(llvm)
    return f"it calls {found[1]}, which devices do not have" if found else None


def spirv_text(kernel: Kernel) -> str:
    """A kernel's SPIR-V, readable."""
    text = emission.assembly(kernel.llvm)
    return emission.contracted_text(text) if emission.is_contracted(kernel.spirv) else text


def _without_annotations(signature: inspect.Signature) -> inspect.Signature:
    none = inspect.Parameter.empty
    parameters = [each.replace(annotation=none) for each in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=none)


def without_keyword_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose parameters all have positions, which are the only ones that Numba knows.

    Those that had none follow the others; what has no default among them gets one that no call
    comes to use.
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


class DeviceFunction:
    """A Python function that kernels and other device functions may call.

    It is compiled into each kernel that calls it. Calling it on the host runs the Python
    function.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.py_func = function
        self.options = dict(options)
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self._dispatchers: dict[str, Any] = {}

    @property
    def dispatcher(self) -> Any:
        """The dispatcher for the values that the function refers to now.

        A dispatcher freezes those values when it first compiles, so other values need another.
        """
        try:
            key = repr(describe(self.py_func))
        except UnkeyedError:
            return self._make_dispatcher()
        if key not in self._dispatchers:
            self._dispatchers[key] = self._make_dispatcher()
        return self._dispatchers[key]

    def _make_dispatcher(self) -> Any:
        """A dispatcher that takes the arguments of a call as Python does."""
        dispatcher = backend().target.DeviceDispatcher(without_keyword_only(self.py_func))
        get_template = dispatcher.get_call_template
        signature = _without_annotations(inspect.signature(self.py_func))

        def get_checked_template(arguments: Any, keywords: Any) -> Any:
            for parameter in signature.parameters.values():
                if parameter.kind is parameter.VAR_KEYWORD:
                    raise backend().typing_error(
                        f"{self.__name__} takes {parameter}, and device code has no dict: name "
                        "the parameters"
                    )
            try:
                signature.bind(*arguments, **dict(keywords))
            except TypeError as error:
                raise backend().typing_error(f"{self.__name__}{signature}: {error}") from None
            return get_template(arguments, keywords)

        dispatcher.get_call_template = get_checked_template
        return dispatcher

    def frozen(self) -> tuple[DeviceFunction, tuple[Reference, ...]]:
        """The function with the values that it and those it calls refer to now, and these values.

        What is assigned to a global or captured name later does not reach the copy.
        """
        found: list[Reference] = []
        copy = self._frozen(found, {})
        return copy, tuple(found)

    def _frozen(
        self, found: list[Reference], made: dict[DeviceFunction, DeviceFunction]
    ) -> DeviceFunction:
        if self not in made:
            copy = made[self] = DeviceFunction(self.py_func, self.options)
            assert isinstance(self.py_func, FunctionType)
            copy.py_func = with_references(
                self.py_func,
                found,
                lambda value: (
                    value._frozen(found, made) if isinstance(value, DeviceFunction) else value
                ),
            )
        return made[self]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.__qualname__  # as functions are pickled: by name

    def __repr__(self) -> str:
        return f"<dparray device function {self.__qualname__}>"
