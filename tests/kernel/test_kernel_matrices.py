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
