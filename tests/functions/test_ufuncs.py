"""Features of NumPy's ufuncs beyond calls: options, and methods such as ``add.reduce``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import on_device, same

RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 5))
I = RNG.integers(0, 9, (4, 5))  # noqa: E741 - letters are arrays here
J = RNG.integers(0, 4, 30)
V = RNG.standard_normal(30)
REAL = ("add", "multiply", "maximum", "minimum", "fmax", "hypot", "logical_or", "logaddexp")
INTEGER = ("add", "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "logical_xor")


pytestmark = pytest.mark.usefixtures("executor")


def agrees(program: Callable[..., Any], *arrays: Any) -> None:
    with np.errstate(all="ignore"):
        expected = program(np, *(np.copy(a) if isinstance(a, np.ndarray) else a for a in arrays))
    actual = program(dp, *(on_device(a) for a in arrays))
    same(actual, expected, 1e-9, atol=0.0)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("name", "a"),
    [
        *(pytest.param(name, A, id=f"{name}-real") for name in REAL),
        *(pytest.param(name, I, id=f"{name}-integer") for name in INTEGER),
    ],
)
def test_reduce_accumulate_reduceat_outer(name: str, a: np.ndarray, axis: int) -> None:
    agrees(lambda xp, a: getattr(xp, name).reduce(a, axis=axis), a)
    agrees(lambda xp, a: getattr(xp, name).reduce(a, axis, keepdims=True), a)
    agrees(lambda xp, a: getattr(xp, name).accumulate(a, axis), a)
    agrees(lambda xp, a: getattr(xp, name).reduceat(a, [0, 2, 1, 3], axis=axis), a)
    agrees(lambda xp, a: getattr(xp, name).outer(a, a[0]), a)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum"])
def test_at_takes_every_repetition(name: str) -> None:
    def at(xp: Any, x: Any, *arguments: Any) -> Any:
        getattr(xp, name).at(x, *arguments)
        return x

    agrees(at, np.ones(7), J, V)
    agrees(at, np.ones(7), J, 2.0)
    agrees(at, np.ones((7, 3)), J[:5], V[:3])
    agrees(at, np.ones((7, 7)), (J, J[::-1].copy()), V)
    agrees(at, np.ones((7, 7))[::2, ::-1], J, 3.0)


def test_invalid_input_raises_and_nothing_is_written() -> None:
    x, n = dp.asarray(A), dp.zeros(3, dtype="int64")
    for call, kind, message in (
        (lambda: dp.subtract.reduce(x, (0, 1)), dp.ArgumentError, "order of elements matters"),
        (lambda: dp.add.at(n, [0], 1.5), dp.DTypeError, "add.at: the result cannot be stored"),
        (lambda: dp.add.at(n, [0, 3], 1), IndexError, "index 3 is out of bounds"),
        (lambda: dp.add.at(n, [0], dp.ones(2, int)), dp.ShapeError, "add.at: "),
        (lambda: dp.add.reduceat(x, [0, 9]), IndexError, "must be from 0 to 3"),
        (lambda: dp.power.reduce(x, where=x > 0), dp.ArgumentError, "where= requires initial="),
        (lambda: np.add(x, 1, signature="dd->d"), TypeError, "numpy.add: signature="),
        (lambda: dp.add(x, 1, out=n, casting="unsafe"), dp.ShapeError, "do not broadcast"),
        (lambda: dp.add(x * 1j, 1, dtype="f8"), dp.DTypeError, r"use dp\.real"),
        (lambda: dp.concat([x * 1j], dtype="f8"), dp.DTypeError, "casting='unsafe'"),
        (lambda: dp.add(x, "a", casting="no"), dp.HostConversionError, "add: x2"),
        (lambda: dp.add(x[0, :3], 1, out=n), dp.DTypeError, "add: .* does not fit out"),
        (lambda: dp.add(x[0, :3], 1, out=n, casting="safe"), dp.DTypeError, "rule 'safe'"),
        (lambda: dp.concat([x[0, :3]], out=n), dp.DTypeError, "concat: .*casting='same_kind'"),
    ):
        with pytest.raises(kind, match=message):
            call()
    assert n.tolist() == [0, 0, 0]


def test_calls_in_numpys_spelling_work() -> None:
    x = dp.asarray(A)
    for ours, theirs in (
        (np.add.reduce(x, axis=1, keepdims=True), np.add.reduce(A, axis=1, keepdims=True)),
        (np.maximum.accumulate(x), np.maximum.accumulate(A)),
        (np.fmax(x, 0.0, where=x > 0, out=dp.ones_like(x)), np.where(A > 0, A, 1.0)),
        (np.logical_and.reduce(x > -9, axis=None), np.asarray(True)),
        (dp.fmax(x, 0.0, dtype="float32"), np.fmax(A, 0.0, dtype="float32")),
    ):
        assert isinstance(ours, dp.ndarray)
        np.testing.assert_allclose(ours.asnumpy(), theirs)
    np.add.at(x, [0, 0], 1.0)
    np.testing.assert_allclose(x[0].asnumpy(), A[0] + 2)


OPTIONS: list[tuple[str, Callable[[Any, Any, Any], Any]]] = [
    ("unsafe", lambda xp, a, i: xp.add(a, i, dtype="int32", casting="unsafe")),
    ("unsafe out", lambda xp, a, i: xp.add(a, i, out=xp.ones_like(i), casting="unsafe")),
    ("of one", lambda xp, a, i: xp.negative(a, dtype="int64", casting="unsafe")),
    ("narrower", lambda xp, a, i: xp.add(a, i, dtype="float32")),
    ("narrower, safe", lambda xp, a, i: xp.add(a, i, dtype="float32", casting="safe")),
    ("same kind", lambda xp, a, i: xp.add(a, i, dtype="int32")),
    ("wider, safe", lambda xp, a, i: xp.sqrt(i, dtype="float64", casting="safe")),
    ("unequal", lambda xp, a, i: xp.multiply(a, i, casting="no")),
    ("unequal to the loop", lambda xp, a, i: xp.sqrt(i, casting="no")),
    ("equal", lambda xp, a, i: xp.multiply(a, a, casting="equiv")),
    ("beside NumPy's scalar", lambda xp, a, i: xp.multiply(a, np.float64(2), casting="no")),
    ("beside a list", lambda xp, a, i: xp.multiply(a, [2.0] * 5, casting="no")),
    ("scalars", lambda xp, a, i: xp.add(1, 2, dtype="float32")),
    ("lists", lambda xp, a, i: xp.add([1, 2], [3, 4], dtype="float32")),
    ("beside a scalar", lambda xp, a, i: xp.multiply(a, 2, casting="no")),
    ("of another row", lambda xp, a, i: xp.fmax(a, i, dtype="int32", casting="unsafe")),
    ("no rule", lambda xp, a, i: xp.add(a, i, casting="loose")),
    ("no order", lambda xp, a, i: xp.add(a, i, order="Z")),
    ("subclasses", lambda xp, a, i: xp.add(a, i, subok=False, order="C")),
    ("masked", lambda xp, a, i: xp.add(a, i, where=i > 3, out=xp.ones_like(i), casting="unsafe")),
    ("NumPy's", lambda xp, a, i: np.add(a, i, dtype="int32", casting="unsafe", order="C")),
    ("concat", lambda xp, a, i: xp.concat([a, i], dtype="int32", casting="unsafe")),
    ("concat, narrower", lambda xp, a, i: xp.concat([a, i], dtype="int32")),
    ("concat, unequal", lambda xp, a, i: xp.concat([a, i], casting="no")),
    ("concat, no rule", lambda xp, a, i: xp.concat([a, i], casting="loose")),
    (
        "concat into",
        lambda xp, a, i: xp.concat([a, a], out=xp.ones((8, 5), "i8"), casting="unsafe"),
    ),
    ("stack", lambda xp, a, i: xp.stack([a, i], dtype="int32", casting="unsafe")),
    ("vstack", lambda xp, a, i: xp.vstack([a, i], dtype="int32", casting="unsafe")),
    ("hstack", lambda xp, a, i: xp.hstack([a, i], dtype="int32", casting="same_kind")),
]


@pytest.mark.parametrize(
    "program", [each for _, each in OPTIONS], ids=[name for name, _ in OPTIONS]
)
def test_conversions_are_allowed_by_numpys_rules(program: Callable[..., Any]) -> None:
    try:
        program(np, A, I)
    except (TypeError, ValueError) as error:
        kind = dp.DTypeError if isinstance(error, TypeError) else dp.ArgumentError
        with pytest.raises(kind):
            program(dp, dp.asarray(A), dp.asarray(I))
    else:
        agrees(program, A, I)


def test_results_in_fortrans_order() -> None:
    x = dp.asarray(A)
    for call in (
        lambda: dp.add(x, 1, order="F"),
        lambda: dp.exp(x, order="F"),
        lambda: dp.add(x, x[0], order="F", where=x > 0),
    ):
        assert call().flags.f_contiguous
    np.testing.assert_array_equal(dp.add(x, 1, order="F").asnumpy(), A + 1)
