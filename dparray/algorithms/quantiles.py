"""Quantiles of sorted lines on devices whose memory the host cannot access."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._kernel.launch import call_kernel
from dparray.algorithms.ranges import kernel_of
from dparray.kernel_api import Range
from dparray.kernels.quantile import make_quantile_kernel


def can_pick(ordered: ndarray, dtype: np.dtype[Any]) -> bool:
    """Return whether the kernel should be used for sorted lines and a result of ``dtype``."""
    kinds = ordered.dtype.kind + dtype.kind
    return (
        not traits_of(ordered.queue).shares_memory
        and set(kinds) <= set("iuf")
        and np.float16 not in (ordered.dtype, dtype)
    )


def write_quantile(
    ordered: ndarray, out: ndarray, low: int, high: int, weight: float, is_chosen: bool
) -> None:
    """Write one quantile of each line to the C-contiguous array ``out``, in one launch."""
    dtype, count = out.dtype.type, ordered.shape[-1]
    kernel = kernel_of(make_quantile_kernel, dtype, is_chosen, ordered.dtype.kind == "f")
    call_kernel(
        kernel,
        Range(out.size),
        *(each if each.ndim == 1 else each.reshape(-1) for each in (ordered, out)),
        *(np.int64(each) for each in (count, low, high)),
        dtype(weight),
        dtype(1 - weight),
    )
