"""A compiled kernel: its SPIR-V module, and its builds by drivers."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from dpctl.program import SyclProgramCompilationError

from dparray import _hooks
from dparray._compiler.program import obtain_program
from dparray._compiler.spirv.printed_floats import without_printed_doubles
from dparray._driver import place_of, traits_of, waiting
from dparray._driver.interface import Queue, Traits
from dparray._runtime.launch import Built, Ready
from dparray.exceptions import KernelCompileError, UnsupportedDeviceError


class Advice(NamedTuple):
    """The warnings shown when a kernel is obtained. Lines count from the ``def``.

    Attributes:
        cuts: the lines in which floats are truncated to integers, with the warnings.
        line: the line that reads dimensions of the range.
        unread: the dimensions of the range that are not read.
        double: where the kernel first computes in float64, and the operands.
    """

    cuts: tuple[tuple[int, str], ...] = ()
    line: int = 0
    unread: tuple[int, ...] = ()
    double: str = ""


NO_ADVICE = Advice()


class Kernel:
    """A compiled kernel: SPIR-V, its entry point, and its builds by drivers.

    State: the driver's build for each context and device, created at the first launch there. Two
    threads may build at the same time without harm.

    Attributes:
        name: the Python function's name.
        entry: the entry point in the SPIR-V module.
        spirv: the module.
        types: type keys, the item first.
        advice: the warnings for its users.
        seconds: the compile time, in this process or the process that wrote it to disk.
        origin: ``"compiled"`` or ``"disk"``.
        ready: the ranges of its launches.
    """

    __slots__ = (
        "_built",
        "_llvm",
        "advice",
        "build_options",
        "entry",
        "name",
        "origin",
        "ready",
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
        advice: Advice = NO_ADVICE,
    ) -> None:
        self.name = name
        self.entry = entry
        self.spirv = spirv
        self.types = types
        self.seconds = seconds
        self.origin = origin
        self.build_options = build_options
        self.advice = advice
        self._llvm = llvm
        self._built: dict[tuple[Any, Any], Built] = {}
        self.ready: dict[tuple[Any, ...], Ready] = {}

    @property
    def llvm(self) -> str:
        """The LLVM module as text."""
        return zlib.decompress(self._llvm).decode()

    @property
    def nbytes(self) -> int:
        """Its approximate memory use."""
        return len(self.spirv) + len(self._llvm) + _BUILT_BYTES * max(len(self._built), 1)

    def built_for(self, queue: Queue) -> Built:
        """Return the build for the context and device of ``queue``, created at the first use.

        Raises:
            UnsupportedDeviceError: the kernel computes in float64 and the device does not.
            KernelCompileError: the driver rejects the module.
        """
        key = place_of(queue), traits_of(queue)
        built = self._built.get(key)
        if built is None:
            # One forever, though several threads build: what is ready to launch has its address.
            built = self._built.setdefault(key, self._build(queue))
        return built

    def check_device(self, traits: Traits) -> None:
        """Raise ``UnsupportedDeviceError`` if it computes in float64 and a device does not support
        it.
        """
        self._module_for(traits)

    def _module_for(self, traits: Traits) -> bytes:
        """Return the module for a device: without double precision if that is only used for
        printing.

        Raises:
            UnsupportedDeviceError: the device lacks an aspect that the kernel needs.
        """
        module: bytes | None = self.spirv
        if needs_float64(self.spirv) and "fp64" not in traits.aspects:
            module = without_printed_doubles(self.spirv)
        if module is None:
            first = self.advice.double
            raise UnsupportedDeviceError(
                f"kernel {self.name}: it computes in float64, which {traits.name} does not have"
                f"{f' ({first})' if first else ''}. "
                "Use float32 arrays, and write constants as np.float32(0.5): a plain Python float "
                "is float64, and so are float32 with int64, and int32 / int32: write "
                "np.float32(i) for an integer i"
            )
        if declares(self.spirv, _INT64_ATOMICS) and "atomic64" not in traits.aspects:
            raise UnsupportedDeviceError(
                f"kernel {self.name}: it has atomic operations on 64-bit elements, for which "
                f"{traits.name} lacks the aspect atomic64. Use int32, uint32 or float32 arrays "
                "where AtomicRef points, or another device"
            )
        return module

    def _build(self, queue: Queue) -> Built:
        module = self._module_for(traits_of(queue))
        try:
            start = time.perf_counter()
            program = waiting.interruptible(
                lambda: obtain_program(queue, module, self.build_options)
            )
            sycl_kernel = program.get_sycl_kernel(self.entry)
            if _hooks.subscribers:
                _hooks.emit("build", kernel=self, queue=queue, start=start)
            takes_range = bool(self.types) and self.types[0].startswith("item:")
            return Built(sycl_kernel, takes_range)
        except SyclProgramCompilationError as error:
            raise KernelCompileError(
                f"kernel {self.name}: the driver of {traits_of(queue).name} does not accept the "
                f"compiled module: {error}",
                details=str(error),
            ) from error

    def to_bytes(self) -> bytes:
        """Return the bytes for the disk cache."""
        head = {
            "entry": self.entry,
            "name": self.name,
            "types": self.types,
            "seconds": float(self.seconds),
            "build_options": self.build_options,
            "spirv": len(self.spirv),
            "advice": self.advice,
        }
        return json.dumps(head).encode() + b"\n" + self.spirv + self._llvm

    @classmethod
    def from_bytes(cls, text: bytes) -> Kernel:
        """Return the kernel that :meth:`to_bytes` wrote.

        Raises:
            ValueError, TypeError, KeyError, RecursionError: these are not such bytes.
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
            or head["entry"] not in entry_points(rest[:size])
        ):
            raise ValueError("the data is not a kernel")
        return cls(
            head["name"],
            head["entry"],
            rest[:size],
            tuple(types),
            llvm=rest[size:],
            seconds=head["seconds"],
            origin="disk",
            build_options=head["build_options"],
            advice=_advice_of(*head["advice"]),
        )


def _advice_of(cuts: Any, line: Any, unread: Any, double: Any) -> Advice:
    """Return the advice that was written as JSON.

    Raises:
        ValueError, TypeError: it is not advice.
    """
    found = Advice(tuple((int(at), str(text)) for at, text in cuts), line, tuple(unread), double)
    if type(double) is not str or not all(
        type(each) is int for each in (found.line, *found.unread)
    ):
        raise ValueError("the data is not a kernel")
    return found


# The size of a kernel built by Intel's CPU driver (measured over 150 small ones).
_BUILT_BYTES = 400 << 10
_ZLIB_HEADER = b"x"
_SPIRV_MAGIC = 0x07230203
_SPIRV_HEADER_WORDS = 5
_OP_ENTRY_POINT = 15
_OP_CAPABILITY = 17
_OP_FUNCTION = 54
_FLOAT64 = 10
_INT64_ATOMICS = 12


def entry_points(spirv: bytes) -> set[str]:
    """Return the names of the kernels in a SPIR-V module.

    Raises:
        ValueError: it is not a module.
    """
    names = set()
    for at, operation, count in _instructions(spirv):
        if operation == _OP_FUNCTION:
            break
        if operation == _OP_ENTRY_POINT:
            literal = spirv[4 * (at + 3) : 4 * (at + count)]
            names.add(literal.partition(b"\0")[0].decode())
    return names


def check_module(spirv: bytes) -> None:
    """Raise ``ValueError`` unless the instructions of a SPIR-V module end exactly at its end.

    Drivers hang on a module with an instruction of zero words.
    """
    for _ in _instructions(spirv):
        pass


def _instructions(spirv: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the position, the opcode and the word count of each instruction in a module.

    Raises:
        ValueError: it is not a module, or an instruction exceeds its end.
    """
    if len(spirv) % 4:
        raise ValueError(f"it has {len(spirv)} bytes, which is not a multiple of 4")
    words = memoryview(spirv).cast("I")
    if len(words) < _SPIRV_HEADER_WORDS or words[0] != _SPIRV_MAGIC:
        raise ValueError("it does not begin with the header of a SPIR-V module")
    at = _SPIRV_HEADER_WORDS
    while at < len(words):
        count = words[at] >> 16
        if not count or at + count > len(words):
            raise ValueError(
                f"the instruction at word {at} has {count} words, and the module has {len(words)}"
            )
        yield at, words[at] & 0xFFFF, count
        at += count


def needs_float64(spirv: bytes) -> bool:
    """Return whether a SPIR-V module declares the capability Float64."""
    return declares(spirv, _FLOAT64)


def declares(spirv: bytes, capability: int) -> bool:
    """Return whether a SPIR-V module declares a capability."""
    words = memoryview(spirv).cast("I")
    for at, operation, _ in _instructions(spirv):
        if operation != _OP_CAPABILITY:
            break
        if words[at + 1] == capability:
            return True
    return False
