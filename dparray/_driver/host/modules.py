"""Kernels of the host processor: object code for each size of group, cached on disk.

State: the JIT compiler, and the kernels by their numbers.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import re
import threading
from functools import cache
from itertools import count
from operator import itemgetter
from pathlib import Path
from struct import unpack
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from llvmlite import __version__ as llvmlite_version
from llvmlite import binding as llvm

from dparray._driver.host.analysis import LANES, Function
from dparray._driver.host.devices import features, traits
from dparray._driver.host.frame import PACK, RUN, WORDS, packer
from dparray._driver.host.program import Program
from dparray._driver.host.queues import Queue
from dparray._driver.host.reading import Unsupported, read
from dparray._driver.interface import Loaded, ModuleRejected, PackedRange, Store
from dparray.exceptions import KernelCompileError

_HEAD = re.compile(r"; dparray (\{.*\})\n")
_OF_ITEMS = re.compile(r"^declare [^@\n]*@(?:_Z\d+(?:get_|__spirv|sub_group)|dparray\.).*\n", re.M)
_DECLARED = re.compile(r"^declare [^@\n]*@([\w.]+)\(", re.MULTILINE)
#: A program with more lines is vectorized in one pass, since each takes long.
_LONG_PROGRAM = 6_000
#: Items of the pieces of a row: vectors, if they are made of work-items, and enough pieces for all
#: threads, unless a piece would have fewer instructions.
_PIECE_MULTIPLE, _PIECES_PER_THREAD, _MIN_WORK = 64, 8, 1 << 15
#: Instructions that the caller runs itself, at most about 20 microseconds.
_SHORT_WORK = 1 << 18
#: The instructions of a function that is not inlined before it is vectorized, about.
_CALL_WEIGHT = 20
#: Other work that the caller runs itself, if it took at most this time before, in nanoseconds.
SHORT_TIME, _MAX_PACES = 1_000_000, 64
_PACK = ctypes.PYFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)

lock = threading.RLock()
_numbers = count(1)
#: The driver's objects of kernels keep them.
by_number: WeakValueDictionary[int, Kernel] = WeakValueDictionary()


class Variant(NamedTuple):
    """The code of a kernel for one size of group.

    Attributes:
        run: the address of its function.
        pack: copies arguments into the data of a launch.
        weight: the instructions of a work-item if it has no loops, otherwise infinity.
        may_wait: whether it may wait for other work, by atomic operations.
        code: the object that keeps the code in memory.
    """

    run: int
    pack: Any
    weight: float
    may_wait: bool
    code: Any


class Pace:
    """The runs of a launch that were short, so that the caller runs it the next time.

    A kernel without loops is short by its number of instructions. Others are if they were, with
    the same scalar arguments. Those that read atomically in a loop may wait for other work forever.
    """

    __slots__ = ("_is_known", "_may_wait", "_short")

    def __init__(self, instructions: float, may_wait: bool) -> None:
        self._is_known = instructions <= _SHORT_WORK
        self._may_wait = may_wait
        self._short: set[tuple[int, ...]] = set()

    def is_short(self, scalars: tuple[int, ...]) -> bool:
        """Return whether a run is short."""
        return self._is_known or scalars in self._short

    @property
    def was_short(self) -> bool:
        """Whether a run was short, with some scalar arguments."""
        return self._is_known or bool(self._short)

    def note(self, scalars: tuple[int, ...], nanoseconds: int) -> None:
        """Record the time of a run."""
        if self._is_known or self._may_wait:
            return
        if nanoseconds > SHORT_TIME:
            self._short.discard(scalars)
        elif len(self._short) < _MAX_PACES:
            self._short.add(scalars)


class Launch(NamedTuple):
    """A kernel over a range.

    Attributes:
        variant: its code.
        data: the type of the launch's data, 64-bit words.
        head: the words before the arguments.
        units: the groups, or pieces of rows.
        pace: which runs of it were short.
    """

    variant: Variant
    data: Any
    head: bytes
    units: int
    pace: Pace


@cache
def machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=features(),
        opt=3,
        reloc="pic",
        jit=True,
        codemodel="jitdefault",
    )


@cache
def jit() -> Any:
    return llvm.create_lljit_compiler(machine())


@cache
def sources() -> bytes:
    """Return a digest of this driver's files, which determine the code."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(each.read_bytes() for each in files)).digest()


class Kernel:
    """A kernel of a module.

    Attributes:
        number: by which it is launched.
        local_parameters: the positions of parameters in local memory.
        takes_range: whether the first arguments are the sizes of the range.
        parameters: names and types.
    """

    def __init__(self, module: bytes, entry: str, binaries: Store) -> None:
        head = _HEAD.match(module.decode())
        if head is None:
            raise ModuleRejected("it is not a module for hosts")
        found = json.loads(head[1])
        if found["entry"] != entry:
            raise KeyError(entry)
        self._text, self._entry, self._binaries = module.decode(), entry, binaries
        self._local_bytes: int = found["local_bytes"]
        self.local_parameters: tuple[int, ...] = tuple(found["local_parameters"])
        self.takes_range: bool = found["takes_range"]
        self._in_order: bool = found["in_order"]
        definition = self._definition()
        parsed = llvm.parse_assembly(self._text)
        self._function = parsed.get_function(entry), parsed
        self.parameters = [
            (f"%{each.name}", str(each.type)) for each in self._function[0].arguments
        ]
        self._body = definition
        #: Returns the words of a launch's data that are scalar arguments.
        places = [WORDS + at for at, (_, kind) in enumerate(self.parameters) if kind != "ptr"]
        self.scalars_of: Any = itemgetter(*places) if places else lambda data: ()
        self._variants: dict[tuple[int, tuple[int, ...] | None], Variant] = {}
        self._launches: dict[tuple[PackedRange, int], Launch] = {}
        self.number = next(_numbers)
        by_number[self.number] = self

    def _definition(self) -> re.Match[str]:
        pattern = rf'^define [^\n]*@"?{re.escape(self._entry)}"?\(.*?^\}}\n'
        match = re.search(pattern, self._text, re.MULTILINE | re.DOTALL)
        assert match is not None
        return match

    # -- code

    def variant(self, ndim: int, local: tuple[int, ...] | None) -> Variant:
        """Return the code for a size of group, from the disk cache if it is there.

        Raises:
            KernelCompileError: the driver does not support the kernel.
        """
        with lock:
            variant = self._variants.get((ndim, local))
            if variant is None:
                variant = self._variants[ndim, local] = self._made(ndim, local)
            return variant

    def _made(self, ndim: int, local: tuple[int, ...] | None) -> Variant:
        key = hashlib.sha256(sources() + llvmlite_version.encode())
        for each in (llvm.get_host_cpu_name(), features(), f"{ndim} {local}", self._text):
            key.update(each.encode() + b"\0")
        stored = self._binaries.load(key.hexdigest())
        if stored is None:
            stored = self._compiled(ndim, local)
            self._binaries.save(key.hexdigest(), stored)
        properties, _, code = stored.partition(b"\n")
        weight, may_wait = json.loads(properties)
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        library = library.export_symbol(RUN).export_symbol(PACK)
        tracker = library.link(jit(), f"kernel {self.number} {ndim} {local}")
        return Variant(tracker[RUN], _PACK(tracker[PACK]), weight, may_wait, tracker)

    def _compiled(self, ndim: int, local: tuple[int, ...] | None) -> bytes:
        """Return the weight of a work-item and whether it may wait, and the object code."""
        blocks, parameters = read(self._function[0], self._body[0])
        try:
            function = Function(blocks, parameters, ndim, local)
            program = Program(function, self.local_parameters, self._local_bytes, self._in_order)
        except Unsupported as error:
            raise KernelCompileError(
                f"kernel {self._entry.removeprefix('kernel_')}: the host driver does not support "
                f"{error}. Use another device",
                details=self._text,
            ) from None
        text = self._text[: self._body.start()] + self._text[self._body.end() :]
        text = _OF_ITEMS.sub("", text)
        declared = set(_DECLARED.findall(text))
        needs = [
            each for each in sorted(program.needs) if _DECLARED.findall(each)[0] not in declared
        ]
        text = "\n".join([text, *needs, packer(parameters), program.text])
        module = llvm.parse_assembly(text)
        passes = 1 if program.is_plain or text.count("\n") > _LONG_PROGRAM else 2
        for _ in range(passes):
            vectorize(module)
        inline_variants(module)
        every = [one for block in function.blocks for one in block.body]
        weight = (
            len(every) + _CALL_WEIGHT * sum("@dparray." in one.text for one in every)
            if program.is_straight
            else math.inf
        )
        properties = json.dumps([weight, function.may_wait()]).encode()
        return properties + b"\n" + bytes(machine().emit_object(module))

    # -- launches

    def launch(self, space: PackedRange, units: int) -> Launch:
        """Return the launch over a range, for a device with this many threads.

        Raises:
            KernelCompileError: the driver does not support the kernel.
        """
        over_range = self._launches.get((space, units))
        if over_range is None:
            if len(self._launches) > 1024:
                self._launches.clear()
            over_range = self._launches[space, units] = self._made_launch(space, units)
        return over_range

    def _made_launch(self, space: PackedRange, threads: int) -> Launch:
        ndim = space.dimensions
        extents = unpack(f"{ndim}N", space.extents)[::-1]
        local = None if space.local is None else unpack(f"{ndim}N", space.local)[::-1]
        variant = self.variant(ndim, local)
        words = [0] * WORDS
        more = [1] * (3 - ndim)
        sizes = [*(local or [1] * ndim), *more]
        words[0:3], words[3:6] = [*extents, *more], sizes
        words[6:9] = [n // size for n, size in zip(words[:3], sizes, strict=True)]
        units = math.prod(words[6:9])
        if local is None:
            inner, rows = extents[-1], math.prod(extents[:-1])
            multiple, least = self.pieces(variant)
            pieces = 1
            if rows < _PIECES_PER_THREAD * threads:
                wanted = -(-_PIECES_PER_THREAD * threads // rows)
                pieces = max(1, min(inner // max(multiple, least), wanted))
            wanted = -(-inner // pieces)
            items = -(-wanted // multiple) * multiple
            words[9], words[10] = items, -(-inner // items)
            units = rows * words[10]
        words[11] = self._local_bytes
        pace = Pace(variant.weight * math.prod(extents), variant.may_wait)
        data = ctypes.c_int64 * (WORDS + len(self.parameters))
        head = bytes((ctypes.c_int64 * WORDS)(*words)) + bytes(8 * len(self.parameters))
        return Launch(variant, data, head, units, pace)

    def pieces(self, variant: Variant) -> tuple[int, int]:
        """Return the number that divides the items of a piece of a row, and the least number."""
        return 1 if self._in_order else _PIECE_MULTIPLE, int(_MIN_WORK / variant.weight)

    @property
    def local_bytes(self) -> int:
        """The bytes of the local variables of a group."""
        return self._local_bytes


def vectorize(module: Any) -> None:
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.loop_interleaving = True
    tuning.slp_vectorization = tuning.loop_unrolling = True
    builder = llvm.create_pass_builder(machine(), tuning)
    builder.getModulePassManager().run(module, builder)


def inline_variants(module: Any) -> None:
    """Inline the functions that LLVM calls for vectors, now that it has chosen their sizes."""
    for function in module.functions:
        if not function.is_declaration and function.name not in (RUN, PACK):
            function.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_instruction_combine_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine(), llvm.create_pipeline_tuning_options()))


def load(queue: Queue, module: bytes | str, entry: str, options: str, binaries: Store) -> Loaded:
    """Return a kernel of a module; its code is made at the first launch with a size of group.

    Raises:
        ModuleRejected: it is not a module for hosts.
        KeyError: the module has no such kernel.
    """
    assert isinstance(module, bytes), "the driver takes no source"
    with lock:
        kernel = Kernel(module, entry, binaries)
    group = traits(queue.device).group
    return Loaded(kernel.number, group, LANES, len(kernel.parameters), kernel)
