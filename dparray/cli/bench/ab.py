"""``dparray bench --ab REV``: this tree against another commit, row by row.

The other commit is unpacked into a temporary folder, where its C module is built. Two processes,
one for each tree, take turns: one times a row while the other waits. The 20th percentiles over
several pairs of processes are compared, since each process has a new memory layout. NumPy's work,
the control, is timed between all rows; unless both sides need the same time for it, the machine is
too busy to judge.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dparray.cli.bench import rows as all_rows
from dparray.exceptions import ArgumentError, DparrayError

#: The smallest ratio of speeds, new to old, that is not listed as a loss.
MIN_RATIO = 0.97
#: The deviation from 1 of the control's ratio above which nothing can be judged.
MAX_CONTROL_DEVIATION = 0.02
PAIRS = 3
ROUNDS = 30
LOST, CANNOT_JUDGE = 1, 3
_TREE = Path(__file__).resolve().parents[3]
_CONTROLS = tuple(row.label for row in all_rows.CONTROLS)
#: Rows that take longer are compared with the control that works in memory.
_LARGE_SECONDS = 30e-6
_BATCH_SECONDS = 1e-3
_MAX_CALLS = 2_000
_MIN_ROUNDS = 5
_ROW_SECONDS = 4.0


class Comparison(NamedTuple):
    """The seconds of a call in both trees: 20th percentiles."""

    row: str
    new: float
    old: float

    @property
    def ratio(self) -> float:
        """The speed of this tree relative to the other; above 1, this tree is faster."""
        return self.old / self.new


class _Process:
    """A process that times rows in one tree."""

    def __init__(self, tree: Path, cache: Path, device: str | None) -> None:
        environment = os.environ | {
            "PYTHONPATH": str(tree),
            "DPARRAY_CACHE_DIR": str(cache),
            "DPARRAY_NOTICES": "0",
        }
        # With `-c`, the first folder on the import path is the current folder: the tree.
        command = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
        self._process = subprocess.Popen(
            [sys.executable, "-c", command, all_rows.__file__, *([device] if device else [])],
            cwd=tree,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        package, self.device = self._read()
        if Path(package).parents[1] != tree:
            raise DparrayError(f"the process of {tree} imported {package}")

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise DparrayError(f"a timing process ended with status {self._process.wait()}")
        return json.loads(line)

    def ask(self, *request: Any) -> float:
        """Send a request and return its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return float(self._read())

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Return a folder with the files of a commit; the C modules of both trees are built for it."""
    if not (_TREE / ".git").exists():
        raise ArgumentError(
            f"--ab needs a git clone of dparray, and {_TREE} is not one; "
            "clone the repository and install it with `pip install -e .`"
        )
    known = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"],
        cwd=_TREE,
        capture_output=True,
        text=True,
    )
    if known.returncode:
        raise ArgumentError(
            f"--ab: {revision!r} is not a commit of this clone; `git log --oneline` lists them"
        )
    with tempfile.TemporaryDirectory(prefix="dparray-ab-") as name:
        folder = Path(name).resolve() / "tree"
        folder.mkdir()
        commit = known.stdout.strip()
        archive = subprocess.run(
            ["git", "archive", commit], cwd=_TREE, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
        for tree in (_TREE, folder):
            _build(tree)
        yield folder


def _build(tree: Path) -> None:
    """Build the C module of a tree with the tree's own build script."""
    for builder in sorted((tree / "dparray").glob("**/build_*.py")):
        module = ".".join(builder.relative_to(tree).with_suffix("").parts)
        run = subprocess.run(
            [sys.executable, "-m", module],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
        )
        if run.returncode:
            raise DparrayError(f"{module} failed in {tree}: {run.stdout}{run.stderr}")


def chosen_rows(filters: Sequence[str]) -> list[str]:
    """Return the labels of the rows that contain one of the filters; all if there is none.

    Raises:
        ArgumentError: a filter matches no row.
    """
    labels = [row.label for row in all_rows.ROWS]
    for word in filters:
        if not any(word in label for label in labels):
            groups = ", ".join(dict.fromkeys(row.group for row in all_rows.ROWS))
            raise ArgumentError(f"no row contains {word!r}; the groups are {groups}")
    return [label for label in labels if not filters or any(word in label for word in filters)]


def compare(
    other: Path, rows: Sequence[str], *, rounds: int, pairs: int, device: str | None = None
) -> list[Comparison]:
    """Time rows in this tree and another, in turns; the controls come first."""
    times: dict[str, tuple[list[float], list[float]]] = {
        label: ([], []) for label in (*_CONTROLS, *rows)
    }
    _run_pairs(other, rows, times, rounds, pairs, device)
    # A loss must be confirmed in new processes, which have a new memory layout.
    if lost := [each.row for each in _compared(times) if each.ratio < MIN_RATIO]:
        again = [label for label in rows if label in lost]
        _run_pairs(other, again, times, rounds, pairs, device)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return _compared(times)


def _compared(times: Mapping[str, tuple[list[float], list[float]]]) -> list[Comparison]:
    """Return the 20th percentiles of the timed rows."""
    return [
        Comparison(
            label, *(statistics.quantiles(side, n=5, method="inclusive")[0] for side in both)
        )
        for label, both in times.items()
        if both[0]
    ]


def _run_pairs(
    other: Path,
    rows: Sequence[str],
    times: dict[str, tuple[list[float], list[float]]],
    rounds: int,
    pairs: int,
    device: str | None,
) -> None:
    """Add the times of rows in new pairs of processes to ``times``."""
    for pair in range(pairs if rows else 0):
        with ExitStack() as stack:
            sides: list[_Process] = []
            for tree in (_TREE, other):
                side = _Process(tree, other.parent / f"cache-{len(sides)}", device)
                stack.callback(side.end)
                sides.append(side)
            _take_turns(sides, rows, times, rounds, f"pair {pair + 1} of {pairs}")


def _take_turns(
    sides: Sequence[_Process],
    rows: Sequence[str],
    times: dict[str, tuple[list[float], list[float]]],
    rounds: int,
    progress: str,
) -> None:
    """Add the times of a pair of processes to ``times``."""
    control_calls = {
        control: _calls([side.ask("prepare", control) for side in sides]) for control in _CONTROLS
    }
    for number, label in enumerate(rows):
        if sys.stderr.isatty():
            print(f"\r\033[K{progress}: {label}", end="", file=sys.stderr)
        seconds = [side.ask("prepare", label) for side in sides]
        calls = _calls(seconds)
        control = _CONTROLS[max(seconds) > _LARGE_SECONDS]
        fitting = int(_ROW_SECONDS / (sum(seconds) * (calls + calls // 4 + 1)))
        for turn in range(max(_MIN_ROUNDS, min(rounds, fitting))):
            # Each side is first in every second round.
            for place in (0, 1) if (turn + number) % 2 else (1, 0):
                for name, count in ((control, control_calls[control]), (label, calls)):
                    times[name][place].append(sides[place].ask("time", name, count))


def _calls(seconds: Sequence[float]) -> int:
    """Return the number of calls in a batch, the same for both sides."""
    return max(1, min(_MAX_CALLS, int(_BATCH_SECONDS / max(seconds))))


def report(comparisons: Sequence[Comparison], revision: str) -> tuple[str, int]:
    """Return the table and the losses as text, and the exit status."""
    controls = [comparison for comparison in comparisons if comparison.row in _CONTROLS]
    others = [comparison for comparison in comparisons if comparison.row not in _CONTROLS]
    width = max(len(comparison.row) for comparison in comparisons)
    lines = [f"{'row':{width}}  {'new [us]':>10}  {revision[:10] + ' [us]':>15}  speed new/old"]
    lines += [
        f"{each.row:{width}}  {each.new * 1e6:10.2f}  {each.old * 1e6:15.2f}  {each.ratio:13.3f}"
        for each in comparisons
    ]
    for control in controls:
        if abs(control.ratio - 1) > MAX_CONTROL_DEVIATION:
            lines.append(
                f"{control.row} reads {control.ratio:.3f} instead of 1.00 +- "
                f"{MAX_CONTROL_DEVIATION}: the machine is too busy to judge. Run again when it is "
                "quiet, or with more --rounds or --pairs."
            )
            return "\n".join(lines), CANNOT_JUDGE
    mean = statistics.geometric_mean(other.ratio for other in others)
    lines.append(f"geometric mean {mean:.3f}")
    lost = [other for other in others if other.ratio < MIN_RATIO]
    if lost:
        lines.append(f"{len(lost)} of {len(others)} rows below {MIN_RATIO}:")
        lines += [f"  {each.ratio:.3f}  {each.row}" for each in lost]
    else:
        lines.append(f"no row below {MIN_RATIO}")
    return "\n".join(lines), LOST if lost else 0
