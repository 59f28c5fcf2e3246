"""Run tests with a stand-in for NVIDIA's driver, as a pytest plugin.

    python -m pytest -q -p tests.cuda.standin tests/cuda/driver

``standin.c`` is compiled to a library with the name ``libcuda.so.1`` and loaded before anything of
that name, so that cuda-bindings, cuda-core and ``dlopen`` find it. It is the driver of the whole
process. Kernels are emulated from their PTX (``ptx_emulator.py``).

Nothing of dparray is imported here, because its configuration is read at the first import.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda.ptx_emulator import EmulationError, EndlessError, Memory, Module, static_shared
from tests.cuda.ptx_text import Function

_SOURCE = Path(__file__).with_suffix(".c")
_FOLDER = Path(__file__).resolve().parents[2] / "build" / "cuda-standin"
#: The kinds of calls that can be refused, as in ``standin.c``.
KINDS = (
    *("allocation", "free", "copy", "fill", "launch", "execution", "module", "kernel"),
    *("record", "wait", "stream"),
)
#: Numbers of errors.
ERRORS = {
    "INVALID_VALUE": 1,
    "OUT_OF_MEMORY": 2,
    "DEVICE_UNAVAILABLE": 46,
    "NO_BINARY_FOR_GPU": 209,
    "INVALID_PTX": 218,
    "ILLEGAL_ADDRESS": 700,
    "LAUNCH_OUT_OF_RESOURCES": 701,
    "LAUNCH_TIMEOUT": 702,
    "MISALIGNED_ADDRESS": 716,
    "LAUNCH_FAILED": 719,
    "UNKNOWN": 999,
}
# Launches beyond these would take minutes: of turns of the emulator, and of threads.
_TURNS = int(os.environ.get("CUDA_STANDIN_TURNS", 400_000))
_THREADS = int(os.environ.get("CUDA_STANDIN_THREADS", 1 << 24))
_MAX_PARAMETERS = 512
_FLAGS = ("-O1", "-g", "-Wall", "-Werror=implicit", "-shared", "-fPIC", "-pthread")


class UnavailableError(Exception):
    """The stand-in cannot be built here."""


class _Parameters(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_int) for name in ("number", "count", "shared", "threads")],
        ("offsets", ctypes.c_size_t * _MAX_PARAMETERS),
        ("sizes", ctypes.c_size_t * _MAX_PARAMETERS),
    ]


# The functions that C calls, in the order of `python` in standin.c.
_CHARS = ctypes.POINTER(ctypes.c_char)
_NUMBER = ctypes.POINTER(ctypes.c_uint64)
_Load = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, _CHARS, ctypes.c_size_t, ctypes.c_int)
_Find = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_Parameters))
_Launch = ctypes.CFUNCTYPE(
    *(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_uint)),
    *(ctypes.c_uint, ctypes.c_void_p),
)
_FindGlobal = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, _NUMBER, _NUMBER
)


def _include_folder() -> str:
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        for found in Path(folder).glob("*/include/cuda.h"):
            return str(found.parent)
    raise UnavailableError("there is no cuda.h: pip install nvidia-cuda-runtime")


def build() -> Path:
    """Compile the stand-in, unless that was done before; return the library.

    Raises:
        UnavailableError: there is no C compiler, or no ``cuda.h``.
    """
    if not sys.platform.startswith("linux") or sysconfig.get_platform() != "linux-x86_64":
        raise UnavailableError("the stand-in is for Linux on x86-64")
    compiler = shlex.split(os.environ.get("CC") or "cc")
    if not shutil.which(compiler[0]):
        raise UnavailableError(f"there is no C compiler ({compiler[0]})")
    command = [*compiler, *_FLAGS, "-Wl,-soname,libcuda.so.1", f"-I{_include_folder()}"]
    digest = hashlib.sha256(_SOURCE.read_bytes() + " ".join(command).encode()).hexdigest()[:16]
    library = _FOLDER / digest / "libcuda.so.1"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        written = library.with_suffix(f".{os.getpid()}")
        done = subprocess.run(
            [*command, str(_SOURCE), "-o", str(written)], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"the C compiler rejects {_SOURCE.name}:\n{done.stderr}")
        written.replace(library)
    return library


_REGISTERS = 65_536  # of a group


class _DeviceMemory(Memory):
    """The stand-in's memory, as a device's kernels may access it."""

    def __init__(self, library: ctypes.CDLL, device: int) -> None:
        self._library, self._device = library, device
        places = [ctypes.c_void_p() for _ in range(3)]
        size = ctypes.c_size_t()
        library.standin_memory(*map(ctypes.byref, places), ctypes.byref(size))
        face, inside, written = (each.value for each in places)
        assert face is not None
        assert inside is not None
        self.start = face
        self.bytes = np.frombuffer((ctypes.c_uint8 * size.value).from_address(inside), np.uint8)
        if written is not None:
            octets = (ctypes.c_uint8 * size.value).from_address(written)
            self.written = np.frombuffer(octets, np.uint8)
        self._room = np.zeros((256, 2), np.int64)

    def refresh(self) -> None:
        """Read the bounds of all allocations."""
        count = self._bounds()
        if count > len(self._room):
            self._room = np.zeros((2 * count, 2), np.int64)
            count = self._bounds()
        self.bounds = self._room[:count]

    def _bounds(self) -> int:
        place = self._room.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
        return int(self._library.standin_bounds(self._device, place, len(self._room)))

    def put(self, values: Any, align: int = 256) -> int:
        octets = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        address = int(self._library.standin_allocate(self._device, max(1, octets.size)))
        if not address:
            raise EmulationError("out of memory for a module's variables")
        offset = address - self.start
        self.bytes[offset : offset + octets.size] = octets
        if self.written is not None:
            self.written[offset : offset + octets.size] = 1
        return address


class _Loaded:
    """A module in the driver."""

    def __init__(self, text: str, registers: int) -> None:
        self.text, self.module = text, Module(text)
        self.registers = registers  # of a thread at most
        self.threads = {
            name: prod(map(int, sizes.split(",")))
            for name, sizes in re.findall(
                r"\.entry\s+([\w$]+)\s*\([^)]*\)[^{]*?\.(?:maxntid|reqntid)\s+([\d, ]+)", text
            )
        }
        self.entries = set(re.findall(r"\.entry\s+([\w$]+)", text))
        self.globals: dict[int, dict[str, int]] = {}  # by device

    def addresses(self, device: int, memory: _DeviceMemory) -> dict[str, int]:
        if device not in self.globals:
            self.globals[device] = self.module.place(memory)
        return self.globals[device]


def _code_of(error: BaseException) -> int:
    text = str(error)
    if isinstance(error, EndlessError) or "deadlock" in text:
        return ERRORS["LAUNCH_TIMEOUT"]
    if "outside of" in text or text.startswith("an access"):
        return ERRORS["ILLEGAL_ADDRESS"]
    if "misaligned" in text:
        return ERRORS["MISALIGNED_ADDRESS"]
    return ERRORS["LAUNCH_FAILED"]


class StandIn:
    """The driver of this process.

    Attributes:
        messages: the causes of faults and of rejected modules, newest last.
        modules: those that were loaded.
        registers: of each thread, in modules that are loaded from now on.
        late: the seed of delays with which stores of kernels reach other groups, or None.
    """

    late: int | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = library = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        library.standin_allocate.restype = ctypes.c_uint64
        library.standin_allocate.argtypes = [ctypes.c_int, ctypes.c_size_t]
        library.standin_calls.restype = ctypes.c_long
        library.standin_refuse.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int]
        library.standin_configure.argtypes = [ctypes.c_uint64, ctypes.c_long]
        self.messages: list[str] = []
        self.registers = 32
        self.modules: list[_Loaded] = []
        self._kernels: list[tuple[_Loaded, Function]] = []
        self._memories: dict[int, _DeviceMemory] = {}
        api = ctypes.pythonapi
        functions = [api.PyGILState_Check, api.PyEval_SaveThread, api.PyEval_RestoreThread]
        self._callbacks = [  # kept, because C has only their addresses
            _Load(self._load),
            _Find(self._find),
            _Launch(self._launch),
            _FindGlobal(self._find_global),
        ]
        addresses = [ctypes.cast(each, ctypes.c_void_p) for each in (*functions, *self._callbacks)]
        library.standin_connect((ctypes.c_void_p * len(addresses))(*addresses))
        atexit.register(library.standin_quit)

    # -- requests ----------------------------------------------------------------------------------

    def refuse(self, kind: str, nth: int = 1, error: str = "OUT_OF_MEMORY") -> None:
        """Let the nth call of a kind from now on return an error; ``nth=0`` takes it back.

        An ``"execution"`` is a launch that fails while it runs: its context is unusable from then
        on, as after an illegal address.
        """
        self._library.standin_refuse(KINDS.index(kind), nth, ERRORS[error])

    def calls(self, kind: str) -> int:
        """Return how many calls of a kind there were."""
        return int(self._library.standin_calls(KINDS.index(kind)))

    def lose(self, device: int, error: str = "UNKNOWN") -> None:
        """Let a device vanish: all calls that use it return an error."""
        self._library.standin_lose(device, ERRORS[error])

    def repair(self, device: int) -> None:
        """Repair a device that was lost, or a context after a fault, which no real driver does."""
        self._library.standin_lose(device, 0)

    def configure(self, seed: int, delay: int) -> None:
        """Set the seed of the order and the delays of work, and the usual longest delay in us."""
        self._library.standin_configure(seed, delay)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let no work begin in the block."""
        self._library.standin_hold(1)
        try:
            yield
        finally:
            self._library.standin_hold(0)

    # -- calls from C ------------------------------------------------------------------------------

    def _load(self, image: bytes, log: Any, size: int, registers: int) -> int:
        if image.startswith(b"\x7fELF") or not re.match(rb"\s*(//[^\n]*\s*)*\.version", image):
            return -ERRORS["NO_BINARY_FOR_GPU"]
        try:
            self.modules.append(_Loaded(image.decode(), registers))
        except Exception as error:
            self._note(f"a module is rejected: {error}")
            words = f"stand-in: {error}".encode()[: max(0, size - 1)] + b"\0"
            if size:
                ctypes.memmove(log, words, len(words))
            return -ERRORS["INVALID_PTX"]
        return len(self.modules) - 1

    def _find(self, number: int, name: bytes, found: Any) -> int:
        loaded = self.modules[number]
        function = loaded.module.functions.get(name.decode())
        if function is None or function.name not in loaded.entries:
            return 0
        self._kernels.append((loaded, function))
        parameters = found.contents
        parameters.number, parameters.count = len(self._kernels) - 1, len(function.layout)
        parameters.shared = static_shared(loaded.module)
        by_registers = _REGISTERS // min(self.registers, loaded.registers)
        parameters.threads = min(1024, by_registers, loaded.threads.get(function.name, 1024))
        end = 0
        for at, each in enumerate(function.layout):
            parameters.offsets[at] = end = -(-end // each.align) * each.align
            parameters.sizes[at] = each.nbytes
            end += each.nbytes
        return 1

    def _find_global(self, number: int, name: bytes, device: int, address: Any, size: Any) -> int:
        loaded = self.modules[number]
        found = [each for each in loaded.module.variables if each.name == name.decode()]
        if not found or found[0].space != "global":
            return 0
        address[0] = loaded.addresses(device, self._memory(device))[found[0].name]
        size[0] = found[0].nbytes
        return 1

    def _memory(self, device: int) -> _DeviceMemory:
        if device not in self._memories:
            self._memories[device] = _DeviceMemory(self._library, device)
        return self._memories[device]

    def _launch(self, number: int, device: int, dims: Any, shared: int, values: int | None) -> int:
        loaded, function = self._kernels[number]
        # Objects that are collected here might wait for a thread that waits for this launch.
        threshold = gc.get_threshold()
        gc.set_threshold(0)
        try:
            if prod(dims[:6]) > _THREADS:
                raise EndlessError(f"{prod(dims[:6])} threads are too many to emulate")
            memory = self._memory(device)
            addresses = loaded.addresses(device, memory)
            memory.refresh()
            memory.late = self.late
            arguments = _arguments(function, values)
            loaded.module.printed.clear()
            loaded.module.launch(
                function.name,
                dims[0:3],
                dims[3:6],
                arguments,
                memory,
                shared=shared,
                addresses=addresses,
                max_turns=_TURNS,
            )
            if loaded.module.printed:
                os.write(1, "".join(loaded.module.printed).encode())
        except EmulationError as error:
            self._note(f"kernel {function.name}: {error}")
            return _code_of(error)
        except BaseException:
            self._note(f"kernel {function.name}: the emulator failed: {traceback.format_exc()}")
            return ERRORS["LAUNCH_FAILED"]
        finally:
            gc.set_threshold(*threshold)
        return 0

    def _note(self, text: str) -> None:
        self.messages.append(text)
        print(f"CUDA stand-in: {text}", file=sys.__stderr__, flush=True)


def _arguments(function: Function, values: int | None) -> list[Any]:
    arguments, end = [], 0
    for each in function.layout:
        end = -(-end // each.align) * each.align
        octets = ctypes.string_at((values or 0) + end, each.nbytes)
        arguments.append(np.frombuffer(octets, each.dtype))
        end += each.nbytes
    return arguments


@functools.cache
def install() -> StandIn:
    """Make the stand-in the driver of this process, before anything asks for a driver.

    It is also that of processes which this one starts from now on.

    Raises:
        UnavailableError: it cannot be built, or another driver is loaded already.
    """
    try:
        loaded = ctypes.CDLL("libcuda.so.1", os.RTLD_NOLOAD)
    except OSError:
        path = build()
    else:
        if not hasattr(loaded, "standin_connect"):
            raise UnavailableError("another libcuda.so.1 is loaded already")
        path = Path(loaded._name)
    os.environ["CUDA_STANDIN_ROOT"] = str(Path(__file__).resolve().parents[2])
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    if path.is_absolute() and str(path.parent) not in folders:
        os.environ["LD_LIBRARY_PATH"] = ":".join([str(path.parent), *filter(None, folders)])
    return StandIn(path)


# --- the plugin -----------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    try:
        install()
    except UnavailableError as error:
        pytest.exit(f"skipped: there is no stand-in for libcuda.so.1: {error}", returncode=0)
    config.addinivalue_line("markers", "cuda_standin: needs the stand-in for libcuda.so.1")


def pytest_report_header() -> str:
    return f"driver: {install().path} (stand-in)"
