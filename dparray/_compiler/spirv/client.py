"""Write SPIR-V from LLVM IR, with a helper process that forks for each module.

State: the helper, started at the first use or by :func:`start`; it ends with this process. A fork
of this process starts its own helper.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from dparray._compiler.spirv import protocol, words
from dparray._compiler.targets import EmissionError
from dparray._driver.interface import Target
from dparray.exceptions import KernelError

#: SPIR-V extensions that kernels may use.
EXTENSIONS = (
    "SPV_EXT_shader_atomic_float_add",
    "SPV_EXT_shader_atomic_float_min_max",
    "SPV_ALTERA_arbitrary_precision_integers",
)
_SECONDS_TO_END = 5.0
# The helper loads none of dparray's packages beside this one, whose `__init__` imports all layers.
_PROGRAM = """
import sys, types
package = sys.modules["dparray"] = types.ModuleType("dparray")
package.__path__ = [sys.argv[1]]
from dparray._compiler.spirv import worker
worker.main(*sys.argv[2:])
"""


class _Helper:
    """The process that writes modules, one at a time."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("llvmlite")
        assert spec is not None and spec.origin is not None
        packages = str(Path(spec.origin).parents[1])
        extensions = ",".join(f"+{name}" for name in EXTENSIONS)
        ours = str(Path(__file__).parents[2])
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, ours, packages, extensions]
        # dpctl forbids vfork, and a fork would copy this process's page tables. posix_spawn copies
        # nothing; Python uses it if no files must be closed, and the helper inherits none.
        # Interrupts concern only this process. The helper inherits a blocked signal mask, because
        # it creates its own session too late for an early interrupt.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if sys.stderr is None else None,  # closed, as by daemons
                bufsize=0,
                close_fds=False,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self.owner = os.getpid()

    def ask(self, text: str, wanted: int, driver: str) -> bytes:
        """Return the helper's output for a module.

        Raises:
            EmissionError: the helper rejects it.
            OSError: the helper has ended.
        """
        content = text.encode()
        self._write(protocol.REQUEST.pack(len(content), wanted, driver.encode()) + content)
        status, length = protocol.ANSWER.unpack(self._read(protocol.ANSWER.size))
        answer = self._read(length)
        if status:
            complaint = answer.decode(errors="replace").strip() or f"exit status {status}"
            raise EmissionError(complaint)
        return answer

    def _write(self, content: bytes) -> None:
        assert self.process.stdin is not None
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self.process.stdin.fileno(), rest) :]

    def _read(self, count: int) -> bytes:
        assert self.process.stdout is not None
        parts = []
        while count:
            part = os.read(self.process.stdout.fileno(), count)
            if not part:
                raise BrokenPipeError("the helper has ended")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """End the helper, which exits when there are no more requests."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_helper: _Helper | None = None
_lock = threading.Lock()


def start() -> None:
    """Start the helper unless it runs: it loads LLVM while this process does other work."""
    with _lock:
        _started()


def _started() -> _Helper:
    global _helper
    if _helper is None:
        try:
            _helper = _Helper()
        except OSError as error:
            raise KernelError(
                f"the helper process that writes kernels does not start: {error}; "
                f"sys.executable, {sys.executable!r}, must be a Python interpreter"
            ) from error
    return _helper


def _end() -> None:
    global _helper
    with _lock:
        helper, _helper = _helper, None
        if helper is not None and helper.owner == os.getpid():
            helper.close()


def _forget() -> None:
    """Forget the parent's helper in a fork."""
    global _helper, _lock
    _lock = threading.Lock()
    helper, _helper = _helper, None
    if helper is not None:
        for pipe in (helper.process.stdin, helper.process.stdout):
            if pipe is not None:
                pipe.close()
        # The process is not a child of this one, so it cannot be waited for.
        helper.process.returncode = 0


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)


def emit(text: str) -> bytes:
    """Return the SPIR-V of a module.

    Raises:
        EmissionError: the back end rejects it.
        KernelError: the helper does not start, or ends.
    """
    return _asked(text, protocol.BINARY)


def optimised(text: str, target: Target, contracts: bool = False) -> tuple[str, bytes]:
    """Return a module that is not optimized: its text when it is, and its SPIR-V.

    Args:
        text: the module.
        target: its target, whose rules are applied.
        contracts: whether products and sums may be contracted.

    Raises:
        EmissionError: the back end rejects it.
        KernelError: the helper does not start, or ends.
    """
    answer = _asked(text, protocol.OPTIMISED, target.compiler)
    start = protocol.LENGTH.size
    end = start + protocol.LENGTH.unpack_from(answer)[0]
    module = answer[end:]
    return answer[start:end].decode(), words.contracted(module) if contracts else module


needs = words.needs
without_float64 = words.without_printed_doubles


def readable(llvm: str, module: bytes) -> str:
    """Return the SPIR-V of an optimized text in readable form."""
    text = _asked(llvm, protocol.ASSEMBLY).decode()
    return words.contracted_text(text) if words.is_contracted(module) else text


def _asked(text: str, wanted: int, driver: str = "") -> bytes:
    global _helper
    with _lock:
        for attempt in range(2):
            helper = _started()
            try:
                return helper.ask(text, wanted, driver)
            except EmissionError:
                raise
            except BaseException as error:
                # It was killed, perhaps for its memory use; or this process was interrupted before
                # the answer came.
                _helper = None
                helper.process.kill()
                helper.close()
                if not isinstance(error, OSError):
                    raise
                if attempt:
                    raise KernelError(
                        f"the helper process that writes kernels ended twice: {error}"
                    ) from error
    raise AssertionError
