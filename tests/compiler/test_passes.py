"""Passes on LLVM's text, before the back end reads it."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._compiler import compile
from dparray._compiler.abi import INTEL_CPU
from dparray._compiler.back_ends.spirv import rules
from tests.support import TARGET, lowered_modules


def writable(text: str) -> str:
    """Return a module's text as Intel's CPU driver gets it."""
    return rules.writable(text, INTEL_CPU)


def test_conditions_have_one_form() -> None:
    """If a stencil has both forms, Intel's CPU driver makes it 1.8 times slower."""
    text = (
        "  %c = select i1 %a, i1 %b, i1 false\n"
        "  %d = select i1 %c, i1 true, i1 %b\n"
        "  %e = select i1 %a, i32 %x, i32 0\n"
    )
    assert writable(text) == (
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
    assert " or i1 " in text
    assert not re.search(r"select i1 [^,]+, i1 ([^,]+, i1 false|true, i1 )", text)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_the_float_of_a_negated_boolean_is_minus_one(kind: str) -> None:
    text = writable(f"  %y = sitofp i1 %x to {kind}\n")
    assert text == f"  %y = select i1 %x, {kind} -1.000000e+00, {kind} 0.000000e+00\n"


@pytest.mark.parametrize("kinds", ["i64 i8 i32", "<8 x i64> <8 x i16> <8 x i32>"])
def test_truncated_integers_are_extended_in_one_type(kinds: str) -> None:
    whole, cut, kind = re.findall(r"<.*?>|i\d+", kinds)
    mask = "255" if cut == "i8" else "splat (i32 65535)"
    text = f"  %t = trunc nuw {whole} %x to {cut}\n  %y = zext nneg {cut} %t to "
    masked = f'  %"y uncut" = trunc {whole} %x to {kind}\n  %y = and {kind} %"y uncut", {mask}\n'
    assert writable(f"{text}{kind}\n") == text.splitlines()[0] + "\n" + masked
    assert writable(f"{text}{whole}\n") == f"{text}{whole}\n"


@pytest.mark.parametrize(
    ("which", "order"), [("smin", "slt"), ("smax", "sgt"), ("umin", "ult"), ("umax", "ugt")]
)
def test_extremes_of_integers_are_choices(which: str, order: str) -> None:
    """The driver does not know whether a function's result is uniform, so loops would get masks."""
    head = f"  %y = tail call i64 @llvm.{which}.i64(i64 %a, i64"
    for text in (f"{head} 3)\n", f"{head} range(i64 0, -9) %b), !prof !1\n"):
        other = "3" if "3)" in text else "%b"
        assert writable(text) == (
            f"  %dparray.order.0 = icmp {order} i64 %a, {other}\n"
            f"  %y = select i1 %dparray.order.0, i64 %a, i64 {other}\n"
        )
    vectors = "  %y = call <4 x i32> @llvm.smin.v4i32(<4 x i32> %a, <4 x i32> %b)\n"
    assert writable(vectors) == vectors


_LEAST = (
    "  %m = call {0} @llvm.umin.{0}({0} %a, {0} %b)\n"
    "  %n = call {0} @llvm.umin.{0}({0} %m, {0} %c)\n"
)
_COMPLEMENT = "  %y = xor {0} {1}, -1\n"


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
def test_complements_in_chains_of_extremes_are_of_hidden_ones(kind: str) -> None:
    """Intel's CPU driver emits an invalid instruction for all-ones constants in a chain."""
    given = _LEAST.format(kind) + f"  %k = and {kind} %n, %d\n"
    text = writable(given + _COMPLEMENT.format(kind, "%k"))
    assert ", -1" not in text
    assert "call spir_func i32 @_Z12get_work_dimv()" in text
    assert text.count("declare spir_func i32 @_Z12get_work_dimv()") == 1
    assert re.search(rf"^  %y = xor {kind} %k, %dparray\.\w+\.\d+$", text, re.MULTILINE)


def test_the_complement_before_extremes_and_that_of_a_loop_is_hidden() -> None:
    before = _COMPLEMENT.format("i64", "%d") + _LEAST.format("i64").replace("%a", "%y")
    assert "get_work_dim" in writable(before)
    loop = "  %p = phi i32 [ %a, %x ], [ %m, %l ]\n  %m = call i32 @llvm.smax.i32(i32 %p, i32 %b)\n"
    assert "get_work_dim" in writable(loop + _COMPLEMENT.format("i32", "%p"))


def test_other_complements_stay_as_they_are() -> None:
    """They are part of addresses and counts, which the driver should understand."""
    alone = _COMPLEMENT.format("i64", "%d")
    one = "  %m = call i64 @llvm.smin.i64(i64 %y, i64 %b)\n"
    loaded = "  %l = load i64, ptr addrspace(1) %y\n" + _LEAST.format("i64").replace("%a", "%l")
    for rest in ("", one, _LEAST.format("i64"), loaded):
        text = writable(alone + rest)
        assert alone in text
        assert "get_work_dim" not in text


def test_no_kernel_calls_a_function_for_a_minimum() -> None:
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


def test_only_conditions_that_decide_branches_are_hidden() -> None:
    """Addresses chosen by hidden conditions are not contiguous across work-items."""
    chooses = (
        "declare spir_func i64 @_Z13get_global_idj(i32)\n"
        "  %i = call spir_func i64 @_Z13get_global_idj(i32 0)\n"
        "  %j = mul i64 %i, 3\n"
        "  %c = icmp slt i64 %j, %n\n"
        "  %k = select i1 %c, i64 %j, i64 %n\n"
    )
    assert writable(chooses) == chooses
    assert "hidden" in writable(f"{chooses}  br i1 %c, label %a, label %b\n")


def test_conditions_on_the_id_of_a_group_are_not_hidden() -> None:
    """Work-items of a group agree on it; if it were hidden, they would be masked."""
    text = (
        "  %i = call spir_func i64 @_Z{}_idj(i32 0)\n"
        "  %j = mul i64 %i, 3\n"
        "  %c = icmp slt i64 %j, %n\n"
        "  br i1 %c, label %a, label %b\n"
    )
    assert "hidden" not in writable(text.format("12get_group"))
    assert "hidden" in writable(text.format("12get_local"))


def test_only_short_loops_are_unrolled() -> None:
    """LLVM's vectors do not match the device's, and copies of a long body only make it longer."""

    @dp.kernel
    def loops(item: dp.Item, x: Any, y: Any, total: Any) -> None:
        for k in range(x.shape[0]):
            y[k] = x[k] ^ np.uint8(3)
        for k in range(9):
            total[0] += math.sin(total[k + 1])
        for k in range(3):
            total[0] += math.cos(total[k + 1])

    x, y = dp.arange(64, dtype="uint8"), dp.zeros(64, dtype="uint8")
    loops[1](x, y, dp.zeros(10))
    assert y.tolist() == [k ^ 3 for k in range(64)]
    (text,) = loops.inspect_llvm().values()
    assert not re.search(r"<\d+ x ", text)
    assert len(re.findall(r"call [^\n]*@_Z3sin", text)) == 1
    assert len(re.findall(r"call [^\n]*@_Z3cos", text)) == 3


def test_indices_are_only_assumed_to_be_nonnegative() -> None:
    @dp.kernel
    def fill(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = i + item.get_range(0)

    x = dp.zeros(4, dtype="int64")
    fill[4](x)
    (text,) = fill.inspect_llvm().values()
    assert "2147483647" not in text
    assert "2147483648" not in text
    assert "select " not in text  # unlike for an index that may count from the end


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


def test_functions_have_the_names_of_opencl() -> None:
    """Devices do not have the C functions, although Intel's CPU driver finds some on the host."""

    @dp.kernel
    def functions(item: dp.Item, x: Any, y: Any) -> None:
        y[0] = math.exp(x[0]) + math.gamma(x[1]) + x[0] ** x[1] + x[0] % x[1]
        y[1] = math.hypot(x[0], x[1]) + abs(complex(x[0], x[1])) + math.fmod(x[0], x[1])

    x, y = dp.asarray([2.0, 3.0], dtype="float32"), dp.zeros(2)
    functions[1](x, y)
    np.testing.assert_allclose(y.asnumpy(), [math.exp(2) + 12, 2 * 13**0.5 + 2], rtol=1e-6)
    (text,) = functions.inspect_llvm().values()
    names = re.findall(r"^declare [^@\n]*@([^(]+)\(", text, re.MULTILINE)
    assert "_Z3expf" in names
    assert all(name.startswith(("_Z", "llvm.")) for name in names)


@dp.device_func
def steps(x: Any, n: Any) -> Any:
    y = x
    for k in range(n):
        y = y * y + k if y > k else y - 3
    for k in range(n):
        y = y // 7 if y < x else y + k
    for k in range(n):
        y = y ^ k if y & 8 else y | 64
    for k in range(n):
        y = max(y - k, min(x, 3 * k)) if y % 5 else y + x
        for j in range(k):
            y = (y + j) // 3 if y > x else y * j + k
    return y


def test_a_device_function_is_part_of_its_kernel_whatever_its_length() -> None:
    @dp.kernel
    def four_times(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = steps(x[i], 5) + steps(i, x[i]) - steps(x[i], i) + steps(x[i], x[i])

    x, wanted = dp.arange(6), np.arange(6)
    four_times[6](x)
    dp.simulate(four_times, 6, wanted)
    assert x.tolist() == wanted.tolist()
    (text,) = four_times.inspect_llvm().values()
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
    """The back end cannot write a structure that changes in a loop as one value."""

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
    """Intel's CPU driver does not vectorize over work-items if a counted pointer is read."""

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


def test_collective_operations_are_not_duplicated() -> None:
    """LLVM copies calls of functions that are not convergent into branches, and groups split."""
    x, out = dp.arange(8), dp.zeros(8, dtype="int64")
    local = dp.LocalAccessor(4, np.int64)
    dp.call_kernel(between_equal_conditions, dp.NdRange((8,), (4,)), x, out, local)
    assert out.tolist() == [6, 4, -2, -1, 14, 12, -6, -5]
    (text,) = between_equal_conditions.inspect_llvm().values()
    assert len(re.findall(r"call [^\n]*ControlBarrier", text)) == 1


def test_elements_are_read_without_a_copy_of_their_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's code makes copies that LLVM removes; writing them takes longer."""

    def smooth(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        y[i] = x[i, 0] + x[i + 1, -1] + x.shape[0]

    modules = lowered_modules(monkeypatch)
    compile.compile_kernel(smooth, ("item:1", "f4:2A", "f4:1C"), {}, TARGET)
    (module,) = modules
    assert "alloca {" not in module


def test_checked_kernels_leave_the_next_as_it_was() -> None:
    """Signatures are kept from kernel to kernel; checked kernels are compiled differently."""

    def powers(item: dp.Item, x: Any, n: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i + 1] ** 2 + 2 ** n[i] + n[i] // 3 + n[i] ** n[i + 1] % 5

    types = ("item:1", "f4:1C", "i8:1C")
    record = {"checked": True}
    first, checked, again = (
        compile.compile_kernel(powers, each, options, TARGET).llvm
        for each, options in ((types, {}), ((*types, "i8:1C"), record), (types, {}))
    )
    assert again == first != checked


def test_the_functions_of_a_kernel_become_a_part_of_it() -> None:
    """The pass for them is skipped if there are none."""

    @dp.kernel
    def nested(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)

        def twice(value: float) -> float:
            return 2 * value + x[i]

        x[i] = twice(x[i])

    x = dp.asarray([1.0, 2.0])
    nested[2](x)
    assert x.tolist() == [3.0, 6.0]
