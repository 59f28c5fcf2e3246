"""Kernels, plans, libraries and errors over a driver that is not SYCL's, on the stand-in."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.memory import libraries
from tests.standin import Queue, StandIn

VALUES = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def queue(standin: StandIn) -> Queue:
    return Queue(standin.found[0])


@dp.kernel
def turned_in_groups(item: dp.NdItem, x: Any, local: Any) -> None:
    """Reverse the elements of each group, through local memory."""
    at = item.get_local_id(0)
    local[at] = x[item.get_global_id(0)]
    dp.group_barrier(item.get_group())
    x[item.get_global_id(0)] = local[item.get_local_range(0) - 1 - at]


@dp.kernel
def added_at(item: dp.Item, x: Any, offset: Any) -> None:
    """Add a number, in one work-item too many for a kernel that checks nothing."""
    x[item.get_id(0) + offset] += 1


def test_operations_become_one_launch_that_is_not_waited_for(
    standin: StandIn, queue: Queue
) -> None:
    x = dp.asarray(VALUES, device=queue)
    y = x * 2 + x
    dp.eval(y)
    assert len(standin.launches) == 1
    assert not y.ready
    np.testing.assert_array_equal(y.asnumpy(), VALUES * 3)
    assert y.ready


def test_a_plan_is_used_again(standin: StandIn, queue: Queue) -> None:
    x = dp.asarray(VALUES, device=queue)
    for factor in (2, 3, 4):
        np.testing.assert_array_equal((x * factor - 1).asnumpy(), VALUES * factor - 1)
    assert len({entry for entry, *_ in standin.launches}) == 1
    assert len(standin.loaded) == 1


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["sum", "max", "argmin", "mean"])
def test_reductions(name: str, axis: int | None, queue: Queue) -> None:
    x = dp.asarray(VALUES, device=queue)
    found = getattr(dp, name)(x, axis=axis)
    np.testing.assert_array_equal(found.asnumpy(), getattr(np, name)(VALUES, axis=axis))


def test_statements_run_in_the_order_of_the_program(queue: Queue) -> None:
    x, expected = dp.asarray(VALUES, device=queue), VALUES.copy()
    read = x + 1
    x[1:] += x[:-1]
    expected[1:] += expected[:-1]
    x[:, 0] = 7
    expected[:, 0] = 7
    np.testing.assert_array_equal(read.asnumpy(), VALUES + 1)
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_a_kernel_with_barriers_and_local_memory(queue: Queue) -> None:
    x = dp.arange(128.0, device=queue)
    event = dp.call_kernel(
        turned_in_groups, dp.NdRange(128, 32), x, dp.LocalAccessor(32, dp.float64)
    )
    assert not event.done
    event.wait()
    assert event.done
    expected = np.arange(128.0).reshape(4, 32)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_work_of_two_queues_is_ordered_by_events(standin: StandIn, queue: Queue) -> None:
    other = dp.Device(queue).new_queue().queue
    x = dp.arange(64.0, device=queue)
    y = dp.arange(64.0, device=other)
    first = dp.call_kernel(added_at, dp.Range(64), x, 0)
    second = dp.call_kernel(added_at, dp.Range(64), y, 0, depends_on=[first])
    assert not first.done
    second.wait()
    assert first.done
    np.testing.assert_array_equal(y.asnumpy(), np.arange(64.0) + 1)


def is_interrupted(call: Callable[[], object], at: int) -> bool:
    """Return whether a call makes more than ``at`` others; Ctrl-C comes at the next one."""
    before = sys.gettrace()

    def trace(frame: Any, event: str, argument: Any) -> None:
        nonlocal at
        at -= 1
        if at < 0:
            sys.settrace(before)
            raise KeyboardInterrupt

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return at < 0


def test_a_launch_that_is_interrupted_anywhere_is_waited_for(
    standin: StandIn, queue: Queue
) -> None:
    x = dp.asarray(np.zeros(32), device=queue)
    dp.call_kernel(added_at, dp.Range(32), x, 0)
    launched = set()
    for moment in itertools.count():
        before = len(standin.launches)
        is_ended = not is_interrupted(lambda: dp.call_kernel(added_at, dp.Range(32), x, 0), moment)
        after = len(standin.launches)
        np.testing.assert_array_equal(x.asnumpy(), np.full(32, after))
        if is_ended:
            break
        launched.add(after - before)
    assert launched == {0, 1}


def test_memory_of_a_running_launch_is_not_given_to_another_queue(
    standin: StandIn, queue: Queue
) -> None:
    other = dp.Device(queue).new_queue().queue
    x = dp.arange(1000.0, device=queue)
    address = x.block.pointer
    dp.call_kernel(added_at, dp.Range(1000), x, 0)
    del x
    y = dp.zeros(1000, device=other)
    assert y.block.pointer != address


def test_arrays_of_two_drivers_are_placed_by_the_same_rules(queue: Queue) -> None:
    x, y = dp.arange(4.0, device=queue), dp.arange(4.0, device="cpu")
    with pytest.raises(dp.ExecutionPlacementError):
        dp.call_kernel(added_at, dp.Range(4), x, y)
    moved = x.to_device(y.device) + y
    np.testing.assert_array_equal(moved.asnumpy(), 2 * np.arange(4.0))


def test_functions_without_a_kernel_go_to_the_library_of_the_driver(queue: Queue) -> None:
    x = dp.asarray(VALUES, device=queue)
    library = libraries.library_of(queue)
    assert library.name == "NumPy"
    called: list[str] = library.called  # type: ignore[attr-defined]
    called.clear()
    np.testing.assert_array_equal((x @ x.T).asnumpy(), VALUES @ VALUES.T)
    np.testing.assert_array_equal(dp.fft.fft(x).asnumpy(), np.fft.fft(VALUES))
    assert called == ["matmul", "fft"]
    with pytest.raises(np.linalg.LinAlgError, match="inv: Singular"):
        dp.linalg.inv(dp.zeros((2, 2), device=queue))
    with pytest.raises(dp.ShapeError, match=r"solve"):
        dp.linalg.solve(dp.eye(3, device=queue), dp.ones((2, 2), device=queue))


def test_a_device_without_a_library_computes_on_the_host_or_refuses(standin: StandIn) -> None:
    standin.traits_changed |= {"library": "", "library_fix": "pip install it"}
    x = dp.asarray(VALUES, device=Queue(standin.found[0]))
    with pytest.warns(dp.FallbackWarning, match=r"fft: .* leave standin:0.*pip install it"):
        np.testing.assert_array_equal(dp.fft.fft(x).asnumpy(), np.fft.fft(VALUES))
    with (
        dp.config.override(fallback="error"),
        pytest.raises(dp.FallbackError, match="pip install it"),
    ):
        dp.linalg.pinv(x)


def test_a_refused_module_names_the_kernel_and_what_the_driver_says(
    standin: StandIn, queue: Queue
) -> None:
    x = dp.zeros(4, device=queue)
    dp.eval(x)  # its kernel is another one
    standin.refuses_modules = True

    @dp.kernel
    def refused(item: dp.Item, x: Any) -> None:
        x[item.get_id(0)] = 41

    with pytest.raises(dp.KernelCompileError, match=r"kernel refused.*the stand-in takes none"):
        dp.call_kernel(refused, dp.Range(4), x)


def test_a_refused_launch_raises_and_the_queue_goes_on(standin: StandIn, queue: Queue) -> None:
    x = dp.arange(32.0, device=queue)
    dp.eval(x)
    standin.refuses_launches = True
    over = r"added_at: .* rejected a launch over \(32,\)"
    with pytest.raises(dp.KernelExecutionError, match=over):
        dp.call_kernel(added_at, dp.Range(32), x, 0)
    local = dp.LocalAccessor(8, dp.float64)
    in_groups = r"turned_in_groups: .* rejected a launch over \(32,\) in groups of \(8,\)"
    with pytest.raises(dp.KernelExecutionError, match=in_groups):
        dp.call_kernel(turned_in_groups, dp.NdRange(32, 8), x, local)
    standin.refuses_launches = False
    dp.call_kernel(added_at, dp.Range(32), x, 0)
    np.testing.assert_array_equal(x.asnumpy(), np.arange(32.0) + 1)


def test_memory_that_is_refused_for_a_result_loses_no_operand(
    standin: StandIn, queue: Queue
) -> None:
    x = dp.arange(1 << 20, device=queue, dtype="float64")
    standin.refuses_memory = 1
    with pytest.raises(dp.MemoryError, match="standin:0"):
        dp.eval(*[x + number for number in range(1, 12)])
    standin.refuses_memory = 1 << 40
    np.testing.assert_array_equal(x[:3].asnumpy(), [0, 1, 2])


def test_a_fault_of_a_kernel_is_raised_where_it_is_waited_for(
    standin: StandIn, queue: Queue
) -> None:
    x = dp.zeros(4, device=queue)
    event = dp.call_kernel(added_at, dp.Range(4), x, 1 << 40)
    with pytest.raises(dp.KernelExecutionError, match=r"added_at.*outside of all arrays"):
        event.wait()


def test_a_device_that_vanishes_is_reported_by_the_next_call(
    standin: StandIn, queue: Queue
) -> None:
    x, y = dp.arange(32.0, device=queue), dp.arange(32.0, device=queue)
    x.asnumpy()
    event = dp.call_kernel(added_at, dp.Range(32), y, 0)
    standin.lost = standin.found
    where = r"kernel added_at \(.*test_standin_kernels.py:\d+.*the device is lost"
    with pytest.raises(dp.KernelExecutionError, match=where):
        event.wait()
    told = event.then(lambda: None).exception()
    assert isinstance(told, dp.KernelExecutionError)
    assert "the device is lost" in str(told)
    for use in (
        lambda: dp.call_kernel(added_at, dp.Range(32), x, 0),
        lambda: dp.eval(x + 1),
        lambda: x.asnumpy(),
    ):
        with pytest.raises(dp.DeviceError, match="standin:0 is lost"):
            use()
    standin.lost = ()
    np.testing.assert_array_equal(x.asnumpy(), np.arange(32.0))
