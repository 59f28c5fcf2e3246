"""Array statements of compiled functions, which are loops over elements, beside NumPy."""

from __future__ import annotations

import linecache
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dparray as dp
from tests.support import runs_loops_on_host


def chain(x: Any, y: Any) -> Any:
    return x * 2.0 + y


def shifted_in_place(x: Any, y: Any) -> Any:
    z = np.zeros(x.size)
    for _ in range(3):
        z = z + x * y
        x[1:] = x[:-1] * 0.5
        x[:-1] += x[1:]
    return z, x.sum()


def means_of_rows(m: Any) -> Any:
    result = np.empty(m.shape[0])
    for i in range(m.shape[0]):
        result[i] = m[i].sum() + m[i, 1:].mean()
    return result


def centered(m: Any) -> Any:
    return m - m.mean(axis=0), m.sum(axis=1), m / m.sum(axis=1)[:, None], m.max(axis=0)


def heat(u: Any) -> Any:
    for _ in range(10):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u


def names_in_a_ring(x: Any, n: int) -> Any:
    a, b, c = x.copy(), x * 2, x * 3
    for _ in range(n):
        a, b, c = b, c, a * 0.5 + b - c
    return a + 2 * b, c


def maybe_an_argument(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x * 2
    return x


def of_narrow_integers(x: Any) -> Any:
    small = x.astype(np.int8)
    return small * 2 + small, -small, small // 3, small.sum(), (small > 3).any()


def choices(x: Any, y: Any) -> Any:
    for _ in range(3):
        x += y
        y[:] = np.where(x > 1.0, x, y)
    return np.maximum(x, y), np.sqrt(x).std(), x.argmax(), np.clip(x, 0.5, 1.5)


def masks(x: Any, y: Any) -> Any:
    chosen = x[x > y]
    x[y > 0.5] = 0.0
    return chosen, x.var(), chosen.size


def gathered(x: Any, y: Any) -> Any:
    at = np.arange(0, x.size, 2)
    y[at] = x[at] * 3
    return x[at], y


def products(m: Any) -> Any:
    v = np.ones(m.shape[1])
    for _ in range(3):
        w = np.tanh(m @ v)
        v = np.zeros(m.shape[1])
        v[: w.size] = w[: v.size]
    return v, np.dot(v, v)


def norm(a: Any) -> Any:
    return np.sqrt(np.sum(a * a))


def calls(x: Any) -> Any:
    total = 0.0
    for i in range(3):
        total += norm(x - i) if i != 1 else norm(x[::-1])
    return total


def outer(x: Any, y: Any) -> Any:
    return x[:, None] * y - y[None, :] ** 2, (x[:, None] < y).all()


def transposed(m: Any) -> Any:
    m[:] = np.minimum(m, m.T * 2) if m.shape[0] == m.shape[1] else m + 1
    return m.T.copy()


def reshaped(m: Any) -> Any:
    flat = m.reshape(m.size)
    flat[0] = 5.0
    table = np.reshape(m * 2, (m.shape[1], m.shape[0]))
    return table + 1, flat.sum(), np.sum(m, axis=-1, keepdims=True)


def of_complex(x: Any, y: Any) -> Any:
    z = x + 1j * y
    return z * z, abs(z).sum(), z.sum()


def gathered_in_place(x: Any, m: Any) -> Any:
    at = np.arange(x.size - 1, -1, -1)
    x += x[at]
    m[:] = m[:1] * 2
    m[1:] += m[:-1]
    return at


def parts_of_complex(x: Any, y: Any) -> Any:
    z = x + 1j * y
    imaginary = z.imag
    imaginary[:] = 2.0
    return z, z.real.sum()


def doubled(x: Any) -> Any:
    x *= 2
    return x


def changed_while_it_is_read(x: Any) -> Any:
    return x + 1 + doubled(x)


RNG = np.random.default_rng(0)
VECTOR, OTHER = RNG.random(50), RNG.random(50)
MATRIX, SQUARE = RNG.random((7, 9)), RNG.random((6, 6))
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (chain, (VECTOR, OTHER)),
    (chain, (VECTOR.astype(np.float32), OTHER.astype(np.float32))),
    (chain, (MATRIX, MATRIX[0])),
    (chain, (MATRIX, MATRIX[:, :1])),
    (shifted_in_place, (VECTOR, OTHER)),
    (means_of_rows, (MATRIX,)),
    (centered, (MATRIX,)),
    (heat, (MATRIX,)),
    (names_in_a_ring, (VECTOR, 7)),
    (maybe_an_argument, (VECTOR, 3)),
    (of_narrow_integers, (VECTOR * 200,)),
    (choices, (VECTOR, OTHER)),
    (masks, (VECTOR, OTHER)),
    (gathered, (VECTOR, OTHER)),
    (products, (MATRIX,)),
    (calls, (VECTOR,)),
    (outer, (VECTOR[:5], OTHER[:8])),
    (transposed, (SQUARE,)),
    (reshaped, (MATRIX,)),
    (gathered_in_place, (VECTOR, MATRIX)),
    (parts_of_complex, (VECTOR, OTHER)),
    (changed_while_it_is_read, (VECTOR,)),
    (of_complex, (VECTOR, OTHER)),
]


def same(expected: Any, found: Any) -> None:
    if isinstance(expected, tuple):
        assert len(expected) == len(found)
        for one, other in zip(expected, found, strict=True):
            same(one, other)
        return
    array = found.asnumpy() if isinstance(found, dp.ndarray) else np.asarray(found)
    np.testing.assert_allclose(array, expected, rtol=1e-6, atol=1e-12)
    assert array.dtype == np.asarray(expected).dtype


def compare(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Run a function with NumPy and compiled, twice, and compare results and arguments."""
    compiled = dp.jit(function)
    for _ in range(2):
        host = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
        given = [dp.asarray(x) if isinstance(x, np.ndarray) else x for x in host]
        same(function(*host), compiled(*given))
        for one, other in zip(host, given, strict=True):
            same(one, other)


@pytest.mark.parametrize(
    ("function", "arguments"), CASES, ids=lambda each: getattr(each, "__name__", "")
)
def test_array_code_computes_what_numpy_computes(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    compare(function, arguments)


def test_an_argument_that_is_returned_is_that_array() -> None:
    x = dp.asarray(VECTOR)
    compiled = dp.jit(maybe_an_argument)
    result = compiled(x, 0)
    result[0] = 7.0
    assert float(x[0]) == 7.0
    assert float(compiled(x, 1)[0]) == 14.0
    assert float(x[0]) == 7.0


def test_a_reshaped_argument_that_is_returned_is_a_view() -> None:
    @dp.jit
    def flat(m: Any) -> Any:
        m[0, 0] = 1.0
        return m.reshape(m.size)

    m = dp.zeros((2, 3))
    result = flat(m)
    assert result.shape == (6,)
    result[5] = 2.0
    assert m.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]


def _expressions() -> Any:
    leaves = st.sampled_from(
        ["x", "y", "x[::-1]", "m[0]", "m[:, 1:2]", "m", "2.5", "x[3]", "m[1:3]"]
    )

    def more(inner: Any) -> Any:
        pairs = st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner)
        calls = st.tuples(st.sampled_from(["np.sin", "np.abs", "np.square"]), inner)
        return st.one_of(
            pairs.map(lambda each: f"({each[0]} {each[1]} {each[2]})"),
            calls.map(lambda each: f"{each[0]}({each[1]})"),
            inner.map(lambda each: f"({each} * 1.0 + x).sum(axis=0)"),
        )

    return st.recursive(leaves, more, max_leaves=6)


@settings(deadline=None, max_examples=25)  # each is compiled
@given(st.lists(_expressions(), min_size=2, max_size=4), st.data())
def test_random_statements(expressions: list[str], data: st.DataObject) -> None:
    targets = [
        "m[...] = {}",
        "x[1:] = ({} + x)[1:]",
        "x += {}",
        "a = {} + x",
        "m[1:, :-1] = m[:-1, 1:]",
    ]
    lines = [data.draw(st.sampled_from(targets)).format(each) for each in expressions]
    text = (
        "a = x * 1\nfor k in range(3):\n  " + "\n  ".join(lines) + "\n  y = y + 1\nreturn a + 0 * y"
    )
    body = "\n  ".join(text.split("\n"))
    code = f"def f(x, y, m):\n  {body}\n"
    names: dict[str, Any] = {"np": np}
    file = f"<random statements {hash(code)}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    exec(compile(code, file, "exec"), names)
    rng = np.random.default_rng(1)
    arguments = [rng.random(4) for _ in range(2)] + [rng.random((4, 4))]
    host = [each.copy() for each in arguments]
    device = [dp.asarray(each) for each in arguments]
    try:
        with np.errstate(all="ignore"):
            expected = names["f"](*host)
    except ValueError:
        with pytest.raises((ValueError, dp.exceptions.DparrayError)):
            dp.jit(names["f"])(*device)
        return
    # A sine of large values shows the last digit of its argument, which the order of sums decides.
    assume(all(np.abs(each).max() < 1e4 for each in host))
    try:
        found = dp.jit(names["f"])(*device)
    except dp.exceptions.KernelCompileError as error:
        if "give a variable one type" in str(error):  # a name for a vector and for a matrix
            return
        raise
    same(expected, found)
    for one, other in zip(host, device, strict=True):
        same(one, other)


def test_shapes_that_do_not_fit_raise_with_the_line() -> None:
    @dp.jit
    def unequal(x: Any, y: Any) -> Any:
        for i in range(2):
            x[i] = 1.0
        return x + y  # the line

    with pytest.raises(dp.exceptions.ShapeError, match="broadcast") as caught:
        unequal(dp.zeros(4), dp.zeros(5))
    assert any("# the line" in str(each.statement) for each in caught.traceback)


def test_an_index_outside_raises() -> None:
    @dp.jit
    def taken(x: Any, at: Any) -> Any:
        for i in range(1):
            x[i] = 0.0
        return x[at]

    with pytest.raises(IndexError):
        taken(dp.zeros(4), dp.asarray([0, 4]))
    assert taken(dp.arange(4.0), dp.asarray([-1, 1])).tolist() == [3.0, 1.0]


def products(a: Any, b: Any, v: Any) -> Any:
    for i in range(1):
        v[i] = v[i] * 2
    return a @ b, v @ a, np.dot(a.T, a[:, ::2]), a @ v - v, np.eye(3, 4), np.identity(2)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "complex128"])
@pytest.mark.sample(2)
def test_products_of_matrices(dtype: str) -> None:
    rng = np.random.default_rng(3)
    host = [(rng.random(shape) * 9).astype(dtype) for shape in ((5, 5), (5, 3), 5)]
    device = [dp.asarray(each) for each in host]
    expected, found = products(*host), dp.jit(products)(*device)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.asnumpy(), other, 1e-5)


def diagonals(x: Any) -> Any:
    for i in range(1):
        x[i] = 2.0
    return np.eye(3, 3, 1) + np.eye(3), np.identity(2, np.float32), np.eye(2, 3, dtype=np.int32)


def test_matrices_with_ones_on_a_diagonal() -> None:
    for one, other in zip(dp.jit(diagonals)(dp.ones(2)), diagonals(np.ones(2)), strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("debug", [False, True])
def test_names_for_another_number_of_elements_raise(debug: bool) -> None:
    @dp.jit
    def unpacked(x: Any) -> Any:
        a, b = x
        for i in range(2):
            x[i] = a - b
        return a + b

    with dp.config.override(debug=debug):
        assert float(unpacked(dp.asarray([3.0, 4.0], device="host:cpu"))) == 7
        for size in (1, 3):
            with pytest.raises(ValueError, match=r"x must have 2 elements|to unpack"):
                unpacked(dp.ones(size, device="host:cpu"))


def test_reductions_of_large_arrays_are_dparrays() -> None:
    def centered(x: Any) -> None:
        x -= x.mean()

    def halved(x: Any) -> None:
        x *= 0.5

    x = dp.ones(100_000, device="host:cpu")
    assert "driver in Python" in str(dp.explain(dp.jit(centered), x))
    if runs_loops_on_host():
        assert "whole function: native region" in str(dp.explain(dp.jit(halved), x))


def test_products_of_other_sizes_raise() -> None:
    with pytest.raises(dp.exceptions.ShapeError, match=r"sizes of the factors|do not match"):
        dp.jit(products)(dp.ones((5, 5)), dp.ones((4, 3)), dp.ones(5))


def in_order(x: Any, m: Any) -> Any:
    for i in range(1):
        x[i] = x[i] + 0
    return np.sort(x), np.sort(m), x[np.argsort(x)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8"])
@pytest.mark.parametrize("size", [1, 2, 16, 17, 33, 500])
@pytest.mark.sample(4)
def test_sorts(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    x, m = ((rng.random(shape) * 200).astype(dtype) for shape in (size, (4, size)))
    if dtype.startswith("f"):
        x[size // 2] = m[1, size // 3] = np.nan
    found = dp.jit(in_order)(dp.asarray(x), dp.asarray(m))
    for one, other in zip(found, in_order(x, m), strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other)


def solved(a: Any, b: Any) -> Any:
    for i in range(1):
        b[i, i] = b[i, i] * 2
    return np.linalg.inv(a), np.linalg.solve(a, b), np.linalg.det(a)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.sample(3)
def test_systems_of_linear_equations(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    a = (rng.random((size, size)) + np.eye(size)[::-1] * 2).astype(dtype)
    if dtype == "complex128":
        a = a + 1j * rng.random((size, size))
    b = rng.random((size, 2)).astype(dtype)
    found = dp.jit(solved)(dp.asarray(a), dp.asarray(b))
    for one, other in zip(found, solved(a, b), strict=True):
        np.testing.assert_allclose(np.asarray(getattr(one, "asnumpy", lambda o=one: o)()), other,
                                   2e-4 if dtype == "float32" else 1e-10)  # fmt: skip


@pytest.mark.parametrize("matrix", [np.zeros((2, 2)), np.ones((3, 3))])
def test_matrices_without_an_inverse_raise(matrix: np.ndarray) -> None:
    with pytest.raises(np.linalg.LinAlgError):
        dp.jit(solved)(dp.asarray(matrix), dp.ones((len(matrix), 2)))


def test_a_matrix_that_is_not_square_raises() -> None:
    with pytest.raises(dp.exceptions.ShapeError, match="square"):
        dp.jit(solved)(dp.ones((2, 3)), dp.ones((2, 2)))


@pytest.mark.parametrize("at", [4, -5])
def test_an_index_outside_is_found_in_debug_mode(at: int) -> None:
    @dp.jit
    def stored(x: Any, m: Any, n: int) -> Any:
        for i in range(3):
            x[i] = m[i, n]  # the line
        return x + m[0]

    x, m = dp.zeros(4, device="host:cpu"), dp.ones((4, 4), device="host:cpu")
    with dp.config.override(debug=True):
        assert stored(x, m, -4).tolist() == [2.0, 2.0, 2.0, 1.0]
        raised = IndexError, dp.exceptions.KernelExecutionError  # the latter on GPUs
        with pytest.raises(raised, match=r"index .* is out of bounds of m") as caught:
            stored(x, m, at)
    lines = [str(each.statement) for each in caught.traceback]
    assert "# the line" in "".join(lines) + str(caught.value)


def test_array_code_needs_no_numba(tmp_path: Path) -> None:
    code = """
import sys
import numpy as np
import dparray as dp

@dp.jit
def heat(u, n):
    for _ in range(n):
        u[1:-1] = 0.5 * u[1:-1] + 0.25 * (u[2:] + u[:-2])
        lost = u.max() - u * 2
    return u, lost.mean()

@dp.jit
def products(a, b, v):
    total = np.zeros(3)
    for i in dp.prange(a.shape[0]):
        total += np.sort(a[i])
    for i in range(1):
        v[i] = 0.0
    return a @ b, v @ a, np.linalg.inv(a), np.argsort(v), total

products(dp.eye(3, device="host:cpu"), *(dp.ones(n, device="host:cpu") for n in ((3, 2), 3)))
heat(dp.linspace(0.0, 1.0, 100, device="host:cpu"), 5)
with dp.config.override(debug=True):
    heat(dp.linspace(0.0, 1.0, 100, device="host:cpu"), 5)
assert "numba" not in sys.modules, "Numba was imported"
"""
    file = tmp_path / "heat.py"
    file.write_text(code)
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_memory_of_a_long_loop_is_taken_again() -> None:
    @dp.jit
    def many(x: Any, n: int) -> Any:
        for i in range(n):
            y = x * 2 + i
            x = y - x
        return x[0] + y[1]

    before = _peak()
    many(dp.ones(4096, device="host:cpu"), 30_000)  # a gigabyte without that
    assert _peak() - before < 200


def _peak() -> float:
    resource = pytest.importorskip("resource")
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024
