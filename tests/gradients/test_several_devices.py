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
    with pytest.raises((GradientError, ShardingError)):
        dp.grad(lambda y: dp.sum(y * x))(dp.ones(4))
