"""The arithmetic of PTX instructions on NumPy arrays.

Approximate instructions return the rounded exact value; GPUs are within 2 units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.cuda.ptx_text import EmulationError, raw

_SMALLEST = np.float32(2.0**-126)
_SPLITTER = 134217729.0  # 2**27 + 1, which splits a float64 into two parts (Dekker)
ROUNDINGS = ("rn", "rz", "rm", "rp")


def flushed(a: np.ndarray) -> np.ndarray:
    """Replace float32 denormals by zeros."""
    return np.where(np.abs(a) < _SMALLEST, np.copysign(np.float32(0), a), a)


def saturated(a: np.ndarray) -> np.ndarray:
    """Clip to [0, 1]; NaN becomes 0."""
    return np.where(np.isnan(a), 0, np.clip(a, 0, 1)).astype(a.dtype)


# --- floats ---------------------------------------------------------------------------------------


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a sum and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a product and its rounding error."""
    product = a * b
    high_a, high_b = a * _SPLITTER, b * _SPLITTER
    high_a = high_a - (high_a - a)
    high_b = high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


def _to_odd(total: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Round total + error to odd, so that a later rounding sees that bits were cut."""
    bits = total.view(np.int64)
    is_inexact = (error != 0) & np.isfinite(error) & (bits & 1 == 0) & (total != 0)
    moved = np.where((error > 0) == (total > 0), bits + 1, bits - 1)
    return np.where(is_inexact, moved, bits).view(np.float64)


def _directed(total: np.ndarray, error: np.ndarray, rounding: str) -> np.ndarray:
    """Round total + error to float32 toward zero, down or up."""
    near = total.astype(np.float32)
    error = np.where(np.isfinite(error), error, 0)
    is_above = (near > total) | ((near == total) & (error < 0))
    is_below = (near < total) | ((near == total) & (error > 0))
    down = np.nextafter(near, np.float32(-np.inf))
    up = np.nextafter(near, np.float32(np.inf))
    lower, upper = np.where(is_above, down, near), np.where(is_below, up, near)
    return {"rm": lower, "rp": upper, "rz": np.where(total > 0, lower, upper)}[rounding]


def _fma16(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    # Products and nearly all sums of float16 are exact in float64; the rest is rounded to odd.
    total, error = _two_sum(a.astype("f8") * b.astype("f8"), c.astype("f8"))
    return _to_odd(total, error).astype("f2")


def _fma32(rounding: str) -> Callable[..., np.ndarray]:
    def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        total, error = _two_sum(a.astype("f8") * b.astype("f8"), c.astype("f8"))
        if rounding == "rn":
            return _to_odd(total, error).astype("f4")
        return _directed(total, error, rounding)

    return fma


def _fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Compute in pairs of float64 (Boldo and Melquiond), except near overflow and underflow."""
    high, low = _two_product(a, b)
    part, small = _two_sum(c, low)
    total, rest = _two_sum(high, part)
    exact = total + _to_odd(*_two_sum(small, rest))
    is_extreme = ~np.isfinite(high) | ~np.isfinite(exact) | (np.abs(high) < 1e-290) | (exact == 0)
    is_extreme |= (np.abs(a) > 1e290) | (np.abs(b) > 1e290)
    return np.where(is_extreme, a * b + c, exact)


def _float_operation(name: str, rounding: str, dtype: np.dtype) -> Callable[..., np.ndarray]:
    plain = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    if rounding == "rn":
        return plain
    if dtype != np.float32 or name == "div":
        raise EmulationError(f"{name}.{rounding} of {dtype}")

    def directed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if name == "mul":
            return _directed(a.astype("f8") * b.astype("f8"), np.zeros(a.shape), rounding)
        return _directed(
            *_two_sum(a.astype("f8"), (b if name == "add" else -b).astype("f8")), rounding
        )

    return directed


_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "rcp": lambda a: 1 / a,
}


def _function(name: str, modes: Sequence[str], dtype: np.dtype) -> Callable[..., np.ndarray]:
    function = _FUNCTIONS[name]
    if "approx" not in modes:
        return lambda a: function(a).astype(dtype)
    if dtype == np.float64:  # rcp and rsqrt, whose lower half is zero
        upper = np.uint64(0xFFFFFFFF00000000)
        return lambda a: (function(a).view(np.uint64) & upper).view(np.float64)
    return lambda a: function(a.astype(np.float64)).astype(dtype)


# --- integers -------------------------------------------------------------------------------------


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Divide toward zero; by zero, all bits are set."""
    ones = np.array(-1).astype(a.dtype)
    if a.dtype.kind == "u":
        return np.where(b == 0, ones, a // np.where(b == 0, 1, b).astype(a.dtype))
    safe = np.where((b == 0) | (b == -1), 1, b).astype(a.dtype)
    quotient = a // safe
    quotient = quotient + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    quotient = np.where(b == -1, np.negative(a), quotient)
    return np.where(b == 0, ones, quotient).astype(a.dtype)


def _remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    safe = np.where((b == 0) | (b == np.array(-1).astype(b.dtype)), 1, b).astype(a.dtype)
    if a.dtype.kind == "u":
        return np.where(b == 0, a, a % np.where(b == 0, 1, b).astype(a.dtype))
    found = np.where(b == -1, 0, np.fmod(a, safe))
    return np.where(b == 0, a, found).astype(a.dtype)


def high_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the upper half of a product."""
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        wide = np.dtype(f"{a.dtype.kind}{bits // 4}")
        return ((a.astype(wide) * b.astype(wide)) >> wide.type(bits)).astype(a.dtype)
    x, y, half, mask = a.view("u8"), b.view("u8"), np.uint64(32), np.uint64(0xFFFFFFFF)
    low_x, high_x, low_y, high_y = x & mask, x >> half, y & mask, y >> half
    middle = ((low_x * low_y) >> half) + ((high_x * low_y) & mask) + ((low_x * high_y) & mask)
    high = high_x * high_y + ((high_x * low_y) >> half) + ((low_x * high_y) >> half)
    high = high + (middle >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def _product(modes: Sequence[str], dtype: np.dtype) -> Callable[..., np.ndarray]:
    if "hi" in modes:
        return high_product
    if "wide" in modes:
        wide = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        return lambda a, b: a.astype(wide) * b.astype(wide)
    return np.multiply


def shifted(name: str) -> Callable[..., np.ndarray]:
    """Return a shift; PTX limits amounts to the number of bits."""

    def shift(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
        bits = 8 * a.dtype.itemsize
        is_far = amount >= bits
        near = np.where(is_far, 0, amount).astype(a.dtype)
        if name == "shl":
            return np.where(is_far, 0, a << near).astype(a.dtype)
        far = a >> a.dtype.type(bits - 1) if a.dtype.kind == "i" else a.dtype.type(0)
        return np.where(is_far, far, a >> near).astype(a.dtype)

    return shift


def _funnel(modes: Sequence[str]) -> Callable[..., np.ndarray]:
    def funnel(low: np.ndarray, high: np.ndarray, amount: np.ndarray) -> np.ndarray:
        whole = (high.astype("u8") << np.uint64(32)) | low.astype("u8")
        amount = amount & np.uint32(31) if "wrap" in modes else np.minimum(amount, np.uint32(32))
        amount = amount.astype("u8")
        moved = (whole << amount) >> np.uint64(32) if "l" in modes else whole >> amount
        return moved.astype("u4")

    return funnel


def _field(dtype: np.dtype) -> Callable[..., np.ndarray]:
    """Return ``bfe``: some bits from a position on, extended by the sign of signed types."""
    bits = 8 * dtype.itemsize

    def field(a: np.ndarray, start: np.ndarray, count: np.ndarray) -> np.ndarray:
        start, count = (each.astype("i8") & 255 for each in (start, count))
        value, last = a.view(raw(dtype)).astype("u8"), np.minimum(start + count, bits) - 1
        length = np.clip(np.minimum(count, bits - start), 0, bits)
        mask = ~np.uint64(0) >> (np.uint64(64) - np.maximum(length, 1).astype("u8"))
        part = np.where(length > 0, (value >> np.minimum(start, 63).astype("u8")) & mask, 0)
        if dtype.kind == "i":
            sign = (value >> np.maximum(last, 0).astype("u8")) & np.uint64(1)
            part = np.where((sign == 1) & (count > 0), part | ~np.where(length > 0, mask, 0), part)
        return part.astype(raw(dtype)).view(dtype)

    return field


def _counted(name: str, dtype: np.dtype) -> Callable[..., np.ndarray]:
    bits = 8 * dtype.itemsize

    def count(a: np.ndarray) -> np.ndarray:
        octets = np.ascontiguousarray(a).view(np.uint8).reshape(a.size, -1)[:, ::-1]
        table = np.unpackbits(octets, axis=1)
        if name == "popc":
            return table.sum(1).astype(np.uint32)
        if name == "clz":
            return np.where(table.any(1), table.argmax(1), bits).astype(np.uint32)
        return np.packbits(table[:, ::-1], axis=1)[:, ::-1].copy().view(raw(dtype)).reshape(a.shape)

    return count


def permuted(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Return ``prmt``: four bytes of two words, or their signs."""
    whole = a.astype("u8") | b.astype("u8") << np.uint64(32)
    result = np.zeros(whole.shape, np.uint64)
    for place in range(4):
        nibble = (selector.astype("u8") >> np.uint64(4 * place)) & np.uint64(15)
        octet = (whole >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
        sign = np.where(octet >> np.uint64(7), np.uint64(255), np.uint64(0))
        result |= np.where(nibble & np.uint64(8), sign, octet) << np.uint64(8 * place)
    return result.astype(np.uint32)


# --- all types ------------------------------------------------------------------------------------

_COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def compared(how: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a comparison; of floats, names that end with "u" are also true for NaN."""
    if a.dtype.kind != "f":
        return _COMPARISONS[how](a, b)
    is_nan = np.isnan(a) | np.isnan(b)
    if how in ("num", "nan"):
        return is_nan == (how == "nan")
    if len(how) == 3:
        return _COMPARISONS[how[:2]](a, b) | is_nan
    return _COMPARISONS[how](a, b) & ~is_nan


_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def converted(a: np.ndarray, target: np.dtype, modes: Sequence[str]) -> np.ndarray:
    """Return ``cvt``."""
    whole = [_WHOLE[each] for each in modes if each in _WHOLE]
    if "ftz" in modes and a.dtype == np.float32:
        a = flushed(a)
    if a.dtype.kind == "f" and target.kind == "f":
        for function in whole:
            a = function(a)
        if "rz" in modes and target == np.float32:
            found = _directed(a, np.zeros_like(a), "rz")
        else:
            found = a.astype(target)
        return saturated(found) if "sat" in modes else found
    if a.dtype.kind == "f":
        return _clipped((whole or [np.trunc])[0](a.astype(np.float64)), target, a.dtype)
    if target.kind in "iu" and "sat" in modes:
        limits, own = np.iinfo(target), np.iinfo(a.dtype)
        return np.clip(a, max(limits.min, own.min), min(limits.max, own.max)).astype(target)
    return a.astype(target)


def _clipped(whole: np.ndarray, target: np.dtype, source: np.dtype) -> np.ndarray:
    """Convert whole floats to integers, clipped; NaN is 0, or the top bit if a type has 64 bits."""
    limits = np.iinfo(target)
    is_nan, is_largest = np.isnan(whole), whole >= float(limits.max)
    inside = np.where(is_nan | is_largest, 0, np.maximum(whole, float(limits.min)))
    found = np.where(is_largest, np.array(limits.max, target), inside.astype(target))
    if 8 in (target.itemsize, source.itemsize):
        top = np.array(1 << (8 * target.itemsize - 1), raw(target)).view(target)
        found = np.where(is_nan, top, found)
    return found


def function_of(name: str, modes: Sequence[str], dtype: np.dtype) -> Callable[..., np.ndarray]:
    """Return the function of an arithmetic instruction for its operands.

    Raises:
        EmulationError: there is none.
    """
    rounding = next((each for each in modes if each in ROUNDINGS), "rn")
    is_float = dtype.kind == "f"
    if is_float and name in ("add", "sub", "mul", "div"):
        return _float_operation(name, rounding, dtype)
    if is_float and name in ("fma", "mad"):
        if dtype == np.float32:
            return _fma32(rounding)
        return _fma16 if dtype == np.float16 else _fma64
    if name in _FUNCTIONS:
        return _function(name, modes, dtype)
    if name == "mad":
        product = _product(modes, dtype)
        return lambda a, b, c: product(a, b) + c
    if name in ("popc", "clz", "brev"):
        return _counted(name, dtype)
    functions: dict[str, Any] = {
        "add": np.logical_xor if dtype.kind == "b" else np.add,
        "sub": np.subtract,
        "mul": _product(modes, dtype) if not is_float else None,
        "div": _quotient,
        "rem": _remainder,
        "min": np.fmin if is_float else np.minimum,
        "max": np.fmax if is_float else np.maximum,
        "shl": shifted("shl"),
        "shr": shifted("shr"),
        "shf": _funnel(modes),
        "bfe": _field(dtype) if not is_float else None,
        "prmt": permuted,
        "neg": np.negative,
        "abs": np.abs,
        "not": np.logical_not if dtype.kind == "b" else np.invert,
        "copysign": lambda a, b: np.copysign(b, a),
        "testp": {
            "finite": np.isfinite,
            "infinite": np.isinf,
            "notanumber": np.isnan,
            "number": lambda a: ~np.isnan(a),
        }.get(modes[0] if modes else ""),
        **LOGIC,
    }
    if functions.get(name) is None:
        raise EmulationError(f"unknown instruction {'.'.join((name, *modes))} of {dtype}")
    return functions[name]
