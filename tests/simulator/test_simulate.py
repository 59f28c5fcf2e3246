"""The simulator has NumPy's results, and reports each fault with line, work-item and index."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dparray import kernel_api, simulate
from dparray.exceptions import KernelArgumentError, KernelRangeError, SimulationError
from dparray.kernel_api import (
    AddressSpace,
    AtomicRef,
    LocalAccessor,
    MemoryOrder,
    MemoryScope,
    NdRange,
    PrivateArray,
    Range,
    atomic_fence,
    group_barrier,
)
from tests.support import examples

TILE = 4


def line_of(function, text):
    """Return ``file:line`` of the only line of ``function`` that contains ``text``."""
    lines, first = inspect.getsourcelines(function)
    (number,) = (first + place for place, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(function)}:{number}"


def fault(function, index_range, *args, **options):
    with pytest.raises(SimulationError) as caught:
        simulate(function, index_range, *args, **options)
    return caught.value


# results ----------------------------------------------------------------------------------


def add(item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("dtype", ["i4", "i8", "u1", "f4", "f8", "c8", "c16"])
def test_vector_add_equals_numpy(size, dtype):
    generator = np.random.default_rng(size)
    a, b = (generator.integers(0, 200, size).astype(dtype) for _ in "ab")
    out = np.zeros_like(a)
    simulate(add, Range(size), a, b, out)
    np.testing.assert_array_equal(out, a + b)


def tree_sum(nd_item, x, partial, slm):
    i, local = nd_item.get_global_id(0), nd_item.get_local_id(0)
    group = nd_item.get_group()
    slm[local] = x[i] if i < x.size else 0
    step = group.get_local_range(0) // 2
    while step > 0:
        kernel_api.group_barrier(group)
        if local < step:
            slm[local] += slm[local + step]
        step //= 2
    if local == 0:
        partial[group.get_group_id(0)] = slm[0]


@settings(max_examples=examples(20), deadline=None)
@given(size=st.integers(1, 60), exponent=st.integers(0, 4))
def test_a_tree_reduction_in_local_memory_equals_numpy(size, exponent):
    local = 2**exponent
    groups = -(-size // local)
    x = np.arange(size, dtype=np.int64) ** 2
    partial = np.zeros(groups, np.int64)
    simulate(
        tree_sum, NdRange((groups * local,), (local,)), x, partial, LocalAccessor(local, np.int64)
    )
    assert partial.sum() == x.sum()


def tiled_matmul(nd_item, a, b, c, tile_a, tile_b):
    row, column = nd_item.get_global_id(0), nd_item.get_global_id(1)
    i, j = nd_item.get_local_id(0), nd_item.get_local_id(1)
    group = nd_item.get_group()
    total = 0.0
    for start in range(0, a.shape[1], TILE):
        tile_a[i, j] = 0
        tile_b[i, j] = 0
        if row < a.shape[0] and start + j < a.shape[1]:
            tile_a[i, j] = a[row, start + j]
        if column < b.shape[1] and start + i < b.shape[0]:
            tile_b[i, j] = b[start + i, column]
        group_barrier(group, MemoryScope.WORK_GROUP)
        for k in range(TILE):
            total += tile_a[i, k] * tile_b[k, j]
        group_barrier(group, MemoryScope.WORK_GROUP)
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


@pytest.mark.parametrize("shape", [(4, 4, 4), (5, 9, 7), (1, 3, 6)])
def test_a_tiled_matmul_of_sizes_that_do_not_divide_equals_numpy(shape):
    m, k, n = shape
    generator = np.random.default_rng(0)
    a, b = generator.random((m, k)), generator.random((k, n))
    c = np.full((m, n), np.nan)
    up = [-(-extent // TILE) * TILE for extent in (m, n)]
    tiles = [LocalAccessor((TILE, TILE), np.float64) for _ in "ab"]
    simulate(tiled_matmul, NdRange(up, (TILE, TILE)), a, b.T.copy().T, c, *tiles)
    np.testing.assert_allclose(c, a @ b)


def ids(nd_item, out):
    i, j, k = nd_item.get_global_id(0), nd_item.get_global_id(1), nd_item.get_global_id(2)
    group = nd_item.get_group()
    out[i, j, k, 0] = nd_item.get_global_linear_id()
    out[i, j, k, 1] = nd_item.get_local_linear_id()
    out[i, j, k, 2] = group.get_group_linear_id()
    out[i, j, k, 3] = group.get_local_linear_range() * group.get_group_linear_range()
    out[i, j, k, 4] = group.leader


def test_the_ids_of_a_three_dimensional_range():
    out = np.zeros((4, 2, 6, 5), np.int64)
    simulate(ids, NdRange((4, 2, 6), (2, 1, 3)), out)
    np.testing.assert_array_equal(out[..., 0].ravel(), np.arange(48))
    np.testing.assert_array_equal(out[:2, 0, :3, 1].ravel(), np.arange(6))
    assert out[3, 1, 5].tolist()[2:4] == [7, 48]
    assert out[..., 4].sum() == 8


class Dispatcher:
    """Imitate the result of a decorator; numba-dpex's has this attribute."""

    def __init__(self, function):
        self.py_func = function


@Dispatcher
def power(x, n):
    return 1 if n == 0 else x * power_again(x, n - 1)


power_again = power


@Dispatcher
def await_all(group):
    group_barrier(group)


def test_device_functions_are_called_and_may_hold_barriers():
    scale = np.float32(2)

    @Dispatcher
    def kernel(nd_item, out, slm):
        local = nd_item.get_local_id(0)
        slm[local] = power(local, 3)
        await_all(nd_item.get_group())
        out[nd_item.get_global_id(0)] = scale * slm[nd_item.get_local_range(0) - 1 - local]

    out = np.zeros(8)
    simulate(kernel, NdRange(8, 4), out, LocalAccessor(4, np.float32))
    assert out.tolist() == [54, 16, 2, 0] * 2


def test_group_algorithms_that_not_all_items_reach_or_agree_on():
    def diverging(nd_item, out):
        if nd_item.get_local_id(0) != 1:
            out[nd_item.get_global_id(0)] = kernel_api.group_reduce(nd_item.get_group(), 1)

    def disagreeing(nd_item, out):
        local = nd_item.get_local_id(0)
        out[local] = kernel_api.group_broadcast(nd_item.get_group(), 1.0, local)

    assert "item (1,) ended" in str(fault(diverging, NdRange(3, 3), np.zeros(3)))
    assert "ask for [0, 1, 2]" in str(fault(disagreeing, NdRange(3, 3), np.zeros(3)))


# numbers ----------------------------------------------------------------------------------


def low_bits(item, x, y, z):
    x[0] = 2**40 + 5
    y[0] = 2.75
    z[0] += 255


def test_stores_convert_as_the_device_does():
    x, y, z = np.zeros(1, np.int32), np.zeros(1, np.int64), np.ones(1, np.uint8)
    simulate(low_bits, 1, x, y, z)
    assert (x[0], y[0], z[0]) == (5, 2, 0)


def scalar_types(item, n, r, out):
    out[0] = n.itemsize * 10 + r.itemsize


@pytest.mark.parametrize(
    ("n", "r", "expected"),
    [
        (np.int64(1), np.float64(1), 88),
        (np.int32(1), np.float32(1), 44),
        (np.uint8(1), np.complex128(1), 26),
    ],
)
def test_scalar_arguments_keep_their_types(n, r, expected):
    out = np.zeros(1)
    simulate(scalar_types, 1, n, r, out)
    assert out[0] == expected


ATOMIC_CASES = [
    ("fetch_add", 12, 5, 17),
    ("fetch_sub", 12, 5, 7),
    ("fetch_min", 12, 5, 5),
    ("fetch_max", 12, 5, 12),
    ("fetch_and", 12, 5, 4),
    ("fetch_or", 12, 5, 13),
    ("fetch_xor", 12, 5, 9),
    ("exchange", 12, 5, 5),
]


@pytest.mark.parametrize("dtype", ["i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize(("operation", "before", "operand", "after"), ATOMIC_CASES)
def test_atomic_operations(operation, before, operand, after, dtype):
    def kernel(item, x, old):
        old[0] = change(AtomicRef(x, 0), operand)

    def change(reference, value):
        return getattr(reference, operation)(value)

    x, old = np.array([before], dtype), np.zeros(1, dtype)
    if dtype in ("f4", "f8") and operation in ("fetch_and", "fetch_or", "fetch_xor"):
        assert operation in str(fault(kernel, 1, x, old))
        return
    simulate(kernel, 1, x, old)
    assert (x[0], old[0]) == (after, before)


def exchanges(item, x, expected, out):
    reference = AtomicRef(x, (0, 1), address_space=AddressSpace.GLOBAL)
    out[0] = reference.compare_exchange(expected, 7, 0)
    out[1] = reference.compare_exchange(expected, 9, 1)
    reference.store(reference.load() + 1)


def test_compare_exchange_load_and_store():
    x, expected, out = np.array([[3, 4]]), np.array([4, 4]), np.zeros(2)
    simulate(exchanges, 1, x, expected, out)
    assert x.tolist() == [[3, 8]]
    assert expected.tolist() == [4, 7]
    assert out.tolist() == [1, 0]


# errors -----------------------------------------------------------------------------------


def shifted(item, a, out):
    i = item.get_id(0)
    value = a[i + 1]
    out[i] = value


def test_an_access_out_of_bounds_names_kernel_line_item_index_and_shape():
    error = fault(shifted, 8, np.zeros(8), np.zeros(8))
    assert error.item == (7,)
    assert error.line == line_of(shifted, "a[i + 1]")
    for part in ("simulate(shifted)", "(7,)", "a[8]", "(8,)", error.line, "value = a[i + 1]"):
        assert part in str(error)


def two_dimensions(item, x):
    x[item.get_id(0), item.get_id(1)] = 1


def test_a_write_out_of_bounds_in_the_second_dimension():
    error = fault(two_dimensions, (2, 4), np.zeros((2, 3)))
    assert error.item == (0, 3)
    assert "writes x[0, 3]" in str(error)
    assert "dimension 1" in str(error)


def backwards(item, x, out):
    i = item.get_id(0)
    out[i] = x[-1 - i]


def test_negative_indices_count_from_the_end_as_on_the_device():
    x, out = np.arange(5.0), np.zeros(5)
    simulate(backwards, 5, x, out)
    np.testing.assert_array_equal(out, x[::-1])
    error = fault(backwards, 6, x, np.zeros(6))
    assert error.item == (5,)
    assert "x[-6]" in str(error)


def floating_index(item, x):
    x[item.get_id(0) / 2] = 1


def test_an_index_that_is_no_integer():
    assert "of type float" in str(fault(floating_index, 2, np.zeros(2)))


def guarded_barrier(nd_item, x):
    local = nd_item.get_local_id(0)
    if local < 3:
        group_barrier(nd_item.get_group())  # not for all
    x[nd_item.get_global_id(0)] = local


def test_a_barrier_that_not_all_items_reach():
    error = fault(guarded_barrier, NdRange(10, 5), np.zeros(10))
    assert error.line == line_of(guarded_barrier, "not for all")
    assert error.item == (0,)
    message = str(error)
    assert f"items (0,), (1,), (2,) at {error.line}" in message
    assert "items (3,), (4,) ended without coming to it" in message


def two_barriers(nd_item):
    if nd_item.get_local_id(0) == 2:
        group_barrier(nd_item.get_group())  # one
    else:
        group_barrier(nd_item.get_group())  # other


def test_items_that_wait_at_different_barriers():
    message = str(fault(two_barriers, NdRange(4, 4)))
    assert f"item (2,) at {line_of(two_barriers, '# one')}" in message
    assert f"items (0,), (1,), (3,) at {line_of(two_barriers, '# other')}" in message


def too_many_rounds(nd_item):
    for _ in range(nd_item.get_local_id(0)):
        group_barrier(nd_item.get_group())


def test_items_that_come_to_a_barrier_different_numbers_of_times():
    assert "item (0,) ended without" in str(fault(too_many_rounds, NdRange(3, 3)))


def unwritten_local(nd_item, slm, out):
    local = nd_item.get_local_id(0)
    if local != 1:
        slm[local] = local
    group_barrier(nd_item.get_group())
    out[nd_item.get_global_id(0)] = slm[local]


def test_a_read_of_local_memory_nobody_wrote():
    error = fault(unwritten_local, NdRange(4, 4), LocalAccessor(4, np.float32), np.zeros(4))
    assert error.item == (1,)
    assert error.line == line_of(unwritten_local, "= slm[local]")
    assert "slm[1] of local memory" in str(error)


def test_local_memory_does_not_live_on_from_group_to_group():
    def kernel(nd_item, slm, out):
        if nd_item.get_global_id(0) == 0:
            slm[0] = 1
        group_barrier(nd_item.get_group())
        out[nd_item.get_global_id(0)] = slm[0]

    error = fault(kernel, NdRange(4, 2), LocalAccessor(1, np.float32), np.zeros(4))
    assert error.item == (2,)


@pytest.mark.parametrize("fill", [True, False])
def test_private_arrays_are_undefined_unless_filled(fill):
    def kernel(item, out):
        private = PrivateArray((2, 2), np.int32, fill_zeros=fill)
        private[0, 0] = item.get_id(0)
        out[item.get_id(0)] = private[0, 0] + private[1, 0]

    out = np.zeros(3)
    if fill:
        simulate(kernel, 3, out)
        assert out.tolist() == [0, 1, 2]
    else:
        assert "PrivateArray[1, 0] of private memory" in str(fault(kernel, 3, out))


def all_write_one(item, out):
    out[0] = item.get_id(0) // 2


def test_two_items_that_write_one_element():
    error = fault(all_write_one, 4, np.zeros(1))
    assert error.item == (1,)
    assert error.line == line_of(all_write_one, "out[0]")
    assert "writes out[0], which work-item (0,) wrote at" in str(error)
    assert "AtomicRef(out, index)" in str(error)


def test_equal_values_may_be_let_through_and_all_races_ignored():
    error = fault(all_write_one, 4, np.zeros(1), races="same-value")
    assert error.item == (2,)
    out = np.zeros(1)
    simulate(all_write_one, 4, out, races="ignore")
    assert out[0] == 1
    with pytest.raises(ValueError, match="same-value"):
        simulate(all_write_one, 4, out, races="none")


def in_place_shift(item, x):
    i = item.get_id(0)
    x[i] = x[(i + 1) % x.size]


def test_a_read_and_a_write_of_different_items_conflict():
    error = fault(in_place_shift, 4, np.zeros(4))
    assert error.item == (1,)
    assert "writes x[1], which work-item (0,) read" in str(error)


def test_a_race_is_seen_through_two_views_of_one_array():
    x = np.zeros(9)
    error = fault(add, 8, x[:-1], x[:-1], x[1:])
    assert error.item == (1,)
    assert "reads a[1]" in str(error)


def missing_barrier(nd_item, slm, out):
    local = nd_item.get_local_id(0)
    slm[local] = local
    out[nd_item.get_global_id(0)] = slm[local - 1 if local else 0]


def test_local_memory_needs_a_barrier_between_items():
    error = fault(missing_barrier, NdRange(4, 4), LocalAccessor(4, np.int32), np.zeros(4))
    assert error.item == (1,)
    assert "no barrier between" in str(error)


def global_between_barriers(nd_item, x, out):
    i, local = nd_item.get_global_id(0), nd_item.get_local_id(0)
    x[i] = i
    group_barrier(nd_item.get_group())
    out[i] = x[i + 1 if local == 0 else i - 1]
    group_barrier(nd_item.get_group())
    x[i] = 0


def test_a_barrier_orders_global_memory_within_a_group():
    out = np.zeros(8)
    simulate(global_between_barriers, NdRange(8, 2), np.zeros(8), out)
    assert out.tolist() == [1, 0, 3, 2, 5, 4, 7, 6]


def mixed(item, x):
    if item.get_id(0) == 2:
        x[0] = 5  # plain
    else:
        AtomicRef(x, 0).fetch_add(1)


def test_atomic_and_plain_access_to_one_element_conflict():
    error = fault(mixed, 4, np.zeros(1))
    assert error.item == (2,)
    assert error.line == line_of(mixed, "# plain")
    assert "(atomically)" in str(error)


def last_group_sums(nd_item, x, partial, finished, total, order):
    i, group = nd_item.get_global_id(0), nd_item.get_group()
    partial[group.get_group_id(0)] = x[i]
    old = AtomicRef(finished, 0, memory_order=order).fetch_add(1)
    if old == group.get_group_linear_range() - 1:
        for place in range(partial.size):
            total[0] += partial[place]


def fenced_sum(nd_item, x, partial, finished, total):
    i, group = nd_item.get_global_id(0), nd_item.get_group()
    partial[group.get_group_id(0)] = x[i]
    atomic_fence(MemoryOrder.ACQ_REL, MemoryScope.DEVICE)
    old = AtomicRef(finished, 0).fetch_add(1)
    atomic_fence(MemoryOrder.ACQ_REL, MemoryScope.DEVICE)
    if old == group.get_group_linear_range() - 1:
        for place in range(partial.size):
            total[0] += partial[place]


def test_atomics_order_other_accesses_only_with_acquire_and_release():
    x = np.arange(6.0)

    def arguments():
        return x, np.zeros(6), np.zeros(1, np.int32), np.zeros(1)

    values = arguments()
    simulate(last_group_sums, NdRange(6, 1), *values, int(MemoryOrder.ACQ_REL))
    assert values[-1][0] == 15
    values = arguments()
    simulate(fenced_sum, NdRange(6, 1), *values)
    assert values[-1][0] == 15
    error = fault(last_group_sums, NdRange(6, 1), *arguments(), int(MemoryOrder.RELAXED))
    assert "reads partial[0]" in str(error)
    assert error.item == (5,)


def waits(item, flag):
    while AtomicRef(flag, 0).load() == 0:
        pass


def test_an_item_that_waits_for_another_is_reported():
    assert "spins on flag[0]" in str(fault(waits, 2, np.zeros(1, np.int32)))


def wrong_space(nd_item, slm):
    AtomicRef(slm, 0, address_space=AddressSpace.GLOBAL).store(1)


def test_the_address_space_of_an_atomic_must_be_the_arrays():
    error = fault(wrong_space, NdRange(1, 1), LocalAccessor(1, np.int32))
    assert "AddressSpace.LOCAL" in str(error)


def misspelt(item, x):
    x[item.get_id(0)] = no_such_name  # noqa: F821


def test_an_exception_in_the_kernel_names_item_and_line():
    error = fault(misspelt, 2, np.zeros(2))
    assert isinstance(error.__cause__, NameError)
    assert error.line == line_of(misspelt, "no_such_name")
    assert error.item == (0,)


def test_a_fault_in_a_device_function_is_at_its_own_line():
    def store(x, i):
        x[i] = 1

    def kernel(item, x):
        store(x, item.get_id(0))

    error = fault(kernel, 3, np.zeros(2))
    assert error.line == line_of(store, "x[i] = 1")
    assert "in store" in str(error)


def test_a_fault_after_a_barrier_ends_all_threads():
    def kernel(nd_item, x):
        group_barrier(nd_item.get_group())
        x[nd_item.get_global_id(0) + 4] = 1

    assert fault(kernel, NdRange(8, 8), np.zeros(8)).item == (4,)
    for thread in threading.enumerate():
        if thread.name == "dparray simulate":
            thread.join(60)
            assert not thread.is_alive()


# debugging --------------------------------------------------------------------------------


def noting_threads(nd_item, slm, seen):
    local = nd_item.get_local_id(0)
    slm[local] = local
    group_barrier(nd_item.get_group())
    note(seen, nd_item.get_global_id(0))


THREADS = {}


def note(seen, i):
    seen[i] = 1
    THREADS[int(i)] = threading.current_thread() is threading.main_thread()


def test_the_chosen_item_runs_in_the_calling_thread_with_its_group_only():
    THREADS.clear()
    seen = np.zeros(12)
    simulate(noting_threads, NdRange(12, 4), LocalAccessor(4, np.int32), seen, item=6)
    assert THREADS == {4: False, 5: False, 6: True, 7: False}
    assert seen.tolist() == [0] * 4 + [1] * 4 + [0] * 4
    out = np.zeros(6)
    simulate(add, 6, np.ones(6), np.ones(6), out, item=(2,))
    assert out.tolist() == [0, 0, 2, 0, 0, 0]
    with pytest.raises(KernelRangeError, match="not in the global range"):
        simulate(add, 6, out, out, out, item=6)


def test_a_kernel_without_barriers_runs_in_the_calling_thread():
    threads = []

    def kernel(nd_item, out):
        out[nd_item.get_global_id(0)] = note()

    def note():
        threads.append(threading.current_thread())
        return 0

    simulate(kernel, NdRange(8, 4), np.zeros(8))
    assert threads == [threading.current_thread()] * 8


def test_lines_of_the_kernel_can_be_traced_as_a_debugger_does():
    lines = []

    def trace(frame, event, argument):
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "add":
            if event == "line":
                lines.append((frame.f_lineno, dict(frame.f_locals)["a"][0]))
            return trace
        return trace if event == "call" else None

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        simulate(add, 2, np.ones(2), np.ones(2), np.zeros(2), races="ignore")
    finally:
        sys.settrace(previous)
    assert (int(line_of(add, "out[i]").rpartition(":")[2]), 1.0) in lines
    assert len(lines) == 4


DEBUGGED = """
import numpy as np
from dparray.kernel_api import LocalAccessor, NdRange, group_barrier
from dparray import simulate
def kernel(nd_item, x, slm):
    slm[nd_item.get_local_id(0)] = x[nd_item.get_global_id(0)]
    group_barrier(nd_item.get_group())
    total = slm[0] + slm[1]
    x[nd_item.get_global_id(0)] = total
simulate(kernel, NdRange(8, 4), np.arange(8.0), LocalAccessor(4, np.float64), item=6)
"""


def test_a_breakpoint_of_pdb_stops_in_the_chosen_item_only(tmp_path):
    script = tmp_path / "debugged.py"
    script.write_text(DEBUGGED)
    commands = f"b {script}:8\nc\np 'at', nd_item.get_global_id(0)\nn\np total\nc\nq\n"
    command = [sys.executable, "-m", "pdb", str(script)]
    shown = subprocess.run(command, input=commands, capture_output=True, text=True, timeout=60)
    assert shown.stdout.count("('at', 6)") == 1
    assert "np.float64(9.0)" in shown.stdout  # x[4] + x[5], after the barrier
    # at the first continue: no other work-item stopped
    assert "The program finished" in shown.stdout


# arguments --------------------------------------------------------------------------------


def test_wrong_arguments_are_refused_before_the_kernel_runs():
    x = np.zeros(4)
    with pytest.raises(
        KernelArgumentError, match=r"3 arguments after the item \(a, b, out\); got 1"
    ):
        simulate(add, 4, x)
    with pytest.raises(KernelArgumentError, match="out is of type list"):
        simulate(add, 4, x, x, [0])
    with pytest.raises(KernelArgumentError, match="LocalAccessor, which needs work-groups"):
        simulate(add, 4, x, x, LocalAccessor(4, np.float32))
    with pytest.raises(KernelArgumentError, match="dtype"):
        simulate(add, 4, x, x, np.array(["a"]))
    with pytest.raises(KernelArgumentError, match="needs a kernel"):
        simulate(len, 4, x)
    with pytest.raises(KernelArgumentError, match="has no parameters"):
        simulate(lambda: None, 4)


@pytest.mark.parametrize(
    "size", [-1, (2, -1), ((0,), (1,)), (1, 1, 1, 1), "4", ((4,), (3,)), ((4, 4), (2,))]
)
def test_wrong_ranges_are_refused(size):
    with pytest.raises(KernelRangeError):
        simulate(lambda item: None, size)


def test_a_tuple_of_two_tuples_is_a_range_of_work_groups():
    out = np.zeros((2, 2, 2, 5), np.int64)
    simulate(ids, ((2, 2, 2), (1, 2, 1)), out)
    assert out[1, 1, 1, 2] == 3


class DeviceArray:
    """Imitate an array on a device: a view of a fake allocation at an address."""

    def __init__(self, allocation, address, view):
        self._view = view
        offset = view.__array_interface__["data"][0] - allocation.__array_interface__["data"][0]
        self.shape, self.dtype = view.shape, view.dtype
        self.__sycl_usm_array_interface__ = {
            "data": (address, False),
            "offset": offset // view.itemsize,
            "strides": tuple(step // view.itemsize for step in view.strides),
        }

    def asnumpy(self):
        return self._view.copy()


def test_views_of_one_device_allocation_share_memory_in_the_simulation():
    data = np.arange(9.0)
    x, y = (DeviceArray(data, 4096, view) for view in (data[:-1], data[:0:-1]))
    z = DeviceArray(np.zeros(8), 8192, np.zeros(8))
    error = fault(add, 8, x, z, y)
    assert error.item == (5,)
    assert "reads a[5], which work-item (3,) wrote" in str(error)


def test_arguments_have_names_and_defaults():
    def store(item, x, a=2, b=3):
        x[0] = 10 * a + b

    x = np.zeros(1)
    for arguments, named, expected in (
        ((x,), {}, 23),
        ((x, 5), {}, 53),
        ((x,), {"b": 1}, 21),
        ((), {"b": 1, "x": x}, 21),
    ):
        simulate(store, 1, *arguments, **named)
        assert x[0] == expected
    with pytest.raises(KernelArgumentError, match="unexpected keyword argument 'c'"):
        simulate(store, 1, x, c=1)
    with pytest.raises(KernelArgumentError, match=r"3 arguments after the item \(x, a, b\); got 4"):
        simulate(store, 1, x, 1, 2, 3)


@pytest.mark.parametrize("dimension", [-1, 1])
def test_a_dimension_that_the_range_has_not_is_reported(dimension):
    def ask(item, x):
        x[0] = item.get_id(dimension)

    with pytest.raises(SimulationError, match=f"dimension {dimension} is asked for"):
        simulate(ask, 1, np.zeros(1))


def test_none_is_no_number():
    def store(item, x):
        x[0] = None

    with pytest.raises(SimulationError, match="stores None in x"):
        simulate(store, 1, np.zeros(1))


def test_arrays_of_dpnp_are_written() -> None:
    dpnp = pytest.importorskip("dpnp")

    def doubled(item, x):
        x[item.get_id(0)] *= 2

    x = dpnp.arange(4.0)
    simulate(doubled, Range(4), x)
    assert x.asnumpy().tolist() == [0.0, 2.0, 4.0, 6.0]
