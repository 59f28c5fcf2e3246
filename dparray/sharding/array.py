"""The sharded array: its shards, halo and views, and its conversion to a single device."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from dparray import exceptions
from dparray._array.ndarray import ndarray
from dparray.device import Device
from dparray.exceptions import (
    ArgumentError,
    DeviceError,
    DparrayError,
    KernelExecutionError,
    ShapeError,
    ShardingError,
)
from dparray.sharding.layout import Sharding, bounds_of, bytes_to_move, overlap, volume


def library() -> Any:
    """Return the public functions, in the form that is called for each shard."""
    return sys.modules["dparray"]


@contextlib.contextmanager
def failures(function: str, sharding: Sharding, number: int, nbytes: int = 0) -> Iterator[None]:
    """Make errors of work on one shard name the shard, its device and the intact shards.

    Raises:
        MemoryError: the device does not have enough memory.
        DeviceError: the device failed or was lost.
    """
    where = f"{function}: shard {number + 1} of {len(sharding.devices)}"
    device = sharding.devices[number]
    try:
        yield
    except exceptions.MemoryError as error:
        raise exceptions.MemoryError(
            f"{where}: {error}. More devices make smaller shards: dp.distribute(x, devices)",
            requested=error.requested,
            in_use=error.in_use,
            cached=error.cached,
            limit=error.limit,
            device=error.device,
        ) from error
    except (RuntimeError, KernelExecutionError) as error:
        if isinstance(error, DparrayError) and not isinstance(error, KernelExecutionError):
            raise
        others = ", ".join(str(at + 1) for at in range(len(sharding.devices)) if at != number)
        what = f"{nbytes} bytes" if nbytes else "its part"
        raise DeviceError(
            f"{where}, {what} on {device}: the device failed ({error}). "
            + (
                f"Shards {others} are intact: x.shards[i]; with all values, continue without "
                f"the device: dp.distribute(values, [d for d in x.devices if d != x.devices"
                f"[{number}]])"
                if others
                else "There are no other shards"
            )
        ) from error


def on_each(
    function: str, sharding: Sharding, compute: Callable[..., Any], *columns: Iterable[Any]
) -> list[Any]:
    """Return the results of work on each shard, whose errors name the shard.

    Args:
        function: the public function.
        sharding: of the shards.
        compute: called for each shard with its entry of every column.
        columns: a value for each shard. Errors give the size of the first if it is an array.
    """
    results = []
    for number, values in enumerate(zip(*columns, strict=True)):
        with failures(function, sharding, number, getattr(values[0], "nbytes", 0)):
            results.append(compute(*values))
    return results


class ShardedArray:
    """An array sharded over devices or queues, created by :func:`dparray.distribute`.

    Operations run on each shard on its own device. Arrays sharded at the same positions need no
    copies; others raise a :class:`dparray.ShardingError` with the line that copies. A reduction
    along the sharded axis exchanges one partial result per device.

    Attributes:
        sharding: the :class:`Sharding`.

    Example:
        >>> parts = [dp.Device("cpu").new_queue() for _ in range(2)]
        >>> x = dp.distribute(dp.arange(6.0), parts)
        >>> y = dp.sqrt(x * x) + 1
        >>> y.asnumpy(), float(y.sum())
        (array([1., 2., 3., 4., 5., 6.]), 21.0)
    """

    __array_priority__ = 20.0

    def __init__(
        self,
        sharding: Sharding,
        shards: Sequence[ndarray] | None,
        *,
        whole: ndarray | None = None,
        blocks: Sequence[ndarray] | None = None,
    ) -> None:
        self.sharding = sharding
        #: The shards without halos; for replicated arrays they are made from ``_whole`` on access.
        self._own = None if shards is None else list(shards)
        self._whole = whole
        #: The blocks with room for the halo, whose middle parts are the shards.
        self._blocks = None if blocks is None else list(blocks)

    # -- properties -----------------------------------------------------------------------------

    @property
    def shards(self) -> tuple[ndarray, ...]:
        """The shard of each device, without the halo; they share the memory of the array."""
        if self._own is None:
            whole = self._whole
            assert whole is not None
            self._own = [whole.to_device(device) for device in self.devices]
        return tuple(self._own)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The device of each shard."""
        return self.sharding.devices

    @property
    def is_replicated(self) -> bool:
        """Whether each device has a copy of the whole array."""
        return self.sharding.axis is None

    @property
    def _first(self) -> ndarray:
        if self._own is not None:
            return self._own[0]
        assert self._whole is not None
        return self._whole

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        axis, shape = self.sharding.axis, list(self._first.shape)
        if axis is not None:
            shape[axis] = self.sharding.bounds[-1]
        return tuple(shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self._first.dtype

    @property
    def usm_type(self) -> str:
        """The USM type of the shards."""
        return self._first.usm_type

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._first.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes, counted once even if every device has a copy."""
        return self.size * self.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array with 0 dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShardedArray(shape {self.shape}, {self.dtype}, {self.sharding})"

    # -- conversion to one device ---------------------------------------------------------------

    def eval(self) -> ShardedArray:
        """Submit pending work to all queues, without waiting.

        Example:
            >>> x = dp.distribute(dp.ones(4), ["cpu"]) + 1
            >>> x.eval().shards[0].is_pending
            False
        """
        if self._own is not None:
            on_each("eval", self.sharding, library().eval, self._own)
        return self

    def wait(self) -> ShardedArray:
        """Submit pending work to all queues, and wait for all of them."""
        self.eval()
        on_each("wait", self.sharding, library().synchronize, self.shards)
        return self

    def gather(self, device: Any = None) -> ndarray:
        """Return a copy of all elements as an array on one device.

        Args:
            device: the device of the result; that of the first shard by default.

        Raises:
            MemoryError: the device does not have enough memory.
            DeviceError: a device failed.

        Example:
            >>> x = dp.distribute(dp.arange(4), ["cpu"])
            >>> x.gather()
            array([0, 1, 2, 3])
        """
        target = self.devices[0] if device is None else Device(device)
        if self.is_replicated:
            own = self._first if self._own is None or device is None else self._nearest(target)
            return own.to_device(target, copy=True)
        self.eval()
        with failures("gather", Sharding((target,), None), 0, self.nbytes):
            result = library().empty(
                self.shape, dtype=self.dtype, device=target, usm_type=self.usm_type
            )
        for number, shard in enumerate(self.shards):
            if shard.size:
                with failures("gather", self.sharding, number, shard.nbytes):
                    box = self.sharding.box(number, self.shape)
                    result[slices(box)] = shard.to_device(target)
        return result

    def _nearest(self, device: Device) -> ndarray:
        return next((x for x in self.shards if x.device == device), self.shards[0])

    def asnumpy(self) -> np.ndarray:
        """Return all elements as a NumPy array; waits for the work on all queues.

        Example:
            >>> dp.distribute(dp.arange(3), ["cpu"]).asnumpy()
            array([0, 1, 2])
        """
        if self.is_replicated:
            return self._first.asnumpy()
        self.eval()
        result = np.empty(self.shape, self.dtype)
        for number, shard in enumerate(self.shards):
            with failures("asnumpy", self.sharding, number, shard.nbytes):
                result[slices(self.sharding.box(number, self.shape))] = shard.asnumpy()
        return result

    def item(self) -> Any:
        """Return the only element as a Python scalar.

        Raises:
            ShapeError: the array does not have exactly one element.
        """
        if self.size != 1:
            raise ShapeError(f"item: the array must have one element; it has shape {self.shape}")
        return self.asnumpy().item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"the truth value of an array of shape {self.shape} is ambiguous; use x.any() or "
                "x.all()"
            )
        return bool(self.item())

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise exceptions.HostConversionError(
            "a sharded array is not converted to a NumPy array implicitly; write x.asnumpy()"
        )

    # -- the halo -------------------------------------------------------------------------------

    @property
    def halo(self) -> int:
        """The number of elements from each neighboring shard in a block."""
        return self.sharding.halo

    def _margins(self, number: int) -> tuple[int, int]:
        """Return the number of halo elements before and after a shard."""
        if self.is_replicated:
            return 0, 0
        bounds, halo = self.sharding.bounds, self.halo
        return (
            min(halo, bounds[number] - bounds[0]),
            min(halo, bounds[-1] - bounds[number + 1]),
        )

    @property
    def first_own(self) -> list[int]:
        """The offset of a shard within its block, to pass to a kernel."""
        return [self._margins(number)[0] for number in range(len(self.devices))]

    @property
    def blocks(self) -> tuple[ndarray, ...]:
        """The shard of each device with its halo, which is updated on each access.

        There is no halo at the ends of the array. Values written to the halo are lost at the next
        access.
        """
        if not self.halo or self.is_replicated:
            return self.shards
        # A view of the array may have been written to, so each access copies the halo.
        self._exchange()
        assert self._blocks is not None
        return tuple(self._blocks)

    def _exchange(self) -> None:
        """Copy the elements next to each shard boundary from the neighboring shard."""
        axis, halo = self.sharding.axis, self.halo
        assert axis is not None
        if min(self.sharding.sizes) < halo:
            smallest = int(np.argmin(self.sharding.sizes))
            raise ArgumentError(
                f"halo: {halo} elements are needed per neighbor, but shard {smallest + 1} of shape "
                f"{self.shards[smallest].shape} has {min(self.sharding.sizes)} along axis {axis}; "
                "use fewer devices or a smaller halo"
            )
        self.eval()
        if self._blocks is None:
            self._make_room()
        assert self._blocks is not None
        shards, blocks = self.shards, self._blocks
        incoming = []
        for number, device in enumerate(self.devices):
            before, behind = self._margins(number)
            with failures("halo", self.sharding, number):
                if before:
                    edge = shards[number - 1][along(axis, slice(-before, None))]
                    incoming.append((number, slice(0, before), edge.to_device(device)))
                if behind:
                    edge = shards[number + 1][along(axis, slice(0, behind))]
                    incoming.append((number, slice(-behind, None), edge.to_device(device)))
        for number, margin, edge in incoming:
            with failures("halo", self.sharding, number):
                blocks[number][along(axis, margin)] = edge

    def _make_room(self) -> None:
        axis = self.sharding.axis
        assert axis is not None
        blocks, own = [], []
        for number, shard in enumerate(self.shards):
            before, behind = self._margins(number)
            shape = list(shard.shape)
            shape[axis] += before + behind
            with failures("halo", self.sharding, number, shard.nbytes):
                block = library().empty(
                    shape, dtype=shard.dtype, device=shard.device, usm_type=shard.usm_type
                )
                part = block[along(axis, slice(before, before + shard.shape[axis]))]
                part[...] = shard
            blocks.append(block)
            own.append(part)
        self._blocks, self._own = blocks, own

    # Defined in other modules.
    map_blocks: Callable[..., ShardedArray]
    __setitem__: Callable[[Any, Any, Any], None]
    __dparray_function__: Callable[..., Any]
    __array_ufunc__: Callable[..., Any]
    __array_function__: Callable[..., Any]
    __matmul__: Callable[..., ShardedArray]
    __rmatmul__: Callable[..., ShardedArray]

    # -- views ----------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """Return views of the shards, for slices and integers.

        An integer along the sharded axis returns an array on its device. Integer arrays and lists
        would require copies and raise.
        """
        entries = _basic_entries(self, index)
        axis = self.sharding.axis
        if axis is None:
            return ShardedArray(self.sharding, [shard[entries] for shard in self.shards])
        at, new_axis, seen = 0, 0, 0
        for at, entry in enumerate(entries):  # noqa: B007  # the position is used below
            if entry is not None:
                if seen == axis:
                    break
                seen += 1
            if entry is None or isinstance(entry, slice):
                new_axis += 1
        entry, extent = entries[at], self.shape[axis]
        if not isinstance(entry, slice):
            element = entry + extent if entry < 0 else entry
            if not 0 <= element < extent:
                raise IndexError(
                    f"index {entry} is out of range for axis {axis} of length {extent}"
                )
            number = next(n for n, stop in enumerate(self.sharding.bounds[1:]) if element < stop)
            local: Any = (*entries[:at], element - self.sharding.bounds[number], *entries[at + 1 :])
            return self.shards[number][local]
        start, stop, step = entry.indices(extent)
        if step < 0:
            raise ShardingError(
                f"x[...]: a step of {step} along axis {axis}, which is sharded, would copy "
                f"{self.nbytes} bytes between devices; gather first: x.gather()[...]",
                nbytes=self.nbytes,
                remedy="x.gather()[...]",
            )
        shards, sizes = [], []
        for number, shard in enumerate(self.shards):
            low, high = self.sharding.bounds[number : number + 2]
            first = start if start >= low else start + -(-(low - start) // step) * step
            begin = min(first, high)
            inside = slice(begin - low, max(min(stop, high), begin) - low, step)
            local = (*entries[:at], inside, *entries[at + 1 :])
            part = shard[local]
            shards.append(part)
            sizes.append(part.shape[new_axis])
        return ShardedArray(self.sharding.moved(new_axis, bounds_of(sizes)), shards)

    def transpose(self, *axes: Any) -> ShardedArray:
        """Return a view with permuted axes, without copies.

        Example:
            >>> dp.distribute(dp.ones((4, 2)), ["cpu"]).transpose().shape
            (2, 4)
        """
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = (
            tuple(range(self.ndim))[::-1] if not order else tuple(at % self.ndim for at in order)
        )
        shards = [library().permute_dims(shard, order) for shard in self.shards]
        axis = self.sharding.axis
        return ShardedArray(
            self.sharding if axis is None else self.sharding.moved(order.index(axis)), shards
        )

    @property
    def T(self) -> ShardedArray:
        """The view with its axes in reverse order."""
        return self.transpose()


def slices(box: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    """Convert a box to an index."""
    return tuple(slice(start, stop) for start, stop in box)


def along(axis: int, entry: Any) -> tuple[Any, ...]:
    """Convert a range along one axis to an index."""
    return (*(slice(None),) * axis, entry)


def _basic_entries(x: ShardedArray, index: Any) -> tuple[Any, ...]:
    """Expand an index of integers, slices and ``None`` to one entry per axis.

    Raises:
        ShardingError: the index contains an array or a list.
    """
    given = index if isinstance(index, tuple) else (index,)
    entries: list[Any] = []
    used = sum(1 for entry in given if entry is not None and entry is not Ellipsis)
    if used > x.ndim:
        raise IndexError(f"too many indices: {used} for an array of {x.ndim} dimensions")
    for entry in given:
        if entry is Ellipsis:
            entries += [slice(None)] * (x.ndim - used)
            used = x.ndim
        elif entry is None or isinstance(entry, slice):
            entries.append(entry)
        elif isinstance(entry, int | np.integer) and not isinstance(entry, bool | np.bool_):
            entries.append(int(entry))
        else:
            raise ShardingError(
                f"x[...]: an index of type {type(entry).__name__} selects elements that would be "
                f"copied between devices (up to {x.nbytes} bytes); gather first: "
                "x.gather()[...]. Along the other axes: x.map_blocks(lambda block: block[...])",
                nbytes=x.nbytes,
                remedy="x.gather()[...]",
            )
    return (*entries, *[slice(None)] * (x.ndim - used))


def described(x: ShardedArray | ndarray) -> str:
    """Return the shape and the sharding of an array, for messages."""
    return f"{x.shape}, {_sharding_of(x)}"


def _sharding_of(x: ShardedArray | ndarray) -> Sharding:
    return x.sharding if isinstance(x, ShardedArray) else Sharding((x.device,), None)


def unequal(
    function: str,
    rows: Sequence[tuple[str, str]],
    moved: tuple[str, ShardedArray | ndarray],
    target: Sharding,
    remedy: str,
) -> ShardingError:
    """Return the error for arrays that are sharded in different ways.

    Args:
        function: the name of the public function.
        rows: the name and the description of each array.
        moved: the name of the array that would be copied, and the array.
        target: its sharding after the copy.
        remedy: the line that copies.
    """
    name, x = moved
    nbytes = bytes_to_move(x.shape, x.itemsize, _sharding_of(x), target)
    width = max(len(row) for row, _ in rows)
    lines = "\n".join(f"  {row:<{width}}  {text}" for row, text in rows)
    return ShardingError(
        f"{function}: the arrays are sharded in different ways:\n{lines}\nTo "
        f"compute on the devices of the first, {nbytes} bytes of {name} ({x.nbytes} bytes) would "
        f"be copied between devices, which never happens implicitly: {remedy}",
        function=function,
        operands=tuple((row, text, "") for row, text in rows),
        remedy=remedy,
        nbytes=nbytes,
    )


def recut(x: ShardedArray, sharding: Sharding) -> ShardedArray:
    """Return the array with another sharding: a view if no element moves, otherwise a copy.

    Never only some shards as views: writing to the result would change a part of the array.
    """
    x.eval()
    boxes = [sharding.box(number, x.shape) for number in range(len(sharding.devices))]
    here = [x.sharding.box(number, x.shape) for number in range(len(x.devices))]
    if sharding.devices == x.devices and boxes == here:
        return ShardedArray(sharding, x.shards)
    shards = []
    for number, (device, wanted) in enumerate(zip(sharding.devices, boxes, strict=True)):
        with failures("distribute", sharding, number, volume(wanted) * x.itemsize):
            shards.append(_part(x, device, wanted))
    return ShardedArray(sharding, shards)


def _part(x: ShardedArray, device: Device, wanted: tuple[tuple[int, int], ...]) -> ndarray:
    sources = [(x.sharding.box(number, x.shape), shard) for number, shard in enumerate(x.shards)]
    sources.sort(key=lambda source: source[1].device != device)  # local data comes first
    for box, shard in sources:
        if overlap(wanted, box) == wanted:
            return shard[_inside(wanted, box)].to_device(device, copy=True)
    shape = tuple(stop - start for start, stop in wanted)
    result = library().empty(shape, dtype=x.dtype, device=device, usm_type=x.usm_type)
    for box, shard in sources:
        common = overlap(wanted, box)
        if volume(common):
            piece = shard[_inside(common, box)]
            result[_inside(common, wanted)] = piece.to_device(device)
    return result


def _inside(box: Any, outer: Any) -> tuple[slice, ...]:
    return tuple(
        slice(start - origin, stop - origin)
        for (start, stop), (origin, _) in zip(box, outer, strict=True)
    )
