"""Operations that NumPy or dpnp compute on the memory of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import _hooks, config
from dparray._array.fresh import from_host
from dparray._array.ndarray import materialize, ndarray
from dparray._evaluate import host, writes
from dparray._evaluate.library import library_call
from dparray._placement import common_placement
from dparray._runtime import access, device_facts
from dparray._runtime.device_facts import computes_in_double
from dparray.exceptions import DparrayError, DTypeError, ShapeError
from dparray.memory import copies, exchange


def call_library(
    name: str,
    function: Callable[..., Any],
    arrays: Sequence[tuple[str, Any]],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Let a function of dpnp.tensor work on arrays: check, hand over, take back.

    ``function`` is called with the arrays as tensors, then ``args`` and ``kwargs``; tensors it
    returns become arrays over the same memory. Its errors come out as ours.
    """
    common_placement(name, arrays)
    return library_call(
        name, function, [array._tensor for _, array in arrays], args, kwargs, _from_tensor
    )


def call_numpy(function: Callable[..., Any], arrays: Sequence[ndarray], out: ndarray) -> bool:
    """Let NumPy compute in the memory of arrays on a CPU device; false on any other.

    For what a measurement found faster there. ``function`` is called with NumPy arrays over
    ``arrays`` and over ``out``, which it fills; whatever is pending on ``out`` is computed first.
    The calling thread waits for the queue's work before it.
    """
    if not (config.host_tier and device_facts.is_cpu(out.sycl_queue)):
        return False
    layouts = [materialize(x) for x in (*arrays, out)]
    if access.holds:
        access.before_write(layouts[-1])
    writes.settle_readers(out.block)
    views = copies.host_views(out.sycl_queue, *layouts)
    if views is None:
        return False
    with np.errstate(all="ignore"):
        function(*views)
    if _hooks.subscribers:
        _hooks.emit("end", queue=out.sycl_queue)
    return True


def numpy_views(*arrays: ndarray) -> list[np.ndarray] | None:
    """NumPy arrays over arrays on a CPU device with double precision, which NumPy computes in, to
    read from; ``None`` on any other device.

    The calling thread waits for the queue's work; the views are good until work is submitted.
    """
    queue = arrays[0].sycl_queue
    if not (config.host_tier and computes_in_double(queue)):
        return None
    seen = [view for x in arrays if (view := x._on_host) is not None]
    if len(seen) == len(arrays) and host.is_ready(queue):
        if _hooks.subscribers:
            _hooks.emit("host", queue=queue, nbytes=sum(view.nbytes for view in seen))
        return seen
    return copies.host_views(queue, *map(materialize, arrays))


def call_neighbour(
    name: str,
    function: Callable[..., Any],
    arrays: Sequence[tuple[str, Any]],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Let a function of dpnp itself work on arrays, which come to it as dpnp arrays over the same
    memory; otherwise as :func:`call_library`.
    """

    def on_dpnp_arrays(*operands: Any, **options: Any) -> Any:
        count = len(arrays)
        exchange.wait_for_host_tasks(arrays[0][1].sycl_queue)
        return function(*map(exchange.dpnp_array, operands[:count]), *operands[count:], **options)

    return call_library(name, on_dpnp_arrays, arrays, *args, **kwargs)


def call_either(
    name: str, function: Callable[..., Any], arrays: Sequence[tuple[str, ndarray]]
) -> Any:
    """Let NumPy (on a CPU device) or dpnp (on any other) compute what both have.

    ``function`` is called with the module, ``numpy`` or ``dpnp``, and the arrays in its own type;
    arrays it returns, alone or in a tuple or list, become ours on the common queue.
    """
    placement = common_placement(name, arrays)
    views = numpy_views(*(x for _, x in arrays))
    if views is None:
        return call_neighbour(name, lambda *operands: function(exchange.dpnp, *operands), arrays)
    try:
        with np.errstate(all="ignore"):
            results = function(np, *views)
    except (DparrayError, np.linalg.LinAlgError, IndexError):
        raise
    except ValueError as error:
        raise ShapeError(f"{name}: {error}") from None
    except TypeError as error:
        raise DTypeError(f"{name}: {error}") from None
    if isinstance(results, tuple | list):
        return type(results)(from_host(np.asarray(part), *placement) for part in results)
    return from_host(np.asarray(results), *placement)


def _from_tensor(tensor: Any) -> ndarray:
    return ndarray._from_layout(*exchange.layout_of_tensor(tensor))
