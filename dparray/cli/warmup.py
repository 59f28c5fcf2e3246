"""``dparray warmup``: compile and cache the kernels that most programs need."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dparray as dp
from dparray import _hooks
from dparray._compiler import cache
from dparray._evaluate import background, limits
from dparray.device import Device

#: Enough elements for kernels, and few enough for short run times.
_ROWS, _COLUMNS = 300, 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray warmup``."""
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help="the device (default: all devices of this machine that can hold arrays)",
    )
    parser.add_argument(
        "--dtype",
        nargs="+",
        choices=("float32", "float64"),
        default=["float32", "float64"],
        help="dtype of the data (default: both)",
    )
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.epilog = (
        "Sums, means, norms, softmax, masks, sorting, scans, histograms, random numbers. Kernels "
        "defined by a program are cached by running it once, for example while a container is "
        "built."
    )


def run(arguments: argparse.Namespace) -> int:
    """Compile, and print the number of kernels."""
    devices = [Device(arguments.device)] if arguments.device else list(dp.devices())
    devices = devices or [dp.default_device()]  # raises, with the reason
    counts = {"compiled": 0, "loaded": 0}

    def count(event: str, **values: Any) -> None:
        if event == "compile":
            counts["compiled" if values["origin"] == "compiled" else "loaded"] += 1

    start = time.perf_counter()
    stop = _hooks.subscribe(count)
    try:
        with limits.force("fused"):
            for device, dtype in itertools.product(devices, arguments.dtype):
                if dtype == "float64" and not device.has_fp64:
                    continue
                for name, program in programs(device, dtype):
                    if sys.stderr.isatty():
                        text = f"\r\033[K{device} {dtype}: {name}"
                        print(text, end="", file=sys.stderr, flush=True)
                    dp.eval(*arrays_of(program()))
        background.wait()
        for device in devices:
            dp.synchronize(device)
    finally:
        stop()
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
    seconds = time.perf_counter() - start
    base = cache.base_directory()
    directory = None if base is None else str(base)
    if arguments.json:
        names = [str(device) for device in devices]
        content = {"directory": directory, "devices": names, "seconds": seconds, **counts}
        print(json.dumps(content, indent=2))
    else:
        print(
            f"{counts['compiled']} kernels compiled and {counts['loaded']} found on disk in "
            f"{seconds:.1f} s, for {'; '.join(map(str, devices))}; "
            + (f"kept in {directory}" if directory else f"not kept: {cache.missing_reason()}")
        )
    return 0


def arrays_of(result: Any) -> list[Any]:
    """Return the arrays among a program's results."""
    several = result if isinstance(result, tuple | list) else [result]
    return [item for item in several if isinstance(item, dp.ndarray)]


def programs(device: Device, dtype: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Return the programs to run: for each, a name and a function that creates arrays."""
    random = dp.random.default_rng(0, device=device)
    x = random.standard_normal((_ROWS, _COLUMNS), dtype=dtype)
    y, weights = x * 2 + 1, x[0]
    flat = dp.reshape(x, -1)
    bins = dp.astype(dp.floor(abs(flat) * 8), "int64")
    dp.eval(y, flat, bins)
    yield "arithmetic", lambda: (x + y, x - y, x * y, x / y, x * 2, x + 1, x**2, -x, abs(x))
    yield "functions", lambda: (dp.sqrt(abs(x)), dp.exp(x), dp.log(abs(x)), dp.sin(x), dp.cos(x))
    yield "choices", lambda: (dp.where(x > 0, x, y), dp.maximum(x, y), dp.clip(x, -1, 1), x > 0)
    for axis in (None, 0, 1):
        yield f"reductions along {axis}", partial(_reductions, x, axis)
    yield "norms and errors", lambda: (dp.sqrt(dp.sum(x**2, axis=1)), dp.mean((x - y) ** 2))
    yield "standardised columns", lambda: (x - dp.mean(x, axis=0)) / dp.std(x, axis=0)
    yield "softmax of rows", lambda: _softmax(x)
    yield "weighted sums", lambda: (dp.sum(x * weights, axis=1), dp.sum(x * y))
    yield "masks", lambda: (flat[flat > 0], dp.nonzero(flat > 0)[0], dp.count_nonzero(flat > 0))
    yield "scans", lambda: dp.cumulative_sum(flat)
    yield "sorting", lambda: (dp.sort(flat), dp.argsort(flat), dp.argsort(bins))
    yield "histograms", lambda: (dp.bincount(bins), dp.histogram(flat, bins=50)[0])
    yield (
        "random numbers",
        lambda: (
            random.random(flat.size, dtype=dtype),
            random.standard_normal(flat.size, dtype=dtype),
            random.integers(0, 100, flat.size),
        ),
    )


def _reductions(x: Any, axis: int | None) -> list[Any]:
    return [reduce(x, axis=axis) for reduce in (dp.sum, dp.mean, dp.std, dp.max)]


def _softmax(x: Any) -> Any:
    powers = dp.exp(x - dp.max(x, axis=1, keepdims=True))
    return powers / dp.sum(powers, axis=1, keepdims=True)
