"""Ill-formed programs raise: at creation if the text shows the error, otherwise at the call.

In addition to a table, valid programs are mutated: each raises a dparray error, or becomes a
function that agrees with the slow interpreter.
``python test_ill_formed_tile_programs.py FIRST LAST`` tries more of them.
"""

from __future__ import annotations

import random
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from interpreter import Refused, TooLarge, interpret
from random_programs import program

import dparray as dp
from dparray import tilelang
from dparray.tilelang.lexer import tokens

SYNTAX, NAME, SHAPE = dp.TileSyntaxError, dp.TileNameError, dp.TileShapeError
TYPE, INDEX = dp.TileTypeError, dp.TileIndexError

HEADER = "function (A[N, M], V[N], P) -> (O) "

# A body under this header or a whole program, the class, and the column (in the body).
BY_TEXT = [
    ("O = V * 1.;", SYNTAX, 10),
    ("O = V * .5;", SYNTAX, 9),
    ("O = _V;", SYNTAX, 5),
    ("O = V % 2;", SYNTAX, 7),
    ("O = !V;", SYNTAX, 5),
    ("O = V && V;", SYNTAX, 8),
    ("O = V || V;", SYNTAX, 8),
    ("O = V * é;", SYNTAX, 9),
    ('O = "V";', SYNTAX, 5),
    ("O = V # V;", SYNTAX, 7),
    ("O = V; # c", SYNTAX, 8),
    ("O = $V;", INDEX, 5),
    ("O = V'';", SYNTAX, 7),
    ("O = 2N;", SYNTAX, 6),
    ("O[i: N] = +(A[i, Nj]);", NAME, 18),
    ("O = V @ V;", SYNTAX, 7),
    ("", SYNTAX, 1),
    ("   ", SYNTAX, 4),
    ("{ }", SYNTAX, 1),
    ("function", SYNTAX, 9),
    ("function (A) -> () { }", SYNTAX, 18),
    ("function (A) -> (O)", SYNTAX, 20),
    ("function f(A) -> (O) { O = A; }", SYNTAX, 10),
    ("function (A[3]) -> (O) { O = A; }", SYNTAX, 13),
    ("function (A[N + 1]) -> (O) { O = A; }", SYNTAX, 15),
    ("function (a) -> (O) { O = A; }", SYNTAX, 11),
    ("function (A[n]) -> (O) { O = A; }", SYNTAX, 13),
    ("function (A[i]) -> (O) { O = A; }", SYNTAX, 13),
    ("function (A,) -> (O) { O = A; }", SYNTAX, 13),
    ("function (A B) -> (O) { O = A; }", SYNTAX, 13),
    ("function (A) -> O { O = A; }", SYNTAX, 17),
    ("function (A) (O) { O = A; }", SYNTAX, 14),
    ("function (A) -> (O[N]) { O = A; }", SYNTAX, 19),
    ("function (A) -> (o) { O = A; }", SYNTAX, 18),
    ("function (A) -> (O) { O = A; } x", SYNTAX, 32),
    ("function (A) -> (O) { O = A; } function (A) -> (O) { O = A; }", SYNTAX, 32),
    ("function (A) -> (O) { O = A; ", SYNTAX, 30),
    ("function (A) -> (O) { }", NAME, 18),
    ("function (A) -> (O) { ; }", SYNTAX, 23),
    ("def (A) -> (O) { O = A; }", SYNTAX, 1),
    ("Function (A) -> (O) { O = A; }", SYNTAX, 1),
    ("function (function) -> (O) { O = A; }", SYNTAX, 11),
    ("function (A[N) -> (O) { O = A; }", SYNTAX, 14),
    ("function (A[N][M]) -> (O) { O = A; }", SYNTAX, 15),
    ("function (default) -> (O) { O = A; }", SYNTAX, 11),
    ("O = V;;", SYNTAX, 7),
    ("O := V;", SYNTAX, 3),
    ("O += V;", SYNTAX, 3),
    ("V + V;", SYNTAX, 3),
    ("O;", SYNTAX, 2),
    ("O = ;", SYNTAX, 5),
    ("O = V + ;", SYNTAX, 9),
    ("O = (V;", SYNTAX, 7),
    ("O = V);", SYNTAX, 6),
    ("O = V ? 1;", SYNTAX, 10),
    ("O = V ? 1 : ;", SYNTAX, 13),
    ("O = V == V == V;", SYNTAX, 12),
    ("O = V < V > V;", SYNTAX, 11),
    ("O = max(V, V;", SYNTAX, 13),
    ("O = max();", SYNTAX, 9),
    ("O = max V;", SYNTAX, 9),
    ("O = exp;", INDEX, 5),
    ("O = V[i];", SYNTAX, 6),
    ("O = V V;", SYNTAX, 7),
    ("O = 2 V;", SYNTAX, 7),
    ("O = function(V);", SYNTAX, 5),
    ("O = contraction;", SYNTAX, 5),
    ("default = V;", SYNTAX, 1),
    ("o = V;", SYNTAX, 1),
    ("$O = V;", SYNTAX, 1),
    ("O[i: N] = (V[i]);", SYNTAX, 11),
    ("O[i: N] = V[i];", SYNTAX, 11),
    ("O[i: N] = -(V[i]);", SYNTAX, 11),
    ("O[i: N] = max(V[i]);", SYNTAX, 11),
    ("O[i: N] = +V[i];", SYNTAX, 12),
    ("O[i: N] = +(V[i] - V[i]);", SYNTAX, 18),
    ("O[i: N] = +(V[i] / V[i]);", SYNTAX, 18),
    ("O[i: N] = +(V[i] < V[i]);", SYNTAX, 18),
    ("O[i: N] = +(V[i] * V[i] * V[i]);", SYNTAX, 25),
    ("O[i: N] = +(V[i] + V[i] ? V[i]);", SYNTAX, 25),
    ("O[i: N] = +(V[i] ? V[i]);", SYNTAX, 18),
    ("O[i: N] = +(V[i] == V[i] ? V[i] : V[i]);", SYNTAX, 33),
    ("O[i: N] = +(V);", SYNTAX, 13),
    ("O[i: N] = +(exp(V[i]));", SYNTAX, 13),
    ("O[i: N] = +(V[i] * 2);", SYNTAX, 20),
    ("O[i: N] = +(-V[i]);", SYNTAX, 13),
    ("O[i: N] = +();", SYNTAX, 13),
    ("O[i: N] = +(V[i]) i < 3;", SYNTAX, 19),
    ("O[i: N] = +(V[i]), ;", SYNTAX, 20),
    ("O[i: N] = +(V[i]), i;", SYNTAX, 21),
    ("O[i: N] = +(V[i]), i > 3;", SYNTAX, 22),
    ("O[i: N] = +(V[i]), i == 3;", SYNTAX, 22),
    ("O[i: N] = +(V[i]), 0 <= i;", SYNTAX, 22),
    ("O[i: N] = +(V[i]) default 0;", SYNTAX, 27),
    ("O[i: N] = +(V[i]) default v;", SYNTAX, 27),
    ("O[i: N] = +(V[i]) default;", SYNTAX, 26),
    ("O[i: N] = +(V[i]) default V default V;", SYNTAX, 37),
    ("O[i: N] = +(V[i]) default V, i < 3;", SYNTAX, 28),
    ("O[i: N] = +(V[i]) + 1;", SYNTAX, 19),
    ("O[i: N] = +(V[0.5*i]);", TYPE, 15),
    ("O[i: N] = +(V[i % 2]);", SYNTAX, 17),
    ("O[i: N] = +(V[i ^ 2]);", SYNTAX, 17),
    ("O[i: N] = +(V[i < 2]);", SYNTAX, 17),
    ("O[i: N] = +(V[2(i)]);", SYNTAX, 16),
    ("O[i: N] = +(V[+i]);", SYNTAX, 15),
    ("O[i: N] = +(A[i][j]);", SYNTAX, 17),
    ("O[i: N] = +(A[i, ]);", SYNTAX, 18),
    ("O[i: N] = +(A[, i]);", SYNTAX, 15),
    ("O[i; N] = +(V[i]);", SYNTAX, 4),
    ("O[i: ] = +(V[i]);", SYNTAX, 6),
    ("O[: N] = +(V[i]);", SYNTAX, 5),
    ("O[i: N = +(V[i]);", SYNTAX, 8),
    ("O[i: N] = +(V[i];", SYNTAX, 17),
    ("O[i: N] +(V[i]);", SYNTAX, 9),
    ("O[i: N] = +(V[max(i, 2)]);", SYNTAX, 15),
    ("O[i: N] = +(V[V[i]]);", SYNTAX, 16),
    ("O[i: N] = +(V[Max(i)]);", SYNTAX, 18),
    ("O[i: N] = +(V[i' ' ]);", SYNTAX, 18),
    ("[[1]] O = V;", SYNTAX, 3),
    ("[[a(1)]] O = V;", SYNTAX, 5),
    ("[a] O = V;", SYNTAX, 1),
    ("[[a] O = V;", SYNTAX, 4),
    ("[[a(]] O = V;", SYNTAX, 5),
    ("[[]] O = V;", SYNTAX, 3),
    ("O = V; [[a]]", SYNTAX, 14),
    ("[[A]] O = V;", SYNTAX, 3),
    ("O = element(tuple(V, V), );", SYNTAX, 26),
    ("function (A, A) -> (O) { O = A; }", NAME, 14),
    ("function (A[N], N) -> (O) { O = A; }", NAME, 17),
    ("function (N, A[N]) -> (O) { O = A; }", NAME, 16),
    ("function (A[A]) -> (O) { O = A; }", NAME, 13),
    ("function (A) -> (O, O) { O = A; }", NAME, 21),
    ("function (A) -> (A) { }", NAME, 18),
    ("function (A[N]) -> (N) { O = A; }", NAME, 21),
    ("O = O;", NAME, 5),
    ("O = X; X = V;", NAME, 5),
    ("N = 3; O = V;", NAME, 1),
    ("V = 3; O = V;", NAME, 1),
    ("O = V; O = V;", NAME, 8),
    ("O[i: N] = +(V[i]); O = V;", NAME, 20),
    ("O[i: N] = +(O[i]);", NAME, 13),
    ("O[i: N] = +(V[i]), i < K;", NAME, 24),
    ("O[i: N] = +(V[i]) default Q;", NAME, 27),
    ("O[i: N] = +(V[i + K]);", NAME, 19),
    ("O = Exp(V);", NAME, 5),
    ("O = foo(V);", NAME, 5),
    ("O = V + i;", INDEX, 9),
    ("O = exp(i);", INDEX, 9),
    ("O[i: j] = +(V[i]);", INDEX, 6),
    ("O[i: N] = +(V[i]), i < j;", INDEX, 24),
    ("O = as_int(V, k);", INDEX, 15),
    ("O[i: N] = +(V[i, j]);", SHAPE, 13),
    ("O[] = +(V[]);", SHAPE, 9),
    ("O[i: N] = +(N[i]);", SHAPE, 13),
    ("O[i] = +(V[i]);", SHAPE, 1),
    ("O[i: N, M] = +(V[i]);", SHAPE, 1),
    ("O[i, j: N] = +(A[i, j]);", SHAPE, 1),
    ("O[i:] = +(V[i]);", SYNTAX, 5),
    ("S[i: N] = +(V[i]); O[i: N] = +(S[i, j]);", SHAPE, 32),
    ("S = V + A; O[i: N] = +(S[i]);", SHAPE, 24),
    ("O[i: N] = +(V[i]) default A;", SHAPE, 27),
    ("O = index(V, 1);", SHAPE, 14),
    ("O = index(V, -1);", SHAPE, 14),
    ("O = index(A, 2);", SHAPE, 14),
    ("O = reshape(V, -1);", SHAPE, 5),
    ("O = builtin_softmax(V, N, 1);", SHAPE, 5),
    ("O = builtin_softmax(A, N);", TYPE, 5),
    ("S[] = +(V[i]); O = gather(S, 1);", SHAPE, 27),
    ("S[] = +(V[i]); O = scatter(V, as_int(V, 32), S);", SHAPE, 46),
    ("O = prng_step(V);", SHAPE, 15),
    ("O = prng_step(V, 2);", SHAPE, 15),
    ("O = prng_value(V);", TYPE, 5),
    ("O = prng_state(tuple(V));", TYPE, 5),
    ("O = prng_step(as_uint(A, 32), 2);", TYPE, -4),
    ("O[i: 2.0] = +(V[i]);", TYPE, 6),
    ("O[i: V] = +(V[i]);", TYPE, 6),
    ("O[i: N] = +(V[i]), i < 2.5;", TYPE, 24),
    ("O[i: N] = +(V[i]), i < V;", TYPE, 24),
    ("F = 0.5; O[i: N] = +(V[i + F]);", TYPE, 28),
    ("O[i: N / 2.0] = +(V[i]);", TYPE, 8),
    ("O = mod(V, 2);", TYPE, 5),
    ("O = mod(2.5, 2);", TYPE, 5),
    ("O = match(V, V);", TYPE, 5),
    ("O = broadcast(V, V);", TYPE, 5),
    ("O = log(2.0);", TYPE, 5),
    ("O = exp(2);", TYPE, 5),
    ("O = 2 & 1;", TYPE, 7),
    ("O = 1 << 2;", TYPE, 7),
    ("O = ~2;", TYPE, 5),
    ("O = as_float(2, 32);", TYPE, 5),
    ("O = pow(2, 3);", TYPE, 5),
    ("O = round(2.5);", TYPE, 5),
    ("O = sigmoid(2.0);", TYPE, 5),
    ("O = assert_x(V);", TYPE, 5),
    ("O = assert_x(V > 0);", TYPE, 5),
    ("O = assert_x(1, 2);", TYPE, 5),
    ("O = as_int(V, 24);", TYPE, 15),
    ("O = as_int(V, 32.0);", TYPE, 5),
    ("O = as_int(V);", TYPE, 5),
    ("O = as_float(V, 8);", TYPE, 17),
    ("O = as_int(V, V);", TYPE, 5),
    ("O = as_bool(V, 1, 2);", TYPE, 5),
    ("O = reshape(V, 2.0);", TYPE, 5),
    ("O = reshape(V, V);", TYPE, 5),
    ("O = reshape(2, 1);", TYPE, 5),
    ("O = index(V, 0.5);", TYPE, 5),
    ("O = index(V);", TYPE, 5),
    ("O = index(2, 0);", TYPE, 5),
    ("O = shape(2);", TYPE, 5),
    ("O = shape(V, V);", TYPE, 5),
    ("O = gather(2, 1);", TYPE, 5),
    ("O = gather(V, 1.5);", TYPE, 15),
    ("O = gather(V);", TYPE, 5),
    ("O = gather(V, tuple(V, V));", TYPE, -4),
    ("O = scatter(V, as_int(V, 32), 3);", TYPE, 31),
    ("O = element(V, 0);", TYPE, 13),
    ("O = element(tuple(V), 1);", TYPE, 23),
    ("O = element(tuple(V), -1);", TYPE, 23),
    ("O = element(tuple(V), V);", TYPE, 5),
    ("O = element(tuple(V), 0.5);", TYPE, 5),
    ("O = tuple(V, V);", TYPE, -4),
    ("O = tuple(V, V) + tuple(V, V, V);", TYPE, 17),
    ("T = tuple(V, V); O[i: N] = +(T[i]);", TYPE, 30),
    ("T = tuple(V, V); O[i: N] = +(V[i]) default T;", TYPE, 44),
    ("T = tuple(1, 2); O[i: T] = +(V[i]);", TYPE, 23),
    ("O = cond(V, V);", TYPE, 5),
    ("O = exp(V, V);", TYPE, 5),
    ("O = neg(V, V);", TYPE, 5),
    ("O = 1 / 0;", TYPE, 7),
    ("O = mod(1, 0);", TYPE, 5),
    ("O[i: 1/0] = +(V[i]);", TYPE, 7),
    ("O = recip(0);", TYPE, 5),
    ("O = 99999999999999999999;", TYPE, -4),
    ("O[i: N] = +(A[i*j, j]);", INDEX, 16),
    ("O[i: N] = +(V[N/i]);", INDEX, 16),
    ("O[i: N] = +(V[i/0]);", INDEX, 16),
    ("O[i: N] = +(V[(i+1)*(i-1)]);", INDEX, 20),
    ("O[i: N] = +(V[i]), k < 3;", INDEX, 20),
    ("O[i: N] = +(V[i + j - k]);", INDEX, 1),
    ("O[] = +(V[j - k]);", INDEX, 1),
    ("O[i: 0-1] = +(V[i]);", SHAPE, 7),
    ("O[i: N] = +(V[i]), i < 0 - 1;", SHAPE, 26),
    ("O = assert_x(0);", SHAPE, 5),
    ("P = 0; O = V;", NAME, 1),
    ("O = V; }", SYNTAX, 10),  # the brace that the function has after the text
    ("O = broadcast(2, 3);", SHAPE, 5),
    ("O = match(2, 3);", SHAPE, 5),
    ("O[i: 9223372036854775808] = +(A[i, j]);", SHAPE, 6),
    ("Z = 0; O[i: 3] = +(A[i / Z, j]);", INDEX, 24),
]

AT_THE_CALL = [
    ("O = builtin_softmax(A, M, N);", SHAPE, 5),
    ("O = gather(exp(V), V);", TYPE, 20),
    ("O = gather(V, V);", TYPE, 15),
    ("O = scatter(V, V, V);", TYPE, 16),
    ("O = exp(V) & 1;", TYPE, 12),
    ("O = ~exp(V);", TYPE, 5),
    ("O = sigmoid(V) << 1;", TYPE, 16),
    ("O[i: N] = =(A[i, j]);", INDEX, 1),
    ("O[0: N] = =(V[i]);", INDEX, 1),
    ("O[i: N] = +(V[i - 9]);", INDEX, 1),
    ("O[i: N] = +(V[i]), i - 4 < 3;", INDEX, 1),
    ("O[i: N] = +(V[2*i + 1]), i/2 - 1/3 < 5;", INDEX, 1),
    ("O[] = +(V[1/2]);", INDEX, 1),
    ("O[9: N] = +(V[i]);", INDEX, 1),
    ("O[i: N] = +(V[i]), i < 0;", INDEX, 1),
    ("O[i: N] = +(V[i/(N-4)]);", INDEX, 16),
    ("O[i: N/(N - 4)] = +(V[i]);", TYPE, 7),
    ("O[i: N] = +(V[(N - 4)*j]);", INDEX, 1),
    ("O = reshape(V, 5);", SHAPE, 5),
    ("O = V + A;", SHAPE, 7),
    ("O = max(V, A);", SHAPE, 5),
    ("O = V ? A : V;", SHAPE, 7),
    ("O = assert_x(N == 5);", SHAPE, 5),
    ("O[i: broadcast(N, M)] = +(V[i]);", SHAPE, 6),
    ("O[i: match(N, M)] = +(V[i]);", SHAPE, 6),
    ("O[i: N] = +(V[i]) default P;", SHAPE, 27),
    ("O[i: N] = +(P[i]) default V;", SHAPE, 13),
]


def source_of(text: str) -> tuple[str, int]:
    """Return the program, and the number of columns before the text of a body."""
    is_whole = not text.strip() or text.startswith(("function", "Function", "def ", "{"))
    return (text, 0) if is_whole else (f"{HEADER}{{ {text} }}", len(HEADER) + 2)


def check_message(error: dp.TileError, source: str) -> None:
    """Check line and column, the line itself, a caret below the position, and a suggested fix."""
    first, line, caret, *cure = str(error).split("\n")
    assert first.startswith(f"line {error.line}, column {error.column}: ")
    assert line[4:] == source.split("\n")[error.line - 1].rstrip("\r")
    assert caret.index("^") == 4 + error.column - 1
    assert caret.strip() == "^"
    assert all(cure)
    assert cure


@pytest.mark.parametrize(("text", "kind", "column"), BY_TEXT)
def test_errors_in_the_text_raise_at_creation(
    text: str, kind: type[dp.TileError], column: int
) -> None:
    source, before = source_of(text)
    with pytest.raises(dp.TileError) as caught:
        tilelang.function(source)
    assert type(caught.value) is kind
    assert (caught.value.line, caught.value.column) == (1, before + column)
    check_message(caught.value, source)


@pytest.mark.parametrize(("text", "kind", "column"), AT_THE_CALL)
def test_shape_and_dtype_errors_raise_at_the_call(
    text: str, kind: type[dp.TileError], column: int
) -> None:
    source, before = source_of(text)
    function = tilelang.function(source)
    a, v = dp.ones((4, 3), dtype="float32"), dp.ones(4, dtype="float32")
    p = dp.ones((2, 2), dtype="int32")
    with pytest.raises(dp.TileError) as caught:
        function(a, v, p)
    with pytest.raises(kind):
        function.infer(a, v, p)
    assert type(caught.value) is kind
    assert (caught.value.line, caught.value.column) == (1, before + column)
    check_message(caught.value, source)


def test_locations_in_programs_of_several_lines() -> None:
    source = "function (A[N])\r\n\t-> (O) {\r\n\tO[i: N] = +(A[i])\n\t\t, k < 3;\n}"
    with pytest.raises(dp.TileIndexError, match="'k' occurs in constraints only") as caught:
        tilelang.function(source)
    assert (caught.value.line, caught.value.column) == (4, 5)
    check_message(caught.value, source)


def test_index_arithmetic_of_more_than_64_bits_is_refused() -> None:
    many = "9" * 20
    for body in (f"O[i: N] = +(A[{many} * j + i]);", f"O[i: N] = +(A[i / {many}]);"):
        function = tilelang.function(f"function (A[N]) -> (O) {{ {body} }}")
        with pytest.raises(dp.TileIndexError, match="more than 64 bits"):
            function(dp.ones(4))
    function = tilelang.function(
        "function (A[N]) -> (O) { O[i: N] = +(A[99999999999999 * j + i]), j < 2; }"
    )
    assert function(dp.asarray([1, 2, 3])).tolist() == [1, 2, 3]


# -- mutated programs ------------------------------------------------------------------------------

SIGNS = [*"+-*/&|^<>", "==", "!=", ">=", "<<", ">>", *"?:=,;()[]{}.~", "[[", "]]", "->"]
WORDS = ["function", "default", "no_defract", "A", "N0", "#a", "$A", "i", "z", "0", "2.5", "1e3"]
STRANGE = [
    "log",
    "tuple",
    "element",
    "assert_x",
    "mod",
    "prng_step",
    "99999999999999999999",
    *'%!_@"é\x00',
    "//",
]
KINDS = {"ID": ("A", "Q"), "IDX": ("i", "z", "log", "max", "shape"), "int": ("0", "1", "0.5")}


def pieces(source: str) -> list[str]:
    """Return the tokens of a program as they are written."""
    found = tokens(source)
    ends = [each.position for each in found[1:]]
    return [source[one.position : end].strip() for one, end in zip(found, ends, strict=False)]


def changed(source: str, choice: random.Random) -> str:
    """Return a program with one to three mutations; most keep the kind of a token."""
    parts = pieces(source)
    for _ in range(choice.choice((1, 1, 2, 3))):
        at, kind = choice.randrange(len(parts)), choice.random()
        token = parts[at]
        if kind < 0.5:
            of = tokens(token)[0].kind
            if of in KINDS:
                same = [each for each in parts if tokens(each)[0].kind == of]
                parts[at] = choice.choice([*same, *KINDS[of]])
            elif token in SIGNS[:14]:
                parts[at] = choice.choice(SIGNS[:14])
        elif kind < 0.6:
            parts[at] = f"( - {token} )" if tokens(token)[0].kind in KINDS else token
        elif kind < 0.7:
            other = choice.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        elif kind < 0.8:
            parts.insert(at, choice.choice([*parts, *SIGNS]))
        elif kind < 0.9:
            del parts[at : choice.choice((at + 1, at + 1, at + 3, len(parts)))]
        else:
            parts[at] = choice.choice([*WORDS, *STRANGE])
        if not parts or any(each in " ".join(parts) for each in STRANGE[6:]):
            break
        parts = " ".join(parts).split()
    return " ".join(parts)


def is_like(found: np.ndarray, wanted: np.ndarray) -> bool:
    a, b = (each.astype(np.float64) for each in (found, wanted))
    with np.errstate(all="ignore"):
        return found.dtype == wanted.dtype and np.allclose(a, b, 3e-2, 3e-2, equal_nan=True)


def wrong(seed: int) -> str | None:
    """Return the error of a mutated program, or ``None``."""
    choice = random.Random(seed)
    source, inputs = program(seed // 20)
    source = changed(source, choice)
    arrays = {n: dp.asarray(x) if isinstance(x, np.ndarray) else x for n, x in inputs.items()}
    expected: Any = None
    try:
        function = tilelang.function(source)
        if not set(function.inputs) <= set(inputs):
            return None
        results = function(**{name: arrays[name] for name in function.inputs})
        results = results if isinstance(results, tuple) else (results,)
        found = [each.asnumpy() for each in results]
    except dp.TileError as error:
        check_message(error, source)
        found = None
        if "more than 64 bits" in str(error):
            return None
    try:
        expected = interpret(source, inputs) if found is not None else None
    except TooLarge:
        return None
    except Refused as problem:
        return f"{source}\nis not refused: {problem}"
    if found is None:
        return None
    for name, each in zip(function.outputs, found, strict=True):
        if each.shape != expected[name].shape or not is_like(each, expected[name]):
            return f"{source}\n{name} is {each.tolist()}, not {expected[name].tolist()}"
    return None


@pytest.mark.sample(3)
@pytest.mark.parametrize("first", range(0, 600, 100))
@pytest.mark.filterwarnings("ignore::dparray.tilelang.TileWarning")
def test_changed_programs_are_refused_or_right(first: int) -> None:
    assert [found for seed in range(first, first + 100) if (found := wrong(seed))] == []


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("(" * 2000 + "I" + ")" * 2000, "nested more than"),
        ("-" * 5000 + "I", "nested more than"),
        ("I" + " + I" * 20_000, "more than 240 operations"),
        ("I ? I : " * 3000 + "I", "more than 240 operations"),
        ("(" * 30 + "I" + (" + I" * 190 + ")") * 30, "more than 240 operations"),
        ("I * " + "1" * 10_000, "10000 digits"),
    ],
)
def test_very_long_expressions_are_refused(expression: str, problem: str) -> None:
    with pytest.raises(dp.exceptions.TileSyntaxError, match=problem) as caught:
        dp.tilelang.function(f"function (I) -> (O) {{ O = {expression}; }}")
    assert len(str(caught.value)) < 500


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        problem = wrong(number)
        if problem:
            print(number, problem, flush=True)
