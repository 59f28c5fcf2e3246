"""array-api-extra and array-api-compat use the arrays through the standard only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

xpx = pytest.importorskip("array_api_extra")

A = np.asarray([[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]])


def equal(found: Any, wanted: Any) -> None:
    assert isinstance(found, dp.ndarray)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-12)


def test_functions(queue: Any) -> None:
    x = dp.asarray(A, sycl_queue=queue)
    equal(xpx.atleast_nd(x, ndim=3), A[None])
    equal(xpx.cov(x), np.cov(A))
    equal(xpx.create_diagonal(x[0]), np.diag(A[0]))
    equal(xpx.kron(x, x), np.kron(A, A))
    equal(xpx.nunique(x), 6)
    equal(xpx.one_hot(dp.asarray([0, 2], sycl_queue=queue), 3), np.eye(3)[[0, 2]])
    equal(xpx.pad(x, 1), np.pad(A, 1))
    equal(xpx.setdiff1d(x[0], x[0, :1]), [1, 2])
    equal(xpx.sinc(x), np.sinc(A))
    equal(xpx.nan_to_num(dp.where(x > 7, dp.nan, x)), np.where(A > 7, 0, A))
    equal(xpx.apply_where(x > 2, x, dp.sqrt, lambda v: -v), np.where(A > 2, np.sqrt(A), -A))
    assert xpx.default_dtype(dp) == dp.float64
    assert bool(xpx.isclose(x, x + 1e-12).all())


def test_at_writes_and_copies() -> None:
    x = dp.asarray(A)
    equal(xpx.at(x)[0, 1].set(5.0, copy=True), [[3, 5, 2], [9, 7, 8]])
    equal(x, A)
    equal(xpx.at(x)[:, 0].add(1.0), [[4, 1, 2], [10, 7, 8]])
    equal(xpx.at(x, x > 7).multiply(0.0), [[4, 1, 2], [0, 7, 0]])


def test_compat() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = dp.asarray(A)
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x) is dp
    assert compat.device(x) == x.device
    assert compat.size(x) == 6
    assert not compat.is_lazy_array(x)
    assert compat.to_device(x, x.device) is not None
    assert compat.is_writeable_array(x)
