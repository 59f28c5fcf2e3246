"""Launch kernels in OpenCL C or SPIR-V, with the same checks and order as other kernels."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dparray import _layout
from dparray._array.ndarray import materialize, ndarray
from dparray._array.operands import layout_of
from dparray._compiler import cache
from dparray._compiler.targets import back_end_named
from dparray._driver import driver_of, order_of, place_of, traits_of
from dparray._driver.interface import DriverEvent, ModuleRejected, Queue
from dparray._evaluate.writes import settle_blocks
from dparray._kernel.arguments import is_array, is_native
from dparray._kernel.index_space import as_index_space
from dparray._layout import Layout
from dparray._placement import common_placement
from dparray._runtime import deferred_launch, fault_report, host_maps
from dparray._runtime.event import Event, events_before
from dparray._runtime.launch import Built, Ready, check_launch, launch
from dparray._runtime.packing import Packed, pack_local_pointer, pack_pointer, pack_scalar
from dparray.device import describe_device
from dparray.exceptions import (
    HostConversionError,
    KernelArgumentError,
    KernelCompileError,
    UnsupportedDeviceError,
)
from dparray.kernel_api import LocalAccessor, NdRange, Range
from dparray.memory import blocks

__all__ = ["RawKernel", "raw_kernel"]

_SPIRV_MAGIC = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
_SCALARS: dict[str, Any] = {
    "bool": ctypes.c_uint8,
    **{
        f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


class _Compiled:
    """A kernel of a program for one queue, as the launch needs it."""

    remedy = (
        "Each argument must match its parameter's kind and size: an array for a pointer to global "
        "memory, LocalAccessor for a pointer to local memory, np.float32(2) for float, np.int32(2) "
        "for int; Python numbers are long and double. If all match, use smaller groups"
    )

    def __init__(self, name: str, built: Built) -> None:
        self.name = name
        self.built = built
        self.ready: dict[tuple[Any, ...], Ready] = {}

    def built_for(self, queue: Queue) -> Built:
        return self.built


def _as_layout(value: Any) -> Any:
    """Return the address of an array, and any other argument unchanged."""
    if is_native(type(value)):
        return materialize(value)
    return layout_of(value) if is_array(type(value)) else value


def _is_const(source: str | bytes, name: str, position: int) -> bool:
    """Return whether a kernel's source declares a parameter as a pointer to const.

    It does not where the parameter list has parentheses or comes from a macro, nor in SPIR-V.
    """
    if isinstance(source, bytes):
        return False
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", source, flags=re.DOTALL)
    found = re.search(rf"\b{re.escape(name)}\s*\(([^()]*)\)\s*{{", text)
    parameters = found[1].split(",") if found else []
    if position >= len(parameters):
        return False
    pointee, star, _ = parameters[position].partition("*")
    return bool(star) and re.search(r"\bconst\b", pointee) is not None


class RawKernel:
    """A kernel of OpenCL C or SPIR-V; made by :func:`raw_kernel`.

    State: one program for each context and device that it was launched on, with its launch data for
    each combination of argument kinds.

    Attributes:
        name: the kernel's name in its program.
        source: the source code, or the SPIR-V module.
        options: options for the driver's compiler.
    """

    def __init__(self, source: str | bytes, name: str, options: str) -> None:
        self.source = source
        self.name = self.__name__ = self.__qualname__ = name
        self.options = options
        self._built: dict[tuple[Any, Any], Built] = {}
        self._compiled: dict[tuple[Built, bytes], _Compiled] = {}

    @property
    def location(self) -> str:
        """The source line of the kernel, for events."""
        return repr(self)

    def __repr__(self) -> str:
        kind = "OpenCL C" if isinstance(self.source, str) else "SPIR-V"
        return f"<dparray raw kernel {self.name} of {kind}>"

    def __getitem__(self, index_space: Any) -> _Configured:
        return _Configured(self, as_index_space(index_space))

    def _launch(
        self, index_space: Range | NdRange, arguments: tuple[Any, ...], depends_on: Any
    ) -> Event:
        values = [_as_layout(value) for value in arguments]
        packed = [self._packed(position, value) for position, value in enumerate(values)]
        self._check_read_only(values)
        queue = self._queue(arguments, values)
        compiled = self._program(queue, b"".join([each.kinds for each in packed]))
        count = compiled.built.loaded.arguments
        if count != len(packed):
            raise KernelArgumentError(
                f"kernel {self.name}: takes {count} argument{'s' * (count != 1)}; got {len(packed)}"
            )
        before, others = events_before(depends_on, queue)
        arrays = [value for value in values if isinstance(value, Layout)]
        if host_maps.holds:
            host_maps.before_write(*arrays)
        settle_blocks([x.block for x in arrays])
        owners = tuple(x.block for x in arrays if isinstance(x.block, blocks.BorrowedBlock))
        size: Any
        if isinstance(index_space, NdRange):
            size, local = index_space.global_range, index_space.local_range
        else:
            size, local = tuple(index_space), None
        memory = [x.block.segment for x in arrays]
        if 0 in size:
            return Event((), self, queue)

        def submit() -> DriverEvent:
            event = launch(compiled, size, local, packed, queue, before, owners, memory)
            order_of(queue).note_long()
            return event

        if others:
            check_launch(compiled, size, local, packed, queue)
            return deferred_launch.launch_after(
                others, submit, [(x, "w") for x in arrays], self, queue
            )
        return Event(submit(), self, queue)

    def _queue(self, arguments: Sequence[Any], values: Sequence[Any]) -> Queue:
        named = [
            (
                f"argument[{position}]",
                given if isinstance(given, ndarray) else ndarray._from_layout(*value),
            )
            for position, (given, value) in enumerate(zip(arguments, values, strict=True))
            if isinstance(value, Layout)
        ]
        if not named:
            raise KernelArgumentError(
                f"kernel {self.name}: at least one argument must be an array, which decides on "
                "which queue it runs"
            )
        return common_placement(f"kernel {self.name}", named).queue

    def _check_read_only(self, values: Sequence[Any]) -> None:
        """Raise for memory whose owner forbids writes, unless the parameter is known as const."""
        for position, value in enumerate(values):
            if not isinstance(value, Layout) or not blocks.is_read_only(value.block):
                continue
            if not _is_const(self.source, self.name, position):
                raise KernelArgumentError(
                    f"kernel {self.name}: argument {position} is read-only memory, whose owner "
                    "forbids writes, and the parameter is not known as a pointer to const; "
                    "declare it so (global const float *x), or pass a copy: dp.asarray(x).copy()"
                )

    def _packed(self, position: int, value: Any) -> Packed:
        what = f"kernel {self.name}: argument {position}"
        if isinstance(value, Layout):
            if not _layout.is_contiguous(value.shape, value.strides, value.dtype.itemsize):
                raise KernelArgumentError(
                    f"{what} is not C-contiguous, and the kernel receives no strides; pass x.copy()"
                )
            block = value.block
            return pack_pointer(block.memory, block.pointer + value.offset, block.nbytes)
        if isinstance(value, np.ndarray):
            raise HostConversionError(
                f"{what} is a NumPy array, in host memory; copy it to the device first: "
                "dp.asarray(x)"
            )
        if isinstance(value, LocalAccessor):
            count = prod(map(int, value._shape))
            return pack_local_pointer(np.dtype(value._dtype), count)
        if isinstance(value, bool | int | float):
            value = np.asarray(value)[()]
        if isinstance(value, np.generic) and value.dtype.name in _SCALARS:
            return pack_scalar(_SCALARS[value.dtype.name](value.item()))
        raise KernelArgumentError(
            f"{what} is a {type(value).__name__}; a raw kernel accepts arrays, LocalAccessor and "
            "scalars: NumPy's by their dtype, Python's as int64 and float64"
        )

    def _program(self, queue: Queue, kinds: bytes) -> _Compiled:
        place = place_of(queue)
        built = self._built.get(place)
        if built is None:
            made = Built(self._build(queue), takes_range=False)
            built = self._built.setdefault(place, made)
        compiled = self._compiled.get((built, kinds))
        if compiled is None:
            compiled = self._compiled.setdefault((built, kinds), _Compiled(self.name, built))
        return compiled

    def _build(self, queue: Queue) -> Any:
        fault_report.enable()
        is_text = isinstance(self.source, str)
        driver = driver_of(queue)
        formats = traits_of(queue).raw_formats
        if not formats:
            raise UnsupportedDeviceError(
                f"kernel {self.name}: {describe_device(queue)} runs kernels written in Python; raw "
                "kernels need a SYCL device. Write the kernel in Python, with @dp.kernel"
            )
        if is_text and "OpenCL C" not in formats:
            raise UnsupportedDeviceError(
                f"kernel {self.name}: {describe_device(queue)} accepts only SPIR-V, "
                "and only OpenCL drivers compile OpenCL C; pass a SPIR-V module"
            )
        try:
            return driver.load(queue, self.source, self.name, self.options, cache)
        except ModuleRejected as error:
            said = str(error)
            raise KernelCompileError(
                f"kernel {self.name}: the compiler of {describe_device(queue)} rejects "
                f"the {'text' if is_text else 'module'}"
                + (f":\n{said}" if said else " without a reason"),
                details=said,
            ) from None
        except KeyError:
            raise KernelCompileError(
                f"kernel {self.name}: the program has no kernel of that name; pass the name of a "
                "`kernel void` function in it"
            ) from None


class _Configured:
    """A raw kernel with its range: ``kernel[range]``, which takes the arguments."""

    __slots__ = ("index_space", "kernel")

    def __init__(self, kernel: RawKernel, index_space: Range | NdRange) -> None:
        self.kernel = kernel
        self.index_space = index_space

    def __call__(self, *arguments: Any, depends_on: Any = ()) -> Event:
        return self.kernel._launch(self.index_space, arguments, depends_on)


def raw_kernel(source: str | bytes, name: str, *, options: str = "") -> RawKernel:
    """Create a kernel from OpenCL C or a SPIR-V module.

    ``kernel[range](*arguments)`` and ``call_kernel(kernel, range, *arguments)`` launch it on the
    queue of its arrays, after all earlier work there; every read of a result waits for it.
    ``get_global_id(0)`` counts along the first dimension of the range.

    Args:
        source: OpenCL C source code, or a SPIR-V module as bytes.
        name: the name of the kernel in the source.
        options: options for the driver's compiler, such as ``"-cl-fast-relaxed-math"``.

    The arguments match the kernel's parameters: C-contiguous arrays of dparray, dpnp and
    dpnp.tensor for pointers to global memory (the element type is not checked), and
    ``LocalAccessor`` for pointers to local memory. NumPy scalars are passed by their dtype, Python
    scalars as ``long`` and ``double``.

    The driver compiles the source unchanged. Intel's CPU driver (2026.0) compiles some conditions
    on ids at the beginning of a kernel incorrectly; kernels in Python are protected from this. ``if
    (get_global_id(0) != n) return;`` lets one work-item run the rest many times, and a comparison
    of a value computed from an id may skip work-items. Hide the id from the compiler:
    ``add_sat(get_global_id(0), 0ul)``.

    Raises:
        KernelArgumentError: ``source`` is neither, or is empty. A launch also raises the errors of
            :func:`call_kernel`.

    Example:
        >>> import dparray as dp
        >>> scale = dp.raw_kernel(
        ...     '''
        ...     kernel void scale(global double *x, double factor) {
        ...         x[get_global_id(0)] *= factor;
        ...     }
        ...     ''',
        ...     "scale",
        ... )
        >>> x = dp.ones(3)
        >>> event = scale[dp.Range(3)](x, 2.0)
        >>> x.asnumpy()
        array([2., 2., 2.])
    """
    if not isinstance(source, str | bytes) or not source.strip():
        raise KernelArgumentError(
            f"raw_kernel: {type(source).__name__} {source!r:.40} is neither OpenCL C as a string "
            "nor SPIR-V as bytes"
        )
    if isinstance(source, bytes) and source[:4] not in _SPIRV_MAGIC:
        raise KernelArgumentError(
            "raw_kernel: these bytes are not a SPIR-V module, which begins with 0x07230203; decode "
            "them if they are source code"
        )
    if isinstance(source, bytes):
        native = source
        # a module with the other byte order
        if source[:4] == _SPIRV_MAGIC[1] and len(source) % 4 == 0:
            native = np.frombuffer(source, np.uint32).byteswap().tobytes()
        try:
            back_end_named("spirv64").check_module(native)
        except ValueError as error:
            raise KernelArgumentError(
                f"raw_kernel: the SPIR-V module is damaged: {error}"
            ) from None
    if not isinstance(name, str) or not name:
        raise KernelArgumentError(f"raw_kernel: {name!r} is not a valid kernel name")
    return RawKernel(source, name, options)
