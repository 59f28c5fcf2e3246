"""Every NumPy function with generated arguments: value, dtype, shape, order, aliases.

``make stress ARGS="--calls 200000"`` tries more of them. The page of differences from NumPy lists
each entry of `KNOWN` with its reason.
"""

from __future__ import annotations

import contextlib
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.functions.generated_arguments import Arr, Call
from tests.functions.generated_calls import carry_out, generate, names, ufuncs
from tests.support import force

CALLS_OF_EACH = 4
#: Known differences: a pattern of the text of `difference`, and the reason.
KNOWN: tuple[tuple[str, str], ...] = (
    (r"^require: alias", "views without repeated elements are writable"),
    (r"view: refuses: .*would not be aligned", "elements are aligned"),
    (r"is read-only", "views without repeated elements are writable"),
    (
        r"accepts .*(No loop matching|did not contain a loop)",
        "dtype= is the dtype of the computation",
    ),
    (r"^(?!logical_).*does not become \w+ by the rule", "dtype= is the dtype of the computation"),
    (r"^block: accepts", "block accepts tuples as sequences"),
    (r"^einsum: alias", "results are new arrays"),
    (r"^linalg.matrix_power: alias", "results are new arrays"),
    (r"not defined for float16", "linear algebra has no float16"),
    (r"No \w+ implementation is available", "linear algebra has no float16"),
    (r"AxisError: .* of 0 dimensions", "a 0-d array has no axis"),
    (r"axis= is required for 0 dimensions", "a 0-d array has no axis"),
    (r"accepts .*Integers to negative integer powers", "integer powers with negative exponents"),
    (r"would lose the imaginary part", "complex numbers are not converted to real ones"),
    (r"OverflowError: .* does not fit into", "integers out of range raise an error"),
    (r"DTypeError: \w+: -?(nan|inf) does not fit into", "integers out of range raise an error"),
    (r"byteswap", "there is no byteswap"),
    (r"^\.resize: accepts", "resize does not check references"),
    (r"^asfortranarray: shape: \(\), not \(1,\)", "asfortranarray keeps 0-d arrays"),
    (r"initial must be a scalar", "initial= is a scalar"),
    (r"^(unique_values|unique_counts|unique_inverse|unique_all): ", "values are sorted"),
    (
        r"^\.?(nan)?(quantile|percentile|median): value: .*(inf|nan)",
        "quantiles between a number and an infinity",
    ),
    (r"^(nan)?(quantile|percentile): value: .*e\+18", "differences of integers wrap in NumPy"),
    (r"^polymul: shape", "leading zeros of polynomial products"),
    (r"^(astype|\.astype): accepts", "unsafe conversions"),
    (r"does not fit out of dtype", "out= is cast by same_kind"),
    (r"arg(max|min): accepts .*Cannot cast", "out= is cast by same_kind"),
    (r"accepts .*SVD did not converge", "singular values of nan"),
    (r"^average: accepts .*Weights sum to zero", "averages with weights that sum to zero"),
    (
        r"complex(\d+| number \S+) (does not fit into|cannot be stored in)",
        "complex numbers are not converted to real ones",
    ),
    (r"^fft.i?fftshift: accepts", "a 0-d array has no axis"),
    (r"^polyval: value: .*nan", "products of complex infinities"),
    (r"^(\.?(nan)?mean|expm1): value: .*[+-]nanj", "products of complex infinities"),
    (
        r"^fft.i?(rfft|hfft)n?2?: dtype: float32, not float16",
        "fourier transforms of float16 are float32",
    ),
    (r"accepts .*Cannot cast ufunc '\w+' input \d", "dtype= is the dtype of the computation"),
    (r"^\.?(a?round): accepts .*Cannot cast ufunc", "out= is cast by same_kind"),
    (r"^\.?(take|compress|choose): accepts .*Cannot", "out= is cast by same_kind"),
    (r"accepts .*Python int too large to convert to C long", "python integers beyond int64"),
    (r"^\.?partition: (value|leaves)", "partition leaves the elements before and after"),
    (r"^geomspace: accepts .*cannot include zero", "geometric sequences through zero"),
    (
        r"\.at: refuses: .*the result cannot be stored in x of dtype",
        "out= is cast by same_kind",
    ),
    (r"ldexp\.\w+: refuses: .*not defined as a reduction", "ldexp cannot combine its results"),
    (r"^histogram(2d|dd): refuses: .*Too many bins", "bins of zero width"),
    (r"output array is not acceptable", "out= is cast by same_kind"),
    (
        r"^linalg\.(vector_)?norm: dtype: float32, not float64",
        "the order of a norm is a Python number",
    ),
)


@contextlib.contextmanager
def tier(name: str) -> Iterator[None]:
    """Force one of dparray's backends."""
    with contextlib.ExitStack() as stack:
        if name == "eager":
            stack.enter_context(dp.config.override(lazy=False))
        elif name == "no host tier":
            stack.enter_context(dp.config.override(host_tier=False))
        elif name in ("library", "fused", "host"):
            stack.enter_context(force(name))
        elif name == "busy":
            stack.enter_context(dp.config.override(lazy=False, host_tier=False))
        yield


def attempt(xp: Any, call: Call) -> Any:
    """Return the result and the arguments' arrays, or the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return carry_out(xp, call)
        except Exception as error:
            return error


def parts_of(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [part for each in result for part in parts_of(each)]
    return [result]


def host(x: Any) -> Any:
    return x.asnumpy() if isinstance(x, dp.ndarray) else x


#: Tolerance in roundings of the largest number: FFT libraries are off by some hundreds for lengths
#: with large prime factors.
ROUNDINGS, ROUNDINGS_OF_TRANSFORMS = 64, 2048


def _close(
    found: np.ndarray, wanted: np.ndarray, scale: float, eps: float, roundings: int = ROUNDINGS
) -> bool:
    """Return whether floats agree up to some roundings."""
    if wanted.dtype.kind == "c":
        return _close(found.real, wanted.real, scale, eps, roundings) and _close(
            found.imag, wanted.imag, scale, eps, roundings
        )
    with np.errstate(all="ignore"):
        both = np.isfinite(found) & np.isfinite(wanted)
        if not np.array_equal(found[~both], wanted[~both], equal_nan=True):
            return False
        found, wanted = found[both].astype("float64"), wanted[both].astype("float64")
        roundings = min(roundings, ROUNDINGS) if eps > 1e-4 else roundings
        smallest = (
            np.finfo("float16").tiny
            if eps > 1e-4
            else np.finfo("float32" if eps > 1e-8 else "float64").smallest_subnormal
        )
        bound = roundings * eps * np.maximum(np.abs(wanted), scale) + 8 * float(smallest)
        return bool(np.all(np.abs(found - wanted) <= bound))


def _scale(values: list[np.ndarray]) -> float:
    """Return the largest finite number among results."""
    largest = 0.0
    for each in values:
        if each.dtype.kind in "fc" and each.size:
            with np.errstate(all="ignore"):
                sizes = np.abs(each.astype("complex128" if each.dtype.kind == "c" else "float64"))
            finite = sizes[np.isfinite(sizes)]
            largest = max(largest, float(finite.max(initial=0)))
    return largest


def difference(call: Call) -> str | None:
    """Describe how the results of a call differ; ``None`` if they do not."""
    wanted = attempt(np, call)
    with tier(call.tier):
        found = attempt(dp, call)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _difference(found, wanted, _roundings(call), _computed_in(call))
        except Exception as error:  # raised by a pending computation
            return f"raises when read: {type(error).__name__}: {error}"


def _roundings(call: Call) -> int:
    """Return the tolerance in roundings; NumPy adds many numbers one after the other."""
    if call.name.startswith("fft."):
        return ROUNDINGS_OF_TRANSFORMS
    sizes = [arg.seen.size for arg in call.args if isinstance(arg, Arr)]
    return ROUNDINGS + max(sizes, default=0) // 8


def _without_out(call: Call) -> Call:
    kwargs = {key: value for key, value in call.kwargs.items() if key != "out"}
    return Call(call.name, call.args, kwargs, call.tier)


def _computed_in(call: Call) -> list[np.ndarray]:
    """Return the result without ``out=``, whose dtype determines the precision."""
    if "out" not in call.kwargs:
        return []
    plain = attempt(np, _without_out(call))
    return [] if isinstance(plain, Exception) else list(map(np.asarray, parts_of(plain[0])))


def _difference(
    found: Any, wanted: Any, roundings: int = ROUNDINGS, loops: Sequence[np.ndarray] = ()
) -> str | None:
    if isinstance(wanted, Exception):
        if not isinstance(found, Exception):
            for each in parts_of(found[0]):
                host(each)
            return f"accepts what NumPy refuses: {type(wanted).__name__}: {wanted}"
        known_class = isinstance(found, dp.exceptions.DparrayError | TypeError | ValueError)
        known_class = known_class or isinstance(found, IndexError | ArithmeticError)
        return None if known_class else f"raises {type(found).__name__}: {found}"
    if isinstance(found, Exception):
        return f"refuses: {type(found).__name__}: {found}"
    (ours, our_inputs), (theirs, their_inputs) = found, wanted
    our_parts, their_parts = parts_of(ours), parts_of(theirs)
    if len(our_parts) != len(their_parts):
        return f"gives {len(our_parts)} parts, not {len(their_parts)}"
    for number, (x, y) in enumerate(zip(our_parts, their_parts, strict=True)):
        said = _difference_of_part(x, y, our_inputs, their_inputs, roundings, loops)
        if said is not None:
            return said if len(our_parts) == 1 else f"part {number}: {said}"
    seen = [each for _, each in their_inputs]
    seen += loops
    for (x, _), (y, _) in zip(our_inputs, their_inputs, strict=True):
        if not _same_values(host(x), y, _scale([y]), seen, roundings):
            return f"leaves an argument as {_short(host(x))}, not {_short(y)}"
    return None


def _short(value: Any) -> str:
    return np.array2string(np.asarray(value), threshold=8, separator=",").replace("\n", "")


def _same_values(
    found: np.ndarray,
    wanted: np.ndarray,
    scale: float,
    inputs: Sequence[np.ndarray] = (),
    roundings: int = ROUNDINGS,
) -> bool:
    if wanted.dtype.kind in "fc":
        floats = [x.dtype for x in (wanted, *inputs) if x.dtype.kind in "fc"]
        eps = max(float(np.finfo(x).eps) for x in floats)
        return _close(found, wanted, scale, eps, roundings)
    return bool(np.array_equal(found, wanted))


def _difference_of_part(
    x: Any,
    y: Any,
    our_inputs: list[tuple[Any, Any]],
    their_inputs: list[tuple[Any, Any]],
    roundings: int,
    loops: Sequence[np.ndarray],
) -> str | None:
    if not isinstance(y, np.ndarray | np.generic):
        x = host(x)
        if isinstance(y, float | complex) and isinstance(x, int | float | complex | np.ndarray):
            return None if np.allclose(x, y, equal_nan=True) else f"value: {x!r}, not {y!r}"
        same = bool(np.all(np.asarray(x == y))) or (x != x and y != y)
        return None if same else f"value: {x!r}, not {y!r}"
    values = np.asarray(host(x))
    if values.dtype != y.dtype:
        return f"dtype: {values.dtype}, not {y.dtype}"
    if values.shape != y.shape:
        return f"shape: {values.shape}, not {y.shape}"
    seen = [*loops, *(each for _, each in their_inputs)]
    if not _same_values(values, np.asarray(y), _scale([y, *seen]), seen, roundings):
        return f"value: {_short(values)}, not {_short(y)}"
    if not isinstance(x, dp.ndarray) or not isinstance(y, np.ndarray):
        return None
    if y.size > 1 and y.ndim > 1:
        ours = x.flags.c_contiguous, x.flags.f_contiguous
        theirs = y.flags.c_contiguous, y.flags.f_contiguous
        if ours != theirs:
            return f"order: {x.strides}, not {y.strides} of shape {y.shape}"
    if y.size:
        for at, ((_, into), (_, theirs_into)) in enumerate(
            zip(our_inputs, their_inputs, strict=True)
        ):
            alias = (
                np.shares_memory(y, theirs_into, max_work=100)
                if _is_quick(y, theirs_into)
                else None
            )
            if alias is not None and dp.shares_memory(x, into) != alias:
                return f"alias: {not alias} of argument {at}, not {alias}"
    return None


def _is_quick(x: np.ndarray, y: np.ndarray) -> bool:
    try:
        np.shares_memory(x, y, max_work=100)
    except Exception:
        return False
    return True


#: Functions whose results have NumPy's memory order; results of others may be in C order.
ORDERED = frozenset(
    {
        *("copy", "astype", "array", "asarray", "zeros_like", "ones_like", "full_like", "clip"),
        *("concatenate", "concat", "pad", "delete", "insert", "round", "around", "ravel"),
        *("transpose", "permute_dims", "swapaxes", "moveaxis", "asfortranarray", "reshape"),
    }
)


#: Functions that add many numbers; float16 results may be far from the exact ones.
ADDING = frozenset(
    {
        *("sum", "cumsum", "cumulative_sum", "mean", "average", "std", "var", "trace", "trapezoid"),
        *("matmul", "dot", "inner", "vdot", "vecdot", "matvec", "vecmat", "tensordot", "einsum"),
        *("cov", "corrcoef", "convolve", "correlate"),
        *(
            f"{name}.{method}"
            for name in ("add", "multiply", "hypot", "logaddexp", "logaddexp2")
            for method in ("reduce", "accumulate", "reduceat")
        ),
        *("linalg.norm", "linalg.vector_norm", "linalg.matrix_norm", "linalg.trace", "i0"),
    }
)


def keeps_order(name: str) -> bool:
    """Return whether a function's results have NumPy's memory order."""
    name = name.removeprefix(".")
    return name.startswith("operator.") or name in ORDERED or name in ufuncs(dp)


def known(call: Call, said: str) -> str | None:
    """Return the reason of a known difference."""
    picks = call.name == "delete" and not isinstance(call.args[1], int | slice)
    has_gaps = getattr(call.kwargs.get("out"), "views", ())
    if call.name in ("isfinite", "isnan", "isinf", "signbit") and has_gaps and "value: " in said:
        return "NumPy 2.2's of floats leaves an out with gaps wrong"
    rounds = call.name.lstrip(".") in ("round", "around")
    if "order: " in said and (picks or rounds or not keeps_order(call.name)):
        return "memory order of functions that are not elementwise"
    is_moment = call.name.lstrip(".").removeprefix("nan") in ("mean", "std", "var")
    is_half = isinstance(call.args[0], Arr) and call.args[0].values.dtype == np.float16
    if (
        is_moment
        and (is_half or {"dtype", "out"} & call.kwargs.keys())
        and ("value: " in said or ("out" in call.kwargs and "leaves an argument" in said))
    ):
        return "means and variances in a dtype that does not hold the sum"
    if (
        _is_quantile_of_integers(call)
        and "value: " in said
        and "value: " not in (_difference_of_floats(call) or "")
    ):
        return "differences of integers wrap in NumPy"
    if re.search("leaves an argument|accepts", said) and _is_a_whole_number_beside_uint64(call):
        return "whole numbers beside uint64"
    if "value: " in said:
        if re.fullmatch(r"\.?(a|nan)?(max|min)", call.name) and _is_of_the_elements(call):
            return "a maximum or minimum into other integers"
        if (_is_power(call) or call.name == "expm1") and _is_of_infinities(call):
            return "products of complex infinities"
        if call.name in _INVERTING and _is_as_its_condition_allows(call):
            return "matrices that are nearly singular"
        if call.name == "i0" and _is_of_an_infinite_argument(call):
            return "i0 of infinities"
        if call.name == "reciprocal" and _is_of_zeros(call):
            return "the reciprocal of the integer 0 is 0"
        if _is_power(call) and _is_of_large_exponents(call):
            return "powers by way of logarithms"
        if re.search(r"(quantile|percentile|median)$", call.name) and _is_beside_infinities(call):
            return "quantiles between a number and an infinity"
        if re.search(r"(sum|prod|trace)$", call.name) and _is_of_numbers_beyond(call):
            return "sums of numbers that their dtype does not hold"
        if _is_of_floats_in_between(call):
            return "sums of uint64 in signed numbers"
        if _begins_below_zero_in_unsigned(call):
            return "a negative first value in unsigned integers"
        converts = call.kwargs.get("casting") == "unsafe" or call.name.lstrip(".") in _CONVERTING
        if converts and _is_of_infinite_arguments(call):
            return "infinities are no integers"
        if "out" in call.kwargs and _is_of_no_integers(call):
            return "infinities are no integers"
        if call.name.lstrip(".") in ("pad", "round", "around") and _is_a_rounding_apart(call):
            return "whole numbers beyond 2**53 by way of floats"
        if re.search(r"prod$|^multiply\.", call.name) and _is_of_parts_that_overflow(call):
            return "products whose parts overflow"
        if call.name.lstrip(".").removeprefix("nan") in ADDING and _is_nearer_than_numpys(call):
            return "sums that are rounded after each number"
        if call.name.lstrip(".").removeprefix("nan") in ADDING and _is_converted_into_out(call):
            return "sums that are rounded after each number"
    if call.name.lstrip(".") in _SORTING and _is_of_halves_in_order(call):
        return "NumPy leaves float16 unsorted"
    if "order: " in said and call.name in ("concatenate", "concat") and _has_empty_parts(call):
        return "memory order beside arrays without elements"
    if "order: " in said and _is_by_columns_after_conversion(call):
        return "order 'A' beside operands that NumPy converts"
    if "negative power" in said and any(
        isinstance(x, Arr) and not x.values.size for x in call.args
    ):
        return "integer powers with negative exponents"
    if "dtype: " in said and _is_of_nothing_but_nan_first(call):
        return "quantiles whose first line has nothing but NaN"
    text = f"{call.name}: {said}"
    for pattern, reason in KNOWN:
        if re.search(pattern, text):
            return reason
    return None


def _is_power(call: Call) -> bool:
    return re.fullmatch(r"(operator\.i?)?(float_)?pow(er)?", call.name) is not None


def _is_quantile_of_integers(call: Call) -> bool:
    return (
        call.name.removeprefix("nan") in ("quantile", "percentile")
        and isinstance(call.args[0], Arr)
        and call.args[0].values.dtype.kind in "iu"
    )


def _is_by_columns_after_conversion(call: Call) -> bool:
    """Return whether ``order="A"`` gives NumPy's order if no operand is converted first."""
    arrays = [x for x in call.args if isinstance(x, Arr)]
    dtypes = {x.values.dtype for x in arrays}
    if call.kwargs.get("order") != "A" or (len(dtypes) < 2 and "dtype" not in call.kwargs):
        return False
    wanted = attempt(np, call)
    if isinstance(wanted, Exception):
        return False
    results = [each.dtype for each in parts_of(wanted[0]) if isinstance(each, np.ndarray)]
    for dtype in (np.result_type(*[x.values.dtype for x in arrays]), *results):
        alike = [
            Arr(x.values.astype(dtype), x.views) if isinstance(x, Arr) else x for x in call.args
        ]
        same = Call(call.name, alike, call.kwargs, call.tier)
        if "order: " not in (_difference(attempt(dp, call), attempt(np, same)) or ""):
            return True
    return False


def _difference_of_floats(call: Call) -> str | None:
    """Describe how a result differs from NumPy's of the same numbers as floats."""
    first = call.args[0]
    floats = Arr(first.values.astype("float64"), first.views)
    wanted = attempt(np, Call(call.name, [floats, *call.args[1:]], call.kwargs))
    return _difference(attempt(dp, call), wanted)


_CONVERTING = (
    *("array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray"),
    *("astype", "require"),
)
_SORTING = (
    *("intersect1d", "setdiff1d", "setxor1d", "sort", "sort_complex", "union1d", "unique"),
    *("unique_all", "unique_counts", "unique_inverse", "unique_values"),
)


def _is_of_halves_in_order(call: Call) -> bool:
    """Return whether float16 gives NumPy's result in single precision, which it sorts correctly."""
    singles = [_as_single(arg) for arg in call.args]
    wanted, found = attempt(np, Call(call.name, singles, call.kwargs)), attempt(dp, call)
    if isinstance(wanted, Exception) or isinstance(found, Exception):
        return False
    pairs = [*zip(parts_of(found[0]), parts_of(wanted[0]), strict=True)]
    pairs += [(x, y) for (x, _), (y, _) in zip(found[1], wanted[1], strict=True)]
    parts = [(np.asarray(host(ours)), np.asarray(theirs)) for ours, theirs in pairs]
    has_halves = any(isinstance(x, Arr) and x.values.dtype == np.float16 for x in call.args)
    return has_halves and all(
        np.array_equal(ours, theirs.astype(ours.dtype), equal_nan=ours.dtype.kind == "f")
        for ours, theirs in parts
        if theirs.dtype.kind != "O"  # None is the result of in-place functions
    )


def _as_single(value: Any) -> Any:
    if isinstance(value, Arr) and value.values.dtype == np.float16:
        return Arr(value.values.astype(np.float32), value.views)
    return np.float32(value) if isinstance(value, np.float16) else value


def _results(call: Call) -> tuple[np.ndarray, np.ndarray] | None:
    """Return dparray's and NumPy's result, if both are single arrays of the same shape."""
    wanted = attempt(np, call)
    with tier(call.tier):
        found = attempt(dp, call)
        if isinstance(wanted, Exception) or isinstance(found, Exception):
            return None
        ours, theirs = np.asarray(host(found[0])), np.asarray(wanted[0])
    return (ours, theirs) if ours.shape == theirs.shape else None


def _are_close_where(holds: np.ndarray, found: np.ndarray, wanted: np.ndarray) -> bool:
    """Return whether the elements that satisfy a condition agree up to rounding."""
    found, wanted = found[holds], wanted[holds]
    if wanted.dtype.kind not in "fc":
        return bool(np.array_equal(found, wanted))
    eps = float(np.finfo(wanted.dtype).eps)
    return _close(found, wanted, _scale([wanted]), eps, ROUNDINGS + wanted.size // 8)


_INVERTING = ("linalg.cond", "linalg.inv", "linalg.pinv", "linalg.solve")


def _is_nearer_than_numpys(call: Call) -> bool:
    """Return whether each number that differs is closer to the exact one than NumPy's is."""
    results = _results(call)
    kwargs = {key: value for key, value in call.kwargs.items() if key not in ("out", "dtype")}
    exact_call = Call(call.name, [_as_long(arg) for arg in call.args], kwargs)
    exact = attempt(np, exact_call)
    if results is None or results[1].dtype.kind not in "fc" or isinstance(exact, Exception):
        return False
    found, wanted = results
    with np.errstate(all="ignore"):
        long = np.asarray(exact[0])
        is_nearer = np.isfinite(found) & (np.abs(found - long) <= np.abs(wanted - long))
        is_nearer |= found == long.astype(found.dtype)
    return _are_close_where(~is_nearer, found, wanted)


def _is_converted_into_out(call: Call) -> bool:
    """Return whether integers in ``out`` are the floats of the call without it, as in NumPy."""
    results, out = _results(call), call.kwargs.get("out")
    if results is None or not isinstance(out, Arr) or results[1].dtype.kind not in "iu":
        return False
    plain = _without_out(call)
    floats = _results(plain)
    return (
        floats is not None
        and floats[0].dtype.kind == "f"
        and unknown_difference(plain) is None
        and np.array_equal(results[0], floats[0].astype(results[0].dtype))
    )


def _has_empty_parts(call: Call) -> bool:
    return any(isinstance(part, Arr) and not part.values.size for part in call.args[0])


def _is_of_large_exponents(call: Call) -> bool:
    """Return whether complex powers differ by roundings of the exponent times the logarithm.

    These roundings also decide in which component a power overflows.
    """
    results = _results(call)
    if results is None or results[1].dtype.kind != "c":
        return False
    found, wanted = results
    base, exponent = (np.asarray(x.seen if isinstance(x, Arr) else x) for x in call.args[:2])
    with np.errstate(all="ignore"):
        sizes = np.abs(exponent * np.log(base.astype("complex128")))
        bound = 8 * np.finfo(wanted.dtype).eps * (1 + sizes) * np.abs(wanted)
        is_near = np.isfinite(wanted) & (np.abs(found - wanted) <= bound)
    is_beyond = ~np.isfinite(wanted) & ~np.isfinite(found)
    return _are_close_where(~is_near & ~is_beyond, found, wanted)


def _is_a_whole_number_beside_uint64(call: Call) -> bool:
    """Return whether ``at`` gives NumPy's result for a number of the array's dtype."""
    if not call.name.endswith(".at") or type(call.args[-1]) is not int:
        return False
    first = call.args[0]
    if not isinstance(first, Arr) or first.values.dtype != np.uint64:
        return False
    typed = Call(call.name, [*call.args[:-1], np.uint64(call.args[-1])], call.kwargs, call.tier)
    return difference(typed) is None


def _is_beside_infinities(call: Call) -> bool:
    """Return whether quantiles of infinities differ only where one of them is not finite."""
    results = _results(call)
    first = call.args[0]
    if results is None or not isinstance(first, Arr) or not np.isinf(first.seen).any():
        return False
    return _are_close_where(np.isfinite(results[0]) & np.isfinite(results[1]), *results)


def _is_of_numbers_beyond(call: Call) -> bool:
    """Return whether sums of finite numbers differ only where NumPy's are not finite.

    The finite numbers are infinite in `dtype=`.
    """
    results, first = _results(call), call.args[0]
    dtype = np.dtype(call.kwargs.get("dtype", "bool"))
    if results is None or not isinstance(first, Arr) or dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        is_beyond = np.isfinite(first.seen) & ~np.isfinite(first.seen.astype(dtype))
    return bool(is_beyond.any()) and _are_close_where(np.isfinite(results[1]), *results)


def _is_of_floats_in_between(call: Call) -> bool:
    """Return whether NumPy adds integers as floats, because ``out`` differs in signedness."""
    out, first = call.kwargs.get("out"), call.args[0]
    if not isinstance(out, Arr) or not isinstance(first, Arr) or "dtype" in call.kwargs:
        return False
    kinds = first.values.dtype.kind + out.values.dtype.kind
    is_sum = re.fullmatch(r"\.?((nan)?(cum)?(sum|prod)|trace)", call.name) is not None
    return is_sum and kinds in ("iu", "ui") and np.result_type(first.values, out.values).kind == "f"


def _is_as_its_condition_allows(call: Call) -> bool:
    """Return whether results differ by roundings times the condition of the matrices."""
    results = _results(call)
    if results is None or results[1].dtype.kind not in "fc":
        return False
    found, wanted = results
    matrices = call.args[0].seen
    with np.errstate(all="ignore"):
        condition = np.max(np.linalg.cond(matrices.astype("complex128")), initial=1)
        bound = 8 * np.finfo(wanted.dtype).eps * condition * np.max(np.abs(wanted), initial=0)
        is_near = np.abs(found - wanted) <= bound
    return _are_close_where(~is_near, found, wanted)


def _begins_below_zero_in_unsigned(call: Call) -> bool:
    """Return whether NumPy writes a negative ``initial=`` to unsigned ``out`` and adds floats."""
    out, first, initial = call.kwargs.get("out"), call.args[0], call.kwargs.get("initial")
    return (
        isinstance(out, Arr)
        and isinstance(first, Arr)
        and isinstance(initial, int | float)
        and initial < 0
        and out.values.dtype.kind == "u"
        and first.values.dtype.kind == "f"
    )


def _is_of_infinite_arguments(call: Call) -> bool:
    """Return whether integers differ only where an argument is not finite."""
    results = _results(call)
    if results is None or results[1].dtype.kind not in "iu":
        return False
    is_finite = np.ones(results[1].shape, "bool")
    for arg in call.args:
        if isinstance(arg, list) and all(isinstance(each, Arr) for each in arg):  # e.g. `concat`
            parts = [Arr(np.isfinite(each.values), each.views) for each in arg]
            options = {key: call.kwargs[key] for key in {"axis"} & call.kwargs.keys()}
            joined = attempt(np, Call(call.name, [parts, *call.args[1:]], options))
            if not isinstance(joined, Exception):
                is_finite &= joined[0]
            continue
        values = np.asarray(arg.seen if isinstance(arg, Arr) else arg)
        if values.dtype.kind in "fc":
            is_finite &= np.isfinite(values)
    return not is_finite.all() and _are_close_where(is_finite, *results)


def _is_of_no_integers(call: Call) -> bool:
    """Return whether integers in ``out`` differ only where they cannot hold the float results.

    These are infinite, NaN, or out of range: C does not define their conversion.
    """
    results, plain = _results(call), _computed_in(call)
    if results is None or len(plain) != 1 or results[1].dtype.kind not in "iu":
        return False
    floats = np.broadcast_to(plain[0], results[1].shape)
    is_held = np.isfinite(floats)
    if floats.dtype.kind == "f":
        ends = np.iinfo(results[1].dtype)
        is_held &= (floats > float(ends.min) - 1) & (floats < float(ends.max) + 1)
    return not is_held.all() and _are_close_where(is_held, *results)


def _is_a_rounding_apart(call: Call) -> bool:
    """Return whether large integers differ only beyond the precision of floats."""
    results = _results(call)
    if results is None or results[1].dtype.kind not in "iu":
        return False
    pairs = zip(*(each.ravel().tolist() for each in results), strict=True)
    ends = np.iinfo(results[1].dtype)
    nearby: list[int] = []  # the rounded numbers, where there is no room beyond them
    if call.name != "pad" and call.args[0].seen.shape == results[1].shape:
        nearby = call.args[0].seen.ravel().tolist()
    tens = 10 ** -int(call.kwargs.get("decimals", 0)) if nearby else 0
    is_over = [x > ends.max - tens or (ends.min and x < ends.min + tens) for x in nearby]
    return all(
        abs(x - y) <= 4 * float(np.finfo("float64").eps) * abs(y) or (is_over and is_over[at])
        for at, (x, y) in enumerate(pairs)
    )


def _as_long(arg: Any) -> Any:
    """Convert an argument to NumPy's widest float."""
    if isinstance(arg, list | tuple):
        return type(arg)(map(_as_long, arg))
    # Booleans may be added in float16
    if not isinstance(arg, Arr) or arg.values.dtype.kind not in "fcb":
        return arg
    wide = np.clongdouble if arg.values.dtype.kind == "c" else np.longdouble
    return Arr(arg.values.astype(wide), arg.views)


def _is_of_nothing_but_nan_first(call: Call) -> bool:
    """Return whether NumPy's quantiles have the dtype of a first line that is all NaN."""
    if call.name not in ("nanquantile", "nanpercentile") or (results := _results(call)) is None:
        return False
    x, axis = call.args[0].seen, call.kwargs.get("axis")
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis) % max(x.ndim, 1)
    first = x[tuple(slice(None) if at in axes else slice(1) for at in range(x.ndim))]
    is_like_it = results[1].dtype == x.dtype and bool(np.isnan(first).all())
    return is_like_it and _close(*results, 0.0, float(np.finfo(x.dtype).eps))


def _is_of_infinities(call: Call) -> bool:
    """Return whether complex results differ only where they or their operands are not finite."""
    results = _results(call)
    if results is None or results[1].dtype.kind != "c":
        return False
    found, wanted = results
    is_finite = np.isfinite(wanted)
    for arg in call.args:
        values = np.asarray(arg.seen if isinstance(arg, Arr) else arg)
        if values.dtype.kind in "fc":
            with np.errstate(all="ignore"):
                is_finite = is_finite & np.isfinite(values.astype(wanted.dtype))
    return not is_finite.all() and _are_close_where(is_finite, found, wanted)


def _is_of_the_elements(call: Call) -> bool:
    """Return whether a result in ``out`` is the one without it, converted."""
    results, plain = _results(call), _computed_in(call)
    if results is None or len(plain) != 1 or plain[0].shape != results[0].shape:
        return False
    with np.errstate(all="ignore"):
        return np.array_equal(results[0], plain[0].astype(results[0].dtype), equal_nan=True)


def _is_of_an_infinite_argument(call: Call) -> bool:
    """Return whether results differ only where the first argument is not finite."""
    results = _results(call)
    values = np.asarray(call.args[0].seen if isinstance(call.args[0], Arr) else call.args[0])
    return results is not None and _are_close_where(np.isfinite(values), *results)


def _is_of_zeros(call: Call) -> bool:
    """Return whether results of integers differ only where these are 0."""
    results = _results(call)
    values = np.asarray(call.args[0].seen if isinstance(call.args[0], Arr) else call.args[0])
    dtype = np.dtype(call.kwargs.get("dtype") or values.dtype)
    if results is None or dtype.kind not in "biu":
        return False
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        is_other = values.astype(dtype) != 0
    return _are_close_where(np.broadcast_to(is_other, results[1].shape), *results)


def _is_of_parts_that_overflow(call: Call) -> bool:
    """Return whether products differ only where they and partial products overflow or underflow."""
    results = _results(call)
    first = call.args[0]
    values = np.asarray(first.seen if isinstance(first, Arr) else first)
    if results is None:
        return False
    found, wanted = results
    if wanted.dtype.kind == "b" and "out" in call.kwargs:  # only visible is whether they vanish
        plain = _without_out(call)
        products = _results(plain)
        return (
            products is not None
            and products[1].dtype.kind in "fc"
            and unknown_difference(plain) is None
            and np.array_equal(found, products[0] != 0)
        )
    if wanted.dtype.kind not in "fc":
        return False
    within = np.dtype(call.kwargs.get("dtype", wanted.dtype))  # which an out may exceed
    if within.kind not in "fc":
        return False
    limits_of = np.finfo(within)
    with np.errstate(all="ignore"):
        sizes = np.abs(values.astype("complex128")).ravel()
        powers = np.log2(sizes[(sizes > 0) & np.isfinite(sizes)])
        overflows = not np.isfinite(sizes).all()
        overflows |= bool(np.sum(powers[powers > 0]) > limits_of.maxexp - 2)
        vanishes = bool(np.sum(powers[powers < 0]) < limits_of.minexp + 2)
        if not (overflows or vanishes):
            return False
        is_plain = np.isfinite(found) & np.isfinite(wanted)
        if vanishes:
            is_plain &= (np.abs(found) > limits_of.tiny) & (np.abs(wanted) > limits_of.tiny)
    return _are_close_where(is_plain, found, wanted)


def unknown_difference(call: Call) -> str | None:
    """Describe a difference without a known reason."""
    said = difference(call)
    return None if said is None or known(call, said) is not None else said


def seeded(name: str, number: int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()), number])


@pytest.mark.parametrize("name", names(dp))
def test_as_numpy(name: str) -> None:
    for number in range(CALLS_OF_EACH):
        call = generate(name, seeded(name, number))
        said = unknown_difference(call)
        assert said is None, f"{said}\n{call}"


def many(count: int, seed: int, show: int = 3) -> int:
    """Call all functions in turn; return how many calls differ."""
    every = names(dp)
    told: Counter[str] = Counter()
    for number in range(count):
        name = every[number % len(every)]
        call = generate(name, seeded(name, seed * 1_000_000 + number // len(every)))
        said = unknown_difference(call)
        if said is not None:
            label = f"{call.name}: {re.sub(r'[0-9.]+', '#', said)[:60]}"
            told[label] += 1
            if told[label] <= show:
                print(f"-- {said}\n   {call}", flush=True)
        if (number + 1) % 10_000 == 0:
            print(f"{number + 1} calls, {sum(told.values())} differ", flush=True)
    print(f"{count} calls of {len(every)} functions, seed {seed}: {sum(told.values())} differ")
    for label, times in told.most_common():
        print(f"{times:6} {label}")
    return sum(told.values())
