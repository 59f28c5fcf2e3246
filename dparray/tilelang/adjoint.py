"""Derivatives of contractions: the adjoint of a contraction is a Tile function, as text."""

from __future__ import annotations

from collections.abc import Sequence

from dparray.exceptions import GradientError
from dparray.tilelang.contraction import Contracted
from dparray.tilelang.valid_domain import Form

#: The names of the cotangent of the result and of the operands in an adjoint.
COTANGENT, OPERANDS = "G", ("A", "B", "C")


def adjoint_of(contracted: Contracted, place: int) -> str:
    """Return the Tile function of the derivative of a contraction by an operand.

    Its inputs are the cotangent ``G`` of the result, and those of the operands ``A``, ``B`` and
    ``C`` that it reads. The text is empty for an operand that is only compared.

    Raises:
        GradientError: there is none.
    """
    space, names = contracted.space, contracted.names
    kind = contracted.aggregation, contracted.combination
    result = [_text(form, names) for form, _ in space.output]
    indices = [[_text(form, names) for form, _ in one] for one in space.operands]
    letters = OPERANDS[: len(indices)]
    read = [f"{n}[{', '.join(each)}]" for n, each in zip(letters, indices, strict=True)]
    if place >= len(read):
        raise _refused(contracted, "by the default of elements that it does not compute")
    if kind[0] in "+=" and (kind[1] == "==" or (kind[1] == "?" and place < 2)):
        return ""
    g, before, used = f"G[{', '.join(result)}]", "", {place}
    if kind[0] in "+=" and kind[1] in ("", "+"):
        body = g
    elif kind[0] in "+=" and kind[1] == "*":
        body, used = f"{g} * {read[1 - place]}", {0, 1}
    elif kind[0] in "+=" and kind[1] == "?":
        body, used = f"{read[0]} == {read[1]} ? {g}", {0, 1, 2}
    elif kind in ((">", ""), ("<", "")):  # Equal extremes share the cotangent.
        out = f"[{', '.join(result)}: {_sizes(space.output)}]"
        limits = _limits(space.constraints, names)
        chosen = f"{read[0]} == O[{', '.join(result)}] ?"
        bits = 8 * contracted.dtype.itemsize
        before = (
            f"O{out} = {kind[0]}({read[0]}){limits}; E = as_float(O == O, {bits}); "
            f"N{out} = +({chosen} E[{', '.join(result)}]){limits}; H = G / N; "
        )
        body = f"{chosen} H[{', '.join(result)}]"
    else:
        raise _refused(contracted, "by this operand")
    rest = [each for at, one in enumerate(space.operands) if at not in used for each in one]
    inputs = ["G", *(n for n in letters if f"{n}[" in before + body)]
    own = space.operands[place]
    return (
        f"function ({', '.join(inputs)}) -> (D) {{ {before}"
        f"D[{', '.join(indices[place])}: {_sizes(own)}] = +({body})"
        f"{_limits([*space.constraints, *rest], names)}; }}"
    )


def _refused(contracted: Contracted, what: str) -> GradientError:
    return GradientError(
        f"tile function: {contracted.text}: this statement has no derivative {what}; write sums "
        "(+), maxima or minima of one operand, or give the derivative with dp.custom_gradient"
    )


def _sizes(dimensions: Sequence[tuple[Form, int]]) -> str:
    return ", ".join(str(size) for _, size in dimensions)


def _limits(constraints: Sequence[tuple[Form, int]], names: Sequence[str]) -> str:
    return "".join(f", {_text(form, names)} < {bound}" for form, bound in constraints)


def _text(form: Form, names: Sequence[str]) -> str:
    """Return an affine form as an index expression."""
    terms = zip((*form.coefficients, form.constant), (*names, ""), strict=True)
    text = ""
    for factor, name in terms:
        if factor or (not name and not text):
            size = abs(factor.numerator)
            part = name if name and size == 1 else f"{size} * {name}" if name else str(size)
            part += "" if factor.denominator == 1 else f" / {factor.denominator}"
            sign = "-" if factor < 0 else "+" if text else ""
            text += f" {sign} {part}" if text else f"{sign}{part}"
    return text
