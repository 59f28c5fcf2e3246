"""Expressions that are scheduled, the traits of a queue, and the memory that is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen.domain import Machine
from dparray._graph.node import Node, Scalar
from dparray.config import Tuning


class Target(NamedTuple):
    """Memory that an expression is written to.

    Attributes:
        dtype, shape, strides, usm_type: those of the memory; the shape is the expression's.
        overlapped: the numbers of the arrays that are stored exactly there.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    usm_type: str
    overlapped: tuple[int, ...] = ()


class PlanTraits(NamedTuple):
    """The traits of a queue and its memory that decide how expressions are computed there.

    Attributes:
        machine, tuning: the facts and the tuning of the device.
        host_memory: the kinds of USM memory in which the calling thread computes few elements.
        fp_contract: whether a product and a sum may be rounded together.
        target: the target of kernels.
        has_steps: whether the device's library has kernels for single operations, which compute
            until a kernel is compiled.
    """

    machine: Machine
    tuning: Tuning
    host_memory: frozenset[str] = frozenset()
    fp_contract: bool = False
    target: Any = None
    has_steps: bool = True


class Expression(NamedTuple):
    """Values that are computed together: pending nodes of one shape and placement.

    Attributes:
        order: the pending nodes, operands before users; then the sibling nodes, which may be
            computed in the same pass over memory.
        roots: the numbers in ``order`` of the requested nodes.
        held: the numbers of inner nodes that are stored if the same work computes them.
        siblings: the number of sibling nodes at the end of ``order``.
        value: the value to write to the target, unless it is a pending node.
    """

    order: Sequence[Node]
    roots: tuple[int, ...]
    held: tuple[int, ...] = ()
    siblings: int = 0
    value: Node | Scalar | None = None
