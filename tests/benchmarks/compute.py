"""The kernel collection's compute kernels against functions of NumPy, SciPy and dpnp.

Reductions are also compared with a plain elementwise kernel, which reads and writes as many
elements and measures the memory bandwidth in the same turns. For each size, matrices and images are
squares of that many elements. There are about as many pairs of points (16 million at most).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import dpnp
import numpy as np

import dparray as dp
from dparray import algorithms
from dparray._kernel.decorators import kernel
from dparray._kernel.launch import call_kernel
from dparray.kernel_api import Range
from tests.benchmarks import _reference as reference
from tests.benchmarks import examples
from tests.benchmarks._registry import Benchmark, Row, Settings, complete, finish, row
from tests.benchmarks._timer import Candidate

_MAX_PAIRS = 1 << 24
_CLUSTERS = 16


def rows(settings: Settings) -> Iterator[Row]:
    """Yield each kernel on inputs of each size."""
    for size in settings.sizes:
        yield from _reductions(settings, size)
        yield from _matrices(settings, isqrt(size))
        yield from _stencils(settings, size)
        yield from _points(settings, size)
        yield from _elements(settings, size)


def _row(
    settings: Settings,
    case: str,
    size: int,
    ours: Callable[[], Any],
    bytes_moved: int = 0,
    **others: Callable[[], Any] | None,
) -> Row:
    candidates = {"dparray": Candidate(complete(settings, ours))}
    for name, function in others.items():
        if function is not None:
            waits = name in ("dpnp", "elementwise")
            candidates[name] = Candidate(_waited(settings, function) if waits else function)
    return row(settings, case, size, candidates, bytes_moved=bytes_moved)


def _waited(settings: Settings, function: Callable[[], Any]) -> Callable[[], None]:
    def call() -> None:
        function()
        finish(settings)

    return call


def _theirs(settings: Settings, host: np.ndarray) -> Any:
    return dpnp.asarray(host, sycl_queue=settings.device.sycl_queue)


@kernel
def _double(item: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = x[i] + x[i]


def _reductions(settings: Settings, size: int) -> Iterator[Row]:
    host = np.random.default_rng(1).random((isqrt(size), isqrt(size)), dtype=np.float32)
    x, theirs = dp.asarray(host, device=settings.device), _theirs(settings, host)
    flat = x.reshape(-1)
    out = dp.empty_like(flat)
    index_space = Range.like(flat)
    for name, op in (("sum", "add"), ("max", "maximum")):
        for axis in (None, 0, 1):
            yield _row(
                settings,
                f"reduce, {op}" + ("" if axis is None else f", axis {axis}"),
                host.size,
                lambda op=op, axis=axis: algorithms.reduce(x, op, axis=axis),  # type: ignore[misc]
                bytes_moved=host.nbytes,
                elementwise=lambda: call_kernel(_double, index_space, flat, out),
                numpy=lambda name=name, axis=axis: getattr(np, name)(host, axis=axis),  # type: ignore[misc]
                dpnp=lambda name=name, axis=axis: getattr(dpnp, name)(theirs, axis=axis),  # type: ignore[misc]
            )


def _matrices(settings: Settings, side: int) -> Iterator[Row]:
    host = np.random.default_rng(2).random((side, side), dtype=np.float32)
    x, theirs = dp.asarray(host, device=settings.device), _theirs(settings, host)
    yield _row(
        settings,
        "transpose, copied",
        host.size,
        lambda: examples.transpose(x),
        bytes_moved=2 * host.nbytes,
        numpy=lambda: np.ascontiguousarray(host.T),
        dpnp=lambda: dpnp.ascontiguousarray(theirs.T),
    )
    if side**3 > 1 << 33:  # takes seconds per call
        return
    yield _row(
        settings,
        "matrix product",
        host.size,
        lambda: examples.matmul(x, x),
        numpy=lambda: host @ host,
        dpnp=lambda: dpnp.matmul(theirs, theirs),
    )


def _stencils(settings: Settings, size: int) -> Iterator[Row]:
    side = isqrt(size)
    host = np.random.default_rng(3).random((1, side, side), dtype=np.float32)
    gaussian = reference.gaussian(2.0)
    laplacian = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], np.float32)
    x = dp.asarray(host, device=settings.device)
    weights = dp.asarray(gaussian, device=settings.device)
    window = dp.asarray(laplacian, device=settings.device)
    try:
        from scipy import ndimage
    except ImportError:
        ndimage = None
    yield _row(
        settings,
        f"separable convolution, {gaussian.size} weights",
        host.size,
        lambda: algorithms.convolve_separable(x, weights),
        bytes_moved=2 * host.nbytes,
        numpy=lambda: reference.blur(host, gaussian),
        scipy=ndimage
        and (
            lambda: ndimage.correlate1d(
                ndimage.correlate1d(host, gaussian, -1, mode="nearest"),
                gaussian,
                -2,
                mode="nearest",
            )
        ),
    )
    yield _row(
        settings,
        "convolution, 3 by 3",
        host.size,
        lambda: algorithms.convolve_dense(x[0], window),
        bytes_moved=2 * host.nbytes,
        scipy=ndimage and (lambda: ndimage.convolve(host[0], laplacian, mode="nearest")),
    )
    signal, theirs = x.reshape(-1), _theirs(settings, host.ravel())
    their_weights = _theirs(settings, gaussian)
    yield _row(
        settings,
        f"convolution of a signal, {gaussian.size} weights",
        host.size,
        lambda: algorithms.convolve_dense(signal, weights, boundary="zero"),
        bytes_moved=2 * host.nbytes,
        numpy=lambda: np.convolve(host.ravel(), gaussian, "same"),
        scipy=ndimage and (lambda: ndimage.convolve1d(host.ravel(), gaussian, mode="constant")),
        dpnp=lambda: dpnp.convolve(theirs, their_weights, "same"),
    )
    edge = max(1, round(size ** (1 / 3)))
    volume = np.random.default_rng(3).random((edge, edge, edge), dtype=np.float32)
    cube = np.full((3, 3, 3), 1 / 27, np.float32)
    x_volume, x_cube = (dp.asarray(each, device=settings.device) for each in (volume, cube))
    yield _row(
        settings,
        "convolution, 3 by 3 by 3",
        volume.size,
        lambda: algorithms.convolve_dense(x_volume, x_cube),
        bytes_moved=2 * volume.nbytes,
        scipy=ndimage and (lambda: ndimage.convolve(volume, cube, mode="nearest")),
    )


def _points(settings: Settings, size: int) -> Iterator[Row]:
    random = np.random.default_rng(4)
    host = random.random((3, size), dtype=np.float32)
    colors = random.random((_CLUSTERS, 3), dtype=np.float32)
    points = dp.asarray(host, device=settings.device).T
    centroids = dp.asarray(colors, device=settings.device)
    labels = algorithms.kmeans_assign(points, centroids)
    found = dp.asnumpy(labels)
    yield _row(
        settings,
        f"k-means, assign, {_CLUSTERS} clusters",
        size,
        lambda: algorithms.kmeans_assign(points, centroids),
        numpy=lambda: reference.nearest(host, colors),
    )
    yield _row(
        settings,
        f"k-means, update, {_CLUSTERS} clusters",
        size,
        lambda: algorithms.kmeans_update(points, labels, centroids),
        numpy=lambda: [np.bincount(found, plane, _CLUSTERS) for plane in (*host, None)],
    )
    count = isqrt(min(size, _MAX_PAIRS))
    few = np.ascontiguousarray(host[:, :count].T)
    some, mass = (
        dp.asarray(few, device=settings.device),
        dp.asarray(np.ones(count, "float32"), device=settings.device),
    )
    try:
        from scipy.spatial.distance import cdist
    except ImportError:
        cdist = None
    yield _row(
        settings,
        "distances of all pairs",
        count * count,
        lambda: algorithms.pairwise_distance(some, some),
        numpy=lambda: np.sqrt(np.square(few[:, None] - few).sum(-1)),
        scipy=cdist and (lambda: cdist(few, few)),
    )
    yield _row(
        settings,
        "n-body, all pairs",
        count * count,
        lambda: examples.nbody_acceleration(some, mass, softening=0.1),
        numpy=lambda: _attraction(few),
    )


def _attraction(position: np.ndarray) -> np.ndarray:
    step = position - position[:, None]
    square = np.square(step).sum(-1) + np.float32(0.01)
    return (step / (square * np.sqrt(square))[..., None]).sum(1)


def _elements(settings: Settings, size: int) -> Iterator[Row]:
    random = np.random.default_rng(6)
    price, strike, years = (random.uniform(0.5, 2, size).astype(np.float32) for _ in range(3))
    arrays = [dp.asarray(a, device=settings.device) for a in (price, strike, years)]
    try:
        from scipy.special import ndtr
    except ImportError:
        ndtr = None
    yield _row(
        settings,
        "Black-Scholes",
        size,
        lambda: examples.black_scholes(*arrays, rate=0.03, volatility=0.25)[1],
        bytes_moved=5 * price.nbytes,
        scipy=ndtr and (lambda: _options(price, strike, years, ndtr)),
    )
    yield _row(
        settings,
        "map, x * x + y",
        size,
        lambda: _square_and_add(*arrays[:2]),
        bytes_moved=3 * price.nbytes,
        numpy=lambda: price * price + strike,
    )
    side = isqrt(size)
    yield _row(
        settings,
        "Mandelbrot, 100 iterations",
        side * side,
        lambda: examples.mandelbrot((side, side), step=2.5 / side, device=settings.device),
        numpy=lambda: _mandelbrot(side, 100),
    )


@dp.elementwise
def _square_and_add(a: Any, b: Any) -> Any:
    return a * a + b


def _options(price: np.ndarray, strike: np.ndarray, years: np.ndarray, ndtr: Any) -> Any:
    rate, volatility = np.float32(0.03), np.float32(0.25)
    spread = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + volatility * volatility / 2) * years) / spread
    n1, n2 = ndtr(d1), ndtr(d1 - spread)
    discounted = strike * np.exp(-rate * years)
    return price * n1 - discounted * n2, discounted * (1 - n2) - price * (1 - n1)


def _mandelbrot(side: int, limit: int) -> np.ndarray:
    step = np.float32(2.5 / side)
    axis = np.arange(side, dtype=np.float32)
    c = (np.float32(-2) + axis * step) + 1j * (np.float32(1.25) - axis[:, None] * step)
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int32)
    near = np.ones(c.shape, bool)
    for _ in range(limit):
        count += near
        z[near] = z[near] * z[near] + c[near]
        near &= z.real * z.real + z.imag * z.imag <= 4
    return count


BENCHMARK = Benchmark("compute", "products, stencils, k-means, distances, n-body, options", rows)
