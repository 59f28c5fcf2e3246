"""Selection by masks in large arrays: elements, their indices, and masked assignment.

The kernels use chained tiles, as those of :mod:`dparray.algorithms.line_scans`, and run on the same
devices. Other devices have :func:`dparray.algorithms.tiles.positions`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dparray import _dtypes, _hooks, config
from dparray._array.allocation import empty_on
from dparray._array.apply import reduce_array
from dparray._array.assignment import assign
from dparray._array.dispatch import host_views, result_of_host
from dparray._array.ndarray import materialize, ndarray
from dparray._driver import traits_of
from dparray._evaluate import background, cost_model, limits
from dparray._graph.reductions import REDUCTIONS
from dparray._kernel.decorators import device_func
from dparray._kernel.launch import call_kernel
from dparray._placement import Placement, placement_of
from dparray.algorithms import tiles
from dparray.algorithms.line_scans import MIN_ELEMENTS, chain_memory, chain_of, runs_scans
from dparray.algorithms.ranges import kernel_of
from dparray.kernel_api import NdRange
from dparray.kernels import compact

# Costs, in additions of NumPy: of reading a mask element, of a branch misprediction, and of one
# element in a kernel with chained tiles on two cores.
_WALKING, _UNEXPECTED, _CHAINING = 2, 40, 5

# The number of mask elements whose changes are counted, and of those in one sample.
_LOOKED_AT, _PART = 1 << 16, 1 << 12

# The number of cores on which NumPy still finds indices as fast as a kernel.
_CORES_OF_NUMPY = 4

# The number of elements of a tile: the mask and the selected elements fit in the cache of a core.
_TILE = 1 << 15


def is_large_mask(x: ndarray, mask: ndarray) -> bool:
    """Return whether a mask fits the first axes of ``x``, and a kernel should select by it."""
    is_worth = mask.size >= MIN_ELEMENTS or (mask.size and not runs_scans(x.queue))
    shape = mask.shape
    return bool(is_worth) and shape == x.shape[: len(shape)]


def can_locate(x: ndarray) -> bool:
    """Return whether the kernels can find indices in ``x``, and are worth a launch.

    NumPy finds those of a Boolean vector without branches, as fast as the kernels on four cores.
    """
    is_fast = x.ndim == 1 and x.dtype.kind == "b" and limits.may_compute_on_host()
    traits = traits_of(x.queue)
    if is_fast and traits.shares_memory and traits.units <= _CORES_OF_NUMPY and config.host_tier:
        return False
    return x.size >= MIN_ELEMENTS


def can_select(x: ndarray, mask: ndarray) -> bool:
    """Return whether the kernels can select the elements of ``x`` by ``mask``, worth a launch."""
    return (
        runs_scans(x.queue)
        and is_large_mask(x, mask)
        and mask.shape == x.shape
        and x.dtype != np.float16
    )


def selected(x: ndarray, mask: ndarray, placement: Placement) -> ndarray:
    """Return the elements of ``x`` where ``mask`` is true, in order, as a 1-D array.

    The host waits for the mask, since the mask determines the size.
    """
    later = _Later.of(x.dtype, placement) if limits.compiles_in_background() else None
    views = host_views("x[mask]", x, mask) if later is not None or _may_be_for_numpy(mask) else None
    if views is not None:
        lost = _lost_by_numpy(views[1])
        if lost <= 0 or (later is not None and later.is_worth_more(lost)):
            return result_of_host(views[0][views[1]], views, *placement)
    flat, count = _flat(mask)
    out = empty_on(placement, (count,), x.dtype)
    if count:
        _launch(compact.make_select_kernel, [x.reshape(-1)], flat, [out])
    return out


class _Later:
    """The selection kernel for a dtype, while it is being compiled.

    Attributes:
        lost: the seconds that selecting with NumPy in the meantime has cost more than the kernel.
    """

    #: By dtype and queue; ``None`` once the kernel is ready. A forked process has no compile
    #: thread.
    _all: ClassVar[dict[Any, _Later | None]] = {}

    @classmethod
    def of(cls, dtype: np.dtype[Any], placement: Placement) -> _Later | None:
        """Return the kernel being compiled for a dtype, or ``None`` if it is ready."""
        key = os.getpid(), dtype, placement.queue
        if key not in cls._all:
            cls._all[key] = cls(key, placement)
        return cls._all[key]

    def __init__(self, key: tuple[int, Any, Any], placement: Placement) -> None:
        self._key, self._placement = key, placement
        self._is_asked_for = False
        self.lost = 0.0

    def is_worth_more(self, lost: float) -> bool:
        """Return whether NumPy selects again, losing these seconds, instead of a wait."""
        if limits.is_worth_waiting(lost, self.lost):
            return False
        self.lost += lost
        if not self._is_asked_for and limits.is_worth_asking(self.lost):
            self._is_asked_for = True
            arguments = (
                empty_on(self._placement, (1,), self._key[1]),
                empty_on(self._placement, (1,), _dtypes.bool),
                *chain_memory(self._placement.queue, 1, _dtypes.int64),
                empty_on(self._placement, (1,), self._key[1]),
                _TILE,
            )
            background.ask(partial(self._make_ready, arguments, _hooks.caller()))
        return True

    def _make_ready(self, arguments: tuple[Any, ...], by: _hooks.Caller) -> None:
        with _hooks.attributed_to(by):
            kernel_of(_with_claims, compact.make_select_kernel).make_ready(1, *arguments)
        self._all[self._key] = None


def is_for_numpy(mask: ndarray) -> bool:
    """Return whether NumPy selects by a mask faster than a kernel; waits for the mask."""
    views = host_views("x[mask]", mask) if _may_be_for_numpy(mask) else None
    return views is not None and _lost_by_numpy(views[0]) <= 0


def _may_be_for_numpy(mask: ndarray) -> bool:
    """Return whether NumPy is faster if the mask has few changes."""
    return limits.chooses() and _lead_of_numpy(mask.size) > 0


def _lead_of_numpy(size: int) -> float:
    """Return the additions that NumPy saves against a kernel for a mask without changes."""
    return cost_model.break_even() + size * (_CHAINING - _WALKING)


def _lost_by_numpy(mask: np.ndarray) -> float:
    """Return the seconds that NumPy loses against a kernel for a mask.

    NumPy traverses the mask on one core, and each change between false and true is a mispredicted
    branch.
    """
    flat = mask.reshape(-1)
    # Samples of a large mask are enough: reading all of it would take as long as the selection.
    step = max(1, flat.size // _LOOKED_AT)
    changes = 0
    for start in range(0, flat.size, step * _PART):
        part = flat[start : start + _PART]
        changes += int(np.count_nonzero(part[1:] != part[:-1]))
    lead = _lead_of_numpy(flat.size)
    return (changes * step * _UNEXPECTED - lead) * cost_model.terms().addition


def positions(mask: ndarray) -> ndarray:
    """Return the flat indices where ``mask`` is true, as int64."""
    if tiles.uses_tiles(mask.queue):
        return tiles.positions(mask.reshape(-1))
    flat, count = _flat(mask)
    out = empty_on(placement_of(mask), (count,), _dtypes.int64)
    if count:
        _launch(compact.make_positions_kernel, [], flat, [out])
    return out


def put_selected(x: ndarray, mask: ndarray, value: ndarray, function: str) -> None:
    """Write ``value``, a sequence or a single element, where ``mask`` is true.

    Raises:
        ShapeError: ``value`` does not broadcast to the shape of the selected elements.
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
    """Return a mask in memory as a 1-D array, and the number of its true elements."""
    flat = mask.reshape(-1)
    materialize(flat)
    views = host_views("x[mask]", flat) if limits.chooses() else None
    if views is not None:
        return flat, int(np.count_nonzero(views[0]))
    count = reduce_array(REDUCTIONS["sum"], flat, (0,), False, _dtypes.int64, _dtypes.int64)
    return flat, int(count.item())


def _launch(
    factory: Callable[..., Any], before: list[ndarray], mask: ndarray, after: list[ndarray]
) -> None:
    count = -(-mask.size // _TILE)
    chain = chain_memory(mask.queue, count, _dtypes.int64)
    call_kernel(
        kernel_of(_with_claims, factory),
        NdRange(count, 1),
        *before,
        mask,
        *chain,
        *after,
        _TILE,
    )


def _with_claims(factory: Callable[..., Any]) -> Callable[..., None]:
    """Return a factory's kernel with the device function that reserves indices in the result."""
    made: Callable[..., None] = factory(device_func(compact.make_claim(chain_of("add"))))
    return made
