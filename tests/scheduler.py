"""Assign test files to the workers of pytest-xdist.

This works like ``--dist loadfile``. But pytest-xdist 3.8 waits forever once a worker has crashed:
it hands the files that the worker had finished to the other workers, and a file without tests is
never reported. It also repeats the crashed test until all workers have crashed.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling

from tests import crashes


class FileScheduling(LoadFileScheduling):
    """Assign the tests of a file together; after a crash, only those that have not begun.

    A test that took too long runs a second time, because on rare occasions a call of the SYCL
    runtime or of a driver never returns. The repetition is reported with the stacks of all threads.
    The run fails only if the same test takes too long again.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._timed_out: set[str] = set()
        #: The test of the last crash, if it is repeated.
        self.runs_again: str | None = None

    def remove_node(self, node: Any) -> str | None:
        """Take the worker out, and return the test in which it crashed."""
        work = self.assigned_work[node]
        self.assigned_work[node] = {
            file: tests for file, tests in work.items() if not all(tests.values())
        }
        crashed: str | None = super().remove_node(node)
        if crashed is None:
            return None
        self.runs_again = None
        if crashed not in self._timed_out and crashes.has_timed_out(node):
            self._timed_out.add(crashed)
            self.runs_again = crashed
            return crashed
        for file, tests in list(self.workqueue.items()):
            tests.pop(crashed, None)
            if all(tests.values()):
                del self.workqueue[file]
        return crashed
