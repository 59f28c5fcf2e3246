"""The gather kernel of GPUs: NumPy's elements, one launch, and positions out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._placement import Placement
from dparray.algorithms import gather as gather_module
from tests.support import kernels_of

GENERATOR = np.random.default_rng(0)
FIRST, SECOND, LAST = (GENERATOR.integers(-extent, extent, (5, 3)) for extent in (7, 30, 11))
CASES: dict[str, tuple[int, tuple[Any, ...]]] = {
    "first axis": (0, (FIRST,)),
    "inner axis": (1, (SECOND,)),
    "last axis": (2, (LAST,)),
    "two axes that broadcast": (0, (FIRST, SECOND[:1])),
    "two inner axes": (1, (SECOND, LAST)),
    "all axes": (0, (FIRST, SECOND, LAST)),
}


def gathered(x: np.ndarray, positions: tuple[np.ndarray, ...], axis: int) -> dp.ndarray | None:
    array = dp.asarray(x)
    where = Placement(array.queue, "device")
    return gather_module.gather(array, [dp.asarray(each) for each in positions], axis, where)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "f4", "i8", "c16"])
def test_elements_are_numpys(dtype: str, case: str) -> None:
    x = GENERATOR.integers(0, 99, (7, 30, 11)).astype(dtype)
    axis, positions = CASES[case]
    found = gathered(x, positions, axis)
    assert found is not None
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.asnumpy(), x[(*(slice(None),) * axis, *positions)])


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_positions_of_each_dtype(dtype: str) -> None:
    x, positions = np.arange(100.0), np.array([0, 99, 5]).astype(dtype)
    found = gathered(x, (positions,), 0)
    assert found is not None
    np.testing.assert_array_equal(found.asnumpy(), x[positions])


@pytest.mark.parametrize(
    ("axis", "positions"),
    [
        (0, ([7],)),
        (0, ([-8],)),
        (0, (np.array([2**63 + 5], "u8"),)),
        (0, ([0], [30])),  # would be in bounds if the two axes were one
        (0, ([-1], [-31])),
        (1, ([0], [2**31])),
    ],
)
def test_a_position_outside_its_axis_is_noticed(axis: int, positions: Any) -> None:
    x = np.zeros((7, 30, 11), "f4")
    assert gathered(x, tuple(np.asarray(each) for each in positions), axis) is None


def test_one_axis_is_one_launch() -> None:
    x, positions = dp.arange(1000.0, dtype="f4"), dp.asarray(GENERATOR.integers(0, 1000, 5000))
    where = Placement(x.queue, "device")
    names = kernels_of(lambda: gather_module.gather(x, [positions], 0, where))
    assert names == ["gather"]
