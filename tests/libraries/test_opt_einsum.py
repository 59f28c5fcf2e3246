"""opt_einsum contracts arrays with dparray's tensordot and einsum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

opt_einsum = pytest.importorskip("opt_einsum")

A, B, C = (np.random.default_rng(0).random(shape) for shape in ((8, 9), (9, 7), (7, 5)))


@pytest.mark.parametrize("formula", ["ij,jk,kl->il", "ij,jk,kl->l", "ij,jk,kl->", "ij,jk,kl->lij"])
@pytest.mark.parametrize("optimize", ["auto", "greedy", False])
def test_contractions(queue: Any, formula: str, optimize: Any) -> None:
    arrays = [dp.asarray(values, sycl_queue=queue) for values in (A, B, C)]
    found = opt_einsum.contract(formula, *arrays, optimize=optimize)
    assert isinstance(found, dp.ndarray)
    assert found.sycl_queue == queue
    np.testing.assert_allclose(found.asnumpy(), np.einsum(formula, A, B, C), rtol=1e-12)


def test_an_expression_is_used_again() -> None:
    expression = opt_einsum.contract_expression("ij,jk->ik", A.shape, B.shape)
    found = expression(dp.asarray(A), dp.asarray(B))
    np.testing.assert_allclose(found.asnumpy(), A @ B, rtol=1e-12)
