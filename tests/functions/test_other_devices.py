"""The CPU treated as devices that are not here.

One has memory that the host cannot read, the other has neither half nor double precision.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.memory import pinned
from tests.support import OPS, counted, leave_out_radix_sort

RNG = np.random.default_rng(0)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch, pretend: Any) -> Iterator[None]:
    """The host cannot access device memory: copies use the queue, and dpnp computes."""
    pretend(shares_memory=False)
    with monkeypatch.context() as patch:
        leave_out_radix_sort(patch.setattr)
        yield


@pytest.fixture
def single(pretend: Any) -> None:
    """The device has neither fp16 nor fp64, and no kernel that uses double precision runs."""
    pretend(lacks=["fp16", "fp64"])


def close(actual: Any, expected: Any, tolerance: float = 1e-8) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(actual, expected, strict=True):
            close(one, other, tolerance)
        return
    assert isinstance(actual, dp.ndarray)
    values = actual.asnumpy()
    assert values.shape == np.shape(expected)
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)


# -- memory that the host cannot read -------------------------------------------------------------

REAL = RNG.standard_normal((3, 4, 4))
COMPLEX = REAL + 1j * RNG.standard_normal((3, 4, 4))
POSITIVE = REAL @ REAL.transpose(0, 2, 1) + np.eye(4)

TRANSFORMS = [
    *("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn"),
    *("fft2", "ifft2", "rfft2", "irfft2", "fftshift", "ifftshift"),
]


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_memory_out_of_reach(name: str, queue: Any) -> None:
    values = REAL if name in ("rfft", "ihfft", "rfftn", "rfft2") else COMPLEX
    for given in (values, values[0], values[:, ::-1, ::2]):
        close(
            getattr(dp.fft, name)(dp.asarray(given, sycl_queue=queue)), getattr(np.fft, name)(given)
        )


def multi_dot(factors: Any) -> Any:
    """Compute the product of three factors."""
    first, second, third = factors
    return first @ second @ third


def solved(a: Any, b: Any) -> Any:
    """Solve a @ x = b by LU factors."""
    return dp.linalg.lu_solve(dp.linalg.lu_factor(a), b)


def solved_by_cholesky(a: Any, b: Any) -> Any:
    """Solve a @ x = b for a positive definite ``a``."""
    return dp.linalg.cho_solve(dp.linalg.cho_factor(a), b)


def exponential(a: np.ndarray) -> np.ndarray:
    """Compute the exponential of symmetric matrices from their eigenvalues."""
    values, vectors = np.linalg.eigh(a)
    result: np.ndarray = (vectors * np.exp(values)[..., None, :]) @ vectors.mT
    return result


LINEAR_ALGEBRA: dict[str, Callable[[Any, Any, Any], Any]] = {
    "cholesky": lambda xp, a, b: xp.linalg.cholesky(a),
    "cond": lambda xp, a, b: xp.linalg.cond(a),
    "cross": lambda xp, a, b: xp.linalg.cross(a[..., :3], b[..., :3]),
    "det": lambda xp, a, b: xp.linalg.det(a),
    "diagonal": lambda xp, a, b: xp.linalg.diagonal(a, offset=1),
    "eig": lambda xp, a, b: xp.sort(xp.real(xp.linalg.eig(a)[0])),
    "eigh": lambda xp, a, b: xp.linalg.eigh(a)[0],
    "eigvals": lambda xp, a, b: xp.sort(xp.real(xp.linalg.eigvals(a))),
    "eigvalsh": lambda xp, a, b: xp.linalg.eigvalsh(a),
    "inv": lambda xp, a, b: xp.linalg.inv(a),
    "lstsq": lambda xp, a, b: xp.linalg.lstsq(a[0], b[0], rcond=None)[0],
    "matmul": lambda xp, a, b: xp.linalg.matmul(a, b),
    "matrix_norm": lambda xp, a, b: xp.linalg.matrix_norm(b, ord="nuc"),
    "matrix_power": lambda xp, a, b: xp.linalg.matrix_power(a, -2),
    "matrix_rank": lambda xp, a, b: xp.linalg.matrix_rank(b),
    "matrix_transpose": lambda xp, a, b: xp.linalg.matrix_transpose(b),
    "multi_dot": lambda xp, a, b: xp.linalg.multi_dot([a[0], b[0], a[1]]),
    "norm": lambda xp, a, b: xp.linalg.norm(b, axis=1),
    "outer": lambda xp, a, b: xp.linalg.outer(a[0, 0], b[0, 0]),
    "pinv": lambda xp, a, b: xp.linalg.pinv(b),
    # NumPy does not have these functions.
    "cho_factor": lambda xp, a, b: solved_by_cholesky(a, b) if xp is dp else np.linalg.solve(a, b),
    "cho_solve": lambda xp, a, b: solved_by_cholesky(a, b) if xp is dp else np.linalg.solve(a, b),
    "expm": lambda xp, a, b: xp.linalg.expm(a / 8) if xp is dp else exponential(a / 8),
    "solve_triangular": lambda xp, a, b: (
        dp.linalg.solve_triangular(a, b) if xp is dp else np.linalg.solve(np.triu(a), b)
    ),
    "lu": lambda xp, a, b: multi_dot(xp.linalg.lu(a)) if xp is dp else a,
    "lu_factor": lambda xp, a, b: solved(a, b) if xp is dp else np.linalg.solve(a, b),
    "lu_solve": lambda xp, a, b: solved(a, b) if xp is dp else np.linalg.solve(a, b),
    "qr": lambda xp, a, b: xp.matmul(*xp.linalg.qr(b)),
    "slogdet": lambda xp, a, b: tuple(xp.linalg.slogdet(a)),
    "solve": lambda xp, a, b: xp.linalg.solve(a, b),
    "svd": lambda xp, a, b: xp.linalg.svd(b)[1],
    "svdvals": lambda xp, a, b: xp.linalg.svdvals(b),
    "tensordot": lambda xp, a, b: xp.linalg.tensordot(a, b[0], axes=1),
    "tensorinv": lambda xp, a, b: xp.linalg.tensorinv(a[0], ind=1),
    "tensorsolve": lambda xp, a, b: xp.linalg.tensorsolve(a[0], b[0, 0]),
    "trace": lambda xp, a, b: xp.linalg.trace(a),
    "vecdot": lambda xp, a, b: xp.linalg.vecdot(a, b),
    "vector_norm": lambda xp, a, b: xp.linalg.vector_norm(b, axis=0, ord=3),
}


def test_every_function_of_linalg_is_tried() -> None:
    results = {name for name in dp.linalg.__all__ if isinstance(getattr(dp.linalg, name), type)}
    assert LINEAR_ALGEBRA.keys() == set(dp.linalg.__all__) - results


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("name", LINEAR_ALGEBRA)
def test_linear_algebra_in_memory_out_of_reach(name: str, queue: Any) -> None:
    call = LINEAR_ALGEBRA[name]
    arrays = [dp.asarray(values, sycl_queue=queue) for values in (POSITIVE, REAL)]
    close(call(dp, *arrays), call(np, POSITIVE, REAL), 1e-6)


@pytest.mark.usefixtures("far")
def test_host_reads_are_copied_through_the_queue(queue: Any) -> None:
    values = np.arange(12.0).reshape(3, 4)
    x = dp.asarray(values, sycl_queue=queue)
    y = x[:, ::-2] * 2
    y[1] = x[0, :2]
    expected = values[:, ::-2] * 2
    expected[1] = values[0, :2]
    close(y, expected)
    close(x.T[1:], values.T[1:])
    assert float(dp.sum(x)) == values.sum()
    assert "11." in str(x)
    assert x[x > 5].tolist() == values[values > 5].tolist()
    close(dp.sort(-x, axis=0), np.sort(-values, axis=0))
    with pytest.raises(BufferError, match="the host cannot read device memory"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 1)])
@pytest.mark.parametrize("chosen", [True, False])
def test_masks_without_dimensions_in_memory_out_of_reach(
    shape: tuple[int, ...], chosen: bool
) -> None:
    values = np.arange(float(np.prod(shape))).reshape(shape)
    x = dp.asarray(values)
    for mask in (chosen, dp.asarray(chosen)):
        close(x[mask], values[chosen])
        close(x[..., mask], values[..., chosen])
    x[dp.asarray(chosen)] = 7.0
    values[chosen] = 7.0
    close(x, values)


@pytest.mark.usefixtures("far")
def test_a_mask_of_size_zero_selects_nothing() -> None:
    assert dp.zeros((0, 1))[dp.zeros((0, 0), dtype="bool")].shape == (0,)
    with pytest.raises(IndexError, match="does not fit"):
        dp.zeros((2, 3))[dp.zeros((2, 2), dtype="bool")]


# -- no double precision --------------------------------------------------------------------------


@pytest.mark.usefixtures("single")
def test_default_dtypes_without_double_precision() -> None:
    info = dp.__array_namespace_info__()
    assert info.default_dtypes() == {
        "real floating": np.dtype("float32"),
        "complex floating": np.dtype("complex64"),
        "integral": np.dtype("int64"),
        "indexing": np.dtype("int64"),
    }
    assert not {"float64", "complex128"} & info.dtypes().keys()
    for made in (dp.ones(3), dp.zeros(3), dp.asarray(1.5), dp.arange(1.5), dp.linspace(0, 1, 3)):
        assert made.dtype == "float32"
    assert dp.eye(3).dtype == dp.full(3, 1.5).dtype == dp.fft.fftfreq(4).dtype == "float32"
    assert dp.asarray(1j).dtype == dp.asarray([1.0, 2j]).dtype == "complex64"
    assert dp.random.default_rng(0).random(3).dtype == "float32"
    for window in (dp.bartlett, dp.blackman, dp.hamming, dp.hanning):
        assert window(8).dtype == "float32"
    assert dp.kaiser(8, 1.0).dtype == dp.fromfunction(lambda i, j: i + j, (3, 3)).dtype == "float32"
    assert dp.indices((2, 3), None).dtype == "float32"
    assert [each.dtype for each in dp.indices((2, 3), None, sparse=True)] == ["int64", "int64"]


@pytest.mark.usefixtures("single")
def test_doubles_of_numpy_are_assigned_without_double_precision() -> None:
    x, i, c = dp.zeros(4), dp.zeros(4, dtype="int32"), dp.zeros(4, dtype="complex64")
    x[1:3] = np.array([0.1, 0.2])
    x[dp.asarray([0, 3])] = np.array([0.3, 0.4])
    np.testing.assert_array_equal(x.asnumpy(), np.array([0.3, 0.1, 0.2, 0.4], "float32"))
    i[...] = np.array([16777217.0, 1.5, -2.5, 3])  # float32 would not hold the first one
    assert i.tolist() == [16777217, 1, -2, 3]
    c[:] = np.array([1j, 2, 3j, 4])
    assert c.tolist() == [1j, 2, 3j, 4]
    with pytest.raises(dp.UnsupportedDeviceError, match="complex128"):
        x[:] = np.array([1j, 2, 3, 4])


ASKED: dict[str, Callable[[Any, Any], Any]] = {
    "empty": lambda x, dtype: dp.empty(3, dtype=dtype),
    "zeros": lambda x, dtype: dp.zeros(3, dtype=dtype),
    "ones": lambda x, dtype: dp.ones(3, dtype=dtype),
    "full": lambda x, dtype: dp.full(3, 1, dtype=dtype),
    "ones_like": lambda x, dtype: dp.ones_like(x, dtype=dtype),
    "eye": lambda x, dtype: dp.eye(3, dtype=dtype),
    "arange": lambda x, dtype: dp.arange(3, dtype=dtype),
    "linspace": lambda x, dtype: dp.linspace(0, 1, 3, dtype=dtype),
    "asarray": lambda x, dtype: dp.asarray([1, 2], dtype=dtype),
    "asarray of NumPy's": lambda x, dtype: dp.asarray(np.ones(3, dtype)),
    "astype": lambda x, dtype: x.astype(dtype),
    "astype function": lambda x, dtype: dp.astype(x, dtype),
    "sum": lambda x, dtype: dp.sum(x, dtype=dtype),
    "prod": lambda x, dtype: dp.prod(x, dtype=dtype),
    "cumulative_sum": lambda x, dtype: dp.cumulative_sum(x, dtype=dtype),
    "cumulative_prod": lambda x, dtype: dp.cumulative_prod(x, dtype=dtype),
    "mean": lambda x, dtype: dp.mean(x, dtype=dtype),
}


@pytest.mark.usefixtures("single")
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(
    ("dtype", "aspect"), [("float64", "fp64"), ("complex128", "fp64"), ("float16", "fp16")]
)
def test_a_dtype_that_is_asked_for_and_not_there_is_an_error(
    name: str, dtype: str, aspect: str
) -> None:
    x = dp.ones(3, dtype="complex64" if dtype.startswith("complex") else "float32")
    with pytest.raises(dp.UnsupportedDeviceError, match=f"dtype {dtype} needs the aspect {aspect}"):
        ASKED[name](x, dtype)


# Not tested here: functions whose dtype dpnp chooses (interp, histogram), since it uses the real
# device.
OF_INTEGERS: dict[str, Callable[[Any], Any]] = {
    **{
        name: partial(lambda op, x: getattr(dp, op.name)(*[x] * op.arity), op)
        for name, op in OPS.items()
        if op.name != "nextafter"
    },
    **{
        name: partial(lambda name, x: getattr(dp, name)(x), name)
        for name in (
            *("mean", "var", "std", "median", "sum", "prod", "max", "average", "nanmean", "nanstd"),
            *("cumulative_sum", "cumsum", "angle", "gradient", "trapezoid", "cov", "ptp"),
        )
    },
    "quantile": lambda x: dp.quantile(x, 0.3),
    "percentile": lambda x: dp.percentile(x, 30),
    "convolve": lambda x: dp.convolve(x, x),
    "matmul": lambda x: x @ x,
    "fft": lambda x: dp.fft.fft(x),
    "rfft": lambda x: dp.fft.rfft(x),
    "inv": lambda x: dp.linalg.inv(dp.eye(3, dtype="int64")),
    "norm": lambda x: dp.linalg.norm(x),
    "x / 3": lambda x: x / 3,
    "x * 0.5": lambda x: x * 0.5,
    "x * 1j": lambda x: x * 1j,
    "where": lambda x: dp.where(x > 1, x, 0.5),
}


@pytest.mark.usefixtures("single")
@pytest.mark.parametrize("name", OF_INTEGERS)
def test_results_of_integers_stay_in_single_precision(name: str, executor: str) -> None:
    result = OF_INTEGERS[name](dp.asarray([1, 2, 3]))
    for part in result if isinstance(result, tuple | list) else (result,):
        assert part.dtype.name not in ("float64", "complex128", "float16")
        dp.eval(part)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8"])
def test_bounds_of_an_index_are_one_launch_and_one_read(far: None, dtype: str) -> None:
    x, values = dp.arange(100), np.arange(100)
    index = np.array([0, 99, 5, 42] * 300).astype(dtype)
    if index.dtype.kind == "i":
        index[::3] -= 100
    on_device = dp.asarray(index)
    dp.synchronize(on_device)
    np.testing.assert_array_equal(x[on_device].asnumpy(), values[index.astype("i8")])
    with counted() as events:
        x[on_device]
    assert events["launch"] == 1, events
    assert events["copy"] <= 1
    for wrong in (100, -101):
        if np.iinfo(dtype).min <= wrong <= np.iinfo(dtype).max:
            index[7] = wrong
            with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
                x[dp.asarray(index)]


@dp.kernel
def add_one(item: Any, x: Any) -> None:
    x[item.get_id(0)] += 1


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("size", [1000, 1025, 1200, 1280, 2001])
def test_no_work_item_beyond_a_range_runs(size: int) -> None:
    x = dp.zeros(4096, dtype="i4")
    dp.call_kernel(add_one, dp.Range(size), x)
    assert x[:size].tolist() == [1] * size
    assert not x[size:].asnumpy().any()


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("size", [1, 1000, pinned.BUFFER, 2 * pinned.BUFFER + 12_345])
def test_host_data_goes_through_pinned_buffers(size: int, queue: Any) -> None:
    """Its source may change as soon as the call returns, and copies are ordered with other work."""
    source = RNG.integers(0, 256, size, dtype=np.uint8)
    expected = source.copy()
    first = dp.asarray(source, sycl_queue=queue)
    source[:] = 7
    second = dp.asarray(source, sycl_queue=queue)
    total = first ^ second
    np.testing.assert_array_equal(first.asnumpy(), expected)
    np.testing.assert_array_equal(total.asnumpy(), expected ^ 7)


@pytest.mark.usefixtures("far")
def test_threads_share_the_pinned_buffers() -> None:
    def round_trip(number: int) -> bool:
        values = np.full(pinned.BUFFER // 8 + 9, number)
        return bool((dp.asarray(values).asnumpy() == number).all())

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(round_trip, range(8)))


@pytest.mark.usefixtures("far")
def test_dpnp_computes_eigenvalues_on_the_host_and_pickles_are_asked_for() -> None:
    x = dp.eye(3)
    with dp.config.override(fallback="error"):
        for function in (dp.linalg.eig, dp.linalg.eigvals):
            with pytest.raises(dp.FallbackError, match=function.__name__):
                function(x)
        assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
