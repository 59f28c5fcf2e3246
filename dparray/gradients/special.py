"""The rules of :mod:`dparray.special`, as texts (:mod:`dparray._graph.derivatives`)."""

from __future__ import annotations

from typing import Any

from dparray.exceptions import GradientError
from dparray.gradients.elementwise import register
from dparray.gradients.public import dp
from dparray.gradients.rows import NAMES, Elementwise

sp: Any = dp.special


#: The partial derivatives by each operand; ``?`` where only series are known.
TEXTS: dict[str, tuple[str, ...]] = {
    "erf": ("1.1283791670955126 * exp(-x * x)",),
    "erfc": ("-1.1283791670955126 * exp(-x * x)",),
    "erfcx": ("2 * x * r - 1.1283791670955126",),
    "erfinv": ("~0.886226925452758 * exp(r * r)",),
    "erfcinv": ("~-0.886226925452758 * exp(r * r)",),
    "ndtr": ("0.3989422804014327 * exp(-0.5 * x * x)",),
    "ndtri": ("~2.5066282746310002 * exp(0.5 * r * r)",),
    "log_ndtr": ("0.3989422804014327 * exp(-0.5 * x * x - r)",),
    "gamma": ("r * special.digamma(x)",),
    "gammaln": ("special.digamma(x)",),
    "loggamma": ("special.digamma(x)",),
    "rgamma": ("-r * special.digamma(x)",),
    "digamma": ("special.polygamma(1, x)",),
    "polygamma": ("?", "special.polygamma(x + 1, y)"),
    "zeta": ("?", "-x * special.zeta(x + 1, y)"),
    "beta": (
        "r * (special.digamma(x) - special.digamma(x + y))",
        "r * (special.digamma(y) - special.digamma(x + y))",
    ),
    "betaln": (
        "special.digamma(x) - special.digamma(x + y)",
        "special.digamma(y) - special.digamma(x + y)",
    ),
    "betainc": ("?", "?", "~density_of_beta(x, y, z)"),
    "betaincc": ("?", "?", "~-density_of_beta(x, y, z)"),
    "betaincinv": ("?", "?", "~1 / density_of_beta(x, y, r)"),
    "betainccinv": ("?", "?", "~-1 / density_of_beta(x, y, r)"),
    "gammainc": ("?", "~density_of_gamma(x, y)"),
    "gammaincc": ("?", "~-density_of_gamma(x, y)"),
    "gammaincinv": ("?", "~1 / density_of_gamma(x, r)"),
    "gammainccinv": ("?", "~-1 / density_of_gamma(x, r)"),
    "stdtr": ("?", "density_of_student(x, y)"),
    "stdtrit": ("?", "~1 / density_of_student(x, r)"),
    "fdtr": ("?", "?", "~density_of_f(x, y, z)"),
    "fdtrc": ("?", "?", "~-density_of_f(x, y, z)"),
    "fdtri": ("?", "?", "~1 / density_of_f(x, y, r)"),
    "chdtr": ("?", "~0.5 * density_of_gamma(0.5 * x, 0.5 * y)"),
    "chdtrc": ("?", "~-0.5 * density_of_gamma(0.5 * x, 0.5 * y)"),
    "chdtri": ("?", "~-2 / density_of_gamma(0.5 * x, 0.5 * r)"),
    "gdtr": ("~z * density_of_gamma(y, x * z)", "?", "~x * density_of_gamma(y, x * z)"),
    "gdtrc": ("~-z * density_of_gamma(y, x * z)", "?", "~-x * density_of_gamma(y, x * z)"),
    "gdtrix": ("~-r / x", "?", "~1 / (x * density_of_gamma(y, x * r))"),
    "pdtr": ("0", "~-density_of_gamma(floor(x) + 1, y)"),
    "pdtrc": ("0", "~density_of_gamma(floor(x) + 1, y)"),
    "pdtri": ("0", "~-1 / density_of_gamma(floor(x) + 1, r)"),
    "bdtr": ("0", "0", "~-density_of_beta(floor(x) + 1, y - floor(x), z)"),
    "bdtrc": ("0", "0", "~density_of_beta(floor(x) + 1, y - floor(x), z)"),
    "bdtri": ("0", "0", "~-1 / density_of_beta(floor(x) + 1, y - floor(x), r)"),
    "nbdtr": ("0", "?", "~density_of_beta(y, floor(x) + 1, z)"),
    "nbdtrc": ("0", "?", "~-density_of_beta(y, floor(x) + 1, z)"),
    "nbdtri": ("0", "?", "~1 / density_of_beta(y, floor(x) + 1, r)"),
    "binom": (
        "r * (special.digamma(x + 1) - special.digamma(x - y + 1))",
        "r * (special.digamma(x - y + 1) - special.digamma(y + 1))",
    ),
    "gammasgn": ("0",),
    "expit": ("r * (1 - r)",),
    "log_expit": ("special.expit(-x)",),
    "logit": ("~1 / (x * (1 - x))",),
    "softplus": ("special.expit(x)",),
    "xlogy": ("~log(y)", "~x / y"),
    "xlog1py": ("~log1p(y)", "~x / (1 + y)"),
    "entr": ("~-log(x) - 1",),
    "rel_entr": ("~log(x / y) + 1", "~-x / y"),
    "kl_div": ("~log(x / y)", "~1 - x / y"),
    "sinc": ("slope_of_sinc(x, r)",),
    "exprel": ("mean_slope(x)",),
    "exp10": ("r * 2.302585092994046",),
    "boxcox": ("~x ** (y - 1)", "~square(log(x)) * mean_slope(y * log(x))"),
    "boxcox1p": ("~(1 + x) ** (y - 1)", "~square(log1p(x)) * mean_slope(y * log1p(x))"),
    "inv_boxcox": ("~r ** (1 - y)", "~r * square(x) * slope_of_root(x * y)"),
    "inv_boxcox1p": (
        "~(1 + r) ** (1 - y)",
        "~(1 + r) * square(x) * slope_of_root(x * y)",
    ),
    "huber": ("maximum(abs(y) - x, 0)", "minimum(maximum(y, -x), x)"),
    "pseudo_huber": (
        "2 * r / x - square(y) / (x * sqrt(1 + square(y / x)))",
        "y / sqrt(1 + square(y / x))",
    ),
    "i0": ("special.i1(x)",),
    "i0e": ("special.i1e(x) - sign(x) * r",),
    "i1": ("special.i0(x) - quotient(r, x, 0.5)",),
    "i1e": ("special.i0e(x) - quotient(r, x, 0.5) - sign(x) * r",),
    "j0": ("-special.j1(x)",),
    "j1": ("special.j0(x) - quotient(r, x, 0.5)",),
    "k0": ("-special.k1(x)",),
    "k0e": ("r - special.k1e(x)",),
    "k1": ("-special.k0(x) - r / x",),
    "k1e": ("r - special.k0e(x) - r / x",),
    "y0": ("-special.y1(x)",),
    "y1": ("special.y0(x) - r / x",),
}


def density_of_beta(a: Any, b: Any, x: Any) -> Any:
    """Return the density of the beta distribution."""
    return dp.exp(sp.xlogy(a - 1, x) + sp.xlog1py(b - 1, -x) - sp.betaln(a, b))


def density_of_gamma(a: Any, x: Any) -> Any:
    """Return the density of the gamma distribution."""
    return dp.exp(sp.xlogy(a - 1, x) - x - sp.gammaln(a))


def density_of_student(df: Any, t: Any) -> Any:
    """Return the density of Student's distribution."""
    half = 0.5 * (df + 1)
    scale = sp.gammaln(half) - sp.gammaln(0.5 * df) - 0.5 * dp.log(df * 3.141592653589793)
    return dp.exp(scale - half * dp.log1p(t * t / df))


def density_of_f(n: Any, m: Any, x: Any) -> Any:
    """Return the density of the F distribution."""
    ratio = n * x / (n * x + m)
    slope = n * m / dp.square(n * x + m)
    return density_of_beta(0.5 * n, 0.5 * m, ratio) * slope


def mean_slope(u: Any) -> Any:
    """Return ``(exp(u) * (u - 1) + 1) / u**2``, near 0 by its series."""
    series = 0.5 + u * (1 / 3 + u * (1 / 8 + u * (1 / 30 + u / 144)))
    at = dp.where(dp.abs(u) < 0.02, 1, u)
    return dp.where(dp.abs(u) < 0.02, series, (dp.exp(at) * (at - 1) + 1) / (at * at))


def slope_of_root(v: Any) -> Any:
    """Return ``(v / (1 + v) - log1p(v)) / v**2``, near 0 by its series."""
    series = -0.5 + v * (2 / 3 + v * (-3 / 4 + v * (4 / 5 - v * (5 / 6))))
    at = dp.where(dp.abs(v) < 0.005, 1, v)
    exact = (at / (1 + at) - dp.log1p(at)) / (at * at)
    return dp.where(dp.abs(v) < 0.005, series, exact)


class Special(Elementwise):
    """An element-wise function of `special`, whose derivative by a parameter may be unknown."""

    def __init__(self, name: str, texts: tuple[str, ...]) -> None:
        self._unknown = {place for place, text in enumerate(texts) if text == "?"}
        texts = tuple(["0" if text == "?" else text for text in texts])
        super().__init__(f"special.{name}", getattr(sp, name), texts)

    def keep(self, places: Any, operands: Any, answer: Any) -> tuple[Any, Any]:
        """Return what the rule needs of the operands and the result."""
        self._check(places)
        return super().keep(places, operands, answer)

    def push(self, tangents: Any, answer: Any, operands: Any, options: Any) -> Any:
        """Return the tangent of the result from those of operands."""
        self._check(tangents)
        return super().push(tangents, answer, operands, options)

    def _check(self, places: Any) -> None:
        for place in places:
            if place in self._unknown:
                raise GradientError(
                    f"{self.name}: the derivative by operand {place + 1} is not known; use "
                    "dp.stop_gradient(x) on it"
                )


def _enter() -> None:
    helpers = (density_of_beta, density_of_gamma, density_of_student, density_of_f, mean_slope)
    NAMES.update({helper.__name__: helper for helper in (*helpers, slope_of_root)})
    for name, texts in TEXTS.items():
        register(f"special.{name}", Special(name, texts))


_enter()
