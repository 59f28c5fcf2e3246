"""Work that the program does not wait for: kernels are compiled and loaded by one thread."""

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
    """Do ``work`` some time, after what was asked for before; what it raises is dropped.

    Nothing is begun while the interpreter ends.
    """
    global _thread
    with _changed:
        if _is_ended:
            return
        _waiting.append(work)
        if _thread is None:
            # The interpreter does not wait for it by itself: `_end` does, for what has begun.
            _thread = threading.Thread(target=_run, name="dparray-compile", daemon=True)
            _thread.start()
        _changed.notify_all()


def wait() -> None:
    """Return when all that was asked for is done."""
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
            pass  # the program goes on without the kernel, as before
        finally:
            del work
            with _changed:
                _is_working = False
                _changed.notify_all()


def _end() -> None:
    """Begin nothing more, and wait for what has begun: a compiler is not to be torn."""
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
    """Return a forked process has no such thread; what was asked for is its parent's."""
    global _changed, _thread, _is_working
    _changed = threading.Condition(threading.Lock())
    _waiting.clear()
    _thread, _is_working = None, False


atexit.register(_end)
