"""``dp.config.debug``: indices are checked, and an error names kernel, line, index and shape."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dparray as dp
from tests.compiler import asserting_kernels
from tests.compiler.asserting_kernels import asserting


@pytest.fixture(autouse=True)
def debug() -> Iterator[None]:
    with dp.config.override(debug=True):
        yield


@dp.device_func
def element(x: Any, i: Any) -> Any:
    return x[i]


@dp.kernel
def shift(item: dp.Item, x: Any, y: Any) -> None:
    i = item.get_id(0)
    y[i] = x[i + 3]


@dp.kernel
def plane(item: dp.Item, x: Any, y: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    y[i, j] = element(x, j)


def test_indices_within_bounds_give_the_result() -> None:
    x, y = dp.arange(8, dtype="int32"), dp.zeros(8, dtype="int32")
    dp.call_kernel(shift, dp.Range(5), x, y)
    assert y.tolist() == [3, 4, 5, 6, 7, 0, 0, 0]


def test_an_index_out_of_bounds_is_reported_with_its_location() -> None:
    x, y = dp.arange(8, dtype="int32"), dp.zeros(8, dtype="int32")
    with pytest.raises(dp.KernelExecutionError) as caught:
        dp.call_kernel(shift, dp.Range(6), x, y)
    message = str(caught.value)
    assert message.startswith("kernel shift: index 8 is out of bounds of x, whose shape is (8,)")
    line = shift.py_func.__code__.co_firstlineno + 3
    assert f"test_kernel_debug.py:{line}\n" in message
    assert "    y[i] = x[i + 3]\n           ^^^^^^^^" in message


def test_writes_in_two_dimensions() -> None:
    with pytest.raises(dp.KernelExecutionError, match=r"index \(4, \d\) .* of y, .* \(4, 2\)"):
        plane[5, 2](dp.zeros(2), dp.zeros((4, 2)))


def test_faults_in_device_functions_name_the_function_and_count() -> None:
    with pytest.raises(dp.KernelExecutionError, match=r"in element \(3 more faults"):
        plane[4, 3](dp.zeros(2), dp.zeros((4, 3)))


def test_local_and_private_memory_and_atomics_are_checked_around_barriers() -> None:
    @dp.kernel
    def kernel(item: dp.NdItem, x: Any, local: Any, where: Any) -> None:
        lid = item.get_local_id(0)
        i = item.get_global_id(0)
        private = dp.PrivateArray(2, np.int32)
        local[lid + where[0]] = x[i]
        dp.group_barrier(item.get_group())
        private[where[1]] = local[lid]
        dp.group_barrier(item.get_group())
        dp.AtomicRef(x, where[2]).fetch_add(private[0])

    for place, name in enumerate(("local", "private", "x")):
        where = np.zeros(3, dtype="int64")
        x = dp.ones(8, dtype="int32")
        local = dp.LocalAccessor(4, np.int32)
        dp.call_kernel(kernel, dp.NdRange(8, 4), x, local, dp.asarray(where))
        where[place] = 50
        with pytest.raises(dp.KernelExecutionError, match=f"index 5[0-3] is .* of {name}"):
            dp.call_kernel(kernel, dp.NdRange(8, 4), x, local, dp.asarray(where))


def test_negative_indices_within_bounds_are_no_fault() -> None:
    @dp.kernel
    def last(item: dp.Item, x: Any, y: Any) -> None:
        y[0] = x[-1]
        y[1] = x[-2 - x.shape[0] + x.shape[0]]

    y = dp.zeros(2, dtype="int32")
    dp.call_kernel(last, dp.Range(1), dp.arange(5, dtype="int32"), y)
    assert y.tolist() == [4, 3]


def test_captured_values_and_augmented_assignments_still_work() -> None:
    scale = 7

    @dp.kernel
    def accumulate(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] += scale * (i + 1)

    x = dp.ones(3, dtype="int64")
    dp.call_kernel(accumulate, dp.Range(3), x)
    assert x.tolist() == [8, 15, 22]


@dp.device_func
def ahead(x: Any, i: Any, by: Any = 1) -> Any:
    return x[i + by]


nearest = dp.device_func(lambda x, i: x[i + 1])


@pytest.mark.parametrize("read", [ahead, nearest])
def test_device_functions_with_defaults_and_lambdas_are_checked(read: Any) -> None:
    @dp.kernel
    def kernel(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        y[i] = read(x, i)

    x, y = dp.arange(4), dp.zeros(4)
    kernel[3](x, y)
    assert y.tolist() == [1, 2, 3, 0]
    with pytest.raises(dp.KernelExecutionError, match="index 4 is out of bounds of x"):
        kernel[4](x, y)


def test_unsigned_indices_do_not_count_from_the_end() -> None:
    @dp.kernel
    def kernel(item: dp.Item, x: Any, y: Any) -> None:
        i = np.uint64(item.get_id(0))
        y[i] = x[i - np.uint64(1)]

    with pytest.raises(dp.KernelExecutionError, match=f"index {2**64 - 1} is out of bounds of x"):
        kernel[2](dp.arange(4), dp.zeros(4))


def test_arrays_of_more_than_three_dimensions_and_rows() -> None:
    @dp.kernel
    def element(item: dp.Item, x: Any, y: Any, k: Any) -> None:
        y[0] = x[1, 0, 1, k, 0]

    @dp.kernel
    def row(item: dp.Item, x: Any, y: Any, k: Any) -> None:
        y[0] = x[k, 0][1, 1][0]

    x, y = dp.reshape(dp.arange(16), (2, 2, 2, 2, 1)), dp.zeros(1)
    for kernel, inside, index in ((element, 11, r"\(1, 0, 1, 2, 0\)"), (row, 11, r"\(2, 0\)")):
        kernel[1](x, y, 1)
        assert y.item() == inside
        with pytest.raises(
            dp.KernelExecutionError, match=rf"index {index} .* of x, .* \(2, 2, 2, 2, 1\)"
        ):
            kernel[1](x, y, 2)


class Corner(NamedTuple):
    x: float
    y: int


CORNER = Corner(0.5, 2)


def test_tuples_are_checked_and_may_be_of_several_types() -> None:
    @dp.kernel
    def mixed(item: dp.Item, y: Any) -> None:
        pair = (1, 0.5)
        y[0] = pair[0] + pair[1] + CORNER.x + CORNER[1]

    @dp.kernel
    def weighted(item: dp.Item, y: Any, k: Any) -> None:
        weights = (1.0, 2.0, 3.0)
        y[0] = weights[k]

    y = dp.zeros(1)
    mixed[1](y)
    assert y.item() == 4
    weighted[1](y, -1)
    assert y.item() == 3
    with pytest.raises(dp.KernelExecutionError, match=r"index 3 .* of weights, .* \(3,\)"):
        weighted[1](y, 3)


def test_an_atomic_with_named_arguments_is_checked() -> None:
    @dp.kernel
    def kernel(item: dp.Item, x: Any) -> None:
        dp.AtomicRef(ref=x, index=item.get_id(0) + 1).fetch_add(1)

    x = dp.zeros(2, dtype="int64")
    kernel[1](x)
    assert x.tolist() == [0, 1]
    with pytest.raises(dp.KernelExecutionError, match="index 2 is out of bounds of x"):
        kernel[2](x)


def test_nothing_is_written_outside_or_instead() -> None:
    @dp.kernel
    def kernel(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        y[i + 1] = 10 * x[i]
        y[i + 1] += 1
        y[i + 2], y[i + 3] = 5, 6

    whole = dp.zeros(8, dtype="int64")
    empty = whole[3:3]
    for y in (whole[2:4], empty):
        with pytest.raises(dp.KernelExecutionError, match="of y"):
            kernel[2](dp.arange(1, 3), y)
        assert whole.tolist() == [0, 0, 0, 11 if y is not empty else 0, 0, 0, 0, 0]
        whole[...] = 0


def test_assignments_are_made_in_the_order_of_python() -> None:
    def exchange(item: Any, x: Any, y: Any) -> None:
        i = 0
        i, x[i] = 1, 7
        x[i], i = x[i + 1], 2
        y[0] = x[i] = y[1] = i
        x[3], (y[2], rest) = x[0], (x[2], 8)
        y[3] -= rest + y[-1]

    x, y = np.arange(4), np.arange(4)
    exchange(None, x, y)
    on_device = [dp.arange(4), dp.arange(4)]
    dp.kernel(exchange)[1](*on_device)
    assert [each.tolist() for each in on_device] == [x.tolist(), y.tolist()]


def test_a_file_that_changed_since_is_not_the_source(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    text = "def kernel(item, x):\n    x[item.get_id(0)] = 3\n"
    for written in (text.replace("3", "4"), text.replace("x", "y"), "", text):
        file.write_text(text)
        scope: dict[str, Any] = {}
        exec(compile(text, str(file), "exec"), scope)
        kernel = dp.kernel(scope["kernel"])
        file.write_text(written)
        os.utime(file, (len(written), 0))
        linecache.checkcache()
        x = dp.zeros(2)
        kernel[2](x)
        assert x.tolist() == [3, 3]
        with pytest.raises(dp.KernelExecutionError, match="of x"):
            kernel[3](x)


def test_without_debug_nothing_is_checked() -> None:
    x, y = dp.arange(64, dtype="int32")[:8], dp.zeros(64, dtype="int32")[:8]
    with dp.config.override(debug=False):
        dp.call_kernel(shift, dp.Range(6), x, y)
        assert y.tolist()[:6] == [3, 4, 5, 6, 7, 8]


def test_a_kernel_that_only_ran_checked_uses_new_assignments() -> None:
    @dp.device_func
    def change(value: Any) -> Any:
        return value + 1

    @dp.kernel
    def kernel(item: dp.Item, x: Any) -> None:
        x[0] = change(x[0])

    x = dp.ones(1)
    kernel[1](x)
    assert x.item() == 2

    @dp.device_func
    def change(value: Any) -> Any:  # noqa: F811
        return value * 10

    kernel[1](x)
    assert x.item() == 20


@dp.kernel
def shape_by_index(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x.shape[i + 1] + x.strides[i]


def test_indices_of_shapes_are_checked() -> None:
    out = dp.zeros(2, dtype="int64")
    shape_by_index[1](dp.zeros((2, 3)), out)
    with pytest.raises(dp.KernelExecutionError) as caught:
        shape_by_index[2](dp.zeros((2, 3)), out)
    assert "index 2 is out of bounds of x.shape, whose shape is (2,)" in str(caught.value)
    assert "x.shape[i + 1] + x.strides[i]\n             ^^^^^^^^^^^^^^" in str(caught.value)


@pytest.mark.parametrize("debug_mode", [True, False])
def test_assertions_that_hold_change_nothing(debug_mode: bool) -> None:
    out = dp.zeros(4)
    with dp.config.override(debug=debug_mode):
        asserting[4](dp.asarray([0.0, 1.0, 4.0, 9.0]), out)
    assert out.tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.0, 1.0, 2.0], "the assertion x.shape[0] == 4 failed"),
        ([0.0, 1.0, 200.0, 2.0], "the assertion i >= 0 and x[i] < 100 failed: too {large}"),
        ([0.0, 1.0, 50.0, 2.0], "the assertion x[i] != 50 failed: (i, k)"),
        (
            [0.0, -1.0, 2.0, 2.0],
            "the assertion value >= 0 or value < -5 failed: f'negative",
        ),
    ],
)
def test_assertions_are_checked_in_debug_mode_only(values: list[float], text: str) -> None:
    x = dp.asarray(values)
    with pytest.raises(dp.KernelExecutionError) as caught:
        asserting[len(values)](x, dp.zeros(4))
    assert text in str(caught.value)
    with pytest.raises(dp.SimulationError, match="fails: the assertion"):
        dp.simulate(asserting, len(values), np.array(values), np.zeros(4))
    with dp.config.override(debug=False):
        asserting[len(values)](x, dp.zeros(4)).wait()


def test_an_assertion_that_always_fails_does_not_compile() -> None:
    with (
        dp.config.override(debug=False),
        pytest.raises(dp.KernelCompileError, match="an assertion always fails"),
    ):
        asserting_kernels.never[1](dp.zeros(1))


def test_exceptions_other_than_assertions_are_refused() -> None:
    with pytest.raises(dp.KernelCompileError, match="raising an exception is not available"):
        asserting_kernels.raises[1](dp.zeros(1))


def test_assertions_that_pytest_has_rewritten_are_checked() -> None:
    @dp.kernel
    def asserts(item: dp.Item, x: Any) -> None:
        assert x[0] > 0, "positive"
        x[0] += 1

    x = dp.zeros(1)
    with dp.config.override(debug=False):
        asserts[1](x)
    assert x.item() == 1
    asserts[1](x)
    with pytest.raises(dp.KernelExecutionError, match=r"the assertion x\[0\] > 0 failed: positive"):
        asserts[1](dp.zeros(1))
