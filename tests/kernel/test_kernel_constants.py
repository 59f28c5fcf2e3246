"""Constant parameters, local memory of a constant shape, and printf."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import constexpr

# --- dp.constexpr ---------------------------------------------------------------------------------


@dp.kernel
def sum_window(item: dp.Item, x: Any, out: Any, width: dp.constexpr, dtype: constexpr) -> None:
    window = dp.PrivateArray(width, dtype)
    i = item.get_id(0)
    for k in range(width):
        window[k] = x[i + k]
    total = dtype(0)
    for k in range(width):
        total += window[k]
    out[i] = total


@pytest.mark.parametrize("width", [1, 3, 5])
def test_a_constant_is_the_shape_of_a_private_array(width: int, queue: Any) -> None:
    x = dp.arange(12, dtype="int32", sycl_queue=queue)
    out = dp.zeros(12 - width + 1, dtype="int32", sycl_queue=queue)
    sum_window[out.size](x, out, width, np.int32)
    wanted = np.convolve(np.arange(12), np.ones(width, int), "valid")
    np.testing.assert_array_equal(out.asnumpy(), wanted)
    simulated = np.zeros(out.size, np.int32)
    dp.simulate(sum_window, out.size, np.arange(12, dtype=np.int32), simulated, width, np.int32)
    np.testing.assert_array_equal(simulated, wanted)


@dp.kernel
def choose(item: dp.Item, x: Any, out: Any, mode: dp.constexpr, scale: dp.constexpr = 1.5) -> None:
    i = item.get_id(0)
    if mode is None:
        out[i] = x[i].nothing_that_there_is
    elif mode == "copy":
        out[i] = x[i]
    else:
        out[i] = x[i] * scale


def test_only_the_branch_of_a_constant_is_compiled() -> None:
    x, out = dp.arange(3.0), dp.zeros(3)
    choose[3](x, out, "copy")
    assert out.tolist() == [0, 1, 2]
    dp.call_kernel(choose, 3, x, out, mode="scale")
    assert out.tolist() == [0, 1.5, 3]
    choose[3](x, out, "scale", 2)
    assert out.tolist() == [0, 2, 4]
    with pytest.raises(dp.KernelCompileError, match="nothing_that_there_is"):
        choose[3](x, out, None)


def test_each_value_has_a_kernel_of_its_own() -> None:
    @dp.kernel
    def add(item: dp.Item, x: Any, n: dp.constexpr) -> None:
        x[item.get_id(0)] += n

    x = dp.zeros(2)
    for value in (1, 1.0, True, 1, np.int32(1)):
        add[2](x, value)
    assert x.tolist() == [5, 5]
    assert [labels[-1] for labels in add.signatures] == [
        "constant 1",
        "constant 1.0",
        "constant True",
    ]


@dp.kernel
def reduce_by(item: dp.NdItem, x: Any, operation: dp.constexpr, shape: dp.constexpr) -> None:
    tile = dp.PrivateArray(shape, np.float64)
    tile[1, 2] = x[item.get_global_id(0)]
    x[item.get_global_id(0)] = dp.reduce_over_group(item.get_group(), tile[1, 2], operation)


def test_constants_are_names_of_operations_and_tuples() -> None:
    x = dp.asarray([1.0, 2.0, 5.0, 4.0])
    reduce_by[dp.NdRange(4, 2)](x, "max", (2, 3))
    assert x.tolist() == [2, 2, 5, 5]
    dp.simulate(reduce_by, dp.NdRange(4, 4), x, "add", (2, 3))
    assert x.tolist() == [14] * 4


def test_the_length_of_a_text_is_a_number(queue: Any) -> None:
    @dp.kernel
    def store_lengths(item: Any, x: Any) -> None:
        x[0] = len("abc")
        x[1] = len((1, 2)) + item.get_id(0)

    x = dp.zeros(2, dtype="int64", device=queue)
    dp.call_kernel(store_lengths, dp.Range(1), x)
    assert x.tolist() == [3, 2]


def test_invalid_constants_are_refused() -> None:
    with pytest.raises(dp.KernelArgumentError, match=r"'mode' is a list; a dp\.constexpr"):
        choose[3](dp.zeros(3), dp.zeros(3), [1])
    with pytest.raises(dp.KernelArgumentError, match="'scale' is a ndarray"):
        dp.simulate(choose, 3, np.zeros(3), np.zeros(3), "scale", np.zeros(2))


def test_checked_kernels_have_constants() -> None:
    x, out = dp.arange(6, dtype="int32"), dp.zeros(6, dtype="int32")
    with dp.config.override(debug=True):
        sum_window[4](x, out, 3, np.int32)
        with pytest.raises(dp.KernelExecutionError, match="index 6 is out of bounds"):
            sum_window[6](x, out, 2, np.int32)


# --- dp.LocalArray --------------------------------------------------------------------------------


@dp.kernel
def transpose_tiles(item: dp.NdItem, x: Any, out: Any, size: dp.constexpr) -> None:
    tile = dp.LocalArray((size, size), x.dtype)
    other = dp.LocalArray(size, dp.int32)
    row, column = item.get_local_id(0), item.get_local_id(1)
    tile[row, column] = x[item.get_global_id(0), item.get_global_id(1)]
    if row == 0:
        other[column] = column
    dp.group_barrier(item.get_group())
    group = item.get_group()
    first, second = group.get_group_id(1) * size, group.get_group_id(0) * size
    out[first + row, second + column] = tile[column, row] + other[row] - row


RADIUS = 2
WEIGHTS = (0.25, 0.5, 0.25)


@pytest.mark.parametrize("run", [dp.call_kernel, dp.simulate])
@pytest.mark.parametrize("debug", [False, True])
def test_shapes_are_computed_from_constants(run: Any, debug: bool) -> None:
    margin = 3

    @dp.kernel
    def sizes(item: dp.NdItem, x: Any, out: Any, width: dp.constexpr) -> None:
        i = item.get_global_id(0)
        window = dp.PrivateArray(2 * RADIUS + 1, x.dtype)
        table = dp.PrivateArray((RADIUS, RADIUS + 1), dp.float64)
        weights = dp.PrivateArray(len(WEIGHTS), dp.float64)
        given = dp.PrivateArray(shape=max(width, RADIUS) // 2, dtype=x.dtype)
        count = margin - 1
        captured = dp.PrivateArray(count, dp.int64)
        local = dp.LocalArray(width + 2 * RADIUS, dp.float64)
        local[item.get_local_id(0)] = x[i]
        window[2 * RADIUS] = x[i]
        dp.group_barrier(item.get_group())
        out[i, 0] = window.size
        out[i, 1] = table.shape[0] * 10 + table.shape[1]
        out[i, 2] = weights.size * 10 + given.size
        out[i, 3] = captured.size * 10 + local.size
        out[i, 4] = window[2 * RADIUS] + local[3 - item.get_local_id(0)]
        # The name of a shape is not a literal elsewhere.
        out[i, 5] = (np.uint64(2**63) - count) // 2**60

    x, out = dp.arange(8.0), dp.zeros((8, 6))
    with dp.config.override(debug=debug):
        run(sizes, dp.NdRange(8, 4), x, out, 4)
    sums = [3, 3, 3, 3, 11, 11, 11, 11]
    assert out.tolist() == [[5, 23, 32, 28, total, 7] for total in sums]


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64", "complex64"])
def test_a_group_shares_a_local_array(dtype: str, queue: Any) -> None:
    x = np.arange(48).reshape(6, 8).astype(dtype)
    out = dp.zeros((8, 6), dtype=dtype, sycl_queue=queue)
    transpose_tiles[dp.NdRange((6, 8), (2, 2))](dp.asarray(x, sycl_queue=queue), out, 2)
    np.testing.assert_array_equal(out.asnumpy(), x.T)
    simulated = np.zeros((8, 6), dtype)
    dp.simulate(transpose_tiles, dp.NdRange((6, 8), (2, 2)), x, simulated, 2)
    np.testing.assert_array_equal(simulated, x.T)


@dp.kernel
def reads_before(item: dp.NdItem, out: Any) -> None:
    local = dp.LocalArray(4, dp.int32)
    out[item.get_global_id(0)] = local[item.get_local_id(0)]


@dp.kernel
def reads_another(item: dp.NdItem, out: Any) -> None:
    local = dp.LocalArray(4, dp.int32)
    k = item.get_local_id(0)
    local[k] = k
    out[item.get_global_id(0)] = local[(k + 1) % 4]


@dp.kernel
def without_groups(item: dp.Item, out: Any) -> None:
    local = dp.LocalArray(4, dp.int32)
    local[item.get_id(0)] = 1
    out[item.get_id(0)] = local[item.get_id(0)]


@dp.kernel
def of_any_shape(item: dp.NdItem, out: Any, n: int) -> None:
    local = dp.LocalArray(n, dp.int32)
    out[0] = local[0]


def test_the_simulator_checks_local_arrays() -> None:
    with pytest.raises(dp.SimulationError, match="which no item wrote"):
        dp.simulate(reads_before, dp.NdRange(4, 4), np.zeros(4, int))
    with pytest.raises(dp.SimulationError, match=r"no item wrote|no barrier between"):
        dp.simulate(reads_another, dp.NdRange(4, 4), np.zeros(4, int))
    with pytest.raises(dp.SimulationError, match="work-items of a Range do not share"):
        dp.simulate(without_groups, 4, np.zeros(4, int))


def test_invalid_local_arrays_raise() -> None:
    out = dp.zeros(4, dtype="int64")
    with pytest.raises(
        dp.KernelCompileError, match="work-items of a Range do not share local memory"
    ):
        without_groups[4](out)
    with pytest.raises(
        dp.KernelCompileError, match=r"a LocalArray takes a constant shape .* dp\.c"
    ):
        of_any_shape[dp.NdRange(4, 4)](out, 4)


# --- dp.printf ------------------------------------------------------------------------------------

PROGRAM = """
import numpy as np
import dparray as dp

@dp.kernel
def show(item, x, n):
    dp.printf("%d|%5.2f|%-6u|%x|%c|%%|%e|%s", 1, x[0], n[0], 255, 65, np.float32(0.5))

x, n = dp.asarray([2.5]), dp.asarray([7], dtype="uint8")
if {simulated}:
    dp.simulate(show, 1, x, n)
else:
    show[1](x, n).wait()
"""
SHOWN = "1| 2.50|7     |ff|A|%|5.000000e-01|"


@pytest.mark.parametrize("simulated", [False, True])
def test_printf_writes_as_c_does(simulated: bool, tmp_path: Path) -> None:
    program = PROGRAM.replace("|%s", "|").replace("{simulated}", str(simulated))
    file = tmp_path / "program.py"  # the simulator shows lines of files
    file.write_text(program)
    found = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    assert found.stdout == SHOWN


@dp.kernel
def of_a_text(item: dp.Item, x: Any) -> None:
    dp.printf("%s", x[0])


@dp.kernel
def of_another_type(item: dp.Item, x: Any) -> None:
    dp.printf("%d", x[0])


@dp.kernel
def of_too_few(item: dp.Item, x: Any) -> None:
    dp.printf("%f %f", x[0])


@dp.kernel
def of_no_text(item: dp.Item, x: Any) -> None:
    dp.printf(x[0])


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (of_a_text, "unknown conversion '%s'"),
        (of_another_type, "%d takes an integer; got float64"),
        (of_too_few, "2 conversions; got 1 values"),
        (of_no_text, "must be a string literal"),
    ],
)
def test_formats_that_do_not_fit_are_refused(kernel: Any, words: str) -> None:
    with pytest.raises(dp.KernelCompileError, match=re.escape(words)):
        kernel[1](dp.ones(1))


@dp.kernel
def of_a_constant(item: dp.Item, x: Any, value: dp.constexpr) -> None:
    x[item.get_id(0)] = value


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, (1, 10**30)])
def test_constants_have_64_bits(value: Any) -> None:
    with pytest.raises(dp.KernelArgumentError, match=r"'value' .* which does not fit into 64 bits"):
        of_a_constant[1](dp.ones(1), value)
