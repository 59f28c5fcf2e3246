"""Host views of arrays for native regions, and conversion of their results to arrays.

The only module of :mod:`dparray._jit` that accesses the internals of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from dparray._array.allocation import from_host
from dparray._array.ndarray import host_view as idle_host_view
from dparray._array.ndarray import materialize, ndarray
from dparray._driver import traits_of
from dparray._driver.interface import Queue
from dparray._evaluate.writes import settle_blocks
from dparray._jit.captured import of_one_type
from dparray._jit.inference import Items, Value
from dparray._layout import order_of, shows_elements_twice
from dparray._placement import coerced_usm_type
from dparray._runtime import host_maps, queues
from dparray.memory import copies
from dparray.memory.blocks import is_read_only

#: Up to this size a result stays on the host until a kernel needs it.
_MAX_HOST_RESULT = 1 << 15

working = queues.working


def host_view(x: ndarray) -> np.ndarray:
    """Return a NumPy array over the memory of an array, for a region that reads or writes it.

    Evaluates pending values of the array and pending readers of its memory first, and waits for
    work on the memory.
    """
    view = x._host_view
    block = x._block
    if view is not None and not host_maps.holds:
        if block is None:
            return view
        if block.readers:
            settle_blocks((block,))
        if working:
            queues.wait_to_write(block)
        return view
    return _slow_view(x)


def _slow_view(x: ndarray) -> np.ndarray:
    layout = materialize(x)
    if host_maps.holds:
        host_maps.before_write(layout)
    settle_blocks((layout.block,))
    queues.wait_to_write(layout.block)
    view = idle_host_view(x)
    is_fixed = shows_elements_twice(layout.shape, layout.strides) or is_read_only(layout.block)
    if view is None or is_fixed:
        view = copies.host_view(layout)
        if is_fixed:
            view.flags.writeable = False
    return view


def host_arguments(values: Iterable[Any]) -> list[Any]:
    """Return the arguments of a region, with views of arrays."""
    return [*map(_host_argument, values)]


def _host_argument(value: Any, view_of: Callable[[ndarray], np.ndarray] = host_view) -> Any:
    if isinstance(value, ndarray):
        view = view_of(value)
        return view if view.ndim else view[()]
    if isinstance(value, tuple | list):
        items = [_host_argument(item, view_of) for item in of_one_type(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


@contextmanager
def staged(
    given: Mapping[str, Any], written: Set[str], keeps_strides: bool
) -> Iterator[tuple[list[Any], tuple[list[ndarray], list[np.ndarray]]]]:
    """Yield the arguments of a region with arrays of a device copied to the host, these arrays,
    and the copies.

    Maps copy the elements, and at the end copy those back that may be written. Arrays whose
    elements are between each other's are views of one map of all bytes.

    Args:
        given: the arguments, by name.
        written: the names of those that the region may write.
        keeps_strides: whether results may be views, so that copies need the arrays' strides.
    """
    may_change = {id(x) for name in written & given.keys() for x in _arrays_in(given[name])}
    arrays = [x for value in given.values() for x in _arrays_in(value)]
    views = {id(x): x.asnumpy() for x in arrays if not x.ndim}
    with ExitStack() as maps:
        for first, last, group in _groups({id(x): x for x in arrays if x.ndim}.values()):
            changed = [x for x in group if id(x) in may_change and not is_read_only(x.block)]
            mode = "rw" if changed else "r"
            if last == first or not (keeps_strides or len(group) > 1):
                views |= {id(x): maps.enter_context(x.map(mode)) for x in group}
                continue
            base = group[0].block
            first -= first % max(x.itemsize for x in group)
            whole = group[0]._view((last - first,), (1,), first - base.pointer, np.dtype(np.uint8))
            memory = maps.enter_context(whole.map(mode))
            for x in group:
                at = x.block.pointer + x.offset - first
                view = views[id(x)] = np.ndarray(x.shape, x.dtype, memory, at, x.strides)
                if shows_elements_twice(x.shape, x.strides):
                    view.flags.writeable = False
        host = [_host_argument(value, lambda x: views[id(x)]) for value in given.values()]
        yield host, (arrays, [views[id(x)] for x in arrays])


def staged_nbytes(values: Iterable[Any]) -> int:
    """Return the bytes of arrays among the arguments of a region."""
    return sum({id(x): x.nbytes for value in values for x in _arrays_in(value)}.values())


def _groups(arrays: Iterable[ndarray]) -> list[tuple[int, int, list[ndarray]]]:
    """Return arrays with elements between each other's, with the range of their addresses."""
    groups: list[tuple[int, int, list[ndarray]]] = []
    spans = [(*host_maps.span_of_layout(materialize(x)), x) for x in arrays]
    for first, last, x in sorted(spans, key=lambda each: each[:2]):
        if groups and first < groups[-1][1]:
            start, end, group = groups[-1]
            groups[-1] = start, max(end, last), [*group, x]
        else:
            groups.append((first, last, [x]))
    return groups


def overlap(given: Mapping[str, Any], written: Set[str]) -> bool:
    """Return whether the memory of an array that is written may be that of another one.

    Args:
        given: the arrays and other values of a region, by name.
        written: the names of those that it writes.
    """
    if not written:
        return False
    arrays = {name: x for name, x in given.items() if isinstance(x, ndarray)}
    spans = {name: host_maps.span_of_layout(materialize(x)) for name, x in arrays.items()}
    return any(
        spans[name][0] < end and start < spans[name][1]
        for name in written & spans.keys()
        for other, (start, end) in spans.items()
        if other != name
    )


def _arrays_in(value: Any) -> list[ndarray]:
    if isinstance(value, tuple | list):
        return [x for item in value for x in _arrays_in(item)]
    return [value] if isinstance(value, ndarray) else []


def orders_of(names: Sequence[str], values: Sequence[Any]) -> dict[str, str]:
    """Return the memory order of each array among some values, as in type keys, by name."""
    return {
        name: order_of(x.shape, x.strides, x.itemsize)
        for name, x in zip(names, values, strict=True)
        if isinstance(x, ndarray)
    }


def result_of(
    value: Any,
    expected: Any,
    queue: Queue,
    arrays: Sequence[ndarray],
    views: Sequence[np.ndarray] = (),
) -> Any:
    """Convert the result of a native region to that of the uncompiled function.

    Args:
        value: the result.
        expected: its inferred type.
        queue: the queue for new arrays.
        arrays: the arguments, whose memory a result may share.
        views: their host arrays, if these are copies.
    """
    if type(value) is np.ndarray:
        # New memory, which `_fastpath_pool.c` has taken, belongs to a capsule.
        is_new = type(value.base).__name__ == "PyCapsule"
        pairs = zip(arrays, views or map(host_view, arrays), strict=True)
        for x, view in () if is_new else pairs:
            if value is view or _lies_in(value, view, x):
                if _is_all_of(value, view):
                    return x
                offset = x.offset + _address(value) - _address(view)
                return x._view(value.shape, value.strides, offset, value.dtype)
        if value.nbytes <= _MAX_HOST_RESULT:
            return _of_host_value(value.copy(), queue, arrays)
        return from_host(value, queue, _usm_type(arrays))
    if isinstance(value, tuple):
        kinds = expected.items if isinstance(expected, Items) else (None,) * len(value)
        items = [
            result_of(item, kind, queue, arrays, views)
            for item, kind in zip(value, kinds, strict=True)
        ]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(expected, Value) and not expected.is_weak and not expected.ndim:
        # For an element of an array, the uncompiled function returns an array.
        return _of_host_value(np.array(value, expected.dtype), queue, arrays)
    return value


def _of_host_value(value: np.ndarray, queue: Any, arrays: Sequence[ndarray]) -> ndarray:
    """Return an array of a small value, which stays on the host if the device reads its memory."""
    if traits_of(queue).shares_memory:
        return ndarray._from_host_value(value, queue, _usm_type(arrays))
    return from_host(value, queue, _usm_type(arrays))


def _usm_type(arrays: Sequence[ndarray]) -> str:
    """Return the USM type of a new array, coerced from the arguments."""
    found = arrays[0].usm_type if arrays else "device"
    for x in arrays:
        if x.usm_type != found:
            found = coerced_usm_type(found, x.usm_type)
    return found


def _address(view: np.ndarray) -> int:
    address: int = view.__array_interface__["data"][0]
    return address


def _is_all_of(value: np.ndarray, view: np.ndarray) -> bool:
    """Return whether two host arrays are the same view of the same elements."""
    one, other = ((v.shape, v.strides, v.dtype, _address(v)) for v in (value, view))
    return one == other


def _lies_in(value: np.ndarray, view: np.ndarray, x: ndarray) -> bool:
    """Return whether a result is a view of an argument's memory."""
    if not value.size or not view.size or value.flags.owndata:
        return False
    return bool(np.may_share_memory(value, view))
