"""The steps of a kernel: the operations of an expression, and their operands by number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dparray._graph.contractions import Contraction
from dparray._graph.node import Node, Scalar, layout_of
from dparray._layout import Layout


class ScalarUse(NamedTuple):
    """A scalar, and the dtype of its kernel argument."""

    value: Any
    dtype: np.dtype[Any]


class Steps:
    """The steps of a kernel for some nodes, numbered by first use.

    Attributes:
        steps: see :class:`dparray._codegen.elementwise.Structure`.
        arrays: the layouts of the leaves, each once.
        in_memory: those arrays that are kernel arguments.
        scalars: the scalars, in order of use.
        outputs: for each output the reference and its dtype.

    Args:
        order: the nodes, operands before users.
        outputs: the values to store, and the dtypes to store them in.
        spread: ids of nodes whose leaves are accessed through ``view``, a function from a layout to
            another one over the same memory.
        view: see ``spread``.
        names: by id of a pending node outside of the steps, the name of its value.
    """

    def __init__(
        self,
        order: Sequence[Node],
        outputs: Sequence[tuple[Node | Scalar, np.dtype[Any]]],
        spread: Collection[int] = (),
        view: Callable[[Any], Any] = lambda layout: layout,
        names: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self.arrays: list[Any] = []
        self.scalars: list[ScalarUse] = []
        self._names = dict(names)
        self._arrays_by_view: dict[Any, str] = {}
        self._view = view
        steps = []
        for number, node in enumerate(order):
            op = node.op
            assert op is not None
            whole = op.whole if type(op) is Contraction else 0
            references = tuple(
                self._whole(operand)
                if index < whole
                else self._reference(operand, dtype, id(node) in spread)
                for index, (operand, dtype) in enumerate(
                    zip(node.operands, node.signature, strict=False)
                )
            )
            text = op.expression_on("".join(dtype.kind for dtype in node.signature[:-1]))
            signature = tuple(dtype.str for dtype in node.signature[:-1])
            steps.append((op.name, text, references, signature, node.dtype.str))
            self._names[id(node)] = f"t{number}"
        self.outputs = [self._reference(value, dtype) for value, dtype in outputs]
        self.steps = tuple(steps)

    @property
    def in_memory(self) -> list[Any]:
        return [layout for layout in self.arrays if layout.block.memory is not None]

    @property
    def scalar_dtypes(self) -> tuple[str, ...]:
        """How a structure refers to the scalars."""
        return tuple(scalar.dtype.str for scalar in self.scalars)

    def _whole(self, operand: Any) -> tuple[str, str]:
        """Return the name and the dtype of an array of which a step reads arbitrary elements.

        It is passed as its first element, which broadcasts to any domain.
        """
        return self._array(operand.layout._replace(shape=(), strides=())), operand.dtype.str

    def _array(self, layout: Layout) -> str:
        block, offset, shape, strides, kind = layout
        view = (offset, id(block), shape, strides, kind)
        known = self._arrays_by_view.get(view)
        if known is None:
            known = self._arrays_by_view[view] = f"a{len(self.arrays)}"
            self.arrays.append(layout)
        return known

    def _reference(
        self, operand: Node | Scalar, dtype: np.dtype[Any], is_spread: bool = False
    ) -> tuple[str, str]:
        """Return the name and dtype of an operand; spread leaves are accessed through the view."""
        if type(operand) is Scalar:
            self.scalars.append(ScalarUse(operand.value, dtype))
            return f"s{len(self.scalars) - 1}", dtype.str
        assert type(operand) is Node
        known = self._names.get(id(operand))
        if known is None or (is_spread and known[0] == "a"):
            layout = layout_of(operand)
            known = self._array(self._view(layout) if is_spread else layout)
            if not is_spread:
                self._names[id(operand)] = known
        return known, operand.dtype.str
