"""Launches: arguments, ranges, placement, order, events, and the attributes of a kernel."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import dpctl
import numpy as np
import pytest
from dpctl.utils import SequentialOrderManager

import dparray as dp


@dp.kernel
def add(item: dp.Item, a: Any, b: Any, c: Any) -> None:
    i = item.get_id(0)
    c[i] = a[i] + b[i]


@dp.kernel
def put(item: dp.Item, x: Any, value: Any) -> None:
    x[item.get_id(0)] = value


@dp.kernel(range=lambda x: dp.Range.like(x))
def double(item: dp.Item, x: Any) -> None:
    i = item.get_id(0)
    x[i] = 2 * x[i]


# -- arguments -----------------------------------------------------------------------------------


def test_a_kernel_runs_on_the_queue_of_its_arrays(queue: dpctl.SyclQueue) -> None:
    a = dp.arange(10, dtype="int32", sycl_queue=queue)
    c = dp.zeros(10, dtype="int32", sycl_queue=queue)
    event = dp.call_kernel(add, dp.Range(10), a, a, c)
    assert event.queue == queue
    assert c.tolist() == list(range(0, 20, 2))


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_every_usm_type(usm_type: str) -> None:
    x = dp.zeros(4, usm_type=usm_type)
    dp.call_kernel(put, dp.Range(4), x, 3)
    assert x.tolist() == [3.0] * 4


SCALARS = [
    ("bool", True),
    ("bool", False),
    ("int8", -128),
    ("int16", -(2**15)),
    ("int32", 2**31 - 1),
    ("int64", -(2**63)),
    ("uint8", 255),
    ("uint16", 2**16 - 1),
    ("uint32", 2**32 - 1),
    ("uint64", 2**64 - 1),
    ("float32", 0.1),
    ("float64", 0.1),
    ("complex64", 1 - 2j),
    ("complex128", 1 - 2j),
]


@pytest.mark.parametrize(("name", "value"), SCALARS)
def test_scalars_of_every_type(name: str, value: Any) -> None:
    number = np.dtype(name).type(value)
    x = dp.zeros(2, dtype=name)
    dp.call_kernel(put, dp.Range(2), x, number)
    assert x[1].item() == number.item()
    dp.call_kernel(put, dp.Range(2), x, value)
    assert x[0].item() == number.item()


def test_the_value_of_an_integer_chooses_its_type() -> None:
    x = dp.zeros(1, dtype="uint64")
    dp.call_kernel(put, dp.Range(1), x, 5)
    dp.call_kernel(put, dp.Range(1), x, 2**63 + 1)
    assert x.item() == 2**63 + 1
    with pytest.raises(
        dp.KernelArgumentError, match=r"argument 'value' is the integer 18446.*64 bits"
    ):
        dp.call_kernel(put, dp.Range(1), x, 2**64)


def test_arrays_of_dpnp_dpnp_tensor_and_dparray_together() -> None:
    import dpnp
    import dpnp.tensor as dpt

    c = dp.zeros(4, dtype="int32")
    queue = c.sycl_queue
    a = dpt.arange(4, dtype="int32", sycl_queue=queue)
    b = dpnp.full(4, 10, dtype="int32", sycl_queue=queue)
    dp.call_kernel(add, dp.Range(4), a, b, c)
    assert c.tolist() == [10, 11, 12, 13]


def test_anything_with_the_usm_interface() -> None:
    class Holder:
        def __init__(self, array: Any) -> None:
            self.array = array

        @property
        def __sycl_usm_array_interface__(self) -> dict[str, Any]:
            return dict(self.array.__sycl_usm_array_interface__)

    x = dp.arange(4, dtype="int32")
    c = dp.zeros(4, dtype="int32")
    dp.call_kernel(add, dp.Range(4), Holder(x), x, c)
    assert c.tolist() == [0, 2, 4, 6]


def test_a_zero_dimensional_array() -> None:
    @dp.kernel
    def store(item: dp.Item, x: Any, y: Any) -> None:
        y[()] = x[()] + 1

    x, y = dp.asarray(4), dp.asarray(0)
    dp.call_kernel(store, dp.Range(1), x, y)
    assert y.item() == 5


def test_numpy_arrays_raise_with_a_suggested_fix() -> None:
    x = dp.zeros(4)
    with pytest.raises(dp.HostConversionError, match=r"'b' is a NumPy array.*b = dp\.asarray\(b"):
        dp.call_kernel(add, dp.Range(4), x, np.zeros(4), x)


@pytest.mark.parametrize("value", ["text", None, object(), [1.0], {"a": 1}])
def test_unsupported_arguments_of_a_kernel_are_named(value: Any) -> None:
    x = dp.zeros(4)
    with pytest.raises(dp.KernelArgumentError, match="kernel put: argument 'value' is"):
        dp.call_kernel(put, dp.Range(4), x, value)
    assert x.tolist() == [0.0] * 4


def test_the_number_of_arguments_is_checked() -> None:
    x = dp.zeros(4)
    with pytest.raises(dp.KernelArgumentError, match=r"takes 3 arguments .*\(a, b, c\); got 2"):
        dp.call_kernel(add, dp.Range(4), x, x)


def test_a_kernel_without_an_array_has_no_queue() -> None:
    with pytest.raises(dp.KernelArgumentError, match="at least one argument must be an array"):
        dp.call_kernel(add, dp.Range(4), 1, 2, 3)


def test_a_function_that_is_not_a_kernel_raises() -> None:
    with pytest.raises(dp.KernelArgumentError, match=r"decorate the function with @dp\.kernel"):
        dp.call_kernel(lambda item, x: None, dp.Range(4), dp.zeros(4))


def test_a_kernel_without_an_item_is_refused() -> None:
    with pytest.raises(dp.KernelArgumentError, match="the first parameter of a kernel must be"):

        @dp.kernel
        def nothing() -> None:
            pass

    @dp.kernel
    def forgot(x: Any, y: Any) -> None:
        x[0] = y[0]

    x = dp.zeros(2)
    with pytest.raises(dp.KernelArgumentError, match=r"'x' is the work-item.*def forgot"):
        dp.call_kernel(forgot, dp.Range(2), x, x)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(dp.KernelArgumentError, match="unknown option 'fast'; options: debug"):
        dp.kernel(fast=True)


# -- placement -----------------------------------------------------------------------------------


def test_arrays_on_two_queues_are_refused_before_anything_runs() -> None:
    a = dp.ones(4)
    other = dp.ones(4, sycl_queue=dpctl.SyclQueue(a.sycl_device))
    c = dp.zeros(4)
    with pytest.raises(dp.ExecutionPlacementError) as caught:
        dp.call_kernel(add, dp.Range(4), a, other, c)
    message = str(caught.value)
    assert message.startswith("kernel add: the arrays are not on one queue (same device, differ")
    assert "b = b.to_device(a.device)" in message
    assert c.tolist() == [0.0] * 4


def test_foreign_arrays_on_another_queue_are_named_too() -> None:
    import dpnp.tensor as dpt

    a = dp.ones(4)
    other = dpt.ones(4, sycl_queue=dpctl.SyclQueue(a.sycl_device))
    with pytest.raises(dp.ExecutionPlacementError, match=r"b = b.to_device"):
        dp.call_kernel(add, dp.Range(4), a, other, a)


# -- ranges --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "extents", [(-1,), (4, -1), (1, 2, 3, 4), (), (2.0,), ("4",), (True,), (None,)]
)
def test_invalid_ranges(extents: tuple[Any, ...]) -> None:
    with pytest.raises(dp.KernelRangeError):
        dp.Range(*extents)


def test_ranges_take_numpy_integers() -> None:
    assert tuple(dp.Range(np.int32(4), np.uint8(2))) == (4, 2)


@pytest.mark.parametrize(
    ("size", "local"), [((8,), (3,)), ((8, 8), (4,)), ((8,), (0,)), ((8,), (16,)), ("8", 4)]
)
def test_invalid_nd_ranges(size: Any, local: Any) -> None:
    with pytest.raises(dp.KernelRangeError):
        dp.NdRange(size, local)


def test_a_local_size_that_does_not_divide_suggests_one_that_does() -> None:
    with pytest.raises(dp.KernelRangeError, match=r"local size 5 does not divide .* 16 .* use 20"):
        dp.NdRange(16, 5)


def test_a_group_larger_than_the_device_allows() -> None:
    @dp.kernel
    def kernel(item: dp.NdItem, x: Any) -> None:
        x[0] = 1

    x = dp.zeros(1)
    size = 2 * x.device.traits.group
    with pytest.raises(dp.KernelRangeError, match=f"{size} work-items; .* allows {size // 2}"):
        dp.call_kernel(kernel, dp.NdRange(size, size), x)
    assert x.item() == 0


@pytest.mark.parametrize("make", [dp.Range, lambda size: dp.NdRange((2, size), (1, 1))])
def test_indices_have_64_bits(make: Any) -> None:
    with pytest.raises(dp.KernelRangeError, match=r"a 64-bit index ends .* several elements"):
        make(2**63)


def test_a_refusal_names_the_local_memory_of_a_group(queue: Any) -> None:
    @dp.kernel
    def large(item: dp.NdItem, x: Any) -> None:
        local = dp.LocalArray(10**9, dp.float32)
        local[item.get_local_id(0)] = x[0]
        dp.group_barrier(item.get_group())
        x[item.get_global_id(0)] = local[item.get_local_id(0)]

    bytes_of_group = dp.Device(queue).traits.local_memory
    with pytest.raises(dp.KernelExecutionError, match=rf"a group has {bytes_of_group} bytes"):
        large[dp.NdRange(8, 8)](dp.ones(8, dtype="float32", sycl_queue=queue))


def test_an_index_that_a_kernel_cannot_count_to() -> None:
    @dp.kernel
    def kernel(item: dp.NdItem, x: Any) -> None:
        x[0] = 1

    with pytest.raises(dp.KernelRangeError, match="counts from 1 to 2147483647"):
        dp.call_kernel(kernel, dp.NdRange(2**31, 64), dp.zeros(1))


def test_a_local_accessor_needs_groups() -> None:
    @dp.kernel
    def kernel(item: dp.NdItem, x: Any, local: Any) -> None:
        x[0] = local[0]

    with pytest.raises(dp.KernelArgumentError, match=r"'local' is a LocalAccessor.*NdRange"):
        dp.call_kernel(kernel, dp.Range(4), dp.zeros(1), dp.LocalAccessor(4, np.float64))


def test_range_like_an_array() -> None:
    assert tuple(dp.Range.like(dp.zeros((2, 3, 4)))) == (2, 3, 4)
    assert tuple(dp.Range.like(dp.asarray(1))) == (1,)
    assert tuple(dp.Range.like(dp.zeros((2, 0)))) == (2, 0)


@pytest.mark.parametrize("index_space", [dp.Range(0), dp.Range(3, 0), 0, (0, 2)])
def test_an_empty_range_runs_nothing(index_space: Any, queue: Any) -> None:
    @dp.kernel
    def fill(item: dp.Item, x: Any) -> None:
        x[0] = 7

    source = "kernel void fill(global double *x) { x[0] = 7; }"
    x = dp.zeros(2, sycl_queue=queue)
    first = dp.call_kernel(fill, index_space, x)
    second = dp.call_kernel_async(fill, index_space, [first], x)
    third = dp.raw_kernel(source, "fill")[index_space](x, depends_on=second)
    with dp.config.override(debug=True):
        dp.call_kernel(fill, index_space, x)
    dp.simulate(fill, index_space, x)
    third.wait()
    assert all(event.done for event in (first, second, third))
    assert x.tolist() == [0.0, 0.0]


def test_an_nd_range_has_work_items() -> None:
    with pytest.raises(dp.KernelRangeError, match="dimension 0 must be positive; got 0"):
        dp.NdRange(0, 1)


@pytest.mark.parametrize("index_space", [dp.Range(4), 4, (4,), np.int64(4)])
def test_square_brackets_take_the_range(index_space: Any) -> None:
    x = dp.zeros(4)
    event = put[index_space](x, 2)
    event.wait()
    assert x.tolist() == [2.0] * 4


def test_square_brackets_with_two_tuples_are_an_nd_range() -> None:
    @dp.kernel
    def ids(item: dp.NdItem, x: Any) -> None:
        x[item.get_global_id(0)] = item.get_local_id(0)

    x = dp.zeros(6, dtype="int32")
    ids[(6,), (3,)](x)
    assert x.tolist() == [0, 1, 2, 0, 1, 2]


def test_a_default_range_of_the_arguments() -> None:
    x = dp.arange(5, dtype="int32")
    double(x)
    double(x[:2])
    assert x.tolist() == [0, 4, 4, 6, 8]


def test_a_missing_default_range_raises_with_a_suggested_fix() -> None:
    with pytest.raises(dp.KernelRangeError, match=r"put\[dp\.Range\(n\)\]\(x, value\)"):
        put(dp.zeros(3), 1)


def test_indices_of_two_and_three_dimensions_are_in_order() -> None:
    @dp.kernel
    def number(item: dp.NdItem, x: Any) -> None:
        i, j, k = item.get_global_id(0), item.get_global_id(1), item.get_global_id(2)
        local = item.get_local_id(0) * 100 + item.get_local_id(1) * 10 + item.get_local_id(2)
        x[i, j, k] = local + 1000 * item.get_group().get_group_linear_id()

    shape, local = (4, 6, 6), (2, 3, 2)
    x = dp.zeros(shape, dtype="int64")
    dp.call_kernel(number, dp.NdRange(shape, local), x)
    i, j, k = np.indices(shape)
    group = (i // 2 * 2 + j // 3) * 3 + k // 2
    expected = (i % 2) * 100 + (j % 3) * 10 + k % 2 + 1000 * group
    np.testing.assert_array_equal(x.asnumpy(), expected)


@pytest.mark.parametrize("size", [(1024,), (1000,), (7,), (64, 48), (8, 9, 10), (2**20,)])
def test_a_suggested_local_size_divides_and_runs(size: tuple[int, ...]) -> None:
    @dp.kernel
    def mark(item: dp.NdItem, x: Any) -> None:
        x[item.get_global_linear_id()] += 1

    x = dp.zeros(int(np.prod(size)), dtype="int32")
    for local in (mark.suggest_local(size), mark.suggest_local(size, x)):
        assert len(local) == len(size)
        assert all(n % part == 0 for n, part in zip(size, local, strict=True))
        dp.call_kernel(mark, dp.NdRange(size, local), x)
    assert dp.all(x == 2)


# -- order and events ----------------------------------------------------------------------------


def test_a_local_size_is_suggested_for_a_global_size() -> None:
    with pytest.raises(dp.KernelRangeError, match="takes the global size alone"):
        add.suggest_local(dp.NdRange(8, 4))


def test_a_kernel_with_its_range_shows_both() -> None:
    assert repr(add[4]) == "<dparray kernel add over Range(4)>"


def test_more_work_items_than_the_driver_counts() -> None:
    @dp.kernel
    def nothing(item: dp.Item, x: Any) -> None: ...

    outcome = "done"  # the driver decides whether it can
    try:
        nothing[2**16, 2**15](dp.zeros(1)).wait()
    except dp.KernelExecutionError as error:
        outcome = str(error)
    assert outcome == "done" or "These are 2147483648 work-items" in outcome


def test_launches_on_one_queue_are_ordered() -> None:
    x = dp.zeros(100_000, dtype="int64")
    for _ in range(50):
        double(x)
        x += 1
    expected = 0
    for _ in range(50):
        expected = 2 * expected + 1
    assert x[99_999].item() == expected


def test_a_kernel_is_ordered_with_dpnp_tensor() -> None:
    import dpnp.tensor as dpt

    x = dpt.ones(100_000, dtype="int64")
    for _ in range(20):
        dp.call_kernel(double, dp.Range(100_000), x)
        x += 1
    assert int(x[99_999]) == 2**20 + 2**20 - 1


def test_waiting_for_a_launch_waits_for_those_before_it() -> None:
    queue = dpctl.SyclQueue(dp.Device().sycl_device)
    x = dp.zeros(1000, dtype="int64", sycl_queue=queue)
    put[1](x, 0).wait()
    for _ in range(200):
        put[1000](x, 1)
    order = SequentialOrderManager[queue]
    assert len(order.before_launch()) == 1
    order.wait()
    assert order.num_submitted_events == 0


@dp.kernel
def pass_time(item: dp.Item, x: Any, turns: Any) -> None:
    value = x[item.get_id(0)]
    for _ in range(turns):
        value = value * 1.0000001 + 1e-9
    x[item.get_id(0)] = value


def test_a_launch_that_another_thread_overtook_is_waited_for() -> None:
    queue, other = (dpctl.SyclQueue(dp.Device().sycl_device) for _ in range(2))
    x, y = (dp.ones(1, sycl_queue=each) for each in (queue, other))
    pass_time[1](y, 1).wait()
    put[1](x, 1).wait()
    order = SequentialOrderManager[queue]
    before = order.before_launch()
    ours = pass_time[1](y, 20_000_000).sycl_event  # as if it had been launched on the first queue
    pass_time[1](x, 10_000_000)
    order.add_launch(ours, before)
    assert len(order.before_launch()) == order.num_submitted_events == 2
    order.wait()
    assert ours.execution_status == dpctl.event_status_type.complete


def test_memory_of_dropped_arguments_lives_until_the_kernel_has_run() -> None:
    import dpnp.tensor as dpt

    total = dp.zeros(1 << 16, dtype="int64")
    for turn in range(40):
        foreign = dpt.full(1 << 16, turn, dtype="int64", sycl_queue=total.sycl_queue)
        own = dp.full(1 << 16, turn, dtype="int64")
        dp.call_kernel(add, dp.Range(1 << 16), foreign, total, total)
        dp.call_kernel(add, dp.Range(1 << 16), own, total, total)
        del foreign, own
        gc.collect(0)
    assert dp.all(total == 2 * sum(range(40)))


def test_an_event_ends() -> None:
    x = dp.zeros(1000)
    event = dp.call_kernel(put, dp.Range(1000), x, 1)
    event.wait()
    assert event.done
    assert repr(event) == "<dparray event of kernel put, done>"


def test_explicit_order_across_queues() -> None:
    first = dp.zeros(1 << 20, dtype="int64", usm_type="shared")
    queue = dpctl.SyclQueue(first.sycl_context, first.sycl_device)
    other = dp.zeros(1 << 20, dtype="int64", sycl_queue=queue)
    events = [dp.call_kernel(put, dp.Range(1 << 20), first, 7)]
    done = dp.call_kernel(put, dp.Range(1 << 20), other, 3, depends_on=events)
    done.wait()
    assert events[0].done
    again = put[1 << 20](other, 4, depends_on=events[0].sycl_event)
    again.wait()
    assert other[5].item() == 4
    dp.call_kernel_async(put, dp.Range(1 << 20), (again,), other, 5).wait()
    assert other[5].item() == 5


def test_profiling_times_where_the_queue_collects_them() -> None:
    plain = dp.zeros(1000)
    with pytest.raises(dp.KernelExecutionError, match="profiling=True"):
        _ = dp.call_kernel(put, dp.Range(1000), plain, 1).profile
    queue = dpctl.SyclQueue(plain.sycl_device, property="enable_profiling")
    x = dp.zeros(1000, sycl_queue=queue)
    times = dp.call_kernel(put, dp.Range(1000), x, 1).profile
    assert 0 < times.submit <= times.start <= times.end
    assert times.seconds == (times.end - times.start) * 1e-9


def test_an_in_order_queue() -> None:
    queue = dpctl.SyclQueue(property="in_order")
    x = dp.zeros(100, sycl_queue=queue, dtype="int64")
    for _ in range(5):
        put[100](x, 3)
        double(x)
    assert x.tolist() == [6] * 100


# -- attributes of a kernel ----------------------------------------------------------------------


def test_a_kernel_can_be_inspected() -> None:
    @dp.kernel
    def scale(item: dp.Item, x: Any, factor: Any) -> None:
        i = item.get_id(0)
        x[i] *= factor

    assert scale.signatures == []
    x = dp.ones(8, dtype="float32")
    scale[8](x, np.float32(2))
    signature = ("Item(1)", "float32[1-D, C]", "float32")
    assert scale.signatures == [signature]
    assert "spir_kernel" in scale.inspect_llvm(signature)
    assert "FMul" in scale.inspect_spirv(signature)
    assert set(scale.inspect_llvm()) == {signature}
    assert "x[i] *= factor" in scale.source
    assert scale.compile_seconds[signature] > 0
    info = scale.device_info()[signature]
    assert info["work_group_size"] >= 1
    assert info["private_mem_size"] >= 0
    assert scale.location.startswith(__file__)
    with pytest.raises(dp.KernelArgumentError, match="not compiled for"):
        scale.inspect_llvm(("Item(2)",))


def test_signatures_close_a_kernel() -> None:
    import numba_dpex
    from numba_dpex.core.types.kernel_api.index_space_ids import ItemType

    array = numba_dpex.USMNdArray(ndim=1, dtype=numba_dpex.float32, layout="C")

    @dp.kernel((ItemType(1), array))
    def half(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] / 2

    assert half.signatures == [("Item(1)", "float32[1-D, C]")]
    x = dp.ones(3, dtype="float32")
    half[3](x)
    assert x.tolist() == [0.5] * 3
    with pytest.raises(dp.KernelArgumentError, match=r"given signatures only.*int32"):
        half[3](dp.ones(3, dtype="int32"))


@pytest.mark.parametrize("maker", ["dparray", "numba_dpex"])
def test_a_signature_takes_python_numbers(maker: str) -> None:
    numba_dpex = pytest.importorskip("numba_dpex")
    from numba_dpex.core.types.kernel_api.index_space_ids import ItemType

    array = numba_dpex.USMNdArray(ndim=1, dtype=numba_dpex.float32, layout="C")
    kernel = dp.kernel if maker == "dparray" else numba_dpex.kernel

    @kernel((ItemType(1), array, numba_dpex.float64, numba_dpex.int64))
    def scale(item: dp.Item, x: Any, factor: Any, n: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] * factor + n

    x = dp.ones(3, dtype="float32")
    for factor, n in ((2.0, 3), (np.float64(2), np.int64(3))):
        dp.call_kernel(scale, dp.Range(3), x, factor, n)
    assert x.tolist() == [13.0] * 3
    with pytest.raises(dp.KernelArgumentError, match="given signatures only"):
        dp.call_kernel(scale, dp.Range(3), x, 1, 1)


def test_print_takes_formatted_strings(capfd: pytest.CaptureFixture[str]) -> None:
    @dp.kernel
    def show(item, x, n):
        i = item.get_id(0)
        print(f"x[{i}] = {x[i]}, 100%")
        print("sum", f"{i}+{n}={i + n}", n, f"plain", f"{x[i] > 1}", f"{n}")  # noqa: F541

    x = dp.asarray([2.5])
    show[1](x, 7).wait()
    expected = "x[0] = 2.5, 100%\nsum 0+7=7 7 plain True 7\n"
    assert capfd.readouterr().out == expected
    dp.simulate(show, dp.Range(1), x, 7)
    assert capfd.readouterr().out == expected


def test_strings_in_branches_that_are_never_taken_are_no_error() -> None:
    is_verbose = False

    @dp.kernel
    def number(item, x):
        i = item.get_id(0)
        if is_verbose:
            text = str(i) + f"{x[i]}"
            print(text)
        x[i] = i

    x = dp.zeros(3)
    number[3](x).wait()
    assert x.tolist() == [0, 1, 2]


def test_print_shows_values_and_words(capfd: pytest.CaptureFixture[str]) -> None:
    @dp.kernel
    def show(item: dp.Item, x: Any, flag: Any) -> None:
        i = item.get_id(0)
        if i == 2:
            print("value", x[i], i, "of 100%")
            print(True, x[i] > 0, flag)

    dp.call_kernel(show, dp.Range(4), dp.asarray([0.0, 0.5, -2.5, 1.0]), True).wait()
    dp.call_kernel(show, dp.Range(4), dp.asarray([0, 1, 7, 9]), False).wait()
    assert capfd.readouterr().out.splitlines() == [
        "value -2.5 2 of 100%",
        "True False True",
        "value 7 2 of 100%",
        "True True False",
    ]


@dp.kernel
def scale(item: dp.Item, x: Any, out: Any, factor: Any = 3, shift: Any = 0.5) -> None:
    i = item.get_id(0)
    out[i] = x[i] * factor + shift


@pytest.mark.parametrize(
    ("arguments", "named", "expected"),
    [
        ((), {}, [0.5, 3.5]),
        ((2,), {}, [0.5, 2.5]),
        ((), {"shift": 1}, [1, 4]),
        ((), {"shift": 1, "factor": 2}, [1, 3]),
        ((2,), {"shift": 1}, [1, 3]),
    ],
)
def test_arguments_by_name_and_by_default(
    arguments: tuple[Any, ...], named: dict[str, Any], expected: list[float]
) -> None:
    x, out = dp.arange(2.0), dp.zeros(2)
    scale[2](x, out, *arguments, **named)
    assert out.tolist() == expected
    out = dp.zeros(2)
    dp.call_kernel(scale, 2, x, out, *arguments, **named)
    assert out.tolist() == expected
    out = dp.zeros(2)
    dp.call_kernel_async(scale, 2, [], x, out, *arguments, **named)
    assert out.tolist() == expected
    out = dp.zeros(2)
    by_default = dp.kernel(scale.py_func, range=lambda x, out, factor, shift: dp.Range.like(x))
    by_default(x, out, *arguments, **named)
    assert out.tolist() == expected


@pytest.mark.parametrize(
    ("count", "named", "message"),
    [
        (2, {"offset": 1}, r"no parameter 'offset'; its parameters are x, out, factor, shift"),
        (2, {"x": 1}, r"argument 'x' is given twice"),
        (1, {}, r"takes 4 arguments after the item \(x, out, factor, shift\); got 1"),
        (5, {}, r"takes 4 arguments .* got 5"),
    ],
)
def test_names_and_numbers_of_arguments_that_do_not_fit(
    count: int, named: dict[str, Any], message: str
) -> None:
    arguments = [dp.ones(2)] * count
    with pytest.raises(dp.KernelArgumentError, match=message):
        scale[2](*arguments, **named)
    with pytest.raises(dp.KernelArgumentError, match=message):
        dp.call_kernel(scale, 2, *arguments, **named)


@pytest.mark.parametrize("value", [5, [1, 2], None, 2.5])
def test_a_range_like_a_value_that_is_not_an_array(value: Any) -> None:
    with pytest.raises(dp.KernelRangeError, match=r"Range\.like: array must be an array"):
        dp.Range.like(value)


@pytest.mark.parametrize("space", [dp.Range(3), dp.Range(2, 3, 4), dp.NdRange((4, 6), (2, 3))])
def test_ranges_are_pickled_and_copied(space: Any) -> None:
    for made in (pickle.loads(pickle.dumps(space)), copy.copy(space), copy.deepcopy(space)):
        assert made == space
        assert type(made) is type(space)


@dp.kernel
def count_of_rows(item: dp.NdItem, rows: Any) -> None:
    dp.AtomicRef(rows, item.get_global_id(0)).fetch_add(1)


@dp.kernel
def count_of_columns(item: dp.NdItem, columns: Any) -> None:
    dp.AtomicRef(columns, item.get_global_id(1)).fetch_add(1)


@pytest.mark.filterwarnings("ignore::dparray.exceptions.KernelRangeWarning")
def test_a_kernel_may_read_some_of_its_dimensions() -> None:
    rows, columns = (dp.zeros(8, dtype="int32") for _ in range(2))
    count_of_rows[dp.NdRange((4, 6), (2, 3))](rows)
    count_of_columns[dp.NdRange((4, 6), (2, 3))](columns)
    assert rows.tolist() == [6] * 4 + [0] * 4
    assert columns.tolist() == [4] * 6 + [0] * 2
