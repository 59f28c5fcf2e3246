"""Choose the backend of a public function, in one place for all functions.

Small arrays that no work writes are computed before any check, by
:func:`dparray._array.host_fastpath.compute_small`. For all others :func:`compute` tries, in this
order:

1. *kernel*: a dparray kernel, if there is one for such operands;
2. *host*: NumPy, in the memory of arrays on a CPU device, if measurements showed that it is faster;
3. *library*: the library of the device's driver (:mod:`dparray.memory.libraries`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from threading import get_ident
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from dparray import _hooks, config
from dparray._array import host_fastpath
from dparray._array.allocation import from_host
from dparray._array.ndarray import host_view, materialize, ndarray
from dparray._driver import traits_of
from dparray._evaluate import host as host_executor
from dparray._evaluate import limits, writes
from dparray._evaluate.library import library_call
from dparray._placement import Placement, common_placement, placement_of, usm_rule
from dparray._runtime import host_maps, queues
from dparray.exceptions import DparrayError, DTypeError, ShapeError
from dparray.memory import copies
from dparray.memory.libraries import Library, library_of

Function = Callable[..., Any]
Named = Sequence[tuple[str, Any]]


class _Call(NamedTuple):
    """One call of a public function, the same for every backend.

    Attributes:
        name: the public function.
        arrays: the operands.
        placement: the placement of the operands.
        out: the output array, if given.
        details: the event data for subscribers if the backend is not a kernel.
    """

    name: str
    arrays: Sequence[Any]
    placement: Placement
    out: ndarray | None
    details: dict[str, str]


#: Returned by a backend that cannot compute with these operands.
_NOT_HERE: Final = object()


def compute(
    name: str,
    arrays: Named,
    *,
    kernel: Function | None = None,
    host: Function | Literal[True] | None = None,
    library: Function | None = None,
    out: ndarray | None = None,
) -> Any:
    """Compute with the first suitable backend, in the order given in this module's docstring.

    Args:
        name: the public function, for messages.
        arrays: the operands with their names.
        kernel: called without arguments; returns an array, or ``None`` if there is no suitable
            kernel.
        host: called with NumPy arrays over ``arrays``, and over ``out`` if given, which it fills.
            The calling thread first waits for the work on them. ``True``: ``library``, called
            with NumPy in place of the library.
        library: called with the :class:`dparray.memory.libraries.Library` and its arrays over
            ``arrays``, and over ``out`` if given, which it fills.
        out: an array of the result's shape and dtype on the common queue, to be filled.

    Returns:
        ``out``, or the function's result with dparray arrays on the common queue, also inside a
        tuple or a list. ``None`` if no backend is suitable.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        ShapeError, DTypeError, AxisError: the function does not support such operands.
    """
    if host is True:
        assert library is not None
        host = partial(library, np)
    if kernel is None is out and arrays:
        small = compute_at_once(host, arrays)
        if small is not None:
            return small
    placement = common_placement(name, arrays) if arrays else placement_of(out)
    details = _event_details(name, arrays, placement) if _hooks.subscribers else {}
    mark = _hooks.latest_work()
    call = _Call(name, [x for _, x in arrays], placement, out, details)
    for executor, function in (
        (_by_kernel, kernel),
        (_by_host, host),
        (_by_library, library),
    ):
        if function is not None:
            result = executor(function, call)
            if result is not _NOT_HERE:
                if executor is _by_host and _hooks.latest_work() is mark:
                    _hooks.recent.append((name, "NumPy for", placement.queue, get_ident()))
                _hooks.note_call(name, mark, result)
                return result
    return None


def by_name(name: str) -> Function:
    """Return what ``library=`` takes for a function that NumPy and the libraries have by a name,
    for example ``"linalg.inv"``.
    """
    find = attrgetter(name)

    def function(library: Any, *arrays: Any, **options: Any) -> Any:
        return find(library)(*arrays, **options)

    return function


def into_out(function: Function) -> Function:
    """Return what ``library=`` takes for a function whose result is to be stored in ``out``."""

    def fill(library: Any, *arrays: Any) -> None:
        library.store(arrays[-1], function(library, *arrays[:-1]))

    return fill


def compute_at_once(host: Function | None, arrays: Named) -> Any:
    """Return NumPy's result for small arrays that no work writes, like :func:`compute`; or
    ``None``.

    Args:
        host: called with NumPy arrays, which it does not write; ``None`` gives ``None``.
        arrays: the operands with their names.
    """
    first = arrays[0][1]
    queue, usm_type, size, views = first.queue, first.usm_type, 0, []
    for _, x in arrays:
        view = x._host_view
        if view is None or x.queue is not queue or x.usm_type != usm_type:
            return None
        size += view.size
        views.append(view)
    if (
        host is None
        or size > limits.host_elements
        or _hooks.subscribers
        or not host_fastpath.is_ready(*(x for _, x in arrays))
        or "fp64" not in traits_of(queue).aspects
    ):
        return None
    results = host_executor.call(host, *views, owner=first)
    if results is None:  # The general path raises the right error.
        return None
    if isinstance(results, tuple | list):
        parts = [result_of_host(part, views, queue, usm_type) for part in results]
        return parts if isinstance(results, list) else tuple(parts)
    return result_of_host(results, views, queue, usm_type)


def result_of_host(result: Any, views: list[np.ndarray], queue: Any, usm_type: str) -> ndarray:
    """Return an array for NumPy's result, which is copied to USM memory only when something needs
    it there: the copy takes as long as many functions.
    """
    values = np.asarray(result)
    is_shared = values.base is not None or any(values is view for view in views)
    is_large = values.size > host_fastpath.HEAP_ELEMENTS
    if values.dtype.char not in host_fastpath.NUMBERS or (is_shared and is_large):
        return from_host(values, queue, usm_type)
    return ndarray._from_host_value(values.copy("K") if is_shared else values, queue, usm_type)


def _event_details(name: str, arrays: Named, placement: Placement) -> dict[str, str]:
    """Record a call of a backend other than a kernel: the reason, and the result's memory."""
    operands = ", ".join(
        f"{x.dtype} of shape {x.shape}" + " (not contiguous)" * (not x.flags.c_contiguous)
        for _, x in arrays
    )
    because = f"no kernel of dparray's is for {name} of {operands} on this device"
    kinds = [x.usm_type for _, x in arrays]
    return {"because": because, "usm_type": usm_rule(placement.usm_type, kinds)}


def _by_kernel(function: Function, call: _Call) -> Any:
    result = function()
    return _NOT_HERE if result is None else result


def _by_host(function: Function, call: _Call) -> Any:
    name, arrays, placement, out, details = call
    if details:
        details = {
            **details,
            "because": f"{details['because']}, a CPU, in whose memory NumPy computes",
        }
    if out is None:
        views = host_views(name, *arrays, **details)
    else:
        views = _host_views_to_write(name, arrays, out, details)
    if views is None:
        return _NOT_HERE
    try:
        with np.errstate(all="ignore"):
            results = function(*views)
    except (DparrayError, IndexError):
        raise
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(f"{name}: {error}") from None
    except ValueError as error:
        raise ShapeError(f"{name}: {error}") from None
    except TypeError as error:
        raise DTypeError(f"{name}: {error}") from None
    if out is not None:
        if _hooks.subscribers:
            _hooks.emit("end", queue=placement.queue)
        return out
    if isinstance(results, tuple | list):
        parts = [result_of_host(part, views, *placement) for part in results]
        return parts if isinstance(results, list) else tuple(parts)
    return result_of_host(results, views, *placement)


def host_views(
    name: str, *arrays: ndarray, because: str = "", usm_type: str = ""
) -> list[np.ndarray] | None:
    """Return NumPy arrays over arrays on a CPU device with double precision, for reading; ``None``
    on any other device.

    The calling thread waits for the work on them; the views are valid until work is submitted.
    """
    if not (config.host_tier and "fp64" in traits_of(arrays[0].queue).aspects):
        return None
    return _views(name, arrays, because, usm_type)


def _views(
    name: str, arrays: Sequence[ndarray], because: str = "", usm_type: str = ""
) -> list[np.ndarray] | None:
    queue = arrays[0].queue
    views = []
    for x in arrays:
        view = host_view(x)
        if view is None or not host_executor.is_ready(x._block):
            layouts = map(materialize, arrays)
            return copies.host_views(name, queue, *layouts, because=because, usm_type=usm_type)
        views.append(view)
    if _hooks.subscribers:
        nbytes = sum(view.nbytes for view in views)
        _hooks.emit("host", queue=queue, nbytes=nbytes, because=because, usm_type=usm_type)
    return views


def _host_views_to_write(
    name: str, arrays: Sequence[ndarray], out: ndarray, details: dict[str, str]
) -> list[np.ndarray] | None:
    """Return views as :func:`host_views` does, the last one writable after its pending readers."""
    if not (config.host_tier and traits_of(out.queue).shares_memory):
        return None
    target = materialize(out)
    if host_maps.holds:
        host_maps.before_write(target)
    writes.flush_dependents(target.block)
    queues.wait_to_write(target.block)
    return _views(name, [*arrays, out], **details)


def _by_library(function: Function, call: _Call) -> Any:
    name, arrays, placement, out, details = call
    library = library_of(placement.queue)
    layouts = [materialize(x) for x in arrays]
    if host_maps.holds:
        host_maps.before_read(*layouts)
    if out is not None:
        writes.flush_dependents(out.block)
        arrays = [*arrays, out]
        layouts.append(materialize(out))
        if host_maps.holds:
            host_maps.before_write(layouts[-1])
    if traits_of(placement.queue).library:
        views = [x._library_array for x in arrays]
    else:  # copies on the host, for this call
        views = [library.array(layout) for layout in layouts]
    function = partial(function, library)
    result = library_call(
        library, placement.queue, name, function, views, placement.usm_type, details
    )
    return _wrapped(library, result) if out is None else out


def _wrapped(library: Library, result: Any) -> Any:
    """Return a library's result with dparray's arrays."""
    if library.is_array(result):
        return ndarray._from_layout(*library.layout(result))
    if isinstance(result, tuple | list):
        parts = [_wrapped(library, part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result
