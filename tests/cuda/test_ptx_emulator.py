"""The emulator of PTX computes as the PTX manual says, and reports faults."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.cuda.ptx_emulator import EmulationError, EndlessError, Memory, Module

_HEAD = ".version 6.3\n.target sm_75\n.address_size 64\n"
_REGISTERS = """.reg .pred %p<9>;
.reg .b16 %rs<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<20>;
"""


def kernel(body: str, parameters: int = 2, *, outside: str = "") -> Module:
    """Return a kernel with 64-bit parameters; the first ones are in %rd1, %rd2, ..."""
    declared = ",\n".join(f".param .u64 k_param_{at}" for at in range(parameters))
    loads = "".join(f"ld.param.b64 %rd{at + 1}, [k_param_{at}];\n" for at in range(parameters))
    text = f"{outside}.visible .entry k(\n{declared}\n)\n{{\n{_REGISTERS}{loads}{body}\nret;\n}}\n"
    return Module(_HEAD + text)


_WORDS = {1: "rs", 2: "rs", 4: "r", 8: "rd"}


def computed(instruction: str, result: str, *operands: Any, before: str = "") -> np.ndarray:
    """Return what an instruction computes of operands ``a``, ``b``, ``c``, in ``d``.

    Each thread takes one element of each operand.
    """
    dtype = np.dtype(result)
    memory, arrays = Memory(), [np.atleast_1d(each) for each in operands]
    count = max(each.size for each in arrays)
    lines = ["mov.u32 %r1, %tid.x;", "cvt.u64.u32 %rd10, %r1;"]
    names = {"d": f"%{_WORDS[dtype.itemsize]}8"}
    addresses = [memory.put(np.zeros(count, dtype))]
    for at, (letter, each) in enumerate(zip("abc", arrays, strict=False)):
        addresses.append(memory.put(np.resize(each, count)))
        size = each.dtype.itemsize
        names[letter] = f"%{_WORDS[size]}{at + (13 if size == 8 else 3)}"
        lines.append(f"mad.lo.u64 %rd11, %rd10, {size}, %rd{at + 2};")
        lines.append(f"ld.global.b{8 * size} {names[letter]}, [%rd11];")
    for line in (before, instruction):
        words = [names.get(word.strip(",|"), word.strip(",|")) for word in line.split()[1:]]
        if words:
            lines.append(f"{line.split()[0]} {', '.join(words)};")
    lines.append(f"mad.lo.u64 %rd11, %rd10, {dtype.itemsize}, %rd1;")
    lines.append(f"st.global.b{8 * dtype.itemsize} [%rd11], {names['d']};")
    module = kernel("\n".join(lines), len(addresses))
    module.launch("k", (1,), (count,), addresses, memory)
    return memory.get(addresses[0], dtype, count)


def numbers(dtype: str) -> np.ndarray:
    """Return numbers of a type: special ones and random ones."""
    generator = np.random.default_rng(1)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        special = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, np.finfo(kind).tiny]
        return np.r_[special, generator.standard_normal(24) * 1000].astype(kind)
    limits = np.iinfo(kind)
    special = [0, 1, 2, limits.max, limits.min, limits.max - 1, 31, 33]
    octets = generator.integers(0, 256, 24 * kind.itemsize, dtype="u1")
    return np.r_[np.array(special, kind), octets.view(kind)]


def test_parameters_have_addresses() -> None:
    module = kernel(
        """mov.u32 %r1, %tid.x;
        setp.ne.u32 %p1, %r1, 0;
        mov.b64 %rd4, k_param_1;
        mov.b64 %rd5, k_param_2;
        selp.b64 %rd6, %rd5, %rd4, %p1;
        ld.param.b64 %rd7, [%rd6];
        mul.wide.u32 %rd8, %r1, 8;
        add.u64 %rd9, %rd1, %rd8;
        st.global.u64 [%rd9], %rd7;""",
        3,
    )
    memory = Memory()
    out = memory.put(np.zeros(2, "u8"))
    module.launch("k", (1,), (2,), [out, np.uint64(5), np.uint64(1 << 40)], memory)
    assert memory.get(out, "u8", 2).tolist() == [5, 1 << 40]


# --- integers -------------------------------------------------------------------------------------

_TRUNCATED = {
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "rem": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}
_INTEGERS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
    **_TRUNCATED,
}


@pytest.mark.parametrize("dtype", ["i2", "i4", "i8", "u2", "u4", "u8"])
@pytest.mark.parametrize("name", _INTEGERS)
def test_integer_instructions_are_pythons(name: str, dtype: str) -> None:
    a, b = numbers(dtype), np.roll(numbers(dtype), 5)
    if name in _TRUNCATED:
        b = np.where(b == 0, 3, b).astype(dtype)
    kind = f"{'s' if dtype[0] == 'i' else 'u'}{8 * int(dtype[1])}"
    bits = 8 * int(dtype[1])
    wanted = [
        _INTEGERS[name](int(x), int(y)) & ((1 << bits) - 1) for x, y in zip(a, b, strict=True)
    ]
    found = computed(f"{name}.{kind} d, a, b", dtype, a, b)
    np.testing.assert_array_equal(found.view(f"u{bits // 8}"), np.array(wanted, f"u{bits // 8}"))


@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
def test_upper_halves_of_products(kind: str) -> None:
    dtype, bits = f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}", int(kind[1:])
    a, b = numbers(dtype), np.roll(numbers(dtype), 3)
    wanted = [(int(x) * int(y) >> bits) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(computed(f"mul.hi.{kind} d, a, b", dtype, a, b), wanted)


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32"])
def test_wide_products(kind: str) -> None:
    letter, size = ("i" if kind[0] == "s" else "u"), int(kind[1:]) // 8
    a, b = numbers(f"{letter}{size}"), np.roll(numbers(f"{letter}{size}"), 3)
    c = np.arange(a.size).astype(f"{letter}{2 * size}")
    wide = f"{letter}{2 * size}"
    with np.errstate(over="ignore"):
        wanted = a.astype(wide) * b.astype(wide)
        np.testing.assert_array_equal(computed(f"mul.wide.{kind} d, a, b", wide, a, b), wanted)
        found = computed(f"mad.wide.{kind} d, a, b, c", wide, a, b, c)
        np.testing.assert_array_equal(found, wanted + c)


@pytest.mark.parametrize("kind", ["b16", "b32", "b64", "u32", "u64", "s16", "s32", "s64"])
def test_shifts_limit_their_amounts(kind: str) -> None:
    bits = int(kind[1:])
    dtype = f"{'i' if kind[0] == 's' else 'u'}{bits // 8}"
    a, amounts = numbers(dtype), np.arange(32, dtype="u4") * 3
    far = [min(int(each), 2 * bits) for each in amounts]
    right = [int(x) >> n for x, n in zip(a, far, strict=True)]
    np.testing.assert_array_equal(computed(f"shr.{kind} d, a, b", dtype, a, amounts), right)
    if kind[0] == "b":
        left = [(int(x) << n) & ((1 << bits) - 1) for x, n in zip(a, far, strict=True)]
        np.testing.assert_array_equal(computed(f"shl.{kind} d, a, b", dtype, a, amounts), left)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_fields(kind: str) -> None:
    bits = int(kind[1:])
    dtype = f"{'i' if kind[0] == 's' else 'u'}{bits // 8}"
    a = numbers(dtype)
    start = np.resize([0, 1, 5, bits - 1, bits, 200], a.size).astype("u4")
    count = np.resize([0, 1, 8, bits, 255], a.size).astype("u4")
    wanted = []
    for value, first, length in zip(a.tolist(), start.tolist(), count.tolist(), strict=True):
        sign = (value >> min(first + length - 1, bits - 1)) & 1 if length and kind[0] == "s" else 0
        kept = [(value >> first + at) & 1 if first + at < bits else sign for at in range(length)]
        found = kept[:bits] + [sign] * (bits - len(kept))
        wanted.append(sum(bit << at for at, bit in enumerate(found)))
    found = computed(f"bfe.{kind} d, a, b, c", dtype, a, start, count)
    np.testing.assert_array_equal(found.view(f"u{bits // 8}"), np.array(wanted, f"u{bits // 8}"))


def test_funnel_shifts() -> None:
    low, high = numbers("u4"), np.roll(numbers("u4"), 7)
    amounts = np.arange(32, dtype="u4") * 2
    whole = [int(h) << 32 | int(x) for x, h in zip(low, high, strict=True)]
    for mode in ("wrap", "clamp"):
        n = [min(int(each), 32) if mode == "clamp" else int(each) & 31 for each in amounts]
        left = [(w << k >> 32) & 0xFFFFFFFF for w, k in zip(whole, n, strict=True)]
        right = [(w >> k) & 0xFFFFFFFF for w, k in zip(whole, n, strict=True)]
        given = low, high, amounts
        np.testing.assert_array_equal(computed_3(f"shf.l.{mode}.b32", *given), left)
        np.testing.assert_array_equal(computed_3(f"shf.r.{mode}.b32", *given), right)


def computed_3(opcode: str, *operands: np.ndarray) -> np.ndarray:
    return computed(f"{opcode} d, a, b, c", "u4", *operands)


def test_bytes_of_two_words_are_permuted() -> None:
    a, b = np.uint32(0x83828180), np.uint32(0x07060504)
    selectors = np.array([0x3210, 0x7654, 0x0246, 0x8C00], "u4")
    found = computed_3("prmt.b32", np.resize(a, 4), np.resize(b, 4), selectors)
    octets = a.tobytes() + b.tobytes()
    for selector, word in zip(selectors, found, strict=True):
        picks = [int(selector) >> 4 * at & 15 for at in range(4)]
        signs = [255 if octets[each & 7] & 128 else 0 for each in picks]
        wanted = bytes(
            sign if each & 8 else octets[each] for each, sign in zip(picks, signs, strict=True)
        )
        assert word.tobytes() == wanted


@pytest.mark.parametrize("bits", [32, 64])
def test_counted_bits(bits: int) -> None:
    a = numbers(f"u{bits // 8}")
    wanted = [int(each).bit_count() for each in a]
    np.testing.assert_array_equal(computed(f"popc.b{bits} d, a", "u4", a), wanted)
    zeros = [bits - int(each).bit_length() for each in a]
    np.testing.assert_array_equal(computed(f"clz.b{bits} d, a", "u4", a), zeros)
    turned = [int(f"{int(each):0{bits}b}"[::-1], 2) for each in a]
    np.testing.assert_array_equal(computed(f"brev.b{bits} d, a", f"u{bits // 8}", a), turned)


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_logic(name: str) -> None:
    a, b = numbers("u8"), np.roll(numbers("u8"), 3)
    wanted = {"and": a & b, "or": a | b, "xor": a ^ b}[name]
    np.testing.assert_array_equal(computed(f"{name}.b64 d, a, b", "u8", a, b), wanted)
    np.testing.assert_array_equal(computed("not.b64 d, a", "u8", a), ~a)
    np.testing.assert_array_equal(computed("neg.s64 d, a", "i8", a), -a.view("i8"))


def test_sums_carry_into_the_next_word() -> None:
    a, b = numbers("u8"), np.roll(numbers("u8"), 3)
    lows = [each.astype("u4") for each in (a, b)]
    highs = [(each >> np.uint64(32)).astype("u4") for each in (a, b)]
    low, high = (np.empty(a.size, "u4") for _ in range(2))
    for name, whole in (("add", a + b), ("sub", a - b)):
        memory = Memory()
        given = [memory.put(each) for each in (*lows, *highs)]
        out = memory.put(np.zeros(2 * a.size, "u4"))
        loads = "\n".join(
            f"add.s64 %rd9, %rd{at + 1}, %rd8;\nld.global.b32 %r{at + 1}, [%rd9];"
            for at in range(4)
        )
        body = f"""mov.u32 %r9, %tid.x;
mul.wide.u32 %rd8, %r9, 4;
{loads}
{name}.cc.u32 %r5, %r1, %r2;
{name}c.u32 %r6, %r3, %r4;
mul.wide.u32 %rd8, %r9, 8;
add.s64 %rd9, %rd5, %rd8;
st.global.v2.b32 [%rd9], {{%r5, %r6}};"""
        kernel(body, 5).launch("k", (1,), (a.size,), [*given, out], memory)
        low, high = memory.get(out, "u4", 2 * a.size).reshape(-1, 2).T
        np.testing.assert_array_equal(high.astype("u8") << np.uint64(32) | low, whole)


# --- floats ---------------------------------------------------------------------------------------


def rounded(value: Fraction, dtype: str) -> float:
    """Return the nearest float, computed with integers."""
    if dtype == "f8":
        return float(value)  # rounds correctly
    near = np.float32(float(value))
    candidates = [
        near,
        np.nextafter(near, np.float32(np.inf)),
        np.nextafter(near, np.float32(-np.inf)),
    ]
    distances = [abs(Fraction(float(each)) - value) for each in candidates]
    least = min(distances)
    equal = [each for each, d in zip(candidates, distances, strict=True) if d == least]
    if len(equal) > 1:  # to even
        return float(next(e for e in equal if not struct.unpack("I", struct.pack("f", e))[0] & 1))
    return float(equal[0])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_fused_operations_round_once(dtype: str) -> None:
    generator = np.random.default_rng(2)
    a, b = generator.standard_normal((2, 200)).astype(dtype)
    c = (-(a * b) * generator.choice([1, 1 + 1e-7, 0.5], 200)).astype(dtype)  # cancels
    found = computed(f"fma.rn.f{8 * int(dtype[1])} d, a, b, c", dtype, a, b, c)
    wanted = [
        rounded(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), dtype)
        for x, y, z in zip(a, b, c, strict=True)
    ]
    np.testing.assert_array_equal(found, np.array(wanted, dtype))


@pytest.mark.parametrize("rounding", ["rz", "rm", "rp"])
@pytest.mark.parametrize("name", ["add", "mul", "fma"])
def test_directed_rounding(name: str, rounding: str) -> None:
    generator = np.random.default_rng(3)
    a, b, c = generator.standard_normal((3, 100)).astype("f4")
    operands = (a, b, c) if name == "fma" else (a, b)
    letters = "a, b, c" if name == "fma" else "a, b"
    found = computed(f"{name}.{rounding}.f32 d, {letters}", "f4", *operands)
    for at, value in enumerate(found):
        x, y, z = (Fraction(float(each[at])) for each in (a, b, c))
        exact = {"add": x + y, "mul": x * y, "fma": x * y + z}[name]
        other = np.nextafter(value, np.float32({"rm": np.inf, "rp": -np.inf, "rz": 0}[rounding]))
        if rounding == "rz":
            outer = np.nextafter(value, np.float32(np.copysign(np.inf, value)))
            assert abs(Fraction(float(value))) <= abs(exact) < abs(Fraction(float(outer)))
        elif rounding == "rm":
            assert Fraction(float(value)) <= exact < Fraction(float(other))
        else:
            assert Fraction(float(other)) < exact <= Fraction(float(value))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_float_instructions_are_numpys(dtype: str) -> None:
    a, b = numbers(dtype), np.roll(numbers(dtype), 5)
    kind = f"f{8 * int(dtype[1])}"
    with np.errstate(all="ignore"):
        wanted = {
            "add.rn": a + b,
            "sub.rn": a - b,
            "mul.rn": a * b,
            "div.rn": a / b,
            "min": np.fmin(a, b),
            "max": np.fmax(a, b),
            "copysign": np.copysign(b, a),
        }
        for name, values in wanted.items():
            np.testing.assert_array_equal(computed(f"{name}.{kind} d, a, b", dtype, a, b), values)
        for name, values in {"sqrt.rn": np.sqrt(a), "abs": np.abs(a), "neg": -a}.items():
            np.testing.assert_array_equal(computed(f"{name}.{kind} d, a", dtype, a), values)


def test_denormals_are_flushed_where_the_instruction_says_so() -> None:
    a = np.array([1e-39, -1e-39, 1e-30], "f4")
    flushed = computed("add.rn.ftz.f32 d, a, b", "f4", a, np.zeros(3, "f4"))
    np.testing.assert_array_equal(flushed, np.array([0, 0, 1e-30], "f4"))
    np.testing.assert_array_equal(computed("add.rn.f32 d, a, b", "f4", a, np.zeros(3, "f4")), a)


def test_approximate_functions_are_the_rounded_exact_ones() -> None:
    a = np.linspace(0.1, 20, 50, dtype="f4")
    wide = a.astype("f8")
    wanted = {
        "ex2": np.exp2(wide),
        "lg2": np.log2(wide),
        "sin": np.sin(wide),
        "cos": np.cos(wide),
        "rcp": 1 / wide,
        "rsqrt": 1 / np.sqrt(wide),
        "sqrt": np.sqrt(wide),
    }
    for name, values in wanted.items():
        found = computed(f"{name}.approx.f32 d, a", "f4", a)
        np.testing.assert_array_equal(found, values.astype("f4"))
    # rcp.approx.ftz.f64 has only the upper half of the result.
    found = computed("rcp.approx.ftz.f64 d, a", "f8", wide)
    assert not (found.view("u8") & np.uint64(0xFFFFFFFF)).any()
    np.testing.assert_allclose(found, 1 / wide, rtol=2.0**-20)


@pytest.mark.parametrize("target", ["s16", "s32", "s64", "u16", "u32", "u64"])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_are_clipped_when_they_become_integers(source: str, target: str) -> None:
    a = np.r_[numbers(f"f{int(source[1:]) // 8}"), np.array([1e30, -1e30, 2.0**31, -(2.0**63)])]
    a = a.astype(f"f{int(source[1:]) // 8}")
    bits = int(target[1:])
    dtype = np.dtype(f"{'i' if target[0] == 's' else 'u'}{bits // 8}")
    limits = np.iinfo(dtype)
    of_nan = 1 << (bits - 1) if 64 in (bits, int(source[1:])) else 0
    wanted = [
        of_nan if math.isnan(x) else int(min(max(x, -1e40), 1e40)) for x in a.astype("f8").tolist()
    ]
    wanted = [
        each if math.isnan(x) else min(max(each, limits.min), limits.max)
        for each, x in zip(wanted, a.astype("f8").tolist(), strict=True)
    ]
    found = computed(f"cvt.rzi.{target}.{source} d, a", dtype.str, a)
    np.testing.assert_array_equal(
        found.view(f"u{bits // 8}"), [each & ((1 << bits) - 1) for each in wanted]
    )


def test_conversions_between_numbers() -> None:
    a = numbers("i4")
    np.testing.assert_array_equal(computed("cvt.s64.s32 d, a", "i8", a), a.astype("i8"))
    unsigned = a.view("u4")
    np.testing.assert_array_equal(computed("cvt.u64.u32 d, a", "u8", unsigned), unsigned)
    np.testing.assert_array_equal(computed("cvt.s32.s8 d, a", "i4", a), a.astype("i1"))
    np.testing.assert_array_equal(computed("cvt.rn.f32.s32 d, a", "f4", a), a.astype("f4"))
    b = numbers("f4")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(computed("cvt.rn.f16.f32 d, a", "f2", b), b.astype("f2"))
    np.testing.assert_array_equal(computed("cvt.f64.f32 d, a", "f8", b), b.astype("f8"))
    np.testing.assert_array_equal(computed("cvt.rmi.f32.f32 d, a", "f4", b), np.floor(b))
    clipped = np.where(np.isnan(b), 0, np.clip(b, 0, 1))
    np.testing.assert_array_equal(computed("cvt.sat.f32.f32 d, a", "f4", b), clipped)


def test_pairs_of_float16() -> None:
    a, b, c = (np.random.default_rng(seed).standard_normal(64).astype("f2") for seed in range(3))
    words = [each.view("u4") for each in (a, b, c)]
    np.testing.assert_array_equal(computed("add.f16x2 d, a, b", "u4", *words[:2]).view("f2"), a + b)
    exact = a.astype("f8") * b.astype("f8") + c.astype("f8")
    found = computed("fma.rn.f16x2 d, a, b, c", "u4", *words).view("f2")
    np.testing.assert_array_equal(found, exact.astype("f2"))


@pytest.mark.parametrize("how", ["eq", "ne", "lt", "ge", "equ", "neu", "ltu", "geu", "num", "nan"])
def test_comparisons_of_floats_with_nan(how: str) -> None:
    a = numbers("f4")
    b = np.resize(np.array([1, np.nan, 0, -1.5, np.inf], "f4"), a.size)
    found = computed("selp.b32 d, 1, 0, %p1", "u4", a, b, before=f"setp.{how}.f32 %p1, a, b")
    is_nan = np.isnan(a) | np.isnan(b)
    plain = {"eq": a == b, "ne": a != b, "lt": a < b, "ge": a >= b}
    if how in ("num", "nan"):
        wanted = is_nan == (how == "nan")
    else:
        wanted = plain[how[:2]] | is_nan if how.endswith("u") else plain[how] & ~is_nan
    np.testing.assert_array_equal(found, wanted)


# --- control flow, exchanges and memory -----------------------------------------------------------


def run(
    body: str, *arrays: np.ndarray, block: int = 64, grid: int = 1, **named: Any
) -> list[np.ndarray]:
    """Launch a kernel over arrays; return them afterward."""
    memory = Memory()
    addresses = [memory.put(each) for each in arrays]
    shared = named.pop("shared", 0)
    module = kernel(body, len(arrays), **named)
    module.launch("k", (grid,), (block,), addresses, memory, shared=shared)
    return [memory.get(at, x.dtype, x.size) for at, x in zip(addresses, arrays, strict=True)]


_THREAD = """mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.s32 %r4, %r2, %r3, %r1;
mul.wide.u32 %rd5, %r4, 4;
add.s64 %rd6, %rd1, %rd5;
"""


def test_threads_of_divergent_loops() -> None:
    """Each thread loops a number of times of its own (Collatz)."""
    body = (
        _THREAD
        + """ld.global.b32 %r5, [%rd6];
mov.b32 %r6, 0;
$L1:
setp.eq.s32 %p1, %r5, 1;
@%p1 bra $L3;
and.b32 %r7, %r5, 1;
setp.eq.s32 %p2, %r7, 0;
@%p2 bra $L2;
mad.lo.s32 %r5, %r5, 3, 1;
add.s32 %r6, %r6, 1;
bra.uni $L1;
$L2:
shr.u32 %r5, %r5, 1;
add.s32 %r6, %r6, 1;
bra.uni $L1;
$L3:
st.global.b32 [%rd6], %r6;"""
    )

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    (found,) = run(body, np.arange(1, 201, dtype="i4"), block=50, grid=4)
    np.testing.assert_array_equal(found, [steps(each) for each in range(1, 201)])


def test_jump_tables() -> None:
    body = (
        _THREAD
        + """and.b32 %r5, %r4, 3;
$L_table:
	.branchtargets
		$L1,
		$L2,
		$L3,
		$L2;
brx.idx %r5, $L_table;
$L1:
mov.b32 %r6, 10;
bra.uni $L4;
$L2:
mov.b32 %r6, 20;
bra.uni $L4;
$L3:
mov.b32 %r6, 30;
$L4:
st.global.b32 [%rd6], %r6;"""
    )
    (found,) = run(body, np.zeros(64, "i4"))
    np.testing.assert_array_equal(found, np.resize([10, 20, 30, 20], 64))


def test_a_predicate_selects_threads() -> None:
    body = _THREAD + "setp.lt.u32 %p1, %r1, 10;\n@!%p1 st.global.b32 [%rd6], %r1;"
    (found,) = run(body, np.full(64, -1, "i4"))
    np.testing.assert_array_equal(found, np.where(np.arange(64) < 10, -1, np.arange(64)))


_TREE = (
    _THREAD
    + """mul.wide.u32 %rd7, %r1, 4;
mov.b64 %rd8, tile;
add.s64 %rd9, %rd8, %rd7;
ld.global.b32 %r5, [%rd6];
st.shared.b32 [%rd9], %r5;
mov.b32 %r6, 32;
$L1:
{barrier}
setp.ge.u32 %p1, %r1, %r6;
@%p1 bra $L2;
mul.wide.u32 %rd10, %r6, 4;
add.s64 %rd11, %rd9, %rd10;
ld.shared.b32 %r7, [%rd11];
ld.shared.b32 %r8, [%rd9];
add.s32 %r8, %r8, %r7;
st.shared.b32 [%rd9], %r8;
$L2:
shr.u32 %r6, %r6, 1;
setp.ne.s32 %p2, %r6, 0;
@%p2 bra $L1;
setp.ne.s32 %p3, %r1, 0;
@%p3 bra $L3;
ld.shared.b32 %r5, [%rd9];
st.global.b32 [%rd6], %r5;
$L3:"""
)


def test_barriers_and_shared_memory_are_those_of_a_block() -> None:
    x = np.arange(320, dtype="i4")
    tile = ".shared .align 4 .b8 tile[256];\n"
    (found,) = run(tile + _TREE.format(barrier="bar.sync 0;"), x, grid=5)
    np.testing.assert_array_equal(found[::64], x.reshape(5, 64).sum(1))
    outside = ".extern .shared .align 16 .b8 tile[];\n"
    body = _TREE.format(barrier="bar.sync 0;")
    (found,) = run(body, x, grid=5, outside=outside, shared=256)
    np.testing.assert_array_equal(found[::64], x.reshape(5, 64).sum(1))


@pytest.mark.parametrize(("mode", "clamp"), [("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)])
@pytest.mark.parametrize("block", [64, 40])
def test_exchanges_in_a_warp(mode: str, clamp: int, block: int) -> None:
    """Values of lanes that do not exist, or are out of range, are the thread's own."""
    body = _THREAD + f"shfl.sync.{mode}.b32 %r5|%p1, %r1, 5, {clamp}, -1;\n"
    body += "selp.b32 %r6, 1000, 0, %p1;\nadd.s32 %r5, %r5, %r6;\nst.global.b32 [%rd6], %r5;"
    (found,) = run(body, np.zeros(block, "i4"), block=block)
    wanted = []
    for thread in range(block):
        lane = thread % 32
        source = {"up": lane - 5, "down": lane + 5, "bfly": lane ^ 5, "idx": 5}[mode]
        is_valid = 0 <= source < 32
        there = thread - lane + source
        wanted.append((there if is_valid and there < block else thread) + 1000 * is_valid)
    np.testing.assert_array_equal(found, wanted)


def test_lanes_that_have_ended_are_not_waited_for() -> None:
    body = (
        _THREAD
        + """setp.gt.u32 %p1, %r1, 40;
@%p1 bra $L9;
bar.sync 0;
shfl.sync.idx.b32 %r5, %r1, 3, 31, -1;
st.global.b32 [%rd6], %r5;
$L9:"""
    )
    (found,) = run(body, np.zeros(64, "i4"))
    wanted = np.where(np.arange(64) < 32, 3, np.where(np.arange(64) <= 40, 35, 0))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("add.u32", 64 * 63 // 2), ("max.u32", 63), ("xor.b32", 0), ("exch.b32", 63), ("inc.u32", 6)],
)
def test_atomic_operations(name: str, wanted: int) -> None:
    operand = "9" if name.startswith("inc") else "%r1"
    body = _THREAD + f"atom.global.{name} %r5, [%rd2], {operand};\nst.global.b32 [%rd6], %r5;"
    before, total = run(body, np.zeros(64, "u4"), np.zeros(1, "u4"))
    # inc counts to 9 and starts again: 64 = 6 * 10 + 4
    assert total[0] == (4 if name.startswith("inc") else wanted)
    if name == "add.u32":
        assert set(before) == {k * (k - 1) // 2 for k in range(64)}


def test_compare_and_exchange_in_a_loop() -> None:
    """Threads that spin for each other get their turns."""
    body = (
        _THREAD
        + """$L1:
ld.volatile.global.b32 %r5, [%rd2];
setp.ne.s32 %p1, %r5, %r4;
@%p1 bra $L1;
add.s32 %r6, %r4, 1;
atom.global.cas.b32 %r7, [%rd2], %r4, %r6;
st.global.b32 [%rd6], %r7;"""
    )
    seen, counter = run(body, np.zeros(16, "i4"), np.zeros(1, "i4"), block=8, grid=2)
    assert counter[0] == 16
    np.testing.assert_array_equal(seen, np.arange(16))


def test_functions_and_printing() -> None:
    text = (
        _HEAD
        + """.extern .func (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
);
.global .align 1 .b8 text[8] = {37, 108, 100, 32, 37, 103, 33};
.func (.param .b32 func_retval0) twice(
	.param .b32 twice_param_0
)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [twice_param_0];
	shl.b32 %r2, %r1, 1;
	st.param.b32 [func_retval0], %r2;
	ret;
}
.func (.param .b32 func_retval0) one()
{
	.reg .b32 %r<2>;
	mov.b32 %r1, 1;
	st.param.b32 [func_retval0], %r1;
	ret;
}
.visible .entry k(
	.param .u64 .ptr .global .align 4 k_param_0
)
{
	.local .align 8 .b8 __local_depot0[16];
	.reg .b64 %SP;
	.reg .b64 %SPL;
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	mov.b64 %SPL, __local_depot0;
	cvta.local.u64 %SP, %SPL;
	ld.param.b64 %rd1, [k_param_0];
	mov.u32 %r1, %tid.x;
	{ // callseq 0, 0
	.param .b32 param0;
	.param .b32 retval0;
	st.param.b32 [param0], %r1;
	call.uni (retval0), twice, (param0);
	ld.param.b32 %r2, [retval0];
	} // callseq 0
	{ // callseq 2, 0
	.param .b32 retval0;
	call.uni (retval0), one, ();
	ld.param.b32 %r4, [retval0];
	} // callseq 2
	add.s32 %r2, %r2, %r4;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	st.global.b32 [%rd3], %r2;
	setp.ne.s32 %p1, %r1, 3;
	@%p1 bra $L__BB0_2;
	add.u64 %rd4, %SP, 0;
	add.u64 %rd5, %SPL, 0;
	mov.b64 %rd6, 42;
	st.local.b64 [%rd5], %rd6;
	mov.b64 %rd7, 0d3FF8000000000000;
	st.local.b64 [%rd5+8], %rd7;
	mov.b64 %rd6, text;
	cvta.global.u64 %rd7, %rd6;
	{ // callseq 1, 0
	.param .b64 param0;
	.param .b64 param1;
	.param .b32 retval0;
	st.param.b64 [param0], %rd7;
	st.param.b64 [param1], %rd4;
	call.uni (retval0), vprintf, (param0, param1);
	ld.param.b32 %r3, [retval0];
	} // callseq 1
$L__BB0_2:
	ret;
}
"""
    )
    memory = Memory()
    out = memory.put(np.zeros(8, "i4"))
    module = Module(text)
    module.launch("k", (1,), (8,), [out], memory)
    np.testing.assert_array_equal(memory.get(out, "i4", 8), 2 * np.arange(8) + 1)
    assert module.printed == ["42 1.5!"]


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [256, -4, 254])
def test_accesses_outside_of_arrays_are_reported(offset: int) -> None:
    body = f"add.s64 %rd3, %rd1, {offset};\nld.global.b32 %r1, [%rd3];"
    with pytest.raises(EmulationError, match=r"outside|misaligned"):
        run(body, np.zeros(64, "i4"))


def test_accesses_outside_of_shared_memory_are_reported() -> None:
    body = ".shared .align 4 .b8 tile[64];\nmov.b64 %rd3, tile;\nst.shared.b32 [%rd3+64], 1;"
    with pytest.raises(EmulationError, match="shared memory"):
        run(body, np.zeros(1, "i4"))


def test_misaligned_accesses_are_reported() -> None:
    body = "ld.global.v2.b32 {%r1, %r2}, [%rd1+4];"
    with pytest.raises(EmulationError, match="misaligned access of 8 bytes"):
        run(body, np.zeros(64, "i4"))


def test_a_barrier_against_an_exchange_is_a_deadlock() -> None:
    body = (
        _THREAD
        + """setp.gt.u32 %p1, %r1, 10;
@%p1 bra $L1;
bar.sync 0;
bra.uni $L2;
$L1:
shfl.sync.idx.b32 %r5, %r1, 3, 31, -1;
$L2:"""
    )
    with pytest.raises(EmulationError, match="deadlock: 32 threads"):
        run(body, np.zeros(64, "i4"))


def test_threads_that_wait_in_a_loop_forever_are_reported() -> None:
    module = kernel("$L1:\nbra.uni $L1;", 0)
    with pytest.raises(EndlessError, match=r"no end after 1000 turns, at 'bra.uni"):
        module.launch("k", (1,), (32,), [], Memory(), max_turns=1000)


def test_unknown_instructions_are_reported() -> None:
    with pytest.raises(EmulationError, match="unknown instruction"):
        run("tex.1d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];", np.zeros(1, "i4"))
