"""What only the interpreter has is computed in its own memory, and nothing else is."""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._array import short
from dparray._evaluate import background, limits
from dparray._runtime import queues

SIZES = [2_000, 20_000]
is_known = pytest.mark.skipif(
    short.module is None or sys.version_info >= (3, 14) or sys.platform != "linux",
    reason="temporaries are known to the compiled short way alone, up to Python 3.13",
)


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """By the host, as small arrays are while no queue is known to be at work."""
    dp.asarray([1.0]) * 2  # which may have the device measured
    background.wait()
    for queue in list(queues.working):
        queues.wait(queue)
    left = dict(queues.working)  # queues whose memory other tests have shared stay there for good
    queues.working.clear()
    with limits.force("host"):
        yield
    queues.working.update(left)


def made(size: int) -> tuple[np.ndarray, Any]:
    values = np.linspace(-1, 2, size)
    return values, dp.asarray(values)


@is_known
@pytest.mark.parametrize("size", SIZES)
def test_a_temporary_takes_the_result(size: int) -> None:
    _, x = made(size)
    address = []

    def noted(y: Any) -> Any:
        address.append(id(y))
        return y

    for _ in range(20):  # whatever the interpreter has made of the bytecode
        y = noted(x * 2) + x
        assert id(y) == address.pop()
        y = x - noted(x * 2)
        assert id(y) == address.pop()
        y = 2.0 / noted(x * x)
        assert id(y) == address.pop()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_values_are_those_of_numpy(size: int, dtype: str) -> None:
    values = np.linspace(1, 9, size).astype(dtype)
    x = dp.asarray(values)
    for compute in (
        lambda x: x * 2 + x,
        lambda x: (x + 1) * (x - 1) / (x + 3) - 1 / (x * 2),
        lambda x: (x * 2 + x[::-1]) - (x + x)[::-1],
        lambda x: (x + 1).reshape(2, -1) * (x * 3).reshape(2, -1),
        lambda x: (x * 2) + (x * 2)[:1],
        lambda x: (x * 2)[:1] + (x * 2),
        lambda x: (x * 2).astype("complex128") + x,
    ):
        wanted = compute(values)
        found = compute(x)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5)


def by_name(x: Any, y: Any) -> Any:
    return x + y


HOLDERS: dict[str, Callable[[Any, Any], Any]] = {
    "a variable": lambda x, y: by_name(x, y),
    "operator.add": operator.add,
    "a method": lambda x, y: x.__add__(y),
    "the class's method": lambda x, y: type(x).__add__(x, y),
    "sum": lambda x, y: sum([x, y]),
    "reduce": lambda x, y: functools.reduce(operator.add, [x, y]),
    "accumulate": lambda x, y: list(itertools.accumulate([x, y, y]))[1],
    "map": lambda x, y: next(map(operator.add, [x], [y])),
    "partial": lambda x, y: functools.partial(operator.add, x)(y),
    "a tuple": lambda x, y: (lambda pair: pair[0] + pair[1])((x, y)),
    "a generator": lambda x, y: next(a + b for a, b in [(x, y)]),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", HOLDERS)
def test_what_somebody_has_stays(size: int, name: str) -> None:
    values, x = made(size)
    kept = [x * 2, x * 3]
    found = HOLDERS[name](*kept)
    np.testing.assert_array_equal(kept[0].asnumpy(), values * 2)
    np.testing.assert_array_equal(kept[1].asnumpy(), values * 3)
    np.testing.assert_array_equal(found.asnumpy(), values * 2 + values * 3)


@pytest.mark.parametrize("size", SIZES)
def test_an_array_of_objects_keeps_what_it_alone_has(size: int) -> None:
    values, x = made(size)
    objects = np.empty(2, object)
    objects[0], objects[1] = x * 2, x * 3
    found = [objects + 1.0, objects * objects, 1.0 - objects, np.add(objects, 1.0)]
    found.append(np.add.reduce(objects))
    np.testing.assert_array_equal(objects[0].asnumpy(), values * 2)
    np.testing.assert_array_equal(objects[1].asnumpy(), values * 3)
    np.testing.assert_array_equal(found[0][1].asnumpy(), values * 3 + 1)
    np.testing.assert_array_equal(found[-1].asnumpy(), values * 2 + values * 3)


@pytest.mark.parametrize("size", SIZES)
def test_memory_that_others_know_is_kept(size: int) -> None:
    values, x = made(size)
    kept: list[Any] = []

    def shared(how: Callable[[Any], Any]) -> Any:
        y = x * 2
        kept.append(how(y))
        return y

    for how in (
        lambda y: y[1:],
        lambda y: y.T,
        lambda y: y.reshape(2, -1),
        lambda y: dp.asarray(y),
        lambda y: dp.exp(y),
        lambda y: iter(y),
        lambda y: y.block,
        lambda y: y.block.memory,
    ):
        found = shared(how) + x
        np.testing.assert_array_equal(found.asnumpy(), values * 2 + values)
    np.testing.assert_array_equal(kept[0].asnumpy(), (values * 2)[1:])
    np.testing.assert_array_equal(kept[1].asnumpy(), values * 2)
    np.testing.assert_array_equal(kept[2].asnumpy().ravel(), values * 2)
    np.testing.assert_allclose(kept[4].asnumpy(), np.exp(values * 2))
    assert next(kept[5]) == values[0] * 2
    as_doubles = np.frombuffer(kept[7].copy_to_host(), np.float64)[:size]
    np.testing.assert_array_equal(as_doubles, values * 2)


@pytest.mark.parametrize("size", SIZES)
def test_an_array_that_is_referred_to_weakly_stays(size: int) -> None:
    import weakref

    values, x = made(size)
    kept: list[Any] = []

    def referred() -> Any:
        y = x * 2
        kept.append(weakref.ref(y))
        return y

    found = referred() + x
    assert kept[0]() is not found
    np.testing.assert_array_equal(found.asnumpy(), values * 3)


def test_a_pending_reader_has_the_values_from_before() -> None:
    values, x = made(20_000)
    kept: list[Any] = []

    def read() -> Any:
        y = x * 2
        y[0]  # it has memory
        with dp.config.override(host_tier=False):
            kept.append(y - 1)
        return y

    found = read() + x
    np.testing.assert_array_equal(found.asnumpy(), values * 3)
    np.testing.assert_array_equal(kept[0].asnumpy(), values * 2 - 1)
