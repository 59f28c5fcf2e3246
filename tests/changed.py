"""Run the tests that a change can break: ``make test ARGS=--changed``.

The changed files are those that differ from HEAD, or from the point at which this branch left the
revision in ``--changed=main``. First come the changed test files, then the test files that call
functions of a changed file, those before others that call functions of the fewest files. No test
starts later than `SECONDS` after the beginning. The report lists the tests that were left out.

``--record-calls`` writes which files each test file calls. A profile function notes the calls in
the process of the test, and makes the run about twice as long. It sees no C code, no device code
and no tables. For a file without a record, the tests run that are in a folder of its name.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

SECONDS = 150
# For each test file a file: its path, then the paths of the files that it calls.
TABLE = Path("build", "test-calls")
_TESTS_OF = {"kernels": "algorithms"}  # the folders without tests of the same name
_TIME_IS_UP = "--changed: the time is up"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--changed`` and ``--record-calls``."""
    text = "run the tests of the files that differ from REV, HEAD by default, for three minutes"
    parser.addoption("--changed", nargs="?", const="HEAD", metavar="REV", help=text)
    text = "record which files each test file calls, for --changed"
    parser.addoption("--record-calls", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins that the options ask for."""
    if config.getoption("--record-calls"):
        config.pluginmanager.register(Recorder(config.rootpath))
    if revision := config.getoption("--changed"):
        files = changed_files(config.rootpath, revision)
        if not files:
            text = f"no file differs from {revision}; --changed=REV names another revision"
            raise pytest.UsageError(text)
        # Workers get the options of the main process, so they stop at the same time.
        if not hasattr(config.option, "changed_until"):
            config.option.changed_until = time.time() + SECONDS
        config.option.loadscopereorder = False  # pytest-xdist would begin with the largest files
        config.pluginmanager.register(Selection(config, files))


def changed_files(root: Path, revision: str) -> list[str]:
    """Return the files that differ from a revision, and those that git does not track yet."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
        if done.returncode:
            raise pytest.UsageError(f"--changed: git {arguments[0]}: {done.stderr.strip()}")
        return done.stdout.splitlines()

    (base,) = git("merge-base", "HEAD", revision)
    files = {*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")}
    return sorted(files)


def read_table(root: Path) -> dict[str, set[str]]:
    """Return the recorded test files, each with the files that it calls."""
    records = [file.read_text().splitlines() for file in (root / TABLE).glob("*")]
    return {test: set(calls) for test, *calls in records if (root / test).is_file()}


def tests_of(
    root: Path, files: list[str], table: dict[str, set[str]]
) -> tuple[list[str], list[str]]:
    """Return test files, the most useful first, and a remark for each file without a record."""
    changed, called, mirrors, remarks = [], [], [], []
    for path in map(Path, files):
        tests = [test for test, calls in table.items() if path.as_posix() in calls]
        called += tests
        if path.parts[0] == "tests" and path.match("test_*.py"):
            changed += [path.as_posix()] * (root / path).is_file()
        elif not tests:
            names = [_TESTS_OF.get(part, part.strip("_")) for part in path.parts[:-1]]
            folders = [root / "tests" / name for name in names if (root / "tests" / name).is_dir()]
            found = [test for folder in folders for test in sorted(folder.rglob("test_*.py"))]
            found.sort(key=lambda test: path.stem.strip("_") not in test.stem)
            mirrors += [test.relative_to(root).as_posix() for test in found]
            where = ", ".join(f"tests/{folder.name}" for folder in folders) or "no folder"
            remarks.append(f"no record of tests that call {path}; taken: {where}")
    called.sort(key=lambda test: len(table[test]))
    return list(dict.fromkeys(["tests/test_tiny.py", *changed, *called, *mirrors])), remarks


class Selection:
    """Run the tests of the changed files in the order of their use, until the time is up."""

    def __init__(self, config: pytest.Config, files: list[str]) -> None:
        root = config.rootpath
        self._until = config.option.changed_until
        self._tests, self._remarks = tests_of(root, files, read_table(root))
        self._ranks = {root / test: rank for rank, test in enumerate(self._tests)}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        left_out = collection_path.suffix == ".py" and collection_path not in self._ranks
        return True if left_out else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._ranks[item.path])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if time.time() > self._until:
            pytest.skip(_TIME_IS_UP)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print why these tests ran, and those of them for which the time was too short."""
        skipped = terminalreporter.stats.get("skipped", [])
        late = [each.nodeid for each in skipped if _TIME_IS_UP in str(each.longrepr)]
        files = list(dict.fromkeys(name.partition("::")[0] for name in late))
        write = terminalreporter.write_line
        write(f"--changed: {len(self._tests)} test files, without slow and static tests")
        for remark in self._remarks:
            write(f"  {remark}")
        write(f"cases left out after {SECONDS} s: {len(late)}, files: {len(files)}")
        for file in files:
            write(f"  {file}")


class Recorder:
    """Note the files whose functions each test file calls."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._entered: set[CodeType] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        add = self._entered.add
        sys.setprofile(lambda frame, *_: add(frame.f_code))
        threading.setprofile(lambda frame, *_: add(frame.f_code))
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            if nextitem is None or nextitem.path != item.path:
                self._write(item.path)

    def _write(self, test: Path) -> None:
        package = self._root / "dparray"
        files = {Path(code.co_filename) for code in self._entered}
        calls = [file for file in files if package in file.parents]
        lines = [path.relative_to(self._root).as_posix() for path in (test, *sorted(calls))]
        (self._root / TABLE).mkdir(parents=True, exist_ok=True)
        (self._root / TABLE / lines[0].replace("/", ".")).write_text("\n".join(lines))
        self._entered.clear()
