"""A view of a pending array is pending, too, and still shares memory with the array."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import dpnp
import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import evaluate, limits
from tests.support import force, launched

ROWS, COLUMNS = 600, 400
assert ROWS * COLUMNS >= limits.COMPILE_ELEMENTS


def pair(dtype: str = "float32") -> tuple[np.ndarray, dp.ndarray]:
    host = np.random.default_rng(0).uniform(-1, 1, (ROWS, COLUMNS)).astype(dtype)
    return host, dp.asarray(host)


def launches(function: Callable[[], Any]) -> list[int]:
    """Record the work-items of each launch."""
    with launched() as done:
        function()
    return [prod(launch.global_range) for launch in done]


VIEWS: dict[str, Callable[[Any], Any]] = {
    "every second row": lambda x: x[::2],
    "a part": lambda x: x[3:500, 5:300],
    "a row": lambda x: x[7],
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1, ::-2],
    "new axes": lambda x: x[:, None, :, None],
    "flat": lambda x: x.reshape(-1),
    "other shape": lambda x: x.reshape(300, 2, 400),
    "part of a row": lambda x: x[7].reshape(20, 20)[1:],
    "diagonal": lambda x: x.diagonal(),
    "empty": lambda x: x[5:5],
}


@pytest.mark.usefixtures("tests_options")
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_one_kernel_of_its_own_elements(name: str) -> None:
    host, x = pair()
    view = VIEWS[name]
    y = view(x * x + 1)
    # For a view of a view, the first one is held while the second one is created.
    assert y.is_pending or name == "part of a row"
    wanted = view(host * host + 1)
    done = launches(lambda: dp.eval(y + 0))
    assert len(done) <= 1
    assert sum(done) <= wanted.size + 20_000
    np.testing.assert_array_equal((y + 0).asnumpy(), wanted)
    np.testing.assert_array_equal(y.asnumpy(), wanted)


@pytest.mark.parametrize("name", VIEWS)
def test_operands_that_are_broadcast_are_seen_through_the_view_too(name: str) -> None:
    host, x = pair()
    view = VIEWS[name]
    y = x[:, :1] * x + x[0] - x[3, 4]
    wanted = host[:, :1] * host + host[0] - host[3, 4]
    np.testing.assert_array_equal(view(y).asnumpy(), view(wanted))


def test_a_view_fuses_with_later_operations() -> None:
    host, x = pair()

    def step() -> dp.ndarray:
        difference = x[1:] - x[:-1]
        return difference[1:] - difference[:-1]

    np.testing.assert_allclose(step().asnumpy(), np.diff(host, n=2, axis=0), rtol=1e-5, atol=1e-6)
    folded = (x + x[::-1]).T.sum(axis=0)
    np.testing.assert_allclose(folded.asnumpy(), (host + host[::-1]).T.sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("written", ["array", "view", "view of the view"])
def test_writes_are_seen_on_both_sides(name: str, written: str) -> None:
    host, x = pair()
    view = VIEWS[name]
    found, wanted = x * 2, host * 2
    found_view, wanted_view = view(found), view(wanted)
    read_before = found_view + 1
    kept = wanted_view + 1
    if isinstance(wanted_view, np.ndarray) and not wanted_view.flags.writeable:
        wanted_view.flags.writeable = True
    for array, seen in ((found, found_view), (wanted, wanted_view)):
        if written == "array":
            array += 1
        elif written == "view":
            seen *= 3
        else:
            seen[..., ::2] = 7
    np.testing.assert_array_equal(found.asnumpy(), wanted)
    np.testing.assert_array_equal(found_view.asnumpy(), wanted_view)
    np.testing.assert_array_equal(read_before.asnumpy(), kept)


def test_a_leaf_that_is_written_does_not_change_the_view() -> None:
    host, x = pair()
    y = x * 2
    view = y.T[3:]
    x += 1
    np.testing.assert_array_equal(view.asnumpy(), (host * 2).T[3:])
    np.testing.assert_array_equal(y.asnumpy(), host * 2)


def test_a_view_of_a_view_outlives_both() -> None:
    host, x = pair()
    first = (x * 2)[::2]
    second = first[:, 3:]
    del first
    second += 1
    np.testing.assert_array_equal(second.asnumpy(), (host * 2)[::2, 3:] + 1)


@pytest.mark.usefixtures("tests_options")
def test_a_second_view_gives_the_array_memory() -> None:
    _, x = pair()
    y = x * 2
    first = y[1:]
    assert y.is_pending
    second = y[:-1]
    assert not y.is_pending
    assert first.block is second.block is y.block


@pytest.mark.usefixtures("tests_options")
@pytest.mark.parametrize("gone", ["array", "view"])
def test_one_of_the_two_may_go_while_the_other_is_computed(
    gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector or another thread may drop it then, e.g. one held by a traceback."""
    host, x = pair()
    y = x * 2
    both = {"array": y, "view": y[1:]}
    kept = both["view" if gone == "array" else "array"]
    del y
    kept_evaluate = evaluate.evaluate

    def collected(*nodes: Any) -> None:
        both.clear()
        kept_evaluate(*nodes)

    monkeypatch.setattr(evaluate, "evaluate", collected)
    wanted = host * 2
    kept += 1
    assert not both
    np.testing.assert_array_equal(kept.asnumpy(), (wanted if gone == "view" else wanted[1:]) + 1)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: dp.matmul(x.T, x),
        lambda x: dp.sort(x.T, axis=0),
        lambda x: dp.asarray(dpnp.asarray(x.T[2:]) * 2),
        lambda x: dp.from_dlpack(x.T[::2]),
        lambda x: dp.take(x.T, dp.asarray([3, 1]), axis=0),
        lambda x: x.T[dp.asarray([3, 1])],
        lambda x: dp.concat([x.T[:5], x.T[1:]]),
        lambda x: dp.cumulative_sum(x.T, axis=1),
        lambda x: dp.argmax(x.T, axis=0),
        lambda x: dp.asarray(x.T, order="F", copy=True),
        lambda x: x.T.astype("complex64").real,
        lambda x: dp.linalg.norm(x.T),
    ],
)
def test_uses_of_a_pending_view_have_the_right_values(
    use: Callable[[Any], Any], executor: str
) -> None:
    host, _ = pair()
    x = dp.asarray(host)
    wanted = use(dp.asarray(host * 2))
    y = x * 2
    np.testing.assert_allclose(use(y).asnumpy(), wanted.asnumpy(), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(y.asnumpy(), host * 2)


def test_a_kernel_gets_the_array_and_its_view() -> None:
    @dp.kernel
    def add_row(item: Any, x: Any, row: Any) -> None:
        i, j = item.get_id(0), item.get_id(1)
        if i != 2:
            x[i, j] += row[j]

    host, x = pair()
    y = x * 2
    row = y[2]
    dp.call_kernel(add_row, dp.Range(ROWS, COLUMNS), y, row)
    wanted = host * 2
    wanted[np.arange(ROWS) != 2] += wanted[2]
    np.testing.assert_array_equal(y.asnumpy(), wanted)
    row += 1
    wanted[2] += 1
    np.testing.assert_array_equal(y.asnumpy(), wanted)


def test_a_corner_is_computed_of_an_array_that_is_printed() -> None:
    _, x = pair()
    y = dp.exp(x) * x
    assert sum(launches(lambda: repr(y))) == 0
    assert y.is_pending


def test_a_broadcast_view_computes_its_elements_once() -> None:
    host, x = pair()
    row = dp.broadcast_to(dp.exp(x[0]) + 1, (ROWS, COLUMNS))
    np.testing.assert_allclose((row + x).asnumpy(), np.exp(host[0]) + 1 + host, rtol=1e-6)
    np.testing.assert_allclose(row.asnumpy()[5], np.exp(host[0]) + 1, rtol=1e-6)


@pytest.mark.parametrize("kind", ["sum", "prod", "var"])
def test_a_reduction_counts_repeated_elements(kind: str) -> None:
    host, shape = np.linspace(0.9, 1.1, 12_000).reshape(40, 1, 300), (40, 5, 300)
    expected = getattr(np, kind)(np.broadcast_to(host, shape), axis=(0, 1))
    with force("host"):
        found = getattr(dp, kind)(dp.broadcast_to(dp.asarray(host) * 1.0, shape), axis=(0, 1))
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-9)


def test_a_loop_over_the_rows_of_a_pending_array_computes_it_once() -> None:
    x, y = dp.ones((500, 300)), dp.zeros((500, 300))
    pending = x + 1
    for row in range(3):
        y[row, :] = 2 * pending[row, :]  # the view is gone before the next one is created
    assert not pending.is_pending
    assert y[:4, 0].tolist() == [4.0, 4.0, 4.0, 0.0]
