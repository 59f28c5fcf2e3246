"""Random kernels give the same results on the device as in plain Python.

``python tests/kernel/random_kernels.py --count 5000`` compares any number of kernels.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernel.random_kernels import compare, make_case


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(16))
def test_random_kernels_agree_with_plain_python(seed: int) -> None:
    compare(make_case(seed))


def test_random_kernels_on_each_queue(queue: Any) -> None:
    compare(make_case(1000), queue)


def test_a_case_is_made_from_its_seed_alone() -> None:
    assert make_case(7).text == make_case(7).text != make_case(8).text
