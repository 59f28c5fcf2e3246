"""Contractions that are array operations: maps, reductions and matrix products.

If every index is a bare variable that covers whole axes, the operands can be aligned as views. The
rest is an element-wise expression, a reduction of one, or a matrix product. The first two become
part of the pending expression, so they are fused with the operations around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from dparray.tilelang.contraction import Contracted
from dparray.tilelang.valid_domain import Form
from dparray.tilelang.values import FLOAT16, FLOAT32, FLOAT64, DType


class Aligned(NamedTuple):
    """Operands as views with one axis per variable.

    Attributes:
        kind: ``"map"``, ``"reduction"`` or ``"product"``.
        axes: for each operand the axis of each of its variables, by position in ``order``.
        order: the output's variables, then the reduced ones.
        kept: the number of the output's variables.
        shape: the output's shape, with its axes of literal 0.
    """

    kind: str
    axes: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    kept: int
    sizes: tuple[int, ...]
    shape: tuple[int, ...]


def aligned(contracted: Contracted, dtypes: Sequence[DType]) -> Aligned | None:
    """Return the array operations of a contraction; ``None`` if there are none with this result."""
    space = contracted.space
    if space.constraints or contracted.domain is None:
        return None
    sizes: dict[int, int] = {}
    output = _bare(space.output, sizes, literals=True)
    operands = [_bare(one, sizes, literals=False) for one in space.operands]
    if output is None or None in operands or len(sizes) != space.variables:
        return None
    kept = [each for each in output if each is not None]
    read = [tuple(each for each in one if each is not None) for one in operands if one is not None]
    inner = [each for each in range(space.variables) if each not in kept]
    order = (*kept, *inner)
    if not all(any(each in one for one in read) for each in kept):
        return None  # a broadcast output
    shape = tuple(size for _, size in space.output)
    extents = tuple(sizes[each] for each in order)

    def made(kind: str) -> Aligned:
        axes = tuple(tuple(order.index(each) for each in one) for one in read)
        return Aligned(kind, axes, order, len(kept), extents, shape)

    if not inner:
        return made("map")
    if contracted.dtype == FLOAT16 or contracted.aggregation == "=":
        return None
    if any(len(one) == len(order) for one in read):
        return made("reduction")
    if (
        contracted.combination == "*"
        and contracted.aggregation == "+"
        and contracted.dtype in (FLOAT32, FLOAT64)
        and set(dtypes[:2]) == {contracted.dtype}
        and is_product(made("product"))
    ):
        return made("product")
    return None


def _bare(
    forms: Sequence[tuple[Form, int]], sizes: dict[int, int], literals: bool
) -> list[int | None] | None:
    """Return the variable of each index, ``None`` for a literal 0 of size 1, if these are all."""
    found: list[int | None] = []
    for form, size in forms:
        used = [at for at, each in enumerate(form.coefficients) if each]
        if not used and literals and form.constant == 0 and size == 1:
            found.append(None)
            continue
        if len(used) != 1 or form.constant != 0 or form.coefficients[used[0]] != Fraction(1):
            return None
        if used[0] in found or sizes.setdefault(used[0], size) != size:
            return None
        found.append(used[0])
    return found


def is_product(each: Aligned) -> bool:
    """Return whether each operand has one own axis, one is summed, and the others are stacked."""
    if len(each.axes) != 2:
        return False
    first, second = map(set, each.axes)
    inner = set(range(each.kept, len(each.order)))
    return (
        len(first - second) == 1
        and len(second - first) == 1
        and inner <= first & second
        and len(inner) == 1
    )


class Operations(NamedTuple):
    """The array functions from which recognized contractions are composed."""

    permute: Callable[..., Any]
    reshape: Callable[..., Any]
    matmul: Callable[..., Any]
    copy: Callable[..., Any]


def line_up(operations: Operations, x: Any, axes: Sequence[int], count: int) -> Any:
    """Return a view of an operand with one axis per variable, of size 1 where it has none."""
    order = sorted(range(len(axes)), key=lambda at: axes[at])
    turned = operations.permute(x, order) if order != list(range(len(axes))) else x
    shape = [1] * count
    for at, axis in enumerate(sorted(axes)):
        shape[axis] = turned.shape[at]
    return operations.reshape(turned, tuple(shape)) if len(axes) < count else turned


def product(operations: Operations, each: Aligned, a: Any, b: Any) -> Any:
    """Return a product of stacked matrices, in the order of the output."""
    axes_a, axes_b = each.axes
    summed = each.kept
    own_a = next(axis for axis in axes_a if axis not in axes_b)
    own_b = next(axis for axis in axes_b if axis not in axes_a)
    if own_b < own_a:  # the transposed product has the output's order
        a, b, axes_a, axes_b, own_a, own_b = b, a, axes_b, axes_a, own_b, own_a
    stacked = [axis for axis in range(each.kept) if axis not in (own_a, own_b)]
    left = _turned(operations, a, axes_a, [*stacked, own_a, summed])
    right = _turned(operations, b, axes_b, [*stacked, summed, own_b])
    result = operations.matmul(left, right)
    now = [*stacked, own_a, own_b]
    if now != sorted(now):
        result = operations.copy(operations.permute(result, [now.index(at) for at in sorted(now)]))
    return result


def _turned(operations: Operations, x: Any, axes: Sequence[int], wanted: Sequence[int]) -> Any:
    order = [list(axes).index(axis) for axis in wanted]
    return operations.permute(x, order) if order != sorted(order) else x
