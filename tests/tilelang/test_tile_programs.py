"""Published programs with their results, ill-formed programs, and calls of functions."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import config, tilelang

FOLDER = Path(__file__).parent
VECTORS = json.loads((FOLDER / "vectors.json").read_text())
ERRORS = json.loads((FOLDER / "errors.json").read_text())

# By name: the exception class, whether the text alone shows the error, line and column.
REFUSED: dict[str, tuple[type[Exception], bool, int, int]] = {
    "assign_conflict": (dp.TileIndexError, False, 1, 29),
    "single_assignment": (dp.TileNameError, True, 1, 33),
    "assign_to_input": (dp.TileNameError, True, 1, 30),
    "dim_mismatch": (dp.TileShapeError, False, 1, 16),
    "signature_rank": (dp.TileShapeError, False, 1, 11),
    "contraction_rank": (dp.TileShapeError, True, 1, 41),
    "size_count": (dp.TileShapeError, True, 1, 29),
    "missing_sizes": (dp.TileShapeError, True, 1, 29),
    "undefined_tensor": (dp.TileNameError, True, 1, 38),
    "undefined_size": (dp.TileNameError, True, 1, 31),
    "float_size": (dp.TileTypeError, True, 1, 33),
    "nonlinear_index": (dp.TileIndexError, True, 1, 45),
    "divide_by_index": (dp.TileIndexError, True, 1, 42),
    "tensor_in_index": (dp.TileTypeError, True, 1, 46),
    "constraint_only_index": (dp.TileIndexError, True, 1, 45),
    "unbounded_index": (dp.TileIndexError, True, 1, 26),
    "no_valid_index": (dp.TileIndexError, False, 1, 26),
    "constant_out_of_range": (dp.TileIndexError, False, 1, 26),
    "elementwise_shapes": (dp.TileShapeError, False, 1, 38),
    "expression_in_contraction": (dp.TileSyntaxError, True, 1, 34),
    "unknown_function": (dp.TileNameError, True, 1, 30),
    "output_never_assigned": (dp.TileNameError, True, 1, 21),
    "index_in_elementwise": (dp.TileIndexError, True, 1, 34),
    "chained_comparison": (dp.TileSyntaxError, True, 1, 36),
    "missing_semicolon": (dp.TileSyntaxError, True, 1, 32),
    "unterminated_body": (dp.TileSyntaxError, True, 1, 33),
    "le_constraint": (dp.TileSyntaxError, True, 1, 51),
    "comment": (dp.TileSyntaxError, True, 1, 33),
    "gather_float_index": (dp.TileTypeError, False, 1, 40),
    "default_shape": (dp.TileShapeError, False, 1, 55),
    "assertion": (dp.TileShapeError, False, 1, 30),
    "reshape_count": (dp.TileShapeError, False, 1, 30),
}


def array_of(each: dict[str, Any]) -> np.ndarray:
    return np.array(each["data"], each["dtype"]).reshape(each["shape"])


@pytest.mark.parametrize("on_host", [True, False], ids=["host", "kernels"])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_published_programs_give_their_results(
    vector: dict[str, Any], on_host: bool, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not on_host:
        monkeypatch.setattr(config, "host_tier", False)
    function = tilelang.function(vector["source"])
    inputs = {
        name: dp.asarray(array_of(each), sycl_queue=queue)
        for name, each in vector["inputs"].items()
    }
    results = function(**inputs)
    results = results if isinstance(results, tuple) else (results,)
    for name, result in zip(function.outputs, results, strict=True):
        expected = array_of(vector["outputs"][name])
        assert result.dtype == expected.dtype
        assert result.queue == queue
        np.testing.assert_allclose(
            result.asnumpy(), expected, rtol=vector["rtol"], atol=vector["atol"], strict=True
        )


@pytest.mark.parametrize("program", ERRORS, ids=lambda program: program["name"])
def test_ill_formed_programs_are_refused(program: dict[str, Any]) -> None:
    kind, by_text, line, column = REFUSED[program["name"]]
    inputs = {name: dp.asarray(array_of(each)) for name, each in program["inputs"].items()}
    if by_text:
        with pytest.raises(dp.TileError) as caught:
            tilelang.function(program["source"])
    else:
        function = tilelang.function(program["source"])
        with pytest.raises(dp.TileError) as caught:
            function(**inputs)
    error = caught.value
    assert type(error) is kind
    assert (error.line, error.column) == (line, column)
    shown, text, caret, *cure = str(error).split("\n")
    assert shown.startswith(f"line {line}, column {column}: ")
    assert text.strip() in program["source"]
    assert caret == " " * (4 + column - 1) + "^"
    assert all(cure)
    assert cure


def test_every_published_error_is_tested() -> None:
    assert {each["name"] for each in ERRORS} == set(REFUSED)
    assert len(ERRORS) == 32


MATMUL = "function (A[N, K], B[K, M]) -> (C) { C[i, j: N, M] = +(A[i, k] * B[k, j]); }"


def test_inputs_go_by_position_or_name_and_outputs_to_given_arrays(queue: Any) -> None:
    a = dp.asarray([[1.0, 2.0], [3.0, 4.0]], sycl_queue=queue)
    function = tilelang.function(MATMUL)
    expected = a.asnumpy() @ a.asnumpy()
    assert (function(a, a).asnumpy() == expected).all()
    assert (function(a, B=a).asnumpy() == expected).all()
    target = dp.empty_like(a)
    assert function(a, a, out=target) is target
    assert (target.asnumpy() == expected).all()
    assert function(a, a, out={"C": a}) is a  # also into an input
    assert (a.asnumpy() == expected).all()


def test_several_results_are_a_named_tuple() -> None:
    function = tilelang.function("function (A[N], K) -> (B, C) { B = A + K; C[] = +(A[i]); }")
    x = dp.asarray([1, 2, 3], dtype="int32")
    results = function(x, 10)
    assert results._fields == ("B", "C")
    assert results.B.tolist() == [11, 12, 13]
    assert results.C.item() == 6
    target = dp.empty((), dtype="int32")
    assert function(x, 1, out={"C": target}).C is target
    assert target.item() == 6


def test_missing_unknown_and_host_arguments_raise(queue: Any) -> None:
    function = tilelang.function(MATMUL)
    a = dp.ones((2, 2), sycl_queue=queue)
    with pytest.raises(dp.ArgumentError, match="B missing"):
        function(a)
    with pytest.raises(dp.ArgumentError, match="'D' is not one of its inputs"):
        function(a, a, D=a)
    with pytest.raises(dp.ArgumentError, match="given twice"):
        function(a, A=a)
    with pytest.raises(dp.HostConversionError, match=r"dp\.asarray"):
        function(a, np.ones((2, 2)))
    with pytest.raises(dp.ShapeError, match="out for C"):
        function(a, a, out=dp.empty((3, 3), sycl_queue=queue))
    with pytest.raises(dp.DTypeError, match="out for C"):
        function(a, a, out=dp.empty((2, 2), dtype="int8", sycl_queue=queue))
    with pytest.raises(dp.DTypeError, match="complex"):
        function(a, a.astype("complex64"))


def test_arrays_of_two_queues_are_refused() -> None:
    other = dp.default_device().new_queue()
    with pytest.raises(dp.ExecutionPlacementError):
        tilelang.function(MATMUL)(dp.ones((2, 2)), dp.ones((2, 2), device=other))


def test_results_share_no_memory_with_inputs() -> None:
    function = tilelang.function(
        "function (A[N, M]) -> (B, C, D, E) "
        "{ B = A; C[j, i: M, N] = =(A[i, j]); D = reshape(A, N * M); E = B; }"
    )
    a = dp.asarray([[1.0, 2.0], [3.0, 4.0]])
    results = function(a)
    for each in results:
        each[...] = 0
    assert a.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_elementwise_results_are_pending_and_fuse() -> None:
    x = dp.asarray(np.linspace(1, 2, 100_000, dtype=np.float32))
    y = x * 2
    result = tilelang.function("function (A) -> (B) { B = log(A) + 1.0; }")(y)
    assert result.is_pending
    assert len(dp.explain(result - 3).kernels) == 1


def test_shapes_are_inferred_without_arrays() -> None:
    function = tilelang.function(MATMUL)
    found = function.infer(A=((2, 3), "float32"), B=((3, 5), "float64"))
    assert found == {"C": ((2, 5), np.dtype("float64"))}
    with pytest.raises(dp.TileShapeError, match="the size K is 3 and 4"):
        function.infer(A=((2, 3), "float32"), B=((4, 5), "float64"))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ((2, 3), dp.ArgumentError),
        (((2, -3), "float32"), dp.ArgumentError),
        (((2, 2.5), "float32"), dp.ArgumentError),
        (((2, 3), "nope"), dp.DTypeError),
        (((2, 3), "complex64"), dp.DTypeError),
        ("float32", dp.ArgumentError),
    ],
)
def test_invalid_shapes_and_dtypes_raise(given: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        tilelang.function("function (A) -> (B) { B = A; }").infer(A=given)


def test_inputs_of_any_name_pickles_and_one_array_for_two_outputs() -> None:
    function = tilelang.function("function (#self, #args) -> (B, C) { B = #self; C = #args; }")
    function = pickle.loads(pickle.dumps(function))
    x = dp.asarray([1, 2])
    assert function(self=x, args=x).B.tolist() == [1, 2]
    with pytest.raises(dp.ArgumentError, match="two outputs"):
        function(x, x, out=(x, x))


def test_a_call_with_known_shapes_binds_nothing() -> None:
    function = tilelang.function(MATMUL)
    a = dp.ones((2, 2))
    function(a, a)
    function(a, a + 1)
    assert function.cache_info()[:2] == (1, 1)
    function.cache_clear()
    assert function.cache_info() == (0, 0, 0)


def test_sizes_that_are_zero() -> None:
    function = tilelang.function(
        "function (A[N, M], D[K]) -> (S, T, U) "
        "{ S[i: N] = >(A[i, j]); T[j: K] = +(A[i, j]) default D; U = -A; }"
    )
    d = dp.asarray([5.0, 6.0])
    s, t, u = function(dp.ones((0, 3)), d)
    assert s.shape == (0,)
    assert t.tolist() == [5.0, 6.0]
    assert u.shape == (0, 3)
    s, t, u = function(dp.ones((2, 0)), d)
    assert s.tolist() == [0.0, 0.0]


def test_strided_and_reversed_arrays() -> None:
    values = np.arange(60, dtype=np.int32).reshape(6, 10)
    x = dp.asarray(values)
    function = tilelang.function(
        "function (A[N, M]) -> (S) { S[i: N] = +(A[i, j] * A[i, M - 1 - j]); }"
    )
    view = values[::-2, 1::3]
    expected = (view * view[:, ::-1]).sum(1)
    assert function(x[::-2, 1::3]).tolist() == expected.tolist()


def test_mixed_signs_warn() -> None:
    function = tilelang.function("function (A, B) -> (C) { C = A + B; }")
    a, b = dp.ones(3, dtype="int32"), dp.ones(3, dtype="uint32")
    with pytest.warns(tilelang.TileWarning, match="int32 and uint32"):
        assert function(a, b).dtype == dp.int32
    with pytest.warns(tilelang.TileWarning):
        assert function(b, a).dtype == dp.uint32


@pytest.mark.parametrize("part", [slice(3, 8), slice(3, 13, 2), slice(10, 0, -2)])
def test_a_default_may_have_gaps(part: slice) -> None:
    """A kernel read the default as if it were contiguous."""
    function = tilelang.function(
        "function (A[N, M, P], D) -> (T) "
        "{ T[k: 5] = >(A[k + 2, k + l * 2, k]) default D no_defract; }"
    )
    a, defaults = np.arange(64, dtype="int32").reshape(4, 4, 4), np.arange(20, dtype="int32")
    wanted = [40, 61, *defaults[part][2:]]
    with dp.config.override(host_tier=False):
        result = function(dp.asarray(a), dp.asarray(defaults)[part])
        assert result.asnumpy().tolist() == wanted


def test_the_default_float_dtype() -> None:
    function = tilelang.function("function (A) -> (B) { B = A * 0.5; }")
    x = dp.asarray([1, 2], dtype="int32")
    assert function(x).dtype == dp.float32
    before = tilelang.set_floatx("float64")
    try:
        assert function(x).dtype == dp.float64
    finally:
        tilelang.set_floatx(before)
    with pytest.raises(dp.TileTypeError):
        tilelang.set_floatx("int32")


@pytest.mark.parametrize("on_host", [True, False], ids=["host", "kernels"])
def test_maxima_ignore_nan_and_never_leak_their_start(
    on_host: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not on_host:
        monkeypatch.setattr(config, "host_tier", False)
    nan, inf = np.nan, np.inf
    x = dp.asarray([[nan, -3.0, -5.0], [-inf, -inf, -inf]], dtype="float32")
    rows = tilelang.function("function (A[N, M]) -> (B) { B[i: N] = >(A[i, j]); }")
    assert rows(x).tolist() == [-3.0, -inf]
    windows = tilelang.function(
        "function (A[N, M]) -> (B) { B[i, p: N, M + 2] = >(A[i, p + k - 2]), k < 2; }"
    )
    assert windows(x).asnumpy()[0].tolist() == [0.0, -inf, -3.0, -3.0, -5.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int16"])
def test_maxima_of_long_rows_ignore_nan(dtype: str) -> None:
    values = np.random.default_rng(7).integers(-90, -1, (5, 40_000)).astype(dtype)
    if dtype != "int16":
        values[1], values[2, ::7], values[3] = np.nan, np.nan, -np.inf
    ends = tilelang.function(
        "function (A[N, M]) -> (L, S, T) { L[i: N] = >(A[i, j]); S[i: N] = <(A[i, j]); "
        "T[] = >(A[i, j]); }"
    )
    found = ends(dp.asarray(values))
    without = np.where(values == values, values, values.dtype.type(-99))
    largest, smallest = without.max(1), np.where(values == values, values, 0).min(1)
    if dtype != "int16":
        largest[1], smallest[1] = -np.inf, np.inf
    assert found.L.tolist() == largest.tolist()
    assert found.S.tolist() == smallest.tolist()
    assert found.T.item() == largest.max()
    assert found.L.dtype == np.dtype(dtype)


def test_random_numbers_are_those_of_the_streams() -> None:
    generator = np.random.default_rng(1)
    state = generator.integers(128, 2**32, (3, 2048), dtype=np.uint32)
    function = tilelang.function(
        "function (S) -> (N, U) "
        "{ P = prng_step(S, 3, 1000); N = prng_state(P); U = prng_value(P); }"
    )
    following, numbers = function(dp.asarray(state))
    s1, s2, s3 = (part.astype(np.uint64) for part in state)
    mask = np.uint64(0xFFFFFFFF)
    expected = []
    for first in (0, 2048):
        active = min(2048, 3000 - first)
        n1 = (((s1 & 4294967294) << 12) & mask) ^ ((((s1 << 13) & mask) ^ s1) >> 19)
        n2 = (((s2 & 4294967288) << 4) & mask) ^ ((((s2 << 2) & mask) ^ s2) >> 25)
        n3 = (((s3 & 4294967280) << 17) & mask) ^ ((((s3 << 3) & mask) ^ s3) >> 11)
        for old, new in ((s1, n1), (s2, n2), (s3, n3)):
            old[:active] = new[:active]
        expected += ((s1 ^ s2 ^ s3)[:active].astype(np.float32) / np.float32(2**32)).tolist()
    assert (following.asnumpy() == np.stack([s1, s2, s3]).astype(np.uint32)).all()
    assert (numbers.asnumpy().ravel() == np.array(expected, np.float32)).all()


def test_functions_of_the_table() -> None:
    x = np.array([[-2.5, -0.5, 0.5], [1.5, 2.5, 3.5]], np.float32)
    a = dp.asarray(x)

    def run(text: str, **more: Any) -> np.ndarray:
        names = ", ".join(["A", *more])
        return tilelang.function(f"function ({names}) -> (O) {{ {text} }}")(a, **more).asnumpy()

    assert run("O = round(A);").tolist() == [[-3, -1, 1], [2, 3, 4]]
    assert run("O = index(A, 1);").tolist() == [[0, 1, 2], [0, 1, 2]]
    assert run("O = index(A, 1);").dtype == np.int32
    assert run("O = shape(A);").tolist() == [2, 3]
    assert run("O = as_int(A, 8) / 2;").tolist() == [[-1, 0, 0], [0, 1, 1]]
    softmax = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(run("O = builtin_softmax(A, 2, 3);"), softmax, rtol=1e-6)
    np.testing.assert_allclose(run("O = builtin_logsoftmax(A, 2, 3);"), np.log(softmax), rtol=1e-5)
    rows = dp.asarray([[5, -1], [1, 0]], dtype="int32")
    assert (run("O = gather(A, R);", R=rows) == x[[[1, 0], [1, 0]]]).all()
    assert run("O = gather(A, 1);").tolist() == x[1].tolist()
    rows = dp.asarray([1, 1], dtype="int32")
    assert run("O = scatter(A, R, A);", R=rows).tolist() == [[0, 0, 0], [-1, 2, 4]]
    assert run("T = tuple(A, 2); O = element(T, 0) * element(T, 1);").tolist() == (x * 2).tolist()
    assert run("T = -tuple(A, A); O = element(T, 1);").tolist() == (-x).tolist()
    assert run("T = tuple(P, A); O = element(T, 0);", P=a).tolist() == x.tolist()
    assert run("T = tuple(B, 3); O = element(T, 1) * A;", B=2).tolist() == (x * 3).tolist()
    assert run("O = reverse_grad(A, 2.0);").tolist() == x.tolist()
    p = dp.asarray([0.25, 0.5], dtype="float32")
    np.testing.assert_allclose(
        run("O = builtin_binary_crossentropy(P, T, 2);", P=p, T=p),
        -(0.25 * np.log([0.25, 1]) * [1, 0] + [0.75 * np.log(0.75), np.log(0.5)]),
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    ("body", "kind", "what"),
    [
        ("O = tuple(A, A);", dp.TileTypeError, "the output O is a tuple"),
        ("O = 99999999999999999999;", dp.TileTypeError, "more than 64 bits"),
        ("O[i: N / 0] = +(A[i, j]);", dp.TileTypeError, "division by zero"),
        ("X = mod(N, 0); O = A;", dp.TileTypeError, "division by zero"),
        ("O = prng_value(prng_step(V, 3));", dp.TileShapeError, r"a state of shape \(\?,\)"),
    ],
)
def test_errors_in_the_text_raise_at_creation(body: str, kind: type[Exception], what: str) -> None:
    with pytest.raises(dp.TileError, match=what) as caught:
        tilelang.function(f"function (A[N, M], V[K]) -> (O) {{ {body} }}")
    assert type(caught.value) is kind


@pytest.mark.usefixtures("tests_options")
def test_contractions_are_pending_and_their_users_are_in_their_kernel() -> None:
    host = np.random.default_rng(0).random((300, 450), dtype=np.float32)
    x = dp.asarray(host)
    windows = tilelang.function(
        "function (A[N, M]) -> (S) { S[i, j: N, M] = +(A[i, j - k]), k < 3; }"
    )
    expected = host.copy()
    expected[:, 1:] += host[:, :-1]
    expected[:, 2:] += host[:, :-2]
    result = windows(x)
    assert result.is_pending
    (kernel,) = dp.explain(2 * result + x).kernels
    assert kernel.operations == ("t0", "t1", "t2")
    np.testing.assert_allclose((2 * result + x).asnumpy(), 2 * expected + host, rtol=1e-6)
    np.testing.assert_allclose(result[3:5, ::2].asnumpy(), expected[3:5, ::2], rtol=1e-6)
    sums = expected.sum(0) - 300 * np.minimum(np.arange(450) + 1, 3)
    np.testing.assert_allclose(dp.sum(windows(x - 1), axis=0).asnumpy(), sums, atol=1e-2)
    before = windows(x)
    x[...] = windows(x) + x  # reads the memory that it overwrites
    np.testing.assert_allclose(x.asnumpy(), expected + host, rtol=1e-6)
    np.testing.assert_allclose(before.asnumpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("sizes", [(3, 4, 5, 6), (1, 7, 6, 1)])
def test_outputs_of_two_indices_find_them_without_loops(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = np.arange(sizes[0] * sizes[1], dtype="float32").reshape(sizes[:2])
    b = np.arange(sizes[2] * sizes[3], dtype="float32").reshape(sizes[2:]) - 7
    kron = tilelang.function(
        "function (A[N, M], B[P, Q]) -> (O, S) { "
        "O[P*i + k, Q*j + l: N*P, M*Q] = =(A[i, j] * B[k, l]); "
        "S[Q*j + l: M*Q + 3] = +(A[i, j] * B[k, l]); }"
    )
    monkeypatch.setattr(config, "host_tier", False)
    x, y = dp.asarray(a), dp.asarray(b)
    product, sums = kron(x, y)
    np.testing.assert_array_equal(product.asnumpy(), np.kron(a, b))
    expected = np.append(np.kron(a.sum(0), b.sum(0)), [0, 0, 0])
    np.testing.assert_allclose(sums.asnumpy(), expected, rtol=1e-6)
    assert "for" not in kron.explain(x, y).contractions[0].source


@pytest.mark.usefixtures("fused")
def test_kernels_read_pending_values_in_the_order_that_they_will_have() -> None:
    host = np.random.default_rng(0).random((300, 450), dtype=np.float32)
    windows = tilelang.function(
        "function (A[N, M]) -> (S) { S[i, j: N, M] = +(A[i, j - k]), k < 3; }"
    )
    turned = dp.asarray(host).T + 1  # it keeps the order of its operand
    expected = host.T + 1
    expected[:, 1:] += host.T[:, :-1] + 1
    expected[:, 2:] += host.T[:, :-2] + 1
    assert turned.is_pending
    np.testing.assert_allclose((2 * windows(turned)).asnumpy(), 2 * expected, rtol=1e-6)
    np.testing.assert_allclose(windows(turned).asnumpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 12, 16])
@pytest.mark.parametrize("rows", [2, 40])
def test_rows_of_any_length_are_windows_and_products(
    rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(6)
    x = random.integers(-9, 9, (2 * rows, columns)).astype("float32")
    w = random.integers(-9, 9, (7, columns)).astype("float32")
    source = (
        "function (A[N, M], B[K, M]) -> (P, C) { P[i, j: N / 2, M] = >(A[2 * i + k, j]), k < 2; "
        "C[i, j: N - K + 1, M] = +(A[i + k, 0] * B[k, j]); }"
    )
    monkeypatch.setattr(config, "host_tier", False)
    pooled, convolved = tilelang.function(source)(dp.asarray(x), dp.asarray(w[: rows + 1]))
    np.testing.assert_array_equal(pooled.asnumpy(), np.maximum(x[::2], x[1::2]))
    count = 2 * rows - len(w[: rows + 1]) + 1
    expected = sum(x[k : k + count, :1] * w[k] for k in range(len(w[: rows + 1])))
    np.testing.assert_array_equal(convolved.asnumpy(), expected)


def test_operators_bind_as_the_grammar_says() -> None:
    def value(text: str) -> Any:
        return tilelang.function(f"function (A) -> (O) {{ O = {text}; }}")(
            dp.asarray(1, dtype="int32")
        ).item()

    assert value("0 * A ? 5 : A ? 7 : 9") == 7  # (0 ? 5 : 1) ? 7 : 9
    assert value("6 * A ^ A | 4 * A") == 6 ^ (1 | 4)
    assert value("A + 1 << 2 * A") == (1 + 1) << 2
    assert value("2 * A + 7 * A & 8 == 8 * A") == ((2 + 7) & int(8 == 8))
    assert value("- A - - 2 * A") == 1
    assert value("(7 * A) / (0 - 2)") == -3


def test_names_with_signs_and_attributes() -> None:
    function = tilelang.function(
        "function (#a[N], B'[N]) -> (O) { [[pid(one, Two)]] #x = #a + B'; "
        "[[note]] O[$I: N] = =(#x[$I]) no_defract; }"
    )
    one = dp.asarray([1, 2], dtype="int32")
    assert function(one, one).tolist() == [2, 4]


STRIDED = (
    "function (I[N, M]) -> (S, T, U) { S[i: N] = +(I[i, j] * I[i, M - 1 - j]); "
    "T[i, j: N, M + 1] = >(I[i, j - 1]); U[i: N + 2] = *(I[i - 1, j]); }"
)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "float16", "bool", "uint8"])
def test_kernels_read_views_of_any_strides(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = (np.arange(60).reshape(6, 10) % 7).astype(dtype)
    x = dp.asarray(values)
    function = tilelang.function(STRIDED)
    views = (x[::-2, 1::3], x.T[:, ::-1], dp.broadcast_to(x[0], (3, 10)))
    expected = [[part.asnumpy() for part in function(view)] for view in views]
    monkeypatch.setattr(config, "host_tier", False)
    for view, parts in zip(views, expected, strict=True):
        for found, part in zip(function(view), parts, strict=True):
            np.testing.assert_array_equal(found.asnumpy(), part)


@pytest.mark.parametrize("most", [16, 100])
@pytest.mark.parametrize(
    "statement",
    [
        "O[i: N + 1] = +(I[i - k]), k < 3;",
        "O[i, j: 9, N] = +(I[j - k - i]), k < 3;",
        "O[i, j, k, l: 3, 4, 5, N] = +(I[l - i - j - k]);",
    ],
)
def test_outputs_with_more_elements_than_a_launch_has_work_items(
    statement: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"function (I[N]) -> (O) {{ {statement} }}"
    x = dp.arange(1, 41, dtype="float32")
    expected = tilelang.function(source)(x).asnumpy()
    monkeypatch.setattr(config, "host_tier", False)
    monkeypatch.setattr("dparray.tilelang.kernel_text.MAX_ITEMS", most)
    function = tilelang.function(source)
    assert (function(x).asnumpy() == expected).all()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [16, 23])
@pytest.mark.parametrize("dtype", ["float16", "uint8"])
def test_tiles_that_overhang_write_each_element_once(
    rows: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(4)
    x = dp.asarray(random.integers(0, 3, (rows, 40)).astype(dtype))
    w = dp.asarray(random.integers(0, 3, (20, 17)).astype(dtype))
    d = dp.asarray(random.integers(0, 3, (rows, 20)).astype(dtype))
    source = (
        "function (A[N, M], B[K, L], D) -> (O, P) { O[i, j: N, L] = +(A[i, 2*k] * B[k, j]); "
        "P[i, j: N, L + 3] = >(A[i, k] * B[k, j - 2]) default D; }"
    )
    expected = [each.asnumpy() for each in tilelang.function(source)(x, w, d)]
    monkeypatch.setattr(config, "host_tier", False)
    function = tilelang.function(source)
    for found, each in zip(function(x, w, d), expected, strict=True):
        np.testing.assert_array_equal(found.asnumpy(), each)
    (plan,) = function._plans.values()
    assert all(each.text.is_tiled for each in plan.contractions)
    assert ("is_last" in plan.contractions[0].text.source) == (rows != 16)


@pytest.mark.parametrize("dtype", ["int32", "float32", "int8", "bool"])
def test_few_elements_of_many_points_are_shared_by_work_items(dtype: str) -> None:
    random = np.random.default_rng(3)
    x = random.integers(-3, 4, 10001).astype(dtype)
    y = random.integers(0, 3, (4, 10001)).astype(dtype)
    function = tilelang.function(
        "function (A[N], B[M, N]) -> (S, T, U) { S[] = +(A[i] * A[N - 1 - i]); "
        "T[j: M] = >(B[j, i] + A[N - 1 - i]); U[j: M + 1] = +(B[j, 2*i + 1]); }"
    )
    s, t, u = function(dp.asarray(x), dp.asarray(y))
    (plan,) = function._plans.values()
    assert all(each.text.parts for each in plan.contractions)
    product = x * x[::-1]
    if dtype == "bool":
        assert s.item() == product.any()
        assert t.tolist() == (y | x[::-1]).any(1).tolist()
        assert u.tolist() == [*y[:, 1::2].any(1).tolist(), False]
    else:
        np.testing.assert_allclose(s.item(), product.sum(dtype=dtype), rtol=1e-5)
        assert t.tolist() == (y + x[::-1]).max(1).tolist()
        assert u.tolist() == [*y[:, 1::2].sum(1, dtype=dtype).tolist(), 0]


@pytest.mark.parametrize("batch", [1, 3, 40])
@pytest.mark.parametrize("channels", ["last", "first"])
def test_batches_are_traversed_by_loops_or_work_items(batch: int, channels: str) -> None:
    height = 131 if batch < 40 else 13
    random = np.random.default_rng(8)
    x = random.integers(-3, 4, (batch, height, 77, 4)).astype("float32")
    w = random.integers(-3, 4, (3, 3, 4, 16)).astype("float32")
    expected = np.zeros((batch, height - 2, 75, 16), "float32")
    for i in range(3):
        for j in range(3):
            expected += x[:, i : i + height - 2, j : j + 75] @ w[i, j]
    if channels == "first":
        x, w = np.moveaxis(x, -1, 1), np.moveaxis(w, (-1, -2), (0, 1))
        expected = np.moveaxis(expected, -1, 1)
    found = tilelang.conv(dp.asarray(x.copy()), dp.asarray(w.copy()), channels=channels)
    np.testing.assert_array_equal(found.asnumpy(), expected)
