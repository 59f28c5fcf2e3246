"""Operations on whole arrays that the kernels of expressions compute for one element at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dparray._graph.ops import Op
from dparray._graph.reductions import WEIGHT


def _of_one_element(x: Any) -> Any:
    raise NotImplementedError("a contraction has no meaning for one element of its operands")


_NO_UFUNC = np.frompyfunc(_of_one_element, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Contraction(Op):
    """An operation each element of which is made of many elements of its operands.

    Like an elementwise operation it has an expression, so what is made of it becomes part of one
    kernel; where it has none, and where nothing else is in its kernel, it is computed ``alone``.

    Attributes:
        whole: how many of the first operands are whole arrays, which are computed before; the
            expression indexes them itself, in elements from their first one, as ``{0:array}``.
        alone: computes it from the layouts of its arrays in memory into a contiguous layout.
        reason: why, for :func:`dparray.explain`.
        source: gives the text of the kernel that computes it alone.
        terms: how many values an element combines, by the shape of the first operand.
        is_library: whether a library computes it alone, as fast as matrix products are; else a
            generated kernel does, which takes about an addition for each value.
    """

    whole: int = 0
    alone: Callable[[Sequence[Any], Any], None] | None = None
    reason: str = ""
    source: Callable[[], str] | None = None
    terms: Callable[[tuple[int, ...]], int] = len
    is_library: bool = False


def contraction(
    name: str,
    summary: str,
    expression: str,
    whole: int,
    alone: Callable[[Sequence[Any], Any], None],
    reason: str,
    source: Callable[[], str],
    terms: Callable[[tuple[int, ...]], int],
    is_library: bool = False,
) -> Contraction:
    """Return a contraction of arrays of any real dtype."""
    return Contraction(
        name,
        _NO_UFUNC,
        summary,
        expression=expression,
        kinds="biuf",
        weight=WEIGHT,
        whole=whole,
        alone=alone,
        reason=reason,
        source=source,
        terms=terms,
        is_library=is_library,
    )
