"""``dparray report``: write one file about a device, for hardware that we cannot test."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dparray as dp
from dparray.device import Device

#: Calls with ``xp``, NumPy or dparray, of float32 ``x`` and ``y`` (n,), ``m`` (rows, 1000), ``s``
#: (256, 256), int32 ``i`` (n,) and the mask ``b`` (n,).
CALLS = (
    *("x + y", "x * 2 - y / 3", "xp.exp(-x * x)", "xp.sqrt(x * x + y * y)", "xp.where(b, x, y)"),
    *("xp.sin(x) * xp.cos(y)", "xp.log1p(abs(x))", "xp.tanh(x)", "i // 7 + i % 5", "i << 2 ^ i"),
    *("x.sum()", "x.mean()", "x.var()", "x.max()", "x.argmin()", "xp.any(x > 3)", "i.sum()"),
    *("m.sum(axis=0)", "m.sum(axis=1)", "m.max(axis=1)", "m.argmax(axis=1)", "m.var(axis=1)"),
    *("m.mean(axis=1) + m.var(axis=1)", "m / abs(m).sum(axis=1, keepdims=True)", "m.std(axis=0)"),
    *("m[:, :17].sum(axis=1)", "m[:, :300].min(axis=1)", "xp.sqrt((m * m).sum(axis=1))"),
    *("xp.cumsum(i)", "xp.cumsum(m, axis=1)", "xp.sort(x)", "xp.argsort(i, stable=True)"),
    *("xp.unique(i % 1000)", "xp.searchsorted(xp.sort(x), y)", "xp.median(x)", "x[b]"),
    *("x[i % 1000]", "xp.take(x, i % 100)", "xp.nonzero(b)[0]", "m.T + 1", "xp.flip(m, axis=0)"),
    *("xp.bincount(i % 100)", "xp.histogram(x, bins=64, range=(-3, 3))[0]"),
    *("xp.concatenate([x, y])", "xp.repeat(x, 2)", "xp.roll(m, 3, axis=1)", "xp.diff(x)"),
    *("s @ s", "xp.linalg.solve(s + 40 * xp.eye(256, dtype='float32'), s)", "xp.linalg.norm(s)"),
    *("abs(xp.fft.fft(x[:4096]))", "xp.fft.irfft(xp.fft.rfft(x[:4096]))"),
)
_TOLERANCE = 2e-3
_BENCH_ROUNDS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray report``."""
    parser.add_argument(
        "--device", metavar="DEVICE", help="the device (default: the default device)"
    )
    parser.add_argument("--output", metavar="FILE", help="default: dparray-report-DEVICE.json")
    parser.add_argument("--elements", type=int, default=1_000_000, help="of the arrays")
    parser.add_argument(
        "--bench", nargs="*", metavar="ROW", default=[], help="rows of `dparray bench` (all)"
    )
    parser.epilog = (
        "The file has what `dparray info` and `dparray doctor` print, for each of "
        f"{len(CALLS)} calls its result compared with NumPy's and its time, and the rows of "
        "`dparray bench` on the device. It names the machine's "
        "devices and versions, and nothing else about it."
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the report; return 1 if a result differs or a call raised, otherwise 0."""
    device = Device(arguments.device)
    name = re.sub(r"\W+", "-", device.filter_string)
    path = Path(arguments.output or f"dparray-report-{name}.json")
    report: dict[str, Any] = {
        "device": str(device),
        "name": device.name,
        "driver": device.driver_version,
        "info": _of_command("info"),
        "doctor": _of_command("doctor", "--device", device.filter_string),
        "calls": [],
    }
    for result in results(device, arguments.elements):
        report["calls"].append(result)
        # Written before each call, so that a driver crash keeps the earlier results and its call.
        path.write_text(json.dumps(report, indent=1))
        if sys.stderr.isatty():
            print(f"\r\033[K{result['call']}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[Kdparray bench", end="", file=sys.stderr, flush=True)
    options = ("--device", device.filter_string, "--rounds", str(_BENCH_ROUNDS))
    report["bench"] = _of_command("bench", *arguments.bench, *options)
    path.write_text(json.dumps(report, indent=1))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    wrong = sum(result["status"] != "ok" for result in report["calls"])
    print(f"{path}: {len(report['calls']) - wrong} of {len(report['calls'])} calls as NumPy's")
    for result in report["calls"]:
        if result["status"] != "ok":
            print(f"  {result['call']}: {result['status']}")
    return 1 if wrong else 0


def _of_command(name: str, *arguments: str) -> Any:
    command = [sys.executable, "-m", "dparray", name, *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    try:
        return json.loads(done.stdout)
    except ValueError:
        return f"exit status {done.returncode}: {done.stderr[-1000:]}"


def results(device: Device, elements: int) -> Iterator[dict[str, Any]]:
    """Yield for each call: its text, its status and the milliseconds of its second run.

    Each dictionary is yielded before its call, which then sets the status.
    """
    random = np.random.default_rng(1)
    values = {
        "x": random.standard_normal(elements, dtype=np.float32),
        "y": random.standard_normal(elements, dtype=np.float32),
        "m": random.standard_normal((max(1, elements // 1000), 1000), dtype=np.float32),
        "s": random.standard_normal((256, 256), dtype=np.float32),
        "i": random.integers(0, elements, elements, dtype=np.int32),
        "b": random.random(elements) < 0.5,
    }
    arrays = {name: dp.asarray(value, device=device) for name, value in values.items()}
    with dp.config.override(fallback="allow"):
        for text in CALLS:
            result: dict[str, Any] = {"call": text, "status": "ended the process"}
            yield result
            try:
                expected = eval(text, {"xp": np, **values})
                actual = dp.asnumpy(eval(text, {"xp": dp, **arrays}))
                start = time.perf_counter()
                again = eval(text, {"xp": dp, **arrays})
                dp.eval(again)
                dp.synchronize(device)
                result["milliseconds"] = round(1e3 * (time.perf_counter() - start), 3)
                result["status"] = compared(actual, expected)
            except Exception as error:
                result["status"] = f"{type(error).__name__}: {str(error)[:300]}"


def compared(actual: np.ndarray, expected: Any) -> str:
    """Return ``"ok"``, or a description of the difference."""
    expected = np.asarray(expected)
    if actual.shape != expected.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    with np.errstate(all="ignore"):
        wide = np.result_type(actual.dtype, expected.dtype, np.float64)
        difference = np.abs(actual.astype(wide) - expected.astype(wide))
        scale = 1 + np.abs(expected.astype(wide))
        worst = float(np.max(difference / scale, initial=0.0))
    return "ok" if worst <= _TOLERANCE else f"differs by {worst:.1e} of the value"
