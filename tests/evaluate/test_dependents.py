"""Inner values that are referenced from outside an expression are distinguished from others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import bound_plan, dependents
from dparray._graph.node import pending_order
from tests.support import force


@dp.kernel
def doubled(item: Any, x: Any) -> None:
    i = item.get_id(0)
    x[i] = x[i] * 2


def expression() -> dp.ndarray:
    x = dp.asarray(np.ones(200_000, np.float32))
    return dp.exp(dp.sin(x * 2.0)) + 1.0


def held_names(y: dp.ndarray) -> list[Any]:
    order = pending_order([y._node])
    return [node.op.name for node in dependents.externally_referenced([y._node], order)]


def test_values_only_used_by_the_expression_are_not_held() -> None:
    assert held_names(expression()) == []


def test_an_inner_value_with_an_array_is_held() -> None:
    x = dp.asarray(np.ones(200_000, np.float32))
    inner = dp.exp(dp.sin(x * 2.0))
    y = inner + inner
    assert held_names(y) == ["exp"]
    del inner
    assert held_names(y) == []


@pytest.mark.usefixtures("tests_options")
def test_cheap_values_are_not_held() -> None:
    x = dp.asarray(np.ones(200_000, np.float32))
    inner = x * 2.0
    y = dp.exp(inner)
    assert held_names(y) == []
    assert inner.is_pending


def test_inner_values_with_another_pending_reader_are_held() -> None:
    x = dp.asarray(np.ones(200_000, np.float32))
    inner = dp.exp(dp.sin(x * 2.0))
    y, other = inner + 1.0, inner * 3.0
    del inner
    assert held_names(y) == ["exp"]
    del other
    assert held_names(y) == []


def test_a_write_first_evaluates_pending_readers() -> None:
    x = dp.asarray(np.ones(200_000, np.float32))
    with force("fused"):
        inner = x * 2.0
        other = inner + 1.0
        x[...] = inner * 5.0
        del inner
        np.testing.assert_array_equal(other.asnumpy(), np.full(200_000, 3.0, np.float32))
        np.testing.assert_array_equal(x.asnumpy(), np.full(200_000, 10.0, np.float32))


@pytest.mark.parametrize("executor", ["library", "fused"])
@pytest.mark.parametrize("what", ["a number", "a reader", "what reads a reader", "its own"])
def test_a_failed_write_leaves_the_readers_recorded(
    executor: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pending expressions that read the memory are still computed before the next write."""
    numbers = np.arange(200_000.0)
    x = dp.asarray(numbers)

    def write() -> None:
        x[...] = {
            "a number": 3,
            "a reader": y,
            "what reads a reader": y[::-1] + 1,
            "its own": x[::-1] * 5,
        }[what]

    def refuse(*_: Any) -> None:
        raise dp.exceptions.MemoryError("none")

    with force(executor):
        y, z = x * 2 + 1, x * 3
        with monkeypatch.context() as patch:
            patch.setattr(bound_plan, "execute", refuse)
            with pytest.raises(dp.exceptions.MemoryError):
                write()
            with pytest.raises(dp.exceptions.MemoryError):
                dp.call_kernel(doubled, dp.Range(1), x)
        assert y.is_pending
        assert z.is_pending
        np.testing.assert_array_equal(x.asnumpy(), numbers)
        x[10:20] = 7
        np.testing.assert_array_equal(y.asnumpy(), numbers * 2 + 1)
        np.testing.assert_array_equal(z.asnumpy(), numbers * 3)


@pytest.mark.parametrize("lazily", ["an operator", "a function", "out="])
def test_a_pending_node_refers_to_the_array_that_holds_it(lazily: str) -> None:
    x = dp.asarray(np.ones(300_000))
    if lazily == "an operator":
        y = x + 1
    elif lazily == "a function":
        y = dp.add(x, x, dtype="float64")
    else:
        y = x * 2
        dp.add(x, 1, out=y)
    node = y._node
    assert y.is_pending
    assert node.array is not None
    assert node.array() is y
    del y
    assert node.array() is None
