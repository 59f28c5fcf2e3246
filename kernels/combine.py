"""The operations with which reductions and scans combine values.

All are associative (up to rounding) and commutative, and a minimum or maximum is NaN if a value is
NaN. The functions of two values are plain Python. The host makes device functions of them and
passes those to the factories of kernels. The functions of runs, which are consecutive elements of
one-dimensional arrays, are called by kernels. Devices execute them with vectors, which combine the
elements of a run in another order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["OPERATIONS", "Operation", "combine_runs", "identity", "reduce_run", "scan_run"]


class Operation(NamedTuple):
    """An operation: its name, and its function of two values."""

    name: str
    combine: Callable[[Any, Any], Any]


def _add(a: Any, b: Any) -> Any:
    return a + b


def _multiply(a: Any, b: Any) -> Any:
    return a * b


def _minimum(a: Any, b: Any) -> Any:
    return b if b < a or b != b else a


def _maximum(a: Any, b: Any) -> Any:
    return b if b > a or b != b else a


OPERATIONS = {
    name: Operation(name, combine)
    for name, combine in (
        ("add", _add),
        ("multiply", _multiply),
        ("minimum", _minimum),
        ("maximum", _maximum),
    )
}


def identity(op: str, dtype: type) -> Any:
    """Return the neutral element of the operation, as a scalar of ``dtype``."""
    if op in ("add", "multiply"):
        return dtype(op == "multiply")
    if issubclass(dtype, np.floating):
        return dtype(np.inf if op == "minimum" else -np.inf)
    limits = np.iinfo(dtype)
    return dtype(limits.max if op == "minimum" else limits.min)


def combine_runs(
    operation: str, a: Any, a_start: Any, b: Any, b_start: Any, out: Any, start: Any, count: Any
) -> None:
    """Combine the elements of two runs, pair by pair.

    Args:
        operation: the name of one of :data:`OPERATIONS`, a constant.
        a, a_start: the first run, ``a[a_start : a_start + count]``.
        b, b_start: the second.
        out, start: where the results are stored, of the dtype to combine in; one of the runs
            is allowed.
        count: elements in each run.
    """
    combine, dtype = OPERATIONS[operation].combine, out.dtype.type
    for i in range(count):
        out[start + i] = dtype(combine(dtype(a[a_start + i]), dtype(b[b_start + i])))


def reduce_run(operation: str, x: Any, start: Any, count: Any, initial: Any) -> Any:
    """Return ``initial`` combined with ``count`` consecutive elements of a 1-D array.

    Args:
        operation: the name of one of :data:`OPERATIONS`, a constant.
        x: the array, of any real dtype but float16.
        start, count: the elements ``x[start : start + count]``.
        initial: a value of the dtype to combine in, an integer or real one.
    """
    combine, dtype = OPERATIONS[operation].combine, type(initial)
    for i in range(start, start + count):
        initial = dtype(combine(initial, dtype(x[i])))
    return initial


def scan_run(
    operation: str,
    x: Any,
    out: Any,
    start: Any,
    count: Any,
    before: Any,
    total: Any,
    inclusive: bool,
) -> None:
    """Scan ``count`` consecutive elements of a 1-D array.

    Args:
        operation, x, start, count: as in :func:`reduce_run`.
        out: a 1-D array of the dtype of ``before``; its elements at the same positions are written.
            It may be ``x``.
        before: the result for the elements before ``start``, of the dtype to combine in.
        total: the result for these elements; if it is NaN, a device checks each of them until
            one is NaN.
        inclusive: whether ``out[i]`` includes ``x[i]``.
    """
    combine, dtype = OPERATIONS[operation].combine, type(before)
    for i in range(start, start + count):
        after = dtype(combine(before, dtype(x[i])))
        out[i] = after if inclusive else before
        before = after
