"""The types of results: NumPy's in users' functions, and the table ``promotion.txt`` in others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dparray._ir.types import BOOL, BY_NAME, F32, I64, Type
from dparray._language import promotion
from dparray._language.promotion import NUMPY, WIDE

BLOCKS = (Path(__file__).parent / "promotion.txt").read_text().split("\n\n")[1:]


def ignoring_literals(rule: Callable[..., Type]) -> Callable[..., Type]:
    return lambda a, b, weak: rule(a, b)


BINARY: dict[str, Callable[..., Type]] = {
    **dict.fromkeys(("add", "sub", "mul", "floordiv", "mod"), WIDE.arithmetic),
    "truediv": ignoring_literals(WIDE.quotient),
    **dict.fromkeys(("math.atan2", "math.pow", "math.fmod"), ignoring_literals(WIDE.mathematics)),
    "pow": WIDE.power,
    **dict.fromkeys(("lshift", "rshift"), WIDE.shifted),
    **dict.fromkeys(("and_", "or_", "xor"), WIDE.bitwise),
    **dict.fromkeys(("min", "unify"), WIDE.joined),
    "max": WIDE.maximum,
}
UNARY: dict[str, Callable[[Type], Type]] = {
    **dict.fromkeys(("neg", "pos"), WIDE.widened),
    "invert": lambda kind: BOOL if kind == BOOL else WIDE.widened(kind),
    "abs": WIDE.magnitude,
    **dict.fromkeys(("int", "round"), lambda kind: I64),
    "float": WIDE.floated,
    "math.sqrt": WIDE.mathematics,
    "math.floor": lambda kind: WIDE.floated(kind) if kind.is_float else I64,
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
def test_types_of_results_in_the_rules_of_numba_are_those_of_the_table(operation: str) -> None:
    cases = [row for row in rows() if row[0] == operation and row[3] != "-"]
    assert len(cases) > 10
    for _, first, second, result in cases:
        a, b = type_of(first), type_of(second)
        if operation in UNARY:
            assert str(UNARY[operation](a)) == result, (operation, first)
        else:
            kind = BINARY[operation](a, b, (first == "lit", second == "lit"))
            assert str(kind) == result, (operation, first, second)


@pytest.mark.parametrize("rules", [NUMPY, WIDE])
def test_the_type_of_a_variable_does_not_depend_on_the_order_of_its_values(rules: Any) -> None:
    for a in BY_NAME.values():
        for b in BY_NAME.values():
            assert rules.joined(a, b) == rules.joined(b, a)
            assert rules.joined(rules.joined(a, b), b) == rules.joined(a, b)


#: The operations of users' functions, and NumPy's functions for them.
OPERATIONS: dict[np.ufunc, Callable[..., Type]] = {
    **dict.fromkeys((np.add, np.multiply), NUMPY.arithmetic),
    np.true_divide: NUMPY.quotient,
    np.power: NUMPY.power,
    np.left_shift: NUMPY.shifted,
    np.right_shift: NUMPY.shifted,
    **dict.fromkeys((np.bitwise_and, np.bitwise_or, np.bitwise_xor), NUMPY.bitwise),
    np.maximum: NUMPY.maximum,
    np.minimum: NUMPY.joined,
}
#: Python numbers, by their types.
PYTHON = {"bool": bool, "int64": int, "float64": float}


@pytest.mark.parametrize("ufunc", OPERATIONS, ids=lambda each: each.__name__)
def test_types_of_results_in_users_functions_are_numpys(ufunc: np.ufunc) -> None:
    rule, cases = OPERATIONS[ufunc], 0
    strong = [(kind, kind.dtype, False) for kind in BY_NAME.values()]
    python = [(BY_NAME[name], PYTHON[name], True) for name in ("bool", "int64", "float64")]
    for a, first, is_first in [*strong, *python]:
        for b, second, is_second in [*strong, *python]:
            if is_first and is_second:
                continue
            # A Python Boolean is a Boolean in NumPy.
            given = [np.dtype(bool) if each is bool else each for each in (first, second)]
            try:
                wanted = ufunc.resolve_dtypes((*given, None))[-1]
            except TypeError:
                continue
            kind = rule(a, b, (is_first, is_second))
            is_choice = ufunc in (np.maximum, np.minimum)
            if is_choice and {a.kind, b.kind} == {"i", "u"} and wanted.kind == "f":
                wanted = np.dtype("int64")  # A variable that holds one or the other stays exact.
            assert kind.dtype == wanted, (ufunc, first, second)
            cases += 1
    assert cases > 40


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
