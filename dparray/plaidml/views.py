"""Host views of a tensor's elements, which lock the tensor while they are open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dparray.plaidml.exceptions import FailedPrecondition, InvalidArgument


class View:
    """The elements of a tensor as a row-major sequence.

    Assigned values reach the tensor by :meth:`writeback`, after which the view is dead. A view that
    is left without it writes nothing back, and warns if something was assigned.

    Attributes:
        shape: the sizes of the tensor.
    """

    def __init__(self, opened: Any, preserves: bool) -> None:
        self._map = opened
        self.shape: tuple[int, ...] = opened.values.shape
        self._is_changed = False
        values = opened.values
        self._values: Any = values.copy() if preserves else np.empty_like(values)

    def _live(self) -> Any:
        if self._values is None:
            raise FailedPrecondition(
                "the view was written back or left; open another one: with tensor.mmap_current()"
            )
        return self._values

    def __len__(self) -> int:
        return int(self._live().size)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._live().reshape(-1).tolist())

    def _index(self, key: Any) -> Any:
        values = self._live()
        if isinstance(key, tuple):
            if len(key) != values.ndim:
                raise IndexError(f"{len(key)} indices of a view of {values.ndim} dimensions")
            for index, size in zip(key, values.shape, strict=True):
                if not 0 <= index < size:
                    raise IndexError(f"the index {index} is outside of 0 to {size - 1}")
            return int(np.ravel_multi_index(key, values.shape)) if key else 0
        if isinstance(key, slice):
            return key
        if not -values.size <= key < values.size:
            raise IndexError(f"the index {key} is outside of a view of {values.size} elements")
        return key

    def __getitem__(self, key: Any) -> Any:
        return self._live().reshape(-1)[self._index(key)].tolist()

    def __setitem__(self, key: Any, value: Any) -> None:
        index, flat = self._index(key), self._live().reshape(-1)
        self._is_changed = True
        if not isinstance(index, slice):
            flat[index] = value
            return
        wanted = range(*index.indices(flat.size))
        taken = list(_first(value, len(wanted)))
        if len(taken) < len(wanted):
            raise InvalidArgument(
                f"{len(taken)} values for {len(wanted)} elements of a view; give one for each"
            )
        flat[index] = taken

    def copy_from_ndarray(self, source: Any) -> None:
        """Copy all elements from an array of the same size, converted."""
        values = self._live()
        given = np.asarray(source)
        if given.size != values.size:
            raise InvalidArgument(f"{given.size} elements for a view of {values.size}")
        self._is_changed = True
        values.reshape(-1)[...] = given.reshape(-1)

    def copy_to_ndarray(self, target: Any) -> None:
        """Copy all elements into an array of the same size, converted."""
        values = self._live()
        if target.size != values.size:
            raise InvalidArgument(f"{values.size} elements for an array of {target.size}")
        target[...] = values.reshape(target.shape)

    def as_ndarray(self) -> Any:
        """Return a copy of the elements, in the tensor's shape."""
        return self._live().copy()

    def writeback(self) -> None:
        """Write the assigned elements to the tensor, and close the view."""
        self._map.values[...] = self._live()
        self._end()

    @property
    def is_lost(self) -> bool:
        """Whether elements were assigned that no :meth:`writeback` wrote to the tensor."""
        return self._is_changed and self._values is not None

    def _end(self) -> None:
        self._values = None
        self._map.close()


def _first(values: Any, count: int) -> Iterable[Any]:
    iterator = iter(values)
    for _ in range(count):
        try:
            yield next(iterator)
        except StopIteration:
            return
