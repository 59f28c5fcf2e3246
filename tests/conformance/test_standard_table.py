"""The benchmark of the standard and the page's table name exactly the standard's functions."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("ARRAY_API_STRICT_API_VERSION", "2025.12")
strict = pytest.importorskip("array_api_strict")

import dparray as dp  # noqa: E402 - after the version of the standard is set
from tests.benchmarks import _timer, standard  # noqa: E402
from tests.benchmarks._registry import Row, Settings  # noqa: E402
from tests.benchmarks._timer import Timing  # noqa: E402

strict.set_array_api_strict_flags(api_version="2025.12")

PAGE = Path(__file__).resolve().parents[2] / "notebooks/project/benchmarks-functions.md"
#: In array-api-strict's list, but of a later version of the standard, or not in the standard.
NOT_THE_STANDARDS = {"broadcast_shapes", "isin"}


def functions_of(module: Any, prefix: str = "") -> set[str]:
    return {
        prefix + name
        for name in module.__all__
        if callable(getattr(module, name))
        and not isinstance(getattr(module, name), type)
        and "flags" not in name
    } - NOT_THE_STANDARDS


STANDARD = (
    functions_of(strict) | functions_of(strict.linalg, "linalg.") | functions_of(strict.fft, "fft.")
)
NAMES = [
    standard.full_name(chapter, name)
    for chapter in standard.CASES
    for name in standard.CASES[chapter]
]


def test_the_benchmark_names_the_standards_functions() -> None:
    assert sorted(NAMES) == sorted(STANDARD)


def test_the_readme_names_the_standards_functions() -> None:
    text = PAGE.read_text()
    section = text[text.index(standard.BEGIN) : text.index(standard.END)]
    assert sorted(re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)) == sorted(STANDARD)


@pytest.mark.slow
def test_each_function_is_compared_and_has_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_timer, "_SHORTEST_BATCH", 0.0)
    monkeypatch.setattr(_timer, "_MIN_ROUNDS", 2)
    rows = list(standard.rows(Settings(dp.Device("cpu"), (9, 9), 0.0)))
    assert [row.case for row in rows] == NAMES
    assert {row.size for row in rows} == {9}
    where = {row.case: row.where for row in rows}
    assert {where[name] for name in ("reshape", "real", "finfo", "permute_dims")} == {"no work"}
    assert where["linalg.qr"] == where["fft.fft"] == "NumPy"
    assert all(row.where for row in rows)
    assert sum("numpy" in row.timings for row in rows) > 0.95 * len(rows)
    assert sum("dpnp" in row.timings for row in rows) > 0.9 * len(rows)


def test_the_section_is_written_between_its_markers(tmp_path: Path) -> None:
    timing = Timing(2e-6, 2e-6, 0.0, 2)
    rows = [
        Row(name, 9, {"dparray": timing, "numpy": Timing(5e-6, 5e-6, 0.0, 2)}, where="dpnp")
        for name in NAMES
    ]
    machine = {"date": "2026-11-21T09", "usable_cores": 2, "cpu": "Example CPU", "load": 0.5}
    table = standard.markdown(rows, machine)
    assert "| `linalg.qr` | dpnp | 2.0 | 2.5 |  |" in table
    assert "2 cores of an Example CPU" in table
    target = tmp_path / "benchmarks.md"
    target.write_text(f"above\n{standard.BEGIN}\nold\n{standard.END}\nbelow\n")
    standard.write_section(target, table)
    assert target.read_text() == f"above\n{standard.BEGIN}\n{table}\n{standard.END}\nbelow\n"
    target.write_text("no marks")
    with pytest.raises(dp.exceptions.ArgumentError, match="there is no line '<!-- bench standard"):
        standard.write_section(target, table)
