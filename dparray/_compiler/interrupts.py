"""Protect work that Ctrl-C, or the stop button of a notebook, must not interrupt in the middle."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dparray._system import interrupts_blocked


@contextmanager
def deferred() -> Iterator[None]:
    """Defer an interrupt inside the block to its end; processes started in the block receive none.

    Only the main thread receives interrupts. In other threads, and if the program handles the
    signal outside Python, this does nothing.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    seen = []
    signal.signal(signal.SIGINT, lambda *signal_and_frame: seen.append(signal_and_frame))
    try:
        # A child inherits the mask, and a terminal sends the signal to the child too.
        with interrupts_blocked():
            yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if seen:
            handler(*seen[-1])
