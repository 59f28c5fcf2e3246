"""The types of the functions made from the op table say what the table says."""

from __future__ import annotations

import ast
from pathlib import Path

from dparray._ops import OPS

STUB = Path(__file__).resolve().parents[2] / "dparray" / "_elementwise.pyi"


def declared() -> dict[str, list[str]]:
    """Each function of the stub with the names of its positional parameters."""
    return {
        node.name: [argument.arg for argument in node.args.posonlyargs]
        for node in ast.parse(STUB.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_row_is_declared_with_its_parameters() -> None:
    stub = declared()
    rows = {name: list(op.parameters) for op in OPS.values() for name in (op.name, *op.aliases)}
    del rows["round"]  # the public function takes decimals too, and is written out
    assert {name: stub.get(name) for name in rows} == rows


def test_everything_declared_is_public() -> None:
    from dparray import _elementwise

    assert set(declared()) == set(_elementwise.__all__)
