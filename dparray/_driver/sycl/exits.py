"""End the process without waiting for a kernel that never ends.

dpctl waits at exit for the work on all queues, and SYCL's destructors wait for the threads that
carry it out. Both waits are skipped if work continues after a short time, or if the program was
interrupted while it waited for that work. The process then ends with the status that Python gives
it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import signal
import sys
import time

import dpctl
import dpctl.memory

from dparray._driver.sycl import in_order
from dparray._driver.sycl.order import forget_at_exit, order_of, used_queues
from dparray._driver.waiting import is_main_thread

#: The seconds that an ending process waits for work whose results nobody will read.
SECONDS = 2.0
_PAUSE = 0.005


def leave_without_destructors() -> None:
    """Make ``exit`` of the C library skip SYCL's destructors, which wait for its threads.

    Handlers run in reverse order of registration: the streams are closed, then the process ends
    with its status.
    """
    library = ctypes.CDLL(None)
    if sys.platform == "linux" and hasattr(library, "on_exit"):
        library.on_exit(library._exit, None)
        library.on_exit(library.fcloseall, None)


def _wait_a_while() -> None:
    if in_order.is_refused():
        return
    running = [queue for queue in used_queues() if not order_of(queue).is_done()]
    if not running:
        return
    seconds = 0.0 if in_order.interrupted_waits() else SECONDS
    end = time.monotonic() + seconds
    try:
        while running and time.monotonic() < end:
            time.sleep(_PAUSE)
            running = [queue for queue in running if not order_of(queue).is_done()]
    except KeyboardInterrupt:
        seconds = 0.0
    if not running:
        return
    if seconds:
        print(
            f"dparray: a kernel still runs after {SECONDS:g} s; the process ends without it "
            "(to wait for it, end the program with dp.synchronize())",
            file=sys.stderr,
        )
    if is_main_thread():  # An exception would skip the other steps; Ctrl-C ends the process.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    forget_at_exit()
    for kept in gc.get_objects():
        # Drivers wait for work when they free memory.
        if isinstance(kept, dpctl.memory._memory._Memory):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    leave_without_destructors()


atexit.register(_wait_a_while)
