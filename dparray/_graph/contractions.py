"""Operations on whole arrays that the kernels of expressions compute element by element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dparray._graph.ops import Op
from dparray._graph.reductions import REDUCTION_COST


def _of_one_element(x: Any) -> Any:
    raise NotImplementedError("a contraction has no meaning for one element of its operands")


_NO_UFUNC = np.frompyfunc(_of_one_element, 1, 1)


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


@dataclass(frozen=True, slots=True, eq=False)
class Contraction(Op):
    """An operation in which each element depends on many elements of its operands.

    Like an element-wise operation it has an expression, so that later operations can share its
    kernel. If it has no expression, or its kernel contains nothing else, ``alone`` computes it.

    Attributes:
        whole: the number of leading operands that are whole arrays, evaluated beforehand; the
            expression indexes them itself, in elements from the first one, as ``{0:array}``.
        alone: computes it from the layouts of its arrays in memory into a layout, which is
            contiguous without a tail; with one, the tail's arrays follow, and its scalars.
        takes_tail: whether the kernel that computes it alone can also compute a tail.
        shape: that of the result in that kernel; nodes may have merged its axes.
        reason: the reason shown by :func:`dparray.explain`.
        source: returns the source of the kernel that computes it alone, with a tail.
        terms: the number of values combined per element, from the shape of the first operand.
        is_library: whether a library computes it alone, at the speed of matrix products; otherwise
            a generated kernel does, with about one addition per value.
    """

    whole: int = 0
    alone: Callable[..., None] | None = None
    takes_tail: bool = False
    shape: tuple[int, ...] = ()
    reason: str = ""
    source: Callable[[Tail | None], str] | None = None
    terms: Callable[[tuple[int, ...]], int] = len
    is_library: bool = False


def contraction(
    name: str,
    summary: str,
    expression: str,
    whole: int,
    alone: Callable[..., None],
    reason: str,
    source: Callable[[Tail | None], str],
    terms: Callable[[tuple[int, ...]], int],
    is_library: bool = False,
    takes_tail: bool = False,
    shape: tuple[int, ...] = (),
) -> Contraction:
    """Return a contraction of arrays of any real dtype."""
    return Contraction(
        name,
        _NO_UFUNC,
        summary,
        expression=expression,
        kinds="biuf",
        cost=REDUCTION_COST,
        whole=whole,
        alone=alone,
        reason=reason,
        source=source,
        terms=terms,
        is_library=is_library,
        takes_tail=takes_tail,
        shape=shape,
    )
