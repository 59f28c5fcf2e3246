"""Each function of the kernel language has a row in the table, and the page shows them all."""

from __future__ import annotations

import inspect
import math
from pathlib import Path

import pytest

from dparray import kernel_api
from dparray._language.builtins import HANDLERS, handler
from dparray._language.builtins.table import page, rows

PAGE = Path(__file__).parents[2] / "notebooks" / "reference" / "kernel-functions.md"
ROWS = list(rows())
#: Functions without a row: those of generated kernels and of dparray's own ones, and two that are
#: refused with an explanation.
INTERNAL = ("dparray._language.intrinsics", "dparray.kernels.combine")
REFUSED = (str, repr)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_names_a_function_that_kernels_call(row) -> None:
    assert row.summary.endswith("."), row
    assert row.function is None or handler(row.function) is not None


def test_each_function_has_one_row() -> None:
    documented = [row.function for row in ROWS if row.function is not None]
    assert len(documented) == len(set(documented))
    expected = {
        function
        for function in HANDLERS
        if function not in REFUSED and getattr(function, "__module__", "") not in INTERNAL
    }
    assert expected == set(documented)


def test_public_functions_of_the_kernel_language_have_rows() -> None:
    public = [getattr(kernel_api, name) for name in kernel_api.__all__]
    functions = {each for each in public if inspect.isfunction(each)}
    assert functions <= {row.function for row in ROWS}


def test_the_functions_of_math_that_return_one_number_have_rows() -> None:
    known = {row.name for row in ROWS if row.name.startswith("math.")}
    absent = {f"math.{name}" for name in dir(math) if not name.startswith("_")} - known
    absent -= {f"math.{name}" for name in ("e", "inf", "nan", "pi", "tau")}
    # These take or return lists, tuples or large integers, or compare.
    assert absent <= {
        *("math.comb", "math.dist", "math.factorial", "math.frexp", "math.fsum", "math.gcd"),
        *("math.isclose", "math.isqrt", "math.lcm", "math.modf", "math.perm", "math.remainder"),
        *("math.sumprod", "math.ulp", "math.fma", "math.fmax", "math.fmin", "math.isnormal"),
        *("math.issubnormal", "math.signbit"),
    }


def test_the_page_shows_the_table() -> None:
    """``python tests/language/test_table.py`` writes it."""
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
