"""numba-dpex's kernel tests, in a separate process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def its_package(tmp_path: Path) -> Path:
    """Return the folder of numba-dpex's package, which is fetched for its tests and not installed.

    ``NUMBA_DPEX_PACKAGE`` names a folder with a package that is already there.
    """
    given = os.environ.get("NUMBA_DPEX_PACKAGE")
    if given:
        return Path(given)
    # An environment created by uv has no pip; one without the extra "dev" has no uv.
    installer = next((name for name in ("pip", "uv") if find_spec(name)), "")
    if not installer:
        pytest.skip("numba-dpex cannot be fetched: neither pip nor uv is installed")
    command = [
        *(sys.executable, "-m", *(("uv",) * (installer == "uv")), "pip"),
        *("install", "--quiet", "--no-deps"),
        *("--target", str(tmp_path), "--only-binary", ":all:", "--python-version", "3.11"),
        "numba-dpex==0.23.*",
    ]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"numba-dpex cannot be fetched: {fetched.stderr[-500:]}")
    return tmp_path / "numba_dpex"


@pytest.mark.slow
def test_numba_dpex_kernel_tests_pass(its_package: Path, tmp_path: Path) -> None:
    environment = dict(os.environ, NUMBA_DPEX_PACKAGE=str(its_package))
    paths = [str(HERE), str(HERE.parents[1]), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    tests = its_package / "tests" / "kernel_tests"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "numba_dpex_plugin"),
        *("-p", "no:cacheprovider", "-W", "ignore", "--tb=short"),
        *("--rootdir", str(its_package.parent), str(tests)),
        # It adds to kernels by Numba's @overload, which only a compiler made of Numba has.
        *("--ignore", str(tests / "test_target_specific_overload.py")),
    ]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    summary = run.stdout[-4000:] + run.stderr[-2000:]
    assert run.returncode == 0, summary
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None, summary
    assert int(passed[1]) > 450, summary
