"""Compute kernels/special/coefficients.json: approximations by interpolation in Chebyshev nodes.

mpmath is needed here, but not by dparray's tests. Each function is interpolated by a polynomial or
a quotient of two polynomials, whose degrees grow until the relative error is below the rounding
error.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 60

FILE = Path(__file__).parents[2] / "kernels/special/coefficients.json"

_TOLERANCE = {"float64": mp.mpf(2) ** -56, "float32": mp.mpf(2) ** -27.5}


def nodes(a: Any, b: Any, count: int) -> list[Any]:
    middle, half = (mp.mpf(a) + b) / 2, (mp.mpf(b) - a) / 2
    return [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def interpolate(f: Callable[..., Any], a: Any, b: Any, c: Any, up: int, down: int) -> Any:
    """Return numerator and denominator in powers of t - c; the denominator's constant term is 1."""
    count = up + down + 1
    matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
    for row, t in enumerate(nodes(a, b, count)):
        value = f(t)
        for k in range(up + 1):
            matrix[row, k] = (t - c) ** k
        for k in range(1, down + 1):
            matrix[row, up + k] = -value * (t - c) ** k
        right[row] = value
    found = list(mp.lu_solve(matrix, right))
    return found[: up + 1], [mp.mpf(1), *found[up + 1 :]]


def value_of(coefficients: Any, t: Any) -> Any:
    return mp.polyval(coefficients[::-1], t)


#: Limit of the sum of the terms' magnitudes relative to the value, for numerator and denominator
#: together: it bounds the number of lost roundings. A function that exceeds it has its interval
#: divided, except functions that are added to 1 (erf) or have a zero just outside.
LOST = {"erf": 1e9, "zeta": 5, "erfinv_0": 4, "erfinv_2": 4, "erfinv_3": 4}
LOST |= {"j0_0": 12, "j0_1": 12, "j1_0": 12, "y0_1": 12, "y1_1": 12}


def fit(
    f: Callable[..., Any], a: Any, b: Any, c: Any, is_quotient: bool, dtype: str, most: float
) -> Any:
    a, b = mp.mpf(a), mp.mpf(b)
    tests = [a + (b - a) * mp.mpf(k) / 60 for k in range(61)]
    tests[0] = a + (b - a) / 10**6
    exact = [f(t) for t in tests]
    cache: dict[Any, Any] = {}

    def known(t: Any) -> Any:
        if t not in cache:
            cache[t] = f(t)
        return cache[t]

    best = mp.inf
    for degree in range(2, 31):
        for down in {degree // 2, degree // 3, degree // 5, 0} if is_quotient else {0}:
            try:
                numerator, denominator = interpolate(known, a, b, c, degree - down, down)
            except ZeroDivisionError:  # it is nearly a quotient of lower degree
                continue
            error = lost = mp.mpf(0)
            for t, v in zip(tests, exact, strict=True):
                up, under = value_of(numerator, t - c), value_of(denominator, t - c)
                error = max(error, abs(up / under / v - 1))
                terms = [
                    value_of([abs(x) for x in p], abs(t - c)) for p in (numerator, denominator)
                ]
                lost = max(lost, terms[0] / abs(up) + terms[1] / abs(under))
                if error > _TOLERANCE[dtype]:
                    break
            if error < _TOLERANCE[dtype]:
                best = min(best, lost)
                if lost < most:
                    return numerator, denominator, error, lost
    raise ArithmeticError(f"no fit; best {float(best)}")


def erfinv_of(w: Any) -> Any:
    """Return erfinv(x) / x where w = -log(1 - x**2)."""
    if w == 0:
        return mp.sqrt(mp.pi) / 2
    q = mp.exp(-w)
    x = mp.sqrt(1 - q)
    small = q / (1 + x)  # 1 - x
    y = mp.sqrt(mp.log(1 / small) * mp.mpf("0.8")) + mp.mpf("0.1")
    for _ in range(100):
        value = mp.erfc(y)
        step = mp.log(value / small) * value * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y += step
        if abs(step) < mp.mpf(10) ** -45 * y:
            break
    return y / x


def root(f: Callable[..., Any], near: float) -> Any:
    return mp.findroot(f, near)


def lgamma_part(x: Any) -> Any:
    if abs(x - 1) < mp.mpf(10) ** -25:
        return mp.euler
    if abs(x - 2) < mp.mpf(10) ** -25:
        return 1 - mp.euler
    return mp.loggamma(x) / ((x - 1) * (x - 2))


J0 = [mp.besseljzero(0, k) for k in (1, 2)]
J1 = [mp.besseljzero(1, k) for k in (1, 2)]
Y0 = [mp.besselyzero(0, k) for k in (1, 2, 3)]
Y1 = [mp.besselyzero(1, k) for k in (1, 2)]
PSI = root(mp.digamma, 1.46)


def apart(f: Callable[..., Any], zero: Any) -> Callable[..., Any]:
    """Return f(x) / (x - zero) / (x + zero), in terms of x."""

    def quotient(x: Any) -> Any:
        if abs(x - zero) < mp.mpf(10) ** -20:
            x = zero + mp.mpf(10) ** -20
        return f(x) / ((x - zero) * (x + zero))

    return quotient


def y0_part(zero: Any) -> Callable[..., Any]:
    return apart(lambda x: mp.bessely(0, x) - 2 / mp.pi * mp.log(x / zero) * mp.besselj(0, x), zero)


def y1_part(zero: Any) -> Callable[..., Any]:
    return apart(
        lambda x: (mp.bessely(1, x) - 2 / mp.pi * mp.log(x / zero) * mp.besselj(1, x)) * x, zero
    )


def amplitude(order: int, part: int) -> Callable[..., Any]:
    """Return P and Q of Hankel's form, in terms of z = (8 / x)**2; Q times x."""

    def of(z: Any) -> Any:
        if z == 0:
            z = mp.mpf(10) ** -30
        x = 8 / mp.sqrt(z)
        scale = mp.sqrt(mp.pi * x / 2)
        angle = x - (mp.mpf(order) / 2 + mp.mpf(1) / 4) * mp.pi
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        if part == 0:
            return scale * (j * mp.cos(angle) + y * mp.sin(angle))
        return scale * (y * mp.cos(angle) - j * mp.sin(angle)) * x

    return of


def of_square(f: Callable[..., Any], at_zero: Any) -> Callable[..., Any]:
    return lambda z: f(mp.sqrt(z)) if z > mp.mpf(10) ** -40 else at_zero


def at_inverse(f: Callable[..., Any], limit: Any) -> Callable[..., Any]:
    return lambda t: f(1 / t) if t > mp.mpf(10) ** -40 else limit


def shepherd(t: Any) -> Any:
    x = K * (1 + t) / (1 - t) if t != 1 else mp.inf
    if t > 1 - mp.mpf(10) ** -9:
        h = 1 / x if t != 1 else mp.mpf(0)
        return (2 + h) / mp.sqrt(mp.pi) * (1 - h**2 / 2 + 3 * h**4 / 4)
    return (1 + 2 * x) * (mp.exp(x * x) * mp.erfc(x) if x < 100 else erfcx_large(x))


def erfcx_large(x: Any) -> Any:
    total, term = mp.mpf(1), mp.mpf(1)
    for k in range(1, 40):
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / (x * mp.sqrt(mp.pi))


K = mp.mpf("3.75")
EULER = mp.euler


def k0_small(z: Any) -> Any:
    x = mp.sqrt(z)
    return (
        mp.log(2) - EULER
        if z < mp.mpf(10) ** -30
        else (mp.besselk(0, x) + mp.log(x) * mp.besseli(0, x))
    )


def k1_small(z: Any) -> Any:
    x = mp.sqrt(z)
    if z < mp.mpf(10) ** -30:
        return (EULER - mp.log(2)) / 2 - mp.mpf(1) / 4
    return (mp.besselk(1, x) - 1 / x - mp.log(x) * mp.besseli(1, x)) / x


ROWS: list[tuple[str, Callable[..., Any], Any, Any, Any, bool]] = [
    # name, function, from, to, center, whether it is a quotient
    ("erf", of_square(lambda x: mp.erf(x) / x - 1, 2 / mp.sqrt(mp.pi) - 1), 0, 1, 0, True),
    ("erfcx", shepherd, -1, 1, 0, False),
    ("erfinv_0", erfinv_of, 0, 6.25, 3.125, True),
    ("erfinv_1", lambda s: erfinv_of(s * s), 2.5, 4.5, 3.5, True),
    ("erfinv_2", lambda s: erfinv_of(s * s), 4.5, 10.5, 7.5, True),
    ("erfinv_3", lambda s: erfinv_of(s * s), 10.5, 28, 19, True),
    ("gamma", mp.gamma, 2, 3, 2.5, False),
    ("zeta", lambda s: mp.zeta(s) * (s - 1) if s != 1 else mp.mpf(1), 0, 2, 1, False),
    ("gammaln_0", lgamma_part, 0.7, 1.45, 1, False),
    ("gammaln_1", lgamma_part, 1.45, 3, 2, False),
    (
        "digamma",
        lambda x: mp.digamma(x) / (x - PSI) if abs(x - PSI) > 1e-20 else mp.polygamma(1, x),
        1,
        2,
        1.5,
        True,
    ),
    ("i0", of_square(lambda x: (mp.besseli(0, x) - 1) / (x * x / 4), mp.mpf(1)), 0, 60, 0, False),
    (
        "i1",
        of_square(lambda x: (mp.besseli(1, x) / (x / 2) - 1) / (x * x / 8), mp.mpf(1)),
        0,
        60,
        0,
        False,
    ),
    ("k0_0", k0_small, 0, 1, 0, True),
    ("k1_0", k1_small, 0, 1, 0, True),
]
for order in (0, 1):
    ROWS += [
        (
            f"i{order}_inverse",
            at_inverse(
                lambda x, order=order: mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x),
                1 / mp.sqrt(2 * mp.pi),
            ),
            0,
            mp.mpf(1) / 20,
            0,
            True,
        ),
        (
            f"i{order}_middle",
            lambda x, order=order: mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x),
            7.75,
            20,
            12,
            True,
        ),
        (
            f"k{order}_1",
            lambda x, order=order: mp.besselk(order, x) * mp.exp(x) * mp.sqrt(x),
            1,
            2,
            1.5,
            True,
        ),
        (
            f"k{order}_2",
            at_inverse(
                lambda x, order=order: mp.besselk(order, x) * mp.exp(x) * mp.sqrt(x),
                mp.sqrt(mp.pi / 2),
            ),
            0,
            0.5,
            0,
            True,
        ),
        (f"hankel_p{order}", amplitude(order, 0), 0, 1, 0, True),
        (f"hankel_q{order}", amplitude(order, 1), 0, 1, 0, True),
    ]
ROWS += [
    ("j0_0", of_square(apart(lambda x: mp.besselj(0, x), J0[0]), -1 / J0[0] ** 2), 0, 16, 8, True),
    ("j0_1", apart(lambda x: mp.besselj(0, x), J0[1]), 4, 8, 6, True),
    (
        "j1_0",
        of_square(apart(lambda x: mp.besselj(1, x) / x, J1[0]), -1 / (2 * J1[0] ** 2)),
        0,
        25,
        12.5,
        True,
    ),
    ("j1_1", apart(lambda x: mp.besselj(1, x), J1[1]), 5, 8, 6.5, True),
    ("y0_0", of_square(y0_part(Y0[0]), None), 0, 6.25, 3, True),
    ("y0_1", apart(lambda x: mp.bessely(0, x), Y0[1]), 2.5, 5.5, 4, True),
    ("y0_2", apart(lambda x: mp.bessely(0, x), Y0[2]), 5.5, 8, 6.75, True),
    ("y1_0", of_square(y1_part(Y1[0]), None), 0, 12.25, 6, True),
    ("y1_1", apart(lambda x: mp.bessely(1, x), Y1[1]), 3.5, 8, 5.75, True),
]

_LIMITS = {"y0_0": y0_part(Y0[0]), "y1_0": y1_part(Y1[0])}


def _prepare(name: str, f: Callable[..., Any]) -> Callable[..., Any]:
    if name in _LIMITS:
        part = _LIMITS[name]
        return lambda z: part(mp.sqrt(z if z > mp.mpf(10) ** -30 else mp.mpf(10) ** -30))
    return f


def temme(rows: int, columns: int) -> list[list[Any]]:
    """Return the coefficients d(k, n) of DLMF 8.12, by the recurrences given there."""
    count = columns + 2 * rows + 6
    alpha = [mp.mpf(0)] * (count + 3)
    alpha[1] = mp.mpf(1)
    for n in range(2, count + 3):
        total = mp.fsum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha[n] = (alpha[n - 1] - total) / (n + 1)
    # The ratio of the gamma function to Stirling's formula: the exponential of the correction's
    # series.
    series = [mp.mpf(0)] * (2 * rows + 6)
    for j in range(1, rows + 3):
        series[2 * j - 1] = mp.bernoulli(2 * j) / (2 * j * (2 * j - 1))
    scaled = [mp.mpf(1)]
    for n in range(1, rows + 3):
        scaled.append(mp.fsum(k * series[k] * scaled[n - k] for k in range(1, n + 1)) / n)
    first = [(n + 2) * alpha[n + 2] for n in range(count)]
    first[0] = -mp.mpf(1) / 3
    found = [first]
    for k in range(1, rows):
        last = found[k - 1]
        found.append(
            [(-1) ** k * scaled[k] * first[n] + (n + 2) * last[n + 2] for n in range(len(last) - 2)]
        )
    return found


#: Number of coefficients needed in addition to 0.4 and 1/30; 1/12 in single precision.
TEMME_COUNTS = {"float64": (19, 18, 16, 14, 13, 11, 9, 8, 6, 5), "float32": (9, 8, 7, 6, 5)}


def print_temme() -> None:
    rows = temme(10, 20)
    print("\n#: d(k, n) of Temme's expansion of the incomplete gamma functions (DLMF 8.12).")
    print("TEMME = {")
    for dtype, counts in TEMME_COUNTS.items():
        digits = 17 if dtype == "float64" else 9
        print(f'    "{dtype}": (')
        for k, count in enumerate(counts):
            print("        (")
            for n in range(count):
                value = float(getattr(np, dtype)(float(rows[k][n])))
                print(f"            {value:.{digits}g},")
            print("        ),")
        print("    ),")
    print("}")


def split(value: Any) -> str:
    high = float(value)
    return f"({high!r}, {float(value - mp.mpf(high))!r})"


def split32(value: Any) -> str:
    high = np.float32(float(value))
    return f"({float(high)!r}, {float(np.float32(float(value - mp.mpf(float(high)))))!r})"


def one(job: Any) -> Any:
    index, dtype = job
    name, f, a, b, c, is_quotient = ROWS[index]
    most = LOST.get(name, 3.2)
    try:
        up, down, error, lost = fit(_prepare(name, f), a, b, mp.mpf(c), is_quotient, dtype, most)
    except ArithmeticError as e:
        print(name, dtype, e, file=sys.stderr, flush=True)
        return index, dtype, ""
    kind = getattr(np, dtype)
    digits = 17 if dtype == "float64" else 9

    def text(values: Any) -> str:
        return "".join(f"            {float(kind(float(v))):.{digits}g},\n" for v in values)

    out = f'        "{name}": (\n'
    for values in (up, down) if len(down) > 1 else (up,):
        out += (
            "            (\n"
            + text(values).replace("            ", "                ")
            + "            ),\n"
        )
    out += "        ),\n"
    print(
        name,
        dtype,
        len(up),
        len(down),
        mp.nstr(error, 3),
        mp.nstr(lost, 3),
        file=sys.stderr,
        flush=True,
    )
    return index, dtype, out


def main() -> None:
    """Write the tables, printed as Python first, as JSON with a line for each list."""
    written, tables = io.StringIO(), {}
    with contextlib.redirect_stdout(written):
        print_tables()
    exec(written.getvalue(), tables)
    values = {name.lower(): tables[name] for name in ("FITS", "ZEROS", "TEMME")}
    FILE.write_text(as_text(values) + "\n", "ascii")


def as_text(value: Any, depth: int = 0) -> str:
    inner, outer = " " * (depth + 1), " " * depth
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(key)}: {as_text(v, depth + 1)}" for key, v in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{outer}}}"
    if isinstance(value, tuple) and isinstance(value[0], tuple):
        return "[\n" + ",\n".join(inner + as_text(v, depth + 1) for v in value) + f"\n{outer}]"
    return json.dumps(value)


def print_tables() -> None:
    import multiprocessing

    jobs = [(i, d) for d in ("float64", "float32") for i in range(len(ROWS))]
    jobs = [(i, d) for i, d in jobs if (ROWS[i][0], d) != ("erfinv_3", "float32")]
    with multiprocessing.Pool(2) as pool:
        found = pool.map(one, jobs, chunksize=1)
    zeros = {"digamma": [PSI], "j0": J0, "j1": J1, "y0": Y0, "y1": Y1}
    print("FITS = {")
    for dtype in ("float64", "float32"):
        print(f'    "{dtype}": {{')
        for _, kind, out in found:
            if kind == dtype:
                print(out, end="")
        print("    },")
    print("}")
    print("\n#: Zeros, as the sum of two floats.")
    print("ZEROS = {")
    for dtype, parted in (("float64", split), ("float32", split32)):
        print(f'    "{dtype}": {{')
        for name, values in zeros.items():
            print(f'        "{name}": ({", ".join(map(parted, values))},),')
        print("    },")
    print("}")
    print_temme()


if __name__ == "__main__":
    main()
