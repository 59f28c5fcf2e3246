"""Weak memory order: stores to global memory reach other groups late and out of order.

A store of a thread is seen by its own group immediately, and by others some turns later, unless it
is ordered: a release or a fence first delivers the earlier stores of its thread, and those of other
threads of the group that have arrived at a barrier since. Atomic operations are done in memory
immediately. Loads are not reordered, so missing acquires are not found.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tests.cuda.ptx_emulator import Run


class _Store(NamedTuple):
    due: int
    lane: int
    octets: bytes


class LateStores:
    """The stores of a launch that other groups do not see yet.

    Args:
        seed: of the delays.
        most: the binary logarithm of the longest delay, in turns of the emulator. While threads
            wait in a loop, others get one in 256 turns.
    """

    def __init__(self, seed: int, most: float = 12) -> None:
        self._random, self._most, self._turn = np.random.default_rng(seed), most, 0
        self._pending: dict[int, dict[int, _Store]] = {}  # by group and place
        self._queue: list[tuple[int, int, int]] = []  # when, group, place
        self._arrived: dict[int, int] = {}  # by lane, the turn of its last barrier

    def store(self, run: Run, who: Any, places: np.ndarray, values: np.ndarray) -> None:
        """Take stores of elements at places, in bytes."""
        lanes = np.arange(run.count)[who]
        delays = 2 ** (self._random.random(lanes.size) * self._most)
        octets = np.broadcast_to(values, lanes.shape)
        for lane, place, value, delay in zip(lanes, places, octets, delays, strict=True):
            group, due = int(run.block_of[lane]), self._turn + int(delay)
            one = _Store(due, int(lane), value.tobytes())
            self._pending.setdefault(group, {})[int(place)] = one
            heapq.heappush(self._queue, (due, group, int(place)))

    def seen(self, run: Run, who: Any, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return loaded elements, with the stores of the loading groups."""
        if not any(self._pending.values()):
            return values
        values = values.copy()
        groups = run.block_of[who]
        for at, (group, place) in enumerate(zip(groups, places, strict=True)):
            one = self._pending.get(int(group), {}).get(int(place))
            if one is not None:
                values[at] = np.frombuffer(one.octets, values.dtype)[0]
        return values

    def arrive(self, run: Run, who: Any) -> None:
        """Note that threads are at a barrier."""
        self._arrived |= dict.fromkeys(np.arange(run.count)[who].tolist(), self._turn)

    def release(self, run: Run, who: Any) -> None:
        """Deliver the stores that come before a release of threads."""
        for lane in np.arange(run.count)[who].tolist():
            stores = self._pending.get(int(run.block_of[lane]), {})
            for place, one in tuple(stores.items()):
                if one.lane == lane or one.lane in self._arrived:
                    self._deliver(run, stores, place)

    def settle(self, run: Run, who: Any, places: np.ndarray) -> None:
        """Deliver the stores of groups to places, before their atomic operations there."""
        for group, place in zip(run.block_of[who].tolist(), places.tolist(), strict=True):
            if place in self._pending.get(group, ()):
                self._deliver(run, self._pending[group], place)

    def pass_turn(self, run: Run) -> None:
        """Deliver the stores that are due."""
        self._turn += 1
        while self._queue and self._queue[0][0] <= self._turn:
            due, group, place = heapq.heappop(self._queue)
            stores = self._pending.get(group, {})
            if place in stores and stores[place].due == due:
                self._deliver(run, stores, place)

    def end(self, run: Run) -> None:
        """Deliver all stores."""
        for stores in self._pending.values():
            for place in tuple(stores):
                self._deliver(run, stores, place)

    def _deliver(self, run: Run, stores: dict[int, _Store], place: int) -> None:
        octets = stores.pop(place).octets
        run.memory.bytes[place : place + len(octets)] = np.frombuffer(octets, np.uint8)
