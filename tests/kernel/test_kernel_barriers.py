"""Right results of barriers, local memory and atomics, at every optimization level.

The kernels are of the kind that gave users of numba-dpex wrong numbers: its issues 906, 1106, 1068,
774 and 711.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm

import dparray as dp
from dparray._compiler import compile
from dparray._compiler.back_ends.spirv import client, worker
from dparray._driver.interface import Target
from tests.support import execute

LEVELS = {
    "default": (2, {}),
    "hardly optimised": (1, {}),
    "optimised": (3, {}),
    "inlined": (3, {"inline_threshold": 3}),
    "debug": (2, {"debug": True}),
}


@pytest.fixture(params=list(LEVELS))
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return ``dp.kernel`` at one optimization level."""
    level, options = LEVELS[request.param]

    def optimised(text: str, target: Target, contracts: bool) -> tuple[str, bytes]:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        machine, module = worker._machine(llvm), llvm.parse_assembly(text)
        found = worker.optimised(llvm, machine, module, target.compiler, level)
        return found, client.emit(found)

    monkeypatch.setattr(compile, "kernel_key", lambda *arguments: None)  # Nothing is cached.
    monkeypatch.setattr(client, "optimised", optimised)
    return dp.kernel(**options)


def test_conditional_work_between_barriers(kernel: Any) -> None:
    """Issue 906: the second condition was not evaluated."""

    @kernel
    def conditional(item: dp.NdItem, result: Any, local: Any) -> None:
        column = item.get_local_id(0)
        group = item.get_group()
        dp.group_barrier(group)
        if column < 1:
            local[0] = 1
        dp.group_barrier(group)
        if column < 1:
            result[0] = 10

    for size in (16, 32, 256):
        result = dp.zeros(1, dtype="float32")
        local = dp.LocalAccessor(1, np.float32)
        dp.call_kernel(conditional, dp.NdRange(size, size), result, local)
        assert result.tolist() == [10.0]


def test_a_barrier_in_a_device_function_stays_where_it_is(kernel: Any) -> None:
    """Issue 1106: the barrier was duplicated into both branches, and the kernel never ended."""

    @dp.device_func
    def barrier(item: Any) -> None:
        dp.group_barrier(item.get_group())

    @kernel
    def twice(item: dp.NdItem, a: Any, b: Any) -> None:
        i = item.get_global_id(0)
        if i < 1:
            a[0] = 880
        barrier(item)
        if i < 0:
            b[0] = 990

    a = dp.arange(1024, dtype="float32")
    b = dp.arange(1024, dtype="float32")
    dp.call_kernel(twice, dp.NdRange(1024, 256), a, b)
    expected = np.arange(1024, dtype="float32")
    np.testing.assert_array_equal(b.asnumpy(), expected)
    expected[0] = 880
    np.testing.assert_array_equal(a.asnumpy(), expected)


def test_global_memory_between_two_barriers(kernel: Any) -> None:
    """Issue 1106, the path finder: neighbors read the values from before the barrier."""

    @kernel
    def step(item: dp.NdItem, previous: Any, wall: Any, result: Any) -> None:
        column = item.get_global_id(0)
        group = item.get_group()
        left = column - 1 if column >= 1 else column
        shortest = min(previous[left], previous[column])
        dp.group_barrier(group, dp.MemoryScope.DEVICE)
        previous[column] = wall[column] + shortest
        dp.group_barrier(group, dp.MemoryScope.DEVICE)
        result[column] = previous[column]

    previous = np.array([3, 0, 7, 5, 9, 1, 1, 4])
    wall = np.array([6, 5, 4, 2, 1, 8, 3, 3])
    expected = wall + np.minimum(previous, np.r_[previous[0], previous[:-1]])
    result = dp.zeros(8, dtype="int64")
    dp.call_kernel(step, dp.NdRange(8, 8), dp.asarray(previous), dp.asarray(wall), result)
    np.testing.assert_array_equal(result.asnumpy(), expected)


def make_matmul(kernel: Any, tile: int, dtype: Any) -> Any:
    @kernel
    def matmul(item: dp.NdItem, x: Any, y: Any, result: Any, x_tile: Any, y_tile: Any) -> None:
        i, j = item.get_global_id(0), item.get_global_id(1)
        li, lj = item.get_local_id(0), item.get_local_id(1)
        group = item.get_group()
        inner = x.shape[1]
        total = dtype(0)
        for block in range((inner + tile - 1) // tile):
            column = block * tile + lj
            row = block * tile + li
            x_tile[li, lj] = x[i, column] if i < x.shape[0] and column < inner else dtype(0)
            y_tile[li, lj] = y[row, j] if j < y.shape[1] and row < inner else dtype(0)
            dp.group_barrier(group)
            for k in range(tile):
                total += x_tile[li, k] * y_tile[k, lj]
            dp.group_barrier(group)
        if i < result.shape[0] and j < result.shape[1]:
            result[i, j] = total

    return matmul


@pytest.mark.parametrize("tile", [2, 4, 16])
def test_tiled_matrix_multiply_of_sizes_that_do_not_divide(kernel: Any, tile: int) -> None:
    """Issue 892, related to 906: local tiles, barriers in a loop, incomplete tiles at the edges."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (33, 29)).astype("float32")
    y = rng.integers(-4, 5, (29, 41)).astype("float32")
    result = dp.zeros((33, 41), dtype="float32")
    size = (-(-33 // tile) * tile, -(-41 // tile) * tile)
    tiles = [dp.LocalAccessor((tile, tile), np.float32) for _ in range(2)]
    matmul = make_matmul(kernel, tile, np.float32)
    # A transposed and a reversed view: index code of strided arrays together with local memory.
    xs = dp.permute_dims(dp.asarray(np.ascontiguousarray(x.T)), (1, 0))
    ys = dp.asarray(np.ascontiguousarray(y[::-1]))[::-1]
    dp.call_kernel(matmul, dp.NdRange(size, (tile, tile)), xs, ys, result, *tiles)
    np.testing.assert_array_equal(result.asnumpy(), x @ y)


@pytest.mark.parametrize("width", [1, 2, 64, 1024])
def test_tree_reduction_in_local_memory(kernel: Any, width: int) -> None:
    @kernel
    def reduce(item: dp.NdItem, x: Any, sums: Any, local: Any) -> None:
        i = item.get_global_id(0)
        lid = item.get_local_id(0)
        group = item.get_group()
        local[lid] = x[i] if i < x.shape[0] else 0
        step = item.get_local_range(0) // 2
        while step > 0:
            dp.group_barrier(group)
            if lid < step:
                local[lid] += local[lid + step]
            step //= 2
        dp.group_barrier(group)
        if lid == 0:
            sums[group.get_group_id(0)] = local[0]

    x = np.arange(3000, dtype="int32") % 17
    groups = -(-x.size // width)
    sums = dp.zeros(groups, dtype="int32")
    local = dp.LocalAccessor(width, np.int32)
    dp.call_kernel(reduce, dp.NdRange(groups * width, width), dp.asarray(x), sums, local)
    expected = np.pad(x, (0, groups * width - x.size)).reshape(groups, width).sum(axis=1)
    np.testing.assert_array_equal(sums.asnumpy(), expected)


def test_divergent_work_and_private_memory_before_barriers(kernel: Any) -> None:
    """Issue 1106: nested functions, private and local memory, barriers."""

    @dp.device_func
    def neighbor(item: Any, local: Any, lid: Any, value: Any) -> Any:
        local[lid] = value
        dp.group_barrier(item.get_group())
        return local[(lid + 1) % item.get_local_range(0)]

    @kernel
    def diverge(item: dp.NdItem, x: Any, out: Any, local: Any) -> None:
        i = item.get_global_id(0)
        lid = item.get_local_id(0)
        group = item.get_group()
        value = x[i]
        if lid % 3 == 0:
            for k in range(lid):
                value += k
        elif lid % 3 == 1:
            value *= 2
        private = dp.PrivateArray(4, np.int64)
        for k in range(4):
            private[k] = value + k
        first = neighbor(item, local, lid, private[lid % 4])
        dp.group_barrier(group)
        second = neighbor(item, local, lid, first)
        if lid < 5:
            out[i] = first + second
        else:
            out[i] = first - second

    for width in (8, 32, 128):
        x = np.arange(1024)
        out = dp.zeros(1024, dtype="int64")
        local = dp.LocalAccessor(width, np.int64)
        dp.call_kernel(diverge, dp.NdRange(1024, width), dp.asarray(x), out, local)
        lid = x % width
        grown = x + lid * (lid - 1) // 2
        value = np.where(lid % 3 == 0, grown, np.where(lid % 3 == 1, x * 2, x)) + lid % 4
        first = np.roll(value.reshape(-1, width), -1, axis=1).ravel()
        second = np.roll(first.reshape(-1, width), -1, axis=1).ravel()
        expected = np.where(lid < 5, first + second, first - second)
        np.testing.assert_array_equal(out.asnumpy(), expected)


def test_local_accessors_of_several_shapes(kernel: Any) -> None:
    @kernel
    def through_local(item: dp.NdItem, x: Any, out: Any, line: Any, plane: Any, cube: Any) -> None:
        i = item.get_global_id(0)
        lid = item.get_local_id(0)
        group = item.get_group()
        line[lid] = x[i]
        plane[lid % 2, lid // 2] = x[i] * 10
        cube[lid % 2, lid // 2 % 2, lid // 4] = x[i] * 100
        dp.group_barrier(group)
        other = 7 - lid
        out[i] = (
            line[other] + plane[other % 2, other // 2] + cube[other % 2, other // 2 % 2, other // 4]
        )

    x = np.arange(32, dtype="int64")
    out = dp.zeros(32, dtype="int64")
    shapes: list[Any] = [8, (2, 4), (2, 2, 2)]
    locals_ = [dp.LocalAccessor(shape, np.int64) for shape in shapes]
    dp.call_kernel(through_local, dp.NdRange(32, 8), dp.asarray(x), out, *locals_)
    expected = x.reshape(4, 8)[:, ::-1].ravel() * 111
    np.testing.assert_array_equal(out.asnumpy(), expected)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_atomics_on_local_and_global_memory(kernel: Any, dtype: str) -> None:
    """Issue 1068: a histogram in local memory, added to one in global memory."""
    number = np.dtype(dtype).type

    @kernel
    def histogram(item: dp.NdItem, x: Any, bins: Any, local: Any) -> None:
        i = item.get_global_id(0)
        lid = item.get_local_id(0)
        group = item.get_group()
        if lid < 16:
            local[lid] = number(0)
        dp.group_barrier(group)
        mine = dp.AtomicRef(local, x[i], address_space=dp.AddressSpace.LOCAL)
        mine.fetch_add(number(1))
        dp.group_barrier(group)
        if lid < 16:
            dp.AtomicRef(bins, lid).fetch_add(local[lid])

    x = np.random.default_rng(1).integers(0, 16, 4096)
    bins = dp.zeros(16, dtype=dtype)
    local = dp.LocalAccessor(16, number)
    dp.call_kernel(histogram, dp.NdRange(4096, 64), dp.asarray(x), bins, local)
    np.testing.assert_array_equal(bins.asnumpy(), np.bincount(x, minlength=16))


def test_atomic_add_of_every_work_item_to_one_number(kernel: Any) -> None:
    """Issues 711 and 774: a distance summed by atomics, over a 2-D range and strided arrays."""

    @kernel
    def distance(item: dp.Item, a: Any, b: Any, total: Any) -> None:
        i, j = item.get_id(0), item.get_id(1)
        difference = a[i, j] - b[i, j]
        dp.AtomicRef(total, 0).fetch_add(difference * difference)

    rng = np.random.default_rng(2)
    a = rng.integers(0, 9, (3, 4096)).astype("float64")
    b = rng.integers(0, 9, (4096, 3)).astype("float64")
    total = dp.zeros(1)
    a_view = dp.permute_dims(dp.asarray(a), (1, 0))
    b_view = dp.asarray(np.ascontiguousarray(b[::-1]))[::-1]
    dp.call_kernel(distance, dp.Range(4096, 3), a_view, b_view, total)
    assert total.item() == ((a.T - b) ** 2).sum()


def test_every_atomic_operation(kernel: Any) -> None:
    @kernel
    def operate(item: dp.Item, x: Any, out: Any, expected: Any) -> None:
        i = item.get_id(0)
        dp.AtomicRef(out, 0).fetch_add(x[i])
        dp.AtomicRef(out, 1).fetch_sub(x[i])
        dp.AtomicRef(out, 2).fetch_min(x[i])
        dp.AtomicRef(out, 3).fetch_max(x[i])
        dp.AtomicRef(out, 4).fetch_and(x[i])
        dp.AtomicRef(out, 5).fetch_or(x[i])
        dp.AtomicRef(out, 6).fetch_xor(x[i])
        if i == 0:
            dp.AtomicRef(out, 7).store(x[1])
            out[8] = dp.AtomicRef(out, 9).exchange(x[2])
            out[10] = dp.AtomicRef(out, 9).load()
            if dp.AtomicRef(out, 11).compare_exchange(expected, x[3], 0):
                out[12] = 1
            if not dp.AtomicRef(out, 11).compare_exchange(expected, x[3], 0):
                out[13] = expected[0]

    x = np.array([5, 3, 12, 9, 6, 200, 77, 31], dtype="int32")
    out = np.zeros(14, dtype="int32")
    out[2], out[4], out[9], out[11] = 1000, -1, 41, 17
    device_out = dp.asarray(out)
    expected = dp.asarray(np.array([17], dtype="int32"))
    dp.call_kernel(operate, dp.Range(8), dp.asarray(x), device_out, expected)
    assert device_out.tolist() == [
        x.sum(), -x.sum(), 3, 200, np.bitwise_and.reduce(x), np.bitwise_or.reduce(x),
        np.bitwise_xor.reduce(x), 3, 41, 12, 12, 9, 1, 9,
    ]  # fmt: skip


@pytest.mark.parametrize("order", ["RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL", "SEQ_CST"])
@pytest.mark.parametrize("scope", ["WORK_GROUP", "DEVICE", "SYSTEM"])
def test_atomics_of_every_order_and_scope(order: str, scope: str) -> None:
    memory_order, memory_scope = dp.MemoryOrder[order], dp.MemoryScope[scope]
    source = f"""
def count(item, out):
    dp.AtomicRef(
        out, 0, memory_order=dp.MemoryOrder.{order}, memory_scope=dp.MemoryScope.{scope}
    ).fetch_add(1)
    dp.atomic_fence(dp.MemoryOrder.{order}, dp.MemoryScope.{scope})
"""
    scope_of_names: dict[str, Any] = {"dp": dp}
    execute(source, scope_of_names)  # the names of an order and a scope are constants of a kernel
    out = dp.zeros(1, dtype="int64")
    dp.call_kernel(dp.kernel(scope_of_names["count"]), dp.Range(500), out)
    assert (memory_order.name, memory_scope.name, out.item()) == (order, scope, 500)


def test_division_by_zero_follows_numpy_and_ends_no_work_item() -> None:
    @dp.kernel
    def divide(item: dp.Item, x: Any, y: Any, floats: Any, integers: Any) -> None:
        i = item.get_id(0)
        floats[i] = x[i] / y[i]
        integers[i] = 7 // integers[i]

    x, y = np.array([1.0, -1.0, 4.0]), np.array([0.0, 0.0, 2.0])
    floats, integers = dp.zeros(3), dp.asarray(np.array([0, 2, 0]))
    dp.call_kernel(divide, dp.Range(3), dp.asarray(x), dp.asarray(y), floats, integers)
    assert floats.tolist() == [np.inf, -np.inf, 2.0]
    assert integers.tolist() == [0, 3, 0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_zero_follow_numpy_and_end_no_work_item(dtype: str) -> None:
    @dp.kernel
    def invert(item: dp.Item, x: Any, exponent: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] ** -2
        out[i, 1] = x[i] ** -1
        out[i, 2] = x[i] ** exponent[0]
        out[i, 3] = pow(x[i], -3)
        out[i, 4] = 1

    x = np.array([0.0, -0.0, 2.0], dtype)
    out = dp.zeros((3, 5), dtype=dtype)
    invert[3](dp.asarray(x), dp.asarray([-2]), out)
    expected = np.stack([x**-2, x**-1, x**-2, np.power(x, -3), np.ones_like(x)], axis=1)
    np.testing.assert_array_equal(out.asnumpy(), expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients_and_powers_of_zero_are_numpys(dtype: str) -> None:
    @dp.kernel
    def divide(item: dp.Item, x: Any, y: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] / y[i]
        out[i, 1] = y[i] ** -2
        out[i, 2] = y[i] ** 2.5
        out[i, 3] = y[i] ** 0
        out[i, 4] = 1
        out[i, 5] = y[i] ** (1 + 1j)

    x = np.array([1 + 2j, 0, -3j, 1 + 2j, 5, 2 + 1j], dtype)
    y = np.array([0, 0, 0, 3 - 4j, 1j, 0.5 + 7j], dtype)
    out = dp.zeros((6, 6), dtype=dtype)
    divide[6](dp.asarray(x), dp.asarray(y), out)
    expected = np.stack([x / y, y**-2.0, y**2.5, y**0, np.ones_like(x), y ** (1 + 1j)], axis=1)
    np.testing.assert_allclose(
        out.asnumpy(), expected, rtol=1e-5 if dtype == "complex64" else 1e-12
    )
