"""Kernels by the front end, run by the interpreter, give what plain Python gives."""

from __future__ import annotations

import cmath
import math
import operator
from typing import Any, NamedTuple

import numpy as np
import pytest

import dparray as dp
from tests.language.running import in_python, run

SCALE = 3
TABLE = (2, 3, 5, 7)


class Point(NamedTuple):
    x: Any
    y: Any = 4


@dp.device_func
def line(x: Any, *, slope: Any = 2, shift: Any = 1) -> Any:
    return slope * x + shift


@dp.device_func
def first_above(x: Any, limit: Any) -> Any:
    for k in range(len(x)):
        if x[k] > limit:
            return k
    return -1


@dp.device_func
def applied(function: Any, value: Any, *more: Any) -> Any:
    for each in more:
        value = function(value, each)
    return value


def control_flow(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    total, count = 0, 0
    for k in range(len(x)):
        if x[k] < 0:
            continue
        total += x[k]
        count = count + 1
        if total > 9:
            break
    else:
        total = -total
    while count > 1 and 0 <= i < 5:
        count //= 2
    else:
        count += 10
    out[i] = total * 100 + count if i % 2 else -count


def early_return(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    if x[i] < 0:
        out[i] = -1
        return
    while True:
        out[i] += 1
        if out[i] > x[i]:
            return


def nested_loops(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    for a in range(i, len(x)):
        for b in range(len(x) - 1, a, -2):
            if x[a] == x[b]:
                break
            out[i] += x[a] * b
        else:
            out[i] += 1000


def changed_types(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    value = 1
    for k in range(3):
        value = value * 2 if k < 2 else value / 4
    best = x[0]
    for k in range(len(x)):
        if k == 0:
            last = x[k]
        elif x[k] > last:
            best, last = x[k], best
    out[i] = value + best + last


def conditions(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    a, b = x[i], x[-1 - i]
    both = a > 0 and b > 0
    either = a > 3 or not b
    chosen = (a or 7) + (a and b)
    if (c := a - b) > 1:
        chosen += c
    inside = 2 in (a, b, 3) and a not in range(0, 9, 3)
    out[i] = both + 2 * either + 10 * chosen + inside * 1000 + (a is not None)


def tuples(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    first, *rest, last = (x[i], 2, 3, x[0])
    total = sum(rest) + len(rest)
    for k, (a, b) in enumerate(zip(TABLE, reversed(TABLE))):  # noqa: B905
        total += k * a * b
    pair = (first, last) if i > 1 else (last, first)
    total += pair[0] * 10 + TABLE[i % 4] + (*pair, 1)[-1] + max(TABLE[1:]) * (TABLE > (2, 3))
    first, last = last, first
    out[i] = total + first - last


def named_tuples(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    p = Point(x[i])
    for k in range(i):
        p = Point(p.x + k, y=p.y * 2)
    q = p if x[i] > 0 else Point(0, x[i])
    out[i] = q.x + 100 * q[1]


def functions(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)

    def twice(value: Any, by: Any = SCALE) -> Any:
        return value * by if value > 2 else value

    add = lambda a, b: a + b + i  # noqa: E731
    out[i] = (
        line(x[i], shift=5)
        + twice(x[i])
        + twice(x[i], by=2)
        + applied(add, 1, 2, x[0])
        + applied(operator.mul, *TABLE[:2])
        + first_above(x, 3)
    )


def parts_of_arrays(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    even, last = x[::2], x[-3:]
    back, column = x[::-2], x[1:6][:, None]
    total = len(even) * 1000 + len(back) * 100 + last[i % 3] + column[-1, 0]
    for each in x[5:1:-3]:
        total += each
    if i > 2:
        even = x[1:4]
    for k in range(len(even)):
        total += even[k] * back[k]
    out[i] = total + x[9:2].shape[0] + x[-100:2].size + x[..., 2:][0]


def numbers(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    a, b = x[i], x[0]
    out[i] = abs(a) + min(a, b, 3) * max(a, 2) + divmod(a, 4)[1] + (a // 3) * 7 + a % -4 + (~a & 6)
    out[i] += round(a / 4) + int(a / 2) + bool(a) + pow(a, 2) + (a << 2) + (a >> 1) + (a ^ b)
    out[i] += (
        any((a, b)) + all((a > 0, b > 0)) + 2**-2 + a**3 + 2 ** max(a, 0) + 3.5 // 1.5 + -7.5 % 2
    )


def mathematics(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    a = x[i] / 10
    out[i] = math.sin(a) + math.hypot(a, 2) + math.exp(-a) + math.floor(a) + math.fabs(a)
    out[i] += math.copysign(1.0, a) + round(a, 2) + round(1234, -2) + np.sign(a) + math.pi
    out[i] += math.log(a + 3, 2) + math.log(a + 3)
    out[i] += math.isnan(a) + math.isfinite(a) + math.ldexp(a, 3) + np.finfo(np.float32).bits


@pytest.mark.parametrize(
    "kernel",
    [
        *(control_flow, early_return, nested_loops, changed_types, conditions, tuples),
        *(named_tuples, functions, parts_of_arrays, numbers),
    ],
)
def test_integers(kernel: Any) -> None:
    x = np.array([3, -2, 5, 0, 2, 1, -4], np.int64)
    mine, plain = np.zeros((2, 7))
    run(kernel, 5, x, mine)
    in_python(kernel, 5, x, plain)
    np.testing.assert_array_equal(mine, plain)


def test_mathematics() -> None:
    x = np.array([3.0, -2.5, 0.0, 17.25])
    mine, plain = np.zeros((2, 4))
    run(mathematics, 4, x, mine)
    in_python(mathematics, 4, x, plain)
    np.testing.assert_allclose(mine, plain, rtol=1e-14)


def complex_numbers(item: Any, z: Any, out: Any) -> None:
    i = item.get_id(0)
    w = z[i]
    total = 1
    for _ in range(3):
        total = total * w - w.conjugate() / (2 + 1j)
    out[i] = total + abs(w) + w**3 + complex(w.imag, 2) * (w == z[0]) - -w + w ** (0.5 + 1j)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(dtype: Any) -> None:
    z = np.array([1 + 2j, -0.5j, 3 - 1j, -2 + 0.5j], dtype)
    mine, plain = np.zeros((2, 4), dtype)
    run(complex_numbers, 4, z, mine)
    in_python(complex_numbers, 4, z, plain)
    np.testing.assert_allclose(mine, plain, rtol=1e-5 if dtype is np.complex64 else 1e-12)


def conversions(item: Any, x: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    a, b = int(x[i]), int(y[i])
    out[i] = abs(a - b) * 10 + (a - b) // 2 + max(a - b, 0) + (~a) * 0.5 + x[i].item()
    out[i] += round(x[i]) - round(y[i]) + (-int(x[i]) < 0) * 1000


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8"])
def test_int_of_an_unsigned_integer_is_signed(dtype: str) -> None:
    x, y = np.array([3, 0, 5, 2], dtype), np.array([5, 0, 3, 9], dtype)
    mine, plain = np.zeros((2, 4))
    run(conversions, 4, x, y, mine)
    in_python(conversions, 4, x, y, plain)
    np.testing.assert_array_equal(mine, plain)


def test_unsigned_integers_follow_numpys_rules() -> None:
    def kernel(item: Any, u: Any, s: Any, out: Any) -> None:
        i = item.get_id(0)
        out[0, i] = u[i] > s[i]
        out[1, i] = s[i] == u[i]
        out[2, i] = (u[i] + 1) // 2
        out[3, i] = u[i] - np.uint64(s[i])
        out[4, i] = u[i] >> 60

    u, s = np.array([1, 2**63 + 5, 2**64 - 1], np.uint64), np.array([-1, 3, -(2**63)], np.int64)
    out = np.zeros((5, 3), np.int64)
    run(kernel, 3, u, s, out)
    values = [*zip(map(int, u), map(int, s), strict=True)]
    expected = [
        [a > b for a, b in values],
        [a == b for a, b in values],
        [(a + 1) % 2**64 // 2 for a, _ in values],
        [a - b for a, b in values],
        [a >> 60 for a, _ in values],
    ]
    wrapped = [[(each + 2**63) % 2**64 - 2**63 for each in row] for row in expected]
    np.testing.assert_array_equal(out, np.array(wrapped))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint16", "bool"])
def test_elements_in_memory_have_the_dtype_of_the_array(dtype: str) -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = x[i] + x[i] * 2

    x = np.arange(5).astype(dtype)
    out = np.zeros(5, dtype)
    run(kernel, 5, x, out)
    np.testing.assert_array_equal(out, (x.astype(float) * 3).astype(dtype))


def test_views_of_any_strides() -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        i, j = item.get_id(0), item.get_id(1)
        out[i, j] = x[i, j] - x.T[j, -1 - i] + x[i].size + x.strides[0] // x.itemsize

    x = np.arange(48.0).reshape(6, 8)[::-2, 1::3]
    mine, plain = np.zeros((2, 3, 3))
    run(kernel, (3, 3), x, mine)
    in_python(kernel, (3, 3), x, plain)
    np.testing.assert_array_equal(mine, plain)


def test_work_items_of_a_group() -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        group = item.get_group()
        k, i = item.get_local_id(0), item.get_global_id(0)
        memory = dp.LocalArray(4, np.int64)
        memory[k] = x[i]
        dp.group_barrier(group)
        out[0, i] = memory[item.get_local_range(0) - 1 - k]
        out[1, i] = dp.group_reduce(group, x[i])
        out[2, i] = dp.inclusive_scan_over_group(group, x[i], "mul")
        out[3, i] = dp.exclusive_scan_over_group(group, x[i], "max", -9)
        out[4, i] = dp.group_broadcast(group, x[i], 2)
        out[5, i] = int(dp.any_of_group(group, x[i] > 6)) + group.leader
        out[6, i] = dp.shift_group_left(item.get_sub_group(), x[i])
        dp.AtomicRef(out, (7, group.get_group_id(0))).fetch_add(x[i])
        swapped, before = dp.AtomicRef(out, (7, 7)).compare_exchange(0, i + 1)
        out[7, 3] += swapped and before == 0

    x = np.array([1, 2, 3, 4, 5, 6, 7, 8])
    out = np.zeros((8, 8), np.int64)
    run(kernel, 8, x, out, local=4)
    rows = x.reshape(2, 4)
    scans = [[-9, *np.maximum.accumulate(row)[:-1]] for row in rows]
    expected = [
        rows[:, ::-1].ravel(),
        np.repeat(rows.sum(1), 4),
        np.cumprod(rows, 1).ravel(),
        np.ravel(scans),
        np.repeat(rows[:, 2], 4),
        [1, 0, 0, 0, 2, 1, 1, 1],
    ]
    np.testing.assert_array_equal(out[:6], expected)
    assert out[7].tolist() == [10, 26, 0, 1, 0, 0, 0, 1]


def test_vectors() -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        v = dp.vec_load(x, 4 * i, 4)
        w = dp.vec_where(v > 2, v * 2, -v) + dp.vec_full(4, 0.5, dp.float64)
        for _ in range(2):
            w = w + dp.vec(1.0, v.x, v[-1], i)
        dp.vec_store(out, 4 * i, w)
        out[8 + i] = v.sum() + w.max() * (v < 3).any()

    x = np.arange(8.0)
    out = np.zeros(10)
    run(kernel, 2, x, out)
    v = x.reshape(2, 4)
    more = np.stack([np.ones(2), v[:, 0], v[:, 3], np.arange(2.0)], 1)
    w = np.where(v > 2, v * 2, -v) + 0.5 + 2 * more
    np.testing.assert_array_equal(out[:8], w.ravel())
    np.testing.assert_array_equal(out[8:], v.sum(1) + w.max(1) * (v < 3).any(1))


def test_private_memory_and_an_index_into_a_tuple_at_run_time() -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        memory = dp.PrivateArray((2, 3), np.int64, fill_zeros=True)
        for k in range(6):
            memory[k // 3, k % 3] += x[i] * k
        out[i] = memory[1, -1] + TABLE[x[i] % 4] * 100

    x = np.array([1, 2, 3])
    out = np.zeros(3, np.int64)
    run(kernel, 3, x, out)
    assert out.tolist() == [5 + 300, 10 + 500, 15 + 700]


def test_an_index_outside_of_a_tuple_or_a_vector_selects_the_first_item() -> None:
    def kernel(item: Any, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = TABLE[x[i]] + dp.vec(10, 20, 30)[x[i]]

    x, out = np.array([1, -1, 4, -5, 2**40]), np.zeros(5, np.int64)
    run(kernel, 5, x, out)
    assert out.tolist() == [23, 37, 12, 12, 12]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_of_floats_round_down_as_in_numpy(dtype: str) -> None:
    def kernel(item: Any, x: Any, y: Any, out: Any) -> None:
        i = item.get_id(0)
        out[0, i], out[1, i] = divmod(x[i], y[i])

    numbers = np.array([1, -1, 0.1, -2.5, 0, np.inf, -np.inf, np.nan, 1e30], dtype)
    x, y = (each.ravel() for each in np.meshgrid(numbers, numbers))
    out = np.zeros((2, x.size), dtype)
    run(kernel, x.size, x, y, out)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, [np.floor_divide(x, y), np.remainder(x, y)])


def test_print_and_printf(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(item: Any, x: Any) -> None:
        i = item.get_id(0)
        print("x", i, x[i], f"<{x[i] > 1}{i}>", 50, "%")
        dp.printf("%5.2f|%d%%\n", x[i], i)

    run(kernel, 2, np.array([0.5, 2.0]))
    lines = ["x 0 0.5 <False0> 50 %", " 0.50|0%", "x 1 2 <True1> 50 %", " 2.00|1%"]
    assert capsys.readouterr().out.splitlines() == lines


def test_the_place_of_a_statement_is_on_its_ops() -> None:
    from dparray._ir.instructions import walk
    from dparray._language.frontend import translated

    def kernel(item: Any, x: Any) -> None:
        x[0] = line(x[1])

    program = translated(kernel, ["item:1", "f8:1C"])
    (store,) = (op for op in walk(program.body) if op.name == "store")
    (product,) = (op for op in walk(program.body) if op.name == "mul")
    first = kernel.__code__.co_firstlineno
    assert (store.place.function, store.place.line) == ("kernel", first + 1)
    assert product.place.function == "line"
    assert product.place.line == line.py_func.__code__.co_firstlineno + 2


CMATH = (
    *(cmath.exp, cmath.log, cmath.log10, cmath.sqrt, cmath.sin, cmath.cos, cmath.tan, cmath.sinh),
    *(cmath.cosh, cmath.tanh, cmath.asin, cmath.acos, cmath.atan, cmath.asinh, cmath.acosh),
    *(cmath.atanh, cmath.phase),
)


@pytest.mark.parametrize("function", CMATH, ids=lambda function: function.__name__)
def test_functions_of_complex_numbers(function: Any) -> None:
    def kernel(item: Any, z: Any, out: Any) -> None:
        out[item.get_id(0)] = function(z[item.get_id(0)])

    z = np.array([1 + 2j, -0.5 + 0.25j, 0.5j, 2.5 - 3j, -1.5 - 0.75j, 3 + 1e-3j])
    out = np.zeros(6, np.complex128)
    run(kernel, 6, z, out)
    np.testing.assert_allclose(out, [function(each) for each in z.tolist()], rtol=1e-12)
    narrow = np.zeros(6, np.complex64)
    run(kernel, 6, z.astype(np.complex64), narrow)
    np.testing.assert_allclose(narrow, out, rtol=2e-5)


def test_parts_of_complex_numbers() -> None:
    def kernel(item: Any, z: Any, out: Any) -> None:
        size, turn = cmath.polar(z[0])
        out[0] = cmath.rect(size, turn) + cmath.isnan(z[1]) + 2 * cmath.isfinite(z[1])
        out[1] = cmath.isinf(complex(1, math.inf)) + cmath.rect(2, 0)

    z, out = np.array([3 + 4j, complex(math.nan, 1)]), np.zeros(2, np.complex128)
    run(kernel, 1, z, out)
    np.testing.assert_allclose(out, [4 + 4j, 3])
