"""Derivatives of Tile functions: by finite differences, their texts, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.gradients.test_loops import weighted
from tests.gradients.test_rules import product, slope

_random = np.random.default_rng(0)


def _normal(*shape: int) -> Any:
    return _random.normal(size=shape)


_CONV = """function (I[N, L, C], K[T, C, F]) -> (O) {
    O[n, x, f: N, (L + 1) / 2, F] = +(I[n, 2*x + t - 1, c] * K[t, c, f]);
}"""
CASES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "product": ("(A[M,K], B[K,N]) -> (O) { O[i, j: M, N] = +(A[i, k] * B[k, j]); }",
                (_normal(4, 5), _normal(5, 3))),
    "pairs": ("(A[M,K], B[K]) -> (O) { O[i: M] = +(A[i, k] + B[k + 1]); }",
              (_normal(4, 5), _normal(5))),
    "maxima": ("(A[L]) -> (P) { P[x: (L + 1) / 2] = >(A[2*x + t]), t < 2; }", (_normal(9),)),
    "ties": ("(A) -> (M) { B = A < 0 ? 0 * A : A; M[] = <(B[i]); }", (_normal(9),)),
    "cumulative": ("(A[N]) -> (C) { C[x: N] = +(A[x - t]), t < N; }", (_normal(9),)),
    "transposed": ("(A[M,N]) -> (C) { C[j, i: N, M] = =(A[i, j]); }", (_normal(4, 5),)),
    "spread": ("(A[N]) -> (C) { C[2*x + t: 2*N] = +(A[x]), t < 2; }", (_normal(5),)),
    "halves": ("(A[N]) -> (C) { C[x: 2*N] = +(A[x / 2 - 1]); }", (_normal(5),)),
    "chosen": ("(B[M]) -> (O) { A = index(B, 0); O[i: 3] = +(A[i + 1] == A[j] ? B[j]); }",
               (_normal(5),)),
    "default": ("(A[N]) -> (O) { D = as_float(index(A, 0), 64); O[x + 1: N] = =(A[x]) default D; }",
                (_normal(5),)),
    "crossentropy": ("(T[X, Y], O[X, Y]) -> (R) { L = log(O); S[x: X] = +(L[x, y] * T[x, y]);"
                     " R = -S; }", (_normal(3, 4), np.abs(_normal(3, 4)) + 0.5)),
    "element-wise": ("(A, B) -> (O) { C = relu(A) + sigmoid(B) * max(A, B);"
                     " O = sqrt(abs(C) + 1) / (1 + exp(-A)) + tanh(pow(abs(B) + 1, 2)); }",
                     (_normal(4, 5), _normal(4, 5))),
    "softmax": ("(A) -> (O) { O = builtin_softmax(reshape(A, 5, 4), 5, 4); }", (_normal(4, 5),)),
    "rows": ("(A) -> (O) { I = as_int(A * 0 + 2, 32); O = gather(A, I); }", (_normal(5),)),
}  # fmt: skip


def check(f: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Compare first and second derivatives with finite differences."""
    g = weighted(f)

    def value(*inputs: Any) -> Any:
        return g(*inputs) ** 2

    inputs = [dp.asarray(x) for x in arguments]
    along = [_normal(*x.shape) for x in arguments]
    numbers = tuple(range(len(inputs)))
    gradients = dp.grad(value, numbers)(*inputs)
    expected = slope(value, list(arguments), along, 1e-6)
    assert np.isclose(product(gradients, along), expected, rtol=1e-6, atol=1e-7)
    steps = [[x + s * 1e-5 * d for x, d in zip(arguments, along, strict=True)] for s in (1, -1)]
    high, low = (dp.grad(value, numbers)(*map(dp.asarray, each)) for each in steps)
    _, found = dp.jvp(dp.grad(value, numbers), inputs, [dp.asarray(d) for d in along])
    for own, a, b in zip(found, high, low, strict=True):
        np.testing.assert_allclose(own.asnumpy(), ((a - b) / 2e-5).asnumpy(), 1e-4, 1e-4)


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_that_of_finite_differences(name: str) -> None:
    text, arguments = CASES[name]
    check(dp.tilelang.function(f"function {text}"), arguments)


@pytest.mark.parametrize("length", [7, 400])
def test_a_convolution_and_pooling(length: int) -> None:
    conv = dp.tilelang.function(_CONV)
    check(conv, (_normal(2, length, 3), _normal(3, 3, 2)))
    check(lambda x: dp.tilelang.max_pool(x, 3, strides=2, padding="same"), (_normal(2, length, 2),))
    check(lambda x: dp.tilelang.avg_pool(x, 2, channels="first"), (_normal(1, 2, length),))


def test_a_replay_outputs_by_name_and_dtypes() -> None:
    f = dp.tilelang.function("function (A, B) -> (C, S) { C = A * B; S[] = +(C[i]); }")
    gradient = dp.grad(lambda a: dp.sum(f(B=a, A=a).C) + f(a, 2.0).S)
    a = dp.asarray([1.0, 2.0], dtype="float32")
    assert gradient(a).tolist() == [4.0, 6.0]
    assert gradient(a).dtype == "float32"
    fast = dp.jit(gradient)
    assert [fast(a + k).tolist() for k in range(3)] == [[4.0, 6.0], [6.0, 8.0], [8.0, 10.0]]


def test_explain_shows_the_texts_of_derivatives_which_can_be_called() -> None:
    conv = dp.tilelang.function(_CONV)
    i, k = dp.asarray(_normal(1, 5, 1)), dp.asarray(_normal(3, 1, 1))
    by_image, by_weights = dp.explain(conv, i, k).contractions[0].derivatives
    assert by_image == (
        "function (G, B) -> (D) { D[n, 2 * x + t - 1, c: 1, 5, 1] = +(G[n, x, f] * B[t, c, f]); }"
    )
    assert f"derivative: {by_weights}" in str(dp.explain(conv, i, k))
    g = dp.ones((1, 3, 1))
    expected = dp.grad(lambda i: dp.sum(conv(i, k)))(i)
    assert np.allclose(dp.tilelang.function(by_image)(g, k).asnumpy(), expected.asnumpy())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(A[N]) -> (P) { P[] = *(A[i]); }", r"P\[\] = \*\(A\[i\]\): this statement has no"),
        ("(A[N]) -> (P) { P[] = >(A[i] * A[i]); }", "maxima or minima of one operand"),
        ("(A[N]) -> (P) { P[x + 1: N] = =(A[x]) default A; }", "by the default of elements"),
    ],
)
def test_a_statement_without_a_derivative_is_refused(text: str, reason: str) -> None:
    f = dp.tilelang.function(f"function {text}")
    with pytest.raises(dp.GradientError, match=reason):
        dp.grad(lambda a: dp.sum(f(a)))(dp.ones(3))


def test_wrong_inputs_have_their_errors() -> None:
    f = dp.tilelang.function("function (A[N], B[N]) -> (C) { C = A * B; }")
    with pytest.raises(dp.exceptions.ArgumentError, match="B missing"):
        dp.grad(lambda a: dp.sum(f(a)))(dp.ones(3))
    with pytest.raises(dp.exceptions.TileError, match="N is 3 and 2"):
        dp.grad(lambda a: dp.sum(f(a, dp.ones(2))))(dp.ones(3))
