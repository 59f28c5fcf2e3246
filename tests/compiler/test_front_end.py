"""The front end translates kernels; Numba compiles those that it does not support."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.kernels import matrix
from tests.support import observed


@pytest.fixture
def refused() -> Any:
    """Return the reasons why Numba compiles kernels, which are compiled during the test."""
    reasons: list[str] = []

    def note(event: str, **values: Any) -> None:
        if event == "refuse":
            reasons.append(values["reason"])

    with observed(note):
        yield reasons


def test_the_kernels_of_the_package_are_translated(refused: list[str]) -> None:
    kernel = dp.kernel(matrix.make_matmul_kernel.__wrapped__(4, 4, np.float32))
    a, b, c = (dp.ones((1, 4, 4), "float32") for _ in range(3))
    dp.call_kernel(kernel, dp.NdRange(4, 4), a, b, c, dp.LocalAccessor(16, "float32"))
    assert c.tolist() == [[[4.0] * 4] * 4]
    assert refused == []


def test_a_module_of_a_user_may_be_called_kernels(refused: list[str]) -> None:
    def add_one(item: Any, x: Any) -> None:
        x[item.get_id(0)] += 1

    add_one.__module__ = "kernels.own"
    x = dp.ones(3)
    dp.call_kernel(dp.kernel(add_one), dp.Range(3), x)
    assert x.tolist() == [2, 2, 2]
    assert refused == []


def test_a_kernel_without_source_is_compiled_and_counted(refused: list[str]) -> None:
    scope: dict[str, Any] = {}
    exec("def typed(item, x):\n    x[item.get_id(0)] += 41\n", scope)
    x = dp.ones(3, dtype="int32")
    dp.call_kernel(dp.kernel(scope["typed"]), dp.Range(3), x)
    assert x.tolist() == [42, 42, 42]
    assert len(refused) == 1
