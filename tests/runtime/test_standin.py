"""Arrays over a driver that is not SYCL's: memory, copies, order and errors, on the stand-in."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._driver import Missing, driver_named, order_of
from dparray._driver.interface import Driver
from dparray._runtime import queues
from dparray.memory import copies
from tests.standin import Queue, StandIn

VALUES = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def queue(standin: StandIn) -> Queue:
    return Queue(standin.found[0])


@pytest.mark.parametrize("name", ["standin", "sycl", "cuda", "host"])
def test_a_driver_has_all_functions_of_the_interface(name: str, standin: StandIn) -> None:
    driver: Any = standin if name == "standin" else driver_named(name)
    if isinstance(driver, Missing):
        pytest.skip(driver.reason)
    members = {*vars(Driver), *Driver.__annotations__}
    assert {each for each in members if not each.startswith("_")} <= set(dir(driver))


def test_a_device_is_found_by_its_name_and_by_its_queue(standin: StandIn, queue: Queue) -> None:
    device = dp.Device("standin:0")
    assert device == dp.Device(queue)
    assert (device.driver, device.device_type, device.name) == ("standin", "gpu", "standin:0")
    assert str(device) == "standin:0, default queue"
    assert device in dp.devices()
    other = device.new_queue()
    assert other != device
    assert re.fullmatch(r"standin:0, queue #\d+", str(other))


def test_names_of_sycl_are_missing(queue: Queue) -> None:
    x = dp.asarray(VALUES, device=queue)
    assert x.queue == queue
    for name in ("sycl_queue", "sycl_device", "sycl_context"):
        assert not hasattr(x, name)
        assert not hasattr(x.device, name)
    with pytest.raises(
        AttributeError, match=r"standin:0 has no SYCL objects; its queue is `.queue`"
    ):
        _ = x.sycl_queue


def test_values_come_back_after_the_work_before_them(standin: StandIn, queue: Queue) -> None:
    x = dp.asarray(VALUES, device=queue)
    assert any(not event.is_done for event in standin.work[queue])  # the copy may still run
    np.testing.assert_array_equal(x.asnumpy(), VALUES)
    assert order_of(queue).is_done()


def test_events_and_states_while_other_memory_is_mapped(queue: Queue) -> None:
    x, mapped = dp.asarray(VALUES, device=queue), dp.zeros(3, device="cpu")
    with mapped.map("rw"):
        assert not x.ready
        x.event.wait()
        assert x.ready


def test_the_host_does_not_touch_device_memory(queue: Queue) -> None:
    x = dp.asarray(VALUES, device=queue)
    assert not copies.is_host_accessible(queue, "device")
    with pytest.raises(dp.HostConversionError, match="device memory"):
        _ = x._block.host_bytes


@pytest.mark.parametrize("usm_type", ["shared", "host"])
def test_the_host_reads_shared_memory_where_it_is(queue: Queue, usm_type: str) -> None:
    x = dp.asarray(VALUES, device=queue, usm_type=usm_type)
    np.testing.assert_array_equal(x.asnumpy(), VALUES)


def test_arrays_of_two_drivers_do_not_mix_and_move(queue: Queue) -> None:
    x, y = dp.asarray(VALUES, device=queue), dp.asarray(VALUES, device="cpu")
    with pytest.raises(dp.ExecutionPlacementError, match=r"(?s)different devices.*to_device"):
        _ = x + y
    there = y.to_device(x.device)
    assert there.queue == queue
    np.testing.assert_array_equal(there.asnumpy(), VALUES)
    back = x.to_device(y.device)
    assert back.queue == y.queue
    np.testing.assert_array_equal(back.asnumpy(), VALUES)


def test_a_released_block_is_used_again_on_its_queue(queue: Queue) -> None:
    x = dp.asarray(VALUES, device=queue)
    address = x._block.pointer
    del x
    y = dp.asarray(VALUES + 1, device=queue)
    assert y._block.pointer == address
    np.testing.assert_array_equal(y.asnumpy(), VALUES + 1)


def test_memory_that_is_refused_raises_and_loses_nothing(standin: StandIn, queue: Queue) -> None:
    x = dp.asarray(VALUES, device=queue)
    standin.refuses_memory = 1
    with pytest.raises(dp.MemoryError, match="standin:0"):
        dp.asarray(np.zeros(1 << 22), device=queue)
    np.testing.assert_array_equal(x.asnumpy(), VALUES)


def test_a_failed_copy_is_raised_where_it_is_waited_for(standin: StandIn, queue: Queue) -> None:
    x = dp.asarray(VALUES, device=queue)
    standin.work[queue][-1].error = RuntimeError("the device is gone")
    with pytest.raises(Exception, match="the device is gone"):
        queues.wait(queue)
    standin.work[queue][-1].error = None
    del x


def test_sub_devices_of_the_driver(queue: Queue) -> None:
    first, second = dp.Device(queue).create_sub_devices(1)
    x = dp.asarray(VALUES, device=first)
    moved: Any = x.to_device(second)
    np.testing.assert_array_equal(moved.asnumpy(), VALUES)
    assert first.is_sub_device
