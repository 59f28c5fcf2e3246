"""Training on several queues gives the gradients of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import ExecutionPlacementError, GradientError, ShardingError


def loss(weights: Any, samples: Any, targets: Any) -> Any:
    return dp.sum((dp.tanh(samples @ weights) - targets) ** 2)


def test_the_sum_of_the_gradients_of_parts_is_that_of_the_whole() -> None:
    random = np.random.default_rng(0)
    samples, targets = random.normal(size=(50, 4)), random.normal(size=50)
    weights = dp.asarray(random.normal(size=4))
    whole = dp.grad(loss)(weights, dp.asarray(samples), dp.asarray(targets)).asnumpy()
    home = dp.default_device()
    queues = [home, home.new_queue(), home.new_queue()]
    parts = []
    for number, queue in enumerate(queues):
        x = dp.asarray(samples[number::3], device=queue)
        y = dp.asarray(targets[number::3], device=queue)
        part = dp.grad(loss)(weights.to_device(queue), x, y)
        assert part.queue == x.queue
        parts.append(part)
    total = sum(part.to_device(home) for part in parts)
    assert np.allclose(total.asnumpy(), whole, rtol=1e-12)


def test_training_on_shards_gives_the_weights_of_one_device() -> None:
    random = np.random.default_rng(0)
    samples, targets = random.normal(size=(51, 4)), random.normal(size=51)
    home = dp.default_device()
    devices = [home, home.new_queue(), home.new_queue()]
    inputs = dp.distribute(dp.asarray(samples), devices)
    outputs = dp.distribute(dp.asarray(targets), devices)
    gradient = dp.grad(loss)

    def total(weights: Any) -> Any:
        pairs = zip(inputs.shards, outputs.shards, strict=True)
        parts = [gradient(weights.to_device(x.device), x, y) for x, y in pairs]
        dp.eval(*parts)
        return sum(part.to_device(home) for part in parts)

    weights = alone = dp.asarray(random.normal(size=4))
    for _ in range(5):
        weights = weights - 0.01 * total(weights)
        alone = alone - 0.01 * gradient(alone, dp.asarray(samples), dp.asarray(targets))
    assert np.allclose(weights.asnumpy(), alone.asnumpy(), rtol=1e-12)


def test_training_on_dask_workers_gives_the_weights_of_one_device() -> None:
    distributed = pytest.importorskip("distributed")
    random = np.random.default_rng(0)
    samples, targets = random.normal(size=(50, 4)), random.normal(size=50)
    weights = alone = dp.asarray(random.normal(size=4))

    def step(weights: Any, part: Any) -> Any:
        return dp.grad(loss)(weights, *part)

    with distributed.Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as client:
        parts = [(dp.asarray(samples[k::2]), dp.asarray(targets[k::2])) for k in range(2)]
        held = [client.scatter(part) for part in parts]
        for _ in range(3):
            sums = client.gather([client.submit(step, weights, part, pure=False) for part in held])
            weights = weights - 0.01 * sum(sums)
            alone = alone - 0.01 * dp.grad(loss)(alone, dp.asarray(samples), dp.asarray(targets))
    assert np.allclose(weights.asnumpy(), alone.asnumpy(), rtol=1e-12)


def test_arrays_of_two_queues_raise_in_both_passes() -> None:
    home = dp.default_device()
    other = dp.ones(4, device=home.new_queue())
    x = dp.ones(4)
    with pytest.raises(ExecutionPlacementError):
        dp.grad(lambda x: dp.sum(x * other))(x)
    _, pull = dp.vjp(lambda x: x * 2, x)
    with pytest.raises(ExecutionPlacementError):
        pull(other)
    with pytest.raises(ExecutionPlacementError):
        dp.jvp(lambda x: x * 2, (x,), (other,))


def test_sharded_arrays_raise() -> None:
    home = dp.default_device()
    x = dp.distribute(dp.ones(4), [home, home.new_queue()])
    with pytest.raises(GradientError, match="ShardedArray"):
        dp.grad(lambda x: dp.sum(x))(x)
    for f in (dp.add, lambda y, x: y * x, lambda y, x: x @ y):
        with pytest.raises(ShardingError, match="differentiate a function of each shard"):
            dp.grad(lambda y, f=f: dp.sum(f(y, x)))(dp.ones(4))
