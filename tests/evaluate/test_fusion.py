"""Fusion: the number of kernels, compilations, memory and results."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dparray as dp
from dparray._evaluate import limits
from tests.support import counted, examples, forced, same, values

LARGE = 1 << 18
EXAMPLES = examples(15)


# -- compilations -------------------------------------------------------------------------------


def test_scalars_and_shapes_that_change_compile_nothing_new(fused: None) -> None:
    a = dp.asarray(values(4000))
    grid = dp.asarray(values((50, 80)))
    with counted() as events:
        for step in range(10_000):
            n = 1000 + step % 3000
            y = a[:n] * (0.5 + step) + step
            if step % 2:
                y = grid[: 2 + step % 40] * float(step) - 1.0
            dp.eval(y)
    assert events["compile"] <= 5
    assert events["launch"] == 10_000
    same(y, (grid.asnumpy()[: 2 + step % 40] * np.float32(step) - np.float32(1)))


def test_a_structure_met_on_little_data_is_not_compiled() -> None:
    a = dp.asarray(values(limits.host_elements + 1))
    with counted() as events:
        y = dp.tanh(a) * a - dp.sinh(a)
        dp.eval(y)
        dp.eval(dp.cosh(y[:10]) * 2)
    assert events["compile"] == 0


@pytest.mark.usefixtures("tests_options")
def test_a_structure_that_comes_back_is_compiled(new_cache: None) -> None:
    a = dp.asarray(values(limits.COMPILE_ELEMENTS - 1))
    with counted() as events:
        for _ in range(2 + limits.COMPILE_TOTAL_ELEMENTS // a.size):
            dp.eval(dp.asinh(a) * a - dp.atan(a))
    assert events["compile"] == 1
    assert 1 <= events["launch"] <= 3


def test_a_structure_of_few_elements_is_compiled_when_it_comes_back_often(new_cache: None) -> None:
    a = dp.asarray(values(10))
    often = limits.COMPILE_TOTAL_ELEMENTS // limits.MIN_CALL_ELEMENTS
    with dp.config.override(lazy=False, host_tier=False), counted() as events:
        for _ in range(often + 1):
            dp.atan2(a, a)
    assert events["compile"] == 1
    assert 1 <= events["launch"] <= 2


@pytest.mark.usefixtures("tests_options")
def test_an_expression_is_one_launch() -> None:
    a, b = dp.asarray(values(LARGE)), dp.asarray(values(LARGE, seed=1))
    with counted() as events:
        y = dp.where(a > b, dp.sqrt(abs(a * b)), dp.exp(-a)) + a.astype("float64") * 2
        dp.eval(y)
    assert events["launch"] == 1
    x, z = a.asnumpy(), b.asnumpy()
    same(y, np.where(x > z, np.sqrt(abs(x * z)), np.exp(-x)) + x.astype("float64") * 2)


def test_common_parts_are_computed_once(fused: None) -> None:
    a = dp.asarray(values(100))
    root = dp.sqrt(abs(a))
    source = dp.explain((root + 1) * (dp.sqrt(abs(a)) + 2)).source
    assert source.count("math.sqrt") == 1


# -- several outputs, and values needed twice ---------------------------------------------------


@pytest.mark.usefixtures("tests_options")
def test_results_asked_for_together_share_a_kernel() -> None:
    a, b = dp.asarray(values(LARGE)), dp.asarray(values(LARGE, seed=1))
    x, y = a * b + 1, a * b - 1
    with counted() as events:
        dp.eval(x, y)
    assert events["launch"] == 1
    same(x, a.asnumpy() * b.asnumpy() + 1)
    same(y, a.asnumpy() * b.asnumpy() - 1)


@pytest.mark.usefixtures("tests_options")
def test_a_costly_value_that_is_held_is_stored_with_its_user() -> None:
    a = dp.asarray(values(LARGE))
    costly = dp.exp(dp.sin(a) * 3)
    with counted() as events:
        dp.eval(costly + 1)
        assert not costly.is_pending
        dp.eval(costly * 2)
    assert events["launch"] == 2


@pytest.mark.usefixtures("tests_options")
def test_a_cheap_value_that_is_held_is_not_stored() -> None:
    a = dp.asarray(values(LARGE))
    cheap = a + 1
    dp.eval(cheap * 2)
    assert cheap.is_pending


def test_results_of_different_shapes_and_queues_are_asked_for_together(queue: Any) -> None:
    a = dp.asarray(values(LARGE), sycl_queue=queue)
    b = dp.asarray(values((3, 4)))
    x, y, z = a + 1, b * 2, a[:100] - 1
    dp.eval(x, y, z)
    assert [each.is_pending for each in (x, y, z)] == [False] * 3
    same(x, a.asnumpy() + 1)
    same(y, b.asnumpy() * 2)
    same(z, a.asnumpy()[:100] - 1)


# -- memory -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tests_options")
def test_a_chain_holds_its_inputs_its_result_and_at_most_one_temporary() -> None:
    a, b = dp.asarray(values(LARGE)), dp.asarray(values(LARGE, seed=1))
    dp.synchronize()
    gc.collect()
    dp.memory.release()
    dp.memory.reset_peak()
    before = dp.memory.stats().in_use
    y = a
    for _ in range(10):
        y = y * b + a
    dp.eval(y)
    dp.synchronize()
    assert dp.memory.stats().peak - before <= 2 * a.nbytes


def test_a_long_loop_holds_neither_graph_nor_memory() -> None:
    a = dp.asarray(values(100))
    gc.collect()
    before = dp.memory.stats().in_use
    x, wanted = a * 1, a.asnumpy()
    for step in range(20_000):
        x = x * 0.999 + a
        assert x._node.cost <= limits.MAX_COST
        if step % 1000 == 0:
            assert dp.memory.stats().in_use - before < 100_000
    for _ in range(20_000):
        wanted = wanted * np.float32(0.999) + a.asnumpy()
    same(x, wanted, 1e-4)


def test_an_expression_of_many_arrays_is_split(fused: None) -> None:
    arrays = [values(300, seed=seed) for seed in range(60)]
    total, wanted = dp.zeros(300, dtype="float32"), np.zeros(300, np.float32)
    for array in arrays:
        total = total + dp.asarray(array)
        wanted = wanted + array
    same(total, wanted)


# -- reductions ---------------------------------------------------------------------------------

#: Shape and axis, chosen so that each form of the kernel occurs: lanes, columns, items, unrolled,
#: in one and in several passes, over separated groups of axes.
CASES: list[tuple[tuple[int, ...], Any]] = [
    ((1,), None),
    ((17,), None),
    ((5000,), 0),
    ((70_001,), None),
    ((300, 400), None),
    ((300, 400), 0),
    ((300, 400), 1),
    ((3, 2000), 0),
    ((2000, 3), 1),
    ((2000, 3), 0),
    ((7, 1000), 1),
    ((1000, 20), 1),
    ((4, 300, 5), 1),
    ((4, 30, 50), (0, 2)),
    ((40, 3, 50), (0, 1)),
    ((4, 30, 50), (1, 2)),
    ((2, 3, 4, 500), (1, 3)),
    ((1, 600), 0),
]
VIEWS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "reversed": lambda x: x[::-1],
    "every second": lambda x: x[..., ::2],
    "transposed": lambda x: x.T,
}
PRODUCERS: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda xp, x: x,
    "square": lambda xp, x: x * x,
    "shifted": lambda xp, x: x + x[:1],
    "converted": lambda xp, x: x.astype("float64") * 0.5,
    "broadcast": lambda xp, x: x + xp.ones(x.shape[-1:], dtype="float32"),
    "compared": lambda xp, x: x > 0,
}
DTYPES = ["float32", "float64", "int32", "int8", "uint8", "uint64", "bool"]


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    name=st.sampled_from(["sum", "prod", "max", "min", "all", "any", "mean", "var"]),
    case=st.sampled_from(CASES),
    view=st.sampled_from(sorted(VIEWS)),
    producer=st.sampled_from(sorted(PRODUCERS)),
    dtype=st.sampled_from(DTYPES),
    keepdims=st.booleans(),
)
def test_reductions_with_their_producers(
    name: str, case: Any, view: str, producer: str, dtype: str, keepdims: bool
) -> None:
    shape, axis = case
    if axis is not None and view == "transposed":
        axis = tuple(len(shape) - 1 - one for one in np.atleast_1d(axis))
    host = values(shape, dtype)
    if name == "prod":
        host = np.where(host > 1, 1, host).astype(dtype)

    def reduced(xp: Any, x: Any) -> Any:
        x = PRODUCERS[producer](xp, VIEWS[view](x))
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    with limits.force("fused"):
        same(reduced(dp, dp.asarray(host)), reduced(np, host), 2e-4)


@pytest.mark.parametrize("position", [0, 63, 64, 4999, 69_999])
def test_nan_anywhere_is_the_largest_and_the_smallest(fused: None, position: int) -> None:
    host = values(70_000)
    host[position] = np.nan
    x = dp.asarray(host)
    assert np.isnan(float(x.max()))
    assert np.isnan(float(x.min()))
    assert np.isnan(float(x.sum()))


@pytest.mark.usefixtures("tests_options")
def test_a_reduction_fuses_with_its_operand() -> None:
    a, b = dp.asarray(values(LARGE)), dp.asarray(values(LARGE, seed=1))
    with counted() as events:
        total = dp.sum((a - b) ** 2)
        assert events["launch"] == 0
        dp.eval(total)
    assert events["launch fused_subtract_square_sum"] == 1
    assert not any(name.endswith("fused_subtract") for name in events)
    same(total, np.sum((a.asnumpy() - b.asnumpy()) ** 2), 1e-4)


# -- writes -------------------------------------------------------------------------------------

EXECUTORS = ["host", "fused", "library"]


@pytest.fixture(params=EXECUTORS)
def chosen(request: pytest.FixtureRequest) -> Iterator[str]:
    with forced(request.param):
        yield str(request.param)


def test_a_kernel_writes_memory_that_a_pending_expression_reads(chosen: str) -> None:
    @dp.kernel
    def negate(item: Any, x: Any) -> None:
        i = item.get_id(0)
        x[i] = -x[i]

    host = values(64)
    x = dp.asarray(host)
    before = x + 1
    dp.call_kernel(negate, dp.Range(64), x)
    same(before, host + 1)
    same(x, -host)


def test_a_pending_array_is_the_argument_of_a_kernel(chosen: str) -> None:
    @dp.kernel
    def double(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = x[i] * 2

    host = values(64)
    x, out = dp.asarray(host) + 1, dp.empty(64, dtype="float32")
    dp.call_kernel(double, dp.Range(64), x, out)
    same(out, (host + 1) * 2)


def test_in_place_on_pending_arrays(chosen: str) -> None:
    host = values(100)
    x = dp.asarray(host) * 2
    held = x + 1
    view = x[10:20]
    x += held
    view *= 3
    wanted = host * 2
    kept = wanted + 1
    wanted = wanted + kept
    wanted[10:20] *= 3
    same(x, wanted)
    same(view, wanted[10:20])
    same(held, kept)


def test_views_of_views_share_writes(chosen: str) -> None:
    host = values((12, 10))
    x, wanted = dp.asarray(host), host.copy()
    for array in (x, wanted):
        inner = array[2:10][::-1][:, ::2]
        inner[1:3] += inner[3:5]
        array.T[4] = 7
    same(x, wanted)


def test_an_assignment_of_overlapping_slices_reads_the_old_values(chosen: str) -> None:
    host = values(50)
    x, wanted = dp.asarray(host), host.copy()
    for array in (x, wanted):
        array[1:-1] = (array[:-2] + array[2:]) / 2
        array[:-1] = array[1:]
        array[...] = array[::-1]
    same(x, wanted)


def test_a_value_assigned_to_its_own_operand_does_not_change(chosen: str) -> None:
    host = values(50)
    x = dp.asarray(host)
    y = x + 1
    x[...] = y
    x += 5
    same(y, host + 1)
    same(x, host + 6)


def test_out_takes_the_result_and_its_old_readers_see_the_old(chosen: str) -> None:
    host = values(40)
    x, out = dp.asarray(host), dp.asarray(host)
    reader = out * 2
    returned = dp.add(x, 1, out=out)
    assert returned is out
    dp.multiply(out, x, out=x)
    same(reader, host * 2)
    same(out, host + 1)
    same(x, (host + 1) * host)


def test_out_of_another_dtype_and_layout(chosen: str) -> None:
    host = values((4, 6))
    out = dp.zeros((6, 4, 2), dtype="float64")
    dp.add(dp.asarray(host), 1, out=out[:, :, 1].T)
    assert not out.asnumpy()[:, :, 0].any()
    same(out[:, :, 1], (host + 1).T.astype("float64"))


def test_a_broadcast_value_is_written_into_rows(chosen: str) -> None:
    host = values((5, 8))
    x, wanted = dp.asarray(host), host.copy()
    for array in (x, wanted):
        array[1:] = array[0] * 2 + 1
        array[:, 3] = 0
    same(x, wanted)


def test_pending_arrays_across_threads() -> None:
    host = values(LARGE)
    shared = dp.asarray(host) * 2 + 1
    results: list[Any] = [None] * 8

    def work(place: int) -> None:
        results[place] = (shared * place).asnumpy()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, result in enumerate(results):
        np.testing.assert_allclose(result, (host * 2 + 1) * place, rtol=1e-6)


def test_expressions_run_on_each_queue(queue: Any) -> None:
    host = values(LARGE)
    x = dp.asarray(host, sycl_queue=queue)
    y = dp.sqrt(x * x + 1)
    assert y.queue == queue
    same(y, np.sqrt(host * host + 1))
    same(y.sum(), np.sqrt(host * host + 1).sum(), 1e-4)


def test_a_loop_over_held_values_computes_and_compiles_each_step_once(fused: None) -> None:
    """The state of a loop is stored step by step, whether it is written, reduced or only kept."""
    host = values(2000)
    x, total = dp.asarray(host) * 1, dp.zeros(2000, dtype="float32")
    wanted, wanted_total = host * 1, np.zeros(2000, np.float32)
    with counted() as events:
        for _ in range(30):
            x = dp.sin(x) * 2 + dp.cos(x)
            total += x
            dp.eval(dp.max(x - 1))
        dp.eval(x)
    for _ in range(30):
        wanted = np.sin(wanted) * 2 + np.cos(wanted)
        wanted_total += wanted
    assert events["compile"] <= 6
    same(total, wanted_total, 1e-2)


def test_an_expression_met_again_is_computed_of_the_values_and_scalars_of_now() -> None:
    host = np.linspace(1, 2, 1 << 17).astype("float32")
    x = dp.asarray(host)
    for step in range(4):
        inner = x * (step + 2)
        y = dp.sqrt(inner + 1) - x[::-1]
        dp.eval(y)
        wanted = np.sqrt(host * np.float32(step + 2) + 1) - host[::-1]
        np.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-5)
        np.testing.assert_allclose(inner.asnumpy(), host * np.float32(step + 2), rtol=1e-6)
        x += 1
        host += 1
    with dp.config.override(fp_contract=False):
        z = x * 2 + 1
        dp.eval(z)
        np.testing.assert_array_equal(z.asnumpy(), host * 2 + 1)


@pytest.mark.parametrize("step", [-2, -1, 2, 3, 4, 5])
def test_steps_of_the_innermost_axis(step):
    host = np.random.default_rng(0).integers(0, 100, (40, 3000)).astype("f4")
    x = dp.asarray(host)
    some, expected = x[:, ::step], host[:, ::step]
    np.testing.assert_array_equal((some * 2 + 1).asnumpy(), expected * 2 + 1)
    np.testing.assert_array_equal((some[0] * 2).asnumpy(), expected[0] * 2)
    for axis in (None, 0, 1):
        np.testing.assert_array_equal((some + 1).sum(axis=axis).asnumpy(), (expected + 1).sum(axis))
    y, written = dp.zeros_like(x), np.zeros_like(host)
    y[:, ::step] = some + 3
    written[:, ::step] = expected + 3
    np.testing.assert_array_equal(y.asnumpy(), written)
    z = dp.asarray(host + 1j)
    np.testing.assert_array_equal((z[:, ::step] * 2).asnumpy(), (host + 1j)[:, ::step] * 2)
    np.testing.assert_array_equal((z.real[:, ::step] + 1).asnumpy(), expected + 1)
