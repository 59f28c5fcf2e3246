"""The back end for NVIDIA GPUs: PTX, written in a helper process.

State: the helper, started at the first use or by :func:`start`; it ends with this process. A fork
of this process starts its own helper.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from dparray._compiler.ptx import worker
from dparray._compiler.ptx.translation import dimensions_of, translated
from dparray._compiler.ptx.work_items import Launch
from dparray._compiler.targets import EmissionError
from dparray._driver.interface import Target
from dparray.exceptions import KernelCompileError, KernelError

#: The bytes of shared memory that PTX may declare in a kernel, on every GPU.
MAX_STATIC_SHARED = 48 << 10
_SHARED = re.compile(r"\.shared \.align \d+ \.b8 [\w$]+\[(\d+)\];")
# Device functions without a definition. The caller explains other functions that devices lack.
_UNDEFINED = re.compile(r"^declare [^@\n]*@(_Z\w+)\(", re.MULTILINE)
_SECONDS_TO_END = 5.0
_KILLED = (-signal.SIGKILL, -signal.SIGTERM)


@functools.cache
def libdevice_path() -> str:
    """Return the file of NVIDIA's math library, or "" if it is not installed.

    It belongs to the package ``nvidia-nvvm``. Without the package, that of a CUDA toolkit is used,
    which ``CUDA_HOME`` or ``CUDA_PATH`` names.
    """
    spec = importlib.util.find_spec("nvidia")
    folders = list((spec and spec.submodule_search_locations) or ())
    toolkits = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for folder, pattern in [
        *[(folder, "*/nvvm/libdevice/libdevice.*.bc") for folder in folders],
        *[(toolkit, "nvvm/libdevice/libdevice.*.bc") for toolkit in toolkits],
    ]:
        for found in sorted(Path(folder).glob(pattern)):
            return str(found)
    return ""


class _Helper:
    """The process that writes modules, one at a time."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("llvmlite")
        assert spec is not None and spec.origin is not None
        packages = str(Path(spec.origin).parents[1])
        command = [sys.executable, "-I", "-S", str(worker.__file__), packages, libdevice_path()]
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  It lives as long as the helper.
        # Interrupts concern only this process. The helper inherits a blocked signal mask, because
        # it creates its own session too late for an early interrupt.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                bufsize=0,
                close_fds=False,  # so that Python starts it with posix_spawn, not with a fork
            )
        except BaseException:
            self.errors.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self.owner = os.getpid()

    def ask(self, text: str) -> tuple[int, bytes]:
        """Return the helper's status and answer for a module.

        Raises:
            OSError: the helper has ended.
        """
        self.errors.truncate(0)
        content = text.encode()
        assert self.process.stdin is not None
        rest = memoryview(worker.REQUEST.pack(len(content)) + content)
        while rest:
            rest = rest[os.write(self.process.stdin.fileno(), rest) :]
        status, length = worker.ANSWER.unpack(self._read(worker.ANSWER.size))
        return status, self._read(length)

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

    def complaint(self) -> str:
        """Return the output of LLVM before it ended the process."""
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace").strip("\0 \n")
        return text.partition("\nPLEASE")[0] or f"exit status {self.process.returncode}"

    def close(self) -> None:
        """End the helper, which exits when there are no more requests."""
        self.forget()
        try:
            self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()

    def forget(self) -> None:
        """Close the pipes."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


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
                f"the helper process that writes PTX does not start: {error}; "
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
        helper.forget()
        helper.errors.close()
        helper.process.returncode = 0  # not a child of this process, so it cannot be waited for


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)


def optimised(text: str, target: Target, contracts: bool = False) -> tuple[str, bytes]:
    """Return the optimized text of a module, and its PTX, as :func:`compile` does.

    Args:
        text: the compiler's LLVM IR, not optimized.
        target: its target; one module serves all of them.
        contracts: whether products and sums may be contracted to fused operations.

    Raises:
        EmissionError, KernelCompileError, KernelError: as by :func:`compile`.
    """
    return compile(text, ndim=dimensions_of(text), contract=contracts)


def needs(module: bytes) -> set[str]:
    """Return the aspects that a device must have: all GPUs from sm_75 on have them."""
    return set()


def without_float64(module: bytes) -> bytes:
    """Return the module: all GPUs have float64."""
    return module


def readable(llvm: str, module: bytes) -> str:
    """Return the PTX, which is text."""
    return module.decode()


def compile(
    text: str, *, ndim: int = 1, whole_warps: bool = False, contract: bool = False
) -> tuple[str, bytes]:
    """Return the optimized text of a module, and its PTX, which runs on GPUs from sm_75 on.

    The PTX is empty if the module still calls functions that only hosts have, or code that raises.
    Parameters are those of the kernel in its order, except that local memory is passed as its
    offset in bytes in the launch's dynamic shared memory, a 64-bit integer.

    Args:
        text: the compiler's LLVM IR, not optimized.
        ndim: the number of dimensions of the kernel's range. The last one is CUDA's ``x``.
        whole_warps: whether all its groups have a multiple of 32 work-items.
        contract: whether products and sums may be contracted to fused operations.

    Raises:
        EmissionError: the kernel needs something that NVIDIA GPUs or LLVM do not have.
        KernelCompileError: libdevice is not installed.
        KernelError: the helper does not start, or was killed.
    """
    prepared = translated(text, Launch(ndim, whole_warps), contract=contract)
    if '@"__nv_' in prepared and not libdevice_path():
        raise KernelCompileError(
            "a kernel calls mathematical functions, which for NVIDIA GPUs are in libdevice: "
            "pip install nvidia-nvvm, or set CUDA_HOME to a CUDA toolkit",
            details=text,
        )
    answer = _asked(prepared)
    start = worker.LENGTH.size
    end = start + worker.LENGTH.unpack(answer[:start])[0]
    llvm, ptx = answer[start:end].decode(), answer[end:]
    if undefined := _UNDEFINED.findall(llvm):
        raise EmissionError(f"it calls {', '.join(undefined)}, which NVIDIA GPUs do not have")
    static = sum(map(int, _SHARED.findall(ptx.decode())))
    if static > MAX_STATIC_SHARED:
        raise EmissionError(
            f"the arrays of dp.LocalArray take {static} bytes for each work-group, and NVIDIA GPUs "
            f"allow {MAX_STATIC_SHARED}. Pass a dp.LocalAccessor to the kernel"
        )
    return llvm, ptx


def _asked(text: str) -> bytes:
    """Return the helper's answer; it starts again after LLVM or the system ended it."""
    with _lock:
        for _ in range(2):
            helper = _started()
            try:
                status, answer = helper.ask(text)
            except OSError as error:
                complaint = _drop(helper)
                if helper.process.returncode not in _KILLED:
                    raise EmissionError(complaint) from error
            except BaseException:
                # This process was interrupted before the answer came.
                helper.process.kill()
                _drop(helper)
                raise
            else:
                if status:
                    raise EmissionError(answer.decode())
                return answer
    raise KernelError("the helper process that writes PTX was killed twice, perhaps for its memory")


def _drop(helper: _Helper) -> str:
    """Wait for the end of a helper that ends or was killed; return what LLVM complained of."""
    global _helper
    _helper = None
    helper.forget()
    helper.process.wait()
    complaint = helper.complaint()
    helper.errors.close()
    return complaint
