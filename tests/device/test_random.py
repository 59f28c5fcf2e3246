"""Random numbers: reproducible on every device and however they are cut into calls."""

from __future__ import annotations

from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp

DRAWS: dict[str, Any] = {
    "random": lambda rng, n: rng.random(n),
    "random-float32": lambda rng, n: rng.random(n, dtype="float32"),
    "standard_normal": lambda rng, n: rng.standard_normal(n),
    "normal-float32": lambda rng, n: rng.normal(1.0, 2.0, n, dtype="float32"),
    "integers": lambda rng, n: rng.integers(-5, 100, size=n),
    "exponential": lambda rng, n: rng.exponential(2.0, n),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_sequence_does_not_depend_on_how_it_is_cut(name: str) -> None:
    draw = DRAWS[name]
    pieces, whole = dp.random.default_rng(5), dp.random.default_rng(5)
    parts = [draw(pieces, n) for n in (1, 7, 3, 0, 9)]
    assert dp.array_equal(dp.concat(parts), draw(whole, 20))


@pytest.mark.parametrize("name", ["random", "integers"])
def test_the_seed_gives_the_same_numbers_on_every_device(name: str, queue: Any) -> None:
    here = DRAWS[name](dp.random.default_rng(9), 100).asnumpy()
    there = DRAWS[name](dp.random.default_rng(9, sycl_queue=queue), 100)
    assert there.sycl_queue == queue
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


def test_ranges_are_kept() -> None:
    rng = dp.random.default_rng(3)
    x = rng.random(10_000, dtype="float32")
    assert float(x.min()) >= 0
    assert float(x.max()) < 1
    assert set(rng.integers(-2, 2, 1000).tolist()) == {-2, -1, 0, 1}
    assert set(rng.integers(3, size=1000, dtype="uint8", endpoint=True).tolist()) == {0, 1, 2, 3}
    full = rng.integers(-(2**63), 2**63, 1000)
    assert int(full.min()) < -(2**62) < 2**62 < int(full.max())
    for bad in ((5, 5), (0, 300)):
        with pytest.raises(ValueError, match="no range"):
            rng.integers(*bad, dtype="uint8")


def test_parameters_may_be_arrays_on_the_generators_queue() -> None:
    rng = dp.random.default_rng(3)
    x = rng.uniform(dp.asarray([0.0, 10.0]), dp.asarray([1.0, 11.0]), size=(1000, 2))
    assert bool(dp.all((x >= dp.asarray([0.0, 10.0])) & (x <= dp.asarray([1.0, 11.0]))))
    elsewhere = dp.asarray([0.0], sycl_queue=dpctl.SyclQueue(rng.device.sycl_device))
    for call in (
        lambda: rng.uniform(elsewhere, 1.0),
        lambda: rng.normal(elsewhere, 1.0),
        lambda: rng.choice(elsewhere),
        lambda: rng.shuffle(elsewhere),
        lambda: rng.random(out=elsewhere),
    ):
        with pytest.raises(dp.ExecutionPlacementError, match="different queues"):
            call()


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


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_that_are_none(seed: int) -> None:
    with pytest.raises(ValueError, match="seed"):
        dp.random.default_rng(seed)
