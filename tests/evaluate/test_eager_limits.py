"""Which arrays the host computes eagerly: the size in bytes and the strides decide."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import dparray as dp


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Return a cost model for which 117,647 additions are computed eagerly."""
    terms = {"launch": 117_647e-9, "addition": 1e-9}
    with dp.config.override(cost_model=terms):
        yield


@pytest.mark.parametrize(
    ("dtype", "size", "is_at_once"),
    [
        ("f8", 110_000, True),
        ("f8", 120_000, False),
        ("c16", 110_000, True),
        ("i4", 230_000, True),
        ("f4", 230_000, True),
        ("f4", 240_000, False),
        ("f2", 120_000, False),
    ],
)
def test_narrow_numbers_count_by_their_bytes(dtype: str, size: int, is_at_once: bool) -> None:
    host = (np.arange(size) % 100).astype(dtype)
    x = dp.asarray(host)
    for ours, theirs in ((x + x, host + host), (x * 2, host * 2), (-x, -host)):
        assert ours.is_pending is not is_at_once
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours.asnumpy(), theirs)


def test_views_with_gaps_between_rows_count_more_than_twice() -> None:
    host = np.arange(260.0 * 260).reshape(260, 260)
    x = dp.asarray(host)
    assert not (x[1:] - x[:-1]).is_pending
    assert (x[:, 1:] - x[:, :-1]).is_pending
    assert not (x[:150, 1:] - x[:150, :-1]).is_pending
    np.testing.assert_array_equal((x[:, 1:] - x[:, :-1]).asnumpy(), host[:, 1:] - host[:, :-1])


def test_an_outer_operation_counts_as_its_result() -> None:
    column, row = np.arange(400, dtype="i4"), np.arange(400, dtype="i4")
    both = dp.asarray(np.stack([column, row], axis=1))
    made = dp.add.outer(both[:, 0], both[:, 1])
    assert not made.is_pending
    np.testing.assert_array_equal(made.asnumpy(), np.add.outer(column, row))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_large_results_are_in_used_memory_and_in_numpys_order(dtype: str) -> None:
    host = np.linspace(1, 2, 200 * 210).reshape(200, 210).astype(dtype)
    x = dp.asarray(host)
    for ours, theirs in (
        (x[:, 5:] + x[:, :-5], host[:, 5:] + host[:, :-5]),
        (x * 2, host * 2),
        (3 - x, 3 - host),
        (x.T / x.T, host.T / host.T),
        (x[::-1] * x[::-1], host[::-1] * host[::-1]),
        (x[:, :1] + x, host[:, :1] + host),
    ):
        assert not ours.is_pending
        assert ours.strides == theirs.strides
        np.testing.assert_array_equal(ours.asnumpy(), theirs)


def test_stencils_of_views_become_kernels_below_the_limit_of_one_addition() -> None:
    x = dp.asarray(np.random.default_rng(0).random((40, 40, 40)))
    inner = x[1:-1, 1:-1, 1:-1]
    total = x[2:, 1:-1, 1:-1] - 2 * inner + x[:-2, 1:-1, 1:-1]
    total = total + x[1:-1, 2:, 1:-1] - 2 * inner + x[1:-1, :-2, 1:-1]
    total = total + x[1:-1, 1:-1, 2:] - 2 * inner + x[1:-1, 1:-1, :-2]
    assert "the cost model prefers it" not in str(dp.explain(total))
    values = x.asnumpy()
    wanted = sum(np.roll(values, step, axis) for axis in range(3) for step in (1, -1)) - 6 * values
    np.testing.assert_allclose(total.asnumpy(), wanted[1:-1, 1:-1, 1:-1], atol=1e-12)


def test_the_larger_of_large_arrays_is_written_without_a_warning() -> None:
    host = np.linspace(-1, 1, 40_000)
    x, out = dp.asarray(host), dp.empty(40_000)
    np.testing.assert_array_equal(dp.maximum(x, 0.5).asnumpy(), np.maximum(host, 0.5))
    np.testing.assert_array_equal(dp.minimum(x, -x, out=out).asnumpy(), np.minimum(host, -host))
