"""What LLVM's text is made of before the back end sees it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._compiler import emitter


def test_conditions_have_one_form() -> None:
    """Intel's CPU driver makes a stencil 1.8 times slower that has both."""
    text = (
        "  %c = select i1 %a, i1 %b, i1 false\n"
        "  %d = select i1 %c, i1 true, i1 %b\n"
        "  %e = select i1 %a, i32 %x, i32 0\n"
    )
    assert emitter.writable(text) == (
        "  %c = and i1 %a, %b\n  %d = or i1 %c, %b\n  %e = select i1 %a, i32 %x, i32 0\n"
    )


def test_no_kernel_has_conjunctions_as_choices() -> None:
    @dp.kernel
    def inside(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        j = item.get_id(1)
        if i > 0 and j > 0 and (i < x.shape[0] - 1 or j < x.shape[1] - 1) and x[i, j] > 0:
            y[i, j] = x[i - 1, j] + x[i, j - 1]

    x = dp.ones((8, 8))
    inside[8, 8](x, dp.zeros((8, 8)))
    (text,) = inside.inspect_llvm().values()
    assert "select i1 %" not in text or "i1 false" not in text


@pytest.mark.parametrize("kind", ["float", "double"])
def test_the_float_of_a_negated_truth_value_is_minus_one(kind: str) -> None:
    text = emitter.writable(f"  %y = sitofp i1 %x to {kind}\n")
    assert text == f"  %y = select i1 %x, {kind} -1.000000e+00, {kind} 0.000000e+00\n"


@pytest.mark.parametrize(
    ("which", "order"), [("smin", "slt"), ("smax", "sgt"), ("umin", "ult"), ("umax", "ugt")]
)
def test_extremes_of_integers_are_choices(which: str, order: str) -> None:
    """What a function gives is not known to be the same for all work-items: loops get masks."""
    head = f"  %y = tail call i64 @llvm.{which}.i64(i64 %a, i64"
    for text in (f"{head} 3)\n", f"{head} range(i64 0, -9) %b), !prof !1\n"):
        other = "3" if "3)" in text else "%b"
        assert emitter.writable(text) == (
            f"  %dparray.order.0 = icmp {order} i64 %a, {other}\n"
            f"  %y = select i1 %dparray.order.0, i64 %a, i64 {other}\n"
        )
    vectors = "  %y = call <4 x i32> @llvm.smin.v4i32(<4 x i32> %a, <4 x i32> %b)\n"
    assert emitter.writable(vectors) == vectors


def test_no_kernel_asks_a_function_for_the_lesser_number() -> None:
    @dp.kernel
    def up_to_the_lesser(item: dp.NdItem, x: Any, n: Any) -> None:
        i = item.get_global_id(0)
        for k in range(min(n, x.shape[0])):
            x[i] += k

    x = dp.zeros(8, dtype="int64")
    dp.call_kernel(up_to_the_lesser, dp.NdRange((8,), (4,)), x, 3)
    assert x.tolist() == [3] * 8
    (text,) = up_to_the_lesser.inspect_llvm().values()
    assert "call i64 @llvm.smin" not in text


def test_conditions_on_the_id_of_a_group_are_not_hidden() -> None:
    """Work-items of a group agree on it; hidden, they would be masked."""
    text = (
        "  %i = call spir_func i64 @_Z{}_idj(i32 0)\n"
        "  %j = mul i64 %i, 3\n"
        "  %c = icmp slt i64 %j, %n\n"
        "  br i1 %c, label %a, label %b\n"
    )
    assert "hidden" not in emitter.writable(text.format("12get_group"))
    assert "hidden" in emitter.writable(text.format("12get_local"))


def test_nothing_is_assumed_of_indices_but_that_they_are_not_negative() -> None:
    @dp.kernel
    def fill(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = i + item.get_range(0)

    x = dp.zeros(4, dtype="int64")
    fill[4](x)
    (text,) = fill.inspect_llvm().values()
    assert "2147483647" not in text
    assert "2147483648" not in text


def test_no_variable_of_the_host_is_left_in_a_kernel() -> None:
    @dp.device_func
    def twice(x: Any) -> Any:
        return x + x

    @dp.kernel
    def add(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = twice(x[i])

    add[4](dp.ones(4))
    (text,) = add.inspect_llvm().values()
    assert "NumbaEnv" not in text
    assert text.count("define ") == 1


def test_texts_that_are_printed_are_in_constant_memory(capfd: pytest.CaptureFixture[str]) -> None:
    @dp.kernel
    def show(item: dp.Item, x: Any) -> None:
        print("value", x[item.get_id(0)], x[0] > 1)

    show[1](dp.full(1, 7, dtype=np.int32)).wait()
    (text,) = show.inspect_llvm().values()
    lines = [line for line in text.splitlines() if line.startswith("@")]
    assert lines
    assert all("addrspace(2)" in line for line in lines)
    assert "value 7 True" in capfd.readouterr().out


def test_structures_in_loops_are_split() -> None:
    """A structure that a loop changes is no value that the back end can write."""

    @dp.kernel
    def rotate(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        z = complex(1.0, x[i])
        pair = (i, x[i])
        for _ in range(i + 2):
            z = z * z if z.real > 0 else z + 1
            pair = (pair[0] + 1, pair[1] * 2) if z.imag > 0 else (pair[0], pair[1] - 1)
        y[i] = z.real + pair[0] + pair[1]

    host = np.linspace(-0.5, 0.5, 16)
    x, y = dp.asarray(host), dp.zeros(16)
    rotate[16](x, y)
    expected = []
    for i, value in enumerate(host):
        z, first, second = complex(1.0, value), i, value
        for _ in range(i + 2):
            z = z * z if z.real > 0 else z + 1
            if z.imag > 0:
                first, second = first + 1, second * 2
            else:
                second -= 1
        expected.append(z.real + first + second)
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-10)


def test_loops_count_indices_and_not_pointers() -> None:
    """Intel's CPU driver does not vectorise over work-items what is read by a counted pointer."""

    @dp.kernel
    def sums(item: dp.NdItem, x: Any, local: Any, y: Any) -> None:
        i = item.get_global_id(0)
        total = np.float32(0)
        for k in range(x.shape[0] // 64):
            total += x[k * 64 + i]
        local[item.get_local_id(0)] = total
        dp.group_barrier(item.get_group())
        y[i] = local[15 - item.get_local_id(0)]

    x, y = dp.arange(640, dtype="float32"), dp.zeros(64, dtype="float32")
    sums[dp.NdRange(64, 16)](x, dp.LocalAccessor(16, np.float32), y)
    lines = [line.split() for text in sums.inspect_spirv().values() for line in text.splitlines()]
    pointers = {line[0] for line in lines if "OpTypePointer" in line}
    phis = [line[3] for line in lines if "OpPhi" in line]
    assert phis
    assert not pointers & set(phis)
    expected = np.arange(640.0).reshape(10, 64).sum(axis=0).reshape(4, 16)[:, ::-1].reshape(-1)
    assert y.tolist() == expected.tolist()


@dp.device_func
def wait_for_all(group: Any) -> None:
    dp.group_barrier(group)


@dp.kernel
def between_equal_conditions(item: dp.NdItem, x: Any, out: Any, local: Any) -> None:
    i, lane = item.get_global_id(0), item.get_local_id(0)
    group = item.get_group()
    if lane < 2:
        local[lane] = x[i] + 1
    else:
        local[lane] = x[i] * 2
    wait_for_all(group)
    if lane < 2:
        out[i] = local[3 - lane]
    else:
        out[i] = -local[3 - lane]


def test_what_a_group_does_together_stays_in_one_place() -> None:
    """Of functions that are not convergent, LLVM makes a copy for each branch, and groups split."""
    x, out = dp.arange(8), dp.zeros(8, dtype="int64")
    local = dp.LocalAccessor(4, np.int64)
    dp.call_kernel(between_equal_conditions, dp.NdRange((8,), (4,)), x, out, local)
    assert out.tolist() == [6, 4, -2, -1, 14, 12, -6, -5]
    (text,) = between_equal_conditions.inspect_llvm().values()
    assert len(re.findall(r"call [^\n]*ControlBarrier", text)) == 1
