"""The host computes small arrays eagerly, and nothing else about them differs.

Values computed by the host are in no USM memory until something needs them there. These tests check
when they are moved there, and queues that are still busy.
"""

from __future__ import annotations

import operator
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import dpnp
import numpy as np
import pytest

import dparray as dp
from tests.support import OPS, compiled_module

SLOW = 1 << 22
# Without the compiled module every operation takes the general way, which defers it.
immediate = pytest.mark.skipif(compiled_module is None, reason="the fast path is not compiled")


@dp.kernel
def slowly_double(item: Any, x: Any, y: Any, rounds: Any) -> None:
    i = item.get_id(0)
    total = y[i]
    for _ in range(rounds):
        total = total * 0.5 + y[i] * 0.5
    x[i] = 2 * total


def array(*shape: int, dtype: str = "float64", **place: Any) -> tuple[np.ndarray, dp.ndarray]:
    host = np.random.default_rng(len(shape)).uniform(1, 9, shape).astype(dtype)
    return host, dp.asarray(host, **place)


@immediate
def test_an_operation_is_computed_when_its_line_runs(queue: Any) -> None:
    host, x = array(5, 4, sycl_queue=queue)
    y = (x + 1) * x
    assert y.is_only_on_host
    assert not y.is_pending
    assert (y.queue, y.usm_type, y.shape, y.dtype, y.size, y.strides) == (
        queue, "device", (5, 4), np.float64, 20, (32, 8)
    )  # fmt: skip
    np.testing.assert_array_equal(y.asnumpy(), (host + 1) * host)


@immediate
def test_error_functions_and_products_are_computed_when_their_line_runs(queue: Any) -> None:
    _, x = array(5, 4, dtype="float32", sycl_queue=queue)
    padded = dp.pad(x, 1, constant_values=np.float32(3))
    made = [dp.special.erf(x), dp.special.erfc(x.T), dp.matmul(x, x.T), padded]
    assert all(each.is_only_on_host for each in made)
    assert all(each.dtype == "float32" for each in made)
    assert made[1].strides == (4, 16)  # as of x.T
    assert dp.special.erf(dp.zeros(3, dtype="int64")).dtype == "float64"
    assert dp.special.erf(dp.asarray(0.5)).shape == ()
    assert dp.special.erf(dp.ones(3000)).is_pending


@pytest.mark.parametrize(
    "needed",
    [
        lambda y: y[1:],
        lambda y: y.T,
        lambda y: y.__sycl_usm_array_interface__,
        lambda y: y.__dlpack__(),
        lambda y: y.reshape(-1),
        lambda y: y._node,
        lambda y: dp.call_kernel(slowly_double, dp.Range(5), y[:, 0], y[:, 1], 1),
    ],
)
def test_values_go_to_memory_when_they_are_needed_there(needed: Callable[[Any], Any]) -> None:
    host, x = array(5, 4)
    y = x + 1
    strides = y.strides
    needed(y)
    assert not y.is_only_on_host
    assert y.strides == strides
    np.testing.assert_array_equal(y.asnumpy()[:, 1:], host[:, 1:] + 1)


def test_a_result_in_column_order_goes_to_memory_in_it() -> None:
    host, x = array(5, 4)
    y = x.T + 1
    assert y.strides == (8, 32)
    np.testing.assert_array_equal(y[1:].asnumpy(), host.T[1:] + 1)
    assert y.strides == (8, 32)


def test_views_and_their_bases_share_writes() -> None:
    host, x = array(5, 4)
    y, wanted = x * 2, host * 2
    for array_ in (y, wanted):
        part = array_[1:4]
        array_ += 1
        part[:, 0] = -1
        part[1] *= part[0]
        array_[0] = array_[1]
        array_.T[2] = array_[:, 1]
        array_[...] = array_[::-1]
    np.testing.assert_array_equal(y.asnumpy(), wanted)
    np.testing.assert_array_equal(y[1:4].asnumpy(), wanted[1:4])


def test_a_copy_shares_nothing() -> None:
    host, x = array(6)
    y = x.copy()
    z = (x + 0).copy()
    x += 1
    y *= 2
    np.testing.assert_array_equal(x.asnumpy(), host + 1)
    np.testing.assert_array_equal(y.asnumpy(), host * 2)
    np.testing.assert_array_equal(z.asnumpy(), host)


def test_memory_that_a_kernel_writes_is_waited_for(queue: Any) -> None:
    host, y = array(SLOW, sycl_queue=queue)
    x = dp.empty_like(y)
    few = x[:10]
    dp.eval(few)
    for rounds in (1, 20):  # compiled, then slow
        dp.call_kernel_async(slowly_double, dp.Range(SLOW), (), x, y, rounds)
        found = [few + 1, few[3], few.sum(), few * few[::-1], few.copy()]
        wanted = host[:10] * 2
        for one, other in zip(
            found, [wanted + 1, wanted[3], wanted.sum(), wanted * wanted[::-1], wanted], strict=True
        ):
            np.testing.assert_allclose(one.asnumpy(), other)


def test_unwritten_memory_is_used_during_other_work(queue: Any) -> None:
    _, y = array(SLOW, sycl_queue=queue)
    x = dp.empty_like(y)
    dp.call_kernel(slowly_double, dp.Range(SLOW), x, y, 1)
    few = dp.ones(10, sycl_queue=queue)
    event = dp.call_kernel_async(slowly_double, dp.Range(SLOW), (), x, y, 100)
    is_done = event.done
    result = few + 1
    np.testing.assert_array_equal(result.asnumpy(), np.full(10, 2.0))
    assert is_done or not event.done
    event.wait()


def test_a_write_waits_for_kernels_that_read() -> None:
    host, y = array(SLOW)
    x = dp.empty_like(y)
    dp.call_kernel(slowly_double, dp.Range(SLOW), x, y, 1)
    few = y[-10:]
    dp.call_kernel_async(slowly_double, dp.Range(SLOW), (), x, y, 20)
    few[:] = -1
    few += 5
    np.testing.assert_allclose(x[-10:].asnumpy(), host[-10:] * 2)
    np.testing.assert_array_equal(y[-10:].asnumpy(), np.full(10, 4.0))


def test_overlapping_operands_are_read_before_the_write(seeming_busy: Any) -> None:
    host, x = array(30, 30)
    with seeming_busy():
        x[:, -1] = x[:, -2]
    host[:, -1] = host[:, -2]
    np.testing.assert_array_equal(x.asnumpy(), host)


def test_a_write_evaluates_pending_expressions_on_the_memory() -> None:
    host, x = array(100_000)
    few, pending = x[:10], x * 3
    few += 1
    few[5] = 0
    np.testing.assert_array_equal(pending.asnumpy(), host * 3)
    wanted = host[:10] + 1
    wanted[5] = 0
    np.testing.assert_array_equal(few.asnumpy(), wanted)


def test_others_work_on_shared_memory_is_seen() -> None:
    theirs = dpnp.arange(1000.0)
    ours = dp.asarray(theirs)
    for step in range(20):
        theirs += 1
        assert float(ours[3]) == 3 + step + 1
        assert float((ours + 1)[3]) == 3 + step + 2


def test_others_see_the_hosts_writes() -> None:
    _, x = array(1000)
    theirs = dpnp.asarray(x + 0)
    shared = dp.asarray(theirs)
    for step in range(20):
        shared[:] = step
        shared += 1
        assert float((theirs * 2)[7]) == 2 * (step + 1)


def test_nothing_warns() -> None:
    x = dp.asarray([0.0, -1.0, 1e300, np.nan])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (x / 0, dp.sqrt(x), x * x, dp.log(x), x % 0, x.astype("float32"), x.sum() / 0):
            y.asnumpy()
        x /= 0
        x[0] = x[1]
        x.astype("float32")[0] = 1e300
        dp.where(x > 0, x * 1e300, x)


@pytest.mark.parametrize("name", sorted(OPS))
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32", "c8"])
def test_eager_and_deferred_results_agree(name: str, dtype: str, seeming_busy: Any) -> None:
    op = OPS[name]
    values = np.array([0, 1, 2, 3, 5, 1, 7, 2]).astype(dtype)
    seconds: list[Any] = [[]]
    if op.arity == 2:
        real = dp.asarray(values.real.astype("float32"))
        seconds = [[each] for each in (dp.asarray(values[::-1]), real, 2, 0.5, True, dp.asarray(3))]

    def result(*operands: Any) -> Any:
        try:
            found = getattr(dp, name)(*operands).asnumpy()
        except (dp.exceptions.DparrayError, OverflowError) as error:
            return type(error), str(error)
        return found.dtype, found.shape, found.tobytes()

    for second in seconds:
        x = dp.asarray(values)
        at_once = result(x, *second)
        with seeming_busy():
            assert result(x, *second) == at_once


@pytest.mark.parametrize("name", ["iadd", "itruediv", "ifloordiv", "ipow", "imod", "iand"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("other", [2, 0.5, True, -1, "array", "column"])
def test_in_place_eager_and_deferred_results_agree(
    name: str, dtype: str, other: Any, seeming_busy: Any
) -> None:
    values = np.array([[0, 1, 2], [3, 5, 1]]).astype(dtype)

    def result() -> Any:
        x = dp.asarray(values)
        second = {"array": x + x, "column": x[:1, :1]}.get(other, other)
        try:
            getattr(operator, name)(x[:, 1:], second)
            getattr(operator, name)(x[0], second if not isinstance(second, dp.ndarray) else x[1])
        except (dp.exceptions.DparrayError, OverflowError) as error:
            return type(error), str(error), x.asnumpy().tobytes()
        return x.asnumpy().tobytes()

    at_once = result()
    with seeming_busy():
        assert result() == at_once


def test_errors_are_those_of_large_arrays(seeming_busy: Any) -> None:
    x = dp.asarray(np.arange(6).reshape(2, 3))
    small = x.astype("uint8")
    elsewhere = dp.ones(3, device=dp.Device("cpu").create_sub_devices(partition=1)[0])
    for wrong, kind in (
        (lambda: x + dp.ones(4), dp.ShapeError),
        (lambda: x + np.ones(3), dp.HostConversionError),
        (lambda: x + elsewhere, dp.ExecutionPlacementError),
        (lambda: x.__setitem__(0, elsewhere), dp.ExecutionPlacementError),
        (lambda: x.__iadd__(0.5), dp.DTypeError),
        (lambda: small + 1000, OverflowError),
        (lambda: small.__setitem__(0, 1000), OverflowError),
        (lambda: x.__setitem__(0, np.nan), dp.DTypeError),
        (lambda: x.__setitem__(0, 1j), dp.DTypeError),
        (lambda: x.__setitem__(0, dp.ones(4)), dp.ShapeError),
        (lambda: x[2], IndexError),
        (lambda: x[0, 0, 0], IndexError),
        (lambda: x - True, None),
        (lambda: (x > 1) - (x > 1), dp.DTypeError),
        (lambda: dp.where(x > 1, small, 1000), OverflowError),
        (lambda: x @ x, dp.ShapeError),
    ):
        if kind is None:
            wrong()
            continue
        with seeming_busy(), pytest.raises(kind) as large:
            wrong()
        with pytest.raises(kind) as at_once:
            wrong()
        assert str(at_once.value) == str(large.value)
        assert type(at_once.value) is type(large.value)
    np.testing.assert_array_equal(x.asnumpy(), np.arange(6).reshape(2, 3))


@immediate
def test_a_result_that_is_not_small_waits() -> None:
    x, y = dp.ones((8000, 1)), dp.ones((1, 8000))
    assert (x + y).is_pending
    assert dp.where(x > 0, x, y).is_pending
    assert (x * 2).is_only_on_host


def test_the_option_switches_it_off() -> None:
    with dp.config.override(host_tier=False):
        assert (dp.ones(3) + 1).is_pending


def test_empty_arrays_and_scalars() -> None:
    x = dp.ones((0, 3))
    np.testing.assert_array_equal((x + 1)[:, 1:].asnumpy(), np.ones((0, 2)))
    y = dp.ones((2, 3))[2:]
    y += 1
    y[:] = 3
    assert (y * 2).shape == (0, 3)
    zero = dp.asarray(2.0)
    assert float(zero * zero) == 4
    assert (zero * zero).shape == ()
    zero += 1
    zero[()] = zero * 2
    assert float(zero) == 6


def test_values_of_one_array_are_moved_to_memory_once_by_all_threads() -> None:
    for _ in range(50):
        y = dp.ones(100) + 1
        barrier = threading.Barrier(4)

        def write(place: int, y: Any = y, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            y[place::4] += place

        threads = [threading.Thread(target=write, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(y.asnumpy(), 2 + np.arange(100) % 4)


def test_threads_compute_eagerly_while_others_launch() -> None:
    stop = time.monotonic() + 2
    host, large = array(100_000)
    failures: list[Any] = []

    def launch() -> None:
        while time.monotonic() < stop:
            dp.eval(large * 2 + 1)

    def compute(seed: int) -> None:
        x = np.random.default_rng(seed).random(50)
        while time.monotonic() < stop and not failures:
            y = dp.asarray(x)
            z = (y + 1) * y
            z[3:] -= y[:-3]
            wanted = (x + 1) * x
            wanted[3:] -= x[:-3]
            if not np.array_equal(z.asnumpy(), wanted):
                failures.append(seed)

    threads = [threading.Thread(target=launch)]
    threads += [threading.Thread(target=compute, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert host.size == large.size


def test_small_new_arrays_are_created_by_the_host(queue: Any) -> None:
    place = {"sycl_queue": queue}
    host = np.arange(6.0).reshape(2, 3)
    made = {
        "asarray": (dp.asarray(host.T, **place), host.T),
        "asarray, list": (dp.asarray([[1, 2]], "int16", **place), np.array([[1, 2]], "int16")),
        "zeros": (dp.zeros((2, 3), **place), np.zeros((2, 3))),
        "full": (dp.full(3, 7, "uint8", **place), np.full(3, 7, "uint8")),
        "ones, shared": (dp.ones(4, usm_type="shared", **place), np.ones(4)),
    }
    for name, (x, wanted) in made.items():
        assert x.is_only_on_host, name
        assert x.queue == queue
        assert x.usm_type == ("shared" if "shared" in name else "device")
        assert x.strides == wanted.strides
        x += 1
        x[0] = x[-1]
        x[:1].block  # noqa: B018 - now it is in memory
        y = wanted.copy()
        y += 1
        y[0] = y[-1]
        np.testing.assert_array_equal(x.asnumpy(), y)
        assert x.dtype == y.dtype
    host[:] = -1
    assert (made["asarray"][0].asnumpy() >= 0).all()


def test_views_share_writes() -> None:
    host, x = array(4, 6)
    for view in (lambda a: a.T, lambda a: a.reshape(6, 4), lambda a: a.reshape((-1,)),
                 lambda a: a[:, None, 1], lambda a: a[-1], lambda a: a[1, 2:]):  # fmt: skip
        ours, theirs = x + 0, host + 0
        view(ours)[...] = 3
        view(theirs)[...] = 3
        np.testing.assert_array_equal(ours.asnumpy(), theirs)
    copied = x.T.reshape(-1)
    copied[...] = 0
    np.testing.assert_array_equal(x.asnumpy(), host)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin",
                                  "mean", "var", "std"])  # fmt: skip
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), ()])
def test_eager_and_deferred_reductions_agree(
    name: str, dtype: str, axis: Any, seeming_busy: Any
) -> None:
    x = dp.asarray(np.array([[3, 0, 2], [5, 1, 4]]).astype(dtype))

    def result(keepdims: bool) -> Any:
        try:
            found = getattr(dp, name)(x, axis=axis, keepdims=keepdims).asnumpy()
        except (dp.exceptions.DparrayError, TypeError) as error:
            return type(error), str(error)
        return found.dtype, found.shape, np.round(found.astype("complex64"), 3).tolist()

    for keepdims in (True, False):
        at_once = result(keepdims)
        with seeming_busy():
            assert result(keepdims) == at_once


@immediate
def test_where_of_small_arrays_that_are_large_together_waits() -> None:
    condition, rows, columns = dp.ones(1) > 0, dp.ones((5000, 1)), dp.ones((1, 5000))
    assert dp.where(condition, rows, columns).is_pending
    assert (rows + columns).is_pending
    assert dp.where(rows > 0, rows, 0.5).is_only_on_host


@immediate
def test_functions_of_python_numbers_are_computed_eagerly() -> None:
    assert dp.sqrt(2.0).is_only_on_host
    assert (dp.sqrt(2.0) * dp.ones(3)).is_only_on_host
    assert float(dp.add(1, 2)) == 3
    assert dp.maximum(1, 2.5).dtype == np.float64
