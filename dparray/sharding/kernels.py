"""Kernels over shards: one launch on each device, with its own shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dparray._kernel.writes import assigned_parameters
from dparray._runtime.event import Event, checked_events
from dparray.exceptions import ArgumentError, KernelRangeError, ShardingError
from dparray.kernel_api import NdRange, Range
from dparray.sharding.array import ShardedArray, failures
from dparray.sharding.layout import Sharding
from dparray.sharding.operands import localised


class ShardedEvent:
    """The events of the launches on all shards.

    Attributes:
        events: one for each nonempty shard.

    Example:
        >>> dp.sharding.ShardedEvent([]).done
        True
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = tuple(events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    @property
    def done(self) -> bool:
        """Whether all launches are complete."""
        return all(event.done for event in self.events)

    def wait(self) -> None:
        """Wait for all launches."""
        for event in self.events:
            event.wait()

    def __repr__(self) -> str:
        state = "done" if self.done else "running"
        return f"<dparray event of {len(self.events)} shards, {state}>"


class ShardedRange:
    """A range with one work-item per element of a sharded array, for :func:`call_kernel`.

    On each device the kernel runs over its own shard, with ids from 0. Sharded arrays are passed as
    the device's block: if they have a halo, the shard begins at ``x.first_own``. A list has one
    value per shard. A kernel must not write to a replicated array, whose copies would differ.

    Args:
        array: the sharded array.
        dimensions: the number of leading dimensions of the range; by default all, at most three.
        local_range: the work-group size, which must divide each shard.

    Example:
        >>> @dp.kernel
        ... def number(item, x, start):
        ...     i = item.get_id(0)
        ...     x[i] = start + i
        >>> parts = [dp.Device("cpu").new_queue() for _ in range(2)]
        >>> x = dp.distribute(dp.zeros(5, dtype="int64"), parts)
        >>> event = dp.call_kernel(number, dp.sharding.ShardedRange(x), x, [0, 3])
        >>> x.asnumpy()
        array([0, 1, 2, 3, 4])
    """

    def __init__(
        self, array: ShardedArray, dimensions: int | None = None, local_range: Any = None
    ) -> None:
        if not isinstance(array, ShardedArray):
            raise KernelRangeError(
                f"a sharded range requires an array from dp.distribute; got a "
                f"{type(array).__name__}"
            )
        count = array.ndim if dimensions is None else dimensions
        if not 1 <= count <= min(3, array.ndim):
            raise KernelRangeError(
                f"a sharded range of {count} dimensions does not match shape {array.shape}; give "
                f"dimensions= from 1 to {min(3, array.ndim)}"
            )
        self._array = array
        #: The range on each device.
        self.sizes = tuple(shard.shape[:count] for shard in array.shards)
        self._local_range = local_range

    @property
    def sharding(self) -> Sharding:
        """The sharding of the array."""
        return self._array.sharding

    def __repr__(self) -> str:
        return f"ShardedRange({', '.join(map(str, self.sizes))})"

    def launch_over(self, kernel: Any, arguments: Sequence[Any], depends_on: Any) -> ShardedEvent:
        """Launch a kernel on each device.

        Raises:
            ShardingError: an array is sharded differently from the range.
            ShardingError: the kernel writes to a replicated array.
            ArgumentError: a list does not have one value per shard.
            KernelArgumentError: ``depends_on`` contains an object that is not an event.
        """
        before = checked_events(depends_on)
        count = len(self.sizes)
        lists = {position for position, value in enumerate(arguments) if isinstance(value, list)}
        for at in lists:
            if len(arguments[at]) != count:
                raise ArgumentError(
                    f"kernel {kernel.__name__}: argument {kernel._parameters[at]!r} is a list of "
                    f"{len(arguments[at])} values for {count} shards; give one per shard"
                )
        plain = [None if position in lists else value for position, value in enumerate(arguments)]
        self._check_copies(kernel, arguments)
        named = zip(kernel._parameters, arguments, strict=False)
        leader = next((name for name, value in named if value is self._array), "the range")
        names = [leader, *kernel._parameters]
        local, _ = localised(
            f"kernel {kernel.__name__}",
            [self._array, *plain],
            names,
            target=0,
            whole_blocks=True,
        )
        events = []
        for number, size in enumerate(self.sizes):
            if 0 in size:
                continue
            given = local[number][1:]
            for at in lists:
                given[at] = arguments[at][number]
            space: Any = Range(*size)
            if self._local_range is not None:
                space = NdRange(space, Range(*_extents(self._local_range)))
            with failures(f"kernel {kernel.__name__}", self.sharding, number):
                events.append(kernel._launch(space, tuple(given), before))
        return ShardedEvent(events)

    def _check_copies(self, kernel: Any, arguments: Sequence[Any]) -> None:
        """Raise if the kernel writes to a replicated array, unless each device runs all of it."""
        if self._array.is_replicated:
            return
        for name, value in zip(kernel._parameters, arguments, strict=False):
            is_copied = isinstance(value, ShardedArray) and value.is_replicated
            if is_copied and name in assigned_parameters(kernel.py_func):
                raise ShardingError(
                    f"kernel {kernel.__name__}: it writes to {name}, a replicated array, and each "
                    "device would change its own copy only; write to an array that is sharded like "
                    f"the range, or pass list({name}.shards) to change the copies separately"
                )


def _extents(local_range: Any) -> tuple[int, ...]:
    return (local_range,) if isinstance(local_range, int) else tuple(local_range)
