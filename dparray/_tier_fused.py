"""The fused tier: one generated kernel for a whole expression.

Kernels are kept by structure: neither shapes nor scalar values are part of it, so a loop that
changes them compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ctypes import c_int64
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from dparray import _codegen, _codegen_reduction, _compiler, _usm
from dparray._expr import Node, Scalar, pending_order
from dparray._launcher import launch
from dparray._schedule import LOAD_ELEMENTS, counted_elements, is_worth_compiling


class Fused:
    """A structure's kernel, and what was computed of it before there was one.

    Attributes:
        kernel: the compiled kernel, or ``None``.
        source: its text.
        origin: ``"compiled"`` or ``"disk"``; empty while there is no kernel.
        elements: how many elements other tiers computed meanwhile, few of a call counted as more.
    """

    __slots__ = ("elements", "kernel", "origin", "source")

    def __init__(self) -> None:
        self.kernel: Any = None
        self.source = ""
        self.origin = ""
        self.elements = 0


kernels: dict[Any, Fused] = {}


def forget() -> None:
    """Drop all kernels held in memory, as a new process would; those on disk stay."""
    kernels.clear()
    _compiler.forget()


def _obtained(
    structure: Any,
    size: int,
    source_of: Callable[[Any], str],
    types: Callable[[], tuple[str, ...]],
    must_compile: bool,
) -> Any:
    """The kernel of a structure, or ``None`` while it is not worth compiling."""
    fused = kernels.get(structure)
    if fused is None:
        fused = kernels[structure] = Fused()
    if fused.kernel is not None:
        return fused.kernel
    is_first = fused.elements == 0
    fused.elements += counted_elements(size)
    compiles = must_compile or is_worth_compiling(size, fused.elements)
    if not compiles and not (is_first and size >= LOAD_ELEMENTS):
        return None
    fused.source = source_of(structure)
    function = _codegen.function_of(fused.source)
    fused.kernel = _compiler.recall_kernel(function, types(), {})
    if fused.kernel is not None:
        fused.origin = "disk"
    elif compiles:
        fused.kernel = _compiler.obtain_kernel(function, types(), {})
        fused.origin = "compiled"
    return fused.kernel


def run(outputs: Sequence[tuple[Node | Scalar, Any]], order: Sequence[Node], size: int) -> bool:
    """Compute all values, of one shape, in one kernel; false if compiling does not pay yet.

    ``order`` holds the pending nodes, operands before users.
    """
    if not all(_codegen.can_store(value, target.dtype) for value, target in outputs):
        return False
    targets = [target for _, target in outputs]
    program = _codegen.linearize(order, outputs, targets[0].shape)
    structure = program.structure
    kernel = _obtained(
        structure,
        size,
        _codegen.source_of,
        lambda: (f"item:{1 + structure.has_rows}", *_codegen.types_of(structure)),
        False,
    )
    if kernel is None:
        return False
    flat = _flat_arrays((*program.arrays, *targets))
    flat += program.scalars
    flat += program.numbers
    launch(
        kernel,
        program.global_range,
        None,
        flat,
        targets[0].block.queue,
        (),
        _owners((*program.arrays, *targets)),
    )
    return True


@lru_cache(maxsize=64)
def _compute_units(queue: Any) -> int:
    return int(queue.sycl_device.max_compute_units)


def reduce(
    name: str,
    value: Node,
    axes: tuple[int, ...],
    loop: np.dtype[Any],
    target: Any,
    must_compile: bool = False,
) -> bool:
    """Reduce in generated kernels, pass after pass until one result is left for each output.

    Returns:
        Whether it did; false if compiling does not pay yet.
    """
    program = _codegen_reduction.linearize_reduction(
        pending_order([value]), value, axes, name, loop, _compute_units(value.queue)
    )
    structure = program.structure
    kernel = _obtained(
        structure,
        value.size,
        _codegen_reduction.source_of,
        lambda: ("nditem:1", *_codegen_reduction.types_of(structure)),
        must_compile,
    )
    if kernel is None:
        return False
    result = target
    if program.partials > 1:
        kept = prod(target.shape)
        is_inner = program.partials_are_inner
        shape = (kept, program.partials) if is_inner else (program.partials, kept)
        result = _usm.allocate(value.queue, value.usm_type, shape, loop)
    launch(
        kernel,
        program.global_range,
        program.local_range,
        [*_flat_arrays((*program.arrays, result)), *program.scalars, *program.numbers],
        value.queue,
        (),
        _owners((*program.arrays, result)),
    )
    if result is not target:
        partial = Node.leaf(result, value.queue, value.usm_type)
        reduce(name, partial, (1 if is_inner else 0,), loop, target, must_compile=True)
    return True


def _owners(layouts: Iterable[Any]) -> tuple[Any, ...]:
    """The blocks outside the pool, which a launch has to keep alive."""
    return tuple(layout.block for layout in layouts if isinstance(layout.block, _usm.BorrowedBlock))


def _flat_arrays(layouts: Iterable[Any]) -> list[Any]:
    """The flattened arguments of layouts, each seen as one contiguous dimension."""
    flat: list[Any] = []
    for layout in layouts:
        itemsize = c_int64(layout.dtype.itemsize)
        count = c_int64(layout.block.nbytes // layout.dtype.itemsize)
        flat += (count, itemsize, _usm.memory_at(layout.block, layout.offset), count, itemsize)
    return flat
