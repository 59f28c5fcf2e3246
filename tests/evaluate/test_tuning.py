"""``dp.config.tuning``: results are right for every division into kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import config
from tests.support import launched

SETTINGS: list[dict[str, Any]] = [
    {"elements": 4},
    {"elements": 3, "local_size": 32},
    {"local_size": 1},
    {"elements": 64, "local_size": 256, "lanes": 1},
    {"lanes": 7},
    {"elements": 2, "lanes": 128},
    {"lanes": 1024},
]


pytestmark = pytest.mark.usefixtures("fused")


def _on_all(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for the types of device that the tests' device may be or play."""
    return {"cpu": options, "gpu": options}


def results(xp: Any, x: Any, wide: Any) -> list[Any]:
    return [
        x * 2 + 1,
        x[::-1, ::2] - x[:, :1],
        x.T + 1,
        wide[:, 1:] * wide[:, :-1],
        wide[:, ::3, 0] * 2,
        x.sum(),
        xp.max(wide, axis=1),
        x.sum(axis=0),
        x.sum(axis=1),
        xp.var(x, axis=0),
        wide.sum(axis=(0, 2)),
        xp.argmax(x, axis=1),
        xp.exp(x - xp.max(x, axis=1, keepdims=True)) / xp.sum(abs(x), axis=1, keepdims=True),
    ]


@pytest.mark.parametrize("options", SETTINGS, ids=str)
@pytest.mark.sample(3)
def test_results_are_right_for_every_division_into_kernels(options: dict[str, Any]) -> None:
    generator = np.random.default_rng(0)
    x, wide = generator.normal(size=(301, 257)), generator.normal(size=(3, 200, 70))
    expected = results(np, x, wide)
    with dp.config.override(tuning=_on_all(options)):
        actual = results(dp, dp.asarray(x), dp.asarray(wide))
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-10, atol=1e-10)
        a = dp.asarray(x)
        with dp.config.override(lazy=False):
            for _ in range(2):
                np.testing.assert_array_equal((a[1:] - a[:-1]).asnumpy(), x[1:] - x[:-1])


def test_elements_and_local_sizes_are_seen_in_text_and_range() -> None:
    x = dp.ones(100_000)
    with launched() as launches:
        with dp.config.override(tuning=_on_all({"elements": 4, "local_size": 64})):
            plan = dp.explain(x + 1)
            dp.eval(x + 1)
        dp.eval(x + 1)
    assert "for turn in range(4)" in plan.source
    assert launches[0].global_range == (25_024,)
    assert launches[0].kernel is not launches[1].kernel


def test_a_local_size_beyond_the_device_is_refused() -> None:
    x = dp.ones(200_000)
    with (
        dp.config.override(tuning=_on_all({"local_size": 65536})),
        pytest.raises(dp.KernelRangeError, match="65536"),
    ):
        dp.eval(x * 3)
    assert float((x * 3)[0]) == 3


WRONG: list[tuple[Any, type[Exception], str]] = [
    (4, TypeError, "must be a dict such as"),
    ({"fpga": {}}, ValueError, "unknown device type 'fpga'; expected one of cpu, gpu, accelerator"),
    ({"cpu": 4}, TypeError, "must be a dict or a Tuning"),
    ({"cpu": {"element": 4}}, ValueError, "no option 'element'; options: elements"),
    ({"cpu": {"elements": 0}}, ValueError, "elements must be from 1 to 64, not 0"),
    ({"cpu": {"elements": 2.0}}, TypeError, "elements must be an integer, not 2.0"),
    ({"cpu": {"lanes": True}}, TypeError, "lanes must be an integer"),
    ({"cpu": {"lanes": None}}, TypeError, "lanes must be an integer"),
]


@pytest.mark.parametrize(("value", "error", "text"), WRONG, ids=lambda value: str(value)[:30])
def test_invalid_input_raises_and_changes_nothing(value: Any, error: Any, text: str) -> None:
    before = dp.config.tuning
    with pytest.raises(error, match=text):
        dp.config.tuning = value
    assert dp.config.tuning is before


def test_tuning_changes_only_the_named_devices() -> None:
    with dp.config.override(tuning={"gpu": config.Tuning(elements=2)}):
        assert dp.config.tuning["gpu"].elements == 2
        assert dp.config.tuning["cpu"] == config.Tuning()
    with pytest.raises(TypeError):
        dp.config.tuning["cpu"] = config.Tuning(elements=2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [('{"cpu": {"elements": 2}}', "2"), ("elements=2", "write JSON such as"), ("[1]", "JSON")],
)
def test_the_environment_sets_it(text: str, expected: str) -> None:
    program = "from dparray import config; print(config.tuning['cpu'].elements)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "DPARRAY_TUNING": text},
        capture_output=True,
        text=True,
        check=False,
    )
    assert expected in done.stdout + done.stderr
