"""Arrays sharded over several devices have NumPy's values, and shards stay on their devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import observed, values

dpctl = pytest.importorskip("dpctl")

V = values((7, 4), "float64") + 2
W = values((4, 3), "float64", seed=1)


@pytest.fixture(scope="module", params=["sub-devices", "queues", "three"])
def places(request: pytest.FixtureRequest) -> list[Any]:
    cpu = dp.Device("cpu")
    if request.param == "sub-devices":
        if cpu.sycl_device.max_compute_units < 2:
            pytest.skip("a CPU with one compute unit has no sub-devices")
        return cpu.create_sub_devices(partition=1)[:2]
    count = 2 if request.param == "queues" else 3
    return [dp.Device(dpctl.SyclQueue(cpu.sycl_device)) for _ in range(count)]


@pytest.fixture
def two() -> list[Any]:
    return [dp.Device(dpctl.SyclQueue("cpu")) for _ in range(2)]


def close(found: Any, wanted: Any) -> None:
    found = found.asnumpy() if hasattr(found, "asnumpy") else found
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def copied(work: Callable[[], Any]) -> list[int]:
    """Return the bytes of each copy between queues or through the host."""
    found: list[int] = []

    def note(event: str, **given: Any) -> None:
        if event == "copy":
            found.append(given["nbytes"])

    with observed(note):
        work()
    return found


# -- computing -------------------------------------------------------------------------------------

ALIKE: dict[str, Callable[[Any, Any], Any]] = {
    "operators": lambda xp, x: (x * 2 + 1) / (3 - x) ** 2 % 0.7 // 0.1,
    "comparison": lambda xp, x: (x > 2) & (x < 2.5) | ~(x != x),
    "functions": lambda xp, x: xp.sin(x) + xp.maximum(xp.exp(-x), xp.sqrt(x)),
    "where": lambda xp, x: xp.where(x > 2, x, 0),
    "clip": lambda xp, x: xp.clip(x, 1.5, 2.5),
    "scalar first": lambda xp, x: 1 / x - np.float64(2) * x,
    "sum": lambda xp, x: xp.sum(x),
    "sum over the cut": lambda xp, x: xp.sum(x, axis=0),
    "sum beside the cut": lambda xp, x: xp.sum(x, axis=1),
    "sum, dimensions kept": lambda xp, x: xp.sum(x, axis=0, keepdims=True),
    "sum of both axes": lambda xp, x: x.sum(axis=(0, 1)),
    "product": lambda xp, x: xp.prod(x, axis=0),
    "extremes": lambda xp, x: xp.max(x, axis=0) - xp.min(x),
    "mean": lambda xp, x: xp.mean(x, axis=0) + xp.mean(x),
    "mean beside": lambda xp, x: x.mean(axis=1),
    "variance": lambda xp, x: xp.var(x, axis=0),
    "deviation": lambda xp, x: xp.std(x, ddof=1),
    "any, all": lambda xp, x: xp.any(x > 2.9, axis=0) | xp.all(x > 1.1, axis=0),
    "count": lambda xp, x: xp.count_nonzero(x > 2, axis=0),
    "range": lambda xp, x: xp.ptp(x, axis=0),
    "place": lambda xp, x: xp.argmax(x, axis=0) + xp.argmin(x, axis=0),
    "place beside": lambda xp, x: xp.argmin(x, axis=1),
    "place of all": lambda xp, x: xp.argmax(x),
    "centred": lambda xp, x: (x - x.mean(axis=0)) / x.std(axis=0),
    "columns": lambda xp, x: x[:, 1:3] * x[:, :1],
    "column": lambda xp, x: x[:, 2],
    "rows": lambda xp, x: x[2:6] + 1,
    "every second row": lambda xp, x: x[1::2, None, ::-1],
    "no row": lambda xp, x: x[3:3],
    "ellipsis": lambda xp, x: x[..., -1],
    "one row": lambda xp, x: x[-2],
    "transposed": lambda xp, x: (x.T + 1).sum(axis=0),
    "sorted beside": lambda xp, x: xp.sort(x, axis=1),
    "running sum beside": lambda xp, x: xp.cumsum(x, axis=1),
    "joined beside": lambda xp, x: xp.concatenate([x, x * 2], axis=1),
    "gram": lambda xp, x: x.T @ x,
    "inner": lambda xp, x: x[:, 0] @ x[:, 1],
    "copies of rows": lambda xp, x: xp.zeros_like(x) + xp.ones_like(x) * x[:, :1],
}


@pytest.mark.parametrize("name", ALIKE)
def test_it_has_numpys_results(name: str, places: list[Any]) -> None:
    close(ALIKE[name](dp, dp.distribute(V, places)), ALIKE[name](np, V))


@pytest.mark.parametrize("name", ["functions", "where", "sum over the cut", "joined beside"])
def test_numpys_functions_call_dparrays(name: str, places: list[Any]) -> None:
    found = ALIKE[name](np, dp.distribute(V, places))
    assert isinstance(found, dp.sharding.ShardedArray)
    close(found, ALIKE[name](np, V))


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("other", [0, 1, None])
def test_products_without_copies_or_an_error(
    axis: int | None, other: int | None, places: list[Any]
) -> None:
    x, w = dp.distribute(V, places, axis=axis), dp.distribute(W, places, axis=other)
    if (axis, other) in {(0, None), (None, 1), (None, None), (1, 0)}:
        close(x @ w, V @ W)
    else:
        with pytest.raises(dp.ShardingError, match=r"x2 = dp\.distribute\(x2"):
            dp.matmul(x, w)


def test_a_stack_of_matrices_sharded_by_its_stack(two: list[Any]) -> None:
    a, b = values((5, 2, 3), "float64"), values((5, 3, 2), "float64")
    close(dp.distribute(a, two) @ dp.distribute(b, two), a @ b)
    close(dp.distribute(V, two) @ dp.distribute(W[:, 0], two, axis=None), V @ W[:, 0])


def test_dtypes_are_those_of_numpy(two: list[Any]) -> None:
    x = dp.distribute(np.arange(6, dtype="int8"), two)
    assert x.sum().dtype == np.int64
    assert (x + 1).dtype == np.int8
    assert x.mean().dtype == np.float64
    assert x.sum(dtype="float32").dtype == np.float32


def test_writing_goes_to_the_parts(places: list[Any]) -> None:
    x, wanted = dp.distribute(V, places), V.copy()
    x += 1
    wanted += 1
    x[:, 0] = 5.0
    wanted[:, 0] = 5
    x[2:6] = dp.distribute(W[:, 0], places, axis=None)
    wanted[2:6] = W[:, 0]
    x[6] = 0
    wanted[6] = 0
    x[:, 1] = x[:, 2]
    wanted[:, 1] = wanted[:, 2]
    dp.multiply(x, 2, out=x)
    close(x, wanted * 2)


TARGETS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "x += y": lambda xp, x, y: x.__iadd__(y),
    "x[...] = y": lambda xp, x, y: x.__setitem__(..., y),
    "x[1:4] = y": lambda xp, x, y: x.__setitem__(slice(1, 4), y[:3] if len(y) == 4 else y),
    "x.T[...] = y.T": lambda xp, x, y: x.T.__setitem__(..., y.T if y.ndim == 2 else y[0]),
    "x[1] = y": lambda xp, x, y: x.__setitem__(1, y[0] if y.ndim == 2 else y),
    "x[:, 0] = y": lambda xp, x, y: x.__setitem__((slice(None), 0), y[:, 0] if y.ndim == 2 else 5),
    "out": lambda xp, x, y: xp.multiply(y, 2, out=x),
    "out, twice": lambda xp, x, y: xp.multiply(x, y, out=x),
    "positional out": lambda xp, x, y: xp.add(y, 1, x),
    "clip": lambda xp, x, y: xp.clip(y, 1, 5, out=x),
    "where": lambda xp, x, y: xp.add(y, 1, out=x, where=y > 3),
    "sum": lambda xp, x, y: xp.sum(y, axis=0, out=x[0]),
    "product": lambda xp, x, y: xp.matmul(y, xp.eye(3), out=x),
}


@pytest.mark.parametrize("write", TARGETS)
@pytest.mark.parametrize("shape", [(4, 3), (3,), (1, 3), (4, 1)])
@pytest.mark.sample(60)
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("other", [0, 1, None])
def test_a_target_gets_all_values_or_none(
    write: str, shape: tuple[int, ...], axis: int | None, other: int | None, two: list[Any]
) -> None:
    start = np.arange(12.0).reshape(4, 3)
    value = np.arange(float(np.prod(shape))).reshape(shape)
    wanted = start.copy()
    with contextlib.suppress(ValueError, IndexError):
        TARGETS[write](np, wanted, value)
    x = dp.distribute(start, two, axis=axis)
    y = dp.distribute(value, two, axis=None if other is None else min(other, value.ndim - 1))
    try:
        TARGETS[write](dp, x, y)
    except (dp.ShardingError, dp.ShapeError, dp.UnsupportedFeatureError):
        wanted = start
        assert (axis, other) != (None, None) or write in ("sum", "product")
    for copy in x.shards if x.is_replicated else (x,):
        assert np.array_equal(copy.asnumpy(), wanted)


def test_a_copy_on_each_device_stays_the_same_on_all(two: list[Any]) -> None:
    copies = dp.distribute(V, two, axis=None)
    for part in (copies.gather(), dp.distribute(copies, two), dp.distribute(copies, two[:1])):
        part += 1
    for shard in copies.shards:
        close(shard, V)


@pytest.mark.parametrize("devices", [[0, 1], [1, 0], [0]])
@pytest.mark.parametrize("sizes", [[4, 3], [5, 2], [0, 7]])
def test_resharding_is_a_copy_or_a_view(devices: Any, sizes: Any, two: list[Any]) -> None:
    x = dp.distribute(V, two)
    chosen = [two[at] for at in devices]
    y = dp.distribute(x, chosen, sizes=sizes if len(chosen) == 2 else None)
    y[...] = 5.0
    close(x, np.full_like(V, 5) if len(devices) == 2 and y.sharding == x.sharding else V)


def test_a_reshaped_array_is_a_copy_or_a_view(two: list[Any]) -> None:
    for part, axis in ((V[:3], 1), (V.T[:3].copy(), 0), (V[:5, :1].T.copy(), 1)):
        x = dp.distribute(part.T, two, axis=axis).T
        y = x.reshape(-1) if x.sharding.axis == 0 else x.reshape(part.shape[0], -1, 1)
        before = x.asnumpy()
        y += 100
        after = x.asnumpy()
        assert np.array_equal(after, before) or np.array_equal(after, before + 100)
        with pytest.raises(ValueError, match="copy=False"):
            dp.distribute(V[:, :3], two, axis=1).T.reshape(-1, copy=False)


WITHOUT_ROWS = ["sum", "prod", "mean", "var", "std", "any", "all", "count_nonzero"]


@pytest.mark.parametrize("name", WITHOUT_ROWS)
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.filterwarnings("ignore")
def test_an_array_without_rows_has_numpys_results(
    name: str, axis: int | None, two: list[Any]
) -> None:
    values = np.zeros((0, 3))
    x = dp.distribute(values, two)
    close(getattr(dp, name)(x, axis=axis), getattr(np, name)(values, axis=axis))
    close(x.T @ x, values.T @ values)
    close(x.reshape(3, 0), values.reshape(3, 0))


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda x, r, d: dp.distribute(V[:1], d) + r, r"\(1, 4\).*x1 = dp.distribute\(x1, x1.dev"),
        (
            lambda x, r, d: r * dp.distribute(V[:1], d),
            r"x2 = dp.distribute\(x2, x2.devices, axis=N",
        ),
        (lambda x, r, d: dp.distribute(V[:1], d) + x, r"\(7, 4\).*x1 = dp.distribute\(x1, like=x2"),
        (lambda x, r, d: dp.add(x, [1, 2, 3, 4]), r"x2 of type list"),
        (lambda x, r, d: x.__setitem__(0, x[:, 0]), r"\(7,\) does not broadcast to \(4,\)"),
        (lambda x, r, d: dp.concatenate([x, r[:5]], axis=1), r"\(7, 4\), \(5, 4\)"),
        (lambda x, r, d: dp.einsum("ij,ij->", x, r[:5]), r"sizes 7 and 5.*\(5, 4\)"),
        (
            lambda x, r, d: dp.matmul(
                dp.distribute(np.ones((4, 2, 3, 3)), d), dp.distribute(np.ones((4, 5, 3, 3)), d)
            ),
            r"shapes \(4, 2\) and \(4, 5\)",
        ),
        (lambda x, r, d: dp.max(x[:, :0], axis=1), r"shape \(7, 0\)"),
        (lambda x, r, d: dp.ptp(x[:0]), r"ptp: x of shape \(0, 4\)"),
        (lambda x, r, d: dp.sort(x, axis=None), r"sort: x of shape \(7, 4\) is sharded"),
        (lambda x, r, d: dp.sum(x, initial=3.0), "initial= is not supported"),
        (lambda x, r, d: dp.zeros_like(x, shape=(3,)), "shape= is not supported"),
        (lambda x, r, d: dp.divmod(x, 2, out=(x, x)), "out= is not supported"),
    ],
)
def test_errors_name_shapes_of_whole_arrays(work: Any, words: str, two: list[Any]) -> None:
    x, copies = dp.distribute(V, two), dp.distribute(V, two, axis=None)
    with pytest.raises(dp.exceptions.DparrayError, match="(?s)" + words):
        work(x, copies, two)
    close(x, V)


def test_nothing_is_copied_between_equal_shardings(two: list[Any]) -> None:
    x, y = dp.distribute(V, two), dp.distribute(V, two)
    z: list[Any] = []
    assert not copied(lambda: z.append((x * y + dp.sin(x)).eval()))
    # One partial result of the second device is copied to the first, and nothing back.
    assert sum(copied(lambda: z.append(x.sum(axis=0).shards[0].asnumpy()))) <= 3 * 4 * 8


def test_the_shards_are_where_they_were_put(places: list[Any]) -> None:
    x = dp.distribute(V, places) + 1
    assert [shard.device for shard in x.shards] == list(places)
    assert x.devices == tuple(places)
    assert sum(shard.shape[0] for shard in x.shards) == 7
    source = dp.asarray(V, device=places[0])
    shared = dp.distribute(source, places)
    shared += 1
    close(source, V)  # an array of one device is copied, also there


# -- resharding ------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, None])
def test_an_array_can_be_resharded(axis: int | None, places: list[Any]) -> None:
    x = dp.distribute(V, places)
    y = dp.distribute(x, places, axis=axis)
    close(y, V)
    close(dp.distribute(y, places[::-1]), V)
    close(dp.distribute(y, like=x) + x, 2 * V)
    close(x.gather(), V)
    assert x.gather(places[-1]).device == places[-1]


def test_unequal_sharding_reports_the_copies(two: list[Any]) -> None:
    x, y = dp.distribute(V, two), dp.distribute(V, two, sizes=[2, 5])
    with pytest.raises(dp.ShardingError, match=r"(?s)axis 0 in 4 \+ 3 .*axis 0 in 2 \+ 5 ") as it:
        x * y
    assert it.value.nbytes == 2 * 4 * 8
    assert it.value.remedy == "x2 = dp.distribute(x2, like=x1)"
    assert isinstance(it.value, dp.ExecutionPlacementError)
    moved = copied(lambda: close(x * dp.distribute(y, like=x), V * V))
    assert it.value.nbytes in moved or it.value.nbytes // 2 in moved


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda x: x + dp.ones(4), r"x2 = dp\.distribute\(x2, like=x1\)"),
        (lambda x: dp.ones((7, 4)) + x, r"x1 = dp\.distribute\(x1, like=x2\)"),
        (lambda x: x + dp.distribute(V, x.devices, axis=1), "112 bytes of x2"),
        (lambda x: x + dp.distribute(V, x.devices[::-1]), "of x2 .224 bytes. would be copied"),
        (lambda x: x[::-1], r"x\.gather\(\)"),
        (lambda x: x[[0, 2]], "selects elements"),
        (lambda x: x[x > 2], "selects elements"),
        (lambda x: dp.sort(x, axis=0), r"112 of its 224 bytes.*x = dp\.distribute\(x, .*axis=1\)"),
        (lambda x: np.cumsum(x), r"x = x\.gather\(\)"),
        (lambda x: dp.concatenate([x, x]), "which must be whole"),
        (lambda x: x.map_blocks(lambda a, b: a, dp.ones(3)), "like=x1"),
        (lambda x: x.map_blocks(lambda a: a.to_device("cpu")), "may not move it"),
    ],
)
def test_implicit_copies_raise(work: Callable[[Any], Any], words: str, two: list[Any]) -> None:
    with pytest.raises(dp.ShardingError, match=words):
        work(dp.distribute(V, two))


@pytest.mark.parametrize(
    ("work", "error", "words"),
    [
        (lambda d: dp.distribute(V), dp.ArgumentError, "give devices"),
        (lambda d: dp.distribute(V, []), dp.ArgumentError, "devices is empty"),
        (lambda d: dp.distribute(V, [d[0], d[0]]), dp.ArgumentError, "in devices twice"),
        (lambda d: dp.distribute(V, ["gpu:7"]), dp.DeviceError, "no device matches"),
        (lambda d: dp.distribute(V, d, axis=2), dp.AxisError, "axis 2"),
        (lambda d: dp.distribute(V, d, sizes=[1, 2]), dp.ArgumentError, r"sizes \[1, 2\] for 2"),
        (lambda d: dp.distribute(V, d, halo=-1), dp.ArgumentError, "elements; got -1"),
        (lambda d: dp.distribute(3.0, d), dp.ShapeError, "axis=None to replicate"),
        (
            lambda d: dp.distribute(V, d, axis=None, halo=1),
            dp.ArgumentError,
            "axis=None replicates",
        ),
        (lambda d: dp.distribute(V, like=V), dp.ArgumentError, "like must be a sharded array"),
        (lambda d: dp.distribute(V, d) + V, dp.HostConversionError, r"like=x1"),
        (lambda d: dp.distribute(V, d)[:, :, 0], IndexError, "too many indices"),
        (lambda d: dp.distribute(V, d)[7], IndexError, "out of range for axis 0"),
        (lambda d: bool(dp.distribute(V, d)), dp.ShapeError, "ambiguous"),
        (lambda d: np.asarray(dp.distribute(V, d)), dp.HostConversionError, "asnumpy"),
        (lambda d: dp.linalg.svd(dp.distribute(V, d)), dp.UnsupportedFeatureError, "map_blocks"),
        (lambda d: dp.distribute(V, d).map_blocks(len), dp.ArgumentError, "returned a int"),
        (
            lambda d: dp.distribute(V, d).map_blocks(lambda a: a.sum()),
            dp.ShapeError,
            "no axis 0 to join",
        ),
        (
            lambda d: dp.distribute(V, d, halo=4).map_blocks(lambda a: a),
            dp.ArgumentError,
            "4 elements are needed per neighbor, but shard 2",
        ),
    ],
)
def test_bad_arguments(
    work: Callable[[Any], Any], error: type[Exception], words: str, two: list[Any]
) -> None:
    with pytest.raises(error, match=words):
        work(two)


# -- blocks, stencils, kernels ---------------------------------------------------------------------


def spread(u: Any) -> Any:
    """Compute a step of heat diffusion; the boundary stays."""
    v = u.copy()
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    v[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.2 * (around - 4 * u[1:-1, 1:-1])
    return v


def test_a_stencil_with_a_halo_is_that_of_one_device(places: list[Any]) -> None:
    picture = values((20, 6))
    alone, x = dp.asarray(picture), dp.distribute(picture, places, halo=1)
    for _ in range(5):
        alone, x = spread(alone), x.map_blocks(spread)
    assert np.array_equal(x.asnumpy(), alone.asnumpy())
    assert x.halo == 1


def test_only_the_halo_travels(two: list[Any]) -> None:
    x = dp.distribute(values((20, 6)), two, halo=1).map_blocks(spread)
    assert len(x.blocks) == 2
    x = x.map_blocks(spread)
    assert sorted(copied(lambda: x.blocks)) == [24, 24]
    x[:] = 0.0
    assert len(copied(lambda: x.blocks)) == 2


WRITES: dict[str, Callable[[Any], Any]] = {
    "the array": lambda x: x.__setitem__(slice(None), 7.0),
    "a slice": lambda x: x[2:6].__setitem__(slice(None), 7.0),
    "a transposed view": lambda x: x.T.__iadd__(7.0),
    "a reshaped view": lambda x: x.reshape(-1, 2).__setitem__(slice(None), 7.0),
    "a shard": lambda x: x.shards[0].__setitem__(slice(None), 7.0),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_halo_has_the_values_written_to_a_view(write: str, two: list[Any]) -> None:
    x = dp.distribute(np.arange(8.0), two, halo=1)
    assert len(x.blocks) == 2
    WRITES[write](x)
    values = x.asnumpy()
    assert values[3] == 7 + 3 * (write == "a transposed view")
    for block, wanted in zip(x.blocks, (values[:5], values[3:]), strict=True):
        assert np.array_equal(block.asnumpy(), wanted)


def test_blocks_may_change_their_size(places: list[Any]) -> None:
    x = dp.distribute(np.arange(12.0), places)
    y = x.map_blocks(lambda block: block[::2])
    assert y.sharding.sizes == tuple(-(-size // 2) for size in x.sharding.sizes)
    sums = x.map_blocks(lambda block: block.sum(keepdims=True))
    assert sums.shape == (len(places),)
    assert float(sums.sum()) == 66


@dp.kernel
def smooth(item: Any, u: Any, v: Any, first: Any, start: Any, last: Any) -> None:
    i = item.get_id(0)
    at = i + first
    v[i] = u[at]
    if start + i > 0 and start + i < last:
        v[i] = (u[at - 1] + u[at] + u[at + 1]) / 3


@pytest.mark.parametrize("debug", [False, True])
def test_a_kernel_over_shards(debug: bool, places: list[Any]) -> None:
    data = np.arange(12.0) ** 2
    u, v = dp.distribute(data, places, halo=1), dp.distribute(np.zeros(12), places)
    space = dp.sharding.ShardedRange(u)
    starts = list(u.sharding.bounds[:-1])
    with dp.config.override(debug=debug):
        event = dp.call_kernel(smooth, space, u, v, u.first_own, starts, 11)
        event.wait()
    assert event.done
    wanted = data.copy()
    wanted[1:-1] = (data[:-2] + data[1:-1] + data[2:]) / 3
    close(v, wanted)
    copy = dp.zeros_like(v)
    smooth[space](v, copy, 0, starts, 0)
    close(copy, wanted)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (lambda x: (x, x, [1], 0, 0), dp.ArgumentError, "'first' is a list of 1 values for 2"),
        (lambda x: (x, dp.zeros(7), 0, 0, 0), dp.ShardingError, "v = dp.distribute"),
        (lambda x: (x, V, 0, 0, 0), dp.HostConversionError, "v is a NumPy array"),
        (lambda x: (x, x[1:], 0, 0, 0), dp.ShardingError, "kernel smooth"),
        (lambda x: (dp.ones(3), dp.ones(3), 0, 0, 0), dp.ShardingError, "the range"),
    ],
)
def test_bad_arguments_of_kernels(
    arguments: Any, error: type[Exception], words: str, two: list[Any]
) -> None:
    x = dp.distribute(V[:, 0], two)
    with pytest.raises(error, match=words):
        dp.call_kernel(smooth, dp.sharding.ShardedRange(x), *arguments(x))


def test_a_range_is_that_of_a_sharded_array(two: list[Any]) -> None:
    with pytest.raises(dp.KernelRangeError, match="got a ndarray"):
        dp.sharding.ShardedRange(dp.ones(3))
    with pytest.raises(dp.KernelRangeError, match="3 dimensions"):
        dp.sharding.ShardedRange(dp.distribute(V, two), 3)


# -- random numbers --------------------------------------------------------------------------------


def test_kernels_write_no_replicated_arrays(two: Any) -> None:
    @dp.kernel
    def add(item, x, total):
        i = item.get_id(0)
        dp.AtomicRef(total, 0).fetch_add(x[i])

    @dp.kernel
    def read(item, x, total):
        i = item.get_id(0)
        x[i] = total[0] + 1

    x = dp.distribute(dp.arange(6.0), two)
    total = dp.distribute(dp.zeros(1), two, axis=None)
    with pytest.raises(dp.ShardingError, match=r"writes to total.*list\(total.shards\)"):
        dp.call_kernel(add, dp.sharding.ShardedRange(x), x, total)
    dp.call_kernel(add, dp.sharding.ShardedRange(x), x, list(total.shards)).wait()
    assert sum(each.item() for each in total.shards) == 15
    total = dp.distribute(dp.zeros(1), two, axis=None)
    dp.call_kernel(read, dp.sharding.ShardedRange(x), x, total).wait()
    assert x.asnumpy().tolist() == [1] * 6


def test_each_shard_has_its_own_stream(places: list[Any]) -> None:
    rng = dp.sharding.default_rng(5, places)
    x = rng.normal(3.0, 2.0, size=(3000, 2))
    assert x.shape == (3000, 2)
    assert abs(float(x.mean()) - 3) < 0.2
    assert abs(float(x.std()) - 2) < 0.2
    firsts = [shard.asnumpy()[:5].tolist() for shard in x.shards]
    assert all(first != firsts[0] for first in firsts[1:])
    again = dp.sharding.default_rng(5, places).normal(3.0, 2.0, size=(3000, 2))
    assert np.array_equal(x.asnumpy(), again.asnumpy())
    assert rng.integers(6, size=10, axis=0).dtype == np.int64
    scaled = rng.uniform(0, dp.distribute(np.full(9, 2.0), places), size=9)
    assert scaled.shape == (9,)


def test_the_size_of_random_numbers_is_an_argument_as_in_numpy(two: list[Any]) -> None:
    rng, wanted = dp.sharding.default_rng(5, two), np.random.default_rng(5)
    for draw in (
        lambda rng, loc: rng.random((6, 2)),
        lambda rng, loc: rng.normal(1.0, 2.0, (3, 5)),
        lambda rng, loc: rng.integers(0, 9, 4),
        lambda rng, loc: rng.normal(loc, 1e-9, (3, 8)),
    ):
        loc = np.arange(8.0)
        found, right = draw(rng, dp.distribute(loc, two)), draw(wanted, loc)
        assert (found.shape, found.dtype) == (right.shape, right.dtype)
    np.testing.assert_allclose(found.asnumpy(), right, atol=1e-6)
    with pytest.raises(dp.ArgumentError, match=r"random: size must be .*size=\(6, 2\)"):
        rng.random()
    with pytest.raises(dp.ShapeError, match=r"size \(8, 3\) .*length 8"):
        rng.normal(dp.distribute(loc, two), 1.0, (8, 3))


def test_random_numbers_need_devices() -> None:
    with pytest.raises(dp.ArgumentError, match="devices is empty"):
        dp.sharding.default_rng(0)


# -- failures --------------------------------------------------------------------------------------


@pytest.fixture
def lost(two: list[Any]) -> Iterator[Any]:
    """Lose the second device: work submitted to it fails."""

    def submit(event: str, **values: Any) -> None:
        if event == "evaluate" and any(x.queue == two[1].sycl_queue for x in values["nodes"]):
            raise RuntimeError("Native API failed: UR_RESULT_ERROR_DEVICE_LOST")

    with observed(submit):
        yield two


@pytest.mark.usefixtures("tests_options")
@pytest.mark.parametrize(
    "work", [lambda x: x.gather(), lambda x: x.sum(), lambda x: x.asnumpy(), lambda x: x.wait()]
)
def test_a_vanished_device_is_named_with_the_remaining_ones(
    work: Callable[[Any], Any], lost: list[Any]
) -> None:
    x = dp.distribute(values((200_000,)), lost) * 2
    with pytest.raises(dp.DeviceError) as it:
        work(x)
    text = str(it.value)
    assert "shard 2 of 2" in text
    assert "400000 bytes" in text
    assert str(lost[1]) in text
    assert "DEVICE_LOST" in text
    assert "Shards 1 are intact" in text
    assert x.shards[0].shape == (100_000,)


def test_too_little_memory_names_shard_device_and_bytes() -> None:
    cpu = dp.Device("cpu")
    if cpu.sycl_device.max_compute_units < 2:
        pytest.skip("a CPU with one compute unit has no sub-devices")
    parts = cpu.create_sub_devices(partition=1)[:2]
    before = dp.memory.set_limit(dp.memory.stats(parts[1]).in_use + 1_000_000, device=parts[1])
    try:
        with pytest.raises(dp.MemoryError, match="shard 2 of 2") as it:
            dp.distribute(np.zeros(1_000_000), parts)
        assert it.value.requested >= 4_000_000
        assert "sub-device 2" in str(it.value)
        assert "dp.distribute(x, devices)" in str(it.value)
    finally:
        dp.memory.set_limit(before, device=parts[1])


def test_wrong_shapes_are_reported_before_different_shardings(two: list[Any]) -> None:
    x, y = dp.distribute(dp.arange(10.0), two), dp.distribute(dp.arange(12.0), two)
    for work in (lambda: x + y, lambda: x + dp.ones(3), lambda: x.__setitem__(slice(None), y)):
        with pytest.raises(dp.ShapeError, match=r"\(10,\)"):
            work()
    np.testing.assert_array_equal(x.asnumpy(), np.arange(10.0))


def test_mistakes_with_shards_raise_with_a_suggested_fix(two: list[Any]) -> None:
    @dp.kernel
    def add(item: Any, x: Any, y: Any) -> None:
        i = item.get_id(0)
        x[i] += y[i]

    x = dp.distribute(np.ones(6), two)
    y = dp.distribute(np.ones(6), two, sizes=[1, 5])
    with pytest.raises(dp.KernelArgumentError, match=r"dp\.sharding\.ShardedRange\(x\)"):
        dp.call_kernel(add, dp.Range(6), x, x)
    with pytest.raises(dp.ShardingError, match=r"y = dp\.distribute\(y, like=x\)"):
        dp.call_kernel(add, dp.sharding.ShardedRange(x), x, y)
    with pytest.raises(dp.ArgumentError, match="map_blocks: function must be callable, not int"):
        x.map_blocks(5)
    event = dp.call_kernel(add, dp.sharding.ShardedRange(x), x, x)
    event.wait()
    assert repr(event) == "<dparray event of 2 shards, done>"
