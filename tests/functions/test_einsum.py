"""Einstein summation, computed with the code generator of contractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import config, tilelang
from tests.functions.comparison import compare

SIZES = {"i": 13, "j": 17, "k": 19, "l": 11, "m": 5}
GENERAL = [
    *("ij->ji", "ij->", "ijk->ik", "ijk,ijk->i", "ijk,jk->i", "ijk,j->ik", "i,j->ij", "i,j,k->kij"),
    *("ij,jk->ki", "kij,kjl->ikl", "ijk,kl->ijl", "ij,ij->ji", "...j,j->...", "ij...->ji..."),
    *("ijk,ij,k->i", "ijk,im,km->jm", "iji->j", "ij,jj->i"),
    *("klij,kl->ij", "klij,lk->ji", "jik,ij->kj"),
]


def operand(names: str, dtype: str, random: Any) -> np.ndarray:
    names = names.replace("...", "lm")
    shape = [SIZES["i"] if names.count(each) > 1 else SIZES[each] for each in names]
    return random.integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "float16"])
@pytest.mark.parametrize("subscripts", GENERAL)
def test_contractions_are_numpys(subscripts: str, dtype: str) -> None:
    random = np.random.default_rng(1)
    given = subscripts.split("->")[0].split(",")
    operands = [operand(names, dtype, random) for names in given]
    if subscripts == "ij,jj->i":
        operands[1] = operands[1][:1, :1].repeat(17, 0).repeat(17, 1)
    expected = np.einsum(subscripts, *operands, optimize=dtype != "float16")
    with dp.config.override(host_tier=False):
        found = dp.einsum(subscripts, *map(dp.asarray, operands)).asnumpy()
    tolerance = 3e-2 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, strict=True)


def test_axes_of_one_element_stretch() -> None:
    x, y = np.arange(12.0).reshape(3, 4), np.arange(3.0).reshape(3, 1)
    with dp.config.override(host_tier=False):
        found = dp.einsum("ij,ij->j", dp.asarray(x), dp.asarray(y))
    np.testing.assert_allclose(found.asnumpy(), np.einsum("ij,ij->j", x, y))


def test_large_sums_are_pending_and_fuse() -> None:
    host = np.random.default_rng(0).random((400, 500), dtype=np.float32)
    x = dp.asarray(host)
    rows = dp.einsum("ij,ij->i", x + 1, x)
    assert rows.is_pending
    assert len(dp.explain(rows * 2).kernels) == 1
    np.testing.assert_allclose(rows.asnumpy(), ((host + 1) * host).sum(1), rtol=1e-5)


def test_the_general_kernel_is_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "host_tier", False)
    host = np.random.default_rng(0).integers(-4, 5, (30, 30, 30)).astype(np.int32)
    x = dp.asarray(host)
    expected = np.einsum("iji,jkk->ik", host, host)
    assert (dp.einsum("iji,jkk->ik", x, x).asnumpy() == expected).all()
    same = tilelang.function(
        "function (A[N, M, N], B[M, K, K]) -> (C) { C[i, k: N, K] = +(A[i, j, i] * B[j, k, k]); }"
    )
    assert (same(x, x).asnumpy() == expected).all()


@pytest.mark.parametrize("host_tier", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "int8"])
def test_single_views_in_einstein_notation(dtype: str, host_tier: bool) -> None:
    x = np.arange(12).reshape(4, 3).astype(dtype)
    with dp.config.override(host_tier=host_tier, lazy=False):
        for rows, columns in ((slice(1, None), slice(None)), (slice(None), slice(1, 2))):
            compare(lambda xp, r=rows, c=columns: xp.einsum("ij->ji", xp.asarray(x)[r, c]))
        compare(lambda xp: xp.einsum("i->i", xp.asarray(x)[1]))
