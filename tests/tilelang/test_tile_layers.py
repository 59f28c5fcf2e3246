"""Convolution, pooling and dense layers compared with loops over the window."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import config, tilelang
from dparray.memory.libraries import numpy as numpy_library
from dparray.tilelang import kernel_text, layers
from tests.support import launched


def windows(x: np.ndarray, window: Any, steps: Any, apart: Any, borders: Any, fill: Any) -> Any:
    """Yield the part of the padded ``x`` (batch, *space, channels) for each window element."""
    x = np.pad(x, [(0, 0), *borders, (0, 0)], constant_values=fill)
    for place in itertools.product(*map(range, window)):
        cuts = [slice(None)]
        for at, size, wide, step, gap in zip(
            place, x.shape[1:-1], window, steps, apart, strict=True
        ):
            count = (size - gap * (wide - 1) - 1) // step + 1
            cuts.append(slice(at * gap, at * gap + (count - 1) * step + 1, step))
        yield place, x[tuple(cuts)]


CASES = [
    ((9,), (3,), (1,), (1,), ((0, 0),)),
    ((9, 8), (3, 2), (2, 1), (1, 2), ((1, 2), (0, 3))),
    ((7, 7), (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1))),
    ((5, 4, 6), (2, 1, 3), (1, 1, 2), (2, 1, 1), ((0, 0), (0, 0), (1, 0))),
]


@pytest.mark.parametrize("on_host", [True, False], ids=["host", "kernels"])
@pytest.mark.parametrize("channels", ["last", "first"])
@pytest.mark.parametrize("case", CASES, ids=["1-D", "2-D", "same", "3-D"])
def test_convolutions(
    case: Any, channels: str, on_host: bool, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not on_host:
        monkeypatch.setattr(config, "host_tier", False)
    space, window, steps, apart, borders = case
    random = np.random.default_rng(0)
    x = random.integers(-4, 5, (2, *space, 3)).astype(np.float32)
    w = random.integers(-4, 5, (*window, 3, 5)).astype(np.float32)
    parts = windows(x, window, steps, apart, borders, 0)
    expected = sum(part @ w[place] for place, part in parts)
    if channels == "first":
        x, w = np.moveaxis(x, -1, 1), np.moveaxis(w, (-1, -2), (0, 1))
        expected = np.moveaxis(expected, -1, 1)
    found = tilelang.conv(
        dp.asarray(x, sycl_queue=queue),
        dp.asarray(w, sycl_queue=queue),
        strides=steps,
        padding=borders,
        dilation=apart,
        channels=channels,
    )
    assert found.queue == queue
    assert (found.asnumpy() == expected).all()


@pytest.mark.parametrize("channels", ["last", "first"])
@pytest.mark.parametrize("groups", [2, 3, 6], ids=["2", "3", "depthwise"])
@pytest.mark.parametrize("space", [(9, 8), (61, 40)], ids=["small", "large"])
def test_convolutions_in_groups(space: Any, groups: int, channels: str) -> None:
    random = np.random.default_rng(3)
    filters = 6 if groups == 6 else 12
    window, steps, apart, borders = (3, 2), (2, 1), (1, 2), ((1, 1), (0, 2))
    x = random.integers(-4, 5, (2, *space, 6)).astype(np.float32)
    w = random.integers(-4, 5, (*window, 6 // groups, filters)).astype(np.float32)
    expected = np.concatenate(
        [
            sum(
                part @ kernel[place]
                for place, part in windows(image, window, steps, apart, borders, 0)
            )
            for image, kernel in zip(
                np.split(x, groups, axis=-1), np.split(w, groups, axis=-1), strict=True
            )
        ],
        axis=-1,
    )
    if channels == "first":
        x, w = np.moveaxis(x, -1, 1), np.moveaxis(w, (-1, -2), (0, 1))
        expected = np.moveaxis(expected, -1, 1)
    found = tilelang.conv(
        dp.asarray(x),
        dp.asarray(w),
        strides=steps,
        padding=borders,
        dilation=apart,
        groups=groups,
        channels=channels,
    )
    assert (found.asnumpy() == expected).all()


@pytest.mark.parametrize("channels", ["last", "first"])
@pytest.mark.parametrize(("depth", "filters"), [(3, 5), (16, 32), (80, 32)])
def test_convolutions_by_windows_of_one_element(depth: int, filters: int, channels: str) -> None:
    random = np.random.default_rng(5)
    x = random.integers(-4, 5, (2, 31, 33, depth)).astype(np.float32)
    w = random.integers(-4, 5, (1, 1, depth, filters)).astype(np.float32)
    expected = np.pad(x, ((0, 0), (1, 0), (0, 0), (0, 0)))[:, ::2, ::1] @ w[0, 0]
    if channels == "first":
        x, w = np.moveaxis(x, -1, 1), np.moveaxis(w, (-1, -2), (0, 1))
        expected = np.moveaxis(expected, -1, 1)
    found = tilelang.conv(
        dp.asarray(x),
        dp.asarray(w),
        strides=(2, 1),
        padding=((1, 0), 0),
        channels=channels,
    )
    assert (found.asnumpy() == expected).all()


@pytest.mark.parametrize("filters", [9, 700])
@pytest.mark.parametrize("nbytes", [1, 3000, 1 << 22])
@pytest.mark.parametrize(
    ("shape", "window", "steps", "apart", "padding"),
    [
        ((2, 40, 6), (5,), 2, 3, ((4, 1),)),
        ((2, 19, 23, 8), (3, 3), 1, 1, (1, 1)),
        ((1, 19, 23, 8), (2, 5), (3, 2), (2, 1), ((0, 3), (2, 0))),
        ((1, 9, 8, 7, 4), (3, 2, 2), (2, 1, 1), (1, 2, 1), (0, 1, 0)),
        ((2, 9, 11, 40), (1, 1), (2, 1), 1, ((1, 0), 0)),
    ],
)
def test_products_of_windows_are_convolutions(
    shape: tuple[int, ...],
    window: tuple[int, ...],
    steps: Any,
    apart: Any,
    padding: Any,
    nbytes: int,
    filters: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layers, "_COPIED", nbytes)
    random = np.random.default_rng(6)
    x = random.integers(-4, 5, shape).astype(np.float32)
    w = random.integers(-4, 5, (*window, shape[-1], filters)).astype(np.float32)
    options = {"strides": steps, "dilation": apart, "padding": padding}
    arrays = [dp.asarray(each, device="host:cpu") for each in (x, w)]
    with launched() as launches:
        found = tilelang.conv(*arrays, **options).asnumpy()
    assert not launches
    with dp.config.override(host_tier=False):
        wanted = tilelang.conv(*arrays, **options).asnumpy()
    np.testing.assert_array_equal(found, wanted)


def test_products_get_the_threads_of_openblas_again() -> None:
    threads, _ = numpy_library._blas_threads()
    before = threads()
    with suppress(ZeroDivisionError), numpy_library.products_on_calling_threads():
        with numpy_library.products_on_calling_threads():
            pass
        assert threads() == 1
        raise ZeroDivisionError
    assert threads() == before


@pytest.mark.parametrize("groups", [1, 32], ids=["dense", "depthwise"])
def test_large_convolutions_are_pending(groups: int) -> None:
    x = dp.ones((1, 40, 40, 32), dtype="float32")
    w = dp.ones((3, 3, 32 // groups, 32), dtype="float32")
    made = dp.maximum(tilelang.conv(x, w, groups=groups) + dp.ones(32, dtype="float32"), 0)
    assert made.is_pending
    assert "contraction" in str(dp.explain(made))
    assert (made.asnumpy() == 9 * 32 // groups + 1).all()


def test_nothing_is_compiled_for_products(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a kernel")

    monkeypatch.setattr(layers, "_convolution", refuse)
    for depth in range(70, 78):
        image = dp.ones((1, 9, 9, depth), dtype="float32")
        made = tilelang.conv(image, dp.ones((1, 1, depth, 20), dtype="float32"))
        assert (made.asnumpy() == depth).all()


def pooled(
    x: np.ndarray, size: Any, steps: Any, apart: Any, borders: Any, ceil: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return maxima (NaN wins), their positions, and means, by a loop over windows."""
    batch, height, width, channels = x.shape
    counts = []
    for length, wide, step, gap, (before, after) in zip(
        (height, width), size, steps, apart, borders, strict=True
    ):
        rest = length + before + after - gap * (wide - 1) - 1
        count = (-(-rest // step) if ceil else rest // step) + 1
        counts.append(count - (ceil and (count - 1) * step >= length + before))
    largest = np.empty((batch, *counts, channels), x.dtype)
    means, positions = np.empty_like(largest, dtype=float), np.empty(largest.shape, np.int64)
    for n, i, j, c in np.ndindex(largest.shape):
        points = [
            (row, column)
            for row in (i * steps[0] - borders[0][0] + apart[0] * k for k in range(size[0]))
            for column in (j * steps[1] - borders[1][0] + apart[1] * k for k in range(size[1]))
            if 0 <= row < height and 0 <= column < width
        ]
        values = np.array([x[n, row, column, c] for row, column in points])
        row, column = points[int(values.argmax())]
        largest[n, i, j, c], positions[n, i, j, c] = values.max(), row * width + column
        means[n, i, j, c] = values.mean()
    return largest, positions, means


POOLS = [
    ((3, 2), (2, 2), (1, 1), ((1, 1), (0, 1)), False),
    ((2, 2), (2, 3), (1, 1), ((0, 0), (0, 0)), True),
    ((3, 3), (2, 2), (2, 1), ((2, 1), (1, 1)), True),
    ((2, 3), (1, 2), (3, 2), ((0, 0), (1, 2)), False),
    ((1, 1), (2, 1), (1, 1), ((0, 0), (0, 0)), False),
]


@pytest.mark.parametrize("on_host", [True, False], ids=["host", "kernels"])
@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("channels", ["last", "first"])
@pytest.mark.parametrize("case", POOLS, ids=["plain", "ceil", "ceil-dilated", "dilated", "single"])
def test_pooling_against_loops(
    case: Any, channels: str, dtype: str, on_host: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not on_host:
        monkeypatch.setattr(config, "host_tier", False)
    size, steps, apart, borders, ceil = case
    random = np.random.default_rng(4)
    x = random.integers(-9, 3, (2, 8, 7, 3)).astype(dtype)
    if dtype == "float32":
        x[random.random(x.shape) < 0.02] = np.nan
        x[random.random(x.shape) < 0.1] = -np.inf
    expected = pooled(x, size, steps, apart, borders, ceil)
    ours = dp.asarray(np.moveaxis(x, -1, 1) if channels == "first" else x)
    given: dict[str, Any] = {
        "strides": steps,
        "padding": borders,
        "dilation": apart,
        "ceil": ceil,
        "channels": channels,
    }
    values, positions = tilelang.max_pool(ours, size, indices=True, **given)
    alone = tilelang.max_pool(ours, size, **given)
    means = tilelang.avg_pool(ours, size, **given)
    assert values.dtype == alone.dtype == dtype
    assert positions.dtype == "int64"
    found = [each.asnumpy() for each in (values, positions, means, alone)]
    if channels == "first":
        found = [np.moveaxis(each, 1, -1) for each in found]
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-6)
    np.testing.assert_array_equal(found[3], expected[0])


def test_means_that_count_padding() -> None:
    x = dp.ones((1, 4, 5, 1), dtype="float32")
    found = tilelang.avg_pool(x, 2, padding=1, ceil=True, count_padding=True)[0, :, :, 0]
    np.testing.assert_allclose(
        found.asnumpy(), [[0.25, 0.5, 0.5], [0.5, 1, 1], [0.25, 0.5, 0.5]], rtol=1e-6
    )
    beyond = tilelang.avg_pool(x, 3, strides=3, ceil=True, count_padding=True)
    assert (beyond.asnumpy() == 1).all()


def test_maxima_of_tile_programs_propagate_nan_with_an_attribute() -> None:
    a = dp.asarray([[1.0, float("nan")], [3.0, 2.0]] * 20_000)
    for text in ("M[i: N] = >(A[i, j]);", "M[i: N] = >(A[i, j]), i + j < 90000;"):
        ignored = tilelang.function(f"function (A[N, K]) -> (M) {{ {text} }}")
        kept = tilelang.function(f"function (A[N, K]) -> (M) {{ [[propagate_nan]] {text} }}")
        for x in (a, a[:4]):
            assert np.isnan(kept(x).asnumpy()[0])
            assert ignored(x).asnumpy()[0] == 1
            assert kept(x).asnumpy()[1] == ignored(x).asnumpy()[1] == 3


def test_mismatched_arguments_raise() -> None:
    x, w = dp.ones((1, 5, 5, 2)), dp.ones((3, 3, 2, 4))
    with pytest.raises(dp.ShapeError, match="2 channels"):
        tilelang.conv(x, dp.ones((3, 3, 3, 4)))
    with pytest.raises(dp.ShapeError, match="equally many"):
        tilelang.conv(x, dp.ones((3, 2, 4)))
    with pytest.raises(dp.ShapeError, match="must divide"):
        tilelang.conv(x, w, groups=3)
    with pytest.raises(dp.ShapeError, match="1 channels in each of 2 groups"):
        tilelang.conv(x, w, groups=2)
    with pytest.raises(dp.ArgumentError, match="groups"):
        tilelang.conv(x, w, groups=0)
    with pytest.raises(dp.ArgumentError, match=r"of .* empty"):
        tilelang.max_pool(dp.ones((1, 1, 1, 1)), 2, padding=1, dilation=2)
    with pytest.raises(dp.ShapeError, match="larger than 5"):
        tilelang.conv(x, w, dilation=4)
    with pytest.raises(dp.ShapeError, match="a batch"):
        tilelang.conv(dp.ones((5, 5)), w)
    for wrong in ({"strides": 0}, {"padding": -1}, {"padding": "full"}, {"channels": "middle"}):
        with pytest.raises(dp.ArgumentError):
            tilelang.conv(x, w, **wrong)
    with pytest.raises(dp.ArgumentError, match=r"of .* empty"):
        tilelang.max_pool(x, 2, padding=2)
    with pytest.raises(dp.HostConversionError):
        tilelang.conv(np.ones((1, 5, 5, 2)), w)


def test_a_dense_layer() -> None:
    x, w, b = dp.ones((2, 3)), dp.ones((3, 4)), dp.ones(4)
    assert (tilelang.dense(x, w).asnumpy() == 3).all()
    assert (tilelang.dense(x, w, b).asnumpy() == 4).all()
    with pytest.raises(dp.TileShapeError):
        tilelang.dense(x, dp.ones((2, 4)))


def test_the_work_of_a_call_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    function = tilelang.function(
        "function (A[N, M], B[M, K]) -> (C, D, E, F) { C[i, k: N, K] = +(A[i, j] * B[j, k]); "
        "D[i: N] = >(A[i, j]); E[j, i: M, N] = =(A[i, j]); F[p: N] = +(A[q, 0]), p - q < N; }"
    )
    a = dp.ones((3, 3), dtype="float32")
    found = dp.explain(function, a, B=a).contractions
    assert [each.kind for each in found] == ["product", "reduction", "map", "host"]
    assert "F[p: N] = +(A[q, 0]), p - q < N" in str(found[3])
    monkeypatch.setattr(config, "host_tier", False)
    last = dp.explain(function, a, a).contractions[3]
    assert last.kind == "kernel"
    assert "def tile_contraction(item, a0, out" in last.source


def test_submitted_calls_end() -> None:
    function = tilelang.function("function (A[N]) -> (B, C) { B = A + 1; C[] = +(B[i]); }")
    run = function.submit(dp.zeros(100_000, dtype="float32"))
    run.wait()
    assert run.done()
    assert not run.outputs["B"].is_pending
    assert run.outputs["C"].item() == 100_000


@pytest.mark.parametrize("filters", [3, 8, 12, 16, 17, 20, 31])
def test_convolutions_of_any_number_of_filters(filters: int) -> None:
    random = np.random.default_rng(2)
    x = random.integers(-3, 4, (2, 70, 65, 4)).astype("float32")
    w = random.integers(-3, 4, (3, 2, 4, filters)).astype("float32")
    found = tilelang.conv(dp.asarray(x), dp.asarray(w))
    expected = sum(x[:, i : i + 68, j : j + 64] @ w[i, j] for i in range(3) for j in range(2))
    np.testing.assert_array_equal(found.asnumpy(), expected)
    assert found.strides == (4 * 68 * 64 * filters, 4 * 64 * filters, 4 * filters, 4)


@pytest.mark.parametrize(
    ("extent", "length"), [(4, 4), (7, 7), (13, 13), (14, 14), (28, 14), (32, 16), (508, 16)]
)
def test_tiles_take_few_steps(extent: int, length: int) -> None:
    """A tile of 4 elements takes three times as long as one of 16."""
    assert kernel_text._length_of_tiles(extent) == length


@pytest.mark.parametrize("extent", [7, 13, 19])
def test_convolutions_by_tiles_of_any_length(extent: int) -> None:
    random = np.random.default_rng(extent)
    x = random.standard_normal((1, extent + 2, extent + 2, 32)).astype("float32")
    w = random.standard_normal((3, 3, 32, 16)).astype("float32")
    parts = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    right = np.einsum("nyxcij,ijcf->nyxf", parts, w)
    made = tilelang.conv(dp.asarray(x), dp.asarray(w)).asnumpy()
    np.testing.assert_allclose(made, right, rtol=1e-4, atol=1e-4)


# -- operations on the results of contractions --------------------------------------------------

PADDED = [  # image, filters, window, step, padding
    ((1, 20, 17, 8), 32, (3, 3), 1, (1, 1)),
    ((2, 33, 18, 3), 16, (5, 3), 2, (2, 1)),
    ((1, 7, 7, 16), 48, (3, 3), 1, (2, 2)),
    ((1, 30, 9, 4), 32, (7, 1), 1, (3, 0)),
]


def operands_of(case: Any, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return images, filters and a bias of small integers for a padded convolution."""
    shape, filters, window, *_ = case
    random = np.random.default_rng(seed)
    return (
        random.integers(-4, 5, shape).astype(np.float32),
        random.integers(-4, 5, (*window, shape[-1], filters)).astype(np.float32),
        random.integers(-9, 10, filters).astype(np.float32),
    )


def convolved(x: np.ndarray, w: np.ndarray, step: int, padding: Any) -> Any:
    """Return the convolution of integers, which is exact in float32."""
    borders = tuple((each, each) for each in padding)
    parts = windows(x, w.shape[:2], (step, step), (1, 1), borders, 0)
    return sum(part @ w[place] for place, part in parts)


@pytest.mark.parametrize("case", PADDED, ids=str)
def test_operations_on_a_padded_convolution_are_in_its_kernel(case: Any) -> None:
    *_, step, padding = case
    x, w, bias = operands_of(case, 3)
    made = convolved(x, w, step, padding)
    other = np.random.default_rng(5).integers(-9, 10, made.shape).astype(np.float32)
    places = dp.asarray(w)
    y = tilelang.conv(dp.asarray(x), places, strides=step, padding=padding) + dp.asarray(bias)
    y = dp.maximum(dp.minimum(y, 40) - dp.asarray(other), 0)
    assert "5 operations in 1 step" in str(dp.explain(y))
    assert (y.asnumpy() == np.maximum(np.minimum(made + bias, 40) - other, 0)).all()


@pytest.mark.parametrize("case", PADDED, ids=str)
def test_packed_filters_agree_and_allow_operations_on_the_result(case: Any) -> None:
    *_, step, padding = case
    x, w, bias = operands_of(case, 4)
    groups = w.reshape(*w.shape[:-1], -1, kernel_text.VECTOR)
    packed = dp.asarray(np.ascontiguousarray(np.moveaxis(groups, -2, 0)))
    borders = tuple((each, each) for each in padding)
    y = layers.conv_packed(dp.asarray(x), packed, (step, step), (1, 1), borders)
    y = y + dp.asarray(bias)
    assert "2 operations in 1 step" in str(dp.explain(y))
    assert (y.asnumpy() == convolved(x, w, step, padding) + bias).all()


def test_a_convolution_that_is_read_twice_is_computed_once() -> None:
    random = np.random.default_rng(5)
    x = random.integers(-4, 5, (1, 20, 20, 8)).astype(np.float32)
    w = random.integers(-4, 5, (3, 3, 8, 32)).astype(np.float32)
    made = tilelang.conv(dp.asarray(x), dp.asarray(w), padding=1)
    first, second = dp.maximum(made, 0), made * 2
    expected = convolved(x, w, 1, (1, 1))
    assert (first.asnumpy() == np.maximum(expected, 0)).all()
    assert not made.is_pending
    assert (second.asnumpy() == expected * 2).all()
    assert (made.asnumpy() == expected).all()


def test_a_chain_of_convolutions_and_a_branch() -> None:
    random = np.random.default_rng(6)
    values = random.integers(-2, 3, (1, 12, 12, 16)).astype(np.float32)
    filters = [random.integers(-1, 2, (3, 3, 16, 16)).astype(np.float32) for _ in range(4)]
    x, expected = dp.asarray(values), values
    for w in filters:
        x = dp.minimum(dp.maximum(tilelang.conv(x, dp.asarray(w), padding=1) + x, 0), 3)
        expected = np.clip(convolved(expected, w, 1, (1, 1)) + expected, 0, 3)
    assert (x.asnumpy() == expected).all()
    assert (dp.sum(x, axis=(1, 2)).asnumpy() == expected.sum((1, 2))).all()


@pytest.mark.parametrize("dtype", ["float64", "int32", "int8", "uint16", "bool"])
def test_tails_of_other_dtypes(dtype: str) -> None:
    random = np.random.default_rng(7)
    x = random.integers(0, 3, (1, 20, 20, 8)).astype(dtype)
    w = random.integers(0, 2, (3, 3, 8, 32)).astype(dtype)
    made = tilelang.conv(dp.asarray(x), dp.asarray(w), padding=1)
    alone = made.asnumpy()
    again = tilelang.conv(dp.asarray(x), dp.asarray(w), padding=1)
    for function, other in ((dp.add, 1), (dp.multiply, np.float32(0.5)), (dp.less, 3)):
        wanted = getattr(np, function.__name__)(alone, other)
        found = function(again, other)
        assert found.dtype == wanted.dtype
        assert (found.asnumpy() == wanted).all(), function
        again = tilelang.conv(dp.asarray(x), dp.asarray(w), padding=1)


def test_a_convolution_is_stored_in_a_part_of_an_array() -> None:
    random = np.random.default_rng(8)
    x = random.integers(-4, 5, (1, 20, 20, 8)).astype(np.float32)
    w = random.integers(-4, 5, (3, 3, 8, 32)).astype(np.float32)
    whole = dp.zeros((1, 24, 24, 32), dtype="float64")
    whole[:, 2:-2, 22:2:-1] = tilelang.conv(dp.asarray(x), dp.asarray(w), padding=1) + 1
    expected = np.zeros((1, 24, 24, 32))
    expected[:, 2:-2, 22:2:-1] = convolved(x, w, 1, (1, 1)) + 1
    assert (whole.asnumpy() == expected).all()


def test_padding_excludes_points_rather_than_multiplying_by_zero() -> None:
    x = np.zeros((1, 9, 9, 16), np.float32)
    w = np.full((3, 3, 16, 16), np.inf, np.float32)
    w[1, 1] = 1
    found = tilelang.conv(dp.asarray(x), dp.asarray(w), padding=1).asnumpy()
    assert np.isnan(found).all()  # each element has a neighbor: 0 * inf
    w[:, 0] = w[:, 2] = w[2] = 1  # there is no row above the first
    found = tilelang.conv(dp.asarray(x), dp.asarray(w), padding=1).asnumpy()
    assert (found[:, 0] == 0).all()
    assert np.isnan(found[:, 1:]).all()


@pytest.mark.parametrize("channels", [24, 64])
def test_kernels_have_groups_where_devices_run_them(channels: int) -> None:
    x = dp.ones((1, 56, 56, channels), dtype="float32")
    w = dp.ones((3, 3, channels), dtype="float32")
    made = dp.tilelang.layers.conv_packed(x, w, (1, 1), (1, 1), ((1, 1), (1, 1)))
    is_in_groups = "get_global_id" in str(dp.explain(made).source)
    assert is_in_groups == x.device.traits.has_groups  # others are 17 times faster without
    assert made.asnumpy()[0, 0, :2, 0].tolist() == [4.0, 6.0]
