"""Which worker of pytest-xdist runs which file.

As with ``--dist loadfile``, but pytest-xdist 3.8 waits forever once a worker has crashed: it hands
the files which that worker had finished to the others, and nobody reports on a file of no tests.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling


class FileScheduling(LoadFileScheduling):
    """Hand out the tests of a file together; after a crash, only those that have not begun."""

    def remove_node(self, node: Any) -> str | None:
        """Take the worker out, and return the test that it crashed in."""
        work = self.assigned_work[node]
        self.assigned_work[node] = {
            file: tests for file, tests in work.items() if not all(tests.values())
        }
        crashed = super().remove_node(node)
        for file, tests in list(self.workqueue.items()):
            tests.pop(crashed, None)
            if all(tests.values()):
                del self.workqueue[file]
        return crashed
