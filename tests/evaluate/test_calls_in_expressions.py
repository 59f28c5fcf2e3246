"""User-defined functions in expressions: they fuse like any operation, with captured values."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests import support
from tests.support import counted, execute, kernels_of

LARGE = 1 << 17  # is compiled immediately


@dp.elementwise
def wave(x: Any, y: Any) -> Any:
    return x * 2.0 + math.sin(y)


@dp.elementwise
def is_inside(x: Any) -> Any:
    return abs(x) < 1


@dp.elementwise(dtype="bool")
def rest_of_three(n: Any) -> Any:
    return n % 3


@dp.reduction(identity=0.0, map=lambda x: x * x)
def total_square(a: Any, b: Any) -> Any:
    return a + b


def values(shape: Any = LARGE, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return 2 * support.values(shape, dtype, seed)


@pytest.mark.usefixtures("tests_options")
def test_a_call_fuses_with_its_operands_and_its_users() -> None:
    x, y = values(), values(seed=1)
    a, b = dp.asarray(x), dp.asarray(y)
    result = dp.sqrt(abs(wave(a * b, b - 1))) + wave(a, 2)
    plan = dp.explain(result)
    assert (result.is_pending, len(plan.kernels), plan.tier) == (True, 1, "fused")
    assert "wave_" in plan.source
    assert "return x * 2.0 + math.sin(y)" in plan.source
    (name,) = kernels_of(lambda: dp.eval(result))
    assert name.count("_wave") == 2
    wanted = np.sqrt(abs(x * y * 2 + np.sin(y - 1))) + (x * 2 + np.sin(np.float32(2)))
    np.testing.assert_allclose(result.asnumpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("tests_options")
def test_a_call_is_the_producer_and_the_epilogue_of_reductions() -> None:
    x = abs(values((600, 300))) + 1
    a = dp.asarray(x)
    rows = wave(a, a).sum(axis=1, keepdims=True)
    result = wave(a / rows, rows)
    assert [kernel.tier for kernel in dp.explain(result).kernels] == ["fused"]
    wanted = (x * 2 + np.sin(x)).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rows.asnumpy(), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(result.asnumpy(), x / wanted * 2 + np.sin(wanted), atol=2e-3)


def test_booleans_and_dtypes_that_are_given() -> None:
    x = values()
    n = np.arange(LARGE, dtype=np.int32)
    mask = is_inside(dp.asarray(x)) & rest_of_three(dp.asarray(n))
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask.asnumpy(), (abs(x) < 1) & (n % 3 != 0))


@pytest.mark.parametrize("dtype", ["float16", "complex64", "int8", "uint64", "bool"])
def test_operands_of_each_kind(dtype: str) -> None:
    square = dp.elementwise(lambda x: x * x, dtype=dtype)
    x = np.array([0, 1, 1, 0] if dtype == "bool" else [0, 1, 2, 3]).astype(dtype)
    if dtype == "complex64":
        x = x + np.complex64(1j)
    result = square(dp.asarray(x))
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result.asnumpy(), x * x)


def test_closures_and_globals_are_those_of_the_call() -> None:
    def scaled_by(factor: float) -> Any:
        @dp.elementwise
        def scaled(x: Any) -> Any:
            return x * factor

        return scaled

    x = dp.ones(LARGE)
    results = [scaled_by(factor)(x) + 1 for factor in (2.0, 3.0, 2.0)]
    assert [float(result[5]) for result in results] == [3.0, 4.0, 3.0]

    scope: dict[str, Any] = {"dp": dp, "factor": 2.0}
    execute("def shifted(x): return x + factor", scope)
    shifted = dp.elementwise(scope["shifted"])
    before = shifted(x) * 2
    scope["factor"] = 5.0
    after = shifted(x) * 2
    assert (before.is_pending, after.is_pending) == (True, True)
    assert (float(before[0]), float(after[0])) == (6.0, 12.0)


def test_device_functions_that_are_called_are_those_of_the_call() -> None:
    scope: dict[str, Any] = {"dp": dp, "offset": 1.0}
    execute(
        "@dp.device_func\ndef inner(x): return x + offset\ndef outer(x): return inner(x) * 2", scope
    )
    outer = dp.elementwise(scope["outer"], dtype="float64")
    x = dp.zeros(LARGE)
    before = outer(x) + 0.5
    scope["offset"] = 10.0
    after = outer(x) + 0.5
    assert (float(before[0]), float(after[0])) == (2.5, 20.5)


def test_functions_made_in_a_loop_compile_once() -> None:
    x = dp.asarray(values(100))
    with counted() as events:
        for step in range(20):
            dp.eval(dp.elementwise(lambda x, k: x * k - 0.125)(x, float(step)))
    assert events["compile"] <= 1


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("host_tier", [True, False])
@pytest.mark.parametrize("shape", [(), (5,), (30, 40), (0, 3), (200, 300)])
def test_results_are_the_same_either_way(
    lazy: bool, host_tier: bool, shape: tuple[int, ...]
) -> None:
    x = values(shape)
    with dp.config.override(lazy=lazy, host_tier=host_tier):
        a = dp.asarray(x)
        result = wave(a + 1, wave(a, 0.5)) - 1
        total = total_square(a * 2)
        assert result.shape == shape
        wanted = (x + 1) * 2 + np.sin(x * 2 + np.sin(np.float32(0.5))) - 1
        np.testing.assert_allclose(result.asnumpy(), wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(total.asnumpy(), np.sum((x * 2) ** 2), rtol=1e-4)


def test_little_data_takes_the_functions_own_kernel_and_the_host() -> None:
    a = dp.asarray(values(50))
    dp.eval(wave(a, a))
    result = wave(a * 2, a) + wave(a, a * 3) * 2
    plan = dp.explain(result)
    assert [kernel.tier for kernel in plan.kernels].count("fused") == 2
    assert kernels_of(lambda: dp.eval(result)) == ["fused_wave", "fused_wave"]


def test_out_may_overlap_operands() -> None:
    x = values(1000)
    a = dp.asarray(x)
    reader = a * 3
    wave(a[:-1], a[1:], out=a[:-1])
    wanted = x.copy()
    wanted[:-1] = x[:-1] * 2 + np.sin(x[1:])
    np.testing.assert_allclose(a.asnumpy(), wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(reader.asnumpy(), x * 3, rtol=1e-6)


@pytest.mark.usefixtures("tests_options")
def test_a_mapped_expression_is_not_stored_before_it_is_reduced() -> None:
    a = dp.asarray(values())
    dp.eval(total_square(a))
    result = total_square(a - 0.5)
    names = kernels_of(lambda: dp.eval(result))
    assert names[0] == "fused_subtract_function_total_square"
    assert "fused_subtract" not in names


def test_functions_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps((wave, total_square))) == (wave, total_square)


def test_errors_come_at_the_call_and_name_the_function() -> None:
    @dp.elementwise(dtype="float32")
    def broken(x: Any) -> Any:
        return [x][0]

    a = dp.asarray(values(10))
    with pytest.raises(dp.KernelCompileError) as caught:
        broken(a)
    assert "function broken does not compile for (x: float32)" in str(caught.value)
    assert "return [x][0]" in str(caught.value)
    with pytest.raises(dp.KernelArgumentError, match="at least one operand"):
        dp.elementwise(lambda: 1.0)


def test_a_reduction_that_does_not_compile_is_an_error_at_the_call() -> None:
    @dp.reduction(identity=0.0)
    def broken(a: Any, b: Any) -> Any:
        return str(a)

    with pytest.raises(dp.KernelCompileError, match="broken"):
        broken(dp.asarray(values(10)))
