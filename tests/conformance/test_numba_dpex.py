"""numba-dpex's own kernel tests, in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
def test_numba_dpex_kernel_tests_pass(tmp_path: Path) -> None:
    environment = dict(os.environ)
    paths = [str(HERE), str(HERE.parents[1]), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "numba_dpex_plugin"),
        *("-p", "no:cacheprovider", "-W", "ignore", "--tb=short"),
        *("--pyargs", "numba_dpex.tests.kernel_tests"),
    ]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    summary = run.stdout[-4000:] + run.stderr[-2000:]
    assert run.returncode == 0, summary
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None, summary
    assert int(passed[1]) > 450, summary
