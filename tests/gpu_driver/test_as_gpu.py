"""The plugin ``as_gpu`` makes the CPU device use the code paths of a GPU, in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, os, sys, warnings
os.environ |= {"DPARRAY_BACKGROUND_COMPILE": "1"}
import as_gpu
as_gpu.play_gpu()
import numpy as np
import dparray as dp
from dparray._array.ndarray import materialize
from dparray._evaluate import background, limits
from dparray.memory import copies, staging
from tests.support import kernels_of

report = {}

def reach(view, usm_type):
    x = dp.ones(4, dtype="float32", usm_type=usm_type)
    try:
        return view(materialize(x)).tolist()
    except dp.HostConversionError:
        return "refused"

for name, view in (("array", copies.host_view), ("map", staging.host_view)):
    report[name] = {usm: reach(view, usm) for usm in ("device", "shared")}

with dp.config.override(fallback="error"):
    x = dp.asarray(np.random.default_rng(0).normal(size=5001).astype("float32"))
    index = dp.asarray(np.random.default_rng(0).integers(0, 5001, 900))
    report["index"] = kernels_of(lambda: x[index])
    expected = x.asnumpy()[index.asnumpy()]
    report["index is right"] = bool(np.array_equal(x[index].asnumpy(), expected))
    mask = dp.asarray(np.arange(5001) % 3 == 0)
    report["mask"] = kernels_of(lambda: x[mask])
    report["mask is right"] = bool(np.array_equal(x[mask].asnumpy(), x.asnumpy()[::3]))
    try:
        dp.take_along_axis(x, dp.asarray([5001]), None)
    except IndexError:
        report["beyond"] = "IndexError"
    z, half = dp.zeros((40, 50), dtype="float32"), dp.zeros(40, dtype="float32") + 0.5
    dp.eval(z, half)
    at = dp.asarray([3, -1, 7])
    expected = np.zeros((40, 50), "float32")
    report["fill"] = kernels_of(lambda: z.__setitem__(at, 2.5))
    expected[[3, -1, 7]] = 2.5
    report["put"] = kernels_of(lambda: z.__setitem__((at, at + 20), half[:3]))
    expected[[3, -1, 7], [23, 19, 27]] = 0.5
    try:
        z[dp.asarray([0, 40])] = 9
    except IndexError:
        report["put beyond"] = "IndexError"
    report["masked fill"] = kernels_of(lambda: z.__setitem__(dp.asarray([True, False] * 20), 7))
    expected[::2] = 7
    places = dp.arange(4)[::-1].copy()
    places[places] = dp.arange(4) * 10
    report["put is right"] = bool(np.array_equal(z.asnumpy(), expected)), places.tolist()
    found = []
    m = dp.asarray(np.arange(200 * 90).reshape(200, 90))
    turned = []
    report["reshape"] = kernels_of(lambda: turned.append(m.T.reshape(-1)))
    expected = m.asnumpy().T.reshape(-1)
    report["reshape is right"] = bool(np.array_equal(turned[0].asnumpy(), expected))
    report["median"] = kernels_of(lambda: found.append(dp.median(x).item()))
    report["median is right"] = abs(found[0] - float(np.median(x.asnumpy()))) < 1e-6

    def calls(y):
        found = []
        for _ in range(5):
            found.append([name for name in kernels_of(lambda: dp.eval(y * 2 + y - 1))])
            background.wait()
        return found

    report["small"] = calls(x)
    report["large"] = calls(dp.ones(limits.COMPILE_ELEMENTS, dtype="float64"))
print(json.dumps(report))
"""


SIZES = """
import json
import as_gpu
as_gpu.play_gpu()
import numpy as np
import dparray as dp
from math import prod
from tests.support import launched, forced
from dparray import algorithms

n = 1 << 20
x, mask = dp.ones(n, dtype="float32"), dp.arange(n) % 3 == 0
m, rows = x.reshape(1024, 1024), x.reshape(4096, 256)
points = dp.ones((1024, 32), dtype="float32")
offsets = dp.arange(0, n + 1, 256)
columns, whole = dp.arange(n) % 256, dp.asarray([0, n])
dp.eval(x, mask, points, offsets, columns, whole)
calls = {
    "chain": lambda: x * 2 + x - 1,
    "slices": lambda: m[1:-1, :-2] + m[1:-1, 2:],
    "sum": lambda: x.sum(),
    "columns": lambda: m.sum(axis=0),
    "rows": lambda: m.sum(axis=1),
    "norms": lambda: (rows * rows).sum(axis=1),
    "transpose": lambda: m.T.copy(),
    "histogram": lambda: dp.histogram(x, bins=64, range=(0, 2))[0],
    "scan": lambda: algorithms.inclusive_scan(x),
    "compact": lambda: algorithms.compact(x, mask),
    "distances": lambda: algorithms.pairwise_distance(points, points),
    "segments": lambda: algorithms.segmented_reduce(x, offsets),
    "one segment": lambda: algorithms.segmented_reduce(x, whole),
    "sparse": lambda: algorithms.csr_matvec(x, columns, offsets, x[:256]),
    "gather": lambda: x[columns],
}
report = {}
with forced("fused"):
    for name, call in calls.items():
        with launched() as launches:
            dp.eval(call())
        report[name] = [[launch.name, prod(launch.global_range)] for launch in launches]
print(json.dumps(report))
"""


def run(program: str) -> dict[str, Any]:
    folders = [str(ROOT), str(ROOT / "tests")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return run(PROGRAM)


@pytest.mark.slow
def test_a_million_elements_fill_a_gpu() -> None:
    """Kernels do not use a CPU's few large chunks, which would leave most of a GPU idle."""
    resident = 96 * 8 * 16  # work-items, in sub-groups of 16
    for name, launches in run(SIZES).items():
        assert launches, name
        largest = max(items for _, items in launches)
        assert largest >= resident, f"{name}: {launches}"


def test_the_host_does_not_reach_device_memory(report: dict[str, Any]) -> None:
    expected = {"device": "refused", "shared": [1.0, 1.0, 1.0, 1.0]}
    assert report["array"] == report["map"] == expected


def test_an_index_is_one_launch(report: dict[str, Any]) -> None:
    assert report["index"] == ["gather"]
    assert report["index is right"]


def test_a_write_by_an_index_is_two_launches_and_all_or_nothing(report: dict[str, Any]) -> None:
    assert report["fill"] == ["gather", "gather"]  # the first one checks all indices
    assert report["put"][-2:] == ["gather", "gather"]
    assert len(report["masked fill"]) <= 1  # chosen element by element; no positions are read
    assert report["put beyond"] == "IndexError"
    assert report["put is right"] == [True, [30, 20, 10, 0]]


def test_a_mask_is_two_launches(report: dict[str, Any]) -> None:
    assert report["mask"] == ["mask_count", "tile_select"]
    assert report["mask is right"]


def test_an_index_outside_an_axis_is_refused(report: dict[str, Any]) -> None:
    assert report["beyond"] == "IndexError"


def test_reshaping_a_transposed_matrix_copies_by_tiles(report: dict[str, Any]) -> None:
    assert report["reshape"] == ["transpose"]
    assert report["reshape is right"]


def test_a_median_is_found_by_its_digits(report: dict[str, Any]) -> None:
    assert report["median"] == ["rank"] * 3 + ["quantile"]
    assert report["median is right"]


@pytest.mark.parametrize("size", ["small", "large"])
def test_an_expression_is_compiled_in_the_background_at_its_second_call(
    report: dict[str, Any], size: str
) -> None:
    first, second, *later = report[size]
    assert first == second == []  # dpnp computes
    assert all(len(each) == 1 for each in later)
