"""Sub-groups: their numbers, algorithms and exchanges, on devices and in simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

SHAPES = [
    ((48,), (24,)),  # a whole sub-group and a partial one
    ((20, 6), (20, 3)),
    ((8, 6, 4), (4, 3, 2)),
]
# Columns of the sub-group numbers that a kernel writes.
ID, SIZE, GROUP, COUNT, LEADER, LARGEST = range(6)


@dp.device_func
def larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@dp.kernel
def ask(item: dp.NdItem, out: Any) -> None:
    i = item.get_global_linear_id()
    part = item.get_sub_group()
    out[i, 0] = part.get_local_id()
    out[i, 1] = part.get_local_range()
    out[i, 2] = part.get_group_id()
    out[i, 3] = part.get_group_range()
    out[i, 4] = part.leader
    out[i, 5] = part.get_max_local_range()


@dp.kernel
def ask_by_other_names(item: dp.NdItem, out: Any) -> None:
    i = item.get_global_linear_id()
    part = item.get_sub_group()
    out[i, 0] = part.get_local_linear_id()
    out[i, 1] = part.get_local_linear_range()
    out[i, 2] = part.get_group_linear_id()
    out[i, 3] = part.get_group_linear_range()
    out[i, 4] = part.leader
    out[i, 5] = part.dimensions


@dp.kernel
def compute(item: dp.NdItem, x: Any, out: Any) -> None:
    i = item.get_global_linear_id()
    part = item.get_sub_group()
    out[i, 0] = dp.reduce_over_group(part, x[i])
    out[i, 1] = dp.reduce_over_group(part, x[i], "min")
    out[i, 2] = dp.reduce_over_group(part, x[i], "mul")
    out[i, 3] = dp.reduce_over_group(part, x[i], larger)
    out[i, 4] = dp.inclusive_scan_over_group(part, x[i])
    out[i, 5] = dp.inclusive_scan_over_group(part, x[i], larger)
    out[i, 6] = dp.exclusive_scan_over_group(part, x[i], "add", 2)
    out[i, 7] = dp.exclusive_scan_over_group(part, x[i], larger, initial=1)
    out[i, 8] = dp.group_broadcast(part, x[i], 1)
    out[i, 9] = dp.any_of_group(part, x[i] > 8)
    out[i, 10] = dp.all_of_group(part, x[i])
    out[i, 11] = dp.none_of_group(part, x[i] == 3)
    out[i, 12] = dp.shift_group_left(part, x[i])
    out[i, 13] = dp.shift_group_right(part, x[i], delta=3)
    out[i, 14] = dp.permute_group_by_xor(part, x[i], 3)
    out[i, 15] = dp.select_from_group(part, x[i], part.get_local_id() * 2)


def expected_of(x: np.ndarray, numbers: np.ndarray, width: int) -> np.ndarray:
    """Return the result of ``compute``, from the numbers that ``ask`` wrote for one work-group."""
    out = np.zeros((len(x), 16), x.dtype)
    for part in range(int(numbers[:, GROUP].max()) + 1):
        members = np.flatnonzero(numbers[:, GROUP] == part)
        members = members[np.argsort(numbers[members, ID])]
        values, size = x[members], len(members)
        lanes = np.arange(size)

        def chosen(lane: np.ndarray) -> np.ndarray:
            inside = (lane >= 0) & (lane < size)  # noqa: B023
            return values[np.where(inside, lane, lanes)]  # noqa: B023

        with np.errstate(over="ignore"):
            sums = np.cumsum(values, dtype=x.dtype)
            out[members, 0] = sums[-1]
            out[members, 2] = np.prod(values, dtype=x.dtype)
            out[members, 6] = np.concatenate([[0], sums[:-1]]).astype(x.dtype) + x.dtype.type(2)
        largest = np.maximum.accumulate(values)
        out[members, 1] = values.min()
        out[members, 3] = values.max()
        out[members, 4] = sums
        out[members, 5] = largest
        out[members, 7] = np.maximum(np.concatenate([[1], largest[:-1]]), 1)
        out[members, 8] = values[1]
        out[members, 9] = (values > 8).any()
        out[members, 10] = values.all()
        out[members, 11] = not (values == 3).any()
        out[members, 12] = chosen(lanes + 1)
        out[members, 13] = chosen(lanes - 3)
        out[members, 14] = chosen(lanes ^ 3)
        out[members, 15] = chosen(lanes * 2)
    return out


def rows_of_groups(shape: tuple[int, ...], local: tuple[int, ...]) -> np.ndarray:
    """Return the linear ids of the work-items, with one group per row."""
    ids = np.arange(int(np.prod(shape)))
    parts = [part for n, m in zip(shape, local, strict=True) for part in (n // m, m)]
    axes = [*range(0, 2 * len(shape), 2), *range(1, 2 * len(shape), 2)]
    return ids.reshape(parts).transpose(axes).reshape(-1, int(np.prod(local)))


@pytest.mark.parametrize(("shape", "local"), SHAPES)
@pytest.mark.parametrize("kernel", [ask, ask_by_other_names])
def test_sub_groups_divide_each_group(
    kernel: Any, shape: tuple[int, ...], local: tuple[int, ...], queue: Any
) -> None:
    size = int(np.prod(shape))
    out = dp.zeros((size, 6), dtype="int64", sycl_queue=queue)
    dp.call_kernel(kernel, dp.NdRange(shape, local), out)
    found = out.asnumpy()
    for members in rows_of_groups(shape, local):
        numbers = found[members]
        assert set(numbers[:, COUNT]) == {numbers[:, GROUP].max() + 1}
        for part in range(numbers[0, COUNT]):
            of_part = numbers[numbers[:, GROUP] == part]
            assert sorted(of_part[:, ID]) == list(range(len(of_part)))
            assert set(of_part[:, SIZE]) == {len(of_part)}
            np.testing.assert_array_equal(of_part[:, LEADER], of_part[:, ID] == 0)
            if kernel is ask:
                assert len(of_part) <= of_part[0, LARGEST]


@pytest.mark.parametrize("local", [(24,), (20, 3), (3, 20), (4, 3, 2)])
def test_the_order_of_work_items_in_sub_groups(local: tuple[int, ...]) -> None:
    """SYCL leaves the order to the device. Intel's CPU driver, like a simulation, cuts lines along
    the first dimension; CUDA and ``host:cpu`` count by the linear id."""
    out = dp.zeros((int(np.prod(local)), 6), dtype="int64")
    dp.call_kernel(ask, dp.NdRange(local, local), out)
    found = out.asnumpy()
    width = int(found[0, LARGEST])
    linear = np.arange(len(found))
    first, *rest = np.unravel_index(linear, local)
    line = np.ravel_multi_index(rest[::-1], local[:0:-1]) if rest else 0
    lines = line * -(-local[0] // width) + first // width, first % width
    is_sycl = out.device.driver == "sycl"
    expected = lines if is_sycl else (linear // width, linear % width)
    np.testing.assert_array_equal(found[:, [GROUP, ID]].T, expected)
    simulated = np.zeros_like(found)
    dp.simulate(ask, dp.NdRange(local, local), simulated, sub_group_size=width)
    np.testing.assert_array_equal(simulated[:, [GROUP, ID]].T, lines)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "float32", "float64"])
@pytest.mark.sample(2)
def test_algorithms_of_sub_groups_for_all_types(dtype: str) -> None:
    compare(dtype, *SHAPES[0], dp.zeros(1).queue)


@pytest.mark.parametrize(("shape", "local"), SHAPES)
def test_sub_group_algorithms_have_numpys_results(
    shape: tuple[int, ...], local: tuple[int, ...], queue: Any
) -> None:
    compare("int32", shape, local, queue)


def compare(dtype: str, shape: tuple[int, ...], local: tuple[int, ...], queue: Any) -> None:
    """Compare the kernel's results on a queue and in a simulation with NumPy's."""
    size = int(np.prod(shape))
    x = np.random.default_rng(2).integers(0, 10, size).astype(dtype)
    numbers = dp.zeros((size, 6), dtype="int64", sycl_queue=queue)
    out = dp.zeros((size, 16), dtype=dtype, sycl_queue=queue)
    dp.call_kernel(ask, dp.NdRange(shape, local), numbers)
    dp.call_kernel(compute, dp.NdRange(shape, local), dp.asarray(x, sycl_queue=queue), out)
    width = int(numbers[0, LARGEST])
    simulated_numbers, simulated = np.zeros((size, 6), np.int64), np.zeros((size, 16), dtype)
    dp.simulate(ask, dp.NdRange(shape, local), simulated_numbers, sub_group_size=width)
    dp.simulate(compute, dp.NdRange(shape, local), x, simulated, sub_group_size=width)
    for members in rows_of_groups(shape, local):
        for found, of_items in (
            (out.asnumpy(), numbers.asnumpy()),
            (simulated, simulated_numbers),
        ):
            wanted = expected_of(x[members], of_items[members], width)
            np.testing.assert_allclose(found[members], wanted, rtol=1e-6)


def test_a_simulated_sub_group_has_the_size_that_is_asked_for() -> None:
    out = np.zeros((12, 6), np.int64)
    dp.simulate(ask, dp.NdRange(12, 6), out, sub_group_size=4)
    assert out[:6, ID].tolist() == [0, 1, 2, 3, 0, 1]
    assert out[:6, SIZE].tolist() == [4, 4, 4, 4, 2, 2]
    assert out[6:, GROUP].tolist() == [0, 0, 0, 0, 1, 1]
    with pytest.raises(ValueError, match="sub_group_size is a positive integer"):
        dp.simulate(ask, dp.NdRange(12, 6), out, sub_group_size=0)


@dp.kernel
def pass_on(item: dp.NdItem, out: Any, local: Any) -> None:
    part = item.get_sub_group()
    k = item.get_local_id(0)
    local[k] = k
    dp.group_barrier(part)
    first = k - part.get_local_id()
    out[item.get_global_id(0)] = local[first + part.get_local_range() - 1]
    dp.group_barrier(item.get_group())


def test_a_barrier_of_a_sub_group_orders_its_items() -> None:
    accessor = dp.LocalAccessor(8, np.int64)
    out = dp.zeros(16, dtype="int64")
    dp.call_kernel(pass_on, dp.NdRange(16, 8), out, accessor)
    simulated = np.zeros(16, np.int64)
    dp.simulate(pass_on, dp.NdRange(16, 8), simulated, accessor)
    assert out.tolist() == simulated.tolist() == [7] * 16
    smaller = np.zeros(16, np.int64)
    dp.simulate(pass_on, dp.NdRange(16, 8), smaller, accessor, sub_group_size=4)
    assert smaller.tolist() == [3] * 4 + [7] * 4 + [3] * 4 + [7] * 4


@dp.kernel
def read_of_another(item: dp.NdItem, out: Any, local: Any) -> None:
    k = item.get_local_id(0)
    local[k] = k
    dp.group_barrier(item.get_sub_group())
    out[item.get_global_id(0)] = local[7 - k]


def test_the_simulator_reports_that_it_orders_no_others() -> None:
    out, accessor = np.zeros(8, np.int64), dp.LocalAccessor(8, np.int64)
    dp.simulate(read_of_another, dp.NdRange(8, 8), out, accessor)
    assert out.tolist() == list(range(8))[::-1]
    with pytest.raises(dp.SimulationError, match=r"which no item wrote|no barrier between"):
        dp.simulate(read_of_another, dp.NdRange(8, 8), out, accessor, sub_group_size=4)


@dp.kernel
def not_all_come(item: dp.NdItem, out: Any) -> None:
    part = item.get_sub_group()
    if part.get_local_id() > 0:
        out[item.get_global_id(0)] = dp.reduce_over_group(part, 1)


def test_the_simulator_reports_missing_work_items() -> None:
    with pytest.raises(dp.SimulationError, match="not all work-items of its sub-group reach"):
        dp.simulate(not_all_come, dp.NdRange(8, 8), np.zeros(8, np.int64))


@dp.kernel
def of_a_group(item: dp.NdItem, x: Any) -> None:
    x[0] = dp.select_from_group(item.get_group(), x[0], 0)


@dp.kernel
def by_a_float(item: dp.NdItem, x: Any) -> None:
    x[0] = dp.shift_group_left(item.get_sub_group(), x[0], 0.5)


@dp.kernel
def with_a_dimension(item: dp.NdItem, x: Any) -> None:
    x[0] = item.get_sub_group().get_local_id(0)


@dp.kernel
def without_groups(item: dp.Item, x: Any) -> None:
    x[0] = item.get_sub_group().get_local_id()


@pytest.mark.parametrize(
    ("kernel", "index_space", "words"),
    [
        (of_a_group, dp.NdRange(4, 4), "only sub-groups exchange values"),
        (by_a_float, dp.NdRange(4, 4), "shift_group_left: takes an integer; got 0\\.5"),
        (with_a_dimension, dp.NdRange(4, 4), "a sub-group has one dimension"),
        (without_groups, dp.Range(4), "NdRange"),
    ],
)
def test_invalid_uses_of_sub_groups_raise(kernel: Any, index_space: Any, words: str) -> None:
    with pytest.raises(dp.KernelCompileError, match=words):
        dp.call_kernel(kernel, index_space, dp.zeros(4))


def test_checked_kernels_have_sub_groups() -> None:
    x = dp.arange(20)
    with dp.config.override(debug=True):
        out = dp.zeros((20, 16), dtype="int64")
        dp.call_kernel(compute, dp.NdRange(20, 20), x, out)
        with pytest.raises(dp.KernelExecutionError, match="out of bounds"):
            dp.call_kernel(compute, dp.NdRange(20, 20), x[:4], out)


def test_exchanges_on_the_host_raise() -> None:
    for function in (dp.select_from_group, dp.shift_group_left, dp.permute_group_by_xor):
        with pytest.raises(NotImplementedError, match="works only in a kernel"):
            function(None, 1, 1)
    with pytest.raises(NotImplementedError, match="SubGroup works only in a kernel"):
        dp.SubGroup()
