"""The generator: kernels that turn Philox's random words into NumPy's distributions."""

from __future__ import annotations

import math
import operator
import secrets
import warnings
from math import inf
from typing import Any

import numpy as np

from dparray import _dtypes, _layout
from dparray._array.allocation import from_host
from dparray._array.apply import apply, astype_array, ops
from dparray._array.assignment import write_out
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array
from dparray._driver import traits_of
from dparray._functions.creation import zeros
from dparray._functions.cumulative import cumsum
from dparray._functions.elementwise import where
from dparray._functions.indexing import take
from dparray._functions.manipulation import reshape
from dparray._functions.products import matmul
from dparray._functions.reductions import count_nonzero
from dparray._functions.reductions import max as max_of
from dparray._functions.reductions import min as min_of
from dparray._functions.reductions import sum as sum_of
from dparray._functions.searching import searchsorted
from dparray._functions.sorting import argsort
from dparray._graph.ops import OPS
from dparray._placement import Placement, common_placement
from dparray.algorithms.random import philox_normal, philox_uniform
from dparray.exceptions import ArgumentError, ShapeError
from dparray.kernels.variates import (
    make_binomial_kernel,
    make_gamma_kernel,
    make_hypergeometric_kernel,
    make_poisson_kernel,
    make_vonmises_kernel,
    make_zipf_kernel,
)
from dparray.linalg.decompositions import eigh
from dparray.random.sampling import Sampling
from dparray.random.streams import (
    Placed,
    Size,
    check_bounds,
)

__all__ = [
    "Generator",
]


class Generator(Sampling):
    """Random numbers on one queue, created by :func:`default_rng`.

    The state is a seed and a position in its sequence; a 64-bit number takes two positions. Calls
    from several threads draw different numbers.

    Example:
        >>> rng = dp.random.default_rng(seed=1)
        >>> rng.random((2, 3)).shape
        (2, 3)
        >>> first, second = dp.random.default_rng(7), dp.random.default_rng(7)
        >>> dp.array_equal(first.random(4), second.random(4))
        True
    """

    #: Bounds of ``high - low``, in the format of :func:`check_bounds`.
    _WIDTHS: tuple[float, float, bool, bool] = 0.0, inf, False, True

    # -- distributions ---------------------------------------------------------------------------

    def uniform(
        self, low: Any = 0.0, high: Any = 1.0, size: Size = None, *, dtype: Any = None
    ) -> ndarray:
        """Draw numbers from ``low`` to ``high``, which may be arrays on the generator's queue."""
        bounds, shape = self._arguments("uniform", size, low=(low,), high=(high,))
        low, high = (
            x.astype(self._float(None)) if isinstance(x, ndarray) and x.dtype.kind in "biu" else x
            for x in bounds
        )
        width = high - low
        check_bounds("uniform", **{"high - low": (width, *self._WIDTHS)})
        return self.random(shape, dtype) * width + low

    def standard_normal(
        self, size: Size = None, dtype: Any = None, out: ndarray | None = None
    ) -> ndarray:
        """Draw numbers from the standard normal distribution (mean 0, standard deviation 1)."""
        return self._into("standard_normal", philox_normal, size, dtype, out)

    def normal(
        self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, *, dtype: Any = None
    ) -> ndarray:
        """Draw from a normal distribution with mean ``loc``, standard deviation ``scale``."""
        (loc, scale), shape = self._arguments("normal", size, loc=(loc,), scale=(scale, 0, inf))
        numbers = self.standard_normal(shape, dtype)
        return numbers * scale + loc

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Size = None) -> ndarray:
        """Draw from a log-normal distribution: the logarithms are normally distributed."""
        check_bounds("lognormal", sigma=(sigma, 0, inf))
        return ops.exp(self.normal(mean, sigma, size))

    def standard_exponential(
        self,
        size: Size = None,
        dtype: Any = None,
        method: str = "inv",
        out: ndarray | None = None,
    ) -> ndarray:
        """Draw from the exponential distribution with mean 1; the method is always ``"inv"``."""
        numbers = self._into("standard_exponential", philox_uniform, size, dtype, out)
        return apply(OPS["negative"], ops.log1p(-numbers), out=out)

    def exponential(self, scale: Any = 1.0, size: Size = None, *, dtype: Any = None) -> ndarray:
        """Draw numbers from an exponential distribution with mean ``scale``."""
        (scale,), shape = self._arguments("exponential", size, scale=(scale, 0, inf))
        return self.standard_exponential(shape, dtype) * scale

    # -- distributions by inverting their cumulative distribution function ------------------------

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> ndarray:
        """Draw from a Laplace distribution: a peak at ``loc``, exponential decay on both sides."""
        (loc, scale), shape = self._arguments("laplace", size, loc=(loc,), scale=(scale, 0, inf))
        centred = self.random(shape) - 0.5
        tail = ops.log1p(ops.abs(centred) * -2.0)
        return self._scaled(ops.copysign(tail, centred), scale, loc)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> ndarray:
        """Draw numbers from a logistic distribution."""
        (loc, scale), shape = self._arguments("logistic", size, loc=(loc,), scale=(scale, 0, inf))
        numbers = self._inside(shape)
        odds = ops.log(numbers) - ops.log1p(-numbers)
        return self._scaled(odds, scale, loc)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> ndarray:
        """Draw numbers from a Gumbel distribution, that of the maximum of many samples."""
        (loc, scale), shape = self._arguments("gumbel", size, loc=(loc,), scale=(scale, 0, inf))
        exponential = -ops.log(self._inside(shape))
        return self._scaled(-ops.log(exponential), scale, loc)

    def weibull(self, a: Any, size: Size = None) -> ndarray:
        """Draw numbers from a Weibull distribution of shape ``a``."""
        (a,), shape = self._arguments("weibull", size, a=(a, 0, inf))
        return _power_of(self.standard_exponential(shape), a)

    def pareto(self, a: Any, size: Size = None) -> ndarray:
        """Draw numbers from a Pareto II (Lomax) distribution of shape ``a``."""
        (a,), shape = self._arguments("pareto", size, a=(a, 0, inf, True))
        return ops.expm1(self.standard_exponential(shape) / a)

    def power(self, a: Any, size: Size = None) -> ndarray:
        """Draw numbers x in [0, 1] with a density proportional to ``x**(a - 1)``."""
        (a,), shape = self._arguments("power", size, a=(a, 0, inf, True))
        return _power_of(1.0 - self.random(shape), a)

    def rayleigh(self, scale: Any = 1.0, size: Size = None) -> ndarray:
        """Draw from a Rayleigh distribution: lengths of vectors of two normal numbers."""
        (scale,), shape = self._arguments("rayleigh", size, scale=(scale, 0, inf))
        return self._scaled(ops.sqrt(2.0 * self.standard_exponential(shape)), scale)

    def standard_cauchy(self, size: Size = None) -> ndarray:
        """Draw numbers from the Cauchy distribution, which has no mean."""
        shape = () if size is None else _layout.check_shape(size)
        return ops.tan((self.random(shape) - 0.5) * math.pi)

    def triangular(self, left: Any, mode: Any, right: Any, size: Size = None) -> ndarray:
        """Draw numbers from ``left`` to ``right``; their triangular density peaks at ``mode``."""
        (left, mode, right), shape = self._arguments(
            "triangular", size, left=(left,), mode=(mode,), right=(right,)
        )
        width, rise, fall = right - left, mode - left, right - mode
        check_bounds("triangular", **{"mode - left": (rise, 0, inf)})
        check_bounds("triangular", **{"right - mode": (fall, 0, inf)})
        check_bounds("triangular", **{"right - left": (width, 0, inf, True)})
        numbers = self.random(shape)
        lower = left + ops.sqrt(numbers * width * rise)
        upper = right - ops.sqrt((1.0 - numbers) * width * fall)
        return where(numbers * width < rise, lower, upper)

    def geometric(self, p: Any, size: Size = None) -> ndarray:
        """Draw the number of trials up to the first success, which has probability ``p``."""
        (p,), shape = self._arguments("geometric", size, p=(p, 0, 1, True))
        trials = -self.standard_exponential(shape) / _log1p(-p)
        whole = ops.minimum(ops.ceil(trials), 2.0**62)
        return astype_array(ops.maximum(whole, 1.0), _dtypes.int64)

    def standard_t(self, df: Any, size: Size = None) -> ndarray:
        """Draw numbers from Student's t-distribution with ``df`` degrees of freedom.

        Algorithm: R. Bailey, "Polar Generation of Random Variates with the t-Distribution" (1994).
        """
        (df,), shape = self._arguments("standard_t", size, df=(df, 0, inf, True))
        first, second = self._uniforms(shape, 2)
        exponent = ops.log1p(-first) * -2.0 / df
        radius = ops.sqrt(ops.expm1(exponent) * df)
        return radius * ops.cos(second * (2 * math.pi))

    def wald(self, mean: Any, scale: Any, size: Size = None) -> ndarray:
        """Draw numbers from an inverse Gaussian (Wald) distribution.

        Algorithm: J. Michael, W. Schucany and R. Haas, "Generating Random Variates Using
        Transformations with Multiple Roots" (1976).
        """
        (mean, scale), shape = self._arguments(
            "wald", size, mean=(mean, 0, inf, True), scale=(scale, 0, inf, True)
        )
        first, second, third = self._uniforms(shape, 3)
        cosine = ops.cos(second * (2 * math.pi))
        squared = ops.log1p(-first) * -2.0 * cosine * cosine * mean
        root = ops.sqrt(squared * (squared + 4.0 * scale))
        # The smaller root, computed without subtracting two numbers that are almost equal.
        smaller = mean * 2.0 * scale / (2.0 * scale + squared + root)
        return where(third * (mean + smaller) <= mean, smaller, mean * mean / smaller)

    def logseries(self, p: Any, size: Size = None) -> ndarray:
        """Draw integers from a logarithmic series distribution.

        Algorithm LK of A. Kemp, "Efficient Generation of Logarithmically Distributed Pseudo-Random
        Variables" (1981).
        """
        (p,), shape = self._arguments("logseries", size, p=(p, 0, 1, False, True))
        first, second = self._uniforms(shape, 2)
        v = 1.0 - first
        q = -ops.expm1((1.0 - second) * _log1p(-p))
        ratio = ops.log(v) / ops.log(q)
        tail = ops.minimum(1.0 + ops.floor(ratio), 2.0**62)
        few = where(v > q, 1.0, 2.0)
        number = where(v >= p, 1.0, where(v <= q * q, tail, few))
        return astype_array(number, _dtypes.int64)

    # -- distributions by rejection ---------------------------------------------------------------

    def _log_gamma(
        self, shape: tuple[int, ...], shapes: Any, first: int | None = None, step: int = 1
    ) -> ndarray:
        return self._variates(
            make_gamma_kernel, shape, [shapes], is_integer=False, first=first, step=step
        )

    def standard_gamma(
        self, shape: Any, size: Size = None, dtype: Any = None, out: ndarray | None = None
    ) -> ndarray:
        """Draw numbers from a gamma distribution with a given shape and scale 1."""
        if out is not None:
            size = out.shape if size is None else size
            placed = check_array("standard_gamma", "out", out)
            common_placement("standard_gamma", (("generator", Placed(self)), ("out", placed)))
        (shapes,), extents = self._arguments("standard_gamma", size, shape=(shape, 0, inf))
        result = ops.exp(self._log_gamma(extents, shapes))
        if dtype is not None:
            result = astype_array(result, self._float(dtype), copy=False)
        return write_out("standard_gamma", result, out)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Size = None) -> ndarray:
        """Draw numbers from a gamma distribution with a given shape and scale."""
        (shapes, scale), extents = self._arguments(
            "gamma", size, shape=(shape, 0, inf), scale=(scale, 0, inf)
        )
        return self._scaled(ops.exp(self._log_gamma(extents, shapes)), scale)

    def chisquare(self, df: Any, size: Size = None) -> ndarray:
        """Draw from a chi-square distribution: sums of ``df`` squared normal numbers."""
        (df,), shape = self._arguments("chisquare", size, df=(df, 0, inf, True))
        return 2.0 * ops.exp(self._log_gamma(shape, df * 0.5))

    def _two_log_gammas(self, shape: tuple[int, ...], a: Any, b: Any) -> tuple[ndarray, ndarray]:
        first = self._streams(math.prod(shape), 2)
        return self._log_gamma(shape, a, first, 2), self._log_gamma(shape, b, first + 1, 2)

    def beta(self, a: Any, b: Any, size: Size = None) -> ndarray:
        """Draw numbers in [0, 1] from a beta distribution."""
        (a, b), shape = self._arguments("beta", size, a=(a, 0, inf, True), b=(b, 0, inf, True))
        one, other = self._two_log_gammas(shape, a, b)
        return 1.0 / (1.0 + ops.exp(other - one))

    def f(self, dfnum: Any, dfden: Any, size: Size = None) -> ndarray:
        """Draw from an F distribution: the ratio of two scaled :meth:`chisquare` numbers."""
        (dfnum, dfden), shape = self._arguments(
            "f", size, dfnum=(dfnum, 0, inf, True), dfden=(dfden, 0, inf, True)
        )
        one, other = self._two_log_gammas(shape, dfnum * 0.5, dfden * 0.5)
        return ops.exp(one - other) * dfden / dfnum

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Size = None) -> ndarray:
        """Draw from a noncentral chi-square distribution: the normals have nonzero means."""
        (df, nonc), shape = self._arguments(
            "noncentral_chisquare", size, df=(df, 0, inf, True), nonc=(nonc, 0, inf)
        )
        first = self._streams(math.prod(shape), 2)
        return self._noncentral(shape, df, nonc, first, 2)

    def _noncentral(
        self, shape: tuple[int, ...], df: Any, nonc: Any, first: int, step: int
    ) -> ndarray:
        """Draw central chi-square numbers after adding Poisson-distributed degrees of freedom."""
        raised = self._variates(make_poisson_kernel, shape, [nonc * 0.5], first=first, step=step)
        degrees = raised * 2.0 + df
        return 2.0 * ops.exp(self._log_gamma(shape, degrees * 0.5, first + 1, step))

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Size = None) -> ndarray:
        """Draw numbers from an F distribution (see :meth:`f`) with a noncentral numerator."""
        (dfnum, dfden, nonc), shape = self._arguments(
            "noncentral_f",
            size,
            dfnum=(dfnum, 0, inf, True),
            dfden=(dfden, 0, inf, True),
            nonc=(nonc, 0, inf),
        )
        first = self._streams(math.prod(shape), 3)
        above = self._noncentral(shape, dfnum, nonc, first, 3)
        below = 2.0 * ops.exp(self._log_gamma(shape, dfden * 0.5, first + 2, 3))
        return above * dfden / (below * dfnum)

    def vonmises(self, mu: Any, kappa: Any, size: Size = None) -> ndarray:
        """Draw angles from -pi to pi around ``mu``; a larger ``kappa`` concentrates them more."""
        (mu, kappa), shape = self._arguments("vonmises", size, mu=(mu,), kappa=(kappa, 0, inf))
        angle = self._variates(make_vonmises_kernel, shape, [kappa], is_integer=False) + mu
        return (angle + math.pi) % (2 * math.pi) - math.pi

    def poisson(self, lam: Any = 1.0, size: Size = None) -> ndarray:
        """Draw the number of rare events in an interval that has ``lam`` of them on average."""
        (lam,), shape = self._arguments("poisson", size, lam=(lam, 0, 2.0**62))
        return self._variates(make_poisson_kernel, shape, [lam])

    def binomial(self, n: Any, p: Any, size: Size = None) -> ndarray:
        """Draw the number of successes in ``n`` trials, each with probability ``p``."""
        (n, p), shape = self._arguments("binomial", size, n=(n, 0, 2.0**62), p=(p, 0, 1))
        return self._variates(make_binomial_kernel, shape, [_whole(n), p])

    def negative_binomial(self, n: Any, p: Any, size: Size = None) -> ndarray:
        """Draw the number of failures before ``n`` successes, each with probability ``p``."""
        (n, p), shape = self._arguments(
            "negative_binomial", size, n=(n, 0, inf, True), p=(p, 0, 1, True)
        )
        first = self._streams(math.prod(shape), 2)
        means = ops.exp(self._log_gamma(shape, n, first, 2)) * (1.0 - p) / p
        return self._variates(make_poisson_kernel, shape, [means], first=first + 1, step=2)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Size = None) -> ndarray:
        """Draw the number of good elements among ``nsample`` drawn without replacement."""
        (ngood, nbad, nsample), shape = self._arguments(
            "hypergeometric", size, ngood=(ngood,), nbad=(nbad,), nsample=(nsample,)
        )
        most = 10**9
        check_bounds("hypergeometric", ngood=(ngood, 0, most), nbad=(nbad, 0, most))
        rest = ngood + nbad - nsample
        check_bounds(
            "hypergeometric",
            **{"nsample": (nsample, 0, 2 * most), "ngood + nbad - nsample": (rest, 0, 2 * most)},
        )
        whole = [_whole(value) for value in (ngood, nbad, nsample)]
        return self._variates(make_hypergeometric_kernel, shape, whole)

    def zipf(self, a: Any, size: Size = None) -> ndarray:
        """Draw positive integers whose probabilities are proportional to the power ``-a``."""
        (a,), shape = self._arguments("zipf", size, a=(a, 1, inf, True))
        return self._variates(make_zipf_kernel, shape, [a])

    # -- multivariate distributions ----------------------------------------------------------------

    def _weights(self, function: str, name: str, value: Any) -> ndarray:
        """Convert a vector of parameters to an array on the generator's queue."""
        if isinstance(value, list | tuple):
            value = from_host(np.asarray(value), self._queue, self._usm_type)
        value = check_array(function, name, value)
        common_placement(function, [("generator", Placed(self)), (name, value)])
        if value.ndim != 1 or not value.size:
            raise ShapeError(f"{function}: {name} of shape {value.shape} must be a vector")
        return astype_array(value, _dtypes.default_float(traits_of(self._queue)), copy=False)

    def dirichlet(self, alpha: Any, size: Size = None) -> ndarray:
        """Draw vectors of positive numbers that sum to 1 along the last axis."""
        alpha = self._weights("dirichlet", "alpha", alpha)
        check_bounds("dirichlet", alpha=(alpha, 0, inf, True))
        shape = () if size is None else _layout.check_shape(size)
        logarithms = self._log_gamma((*shape, alpha.size), alpha)
        shares = ops.exp(logarithms - max_of(logarithms, -1, keepdims=True))
        return shares / sum_of(shares, -1, keepdims=True)

    def multinomial(self, n: Any, pvals: Any, size: Size = None) -> ndarray:
        """Draw how often each outcome occurs in ``n`` trials, along the last axis."""
        chances = self._weights("multinomial", "pvals", pvals)
        check_bounds("multinomial", pvals=(chances, 0, 1))
        values = chances.asnumpy().astype(np.float64)
        if values[:-1].sum() > 1 + 1e-12:
            raise ArgumentError("multinomial: the sum of pvals[:-1] is more than 1")
        (n,), shape = self._arguments("multinomial", size, n=(n, 0, 2.0**53))
        count = chances.size
        result = zeros((*shape, count), "int64", sycl_queue=self._queue, usm_type=self._usm_type)
        first = self._streams(math.prod(shape), count)
        left: Any = _whole(n)
        rest = 1.0
        for outcome in range(count - 1):
            chance = min(1.0, float(values[outcome]) / rest) if rest > 0 else 0.0
            taken = self._variates(
                make_binomial_kernel, shape, [left, chance], first=first + outcome, step=count
            )
            result[..., outcome] = taken
            left = left - taken
            rest -= float(values[outcome])
        result[..., count - 1] = left
        return result

    def multivariate_hypergeometric(
        self, colors: Any, nsample: int, size: Size = None, method: str = "marginals"
    ) -> ndarray:
        """Draw the number of elements of each color, without replacement, along the last axis."""
        numbers = self._weights("multivariate_hypergeometric", "colors", colors)
        check_bounds("multivariate_hypergeometric", colors=(numbers, 0, 10**9))
        values = [int(value) for value in numbers.asnumpy()]
        if not 0 <= nsample <= sum(values):
            raise ArgumentError(
                f"multivariate_hypergeometric: nsample {nsample} must be from 0 to {sum(values)}"
            )
        shape = () if size is None else _layout.check_shape(size)
        count = len(values)
        result = zeros((*shape, count), "int64", sycl_queue=self._queue, usm_type=self._usm_type)
        first = self._streams(math.prod(shape), count)
        left: Any = nsample
        for color in range(count - 1):
            rest = sum(values[color + 1 :])
            parameters = [values[color], rest, left]
            taken = self._variates(
                make_hypergeometric_kernel, shape, parameters, first=first + color, step=count
            )
            result[..., color] = taken
            left = left - taken
        result[..., count - 1] = left
        return result

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Size = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> ndarray:
        """Draw normal vectors with a mean and a covariance matrix, along the last axis.

        Args:
            mean: the mean, a vector.
            cov: the covariance, a symmetric matrix without negative eigenvalues.
            size: the number of vectors, as a shape.
            check_valid: ``"warn"``, ``"raise"`` or ``"ignore"`` if ``cov`` is not a valid
                covariance matrix.
            tol: the tolerance of that check.
            method: ``"svd"``, ``"eigh"`` or ``"cholesky"``; ignored, since the matrix is always
                factored by its eigenvectors.

        Raises:
            ArgumentError: the method is unknown, or the matrix has a negative eigenvalue and
                ``check_valid`` is ``"raise"``.
            ShapeError: the shapes of ``mean`` and ``cov`` do not match.
        """
        for name, given, known in (
            ("method", method, ("svd", "eigh", "cholesky")),
            ("check_valid", check_valid, ("warn", "raise", "ignore")),
        ):
            if given not in known:
                raise ArgumentError(
                    f"multivariate_normal: {name} must be one of {', '.join(known)}; got {given!r}"
                )
        mean = self._weights("multivariate_normal", "mean", mean)
        if isinstance(cov, list | tuple):
            cov = from_host(np.asarray(cov), self._queue, self._usm_type)
        cov = check_array("multivariate_normal", "cov", cov)
        common_placement("multivariate_normal", [("mean", mean), ("cov", cov)])
        if cov.shape != (mean.size, mean.size):
            raise ShapeError(
                f"multivariate_normal: cov of shape {cov.shape} for a mean of {mean.size} elements"
            )
        values, vectors = eigh(astype_array(cov, mean.dtype, copy=False))
        if check_valid != "ignore":
            worst = float(min_of(values))
            if worst < -tol * max(1.0, abs(float(max_of(values)))):
                message = f"multivariate_normal: cov has the negative eigenvalue {worst:g}"
                if check_valid == "raise":
                    raise ArgumentError(message)
                warnings.warn(message, RuntimeWarning, stacklevel=2)
        shape = () if size is None else _layout.check_shape(size)
        numbers = self.standard_normal((*shape, mean.size))
        spread = vectors * ops.sqrt(ops.maximum(values, 0.0))
        return matmul(numbers, spread.T) + mean

    # -- integers, order, choice ------------------------------------------------------------------

    def spawn(self, n_children: int) -> list[Generator]:
        """Return independent generators on the same queue."""
        children = np.random.SeedSequence(self._key).spawn(operator.index(n_children))
        return [
            Generator(int(child.generate_state(1, np.uint64)[0]), self._queue, self._usm_type)
            for child in children
        ]

    def choice(
        self,
        a: Any,
        size: Size = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> ndarray:
        """Draw random elements along an axis of an array, or from the integers 0 to ``a`` - 1.

        Args:
            a: an array on the generator's queue, or a positive integer.
            size: the number of elements, as a shape; a single one by default.
            replace: whether an element may be drawn more than once.
            p: the probability of each element, a list or a vector; all equal by default.
            axis: the axis to draw along.
            shuffle: ignored; the order is always random.

        Raises:
            ArgumentError: there is nothing to choose from, or ``p`` does not hold probabilities.
            ShapeError: ``p`` has the wrong shape, or there are not enough elements to choose.
        """
        if isinstance(a, list | tuple):
            a = from_host(np.asarray(a), self._queue, self._usm_type)
        if isinstance(p, list | tuple):
            p = from_host(np.asarray(p, np.float64), self._queue, self._usm_type)
        named: list[tuple[str, Any]] = [("generator", Placed(self))]
        if not isinstance(a, int | np.integer):
            named.append(("a", check_array("choice", "a", a)))
        if p is not None:
            p = check_array("choice", "p", p, Placement(self._queue, self._usm_type))
            named.append(("p", p))
        common_placement("choice", named)
        population = int(a) if isinstance(a, int | np.integer) else a.shape[axis]
        shape = () if size is None else _layout.check_shape(size)
        count = math.prod(shape)
        if population < 1 and (count or isinstance(a, int | np.integer)):
            raise ArgumentError("choice: there is nothing to choose from")
        if p is not None and p.shape != (population,):
            raise ShapeError(f"choice: p has shape {p.shape} for {population} elements")
        if p is not None:
            check_bounds("choice", p=(p, 0, inf))
            total = float(sum_of(p))
            if abs(total - 1) > 1e-6:
                raise ArgumentError(f"choice: the sum of p is {total:g}, not 1; use p / p.sum()")
        if not replace and count > population:
            raise ShapeError(f"choice: {count} of {population} elements without replacement")
        if not replace and p is not None and count > (possible := int(count_nonzero(p))):
            raise ShapeError(
                f"choice: {count} elements without replacement, but only {possible} of the "
                f"{population} have a probability above 0"
            )
        positions = reshape(self._chosen(population, count, replace, p), shape)
        if isinstance(a, int | np.integer):
            return positions
        return take(a, positions, axis % a.ndim)

    def _chosen(self, population: int, count: int, replace: bool, p: Any) -> ndarray:
        if p is None:
            if replace:
                return self.integers(max(population, 1), size=count)
            return argsort(self._integers64(population))[:count]
        if replace:
            heights = cumsum(p)
            levels = self.random(count) * heights[-1]
            found = searchsorted(heights, levels, side="right")
            return ops.minimum(found, population - 1)
        # The indices of the largest values of log(p) + Gumbel noise are a sample without
        # replacement.
        noise = ops.log(self.exponential(size=population))
        keys = noise - ops.log(p)
        return argsort(where(p > 0, keys, inf))[:count]


def _whole(value: Any) -> Any:
    """Return a count as an integer, rounded down as in NumPy."""
    if isinstance(value, ndarray):
        return ops.floor(value)
    return math.floor(value)


def _log1p(value: Any) -> Any:
    if isinstance(value, ndarray):
        return ops.log1p(value)
    return math.log1p(value) if value > -1 else -inf


def _power_of(numbers: ndarray, a: Any) -> ndarray:
    """Return ``numbers ** (1 / a)``, and 0 where ``a`` is 0."""
    exponent = 1.0 / a if isinstance(a, ndarray) else (1.0 / a if a else inf)
    if isinstance(exponent, float) and exponent == inf:
        return numbers * 0.0
    return numbers**exponent


def key_of(seed: Any) -> int:
    """Return the Philox key for a seed."""
    if seed is None:
        return secrets.randbits(64)
    if isinstance(seed, np.random.SeedSequence):
        return int(seed.generate_state(1, np.uint64)[0])
    if isinstance(seed, list | tuple | np.ndarray):
        return key_of(np.random.SeedSequence([int(part) for part in seed]))
    try:
        key = operator.index(seed)
    except TypeError:
        raise ArgumentError(
            f"default_rng: seed must be an integer or a list of integers; got {type(seed).__name__}"
        ) from None
    if key < 0:
        raise ArgumentError(f"default_rng: seed must be at least 0, not {seed}")
    # NumPy's hash also turns a list into a single word.
    return key if key < 1 << 64 else key_of(np.random.SeedSequence(key))
