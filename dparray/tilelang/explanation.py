"""Explanation of how the contractions of a call are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from dparray.exceptions import GradientError
from dparray.tilelang.adjoint import adjoint_of
from dparray.tilelang.contracting import MAX_HOST_POINTS, Lowered

_REASONS = {
    "map": "every index is a bare variable, and nothing is aggregated: an elementwise operation on "
    "views, pending like the array code around it",
    "reduction": "every index is a bare variable, and one operand has them all: a reduction of "
    "views, pending like the array code around it, into which what is before it fuses",
    "product": "stacked matrices are multiplied: the library's product",
    "nothing": "no element has a valid index: zeros, or the default",
    "kernel": "the index expressions need loops of their own: one work-item for each output "
    "element, or for each tile of them",
    "host": f"at most {MAX_HOST_POINTS} points, and the host may compute in such memory: a launch "
    "would cost more than the work",
}


@dataclass(frozen=True)
class ExplainedContraction:
    """The way in which one contraction is computed.

    Attributes:
        statement: its source.
        kind: ``"map"``, ``"reduction"``, ``"product"``, ``"kernel"``, ``"host"``, ``"nothing"``.
        reason: the reason.
        points: the maximum number of points of one output element.
        source: the source of its kernel, if it has one.
        derivatives: the Tile functions of its derivatives by floats: of the cotangent ``G`` of its
            result, and of its operands ``A``, ``B`` and ``C``.
    """

    statement: str
    kind: str
    reason: str
    points: int
    source: str
    derivatives: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.statement}\n  {self.kind}: {self.reason}"
        text += "".join(f"\n  derivative: {each}" for each in self.derivatives)
        return text + ("\n" + self.source.rstrip() if self.source else "")


@dataclass(frozen=True)
class TileExplanation:
    """The way in which a call of a Tile function is computed; prints as text."""

    contractions: tuple[ExplainedContraction, ...]
    operations: int

    def __str__(self) -> str:
        head = (
            f"{len(self.contractions)} contractions, {self.operations} operations on whole arrays"
        )
        return "\n".join([head, *map(str, self.contractions)])


def explained(contractions: Sequence[Lowered], operations: int, is_host: bool) -> TileExplanation:
    """Return the explanation of a plan."""
    found = []
    for each in contractions:
        kind = each.kind
        if kind == "kernel" and is_host and each.is_small:
            kind = "host"
        domain = each.contracted.domain
        found.append(
            ExplainedContraction(
                each.contracted.text,
                kind,
                _REASONS[kind],
                0 if domain is None else domain.points,
                each.text.source if kind == "kernel" else "",
                tuple(_derivatives(each)),
            )
        )
    return TileExplanation(tuple(found), operations)


def _derivatives(each: Lowered) -> Iterator[str]:
    for place, dtype in enumerate(each.dtypes):
        if dtype.kind == "f":
            with suppress(GradientError):
                yield adjoint_of(each.contracted, place) or "0"
