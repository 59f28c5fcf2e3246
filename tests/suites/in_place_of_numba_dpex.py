"""Stand in for ``numba_dpex`` in numba-dpex's tests: dparray's module of that name.

The tests are those in the folder ``NUMBA_DPEX_PACKAGE``. They are parametrized by lists of function
names, which are read from the file ``NUMBA_DPEX_FUNCTIONS`` of that package without executing it.

As a pytest plugin, it skips cases whose expected value NumPy 2 does not accept.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import dpnp
import dpnp.scipy.special
import numpy as np
import pytest

# Importing the plugin prepares the module.
from tests.conformance import numba_dpex_plugin


def _literals(file: Path) -> dict[str, Any]:
    """Return the lists and sets of names that a file assigns."""
    found = {}
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and value.args:  # set([...])
                value = value.args[0]
            if isinstance(value, ast.List) and all(isinstance(v, ast.Constant) for v in value.elts):
                found[node.targets[0].id] = ast.literal_eval(value)
    return found


dpnp.erf = dpnp.scipy.special.erf  # its location when the tests were written
numba_dpex_plugin.pytest_configure(None)  # type: ignore[arg-type]
sys.modules["numba_dpex.core.typing"] = ModuleType("numba_dpex.core.typing")
_functions: Any = ModuleType("numba_dpex.core.typing.dpnpdecl")
vars(_functions).update(_literals(Path(os.environ["NUMBA_DPEX_FUNCTIONS"])))
sys.modules[_functions.__name__] = _functions


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a case that compares with ``numpy.full(shape, value, dtype)`` where that raises."""
    case: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    if "fill_value" in case and "dtype" in case:
        try:
            np.full(1, case["fill_value"], case["dtype"])
        except OverflowError as error:
            pytest.skip(f"not a test of dparray: numpy.full raises OverflowError: {error}")
