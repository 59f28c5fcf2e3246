"""Random numbers in kernels: those of Philox-4x32-10, on devices, in loops and in the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import dparray as dp

N = 20_000


def philox_4x32_10(counter: int, key: int) -> list[int]:
    """Return the block of the publication's algorithm, in Python's integers."""
    low = 2**32 - 1
    words = [counter & low, counter >> 32, 0, 0]
    keys = [key & low, key >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [
            (second >> 32) ^ words[1] ^ keys[0], second & low,
            (first >> 32) ^ words[3] ^ keys[1], first & low,
        ]  # fmt: skip
        keys = [(keys[0] + 0x9E3779B9) & low, (keys[1] + 0xBB67AE85) & low]
    return words


@dp.kernel
def draw(item, words, longs, uniform, uniform_64, normal, normal_64, seed):
    i = item.get_id(0)
    words[i] = dp.random.philox_uint32(seed, i)
    longs[i] = dp.random.philox_uint64(seed, i)
    uniform[i] = dp.random.philox_uniform_float32(seed, i)
    uniform_64[i] = dp.random.philox_uniform_float64(seed, i)
    normal[i] = dp.random.philox_normal_float32(seed, i)
    normal_64[i] = dp.random.philox_normal_float64(seed, i)


def drawn(n: int, seed: int, launch: Any = dp.call_kernel, **place: Any) -> list[np.ndarray]:
    dtypes = ("uint32", "uint64", "float32", "float64", "float32", "float64")
    out = [dp.empty(n, dtype=dtype, **place) for dtype in dtypes]
    launch(draw, dp.Range(n), *out, seed)
    return [each.asnumpy() for each in out]


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1, np.uint64(2**64 - 5)])
def test_the_numbers_are_those_of_the_publication(seed: Any) -> None:
    words, longs, uniform, uniform_64, *_ = drawn(5, seed)
    for i in range(5):
        block = philox_4x32_10(i, int(seed))
        whole = block[1] << 32 | block[0]
        assert words[i] == block[0]
        assert longs[i] == whole
        assert uniform[i] == (block[0] >> 8) * 2.0**-24
        assert uniform_64[i] == (whole >> 11) * 2.0**-53


def test_the_simulator_and_all_devices_draw_the_same(queue: Any) -> None:
    found = drawn(20, 3, sycl_queue=queue)
    for simulated, here in zip(drawn(20, 3, dp.simulate), found, strict=True):
        np.testing.assert_allclose(simulated, here, rtol=1e-6, atol=1e-7)


def test_the_distributions() -> None:
    _, _, uniform, uniform_64, normal, normal_64 = drawn(N, 11)
    for each in (uniform, uniform_64):
        assert stats.kstest(each, "uniform").pvalue > 1e-3
    for each in (normal, normal_64):
        assert stats.kstest(each, "norm").pvalue > 1e-3
    assert not np.array_equal(drawn(N, 12)[3], uniform_64)


def test_prange_loops_draw_the_same_numbers() -> None:
    @dp.jit
    def fill(out, seed):
        for i in dp.prange(out.size):
            out[i] = dp.random.philox_uniform_float64(seed, i)

    out = dp.empty(100)
    fill(out, 5)
    np.testing.assert_array_equal(out.asnumpy(), drawn(100, 5)[3])


def test_the_host_calls_them_as_python_functions() -> None:
    assert dp.random.philox_uint32(np.uint64(7), np.uint64(1)) == drawn(2, 7)[0][1]
