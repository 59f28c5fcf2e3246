"""CuPy, which computes what has no kernel: the adapter, and the policy where it is not installed.

CuPy is a stand-in here (``tests/cuda/cupy_standin.py``), whose values are NumPy's.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import dparray as dp
from dparray import _driver
from dparray._array.ndarray import materialize
from dparray._runtime.fallback import FallbackWarning
from dparray.memory.libraries import library_of
from tests.cuda import cupy_standin
from tests.cuda.standin import StandIn

CUPY = cupy_standin.install()
called = cupy_standin.called
RNG = np.random.default_rng(7)
MATRIX = RNG.random((6, 6)) + 6 * np.eye(6)
STACK = RNG.random((2, 3, 5, 5)) + 5 * np.eye(5)
VECTOR = RNG.permutation(np.arange(40.0))
COUNTS = RNG.integers(0, 9, 50)


@pytest.fixture
def gpu(driver: StandIn) -> dp.Device:
    """Return a queue of the first GPU of the stand-in."""
    return dp.Device("cuda:0")


@pytest.fixture
def without_cupy(driver: StandIn) -> Iterator[dp.Device]:
    """Return a queue of a GPU for which CuPy is not installed."""
    device = dp.Device("cuda:1").new_queue()
    _driver.declared[device.queue] = dataclasses.replace(device.traits, library="")
    _driver.traits_of.cache_clear()
    yield device
    del _driver.declared[device.queue]
    _driver.traits_of.cache_clear()


def same(found: Any, expected: Any) -> None:
    """Check arrays, or tuples of arrays."""
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        return
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.asnumpy(), expected, 1e-6, 1e-9)


_FORWARD = ("fft", "ifft", "rfft", "fft2", "ifft2", "fftn", "ifftn", "rfft2", "rfftn", "ihfft")
Function = Callable[[Any, Callable[[Any], Any]], Any]
#: Calls with NumPy's values, by name; the second parameter makes an array of values.
#: Calls for which there are kernels, or nothing to compute.
BY_KERNELS = ("advanced index", "bincount of nothing", "histogram", "histogram_bin_edges")
SAME: dict[str, Function] = {
    "matmul": lambda xp, of: of(MATRIX) @ of(MATRIX).T,
    "matmul of integers": lambda xp, of: of(COUNTS.reshape(5, 10)) @ of(COUNTS.reshape(10, 5)),
    "matmul of float16": lambda xp, of: of(MATRIX.astype("f2")) @ of(MATRIX.astype("f2")),
    "matmul of a broadcast array": lambda xp, of: (
        of(MATRIX) @ xp.broadcast_to(of(VECTOR[0]), (6, 2))
    ),
    "einsum": lambda xp, of: xp.einsum("abij,abjk->abik", of(STACK), of(STACK)),
    "einsum of three": lambda xp, of: xp.einsum("ij,jk,kl->il", *[of(MATRIX)] * 3),
    **{
        f"fft.{name}": lambda xp, of, name=name: getattr(xp.fft, name)(of(MATRIX))
        for name in _FORWARD
    },
    **{
        f"fft.{name}": lambda xp, of, name=name: getattr(xp.fft, name)(of(MATRIX + 1j))
        for name in ("irfft", "irfft2", "irfftn", "hfft")
    },
    "fft of integers": lambda xp, of: xp.fft.fft(of(COUNTS)),
    "fft with lengths": lambda xp, of: xp.fft.rfftn(of(MATRIX), s=(4, -1), axes=(0, 1)),
    **{
        name: lambda xp, of, name=name: getattr(xp.linalg, name)(of(MATRIX))
        for name in ("det", "slogdet", "inv", "qr", "pinv", "matrix_rank")
    },
    "inv of integers": lambda xp, of: xp.linalg.inv(of(np.array([[2, 1], [1, 1]]))),
    "inv of a stack": lambda xp, of: xp.linalg.inv(of(STACK)),
    "solve": lambda xp, of: xp.linalg.solve(of(MATRIX), of(VECTOR[:6])),
    "lstsq": lambda xp, of: xp.linalg.lstsq(of(MATRIX[:, :3]), of(VECTOR[:6]))[0],
    "cholesky": lambda xp, of: xp.linalg.cholesky(of(MATRIX @ MATRIX.T)),
    "upper cholesky": lambda xp, of: xp.linalg.cholesky(of(MATRIX @ MATRIX.T), upper=True),
    "svd": lambda xp, of: xp.linalg.svd(of(MATRIX), compute_uv=False),
    "eigvalsh": lambda xp, of: xp.linalg.eigvalsh(of(MATRIX + MATRIX.T)),
    "eigh": lambda xp, of: xp.linalg.eigh(of(MATRIX + MATRIX.T))[0],
    "eigvals": lambda xp, of: xp.sort(xp.linalg.eigvals(of(MATRIX + 0j)).real),
    "sort of complex": lambda xp, of: xp.sort(of(VECTOR[::-1] + 1j)),
    "sort of nothing": lambda xp, of: xp.sort(of(VECTOR[:0])),
    "sort": lambda xp, of: xp.sort(of(VECTOR)),
    "argsort": lambda xp, of: xp.argsort(of(VECTOR), stable=True),
    "lexsort": lambda xp, of: xp.lexsort((of(VECTOR), of(COUNTS[:40]))),
    "searchsorted": lambda xp, of: xp.searchsorted(of(np.sort(VECTOR)), of(VECTOR / 2)),
    "take_along_axis": lambda xp, of: xp.take_along_axis(of(VECTOR), of(COUNTS), 0),
    "nonzero": lambda xp, of: xp.nonzero(of(COUNTS)),
    "isin": lambda xp, of: xp.isin(of(VECTOR), of(COUNTS)),
    "unique_values": lambda xp, of: (xp.unique if xp is np else xp.unique_values)(of(COUNTS)),
    "unique_counts": lambda xp, of: xp.unique_counts(of(COUNTS)),
    "unique_inverse": lambda xp, of: xp.unique_inverse(of(COUNTS.reshape(5, 10))),
    "unique_all": lambda xp, of: xp.unique_all(of(COUNTS)),
    "cumulative_sum": lambda xp, of: xp.cumulative_sum(of(MATRIX), axis=1, include_initial=True),
    "cumulative_prod": lambda xp, of: xp.cumulative_prod(of(MATRIX + 1j), axis=0),
    "bincount": lambda xp, of: xp.bincount(of(COUNTS), minlength=12),
    "bincount of nothing": lambda xp, of: xp.bincount(of(COUNTS[:0]), minlength=3),
    "bincount with weights": lambda xp, of: xp.bincount(of(COUNTS[:40]), of(VECTOR)),
    "histogram": lambda xp, of: xp.histogram(of(VECTOR), 5),
    "histogram with weights": lambda xp, of: xp.histogram(of(VECTOR), 5, weights=of(VECTOR)),
    "histogram with edges": lambda xp, of: xp.histogram(of(VECTOR), of(np.array([0.0, 3.0, 9.0]))),
    "histogram of float16": lambda xp, of: xp.histogram(of(VECTOR.astype("f2")), 4),
    "histogram_bin_edges": lambda xp, of: xp.histogram_bin_edges(of(VECTOR), 7),
    "histogram_bin_edges of float16": lambda xp, of: xp.histogram_bin_edges(
        of(VECTOR.astype("f2")), 4
    ),
    "digitize": lambda xp, of: xp.digitize(of(VECTOR), of(np.array([3.0, 20.0]))),
    "convolve": lambda xp, of: xp.convolve(of(VECTOR), of(MATRIX[0]), "same"),
    "correlate": lambda xp, of: xp.correlate(of(VECTOR), of(MATRIX[0])),
    "interp": lambda xp, of: xp.interp(of(VECTOR / 3), of(np.arange(9.0)), of(COUNTS[:9])),
    "i0": lambda xp, of: xp.i0(of(MATRIX)),
    "gcd": lambda xp, of: xp.gcd(of(COUNTS), of(COUNTS[::-1].copy())),
    "lcm": lambda xp, of: xp.lcm(of(COUNTS), of(COUNTS[::-1].copy())),
    "ravel_multi_index": lambda xp, of: xp.ravel_multi_index((of(COUNTS), of(COUNTS)), (9, 9)),
    "complex functions": lambda xp, of: xp.sin(of(MATRIX + 1j)) + xp.log(of(MATRIX - 2j)),
    "advanced index": lambda xp, of: of(MATRIX + 1j)[of(COUNTS % 6), of(COUNTS % 3)],
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.filterwarnings("ignore")
def test_values_are_numpys(gpu: dp.Device, name: str) -> None:
    called.clear()
    found = SAME[name](dp, lambda values: dp.asarray(values, device=gpu))
    same(found, SAME[name](np, np.asarray))
    assert bool(called) != (name in BY_KERNELS)


def test_arrays_of_cupy_are_operands(gpu: dp.Device, stream: Any) -> None:
    x, theirs = dp.asarray(MATRIX, device=gpu), CUPY.asarray(MATRIX + 1)
    for found, expected in (
        (x + theirs, 2 * MATRIX + 1),
        (x @ theirs, MATRIX @ (MATRIX + 1)),
        (x < theirs, np.ones((6, 6), bool)),
        (dp.linalg.solve(x, theirs), np.linalg.solve(MATRIX, MATRIX + 1)),
        (x[CUPY.asarray(MATRIX[0] > 1)], MATRIX[MATRIX[0] > 1]),
    ):
        assert isinstance(found, dp.ndarray)
        same(found, expected)
    x[1:] = theirs[1:]
    same(x[1:], MATRIX[1:] + 1)
    # The operator of the left operand decides: CuPy's reads our memory.
    found = theirs + x
    assert isinstance(found, CUPY.ndarray)
    np.testing.assert_allclose(found.get()[1:], 2 * MATRIX[1:] + 2)


def test_a_scan_that_cupy_lacks(gpu: dp.Device) -> None:
    x = dp.asarray(MATRIX.astype("f2"), device=gpu)
    found = dp.logaddexp.accumulate(x, axis=1)
    expected = np.logaddexp.accumulate(MATRIX.astype("f2"), axis=1)
    np.testing.assert_allclose(found.asnumpy(), expected, 2e-3)


def test_lu_of_a_stack(gpu: dp.Device) -> None:
    x = dp.asarray(STACK, device=gpu)
    same(dp.linalg.lu(x), scipy.linalg.lu(STACK))
    same(dp.linalg.lu(x, permute_l=True), scipy.linalg.lu(STACK, permute_l=True))
    same(dp.linalg.lu(x, p_indices=True), scipy.linalg.lu(STACK, p_indices=True))
    factors = dp.linalg.lu_factor(x)
    right = STACK[..., :2]
    same(dp.linalg.lu_solve(factors, dp.asarray(right, device=gpu)), np.linalg.solve(STACK, right))
    one = dp.linalg.lu_factor(dp.asarray(MATRIX, device=gpu))
    same(
        dp.linalg.lu_solve(one, dp.asarray(VECTOR[:6], device=gpu)),
        np.linalg.solve(MATRIX, VECTOR[:6]),
    )
    with pytest.raises(ValueError, match="infs or NaNs"):
        dp.linalg.lu(x / 0)


def test_cupys_ways_are_not_ours(gpu: dp.Device) -> None:
    numbers = np.asarray([1, -np.nan, 3, np.nan, -np.inf, -0.0, 0], "f4")
    x = dp.asarray(numbers, device=gpu)
    np.testing.assert_array_equal(dp.sort(x).asnumpy(), np.sort(numbers))
    np.testing.assert_array_equal(dp.argsort(x).asnumpy(), np.argsort(numbers, kind="stable"))
    factor = dp.linalg.cho_factor(dp.asarray([[4.0, 2.0], [2.0, 5.0]], device=gpu))
    for right in ([6.0, 7.0], [[], []]):
        wanted = np.linalg.solve([[4.0, 2.0], [2.0, 5.0]], right)
        same(dp.linalg.cho_solve(factor, dp.asarray(right, device=gpu)), wanted)
    weights = np.asarray([1, 2, 4], "f4")
    found, _ = dp.histogram(x[:3], 4, (0, 4), weights=dp.asarray(weights, device=gpu))
    assert found.dtype == np.histogram(numbers[:3], 4, (0, 4), weights=weights)[0].dtype
    zeros = np.asarray([0, complex(-0.0, 0), 2j], "c8")
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(dp.log2(dp.asarray(zeros, device=gpu)).asnumpy(), np.log2(zeros))
    for value in (np.nan, 0.5):
        found = dp.interp(dp.asarray([value], device=gpu), dp.asarray([1.5], device=gpu), x[2:3])
        np.testing.assert_array_equal(found.asnumpy(), [3.0])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["f2", "f4", "i4", "?", "c8"])
def test_a_sort_is_one_kernel_and_one_call_in_the_memory_of_the_result(
    dtype: str, axis: int, gpu: Any
) -> None:
    values = np.random.default_rng(1).integers(-9, 9, (30, 40)).astype(dtype)
    if dtype[0] == "f":
        values[::4, 1::3], values[1::5, ::7] = np.nan, -np.float16(np.nan)
    x = dp.asarray(values, device=gpu)
    cupy_standin.called.clear()
    found = dp.sort(x, axis=axis)
    assert cupy_standin.called in ([], ["sort"])
    np.testing.assert_array_equal(found.asnumpy(), np.sort(values, axis))
    np.testing.assert_array_equal(x.asnumpy(), values)
    downward = np.flip(np.sort(values, axis), axis)
    found = dp.sort(x, axis=axis, descending=True)
    np.testing.assert_array_equal(found.asnumpy(), downward)


def test_no_copy_is_made_of_operands_and_results(gpu: dp.Device) -> None:
    x = dp.asarray(MATRIX, device=gpu)
    library = library_of(gpu.queue)
    assert library.name == "CuPy"
    shown = library.array(materialize(x[1:, ::2]))
    assert shown.data.ptr == x.block.pointer + 6 * 8
    assert shown.strides == (48, 16)
    back = library.layout(shown)
    assert back.block is x.block
    assert back.offset == 48


def test_results_are_in_the_pools_memory(gpu: dp.Device) -> None:
    x = dp.asarray(MATRIX, device=gpu, usm_type="shared")
    found = dp.linalg.inv(x)
    assert found.block.segment is not None
    assert found.usm_type == "shared"
    assert CUPY.cuda.get_current_stream().ptr == 0
    assert CUPY.cuda.get_allocator() is cupy_standin._allocate


def test_work_before_and_after_is_ordered(gpu: dp.Device, driver: StandIn) -> None:
    driver.configure(seed=3, delay=3000)
    x = dp.ones((40, 40), device=gpu)
    expected = np.ones((40, 40))
    for _ in range(5):
        x = (x + 1) @ (x / 40)
        x = dp.fft.fft(x).real / 40
        expected = (expected + 1) @ (expected / 40)
        expected = np.fft.fft(expected).real / 40
    np.testing.assert_allclose(x.asnumpy(), expected)


def test_transforms_on_two_queues(gpu: dp.Device) -> None:
    other = gpu.new_queue()
    for device in (gpu, other, gpu):
        same(dp.fft.fft(dp.asarray(VECTOR, device=device)), np.fft.fft(VECTOR))


def test_the_real_cupy_makes_arrays_over_our_memory() -> None:
    program = """
from tests.cuda import standin; standin.install()
import dparray as dp
from dparray._array.ndarray import materialize
from dparray.memory.libraries import library_of

x = dp.ones((6, 6), device="cuda:0")
library = library_of(x.queue)
found = library.array(materialize(x[1:, ::2]))
assert type(found).__module__ == "cupy" and library.is_array(found)
assert (found.shape, found.strides, found.dtype) == ((5, 3), (48, 16), "float64")
back = library.layout(found.T[1:])
assert (back.block, back.offset, back.shape) == (x.block, 48 + 16, (2, 5))
assert library.array(materialize(x[:0])).shape == (0, 6)
assert all(hasattr(library, name) for name in ("matmul", "einsum", "unique_all", "isin", "i0"))
print(library.fft.fft, library.linalg.solve, library.errors().memory)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "OutOfMemoryError" in done.stdout, done.stderr


def test_singular_matrices_raise(gpu: dp.Device) -> None:
    with pytest.raises(np.linalg.LinAlgError, match="inv: the matrix is singular"):
        dp.linalg.inv(dp.zeros((3, 3), device=gpu))
    with pytest.raises(np.linalg.LinAlgError, match="cholesky: the matrix is not positive"):
        dp.linalg.cholesky(-dp.eye(3, device=gpu))
    with pytest.raises(dp.ShapeError, match="solve"):
        dp.linalg.solve(dp.eye(3, device=gpu), dp.ones((2, 2), device=gpu))


def test_elementwise_operations_and_reductions_do_not_use_it(gpu: dp.Device) -> None:
    called.clear()
    x = dp.asarray(VECTOR, device=gpu)
    y = dp.where(x > 3, dp.exp(-x) * 2, x**2)
    x[3:] = y[:-3]
    assert y.sum() + y.astype("int32").max() + y.std() > 0
    y.asnumpy()
    assert called == []


@pytest.mark.parametrize("name", SAME)
def test_without_cupy_numpy_computes_on_the_host(without_cupy: dp.Device, name: str) -> None:
    called.clear()
    with dp.config.override(fallback="allow"):
        found = SAME[name](dp, lambda values: dp.asarray(values, device=without_cupy))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same(found, SAME[name](np, np.asarray))
    assert called == []


def test_without_cupy_the_policy_decides(without_cupy: dp.Device) -> None:
    x = dp.asarray(MATRIX, device=without_cupy)
    with pytest.warns(FallbackWarning, match=r'inv: .*pip install "cuda-bindings'):
        same(dp.linalg.inv(x), np.linalg.inv(MATRIX))
    with (
        dp.config.override(fallback="error"),
        pytest.raises(dp.FallbackError, match=r'pip install "cuda-bindings'),
    ):
        dp.linalg.inv(x)
    with dp.config.override(fallback="error"):
        assert float((x * 2).sum()) == pytest.approx(MATRIX.sum() * 2)
