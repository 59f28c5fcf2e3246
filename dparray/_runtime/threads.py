"""Host work on several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from itertools import count
from typing import Any


def share_out(work: Callable[[Any], Any], pieces: list[Any], threads: int) -> None:
    """Call ``work`` with each piece, on several threads, including this one.

    Each thread takes the next free piece. The call returns after all of them have ended. After an
    exception no other piece is started, and the exception of the first piece that failed is raised.

    Args:
        work: a function that releases the interpreter lock most of the time.
        pieces: its arguments, in the order in which they are started.
        threads: the maximum number of threads.
    """
    numbers, failures = count(), dict[int, BaseException]()

    def serve() -> None:
        while not failures and (number := next(numbers)) < len(pieces):
            try:
                work(pieces[number])
            except BaseException as error:
                failures[number] = error

    others = [
        threading.Thread(target=copy_context().run, args=(serve,), name="dparray piece")
        for _ in range(min(threads, len(pieces)) - 1)
    ]
    for thread in others:
        thread.start()
    serve()
    for thread in others:
        thread.join()
    if failures:
        raise failures[min(failures)]
