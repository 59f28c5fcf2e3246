"""The disk cache of compiled kernels and native regions: opaque bytes under a key.

Entries are files in a folder, ``kernels-2``, below the base directory. A file is named by its key,
and holds a line that identifies the format, the key, a digest of key and content, and the content.
An entry is written to a temporary file in the same folder and renamed, so a reader sees a whole
entry or none. An entry with a wrong digest is a miss and is removed.

Loaded entries run as native code, so they must have been written by this user. The digest is keyed
with a secret, which is stored next to the entries in a file that only the user can read. A folder
or file that belongs to another user, or that others can write to, is not used, with one warning. If
the folder cannot be written (read-only, full, no home directory), one warning reports it, and the
process continues without the cache.

The base directory is ``$DPARRAY_CACHE_DIR``, otherwise ``$XDG_CACHE_HOME/dparray``, otherwise the
system's folder for caches, ``~/.cache/dparray`` on Linux. A relative ``XDG_CACHE_HOME`` or ``HOME``
is ignored, as the XDG specification requires, and a missing home directory is not created.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import NamedTuple

from dparray import _hooks, _system

_DIRECTORY_VARIABLE = "DPARRAY_CACHE_DIR"
_FOLDER = "kernels-2"
_SECRET = "secret"
_MAGIC = b"dparray kernel 2\n"
_SUFFIX = ".kernel"
#: The suffix of native regions, which ``dp.jit`` compiles.
REGION = ".region"
#: The suffix of digests of dparray's own files, which are no compiled code and not counted as such.
DIGEST = ".digest"
_TEMPORARY = ".part"
_KEY = re.compile(r"[0-9a-f]{64}")
# The only files that are ever removed.
_ENTRY_NAME = re.compile(rf"{_KEY.pattern}\.(?:kernel|region|digest)")
_TEMPORARY_NAME = re.compile(rf"(?:{_KEY.pattern}|{_SECRET})\.\w+" + re.escape(_TEMPORARY))
_SECRET_SIZE = _DIGEST_SIZE = 32
# No entry comes near this size; a larger file is not an entry.
_MAX_BYTES = 1 << 30
# A temporary file of this age was left by a process that died while writing.
_ABANDONED_SECONDS = 3600.0
# The last-use time of an entry is updated at most this often, to save writes.
_TOUCH_SECONDS = 60.0


class Stats(NamedTuple):
    """Size of the cache on disk, and its use by this process; ``directory`` is ``None`` if no
    location is known. ``regions`` counts the native code of functions compiled by ``dp.jit``,
    ``entries`` everything else.
    """

    directory: Path | None
    entries: int
    nbytes: int
    limit: int
    hits: int
    misses: int
    saves: int
    regions: int = 0
    region_bytes: int = 0


class _State:
    """Counters of this process, and whether it still writes."""

    def __init__(self) -> None:
        self.limit = 256 * 2**20
        self.hits = self.misses = self.saves = 0
        self.unchecked: int | None = 0  # bytes saved since the last check; None forces a check
        self.warned = False
        self.writes = True


_state = _State()


class _NoDirectory(OSError):
    """No location for the cache is known."""


def base_directory() -> Path | None:
    """Return the directory of the cache, which is created at the first save.

    ``None`` if there is none, for example for a container user without a home directory.
    """
    try:
        return _base_directory()
    except _NoDirectory:
        return None


def missing_reason() -> str:
    """Return why there is no base directory; empty if there is one."""
    try:
        _base_directory()
    except _NoDirectory as error:
        return str(error)
    return ""


def _base_directory() -> Path:
    chosen = os.environ.get(_DIRECTORY_VARIABLE)
    if chosen:
        try:
            return Path(chosen).expanduser()
        except RuntimeError:
            raise _NoDirectory(f"{_DIRECTORY_VARIABLE}={chosen}: no such user") from None
    try:
        return _system.cache_folder()
    except OSError as error:
        raise _NoDirectory(str(error)) from None


class _Refused(OSError):
    """A folder or a file that another user may have written."""


def folder() -> Path:
    """Return the folder of the entries, below the base directory; it holds nothing else.

    Raises:
        OSError: there is no base directory.
    """
    return _base_directory() / _FOLDER


def load(key: str, suffix: str = _SUFFIX) -> bytes | None:
    """Return the bytes saved under ``key``, or ``None``; a damaged entry is removed."""
    payload = _loaded(key, suffix)
    if suffix != DIGEST:
        _state.misses += payload is None
        _state.hits += payload is not None
    return payload


def _loaded(key: str, suffix: str) -> bytes | None:
    try:
        directory = folder()
        path = directory / (key + suffix)
        _check_folders(directory)
        text = _read(path)
        secret = _read(directory / _SECRET, private=True)
    except _Refused as error:
        _warn_refused(error)
        return None
    except OSError:  # A failure is reported again when the entry is saved.
        return None
    payload = _checked(text, key, secret)
    if payload is None:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        if not 0 <= time.time() - path.stat().st_mtime <= _TOUCH_SECONDS:
            os.utime(path)
    return payload


def _check_folders(directory: Path) -> None:
    """Reject a folder of entries that belongs to another user or that others can write to.

    The directory above may be shared like ``/tmp``, where users can remove only their own files.
    """
    if _system.is_open_to_all(directory.parent.stat()):
        raise _Refused(f"{directory.parent} can be written by other users")
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise _Refused(f"{directory} is not a folder")
    _check_owner(directory, status)


def _check_owner(path: Path, status: os.stat_result, is_private: bool = False) -> None:
    if objection := _system.objection(status, is_private):
        raise _Refused(f"{path} {objection}")


def _read(path: Path, private: bool = False) -> bytes:
    """Return the content of a regular file of this user; never block on other kinds of files.

    Raises:
        OSError: there is no such file, or it is not a regular file.
        _Refused: it belongs to another user, others can write to it, or it should be private and is
            not.
    """
    handle = os.open(path, _system.READ_REGULAR)
    try:  # Without the layers of `open`, which slow down the first launches of a process.
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            raise OSError(f"{path} is not an entry")
        _check_owner(path, status, private)
        parts = []
        while part := os.read(handle, status.st_size + 1):  # Reading on detects the end.
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def _digest(key: str, payload: bytes, secret: bytes) -> bytes:
    text = key.encode() + b"\n" + payload
    return hashlib.blake2b(text, digest_size=_DIGEST_SIZE, key=secret).digest()


def _checked(text: bytes, key: str, secret: bytes) -> bytes | None:
    head = _MAGIC + key.encode() + b"\n"
    start = len(head) + _DIGEST_SIZE
    if len(secret) != _SECRET_SIZE or not text.startswith(head) or len(text) < start:
        return None
    payload = text[start:]
    is_ours = hmac.compare_digest(_digest(key, payload, secret), text[len(head) : start])
    return payload if is_ours else None


def save(key: str, payload: bytes, suffix: str = _SUFFIX) -> None:
    """Save ``payload`` under ``key`` for this and other processes; never raises for disk problems.

    Args:
        key: a SHA-256 in hexadecimal.
        payload: any bytes.
        suffix: the end of the file's name, which tells kernels from native regions. A failure to
            save a digest is silent: nothing is compiled again because of it.
    """
    if not _state.writes:
        return
    if not _KEY.fullmatch(key):
        raise ValueError(f"save: the key must be 64 hexadecimal digits; got {key!r}")
    temporary = None
    try:
        directory = folder()
        # `parents=True` would let others write to new folders above, depending on the umask.
        for each in () if directory.exists() else reversed((directory, *directory.parents)):
            each.mkdir(mode=0o700, exist_ok=True)
        _check_folders(directory)
        digest = _digest(key, payload, _secret_of(directory))
        text = b"".join((_MAGIC, key.encode(), b"\n", digest, payload))
        temporary = _written(directory, key, text)
        _system.replace(temporary, directory / (key + suffix))
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if suffix == DIGEST:
            return
        # A directory with the name of one entry does not prevent others from being written.
        _state.writes = isinstance(error, IsADirectoryError)
        if isinstance(error, _Refused):
            _warn_refused(error)
        else:
            _warn(f"cannot be written ({error})")
        return
    _state.saves += suffix != DIGEST
    unchecked = _state.unchecked
    if unchecked is None or unchecked + len(text) > _state.limit // 16 or _is_sampled(key):
        _state.unchecked = 0
        _trim(directory)
    else:
        _state.unchecked = unchecked + len(text)


def _is_sampled(name: str) -> bool:
    """Return whether to check the cache's size after this entry: reading all sizes takes long."""
    return int(name, 16) % 64 == 0


def _written(directory: Path, name: str, text: bytes) -> str:
    """Return a new temporary file that only this user can read."""
    handle, temporary = tempfile.mkstemp(_TEMPORARY, name + ".", directory)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return temporary


def _secret_of(directory: Path) -> bytes:
    """Return the secret of a folder, creating it if missing. Concurrent processes agree on one."""
    path = directory / _SECRET
    with contextlib.suppress(FileNotFoundError):
        found = _read(path, private=True)
        if len(found) == _SECRET_SIZE:
            return found
        path.unlink()
    temporary = _written(directory, _SECRET, secrets.token_bytes(_SECRET_SIZE))
    _system.add_name(temporary, path)  # completely, or not at all
    return _read(path, private=True)


def _warn_refused(error: _Refused) -> None:
    _warn(f"is not used: {error}, and its content would run as native code")


def _warn(problem: str) -> None:
    """Warn once, at the user's line, that compiled code is not cached.

    On a dparray thread, the warning names the current line of the main thread.
    """
    if _state.warned:
        return
    _state.warned = True
    frame = _hooks.user_frame()
    if frame is None:
        frame = _hooks.user_frame(sys._current_frames().get(threading.main_thread().ident or 0))
    file, line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("dparray", 0)
    warnings.warn_explicit(
        f"dparray's cache {problem}; kernels and functions are compiled again in every process. "
        f"Set {_DIRECTORY_VARIABLE} to a directory that you, and no other user, can write to.",
        RuntimeWarning,
        file,
        line,
        frame.f_globals.get("__name__") if frame else None,
        frame.f_globals.setdefault("__warningregistry__", {}) if frame else None,
    )


def _own_files(directory: Path, name: re.Pattern[str]) -> list[tuple[float, int, Path]]:
    """Return last use, size and path of regular files of this user that match a pattern."""
    found = []
    with contextlib.suppress(OSError), os.scandir(directory) as files:
        for file in files:
            with contextlib.suppress(OSError):  # another process removed it
                if name.fullmatch(file.name) and file.is_file(follow_symlinks=False):
                    status = file.stat(follow_symlinks=False)
                    if _system.is_own(status):
                        found.append((status.st_mtime, status.st_size, Path(file.path)))
    return found


def _trim(directory: Path) -> None:
    """Remove leftovers of dead processes, and the least recently used entries above the limit."""
    now = time.time()
    for changed, _, leftover in _own_files(directory, _TEMPORARY_NAME):
        with contextlib.suppress(OSError):
            if abs(now - changed) > _ABANDONED_SECONDS:
                leftover.unlink()
    entries = sorted(_own_files(directory, _ENTRY_NAME))
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
    """Return the size of the cache, and its use by this process."""
    base = base_directory()
    found = _own_files(base / _FOLDER, _ENTRY_NAME) if base else []
    found = [each for each in found if each[2].suffix != DIGEST]
    regions = [size for _, size, path in found if path.suffix == REGION]
    return Stats(
        base,
        len(found) - len(regions),
        sum(size for _, size, _ in found),
        _state.limit,
        _state.hits,
        _state.misses,
        _state.saves,
        len(regions),
        sum(regions),
    )


def set_limit(nbytes: int) -> int:
    """Limit the cache to ``nbytes`` on disk; return the previous limit.

    Raises:
        ValueError: ``nbytes`` is negative.
    """
    if nbytes < 0:
        raise ValueError(f"set_limit: nbytes must not be negative; got {nbytes}")
    previous, _state.limit = _state.limit, nbytes
    _state.unchecked = None
    return previous


def clear() -> int:
    """Remove every entry, and no other file; return the number of removed entries."""
    removed = 0
    base = base_directory()
    if base is None:
        return 0
    directory = base / _FOLDER
    for _, _, path in _own_files(directory, _ENTRY_NAME):
        with contextlib.suppress(OSError):
            path.unlink()
            removed += path.suffix != DIGEST
    for _, _, leftover in _own_files(directory, _TEMPORARY_NAME):
        with contextlib.suppress(OSError):
            leftover.unlink()
    return removed
