"""The host waits only for work on the memory that it touches.

A gate in the test holds the kernels back, so nothing here depends on their run time.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import dpnp
import numpy as np
import pytest

import dparray as dp
from dparray._runtime import queues
from tests.support import force, held

FEW, MANY = 60, 150_000


@dp.kernel
def slowly_add(item: Any, x: Any, y: Any, rounds: Any) -> None:
    total = 0.0
    for _ in range(rounds):
        total = total * 0.5 + 1e-9
    count = x.shape[0]
    for i in range(count):
        x[i] = x[i] + y[i] + (total > 1)


def array(queue: Any, count: int = MANY) -> dp.ndarray:
    x = dp.asarray(np.arange(float(count)), sycl_queue=queue)
    dp.eval(x)
    return x


BESIDE: dict[str, Callable[[dp.ndarray, dp.ndarray], Any]] = {
    "an element": lambda few, many: float(many[7]),
    "an element of few": lambda few, many: float(few[7]),
    "all": lambda few, many: many.asnumpy(),
    "a slice": lambda few, many: many[3:9].tolist(),
    "an operation on few": lambda few, many: (few * 2 + few[3]).asnumpy(),
    "a reduction of few": lambda few, many: float(few.sum()),
    "a product of few": lambda few, many: float(few @ few),
    "a choice": lambda few, many: dp.where(few > 3, few, 0).asnumpy(),
    "a write to an element": lambda few, many: many.__setitem__(7, 1.0),
    "a write to a slice": lambda few, many: few.__setitem__(slice(3, 9), few[4:10]),
    "an update in place": lambda few, many: few.__iadd__(1),
    "positions": lambda few, many: few[dp.asarray([1, 2], sycl_queue=few.sycl_queue)].asnumpy(),
    "a map": lambda few, many: many.map("rw").close(),
    "a copy to the device": lambda few, many: dp.asarray([1.0, 2], sycl_queue=few.sycl_queue),
    "a branch": lambda few, many: bool(few[0] == 0),
    "iteration": lambda few, many: [float(each) for each in few],
}


@pytest.mark.parametrize("what", BESIDE)
def test_the_host_does_not_wait_for_other_memory(queue: Any, what: str) -> None:
    few, many, x, y = array(queue, FEW), array(queue), array(queue), array(queue)
    dp.synchronize(x)
    with held(queue, x, y):
        BESIDE[what](few, many)
    np.testing.assert_array_equal(x.asnumpy()[:2], [1, 1])


def test_read_only_arguments_can_be_read_meanwhile(queue: Any) -> None:
    x, y = array(queue), array(queue)
    with force("fused"):
        dp.eval(x + y)
        dp.synchronize(x)
        z = array(queue)
        with held(queue, z, z):
            dp.eval(x + y)  # after the kernel that is held
            assert float(x[5]) == 5
            np.testing.assert_array_equal(y.asnumpy()[:3], [0, 1, 2])


@dp.kernel
def add_to(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i] + y[i]


def test_read_only_arguments_of_user_kernels_can_be_read_meanwhile(queue: Any) -> None:
    x, y, out, z = array(queue), array(queue), array(queue), array(queue)
    dp.call_kernel(add_to, dp.Range(MANY), x, y, out)
    dp.synchronize(x)
    with held(queue, z, z):
        event = dp.call_kernel(add_to, dp.Range(MANY), x, y, out)  # after the kernel that is held
        assert float(x[5]) == 5
        np.testing.assert_array_equal(y.asnumpy()[:3], [0, 1, 2])
        assert not event.done
    assert float(out[5]) == 10
    # The same array is an operand that is read and one that is written.
    dp.call_kernel(add_to, dp.Range(MANY), x, y, x)
    np.testing.assert_array_equal(x.asnumpy(), 2 * np.arange(float(MANY)))
    x[3] = 0.0
    assert float(x[3]) == 0


def test_a_reading_kernel_leaves_pending_readers_pending(queue: Any) -> None:
    x, y, out = array(queue), array(queue), array(queue)
    dp.call_kernel(add_to, dp.Range(MANY), x, y, out)  # the source is not read earlier
    with force("fused"):
        pending = x * 2 + y
        dp.call_kernel(add_to, dp.Range(MANY), x, y, out)
        assert "pending: 2 operations" in str(dp.explain(pending))
        later = out * 2
        dp.call_kernel(add_to, dp.Range(MANY), x, x, out)
        np.testing.assert_array_equal(pending.asnumpy()[:3], [0, 3, 6])
        np.testing.assert_array_equal(later.asnumpy()[:3], [0, 4, 8])
        np.testing.assert_array_equal(out.asnumpy()[:3], [0, 2, 4])


def test_a_read_waits_for_writers_and_not_for_later_work(queue: Any) -> None:
    x, y, z = array(queue), array(queue), array(queue)
    event = dp.call_kernel(slowly_add, dp.Range(1), x, y, 3_000_000)
    with held(queue, z, y):
        assert float(x[5]) == 10
        assert event.done


def test_a_store_to_memory_at_work_is_a_kernel_and_waits_for_nothing(queue: Any) -> None:
    def statements(x: dp.ndarray, y: dp.ndarray, t: dp.ndarray) -> None:
        x[5:9] = t[2]
        x[10:90] -= 0.5 * (y[11:91] - y[10:90])
        x[0] = 3

    x, y, t = array(queue), array(queue), array(queue, FEW)
    with force("fused"):
        statements(x, y, t)  # compile its kernels
    expected = np.arange(float(MANY))
    dp.synchronize(x)
    with held(queue, y, x):
        expected[0] = x[0] = 1
        statements(x, y, t)
    for _ in range(2):
        expected[5:9] = 2
        expected[10:90] -= 0.5
        expected[0] = 3
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_a_new_array_of_memory_at_work_is_a_kernel_and_waits_for_nothing(queue: Any) -> None:
    x, y = array(queue), array(queue)
    with force("fused"):
        dp.eval(x * 2)  # compile its kernel
        dp.eval(x.copy())
    dp.synchronize(x)
    with held(queue, x, y):
        doubled, copied = x * 2, x.copy()
        dp.eval(doubled)
        dp.eval(copied)
        dp.eval(copied * 2)
    np.testing.assert_array_equal(doubled.asnumpy(), 2 * x.asnumpy())
    np.testing.assert_array_equal(copied.asnumpy(), x.asnumpy())


def test_a_number_on_the_host_is_a_scalar_argument_of_kernels(queue: Any) -> None:
    x, t = array(queue), array(queue, FEW)
    for dtype in ("float32", "int8", "uint64", "complex64", "float16", "bool"):
        number = t.astype(dtype)[3]
        assert number.is_only_on_host
        found = x * number
        wanted = np.arange(float(MANY)) * np.arange(FEW).astype(dtype)[3]
        number += number
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.asnumpy(), wanted)


def test_memory_that_was_given_back_is_not_written_before_its_work_is_done(queue: Any) -> None:
    y = array(queue)
    for round_ in range(5):
        for x in (array(queue), dp.empty(MANY, sycl_queue=queue)):
            dp.call_kernel(slowly_add, dp.Range(1), x, y, 500_000)
        del x
        again = dp.asarray(np.full(MANY, float(round_)), sycl_queue=queue)
        np.testing.assert_array_equal(again.asnumpy(), np.full(MANY, float(round_)))


def test_work_of_other_libraries_is_still_waited_for(queue: Any) -> None:
    x, y = array(queue), array(queue, FEW)
    theirs = dpnp.asarray(x)
    for step in range(10):
        dp.call_kernel(slowly_add, dp.Range(1), x, x, 200_000)
        theirs += 1
        assert float(x[0]) == 2 * (2**step - 1) + 1
        assert float(y[3]) == 3
    z = dp.asarray(theirs + 1)
    dp.call_kernel(slowly_add, dp.Range(1), z, z, 200_000)
    assert float(z[0]) == 2 * (float(x[0]) + 1)


def test_launches_of_two_threads_are_all_waited_for(queue: Any) -> None:
    x, y = dp.zeros(2 * MANY, sycl_queue=queue), array(queue)
    dp.eval(x)
    for _ in range(10):
        x[:] = 0
        threads = [
            threading.Thread(
                target=dp.call_kernel, args=(slowly_add, dp.Range(1), part, y, 100_000)
            )
            for part in (x[:MANY], x[MANY:])
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        expected = np.tile(np.arange(float(MANY)), 2)
        np.testing.assert_array_equal(x.asnumpy(), expected)


def test_a_queue_is_idle_again_once_its_last_work_was_waited_for(queue: Any) -> None:
    x, y = array(queue), array(queue)
    dp.synchronize(x)
    dp.call_kernel(slowly_add, dp.Range(1), x, y, 200_000)
    assert float(x[1]) == 2
    assert queues.is_idle(queue)


class _Program:
    """Statements on some arrays, and the same on NumPy arrays."""

    def __init__(self, queue: Any, seed: int) -> None:
        self.queue = queue
        self.draw = random.Random(seed)
        counts = [FEW, FEW, MANY, MANY, MANY]
        self.theirs = [np.full(count, float(at)) for at, count in enumerate(counts)]
        self.ours = [dp.asarray(each, sycl_queue=queue) for each in self.theirs]
        self.shared: list[Any] = []

    def pair(self) -> tuple[int, int]:
        at = self.draw.randrange(len(self.ours))
        same = [i for i, each in enumerate(self.ours) if each.shape == self.ours[at].shape]
        return at, self.draw.choice(same)

    def step(self) -> None:
        at, other = self.pair()
        x, y = self.ours[at], self.ours[other]
        a, b = self.theirs[at], self.theirs[other]
        k, value = self.draw.randrange(x.size), float(self.draw.randrange(9))
        part = slice(k // 2, k // 2 + self.draw.choice([1, 20, x.size]))
        kind = self.draw.randrange(16)
        if kind <= 2:
            dp.call_kernel(slowly_add, dp.Range(1), x, y, self.draw.choice([1, 10**5, 10**6]))
            a[:] = a + b
        elif kind == 3:
            assert float(x[k]) == a[k]
        elif kind == 4:
            x[k] = a[k] = value
        elif kind == 5:
            x[part], a[part] = value, value
        elif kind == 6:
            x[part], a[part] = y[part] + 1, b[part] + 1
        elif kind == 7:
            x -= y * 0.5
            a -= b * 0.5
        elif kind == 8:
            self.ours[at], self.theirs[at] = y * 0.5, b * 0.5
        elif kind == 9:
            self.ours[at], self.theirs[at] = y.copy(), b.copy()
        elif kind == 10:
            self.theirs[at] = np.full(a.shape, value)
            self.ours[at] = dp.asarray(self.theirs[at], sycl_queue=self.queue)
        elif kind == 11:
            d = dpnp.asarray(x)
            d += 1
            a += 1
            self.shared.append(d)
        elif kind == 12:
            with x.map("rw") as h:
                h[part] += value
            a[part] += value
        elif kind == 13:
            np.testing.assert_array_equal(x[part].asnumpy(), a[part])
        elif kind == 14:
            x[1:], a[1:] = x[:-1] * 0.5 + 1, a[:-1] * 0.5 + 1
        else:
            x[part] = x[k]
            a[part] = a[k]
        if self.draw.random() < 0.1:
            self.shared.clear()
            for each in (*self.ours, *self.theirs):
                each %= 1024  # the values stay exact


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_with_slow_kernels_are_right(queue: Any, seed: int) -> None:
    program = _Program(queue, seed)
    for _ in range(4):
        forced = program.draw.choice(["host", "fused", "library", None])
        with nullcontext() if forced is None else force(forced):
            for _ in range(12):
                program.step()
    for x, a in zip(program.ours, program.theirs, strict=True):
        np.testing.assert_array_equal(x.asnumpy(), a)
