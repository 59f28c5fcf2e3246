"""Bugs found by programs in NumPy's style, not by single calls: states, files, options."""

from __future__ import annotations

import copy
import io
import operator
import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import same

CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("pad by axis", lambda xp: xp.pad(xp.ones((2, 2)), {0: (1, 2), -1: 1})),
    ("pad by one axis", lambda xp: xp.pad(xp.ones((2, 2)), {1: 1}, "edge")),
    ("mean by axis", lambda xp: xp.pad(xp.asarray([[1.0, 3.0]]), {1: (2, 0)}, "mean")),
    ("vectorize", lambda xp: xp.vectorize(lambda a, b: a + b if a > b else a - b)([1, 2, 3], 2)),
    ("vectorize empty", lambda xp: xp.vectorize(lambda a: a, otypes="f")([])),
    ("vectorize power", lambda xp: xp.vectorize(lambda a, p=2: a**p)((1, 2), p=3)),
    ("nanmax", lambda xp: xp.nanmax([xp.nan, xp.nan])),
    ("nanmin", lambda xp: xp.nanmin([[xp.nan, 1.0], [xp.nan, xp.nan]], axis=1)),
    ("bincount", lambda xp: xp.bincount([], minlength=2)),
    ("sorter", lambda xp: xp.asarray([3, 1, 2]).searchsorted(2, sorter=[1, 2, 0])),
    ("roll", lambda xp: xp.roll([1, 2, 3, 4], 3 / 2)),
    ("roll axis", lambda xp: xp.roll(xp.arange(6).reshape(2, 3), np.int64(1), axis=np.int64(1))),
    ("fromfunction", lambda xp: xp.fromfunction(lambda i, s: i * s, (3,), dtype="f4", s=2)),
    ("arange", lambda xp: xp.arange(stop=4)),
    ("arange step", lambda xp: xp.arange(stop=4, step=2)),
    ("view rows", lambda xp: xp.zeros((3, 0)).view("i4")),
    ("view none", lambda xp: xp.zeros((0, 3)).view("i4")),
    ("view wide", lambda xp: xp.zeros((3, 0), "i4").view("i8")),
    ("text", lambda xp: xp.array(["1", "2.5", "-3"], dtype=float)),
    ("text bytes", lambda xp: xp.array([b"1", b"2"], dtype="i4")),
    ("objects", lambda xp: xp.asarray(np.array([1, 2.5], dtype=object), dtype="f4")),
    ("nothing", lambda xp: xp.array([None, 1], dtype=float)),
    ("fractions", lambda xp: xp.array([[Fraction(1, 2)]], dtype=float)),
    ("genfromtxt", lambda xp: xp.genfromtxt(["1 2", "3 4"], dtype=None)),
    ("genfromtxt real", lambda xp: xp.genfromtxt(["1.5 2.5"], dtype=None)),
]


@pytest.mark.parametrize("call", [call for _, call in CALLS], ids=[name for name, _ in CALLS])
@pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning")
def test_numpys_result(call: Callable[[Any], Any]) -> None:
    same(call(dp), call(np))


REFUSED: list[tuple[Callable[[Any], Any], type[Exception]]] = [
    (lambda xp: xp.pad([1, 2], 1, "constant", end_values=3), ValueError),
    (lambda xp: xp.pad([1, 2], 1, "edge", constant_values=3), ValueError),
    (lambda xp: xp.pad([1, 2], 1, "mean", reflect_type="odd"), ValueError),
    (lambda xp: xp.pad([1, 2], 1.5), TypeError),
    (lambda xp: xp.pad(xp.ones((2, 2)), {2: 1}), IndexError),
    (lambda xp: xp.std([1, 2], ddof=1, correction=1), ValueError),
    (lambda xp: xp.nanvar([1.0, 2.0], ddof=1, correction=1), ValueError),
    (lambda xp: xp.place(xp.arange(3), xp.asarray([True, False, True]), []), ValueError),
    (lambda xp: xp.array([1j], dtype=float), TypeError),
    (lambda xp: xp.array(["a"], dtype=float), ValueError),
    (lambda xp: xp.array(["1.5"], dtype=int), ValueError),
    (lambda xp: xp.array([10**400], dtype=float), OverflowError),
    (lambda xp: xp.arange(), TypeError),
    (lambda xp: xp.random.default_rng(1).uniform(5, 2), ValueError),
    (lambda xp: xp.random.default_rng(1).uniform([0, 5], [1, 2]), ValueError),
    (lambda xp: xp.random.default_rng(1).logseries(1), ValueError),
    (lambda xp: xp.random.default_rng(1).logseries([0.5, 1.0]), ValueError),
    (lambda xp: xp.random.default_rng(1).choice(3, 2, replace=False, p=[1, 0, 0]), ValueError),
    (
        lambda xp: xp.random.default_rng(1).multivariate_normal([0], [[1]], method="qr"),
        ValueError,
    ),
    (lambda xp: xp.load(io.BytesIO(b"")), EOFError),
    (lambda xp: xp.genfromtxt(["a b", "1 2"], names=True)["c"], (ValueError, TypeError)),
]


@pytest.mark.parametrize("call", REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_operands_that_numpy_refuses_raise(call: tuple[Callable[[Any], Any], Any]) -> None:
    function, error = call
    with pytest.raises(error):
        function(np)
    with pytest.raises(error) as found:
        function(dp)
    assert isinstance(found.value, dp.DparrayError | OverflowError)


@pytest.mark.parametrize("order", ["C", "F", "A"])
def test_bytes_in_numpys_order(order: Any) -> None:
    theirs = np.arange(12).reshape(3, 4)
    ours = dp.asarray(theirs)
    for index in (slice(None), slice(1, 2), (slice(None), 0), (slice(None, None, 2),)):
        assert ours[index].tobytes(order) == theirs[index].tobytes(order)
        assert ours.T[index].tobytes(order) == theirs.T[index].tobytes(order)


def test_pickles_keep_columns() -> None:
    columns = dp.arange(6).reshape(2, 3).T
    kept = pickle.loads(pickle.dumps(columns))
    assert kept.flags.f_contiguous
    assert not kept.flags.c_contiguous
    same(kept, np.arange(6).reshape(2, 3).T)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_generators_are_copied_with_their_state(again: Callable[[Any], Any]) -> None:
    for first in (dp.random.default_rng(3), dp.random.RandomState(4)):
        first.random(5)
        second = again(first)
        assert type(second) is type(first)
        assert second.device == first.device
        same(second.normal(size=7), first.normal(size=7).asnumpy())
        first.random(1)
        assert not dp.array_equal(first.random(3), second.random(3))


def test_seeds_of_any_size() -> None:
    seed = 2**127 + 5
    first, second = (dp.random.default_rng(seed).random(3) for _ in range(2))
    assert dp.array_equal(first, second)
    assert not dp.array_equal(first, dp.random.default_rng(seed + 2**64).random(3))
    assert dp.array_equal(first, dp.random.default_rng(np.random.SeedSequence(seed)).random(3))
    with pytest.raises(dp.ArgumentError, match="at least 0"):
        dp.random.default_rng(-1)


def test_bounds_of_random_numbers() -> None:
    rng = dp.random.default_rng(0)
    with pytest.raises(dp.ArgumentError, match="less than inf"):
        rng.uniform(0, np.inf)
    assert rng.uniform(5, 5, 3).tolist() == [5, 5, 5]
    older = dp.random.uniform(5, 2, 100).asnumpy()  # descending, like NumPy's legacy function
    assert older.min() > 2
    assert older.max() <= 5
    chosen = rng.choice(4, 2, replace=False, p=[0.5, 0, 0.5, 0])
    assert sorted(chosen.tolist()) == [0, 2]
    assert rng.choice([], 0).shape == rng.permutation(-1).shape == (0,)


@pytest.mark.parametrize("name", ["PCG64", "Philox", "SeedSequence"])
def test_names_of_numpys_random_module_suggest_dparrays(name: str) -> None:
    with pytest.raises(AttributeError, match="default_rng"):
        getattr(dp.random, name)


def test_arrays_are_read_until_the_file_ends() -> None:
    file = io.BytesIO()
    for number in range(3):
        dp.save(file, dp.arange(number))
    file.seek(0)
    sizes = []
    while True:
        try:
            sizes.append(dp.load(file).size)
        except EOFError:
            break
    assert sizes == [0, 1, 2]


def test_files_of_another_byte_order_raise_with_a_suggested_fix(tmp_path: Any) -> None:
    for dtype in (">i4", ">c16"):
        np.save(tmp_path / "x.npy", np.arange(3, dtype=dtype))
        native = np.dtype(dtype).newbyteorder("=").name
        with pytest.raises(dp.DTypeError, match=rf"non-native order.*astype\('{native}'\)"):
            dp.load(tmp_path / "x.npy")


def test_headers_with_a_negative_extent_are_refused() -> None:
    file = io.BytesIO()
    np.save(file, np.arange(100.0))
    damaged = file.getvalue().replace(b"(100,), ", b"(-10,), ")
    with pytest.raises(dp.ArgumentError, match=r"damaged.*negative"):
        dp.load(io.BytesIO(damaged))


def test_an_offset_outside_of_the_file_is_named(tmp_path: Any) -> None:
    dp.arange(3).tofile(tmp_path / "x.bin")
    for offset in (-8, 25):
        with pytest.raises(dp.ArgumentError, match=r"offset must be from 0 to 24"):
            dp.fromfile(tmp_path / "x.bin", "int64", offset=offset)
    assert dp.fromfile(tmp_path / "x.bin", "int64", offset=16).tolist() == [2]
    assert dp.fromfile(tmp_path / "x.bin", "int64", offset=24).size == 0


@pytest.mark.parametrize(
    ("values", "cure"),
    [
        ((x for x in range(3)), "dp.fromiter"),
        ([2**64], "64 bits"),
        (["1", "2"], "dtype="),
        ([Fraction(1, 2)], "dtype="),
        (b"abc", "frombuffer"),
    ],
)
def test_non_numeric_dtypes_raise_with_a_suggested_fix(values: Any, cure: str) -> None:
    with pytest.raises(dp.DTypeError, match=cure):
        dp.asarray(values)


def test_lists_are_operands_of_elementwise_functions(queue: Any) -> None:
    @dp.elementwise
    def weighted(x: Any, y: Any) -> Any:
        return x + 2 * y

    x = dp.asarray([1.0, 2.0], sycl_queue=queue, usm_type="shared")
    found = weighted(x, [3, 4])
    assert found.queue == queue
    assert found.usm_type == "shared"
    same(found, np.asarray([7.0, 10.0]))


def test_numpys_functions_call_dparrays_of_the_same_module(queue: Any) -> None:
    values = np.asarray([-1.0, 4.0, 2.0])
    x = dp.asarray(values, sycl_queue=queue)
    calls: list[Callable[[Any], Any]] = [
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2),
        np.fft.fft,
        np.linalg.norm,
        np.sum,
    ]
    for call in calls:
        same(call(x), call(values))
    for name in ("sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"):
        with pytest.raises(TypeError, match=rf"numpy.lib.scimath.{name} is not available"):
            getattr(np.emath, name)(x)  # np.emath.sqrt(-1) is 1j, dp.sqrt's result is NaN
    with pytest.raises(TypeError, match=r"numpy.lib.scimath.power is not available"):
        np.emath.power(x, 0.5)


def test_the_message_of_a_missing_name_names_nothing_that_is_missing() -> None:
    from numpy import _expired_attrs_2_0 as expired

    for name in expired.__expired_attributes__:
        if hasattr(dp, name):
            continue
        with pytest.raises(AttributeError) as caught:
            getattr(dp, name)
        for path in re.findall(r"`?dp\.([\w.]*\w)", str(caught.value)):
            assert path == name or operator.attrgetter(path)(dp) is not None


def test_flags_that_no_array_has() -> None:
    flags = dp.ones(3).flags
    with pytest.raises(KeyError, match="shares_memory"):
        flags["OWNDATA"]
    with pytest.raises(AttributeError, match="shares_memory"):
        assert flags.owndata
    with pytest.raises(AttributeError, match="one of C_CONTIGUOUS"):
        assert flags.writebackifcopy
    assert copy.deepcopy(flags) == flags
