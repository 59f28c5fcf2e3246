"""Kernel mistakes of new users, and the state after them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import forget_kernels

pytestmark = pytest.mark.process


@dp.kernel
def makes_an_array(item, a):  # type: ignore[no-untyped-def]
    z = np.zeros(3)
    a[item.get_id(0)] = z[0]


@dp.kernel
def makes_a_dict(item, a):  # type: ignore[no-untyped-def]
    d = {1: 2.0}
    a[item.get_id(0)] = d[1]


@dp.kernel
def prints(item, a):  # type: ignore[no-untyped-def]
    i = item.get_id(0)
    print("item", i)
    a[i] = 1


def test_after_two_kernels_that_do_not_compile_the_next_one_prints() -> None:
    a = dp.zeros(2)
    for wrong in (makes_an_array, makes_a_dict):
        with pytest.raises(dp.KernelCompileError):
            dp.call_kernel(wrong, dp.Range(2), a)
    dp.call_kernel(prints, dp.Range(2), a)
    assert a.tolist() == [1, 1]


@dp.kernel
def has_two_indices(item, a):  # type: ignore[no-untyped-def]
    a[item.get_id(0), 0] = 1


@dp.kernel
def writes_a_complex_number(item, a):  # type: ignore[no-untyped-def]
    a[item.get_id(0)] = 1j


@dp.kernel
def sums_a_slice(item, a):  # type: ignore[no-untyped-def]
    a[0] = a[1:].sum()


@dp.kernel
def assigns_a_slice(item, a):  # type: ignore[no-untyped-def]
    a[:] = a


@dp.kernel
def masks_the_array(item, a):  # type: ignore[no-untyped-def]
    a[a > 1] = 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (masks_the_array, r"comparing whole arrays.*compare x\[i\]"),
        (has_two_indices, "it takes 1, and 2 are given|too many indices"),
        (writes_a_complex_number, r"a complex128 does not fit.*\.real"),
        (sums_a_slice, "works on whole arrays.*write a loop"),
        (assigns_a_slice, "whole array is not available.*write a loop"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_a_suggested_fix(wrong: object, words: str) -> None:
    with pytest.raises(dp.KernelCompileError, match=f"(?s){words}") as caught:
        dp.call_kernel(wrong, dp.Range(3), dp.ones(3))
    assert "test_kernel_mistakes.py:" in str(caught.value)
    assert not any(word in str(caught.value) for word in ("setitem", "NRT", "Literal", "numba"))


@dp.kernel
def writes_the_first(item, a):  # type: ignore[no-untyped-def]
    a[0, 0] = 1


@dp.kernel
def reads_the_first(item, a, out):  # type: ignore[no-untyped-def]
    out[0] = a[0, 0] + a[1, 2]


def test_a_kernel_does_not_write_through_broadcast_to() -> None:
    x = dp.ones(3)
    shown = dp.broadcast_to(x, (2, 3))
    with pytest.raises(dp.KernelCompileError, match=r"read-only.*dp\.asarray\(x, copy=True\)"):
        dp.call_kernel(writes_the_first, dp.Range(1), shown)
    out = dp.zeros(1)
    dp.call_kernel(reads_the_first, dp.Range(1), shown, out)
    assert out.tolist() == [2]
    assert x.tolist() == [1, 1, 1]


def test_a_float_written_into_integers_warns_once_with_the_line() -> None:
    @dp.kernel
    def cuts(item, a, marker):  # type: ignore[no-untyped-def]
        a[item.get_id(0)] = 0.5 * marker

    line = cuts.py_func.__code__.co_firstlineno + 2
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for factor in (3.0, 4.0):
            dp.call_kernel(cuts, dp.Range(2), dp.arange(2), factor)
    told = [each for each in told if each.category is dp.KernelTypeWarning]
    assert [each.lineno for each in told] == [line]
    assert "drops the fraction" in str(told[0].message)


def test_kernels_from_the_cache_warn_as_new_ones_do() -> None:
    line = None
    for _ in range(2):

        @dp.kernel
        def cuts(item, a):  # type: ignore[no-untyped-def]
            i = item.get_id(0)
            a[i, 0] = 0.125

        line = cuts.py_func.__code__.co_firstlineno + 3
        forget_kernels()  # as in a new process
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            cuts[2, 3](dp.zeros((2, 3), dtype="int64"))
        assert [(each.category, each.lineno) for each in told] == [
            (dp.KernelTypeWarning, line),
            (dp.KernelRangeWarning, line - 1),
        ]


def reads_one(item, x):  # type: ignore[no-untyped-def]
    x[item.get_id(0)] += 1


def reads_the_last(item, x):  # type: ignore[no-untyped-def]
    x[item.get_global_id(2)] += 1


def reads_none(item, x):  # type: ignore[no-untyped-def]
    x[0] += 1


def reads_group(item, x):  # type: ignore[no-untyped-def]
    x[item.get_group().get_group_id(0)] += 1


@pytest.mark.parametrize(
    ("function", "size", "shown"),
    [
        (reads_one, dp.Range(4, 64), "dimension 1: 64 work-items"),
        (reads_one, dp.Range(4, 3, 5), "dimension 1 and 2: 15 work-items"),
        (reads_the_last, dp.NdRange((2, 2, 4), (1, 1, 4)), "dimension 0 and 1: 4 work-items"),
        (reads_none, dp.Range(2, 2), "dimension 0 and 1: 4 work-items"),
        (reads_group, dp.NdRange((4, 4), (2, 2)), "dimension 1: 4 work-items"),
    ],
)
def test_dimensions_that_are_not_read_warn_once(function: Any, size: Any, shown: str) -> None:
    kernel = dp.kernel(function)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            kernel[size](dp.zeros(64))
    (told,) = told
    assert told.category is dp.KernelRangeWarning
    assert shown in str(told.message)
    assert "dp.NdRange(blocks * threads, threads)" in str(told.message)


def reads_both(item, x):  # type: ignore[no-untyped-def]
    x[item.get_id(0), item.get_id(dim=1)] += 1


def reads_by_loop(item, x):  # type: ignore[no-untyped-def]
    place = 0
    for dimension in range(2):
        place = place * item.get_range(dimension) + item.get_id(dimension)
    x[place // 64, place % 64] += 1


def reads_linear(item, x):  # type: ignore[no-untyped-def]
    x[0, item.get_linear_id()] += 1


@dp.device_func
def column(item):  # type: ignore[no-untyped-def]
    return item.get_id(1)


def reads_by_a_function(item, x):  # type: ignore[no-untyped-def]
    x[item.get_id(0), column(item)] += 1


def counts_all(item, x):  # type: ignore[no-untyped-def]
    dp.AtomicRef(x, 0).fetch_add(1.0)


@pytest.mark.parametrize(
    ("function", "size", "shape"),
    [
        (reads_both, dp.Range(4, 3), (4, 64)),
        (reads_by_loop, dp.Range(4, 3), (4, 64)),
        (reads_linear, dp.Range(4, 3), (4, 64)),
        (reads_by_a_function, dp.Range(4, 3), (4, 64)),
        (reads_one, dp.Range(4, 1), (64,)),
        (reads_none, dp.Range(4), (64,)),
        (counts_all, dp.Range(4, 3), (64,)),
    ],
)
def test_kernels_that_read_all_dimensions_are_not_warned_of(
    function: Any, size: Any, shape: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.kernel(function)[size](dp.zeros(shape))


def test_a_shape_is_unpacked_into_a_range() -> None:
    with pytest.raises(dp.KernelRangeError, match=r"as in dp\.Range\(\*x\.shape\)"):
        dp.Range((3, 4))


def test_host_data_as_an_argument_raises_with_a_suggested_fix() -> None:
    @dp.kernel
    def fill(item, x):  # type: ignore[no-untyped-def]
        x[item.get_id(0)] = 1

    with pytest.raises(dp.KernelArgumentError, match=r"'x' is a builtins\.list.*dp\.asarray"):
        dp.call_kernel(fill, dp.Range(2), [1, 2])


@pytest.mark.parametrize("value", [(1, 2), "add", None, np.dtype("int8"), np.float32])
def test_arguments_that_must_be_constant_raise_with_the_annotation(value: object) -> None:
    @dp.kernel
    def move(item: dp.Item, x: object, how: object) -> None:
        x[0] = 1

    with pytest.raises(dp.KernelArgumentError, match=r"'how' is a \w+.*sizes: dp\.constexpr\)"):
        move[1](dp.ones(3), value)


def test_an_id_without_its_dimension_names_the_method_that_was_called() -> None:
    @dp.kernel
    def doubled(item, x):  # type: ignore[no-untyped-def]
        i, j = item.get_id()
        x[i, j] *= 2

    with pytest.raises(dp.KernelCompileError, match=r"requires a dimension: item\.get_id\(0\)"):
        dp.call_kernel(doubled, dp.Range(2, 2), dp.ones((2, 2)))


def asks_item(item, x):  # type: ignore[no-untyped-def]
    x[item.get_ide(0)] = 1


def asks_nd_item(item, x):  # type: ignore[no-untyped-def]
    x[item.get_globl_id(0)] = 1


def asks_group(item, x):  # type: ignore[no-untyped-def]
    x[item.get_group().get_groupid(0)] = 1


def asks_sub_group(item, x):  # type: ignore[no-untyped-def]
    x[item.get_sub_group().get_local_idd()] = 1


def asks_atomic(item, x):  # type: ignore[no-untyped-def]
    dp.AtomicRef(x, 0).fetch_added(1)


def asks_language(item, x):  # type: ignore[no-untyped-def]
    dp.group_barier(item.get_group())


def asks_math(item, x):  # type: ignore[no-untyped-def]
    x[0] = math.sqr(x[1])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "meant"),
    [
        (asks_item, r"get_id\(0\)"),
        (asks_nd_item, r"get_global_id\(0\)"),
        (asks_group, r"get_group_id\(0\)"),
        (asks_sub_group, "get_local_id"),
        (asks_atomic, "fetch_add"),
        (asks_language, "group_barrier"),
        (asks_math, "sqrt"),
    ],
)
def test_misspelt_names_of_the_kernel_language_are_corrected(function: Any, meant: str) -> None:
    size = dp.Range(4) if function is asks_item else dp.NdRange(4, 4)
    with pytest.raises(dp.KernelCompileError, match=f"did you mean {meant}[? ]"):
        dp.kernel(function)[size](dp.zeros(4))


@pytest.mark.parametrize(
    ("option", "instead"),
    [("parallel", "in parallel"), ("cache", "cached on disk"), ("device", "device_func")],
)
def test_options_of_other_compilers_suggest_dparrays(option: str, instead: str) -> None:
    with pytest.raises(dp.KernelArgumentError, match=instead) as caught:
        dp.kernel(**{option: True})(asks_item)
    assert "options: debug, fastmath, inline_threshold" in str(caught.value)


@pytest.mark.parametrize("kind", [tuple, list])
def test_several_arrays_in_one_argument_are_separate_arguments(kind: type) -> None:
    @dp.kernel
    def add(item, xs, out):  # type: ignore[no-untyped-def]
        out[0] = xs[0][0] + xs[1][0]

    with pytest.raises(dp.KernelArgumentError, match=r"each array as a sep.* dp\.stack\(xs\)"):
        add[1](kind((dp.zeros(2), dp.zeros(2))), dp.zeros(1))


def test_a_table_of_many_numbers_is_better_an_array() -> None:
    table = tuple(map(float, range(200)))

    @dp.device_func
    def take(i):  # type: ignore[no-untyped-def]
        return table[i]

    @dp.kernel
    def takes(item, x):  # type: ignore[no-untyped-def]
        x[item.get_id(0)] = take(item.get_id(0))

    with pytest.warns(dp.KernelCompileWarning, match=r"200 numbers.*dp\.asarray\(table\)"):
        takes[1](dp.zeros(1))
    table = table[:100]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        takes[1](dp.zeros(1))
