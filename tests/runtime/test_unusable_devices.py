"""Devices that SYCL lists but that cannot store arrays, such as PoCL's, which has no USM."""

from __future__ import annotations

from types import SimpleNamespace

import dpctl
import pytest

import dparray as dp

POCL = SimpleNamespace(
    filter_string="opencl:cpu:7", name="pocl", has_aspect_usm_device_allocations=False
)


def test_errors_list_the_devices_that_can_hold_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [*dpctl.get_devices(), POCL]
    monkeypatch.setattr(dpctl, "get_devices", lambda: found)
    for wanted in ("cuda:7", 3.5):
        with pytest.raises(dp.DeviceError, match=r"available: \S*cpu:\d") as caught:
            dp.Device(wanted)  # type: ignore[arg-type]
        assert POCL.filter_string not in str(caught.value)


def test_the_error_without_a_usable_device_gives_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ONEAPI_DEVICE_SELECTOR", raising=False)
    monkeypatch.setattr(dpctl, "get_devices", lambda: [POCL])
    monkeypatch.setattr(dp.device, "devices", list)
    monkeypatch.setattr(dp.device, "_default", None)
    with pytest.raises(dp.DeviceError, match=r"opencl:cpu:7 \(pocl\) cannot hold.*no USM"):
        dp.device.default_device()
