"""Programs in NumPy's style give the same results with dparray instead of NumPy."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.benchmarks._programs import PROGRAMS
from tests.support import force, same


def results(name: str) -> tuple[np.ndarray, dp.ndarray]:
    program = PROGRAMS[name]
    arguments = program.arguments("small")
    ours = [dp.asarray(each) if isinstance(each, np.ndarray) else each for each in arguments]
    theirs = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    return program.run(np, *theirs), program.run(dp, *ours)


def agrees(name: str) -> None:
    expected, actual = results(name)
    same(actual, expected, 1e-9, atol=1e-12)


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_numpys_results(name: str, lazy: bool) -> None:
    with dp.config.override(lazy=lazy):
        agrees(name)


# In the triangular solver, every number of reduced elements up to 16 has a separate kernel.
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"triangular solver"}))
def test_a_program_gives_the_same_in_generated_kernels(name: str) -> None:
    with force("fused"):
        agrees(name)


# -- programs with a changed import line -----------------------------------------------------------

SCRIPTS = sorted((Path(__file__).parents[1] / "programs").glob("*.py"))
IMPORT = "import numpy as np\n"
#: These print lists of scalars, whose representations differ between the modules.
SHOW_PLACES = {"odds_and_ends", "ranking"}


#: Variables with other values: random numbers, positions of equal elements, and singular vectors of
#: singular values that are 0.
OPEN = {"monte_carlo": {"sample"}, "text_statistics": {"order"}, "factorization": {"U", "Vt"}}


def run(script: Path, import_line: str) -> tuple[dict[str, Any], str]:
    """Return a program's variables, and its printed output."""
    text = script.read_text()
    assert text.count(IMPORT) == 1
    scope: dict[str, Any] = {"__name__": "program"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), np.printoptions(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text.replace(IMPORT, import_line), str(script), "exec"), scope)
    return scope, printed.getvalue()


def numbers(value: Any) -> list[np.ndarray]:
    """Return the arrays and numbers of a variable; containers have those of their elements."""
    if isinstance(value, list | tuple):
        return [number for each in value for number in numbers(each)]
    value = value.asnumpy() if isinstance(value, dp.ndarray) else value
    is_numeric = isinstance(value, np.ndarray | np.generic | int | float | complex)
    return [np.asarray(value)] if is_numeric else []


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_a_program_runs_with_its_import_line_changed(script: Path, lazy: bool) -> None:
    expected, printed = run(script, IMPORT)
    with dp.config.override(lazy=lazy):
        variables, ours_printed = run(script, "import dparray as np\n")
    assert variables.keys() == expected.keys()
    for name in expected.keys() - OPEN.get(script.stem, set()):
        for ours, theirs in zip(numbers(variables[name]), numbers(expected[name]), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
            rtol, atol = (1e-5, 1e-6) if ours.dtype == np.float32 else (1e-7, 1e-9)
            np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=name)
    if script.stem not in SHOW_PLACES:
        assert ours_printed == printed
