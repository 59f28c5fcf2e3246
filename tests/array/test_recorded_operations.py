"""The compiled module records the same nodes of operations as the general path in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._array import fastpath
from dparray._array.apply import OPERATIONS, general_operation
from dparray._graph.node import Node

pytestmark = pytest.mark.skipif(fastpath.module is None, reason="the fast path is not built")


def described(x: dp.ndarray) -> tuple[Any, ...]:
    node = x._node
    operands = [each if isinstance(each, Node) else tuple(each) for each in node.operands]
    return node.op, node.signature, node.shape, node.size, node.cost, node.leaves, operands


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_operations_have_the_nodes_of_the_general_path(dtype: str, fused: None) -> None:
    x, y = (dp.asarray(np.arange(1, 10) * each).astype(dtype) for each in (0.5, 2.0))
    number = dp.sum(x).astype(dtype)
    pairs = [(x, y), (x, 0.5), (3, y), (x, number), (number, y), (number, number)]
    for op in (each for each in OPERATIONS if each.arity <= 2):
        for operands in [(x,), (number,)] if op.arity == 1 else pairs:
            try:
                expected = general_operation(op)(*operands)
            except (TypeError, ValueError) as error:
                with pytest.raises(type(error)):
                    OPERATIONS[op](*operands)
            else:
                assert described(OPERATIONS[op](*operands)) == described(expected), op.name
