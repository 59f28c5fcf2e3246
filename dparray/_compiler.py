"""Compiling: a Python function, type keys and options become a :class:`Kernel`.

This module and ``_runtime`` are the only ones that know numba-dpex's internals. Numba itself is
imported by the first real compilation, not by this module.

Type keys are those of ``_launcher``; the item parameter has ``"item:N"`` or ``"nditem:N"``.
The key of a kernel never holds a queue, so all queues share it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dpctl
from dpctl.program import create_program_from_spirv

from dparray import _hooks
from dparray._launcher import place_of
from dparray._runtime import load_numba_dpex


class Kernel:
    """A compiled kernel: SPIR-V, its entry point, and what devices built of it.

    State: one built ``SyclKernel`` for each context and device, made when it is first launched
    there. Building twice by two threads at once is harmless.

    Attributes:
        name: the Python function's name.
        entry: the entry point in the SPIR-V module.
        spirv: the module.
        types: type keys, the item first.
        seconds: what making the SPIR-V took; 0.0 when it came from disk.
        llvm: the LLVM text, where the kernel was compiled in this process.
    """

    __slots__ = (
        "_built",
        "_by_queue",
        "build_options",
        "entry",
        "llvm",
        "name",
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
        seconds: float = 0.0,
        llvm: str | None = None,
        build_options: str = "",
    ) -> None:
        self.name = name
        self.entry = entry
        self.spirv = spirv
        self.types = types
        self.seconds = seconds
        self.llvm = llvm
        self.build_options = build_options
        self._built: dict[tuple[Any, Any], Any] = {}
        self._by_queue: dict[dpctl.SyclQueue, Any] = {}

    def sycl_kernel(self, queue: dpctl.SyclQueue) -> Any:
        """The ``dpctl.program.SyclKernel`` for the context and device of ``queue``."""
        built = self._by_queue.get(queue)
        if built is None:
            place = place_of(queue)
            built = self._built.get(place)
            if built is None:
                program = create_program_from_spirv(queue, self.spirv, self.build_options)
                built = self._built[place] = program.get_sycl_kernel(self.entry)
            self._by_queue[queue] = built
        return built


# --- Numba types ----------------------------------------------------------------------------------


class _Backend:
    """numba-dpex, loaded and ready to compile; made once by the first compilation."""

    def __init__(self) -> None:
        self.package = load_numba_dpex()
        # Overloads of Python's own operations register when these modules load.
        from numba.core import optional, types  # noqa: F401
        from numba.core.target_extension import target_override
        from numba.cpython import (  # noqa: F401
            builtins,
            enumimpl,
            hashing,
            iterators,
            numbers,
            rangeobj,
            slicing,
            tupleobj,
        )
        from numba.extending import typeof_impl
        from numba.misc import literal  # noqa: F401
        from numba.np import arraymath, arrayobj, numpy_support  # noqa: F401
        from numba_dpex.core.descriptor import dpex_kernel_target
        from numba_dpex.core.types import USMNdArray
        from numba_dpex.core.types.dpctl_types import DpctlSyclQueue
        from numba_dpex.core.types.kernel_api.index_space_ids import ItemType, NdItemType
        from numba_dpex.core.types.kernel_api.local_accessor import LocalAccessorType
        from numba_dpex.kernel_api_impl.spirv.target import SPIRV_TARGET_NAME

        self.types = types
        self.target = lambda: target_override(SPIRV_TARGET_NAME)
        self.from_dtype = numpy_support.from_dtype
        self.array_type = USMNdArray
        self.local_type = LocalAccessorType
        self.item_types = {"item": ItemType, "nditem": NdItemType}
        # numba-dpex's array types hold a queue and compare it; one for all arrays, the one its
        # local accessors take, keeps queues out of what is compiled.
        device = dpctl.SyclDevice()
        self.queue = DpctlSyclQueue(dpctl._sycl_queue_manager.get_device_cached_queue(device))
        # A device function of ours stands for its dispatcher wherever a kernel names it.
        typeof_impl.register(DeviceFunction)(
            lambda value, context: types.Dispatcher(value.dispatcher)
        )
        # Outside the override, overloads would register for the wrong target for good.
        with self.target():
            dpex_kernel_target.typing_context.refresh()
            dpex_kernel_target.target_context.refresh()

    def numba_type(self, key: str) -> Any:
        """The Numba type of a type key."""
        kind, _, rest = key.partition(":")
        if kind in self.item_types:
            return self.item_types[kind](int(rest))
        if not rest:
            return self.types.boolean if kind == "b1" else self.from_dtype(_dtype(kind))
        if kind.startswith("local "):
            return self.local_type(ndim=int(rest), dtype=_dtype(kind.removeprefix("local ")))
        return self.array_type(
            ndim=int(rest[:-1]),
            layout=rest[-1],
            dtype=self.from_dtype(_dtype(kind)),
            queue=self.queue,
        )


def _dtype(kind: str) -> Any:
    import numpy as np

    return np.dtype(kind)


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


def make_dispatcher(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """A numba-dpex kernel dispatcher of a Python function."""
    return backend().package.kernel(**options)(function)


def compile_kernel(
    function: Callable[..., Any], types: Sequence[str], options: Mapping[str, Any]
) -> Kernel:
    """Compile ``function`` for arguments of these type keys."""
    with _lock:
        compiler = backend()
        started = time.perf_counter()
        signature = compiler.types.void(*map(compiler.numba_type, types))
        dispatcher = make_dispatcher(function, options)
        result = dispatcher.get_compile_result(signature)
        module = result.kernel_device_ir_module
        kernel = Kernel(
            function.__name__,
            module.kernel_name,
            module.kernel_bitcode,
            tuple(types),
            seconds=time.perf_counter() - started,
            llvm=str(result.library.final_module),
        )
    _hooks.emit("compile", kernel=kernel, seconds=kernel.seconds, origin="numba-dpex")
    return kernel


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
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """The numba-dpex dispatcher, made when a kernel that calls this is first compiled."""
        if self._dispatcher is None:
            make = backend().package.device_func
            self._dispatcher = make(**self.options)(self.py_func)
        return self._dispatcher

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<dparray device function {self.__qualname__}>"
