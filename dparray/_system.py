"""Functions that depend on the operating system: processors, memory, users, signals and folders.

Linux, macOS and Windows are supported. Each function uses what a system has, and does without what
it lacks; no other module of the base package uses a name that one of the three lacks.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

#: Flags of `os.open` for bytes. Windows would translate ends of lines.
READ_BYTES = os.O_RDONLY | getattr(os, "O_BINARY", 0)
#: The same for files that others may have replaced by links or pipes; Windows has neither.
READ_REGULAR = READ_BYTES | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
#: The flag of `subprocess.Popen` for a process that Ctrl-C does not end on Windows.
WITHOUT_INTERRUPTS: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
#: The status of a process that another one, or the system for want of memory, has ended.
KILLED = tuple(-getattr(signal, name) for name in ("SIGKILL", "SIGTERM") if hasattr(signal, name))


def usable_cores() -> list[int]:
    """Return the numbers of the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


#: Whether a process can be bound to some of the processors.
CAN_BIND = hasattr(os, "sched_setaffinity")


def bind_to_cores(cores: list[int]) -> None:
    """Bind this process and its threads to processors; only where :data:`CAN_BIND`."""
    os.sched_setaffinity(0, cores)


def processor_name(source: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor."""
    with contextlib.suppress(OSError):
        for line in source.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


# --- memory ---------------------------------------------------------------------------------------


class _WindowsMemory(ctypes.Structure):
    """``MEMORYSTATUSEX`` of Windows."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("physical", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 5),
    )


def _windows_memory() -> _WindowsMemory:
    status = _WindowsMemory(size=ctypes.sizeof(_WindowsMemory))
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):  # type: ignore[attr-defined]
        raise OSError("GlobalMemoryStatusEx failed")
    return status


def physical_memory() -> int:
    """Return the bytes of memory of this machine."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(_windows_memory().physical)


def available_memory(held: int) -> int | None:
    """Return the bytes that can be used without swapping or a killed process; ``None`` if they are
    not known.

    Args:
        held: the bytes that this process has allocated for later use. Linux counts those of them as
            available that were never accessed; Windows does not.
    """
    try:
        if hasattr(ctypes, "windll"):
            return int(_windows_memory().available)
        left, resident = _linux_memory()
        return left - max(held - resident, 0)
    except (OSError, ValueError, NameError):  # `open` may be deleted during finalization.
        return None


def _linux_memory() -> tuple[int, int]:
    left = _first_number("/proc/meminfo", "MemAvailable:") * 1024
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for limit_file, stat_file, used in _CONTROL_GROUPS:
        try:
            with open(limit_file) as file:
                limit = int(file.read())
            if limit < physical_memory():
                left = min(left, limit - _first_number(stat_file, used))
        except (OSError, ValueError):  # There is no such control group, or it has no limit ("max").
            continue
    return left, resident


# cgroup v2 and v1 files with the memory limit and the memory use of a container.
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.stat", "anon"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
        "total_rss",
    ),
)


def _first_number(path: str, name: str) -> int:
    """Return the number after ``name`` in a file in the kernel's usual format."""
    with open(path) as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    raise ValueError(f"{path} does not say {name}")


# --- signals --------------------------------------------------------------------------------------


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block interrupts of this thread, and of processes that it starts in the block.

    Windows has no mask of signals; processes are started with :data:`WITHOUT_INTERRUPTS` there.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- users, files and folders ---------------------------------------------------------------------


def is_own(status: os.stat_result) -> bool:
    """Return whether a file belongs to this user, which Windows does not tell."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def objection(status: os.stat_result, is_private: bool = False) -> str:
    """Return why a file or folder may not be this user's own work; empty if it is.

    Windows does not number users, so nothing is objected to there. A new folder inherits the access
    list of the folder above; in a user's profile, only that user and administrators have access.

    Args:
        status: of the file.
        is_private: whether others must not be able to read it, either.
    """
    if not is_own(status):
        return "belongs to another user"
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    if is_private and status.st_mode & (stat.S_IRGRP | stat.S_IROTH):
        return "can be read by other users"
    return ""


def is_open_to_all(status: os.stat_result) -> bool:
    """Return whether each user can replace the files of others in a folder."""
    is_writable = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
    return bool(is_writable) and hasattr(os, "geteuid")


def add_name(source: str, target: Path) -> None:
    """Move a complete file to a name, unless that name is in use; then remove the file."""
    try:
        os.link(source, target)
    except FileExistsError:
        pass
    except OSError:  # a disk without hard links, as FAT
        with contextlib.suppress(FileExistsError):  # on Windows; elsewhere the last file stays
            os.rename(source, target)
            return
    os.unlink(source)


def replace(source: str, target: Path) -> None:
    """Replace a file by another one with the same content, or by the first one of its name.

    Windows refuses while another process reads the old file, which then stays.
    """
    try:
        os.replace(source, target)
    except PermissionError:
        if not target.is_file():
            raise
        os.unlink(source)


def cache_folder() -> Path:
    """Return the folder for the user's cached files, which may not exist yet.

    Raises:
        OSError: the user has no home directory.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base, "dparray")
    home = _home_directory()
    if sys.platform == "linux":
        return home / ".cache" / "dparray"
    import platformdirs

    return platformdirs.user_cache_path("dparray", appauthor=False)


def _home_directory() -> Path:
    """Return the user's home directory; dparray does not create a missing one."""
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):
        try:
            home = _home_by_passwd()
        except ImportError:  # Only POSIX systems have the module `pwd`.
            home = os.path.expanduser("~")
    if not os.path.isdir(home):
        raise OSError(f"the home directory {home} does not exist")
    return Path(home)


def _home_by_passwd() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise OSError(
            f"HOME is not set, and user {os.getuid()} has no entry in the passwd database"
        ) from None
