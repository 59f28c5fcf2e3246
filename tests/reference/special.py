"""Compute tests/reference/special.npz: arguments and values of special functions, with mpmath.

The file has an array for each function and precision, with a row for each argument. The last row
has the values in float64, rounded from many more digits. mpmath is needed here, but not by the
tests.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

DIGITS = 50
mp.mp.dps = DIGITS

rng = np.random.default_rng(2026)


def spread(low: float, high: float, count: int) -> np.ndarray:
    """Return numbers whose logarithms are evenly spread."""
    return 10 ** rng.uniform(np.log10(low), np.log10(high), count)


def even(low: float, high: float, count: int) -> np.ndarray:
    return rng.uniform(low, high, count)


def both_signs(values: np.ndarray) -> np.ndarray:
    return values * rng.choice([-1.0, 1.0], values.size)


def normal_tail(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def inverse_erfc(y: Any) -> Any:
    if y > 1:
        return -inverse_erfc(2 - y)
    x = mp.sqrt(mp.log(2 / y) * mp.mpf("0.8"))
    for _ in range(200):
        value = mp.erfc(x)
        step = mp.log(value / y) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mp.mpf(10) ** (5 - DIGITS) * (abs(x) + mp.mpf(10) ** -30):
            break
    return x


def erfinv(x: Any) -> Any:
    return mp.erfinv(x) if abs(x) < 0.5 else mp.sign(x) * inverse_erfc(1 - abs(x))


def ndtri(p: Any) -> Any:
    if abs(p - 0.5) < 0.25:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)
    return -mp.sqrt(2) * inverse_erfc(2 * p)


def lower_gamma(a: Any, x: Any) -> Any:
    """Return x**a exp(-x) / gamma(a + 1) times its series."""
    term = total = mp.mpf(1)
    n = a
    while term > total * mp.mpf(10) ** -DIGITS:
        n += 1
        term *= x / n
        total += term
    return total * mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))


def upper_gamma(a: Any, x: Any) -> Any:
    if x < a + 1 or x < 2:
        with mp.workdps(2 * DIGITS):
            return 1 - lower_gamma(a, x)
    b = x + 1 - a
    c, d = mp.mpf(10) ** 300, 1 / b
    found, n = d, 0
    while True:
        n += 1
        factor = -n * (n - a)
        b += 2
        d = 1 / (factor * d + b)
        c = b + factor / c
        found *= c * d
        if abs(c * d - 1) < mp.mpf(10) ** -(DIGITS - 8):
            break
    return found * mp.exp(a * mp.log(x) - x - mp.loggamma(a))


def gammainc(a: Any, x: Any) -> Any:
    return lower_gamma(a, x) if x < a + 1 else 1 - upper_gamma(a, x)


def part_of_beta(a: Any, b: Any, x: Any, y: Any) -> Any:
    term = total = mp.mpf(1)
    n = mp.mpf(0)
    while term > total * mp.mpf(10) ** -DIGITS:
        term *= x * (a + b + n) / (a + 1 + n)
        n += 1
        total += term
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return total * mp.exp(a * mp.log(x) + b * mp.log(y) - log_beta) / a


def betainc(a: Any, b: Any, x: Any) -> Any:
    if x <= mp.mpf("0.5"):
        return part_of_beta(a, b, x, 1 - x)
    other = part_of_beta(b, a, 1 - x, x)
    # The cancellation in the difference exceeds the spare digits.
    return 1 - other if other < 1 - mp.mpf(10) ** -40 else part_of_beta(a, b, x, 1 - x)


def betaincc(a: Any, b: Any, x: Any) -> Any:
    return betainc(b, a, 1 - x)


def inverse(f: Callable[..., Any], slope: Callable[..., Any], p: Any, x: Any) -> Any:
    for _ in range(60):
        step = (f(x) - p) / slope(x)
        x -= step
        if abs(step) < abs(x) * mp.mpf(10) ** -30:
            return x
    raise ArithmeticError


def gamma_density(a: Any, x: Any) -> Any:
    return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def gammaincinv(a: Any, p: Any, near: Any) -> Any:
    return inverse(lambda x: gammainc(a, x), lambda x: gamma_density(a, x), p, near)


def gammainccinv(a: Any, q: Any, near: Any) -> Any:
    return inverse(lambda x: upper_gamma(a, x), lambda x: -gamma_density(a, x), q, near)


def betaincinv(a: Any, b: Any, p: Any, near: Any) -> Any:
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)

    def slope(x: Any) -> Any:
        return mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log(1 - x) - log_beta)

    return inverse(lambda x: betainc(a, b, x), slope, p, near)


def stdtr(df: Any, t: Any) -> Any:
    tail = betainc(df / 2, mp.mpf("0.5"), df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def fdtr(m: Any, n: Any, x: Any) -> Any:
    return betainc(m / 2, n / 2, m * x / (m * x + n))


def fdtrc(m: Any, n: Any, x: Any) -> Any:
    return betainc(n / 2, m / 2, n / (m * x + n))


def log_gamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x))) if abs(x) < 1e4 else mp.re(mp.loggamma(x))


def hurwitz(s: Any, q: Any) -> Any:
    """Use the Euler-Maclaurin formula: mpmath loses digits where both arguments are large."""
    count = 60 + int(s)
    total = mp.fsum((q + k) ** -s for k in range(count))
    a = q + count
    total += a ** (1 - s) / (s - 1) + a**-s / 2
    term = a**-s * s / a
    for k in range(1, 60):
        total += mp.bernoulli(2 * k) / mp.factorial(2 * k) * term
        term *= (s + 2 * k - 1) * (s + 2 * k) / a**2
    return total


def box(x: Any, power: Any) -> Any:
    return (x**power - 1) / power


def counted(*rows: np.ndarray) -> tuple[np.ndarray, ...]:
    return rows


def specification(single: bool) -> dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]]:
    """Return the functions and their ranges of arguments."""
    small, big = (1e-36, 1e36) if single else (1e-300, 1e300)
    tail = 13 if single else 38
    most_gamma = 35 if single else 171
    join = np.concatenate
    line = join([both_signs(spread(small, 1, 60)), even(-6, 6, 140)])
    unit = join([spread(1e-37 if single else 1e-305, 0.1, 70), even(0, 1, 90)])
    positive = join([spread(small, big, 60), spread(1e-3, 100, 140)])
    short = join([spread(small, 1, 40), even(0, 12, 120), spread(10, 85 if single else 700, 60)])
    turns = join([spread(small, 1, 40), even(0, 12, 140), spread(10, 1e4, 60)])
    exponents = join([both_signs(spread(small, 1, 60)), even(-80, 80, 100)])
    spread(1e-30, 1, 150)
    a, b = spread(1e-3, 1e3, 200), spread(1e-3, 1e3, 200)
    shape = spread(1e-3, 1e4, 300)
    # Near the mean and far from it.
    point = join(
        [
            shape[:150] * np.exp(even(-3, 3, 150) / np.sqrt(1 + shape[:150])),
            shape[150:230] * spread(0.05, 8, 80),
            spread(1e-3, 60, 70),
        ]
    )
    p1, p2 = spread(1e-2, 1e4, 260), spread(1e-2, 1e4, 260)
    mean = p1 / (p1 + p2)
    width = np.sqrt(mean * (1 - mean) / (p1 + p2 + 1))
    where = np.clip(mean + width * even(-4, 4, 260), 1e-3 * mean, 1 - 1e-3 * (1 - mean))
    where[200:] = even(0.001, 0.999, 60)
    freedom, t = spread(0.1, 1e5, 200), both_signs(spread(1e-3, 30, 200))
    rows: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
        "erf": (mp.erf, (line,)),
        "erfc": (mp.erfc, (join([line, even(5, 9 if single else 26, 60)]),)),
        "erfcx": (
            lambda x: mp.exp(x * x) * mp.erfc(x),
            (join([line, spread(1, 50, 60), even(-9 if single else -26, 0, 40)]),),
        ),
        "erfinv": (
            erfinv,
            (join([both_signs(unit), both_signs(1 - spread(1e-7 if single else 1e-15, 0.1, 60))]),),
        ),
        "erfcinv": (inverse_erfc, (join([unit, 2 * unit[70:]]),)),
        "ndtr": (normal_tail, (join([line, even(-tail, 0, 80)]),)),
        "ndtri": (ndtri, (unit,)),
        "log_ndtr": (lambda x: mp.log(normal_tail(x)), (join([line, even(-100, 0, 60)]),)),
        "gamma": (
            mp.gamma,
            (
                join(
                    [
                        spread(1e-37 if single else 1e-307, 1, 40),
                        even(0, most_gamma, 120),
                        even(-30, 0, 60),
                    ]
                ),
            ),
        ),
        "gammaln": (log_gamma, (join([positive, even(0, 20, 100)]),)),
        "digamma": (mp.digamma, (join([positive, even(0, 20, 100)]),)),
        "polygamma": (
            lambda n, x: mp.psi(int(n), x),
            (rng.integers(0, 9, 200).astype(float), spread(0.01, 1e3, 200)),
        ),
        "zeta": (hurwitz, (1 + spread(1e-3, 30, 200), spread(0.05, 1e3, 200))),
        "riemann_zeta": (
            mp.zeta,
            (join([1 + spread(1e-3, 50, 80), even(0, 1, 40), even(-30, 0, 80)]),),
        ),
        "beta": (
            mp.beta,
            (spread(1e-3, 40 if single else 400, 200), spread(1e-3, 40 if single else 400, 200)),
        ),
        "betaln": (lambda x, y: mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y), (a, b)),
        "gammainc": (gammainc, (shape, point)),
        "gammaincc": (upper_gamma, (shape, point)),
        "betainc": (betainc, (p1, p2, where)),
        "betaincc": (betaincc, (p1, p2, where)),
        "stdtr": (stdtr, (freedom, t)),
        "fdtr": (fdtr, (spread(0.5, 500, 150), spread(0.5, 500, 150), spread(0.05, 20, 150))),
        "fdtrc": (fdtrc, (spread(0.5, 500, 150), spread(0.5, 500, 150), spread(0.05, 20, 150))),
        "chdtr": (lambda v, x: gammainc(v / 2, x / 2), (shape[::2], point[::2])),
        "chdtrc": (lambda v, x: upper_gamma(v / 2, x / 2), (shape[::2], point[::2])),
        "i0": (lambda x: mp.besseli(0, x), (short,)),
        "i0e": (
            lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
            (join([short, spread(100, 1e4, 30)]),),
        ),
        "i1": (lambda x: mp.besseli(1, x), (both_signs(short),)),
        "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), (both_signs(short),)),
        "k0": (lambda x: mp.besselk(0, x), (short,)),
        "k0e": (lambda x: mp.besselk(0, x) * mp.exp(x), (short,)),
        "k1": (lambda x: mp.besselk(1, x), (short,)),
        "k1e": (lambda x: mp.besselk(1, x) * mp.exp(x), (short,)),
        "j0": (lambda x: mp.besselj(0, x), (turns,)),
        "j1": (lambda x: mp.besselj(1, x), (both_signs(turns),)),
        "y0": (lambda x: mp.bessely(0, x), (turns,)),
        "y1": (lambda x: mp.bessely(1, x), (turns,)),
        "expit": (lambda x: 1 / (1 + mp.exp(-x)), (exponents,)),
        "log_expit": (lambda x: -mp.log1p(mp.exp(-x)), (exponents,)),
        "logit": (lambda p: mp.log(p / (1 - p)), (unit,)),
        "xlogy": (lambda x, y: x * mp.log(y), (spread(1e-9, 1e9, 150), spread(1e-9, 1e9, 150))),
        "xlog1py": (
            lambda x, y: x * mp.log1p(y),
            (spread(1e-9, 1e9, 150), both_signs(spread(1e-9, 0.99, 150))),
        ),
        "entr": (lambda x: -x * mp.log(x), (join([positive[60:], spread(1e-30, 1e30, 60)]),)),
        "rel_entr": (
            lambda x, y: x * mp.log(x / y),
            (a, np.where(np.arange(200) % 2, b, a * even(0.9, 1.1, 200))),
        ),
        "kl_div": (
            lambda x, y: x * mp.log(x / y) - x + y,
            (a, np.where(np.arange(200) % 2, b, a * even(0.9, 1.1, 200))),
        ),
        "sinc": (
            lambda x: mp.sinpi(x) / (mp.pi * x),
            (join([both_signs(spread(1e-9, 1, 60)), even(-50, 50, 100)]),),
        ),
        "exprel": (lambda x: mp.expm1(x) / x, (exponents,)),
        "exp10": (
            lambda x: mp.mpf(10) ** x,
            (even(-37 if single else -300, 37 if single else 300, 150),),
        ),
        "boxcox": (box, (spread(1e-4, 1e4, 200), both_signs(spread(1e-6, 5, 200)))),
        "boxcox1p": (
            lambda x, power: box(1 + x, power),
            (spread(1e-9, 1e4, 200), both_signs(spread(1e-6, 5, 200))),
        ),
        "inv_boxcox": (
            lambda x, power: mp.exp(mp.log1p(power * x) / power),
            (spread(1e-6, 10, 200), spread(0.1, 5, 200)),
        ),
        "inv_boxcox1p": (
            lambda x, power: mp.expm1(mp.log1p(power * x) / power),
            (spread(1e-6, 10, 200), spread(0.1, 5, 200)),
        ),
        "huber": (
            lambda d, r: r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2),
            (spread(0.1, 10, 100), both_signs(spread(0.1, 10, 100))),
        ),
        "pseudo_huber": (
            lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1),
            (spread(0.1, 10, 100), both_signs(spread(1e-6, 10, 100))),
        ),
    }
    return rows | distributions(single)


def distributions(
    single: bool,
) -> dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]]:
    """Return distributions of counts, built on the incomplete functions, and later additions."""
    small = 1e-36 if single else 1e-300
    count = np.floor(spread(1, 500, 120))
    mean = count * np.exp(even(-2, 2, 120) / np.sqrt(count)) + spread(1e-3, 1, 120)
    trials = count + np.floor(spread(1, 500, 120))
    width = np.sqrt((count + 1) * (trials - count)) / trials**1.5
    chance = np.clip((count + 0.5) / trials + width * even(-3, 3, 120), 1e-3, 0.999)
    successes = np.floor(spread(1, 300, 120))
    success = np.clip(successes / (successes + count) * np.exp(even(-0.3, 0.3, 120)), 1e-3, 0.99)
    rate, shape = spread(0.01, 100, 120), spread(0.05, 300, 120)
    point = shape / rate * np.exp(even(-2, 2, 120) / np.sqrt(1 + shape))
    n, k = spread(0.1, 100, 150), spread(0.1, 100, 150)
    n[:60], k[:60] = np.floor(n[:60] + 1), np.floor(k[:60])
    most = 34 if single else 170
    return {
        "rgamma": (
            mp.rgamma,
            (np.concatenate([spread(small, 1, 40), even(0, most, 80), even(-30, 0, 60)]),),
        ),
        "softplus": (
            lambda x: mp.log1p(mp.exp(x)),
            (np.concatenate([both_signs(spread(small, 1, 40)), even(-80, 80, 100)]),),
        ),
        "binom": (mp.binomial, (n, k)),
        "pdtr": (lambda j, m: upper_gamma(j + 1, m), (count, mean)),
        "pdtrc": (lambda j, m: gammainc(j + 1, m), (count, mean)),
        "bdtr": (lambda j, t, p: betaincc(j + 1, t - j, p), (count, trials, chance)),
        "bdtrc": (lambda j, t, p: betainc(j + 1, t - j, p), (count, trials, chance)),
        "nbdtr": (lambda j, t, p: betainc(t, j + 1, p), (count, successes, success)),
        "nbdtrc": (lambda j, t, p: betaincc(t, j + 1, p), (count, successes, success)),
        "gdtr": (lambda a, b, x: gammainc(b, a * x), (rate, shape, point)),
        "gdtrc": (lambda a, b, x: upper_gamma(b, a * x), (rate, shape, point)),
    }


def rounded(rows: tuple[np.ndarray, ...], dtype: str) -> tuple[np.ndarray, ...]:
    return tuple(row.astype(dtype) for row in rows)


def exact(row: np.ndarray) -> list[Any]:
    return [mp.mpf(float(value)) for value in row]


def make(job: Any) -> Any:
    name, dtype = job
    global rng
    rng = np.random.default_rng(2026)
    f, rows = specification(dtype == "float32")[name]
    rows = rounded(rows, dtype)
    values = []
    for point in zip(*map(exact, rows), strict=True):
        with mp.workdps(DIGITS + 30):
            values.append(float(f(*point)))
    print(name, dtype, len(values), file=sys.stderr, flush=True)
    return name, dtype, rows, np.asarray(values)


def make_inverse(job: Any) -> Any:
    """Compute arguments of an inverse: rounded values of the function."""
    name, dtype = job
    global rng
    rng = np.random.default_rng(2026)
    count = 120
    kind = np.dtype(dtype).type
    columns: list[Any] = []
    if name == "betaincinv":
        parameters = np.array([spread(0.05, 300, count), spread(0.05, 300, count)])
        starts = even(0.02, 0.98, count)
        mean = parameters[0] / parameters.sum(0)
        width = np.sqrt(mean * (1 - mean) / (parameters.sum(0) + 1))
        starts = np.clip(mean + width * even(-3, 3, count), mean * 0.01, 1 - (1 - mean) * 0.01)
    else:
        shapes = spread(0.02, 3000, count)
        parameters = np.array([shapes])
        starts = shapes * np.exp(even(-3, 3, count) / np.sqrt(1 + shapes))
    forward = {"gammaincinv": gammainc, "gammainccinv": upper_gamma, "betaincinv": betainc}[name]
    backward = globals()[name]
    for column, start in zip(parameters.T, starts, strict=True):
        given = [mp.mpf(float(kind(value))) for value in column]
        p = float(kind(float(forward(*given, mp.mpf(start)))))
        if not 1e-30 < p < 1 - (1e-3 if dtype == "float32" else 1e-9):
            continue
        try:
            columns.append(
                (*map(float, given), p, float(backward(*given, mp.mpf(p), mp.mpf(start))))
            )
        except ArithmeticError:
            continue
    table = np.asarray(columns).T
    print(name, dtype, table.shape[1], file=sys.stderr, flush=True)
    return name, dtype, rounded(tuple(table[:-1]), dtype), table[-1]


def main() -> None:
    dtypes = ("float32", "float64")
    wanted = sys.argv[2:]  # some names: update these in an existing file; no name: compute all
    names = [name for name in specification(False) if name in wanted or not wanted]
    inverses = ("gammaincinv", "gammainccinv", "betaincinv")
    inverses = tuple(name for name in inverses if name in wanted or not wanted)
    with multiprocessing.Pool(2) as pool:
        found = pool.map(make, [(n, d) for n in names for d in dtypes], chunksize=1)
        found += pool.map(make_inverse, [(n, d) for n in inverses for d in dtypes], chunksize=1)
    data = dict(np.load(sys.argv[1])) if wanted else {}
    for name, dtype, rows, values in found:
        limits = np.finfo(dtype)
        keep = np.isfinite(values) & (abs(values) < limits.max) & (abs(values) > limits.tiny)
        for row in rows:
            keep &= np.isfinite(row) & ((abs(row) > limits.tiny) | (row == 0))
        for place, row in enumerate(rows):
            data[f"{name}.{dtype}.{place}"] = row[keep]
        data[f"{name}.{dtype}.value"] = values[keep]
    np.savez_compressed(sys.argv[1], **data)


if __name__ == "__main__":
    main()
