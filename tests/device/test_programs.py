"""Programs in NumPy's style give the same with dparray in NumPy's place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import _evaluate, _tier_fused
from dparray.bench._programs import PROGRAMS


def results(name: str) -> tuple[np.ndarray, dp.ndarray]:
    program = PROGRAMS[name]
    arguments = program.arguments("small")
    ours = [dp.asarray(each) if isinstance(each, np.ndarray) else each for each in arguments]
    theirs = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    return program.run(np, *theirs), program.run(dp, *ours)


def same(name: str) -> None:
    expected, actual = results(name)
    assert isinstance(actual, dp.ndarray)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_numpy_gives(name: str, lazy: bool) -> None:
    with dp.config.override(lazy=lazy):
        same(name)


# In the triangular solver every count of reduced elements up to 16 is a kernel of its own.
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"triangular solver"}))
def test_a_program_gives_the_same_in_generated_kernels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(*sizes: Any) -> bool:
        return True

    monkeypatch.setattr(_evaluate, "HOST_ELEMENTS", 0)
    monkeypatch.setattr(_tier_fused, "is_worth_compiling", always)
    same(name)
