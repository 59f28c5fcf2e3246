"""Plans of models: later calls run the evaluations of the second call on other arrays."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp

onnx = pytest.importorskip("onnx", reason="dparray.onnx needs the package onnx")

from onnx import helper  # noqa: E402

from tests.onnx.test_models import info, make, values  # noqa: E402
from tests.support import force, run_in_threads, wait_for_compiler  # noqa: E402

node = helper.make_node
LARGE = 100_000


def chain(first: str = "Add"):
    """Return a model of two inputs whose result of element-wise operations is summed by rows."""
    nodes = [
        node(first, ["x", "s"], ["a"]),
        node("Mul", ["a", "a"], ["b"]),
        node("CumSum", ["b", "axis"], ["c"]),
        node("Neg", ["c"], ["y"]),
    ]
    return dp.onnx.load(make(nodes, [info("x"), info("s")], [info("y")], {"axis": np.array(1)}))


def convolutions():
    nodes = [
        node("Conv", ["x", "v"], ["a"], pads=[1] * 4),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w"], ["c"], pads=[1] * 4),
        node("Add", ["c", "b"], ["d"]),
        node("Conv", ["d", "more", "bias"], ["e"]),
        node("Clip", ["e", "low", "high"], ["f"]),
        node("Conv", ["f", "less"], ["y"]),
    ]
    weights = {"v": values(16, 3, 3, 3), "w": values(16, 16, 3, 3, seed=1)}
    # 24 filters are not whole vectors: some evaluations have several steps.
    weights |= {"more": values(24, 16, 3, 3, seed=2), "bias": values(24, seed=3)}
    weights |= {"less": values(16, 24, 1, 1, seed=4), "low": np.float32(0), "high": np.float32(6)}
    weights = {name: np.asarray(x) for name, x in weights.items()}
    return dp.onnx.load(make(nodes, [info("x")], [info("y")], weights))


def plan_of(model):
    return next(reversed(model._plans.values()))


def is_bound(model) -> bool:
    plan = plan_of(model)
    return plan._bound is not None and plan._bound is not plan.recorded


def expected(x, s):
    return -np.cumsum((x + s) ** 2, axis=1, dtype="float32")


def check(model, x, s) -> None:
    made = model(x, s).asnumpy()
    given = [each.asnumpy() if isinstance(each, dp.ndarray) else each for each in (x, s)]
    np.testing.assert_allclose(made, expected(*given), rtol=1e-3)


def bound_chain(x, s):
    model = chain()
    for _ in range(3):
        check(model, x, s)
        wait_for_compiler()
    return model


def test_convolutions_run_by_their_bound_plans() -> None:
    model = convolutions()
    for seed in range(4):
        x = dp.asarray(values(1, 3, 40, 40, seed=seed))
        made = model(x).asnumpy()
        np.testing.assert_array_equal(made, plan_of(model).recorded(x)[0].asnumpy())
        wait_for_compiler()
    assert is_bound(model)


def test_other_values_layouts_and_kinds_of_memory() -> None:
    x, s = (values(LARGE // 100, 100, seed=seed) for seed in (1, 2))
    model = bound_chain(dp.asarray(x), dp.asarray(s))
    assert is_bound(model)
    turned = dp.asarray(np.ascontiguousarray(x.T)).T
    for first in (dp.asarray(x + 1), turned, dp.asarray(x, usm_type="shared"), dp.asarray(x) * 2):
        check(model, first, dp.asarray(s))
        check(model, first, first)
    shared = dp.asarray(x, usm_type="shared")
    assert model(shared, shared).usm_type == chain()(shared, shared).usm_type


def test_one_array_for_two_inputs_and_two_later() -> None:
    x, s = (dp.asarray(values(LARGE // 100, 100, seed=seed)) for seed in (1, 2))
    model = bound_chain(x, x)
    check(model, x, s)
    check(model, s, x)


def test_a_number_computed_on_the_host_is_read_at_each_call() -> None:
    x = dp.asarray(values(LARGE // 100, 100))
    model = bound_chain(x, dp.asarray(np.float32(1)) + 1)
    check(model, x, dp.asarray(np.float32(1)) + 5)
    check(model, x, dp.asarray(np.float32(7)))


@pytest.mark.usefixtures("tests_options")  # a user's cost model leaves such sizes to NumPy
def test_options_that_change_plans() -> None:
    x, s = (dp.asarray(values(LARGE // 100, 100, seed=seed)) for seed in (1, 2))
    model = bound_chain(x, s)
    before = plan_of(model)._token
    with force("library"):
        check(model, x, s)
    check(model, x, s)
    assert plan_of(model)._token is not before
    assert is_bound(model)


def test_random_values_differ_in_each_call() -> None:
    nodes = [
        node("RandomUniformLike", ["x"], ["r"]),
        node("Add", ["x", "r"], ["a"]),
        node("CumSum", ["a", "axis"], ["y"]),
    ]
    model = dp.onnx.load(make(nodes, [info("x")], [info("y")], {"axis": np.array(1)}))
    x = dp.zeros((LARGE // 100, 100), dtype="float32")
    made = [float(dp.sum(model(x))) for _ in range(5)]
    assert len(set(made)) == 5


def test_a_user_function_is_called_each_time() -> None:
    calls = []

    def noted(call, x):
        calls.append(x.shape)
        return x + len(calls)

    nodes = [
        node("Noted", ["x"], ["a"], domain="my"),
        node("CumSum", ["a", "axis"], ["y"]),
    ]
    proto = make(nodes, [info("x")], [info("y")], {"axis": np.array(1)}, my=1)
    model = dp.onnx.load(proto, operators={"my::Noted": noted})
    x = dp.zeros((LARGE // 100, 100), dtype="float32")
    last = [float(model(x)[0, -1]) for _ in range(4)]
    assert last == [100.0, 200.0, 300.0, 400.0]


def test_threads_share_a_plan() -> None:
    x, s = (values(LARGE // 100, 100, seed=seed) for seed in (1, 2))
    model = chain()

    def run(number: int) -> None:
        for step in range(6):
            check(model, dp.asarray(x + number + step), dp.asarray(s))

    run_in_threads(run, 3)
