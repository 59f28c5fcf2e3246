"""Work that Ctrl-C, or the stop button of a notebook, must not tear in the middle."""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

# Without conversions from and to enumerations, which take five times as long.
_set, _get = inspect.unwrap(signal.signal), inspect.unwrap(signal.getsignal)


@contextmanager
def deferred() -> Iterator[None]:
    """An interrupt inside the block is raised at its end; processes started in it get none.

    Only the main thread is ever interrupted; in others, and where the program handles the signal in
    a way of its own that Python does not know, this does nothing.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    seen = []
    signal.signal(signal.SIGINT, lambda *signal_and_frame: seen.append(signal_and_frame))
    # A child inherits the mask, and a terminal sends the signal to it, too.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if seen:
            handler(*seen[-1])


def after(
    function: Callable[_Given, _Result], *args: _Given.args, **kwargs: _Given.kwargs
) -> _Result:
    """Call a function; an interrupt meanwhile is raised at its end.

    As :func:`deferred`, of a microsecond: processes that the function starts may be interrupted.
    """
    handler = _get(signal.SIGINT)
    if threading.get_ident() != threading.main_thread().ident or not callable(handler):
        return function(*args, **kwargs)
    seen = []
    _set(signal.SIGINT, lambda *signal_and_frame: seen.append(signal_and_frame))
    try:
        return function(*args, **kwargs)
    finally:
        _set(signal.SIGINT, handler)
        if seen:
            handler(*seen[-1])
