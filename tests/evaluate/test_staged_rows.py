"""On GPUs, kernels with several loops keep the rows they read in local memory.

Other devices report to be a GPU here, and choose the sizes of sub-groups themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._codegen import reduction_forms
from dparray._codegen.reduction import most_counters
from dparray._codegen.reduction_steps import ReductionStructure
from dparray._evaluate import schedule, tuning
from dparray._evaluate.counters import counters_of
from tests.support import forced, launched

# A row may take a quarter.
LOCAL_MEMORY = 1 << 14
LIMIT = LOCAL_MEMORY // 4
# On both sides of the lengths from which work-items have another element, a group has one row
# instead of several, a group has more work-items, and rows of float64, float32 and float16 no
# longer fit.
LENGTHS = [17, 33, 64, 65, 127, 128, 129, 257, 511, 512, 513, 1023, 1024, 1025, 2048, 2049]
TOLERANCE = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-13}


@pytest.fixture(autouse=True)
def gpu(pretend: Any) -> Iterator[None]:
    """Let the device be a GPU with little local memory."""
    pretend(kind="gpu", units=96, group=512, threads=8, local_memory=LOCAL_MEMORY)
    tuning._machine.cache_clear()
    lanes = {"cpu": {"lanes": 128}, "gpu": {"lanes": 128}}
    with dp.config.override(tuning=lanes), forced("fused"):
        schedule.forget()
        yield
    schedule.forget()
    tuning._machine.cache_clear()


def staged() -> list[int]:
    """Return the number of staged arrays of each kernel with reductions since the start."""
    return [len(each.staged) for each in structures()]


def structures() -> list[ReductionStructure]:
    """Return the structures of the kernels with reductions since the start."""
    found = [key[0] for key in schedule.entries]
    return [each for each in found if type(each) is ReductionStructure]


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - x.max(axis=-1)[..., None])
    return e / e.sum(axis=-1)[..., None]


def layer_norm(xp: Any, x: Any) -> Any:
    return (x - x.mean(axis=-1, keepdims=True)) / xp.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def variance(xp: Any, x: Any) -> Any:
    return x.var(axis=-1)


def unit_rows(xp: Any, x: Any) -> Any:
    return x / xp.sqrt((x * x).sum(axis=-1, keepdims=True))


PROGRAMS: list[Callable[[Any, Any], Any]] = [softmax, layer_norm, variance, unit_rows]


def rows(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(shape[-1]).normal(size=shape).astype(dtype)


def check(found: Any, expected: np.ndarray, dtype: str) -> None:
    assert found.dtype == dtype
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.sample(4)
def test_rows_of_each_length(length: int, dtype: str) -> None:
    host = rows((5, length), dtype)
    x = dp.asarray(host)
    for program in PROGRAMS:
        with launched() as launches:
            result = program(dp, x)
            dp.eval(result)
        check(result, program(np, host.astype("f8")), dtype)
        if length >= 64 and length * host.itemsize <= LIMIT and program is not variance:
            assert len(launches) == 1
            assert staged()[-1] == 1
        if length * host.itemsize > LIMIT:
            assert not any(each.in_local_memory for each in structures())


@pytest.mark.parametrize("length", [100, 1000])
@pytest.mark.parametrize("program", PROGRAMS)
def test_views(program: Callable[..., Any], length: int) -> None:
    host = rows((6, 2 * length), "float32")
    x = dp.asarray(host)
    views: list[Callable[[Any], Any]] = [
        lambda a: a[:, ::2],
        lambda a: a[::-1, 5 : 5 + length],
        lambda a: a[::2, length:],
        lambda a: a[:, ::-1],
        lambda a: a[:, :length] * 2 - 1,
        lambda a: a.reshape(2, 3, -1)[:, 1:, :length],
        lambda a: a.reshape(3, 2, -1).transpose(1, 0, 2),
    ]
    for view in views:
        check(program(dp, view(x)), program(np, view(host.astype("f8"))), "float32")


def test_several_arrays_and_weights() -> None:
    host, other = rows((7, 300), "float32"), rows((7, 300), "float32")[::-1].copy()
    weight, bias = rows((300,), "float32"), rows((2, 300), "float32")[1]

    def program(xp: Any, x: Any, y: Any, w: Any, b: Any) -> Any:
        return layer_norm(xp, x + y) * w + b

    arguments = host, other, weight, bias
    result = program(dp, *map(dp.asarray, arguments))
    check(result, program(np, *(each.astype("f8") for each in arguments)), "float32")
    assert staged() == [2]  # the weights are the same for each row


@pytest.mark.parametrize("length", [40, 100, 127, 128, 129])
def test_rows_of_many_arrays(length: int) -> None:
    hosts = [np.roll(rows((6, length), "float64"), at) for at in range(4)]
    result = softmax(dp, sum(map(dp.asarray, hosts)))
    check(result, softmax(np, sum(hosts)), "float64")
    if length >= 128:
        fits = structures()[-1].held or 4 * hosts[0][0].nbytes <= LIMIT
        assert staged()[-1] == (4 if fits else 0)


@pytest.mark.parametrize("length", [200, 900])
def test_two_axes_in_place_and_integers(length: int) -> None:
    host = rows((6, length), "float32")
    x = dp.asarray(host)
    x[...] = softmax(dp, x)
    check(x, softmax(np, host.astype("f8")), "float32")
    block = rows((4, 5, length // 5), "float32").transpose(1, 0, 2)
    turned = dp.asarray(np.ascontiguousarray(block.transpose(1, 0, 2))).transpose(1, 0, 2)
    for program in (
        lambda xp, a: a / abs(a).max(axis=(1, 2), keepdims=True),
        lambda xp, a: (a - a.mean(axis=(1, 2), keepdims=True)).std(axis=(1, 2)),
    ):
        check(program(dp, turned), program(np, block.astype("f8")), "float32")
    counts = np.random.default_rng(1).integers(-100, 100, (6, length)).astype("i2")
    shifted = dp.asarray(counts) - dp.asarray(counts).max(axis=1, keepdims=True)
    np.testing.assert_array_equal(
        shifted.sum(axis=1).asnumpy(), (counts - counts.max(axis=1, keepdims=True)).sum(axis=1)
    )


@pytest.mark.parametrize("length", [70, 700])
def test_positions_and_values_that_are_not_numbers(length: int) -> None:
    host = rows((8, length), "float32")
    host[1, 3], host[2, -1], host[3, length // 2] = np.nan, np.inf, -np.inf
    x = dp.asarray(host)
    with np.errstate(invalid="ignore"):
        for program in (softmax, layer_norm, variance):
            check(program(dp, x), program(np, host.astype("f8")), "float32")
    largest = x - x.max(axis=1, keepdims=True)
    found = largest.argmax(axis=1) + (x - x.min(axis=1, keepdims=True)).argmin(axis=1)
    with np.errstate(invalid="ignore"):
        expected = (host - host.max(axis=1, keepdims=True)).argmax(axis=1)
        expected = expected + (host - host.min(axis=1, keepdims=True)).argmin(axis=1)
    np.testing.assert_array_equal(found.asnumpy(), expected)


def kept_twice(xp: Any, x: Any) -> Any:
    e = xp.tanh(x * 2 - x.max(axis=-1, keepdims=True))
    return e * e.sum(axis=-1, keepdims=True) - e / (1 + abs(e).max(axis=-1, keepdims=True))


def needed_again(xp: Any, x: Any) -> Any:
    e = xp.exp(x - x.max(axis=-1, keepdims=True))
    return x * e / e.sum(axis=-1, keepdims=True)


def test_there_are_counters_for_all_groups_after_a_change_of_the_division(pretend: Any) -> None:
    queue = dp.ones(1).queue
    for units in (2, 96, 300):
        pretend(units=units)
        tuning._machine.cache_clear()
        (count,) = counters_of(queue).layout.shape
        assert count >= most_counters(tuning.machine_of(queue))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.sample(6)
def test_a_value_that_later_loops_need_is_computed_once(
    length: int, dtype: str, pretend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(loads_vectors=True)
    monkeypatch.setattr(reduction_forms, "HELD_BYTES", 0)
    tuning._machine.cache_clear()
    x = dp.asarray(rows((300, length), dtype))
    dp.eval(x)

    def sources() -> list[str]:
        return [dp.explain(program(dp, x)).source for program in (softmax, kept_twice)]

    def computed() -> list[np.ndarray]:
        return [each(dp, x).asnumpy() for each in (*PROGRAMS, kept_twice, needed_again)]

    found, texts = computed(), sources()
    with dp.config.override(tuning={"gpu": {"lanes": 128, "bytes_in_flight": 1}}):
        before, others = computed(), sources()
    for one, other in zip(found, before, strict=True):
        np.testing.assert_array_equal(one, other)
    if "a0_local" in texts[0]:
        assert all("kept0 = " in text for text in texts)
        assert [text.count("math.exp(") for text in texts] < [
            text.count("math.exp(") for text in others
        ]
    assert not any("kept0 = " in text for text in others)
    assert "kept0 = " not in dp.explain(needed_again(dp, x)).source


def weighted(xp: Any, x: Any) -> Any:
    weights = xp.asarray(np.arange(1, 1 + x.shape[-1]).astype(x.dtype.name))
    return (x - x.max(axis=-1, keepdims=True)) * weights / abs(x).sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.sample(6)
def test_rows_are_held_in_registers(length: int, dtype: str, pretend: Any) -> None:
    pretend(loads_vectors=True)
    tuning._machine.cache_clear()
    host = rows((30, length), dtype)
    host[1, 2], host[3, -1], host[4, 1] = np.nan, np.inf, -np.inf
    x = dp.asarray(host)
    programs = [*PROGRAMS, kept_twice, needed_again]
    if dtype != "float16":  # beyond its range
        programs.append(weighted)
    with np.errstate(invalid="ignore"):
        for program in programs:
            check(program(dp, x), program(np, host.astype("f8")), dtype)
    source = dp.explain(softmax(dp, x)).source
    assert "_local[j" not in source
    if length >= 256:
        assert "x0_1 = " in source
        assert source.count("math.exp(") == source.count("a0[")


@pytest.mark.parametrize("length", [300, 512])
def test_quotients_of_a_row_are_those_of_divisions(length: int, pretend: Any) -> None:
    pretend(loads_vectors=True)
    tuning._machine.cache_clear()
    generator = np.random.default_rng(length)
    powers = generator.integers(-140, 127, (400, length)).astype("f4")
    powers[::2] %= 30
    host = generator.normal(size=powers.shape).astype("f4") * np.exp2(powers)
    host[::5, 3], host[1::5, 4], host[2::9, 5], host[8] = 0, -0.0, np.inf, 0
    x = dp.asarray(host)

    def quotients(xp: Any, v: Any) -> Any:
        return v / v.max(axis=1, keepdims=True)

    assert "fused_multiply_add" in dp.explain(quotients(dp, x)).source
    with np.errstate(all="ignore"):
        expected = quotients(np, host)
    found = quotients(dp, x).asnumpy()
    is_small = abs(expected) < np.finfo("f4").tiny  # Devices may flush these to zero.
    np.testing.assert_array_equal(np.where(is_small, 0, found), np.where(is_small, 0, expected))
    is_zero = np.signbit(expected) & (host == 0)
    np.testing.assert_array_equal(np.signbit(found[is_zero]), True)
