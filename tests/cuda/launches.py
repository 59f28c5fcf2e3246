"""Compile the kernels that this process launches for NVIDIA GPUs, too, and emulate the launches.

:class:`Checker` runs each launch on the CPU device as usual, keeps the memory of its arguments
before and after, emulates the kernel's PTX on the memory before, and compares. Each new module also
goes through ptxas. A sub-group has 32 work-items on both.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from math import prod
from struct import unpack
from typing import Any, NamedTuple

import numpy as np
import pytest

from dparray._compiler import translation
from dparray._compiler.backend import Backend
from dparray._compiler.ptx import client
from dparray._compiler.ptx.translation import dimensions_of
from dparray._compiler.spirv.words import is_contracted
from dparray._runtime import launch as runtime
from dparray._type_keys import parse
from tests.cuda import packages
from tests.cuda.ptx_emulator import EmulationError, EndlessError, Memory, Module
from tests.support import observed

_SCALARS = (
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float32", "float64"),
)
_POINTER, _LOCAL = len(_SCALARS), len(_SCALARS) + 1
_GROUPS = {1: (256,), 2: (8, 32), 3: (2, 4, 32)}  # of a range, the last dimension fastest
MAX_THREADS = 1 << 15
MAX_BYTES = 1 << 22
MAX_TURNS = 50_000
# The modules that import the launch function by its name; some are imported at their first use.
_CALLERS = ("dparray._evaluate.execute", "dparray._kernel.function", "dparray._kernel.raw")
# Relative tolerances of float16, float32 and float64: other libraries, other orders of sums.
_TOLERANCES = {2: 4e-3, 4: 2e-5, 8: 1e-11}


class Argument(NamedTuple):
    """An argument of a launch.

    Attributes:
        value: a number, the address of an array, or the offset of local memory.
        low, high: the first byte of an array and the byte after its last, from its address on.
        dtype: its type, for comparisons.
    """

    value: Any
    low: int = 0
    high: int = 0
    dtype: Any = None


class Launch(NamedTuple):
    """A launch: grid and block in CUDA's order, arguments, and dynamic shared memory in bytes."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: list[Argument]
    shared: int


# --- arguments ------------------------------------------------------------------------------------


def launch_of(
    kernel: Any,
    global_range: Sequence[int],
    local_range: Sequence[int] | None,
    packed: Sequence[Any],
    segments: Sequence[Any] = (),
) -> Launch:
    """Return a launch of SYCL as a launch of CUDA.

    A pointer may be used for all of the pool's segment that it belongs to.
    """
    takes_range = bool(kernel.types) and kernel.types[0].startswith("item:")
    local = local_range
    if local is None:  # any groups do, if the kernel knows the extents
        local = _GROUPS[len(global_range)] if takes_range else _divisors(global_range)
    grid = tuple(-(-size // part) for size, part in zip(global_range, local, strict=True))
    arguments = [Argument(np.int64(each)) for each in global_range] if takes_range else []
    shared = 0
    dtypes = _dtypes(kernel.types)
    for each in packed:
        given = list(_arguments(each, dtypes, segments))
        if each.local_nbytes:
            shared = -(-shared // 16) * 16
            given = [one._replace(value=np.int64(shared)) if one.high else one for one in given]
            given = [one._replace(high=0) for one in given]
            shared += each.local_nbytes
        arguments += given
    return Launch(grid[::-1], tuple(map(int, local))[::-1], arguments, shared)


def _divisors(size: Sequence[int]) -> tuple[int, ...]:
    return tuple(next(part for part in (32, 16, 8, 4, 2, 1) if not each % part) for each in size)


def _dtypes(types: Sequence[str]) -> Iterator[np.dtype | None]:
    """Yield the dtypes of arrays and pointers by a kernel's type keys, then None."""
    for each in map(parse, types):
        if each.kind not in ("item", "nditem", "scalar", "constant"):
            yield np.dtype("?" if each.dtype == "b1" else each.dtype)
    while True:
        yield None


def _arguments(
    packed: Any, dtypes: Iterator[np.dtype | None], segments: Sequence[Any]
) -> Iterator[Argument]:
    """Yield the arguments for the parameters of one packed argument."""
    kinds = unpack(f"{len(packed.kinds) // 4}i", packed.kinds)
    words = unpack(f"{len(packed.addresses) // 8}Q", packed.addresses)
    for kind, word in zip(kinds, words, strict=True):
        if kind == _POINTER:
            yield Argument(word, *_bounds(word, packed.objects, segments), next(dtypes))
        elif kind == _LOCAL:
            next(dtypes)
            yield Argument(None, high=packed.local_nbytes)
        else:
            dtype = np.dtype(_SCALARS[kind])
            octets = ctypes.string_at(word, dtype.itemsize)
            yield Argument(np.frombuffer(octets, dtype)[0])


def _bounds(pointer: int, kept: Any, segments: Sequence[Any]) -> tuple[int, int]:
    """Return the first byte of an array or a pointer's memory, and the end, from an address on."""
    numbers = kept[0]
    if type(numbers) is int:
        owned = [(each.pointer, each.nbytes) for each in segments if each is not None]
        if hasattr(kept[1], "_pointer"):  # memory of dpctl, not of the pool
            owned.append((kept[1]._pointer, kept[1].nbytes))
        for start, nbytes in owned:
            if 0 <= pointer - start < nbytes:
                return start - pointer, start + nbytes - pointer
        return 0, numbers
    count, itemsize, *rest = numbers
    shape, strides = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    if not count:
        return 0, 0
    spans = [step * (size - 1) for size, step in zip(shape, strides, strict=True)]
    return sum(min(0, each) for each in spans), sum(max(0, each) for each in spans) + itemsize


class Blocks:
    """The memory behind a launch's arrays: overlapping arrays share a block."""

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self.bounds: list[list[int]] = []
        arrays = [each for each in arguments if each.high > each.low]
        for each in sorted(arrays, key=lambda each: each.value + each.low):
            start, end = each.value + each.low, each.value + each.high
            if self.bounds and start < self.bounds[-1][1]:
                self.bounds[-1][1] = max(self.bounds[-1][1], end)
            else:
                self.bounds.append([start, end])

    @property
    def nbytes(self) -> int:
        return sum(end - start for start, end in self.bounds)

    def read(self) -> list[np.ndarray]:
        """Return the bytes of all blocks."""
        return [
            np.frombuffer(ctypes.string_at(start, end - start), np.uint8)
            for start, end in self.bounds
        ]

    def place(self, address: int) -> tuple[int, int]:
        """Return the number of an address's block and the offset in it."""
        number = max(at for at, (start, _) in enumerate(self.bounds) if start <= address)
        return number, address - self.bounds[number][0]


def emulate(
    entry: str, text: bytes, launch: Launch, blocks: Blocks, before: list[np.ndarray]
) -> tuple[list[np.ndarray], list[str]]:
    """Return the memory after a launch, and what was printed."""
    memory = Memory()
    # Arrays need only the alignment of their elements; GPUs trap on more.
    shift = [start % 16 for start, _ in blocks.bounds]
    placed = [
        memory.put(np.r_[np.zeros(s, "u1"), each]) for s, each in zip(shift, before, strict=True)
    ]
    memory.bounds[:, 0] += shift
    addresses = [address + s for address, s in zip(placed, shift, strict=True)]
    arguments = []
    for each in launch.arguments:
        if each.dtype is None or each.high <= each.low:
            arguments.append(np.uint64(0) if each.dtype is not None else each.value)
            continue
        number, offset = blocks.place(each.value + each.low)
        arguments.append(np.uint64(addresses[number] + offset - each.low))
    module = Module(text)
    module.launch(
        entry,
        launch.grid,
        launch.block,
        arguments,
        memory,
        shared=launch.shared,
        max_turns=MAX_TURNS,
    )
    after = [
        memory.get(address, np.uint8, each.size)
        for address, each in zip(addresses, before, strict=True)
    ]
    return after, module.printed


def difference(
    launch: Launch,
    blocks: Blocks,
    found: list[np.ndarray],
    wanted: list[np.ndarray],
    *,
    is_single: bool = False,
) -> str:
    """Return where memory differs by more than rounding, or "".

    ``is_single`` means that values in float64 arrays may have been computed in float32.
    """
    for at, each in enumerate(launch.arguments):
        if each.dtype is None or each.high <= each.low:
            continue
        number, offset = blocks.place(each.value + each.low)
        part = slice(
            offset, offset + (each.high - each.low) // each.dtype.itemsize * each.dtype.itemsize
        )
        a, b = (memory[number][part].view(each.dtype) for memory in (found, wanted))
        wrong = _differing(a, b, 4 if is_single else 8)
        if wrong.any():
            first = int(np.argmax(wrong))
            return (
                f"argument {at}, {each.dtype}: {int(wrong.sum())} of {a.size} elements differ, "
                f"[{first}] is {a[first]}, not {b[first]}"
            )
    return ""


def _differing(a: np.ndarray, b: np.ndarray, most: int) -> np.ndarray:
    if a.dtype.kind not in "fc":
        return a != b
    itemsize = min(a.dtype.itemsize // (2 if a.dtype.kind == "c" else 1), most)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        a, b = a.astype(wide), b.astype(wide)
        scale = np.max(np.abs(np.where(np.isfinite(b), b, 0)), initial=0)
        is_near = np.abs(a - b) <= _TOLERANCES[itemsize] * (np.abs(b) + 0.05 * scale)
        return ~((a == b) | is_near | (np.isnan(a) & np.isnan(b)))


# --- the checker ----------------------------------------------------------------------------------

_ENTRY = re.compile(r"^(define spir_kernel [^\n]*)\{$", re.MULTILINE)
_OF_SUB_GROUPS = re.compile(r"sub_group|@_Z\d+__spirv_Group\w+\(i32 3\b")


def _with_warps(text: str) -> str:
    """Ask the CPU device for sub-groups of 32 work-items, where a kernel uses sub-groups.

    With that size, the CPU driver's broadcast in a group is wrong: it is one in each sub-group.
    """
    if not _OF_SUB_GROUPS.search(text):
        return text
    marked = _ENTRY.sub(r"\1 !intel_reqd_sub_group_size !770032 {", text)
    return f"{marked}\n!770032 = !{{i32 32}}\n"


def _digest(kernel: Any) -> bytes:
    return hashlib.sha256(kernel.module).digest()


class Checker:
    """Check each launch of this process.

    Attributes:
        counts: of launches: equal, too large or too long, without LLVM IR; of modules.
        faults: the launches that differ and the modules that are rejected.
        label: what runs now, for the texts of faults.
        assembles: whether modules go through ptxas.
        seconds: of time in the emulator and ptxas.
    """

    def __init__(self, *, assembles: bool = True) -> None:
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.label = ""
        self.assembles = assembles
        self.seconds: Counter[str] = Counter()
        self._texts: dict[bytes, str] = {}
        self._last = threading.local()
        self._modules: dict[tuple[Any, ...], bytes | None] = {}

    @contextmanager
    def installed(self) -> Iterator[Checker]:
        """Check the launches inside the block."""
        launch = runtime.launch

        def checked(
            kernel: Any,
            size: Any,
            local: Any,
            arguments: Any,
            queue: Any,
            depends_on: Any = (),
            keep_alive: Any = (),
            memory: Any = (None,),
            reads: int = 0,
        ) -> Any:
            with self._checked(kernel, size, local, arguments, queue, memory):
                rest = depends_on, keep_alive, memory, reads
                return launch(kernel, size, local, arguments, queue, *rest)

        # An observer also keeps launches from being submitted by C code.
        with pytest.MonkeyPatch.context() as patch, observed(self._note_kernel):
            patch.setattr(translation, "translated", self._keeping(translation.translated))
            patch.setattr(Backend, "compile", self._keeping(Backend.compile))
            for module in map(import_module, _CALLERS):
                (name,) = (name for name, value in vars(module).items() if value is launch)
                patch.setattr(module, name, checked)
            yield self

    def _keeping(self, translate: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that translates, and keeps the LLVM IR for the kernel made of it."""

        def keep(*arguments: Any, **named: Any) -> Any:
            entry, text, *rest = translate(*arguments, **named)
            self._last.text = text
            return (entry, _with_warps(text), *rest)

        return keep

    def _note_kernel(self, event: str, **values: Any) -> None:
        if event == "compile" and values["origin"] == "compiled":
            self._texts[_digest(values["kernel"])] = self._last.text

    @contextmanager
    def _checked(
        self, kernel: Any, size: Any, local: Any, packed: Any, queue: Any, segments: Any
    ) -> Iterator[None]:
        text = self._texts.get(_digest(kernel))
        if text is None:
            self.counts["launches without LLVM IR"] += 1
            yield
            return
        queue.wait()
        launch = launch_of(kernel, size, local, packed, segments)
        blocks = Blocks(launch.arguments)
        is_small = blocks.nbytes <= MAX_BYTES
        before = blocks.read() if is_small else []
        yield
        queue.wait()
        module = self._module(kernel, text, launch)
        if module is None:
            return
        if not is_small or prod(launch.grid) * prod(launch.block) > MAX_THREADS:
            self.counts["launches too large"] += 1
            return
        if len(launch.block) > 1 and _OF_SUB_GROUPS.search(text):
            self.counts["launches with other sub-groups"] += 1  # devices divide groups as they like
            return
        self._emulate(kernel, module, launch, blocks, before, is_single=" float " in text)

    def _module(self, kernel: Any, text: str, launch: Launch) -> bytes | None:
        """Return the PTX of a kernel for a launch, or None if there is none."""
        whole_warps = prod(launch.block) % 32 == 0
        key = text, len(launch.block), whole_warps, is_contracted(kernel.module)
        if key in self._modules:
            return self._modules[key]
        self.counts["modules"] += 1
        start = time.perf_counter()
        self._modules[key] = None
        try:
            has_item = bool(kernel.types) and kernel.types[0].startswith("item:")
            ndim = dimensions_of(text) if has_item else len(launch.block)
            assert ndim == len(launch.block)
            _, module = client.compile(text, ndim=ndim, whole_warps=whole_warps, contract=key[3])
            if self.assembles:
                for processor in packages.PROCESSORS:
                    if packages.assembled(module, processor).spilled:
                        self.counts["modules with spilled registers"] += 1
            self._modules[key] = module
        except Exception as error:
            self._fault(kernel, f"{type(error).__name__}: {error}")
        self.seconds["modules"] += time.perf_counter() - start
        return self._modules[key]

    def _emulate(
        self,
        kernel: Any,
        module: bytes,
        launch: Launch,
        blocks: Blocks,
        before: list[np.ndarray],
        *,
        is_single: bool,
    ) -> None:
        wanted = blocks.read()
        start = time.perf_counter()
        try:
            found, _ = emulate(kernel.entry, module, launch, blocks, before)
            fault = difference(launch, blocks, found, wanted, is_single=is_single)
        except EndlessError:
            self.counts["launches too long"] += 1
            return
        except EmulationError as error:
            fault = str(error)
        self.seconds["emulation"] += time.perf_counter() - start
        self.counts["launches equal"] += not fault
        if fault:
            self._fault(kernel, f"{launch.grid} of {launch.block}: {fault}")

    def _fault(self, kernel: Any, text: str) -> None:
        self.counts["faults"] += 1
        self.faults.append(f"{self.label}: {kernel.name}: {text}")


class Plugin:
    """A plugin of pytest that checks the launches of all tests."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._installed = checker.installed()

    def pytest_collection_finish(self) -> None:
        self._installed.__enter__()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._checker.label = item.nodeid

    def pytest_sessionfinish(self) -> None:
        self._installed.__exit__(None, None, None)
