"""The canonical form of an expression: its parts, numbered by first use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from dparray._codegen.values import scalar_arguments
from dparray._graph.node import Node, Scalar

_MOST_PLANS = 4096


def remember(plans: dict[Any, Any], form: Any, plan: Any) -> None:
    """Keep a plan; all are dropped when there are many."""
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[form] = plan


class Numbering:
    """The parts of an expression, numbered by first use.

    Attributes:
        form: everything that the numbers follow from, and all that a plan needs: operations,
            dtypes, which operand is which, and the layouts of the arrays. Hashable.
        arrays: the layouts of the leaves, each once.
        in_memory: those of them that are kernel arguments.
        scalars: kernel arguments.

    Args:
        order: the pending nodes, operands before users.
        outputs: the values to be stored, and the dtypes they get there.
        spread: ids of nodes whose leaves are seen through ``view``, a function from a layout to
            another over the same memory.
        view: see there.
    """

    def __init__(
        self,
        order: Sequence[Node],
        outputs: Sequence[tuple[Node | Scalar, np.dtype[Any]]],
        spread: Collection[int] = (),
        view: Callable[[Any], Any] = lambda layout: layout,
    ) -> None:
        arrays: list[Any] = []
        scalars: list[Any] = []
        numbers: dict[int, int] = {}  # of arrays from 0 on, of steps from -1 on downwards
        places: dict[Any, int] = {}
        form: list[Any] = []
        step = 0
        stored = tuple([value for value, _ in outputs]), tuple([dtype for _, dtype in outputs])
        for node in (*order, None):
            operands, loop = stored if node is None else (node.operands, node.loop)
            is_spread = bool(spread) and id(node) in spread
            form.append(loop)
            for position, operand in enumerate(operands):
                if type(operand) is Scalar:
                    scalars += scalar_arguments(operand.value, loop[position])
                    form.append(None)
                    continue
                is_viewed = is_spread and operand.layout is not None  # type: ignore[union-attr]
                key = ~id(operand) if is_viewed else id(operand)
                number = numbers.get(key)
                if number is None:
                    layout = operand.layout  # type: ignore[union-attr]
                    layout = view(layout) if is_viewed else layout
                    block, offset, shape, strides, dtype = layout
                    place = (offset, id(block), shape, strides, dtype)
                    number = places.setdefault(place, len(arrays))
                    if number == len(arrays):
                        arrays.append(layout)
                        form.append((dtype, shape, strides, block.memory is None))
                    numbers[key] = number
                form.append(number)
            if node is not None:
                form.append(node.op)
                step -= 1
                numbers[id(node)] = step
        self.arrays = arrays
        self.in_memory = [layout for layout in arrays if layout.block.memory is not None]
        self.scalars = scalars
        self.form = tuple(form)
        self._order = order
        self._outputs = outputs
        self._numbers = numbers
        self._spread = spread

    def described(self) -> tuple[tuple[Any, ...], tuple[str, ...], list[tuple[str, str]]]:
        """What :class:`Structure` says of the parts.

        Returns:
            The steps; the dtypes of the scalars; for each output the reference and its dtype.
        """
        scalars: list[str] = []

        def reference(
            operand: Node | Scalar, loop: np.dtype[Any], user: Node | None = None
        ) -> tuple[str, str]:
            if type(operand) is Scalar:
                scalars.append(loop.str)
                return f"s{len(scalars) - 1}", loop.str
            number = self._numbers.get(~id(operand)) if id(user) in self._spread else None
            if number is None:
                number = self._numbers[id(operand)]
            name = f"a{number}" if number >= 0 else f"t{-number - 1}"
            return name, operand.dtype.str  # type: ignore[union-attr]

        steps = []
        for node in self._order:
            op = node.op
            assert op is not None
            references = tuple(
                reference(operand, loop, node)
                for operand, loop in zip(node.operands, node.loop, strict=False)
            )
            text = op.expression_on("".join(dtype.kind for dtype in node.loop[:-1]))
            loop = tuple(dtype.str for dtype in node.loop[:-1])
            steps.append((op.name, text, references, loop, node.dtype.str))
        stored = [reference(value, dtype) for value, dtype in self._outputs]
        return tuple(steps), tuple(scalars), stored
