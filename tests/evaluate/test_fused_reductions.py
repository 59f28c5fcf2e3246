"""Reductions as part of expressions: NumPy's values, and the number of kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dparray as dp
from tests.support import examples, forced, launched, same, values

EXAMPLES = examples(12)


# -- compared with NumPy ---------------------------------------------------------------------------

#: Functions of a matrix and an axis: of rows, of columns, or of all elements.
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "share": lambda xp, x, axis: x / (abs(x).sum(axis=axis, keepdims=True) + 1),
    "softmax": lambda xp, x, axis: softmax(xp, x, axis),
    "standardised": lambda xp, x, axis: standardised(xp, x, axis),
    "norm": lambda xp, x, axis: xp.sqrt((x * x).sum(axis=axis)) + 1,
    "range": lambda xp, x, axis: x.max(axis=axis) - x.min(axis=axis),
    "reduced twice": lambda xp, x, axis: (x - x.mean(axis=axis, keepdims=True)).max(),
    "scaled sum": lambda xp, x, axis: (x * 100).sum(axis=axis) / 3,
    "mean of squares": lambda xp, x, axis: (x * x).mean(axis=axis) - x.mean(axis=axis) ** 2,
    "places": lambda xp, x, axis: x.argmax(axis=axis) + x.argmin(axis=axis),
    "truth": lambda xp, x, axis: (x > 0).any(axis=axis) & (x < 2).all(axis=axis),
    "rows and columns": lambda xp, x, axis: x - x.mean(axis=0) - x.mean(axis=1)[:, None],
}
SHAPES = [(5, 7), (300, 3), (3, 300), (70, 64), (900, 17), (40, 700), (1, 9), (9, 1), (260, 300)]
VIEWS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "reversed": lambda x: x[::-1],
    "every second": lambda x: x[:, ::2],
    "transposed": lambda x: x.T,
    "pending": lambda x: x * 2 - 1,
}


def softmax(xp: Any, x: Any, axis: Any) -> Any:
    e = xp.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def standardised(xp: Any, x: Any, axis: Any) -> Any:
    return (x - x.mean(axis=axis, keepdims=True)) / (x.std(axis=axis, keepdims=True) + 1)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    name=st.sampled_from(sorted(PROGRAMS)),
    shape=st.sampled_from(SHAPES),
    axis=st.sampled_from([None, 0, 1]),
    view=st.sampled_from(sorted(VIEWS)),
    dtype=st.sampled_from(["float32", "float64", "int32", "int16"]),
    executor=st.sampled_from(["fused", "fused", "library", "host"]),
    lazy=st.booleans(),
)
def test_programs_have_numpys_results(
    name: str, shape: tuple[int, int], axis: Any, view: str, dtype: str, executor: str, lazy: bool
) -> None:
    host = values(shape, dtype)

    def program(xp: Any, x: Any) -> Any:
        return PROGRAMS[name](xp, VIEWS[view](x), axis)

    with forced(executor), dp.config.override(lazy=lazy):
        result = program(dp, dp.asarray(host))
        dp.eval(result)
    wanted = program(np, host)
    # The error of sums with cancellation grows with the numbers, also in NumPy.
    same(result, wanted, 2e-4, 2e-4 * max(1.0, float(np.max(np.abs(wanted))) / 100))


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    names=st.lists(
        st.sampled_from(["sum", "mean", "var", "std", "max", "min", "argmax", "any"]),
        min_size=2,
        max_size=4,
    ),
    shape=st.sampled_from([(4000,), (90, 300), (300, 90), (2000, 3), (6, 50, 40)]),
    axis=st.sampled_from([None, 0, -1]),
    view=st.sampled_from(["plain", "reversed", "pending"]),
    together=st.booleans(),
)
def test_several_reductions_of_the_same_memory(
    names: list[str], shape: tuple[int, ...], axis: Any, view: str, together: bool
) -> None:
    host = values(shape)
    with forced("fused"):
        x = VIEWS[view](dp.asarray(host))
        found = [getattr(x, name)(axis=axis) for name in names]
        dp.eval(*(found if together else found[:1]))
        for name, one in zip(names, found, strict=True):
            same(one, getattr(VIEWS[view](host), name)(axis=axis), 2e-4)


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "scale": lambda xp, x: x.__imul__(2),
    "overwrite a row": lambda xp, x: x.__setitem__(1, 3),
    "subtract the means": lambda xp, x: x.__isub__(x.mean(axis=0)),
    "divide by sums of rows": lambda xp, x: x.__itruediv__(abs(x).sum(axis=1, keepdims=True) + 1),
    "sums into a column": lambda xp, x: x.__setitem__((slice(None), 0), x.sum(axis=1)),
    "maxima into the first row": lambda xp, x: x.__setitem__(0, x.max(axis=0)),
    "shift": lambda xp, x: x.__setitem__(slice(1, None), x[:-1] - x[:-1].mean()),
}


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4),
    shape=st.sampled_from([(5, 4), (40, 300), (300, 40), (64, 64)]),
    axis=st.sampled_from([None, 0, 1]),
    executor=st.sampled_from(["fused", "host"]),
)
def test_a_reduction_uses_the_values_at_the_time_of_its_call(
    steps: list[str], shape: tuple[int, int], axis: Any, executor: str
) -> None:
    host = values(shape)
    wanted, before = [], []
    with forced(executor):
        x = dp.asarray(host.copy())
        for step in steps:
            before += [x.sum(axis=axis), x.std(axis=axis), x - x.max(axis=0)]
            wanted += [host.sum(axis=axis), host.std(axis=axis), host - host.max(axis=0)]
            STEPS[step](dp, x)
            STEPS[step](np, host)
        same(x, host, 2e-4)
        for one, expected in zip(before, wanted, strict=True):
            same(one, expected, 2e-3)


def test_a_product_with_its_own_rows_is_written_in_place() -> None:
    """Groups other than the writer's read the written vector along the reduced axis, too."""
    host, vector = values((600, 600)), values(600, seed=1)
    with forced("fused"):
        matrix, r = dp.asarray(host), dp.asarray(vector)
        r += (matrix * r).sum(axis=1)
        same(r, vector + (host * vector).sum(axis=1), 2e-4)


@pytest.mark.parametrize("shape", [(3000, 33), (40, 1021), (5, 700, 70)])
def test_columns_of_any_width_are_reduced_by_vectors(shape: tuple[int, ...]) -> None:
    host = values(shape)
    axis = len(shape) - 2
    x = dp.asarray(host)
    with forced("fused"):
        for name in ("sum", "argmin", "var"):
            same(getattr(x, name)(axis=axis), getattr(host, name)(axis=axis), 1e-4)
        x[...] = x - x.mean(axis=axis, keepdims=True)  # overwrites a vector that all groups read
        host -= host.mean(axis=axis, keepdims=True)
        same(x, host)
        same(softmax(dp, x, axis), softmax(np, host, axis))


@pytest.mark.parametrize("offset", [0.0, 1e8, -3e5])
@pytest.mark.parametrize(("shape", "axis"), [((100_000,), None), ((500, 300), 0), ((500, 300), 1)])
def test_the_variance_does_not_suffer_from_the_mean(
    offset: float, shape: tuple[int, ...], axis: Any
) -> None:
    host = np.random.default_rng(3).standard_normal(shape) + offset
    host.flat[0] = offset + 50  # an outlier in the element that serves as offset
    with forced("fused"):
        x = dp.asarray(host)
        mean, variance = x.mean(axis=axis), x.var(axis=axis)
        dp.eval(mean, variance)
    np.testing.assert_allclose(mean.asnumpy(), host.mean(axis=axis), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance.asnumpy(), host.var(axis=axis), rtol=1e-6)


#: Shapes and axes that lead to every form of a kernel, with chunks and without.
FORMS = [
    ((200_003,), None),
    ((501, 300), 1),
    ((501, 300), 0),
    ((520, 4100), 0),
    ((3001, 5), 1),
    ((3001, 5), 0),
    ((40, 50, 31), 1),
    ((40, 30, 31), (0, 2)),
]


def elements_around(start: float, dtype: str, size: int, where: str) -> np.ndarray:
    """Return normally distributed numbers, some of them around another center."""
    elements = np.random.default_rng(5).standard_normal(size)
    chosen = {
        "all": slice(None),
        "first": slice(1),
        "last": slice(size - 1, None),
        "few": slice(min(size, 16)),
        "eighth": slice(size // 8),
        "lane": slice(None, None, 16),
    }[where]
    elements[chosen] += start
    return elements.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), FORMS)
def test_the_variance_is_accurate_for_all_elements(
    shape: tuple[int, ...], axis: Any, dtype: str
) -> None:
    size = int(np.prod(shape))
    start, wide, tolerance = {
        "float32": (1e6, np.float64, 3e-5),
        "float64": (1e8, np.longdouble, 1e-13),
    }[dtype]
    with forced("fused"):
        for where in ("all", "first", "last", "few", "eighth", "lane"):
            host = elements_around(start, dtype, size, where).reshape(shape)
            variance = dp.var(dp.asarray(host), axis=axis)
            wanted = host.astype(wide).var(axis=axis)
            np.testing.assert_allclose(variance.asnumpy(), wanted, tolerance, err_msg=where)


@pytest.mark.parametrize(("shape", "axis"), FORMS)
def test_equal_elements_have_the_variance_zero(shape: tuple[int, ...], axis: Any) -> None:
    for value in (1e8 / 3, 3e38, -1e-30, 0.0):
        x = dp.asarray(np.full(shape, value, "float32"))
        with forced("fused"):
            assert not x.var(axis=axis).asnumpy().any()
            assert not x.std(axis=axis).asnumpy().any()


@pytest.mark.parametrize(("shape", "axis"), FORMS)
def test_infinite_elements_have_no_variance_and_huge_ones_an_infinite_one(
    shape: tuple[int, ...], axis: Any
) -> None:
    host = np.random.default_rng(6).uniform(-3.4e38, 3.4e38, shape).astype(np.float32)
    with forced("fused"):
        assert np.isposinf(dp.var(dp.asarray(host), axis=axis).asnumpy()).all()
        for value in (np.inf, -np.inf, np.nan):
            for place in (0, host.size // 2, host.size - 1):
                host = values(shape)
                host.flat[place] = value
                affected = ~np.isfinite(host).all(axis=axis)
                variance = dp.var(dp.asarray(host), axis=axis).asnumpy()
                np.testing.assert_array_equal(np.isnan(variance), affected)


@settings(max_examples=examples(4) * EXAMPLES, deadline=None)
@given(
    length=st.integers(1, 400),
    mean=st.sampled_from([0.0, 1.0, -3e4, 1e7]),
    deviation=st.sampled_from([1e-3, 1.0, 1e5]),
    correction=st.integers(0, 1),
    seed=st.integers(0, 99),
)
def test_the_variance_of_rows_of_any_length(
    length: int, mean: float, deviation: float, correction: int, seed: int
) -> None:
    host = np.random.default_rng(seed).normal(mean, deviation, (100, length)).astype(np.float32)
    with forced("fused"), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = dp.var(dp.asarray(host), axis=1, correction=correction).asnumpy()
        wanted = host.astype(np.float64).var(axis=1, ddof=correction)
    np.testing.assert_allclose(actual, wanted, 3e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "complex64"])
@pytest.mark.parametrize(("shape", "axis"), FORMS[:3])
def test_the_variance_of_other_dtypes(shape: tuple[int, ...], axis: Any, dtype: str) -> None:
    numbers = np.random.default_rng(7).integers(0, 90, shape)
    host = numbers - 2j if dtype == "complex64" else numbers % 2 if dtype == "bool" else numbers
    host = host.astype(dtype)
    with forced("fused"):
        same(dp.var(dp.asarray(host), axis=axis, ddof=1), host.var(axis=axis, ddof=1), 1e-4)


@pytest.mark.parametrize(("shape", "axis"), FORMS)
def test_the_variance_of_an_expression_with_other_reductions(
    shape: tuple[int, ...], axis: Any
) -> None:
    a, b, c = (values(shape, "float64", seed) for seed in range(3))
    host = (a - b) * c + 1e5
    x = (dp.asarray(a) - dp.asarray(b)) * dp.asarray(c) + 1e5
    with forced("fused"):
        results = [getattr(x, name)(axis=axis) for name in ("mean", "std", "max")]
        other = dp.var(dp.asarray(a), axis=axis)
        dp.eval(*results, other)
        for result, name in zip(results, ("mean", "std", "max"), strict=True):
            same(result, getattr(host, name)(axis=axis), 1e-9)
        same(other, a.var(axis=axis), 1e-12)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(("shape", "axis"), [((70_000,), None), ((900, 300), 0), ((30, 900), 1)])
def test_positions_are_those_of_the_first(name: str, shape: tuple[int, ...], axis: Any) -> None:
    host = np.random.default_rng(2).integers(0, 3, shape).astype("float32")
    flat = host.reshape(-1)
    for odd in (None, np.nan, np.inf, -np.inf):
        if odd is not None:
            flat[[5, 900, 20_000]] = odd
        with forced("fused"):
            found = getattr(dp.asarray(host), name)(axis=axis)
            np.testing.assert_array_equal(found.asnumpy(), getattr(host, name)(axis=axis))
    host[...] = -np.inf if name == "argmax" else np.inf
    with forced("fused"):
        assert not getattr(dp.asarray(host), name)(axis=axis).asnumpy().any()


# -- number of kernels -----------------------------------------------------------------------------

ROWS = (4000, 300)


@pytest.mark.usefixtures("tests_options")
@pytest.mark.parametrize(
    "program",
    [
        lambda xp, x: softmax(xp, x, 1),
        lambda xp, x: standardised(xp, x, 1),
        lambda xp, x: x / abs(x).sum(axis=1, keepdims=True),
        lambda xp, x: x / abs(x).sum(axis=1)[:, None],
        lambda xp, x: xp.sqrt((x * x).sum(axis=1)),
        lambda xp, x: x.max(axis=1) - x.min(axis=1),
    ],
    ids=["softmax", "standardised", "shares", "shares by view", "norms", "ranges"],
)
def test_rows_that_a_cache_holds_are_one_kernel(program: Callable[..., Any]) -> None:
    host = values(ROWS)
    x = dp.asarray(host)
    with launched() as launches:
        result = program(dp, x)
        assert result.is_pending
        assert not launches
        dp.eval(result)
    assert len(launches) == 1
    same(result, program(np, host), 2e-4)


@pytest.mark.usefixtures("tests_options")
def test_mean_and_variance_are_one_pass() -> None:
    host = values(ROWS)
    x = dp.asarray(host)
    with launched() as launches:
        mean, variance = x.mean(axis=1), x.var(axis=1)
        dp.eval(mean, variance)
    assert len(launches) == 1
    same(mean, host.mean(axis=1))
    same(variance, host.var(axis=1))


@pytest.mark.usefixtures("tests_options")
def test_a_reduction_of_the_same_memory_is_computed_with_the_one_that_is_needed() -> None:
    host = values(ROWS)
    x = dp.asarray(host)
    mean, deviation, unused = x.mean(axis=1), x.std(axis=1), x.max(axis=0)
    with launched() as launches:
        dp.eval(mean)
        assert len(launches) == 1
        assert unused.is_pending
        same(deviation, host.std(axis=1))
    assert not any("var" in launch.name for launch in launches[1:])


@pytest.mark.usefixtures("tests_options")
def test_a_held_operand_is_stored_by_the_kernel_that_reduces_it() -> None:
    host = values(ROWS)
    x = dp.asarray(host)
    costly = dp.exp(dp.sin(x) * 3)
    total = costly.sum(axis=1)
    with launched() as launches:
        dp.eval(total)
        assert not costly.is_pending
    assert len(launches) == 1
    same(costly, np.exp(np.sin(host) * 3), 1e-4)
    same(total, np.exp(np.sin(host) * 3).sum(axis=1), 1e-3)


@pytest.mark.usefixtures("tests_options")
def test_a_row_too_long_for_a_cache_is_reduced_first() -> None:
    host = values((9, 200_000))
    x = dp.asarray(host)
    with launched() as launches:
        result = x - x.max(axis=1, keepdims=True)
        dp.eval(result)
    assert launches[-1].name == "fused_subtract"
    same(result, host - host.max(axis=1, keepdims=True))


@pytest.mark.usefixtures("tests_options")
def test_a_total_and_its_users_read_memory_once() -> None:
    host = values(1 << 18)
    x = dp.asarray(host)
    with launched() as launches:
        result = dp.sqrt((x * x).sum() / x.size)
        dp.eval(result)
    assert len(launches) == 1
    same(result, np.sqrt((host * host).mean()))


@pytest.mark.usefixtures("fused")
def test_values_broadcast_along_columns_do_not_decide_their_reduction() -> None:
    host, weights = values((900, 700)), values((900, 1))
    x, w = dp.asarray(host), dp.asarray(weights)
    plain, weighted = dp.sum(x, axis=0), dp.sum(x * w, axis=0)
    assert all("column" in dp.explain(each).source for each in (plain, weighted))
    np.testing.assert_allclose(weighted.asnumpy(), (host * weights).sum(0), rtol=1e-3, atol=1e-3)


# All elements, long rows, and columns in blocks, the last of which overlaps the one before.
@pytest.mark.usefixtures("tests_options")
@pytest.mark.parametrize(
    ("shape", "axis"), [((300_001,), None), ((3, 90_001), 1), ((6000, 500), 0), ((70_000, 40), 0)]
)
def test_the_last_group_merges_the_chunks(queue: Any, shape: tuple[int, ...], axis: Any) -> None:
    host = values(shape)
    x = dp.asarray(host, device=queue)
    dp.eval(x.sum(axis=axis))
    for _ in range(20):
        with launched() as launches:
            total = (x.sum(axis=axis) + 1).asnumpy()
        assert len(launches) == 1
        np.testing.assert_allclose(total, host.sum(axis=axis) + 1, rtol=1e-4, atol=1e-3)
        same(x.argmax(axis=axis), host.argmax(axis=axis))


def test_chunks_that_call_a_user_are_merged_by_another_kernel() -> None:
    @dp.reduction(identity=1)
    def product(a: Any, b: Any) -> Any:
        return a * b

    x = dp.asarray(values(300_000) / 1000 + 1)
    with launched() as launches:
        found = product(x).item()
    assert len(launches) == 2
    np.testing.assert_allclose(found, x.asnumpy().astype("f8").prod(), rtol=1e-3)


def test_a_loop_over_totals_holds_few_arrays() -> None:
    before = dp.memory.stats().in_use
    total: Any = 0.0
    for step in range(100):
        total = total + (dp.asarray(values(1 << 14, seed=step)) * 2).sum()
        assert dp.memory.stats().in_use - before < 20 * (1 << 16)
    wanted = sum(float(values(1 << 14, seed=step).sum()) * 2 for step in range(100))
    np.testing.assert_allclose(float(total), wanted, rtol=1e-3, atol=1e-2)


@pytest.mark.usefixtures("tests_options")
def test_explain_shows_reductions() -> None:
    x = dp.asarray(values(ROWS))
    plan = dp.explain(softmax(dp, x, 1))
    assert [each.operation for each in plan.operations] == [
        "array",
        "max",
        "subtract",
        "exp",
        "sum",
        "divide",
    ]
    assert len(plan.kernels) == 1
    assert plan.source.count("group_barrier(") == 2
    plan = dp.explain(dp.asarray(values((700, 500)))[1:, 1:].sum())
    assert [kernel.operations for kernel in plan.kernels] == [("t0",), ("t0",)]
    assert "combines" in plan.kernels[1].reason


@pytest.mark.parametrize(
    "view",
    [lambda a: a[1:-1, 1:-1], lambda a: a.T, lambda a: a[::2, ::-1]],
    ids=["inner", "transposed", "steps"],
)
def test_several_axes_that_are_no_single_stride_apart(view):
    host = np.random.default_rng(0).integers(1, 9, (700, 500)).astype("f8")
    x, expected = view(dp.asarray(host)), view(host)
    assert x.sum().item() == expected.sum()
    assert (x * 2 + 1).max(axis=(0, 1), keepdims=True).tolist() == [[17]]
    assert x.argmax().item() == expected.argmax()
    np.testing.assert_allclose(x.var().item(), expected.var())
    standard = (x - x.mean()) / x.std()
    np.testing.assert_allclose(
        standard.asnumpy(), (expected - expected.mean()) / expected.std(), atol=1e-12
    )
    weights = x / dp.sum(x * x)
    np.testing.assert_allclose(
        dp.sum(weights).item(), (expected / (expected * expected).sum()).sum(), rtol=1e-12
    )
