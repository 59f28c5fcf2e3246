"""Run tests in a process that has only what Windows has too, as a pytest plugin.

    python -m pytest -q -p tests.host.without_posix tests/test_tiny.py tests/kernel

Modules and functions that only POSIX systems have are absent. Names of files follow Windows' rules:
no reserved characters, upper and lower case alike in the cache folder, and a file that is open can
be neither replaced nor removed. Arrays are on `host:cpu`, without SYCL.
"""

from __future__ import annotations

import asyncio  # noqa: F401  Python's own modules take what they need before it is gone.
import builtins
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile  # noqa: F401  as asyncio
import types
from collections.abc import Callable
from typing import Any

import numpy  # noqa: F401
import pytest
from _pytest import tmpdir

from tests.host.on_host import (  # noqa: F401  the hooks of that plugin
    pytest_collection_modifyitems,
    pytest_runtest_call,
    pytest_runtest_setup,
    pytest_sessionstart,
)

MODULES = ("curses", "fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios")
OS_NAMES = (
    *("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "chown", "fchdir", "fchmod", "fork"),
    *("forkpty", "getegid", "geteuid", "getgid", "getloadavg", "getpgid", "getuid", "killpg"),
    *("mkfifo", "nice", "posix_spawn", "register_at_fork", "sched_getaffinity", "setsid"),
    *("sched_setaffinity", "sysconf", "uname", "wait4", "getsid", "openpty", "setuid", "statvfs"),
)
SIGNAL_NAMES = (
    *("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2"),
    *("alarm", "pthread_kill", "pthread_sigmask", "setitimer", "siginterrupt", "sigwait"),
)
#: The sizes that the stand-in for Windows' memory status reports.
MEMORY, AVAILABLE = 16 << 30, 8 << 30
#: Names of devices, which Windows reserves in every folder and with every extension.
DEVICES = {
    *("AUX", "CON", "CONIN$", "CONOUT$", "NUL", "PRN"),
    *(port + number for port in ("COM", "LPT") for number in "123456789¹²³"),
}

_listdir, _readlink = os.listdir, os.readlink


def _is_open(path: str) -> bool:
    """Return whether this process has a file open."""
    for handle in _listdir("/proc/self/fd"):
        try:
            if _readlink(f"/proc/self/fd/{handle}") == path:
                return True
        except OSError:  # the one that listed the folder
            continue
    return False


class _Absent:
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def is_reserved(part: str) -> bool:
    """Return whether Windows rejects a part of a path, as ``ntpath.isreserved`` of Python 3.13."""
    if part in (".", ".."):
        return False
    if part.endswith((" ", ".")) or any(each in '<>:"|?*\\' or each < " " for each in part):
        return True
    return part.partition(".")[0].rstrip(" ").upper() in DEVICES


def check_name(path: Any) -> str | None:
    """Return a path as Windows compares it, if it is of the cache; raise if Windows rejects it.

    Names below the cache folder and below the working folder are checked.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        return None
    text = os.fsdecode(path)
    if text.startswith(("/proc", "/sys")) and sys._getframe(2).f_globals["__name__"].startswith(
        "dparray"
    ):
        raise FileNotFoundError(text)
    cache = os.environ.get("DPARRAY_CACHE_DIR")
    for folder in (cache, os.getcwd()):
        if folder and text.startswith(folder):
            break
    else:
        folder = ""
    if not folder and os.path.isabs(text):
        return None
    rest = text[len(folder) :].lstrip("/")
    for part in filter(None, rest.split("/")):
        if is_reserved(part):
            raise OSError(22, f"Windows has no such name: {part}")
    return os.path.join(folder, rest.lower()) if folder and folder == cache else None


def _checking(function: Callable[..., Any], paths: int = 1, changes: bool = False) -> Any:
    def checked(*arguments: Any, **options: Any) -> Any:
        given = list(arguments)
        for at in range(min(paths, len(given))):
            known = check_name(given[at])
            if known is not None:
                if changes and _is_open(known):
                    raise PermissionError(13, f"another program uses the file: {known}")
                given[at] = known
        return function(*given, **options)

    return checked


def _install() -> None:
    sys.meta_path.insert(0, _Absent())  # type: ignore[arg-type]
    for name in MODULES:
        sys.modules.pop(name, None)
    # Python's subprocess is that of Linux, and ends processes by a signal that dparray cannot name.
    subprocess.signal = types.SimpleNamespace(**vars(signal))  # type: ignore[attr-defined]
    tmpdir.get_user_id = lambda: None  # as pytest does on Windows
    # Folders are removed by their paths there. From Python 3.14 on, that is decided at its import.
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    shutil._rmtree_impl = getattr(shutil, "_rmtree_unsafe")  # type: ignore[attr-defined]  # noqa: B009
    for name in OS_NAMES:
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNAL_NAMES:
        delattr(signal, name)
    ctypes.windll = stand_in_for_windows()  # type: ignore[attr-defined]

    builtins.open = _checking(open)
    for name in ("open", "mkdir", "stat", "lstat", "scandir", "utime", "listdir"):
        setattr(os, name, _checking(getattr(os, name)))
    for name in ("unlink", "remove"):
        setattr(os, name, _checking(getattr(os, name), changes=True))
    for name in ("replace", "rename", "link"):
        setattr(os, name, _checking(getattr(os, name), paths=2, changes=True))


def stand_in_for_windows() -> Any:
    """Return a stand-in for ``ctypes.windll`` with the function that dparray calls."""
    kernel32 = types.SimpleNamespace(GlobalMemoryStatusEx=_memory_status)
    return types.SimpleNamespace(kernel32=kernel32)


def _memory_status(reference: Any) -> int:
    """Fill in the structure of Windows by the layout of its documentation."""
    structure = reference._obj
    assert ctypes.sizeof(structure) == 64, "MEMORYSTATUSEX has 64 bytes"
    words = (ctypes.c_uint64 * 8).from_address(ctypes.addressof(structure))
    assert words[0] & 0xFFFFFFFF == 64, "its first member is its size"
    words[1], words[2] = MEMORY, AVAILABLE
    return 1


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Take away what Windows lacks, before anything imports dparray or the tests' own modules."""
    _install()
