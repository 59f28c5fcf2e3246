"""The store of kernels that a wheel ships: SPIR-V of our own kernels, read and never written.

SPIR-V depends on no machine, so what is made once serves everybody: kernels of the collection, that
Numba would take a second to compile, and expressions that most programs have. ``make kernels``
writes the file; a clone without it compiles what it needs.

An entry is found by what its kernel is made of and by a digest of all our files that decide what
device code does (:func:`key.store_files`): after a change to one of them no entry is found,
whatever the file holds. An entry that fails its own digest is none. The file lies with the code and
is trusted as the code is.

``DPARRAY_KERNEL_STORE`` names another file; an empty name, none.

State: the file, mapped when a kernel is first looked up; what was compiled while :func:`recorded`
runs.
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

from dparray._compiler.key import store_files

#: Where the store of an installed package is.
FILE = Path(__file__).with_name("kernels.store")
_VARIABLE = "DPARRAY_KERNEL_STORE"
_MAGIC = b"dparray kernels 1\n"
_COUNT = struct.Struct("<I")
_DIGEST_SIZE = 16
_ENTRY = struct.Struct(f"<32sQQ{_DIGEST_SIZE}s")  # key, place and length of the content, its digest


@dataclass(frozen=True)
class _Store:
    """A file, mapped."""

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
    """The store, if there is one that was made of the files that are here now."""
    return _opened(os.environ.get(_VARIABLE, str(FILE)))


@functools.lru_cache(maxsize=4)
def _opened(name: str) -> _Store | None:
    path = Path(name)
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # there is none; it is empty
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
    """Return whether there is a store that fits our files."""
    return _store() is not None


def load(key: str) -> bytes | None:
    """Return the bytes that the store has under a key, or ``None``."""
    store = _store()
    return None if store is None else store.load(bytes.fromhex(key))


def count() -> int:
    """Return the number of kernels in the store."""
    store = _store()
    return 0 if store is None else store.count


# --- making it ------------------------------------------------------------------------------------

_recorded: dict[str, bytes] | None = None


def is_recording() -> bool:
    """Return whether a store is being made."""
    return _recorded is not None


def record(key: str | None, payload: bytes) -> None:
    """Take note of a kernel that was compiled, while a store is being made."""
    if _recorded is not None and key is not None:
        _recorded[key] = payload


@contextlib.contextmanager
def recorded() -> Iterator[Mapping[str, bytes]]:
    """Return the kernels that are compiled inside, by their keys in the store."""
    global _recorded
    _recorded = {}
    try:
        yield _recorded
    finally:
        _recorded = None


def write(kernels: Mapping[str, bytes], path: Path) -> None:
    """Make a store of kernels; who reads the file meanwhile sees the old one or the new one."""
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
