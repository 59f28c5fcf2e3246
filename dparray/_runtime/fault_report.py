"""Report a segmentation fault in a kernel with Python's ``faulthandler``.

A kernel on a CPU device is native code in this process, so an index far out of bounds can crash it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys


def enable() -> None:
    """Print the Python stack at a segmentation fault.

    A handler that the program installed is kept.
    """
    if faulthandler.is_enabled() or callable(signal.getsignal(signal.SIGSEGV)):
        return
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # There is no error stream.
        faulthandler.enable(sys.__stderr__)  # type: ignore[arg-type]
