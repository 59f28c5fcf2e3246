"""``python -m tests.benchmarks``: dparray against NumPy, dpnp and others, in one run.

A benchmark is a module with a ``BENCHMARK``; its rows name the candidates they compare, dparray's
first. A ratio above 1 means that dparray is faster.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dparray.cli.bench import machine as _machine
from dparray.device import Device
from tests.benchmarks import (
    algorithms,
    allocation,
    compile,
    functions,
    fusion,
    gradients,
    launch,
    loops,
    overhead,
    programs,
    shapes,
    standard,
    tile,
)
from tests.benchmarks._registry import Benchmark, Row, Settings

__all__ = ["BENCHMARKS", "main", "measure_all"]

BENCHMARKS: dict[str, Benchmark] = {
    module.BENCHMARK.name: module.BENCHMARK
    for module in (
        launch,
        overhead,
        compile,
        allocation,
        fusion,
        programs,
        shapes,
        algorithms,
        functions,
        loops,
        tile,
        gradients,
        standard,
    )
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "benchmarks",
        nargs="*",
        metavar="BENCHMARK",
        help="the benchmarks to run (default: all): "
        + "; ".join(f"{each.name} - {each.summary}" for each in BENCHMARKS.values()),
    )
    parser.add_argument("--device", metavar="DEVICE", help="where to run dparray and dpnp")
    parser.add_argument(
        "--size",
        type=_positive,
        nargs="+",
        metavar="N",
        default=[],
        help="numbers of elements (default: 1000, a million and ten or twenty million)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        default=0.4,
        help="time for each row, shared by its candidates (default: %(default)s)",
    )
    parser.add_argument(
        "--npbench",
        type=Path,
        metavar="DIR",
        help="a clone of spcl/npbench, whose NumPy programs `programs` then runs too",
    )
    parser.add_argument(
        "--jit",
        action="store_true",
        help="with --npbench: run NPBench's Numba forms with dp.jit, and compare with Numba",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="with --jit or `loops`: the programs to run (default: all)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        # For maintainers: write the table of `standard` into FILE, between its two markers.
        help=argparse.SUPPRESS,
    )
    parser.set_defaults(parser=parser)


def _positive(text: str) -> int:
    try:
        number = int(float(text))
    except (ValueError, OverflowError):
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of elements")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks that ``argv`` names."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", allow_abbrev=False)
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(arguments: argparse.Namespace) -> int:
    """Measure and print a table for each benchmark, or one JSON document."""
    unknown = [name for name in arguments.benchmarks if name not in BENCHMARKS]
    if unknown:
        arguments.parser.error(
            f"no benchmark is called {', '.join(map(repr, unknown))}; choose from "
            f"{', '.join(BENCHMARKS)}"
        )
    names = arguments.benchmarks or list(BENCHMARKS)
    if arguments.npbench is not None and not (arguments.npbench / "bench_info").is_dir():
        arguments.parser.error(
            f"--npbench {arguments.npbench}: no clone of NPBench is there; make one: "
            "git clone https://github.com/spcl/npbench"
        )
    if arguments.jit and arguments.npbench is None:
        arguments.parser.error("--jit needs --npbench DIR, a clone of spcl/npbench")
    settings = Settings(
        Device(arguments.device),
        tuple(arguments.size),
        arguments.seconds,
        arguments.npbench,
        arguments.jit,
        tuple(arguments.only),
    )
    if arguments.page:
        machine = _machine.describe(settings.device)
        standard.write_section(
            arguments.page, standard.markdown(list(standard.BENCHMARK.measure(settings)), machine)
        )
        return 0
    if arguments.json:
        print(json.dumps(measure_all(names, settings), indent=2))
        return 0
    machine = _machine.describe(settings.device)
    print(
        f"{machine['cpu']}, {machine['usable_cores']} cores; {machine['device']}, driver "
        f"{machine['driver_version']}; dparray {machine['dparray']}, "
        + ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
        + f"; load {machine['load']:.1f}\n"
        "medians, ± half the interquartile range; a ratio above 1: dparray is faster"
    )
    for name in names:
        _print_table(BENCHMARKS[name], settings)
    return 0


def measure_all(names: Sequence[str], settings: Settings) -> dict[str, Any]:
    """Run benchmarks; return the document that ``--json`` prints."""
    return {
        "machine": _machine.describe(settings.device),
        "settings": {"sizes": list(settings.sizes), "seconds_per_row": settings.budget},
        "benchmarks": {
            name: {
                "summary": BENCHMARKS[name].summary,
                "rows": [_row_as_json(row) for row in BENCHMARKS[name].measure(settings)],
            }
            for name in names
        },
    }


def _ratios(row: Row) -> dict[str, float]:
    """Return how many times faster the first candidate is than each other."""
    if not row.timings:
        return {}
    first, *others = row.timings
    return {name: row.timings[name].median / row.timings[first].median for name in others}


def _row_as_json(row: Row) -> dict[str, Any]:
    first = next(iter(row.timings.values()), None)
    found: dict[str, Any] = {
        "case": row.case,
        "size": row.size,
        "seconds": {name: dataclasses.asdict(timing) for name, timing in row.timings.items()},
        "ratios": _ratios(row),
    }
    if row.bytes_moved and first is not None:
        found["gigabytes_per_second"] = row.bytes_moved / first.median / 1e9
    if row.share is not None:
        found["share_of_elementwise_speed"] = row.share
    if row.steps:
        found["plan_steps"] = row.steps
    if row.where:
        found["where"] = row.where
    if row.limit is not None and first is not None:
        found["limit"] = row.limit
        found["within_limit"] = first.median <= row.limit
    return found


def _print_table(benchmark: Benchmark, settings: Settings) -> None:
    """Print one line per row: the table at the end, progress to the error stream."""
    table = Table(title=f"{benchmark.name}: {benchmark.summary}", title_justify="left")
    rows = []
    for row in benchmark.measure(settings):
        rows.append(row)
        if sys.stderr.isatty():
            print(f"\r\033[K{benchmark.name}: {row.case}, {row.size}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    names = list(dict.fromkeys(name for row in rows for name in row.timings))
    table.add_column("case")
    table.add_column("size", justify="right")
    table.add_column(escape(f"{names[0]} [us]"), justify="right")
    table.add_column("GB/s", justify="right")
    has_steps = any(row.steps for row in rows)
    if has_steps:
        table.add_column("plan steps", justify="right")
    has_shares = any(row.share is not None for row in rows)
    if has_shares:
        table.add_column("of elementwise", justify="right")
    for name in names[1:]:
        table.add_column(escape(f"{name} [us]"), justify="right")
        table.add_column("ratio", justify="right")
    for row in rows:
        table.add_row(*_cells(row, names, has_steps, has_shares))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    console.print()
    console.print(table)
    for line in benchmark.conclude(rows):
        console.print(line, soft_wrap=True)


def _cells(row: Row, names: Sequence[str], has_steps: bool, has_shares: bool) -> list[str]:
    if not row.timings:
        return [escape(f"{row.case} ({row.where})"), f"{row.size:_}"]
    first = row.timings[names[0]]
    limit = ""
    if row.limit is not None:
        verdict = "within" if first.median <= row.limit else "ABOVE"
        limit = f" ({verdict} {row.limit * 1e6:.0f} us)"
    where = f" ({row.where})" if row.where else ""
    cells = [
        escape(row.case + where + limit),
        f"{row.size:_}",
        _microseconds(first),
        f"{row.bytes_moved / first.median / 1e9:.1f}" if row.bytes_moved else "",
    ]
    if has_steps:
        cells.append(str(row.steps or ""))
    if has_shares:
        cells.append("" if row.share is None else f"{row.share:.0%}")
    ratios = _ratios(row)
    for name in names[1:]:
        timing = row.timings.get(name)
        cells += ["", ""] if timing is None else [_microseconds(timing), f"{ratios[name]:.2f}"]
    return cells


def _microseconds(timing: Any) -> str:
    return f"{timing.median * 1e6:.1f} ±{timing.spread * 50:.0f}%"
