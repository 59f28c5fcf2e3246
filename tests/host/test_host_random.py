"""Random kernels give the same results on both drivers of the processor, and in a simulation."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from tests.kernel.random_kernels import compare, make_case

_QUEUES = [dp.Device("host:cpu").queue, dp.Device("cpu").queue]


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_random_kernels_agree_on_both(seed: int) -> None:
    case = make_case(seed)
    results = [compare(case, queue) for queue in _QUEUES]
    if case.text.count("get_sub_group()") > 1:  # the devices' sub-groups differ
        return
    for arrays in results:
        arrays[4] = arrays[4][:3]  # the fourth row has their sizes
    for found, wanted in zip(*results, strict=True):
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(found, wanted)


def test_private_arrays_of_vectors_are_aligned_for_each_work_item() -> None:
    compare(make_case(1144), _QUEUES[0])
