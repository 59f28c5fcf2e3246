"""Shapes, norms, sums of products, histograms and transforms of arrays sharded over devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp

DEVICES = [dp.Device(dpctl.SyclQueue("cpu")) for _ in range(3)]
VALUES = np.random.default_rng(0).random((12, 8)) - 0.3
OTHER = np.random.default_rng(1).random((5, 8))
ROWS = np.random.default_rng(2).random((12, 3))

# Calls with a module, an array, and further sharded ones; for NumPy, plain arrays.
CALLS: dict[str, Callable[..., Any]] = {
    "reshape": lambda m, x, o, r: m.reshape(x, (12, 2, 4)),
    "reshape of rows": lambda m, x, o, r: m.reshape(x, (6, -1)),
    "reshape method": lambda m, x, o, r: x.reshape(12, 4, 2),
    "leading ones": lambda m, x, o, r: m.reshape(x, (1, 12, 8, 1)),
    "ravel": lambda m, x, o, r: m.ravel(x),
    "expand_dims": lambda m, x, o, r: m.expand_dims(x, 0),
    "expand_dims, two": lambda m, x, o, r: m.expand_dims(x, (1, 3)),
    "squeeze": lambda m, x, o, r: m.squeeze(x[:, :1]),
    "squeeze axis": lambda m, x, o, r: m.squeeze(m.expand_dims(x, 0), 0),
    "swapaxes": lambda m, x, o, r: m.swapaxes(x, 0, 1),
    "norm": lambda m, x, o, r: m.linalg.norm(x),
    "norm of columns": lambda m, x, o, r: m.linalg.norm(x, axis=0),
    "norm of rows": lambda m, x, o, r: m.linalg.norm(x, axis=1, keepdims=True),
    "norm 1": lambda m, x, o, r: m.linalg.norm(x, 1),
    "norm inf": lambda m, x, o, r: m.linalg.norm(x, np.inf),
    "norm -1": lambda m, x, o, r: m.linalg.norm(x, -1, keepdims=True),
    "norm 3 of rows": lambda m, x, o, r: m.linalg.norm(x, 3, axis=1),
    "norm 0 of columns": lambda m, x, o, r: m.linalg.norm(x, 0, axis=0),
    "vector_norm": lambda m, x, o, r: m.linalg.vector_norm(x, axis=0, ord=-np.inf),
    "einsum, cut in the result": lambda m, x, o, r: m.einsum("ij,kj->ik", x, o),
    "einsum, cut summed": lambda m, x, o, r: m.einsum("ij,ik->kj", x, r),
    "einsum of all": lambda m, x, o, r: m.einsum("ij,ij->", x, x),
    "einsum with a transpose": lambda m, x, o, r: m.einsum("ij,ji->", x, x.T),
    "einsum, implicit": lambda m, x, o, r: m.einsum("ij,ik", x, r),
    "einsum of one": lambda m, x, o, r: m.einsum("ij->ji", x),
    "histogram": lambda m, x, o, r: m.histogram(x, bins=5),
    "histogram in a range": lambda m, x, o, r: m.histogram(x, 4, (0, 0.5)),
    "histogram, density": lambda m, x, o, r: m.histogram(x, 4, density=True),
    "histogram, weights": lambda m, x, o, r: m.histogram(x, 4, weights=x),
    "histogram, edges": lambda m, x, o, r: m.histogram(x, [-0.3, 0.0, 0.5, 0.7]),
    "fft": lambda m, x, o, r: m.fft.fft(x),
    "rfft": lambda m, x, o, r: m.fft.rfft(x, axis=1),
    "irfft": lambda m, x, o, r: m.fft.irfft(x, n=6),
    "fftn": lambda m, x, o, r: m.fft.fftn(x, axes=(1,)),
    "fftshift": lambda m, x, o, r: m.fft.fftshift(x, axes=1),
}


def _host(value: Any) -> Any:
    return value.asnumpy() if hasattr(value, "asnumpy") else value


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("axis", [0, None])
def test_calls_are_numpys(name: str, axis: int | None) -> None:
    wanted = CALLS[name](np, VALUES, OTHER, ROWS)
    x = dp.distribute(VALUES, DEVICES, axis=axis)
    other = dp.distribute(OTHER, DEVICES, axis=None)
    rows = dp.distribute(ROWS, DEVICES, axis=axis)
    found = CALLS[name](dp, x, other, rows)
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for result, expected in pairs:
        assert isinstance(result, dp.sharding.ShardedArray)
        assert result.shape == np.shape(expected)
        np.testing.assert_allclose(_host(result), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.reshape(8, 12), dp.ShardingError),
        (lambda x: x.reshape(5, 5), dp.ShapeError),
        (lambda x: dp.fft.fft(x, axis=0), dp.ShardingError),
        (lambda x: dp.fft.fft2(x), dp.ShardingError),
        (lambda x: dp.squeeze(x[:, :1], 0), dp.ShardingError),
        (lambda x: dp.einsum("ij,kj->ik", x, dp.asarray(OTHER)), dp.ShardingError),
        (lambda x: dp.einsum("ij,jk->ik", x, dp.distribute(OTHER.T, DEVICES)), dp.ShardingError),
        (lambda x: dp.einsum("ijk->i", x), dp.ShapeError),
        (lambda x: dp.linalg.norm(x, 2), dp.UnsupportedFeatureError),
        (lambda x: dp.where(x > 2), dp.UnsupportedFeatureError),
        (lambda x: np.where(x > 2), dp.UnsupportedFeatureError),
        (lambda x: dp.histogram(x, "auto"), dp.UnsupportedFeatureError),
        (lambda x: dp.histogram(x, 4, weights=x[:, :4]), dp.ShardingError),
    ],
)
def test_calls_that_would_move_elements_raise(call: Callable[[Any], Any], error: Any) -> None:
    with pytest.raises(error):
        call(dp.distribute(VALUES, DEVICES))


def test_explain_gives_the_plan_of_each_shard() -> None:
    x = dp.distribute(np.zeros((300_000, 2)), DEVICES)
    plans = dp.explain(dp.sin(x) * 2)
    assert len(plans) == 3
    assert all(plan.is_pending for plan in plans)
    assert str(plans).count("shard ") == 3


def test_a_matrix_is_the_norm_of_integers() -> None:
    x = dp.distribute(np.arange(12, dtype="int8").reshape(6, 2), DEVICES)
    assert float(dp.linalg.norm(x)) == pytest.approx(np.linalg.norm(np.arange(12.0)))
