"""Memory shared with other libraries: what they write is seen as if nothing were ever deferred."""

from __future__ import annotations

from typing import Any

import dpnp
import dpnp.tensor
import pytest

import dparray as dp


@pytest.mark.parametrize("library", [dpnp, dpnp.tensor])
def test_a_neighbour_writes_into_what_a_pending_array_read(library: Any) -> None:
    theirs = library.ones(5)
    ours = dp.asarray(theirs)
    y = ours + 1
    theirs[...] = 5
    assert y.tolist() == [2.0] * 5
    assert ours.tolist() == [5.0] * 5


def test_writes_through_dlpack_are_seen_in_order() -> None:
    theirs = dpnp.tensor.ones(5)
    ours = dp.from_dlpack(theirs)
    y = ours + 1
    theirs[...] = 5
    assert y.tolist() == [2.0] * 5
    assert ours.tolist() == [5.0] * 5


def test_an_exported_array_is_never_deferred_on() -> None:
    ours = dp.ones(5)
    before = ours + 1
    theirs = dpnp.tensor.asarray(ours)
    after = ours + 1
    theirs[...] = 7
    assert before.tolist() == [2.0] * 5
    assert after.tolist() == [2.0] * 5
    assert ours.tolist() == [7.0] * 5
