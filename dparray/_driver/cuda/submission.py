"""Submit kernels with packed arguments and a packed range.

NVIDIA's driver takes the address of each argument. The packed arguments have the addresses of
scalars and the values of pointers, so the entry of a pointer is itself the place that holds it. An
argument in local memory becomes its offset in the group's dynamic local memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import addressof, c_uint64
from functools import lru_cache
from math import prod
from struct import unpack
from typing import Any

from cuda.bindings import driver

from dparray._driver.arguments import LOCAL, POINTER, LocalMemory
from dparray._driver.cuda.context import Current, call, failure
from dparray._driver.cuda.modules import allow_local, for_groups, kernels
from dparray._driver.cuda.queues import Event, Queue
from dparray._driver.interface import PackedRange

_ALIGNMENT = 16
_MOST_GROUPS = (2**31 - 1, 65_535, 65_535)
_REFUSALS = {
    driver.CUresult.CUDA_ERROR_INVALID_VALUE,
    driver.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
}

_Sizes = tuple[int, int, int]


@lru_cache(maxsize=1024)
def _places(kinds: bytes) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    """Return the array type for arguments, and the positions of pointers and local memory."""
    numbers = unpack(f"{len(kinds) // 4}i", kinds)
    pointers, local = (
        tuple(at for at, number in enumerate(numbers) if number == kind)
        for kind in (POINTER, LOCAL)
    )
    return c_uint64 * len(numbers), pointers, local


def _parameters(kinds: bytes, addresses: bytes) -> tuple[Any, Any, int]:
    """Return the addresses of arguments, the objects that hold them, the size of local memory."""
    kind, pointers, local = _places(kinds)
    values = kind.from_buffer_copy(addresses)
    if not (pointers or local):
        return values, values, 0
    parameters, first, nbytes = kind.from_buffer_copy(addresses), addressof(values), 0
    for at in pointers:
        parameters[at] = first + 8 * at
    for at in local:
        size = LocalMemory.from_address(values[at]).nbytes
        values[at], parameters[at] = nbytes, first + 8 * at
        nbytes += -(-size // _ALIGNMENT) * _ALIGNMENT
    return parameters, values, nbytes


@lru_cache(maxsize=1024)
def groups_of(index_space: PackedRange, most: int) -> tuple[_Sizes, _Sizes] | None:
    """Return the numbers of groups and their sizes, x first; ``None`` if there are too many.

    Args:
        index_space: the range. Without sizes of groups, these divide it: no work-item is added.
        most: the largest group.
    """
    dimensions, extents, local = index_space
    sizes = [*unpack(f"{dimensions}N", extents), 1, 1][:3]
    if local is None:
        group = list(_divisors(sizes, most))
    else:
        group = [*unpack(f"{dimensions}N", local), 1, 1][:3]
    count = [size // part for size, part in zip(sizes, group, strict=True)]
    if any(map(int.__gt__, count, _MOST_GROUPS)):
        return None
    return tuple(count), tuple(group)  # type: ignore[return-value]


def _divisors(sizes: Sequence[int], most: int) -> Iterator[int]:
    left = min(most, 256)
    for size in sizes:
        part = next(part for part in range(min(left, size), 0, -1) if size % part == 0)
        left //= part
        yield part


def addresses_of_functions() -> tuple[int, int, int, int]:
    """Return the driver's functions that launch; read, push and pop the current context."""
    version = call(driver.cuDriverGetVersion)
    names = (b"cuLaunchKernel", b"cuCtxGetCurrent", b"cuCtxPushCurrent", b"cuCtxPopCurrent")
    functions = [call(driver.cuGetProcAddress, name, version, 0) for name in names]
    return tuple(int(each[0]) for each in functions)  # type: ignore[return-value]


def submit(
    kernel: int,
    queue: Queue,
    kinds: bytes,
    addresses: bytes,
    index_space: PackedRange,
    dependencies: Sequence[Event],
) -> Event | None:
    loaded = kernels[kernel]
    groups = groups_of(index_space, loaded.group)
    if groups is None:
        return None
    if (size := prod(groups[1])) > loaded.group:
        loaded = for_groups(kernel, size)
    if queue.kept:
        queue.release()
    for event in dependencies:
        if event.queue is not queue:
            queue.follow(dependencies)
            break
    parameters, _values, local = _parameters(kinds, addresses)
    with Current(queue.number):
        if local > loaded.local[0] and not allow_local(loaded, local):
            return None
        times = queue.begin() if queue.has_profiling else None
        (status,) = driver.cuLaunchKernel(
            loaded.function,
            *groups[0],
            *groups[1],
            local,
            queue.handle,
            addressof(parameters),
            0,
        )
        if status:
            if status in _REFUSALS:
                return None
            raise failure(status, f"a launch on {queue.name}")
        return queue.record(times)
