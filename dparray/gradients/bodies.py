"""Functions whose own bodies have derivatives, since they call functions that have one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from dparray.exceptions import GradientError
from dparray.gradients.calls import COMPOSED
from dparray.gradients.elementwise import function_of
from dparray.gradients.traced import Traced

_NAMES = (
    *("append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "column_stack"),
    *("diagflat", "dsplit", "dstack", "hsplit", "hstack", "split", "unstack", "vsplit", "vstack"),
    *("broadcast_arrays", "fliplr", "flipud", "rollaxis", "rot90"),
    *("compress", "delete", "extract", "piecewise", "select", "tril", "trim_zeros", "triu"),
    *("angle", "average", "corrcoef", "cov", "diff", "ediff1d", "nanmean", "nanstd", "nanvar"),
    *("polyadd", "polyder", "polyint", "polymul", "polysub", "polyval", "ptp", "real_if_close"),
    *("apply_over_axes", "top_k", "trapezoid", "fft.fftshift", "fft.ifftshift"),
    *("cross", "inner", "kron", "matvec", "outer", "tensordot", "trace", "vdot", "vecdot"),
    *("vecmat", "linalg.cond", "linalg.cross", "linalg.diagonal", "linalg.matrix_norm"),
    *("linalg.matrix_power", "linalg.multi_dot", "linalg.norm"),
    *("linalg.outer", "linalg.tensordot", "linalg.tensorinv", "linalg.tensorsolve"),
    *("linalg.trace", "linalg.vecdot", "linalg.vector_norm"),
)


def _with_body(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the body of a public function; without a derivative for its arguments, it raises."""
    body = inspect.unwrap(function)

    @functools.wraps(body)
    def composed(*args: Any, **options: Any) -> Any:
        try:
            return body(*args, **options)
        except AttributeError as error:  # It needs the memory of an array.
            raise GradientError(
                f"{function.__name__}: has no derivative with these arguments; give one with "
                "dp.custom_gradient, or use dp.stop_gradient(x) on its operands"
            ) from error

    return composed


COMPOSED.update({function_of(name): _with_body(function_of(name)) for name in _NAMES})
# Functions that check their operands take traced arrays as they are.
_bodies = {"concat", "stack", *(name.rpartition(".")[2] for name in _NAMES)}
Traced.__dparray_bodies__ = frozenset(_bodies)  # type: ignore[attr-defined]
