"""The disk cache of compiled kernels: opaque bytes under a key.

An entry is a file named by its key: a line that identifies the format, the SHA-256 of the rest,
and the rest. Entries are written to a temporary file in the same directory and moved into place,
so that a reader sees a whole entry or none; whatever fails the hash is a miss and is removed.
When the directory cannot be written (read-only, full, no home), one warning says so and the
process goes on without it.

The place is ``$DPARRAY_CACHE_DIR``, else ``$XDG_CACHE_HOME/dparray``, else ``~/.cache/dparray``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

_PLACE_VARIABLE = "DPARRAY_CACHE_DIR"
_MAGIC = b"dparray kernel 1\n"
_SUFFIX = ".kernel"
_TEMPORARY = ".part"
_HASH_SIZE = hashlib.sha256().digest_size
# A temporary file this old was left by a process that died while it wrote.
_ABANDONED_SECONDS = 3600.0
# The clock of an entry's last use is moved at most this often, to spare writes.
_TOUCH_SECONDS = 60.0
_PACKAGE = Path(__file__).parents[1]


class Stats(NamedTuple):
    """What the cache holds on disk, and what this process did with it."""

    place: Path
    entries: int
    nbytes: int
    limit: int
    hits: int
    misses: int
    saves: int


class _State:
    """Counters of this process, and whether it still writes."""

    def __init__(self) -> None:
        self.limit = 256 * 2**20
        self.hits = self.misses = self.saves = 0
        self.unchecked: int | None = None  # bytes saved since the size was last checked
        self.warned = False
        self.writes = True


_state = _State()


def place() -> Path:
    """The directory of the cache; it is made when something is first saved."""
    chosen = os.environ.get(_PLACE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "dparray"


def load(key: str) -> bytes | None:
    """The bytes saved under ``key``, or ``None``; a damaged entry is removed and is ``None``."""
    try:
        path = place() / (key + _SUFFIX)
        text = path.read_bytes()
    except (OSError, RuntimeError):  # whoever makes the entry anew hears of it if that fails, too
        _state.misses += 1
        return None
    payload = _checked(text)
    if payload is None:
        _state.misses += 1
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    _state.hits += 1
    with contextlib.suppress(OSError):
        if not 0 <= time.time() - path.stat().st_mtime <= _TOUCH_SECONDS:
            os.utime(path)
    return payload


def _checked(text: bytes) -> bytes | None:
    start = len(_MAGIC) + _HASH_SIZE
    if not text.startswith(_MAGIC) or len(text) < start:
        return None
    payload = text[start:]
    return payload if hashlib.sha256(payload).digest() == text[len(_MAGIC) : start] else None


def save(key: str, payload: bytes) -> None:
    """Keep ``payload`` under ``key`` for this and other processes; never raises on a bad disk."""
    if not _state.writes:
        return
    text = _MAGIC + hashlib.sha256(payload).digest() + payload
    temporary = None
    try:
        directory = place()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(suffix=_TEMPORARY, dir=directory)
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        os.replace(temporary, directory / (key + _SUFFIX))
    except (OSError, RuntimeError) as error:
        # A directory in the place of one entry does not keep others from being written.
        _state.writes = isinstance(error, IsADirectoryError)
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        _warn(f"cannot be written ({error})")
        return
    _state.saves += 1
    if _state.unchecked is None or _state.unchecked + len(text) > _state.limit // 16:
        _state.unchecked = 0
        _trim(directory)
    else:
        _state.unchecked += len(text)


def _warn(problem: str) -> None:
    """Say once, at the user's line, that kernels are not kept."""
    if not _state.warned:
        _state.warned = True
        level, frame = 1, sys._getframe()
        while frame.f_back is not None and Path(frame.f_code.co_filename).is_relative_to(_PACKAGE):
            level, frame = level + 1, frame.f_back
        warnings.warn(
            f"dparray's kernel cache {problem}; kernels are compiled anew in every process. "
            f"Set {_PLACE_VARIABLE} to a directory that can be written.",
            RuntimeWarning,
            stacklevel=level,
        )


def _entries(directory: Path) -> list[tuple[float, int, Path]]:
    """Last use, size and path of every entry."""
    found = []
    with contextlib.suppress(OSError), os.scandir(directory) as files:
        for file in files:
            with contextlib.suppress(OSError):  # another process removed it
                if file.name.endswith(_SUFFIX):
                    status = file.stat()
                    found.append((status.st_mtime, status.st_size, Path(file.path)))
    return found


def _trim(directory: Path) -> None:
    """Remove what dead processes left, and the longest unused entries above the limit."""
    now = time.time()
    for leftover in directory.glob("*" + _TEMPORARY):
        with contextlib.suppress(OSError):
            if abs(now - leftover.stat().st_mtime) > _ABANDONED_SECONDS:
                leftover.unlink()
    entries = sorted(_entries(directory))
    total = sum(size for _, size, _ in entries)
    if total <= _state.limit:
        return
    # Some room, so that the next saves need not trim again.
    allowed = _state.limit - _state.limit // 8
    for _, size, path in entries:
        if total <= allowed:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size


def stats() -> Stats:
    """What the cache holds, and what this process did with it."""
    directory = place()
    entries = _entries(directory)
    return Stats(
        directory,
        len(entries),
        sum(size for _, size, _ in entries),
        _state.limit,
        _state.hits,
        _state.misses,
        _state.saves,
    )


def set_limit(nbytes: int) -> int:
    """Bound the cache to ``nbytes`` on disk; returns the previous limit.

    Raises:
        ValueError: ``nbytes`` is negative.
    """
    if nbytes < 0:
        raise ValueError(f"set_limit: nbytes must not be negative; got {nbytes}")
    previous, _state.limit = _state.limit, nbytes
    _state.unchecked = None
    return previous


def clear() -> int:
    """Remove every entry; returns how many were removed."""
    removed = 0
    directory = place()
    for _, _, path in _entries(directory):
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
    for leftover in directory.glob("*" + _TEMPORARY):
        with contextlib.suppress(OSError):
            leftover.unlink()
    return removed
