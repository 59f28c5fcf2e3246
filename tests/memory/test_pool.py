"""The pool's bookkeeping on simulated queues and memory, without any device."""

from __future__ import annotations

import builtins
import gc
import random
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from dparray import memory
from dparray.exceptions import MemoryError, ShapeError, UnsupportedDeviceError, UsmTypeError
from dparray.memory import pool as _pool
from dparray.memory.driver import SLAB
from dparray.memory.pool import LARGE, MAX_FREE_LISTS, MAX_RATIO, Pools
from dparray.memory.segments import Block, Pool
from tests.support import examples, observed

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30


@dataclass(eq=False)
class Queue:
    """Run nothing until it is waited for."""

    name: str = "queue"
    device: str = "device 0"
    unfinished: list[range] = field(default_factory=list)

    def submit(self, block: Block) -> None:
        """Submit work that uses the block and completes when the queue is waited for."""
        self.unfinished.append(range(block.pointer, block.pointer + block.nbytes))


class Memory:
    """Imitate a ``dpctl.memory`` object: an allocation, or a part that keeps the whole alive."""

    def __init__(self, driver: Driver, pointer: int, nbytes: int, whole: Any, queue: Any) -> None:
        self.driver = driver
        self.pointer = pointer
        self.nbytes = nbytes
        self.whole = whole
        self.queue = queue

    def __del__(self) -> None:
        if self.whole is None:
            self.driver.free(self)


class Driver:
    """Simulate memory by arithmetic; record each access that would be an error on a device."""

    def __init__(self, largest: int = 4 * GiB, total: int | None = 8 * GiB) -> None:
        self.largest = largest
        self.total = total
        self.left: int | None = None
        self.refuses = 0  # the number of the next allocations that fail
        self.unsupported: set[str] = set()
        self.held: dict[int, int] = {}
        self.allocations: list[int] = []
        self.waits: list[Queue] = []
        self.faults: list[str] = []
        self.queues: list[Queue] = []
        self.on_wait = lambda queue: None
        self.on_allocate = lambda: None
        self._next = 1 << 32

    def queue(self, name: str = "queue", device: str = "device 0") -> Queue:
        self.queues.append(Queue(name, device))
        return self.queues[-1]

    def queue_of(self, device: Any) -> Queue:
        return device if isinstance(device, Queue) else self.queues[device]

    def context_and_device(self, queue: Queue) -> str:
        return queue.device

    def describe(self, queue: Queue) -> tuple[str, str]:
        return queue.device, f"{queue.device}, {queue.name}"

    def supports(self, queue: Queue, usm_type: str) -> bool:
        return usm_type not in self.unsupported

    def capacity(self, queue: Queue) -> tuple[int, int | None]:
        return self.largest, self.total

    def available(self, queue: Queue, usm_type: str, held: int) -> int | None:
        return None if self.left is None else self.left - held

    def allocate(self, queue: Queue, usm_type: str, nbytes: int) -> Memory:
        if self.refuses:
            self.refuses -= 1
            raise builtins.MemoryError("USM allocation failed")
        self.on_allocate()
        pointer, self._next = self._next, self._next + -(-nbytes // 4096) * 4096 + 4096
        self.held[pointer] = nbytes
        self.allocations.append(nbytes)
        return Memory(self, pointer, nbytes, None, queue)

    def pointer(self, memory: Memory, queue: Queue) -> int:
        return memory.pointer

    def part(self, memory: Memory, pointer: int, nbytes: int, queue: Queue) -> Memory:
        if not memory.pointer <= pointer <= pointer + nbytes <= memory.pointer + memory.nbytes:
            self.faults.append("a part outside its allocation")
        for other in self.queues:
            if other is not queue and any(
                work.start < pointer + nbytes and pointer < work.stop for work in other.unfinished
            ):
                self.faults.append(f"{queue.name} was given what {other.name} still works on")
        return Memory(self, pointer, nbytes, memory, queue)

    def is_idle(self, queue: Queue) -> bool:
        return not queue.unfinished

    def wait(self, queue: Queue) -> None:
        self.waits.append(queue)
        self.on_wait(queue)
        queue.unfinished.clear()

    def free(self, memory: Memory) -> None:
        del self.held[memory.pointer]
        end = memory.pointer + memory.nbytes
        for queue in self.queues:
            if any(work.start < end and memory.pointer < work.stop for work in queue.unfinished):
                self.faults.append(f"memory was freed while {queue.name} worked on it")


@pytest.fixture
def driver() -> Any:
    driver = Driver()
    yield driver
    assert driver.faults == []


@pytest.fixture
def pools(driver: Driver) -> Pools:
    return Pools(driver)


@pytest.fixture
def queue(driver: Driver) -> Queue:
    return driver.queue()


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [
        *((0, 64), (1, 64), (64, 64), (65, 128), (512, 512), (513, 576)),
        *((1000, 1024), (1024, 1024), (1025, 1152), (4097, 4608)),
        *((MiB, MiB), (MiB + 1, MiB + MiB // 8), (2 * MiB - 1, 2 * MiB)),
    ],
)
def test_a_size_class_has_eight_steps_for_each_power_of_two(
    pools: Pools, queue: Queue, nbytes: int, size: int
) -> None:
    assert pools.allocate(queue, "device", nbytes).nbytes == size


def test_less_than_an_eighth_is_wasted_above_512_bytes(pools: Pools, queue: Queue) -> None:
    for nbytes in [random.Random(1).randrange(513, 1 << 30) for _ in range(300)]:
        block = pools.allocate(queue, "device", nbytes)
        assert nbytes <= block.nbytes < nbytes * 1.125
        assert block.nbytes == block.memory.nbytes
        assert block.pointer == block.memory.pointer
        assert block.pointer % (4096 if nbytes >= LARGE else 64) == 0
        del block
        pools.release()


def test_an_index_is_a_size(pools: Pools, queue: Queue) -> None:
    class Index:
        def __index__(self) -> int:
            return 100

    assert pools.allocate(queue, "device", Index()).nbytes == 128  # type: ignore[arg-type]


@pytest.mark.parametrize("nbytes", [-1, 1.0, "8", None])
def test_invalid_sizes_raise(pools: Pools, queue: Queue, nbytes: Any) -> None:
    with pytest.raises(ShapeError, match=f"allocate: the number of bytes .*{nbytes}"):
        pools.allocate(queue, "device", nbytes)
    if nbytes is not None:
        with pytest.raises(ShapeError, match="set_limit: the number of bytes"):
            pools.set_limit(nbytes)


# --- reuse ----------------------------------------------------------------------------------------


def test_a_dropped_block_is_reused_on_its_queue_without_waiting(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    block = pools.allocate(queue, "device", 8 * MiB)
    pointer, memory = block.pointer, id(block.memory)
    queue.submit(block)
    del block
    again = pools.allocate(queue, "device", 8 * MiB - 5)
    assert (again.pointer, id(again.memory)) == (pointer, memory)
    assert driver.waits == []
    assert (pools.stats().hits, pools.stats().misses) == (1, 1)


def test_another_queue_gets_fresh_memory(driver: Driver, pools: Pools, queue: Queue) -> None:
    block = pools.allocate(queue, "device", 8 * MiB)
    queue.submit(block)
    pointer = block.pointer
    del block
    assert pools.allocate(driver.queue(), "device", 8 * MiB).pointer != pointer
    assert driver.waits == []


@pytest.mark.parametrize("other", ["shared", "host"])
def test_usm_types_do_not_mix(pools: Pools, queue: Queue, other: str) -> None:
    pointer = pools.allocate(queue, "device", 8 * MiB).pointer
    block = pools.allocate(queue, other, 8 * MiB)
    assert block.pointer != pointer
    assert (block.usm_type, block.queue) == (other, queue)


def test_memory_that_somebody_holds_is_not_reused(pools: Pools, queue: Queue) -> None:
    block = pools.allocate(queue, "device", 8 * MiB)
    pointer, memory = block.pointer, block.memory
    del block
    for _ in range(3):
        assert pools.allocate(queue, "device", 8 * MiB).pointer != pointer
    assert pools.stats().in_use == 8 * MiB
    assert pools.release() == 8 * MiB  # of the other block, not of this one
    del memory
    assert pools.stats().in_use == 0
    assert pools.allocate(queue, "device", 8 * MiB).pointer == pointer


def test_memory_that_submitted_work_holds_is_waited_for_once(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    """Host tasks of dpnp.tensor do this; waiting is cheaper than touching new memory."""
    block = pools.allocate(queue, "device", 8 * MiB)
    pointer, held = block.pointer, [block.memory]
    driver.on_wait = lambda queue: held.clear()
    del block
    again = pools.allocate(queue, "device", 8 * MiB)
    assert again.pointer == pointer
    assert driver.waits == [queue]

    driver.on_wait = lambda queue: None
    kept = again.memory
    del again
    others = [pools.allocate(queue, "device", 8 * MiB) for _ in range(3)]
    assert driver.waits == [queue, queue]
    assert kept.pointer == pointer
    assert len({pointer, *(block.pointer for block in others)}) == 4


def test_small_memory_that_work_holds_is_not_waited_for(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    block = pools.allocate(queue, "device", 100)
    memory = block.memory
    del block
    assert pools.allocate(queue, "device", 100).pointer != memory.pointer
    assert driver.waits == []


def test_submitted_work_does_not_make_the_pool_grow(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    """The pool waits for small memory held by work when a slab is full, not before."""
    held: list[Any] = []
    driver.on_wait = lambda queue: held.clear()
    for _ in range(3 * SLAB // 1024 + 1):
        held.append(pools.allocate(queue, "device", 1024).memory)
    assert driver.allocations == [SLAB]
    assert driver.waits == [queue] * 3


def test_only_work_that_holds_suitable_memory_is_waited_for(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    other = driver.queue("other")
    held = [
        pools.allocate(queue, "device", 4 * MiB).memory,
        pools.allocate(other, "device", 8 * MiB).memory,
        pools.allocate(queue, "shared", 8 * MiB).memory,
    ]
    pools.allocate(queue, "device", 8 * MiB)
    assert driver.waits == []
    assert len(held) == 3


# --- splitting and joining ------------------------------------------------------------------------


def test_small_blocks_share_a_slab(driver: Driver, pools: Pools, queue: Queue) -> None:
    blocks = [pools.allocate(queue, "device", 1000) for _ in range(SLAB // 1024)]
    assert driver.allocations == [SLAB]
    blocks.append(pools.allocate(queue, "device", 1000))
    assert driver.allocations == [SLAB, SLAB]
    del blocks
    assert pools.release() == 2 * SLAB
    assert driver.held == {}


def test_a_larger_free_block_is_split(driver: Driver, pools: Pools, queue: Queue) -> None:
    pools.allocate(queue, "device", 64 * MiB)
    parts = [pools.allocate(queue, "device", 16 * MiB) for _ in range(4)]
    assert driver.allocations == [64 * MiB]
    assert sorted(part.pointer - parts[0].pointer for part in parts) == [
        n * 16 * MiB for n in range(4)
    ]
    assert pools.stats().cached == 0


def test_the_closest_fit_is_split(driver: Driver, pools: Pools, queue: Queue) -> None:
    blocks = {n: pools.allocate(queue, "device", n * MiB) for n in (64, 24, 40)}
    pointer = blocks[24].pointer
    blocks.clear()
    assert pools.allocate(queue, "device", 20 * MiB).pointer == pointer


def test_a_small_request_does_not_pin_a_large_block(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    large = 64 * MiB
    pointer = pools.allocate(queue, "device", large).pointer
    small = pools.allocate(queue, "device", large // MAX_RATIO - MiB)
    assert pools.allocate(queue, "device", large).pointer == pointer
    fitting = pools.allocate(queue, "device", large // MAX_RATIO)
    assert fitting.pointer == pointer
    assert small.pointer != pointer


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
def test_free_neighbors_are_joined_when_a_request_needs_it(
    driver: Driver, pools: Pools, queue: Queue, order: list[int]
) -> None:
    pools.allocate(queue, "device", 64 * MiB)
    parts = {n: pools.allocate(queue, "device", 16 * MiB) for n in range(4)}
    for n in order:
        del parts[n]
    whole = pools.allocate(queue, "device", 64 * MiB)
    assert driver.allocations == [64 * MiB]
    assert whole.memory.nbytes == 64 * MiB


def test_a_block_in_use_is_never_joined(driver: Driver, pools: Pools, queue: Queue) -> None:
    pools.allocate(queue, "device", 64 * MiB)
    parts = [pools.allocate(queue, "device", 16 * MiB) for _ in range(4)]
    del parts[0], parts[1:]
    pools.allocate(queue, "device", 32 * MiB)
    pools.allocate(queue, "device", 48 * MiB)
    assert driver.allocations == [64 * MiB, 48 * MiB]
    assert pools.release() == 48 * MiB


def test_split_blocks_stay_split_while_they_are_requested(pools: Pools, queue: Queue) -> None:
    pools.allocate(queue, "device", 64 * MiB)
    sizes = [9 * MiB, 10 * MiB, 11 * MiB]
    first = [pools.allocate(queue, "device", size) for size in sizes]
    memories = [id(block.memory) for block in first]
    del first
    again = [pools.allocate(queue, "device", size) for size in sizes]
    assert [id(block.memory) for block in again] == memories


# --- limits and release ---------------------------------------------------------------------------


def test_release_waits_for_the_queues_it_frees_from(driver: Driver, pools: Pools) -> None:
    busy, idle, empty = driver.queue("busy"), driver.queue("idle"), driver.queue("empty")
    block = pools.allocate(busy, "device", MiB // 2)
    busy.submit(block)
    block = pools.allocate(busy, "device", MiB // 2)
    busy.submit(block)
    del block
    pools.allocate(idle, "shared", 2 * MiB)
    kept = pools.allocate(empty, "device", 4 * MiB)
    assert pools.release() == 3 * MiB
    assert sorted(queue.name for queue in driver.waits) == ["busy", "idle"]
    assert driver.held == {kept.pointer: 4 * MiB}
    assert pools.release() == 0


def test_release_of_one_device_leaves_the_others(driver: Driver, pools: Pools) -> None:
    first, second = driver.queue(device="device 0"), driver.queue(device="device 1")
    for queue in (first, second):
        pools.allocate(queue, "device", MiB)
    assert pools.release(second) == MiB
    assert pools.stats(first).cached == MiB
    assert pools.stats(second).cached == 0


def test_a_limit_bounds_the_memory_of_all_usm_types_together(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    assert pools.set_limit(32 * MiB) is None
    blocks = [
        pools.allocate(queue, usm_type, 10 * MiB) for usm_type in ("device", "shared", "host")
    ]
    with pytest.raises(MemoryError, match=r"the limit for this device is 32\.0 MiB"):
        pools.allocate(queue, "device", 10 * MiB)
    del blocks[0]
    pools.allocate(queue, "host", 10 * MiB)
    assert sum(driver.held.values()) <= 32 * MiB
    assert pools.set_limit(None) == 32 * MiB
    assert pools.allocate(queue, "device", 60 * MiB).nbytes == 60 * MiB


def test_a_device_may_have_a_limit_of_its_own(driver: Driver, pools: Pools) -> None:
    first, second = driver.queue(device="device 0"), driver.queue(device="device 1")
    pools.set_limit(10 * MiB)
    assert pools.set_limit(50 * MiB, second) is None
    with pytest.raises(MemoryError, match="limit"):
        pools.allocate(first, "device", 20 * MiB)
    assert pools.allocate(second, "device", 20 * MiB).nbytes == 20 * MiB
    assert (pools.stats(first).limit, pools.stats(second).limit) == (10 * MiB, 50 * MiB)
    assert pools.set_limit(None, second) == 50 * MiB
    with pytest.raises(MemoryError, match="limit"):
        pools.allocate(second, "device", 24 * MiB)


def test_a_lower_limit_frees_cached_memory_immediately(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    blocks = [pools.allocate(queue, "device", n * MiB) for n in (4, 8, 16)]
    del blocks[1:]
    pools.set_limit(13 * MiB)
    assert sorted(driver.held.values()) == [4 * MiB, 8 * MiB]
    pools.set_limit(1)
    assert sorted(driver.held.values()) == [4 * MiB]
    assert blocks[0].nbytes == 4 * MiB


def test_all_of_the_limit_can_be_used(driver: Driver, pools: Pools, queue: Queue) -> None:
    """This holds even if the size class of the request is above the limit."""
    pools.set_limit(100_000_000)
    for _ in range(3):
        block = pools.allocate(queue, "device", 100_000_000)
        assert block.nbytes == 100_000_000
        assert driver.allocations == [100_000_000]
        del block
    with pytest.raises(MemoryError):
        pools.allocate(queue, "device", 100_000_001)


def test_small_blocks_do_without_a_slab_below_a_small_limit(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    pools.set_limit(4096)
    blocks = [pools.allocate(queue, "device", 1024) for _ in range(4)]
    assert driver.allocations == [1024] * 4
    with pytest.raises(MemoryError):
        pools.allocate(queue, "device", 1)
    assert len(blocks) == 4


def test_at_the_limit_another_queues_memory_is_taken_over_once_its_work_is_done(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    block = pools.allocate(queue, "device", 24 * MiB)
    queue.submit(block)
    pointer = block.pointer
    del block
    pools.set_limit(32 * MiB)
    other = driver.queue("other")
    taken = pools.allocate(other, "device", 16 * MiB)
    assert taken.pointer == pointer
    assert (taken.queue, taken.memory.queue) == (other, other)
    assert driver.waits == [queue]
    assert driver.allocations == [24 * MiB]
    del taken
    assert pools.allocate(other, "device", 24 * MiB).pointer == pointer  # all of it was taken over


def test_at_the_limit_no_more_is_freed_than_needed(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    blocks = [pools.allocate(queue, "shared", n * MiB) for n in (4, 8, 16)]
    del blocks
    pools.set_limit(30 * MiB)
    block = pools.allocate(queue, "device", 8 * MiB)
    assert sorted(driver.held.values()) == [4 * MiB, 8 * MiB, 16 * MiB]
    assert block.usm_type == "device"


def test_a_hopeless_request_keeps_the_cache(driver: Driver, pools: Pools, queue: Queue) -> None:
    kept = pools.allocate(queue, "device", 16 * MiB)
    pools.allocate(queue, "device", 8 * MiB)
    pools.set_limit(32 * MiB)
    for nbytes in (24 * MiB, 5 * GiB, 1 << 70):
        with pytest.raises(MemoryError):
            pools.allocate(queue, "device", nbytes)
    assert sorted(driver.held.values()) == [8 * MiB, 16 * MiB]
    assert kept.nbytes == 16 * MiB


def test_more_than_the_device_can_allocate_keeps_the_cache(driver: Driver, queue: Queue) -> None:
    driver.total = None
    pools = Pools(driver)
    pools.allocate(queue, "device", 8 * MiB)
    with pytest.raises(MemoryError, match="largest single allocation"):
        pools.allocate(queue, "device", 5 * GiB)
    assert list(driver.held.values()) == [8 * MiB]


def test_a_refusal_of_the_driver_releases_and_tries_again(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    other = driver.queue()
    pools.allocate(other, "host", 8 * MiB)
    pools.allocate(queue, "device", 2 * MiB)
    driver.refuses = 1
    block = pools.allocate(queue, "device", 16 * MiB)
    assert driver.held == {block.pointer: 16 * MiB}


def test_arrays_in_reference_cycles_are_collected_before_giving_up(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    pools.set_limit(16 * MiB)
    cycle: dict[str, Any] = {"block": pools.allocate(queue, "device", 16 * MiB)}
    cycle["itself"] = cycle
    gc.disable()
    try:
        del cycle
        assert pools.allocate(queue, "shared", 16 * MiB).nbytes == 16 * MiB
    finally:
        gc.enable()


def test_the_error_states_the_request_and_the_choices(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    blocks = [pools.allocate(queue, "device", 12 * MiB), pools.allocate(queue, "device", 2 * MiB)]
    del blocks[1]
    pools.set_limit(20 * MiB)
    with pytest.raises(MemoryError) as caught:
        pools.allocate(queue, "shared", 10_000_000)
    error = caught.value
    assert isinstance(error, builtins.MemoryError)
    assert (error.requested, error.limit, error.device) == (10_000_000, 20 * MiB, "device 0")
    assert (error.in_use, error.cached) == (12 * MiB, 2 * MiB)
    for part in (
        "9.5 MiB of shared USM on device 0, queue are not available",
        "the limit for this device is 20.0 MiB",
        "12.0 MiB in use, 2.0 MiB cached, limit 20.0 MiB",
        "dp.memory.release()",
        "dp.memory.set_limit(...)",
    ):
        assert part in str(error)


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("largest", GiB, r"the largest single allocation of the device is 1\.0 GiB"),
        ("total", GiB, r"the device has 1\.0 GiB"),
        ("left", GiB, r"the host has 1\.0 GiB left"),
        ("refuses", 10, "the driver rejected the request"),
    ],
)
def test_impossible_requests_raise_with_the_reason(
    driver: Driver, setting: str, value: int, reason: str
) -> None:
    setattr(driver, setting, value)
    pools = Pools(driver)
    with pytest.raises(MemoryError, match=reason) as caught:
        pools.allocate(driver.queue(), "device", 2 * GiB)
    assert driver.allocations == []
    assert "set_limit" not in str(caught.value)  # there is no limit to raise
    driver.refuses = 0
    assert pools.allocate(driver.queues[0], "device", MiB).nbytes == MiB


def test_the_pools_memory_counts_against_the_host(driver: Driver) -> None:
    driver.left = GiB
    pools = Pools(driver)
    first = pools.allocate(driver.queue(device="device 0"), "device", 600 * MiB)
    with pytest.raises(MemoryError, match="the host has"):
        pools.allocate(driver.queue(device="device 1"), "device", 600 * MiB)
    assert first.nbytes >= 600 * MiB


def test_an_unknown_usm_type_is_refused(pools: Pools, queue: Queue) -> None:
    with pytest.raises(UsmTypeError, match=r"unknown USM type 'managed'.*'device', 'shared'"):
        pools.allocate(queue, "managed", 8)


def test_a_device_without_that_usm_is_refused(driver: Driver, pools: Pools, queue: Queue) -> None:
    driver.unsupported = {"shared"}
    with pytest.raises(UnsupportedDeviceError, match=r"device 0 .*usm_shared_allocations"):
        pools.allocate(queue, "shared", 8)
    assert pools.allocate(queue, "device", 8).nbytes == 64


def test_dead_queues_do_not_add_up(driver: Driver, pools: Pools) -> None:
    living = driver.queue("living")
    block = pools.allocate(living, "device", MiB)
    for number in range(10 * MAX_FREE_LISTS):
        pools.allocate(driver.queue(device=f"device {number % 7}"), "device", MiB)
    assert sum(pool.queues for pool in pools.stats().pools) <= MAX_FREE_LISTS
    assert sum(driver.held.values()) <= MAX_FREE_LISTS * MiB
    assert block.pointer in driver.held
    assert pools.stats(living).in_use == MiB


def test_many_queues_wait_for_no_work(driver: Driver, pools: Pools) -> None:
    busy = driver.queue("busy")
    block = pools.allocate(busy, "device", MiB)
    busy.submit(block)
    del block
    for number in range(3 * MAX_FREE_LISTS):
        pools.allocate(driver.queue(device=f"device {number % 7}"), "device", MiB)
    assert busy not in driver.waits
    assert pools.stats(busy).in_use == 0


def test_contexts_of_dead_queues_do_not_add_up(driver: Driver, pools: Pools) -> None:
    for number in range(3 * MAX_FREE_LISTS):
        pools.allocate(driver.queue(device=f"sub-device {number}"), "device", MiB)
    assert len(pools.stats().pools) <= MAX_FREE_LISTS


def test_the_limit_of_an_idle_device_is_not_forgotten(driver: Driver, pools: Pools) -> None:
    first = driver.queue(device="first")
    pools.set_limit(MiB, first)
    for number in range(2 * MAX_FREE_LISTS):
        pools.allocate(driver.queue(device=f"sub-device {number}"), "device", MiB)
    with pytest.raises(MemoryError, match=r"limit for this device is 1\.0 MiB"):
        pools.allocate(first, "device", 2 * MiB)


# --- statistics -----------------------------------------------------------------------------------


def test_statistics_count(pools: Pools, queue: Queue) -> None:
    block = pools.allocate(queue, "device", 4 * MiB)
    block = pools.allocate(queue, "device", 8 * MiB)
    block = pools.allocate(queue, "shared", MiB)
    stats = pools.stats()
    assert (stats.in_use, stats.cached, stats.hits, stats.misses) == (MiB, 12 * MiB, 0, 3)
    by_type = {pool.usm_type: pool for pool in stats.pools}
    assert (by_type["device"].peak, by_type["shared"].peak) == (12 * MiB, MiB)
    assert stats.peak == 13 * MiB
    pools.reset_peak()
    assert pools.stats().peak == MiB == block.nbytes


def test_statistics_print_as_a_table(pools: Pools, queue: Queue) -> None:
    block = pools.allocate(queue, "device", 4 * MiB)
    lines = str(pools.stats()).splitlines()
    assert lines[0].split() == ["pool", "in", "use", "cached", "peak", "hits", "misses"]
    assert lines[1].split("  ", 1)[0] == "device 0, device"
    assert "4.0 MiB" in lines[1]
    assert lines[-1] == "limit: none"
    pools.allocate(queue, "host", 2048)
    pools.set_limit(GiB)
    lines = str(pools.stats()).splitlines()
    assert lines[3].startswith("total ")
    assert lines[-1] == "limit: 1.0 GiB"
    assert block.nbytes == 4 * MiB


def test_statistics_of_an_unused_device_are_zero(driver: Driver, pools: Pools) -> None:
    stats = pools.stats(driver.queue())
    assert (stats.in_use, stats.cached, stats.pools) == (0, 0, ())


def test_allocations_are_reported_to_subscribers(pools: Pools, queue: Queue) -> None:
    names = ("queue", "usm_type", "nbytes", "asked", "in_use", "hit")
    seen: list[tuple[str, dict[str, Any]]] = []
    with observed(lambda event, **values: seen.append((event, values))):
        for _ in range(2):
            pools.allocate(queue, "device", 1000)
    pools.allocate(queue, "device", 1000)
    told = [(event, {name: values[name] for name in names}) for event, values in seen]
    values = {"queue": queue, "usm_type": "device", "nbytes": 1024, "asked": 1000, "in_use": 1024}
    assert told == [("allocate", values | {"hit": False}), ("allocate", values | {"hit": True})]


# --- threads and the collector --------------------------------------------------------------------


def test_threads_share_the_pools(driver: Driver, pools: Pools) -> None:
    queues = [driver.queue(), driver.queue()]
    owned: dict[int, int] = {}
    errors: list[str] = []

    def work(seed: int) -> None:
        choose = random.Random(seed)
        blocks: list[Block] = []
        for _ in range(1500):
            if blocks and choose.random() < 0.5:
                block = blocks.pop(choose.randrange(len(blocks)))
                if owned.pop(block.pointer) != seed:
                    errors.append(f"{block} had two owners")
                del block
            else:
                block = pools.allocate(choose.choice(queues), "device", choose.randrange(1 << 16))
                if owned.setdefault(block.pointer, seed) != seed:
                    errors.append(f"{block} was handed out twice")
                blocks.append(block)
                del block
            if choose.random() < 0.01:
                pools.release()
        for block in blocks:
            owned.pop(block.pointer)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert pools.stats().in_use == 0
    pools.release()
    assert driver.held == {}


def test_an_interrupt_at_any_instruction_leaves_the_bookkeeping_right() -> None:
    of_the_pool = {Pools.allocate.__code__, Pool.collect.__code__}
    of_the_pool.add(Block.__init__.__code__)
    left, interrupted, lost = 0, 0, 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code not in of_the_pool:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    for instruction in range(1, 10_000):
        driver = Driver()
        pools, queue = Pools(driver), driver.queue()
        # it is dropped, and comes back during the interrupted call
        pools.allocate(queue, "device", MiB)
        left, before = instruction, sys.gettrace()
        sys.settrace(trace)
        try:
            pools.allocate(queue, "device", MiB)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(before)
        if left > 0:
            break
        assert pools.stats().in_use in (0, MiB)
        blocks = [pools.allocate(queue, "device", MiB) for _ in range(3)]
        assert len({block.pointer for block in blocks}) == 3
        del blocks
        pools.release()
        lost += len(driver.held) > 0
    assert interrupted > 50
    # lost between two instructions, the first of which removes a segment from its list
    assert lost <= 4


@pytest.mark.parametrize("asked", ["release", "take over", "give back"])
def test_an_interrupted_wait_frees_no_memory_that_work_uses(
    driver: Driver, pools: Pools, queue: Queue, asked: str
) -> None:
    """Drivers wait for its work when they free memory, where Ctrl-C does not end the wait."""
    queue.submit(pools.allocate(queue, "device", 24 * MiB))
    pools.set_limit(32 * MiB)
    held, other = dict(driver.held), driver.queue("other")
    calls = {
        "release": pools.release,
        "take over": lambda: pools.allocate(other, "device", 24 * MiB),
        "give back": lambda: pools.allocate(other, "device", 30 * MiB),
    }

    def interrupted(queue: Queue) -> None:
        raise KeyboardInterrupt

    driver.on_wait = interrupted
    with pytest.raises(KeyboardInterrupt):
        calls[asked]()
    driver.on_wait = lambda queue: None
    assert driver.held == held
    assert pools.allocate(queue, "device", 24 * MiB).pointer in held


@pytest.mark.parametrize("moment", ["on_allocate", "on_wait"])
def test_the_collector_may_run_while_the_pool_is_locked(
    driver: Driver, pools: Pools, queue: Queue, moment: str
) -> None:
    """Blocks are dropped during a collection, and its finalizers use the pool."""
    finalised: list[int] = []

    class Finaliser:
        def __init__(self, block: Block) -> None:
            self.block = block
            self.itself = self

        def __del__(self) -> None:
            finalised.append(pools.allocate(queue, "device", 3 * MiB).nbytes)

    def collect(*arguments: Any) -> None:
        # In a separate thread, a non-reentrant lock would fail the test instead of hanging it.
        setattr(driver, moment, lambda *arguments: None)
        gc.collect()

    kept = pools.allocate(queue, "device", MiB)
    Finaliser(pools.allocate(queue, "device", 5 * MiB))
    pools.allocate(queue, "device", 2 * MiB)
    setattr(driver, moment, collect)
    thread = threading.Thread(
        target=lambda: (pools.release(), pools.allocate(queue, "device", 64 * MiB)), daemon=True
    )
    thread.start()
    thread.join(timeout=120)
    assert finalised == [3 * MiB]
    assert pools.stats().in_use == MiB == kept.nbytes


def test_the_collector_may_run_at_any_allocation_of_an_object(
    driver: Driver, pools: Pools, queue: Queue
) -> None:
    """Python collects garbage when it creates an object, so at any point of the pool's code."""
    choose = random.Random(11)
    blocks: dict[int, Block] = {}
    errors: list[str] = []

    def use_the_pool() -> None:
        block = pools.allocate(queue, "device", choose.choice([MiB, 2 * MiB, 3 * MiB, 9 * MiB]))
        if block.pointer in blocks:
            errors.append(f"{block} was handed out twice")
        if choose.random() < 0.5:
            blocks[block.pointer] = block
        if len(blocks) > 10:
            blocks.pop(choose.choice(list(blocks)), None)  # the collector may run in between

    class Finaliser:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            use_the_pool()

    thresholds = gc.get_threshold()
    gc.set_threshold(3)
    try:
        for step in range(3000):
            Finaliser()
            use_the_pool()
            if step % 50 == 0:
                pools.release()
            if step % 20 == 0:
                pools.set_limit(None if step % 40 else 256 * MiB)
    finally:
        gc.set_threshold(*thresholds)
        gc.collect()
    assert errors == []
    assert pools.stats().in_use == sum(block.nbytes for block in blocks.values())
    blocks.clear()
    pools.release()
    assert driver.held == {}


# --- arbitrary orders of events -------------------------------------------------------------------

SIZES = st.one_of(
    st.integers(0, 4096),
    st.integers(0, 4 * SLAB),
    st.sampled_from([LARGE, SLAB, 8 * SLAB, 16 * SLAB, 9 * MiB]),
)


class PoolMachine(RuleBasedStateMachine):
    """Allocations, drops, work, releases and limits in any order, checked by bookkeeping."""

    blocks = Bundle("blocks")
    held_memory = Bundle("held_memory")

    @initialize()
    def start(self) -> None:
        self.driver = Driver(largest=24 * MiB, total=64 * MiB)
        self.pools = Pools(self.driver)
        self.queues = [
            self.driver.queue("A"),
            self.driver.queue("B"),
            self.driver.queue("C", device="device 1"),
        ]
        self.live: dict[int, tuple[int, Queue, str]] = {}  # pointer: size, queue, USM type
        self.exports: dict[int, int] = {}  # pointer: the number of owners of the memory object
        self.dropped: set[int] = set()  # blocks that were dropped while their memory was held
        self.peaks: dict[tuple[str, str], int] = {}
        self.limit: int | None = None
        self.excess = 0  # memory pinned above the limit when the limit was set
        self.count = 0

    def in_use(self, device: str, usm_type: str | None = None) -> int:
        return sum(
            size
            for size, queue, usm in self.live.values()
            if queue.device == device and usm_type in (None, usm)
        )

    @rule(target=blocks, queue=st.integers(0, 2), usm=st.sampled_from(["device", "host"]), n=SIZES)
    def allocate(self, queue: int, usm: str, n: int) -> Any:
        where = self.queues[queue]
        try:
            block = self.pools.allocate(where, usm, n)
        except MemoryError as error:
            self.check_refusal(error, where.device, n)
            return multiple()
        assert n <= block.nbytes < max(n * 1.125, n + 65)
        assert block.pointer % 64 == 0
        assert block.memory.pointer == block.pointer
        assert block.memory.nbytes == block.nbytes
        assert block.memory.queue is where is block.queue
        assert block.usm_type == usm
        for pointer, (size, _, _) in self.live.items():
            assert block.pointer + block.nbytes <= pointer or pointer + size <= block.pointer
        self.live[block.pointer] = block.nbytes, where, usm
        key = where.device, usm
        self.peaks[key] = max(self.peaks.get(key, 0), self.in_use(*key))
        self.count += 1
        return [block]

    def check_refusal(self, error: MemoryError, device: str, nbytes: int) -> None:
        """Check the reason: too large, or no room besides used memory and its slabs."""
        assert error.in_use == self.in_use(device)
        assert error.requested == nbytes
        ceiling = 64 * MiB if self.limit is None else self.limit
        assert nbytes > 24 * MiB or error.in_use + error.cached + nbytes + 64 > ceiling

    @rule(box=consumes(blocks))
    def drop(self, box: list[Block]) -> None:
        pointer = box[0].pointer
        box.clear()
        if self.exports.get(pointer):
            self.dropped.add(pointer)
        else:
            del self.live[pointer]

    @rule(target=held_memory, box=blocks)
    def hold_memory(self, box: list[Block]) -> Any:
        memory = box[0].memory
        self.exports[memory.pointer] = self.exports.get(memory.pointer, 0) + 1
        return [memory]

    @rule(box=consumes(held_memory))
    def let_memory_go(self, box: list[Memory]) -> None:
        pointer = box[0].pointer
        box.clear()
        self.exports[pointer] -= 1
        if not self.exports[pointer] and pointer in self.dropped:
            self.dropped.remove(pointer)
            del self.live[pointer]

    @rule(box=blocks)
    def submit(self, box: list[Block]) -> None:
        box[0].queue.submit(box[0])

    @rule(device=st.sampled_from([None, 0, 2]))
    def release(self, device: int | None) -> None:
        before = sum(self.driver.held.values())
        assert self.pools.release(device) == before - sum(self.driver.held.values())

    @rule(limit=st.sampled_from([None, 0, 4096, 4 * MiB, 32 * MiB]))
    def set_limit(self, limit: int | None) -> None:
        assert self.pools.set_limit(limit) == self.limit
        self.limit = limit
        self.excess = max((self.held(device) for device in ("device 0", "device 1")), default=0)

    @rule()
    def reset_peak(self) -> None:
        self.pools.reset_peak()
        self.peaks = {key: self.in_use(*key) for key in self.peaks}

    def held(self, device: str) -> int:
        return sum(
            pool.in_use + pool.cached for pool in self.pools.stats().pools if pool.device == device
        )

    @invariant()
    def the_account_is_right(self) -> None:
        stats = self.pools.stats()
        assert stats.hits + stats.misses == self.count
        assert stats.in_use + stats.cached == sum(self.driver.held.values())
        for pool in stats.pools:
            key = pool.device, pool.usm_type
            assert pool.in_use == self.in_use(*key)
            assert pool.peak == self.peaks.get(key, 0)
            assert pool.cached >= 0
        for device in ("device 0", "device 1"):
            assert self.held(device) <= 64 * MiB
            if self.limit is not None:
                assert self.held(device) <= max(self.limit, self.excess)

    @invariant()
    def nothing_was_used_too_early(self) -> None:
        assert self.driver.faults == []

    @invariant()
    def parts_fill_their_slabs(self) -> None:
        """Check that free and used parts together cover each allocation once."""
        self.pools.stats()  # processes returned memory
        parts = {pointer: size for pointer, (size, _, _) in self.live.items()}
        for arena in self.pools._arenas.values():
            for segment in arena.free_segments():
                assert segment.pointer not in parts
                parts[segment.pointer] = segment.nbytes
        for pointer, nbytes in self.driver.held.items():
            end = pointer + nbytes
            while pointer < end:
                pointer += parts.pop(pointer)
            assert pointer == end
        assert parts == {}

    def teardown(self) -> None:
        if hasattr(self, "pools"):
            self.nothing_was_used_too_early()


PoolMachine.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None, derandomize=True
)
TestEveryOrder = PoolMachine.TestCase


def test_public_names_are_those_of_the_process_wide_pools() -> None:
    for name in ("allocate", "stats", "set_limit", "release", "reset_peak"):
        assert getattr(memory, name).__self__ is _pool._pools
        assert name in memory.__all__
