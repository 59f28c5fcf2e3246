"""``dparray doctor``: check every part of the installation, and print fixes.

Checks that use a driver run in a worker process, one after another: a driver that crashes or hangs
fails one check, not the doctor.

Nothing here needs SYCL: this package can be imported where ``import dparray`` fails.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from dparray.cli.doctor.links import HOST, LINKS, Broken, Link

__all__ = ["Result", "add_arguments", "examine", "run", "run_here"]

OK, FAILED, SKIPPED = "ok", "FAILED", "skipped"
_NEWER_DRIVER = "pip install --upgrade intel-opencl-rt (or your system's driver)"
_REPORT_A_BUG = (
    "this is not a known fault; please report it with the output of `dparray doctor --json`"
)


@dataclass(frozen=True)
class Result:
    """The result of one check.

    Attributes:
        link: the name of the check.
        status: ``"ok"``, ``"FAILED"`` or ``"skipped"``.
        found: a description of the result.
        remedy: the fix, if the check failed.
        seconds: the duration.
        device: the device it was checked on, where that is not the first one.
    """

    link: str
    status: str
    found: str
    remedy: str = ""
    seconds: float = 0.0
    device: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray doctor``."""
    names = [link.name for link in LINKS]
    parser.add_argument(
        "--device", metavar="DEVICE", help="the device to check (default: every device)"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="LINK", choices=names, help=f"some of: {', '.join(names)}"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.epilog = "Exit status: 0 if every check passes, 1 if one fails."


def run(arguments: argparse.Namespace) -> int:
    """Run the checks and print their results; return 1 if one failed, otherwise 0."""
    if arguments.worker:
        return _work(arguments.device)
    links = [link for link in LINKS if arguments.only is None or link.name in arguments.only]
    width = max(len(link.name) for link in links)
    results: list[Result] = []
    for result in _examine_devices(links, arguments.device):
        is_next_device = result.device != (results[-1].device if results else "")
        results.append(result)
        if not arguments.json:
            if is_next_device:
                print(f"\n{result.device}")
            print(_as_text(result, width), flush=True)
    broken = [
        result.link + (f" on {result.device}" if result.device else "")
        for result in results
        if result.status == FAILED
    ]
    if arguments.json:
        print(json.dumps([dataclasses.asdict(result) for result in results], indent=2))
    elif broken:
        print(f"\nbroken: {', '.join(broken)} ({len(broken)} of {len(results)})")
    else:
        print(f"\nall {len(results)} checks passed")
    return 1 if broken else 0


def _examine_devices(links: Sequence[Link], device: str | None) -> Iterator[Result]:
    """Check the links, and those about a device on every other device, too.

    If no default device can be used, the other device is the processor without SYCL.
    """
    has_devices = True
    for result in examine(links, device):
        has_devices &= result.link not in ("imports", "devices") or result.status == OK
        yield result
    of_device = [link for link in links if link.is_of_device]
    if device is None and of_device:
        for other in _other_devices() if has_devices else [HOST]:
            for result in examine(of_device, other):
                yield dataclasses.replace(result, device=other)


_OTHER_DEVICES = """
import json
import dparray as dp
print(json.dumps([d.filter_string for d in dp.devices() if d != dp.default_device()]))
"""


def _other_devices() -> list[str]:
    """Return the devices besides the default, found by another process: drivers may crash."""
    command = [sys.executable, "-c", _OTHER_DEVICES]
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120.0)
        if done.returncode == 0:
            found: list[str] = json.loads(done.stdout.splitlines()[-1])
            return found
    return []


def _as_text(result: Result, width: int) -> str:
    first = f"{result.link:<{width}}  {result.status:<7}  "
    indent = "\n" + " " * len(first)
    text = first + result.found.replace("\n", indent)
    if result.remedy:
        text += "".join(f"{indent}-> {line}" for line in result.remedy.splitlines())
    return text


def examine(
    links: Sequence[Link] = LINKS,
    device: str | None = None,
    *,
    worker: Sequence[str] | None = None,
    timeout: float = 120.0,
) -> Iterator[Result]:
    """Run ``links`` in order and yield a result for each.

    A check is skipped if one that it needs failed or was skipped.

    Args:
        links: the checks.
        device: the device for checks that need one.
        worker: the command that starts a worker, which writes reports to its standard output.
        timeout: seconds after which an isolated check counts as hanging.
    """
    if worker is None:
        worker = [sys.executable, "-m", "dparray", "doctor"]
        worker += ["--worker", *([] if device is None else ["--device", device])]
    unsound: set[str] = set()
    with _Worker(worker, timeout) as isolated:
        for link in links:
            blockers = [name for name in link.needs if name in unsound]
            if blockers:
                result = Result(link.name, SKIPPED, f"needs {', '.join(blockers)}")
            else:
                result = isolated.run(link.name) if link.isolated else run_here(link, device)
            if result.status != OK:
                unsound.add(link.name)
            yield result


def run_here(link: Link, device: str | None = None) -> Result:
    """Run one check in this process."""
    started = time.perf_counter()
    remedy = ""
    try:
        status, finding = OK, link.check(device)
    except Broken as broken:
        status, finding, remedy = FAILED, broken.found, broken.remedy
    except Exception as error:
        status, finding, remedy = FAILED, f"{type(error).__name__}: {error}", _REPORT_A_BUG
    return Result(link.name, status, finding, remedy, round(time.perf_counter() - started, 3))


# --- the worker -----------------------------------------------------------------------------------


def _work(device: str | None) -> int:
    """Run the worker: it reads names of checks from the standard input and writes results to the
    standard output. Output of libraries goes to the standard error.
    """
    links = {link.name: link for link in LINKS}
    descriptor = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with os.fdopen(descriptor, "w") as report:
        for line in sys.stdin:
            result = run_here(links[line.strip()], device)
            print(json.dumps(dataclasses.asdict(result)), file=report, flush=True)
    return 0


def _has_drivers() -> bool:
    """Return whether SYCL's drivers may run here; the base install has none."""
    return importlib.util.find_spec("dpctl") is not None


class _Worker:
    """A process that runs checks; started at the first use, and again after it has died."""

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self._command = command
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._reports: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()
        self._output.close()

    def run(self, name: str) -> Result:
        """Return the result of a check, which may be that the worker died or hung."""
        process = self._process or self._start()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # The worker has died, which reading detects.
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
        try:
            line = self._reports.get(timeout=self._timeout)
        except queue.Empty:
            process.kill()
            self._end()
            found = f"no answer within {self._timeout:.0f} s; the process was ended"
            remedy = f"a driver may be the cause: {_NEWER_DRIVER}"
            if not _has_drivers():
                remedy = "a busy machine may be the cause: run `dparray doctor` again"
            return Result(name, FAILED, found, remedy)
        if line:
            return Result(**json.loads(line))
        status = process.wait()
        self._end()
        how = f"exit status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"
        return Result(
            name,
            FAILED,
            f"the process ended with {how}{self._last_words()}",
            f"the usual cause of a crash is an old or damaged driver: {_NEWER_DRIVER}"
            if _has_drivers()
            else _REPORT_A_BUG,
        )

    def _start(self) -> subprocess.Popen[bytes]:
        self._output.truncate(0)
        self._output.seek(0)
        process = self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
        )
        self._reports = queue.SimpleQueue()
        # A thread reads, because Windows has no way to wait for a pipe with a limit.
        thread = threading.Thread(target=_read_lines, args=(process, self._reports), daemon=True)
        thread.start()
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _last_words(self) -> str:
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").splitlines()
        # Python's crash report ends with lines that do not name the cause.
        telling = [line for line in lines if line and not line.startswith(("  File", "Extension"))]
        return "; its last words:\n" + "\n".join(telling[-3:]) if telling else ""


def _read_lines(process: subprocess.Popen[bytes], reports: queue.SimpleQueue[bytes]) -> None:
    """Pass on the lines of a process; an empty one when it has ended."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            reports.put(line)
    reports.put(b"")
