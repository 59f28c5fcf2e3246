"""Shapes, joins and splits compared with NumPy; views in NumPy are views here, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dparray as dp
from tests.support import examples

VIEWS = {
    "reshape": lambda xp, x: x.reshape(4, 6),
    "reshape with -1": lambda xp, x: xp.reshape(x, (-1, 3)),
    "ravel": lambda xp, x: xp.ravel(x),
    "transpose": lambda xp, x: xp.transpose(x),
    "transpose axes": lambda xp, x: x.transpose(2, 0, 1),
    "T": lambda xp, x: x.T,
    "swapaxes": lambda xp, x: xp.swapaxes(x, 0, 2),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, -1),
    "expand_dims": lambda xp, x: xp.expand_dims(x, 1),
    "squeeze": lambda xp, x: xp.squeeze(x[:, :1], 1),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (5, 2, 3, 4)),
    "flip": lambda xp, x: xp.flip(x, 1),
    "split": lambda xp, x: xp.split(x, 3, axis=1)[1],
    "rot90": lambda xp, x: xp.rot90(x, 1, (0, 1)),
}
COPIES = {
    "flatten": lambda xp, x: x.flatten(),
    "reshape of a transposed": lambda xp, x: x.T.reshape(-1),
    "concatenate": lambda xp, x: xp.concatenate([x, x[:1] * 2], 0),
    "concatenate flat": lambda xp, x: xp.concatenate([x, x], None),
    "stack": lambda xp, x: xp.stack([x, -x], axis=-1),
    "vstack": lambda xp, x: xp.vstack([x[0], x[1]]),
    "hstack": lambda xp, x: xp.hstack([x, x]),
    "roll": lambda xp, x: xp.roll(x, 2, 2),
    "roll flat": lambda xp, x: xp.roll(x, -5),
    "repeat": lambda xp, x: xp.repeat(x, 2, 1),
    "tile": lambda xp, x: xp.tile(x, (2, 1, 2)),
    "sort": lambda xp, x: xp.sort(x[:, ::-1], axis=1),
    "argsort": lambda xp, x: xp.argsort(-x, axis=2),
    "tril": lambda xp, x: xp.tril(x, 1),
    "where": lambda xp, x: xp.where(x > 5, x, 0),
    "take": lambda xp, x: xp.take(x, [2, 0], 1),
}


def numbered(xp: Any, **place: Any) -> Any:
    return xp.asarray(np.arange(24, dtype="int32").reshape(2, 3, 4), **place)


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(name: str, queue: Any) -> None:
    host, x = numbered(np).copy(), numbered(dp, sycl_queue=queue)
    wanted, found = VIEWS[name](np, host), VIEWS[name](dp, x)
    np.testing.assert_array_equal(found.asnumpy(), wanted)
    host *= 2
    x *= 2
    np.testing.assert_array_equal(found.asnumpy(), wanted)
    assert found.queue == queue


@pytest.mark.parametrize("name", COPIES)
def test_copies_share_nothing(name: str, queue: Any) -> None:
    host, x = numbered(np).copy(), numbered(dp, sycl_queue=queue, usm_type="shared")
    wanted, found = COPIES[name](np, host), COPIES[name](dp, x)
    np.testing.assert_array_equal(found.asnumpy(), wanted)
    assert found.dtype == wanted.dtype
    x[...] = 0
    np.testing.assert_array_equal(found.asnumpy(), wanted)
    assert found.queue == queue
    assert found.usm_type == "shared"


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@settings(max_examples=examples(200), deadline=None)
@given(shape=shapes, data=st.data())
def test_reshape_of_any_layout(shape: tuple[int, ...], data: st.DataObject) -> None:
    host = np.arange(int(np.prod(shape))).reshape(shape)
    x = dp.asarray(host)
    order = data.draw(st.permutations(range(len(shape))))
    step = data.draw(st.sampled_from([1, -1]))
    host, x = host.transpose(order)[::step], x.transpose(order)[::step]
    size = host.size
    divisors = [extent for extent in range(1, size + 1) if size % extent == 0]
    first = data.draw(st.sampled_from(divisors))
    np.testing.assert_array_equal(x.reshape(first, -1).asnumpy(), host.reshape(first, -1))


@pytest.mark.parametrize(
    "act",
    [
        lambda x: x.reshape(5, 5),
        lambda x: dp.concatenate([x, dp.ones((2, 3, 5))]),
        lambda x: dp.stack([x, x[0]]),
        lambda x: dp.broadcast_to(x, (2, 3, 5)),
        lambda x: dp.squeeze(x, 0),
        lambda x: dp.split(x, 5, 2),
    ],
)
def test_shapes_that_do_not_fit_are_value_errors(act: Any) -> None:
    with pytest.raises(ValueError, match=r"\d"):
        act(numbered(dp))


@pytest.mark.parametrize(
    "act", [lambda x: x.sum(3), lambda x: dp.flip(x, -4), lambda x: x.T.max(7)]
)
def test_an_axis_outside_is_an_axis_error(act: Any) -> None:
    with pytest.raises(dp.AxisError, match="3 dimensions"):
        act(numbered(dp))


def test_small_results_have_memory_of_their_own() -> None:
    """NumPy reshapes some of its results; an array that does not own its memory is a view here."""
    x = dp.asarray([[1.0, 2.0], [3.0, 4.0]])
    for make in (
        lambda: dp.tile(x, (2, 1)),
        lambda: dp.roll(x, 1),
        lambda: dp.stack([x, x]),
        lambda: dp.column_stack([x, x]),
        lambda: dp.outer(x, x),
        lambda: dp.repeat(x, 2),
        lambda: dp.cumsum(x),
        lambda: dp.linspace(0, 1, 5),
        lambda: x[dp.asarray([1, 0])],
    ):
        made = make()
        expected = made.asnumpy()
        wide = dp.broadcast_to(made, (3, *made.shape))
        np.testing.assert_array_equal(wide.asnumpy(), np.broadcast_to(expected, wide.shape))
        made[...] = 0
        assert not bool(made.any())
        np.testing.assert_array_equal(x.asnumpy(), [[1, 2], [3, 4]])
