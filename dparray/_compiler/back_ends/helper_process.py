"""Run LLVM in a process of its own, for the back ends of targets.

LLVM ends a process for instructions that it cannot select, and its options are a process's. State:
a process for each back end, started at the first use; it ends with this process. A fork of this
process starts its own.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import IO, Any

from dparray import _hooks
from dparray._compiler.targets import EmissionError
from dparray._system import KILLED, WITHOUT_INTERRUPTS, interrupts_blocked
from dparray.exceptions import KernelError

_SECONDS_TO_END = 5.0


def folder_of_llvmlite() -> str:
    """Return the folder that the process finds llvmlite in."""
    spec = importlib.util.find_spec("llvmlite")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parents[1])


class HelperProcess:
    """A process that answers requests, one at a time.

    Attributes:
        process: the process, ``None`` before the first request and in a fork.
    """

    def __init__(
        self,
        writes: str,
        command: Callable[[], list[str]],
        answer: Struct,
        ends_for_a_module: bool = False,
    ) -> None:
        """Describe a process, which :meth:`start` starts.

        Args:
            writes: what it writes, for messages.
            command: returns its arguments, of which the first is the interpreter.
            answer: the head of an answer: a status, and the length of what follows.
            ends_for_a_module: whether LLVM may end the process itself, with a message, for a module
                that it rejects. Otherwise it was killed whenever it ended.
        """
        self.process: subprocess.Popen[bytes] | None = None
        self._writes, self._command, self._answer = writes, command, answer
        self._ends_for_a_module = ends_for_a_module
        self._errors: IO[bytes] | None = None
        self._owner = 0
        self._lock = threading.Lock()
        atexit.register(self.end)
        _hooks.at_fork(after_in_child=self._forget)

    def start(self) -> None:
        """Start the process unless it runs, so that it loads LLVM while this process does other
        work.

        Raises:
            KernelError: it does not start.
        """
        with self._lock:
            self._started()

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """Return the status and the content of an answer.

        The process starts again after LLVM or the system ended it.

        Raises:
            EmissionError: LLVM ended the process for the request.
            KernelError: it does not start, or was killed again.
        """
        with self._lock:
            for _ in range(2):
                process = self._started()
                try:
                    return self.exchange(request)
                except OSError as error:
                    complaint = self._drop(process)
                    if self._ends_for_a_module and process.returncode not in KILLED:
                        raise EmissionError(complaint) from error
                except BaseException:
                    # This process was interrupted before the answer came.
                    process.kill()
                    self._drop(process)
                    raise
        raise KernelError(
            f"the helper process that writes {self._writes} ended twice, perhaps for its memory: "
            f"exit status {process.returncode}"
        )

    def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Write a request and read the answer.

        Raises:
            OSError: the process has ended.
        """
        if self._errors is not None:
            self._errors.truncate(0)
        process = self.process
        assert process is not None
        assert process.stdin is not None
        rest = memoryview(request)
        while rest:
            rest = rest[os.write(process.stdin.fileno(), rest) :]
        status, length = self._answer.unpack(_read(process, self._answer.size))
        return status, _read(process, length)

    def end(self) -> None:
        """End the process, which exits when there are no more requests."""
        with self._lock:
            process, self.process = self.process, None
            if process is None or self._owner != os.getpid():
                return
            _close_pipes(process)
            try:
                process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._close_errors()

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            try:
                self.process = self._popen()
            except OSError as error:
                self._close_errors()
                raise KernelError(
                    f"the helper process that writes {self._writes} does not start: {error}; "
                    f"sys.executable, {sys.executable!r}, must be a Python interpreter"
                ) from error
            self._owner = os.getpid()
        return self.process

    def _popen(self) -> subprocess.Popen[bytes]:
        errors: Any = subprocess.DEVNULL if sys.stderr is None else None  # closed, as by daemons
        if self._ends_for_a_module:
            self._errors = errors = tempfile.TemporaryFile()  # noqa: SIM115  It lives as long.
        # Interrupts concern only this process. The helper inherits a blocked signal mask, because
        # it creates its own session too late for an early interrupt.
        with interrupts_blocked():
            # A fork would copy this process's page tables, and drivers forbid vfork. posix_spawn
            # copies nothing; Python uses it if no files must be closed, and none are inherited.
            return subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                close_fds=False,
                creationflags=WITHOUT_INTERRUPTS,
            )

    def _drop(self, process: subprocess.Popen[bytes]) -> str:
        """Wait for a process that is ending or was killed; return its error output."""
        self.process = None
        _close_pipes(process)
        if not self._ends_for_a_module:
            process.kill()
        process.wait()
        text = ""
        if self._errors is not None:
            self._errors.seek(0)
            text = self._errors.read().decode(errors="replace").strip("\0 \n")
            self._close_errors()
        return text.partition("\nPLEASE")[0] or f"exit status {process.returncode}"

    def _close_errors(self) -> None:
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _forget(self) -> None:
        """Forget the parent's helper process, in a forked child."""
        self._lock = threading.Lock()
        process, self.process = self.process, None
        if process is not None:
            _close_pipes(process)
            self._close_errors()
            process.returncode = 0  # not a child of this process, so it cannot be waited for


def _read(process: subprocess.Popen[bytes], count: int) -> bytes:
    assert process.stdout is not None
    parts = []
    while count:
        part = os.read(process.stdout.fileno(), count)
        if not part:
            raise BrokenPipeError("the helper process has ended")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
