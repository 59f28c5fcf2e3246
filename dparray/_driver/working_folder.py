"""Replace a working folder that was removed, for libraries that need its path."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def working_folder() -> Iterator[bool]:
    """Change to an existing folder if the working folder was removed; yield whether it was.

    SYCL's adapters need the path of the working folder.
    """
    removed = None
    try:
        os.getcwd()
    except FileNotFoundError:
        removed = os.open(".", os.O_RDONLY)
        os.chdir(sys.prefix)
    try:
        yield removed is not None
    finally:
        if removed is not None:
            os.fchdir(removed)
            os.close(removed)
