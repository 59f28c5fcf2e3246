"""The signature of an expression: its parts, numbered by first use.

The *key* of an expression has its operations with dtypes, shapes and memory types, the identity of
operands, and the layouts of its arrays. It contains neither addresses nor scalar values, so all
expressions with the same key are computed by the same steps, on other arrays and scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dparray._graph.node import Node, Scalar


class Canonical:
    """The parts of an expression, numbered by first use.

    Attributes:
        arrays: the layouts of the leaves, each once; the arguments have this order.
        scalars: the values of the scalars, in order of use.
        numbers: maps the id of a node to the number of its array (from 0 up) or of its step (from
            -1 down).
        key: the cache key; hashable.

    Args:
        order: the pending nodes, operands before users.
        value: the expression, if it is not a pending node: a scalar or an evaluated node.
    """

    __slots__ = ("arrays", "key", "numbers", "scalars")

    def __init__(self, order: Sequence[Node], value: Node | Scalar | None = None) -> None:
        arrays: list[Any] = []
        scalars: list[Any] = []
        numbers: dict[int, int] = {}
        views: dict[Any, int] = {}
        key: list[Any] = []
        step = 0
        stored: tuple[Any, ...] = () if value is None else (None,)
        for node in (*order, *stored):
            operands = (value,) if node is None else node.operands
            for operand in operands:
                if type(operand) is Scalar:
                    scalars.append(operand.value)
                    key.append(None)
                    continue
                number = numbers.get(id(operand))
                if number is None:
                    layout = operand.layout  # type: ignore[union-attr]
                    assert layout is not None
                    block, offset, shape, strides, dtype = layout
                    view = (offset, id(block), shape, strides, dtype)
                    number = views.setdefault(view, len(arrays))
                    if number == len(arrays):
                        arrays.append(layout)
                        key.append((dtype, shape, strides, block.memory is None))
                    numbers[id(operand)] = number
                key.append(number)
            if node is not None:
                key += node.op, node.signature, node.shape, node.usm_type, node.axes
                step -= 1
                numbers[id(node)] = step
        self.arrays = arrays
        self.scalars = scalars
        self.numbers = numbers
        self.key = tuple(key)
