"""Host work on several threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
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

    waiting = [
        _pool().submit(copy_context().run, serve) for _ in range(min(threads, len(pieces)) - 1)
    ]
    serve()
    for each in waiting:
        if not each.cancel():  # Those that have not begun find no piece.
            each.result()
    if failures:
        raise failures[min(failures)]


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads of this process, which start when they are first needed."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="dparray piece")
