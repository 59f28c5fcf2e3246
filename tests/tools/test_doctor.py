"""``dparray doctor``: every check passes here, and fails where something is broken."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._driver import Missing
from dparray.cli import doctor, main
from dparray.cli.doctor import FAILED, OK, SKIPPED, examine, links
from dparray.cli.doctor.links import LINKS, Broken, Link
from tests.conftest import drivers_with_a_copy

ROOT = Path(__file__).resolve().parents[2]
BY_NAME = {link.name: link for link in LINKS}


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dparray", "doctor", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=240,
        check=False,
    )


def statuses(run: subprocess.CompletedProcess[str], device: str = "") -> dict[str, str]:
    results = json.loads(run.stdout)
    return {each["link"]: each["status"] for each in results if each["device"] == device}


def remedy_of(run: subprocess.CompletedProcess[str], link: str) -> str:
    return next(each["remedy"] for each in json.loads(run.stdout) if each["link"] == link)


# --- the whole command ----------------------------------------------------------------------------


def test_every_check_passes_on_a_working_machine() -> None:
    run = command()
    assert run.returncode == 0, run.stdout
    *lines, last = run.stdout.splitlines()
    assert last == f"all {len(LINKS)} checks passed"
    assert [line.split()[0] for line in lines if line and line[0] != " "] == list(BY_NAME)


@pytest.mark.slow
def test_a_driver_file_that_is_not_there() -> None:
    run = command("--json", OCL_ICD_FILENAMES="/nowhere/libdriver.so")
    found = statuses(run)
    assert run.returncode == 1
    assert found["driver"] == FAILED
    assert "unset OCL_ICD_FILENAMES" in remedy_of(run, "driver")
    assert found["imports"] == OK
    assert "Traceback" not in run.stdout + run.stderr
    if not list(Path("/etc/OpenCL/vendors").glob("*.icd")):
        assert found["devices"] == FAILED
        assert "pip install --upgrade" in remedy_of(run, "devices")
        assert found["kernel"] == found["memory"] == SKIPPED
        assert "DPARRAY_DEVICE=host:cpu" in remedy_of(run, "devices")
        assert set(statuses(run, "host:cpu").values()) == {OK}


def test_a_driver_file_that_is_no_driver(tmp_path: Path) -> None:
    driver = tmp_path / "libdriver.so"
    driver.write_text("not a library")
    environment = {"OCL_ICD_FILENAMES": str(driver), "OCL_ICD_VENDORS": str(tmp_path / "none")}
    run = command("--only", "driver", "devices", "--json", **environment)
    assert statuses(run) == {"driver": OK, "devices": FAILED}
    assert run.returncode == 1


def test_a_package_that_cannot_be_imported(tmp_path: Path) -> None:
    package = tmp_path / "dpnp"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('libmkl_sycl.so is not there')\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    run = command("--json", PYTHONPATH=path)
    found = statuses(run)
    assert run.returncode == 1
    assert found["imports"] == FAILED
    assert found["packages"] == found["writer"] == OK
    assert {found[link.name] for link in LINKS if "imports" in link.needs} == {SKIPPED}
    assert "libmkl_sycl.so is not there" in run.stdout
    assert "pip install" in remedy_of(run, "imports")


@pytest.mark.slow
def test_every_device_is_checked(tmp_path: Path) -> None:
    drivers = drivers_with_a_copy(tmp_path)
    if drivers is None:
        pytest.skip("this environment has no driver to copy")
    run = command("--only", "memory", "kernel", "--json", OCL_ICD_FILENAMES=drivers)
    found = [(each["link"], each["device"], each["status"]) for each in json.loads(run.stdout)]
    other = found[-1][1]
    assert other in {"opencl:cpu:0", "opencl:cpu:1"}
    assert found == [
        *(("memory", "", OK), ("kernel", "", OK)),
        *(("memory", other, OK), ("kernel", other, OK)),
    ]
    assert "ran on" in json.loads(run.stdout)[-1]["found"]


def test_a_device_that_is_not_there() -> None:
    run = command("--device", "fpga", "--json")
    found = statuses(run)
    assert run.returncode == 1
    assert found["devices"] == FAILED
    assert found["kernel"] == SKIPPED
    assert "`dparray info`" in remedy_of(run, "devices")


def test_the_text_names_the_failure_and_a_suggested_fix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--only", "devices", "--device", "fpga"]) == 1
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("devices  FAILED   device: no device matches 'fpga'")
    assert last == "broken: devices (1 of 1)"


def test_an_error_without_devices_names_what_hides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    dp.devices()  # SYCL reads its variable once, and other tests need devices
    monkeypatch.setattr("dpctl.get_devices", list)
    monkeypatch.setattr("dparray.device._default", None)
    monkeypatch.setattr("dparray._array.allocation._usual", [None, None])
    monkeypatch.setenv("ONEAPI_DEVICE_SELECTOR", "opencl:fpga")
    for missing in (lambda: dp.Device("fpga"), dp.default_device, lambda: dp.ones(3)):
        with pytest.raises(dp.DeviceError, match="ONEAPI_DEVICE_SELECTOR=opencl:fpga hides"):
            missing()
    monkeypatch.delenv("ONEAPI_DEVICE_SELECTOR")
    with pytest.raises(dp.DeviceError, match="`dparray doctor` reports the missing part"):
        dp.ones(3)


# --- how checks are run ---------------------------------------------------------------------------


def link(name: str, check: Callable[..., str], *needs: str, isolated: bool = False) -> Link:
    return Link(name, check, needs, isolated)


def broken(device: str | None) -> str:
    raise Broken("it does not hold", "mend it")


def test_only_checks_that_need_a_failed_one_are_skipped() -> None:
    chain = (
        link("first", broken),
        link("second", lambda device: "", "first"),
        link("third", lambda device: "", "second"),
        link("apart", lambda device: "fine"),
    )
    found = {result.link: result for result in examine(chain)}
    assert [result.status for result in found.values()] == [FAILED, SKIPPED, SKIPPED, OK]
    assert (found["first"].found, found["first"].remedy) == ("it does not hold", "mend it")
    assert found["third"].found == "needs second"


def test_a_fault_of_the_doctor_is_a_result_too() -> None:
    (result,) = examine([link("faulty", lambda device: str(1 / 0))])
    assert result.status == FAILED
    assert result.found == "ZeroDivisionError: division by zero"
    assert "please report it" in result.remedy


def worker(tmp_path: Path, body: str) -> list[str]:
    """Return a command that replaces the worker; its body may use ``name`` and ``report``."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import json, os, signal, sys, time\n"
        "reports = os.dup(1)\n"
        "os.dup2(2, 1)\n"
        "def report(name, status='ok'):\n"
        "    line = json.dumps({'link': name, 'status': status, 'found': ''})\n"
        "    os.write(reports, line.encode() + b'\\n')\n"
        "for line in sys.stdin:\n"
        "    name = line.strip()\n" + textwrap.indent(textwrap.dedent(body), "    ")
    )
    return [sys.executable, str(script)]


CHAIN = tuple(link(name, broken, isolated=True) for name in ("one", "two", "three"))


def test_a_crash_costs_one_check(tmp_path: Path) -> None:
    command = worker(
        tmp_path,
        """
        if name == "two":
            print("the driver says goodbye", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        report(name)
        """,
    )
    found = list(examine(CHAIN, worker=command))
    assert [result.status for result in found] == [OK, FAILED, OK]
    assert "signal SIGSEGV" in found[1].found
    assert "the driver says goodbye" in found[1].found
    assert "driver" in found[1].remedy


def test_checks_that_need_a_crashed_one_are_skipped(tmp_path: Path) -> None:
    command = worker(tmp_path, "sys.exit(3)")
    chain = (CHAIN[0], link("after", broken, "one", isolated=True))
    found = list(examine(chain, worker=command))
    assert [result.status for result in found] == [FAILED, SKIPPED]
    assert "exit status 3" in found[0].found


@pytest.mark.parametrize(
    ("fault", "expected"), [("sys.exit(3)", "please report it"), ("time.sleep(600)", "again")]
)
def test_without_sycl_no_driver_of_it_is_advised(
    fault: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An emulated processor on the base install took longer than the limit."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    command = worker(tmp_path, fault)
    (found,) = examine((link("one", broken, isolated=True),), worker=command, timeout=3.0)
    assert found.status == FAILED
    assert expected in found.remedy
    assert "intel" not in found.remedy


@pytest.mark.slow
def test_a_check_that_hangs_is_ended(tmp_path: Path) -> None:
    command = worker(
        tmp_path,
        """
        if name == "two":
            time.sleep(600)
        report(name)
        """,
    )
    found = list(examine(CHAIN, worker=command, timeout=10.0))
    assert [result.status for result in found] == [OK, FAILED, OK]
    assert "no answer within 10 s" in found[1].found


def test_no_worker_is_left_when_the_results_are_not_wanted(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    command = worker(tmp_path, f"open({str(note)!r}, 'w').write(str(os.getpid())); report(name)")
    results = examine(CHAIN, worker=command)
    next(results)
    results.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)  # checks whether it exists


def test_the_checks_are_in_an_order_in_which_they_can_run() -> None:
    seen: set[str] = set()
    for each in LINKS:
        assert set(each.needs) <= seen
        seen.add(each.name)


# --- checks that pass here, and how they fail -----------------------------------------------------


@pytest.mark.parametrize("each", LINKS, ids=lambda each: each.name)
def test_each_check_passes_here(each: Link) -> None:
    result = doctor.run_here(each)
    assert result.status == OK, result
    assert result.found


@pytest.mark.parametrize("version", [(3, 9, 1), (3, 15, 0)])
def test_a_python_that_packages_have_no_release_for(version: Any) -> None:
    with pytest.raises(Broken, match=rf"^Python {version[0]}\.{version[1]}") as caught:
        links.check_python(version)
    assert "3.10 to 3.14" in caught.value.remedy


def test_a_machine_on_which_nobody_tried_dparray_is_named() -> None:
    assert "tried" not in links.check_python((3, 11, 0), "x86_64")
    assert "not yet been run on linux riscv64" in links.check_python((3, 11, 0), "riscv64")


def test_the_packages_are_those_that_the_project_asks_for() -> None:
    from packaging.requirements import Requirement

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = project["dependencies"] + project["optional-dependencies"]["sycl"]
    wanted = {each.name: each for each in map(Requirement, texts)}
    for name, (oldest, too_new) in links.PACKAGES.items():
        major, minor = map(int, too_new.split("."))
        for version in (oldest, f"{oldest}.99", f"{major}.{minor - 1}.99"):
            assert wanted[name].specifier.contains(version)
        assert not wanted[name].specifier.contains(too_new)
    oldest_driver = next(iter(wanted["intel-opencl-rt"].specifier))
    assert str(oldest_driver) == ">=2025.1"


@pytest.mark.parametrize("extra", ["sycl", "cuda"])
def test_a_fix_installs_the_packages_of_the_extra(extra: str) -> None:
    import shlex

    from dparray._driver import module_of
    from tests.package.test_packaging import PROJECT

    assert shlex.split(module_of(extra, "prepare").INSTALL) == [
        "pip",
        "install",
        *PROJECT["project"]["optional-dependencies"][extra],
    ]


def test_a_missing_fast_path_is_a_fault_with_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    from dparray._array import fastpath

    monkeypatch.setattr(fastpath, "module", None)
    monkeypatch.setattr(fastpath, "missing_reason", "there is no such file")
    with pytest.raises(Broken, match="there is no such file") as caught:
        links.check_fast_path()
    assert "python -m dparray._array.build_fastpath" in caught.value.remedy
    monkeypatch.setattr(fastpath, "missing_reason", "")
    assert "DPARRAY_COMPILED=0" in links.check_fast_path()


def test_packages_that_are_missing_or_do_not_work_together() -> None:
    installed = {name: oldest for name, (oldest, _) in links.PACKAGES.items()}
    assert links.check_packages(installed.get)
    installed["dpctl"] = "0.23.1"
    del installed["dpnp"]
    with pytest.raises(Broken) as caught:
        links.check_packages(installed.get)
    assert caught.value.found == "dpctl 0.23.1 is not in [0.22, 0.23); dpnp is not installed"
    assert caught.value.remedy == 'pip install "dpctl>=0.22,<0.23" "dpnp>=0.20,<0.21"'


def test_a_newer_llvmlite_is_reported_and_taken() -> None:
    newer = "0.99.0"
    found = links.check_packages(
        lambda name: newer if name == "llvmlite" else links.installed_version(name)
    )
    assert f"llvmlite {newer}, newer than those that were tried" in found


def test_the_packages_of_sycl_may_be_absent_together() -> None:
    base = {name: oldest for name, (oldest, _) in links.PACKAGES.items()}
    del base["dpctl"], base["dpnp"]
    assert 'pip install "dpctl==0.22.*"' in links.check_packages(base.get)
    with pytest.raises(Broken, match=r"^dpnp is not installed$"):
        links.check_packages((base | {"dpctl": "0.22"}).get)


def test_a_version_is_compared_by_its_numbers() -> None:
    installed = {name: oldest for name, (oldest, _) in links.PACKAGES.items()}
    with pytest.raises(Broken, match=r"dpctl 0\.9 is not in"):
        links.check_packages((installed | {"dpctl": "0.9"}).get)


def test_no_driver_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links.ctypes.util, "find_library", lambda name: None)
    with pytest.raises(Broken, match="no driver in this environment") as caught:
        links.check_driver({}, lambda: None, tmp_path)
    assert 'pip install --upgrade "intel-opencl-rt>=2025.1"' in caught.value.remedy


def test_drivers_are_named_with_their_origin(tmp_path: Path) -> None:
    own, other = tmp_path / "libown.so", tmp_path / "libother.so"
    own.touch()
    other.touch()
    (tmp_path / "vendor.icd").write_text("/usr/lib/libvendor.so\n")
    environment = {"OCL_ICD_FILENAMES": f"{own}:{other}"}
    assert links.check_driver(environment, lambda: own, tmp_path).splitlines() == [
        f"{own} (of this environment; `import dparray` before dpctl, dpnp, numba_dpex is used)",
        f"{other} (from OCL_ICD_FILENAMES)",
        f"/usr/lib/libvendor.so (from {tmp_path}/vendor.icd)",
    ]


def test_a_gpu_needs_no_opencl_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links.ctypes.util, "find_library", lambda name: "libze_loader.so.1")
    assert links.check_driver({}, lambda: None, tmp_path) == "Level Zero (ze_loader)"


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Broken, match="cannot be written") as caught:
        links.check_cache(lambda: tmp_path / "file" / "cache")
    assert "DPARRAY_CACHE_DIR" in caught.value.remedy


def test_a_writer_that_does_not_work() -> None:
    def emit(text: str) -> bytes:
        raise OSError("it broke")

    with pytest.raises(Broken, match="does not write SPIR-V: it broke") as caught:
        links.check_writer(emit)
    assert "pip install --force-reinstall" in caught.value.remedy


def test_a_writer_that_writes_something_else() -> None:
    with pytest.raises(Broken, match="not SPIR-V"):
        links.check_writer(lambda text: b"nonsense")


def test_an_import_that_fails() -> None:
    def load(name: str) -> None:
        if name == "dpnp.tensor":
            raise OSError("undefined symbol")

    with pytest.raises(Broken, match=r"^import dpnp.tensor: OSError: undefined symbol$"):
        links.check_imports(("dpctl", "dpnp.tensor"), load)


def test_a_compiler_that_does_not_load() -> None:
    def load() -> None:
        raise RuntimeError("LLVM is of another version")

    with pytest.raises(Broken, match=r"^import llvmlite: RuntimeError: LLVM is of") as caught:
        links.check_compiler(load)
    assert "install dparray again" in caught.value.remedy


def fake_device(**attributes: Any) -> Any:
    usable = {f"has_aspect_usm_{usm}_allocations": True for usm in ("device", "shared", "host")}
    usual = {
        "filter_string": "opencl:cpu:0",
        "name": "Some CPU",
        "vendor": "Intel(R) Corporation",
        "driver_version": "2025.20.8.0.06_160000",
        "is_gpu": False,
    }
    return SimpleNamespace(**usual | usable | attributes)


def test_a_machine_without_nvidias_driver_needs_nothing() -> None:
    absent = Missing("cuda", "cuda-core is not installed", "pip install it, for NVIDIA GPUs")
    expected = "not used: cuda-core is not installed; pip install it, for NVIDIA GPUs"
    assert links.check_cuda(lambda: absent) == expected


def test_damaged_packages_for_nvidias_driver_are_a_failure() -> None:
    damaged = Missing("cuda", "cuda-core cannot be imported: OSError: x", "reinstall it", True)
    with pytest.raises(Broken, match="cannot be imported: OSError: x") as caught:
        links.check_cuda(lambda: damaged)
    assert caught.value.remedy == "reinstall it"


def test_each_device_gets_the_fix_of_its_own_driver() -> None:
    gpu = {"device_type": "gpu", "driver": "cuda"}
    assert "NVIDIA" in links.newer_driver(SimpleNamespace(**gpu))
    assert "Intel" in links.newer_driver(SimpleNamespace(**gpu | {"driver": "sycl"}))


def test_a_device_without_usm_is_named_and_is_not_enough() -> None:
    without = fake_device(filter_string="opencl:cpu:1", has_aspect_usm_device_allocations=False)
    line = (
        "opencl:cpu:1 (Some CPU, driver 2025.20.8.0.06_160000): cannot hold arrays, "
        "it has no USM device allocations (aspect usm_device_allocations)"
    )
    assert line in links.check_devices(None, [fake_device(), without])
    with pytest.raises(Broken) as caught:
        links.check_devices(None, [without])
    assert caught.value.found == line


def test_a_device_without_usm_must_not_be_the_default_of_sycl() -> None:
    without = fake_device(filter_string="opencl:cpu:0", has_aspect_usm_device_allocations=False)
    usable = fake_device(filter_string="opencl:cpu:1")
    with pytest.raises(Broken, match="opencl:cpu:0 is SYCL's own default") as caught:
        links.check_devices(None, [without, usable])
    assert "list the other driver first in OCL_ICD_FILENAMES" in caught.value.remedy


def test_no_device_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OCL_ICD_FILENAMES")
    with pytest.raises(Broken, match="show no SYCL device") as caught:
        links.check_devices(None, [])
    assert "unset" not in caught.value.remedy
    assert "pip install" in caught.value.remedy


def test_a_selector_that_hides_all_devices_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEAPI_DEVICE_SELECTOR", "opencl:cpu")
    monkeypatch.delenv("OCL_ICD_FILENAMES", raising=False)
    with pytest.raises(Broken) as caught:
        links.check_devices(None, [])
    assert "ONEAPI_DEVICE_SELECTOR=opencl:cpu" in caught.value.remedy
    assert "OCL_ICD_FILENAMES" not in caught.value.remedy


# Versions reported by releases 2024.2.1, 2025.0.4 and 2025.1.1 of intel-opencl-rt.
@pytest.mark.parametrize(
    "version", ["2024.18.7.0.11_160000", "2024.18.12.0.05_160000", "2023.16.7.0"]
)
def test_a_driver_that_computes_wrong_results_is_recognized_by_its_age(version: str) -> None:
    with pytest.raises(Broken, match=f"driver {version}.* is older than release 2025.1") as caught:
        links.check_driver_age([fake_device(driver_version=version)])
    assert "pip install --upgrade" in caught.value.remedy


@pytest.mark.parametrize(
    "device",
    [
        fake_device(driver_version="2025.19.4.0.18_160000.xmain-hotfix"),
        fake_device(driver_version="2026.22.10.0.01_160000"),
        # a release of 2024, also through Level Zero
        fake_device(driver_version="24.39.31294", is_gpu=True),
        fake_device(driver_version="1.3.24595", is_gpu=True),
        fake_device(driver_version="2019.8.7.0", vendor="Somebody else"),
    ],
)
def test_other_drivers_are_not_judged_by_their_age(device: Any) -> None:
    assert links.check_driver_age([device])


def test_wrong_math_is_recognized() -> None:
    def compute(dtype: str, inputs: Mapping[str, np.ndarray], name: str | None) -> Any:
        results = links.compute_in_kernel(dtype, inputs, name)
        results["exp"] = results["exp"].copy()
        results["exp"][17] *= 1 + 20 * np.finfo(dtype).eps
        if dtype == "float64":
            results["tan"] = np.full_like(results["tan"], np.nan)
        return results

    with pytest.raises(Broken) as caught:
        links.check_math(None, compute=compute)
    found = f"{dp.default_device()}: in kernels, wrong results: exp of float32; exp, tan of float64"
    assert caught.value.found == found
    assert "intel-opencl-rt" in caught.value.remedy


def test_the_suggested_fix_is_a_driver_of_the_device() -> None:
    gpu = fake_device(driver_version="21.10.19208", is_gpu=True)
    with pytest.raises(Broken, match=r"older than 22\.43") as caught:
        links.check_driver_age([gpu])
    device = SimpleNamespace(device_type="gpu", driver="sycl")
    with pytest.raises(Broken, match="a sum: 1 of 2 values") as wrong:
        links._agree(device, "a sum", np.array([1, 3]), np.array([1, 2]))
    for remedy in (caught.value.remedy, wrong.value.remedy):
        assert "intel-opencl-icd" in remedy
        assert "pip install" not in remedy


@pytest.mark.parametrize("name", links.MATH)
def test_math_is_tried_where_the_function_is_defined(name: str) -> None:
    for dtype in ("float32", "float64"):
        values = links.math_inputs(name, dtype)
        assert values.dtype == dtype
        assert np.isfinite(links.MATH[name][0](values)).all()


def test_units_in_the_last_place() -> None:
    one = np.ones(1, np.float32)
    assert links.ulps(one, one) == 0
    assert links.ulps(np.nextafter(one, np.float32(2)), one) == 1
    assert links.ulps(np.array([np.nan], np.float32), one) == np.inf


@pytest.mark.parametrize(
    ("check", "kernel", "what"),
    [
        (links.check_kernel, "add", "a kernel that adds integers"),
        (links.check_local_memory, "reverse_and_sum", "reversal in local memory"),
        (links.check_local_memory, "count", "atomic count"),
    ],
)
def test_a_kernel_that_gives_wrong_results(
    monkeypatch: pytest.MonkeyPatch, check: Any, kernel: str, what: str
) -> None:
    from dparray.cli.doctor import kernels

    launch = dp.call_kernel

    def call_kernel(which: Any, *arguments: Any) -> None:
        if which is not getattr(kernels, kernel):
            launch(which, *arguments)

    monkeypatch.setattr(dp, "call_kernel", call_kernel)
    with pytest.raises(Broken, match=f"{what}: .* values are wrong, the first at") as caught:
        check(None)
    assert "driver" in caught.value.remedy


def test_array_functions_that_give_wrong_results(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dp.sum
    monkeypatch.setattr(dp, "sum", lambda x, axis: right(x, axis=axis) + 1)
    with pytest.raises(Broken, match="a sum along an axis: 50 of 50 values are wrong"):
        links.check_arrays(None)


def test_memory_that_cannot_be_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, usm_type: str, **options: Any) -> Any:
        if usm_type == "shared":
            raise dp.MemoryError("asked for 400 KB")
        return dp.ones(100_000, dtype="int32") * 7

    monkeypatch.setattr(dp, "full", full)
    with pytest.raises(Broken, match="USM type shared: asked for 400 KB"):
        links.check_memory(None)


def test_memory_that_holds_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dp, "full", lambda *arguments, **options: dp.zeros(100_000, dtype="int32"))
    with pytest.raises(Broken, match="memory of USM type device: 100000 of 100000"):
        links.check_memory(None)


def test_a_device_that_cannot_be_split_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    single = SimpleNamespace(units=1, aspects=frozenset())
    monkeypatch.setattr(links, "_device", lambda name: SimpleNamespace(traits=single))
    assert "so it cannot be split" in links.check_sub_devices(None)
    single.units = 64
    assert "cannot be split" in links.check_sub_devices(None)


def test_sub_devices_that_compute_wrong_results(monkeypatch: pytest.MonkeyPatch) -> None:
    if dp.Device("cpu").sycl_device.max_compute_units < 2:
        pytest.skip("a CPU with one compute unit has no sub-devices")
    monkeypatch.setattr(dp, "asnumpy", lambda x: np.zeros(x.shape))
    with pytest.raises(Broken, match="arithmetic: 999 of 1000"):
        links.check_sub_devices(None)
