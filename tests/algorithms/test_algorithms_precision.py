"""Single-precision kernels must run on devices without double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import algorithms
from dparray.algorithms.histograms import count_in_bins
from tests.benchmarks import examples
from tests.support import launched

_OP_CAPABILITY = 17
_FLOAT64 = 10


def _capabilities(spirv: bytes) -> set[int]:
    """Return the capabilities that a SPIR-V module declares (section 2.3 of the specification)."""
    words = np.frombuffer(spirv, np.uint32)
    place, found = 5, set()
    while place < len(words):
        if words[place] & 0xFFFF == _OP_CAPABILITY:
            found.add(int(words[place + 1]))
        place += int(words[place] >> 16)
    return found


def _x() -> dp.ndarray:
    return dp.asarray(np.random.default_rng(0).random((64, 64)).astype(np.float32))


def _large() -> dp.ndarray:
    """Return enough elements for expressions to be compiled."""
    return dp.full((400, 400), 0.5, dtype="float32") + 0


CALLS: dict[str, Callable[[dp.ndarray], Any]] = {
    "convolve": lambda x: algorithms.convolve_dense(x, x[:3, :3], boundary="zero"),
    "convolve_separable": lambda x: algorithms.convolve_separable(x, x[0, :5]),
    "kmeans_assign": lambda x: algorithms.kmeans_assign(x, x[:4]),
    "kmeans_update": lambda x: algorithms.kmeans_update(x, dp.zeros(64, dtype="int32"), x[:4]),
    "matmul": lambda x: examples.matmul(x, x),
    "transpose": lambda x: examples.transpose(x),
    "scaled rows": lambda x: _large() / dp.exp(_large()).sum(1, keepdims=True),
    "mean and variance": lambda x: _large().mean() / _large().var(),
    "variance of columns": lambda x: _large().var(0),
    "place of the largest": lambda x: _large().argmax(1),
    "reduce, sum": lambda x: algorithms.reduce(x),
    "reduce, long rows": lambda x: algorithms.reduce(dp.ones(70_000, dtype="float32")),
    "reduce, maximum of columns": lambda x: algorithms.reduce(x, "maximum", axis=0),
    "pairwise_distance": lambda x: algorithms.pairwise_distance(x, x),
    "nbody_acceleration": lambda x: examples.nbody_acceleration(x[:, :3], x[0], softening=0.1),
    "black_scholes": lambda x: examples.black_scholes(x, x, x, rate=0.1, volatility=0.2),
    "mandelbrot": lambda x: examples.mandelbrot((9, 9)),
}


def _needs(call: Callable[[dp.ndarray], Any], x: dp.ndarray) -> set[int]:
    dp.synchronize(x)
    with launched() as launches:
        result = call(x)
        if isinstance(result, dp.ndarray):
            dp.eval(result)
    assert launches
    return set().union(*(_capabilities(launch.kernel.module) for launch in launches))


@pytest.mark.usefixtures("tests_options")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.sample(4)
def test_a_kernel_of_float32_needs_no_double_precision(name: str) -> None:
    assert _FLOAT64 not in _needs(CALLS[name], _x())


def test_a_kernel_of_float64_is_found_to_need_it() -> None:
    assert _FLOAT64 in _needs(CALLS["matmul"], _x().astype("float64"))


@pytest.mark.parametrize("size", [0, 5])
def test_half_precision_raises_with_the_name_of_the_argument(size: int) -> None:
    x, mask = dp.ones(size, dtype="float16"), dp.ones(size, dtype=bool)
    offsets = dp.asarray([0, size])
    calls: dict[str, Callable[[], object]] = {
        "inclusive_scan: x": lambda: algorithms.inclusive_scan(x),
        "exclusive_scan: x": lambda: algorithms.exclusive_scan(x),
        "compact: x": lambda: algorithms.compact(x, mask),
        "histogram: x": lambda: count_in_bins(x, 3),
        "segmented_reduce: x": lambda: algorithms.segmented_reduce(x, offsets),
        "sort_by_key: values": lambda: algorithms.sort_by_key(mask, x),
    }
    for name, call in calls.items():
        with pytest.raises(dp.DTypeError, match=f"{name} has dtype float16.*astype"):
            call()
