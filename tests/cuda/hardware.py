"""Try dparray on an NVIDIA GPU: one command, at most 8 minutes, no network.

    python -m tests.cuda.hardware --out results.json
    python -m tests.cuda.hardware --standin --tiny --out /tmp/results.json   # without a GPU

Needs NumPy, llvmlite, cuda-core, cuda-bindings, nvidia-nvvm or a CUDA toolkit, and the compiled
module beside `dparray/_array/build_fastpath.py`; uses pytest, CuPy, PyTorch, JAX, Triton and
numba-cuda where they are installed. Each part runs in a process of its own, under its own time
limit, so that a fault or a hang costs that part alone. The file of results is written after each
part, and a table is printed at the end.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).resolve().parents[2]
_LIMIT = 470  # seconds in all


class Part(NamedTuple):
    """A part: the module and function that do it, and its longest time in seconds."""

    name: str
    module: str
    function: str
    seconds: int


_PARTS = (
    Part("versions", "hardware_checks", "versions", 40),
    Part("memory", "hardware_checks", "memory", 30),
    Part("large", "hardware_checks", "large", 20),
    Part("tiny", "hardware_checks", "test_tiny", 40),
    Part("tests-kernel", "hardware_checks", "test_kernels", 90),
    Part("tests-functions", "hardware_checks", "test_functions", 90),
    Part("tests-jit", "hardware_checks", "test_jit", 60),
    Part("interop", "hardware_checks", "interop", 40),
    Part("launches", "hardware_times", "launches", 30),
    Part("forms", "hardware_forms", "forms", 60),
    Part("expressions", "hardware_forms", "expressions", 60),
    Part("times", "hardware_times", "times", 150),
)


def run_part(part: Part, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """Run a part in a process; return its results, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.json")
        command = [sys.executable, "-m", "tests.cuda.hardware", "--part", part.name]
        command += ["--out", str(results), "--seconds", str(seconds)]
        command += ["--tiny"] if options.tiny else []
        command += ["--standin"] if options.standin else []
        command += ["--libraries", *options.libraries]
        start = time.perf_counter()
        found: dict[str, Any] = {}
        log = Path(folder, "log")
        with log.open("w") as output:
            try:
                done = subprocess.run(
                    command, cwd=_ROOT, stdout=output, stderr=subprocess.STDOUT, timeout=seconds
                )
                found["status"] = "done" if done.returncode == 0 else f"exit {done.returncode}"
            except subprocess.TimeoutExpired:
                found["status"] = f"not done after {seconds:.0f} s"
        found["seconds"] = round(time.perf_counter() - start, 1)
        if results.exists():  # also what was there before a fault
            found["results"] = json.loads(results.read_text())
        text = log.read_text(errors="replace")
        if found["status"] != "done" or options.verbose:
            found["log"] = text[-6000:]
    return found


class Results(dict[str, Any]):
    """The results of a part, written to its file whenever one is added."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        written = self._path.with_suffix(".new")
        written.write_text(json.dumps(self, indent=1, default=str))
        written.replace(self._path)

    def attempt(self, key: str, function: Any, *arguments: Any) -> None:
        """Add the result of a call, or its error."""
        try:
            self[key] = function(*arguments)
        except Exception as error:
            self[key] = {"error": f"{type(error).__name__}: {error}"[:800]}


def _prepare(options: argparse.Namespace) -> None:
    """Choose driver and device, before dparray is imported."""
    os.environ["DPARRAY_DEVICE"] = "cuda:0"
    os.environ.setdefault("CUDA_STANDIN", "1" if options.standin else "0")
    os.environ.setdefault("DPARRAY_CACHE_DIR", str(Path(tempfile.gettempdir(), "dparray-hardware")))
    for toolkit in ("/usr/local/cuda",):
        if Path(toolkit).is_dir():
            os.environ.setdefault("CUDA_HOME", toolkit)
    if options.standin:
        from tests.cuda import cupy_standin, standin

        standin.install()
        cupy_standin.install()


def _table(results: dict[str, Any]) -> str:
    lines = []
    for name, part in results["parts"].items():
        lines.append(f"{name:16} {part['status']:12} {part['seconds']:6.1f} s")
        for key, value in part.get("results", {}).items():
            lines.append(f"    {key:40} {_short(value)}")
    return "\n".join(lines)


def _short(value: Any) -> str:
    """Return a result in one line."""
    if not isinstance(value, dict):
        return str(value).replace("\n", " ")[:110]
    parts = []
    for key, each in value.items():
        if isinstance(each, dict) and key != "errors":
            parts.append(f"{key}: {_short(each)}")
        elif isinstance(each, float):
            parts.append(f"{key} {each:.4g}")
        elif isinstance(each, list):
            parts.append(f"{len(each)} {key[:90]}")
        else:
            parts.append(f"{key} {str(each).partition(chr(10))[0]}")
    return "; ".join(parts)[:400]


def main() -> int:
    """Run the parts, or one of them in this process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="file of the results")
    parser.add_argument("--standin", action="store_true", help="use the stand-in for the driver")
    parser.add_argument("--tiny", action="store_true", help="small sizes and few tests")
    parser.add_argument("--only", nargs="*", default=[], help="names of parts")
    parser.add_argument("--libraries", nargs="*", default=[], help="those to time; all by default")
    parser.add_argument("--verbose", action="store_true", help="keep the logs of all parts")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        part = next(each for each in _PARTS if each.name == options.part)
        _prepare(options)
        module = importlib.import_module(f"tests.cuda.{part.module}")
        getattr(module, part.function)(Results(options.out), options)
        sys.stdout.flush()
        os._exit(0)  # no destructor of a library can change the result any more
    start = time.perf_counter()
    results: dict[str, Any] = {"parts": {}, "tiny": options.tiny, "standin": options.standin}
    for part in _PARTS:
        if options.only and part.name not in options.only:
            continue
        left = _LIMIT - (time.perf_counter() - start)
        if left < 5:
            results["parts"][part.name] = {"status": "no time", "seconds": 0.0}
            continue
        results["parts"][part.name] = run_part(part, options, min(part.seconds, left))
        results["seconds"] = round(time.perf_counter() - start, 1)
        options.out.write_text(json.dumps(results, indent=1, default=str))
        print(f"{part.name}: {results['parts'][part.name]['status']}", flush=True)
    print(_table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
