"""einops accepts dparray arrays like those of every library it supports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

einops = pytest.importorskip("einops")

VALUES = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("name", "pattern", "keywords"),
    [
        ("rearrange", "a b c -> c (a b)", {}),
        ("rearrange", "a (b1 b2) c -> a b1 (b2 c)", {"b1": 3}),
        ("reduce", "a b c -> b", {"reduction": "sum"}),
        ("reduce", "a b (c two) -> a c", {"reduction": "max", "two": 2}),
        ("reduce", "a b c -> a", {"reduction": "mean"}),
        ("repeat", "a b c -> a two b c", {"two": 2}),
    ],
)
def test_patterns(queue: Any, name: str, pattern: str, keywords: dict[str, Any]) -> None:
    x = dp.asarray(VALUES, sycl_queue=queue)
    found = getattr(einops, name)(x, pattern, **keywords)
    assert isinstance(found, dp.ndarray)
    assert found.sycl_queue == queue
    np.testing.assert_allclose(
        found.asnumpy(), getattr(einops, name)(VALUES, pattern, **keywords), rtol=1e-14
    )


def test_several_arrays() -> None:
    x = dp.asarray(VALUES)
    packed, shapes = einops.pack([x, x[..., 0]], "a b *")
    assert packed.shape == (2, 3, 5)
    parts = einops.unpack(packed, shapes, "a b *")
    np.testing.assert_array_equal(parts[0].asnumpy(), VALUES)
    found = einops.einsum(x, x, "a b c, d b c -> a d")
    np.testing.assert_allclose(found.asnumpy(), np.einsum("abc,dbc->ad", VALUES, VALUES))
    stacked = einops.rearrange([x, x], "two a b c -> a b c two")
    assert stacked.shape == (2, 3, 4, 2)
