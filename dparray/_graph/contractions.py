"""Operations on whole arrays that the kernels of expressions compute element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dparray._graph.ops import NO_UFUNC, Op
from dparray._graph.reductions import REDUCTION_COST

#: The name of a contraction's result in the steps of its tail.
RESULT = "value"


class Tail(NamedTuple):
    """Element-wise operations on the results of a contraction, which its kernel computes.

    Attributes:
        steps: the operations, as in the structure of an element-wise kernel.
        arrays: the dtype of each array that they read, and its strides along the axes of the
            result, in elements.
        scalars: the dtype of each scalar.
        result: the value to store, and its dtype.
        dtype, strides: of the memory that it is stored in.
    """

    steps: tuple[Any, ...]
    arrays: tuple[tuple[str, tuple[int, ...]], ...]
    scalars: tuple[str, ...]
    result: tuple[str, str]
    dtype: str
    strides: tuple[int, ...]


class ContractionStructure(NamedTuple):
    """The structure of a contraction's kernel, unless it is an expression of one element.

    Attributes:
        source: its source: a function of the work-item, the arrays, scalars and numbers.
        arrays: the dtypes of the arrays, the output last.
        scalars: the dtypes of the scalars.
        numbers: how many 64-bit integers follow.
        dimensions: those of its range.
        is_grouped: whether the range has work-groups of a given size.
    """

    source: str
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    numbers: int
    dimensions: int
    is_grouped: bool


class ContractionLaunch(NamedTuple):
    """A launch of such a kernel: the values of the numbers, and the range."""

    structure: ContractionStructure
    numbers: tuple[int, ...]
    global_range: tuple[int, ...]
    local_range: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Contraction(Op):
    """An operation in which each element depends on many elements of its operands.

    Like an element-wise operation it has an expression, so that later operations can share its
    kernel. If it has no expression, or its kernel contains nothing else, ``alone`` computes it.

    Attributes:
        whole: the number of leading operands that are whole arrays, evaluated beforehand; the
            expression indexes them itself, in elements from the first one, as ``{0:array}``.
        alone: if a library computes it: computes it from the layouts of its arrays in memory into a
            contiguous layout.
        launch: if a kernel computes it alone: returns that, for a queue, with a tail.
        implementation: instead of ``alone``, the same by a user's function, with scalars among the
            layouts.
        takes_tail: whether that kernel can compute a tail.
        shape: that of the result in that kernel; nodes may have merged its axes.
        reason: the reason shown by :func:`dparray.explain`.
        terms: the number of values combined per element, from the shape of the first operand.
    """

    whole: int = 0
    alone: Callable[[Sequence[Any], Any], None] | None = None
    implementation: Callable[[Sequence[Any], Any], None] | None = None
    launch: Callable[[Any, Tail | None], ContractionLaunch] | None = None
    takes_tail: bool = False
    shape: tuple[int, ...] = ()
    reason: str = ""
    terms: Callable[[tuple[int, ...]], int] = len

    @property
    def is_library(self) -> bool:
        """Whether a library computes it alone, at the speed of matrix products.

        Otherwise a generated kernel does, with about one addition per value.
        """
        return self.alone is not None


def contraction(
    name: str,
    summary: str,
    whole: int,
    reason: str,
    terms: Callable[[tuple[int, ...]], int],
    **fields: Any,
) -> Contraction:
    """Return a contraction of arrays of any real dtype, with further fields by their names."""
    fields |= {"kinds": "biuf", "cost": REDUCTION_COST}
    return Contraction(name, NO_UFUNC, summary, whole=whole, reason=reason, terms=terms, **fields)
