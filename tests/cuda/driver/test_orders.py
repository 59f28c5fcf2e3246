"""Work of several CUDA queues has the values of a program in order, in every order of the device.

The stand-in takes the work of streams in random order and late, so that a missing wait, or memory
that is reused too early, gives wrong values.
"""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

import dparray as dp

SIZE = 3000


@pytest.fixture(params=range(1, 9))
def seed(request: pytest.FixtureRequest, driver: Any) -> int:
    """Set the order of the device's work."""
    driver.configure(seed=request.param, delay=1000)
    return int(request.param)


@pytest.fixture
def devices() -> list[dp.Device]:
    """Return two queues of one GPU and one of another."""
    first = dp.Device("cuda:0")
    return [first, first.new_queue(), dp.Device("cuda:1")]


def test_a_random_program_on_several_queues(seed: int, devices: list[dp.Device]) -> None:
    choose = random.Random(seed)
    wanted = [np.arange(SIZE, dtype="f4") + at for at in range(4)]
    found = [dp.asarray(each, device=choose.choice(devices)) for each in wanted]
    for _ in range(30):
        i, j = choose.sample(range(4), 2)
        action = choose.randrange(5)
        if action == 0:
            found[i] = found[i].to_device(choose.choice(devices))
        elif action == 1:
            found[i] = found[i] * 0.5 + found[j].to_device(found[i].device)
            wanted[i] = wanted[i] * np.float32(0.5) + wanted[j]
        elif action == 2:
            found[i][::2] = found[j].to_device(found[i].device)[1::2]
            wanted[i] = wanted[i].copy()
            wanted[i][::2] = wanted[j][1::2]
        elif action == 3:
            found[i] = found[i] - 1
            wanted[i] = wanted[i] - 1
        else:  # memory that is freed and taken again immediately
            del found[i]
            found.insert(i, dp.full(SIZE, 3, dtype="f4", device=choose.choice(devices)))
            wanted[i] = np.full(SIZE, 3, "f4")
    for ours, numpys in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), numpys, rtol=1e-5)


def test_memory_is_reused_only_after_the_work_that_reads_it(
    seed: int, devices: list[dp.Device]
) -> None:
    results = []
    for step in range(12):
        x = dp.full(SIZE, float(step), device=devices[step % 2])
        results.append(x.to_device(devices[1 - step % 2]) + 1)
        dp.eval(results[-1])
        del x
    assert [float(each[-1]) for each in results] == [step + 1 for step in range(12)]


def test_host_data_may_change_after_the_call(seed: int, devices: list[dp.Device]) -> None:
    host, found = np.zeros(SIZE), []
    for step in range(5):
        host[:] = step
        found.append(dp.asarray(host, device=devices[step % 3]))
    host[:] = -1
    assert [float(each.sum()) for each in found] == [SIZE * step for step in range(5)]


@pytest.mark.parametrize("usm_type", ["shared", "host"])
def test_the_host_reads_its_own_memory_after_the_work(
    seed: int, devices: list[dp.Device], usm_type: str
) -> None:
    x = dp.zeros(SIZE, device=devices[0], usm_type=usm_type)
    for step in range(5):
        x += step
        assert x.asnumpy()[-1] == sum(range(step + 1))


def test_threads_with_queues_of_their_own(seed: int) -> None:
    sums = []

    def work(number: int) -> None:
        device = dp.Device("cuda:0").new_queue()
        x = dp.full(SIZE, float(number), device=device)
        for _ in range(5):
            x = x + 1
        sums.append((number, float(x.sum())))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(sums) == [(number, SIZE * (number + 5)) for number in range(4)]
