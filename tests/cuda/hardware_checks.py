"""The parts of ``hardware.py`` that check: versions, memory, tests, exchange with libraries."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = (
    *("numpy", "numba", "llvmlite", "cuda-core", "cuda-bindings", "nvidia-nvvm", "cupy-cuda13x"),
    *("torch", "triton", "jax", "numba-cuda", "pytest", "hypothesis"),
)


def versions(results: Any, options: Any) -> None:
    """Note versions, the device and the answer of the doctor."""
    for name in _PACKAGES:
        try:
            results[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            results[name] = "not installed"
    results["python"] = sys.version
    results.attempt("nvidia-smi", _output, ["nvidia-smi"])

    def device() -> dict[str, Any]:
        import dparray as dp

        traits = dp.Device("cuda:0").traits
        return {name: getattr(traits, name) for name in traits.__dataclass_fields__}

    results.attempt("device", device)
    results.attempt("doctor", _output, [sys.executable, "-m", "dparray", "doctor"])


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=_ROOT)
    return f"exit {done.returncode}\n{done.stdout[-5000:]}\n{done.stderr[-1000:]}"


def memory(results: Any, options: Any) -> None:
    """Copy to and from the three kinds of memory, and measure rates."""
    import dparray as dp

    host = np.random.default_rng(1).random(1000 if options.tiny else 1 << 25, np.float32)

    def both_ways(usm_type: str) -> dict[str, float]:
        x = dp.empty(host.size, dtype="float32", usm_type=usm_type, device="cuda:0")
        seconds = []
        for action in (lambda: x.__setitem__(slice(None), host), lambda: x.asnumpy()):
            best = float("inf")
            for _ in range(3):
                start = time.perf_counter()
                found = action()
                dp.Device("cuda:0").wait()
                best = min(best, time.perf_counter() - start)
            seconds.append(best)
        np.testing.assert_array_equal(found, host)
        rates = (host.nbytes / each / 1e9 for each in seconds)
        return dict(zip(("to GB/s", "from GB/s"), rates, strict=True))

    for usm_type in ("device", "shared", "host"):
        results.attempt(usm_type, both_ways, usm_type)

    def between_devices() -> str:
        x = dp.asarray(host[:1000], device="cuda:0").to_device("cuda:1")
        np.testing.assert_array_equal(x.asnumpy(), host[:1000])
        return "equal"

    if len([each for each in dp.devices() if each.driver == "cuda"]) > 1:
        results.attempt("to another device", between_devices)


# --- tests ----------------------------------------------------------------------------------------


def large(results: Any, options: Any) -> None:
    """Compute arrays of more than 2**31 elements in pieces, and more rows than a grid has."""
    import dparray as dp

    size, rows = (5000, 300) if options.tiny else (2**31 + 4099, 9_000_000)

    def vector() -> str:
        x = dp.full(size, 3, dtype="uint8", device="cuda:0")
        y = x[1:] * 2 + x[:-1]
        y[-1] = 1
        assert (y[0].item(), y[-2].item(), y[-1].item()) == (9, 9, 1)
        assert dp.sum(y, dtype="int64").item() == 9 * (size - 1) - 8
        return f"{y.size} elements"

    def plane() -> str:
        x = dp.ones((rows, 100), dtype="uint8", device="cuda:0")
        y = x[:, 2:] + x[:, :-2]
        assert dp.sum(y, dtype="int64").item() == 2 * y.size
        return f"{rows} rows"

    results.attempt("vector", vector)
    results.attempt("plane", plane)


def _pytest(results: Any, options: Any, *arguments: str) -> None:
    if importlib.util.find_spec("pytest") is None:
        results["pytest"] = "not installed"
        return
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.cuda.on_cuda", "--tb=short"]
        command += ["-p", "no:cacheprovider", f"--junitxml={report}"]
        # A worker is a process with a context and a compiler of its own.
        has_workers = importlib.util.find_spec("xdist") is not None
        count = max(1, min(14, (os.cpu_count() or 2) - 2)) if not options.standin else 1
        command += ["-n", str(count), "--dist", "loadfile"] if has_workers and count > 1 else []
        log = Path(folder, "log")
        with log.open("w") as output:
            tests = subprocess.Popen(
                [*command, *arguments],
                cwd=_ROOT,
                env=os.environ | {"PYTHONPATH": f"{_ROOT}:{os.environ.get('PYTHONPATH', '')}"},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                tests.wait(options.seconds - 15)
            except subprocess.TimeoutExpired:  # an interrupted run writes its report, too
                tests.send_signal(signal.SIGINT)
                tests.wait(12)
        text = log.read_text(errors="replace")
        results["last line"] = text.strip().rpartition("\n")[2]
        if not report.exists():
            results["output"] = text[-6000:]
            return
        failures: dict[str, list[str]] = {}
        counts = dict.fromkeys(("passed", "skipped", "failed"), 0)
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            broken = [each for each in case if each.tag in ("failure", "error")]
            kind = "failed" if broken else "skipped" if len(case) else "passed"
            counts[kind] += 1
            for each in broken:
                name = f"{case.get('classname')}::{case.get('name')}"
                failures.setdefault((each.get("message") or "")[:300], []).append(name)
        results["counts"] = counts
        results["failures"] = failures
        if failures:
            results["tracebacks"] = text.partition("= FAILURES =")[2][:200_000]


def test_tiny(results: Any, options: Any) -> None:
    """Run the first tests."""
    _pytest(results, options, "tests/test_tiny.py")


def test_kernels(results: Any, options: Any) -> None:
    """Run a sample of the tests of kernels and memory."""
    files = ["tests/kernel/test_kernel_barriers.py"] if options.tiny else ["tests/kernel"]
    _pytest(results, options, *files, *([] if options.tiny else ["tests/memory"]))


def test_functions(results: Any, options: Any) -> None:
    """Run a sample of the tests of functions and evaluation."""
    files = ["tests/evaluate", "tests/functions", "tests/algorithms"]
    _pytest(
        results, options, *(["tests/algorithms/test_algorithms_scan.py"] if options.tiny else files)
    )


def test_jit(results: Any, options: Any) -> None:
    """Run a sample of the tests of compiled functions."""
    _pytest(
        results, options, *(["tests/jit/test_prange_values.py"] if options.tiny else ["tests/jit"])
    )


# --- exchange with libraries ----------------------------------------------------------------------


def interop(results: Any, options: Any) -> None:
    """Exchange arrays with CuPy, PyTorch and JAX in both directions, with work pending."""
    import dparray as dp

    host = np.arange(1 << (10 if options.tiny else 20), dtype=np.float32)

    def exported(take: Any, give: Any) -> str:
        x = dp.asarray(host, device="cuda:0") * 2 + 1  # pending work
        np.testing.assert_array_equal(give(take(x)), host * 2 + 1)
        return "equal"

    def imported(make: Any) -> str:
        x = dp.from_dlpack(make())
        np.testing.assert_array_equal((x + 1).asnumpy(), host * 3 + 1)
        return "equal"

    results["__cuda_array_interface__"] = str(
        getattr(dp.asarray(host, device="cuda:0"), "__cuda_array_interface__", "missing")
    )
    if importlib.util.find_spec("cupy") is not None:
        import cupy

        results.attempt("to CuPy by DLPack", exported, cupy.from_dlpack, cupy.asnumpy)
        results.attempt("to CuPy by interface", exported, cupy.asarray, cupy.asnumpy)
        results.attempt("from CuPy", imported, lambda: cupy.asarray(host) * 3)
    if importlib.util.find_spec("torch") is not None:
        import torch

        results.attempt(
            "to torch", exported, torch.from_dlpack, lambda tensor: tensor.cpu().numpy()
        )
        results.attempt("from torch", imported, lambda: torch.from_numpy(host).cuda() * 3)
    if importlib.util.find_spec("jax") is not None:
        import jax

        results.attempt("to JAX", exported, jax.dlpack.from_dlpack, np.asarray)
        results.attempt("from JAX", imported, lambda: jax.device_put(host) * 3)
