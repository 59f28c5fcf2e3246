"""Several elements of a work-item, loaded before it stores. Results are NumPy's, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._codegen.elementwise import MAX_STEPS_IN_VECTORS, MIN_IN_VECTORS, VECTOR_LENGTHS
from tests.support import launched, values

pytestmark = pytest.mark.usefixtures("fused")

SMALL = ["bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32"]
SIZE = MIN_IN_VECTORS + 5


@pytest.fixture(autouse=True)
def _loads_vectors(pretend: Any) -> None:
    pretend(kind="gpu", shares_memory=False, loads_vectors=True)


def items_of(compute: Callable[[], Any]) -> int:
    """Return the work-items of the last launch of a computation."""
    with launched() as launches:
        dp.eval(compute())
    return launches[-1].global_range[0]


def length_of(*loaded: str) -> int:
    """Return the elements of a work-item that loads these dtypes: 16 bytes, or more if measured."""
    sizes = [np.dtype(dtype).itemsize for dtype in loaded]
    return max(-(-16 // sum(sizes)), VECTOR_LENGTHS.get(max(sizes), 1))


def combined(xp: Any, x: Any, y: Any) -> Any:
    return x ^ y | x if x.dtype.kind == "b" else xp.maximum(x, y) * x - y


def equal(found: Any, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize("dtype", SMALL)
def test_values(dtype: str) -> None:
    length = length_of(dtype, dtype)
    a, b = values(SIZE + 9, dtype), values(SIZE + 9, dtype, seed=1)
    x, y = dp.asarray(a), dp.asarray(b)
    dp.eval(x, y)
    for size in (MIN_IN_VECTORS - 1, MIN_IN_VECTORS, SIZE):
        found = combined(dp, x[:size], y[:size])
        items = items_of(lambda: found)  # noqa: B023
        assert (items < 2 * size / length) == (size >= MIN_IN_VECTORS)
        equal(found, combined(np, a[:size], b[:size]))
    # Views that begin between two vectors.
    for first, second in ((1, 1), (8, 3), (2, 8)):
        left, right = slice(first, first + SIZE), slice(second, second + SIZE)
        equal(combined(dp, x[left], y[right]), combined(np, a[left], b[right]))
        out = dp.zeros(SIZE + 9, dtype=dtype)
        out[right] = combined(dp, x[left], y[left])
        wanted = np.zeros(SIZE + 9, dtype)
        wanted[right] = combined(np, a[left], b[left])
        equal(out, wanted)


def test_bfloat16() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    a, b = values(SIZE).astype(bfloat16), values(SIZE, seed=1).astype(bfloat16)
    found = dp.asarray(a) * 3 + dp.asarray(b)
    assert items_of(lambda: found) < SIZE / 3
    np.testing.assert_array_equal(found.asnumpy(), (a * bfloat16(3)).astype(bfloat16) + b)


@pytest.mark.parametrize(
    ("first", "second"), [("uint8", "float32"), ("bool", "int16"), ("float16", "float32")]
)
def test_dtypes_of_different_sizes(first: str, second: str) -> None:
    a, b = values(SIZE, first), values(SIZE, second)
    x, y = dp.asarray(a), dp.asarray(b)
    dp.eval(x, y)
    wanted = a + b
    assert items_of(lambda: x + y) < 2 * SIZE / VECTOR_LENGTHS[wanted.itemsize]
    equal(x + y, wanted)
    equal((x + y).astype("uint8"), wanted.astype("uint8"))
    equal(x + y > 1, wanted > 1)
    equal(x[3:] + y[:-3], a[3:] + b[:-3])


def test_two_results_and_positions() -> None:
    a = values(SIZE, "float32")
    x = dp.asarray(a)
    low, high = x * 2, x * 2 + 1
    dp.eval(low, high)
    equal(low, a * 2)
    equal(high, a * 2 + 1)
    ramp = dp.arange(SIZE, dtype="int32") + x.astype("int32")
    equal(ramp, np.arange(SIZE, dtype="int32") + a.astype("int32"))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_memory_that_is_read_is_overwritten(dtype: str) -> None:
    a = values(SIZE, dtype)
    x = dp.asarray(a)
    x += x[::1] * 2
    x[1:] = x[:-1] + 1
    x[8:] = x[:-8] * 2
    a += a * 2
    a[1:] = a[:-1] + 1
    a[8:] = a[:-8] * 2
    equal(x, a)


def test_many_steps_take_shorter_vectors() -> None:
    a = values(SIZE, "int8")

    def long(x: Any, steps: int) -> Any:
        y = x
        for step in range(steps):
            y = y * x + (step % 3)
        return y

    x = dp.asarray(a)
    dp.eval(x)
    items = []
    for steps in (1, MAX_STEPS_IN_VECTORS // 8, MAX_STEPS_IN_VECTORS // 4, MAX_STEPS_IN_VECTORS):
        items.append(items_of(lambda: long(x, steps)))  # noqa: B023
        equal(long(x, steps), long(a, steps))
    assert items == sorted(set(items))
    assert items[-1] >= SIZE


ROWS = 600


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float32", "float64", "complex64"])
@pytest.mark.parametrize("columns", [512, 509, 450, 70])
def test_slices_are_computed_by_tiles(columns: int, dtype: str) -> None:
    lines = max(ROWS, 2 * MIN_IN_VECTORS // columns)
    a, b = values((lines + 1, columns + 4), dtype), values((lines + 1, columns + 9), dtype, seed=1)
    x, y = dp.asarray(a), dp.asarray(b)
    dp.eval(x, y)

    def computed(xp: Any, x: Any, y: Any) -> list[Any]:
        middle = x[1:-1, 1:-1]
        return [
            x[1:, 3:-1] * 3,
            x[:, :columns] * y[:, 9:],
            x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - middle,
            x[:, ::-1] - x[::-1, ::-1],
            x[:, :1] + y[:1],
            x[::2, ::3] + x[::2, ::3],
        ]

    for found, wanted in zip(computed(dp, x, y), computed(np, a, b), strict=True):
        equal(found, wanted)
    x[1:-1, 1:-1] += y[1:-1, 1:-6]
    x[2:, 2:] = x[:-2, :-2] - y[:-2, :-7]
    a[1:-1, 1:-1] += b[1:-1, 1:-6]
    a[2:, 2:] = a[:-2, :-2] - b[:-2, :-7]
    equal(x, a)


def test_three_dimensions_and_two_results() -> None:
    a = values((70, 66, 130), "float32")
    x = dp.asarray(a)
    dp.eval(x)

    def computed(x: Any) -> tuple[Any, Any]:
        total = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
        total = total + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]
        return total - 6 * x[1:-1, 1:-1, 1:-1], x[1:-1, 1:-1, 1:-1] * 2

    found = computed(x)
    dp.eval(*found)
    for each, wanted in zip(found, computed(a), strict=True):
        equal(each, wanted)


def test_work_items_load_sixteen_bytes() -> None:
    byte, half, single, double = (
        dp.ones(SIZE, dtype=each) for each in ("uint8", "float16", "float32", "float64")
    )
    pair = dp.ones(SIZE, dtype="complex64")
    plane = dp.ones((1000, 1026), dtype="float32")
    dp.eval(byte, half, single, double, pair, plane)
    for count, compute in [
        (16, lambda: byte + 1),
        (8, lambda: half + half * 2),
        (4, lambda: single + 1),
        (4, lambda: single[1:] * 2),
        (2, lambda: single + single[::-1]),
        (2, lambda: double + 1),
        (1, lambda: double + double[::-1]),
        (2, lambda: pair + 1),
    ]:
        assert SIZE / count <= items_of(compute) < 1.3 * SIZE / count, count
    with launched() as launches:
        dp.eval(plane[:, 1:-1] * 2)
        dp.eval(plane[:-2, 1:-1] + plane[2:, 1:-1] + plane[1:-1, 1:-1])
    assert [each.global_range for each in launches] == [(1000, 256), (499, 256)]
    with dp.config.override(tuning={"gpu": {"bytes_in_flight": 1}}):
        assert items_of(lambda: single + 1) >= SIZE
        assert items_of(lambda: plane[:, 1:-1] * 2) == 1000


def test_other_arrays_have_an_element_for_each_work_item() -> None:
    small = dp.ones(2 * SIZE, dtype="int8")
    dp.eval(small)
    assert items_of(lambda: small[:1000] + 1) >= 1000
    with dp.config.override(tuning={"gpu": {"elements": 4}}):
        assert SIZE / 2 <= items_of(lambda: small + 1) < SIZE


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float32", "float64"])
@pytest.mark.parametrize("shape", [(4099, 700), (100, 40, 1500), (37, 3000)])
@pytest.mark.usefixtures("tests_options")  # a library computes while a kernel is compiled
def test_columns_are_reduced_alike(shape: tuple[int, ...], dtype: str) -> None:
    a = values(shape, dtype)
    x = dp.asarray(a)
    dp.eval(x)

    def computed() -> list[np.ndarray]:
        found = [x.sum(axis=0), x.max(axis=0), x.argmax(axis=0), (x * x + 1).sum(axis=-2)]
        if x.dtype.kind == "f":
            found += [x.var(axis=0), x / (1 + abs(x).max(axis=0))]
        dp.eval(*found)
        return [each.asnumpy() for each in found]

    found, source = computed(), dp.explain(x.sum(axis=0)).source
    with dp.config.override(tuning={"gpu": {"bytes_in_flight": 1}}):
        before, single = computed(), dp.explain(x.sum(axis=0)).source
    assert "x0_1 = " in source
    assert "x0_1 = " not in single
    # A device with many units divides the rows of the two forms into other pieces.
    close = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-13}.get(dtype, 0)
    for one, other in zip(found, before, strict=True):
        np.testing.assert_allclose(one, other, rtol=close, atol=20 * close)
    np.testing.assert_array_equal(found[1], a.max(axis=0))
    np.testing.assert_array_equal(found[2], a.argmax(axis=0))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(530, 517), (3, 100_003), (90_001, 3), (14, 20_011), (640, 512)])
def test_blocks_of_turned_arrays_are_loaded_together(shape: tuple[int, ...], dtype: str) -> None:
    a, b = values(shape, dtype), values(shape[::-1], dtype, seed=1)
    x, y = dp.asarray(a), dp.asarray(b)
    dp.eval(x, y)
    with launched() as launches:
        equal(x.T + y, a.T + b)
        equal(x[::-1].T * 3, a[::-1].T * 3)
    assert all(each.kernel.name.startswith("fused") for each in launches)
    y[...] = x.T - y
    b[...] = a.T - b
    y[1:, 1:] = x.T[:-1, :-1] * 2
    b[1:, 1:] = a.T[:-1, :-1] * 2
    equal(y, b)
    cube = x[:, : x.shape[1] // 2 * 2].reshape(x.shape[0], 2, -1)
    equal(cube.transpose(2, 1, 0) + 1, cube.asnumpy().transpose(2, 1, 0) + a.dtype.type(1))


def test_a_block_of_many_steps_is_loaded_in_parts() -> None:
    a = values((600, 600), "float32")
    x = dp.asarray(a)

    def long(v: Any, steps: int) -> Any:
        total = v.T + v
        for step in range(steps):
            total = total * 0.5 + v.T * (step + 1)
        return total

    for steps in (1, 3, 10, 40):
        equal(long(x, steps), long(a, steps))
    sources = [dp.explain(long(x, steps)).source for steps in (1, 40)]
    assert ["for part in range(" in each for each in sources] == [True, False]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16"])
@pytest.mark.parametrize("columns", [3, 5, 16, 31])
def test_strips_of_short_rows_are_loaded_together(columns: int, dtype: str) -> None:
    shape = (MIN_IN_VECTORS // columns + 5003, columns)
    a, row, column = values(shape, dtype), values(columns, dtype, seed=1), values(shape[0], dtype)
    x, y, z = (dp.asarray(each) for each in (a, row, column[:, None]))
    dp.eval(x, y, z)
    for found, wanted in [
        (x + y, a + row),
        (x * z, a * column[:, None]),
        (y + z, row + z.asnumpy()),
    ]:
        equal(found, wanted)
    x += y
    a += row
    equal(x, a)
    source = dp.explain(x + y).source
    assert "strip = block * uint64(16) + uint64(1)\n" in source
    assert source.index("w0 = ") < source.index("w15 = ") < source.index("out0[at0] = w0")


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float64"])
@pytest.mark.parametrize(("rows", "columns"), [(300, 2048), (301, 1028), (555, 2056), (17, 3072)])
def test_columns_are_loaded_by_vectors(dtype: str, rows: int, columns: int, pretend: Any) -> None:
    pretend(kind="gpu", shares_memory=False, loads_vectors=True, units=1, threads=8)
    whole = values((rows, columns + 16), dtype)
    x, forms = dp.asarray(whole), []
    wide = whole.astype("f8")
    for at in (slice(0, columns), slice(8, columns + 8), slice(1, columns + 1)):
        for part in (np.s_[:, at], np.s_[::-1, at], np.s_[::2, at]):
            v, a = x[part], wide[part]
            forms.append("load_vector" in dp.explain(v.max(axis=0)).source)
            equal(v.max(axis=0), whole[part].max(axis=0))
            equal(v.argmin(axis=0), whole[part].argmin(axis=0))
            span = v.astype("f8").max(axis=0) - v.min(axis=0) * 0.5
            np.testing.assert_array_equal(span.asnumpy(), a.max(axis=0) - a.min(axis=0) * 0.5)
            total = (v * 0.5).sum(axis=0).asnumpy()
            np.testing.assert_allclose(total, (a * 0.5).sum(axis=0), rtol=1e-4, atol=1e-3)
    assert any(forms) or columns % 16
