"""The front end translates kernels of users and of the package."""

from __future__ import annotations

from typing import Any

import numpy as np

import dparray as dp
from dparray.kernels import matrix


def test_the_kernels_of_the_package_are_translated() -> None:
    kernel = dp.kernel(matrix.make_matmul_kernel.__wrapped__(4, 4, np.float32))
    a, b, c = (dp.ones((1, 4, 4), "float32") for _ in range(3))
    dp.call_kernel(kernel, dp.NdRange(4, 4), a, b, c, dp.LocalAccessor(16, "float32"))
    assert c.tolist() == [[[4.0] * 4] * 4]


def test_a_module_of_a_user_may_be_called_kernels() -> None:
    def add_one(item: Any, x: Any) -> None:
        x[item.get_id(0)] += 1

    add_one.__module__ = "kernels.own"
    x = dp.ones(3)
    dp.call_kernel(dp.kernel(add_one), dp.Range(3), x)
    assert x.tolist() == [2, 2, 2]
