"""float16 in kernels: stored as such in memory, computed as float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dparray as dp

BINARY = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / b,
]


@dp.kernel
def compute(item: dp.Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    x, y = a[i], b[i]
    out[i, 0] = x + y
    out[i, 1] = x - y
    out[i, 2] = x * y
    out[i, 3] = x / y
    out[i, 4] = math.sqrt(abs(x))
    out[i, 5] = min(x, y)
    out[i, 6] = -x if x < y else y
    out[i, 7] = np.float16(x * 0.1)
    out[i, 8] = i


def halves(seed: int, size: int) -> np.ndarray:
    """Return float16 numbers of all magnitudes, with the special ones."""
    bits = np.random.default_rng(seed).integers(0, 2**16, size).astype(np.uint16)
    x = bits.view(np.float16)
    x[:6] = [0, -0.0, np.inf, -np.inf, np.nan, 65504]
    return x


def test_float16_numbers_round_as_in_numpy(queue: Any) -> None:
    a, b = halves(0, 500), halves(1, 500)
    out = dp.zeros((500, 9), dtype="float16", sycl_queue=queue)
    arrays = [dp.asarray(x, sycl_queue=queue) for x in (a, b)]
    compute[500](*arrays, out)
    simulated = np.zeros((500, 9), np.float16)
    dp.simulate(compute, 500, a, b, simulated)
    with np.errstate(all="ignore"):
        wanted = np.stack(
            [
                *(function(a, b) for function in BINARY),
                np.sqrt(abs(a)),
                np.where(b < a, b, a),
                np.where(a < b, -a, b),
                (a.astype(np.float64) * 0.1).astype(np.float16),
                np.arange(500).astype(np.float16),
            ],
            axis=1,
        )
    columns = [0, 1, 2, 3, 4, 6, 7, 8]
    np.testing.assert_array_equal(out.asnumpy()[:, columns], wanted[:, columns])
    np.testing.assert_array_equal(simulated[:, columns], wanted[:, columns])
    known = ~(np.isnan(a) | np.isnan(b))
    np.testing.assert_array_equal(out.asnumpy()[known, 5], wanted[known, 5])


@dp.kernel
def all_memories(item: dp.NdItem, x: Any, scale: Any, local: Any, out: Any) -> None:
    k, i = item.get_local_id(0), item.get_global_id(0)
    mine = dp.PrivateArray(2, dp.float16, True)
    shared = dp.LocalArray(4, dp.float16)
    mine[1] = x[i]
    local[k] = mine[1] * scale
    shared[k] = mine[0]
    dp.group_barrier(item.get_group())
    total = dp.reduce_over_group(item.get_group(), local[k])
    out[i] = total + dp.group_broadcast(item.get_sub_group(), x[i], 0) + shared[3 - k]


def test_float16_numbers_are_in_all_memories_and_in_groups() -> None:
    x, out = np.arange(8, dtype=np.float16), dp.zeros(8, dtype="float16")
    arguments = (np.float16(0.5), dp.LocalAccessor(4, np.float16))
    all_memories[dp.NdRange(8, 4)](dp.asarray(x), *arguments, out)
    simulated = np.zeros(8, np.float16)
    dp.simulate(all_memories, dp.NdRange(8, 4), x, *arguments, simulated)
    assert out.tolist() == simulated.tolist() == [3, 3, 3, 3, 15, 15, 15, 15]


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64", "bool"])
def test_float16_numbers_are_converted(dtype: str) -> None:
    @dp.kernel
    def convert(item: dp.Item, x: Any, half: Any, back: Any) -> None:
        i = item.get_id(0)
        half[i] = x[i]
        back[i] = half[i]

    x = np.array([0, 1, 3, 200]).astype(dtype)
    half, back = dp.zeros(4, dtype="float16"), dp.zeros(4, dtype=dtype)
    convert[4](dp.asarray(x), half, back)
    np.testing.assert_array_equal(half.asnumpy(), x.astype(np.float16))
    np.testing.assert_array_equal(back.asnumpy(), x)
