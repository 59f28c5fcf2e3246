"""Cache hits: the compiled module launches an expression that is one launch of a compiled kernel.

Values, order and waiting of the host are the same as without the module.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._array import fastpath
from dparray._driver.sycl import in_order
from dparray._evaluate import bound_plan, limits
from dparray._evaluate.plan import KernelLaunch
from tests.support import Waiting, held

if fastpath.module is None:
    pytest.skip("the fast path is not compiled", allow_module_level=True)

COUNT = 40_000

EXPRESSIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a chain": lambda x, y, s: x * y + x - y * s,
    "the same twice": lambda x, y, s: x * s + x,
    "slices": lambda x, y, s: s * (x[1:-1] + x[:-2] + y[2:]),
    "a square": lambda x, y, s: (x - y) ** 2 + s,
    "a sum": lambda x, y, s: (x * s + y).sum(),
    "a sum of memory": lambda x, y, s: x.sum(),
    "sums of rows": lambda x, y, s: (x.reshape(200, 200) * s).sum(axis=1),
}


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record for each cached launch whether it could be submitted, from now on."""
    found: list[bool] = []
    launch = bound_plan.launch_bound

    def noted(*arguments: Any) -> bool:
        found.append(launch(*arguments))
        return found[-1]

    monkeypatch.setattr(bound_plan, "launch_bound", noted)
    # In-order queues of other files are idle.
    monkeypatch.setattr(in_order, "_has_in_order_queue", False)
    bound_plan.forget()
    return found


def operands(queue: Any, dtype: str, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    generator = np.random.default_rng(seed)
    a, b = (generator.uniform(0.5, 1.5, COUNT).astype(dtype) for _ in range(2))
    return a, b, dp.asarray(a, sycl_queue=queue), dp.asarray(b, sycl_queue=queue)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_values_are_those_of_new_arrays_and_numbers(
    queue: Any, fused: None, launches: list[bool], name: str, dtype: str
) -> None:
    compute = EXPRESSIONS[name]
    for turn in range(4):
        a, b, x, y = operands(queue, dtype, turn)
        for scalar in (0.5, 3, -2.25, 1):
            made = compute(x, y, scalar)
            assert made.is_pending
            dp.eval(made)
            np.testing.assert_allclose(
                made.asnumpy(), compute(a, b, a.dtype.type(scalar)), rtol=2e-5
            )
    assert launches
    assert all(launches)


def test_other_numbers_take_the_general_way(fused: None, launches: list[bool]) -> None:
    a, _, x, _ = operands(None, "float64")
    for _ in range(3):
        (x * 2 + x).asnumpy()
    assert launches == [True] * len(launches) != []
    del launches[:]
    found = dp.add(dp.multiply(x, True), x)
    np.testing.assert_allclose(found.asnumpy(), a + a)
    with pytest.raises(OverflowError):
        dp.eval(x * 10**400 + x)


def test_changed_options_drop_the_cached_plans(
    fused: None, launches: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, x, y = operands(None, "float32")
    for _ in range(3):
        (x * y + x).asnumpy()
    assert any(bound.launch for bound in bound_plan.plans.values())
    assert launches
    for option, value in (("fp_contract", True), ("tuning", {"cpu": {"elements": 4}})):
        with monkeypatch.context() as patch:
            patch.setattr(dp.config, option, value)
            assert not bound_plan.plans
            np.testing.assert_allclose((x * y + x).asnumpy(), a * b + a, rtol=1e-6)
        assert not bound_plan.plans
    with dp.config.override(fused_tier=False), limits.force("host"):
        del launches[:]
        np.testing.assert_allclose((x * y + x).asnumpy(), a * b + a, rtol=1e-6)
        assert not launches


def test_a_launch_follows_the_writer_of_its_operands(
    queue: Any, fused: None, launches: list[bool]
) -> None:
    a, _, x, y = operands(queue, "float64")
    for _ in range(2):
        dp.synchronize(x * 2 + x)
    before = float(y[0])
    with held(queue, x, y):  # the kernel writes the first element of x when it is released
        found = x * 2 + x
        dp.eval(found)
        assert not found.event.done
    assert float(found[0]) == 3 * (before + 1)
    np.testing.assert_allclose(found.asnumpy()[1:], 3 * a[1:])
    assert launches[-1]


def test_the_host_waits_for_readers_before_it_writes(
    queue: Any, fused: None, launches: list[bool]
) -> None:
    a, b, x, y = operands(queue, "float64")
    other = dp.asarray(a, sycl_queue=queue)
    for _ in range(2):
        dp.synchronize(x * y + x)
    with held(queue, other, other):
        found = x * y + x
        dp.eval(found)  # after the kernel that is held
        assert launches[-1]
        assert float(x[5]) == a[5]  # the kernel only reads it
        writer = Waiting(lambda: x.__setitem__(7, 100.0))
    writer.result()
    np.testing.assert_allclose(found.asnumpy(), a * b + a)
    assert float(x[7]) == 100


def test_memory_of_another_library_takes_the_general_way(fused: None, launches: list[bool]) -> None:
    dpnp = pytest.importorskip("dpnp")
    a, _, x, _ = operands(None, "float64")
    for _ in range(3):
        (x * 2 + x).asnumpy()
    theirs = dp.asarray(dpnp.asarray(a))
    del launches[:]
    np.testing.assert_allclose((theirs * 2 + theirs).asnumpy(), 3 * a)
    assert not any(launches)


def test_threads_have_counters_of_their_own(fused: None) -> None:
    a, b, x, y = operands(None, "float64")
    dp.eval((x * 0.5 + y).sum())
    found: list[Any] = []

    def run() -> None:
        found.extend(float((x * 0.5 + y).sum()) for _ in range(30))
        found.extend(float((x * y + x)[17]) / (a[17] * b[17] + a[17]) for _ in range(30))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = (a * 0.5 + b).sum()
    assert len(found) == 240
    assert all(np.isclose(each, wanted) or np.isclose(each, 1) for each in found)


def test_the_thread_that_bound_a_launch_keeps_it(fused: None, launches: list[bool]) -> None:
    a, _, x, _ = operands(None, "float64")
    for _ in range(3):
        dp.eval((x * 0.5).sum())
    del launches[:]
    other = threading.Thread(target=lambda: dp.eval((x * 0.5).sum()))
    other.start()
    other.join()
    assert np.isclose(float((x * 0.5).sum()), (a * 0.5).sum())
    assert launches == [False, True]


def test_pointers_of_a_launch_stay_valid(
    fused: None, launches: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A concurrent first launch of another thread may replace the numbers."""
    make, noted = bound_plan.make_launch, []
    assert make is not None

    def seen(spec: Any) -> Any:
        noted.append(spec[0])
        return make(spec)

    monkeypatch.setattr(bound_plan, "make_launch", seen)
    _, _, x, y = operands(None, "float64")
    dp.eval(x * 0.5 + y)
    dp.eval((x * 0.5 + y).sum())
    for kept in noted:
        (launch,) = (each for each in kept if isinstance(each, KernelLaunch))
        assert any(each is launch.packed for each in kept)
    assert noted


def test_values_that_others_hold_are_stored(fused: None) -> None:
    a, b, x, y = operands(None, "float64")
    for _ in range(3):
        inner = dp.exp(x) * y
        total = (inner + 1).sum()
        np.testing.assert_allclose(float(total), (np.exp(a) * b + 1).sum())
        np.testing.assert_allclose(inner.asnumpy(), np.exp(a) * b, rtol=1e-6)


def test_queues_in_order_end_it() -> None:
    script = """
import dpctl, numpy as np
import dparray as dp
from dparray._evaluate import bound_plan, limits
with limits.force("fused"):
    x = dp.asarray(np.ones(40_000))
    for _ in range(3):
        (x * 2 + x).asnumpy()
    assert any(bound.launch for bound in bound_plan.plans.values())
    y = dp.asarray(np.ones(40_000), sycl_queue=dpctl.SyclQueue(property="in_order"))
    for _ in range(3):
        assert ((y * 2 + y).asnumpy() == 3).all()
        assert ((x * 2 + x).asnumpy() == 3).all()
    assert not any(bound.launch for bound in bound_plan.plans.values())
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_reductions_are_recorded_as_by_python(fused: None) -> None:
    for dtype in ("float32", "float64", "int32"):
        _, _, x, y = operands(None, dtype)
        for array in (x, x * y, x.reshape(200, 200), x.reshape(200, 200).T, x[::2]):
            ours = dp.sum(array)
            theirs = dp.sum(array, dtype=ours.dtype)  # takes the general way
            assert (ours.shape, ours.size) == (theirs.shape, theirs.size) == ((), 1)
            first, second = ours._node, theirs._node
            for part in ("op", "signature", "shape", "size", "axes", "usm_type", "cost", "leaves"):
                assert getattr(first, part) == getattr(second, part), part
            np.testing.assert_allclose(float(ours), float(theirs), rtol=1e-6)
    empty = dp.asarray(np.ones((0, 3)))
    assert float(dp.sum(empty)) == 0
