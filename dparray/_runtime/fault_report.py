"""Report a segmentation fault in a kernel by Python's ``faulthandler``.

A kernel on a CPU device is native code in this process, so an index far out of bounds ends it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys


def enable() -> None:
    """Let a segmentation fault print the Python lines that ran.

    A handler of the program's own stays.
    """
    if faulthandler.is_enabled() or callable(signal.getsignal(signal.SIGSEGV)):
        return
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # there is no error stream
        faulthandler.enable(sys.__stderr__)  # type: ignore[arg-type]
