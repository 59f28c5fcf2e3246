"""Work in the source folder, as after ``git clone`` and ``pip install .``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

CLONE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Only the current folder leads to the package; no driver is set."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "OCL_ICD_FILENAMES")
    }


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=CLONE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_import_dparray_takes_the_clone_and_finds_its_device_code(
    environment: dict[str, str],
) -> None:
    code = "import dparray as dp; import dparray.kernels as k; print(dp.__file__, k.__file__)"
    done = run(environment, "-c", code + "; print(dp.devices())")
    assert done.returncode == 0, done.stderr
    files, devices = done.stdout.splitlines()
    assert files == f"{CLONE}/dparray/__init__.py {CLONE}/kernels/__init__.py"
    assert "opencl:cpu:0" in devices


@pytest.mark.slow
def test_python_m_dparray_info_finds_the_device(environment: dict[str, str]) -> None:
    done = run(environment, "-m", "dparray", "info", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [d["usable"] for each in found["platforms"] for d in each["devices"]].count(True) >= 1


@pytest.mark.slow
def test_the_first_checks_of_the_doctor_pass(environment: dict[str, str]) -> None:
    links = ["python", "packages", "driver", "imports", "devices"]
    done = run(environment, "-m", "dparray", "doctor", "--json", "--only", *links)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [link["status"] for link in json.loads(done.stdout)] == ["ok"] * len(links)
