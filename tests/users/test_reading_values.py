"""Reading an array element by element, as loops in NumPy programs do."""

from __future__ import annotations

import json
import math
import weakref
from typing import Any

import numpy as np
import pytest

import dparray as dp

# isort: split
import dpctl

pytestmark = pytest.mark.process


@pytest.mark.usefixtures("tests_options")
def test_a_loop_over_a_pending_array_computes_it_once(queue: Any) -> None:
    x = dp.arange(20_000.0, sycl_queue=queue) * 2
    assert x.is_pending
    assert sum(v for v in x) == 2 * sum(range(20_000))
    assert not x.is_pending


def test_the_second_number_read_computes_the_array(queue: Any) -> None:
    x = dp.arange(20_000.0, sycl_queue=queue) * 2
    assert [float(x[i]) for i in range(3)] == [0, 2, 4]
    assert not x.is_pending


def test_a_vector_is_a_row_of_arrays_without_dimensions(queue: Any) -> None:
    x = dp.asarray([1.5, 2.5, 3.5], sycl_queue=queue)
    for part, at_index in zip(x, [x[0], x[1], x[2]], strict=True):
        assert isinstance(part, dp.ndarray)
        assert (part.shape, part.sycl_queue, part.usm_type) == ((), queue, x.usm_type)
        assert part == at_index
    np.testing.assert_array_equal(dp.stack(list(x)).asnumpy(), x.asnumpy())
    assert sorted(x, reverse=True)[0] == 3.5
    assert max(x) == 3.5
    assert len({*x}) == 3


def test_numbers_of_a_vector_can_be_exchanged_as_in_numpy(queue: Any) -> None:
    for size in (2, 20_000):
        x = dp.arange(1.0, size + 1, sycl_queue=queue)
        first, second, *others = x
        x[0], x[1] = second, first
        assert x[:2].tolist() == [2, 1]
        x += 1
        assert (first.item(), second.item()) == (1, 2)
        assert [v.item() for v in others[:2]] == [3, 4][: size - 2]


def test_a_loop_may_launch_work_on_the_array_that_it_reads(queue: Any) -> None:
    @dp.kernel
    def add_one(item: Any, values: Any) -> None:
        values[item.get_id(0)] += 1

    x = dp.zeros(20_000, sycl_queue=queue)
    seen = []
    for v in x:
        seen.append(v)
        if len(seen) < 6:
            dp.call_kernel(add_one, dp.Range(x.size), x)
    assert [v.item() for v in seen[:8]] == [0, 1, 2, 3, 4, 5, 5, 5]
    assert len(seen) == x.size


def test_numbers_kept_from_a_loop_keep_their_values(queue: Any) -> None:
    x = dp.arange(6.0, sycl_queue=queue)
    kept, watched = [], []
    for i, v in enumerate(x):
        if i % 2:
            kept.append(v)
        elif i == 2:
            watched.append(weakref.ref(v))
        else:
            v += 10
            assert v == i + 10
    assert [v.item() for v in kept] == [1, 3, 5]
    assert watched[0]() is None or watched[0]().item() == 2
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_list_of_a_vectors_parts_prints_its_numbers() -> None:
    assert repr(list(dp.asarray([1.5, 2.5]))) == "[array(1.5), array(2.5)]"
    assert repr(list(dp.asarray([1, 2], dtype="int16"))) == (
        "[array(1, dtype=int16), array(2, dtype=int16)]"
    )
    elsewhere = dp.asarray(1.5, sycl_queue=dpctl.SyclQueue(dp.Device("cpu").sycl_device))
    assert "device=" in repr(elsewhere)


def test_writes_of_a_loop_are_read_by_its_later_turns(queue: Any) -> None:
    for size in (10, 10_000):
        a, x = np.ones(size), dp.ones(size, sycl_queue=queue)
        for values in (a, x):
            for i, v in enumerate(values):
                if i < 9:
                    values[i + 1] = v * 2
        np.testing.assert_array_equal(x.asnumpy(), a)


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


def test_a_format_of_one_number_is_not_one_of_an_array() -> None:
    with pytest.raises(ValueError, match=r"'\.2f' formats one number.*shape \(2,\)"):
        f"{dp.ones(2):.2f}"


def test_json_of_an_array_raises_with_a_suggested_fix() -> None:
    with pytest.raises(TypeError, match="ndarray"):
        json.dumps(dp.ones(2).sum())


def test_scipy_minimizes_an_objective_computed_here() -> None:
    optimize = pytest.importorskip("scipy.optimize")

    def objective(p: np.ndarray) -> dp.ndarray:
        x = dp.asarray(p)
        return ((x - dp.asarray([1.0, 2.0])) ** 2).sum()

    found = optimize.minimize(objective, [0.0, 0.0])
    np.testing.assert_allclose(found.x, [1, 2], atol=1e-4)
