"""Elementary functions without loss of digits: exponentials, logarithms, entropies."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dparray.kernels.special.approximation import (
    Device,
    Functions,
    has_double_precision,
)
from dparray.kernels.special.pairs import make_pair_functions


@functools.cache
def make_elementary_functions(dtype: type, device: Device) -> Functions:
    """Return functions of exponentials and logarithms: logistic, entropies, Box-Cox, Huber.

    Differences of logarithms are computed as one logarithm near 1, and powers as powers.
    """
    is_double = has_double_precision(dtype)
    zero, half, one, two, ten = (dtype(value) for value in (0, 0.5, 1, 2, 10))
    inf, nan, pi = dtype(math.inf), dtype(math.nan), dtype(math.pi)
    low, high = dtype(0.3), dtype(0.65)
    epsilon = dtype(np.finfo(dtype).eps / 4)
    tiny, huge = dtype(np.finfo(dtype).tiny), dtype(np.finfo(dtype).max)
    most = dtype(np.log(np.finfo(dtype).max))
    dtype(math.pi / 180)
    _sixty, _ninety, _half_turn = dtype(60), dtype(90), dtype(180)
    pair = make_pair_functions(dtype, device)
    eight = dtype(8)
    most_of_pairs = dtype(1e280 if is_double else 1e30)
    least_of_pairs = dtype(1e-280 if is_double else 1e-30)
    sum_of, product_of = pair["sum_of"], pair["product_of"]
    _nearest, sin_pi, deviance = pair["nearest"], pair["sin_pi"], pair["deviance"]
    logarithm = pair["logarithm"]

    @device
    def expit(x: Any) -> Any:
        if x < zero:
            e = math.exp(x)
            return e / (one + e)
        return one / (one + math.exp(-x))

    @device
    def log_expit(x: Any) -> Any:
        if x < zero:
            return x - math.log1p(math.exp(x))
        return -math.log1p(math.exp(-x))

    @device
    def softplus(x: Any) -> Any:
        return -log_expit(-x)

    @device
    def logit(p: Any) -> Any:
        if p > low and p < high:
            s = two * (p - half)
            return math.log1p(s) - math.log1p(-s)
        if p < zero or p > one:
            return nan
        if p == one:
            return inf
        return math.log(p / (one - p))

    @device
    def xlogy(x: Any, y: Any) -> Any:
        if x == zero and y == y:
            return zero
        return x * math.log(y) if y >= zero else nan

    @device
    def xlog1py(x: Any, y: Any) -> Any:
        if x == zero and y == y:
            return zero
        return x * math.log1p(y) if y >= -one else nan

    @device
    def entr(x: Any) -> Any:
        if x > zero:
            return -x * math.log(x)
        if x == zero:
            return zero
        return x if x != x else -inf

    @device
    def rel_entr(x: Any, y: Any) -> Any:
        if x != x or y != y:
            return nan
        if x > zero and y > zero:
            if x > half * y and x < two * y:
                return x * math.log1p((x - y) / y)
            ratio = x / y
            if ratio > tiny and ratio <= huge:
                return x * math.log(ratio)
            return x * (math.log(x) - math.log(y))
        return zero if x == zero and y >= zero else inf

    @device
    def kl_div(x: Any, y: Any) -> Any:
        if x != x or y != y:
            return nan
        if x > zero and y > zero:
            if x > eight * y or y > eight * x or x > most_of_pairs or x < least_of_pairs:
                # Nothing is lost here, or pairs are out of range.
                return (x * (math.log(x) - math.log(y)) - x) + y
            h, rest = deviance(y, zero, x)
            return h + rest
        return y if x == zero and y >= zero else inf

    @device
    def sinc(x: Any) -> Any:
        if abs(x) < epsilon:
            return one
        return sin_pi(x) / (pi * x) if abs(x) <= huge else (zero if x == x else x)

    @device
    def exprel(x: Any) -> Any:
        if abs(x) < epsilon:
            return one
        if x > most - one:
            if x > most + ten:
                return inf
            e = math.exp(half * x)
            return e / x * e
        return math.expm1(x) / x

    @device
    def exp10(x: Any) -> Any:
        return math.pow(ten, x)

    @device
    def power_less_one(high: Any, low: Any, power: Any) -> Any:
        """Return ``((high + low)**power - 1) / power``; the base is near 1 or the power small."""
        h, rest = logarithm(high, low)
        e = power * h
        if abs(e) < one:
            return math.expm1(power * (h + rest)) / power
        return (math.pow(high, power) * (one + power * (low / high)) - one) / power

    @device
    def boxcox(x: Any, power: Any) -> Any:
        if x != x or power != power or x < zero:
            return nan
        if power == zero:
            return math.log(x)
        if x == zero or x > huge or abs(power) > huge:
            if x == zero:
                return -inf if power < zero else -one / power
            return (math.pow(x, power) - one) / power
        e = power * math.log(x)
        if abs(e) < one:
            return math.expm1(e) / power
        if e < most:
            return (math.pow(x, power) - one) / power
        half_power = math.pow(x, half * power)
        return half_power / power * half_power

    @device
    def boxcox1p(x: Any, power: Any) -> Any:
        if x != x or power != power or x < -one:
            return nan
        e = math.log1p(x)
        if abs(power) < tiny:
            return e
        if x == -one or x > huge or abs(power) > huge:
            return math.expm1(power * e) / power
        e = power * e
        if abs(e) < one:
            return math.expm1(e) / power
        h, rest = sum_of(one, x)
        if e < most:
            return (math.pow(h, power) * (one + power * (rest / h)) - one) / power
        half_power = math.pow(h, half * power)
        return half_power / power * (one + power * (rest / h)) * half_power

    @device
    def log_over(x: Any, power: Any) -> Any:
        """Return ``log1p(power * x) / power`` as a pair; the product is neither near 0 nor 1."""
        ph, pl = product_of(power, x)
        h, rest = sum_of(one, ph)
        h, rest = logarithm(h, rest + pl)
        q = h / power
        ph, pl = product_of(q, power)
        return q, (((h - ph) - pl) + rest) / power

    @device
    def inv_boxcox(x: Any, power: Any) -> Any:
        if power == zero:
            return math.exp(x)
        y = power * x
        if abs(y) < half or y != y or abs(y) > huge or y <= -one:
            return math.exp(math.log1p(y) / power) if y >= -one else nan
        e = math.log1p(y) / power
        if abs(e) > most:
            return math.exp(e)
        h, rest = log_over(x, power)
        return math.exp(h) * (one + rest)

    @device
    def inv_boxcox1p(x: Any, power: Any) -> Any:
        if power == zero:
            return math.expm1(x)
        y = power * x
        if abs(y) < epsilon:
            return math.expm1(x)
        if abs(y) < half or y != y or abs(y) > huge or y <= -one:
            return math.expm1(math.log1p(y) / power) if y >= -one else nan
        e = math.log1p(y) / power
        if abs(e) > most:
            return math.expm1(e)
        h, rest = log_over(x, power)
        e = math.expm1(h)
        return e + (e + one) * rest if e < huge else e

    @device
    def huber(delta: Any, r: Any) -> Any:
        if delta < zero:
            return inf
        size = abs(r)
        return half * r * r if size <= delta else delta * (size - half * delta)

    @device
    def pseudo_huber(delta: Any, r: Any) -> Any:
        if delta < zero:
            return inf
        if delta == zero or r == zero:
            return zero
        v = r / delta
        return delta * (v / (math.sqrt(one + v * v) + one)) * r

    return {
        "expit": expit,
        "log_expit": log_expit,
        "softplus": softplus,
        "logit": logit,
        "xlogy": xlogy,
        "xlog1py": xlog1py,
        "entr": entr,
        "rel_entr": rel_entr,
        "kl_div": kl_div,
        "sinc": sinc,
        "exprel": exprel,
        "exp10": exp10,
        "boxcox": boxcox,
        "boxcox1p": boxcox1p,
        "inv_boxcox": inv_boxcox,
        "inv_boxcox1p": inv_boxcox1p,
        "huber": huber,
        "pseudo_huber": pseudo_huber,
    }
