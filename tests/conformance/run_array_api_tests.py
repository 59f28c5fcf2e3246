"""Run the Array API test suite on dparray: ``python run_array_api_tests.py path/to/checkout``.

The suite is not on PyPI: clone https://github.com/data-apis/array-api-tests with its submodule.
It needs ``pytest-json-report`` and ``ndindex`` beside pytest and hypothesis. The exit status is 0
if exactly the tests named in ``array_api_expectations.txt`` fail.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPECTATIONS = HERE / "array_api_expectations.txt"
VERSION = "2024.12"
#: How a reason starts when only some of the suite's random examples fail.
SOMETIMES = "for some examples: "


def expected_failures(text: str) -> dict[str, str]:
    """The reason of each expected failure, by test id."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        test, separator, reason = line.partition(" # ")
        if not separator or not reason.strip():
            raise ValueError(f"line {number} of the expectations names no reason: {line}")
        found[f"array_api_tests/{test.strip()}"] = reason.strip()
    return found


def compare(failed: set[str], passed: set[str], expected: dict[str, str]) -> list[str]:
    """What differs from the expectations, in words."""
    return [
        *(f"fails, but is not expected to: {test}" for test in sorted(failed - expected.keys())),
        *(
            f"passes now, remove it: {test}"
            for test in sorted(passed & expected.keys())
            if not expected[test].startswith(SOMETIMES)
        ),
    ]


def run(checkout: Path, max_examples: int, arguments: list[str]) -> dict[str, str]:
    """The outcome of each test, by id."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        environment = os.environ | {
            "ARRAY_API_TESTS_MODULE": "dparray",
            "ARRAY_API_TESTS_VERSION": VERSION,
        }
        command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "--disable-deadline"]
        command += [f"--max-examples={max_examples}", "-p", "no:cacheprovider", "--json-report"]
        command += [f"--json-report-file={report}", *arguments]
        subprocess.run(command, cwd=checkout, env=environment, check=False)
        if not report.exists():
            raise SystemExit("the suite did not run; are pytest-json-report and ndindex installed?")
        tests = json.loads(report.read_text())["tests"]
    return {test["nodeid"]: test["outcome"] for test in tests}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a checkout of data-apis/array-api-tests")
    parser.add_argument("--max-examples", type=int, default=50)
    options, rest = parser.parse_known_args()
    expected = expected_failures(EXPECTATIONS.read_text())
    outcomes = run(options.checkout, options.max_examples, rest)
    failed = {test for test, outcome in outcomes.items() if outcome in ("failed", "error")}
    passed = {test for test, outcome in outcomes.items() if outcome == "passed"}
    print(f"{len(passed)} passed, {len(failed)} failed of {len(outcomes)}")
    differences = compare(failed, passed, expected)
    print("\n".join(differences) or "as expected")
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
