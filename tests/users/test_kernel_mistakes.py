"""Mistakes in kernels that new users make, and what comes after them."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp


@dp.kernel
def makes_an_array(item, a):  # type: ignore[no-untyped-def]
    z = np.zeros(3)
    a[item.get_id(0)] = z[0]


@dp.kernel
def makes_a_dict(item, a):  # type: ignore[no-untyped-def]
    d = {1: 2.0}
    a[item.get_id(0)] = d[1]


@dp.kernel
def prints(item, a):  # type: ignore[no-untyped-def]
    i = item.get_id(0)
    print("item", i)
    a[i] = 1


def test_after_two_kernels_that_do_not_compile_the_next_one_prints() -> None:
    a = dp.zeros(2)
    for wrong in (makes_an_array, makes_a_dict):
        with pytest.raises(dp.KernelCompileError):
            dp.call_kernel(wrong, dp.Range(2), a)
    dp.call_kernel(prints, dp.Range(2), a)
    assert a.tolist() == [1, 1]
