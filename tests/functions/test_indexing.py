"""Indexing, reading and writing, compared with NumPy on random indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dparray as dp
from tests.support import examples, numbered, on_device

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)


@st.composite
def advanced_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Draw integer arrays, lists, masks, slices, integers, ``None`` and ``...`` mixed."""
    entries: list[Any] = []
    axis = 0
    result = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=3))
    while axis < len(shape):
        extent = shape[axis]
        kinds = ["slice", "none"] + (["integer", "array", "list"] if extent else []) + ["mask"]
        kind = draw(st.sampled_from(kinds))
        if kind == "none":
            if sum(entry is None for entry in entries) < 2:
                entries.append(None)
            continue
        if kind == "slice":
            entries.append(draw(st.slices(extent)))
        elif kind == "integer":
            entries.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "array":
            entries.append(
                draw(hnp.arrays("int64", result, elements=st.integers(-extent, extent - 1)))
            )
        elif kind == "list":
            entries.append(draw(st.lists(st.integers(-extent, extent - 1), min_size=1, max_size=3)))
        else:
            entries.append(draw(hnp.arrays("bool", extent)))
        axis += 1
    if draw(st.booleans()):  # "..." stands for some of the axes, or for none
        at = draw(st.integers(0, len(entries)))
        entries[at : draw(st.integers(at, len(entries)))] = [Ellipsis]
    return tuple(entries)


def outcome(action: Any) -> Any:
    """Return the result of an action, or a marker if it raises."""
    try:
        return action()
    except (IndexError, ValueError) as error:
        return f"refused: {isinstance(error, IndexError)}"


def assert_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, str):
        assert isinstance(found, str), f"NumPy refuses ({wanted}), we do not: {found!r}"
        return
    assert not isinstance(found, str), f"we refuse ({found}), NumPy does not"
    np.testing.assert_array_equal(found.asnumpy(), wanted)
    assert found.shape == np.shape(wanted)


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_basic_indices_are_views(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    host = numbered(shape)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    x = dp.asarray(host)
    view = x[index]
    assert_same(view, host[index])
    host[index] = -1
    x[index] = -1
    np.testing.assert_array_equal(x.asnumpy(), host)
    entries = index if isinstance(index, tuple) else (index,)
    is_element = view.shape == () and Ellipsis not in entries
    before = numbered(shape)[index]
    np.testing.assert_array_equal(view.asnumpy(), before if is_element else host[index])


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("size", [5, 100_000])
def test_integers_select_copies(size: int, lazy: bool) -> None:
    """As with NumPy's scalars, programs exchange, store and iterate over elements."""
    with dp.config.override(lazy=lazy):
        x = dp.arange(size) * 2
        x[0], x[1] = x[1], x[0]
        assert x[:2].tolist() == [2, 0]
        kept, seen = x[3], x[3, ...]
        x[3] = 50
        assert (int(kept), int(seen)) == (6, 50)
        pending = x + 1
        kept = pending[2]
        pending[2] = 0
        assert int(kept) == 5
        x[4] += 1
        assert int(x[4]) == 9
        scalar = dp.asarray(1)
        kept = scalar[()]
        scalar[...] = 2
        assert int(kept) == 1


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_advanced_indices_read(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(advanced_indices(shape))
    host = numbered(shape)
    x = dp.asarray(host)
    with dp.config.override(host_tier=data.draw(st.booleans())):
        assert_same(outcome(lambda: x[on_device(index)]), outcome(lambda: host[index]))


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_advanced_indices_write(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(advanced_indices(shape))
    host = numbered(shape)
    x = dp.asarray(host)
    selected = outcome(lambda: host[index])
    if isinstance(selected, str):
        return
    # With distinct values, the result for repeated positions would depend on an unspecified order.
    host[index] = 77
    with dp.config.override(host_tier=data.draw(st.booleans())):
        x[on_device(index)] = 77
    np.testing.assert_array_equal(x.asnumpy(), host)


@pytest.mark.parametrize(
    "index",
    [
        (range(3), (2, 0, 1)),
        ((1, 2),),
        (..., (0, 2)),
        ((True, False, True, False),),
        (((0, 1), (1, 0)),),
        ((),),
        ((1.5,),),
        ((True, False),),
    ],
    ids=str,
)
def test_tuples_inside_an_index_are_arrays(index: Any, executor: str) -> None:
    host = numbered((4, 3))
    x = dp.asarray(host)
    assert_same(outcome(lambda: x[index]), outcome(lambda: host[index]))
    if not isinstance(outcome(lambda: host[index]), str):
        x[index] = -1
        host[index] = -1
        np.testing.assert_array_equal(x.asnumpy(), host)


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), 1, ..., [[0, 2, 1], [1, 1, 0]]),
        (slice(None), None, -2, ..., [2, 0]),
        ([1, 0], ..., 0, 2),
        (..., 1, [2, 0]),
        (slice(None), [1], ...),
    ],
)
def test_an_ellipsis_for_no_axes_is_between_indices(index: Any, executor: str) -> None:
    host = numbered((4, 2, 3))
    x = dp.asarray(host)
    values = host[index] + 100  # one value for elements that an index has twice
    assert_same(x[index], host[index])
    x[index] = dp.asarray(values)
    host[index] = values
    np.testing.assert_array_equal(x.asnumpy(), host)


@pytest.mark.parametrize(
    "index",
    [
        lambda rows, columns, mask: (True, mask),
        lambda rows, columns, mask: (mask, True),
        lambda rows, columns, mask: (True, True, mask),
        lambda rows, columns, mask: (True, rows),
        lambda rows, columns, mask: (np.True_, rows),
        lambda rows, columns, mask: (rows, True),
        lambda rows, columns, mask: (True, slice(None), columns),
        lambda rows, columns, mask: (True, ..., columns),
        lambda rows, columns, mask: (None, True, mask),
    ],
)
def test_a_boolean_beside_a_mask_takes_no_axis(index: Any, executor: str) -> None:
    values = np.arange(12.0).reshape(3, 4)
    masks = values[:, 1] > 2, values[1] > 5, values > 4
    x = dp.asarray(values)
    found = x[index(*map(dp.asarray, masks))]
    np.testing.assert_array_equal(found.asnumpy(), values[index(*masks)])
    x[index(*map(dp.asarray, masks))] = -1
    values[index(*masks)] = -1
    np.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.parametrize("host_tier", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize(
    "index",
    [
        lambda rows, columns, mask: (False, rows),
        lambda rows, columns, mask: (rows, np.False_),
        lambda rows, columns, mask: (mask, False),
        lambda rows, columns, mask: (True, False, mask),
        lambda rows, columns, mask: (False, slice(None), columns),
        lambda rows, columns, mask: (False, ..., columns),
        lambda rows, columns, mask: (False, [1, 2]),
        lambda rows, columns, mask: False,
    ],
)
def test_false_beside_a_mask(index: Any, count: int, host_tier: bool) -> None:
    values = np.arange(12.0).reshape(3, 4)
    masks = [
        np.arange(size).reshape(shape) < count for size, shape in ((3, 3), (4, 4), (12, (3, 4)))
    ]
    x, given = dp.asarray(values), index(*masks)
    ours = index(*map(dp.asarray, masks))
    with dp.config.override(host_tier=host_tier):
        try:
            wanted = values[given]
        except IndexError:
            with pytest.raises(IndexError, match="broadcast"):
                x[ours]
            with pytest.raises(IndexError, match="broadcast"):
                x[ours] = -1
        else:
            found = x[ours]
            assert found.shape == wanted.shape
            x[ours] = -1
            values[given] = -1
        np.testing.assert_array_equal(x.asnumpy(), values)


def test_positions_that_are_broadcast_away_are_not_looked_at() -> None:
    host = numbered((2, 3))
    with dp.config.override(host_tier=False):
        assert_same(dp.asarray(host)[[9], :, False], host[[9], :, False])


@pytest.mark.parametrize("strides", [None, (0, 0)])
def test_an_array_without_elements_can_be_written(strides: tuple[int, ...] | None) -> None:
    x = dp.zeros((0, 2), dtype="int32")
    if strides is not None:
        x = dp.broadcast_to(dp.zeros((1, 1), dtype="int32"), (0, 2))
    x[:, [0]] = 77
    x[...] = 1
    assert x.shape == (0, 2)


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_views_of_views(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    host = numbered(shape)
    x = dp.asarray(host)
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(hnp.basic_indices(host.shape))
        if not isinstance(host[index], np.ndarray):
            break
        host, x = host[index], x[index]
    assert_same(x, host)
    host += 1
    x += 1
    assert_same(x, host)


@pytest.mark.parametrize(
    "index",
    [5, -6, (0, 0), [5], [-6], (slice(None), 0), "a", 1.5, (..., ...)],
    ids=str,
)
def test_a_wrong_index_is_an_index_error(index: Any) -> None:
    with pytest.raises(IndexError):
        dp.arange(5)[index]
    x = dp.arange(5)
    with pytest.raises(IndexError):
        x[index] = 1
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_values_broadcast_into_the_selection(queue: Any) -> None:
    host = np.zeros((3, 4), dtype="float32")
    x = dp.asarray(host, sycl_queue=queue)
    for index, value in (
        (slice(1, None), np.arange(4.0)),
        ((slice(None), 1), np.arange(3.0)),
        (np.array([True, False, True]), np.arange(4.0)),
        ((np.array([0, 2]), slice(1, 3)), np.arange(2.0)),
    ):
        host[index] = value
        key = tuple(
            dp.asarray(entry, sycl_queue=queue) if isinstance(entry, np.ndarray) else entry
            for entry in (index if isinstance(index, tuple) else (index,))
        )
        x[key] = dp.asarray(value, sycl_queue=queue)
        np.testing.assert_array_equal(x.asnumpy(), host)


def test_a_value_that_does_not_fit_changes_nothing() -> None:
    x = dp.zeros((3, 4))
    for value in (dp.ones(3), dp.ones((2, 3, 4)), dp.ones((3, 4)) * 1j):
        with pytest.raises((dp.ShapeError, dp.DTypeError)):
            x[...] = value
    assert not x.any()


def test_the_result_of_an_advanced_index_is_a_copy_on_the_same_queue(queue: Any) -> None:
    x = dp.arange(6, sycl_queue=queue, usm_type="shared")
    taken = x[[0, 2]]
    x[0] = 9
    assert taken.tolist() == [0, 2]
    assert taken.queue == queue
    assert taken.usm_type == "shared"
