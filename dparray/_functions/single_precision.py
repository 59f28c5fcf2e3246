"""Functions that compute bfloat16 in float32.

Only conversions support bfloat16 directly; element-wise operations and reductions are built from
them. The functions here sort, select, multiply or sum with algorithms without bfloat16: they
receive their operands as float32, which holds every bfloat16 exactly, and their float32 results are
rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from dparray import _dtypes
from dparray._array.apply import astype_array
from dparray._array.ndarray import ndarray

NAMES = frozenset(
    (
        *("argpartition", "argsort", "argwhere", "average", "choose", "compress", "convolve"),
        *("corrcoef", "correlate", "count_nonzero", "cov", "cross", "cumprod", "cumsum"),
        *("cumulative_logsumexp", "cumulative_prod", "cumulative_sum", "delete", "diff"),
        *("digitize", "dot", "einsum", "extract", "fft", "fft2", "fftn", "fill_diagonal"),
        *("flatnonzero", "frexp", "gradient", "histogram", "histogram2d", "histogram_bin_edges"),
        *("histogramdd", "i0", "ifft", "ifft2", "ifftn", "ihfft", "inner", "insert", "interp"),
        *("intersect1d", "isin", "kron", "ldexp", "lexsort", "logsumexp", "matvec", "median"),
        *("nancumprod", "nancumsum", "nanmean", "nanmedian", "nanpercentile", "nanquantile"),
        *("nanstd", "nanvar", "nonzero", "norm", "outer", "partition", "percentile", "place"),
        *("poly", "polyfit", "polyval", "put", "put_along_axis", "putmask", "quantile", "rfft"),
        *("rfft2", "rfftn", "searchsorted", "select", "setdiff1d", "setxor1d", "sinc", "sort"),
        *("take", "take_along_axis", "tensordot", "top_k", "trapezoid", "trim_zeros", "union1d"),
        *("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unwrap"),
        *("vdot", "vecdot", "vecmat", "vector_norm"),
    )
)


def takes_bfloat16(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether an argument, or an array in a sequence argument, is bfloat16."""
    if not _dtypes.is_bfloat16_used:
        return False
    return any(_dtypes.is_bfloat16(x.dtype) for x in _arrays((*args, *kwargs.values())))


def in_single(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function with float32 instead of bfloat16, and round its float32 results.

    If the function writes to its first argument or to ``out``, the result is stored there.
    """
    wanted = kwargs.pop("dtype", None) if "dtype" in kwargs else None
    out = kwargs.get("out")
    if isinstance(out, ndarray) and _dtypes.is_bfloat16(out.dtype):
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    if wanted is not None and not _dtypes.is_bfloat16(_dtypes.as_dtype(wanted)):
        kwargs["dtype"] = wanted
    given = [_widened(each) for each in args]
    found = function(*given, **{name: _widened(value) for name, value in kwargs.items()})
    if "out" not in kwargs and isinstance(out, ndarray):
        out[...] = found
        return out
    if found is None and args and args[0] is not given[0]:
        args[0][...] = given[0]
        return None
    return found if "dtype" in kwargs and wanted is not None else _rounded(found)


def take_methods() -> None:
    """Wrap the array methods with these names in the same way."""
    for name in NAMES & vars(ndarray).keys():
        setattr(ndarray, name, _in_single_if_met(vars(ndarray)[name]))


def _in_single_if_met(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if takes_bfloat16(args, kwargs):
            return in_single(method, args, kwargs)
        return method(*args, **kwargs)

    return call


def _arrays(values: tuple[Any, ...] | list[Any]) -> Iterator[ndarray]:
    for each in values:
        if type(each) is ndarray:
            yield each
        elif type(each) in (list, tuple):
            yield from _arrays(each)


def _widened(value: Any) -> Any:
    if type(value) is ndarray and _dtypes.is_bfloat16(value.dtype):
        return astype_array(value, _dtypes.float32)
    if type(value) in (list, tuple) and any(True for _ in _arrays(value)):
        return type(value)(map(_widened, value))
    return value


def _rounded(value: Any) -> Any:
    if type(value) is ndarray and value.dtype == _dtypes.float32:
        return astype_array(value, _dtypes.bfloat16())
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if isinstance(value, tuple):
        parts = [_rounded(each) for each in value]
        make = getattr(type(value), "_make", type(value))  # named tuples take several arguments
        return make(parts)
    return value
