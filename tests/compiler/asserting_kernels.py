"""Kernels with assertions, in a file that pytest does not rewrite."""

from __future__ import annotations

from typing import Any

import dparray as dp


@dp.device_func
def root(value: Any) -> Any:
    assert value >= 0 or value < -5, f"negative: {value}"
    return value**0.5


@dp.kernel
def asserting(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    assert x.shape[0] == 4
    k = 0
    while k < 3:
        assert i >= 0 and x[i] < 100, "too {large}"  # noqa: PT018
        k += 1
    assert x[i] != 50, (i, k)
    out[i] = root(x[i]) + k


@dp.kernel
def never(item: dp.Item, x: Any) -> None:
    assert False, "never"  # noqa: B011, PT015


@dp.kernel
def raises(item: dp.Item, x: Any) -> None:
    assert x[0] > 0, "positive"
    if x[0] > 3:
        raise AssertionError("three")
