"""Negative powers of integers: refused where they are written, the same on every tier elsewhere."""

from __future__ import annotations

import pytest

import dparray as dp


def test_a_negative_constant_is_refused_at_its_line() -> None:
    with pytest.raises(dp.DTypeError, match=r"negative power -1.*astype"):
        dp.arange(3) ** -1
    assert (dp.arange(1.0, 3.0) ** -1).tolist() == [1.0, 0.5]


@pytest.mark.parametrize("host_tier", [True, False])
def test_negative_exponents_in_an_array_give_zero(host_tier: bool) -> None:
    base, exponent = dp.asarray([2, 3, 0, 5]), dp.asarray([-1, 2, 0, -3])
    with dp.config.override(host_tier=host_tier):
        assert (base**exponent).tolist() == [0, 9, 1, 0]
