"""Random numbers of distributions that consume a varying number of uniform ones, by rejection.

Each element has its own sequence, a stream of Philox counters numbered by the element's index, and
takes any number of blocks from it. So an element does not depend on the others, on the range or on
the division of the work.

Parameters are real vectors as long as the output. A parameter outside its range gives NaN, or -1 if
the output is an integer; the host raises before.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from numpy import int64, uint64

__all__ = [
    "make_binomial_kernel",
    "make_gamma_kernel",
    "make_hypergeometric_kernel",
    "make_log_binomial",
    "make_log_poisson",
    "make_poisson_kernel",
    "make_reals",
    "make_vonmises_kernel",
    "make_zipf_kernel",
]

_WORD = uint64(32)
_SHIFT_24 = uint64(40)
_SHIFT_53 = uint64(11)
_ONE = uint64(1)
_TWO = uint64(2)


@functools.cache
def make_reals(block: Callable[..., Any], dtype: type) -> Callable[..., Any]:
    """Return a function that gives two reals in [0, 1) for a counter, a stream and a key.

    Args:
        block: ``philox`` as a device function.
        dtype: ``float32`` (24 random bits) or ``float64`` (53).
    """
    step_24 = dtype(2.0**-24)
    step_53 = dtype(2.0**-53)

    def reals_32(counter: Any, stream: Any, key: Any) -> tuple[Any, Any]:
        w0, w1, w2, w3 = block(counter, stream, key)
        u = dtype(int64(((w1 << _WORD) | w0) >> _SHIFT_24)) * step_24
        v = dtype(int64(((w3 << _WORD) | w2) >> _SHIFT_24)) * step_24
        return u, v

    def reals_64(counter: Any, stream: Any, key: Any) -> tuple[Any, Any]:
        w0, w1, w2, w3 = block(counter, stream, key)
        u = dtype(int64(((w1 << _WORD) | w0) >> _SHIFT_53)) * step_53
        v = dtype(int64(((w3 << _WORD) | w2) >> _SHIFT_53)) * step_53
        return u, v

    return reals_64 if dtype(0).itemsize == 8 else reals_32


@functools.cache
def make_log_poisson(dtype: type) -> Callable[..., Any]:
    """Return a function for the logarithm of a Poisson probability: of k, for a given mean.

    It uses Stirling's series for k of at least 8. The large terms, ``k * log(mean)``, ``mean`` and
    those of the factorial, are joined so that nothing is lost in their differences (after C.
    Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000). The error is that of
    rounding ``k - mean``, in single precision, too. Without the branches of a library's ``lgamma``,
    it vectorizes.

    Binomial probabilities use it. Up to a factor that does not depend on k, the probability of k of
    n is a product of two Poisson probabilities: of k with the mean ``n * p``, and of ``n - k`` with
    the mean ``n * (1 - p)``.
    """
    zero, one, half, eight = (dtype(value) for value in (0, 1, 0.5, 8))
    constant = dtype(0.5 * math.log(2 * math.pi))
    series = tuple(dtype(value) for value in (1 / 12, -1 / 360, 1 / 1260, -1 / 1680))
    s0, s1, s2, s3 = series

    def log_poisson(k: Any, mean: Any, log_mean: Any) -> Any:
        x = k + one
        product = one
        over = half  # the excess of x - 1/2 over k
        while x < eight:
            product *= x
            x += one
            over += one
        inverse = one / x
        square = inverse * inverse
        tail = inverse * (s0 + square * (s1 + square * (s2 + square * s3)))
        more = x - mean
        joined = more - (x - half) * math.log1p(more / mean) - over * log_mean - constant - tail
        found = joined + (math.log(product) if product > one else zero)
        return found if mean > zero else zero  # 0 is the only possible k.

    return log_poisson


@functools.cache
def make_log_binomial(log_poisson: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for the logarithm of a binomial probability: of k of n.

    It takes the probability of success and that of failure, which is 1 minus the other.

    Args:
        log_poisson: the result of :func:`make_log_poisson`, as a device function.
    """

    def log_binomial(k: Any, n: Any, chance: Any, other: Any) -> Any:
        mean, rest = n * chance, n * other
        found = log_poisson(k, mean, math.log(mean)) + log_poisson(n - k, rest, math.log(rest))
        return found - log_poisson(n, n, math.log(n))

    return log_binomial


@functools.cache
def make_gamma_kernel(reals: Callable[..., Any], dtype: type) -> Callable[..., None]:
    """Generate logarithms of gamma variates of scale 1.

    G. Marsaglia and W. Tsang, "A Simple Method for Generating Gamma Variables" (2000); for a shape
    below 1, their variate of shape + 1 times a power of a uniform number, which cannot underflow as
    a logarithm.

    Launch over a ``Range`` of as many items as there are elements.

    Args:
        reals: the result of :func:`make_reals`, as a device function.
        dtype: of the output and the parameters.

    Kernel parameters:
        out (n,): output of ``dtype``.
        shapes (n,): the distribution's shapes, 0 or more.
        first, step: uint64, the stream of the first element, and from one to the next.
        key: uint64.
    """
    zero, half, one, two, three = (dtype(value) for value in (0, 0.5, 1, 2, 3))
    third, nine, full_turn = dtype(1 / 3), dtype(9), dtype(2 * math.pi)

    def log_gamma(item: Any, out: Any, shapes: Any, first: Any, step: Any, key: Any) -> None:
        i = item.get_id(0)
        stream = first + uint64(i) * step
        shape = shapes[i]
        d = (shape + one if shape < one else shape) - third
        c = one / math.sqrt(nine * d)
        counter = uint64(0)
        searching = shape > zero
        result = dtype(-math.inf) if shape == zero else dtype(math.nan)
        while searching:
            u, v = reals(counter, stream, key)
            w, t = reals(counter + _ONE, stream, key)
            counter += _TWO
            x = math.sqrt(-two * math.log(one - u)) * math.cos(full_turn * v)
            r = one + c * x
            if r > zero:
                logarithm = three * math.log(r)
                if math.log(one - w) < half * x * x + d - d * r * r * r + d * logarithm:
                    searching = False
                    result = math.log(d) + logarithm
                    if shape < one:
                        result += math.log(one - t) / shape
        out[i] = result

    return log_gamma


@functools.cache
def make_poisson_kernel(
    reals: Callable[..., Any], log_poisson: Callable[..., Any], dtype: type
) -> Callable[..., None]:
    """Generate Poisson variates.

    For a mean of at least 10, see W. Hormann, "The Transformed Rejection Method for Generating
    Poisson Random Variables" (1993), algorithm PTRS. For smaller means uniform numbers are
    multiplied until they are less than ``exp(-mean)``.

    Launch over a ``Range`` of as many items as there are elements.

    Args:
        reals: the result of :func:`make_reals`, as a device function.
        log_poisson: the result of :func:`make_log_poisson`, as a device function.
        dtype: of the parameters.

    Kernel parameters:
        out (n,): output of int64.
        means (n,): 0 or more.
        first, step: uint64, the stream of the first element, and from one to the next.
        key: uint64.
    """
    zero, half, one, two, ten = (dtype(value) for value in (0, 0.5, 1, 2, 10))

    def poisson(item: Any, out: Any, means: Any, first: Any, step: Any, key: Any) -> None:
        i = item.get_id(0)
        stream = first + uint64(i) * step
        mean = means[i]
        counter = uint64(0)
        result = int64(-1)
        if mean >= zero and mean < ten:
            limit = math.exp(-mean)
            product = one
            count = int64(-1)
            while product > limit:
                u, v = reals(counter, stream, key)
                counter += _ONE
                product *= one - u
                count += int64(1)
                if product > limit:
                    product *= one - v
                    count += int64(1)
            result = count if limit < one else int64(0)
        elif mean >= ten:
            b = dtype(0.931) + dtype(2.53) * math.sqrt(mean)
            a = dtype(-0.059) + dtype(0.02483) * b
            inverse_alpha = dtype(1.1239) + dtype(1.1328) / (b - dtype(3.4))
            quick = dtype(0.9277) - dtype(3.6224) / (b - two)
            log_mean = math.log(mean)
            searching = True
            while searching:
                u, v = reals(counter, stream, key)
                counter += _ONE
                u -= half
                v = one - v
                us = half - abs(u)
                k = math.floor((two * a / us + b) * u + mean + dtype(0.43))
                if us >= dtype(0.07) and v <= quick:
                    searching = False
                elif k >= zero and (us >= dtype(0.013) or v <= us):
                    left = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
                    searching = left > log_poisson(k, mean, log_mean)
                if not searching:
                    result = int64(k)
        out[i] = result

    return poisson


@functools.cache
def make_binomial_kernel(
    reals: Callable[..., Any], log_poisson: Callable[..., Any], dtype: type
) -> Callable[..., None]:
    """Generate binomial variates.

    For a mean of at least 10, see W. Hormann, "The Generation of Binomial Random Variates" (1993),
    algorithm BTRS. For smaller means the cumulative distribution is searched from 0 on.

    Launch over a ``Range`` of as many items as there are elements.

    Args:
        reals: the result of :func:`make_reals`, as a device function.
        log_poisson: the result of :func:`make_log_poisson`, as a device function.
        dtype: of the parameters.

    Kernel parameters:
        out (n,): output of int64.
        trials (n,): numbers of trials, whole and 0 or more.
        chances (n,): of one trial, between 0 and 1.
        first, step: uint64, the stream of the first element, and from one to the next.
        key: uint64.
    """
    zero, half, one, two, ten = (dtype(value) for value in (0, 0.5, 1, 2, 10))

    def binomial(
        item: Any, out: Any, trials: Any, chances: Any, first: Any, step: Any, key: Any
    ) -> None:
        i = item.get_id(0)
        stream = first + uint64(i) * step
        n, chance = trials[i], chances[i]
        p = one - chance if chance > half else chance
        counter = uint64(0)
        k = -one
        if n >= zero and p >= zero:
            if n * p < ten:
                u, v = reals(counter, stream, key)
                ratio = p / (one - p)
                term = math.exp(n * math.log1p(-p))
                k = zero
                while u >= term and k < n:
                    u -= term
                    k += one
                    term *= (n - k + one) / k * ratio
            else:
                spread = math.sqrt(n * p * (one - p))
                b = dtype(1.15) + dtype(2.53) * spread
                a = dtype(-0.0873) + dtype(0.0248) * b + dtype(0.01) * p
                centre = n * p + half
                quick = dtype(0.92) - dtype(4.2) / b
                alpha = (dtype(2.83) + dtype(5.1) / b) * spread
                mean, rest = n * p, n - n * p
                log_mean, log_rest = math.log(mean), math.log(rest)
                mode = math.floor((n + one) * p)
                height = log_poisson(mode, mean, log_mean)
                height += log_poisson(n - mode, rest, log_rest)
                searching = True
                while searching:
                    u, v = reals(counter, stream, key)
                    counter += _ONE
                    u -= half
                    v = one - v
                    us = half - abs(u)
                    k = math.floor((two * a / us + b) * u + centre)
                    if us >= dtype(0.07) and v <= quick:
                        searching = False
                    elif k >= zero and k <= n:
                        left = math.log(v * alpha / (a / (us * us) + b))
                        right = log_poisson(k, mean, log_mean)
                        right += log_poisson(n - k, rest, log_rest)
                        searching = left > right - height
            if chance > half:
                k = n - k
        out[i] = int64(k)

    return binomial


@functools.cache
def make_hypergeometric_kernel(
    reals: Callable[..., Any], log_binomial: Callable[..., Any], dtype: type
) -> Callable[..., None]:
    """Generate hypergeometric variates by a search of the distribution from its mode.

    Launch over a ``Range`` of as many items as there are elements.

    Args:
        reals: the result of :func:`make_reals`, as a device function.
        log_binomial: the result of :func:`make_log_binomial`, as a device function.
        dtype: of the parameters.

    Kernel parameters:
        out (n,): output of int64.
        good, bad (n,): how many there are of both kinds, whole and 0 or more.
        drawn (n,): how many are drawn, at most all.
        first, step: uint64, the stream of the first element, and from one to the next.
        key: uint64.
    """
    zero, one, two = (dtype(value) for value in (0, 1, 2))

    def hypergeometric(
        item: Any, out: Any, good: Any, bad: Any, drawn: Any, first: Any, step: Any, key: Any
    ) -> None:
        i = item.get_id(0)
        g, b, s = good[i], bad[i], drawn[i]
        u, _ = reals(uint64(0), first + uint64(i) * step, key)
        result = -one
        if g >= zero and b >= zero and s >= zero and s <= g + b:
            mode = math.floor((s + one) * (g + one) / (g + b + two))
            mode = max(max(zero, s - b), min(mode, min(g, s)))
            # Two binomial probabilities over a third, equal for every probability of success.
            whole = max(g + b, one)
            chance, other = s / whole, (g + b - s) / whole
            term = log_binomial(mode, g, chance, other)
            term += log_binomial(s - mode, b, chance, other)
            term -= log_binomial(s, g + b, chance, other)
            above, below = mode, mode
            term_above = math.exp(term)
            term_below = term_above
            u -= term_above
            result = mode
            while u >= zero and (term_above > zero or term_below > zero):
                term_above *= (g - above) / (above + one) * (s - above) / (b - s + above + one)
                above += one
                u -= term_above
                result = above
                if u >= zero:
                    up = (g - below + one) * (s - below + one)
                    term_below *= below * (b - s + below) / up
                    below -= one
                    u -= term_below
                    result = below
            if u >= zero:  # the remainder due to rounding
                result = mode
        out[i] = int64(result)

    return hypergeometric


@functools.cache
def make_zipf_kernel(reals: Callable[..., Any], dtype: type) -> Callable[..., None]:
    """Generate Zipf variates.

    L. Devroye, "Non-Uniform Random Variate Generation" (1986), chapter X.6.

    Launch over a ``Range`` of as many items as there are elements.

    Args:
        reals: the result of :func:`make_reals`, as a device function.
        dtype: of the parameters.

    Kernel parameters:
        out (n,): output of int64.
        exponents (n,): more than 1.
        first, step: uint64, the stream of the first element, and from one to the next.
        key: uint64.
    """
    one, two, most = dtype(1), dtype(2), dtype(2.0**62)

    def zipf(item: Any, out: Any, exponents: Any, first: Any, step: Any, key: Any) -> None:
        i = item.get_id(0)
        stream = first + uint64(i) * step
        less = exponents[i] - one
        b = math.pow(two, less)
        counter = uint64(0)
        result = int64(-1)
        searching = less > dtype(0)
        while searching:
            u, v = reals(counter, stream, key)
            counter += _ONE
            x = math.floor(math.pow(one - u, -one / less))
            if x < most:
                t = math.pow(one + one / x, less)
                if v * x * (t - one) / (b - one) <= t / b:
                    searching = False
                    result = int64(x)
        out[i] = result

    return zipf


@functools.cache
def make_vonmises_kernel(reals: Callable[..., Any], dtype: type) -> Callable[..., None]:
    """Generate angles from -pi to pi of the von Mises distribution about 0.

    D. Best and N. Fisher, "Efficient Simulation of the von Mises Distribution" (1979); very wide
    distributions are uniform, very narrow ones normal.

    Launch over a ``Range`` of as many items as there are elements.

    Args:
        reals: the result of :func:`make_reals`, as a device function.
        dtype: of the output and the parameters.

    Kernel parameters:
        out (n,): output of ``dtype``.
        concentrations (n,): 0 or more.
        first, step: uint64, the stream of the first element, and from one to the next.
        key: uint64.
    """
    zero, half, one, two, four = (dtype(value) for value in (0, 0.5, 1, 2, 4))
    half_turn, wide, narrow = dtype(math.pi), dtype(1e-5), dtype(1e6)

    def vonmises(item: Any, out: Any, concentrations: Any, first: Any, step: Any, key: Any) -> None:
        i = item.get_id(0)
        stream = first + uint64(i) * step
        kappa = concentrations[i]
        counter = uint64(0)
        result = dtype(math.nan)
        if kappa >= zero and kappa < wide:
            u, v = reals(counter, stream, key)
            result = half_turn * (two * u - one)
        elif kappa > narrow:
            u, v = reals(counter, stream, key)
            radius = math.sqrt(-two * math.log(one - u) / kappa)
            result = radius * math.cos(two * half_turn * v)
        elif kappa >= wide:
            tau = one + math.sqrt(one + four * kappa * kappa)
            rho = (tau - math.sqrt(two * tau)) / (two * kappa)
            r = (one + rho * rho) / (two * rho)
            searching = True
            while searching:
                u, v = reals(counter, stream, key)
                sign, _ = reals(counter + _ONE, stream, key)
                counter += _TWO
                z = math.cos(half_turn * u)
                f = (one + r * z) / (r + z)
                c = kappa * (r - f)
                v = one - v
                if c * (two - c) > v or math.log(c / v) + one >= c:
                    searching = False
                    angle = math.acos(min(max(f, -one), one))
                    result = angle if sign < half else -angle
        out[i] = result

    return vonmises
