"""The command ``dparray``: its output, its exit status, and its requirements."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import dpctl
import pytest

import dparray as dp
from dparray import cli
from dparray._compiler import cache as _cache
from dparray._driver.sycl import report as sycl_report
from dparray.cli import COMMANDS, info, main

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m dparray`` in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "dparray", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=120,
        check=False,
    )


# --- the command ------------------------------------------------------------------------------


def test_the_version_is_that_of_the_package() -> None:
    run = command("--version")
    assert (run.returncode, run.stdout) == (0, f"dparray {dp.__version__}\n")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(each.name in text and each.summary in text for each in COMMANDS)


@pytest.mark.parametrize("name", [each.name for each in COMMANDS])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: dparray {name}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "invalid choice: 'nonsense' (choose from"),
        (["info", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["doctor", "--only", "nonsense"], "invalid choice: 'nonsense' (choose from"),
    ],
)
def test_a_wrong_call_lists_the_choices_and_exits_with_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


def test_an_error_of_dparray_is_a_message_without_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(arguments: Any) -> int:
        raise dp.DeviceError("no such device")

    monkeypatch.setattr(info, "run", fail)
    assert main(["info"]) == 1
    assert capsys.readouterr().err == "dparray info: no such device\n"


def test_an_interrupt_ends_the_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(arguments: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(info, "run", interrupt)
    assert main(["info"]) == 130


def test_a_closed_output_pipe_is_not_reported() -> None:
    program = f"{shlex.quote(sys.executable)} -m dparray info --json | head -c 1"
    run = subprocess.run(["bash", "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("{", "")


def test_only_the_command_asked_for_is_imported() -> None:
    script = (
        "import sys; from dparray.cli import make_parser; make_parser('info');"
        "print(sorted({f'dparray.cli.{name}' for name in ('info', 'bench', 'doctor')}"
        " & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout == "['dparray.cli.info']\n"


# --- dependencies that cannot be imported -----------------------------------------------------


@pytest.fixture
def without_dpctl(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process in which dpctl cannot be imported."""
    package = tmp_path / "dpctl"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('libsycl.so.9 is not there')\n")
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}


def test_a_failed_driver_is_reported_at_the_first_array(without_dpctl: dict[str, str]) -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import dparray as dp; print('imported'); dp.zeros(3)"],
        capture_output=True,
        text=True,
        env=os.environ | without_dpctl,
    )
    last = run.stderr.splitlines()[-1]
    assert run.returncode == 1
    assert run.stdout == "imported\n"
    assert "DeviceError: no device that can hold arrays was found, dpctl cannot be imported" in last
    assert "libsycl.so.9 is not there" in last
    assert "`dparray doctor`" in last


def test_a_command_that_needs_a_dependency_reports_its_failure(
    without_dpctl: dict[str, str],
) -> None:
    run = command("bench", **without_dpctl)
    assert run.returncode == 1
    assert run.stderr.startswith("dparray bench: ")
    assert "libsycl.so.9 is not there" in run.stderr
    assert "Traceback" not in run.stderr


def test_help_and_version_need_no_stack(without_dpctl: dict[str, str]) -> None:
    for arguments in (["--version"], ["--help"], ["bench", "--help"], ["cache"]):
        assert command(*arguments, **without_dpctl).returncode == 0


def test_info_shows_the_versions_where_the_stack_is_broken(without_dpctl: dict[str, str]) -> None:
    run = command("info", **without_dpctl)
    assert run.returncode == 1
    assert "numba 0." in run.stdout
    assert "libsycl.so.9 is not there" in run.stdout
    assert "Traceback" not in run.stderr


# --- info -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tests_options")
def test_info_lists_the_cpu_and_what_it_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    device = dp.Device("cpu")
    assert f"opencl:cpu:0  {device.name}, cpu (default)" in text
    assert device.driver_version in text
    assert "device, shared, host" in text
    assert "cost model of the CPU device (dp.config.cost_model pins launch)" in text
    assert f"numba {info._version('numba')}" in text


def test_info_as_json_has_the_limits_that_kernels_meet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    described = {entry["filter_string"]: entry for entry in info.all_devices(found)}
    device = dp.Device("cpu").sycl_device
    cpu = described["opencl:cpu:0"]
    assert cpu["usable"]
    assert cpu["default"]
    assert cpu["reason"] is None
    assert cpu["usm_types"] == ["device", "shared", "host"]
    assert cpu["dtypes"] == {"float16": True, "float64": True, "atomic64": True}
    assert cpu["max_work_group_size"] == device.max_work_group_size
    assert cpu["local_memory"] == device.local_mem_size
    if device.max_compute_units > 1:
        parts = {"partition": 1, "count": device.max_compute_units}
        assert parts in cpu["sub_devices"]


def test_warmup_compiles_for_every_device(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = [dp.Device(dpctl.SyclQueue("cpu")) for _ in range(2)]
    seen: list[tuple[dp.Device, str]] = []

    def programs(device: dp.Device, dtype: str) -> list[tuple[str, Any]]:
        seen.append((device, dtype))
        return [("ones", lambda: dp.ones(3, device=device))]

    monkeypatch.setattr(dp, "devices", lambda: devices)
    monkeypatch.setattr("dparray.cli.warmup.programs", programs)
    assert main(["warmup", "--dtype", "float32", "--json"]) == 0
    assert [device for device, _ in seen] == devices
    assert json.loads(capsys.readouterr().out)["devices"] == [str(each) for each in devices]
    assert main(["warmup", "--dtype", "float32", "--device", "cpu"]) == 0
    assert len(seen) == 3


def test_info_shows_the_rates_that_policies_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--speed", "--json"]) == 0
    rates = json.loads(capsys.readouterr().out)["speed"]["devices"]["opencl:cpu:0"]
    assert all(rate > 0 for rate in rates.values())
    assert main(["info", "--speed"]) == 0
    assert "speed of devices" in capsys.readouterr().out


class FakeDevice:
    """Imitate the attributes of a ``dpctl.SyclDevice`` (OpenCL, without USM) that dparray reads."""

    filter_string = "opencl:cpu:1"
    name = "A CPU without USM"
    vendor = "Somebody"
    driver_version = "5.0"
    device_type = type("DeviceType", (), {"name": "cpu"})
    max_compute_units = 4
    partition_max_sub_devices = 0
    max_work_group_size = 4096
    max_work_item_sizes3d = (4096, 4096, 4096)
    sub_group_sizes = ()
    local_mem_size = 2**19
    global_mem_size = 2**33
    max_mem_alloc_size = 2**31
    global_mem_cache_size = 2**20
    parent_device = None
    backend = type("Backend", (), {"name": "opencl"})
    is_cpu, is_gpu = True, False

    def __getattr__(self, name: str) -> bool:
        if name.startswith("has_aspect_"):
            return name in {"has_aspect_cpu", "has_aspect_fp64"}
        raise AttributeError(name)


def test_a_device_without_usm_is_listed_with_the_reason() -> None:
    described = sycl_report.describe(FakeDevice())
    assert not described["usable"]
    assert not described["default"]
    assert described["usm_types"] == []
    text = info._device_as_text(described)
    assert "opencl:cpu:1  A CPU without USM, cpu (not usable)" in text
    assert "cannot live here: it has no USM device allocations" in text


def _unusable() -> list[dict[str, Any]]:
    return [device for device in info.all_devices(info.gather()) if not device["usable"]]


def test_real_devices_without_usm_are_refused_and_never_chosen() -> None:
    unusable = _unusable()
    if not unusable:
        pytest.skip("every device of this machine has USM; pocl-opencl-icd adds one without")
    assert dp.default_device().filter_string not in {each["filter_string"] for each in unusable}
    for each in unusable:
        with pytest.raises(dp.UnsupportedDeviceError, match="has no USM device allocations"):
            dp.ones(3, device=each["filter_string"])
        assert each["filter_string"] not in {device.filter_string for device in dp.devices()}


def test_where_no_device_can_hold_arrays_info_names_the_doctor() -> None:
    run = command("info", OCL_ICD_FILENAMES="/nowhere/libdriver.so")
    if json.loads(command("info", "--json", OCL_ICD_FILENAMES="/nowhere/x.so").stdout)["platforms"]:
        pytest.skip("a driver is registered with the system")
    assert run.returncode == 1
    assert "run `dparray doctor`" in run.stderr
    assert "Traceback" not in run.stderr


# --- cache ------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path))
    for digit in "12":
        _cache.save(digit * 64, b"kernel")
    return tmp_path


def test_cache_shows_its_folder_and_contents(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache"]) == 0
    text = capsys.readouterr().out
    assert str(cache) in text
    assert "entries  2" in text


def test_options_are_written_out(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cache", "--clea"])
    assert "--clea" in capsys.readouterr().err


def test_cache_is_cleared(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"removed 2 entries from {cache}\n"
    assert _cache.load("1" * 64) is None


def test_every_command_has_a_module_with_the_two_functions() -> None:
    for each in cli.COMMANDS:
        module = __import__(each.module, fromlist=["run"])
        assert callable(module.run)
        assert callable(module.add_arguments)
