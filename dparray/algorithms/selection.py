"""Selection by masks of large arrays: elements, their positions, and new values for them.

In kernels whose tiles are chained, as those of :mod:`dparray.algorithms.line_scans`: on the devices
that run them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dparray import _dtypes
from dparray._array.apply import reduce_array
from dparray._array.assignment import assign
from dparray._array.executors import host_views
from dparray._array.fresh import empty_on, from_host
from dparray._array.ndarray import materialize, ndarray
from dparray._evaluate import cost_model, limits
from dparray._graph.reductions import REDUCTIONS
from dparray._kernel.decorators import device_func
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement, placement_of
from dparray.algorithms.line_scans import FEWEST_ELEMENTS, chain_memory, chain_of, runs_scans
from dparray.algorithms.ranges import kernel_of
from dparray.kernel_api import NdRange
from dparray.kernels import compact

# In additions of NumPy's: what it takes to look at an element of a mask and to go wrong at one, and
# what a kernel takes for an element, its chain of tiles included.
_WALKING, _UNEXPECTED, _CHAINING = 2, 40, 10

# Elements of a mask whose changes are counted, in parts of so many.
_LOOKED_AT, _PART = 1 << 18, 1 << 12

# Elements of a tile: the mask and what it selects stay in the cache of a core.
_TILE = 1 << 15


def is_large_mask(x: ndarray, mask: ndarray) -> bool:
    """Whether a mask fits the first axes of ``x``, and selecting is worth a launch."""
    return mask.size >= FEWEST_ELEMENTS and mask.shape == x.shape[: mask.ndim]


def can_locate(x: ndarray) -> bool:
    """Whether kernels are there for the positions of elements of ``x``, and worth their launch."""
    return x.size >= FEWEST_ELEMENTS and runs_scans(x.sycl_queue)


def can_select(x: ndarray, mask: ndarray) -> bool:
    """Whether kernels are there for what ``mask`` selects of ``x``, and worth their launch."""
    return (
        is_large_mask(x, mask)
        and mask.ndim == x.ndim
        and x.dtype != np.float16
        and runs_scans(x.sycl_queue)
    )


def selected(x: ndarray, mask: ndarray, placement: Placement) -> ndarray:
    """The elements of ``x`` where ``mask`` is true, in their order, in one dimension.

    The host waits for the mask, which decides who selects.
    """
    if is_for_numpy(mask):
        views = host_views(x, mask)
        if views is not None:
            return from_host(views[0][views[1]], *placement)
    flat, count = _flat(mask)
    out = empty_on(placement, (count,), x.dtype)
    if count:
        _launch(compact.make_select_kernel, [x.reshape(-1)], flat, [out])
    return out


def is_for_numpy(mask: ndarray) -> bool:
    """Whether NumPy selects by a mask in less time than a kernel; waits for the mask.

    It walks the mask on one core, and each change from false to true or back is a branch that the
    processor did not expect.
    """
    if not limits.chooses():
        return False
    terms = cost_model.terms()
    per_element = _CHAINING / terms.cores - _WALKING
    left = (terms.launch + terms.wake) / terms.operation + mask.size * per_element
    views = host_views(mask) if left > 0 else None
    if views is None:
        return False
    flat = views[0].reshape(-1)
    # Of a large mask, parts of it tell enough: all of it would take as long as the selection.
    step = max(1, flat.size // _LOOKED_AT)
    parts = [flat[at : at + _PART] for at in range(0, flat.size, step * _PART)]
    changes = sum(int(np.count_nonzero(part[1:] != part[:-1])) for part in parts)
    return changes * step * _UNEXPECTED < left


def positions(mask: ndarray) -> ndarray:
    """The positions in the flattened array where ``mask`` is true, as int64."""
    flat, count = _flat(mask)
    out = empty_on(placement_of(mask), (count,), _dtypes.int64)
    if count:
        _launch(compact.make_positions_kernel, [], flat, [out])
    return out


def put_selected(x: ndarray, mask: ndarray, value: ndarray, function: str) -> None:
    """Write ``value``, one element after another or the same one, where ``mask`` is true.

    Raises:
        ShapeError: its shape is not that of the selected elements, nor broadcast to it.
    """
    target = x if x.flags.c_contiguous else x.copy()
    if mask.block is x.block:
        mask = mask.copy()
    flat, count = _flat(mask)
    values = empty_on(placement_of(x), (count,), x.dtype)
    assign(values, value, function)
    if count:
        _launch(compact.make_expand_kernel, [target.reshape(-1)], flat, [values])
        if target is not x:
            assign(x, target)


def _flat(mask: ndarray) -> tuple[ndarray, int]:
    """A mask in memory, in one dimension, and how many of its elements are true."""
    flat = mask.reshape(-1)
    materialize(flat)
    views = host_views(flat) if limits.chooses() else None
    if views is not None:
        return flat, int(np.count_nonzero(views[0]))
    count = reduce_array(REDUCTIONS["sum"], flat, (0,), False, _dtypes.int64, _dtypes.int64)
    return flat, int(count.item())


def _launch(
    factory: Callable[..., Any], before: list[ndarray], mask: ndarray, after: list[ndarray]
) -> None:
    tiles = -(-mask.size // _TILE)
    chain = chain_memory(mask.sycl_queue, tiles, _dtypes.int64)
    call_kernel(
        kernel_of(_with_claims, factory),
        NdRange((tiles,), (1,)),
        *before,
        mask,
        *chain,
        *after,
        _TILE,
    )


def _with_claims(factory: Callable[..., Any]) -> Callable[..., None]:
    """A factory's kernel, given the device function that claims positions in the result."""
    made: Callable[..., None] = factory(device_func(compact.make_claim(chain_of("add"))))
    return made
