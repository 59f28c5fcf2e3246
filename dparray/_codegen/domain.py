"""The iteration space of kernels with reductions, and the device facts that divide it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from dparray._codegen.indexing import element_strides
from dparray._layout import Layout, reduced_shape

# Up to this many elements, indices that have no common stride are divided in one kernel.
MAX_TAKEN_APART = 1 << 13


class Machine(NamedTuple):
    """The device facts that determine how a kernel is divided.

    Attributes:
        compute_units: the number of compute units.
        lanes: the work-items of a group that processes one output, or neighboring outputs in
            columns: a vector. With more, a CPU device traverses the memory once for each vector of
            them (measured: 16 reach 1.4 times the speed of 64, and a barrier among 16 is free).
        sub_group: the maximum size of a sub-group on a GPU, whose kernels merge by exchange within
            sub-groups; 0 on other devices, whose kernels do not use sub-groups.
        group: the maximum size of a work-group.
        local_memory: the bytes of local memory available to a work-group.
        threads: the sub-groups that a compute unit runs concurrently.
        is_fixed: whether sub-groups always have that size, in groups of a multiple of it.
        loads_vectors: whether element-wise kernels load consecutive small elements as vectors.
        bytes_in_flight: the bytes that their work-items load before they store, if they do; 0 if a
            work-item has one element.
        lines: the largest first dimension of a range of two dimensions.
    """

    compute_units: int
    lanes: int = 16
    sub_group: int = 0
    group: int = 8192
    local_memory: int = 1 << 15
    threads: int = 1
    is_fixed: bool = False
    loads_vectors: bool = False
    bytes_in_flight: int = 0
    lines: int = 2**31 - 1

    @property
    def unit_items(self) -> int:
        """The work-items that a compute unit runs concurrently."""
        return self.threads * max(self.sub_group, 1)

    @property
    def resident_items(self) -> int:
        """The work-items that the device runs concurrently; with fewer, a part of it is idle."""
        return self.compute_units * self.unit_items


class Domain(NamedTuple):
    """The iteration space of a kernel: a shape, and its axes that are reduced."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def row(self) -> tuple[int, ...]:
        """The shape with the reduced axes of length 1."""
        return reduced_shape(self.shape, self.axes, True)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape without the reduced axes."""
        return reduced_shape(self.shape, self.axes, False)

    @property
    def is_leading(self) -> bool:
        """Whether the reduced axes come first, so that reduced values align with the others."""
        return self.axes == tuple(range(len(self.axes)))


def last_run(domain: Domain, layouts: Sequence[Layout]) -> Domain:
    """Return the domain with only the last reduced axes, as many as one loop can traverse.

    Dividing an index for each element would cost more than a second kernel, unless there are few
    elements.

    Args:
        domain: the whole domain.
        layouts: the layouts of the input arrays, which broadcast to the domain's shape.
    """
    shape = domain.shape
    axes = [axis for axis in domain.axes if shape[axis] > 1]
    start = len(axes) - 1
    if start <= 0:
        return domain
    is_large = math.prod(shape) > MAX_TAKEN_APART
    walked = element_strides(layouts, shape) if is_large else []
    while start > 0:
        outer, inner = axes[start - 1], axes[start]
        is_apart = any(extent != 1 for extent in shape[outer + 1 : inner])
        if is_apart or any(each[outer] != each[inner] * shape[inner] for each in walked):
            break
        start -= 1
    return Domain(shape, tuple(axes[start:])) if start else domain


def spread_layout(layout: Layout, domain: Domain) -> Any:
    """Add the reduced axes, with length 1, to a layout without them."""
    shape, strides = list(layout.shape), list(layout.strides)
    shape[:0] = [1] * (len(domain.output_shape) - len(shape))
    strides[:0] = [0] * (len(domain.output_shape) - len(strides))
    for axis in domain.axes:
        shape.insert(axis, 1)
        strides.insert(axis, 0)
    return layout._replace(shape=tuple(shape), strides=tuple(strides))
