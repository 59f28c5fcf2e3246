"""``dparray bench --drivers A,B``: the kernels of two drivers, in turns in one process.

Generated kernels compute everything, since for some sizes NumPy would. The table shows the 20th
percentiles, and for each size the geometric mean of the ratios.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dparray as dp
from dparray import algorithms, special
from dparray._driver import NAMES, Missing, driver_named
from dparray._evaluate import limits
from dparray.cli.bench.ab import Comparison
from dparray.cli.bench.rows import Call, Operands, scale, seconds_of, warm
from dparray.device import Device
from dparray.exceptions import ArgumentError, DeviceError

SIZES = (100_000, 1_000_000, 20_000_000)
#: Threads of a driver may spin after its last work, so each batch begins after a pause.
_PAUSE_SECONDS = 4e-3
_BATCH_SECONDS = 4e-3
_ROOT_HALF = math.sqrt(0.5)


@dp.kernel
def _mandelbrot(item, out, width):  # type: ignore[no-untyped-def]
    i, j = item.get_id(0), item.get_id(1)
    cr = dp.float32(3) * dp.float32(j) / dp.float32(width) - dp.float32(2)
    ci = dp.float32(3) * dp.float32(i) / dp.float32(width) - dp.float32(1.5)
    zr, zi, n = dp.float32(0), dp.float32(0), 0
    while n < 100 and zr * zr + zi * zi < dp.float32(4):
        zr, zi = zr * zr - zi * zi + cr, dp.float32(2) * zr * zi + ci
        n += 1
    out[i, j] = n


@dp.kernel
def _private_array(item, x, out):  # type: ignore[no-untyped-def]
    i = item.get_id(0)
    window: Any = dp.PrivateArray(8, dtype=dp.float32)
    for k in range(8):
        window[k] = x[i] + k
    total = window[0]
    for k in range(1, 8):
        total += window[k] * window[k - 1]
    out[i] = total


def _black_scholes(o: Operands) -> Any:
    d1 = (dp.log(o.x / o.y) + 0.0325) / 0.2121
    first, second = (0.5 * (1 + special.erf(d * _ROOT_HALF)) for d in (d1, d1 - 0.2121))
    return o.x * first - o.y * dp.exp(-0.01) * second


def _stencil(o: Operands) -> Any:
    m = o.matrix
    return 0.2 * (m[1:-1, 1:-1] + m[:-2, 1:-1] + m[2:, 1:-1] + m[1:-1, :-2] + m[1:-1, 2:])


def _points(o: Operands) -> Any:
    count = max(16, math.isqrt(o.x.size // 4))
    return o.x[: count * 16].reshape(count, 16)


def _in_plane(o: Operands) -> None:
    side = o.matrix.shape[0]
    dp.call_kernel(_mandelbrot, dp.Range(side, side), o.matrix, side)


STATEMENTS: dict[str, tuple[Callable[[Operands], Any], str]] = {
    "x + y": (lambda o: o.x + o.y, "f4"),
    "(x * y + x) * 2 - y / (x + 1)": (lambda o: (o.x * o.y + o.x) * 2 - o.y / (o.x + 1), "f4"),
    "Black-Scholes": (_black_scholes, "f4"),
    "exp(sin(x)) + 1": (lambda o: dp.exp(dp.sin(o.x)) + 1, "f4"),
    "sqrt(x) + tanh(y)": (lambda o: dp.sqrt(o.x) + dp.tanh(o.y), "f4"),
    "x ** y": (lambda o: o.x**o.y, "f4"),
    "log(x) + cos(y), float64": (lambda o: dp.log(o.x) + dp.cos(o.y), "f8"),
    "where(x > y, ...)": (lambda o: dp.where(o.x > o.y, o.x * 2, o.y - o.x), "f4"),
    "x // y + x % y, int32": (lambda o: o.x // o.y + o.x % o.y, "i4"),
    "x[::2] + y[::2]": (lambda o: o.x[::2] + o.y[::2], "f4"),
    "broadcast": (lambda o: o.matrix * o.matrix[0] + o.matrix[:, :1], "f4"),
    "transposed": (lambda o: o.matrix.T + o.matrix, "f4"),
    "stencil": (_stencil, "f4"),
    "sum": (lambda o: dp.sum(o.x), "f4"),
    "sum of rows": (lambda o: dp.sum(o.matrix, axis=1), "f4"),
    "sum of columns": (lambda o: dp.sum(o.matrix, axis=0), "f4"),
    "softmax of rows": (lambda o: special.softmax(o.matrix, axis=1), "f4"),
    "var": (lambda o: dp.var(o.x), "f4"),
    "random": (lambda o: dp.random.default_rng(1).random(o.x.size, dtype="f4"), "f4"),
    "pairwise distance": (lambda o: algorithms.pairwise_distance(_points(o), _points(o)), "f4"),
    "kernel: scale": (lambda o: dp.call_kernel(scale, dp.Range(o.x.size), o.x, 0.5, o.z), "f4"),
    "kernel: private array": (
        lambda o: dp.call_kernel(_private_array, dp.Range(o.x.size), o.x, o.z),
        "f4",
    ),
    "kernel: Mandelbrot": (_in_plane, "i4"),
}


def devices_of(names: str) -> list[Device]:
    """Return the default devices of two drivers.

    Raises:
        ArgumentError: these are not the names of two drivers.
        DeviceError: this installation lacks one.
    """
    chosen = names.split(",")
    if len(chosen) != 2 or not set(chosen) <= set(NAMES):
        raise ArgumentError(f"--drivers must be two of {', '.join(NAMES)}, not {names!r}")
    devices = []
    for name in chosen:
        driver = driver_named(name)
        if isinstance(driver, Missing):
            raise DeviceError(f"there is no driver {name}: {driver.reason}; {driver.fix}")
        devices.append(Device(driver.default_queue(driver.devices()[0])))
    return devices


def compare(
    devices: Sequence[Device], labels: Sequence[str], rounds: int
) -> Iterator[tuple[int, Comparison]]:
    """Time statements on two devices in turns; yields the size and the seconds."""
    for size in SIZES:
        for name, (statement, dtype) in STATEMENTS.items():
            label = f"{name}, {size:_}"
            if labels and not any(each in label for each in labels):
                continue
            with limits.force("fused"), dp.config.override(background_compile=False):
                calls = [_call(statement, size, dtype, device) for device in devices]
                longest = max(warm(*each) for each in zip(calls, devices, strict=True))
                count = max(1, int(_BATCH_SECONDS / longest))
                times: list[list[float]] = [[], []]
                for _ in range(max(2, min(rounds, int(1 / (longest * count))))):
                    for call, seconds in zip(calls, times, strict=True):
                        time.sleep(_PAUSE_SECONDS)
                        seconds_of(call, 1)
                        seconds.append(seconds_of(call, count))
            low = [statistics.quantiles(each, n=5, method="inclusive")[0] for each in times]
            yield size, Comparison(label, *low)


def _call(statement: Callable[[Operands], Any], size: int, dtype: str, device: Device) -> Call:
    operands = Operands(dp, device, size, dtype)

    def call() -> None:
        with dp.use_device(device):
            result = statement(operands)
            dp.synchronize(device if result is None else result)

    return call


def report(results: Sequence[tuple[int, Comparison]], names: str) -> str:
    """Return the table, and the geometric mean for each size."""
    first, second = names.split(",")
    width = max(len(each.row) for _, each in results)
    head = f"{first + ' [us]':>12}  {second + ' [us]':>12}  speed {first}/{second}"
    lines = [f"{'row':{width}}  {head}"]
    lines += [
        f"{each.row:{width}}  {each.new * 1e6:12.1f}  {each.old * 1e6:12.1f}  {each.ratio:11.2f}"
        for _, each in results
    ]
    for size in SIZES:
        ratios = [each.ratio for of, each in results if of == size]
        if ratios:
            won = sum(ratio >= 1 for ratio in ratios)
            mean = statistics.geometric_mean(ratios)
            lines.append(
                f"{size:_}: geometric mean {mean:.2f}, {first} wins {won} of {len(ratios)}"
            )
    return "\n".join(lines)
