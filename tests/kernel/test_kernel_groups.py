"""Group algorithms: reduce, broadcast and inclusive scan over a work-group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

SHAPES = [
    ((96,), (12,)),
    ((1024,), (512,)),
    ((16, 12), (4, 6)),
    ((64, 64), (32, 16)),
    ((4, 6, 8), (2, 3, 4)),
]
DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
OPERATIONS = {"add": np.add, "min": np.minimum, "max": np.maximum}


@dp.kernel
def use_add(item: dp.NdItem, x: Any, reduced: Any, shared: Any, scanned: Any) -> None:
    i = item.get_global_linear_id()
    group = item.get_group()
    reduced[i] = dp.group_reduce(group, x[i])
    shared[i] = dp.group_broadcast(group, x[i])
    scanned[i] = dp.group_inclusive_scan(group, x[i])


@dp.kernel
def use_min(item: dp.NdItem, x: Any, reduced: Any, shared: Any, scanned: Any) -> None:
    i = item.get_global_linear_id()
    group = item.get_group()
    reduced[i] = dp.group_reduce(group, x[i], "min")
    shared[i] = dp.group_broadcast(group, x[i], 5)
    scanned[i] = dp.group_inclusive_scan(group, x[i], "min")


@dp.kernel
def use_max(item: dp.NdItem, x: Any, reduced: Any, shared: Any, scanned: Any) -> None:
    i = item.get_global_linear_id()
    group = item.get_group()
    reduced[i] = dp.group_reduce(group, x[i], "max")
    shared[i] = dp.group_broadcast(group, x[i], 7)
    scanned[i] = dp.group_inclusive_scan(group, x[i], "max")


KERNELS = {"add": (use_add, 0), "min": (use_min, 5), "max": (use_max, 7)}


def by_group(x: np.ndarray, shape: tuple[int, ...], local: tuple[int, ...]) -> np.ndarray:
    """Rows of the work-items of each group, in row-major order."""
    ndim = len(shape)
    parts = [part for n, m in zip(shape, local, strict=True) for part in (n // m, m)]
    axes = [*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)]
    return x.reshape(parts).transpose(axes).reshape(-1, int(np.prod(local)))


@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "local"), SHAPES)
def test_group_algorithms_give_what_numpy_gives(
    operation: str, dtype: str, shape: tuple[int, ...], local: tuple[int, ...]
) -> None:
    kernel, chosen = KERNELS[operation]
    combine = OPERATIONS[operation]
    x = np.random.default_rng(0).integers(0, 100, int(np.prod(shape))).astype(dtype)
    if x.dtype.kind == "i":
        x -= 50
    results = [dp.zeros(x.size, dtype=dtype) for _ in range(3)]
    dp.call_kernel(kernel, dp.NdRange(shape, local), dp.asarray(x), *results)
    reduced, shared, scanned = (by_group(r.asnumpy(), shape, local) for r in results)
    groups = by_group(x, shape, local)
    expected = combine.reduce(groups, axis=1, dtype=dtype, keepdims=True)
    np.testing.assert_array_equal(reduced, np.broadcast_to(expected, groups.shape))
    np.testing.assert_array_equal(
        shared, np.broadcast_to(groups[:, chosen : chosen + 1], groups.shape)
    )
    np.testing.assert_array_equal(scanned, combine.accumulate(groups, axis=1, dtype=dtype))


def test_group_algorithms_in_device_functions_and_loops() -> None:
    @dp.device_func
    def total(item: Any, value: Any) -> Any:
        return dp.group_reduce(item.get_group(), value)

    @dp.kernel
    def repeat(item: dp.NdItem, x: Any, out: Any) -> None:
        i = item.get_global_id(0)
        value = x[i]
        for _ in range(3):
            value = total(item, value) % 11 + item.get_local_id(0)
        out[i] = value

    x = np.arange(64) % 5
    out = dp.zeros(64, dtype="int64")
    dp.call_kernel(repeat, dp.NdRange(64, 16), dp.asarray(x), out)
    expected = x.reshape(4, 16).copy()
    for _ in range(3):
        expected = expected.sum(axis=1, keepdims=True) % 11 + np.arange(16)
    np.testing.assert_array_equal(out.asnumpy(), expected.ravel())


def test_an_unknown_operation_does_not_compile() -> None:
    @dp.kernel
    def kernel(item: dp.NdItem, x: Any) -> None:
        x[0] = dp.group_reduce(item.get_group(), x[0], "product")

    with pytest.raises(dp.KernelCompileError, match="'add', 'min', 'max'"):
        dp.call_kernel(kernel, dp.NdRange(4, 4), dp.zeros(4))


def test_on_the_host_they_say_where_they_run() -> None:
    with pytest.raises(NotImplementedError, match="runs only in a kernel"):
        dp.group_reduce(None, 1)
