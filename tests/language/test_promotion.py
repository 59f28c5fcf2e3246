"""The types of results are those of a table, ``promotion.txt``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dparray._ir.types import BY_NAME, F32, I64, Type
from dparray._language import promotion

BLOCKS = (Path(__file__).parent / "promotion.txt").read_text().split("\n\n")[1:]


def ignoring_literals(rule: Callable[..., Type]) -> Callable[..., Type]:
    return lambda a, b, literal: rule(a, b)


BINARY: dict[str, Callable[..., Type]] = {
    **dict.fromkeys(("add", "sub", "mul", "floordiv", "mod"), promotion.arithmetic),
    "truediv": ignoring_literals(promotion.quotient),
    **dict.fromkeys(
        ("math.atan2", "math.pow", "math.fmod"), ignoring_literals(promotion.mathematics)
    ),
    "pow": promotion.power,
    **dict.fromkeys(("lshift", "rshift"), lambda a, b, literal: promotion.shifted(a)),
    **dict.fromkeys(("and_", "or_", "xor"), promotion.bitwise),
    **dict.fromkeys(("min", "unify"), promotion.joined),
    "max": promotion.maximum,
}
UNARY: dict[str, Callable[[Type], Type]] = {
    **dict.fromkeys(("neg", "pos"), promotion.widened),
    "invert": promotion.inverted,
    "abs": promotion.magnitude,
    **dict.fromkeys(("int", "round"), lambda kind: I64),
    "float": promotion.floated,
    "math.sqrt": promotion.mathematics,
    "math.floor": lambda kind: promotion.floated(kind) if kind.is_float else I64,
}


def type_of(word: str) -> Type:
    """Return the type of a word of the table; that of a literal is int64."""
    return {str(kind): kind for kind in BY_NAME.values()}.get(word, I64)


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield an operation, its operands and the type of its result."""
    for block in BLOCKS:
        title, columns, *lines = block.strip().splitlines()
        for line in lines:
            first, *results = line.split()
            for second, result in zip(columns.split(), results, strict=True):
                if title == "one number":
                    yield first, second, "", result
                else:
                    yield from ((word, first, second, result) for word in title.split())


@pytest.mark.parametrize("operation", [*BINARY, *UNARY])
def test_types_of_results_are_those_of_the_table(operation: str) -> None:
    cases = [row for row in rows() if row[0] == operation and row[3] != "-"]
    assert len(cases) > 10
    for _, first, second, result in cases:
        a, b = type_of(first), type_of(second)
        if operation in UNARY:
            assert str(UNARY[operation](a)) == result, (operation, first)
        else:
            kind = BINARY[operation](a, b, "lit" in (first, second))
            assert str(kind) == result, (operation, first, second)


def test_the_type_of_a_variable_does_not_depend_on_the_order_of_its_values() -> None:
    for a in BY_NAME.values():
        for b in BY_NAME.values():
            assert promotion.joined(a, b) == promotion.joined(b, a)
            assert promotion.joined(promotion.joined(a, b), b) == promotion.joined(a, b)


def test_a_number_takes_the_type_of_the_vector_beside_it() -> None:
    vector = F32._replace(lanes=4)
    assert promotion.vectors("add", vector, BY_NAME["float64"]) == vector
    assert promotion.vectors("lt", BY_NAME["int64"]._replace(lanes=2), BY_NAME["uint64"]) is None


@pytest.mark.parametrize(
    ("operation", "a", "b", "words"),
    [
        ("add", F32._replace(lanes=2), F32._replace(lanes=4), "the same width"),
        ("and", F32._replace(lanes=2), F32._replace(lanes=2), "requires integers"),
    ],
)
def test_vectors_without_a_common_type(operation: str, a: Any, b: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        promotion.vectors(operation, a, b)
