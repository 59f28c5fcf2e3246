"""An installation without extras: the packages that it has suffice for what a user runs first."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.package.test_packaging import PROJECT

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def closure(texts: list[str]) -> set[str]:
    """Return the names of packages and of those that they require here."""
    found: set[str] = set()
    while texts:
        requirement = Requirement(texts.pop())
        name = canonicalize_name(requirement.name)
        is_wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_wanted and name not in found:
            found.add(name)
            texts += distribution(name).requires or []
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an environment with the packages that dparray requires, and pytest; return its Python.

    The packages are links to those of this environment.
    """
    folder = tmp_path_factory.mktemp("base")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in closure([*PROJECT["project"]["dependencies"], "pytest"]):
        found = distribution(name)
        tops = {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}
        for top in tops:
            (site / top).symlink_to(Path(str(found.locate_file(top))))
    return folder / "bin" / "python"


def run(python: Path, *arguments: str, folder: Path) -> str:
    """Return the output of a program that takes dparray from the clone."""
    outside = {name: text for name, text in os.environ.items() if name != "OCL_ICD_FILENAMES"}
    done = subprocess.run(
        [python, *arguments],
        cwd=folder,
        env=outside | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_programs_of_users_run(base: Path, tmp_path: Path) -> None:
    import_of_sycl = "import importlib.util as u; print(u.find_spec('dpctl'), u.find_spec('dpnp'))"
    assert run(base, "-c", import_of_sycl, folder=tmp_path) == "None None\n"
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)):
        program = tmp_path / f"block{number}.py"
        program.write_text(block)
        run(base, str(program), folder=tmp_path)


def test_the_doctor_finds_no_fault(base: Path, tmp_path: Path) -> None:
    lines = run(base, "-m", "dparray", "doctor", folder=tmp_path).splitlines()
    assert lines[-1].endswith("checks passed")
    assert any("host:cpu" in line for line in lines if line.startswith("devices"))


def test_every_public_name_can_be_imported(base: Path, tmp_path: Path) -> None:
    program = """
from dparray import *
try:
    onnx.load("model.onnx")
except ModuleNotFoundError as error:
    print(error)
"""
    assert "pip install 'onnx>=1.21' ml_dtypes" in run(base, "-c", program, folder=tmp_path)


def test_programs_for_numba_dpex_get_events(base: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
import dparray as dp
import numba_dpex

@numba_dpex.kernel
def double(item, x):
    x[item.get_id(0)] *= 2

x = dp.ones(3)
done, event = numba_dpex.call_kernel_async(double, numba_dpex.Range(3), (), x)
event.wait()
done.wait()
print(x)
""")
    assert run(base, str(program), folder=tmp_path) == "[2. 2. 2.]\n"


def test_the_tiny_tests_pass(base: Path) -> None:
    assert "passed" in run(base, "-m", "pytest", "-q", "tests/test_tiny.py", folder=ROOT)


@pytest.mark.slow
def test_compiled_loops_need_scipy_for_linear_algebra_only(base: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
import numpy as np
import dparray as dp

@dp.jit
def project(x, y, out):
    for i in dp.prange(x.shape[0]):
        out[i, :] = y - x[i, :]
        out[i, 0] = np.dot(x[i, :], y)

@dp.jit
def invert(x):
    for _ in range(3):
        x = np.linalg.inv(x + np.eye(2))
    return x[0, 0]

out = dp.empty((2, 2))
project(dp.ones((2, 2)), dp.arange(2.0), out)
print(out.tolist())
try:
    invert(dp.eye(2))
except dp.KernelCompileError as error:
    print(error)
""")
    found = run(base, str(program), folder=tmp_path)
    assert found.startswith("[[1.0, 0.0], [1.0, 0.0]]\n")
    assert "pip install scipy" in found


def test_an_error_names_the_packages_that_add_a_device(base: Path, tmp_path: Path) -> None:
    program = """
import dparray as dp
try:
    dp.Device("gpu")
except dp.DeviceError as error:
    print(error)
"""
    assert 'pip install "dpctl==0.22.*" "dpnp==0.20.*"' in run(base, "-c", program, folder=tmp_path)
