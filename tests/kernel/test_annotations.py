"""Annotations that Python evaluates: this file has no `from __future__` import.

From Python 3.14 on, they are functions of their own in the code of the scope.
"""

import numpy as np

import dparray as dp


def test_functions_with_annotations_are_compiled() -> None:
    weight = 3.0

    @dp.elementwise
    def weighted(value: float, by: float) -> float:
        return value * by + weight

    @dp.kernel
    def add(item: dp.Item, x: dp.ndarray, y: dp.ndarray) -> None:
        i: int = item.get_id(0)
        y[i] += weight * x[i]

    @dp.jit
    def shifted(x: dp.ndarray, count: int = 4) -> dp.ndarray:
        for i in dp.prange(count):
            x[i] += weight
        return x

    host = np.arange(6.0)
    x, y = dp.asarray(host), dp.ones(6)
    np.testing.assert_array_equal(weighted(x, x).asnumpy(), host * host + 3)
    dp.call_kernel(add, dp.Range(6), x, y)
    np.testing.assert_array_equal(y.asnumpy(), 3 * host + 1)
    np.testing.assert_array_equal(shifted(x).asnumpy(), host + 3 * (host < 4))
