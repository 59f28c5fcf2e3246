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
    """Return the rows of the work-items of each group, in row-major order."""
    ndim = len(shape)
    parts = [part for n, m in zip(shape, local, strict=True) for part in (n // m, m)]
    axes = [*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)]
    return x.reshape(parts).transpose(axes).reshape(-1, int(np.prod(local)))


@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "local"), SHAPES)
@pytest.mark.sample(4)
def test_group_algorithms_have_numpys_results(
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

    with pytest.raises(dp.KernelCompileError, match="'add', 'mul', 'min', 'max'"):
        dp.call_kernel(kernel, dp.NdRange(4, 4), dp.zeros(4))


@pytest.mark.parametrize(
    "name",
    [
        "group_reduce",
        "reduce_over_group",
        "group_inclusive_scan",
        "inclusive_scan_over_group",
        "exclusive_scan_over_group",
    ],
)
def test_errors_have_the_name_that_was_called(name: str) -> None:
    function = getattr(dp, name)

    @dp.kernel
    def kernel(item: dp.NdItem, x: Any) -> None:
        x[0] = function(item.get_group(), x[0], "avg")

    with pytest.raises(dp.KernelCompileError, match=rf"\b{name}: the operation is one of"):
        dp.call_kernel(kernel, dp.NdRange(4, 4), dp.zeros(4))
    with pytest.raises(NotImplementedError, match=rf"^{name} combines"):
        function(None, 1)


def test_group_algorithms_on_the_host_raise() -> None:
    with pytest.raises(NotImplementedError, match="works only in a kernel"):
        dp.group_reduce(None, 1)


@dp.device_func
def larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@dp.kernel
def use_all_others(item: dp.NdItem, x: Any, out: Any, truths: Any) -> None:
    i = item.get_global_linear_id()
    group = item.get_group()
    out[i, 0] = dp.reduce_over_group(group, x[i], "mul")
    out[i, 1] = dp.reduce_over_group(group, x[i], larger)
    out[i, 2] = dp.inclusive_scan_over_group(group, x[i], "mul")
    out[i, 3] = dp.inclusive_scan_over_group(group, x[i], larger)
    out[i, 4] = dp.exclusive_scan_over_group(group, x[i])
    out[i, 5] = dp.exclusive_scan_over_group(group, x[i], "min")
    out[i, 6] = dp.exclusive_scan_over_group(group, x[i], "max", 5)
    out[i, 7] = dp.exclusive_scan_over_group(group, x[i], larger, initial=2)
    truths[i, 0] = dp.any_of_group(group, x[i] > 8)
    truths[i, 1] = dp.all_of_group(group, x[i])
    truths[i, 2] = dp.none_of_group(group, x[i] == 3)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float32", "float64"])
@pytest.mark.parametrize(("shape", "local"), SHAPES[:3])
@pytest.mark.sample(2)
def test_scans_and_predicates_have_numpys_results(
    dtype: str, shape: tuple[int, ...], local: tuple[int, ...]
) -> None:
    if shape == (1024,):
        shape, local = (14,), (7,)  # not a power of two
    size = int(np.prod(shape))
    x = np.random.default_rng(1).integers(0, 10, size).astype(dtype)
    out, truths = dp.zeros((size, 8), dtype=dtype), dp.zeros((size, 3), dtype=bool)
    dp.call_kernel(use_all_others, dp.NdRange(shape, local), dp.asarray(x), out, truths)
    simulated, judged = np.zeros((size, 8), dtype), np.zeros((size, 3), bool)
    dp.simulate(use_all_others, dp.NdRange(shape, local), x, simulated, judged)

    groups = by_group(x, shape, local)
    limits = np.finfo(dtype) if x.dtype.kind == "f" else np.iinfo(dtype)
    least = np.inf if x.dtype.kind == "f" else limits.max

    def shifted(scan: np.ndarray, first: float) -> np.ndarray:
        return np.concatenate([np.full((len(scan), 1), first, dtype), scan[:, :-1]], axis=1)

    product = np.multiply.accumulate(groups, axis=1, dtype=dtype)
    largest = np.maximum.accumulate(groups, axis=1)
    expected = [
        np.broadcast_to(product[:, -1:], groups.shape),
        np.broadcast_to(largest[:, -1:], groups.shape),
        product,
        largest,
        shifted(np.add.accumulate(groups, axis=1, dtype=dtype), 0),
        shifted(np.minimum.accumulate(groups, axis=1), least),
        np.maximum(shifted(largest, 5), 5),
        np.maximum(shifted(largest, 2), 2),
    ]
    for column, wanted in enumerate(expected):
        for found in (out.asnumpy(), simulated):
            np.testing.assert_allclose(by_group(found[:, column], shape, local), wanted, rtol=1e-5)
    for column, wanted in enumerate([(groups > 8).any(1), groups.all(1), ~(groups == 3).any(1)]):
        for found in (truths.asnumpy(), judged):
            answers = by_group(found[:, column], shape, local)
            np.testing.assert_array_equal(answers, np.broadcast_to(wanted[:, None], answers.shape))


@dp.kernel
def bits_of_floats(item: dp.NdItem, x: Any) -> None:
    dp.group_reduce(item.get_group(), x[item.get_global_id(0)], "xor")


@dp.kernel
def no_beginning(item: dp.NdItem, x: Any) -> None:
    i = item.get_global_id(0)
    x[i] = dp.exclusive_scan_over_group(item.get_group(), x[i], larger)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [(bits_of_floats, "'xor' takes integers"), (no_beginning, "needs initial=")],
)
def test_invalid_group_algorithms_raise(kernel: Any, words: str) -> None:
    with pytest.raises(dp.KernelCompileError, match=words):
        dp.call_kernel(kernel, dp.NdRange(4, 4), dp.ones(4))


@dp.device_func
def later_of_two(a: Any, b: Any) -> Any:
    return b


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (2, 700), (64, 64), (128, 64)])
def test_scans_over_two_dimensions_of_any_group(shape: tuple[int, int]) -> None:
    """Local memory has room for 1,024 values; the work-items of larger groups take turns."""
    kernel = dp.kernel(scans_of_a_plane)
    size = shape[0] * shape[1]
    x = np.random.default_rng(size).integers(0, 50, size)
    outputs = [dp.zeros(size, dtype="int64") for _ in range(4)]
    if size > dp.Device("cpu").traits.group:
        pytest.skip("the device has no such group")
    dp.call_kernel(kernel, dp.NdRange(shape, shape), dp.asarray(x), *outputs)
    upto, before, combined, shifted = (each.asnumpy() for each in outputs)
    np.testing.assert_array_equal(upto, x.cumsum())
    np.testing.assert_array_equal(before, x.cumsum() - x)
    np.testing.assert_array_equal(combined, np.full(size, np.bitwise_xor.reduce(x)))
    np.testing.assert_array_equal(shifted, [7, *x[:-1]])


def scans_of_a_plane(
    item: dp.NdItem, x: Any, upto: Any, before: Any, combined: Any, shifted: Any
) -> None:
    group = item.get_group()
    i = item.get_global_id(0) * item.get_global_range(1) + item.get_global_id(1)
    upto[i] = dp.inclusive_scan_over_group(group, x[i])
    before[i] = dp.exclusive_scan_over_group(group, x[i])
    combined[i] = dp.reduce_over_group(group, x[i], "xor")
    shifted[i] = dp.exclusive_scan_over_group(group, x[i], later_of_two, initial=7)
