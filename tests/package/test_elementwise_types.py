"""The types of the functions generated from the op table agree with the table."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dparray._graph.ops import OPS

pytestmark = pytest.mark.static

STUB = Path(__file__).resolve().parents[2] / "dparray" / "_functions" / "elementwise.pyi"


def declared() -> dict[str, list[str]]:
    """Return each function of the stub with the names of its positional parameters."""
    body = ast.parse(STUB.read_text()).body
    calls = {
        each.name: _positional(call)
        for each in body
        if isinstance(each, ast.ClassDef)
        for call in each.body
        if isinstance(call, ast.FunctionDef) and call.name == "__call__"
    }
    written_out = {
        each.name: _positional(each) for each in body if isinstance(each, ast.FunctionDef)
    }
    made = {
        ast.unparse(each.target): calls[ast.unparse(each.annotation)]
        for each in body
        if isinstance(each, ast.AnnAssign)
    }
    return made | written_out


def _positional(function: ast.FunctionDef) -> list[str]:
    names = [argument.arg for argument in function.args.posonlyargs]
    return [name for name in names if name != "self"]


def test_every_row_is_declared_with_its_parameters() -> None:
    stub = declared()
    rows = {name: list(op.parameters) for op in OPS.values() for name in (op.name, *op.aliases)}
    del rows["round"]  # the public function takes decimals, too, and is written separately
    assert {name: stub.get(name) for name in rows} == rows


def test_everything_declared_is_public() -> None:
    from dparray._functions import elementwise

    assert set(declared()) == set(elementwise.__all__)
