"""The pool with real USM: reuse while kernels run, sub-devices, second queues, failure and exit."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import textwrap
import threading
from typing import Any

import numpy as np
import pytest

import dparray as dp

# isort: split
import dpctl

MiB = 1 << 20
USM_TYPES = ("device", "shared", "host")


@pytest.fixture(autouse=True)
def clean_pools() -> Any:
    gc.collect()
    dp.memory.release()
    yield
    dp.memory.set_limit(None)
    gc.collect()
    dp.memory.release()


@pytest.fixture
def device() -> Any:
    return dp.Device("cpu")


def in_use(queue: Any) -> int:
    return dp.memory.stats(queue).in_use


# --- blocks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("usm_type", USM_TYPES)
@pytest.mark.parametrize("nbytes", [0, 1, 1000, 300_000, 5 * MiB])
def test_a_block_is_usm_of_its_queue(queue: Any, usm_type: str, nbytes: int) -> None:
    # A separate context, because a part of a former block may begin at any address.
    queue = dpctl.SyclQueue(dpctl.SyclContext(queue.sycl_device), queue.sycl_device)
    block = dp.memory.allocate(queue, usm_type, nbytes)
    assert block.queue == queue == block.memory.sycl_queue
    assert block.usm_type == usm_type == block.memory.get_usm_type()
    assert block.nbytes == block.memory.nbytes >= max(nbytes, 1)
    assert block.pointer == block.memory._pointer
    assert block.pointer % (4096 if nbytes >= MiB else 64) == 0


def test_blocks_of_one_slab_do_not_touch_each_other(queue: Any) -> None:
    blocks = [dp.memory.allocate(queue, "device", 1 + 77 * n) for n in range(60)]
    for value, block in enumerate(blocks):
        block.memory.memset(value)
    for value, block in enumerate(blocks):
        assert set(bytes(block.memory.copy_to_host())) == {value}


def test_a_dropped_block_is_handed_out_again(queue: Any) -> None:
    pointer = dp.memory.allocate(queue, "device", 3 * MiB).pointer
    before = dp.memory.stats(queue)
    assert dp.memory.allocate(queue, "device", 3 * MiB).pointer == pointer
    after = dp.memory.stats(queue)
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 0)


# --- reuse while work is running ------------------------------------------------------------------


def test_patterns_survive_reuse_while_kernels_run(queue: Any) -> None:
    """Temporaries are dropped and their memory is reused long before their work is complete."""
    choose = random.Random(5)
    kept: list[tuple[float, Any]] = []
    for step in range(120):
        n = choose.choice([100, 5_000, 60_000, 400_000])
        x = dp.full(n, float(step), sycl_queue=queue)
        for _ in range(3):
            x = dp.concat([x, x])[:n]  # launched eagerly; the former x is garbage
        if choose.random() < 0.3:
            kept.append((float(step), x))
        if len(kept) > 8:
            value, array = kept.pop(choose.randrange(len(kept)))
            assert np.all(dp.asnumpy(array) == value)
        if choose.random() < 0.05:
            dp.memory.release()
    for value, array in kept:
        assert np.all(dp.asnumpy(array) == value)


def test_patterns_survive_on_several_queues_and_threads(device: Any) -> None:
    places = [device, dp.Device(dpctl.SyclQueue(device.sycl_device))]
    if device.sycl_device.max_compute_units > 1:
        places += device.create_sub_devices(partition=1)[:2]
    failures: list[str] = []

    def work(number: int, place: Any) -> None:
        for step in range(40):
            value = number * 1000.0 + step
            x = dp.full(200_000, value, device=place)
            y = dp.concat([x, x])
            del x
            z = dp.concat([y, y])
            del y
            if not np.all(dp.asnumpy(z) == value):
                failures.append(f"{place}, step {step}")

    threads = [threading.Thread(target=work, args=item) for item in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_memory_taken_over_from_another_queue_is_complete() -> None:
    # A separate context, because otherwise free memory of other tests would be reused.
    cpu = dpctl.SyclDevice("cpu")
    context = dpctl.SyclContext(cpu)
    first, second = dpctl.SyclQueue(context, cpu), dpctl.SyclQueue(context, cpu)
    device = dp.Device(first)
    x = dp.full(MiB, 1.0, dtype=dp.float32, sycl_queue=first)
    y = dp.concat([x, x])
    pointer = x.block.pointer
    del x
    stats = dp.memory.stats(device)
    dp.memory.set_limit(stats.in_use + stats.cached + MiB)
    z = dp.full(MiB, 2.0, dtype=dp.float32, sycl_queue=second)
    assert z.block.pointer == pointer
    assert np.all(dp.asnumpy(y) == 1)
    assert np.all(dp.asnumpy(z) == 2)


def test_exported_memory_outlives_its_array(queue: Any) -> None:
    """The memory object keeps the memory alive: the pool must not reuse it."""
    x = dp.full(MiB, 7.0, dtype=dp.float32, sycl_queue=queue)
    memory = x.block.memory
    before = in_use(queue)
    del x
    others = [dp.full(MiB, 9.0, dtype=dp.float32, sycl_queue=queue) for _ in range(4)]
    for other in others:
        dp.asnumpy(other)
    assert np.all(np.frombuffer(memory.copy_to_host(), np.float32)[:MiB] == 7)
    del others, other, memory
    assert in_use(queue) <= before - 4 * MiB


def test_reductions_keep_nothing_of_the_pool(device: Any) -> None:
    def held() -> int:
        dp.memory.release()
        stats = dp.memory.stats(device)
        return int(stats.in_use + stats.cached)

    before = held()
    x = dp.ones(300_000, dtype=dp.float32, sycl_queue=dpctl.SyclQueue(device.sycl_device))
    assert float((x + 1).sum()) == 600_000
    del x
    assert held() == before


# --- placement ------------------------------------------------------------------------------------


def test_sub_devices_have_pools_of_their_own(device: Any) -> None:
    if device.sycl_device.max_compute_units < 2:
        pytest.skip("a CPU with one compute unit has no sub-devices")
    first, second = device.create_sub_devices(partition=1)[:2]
    # the pools of idle queues are dropped
    kept = dp.memory.allocate(first.sycl_queue, "device", 64)
    pointer = dp.memory.allocate(first.sycl_queue, "device", 4 * MiB).pointer
    block = dp.memory.allocate(second.sycl_queue, "device", 4 * MiB)
    assert block.pointer != pointer
    assert dp.memory.stats(first).cached >= 4 * MiB
    assert dp.memory.release(second) == 0
    assert dp.memory.release(first) >= 4 * MiB
    del kept
    names = [pool.device for pool in dp.memory.stats().pools]
    assert "opencl:cpu:0, sub-device 1 of 2" in names or len(names) > 2


def test_a_second_queue_has_free_lists_of_its_own(device: Any) -> None:
    other = dpctl.SyclQueue(device.sycl_device)
    # the lists of idle queues are dropped
    kept = dp.memory.allocate(device.sycl_queue, "device", 64)
    pointer = dp.memory.allocate(device.sycl_queue, "device", 4 * MiB).pointer
    assert dp.memory.allocate(other, "device", 4 * MiB).pointer != pointer
    assert dp.memory.allocate(device.sycl_queue, "device", 4 * MiB).pointer == pointer
    del kept


@pytest.mark.parametrize(
    "spelling", ["filter string", "Device", "SyclDevice", "SyclQueue", "array"]
)
def test_a_device_is_named_in_every_way(device: Any, spelling: str) -> None:
    x = dp.zeros(1000, device=device)
    named = {
        "filter string": "cpu",
        "Device": device,
        "SyclDevice": device.sycl_device,
        "SyclQueue": device.sycl_queue,
        "array": x.device,
    }[spelling]
    assert dp.memory.stats(named).in_use >= 0
    assert dp.memory.set_limit(1 << 30, named) is None
    assert dp.memory.set_limit(None, named) == 1 << 30
    dp.memory.reset_peak(named)
    assert dp.memory.release(named) >= 0
    with pytest.raises(dp.DeviceError):
        dp.memory.stats("no such device")


# --- too large requests ---------------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [1 << 40, 1 << 62, 1 << 80])
def test_absurd_sizes_raise_immediately(queue: Any, nbytes: int) -> None:
    with pytest.raises(dp.MemoryError, match="largest single allocation") as caught:
        dp.memory.allocate(queue, "device", nbytes)
    assert isinstance(caught.value, MemoryError)
    assert caught.value.requested == nbytes


def allocate_for_ever(queue: Any, nbytes: int, blocks: list[Any]) -> None:
    while True:
        blocks.append(dp.memory.allocate(queue, "device", nbytes))


def test_more_than_the_machine_has_is_an_error_before_it_is_touched(device: Any) -> None:
    """The driver and the operating system grant it, but touching it would kill the process."""
    step = min(1 << 30, device.sycl_device.max_mem_alloc_size)
    blocks: list[Any] = []
    with pytest.raises(dp.MemoryError, match=r"host has|device has"):
        allocate_for_ever(device.sycl_queue, step, blocks)
    assert len(blocks) * step <= device.sycl_device.global_mem_size


def double_for_ever(arrays: list[Any]) -> None:
    while True:
        arrays.append(dp.concat([arrays[0], arrays[-1]]))
        dp.asnumpy(arrays[-1])


def test_nothing_is_lost_when_memory_runs_out(queue: Any) -> None:
    x = dp.arange(100_000, dtype=dp.float64, sycl_queue=queue)
    expected = dp.asnumpy(x).copy()
    stats = dp.memory.stats(queue)
    dp.memory.set_limit(stats.in_use + stats.cached + 8 * MiB)
    arrays = [x]
    with pytest.raises(dp.MemoryError, match=r"dp\.memory\.set_limit"):
        double_for_ever(arrays)
    assert len(arrays) > 2
    for count, array in enumerate(arrays, start=1):
        assert np.array_equal(dp.asnumpy(array), np.tile(expected, count))
    dp.memory.set_limit(None)
    assert np.array_equal(dp.asnumpy(dp.concat([x, x]))[100_000:], expected)


@pytest.mark.parametrize(
    "move",
    [lambda xp, x: xp.roll(x, (3, 5), (0, 1)), lambda xp, x: xp.concatenate([x[5:], x[:5]])],
    ids=["roll", "concatenate"],
)
def test_moved_elements_hold_no_operands_under_a_limit(queue: Any, move: Any) -> None:
    host = np.arange(MiB, dtype=np.float32).reshape(1024, 1024)
    x = dp.asarray(host, sycl_queue=queue)
    x.block  # noqa: B018  # The memory is taken here.
    dp.memory.release()
    stats = dp.memory.stats(queue)
    dp.memory.set_limit(stats.in_use + stats.cached + 5 * MiB)  # For one more array.
    y = move(dp, x)
    del x
    z = dp.full(MiB, 2.0, dtype=dp.float32, sycl_queue=queue)
    z.block  # noqa: B018
    assert np.array_equal(dp.asnumpy(y), move(np, host))
    assert np.all(dp.asnumpy(z) == 2)


# --- the end of the process -----------------------------------------------------------------------


#: From Python 3.12 on, a fork with several threads always warns.
PYTHON = [sys.executable, "-W", "ignore::DeprecationWarning"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending",
    [
        "",
        "cycle = [x]; cycle.append(cycle)",
        "import atexit; atexit.register(lambda: dp.full(10_000, 3.0) + 1)",
        "dp.kept = x; dp.memory.kept = y",
        "import threading; threading.Thread(target=lambda: [y + i for i in range(50)]).start()",
        "m = y.block.memory; del x, y",
        "import os, sys; pid = os.fork(); sys.exit() if pid == 0 else os.waitpid(pid, 0)",
        "sys.exit(0)",
    ],
)
def test_the_process_ends_silently(ending: str) -> None:
    program = f"""
        import sys
        import dparray as dp
        x = dp.full(3_000_000, 1.5)
        for _ in range(5):
            y = dp.concat([x, x])
        dp.memory.stats()
        {ending}
    """
    done = subprocess.run(
        [*PYTHON, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_while_another_thread_uses_the_pool() -> None:
    """The pool is consistent in the child: it allocates until work was submitted, then raises."""
    program = """
        import os, threading
        import dparray as dp
        queue = dp.Device("cpu").sycl_queue
        stop = threading.Event()
        def churn():
            while not stop.is_set():
                dp.memory.allocate(queue, "device", 5000)
                dp.memory.stats()
        def code_of_child():
            pid = os.fork()
            if pid == 0:
                try:
                    dp.memory.allocate(queue, "device", 5000)
                    os._exit(7)
                except dp.ForkError:
                    os._exit(8)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        thread = threading.Thread(target=churn, daemon=True)
        thread.start()
        assert {code_of_child() for _ in range(10)} == {7}
        with dp.config.override(host_tier=False):  # on the device
            assert float((dp.ones(20_000) + 1).sum()) == 40_000
        assert {code_of_child() for _ in range(10)} == {8}
        stop.set()
        thread.join()
    """
    done = subprocess.run(
        [*PYTHON, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
