"""Random functions, compiled and uncompiled."""

from __future__ import annotations

import pytest

from tests.jit.random_functions import check


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(900))
def test_a_random_function(seed: int) -> None:
    check(seed)
