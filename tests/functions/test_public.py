"""The decorator of public functions: fast path, override, operands and ``out``."""

from __future__ import annotations

import inspect
import os
import sys
import types
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._functions.public import guard, public
from tests.support import compiled_module

CALLS: list[str] = []


def _plain(x: Any, axis: Any = None, keep: bool = False, *, out: Any = None) -> Any:
    """A function."""
    CALLS.append(type(x).__name__)
    return out if out is not None else x


def _small(x: Any, axis: Any) -> Any:
    CALLS.append("small")
    return np.sum(x, axis)


found = public(small=_small, takes=("axis",))(_plain)


@pytest.fixture
def second_queue() -> Any:
    return dp.Device("cpu").new_queue().queue


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


def test_a_bug_of_dparray_is_not_blamed_on_the_argument() -> None:
    def mistaken(x: Any) -> Any:
        return no_such_name  # type: ignore[name-defined]  # noqa: F821

    mistaken.__module__ = "dparray.lib"
    owner = types.SimpleNamespace(mistaken=mistaken)
    guard(owner)
    assert owner.mistaken is not mistaken
    with pytest.raises(NameError, match="no_such_name"):
        owner.mistaken(3)


def test_the_signature_and_the_docstring_stay() -> None:
    assert inspect.signature(found) == inspect.signature(_plain)
    assert found.__doc__ == "A function."
    assert found.__module__ == _plain.__module__
    assert found.__code__.co_name == "_plain"  # in profiles and events


def test_small_arrays_are_computed_by_numpy() -> None:
    assert float(found(dp.ones(3))) == 3.0
    assert CALLS == ["small"]


def test_other_options_are_left_to_the_function() -> None:
    found(dp.ones(3), keep=True)
    assert CALLS == ["ndarray"]


def test_sequences_become_arrays() -> None:
    assert found([1, 2]).tolist() == [1, 2]
    assert CALLS == ["ndarray"]


def test_another_class_computes_the_call() -> None:
    class Other:
        def __dparray_function__(self, *call: Any) -> Any:
            return call

    other = Other()
    function, arguments, options = found(other, keep=True)
    assert (function.__name__, arguments, options) == ("_plain", (other,), {"keep": True})
    assert CALLS == []


def test_another_class_gets_the_changed_options_only() -> None:
    class Other:
        def __dparray_function__(self, *call: Any) -> Any:
            return call

    @public(operands=("x", "y"))
    def varied(x: Any, y: Any, *more: Any, axis: int = -1, kind: str = "plain", **rest: Any) -> Any:
        return x, y, more, axis, kind, rest

    other = Other()
    assert varied(1, other, 2, 3)[1:] == ((1, other, 2, 3), {})
    found = varied(other, 1, kind="other", size=4)
    assert found[1:] == ((other, 1), {"kind": "other", "size": 4})
    assert varied(1, 2, 3, 4, axis=0, size=5)[2:] == ((3, 4), 0, "plain", {"size": 5})


def test_a_result_that_broadcasts_to_a_large_shape_is_not_computed_immediately() -> None:
    @public(operands=("x", "y"), small=np.add, mode="broadcast")
    def added(x: Any, y: Any) -> Any:
        return "general"

    assert added(dp.ones(3), dp.ones((2, 1))).tolist() == [[2.0] * 3] * 2
    assert added(dp.ones(2000), dp.ones((2000, 1))) == "general"


def test_a_function_may_convert_its_operands_itself() -> None:
    @public(converts=False)
    def plain(x: Any, out: Any = None) -> Any:
        return x, out

    assert plain([1, 2], out=3) == ([1, 2], 3)


def test_sequences_with_arrays_of_two_queues_are_refused(second_queue: Any) -> None:
    @public(operands=("x", "y"))
    def both(x: Any, y: Any) -> Any:
        return x, y

    with pytest.raises(dp.ExecutionPlacementError):
        both([dp.ones(2)], [dp.ones(2, sycl_queue=second_queue)])
    with pytest.raises(dp.ExecutionPlacementError):
        both(dp.ones(2), [dp.ones(2, sycl_queue=second_queue)])
    assert both([1.0], [dp.ones(2, sycl_queue=second_queue)])[0].queue == second_queue


def test_out_must_be_on_the_queue_of_the_operand(second_queue: Any) -> None:
    with pytest.raises(dp.HostConversionError, match="out must be an array"):
        found(dp.ones(3), out=np.ones(3))
    with pytest.raises(dp.ExecutionPlacementError, match="out"):
        found(dp.ones(3), out=dp.ones(3, sycl_queue=second_queue))


def test_two_operands_must_be_on_one_queue(second_queue: Any) -> None:
    @public(operands=("x", "y"))
    def both(x: Any, y: Any) -> Any:
        return x, y

    assert both(dp.ones(2), 1.0)[1].tolist() == 1.0
    with pytest.raises(dp.ExecutionPlacementError):
        both(dp.ones(2), dp.ones(2, sycl_queue=second_queue))


VALUES = [[2.0, 1.0], [1.0, 3.0]]
LINE = [1.0, 2.0]

#: Calls with an array, of which other operands are sequences.
WITH_SEQUENCES: dict[str, Any] = {
    "array_equal": lambda xp, x: xp.array_equal(x, VALUES),
    "array_equiv": lambda xp, x: xp.array_equiv(x, [VALUES]),
    "average": lambda xp, x: xp.average(x, weights=VALUES),
    "cov": lambda xp, x: xp.cov(x, VALUES),
    "digitize": lambda xp, x: xp.digitize(x, LINE),
    "histogram2d": lambda xp, x: xp.histogram2d(x[0], LINE, bins=2)[0],
    "interp": lambda xp, x: xp.interp(x, LINE, LINE),
    "linalg.lstsq": lambda xp, x: xp.linalg.lstsq(x, LINE)[0],
    "linalg.solve": lambda xp, x: xp.linalg.solve(x, LINE),
    "linalg.tensorsolve": lambda xp, x: xp.linalg.tensorsolve(x, LINE),
    "polyfit": lambda xp, x: xp.polyfit(x[0], LINE, 1, w=LINE),
    "searchsorted": lambda xp, x: xp.searchsorted(x[1], LINE),
    "take_along_axis": lambda xp, x: xp.take_along_axis(
        x, np.asarray([[1], [0]]) if xp is np else [[1], [0]], 1
    ),
    "trapezoid": lambda xp, x: xp.trapezoid(x, LINE),
}


@pytest.mark.parametrize("name", WITH_SEQUENCES)
def test_a_sequence_is_placed_with_the_array(name: str, second_queue: Any) -> None:
    call, values = WITH_SEQUENCES[name], np.asarray(VALUES)
    expected = call(np, values)
    found = call(dp, dp.asarray(values, sycl_queue=second_queue))
    if isinstance(expected, bool):
        assert found is expected
        return
    assert found.queue == second_queue
    np.testing.assert_allclose(found.asnumpy(), expected)


@pytest.mark.parametrize("name", ["put_along_axis", "putmask", "place"])
def test_a_sequence_is_placed_with_the_array_that_is_written(name: str, second_queue: Any) -> None:
    values = np.asarray(VALUES)
    x = dp.asarray(values, sycl_queue=second_queue)
    arguments: dict[str, Any] = {
        "put_along_axis": ([[1], [0]], 7.0, 1),
        "putmask": ([[True, False], [False, True]], 7.0),
        "place": ([[True, False], [False, True]], 7.0),
    }
    getattr(dp, name)(x, *arguments[name])
    first, *others = arguments[name]
    getattr(np, name)(values, np.asarray(first), *others)
    np.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "ones_like"])
def test_arrays_are_made_like_a_sequence(name: str) -> None:
    expected = getattr(np, name)([[1, 2, 3]])
    found = getattr(dp, name)([[1, 2, 3]])
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_a_number_is_repeated_along_its_only_axis(axis: int | None) -> None:
    for x in (3.0, dp.asarray(3.0)):
        for repeats in (2, [3]):
            found = dp.repeat(x, repeats, axis)
            np.testing.assert_array_equal(found.asnumpy(), np.repeat(3.0, repeats, axis))


def test_an_array_that_numpy_returns_as_it_is_given_is_copied() -> None:
    given = public(small=lambda x: x)(_plain)
    x = dp.ones(3)
    y = given(x)
    x += 1
    assert y.tolist() == [1.0] * 3


def _calls_of(function: Any) -> tuple[int, int]:
    """Return how many functions of dparray a call enters when it is known, and their files."""
    for _ in range(3):
        function()
    files: list[str] = []

    def note(frame: Any, event: str, arg: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and f"{os.sep}dparray{os.sep}" in file and __file__ != file:
            files.append(file)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return len(files), len(set(files))


#: Functions of 100 elements.
KNOWN_CALLS: dict[str, Any] = {
    "concatenate": lambda x, mask, at: dp.concatenate([x, x]),
    "where": lambda x, mask, at: dp.where(mask, x, x),
    "x[mask]": lambda x, mask, at: x[mask],
    "median": lambda x, mask, at: dp.median(x),
    "take": lambda x, mask, at: dp.take(x, at),
    "stack": lambda x, mask, at: dp.stack([x, x]),
    "pad": lambda x, mask, at: dp.pad(x, 1),
    "roll": lambda x, mask, at: dp.roll(x, 1),
}


@pytest.mark.skipif(compiled_module is None, reason="the fast path is not built")
@pytest.mark.parametrize("name", KNOWN_CALLS)
def test_a_known_call_enters_few_functions(name: str) -> None:
    x = dp.arange(100.0)
    mask, at = x > 50, dp.arange(100)
    calls, files = _calls_of(lambda: KNOWN_CALLS[name](x, mask, at))
    assert calls <= 60
    assert files <= 12
