"""Expressions that have been computed before: the same launches again, without planning them.

The *form* of an expression (its operations, dtypes, shapes and strides, and which operand is which)
decides everything but addresses and the values of scalars. Where one kernel computed an expression,
or some of which each merged the accumulators of the one before, the launches are kept by that form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dparray import config
from dparray._codegen import canonical
from dparray._codegen.canonical import Numbering
from dparray._evaluate import fused
from dparray._evaluate.fused import Generated, Launched
from dparray._graph.node import Node
from dparray.memory import blocks


class Step(NamedTuple):
    """One launch of those that compute an expression.

    Attributes:
        generated: the kernel.
        left: shape and dtype of each array of accumulators that it leaves.
        arrays: its arrays, as places among the leaves, the results and all accumulators so far.
        scalars: places among the scalars of the expression.
    """

    generated: Generated
    left: tuple[tuple[Any, ...], ...]
    arrays: tuple[int, ...]
    scalars: tuple[int, ...]


class Expression:
    """Pending nodes of one shape and place, by their form.

    Args:
        nodes: what is asked for.
        order: the pending nodes that they need, operands before users.
    """

    def __init__(self, nodes: Sequence[Node], order: Sequence[Node]) -> None:
        first = nodes[0]
        self._numbering = Numbering(order, [(node, node.dtype) for node in nodes])
        self._nodes = nodes
        self._place = first.queue, first.usm_type
        self._form = (
            self._numbering.form,
            tuple([node.shape for node in order]),
            tuple([order.index(node) for node in nodes]) if len(nodes) > 1 else None,
            first.queue,
            first.usm_type,
            config.fp_contract,
            fused.tuning_of(first.queue),
        )

    def repeat(self) -> bool:
        """Compute the nodes by the launches that are known for their form, if there are any."""
        steps = fused.known_steps.get(self._form)
        if steps is None:
            return False
        queue, usm_type = self._place
        numbering, nodes = self._numbering, self._nodes
        leaves = numbering.in_memory
        results = [blocks.allocate(queue, usm_type, node.shape, node.dtype) for node in nodes]
        layouts = [*leaves, *results]  # their memory must not be given to others before the end
        arrays = [fused.packed_flat(layout) for layout in layouts]
        owners = fused.owners_of(leaves)
        for step in steps:
            for shape, dtype in step.left:
                layouts.append(blocks.allocate(queue, usm_type, shape, dtype))
                arrays.append(fused.packed_flat(layouts[-1]))
            packed = [arrays[place] for place in step.arrays]
            scalars = [numbering.scalars[place] for place in step.scalars]
            step.generated.launch_on(queue, packed, scalars, owners)
        for node, layout in zip(nodes, results, strict=True):
            node.complete(layout)
        return True

    def remember(self, launches: Sequence[Launched]) -> None:
        """Keep the launches that have computed the nodes, unless arguments cannot be told apart."""
        kept = [*self._numbering.in_memory, *(node.layout for node in self._nodes)]
        places = {_place_of(layout): number for number, layout in enumerate(kept)}
        if len(places) < len(kept):
            return
        scalars = [(type(each), each.value) for each in self._numbering.scalars]
        is_clear = len(launches) == 1 or len(set(scalars)) == len(scalars)
        steps = []
        for made in launches:
            for layout in made.left:
                places.setdefault(_place_of(layout), len(places))
            arrays = [places.get(_place_of(layout)) for layout in (*made.arrays, *made.left)]
            given = [(type(each), each.value) for each in made.scalars]
            if len(launches) == 1:
                is_clear = is_clear and given == scalars
                numbers = list(range(len(given)))
            else:
                is_clear = is_clear and all(each in scalars for each in given)
                numbers = [scalars.index(each) for each in given if is_clear]
            if None in arrays or not is_clear:
                return
            steps.append(
                Step(
                    made.generated,
                    tuple((each.shape, each.dtype) for each in made.left),
                    tuple(arrays),  # type: ignore[arg-type]
                    tuple(numbers),
                )
            )
        canonical.remember(fused.known_steps, self._form, steps)


def _place_of(layout: Any) -> tuple[int, int, Any]:
    """Where the memory that a kernel's argument stands for begins, and its dtype."""
    return id(layout.block), layout.offset, layout.dtype
