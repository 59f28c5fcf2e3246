"""Small matrices in kernels: tuples of row vectors, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp


@dp.kernel
def with_2(item, x, y, inverses, turned, products, images, determinants):
    i = item.get_id(0)
    m = dp.vec_load(x, (i, 0, 0), 2), dp.vec_load(x, (i, 1, 0), 2)
    n = dp.vec_load(y, (i, 0, 0), 2), dp.vec_load(y, (i, 1, 0), 2)
    inverse, turn, product = dp.linalg.inv(m), dp.transpose(m), dp.matmul(m, n)
    for k in range(2):
        dp.vec_store(inverses, (i, k, 0), inverse[k])
        dp.vec_store(turned, (i, k, 0), turn[k])
        dp.vec_store(products, (i, k, 0), product[k])
    dp.vec_store(images, (i, 0), np.matmul(m, n[0]))
    determinants[i] = np.linalg.det(m)


@dp.kernel
def with_3(item, x, y, inverses, turned, products, images, determinants):
    i = item.get_id(0)
    m = dp.vec_load(x, (i, 0, 0), 3), dp.vec_load(x, (i, 1, 0), 3), dp.vec_load(x, (i, 2, 0), 3)
    n = dp.vec_load(y, (i, 0, 0), 3), dp.vec_load(y, (i, 1, 0), 3), dp.vec_load(y, (i, 2, 0), 3)
    inverse, turn, product = np.linalg.inv(m), np.transpose(m), np.matmul(m, n)
    for k in range(3):
        dp.vec_store(inverses, (i, k, 0), inverse[k])
        dp.vec_store(turned, (i, k, 0), turn[k])
        dp.vec_store(products, (i, k, 0), product[k])
    dp.vec_store(images, (i, 0), dp.matmul(m, n[0]))
    determinants[i] = dp.linalg.det(m)


@dp.kernel
def with_4(item, x, y, inverses, turned, products, images, determinants):
    i = item.get_id(0)
    m = (
        dp.vec_load(x, (i, 0, 0), 4),
        dp.vec_load(x, (i, 1, 0), 4),
        dp.vec_load(x, (i, 2, 0), 4),
        dp.vec_load(x, (i, 3, 0), 4),
    )
    n = (
        dp.vec_load(y, (i, 0, 0), 4),
        dp.vec_load(y, (i, 1, 0), 4),
        dp.vec_load(y, (i, 2, 0), 4),
        dp.vec_load(y, (i, 3, 0), 4),
    )
    inverse, turn, product = dp.linalg.inv(m), dp.matrix_transpose(m), dp.matmul(m, n)
    for k in range(4):
        dp.vec_store(inverses, (i, k, 0), inverse[k])
        dp.vec_store(turned, (i, k, 0), turn[k])
        dp.vec_store(products, (i, k, 0), product[k])
    dp.vec_store(images, (i, 0), dp.matmul(m, n[0]))
    determinants[i] = dp.linalg.det(m)


@pytest.mark.parametrize("launch", [dp.call_kernel, dp.simulate])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("size", "kernel"), [(2, with_2), (3, with_3), (4, with_4)])
def test_functions_of_matrices_are_numpys(launch: Any, dtype: str, size: int, kernel: Any) -> None:
    random = np.random.default_rng(size)
    x, y = (random.normal(size=(5, size, size)).astype(dtype) for _ in range(2))
    matrices = [dp.zeros_like(dp.asarray(x)) for _ in range(3)]
    images, determinants = dp.zeros((5, size), dtype=dtype), dp.zeros(5, dtype=dtype)
    launch(kernel, dp.Range(5), dp.asarray(x), dp.asarray(y), *matrices, images, determinants)
    expected = (
        np.linalg.inv(x), x.transpose(0, 2, 1), x @ y,
        (x @ y[:, 0, :, None])[..., 0], np.linalg.det(x),
    )  # fmt: skip
    for found, wanted in zip((*matrices, images, determinants), expected, strict=True):
        tolerance = 2e-4 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=tolerance, atol=tolerance)


def test_other_matrices_are_refused() -> None:
    @dp.kernel
    def wrong(item, x):
        m = dp.vec_load(x, 0, 2), dp.vec_load(x, 0, 2), dp.vec_load(x, 0, 2)
        x[0] = dp.linalg.det(m)

    with pytest.raises(
        dp.exceptions.KernelCompileError,
        match=r"det\(Tuple\(float64x2, float64x2, float64x2\)\) is not available",
    ):
        wrong[1](dp.ones(4))


@dp.kernel
def decompose_2(item, x, left, values, right):
    i = item.get_id(0)
    u, s, vh = dp.linalg.svd((dp.vec_load(x, (i, 0, 0), 2), dp.vec_load(x, (i, 1, 0), 2)))
    dp.vec_store(values, (i, 0), s)
    for k in range(2):
        dp.vec_store(left, (i, k, 0), u[k])
        dp.vec_store(right, (i, k, 0), vh[k])


@dp.kernel
def decompose_3(item, x, left, values, right):
    i = item.get_id(0)
    m = dp.vec_load(x, (i, 0, 0), 3), dp.vec_load(x, (i, 1, 0), 3), dp.vec_load(x, (i, 2, 0), 3)
    u, s, vh = np.linalg.svd(m)
    dp.vec_store(values, (i, 0), s)
    for k in range(3):
        dp.vec_store(left, (i, k, 0), u[k])
        dp.vec_store(right, (i, k, 0), vh[k])


def matrices_of(size: int, dtype: str) -> np.ndarray[Any, Any]:
    """Return random matrices, and singular, scaled and nearly singular ones."""
    rng = np.random.default_rng(size)
    x = rng.normal(size=(40, size, size))
    row = rng.normal(size=size)
    special = [
        *(np.zeros((size, size)), np.eye(size), -np.eye(size)[::-1], np.ones((size, size))),
        *(np.outer(row, row), np.outer(row, np.eye(size)[1]), np.diag(np.arange(size) * 1.0)),
        *(x[0] * 1e-30, x[1] * 1e30, np.outer(row, row) + 1e-9 * x[2]),
        *(np.triu(x[3]), np.diag(10.0 ** -np.arange(0, 9 * size, 9))),
        rng.integers(-2, 3, (size, size)),
    ]  # fmt: skip
    return np.concatenate([x, np.stack(special)]).astype(dtype)


@pytest.mark.parametrize("launch", [dp.call_kernel, dp.simulate])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("size", "kernel"), [(2, decompose_2), (3, decompose_3)])
def test_singular_values_are_numpys(launch: Any, dtype: str, size: int, kernel: Any) -> None:
    x = matrices_of(size, dtype)
    left, right = (dp.empty(x.shape, dtype=dtype) for _ in range(2))
    values = dp.empty(x.shape[:2], dtype=dtype)
    launch(kernel, dp.Range(len(x)), dp.asarray(x), left, values, right)
    u, s, vh = (each.asnumpy().astype("float64") for each in (left, values, right))
    size_of = np.abs(x.astype("float64")).max(axis=(1, 2), keepdims=True) + 1e-38
    tolerance = 20 * np.finfo(dtype).eps
    wanted = np.linalg.svd(x.astype("float64"), compute_uv=False)
    assert (np.abs(s - wanted) / size_of[:, 0]).max() <= tolerance
    assert (np.abs((u * s[:, None]) @ vh - x) / size_of).max() <= tolerance
    for each in (u, vh):
        assert np.abs(each @ each.transpose(0, 2, 1) - np.eye(size)).max() <= tolerance


def test_singular_values_as_python() -> None:
    x = matrices_of(3, "float64")
    left, values, right = np.zeros(x.shape), np.zeros(x.shape[:2]), np.zeros(x.shape)
    dp.simulate(decompose_3, len(x), x, left, values, right, item=7)
    np.testing.assert_allclose(values[7], np.linalg.svd(x[7])[1], rtol=1e-13)
