"""Every function of NumPy's with generated arguments: value, dtype, shape, order, aliases.

``make soak ARGS="--calls 200000"`` tries more of them. What is in `KNOWN` is told, with its reason,
in the list of differences from NumPy (:mod:`dparray.differences`).
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
from dparray._evaluate import limits
from tests.functions.generated_calls import Arr, Call, carry_out, generate, names, ufuncs

CALLS_OF_EACH = 4
#: What may differ: a pattern of what `difference` says, and why.
KNOWN: tuple[tuple[str, str], ...] = (
    (r"is read-only", "views without repeated elements can be written"),
    (r"accepts .*(No loop matching|did not contain a loop)", "dtype= says what is computed in"),
    (r"does not become \w+ by the rule", "dtype= says what is computed in"),
    (r"^block: accepts", "tuples are sequences"),
    (r"^einsum: alias", "results are new arrays"),
    (r"^linalg.matrix_power: alias", "results are new arrays"),
    (r"not defined for float16", "linear algebra has no half precision"),
    (r"No \w+ implementation is available", "linear algebra has no half precision"),
    (r"AxisError: .* of 0 dimensions", "an array without dimensions has no axis"),
    (r"an array of 0 dimensions needs axis", "an array without dimensions has no axis"),
    (r"accepts .*Integers to negative integer powers", "integer powers with negative exponents"),
    (r"would lose the imaginary part", "complex numbers do not become real ones unasked"),
    (r"OverflowError: .* does not fit into", "integers out of range are refused"),
    (r"byteswap", "devices have one order of bytes"),
    (r"^\.resize: accepts", "arrays are resized without counting references"),
    (r"^asfortranarray: shape: \(\), not \(1,\)", "no dimensions stay none"),
    (r"initial must be a scalar", "initial= is a scalar"),
    (r"accepts .*vsplit only works", "vectors are split"),
    (r"^(unique_values|unique_counts|unique_inverse|unique_all): ", "values are sorted"),
    (r"^\.?(nan)?(quantile|percentile|median): value: .*(inf|nan)", "quantiles beside infinities"),
    (r"^(nan)?(quantile|percentile): value: .*e\+18", "differences of integers wrap in NumPy"),
    (r"^polymul: shape", "leading zeros of products of polynomials stay"),
    (r"^interp: refuses.*must be 1D", "interp takes vectors"),
    (r"^(astype|\.astype): accepts", "conversions are unsafe where asked"),
    (r"does not fit out of dtype", "results go to out= by the rule same_kind"),
    (r"arg(max|min): accepts .*Cannot cast", "results go to out= by the rule same_kind"),
    (r"complex\d+ does not fit into", "complex numbers do not become real ones unasked"),
    (r"^(setxor1d|union1d|unique): (part 0: )?(shape|value)", "NumPy leaves halves unsorted"),
    (r"^fft.i?fftshift: accepts", "an array without dimensions has no axis"),
    (r"^polyval: value: .*nan", "products of complex infinities"),
    (r"^(\.?(nan)?mean|expm1): value: .*[+-]nanj", "products of complex infinities"),
    (r"^fft.i?(rfft|hfft)n?2?: dtype: float32, not float16", "transforms have no half precision"),
    (r"accepts .*Cannot cast ufunc '\w+' input \d", "dtype= says what is computed in"),
    (r"^\.?(a?round): accepts .*Cannot cast ufunc", "results go to out= by the rule same_kind"),
    (r"^\.?(take|compress|choose): accepts .*Cannot", "results go to out= by the rule same_kind"),
    (r"accepts .*Python int too large to convert to C long", "numbers beyond int64"),
    (r"^\.?partition: (value|leaves)", "the others are in any order"),
    (r"output array is not acceptable", "results go to out= by the rule same_kind"),
    (r"^linalg\.(vector_)?norm: dtype: float32, not float64", "the number of a norm is Python's"),
    (r"^unique: refuses: UnsupportedFeatureError", "axis= of unique needs the host"),
)


@contextlib.contextmanager
def tier(name: str) -> Iterator[None]:
    """One of the ways in which dparray computes."""
    with contextlib.ExitStack() as stack:
        if name == "eager":
            stack.enter_context(dp.config.override(lazy=False))
        elif name == "no host tier":
            stack.enter_context(dp.config.override(host_tier=False))
        elif name in ("library", "fused", "host"):
            stack.enter_context(limits.force(name))
        elif name == "busy":
            stack.enter_context(dp.config.override(lazy=False, host_tier=False))
        yield


def attempt(xp: Any, call: Call) -> Any:
    """The result and the arrays that went in, or the error."""
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


#: How far results may lie apart, in roundings of the largest number: other libraries transform
#: numbers of points with large prime factors with some hundreds.
ROUNDINGS, ROUNDINGS_OF_TRANSFORMS = 64, 2048


def _close(
    found: np.ndarray, wanted: np.ndarray, scale: float, eps: float, roundings: int = ROUNDINGS
) -> bool:
    """Whether floats are the same but for some roundings."""
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
        bound = roundings * eps * np.maximum(np.abs(wanted), scale) + 8 * float(
            np.finfo("float16").tiny if eps > 1e-4 else 0
        )
        return bool(np.all(np.abs(found - wanted) <= bound))


def _scale(values: list[np.ndarray]) -> float:
    """The largest finite number among results."""
    largest = 0.0
    for each in values:
        if each.dtype.kind in "fc" and each.size:
            with np.errstate(all="ignore"):
                sizes = np.abs(each.astype("complex128" if each.dtype.kind == "c" else "float64"))
            finite = sizes[np.isfinite(sizes)]
            largest = max(largest, float(finite.max(initial=0)))
    return largest


def difference(call: Call) -> str | None:
    """How the results of a call differ; ``None`` if they do not."""
    wanted = attempt(np, call)
    with tier(call.tier):
        found = attempt(dp, call)
        try:
            return _difference(found, wanted, _roundings(call), _computed_in(call))
        except Exception as error:  # of a pending computation
            return f"raises when read: {type(error).__name__}: {error}"


def _roundings(call: Call) -> int:
    """How many roundings results may lie apart; NumPy adds many numbers one after the other."""
    if call.name.startswith("fft."):
        return ROUNDINGS_OF_TRANSFORMS
    sizes = [arg.seen.size for arg in call.args if isinstance(arg, Arr)]
    return ROUNDINGS + max(sizes, default=0) // 8


def _computed_in(call: Call) -> list[np.ndarray]:
    """What a call gives without ``out=``, whose dtype says how exact the result is."""
    if "out" not in call.kwargs:
        return []
    kwargs = {key: value for key, value in call.kwargs.items() if key != "out"}
    plain = attempt(np, Call(call.name, call.args, kwargs))
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
        if not _same_values(host(x), y, _scale([y]), seen):
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


#: Functions whose results have NumPy's order in memory; those of others may be in C's.
ORDERED = frozenset(
    {
        *("copy", "astype", "array", "asarray", "zeros_like", "ones_like", "full_like", "clip"),
        *("concatenate", "concat", "pad", "delete", "insert", "round", "around", "ravel"),
        *("transpose", "permute_dims", "swapaxes", "moveaxis", "asfortranarray", "reshape"),
    }
)


def keeps_order(name: str) -> bool:
    """Whether a function's results have NumPy's order in memory."""
    name = name.removeprefix(".")
    return name.startswith("operator.") or name in ORDERED or name in ufuncs(dp)


def known(call: Call, said: str) -> str | None:
    """The reason of a known difference."""
    picks = call.name == "delete" and not isinstance(call.args[1], int | slice)
    has_gaps = "out" in call.kwargs and call.kwargs["out"].views
    if (
        call.name.lstrip(".") == "choose"
        and has_gaps
        and call.kwargs.get("mode", "raise") != "raise"
    ):
        return "NumPy's choose leaves an out with gaps unwritten"
    if call.name in ("isfinite", "isnan", "isinf", "signbit") and has_gaps and "value: " in said:
        return "NumPy 2.2's of floats leaves an out with gaps wrong"
    if call.name.lstrip(".") == "astype" and not np.all(np.isfinite(call.args[0].seen)):
        return "infinities are no integers"
    rounds = call.name.lstrip(".") in ("round", "around")
    if "order: " in said and (picks or rounds or not keeps_order(call.name)):
        return "memory order of functions that are not elementwise"
    is_moment = call.name.lstrip(".").removeprefix("nan") in ("mean", "std", "var")
    is_half = isinstance(call.args[0], Arr) and call.args[0].values.dtype == np.float16
    if is_moment and (is_half or {"dtype", "out"} & call.kwargs.keys()) and "value: " in said:
        return "means and variances in a dtype that does not hold the sum"
    if (
        _is_quantile_of_integers(call)
        and "value: " in said
        and "value: " not in (_difference_of_floats(call) or "")
    ):
        return "differences of integers wrap in NumPy"
    if "value: " in said:
        if re.fullmatch(r"\.?a?(max|min)", call.name) and _has_a_narrow_out(call):
            return "a maximum into unsigned integers"
        if re.fullmatch(r"(operator\.i?)?pow(er)?", call.name) and _is_of_infinities(call):
            return "products of complex infinities"
        if call.name == "i0" and _is_of_an_infinite_argument(call):
            return "i0 of infinities"
        if call.name == "reciprocal" and _is_of_zeros(call):
            return "the reciprocal of the integer 0 is 0"
        if re.search(r"prod$|^multiply\.", call.name) and _is_of_parts_that_overflow(call):
            return "products whose parts overflow"
    text = f"{call.name}: {said}"
    for pattern, reason in KNOWN:
        if re.search(pattern, text):
            return reason
    return None


def _is_quantile_of_integers(call: Call) -> bool:
    return (
        call.name.removeprefix("nan") in ("quantile", "percentile")
        and isinstance(call.args[0], Arr)
        and call.args[0].values.dtype.kind in "iu"
    )


def _difference_of_floats(call: Call) -> str | None:
    """How a result differs from NumPy's of the same numbers as floats."""
    first = call.args[0]
    floats = Arr(first.values.astype("float64"), first.views)
    wanted = attempt(np, Call(call.name, [floats, *call.args[1:]], call.kwargs))
    return _difference(attempt(dp, call), wanted)


def _results(call: Call) -> tuple[np.ndarray, np.ndarray] | None:
    """Ours and NumPy's single result, where both have one of the same shape."""
    wanted = attempt(np, call)
    with tier(call.tier):
        found = attempt(dp, call)
        if isinstance(wanted, Exception) or isinstance(found, Exception):
            return None
        ours, theirs = np.asarray(host(found[0])), np.asarray(wanted[0])
    return (ours, theirs) if ours.shape == theirs.shape else None


def _are_close_where(holds: np.ndarray, found: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether the elements for which something holds are the same but for roundings."""
    found, wanted = found[holds], wanted[holds]
    if wanted.dtype.kind not in "fc":
        return bool(np.array_equal(found, wanted))
    eps = float(np.finfo(wanted.dtype).eps)
    return _close(found, wanted, _scale([wanted]), eps, ROUNDINGS + wanted.size // 8)


def _is_of_infinities(call: Call) -> bool:
    """Whether complex results differ only where they, or what they are made of, are not finite."""
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


def _has_a_narrow_out(call: Call) -> bool:
    """Whether elements of the first argument are of a kind that ``out`` does not hold."""
    out, first = call.kwargs.get("out"), call.args[0]
    if not isinstance(out, Arr) or not isinstance(first, Arr):
        return False
    return not np.can_cast(first.values.dtype, out.values.dtype, "same_kind")


def _is_of_an_infinite_argument(call: Call) -> bool:
    """Whether results differ only where the first argument is not finite."""
    results = _results(call)
    values = np.asarray(call.args[0].seen if isinstance(call.args[0], Arr) else call.args[0])
    return results is not None and _are_close_where(np.isfinite(values), *results)


def _is_of_zeros(call: Call) -> bool:
    """Whether results of integers differ only where these are 0."""
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
    """Whether products differ only where they are not finite or vanish, and some factors' do."""
    results = _results(call)
    first = call.args[0]
    values = np.asarray(first.seen if isinstance(first, Arr) else first)
    if results is None or results[1].dtype.kind not in "fc":
        return False
    found, wanted = results
    limits_of = np.finfo(wanted.dtype)
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
    """A difference that no reason is known of."""
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
    """Try calls of all functions in turn; returns how many differ."""
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
