"""Python's constructs give the same results in kernels as in Python."""

from __future__ import annotations

from typing import Any

import dpnp
import numpy as np
import pytest

import dparray as dp
from tests.support import execute

CONSTANTS = (10, 20, 30)
TABLE = np.array([1.0, 2.0])


def test_integer_arithmetic() -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] // 3
        out[i, 1] = x[i] % 3
        out[i, 2] = x[i] ** 2
        out[i, 3] = min(x[i], 2)
        out[i, 4] = abs(x[i])
        out[i, 5] = round(x[i] / 3.0)
        out[i, 6] = int(x[i] / 2)
        out[i, 7] = divmod(x[i], 4)[1]
        out[i, 8] = x[i] << 2
        out[i, 9] = ~x[i]
        out[i, 10] = x[i] >> 1
        out[i, 11] = len(x) + x.size + x.ndim

    x = np.array([-7, -1, 0, 5, 8])
    out = dp.zeros((5, 12), dtype="int64")
    dp.call_kernel(compute, dp.Range(5), dp.asarray(x), out)
    expected = [
        *(x // 3, x % 3, x**2, np.minimum(x, 2), abs(x), [round(v / 3.0) for v in x.tolist()]),
        *((x / 2).astype(int), x % 4, x << 2, ~x, x >> 1, np.full(5, 11)),
    ]
    np.testing.assert_array_equal(out.asnumpy(), np.stack(expected, axis=1))


def test_float_arithmetic() -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = x[i] // 0.7
        out[i, 1] = x[i] % 0.7
        out[i, 2] = x[i] ** 3
        out[i, 3] = x[i] ** 0.5 if x[i] > 0 else 0
        out[i, 4] = np.float32(x[i])
        out[i, 5] = max(x[i], 1, 2.5)

    x = np.array([-7.3, -1, 0, 5.1, 8])
    out = dp.zeros((5, 6))
    dp.call_kernel(compute, dp.Range(5), dp.asarray(x), out)
    columns = [
        x // 0.7,
        x % 0.7,
        x**3,
        np.sqrt(np.maximum(x, 0)),
        x.astype("f4"),
        np.maximum(x, 2.5),
    ]
    np.testing.assert_allclose(out.asnumpy(), np.stack(columns, axis=1))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_arithmetic(dtype: str) -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any, factor: Any, out: Any) -> None:
        i = item.get_id(0)
        z = x[i]
        out[i] = z * z.conjugate() / factor + abs(z) + z**2 - z.real + 1j * z.imag

    z = np.array([1 + 2j, 3 - 1j, -2 + 0.5j], dtype=dtype)
    out = dp.zeros(3, dtype=dtype)
    dp.call_kernel(compute, dp.Range(3), dp.asarray(z), 1 + 2j, out)
    expected = z * z.conjugate() / (1 + 2j) + abs(z) + z**2 - z.real + 1j * z.imag
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_in_loops(dtype: str) -> None:
    """The CPU driver crashed on each of these results: the loop kept the number as a structure."""

    @dp.kernel
    def multiply(item: dp.Item, x: Any, n: Any, out: Any) -> None:
        i = item.get_id(0)
        product = x.dtype.type(1)
        for _ in range(n[i]):
            product *= x[i]
        out[i, 0] = 1 / product
        out[i, 1] = product if product.real > 0 else x[i]
        total = 1 + 0j
        for _ in range(n[i]):
            total += 2 + 1j
        out[i, 2] = total if total.imag > 1 else -x[i]

    x, n = np.array([1 + 2j, 3 - 1j, 0.5j, 2 + 1j], dtype), np.array([1, 2, 3, 0])
    out = dp.zeros((4, 3), dtype=dtype)
    multiply[4](dp.asarray(x), dp.asarray(n), out)
    power, total = x**n, 1 + n * (2 + 1j)
    expected = [1 / power, np.where(power.real > 0, power, x), np.where(total.imag > 1, total, -x)]
    np.testing.assert_allclose(out.asnumpy(), np.stack(expected, axis=1), rtol=1e-6)


def test_tuples_that_branches_change() -> None:
    """The CPU driver crashed: the tuple was a structure, and a branch selected one of two."""

    @dp.kernel
    def gather(item: dp.Item, x: Any, out: Any) -> None:
        i, j = item.get_id(0), item.get_id(1)
        place = (i, j)
        if x[place] > 5:
            place = (0, 0)
            out[0, 0, 1] = 5
        elif x[place] < 3:
            place = (1, 1)
            out[1, 1, 1] = 7
        out[i, j, 0] = x[place]

    x = np.arange(12.0).reshape(4, 3)
    out = dp.zeros((4, 3, 2))
    gather[4, 3](dp.asarray(x), out)
    expected = np.where(x > 5, x[0, 0], np.where(x < 3, x[1, 1], x))
    np.testing.assert_array_equal(out[..., 0].asnumpy(), expected)
    assert (out[0, 0, 1].item(), out[1, 1, 1].item()) == (5, 7)


WEIGHTS = ((1, 2, 1), (2, 4, 2), (1, 2, 1))
TURNS = (1 + 2j, 3 - 1j, 0.5j)
CUBE = (((1, 2), (3, 4)), ((5, 6), (7, 8)))


def test_tuples_of_tuples_take_indices_that_change() -> None:
    """LLVM's back end crashed: the inner tuple was a structure, chosen by the outer index."""

    @dp.kernel
    def look_up(item: dp.Item, x: Any, y: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i, 0] = WEIGHTS[i % 3][(i * i) % 3] * 10 + WEIGHTS[i % 3 - 3][-1]
        out[i, 1] = CUBE[i % 2][i // 2 % 2][i % 2 - 2]
        out[i, 2] = (TURNS[i % 3] * TURNS[(i + 1) % 3]).real
        a, b = ((x[0] + i, x[1]), (x[2], x[4]), (x[5], x[3]))[(i * 7) % 3]
        out[i, 3] = a * 100 + b
        out[i, 4] = (x, y)[i % 2][i]
        out[i, 5] = ((True, False), (False, True))[i % 2][i // 2 % 2]

    x, y = np.arange(6.0), np.arange(6.0) + 50
    out = dp.zeros((6, 6))
    look_up[6](dp.asarray(x), dp.asarray(y), out)
    for i in range(6):
        a, b = ((x[0] + i, x[1]), (x[2], x[4]), (x[5], x[3]))[(i * 7) % 3]
        expected = [
            WEIGHTS[i % 3][(i * i) % 3] * 10 + WEIGHTS[i % 3 - 3][-1],
            CUBE[i % 2][i // 2 % 2][i % 2 - 2],
            (TURNS[i % 3] * TURNS[(i + 1) % 3]).real,
            a * 100 + b,
            (x, y)[i % 2][i],
            ((True, False), (False, True))[i % 2][i // 2 % 2],
        ]
        assert out[i].tolist() == expected


NEIGHBORS = ((0, 1), (1, 0), (0, -1), (-1, 0))
D2Q9 = tuple((a, b, 4.0 ** -abs(a) * 4.0 ** -abs(b)) for a in (-1, 0, 1) for b in (-1, 0, 1))


@dp.device_func
def of_neighbors(i: Any, table: Any) -> Any:
    best = table[0]
    for pair in table:
        if (pair[0] * i + pair[1]) % 5 > (best[0] * i + best[1]) % 5:
            best = pair
    return best


def sums(i: Any, n: Any, table: Any) -> Any:
    """Return sums over tuples of tuples, in loops with conditions, exits and inner loops."""
    total = 0.5
    for a, b in NEIGHBORS:
        if 0 <= i + a < n:
            total += (i + a + b) % 7
    for a, b, weight in D2Q9:
        if total > 40:
            break
        for shift, (scale, (left, right)) in ((1, (2, (3.5, 4.5))), (-2, (0, (1.5, 0.5)))):
            if (i + shift) % 2:
                continue
            total += weight * (a * scale + b * left) + right
    for k, (a, b) in enumerate(table):
        place = (a, b) if (i + k) % 3 else (b, a + k)
        while place[0] < i:
            place = (place[0] + 1, place[1] * 2)
        total += place[0] * 8 + place[1]
    return total


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_over_tuples_of_tuples(dtype: str) -> None:
    """LLVM's back end crashed: a value of a struct type came from several blocks."""
    device_sums = dp.device_func(sums)

    @dp.kernel
    def compute(item: dp.Item, out: Any, table: dp.constexpr) -> None:
        i = item.get_id(0)
        out[i, 0] = device_sums(i, out.shape[0], table)
        a, b = of_neighbors(i, NEIGHBORS)
        out[i, 1] = a * 10 + b
        for vector, k in ((dp.vec(1.5, 2.5), 2), (dp.vec(3.5, 4.5), i)):
            out[i, 2] += (vector * k).sum()
        for array, shift in ((out, 1), (out, 2)):
            array[i, 3] += shift * i

    table = ((0, 2), (1, 3), (5, 7))
    out, simulated = dp.zeros((6, 4), dtype=dtype), dp.zeros((6, 4), dtype=dtype)
    dp.call_kernel(compute, dp.Range(6), out, table)
    dp.simulate(compute, dp.Range(6), simulated, table)
    np.testing.assert_array_equal(out.asnumpy(), simulated.asnumpy())
    for i in range(6):
        best = of_neighbors(i, NEIGHBORS)
        expected = [sums(i, 6, table), best[0] * 10 + best[1], 8 + 8 * i, 3 * i]
        np.testing.assert_allclose(out[i].asnumpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "limits",
    [
        *(np.finfo(dtype) for dtype in (np.float16, np.float32, np.float64)),
        *(np.iinfo(dtype) for dtype in (np.int8, np.uint8, np.int32, np.uint64)),
    ],
    ids=lambda limits: limits.dtype.name,
)
def test_limits_of_types(limits: Any) -> None:
    kind = limits.dtype.type
    names = ("max", "min") if limits.dtype.kind in "iu" else ("max", "min", "eps", "tiny")

    @dp.kernel
    def tell_integers(item: dp.Item, x: Any, out: Any) -> None:
        out[0] = np.iinfo(kind).max
        out[1] = np.iinfo(x.dtype).min

    @dp.kernel
    def tell_floats(item: dp.Item, x: Any, out: Any) -> None:
        found = np.finfo(x[0])
        out[0] = np.finfo(kind).max
        out[1] = found.min
        out[2] = np.finfo(x.dtype).eps
        out[3] = found.tiny

    function = tell_integers if limits.dtype.kind in "iu" else tell_floats
    # float16 numbers are read as float32
    x = dp.ones(1, dtype="float32" if kind is np.float16 else kind)
    expected = [getattr(limits, name) for name in names]
    if kind is np.float16:
        expected[1:] = [getattr(np.finfo(np.float32), name) for name in names[1:]]
    out = dp.zeros(4, dtype="float64" if limits.dtype.kind == "f" else kind)
    function[1](x, out)
    assert out.tolist()[: len(names)] == np.asarray(expected, out.dtype).tolist()
    simulated = np.zeros(4, out.dtype)
    dp.simulate(function, 1, x.asnumpy(), simulated)
    np.testing.assert_array_equal(simulated, out.asnumpy())


def test_limits_of_other_types_are_refused() -> None:
    @dp.kernel
    def tell(item: dp.Item, out: Any) -> None:
        out[0] = np.iinfo(out.dtype).max

    with pytest.raises(dp.KernelCompileError, match=r"np\.iinfo takes types of integers"):
        tell[1](dp.zeros(1))


def test_conditions() -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any, y: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = (x[i] > 0 and y[i] < 5) or x[i] != y[i]

    x, y = np.array([1, 0, 3, 4]), np.array([9, 0, 3, 2])
    out = dp.zeros(4, dtype="bool")
    dp.call_kernel(compute, dp.Range(4), dp.asarray(x), dp.asarray(y), out)
    assert out.tolist() == [True, False, True, True]


def test_loops_over_tuples_and_ranges() -> None:
    """A loop over a tuple crashed the CPU driver: LLVM turned it into 63-bit integers."""

    @dp.kernel
    def compute(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        total = 0
        for j, value in enumerate((1, 2, 3)):
            total += j * value
        for a, b in zip((1, 2), (3, 4)):  # noqa: B905 - a kernel knows no strict
            total += a * b
        for constant in CONSTANTS:
            total += constant
        k = 0
        while True:
            k += 1
            if k > 5:
                break
            if k % 2:
                continue
            total += k
        for j in range(x[i], -1, -1):
            total += j
        out[i] = total + CONSTANTS[i]

    out = dp.zeros(3, dtype="int64")
    dp.call_kernel(compute, dp.Range(3), dp.arange(3), out)
    base = 8 + 11 + 60 + 6
    assert out.tolist() == [base + 0 + 10, base + 1 + 20, base + 3 + 30]


def test_private_arrays_in_two_dimensions() -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        square = dp.PrivateArray((2, 2), np.int64, fill_zeros=True)
        for row in range(2):
            for column in range(2):
                square[row, column] += x[i] * (row + 1) * (column + 2)
        out[i] = square[0, 0] + square[1, 1] * 100

    out = dp.zeros(3, dtype="int64")
    dp.call_kernel(compute, dp.Range(3), dp.arange(3), out)
    assert out.tolist() == [0, 602, 1204]


def test_a_captured_numpy_array_raises_with_a_suggested_fix() -> None:
    @dp.kernel
    def compute(item: dp.Item, out: Any) -> None:
        out[0] = TABLE[0]

    with pytest.raises(dp.KernelCompileError, match=r"TABLE is a NumPy array.*dp\.asarray\(TABLE"):
        dp.call_kernel(compute, dp.Range(1), dp.zeros(1))


ELEMENTWISE = (
    *("sqrt(x)", "abs(y)", "absolute(y)", "maximum(x, y)", "minimum(x, y)", "arctan2(x, y)"),
    *("sign(y)", "square(x)", "where(x > 1, x, y)", "floor(y)", "ceil(y)", "trunc(y)", "rint(y)"),
    *("power(x, 3)", "add(x, y)", "divide(x, y)", "remainder(y, 0.7)", "floor_divide(y, 0.7)"),
    *("reciprocal(x)", "fmax(x, y)", "fmin(x, y)", "clip(y, -0.5, 1.5)", "hypot(x, y)", "exp(y)"),
    *("logical_and(x > 0, y > 0)", "logical_or(x > 1, y > 0)", "logical_not(x > 1)", "isnan(y)"),
    *("greater(x, y)", "equal(x, 1.0)", "round(y)", "round(y, 1)", "signbit(y)", "copysign(x, y)"),
    *("arcsin(0.5)", "arctanh(0.5)", "deg2rad(x)", "log1p(x)", "negative(x)", "expm1(x)"),
)


@pytest.mark.parametrize("run", [dp.call_kernel, dp.simulate])
@pytest.mark.parametrize("module", [np, dp, dpnp], ids=lambda module: module.__name__)
def test_scalar_functions_have_the_names_of_numpy(module: Any, run: Any) -> None:
    texts = [each for each in ELEMENTWISE if hasattr(module, each.partition("(")[0])]
    assert len(texts) > len(ELEMENTWISE) - 3
    lines = [f"    out[i, {at}] = xp.{text}" for at, text in enumerate(texts)]
    lines = ["@dp.kernel", "def compute(item, a, b, out):", "    i = item.get_id(0)", *lines]
    lines.insert(3, "    x, y = a[i], b[i]")
    scope: dict[str, Any] = {"dp": dp, "xp": module}
    execute("\n".join(lines), scope)
    x, y = np.array([0.5, 0.3, 1.0, 2.5]), np.array([-1.5, 0.5, np.nan, -0.0])
    out = dp.zeros((4, len(texts)))
    run(scope["compute"], dp.Range(4), dp.asarray(x), dp.asarray(y), out)
    with np.errstate(all="ignore"):
        names = {"np": np, "x": x, "y": y}
        expected = [np.broadcast_to(eval(f"np.{text}", names), 4) for text in texts]
    np.testing.assert_allclose(out.asnumpy(), np.stack(expected, 1), rtol=1e-14)


def test_a_scalar_function_may_be_imported() -> None:
    sqrt = np.sqrt

    @dp.kernel
    def compute(item: dp.Item, x: Any) -> None:
        x[item.get_id(0)] = sqrt(x[item.get_id(0)])

    x = dp.asarray([4.0, 9.0], dtype="float32")
    dp.call_kernel(compute, dp.Range(2), x)
    assert x.tolist() == [2.0, 3.0]


def test_functions_of_arrays_are_refused() -> None:
    @dp.kernel
    def compute(item: dp.Item, x: Any) -> None:
        x[0] = np.heaviside(x[0], 0.5)

    with pytest.raises(dp.KernelCompileError, match=r"np\.heaviside is not available in a kernel"):
        dp.call_kernel(compute, dp.Range(1), dp.zeros(1))


def test_the_imaginary_part_of_a_literal_is_zero() -> None:
    @dp.device_func
    def seven(x: Any) -> Any:
        return 7

    @dp.kernel
    def parts(item: dp.Item, x: Any, out: Any) -> None:
        out[0] = (7).imag
        out[1] = seven(x[0]).imag
        out[2] = seven(x[0]).real

    out = dp.ones(3)
    parts[1](out, out)
    assert out.tolist() == [0, 0, 7]


def test_a_boolean_becomes_a_float() -> None:
    @dp.kernel
    def count(item: dp.Item, x: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = float(x[i] > 1) + 0.5

    out = dp.zeros(3)
    count[3](dp.arange(3), out)
    assert out.tolist() == [0.5, 0.5, 1.5]


def test_the_negative_of_a_python_boolean_is_minus_one_also_as_a_float() -> None:
    @dp.kernel
    def signs(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        y[i, 0] = -bool(x[i] > 0)
        y[i, 1] = +bool(x[i] > 0)
        y[i, 2] = 0.5 * -int(x[i] > 0)
        y[i, 3] = int(x[i] > 0) - int(x[i] < 0)

    for dtype in ("float32", "float64"):
        x, y = dp.asarray([-2, 0, 3], dtype=dtype), dp.zeros((3, 4), dtype=dtype)
        signs[3](x, y)
        assert y.tolist() == [[0, 0, 0, -1], [0, 0, 0, 0], [-1, 1, -0.5, 1]]


def test_isinstance_checks_the_kind_of_a_number() -> None:
    @dp.kernel
    def kinds(item: dp.Item, x: Any, n: Any, y: Any) -> None:
        y[0] = isinstance(n, int)
        y[1] = isinstance(n, float)
        y[2] = isinstance(x[0], (int, float))

    y, simulated = dp.zeros(3, dtype="int32"), np.zeros(3, "int32")
    kinds[1](dp.ones(1), 3, y)
    dp.simulate(kinds, 1, np.ones(1), 3, simulated)
    assert y.tolist() == simulated.tolist() == [1, 0, 1]


@pytest.mark.parametrize("run", [dp.call_kernel, dp.simulate])
def test_more_forms_of_python(run: Any) -> None:
    name, label = "fetch_add", "abc"

    @dp.kernel
    def forms(item: dp.Item, x: Any, out: Any) -> None:
        def scaled(value: Any, factor: Any = 2) -> Any:
            return value * factor

        i = item.get_id(0)
        first, *rest = (x[i], 10, 20)
        if (double := scaled(factor=3, value=first)) > 3:
            out[i] = double + rest[0] + rest[1] + len(label)
        getattr(dp.AtomicRef(out, 3), name)(1)

    x, out = dp.asarray([1, 2, 3]), dp.zeros(4, dtype="int64")
    run(forms, dp.Range(3), x, out)
    assert out.tolist() == [0, 39, 42, 3]
