"""Random slice statements, copies, joins and conversions in processes with a user's defaults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dparray as dp
from dparray._evaluate import execute, plan
from dparray._evaluate.plan import FusedStep, KernelEntry, KernelLaunch
from tests.cuda import standin
from tests.evaluate import random_statements

_DEVICES = {
    "default": ["--count", "60"],
    "host": ["--device", "host:cpu", "--count", "60"],
    "host without the host tier": ["--device", "host:cpu", "--no-host-tier", "--count", "12"],
    "CUDA": ["--device", "cuda:0", "--count", "12"],
}


@pytest.mark.process
@pytest.mark.parametrize("device", _DEVICES)
def test_programs_agree_with_numpy(device: str) -> None:
    if device == "CUDA":
        pytest.importorskip("cuda.core", reason="cuda-core is not installed")
        try:
            standin.build()
        except standin.UnavailableError as error:
            pytest.skip(str(error))
    command = [sys.executable, str(Path(random_statements.__file__)), *_DEVICES[device]]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.endswith(", 0 differences\n")


@pytest.mark.parametrize("host_tier", [True, False])
def test_a_copy_that_only_a_kernel_makes_waits_for_it(
    new_cache: None, monkeypatch: pytest.MonkeyPatch, host_tier: bool
) -> None:
    monkeypatch.setattr(dp.config, "background_compile", True)
    monkeypatch.setattr(dp.config, "cost_model", {})
    monkeypatch.setattr(dp.config, "host_tier", host_tier)
    values = np.arange(120_000.0).reshape(300, 400)
    x = dp.asarray(values, device="host:cpu")
    y = dp.full((400, 300), -1.0, device="host:cpu")
    y[:] = x.T
    np.testing.assert_array_equal(y.asnumpy(), values.T)


def test_a_step_that_nothing_computes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "obtain", lambda *_: None)
    launch = KernelLaunch(
        *(None, KernelEntry(None), {}, (), (0,), (), (), (), (), (), (1,), None),
        *(1, False, False, False),
    )
    step = FusedStep(new=(), outputs=(0,), stores=(), nodes=(), reads=(), launches=(launch,))
    with pytest.raises(RuntimeError, match="no kernel and no other steps"):
        execute.execute(plan.Plan((step,), 0, 1, (0,)), None, (), ())
