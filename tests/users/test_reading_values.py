"""Reading an array number by number, as loops of NumPy programs do."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import dparray as dp


def test_a_loop_over_a_pending_array_computes_it_once(queue: Any) -> None:
    x = dp.arange(20_000.0, sycl_queue=queue) * 2
    assert x.is_pending
    assert sum(v for v in x) == 2 * sum(range(20_000))
    assert not x.is_pending


def test_the_second_number_read_computes_the_array(queue: Any) -> None:
    x = dp.arange(20_000.0, sycl_queue=queue) * 2
    assert [float(x[i]) for i in range(3)] == [0, 2, 4]
    assert not x.is_pending


def test_list_of_a_vector_prints_plain_numbers_as_numpy_does(queue: Any) -> None:
    a = np.asarray([1.5, 2.5])
    assert repr(list(dp.asarray(a, sycl_queue=queue))) == repr(list(a))
    first, second = dp.asarray([1, 2], sycl_queue=queue)
    assert (first, second) == (1, 2)


def test_what_the_loop_writes_is_read_by_its_later_turns(queue: Any) -> None:
    for size in (10, 10_000):
        a, x = np.ones(size), dp.ones(size, sycl_queue=queue)
        for values in (a, x):
            for i, v in enumerate(values):
                if i < 9:
                    values[i + 1] = v * 2
        np.testing.assert_array_equal(x.asnumpy(), a)


def test_reading_ahead_sees_what_the_loop_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device whose memory the host cannot read."""
    from dparray._array import transfer

    monkeypatch.setattr(transfer, "_READ_AHEAD", 24)
    a, x = np.ones(20_000)[::2], dp.ones(20_000)[::2]
    read: list[list[float]] = []
    with dp.config.override(host_tier=False):  # nor write
        for values, numbers in ((a, iter(a)), (x, transfer._numbers_read_ahead(x))):
            read.append([])
            for i, v in zip(range(20), numbers, strict=False):
                read[-1].append(float(v))
                if i % 4 == 1:
                    values[i + 2] = v + i
    assert read[0] == read[1]


def test_rows_share_the_arrays_memory(queue: Any) -> None:
    for count in (4, 5000):
        x = dp.zeros((count, 3), sycl_queue=queue)
        for i, row in enumerate(x):
            assert row.sycl_queue == queue
            row[0] = i
        np.testing.assert_array_equal(x[:, 0].asnumpy(), np.arange(count))
    assert list(dp.zeros((0, 3))) == []
    assert [row.shape for row in dp.zeros((2, 0))] == [(0,), (0,)]
    assert [row.tolist() for row in dp.arange(6).reshape(3, 2)] == [[0, 1], [2, 3], [4, 5]]


def test_scalars_go_where_numbers_go(queue: Any) -> None:
    x = dp.asarray([3.25, 1.0], sycl_queue=queue)
    assert json.dumps(x.sum().item()) == "4.25"
    assert f"{x.sum():.1f}" == "4.2"
    assert round(x[0]) == 3
    assert round(float(x[0]), 1) == 3.2
    assert math.sqrt(x[1]) == 1.0
    assert math.floor(x[0]) == 3
    assert math.ceil(x[0]) == 4
    assert math.trunc(x[0]) == 3
    assert list(range(dp.asarray(3, sycl_queue=queue))) == [0, 1, 2]
    assert [10, 20][dp.asarray(1, sycl_queue=queue)] == 20
    assert "ab" * dp.asarray(2, sycl_queue=queue).item() == "abab"


def test_json_of_an_array_says_what_to_write() -> None:
    with pytest.raises(TypeError, match="ndarray"):
        json.dumps(dp.ones(2).sum())


def test_scipy_minimises_an_objective_computed_here() -> None:
    optimize = pytest.importorskip("scipy.optimize")

    def objective(p: np.ndarray) -> dp.ndarray:
        x = dp.asarray(p)
        return ((x - dp.asarray([1.0, 2.0])) ** 2).sum()

    found = optimize.minimize(lambda p: objective(p).item(), [0.0, 0.0])
    np.testing.assert_allclose(found.x, [1, 2], atol=1e-4)
