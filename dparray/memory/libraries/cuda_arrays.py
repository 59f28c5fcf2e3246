"""Exchange arrays with CUDA's other libraries, over the same memory: ``__cuda_array_interface__``
and DLPack. Streams wait for each other on the device; the host waits for nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from dparray._driver import module_of, traits_of
from dparray._layout import Layout, contiguous_strides, shows_elements_twice, span_of
from dparray.exceptions import ArgumentError
from dparray.memory import dlpack_capsules
from dparray.memory.blocks import SHARED, BorrowedBlock, allocate

#: DLPack's devices by the kind of memory: CUDA, managed, pinned.
_DEVICES = {"device": 2, "shared": 13, "host": 3}
#: The legacy default stream, for consumers that name none, and DLPack's -1: no synchronization.
_LEGACY, _NO_ORDER = 1, -1


def _exchange() -> Any:
    return module_of("cuda", "exchange")


def is_array(obj: object) -> bool:
    """Return whether an object shows memory of CUDA by its interface."""
    return hasattr(obj, "__cuda_array_interface__")


def layout_of_interface(obj: Any) -> Layout:
    """Return the layout of an object with ``__cuda_array_interface__``, over its memory. Later work
    waits for the stream in the interface, or without one for the work behind its DLPack capsule.

    Raises:
        ArgumentError: it has a mask, names no valid stream, or describes memory beside its own.
    """
    interface = obj.__cuda_array_interface__
    named = f"a {type(obj).__module__}.{type(obj).__name__}"
    stream = interface.get("stream")
    if stream is None and hasattr(obj, "__dlpack__"):  # as of PyTorch
        return layout_of_dlpack(obj)
    if interface.get("mask") is not None or stream == 0:
        what = "stream 0, which the protocol forbids" if stream == 0 else "a mask"
        raise ArgumentError(f"{named} with {what} is not taken; pass an array without it")
    pointer, is_read_only = interface["data"]
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    strides = interface.get("strides")
    return _layout(named, obj, pointer, shape, strides, dtype, is_read_only, stream)


def give_back(array: Any, owner: Any) -> None:
    """Make the stream of ``owner`` wait, when ``array``, an operand over its memory, is dropped.

    All work that reads the operand has been submitted by then.
    """
    give = _exchange().give_to
    weakref.finalize(array, give, array.queue, _stream_of(owner)).atexit = False


def give_now(owners: Iterable[Any], queue: Any) -> None:
    """Make the streams of all arrays among ``owners`` wait for the work on a queue."""
    for owner in filter(is_array, owners):
        _exchange().give_to(queue, _stream_of(owner))


def _stream_of(owner: Any) -> int:
    return owner.__cuda_array_interface__.get("stream") or _LEGACY


def _layout(
    named: str,
    owner: Any,
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: np.dtype[Any],
    is_read_only: bool,
    stream: int | None,
    number: int = 0,
) -> Layout:
    strides = contiguous_strides(shape, dtype.itemsize) if strides is None else tuple(strides)
    if 0 in shape:
        device = module_of("cuda", "devices").devices()[number]
        queue = module_of("cuda", "queues").default_queue(device)
        return allocate(queue, "device", shape, dtype)
    first, end = span_of(pointer, shape, strides, dtype.itemsize)
    last = end - 1
    try:
        queue, usm_type = _exchange().place_of(first)
        memory = _exchange().memory_of(owner, first, last, queue)
    except ValueError as error:
        raise ArgumentError(
            f"{named} declares memory from {first:#x} to {last:#x}, of shape {shape}: {error}"
        ) from None
    if pointer % dtype.alignment:
        raise ArgumentError(
            f"{named} has {dtype} elements at address {pointer:#x}, which is not a multiple of "
            f"{dtype.alignment}; copy it first"
        )
    if stream is not None:
        _exchange().take_from(queue, stream)
    block = BorrowedBlock(memory, last - first + 1, usm_type, queue, SHARED, is_read_only)
    return Layout(block, pointer - first, shape, strides, dtype)


def is_dlpack_device(kind: int) -> bool:
    """Return whether a kind of device in DLPack is one of CUDA's."""
    return kind in _DEVICES.values()


def layout_of_dlpack(obj: Any) -> Layout:
    """Return the layout of an object with ``__dlpack__`` in CUDA memory, over its memory. The
    object makes dparray's queue wait for its work.
    """
    kind, number = map(int, obj.__dlpack_device__())
    device = module_of("cuda", "devices").devices()[number]
    queue = module_of("cuda", "queues").default_queue(device)
    options: dict[str, Any] = {}
    if kind != _DEVICES["host"]:
        options["stream"] = int(queue.handle)
    try:
        capsule = obj.__dlpack__(max_version=(1, 1), **options)
    except TypeError:  # before DLPack 1
        capsule = obj.__dlpack__(**options)
    # The queue's stream now includes the object's work.
    _exchange().take_from(queue, int(queue.handle))
    taken = dlpack_capsules.take(capsule)
    named = f"a {type(obj).__module__}.{type(obj).__name__}"
    place = taken.owner, taken.pointer, taken.shape, taken.strides, taken.dtype
    return _layout(named, *place, taken.is_read_only, None, number)


def dlpack_device(block: Any) -> tuple[int, int] | None:
    """Return DLPack's device of a block; ``None`` if it is not in memory of CUDA."""
    if traits_of(block.queue).driver != "cuda":
        return None
    return _DEVICES[block.usm_type], int(block.queue.number)


def dlpack(owner: Any, layout: Layout, stream: int | None, is_versioned: bool) -> Any:
    """Return a DLPack capsule over an array's memory; the stream waits for the work on it.

    Args:
        owner: the array, which the capsule keeps alive.
        layout: its layout.
        stream: the consumer's stream; ``None`` is the default stream, -1 no stream at all.
        is_versioned: whether the consumer takes a capsule of DLPack 1.
    """
    if stream == 0 or (stream is not None and stream < _NO_ORDER):
        raise ArgumentError(
            f"__dlpack__: stream={stream}; pass 1 for the default stream, 2 for that of the "
            "thread, the address of another one, or -1 for no order"
        )
    block, device = layout.block, dlpack_device(layout.block)
    assert device is not None
    if stream != _NO_ORDER:
        _exchange().give_to(block.queue, _LEGACY if stream is None else stream)
    is_read_only = shows_elements_twice(layout.shape, layout.strides)
    if is_read_only and not is_versioned:
        raise BufferError(
            "__dlpack__: the array is read-only, which DLPack before version 1 cannot say; "
            "pass x.copy()"
        )
    return dlpack_capsules.capsule_of(
        owner,
        block.pointer + layout.offset,
        device,
        layout.shape,
        layout.strides,
        layout.dtype,
        is_read_only,
        is_versioned,
    )
