"""Write SPIR-V from LLVM IR, with a helper process that forks for each module.

State: the helper, started at the first use or by :func:`start`; it ends with this process. A fork
of this process starts its own helper.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import re
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from dparray._compiler.spirv import worker
from dparray.exceptions import KernelError

#: SPIR-V extensions that kernels may use.
EXTENSIONS = (
    "SPV_EXT_shader_atomic_float_add",
    "SPV_EXT_shader_atomic_float_min_max",
    "SPV_ALTERA_arbitrary_precision_integers",
)
_SECONDS_TO_END = 5.0


class EmissionError(Exception):
    """The back end rejects a module; the text is its error message."""


class _Helper:
    """The process that writes modules, one at a time."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("llvmlite")
        assert spec is not None and spec.origin is not None
        packages = str(Path(spec.origin).parents[1])
        extensions = ",".join(f"+{name}" for name in EXTENSIONS)
        command = [sys.executable, "-I", "-S", str(worker.__file__), packages, extensions]
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

    def ask(self, text: str, wanted: int) -> bytes:
        """Return the helper's output for a module.

        Raises:
            EmissionError: the helper rejects it.
            OSError: the helper has ended.
        """
        content = text.encode()
        self._write(worker.REQUEST.pack(len(content), wanted) + content)
        status, length = worker.ANSWER.unpack(self._read(worker.ANSWER.size))
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
    return _asked(text, worker.BINARY)


def optimised(text: str) -> tuple[str, bytes]:
    """Return a module that is not optimized: its text when it is, and its SPIR-V.

    Raises:
        EmissionError: the back end rejects it.
        KernelError: the helper does not start, or ends.
    """
    answer = _asked(text, worker.OPTIMISED)
    start = worker.LENGTH.size
    end = start + worker.LENGTH.unpack_from(answer)[0]
    return answer[start:end].decode(), answer[end:]


def assembly(text: str) -> str:
    """Return the SPIR-V of a module in readable form."""
    return _asked(text, worker.ASSEMBLY).decode()


def _asked(text: str, wanted: int) -> bytes:
    global _helper
    with _lock:
        for attempt in range(2):
            helper = _started()
            try:
                return helper.ask(text, wanted)
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


# --- contraction ----------------------------------------------------------------------------------

_HEADER_WORDS = 5
_OP_EXTENSION = 10
_OP_EXECUTION_MODE = 16
_OP_CAPABILITY = 17
_OP_DECORATE = 71
_ARITHMETIC = frozenset({129, 131, 133})  # OpFAdd, OpFSub, OpFMul
_CONTRACTION_OFF = 31
_ARITHMETIC_IN_TEXT = re.compile(r"^\s*(%\d+) = OpF(?:Add|Sub|Mul) ", re.MULTILINE)
_FIRST_DECORATION = re.compile(r"^(?=\s*(?:OpDecorate|%\d+ = OpType))", re.MULTILINE)
_FIRST_AFTER_CAPABILITIES = re.compile(r"^(?!\s*OpCapability)", re.MULTILINE)
_FAST_MATH_CAPABILITY = 5837
_FAST_MATH_DECORATION = 40
_ALLOW_CONTRACTION = 0x10000
_FAST_MATH_EXTENSION = "SPV_INTEL_fp_fast_math_mode"
# Instructions that precede the decorations: extensions, imports, the memory model, entry points,
# execution modes, names and sources.
_BEFORE_DECORATIONS = frozenset({3, 4, 5, 6, 7, 8, 10, 11, 14, 15, 16, 17, 330, 331, 332})


def _text_words(text: str) -> list[int]:
    content = text.encode() + b"\0"
    content += b"\0" * (-len(content) % 4)
    return list(struct.unpack(f"<{len(content) // 4}I", content))


def contracted(spirv: bytes) -> bytes:
    """Return the module with contraction of its multiplications and additions allowed.

    LLVM gives each kernel SPIR-V's execution mode ``ContractionOff`` and does not mark its
    operations. Intel's CPU driver contracts where the operations allow it; removing the mode is not
    enough.
    """
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    instructions: list[tuple[int, tuple[int, ...]]] = []
    at = _HEADER_WORDS
    while at < len(words):
        count = words[at] >> 16
        instructions.append((words[at] & 0xFFFF, words[at : at + count]))
        at += count
    name = _text_words(_FAST_MATH_EXTENSION)
    capability = [2 << 16 | _OP_CAPABILITY, _FAST_MATH_CAPABILITY]
    extension = [(1 + len(name)) << 16 | _OP_EXTENSION, *name]
    decorations: list[int] = []
    for code, words_of in instructions:
        if code in _ARITHMETIC:
            decorations += [
                4 << 16 | _OP_DECORATE,
                words_of[2],
                _FAST_MATH_DECORATION,
                _ALLOW_CONTRACTION,
            ]
    result = list(words[:_HEADER_WORDS])
    coming: list[Any] = [
        (lambda code: code != _OP_CAPABILITY, capability + extension),
        (lambda code: code not in _BEFORE_DECORATIONS, decorations),
    ]
    for code, words_of in instructions:
        while coming and coming[0][0](code):
            result += coming.pop(0)[1]
        if code == _OP_EXECUTION_MODE and words_of[2] == _CONTRACTION_OFF:
            continue
        result += words_of
    return struct.pack(f"<{len(result)}I", *result)


def contracted_text(text: str) -> str:
    """Do the same for a module's readable form."""
    lines = [line for line in text.splitlines(keepends=True) if " ContractionOff" not in line]
    names = _ARITHMETIC_IN_TEXT.findall(text)
    decorations = "".join(
        f"\tOpDecorate {name} FPFastMathMode AllowContractFastINTEL\n" for name in names
    )
    head = f'\tOpCapability FPFastMathModeINTEL\n\tOpExtension "{_FAST_MATH_EXTENSION}"\n'
    text = _FIRST_AFTER_CAPABILITIES.sub(head, "".join(lines), count=1)
    return _FIRST_DECORATION.sub(decorations, text, count=1)


def is_contracted(spirv: bytes) -> bool:
    """Return whether :func:`contracted` produced a module."""
    return _FAST_MATH_EXTENSION.encode() in spirv
