"""The table of operators in the reference; run this file as a program to update it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="dparray.onnx needs the package onnx")

import dparray as dp

PAGE = Path(__file__).resolve().parents[2] / "notebooks/reference/onnx.md"
HEAD = "| operator | first opset | how |\n|---|---|---|\n"


def table() -> str:
    """Return the table of the standard's operators."""
    rows = [each for each in dp.onnx.supported() if each.how != "user"]
    return HEAD + "".join(f"| {each.name} | {each.opsets[0]} | {each.how} |\n" for each in rows)


@pytest.mark.static
def test_the_page_has_the_table() -> None:
    assert PAGE.read_text().endswith(table()), f"run `python {Path(__file__).name}`"


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().partition(HEAD)[0] + table())
