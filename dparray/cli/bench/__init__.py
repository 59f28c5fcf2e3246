"""``dparray bench``: dparray against NumPy, with ``--ab`` against another commit of itself, or with
``--drivers`` one driver against another.

Without ``--ab`` one process times each row in turns: a batch of calls by dparray, one by NumPy.
The 20th percentiles are compared; a ratio above 1 means that dparray is faster.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import dparray as dp
from dparray.cli.bench import ab, drivers, machine
from dparray.cli.bench.rows import ROWS, Row, seconds_of, warm
from dparray.device import Device
from dparray.exceptions import ArgumentError

__all__ = ["add_arguments", "run"]

_BATCH_SECONDS = 1e-3
_MAX_CALLS = 2_000


class Result(NamedTuple):
    """The seconds of a call; NumPy's are missing where it has nothing to compare."""

    row: str
    seconds: float
    numpy_seconds: float | None

    @property
    def ratio(self) -> float | None:
        """The speed of dparray relative to NumPy."""
        return None if self.numpy_seconds is None else self.numpy_seconds / self.seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``dparray bench``."""
    groups = ", ".join(dict.fromkeys(row.group for row in ROWS))
    parser.add_argument(
        "rows",
        nargs="*",
        metavar="ROW",
        help=f"time rows whose label contains this (default: all); the groups are {groups}",
    )
    parser.add_argument("--device", metavar="DEVICE", help="where to run dparray")
    parser.add_argument(
        "--ab",
        metavar="REV",
        help="compare this tree with a commit of the clone, in alternating processes. The status "
        f"is {ab.LOST} if a row is slower than {ab.MIN_RATIO} of the commit's speed, and "
        f"{ab.CANNOT_JUDGE} if the machine is too busy to judge",
    )
    parser.add_argument(
        "--drivers",
        metavar="A,B",
        help="compare the generated kernels of two drivers, such as host,sycl, at three sizes. It "
        "has rows of its own, whose labels end with the size",
    )
    parser.add_argument(
        "--rounds",
        type=_positive,
        metavar="N",
        default=ab.ROUNDS,
        help="how often each row is timed in a process (default: %(default)s)",
    )
    parser.add_argument(
        "--pairs",
        type=_positive,
        metavar="N",
        default=ab.PAIRS,
        help="with --ab: the number of pairs of processes (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Time the chosen rows, and print a table or JSON."""
    if arguments.drivers is not None:
        return _run_drivers(arguments)
    labels = ab.chosen_rows(arguments.rows)
    if arguments.ab is not None:
        return _run_ab(arguments, labels)
    device = Device(arguments.device)
    description = machine.describe(device)
    chosen = [row for row in ROWS if row.label in labels]
    if arguments.json:
        values = [
            result._asdict() | {"ratio": result.ratio}
            for result in measure(chosen, device, arguments.rounds)
        ]
        print(json.dumps({"machine": description, "rows": values}, indent=2))
        return 0
    print(
        f"{description['cpu']}, {description['usable_cores']} cores; {description['device']}; "
        f"load {description['load']:.1f}\n"
    )
    width = max(len(row.label) for row in chosen)
    print(f"{'row':{width}}  dparray [us]  NumPy [us]  speed dparray/NumPy")
    for result in measure(chosen, device, arguments.rounds):
        line = f"{result.row:{width}}  {result.seconds * 1e6:12.2f}"
        if result.numpy_seconds is not None:
            line += f"  {result.numpy_seconds * 1e6:10.2f}  {result.ratio:19.2f}"
        print(line)
    return 0


def _run_ab(arguments: argparse.Namespace, labels: list[str]) -> int:
    with ab.checked_out(arguments.ab) as other:
        comparisons = ab.compare(
            other, labels, rounds=arguments.rounds, pairs=arguments.pairs, device=arguments.device
        )
    text, status = ab.report(comparisons, arguments.ab)
    if arguments.json:
        values = [comparison._asdict() | {"ratio": comparison.ratio} for comparison in comparisons]
        text = json.dumps({"ab": arguments.ab, "status": status, "rows": values}, indent=2)
    print(text)
    return status


def _run_drivers(arguments: argparse.Namespace) -> int:
    devices = drivers.devices_of(arguments.drivers)
    results = list(drivers.compare(devices, arguments.rows, arguments.rounds))
    if not results:
        raise ArgumentError(f"no row contains one of {', '.join(arguments.rows)}")
    text = drivers.report(results, arguments.drivers)
    if arguments.json:
        values = [each._asdict() | {"ratio": each.ratio} for _, each in results]
        text = json.dumps({"drivers": arguments.drivers, "rows": values}, indent=2)
    print(text)
    return 0


def measure(rows: list[Row], device: Any, rounds: int) -> Iterator[Result]:
    """Time rows in turns with NumPy."""
    for row in rows:
        if sys.stderr.isatty():
            print(f"\r\033[K{row.label}", end="", file=sys.stderr, flush=True)
        calls = [row.make(dp, device)]
        if row.has_numpy:
            calls.append(row.make(np, None))
        counts = [min(_MAX_CALLS, int(_BATCH_SECONDS / warm(call, device)) + 1) for call in calls]
        times: list[list[float]] = [[] for _ in calls]
        gc.collect()
        for _ in range(max(2, rounds)):
            for place, (call, count) in enumerate(zip(calls, counts, strict=True)):
                seconds_of(call, count // 4 + 1)  # fills the caches
                times[place].append(seconds_of(call, count))
                dp.synchronize(device)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        seconds = [statistics.quantiles(time, n=5, method="inclusive")[0] for time in times]
        yield Result(row.label, seconds[0], seconds[1] if row.has_numpy else None)
