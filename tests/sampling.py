"""Select the cases to run: a sample by default, all with ``--all``.

Three quarters of the 31,000 cases belong to 109 test functions, most of them grids of parameters.
By default a function runs cases until every value of every parameter has occurred, but at most
`MAX_CASES`. Among equally useful cases a hash of the name decides, so the choice is the same on
every machine. ``@pytest.mark.sample(4)`` lowers the limit of a function whose cases take long. The
fixture ``queue`` is the CPU and one sub-device, and tests marked ``slow`` or ``static`` are left
out. Property tests use an eighth of their examples (`tests.support.examples`).

``--all`` runs every case, ``--part 2/3`` one of three disjoint parts of the cases. A file named on
the command line runs with its slow and static tests, a test named there (``file.py::test``) with
all of its cases.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

MAX_CASES = 16
LEFT_OUT = {"slow", "static"}
QUEUES = ("cpu", "sub-device-1", "second-platform")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--all`` and ``--part``."""
    parser.addoption("--all", action="store_true", help="run every case, slow tests included")
    parser.addoption("--part", metavar="K/N", help="only part K of N of the cases")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what this run leaves out."""
    chosen = _chosen(config, items)
    if len(chosen) < len(items):
        kept = set(map(id, chosen))
        # pytest's terminal report keeps these cases; a worker shows none and needs the memory.
        if not hasattr(config, "workerinput"):
            config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = chosen


def _chosen(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    part, parts = _part(config.getoption("--part"))
    items = items if config.getoption("--all") else _sampled(config, items)
    return [item for item in items if _hash(item) % parts == part]


def _sampled(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the cases of a run without ``--all``."""
    if any("::" in argument for argument in config.args):
        return items
    if not config.option.markexpr:
        files = {Path(argument).resolve() for argument in config.args if argument.endswith(".py")}
        items = [item for item in items if item.path in files or not _is_left_out(item)]
    items = [item for item in items if _parameters(item).get("queue", "cpu") in QUEUES]
    by_function: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_function.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {id(item) for cases in by_function.values() for item in sample(cases, _limit(cases[0]))}
    return [item for item in items if id(item) in kept]


def _is_left_out(item: pytest.Item) -> bool:
    return any(mark.name in LEFT_OUT for mark in item.iter_markers())


def _limit(item: pytest.Item) -> int:
    mark = item.get_closest_marker("sample")
    return MAX_CASES if mark is None else int(mark.args[0])


def _part(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 1
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise pytest.UsageError(f"--part must be K/N with 1 <= K <= N, as in 2/3; got {text!r}")
    return int(part) - 1, int(parts)


def _hash(item: pytest.Item) -> int:
    return zlib.crc32(item.nodeid.encode())


def _parameters(item: pytest.Item) -> dict[str, object]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def _values(item: pytest.Item) -> frozenset[tuple[str, int]]:
    """Return each parameter of a case with the identity of its value; cases share these objects."""
    return frozenset((name, id(value)) for name, value in _parameters(item).items())


def sample(cases: Iterable[pytest.Item], count: int = MAX_CASES) -> list[pytest.Item]:
    """Choose cases of a function until every parameter value has occurred, but at most ``count``.

    Each step takes the case with the largest number of values that no chosen case has (a greedy
    cover).
    """
    left = [(case, _values(case)) for case in sorted(cases, key=_hash)]
    chosen: list[pytest.Item] = []
    seen: set[tuple[str, int]] = set()
    while left and len(chosen) < count:
        best, values = max(left, key=lambda case: len(case[1] - seen))
        if chosen and values <= seen:
            break
        seen |= values
        left.remove((best, values))
        chosen.append(best)
    return chosen
