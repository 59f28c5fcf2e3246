"""The iteration space of kernels with reductions, and the facts of a device that divide it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from dparray._codegen.indexing import element_strides
from dparray._layout import Layout, reduced_shape

# Of up to so many elements, indices that are not one stride apart are taken apart in one kernel.
MAX_TAKEN_APART = 1 << 13


class Machine(NamedTuple):
    """The facts of a device that decide how a kernel is divided.

    Attributes:
        compute_units: how many it has.
        lanes: the work-items of a group that walks one output, or neighboring outputs in columns: a
            vector. With more, a CPU device walks the memory once for each vector of them (measured:
            16 reach 1.4 times the speed of 64, and a barrier among 16 costs nothing).
        sub_group: the largest size of a sub-group on a GPU, whose kernels merge by exchange within
            sub-groups; 0 on other devices, whose kernels do not use sub-groups.
        group: the largest size of a work-group.
        local_memory: the bytes of local memory that a work-group may take.
        threads: the sub-groups that a compute unit holds at once.
    """

    compute_units: int
    lanes: int = 16
    sub_group: int = 0
    group: int = 8192
    local_memory: int = 1 << 15
    threads: int = 1

    @property
    def resident_items(self) -> int:
        """The work-items that the device holds at once; fewer leave a part of it idle."""
        return self.compute_units * self.threads * max(self.sub_group, 1)


class Domain(NamedTuple):
    """The iteration space of a kernel: a shape, and its axes that are reduced."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def row(self) -> tuple[int, ...]:
        """The shape with the reduced axes of extent 1."""
        return reduced_shape(self.shape, self.axes, True)

    @property
    def kept(self) -> tuple[int, ...]:
        """The shape without the reduced axes."""
        return reduced_shape(self.shape, self.axes, False)

    @property
    def is_leading(self) -> bool:
        """Whether the reduced axes come first: a value without them is aligned with the others."""
        return self.axes == tuple(range(len(self.axes)))


def last_run(domain: Domain, layouts: Sequence[Layout]) -> Domain:
    """Return the domain with the last of the reduced axes only, as many as one loop can walk.

    Taking an index apart for each element would cost more than a second kernel, unless the
    elements are few.

    Args:
        domain: what is walked.
        layouts: of the arrays that are read, which broadcast to the domain's shape.
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
    """Return a layout shaped without the reduced axes, with them, of extent 1."""
    shape, strides = list(layout.shape), list(layout.strides)
    shape[:0] = [1] * (len(domain.kept) - len(shape))
    strides[:0] = [0] * (len(domain.kept) - len(strides))
    for axis in domain.axes:
        shape.insert(axis, 1)
        strides.insert(axis, 0)
    return layout._replace(shape=tuple(shape), strides=tuple(strides))
