"""``dp.implement``: users' implementations of operations, in every place that computes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import implementations

RNG = np.random.default_rng(3)
SIZES = (3, 70_000)


@pytest.fixture
def implement() -> Iterator[Callable[..., Any]]:
    """Return ``dp.implement``; what a test registered is removed."""
    made = []

    def register(*args: Any, **options: Any) -> Any:
        made.append(dp.implement(*args, **options))
        return made[-1]

    yield register
    for each in made:
        each.remove()
    assert not implementations.registered


def negated(calls: list[Any], operation: Any) -> Callable[..., Any]:
    """Return an implementation that notes its operands, and negates the result."""

    def function(*operands: Any, **options: Any) -> Any:
        calls.append(([getattr(x, "shape", x) for x in operands], options))
        return -operation(*operands, **options)

    return function


@pytest.mark.parametrize("size", SIZES)
def test_an_elementwise_function_and_its_operator(implement: Any, size: int) -> None:
    host, calls = RNG.random(size), []
    x = dp.asarray(host)
    implement(dp.multiply)(negated(calls, dp.multiply))
    np.testing.assert_array_equal((x * 2 + 1).asnumpy(), 1 - host * 2)
    np.testing.assert_array_equal(dp.multiply(x[:, None][:2], x[:2]).asnumpy(),
                                  -host[:2, None] * host[:2])  # fmt: skip
    assert calls == [([(size,), 2.0], {}), ([(2, 1), (2,)], {})]
    x[1:] *= 3
    np.testing.assert_array_equal(x.asnumpy(), [host[0], *(-3 * host[1:])])
    assert float((x + x).sum()) == pytest.approx(2 * x.asnumpy().sum())
    assert len(calls) == 3


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sum", {"axis": (0,), "keepdims": False}),
        ("max", {"axis": (1,), "keepdims": True}),
        ("mean", {"axis": (0, 1), "keepdims": False}),
        ("var", {"axis": (1,), "keepdims": False, "correction": 1}),
    ],
)
def test_a_reduction(implement: Any, name: str, options: dict[str, Any], size: int) -> None:
    host, calls = RNG.random((2, size)), []
    implement(getattr(dp, name))(negated(calls, getattr(dp, name)))
    found = getattr(dp, name)(dp.asarray(host) + 1, **options)
    given = {key: value for key, value in options.items() if key != "correction"}
    expected = getattr(np, name)(host + 1, **given, **({"ddof": 1} if name == "var" else {}))
    np.testing.assert_allclose((found * 2).asnumpy(), -2 * expected)
    assert calls == [([(2, size)], options)]


@pytest.mark.parametrize("size", [4, 300])
def test_the_matrix_product(implement: Any, size: int) -> None:
    host, calls = RNG.random((size, size)).astype("float32"), []
    x = dp.asarray(host)
    implement(dp.matmul, when=lambda a, b: a.dtype == np.float32 and b.shape[1] > 2)(
        negated(calls, dp.matmul)
    )
    out = dp.empty_like(x)
    dp.matmul(x, x, out=out)
    for found in (x @ x, out, dp.dot(x, x), (x @ (x + 0)) * 1):
        np.testing.assert_allclose(found.asnumpy(), -(host @ host), 1e-4)
    assert len(calls) == 4
    for one, other in ((x, x[:, :2]), (x.astype("float64"), x)):
        np.testing.assert_allclose((one @ other).asnumpy(), one.asnumpy() @ other.asnumpy(), 1e-4)
    assert len(calls) == 4


@pytest.mark.parametrize("size", SIZES)
def test_functions_made_of_scalar_functions(implement: Any, size: int) -> None:
    @dp.elementwise
    def line(x: Any, slope: Any) -> Any:
        return x * slope + 1

    @dp.reduction(identity=0.0)
    def total(a: Any, b: Any) -> Any:
        return a + b

    x, calls = dp.arange(float(size)), []
    implement(line)(lambda x, slope: calls.append(slope) or x * slope - 1)
    implement(total)(lambda x, axis, keepdims: calls.append(axis) or dp.max(x, axis))
    assert float(total(line(x, 2))) == 2 * size - 3
    assert calls == [2.0, (0,)]


def test_the_last_implementation_that_accepts_is_used(implement: Any) -> None:
    x = dp.asarray([1.0, 4.0])
    first = implement(dp.sqrt, device_type=x.device.traits.kind)
    second = implement(dp.sqrt, when=lambda x: x.shape == (2,))
    implement(dp.sqrt, device_type="accelerator")(lambda x: x + 300)
    first(lambda x: x + 100)
    second(lambda x: x + 200)
    assert dp.sqrt(x).tolist() == [201, 204]
    assert dp.sqrt(x[:1]).tolist() == [101]
    with dp.config.override(implementations=False):
        assert dp.sqrt(x).tolist() == [1, 2]
    pending = dp.sqrt(x) + 0
    second.remove()
    second.remove()
    assert pending.tolist() == [101, 104]
    assert "implements sqrt" in repr(first)
    first(lambda x: x + 400)  # instead of the function before
    assert dp.sqrt(x).tolist() == [401, 404]
    first.remove()
    assert dp.sqrt(x).tolist() == [1, 2]
    assert "no implementation" in repr(first)


def test_explain_and_profile_name_the_function(implement: Any) -> None:
    @implement(dp.exp)
    def table(x: Any) -> Any:
        return x * 0

    x = dp.ones(100_000, dtype="float32")
    plan = dp.explain(dp.exp(x + 1) * 2)
    assert [each.tier for each in plan.kernels][1] == "library"
    (name,) = plan.kernels[1].operations
    assert f"{name} = exp" in str(plan)
    assert "table implements exp" in plan.kernels[1].reason
    assert "an implementation of exp computes whole arrays" in str(plan)
    report = str(dp.explain(lambda: dp.eval(dp.exp(x + 1))))
    # A library's work in the implementation has a row of its own, NumPy's has none.
    assert "table implements exp" in report or "computes multiply" in report


def test_a_policy_uses_it(implement: Any) -> None:
    calls: list[Any] = []
    implement(dp.matmul)(negated(calls, dp.matmul))
    one, other = (dp.Device().new_queue() for _ in range(2))
    host = RNG.random((30, 30))
    a, b = dp.asarray(host, device=one), dp.asarray(host, device=other)
    for policy in ("fastest", lambda step: step.devices[-1]):
        with dp.placement(policy):
            pending = dp.exp(a @ b) + 1
            assert "implements matmul" in str(dp.explain(pending))
            np.testing.assert_allclose(pending.asnumpy(), np.exp(-host @ host) + 1)
    assert len(calls) == 2


@pytest.mark.parametrize("size", SIZES)
def test_a_compiled_function_of_array_operations_uses_it(implement: Any, size: int) -> None:
    @dp.jit
    def f(x: Any) -> Any:
        return dp.exp(x) + 1

    host = RNG.random(size)
    np.testing.assert_allclose(f(dp.asarray(host)).asnumpy(), np.exp(host) + 1)
    made = implement(dp.exp)
    made(lambda x: x * 2)
    np.testing.assert_array_equal(f(dp.asarray(host)).asnumpy(), host * 2 + 1)
    made.remove()
    np.testing.assert_allclose(f(dp.asarray(host)).asnumpy(), np.exp(host) + 1)


@pytest.mark.parametrize("size", SIZES)
def test_a_result_that_differs_is_refused(implement: Any, size: int) -> None:
    x = dp.ones(size)
    other = dp.ones(size, device=dp.Device("cpu").new_queue())
    set_function = implement(dp.exp)

    def fail(_: Any) -> Any:
        raise ZeroDivisionError("in the function")

    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda x: x.astype("float32"), dp.DTypeError, r"result.astype\('float64'\)"),
        (lambda x: x[1:], dp.ShapeError, "returned the shape"),
        (lambda x: other, dp.ExecutionPlacementError, "to_device"),
        (lambda x: x.asnumpy(), dp.exceptions.ArgumentError, "returned a ndarray"),
        (fail, ZeroDivisionError, "in the function"),
    ]
    for function, error, text in cases:
        set_function(function)
        pending = dp.exp(x * 0)
        for _ in range(2):
            with pytest.raises(error, match=text):
                pending.asnumpy()
        set_function.remove()
        assert pending.tolist() == [1] * size
        x[...] = 1


def test_what_is_not_an_operation_is_refused() -> None:
    several = dp.elementwise(lambda x: (x, x), dtype=("float64", "float64"))
    for wrong in (dp.sort, np.exp, "exp", several, dp.where):
        with pytest.raises(dp.exceptions.ArgumentError, match="not an operation of plans"):
            dp.implement(wrong)
    with pytest.raises(dp.exceptions.ArgumentError, match="device_type must be one of 'cpu'"):
        dp.implement(dp.exp, device_type="tpu")
    with pytest.raises(dp.exceptions.ArgumentError, match="expects a function"):
        dp.implement(dp.exp)(3)


def test_threads_compute_while_implementations_change(implement: Any) -> None:
    x, found = dp.ones(50), []

    def compute() -> None:
        for _ in range(100):
            found.extend(set((dp.negative(x) * 1).tolist()))

    workers = [threading.Thread(target=compute) for _ in range(3)]
    made = implement(dp.negative)
    for each in workers:
        each.start()
    for _ in range(30):
        made(lambda x: x + 4)
        assert (dp.negative(x) * 1).tolist() == [5] * 50
        made.remove()
        assert (dp.negative(x) * 1).tolist() == [-1] * 50
    for each in workers:
        each.join()
    assert set(found) <= {5.0, -1.0}
    assert len(found) == 300


def test_an_update_through_an_implementation_may_read_its_target(implement: Any) -> None:
    implement(dp.negative)(lambda x: x[::-1] + 0)
    x = dp.arange(100_000.0)
    dp.negative(x, out=x)
    np.testing.assert_array_equal(x.asnumpy(), np.arange(100_000.0)[::-1])
