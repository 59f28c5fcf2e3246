"""Inner values that are referenced from outside an expression are told from those that are not."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import dparray as dp
from dparray._evaluate import readers
from dparray._graph.node import pending_order


def expression() -> dp.ndarray:
    x = dp.asarray(np.ones(200_000, np.float32))
    return dp.exp(dp.sin(x * 2.0)) + 1.0


def held_names(y: dp.ndarray) -> list[Any]:
    order = pending_order([y._node])
    return [node.op.name for node in readers.externally_referenced([y._node], order)]


def test_what_only_the_expression_refers_to_is_not_held() -> None:
    assert held_names(expression()) == []


def test_what_an_array_shows_is_held() -> None:
    x = dp.asarray(np.ones(200_000, np.float32))
    inner = dp.exp(dp.sin(x * 2.0))
    y = inner + inner
    assert held_names(y) == ["exp"]
    del inner
    assert held_names(y) == []


def test_cheap_values_are_not_held() -> None:
    x = dp.asarray(np.ones(200_000, np.float32))
    inner = x * 2.0
    y = dp.exp(inner)
    assert held_names(y) == []
    assert inner.is_pending


def test_the_references_of_a_walk_are_measured_and_not_assumed() -> None:
    nodes = [object()]
    for node in nodes:
        found = sys.getrefcount(node)
    assert found == readers.WALK_REFERENCES
