"""Under a policy, expressions on several queues have right results, at the recorded placements."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import background, deferred_placement
from dparray._scheduling import executor, heft
from dparray._scheduling.problem import Copy, NoRoom, Step
from tests.scheduling.graphs import MB, check, machine, random_problem
from tests.support import force, values

ROOT = Path(__file__).resolve().parents[2]
SHAPE = (400, 500)


@pytest.fixture(params=["queues", "sub-devices"])
def pair(request: pytest.FixtureRequest) -> list[dp.Device]:
    """Return two placements."""
    if request.param == "queues":
        return [dp.Device(dpctl.SyclQueue("cpu")) for _ in range(2)]
    return dp.Device("cpu").create_sub_devices(1)[:2]


@pytest.fixture(autouse=True)
def _no_records() -> Iterator[None]:
    dp.placement.forget()
    yield
    assert not deferred_placement.nodes


def _arrays(
    pair: list[dp.Device], dtype: str = "float32"
) -> tuple[list[np.ndarray], list[dp.ndarray]]:
    host = [values(SHAPE, dtype, seed) for seed in range(2)]
    return host, [dp.asarray(x, device=place) for x, place in zip(host, pair, strict=True)]


def _in_turn() -> object:
    """Return a policy that uses the devices in turn."""
    count = iter(range(1 << 20))
    return lambda step: step.devices[next(count) % len(step.devices)]


@pytest.mark.process
@pytest.mark.slow
def test_the_option_alone_sets_the_policy() -> None:
    text = """
import dpctl, dparray as dp
a, b = [dp.asarray([1.0, x], device=dpctl.SyclQueue("cpu")) for x in (2.0, 4.0)]
print(dp.concatenate([a, b]).tolist(), (a + b).tolist())
print(len(dp.placement.trace()) > 0)
"""
    run = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        env=os.environ | {"DPARRAY_PLACEMENT": "fastest", "PYTHONPATH": str(ROOT)},
    )
    assert run.stdout == "[1.0, 2.0, 1.0, 4.0] [2.0, 6.0]\nTrue\n", run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fastest", "in turn"])
def test_operands_of_several_queues_are_no_error(pair: list[dp.Device], policy: str) -> None:
    host, (a, b) = _arrays(pair)
    chosen = policy if policy == "fastest" else _in_turn()
    with dp.placement(chosen):  # type: ignore[arg-type]
        scaled = dp.sqrt(abs(a)) * 2 + dp.exp(b)
        result = (scaled - scaled.mean(axis=1, keepdims=True)).sum(axis=0)
    wanted = np.sqrt(abs(host[0])) * 2 + np.exp(host[1])
    wanted = (wanted - wanted.mean(axis=1, keepdims=True)).sum(axis=0)
    assert result.device == pair[0]
    np.testing.assert_allclose(result.asnumpy(), wanted, atol=1e-3)
    record = dp.placement.trace()[-1]
    assert len(record.steps) >= 1
    assert record.seconds > 0
    assert result.device == pair[0]


def test_without_a_policy_they_are_an_error(pair: list[dp.Device]) -> None:
    _, (a, b) = _arrays(pair)
    with pytest.raises(dp.ExecutionPlacementError, match="Move them"):
        a + b
    with dp.placement("fastest"), dp.placement("follow"), pytest.raises(dp.ExecutionPlacementError):
        a + b


@pytest.mark.slow
def test_expressions_recorded_under_a_policy_are_evaluated_by_it(pair: list[dp.Device]) -> None:
    host, (a, b) = _arrays(pair)
    with dp.placement("fastest"):
        pending = a + b
    doubled = pending[10:20] * 2
    np.testing.assert_array_equal(doubled.asnumpy(), (host[0] + host[1])[10:20] * 2)
    np.testing.assert_array_equal(pending.asnumpy(), host[0] + host[1])


def test_a_view_of_a_pending_value_outlives_it(pair: list[dp.Device]) -> None:
    host, (a, b) = _arrays(pair)
    with dp.placement("fastest"):
        pending = a * b
    view = pending[::3, 5:]
    del pending
    np.testing.assert_array_equal(view.asnumpy(), (host[0] * host[1])[::3, 5:])


def test_results_are_written_to_arrays_of_either_queue(pair: list[dp.Device]) -> None:
    host, (a, b) = _arrays(pair)
    with dp.placement("fastest"):
        target = dp.zeros(SHAPE, dtype="float32", device=pair[1])
        dp.add(a, b, out=target)
        np.testing.assert_array_equal(target.asnumpy(), host[0] + host[1])
        b += a
        np.testing.assert_array_equal(b.asnumpy(), host[0] + host[1])
        b[...] = a
        np.testing.assert_array_equal(b.asnumpy(), host[0])
        b[2:5] = a[7:10] * 2
        np.testing.assert_array_equal(b.asnumpy()[2:5], host[0][7:10] * 2)
    assert target.device == b.device == pair[1]


def test_axes_keep_their_order_in_memory(pair: list[dp.Device]) -> None:
    host, (a, b) = _arrays(pair)
    with dp.placement(lambda step: pair[1], devices=pair):
        result = a.T + b.T
    assert result.strides == (4, 4 * SHAPE[1])
    np.testing.assert_array_equal(result.asnumpy(), host[0].T + host[1].T)
    assert result.strides == (4, 4 * SHAPE[1])


def test_several_results_of_other_shapes_are_planned_together(pair: list[dp.Device]) -> None:
    host, (a, b) = _arrays(pair)
    with dp.placement("fastest"):
        whole, total = a * 2 + b, (a - b).sum()
        dp.eval(whole, total)
    assert len(dp.placement.trace()) == 1
    np.testing.assert_allclose(whole.asnumpy(), host[0] * 2 + host[1], rtol=1e-6)
    np.testing.assert_allclose(float(total), (host[0] - host[1]).sum(), rtol=1e-3)


@pytest.mark.usefixtures("tests_options")
def test_results_go_where_the_policy_says(pair: list[dp.Device]) -> None:
    host, (a, b) = _arrays(pair)
    with dp.placement("fastest", result=pair[1]):
        result = a + b
        total = a.sum()
    assert result.device == total.device == pair[1]
    np.testing.assert_array_equal(result.asnumpy(), host[0] + host[1])
    np.testing.assert_allclose(float(total), host[0].sum(), rtol=1e-3)


@pytest.mark.usefixtures("tests_options")
def test_a_cached_expression_is_not_planned_again(pair: list[dp.Device]) -> None:
    _, (a, b) = _arrays(pair)
    for _ in range(3):
        with dp.placement("fastest"):
            (a * 3 + b).asnumpy()
    first, *others = [record.planning for record in dp.placement.trace()]
    assert first > 0
    assert others == [0.0, 0.0]


@pytest.mark.usefixtures("tests_options")
def test_lazy_off_and_where_and_clip(pair: list[dp.Device]) -> None:
    host, (a, b) = _arrays(pair)
    with dp.placement("fastest"), dp.config.override(lazy=False):
        found = [dp.where(a > 0, a, b), dp.clip(a, b, 0.5), a + b]
    wanted = [np.where(host[0] > 0, *host), np.clip(host[0], host[1], 0.5), host[0] + host[1]]
    for one, other in zip(found, wanted, strict=True):
        assert not one.is_pending
        np.testing.assert_array_equal(one.asnumpy(), other)


def test_a_policy_sees_each_step_and_must_give_a_device_of_those(pair: list[dp.Device]) -> None:
    _, (a, b) = _arrays(pair)
    seen: list[dp.PolicyStep] = []

    def second(step: dp.PolicyStep) -> dp.Device:
        seen.append(step)
        return pair[1]

    with dp.placement(second, devices=pair):
        (a + b).asnumpy()
    (step,) = seen
    assert (step.number, step.operations, step.shape) == (1, ("add",), SHAPE)
    assert step.dtype == "float32"
    assert step.nbytes_read == 2 * step.nbytes_written == 2 * a.nbytes
    assert step.operands == step.devices == tuple(pair)
    assert [each.device for each in dp.placement.trace()[-1].steps] == [
        str(pair[1]).removesuffix(", default queue")
    ]
    with dp.placement(lambda step: dpctl.SyclQueue("cpu"), devices=pair):
        pending = a + b
    with pytest.raises(dp.DeviceError, match=r"chose .* for step 1, which is not one of"):
        pending.asnumpy()
    deferred_placement.nodes.clear()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + 1,
        lambda x: x @ x,
        dp.sin,
        dp.sum,
        dp.mean,
        lambda x: x[1:] - x[:-1],
        lambda x: x.astype("float32"),
    ],
)
def test_a_policy_is_asked_about_small_steps(pair: list[dp.Device], call: Any) -> None:
    asked = []

    def last(step: dp.PolicyStep) -> dp.Device:
        asked.append(step)
        return step.devices[-1]

    x = dp.ones((3, 3), device=pair[0])
    with dp.placement(last, devices=pair):
        result = call(x)
        dp.eval(result)
    assert len(asked) == 1
    assert result.device == pair[0]


SUMS = """function (A[N, M], B[M]) -> (O, S) {
    O = A + B; S[i: N] = +(A[i, j] * B[j]), j < M; }"""


@pytest.mark.parametrize("policy", ["fastest", "in turn"])
def test_a_tile_function_brings_its_inputs_together(pair: list[dp.Device], policy: str) -> None:
    host, (a, b) = _arrays(pair)
    add = dp.tilelang.function(SUMS)
    into = [
        dp.zeros(SHAPE, "float32", device=pair[1]),
        dp.zeros(SHAPE[:1], "float32", device=pair[1]),
    ]
    with dp.placement(policy if policy == "fastest" else _in_turn()):  # type: ignore[arg-type]
        found = add(a, b[0])
        named = add(B=b[0], A=a)
        add(a, b[0], out={"O": into[0], "S": into[1]})
    wanted = host[0] + host[1][0], host[0] @ host[1][0]
    for results in (found, named, into):
        for result, expected in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-3, atol=1e-4)
    assert found[0].device == pair[0]
    assert dp.placement.trace()
    with pytest.raises(dp.ExecutionPlacementError, match=r"B = B\.to_device"):
        add(a, b[0])


def test_plaidml_runs_tensors_of_several_devices_under_a_policy(pair: list[dp.Device]) -> None:
    import dparray.plaidml as plaidml

    context = plaidml.Context()
    devices = [plaidml.Device(context, place) for place in pair]
    shape = plaidml.Shape(context, plaidml.DType.FLOAT32, 5)
    tensors = [plaidml.Tensor(devices[n], shape) for n in (0, 1, 1)]
    for tensor, number in zip(tensors[:2], (2.0, 3.0), strict=True):
        tensor.array[:] = number
    add = plaidml.Function("function (A, B) -> (O) { O = A * B; }")
    given = {"A": tensors[0], "B": tensors[1]}, {"O": tensors[2]}
    with pytest.raises(plaidml.exceptions.PlaidMLError, match=r"dp\.placement"):
        plaidml.run(context, add, *given)
    with dp.placement("fastest"):
        plaidml.run(context, add, *given)
    assert tensors[2].array.tolist() == [6.0] * 5


def test_an_invalid_policy_raises() -> None:
    with pytest.raises(dp.ArgumentError, match=r"policy must be .* got 'best'"):
        dp.placement("best")
    with pytest.raises(ValueError, match="placement"):
        dp.config.placement = "best"
    with pytest.raises(dp.DeviceError):
        dp.placement("fastest", devices=["no such device"])


def test_the_option_is_the_policy_of_the_program(pair: list[dp.Device]) -> None:
    host, (a, b) = _arrays(pair)
    with dp.config.override(placement="fastest"):
        assert dp.placement.policy == "fastest"
        np.testing.assert_array_equal((a + b).asnumpy(), host[0] + host[1])
    assert dp.placement.policy == "follow"


def test_matrix_products_are_steps(pair: list[dp.Device]) -> None:
    host = [values((200, 200), "float32", seed) for seed in range(2)]
    a, b = (dp.asarray(x, device=place) for x, place in zip(host, pair, strict=True))
    with dp.placement("fastest"):
        result = (a @ b).T @ a[:, 3] + b.sum(axis=0)
        stacked = dp.matmul(a.reshape(2, 100, 200), b)
    assert result.is_pending
    assert stacked.is_pending
    wanted = (host[0] @ host[1]).T @ host[0][:, 3] + host[1].sum(axis=0)
    np.testing.assert_allclose(result.asnumpy(), wanted, atol=1e-2)
    np.testing.assert_allclose(stacked.asnumpy(), host[0].reshape(2, 100, 200) @ host[1], atol=1e-3)
    with dp.placement("fastest"), pytest.raises(dp.ShapeError):
        a @ b[:7]


def test_functions_that_make_no_expression_run_on_one_device(pair: list[dp.Device]) -> None:
    host, (a, b) = _arrays(pair)
    with dp.placement("fastest"):
        joined = dp.concatenate([a, b])
        found = dp.searchsorted(dp.sort(a[0]), b[0])
        dp.copyto(b, a)
    assert joined.device == found.device == pair[0]
    np.testing.assert_array_equal(joined.asnumpy(), np.concatenate(host))
    np.testing.assert_array_equal(found.asnumpy(), np.searchsorted(np.sort(host[0][0]), host[1][0]))
    np.testing.assert_array_equal(b.asnumpy(), host[0])
    assert b.device == pair[1]
    copies = [copy for record in dp.placement.trace() for copy in record.copies]
    assert any("an operand of concat" in copy.what for copy in copies)
    assert all(copy.nbytes for copy in copies)
    with pytest.raises(dp.ExecutionPlacementError):
        dp.concatenate([a, b])


def test_the_plan_under_a_policy_is_explained(pair: list[dp.Device]) -> None:
    _, (a, b) = _arrays(pair)
    with dp.placement("fastest"):
        pending = (a * 2 + b).sum(axis=0)
    text = str(dp.explain(pending))
    assert pending.is_pending
    assert "policy fastest" in text
    assert "one device alone" in text
    assert not dp.placement.trace()
    explained = dp.explain(pending).placed
    pending.asnumpy()
    ran = dp.placement.trace()[-1]
    assert explained is not None
    assert [step.device for step in explained.steps] == [step.device for step in ran.steps]


def test_constants_are_where_they_were_made(pair: list[dp.Device]) -> None:
    a, b = (dp.ones(100_000, device=place) for place in pair)
    with dp.placement("fastest"):
        assert float((a + b).sum()) == 200_000
    used = {name for step in dp.placement.trace()[-1].steps for name, _ in step.alternatives}
    assert len(used) == len({place.sycl_device for place in pair})


def test_a_profile_measures_the_steps(pair: list[dp.Device]) -> None:
    host = [values((1000, 1000), "float32", seed) for seed in range(2)]
    a, b = (dp.asarray(x, device=place) for x, place in zip(host, pair, strict=True))
    with dp.profile(), dp.placement("fastest"), force("fused"):
        dp.exp(a + b).asnumpy()
    measured = [step.measured for step in dp.placement.trace()[-1].steps]
    assert all(seconds is not None and seconds > 0 for seconds in measured)


@pytest.mark.parametrize("memory", [110, 140, 170])
def test_dropped_values_exist_until_they_are_dropped(memory: int) -> None:
    """A value that is no longer needed may have to make room for others later."""
    drops = 0
    for seed in range(40):
        on = machine(2, memory=(inf, memory * MB))
        problem = random_problem(seed, 24, (1.0, 10.0), on)
        try:
            schedule = heft.solve(problem)
        except NoRoom:
            continue
        check(problem, schedule)
        at: list[set[int]] = [
            set() if value.home is None else {value.home} for value in problem.values
        ]
        last_uses = executor._last_uses(problem, schedule)
        for action, last in zip(schedule.actions, last_uses, strict=True):
            if isinstance(action, Step):
                task = problem.tasks[action.task]
                assert all(action.device in at[value] for value in task.reads)
                for value in task.writes:
                    at[value].add(action.device)
            elif isinstance(action, Copy):
                assert action.source in at[action.value]
                at[action.value].add(action.target)
            else:
                drops += 1
                at[action.value].remove(action.place)
            for value, place in last:
                at[value].discard(place)
        for value, places in zip(problem.values, at, strict=True):
            assert value.wanted is None or value.wanted in places
    assert drops > 10


def test_kernels_of_all_candidates_compile_when_the_plan_is_made() -> None:
    fast = dp.testing.SimulatedDevice("fast", speeds=50.0)
    x = dp.arange(300_000, dtype="float32", device=fast)
    with dp.config.override(background_compile=True, fused_tier=True):
        with dp.placement("fastest", devices=["cpu", fast]):
            pending = dp.sqrt(x * 3.25 + 1.75) - dp.exp(-x / 3e5)
        first = dp.explain(pending).placed
        assert first is not None
        assert [name for name, _, _ in first.ready] == list(first.devices)
        background.wait()
        found = dp.explain(pending).placed
        assert found is not None
        assert all(done == count > 0 for _, done, count in found.ready)
        assert "compiled kernels: " in str(found)
        host = np.arange(3e5, dtype="f4")
        wanted = np.sqrt(host * 3.25 + 1.75) - np.exp(-host / 3e5)
        np.testing.assert_allclose(pending.asnumpy(), wanted, rtol=1e-5)
