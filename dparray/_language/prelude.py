"""Functions of the language that are written in the language; they are translated in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dparray.kernel_api import group_barrier


def range_length(first: Any, stop: Any, step: Any) -> Any:
    """Return the number of items of a range; 0 for a step of 0."""
    return max((stop - first + step - (1 if step > 0 else -1)) // step, 0)


def float_floordiv(a: Any, b: Any) -> Any:
    """Return the quotient rounded down, as NumPy computes it."""
    if b == 0:
        return a / b
    rest = math.fmod(a, b)
    one = b**0
    quotient = (a - rest) / b
    if rest != 0 and (b < 0) != (rest < 0):
        quotient = quotient - one
    if quotient == 0:
        return math.copysign(quotient, a / b)
    floored = math.floor(quotient)
    if quotient - floored > one / (one + one):
        floored = floored + one
    return floored


def float_mod(a: Any, b: Any) -> Any:
    """Return the remainder with the sign of the divisor."""
    rest = math.fmod(a, b)
    if b == 0:
        return rest
    if rest == 0:
        return math.copysign(rest, b)
    if (b < 0) != (rest < 0):
        rest = rest + b
    return rest


def float_power(base: Any, exponent: Any) -> Any:
    """Return a float to the power of an integer: a product, or by logarithms if it is long."""
    left = np.uint64(0) - np.uint64(exponent) if exponent < 0 else np.uint64(exponent)
    one = base**0
    if left > np.uint64(0x10000):
        return one * math.pow(base, one * exponent)
    factor, product = base, one
    while left != np.uint64(0):
        if (left & np.uint64(1)) != np.uint64(0):
            product = product * factor
        left = left >> np.uint64(1)
        factor = factor * factor
    return one / product if exponent < 0 else product


def mixed_signed_first(a: Any, b: Any) -> Any:
    """Return the quotient and the remainder of an int64 and a uint64, rounded down."""
    if b == np.uint64(0):
        return np.int64(0), np.int64(0)
    if a >= 0:
        return np.int64(np.uint64(a) // b), np.int64(np.uint64(a) % b)
    size = np.uint64(0) - np.uint64(a)
    quotient, rest = size // b, size % b
    if rest == np.uint64(0):
        return np.int64(np.uint64(0) - quotient), np.int64(0)
    return np.int64(np.uint64(0) - quotient - np.uint64(1)), np.int64(b - rest)


def mixed_signed_second(a: Any, b: Any) -> Any:
    """Return the quotient and the remainder of a uint64 and an int64, rounded down."""
    if b == 0:
        return np.int64(0), np.int64(0)
    if b > 0:
        return np.int64(a // np.uint64(b)), np.int64(a % np.uint64(b))
    size = np.uint64(0) - np.uint64(b)
    quotient, rest = a // size, a % size
    if rest == np.uint64(0):
        return np.int64(np.uint64(0) - quotient), np.int64(0)
    return np.int64(np.uint64(0) - quotient - np.uint64(1)), np.int64(rest - size)


def clipped(first: Any, stop: Any, extent: Any) -> Any:
    """Return where a slice starts, and how many elements it has."""
    if first < 0:
        first = max(first + extent, 0)
    if stop < 0:
        stop = max(stop + extent, 0)
    first, stop = min(first, extent), min(stop, extent)
    return first, max(stop - first, 0)


def clipped_by_step(first: Any, stop: Any, step: Any, extent: Any) -> Any:
    """Return where a slice with a step starts, and how many elements it has."""
    lower, upper = (0, extent) if step > 0 else (-1, extent - 1)
    if first is None:
        begin = lower if step > 0 else upper
    else:
        begin = min(max(first + extent if first < 0 else first, lower), upper)
    if stop is None:
        end = upper if step > 0 else lower
    else:
        end = min(max(stop + extent if stop < 0 else stop, lower), upper)
    if step > 0:
        return begin, (end - begin + step - 1) // step if end > begin else 0
    if step < 0:
        return begin, (begin - end - step - 1) // -step if begin > end else 0
    return 0, 0


def complex_add(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a + c, b + d


def complex_sub(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a - c, b - d


def complex_mul(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a * c - b * d, a * d + b * c


def complex_div(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return a quotient, scaled by the larger part of the divisor: R. L. Smith, 1962."""
    if abs(c) >= abs(d):
        if c == 0:
            return a / abs(c), b / abs(c)
        ratio = d / c
        size = c + d * ratio
        return (a + b * ratio) / size, (b - a * ratio) / size
    ratio = c / d
    size = c * ratio + d
    return (a * ratio + b) / size, (b * ratio - a) / size


def complex_power(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return a power: a product for small integers, as in NumPy, otherwise by logarithms."""
    if c == 0 and d == 0:
        return a**0, a * 0
    size = math.hypot(a, b)
    if size == 0:
        unknown = a**0 * (0 if c > 0 else math.nan)
        return unknown, unknown
    times = abs(c)
    if d == 0 and times <= 100 and math.floor(times) == times:
        x, y = a, b
        for _ in range(1, int(times)):
            x, y = complex_mul(x, y, a, b)
        return complex_div(a**0, c * 0, x, y) if c < 0 else (x, y)
    logarithm = math.log(size)
    turn = math.atan2(b, a)
    size = math.exp(c * logarithm - d * turn)
    turn = d * logarithm + c * turn
    return size * math.cos(turn), size * math.sin(turn)


def linear_scan(group: Any, value: Any, scratch: Any, combine: Any, mine: Any, size: Any) -> Any:
    """Return the total, the inclusive and the exclusive scan of a group's values."""
    upto = before = total = value
    for first in range(0, size, 1024):
        own = value
        count = min(size - first, 1024)
        place = min(max(mine - first, 0), count - 1)
        has_turn = mine >= first and mine < first + count
        group_barrier(group)
        if has_turn:
            scratch[np.uint64(place)] = own
        group_barrier(group)
        step = 1
        while step < count:
            other = scratch[np.uint64(max(place - step, 0))]
            group_barrier(group)
            if has_turn and place >= step:
                own = combine(other, own)
                scratch[np.uint64(place)] = own
            group_barrier(group)
            step *= 2
        if has_turn:
            upto, before = own, scratch[np.uint64(max(place - 1, 0))]
            if first > 0:
                upto = combine(total, own)
                before = combine(total, before) if place > 0 else total
        last = scratch[np.uint64(count - 1)]
        total = combine(total, last) if first > 0 else last
    group_barrier(group)
    return total, upto, before


def lane_scan(group: Any, value: Any, combine: Any, shuffle: Any) -> Any:
    """Return the combination of the values of a sub-group up to this work-item."""
    mine = group.get_local_id()
    size = group.get_local_range()
    total = value
    step = 1
    while step < size:
        before = shuffle(total, max(mine - step, 0))
        if mine >= step:
            total = combine(before, total)
        step *= 2
    return total


def fill(array: Any, count: Any, value: Any) -> None:
    """Write a value into all elements of an array."""
    for i in range(count):
        array[i] = value


def rounded_integer(number: Any, digits: Any) -> Any:
    """Return an integer rounded to a number of digits, and to an even digit in the middle."""
    unit = number**0
    ten = unit * 10
    if digits >= 0:
        return number
    if digits < -18:  # The largest power of 10 that an int64 can represent.
        return number * 0
    for _ in range(-digits):
        unit = unit * ten
    half = unit // 2
    quotient = number // unit
    rest = number - quotient * unit
    if rest > half or (rest == half and quotient % 2 == 1):
        quotient = quotient + 1
    return quotient * unit


def rounded_float(x: Any, digits: Any, rint: Any) -> Any:
    """Return a float rounded to a number of decimal digits."""
    if math.isinf(x) or math.isnan(x):
        return x
    if digits >= 0:
        scale = 10.0 ** min(digits, 22)
        more = 10.0 ** max(digits - 22, 0)
        scaled = (x * more) * scale
        return x if math.isinf(scaled) else rint(scaled) / scale / more
    scale = 10.0**-digits
    return rint(x / scale) * scale


def combine_runs(
    a: Any,
    b: Any,
    out: Any,
    first: Any,
    second: Any,
    start: Any,
    count: Any,
    lanes: Any,
    load: Any,
    store: Any,
    combine: Any,
) -> None:
    """Combine the elements of two runs, pair by pair, a vector at a time."""
    done = np.uint64(0)
    while count - done >= lanes:
        store(out, start + done, combine(load(a, first + done), load(b, second + done)))
        done += lanes
    while done < count:
        dtype = out.dtype.type
        out[start + done] = combine(dtype(a[first + done]), dtype(b[second + done]))
        done += np.uint64(1)


def reduce_run(
    x: Any,
    start: Any,
    count: Any,
    total: Any,
    nothing: Any,
    lanes: Any,
    load: Any,
    combine: Any,
    fold: Any,
) -> Any:
    """Reduce a run, with four vectors that are combined independently."""
    step = lanes * np.uint64(4)
    a = b = c = d = nothing
    while count >= step:
        a = combine(a, load(x, start))
        b = combine(b, load(x, start + lanes))
        c = combine(c, load(x, start + lanes + lanes))
        d = combine(d, load(x, start + lanes + lanes + lanes))
        start += step
        count -= step
    total = combine(total, fold(combine(combine(a, b), combine(c, d))))
    while count > np.uint64(0):
        total = combine(total, type(total)(x[start]))
        start += np.uint64(1)
        count -= np.uint64(1)
    return total


def scan_run(
    x: Any,
    out: Any,
    start: Any,
    count: Any,
    carry: Any,
    has_nan: Any,
    inclusive: Any,
    lanes: Any,
    load: Any,
    store: Any,
    combine: Any,
    combine_nan: Any,
    scan: Any,
    spread: Any,
    last: Any,
    shifted: Any,
) -> None:
    """Scan a run; vectors of a minimum may lose a NaN, so elements are scanned up to it."""
    while count > np.uint64(0):
        if count >= lanes and not (has_nan and carry == carry):
            scanned = scan(load(x, start))
            results = combine(spread(carry), scanned)
            store(out, start, results if inclusive else shifted(results, carry))
            # Not the last result, so that the next vector waits for only one operation.
            carry = combine(carry, last(scanned))
            start += lanes
            count -= lanes
        else:
            after = combine_nan(carry, type(carry)(x[start]))
            out[start] = after if inclusive else carry
            carry = after
            start += np.uint64(1)
            count -= np.uint64(1)
