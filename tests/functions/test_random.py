"""Random numbers: reproducible on every device, and independent of the division into calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import dparray as dp
from dparray.algorithms.ranges import kernel_of
from dparray.kernels.variates import (
    make_binomial_kernel,
    make_hypergeometric_kernel,
    make_poisson_kernel,
)
from dparray.random import streams

DRAWS: dict[str, Any] = {
    "random": lambda rng, n: rng.random(n),
    "random-float32": lambda rng, n: rng.random(n, dtype="float32"),
    "standard_normal": lambda rng, n: rng.standard_normal(n),
    "normal-float32": lambda rng, n: rng.normal(1.0, 2.0, n, dtype="float32"),
    "integers": lambda rng, n: rng.integers(-5, 100, size=n),
    "exponential": lambda rng, n: rng.exponential(2.0, n),
    "gamma": lambda rng, n: rng.gamma(0.7, 2.0, n),
    "poisson": lambda rng, n: rng.poisson(20.0, n),
    "beta": lambda rng, n: rng.beta(0.7, 2.0, n),
    "standard_t": lambda rng, n: rng.standard_t(3.0, n),
    "wald": lambda rng, n: rng.wald(1.0, 2.0, n),
    "noncentral_f": lambda rng, n: rng.noncentral_f(3.0, 4.0, 1.0, n),
    "binomial": lambda rng, n: rng.binomial(10, 0.3, n),
    "negative_binomial": lambda rng, n: rng.negative_binomial(4, 0.5, n),
    "hypergeometric": lambda rng, n: rng.hypergeometric(10, 12, 5, n),
    "logseries": lambda rng, n: rng.logseries(0.5, n),
    "multinomial": lambda rng, n: rng.multinomial(10, [0.2, 0.3, 0.5], n),
    "dirichlet": lambda rng, n: rng.dirichlet([0.2, 0.3, 0.5], n),
    "multivariate_normal": lambda rng, n: rng.multivariate_normal(
        [0.0, 1.0, 2.0], [[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]], n
    ),
    "multivariate_hypergeometric": lambda rng, n: rng.multivariate_hypergeometric([3, 4], 5, n),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.sample(4)
def test_a_sequence_does_not_depend_on_its_division(name: str) -> None:
    draw = DRAWS[name]
    pieces, whole = dp.random.default_rng(5), dp.random.default_rng(5)
    parts = [draw(pieces, n) for n in (1, 7, 3, 0, 9)]
    assert dp.array_equal(dp.concat(parts), draw(whole, 20))


@pytest.mark.parametrize("name", ["random", "integers", "poisson", "binomial"])
def test_the_seed_gives_the_same_numbers_on_every_device(name: str, queue: Any) -> None:
    here = DRAWS[name](dp.random.default_rng(9), 100).asnumpy()
    there = DRAWS[name](dp.random.default_rng(9, sycl_queue=queue), 100)
    assert there.queue == queue
    np.testing.assert_array_equal(there.asnumpy(), here)


def test_seeds_and_calls_differ() -> None:
    rng = dp.random.default_rng(1)
    first = rng.random(50)
    assert not dp.array_equal(first, rng.random(50))
    assert not dp.array_equal(first, dp.random.default_rng(2).random(50))
    assert not dp.array_equal(dp.random.default_rng().random(5), dp.random.default_rng().random(5))


def test_distributions_have_their_moments() -> None:
    rng, n = dp.random.default_rng(0), 100_000
    for sample, mean, deviation in (
        (rng.random(n), 0.5, 12**-0.5),
        (rng.uniform(2, 4, n), 3, 2 / 12**0.5),
        (rng.standard_normal(n), 0, 1),
        (rng.normal(3, 2, n), 3, 2),
        (rng.exponential(2.0, n), 2, 2),
        (rng.integers(0, 10, n), 4.5, 8.25**0.5),
    ):
        assert abs(float(sample.mean()) - mean) < 0.03 * deviation
        assert abs(float(sample.std()) - deviation) < 0.02 * deviation


CONTINUOUS: dict[str, tuple[tuple[float, ...], Any]] = {
    "beta": ((0.4, 0.7), stats.beta(0.4, 0.7)),
    "chisquare": ((3.0,), stats.chi2(3)),
    "exponential": ((2.0,), stats.expon(scale=2)),
    "f": ((5.0, 7.0), stats.f(5, 7)),
    "gamma": ((0.3, 2.0), stats.gamma(0.3, scale=2)),
    "gumbel": ((1.0, 2.0), stats.gumbel_r(1, 2)),
    "laplace": ((1.0, 2.0), stats.laplace(1, 2)),
    "logistic": ((1.0, 2.0), stats.logistic(1, 2)),
    "lognormal": ((0.5, 0.7), stats.lognorm(0.7, scale=np.exp(0.5))),
    "noncentral_chisquare": ((3.0, 2.0), stats.ncx2(3, 2)),
    "noncentral_f": ((3.0, 5.0, 2.0), stats.ncf(3, 5, 2)),
    "normal": ((1.0, 2.0), stats.norm(1, 2)),
    "pareto": ((3.0,), stats.lomax(3)),
    "power": ((2.5,), stats.powerlaw(2.5)),
    "random": ((), stats.uniform()),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "standard_cauchy": ((), stats.cauchy()),
    "standard_exponential": ((), stats.expon()),
    "standard_gamma": ((2.5,), stats.gamma(2.5)),
    "standard_normal": ((), stats.norm()),
    "standard_t": ((3.5,), stats.t(3.5)),
    "triangular": ((-1.0, 0.5, 3.0), stats.triang(0.375, -1, 4)),
    "uniform": ((1.0, 3.0), stats.uniform(1, 2)),
    "vonmises": ((0.0, 2.0), stats.vonmises(2.0)),
    "wald": ((1.5, 2.0), stats.invgauss(0.75, scale=2)),
    "weibull": ((1.5,), stats.weibull_min(1.5)),
}
DISCRETE: list[tuple[str, tuple[float, ...], Any]] = [
    ("binomial", (10, 0.3), stats.binom(10, 0.3)),
    ("binomial", (1000, 0.93), stats.binom(1000, 0.93)),
    ("geometric", (0.2,), stats.geom(0.2)),
    ("hypergeometric", (20, 30, 12), stats.hypergeom(50, 20, 12)),
    ("hypergeometric", (2000, 3000, 1200), stats.hypergeom(5000, 2000, 1200)),
    ("integers", (-3, 9), stats.randint(-3, 9)),
    ("logseries", (0.7,), stats.logser(0.7)),
    ("negative_binomial", (5, 0.3), stats.nbinom(5, 0.3)),
    ("poisson", (3.3,), stats.poisson(3.3)),
    ("poisson", (45.0,), stats.poisson(45)),
    ("zipf", (2.5,), stats.zipf(2.5)),
]
DISCRETE_PARAMETERS = [(name, parameters) for name, parameters, _ in DISCRETE]
SAMPLES = 100_000


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_follow_the_distribution(name: str) -> None:
    """The seed is fixed, so a test that passes once always passes."""
    parameters, distribution = CONTINUOUS[name]
    sample = getattr(dp.random.default_rng(7), name)(*parameters, size=SAMPLES)
    assert sample.dtype == np.float64
    assert stats.kstest(sample.asnumpy(), distribution.cdf).pvalue > 0.001


@pytest.mark.parametrize(("name", "parameters", "distribution"), DISCRETE)
def test_samples_of_integers_follow_the_distribution(
    name: str, parameters: tuple[float, ...], distribution: Any
) -> None:
    sample = getattr(dp.random.default_rng(7), name)(*parameters, size=SAMPLES).asnumpy()
    assert sample.dtype == np.int64
    places = np.unique(np.quantile(sample, np.linspace(0.05, 0.95, 19)).astype(int))
    expected = distribution.cdf(places)
    found = np.mean(sample[:, None] <= places, axis=0)
    assert np.all(np.abs(found - expected) <= 4 * np.sqrt(expected * (1 - expected) / SAMPLES))


def test_the_ends_of_parameters_ranges() -> None:
    rng = dp.random.default_rng(0)
    assert rng.poisson(0.0, 3).tolist() == [0, 0, 0]
    assert rng.binomial([5, 5, 0], [0.0, 1.0, 0.5]).tolist() == [0, 5, 0]
    assert rng.geometric(1.0, 2).tolist() == [1, 1]
    assert rng.standard_gamma([0.0, 0.0]).tolist() == [0.0, 0.0]
    assert rng.hypergeometric(0, 5, 3) == 0
    assert rng.hypergeometric(5, 0, 3) == 3
    assert rng.power(1.0, 0).shape == (0,)
    assert bool(dp.all(dp.isfinite(rng.beta(0.01, 0.01, 1000))))


def test_vectors_of_numbers() -> None:
    rng, n = dp.random.default_rng(2), 20_000
    counts = rng.multinomial(12, [0.2, 0.3, 0.5], n)
    np.testing.assert_array_equal(counts.sum(axis=1).asnumpy(), 12)
    np.testing.assert_allclose(counts.mean(axis=0).asnumpy(), [2.4, 3.6, 6.0], rtol=0.02)
    shares = rng.dirichlet([1.0, 2.0, 3.0], n)
    np.testing.assert_allclose(shares.sum(axis=1).asnumpy(), 1, rtol=1e-12)
    np.testing.assert_allclose(shares.mean(axis=0).asnumpy(), [1 / 6, 2 / 6, 3 / 6], rtol=0.02)
    covariance = np.asarray([[2.0, 0.5], [0.5, 1.0]])
    points = rng.multivariate_normal([1.0, -1.0], dp.asarray(covariance), n)
    np.testing.assert_allclose(points.mean(axis=0).asnumpy(), [1, -1], atol=0.04)
    np.testing.assert_allclose(dp.cov(points.T).asnumpy(), covariance, atol=0.06)
    drawn = rng.multivariate_hypergeometric([3, 4, 5], 6, n)
    np.testing.assert_array_equal(drawn.sum(axis=1).asnumpy(), 6)
    np.testing.assert_allclose(drawn.mean(axis=0).asnumpy(), [1.5, 2.0, 2.5], rtol=0.02)


def test_every_line_is_permuted_by_itself() -> None:
    rng = dp.random.default_rng(2)
    x = dp.reshape(dp.arange(60), (3, 20))
    y = rng.permuted(x, axis=1)
    np.testing.assert_array_equal(dp.sort(y, axis=1).asnumpy(), x.asnumpy())
    order = y.asnumpy() % 20
    assert not (order[0] == order[1]).all()
    assert sorted(rng.permuted(x).asnumpy().ravel().tolist()) == list(range(60))
    items = list("abcdef")
    rng.shuffle(items)
    assert sorted(items) == list("abcdef")


BAD: dict[str, Any] = {
    "poisson: lam is -1": lambda r: r.poisson(-1),
    "poisson: lam has an element": lambda r: r.poisson([1.0, -1.0]),
    "gamma: shape is nan": lambda r: r.gamma(float("nan")),
    "binomial: p is 1.5; it must be 0 or more and at most 1": lambda r: r.binomial(10, 1.5),
    "choice: the sum of p": lambda r: r.choice(5, p=[0.5] * 5),
    "normal: scale is -1": lambda r: r.normal(scale=-1),
    "integers: high must be an integer": lambda r: r.integers(5, 6.5),
    "multinomial: the sum": lambda r: r.multinomial(5, [0.6, 0.7, 0.1]),
    "dirichlet: alpha has an element": lambda r: r.dirichlet([0.0, 1.0]),
    "seed must be an integer": lambda r: dp.random.default_rng("x"),
    "negative eigenvalue": lambda r: r.multivariate_normal(
        [0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], check_valid="raise"
    ),
    "hypergeometric: ngood \\+ nbad - nsample": lambda r: r.hypergeometric(1, 2, 9),
    "random: the result of shape": lambda r: r.random(3, out=dp.zeros(2)),
}


@pytest.mark.parametrize("message", BAD)
def test_parameters_outside_their_range(message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        BAD[message](dp.random.default_rng(0))
    assert isinstance(caught.value, dp.DparrayError)


def test_ranges_are_kept() -> None:
    rng = dp.random.default_rng(3)
    x = rng.random(10_000, dtype="float32")
    assert float(x.min()) >= 0
    assert float(x.max()) < 1
    assert set(rng.integers(-2, 2, 1000).tolist()) == {-2, -1, 0, 1}
    assert set(rng.integers(3, size=1000, dtype="uint8", endpoint=True).tolist()) == {0, 1, 2, 3}
    full = rng.integers(-(2**63), 2**63, 1000)
    assert int(full.min()) < -(2**62) < 2**62 < int(full.max())
    between = rng.integers([1, 10, 100], dp.asarray([3, 20, 101]), (200, 3)).asnumpy()
    assert (between.min(0) == [1, 10, 100]).all()
    assert (between.max(0) == [2, 19, 100]).all()
    for bad in ((5, 5), (0, 300)):
        with pytest.raises(ValueError, match="is empty or not within"):
            rng.integers(*bad, dtype="uint8")


def test_parameters_may_be_arrays_on_the_generators_queue() -> None:
    rng = dp.random.default_rng(3)
    x = rng.uniform(dp.asarray([0.0, 10.0]), dp.asarray([1.0, 11.0]), size=(1000, 2))
    assert bool(dp.all((x >= dp.asarray([0.0, 10.0])) & (x <= dp.asarray([1.0, 11.0]))))
    elsewhere = dp.asarray([0.0], device=rng.device.new_queue())
    for call in (
        lambda: rng.uniform(elsewhere, 1.0),
        lambda: rng.normal(elsewhere, 1.0),
        lambda: rng.choice(elsewhere),
        lambda: rng.shuffle(elsewhere),
        lambda: rng.random(out=elsewhere),
    ):
        with pytest.raises(dp.ExecutionPlacementError, match="different queues"):
            call()


@pytest.mark.parametrize("name", sorted({*CONTINUOUS, *(name for name, _, _ in DISCRETE)}))
def test_parameters_on_another_queue_are_refused(name: str) -> None:
    rng = dp.random.default_rng(3, usm_type="host")
    parameters = dict(DISCRETE_PARAMETERS).get(name) or CONTINUOUS[name][0]
    other = rng.device.new_queue()
    for place in range(len(parameters)):
        arrays = [dp.asarray([value] * 2, usm_type="shared") for value in parameters]
        result = getattr(rng, name)(*arrays)
        assert (result.shape, result.usm_type) == ((2,), "shared")
        assert result.queue == rng.device.queue
        arrays[place] = arrays[place].to_device(other)
        with pytest.raises(dp.ExecutionPlacementError, match="different queues"):
            getattr(rng, name)(*arrays)


def test_permutations_and_choices() -> None:
    rng = dp.random.default_rng(4)
    assert sorted(rng.permutation(20).tolist()) == list(range(20))
    x = dp.reshape(dp.arange(12), (4, 3))
    before = x.asnumpy()
    rng.shuffle(x)
    assert sorted(map(tuple, x.tolist())) == sorted(map(tuple, before.tolist()))
    assert sorted(rng.choice(6, 6, replace=False).tolist()) == list(range(6))
    assert set(rng.choice(4, 200, p=[0.0, 0.5, 0.5, 0.0]).tolist()) == {1, 2}
    assert set(rng.choice(4, 2, replace=False, p=[0.0, 0.5, 0.5, 0.0]).tolist()) == {1, 2}
    share = rng.choice(2, 20_000, p=[0.9, 0.1]).mean()
    assert abs(float(share) - 0.1) < 0.01
    with pytest.raises(dp.exceptions.ShapeError, match="without replacement"):
        rng.choice(3, 4, replace=False)


def test_the_modules_functions_start_anew_with_seed() -> None:
    dp.random.seed(11)
    first = [dp.random.rand(3), dp.random.randn(2), dp.random.randint(9, size=4)]
    dp.random.seed(11)
    again = [dp.random.rand(3), dp.random.randn(2), dp.random.randint(9, size=4)]
    for one, other in zip(first, again, strict=True):
        assert dp.array_equal(one, other)


def test_the_older_interface() -> None:
    state = dp.random.RandomState(4)
    first = state.rand(3)
    kept = state.get_state()
    second = state.randn(2, 2)
    state.set_state(kept)
    assert dp.array_equal(state.randn(2, 2), second)
    state.seed(4)
    assert dp.array_equal(state.rand(3), first)
    assert dp.array_equal(dp.random.default_rng(4).random(3), first)
    dp.random.seed(4)
    assert dp.array_equal(dp.random.random_sample(3), first)
    assert set(state.random_integers(2, size=50).tolist()) == {1, 2}
    rng = dp.random.default_rng(state)
    assert rng is state
    assert len(rng.bytes(7)) == 7
    one, other = dp.random.default_rng([1, 2]).spawn(2)
    assert not dp.array_equal(one.random(4), other.random(4))


@pytest.mark.parametrize("seed", [-1, -(2**64)])
def test_invalid_seeds(seed: int) -> None:
    with pytest.raises(ValueError, match="seed"):
        dp.random.default_rng(seed)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["poisson", "binomial", "hypergeometric"])
def test_large_counts_lose_nothing_in_the_differences_of_factorials(name: str, dtype: str) -> None:
    """Careless code loses digits from 1e6 on in single and from 1e15 on in double precision."""
    large = 1e6 if dtype == "float32" else 1e16
    if name == "hypergeometric":
        large = 2000
        factory, parameters = make_hypergeometric_kernel, (3 * large, large, large)
        mean, variance = 0.75 * large, 0.1875 * large * 0.75
    elif name == "binomial":
        factory, parameters = make_binomial_kernel, (large, 0.25)
        mean, variance = large / 4, large * 3 / 16
    else:
        factory, parameters, mean, variance = make_poisson_kernel, (large,), large, large
    count = 40_000
    out = dp.empty(count, dtype="int64")
    vectors = [dp.full(count, value, dtype=dtype) for value in parameters]
    start = (np.uint64(1), np.uint64(1), np.uint64(3))
    chosen = kernel_of(streams._of_distribution, factory, np.dtype(dtype))
    dp.call_kernel(chosen, dp.Range(count), out, *vectors, *start)
    found = (out.asnumpy() - mean) / np.sqrt(variance)
    assert abs(found.mean()) < 0.03
    assert abs(found.std() - 1) < 0.03
    # A normal distribution has 0.27 % of its values beyond three standard deviations.
    assert 0.001 < np.mean(np.abs(found) > 3) < 0.005


def draws(rng: Any) -> list[np.ndarray]:
    """Draw numbers of every kind, a few each, which advance the generator."""
    found = []
    for n in (1, 2, 3, 5, 8, 33):
        shuffled = dp.arange(float(n))
        rng.shuffle(shuffled)
        found += [
            *(rng.random(n), rng.random(n, dtype="float32"), rng.random(), rng.uniform(2, 5, n)),
            *(rng.standard_normal(n), rng.normal(1, 2, n), rng.exponential(2, n)),
            *(rng.integers(9), rng.integers(0, 7, n), rng.integers(-5, 2**40, size=(n, 2))),
            *(rng.integers(0, 256, n, dtype="uint8"), rng.integers(0, 2, n, dtype="bool")),
            rng.integers(-(2**63), 2**63 - 1, n, endpoint=True),
            rng.integers(0, 2**64 - 1, n, dtype="uint64", endpoint=True),
            *(rng.permutation(n), rng.permutation(dp.arange(n)), shuffled),
            *(rng.choice(n), rng.choice(n, 3), rng.choice(n, n, p=dp.ones(n) / n)),
            *(rng.permuted(dp.ones((n, 2)).cumsum(0), axis=1), dp.asarray(list(rng.bytes(5)))),
        ]
    return [x.asnumpy() for x in found]


def test_few_numbers_are_the_same_by_the_host_and_by_kernels() -> None:
    by_host = draws(dp.random.default_rng(3))
    with dp.config.override(host_tier=False):
        by_kernels = draws(dp.random.default_rng(3))
    for found, wanted in zip(by_host, by_kernels, strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        tolerance = {4: 1e-6, 8: 1e-13}.get(found.itemsize, 0) if found.dtype.kind == "f" else 0
        np.testing.assert_allclose(found, wanted, tolerance, tolerance / 10)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_row_that_is_chosen_is_a_copy(axis: int, executor: str) -> None:
    x = dp.ones((3, 4))
    chosen = dp.random.default_rng(2).choice(x, axis=axis)
    chosen += 1
    assert (x == 1).all()


def test_few_numbers_begin_as_many_do() -> None:
    for draw in (lambda rng, n: rng.random(n), lambda rng, n: rng.integers(0, 1000, n)):
        many = draw(dp.random.default_rng(5), 100_000).asnumpy()
        for count in (0, 1, 2, 3, 7, 1000):
            few = draw(dp.random.default_rng(5), count).asnumpy()
            np.testing.assert_array_equal(few, many[:count])
