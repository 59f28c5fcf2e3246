"""Cases in which the simulator's results differed from the device's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dparray as dp


@dp.kernel
def extremes(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[4 * i] = min(x[i], 1.0)
    out[4 * i + 1] = max(x[i], 1.0)
    out[4 * i + 2] = min(1.0, x[i])
    out[4 * i + 3] = max(1.0, x[i])


@dp.kernel
def gammas(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[4 * i] = math.gamma(x[i])
    out[4 * i + 1] = math.lgamma(x[i])


@pytest.mark.parametrize("kernel", [extremes, gammas])
def test_the_same(kernel: Any) -> None:
    values = [math.nan, 0.0, -0.0, -1.0, -2.0, math.inf, -math.inf, 2.5, -3.5, 200.0, 1.0]
    x = dp.asarray(values)
    found = []
    for run in (dp.call_kernel, dp.simulate):
        out = dp.zeros(4 * len(values))
        run(kernel, dp.Range(len(values)), x, out)
        found.append(out.asnumpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-14)
    np.testing.assert_array_equal(np.signbit(found[1]), np.signbit(found[0]))


@dp.kernel
def neighbors(item: dp.Item, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = math.nextafter(x[i], y[i])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_next_number_is_that_of_the_dtype(dtype: str) -> None:
    x = np.array([1, 1, 0, -0.0, np.inf, 3, np.nan], dtype)
    y = np.array([2, 0, -1, 0.0, 0, 3, 1], dtype)
    for run in (dp.call_kernel, dp.simulate):
        out = dp.zeros(len(x), dtype=dtype)
        run(neighbors, dp.Range(len(x)), dp.asarray(x), dp.asarray(y), out)
        np.testing.assert_array_equal(out.asnumpy(), np.nextafter(x, y))


@dp.kernel
def single_operands(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[4 * i] = -x[i]
    out[4 * i + 1] = abs(x[i])
    out[4 * i + 2] = ~x[i]
    out[4 * i + 3] = +x[i]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32"])
def test_the_least_and_the_largest_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = dp.asarray([info.min, info.min + 1, 5, info.max], dtype=dtype)
    found = []
    for run in (dp.call_kernel, dp.simulate):
        out = dp.zeros(16, dtype="int64")
        run(single_operands, dp.Range(4), x, out)
        found.append(out.tolist())
    assert found[0] == found[1]


@dp.kernel
def greatest_and_least(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[4 * i] = ~max(x[i], x[i])
    out[4 * i + 1] = -min(x[i], x[i])
    out[4 * i + 2] = ~max(x[i], 3)
    out[4 * i + 3] = max(x[i], x[i]) + 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int32", "uint32", "int64"])
def test_a_choice_of_integers_does_not_widen_them(dtype: str) -> None:
    x = dp.asarray([0, 29, 100], dtype=dtype)
    found = []
    for run in (dp.call_kernel, dp.simulate):
        out = dp.zeros(12, dtype="int64")
        run(greatest_and_least, dp.Range(3), x, out)
        found.append(out.asnumpy())
    np.testing.assert_array_equal(found[1], found[0])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("int16", "uint32"),
        ("int8", "uint8"),
        ("uint64", "int64"),
        ("uint64", "uint32"),
        ("float32", "int32"),
        ("float32", "float64"),
    ],
)
def test_a_choice_has_one_type_whichever_side_it_gives(first: str, second: str) -> None:
    limit = 5

    @dp.kernel
    def choose(item: dp.Item, a: Any, b: Any, out: Any) -> None:
        v, w = a[0], b[0]
        out[0] = -(v if v > w else w) // limit
        out[1] = -(v if w > v else w) // limit
        out[2] = -(v if w < 0 else 7)
        out[3] = (a[9] if v > w else v) + 0.5  # a missing element is not read for its type
        out[4] = -(np.int16(item.get_id(0)) if v < w else np.uint32(item.get_id(0) + 1))

    given = np.array([3], first), np.array([9], second)
    simulated, on_device = np.zeros(5), dp.zeros(5)
    dp.simulate(choose, 1, *given, simulated)
    choose[1](*map(dp.asarray, given), on_device)
    np.testing.assert_array_equal(simulated, on_device.asnumpy())


@dp.kernel
def items_of_tuples(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    written = (np.int64(i), 5)
    out[i, 0] = x[i] - (np.int64(i), 5)[x[i] % 2] < x[i]
    out[i, 1] = x[i] - written[i % 2] < x[i]
    out[i, 2] = x[i] - written[1] < x[i]


def test_items_of_tuples_have_one_type() -> None:
    # With a uint64, a literal is a uint64, too, and an int64 makes a float64.
    x = np.arange(6, dtype="uint64")
    found, wanted = dp.zeros((6, 3), dtype="int64"), np.zeros((6, 3), "int64")
    dp.call_kernel(items_of_tuples, dp.Range(6), dp.asarray(x), found)
    dp.simulate(items_of_tuples, dp.Range(6), x, wanted)
    np.testing.assert_array_equal(wanted, found.asnumpy())
    assert wanted[1].tolist() == [1, 1, 0]


@dp.device_func
def limited(value: Any, least: Any) -> Any:
    if value < least:
        return least, 0
    return value, value // 2


@dp.kernel
def joined_types(item: dp.Item, x: Any, y: Any, flags: Any, out: Any) -> None:
    i = item.get_id(0)
    # One function for several types, which returns one of two numbers.
    out[i, 0] = -limited(x[i], y[i])[0] / 2
    out[i, 1] = limited(y[i], np.float32(0.1))[1]
    out[i, 2] = limited(x[i], 3)[0] // 2
    # Values that `or` and `and` choose.
    out[i, 3] = (x[i] or y[i]) / 3
    out[i, 4] = (y[i] and x[i]) / 3
    # A variable whose type changes in a loop, and one whose type changes in a branch.
    t = x[i]
    for k in range(np.uint8(3)):
        t = t * y[i] - k
    out[i, 5] = t / 7
    s = y[i]
    if flags[i]:
        s = np.float32(0.1)
    out[i, 6] = s + s
    # Booleans are integers beside integers, and stay Booleans beside others.
    on = flags[i]
    out[i, 7] = on + flags[0] + on * 2 - (x[i] > 2)
    out[i, 8] = on + flags[0]
    on |= x[i] > 2
    out[i, 9] = on & flags[0]
    count = np.uint64(0)
    count += on
    out[i, 10] = (count - 1) // 3


@pytest.mark.parametrize("first", ["uint64", "int8", "float32"])
@pytest.mark.parametrize("second", ["int64", "uint8", "float64"])
def test_variables_and_results_have_the_types_of_all_their_values(first: str, second: str) -> None:
    x, y = np.array([0, 1, 2, 3, 100], first), np.array([5, 0, 2, 1, 7], second)
    flags = np.array([True, False, True, True, False])
    simulated, on_device = np.zeros((5, 11)), dp.zeros((5, 11))
    dp.simulate(joined_types, 5, x, y, flags, simulated)
    joined_types[5](*map(dp.asarray, (x, y, flags)), on_device)
    np.testing.assert_array_equal(simulated, on_device.asnumpy())
