"""Products, decompositions and transforms: NumPy's results, on every queue, eager and deferred."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._functions import products
from tests.support import same

RNG = np.random.default_rng(0)


pytestmark = pytest.mark.usefixtures("executor")


def assert_same(actual: dp.ndarray, expected: Any) -> None:
    same(actual, expected, 2e-3 if np.asarray(expected).dtype.char in "fF" else 1e-8)


def matrices(*shape: int, dtype: str = "float64") -> np.ndarray:
    numbers = RNG.standard_normal(shape)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * RNG.standard_normal(shape)
    return numbers.astype(dtype)


SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
]


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_matmul_of_all_shapes(first: Any, second: Any, queue: Any) -> None:
    a, b = matrices(*first), matrices(*second)
    x, y = dp.asarray(a, sycl_queue=queue), dp.asarray(b, sycl_queue=queue)
    assert_same(x @ y, a @ b)
    assert_same(dp.matmul(x[..., ::-1], y), a[..., ::-1] @ b)


@pytest.mark.parametrize("first", ["bool", "int8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("second", ["int32", "float64", "complex64"])
def test_matmul_promotes(first: str, second: str) -> None:
    a, b = np.ones((2, 3)).astype(first), matrices(3, 2, dtype="float64").astype(second)
    assert_same(dp.asarray(a) @ dp.asarray(b), a @ b)


def test_matmul_of_transposed_and_in_place() -> None:
    a, b = matrices(4, 4), matrices(4, 4)
    x, y = dp.asarray(a), dp.asarray(b)
    assert_same(x.T @ y.T, a.T @ b.T)
    z = x.copy()
    z @= y
    assert_same(z, a @ b)
    out = dp.zeros((4, 4))
    assert dp.matmul(x, out, out=out) is out
    assert_same(dp.matmul(x, x, out=x), a @ a)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((3,), (4,)), ((), (3,))])
def test_matmul_that_does_not_fit(shapes: Any) -> None:
    with pytest.raises(dp.exceptions.ShapeError, match="matmul"):
        dp.matmul(dp.ones(shapes[0]), dp.ones(shapes[1]))


SQUARE = {"det", "inv", "slogdet", "eigh", "eigvalsh", "cholesky"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "name", ["det", "inv", "slogdet", "eigvalsh", "svdvals", "cholesky", "pinv"]
)
def test_decompositions(name: str, dtype: str) -> None:
    a = matrices(2, 4, 4, dtype=dtype)
    if name in ("eigvalsh", "cholesky"):
        a = a @ np.conj(a.swapaxes(-1, -2)) + 4 * np.eye(4, dtype=dtype)
    actual = getattr(dp.linalg, name)(dp.asarray(a))
    expected = getattr(np.linalg, name)(a)
    for one, other in (
        zip(actual, expected, strict=True) if name == "slogdet" else ((actual, expected),)
    ):
        assert_same(one, other)


def test_factors_multiply_to_the_matrix() -> None:
    a = matrices(5, 3)
    x = dp.asarray(a)
    for mode in ("reduced", "complete"):
        q, r = dp.linalg.qr(x, mode=mode)
        assert_same(q @ r, a)
    for full in (False, True):
        u, s, vh = dp.linalg.svd(x, full_matrices=full)
        assert_same((u[:, :3] * s) @ vh, a)
    h = a.T @ a
    values, vectors = dp.linalg.eigh(dp.asarray(h))
    assert_same((vectors * values) @ vectors.T, h)
    found = dp.linalg.eig(dp.asarray(h))
    assert_same(dp.sort(dp.real(found.eigenvalues)), np.sort(np.linalg.eigvalsh(h)))


def test_solutions() -> None:
    a, b = matrices(2, 3, 3), matrices(2, 3, 4)
    assert_same(dp.linalg.solve(dp.asarray(a), dp.asarray(b)), np.linalg.solve(a, b))
    tall, right = matrices(6, 3), matrices(6)
    solution, *_ = dp.linalg.lstsq(dp.asarray(tall), dp.asarray(right))
    assert_same(solution, np.linalg.lstsq(tall, right)[0])
    assert int(dp.linalg.matrix_rank(dp.asarray(np.outer(right, right)))) == 1


def test_norms_and_powers() -> None:
    a = matrices(2, 3, 3)
    x = dp.asarray(a)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        assert_same(dp.linalg.matrix_norm(x, ord=order), np.linalg.matrix_norm(a, ord=order))
    for order in (0, 1, 2, 3, 0.5, np.inf, -np.inf):
        expected = np.linalg.vector_norm(a, axis=1, ord=order)
        assert_same(dp.linalg.vector_norm(x, axis=1, ord=order), expected)
    for power in (-2, 0, 1, 5):
        assert_same(dp.linalg.matrix_power(x, power), np.linalg.matrix_power(a, power))
    assert_same(dp.linalg.cond(x), np.linalg.cond(a))
    factors = [matrices(2, 5), matrices(5, 1), matrices(1, 4)]
    product = dp.linalg.multi_dot([dp.asarray(factor) for factor in factors])
    assert_same(product, np.linalg.multi_dot(factors))


def test_singular_and_oblong_matrices_are_errors() -> None:
    with pytest.raises(dp.linalg.LinAlgError):
        dp.linalg.inv(dp.zeros((2, 2)))
    with pytest.raises(dp.linalg.LinAlgError):
        dp.linalg.cholesky(dp.asarray([[1.0, 0.0], [0.0, -1.0]]))
    for name in sorted(SQUARE):
        with pytest.raises(dp.exceptions.ShapeError, match="square"):
            getattr(dp.linalg, name)(dp.ones((2, 3)))


FORTH = [
    *("fft", "ifft", "fftn", "ifftn", "rfft", "rfftn"),
    *("hfft", "ihfft", "irfft", "irfftn", "fft2"),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", FORTH)
def test_transforms(name: str, dtype: str) -> None:
    a = matrices(4, 6, dtype=dtype)
    x = dp.asarray(a)
    if name in ("rfft", "rfftn", "ihfft") and dtype.startswith("complex"):
        with pytest.raises(dp.exceptions.DTypeError):
            getattr(dp.fft, name)(x)
        return
    for options in ({}, {"norm": "ortho"}):
        expected = getattr(np.fft, name)(a, **options)
        assert_same(getattr(dp.fft, name)(x, **options), expected)


def test_transforms_of_other_lengths_and_axes() -> None:
    a = matrices(4, 6)
    x = dp.asarray(a)
    assert_same(dp.fft.fft(x, n=9, axis=0), np.fft.fft(a, n=9, axis=0))
    assert_same(dp.fft.irfft(dp.fft.rfft(x), n=6), a)
    assert_same(dp.fft.fftshift(x), np.fft.fftshift(a))
    assert_same(dp.fft.ifftshift(x, axes=1), np.fft.ifftshift(a, axes=1))
    for name in ("fftfreq", "rfftfreq"):
        for n in (5, 8):
            assert_same(getattr(dp.fft, name)(n, d=0.5), getattr(np.fft, name)(n, d=0.5))
    with pytest.raises(dp.exceptions.AxisError):
        dp.fft.fft(x, axis=2)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_of_nothing(name: str, executor: str) -> None:
    """The result for an empty array is zeros in NumPy's shape and dtype."""
    takes_complex = name not in ("rfft", "ihfft")
    for dtype in ("float32", "float64", "int8", *(["complex64"] if takes_complex else [])):
        for shape, axis in (((0, 0), 0), ((0, 2), 1), ((2, 0), 0), ((2, 0), 1)):
            a = np.zeros(shape, dtype)
            expected = np.zeros_like(getattr(np.fft, name)(a, n=3, axis=axis))
            assert_same(getattr(dp.fft, name)(dp.asarray(a), n=3, axis=axis), expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting(dtype: str, descending: bool, queue: Any) -> None:
    a = RNG.integers(0, 5, (3, 40)).astype(dtype)
    x = dp.asarray(a, sycl_queue=queue)
    for axis in (0, -1):
        ascending = np.sort(a, axis=axis)
        expected = np.flip(ascending, axis) if descending else ascending
        assert_same(dp.sort(x, axis=axis, descending=descending), expected)
        order = dp.argsort(x, axis=axis, descending=descending)
        assert_same(dp.take_along_axis(x, order, axis=axis), expected)
    if not descending:
        assert_same(dp.argsort(x), np.argsort(a, kind="stable"))
        y = x.copy()
        y.sort(0)
        assert_same(y, np.sort(a, axis=0))


def test_stable_and_descending() -> None:
    x = dp.asarray([1, 0, 1, 0])
    assert dp.argsort(x, descending=True).tolist() == [0, 2, 1, 3]


def test_unique_counts_every_nan() -> None:
    x = dp.asarray([1.0, np.nan, 1.0, np.nan])
    values, counts = dp.unique_counts(x)
    assert values.shape == (3,)
    assert counts.tolist() == [2, 1, 1]
    found = dp.unique_all(dp.asarray([[3, 1], [3, 2]]))
    assert found.values.tolist() == [1, 2, 3]
    assert found.inverse_indices.tolist() == [[2, 0], [2, 1]]
    assert found.indices.tolist() == [1, 3, 0]


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 2, 3)])
def test_pseudo_inverses_of_nothing_have_numpys_dtype(shape: tuple[int, ...]) -> None:
    theirs = np.linalg.pinv(np.zeros(shape, "int32"), rcond=1e-15)
    ours = dp.linalg.pinv(dp.zeros(shape, "int32"), rcond=1e-15)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(("rows", "inner", "columns"), [(128, 128, 128), (1001, 64, 31), (7, 9, 5)])
def test_products_in_parts_of_rows(rows: int, inner: int, columns: int, dtype: str) -> None:
    random = np.random.default_rng(0)
    a = random.integers(-5, 6, (rows, inner)).astype(dtype)
    b = random.integers(-5, 6, (inner, columns)).astype(dtype)
    ours = dp.asarray(a), dp.asarray(b)
    np.testing.assert_array_equal((ours[0] @ ours[1]).asnumpy(), a @ b)
    out = dp.zeros((columns, rows), dtype=dtype)
    dp.matmul(*ours, out=out.T)
    np.testing.assert_array_equal(out.asnumpy(), (a @ b).T)


def test_small_products_start_no_threads_of_blas() -> None:
    rows: list[int] = []

    class Counted(np.ndarray):
        def __getitem__(self, index: Any) -> Any:
            rows.append(index.stop - index.start)
            return super().__getitem__(index)

    a, b = np.ones((200, 128), "float32").view(Counted), np.ones((128, 80), "float32")
    products._multiply_on_host(a, b, np.empty((200, 80), "float32"))
    assert rows
    assert max(rows) * b.size <= products.ONE_CORE_PRODUCTS
