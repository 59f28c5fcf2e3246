"""Background work: one thread compiles and loads kernels while the program continues."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable

_changed = threading.Condition(threading.Lock())
_waiting: deque[Callable[[], None]] = deque()
_thread: threading.Thread | None = None
_is_working = False
_is_ended = False


def ask(work: Callable[[], None]) -> None:
    """Run ``work`` later, after earlier requests; exceptions are dropped.

    Nothing is started during interpreter shutdown.
    """
    global _thread
    with _changed:
        if _is_ended:
            return
        _waiting.append(work)
        if _thread is None:
            # The interpreter does not wait for this thread by itself: `_end` waits for running
            # work.
            _thread = threading.Thread(target=_run, name="dparray-compile", daemon=True)
            _thread.start()
        _changed.notify_all()


def wait() -> None:
    """Return when all requested work is done."""
    with _changed:
        _changed.wait_for(lambda: not _waiting and not _is_working)


def _run() -> None:
    global _is_working
    while True:
        with _changed:
            _changed.wait_for(lambda: _waiting or _is_ended)
            if _is_ended:
                return
            work = _waiting.popleft()
            _is_working = True
        try:
            work()
        except Exception:
            pass  # The program continues without the kernel, as before.
        finally:
            del work
            with _changed:
                _is_working = False
                _changed.notify_all()


def _end() -> None:
    """Start nothing more, and wait for running work: a compiler must not be interrupted."""
    global _is_ended
    with _changed:
        _is_ended = True
        _waiting.clear()
        _changed.notify_all()
    if _thread is not None and _thread is not threading.current_thread():
        _thread.join()


def has_worked() -> bool:
    """Return whether the thread was ever started, which builds with the driver."""
    return _thread is not None


def forget_in_child() -> None:
    """Return to the initial state in a forked process, which has no such thread."""
    global _changed, _thread, _is_working
    _changed = threading.Condition(threading.Lock())
    _waiting.clear()
    _thread, _is_working = None, False


atexit.register(_end)
