"""Run the test suites of other projects with dparray instead of the library that they test.

``make suites`` builds the environment and runs all of them; ``ARGS="dpnp scipy"`` runs some, and
``ARGS="dpnp --only test_sum --sample 10"`` runs every tenth test whose id contains the word. The
final table has the counts. Failures that no expectation explains, and expected failures that pass,
are listed below it, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import expectations
from suites import SUITES, Missing, Piece, Suite

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "suites"
FAILED = ("failed", "crashed")
#: How a module in place of a package begins the reason for which it skips a test that would fail
#: before dparray is reached.
NOT_REACHED = "not a test of dparray: "


def outcomes(report: Path) -> dict[str, tuple[str, str]]:
    """Return the outcome and the error of each test; one that ended the process has "crashed"."""
    found: dict[str, tuple[str, str]] = {}
    if not report.exists():
        return found
    for line in report.read_text().splitlines():
        values = json.loads(line)
        test, outcome = values["test"], values["outcome"]
        if outcome == "started":
            found.setdefault(test, ("crashed", "the process ended in this test"))
        elif found.get(test, ("", ""))[0] != "failed":
            found[test] = (outcome, values.get("error", ""))
    return found


def forget_failures(report: Path) -> list[str]:
    """Remove failed tests from a report, so that they run again; return their ids."""
    failed = [test for test, (outcome, _) in outcomes(report).items() if outcome in FAILED]
    if failed:
        gone = set(failed)
        lines = report.read_text().splitlines(keepends=True)
        report.write_text("".join(line for line in lines if json.loads(line)["test"] not in gone))
    return failed


def run_piece(suite: Suite, piece: Piece, report: Path, options: argparse.Namespace) -> str:
    """Run a piece until all its tests have an outcome; return the error of the process, or ""."""
    environment = os.environ | suite.environment
    environment["DPARRAY_SUITES_REPORT"] = str(report)
    environment["DPARRAY_SUITES_SAMPLE"] = str(options.sample)
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, HERE, suite.folder)))
    ini = WORK / "pytest.ini"
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--no-summary", "--tb=short"]
    command += ["-p", "recorder", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["--timeout", str(options.timeout), "--timeout-method=thread"]
    if not (suite.folder / "pytest.ini").exists():
        command += ["-c", str(ini), f"--rootdir={suite.folder}"]
    for _ in range(20):  # a test that ends the process is skipped
        before = len(outcomes(report))
        with report.with_suffix(".log").open("a") as log:
            done = subprocess.run(
                [*command, *piece.arguments],
                cwd=suite.folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode in (0, 1, 5):
            return ""
        if len(outcomes(report)) == before:
            return f"pytest ended with {done.returncode}, see {report.with_suffix('.log')}"
    return "twenty tests ended the process"


def not_reached(found: Mapping[str, tuple[str, str]]) -> dict[str, int]:
    """The number of tests that are not tests of dparray, by reason."""
    texts = (error.partition(NOT_REACHED) for _, error in found.values())
    return collections.Counter(mark + reason.rstrip("')") for _, mark, reason in texts if mark)


def run_suite(name: str, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the row of the table, and the deviations from the expectations."""
    work = WORK / name
    work.mkdir(parents=True, exist_ok=True)
    (WORK / "pytest.ini").write_text("[pytest]\n")
    try:
        suite = SUITES[name](work)
    except Missing as error:
        return [name, "not at hand", "", "", ""], [f"{name}: {error}"]
    report = work / "report.jsonl"
    failed_before = forget_failures(report) if options.again else []
    if not (options.resume or options.again):
        report.unlink(missing_ok=True)
        report.with_suffix(".log").unlink(missing_ok=True)
    wrong = []
    pieces = [p for p in suite.pieces if not options.only or any(o in p.name for o in options.only)]
    if options.again:
        pieces = [p for p in pieces if any(p.name in test for test in failed_before)]
    for number, piece in enumerate(pieces, 1):
        started = time.monotonic()
        message = run_piece(suite, piece, report, options)
        if message:
            wrong.append(f"{piece.name}: {message}")
        seconds = time.monotonic() - started
        print(f"{name} {number}/{len(pieces)} {piece.name}: {seconds:.0f} s", flush=True)
    found = outcomes(report)
    failed = [test for test, (outcome, _) in found.items() if outcome in FAILED]
    passed = [test for test, (outcome, _) in found.items() if outcome in ("passed", "xfailed")]
    expected = expectations.load(HERE / "expected" / f"{name}.txt")
    groups, unexpected = expectations.compare(
        failed, [*failed, *passed], expected, whole=options.sample == 1
    )
    rest = len(failed) - sum(groups.values())
    for reason, count in not_reached(found).items():
        print(f"\n{suite.title}: {count} not run, {reason}", flush=True)
    row = [suite.title, str(len(failed) + len(passed)), str(len(passed))]
    row += [str(sum(groups.values())), str(rest)]
    lines = [f"{count:7} {group}: {expected.reasons[group]}" for group, count in groups.items()]
    if lines:
        print(f"\n{suite.title}: failures that are expected")
        print("\n".join(lines), flush=True)
    return row, [f"{name}: {line}" for line in wrong + unexpected]


def table(rows: list[list[str]]) -> str:
    head = ["suite", "run", "passed", "expected to fail", "unexpected"]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    bar = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [head, bar, *rows]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="WORD",
        help="only pieces whose name contains a word",
    )
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every N-th test")
    parser.add_argument("--resume", action="store_true", help="skip tests of the last run")
    parser.add_argument(
        "--again", action="store_true", help="run only tests that failed in the last run"
    )
    parser.add_argument(
        "--timeout", type=int, default=300, metavar="SECONDS", help="limit for each test"
    )
    options = parser.parse_args()
    if unknown := set(options.suites) - SUITES.keys():
        parser.error(f"no such suite: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    rows, unexpected = [], []
    for name in options.suites or SUITES:
        row, lines = run_suite(name, options)
        rows.append(row)
        unexpected += lines
    print("\n" + table(rows))
    if unexpected:
        print("\nNot as expected:", *unexpected, sep="\n  ")
    return 1 if unexpected else 0


if __name__ == "__main__":
    raise SystemExit(main())
