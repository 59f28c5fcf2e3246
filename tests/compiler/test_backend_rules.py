"""Plain kernels that LLVM turns into modules which its SPIR-V back end cannot write correctly.

Each kernel here is the shortest that meets one of the problems. Without the workaround the module
is refused, or the numbers are wrong. ``test_passes.py`` tests the rules for texts of modules, and
``test_spirv_process.py`` the process that writes them.
"""

from __future__ import annotations

import math
import operator
import os
import re
import runpy
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._compiler import compile
from dparray._compiler.abi import INTEL_CPU, TRIPLE
from dparray._compiler.back_ends.spirv import client, expansions, rules
from tests.compiler.module_rules import faults
from tests.support import TARGET, force

ROOT = Path(__file__).resolve().parents[2]


def module_of(kernel: Any) -> str:
    """Return the LLVM module of a kernel that was launched."""
    (compiled,) = kernel._kernels.values()
    return compiled.llvm


@dp.kernel
def two_exits(item: dp.Item, out: Any, n: Any, m: Any) -> None:
    i = item.get_id(0)
    k = np.int64(i)
    tag = 1
    while k < n:
        if (i - n) < k:
            return
        tag += 1000
        k += 1
    if m == n:
        return
    out[i] += tag


def test_a_loop_with_two_exits_has_no_integers_of_128_bits() -> None:
    for n in (0, 3, -5):
        out, wanted = dp.zeros(4, dtype="int64"), np.zeros(4, "int64")
        dp.call_kernel(two_exits, dp.Range(4), out, np.int16(n), np.int16(9))
        dp.simulate(two_exits, dp.Range(4), wanted, np.int16(n), np.int16(9))
        np.testing.assert_array_equal(out.asnumpy(), wanted)
    assert "i128" not in module_of(two_exits)


@dp.kernel
def closed_form(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_id(0)
    squares = 0
    for k in range(n[i]):
        squares += k * k
    out[i] = squares


def test_sums_over_a_loop_are_counted_in_64_bits() -> None:
    # In closed form, they are products of 65 bits and more.
    n = np.array([0, 1, 2, 1000, 70_000, 200_000])
    out = dp.zeros(n.size, dtype="int64")
    closed_form[n.size](dp.asarray(n), out)
    wanted = [int((np.arange(one, dtype=np.int64) ** 2).sum()) for one in n]
    assert out.tolist() == wanted
    assert not re.search(r"[ ,(]i(?:6[5-9]|[7-9]\d|\d{3,}) ", module_of(closed_form))


@dp.kernel
def cut_to_bytes(item: dp.Item, x: Any, out: Any, width: dp.constexpr) -> None:
    i = item.get_id(0)
    # LLVM loads bytes where a single element is truncated.
    out[i, 0] = np.int8(dp.vec_load(x, i, width)[1])
    out[i, 1] = dp.vec_load(x, i, width).astype(np.int16)[width - 1]


@pytest.mark.parametrize("width", [3, 8, 16])
def test_parts_of_elements_are_no_elements_of_longer_vectors(width: int) -> None:
    x = np.arange(20) * 0x123456789ABC + 0x77
    out = dp.zeros((4, 2), dtype="int64")
    cut_to_bytes[4](dp.asarray(x), out, width)
    wanted = [x[1:5].astype("int8"), x[width - 1 : width + 3].astype("int16")]
    np.testing.assert_array_equal(out.asnumpy(), np.stack(wanted, axis=1))


@dp.kernel
def byte_in_two_widths(item: dp.Item, x: Any, wide: Any, narrow: Any) -> None:
    i = item.get_id(0)
    byte = dp.vec_load(x, i, 8).astype(np.uint8)[7]
    wide[i] = byte
    narrow[i] = narrow[i] | byte


def test_a_part_of_an_element_is_extended_to_fewer_bits_than_the_element_has() -> None:
    x = np.arange(12) * 0x123456789ABC + 0x77
    wide, narrow = dp.zeros(4, dtype="int64"), dp.zeros(4, dtype="int32")
    byte_in_two_widths[4](dp.asarray(x), wide, narrow)
    wanted = x[7:11].astype("uint8").tolist()
    assert wide.tolist() == narrow.tolist() == wanted


@dp.kernel
def extended_twice(item: dp.Item, x: Any, out: Any) -> None:
    v = dp.vec_load(x, 4 * item.get_id(0), 4)
    dp.vec_store(out, 4 * item.get_id(0), v.astype(np.uint16))


def test_vectors_are_extended_by_signs_and_then_by_zeros() -> None:
    x, out = np.arange(-4, 4, dtype="int8"), dp.zeros(8, dtype="int64")
    extended_twice[2](dp.asarray(x), out)
    np.testing.assert_array_equal(out.asnumpy(), x.astype("uint16"))


@dp.kernel
def one_of_many(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    value = x[i]
    if (
        value == 1
        or value == 4
        or value == 5
        or value == 9
        or value == 14
        or value == 19
        or value == 22
    ):
        out[i] = 1
    else:
        out[i] = 0


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64"])
def test_a_set_of_numbers_is_no_bit_map_of_an_odd_width(dtype: str) -> None:
    # LLVM makes a 22-bit integer of it, and the back end a 32-bit one with arbitrary upper bits.
    x = np.arange(-30, 60).astype(dtype)
    out = dp.zeros(x.size, dtype="int32")
    one_of_many[x.size](dp.asarray(x), out)
    assert out.tolist() == np.isin(x, [1, 4, 5, 9, 14, 19, 22]).astype(int).tolist()


def test_integers_of_odd_widths_have_these_widths() -> None:
    # The back end widens it and keeps the bits that were above.
    text = """
target triple = "spirv64-unknown-unknown"
define spir_kernel void @k(ptr addrspace(1) %x) {
  %a = load i32, ptr addrspace(1) %x
  %b = trunc i32 %a to i24
  %c = ashr i24 %b, 4
  %d = sext i24 %c to i32
  store i32 %d, ptr addrspace(1) %x
  ret void
}
"""
    x = dp.asarray([0x12800010], dtype="int32")
    dp.raw_kernel(client.emit(text), "k")[1](x)
    assert x.tolist() == [(0x800010 - 2**24) >> 4]


@dp.kernel
def table(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    value = x[i]
    if value == 0:
        out[i] = 17.25
    elif value == 1:
        out[i] = -3.5
    elif value == 2:
        out[i] = 1e9
    elif value == 3:
        out[i] = 0.125
    elif value == 4:
        out[i] = 42.0
    elif value == 5:
        out[i] = -7.75
    else:
        out[i] = 0.0


def test_choices_of_constants_are_right_whatever_table_they_become() -> None:
    x = np.arange(-2, 9)
    out = dp.zeros(x.size)
    table[x.size](dp.asarray(x), out)
    known = {0: 17.25, 1: -3.5, 2: 1e9, 3: 0.125, 4: 42.0, 5: -7.75}
    assert out.tolist() == [known.get(int(one), 0.0) for one in x]
    # A table in private memory would be copied for each work-item.
    assert not re.search(r"^@\S+ = [^\n]*addrspace\(0\)", module_of(table), re.M)
    assert not re.search(r"^@[^=]+= (?:\w+ )*constant \[", module_of(table), re.M)


@dp.kernel
def overflows(item: dp.Item, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    a, b = x[i], y[i]
    out[i] = a != 0 and (a * b) // a != b


def test_a_product_that_overflows_is_found_by_dividing() -> None:
    x = np.array([0, 1, 3, 2**33, 2**63, 2**64 - 1], np.uint64)
    y = np.array([5, 9, 2**63, 2**31, 3, 2**64 - 1], np.uint64)
    out = dp.zeros(x.size, dtype="bool")
    overflows[x.size](dp.asarray(x), dp.asarray(y), out)
    wanted = [int(a) * int(b) >= 2**64 for a, b in zip(x, y, strict=True)]
    assert out.tolist() == wanted


@dp.kernel
def sums_that_fit(item: dp.Item, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    total = np.int64(x[i]) + np.int64(y[i])
    if np.uint64(total + 2**31) > np.uint64(2**32 - 1):
        out[i] = 0
    else:
        out[i] = np.int32(total)


def test_a_sum_that_does_not_fit_is_found() -> None:
    # LLVM makes it a 32-bit sum that reports overflow, which SPIR-V does not have.
    x = np.array([1, 2**31 - 1, -(2**31), 2**31 - 1, -7], "int32")
    y = np.array([1, 1, -1, -(2**31), 2**31 - 1], "int32")
    out = dp.zeros(5, dtype="int32")
    sums_that_fit[5](dp.asarray(x), dp.asarray(y), out)
    assert out.tolist() == [2, 0, 0, -1, 2**31 - 8]


@dp.kernel
def chosen_by_33_bits(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    value = x[i] & (2**33 - 1)
    if value == 1:
        out[i] = math.sin(out[i])
    elif value == 7:
        out[i] = math.cos(out[i])
    elif value == 2**32 + 3:
        out[i] = math.exp(out[i])
    elif value == 99:
        out[i] = math.log(out[i])


def test_numbers_of_33_bits_are_distinguished_in_64() -> None:
    # For a target whose integers LLVM does not know, it would be a switch on 33.
    x = np.array([1, 7, 2**32 + 3, 99, 3, 1 - 2**33, 7 + 2**32])
    out = dp.full(x.size, 0.5)
    chosen_by_33_bits[x.size](dp.asarray(x), out)
    wanted = [math.sin(0.5), math.cos(0.5), math.exp(0.5), math.log(0.5), 0.5, math.sin(0.5), 0.5]
    np.testing.assert_allclose(out.asnumpy(), wanted, rtol=1e-12)
    assert "i33" not in module_of(chosen_by_33_bits)


@dp.kernel
def reversed_bits(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    v = x[i]
    v = np.uint32(
        ((v >> np.uint32(1)) & np.uint32(0x55555555)) | ((v & np.uint32(0x55555555)) << 1)
    )
    v = np.uint32(
        ((v >> np.uint32(2)) & np.uint32(0x33333333)) | ((v & np.uint32(0x33333333)) << 2)
    )
    v = np.uint32(
        ((v >> np.uint32(4)) & np.uint32(0x0F0F0F0F)) | ((v & np.uint32(0x0F0F0F0F)) << 4)
    )
    v = np.uint32(
        ((v >> np.uint32(8)) & np.uint32(0x00FF00FF)) | ((v & np.uint32(0x00FF00FF)) << 8)
    )
    out[i] = np.uint32((v >> np.uint32(16)) | (v << 16))


def test_bits_in_reverse() -> None:
    x = np.array([0, 1, 0x80000000, 0x12345678, 0xFFFF0000], np.uint32)
    out = dp.zeros(x.size, dtype="uint32")
    reversed_bits[x.size](dp.asarray(x), out)
    assert out.tolist() == [int(f"{int(one):032b}"[::-1], 2) for one in x]


@dp.device_func
def tail_of(row: Any) -> Any:
    return row[1:]


@dp.kernel
def strided(item: dp.Item, x: Any, out: Any) -> None:
    tail = tail_of(x[item.get_id(0)])
    out[item.get_id(0)] = tail[0] + tail[-1] + x[item.get_id(0), ::2][1]


def test_views_of_views_stay_in_their_memory() -> None:
    # Numba's address arithmetic loses the address space.
    x = np.arange(48.0).reshape(6, 8)[:, ::2]
    out = dp.zeros(6)
    strided[6](dp.asarray(np.arange(48.0).reshape(6, 8))[:, ::2], out)
    np.testing.assert_array_equal(out.asnumpy(), x[:, 1] + x[:, 3] + x[:, 2])


@dp.kernel
def one_norm(item: dp.NdItem, x: Any, out: Any, width: Any) -> None:
    total = np.float32(0)
    for k in range(x.shape[0]):
        at = np.uint64(k)
        row = at // width
        total += abs(x[row + (at - row * width) * np.uint64(3)])
    out[0] = total


@dp.kernel
def guarded_norm(item: dp.NdItem, x: Any, out: Any, width: Any) -> None:
    if item.get_global_id(0) >= 1:
        return
    total = np.float32(0)
    for k in range(x.shape[0]):
        at = np.uint64(k)
        row = at // width
        total += np.float32(math.sin(x[row + (at - row * width) * np.uint64(3)]))
    out[0] = total


@pytest.mark.parametrize(("kernel", "function"), [(one_norm, np.abs), (guarded_norm, np.sin)])
def test_work_items_may_all_do_the_same(kernel: Any, function: Any) -> None:
    # Intel's CPU driver ends the process unless the address of the store is hidden.
    x = np.arange(36, dtype="float32")
    out = dp.zeros(1, dtype="float32")
    kernel[dp.NdRange(64, 64)](dp.asarray(x), out, np.uint64(12))
    np.testing.assert_allclose(out.asnumpy(), function(x).sum(), rtol=1e-5)


@dp.kernel
def sines_of_cosines(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    a = math.cos(x[i])
    b = math.sin(a)
    out[i] = math.sin(x[i]) * b * math.cos(a) + math.sin(b) * math.cos(b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sines_and_cosines_of_sines_and_cosines(dtype: str) -> None:
    # Intel's CPU driver ends the process unless the arguments of two cosines are hidden.
    x = np.linspace(-9, 9, 30).astype(dtype)
    out = dp.zeros(30, dtype=dtype)
    dp.call_kernel(sines_of_cosines, 30, dp.asarray(x), out)
    a, b = np.cos(x), np.sin(np.cos(x))
    expected = np.sin(x) * b * np.cos(a) + np.sin(b) * np.cos(b)
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-4, atol=1e-6)


def test_a_norm_of_all_elements_of_a_transposed_array() -> None:
    x = np.arange(36, dtype="float32").reshape(3, 4, 3)
    with force("fused"):
        norm = dp.linalg.vector_norm(dp.asarray(x).transpose(2, 0, 1))
        assert float(norm) == pytest.approx(np.linalg.norm(x), rel=1e-6)


@dp.device_func
def choose(first: Any, second: Any, which: Any) -> Any:
    pair = (first, second)
    return pair if which else (second, first)


@dp.kernel
def pairs(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    a, b = choose(x[i], 2 * x[i], i % 2 == 0)
    out[i] = 10 * a + b


def test_structures_that_are_chosen_are_split() -> None:
    out = dp.zeros(4, dtype="int64")
    pairs[4](dp.arange(4), out)
    assert out.tolist() == [0, 21, 24, 63]
    assert not re.search(r"(?:select|phi)[^\n]*[{]", module_of(pairs))


@dp.kernel
def smallest(item: dp.NdItem, x: Any, out: Any) -> None:
    i = item.get_global_id(0)
    out[i] = min(x[i], np.float32(1)) + max(np.float32(1), x[i])


def test_minima_and_maxima_are_pythons_where_there_is_nan() -> None:
    # As llvm.minimum and llvm.maximum they would lose NaN.
    x = np.array([np.nan, 0, 2, np.inf], np.float32)
    out, wanted = dp.zeros(4, dtype="float32"), np.zeros(4, np.float32)
    smallest[dp.NdRange(4, 4)](dp.asarray(x), out)
    dp.simulate(smallest, dp.NdRange(4, 4), x, wanted)
    np.testing.assert_array_equal(out.asnumpy(), wanted)


@dp.kernel
def prints_truth(item: dp.Item, x: Any) -> None:
    print("is", x[0] > 1, x[0], "and", x[0] > 5)


def test_texts_are_values_of_a_format(capfd: pytest.CaptureFixture[str]) -> None:
    # The back end takes no pointers for the "..." of printf.
    x = dp.asarray([2.5])
    prints_truth[1](x).wait()
    assert capfd.readouterr().out == "is True 2.5 and False\n"
    assert "..." not in module_of(prints_truth)


@dp.kernel
def vectors_across_a_group_algorithm(item: dp.NdItem, x: Any, out: Any, n: Any) -> None:
    i = item.get_global_id(0)
    memory = dp.PrivateArray(18, np.int64, True)
    dp.vec_store(memory, 1, dp.vec_load(x, i, 16))
    before = x[i]
    total = dp.reduce_over_group(item.get_group(), before, "add")
    out[i] = dp.vec_load(memory, 0, 16)[n] + total + before


@dp.kernel
def vectors_across_barriers(item: dp.NdItem, x: Any, out: Any, n: Any) -> None:
    i = item.get_global_id(0)
    memory = dp.PrivateArray(32, np.int64, True)
    dp.vec_store(memory, n, dp.vec_load(x, i, 16))
    before = x[i]
    for k in range(n):
        dp.group_barrier(item.get_group())
        v = dp.vec_load(memory, 0, 16)
        dp.vec_store(memory, k, v * v[k] + before)
    out[i] = memory[n] + before


@pytest.mark.parametrize("kernel", [vectors_across_a_group_algorithm, vectors_across_barriers])
@pytest.mark.parametrize("group", [1, 6, 16])
def test_private_memory_of_long_vectors_outlasts_a_barrier(kernel: Any, group: int) -> None:
    # With LLVM's alignment of 128 bytes, the address is wrong and the process ends.
    x, wanted = np.arange(3 * group + 20), np.zeros(3 * group, "int64")
    out = dp.zeros(3 * group, dtype="int64")
    dp.call_kernel(kernel, dp.NdRange((3 * group,), (group,)), dp.asarray(x), out, 3)
    dp.simulate(kernel, dp.NdRange((3 * group,), (group,)), x, wanted, 3)
    np.testing.assert_array_equal(out.asnumpy(), wanted)
    assert ", align 128\n" not in module_of(kernel)


# Each runs in a separate process, because the driver ends it if the workaround is missing.
_COMPLEMENTS = {
    "~min(min(x[i], x[i + 1]), x[i + 2])": "of three",
    "~dp.vec_load(x, i, 16).min()": "of a vector",
    "~dp.vec_load(x, i, 3).min()": "of a short vector",
    "int(x[i] ^ ~x[i + 1]) ^ max(min(x[i], x[i + 3]), x[i + 1])": "beside them",
    "~least_of(x, i)": "of a loop",
}
_COMPLEMENT = """
import math
import sys
import warnings
import numpy as np
import dparray as dp

@dp.device_func
def least_of(x, i):
    least = x[i]
    for k in range(1, 6):
        least = min(least, x[i + k])
    return least

@dp.kernel
def complement(item, x, out, real):
    i = item.get_id(0)
    y = {}
    out[i] = y
    real[i] = math.sin(y & 7)

for dtype in ("int32", "uint32", "int64"):
    x = (np.arange(60) * 7 % 23).astype(dtype)
    wanted, sine = np.zeros(20, dtype), np.zeros(20, "float32")
    out, real = dp.zeros(20, dtype=dtype), dp.zeros(20, dtype="float32")
    dp.call_kernel(complement, 20, dp.asarray(x), out, real)
    dp.simulate(complement, 20, x, wanted, sine)
    np.testing.assert_array_equal(out.asnumpy(), wanted)
    np.testing.assert_allclose(real.asnumpy(), sine, rtol=1e-5, atol=1e-5)
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", _COMPLEMENTS, ids=_COMPLEMENTS.values())
def test_complements_with_extremes_are_valid_instructions(text: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_COMPLEMENT.format(text))
    environment = dict(os.environ, PYTHONPATH=str(ROOT), DPARRAY_CACHE_DIR=str(tmp_path))
    command = [sys.executable, str(program)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr


_OVERFLOWS: dict[str, Callable[[int, int], int]] = {
    "sadd": operator.add,
    "ssub": operator.sub,
    "smul": operator.mul,
    "umul": operator.mul,
}


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_each_width_of_an_expansion_gives_its_numbers(width: int) -> None:
    kind = f"i{width}"
    both = f"{{ {kind}, i1 }}"
    texts = [f"declare {kind} @llvm.bitreverse.{kind}({kind}) #0"]
    body = f"  %r = call {kind} @llvm.bitreverse.{kind}({kind} %a)\n"
    results = ["%r"]
    for name in _OVERFLOWS:
        intrinsic = f"{both} @llvm.{name}.with.overflow.{kind}({kind}"
        texts.append(f"declare {intrinsic}, {kind}) #0")
        body += f"""  %{name} = call {intrinsic} %a, {kind} %b)
  %{name}.low = extractvalue {both} %{name}, 0
  %{name}.over = extractvalue {both} %{name}, 1
  %{name}.one = zext i1 %{name}.over to {kind}
"""
        results += [f"%{name}.low", f"%{name}.one"]
    for place, result in enumerate(results):
        body += f"""  %at{place} = mul i64 %i, {len(results)}
  %place{place} = add i64 %at{place}, {place}
  %out{place} = getelementptr {kind}, ptr addrspace(1) %out, i64 %place{place}
  store {kind} {result}, ptr addrspace(1) %out{place}
"""
    texts.append(f"""declare spir_func i64 @_Z13get_global_idj(i32)
define spir_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %out) {{
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %of.a = getelementptr {kind}, ptr addrspace(1) %x, i64 %i
  %a = load {kind}, ptr addrspace(1) %of.a
  %of.b = getelementptr {kind}, ptr addrspace(1) %y, i64 %i
  %b = load {kind}, ptr addrspace(1) %of.b
{body}  ret void
}}
attributes #0 = {{ nounwind }}
""")
    text = expansions.apply('target triple = "spirv64-unknown-unknown"\n' + "\n".join(texts))
    assert "llvm." not in text
    most = 1 << (width - 1)
    numbers = [0, 1, -1, 2, 7, -11, most - 1, -most, most // 2, 3 - most]
    pairs = [(a, b) for a in numbers for b in numbers]
    x, y = (dp.asarray(np.array(side, f"int{width}")) for side in zip(*pairs, strict=True))
    out = dp.zeros((len(pairs), len(results)), dtype=f"int{width}")
    dp.raw_kernel(client.emit(text), "k")[len(pairs)](x, y, out)
    for (a, b), (reverse, *found) in zip(pairs, out.tolist(), strict=True):
        every = (1 << width) - 1
        wanted = [int(f"{a & every:0{width}b}"[::-1], 2)]
        for name, compute in _OVERFLOWS.items():
            given, least = ((a, b), -most) if name[0] == "s" else ((a & every, b & every), 0)
            exact = compute(*given)
            wanted += [exact & every, not least <= exact <= least + every]
        assert [one & every for one in (reverse, *found)] == wanted, (a, b)


def language_of(spirv: bytes) -> tuple[int, ...]:
    """Return the source language that a module declares, and its version."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    at = 5
    while words[at] & 0xFFFF != _OP_SOURCE:
        at += words[at] >> 16
    return words[at + 1 : at + 3]


_OP_SOURCE = 3
_OPENCL_C = 3


def test_modules_are_opencl_c() -> None:
    # For the language that LLVM writes by default, Intel's CPU driver does not vectorize
    # two-dimensional ranges: a stencil takes 16 times as long.
    two_exits[1](dp.zeros(1, dtype="int64"), 1, 1)
    assert {language_of(each.module) for each in two_exits._kernels.values()} == {
        (_OPENCL_C, 300000)
    }
    text = "def generated(item, x):\n    i = uint64(item.get_id(0))\n    x[i] = x[i] + 1\n"
    generated = compile.compile_generated(text, ("item:1", "f4:1C"), {}, TARGET)
    assert language_of(generated.module) == (_OPENCL_C, 300000)


# Numbers that leave loops. Intel's CPU driver vectorizes the loops of the remainder kernel for the
# last work-items, so ranges that are not divisible by a power of two show its faults.


@dp.device_func
def steps_up_to(m: Any) -> Any:
    count = 0
    while True:
        if count > m:
            return count
        count += 1


@dp.kernel
def counts(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_id(0)
    m = n[i]
    count = 0
    q = 0
    while True:
        q += 1
        if q > m:
            break
        count += 1
    out[0, i] = count
    k = 0
    a = 0
    b = 0
    while k <= m:
        k += 1
        b = a + 3
        a = b - 1
    out[1, i] = b
    out[2, i] = steps_up_to(m)


@dp.kernel
def sums_in_a_while(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_id(0)
    m = n[i]
    total = 0
    k = 0
    while k <= m:
        j = k
        k += 1
        total += k * j
    out[0, i] = total
    total = 0
    k = m
    while k > 0:
        total ^= k
        k -= 1
    out[1, i] = total
    out[2, i] = k


@dp.kernel
def leaves_at_two_places(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_id(0)
    m = n[i]
    a = 2
    b = i
    d = 3
    for k in range(25):
        if k >= m:
            break
        d += k
        b = (m - i) & (d >> 1)
    for k in range(19):
        if k >= m:
            break
        d += 6
        j = 0
        while j < (m & 3):
            j += 3
            a = max(i, b) if (d + 1) & 3 == 0 else (a if j < i else i)
    out[0, i] = a
    out[1, i] = d


@dp.device_func
def steps_of_two_bits(a: Any, b: Any) -> Any:
    m = b & 15
    c = a ^ b
    k = 0
    while True:
        k += 1
        if k >= (m & 3):
            break
        c += m
    return c


@dp.kernel
def counts_in_two_bits(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_id(0)
    m = n[i]
    c = i
    total = 0
    k = 0
    while k < m:
        k += 3
        c = steps_of_two_bits(2 * i, k)
        total += c
    out[0, i] = c
    out[1, i] = total


@dp.kernel
def writes_memory(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_id(0)
    m = n[i]
    p = dp.PrivateArray(4, np.int64, True)
    k = 0
    while k <= m:
        k += 1
        p[k & 3] += m
    for j in range(np.int64(m), -1, -2):
        p[j & 3] += 1
    out[0, i] = p[0] + 7 * p[1] + 49 * p[2] + 343 * p[3]
    k = 0
    while True:
        if k > m:
            break
        k += 1
        out[1 + (k & 1), i] = m + k


@dp.kernel
def adds_at_low_bits(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_id(0)
    m = n[i]
    p = dp.PrivateArray(8, np.int64, True)
    for k in range(64):
        p[(k * 5) & 7] += m
    k = 0
    while k <= m:
        k += 1
        p[k % 4] += k
    for j in range(8):
        out[j % 3, i] += (j + 1) * p[j]


@dp.kernel
def sums_floats(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_id(0)
    m = n[i]
    step = float(i)
    a = 0.0
    b = np.float32(0)
    k = 0
    while k <= m:
        k += 1
        a += step
        b += np.float32(step)
    out[0, i] = int(a)
    out[1, i] = int(b)
    while True:
        if k > 2 * m:
            break
        k += 1
        a += step
        step = a - step
    out[2, i] = int(a) % 1000


_SWAPS = {
    "fibonacci": "for k in range(1000):\n        if k >= m: break\n        a, b = b, a + b",
    "swapped in a while": "k = 0\n    while True:\n        k += 1\n        if k > m: break\n"
    "        a, b = b, a + k",
    "rotated": "for k in range(m):\n        a, b, c = b, c, a + 1",
    "greatest common divisor": "while b:\n        a, b = b, int(a) % int(b)",
    "the value before": "k = 0\n    while k < m:\n        k += 1\n        a = b\n        b = c\n"
    "        c = k",
}
_SWAP = """
import numpy as np
import dparray as dp

@dp.kernel
def swaps(item, n, out):
    i = item.get_id(0)
    m, a, b, c = n[i], {0}(0), {0}(1), {0}(2)
    {1}
    out[i] = {2}

for size in (8, 16, 27):
    n, wanted = np.arange(size) % 13, np.zeros(size, "int64")
    out = dp.zeros(size, dtype="int64")
    dp.call_kernel(swaps, size, dp.asarray(n), out)
    dp.simulate(swaps, size, n, wanted)
    np.testing.assert_array_equal(out.asnumpy(), wanted)
"""


@pytest.mark.parametrize(
    "kernel",
    [
        counts,
        sums_in_a_while,
        leaves_at_two_places,
        counts_in_two_bits,
        writes_memory,
        adds_at_low_bits,
        sums_floats,
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16"])
@pytest.mark.sample(3)
def test_numbers_that_leave_loops_are_those_of_the_last_step(kernel: Any, dtype: str) -> None:
    for size in (1, 8, 13, 16, 21, 47):
        n, wanted = (np.arange(size) % 23).astype(dtype), np.zeros((3, size), "int64")
        out = dp.zeros((3, size), dtype="int64")
        dp.call_kernel(kernel, size, dp.asarray(n), out)
        dp.simulate(kernel, size, n, wanted)
        np.testing.assert_array_equal(out.asnumpy(), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["int", "np.float64"])
def test_values_that_change_places_in_loops(kind: str, tmp_path: Path) -> None:
    # A separate process, because the driver ends it if a phi's next value is another phi.
    program = tmp_path / "program.py"
    texts = (_SWAP.format(kind, text, name) for text in _SWAPS.values() for name in "ab")
    program.write_text("\n".join(texts))
    environment = dict(os.environ, PYTHONPATH=str(ROOT), DPARRAY_CACHE_DIR=str(tmp_path))
    command = [sys.executable, str(program)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr


_ODD_OPERATIONS = {
    "add": lambda a, b, n: a + b,
    "sub nsw": lambda a, b, n: a - b,
    "mul": lambda a, b, n: a * b,
    "shl": lambda a, b, n: a << b % n,
    "lshr": lambda a, b, n: a % 2**n >> b % n,
    "ashr": lambda a, b, n: a >> b % n,
    "xor": lambda a, b, n: a ^ b,
    "and": lambda a, b, n: a & b,
    "or": lambda a, b, n: a | b,
    "udiv": lambda a, b, n: a % 2**n // (b % 2**n or 1),
    "urem": lambda a, b, n: a % 2**n % (b % 2**n or 1),
    "smin": lambda a, b, n: min(a, b),
    "smax": lambda a, b, n: max(a, b),
    "umin": lambda a, b, n: min(a % 2**n, b % 2**n),
    "umax": lambda a, b, n: max(a % 2**n, b % 2**n),
    "slt": lambda a, b, n: -(a < b),
    "uge": lambda a, b, n: -(a % 2**n >= b % 2**n),
    "eq": lambda a, b, n: -(a == b),
}


def _odd_integers(bits: int) -> str:
    """Return a kernel whose work-items compute all of these of two integers of odd widths."""
    lines = [
        "  %id = call spir_func i64 @_Z13get_global_idj(i32 0)",
        *(f"  %at.{x} = getelementptr i64, ptr addrspace(1) %{x}, i64 %id" for x in "ab"),
        *(f"  %whole.{x} = load i64, ptr addrspace(1) %at.{x}" for x in "ab"),
        *(f"  %cut.{x} = trunc i64 %whole.{x} to i{bits}" for x in "ab"),
        f"  %is.zero = icmp eq i{bits} %cut.b, 0",
        f"  %divisor = select i1 %is.zero, i{bits} 1, i{bits} %cut.b",
        f"  %by = urem i{bits} %cut.b, {bits % 2**bits}",
        "  br label %again",
        "again:",
        f"  %first = phi i{bits} [ %cut.a, %entry ], [ %same, %again ]",
        f"  %same = freeze i{bits} %first",
        "  br i1 false, label %again, label %end",
        "end:",
        "  %row = mul i64 %id, ROWS",
    ]
    for at, name in enumerate(_ODD_OPERATIONS):
        kind = f"i{bits}"
        if name in ("slt", "uge", "eq"):
            lines += [f"  %bit.{at} = icmp {name} {kind} %first, %cut.b"]
            lines += [f"  %r.{at} = sext i1 %bit.{at} to {kind}"]
        elif name[1:] in ("min", "max"):
            call = f"call {kind} @llvm.{name}.{kind}({kind} %first, {kind} %cut.b)"
            lines += [f"  %r.{at} = {call}"]
        else:
            is_shift = name.endswith(("shl", "shr"))
            other = "%by" if is_shift else "%divisor" if name.startswith("u") else "%cut.b"
            lines += [f"  %r.{at} = {name} {kind} %first, {other}"]
        lines += [
            f"  %n.{at} = add i64 %row, {at}",
            f"  %to.{at} = getelementptr i64, ptr addrspace(1) %out, i64 %n.{at}",
            f"  %long.{at} = sext {kind} %r.{at} to i64",
            f"  store i64 %long.{at}, ptr addrspace(1) %to.{at}",
        ]
    given = ", ".join(f"ptr addrspace(1) %{name}" for name in ("a", "b", "out"))
    return "\n".join(
        [
            'target triple = "spirv64-unknown-unknown"',
            "declare spir_func i64 @_Z13get_global_idj(i32)",
            *(
                f"declare i{bits} @llvm.{name}.i{bits}(i{bits}, i{bits})"
                for name in ("smin", "smax", "umin", "umax")
            ),
            f"define spir_kernel void @k({given}) {{",
            "entry:",
            *(line.replace("ROWS", str(len(_ODD_OPERATIONS))) for line in lines),
            "  ret void",
            "}",
            "",
        ]
    )


@pytest.mark.parametrize("bits", [2, 3, 7, 9, 24, 33, 63])
def test_integers_of_odd_widths_are_kept_in_standard_ones(bits: int) -> None:
    def signed(value: int) -> int:
        return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)

    ends = [0, 1, 2, 3, -1, -2, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 2**62 + 5]
    pairs = [(a, b) for a in ends for b in ends]
    a, b = (dp.asarray(each, dtype="int64") for each in zip(*pairs, strict=True))
    out = dp.zeros((len(pairs), len(_ODD_OPERATIONS)), dtype="int64")
    text = rules.writable(_odd_integers(bits), INTEL_CPU)
    assert not re.search(rf"\bi{bits}\b", text)
    dp.raw_kernel(client.emit(text), "k")[len(pairs)](a, b, out)
    wanted = [
        [signed(compute(signed(x), signed(y), bits)) for compute in _ODD_OPERATIONS.values()]
        for x, y in pairs
    ]
    # A shift's distance is the unsigned number modulo the width.
    for row, (x, y) in zip(wanted, pairs, strict=True):
        for at, (name, compute) in enumerate(_ODD_OPERATIONS.items()):
            if name.endswith(("shl", "shr")):
                row[at] = signed(compute(signed(x), y % 2**bits, bits))
    np.testing.assert_array_equal(out.asnumpy(), wanted)


@dp.kernel
def one_of_some(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = 1 if x[i] in (1, 4, 5, 9, 14, 19, 22) else 0


_CARRIES = range(149, 153)  # OpIAddCarry, OpISubBorrow, OpUMulExtended, OpSMulExtended
_SWITCH = 251


def test_a_set_of_numbers_is_no_switch() -> None:
    # Intel's GPU compiler ends the process if labels share a block that has a phi.
    x = np.array([1, 4, 5, 9, -1, 0], "int8")
    out = dp.zeros(6, dtype="int64")
    one_of_some[6](dp.asarray(x), out)
    assert out.tolist() == [1, 1, 1, 1, 0, 0]
    (compiled,) = one_of_some._kernels.values()
    assert _SWITCH not in opcodes(compiled.module)


def test_sums_that_are_compared_have_no_carry() -> None:
    # Intel's GPU compiler ends the process at these instructions.
    text = f"""
target triple = "{TRIPLE}"
define spir_kernel void @k(ptr addrspace(1) %x) {{
  %a = load i64, ptr addrspace(1) %x
  %b = add i64 %a, 1
  %c = icmp eq i64 %b, 0
  %d = select i1 %c, i64 %a, i64 %b
  store i64 %d, ptr addrspace(1) %x
  ret void
}}
"""
    assert not opcodes(client.emit(text)) & {*_CARRIES}


def opcodes(spirv: bytes) -> set[int]:
    """Yield the opcodes of a module's instructions."""
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    at, found = 5, set()
    while at < len(words):
        found.add(words[at] & 0xFFFF)
        at += words[at] >> 16
    return found


_KEPT = """
import numpy as np
import dparray as dp

@dp.kernel
def kept(item, n, x, out):
    i = item.get_id(0)
    m, b, k = n[i], {first}, 0
    {loop}
        if {condition}:
            b = {value}
    for j in range(m):
        b += x[i]
    out[i] = b
"""


@pytest.mark.parametrize("loop", ["while k <= m:\n        k += 2", "for j in range(7):"])
@pytest.mark.parametrize(
    ("first", "value"),
    [("1", "0"), ("1.0", "0.0"), ("np.float32(3)", "np.float32(2)"), ("np.int8(1)", "np.int8(5)")],
)
@pytest.mark.parametrize("condition", ["m & 3", "m & 3 and m & 4"])
def test_variables_of_a_loop_belong_to_each_work_item(
    loop: str, first: str, value: str, condition: str, tmp_path: Path
) -> None:
    # One work-item's number was used for all where the next loop begins with it.
    text = _KEPT.format(loop=loop, first=first, value=value, condition=condition)
    program = tmp_path / "kept.py"
    program.write_text(text)
    kernel = runpy.run_path(str(program))["kept"]
    rng = np.random.default_rng(7)
    n, x = rng.integers(-1, 10, 64), rng.integers(0, 50, 64)
    out = dp.zeros(64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.exceptions.KernelTypeWarning)
        dp.call_kernel(kernel, dp.Range(64), dp.asarray(n), dp.asarray(x), out)
    (compiled,) = kernel._kernels.values()
    assert not faults(compiled.module)
    is_set = (n & 3 > 0) & ((n & 4 > 0) | ("and" not in condition))
    is_set &= (n >= 0) | ("while" not in loop)
    start, other = (float(eval(each, {"np": np})) for each in (first, value))
    wanted = np.where(is_set, other, start) + np.maximum(n, 0) * x
    np.testing.assert_array_equal(out.asnumpy(), wanted)


@dp.kernel
def chosen_before_a_return(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_linear_id()
    m, a, b = n[i], 0, 0
    for _ in range(m & 3):
        if m & 3 == 0:
            a, b = b, a + 1
        if (i + a) & 1 == 0:
            out[0, i] = 2 if m & 3 == 0 else 5
            return
    out[0, i] = 2 if m & 3 == 0 else 5
    out[1, i] = a


@dp.kernel
def chosen_behind_a_break(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_linear_id()
    m, a, b = n[i], 0, 0
    for _ in range(m, -1, -3):
        if m & 3 == 0:
            a, b = b, a + 1
        if (i + a) & 1 == 0:
            break
    out[0, i] = 5 if m & 3 == 0 else 2
    out[1, i] = a


@dp.kernel
def chosen_with_memory(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_linear_id()
    m, a = n[i], 0
    for k in range(m):
        if m & 3 == 0:
            out[1, i] += a + k
        if n[(i + a) & 15] > 12:
            break
    out[0, i] = 5 if m & 3 != 0 else 2


@dp.kernel
def chosen_in_a_later_loop(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_linear_id()
    m, a, b = n[i], 0, 0
    for _ in range(m, -1, -3):
        if m & 3 == 0:
            a, b = b, a + 1
        if (i + a) & 1 == 0:
            break
    for k in range(m, -1, -3):
        if m & 3 == 0:
            b = b + 2 - a
        if (i + b + k) & 7 == 5:
            break
    out[0, i] = 5 if m & 3 == 0 else 2
    out[1, i] = b


@dp.kernel
def chosen_in_a_loop_with_one_exit(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_linear_id()
    m, a, f = n[i], 0, 1.0
    for _ in range(m):
        a = 0 if m & 3 == 0 else 3
        if m & 3 == 0:
            out[1, i] += 1
        f = f * 0.5
    out[0, i] = a + int(f * 1024)


@dp.kernel
def chosen_behind_a_loop_with_two_conditions(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_linear_id()
    m, a, is_odd = n[i], 0, False
    while a < 40 and not is_odd:
        if m & 3 == 0:
            out[1, i] += 1
        a = a + m + 7
        is_odd = a & 1 != 0
    out[0, i] = a + (5 if m & 3 == 0 else 2)


@dp.kernel
def chosen_by_the_end_of_an_inner_loop(item: dp.Item, n: Any, out: Any) -> None:
    i = item.get_linear_id()
    m, b, c, most = n[i], 5, 5, 0
    d = m
    while most <= m:
        most += 3
    for _ in range(m):
        k = 0
        while k < m & 3:
            k += 3
            b, d = d, b
        for _ in range(26):
            if k != most:
                d = k
            c = d
            d = 7
        for j in range(5):
            if j >= m:
                break
            d, b = b, d
            b = 5
    out[0, i], out[1, i] = c, d


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
@pytest.mark.parametrize(
    "kernel",
    [
        chosen_before_a_return,
        chosen_behind_a_break,
        chosen_with_memory,
        chosen_in_a_later_loop,
        chosen_in_a_loop_with_one_exit,
        chosen_behind_a_loop_with_two_conditions,
        chosen_by_the_end_of_an_inner_loop,
    ],
)
@pytest.mark.sample(3)
def test_a_condition_behind_a_loop_belongs_to_each_work_item(kernel: Any, dtype: str) -> None:
    # One work-item's condition was used for all if it was fixed in a loop.
    for shape in ((16,), (47,), (2, 61)):
        size = math.prod(shape)
        n = np.random.default_rng(7).integers(0, 30, size).astype(dtype)
        out, wanted = dp.zeros((2, size), dtype="int64"), np.zeros((2, size), "int64")
        dp.call_kernel(kernel, dp.Range(*shape), dp.asarray(n), out)
        dp.simulate(kernel, dp.Range(*shape), n, wanted)
        np.testing.assert_array_equal(out.asnumpy(), wanted)
    assert not any(faults(one.module) for one in kernel._kernels.values())


# --- collective operations ------------------------------------------------------------------------


@dp.kernel
def continues_at_the_condition(item: dp.NdItem, out: Any) -> None:
    group, x = item.get_group(), item.get_local_id(0)
    c, n = 0, 0
    while dp.any_of_group(group, n < 10):
        n += 1
        if x == 0:
            continue
        c += 5
    out[item.get_global_id(0)] = c


@dp.kernel
def continues_at_two_conditions(item: dp.NdItem, out: Any) -> None:
    group, x = item.get_group(), item.get_local_id(0)
    c, n = 0, 0
    while n < 10 and dp.any_of_group(group, n < x):
        n += 1
        if x & 1:
            continue
        c += n
    out[item.get_global_id(0)] = c


@dp.kernel
def continues_behind_a_barrier(item: dp.NdItem, out: Any) -> None:
    group, x = item.get_group(), item.get_local_id(0)
    c, i = 0, 0
    while i < 10:
        dp.group_barrier(group)
        i += 1
        c += 1
        if x == 0:
            continue
        c += 10
    out[item.get_global_id(0)] = c


@dp.kernel
def continues_in_a_nest(item: dp.NdItem, out: Any) -> None:
    group, x = item.get_group(), item.get_local_id(0)
    c = 0
    for k in range(3):
        n = 0
        while dp.any_of_group(group, n < k):
            n += 1
            if (x + k) % 3 == 0:
                continue
            c += 10 * k + n
    out[item.get_global_id(0)] = c


@dp.kernel
def continues_for_ever(item: dp.NdItem, out: Any) -> None:
    group, x = item.get_sub_group(), item.get_local_id(0)
    c, k = 0, 0
    while True:
        k += 1
        if not dp.any_of_group(group, k <= 12 + x % 4):  # 15 steps in sub-groups of any size
            break
        if x == k:
            c = 7
            continue
        for j in range(x):
            if c > 40 + j:
                break
            c += j
    out[item.get_global_id(0)] = c


@dp.kernel
def continues_before_a_later_barrier(item: dp.NdItem, out: Any) -> None:
    group, x = item.get_group(), item.get_local_id(0)
    c, n = 0, 0
    while n < 10:
        n += 1
        if n == 2:
            c += 1
        dp.group_barrier(group)
        if x & 1:
            continue
        c += n
    out[item.get_global_id(0)] = c


@dp.device_func
def steps_of_a_group(group: Any, x: Any) -> Any:
    c, n = 0, 0
    while dp.any_of_group(group, n < x):
        n += 1
        if (x + n) % 3 == 0:
            continue
        c += n
    return c


@dp.kernel
def continues_in_a_function(item: dp.NdItem, out: Any) -> None:
    out[item.get_global_id(0)] = steps_of_a_group(item.get_group(), item.get_local_id(0))


@dp.kernel
def continues_at_a_choice(item: dp.NdItem, out: Any) -> None:
    group, x = item.get_group(), item.get_local_id(0)
    c, n = 0, 0
    while dp.any_of_group(group, (n < x if x > 2 else n < 1)):
        n += 1
        if x & 1:
            continue
        c += n
    out[item.get_global_id(0)] = c


@dp.kernel
def continues_in_the_last_statement(item: dp.NdItem, out: Any) -> None:
    # Each copy of the condition has a copy of the return.
    group, x, i = item.get_group(), item.get_local_id(0), item.get_global_id(0)
    c, n = 0, 0
    out[i] = c
    while dp.any_of_group(group, n < x):
        n += 1
        if (x + n) % 3 == 0:
            continue
        c += n
        out[i] = c


@pytest.mark.parametrize("size", [4, 12, 64])
@pytest.mark.parametrize(
    "kernel",
    [
        continues_at_the_condition,
        continues_at_two_conditions,
        continues_behind_a_barrier,
        continues_in_a_nest,
        continues_for_ever,
        continues_before_a_later_barrier,
        continues_in_a_function,
        continues_at_a_choice,
        continues_in_the_last_statement,
    ],
)
def test_work_items_that_continue_meet_the_others(kernel: Any, size: int) -> None:
    # CPython compiles the condition of a loop twice, and ``continue`` jumps to the first copy. The
    # loops are too long to be unrolled.
    group = min(size, 16)
    out, wanted = dp.full(size, -1, dtype="int64"), np.zeros(size, "int64")
    dp.call_kernel(kernel, dp.NdRange(size, group), out)
    dp.simulate(kernel, dp.NdRange(size, group), wanted)
    np.testing.assert_array_equal(out.asnumpy(), wanted)
    calls = re.findall(r"call [^\n]*@_Z\d+__spirv_(?:Group|ControlBarrier)", module_of(kernel))
    assert len(calls) == 1


@pytest.mark.parametrize("steps", [2, 3, 8])
@pytest.mark.parametrize("size", [4, 12, 64])
def test_work_items_meet_in_each_step_of_an_unrolled_loop(steps: int, size: int) -> None:
    @dp.kernel
    def continues(item, out):
        group, x = item.get_group(), item.get_local_id(0)
        c = n = 0
        while dp.any_of_group(group, n < steps):
            n += 1
            dp.group_barrier(group)
            if (x + n) % 3 == 0:
                continue
            c += n
        for k in range(steps):
            total = dp.reduce_over_group(group, c + k, "add")
            if (x + k) & 1:
                continue
            c += total % 7
        out[item.get_global_id(0)] = c

    group = min(size, 16)
    out, wanted = dp.full(size, -1, dtype="int64"), np.zeros(size, "int64")
    dp.call_kernel(continues, dp.NdRange(size, group), out)
    dp.simulate(continues, dp.NdRange(size, group), wanted)
    np.testing.assert_array_equal(out.asnumpy(), wanted)


@dp.kernel
def sum_by_for(item, counts, starts, values, out):
    i = item.get_id(0)
    total = starts[i]
    for k in range(counts[i]):
        total = total + values[k] * 1.5
    out[i] = total


@dp.kernel
def sum_by_while(item, counts, starts, values, out):
    i = item.get_id(0)
    total, count, k = starts[i], counts[i], 0
    while k < count:
        total = total + values[i]
        k += 1
    out[i] = total


@pytest.mark.parametrize("kernel", [sum_by_for, sum_by_while])
@pytest.mark.parametrize("size", [1, 8, 14, 40])
def test_floats_are_added_in_order(kernel: Any, size: int) -> None:
    numbers = np.random.default_rng(size)
    counts = numbers.integers(20, 60, size)
    starts = numbers.random(size) * 1e17
    values = numbers.integers(-60, 60, 100).astype("float64")
    out = dp.zeros(size)
    dp.call_kernel(kernel, dp.Range(size), *map(dp.asarray, (counts, starts, values)), out)
    wanted = []
    for i in range(size):
        total = float(starts[i])
        for k in range(counts[i]):
            total += values[k] * 1.5 if kernel is sum_by_for else values[i]
        wanted.append(total)
    assert out.tolist() == wanted


@dp.kernel
def nearest_of_all(item, counts, values, out):
    i = item.get_id(0)
    best, label = np.float32(1000), np.int32(0)
    for k in range(16):
        distance = values[(i + k) % 50]
        if distance < best:
            best = distance
            label = np.int32(k)
    out[0, i] = best
    out[1, i] = label


@dp.kernel
def nearest_of_some(item, counts, values, out):
    i = item.get_id(0)
    best, label = np.float32(1000), 0
    for k in range(3, counts[i]):
        label = k * 2 if values[k] <= best else label
        best = values[k] if values[k] <= best else best
    out[0, i] = best
    out[1, i] = label


@dp.kernel
def two_nearest(item, counts, values, out):
    i = item.get_id(0)
    best = second = np.float32(1000)
    for k in range(counts[0]):
        if values[(i + k) % 50] < best:
            second = best
            best = values[(i + k) % 50]
        elif values[(i + k) % 50] < second:
            second = values[(i + k) % 50]
    out[0, i] = best
    out[1, i] = second


@pytest.mark.parametrize("kernel", [nearest_of_all, nearest_of_some, two_nearest])
@pytest.mark.slow
@pytest.mark.sample(1)
def test_minima_and_their_indices_are_right_at_every_size(kernel: Any) -> None:
    for size in (*range(1, 68), 130):
        numbers = np.random.default_rng(size)
        counts, values = numbers.integers(0, 40, size), numbers.integers(0, 30, 50).astype("f4")
        out, wanted = dp.zeros((2, size)), np.zeros((2, size))
        dp.call_kernel(kernel, dp.Range(size), dp.asarray(counts), dp.asarray(values), out)
        dp.simulate(kernel, dp.Range(size), counts, values, wanted)
        np.testing.assert_array_equal(out.asnumpy(), wanted, f"{size}")


def test_the_end_of_a_search_for_a_minimum_is_not_hidden() -> None:
    # With a hidden end, the nearest of 16 centers takes three times as long.
    counts, values = dp.zeros(20, dtype="int64"), dp.zeros(50, dtype="float32")
    dp.call_kernel(nearest_of_all, dp.Range(20), counts, values, dp.zeros((2, 20)))
    assert "%dparray.count." not in module_of(nearest_of_all)
