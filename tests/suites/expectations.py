"""Expected failures, by groups with a reason each; the format of ``expected/*.txt``.

::

    # A comment.
    [name of the group] the reason, on one line
    tests/test_file.py::TestClass::test_name 12
    tests/test_file.py::test_other * some examples fail, by chance

A test is named without its parameters. The number states how many of its cases fail; it is omitted
if the test has only one case. ``*`` allows any number and needs a reason.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_GROUP = re.compile(r"\[([^]]+)\]\s+(\S.{20,})")
_TEST = re.compile(r"(\S+::\S+)(?: (\d+)| (\*)(?: \S.*)?)?")

_OF_A_CLASS = re.compile(r"_param_\d+_\{.*?\}(?=::)")


class Expected(NamedTuple):
    """One line: how many cases of a test fail for one reason; ``None`` allows any number."""

    group: str
    count: int | None


class Expectations(NamedTuple):
    """The content of one file.

    Attributes:
        reasons: the reason of each group.
        tests: the lines of each test, which may be in several groups.
    """

    reasons: dict[str, str]
    tests: dict[str, list[Expected]]


def parse(text: str) -> Expectations:
    """Parse the text of an expectation file.

    Raises:
        ValueError: a line is invalid, a group has no reason, or a test precedes the first group.
    """
    reasons: dict[str, str] = {}
    tests: dict[str, list[Expected]] = collections.defaultdict(list)
    group = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if found := _GROUP.fullmatch(line):
            group = found[1]
            reasons[group] = found[2]
        elif (found := _TEST.fullmatch(line)) and group is not None:
            count = None if found[3] else int(found[2] or 1)
            tests[found[1]].append(Expected(group, count))
        else:
            raise ValueError(
                f"line {number} is neither a [group] with its reason nor a test of a group: {line}"
            )
    return Expectations(reasons, dict(tests))


def load(file: Path) -> Expectations:
    """Return the expectations of a file; empty if there is no such file."""
    return parse(file.read_text()) if file.exists() else Expectations({}, {})


def without_parameters(test: str) -> str:
    """Return a test's id without its parameters, and without those of CuPy's test classes."""
    return _OF_A_CLASS.sub("", test).partition("[")[0]


def compare(
    failed: Iterable[str], ran: Iterable[str], expected: Expectations, whole: bool = True
) -> tuple[dict[str, int], list[str]]:
    """Return the number of failures explained by each group, and a text for each deviation.

    Arguments:
        failed: ids of the tests that failed, with parameters.
        ran: ids of all tests that had an outcome.
        expected: the expectations.
        whole: whether all cases of these tests ran, so that numbers must agree.
    """
    found = collections.Counter(map(without_parameters, failed))
    groups: dict[str, int] = collections.Counter()
    unexpected = []
    for test in sorted(set(map(without_parameters, ran)) | found.keys()):
        lines = expected.tests.get(test, [])
        rest = found[test]
        for line in lines:
            part = rest if line.count is None else min(rest, line.count)
            groups[line.group] += part
            rest -= part
        if rest:
            unexpected.append(f"{rest} of {found[test]} failures not expected: {test}")
        allowed = sum(line.count or 0 for line in lines)
        if whole and found[test] < allowed:
            unexpected.append(f"{allowed - found[test]} of {allowed} pass now: {test}")
    return dict(groups), unexpected
