"""Which worker of pytest-xdist runs which file.

As with ``--dist loadfile``, but pytest-xdist 3.8 waits forever once a worker has crashed: it hands
the files which that worker had finished to the others, and nobody reports on a file of no tests.
It also runs the crashed test again until all workers have crashed.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling

from tests import crashes


class FileScheduling(LoadFileScheduling):
    """Hand out the tests of a file together; after a crash, only those that have not begun.

    A test that took too long runs a second time: in one of many runs of the suite, a call of SYCL's
    runtime or of a driver never returns. That is reported with the stacks of all threads, and fails
    the run only if it happens to the same test again.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._timed_out: set[str] = set()
        #: The test of the last crash, if it runs again.
        self.runs_again: str | None = None

    def remove_node(self, node: Any) -> str | None:
        """Take the worker out, and return the test that it crashed in."""
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
