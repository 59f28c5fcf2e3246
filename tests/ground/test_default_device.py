"""The default device: by the option, by a call, in a block."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import dparray as dp
from dparray import device


@pytest.fixture(autouse=True)
def _unchosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_is_chosen", False)
    monkeypatch.setattr(device, "_default", None)


def test_the_option_names_the_default_device() -> None:
    with dp.config.override(device="opencl:cpu"):
        assert dp.default_device() == dp.Device("opencl:cpu")
    missing = pytest.raises(dp.DeviceError, match="'no such device'")
    with dp.config.override(device="no such device"), missing:
        dp.default_device()
    assert dp.default_device() == dp.devices()[0]


def test_the_processor_without_sycl_is_the_cpu_if_it_is_the_default() -> None:
    others = dp.devices()
    with dp.config.override(device="host:cpu"):
        host = dp.default_device()
        assert host.filter_string == "host:cpu"
        assert dp.devices()[0] == dp.Device("cpu") == host
        assert set(dp.devices()) == {host, *others}
    with dp.config.override(device="no such device"):
        assert dp.devices() == others


def test_a_call_and_a_block_come_before_the_option() -> None:
    chosen = dp.Device("cpu").new_queue()
    dp.set_default_device(chosen)
    with dp.config.override(device="no such device"):
        assert dp.zeros(3).device == chosen
        other = chosen.new_queue()
        with dp.use_device(other):
            assert dp.zeros(3).device == other
    assert dp.default_device() == chosen


@pytest.mark.process
def test_the_environment_names_the_default_device() -> None:
    script = "import dparray as dp; dp.zeros(3)"
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"DPARRAY_DEVICE": "opencl:nothing"},
        check=False,
    )
    assert run.returncode == 1
    assert "no device matches 'opencl:nothing'" in run.stderr.splitlines()[-1]
