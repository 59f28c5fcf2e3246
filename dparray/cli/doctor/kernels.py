"""The kernels with which ``dparray doctor`` tests a device."""

from __future__ import annotations

import math

import numpy as np

from dparray._kernel.decorators import kernel
from dparray.kernel_api import (
    AddressSpace,
    AtomicRef,
    MemoryOrder,
    MemoryScope,
    group_barrier,
)

GROUP = 64


@kernel
def add(item, x, y, out):  # type: ignore[no-untyped-def]
    """Write ``x + y`` to ``out``."""
    i = item.get_id(0)
    out[i] = x[i] + y[i]


@kernel
def count(item, total):  # type: ignore[no-untyped-def]
    """Add one to ``total`` for each work-item."""
    AtomicRef(
        total,
        0,
        memory_order=MemoryOrder.RELAXED,
        memory_scope=MemoryScope.DEVICE,
        address_space=AddressSpace.GLOBAL,
    ).fetch_add(np.int32(1))


@kernel
def reverse_and_sum(item, x, out, sums, local):  # type: ignore[no-untyped-def]
    """Reverse ``x`` within each work-group into ``out``, and write each group's sum to ``sums``."""
    i = item.get_global_id(0)
    k = item.get_local_id(0)
    size = item.get_local_range(0)
    group = item.get_group()
    local[k] = x[i]
    group_barrier(group)
    out[i] = local[size - 1 - k]
    group_barrier(group)
    half = size // 2
    while half > 0:
        if k < half:
            local[k] += local[k + half]
        group_barrier(group)
        half //= 2
    if k == 0:
        sums[group.get_group_id(0)] = local[0]


@kernel
def math_functions(item, x, out):  # type: ignore[no-untyped-def]
    """Write each function of its row of ``x`` to the same row of ``out``."""
    i = item.get_id(0)
    out[0, i] = math.exp(x[0, i])
    out[1, i] = math.log(x[1, i])
    out[2, i] = math.sqrt(x[2, i])
    out[3, i] = math.sin(x[3, i])
    out[4, i] = math.cos(x[4, i])
    out[5, i] = math.tan(x[5, i])
    out[6, i] = math.asin(x[6, i])
    out[7, i] = math.acos(x[7, i])
    out[8, i] = math.atan(x[8, i])
    out[9, i] = math.sinh(x[9, i])
    out[10, i] = math.cosh(x[10, i])
    out[11, i] = math.tanh(x[11, i])
    out[12, i] = math.expm1(x[12, i])
    out[13, i] = math.log1p(x[13, i])
