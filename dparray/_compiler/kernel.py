"""A compiled kernel: its module, and its builds by drivers."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Collection
from typing import Any

from dparray import _hooks
from dparray._compiler import cache
from dparray._compiler.targets import back_end
from dparray._driver import driver_of, place_of, traits_of, waiting
from dparray._driver.interface import ModuleRejected, Queue, Target, Traits
from dparray._language.advice import Advice
from dparray._runtime.launch import Built, Ready
from dparray.exceptions import KernelCompileError, UnsupportedDeviceError

NO_ADVICE = Advice()


class Kernel:
    """A compiled kernel: its module, its entry point, and its builds by drivers.

    State: the driver's build for each context and device, created at the first launch there. Two
    threads may build at the same time without harm.

    Attributes:
        name: the Python function's name.
        entry: the entry point in the module.
        module: the bytes that a driver builds.
        target: the target of the module.
        needs: the aspects that a device must have.
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
        "module",
        "name",
        "needs",
        "origin",
        "ready",
        "seconds",
        "target",
        "types",
    )

    def __init__(
        self,
        name: str,
        entry: str,
        module: bytes,
        types: tuple[str, ...],
        *,
        target: Target,
        needs: Collection[str],
        llvm: bytes,
        seconds: float = 0.0,
        origin: str = "compiled",
        build_options: str = "",
        advice: Advice = NO_ADVICE,
    ) -> None:
        self.name = name
        self.entry = entry
        self.module = module
        self.target = target
        self.needs = frozenset(needs)
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
        return len(self.module) + len(self._llvm) + _BUILT_BYTES * max(len(self._built), 1)

    def built_for(self, queue: Queue) -> Built:
        """Return the build for the context and device of ``queue``, created at the first use.

        Raises:
            UnsupportedDeviceError: the kernel computes in float64 and the device does not.
            KernelCompileError: the driver rejects the module.
        """
        key = place_of(queue), traits_of(queue)
        built = self._built.get(key)
        if built is None:
            assert traits_of(queue).target == self.target, "a kernel for another driver"
            # One build, even if several threads build: ready launches store its address.
            built = self._built.setdefault(key, self._build(queue))
        return built

    def check_device(self, traits: Traits) -> None:
        """Raise ``UnsupportedDeviceError`` if the kernel needs float64 and a device lacks it."""
        self._module_for(traits)

    def _module_for(self, traits: Traits) -> bytes:
        """Return the module for a device: without double precision if that is only used for
        printing.

        Raises:
            UnsupportedDeviceError: the device lacks an aspect that the kernel needs.
        """
        module: bytes | None = self.module
        if "fp64" in self.needs and "fp64" not in traits.aspects:
            module = back_end(self.target).without_float64(self.module)
        if module is None:
            first = self.advice.double
            raise UnsupportedDeviceError(
                f"kernel {self.name}: it computes in float64, which {traits.name} does not have"
                f"{f' ({first})' if first else ''}. "
                "Use float32 arrays, and pass np.float32(0.5): a Python float as an argument is "
                "float64, and so are i / 2, i * 0.5 and math.sqrt(i) of an integer: write "
                "np.float32(i)"
            )
        if "atomic64" in self.needs and "atomic64" not in traits.aspects:
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
            load = driver_of(queue).load
            loaded = waiting.interruptible(
                lambda: load(queue, module, self.entry, self.build_options, cache)
            )
            if _hooks.subscribers:
                _hooks.emit("build", kernel=self, queue=queue, start=start)
            takes_range = bool(self.types) and self.types[0].startswith("item:")
            return Built(loaded, takes_range)
        except ModuleRejected as error:
            raise KernelCompileError(
                f"kernel {self.name}: the driver of {traits_of(queue).name} does not accept the "
                f"compiled module: {error}",
                details=str(error),
            ) from error

    def to_bytes(self, *, has_seconds: bool = True) -> bytes:
        """Return the bytes for the disk cache; without times for wheels, which are reproducible."""
        head = {
            "entry": self.entry,
            "name": self.name,
            "types": self.types,
            "seconds": float(self.seconds) if has_seconds else 0.0,
            "build_options": self.build_options,
            "module": len(self.module),
            "target": self.target,
            "needs": sorted(self.needs),
            "advice": self.advice,
        }
        return json.dumps(head).encode() + b"\n" + self.module + self._llvm

    @classmethod
    def from_bytes(cls, text: bytes) -> Kernel:
        """Return the kernel that :meth:`to_bytes` wrote.

        Raises:
            ValueError, TypeError, KeyError, RecursionError: these are not such bytes.
        """
        line, _, rest = text.partition(b"\n")
        head = json.loads(line)
        size, types, needs = head["module"], head["types"], head["needs"]
        target = Target(*head["target"])
        texts = (head["name"], head["entry"], head["build_options"], *target, *types, *needs)
        if (
            type(size) is not int
            or not 0 < size <= len(rest)
            or not type(types) is type(needs) is list
            or not all(type(each) is str for each in texts)
            or type(head["seconds"]) is not float
            or not rest.startswith(_ZLIB_HEADER, size)
            or not head["entry"]
            or head["entry"].encode() not in rest[:size]
        ):
            raise ValueError("the data is not a kernel")
        return cls(
            head["name"],
            head["entry"],
            rest[:size],
            tuple(types),
            target=target,
            needs=needs,
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
