"""The bundled kernels of a wheel: SPIR-V and PTX of dparray's kernels, which is only read.

Neither depends on the machine, so the file serves everybody. It has kernels of the collection and
common expressions, each for Intel's CPU driver and for other drivers. For NVIDIA GPUs it has the
kernels of the first programs. ``make kernels`` writes the file on any machine; a clone without it
compiles kernels when they are needed.

The key of an entry covers its kernel and a digest of all dparray files that determine the behavior
of device code (:func:`key.store_files`): after a change to one of them, no entry is found. An entry
whose own digest is wrong is ignored. The file is stored next to the code and is equally trusted.

``DPARRAY_KERNEL_STORE`` names another file; if it is empty, no file is used.

State: the file, mapped at the first lookup, and the kernels compiled while :func:`recorded` is
active.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dparray._compiler.abi import INTEL_CPU
from dparray._compiler.key import store_files
from dparray._driver.interface import Target

#: The targets of its kernels: all devices of SYCL have one of them.
TARGETS = (Target("spirv64", INTEL_CPU), Target("spirv64"))
#: The target of the kernels for NVIDIA GPUs, which have other forms than those for SYCL devices.
PTX = Target("ptx", "sm_75")
#: The location of the file in an installed package.
FILE = Path(__file__).with_name("kernels.store")
_VARIABLE = "DPARRAY_KERNEL_STORE"
_MAGIC = b"dparray kernels 1\n"
_COUNT = struct.Struct("<I")
_DIGEST_SIZE = 16
# key, offset and length of the content, its digest
_ENTRY = struct.Struct(f"<32sQQ{_DIGEST_SIZE}s")


@dataclass(frozen=True)
class _Store:
    """A memory-mapped file."""

    content: mmap.mmap
    count: int
    index: int

    def load(self, key: bytes) -> bytes | None:
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            found, start, length, digest = _ENTRY.unpack_from(
                self.content, self.index + middle * _ENTRY.size
            )
            if found == key:
                packed = self.content[start : start + length]
                if _digest(key, packed) != digest:
                    return None
                return zlib.decompress(packed)
            if found < key:
                low = middle + 1
            else:
                high = middle
        return None


def _digest(key: bytes, packed: bytes) -> bytes:
    return hashlib.blake2b(packed, digest_size=_DIGEST_SIZE, key=key).digest()


def _head(files: str) -> bytes:
    return _MAGIC + files.encode() + b"\n"


def _store() -> _Store | None:
    """Return the bundled kernels, if the file matches the present source files."""
    return _opened(os.environ.get(_VARIABLE, str(FILE)))


@functools.lru_cache(maxsize=4)
def _opened(name: str) -> _Store | None:
    path = Path(name)
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # the file is missing or empty
        return None
    head = _head(store_files())
    index = len(head) + _COUNT.size
    if content[: len(head)] != head or len(content) < index:
        return None
    (count,) = _COUNT.unpack_from(content, len(head))
    if len(content) < index + count * _ENTRY.size:
        return None
    return _Store(content, count, index)


def is_there() -> bool:
    """Return whether a file of bundled kernels matches the source files."""
    return _store() is not None


def load(key: str) -> bytes | None:
    """Return the bytes stored under a key, or ``None``."""
    store = _store()
    return None if store is None else store.load(bytes.fromhex(key))


def count() -> int:
    """Return the number of bundled kernels."""
    store = _store()
    return 0 if store is None else store.count


# --- creation -------------------------------------------------------------------------------------

_recorded: dict[str, bytes] = {}
#: The targets for which kernels are being recorded for a file; none if no file is being created.
recorded_targets: tuple[Target, ...] = ()


def record(key: str | None, payload: bytes) -> None:
    """Record a compiled kernel, while a file is being created."""
    if key is not None:
        _recorded[key] = payload


@contextlib.contextmanager
def recorded(targets: tuple[Target, ...] = TARGETS) -> Iterator[Mapping[str, bytes]]:
    """Yield the kernels that are compiled inside for each target, by their keys in the file."""
    global _recorded, recorded_targets
    _recorded, recorded_targets = {}, targets
    try:
        yield _recorded
    finally:
        recorded_targets = ()


def write(kernels: Mapping[str, bytes], path: Path) -> None:
    """Write a file of kernels; concurrent readers see either the old file or the new one."""
    head = _head(store_files()) + _COUNT.pack(len(kernels))
    start = len(head) + len(kernels) * _ENTRY.size
    index, contents = [], []
    for text, payload in sorted(kernels.items()):
        key, packed = bytes.fromhex(text), zlib.compress(payload, 9)
        index.append(_ENTRY.pack(key, start, len(packed), _digest(key, packed)))
        contents.append(packed)
        start += len(packed)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(b"".join([head, *index, *contents]))
    os.replace(temporary, path)
    _opened.cache_clear()
