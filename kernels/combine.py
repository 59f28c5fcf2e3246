"""The operations that reductions and scans combine two values with.

All are associative (up to rounding) and commutative. The functions are plain Python; the host
makes device functions of them and gives those to the factories of kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["OPERATIONS", "Operation", "identity", "loses_nan"]


class Operation(NamedTuple):
    """An operation in two forms.

    Attributes:
        name: its name.
        combine: compiles to code without branches. Minimum and maximum keep a NaN on the left but
            lose one on the right, so a kernel looks for NaN before it uses this form.
        combine_nan: gives NaN when one operand is NaN.
    """

    name: str
    combine: Callable[[Any, Any], Any]
    combine_nan: Callable[[Any, Any], Any]


def _add(a: Any, b: Any) -> Any:
    return a + b


def _multiply(a: Any, b: Any) -> Any:
    return a * b


def _minimum(a: Any, b: Any) -> Any:
    return b if b < a else a


def _maximum(a: Any, b: Any) -> Any:
    return b if b > a else a


def _minimum_nan(a: Any, b: Any) -> Any:
    return b if b < a or b != b else a


def _maximum_nan(a: Any, b: Any) -> Any:
    return b if b > a or b != b else a


OPERATIONS = {
    "add": Operation("add", _add, _add),
    "multiply": Operation("multiply", _multiply, _multiply),
    "minimum": Operation("minimum", _minimum, _minimum_nan),
    "maximum": Operation("maximum", _maximum, _maximum_nan),
}


def identity(op: str, dtype: type) -> Any:
    """The value that changes nothing when it is combined, as a scalar of ``dtype``."""
    if op in ("add", "multiply"):
        return dtype(op == "multiply")
    if issubclass(dtype, np.floating):
        return dtype(np.inf if op == "minimum" else -np.inf)
    limits = np.iinfo(dtype)
    return dtype(limits.max if op == "minimum" else limits.min)


def loses_nan(op: str, dtype: type) -> bool:
    """Whether a kernel has to look for NaN before it uses ``Operation.combine``."""
    return op in ("minimum", "maximum") and issubclass(dtype, np.floating)
