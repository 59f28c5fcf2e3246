"""The host, kernels compiled in the background and kernels that are waited for agree."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import dparray as dp
from dparray._evaluate import background, cost_model, evaluate, limits
from dparray._evaluate.cost_model import Terms
from tests.support import examples, launched, run_in_threads

#: Cost models: the host computes everything or nothing eagerly; kernels are available soon.
MODELS: dict[str, dict[str, float]] = {
    "as measured": {},
    "kernels cost nothing": {"launch": 1e-9},
    "kernels cost nothing, nor their compiling": {"launch": 1e-9, "compile": 1e-9},
    "kernels are worth asking for": {"launch": 1e-9, "compile": 2e-4},
    "the host costs nothing": {"addition": 1e-15},
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Iterator[dict[str, float]]:
    with dp.config.override(cost_model=MODELS[request.param], background_compile=True):
        yield MODELS[request.param]
    background.wait()


def chain(np: Any, x: Any, y: Any) -> Any:
    z = (x * 2 + y) / (y * y + 1) - x[::-1]
    z[1:-1] += 0.5 * z[2:]
    return np.where(z > 0.25, z, -z) + (z * y).sum()


@pytest.mark.parametrize("size", [100, 9_000, 140_000])
def test_every_model_gives_the_same(model: dict[str, float], size: int, queue: Any) -> None:
    values = [np.random.default_rng(seed).uniform(-1, 1, size) for seed in (0, 1)]
    expected = chain(np, *values)
    arrays = [dp.asarray(each, sycl_queue=queue) for each in values]
    for _ in range(4):
        np.testing.assert_allclose(chain(dp, *arrays).asnumpy(), expected, rtol=1e-12)


def test_a_kernel_is_compiled_in_the_background_and_used() -> None:
    evaluate.forget()
    x = dp.asarray(np.linspace(0, 1, 100_003))
    with dp.config.override(
        cost_model=MODELS["kernels are worth asking for"] | {"compile": 5e-3},
        background_compile=True,
    ):
        tiers = []
        for _ in range(200):
            y = (x * 3 - x) / (x + 7)
            tiers.append(dp.explain(y).tier)
            dp.eval(y)
            if len(tiers) > 30:
                background.wait()
            if tiers[-1] == "fused":
                break
        assert tiers[0] == "host"
        assert tiers[-1] == "fused"
    np.testing.assert_allclose(y.asnumpy(), (x.asnumpy() * 2) / (x.asnumpy() + 7), rtol=1e-14)


def test_work_that_pays_for_the_wait_waits() -> None:
    evaluate.forget()
    x = dp.ones(200_000)
    model = MODELS["kernels cost nothing, nor their compiling"]
    with dp.config.override(cost_model=model, background_compile=True):
        assert dp.explain((x + 2) * (x - 3)).tier == "fused"


def test_a_kernel_on_disk_computes_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gain of one call pays for reading a file, not for compiling."""
    monkeypatch.setattr(background, "ask", lambda work: None)
    x = dp.ones(300_001)

    def compute() -> int:
        with launched() as kernels:
            dp.eval((x * 5 - 1) / (x + 9))
        return len(kernels)

    with dp.config.override(cost_model={"launch": 1e-9, "compile": 2e-3}, background_compile=True):
        evaluate.forget()
        with limits.force("fused"):
            assert compute() == 1
        evaluate.forget()
        assert compute() == 1
        with dp.config.override(fused_tier=False):
            evaluate.forget()
            assert compute() == 0


def test_the_kernels_can_be_switched_off() -> None:
    evaluate.forget()
    x = dp.ones(200_000)
    with dp.config.override(fused_tier=False, background_compile=True):
        y = (x + 2) * x / 3
        assert dp.explain(y).tier == "host"
        assert y.asnumpy()[7] == 1
        background.wait()
        assert dp.explain((x + 2) * x / 3).tier == "host"


def test_a_compiled_kernel_is_not_used_while_kernels_are_disabled(queue: Any) -> None:
    x = dp.ones(200_000, sycl_queue=queue)

    def calculate() -> tuple[str, str, float]:
        with dp.profile() as p:
            y = (x + 5) * x / 7
            tier = dp.explain(y).tier
            dp.eval(y)
        (kind,) = {each.kind for each in p.events} & {"kernel", "library", "host"}
        return tier, kind, float(y[3])

    with limits.force("fused"):
        assert calculate() == ("fused", "kernel", 6 / 7)
    with dp.config.override(fused_tier=False):
        assert calculate() == ("host", "host", 6 / 7)
    with limits.force("library"):
        assert calculate() == ("library", "library", 6 / 7)
    with limits.force("fused"):
        assert calculate() == ("fused", "kernel", 6 / 7)


def test_the_host_can_be_switched_off() -> None:
    x = dp.ones(50)
    with dp.config.override(host_tier=False, cost_model={}, background_compile=True):
        assert dp.explain(x + 2).tier != "host"


def test_terms_are_pinned_and_limits_follow() -> None:
    before = limits.host_elements
    with dp.config.override(cost_model={"launch": 50e-6}):
        assert cost_model.terms() == Terms(launch=50e-6)
        assert limits.host_elements == cost_model.elements_at_once() != before
    assert limits.host_elements == before


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"speed": 1.0}, ValueError, "no term 'speed'"),
        ({"launch": -1.0}, ValueError, "positive"),
        ({"launch": float("nan")}, ValueError, "positive"),
        ({"launch": "fast"}, TypeError, "must be a number"),
        ("fast", TypeError, "must be a dict"),
    ],
)
def test_wrong_terms_are_refused(given: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        dp.config.cost_model = given


def test_the_model_prefers_the_cheaper_backend() -> None:
    with dp.config.override(cost_model={"launch": 1e-12}):
        assert cost_model.elements_at_once() == cost_model.MIN_AT_ONCE
    with dp.config.override(cost_model={"launch": 1.0}):
        assert cost_model.elements_at_once() == cost_model.MAX_AT_ONCE
    sizes = [cost_model.elements_at_once(cost) for cost in (1, 4, 16)]
    assert sorted(sizes, reverse=True) == sizes


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor", "logical_not"])
def test_booleans_of_floats_cost_numpy_more(name: str) -> None:
    """NumPy computes them one by one; for a million elements a kernel takes 20 to 33 % of that."""
    costs = {}
    for dtype in ("float32", "int32"):
        x = dp.asarray(np.ones(1_000_000, dtype))
        function = getattr(dp, name)
        pending = function(*(x,) * (1 if name == "logical_not" else 2))
        costs[dtype] = cost_model.saved_additions([pending._node])
    assert costs["float32"] > 2 * costs["int32"]


def test_numpy_reads_elements_with_gaps_one_by_one() -> None:
    """NumPy takes twice as long for every second element as a kernel does."""
    x = dp.asarray(np.ones(1_000_000, "float32"))
    with limits.force("fused"):
        saved = [
            cost_model.saved_additions([(part * 2)._node])
            for part in (x[:500_000], x[::2], x[::-2])
        ]
    assert 2 * saved[0] == saved[1] == saved[2]


@pytest.mark.parametrize("axis", [0, 1])
def test_numpy_reduces_short_rows_one_by_one(axis: int) -> None:
    """For sums of two columns, NumPy is 100 times slower than a kernel, which is worth its wait."""

    def host_of(rows: int, columns: int, axis: int | None) -> float:
        with limits.force("fused"):
            pending = dp.sum(dp.asarray(np.ones((rows, columns))), axis=axis)
        return cost_model.saved_additions([pending._node])

    assert host_of(500_000, 2, axis) > 3 * host_of(500_000, 2, None)
    assert host_of(2_000, 1_000, axis) < 1.1 * host_of(2_000, 1_000, None)


SIZES = st.sampled_from([1, 60, 8192, 8193, 70_000, 140_000])


@settings(max_examples=examples(25), deadline=None)
@given(
    st.data(),
    st.sampled_from(list(MODELS)),
    SIZES,
    st.lists(st.integers(0, 8), min_size=1, max_size=8),
)
def test_random_programs_agree(data: Any, name: str, size: int, steps: list[int]) -> None:
    h = [np.linspace(-1, 1, size), np.linspace(1, 2, size)]
    d = [dp.asarray(each) for each in h]
    launch = data.draw(st.floats(1e-9, 1e-4))
    with dp.config.override(
        cost_model={"launch": launch} | MODELS[name],
        background_compile=data.draw(st.booleans()),
        lazy=data.draw(st.booleans()),
        host_tier=data.draw(st.booleans()),
        fused_tier=data.draw(st.booleans()),
    ):
        for step in steps:
            at = data.draw(st.integers(0, size))
            for each in (h, d):
                x, y = each
                if step == 0:
                    each[0] = x + y
                elif step == 1:
                    x[at:] = y[at:] * 0.5
                elif step == 2:
                    x[: size - at] -= 0.25 * x[at:]
                elif step == 3:
                    each[1] = y[::-1].copy()
                elif step == 4:
                    x *= 0.5
                elif step == 5:
                    each[0] = x - x.mean()
                elif step == 6:
                    each[1] = (x * 2 + y) / (1.5 + x * x) - 0.5 * (y - x * 3)
                elif step == 7:
                    z = x * 0.5
                    view = z[at:]
                    # rounding errors of sums grow with the size
                    each[0] = z + y * (z - 1) - (view.sum() / size - z)
                else:
                    y[at:] = x[at:][::-1]
        for ours, theirs in zip(d, h, strict=True):
            np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-9, atol=1e-12)


def test_threads_may_ask_at_the_same_time() -> None:
    evaluate.forget()

    def work(seed: int) -> None:
        x = dp.asarray(np.linspace(0, seed + 1, 20_000))
        for _ in range(20):
            y = (x + seed) * (x - 1.0)
            expected = (x.asnumpy() + seed) * (x.asnumpy() - 1.0)
            np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-12)

    with dp.config.override(cost_model={"compile": 1e-3, "launch": 1e-9}):
        run_in_threads(work, 4)


def test_an_array_may_get_other_memory_while_another_thread_computes_with_it() -> None:
    """The values shown by the host are kept as long as NumPy reads them."""
    values = np.linspace(0, 1, 30_000)
    started, errors = threading.Barrier(2), []

    def view(arrays: list[Any]) -> None:
        for x in arrays:
            started.wait()
            x[:100]  # views share memory, so the array is moved to USM memory

    for _ in range(4):
        arrays = [dp.asarray(values) for _ in range(25)]
        other = threading.Thread(target=view, args=(arrays,))
        other.start()
        for x in arrays:
            started.wait()
            made = x * 2.0 + x
            x[5:10] = 7.0
            if not np.allclose(made.asnumpy(), values * 3):
                errors.append(made)
        other.join()
    assert not errors


PROGRAM = """
import os, sys
import numpy as np
import dparray as dp
x = dp.asarray(np.linspace(0, 1, 30_000))
for n in range(40):
    y = eval("x" + "*x+x" * (1 + n % 8))
    dp.eval(y)
{end}
"""


@pytest.mark.parametrize(
    "end",
    [
        "print('end')",
        "print('end', flush=True); os._exit(0)",
        "pid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0); print('end')",
        "raise SystemExit(print('end'))",
    ],
)
@pytest.mark.sample(2)
def test_a_program_may_end_and_fork_while_kernels_are_compiled(end: str) -> None:
    environment = os.environ | {
        "DPARRAY_BACKGROUND_COMPILE": "1",
        "DPARRAY_COST_MODEL": '{"launch": 1e-9, "compile": 4e-3}',
    }
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(end=end)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "end\n", "")


def test_functions_of_scalars_alone_are_arrays() -> None:
    assert dp.where(True, 1.5, 2).item() == 1.5
    assert dp.clip(3.0, 1.0, 2.0).item() == 2.0


def test_an_update_of_a_large_slice_writes_once() -> None:
    x = dp.ones((600, 600))
    expected = np.ones((600, 600))
    for array in (x, expected):
        array[1:] += array[:-1]
        array[:, 1:] *= 3.0
        array[3, 5:8] -= 1.0
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_an_output_that_is_an_operand() -> None:
    x, expected = dp.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4)
    assert dp.add(x, x[::-1], out=x) is x
    np.add(expected, expected[::-1], out=expected)
    np.testing.assert_array_equal(x.asnumpy(), expected)
    with pytest.raises(dp.ShapeError):
        dp.add(x, x[:2], out=x)
    with pytest.raises(dp.ShapeError):
        dp.add(x, x, out=x[0])
    np.testing.assert_array_equal(x.asnumpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "bool"])
def test_elements_selected_by_masks_and_positions_are_written(dtype: str) -> None:
    values = np.arange(60).astype(dtype)
    x, positions = dp.asarray(values), dp.asarray([3, 1, 3])
    for array, where in ((x, positions), (values, positions.asnumpy())):
        array[array == 5] = 1
        array[where] = 0
        array[where] = array[:3]
    np.testing.assert_array_equal(x.asnumpy(), values)
    with pytest.raises(IndexError):
        x[dp.asarray([60])] = 1
    with pytest.raises(IndexError):
        x[dp.asarray([-61])]


@pytest.mark.usefixtures("tests_options")
def test_copies_of_short_rows_come_to_be_kernels() -> None:
    host = np.arange(1_200_000.0).reshape(-1, 3)
    x, out = dp.asarray(host), dp.zeros((400_000, 6))
    for first in (0, 3, 1):
        for _ in range(40):
            out[:, first : first + 3] = x
        background.wait()
    with launched() as launches:
        out[:, 2:5] = x[::-1]
        out[:, :1] = x[:, 1:2]
        out[::2, 5] = x[:200_000, 0]
    assert launches
    wanted = np.zeros((400_000, 6))
    for first in (0, 3, 1):
        wanted[:, first : first + 3] = host
    wanted[:, 2:5] = host[::-1]
    wanted[:, :1] = host[:, 1:2]
    wanted[::2, 5] = host[:200_000, 0]
    np.testing.assert_array_equal(out.asnumpy(), wanted)


def test_kernels_of_two_passes_are_asked_for() -> None:
    x = dp.asarray(np.ones((200_000, 8), np.float32))
    model = {"addition": 1e-9}
    with dp.config.override(cost_model=model, background_compile=True):
        dp.eval(x.sum(axis=0))
        text = str(dp.explain(x.sum(axis=0)))
    assert "slower" not in text


def test_a_program_waits_for_a_kernel_once_it_has_lost_as_much_as_compiling_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The background thread may get no CPU time for long: a loop must still wait for the kernel."""
    monkeypatch.setattr(background, "ask", lambda work: None)
    x, y = dp.ones(300_001), dp.ones(300_001)
    dp.eval(x, y)

    def compute() -> dp.ndarray:
        return (x * 2 + y) / (y * y + 1) - x[::-1]

    model = {"launch": 1e-9, "compile": 1e-2}
    with dp.config.override(cost_model=model, background_compile=True):
        evaluate.forget()
        counts: list[int] = []
        while not (counts and counts[-1]) and len(counts) < 5000:
            with launched() as kernels:
                dp.eval(compute())
            counts.append(len(kernels))
    assert counts[0] == 0
    assert counts[-1] == 1


def test_what_the_host_really_took_decides() -> None:
    """The model prefers the host; its time says otherwise, so that a kernel replaces it."""
    evaluate.forget()
    x = dp.asarray(np.linspace(0, 1, 300_007))
    with dp.config.override(cost_model={"addition": 1e-12}, background_compile=True):
        assert dp.explain(x / 7).tier == "host"
        with dp.config.override(background_compile=True), launched() as done:
            for call in range(200):
                y = dp.exp(x / 7) / (x + 3)
                dp.eval(y)
                background.wait()
                if done and call > 1:
                    break
        assert done
    np.testing.assert_allclose(y.asnumpy(), np.exp(x.asnumpy() / 7) / (x.asnumpy() + 3), 1e-14)


def test_a_host_that_is_fast_keeps_its_work() -> None:
    evaluate.forget()
    x = dp.asarray(np.linspace(0, 1, 300_007))
    model = {"addition": 1e-12, "launch": 10.0}
    with dp.config.override(cost_model=model, background_compile=True), launched() as done:
        for _ in range(20):
            dp.eval(dp.exp(x / 11) / (x + 3))
            background.wait()
    assert not done


LIMITS = {
    "clip": lambda np, x, y: np.clip(x, 0.25, 0.75),
    "clip of a result": lambda np, x, y: np.clip(x * y, 0.25, 0.75) + 1,
    "clip to zero": lambda np, x, y: np.clip(x, -0.0, 0.0),
    "maximum": lambda np, x, y: np.maximum(x, 0.5),
    "maximum of zero": lambda np, x, y: np.maximum(0.0, x),
    "minimum": lambda np, x, y: np.minimum(0.25, x),
    "both limits twice": lambda np, x, y: np.minimum(np.maximum(x, 0.2), y) * np.maximum(x, 0.2),
    "selected": lambda np, x, y: np.where(x > 0.5, x, 0),
    "selected from two": lambda np, x, y: np.where(x > 0.5, x, y),
    "selected numbers": lambda np, x, y: np.where(x[:, None] > y[:3], x[:, None], -0.0),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "u1", "c8", "c16"])
def test_limits_and_selections_of_the_host(name: str, dtype: str) -> None:
    edges = [0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, 0.25, 0.75]
    with np.errstate(invalid="ignore"):
        values = [
            np.concatenate([edges, np.random.default_rng(seed).uniform(-1, 2, 5000)]).astype(dtype)
            for seed in (0, 1)
        ]
    arrays = [dp.asarray(each) for each in values]
    with limits.force("host"):
        found = LIMITS[name](dp, *arrays).asnumpy()
    with np.errstate(all="ignore"):
        expected = LIMITS[name](np, *values)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_numpy_divides_integers_by_a_number_with_multiplications(size: int) -> None:
    """A kernel divides each element; for other divisors, NumPy does, too."""
    with limits.force("fused"):
        x = dp.asarray(np.arange(size))
        by_number, by_array = (cost_model.saved_additions([(x // y)._node]) for y in (7, x + 1))
    assert by_number <= 0 < by_array
