"""The tables of rules on the design page; run this file as a program to update them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.static

ROOT = Path(__file__).resolve().parents[2]
COMPILER = ROOT / "dparray/_compiler"
RULES = COMPILER / "back_ends" / "spirv"
PAGE = ROOT / "notebooks/project/design.md"
BEGIN, END = "<!-- rules -->\n", "<!-- end of rules -->\n"
FOLDERS = {
    ".": "LLVM's back end for SPIR-V",
    "intel_cpu": "Intel's CPU driver",
    "intel_gpu": "Intel's GPU compiler",
}
HEAD = "| defect | versions | rule | tests |\n|---|---|---|---|\n"
_RULE = re.compile(r"^\s*Defect of (.*?): (.*?)^\s*Tests: (.*?)\.\s*\Z", re.MULTILINE | re.DOTALL)


def rows_of(file: Path) -> Iterator[str]:
    """Yield a row for each docstring of a file that describes a rule."""
    tree = ast.parse(file.read_text())
    for node in [tree, *(each for each in tree.body if isinstance(each, ast.FunctionDef))]:
        found = _RULE.search(ast.get_docstring(node) or "")
        if found:
            versions, defect, tests = (" ".join(part.split()) for part in found.groups())
            rule = f"{file.stem}.{node.name}" if node is not tree else file.stem
            named = ", ".join(f"`{name}`" for name in tests.split(", "))
            text = defect.rstrip(".").replace("``", "`")
            yield f"| {text} | {versions} | `{rule}` | {named} |\n"


def tables() -> str:
    """Return the tables of all rules."""
    found = ""
    for folder, title in FOLDERS.items():
        rows = [row for file in sorted((RULES / folder).glob("*.py")) for row in rows_of(file)]
        found += f"\n### {title}\n\n{HEAD}{''.join(rows)}"
    return f"{BEGIN}{found}\n{END}"


def parts_of_page() -> tuple[str, str, str]:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    inside, _, after = rest.partition(END)
    return before, f"{BEGIN}{inside}{END}", after


def test_the_page_has_the_rules() -> None:
    assert parts_of_page()[1] == tables(), f"run `python {Path(__file__).name}`"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_rule_against_a_driver_has_its_defect_and_tests(folder: str) -> None:
    described = {file.stem: list(rows_of(file)) for file in (RULES / folder).glob("*.py")}
    helpers = {"__init__", "loop_values", "loops", "opaque"}  # files that rules share
    if folder != ".":
        assert {name for name, rows in described.items() if not rows} <= helpers
    assert sum(map(len, described.values())) > 1


def test_the_workarounds_outside_of_rules_are_there() -> None:
    known: dict[str, str] = {}
    for file in COMPILER.rglob("*.py"):
        known[file.stem] = known.get(file.stem, "") + file.read_text()
    rows = re.findall(r"^\| (?!-|construct)[^|]*\| ([^|]*) \|", parts_of_page()[2], re.MULTILINE)
    named = [each for row in rows for each in re.findall(r"`(\w+)\.(\w+)`", row) if each[1] != "py"]
    assert len(named) > 5
    assert not [each for each in named if not re.search(rf"\b{each[1]}\b", known.get(each[0], ""))]


if __name__ == "__main__":
    before, _, after = parts_of_page()
    PAGE.write_text(before + tables() + after)
