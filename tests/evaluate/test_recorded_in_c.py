"""The compiled fast path records the same expressions as the Python functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._array import fastpath
from dparray._array.apply import OPERATIONS
from dparray._codegen.canonical import Canonical
from dparray._graph.node import Node, Scalar, pending_order
from dparray._graph.ops import OPS
from tests.support import force

if fastpath.module is None:
    pytest.skip("the fast path is not compiled", allow_module_level=True)

module: Any = fastpath.module


def arrays(dtype: str) -> list[Any]:
    values = np.linspace(1, 2, 40_000).reshape(200, 200).astype(dtype)
    x = dp.asarray(values)
    square = dp.asarray(values[:50, :50].copy())
    pending = dp.exp(square)
    return [square, x[3:53, 5:55], x[::4, ::4], x.T[:50, :50], x[49::-1, :50], pending]


def parts_of(node: Node) -> list[Any]:
    """Return all parts of a node that decide how it is computed."""
    operands = [
        each if isinstance(each, Scalar) else (each.layout, id(each) if each.op else 0)
        for each in node.operands
    ]
    found = [node.op, node.signature, node.dtype, node.shape, node.size, node.queue, node.usm_type]
    return [*found, node.axes, node.layout, node.cost, node.leaves, operands]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "square", "negative"])
def test_nodes_are_alike(name: str, dtype: str) -> None:
    by_operator: dict[str, Callable[..., Any]] = {
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y,
        "square": lambda x: x**2,
        "negative": lambda x: -x,
    }
    with force("fused"):
        given = arrays(dtype)
        pairs = [(x, y) for x in given for y in [*given, 2, 0.5, True, np.float32(2)]]
        for x, y in pairs:
            operands = (x,) if name in ("square", "negative") else (x, y)
            for each in (operands, operands[::-1]):
                ours = by_operator[name](*each)
                theirs = OPERATIONS[OPS[name]](*each)
                assert parts_of(ours._node) == parts_of(theirs._node)
                assert (ours.shape, ours.dtype, ours.size) == (
                    theirs.shape,
                    theirs.dtype,
                    theirs.size,
                )


def test_forms_are_alike() -> None:
    with force("fused"):
        x, part, every, turned, reverse, pending = arrays("float64")
        for y in (
            x * 2 + x,
            (part + every) * (part - every) / (part + 2.5),
            (turned - reverse) ** 2 + pending * pending - dp.exp(pending),
            dp.where(x > part, x, 0.5) + x[::-1].copy(),
            (x + x).sum(axis=0) * 3,
        ):
            order = pending_order((y._node,))
            found = module.pending_order((y._node,))
            assert found == order
            ours, theirs = module.Canonical(order), Canonical(order)
            assert ours.key == theirs.key
            assert hash(ours.key) == hash(theirs.key)
            assert (ours.arrays, ours.scalars) == (theirs.arrays, theirs.scalars)
            assert ours.numbers == theirs.numbers


def test_a_long_expression_and_one_of_several_roots_are_python_s() -> None:
    with force("fused"):
        x = dp.asarray(np.linspace(0, 1, 3_000))
        y = x
        for _ in range(70):
            y = y * 0.5 + x
        z = x - 1
        for roots in ((y._node,), (y._node, z._node)):
            order = module.pending_order(roots)
            assert set(order) == set(pending_order(roots))
            assert module.Canonical(order).key == Canonical(order).key
    wanted = np.linspace(0, 1, 3_000)
    for _ in range(70):
        wanted = wanted * 0.5 + np.linspace(0, 1, 3_000)
    np.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-12)


def test_a_write_finds_its_pending_readers() -> None:
    with force("fused"):
        values = np.linspace(0, 1, 3_000)
        x = dp.asarray(values)
        y = x * 2 + x[::-1]
        z = y - x
        x[:] = 7.0
        y += 1
        np.testing.assert_allclose(z.asnumpy(), values * 2 + values[::-1] - values)
        np.testing.assert_allclose(y.asnumpy(), values * 2 + values[::-1] + 1)
