"""Pack the arguments and the range of a launch, in the format that drivers submit.

``SyclQueue.submit_async`` inspects every argument on every call, and an array takes at least five
kernel parameters: with three arrays, that was half the time of a launch. Here arguments are
*packed* once, an array's numbers once for each shape and strides, and a launch concatenates bytes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import addressof
from functools import lru_cache
from math import prod
from struct import Struct, pack, unpack, unpack_from
from typing import Any, NamedTuple

import numpy as np

from dparray._driver.arguments import LOCAL, POINTER, SCALARS, LocalMemory
from dparray._driver.interface import PackedRange

_INT64 = SCALARS.index(ctypes.c_int64)
_POINTER_KIND = pack("i", POINTER)

_KINDS = {cls: pack("i", kind) for kind, cls in enumerate(SCALARS)}
# The type and the number of local memory elements that stand for an element: dpctl has no local
# memory of float16 or complex elements.
_LOCAL_PARTS = {np.dtype(cls): (kind, 1) for kind, cls in enumerate(SCALARS)} | {
    np.dtype(np.float16): (SCALARS.index(ctypes.c_uint16), 1),
    np.dtype(np.complex64): (SCALARS.index(ctypes.c_float), 2),
    np.dtype(np.complex128): (SCALARS.index(ctypes.c_double), 2),
}
address_bytes = Struct("P").pack


class Packed(NamedTuple):
    """Arguments for consecutive parameters of a kernel.

    Attributes:
        kinds: the C interface's number of each type, as C integers.
        addresses: the address of each value, or the value itself for a pointer.
        objects: must live until the launch: the values, and the memory behind a pointer.
        local_nbytes: the bytes of local memory that the arguments need.
    """

    kinds: bytes
    addresses: bytes
    objects: Any
    local_nbytes: int = 0


_new = tuple.__new__  # A `__new__` of the class itself would cost one more call.


@lru_cache(maxsize=4096)
def pack_numbers(
    kind: int, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[bytes, bytes, bytes, Any]:
    """Return the arguments of an array except its pointer: kinds, addresses around it, values.

    The parameters are the number of elements, the element size, the pointer, the shape, the
    strides.
    """
    values = (ctypes.c_int64 * (2 + 2 * len(shape)))(prod(shape), itemsize, *shape, *strides)
    words = [addressof(values) + 8 * position for position in range(len(values))]
    kinds = [_INT64, _INT64, kind, *[_INT64] * (2 * len(shape))]
    return (
        pack(f"{len(kinds)}i", *kinds),
        pack("2P", *words[:2]),
        pack(f"{len(words) - 2}P", *words[2:]),
        values,
    )


@lru_cache(maxsize=256)
def pack_local(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Packed:
    """Return local memory for each work-group, as an array of the shape.

    Raises:
        TypeError: local memory cannot have this element type.
    """
    count, itemsize = prod(shape), dtype.itemsize
    strides = tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))
    if dtype not in _LOCAL_PARTS:
        raise TypeError(f"local memory of {dtype.name}")
    kinds, before, after, values = pack_numbers(LOCAL, itemsize, shape, strides)
    part, parts = _LOCAL_PARTS[dtype]
    memory = LocalMemory(1, part, (count * parts, 1, 1))
    addresses = before + address_bytes(addressof(memory)) + after
    return Packed(kinds, addresses, (values, memory), count * itemsize)


def pack_scalar(value: Any) -> Packed:
    """Return a number as a ctypes object."""
    return _new(Packed, (_KINDS[type(value)], address_bytes(addressof(value)), value, 0))


def pack_scalars(values: Iterable[Any]) -> Packed:
    """Return numbers as ctypes objects."""
    objects = tuple(values)
    return Packed(
        b"".join([_KINDS[type(value)] for value in objects]),
        pack(f"{len(objects)}P", *map(addressof, objects)),
        objects,
    )


def pack_pointer(memory: Any, pointer: int, nbytes: int) -> Packed:
    """Return an address in ``memory`` without its shape, followed by this many bytes."""
    return _new(Packed, (_POINTER_KIND, address_bytes(pointer), (nbytes, memory), 0))


@lru_cache(maxsize=256)
def pack_local_pointer(dtype: np.dtype[Any], count: int) -> Packed:
    """Return local memory for each work-group, without its shape."""
    if dtype not in _LOCAL_PARTS:
        raise TypeError(f"local memory of {dtype.name}")
    part, parts = _LOCAL_PARTS[dtype]
    memory = LocalMemory(1, part, (count * parts, 1, 1))
    kinds, address = pack("i", LOCAL), address_bytes(addressof(memory))
    return Packed(kinds, address, memory, count * dtype.itemsize)


def has_local_memory(kinds: bytes) -> bool:
    """Return whether the arguments of a launch include local memory, by their kinds."""
    return LOCAL in unpack(f"{len(kinds) // 4}i", kinds)


def arrays_of(arguments: Iterable[Packed]) -> list[tuple[int, int]]:
    """Return the address and the size in bytes of each array among the arguments of a launch."""
    pairs = []
    for packed in arguments:
        values = packed.objects
        if type(values) is not tuple or len(values) != 2 or not hasattr(values[1], "_pointer"):
            continue
        numbers, nbytes, offset = values[0], values[0], 0
        if type(numbers) is not int:
            nbytes, offset = numbers[0] * numbers[1], 16
        (address,) = unpack_from("P", packed.addresses, offset)
        pairs.append((address, nbytes))
    return pairs


def pack_range(extents: Sequence[int], local: Sequence[int] | None) -> PackedRange:
    """Return a range, with group sizes if it has any."""
    dimensions = len(extents)
    of_all = pack(f"{dimensions}N", *extents[::-1])
    of_groups = None if local is None else pack(f"{dimensions}N", *local[::-1])
    return PackedRange(dimensions, of_all, of_groups)
