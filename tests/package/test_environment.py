"""Variables that tests set for a whole process are in the list of ``tests/environment.py``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import environment

_TESTS = Path(environment.__file__).parent
pytestmark = pytest.mark.static


def _is_environ(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def _variables(tree: ast.Module) -> Iterator[str]:
    """Return the variables that a module sets or removes by ``os.environ``."""
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    names: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            names += [node.slice] if _is_environ(node.value) else []
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and _is_environ(node.func.value)
            and node.func.attr in ("setdefault", "pop", "update", "clear")
        ):
            names += node.args[:1]
    for name in names:
        yield str(
            name.value if isinstance(name, ast.Constant) else constants.get(ast.unparse(name))
        )


def test_every_variable_that_tests_set_is_in_the_list() -> None:
    found: dict[str, set[str]] = {}
    for path in _TESTS.rglob("*.py"):
        if path.name != "environment.py":
            for variable in _variables(ast.parse(path.read_text())):
                found.setdefault(str(path.relative_to(_TESTS)), set()).add(variable)
    assert found == {file: set(variables) for file, variables in environment.OTHERS.items()}


def test_a_setting_that_is_not_in_the_list_is_found() -> None:
    text = (
        "import os\nN = 'A'\nos.environ[N] = '1'\nos.environ.setdefault('B', '')\nos.environ['C']"
    )
    assert list(_variables(ast.parse(text))) == ["A", "B"]
